"""Inverting a function that falls: the least noise at which a leakage is allowed, and the most at which it is not."""

import math
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Bracket", "bracket"]

_MOST_EVALUATIONS = 60

_FARTHEST = 64.0
"""No step goes farther than by this factor."""

_FAR_OFF = 1e40
"""A value this far from its goal asks for the farthest step, whatever the slope; powers of more would overflow."""


class Bracket(NamedTuple):
    """Two noises between which a level is crossed: at ``too_small`` it is exceeded, at ``enough`` it is kept.

    0 and ``inf`` stand for none found.
    """

    too_small: float
    enough: float


def bracket(
    falling: Callable[[float], float], level: float, start: float, *, tolerance: float, from_above: bool
) -> Bracket:
    """Find where a positive falling function crosses a level, by secants in logarithms inside a shrinking bracket.

    Parameters
    ----------
    falling : callable
        The function; it may be infinite.
    level : float
        The level, positive.
    start : float
        Where to begin, positive.
    tolerance : float
        How near the function's value must come to the level.
    from_above : bool
        Which end must come so near: ``too_small`` (values above the level), or ``enough``.
    """
    low, high = level * (1 - tolerance), level * (1 + tolerance)
    goal = level * (1 + tolerance / 2) if from_above else level * (1 - tolerance / 2)
    too_small, enough = 0.0, math.inf
    at, last = start, None
    for _ in range(_MOST_EVALUATIONS):
        value = falling(at)
        if value <= level:
            enough = min(enough, at)
            if not from_above and (value >= low or value == 0):
                break
        else:
            too_small = max(too_small, at)
            if from_above and value <= high:
                break
        slope = 1.0
        if last is not None and last[0] != at and 0 < value < math.inf and 0 < last[1] < math.inf:
            slope = math.log(last[1] / value) / math.log(at / last[0])
        last = at, value
        if 0 < value < math.inf:
            off = min(max(value / goal, 1 / _FAR_OFF), _FAR_OFF)
            at *= min(max(off ** (1 / min(max(slope, 0.2), 20.0)), 1 / _FARTHEST), _FARTHEST)
        if not too_small < at < enough:
            at = _between(too_small, enough)
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
