r"""Exact laws of additive integer queries on factorised distributions, by two sweeps over polynomials.

Variables X_1 … X_n have the unnormalised law Π_t φ_t(X), a product of *tables*. The law of F = Σ_j w_j(X_j) with
integers w_j(x) is the coefficient sequence of the generating function

.. math:: \sum_x \prod_t \varphi_t(x) \prod_j z^{w_j(x_j)},

a sum of products in which every number is a polynomial in z: a *factor* is an array over its variables with one more
axis for the partial sum, a product convolves that axis, and summing a variable out first shifts the entries of its
state x by w(x). Nothing is ever subtracted or divided, so every mass has a relative error of at most (number of
roundings on its way) · 2^-52, and exact zeros are exact zeros.

**Upwards** the variables are eliminated in the order of :mod:`~pufferfish._core.networks.junction_tree`; what the roots
send is the law of F. **Downwards** follow the joint laws of (X_v, F) for *all* v. Products of all messages but one are
made by halving: a star of n leaves costs O(n² log n) steps in all.

References: Koller, Friedman, *Probabilistic Graphical Models*, Chapters 9 and 10; Higham, *Accuracy and Stability of
Numerical Algorithms*, Lemma 3.1.
"""

import math
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pufferfish._core import Mask, Whole
from pufferfish._core.networks.junction_tree import Table, buckets_of
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.numbers.wide import Wide
from pufferfish.errors import ModelError

Weights = Sequence[Whole]
Allowed = Sequence[Mask | None]

MOST_ENTRIES = 50_000_000
"""Entries of the largest array that is ever made; more is refused before it is. All messages have twice as many."""

_BYTES = 64  # memory of an entry while it is computed: two words, and as much again for what is made on the way


