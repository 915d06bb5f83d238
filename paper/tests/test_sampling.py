"""Simulated noise: its law, its independence of everything but seed and names, and the errors it makes."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

import pufferfish as pf
from paper.experiments.sampling import Errors, discrete_laplace, l1_variance, stream, summary, trial_errors
from pufferfish.data import Base
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import Query
from pufferfish.theta.lengths import ChainLength

DRAWS = 40_000
CHAIN = pf.MarkovChain([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.3, 0.7]], states=["a", "b", "c"])


def p_value(values: np.ndarray, scale: float) -> float:
    """By χ², against P(z) ∝ exp(−|z|/scale), the values in cells, the sign left out."""
    width = max(1, int(scale / 5))
    edges = np.arange(0, int(scale * math.log(DRAWS / 200)) + 1, width)
    p = math.exp(-1 / scale)
    beyond = np.concatenate([[1.0], 2 * p ** edges[1:] / (1 + p)])  # P(|Z| ≥ edge)
    expected = np.concatenate([-np.diff(beyond), beyond[-1:]]) * values.size
    observed = np.histogram(np.abs(values), [*edges, np.inf])[0]
    assert expected.min() > 5
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0, 400.0])
def test_noise_is_discrete_laplace_of_its_scale(scale: float) -> None:
    values = discrete_laplace(stream(1, "law", scale), scale, (DRAWS,))
    assert p_value(values, scale) > 1e-4
    assert p_value(values, 1.15 * scale) < 1e-4
    assert p_value(discrete_laplace(stream(2, scale), 1.15 * scale, (DRAWS,)), scale) < 1e-4


@pytest.mark.parametrize("scale", [0.2, 3.0, 400.0])
def test_either_sign_is_as_likely_and_draws_do_not_depend_on_each_other(scale: float) -> None:
    values = discrete_laplace(stream(3, scale), scale, (DRAWS // 2, 2))
    above, below = int((values > 0).sum()), int((values < 0).sum())
    assert stats.binomtest(above, above + below).pvalue > 1e-4
    assert abs(np.corrcoef(values.T)[0, 1]) < 5 / math.sqrt(len(values))
    assert abs(np.corrcoef(values[:, 0], values.sum(axis=1))[0, 1]) > 0.5  # control


def calibration(query: Query, epsilon: float = 1.0) -> Calibration:
    return pf.GroupDP(CHAIN, 60).calibrate(query, epsilon)


@pytest.mark.parametrize("query", [pf.Count("a"), pf.Histogram(), pf.Mean([0, 0.5, 2])], ids=lambda q: type(q).__name__)
@pytest.mark.parametrize("epsilon", [0.5, 300.0])
def test_the_mean_error_is_the_expected_one(query: Query, epsilon: float) -> None:
    found = calibration(query, epsilon)
    noise = discrete_laplace(stream(4, epsilon), found.unit_scale, (DRAWS, len(found.linear.labels)))
    errors = np.abs(noise).sum(axis=1) * float(found.linear.unit)
    standard_error = errors.std(ddof=1) / math.sqrt(DRAWS)
    assert abs(errors.mean() - found.expected_l1_error) < 5 * standard_error
    assert abs(errors.mean() - 1.3 * found.expected_l1_error) > 5 * standard_error  # control


def test_a_stream_depends_on_seed_and_names_only() -> None:
    first = stream(7, "power", 0.2, "gk16").random(4)
    stream(7, "other").random(1000)
    np.random.default_rng(7).random(1000)
    assert (stream(7, "power", 0.2, "gk16").random(4) == first).all()
    others = [(8, "power", 0.2, "gk16"), (7, "power", 0.2, "mqm"), (7, "power", 0.20001, "gk16"), (7, "power0.2gk16")]
    seen = {tuple(first), *(tuple(stream(*names).random(4)) for names in others)}
    assert len(seen) == 1 + len(others)


def by_hand(counts: list[int]) -> pf.Sequences:
    return pf.Sequences(
        states=("a", "b", "c"),
        counts=[counts],
        transitions=np.zeros((3, 3), dtype=np.int64),
        length=(ChainLength(sum(counts), sum(counts)),),
        subjects=1,
        base=Base(source="by hand", state="state"),
    )


def nearest_shares(values: np.ndarray) -> np.ndarray:
    """Project to the simplex through the one threshold that leaves a sum of 1, found as a root."""
    low, high = float(values.min()) - 1, float(values.max())
    threshold = optimize.brentq(lambda t: np.maximum(values - t, 0).sum() - 1, low, high, xtol=1e-15)
    return np.maximum(values - threshold, 0)


@pytest.mark.parametrize("epsilon", [1.0, 20.0, 300.0])
def test_errors_are_those_of_the_same_noise(epsilon: float) -> None:
    found, databases = calibration(pf.Histogram(), epsilon), [by_hand([30, 20, 10]), by_hand([60, 0, 0])] * 10
    errors = trial_errors(found, databases, stream(5, "errors"))
    noise = discrete_laplace(stream(5, "errors"), found.unit_scale, (20, 3)) / 60
    exact = np.array([[1 / 2, 1 / 3, 1 / 6], [1, 0, 0]] * 10)
    np.testing.assert_allclose(errors.raw, np.abs(noise).sum(axis=1), rtol=1e-12)
    valid = [np.abs(nearest_shares(n) - x).sum() for n, x in zip(exact + noise, exact, strict=True)]
    np.testing.assert_allclose(errors.valid, valid, atol=1e-12)
    assert (errors.valid <= 2).all()
    assert np.abs(errors.valid - errors.raw).max() > 1e-3  # something was done


def test_errors_of_a_number_are_clipped_to_what_is_possible() -> None:
    found = calibration(pf.Count("a"), 2.0)
    errors = trial_errors(found, [by_hand([45, 10, 5])] * 50, stream(6, "count"))
    noise = discrete_laplace(stream(6, "count"), found.unit_scale, (50, 1))[:, 0]
    assert errors.raw.tolist() == np.abs(noise).tolist()
    assert errors.valid.tolist() == np.abs(np.clip(45 + noise, 0, 60) - 45).tolist()
    assert errors.valid.sum() < errors.raw.sum()


def test_summary_by_hand() -> None:
    found = summary(2.5, 12.0, Errors(np.array([1.0, 2.0, 6.0]), np.array([1.0, 2.0, 6.0])))
    assert found == {
        "expected_l1_error": 2.5,
        "mean_l1_error": 3.0,
        "standard_error": 2.0,
        "valid_mean_l1_error": 3.0,
        "valid_standard_error": pytest.approx(math.sqrt((4 + 1 + 9) / 2 / 3)),
    }


@pytest.mark.parametrize("query", [pf.Histogram(), pf.Count("a")])
def test_variance_is_that_of_the_law(query: pf.Histogram | pf.Count) -> None:
    found = calibration(query, 2.0)
    z = np.arange(-5000, 5001)
    law = np.exp(-np.abs(z) / found.unit_scale)
    law /= law.sum()
    variance = float(law @ z**2 - (law @ np.abs(z)) ** 2)
    unit, outputs = float(found.linear.unit), len(found.linear.labels)
    assert l1_variance(found) == pytest.approx(outputs * variance * unit**2, rel=1e-9)
