"""Tail and mean of the integer noise, against direct summation; and max-divergence."""

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.divergence import max_log_ratio
from pufferfish._core.numbers.laplace import accuracy, mean_modulus
from pufferfish.errors import ModelError, ParameterError

SCALES = [0.05, 0.3, 1.0, 2.7, 10.0, 85.0]


def masses(scale: float) -> np.ndarray:
    """P(Z = 0), P(Z = ±1), … until nothing is left."""
    z = np.arange(int(60 * scale) + 60)
    weights = np.exp(-z / scale)
    return weights * np.where(z == 0, 1, 2) / (2 * weights.sum() - 1)


@pytest.mark.parametrize("scale", SCALES)
def test_mean_modulus(scale: float) -> None:
    mass = masses(scale)
    assert mass.sum() == pytest.approx(1)
    assert mean_modulus(scale) == pytest.approx(float(mass @ np.arange(mass.size)), rel=1e-9)


@pytest.mark.parametrize("together", [1, 3, 50])
@pytest.mark.parametrize("alpha", [0.9, 0.5, 0.05, 1e-6])
@pytest.mark.parametrize("scale", SCALES)
def test_accuracy_is_the_least_whole_bound(scale: float, alpha: float, together: int) -> None:
    mass = masses(scale)
    t = accuracy(scale, alpha, together=together)

    def missed(bound: int) -> float:
        one = math.fsum(mass[bound + 1 :])
        return -math.expm1(together * math.log1p(-one)) if one < 1 else 1.0

    assert missed(t) <= alpha * (1 + 1e-9)
    assert t == 0 or missed(t - 1) > alpha * (1 - 1e-9)


def test_almost_no_noise() -> None:
    assert mean_modulus(1e-9) == 0.0
    assert accuracy(1e-9, 0.05) == 0


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, math.nan])
def test_alpha_is_a_probability(alpha: float) -> None:
    with pytest.raises(ParameterError, match=r"alpha is .*, expected a probability strictly between 0 and 1"):
        accuracy(1.0, alpha)


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        ([0.5, 0.5], [0.5, 0.5], 0.0),
        ([0.9, 0.05, 0.05], [0.01, 0.95, 0.04], math.log(90)),
        ([0.01, 0.95, 0.04], [0.9, 0.05, 0.05], math.log(19)),
        ([0, 1], [0.5, 0.5], math.log(2)),
        ([0.5, 0.5], [0, 1], math.inf),
        ([1 - 1e-300, 1e-300], [1, 0], math.inf),
        ([1], [1], 0.0),
    ],
)
def test_max_divergence(p: list[float], q: list[float], expected: float) -> None:
    found = pf.max_divergence(p, q)
    assert found == pytest.approx(expected, abs=1e-13)
    assert found >= expected


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        ([0.5, 0.5], [1.0], "p has 2 points and q has 1"),
        ([0.5, 0.6], [0.5, 0.5], r"p sums to 1\.1, expected 1"),
        ([0.5, 0.5], [1.5, -0.5], r"q\[1\] is -0\.5"),
        ([math.nan, 1], [0.5, 0.5], r"p\[0\] is nan"),
        ([], [], r"p has shape \(0,\)"),
        ([[1.0]], [1.0], r"p has shape \(1, 1\)"),
    ],
)
def test_max_divergence_refuses(p: list[float], q: list[float], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        pf.max_divergence(p, q)


def test_max_log_ratio_skips_zero_over_zero() -> None:
    none = -np.inf
    rows = np.array([[0.0, none, -1.0], [-2.0, none, none], [none, none, none]])
    assert max_log_ratio(rows).tolist() == [[0, np.inf, np.inf], [-2, 0, np.inf], [none, none, none]]


def test_accuracy_is_never_too_small_at_any_scale() -> None:
    """Against 350 digits; the search that the closed form replaced did not end at scales of 1e22."""
    with localcontext(Context(prec=350, Emin=-(10**9), Emax=10**9, traps=[])):
        for b in (1e-3, 0.3, 7.5, 1e6, 2.0**33 * 0.99, 2.0**33, 1e12, 1e15, 1e22, 1e100, 1e300):
            scale = Decimal(b)
            for alpha in (5e-324, 1e-300, 1e-9, 0.05, 0.5, 1 - 1e-12):
                for together in (1, 1000):
                    t = accuracy(b, alpha, together=together)
                    each = 1 - ((1 - Decimal(alpha)).ln() / together).exp()
                    over = 2 / (1 + (-1 / scale).exp()) / each
                    assert over * (-(t + 1) / scale).exp() <= 1 + Decimal("1e-12"), (b, alpha, together)
                    less = t - 2 - int(1e-13 * (t + b)) if b >= 2.0**33 else t - 1
                    assert less < 0 or over * (-(less + 1) / scale).exp() > 1 - Decimal("1e-9"), (b, alpha, together)
    assert accuracy(1e-320, 1e-300) == 0


def test_a_scale_that_is_none_is_refused() -> None:
    for b in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ParameterError, match="expected a positive finite number"):
            accuracy(b, 0.05)


def test_a_level_that_is_hardly_a_double_is_rounded_up() -> None:
    assert accuracy(1000.0, 1.5e-323, together=2) >= 744035
    assert accuracy(84.68294962538671, 1.5e-323, together=5) >= 63085
