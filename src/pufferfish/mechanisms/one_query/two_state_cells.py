r"""What all two-state chains in a cell of couplings and fields, and all initial laws in an interval, have in common.

The quantities to be bounded are logarithms of ratios N_s·D_s'/(D_s·N_s') of sums over paths: N_s of the paths with
state s at record i and some (noisy) number of ones, D_s of all paths with state s there. In the coordinates of
:mod:`pufferfish.mechanisms.one_query.two_state_coordinates` every log N, log D is convex. Over a cell, log N_s' and log
D_s are at least their tangent planes at its centre, and what remains is convex: largest at a corner. The bound is wrong
by no more than the curvature times the square of the cell's width.

**ρ** is no linear function of (ζ, x). Its tangent plane is used instead, and for each of the ends that it weighs three
times the deviation is added: where paths are summed, where the corners are, and in D. Where the record is the end, all
three are the same ρ, which cancels.

**Initial laws** of first states (1 : e^h) with h in an interval [h₁, h₂], also infinite: N_s/N_s' is monotone in e^h
(a Möbius function), so h₁ or h₂ is the worst for it, and one of them for D_s'/D_s: for each of the four choices the
bound above holds with h fixed. Where h₁, h₂ are finite, h is also a coordinate like the others, and both bounds hold.

The proofs are in docs/proofs/laws.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.compiled import Loops
from pufferfish._core.numbers.rounding import UNIT
from pufferfish.mechanisms.one_query import two_state_clear
from pufferfish.mechanisms.one_query.two_state_coordinates import Arrivals, Paths, Perron, Point

__all__ = ["Cell", "CellSums", "Part", "Ratio"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Functional = Callable[[Array], list[Array]]
"""Linear maps of the numbers of ones, last axis, with non-negative coefficients."""


_LOOPS = Loops(two_state_clear.clear)


@dataclass(frozen=True, slots=True)
class Cell:
    """A rectangle of couplings ζ and fields x."""

    coupling: tuple[float, float]
    field: tuple[float, float]

    @property
    def centre(self) -> tuple[float, float]:
        """Its centre."""
        return (self.coupling[0] + self.coupling[1]) / 2, (self.field[0] + self.field[1]) / 2

    @property
    def width(self) -> float:
        """The longer of its sides."""
        return max(self.coupling[1] - self.coupling[0], self.field[1] - self.field[0])

    @property
    def corners(self) -> list[tuple[float, float]]:
        """Its corners."""
        return [(z, x) for z in self.coupling for x in self.field]

    @property
    def deviation(self) -> float:
        """Bound on |ρ − the tangent plane of ρ at the centre|, by Taylor's formula with bounds on second derivatives.

        With g = e^{−ζ/2} sinh(x/2), A = e^{−ζ/2} and G = (1 + g²)^{−3/2} they are ρ_xx = g(1 − A²)G/4, ρ_ζζ = gG/4,
        ρ_xζ = −A cosh(x/2)G/4.
        """
        (first, last), (left, right) = self.coupling, self.field
        low, high = math.exp(-last / 2), math.exp(-first / 2)
        near = 0.0 if left <= 0 <= right else min(abs(left), abs(right))
        far = max(abs(left), abs(right))
        least = (1 + (low * math.sinh(near / 2)) ** 2) ** -1.5
        bump = min(high * math.sinh(far / 2) * least, 0.385)  # gG is largest at g² = 1/2
        by_x = max(abs(1 - low * low), abs(1 - high * high)) * bump
        by_both = high * math.cosh(far / 2) * least
        dx, dz = (right - left) / 2, (last - first) / 2
        return (by_x * dx * dx + bump * dz * dz + 2 * by_both * dx * dz) / 8 * (1 + 1e-9)


@dataclass(frozen=True, slots=True)
class Part:
    """One side of a ratio: which functional of the sums, for which state, and at which numbers."""

    functional: int
    state: int
    first: int
    size: int

    def of(self, sums: Sequence[Array]) -> Array:
        """Return that of some sums; (…, first states, records, numbers)."""
        found = sums[self.functional][:, :, self.state, :, self.first : self.first + self.size]
        return np.broadcast_to(found, (len(found), 2, *found.shape[2:]))


Ratio = tuple[Part, Part]
"""N_s above, N_s' below: s' is the other state."""


class CellSums:
    """Sums over paths at the corners and, with derivatives, at the centre of a cell.

    Parameters
    ----------
    paths : Paths
        The sums.
    arrivals : Arrivals
        Those up to a record.
    cell : Cell
        The cell.
    rows : (r,) ndarray of int
        Records.
    functional : callable
        What is made of the numbers of ones.
    """

    def __init__(self, paths: Paths, arrivals: Arrivals, cell: Cell, rows: Rows, functional: Functional) -> None:
        self.cell, self.rows = cell, rows
        self._own, self._last = paths.own, paths.steps - 1
        z, x = cell.centre
        self._perron = Perron.of(z, x)
        self._moves = np.array([(b - x, a - z) for a, b in cell.corners])
        corners: list[Point] = [paths.at(a, b, rows, derive=False) for a, b in cell.corners]
        centre = paths.at(z, x, rows, derive=True)
        self._scales = np.array([point.scale - centre.scale for point in corners])
        self._slope = centre.slope
        self._corners = [functional(point.sums) for point in corners]
        self._centre = functional(centre.sums)
        arrived = [arrivals.at(a, b) for a, b in cell.corners]
        arriving, divided = arrivals.at(z, x)
        self._arrived = np.array([sums[0][:, :, rows] for sums, _ in arrived])
        self._arriving = np.ascontiguousarray(arriving[:, :, :, rows])  # loops are compiled for each layout
        self._divided = np.array([(logs - divided)[rows] for _, logs in arrived])
        # a sum has the relative error of its additions and of its exponentials, and slopes are no more than T
        exponents = paths.steps * (self._perron.log_value + abs(z) + abs(x) + 1)
        relative = UNIT * (24 * paths.steps + 128 + 8 * exponents)
        self.rounding = relative * (6 + 4 * paths.steps * float(np.abs(self._moves).sum(axis=1).max()))

    def clear(self, ratios: Sequence[Ratio], items: Array, level: float) -> tuple[Array, Array]:
        """Return what cannot be cleared without smaller cells, and bounds of it.

        Parameters
        ----------
        ratios : sequence of pairs of Part
            Ratios, of which the least decides.
        items : (k, 5) ndarray
            Records, interval of h, first and last number.
        level : float
            Bounds up to this are good.

        Returns
        -------
        (l, 5) ndarray, (l,) ndarray
            Items with their bounds.
        """
        above = np.array([[part.of(sums)[0] for sums in self._corners] for part, _ in ratios])
        below = np.array([part.of(self._centre) for _, part in ratios])
        states = np.array([part.state for part, _ in ratios])
        base = np.array([self._base(part.state) for part, _ in ratios]) + self.rounding
        places = items.copy()
        places[:, 0] = np.searchsorted(self.rows, items[:, 0].astype(np.int64))
        room = 16 * len(items) + 256
        while True:
            left, tops = np.empty((room, 5)), np.empty(room)
            found = _LOOPS.compiled.clear(
                above, below, states, base, self._arrived, self._arriving, self._divided, self._moves, self._slope,
                level, self._own, places, left, tops,
            )  # fmt: skip
            if found >= 0:
                left[:found, 0] = self.rows[left[:found, 0].astype(np.int64)]
                return left[:found], tops[:found]
            room *= 4

    def values(self, ratios: Sequence[Ratio], rows: Rows, h: float) -> Array:
        """Return logarithms of ratios, the least of some, at the centre for one initial law; (rows, numbers)."""
        at = np.searchsorted(self.rows, rows)
        return np.minimum.reduce([self._value(above, below, at, h) for above, below in ratios])

    def _value(self, above: Part, below: Part, at: Rows, h: float) -> Array:
        top, bottom = (
            _mixed(part.of(self._centre)[0][:, at], h if self._own else -math.inf) for part in (above, below)
        )
        s = above.state
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(top) - np.log(bottom) - self._end(0.0, 0.0, s)
            if self._own:
                sums = self._arriving[0][:, :, at]
                found += (np.log(_mixed(sums[:, 1 - s], h)) - np.log(_mixed(sums[:, s], h)))[:, None]
        return np.where(np.isfinite(found), found, -np.inf)

    def _base(self, state: int) -> Array:
        """Return what is added at each corner for each record; (4, r)."""
        ends = 1 if self._own else 2
        at_end = (self.rows == self._last).astype(np.int64)
        if not self._own:
            at_end += self.rows == 0
        found = np.empty((4, len(self.rows)))
        for v, (dx, dz) in enumerate(self._moves):
            there = Perron.of(self.cell.corners[v][0], self.cell.corners[v][1]).end - self._perron.end
            linear = self._perron.end_by_field * dx + self._perron.end_by_coupling * dz
            # the paths that weigh by ρ are above the line, with ρ itself at the corners, or below, with its plane
            more = at_end * (there - linear) if state == 1 else 0.0
            found[v] = self._scales[v] - self._end(dx, dz, state) - more
        return found + 3 * self.cell.deviation * (ends - at_end)

    def _end(self, dx: float, dz: float, state: int) -> float:
        """Return what the end ρ, on its tangent plane, adds to log D_1/D_0; the other way round for state 0."""
        p = self._perron
        end = p.end + p.end_by_field * dx + p.end_by_coupling * dz
        found = end - (self.cell.centre[1] + dx) / 2 if self._own else 2 * end
        return float(found if state == 1 else -found)


def _mixed(by_start: Array, h: float) -> Array:
    """Return the mean of what each first state gives, axis 0, under the initial law (1 : e^h)."""
    if math.isinf(h):
        return by_start[0] if h < 0 else by_start[1]
    one = 1 / (1 + math.exp(-h)) if h >= 0 else math.exp(h) / (1 + math.exp(h))
    return by_start[0] * (1 - one) + by_start[1] * one
