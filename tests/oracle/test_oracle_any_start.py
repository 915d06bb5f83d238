"""initial_distribution="any": no initial law needs more than the bound, and laws near a corner need all of it."""

from fractions import Fraction

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import Array, awkward, dyadic_law, dyadic_matrix
from enumeration import Enumerated
from single_quilts import Quilts

LENGTH = 5
DENSE = [dyadic_matrix(np.random.default_rng(seed), 2 + seed % 2) for seed in range(8)]
SPARSE = [dyadic_matrix(np.random.default_rng(seed), 2 + seed % 2, zeros=0.35) for seed in range(20, 32)]
UNREACHED = awkward("", [], [[0.875, 0.125, 0], [0.125, 0.875, 0], [0.5, 0.5, 0]]).transition
MATRICES = [*DENSE, *SPARSE, UNREACHED, np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.75, 0.25], [0.0, 1.0]])]

Law = list[Fraction]


def near_corners(k: int, distance: Fraction) -> list[Law]:
    """Laws with all but ``distance`` of their mass in one state (0: the corners themselves)."""
    return [[1 - distance if x == corner else distance / (k - 1) for x in range(k)] for corner in range(k)]


def laws(k: int, seed: int) -> list[Law]:
    rng = np.random.default_rng(seed)
    inside = [[Fraction(v) for v in dyadic_law(rng, k, zeros)] for zeros in (0, 0, 0, 0.3, 0.3)]
    return [*inside, *near_corners(k, Fraction(1, 10**9)), *near_corners(k, Fraction(0))]


@pytest.mark.parametrize("p", MATRICES, ids=range(len(MATRICES)))
def test_no_initial_law_exceeds_any(p: Array) -> None:
    k = len(p)
    chain = pf.MarkovChain(p, "any")
    quilts, bound = Quilts(chain, LENGTH), pf.MQMExact(chain, LENGTH)
    profile = [0.0, 0.4, 0.0, 1.0, 0.1]
    for law in laws(k, seed=k):
        truth = Enumerated.of(law, p, LENGTH)
        for node in range(LENGTH):
            for ends, _ in truth.quilts(node):
                assert quilts.influence(node, ends) >= truth.influence(node, ends) * (1 - 1e-12) - 1e-13
        for epsilon in (0.5, 4.0):
            if sigma := truth.sigma(epsilon):
                assert bound.calibrate(pf.Count(1), epsilon).noise_multiplier >= sigma * (1 - 1e-12)
        assert bound.leakage(profile) >= truth.leakage(profile) * (1 - 1e-12)


@pytest.mark.parametrize("p", MATRICES, ids=range(len(MATRICES)))
def test_a_law_near_a_corner_attains_each_influence(p: Array) -> None:
    quilts = Quilts(pf.MarkovChain(p, "any"), LENGTH)
    near = [Enumerated.of(law, p, LENGTH) for law in near_corners(len(p), Fraction(1, 2**60))]
    for node in range(LENGTH):
        for ends, _ in near[0].quilts(node):
            found, attained = quilts.influence(node, ends), max(law.influence(node, ends) for law in near)
            if np.isinf(found):
                assert attained > 25  # of log 2^60 = 41.6: grows without bound as the law nears the corner
            else:
                assert found == pytest.approx(attained, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("epsilon", [2.0, 5.0])
@pytest.mark.parametrize("p", DENSE, ids=range(len(DENSE)))
def test_a_law_near_a_corner_needs_the_whole_score_of_the_active_quilt(p: Array, epsilon: float) -> None:
    calibration = pf.MQMExact(pf.MarkovChain(p, "any"), LENGTH).calibrate(pf.Count(1), epsilon)
    witness = calibration.witness
    near = [Enumerated.of(law, p, LENGTH) for law in near_corners(len(p), Fraction(1, 10**9))]
    scores = [law.score(witness.node, witness.active_quilt, witness.nearby, epsilon) for law in near]
    assert calibration.noise_multiplier == pytest.approx(max(scores), rel=1e-6)


@pytest.mark.parametrize("epsilon", [2.0, 5.0])
@pytest.mark.parametrize("p", [[[0.9, 0.1], [0.4, 0.6]], [[0.75, 0.25], [0.25, 0.75]]], ids=["paper", "symmetric"])
def test_a_law_near_a_corner_needs_all_the_noise(p: list[list[float]], epsilon: float) -> None:
    """Not so on every chain: laws near different corners may be served by different quilts, "any" takes one for all."""
    found = pf.MQMExact(pf.MarkovChain(p, "any"), 7).calibrate(pf.Count(1), epsilon).noise_multiplier
    near = [Enumerated.of(law, p, 7).sigma(epsilon) for law in near_corners(2, Fraction(1, 10**9))]
    assert found == pytest.approx(max(near), rel=1e-6)


def test_any_is_stationary_where_the_past_is_forgotten_at_once() -> None:
    coin = [[0.25, 0.75], [0.25, 0.75]]
    for start in ("any", "stationary", [1, 0]):
        assert pf.MQMExact(pf.MarkovChain(coin, start), 50).leakage(0.5) == pytest.approx(0.5, rel=1e-9)


def test_one_quilt_for_all_laws_can_cost_a_little_more_than_the_worst_law() -> None:
    """The 0.1% that docs/mechanisms.md speaks of: Appendix C.4 takes one quilt where single laws take their own."""
    p, near = [[0.25, 0.75], [0.625, 0.375]], 1e-9
    every = pf.MQMExact(pf.MarkovChain(p, "any"), 7).calibrate(pf.Count(1), 2.0).scale
    laws = [[near, 1 - near], [1 - near, near], [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]
    worst = max(pf.MQMExact(pf.MarkovChain(p, q), 7).calibrate(pf.Count(1), 2.0).scale for q in laws)
    assert worst < every < 1.002 * worst
