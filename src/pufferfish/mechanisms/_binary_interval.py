r"""Boxes of two-state chains: plain loops over numbers, so that numba can compile them.

A box holds every chain with p0 = P(0→0) and p1 = P(1→1) in two intervals, one matrix for all steps, and P(X_1=0) in a
third one (or each chain's stationary law). Two numbers carry what such a chain does:

*   a log ratio x = log v(0)/v(1) of what states 0 and 1 expect becomes, one step earlier, :math:`\log\frac{1 + p_0
    E}{1 + (1-p_1) E}` with :math:`E = e^x - 1`. It grows with p0 and p1 where E > 0, falls with both where E < 0, and
    is monotone in x: over a box the extremes are at known ends;
*   :math:`z_t = P(X_t = 0)`, which is linear in :math:`z_{t-1}`, in p0 and in p1.

Every function bounds all members of a box, with rounding outwards; for a box that is one chain the bounds are exact but
for that. The derivations are in docs/proofs/intervals.md, "BinaryChainInterval".
"""

import math
from typing import Any

import numpy as np

from pufferfish._core.numbers.rounding import UNIT

__all__ = [
    "ahead",
    "divisor",
    "future",
    "law_after",
    "leaked",
    "least_ahead",
    "most_ahead",
    "most_told",
    "moved",
    "noted",
    "past",
    "propagate",
    "reach",
    "sweep",
    "told",
    "told_most",
]

_ULPS = 32 * UNIT

_ENDLESS = 700.0
"""No double holds the exponential of more; more nats than this are taken as infinitely many."""


def ahead(x: float, p0: float, p1: float, up: float) -> float:
    """Return the log ratio one step earlier, rounded up (``up`` = 1) or down (−1); x may be infinite."""
    if x == 0.0:
        return 0.0
    positive = x > 0.0
    slope = p0 + p1 - 1.0 + (up if positive else -up) * 4 * UNIT
    if positive:
        inverse = 1.0 / math.expm1(x) if x < _ENDLESS else 0.0
        log_ratio = math.log1p(slope / (inverse + (1.0 - p1)))
    else:
        e = math.expm1(x)
        log_ratio = math.log1p(slope * e / (math.exp(x) - p1 * e))
    return log_ratio + up * _ULPS * abs(log_ratio)


def future(b01: float, p0: Any, p1: Any, b10: float) -> float:
    """Bound what comes one step earlier of a log ratio between −b10 and b01, over p0 and p1 between two ends."""
    bound = 0.0
    if p0[1] + p1[1] > 1.0 - 4 * UNIT:
        bound = max(bound, ahead(b01, p0[1], p1[1], 1.0))
    if p0[0] + p1[0] < 1.0 + 4 * UNIT:
        bound = max(bound, ahead(-b10, p0[0], p1[0], 1.0))
    return bound


def told(x: float, p0: float, p1: float, z: float) -> float:
    """Return the log ratio, given X_i = 1 and X_i = 0, of what is in the ratio e^x between X_{i−1} = 1 and 0.

    Rounded up where positive; z = P(X_{i−1} = 0).
    """
    slope = p0 + p1 - 1.0
    slope += math.copysign(4 * UNIT, slope)
    top = slope * z * (1.0 - z)
    if top == 0.0 or x == 0.0:
        return 0.0
    of_one = z * (1.0 - p0) + (1.0 - z) * p1
    if x > 0.0:
        inverse = 1.0 / math.expm1(x) if x < _ENDLESS else 0.0
        of_zero = (z * p0 + (1.0 - z) * (1.0 - p1)) * inverse + (1.0 - z) * (1.0 - p1)
    else:
        of_zero = (z * p0 + (1.0 - z) * (1.0 - p1) * math.exp(x)) / math.expm1(x)
    return math.log1p(top / (of_one * of_zero)) * (1 + _ULPS)


