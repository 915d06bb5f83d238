"""Steps that make the messages of a cluster tree: which bounds each sums, and how it takes Φ of them.

See :mod:`pufferfish.core.propagation.clusters` for the theory. What a step does depends on its **shape** alone: which
configurations of its bucket can occur, and where the nodes of the message and of its terms stand in the bucket. So a
way is found for each shape once; a step is a way, where its terms lie in memory, and a law of its bucket.

Steps are planned once for a network and for the nodes that have a loss; the sweep of
:mod:`pufferfish.core.propagation.cluster_loops` then takes them for any losses.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.networks.configurations import Configurations, Pattern, Places, bounds_of
from pufferfish.core.networks.junction_tree import Scope
from pufferfish.core.phi.phi import Kernel, without_flows
from pufferfish.core.propagation.cluster_loops import CEILING, DIRECT, INNER, Steps

__all__ = ["Large", "Layout", "Term"]

MOST_ROWS = 1_500
"""Configurations of a separator that a message tells apart; of larger ones it is one number."""

MOST_COLUMNS = 5_000
"""Configurations of a cluster that are held in pairs, to take out one variable at a time."""

MOST_WHOLE = 4e6
"""Pairs of a separator's configurations times columns for which Φ is searched at once: memory."""

WHOLE = 1e-9
MOST_RATIOS = 3e8
"""Numbers that are compared for a max-divergence."""


Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Indices = NDArray[np.int64]


class Term(NamedTuple):
    """A bound in memory.

    Parameters
    ----------
    scope : tuple of int
        The nodes it is on; none for one number that holds for all pairs.
    source, size : int
        Where in memory it begins, and for how many configurations.
    cluster : tuple of int
        The nodes of the cluster that tells it.
    parts : tuple of Term
        The terms that it is the sum of, where it is nothing else.
    """

    scope: Scope
    source: int
    size: int
    cluster: Scope
    parts: tuple["Term", ...] = ()

    def leaves(self) -> "list[Term]":
        """Return the terms that it is the sum of, down to those that are no sums."""
        found: list[Term] = []
        waiting: list[Term] = [self]
        while waiting:
            term = waiting.pop()
            waiting.extend(term.parts)
            if not term.parts:
                found.append(term)
        return found


class Large(NamedTuple):
    """A step whose Φ is taken one variable at a time.

    Parameters
    ----------
    step, columns : int
        The step, and over how many configurations its inner terms are.
    kernels : list of (starts, columns, upper, lower, near, fibres)
        For every variable that is taken out the arguments of ``cluster_loops.eliminate``.
    cap : (r, r) ndarray
        A bound that holds whatever the losses are.
    """

    step: int
    columns: int
    kernels: list[tuple[Any, ...]]
    cap: Matrix


class _Through(NamedTuple):
    """How Φ is taken of terms.

    Parameters
    ----------
    over : tuple of int
        The nodes over whose configurations it is taken.
    columns : int
        How many these are.
    law : (list of int, list of int), optional
        Buckets of the steps that need a law of this kind, and the numbers of those steps; None for one variable at a
        time.
    all_pairs : bool
        One variable at a time: whether all pairs of configurations are searched.
    seconds, work : float
        How long it takes about, compiled; and pairs times squared columns.
    """

    over: Scope
    columns: int
    law: tuple[list[int], list[int]] | None
    all_pairs: bool
    seconds: float
    work: float


class _Way(NamedTuple):
    """How steps of one shape make their messages.

    Parameters
    ----------
    place : int
        Its place among all ways.
    rows : int
        Number of configurations of what the messages are about.
    order : tuple of int
        The terms of a step, by their places, in the order in which they are taken.
    through : _Through, optional
        How Φ is taken of the inner terms, the first of the order; None where there are none.
    inner : int
        How many these are.
    is_sum : bool
        Whether a message is the sum of its terms, and nothing else.
    """

    place: int
    rows: int
    order: tuple[int, ...]
    through: _Through | None
    inner: int
    is_sum: bool


