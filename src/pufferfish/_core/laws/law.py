r"""The law of an integer statistic, with masses that are known to a relative error.

The exact loss of Laplace noise for a statistic whose laws are known (beyond the paper).

For laws μ, ν of an integer statistic the loss of Lap(b) is the largest log ratio, either way, of
:math:`(\mu * k)(w) = \sum_n \mu(n)\, e^{-|w-n|/b}` and the same for ν. Between two neighbouring atoms the ratio is a
Möbius function of e^{2w/b}, hence monotone, and beyond the outermost atoms it is constant: whole numbers w between them
suffice, for real noise as for the discrete noise of a release. Both sums over n ≤ w and n > w are geometric recursions,
so the loss at all w costs as much as reading the laws.

It never increases with b, since Lap(b') with b' > b is Lap(b) and more independent noise.
"""

import math
from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.rounding import UNIT, or_infinite
from pufferfish._core.numbers.wide import LOG_STEP, Wide

__all__ = [
    "Factor",
    "Law",
    "VectorLaw",
    "all_but_one",
    "laplace_loss",
    "log_rounding",
    "product",
    "shifted",
    "smoothed",
    "sum_of",
    "summed_out",
    "unit",
    "zeros",
]


@dataclass(frozen=True, eq=False)
class Law:
    """A law on the whole numbers from ``start`` on.

    Parameters
    ----------
    start : int
        The least number with mass.
    masses : (n,) Wide
        Their probabilities, the first and the last positive. Zeros are exact: what has mass 0 here is impossible.
    log_error : float
        Every mass is within a factor e^{±log_error} of the true one (of each true one, where it stands for several).
    log_weight : float
        Logarithm of the probability of what the law is conditioned on, known to the same error.

    Examples
    --------
    >>> Law.exact(0, [Fraction(1, 4), Fraction(0), Fraction(3, 4)]).log_below().round(3)
    array([-1.386, -1.386,  0.   ])
    """

    start: int
    masses: Wide
    log_error: float
    log_weight: float = 0.0

    @classmethod
    def exact(cls, start: int, masses: Sequence[Fraction]) -> "Law":
        """Return a law from exact fractions."""
        denominator = lcm(*(m.denominator for m in masses))
        return cls.of(start, Wide.ratio([int(m * denominator) for m in masses], denominator), 4 * UNIT)

    @classmethod
    def of(cls, start: int, weights: Wide, log_error: float) -> "Law":
        """Return the law proportional to weights of that relative error, not all 0."""
        positive = np.flatnonzero(weights.positive)
        first, last = int(positive[0]), int(positive[-1])
        kept = weights[first : last + 1]
        total = kept.sum()
        error = 2 * log_error + (kept.size + 8) * UNIT
        return cls(start + first, kept / total, error, float(total.log()))

    @property
    def size(self) -> int:
        """Numbers from the least to the greatest that have mass."""
        return self.masses.size

    @property
    def end(self) -> int:
        """The greatest number with mass."""
        return self.start + self.size - 1

    def plus(self, other: "Law") -> "Law":
        """Return the law of the sum of independent numbers with these laws."""
        rounding = (4 * min(self.size, other.size) + 16) * UNIT
        masses = self.masses.convolved(other.masses)
        error = self.log_error + other.log_error + rounding
        return Law(self.start + other.start, masses, error, self.log_weight + other.log_weight)

    def within(self, log_error: float) -> "Law":
        """Return this law standing for others too, whose masses differ by a factor of at most e^{±log_error}."""
        return replace(self, log_error=self.log_error + log_error) if log_error else self

    @cached_property
    def _below(self) -> NDArray[np.float64]:
        return _read_only(np.maximum.accumulate(self.masses.accumulated().log()))

    @cached_property
    def _above(self) -> NDArray[np.float64]:
        return _read_only(np.maximum.accumulate(self.masses.accumulated(from_above=True).log()[::-1])[::-1])

    def log_below(self) -> NDArray[np.float64]:
        """Return log P(F ≤ n) for n = start …; shape (n,)."""
        return self._below

    def log_above(self) -> NDArray[np.float64]:
        """Return log P(F ≥ n) for n = start …; shape (n,)."""
        return self._above

    @property
    def cumulative_error(self) -> float:
        """Bound on the absolute error of :meth:`log_below` and :meth:`log_above`."""
        return self.log_error + log_rounding(self.masses, self.size)


