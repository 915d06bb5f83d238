"""The loops of :mod:`pufferfish._core.numbers.wide`, over plain arrays: numba can compile them as they stand."""

from typing import Any

import numpy as np

__all__ = ["accumulate", "convolve", "push", "smooth"]

UP, DOWN = 2.0**600, 2.0**-600
BIG, SMALL = 2.0**300, 2.0**-300
LEVEL_OF_ZERO = -(2**40)


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
    """Add the convolutions of the rows of two arrays to the rows of ``out``, which comes in as zeros.

    Runs of entries on one level are convolved as plain doubles, in which nothing can overflow or underflow
    (the innermost loop counts up to a shape, which is what lets the compiler use vector instructions).
    """
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
    """Take one step of a chain: write ``out[y, s + shifts[y]] = Σ_x values[x, s] · p[x, y]``; the rest stays as it is.

    Parameters
    ----------
    values, levels : (k, S) ndarray
        Masses of (state, partial sum).
    p, p_levels : (k, k) ndarray
        Transition matrix.
    shifts : (k,) ndarray of int
        What arriving in a state adds to the sum.
    out, out_levels : (k, S') ndarray, written
        Come in as zeros.
    """
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
