"""Laws of the clusters of a junction tree, in logarithms, with bounds on their errors.

Upwards, every bucket multiplies the tables given to it with what its children send, and sums its own node out: that is
λ(S), sent to its parent; divided by λ it is P(node | S). Downwards, P(bucket) is P(node | S) times P(S), which the
parent's law gives. Logarithms hold probabilities like 1e-300 times 1e-300, and an exact zero stays −∞.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pufferfish._core import Array, Mask, Vector, Whole
from pufferfish._core.networks.junction_tree import Bucket, Scope, Table
from pufferfish._core.numbers.compiled import Loops
from pufferfish._core.numbers.rounding import SMALLEST, UNIT

MOST_ENTRIES = 1 << 23  # entries of the largest bucket whose law is made: 64 megabytes


class ClusterLaws:
    """Laws of the buckets of a network, parents after their children.

    Every table, its nodes with one axis each, fits into a bucket. If ``normalised``, every table is the law of its last
    node given the others; otherwise the law is the tables' product divided by its sum.
    """

    def __init__(
        self, buckets: Sequence[Bucket], tables: Sequence[Table], sizes: Sequence[int], *, normalised: bool = True
    ) -> None:
        self.scopes = [bucket.scope for bucket in buckets]
        self.shapes = [tuple([sizes[v] for v in scope]) for scope in self.scopes]
        self._starts = _firsts(math.prod(shape) for shape in self.shapes)
        self._logs, self._errors = np.zeros(self._starts[-1]), np.zeros(len(buckets))
        # every table goes to the bucket in which the first of its nodes is eliminated: it holds all of them
        place = {bucket.node: b for b, bucket in enumerate(buckets)}
        homes = sorted((min([place[v] for v in nodes]), t) for t, (nodes, _) in enumerate(tables))
        ordered = [tables[t] for _, t in homes]
        with np.errstate(divide="ignore"):
            factors = np.log(np.concatenate([np.zeros(0), *(table.ravel() for _, table in ordered)]))
        _LOOPS.at(self._logs.size).visit(
            *_joined(self.scopes),
            *_joined([bucket.separator for bucket in buckets]),
            np.array([bucket.parent for bucket in buckets], dtype=np.int64),
            self._starts,
            np.array(sizes, dtype=np.int64),
            np.array([bucket.node for bucket in buckets], dtype=np.int64),
            np.array([b for b, _ in homes], dtype=np.int64),
            *_joined([nodes for nodes, _ in ordered]),
            factors,
            _firsts(table.size for _, table in ordered),
            normalised,
            self._logs,
            self._errors,
        )

    def of(self, buckets: Sequence[int], kept: Sequence[int]) -> tuple[Array, Array]:
        """Return laws of the nodes at ``kept`` places of m buckets of one shape: logarithms (m, n), errors (m,)."""
        shape, starts = self.shapes[buckets[0]], self._starts[list(buckets)]
        n = math.prod(shape)
        if len(buckets) == 1:
            logs = self._logs[starts[0] : starts[0] + n][None]
        else:
            logs = self._logs[starts[:, None] + np.arange(n)]
        errors = self._errors[list(buckets)]
        axes = tuple(axis + 1 for axis in range(len(shape)) if axis not in kept)
        if not axes:
            return logs, errors
        most = _largest(logs)
        logs = logs.reshape(-1, *shape)
        top = logs.max(axis=axes, keepdims=True)
        top[top == -np.inf] = 0.0
        with np.errstate(divide="ignore", under="ignore"):
            sums = np.log(np.exp(logs - top).sum(axis=axes)) + top.squeeze(axes)
        sums = sums.reshape(len(buckets), -1)
        return sums, errors + UNIT * (n // sums.shape[1] + 16 + 4 * most)

    def can_occur(self) -> list[Mask | None]:
        """Return for every bucket which of its configurations can occur, flat; None for all of them."""
        occurs = self._logs > -np.inf
        full = np.logical_and.reduceat(occurs, self._starts[:-1]) if occurs.size else np.zeros(0, dtype=np.bool_)
        return [
            None if all_of_them else occurs[a:b]
            for all_of_them, a, b in zip(full, self._starts, self._starts[1:], strict=False)
        ]


def _largest(logs: Array) -> Array:
    """Return the largest finite logarithm of each row in absolute value."""
    return np.maximum(-np.min(logs, axis=1, where=logs > -np.inf, initial=0.0), np.max(logs, axis=1, initial=0.0))


def _firsts(counts: Iterable[int]) -> Whole:
    """Return where parts of such lengths begin that lie one after another, and where the last ends."""
    return np.array([0, *counts], dtype=np.int64).cumsum()


def _joined(scopes: Sequence[Scope]) -> tuple[Whole, Whole]:
    """Return the nodes of all scopes, one after another, and where each begins."""
    return np.array([v for scope in scopes for v in scope], dtype=np.int64), _firsts(map(len, scopes))


def visit(
    nodes: Any,
    firsts: Any,
    separators: Any,
    separator_firsts: Any,
    parents: Any,
    starts: Any,
    sizes: Any,
    eliminated: Any,
    homes: Any,
    table_nodes: Any,
    table_firsts: Any,
    factors: Any,
    factor_starts: Any,
    normalised: bool,
    logs: Any,
    errors: Any,
) -> None:
    """Make the laws of all buckets, upwards and down again: plain loops, so that numba can compile them.

    What comes in parts lies one after another, with where each part begins. ``eliminated`` is the node of every bucket,
    ``homes`` the bucket of each table, ascending. Written into zeros are ``logs`` of the laws, and ``errors`` of these.
    """
    buckets = parents.shape[0]
    conditional = np.zeros(buckets, dtype=np.bool_)  # given nothing but the law of its node given the others
    for t in range(homes.shape[0]):
        b = homes[t]
        scope, its = nodes[firsts[b] : firsts[b + 1]], table_nodes[table_firsts[t] : table_firsts[t + 1]]
        logs[starts[b] : starts[b + 1]] += factors[factor_starts[t] + within(scope, its, sizes)]
        # a row sums to 1 up to rounding, and so does what it stands for
        errors[b] += UNIT * (sizes[its[-1]] + 8)
        alone = (t == 0 or homes[t - 1] != b) and (t == homes.shape[0] - 1 or homes[t + 1] != b)
        conditional[b] = normalised and alone and its[-1] == eliminated[b] and its.shape[0] == scope.shape[0]
    for b in range(buckets):
        law = logs[starts[b] : starts[b + 1]]
        if conditional[b]:  # it sums to 1, and the parent need not be told
            errors[b] += UNIT * largest(law)
            continue
        scope, separator = nodes[firsts[b] : firsts[b + 1]], separators[separator_firsts[b] : separator_firsts[b + 1]]
        errors[b] += UNIT * 4 * largest(law)
        places = within(scope, separator, sizes)
        sums, above = summed(law, errors[b], places, states_of(separator, sizes))
        parent = parents[b]
        if parent >= 0:
            upwards = within(nodes[firsts[parent] : firsts[parent + 1]], separator, sizes)
            logs[starts[parent] : starts[parent + 1]] += sums[upwards]
            errors[parent] += above
            conditional[parent] = False
        law -= np.where(sums == -np.inf, 0.0, sums)[places]
        errors[b] += above + UNIT * 4 * largest(law)
    for b in range(buckets - 1, -1, -1):
        parent = parents[b]
        if parent < 0:
            continue
        separator = separators[separator_firsts[b] : separator_firsts[b + 1]]
        places = within(nodes[firsts[parent] : firsts[parent + 1]], separator, sizes)
        states = states_of(separator, sizes)
        sums, above = summed(logs[starts[parent] : starts[parent + 1]], errors[parent], places, states)
        law = logs[starts[b] : starts[b + 1]]
        law += sums[within(nodes[firsts[b] : firsts[b + 1]], separator, sizes)]
        errors[b] += above + UNIT * 4 * largest(law)


def states_of(scope: Any, sizes: Any) -> int:
    """Return the number of configurations of a scope."""
    states = 1
    for v in scope:
        states *= sizes[v]
    return states


def within(scope: Any, part: Any, sizes: Any) -> Any:
    """Return for every configuration of a scope which one of some of its nodes, in any order, it holds."""
    every = np.arange(states_of(scope, sizes))
    places = np.zeros_like(every)
    step = 1
    for i in range(part.shape[0] - 1, -1, -1):
        size, repeated, j = sizes[part[i]], 1, scope.shape[0] - 1
        while scope[j] != part[i]:
            repeated *= sizes[scope[j]]
            j -= 1
        places += every // repeated % size * step
        step *= size
    return places


def summed(logs: Any, error: float, places: Any, states: int) -> tuple[Any, float]:
    """Return logarithms of sums of what goes to the same place, and a bound on their error."""
    top, sums = np.full(states, -np.inf), np.zeros(states)
    if states == logs.shape[0]:  # one addend each
        top[places] = logs
        return top, error
    for i in range(logs.shape[0]):
        top[places[i]] = max(top[places[i]], logs[i])
    for i in range(logs.shape[0]):
        if logs[i] > -np.inf:
            sums[places[i]] += math.exp(logs[i] - top[places[i]])
    for s in range(states):
        top[s] += math.log(sums[s]) if sums[s] > 0.0 else 0.0
    return top, error + UNIT * (logs.shape[0] // states + 16 + 4 * largest(logs))


def largest(logs: Any) -> float:
    """Return the largest finite logarithm in absolute value."""
    magnitude = 0.0
    for log in logs:
        if log > -np.inf:
            magnitude = max(magnitude, abs(log))
    return magnitude


_LOOPS = Loops(visit, after=20_000)


# -- Configurations that can occur, how they lie in each other, and laws of some given others -------------------------

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
        """Return for every possible configuration of a scope which one of a part it holds."""
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
    """Return where configurations lie in the array of a part; ``shape`` has each node's states, and if it is kept."""
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
