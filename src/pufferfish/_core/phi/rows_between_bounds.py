r"""Matrices between bounds: what pairwise bounds become one step further, and the laws that steps lead to.

Row x of an interval matrix is the set of laws r with l_x ≤ r ≤ u_x. The largest r·v puts what is left above the lower
bounds on the states with the largest v: the extreme law depends on the *order* of v's entries only. So for x ≠ x'

.. math:: \Phi_{[l,u]}(A)[x,x'] = \max_{r, r'} \log \max_v \Big\{ \frac{r \cdot v}{r' \cdot v} :
          v_y \le e^{A(y,y')} v_{y'} \Big\}

is for few states the maximum over the k! orders of Φ for two laws. For more states every state z gives two vectors
between which all r·v are on the cone, from the chord above a convex function (docs/proofs/intervals.md).
"""

import itertools
from typing import Any

import numpy as np

from pufferfish._core import Indices, Mask, Matrix, Vector, Whole
from pufferfish._core.chains.markov import bool_matmul
from pufferfish._core.numbers.rounding import TINY, UNIT, up
from pufferfish._core.phi.certificate import SEARCHED
from pufferfish._core.phi.phi import Kernel, LogRatios, Slopes, slopes_of, solve_flat, without_flows

MOST_ORDERED = 5  # up to so many states every order is looked at
_SETTLED = 1e-10  # bounds on marginals have settled once they move by no more than this share
_FARTHEST = 4096  # bounds on marginals after so many steps have to do for all later ones


class IntervalRatios:
    """Φ of one interval matrix, rows = from; by all orders if ``exact``, by default for few states."""

    def __init__(self, lower: Matrix, upper: Matrix, *, exact: bool | None = None) -> None:
        self._k: int = lower.shape[0]
        every = np.ones(self._k, dtype=np.bool_)
        self._whatever = without_flows(Kernel(upper, lower, every))
        np.fill_diagonal(self._whatever, 0.0)
        self._reached = np.any(upper > 0, axis=0)
        exact = self._k <= MOST_ORDERED if exact is None else exact
        self._bound = _ByOrders(lower, upper) if exact else _ByChords(lower, upper)

    @property
    def whatever(self) -> Matrix:
        """Log ratios that hold whatever follows: max over y of log u(x, y)/l(x', y)."""
        return self._whatever

    def __call__(self, a: Matrix) -> Matrix:
        """Return an upper bound on Φ(A), zero diagonal; entries of A may be +∞, which are absent constraints."""
        largest = float(np.max(a[np.ix_(self._reached, self._reached)]))
        most = up(largest + UNIT * (self._k + 4))  # what is told never grows on the way; laws sum to 1 up to rounding
        bounds = np.minimum(self._whatever, most)
        if most <= SEARCHED:
            bounds = np.minimum(bounds, self._bound(a))
        np.fill_diagonal(bounds, 0.0)
        return bounds

    def solve(self, residual: Matrix) -> Matrix:
        """Solve δ = residual + Φ'δ, with Φ' the derivative at the last call, or return the residual."""
        slopes = self.slopes()
        return residual if slopes is None else solve_flat(residual, *slopes)

    def slopes(self) -> Slopes | None:
        """Return the derivatives at the last call."""
        arcs = self._bound.arcs()
        return None if arcs is None else slopes_of(self._k, *_pairs_of(self._k), *arcs)


def _pairs_of(k: int) -> Whole:
    """Return all ordered pairs of different states; shape (2, k(k − 1))."""
    return np.array(np.nonzero(~np.eye(k, dtype=np.bool_)), dtype=np.int64)