@dataclass(frozen=True, slots=True, eq=False)
class VectorLaw:
    """A law on vectors of whole numbers.

    Parameters
    ----------
    points : (n, m) ndarray of int
        The vectors with mass, all different.
    masses : (n,) Wide
        Their probabilities, all positive.
    log_error : float
        Every mass is within a factor e^{±log_error} of the true one.
    """

    points: NDArray[np.int64]
    masses: Wide
    log_error: float

    @property
    def size(self) -> int:
        """Number of vectors with mass."""
        return self.masses.size


def sum_of(parts: Iterable[tuple[Law, int]], more: Law | None = None) -> Law:
    """Return the law of a sum of independent numbers: so many with each law, and one more where it is given."""
    total = more
    for law, times in parts:
        power = law
        while times:
            if times % 2:
                total = power if total is None else total.plus(power)
            times //= 2
            power = power.plus(power) if times else power
    return Law.exact(0, [Fraction(1)]) if total is None else total


def log_rounding(masses: Wide, additions: int) -> float:
    """Bound the rounding of sums of so many of these masses and of their logarithms."""
    farthest = float(np.max(np.abs(masses.levels), where=masses.positive, initial=0))
    return UNIT * (4 * additions + 16 + 4 * LOG_STEP * (farthest + 1))


def _read_only(kept: NDArray[np.float64]) -> NDArray[np.float64]:
    kept.flags.writeable = False
    return kept


# -- The exact loss of Laplace noise for a statistic whose laws are known (beyond the paper) -------------------------

_FARTHEST = 1e12
"""Logarithms of what noise could make of a law's farthest mass, up to which wide numbers reach."""


def laplace_loss(mu: Law, nu: Law, scale: float) -> float:
    """Return the loss of Laplace noise for a pair of laws, in nats, rounded up.

    Examples
    --------
    >>> from fractions import Fraction
    >>> point, other = (Law.exact(n, [Fraction(1)]) for n in (0, 3))
    >>> round(laplace_loss(point, other, 3.0), 9)
    1.0
    """
    low, high = min(mu.start, nu.start), max(mu.end, nu.end)
    (first, first_error), (second, second_error) = (smoothed([law], low, high, scale) for law in (mu, nu))
    if not (first_error < math.inf and second_error < math.inf):
        return math.inf
    return or_infinite(float(np.max(np.abs(first - second))) + first_error + second_error)


def smoothed(laws: Sequence[Law | None], low: int, high: int, scale: float) -> tuple[NDArray[np.float64], float]:
    """Return log Σ_n μ(n) e^{−|w−n|/b} for w from low to high, for each of some laws, and a bound of its error.

    A law that is None has −∞; the error is infinite where wide numbers do not reach.
    """
    # what is computed for a ratio e^{−1/b} that is rounded holds for a scale next to b: take one below it
    b = scale * (1 - 8 * UNIT * (1 + 1 / scale + scale))
    size = high - low + 1
    logs = np.full((len(laws), size), -np.inf)
    if not 0 < b < math.inf or size / b > _FARTHEST:
        return logs, math.inf
    ratio, error = Wide.exp(-1 / b), 0.0
    for i, law in enumerate(laws):
        if law is not None:
            masses = law.masses.smoothed(ratio, law.start - low, size)
            logs[i] = masses.log()
            error = max(error, or_infinite(law.log_error + log_rounding(masses, 4 * size)))
    return logs, error


# -- Factors of a distribution whose entries are polynomials in the value of a query ---------------------------------


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
    convolution = rows[0].convolved(rows[1])
    size = convolution.shape[-1]
    return Wide(convolution.values.reshape(*shape, size), convolution.levels.reshape(*shape, size))


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
    masses: Wide | None = None
    part = unit()
    for state, shift in enumerate(shifts):
        part = product(f.at(variable, state) for f in factors)
        if masses is None:
            masses = zeros((*part.masses.shape[:-1], part.span + span + 1))
        block = (..., slice(shift - low, shift - low + part.span + 1))
        added = masses[block] + part.masses
        masses.values[block], masses.levels[block] = added.values, added.levels
    assert masses is not None
    return Factor(part.scope, masses, part.start + low, part.roundings + len(shifts))


def shifted(factor: Factor, shifts: Sequence[int]) -> Factor:
    """Raise the partial sums of state x of a factor over one variable by ``shifts[x]``."""
    low, size = min(shifts), factor.span + 1
    masses = zeros((len(shifts), factor.span + max(shifts) - low + 1))
    for state, shift in enumerate(shifts):
        block = (state, slice(shift - low, shift - low + size))
        masses.values[block], masses.levels[block] = factor.masses.values[state], factor.masses.levels[state]
    return Factor(factor.scope, masses, factor.start + low, factor.roundings)
