"""The shortcuts of the search (worst node, node groups, settled marginals) against every quilt of every node."""

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import Array, dyadic_law, dyadic_matrix
from enumeration import exact_stationary, long_sigma
from pufferfish._core.quilts import influence


def sticky(rng: np.random.Generator, k: int, stay: float) -> Array:
    return stay * np.eye(k) + (1 - stay) * dyadic_matrix(rng, k)


def stationary_of(p: Array) -> Array:
    return np.array([float(v) for v in exact_stationary(p)])


def matrix(seed: int) -> Array:
    rng = np.random.default_rng(seed)
    return sticky(rng, 2 + seed % 2, (0.0, 0.5, 0.8, 0.95)[seed % 4])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("length", [2, 17, 60])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 6.0])
def test_one_node_decides_for_stationary_chains(seed: int, length: int, epsilon: float) -> None:
    p = matrix(seed)
    found = pf.MQMExact(pf.MarkovChain(p), length).calibrate(pf.Count(1), epsilon).noise_multiplier
    truth = long_sigma(stationary_of(p), p, length, epsilon)
    assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("longest", [1, 4, 19, 59])
def test_one_node_decides_with_short_quilts_only(seed: int, longest: int) -> None:
    p = matrix(seed)
    bound = pf.MQMExact(pf.MarkovChain(p), 60, max_quilt_length=longest)
    truth = long_sigma(stationary_of(p), p, 60, 3.0, longest)
    assert truth * (1 - 1e-12) <= bound.calibrate(pf.Count(1), 3.0).noise_multiplier <= truth * (1 + 1e-9)


def start(seed: int, k: int) -> Array:
    return np.eye(k)[seed % k] if seed % 3 else dyadic_law(np.random.default_rng(seed + 100), k)


@pytest.mark.grid(keep=2)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("epsilon", [0.4, 3.0])
def test_the_settled_cut_costs_next_to_nothing(seed: int, epsilon: float) -> None:
    p = matrix(seed)
    q = start(seed, len(p))
    found = pf.MQMExact(pf.MarkovChain(p, q), 200).calibrate(pf.Count(1), epsilon).noise_multiplier
    truth = long_sigma(q, p, 200, epsilon)
    assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    "p",
    [[[0.875, 0.125, 0], [0.125, 0.875, 0], [0.5, 0.5, 0]], [[0.875, 0.125, 0], [0.125, 0.875, 0], [0.99, 0.01, 0]]],
    ids=["dull", "telling"],
)
def test_settled_nodes_know_which_states_are_never_reached(p: list[list[float]]) -> None:
    q, matrix_ = np.array([0.75, 0.25, 0]), np.array(p)
    for length in (100, 300):
        found = pf.MQMExact(pf.MarkovChain(p, q), length).calibrate(pf.Count(1), 1.0).noise_multiplier
        truth = long_sigma(q, matrix_, length, 1.0)
        assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-8)


@pytest.mark.slow
def test_300_records() -> None:
    p, q = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([1.0, 0.0])
    for epsilon in (0.2, 1.0):
        found = pf.MQMExact(pf.MarkovChain(p, q), 300).calibrate(pf.Count(1), epsilon).noise_multiplier
        truth = long_sigma(q, p, 300, epsilon)
        assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-8)


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("single", [1, 3, 10])
@pytest.mark.parametrize("seed", range(6))
def test_blocks_of_nodes_never_need_less(monkeypatch: pytest.MonkeyPatch, single: int, seed: int, slow: bool) -> None:
    length = 80 if slow else 40
    monkeypatch.setattr(influence, "SINGLE_NODES", single)
    monkeypatch.setattr(influence, "SETTLED", -1.0)  # never: so that blocks are all there is
    p = matrix(seed)
    q = start(seed, len(p))
    for epsilon in (1.0, 4.0):
        found = pf.MQMExact(pf.MarkovChain(p, q), length).calibrate(pf.Count(1), epsilon).noise_multiplier
        assert found >= long_sigma(q, p, length, epsilon) * (1 - 1e-12)
        everywhere = pf.MQMExact(pf.MarkovChain(p, "any"), length).calibrate(pf.Count(1), epsilon).noise_multiplier
        for law in (q, np.full(len(p), 1 / len(p)), stationary_of(p)):
            assert everywhere >= long_sigma(law, p, length, epsilon) * (1 - 1e-12)


@pytest.mark.parametrize("initial", [[1, 0], [0.25, 0.75]], ids=str)
def test_blocks_of_a_periodic_chain(monkeypatch: pytest.MonkeyPatch, initial: list[float]) -> None:
    """Marginals that swap for ever: the block holds the prior of both."""
    monkeypatch.setattr(influence, "SINGLE_NODES", 2)
    p = np.array([[0.0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]])
    q = np.array([initial[0], 0, initial[1]])
    found = pf.MQMExact(pf.MarkovChain(p, q), 40).calibrate(pf.Count(0), 1.0).noise_multiplier
    assert found >= long_sigma(q, p, 40, 1.0) * (1 - 1e-12)


@pytest.mark.parametrize("longest", [None, 7])
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_nodes_under_uneven_profiles(seed: int, settled: bool, longest: int | None) -> None:
    """Windows and spikes: nodes are dropped by the quilts of others, against a search of every node on its own."""
    rng = np.random.default_rng(seed)
    p = matrix(seed)
    profile = np.where(rng.random(70) < 0.5, 0.0, rng.exponential(0.2, 70))
    q = stationary_of(p) if settled else dyadic_law(rng, len(p))
    chain = pf.MarkovChain(p) if settled else pf.MarkovChain(p, q)
    found = pf.MQMExact(chain, 70, max_quilt_length=longest).leakage(profile)
    truth = brute_leakage(q, p, profile, longest or 70)
    assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-8) + 1e-10


def brute_leakage(q: Array, p: Array, profile: Array, longest: int) -> float:
    """Least loss through any quilt at the worst node; q and p have no zeros."""
    length, off = len(profile), ~np.eye(len(p), dtype=bool)
    powers = [np.linalg.matrix_power(p, t) for t in range(length)]
    right = [np.log(m[:, None, :] / m[None, :, :]).max(axis=2) for m in powers[1:]]
    left = [np.log(m.T[:, None, :] / m.T[None, :, :]).max(axis=2) for m in powers[1:]]
    worst = 0.0
    for node in range(length):
        law = q @ powers[node]
        prior = np.log(law[None, :] / law[:, None])
        best = profile.sum()
        for a in range(1, node + 2):
            for b in range(1, length - node + 1):
                if a + b - 1 > longest:
                    break
                influence_ = np.zeros(off.shape)
                if a <= node:
                    influence_ = influence_ + prior + left[a - 1]
                if node + b < length:
                    influence_ = influence_ + right[b - 1]
                near = profile[max(0, node - a + 1) : node + b].sum()
                if a <= node or node + b < length:
                    best = min(best, near + max(0.0, influence_[off].max()))
        worst = max(worst, best)
    return float(worst)
