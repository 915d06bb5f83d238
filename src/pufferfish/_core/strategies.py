r"""Scales for given measurements: the least error at a leakage that is linear in how sharp they are.

Where noise is large, what outputs tell of a record that had state x rather than x' is to first order

.. math:: \sum_j w_j |(D A_j)_x - (D A_j)_{x'}|,\quad w_j = 1/b_j,\quad D = Z_P + Z_R - I,\quad Z = (I - P + 1\pi)^{-1},

the mean shifts of the measurements. The error is a sum over outputs of E|sum of their noises|. Both are homogeneous in
w, so the product of error and largest leakage is minimised, in log w, by L-BFGS, with a p-norm in the place of the
maximum. All this proposes; what counts is the certified leakage of the scales that come out.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import stationary_law

__all__ = ["best_scales", "errors_of", "mean_shifts", "shifts_of"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_MIXED = 1e-7
"""Share of every other state that is mixed into a matrix, so that it has one stationary law."""

_SHARPER = (8.0, 32.0, 128.0, 512.0)
"""Powers of the norms that stand for the maximum, one after the other."""

_STEPS, _KEPT, _HALVINGS = 60, 12, 30
_ENOUGH = 1e-7

_TIMES = np.logspace(-4, 5, 91)
"""Where E|S| of a sum S of Laplace variables is looked at, in 1/largest scale."""


def mean_shifts(transition_matrix: Matrix, records: float) -> Matrix:
    """Return D: how much longer than otherwise all of a stationary chain is in each state, given that of one record."""
    k = len(transition_matrix)
    p = (1 - _MIXED) * transition_matrix + _MIXED / k
    pi = stationary_law(p)
    back = p.T * pi[None, :] / pi[:, None]
    lasting = 1 - 1 / max(records, 2.0)  # a chain that moves more slowly than it lasts is not followed for ever
    total = -np.eye(k)
    for kernel in (p, back):
        total = total + np.linalg.inv(np.eye(k) - lasting * (kernel - pi[None, :]))
    return total


def shifts_of(responses: list[Matrix], rows: NDArray[np.int64]) -> Matrix:
    """Return |(D A_j)_x − (D A_j)_x'| of every pair of states under every D; shape (pairs, m)."""
    x, x_ = np.triu_indices(rows.shape[1], 1)
    means = [response @ rows.T for response in responses]
    return np.concatenate([np.abs(mean[x] - mean[x_]) for mean in means])


def best_scales(shifts: Matrix, taken: NDArray[np.bool_], power: float, start: Vector | None = None) -> Vector:
    """Return scales b with the least error, and a first-order leakage of 1; shape (m,).

    Parameters
    ----------
    shifts : (pairs, m) ndarray
        What each measurement tells of each pair, at scale 1.
    taken : (outputs, m) ndarray of bool
        Which noises are summed in each output.
    power : float
        The norm of the outputs' errors that is made small: 1 for their sum, a large one for the largest.
    start : (m,) ndarray, optional
        Scales to begin with.
    """
    alone = np.where(shifts.max(axis=0) > 0, shifts.max(axis=0), 1.0)
    at = -np.log(alone) if start is None else -np.log(start)
    for sharper in _SHARPER:
        at = _least(lambda u, p=sharper: _cost(u, shifts, taken, power, p), at)
    w = np.exp(at - at.max())
    return float(np.max(shifts @ w)) / w


def _cost(u: Vector, shifts: Matrix, taken: NDArray[np.bool_], power: float, sharper: float) -> tuple[float, Vector]:
    """Return log error + log leakage, and the gradient in u = log w."""
    w = np.exp(u - u.max())
    errors, slopes = errors_of(1 / w, taken)
    largest = float(errors.max())
    shares = (errors / largest) ** (power - 1)
    sum_of_powers = float(np.sum(shares * errors / largest))
    of_errors = math.log(largest) + math.log(sum_of_powers) / power
    gradient = -(shares @ slopes) / largest / sum_of_powers / w
    told = shifts @ w
    most = float(told.max())
    weights = (told / most) ** (sharper - 1)
    sum_of_told = float(np.sum(weights * told / most))
    of_told = math.log(most) + math.log(sum_of_told) / sharper
    gradient = gradient + (weights @ shifts) * w / most / sum_of_told
    return of_errors + of_told, gradient


def errors_of(scales: Vector, taken: NDArray[np.bool_]) -> tuple[Vector, Matrix]:
    """Return E|S| of sums of Laplace variables, and how it changes with every scale: (2/π) ∫ (1 − φ(t))/t² dt."""
    single = taken.sum(axis=1) == 1
    errors, slopes = np.zeros(len(taken)), np.zeros(taken.shape)
    errors[single] = taken[single] @ scales
    slopes[single] = taken[single]
    if not single.all():
        several = taken[~single].astype(np.float64)
        largest = float(scales.max())
        b, t = scales / largest, _TIMES
        more = 1 + np.outer(b**2, t**2)
        phi = np.exp(-(several @ np.log(more)))
        step = 2 / math.pi * math.log(t[1] / t[0])
        errors[~single] = largest * (
            step * ((1 - phi) / t).sum(axis=1) + 2 / math.pi * (t[0] * (several @ b**2) + 1 / t[-1])
        )
        slopes[~single] = several * (step * ((phi / t) @ (2 * t**2 * b[:, None] / more).T))
    return errors, slopes


def _least(cost: Callable[[Vector], tuple[float, Vector]], at: Vector) -> Vector:
    """Return where a smooth function is least, nearby: L-BFGS with halved steps."""
    value, slope = cost(at)
    steps: list[tuple[Vector, Vector]] = []
    for _ in range(_STEPS):
        way = -_scaled(slope, steps)
        if float(way @ slope) >= 0:
            steps.clear()
            way = -slope
        size = min(1.0, 2.0 / max(float(np.abs(way).max()), 1e-300))
        for _ in range(_HALVINGS):
            to = at + size * way
            there, slope_there = cost(to)
            if there <= value + 1e-4 * size * float(way @ slope):
                break
            size /= 2
        else:
            break
        moved, bent = to - at, slope_there - slope
        if float(moved @ bent) > 0:
            steps = [*steps[1 - _KEPT :], (moved, bent)]
        gained, at, value, slope = value - there, to, there, slope_there
        if gained < _ENOUGH:
            break
    return at


def _scaled(slope: Vector, steps: list[tuple[Vector, Vector]]) -> Vector:
    """Return the inverse of what is known of the curvature, times a slope."""
    found, factors = slope.copy(), list[float]()
    for moved, bent in reversed(steps):
        factor = float(moved @ found) / float(moved @ bent)
        factors.append(factor)
        found = found - factor * bent
    if steps:
        moved, bent = steps[-1]
        found = found * (float(moved @ bent) / float(bent @ bent))
    for (moved, bent), factor in zip(steps, reversed(factors), strict=True):
        found = found + (factor - float(bent @ found) / float(moved @ bent)) * moved
    return found
