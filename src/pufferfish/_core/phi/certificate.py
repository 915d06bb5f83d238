r"""What given flows prove about Φ, and Φ as a whole: plain loops over numbers, so that numba can compile them.

For laws p, q, bounds A and *any* f(y,z) ≥ 0 let :math:`\mathrm{in}_y = \sum_z f(z,y) e^{A(z,y)}` and
:math:`\mathrm{out}_y = \sum_z f(y,z)`. If :math:`p_y + \mathrm{in}_y - \mathrm{out}_y \le \lambda q_y` for every y,
then Φ ≤ log λ (the proof is in :mod:`pufferfish._core.phi.phi`). :func:`prove` returns such a λ, rounded up. Besides, Φ
is at most max A, and at most the max-divergence of p and q (no flows at all). Nothing else is relied on: the flows that
:mod:`pufferfish._core.phi.simplex` and :mod:`pufferfish._core.phi.simplex` propose may be any.
"""

import math
from typing import Any

import numpy as np

from pufferfish._core.numbers.rounding import SMALLEST, UNIT
from pufferfish._core.phi.simplex import climb, stars

__all__ = ["SEARCHED", "phi", "prove"]

SEARCHED = 300.0
"""With bounds beyond this many nats flows would leave the range of a double, and Φ(A) ≤ max A has to do."""

_NEAR = 1e-12
"""A bound this near to what is attained, in nats, needs no search."""

_EXPONENT = 700.0
"""No double holds the exponential of more."""


def prove(p: Any, q: Any, a: Any, x: Any, x_: Any, tails: Any, heads: Any, flows: Any, proved: Any) -> None:
    """Write what given flows prove: an upper bound on the log ratio of each pair of laws, rounded up.

    Parameters
    ----------
    p, q : (r, k) ndarray
        Upper and lower bounds on laws, in rows.
    a : (k, k) ndarray
        Bounds A.
    x, x_ : (n,) ndarray of int
        Pair i compares row x[i] of p with row x_[i] of q.
    tails, heads : (n, m) ndarray of int
        Arcs of each pair.
    flows : (n, m) ndarray
        Flow f(tail, head) ≥ 0 of each arc, any numbers whatever: what is no positive number counts as 0.
    proved : (n,) ndarray, written
        The bounds, in nats; never below 0.
    """
    k, arcs = a.shape[0], tails.shape[1]
    into, out = np.empty(k), np.empty(k)
    rounding = (arcs + 8) * UNIT
    for i in range(x.shape[0]):
        row, other_row = p[x[i]], q[x_[i]]
        for y in range(k):
            into[y] = 0.0
            out[y] = 0.0
        for e in range(arcs):
            flow = flows[i, e]
            if SMALLEST < flow < np.inf:
                tail, head = tails[i, e], heads[i, e]
                grows = math.exp(a[tail, head]) if a[tail, head] <= _EXPONENT else np.inf
                into[head] += flow * grows * (1 + 16 * UNIT)
                out[tail] += flow
        most, mass = 0.0, 0.0
        for y in range(k):
            mass += row[y]
            excess = (row[y] + into[y]) * (1 + rounding) - out[y] * (1 - rounding)
            if excess <= 0.0:
                continue
            ratio = excess / other_row[y] if other_row[y] > 0.0 else np.inf
            if math.isnan(ratio):  # no number is no proof
                ratio = np.inf
            most = max(most, ratio * (1 + 8 * UNIT))
        if not mass > 0.0:  # no law at all
            most = np.inf
        log = math.log(most) if most > 0.0 else 0.0
        proved[i] = max(log + 8 * UNIT * (1 + abs(log)), 0.0) if log < np.inf else np.inf


