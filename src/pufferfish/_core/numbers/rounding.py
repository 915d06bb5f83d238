r"""Rigorous rounding: how far a computed number can be from the true one.

A sum of n non-negative products carries a relative error of at most :math:`\gamma_n = nu/(1-nu)`, in any order, fused
or not (Higham, *Accuracy and Stability of Numerical Algorithms*, Lemma 3.1), but near the underflow threshold: entries
below :data:`TINY` are never used, but computed again in logarithms.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

# -- Inverting a function that falls ---------------------------------------------------------------------------------

_MOST_EVALUATIONS = 60

_FARTHEST = 64.0  # no step goes farther than by this factor
_WILD = 30.0  # a value so many times the level may lie beyond a place where bounds have no limit any more
_FAR_OFF = 1e40
"""A value this far from its goal asks for the farthest step, whatever the slope; powers of more would overflow."""


class Bracket(NamedTuple):
    """Noises between which a level is crossed: ``too_small`` exceeds it (0: none), ``enough`` keeps it (``inf``)."""

    too_small: float
    enough: float


def bracket(
    falling: Callable[[float], float], level: float, start: float, *, tolerance: float, from_above: bool
) -> Bracket:
    """Find where a positive falling function crosses a level, by secants in logarithms inside a shrinking bracket.

    The function may be infinite. Its value at one end comes within the relative ``tolerance`` of the level: at
    ``too_small`` (values above the level) if ``from_above``, else at ``enough``.
    """
    low, high = level * (1 - tolerance), level * (1 + tolerance)
    goal = level * (1 + tolerance / 2) if from_above else level * (1 - tolerance / 2)
    too_small, enough = 0.0, math.inf
    point, last = start, None
    for _ in range(_MOST_EVALUATIONS):
        value = falling(point)
        if value <= level:
            enough = min(enough, point)
            if not from_above and (value >= low or value == 0):
                break
        else:
            too_small = max(too_small, point)
            if from_above and value <= high:
                break
        if value > _WILD * level and enough < math.inf:  # from beyond a steep place no slope leads back
            point = _between(too_small, enough)
        else:
            slope = 1.0
            if last is not None and last[0] != point and 0 < value < math.inf and 0 < last[1] < math.inf:
                slope = math.log(last[1] / value) / math.log(point / last[0])
            last = point, value
            if 0 < value < math.inf:
                off = min(max(value / goal, 1 / _FAR_OFF), _FAR_OFF)
                point *= min(max(off ** (1 / min(max(slope, 0.2), 20.0)), 1 / _FARTHEST), _FARTHEST)
        if not too_small < point < enough:
            point = _between(too_small, enough)
        if enough < math.inf and enough - too_small <= 0.01 * tolerance * enough:
            break
    return Bracket(too_small, enough)


def _between(too_small: float, enough: float) -> float:
    if enough == math.inf:
        return 4 * too_small
    if not too_small > 0:
        return enough / 4
    product = too_small * enough
    return math.sqrt(product) if 0 < product < math.inf else math.sqrt(too_small) * math.sqrt(enough)


def least_whole(fits: Callable[[int], bool], low: int, high: int) -> int:
    """Return the least whole number above ``low`` from which on something fits, as it does at ``high``."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


UNIT = 2.0**-52
"""Twice the unit roundoff of double precision: every error bound here is stated with this slack of two."""

TINY = 1e-270  # below this, sums of products may have lost relative accuracy to underflow

SMALLEST = 1e-290  # masses below this are taken as this much where more is safer, and as 0 where less is


def up(x: float, ulps: int = 4) -> float:
    """Return ``x`` moved towards +∞ by a few units in the last place (infinities stay, and an exact 0)."""
    return x + ulps * math.ulp(x) if x and math.isfinite(x) else x


def down(x: float, ulps: int = 4) -> float:
    """Return ``x`` moved towards −∞ by a few units in the last place (infinities stay, and an exact 0)."""
    return x - ulps * math.ulp(x) if x and math.isfinite(x) else x


def or_infinite(bound: float) -> float:
    """Return an upper bound, and ∞ where none was computed (NaN): comparisons would pass it over without a word."""
    return math.inf if math.isnan(bound) else bound


def float_up(exact: Fraction | int) -> float:
    """Return the least double that is at least an exact number; ``inf`` where there is none.

    Examples
    --------
    >>> float_up(sum([Fraction("0.1")] * 10)), float_up(Fraction(1, 3)) > 1 / 3
    (1.0, True)
    """
    double = nearest(exact)
    return double if double == math.inf or Fraction(double) >= exact else math.nextafter(double, math.inf)


def nearest(exact: Fraction | int) -> float:
    """Return the double next to an exact number that is 0 or more: rounded once, and so never past another double.

    Examples
    --------
    >>> nearest(3 * Fraction(1, 5)), 3 * 0.2
    (0.6, 0.6000000000000001)
    """
    try:
        return float(exact)
    except OverflowError:
        return math.inf


def log_up(exact: Fraction) -> float:
    """Return the logarithm of a positive exact number, rounded up by a few ulps; accurate near 1 too, and 0 for 1.

    Examples
    --------
    >>> round(log_up(Fraction(90)), 6), log_up(Fraction(1)), 1 < log_up(1 + Fraction(1, 10**30)) * 1e30 < 1 + 1e-14
    (4.49981, 0.0, True)
    """
    if Fraction(1, 2) <= exact <= 2:
        return up(math.log1p(float(exact - 1)), 8)
    above, below = math.log(exact.numerator), math.log(exact.denominator)
    return above - below + 4 * UNIT * (above + below)
