"""The loops of :mod:`pufferfish.mechanisms.one_query.two_state_coordinates`, for numba to compile."""

import math
from typing import Any

import numpy as np

__all__ = ["arrive", "cumulate", "paths", "smooth", "weigh"]


def paths(steps: int, stay: float, change: float, d_stay: float, d_change: float, table: Any, d_table: Any) -> None:
    """Sum the weights of all paths that have state 1 at a record, by their ends and their number of ones.

    A path weighs ``stay`` for every step within a state and ``change`` for every other.

    Parameters
    ----------
    steps : int
        Number T of records.
    stay, change, d_stay, d_change : float
        The weights, and their derivatives by some number.
    table, d_table : (T, 2, 2, T + 1) ndarray, written
        By record, first state, last state, number of ones; and the derivative. ``d_table`` may have no entries.
    """
    derive = d_table.shape[0] > 0
    left = np.zeros((steps, 2, 2, steps + 1))  # record, first state, present state, number of ones
    d_left = np.zeros((steps, 2, 2, steps + 1))
    left[0, 0, 0, 0] = 1.0
    left[0, 1, 1, 1] = 1.0
    for i in range(1, steps):
        for y in range(2):
            for n in range(i + 1):
                zero, one = left[i - 1, y, 0, n], left[i - 1, y, 1, n]
                d_zero, d_one = d_left[i - 1, y, 0, n], d_left[i - 1, y, 1, n]
                left[i, y, 0, n] += stay * zero + change * one
                left[i, y, 1, n + 1] += change * zero + stay * one
                d_left[i, y, 0, n] += stay * d_zero + d_stay * zero + change * d_one + d_change * one
                d_left[i, y, 1, n + 1] += change * d_zero + d_change * zero + stay * d_one + d_stay * one
    for i in range(steps):
        after = steps - 1 - i  # what follows a record is, read backwards, what stands before another
        for y in range(2):
            for z in range(2):
                out = table[i, y, z]
                source, d_source = left[after, z, 1, 1 : after + 2], d_left[after, z, 1, 1 : after + 2]
                for m in range(1, i + 2):
                    factor, d_factor = left[i, y, 1, m], d_left[i, y, 1, m]
                    target = out[m : m + after + 1]
                    for n in range(source.shape[0]):
                        target[n] += factor * source[n]
                    if derive:
                        d_target = d_table[i, y, z, m : m + after + 1]
                        for n in range(source.shape[0]):
                            d_target[n] += factor * d_source[n] + d_factor * source[n]


def weigh(
    table: Any, d_table: Any, x: float, shift: float, ends: Any, d_ends: Any, own: Any, rows: Any, out: Any
) -> None:
    """Give every path its weight e^{x·ones + ends} and sum over its last state (and over its first, where asked).

    Parameters
    ----------
    table, d_table : (T, 2, 2, T + 1) ndarray
        Of :func:`paths`; the derivative may have no entries, and then only sums are written.
    x : float
        Logarithm of what a one weighs.
    shift : float
        Logarithm that all weights are divided by.
    ends : (2, 2) ndarray
        Weights of the first and last state.
    d_ends : (2, 2, 2) ndarray
        Their logarithms' derivatives by x and by the number that ``d_table`` is the derivative by.
    own : bool
        Whether first states are kept apart.
    rows : (r,) ndarray of int
        Records.
    out : (1 or 3, 1 or 2, 2, r, T + 1) ndarray, written
        Sums, their derivatives by x and by the other; by first state, state of the record, record, number of ones.
    """
    derive = out.shape[0] > 1
    steps = table.shape[0]
    power = np.empty(steps + 1)
    for n in range(steps + 1):
        power[n] = math.exp(n * x - shift)
    for r in range(rows.shape[0]):
        i = rows[r]
        for y in range(2):
            there = y if own else 0
            for z in range(2):
                w = ends[y, z]
                one, zero = table[i, y, z], table[i, 1 - y, 1 - z]
                for n in range(steps + 1):
                    out[0, there, 1, r, n] += w * one[n] * power[n]
                    out[0, there, 0, r, n] += w * zero[steps - n] * power[n]
                if derive:
                    d_one, d_zero = d_table[i, y, z], d_table[i, 1 - y, 1 - z]
                    by_x, by_z = d_ends[0, y, z], d_ends[1, y, z]
                    for n in range(steps + 1):
                        a, b = w * one[n] * power[n], w * zero[steps - n] * power[n]
                        out[1, there, 1, r, n] += a * (n + by_x)
                        out[1, there, 0, r, n] += b * (n + by_x)
                        out[2, there, 1, r, n] += w * d_one[n] * power[n] + a * by_z
                        out[2, there, 0, r, n] += w * d_zero[steps - n] * power[n] + b * by_z


def smooth(sums: Any, ratio: float) -> None:
    """Replace the rows of an array by Σ_n row(n) · ratio^|w − n| at every w."""
    size = sums.shape[1]
    above = np.empty(size)
    for row in range(sums.shape[0]):
        at = 0.0
        for n in range(size - 1, -1, -1):
            above[n] = at * ratio
            at = above[n] + sums[row, n]
        at = 0.0
        for n in range(size):
            at = at * ratio + sums[row, n]
            sums[row, n] = at + above[n]


def cumulate(sums: Any, below: Any, above: Any) -> None:
    """Write Σ_{n ≤ w} row(n) and Σ_{n > w} row(n) for every row of an array and every w."""
    size = sums.shape[1]
    for row in range(sums.shape[0]):
        at = 0.0
        for n in range(size):
            at += sums[row, n]
            below[row, n] = at
        at = 0.0
        for n in range(size - 1, -1, -1):
            above[row, n] = at
            at += sums[row, n]


def arrive(steps: int, weights: Any, d_weights: Any, first: float, out: Any) -> None:
    """Sum the weights of all paths from each first state to each state of every record.

    Parameters
    ----------
    steps : int
        Number T of records.
    weights, d_weights : (2, 2) and (2, 2, 2) ndarray
        What a step weighs, from row to column; its derivatives by two numbers.
    first : float
        Weight of a path that starts in state 1, whose logarithm's derivative by the first number is 1.
    out : (3, 2, 2, T) ndarray, written
        Sums and their derivatives; by first state, state of the record, record.
    """
    for y in range(2):
        out[0, y, y, 0] = first if y else 1.0
        out[1, y, y, 0] = first if y else 0.0
        for i in range(1, steps):
            for s in range(2):
                for r in range(2):
                    out[0, y, s, i] += out[0, y, r, i - 1] * weights[r, s]
                    for d in range(2):
                        out[1 + d, y, s, i] += out[1 + d, y, r, i - 1] * weights[r, s]
                        out[1 + d, y, s, i] += out[0, y, r, i - 1] * d_weights[d, r, s]
