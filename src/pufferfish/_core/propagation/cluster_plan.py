"""Steps that make the messages of a cluster tree: which bounds each sums, and how it takes Φ of them.

See :mod:`pufferfish._core.propagation.clusters` for the theory. A step is planned once for a network and for the nodes
that have a loss; :func:`sweep` then takes the steps for any losses.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pufferfish._core import Matrix, Vector, Whole
from pufferfish._core.networks.cluster_laws import Configurations, Pattern, Places, bounds_of
from pufferfish._core.networks.junction_tree import Scope
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.phi.certificate import phi
from pufferfish._core.phi.phi import Kernel, without_flows

MOST_ROWS = 1_500  # configurations of a separator that a message tells apart; of larger ones it is one number
MOST_COLUMNS = 5_000  # configurations of a cluster that are held in pairs, to take out one variable at a time
MOST_WHOLE = 4e6  # pairs of a separator's configurations times columns for which Φ is searched at once: memory
MOST_RATIOS = 3e8  # numbers that are compared for a max-divergence


# How a step takes a bound: its largest entry, added to all pairs; as it is; or through Φ.
CEILING, DIRECT, INNER = 0, 1, 2


class Steps(NamedTuple):
    """What makes messages, one step each, in arrays: bounds are taken from memory, and written to memory."""

    # for each step where in memory its message begins, and how many states r it is about: r × r numbers
    outs: Any
    rows: Any
    # the number of states n over which Φ is taken, 0 for none, and where their (r, n) law begins in upper and lower
    columns: Any
    kernels: Any
    firsts: Any  # where the terms of each step begin
    # for each term how it is taken, where in memory its bounds begin, its number of states, and where in places its map
    # begins: from each of the step's states (rows for DIRECT, columns for INNER) to one of the term's
    kinds: Any
    sources: Any
    sizes: Any
    maps: Any
    places: Any  # all maps
    upper: Any  # bounds on all laws
    lower: Any


class Term(NamedTuple):
    """A bound in memory."""

    scope: Scope  # the nodes it is on; none for one number that holds for all pairs
    source: int  # where in memory it begins, and for how many configurations
    size: int
    cluster: Scope  # the nodes of the cluster that tells it
    parts: tuple["Term", ...] = ()  # the terms that it is the sum of, where it is nothing else

    def leaves(self) -> "list[Term]":
        """Return the terms that it is the sum of, down to those that are no sums."""
        leaves: list[Term] = []
        waiting: list[Term] = [self]
        while waiting:
            term = waiting.pop()
            waiting.extend(term.parts)
            if not term.parts:
                leaves.append(term)
        return leaves


class Large(NamedTuple):
    """A step whose Φ is taken one variable at a time, with inner terms over so many configurations.

    ``kernels`` are the arguments of :func:`eliminate` for every variable that is taken out, ``cap`` is a bound that
    holds whatever the losses are.
    """

    step: int
    columns: int
    kernels: list[tuple[Any, ...]]
    cap: Matrix


class Layout:
    """Room in memory, and the steps that fill it; the Φ of one step may take about ``most`` seconds."""

    def __init__(self, states: Configurations, most: float) -> None:
        self._states = states
        self._most = most
        self.room = 0  # how many numbers memory holds
        self.seconds = 0.0  # how long a compiled sweep takes, about
        self.work = 0.0  # pairs times squared columns of all steps: what an interpreted sweep costs
        self.large: list[Large] = []  # steps whose Φ is taken one variable at a time, in order
        self._steps: list[int] = []  # five numbers for each, see `_end`
        self._terms: list[int] = []  # four numbers for each: kind, source, size, map
        self._maps: dict[int, int] = {}
        self._same: dict[int, int] = {}
        self._places: list[Whole] = []
        self._mapped = 0
        self._laws: dict[tuple[Pattern, Places, Places], tuple[list[int], list[int]]] = {}
        self._entries: list[int] = [0]

    def steps(self) -> Steps:
        """Return all steps."""
        kinds, sources, sizes, maps = np.array(self._terms, dtype=np.int64).reshape(-1, 4).T.copy()
        outs, rows, columns, kernels, ends = np.array(self._steps, dtype=np.int64).reshape(-1, 5).T.copy()
        places = np.concatenate([np.zeros(0, dtype=np.int64), *self._places])
        firsts, bounds = np.insert(ends, 0, 0), self._bounds()
        return Steps(outs, rows, columns, kernels, firsts, kinds, sources, sizes, maps, places, *bounds)

    def _bounds(self) -> tuple[Vector, Vector]:
        """Return bounds on all laws, those of one kind made together."""
        starts = np.array(self._entries, dtype=np.int64)
        logs, errors = np.empty(starts[-1]), np.empty(starts.size - 1)
        for (_, rows, columns), (buckets, laws) in self._laws.items():
            block, errors[laws] = self._states.law(buckets, rows, columns)
            r, m, n = block.shape
            logs[starts[laws][:, None] + np.arange(r * n)] = np.moveaxis(block, 1, 0).reshape(m, r * n)
        return bounds_of(logs, errors, starts[:-1])

    def loss(self, node: int, size: int) -> Term:
        """Make room for the loss of a node that can have so many states."""
        return Term((node,), self._taken(size), size, (node,))

    def message(self, bucket: int, cluster: Scope, about: Scope, terms: Sequence[Term]) -> Term | None:
        """Plan what some terms of a cluster tell about some of its nodes; None where that is nothing."""
        rows = self._states.count(bucket, about)
        if not terms or rows == 1:
            return None
        if rows > MOST_ROWS:  # one number: the sum of the terms' largest entries
            for term in terms:
                self._terms += (CEILING, term.source, term.size, 0)
            return Term((), self._end(1), 1, cluster)
        if len(terms) == 1 and terms[0].scope == about:
            return terms[0]
        direct: list[Term] = []
        inner: list[Term] = []
        constants: list[Term] = []
        for term in terms:
            on = term.scope
            kind = direct if on == about else constants if not on else direct if set(on) <= set(about) else inner
            kind.append(term)
        if len(inner) > 1:
            inner.sort(key=lambda term: (self._states.count(bucket, term.scope), term.scope))
        # leave the largest out until what is left can be afforded
        columns, kernel = 0, 0
        while inner:
            columns, kernel = self._planned(bucket, about, rows, inner)
            if columns >= 0:
                break
            constants.append(inner.pop())
            columns = 0
        for term in direct:
            self._terms += (DIRECT, term.source, term.size, self._map(bucket, about, term.scope, rows))
        for term in constants:
            self._terms += (CEILING, term.source, term.size, 0)
        only = len(direct) == len(terms)
        return Term(about, self._end(rows, columns, kernel), rows, cluster, tuple(direct) if only else ())

    def _planned(self, bucket: int, about: Scope, rows: int, inner: Sequence[Term]) -> tuple[int, int]:
        """Plan Φ of the inner terms; return the columns of a step that takes Φ at once, and where its law begins.

        0 columns stand for one variable at a time, −1 for neither of them.
        """
        scope = inner[0].scope if len(inner) == 1 else tuple(sorted({node for term in inner for node in term.scope}))
        columns = self._states.count(bucket, scope)
        whole = _whole(rows, columns)
        if rows**2 * columns <= MOST_WHOLE and whole <= self._most:
            self.seconds += whole
            (pattern, row_places), (_, places) = self._states.within(bucket, about), self._states.within(bucket, scope)
            buckets, laws = self._laws.setdefault((pattern, row_places, places), ([], []))
            buckets.append(bucket)
            laws.append(len(self._entries) - 1)
            kernel = self._entries[-1]
            self._entries.append(kernel + rows * columns)
            self.work += float(rows) ** 2 * columns**2
            for term in inner:
                self._terms += (INNER, term.source, term.size, self._map(bucket, scope, term.scope, columns))
            return columns, kernel
        alone, scope = scope, tuple(sorted({*scope, *about}))
        columns = self._states.count(bucket, scope)
        if columns > MOST_COLUMNS:
            return -1, 0
        order = self._order(bucket, scope, about)
        counts = [self._states.count(bucket, left) for left in order]
        all_pairs = sum(_single(before, after) for before, after in pairwise(counts)) <= self._most
        seconds = sum(
            _single(before, after) if all_pairs else _near(before, after) for before, after in pairwise(counts)
        )
        if not all_pairs and seconds > self._most:
            return -1, 0
        self.seconds += seconds
        self.work += 1e9
        for term in inner:
            self._terms += (INNER, term.source, term.size, self._map(bucket, scope, term.scope, columns))
        kernels = [self._one_out(bucket, before, after, all_pairs) for before, after in pairwise(order)]
        self.large.append(Large(len(self._steps) // 5, columns, kernels, self._cap(bucket, about, alone, rows)))
        return 0, 0

    def _order(self, bucket: int, scope: Scope, about: Scope) -> list[Scope]:
        """Return the scopes that are left as one variable after the other is taken out, those of most states first."""
        scopes = [scope]
        out = sorted(set(scope) - set(about), key=lambda node: -self._states.count(bucket, (node,)))
        for node in out:
            scopes.append(tuple(v for v in scopes[-1] if v != node))
        return scopes

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

    def _map(self, bucket: int, scope: Scope, part: Scope, count: int) -> int:
        """Return where the map from the configurations of a scope, so many, to those of a part begins."""
        if scope == part:
            start = self._same.get(count)
            if start is None:
                start = self._same[count] = self._placed(np.arange(count))
            return start
        places = self._states.map(bucket, scope, part)
        if id(places) not in self._maps:
            self._maps[id(places)] = self._placed(places)
        return self._maps[id(places)]

    def _placed(self, places: Whole) -> int:
        start = self._mapped
        self._places.append(places)
        self._mapped += places.size
        return start

    def _taken(self, size: int) -> int:
        start = self.room
        self.room += size * size
        return start

    def _end(self, rows: int, columns: int = 0, kernel: int = 0) -> int:
        """End a step, whose terms are the last that were added, and return where its message is written."""
        out = self._taken(rows)
        self._steps += (out, rows, columns, kernel, len(self._terms) // 4)
        return out


def _whole(rows: int, columns: int) -> float:
    """Return about how long Φ takes for all pairs of rows, in seconds."""
    return float(rows) ** 2 * (2e-7 * columns + 1e-9 * float(columns) ** 3)


def _single(before: int, after: int) -> float:
    """Return about how long it takes to take out a variable, from so many configurations to so many, in seconds."""
    return 2e-6 * float(before) * float(after)


def _near(before: int, after: int) -> float:
    """Return the same for pairs that differ in one variable, and paths over them."""
    return 2e-6 * 20 * float(before) + 2e-8 * float(after) ** 2


# -- The sweep: plain loops over arrays, which numba can compile ------------------------------------------------------


def gathered(steps: Steps, step: int, kind: int, n: int, memory: Any) -> Any:
    """Return the sum of a step's terms of one kind on n states, rounded up; shape (n, n)."""
    a = np.zeros((n, n))
    terms = 0
    for term in range(steps.firsts[step], steps.firsts[step + 1]):
        if steps.kinds[term] != kind:
            continue
        terms += 1
        size, source, start = steps.sizes[term], steps.sources[term], steps.maps[term]
        for c in range(n):
            row = source + steps.places[start + c] * size
            for c_ in range(n):
                a[c, c_] += memory[row + steps.places[start + c_]]
    rounding = 1 + (terms + 2) * UNIT
    for c in range(n):
        for c_ in range(n):
            a[c, c_] *= rounding
    return a


