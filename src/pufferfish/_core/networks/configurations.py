"""Configurations of a few nodes that can occur, how they lie in each other, and laws of some given others."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pufferfish._core import Array, Mask, Vector, Whole
from pufferfish._core.networks.cluster_laws import ClusterLaws
from pufferfish._core.networks.junction_tree import Scope
from pufferfish._core.numbers.rounding import SMALLEST, UNIT

Places = tuple[int, ...]

_COUNTED = 1 << 20  # scopes with more configurations are not looked at one by one: all of them count as possible
_LOOSE = 1e-3  # laws whose relative error may be larger are taken as unknown


class _Listed(NamedTuple):
    """Possible configurations of a scope: their places in the array of all, and whether they are all of them."""

    places: Whole
    full: bool


class Pattern:
    """Which configurations of a bucket can occur, flat, and all where ``occurs`` is None; many buckets may share one.

    ``sizes`` are the numbers of states of the bucket's nodes; scopes are told by where their nodes stand in the
    bucket's scope, ascending.
    """

    def __init__(self, sizes: tuple[int, ...], occurs: Mask | None) -> None:
        self._sizes = sizes
        self._occurs = occurs
        self._known: dict[Places, _Listed] = {}
        self._maps: dict[tuple[Places, Places], Whole] = {}

    def listed(self, scope: Places) -> _Listed:
        """Return the possible configurations of a scope."""
        listing = self._known.get(scope)
        if listing is None:
            if self._occurs is None:
                listing = _Listed(np.arange(math.prod([self._sizes[axis] for axis in scope])), True)
            else:
                others = tuple(axis for axis in range(len(self._sizes)) if axis not in scope)
                occurs = self._occurs.reshape(self._sizes).any(axis=others).ravel()
                places = np.flatnonzero(occurs)
                listing = _Listed(places, places.size == occurs.size)
            self._known[scope] = listing
        return listing

    def map(self, scope: Places, part: Places) -> Whole:
        """Return for every possible configuration of a scope which one of a part of it that is; shape (n,)."""
        places = self._maps.get((scope, part))
        if places is None:
            within = self.listed(part)
            places = _places_of(self.listed(scope).places, [(self._sizes[axis], axis in part) for axis in scope])
            if not within.full:
                places = np.searchsorted(within.places, places)
            self._maps[scope, part] = places
        return places


class Configurations:
    """Configurations of scopes that a bucket holds: which can occur is the same in every bucket that holds a scope."""

    def __init__(self, laws: ClusterLaws, sizes: Sequence[int]) -> None:
        self._laws = laws
        self._sizes = sizes
        self._counts: dict[Scope, int] = {}
        self._known: dict[Scope, tuple[Vector, float]] = {}
        known: dict[Any, Pattern] = {}
        self._patterns: list[Pattern] = []
        for shape, occurs in zip(laws.shapes, laws.can_occur(), strict=True):
            key = shape if occurs is None else (shape, np.packbits(occurs).tobytes())
            if key not in known:
                known[key] = Pattern(shape, occurs)
            self._patterns.append(known[key])

    def within(self, bucket: int, scope: Scope) -> tuple[Pattern, Places]:
        """Return the pattern of a bucket, and where the nodes of a scope stand in it."""
        return self._patterns[bucket], tuple(map(self._laws.scopes[bucket].index, scope))

    def count(self, bucket: int, scope: Scope) -> int:
        """Return how many configurations a scope can have, or how many there are where they are too many to list."""
        count = self._counts.get(scope)
        if count is None:
            count = math.prod([self._sizes[node] for node in scope])
            if count <= _COUNTED:
                pattern, places = self.within(bucket, scope)
                count = pattern.listed(places).places.size
            self._counts[scope] = count
        return count

    def possible(self, bucket: int, node: int) -> Whole:
        """Return the states that a node can have."""
        pattern, places = self.within(bucket, (node,))
        return pattern.listed(places).places

    def map(self, bucket: int, scope: Scope, part: Scope) -> Whole:
        """Return for every possible configuration of a scope which one of a part of it that is; shape (n,).

        Buckets of one pattern have one and the same map.
        """
        (pattern, places), (_, within) = self.within(bucket, scope), self.within(bucket, part)
        return pattern.map(places, within)

    def law(self, buckets: Sequence[int], rows: Places, columns: Places) -> tuple[Array, Vector]:
        """Return log P(columns | rows) in m buckets of one pattern, on the configurations that can occur.

        Rows and columns are told by where the nodes stand in the scopes of these buckets; columns may hold nodes of
        the rows too. Returned are logarithms (r, m, n), and errors (m,): by how much those of each bucket may be off.
        """
        pattern, both = self._patterns[buckets[0]], tuple(sorted({*rows, *columns}))
        (logs, errors), (above, its) = self._of(buckets, both), self._of(buckets, rows)
        to_rows, to_columns = pattern.map(both, rows), pattern.map(both, columns)
        shape = pattern.listed(rows).places.size, len(buckets), pattern.listed(columns).places.size
        law = np.full(shape, -np.inf)
        law[to_rows, :, to_columns] = (logs - above[:, to_rows]).T
        return law, errors + its

    def conditional(self, bucket: int, scope: Scope, given: Scope) -> tuple[Vector, float]:
        """Return log P(scope | given) of every possible configuration of a scope that holds what is given."""
        for part in (scope, given):
            if part not in self._known:
                logs, errors = self._of([bucket], self.within(bucket, part)[1])
                self._known[part] = logs[0], float(errors[0])
        (logs, error), (above, its) = self._known[scope], self._known[given]
        return logs - above[self.map(bucket, scope, given)], error + its

    def _of(self, buckets: Sequence[int], scope: Places) -> tuple[Array, Vector]:
        """Return the logarithms of possible configurations of a scope in many buckets of one pattern, with errors."""
        logs, errors = self._laws.of(buckets, scope)
        listed = self._patterns[buckets[0]].listed(scope)
        return logs if listed.full else logs[:, listed.places], errors


def _places_of(places: Whole, shape: Sequence[tuple[int, bool]]) -> Whole:
    """Return where configurations lie in the array of all configurations of a part of their nodes.

    ``shape`` holds for every node its number of states, and whether it is in the part.
    """
    part_places: Whole = np.zeros(places.size, dtype=np.int64)
    left, step = places, 1
    for size, kept in reversed(shape):
        left, state = np.divmod(left, size)
        if kept:
            part_places += state * step
            step *= size
    return part_places


def bounds_of(logs: Array, errors: Array, starts: Whole) -> tuple[Vector, Vector]:
    """Return upper and lower bounds on probabilities given by their logarithms; −∞ is an exact zero.

    The logarithms (n,) of m laws lie one after another; ``errors`` says by how much those of each may be off,
    ``starts`` where each begins. None is empty.
    """
    if not starts.size:
        return np.zeros(0), np.zeros(0)
    finite = logs > -np.inf
    largest = np.maximum.reduceat(np.where(finite, np.abs(logs), 0.0), starts)
    slacks = errors + UNIT * (12 + 8 * largest)
    slack = np.repeat(slacks, np.diff(starts, append=logs.size))
    loose = slack > _LOOSE
    values = np.exp(logs)
    slack = np.where(loose, 0.0, slack)
    upper = np.where(finite, np.clip(values * (1 + 2 * slack), SMALLEST, None), 0.0)
    lower = np.where(values > SMALLEST, values * (1 - 2 * slack), 0.0)
    # of a law that is not known well enough only its zeros count
    return np.where(loose & finite, 1.0, upper), np.where(loose, 0.0, lower)
