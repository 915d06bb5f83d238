"""The loop of :mod:`pufferfish.mechanisms.one_query.two_state_cells` that bounds ratios of sums over a cell."""

import math
from typing import Any

import numpy as np

__all__ = ["clear"]

SHORTEST = 1e-6
"""An interval of h that is shorter is not cut any more."""

TRIED = 3.0
"""Initial log odds, either way, at which numbers are tried before their interval is cut."""


def clear(
    above: Any,
    below: Any,
    states: Any,
    base: Any,
    arrived: Any,
    arriving: Any,
    divided: Any,
    moves: Any,
    slope: float,
    level: float,
    own: bool,
    items: Any,
    left: Any,
    tops: Any,
) -> int:
    """Write what is above a level somewhere in a cell, for all that is known; return how much that is.

    Parameters
    ----------
    above : (m, 4, 2, r, n) ndarray
        For each of m ratios, of which the least decides: sums above the line at the corners, by first state, record,
        number.
    below : (m, 3, 2, r, n) ndarray
        Sums below the line at the centre, with their derivatives by x and ζ.
    states : (m,) ndarray of int
        State of the record above the line.
    base : (m, 4, r) ndarray
        What is added at each corner for each record.
    arrived : (4, 2, 2, r) ndarray
        Sums of the paths up to the record at the corners, by first state and state.
    arriving : (3, 2, 2, r) ndarray
        The same at the centre, with derivatives.
    divided : (4, r) ndarray
        Logarithms of what corners were divided by, less those of the centre.
    moves : (4, 2) ndarray
        From the centre to the corners: along x, along ζ.
    slope : float
        What is added to the derivatives of logarithms of ``below`` by ζ.
    level : float
        Bounds up to this are good.
    own : bool
        Whether the initial law matters; else the first of the first states stands for all.
    items : (k, 5) ndarray
        Place of a record, interval of h, first and last number: what is asked.
    left : (l, 5) ndarray, written
        Items that need smaller cells.
    tops : (l,) ndarray, written
        Their bounds.

    Returns
    -------
    int
        Number of items left; −1 if there is no room for them.
    """
    stack = np.empty((256, 4))
    ends, tried = np.empty(2), np.empty(3)
    separate, joint = np.empty((states.shape[0], 4, 2)), np.empty((states.shape[0], 4, 2))
    found = 0
    for k in range(items.shape[0]):
        r = int(items[k, 0])
        for i in range(4):
            stack[0, i] = items[k, 1 + i]
        depth = 1
        while depth > 0:
            depth -= 1
            first, last = stack[depth, 0], stack[depth, 1]
            low, high = int(stack[depth, 2]), int(stack[depth, 3])
            start, stop, top = _over(
                above, below, states, base, arrived, arriving, divided, moves, slope, level, own,
                r, first, last, low, high, ends, separate, joint,
            )  # fmt: skip
            if start > stop:
                continue
            middle = _between(first, last)
            stuck = not (last - first >= SHORTEST) or depth + 2 > stack.shape[0]
            tried[0], tried[1], tried[2] = middle, -TRIED, TRIED
            for j in range(3):
                h = tried[j]
                if not stuck and first < h < last:
                    a, b, _ = _over(
                        above, below, states, base, arrived, arriving, divided, moves, slope, level, own,
                        r, h, h, start, stop, ends, separate, joint,
                    )  # fmt: skip
                    stuck = a <= b
            if stuck:
                if found == left.shape[0]:
                    return -1
                left[found, 0], left[found, 1], left[found, 2] = r, first, last
                left[found, 3], left[found, 4] = start, stop
                tops[found] = top
                found += 1
            else:
                for j in range(2):
                    stack[depth, 0], stack[depth, 1] = (first, middle) if j else (middle, last)
                    stack[depth, 2], stack[depth, 3] = start, stop
                    depth += 1
    return found


