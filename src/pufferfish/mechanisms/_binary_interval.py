r"""Boxes of two-state chains: plain loops over numbers, so that numba can compile them.

A box holds every chain with p0 = P(0→0) and p1 = P(1→1) in two intervals, one matrix for all steps, and P(X_1=0) in a
third one (or each chain's stationary law). Two numbers carry what such a chain does:

*   a log ratio x = log v(0)/v(1) of what states 0 and 1 expect becomes, one step earlier, :math:`\log\frac{1 + p_0
    E}{1 + (1-p_1) E}` with :math:`E = e^x - 1`, which is monotone in x, p0 and p1: the extremes are at known ends;
*   :math:`z_t = P(X_t = 0)`, which is linear in :math:`z_{t-1}`, in p0 and in p1.

Every function bounds all members of a box, with rounding outwards (docs/proofs/intervals.md, "BinaryChainInterval"). A
stationary two-state chain is reversible, so its left parts are its right parts.
"""

import math
from typing import Any

import numpy as np

from pufferfish._core.numbers.rounding import UNIT

_ULPS = 32 * UNIT
_ENDLESS = 700.0  # no double holds the exponential of more; more nats than this are taken as infinitely many


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
    """Return the log ratio, rounded up, given X_i = 1 and 0, of a ratio e^x given X_{i−1}; z = P(X_{i−1} = 0)."""
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
    """Write bounds on log P^n(0,y)/P^n(1,y) for n = 1, 2, …: least and most for y = 0, then for y = 1."""
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


_TRIED = 1e-9  # a sweep that moves by less than this share looks for a bound on all that is to come
_ROOM = 1e-8  # how much above the present bound, as a share, that bound is looked for
_LAW_ROOM = 1e-11  # how much wider bounds on the law of a record are then taken: the bound hardly moves
_SHORT = 64  # runs with no more steps left than this are not worth looking


def sweep(chain: Any, forwards: bool, runs: Any, divisor: float, segments: Any) -> int:
    """Write what arrives at every record from one end of the chain, as stretches with one bound; return their number.

    Forwards it is what the past tells, else what the future tells. ``chain`` has the ends of p0, of p1 and of P(X_1 =
    0), the last two −1 for stationary chains; ``runs`` steps and losses d(0,1) and d(1,0), to be divided by
    ``divisor``. Written are steps and the bounds for the pairs (0,1) and (1,0), from the end where the sweep begins.
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
_NEAR = 1e-8  # how near to the least divisor a bound comes, as a share


def divisor(
    chain: Any, runs: Any, epsilon: float, low: float, high: float, before: Any, after: Any, where: Any
) -> float:
    """Return the least divisor that leaks at most epsilon over a box, from above (Illinois rule); ∞ if none is."""
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
    """Write for every box the leakage (epsilon 0), or the least divisor that leaks at most epsilon, at least ``floor``.

    A sweep may tell ``room`` stretches apart, beyond one for every run. ``where``: node, pair, own loss, past, future.
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


# -- Markov quilts over boxes -----------------------------------------------------------------------------------------

_ROUNDED = 16 * UNIT

_SETTLING, _WIDER = 1000, 1e-12  # steps in which bounds on a law must stop moving, and what they are widened by


def log_change(weight: float, rest: float, x: float) -> float:
    """Return the log of (rest + weight·e^x)/(rest + weight), rounded up, for weights that are not negative."""
    if weight <= 0.0:
        return 0.0
    change = math.log1p(math.expm1(x) * (weight / (weight + rest)))
    return change + _ROUNDED * (abs(change) + UNIT)


def left_part(ratios: Any, low: float, high: float) -> tuple[float, float]:
    """Bound the left part of a quilt for (0,1) and (1,0), z between two ends, by bounds on log ρ_0 and log ρ_1."""
    e01 = e10 = 0.0
    # largest and least difference of log ρ_0 and log ρ_1
    most, least = ratios[1] - ratios[2], ratios[0] - ratios[3]
    for end in range(2):
        z = low if end == 0 else high
        one = 1.0 - z
        e01 = max(
            e01, log_change(one * math.exp(-ratios[1]), z, most), log_change(z * math.exp(ratios[0]), one, -least)
        )
        e10 = max(
            e10, log_change(z * math.exp(ratios[2]), one, most), log_change(one * math.exp(-ratios[3]), z, -least)
        )
    return e01, e10