def told_most(x: float, p0: float, p1: float) -> float:
    """Return the largest :func:`told` for any z, where the odds of X_{i−1} = 0 are √(p1 (1−p1) e^x / (p0 (1−p0)))."""
    slope = p0 + p1 - 1.0
    slope += math.copysign(4 * UNIT, slope)
    if x == 0.0 or (slope > 0.0) != (x > 0.0):
        return 0.0
    if x > 0.0:
        inverse = 1.0 / math.expm1(x) if x < _ENDLESS else 0.0
        root = math.sqrt((1.0 - p0) * (1.0 - p1) * (1.0 + inverse)) + math.sqrt(p0 * p1 * inverse)
        return math.log1p(slope / (root * root)) * (1 + _ULPS)
    root = math.sqrt((1.0 - p0) * (1.0 - p1) * math.exp(x)) + math.sqrt(p0 * p1)
    return math.log1p(slope * math.expm1(x) / (root * root)) * (1 + _ULPS)


def most_told(x: float, p0: float, p1: float, low: float, high: float) -> float:
    """Return the largest :func:`told` for z between two ends: at one of them, or at the one extremum between."""
    most = max(told(x, p0, p1, low), told(x, p0, p1, high))
    odds = math.sqrt((1.0 - p0) * p0 / (p1 * (1.0 - p1)))
    z = 1.0 / (1.0 + odds * math.exp(-0.5 * min(max(x, -2 * _ENDLESS), 2 * _ENDLESS)))
    if low - 4 * UNIT <= z <= high + 4 * UNIT:  # which may round to 1, where nothing is told
        most = max(most, told_most(x, p0, p1))
    return max(most, 0.0)


def past(b10: float, p0: Any, p1: Any, low: float, high: float, b01: float) -> float:
    """Bound what X_i = 1 against 0 tells of a past in a log ratio between −b01 and b10, z between two ends."""
    bound = 0.0
    if p0[1] + p1[1] > 1.0 - 4 * UNIT:
        bound = max(bound, most_told(b10, p0[1], p1[1], low, high))
    if p0[0] + p1[0] < 1.0 + 4 * UNIT:
        bound = max(bound, most_told(-b01, p0[0], p1[0], low, high))
    return bound


def law_after(p0: Any, p1: Any, low: float, high: float) -> tuple[float, float]:
    """Return bounds on P(X_{t+1} = 0) from those on P(X_t = 0)."""
    least = min(low * p0[0] + (1.0 - low) * (1.0 - p1[1]), high * p0[0] + (1.0 - high) * (1.0 - p1[1]))
    most = max(low * p0[1] + (1.0 - low) * (1.0 - p1[0]), high * p0[1] + (1.0 - high) * (1.0 - p1[0]))
    return max(least - 4 * UNIT, 0.0), min(most + 4 * UNIT, 1.0)


def reach(p0: Any, p1: Any, ratios: Any) -> None:
    """Write bounds on log P^n(0,y)/P^n(1,y) for n = 1, 2, …: least and most for y = 0, then for y = 1.

    Parameters
    ----------
    p0, p1 : (2,) ndarray
        Ends of the box.
    ratios : (n, 4) ndarray, written
    """
    for y in range(2):
        low = high = math.inf if y == 0 else -math.inf
        for n in range(ratios.shape[0]):
            most = max(most_ahead(low, p0, p1), most_ahead(high, p0, p1))
            least = min(least_ahead(low, p0, p1), least_ahead(high, p0, p1))
            low, high = least, most
            ratios[n, 2 * y] = low
            ratios[n, 2 * y + 1] = high


def most_ahead(x: float, p0: Any, p1: Any) -> float:
    """Return the largest :func:`ahead` over a box: of a positive ratio at the upper ends, else at the lower."""
    end = 1 if x > 0.0 else 0
    return ahead(x, p0[end], p1[end], 1.0)


def least_ahead(x: float, p0: Any, p1: Any) -> float:
    """Return the least :func:`ahead` over a box."""
    end = 0 if x > 0.0 else 1
    return ahead(x, p0[end], p1[end], -1.0)


_TRIED = 1e-9
"""A sweep that moves by less than this share looks for a bound on all that is to come."""

_ROOM = 1e-8
"""How much above the present bound, as a share, that bound is looked for."""

_LAW_ROOM = 1e-11
"""How much wider the bounds on the law of a record are then taken: so little that the bound hardly moves."""

_SHORT = 64
"""Runs with no more steps left than this are not worth looking."""


