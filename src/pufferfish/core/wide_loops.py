"""The loops of :mod:`pufferfish.core.wide`, over plain arrays, so that numba can compile them as they stand."""

from typing import Any

__all__ = ["accumulate", "convolve"]

UP, DOWN = 2.0**600, 2.0**-600
BIG, SMALL = 2.0**300, 2.0**-300
LEVEL_OF_ZERO = -(2**40)


def accumulate(values: Any, levels: Any, ratio: float, ratio_level: int, out: Any, out_levels: Any) -> None:
    """Write A(n) = ratio · A(n−1) + x(n)."""
    a, at = 0.0, LEVEL_OF_ZERO
    for n in range(values.shape[0]):
        if a > 0.0:
            a *= ratio
            at += ratio_level
            if a < SMALL:
                a *= UP
                at -= 1
            elif a >= BIG:
                a *= DOWN
                at += 1
        v, level = values[n], levels[n]
        if v > 0.0:
            if level == at:
                a += v
            elif level == at + 1:
                a = a * DOWN + v
                at = level
            elif level > at:
                a = v
                at = level
            elif level == at - 1:
                a += v * DOWN
            if a >= BIG:
                a *= DOWN
                at += 1
        out[n] = a
        out_levels[n] = at


def convolve(short: Any, short_levels: Any, long: Any, long_levels: Any, out: Any, out_levels: Any) -> None:
    """Add the convolutions of the rows of two arrays to the rows of ``out``, which comes in as zeros."""
    for row in range(short.shape[0]):
        for i in range(short.shape[1]):
            factor, level = short[row, i], short_levels[row, i]
            if factor == 0.0:
                continue
            for j in range(long.shape[1]):
                v = factor * long[row, j]
                if v == 0.0:
                    continue
                at = level + long_levels[row, j]
                if v < SMALL:
                    v *= UP
                    at -= 1
                elif v >= BIG:
                    v *= DOWN
                    at += 1
                n = i + j
                there = out_levels[row, n]
                if there == at:
                    v += out[row, n]
                    if v >= BIG:
                        v *= DOWN
                        at += 1
                    out[row, n] = v
                    out_levels[row, n] = at
                elif there < at:
                    if there == at - 1:
                        v += out[row, n] * DOWN
                    out[row, n] = v
                    out_levels[row, n] = at
                elif there == at + 1:
                    out[row, n] += v * DOWN


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
    for y in range(k):
        for s in range(values.shape[1]):
            a, at = 0.0, LEVEL_OF_ZERO
            for x in range(k):
                v = values[x, s] * p[x, y]
                if v == 0.0:
                    continue
                level = levels[x, s] + p_levels[x, y]
                if v < SMALL:
                    v *= UP
                    level -= 1
                elif v >= BIG:
                    v *= DOWN
                    level += 1
                if level == at:
                    a += v
                elif level > at:
                    a = v + a * DOWN if level == at + 1 else v
                    at = level
                elif level == at - 1:
                    a += v * DOWN
            if a >= BIG:
                a *= DOWN
                at += 1
            out[y, s + shifts[y]] = a
            out_levels[y, s + shifts[y]] = at
