"""Noise of the best shape has the laws and the errors it is said to have; controls must fail."""

from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy import stats

import pufferfish as pf
from pufferfish._core.numbers import laplace
from pufferfish._core.numbers.laplace import LaplaceSum, mean_moduli
from pufferfish.release.draw import cells_of, database_of
from pufferfish.release.postprocessing import quantiles_of

DRAWS = 2500
CHAIN = pf.MarkovChain([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.02, 0.03, 0.95]], states=["a", "b", "c"])
DATA = ["a"] * 9 + ["b"] * 6 + ["c"] * 15


@cache
def best_noise(query: pf.queries.Query, epsilon: float) -> pf.Calibration:
    return pf.LeakagePropagation(CHAIN, len(DATA)).calibrate(query, epsilon, noise="best")


def law(scales: list[float], reach: int) -> np.ndarray:
    """Law of a sum of discrete Laplace variables on −reach … reach, by plain convolution; the ends take the rest."""
    z = np.arange(-40 * int(max(scales) + 1), 40 * int(max(scales) + 1) + 1)
    found = np.ones(1)
    for b in scales:
        found = np.convolve(found, np.tanh(1 / (2 * b)) * np.exp(-np.abs(z) / b))
    middle = len(found) // 2
    inside = found[middle - reach : middle + reach + 1]
    rest = (1 - inside.sum()) / 2
    return np.concatenate([[rest], inside, [rest]])


def p_value(errors: np.ndarray, scales: list[float]) -> float:
    reach = int(3 * max(scales))
    observed = np.bincount(np.clip(errors, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)
    return float(stats.chisquare(observed, law(scales, reach) * errors.size).pvalue)


@pytest.fixture(scope="module", params=[pf.Histogram(relative=False), pf.CDF(relative=False)], ids=lambda q: q.kind)
def drawn(request: pytest.FixtureRequest) -> tuple[pf.Calibration, np.ndarray]:
    """Return the best noise for a query, and errors of its outputs."""
    noise = best_noise(request.param, 2.0)
    assert noise.strategy is not None
    draw = cells_of(database_of(DATA, noise), noise, len(DATA)).sampler(noise)
    exact = noise.strategy.weights @ [9, 6, 15]
    return noise, np.array([draw()[0] for _ in range(DRAWS)]) - exact


def test_each_output_has_the_law_of_its_sum(drawn: tuple[pf.Calibration, np.ndarray], slow: bool) -> None:
    noise, errors = drawn
    assert noise.strategy is not None
    several = 0
    for column, scales in zip(errors.T, noise.strategy.taken(noise.unit_scale), strict=True):
        assert p_value(column, list(scales)) > 1e-6
        if slow or not several:  # controls
            assert p_value(column, [1.35 * b for b in scales]) < 1e-6
        if len(scales) > 1:
            several += 1
            assert p_value(column, [max(scales)]) < 1e-4  # control: one of them alone is another law
    assert several


def test_errors_cover_as_often_as_they_say(drawn: tuple[pf.Calibration, np.ndarray]) -> None:
    noise, errors = drawn
    sure = 4 * np.sqrt(0.05 * 0.95 / DRAWS)
    beyond = np.abs(errors) > noise.accuracies(0.05)
    assert np.all(beyond.mean(axis=0) <= 0.05 + sure)
    assert np.all((np.abs(errors) >= noise.accuracies(0.05)).mean(axis=0) > 0.05 - sure)  # and not by much
    for allowed in (noise.accuracy(0.05, joint=True), noise.accuracies(0.05, joint=True)):
        assert (np.abs(errors) > allowed).any(axis=1).mean() <= 0.05 + sure
    if errors.shape[1] == 3:  # control: errors of single outputs do not hold together; two sums may nearly do
        assert beyond.any(axis=1).mean() > 0.05 + sure
    expected = float(np.abs(errors).sum(axis=1).mean())
    assert noise.expected_l1_error == pytest.approx(expected, rel=0.05)


def test_groups_have_noise_of_their_own_of_the_same_law() -> None:
    cells, draws = 5, 500
    table = pl.DataFrame({"s": DATA, "cell": [str(i % cells) for i in range(len(DATA))]})
    data = pf.read_sequences(table, "s", by="cell", states=list(CHAIN.states))
    query = pf.Histogram(relative=False)
    assert [length.steps for length in data.length] == [len(DATA)]
    noise = best_noise(query, 2.0)
    found = cells_of(data, noise)
    assert noise.strategy is not None
    assert found is not None
    assert isinstance(noise.linear, pf.queries.LinearQuery)
    assert data.groups is not None
    draw = found.sampler(noise)
    errors = np.array([draw() for _ in range(draws)]).reshape(draws, cells, 3) - data.groups.counts["s"]
    for o, scales in enumerate(noise.strategy.taken(noise.unit_scale)):
        assert p_value(errors[:, :, o].ravel(), list(scales)) > 1e-6
        assert p_value(errors[:, :, o].ravel(), [1.35 * b for b in scales]) < 1e-6  # control
    apart = np.corrcoef(errors[:, :, 0].T) - np.eye(cells)
    assert np.abs(apart).max() < 5 / np.sqrt(draws)
    release = pf.release(data, query, noise)
    sure = 4 * np.sqrt(0.05 * 0.95 / draws)
    for allowed in (release.accuracy(0.05, joint=True), release.accuracies(0.05, joint=True)):
        assert (np.abs(errors) > allowed).any(axis=(1, 2)).mean() <= 0.05 + sure
    of_one = pf.release(DATA, query, noise).accuracies(0.05, joint=True)
    assert (np.abs(errors) > of_one).any(axis=(1, 2)).mean() > 0.05 + sure  # control: errors of one group alone


def test_quantile_intervals_hold_together() -> None:
    asked, shares = pf.Quantiles([0.1, 0.3, 0.6, 0.9]), [0.1, 0.3, 0.6, 0.9]
    noise = pf.LeakagePropagation(CHAIN, 100).calibrate(asked, 5.0, noise="best")
    data = ["a"] * 30 + ["b"] * 20 + ["c"] * 50
    truth = ["a", "a", "c", "c"]  # 30 records are a, 50 are a or b
    draw = cells_of(database_of(data, noise), noise, len(data)).sampler(noise)
    errors = noise.accuracies(0.05, joint=True)
    found = [quantiles_of(shares, draw()[0] / 100, errors, CHAIN.states, 1.0) for _ in range(DRAWS)]
    missed = [any(not q.low <= state <= q.high for q, state in zip(each, truth, strict=True)) for each in found]
    assert np.mean(missed) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / DRAWS)
    trivial = [all(q.low == "a" and q.high == "c" for q in each) for each in found]
    assert np.mean(trivial) < 0.5  # control: intervals that say nothing would always hold