def sweep(chain: Any, forwards: bool, runs: Any, divisor: float, segments: Any) -> int:
    """Write what arrives at every record from one end of the chain, as stretches with one bound; return their number.

    Parameters
    ----------
    chain : (6,) ndarray
        The box: ends of p0, of p1 and of P(X_1 = 0); the last two −1 for stationary chains.
    forwards : bool
        Whether from the first record, what the past tells, or from the last, what the future tells.
    runs : (r, 3) ndarray
        Steps of a run of records, and their losses d(0,1) and d(1,0); from the first record.
    divisor : float
        What the losses are divided by.
    segments : (s, 3) ndarray, written
        Steps, and the bounds for the pairs (0,1) and (1,0); from the end where the sweep began.
    """
    p0, p1, low, high = chain[:2], chain[2:4], chain[4], chain[5]
    by_law = forwards and low >= 0.0
    m01 = m10 = 0.0
    count, spare = 0, segments.shape[0] - runs.shape[0]
    for r in range(runs.shape[0]):
        run = runs[r] if forwards else runs[runs.shape[0] - 1 - r]
        left = run[0]
        d01, d10 = run[1] / divisor * (1 + 4 * UNIT), run[2] / divisor * (1 + 4 * UNIT)
        while left > 0.0:
            if count >= spare + r and left > 1.0:
                # out of room: bounds that hold for any loss whatever, or as if nothing were forgotten
                low, high = (0.0 if by_law else low), (1.0 if by_law else high)
                all_told = (max(m01, m10) + left * max(d01, d10)) * (1 + _ULPS)
                m01, m10 = moved(p0, p1, low, high, by_law, math.inf, math.inf)
                m01, m10 = min(m01, all_told), min(m10, all_told)
                count = noted(segments, count, left, m01, m10)
                break
            count = noted(segments, count, 1.0, m01, m10)
            left -= 1.0
            n01, n10 = moved(p0, p1, low, high, by_law, d01 + m01, d10 + m10)
            if by_law:
                low, high = law_after(p0, p1, low, high)
            if left > _SHORT and abs(n01 - m01) <= _TRIED * n01 and abs(n10 - m10) <= _TRIED * n10:
                c01, c10 = max(n01, m01) * (1 + _ROOM), max(n10, m10) * (1 + _ROOM)
                wide, wider, stays = low, high, True
                if by_law:
                    wide, wider = max(low - _LAW_ROOM, 0.0), min(high + _LAW_ROOM, 1.0)
                    after = law_after(p0, p1, wide, wider)
                    stays = after[0] >= wide and after[1] <= wider
                e01, e10 = moved(p0, p1, wide, wider, by_law, d01 + c01, d10 + c10)
                if stays and e01 <= c01 and e10 <= c10:
                    low, high, m01, m10 = wide, wider, c01, c10
                    count = noted(segments, count, left, m01, m10)
                    left = 0.0
                    break
            m01, m10 = n01, n10
    return count


def noted(segments: Any, count: int, steps: float, m01: float, m10: float) -> int:
    """Write one stretch, and return how many there are now; three numbers one by one compile in far less time."""
    segments[count, 0] = steps
    segments[count, 1] = m01
    segments[count, 2] = m10
    return count + 1


def moved(p0: Any, p1: Any, low: float, high: float, by_law: bool, b01: float, b10: float) -> tuple[float, float]:
    """Return the bounds one record further on."""
    if not (b01 >= 0.0 and b10 >= 0.0):
        return math.inf, math.inf  # no number is no bound
    if by_law:
        least, most = max(1.0 - high - UNIT, 0.0), min(1.0 - low + UNIT, 1.0)
        return past(b01, p1, p0, least, most, b10), past(b10, p0, p1, low, high, b01)
    return future(b01, p0, p1, b10), future(b10, p1, p0, b01)