class Layout:
    """Room in memory, and the steps that fill it.

    Parameters
    ----------
    states : Configurations
        Configurations of the clusters.
    most : float
        Seconds that the Φ of one step may take, about.
    """

    def __init__(self, states: Configurations, most: float) -> None:
        self._states = states
        self._most = most
        self._seconds = 0.0
        self._room = 0
        self._work = 0.0
        # ways by shape, and what steps of each do with their terms: kind, size and map of every term
        self._ways: dict[Any, _Way] = {}
        self._taken_as: list[list[tuple[int, int, int]]] = []
        self._numbers: list[tuple[int, int]] = []  # rows and columns of every way
        self._laws: dict[tuple[Pattern, Places, Places], tuple[list[int], list[int]]] = {}
        self._maps: dict[int, int] = {}
        self._same: dict[int, int] = {}
        self._places: list[Indices] = []
        self._mapped = 0
        # steps: the way of each, where its message is written, and where its terms lie
        self._steps: list[int] = []
        self._outs: list[int] = []
        self._sources: list[int] = []
        self._large: list[Large] = []

    @property
    def room(self) -> int:
        """How many numbers memory holds."""
        return self._room

    @property
    def seconds(self) -> float:
        """How long a compiled sweep takes, about."""
        return self._seconds

    @property
    def work(self) -> float:
        """Pairs times squared columns of all steps: what an interpreted sweep costs."""
        return self._work

    @property
    def large(self) -> list[Large]:
        """Steps whose Φ is taken one variable at a time, in order."""
        return self._large

    def steps(self) -> Steps:
        """Return all steps, each with the numbers of its way."""
        ways = np.array(self._steps, dtype=np.int64)
        rows, columns = np.array(self._numbers, dtype=np.int64).reshape(-1, 2)[ways].T.copy()
        counts = np.array([len(way) for way in self._taken_as], dtype=np.int64)
        firsts = np.append(0, np.cumsum(counts[ways]))
        shifts: Indices = (np.cumsum(counts) - counts)[ways] - firsts[:-1]  # from a step's terms to its way's
        terms: Indices = np.repeat(shifts, counts[ways]) + np.arange(int(firsts[-1]), dtype=np.int64)
        taken_as = np.array([term for way in self._taken_as for term in way], dtype=np.int64).reshape(-1, 3)
        kinds, sizes, maps = taken_as[terms].T.copy()
        entries = np.append(0, np.cumsum(rows * columns))
        upper, lower = self._bounds(entries, columns > 0)
        return Steps(
            outs=np.array(self._outs, dtype=np.int64),
            rows=rows,
            columns=columns,
            kernels=entries[:-1],
            firsts=firsts,
            kinds=kinds,
            sources=np.array(self._sources, dtype=np.int64),
            sizes=sizes,
            maps=maps,
            places=np.concatenate([np.zeros(0, dtype=np.int64), *self._places]),
            upper=upper,
            lower=lower,
        )

    def _bounds(self, starts: Indices, lawful: NDArray[np.bool_]) -> tuple[Vector, Vector]:
        """Return bounds on all laws, those of one kind made together."""
        logs, errors = np.empty(starts[-1]), np.empty(lawful.size)
        for (_, rows, columns), (buckets, steps) in self._laws.items():
            found, errors[steps] = self._states.law(buckets, rows, columns)
            r, m, n = found.shape
            logs[starts[steps][:, None] + np.arange(r * n)] = np.moveaxis(found, 1, 0).reshape(m, r * n)
        return bounds_of(logs, errors[lawful], starts[:-1][lawful])

    def loss(self, node: int, size: int) -> Term:
        """Make room for the loss of a node that can have so many states."""
        return Term((node,), self._taken(size), size, (node,))

    def message(self, bucket: int, cluster: Scope, about: Scope, terms: Sequence[Term]) -> Term | None:
        """Plan what a cluster tells about some of its nodes; None where that is nothing.

        Parameters
        ----------
        bucket : int
            A bucket that holds the cluster.
        cluster, about : tuple of int
            Nodes of the cluster, and those that the message is about.
        terms : sequence of Term
            Bounds at home in the cluster, and from neighbours.
        """
        if not terms:
            return None
        if len(terms) == 1 and terms[0].scope == about and terms[0].size <= MOST_ROWS:
            return terms[0]
        # what else there is to know is the same for all steps of one shape
        scopes = [about, *[term.scope for term in terms]]
        shape = self._states.shape(bucket, scopes)
        way = self._ways.get(shape)
        if way is None:
            way = self._ways[shape] = self._way(bucket, about, [term.scope for term in terms])
        if way.place < 0:
            return None
        step = len(self._steps)
        self._steps.append(way.place)
        self._sources.extend([terms[at].source for at in way.order])
        if way.through is not None:
            self._take(way.through, step, bucket, about, [terms[at].scope for at in way.order[: way.inner]])
        told = about if way.rows > 1 else ()
        self._outs.append(out := self._taken(way.rows))
        return Term(told, out, way.rows, cluster, tuple(terms) if way.is_sum else ())

    def _way(self, bucket: int, about: Scope, terms: Sequence[Scope]) -> _Way:
        """Find a way to make messages of one shape, from a step that has it."""
        rows = self._states.count(bucket, about)
        if rows == 1:  # nothing can be told about a constant
            return _Way(-1, 1, (), None, 0, False)
        direct: list[int] = []
        inner: list[int] = []
        constants: list[int] = []
        for at, on in enumerate(terms):
            kind = direct if on == about else constants if not on else direct if set(on) <= set(about) else inner
            kind.append(at)
        if rows > MOST_ROWS:  # one number: the sum of the terms' largest entries
            rows, direct, inner, constants = 1, [], [], list(range(len(terms)))
        inner.sort(key=lambda at: (self._states.count(bucket, terms[at]), terms[at]))
        # leave the largest out until what is left can be afforded
        through: _Through | None = None
        while inner:
            through = self._through(bucket, about, rows, [terms[at] for at in inner])
            if through is not None:
                break
            constants.append(inner.pop())
        over, columns = ((), 0) if through is None else (through.over, through.columns)
        taken_as = [(INNER, *self._mapped_to(bucket, over, terms[at], columns)) for at in inner]
        taken_as += [(DIRECT, *self._mapped_to(bucket, about, terms[at], rows)) for at in direct]
        taken_as += [(CEILING, self._states.count(bucket, terms[at]), 0) for at in constants]
        self._taken_as.append(taken_as)
        at_once = through is not None and through.law is not None
        self._numbers.append((rows, columns if at_once else 0))
        order = (*inner, *direct, *constants)
        return _Way(len(self._numbers) - 1, rows, order, through, len(inner), len(direct) == len(terms))

    def _through(self, bucket: int, about: Scope, rows: int, terms: Sequence[Scope]) -> _Through | None:
        """Find a way to take Φ of terms, None where none can be afforded."""
        scope = _united(terms)
        columns = self._states.count(bucket, scope)
        whole = _whole(rows, columns)
        if rows**2 * columns <= MOST_WHOLE and whole <= self._most:
            (pattern, given), (_, places) = self._states.within(bucket, about), self._states.within(bucket, scope)
            law = self._laws.setdefault((pattern, given, places), ([], []))
            return _Through(scope, columns, law, True, whole, float(rows) ** 2 * columns**2)
        scope = _united([scope, about])
        columns = self._states.count(bucket, scope)
        if columns > MOST_COLUMNS:
            return None
        counts = [self._states.count(bucket, left) for left in self._order(bucket, scope, about)]
        all_pairs = sum(_single(before, after) for before, after in pairwise(counts)) <= self._most
        seconds = sum(
            _single(before, after) if all_pairs else _near(before, after) for before, after in pairwise(counts)
        )
        if not all_pairs and seconds > self._most:
            return None
        return _Through(scope, columns, None, all_pairs, seconds, 1e9)

    def _take(self, through: _Through, step: int, bucket: int, about: Scope, inner: Sequence[Scope]) -> None:
        """Note what Φ of a step needs: a law of its bucket, or the laws of one variable after the other."""
        self._seconds += through.seconds
        self._work += through.work
        if through.law is not None:
            buckets, steps = through.law
            buckets.append(bucket)
            steps.append(step)
            return
        alone = _united(inner)
        order = self._order(bucket, _united([alone, about]), about)
        kernels = [self._one_out(bucket, before, after, through.all_pairs) for before, after in pairwise(order)]
        cap = self._cap(bucket, about, alone, self._states.count(bucket, about))
        self._large.append(Large(step, through.columns, kernels, cap))

    def _order(self, bucket: int, scope: Scope, about: Scope) -> list[Scope]:
        """Return the scopes that are left as one variable after the other is taken out, those of most states first."""
        found = [scope]
        out = sorted(set(scope) - set(about), key=lambda node: -self._states.count(bucket, (node,)))
        for node in out:
            found.append(tuple(v for v in found[-1] if v != node))
        return found

    def _one_out(self, bucket: int, before: Scope, after: Scope, all_pairs: bool) -> tuple[Any, ...]:
        logs, error = self._states.conditional(bucket, before, after)
        rows = self._states.map(bucket, before, after)
        columns = np.argsort(rows, kind="stable")
        starts = np.searchsorted(rows[columns], np.arange(self._states.count(bucket, after) + 1))
        upper, lower = bounds_of(logs[columns], np.array([error]), np.zeros(1, dtype=np.int64))
        r = len(starts) - 1
        near, fibres = np.zeros((0, r + 1), dtype=np.int64), np.zeros((0, r), dtype=np.int64)
        if not all_pairs:
            around = [self._states.map(bucket, after, tuple(u for u in after if u != v)) for v in after]
            fibres = np.stack([np.argsort(groups, kind="stable") for groups in around])
            near = np.stack([np.searchsorted(np.sort(groups), np.arange(r + 1)) for groups in around])
        return starts, columns, upper, lower, near, fibres

    def _cap(self, bucket: int, about: Scope, scope: Scope, rows: int) -> Matrix:
        """Bound Φ whatever the losses are: the max-divergence of P(scope | about), where no term is on both."""
        if set(about) & set(scope) or float(rows) ** 2 * self._states.count(bucket, scope) > MOST_RATIOS:
            return np.full((rows, rows), np.inf)
        logs, errors = self._states.law(
            [bucket], self._states.within(bucket, about)[1], self._states.within(bucket, scope)[1]
        )
        upper, lower = bounds_of(logs.ravel(), errors, np.zeros(1, dtype=np.int64))
        return without_flows(Kernel(upper.reshape(rows, -1), lower.reshape(rows, -1), np.ones(rows, dtype=np.bool_)))

    def _mapped_to(self, bucket: int, scope: Scope, part: Scope, count: int) -> tuple[int, int]:
        """Return the size of a part of a scope, and where the map from the scope's configurations to its begins."""
        return self._states.count(bucket, part), self._map(bucket, scope, part, count)

    def _map(self, bucket: int, scope: Scope, part: Scope, count: int) -> int:
        """Return where the map from the configurations of a scope, so many, to those of a part begins."""
        if scope == part:
            at = self._same.get(count)
            if at is None:
                at = self._same[count] = self._placed(np.arange(count))
            return at
        found = self._states.map(bucket, scope, part)
        if id(found) not in self._maps:
            self._maps[id(found)] = self._placed(found)
        return self._maps[id(found)]

    def _placed(self, found: Indices) -> int:
        at = self._mapped
        self._places.append(found)
        self._mapped += found.size
        return at

    def _taken(self, size: int) -> int:
        at = self._room
        self._room += size * size
        return at


def _united(scopes: Sequence[Scope]) -> Scope:
    """Return the nodes of all scopes."""
    return scopes[0] if len(scopes) == 1 else tuple(sorted({node for scope in scopes for node in scope}))


def _whole(rows: int, columns: int) -> float:
    """Return about how long Φ takes for all pairs of rows, in seconds."""
    return float(rows) ** 2 * (2e-7 * columns + 1e-9 * float(columns) ** 3)


def _single(before: int, after: int) -> float:
    """Return about how long it takes to take out a variable, from so many configurations to so many, in seconds."""
    return 2e-6 * float(before) * float(after)


def _near(before: int, after: int) -> float:
    """Return the same for pairs that differ in one variable, and paths over them."""
    return 2e-6 * 20 * float(before) + 2e-8 * float(after) ** 2