def test_sums_have_the_tails_and_means_of_their_law() -> None:
    for scales in ([3.0], [0.4, 0.7], [3.0, 7.0, 1.2], [60.0, 2.0, 2.0], [1e-3, 4.0]):
        reach = 20 * int(max(scales) + 1)
        found = law(list(scales), reach)
        z = np.abs(np.arange(-reach, reach + 1))
        assert mean_moduli(np.array(scales), np.ones((1, len(scales)), bool))[0] == pytest.approx(
            float(z @ found[1:-1]), rel=1e-5
        )
        for alpha in (0.5, 0.05, 1e-4):
            least = next(t for t in range(reach) if found[1:-1][z > t].sum() + 2 * found[0] <= alpha)
            assert LaplaceSum(scales).accuracy(alpha) == least


def test_on_a_coarser_grid_a_tail_is_never_below(monkeypatch: pytest.MonkeyPatch) -> None:
    for scales in ([60.0, 2.0, 2.0], [35.0, 50.0]):
        exact = LaplaceSum(scales)
        least = [exact.accuracy(alpha) for alpha in (0.5, 0.05, 1e-3, 1e-6)]
        with monkeypatch.context() as patched:
            patched.setattr(laplace, "_FINEST", 10.0)
            coarse = LaplaceSum(scales)
            found = [coarse.accuracy(alpha) for alpha in (0.5, 0.05, 1e-3, 1e-6)]
        assert all(t <= u <= t + 6 * len(scales) for t, u in zip(least, found, strict=True))
        assert found != least