class _ByOrders:
    """Every order of the states."""

    def __init__(self, lower: Matrix, upper: Matrix) -> None:
        k: int = lower.shape[0]
        orders = np.array(list(itertools.permutations(range(k))), dtype=np.intp)
        above, _ = extreme_laws(lower[:, None], upper[:, None], orders[None])
        _, below = extreme_laws(lower[:, None], upper[:, None], orders[None, :, ::-1])
        high, high_of = np.unique(above.reshape(-1, k), axis=0, return_inverse=True)
        low, low_of = np.unique(below.reshape(-1, k), axis=0, return_inverse=True)
        high_of, low_of = high_of.reshape(k, -1), low_of.reshape(k, -1)
        self._x, self._x_ = _pairs_of(k)
        laws = [np.unique(np.stack([high_of[x], low_of[y]]), axis=1) for x, y in zip(self._x, self._x_, strict=True)]
        self._sizes = [some.shape[1] for some in laws]
        of_laws = np.concatenate(laws, axis=1).astype(np.int64)
        self._rows, self._rows_ = of_laws[0], of_laws[1]
        self._kernel = Kernel(high, low, np.ones(k, dtype=np.bool_))
        self._ratios, self._k = LogRatios(), k
        self._worst = np.zeros(self._x.size, dtype=np.intp)

    def __call__(self, a: Matrix) -> Matrix:
        proved = self._ratios.of_pairs(self._kernel, a, self._rows, self._rows_)
        first = 0
        for i, size in enumerate(self._sizes):
            self._worst[i] = first + int(np.argmax(proved[first : first + size]))
            first += size
        bounds = np.zeros((self._k, self._k))
        bounds[self._x, self._x_] = proved[self._worst]
        return bounds

    def arcs(self) -> Any:
        return self._ratios.slopes(self._worst)


class _ByChords:
    """Two vectors for every row, between which all its laws are on the cone."""

    def __init__(self, lower: Matrix, upper: Matrix) -> None:
        self._lower, self._upper = lower, upper
        self._ratios = LogRatios()
        self._every = np.ones(lower.shape[0], dtype=np.bool_)

    def __call__(self, a: Matrix) -> Matrix:
        return self._ratios(Kernel(*_chords(self._lower, self._upper, a), self._every), a)

    def arcs(self) -> Any:
        k = len(self._every)
        return self._ratios.slopes(np.arange(k * (k - 1)))


def _chords(lower: Matrix, upper: Matrix, a: Matrix) -> tuple[Matrix, Matrix]:
    """Return vectors above and below all laws of each row on the cone of ``a``, finite; shape (k, k) each."""
    k: int = lower.shape[0]
    room = 4 * (k + 4) * UNIT
    reached = np.any(upper > 0, axis=0)
    a = np.where(reached[:, None] & reached[None, :], a, 0.0)
    rise: Matrix = np.expm1(a) * (1 + 4 * UNIT)  # [y, z]: at most so much is v_y/v_z above 1
    fall = -np.expm1(-a.T) * (1 + 4 * UNIT)  # [y, z]: or below
    share: Matrix = rise / np.maximum(rise + fall, 1e-300)
    # axes: row x, state y, reference z
    low, wide = lower[:, :, None], (upper - lower)[:, :, None]
    above, below = low + wide * share, low + wide * (1 - share)

    def at_reference(slope: Matrix, ups: Matrix, downs: Matrix, sign: float) -> Matrix:
        """Return the entry of z: all that is left of 1, and the excess at the worse end."""
        excess = np.maximum(ups * rise, downs * fall).sum(axis=1) * (1 + room) + room
        return 1 - (slope.sum(axis=1) - np.einsum("xzz->xz", slope)) + sign * excess

    high = upper[:, :, None]
    most = at_reference(above, high - above, above - low, 1.0)
    least = at_reference(below, below - low, high - below, -1.0)
    rows = np.arange(k)

    def chosen(slope: Matrix, entries: Matrix, cost: Matrix, otherwise: Matrix) -> Matrix:
        z = np.argmin(cost, axis=1)
        vectors = slope[rows, :, z]
        vectors[rows, z] = np.maximum(entries[rows, z], 0.0)
        return np.where(np.isfinite(cost[rows, z])[:, None], vectors, otherwise)

    spread = np.where(reached, (wide * fall * share).sum(axis=1), np.inf)
    return (chosen(above, most, spread, upper), chosen(below, least, np.where(least > 0, spread, np.inf), lower))


# -- Extreme laws, and products of matrices between bounds ----------------------------------------------------------


def extreme_laws(lower: Matrix, upper: Matrix, order: Indices) -> tuple[Matrix, Matrix]:
    """Return bounds above and below the laws that hold most on the first states of an order; all of shape (..., k)."""
    k = lower.shape[-1]
    lower, upper, order = np.broadcast_arrays(lower, upper, order)
    width = np.take_along_axis(upper - lower, order, axis=-1)
    left = 1 - lower.sum(axis=-1, keepdims=True)
    filled = np.clip(left - (np.cumsum(width, axis=-1) - width), 0.0, width)
    law = np.empty(lower.shape)
    np.put_along_axis(law, order, filled, axis=-1)
    law += lower
    room = 4 * (k + 2) * UNIT
    return np.minimum(upper, law + room), np.maximum(lower, law - room)


