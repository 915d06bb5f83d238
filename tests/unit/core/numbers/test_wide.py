"""Numbers with a wide exponent, against exact fractions far outside the range of doubles."""

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from pufferfish._core.numbers.wide import Wide

TOLERANCE = Fraction(1, 2**45)


def exact(numbers: Wide) -> list[Fraction]:
    whole, bits = numbers.whole()
    return [Fraction(v) * Fraction(2) ** -bits for v in whole]


def close(found: Wide, expected: list[Fraction]) -> bool:
    return all(
        (a == 0) == (b == 0) and abs(a - b) <= b * TOLERANCE for a, b in zip(exact(found), expected, strict=True)
    )


def random(seed: int, size: int, reach: float) -> Wide:
    rng = np.random.default_rng(seed)
    numbers = Wide.exp(rng.uniform(-reach, reach, size))
    some = rng.random(size) < 0.8
    return Wide(np.where(some, numbers.values, 0.0), np.where(some, numbers.levels, -(2**40)))


SEEDS = [(seed, reach) for seed in range(6) for reach in (5.0, 300.0, 3000.0)]


@pytest.mark.parametrize(("seed", "reach"), SEEDS)
def test_sums_and_products(seed: int, reach: float) -> None:
    a, b = random(seed, 24, reach), random(seed + 100, 24, reach)
    x, y = exact(a), exact(b)
    assert close(a + b, [p + q for p, q in zip(x, y, strict=True)])
    assert close(a * b, [p * q for p, q in zip(x, y, strict=True)])
    total = a.sum()
    assert close(Wide(total.values[None], total.levels[None]), [sum(x, Fraction(0))])


@pytest.mark.parametrize(("seed", "reach"), SEEDS)
def test_convolutions(seed: int, reach: float) -> None:
    a, b = random(seed, 23, reach), random(seed + 100, 9, reach)
    x, y = exact(a), exact(b)
    expected = [sum((x[i] * y[n - i] for i in range(23) if 0 <= n - i < 9), Fraction(0)) for n in range(31)]
    assert close(a.convolved(b), expected)
    assert close(b.convolved(a), expected)


@pytest.mark.parametrize(("seed", "reach"), SEEDS[:6])
def test_accumulations(seed: int, reach: float) -> None:
    a = random(seed, 30, reach)
    sums, back = list(accumulate(exact(a))), list(accumulate(exact(a)[::-1]))
    assert close(a.accumulated(), sums)
    assert close(a.accumulated(from_above=True), back[::-1])


@pytest.mark.parametrize(("before", "after"), [(0, 0), (3, 0), (0, 4), (2, 1)])
@pytest.mark.parametrize("decay", [0.0, 1e-9, 0.5, 30.0, 700.0, 5000.0])
@pytest.mark.parametrize(("seed", "reach"), SEEDS[:6])
def test_smoothing(seed: int, reach: float, decay: float, before: int, after: int, slow: bool) -> None:
    count = 30 if slow or decay < 100 else 8  # its powers are fractions of a hundred thousand digits
    a = random(seed, count, reach)
    ratio = Wide.exp(-decay)
    (r,) = exact(Wide(ratio.values[None], ratio.levels[None]))
    x, size = exact(a), before + count + after
    sums = [sum((x[n] * r ** abs(w - before - n) for n in range(count)), Fraction(0)) for w in range(size)]
    assert close(a.smoothed(ratio, before, size), sums)


@pytest.mark.parametrize("entry", [0.25, 1e-150, 1e-300, 5e-324])
@pytest.mark.parametrize(("seed", "reach"), SEEDS[:6])
def test_steps_of_a_chain(seed: int, reach: float, entry: float) -> None:
    matrix = np.array([[0.5, entry, 0.0], [0.0, 0.0, 1.0], [entry, 0.125, 0.5]])
    rows = random(seed, 24, reach)
    at = Wide(rows.values.reshape(3, 8), rows.levels.reshape(3, 8))
    found = at.pushed(Wide.of(matrix), np.array([0, 2, 1]))
    x = [exact(at[i]) for i in range(3)]
    for y, shift in enumerate((0, 2, 1)):
        sums = [sum((x[i][s] * Fraction(matrix[i, y]) for i in range(3)), Fraction(0)) for s in range(8)]
        assert close(found[y], [Fraction(0)] * shift + sums + [Fraction(0)] * (2 - shift))


def test_ratios_of_whole_numbers() -> None:
    logs = Wide.ratio([10**400, 1, 0, 10**700], 10**500).log()
    assert logs == pytest.approx([-100 * math.log(10), -500 * math.log(10), -math.inf, 200 * math.log(10)], rel=1e-15)
    third = Wide.ratio([1], 3)
    assert abs(exact(third)[0] - Fraction(1, 3)) <= Fraction(1, 3) * Fraction(1, 2**53)
