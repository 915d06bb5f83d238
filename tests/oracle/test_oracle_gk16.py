"""Influence matrices by enumeration, and no release leaks more than GK16 says: members of continua among them."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import Array, dyadic_law, dyadic_matrix
from enumeration import Enumerated, exact_stationary
from propagation_oracle import chain_law, losses_per_pair, supremum
from pufferfish._core.gk16 import InfluenceMatrix, chain_influences, stationary_influences

SLACK = 1 + 1e-9


def enumerated_matrix(law: Array) -> Array:
    """Γ from its definition, over the values that single records can have."""
    t = law.ndim
    axes = range(t)
    alphabets = [np.flatnonzero(law.sum(axis=tuple(a for a in axes if a != i)) > 0) for i in axes]
    law = law[np.ix_(*alphabets)]
    assert np.all(law > 0)
    gamma = np.zeros((t, t))
    for i in axes:
        logs = np.log(law / law.sum(axis=i, keepdims=True))
        for j in set(axes) - {i}:
            gamma[i, j] = (logs.max(axis=j) - logs.min(axis=j)).max() / 2
    return gamma


def dense(matrix: InfluenceMatrix) -> Array:
    return np.diag(matrix.left[1:], -1) + np.diag(matrix.right[:-1], 1)


def weak(seed: int, k: int, share: float = 0.125) -> Array:
    """A matrix that is mostly the uniform one, to within 2^-16."""
    p = share * dyadic_matrix(np.random.default_rng(seed), k) + (1 - share) / k
    p = np.round(p * 2**16) / 2**16
    p[:, 0] += 1 - p.sum(axis=1)
    return p


def given_starts(seed: int, k: int) -> list[Array]:
    return [dyadic_law(np.random.default_rng(seed), k), np.eye(k)[seed % k], np.full(k, 1 / k)]


def stationary_of(p: Array) -> Array:
    return np.array([float(v) for v in exact_stationary(p)])


PERIODIC = np.array([[0, 0, 0.25, 0.75], [0, 0, 0.625, 0.375], [0.5, 0.5, 0, 0], [0.375, 0.625, 0, 0]])
TRANSIENT = np.array([[0.0, 0.5, 0.5], [0, 0.25, 0.75], [0, 0.5, 0.5]])
ONTO_ONE = np.array([[0.0, 0, 1], [0, 0, 1], [0.25, 0.75, 0]])


@pytest.mark.parametrize("steps", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(8))
def test_matrices_of_given_and_stationary_starts(seed: int, steps: int) -> None:
    k = 2 + seed % 2
    p = dyadic_matrix(np.random.default_rng(seed), k)
    for start in given_starts(seed, k):
        expected = enumerated_matrix(chain_law(start, p, steps))
        np.testing.assert_allclose(dense(chain_influences(p, start).matrix(steps)), expected, atol=1e-12)
    pi = stationary_of(p)
    expected = enumerated_matrix(chain_law(pi, p, steps))
    np.testing.assert_allclose(dense(stationary_influences(p, pi).matrix(steps)), expected, atol=1e-12)


@pytest.mark.parametrize("steps", range(1, 7))
@pytest.mark.parametrize(
    ("p", "start"),
    [
        (PERIODIC, [0.25, 0.75, 0, 0]),
        (PERIODIC, [1, 0, 0, 0]),
        (TRANSIENT, [0.5, 0.25, 0.25]),
        (TRANSIENT, [1, 0, 0]),
        (ONTO_ONE, [0.5, 0.5, 0]),
    ],
)
def test_matrices_where_records_have_different_alphabets(p: Array, start: list[float], steps: int) -> None:
    expected = enumerated_matrix(chain_law(start, p, steps))
    matrix = chain_influences(p, np.array(start, dtype=float)).matrix(steps)
    np.testing.assert_allclose(dense(matrix), expected, atol=1e-12)
    marginals = [chain_law(start, p, t + 1).reshape(-1, len(p)).sum(axis=0) for t in range(steps)]
    assert list(matrix.secret) == [np.count_nonzero(m) > 1 for m in marginals]


@pytest.mark.parametrize("seed", range(6))
def test_matrices_of_every_start_are_approached_and_not_exceeded(seed: int) -> None:
    k = 2 + seed % 2
    p, rng = dyadic_matrix(np.random.default_rng(seed), k), np.random.default_rng(seed)
    bound = dense(chain_influences(p, None).matrix(5))
    corners = (1 - k * 1e-9) * np.eye(k) + 1e-9
    reached = np.zeros_like(bound)
    for start in [*rng.dirichlet(np.ones(k), 20), *corners, *np.eye(k)]:
        found = enumerated_matrix(chain_law(start, p, 5))
        assert np.all(found <= bound + 1e-12)
        reached = np.maximum(reached, found)
    np.testing.assert_allclose(reached, bound, atol=1e-6)


def laws_of(chain: pf.MarkovChain, steps: int) -> list[Array]:
    p, k, start = chain.transition_matrix, chain.k, chain.initial_distribution
    if not isinstance(start, str):
        return [chain_law(start, p, steps)]
    if start == "stationary":
        return [chain_law(stationary_of(p), p, steps)]
    corners = (1 - k * 1e-9) * np.eye(k) + 1e-9
    return [chain_law(q, p, steps) for q in [*corners, np.full(k, 1 / k), *np.eye(k)]]


CHAINS = [(p, start) for p in (weak(1, 2, 0.25), weak(2, 3)) for start in ("stationary", "any", "given")]


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("ends", ["definition", "paper", None])
@pytest.mark.parametrize(("p", "start"), CHAINS, ids=lambda v: v if isinstance(v, str) else f"{len(v)} states")
def test_no_density_with_these_losses_leaks_more(p: Array, start: Any, ends: Any, slow: bool) -> None:
    """Against the linear program over all densities: its supremum is within the bound, though GK16 doubles it."""
    k, steps = len(p), 5 if len(p) == 2 else 4 if slow else 3
    chain = pf.MarkovChain(p, dyadic_law(np.random.default_rng(5), k) if start == "given" else start)
    bound = pf.GK16(chain, steps, ends=ends)
    rng = np.random.default_rng(3)
    sparse = rng.uniform(size=steps) * (rng.random(steps) < 0.5)
    more = (0.2, rng.uniform(size=steps)) if slow else ()
    for losses in (2.0, sparse, np.eye(steps)[0], np.eye(steps)[-1], *more):
        leakage = bound.leakage(losses)
        d = losses_per_pair(losses, steps, k)
        assert max(supremum(law, d) for law in laws_of(chain, steps)) <= leakage * SLACK


def test_a_third_of_the_bound_is_leaked() -> None:
    """Control: the oracle is not far from the half that the factor of 2 leaves, so it could see a bound too small."""
    p = weak(1, 2, 0.25)
    bound = pf.GK16(pf.MarkovChain(p), 5)
    worst = supremum(chain_law(stationary_of(p), p, 5), losses_per_pair(0.2, 5, 2))
    assert 0.35 * bound.leakage(0.2) < worst


@pytest.mark.parametrize("ends", ["definition", "paper", None])
@pytest.mark.parametrize("query", [pf.Count(0), pf.Histogram(), pf.Sum([0, 1.5, 0.5])], ids=["count", "bins", "sum"])
@pytest.mark.parametrize("start", ["stationary", "any", "given", "certain"])
def test_gk16_keeps_its_promise(start: str, query: Any, ends: Any) -> None:
    p = weak(4, 3)
    starts = {"stationary": [stationary_of(p)], "given": [dyadic_law(np.random.default_rng(1), 3)]}
    laws = starts.get(start, given_starts(0, 3) if start == "any" else [np.eye(3)[1]])
    chain = pf.MarkovChain(p, start if start in ("stationary", "any") else laws[0])
    calibration = pf.GK16(chain, 5, ends=ends).calibrate(query, 1.0)
    for law in laws:
        truth = Enumerated.of(list(law), p, 5).true_loss(calibration.linear.weights, calibration.unit_scale)
        assert 0.1 < truth <= SLACK


@pytest.mark.parametrize("ends", ["definition", "paper", None])
@pytest.mark.parametrize("records", [1, 2, 4])
def test_every_place_of_the_observed_records_is_covered(records: int, ends: Any) -> None:
    """The bound for so many observed records is the largest over where they are, not more."""
    chain = pf.MarkovChain(weak(1, 2, 0.25), "any")
    bound = pf.GK16(chain, pf.ChainLength(6, records), ends=ends)
    places = itertools.combinations(range(6), records)
    each = [bound.leakage(np.isin(np.arange(6), place) * 0.5) for place in places]
    assert bound.leakage(0.5) == pytest.approx(max(each), rel=1e-12)


@pytest.mark.parametrize("start", ["any", "stationary"])
@pytest.mark.parametrize(("low", "high"), [(0.35, 0.6), (0.42, 0.63), (0.55, 0.62), (0.35, 0.42)])
def test_members_of_an_interval_are_never_above_its_corner(low: float, high: float, start: Any) -> None:
    """Norms and bounds on a grid over p0 and p1; the corner is a member, so they are no larger than they must be."""
    theta = pf.BinaryChainInterval(low, high, initial_distribution=start)
    whole = pf.GK16(theta, 30)
    leakage, norm = whole.leakage(0.3), whole.spectral_norm
    reached = 0.0
    for p0, p1 in itertools.product(np.linspace(low, high, 9), repeat=2):
        member = pf.GK16(pf.MarkovChain([[p0, 1 - p0], [1 - p1, p1]], start), 30)
        assert member.spectral_norm <= norm * SLACK
        assert member.leakage(0.3) <= leakage * SLACK
        reached = max(reached, member.leakage(0.3))
    assert reached == pytest.approx(leakage, rel=1e-12)


def test_identical_records_are_why_zeros_are_refused() -> None:
    """Control: Γ over possible combinations only is 0 for two equal records, and their sum leaks twice as much."""
    truth = Enumerated.of([0.5, 0.5], [[1, 0], [0, 1]], 2)
    assert truth.true_loss(np.array([[0, 1]]), 4.0) == pytest.approx(0.5)
    long = Enumerated.of([0.5, 0.5], [[1, 0], [0, 1]], 6)
    assert long.true_loss(np.array([[0, 1]]), 4.0) > 2 * 0.25 * math.sqrt(2)
    with pytest.raises(pf.PufferfishError, match=r"GK16 does not apply: .* never goes from"):
        pf.GK16(pf.MarkovChain([[1, 0], [0, 1]], [0.5, 0.5]), 6)
