"""Non-negative numbers with a wide exponent: what no double can hold, to the relative accuracy of doubles.

The law of a count over 10,000 records has masses near e^{-5000}, and those masses decide. A :class:`Wide` array holds
each number as ``value · 2^(600·level)`` with ``2^-300 ≤ value < 2^300``: sums, products and convolutions have a
relative error of a few units in the last place for each addition. Exact zeros stay exact zeros.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pufferfish._core import Array, Mask, Whole
from pufferfish._core.numbers.compiled import Loop

_STEP = 600
UP, DOWN = 2.0**_STEP, 2.0**-_STEP
BIG, SMALL = 2.0 ** (_STEP // 2), 2.0 ** -(_STEP // 2)
LEVEL_OF_ZERO = -(2**40)
LOG_STEP = _STEP * math.log(2)  # natural logarithm of what one level is worth


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """Non-negative numbers ``values · 2^(600·levels)``, of any shape; a value is 0, or within [2^-300, 2^300).

    The level of a 0 is below all others.

    Examples
    --------
    >>> tiny = Wide.of([1e-200, 0.5, 0.0])
    >>> (tiny * tiny * tiny).log().round(2)
    array([-1381.55,    -2.08,     -inf])
    """

    values: Array
    levels: Whole

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

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> "Wide":
        """Return zeros, to be filled by :meth:`put`."""
        return cls(np.zeros(shape), np.full(shape, LEVEL_OF_ZERO, dtype=np.int64))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.values.shape

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.values.size

    @property
    def positive(self) -> Mask:
        """Which entries are not 0."""
        return self.values > 0

    def __getitem__(self, index: Any) -> "Wide":
        return Wide(np.asarray(self.values[index]), np.asarray(self.levels[index]))

    def put(self, index: Any, part: "Wide") -> None:
        """Write numbers into the arrays, which must not be shared."""
        self.values[index], self.levels[index] = part.values, part.levels

    def where(self, kept: Mask) -> "Wide":
        """Return the numbers where a mask is true, and zeros elsewhere."""
        return Wide(np.where(kept, self.values, 0.0), np.where(kept, self.levels, LEVEL_OF_ZERO))

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

    def log(self) -> Array:
        """Return natural logarithms, −∞ for 0."""
        with np.errstate(divide="ignore"):
            logs: Array = np.log(self.values)
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
        """Return Σ_n x(n) ratio^|w − n| for w = 0, …, size − 1, where this array is x(first), …; ratio ≤ 1."""
        assert 0 <= first <= size - self.size
        sums, sum_levels = np.empty(size), np.empty(size, dtype=np.int64)
        _smooth(8 * size, self.values, self.levels, first, float(ratio.values), int(ratio.levels), sums, sum_levels)
        return Wide(sums, sum_levels)

    def convolved(self, other: "Wide") -> "Wide":
        """Return the convolutions along the last axis, row by row of equally many rows (or of two single rows)."""
        short, long = (self, other) if self.shape[-1] <= other.shape[-1] else (other, self)
        size = short.shape[-1] + long.shape[-1] - 1
        rows = [np.ascontiguousarray(np.atleast_2d(a)) for w in (short, long) for a in (w.values, w.levels)]
        out = Wide.zeros((len(rows[0]), size))
        _convolve(short.size * long.shape[-1], *rows, out.values, out.levels)
        shape = (*self.shape[:-1], size)
        return Wide(out.values.reshape(shape), out.levels.reshape(shape))

    def pushed(self, p: "Wide", shifts: Whole) -> "Wide":
        """Return one step of a chain, ``out[y, s + shifts[y]] = Σ_x self[x, s] · p[x, y]``."""
        k = self.shape[0]
        out = Wide.zeros((k, self.shape[1] + int(shifts.max())))
        _push(k * self.size, self.values, self.levels, p.values, p.levels, shifts, out.values, out.levels)
        return out

    def _at(self, levels: Whole) -> Array:
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


# -- The loops, over plain arrays: numba can compile them as they stand -----------------------------------------------


def normal(a: float, a_level: int) -> Any:
    """Return the value and the level of a number whose value may be one level out of range."""
    if a == 0.0:
        return 0.0, LEVEL_OF_ZERO
    if a < SMALL:
        return a * UP, a_level - 1
    if a >= BIG:
        return a * DOWN, a_level + 1
    return a, a_level


def plus(a: float, a_level: int, b: float, level: int) -> Any:
    """Return the value and the level of a sum."""
    if b == 0.0:
        return a, a_level
    if level == a_level:
        a += b
    elif level == a_level + 1:
        a, a_level = a * DOWN + b, level
    elif level > a_level:
        a, a_level = b, level
    elif level == a_level - 1:
        a += b * DOWN
    if a >= BIG:
        return a * DOWN, a_level + 1
    return a, a_level


def accumulate(values: Any, levels: Any, out: Any, out_levels: Any) -> None:
    """Write A(n) = A(n−1) + x(n)."""
    a, a_level = 0.0, LEVEL_OF_ZERO
    for n in range(values.shape[0]):
        a, a_level = plus(a, a_level, values[n], levels[n])
        out[n] = a
        out_levels[n] = a_level


def smooth(values: Any, levels: Any, first: int, ratio: float, ratio_level: int, out: Any, out_levels: Any) -> None:
    """Write Σ_n x(n) ratio^|w − n| for w = 0, 1, …, where ``values`` are x(first), x(first + 1), …; others are 0."""
    a, a_level = 0.0, LEVEL_OF_ZERO
    for w in range(out.shape[0]):  # n ≤ w
        a, a_level = normal(a * ratio, a_level + ratio_level)
        if first <= w < first + values.shape[0]:
            a, a_level = plus(a, a_level, values[w - first], levels[w - first])
        out[w] = a
        out_levels[w] = a_level
    a, a_level = 0.0, LEVEL_OF_ZERO
    for w in range(out.shape[0] - 1, -1, -1):  # n > w
        a, a_level = normal(a * ratio, a_level + ratio_level)
        out[w], out_levels[w] = plus(out[w], out_levels[w], a, a_level)
        if first <= w < first + values.shape[0]:
            a, a_level = plus(a, a_level, values[w - first], levels[w - first])


def convolve(short: Any, short_levels: Any, long: Any, long_levels: Any, out: Any, out_levels: Any) -> None:
    """Add convolutions of rows to ``out``; runs of entries on one level as doubles, which cannot overflow."""
    many, more = short.shape[1], long.shape[1]
    buffer = np.empty(many + more)
    for row in range(short.shape[0]):
        i = 0
        while i < many:
            if short[row, i] == 0.0:
                i += 1
                continue
            i_end = i + 1
            while i_end < many and (short[row, i_end] == 0.0 or short_levels[row, i_end] == short_levels[row, i]):
                i_end += 1
            j = 0
            while j < more:
                if long[row, j] == 0.0:
                    j += 1
                    continue
                j_end = j + 1
                while j_end < more and (long[row, j_end] == 0.0 or long_levels[row, j_end] == long_levels[row, j]):
                    j_end += 1
                source = long[row, j:j_end]
                sums = buffer[: i_end - i + j_end - j - 1]
                sums[:] = 0.0
                for p in range(i, i_end):
                    factor = short[row, p]
                    if factor != 0.0:
                        target = sums[p - i : p - i + j_end - j]
                        for q in range(source.shape[0]):
                            target[q] += factor * source[q]
                level = short_levels[row, i] + long_levels[row, j]
                for m in range(sums.shape[0]):
                    n = i + j + m
                    v, v_level = normal(sums[m], level)
                    out[row, n], out_levels[row, n] = plus(out[row, n], out_levels[row, n], v, v_level)
                j = j_end
            i = i_end


def push(values: Any, levels: Any, p: Any, p_levels: Any, shifts: Any, out: Any, out_levels: Any) -> None:
    """Write ``out[y, s + shifts[y]] = Σ_x values[x, s] · p[x, y]`` into zeros: one step of a chain."""
    k = values.shape[0]
    ordinary = True
    for x in range(k):
        for y in range(k):
            ordinary = ordinary and (p[x, y] == 0.0 or p_levels[x, y] == 0)
    for s in range(values.shape[1]):
        top, alike = LEVEL_OF_ZERO, ordinary
        for x in range(k):
            if values[x, s] > 0.0:
                alike = alike and (top == LEVEL_OF_ZERO or top == levels[x, s])
                top = levels[x, s]
        if top == LEVEL_OF_ZERO:
            continue
        for y in range(k):
            a, a_level = 0.0, LEVEL_OF_ZERO
            if alike:
                a_level = top
                for x in range(k):
                    a += values[x, s] * p[x, y]
                a, a_level = normal(a, a_level)
            else:
                for x in range(k):
                    v, level = normal(values[x, s] * p[x, y], levels[x, s] + p_levels[x, y])
                    a, a_level = plus(a, a_level, v, level)
            out[y, s + shifts[y]] = a
            out_levels[y, s + shifts[y]] = a_level


_accumulate, _convolve, _push, _smooth = Loop(accumulate), Loop(convolve), Loop(push), Loop(smooth)
