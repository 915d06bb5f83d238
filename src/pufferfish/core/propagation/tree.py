r"""Leakage propagation on forests: every node has at most one parent.

Let the density of a release change by at most a factor e^{d_j(y,y')} when node j goes from state y to y'. A node j
tells its neighbour i through messages, with Φ from :mod:`pufferfish.core.phi.phi` and N(j) the neighbours of j:

.. math::
    A_{j \to i} = d_j + \sum_{k \in N(j) \setminus i} \Phi_{P(X_k|X_j)}(A_{k \to j}) \qquad
    \mathrm{leakage} = \max_i \max_{x \ne x'} d_i + \sum_{j \in N(i)} \Phi_{P(X_j|X_i)}(A_{j \to i})

over pairs x, x' that node i can take and that shall not be told apart. The proof is that of a chain, one neighbour at a
time: given X_i the subtrees that hang on i are independent. Replace x by x' in the density first (d_i), then in the
law of one subtree after the other; each of these averages a function that is Lipschitz in the subtree's records.

Two sweeps, from the leaves to the roots and back, make all messages. The kernel of a child given its parent is the
table; that of a parent given its child is Bayes' rule with marginals that come down the tree, of known relative error.
Pairs with a state that cannot occur have no bound (+∞): nothing reads them, and they are never 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.numbers.compiled import compiled
from pufferfish.core.numbers.inversion import bracket
from pufferfish.core.phi.certificate import phi, prove
from pufferfish.core.phi.first_guess import on_path, passed_on, path_ratio, stars, taken_in
from pufferfish.core.phi.simplex import climb
from pufferfish.core.propagation import tree_loops
from pufferfish.core.propagation.tree_loops import Forest, Kernels
from pufferfish.errors import ModelError

__all__ = ["TreeAttained", "TreePropagation"]

_INTERPRETED = 20_000
"""Work of the search (pairs times states squared) that is interpreted before loading the compiled sweeps pays."""

_KEPT = 2**22
"""Numbers that may be kept from the first sweep for the second; with more, messages are made twice."""

_TOLERANCE = 1e-9
"""How far the sum of a row may be from 1."""

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TreeAttained:
    """Where the leakage of a forest is attained, and what it is made of.

    Parameters
    ----------
    total : float
        The leakage in nats, rounded up; 0 where there is no secret.
    node : int or None
        The node, 0-based; None where there is no secret.
    pair : (int, int)
        The two states.
    own, up, down : float
        What the node itself tells, what all that hangs on its parent tells, what its children's subtrees tell.
    """

    total: float
    node: int | None = None
    pair: tuple[int, int] = (0, 0)
    own: float = 0.0
    up: float = 0.0
    down: float = 0.0


class TreePropagation:
    """Leakage of a forest, for any record-level losses of its nodes.

    Parameters
    ----------
    parents : sequence of int
        Parent of each node, −1 for a root; parents may come after their children.
    tables : sequence of ndarray
        For a root its law, shape (k_i,); for other nodes P(X_i = x | X_parent = y) in rows y, shape (k_parent, k_i).

    Raises
    ------
    ModelError
        If a parent is no node, parents form a circle, tables do not fit, or a row is no distribution.

    Examples
    --------
    >>> flip = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> family = TreePropagation([-1, 0, 0], [np.array([0.5, 0.5]), flip, flip])
    >>> one = 1 - np.eye(2)
    >>> found = family.leakage([one, one, one])
    >>> round(found.total, 4), found.node, round(found.own, 4), round(found.down, 4)
    (2.5523, 0, 1.0, 1.5523)
    >>> family.leakage([one, 0 * one, 0 * one]).down
    0.0
    """

    def __init__(self, parents: Sequence[int], tables: Sequence[NDArray[np.float64]]) -> None:
        self._forest = forest = _forest(parents, tables)
        self._room = int(np.sum(_squares_of_parents(forest)[forest.kept >= 0]))
        self._effort = _effort(forest)
        self._work = 0
        given, n = _flat(tables), len(tables)
        _check_laws(given, forest)
        possible = np.zeros(int(forest.states[n]), dtype=np.bool_)
        values, logs, errors = np.zeros(possible.size), np.zeros(possible.size), np.zeros(n)
        self._kernels = Kernels(possible, *(np.zeros(given.size) for _ in range(4)))
        loops = self._loops(given.size)
        with np.errstate(all="ignore"):
            loops.marginals(forest, given, possible, values, logs, errors)
            loops.kernels_of(forest, given, values, logs, errors, self._kernels)
        self.possible: list[Mask] = np.split(possible.copy(), forest.states[1:-1])

    def leakage(
        self, losses: Sequence[NDArray[np.float64]], secrets: Sequence[NDArray[np.bool_]] | None = None
    ) -> TreeAttained:
        """Bound the leakage.

        Parameters
        ----------
        losses : sequence of (k_i, k_i) ndarray
            Record-level loss of every node: not negative, 0 on the diagonal; +∞ where there is no bound.
        secrets : sequence of (k_i, k_i) ndarray of bool, optional
            Which pairs (x, x') of every node shall not be told apart; all of them where not given. A node without
            such a pair is no secret.

        Raises
        ------
        ModelError
            If shapes do not fit, or a loss is negative, no number, or not 0 from a state to itself.
        """
        return self._worst(self._closed(losses), self._pairs(secrets))

    def least_divisor(
        self,
        losses: Sequence[NDArray[np.float64]],
        epsilon: float,
        start: float,
        secrets: Sequence[NDArray[np.bool_]] | None = None,
        tolerance: float = 1e-6,
    ) -> float:
        """Least number by which the losses must be divided to leak at most epsilon, or ``inf``.

        Within the tolerance, on the private side. ``start`` is a guess.
        """
        closed, pairs = self._closed(losses), self._pairs(secrets)

        def leakage(divisor: float) -> float:
            with np.errstate(over="ignore", under="ignore"):
                divided = np.where(closed > 0, np.nextafter(closed / divisor, np.inf), 0.0)
            return self._worst(divided, pairs).total

        return bracket(leakage, epsilon, start, tolerance=tolerance, from_above=False).enough

    def _worst(self, losses: Vector, secrets: Mask) -> TreeAttained:
        forest, loops = self._forest, self._loops(self._effort)
        below, above, kept = np.zeros(losses.size), np.zeros(losses.size), np.zeros(self._room)
        with np.errstate(all="ignore"):
            loops.sweep_up(forest, self._kernels, losses, below, kept)
            loops.sweep_down(forest, self._kernels, losses, below, above, kept)
            found = loops.worst_of(forest, self._kernels.possible, secrets, losses, below, above)
        node, x, x_ = (int(v) for v in found[:3])
        if node < 0:
            return TreeAttained(0.0)
        at = int(forest.squares[node]) + x * int(forest.sizes[node]) + x_
        return TreeAttained(float(found[3]), node, (x, x_), *(float(part[at]) for part in (losses, above, below)))

    def _closed(self, losses: Sequence[NDArray[np.float64]]) -> Vector:
        """Losses of all nodes, flat, checked and closed by shortest paths."""
        self._check_shapes(losses, "losses")
        flat = _flat(losses)
        squares: Indices = self._forest.squares
        sizes: Indices = self._forest.sizes
        bad = np.flatnonzero(~(flat >= 0))
        if bad.size:
            node = _node_of(bad, squares)
            raise ModelError(f"losses[{node}] holds {flat[bad[0]]:g}, expected numbers of at least 0")
        places = np.arange(int(np.sum(sizes))) - np.repeat(self._forest.states[:-1], sizes)
        diagonal = np.repeat(squares[:-1], sizes) + places * (np.repeat(sizes, sizes) + 1)
        moved = diagonal[flat[diagonal] != 0]
        if moved.size:
            node = _node_of(moved, squares)
            raise ModelError(f"losses[{node}] is not 0 from a state to itself, as every record-level loss is")
        with np.errstate(all="ignore"):
            self._loops(int(np.sum(sizes**3))).close_all(self._forest, flat)
        return flat

    def _pairs(self, secrets: Sequence[NDArray[np.bool_]] | None) -> Mask:
        if secrets is None:
            return np.ones(int(self._forest.squares[-1]), dtype=np.bool_)
        self._check_shapes(secrets, "secrets")
        return np.concatenate([np.asarray(pairs, dtype=np.bool_).ravel() for pairs in secrets])

    def _check_shapes(self, arrays: Sequence[NDArray[Any]], name: str) -> None:
        sizes: list[int] = self._forest.sizes.tolist()
        if len(arrays) != len(sizes):
            raise ModelError(f"{name} has {len(arrays)} entries, expected one for each of the {len(sizes)} nodes")
        for node, (array, k) in enumerate(zip(arrays, sizes, strict=True)):
            if np.shape(array) != (k, k):
                raise ModelError(f"{name}[{node}] has shape {np.shape(array)}, expected ({k}, {k}): pairs of states")

    def _loops(self, work: int) -> "_Loops":
        """Return the loops, compiled once there is enough to do for them."""
        self._work += work
        return _compiled() if _compiled.cache_info().currsize or self._work > _INTERPRETED else _PLAIN


class _Loops(NamedTuple):
    marginals: Any
    kernels_of: Any
    close_all: Any
    sweep_up: Any
    sweep_down: Any
    worst_of: Any


_PLAIN = _Loops(
    tree_loops.marginals,
    tree_loops.kernels_of,
    tree_loops.close_all,
    tree_loops.sweep_up,
    tree_loops.sweep_down,
    tree_loops.worst_of,
)


_CALLED = (
    *(climb, passed_on, taken_in, path_ratio, on_path, stars, prove, phi),
    *(tree_loops.law_of_child, tree_loops.law_of_parent, tree_loops.without_parent),
)


@cache
def _compiled() -> _Loops:
    return _Loops(*compiled(_PLAIN, _CALLED))


def _flat(arrays: Sequence[NDArray[np.float64]]) -> Vector:
    return np.concatenate([np.asarray(array, dtype=np.float64).ravel() for array in arrays])


def _forest(parents: Sequence[int], tables: Sequence[NDArray[np.float64]]) -> Forest:
    """Lay out a forest; see :class:`~pufferfish.core.propagation.tree_loops.Forest`."""
    n, above = len(parents), np.asarray(parents, dtype=np.int64)
    if n == 0 or n != len(tables):
        raise ModelError(f"{n} parents and {len(tables)} tables, expected one of each for every node, at least one")
    if np.any((above < -1) | (above >= n)):
        node = int(np.flatnonzero((above < -1) | (above >= n))[0])
        raise ModelError(f"parents[{node}] is {above[node]}, expected a node from 0 to {n - 1}, or -1 for a root")
    shapes = [np.shape(table) for table in tables]
    sizes = np.array([shape[-1] if shape else 0 for shape in shapes], dtype=np.int64)
    for node, (shape, parent) in enumerate(zip(shapes, above.tolist(), strict=True)):
        expected = (int(sizes[node]),) if parent < 0 else (int(sizes[parent]), int(sizes[node]))
        if shape != expected or 0 in shape:
            rule = "(k,) for a root" if parent < 0 else f"({sizes[parent]}, k), rows = states of its parent {parent}"
            raise ModelError(f"tables[{node}] has shape {shape}, expected {rule}")
    counts = np.bincount(above[above >= 0], minlength=n)
    firsts = _offsets(counts)
    children = np.argsort(above, kind="stable")[n - int(firsts[-1]) :].astype(np.int64)
    order: list[int] = np.flatnonzero(above < 0).tolist()
    starts, listed = firsts.tolist(), children.tolist()
    for node in order:  # grows: children follow their parents
        order.extend(listed[starts[node] : starts[node + 1]])
    if len(order) < n:
        node = min(set(range(n)) - set(order))
        raise ModelError(f"the parents of node {node} lead in a circle and to no root; a forest has none")
    rows = np.where(above < 0, 1, sizes[above])
    # the messages that take least room are kept
    room = np.where(counts > 1, counts * sizes**2, 0)
    cheapest = np.argsort(room, kind="stable")
    keeps = np.zeros(n, dtype=np.bool_)
    keeps[cheapest] = np.cumsum(room[cheapest]) <= _KEPT
    seated = (above >= 0) & keeps[above] & (counts[above] > 1)
    kept = np.where(seated, _offsets(np.where(seated, rows**2, 0))[:-1], -1)
    states, squares, at = (_offsets(lengths) for lengths in (sizes, sizes**2, rows * sizes))
    return Forest(above, np.array(order, dtype=np.int64), sizes, states, squares, at, firsts, children, kept)


def _check_laws(tables: Vector, forest: Forest) -> None:
    """Rows have to be distributions: the loops rely on it that every state that can occur is followed by one."""
    widths = np.repeat(forest.sizes, np.diff(forest.tables) // forest.sizes)
    starts = _offsets(widths)[:-1]
    sums = np.add.reduceat(tables, starts)
    fine = (np.minimum.reduceat(tables, starts) >= 0) & (np.abs(sums - 1) <= _TOLERANCE)
    if not np.all(fine):
        bad = int(np.argmin(fine))
        node = _node_of(starts[bad:], forest.tables)
        row = (int(starts[bad]) - int(forest.tables[node])) // int(forest.sizes[node])
        raise ModelError(
            f"row {row} of tables[{node}] sums to {sums[bad]:g}, expected numbers of at least 0 that sum to 1 "
            f"(tolerance {_TOLERANCE:g}); rows are states of the parent"
        )


def _offsets(lengths: Indices) -> Indices:
    """Where things of given lengths begin when they lie one after another, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _node_of(places: Indices, squares: Indices) -> int:
    """Return the node to which the first of some places in a flat array of matrices belongs."""
    return int(np.searchsorted(squares, int(places[0]), side="right")) - 1


def _squares_of_parents(forest: Forest) -> Indices:
    """Squared numbers of states of the nodes' parents (0 for a root)."""
    squares: Indices = np.where(forest.parents < 0, 0, forest.sizes[forest.parents] ** 2)
    return squares


def _effort(forest: Forest) -> int:
    """Work of two sweeps: pairs times states squared."""
    return 2 * int(np.sum(_squares_of_parents(forest).astype(np.float64) * forest.sizes**2))
