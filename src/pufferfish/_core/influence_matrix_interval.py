r"""The influence matrix of every chain whose transition matrices lie between two bounds, step by step.

Entries of Γ (:mod:`pufferfish._core.gk16`) are bounded over all pairs of consecutive matrices P, Q
between the bounds, every one on its own. For a record x between u and z, and with a, b the rows u' and u of P and v the
column z of Q,

.. math:: 2\Gamma_{i,i-1} = \max \log \frac{b_x}{b \cdot v} \frac{a \cdot v}{a_x}, \qquad
          2\Gamma_{i,i+1} = \max \log \frac{a \cdot v'}{a \cdot v} \frac{v_x}{v'_x}.

Both are quotients of linear functions of each of a, b (laws between bounds) and of each entry of v, v' (numbers
between bounds: one from each row). Such a quotient is largest at a vertex, and the largest over laws a is found by
Dinkelbach's iteration, each step of which fills a law greedily, and certified by one more step. So on the left all
corners of the box of v are tried; with more than 2^4 corners v stands at its upper bounds above and its lower ones
below. On the right the box has one best corner: v at its lower and v' at its upper bounds, but for entry x, where it is
the other way round. Nothing else is lost on the left; on the right it is not asked whether one row can have both
entries, which for two states it can.

With more than a dozen states both are bounded by the largest cross ratio, which needs no search.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.gk16 import Alphabets, Influences, steps_of
from pufferfish._core.numbers.rounding import UNIT, or_infinite

__all__ = ["interval_influences", "largest_ratio"]

Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]

_FEW = 12
"""States up to which laws are searched."""

_CORNERS = 4
"""Entries of a column up to which all corners of its box are tried."""

_MOST_STEPS = 50


def largest_ratio(above: Matrix, below: Matrix, lower: Matrix, upper: Matrix) -> Matrix:
    """Largest (a · above)/(a · below) over the laws a between two bounds, rounded up.

    Parameters
    ----------
    above, below : (..., k) ndarray
        Non-negative numbers.
    lower, upper : (..., k) ndarray
        Bounds on a, which some law keeps; of a shape that goes with the others.

    Returns
    -------
    (...) ndarray
        The ratios; ``inf`` where a · below can be 0.

    Examples
    --------
    >>> low, high = np.array([0.25, 0.5]), np.array([0.5, 0.75])
    >>> round(float(largest_ratio(np.array([2.0, 1.0]), np.array([0.0, 1.0]), low, high)), 9)
    3.0
    """
    above, below, lower, upper = np.broadcast_arrays(above, below, lower, upper)
    room, left = upper - lower, np.maximum(1 - lower.sum(axis=-1), 0.0)

    def best(gain: Matrix) -> Matrix:
        order = np.argsort(-gain, axis=-1, kind="stable")
        sizes = np.take_along_axis(room, order, axis=-1)
        filled = np.cumsum(sizes, axis=-1) - sizes
        added = np.clip(left[..., None] - filled, 0.0, sizes)
        law = lower.copy()
        np.put_along_axis(law, order, np.take_along_axis(lower, order, axis=-1) + added, axis=-1)
        return law

    least = np.maximum((lower * below).sum(axis=-1), below.min(axis=-1)) * (1 - 1e-14)
    ratio = np.zeros(least.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(_MOST_STEPS):
            law = best(above - ratio[..., None] * below)
            better = (law * above).sum(axis=-1) / (law * below).sum(axis=-1)
            better = np.where(least > 0, better, 0.0)
            if not np.any(better > ratio * (1 + 4 * UNIT)):
                break
            ratio = np.maximum(ratio, better)
        gain = above - ratio[..., None] * below
        missed = (best(gain) * gain).sum(axis=-1)
        missed += (4 * above.shape[-1] + 16) * UNIT * (above.max(axis=-1) + ratio * below.max(axis=-1))
        return np.where(least > 0, (ratio + np.maximum(missed, 0.0) / least) * (1 + 8 * UNIT), np.inf)


def interval_influences(lower: Matrix, upper: Matrix, alphabets: Alphabets) -> Influences:
    """Bound the influences under every initial law and every sequence of matrices between two bounds.

    Parameters
    ----------
    lower, upper : (k, k) ndarray
        Bounds on the entries; positive wherever ``alphabets`` need it.
    alphabets : Alphabets
        What records can be.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # ∞ is too large, and no number is taken as ∞
        return _influences(lower, upper, alphabets)