def sweep(steps: Steps, first: int, last: int, memory: Any) -> None:
    """Make the messages of the steps ``first`` to before ``last``, one after another, in memory."""
    for step in range(first, last):
        r, n, out = steps.rows[step], steps.columns[step], steps.outs[step]
        constant, terms = 0.0, 0
        for term in range(steps.firsts[step], steps.firsts[step + 1]):
            terms += 1
            if steps.kinds[term] == CEILING:
                most = 0.0
                for m in range(steps.sources[term], steps.sources[term] + steps.sizes[term] ** 2):
                    most = max(most, memory[m])
                constant += most
        message = gathered(steps, step, DIRECT, r, memory)
        through = np.zeros((r, r))
        if n > 0:
            start = steps.kernels[step]
            upper = steps.upper[start : start + r * n].reshape(r, n)
            lower = steps.lower[start : start + r * n].reshape(r, n)
            phi(np.ones(r, dtype=np.bool_), upper, lower, gathered(steps, step, INNER, n, memory), through)
        rounding = 1 + (terms + 4) * UNIT
        for s in range(r):
            for s_ in range(r):
                total = (message[s, s_] + through[s, s_] + constant) * rounding
                # a message about nothing is a constant
                memory[out + s * r + s_] = total if s != s_ or r == 1 else 0.0


