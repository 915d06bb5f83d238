r"""The law of an integer statistic, with masses that are known to a relative error.

For laws μ, ν the loss of Lap(b) is the largest log ratio, either way, of :math:`(\mu * k)(w) = \sum_n \mu(n)\,
e^{-|w-n|/b}` and the same for ν. Between two neighbouring atoms the ratio is a Möbius function of e^{2w/b}, hence
monotone, and beyond the outermost atoms it is constant: whole numbers w between them suffice.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np

from pufferfish._base.frozen import read_only
from pufferfish._core import Array, Whole
from pufferfish._core.numbers.rounding import UNIT, or_infinite
from pufferfish._core.numbers.wide import LOG_STEP, Wide


@dataclass(frozen=True, eq=False)
class Law:
    """A law on the whole numbers from ``start`` on; the first and the last mass are positive.

    Every mass is within a factor e^{±log_error} of the true one (of each true one, where it stands for several), and
    exact zeros are impossible. ``log_weight`` is the logarithm of the probability of what the law is conditioned on,
    known to the same error.

    Examples
    --------
    >>> Law.exact(0, [Fraction(1, 4), Fraction(0), Fraction(3, 4)]).log_below.round(3)
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

    @property
    def points(self) -> Whole:
        """The numbers as vectors; shape (n, 1)."""
        return np.arange(self.start, self.start + self.size)[:, None]

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
    def log_below(self) -> Array:
        """Log P(F ≤ n) for n = start …; shape (n,)."""
        return read_only(np.maximum.accumulate(self.masses.accumulated().log()))

    @cached_property
    def log_above(self) -> Array:
        """Log P(F ≥ n) for n = start …; shape (n,)."""
        return read_only(np.maximum.accumulate(self.masses.accumulated(from_above=True).log()[::-1])[::-1])

    @property
    def cumulative_error(self) -> float:
        """Bound on the absolute error of :attr:`log_below` and :attr:`log_above`."""
        return self.log_error + log_rounding(self.masses, self.size)


@dataclass(frozen=True, slots=True, eq=False)
class VectorLaw:
    """A law on different vectors of whole numbers, (n, m), with positive masses within a factor e^{±log_error}."""

    points: Whole
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


# -- The exact loss of Laplace noise for a statistic whose laws are known (beyond the paper) -------------------------

_FARTHEST = 1e12  # logarithms of what noise could make of a law's farthest mass, up to which wide numbers reach


def laplace_loss(mu: Law, nu: Law, scale: float) -> float:
    """Return the loss of Laplace noise for a pair of laws, in nats, rounded up."""
    low, high = min(mu.start, nu.start), max(mu.end, nu.end)
    (first, first_error), (second, second_error) = (smoothed([law], low, high, scale) for law in (mu, nu))
    if not (first_error < math.inf and second_error < math.inf):
        return math.inf
    return or_infinite(float(np.max(np.abs(first - second))) + first_error + second_error)


def smoothed(laws: Sequence[Law | None], low: int, high: int, scale: float) -> tuple[Array, float]:
    """Return log Σ_n μ(n) e^{−|w−n|/b} for w from low to high, for each law (−∞ for None), and a bound of its error."""
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
