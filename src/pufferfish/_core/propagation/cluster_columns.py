r"""Leakage propagation about several nodes S of a network together: what a release tells of their joint value.

Given S the other nodes fall into **parts** R_1, R_2, … that are independent of each other: take S out of the moral
graph of all that matters, and a part is what still hangs together. A part depends on S through its **border** B_j
alone, the nodes of S that are next to it. For joint values z and z' that can occur, with record-level losses d,

.. math::
    \log \frac{E[m | S = z]}{E[m | S = z']} \le
    \sum_{v \in S} d_v(z_v, z'_v) + \sum_j M_j(z_{B_j}, z'_{B_j}),

where M_j bounds what the losses of R_j tell of its border: the message of :mod:`pufferfish._core.propagation.clusters`
to a cluster that holds B_j, in the network of R_j and its border alone. Nodes of R_j keep their tables, and so do those
of the border that have a parent in R_j; others of the border get a uniform law. docs/proofs/stretches.md has the proof.

The largest sum is taken over all pairs of joint values that can occur, or, where these are too many, every term's
largest entry. Where a part's clusters are too large, M_j is the sum of the largest losses in R_j.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import BoundedCache
from pufferfish._core.networks.cluster_laws import MOST_ENTRIES, ClusterLaws, Table
from pufferfish._core.networks.configurations import Configurations
from pufferfish._core.networks.junction_tree import Bucket, Scope, buckets_of
from pufferfish._core.numbers.rounding import UNIT, float_up, or_infinite
from pufferfish._core.propagation.cluster_plan import Term
from pufferfish._core.propagation.clusters import (
    SECONDS_OF_ALTERNATIVES,
    ClusterSweep,
    closed_losses,
    with_ancestors,
)

MOST_VALUES = 1_500  # joint values of which all pairs are looked at
_KEPT = 4  # plans that are kept, for losses that are 0 at other nodes

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ColumnsAttained:
    """Where the leakage of several nodes together is attained, and what it is made of, in nats."""

    total: float  # rounded up; 0 where there is no secret
    is_secret: bool  # whether the nodes have two joint values, or it is not known how many they have
    pair: tuple[Scope, Scope] | None = None  # two joint values; None where each term's largest entry was taken
    own: float = 0.0  # what the nodes themselves tell
    # and for every part of the other nodes its border, and what the part tells about it
    parts: tuple[tuple[Scope, float], ...] = ()


class ColumnsPropagation:
    """Leakage of several nodes of a Bayesian network together, for any record-level losses.

    Parameters
    ----------
    tables : sequence of (nodes, ndarray)
        For every node j, in order, P(X_j | parents): axes for its parents, then for j; rows are distributions.
    sizes : sequence of int
        Number of states of every node.
    columns : sequence of int
        The nodes that are secret together, each once.

    Examples
    --------
    Of two fair coins and their sum modulo 2, which is read through noise, neither coin tells anything alone:

    >>> coin, xor = np.array([0.5, 0.5]), np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]])
    >>> tables = [((0,), coin), ((1,), coin), ((0, 1, 2), xor)]
    >>> one, nothing = 1 - np.eye(2), np.zeros((2, 2))
    >>> both = ColumnsPropagation(tables, [2, 2, 2], [0, 1]).leakage([nothing, nothing, one])
    >>> round(both.total, 5), both.pair, [border for border, _ in both.parts]
    (0.77614, ((0, 1), (0, 0)), [(0, 1)])
    >>> ColumnsPropagation(tables, [2, 2, 2], [0]).leakage([nothing, nothing, one]).total < 1e-12
    True
    """

    def __init__(self, tables: Sequence[Table], sizes: Sequence[int], columns: Sequence[int]) -> None:
        self._tables = tables
        self._sizes = [*sizes, 1]  # the last one is a mark with one state: a bucket holds it and a given set of nodes
        self._mark = len(sizes)
        self._columns = tuple(sorted(columns))
        self._parts: BoundedCache[list[_Part]] = BoundedCache(_KEPT)

    def leakage(self, losses: Sequence[Matrix]) -> ColumnsAttained:
        """Bound the leakage, for losses as in :meth:`.clusters.ClusterPropagation.leakage`."""
        closed = closed_losses(losses, self._sizes[: self._mark])
        values = self._values
        if values is not None and len(values) < 2:
            return ColumnsAttained(0.0, False)
        lossy = tuple(v for v, loss in enumerate(closed) if loss.any())
        parts = self._parts.of(lossy, lambda: self._parted(lossy))
        told = [part.told(closed) for part in parts]
        own = [(v, closed[v]) for v in self._columns if v in lossy]
        # no more than this, whatever the values are: exact, where it can be held
        largest = [float(loss.max()) for _, loss in own] + [float(matrix.max()) for matrix in told]
        ceiling = _exact_sum(largest)
        if values is None:
            border = tuple(zip((part.border for part in parts), largest[len(own) :], strict=True))
            return ColumnsAttained(ceiling, True, None, math.fsum(largest[: len(own)]), border)
        places = [values[:, self._columns.index(v)] for v, _ in own]
        terms = [(loss, x) for (_, loss), x in zip(own, places, strict=True)]
        terms += [(matrix, part.rows(values, self._columns)) for part, matrix in zip(parts, told, strict=True)]
        total = np.zeros((len(values),) * 2)
        for matrix, x in terms:
            total += matrix[np.ix_(x, x)]
        np.fill_diagonal(total, -1.0)
        a, b = (int(i) for i in np.unravel_index(int(np.argmax(total)), total.shape))
        found = [float(matrix[x[a], x[b]]) for matrix, x in terms]
        bound = or_infinite(float(total[a, b])) * (1 + (len(terms) + 2) * UNIT)
        return ColumnsAttained(
            min(bound, ceiling),
            True,
            (tuple(map(int, values[a])), tuple(map(int, values[b]))),
            math.fsum(found[: len(own)]),
            tuple(zip((part.border for part in parts), found[len(own) :], strict=True)),
        )

    @cached_property
    def _values(self) -> Indices | None:
        """The joint values that can occur, shape (n, nodes); None where they are too many to look at all pairs."""
        needed = with_ancestors(self._tables, self._columns)
        buckets = self._buckets([self._tables[v] for v in needed], self._columns)
        if buckets is None:
            return None
        marked = [*(self._tables[v] for v in needed), self._mark_on(self._columns)]
        states = Configurations(ClusterLaws(buckets, marked, self._sizes), self._sizes)
        bucket = _smallest(buckets, self._columns, self._sizes)
        if states.count(bucket, self._columns) > MOST_VALUES:
            return None
        return _listed(states, bucket, self._columns, self._sizes)

    def _mark_on(self, scope: Scope) -> Table:
        """Return the table of the mark as a child of some nodes."""
        return (*scope, self._mark), np.ones([self._sizes[v] for v in scope] + [1])

    def _buckets(self, tables: Sequence[Table], scope: Scope) -> list[Bucket] | None:
        """Return buckets of some tables, one of which holds a scope; None where their laws cannot be made."""
        buckets = buckets_of([*(nodes for nodes, _ in tables), (*scope, self._mark)], self._sizes)
        large = (math.prod(self._sizes[v] for v in bucket.scope) > MOST_ENTRIES for bucket in buckets)
        return None if any(large) else buckets

    def _parted(self, lossy: Scope) -> list["_Part"]:
        """Return the parts that the other nodes fall into, those that have a loss and a border."""
        needed = with_ancestors(self._tables, {*lossy, *self._columns})
        near: dict[int, set[int]] = {v: set() for v in needed}
        for v in needed:  # a node and its parents are next to each other
            for node in self._tables[v][0]:
                near[node].update(self._tables[v][0])
        parts: list[_Part] = []
        left = set(needed) - set(self._columns)
        for first in needed:
            if first not in left:
                continue
            left.discard(first)
            inner, around = [first], set[int]()
            for v in inner:
                around |= near[v] & set(self._columns)
                fresh = near[v] & left
                left -= fresh
                inner += sorted(fresh)
            if around and not set(lossy).isdisjoint(inner):
                parts.append(self._part(sorted(inner), tuple(sorted(around)), lossy))
        return parts

    def _part(self, inner: list[int], border: Scope, lossy: Scope) -> "_Part":
        """Plan what a part tells of its border, in the network of both alone."""
        tables = [self._tables[v] for v in inner]
        for v in border:
            own = self._tables[v]
            if set(own[0]).isdisjoint(inner):
                own = (v,), np.full(self._sizes[v], 1 / self._sizes[v])
            tables.append(own)
        tables.sort(key=lambda table: table[0][-1])
        its_lossy = tuple(v for v in inner if v in lossy)
        buckets = self._buckets(tables, border)
        sweep = None
        if buckets is not None:
            sweep = _BorderSweep(buckets, [*tables, self._mark_on(border)], self._sizes, its_lossy, border)
        return _Part(border, its_lossy, sweep)


class _Part(NamedTuple):
    """Nodes that tell about a border together: it, those of them with a loss, and what makes the bound.

    Without a sweep clusters are too large.
    """

    border: Scope
    lossy: Scope
    sweep: "_BorderSweep | None"

    def told(self, losses: Sequence[Matrix]) -> Matrix:
        """Return what they tell about any two values of the border: never more than the sum of their losses."""
        most = _exact_sum([float(losses[v].max()) for v in self.lossy])
        return np.full((1, 1), most) if self.sweep is None else np.minimum(self.sweep.told(losses), most)

    def rows(self, values: Indices, columns: Scope) -> Indices:
        """Return for joint values of columns which row of :meth:`told` tells about them."""
        if self.sweep is None:
            return np.zeros(len(values), dtype=np.int64)
        return self.sweep.rows(values[:, [columns.index(v) for v in self.border]])


class _BorderSweep(ClusterSweep):
    """The messages that lead to a border, in a network of nodes that tell about it; no node of the border has a loss.

    One of the buckets holds the border.
    """

    def __init__(
        self, buckets: Sequence[Bucket], tables: Sequence[Table], sizes: Sequence[int], lossy: Scope, border: Scope
    ) -> None:
        self._border, self._shape = border, [sizes[v] for v in border]
        self._messages: list[Term | None] = []
        super().__init__(buckets, tables, sizes, lossy, ())
        # the rows of messages, all on the same values; one number where these are too many
        self._keys = np.zeros(1, dtype=np.int64)
        if any(message is not None and message.scope for message in self._messages):
            values = _listed(self._states, _smallest(buckets, border, sizes), border, sizes)
            self._keys = np.ravel_multi_index(tuple(values.T), self._shape)

    def _plan(self) -> None:
        """Plan the messages that lead to clusters that hold the border, and what each of these tells."""
        tree, border = self._tree, set(self._border)
        holding = [c for c, scope in enumerate(tree.scopes) if not tree.separates[c] and border <= {*scope}]
        target = min(
            holding, key=lambda c: math.prod(self._states.count(tree.buckets[c], (v,)) for v in tree.scopes[c])
        )
        # inwards, from the farthest cluster to the nearest
        ways = [(target, -1)]
        for cluster, came_from in ways:
            ways += [(other, cluster) for other in self._near[cluster] if other != came_from]
        for sender, receiver in reversed(ways[1:]):
            self._send(sender, receiver)
        self._messages = [self._about(target)]
        # and on to other clusters that hold the border: each of them tells a bound
        for receiver, sender in ways[1:]:
            if border <= {*tree.scopes[receiver]} and self._layout.seconds <= SECONDS_OF_ALTERNATIVES:
                self._send(sender, receiver)
                if not tree.separates[receiver]:
                    self._messages.append(self._about(receiver))

    def _send(self, sender: int, receiver: int) -> None:
        message = self._sent(sender, receiver, {}, None)
        if message is not None:
            self._told[receiver][sender] = message

    def _about(self, cluster: int) -> Term | None:
        """Plan what a cluster tells about the border."""
        terms, bucket = self._terms(cluster, {}, None), self._tree.buckets[cluster]
        return self._layout.message(bucket, self._tree.scopes[cluster], self._border, terms)

    def told(self, losses: Sequence[Matrix]) -> Matrix:
        """Return what closed losses tell about any two values of the border, or one number for all of them."""
        if None in self._messages:
            return np.zeros((1, 1))
        memory, least = self._filled(self.losses(losses)), np.full((1, 1), np.inf)
        for message in self._messages:
            assert message is not None
            rows = message.size
            least = np.fmin(least, memory[message.source : message.source + rows**2].reshape(rows, rows))
        return least

    def rows(self, values: Indices) -> Indices:
        """Return which row of :meth:`told` tells about values of the border, each of which can occur."""
        if len(self._keys) == 1:
            return np.zeros(len(values), dtype=np.int64)
        return np.searchsorted(self._keys, np.ravel_multi_index(tuple(values.T), self._shape))


def _exact_sum(numbers: Sequence[float]) -> float:
    return float_up(sum(map(Fraction, numbers), Fraction(0))) if all(map(math.isfinite, numbers)) else math.inf


def _smallest(buckets: Sequence[Bucket], scope: Scope, sizes: Sequence[int]) -> int:
    """Return the smallest bucket that holds a scope."""
    holding = [b for b, bucket in enumerate(buckets) if set(scope) <= set(bucket.scope)]
    return min(holding, key=lambda b: math.prod(sizes[v] for v in buckets[b].scope))


def _listed(states: Configurations, bucket: int, scope: Scope, sizes: Sequence[int]) -> Indices:
    """Return the configurations of a scope that can occur, shape (n, nodes), in ascending order."""
    pattern, places = states.within(bucket, scope)
    flat = pattern.listed(places).places
    return np.stack(np.unravel_index(flat, [sizes[v] for v in scope]), axis=1).astype(np.int64)
