"""Numbers of the paper (Song, Wang, Chaudhuri 2017), and numbers beyond it that were computed once by brute force."""

import math

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.quilts.influence import ChainInfluence
from single_quilts import Quilts

P1, P2 = [[0.9, 0.1], [0.4, 0.6]], [[0.8, 0.2], [0.3, 0.7]]
THETA1 = pf.MarkovChain(P1, [1, 0])
THETA2 = pf.MarkovChain(P2, [0.9, 0.1])
COUNT = pf.Count(1)


def test_max_divergence_of_section_2() -> None:
    """Section 2.3 (close adversaries), the example after the definition of max-divergence."""
    assert pf.max_divergence([1 / 3, 1 / 2, 1 / 6], [1 / 2, 1 / 4, 1 / 4]) == pytest.approx(math.log(2), abs=1e-12)


@pytest.mark.parametrize(
    ("ends", "influence", "score"),
    [
        ((), 0.0, 0.3),
        ((0,), math.log(6), 0.2437),
        ((2,), math.log(6), 0.2437),
        ((0, 2), math.log(36), 0.1558),
    ],
)
def test_quilts_of_the_middle_of_three(ends: tuple[int, ...], influence: float, score: float) -> None:
    """Section 4.3, the example after the definition of the active quilt: T = 3, X_2, ε = 10."""
    quilts = Quilts(pf.MarkovChain(P1, [0.8, 0.2]), 3)
    assert quilts.influence(1, ends) == pytest.approx(influence, abs=1e-12)
    assert quilts.score(1, ends, 10.0) == pytest.approx(score, abs=5e-5)


@pytest.mark.parametrize(
    ("theta", "support", "scale", "node", "quilt"),
    [
        (THETA1, "paper", 13.0219, 7, (2, 12)),
        (THETA1, "definition", 12.9341, 7, (0, 12)),
        (THETA2, "paper", 10.6402, 5, (9,)),
        (THETA2, "definition", 10.6402, 5, (9,)),
        ([THETA1, THETA2], "paper", 13.0219, 7, (2, 12)),
    ],
)
def test_running_example_of_mqm_exact(
    theta: pf.MarkovChain | list[pf.MarkovChain], support: str, scale: float, node: int, quilt: tuple[int, ...]
) -> None:
    """Section 4.4, the running example under Algorithm 3: T = 100, ε = 1; X_8 is node 7.

    The definition's value at θ1 (12.9341, quilt {X_1, X_13}) is not printed: by brute force over all quilts.
    """
    calibration = pf.MQMExact(theta, 100, support=support).calibrate(COUNT, 1.0)
    assert calibration.scale == pytest.approx(scale, abs=5e-5)
    assert calibration.noise_multiplier == calibration.scale
    assert calibration.witness.node == node
    assert calibration.witness.active_quilt == quilt
    assert calibration.witness.theta == 0
    assert calibration.witness.length == 100


@pytest.mark.parametrize(
    ("theta", "epsilon", "scale"),
    [(THETA1, 0.2, 93.7836), (THETA1, 5.0, 0.798608), (THETA2, 0.2, 83.0996), (THETA2, 5.0, 0.533727)],
)
def test_running_example_at_other_epsilons(theta: pf.MarkovChain, epsilon: float, scale: float) -> None:
    """The running example of Section 4.4 by the definition of max-influence; brute force over all quilts."""
    assert pf.MQMExact(theta, 100).calibrate(COUNT, epsilon).scale == pytest.approx(scale, rel=1e-5)


def test_pi_min_and_eigengap_of_the_running_example() -> None:
    """Section 4.4, after the definition of g: π_min .2 and .4, eigengap .75 of P P*; 1.0 by Appendix C.2."""
    for chain, pi_min in ((THETA1, 0.2), (THETA2, 0.4)):
        assert chain.pi_min == pytest.approx(pi_min, abs=1e-12)
        assert chain.eigengap == pytest.approx(0.75, abs=1e-10)
        assert chain.reversible_eigengap == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize(("eigengap", "scale"), [(0.75, 31.7098), (1.0, 23.5060)])
def test_running_example_of_mqm_approx(eigengap: float, scale: float) -> None:
    """Algorithm 4 with π_min = .2, T = 100, ε = 1 and both readings of g; brute force over the closed form."""
    bound = pf.MQMApprox(pi_min=0.2, eigengap=eigengap, length=100)
    assert bound.calibrate(COUNT, 1.0).scale == pytest.approx(scale, abs=5e-5)


