"""The lower bound against the truth: at that scale a Laplace release leaks more than ε, by enumeration."""

from collections.abc import Sequence

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import CASES, Case, dyadic_matrix
from enumeration import Enumerated, laplace_loss
from pufferfish._core.propagation.lower_bound import TiltedChain

QUERIES = {"count": pf.Count(0), "histogram": pf.Histogram(relative=False), "sum": pf.Sum([0, 1, 5][:2])}


def continuous_loss(case: Case, weights: np.ndarray, scale: float) -> float:
    """Exact loss of a release with Laplace noise: the discrete one has the same at atoms and beyond them."""
    return Enumerated.of(case.initial, case.transition, case.length).true_loss(weights, scale)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("case", [c for c in CASES if c.chain.k == 2], ids=str)
def test_less_noise_than_the_bound_breaks_the_promise(case: Case, epsilon: float) -> None:
    for query in QUERIES.values():
        try:
            found = pf.LeakagePropagation(case.chain, case.length).calibrate(query, epsilon)
        except pf.PufferfishError:
            continue  # no record has a secret, or no finite noise is enough
        assert found.lower_bound <= found.scale
        if found.lower_bound:
            weights, unit = found.linear.weights, float(found.linear.unit)
            assert continuous_loss(case, weights, found.lower_bound / unit) > epsilon
            assert continuous_loss(case, weights, found.lower_bound / unit * 0.9) > epsilon
            assert continuous_loss(case, weights, found.scale / unit) <= epsilon * (1 + 1e-9)


def tilt(initial: Sequence[float], p: np.ndarray, length: int, potential: np.ndarray) -> float:
    """Largest log ratio of E[exp Σ potential(X_t)] given two values of a record, by enumeration."""
    chain = Enumerated.of(list(initial), p, length)
    told = {seq: weight * np.exp(potential[list(seq)].sum()) for seq, weight in chain.law.items()}
    worst = 0.0
    for node in range(length):
        means = []
        for x in chain.secrets(node):
            mass = sum(w for seq, w in chain.law.items() if seq[node] == x)
            means.append(sum(v for seq, v in told.items() if seq[node] == x) / mass)
        worst = max(worst, float(np.log(max(means) / min(means))))
    return worst


@pytest.mark.parametrize("seed", range(8))
def test_tilts_of_short_chains_are_what_enumeration_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, length = 3, int(rng.integers(1, 6))
    p, q = dyadic_matrix(rng, k, 0.2), rng.multinomial(64, [0.5, 0.3, 0.2]) / 64
    weights = rng.integers(-2, 3, (2, k))
    chain = TiltedChain(p, q, weights, length)
    signs = chain.candidates()
    assert sorted(map(tuple, signs)) == [(-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0)]
    expected = [tilt(q, p, length, s @ weights / 1.7) for s in signs]
    found = chain.losses(signs, 1.7)
    assert found == pytest.approx(expected, abs=1e-9)
    assert np.all(found <= np.array(expected) + 1e-13)


def test_tilts_of_long_chains_are_those_of_shorter_ones_in_the_limit() -> None:
    p = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.25, 0.7]])
    for initial in ("stationary", np.array([1.0, 0.0, 0.0])):
        short, long = (TiltedChain(p, initial, np.eye(3, dtype=np.int64), n) for n in (180, 100_000))
        signs = short.candidates()
        assert long.losses(signs, 9.0) == pytest.approx(short.losses(signs, 9.0), abs=1e-6)


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("seed", range(3))
def test_the_search_for_signs_finds_what_trying_all_finds(seed: int) -> None:
    """Eleven outputs are searched; all 2^11 sign vectors are the oracle."""
    rng = np.random.default_rng(seed)
    k = 11
    p = 4 * np.eye(k) + rng.gamma(0.5, size=(k, k))
    chain = pf.MarkovChain(p / p.sum(axis=1, keepdims=True))
    found = pf.LeakagePropagation(chain, 1000).calibrate(pf.Histogram(relative=False), 1.0)
    tilted = TiltedChain(chain.transition_matrix, "stationary", np.eye(k, dtype=np.int64), 1000)
    every = 1.0 - 2.0 * ((np.arange(2**k)[:, None] >> np.arange(k)) & 1)
    assert tilted.losses(every, found.lower_bound * 1.001).max() <= 1.0
    assert found.lower_bound <= found.scale <= 1.3 * found.lower_bound  # these chains are far from reversible


def test_a_class_is_bounded_by_its_worst_member() -> None:
    calm, busy = pf.MarkovChain([[0.95, 0.05], [0.2, 0.8]]), pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]])
    alone = [pf.GroupDP(theta, 60).calibrate(pf.Count(0), 1.0).lower_bound for theta in (calm, busy)]
    both = pf.GroupDP([busy, calm], 60).calibrate(pf.Count(0), 1.0).lower_bound
    assert both == pytest.approx(max(alone), rel=1e-5)


def test_unobserved_records_are_taken_at_the_end() -> None:
    gaps = pf.LeakagePropagation(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), pf.ChainLength(500, 20))
    full = pf.LeakagePropagation(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 20)
    found = [bound.calibrate(pf.Count(0), 1.0) for bound in (gaps, full)]
    assert found[0].lower_bound == pytest.approx(found[1].lower_bound, rel=1e-5)
    assert found[0].lower_bound <= found[0].scale


def test_every_initial_law_costs_at_least_what_one_does() -> None:
    p = [[0.9, 0.1], [0.4, 0.6]]
    every = pf.LeakagePropagation(pf.MarkovChain(p, "any"), 50).calibrate(pf.Count(0), 1.0)
    for initial in ([1, 0], [0.5, 0.5], "stationary"):
        one = pf.LeakagePropagation(pf.MarkovChain(p, initial), 50).calibrate(pf.Count(0), 1.0)
        assert one.lower_bound <= every.lower_bound * (1 + 1e-4) or initial == [0.5, 0.5]
    assert every.lower_bound <= every.scale


def test_laplace_loss_at_a_scale_is_at_least_any_tilt() -> None:
    """The tilt is a limit of outputs, so enumeration over all outputs is never below it."""
    atoms, laws = np.array([[0], [1], [2]]), [np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])]
    tilted = np.log((laws[1] @ np.exp(atoms[:, 0] / 2)) / (laws[0] @ np.exp(atoms[:, 0] / 2)))
    assert laplace_loss(atoms, laws, 2.0) >= tilted - 1e-12


@pytest.mark.parametrize(
    ("p", "q", "length", "epsilon"),
    [
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], [0.31, 0.036, 0.654], 3, 9.85e-5),
        ([[0, 1], [1, 0]], [0.264, 0.736], 6, 0.00124),
    ],
)
def test_a_histogram_that_is_always_the_same_has_no_lower_bound(
    p: list[list[float]], q: list[float], length: int, epsilon: float
) -> None:
    """Its true loss is 0 at every scale: rounding must not be taken for leakage."""
    found = pf.GroupDP(pf.MarkovChain(p, q), length).calibrate(pf.Histogram(), epsilon)
    assert found.lower_bound == 0.0
