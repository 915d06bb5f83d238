"""Φ at place after place of a chain, where every place has the same kernel and the same loss; plain, for numba."""

import math
from typing import Any

import numpy as np

from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.phi.certificate import SEARCHED, prove
from pufferfish._core.phi.simplex import climb

__all__ = ["pass_on", "search_each", "walk"]

# -- Loops over a stack of kernels: Φ of each, and how a change passes on around a cycle; plain, for numb ------------


def search_each(
    upper: Any, lower: Any, a: Any, which: Any, x: Any, x_: Any, tails: Any, heads: Any, flows: Any, shares: Any,
    proved: Any,
) -> None:  # fmt: skip
    """Search and prove Φ for kernels whose pairs of laws are the same, each from the trees where it stood.

    Parameters
    ----------
    upper, lower : (N, k, k) ndarray
        Bounds on the laws of each kernel.
    a : (N, k, k) ndarray
        Bounds A, one matrix for each kernel.
    which : (n,) ndarray of int
        The kernels that are searched.
    x, x_ : (m,) ndarray of int
        Pair i compares row x[i] of ``upper`` with row x_[i] of ``lower``.
    tails, heads, flows, shares : (n, m, k - 1) ndarray, changed in place
        Trees and multipliers, as :func:`pufferfish._core.phi.simplex.climb` takes them.
    proved : (n, m) ndarray, written
        What the flows prove, rounded up.
    """
    follows = np.zeros(x.shape[0], dtype=np.bool_)
    for n in range(which.shape[0]):
        j = which[n]
        climb(upper[j], lower[j], a[j], x, x_, follows, tails[n], heads[n], flows[n], shares[n])
        prove(upper[j], lower[j], a[j], x, x_, tails[n], heads[n], flows[n], proved[n])


def pass_on(
    ends: Any, shares: Any, source: Any, order: Any, residual: Any, most: Any, enough: Any, change: Any
) -> bool:
    """Solve δ_j = r_j + Φ'_j δ_{source[j]} around a cycle, by passing changes on until they move no more.

    Returns whether they came to rest before the rounds were over.

    Parameters
    ----------
    ends : (N, k², m) ndarray of int
        By which entries of its source's matrix each entry changes, as flat indices.
    shares : (N, k², m) ndarray
        And how much.
    source : (N,) ndarray of int
        Where each kernel takes its bounds from.
    order : (N,) ndarray of int
        The order in which kernels follow their sources.
    residual : (N, k²) ndarray
        What Φ misses.
    most : int
        Rounds at most.
    enough : float
        Changes of this size end the rounds.
    change : (N, k²) ndarray, written
        The solution δ.
    """
    for j in range(residual.shape[0]):
        for e in range(residual.shape[1]):
            change[j, e] = residual[j, e]
    for _ in range(most):
        moved = 0.0
        for i in range(order.shape[0]):
            j = order[i]
            for e in range(residual.shape[1]):
                value = residual[j, e]
                for n in range(ends.shape[2]):
                    value += shares[j, e, n] * change[source[j], ends[j, e, n]]
                moved = max(moved, abs(value - change[j, e]))
                change[j, e] = value
        if not moved > enough:
            return True
    return False


def walk(
    p: Any, q: Any, reached: Any, x: Any, x_: Any, always: Any, follows: Any, tails: Any, heads: Any, flows: Any,
    shares: Any, loss: Any, enough: float, a: Any, messages: Any,
) -> int:  # fmt: skip
    """Write Φ(A), then Φ(d + Φ(A)) and so on, until bounds hardly move; return how many there are, at least one.

    Parameters
    ----------
    p, q : (k, k) ndarray
        Upper and lower bounds on the laws of the kernel.
    reached : (r,) ndarray of int
        States that some law reaches.
    x, x_ : (n,) ndarray of int
        Pair i compares row x[i] of p with row x_[i] of q; the other pairs of states cannot occur.
    always : (n,) ndarray
        What holds of each pair whatever A is.
    follows, tails, heads, flows, shares : ndarray, changed in place
        Trees and multipliers, as :func:`pufferfish._core.phi.simplex.climb` takes them.
    loss : (k, k) ndarray
        Loss d of every record.
    enough : float
        Bounds that change by at most this hardly move.
    a : (k, k) ndarray, changed in place
        Bounds A; at the end those of the last place.
    messages : (m, k, k) ndarray, written
        The bound on Φ at each place, rounded up: +∞ for pairs that cannot occur, 0 on the diagonal.
    """
    k = a.shape[0]
    proved = np.empty(x.shape[0])
    for place in range(messages.shape[0]):
        message = messages[place]
        for y in range(k):
            for z in range(k):
                message[y, z] = 0.0 if y == z else np.inf
        # 1. what is told never grows on the way; rows sum to 1 up to rounding
        most = 0.0
        for y in reached:
            for z in reached:
                most = max(most, np.inf if math.isnan(a[y, z]) else a[y, z])  # no number is no bound
        most += UNIT * (k + 4)
        if most < np.inf:
            most += 4 * (np.nextafter(most, np.inf) - most)
        for i in range(x.shape[0]):
            message[x[i], x_[i]] = min(always[i], most)
        # 2. what a search finds and flows prove
        if most <= SEARCHED:
            climb(p, q, a, x, x_, follows, tails, heads, flows, shares)
            prove(p, q, a, x, x_, tails, heads, flows, proved)
            for i in range(x.shape[0]):
                follows[i] = False  # from now on each pair goes on from where it was
                message[x[i], x_[i]] = min(message[x[i], x_[i]], proved[i])
        # 3. the bounds of this place, and whether they moved
        alike, moved = True, 0.0
        for y in range(k):
            for z in range(k):
                bound = message[y, z]
                arrived = loss[y, z] if bound == 0.0 else np.nextafter(loss[y, z] + bound, np.inf)
                if math.isinf(arrived) != math.isinf(a[y, z]):
                    alike = False
                elif not math.isinf(arrived):
                    moved = max(moved, abs(arrived - a[y, z]))
                a[y, z] = arrived
        if alike and moved <= enough:
            return place + 1
    return messages.shape[0]
