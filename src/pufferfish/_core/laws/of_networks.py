r"""Exact laws of additive integer queries on factorised distributions, by variable elimination over polynomials.

One law, and all laws at once, are two ways through one problem: they stand in one file.

Variables X_1 … X_n have the unnormalised law Π_t φ_t(X), a product of *tables* over few variables each (the conditional
probability tables of a Bayesian network, say), and evidence allows some states of each variable. The query is
F = Σ_j w_j(X_j) with integers w_j(x). Its law is the coefficient sequence of the generating function

.. math:: \sum_x \prod_t \varphi_t(x) \prod_j z^{w_j(x_j)},

a sum of products like any other, in which every number is a polynomial in z: a *factor* is an array over its variables
with one more axis for the partial sum, a product convolves that axis, and summing a variable out first shifts the
entries of its state x by w(x). Eliminating one variable after another costs what it costs for plain probabilities,
times the convolutions. Factors are :class:`~pufferfish._core.numbers.wide.Wide` arrays: all numbers are non-negative
and nothing is ever subtracted or divided, so that every mass, however far in the tail, comes with a relative error of
at most (number of roundings on its way) · 2^-52, and exact zeros are exact zeros.

The joint laws of (X_j, F) for *all* j, where the tables form a forest, follow from two sweeps of messages: with
m_c the message of a child and o_v that from the parent's side,

.. math:: P(X_v = x, F) = z^{w_v(x)} \varphi_v(x) \prod_c m_c(x) \cdot o_v(x).

Products of all messages but one are made by halving, O(d log d) products of the smallest size rather than d² of the
largest for d messages, so that a star of n leaves costs O(n² log n) steps in all.

References: Koller, Friedman, *Probabilistic Graphical Models*, Chapters 9 and 10; Higham, *Accuracy and Stability of
Numerical Algorithms*, Lemma 3.1.
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.laws.law import Factor, all_but_one, product, shifted, summed_out, unit, zeros
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.numbers.wide import Wide
from pufferfish.errors import ModelError

__all__ = ["MOST_ENTRIES", "AdditiveLaw", "additive_law", "all_node_laws"]

Table = tuple[tuple[int, ...], NDArray[np.float64]]
Weights = Sequence[NDArray[np.int64]]
Allowed = Sequence[NDArray[np.bool_] | None]

MOST_ENTRIES = 50_000_000
"""Entries of the largest array that is ever made; more is refused before it is."""

_BYTES = 64
"""Memory of an entry while it is computed: two words, and as much again for what is made on the way."""


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveLaw:
    """Law of an additive query, not divided by the probability of the evidence.

    Parameters
    ----------
    start : int
        Least value of the query that the weights allow.
    masses : Wide, shape (S,) or (k, S)
        ``masses[n]`` = P(F = start + n, evidence); ``masses[x, n]`` = P(X_j = x, F = start + n, evidence).
    log_error : float
        Every computed mass m and the true one M have |log m − log M| ≤ ``log_error``, or are both exactly 0. The
        entries of the given tables count as exact.
    """

    start: int
    masses: Wide
    log_error: float


def additive_law(
    tables: Sequence[Table],
    sizes: Sequence[int],
    weights: Weights,
    keep: int | None = None,
    allowed: Allowed | None = None,
    *,
    most_entries: int = MOST_ENTRIES,
) -> AdditiveLaw:
    """Return the law of F = Σ w_j(X_j), or the joint law of (X_keep, F), together with the evidence.

    Parameters
    ----------
    tables : sequence of (variables, ndarray)
        Non-negative tables, one axis per variable named, whose product is the law of the variables.
    sizes : sequence of int
        Number of states of each variable.
    weights : sequence of ndarray of int, shapes (sizes[j],)
        What each state of variable j adds to the query.
    keep : int, optional
        The variable whose joint law with F is wanted.
    allowed : sequence of (ndarray of bool or None), optional
        Evidence: states that each variable can have, None for all.
    most_entries : int
        Largest array to make.

    Raises
    ------
    ModelError
        If an array on the way would have more entries than that; nothing has been computed then.

    Examples
    --------
    Two coins, the second one a copy of the first with probability 0.9, and the number of heads:

    >>> first, second = ((0,), np.array([0.5, 0.5])), ((0, 1), np.array([[0.9, 0.1], [0.1, 0.9]]))
    >>> law = additive_law([first, second], [2, 2], [np.array([0, 1])] * 2)
    >>> law.start, np.exp(law.masses.log()).round(3)
    (0, array([0.45, 0.1 , 0.45]))
    """
    problem = _Problem.of(tables, sizes, weights, allowed)
    if problem.impossible:
        return problem.nothing(keep)
    everything = range(len(sizes))
    return problem.finished(problem.eliminated(everything, keep, problem.factors, most_entries), keep)


def all_node_laws(
    tables: Sequence[Table],
    sizes: Sequence[int],
    weights: Weights,
    allowed: Allowed | None = None,
    *,
    most_entries: int = MOST_ENTRIES,
) -> Iterator[tuple[int, AdditiveLaw]]:
    """Yield (j, joint law of (X_j, F)) for every variable j, in the order in which they come about.

    Connected parts that are trees of tables over one or two variables take two sweeps of messages in all, others one
    elimination per variable. See :func:`additive_law` for the parameters and errors; one law is held at a time.

    Examples
    --------
    >>> first, second = ((0,), np.array([0.5, 0.5])), ((0, 1), np.array([[0.9, 0.1], [0.1, 0.9]]))
    >>> laws = dict(all_node_laws([first, second], [2, 2], [np.array([0, 1])] * 2))
    >>> np.exp(laws[1].masses.log()).round(3)
    array([[0.45, 0.05, 0.  ],
           [0.  , 0.05, 0.45]])
    """
    problem = _Problem.of(tables, sizes, weights, allowed)
    if problem.impossible:
        yield from ((j, problem.nothing(j)) for j in range(len(sizes)))
        return
    length = 1 + sum(problem.span(j) for j in range(len(sizes)))
    _check(length * max((len(s) for s in problem.states), default=1), most_entries)
    parts = problem.components()
    totals = [problem.eliminated(part, None, factors, most_entries) for part, factors in parts]
    for c, rest in all_but_one(unit(), totals):
        part, factors = parts[c]
        tree = _Tree.of(problem, part, factors)
        if tree is not None and tree.entries <= most_entries:
            laws = tree.laws(rest)
        else:
            laws = ((j, problem.eliminated(part, j, [*factors, rest], most_entries)) for j in part)
        for j, law in laws:
            yield j, problem.finished(law, j)


def _check(entries: int, most_entries: int) -> None:
    if entries > most_entries:
        amount = f"{entries:.3g}" if entries < 10**300 else f"10^{math.log10(entries):.0f}"
        memory = f"{entries * _BYTES / 1e6:,.0f}" if entries < 10**15 else f"10^{math.log10(entries) - 4:.0f}"
        raise ModelError(
            f"the law of this query needs an array of about {amount} entries ({memory} MB), allowed "
            f"are {most_entries:.3g}: the network is too densely connected for exact laws, or the query has too many "
            "values; take a mechanism that needs no law (MarkovQuilt), fewer values, or fewer parents per node"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Factors over the states that the evidence allows, and what each of these adds to the query."""

    sizes: tuple[int, ...]
    """Numbers of states as given."""

    states: tuple[NDArray[np.int64], ...]
    """Indices of the allowed ones."""

    shifts: tuple[tuple[int, ...], ...]
    factors: tuple[Factor, ...]

    @classmethod
    def of(cls, tables: Sequence[Table], sizes: Sequence[int], weights: Weights, allowed: Allowed | None) -> "_Problem":
        masks: Allowed = [None] * len(sizes) if allowed is None else allowed
        states = tuple(
            np.arange(k) if a is None else np.flatnonzero(np.asarray(a)) for k, a in zip(sizes, masks, strict=True)
        )
        shifts = tuple(tuple(int(w[x]) for x in s) for w, s in zip(weights, states, strict=True))
        factors: list[Factor] = []
        for scope, table in tables:
            order = sorted(range(len(scope)), key=lambda axis: scope[axis])
            ascending = tuple(scope[axis] for axis in order)
            part = np.asarray(table, dtype=np.float64).transpose(order)
            for axis, variable in enumerate(ascending):
                if len(states[variable]) < sizes[variable]:
                    part = part.take(states[variable], axis=axis)
            factors.append(Factor(ascending, Wide.of(part[..., None]), 0, 0))
        return cls(tuple(sizes), states, shifts, tuple(factors))

    @property
    def impossible(self) -> bool:
        """Whether the evidence leaves a variable no state at all."""
        return any(not s for s in self.shifts)

    def nothing(self, keep: int | None) -> AdditiveLaw:
        """Return the law of what cannot be."""
        return AdditiveLaw(0, zeros((1,) if keep is None else (self.sizes[keep], 1)), 0.0)

    def finished(self, law: Factor, keep: int | None) -> AdditiveLaw:
        """Return a law with a row for every state, allowed or not."""
        masses = law.masses
        if keep is not None and len(self.states[keep]) < self.sizes[keep]:
            masses = zeros((self.sizes[keep], law.span + 1))
            masses.values[self.states[keep]] = law.masses.values
            masses.levels[self.states[keep]] = law.masses.levels
        return AdditiveLaw(law.start, masses, law.roundings * UNIT)

    def span(self, variable: int) -> int:
        """How much more the largest weight of a variable adds than the least."""
        return max(self.shifts[variable]) - min(self.shifts[variable])

    def components(self) -> list[tuple[list[int], list[Factor]]]:
        """Variables and factors of every connected part; constants go to the first."""
        touching: list[list[int]] = [[] for _ in self.sizes]
        for i, factor in enumerate(self.factors):
            for v in factor.scope:
                touching[v].append(i)
        parts: list[tuple[list[int], list[Factor]]] = []
        seen = [False] * len(self.sizes)
        for start in range(len(self.sizes)):
            if seen[start]:
                continue
            seen[start] = True
            part, used = [start], dict[int, None]()
            for v in part:
                for i in touching[v]:
                    used[i] = None
                    for u in self.factors[i].scope:
                        if not seen[u]:
                            seen[u] = True
                            part.append(u)
            parts.append((sorted(part), [self.factors[i] for i in used]))
        if parts:
            parts[0][1].extend(f for f in self.factors if not f.scope)
        return parts

    def eliminated(
        self, variables: Iterable[int], keep: int | None, factors: Sequence[Factor], most_entries: int
    ) -> Factor:
        """Sum out all of some variables but one, after a look at the size of the arrays."""
        order, entries = self._order([v for v in variables if v != keep], keep, factors)
        _check(entries, most_entries)
        live = dict(enumerate(factors))
        touching: dict[int, set[int]] = {}
        for i, factor in live.items():
            for v in factor.scope:
                touching.setdefault(v, set()).add(i)
        for step, v in enumerate(order, start=len(factors)):
            used = sorted(touching.pop(v, ()))
            summed = live[step] = summed_out([live.pop(i) for i in used], v, self.shifts[v])
            for u in summed.scope:
                touching[u] -= set(used)
                touching[u].add(step)
        if keep is None:
            return product(live.values())
        ones = Factor((keep,), Wide.of(np.ones((len(self.shifts[keep]), 1))), 0, 0)
        return shifted(product([ones, *live.values()]), self.shifts[keep])

    def _order(self, variables: Sequence[int], keep: int | None, factors: Sequence[Factor]) -> tuple[list[int], int]:
        """Return an order of elimination and the entries of its largest array.

        Greedy: next comes the variable whose neighbours have the fewest joint states, then the shortest polynomial.
        """
        live = {i: (f.scope, f.span) for i, f in enumerate(factors)}
        touching: dict[int, set[int]] = {v: set() for v in variables}
        near: dict[int, set[int]] = {v: set() for v in variables}
        if keep is not None:
            touching[keep], near[keep] = set(), set()
        for i, (scope, _) in live.items():
            for v in scope:
                touching[v].add(i)
                near[v].update(scope)
        for v, others in near.items():
            others.discard(v)
        count = [len(s) for s in self.shifts]
        joint = {v: math.prod(count[u] for u in others) for v, others in near.items()}
        spans = {v: sum(live[i][1] for i in ids) for v, ids in touching.items()}
        waiting = [(joint[v], spans[v], v) for v in variables]
        heapq.heapify(waiting)
        order: list[int] = []
        entries = 0
        left = set(variables)
        while left:
            states, span, v = heapq.heappop(waiting)
            if v not in left or (states, span) != (joint[v], spans[v]):
                continue
            left.remove(v)
            step = len(factors) + len(order)
            order.append(v)
            for i in touching.pop(v):
                scope, old = live.pop(i)
                for u in scope:
                    if u != v:
                        touching[u].remove(i)
                        spans[u] -= old
            span += self.span(v)
            entries = max(entries, states * (span + 1))
            scope = near.pop(v)
            live[step] = (tuple(scope), span)
            for u in scope:
                touching[u].add(step)
                spans[u] += span
                near[u].remove(v)
                joint[u] //= count[v]
                for new in scope - near[u] - {u}:
                    near[u].add(new)
                    joint[u] *= count[new]
                if u in left:
                    heapq.heappush(waiting, (joint[u], spans[u], u))
        length = 1 + sum(span for _, span in live.values()) + (self.span(keep) if keep is not None else 0)
        return order, max(entries, length * (count[keep] if keep is not None else 1))


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """A connected part of tables over one or two variables without cycles, rooted where its branches balance."""

    problem: _Problem
    order: list[int]
    """Variables, parents before children."""

    children: dict[int, list[int]]
    """Children of each, the one with the most below it last."""

    own: dict[int, Factor]
    """Product of the tables over one variable alone."""

    link: dict[int, Factor]
    """Product of the tables over a variable and its parent."""

    @classmethod
    def of(cls, problem: _Problem, variables: Sequence[int], factors: Sequence[Factor]) -> "_Tree | None":
        """Return the tree, None if it is none."""
        single: dict[int, list[Factor]] = {
            v: [Factor((v,), Wide.of(np.ones((len(problem.shifts[v]), 1))), 0, 0)] for v in variables
        }
        pairs: dict[tuple[int, ...], list[Factor]] = {}
        for factor in factors:
            if len(factor.scope) > 2:
                return None
            if len(factor.scope) == 2:
                pairs.setdefault(factor.scope, []).append(factor)
            else:
                single[factor.scope[0] if factor.scope else variables[0]].append(factor)
        if len(pairs) != len(variables) - 1:
            return None
        near: dict[int, list[int]] = {v: [] for v in variables}
        for u, v in pairs:
            near[u].append(v)
            near[v].append(u)
        order, parent, below = _rooted(near, variables[0])
        centre = variables[0]
        while heavy := [v for v in near[centre] if parent[v] == centre and 2 * below[v] > len(variables)]:
            centre = heavy[0]
        order, parent, below = _rooted(near, centre)
        children = {v: sorted((u for u in near[v] if parent[u] == v), key=lambda u: below[u]) for v in order}
        link = {v: product(pairs[min(v, p), max(v, p)]) for v, p in parent.items() if p is not None}
        return cls(problem, order, children, {v: product(fs) for v, fs in single.items()}, link)

    @property
    def entries(self) -> int:
        """Entries of all messages of the first sweep, which are held together."""
        spans: dict[int, int] = {}
        total = 0
        for v in reversed(self.order):
            spans[v] = self.problem.span(v) + sum(spans.pop(c) for c in self.children[v])
            total += len(self.problem.shifts[v]) * (spans[v] + 1)
        return total

    def laws(self, rest: Factor) -> Iterator[tuple[int, Factor]]:
        """Yield (v, joint law of X_v and the sum of all), given the law of the sum of everything outside the tree."""
        shifts = self.problem.shifts
        inside: dict[int, Factor] = {}
        for v in reversed(self.order):
            messages = [self._message(c, inside[c]) for c in self.children[v]]
            inside[v] = shifted(product([self.own[v], *messages]), shifts[v])
        root = self.order[0]
        yield root, inside[root] * rest
        walks = [self._downwards(root, rest, inside)] if self.children[root] else []
        while walks:
            v, outside, is_last = next(walks[-1])
            if is_last:
                walks.pop()  # before its heaviest child: no more than log₂ n walks are ever under way
            yield v, inside[v] * outside
            if self.children[v]:
                walks.append(self._downwards(v, outside, inside))
            del inside[v]

    def _message(self, child: int, inside: Factor) -> Factor:
        """Return what a child's side says of its parent."""
        return summed_out([self.link[child], inside], child, [0] * len(self.problem.shifts[child]))

    def _downwards(self, v: int, outside: Factor, inside: dict[int, Factor]) -> Iterator[tuple[int, Factor, bool]]:
        """Yield every child, what the rest says of it, and whether it is the last."""
        children = self.children[v]
        context = shifted(self.own[v] * outside, self.problem.shifts[v])
        messages = [self._message(c, inside[c]) for c in children]
        still = [0] * len(self.problem.shifts[v])
        for i, others in all_but_one(context, messages):
            yield children[i], summed_out([self.link[children[i]], others], v, still), i == len(children) - 1


def _rooted(near: dict[int, list[int]], root: int) -> tuple[list[int], dict[int, int | None], dict[int, int]]:
    """Return an order with parents first, the parents, and how many variables are at or below each."""
    parent: dict[int, int | None] = {root: None}
    order = [root]
    for v in order:
        for u in near[v]:
            if u not in parent:
                parent[u] = v
                order.append(u)
    below = dict.fromkeys(order, 1)
    for v in reversed(order):
        p = parent[v]
        if p is not None:
            below[p] += below[v]
    return order, parent, below
