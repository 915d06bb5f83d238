r"""Markov quilts over boxes of two-state chains: plain loops over numbers, so that numba can compile them.

The right part of a quilt's max-influence is the log ratio :math:`\log P^b(x,y)/P^b(x',y)` that
:mod:`pufferfish.mechanisms._binary_interval` bounds. With :math:`\rho_y = P^a(0,y)/P^a(1,y)` and z = P(X_{i−a} =
0) the left part is the larger logarithm of

.. math:: \frac{P(X_{i-a}=0 \mid X_i=0)}{P(X_{i-a}=0 \mid X_i=1)} = \frac{z + (1-z)/\rho_1}{z + (1-z)/\rho_0},
   \qquad
   \frac{P(X_{i-a}=1 \mid X_i=0)}{P(X_{i-a}=1 \mid X_i=1)} = \frac{1-z + z\rho_1}{1-z + z\rho_0},

monotone in either ratio, and for given ratios in z: over a box the extremes are at ends. A stationary two-state chain
is reversible, so its left parts are its right parts.
"""

import math
from typing import Any

import numpy as np

from pufferfish._core.numbers.rounding import UNIT
from pufferfish.mechanisms._binary_interval import law_after, reach

__all__ = ["hulls", "laws", "left_part", "log_change", "mixing", "search", "weight_of", "worth"]

_ULPS = 16 * UNIT

_SETTLING, _WIDER = 1000, 1e-12
"""Steps in which bounds on a law must stop moving, and what they are widened by meanwhile."""


def log_change(weight: float, rest: float, x: float) -> float:
    """Return the log of (rest + weight·e^x)/(rest + weight), rounded up, for weights that are not negative."""
    if weight <= 0.0:
        return 0.0
    change = math.log1p(math.expm1(x) * (weight / (weight + rest)))
    return change + _ULPS * (abs(change) + UNIT)


def left_part(ratios: Any, low: float, high: float) -> tuple[float, float]:
    """Bound the left part of a quilt for the pairs (0,1) and (1,0), for z between two ends.

    Parameters
    ----------
    ratios : (4,) ndarray
        Bounds on log ρ_0, then on log ρ_1: least, most.
    low, high : float
        Ends of z = P(X_{i−a} = 0).
    """
    e01 = e10 = 0.0
    # largest and least difference of log ρ_0 and log ρ_1
    most, least = ratios[1] - ratios[2], ratios[0] - ratios[3]
    for end in range(2):
        z = low if end == 0 else high
        one = 1.0 - z
        e01 = max(
            e01,
            log_change(one * math.exp(-ratios[1]), z, most),
            log_change(z * math.exp(ratios[0]), one, -least),
        )
        e10 = max(
            e10,
            log_change(z * math.exp(ratios[2]), one, most),
            log_change(one * math.exp(-ratios[3]), z, -least),
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
    pi_min = min(a / (a + b), c / (c + d)) * (1 - _ULPS)
    gap = 2.0 * (1.0 - max(chain[1] + chain[3] - 1.0, 1.0 - chain[0] - chain[2], 0.0)) - _ULPS
    for t in range(parts.shape[0]):
        exponent = -math.log(pi_min) - gap * (t + 1) / 2
        delta = math.exp(max(exponent + _ULPS * (t + 2), -700.0)) * (1 + _ULPS)
        parts[t] = math.log1p(2 * delta / (1.0 - delta)) * (1 + _ULPS) if exponent < 0.0 and delta < 1.0 else math.inf


def worth(weight: float, influence: float, epsilon: float) -> float:
    """Return what a quilt proves: its leakage where epsilon is 0, else the divisor that it needs."""
    if epsilon == 0.0:
        return (weight + influence) * (1 + _ULPS)
    left = epsilon - influence
    if not left > 0.0:
        return math.inf
    return weight / left * (1 + _ULPS + 4 * UNIT * influence / left)


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

    Parameters
    ----------
    kind : int
        0: by the law of the record left of the node; 1: stationary chains; 2: by Lemma 4.8.
    chains : (n, 6) ndarray
        The boxes: ends of p0, of p1 and of P(X_1 = 0).
    nodes : (g, 2) ndarray of int
        Groups of nodes, first and last, 1-based, that are searched as one. A group of several is searched as if the
        chain went on to its right: where quilt {a, b} sticks out at the end, {a} has no more records near and no more
        influence. Several only with one loss for all records.
    length, records : int
        Steps of the chain, and how many of them are observed.
    loss, sums : float, (length + 1,) ndarray or (0,)
        Loss of every observed record; or cumulative sums of the losses of all steps, and what rounding them cost.
    farthest, longest : int
        Quilts reach at most so far to either side, and have at most so many nearby records.
    epsilon, floor : float
        The budget; and what is needed anyway: nodes and boxes that need no more are not searched to the end.
    values : (n,) ndarray, written
    where : (n, 4) ndarray, written
        Node, a, b (0 where a side is open) and influence.
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
                        value = worth(weight, both * (1 + _ULPS), epsilon)
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
