"""Certified suprema over boxes: branch and bound, never samples.

A supremum over a continuum is bracketed: from above by bounds that hold for every point of a box, over boxes that cover
the continuum; from below by values at points. Boxes whose bound is above what is attained are halved until nothing is
left to gain. What is reported is the upper end, so the bracket's width costs noise and never privacy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress

__all__ = ["BoxBound", "Supremum", "supremum"]

Vector = NDArray[np.float64]
Boxes = NDArray[np.float64]
BoxBound = Callable[[Boxes, float], tuple[Vector, Boxes]]

_AT_ONCE = 8
"""Boxes that are halved together, at least."""

_BELOW = 1e-5
"""How far, as a share, what is attained must stay below a value for proving that value to be tried."""


@dataclass(frozen=True, slots=True, eq=False)
class Supremum:
    """A bracket of a supremum.

    Parameters
    ----------
    least, most : float
        What a point attains, and what none exceeds.
    point : (d,) ndarray
        The point that attains ``least``.
    where : ndarray
        What the bound told of that point.
    """

    least: float
    most: float
    point: Vector
    where: Vector

    @property
    def gap(self) -> float:
        """Width of the bracket, as a share of what is attained."""
        return self.most / self.least - 1 if self.least > 0 else (0.0 if self.most <= self.least else np.inf)


def supremum(
    box: NDArray[np.float64],
    bound: BoxBound,
    *,
    width: Callable[[Boxes], Boxes],
    gap: float,
    floor: float = 0.0,
    enough: float | None = None,
    most_boxes: int = 60_000,
) -> Supremum:
    """Bracket the supremum of a function over a box, to a relative width.

    Parameters
    ----------
    box : (d, 2) ndarray
        Ends of the box, coordinate by coordinate.
    bound : callable
        Boxes (n, d, 2) and a floor ↦ for every box an upper bound on the function there, or the floor where that is not
        less, and what else is to be told of it, shape (n, m). On a box that is a point, the function itself.
    width : callable
        Boxes (n, d, 2) ↦ the widths (n, d) by which the coordinate to halve is chosen.
    gap : float
        Relative width at which to stop.
    floor : float
        A value that does not matter, and less does not.
    enough : float, optional
        A value to be proven as an upper bound, if it is one, though it be nearer than the gap.
    most_boxes : int
        With so many boxes the bracket stays as wide as it is.
    """
    boxes, found = np.array([box], dtype=np.float64), Supremum(-np.inf, np.inf, box[:, 0], np.empty(0))
    most, _ = bound(boxes, floor)
    while True:
        found = max(found, _attained(bound, boxes[int(np.argmax(most))], found.least), key=lambda s: s.least)
        near, ignored = max(found.least * (1 + gap), floor), max(found.least * (1 + gap / 2), floor)
        if enough is not None and found.least < enough * (1 - _BELOW):
            near, ignored = max(min(near, enough), floor), max(min(ignored, enough), floor)
        open_ = np.flatnonzero(~(most <= near))
        if not open_.size or len(boxes) >= most_boxes:
            break
        report_progress("bounding a continuum", min(0.99, 1 - open_.size / len(boxes)))
        worst = open_[np.argsort(-most[open_], kind="stable")][: max(_AT_ONCE, open_.size // 2)]
        halves = _halves(boxes[worst], width)
        if not halves.size:
            break
        bounds, _ = bound(halves, ignored)
        # a half is covered by what covers the whole
        bounds = np.minimum(bounds, np.maximum(np.tile(most[worst], 2), ignored))
        boxes = np.concatenate([np.delete(boxes, worst, axis=0), halves])
        most = np.concatenate([np.delete(most, worst), bounds])
    upper = float(np.max(most)) if not np.any(np.isnan(most)) else np.inf
    return Supremum(found.least, max(upper, found.least), found.point, found.where)


def _halves(boxes: Boxes, width: Callable[[Boxes], Boxes]) -> Boxes:
    """Return both halves of every box, across its widest coordinate, the first halves first; none at the last digit."""
    n, across = np.arange(len(boxes)), np.argmax(width(boxes), axis=1)
    low, high = boxes[n, across, 0], boxes[n, across, 1]
    middle = low + (high - low) / 2
    if np.any((middle <= low) | (middle >= high)):
        return np.empty(0)
    below, above = boxes.copy(), boxes.copy()
    below[n, across, 1] = middle
    above[n, across, 0] = middle
    return np.concatenate([below, above])


def _attained(bound: BoxBound, box: NDArray[np.float64], least: float) -> Supremum:
    """Return the largest value at a corner or the centre of a box; less than what is attained need not be exact."""
    points = np.array([*product(*box), box.mean(axis=1)])
    values, where = bound(np.repeat(points[:, :, None], 2, axis=2), max(least, 0.0))
    best = int(np.argmax(values))
    return Supremum(float(values[best]), np.inf, points[best], where[best])
