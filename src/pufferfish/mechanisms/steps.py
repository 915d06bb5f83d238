"""From an accuracy to ε: whole units of error, and the least ε of four digits with which it is reached."""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import Any, TypeVar

from pufferfish._base.checked import real_number
from pufferfish.errors import ParameterError

__all__ = ["LARGEST_ANSWER", "LEAST_EPSILON", "MOST_EPSILON", "accuracy_reached", "four_digits_up", "steps_within"]

LEAST_EPSILON = 1e-5
"""Below it the rounding errors of a proof, about 1e-13 at each record that a chain remembers, decide the noise."""

MOST_EPSILON = 10.0
"""Above it nobody asks who means to promise something: there the odds of two values change by a factor of 22,026."""

LARGEST_ANSWER = 2**60
"""Largest answer, in units, that a query may have on any data: sums, and the noise on them, are 64-bit integers."""

_MOST_NUDGES = 30

_Made = TypeVar("_Made")


def accuracy_reached(
    calibrated: Callable[[float], _Made], reaches: Callable[[_Made], bool], leakage: float
) -> _Made | None:
    """Return what is calibrated at the least ε, of four digits from a leakage upwards, that is accurate enough."""
    for step in range(_MOST_NUDGES):
        epsilon = four_digits_up(leakage, step)
        if not LEAST_EPSILON <= epsilon < math.inf:
            raise ParameterError(
                f"the accuracy is one which an epsilon below {LEAST_EPSILON:g} reaches: ask for a smaller one"
            )
        found = calibrated(epsilon)
        if reaches(found):
            return found
    return None


def steps_within(accuracy: Any, unit: Fraction) -> int:
    """Return how many whole units an error may have.

    Raises
    ------
    ParameterError
        If the accuracy is no positive finite number, or more than any noise errs.
    """
    value = real_number(accuracy)
    if value is None or not 0 < value < math.inf:
        raise ParameterError(f"accuracy is {accuracy!r}, expected a positive number, in the units of the query")
    steps = math.floor(Fraction(repr(value)) / unit)
    if steps > LARGEST_ANSWER:
        raise ParameterError(f"accuracy is {accuracy!r}, and answers are at most {float(LARGEST_ANSWER * unit):.3g}")
    return steps


def four_digits_up(value: float, more: int = 0) -> float:
    """Return a positive number rounded up to four digits, or so many steps of the last digit above that.

    Examples
    --------
    >>> four_digits_up(0.123412), four_digits_up(0.123412, 1), four_digits_up(2.0)
    (0.1235, 0.1236, 2.0)
    """
    exact = Decimal(repr(value))
    last = Decimal(1).scaleb(exact.adjusted() - 3)
    return float((exact / last).to_integral_value(ROUND_CEILING) * last + more * last)