def eliminate(starts: Any, columns: Any, upper: Any, lower: Any, near: Any, fibres: Any, a: Any, message: Any) -> None:
    """Take one variable out of bounds ``a`` on pairs of n configurations, and write those on pairs of the r without it.

    The configurations of each value of the others are ``columns``, from its ``starts``; ``upper`` and ``lower``, (n,),
    bound the law of the variable given them. Only pairs that differ in one other variable v, of one fibre ``fibres[v,
    near[v, f]:near[v, f + 1]]``, are searched, the others bounded by paths over these; with no fibres all are.
    """
    r = starts.shape[0] - 1
    if near.shape[0] == 0:
        for w in range(r):
            message[w, w] = 0.0
            for w_ in range(w):
                one_pair(starts, columns, upper, lower, a, w, w_, message)
        return
    for w in range(r):
        for w_ in range(r):
            message[w, w_] = 0.0 if w == w_ else np.inf
    for v in range(near.shape[0]):
        for f in range(r):
            for i in range(near[v, f], near[v, f + 1]):
                for j in range(near[v, f], i):
                    one_pair(starts, columns, upper, lower, a, fibres[v, i], fibres[v, j], message)
    # paths that change one variable after the other, in either order
    step = np.empty((r, r))
    for w in range(r):
        for w_ in range(r):
            step[w, w_] = message[w, w_]
    for turn in range(2 * near.shape[0]):
        v = turn if turn < near.shape[0] else 2 * near.shape[0] - 1 - turn
        for f in range(r):
            for i in range(near[v, f], near[v, f + 1]):
                for j in range(near[v, f], near[v, f + 1]):
                    w, t = fibres[v, i], fibres[v, j]
                    if w == t:
                        continue
                    for w_ in range(r):
                        through = (step[w, t] + message[t, w_]) * (1 + 2 * UNIT)
                        if through < message[w, w_]:
                            message[w, w_] = through


