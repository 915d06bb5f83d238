"""Rounding goes towards privacy: held against exact fractions."""

import math
import random
from fractions import Fraction

from pufferfish._core.numbers.rounding import down, float_up, log_up, or_infinite, up


def numbers() -> list[Fraction]:
    rng = random.Random(1)
    some = [Fraction(rng.randrange(1, 10**9), rng.randrange(1, 10 ** rng.randint(1, 30))) for _ in range(300)]
    return [*some, Fraction(1, 3), Fraction(2, 3), Fraction(1, 10**400), Fraction(2**53 + 1), 1 + Fraction(1, 10**40)]


def test_the_least_double_that_is_enough() -> None:
    for exact in numbers():
        found = float_up(exact)
        assert Fraction(math.nextafter(found, -math.inf)) < exact <= Fraction(found)
    assert float_up(Fraction(10**400)) == math.inf


def test_logarithms_are_rounded_up_and_hardly() -> None:
    for exact in numbers():
        if not 1e-300 < exact < 1e300:
            continue
        found = log_up(exact)
        nearest = math.log(exact) if not Fraction(1, 2) <= exact <= 2 else math.log1p(float(exact - 1))
        assert nearest < found or exact == 1
        assert found <= nearest + 1e-12 * (1 + abs(nearest))


def test_up_and_down() -> None:
    for x in (1e-310, 0.1, 1.0, 3.7e200):
        assert down(-x) < -x < up(-x)
        assert down(x) < x < up(x)
    for same in (0.0, math.inf, -math.inf):
        assert up(same) == down(same) == same
    assert or_infinite(math.nan) == math.inf