def _influences(lower: Matrix, upper: Matrix, alphabets: Alphabets) -> Influences:
    s1, s2 = alphabets.sets[0], alphabets.sets[alphabets.after(0)]
    lo, hi = lower[np.ix_(s1, s2)], upper[np.ix_(s1, s2)]
    first = float(_of_two(_quotients(lo, hi)).max())

    def inner(u: Indices, x: Indices, z: Indices) -> tuple[float, float, float]:
        onto = lower[np.ix_(u, x)], upper[np.ix_(u, x)]
        over = lower[np.ix_(x, z)], upper[np.ix_(x, z)]
        rows = np.log(onto[1][:, None, :] / onto[0][None, :, :]).max(axis=2) + 8 * UNIT
        np.fill_diagonal(rows, 0.0)
        left, right = float((rows + rows.T).max()), float(_of_two(_quotients(*over)).max())
        if len(lower) <= _FEW:
            left, right = min(left, _left(*onto, *over)), min(right, _right(*onto, *over))
        return _half(left), _half(right), _half(float(rows.max()))

    return steps_of(alphabets, _half(first), _half(first) / 2, inner)


def _half(twice: float) -> float:
    return or_infinite(twice) / 2 * (1 + 4 * UNIT) + 16 * UNIT


def _quotients(lo: Matrix, hi: Matrix) -> Matrix:
    """Bound log P(x, z)/P(x, z') in every row x; shape (rows, columns, columns)."""
    k = lo.shape[1]
    found = np.log(hi[:, :, None] / lo[:, None, :]) + 8 * UNIT
    if lo.shape[0] <= _FEW:
        unit = np.eye(k)
        ratio = largest_ratio(unit[:, None, :], unit[None, :, :], lo[:, None, None, :], hi[:, None, None, :])
        found = np.minimum(found, np.log(ratio) + 8 * UNIT)
    found[:, np.arange(k), np.arange(k)] = 0.0
    return found


def _of_two(quotients: Matrix) -> Matrix:
    """Add quotients of (z, z') in one row to those of (z', z) in another; of the same row they would cancel."""
    rows = quotients.shape[0]
    back = np.swapaxes(quotients, 1, 2)
    sums = [quotients[x] + np.delete(back, x, axis=0).max(axis=0) for x in range(rows) if rows > 1]
    return np.array(sums) if sums else np.zeros(1)


def _left(lo: Matrix, hi: Matrix, lo2: Matrix, hi2: Matrix) -> float:
    k, unit, worst = lo.shape[1], np.eye(lo.shape[1]), 0.0
    for z in range(lo2.shape[1]):
        box = np.stack([lo2[:, z], hi2[:, z]])
        corners = (
            [(box[list(c), range(k)],) * 2 for c in product((0, 1), repeat=k)] if k <= _CORNERS else [(box[1], box[0])]
        )
        for high, low in corners:
            of_b = np.log(largest_ratio(unit, low, lo[:, None, :], hi[:, None, :]))
            of_a = np.log(largest_ratio(high, unit, lo[:, None, :], hi[:, None, :]))
            both = (of_b[:, None, :] + of_a[None, :, :]).max(axis=2)
            np.fill_diagonal(both, 0.0)
            worst = max(worst, or_infinite(float(both.max())))
    return worst + 16 * UNIT * (1 + worst)


def _right(lo: Matrix, hi: Matrix, lo2: Matrix, hi2: Matrix) -> float:
    k, worst = lo.shape[1], 0.0
    own = np.eye(k, dtype=np.bool_)
    for z, z_ in product(range(lo2.shape[1]), repeat=2):
        if z == z_:
            continue
        below = np.where(own, hi2[:, z], lo2[:, z])
        above = np.where(own, lo2[:, z_], hi2[:, z_])
        ratio = largest_ratio(above, below, lo[:, None, :], hi[:, None, :]).max(axis=0)
        worst = max(worst, or_infinite(float(np.log(ratio * (hi2[:, z] / lo2[:, z_])).max())))
    return worst + 16 * UNIT * (1 + worst)