def one_pair(starts: Any, columns: Any, upper: Any, lower: Any, a: Any, w: int, w_: int, message: Any) -> None:
    """Write Φ of the laws of one variable given two configurations of the others, both ways; see `eliminate`."""
    both, pair_bounds = np.ones(2, dtype=np.bool_), np.empty((2, 2))
    width, width_ = starts[w + 1] - starts[w], starts[w_ + 1] - starts[w_]
    n = width + width_
    above, below, bounds = np.zeros((2, n)), np.zeros((2, n)), np.empty((n, n))
    for i in range(n):
        here = starts[w] + i if i < width else starts[w_] + i - width
        side = 0 if i < width else 1
        above[side, i] = upper[here]
        below[side, i] = lower[here]
        for j in range(n):
            there = starts[w] + j if j < width else starts[w_] + j - width
            bounds[i, j] = a[columns[here], columns[there]]
    phi(both, above, below, bounds, pair_bounds)
    message[w, w_] = pair_bounds[0, 1]
    message[w_, w] = pair_bounds[1, 0]


def worst_of(
    losses: Any, firsts: Any, sources: Any, sizes: Any, states: Any, pairs: Any, memory: Any
) -> tuple[Any, ...]:
    """Return where the leakage is largest: which secret node (−1 for none), the two states, in which way, and how much.

    For each secret node: where its loss begins (−1 for none), its number of ``states``, and the ways to bound what else
    leaks of it, of which the least counts: where they begin (−1 for nothing), and their numbers of states.
    """
    node, first_state, second_state, best, worst, first = -1, 0, 0, 0, 0.0, 0
    for i in range(states.shape[0]):
        k = states[i]
        for x in range(k):
            for x_ in range(k):
                place = x * k + x_
                if x == x_ or not pairs[first + place]:
                    continue
                least, way = np.inf, firsts[i]
                for m in range(firsts[i], firsts[i + 1]):
                    leak = memory[sources[m] + (place if sizes[m] > 1 else 0)] if sources[m] >= 0 else 0.0
                    if leak < least:
                        least, way = leak, m
                total = ((memory[losses[i] + place] if losses[i] >= 0 else 0.0) + least) * (1 + 4 * UNIT)
                if node < 0 or total > worst:
                    node, first_state, second_state, best, worst = i, x, x_, way - firsts[i], total
        first += k * k
    return node, first_state, second_state, best, worst
