"""Loops over a stack of kernels: Φ of each, and how a change passes on around a cycle; plain, for numba."""

from typing import Any

import numpy as np

from pufferfish._core.phi.certificate import prove
from pufferfish._core.phi.simplex import climb

__all__ = ["pass_on", "search_each"]


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
    own = np.zeros(x.shape[0], dtype=np.bool_)
    for n in range(which.shape[0]):
        j = which[n]
        climb(upper[j], lower[j], a[j], x, x_, own, tails[n], heads[n], flows[n], shares[n])
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