# -- Arrays of polynomials -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """An array of polynomials: shape (sizes of the variables in ``scope``, which ascends; number of partial sums).

    ``start`` is the least partial sum. Every true mass is within a factor e^{±log_error} of the computed one, or both
    are exactly 0.
    """

    scope: tuple[int, ...]
    masses: Wide
    start: int = 0
    roundings: int = 0

    @property
    def span(self) -> int:
        """The number of partial sums, less one."""
        return self.masses.shape[-1] - 1

    @property
    def log_error(self) -> float:
        """Bound on the error of the logarithm of each mass."""
        return self.roundings * UNIT

    def __mul__(self, other: "Factor") -> "Factor":
        scope = tuple(sorted({*self.scope, *other.scope}))
        one, two = (f.masses[tuple(slice(None) if v in f.scope else None for v in scope)] for f in (self, other))
        least = min(self.span, other.span) + 1
        masses = _convolved(one, two) if least > 1 else one * two
        return Factor(scope, masses, self.start + other.start, self.roundings + other.roundings + least)

    def at(self, variable: int, state: int) -> "Factor":
        """Return the factor for one state of a variable, which leaves its scope."""
        if variable not in self.scope:
            return self
        axis = self.scope.index(variable)
        rest = self.scope[:axis] + self.scope[axis + 1 :]
        return Factor(rest, self.masses[(slice(None),) * axis + (state,)], self.start, self.roundings)


def _convolved(one: Wide, two: Wide) -> Wide:
    shape = np.broadcast_shapes(one.shape[:-1], two.shape[:-1])

    def rows(w: Wide) -> Wide:
        whole, last = (*shape, w.shape[-1]), w.shape[-1]
        values, levels = np.broadcast_to(w.values, whole), np.broadcast_to(w.levels, whole)
        return Wide(values.reshape(-1, last), levels.reshape(-1, last))

    sums = rows(one).convolved(rows(two))
    return Wide(sums.values.reshape(*shape, -1), sums.levels.reshape(*shape, -1))


def _product(factors: Iterable[Factor]) -> Factor:
    """Multiply the shortest polynomials first."""
    waiting = sorted(factors, key=lambda f: f.span)
    first = 0
    while len(waiting) - first > 1:
        insort(waiting, waiting[first] * waiting[first + 1], lo=first + 2, key=lambda f: f.span)
        first += 2
    return waiting[first] if waiting else Factor((), Wide.of([1.0]))


def _all_but_one(context: Factor, factors: Sequence[Factor]) -> Iterator[Factor]:
    """Yield context · product of all factors but the i-th, for each i in order, by halving."""
    if len(factors) == 1:
        yield context
        return
    middle = len(factors) // 2
    for here, there in ((factors[:middle], factors[middle:]), (factors[middle:], factors[:middle])):
        if here:
            yield from _all_but_one(_product([context, *there]), here)


def _summed_out(factors: Sequence[Factor], variable: int, shifts: Sequence[int]) -> Factor:
    """Multiply factors and sum a variable out, its state x raising the partial sum by ``shifts[x]``."""
    parts = [_product(f.at(variable, state) for f in factors) for state in range(len(shifts))]
    part, low = parts[0], min(shifts)
    masses = Wide.zeros((*part.masses.shape[:-1], part.span + max(shifts) - low + 1))
    for each, shift in zip(parts, shifts, strict=True):
        block = (..., slice(shift - low, shift - low + part.span + 1))
        masses.put(block, masses[block] + each.masses)
    return Factor(part.scope, masses, part.start + low, part.roundings + len(shifts))


def _shifted(factor: Factor, shifts: Sequence[int]) -> Factor:
    """Raise the partial sums of state x of a factor over one variable by ``shifts[x]``."""
    low, size = min(shifts), factor.span + 1
    masses = Wide.zeros((len(shifts), size + max(shifts) - low))
    for x, shift in enumerate(shifts):
        masses.put((x, slice(shift - low, shift - low + size)), factor.masses[x])
    return Factor(factor.scope, masses, factor.start + low, factor.roundings)


# -- The two sweeps --------------------------------------------------------------------------------------------------


def additive_law(
    tables: Sequence[Table],
    sizes: Sequence[int],
    weights: Weights,
    allowed: Allowed | None = None,
    *,
    most_entries: int = MOST_ENTRIES,
) -> Factor:
    """Return the law of F = Σ w_j(X_j) together with the evidence, not divided by the probability of the evidence.

    ``tables`` are non-negative, one axis per variable named, and their product is the law of the variables; variable j
    has ``sizes[j]`` states, each of which adds ``weights[j]`` to the query, and ``allowed[j]`` are those that it can
    have, None for all. A ModelError, before any work, if an array would have more than ``most_entries``.

    Examples
    --------
    Two coins, the second one a copy of the first with probability 0.9, and the number of heads:

    >>> first, second = ((0,), np.array([0.5, 0.5])), ((0, 1), np.array([[0.9, 0.1], [0.1, 0.9]]))
    >>> law = additive_law([first, second], [2, 2], [np.array([0, 1])] * 2)
    >>> law.start, np.exp(law.masses.log()).round(3)
    (0, array([0.45, 0.1 , 0.45]))
    """
    sweeps = _Sweeps(tables, sizes, weights, allowed)
    if sweeps.impossible:
        return Factor((), Wide.zeros((1,)))
    sweeps.check(most_entries, every_law=False)
    messages = sweeps.upwards(keep=False)
    return _product([sweeps.constant, *messages.values()])


def all_node_laws(
    tables: Sequence[Table],
    sizes: Sequence[int],
    weights: Weights,
    allowed: Allowed | None = None,
    *,
    most_entries: int = MOST_ENTRIES,
) -> Iterator[tuple[int, Factor]]:
    """Yield (j, joint law of (X_j, F)) for every variable j, in the order in which they come about.

    As in :func:`additive_law`; a law has a row for every state, allowed or not.
    """
    sweeps = _Sweeps(tables, sizes, weights, allowed)
    if sweeps.impossible:
        yield from ((j, Factor((j,), Wide.zeros((size, 1)))) for j, size in enumerate(sizes))
        return
    sweeps.check(most_entries, every_law=True)
    for j, law in sweeps.downwards():
        masses = Wide.zeros((sizes[j], law.span + 1))
        masses.put(sweeps.states[j], law.masses)
        yield j, Factor(law.scope, masses, law.start, law.roundings)


class _Sweeps:
    """The tables over the states that the evidence allows, in the buckets of the variables."""

    def __init__(
        self, tables: Sequence[Table], sizes: Sequence[int], weights: Weights, allowed: Allowed | None
    ) -> None:
        masks: Allowed = [None] * len(sizes) if allowed is None else allowed
        self.states = [
            np.arange(k) if a is None else np.flatnonzero(np.asarray(a)) for k, a in zip(sizes, masks, strict=True)
        ]
        self._shifts = [[int(w[x]) for x in s] for w, s in zip(weights, self.states, strict=True)]
        self._counts = [len(s) for s in self.states]
        factors: list[Factor] = []
        for scope, table in tables:
            order = sorted(range(len(scope)), key=lambda axis: scope[axis])
            ascending = tuple(scope[axis] for axis in order)
            part = np.asarray(table, dtype=np.float64).transpose(order)
            factors.append(Factor(ascending, Wide.of(part[np.ix_(*(self.states[v] for v in ascending))][..., None])))
        self.constant = _product(f for f in factors if not f.scope)
        scopes = [(v,) for v in range(len(sizes))] + [f.scope for f in factors if f.scope]
        self._buckets = buckets_of(scopes, self._counts)
        place = {bucket.node: b for b, bucket in enumerate(self._buckets)}
        self._tables: list[list[Factor]] = [[] for _ in self._buckets]
        for factor in factors:
            if factor.scope:
                self._tables[min(place[v] for v in factor.scope)].append(factor)
        spans = self._spans = [0] * len(self._buckets)  # of the messages
        children: list[list[int]] = [[] for _ in self._buckets]
        for b, bucket in enumerate(self._buckets):
            shifts = self._shifts[bucket.node] or [0]
            spans[b] = max(shifts) - min(shifts) + sum(spans[c] for c in children[b])
            if bucket.parent >= 0:
                children[bucket.parent].append(b)
        # the heaviest child last: then no more than log₂ n walks are ever under way
        self._children = [sorted(below, key=lambda c: spans[c]) for below in children]
        self._roots = [b for b, bucket in enumerate(self._buckets) if bucket.parent < 0]

    @property
    def impossible(self) -> bool:
        """Whether the evidence leaves a variable no state at all."""
        return 0 in self._counts

    def check(self, most_entries: int, *, every_law: bool) -> None:
        """Refuse arrays that are too large, before any is made."""
        length = 1 + sum(self._spans[b] for b in self._roots)

        def configurations(scope: Iterable[int]) -> int:
            return math.prod(self._counts[v] for v in scope)

        messages = [
            configurations(b.separator) * (span + 1) for b, span in zip(self._buckets, self._spans, strict=True)
        ]
        entries = max(length, *messages) if messages else length
        if every_law and messages:
            entries = max(entries, -(-sum(messages) // 2), *(configurations(b.scope) * length for b in self._buckets))
        if entries > most_entries:
            amount = f"{entries:.3g}" if entries < 10**300 else f"10^{math.log10(entries):.0f}"
            memory = f"{entries * _BYTES / 1e6:,.0f}" if entries < 10**15 else f"10^{math.log10(entries) - 4:.0f}"
            raise ModelError(
                f"the law of this query needs an array of about {amount} entries ({memory} MB), allowed "
                f"are {most_entries:.3g}: the network is too densely connected for exact laws, or the query has too "
                "many values; take a mechanism that needs no law (MarkovQuilt), fewer values, or fewer parents per node"
            )

    def upwards(self, *, keep: bool) -> dict[int, Factor]:
        """Return the messages of the roots, or of all buckets."""
        messages: dict[int, Factor] = {}
        take: Callable[[int], Factor] = messages.__getitem__ if keep else messages.pop
        for b, bucket in enumerate(self._buckets):
            inside = [*self._tables[b], *(take(c) for c in self._children[b])]
            messages[b] = _summed_out(inside, bucket.node, self._shifts[bucket.node])
        return messages

    def downwards(self) -> Iterator[tuple[int, Factor]]:
        """Yield (v, joint law of X_v and F) for every variable."""
        messages = self.upwards(keep=True)
        walks = [self._handed(self.constant, self._roots, messages)] if self._roots else []
        while walks:
            b, outside, is_last = next(walks[-1])
            if is_last:
                walks.pop()
            v, children = self._buckets[b].node, self._children[b]
            needed = {v}.union(*(self._buckets[c].separator for c in children))
            context = self._eliminated([*self._tables[b], outside], needed)
            own = Factor((v,), Wide.of(np.ones((self._counts[v], 1))))
            law = self._eliminated([own, context, *(messages[c] for c in children)], {v})
            yield v, _shifted(law, self._shifts[v])  # the value of v itself comes last
            if children:
                walks.append(self._handed(context, children, messages))

    def _handed(
        self, context: Factor, children: Sequence[int], messages: dict[int, Factor]
    ) -> Iterator[tuple[int, Factor, bool]]:
        """Yield every child, what all but its side says of its separator, and whether it is the last."""
        others = _all_but_one(context, [messages[c] for c in children])
        for c, rest in zip(children, others, strict=True):
            yield c, self._eliminated([rest], {*self._buckets[c].separator}), c == children[-1]

    def _eliminated(self, factors: Sequence[Factor], kept: set[int]) -> Factor:
        """Multiply factors and sum out all variables but some."""
        left = list(factors)
        for v in sorted({v for f in factors for v in f.scope} - kept):
            using = [f for f in left if v in f.scope]
            left = [f for f in left if v not in f.scope]
            left.append(_summed_out(using, v, self._shifts[v]))
        return _product(left)