class EntryBounds:
    """Bounds on the entries of every product of n matrices between the bounds, n = 1, 2, …; each is attained.

    U_n(x, y) = max over laws r of row x of Σ_z r(z) U_{n−1}(z, y), and L_n likewise.
    """

    def __init__(self, lower: Matrix, upper: Matrix) -> None:
        self._lower, self._upper = lower, upper
        self._possible = upper > 0
        self.least = lower
        self.most = upper

    def advance(self) -> None:
        """Go on to products of one matrix more."""
        rounding = (self._lower.shape[0] + 4) * UNIT
        # axes: column y, row x, state z
        falling = np.argsort(-self.most, axis=0, kind="stable").T[:, None, :]
        rising = np.argsort(self.least, axis=0, kind="stable").T[:, None, :]
        above, _ = extreme_laws(self._lower[None], self._upper[None], falling)
        _, below = extreme_laws(self._lower[None], self._upper[None], rising)
        most = np.minimum(np.einsum("yxz,zy->xy", above, self.most) * (1 + rounding), 1.0)
        least = np.einsum("yxz,zy->xy", below, self.least) * (1 - rounding)
        self.most = np.where(bool_matmul(self._possible, self.most > 0), np.maximum(most, TINY), 0.0)
        self.least = np.where(least < TINY, 0.0, least)


class Marginals:
    """Bounds on the law n steps from the first record, under every initial law, and later; kept for few n."""

    def __init__(self, lower: Matrix, upper: Matrix) -> None:
        self._lower, self._upper = lower, upper
        self._entries = EntryBounds(lower, upper)
        self._steps = 1
        self._known = [(1, lower.min(axis=0), upper.max(axis=0))]
        self._settled = False
        self._backward: dict[int, IntervalRatios] = {}

    def known(self, steps: int) -> int:
        """Return the largest n, at most ``steps`` ≥ 1, for which there are bounds."""
        while not self._settled and self._known[-1][0] < min(steps, _FARTHEST):
            self._advance(self._known[-1][0] + 1 + self._known[-1][0] // 4)
        return next(n for n, *_ in reversed(self._known) if n <= steps)

    def bounds(self, known: int) -> tuple[Vector, Vector]:
        """Return bounds on the law after so many steps or more."""
        return next((least, most) for n, least, most in self._known if n == known)

    def after(self, known: int, _states: Mask) -> IntervalRatios:
        """Return Φ of the past of a record that so many steps or more lead to, whatever states it can have."""
        if known not in self._backward:
            backward = reversed_bounds(*self.bounds(known), self._lower, self._upper)
            self._backward[known] = IntervalRatios(*backward)
        return self._backward[known]

    def _advance(self, steps: int) -> None:
        while self._steps < steps:
            self._entries.advance()
            self._steps += 1
        _, least, most = self._known[-1]
        low = np.maximum(least, self._entries.least.min(axis=0))
        high = np.minimum(most, self._entries.most.max(axis=0))
        self._settled = bool(np.all(low - least <= _SETTLED * low) and np.all(most - high <= _SETTLED * most))
        if self._settled:
            self._settled = bool(np.all((low > 0) == (high > 0)))  # an entry may take many steps to become positive
        self._known.append((steps, low, high))


def reversed_bounds(least: Vector, most: Vector, lower: Matrix, upper: Matrix) -> tuple[Matrix, Matrix]:
    """Return bounds on P(X_{i−1} = y | X_i = x), row x, from bounds on the law of X_{i−1} and on the matrix.

    Each share is largest where its own weight is and the others are least. A state that cannot follow is unbounded.
    """
    rounding = (len(least) + 8) * UNIT
    low, high = least * lower.T, most * upper.T
    others = 1 - np.eye(len(least))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares_low, shares_high = low / (low + high @ others), high / (high + low @ others)
    shares_low = np.where(low > 0, shares_low * (1 - rounding), 0.0)
    shares_high = np.where(high > 0, np.minimum(shares_high * (1 + rounding), 1.0), 0.0)
    lost = ~np.any(high > 0, axis=1)
    shares_high[lost] = most > 0
    return shares_low, shares_high
