"""Sets of counts that tell a histogram: all bins, all but one, trees on the states, and splits of ordered states.

A set is a matrix of rows of 0 and 1: which states a measurement counts. Together with the number of records each of
them tells the count of every state.

- *bins*: every state by itself; the number of records is not needed.
- a *tree* on the states: for every edge the count on its one side. A star is all bins but the middle of the star; a
  path is all prefixes, a cumulative distribution.
- *splits* of ordered states: the count from where a stretch begins to where it is split, then the same for both halves.
  Always split off the last state: prefixes. Always split off the first: all bins but the last. Always in the middle: a
  dyadic tree, in which a prefix is a sum of few.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["all_trees", "bins", "prefixes", "split", "star", "tree"]

Rows = NDArray[np.int64]


def bins(k: int) -> Rows:
    """Return every state by itself."""
    return np.eye(k, dtype=np.int64)


def star(k: int, middle: int) -> Rows:
    """Return every state by itself but one."""
    return np.delete(bins(k), middle, axis=0)


def tree(edges: Sequence[tuple[int, int]], k: int) -> Rows:
    """Return for every edge of a tree on the states the count on the side away from state 0.

    Examples
    --------
    >>> tree([(0, 1), (1, 2)], 3)
    array([[0, 1, 1],
           [0, 0, 1]])
    """
    near: dict[int, list[int]] = {x: [] for x in range(k)}
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    order, parent = [0], {0: 0}
    for x in order:
        for y in near[x]:
            if y not in parent:
                parent[y] = x
                order.append(y)
    below = np.eye(k, dtype=np.int64)
    for x in reversed(order[1:]):
        below[parent[x]] += below[x]
    return below[order[1:]]


def all_trees(k: int) -> Iterator[Rows]:
    """Yield all k^(k−2) trees on the states, by Prüfer's codes."""
    if k == 2:
        yield tree([(0, 1)], 2)
        return
    for code in itertools.product(range(k), repeat=k - 2):
        degree = [1 + code.count(x) for x in range(k)]
        edges: list[tuple[int, int]] = []
        for x in code:
            leaf = degree.index(1)
            edges.append((leaf, x))
            degree[leaf] -= 1
            degree[x] -= 1
        first, last = (x for x in range(k) if degree[x] == 1)
        yield tree([*edges, (first, last)], k)


def split(k: int, where: Callable[[int, int], int]) -> Rows:
    """Return the counts of a splitting of ordered states.

    Parameters
    ----------
    k : int
        Number of states.
    where : callable
        The last state of the first part of a stretch, given its first and last state.

    Examples
    --------
    >>> split(4, lambda first, last: (first + last) // 2)
    array([[1, 1, 0, 0],
           [1, 0, 0, 0],
           [0, 0, 1, 0]])
    """
    rows: list[NDArray[np.int64]] = []
    waiting = [(0, k - 1)]
    while waiting:
        first, last = waiting.pop()
        if first == last:
            continue
        at = where(first, last)
        row = np.zeros(k, dtype=np.int64)
        row[first : at + 1] = 1
        rows.append(row)
        waiting += [(at + 1, last), (first, at)]
    return np.array(rows)


def prefixes(k: int) -> Rows:
    """Return the counts of the first state, of the first two, and so on, but that of all."""
    return np.tril(np.ones((k, k), dtype=np.int64))[:-1]
