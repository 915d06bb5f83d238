"""Φ at place after place of a chain, where every place has the same kernel and the same loss; plain, for numba."""

import math
from typing import Any

import numpy as np

from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.phi.certificate import SEARCHED, prove
from pufferfish._core.phi.simplex import climb

__all__ = ["walk"]


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
                told = message[y, z]
                arrived = loss[y, z] if told == 0.0 else np.nextafter(loss[y, z] + told, np.inf)
                if math.isinf(arrived) != math.isinf(a[y, z]):
                    alike = False
                elif not math.isinf(arrived):
                    moved = max(moved, abs(arrived - a[y, z]))
                a[y, z] = arrived
        if alike and moved <= enough:
            return place + 1
    return messages.shape[0]
