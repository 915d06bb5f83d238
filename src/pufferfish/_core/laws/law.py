"""The law of an integer statistic, with masses that are known to a relative error."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.numbers.wide import LOG_STEP, Wide

__all__ = ["Law", "VectorLaw", "log_rounding", "sum_of"]


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
    found = more
    for law, times in parts:
        power = law
        while times:
            if times % 2:
                found = power if found is None else found.plus(power)
            times //= 2
            power = power.plus(power) if times else power
    return Law.exact(0, [Fraction(1)]) if found is None else found


def log_rounding(masses: Wide, additions: int) -> float:
    """Bound the rounding of sums of so many of these masses and of their logarithms."""
    farthest = float(np.max(np.abs(masses.levels), where=masses.positive, initial=0))
    return UNIT * (4 * additions + 16 + 4 * LOG_STEP * (farthest + 1))


def _read_only(kept: NDArray[np.float64]) -> NDArray[np.float64]:
    kept.flags.writeable = False
    return kept