def laws(chain: Any, bounds: Any) -> None:
    """Write bounds on P(X_t = 0) for t = 1, 2, …: least and most."""
    low, high = chain[4], chain[5]
    for t in range(bounds.shape[0]):
        bounds[t, 0], bounds[t, 1] = low, high
        low, high = law_after(chain[:2], chain[2:4], low, high)


def hulls(chain: Any, bounds: Any, later: Any) -> None:
    """Write bounds on P(X_t = 0) for t and all that comes after, from those for t."""
    n = bounds.shape[0]
    low, high = bounds[n - 1, 0], bounds[n - 1, 1]
    for _ in range(_SETTLING):
        after = law_after(chain[:2], chain[2:4], low, high)
        if after[0] >= low and after[1] <= high:
            break
        low, high = max(min(low, after[0]) - _WIDER, 0.0), min(max(high, after[1]) + _WIDER, 1.0)
    else:
        low, high = 0.0, 1.0
    for t in range(n - 1, -1, -1):
        low, high = min(low, bounds[t, 0]), max(high, bounds[t, 1])
        later[t, 0], later[t, 1] = low, high


def mixing(chain: Any, parts: Any) -> None:
    """Write Lemma 4.8's bound on the right part for distances 1, 2, …, for all chains of a box."""
    # π_min is least where one state is left most easily and the other least; the gap where |p0 + p1 − 1| is largest
    a, b = 1.0 - chain[1], 1.0 - chain[2]
    c, d = 1.0 - chain[3], 1.0 - chain[0]
    pi_min = min(a / (a + b), c / (c + d)) * (1 - _ROUNDED)
    gap = 2.0 * (1.0 - max(chain[1] + chain[3] - 1.0, 1.0 - chain[0] - chain[2], 0.0)) - _ROUNDED
    for t in range(parts.shape[0]):
        exponent = -math.log(pi_min) - gap * (t + 1) / 2
        delta = math.exp(max(exponent + _ROUNDED * (t + 2), -700.0)) * (1 + _ROUNDED)
        parts[t] = (
            math.log1p(2 * delta / (1.0 - delta)) * (1 + _ROUNDED) if exponent < 0.0 and delta < 1.0 else math.inf
        )


def worth(weight: float, influence: float, epsilon: float) -> float:
    """Return what a quilt proves: its leakage where epsilon is 0, else the divisor that it needs."""
    if epsilon == 0.0:
        return (weight + influence) * (1 + _ROUNDED)
    left = epsilon - influence
    if not left > 0.0:
        return math.inf
    return weight / left * (1 + _ROUNDED + 4 * UNIT * influence / left)


def weight_of(first: int, last: int, loss: float, records: int, sums: Any) -> float:
    """Return the sum of the losses of records first..last, 1-based, rounded up."""
    if sums.shape[0] == 0:
        return loss * min(last - first + 1, records) * (1 + 2 * UNIT)
    return sums[last] - sums[first - 1] + loss


