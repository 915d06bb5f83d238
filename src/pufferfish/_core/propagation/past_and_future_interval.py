r"""The two sides of a record where the matrix of every step is any one between two bounds.

The recursion of :mod:`pufferfish._core.propagation.chain` holds for a chain with a matrix of its own at every step; with
the worst matrix at each step it holds for all of them at once, and for every initial law:

* the future's message is Φ over the interval matrix (:mod:`pufferfish._core.phi.rows_between_bounds`);
* the past's is the least of two: the contraction that no initial law exceeds
  (:mod:`pufferfish._core.phi.any_initial_law`), and, from the third record on, Φ over bounds on the reversed kernel. The
  record before is a few steps from the first one by then, and what it can be is bounded too
  (:mod:`pufferfish._core.chains.interval_matrices`): chains that mix forget their start.
"""

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.interval_matrices import Marginals, reversed_bounds
from pufferfish._core.phi.phi import solve_slopes
from pufferfish._core.phi.rows_between_bounds import IntervalRatios, pairs_of
from pufferfish._core.propagation.fixed_point import FixedPoint, Settled
from pufferfish._core.propagation.past_and_future import AnyPast, Homogeneous, Side, under_any_prior
from pufferfish._core.propagation.steps import Same

__all__ = ["PastBetween", "sides_between"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


_MOST_STEPS = 800
"""A step takes long where many orders are looked at; what has not settled by then hardly will."""


def sides_between(lower: Matrix, upper: Matrix) -> tuple[Side, Side]:
    """Return the future and the past of records where every matrix lies between two bounds."""
    ratios = IntervalRatios(lower, upper)
    future = Homogeneous(np.ones(len(lower), dtype=np.bool_), ratios, ratios.solve)
    future.most_steps = _MOST_STEPS
    return future, PastBetween(lower, upper)


class PastBetween(AnyPast):
    """The past under every initial law and every sequence of matrices between two bounds.

    Both bounds may be one matrix.
    """

    starts_settled = False

    def __init__(self, lower: Matrix, upper: Matrix) -> None:
        super().__init__(Same(upper), lower)
        self.most_steps = _MOST_STEPS
        self._lower, self._upper = lower, upper
        self._marginals = Marginals(lower, upper)
        self._backward: dict[int, IntervalRatios] = {}
        self._later: dict[tuple[bytes, int], FixedPoint] = {}
        self._nearest: tuple[Mask, IntervalRatios] | None = None

    def message(self, place: int, a: Matrix) -> Matrix:
        """Return what arrives at a place."""
        return self._least(a, self._states(place - 1), place - 2)

    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for every place after this one."""
        if place < 2:
            return super().settled(place, loss, room)
        states, steps = self._states(place), self._marginals.after(place - 1)[0]
        key = states.tobytes(), steps
        if key not in self._later:
            self._later[key] = under_any_prior(
                lambda b, before: self._least(b, before, steps), self._solve, self._steps.followers(states), states
            )
        return self._later[key](loss, room)

    def _least(self, b: Matrix, before: Mask, steps: int) -> Matrix:
        """Return the least of both bounds, where the record before is at least ``steps`` from the first."""
        message = self._prior(b, before)
        self._nearest = None
        if steps < 1:
            return message
        ratios = self._reversed(steps)
        forgetting = ratios(b)
        nearer = forgetting < message
        self._nearest = nearer, ratios
        return np.where(nearer & np.isfinite(message), forgetting, message)

    def _reversed(self, steps: int) -> IntervalRatios:
        known, least, most = self._marginals.after(steps)
        if known not in self._backward:
            self._backward[known] = IntervalRatios(*reversed_bounds(least, most, self._lower, self._upper))
        return self._backward[known]

    def _solve(self, residual: Matrix) -> Matrix:
        """Take one step of Newton's method with the derivative of whichever bound is the least, pair by pair."""
        slopes = None if self._nearest is None else self._nearest[1].slopes()
        if self._nearest is None or slopes is None:
            return self._prior.solve(residual)
        k = len(residual)
        x, x_ = pairs_of(k)
        (tails, heads, shares), (slope, at) = slopes, self._prior.slopes
        tails, heads, shares = tails.copy(), heads.copy(), shares.copy()
        by_prior = ~self._nearest[0][x, x_]
        tails[by_prior], heads[by_prior], shares[by_prior] = 0, 0, 0.0
        tails[by_prior, 0], heads[by_prior, 0] = np.divmod(at[x, x_][by_prior], k)
        shares[by_prior, 0] = slope[x, x_][by_prior]
        return solve_slopes(residual, x, x_, tails, heads, shares)
