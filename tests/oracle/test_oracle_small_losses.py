"""Very small losses: what is scaled down from larger ones is no less than the truth, and hardly more."""

from fractions import Fraction

import numpy as np
import pytest

import pufferfish as pf

SMALL = [1e-7, 1e-8, 1e-9]


def sticky(k: int, stay: float, seed: int) -> np.ndarray:
    matrix = stay * np.eye(k) + (1 - stay) * np.random.default_rng(seed).dirichlet(np.ones(k), size=k)
    return matrix / matrix.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(40))
def test_a_step_curves_no_more_than_the_proof_allows(seed: int) -> None:
    """f(c) = log p·e^{cw}/q·e^{cw} with 0 ≤ w ≤ m is at most c·(f(1) + m²/8), for exact laws and exact e^w."""
    rng = np.random.default_rng(seed)
    k, c = int(rng.integers(2, 6)), Fraction(1, 2 ** int(rng.integers(1, 20)))
    m = Fraction(1, int(rng.integers(1, 50)))
    p, q = ([Fraction(int(v)) for v in rng.integers(0, 30, size=k)] for _ in range(2))
    p[0], q[-1] = p[0] + 1, q[-1] + 1
    w = [m * Fraction(int(v), 16) for v in rng.integers(0, 17, size=k)]

    def f(scale: Fraction) -> Fraction:  # e^x and log(1 + x) by their series, far below the smallest difference
        def moved(law: list[Fraction]) -> Fraction:
            total = sum(law)
            return sum((mass / total * expm1(scale * x) for mass, x in zip(law, w, strict=True)), Fraction(0))

        return log1p((moved(p) - moved(q)) / (1 + moved(q)))

    assert f(c) <= c * (f(Fraction(1)) + m * m / 8) + Fraction(1, 10**30)


def expm1(x: Fraction) -> Fraction:
    term, total = Fraction(1), Fraction(0)
    for n in range(1, 30):
        term *= x / n
        total += term
    return total


def log1p(x: Fraction) -> Fraction:
    z = x / (2 + x)  # log(1 + x) = 2 artanh z
    power, total = z, Fraction(0)
    for n in range(1, 120, 2):
        total += 2 * power / n
        power = (power * z * z).limit_denominator(10**60)
    return total


@pytest.mark.parametrize(
    ("k", "stay", "start"),
    [(3, 0.9, "any"), (3, 0.9, "stationary"), (3, 0.999, "stationary"), (5, 0.99, "stationary")],
)
def test_noise_for_a_very_small_epsilon_is_in_proportion(k: int, stay: float, start: str) -> None:
    bound = pf.LeakagePropagation(pf.MarkovChain(sticky(k, stay, 5), start), 10**6)
    larger = bound.calibrate(pf.Histogram(), 1e-5).scale * 1e-5
    for epsilon in SMALL:
        found = bound.calibrate(pf.Histogram(), epsilon)
        assert found.scale * epsilon == pytest.approx(larger, rel=0.01)  # it was 27% more and up to no end
        assert isinstance(found.witness, pf.PropagationWitness)
        assert bound.verify(found)[0] <= epsilon


@pytest.mark.parametrize("epsilon", SMALL)
def test_two_states_leak_no_more_than_is_said(epsilon: float) -> None:
    """For all losses equal and small the true leakage is their sum over |λ|^distance, to first order in ε."""
    matrix, length = np.array([[0.9, 0.1], [0.2, 0.8]]), 41
    bound = pf.LeakagePropagation(pf.MarkovChain(matrix), length)
    loss, rate = epsilon / 6, Fraction(7, 10)
    truth = float(sum(rate ** abs(i - 20) for i in range(length))) * loss
    assert truth * (1 - 1e-6) <= bound.leakage(loss) <= truth * (1 + 1e-5)
