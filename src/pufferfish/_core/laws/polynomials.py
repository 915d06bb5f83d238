"""Factors of a distribution whose entries are polynomials in the value of a query: sums and products of them."""

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pufferfish._core.numbers.wide import Wide

__all__ = ["Factor", "all_but_one", "product", "shifted", "summed_out", "unit", "zeros"]


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """An array of polynomials: shape (sizes of the variables in ``scope``, which ascends; number of partial sums)."""

    scope: tuple[int, ...]
    masses: Wide
    start: int
    roundings: int

    @property
    def span(self) -> int:
        """The number of partial sums, less one."""
        return self.masses.shape[-1] - 1

    def __mul__(self, other: "Factor") -> "Factor":
        scope = tuple(sorted({*self.scope, *other.scope}))
        one, two = self._over(scope), other._over(scope)
        least = min(self.span, other.span) + 1
        if least > 1:
            masses = _convolved(one, two)
        else:
            masses = one * two
        return Factor(scope, masses, self.start + other.start, self.roundings + other.roundings + least)

    def at(self, variable: int, state: int) -> "Factor":
        """Return the factor for one state of a variable, which leaves its scope."""
        if variable not in self.scope:
            return self
        axis = self.scope.index(variable)
        rest = self.scope[:axis] + self.scope[axis + 1 :]
        return Factor(rest, self.masses[(slice(None),) * axis + (state,)], self.start, self.roundings)

    def _over(self, scope: tuple[int, ...]) -> Wide:
        return self.masses[tuple(slice(None) if v in self.scope else None for v in scope)]


def unit() -> Factor:
    """Return the factor 1, over no variable."""
    return Factor((), Wide.of([1.0]), 0, 0)


def zeros(shape: tuple[int, ...]) -> Wide:
    """Return an array of zeros."""
    return Wide.of(np.zeros(shape))


def _broadcast(one: Wide, shape: tuple[int, ...]) -> Wide:
    """Repeat entries to a shape, and flatten all axes but the last."""
    values, levels = np.broadcast_to(one.values, shape), np.broadcast_to(one.levels, shape)
    return Wide(values.reshape(-1, shape[-1]), levels.reshape(-1, shape[-1]))


def _convolved(one: Wide, two: Wide) -> Wide:
    shape = np.broadcast_shapes(one.shape[:-1], two.shape[:-1])
    rows = [_broadcast(w, (*shape, w.shape[-1])) for w in (one, two)]
    found = rows[0].convolved(rows[1])
    size = found.shape[-1]
    return Wide(found.values.reshape(*shape, size), found.levels.reshape(*shape, size))


def product(factors: Iterable[Factor]) -> Factor:
    """Multiply the shortest polynomials first."""
    waiting = sorted(factors, key=lambda f: f.span)
    first = 0
    while len(waiting) - first > 1:
        insort(waiting, waiting[first] * waiting[first + 1], lo=first + 2, key=lambda f: f.span)
        first += 2
    return waiting[first] if waiting else unit()


def all_but_one(context: Factor, factors: Sequence[Factor]) -> Iterator[tuple[int, Factor]]:
    """Yield (i, context · product of all factors but the i-th), in order, by halving."""

    def within(context: Factor, low: int, high: int) -> Iterator[tuple[int, Factor]]:
        if high - low == 1:
            yield low, context
            return
        middle = (low + high) // 2
        yield from within(context * product(factors[middle:high]), low, middle)
        yield from within(context * product(factors[low:middle]), middle, high)

    return within(context, 0, len(factors)) if factors else iter(())


def summed_out(factors: Sequence[Factor], variable: int, shifts: Sequence[int]) -> Factor:
    """Multiply factors and sum a variable out, its state x raising the partial sum by ``shifts[x]``."""
    low, span = min(shifts), max(shifts) - min(shifts)
    found: Wide | None = None
    part = unit()
    for state, shift in enumerate(shifts):
        part = product(f.at(variable, state) for f in factors)
        if found is None:
            found = zeros((*part.masses.shape[:-1], part.span + span + 1))
        at = (..., slice(shift - low, shift - low + part.span + 1))
        added = found[at] + part.masses
        found.values[at], found.levels[at] = added.values, added.levels
    assert found is not None
    return Factor(part.scope, found, part.start + low, part.roundings + len(shifts))


def shifted(factor: Factor, shifts: Sequence[int]) -> Factor:
    """Raise the partial sums of state x of a factor over one variable by ``shifts[x]``."""
    low, size = min(shifts), factor.span + 1
    found = zeros((len(shifts), factor.span + max(shifts) - low + 1))
    for state, shift in enumerate(shifts):
        at = (state, slice(shift - low, shift - low + size))
        found.values[at], found.levels[at] = factor.masses.values[state], factor.masses.levels[state]
    return Factor(factor.scope, found, factor.start + low, factor.roundings)
