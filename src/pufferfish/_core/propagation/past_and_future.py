"""The two sides of a record: through which kernels its future and its past tell about it (docs/proofs/propagation.md).

Places count from a side's own end of the chain: place j is the j-th record from the end for the future, the j-th
record for the past. A side turns bounds A at place j − 1 into what arrives at place j, Φ(A). Where the matrix goes
through the phases of a cycle, bounds are stacks of matrices, one for each phase that a place may be at.

Under every initial law the past is bounded twice, and the least counts, pair by pair: by the contraction of
:mod:`pufferfish._core.phi.any_initial_law`, and, from the third record on, by what the laws that the steps lead to can
tell. Bounds then fall from place to place, and sweeps come to fixed points from above. Where every matrix is any one
between two bounds, Φ is that of the worst (:mod:`pufferfish._core.phi.rows_between_bounds`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pufferfish._base.progress import BoundedCache
from pufferfish._core import Mask, Matrix, Vector
from pufferfish._core.chains.markov import LogVectorPath, bool_matmul, log_of
from pufferfish._core.numbers.compiled import Loops
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.phi.any_initial_law import LEAST, AfterStart, fits
from pufferfish._core.phi.certificate import search_each
from pufferfish._core.phi.phi import Kernel, without_flows
from pufferfish._core.phi.rows_between_bounds import IntervalRatios, Marginals
from pufferfish._core.propagation.steps import FixedPoint, Settled, Steps
from pufferfish.errors import ModelError

_MOST_PLACES = 100_000  # places of all phases together that are visited one by one at most, in cycles
_UNTIL_SETTLED = 4  # how many times more of them are visited until a given initial law is forgotten
# By how much a first guess counts every step less than the one before: chains that never forget have sums too.
_DISCOUNT = 1e-7
# Losses below this share of the largest count as none in a first guess: with the slack of a fixed point none is.
_NO_LOSS = 0.02
# A place takes long where laws are followed from the first record; what has not settled by then hardly will.
_MOST_STEPS = 800
_FARTHEST = 4096  # laws after so many steps have to do for all later ones
_ALIKE = 1e-10  # rows of a power that differ by no more than this share are those of all later ones
_MOST_FIXED = 64  # fixed points and bounds after some steps that are kept
# Marginals have settled once every later kernel is within this of the stationary one; the excess is added to it.
_SETTLED = 1e-9
_SETTLED_CYCLE = 1e-7  # the same for cycles, whose places take longer: less than the slack of their fixed points


class Side(ABC):
    """One side of the records of a chain."""

    # what stands before the states in the shape of its arrays: nothing, or the number of phases of a cycle
    phases: tuple[int, ...] = ()
    starts_settled: bool = True  # whether one fixed point covers all places, however near the end
    falls: bool = False  # whether bounds may fall from place to place: a sweep then comes to a fixed point from above
    quick: bool = False  # whether many places in a row are followed at once
    most_steps: int = 4096  # places visited one by one at most, before bounds for all later ones are looked for

    @abstractmethod
    def message(self, place: int, a: Matrix) -> Matrix:
        """Return what arrives at a place ≥ 2, at least Φ(A); +∞ for pairs of states that the place cannot have."""

    def walk(self, place: int, a: Matrix, loss: Matrix, most: int, enough: float) -> Matrix:
        """Return what arrives at the next places, 1 to ``most`` of them, whose records have this loss; (n, ..., k, k).

        A walk ends where a step changes bounds by at most ``enough``, or earlier.
        """
        return self.message(place + 1, a)[None]

    @abstractmethod
    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for records of this loss at every place after ``place``, if what enters is below it."""

    def at_worst(self, loss: Matrix, room: float) -> Settled | None:
        """Return such a bound for all places; larger where :meth:`settled` has to wait."""
        return self.settled(1, loss, room)

    def from_here(self, place: int) -> "Side | None":
        """Return a side that bounds every place after this one in the same way, or None where there is none."""
        return None

    def at_every_age(self) -> "Side":
        """Return a side that bounds every place in the same way, wherever the first record is."""
        return self

    def law(self, first: int, last: int) -> tuple[Vector, Mask, float] | None:
        """Return logarithms of the law of every place from first to last, its support and their error, if known."""
        return None

    @abstractmethod
    def states(self, first: int, last: int) -> Mask:
        """Return states that hold all those which the places first to last can have; shape (..., k)."""

    def secrets(self, first: int, last: int) -> Mask:
        """Return pairs of different states that hold all pairs which the places first to last can have."""
        states = self.states(first, last)
        return states[..., :, None] & states[..., None, :] & ~np.eye(states.shape[-1], dtype=np.bool_)


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
        self._states, self.phi, self._walk = states, phi, walk
        self._fixed = FixedPoint(phi, solve, guess=guess)
        self.phases, self.quick = states.shape[:-1], walk is not None
        self.most_steps = _most_steps(self.phases)
        self._law: tuple[Vector, Mask, float] | None = None

    @classmethod
    def of(cls, kernel: Kernel, ratios: Any) -> "Homogeneous":
        """Return the side of one kernel, or of one for each phase."""
        if kernel.rows.ndim > 1:
            return cls(kernel.rows, lambda a: ratios(kernel, a), ratios.solve)
        guess, walk = partial(_for_small_losses, kernel), partial(ratios.walk, kernel)
        return cls(kernel.rows, lambda a: ratios(kernel, a), ratios.solve, guess, walk)

    def message(self, place: int, a: Matrix) -> Matrix:
        """Return what arrives at a place."""
        return self.phi(a)

    def walk(self, place: int, a: Matrix, loss: Matrix, most: int, enough: float) -> Matrix:
        """Return what arrives at the next places."""
        return self.phi(a)[None] if self._walk is None else self._walk(a, loss, most, enough)

    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for every place after this one."""
        return self._fixed(loss, room)

    def from_here(self, place: int) -> Side | None:
        """Return this side: every place is bounded in the same way."""
        return self

    def law(self, first: int, last: int) -> tuple[Vector, Mask, float] | None:
        """Return the law of every place, if it is known."""
        return self._law

    def states(self, first: int, last: int) -> Mask:
        """Return states that the places can have."""
        return self._states


class AnyPast(Side):
    """The past under every initial law, and every matrix above ``lower``; without ``ages`` at every age."""

    def __init__(self, steps: Steps, lower: Matrix | None = None, *, ages: bool = True) -> None:
        self._prior = steps.any_prior(lower)
        self._steps, self._lower = steps, lower
        self._laws = _laws_after(steps, lower) if ages else None
        self._reached: list[Mask] = [np.ones(steps.matrices.shape[:-1], dtype=np.bool_)]
        self._closed = not ages  # whether the last of them is that of all later places
        self._fixed: BoundedCache[FixedPoint] = BoundedCache(_MOST_FIXED)
        self._nearest: tuple[Mask, AfterStart | IntervalRatios] | None = None
        self._since, self._decided = 0, np.full(steps.phases, -np.inf)
        self.phases, self.starts_settled, self.falls = steps.phases, self._laws is None, self._laws is not None
        self.most_steps = _most_steps(self.phases) if self._laws is None else min(_most_steps(self.phases), _MOST_STEPS)

    def message(self, place: int, a: Matrix) -> Matrix:
        """Return what arrives at a place."""
        return self._least(a, self.states(place - 1, place - 1), self._known(place - 2))

    def settled(self, place: int, loss: Matrix, room: float) -> Settled | None:
        """Return a bound for every place after this one, by laws on the states of the place: later ones have fewer."""
        place = max(place, 1)
        states, known = self.states(place, place), self._known(place - 1)

        def made() -> FixedPoint:
            followers = self._steps.followers(states)
            return under_any_prior(lambda b, before: self._least(b, before, known), self._solve, followers, states)

        return self._fixed.of((states.tobytes(), known), made)(loss, room)

    def from_here(self, place: int) -> Side | None:
        """Return this side, once states do not change any more: what it says of a place holds of every later one."""
        if place > 1 and np.array_equal(self.states(place - 1, place), self.states(place + 1, place + 1)):
            return self
        return None

    def at_every_age(self) -> Side:
        """Return the past by the contraction alone: how long ago a chain began rules out no law, and no state."""
        return AnyPast(self._steps, self._lower, ages=False)

    def states(self, first: int, last: int) -> Mask:
        """Return states that the places can have: those of the first one, as there are ever fewer."""
        while len(self._reached) < first and not self._closed:
            onwards = self._steps.followers(self._reached[-1])
            self._closed = np.array_equal(onwards, self._reached[-1])
            if not self._closed:
                self._reached.append(onwards)
        return self._reached[min(first, len(self._reached)) - 1]

    def _known(self, steps: int) -> int:
        """For how many steps, at most so many, there are bounds on laws; 0 for none."""
        return 0 if self._laws is None or steps < 1 else self._laws.known(steps)

    def _least(self, b: Matrix, before: Mask, known: int) -> Matrix:
        """Return the least of both bounds, where the record before is at least so many steps from the first."""
        self._nearest = None
        if self._laws is None or known < 1:
            return self._prior(b, before)
        ratios, b = self._laws.after(known, before), np.broadcast_to(b, self._steps.matrices.shape)
        later = self._steps.moved_on(ratios(b))
        # where the contraction was larger after fewer steps it is not asked again for bounds that are no larger
        largest = self._steps.moved_on(np.max(b, axis=(-2, -1), where=np.isfinite(b), initial=0.0))
        asked = largest > self._decided if known >= self._since else np.ones(self.phases, dtype=np.bool_)
        message = self._prior(b, before, asked) if np.any(asked) else np.full(later.shape, np.inf)
        alone = asked[..., None, None]
        nearer = ~alone | (later < message) & np.isfinite(message)
        beaten = np.all(nearer | ~np.isfinite(message) | np.eye(b.shape[-1], dtype=np.bool_), axis=(-2, -1))
        self._decided = np.where(asked & beaten, largest, self._decided if known >= self._since else -np.inf)
        self._since = known
        self._nearest = nearer & np.isfinite(later), ratios
        return np.where(nearer, later, message)

    def _solve(self, residual: Matrix) -> Matrix:
        """Take one step of Newton's method with the derivative of whichever bound is the least, pair by pair."""
        slopes = None if self._nearest is None else self._nearest[1].slopes()
        if self._nearest is None or slopes is None:
            return self._prior.solve(residual)
        k = residual.shape[-1]
        (ends, shares), (slope, places) = (self._steps.moved_on(part).copy() for part in slopes), self._prior.slopes
        by_prior = ~self._nearest[0].reshape(*self.phases, k * k)
        ends[by_prior], shares[by_prior] = 0, 0.0
        ends[..., 0][by_prior] = places.reshape(by_prior.shape)[by_prior]
        shares[..., 0][by_prior] = slope.reshape(by_prior.shape)[by_prior]
        return self._steps.solve_past(residual, ends, shares)