def phi(rows: Any, upper: Any, lower: Any, a: Any, bounds: Any) -> None:  # noqa: C901 - one compiled loop, its phases named
    """Write an upper bound on Φ_K(A), tight where the search found the optimum; exactly 0 where A is.

    Parameters
    ----------
    rows : (r,) ndarray of bool
        States x whose laws K(x, ·) are defined.
    upper, lower : (r, k) ndarray
        Bounds on K(x, y); ``upper`` is 0 exactly where K is, and where x is no such state.
    a : (k, k) ndarray
        Bounds A, closed by shortest paths; those of states that no law reaches are not read.
    bounds : (r, r) ndarray, written
        The bound; +∞ for pairs of states of which one is not defined, 0 on the diagonal.
    """
    r, k = upper.shape
    # 1. the largest bound between states that are reached: where it is 0, so is the answer
    reached = np.zeros(k, dtype=np.bool_)
    for x in range(r):
        for y in range(k):
            if upper[x, y] > 0.0:
                reached[y] = True
    most = 0.0
    for y in range(k):
        for z in range(k):
            if reached[y] and reached[z] and y != z:
                most = max(most, a[y, z])
    pairs = 0
    for x in range(r):
        for x_ in range(r):
            defined = rows[x] and rows[x_]
            bounds[x, x_] = 0.0 if x == x_ else np.inf
            if defined and x != x_:
                pairs += 1
                if most == 0.0:
                    bounds[x, x_] = 0.0
    if most == 0.0 or pairs == 0:
        return
    # 2. what holds without a search: no more than the largest bound, and what the laws' ratios prove
    top = (most + UNIT * (k + 4)) * (1 + 4 * UNIT)  # rows sum to 1 up to rounding
    xs, xs_, proved = np.empty(pairs, dtype=np.int64), np.empty(pairs, dtype=np.int64), np.empty(pairs)
    n = 0
    for x in range(r):
        for x_ in range(r):
            if rows[x] and rows[x_] and x != x_:
                xs[n] = x
                xs_[n] = x_
                n += 1
    nowhere, nothing = np.zeros((pairs, 0), dtype=np.int64), np.zeros((pairs, 0))
    prove(upper, lower, a, xs, xs_, nowhere, nowhere, nothing, proved)
    for n in range(pairs):
        bounds[xs[n], xs_[n]] = min(proved[n], top)
    if most > SEARCHED:
        return
    # 3. stars, the vertices around one state: best for most pairs
    grown = np.zeros((k, k))
    for y in range(k):
        for z in range(k):
            if reached[y] and reached[z]:
                grown[y, z] = math.exp(a[y, z])
    arcs = max(k - 1, 1)
    tails, heads = np.zeros((pairs, arcs), dtype=np.int64), np.zeros((pairs, arcs), dtype=np.int64)
    flows, ratios = np.zeros((pairs, arcs)), np.zeros(pairs)
    stars(upper, lower, grown, xs, xs_, ratios, tails, heads, flows)
    prove(upper, lower, a, xs, xs_, tails, heads, flows, proved)
    # 4. a climb from the best star for the pairs that are not settled
    left = 0
    for n in range(pairs):
        x, x_ = xs[n], xs_[n]
        bounds[x, x_] = min(bounds[x, x_], proved[n])
        if ratios[n] <= 0.0 or bounds[x, x_] > max(math.log(ratios[n]), 0.0) + _NEAR:
            xs[left], xs_[left] = x, x_
            for e in range(arcs):  # entry by entry: whole rows take seconds to compile
                tails[left, e], heads[left, e] = tails[n, e], heads[n, e]
            left += 1
    if left == 0:
        return
    xs, xs_, tails, heads, flows = xs[:left], xs_[:left], tails[:left], heads[:left], flows[:left]
    climb(upper, lower, a, xs, xs_, np.zeros(left, dtype=np.bool_), tails, heads, flows, np.zeros((left, arcs)))
    prove(upper, lower, a, xs, xs_, tails, heads, flows, proved)
    for n in range(left):
        bounds[xs[n], xs_[n]] = min(bounds[xs[n], xs_[n]], proved[n])
