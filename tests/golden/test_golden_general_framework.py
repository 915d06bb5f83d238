"""Numbers of the general framework: the paper's flu example (Section 3.1), and numbers beyond it by brute force."""

from fractions import Fraction

import pytest

import pufferfish as pf

FLU_LAW = [0.1, 0.15, 0.5, 0.15, 0.1]
FLU = pf.Cliques(FLU_LAW, states=["healthy", "flu"])
SICK = pf.Count("flu")

P1, P2 = [[0.9, 0.1], [0.4, 0.6]], [[0.8, 0.2], [0.3, 0.7]]
THETA1 = pf.MarkovChain(P1, [1, 0])
THETA2 = pf.MarkovChain(P2, [0.9, 0.1])
COUNT = pf.Count(1)


def test_conditional_tables_of_the_flu_example() -> None:
    """Section 3.1, the second table: P(N = j | X_i = 0) and P(N = j | X_i = 1)."""
    healthy, sick = (FLU.given_member(0, has_it) for has_it in (0, 1))
    assert healthy == tuple(Fraction(v) for v in ("0.2", "0.225", "0.5", "0.075", "0"))
    assert sick == tuple(Fraction(v) for v in ("0", "0.075", "0.5", "0.225", "0.2"))


def test_distance_of_the_flu_example() -> None:
    """Section 3.1: "the parameter W in Algorithm 1 is 2", and group privacy "would add Lap(4/ε)"."""
    assert pf.Wasserstein(FLU).distance(SICK) == 2
    for epsilon in (0.2, 1.0, 5.0):
        assert pf.Wasserstein(FLU).calibrate(SICK, epsilon).scale == pytest.approx(2 / epsilon, rel=1e-9)
        assert pf.GroupDP(FLU).calibrate(SICK, epsilon).scale == pytest.approx(4 / epsilon, rel=1e-9)
    witness = pf.Wasserstein(FLU).calibrate(SICK, 1.0).witness
    assert witness.distance == 2
    assert witness.secret_pair == ("healthy", "flu")


def test_the_same_distance_from_the_tables_themselves() -> None:
    """Section 3.1, the two laws of the table given to Definition 3.1 as they are printed."""
    numbers = [0, 1, 2, 3, 4]
    assert pf.wasserstein_inf(numbers, [0.2, 0.225, 0.5, 0.075, 0], numbers, [0, 0.075, 0.5, 0.225, 0.2]) == 2


@pytest.mark.parametrize(("epsilon", "scale"), [(0.2, 5.514536), (1.0, 1.154527), (5.0, 0.243596)])
def test_exact_laplace_of_the_flu_example(epsilon: float, scale: float) -> None:
    """Beyond the paper; MATH.md §4: bisection on the loss of the two laws, computed by another program."""
    found = pf.ExactLaplace(FLU).calibrate(SICK, epsilon)
    assert found.scale == pytest.approx(scale, abs=6e-7)
    assert pf.ExactLaplace(FLU).loss(SICK, scale) == pytest.approx(epsilon, rel=3e-6)


def test_the_flu_example_that_was_left_out() -> None:
    """Section 3.1 in the source, commented out: a law per conditional table, W = 2, group privacy 4.

    P(N = 0 | X_i = 0) = 1/2, P(N = j | X_i = 0) = 1/6 for j = 1, 2, 3, and P(N = j | X_i = 1) = 1/4 for j = 1, …, 4.
    """
    laws = {"healthy": {0: "1/2", 1: "1/6", 2: "1/6", 3: "1/6"}, "sick": dict.fromkeys(range(1, 5), "1/4")}
    exact = {secret: {n: Fraction(m) for n, m in law.items()} for secret, law in laws.items()}
    theta = pf.GivenLaws(exact, records=4, states=["healthy", "flu"], query=SICK)
    assert pf.Wasserstein(theta).distance(SICK) == 2
    assert pf.GroupDP(theta).calibrate(SICK, 1.0).scale == pytest.approx(4, rel=1e-9)


@pytest.mark.parametrize("theta", [THETA1, THETA2, [THETA1, THETA2]], ids=["theta1", "theta2", "both"])
def test_distance_of_the_running_example(theta: pf.MarkovChain | list[pf.MarkovChain]) -> None:
    """Section 4.4's running example, T = 100, the number of 1s: MQMExact needs 13.02 and 10.64 at ε = 1."""
    assert pf.Wasserstein(theta, 100).distance(COUNT) == 4
    assert pf.Wasserstein(theta, 100).calibrate(COUNT, 1.0).scale == pytest.approx(4, rel=1e-9)
    assert pf.Wasserstein(theta, 100).distance(pf.Histogram(relative=False)) == 8
    assert pf.Wasserstein(theta, 100).distance(pf.Frequency(1)) == 0.04


@pytest.mark.parametrize(
    ("theta", "epsilon", "scale"),
    [(THETA1, 0.2, 15.390), (THETA1, 1.0, 3.3364), (THETA1, 5.0, 0.5365), (THETA2, 1.0, 3.0243)],
)
def test_exact_laplace_of_the_running_example(theta: pf.MarkovChain, epsilon: float, scale: float) -> None:
    """T = 100: where P(0,0) ≥ P(1,0), leakage propagation is already the least noise, and both say the same."""
    exact = pf.ExactLaplace(theta, 100).calibrate(COUNT, epsilon)
    assert exact.scale == pytest.approx(scale, rel=1.5e-4)
    propagation = pf.LeakagePropagation(theta, 100).calibrate(COUNT, epsilon)
    assert exact.scale == pytest.approx(propagation.scale, rel=1e-5)


def test_symmetric_chain_of_the_simulations() -> None:
    """Section 5 (simulations), p0 = p1 = .6, T = 100, ε = 1: W = 2, least noise 1.467; MQMExact 3.572, GK16 3.887."""
    chain = pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    assert pf.Wasserstein(chain, 100).distance(COUNT) == 2
    assert pf.ExactLaplace(chain, 100).calibrate(COUNT, 1.0).scale == pytest.approx(1.467, abs=5e-4)


def test_negative_correlation_of_a_single_count() -> None:
    """P(0,0) < P(1,0): the count alone needs 0.690, the bound that covers alternating queries too 2.940."""
    chain = pf.MarkovChain([[0.2, 0.8], [0.7, 0.3]])
    assert pf.ExactLaplace(chain, 100).calibrate(COUNT, 1.0).scale == pytest.approx(0.690, abs=5e-4)
