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
