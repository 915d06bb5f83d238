"""Factors that the checker of certificates allows by its own rule (docs/proofs/certificate.md), in doubles.

A factor c is enough for rows p and q where what p − c q has too much of can be moved, along the cheapest pairs first,
to where it has too little; a move from y to z costs R(y, z). What is found here only proposes: the checker does the
same in whole numbers. Plain loops, for numba.
"""

from typing import Any

import numpy as np

from pufferfish._core.numbers.compiled import Loop

__all__ = ["least_factors"]

_NOTHING = 1e-16
"""What is left over by rounding alone."""

_LARGEST = 1e12
"""Factors that are none."""


def _enough(p: Any, q: Any, factor: float, tails: Any, heads: Any, costs: Any, left: Any) -> bool:
    """Whether a factor is enough for two rows; ``left`` is written."""
    sources = 0
    for y in range(p.shape[0]):
        left[y] = p[y] - factor * q[y]
        if left[y] > _NOTHING:
            sources += 1
    for move in range(tails.shape[0]):
        if sources == 0:
            return True
        y, z = tails[move], heads[move]
        if left[y] > _NOTHING and left[z] < 0:
            room = -left[z] / costs[move]
            if left[y] <= room:
                left[z] += left[y] * costs[move]
                left[y] = 0.0
                sources -= 1
            else:
                left[y] -= room
                left[z] = 0.0
                if left[y] <= _NOTHING:
                    sources -= 1
    return sources == 0


def _find(rows: Any, x: Any, x_: Any, tails: Any, heads: Any, costs: Any, found: Any) -> None:
    """Write the least factor found for each pair of rows; ``found`` holds guesses above 1."""
    left = np.empty(rows.shape[1])
    for pair in range(x.shape[0]):
        p, q = rows[x[pair]], rows[x_[pair]]
        low, high = 1.0, found[pair]
        if _enough(p, q, 1.0, tails, heads, costs, left):
            found[pair] = 1.0
            continue
        while high <= _LARGEST and not _enough(p, q, high, tails, heads, costs, left):
            low = high
            high = 1.0 + 2.0 * (high - 1.0)
        if high > _LARGEST:
            found[pair] = np.inf
            continue
        while high - low > 1e-13 * high:
            middle = 0.5 * (low + high)
            if _enough(p, q, middle, tails, heads, costs, left):
                high = middle
            else:
                low = middle
        found[pair] = high


_find_all = Loop(_find)


def least_factors(rows: Any, pairs: Any, bound: Any, alive: Any, guess: Any) -> Any:
    """Return the least factors found of pairs of rows, for vectors v with v(y) ≤ bound(y, z) v(z).

    Parameters
    ----------
    rows : (n, k) ndarray
        Laws.
    pairs : (m, 2) ndarray of int
        Which two rows each.
    bound : (k, k) ndarray
        Factors R.
    alive : (a,) ndarray of int
        States that have a part.
    guess : (m,) ndarray
        Factors to begin with, above 1.

    Returns
    -------
    (m,) ndarray
        Infinite where none was found.

    Examples
    --------
    >>> rows, bound = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([[1.0, 1.5], [1.5, 1.0]])
    >>> pairs, guess = np.array([[0, 1], [1, 0]]), np.array([2.0, 2.0])
    >>> least_factors(rows, pairs, bound, np.arange(2), guess).round(6).tolist()
    [1.208333, 1.238095]
    """
    costs = bound[np.ix_(alive, alive)]
    tail, head = np.nonzero(~np.eye(len(alive), dtype=np.bool_))
    order = np.argsort(costs[tail, head], kind="stable")
    tails, heads, found = alive[tail[order]], alive[head[order]], np.maximum(guess, 1 + 1e-9)
    work = 40 * len(pairs) * len(tails)
    x, x_ = (np.ascontiguousarray(column) for column in np.asarray(pairs).T)
    _find_all(work, rows, x, x_, tails, heads, costs[tail, head][order], found)
    return found
