"""Numbers of leakage propagation, computed once by other programs (beyond the paper; its running examples)."""

import math
from itertools import permutations

import numpy as np
import pytest

import pufferfish as pf

P1, P2 = [[0.9, 0.1], [0.4, 0.6]], [[0.8, 0.2], [0.3, 0.7]]
THETA1 = pf.MarkovChain(P1, [1, 0])
THETA2 = pf.MarkovChain(P2, [0.9, 0.1])
STICKY = [[0.92, 0.03, 0.03, 0.02], [0.02, 0.93, 0.03, 0.02], [0.03, 0.03, 0.90, 0.04], [0.005, 0.01, 0.005, 0.98]]
COUNT = pf.Count(1)


@pytest.mark.parametrize(
    ("theta", "epsilon", "scale"),
    [(THETA1, 0.2, 15.390), (THETA1, 1.0, 3.3364), (THETA1, 5.0, 0.5365), (THETA2, 1.0, 3.0243)],
)
def test_running_example(theta: pf.MarkovChain, epsilon: float, scale: float) -> None:
    """Section 4.4, T = 100: propagation is the least Laplace scale of a count there; MQMExact needs 12.93 at ε = 1."""
    found = pf.LeakagePropagation(theta, 100).calibrate(COUNT, epsilon)
    assert found.scale == pytest.approx(scale, rel=1.5e-4)
    assert found.lower_bound <= found.scale <= found.lower_bound * (1 + 1e-5)


def test_composition_of_the_running_example() -> None:
    """K = 1, 2, 5, 10 releases at scale 3.3364: not K times the leakage of one."""
    bound = pf.LeakagePropagation(THETA1, 100)
    found = [bound.leakage(k / 3.3364) for k in (1, 2, 5, 10)]
    assert found == pytest.approx([1.000, 2.086, 4.377, 6.553], abs=5e-4)


def test_composition_through_the_ledger() -> None:
    one = pf.LeakagePropagation(THETA1, 100).calibrate(COUNT, 1.0)
    ledger = pf.Ledger(pf.LeakagePropagation(THETA1, 100), budget=7.0)
    spent = [ledger.spend(one).spent for _ in range(10)]
    assert [spent[k - 1] for k in (1, 2, 5, 10)] == pytest.approx([1.000, 2.086, 4.377, 6.553], abs=5e-4)


def test_symmetric_chain_of_the_simulations() -> None:
    """Section 5 (simulations), p0 = p1 = .6, T = 100, ε = 1: MQMExact 3.572, GK16 3.887, propagation 1.467."""
    chain = pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    assert pf.LeakagePropagation(chain, 100).calibrate(COUNT, 1.0).scale == pytest.approx(1.467, abs=5e-4)


@pytest.mark.parametrize(
    ("epsilon", "scale", "one_number"), [(0.2, 446.5, 478.3), (1.0, 87.7, 92.35), (5.0, 13.5, 15.10)]
)
def test_sticky_four_state_histogram(epsilon: float, scale: float, one_number: float) -> None:
    """A sticky stationary chain, long, histogram (L = 2): MQMExact needs 2600.64 / 351.178 / 33.158."""
    chain = pf.MarkovChain(STICKY)
    found = pf.LeakagePropagation(chain, 1_000_000).calibrate(pf.Histogram(relative=False), epsilon)
    assert found.scale == pytest.approx(scale, rel=5e-4)
    assert found.lower_bound <= found.scale <= found.lower_bound * (1 + 1e-5)
    reversed_ = chain.time_reversal.transition_matrix
    at_one_number = largest_only(np.array(STICKY), 2 / one_number) + largest_only(reversed_, 2 / one_number)
    assert at_one_number - 2 / one_number == pytest.approx(epsilon, rel=2e-3)
    assert found.scale < one_number


def largest_only(kernel: np.ndarray, loss: float) -> float:
    """Fixed point of propagation with one number α for all pairs: a sort and prefix sums."""
    alpha = loss
    for _ in range(3000):
        worst = 0.0
        for x, x_ in permutations(range(len(kernel)), 2):
            order = np.argsort(-kernel[x] / kernel[x_])
            p, q = np.cumsum(kernel[x][order]), np.cumsum(kernel[x_][order])
            worst = max(worst, float(np.max(np.log1p(math.expm1(alpha) * p) - np.log1p(math.expm1(alpha) * q))))
        if abs(loss + worst - alpha) < 1e-12:
            break
        alpha = loss + worst
    return alpha


def test_states_that_cannot_occur() -> None:
    """An entry for a state of probability 0 is an absent constraint: as a zero it would give 2.775 or 2.580."""
    chain = pf.MarkovChain([[0.95, 0.05, 0], [0.05, 0.95, 0], [0.5, 0.5, 0]], [0.5, 0.5, 0])
    assert pf.LeakagePropagation(chain, 7).leakage(0.5) == pytest.approx(2.8427, abs=5e-5)


def test_negative_correlation_of_a_single_count() -> None:
    """P(0,0) < P(1,0): the bound also covers alternating queries, and a count alone would need a scale of 0.690."""
    chain = pf.MarkovChain([[0.2, 0.8], [0.7, 0.3]])
    assert pf.LeakagePropagation(chain, 100).calibrate(COUNT, 1.0).scale == pytest.approx(2.940, abs=1e-3)