def test_mqm_approx_takes_the_larger_gap_of_reversible_chains() -> None:
    """Appendix C.2: both chains of the running example are reversible, so g = 1 and π_min = .2."""
    bound = pf.MQMApprox([THETA1, THETA2], 100)
    assert (bound.pi_min, bound.eigengap) == (pytest.approx(0.2), pytest.approx(1.0))
    assert bound.calibrate(COUNT, 1.0).scale == pytest.approx(23.5060, abs=5e-5)


def test_symmetric_chain_of_the_simulations() -> None:
    """Section 5 (simulations), p0 = p1 = .6, T = 100, ε = 1; brute force: 3.572."""
    chain = pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    assert pf.MQMExact(chain, 100).calibrate(COUNT, 1.0).scale == pytest.approx(3.572, abs=5e-4)


@pytest.mark.parametrize(("epsilon", "scale"), [(0.2, 2600.64), (1.0, 351.178), (5.0, 33.158)])
def test_sticky_four_state_histogram(epsilon: float, scale: float) -> None:
    """A sticky stationary chain of four states, long, histogram (L = 2): by brute force."""
    chain = pf.MarkovChain(
        [[0.92, 0.03, 0.03, 0.02], [0.02, 0.93, 0.03, 0.02], [0.03, 0.03, 0.90, 0.04], [0.005, 0.01, 0.005, 0.98]]
    )
    calibration = pf.MQMExact(chain, 1_000_000).calibrate(pf.Histogram(relative=False), epsilon)
    assert calibration.scale == pytest.approx(scale, rel=5e-6 if epsilon < 5 else 2e-5)
    assert calibration.noise_multiplier == pytest.approx(calibration.scale / 2)


@pytest.mark.parametrize(
    ("initial", "scale"), [([1, 0], 0.798608), ([1 - 1e-9, 1e-9], 0.9351), ("any", 0.9351)], ids=str
)
def test_every_initial_law_costs_more_than_its_corners(initial: list[float] | str, scale: float) -> None:
    """Appendix C.4 at T = 100, ε = 5: the supremum over initial laws is approached near a corner, not at it."""
    chain = pf.MarkovChain(P1, initial)
    assert pf.MQMExact(chain, 100).calibrate(COUNT, 5.0).scale == pytest.approx(scale, abs=5e-5)


def test_group_dp_of_the_paper() -> None:
    """Section 3 (flu clique of 4: Lap(4/ε)) and Section 5 (histogram, L = 2, longest chain)."""
    chain = pf.MarkovChain(P1)
    assert pf.GroupDP(chain, 4).calibrate(COUNT, 1.0).scale == pytest.approx(4.0)
    shares = pf.GroupDP(chain, 100).calibrate(pf.Histogram(), 0.2)
    assert shares.scale == pytest.approx(2 / 0.2)
    several = pf.GroupDP(chain, [30, 70, 50]).calibrate(pf.Histogram(), 0.2)
    assert several.scale == pytest.approx(2 * 70 / (150 * 0.2))


def test_a_repeated_unit_eigenvalue_is_no_gap() -> None:
    """Definition of g in Section 4.4: P P* here has the eigenvalue 1 twice, which |λ| < 1 would skip in silence."""
    chain = pf.MarkovChain([[0, 1, 0], [0, 0, 1], [0.01, 0.99, 0]])
    assert chain.is_irreducible
    assert chain.period == 1
    assert chain.eigengap == 0.0
    with pytest.raises(pf.PufferfishError, match=r"MQMApprox does not apply: theta\[0\] has eigengap 0"):
        pf.MQMApprox(chain, 100)


def test_supports_are_structural() -> None:
    """P²(0, 3) = 1e-340 and P²(1, 3) = 1e-360 are no doubles: the log ratio is log 1e20 = 46.05 all the same."""
    p = np.array([[0.5, 0.5, 1e-170, 0], [0.5, 0.5, 1e-190, 0], [0.5, 0.5, 0, 1e-170], [0.5, 0.5, 0, 0]])
    assert (p @ p)[0, 3] == (p @ p)[1, 3] == 0.0
    right = ChainInfluence(p, "any").right(2)
    assert right[0, 1] == pytest.approx(20 * math.log(10), abs=1e-9)
    assert right[0, 1] >= 20 * math.log(10) - 1e-12
    assert right[1, 0] == pytest.approx(0.0, abs=1e-9)