def _laws_after(steps: Steps, lower: Matrix | None) -> "_LawsOfSteps | Marginals | None":
    """Return what is known of the law of a record some steps after the first one; it holds later on too."""
    k, phases = steps.k, max((1, *steps.phases))
    if lower is None and fits(phases, k):
        return _LawsOfSteps(steps)
    return None if steps.phases else Marginals(steps.matrices if lower is None else lower, steps.matrices)


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
        self._ratios = steps.ratios(-1)
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
        return Homogeneous.of(kernel, self._steps.ratios(-1))


def _for_small_losses(kernel: Kernel, loss: Matrix) -> Matrix:
    """Return about where the bounds of a side settle: what small losses of equal size add up to, if they are that.

    A record that moves from x to x' moves the expected time spent in z by Z(x,z) − Z(x',z), Z = Σ_i Kⁱ. Values without
    a loss between them are one z. Nothing is claimed of it.
    """
    k = len(loss)
    matrix = np.where(kernel.rows[:, None], (kernel.upper + kernel.lower) / 2, 0.0)
    try:
        visits = np.linalg.inv(np.eye(k) - (1 - _DISCOUNT) * matrix)
    except np.linalg.LinAlgError:
        return loss
    most = float(np.max(loss, where=np.isfinite(loss), initial=0.0))
    spent = visits @ np.eye(k)[(loss <= _NO_LOSS * most).argmax(axis=1)]
    apart = np.array([np.abs(row - spent).sum(axis=1) for row in spent]) / 2
    if not np.all(np.isfinite(apart)):
        return loss
    with np.errstate(over="ignore"):
        return np.minimum(most * apart, loss + without_flows(kernel))


