"""Configurations of a few nodes that can occur, how they lie in each other, and laws of some given others."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.networks.cluster_laws import ClusterLaws
from pufferfish.core.networks.junction_tree import Scope
from pufferfish.core.numbers.rounding import SMALLEST, UNIT

__all__ = ["Configurations", "bounds_of"]

Indices = NDArray[np.int64]
Vector = NDArray[np.float64]

_COUNTED = 1 << 20
"""Scopes with more configurations are not looked at one by one: all of them count as possible."""

_LOOSE = 1e-3
"""Laws whose relative error may be larger are taken as unknown."""


class _Listed(NamedTuple):
    """Possible configurations of a scope: their places in the array of all, their logarithms, and the error of these.

    ``full`` says that all of them are possible.
    """

    places: Indices
    logs: NDArray[np.float64]
    error: float
    full: bool


class Configurations:
    """Configurations of scopes that a bucket holds.

    Parameters
    ----------
    laws : ClusterLaws
        Laws of the buckets.
    sizes : sequence of int
        Number of states of every node.
    """

    def __init__(self, laws: ClusterLaws, sizes: Sequence[int]) -> None:
        self._laws = laws
        self._sizes = sizes
        self._known: dict[Scope, _Listed] = {}
        self._maps: dict[tuple[tuple[int, bool], ...], Indices] = {}

    def count(self, bucket: int, scope: Scope) -> int:
        """Return how many configurations a scope can have, or how many there are where they are too many to list."""
        if scope in self._known:
            return self._known[scope].places.size
        total = math.prod(self._sizes[node] for node in scope)
        return total if total > _COUNTED else self._listed(bucket, scope).places.size

    def possible(self, bucket: int, node: int) -> Indices:
        """Return the states that a node can have."""
        return self._listed(bucket, (node,)).places

    def map(self, bucket: int, scope: Scope, part: Scope) -> Indices:
        """Return for every possible configuration of a scope which one of a part of it that is; shape (n,).

        Scopes of the same sizes whose configurations are all possible have one and the same map.
        """
        listed, within = self._listed(bucket, scope), self._listed(bucket, part)
        shape = tuple((self._sizes[node], node in part) for node in scope)
        if not (listed.full and within.full):
            return np.searchsorted(within.places, _places_of(listed.places, shape))
        if shape not in self._maps:
            self._maps[shape] = _places_of(listed.places, shape)
        return self._maps[shape]

    def law(self, bucket: int, rows: Scope, columns: Scope) -> tuple[NDArray[np.float64], float]:
        """Return log P(columns | rows) on the configurations that can occur, shape (r, n), and a bound on its error.

        Columns may hold nodes of the rows too.
        """
        both = tuple(sorted({*rows, *columns}))
        logs, error = self.conditional(bucket, both, rows)
        found = np.full((self.count(bucket, rows), self.count(bucket, columns)), -np.inf)
        found[self.map(bucket, both, rows), self.map(bucket, both, columns)] = logs
        return found, error

    def conditional(self, bucket: int, scope: Scope, given: Scope) -> tuple[NDArray[np.float64], float]:
        """Return log P(scope | given) of every possible configuration of a scope that holds what is given."""
        listed, above = self._listed(bucket, scope), self._listed(bucket, given)
        return listed.logs - above.logs[self.map(bucket, scope, given)], listed.error + above.error

    def _listed(self, bucket: int, scope: Scope) -> _Listed:
        found = self._known.get(scope)
        if found is None:
            logs, error = self._laws.of(bucket, scope)
            flat = logs.ravel()
            places = np.flatnonzero(flat > -np.inf)
            full = places.size == flat.size
            found = self._known[scope] = _Listed(places, flat if full else flat[places], error, full)
        return found


def _places_of(places: Indices, shape: Sequence[tuple[int, bool]]) -> Indices:
    """Return where configurations lie in the array of all configurations of a part of their nodes.

    ``shape`` holds for every node its number of states, and whether it is in the part.
    """
    found: Indices = np.zeros(places.size, dtype=np.int64)
    left, step = places, 1
    for size, kept in reversed(shape):
        left, state = np.divmod(left, size)
        if kept:
            found += state * step
            step *= size
    return found


def bounds_of(logs: NDArray[np.float64], errors: NDArray[np.float64], starts: Indices) -> tuple[Vector, Vector]:
    """Return upper and lower bounds on probabilities given by their logarithms; −∞ is an exact zero.

    Parameters
    ----------
    logs : (n,) ndarray
        Logarithms of many laws, one after another.
    errors : (m,) ndarray
        By how much those of each law may be off.
    starts : (m,) ndarray of int
        Where each law begins; none is empty.
    """
    if not starts.size:
        return np.zeros(0), np.zeros(0)
    finite = logs > -np.inf
    largest = np.maximum.reduceat(np.where(finite, np.abs(logs), 0.0), starts)
    slacks = errors + UNIT * (12 + 8 * largest)
    slack = np.repeat(slacks, np.diff([*starts, logs.size]))
    loose = slack > _LOOSE
    values = np.exp(logs)
    slack = np.where(loose, 0.0, slack)
    upper = np.where(finite, np.clip(values * (1 + 2 * slack), SMALLEST, None), 0.0)
    lower = np.where(values > SMALLEST, values * (1 - 2 * slack), 0.0)
    # of a law that is not known well enough only its zeros count
    return np.where(loose & finite, 1.0, upper), np.where(loose, 0.0, lower)