def search(  # noqa: C901 - one compiled loop over boxes, nodes and quilts
    kind: int,
    chains: Any,
    nodes: Any,
    length: int,
    records: int,
    loss: float,
    sums: Any,
    farthest: int,
    longest: int,
    epsilon: float,
    floor: float,
    values: Any,
    where: Any,
) -> None:
    """Write for every box what the best quilt of the worst record proves: leakage (epsilon 0), or least divisor.

    The kinds are 0: by the law of the record left of the node; 1: stationary chains; 2: by Lemma 4.8. ``chains`` has
    the ends of p0, of p1 and of P(X_1 = 0). The rows of ``nodes`` are first and last of a group, 1-based, that is
    searched as one: as if the chain went on to its right; groups of several are for one loss of all records only.

    ``records`` of ``length`` steps are observed. ``loss`` is that of each; or ``sums`` are the cumulative losses of all
    steps, and ``loss`` what rounding them cost. Quilts reach at most ``farthest`` to either side, and have at most
    ``longest`` nearby records; what needs no more than ``floor`` is not searched to the end. ``where``: node, a, b (0
    where a side is open), influence.
    """
    ratios, right = np.empty((farthest, 4)), np.empty((farthest, 2))
    bounds = np.empty((int(nodes[-1, 0]), 2))
    hull = np.empty((int(nodes[-1, 0]), 2))
    left = np.empty((farthest, 2))
    parts = np.empty(farthest)
    for i in range(chains.shape[0]):
        if kind == 2:
            mixing(chains[i], parts)
            for b in range(farthest):
                right[b, 0] = right[b, 1] = parts[b]
        else:
            reach(chains[i, :2], chains[i, 2:4], ratios)
            for b in range(farthest):
                right[b, 0] = max(ratios[b, 1], ratios[b, 3], 0.0)
                right[b, 1] = max(-ratios[b, 0], -ratios[b, 2], 0.0)
        if kind == 0:
            laws(chains[i], bounds)
            hulls(chains[i], bounds, hull)
        worst = floor
        before_a = before_b = 0
        for g in range(nodes.shape[0] - 1, -1, -1):
            first, last = int(nodes[g, 0]), int(nodes[g, 1])
            alone = first == last
            most_a = min(first - 1, farthest)
            most_b = min(length - last, farthest) if alone else farthest
            whole = weight_of(1, length, loss, records, sums)
            best, a_, b_, e_ = worth(whole, 0.0, epsilon), 0, 0, 0.0
            # quilts like the one that served the node before often prove at once that this one is not worse
            for turn in range(2):
                if best <= worst or (turn == 0 and before_a + before_b == 0):
                    continue
                start = max(min(before_a, most_a) - 2, 1) if turn == 0 else 1
                stop = min(before_a + 2, most_a) if turn == 0 else most_a
                for a in range(start, stop + 1):
                    if turn == 1 and worth(weight_of(first - a + 1, first, loss, records, sums), 0.0, epsilon) >= best:
                        break
                    if kind == 0:
                        t = first - a - 1
                        if alone:
                            l01, l10 = left_part(ratios[a - 1], bounds[t, 0], bounds[t, 1])
                        else:
                            l01, l10 = left_part(ratios[a - 1], hull[t, 0], hull[t, 1])
                    elif kind == 1:
                        l01, l10 = right[a - 1, 0], right[a - 1, 1]
                    else:
                        l01, l10 = 2 * right[a - 1, 0], 2 * right[a - 1, 1]
                    left[a - 1, 0], left[a - 1, 1] = l01, l10
                    e = max(l01, l10)
                    value = worth(weight_of(first - a + 1, length, loss, records, sums), e, epsilon)
                    if value < best and length - first + a <= longest:
                        best, a_, b_, e_ = value, a, 0, e
                    for b in range(1, min(most_b, longest - a + 1) + 1):
                        weight = weight_of(first - a + 1, first + b - 1, loss, records, sums)
                        if worth(weight, e, epsilon) >= best:  # a right side only adds to the influence
                            break
                        both = max(l01 + right[b - 1, 0], l10 + right[b - 1, 1])
                        value = worth(weight, both * (1 + _ROUNDED), epsilon)
                        if value < best:
                            best, a_, b_, e_ = value, a, b, both
                    if best <= worst:
                        break
            for b in range(1, min(most_b, longest - last + 1) + 1):
                if best <= worst:
                    break
                weight = weight_of(1, min(last + b - 1, length), loss, records, sums)
                if worth(weight, 0.0, epsilon) >= best:
                    break
                e = max(right[b - 1, 0], right[b - 1, 1])
                value = worth(weight, e, epsilon)
                if value < best:
                    best, a_, b_, e_ = value, 0, b, e
            before_a, before_b = a_, b_
            if best > worst:
                worst = best
                where[i, 0], where[i, 1], where[i, 2], where[i, 3] = (first + last) // 2, a_, b_, e_
        values[i] = worst