def leaked(chain: Any, runs: Any, divisor: float, before: Any, after: Any, where: Any) -> float:
    """Bound the leakage of losses over a box; write node (1-based), pair, own loss, past and future."""
    g = 0
    count = sweep(chain, True, runs, divisor, before)
    f = sweep(chain, False, runs, divisor, after) - 1
    worst, offset, r, run_left = -1.0, 0.0, 0, runs[0, 0]
    g_left, f_left = before[0, 0], after[f, 0]
    while g < count:
        n = min(g_left, f_left, run_left)
        for pair in range(2):
            own_loss = runs[r, 1 + pair] / divisor * (1 + 4 * UNIT)
            total = (own_loss + before[g, 1 + pair] + after[f, 1 + pair]) * (1 + 8 * UNIT)
            if total != total:
                return math.inf
            if total > worst:
                worst = total
                where[0], where[1] = offset + (n + 1.0) // 2.0, pair
                where[2], where[3], where[4] = own_loss, before[g, 1 + pair], after[f, 1 + pair]
        offset, g_left, f_left, run_left = offset + n, g_left - n, f_left - n, run_left - n
        if g_left <= 0.0:
            g += 1
            if g < count:
                g_left = before[g, 0]
        if f_left <= 0.0 and f > 0:
            f -= 1
            f_left = after[f, 0]
        if run_left <= 0.0 and r + 1 < runs.shape[0]:
            r += 1
            run_left = runs[r, 0]
    return worst


_MOST_TURNS = 80

_NEAR = 1e-8
"""How near to the least divisor a bound comes, as a share."""


def divisor(
    chain: Any, runs: Any, epsilon: float, low: float, high: float, before: Any, after: Any, where: Any
) -> float:
    """Return the least divisor of losses that leaks at most epsilon over a box, from above; ∞ if none is found.

    By false position in logarithms (the Illinois rule) between one that no bound goes below and one that group privacy
    needs.
    """
    x, y = math.log(low), math.log(high)
    f, g = math.log(leaked(chain, runs, low, before, after, where) / epsilon), math.inf
    if f <= 0.0:
        return low
    g = math.log(leaked(chain, runs, high, before, after, where) / epsilon)
    if g > 0.0:
        return math.inf
    side, enough = 0, high
    for turn in range(_MOST_TURNS):
        if y - x <= _NEAR:
            break
        z = 0.5 * (x + y) if turn % 4 == 3 or g == 0.0 else (f * y - g * x) / (f - g)
        # a little on the side that ends the search
        z = min(max(z + 0.25 * _NEAR, x + 0.25 * _NEAR), y - 0.25 * _NEAR)
        h = math.log(leaked(chain, runs, math.exp(z), before, after, where) / epsilon)
        if h <= 0.0:
            y, g, enough = z, h, math.exp(z)
            if side == -1:
                f *= 0.5
            side = -1
            if h > -0.5 * _NEAR:
                break
        else:
            x, f = z, h
            if side == 1:
                g *= 0.5
            side = 1
    leaked(chain, runs, enough, before, after, where)
    return enough


def propagate(chains: Any, runs: Any, epsilon: float, floor: float, room: int, values: Any, where: Any) -> None:
    """Write for every box the leakage (epsilon 0), or the least divisor of the losses that leaks at most epsilon.

    Parameters
    ----------
    chains : (n, 6) ndarray
        The boxes.
    runs : (r, 3) ndarray
        The losses.
    epsilon, floor : float
        The budget; and a divisor that is needed anyway: boxes that need no more are given as this.
    room : int
        Stretches that a sweep may tell apart, beyond one for every run.
    values : (n,) ndarray, written
    where : (n, 5) ndarray, written
        Node, pair, own loss, past, future.
    """
    before, after = np.empty((room + runs.shape[0], 3)), np.empty((room + runs.shape[0], 3))
    group = largest = 0.0
    for r in range(runs.shape[0]):
        group += runs[r, 0] * max(runs[r, 1], runs[r, 2])
        largest = max(largest, runs[r, 1], runs[r, 2])
    for i in range(chains.shape[0]):
        if largest == 0.0 and epsilon > 0.0:
            values[i] = floor
            continue
        if epsilon == 0.0:
            values[i] = leaked(chains[i], runs, 1.0, before, after, where[i])
            continue
        if floor > 0.0 and leaked(chains[i], runs, floor, before, after, where[i]) <= epsilon:
            values[i] = floor
            continue
        low, high = max(largest / epsilon, floor), group / epsilon
        values[i] = divisor(chains[i], runs, epsilon, low, max(high, low) * (1 + _NEAR), before, after, where[i])
