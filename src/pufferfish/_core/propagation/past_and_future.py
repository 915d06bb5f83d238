r"""The two sides of a record: through which kernels its future and its past tell about it.

Places count from a side's own end of the chain: place j is the j-th record from the end for the future, the j-th
record for the past. A side turns bounds A at place j − 1 into what arrives at place j, Φ(A); see
:mod:`pufferfish._core.propagation.chain`.

Where the matrix goes through the phases of a cycle, a place may be at any of them: bounds are then stacks of matrices,
one for each phase that the place may be at, and Φ takes each from the phase beside it.

The two sides of a record where the matrix of every step is any one between two bounds.

The recursion of :mod:`pufferfish._core.propagation.chain` holds for a chain with a matrix of its own at every step;
with
the worst matrix at each step it holds for all of them at once, and for every initial law:

* the future's message is Φ over the interval matrix (:mod:`pufferfish._core.phi.rows_between_bounds`);
* the past's is the least of two: the contraction that no initial law exceeds
  (:mod:`pufferfish._core.phi.any_initial_law`), and, from the third record on, Φ over bounds on the reversed kernel.
  The record before is a few steps from the first one by then, and what it can be is bounded too
  (:mod:`pufferfish._core.chains.interval_matrices`): chains that mix forget their start.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.interval_matrices import Marginals, reversed_bounds
from pufferfish._core.chains.markov import LogVectorPath, log_of
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.phi.any_initial_law import AnyPrior
from pufferfish._core.phi.phi import Kernel, solve_slopes, without_flows
from pufferfish._core.phi.rows_between_bounds import IntervalRatios, pairs_of
from pufferfish._core.propagation.steps import FixedPoint, Same, Settled, Steps
from pufferfish.errors import ModelError

__all__ = ["AnyPast", "Homogeneous", "PastBetween", "Side", "future_of", "past_of", "sides_between", "under_any_prior"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]
Vector = NDArray[np.float64]

_MOST_PLACES = 100_000
"""Places of all phases together that are visited one by one at most, in cycles."""

_UNTIL_SETTLED = 4
"""How many times more of them are visited until a given initial law is forgotten."""

_SETTLED_CYCLE = 1e-7
"""The same for cycles, whose places take longer: less than the slack of their fixed points."""

_DISCOUNT = 1e-7
"""By how much a first guess counts every step less than the one before: chains that never forget have sums too."""

_SETTLED = 1e-9
"""Marginals have settled once every later kernel is within this of the stationary one; the excess is added to it."""


class Side(ABC):
    """One side of the records of a chain."""

    phases: tuple[int, ...] = ()
    """Shape of what stands before the states in its arrays: nothing, or the number of phases of a cycle."""

    starts_settled: bool = True
    """Whether one fixed point covers all places, however near the end."""

    quick: bool = False
    """Whether many places in a row are followed at once."""

    most_steps: int = 4096
    """How many places are visited one by one at most, before bounds for all later ones are looked for."""

    @abstractmethod
    def message(self, place: int, a: Matrix) -> Matrix:
        """Return what arrives at a place ≥ 2, an upper bound on Φ of the bounds ``a`` at the place before.

        Shape (..., k, k); +∞ for pairs of states that the place cannot have.
        """

    def walk(self, place: int, a: Matrix, loss: Matrix, most: int, enough: float) -> Matrix:
        """Return what arrives at ``most`` places after this one, whose records have this loss, or at fewer, at least 1.

        Shape (n, ..., k, k). A walk ends where a step changes bounds by at most ``enough``, or earlier.
        """
        return self.message(place + 1, a)[None]

    @abstractmethod
    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for records of this loss at every place after ``place``, if what enters is below it."""

    @abstractmethod
    def at_worst(self, loss: Matrix, room: float) -> Settled | None:
        """Return such a bound for all places; larger where :meth:`settled` has to wait."""

    def onwards(self, place: int) -> Callable[[Matrix], Matrix] | None:
        """Return one Φ, an upper bound on that of every place after this one, or None where there is none."""
        return None

    def from_here(self, place: int) -> "Side | None":
        """Return a side that bounds every place after this one in the same way, or None where there is none."""
        return None

    def law(self, first: int, last: int) -> tuple[Vector, Mask, float] | None:
        """Return logarithms of the law of every place from first to last, its support and their error, if known."""
        return None

    @abstractmethod
    def states(self, first: int, last: int) -> Mask:
        """Return states that hold all those which the places first to last can have; shape (..., k)."""

    def secrets(self, first: int, last: int) -> Mask:
        """Return pairs of different states that hold all pairs which the places first to last can have."""
        return _pairs(self.states(first, last))