def future_of(steps: Steps, possible: Mask) -> Side:
    """Return the future of a chain's records: the kernel is P, on the states that can occur."""
    logs = log_of(steps.matrices, steps.matrices > 0)
    return Homogeneous.of(Kernel.of_logs(logs, possible, UNIT * (steps.k + 2)), steps.ratios(1))


def past_of(steps: Steps, initial: Vector | str) -> Side:
    """Return the past of a chain's records, for a given law of the first one, the "stationary" one, or "any"."""
    if not isinstance(initial, str):
        return _GivenPast(steps, initial)
    if initial == "any":
        return AnyPast(steps)
    law, positive, error = steps.law()
    side = Homogeneous.of(_reversed(steps, (law, positive, error), 0.0), steps.ratios(-1))
    side._law = log_of(law, positive), positive, error
    return side


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


def _most_steps(phases: tuple[int, ...], times: int = 1) -> int:
    """How many places are visited one by one at most: a place of a cycle takes as long as all its phases."""
    return int(np.clip(times * _MOST_PLACES // max((1, *phases)), 16, Side.most_steps))


def sides_between(lower: Matrix, upper: Matrix) -> tuple[Side, Side]:
    """Return the future and the past of records where every matrix lies between two bounds."""
    ratios = IntervalRatios(lower, upper)
    future = Homogeneous(np.ones(len(lower), dtype=np.bool_), ratios, ratios.solve)
    future.most_steps = _MOST_STEPS
    return future, AnyPast(Steps(upper), lower)


# -- The laws that the steps of a chain lead to, from any law of the first record ------------------------------------


class _LawsOfSteps:
    """Every mixture of the rows of Pⁿ."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._power = steps.moved_on(steps.matrices)  # by the phase that it leads to
        self._support, self._n = self._power > 0, 1
        self._kept: list[tuple[int, Matrix]] = [(0, self._power)]
        self._ended, self._work = False, 0
        self._last: AfterStart | None = None
        self._ratios: BoundedCache[AfterStart] = BoundedCache(max(4, _MOST_FIXED // max((1, *steps.phases))))
        self._keep()

    def known(self, steps: int) -> int:
        """Return the largest n, at most ``steps`` ≥ 1, for which laws are known; 0 for none."""
        while not self._ended and self._kept[-1][0] < min(steps, _FARTHEST):
            self._advance(self._kept[-1][0] + 1 + self._kept[-1][0] // 16)
        return next(n for n, _ in reversed(self._kept) if n <= steps)

    def after(self, known: int, states: Mask) -> AfterStart:
        """Return bounds for a record that so many steps lead to, which can have some states."""
        power = next(power for n, power in self._kept if n == known)

        def made() -> AfterStart:
            self._last = AfterStart(power, self._steps.matrices, known, states, self._loops, self._last)
            return self._last

        return self._ratios.of((known, states.tobytes()), made)

    def _loops(self, work: int) -> Any:
        self._work += work
        _LOOPS.count(work)
        return _LOOPS.at(self._work)

    def _advance(self, steps: int) -> None:
        while self._n < steps:
            self._power = self._steps.moved_on(self._power @ self._steps.matrices)
            self._support = self._steps.moved_on(bool_matmul(self._support, self._steps.matrices > 0))
            self._n += 1
        self._keep()

    def _keep(self) -> None:
        """Keep the power, unless it has numbers that are too small or is that of more steps already."""
        least, most = np.min(self._power, axis=-2), np.max(self._power, axis=-2)
        self._ended = bool(np.any(self._power[self._support] < LEAST))
        if not self._ended:
            self._kept.append((self._n, self._power))
            self._ended = bool(np.all(most - least <= _ALIKE * least))


_LOOPS = Loops(search_each, after=20_000)
