"""Probabilities as exact fractions: floats are taken as the decimals they print as."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np

from pufferfish.errors import ModelError

__all__ = ["exact_law", "exact_number"]

TOLERANCE = Fraction(1, 10**9)
_HUGE = Fraction(10**300)  # what a message shows of a number that no double can hold


def exact_number(value: Any) -> Fraction | None:
    """Return a finite number exactly, a float as the shortest decimal that prints as it; None for anything else.

    Examples
    --------
    >>> exact_number(0.1) + exact_number(0.2) == exact_number(0.3)
    True
    """
    if isinstance(value, bool | np.bool_ | np.timedelta64):  # a slip, though Python takes it for 0 or 1
        return None
    try:
        if isinstance(value, Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, Decimal):
            return Fraction(value)
        if isinstance(value, Real):
            return Fraction(repr(float(value)))
    except (ValueError, OverflowError):
        pass
    return None


def exact_law(probabilities: Sequence[Any], name: str) -> tuple[Fraction, ...]:
    """Return probabilities as exact fractions that sum to 1, divided by their sum.

    Raises
    ------
    ModelError
        If one is no probability, or they do not sum to 1 within 1e-9.
    """
    law: list[Fraction] = []
    for i, value in enumerate(probabilities):
        number = exact_number(value)
        if number is None or number < 0:
            raise ModelError(f"{name}[{i}] is {value!r}, expected a probability between 0 and 1")
        law.append(number)
    total = sum(law, Fraction(0))
    if abs(total - 1) > TOLERANCE:
        shown = float(min(total, _HUGE))
        raise ModelError(f"{name} sum to {shown:.12g}, expected 1 (tolerance 1e-9): divide counts by their sum")
    return tuple(p / total for p in law)