class Homogeneous(Side):
    """One kernel for all places, one set of kernels, or one kernel for each phase."""

    def __init__(
        self,
        states: Mask,
        phi: Callable[[Matrix], Matrix],
        solve: Callable[[Matrix], Matrix],
        guess: Callable[[Matrix], Matrix] | None = None,
        walk: Callable[[Matrix, Matrix, int, float], Matrix] | None = None,
    ) -> None:
        self._states, self._phi, self._walk = states, phi, walk
        self._fixed = FixedPoint(phi, solve, guess=guess)
        self.phases, self.quick = states.shape[:-1], walk is not None
        self.most_steps = _most_steps(self.phases)

    @classmethod
    def of(cls, kernel: Kernel, ratios: Any) -> "Homogeneous":
        """Return the side of one kernel, or of one for each phase."""
        if kernel.rows.ndim > 1:
            return cls(kernel.rows, lambda a: ratios(kernel, a), ratios.solve)
        guess, walk = partial(_for_small_losses, kernel), partial(ratios.walk, kernel)
        return cls(kernel.rows, lambda a: ratios(kernel, a), ratios.solve, guess, walk)

    def message(self, place: int, a: Matrix) -> Matrix:
        """Return what arrives at a place."""
        return self._phi(a)

    def walk(self, place: int, a: Matrix, loss: Matrix, most: int, enough: float) -> Matrix:
        """Return what arrives at the next places."""
        return self._phi(a)[None] if self._walk is None else self._walk(a, loss, most, enough)

    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for every place after this one."""
        return self._fixed(loss, room)

    def at_worst(self, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for all places."""
        return self._fixed(loss, room)

    def onwards(self, place: int) -> Callable[[Matrix], Matrix] | None:
        """Return the Φ of every place."""
        return None if self.phases else self._phi

    def from_here(self, place: int) -> Side | None:
        """Return this side: every place is bounded in the same way."""
        return self

    def states(self, first: int, last: int) -> Mask:
        """Return states that the places can have."""
        return self._states