def _over(
    above: Any, below: Any, states: Any, base: Any, arrived: Any, arriving: Any, divided: Any, moves: Any,
    slope: float, level: float, own: bool,
    r: int, first: float, last: float, low: int, high: int, ends: Any, separate: Any, joint: Any,
) -> tuple[int, int, float]:  # fmt: skip
    """Return the first and last number whose bound for an interval of h is above the level, and the largest bound."""
    ends[0], ends[1] = first, last
    n_ends = 1 if first == last else 2
    both = n_ends == 2 and first > -math.inf and last < math.inf
    middle = _between(first, last) if both else 0.0
    for m in range(states.shape[0]):
        s = states[m]
        for v in range(4):
            dx, dz = moves[v, 0], moves[v, 1]
            for e in range(n_ends):
                at = base[m, v, r]
                if own:
                    h = ends[e]
                    there = _mixed(arriving[0, 0, s, r], arriving[0, 1, s, r], h)
                    by_x = _mixed(arriving[1, 0, s, r], arriving[1, 1, s, r], h) / there
                    by_z = _mixed(arriving[2, 0, s, r], arriving[2, 1, s, r], h) / there
                    other = _log(_mixed(arrived[v, 0, 1 - s, r], arrived[v, 1, 1 - s, r], h))
                    at += other - _log(there) - by_x * dx - by_z * dz + divided[v, r]
                    if both:
                        there = _mixed(arriving[0, 0, s, r], arriving[0, 1, s, r], middle)
                        by_x = _mixed(arriving[1, 0, s, r], arriving[1, 1, s, r], middle) / there
                        by_z = _mixed(arriving[2, 0, s, r], arriving[2, 1, s, r], middle) / there
                        by_h = _share(middle) * arriving[0, 1, s, r] / there
                        grown = 2 * (_softplus(h) - _softplus(middle))
                        joint[m, v, e] = base[m, v, r] + other - _log(there) - by_x * dx - by_z * dz + divided[v, r]
                        joint[m, v, e] += grown - by_h * (h - middle)
                separate[m, v, e] = at
            # one end is the worst for the paths to the record, maybe the other for all paths
            if n_ends == 2 and not separate[m, v, 1] <= separate[m, v, 0]:
                separate[m, v, 0] = separate[m, v, 1] if separate[m, v, 0] == separate[m, v, 0] else math.nan
    start, stop, top = high + 1, low, -math.inf
    for w in range(low, high + 1):
        least = math.inf
        for m in range(states.shape[0]):
            one = _separately(above[m], below[m], separate[m], moves, slope, own, r, w, ends, n_ends)
            if both and one > level:
                one = min(one, _jointly(above[m], below[m], joint[m], moves, slope, r, w, ends, middle))
            least = min(least, one)
            if least <= level:
                break
        if not least <= level:
            start, stop, top = min(start, w), w, max(top, least)
    return start, stop, top


def _separately(
    above: Any, below: Any, extra: Any, moves: Any, slope: float, own: bool, r: int, w: int, ends: Any, n_ends: int
) -> float:
    """Bound a ratio, the initial odds at either end of their interval."""
    worst = -math.inf
    for e in range(n_ends):
        h = ends[e] if own else -math.inf
        value = _mixed(below[0, 0, r, w], below[0, 1, r, w], h)
        if value <= 0.0:
            for v in range(4):
                if _mixed(above[v, 0, r, w], above[v, 1, r, w], h) > 0.0:
                    return math.inf
            continue
        level = math.log(value)
        by_x = _mixed(below[1, 0, r, w], below[1, 1, r, w], h) / value
        by_z = _mixed(below[2, 0, r, w], below[2, 1, r, w], h) / value + slope
        for v in range(4):
            top = _log(_mixed(above[v, 0, r, w], above[v, 1, r, w], h))
            one = top - level - by_x * moves[v, 0] - by_z * moves[v, 1] + extra[v, 0]
            if math.isnan(one):
                return math.inf  # no number is no bound
            worst = max(worst, one)
    return worst


def _jointly(
    above: Any, below: Any, extra: Any, moves: Any, slope: float, r: int, w: int, ends: Any, middle: float
) -> float:
    """Bound a ratio, the logarithm of the initial odds being a coordinate."""
    value = _mixed(below[0, 0, r, w], below[0, 1, r, w], middle)
    if value <= 0.0:
        return math.inf
    level = math.log(value)
    by_x = _mixed(below[1, 0, r, w], below[1, 1, r, w], middle) / value
    by_z = _mixed(below[2, 0, r, w], below[2, 1, r, w], middle) / value + slope
    by_h = _share(middle) * below[0, 1, r, w] / value
    worst = -math.inf
    for e in range(2):
        for v in range(4):
            top = _log(_mixed(above[v, 0, r, w], above[v, 1, r, w], ends[e])) - by_h * (ends[e] - middle)
            one = top - level - by_x * moves[v, 0] - by_z * moves[v, 1] + extra[v, e]
            if math.isnan(one):
                return math.inf
            worst = max(worst, one)
    return worst


def _between(first: float, last: float) -> float:
    """Return where to part an interval of h."""
    if first == -math.inf:
        return 0.0 if last == math.inf else min(last, 0.0) - 3.0
    return max(first, 0.0) + 3.0 if last == math.inf else (first + last) / 2


def _share(h: float) -> float:
    """Return the probability of state 1 under the initial law (1 : e^h)."""
    return 1 / (1 + math.exp(-h)) if h >= 0 else math.exp(h) / (1 + math.exp(h))


def _softplus(h: float) -> float:
    """Return log(1 + e^h), by which mixtures are divided."""
    return max(h, 0.0) + math.log1p(math.exp(-abs(h)))


def _mixed(zero: float, one: float, h: float) -> float:
    """Return the mean of what the two first states give under the initial law (1 : e^h)."""
    if h == -math.inf:
        return zero
    if h == math.inf:
        return one
    share = _share(h)
    return zero * (1 - share) + one * share


def _log(x: float) -> float:
    return math.log(x) if x > 0.0 else -math.inf
