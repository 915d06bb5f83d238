r"""Laws whose entries lie between bounds: the extreme ones, and the entries of products of such matrices.

Row x of an interval matrix is the set of laws r with l_x ≤ r ≤ u_x. For a vector v the largest r·v puts what is left
above the lower bounds on the states with the largest v, one after the other: the extreme law depends on the *order*
of v's entries only. The least r·v is the same with the order reversed.

Extreme laws come as two vectors between which they lie entrywise, so that rounding is on the safe side.
"""

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import bool_matmul
from pufferfish._core.numbers.rounding import TINY, UNIT

__all__ = ["EntryBounds", "Marginals", "extreme_laws", "reversed_bounds"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_SETTLED = 1e-10  # bounds on marginals have settled once they move by no more than this share
_FARTHEST = 4096  # bounds on marginals after so many steps have to do for all later ones


def extreme_laws(lower: Matrix, upper: Matrix, order: NDArray[np.intp]) -> tuple[Matrix, Matrix]:
    """Return bounds above and below the laws that hold most on the first states of an order; all of shape (..., k).

    They are off by a few units of rounding, and never outside the bounds.
    """
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
    """Bounds on the entries of every product of n matrices between the bounds, n = 1, 2, ….

    U_1 = u and U_n(x, y) = max over laws r of row x of Σ_z r(z) U_{n−1}(z, y), L_n likewise: the best matrix of the
    first step for a single entry, whatever follows. Every entry's bound is attained (by a matrix of its own).
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
    """Bounds on the law of a record that is n steps from the first one, under every initial law.

    It is a mixture of rows of a product of n matrices. What holds after n steps holds later on too, so bounds are kept
    for ever sparser n only.
    """

    def __init__(self, lower: Matrix, upper: Matrix) -> None:
        self._entries = EntryBounds(lower, upper)
        self._steps = 1
        self._known = [(1, lower.min(axis=0), upper.max(axis=0))]
        self._settled = False

    def after(self, steps: int) -> tuple[int, Vector, Vector]:
        """Return bounds that hold after ``steps`` ≥ 1 steps and later, and the n for which they were made."""
        while not self._settled and self._known[-1][0] < min(steps, _FARTHEST):
            self._advance(self._known[-1][0] + 1 + self._known[-1][0] // 4)
        return next(known for known in reversed(self._known) if known[0] <= steps)

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

    The weights μ(y) P(y,x) lie between the products of the bounds; each share is largest where its own weight is
    largest and the others are least. The row of a state that cannot follow is unbounded.
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