class AnyPast(Side):
    """The past under every initial law, and under every matrix above ``lower`` where there is one."""

    def __init__(self, steps: Steps, lower: Matrix | None = None) -> None:
        self._prior: Any = steps.any_prior() if lower is None else AnyPrior(steps.matrices, lower)
        self._steps = steps
        self._reached: list[Mask] = [np.ones(steps.matrices.shape[:-1], dtype=np.bool_)]
        self._closed = False  # whether the last of them is that of all later places
        self._fixed: dict[bytes, FixedPoint] = {}
        self.phases = steps.phases
        self.most_steps = _most_steps(self.phases)

    def message(self, place: int, a: Matrix) -> Matrix:
        """Return what arrives at a place."""
        return self._prior(a, self._states(place - 1))

    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for every place after this one."""
        return self._fixed_on(self._states(max(place, 1)), loss, room)

    def at_worst(self, loss: Matrix, room: float) -> Settled | None:
        """Return such a bound for all places."""
        return self._fixed_on(self._states(1), loss, room)

    def from_here(self, place: int) -> Side | None:
        """Return this side, once the states that records can have do not change any more.

        What it says of a place holds of every later one: there is more between them and the first record, not less.
        """
        return self if place > 1 and np.array_equal(self._states(place - 1), self._states(place + 1)) else None

    def states(self, first: int, last: int) -> Mask:
        """Return states that the places can have: those of the first one, as there are ever fewer."""
        return self._states(first)

    def _states(self, place: int) -> Mask:
        """States that the record at a place can have: ever fewer."""
        while len(self._reached) < place and not self._closed:
            onwards = self._steps.followers(self._reached[-1])
            self._closed = np.array_equal(onwards, self._reached[-1])
            if not self._closed:
                self._reached.append(onwards)
        return self._reached[min(place, len(self._reached)) - 1]

    def _fixed_on(self, states: Mask, loss: Matrix, room: float) -> Settled | None:
        """Bound with laws on these states for the record before: more states, more laws."""
        key = states.tobytes()
        if key not in self._fixed:
            self._fixed[key] = under_any_prior(self._prior, self._prior.solve, self._steps.followers(states), states)
        return self._fixed[key](loss, room)


class _GivenPast(Side):
    """The past under a given initial law: kernels move until the marginals have settled."""

    starts_settled = False

    def __init__(self, steps: Steps, initial: Vector) -> None:
        initial = np.broadcast_to(initial, steps.matrices.shape[:-1])
        self._steps = steps
        self._log_into = steps.log_into
        self._reachable = steps.reached(initial > 0)
        self._path = LogVectorPath(initial, steps.matrices, steps.moved_on)
        self._marginals = [(self._path.log, self._path.support, self._path.log_error)]
        self._ratios = steps.past()
        prior = steps.any_prior()
        follows = steps.followers(self._reachable)
        self._always = under_any_prior(prior, prior.solve, follows, self._reachable)
        self._later: tuple[int, Homogeneous] | None = None
        self._settled_law: tuple[Vector, Mask, float] | None = None
        self.phases = steps.phases
        self.most_steps = _most_steps(self.phases, _UNTIL_SETTLED)

    def message(self, place: int, a: Matrix) -> Matrix:
        (before, _, error), (here, support, error_) = self._marginal(place - 1), self._marginal(place)
        with np.errstate(invalid="ignore"):
            logs = self._steps.moved_on(before)[..., None, :] + self._log_into - here[..., :, None]
        return self._ratios(Kernel.of_logs(logs, support, error + error_ + UNIT * 8), a)

    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        place = max(place, 1)
        if self._later is None or place < self._later[0]:
            side = self._settle(place)
            if side is None:
                return None
            self._later = place, side
        return self._later[1].settled(place, loss, room)

    def at_worst(self, loss: Matrix, room: float) -> Settled | None:
        return self._always(loss, room)

    def onwards(self, place: int) -> Callable[[Matrix], Matrix] | None:
        later = self._later
        return None if later is None or place < later[0] else later[1].onwards(place)

    def from_here(self, place: int) -> Side | None:
        later = self._later
        return None if later is None or place < later[0] else later[1]

    def states(self, first: int, last: int) -> Mask:
        if first == last <= len(self._marginals):
            return self._marginals[first - 1][1]
        if self._later is not None and first > self._later[0]:
            return self._later[1].states(first, last)
        return self._reachable

    def law(self, first: int, last: int) -> tuple[Vector, Mask, float] | None:
        if first == last <= len(self._marginals):
            return self._marginals[first - 1]
        later = self._later is not None and first > self._later[0]
        return self._settled_law if later else None

    def _marginal(self, place: int) -> tuple[Vector, Mask, float]:
        while len(self._marginals) < place:
            self._path.advance()
            self._marginals.append((self._path.log, self._path.support, self._path.log_error))
        return self._marginals[place - 1]

    def _settle(self, place: int) -> "Homogeneous | None":
        """Return the stationary kernel, widened to hold all kernels after a place, where that is little."""
        logs, support, error = self._marginal(place)
        if not self._steps.forgets_on(support):
            return None
        try:
            law, positive, law_error = self._steps.law(support)
        except ModelError:
            return None  # too small to compute: this side never counts as settled
        if not np.array_equal(positive, support):
            return None
        log_pi = log_of(law, support)
        ratio = logs - np.where(support, log_pi, 0.0)
        # π_i between c·π and C·π entrywise holds for all later marginals too
        spread = np.max(ratio, axis=-1) - np.min(np.where(support, ratio, np.inf), axis=-1)
        drift = float(np.max(spread))
        if drift > (_SETTLED_CYCLE if self.phases else _SETTLED):
            return None
        rounding = 2 * law_error + 8 * UNIT * float(np.max(np.abs(log_pi), where=support, initial=1.0))
        kernel = _reversed(self._steps, (law, support, law_error), drift + 2 * error + rounding)
        self._settled_law = log_pi, support, drift + 2 * error + rounding
        return Homogeneous.of(kernel, self._steps.past())


def _for_small_losses(kernel: Kernel, loss: Matrix) -> Matrix:
    """Return about where the bounds of a side settle: what small losses of equal size add up to, if they are that.

    A record that moves from x to x' moves the expected time spent in z by Z(x,z) − Z(x',z), Z = Σ_i Kⁱ; half of the sum
    of these over all z is what a loss of 1 for any change adds up to. It is a first guess, of which nothing is claimed.
    """
    k = len(loss)
    matrix = np.where(kernel.rows[:, None], (kernel.upper + kernel.lower) / 2, 0.0)
    try:
        visits = np.linalg.inv(np.eye(k) - (1 - _DISCOUNT) * matrix)
    except np.linalg.LinAlgError:
        return loss
    apart = np.array([np.abs(row - visits).sum(axis=1) for row in visits]) / 2
    if not np.all(np.isfinite(apart)):
        return loss
    most = float(np.max(loss, where=np.isfinite(loss), initial=0.0))
    with np.errstate(over="ignore"):
        return np.minimum(most * apart, loss + without_flows(kernel))


def future_of(steps: Steps, possible: Mask) -> Side:
    """Return the future of a chain's records: the kernel is P, on the states that can occur."""
    logs = log_of(steps.matrices, steps.matrices > 0)
    return Homogeneous.of(Kernel.of_logs(logs, possible, UNIT * (steps.k + 2)), steps.future())


