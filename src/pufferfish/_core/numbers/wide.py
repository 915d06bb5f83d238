r"""Non-negative numbers with a wide exponent: what no double can hold, to the relative accuracy of doubles.

The law of a count over 10,000 records has masses near e^{-5000}, and those masses decide (a distance between two laws
is decided by their tails, a likelihood ratio by its worst output). A :class:`Wide` array holds each number as
``value · 2^(600·level)`` with ``2^-300 ≤ value < 2^300``: sums, products and convolutions of such numbers have the
relative error that they would have in doubles without limits, a few units in the last place for each addition (an
addend that is 2^-600 times another is dropped, which is far below that). Exact zeros stay exact zeros.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._core.numbers.compiled import Loop
from pufferfish._core.numbers.wide_loops import BIG, DOWN, LEVEL_OF_ZERO, SMALL, UP, accumulate, convolve, push, smooth

__all__ = ["LOG_STEP", "Wide"]

Values = NDArray[np.float64]
Levels = NDArray[np.int64]

_STEP = 600
LOG_STEP = _STEP * math.log(2)
"""Natural logarithm of what one level is worth."""


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """Non-negative numbers ``values · 2^(600·levels)``, of any shape.

    Parameters
    ----------
    values : ndarray of float
        0, or within [2^-300, 2^300).
    levels : ndarray of int, same shape
        Level of each; that of a 0 is below all others.

    Examples
    --------
    >>> tiny = Wide.of([1e-200, 0.5, 0.0])
    >>> (tiny * tiny * tiny).log().round(2)
    array([-1381.55,    -2.08,     -inf])
    """

    values: Values
    levels: Levels

    @classmethod
    def of(cls, numbers: ArrayLike) -> "Wide":
        """Return finite non-negative doubles as wide numbers."""
        values = np.asarray(numbers, dtype=np.float64)
        return cls(values, np.zeros(values.shape, dtype=np.int64))._normal()

    @classmethod
    def exp(cls, logs: ArrayLike) -> "Wide":
        """Return e to the power of finite numbers, each to a relative error of about |log|·2^-52."""
        exponents = np.asarray(logs, dtype=np.float64)
        levels = np.round(exponents / LOG_STEP)
        return cls(np.exp(exponents - levels * LOG_STEP), levels.astype(np.int64))._normal()

    @classmethod
    def ratio(cls, numerators: list[int], denominator: int) -> "Wide":
        """Return whole numbers of any size over a common denominator, rounded once or twice."""
        values, levels = np.zeros(len(numerators)), np.full(len(numerators), LEVEL_OF_ZERO, dtype=np.int64)
        for i, numerator in enumerate(numerators):
            if numerator:
                level = round((numerator.bit_length() - denominator.bit_length()) / _STEP)
                shift = _STEP * abs(level)
                values[i] = numerator / (denominator << shift) if level > 0 else (numerator << shift) / denominator
                levels[i] = level
        return cls(values, levels)._normal()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.values.shape

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.values.size

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Which entries are not 0."""
        return self.values > 0

    def __getitem__(self, index: Any) -> "Wide":
        return Wide(np.asarray(self.values[index]), np.asarray(self.levels[index]))

    def __mul__(self, other: "Wide") -> "Wide":
        return Wide(self.values * other.values, self.levels + other.levels)._normal()

    def __add__(self, other: "Wide") -> "Wide":
        top = np.maximum(self.levels, other.levels)
        return Wide(self._at(top) + other._at(top), top)._normal()

    def __truediv__(self, other: "Wide") -> "Wide":
        """Divide by positive numbers."""
        return Wide(self.values / other.values, self.levels - other.levels)._normal()

    def sum(self, axis: int = -1) -> "Wide":
        """Return the sums along an axis."""
        top = self.levels.max(axis=axis, keepdims=True)
        return Wide(self._at(top).sum(axis=axis), top.squeeze(axis))._normal()

    def log(self) -> Values:
        """Return natural logarithms, −∞ for 0."""
        with np.errstate(divide="ignore"):
            logs: Values = np.log(self.values)
        return logs + self.levels * LOG_STEP

    def whole(self) -> tuple[list[int], int]:
        """Return the very same numbers as whole numbers over one power of two, for a one-dimensional array."""
        mantissas, exponents = np.frexp(self.values)
        exponents = exponents.astype(np.int64) - 53 + _STEP * np.where(self.positive, self.levels, 0)
        least = int(exponents[self.positive].min(initial=0))
        digits = [int(m) for m in np.ldexp(mantissas, 53)]
        return [d << (int(e) - least) if d else 0 for d, e in zip(digits, exponents, strict=True)], -least

    def accumulated(self, *, from_above: bool = False) -> "Wide":
        """Return the cumulative sums of a one-dimensional array; from its end where asked."""
        values, levels = self.values, self.levels
        if from_above:
            values, levels = values[::-1].copy(), levels[::-1].copy()
        sums, sum_levels = np.empty_like(values), np.empty_like(levels)
        _accumulate(4 * values.size, values, levels, sums, sum_levels)
        return Wide(sums[::-1], sum_levels[::-1]) if from_above else Wide(sums, sum_levels)

    def smoothed(self, ratio: "Wide", first: int, size: int) -> "Wide":
        """Return Σ_n x(n) ratio^|w − n| for w = 0, …, size − 1, where this one-dimensional array is x(first), ….

        ``ratio`` is one wide number of at most 1; no x lies outside of the w.
        """
        assert 0 <= first <= size - self.size
        sums, sum_levels = np.empty(size), np.empty(size, dtype=np.int64)
        _smooth(8 * size, self.values, self.levels, first, float(ratio.values), int(ratio.levels), sums, sum_levels)
        return Wide(sums, sum_levels)

    def convolved(self, other: "Wide") -> "Wide":
        """Return the convolutions along the last axis, row by row of equally many rows (or of two single rows)."""
        short, long = (self, other) if self.shape[-1] <= other.shape[-1] else (other, self)
        size = short.shape[-1] + long.shape[-1] - 1
        rows = [np.ascontiguousarray(np.atleast_2d(a)) for w in (short, long) for a in (w.values, w.levels)]
        values = np.zeros((len(rows[0]), size))
        levels = np.full((len(rows[0]), size), LEVEL_OF_ZERO, dtype=np.int64)
        _convolve(short.size * long.shape[-1], *rows, values, levels)
        shape = (*self.shape[:-1], size)
        return Wide(values.reshape(shape), levels.reshape(shape))

    def pushed(self, p: "Wide", shifts: NDArray[np.int64]) -> "Wide":
        """Return one step of a chain, ``out[y, s + shifts[y]] = Σ_x self[x, s] · p[x, y]``."""
        k, size = self.shape[0], self.shape[1] + int(shifts.max())
        out = np.zeros((k, size)), np.full((k, size), LEVEL_OF_ZERO, dtype=np.int64)
        _push(k * self.size, self.values, self.levels, p.values, p.levels, shifts, *out)
        return Wide(*out)

    def _at(self, levels: Levels) -> Values:
        """Return the values at given levels, none of them below the number's own by more than rounding shows."""
        below = levels - self.levels
        return np.where(below == 0, self.values, np.where(below == 1, self.values * DOWN, 0.0))

    def _normal(self) -> "Wide":
        values, levels = self.values, self.levels
        large, small = values >= BIG, values < SMALL
        if large.any():
            values, levels = np.where(large, values * DOWN, values), levels + large
        if small.any():
            zero = values == 0
            values = np.where(small, values * UP, values)
            levels = np.where(zero, LEVEL_OF_ZERO, levels - small)
        return Wide(values, levels)


_accumulate, _convolve, _push, _smooth = Loop(accumulate), Loop(convolve), Loop(push), Loop(smooth)