def past_of(steps: Steps, initial: Vector | None) -> Side:
    """Return the past of a chain's records, for a given law of the first one, or (None) for the stationary one."""
    if initial is not None:
        return _GivenPast(steps, initial)
    return Homogeneous.of(_reversed(steps, steps.law(), 0.0), steps.past())


def _reversed(steps: Steps, stationary: tuple[Matrix, Mask, float], error: float) -> Kernel:
    """Kernel of the reversed stationary chain: π(y) P(y,x) / π(x), on the states that π gives."""
    law, states, law_error = stationary
    log_pi = log_of(law, states)
    with np.errstate(invalid="ignore"):
        logs = steps.moved_on(log_pi)[..., None, :] + steps.log_into - log_pi[..., :, None]
    largest = float(np.max(np.abs(log_pi), where=states, initial=0.0))
    rounding = 2 * law_error + UNIT * (steps.k + 2) + 4 * UNIT * largest
    return Kernel.of_logs(logs, states, error + rounding)


def under_any_prior(
    prior: Callable[[Matrix, Mask], Matrix], solve: Callable[[Matrix], Matrix], follows: Mask, states: Mask
) -> FixedPoint:
    """Return the fixed point of the past under any law on some states and what they lead to.

    A state that follows none of them is a state of the first record only, whose past says nothing; its bounds are no
    link between the bounds of other states.
    """
    later = follows[..., :, None] & follows[..., None, :]

    def message(b: Matrix) -> Matrix:
        return np.where(later, prior(b, states), 0.0)

    return FixedPoint(message, solve, closed=False)


def _pairs(states: Mask) -> Mask:
    return states[..., :, None] & states[..., None, :] & ~np.eye(states.shape[-1], dtype=np.bool_)


def _most_steps(phases: tuple[int, ...], times: int = 1) -> int:
    """How many places are visited one by one at most: a place of a cycle takes as long as all its phases."""
    return int(np.clip(times * _MOST_PLACES // max((1, *phases)), 16, Side.most_steps))


# -- The two sides of a record where the matrix of every step is any one between two bounds --------------------------

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
        (tails, heads, shares), (slope, places) = slopes, self._prior.slopes
        tails, heads, shares = tails.copy(), heads.copy(), shares.copy()
        by_prior = ~self._nearest[0][x, x_]
        tails[by_prior], heads[by_prior], shares[by_prior] = 0, 0, 0.0
        tails[by_prior, 0], heads[by_prior, 0] = np.divmod(places[x, x_][by_prior], k)
        shares[by_prior, 0] = slope[x, x_][by_prior]
        return solve_slopes(residual, x, x_, tails, heads, shares)
