r"""Leakage propagation: how far record-level loss travels along a Markov chain.

Let the density of a release change by at most a factor e^{d_t(x,x')} when record t goes from x to x'. With Φ from
:mod:`pufferfish.core.phi.phi` and R_i(x,y) = P(X_{i−1}=y | X_i=x),

.. math::
    F_T = 0,\; F_i = \Phi_P(d_{i+1} + F_{i+1}) \qquad
    G_1 = 0,\; G_i = \Phi_{R_i}(d_{i-1} + G_{i-1}) \qquad
    \mathrm{leakage} = \max_i \max_{x \ne x'} d_i + F_i + G_i

over pairs x, x' that X_i can take: what the record itself tells, what its future tells, what its past tells. The proof
is in ``docs/proofs/propagation.md``.

Two sweeps compute F and G from the ends of the chain inwards. On a run of records with the same loss a sweep stops as
soon as it moves no more and is below a certified fixed point (:mod:`pufferfish.core.propagation.fixed_point`), which
then covers the rest of the run: the cost does not depend on T.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.numbers.inversion import bracket
from pufferfish.core.numbers.rounding import UNIT, up
from pufferfish.core.phi.phi import close
from pufferfish.core.propagation.fixed_point import Settled
from pufferfish.core.propagation.past_and_future import AnyPast, Side, future_of, past_of
from pufferfish.core.propagation.past_and_future_interval import PastBetween, sides_between
from pufferfish.core.propagation.steps import Cycle, Same, Steps

__all__ = ["Attained", "ChainPropagation", "Run", "Segment", "from_the_end", "overlaps", "past_of_any", "sweep"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_ROOMIER = 1e-5
"""A bound for losses that are larger by this share is above any that another run may have settled at."""

_CONVERGED = 1e-7
"""A sweep moves no more once a step changes it by at most this share of the largest loss."""

_NEAR = 1e-4
"""A sweep also ends where the certified fixed point, which covers all that follows, is above it by this share."""

_LOOKS = 1.25
"""How much farther than the last time a sweep has come when it is compared with the fixed point again."""

_FIRST_LOOK = 64

_CHEAP = 1e7
"""Places times the fourth power of the states: what a sweep visits in about a second."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Consecutive records with the same loss.

    Parameters
    ----------
    steps : int
        How many.
    loss : (k, k) ndarray
        Record-level loss d of each; zero diagonal.
    """

    steps: int
    loss: Matrix

    def divided(self, divisor: float) -> Self:
        """Return the run with its loss divided, rounded up."""
        with np.errstate(over="ignore"):  # beyond the largest number it is infinite, which is more
            quotient = self.loss / divisor
        return replace(self, loss=np.where(self.loss > 0, np.nextafter(quotient, np.inf), 0.0))


@dataclass(frozen=True, slots=True)
class Attained:
    """Where the leakage is attained, and what it is made of.

    Parameters
    ----------
    total : float
        The leakage in nats, rounded up.
    node : int
        The record, 1-based (the middle one of those alike); 0 where no record has two possible states.
    pair : (int, int)
        The two states.
    own, past, future : float
        What the record itself, its past and its future tell.
    phase : int or None
        The record's phase, in a cycle.
    """

    total: float
    node: int = 0
    pair: tuple[int, int] = (0, 0)
    own: float = 0.0
    past: float = 0.0
    future: float = 0.0
    phase: int | None = None


def past_of_any(steps: Steps) -> Side:
    """Return the past of a chain's records under every initial law."""
    return AnyPast(steps) if steps.phases else PastBetween(steps.matrices, steps.matrices)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Places of a sweep, first to last, that share a bound on what arrives there."""

    first: int
    last: int
    message: Matrix


class ChainPropagation:
    """Leakage of one chain, for any profile of record-level losses.

    Parameters
    ----------
    matrices : (k, k) or (N, k, k) ndarray
        P, rows = from; or P_φ of the step from phase φ of a cycle to the next: the first record may be at any phase.
    initial : (k,) ndarray, "stationary" or "any"
        The initial law, or the class of all of them. In a cycle the stationary one is its periodic law, and a given one
        is that of the first record whatever its phase.
    """

    def __init__(self, matrices: Matrix, initial: Vector | Literal["stationary", "any"]) -> None:
        steps: Steps = Same(matrices) if matrices.ndim == 2 else Cycle(matrices)
        self._states: NDArray[np.intp] = np.arange(steps.k)
        possible = np.ones(matrices.shape[:-1], dtype=np.bool_)
        if isinstance(initial, str):
            if steps.phases and initial == "stationary":
                possible = steps.law()[1]
            every_law = initial == "any"
            self._future: Side = future_of(steps, possible)
            self._past: Side = past_of_any(steps) if every_law else past_of(steps, None)
            return
        possible = steps.reached(np.broadcast_to(initial > 0, possible.shape))
        # a state that no record can have is none
        self._states = np.flatnonzero(possible.reshape(-1, steps.k).any(axis=0))
        steps = steps.restricted(self._states)
        self._future = future_of(steps, possible[..., self._states])
        self._past = past_of(steps, initial[self._states])

    @classmethod
    def between(cls, lower: Matrix, upper: Matrix) -> Self:
        """Return the search under every initial law and every sequence of matrices between two bounds."""
        found = cls.__new__(cls)
        found._states = np.arange(len(lower))
        found._future, found._past = sides_between(lower, upper)
        return found

    @np.errstate(over="ignore")  # beyond the largest number a sum is infinite, which is more
    def leakage(self, runs: Sequence[Run]) -> Attained:
        """Bound the leakage of a profile, its runs from the first record to the last."""
        if self._states.size == 1:
            return Attained(0.0)
        closed = [Run(run.steps, close(run.loss)[np.ix_(self._states, self._states)]) for run in runs]
        length = sum(run.steps for run in closed)
        future = from_the_end(sweep(self._future, closed[::-1]), length)
        return self._worst(future, sweep(self._past, closed), closed)

    def least_divisor(self, runs: Sequence[Run], epsilon: float, start: float, tolerance: float = 1e-6) -> float:
        """Least number by which the losses must be divided to leak at most epsilon, or ``inf``.

        Within the tolerance, on the private side. ``start`` is a guess.
        """

        def leakage(divisor: float) -> float:
            return self.leakage([run.divided(divisor) for run in runs]).total

        return bracket(leakage, epsilon, start, tolerance=tolerance, from_above=False).enough

    def _worst(self, future: Sequence[Segment], past: Sequence[Segment], runs: Sequence[Run]) -> Attained:
        worst = Attained(0.0)
        for first, last, after, before, own in overlaps(future, past, runs):
            secrets = self._past.secrets(first, last)
            if not secrets.any():
                continue
            total = np.where(secrets, own + before + after, -np.inf)
            total[np.isnan(total)] = np.inf  # no number is no proof
            at = np.unravel_index(int(np.argmax(total)), total.shape)
            if worst.node == 0 or total[at] > worst.total:
                *phase, x, x_ = (int(v) for v in at)
                parts = (float(np.broadcast_to(part, total.shape)[at]) for part in (own, before, after))
                pair = int(self._states[x]), int(self._states[x_])
                most = up(float(total[at]))
                worst = Attained(most, (first + last) // 2, pair, *parts, phase=phase[0] if phase else None)
        return worst


def from_the_end(segments: Sequence[Segment], length: int) -> list[Segment]:
    """Return segments of a sweep from the last record backwards by the places of the chain."""
    return [Segment(length + 1 - s.last, length + 1 - s.first, s.message) for s in reversed(segments)]


def sweep(side: Side, runs: Sequence[Run]) -> list[Segment]:
    """Run from a side's end of the chain inwards; the segments cover all places, in order."""
    segments: list[Segment] = []
    k = runs[0].loss.shape[0]
    room = max(float(run.loss.max()) for run in runs)
    heaviest = close(np.max([run.loss for run in runs], axis=0))
    exact = _exact_steps(side, runs, k)
    place, a = 0, None
    for run in runs:
        left, still, look = run.steps, False, _FIRST_LOOK
        while left:
            spent = place >= exact
            looks = a is not None and run.steps - left >= look
            if still or spent or looks:
                look = max(look, int(_LOOKS * (run.steps - left)))
                found = _covering(side, place, a, run, heaviest if spent else None, room)
                if still and found is not None and a is not None:
                    found = min(found, _drifting(side, place, left, a, run.loss) or found, key=_largest)
                near = found is not None and (still or spent or _is_near(a, found.bound))
                if found is not None and near:
                    segments.append(Segment(place + 1, place + left, found.message))
                    place, a = place + left, found.bound
                    break
                if spent:
                    segments.extend(_adding_up(place, left, a, run.loss, side.phases))
                    place, a = place + left, np.nextafter(run.loss + segments[-1].message, np.inf)
                    break
            message = np.zeros((*side.phases, k, k)) if a is None else side.message(place + 1, a)
            place, left = place + 1, left - 1
            segments.append(Segment(place, place, message))
            arrived = np.where(message == 0, run.loss, np.nextafter(run.loss + message, np.inf))
            still = left < run.steps - 1 and a is not None and _moves_little(a, arrived, _CONVERGED * room)
            a = arrived
    return segments


def _covering(
    side: Side, place: int, a: Matrix | None, run: Run, heaviest: Matrix | None, room: float
) -> Settled | None:
    """Return a bound that covers all places after this one, if there is one that ``a`` is below.

    With ``heaviest``, the largest losses of all runs, bounds that cover more than they need to are tried too.
    """
    entering = side.secrets(max(place, 1), max(place, 1))

    def covers(found: Settled | None) -> bool:
        return found is not None and (a is None or bool(np.all(a[entering] <= found.bound[entering])))

    found = side.settled(place, run.loss, room)
    if heaviest is None or covers(found):
        return found if covers(found) else None
    if side.phases and found is not None and a is not None:
        return _lifted(found, float(np.max(a[entering] - found.bound[entering])))
    roomier = heaviest * (1 + _ROOMIER)  # above what an earlier run may have settled at, its slack included
    wider = (
        lambda: side.at_worst(run.loss, room),
        lambda: side.settled(place, heaviest, room),
        lambda: side.settled(place, roomier, room),
        lambda: side.at_worst(heaviest, room),
        lambda: side.at_worst(roomier, room),
    )
    return next((bound for bound in (find() for find in wider) if covers(bound)), None)


def _lifted(found: Settled, by: float) -> Settled:
    """Return a fixed bound that many nats above one: Φ(A + μ) ≤ Φ(A) + μ, so what holds of A holds of A + μ."""
    lift, other = up(by), ~np.eye(found.bound.shape[-1], dtype=np.bool_)
    bound, message = (np.where(other, np.nextafter(part + lift, np.inf), 0.0) for part in (found.bound, found.message))
    return Settled(bound, message)


def _drifting(side: Side, place: int, steps: int, a: Matrix, loss: Matrix) -> Settled | None:
    """Return a bound that covers so many places after this one: what a step adds now, no later one exceeds.

    Let one Φ serve all these places, and d + Φ(A) ≤ A + μ off the diagonal, A closed. As Φ(A + μ) ≤ Φ(A) + μ, n steps
    add at most nμ (proof: docs/proofs/propagation.md). The fixed point may be far above in a chain that hardly moves.
    """
    phi = side.onwards(place)
    if phi is None:
        return None
    a, other = close(a), ~np.eye(len(a), dtype=np.bool_)
    message = phi(a)
    defined = np.isfinite(message) & other
    if not np.array_equal(np.isfinite(a) & other, defined):
        return None
    added = up(float(np.max(np.nextafter(loss + message, np.inf)[defined] - a[defined], initial=0.0)))
    later = up(added * (steps - 1))
    message = np.where(other & (message + later > message), np.nextafter(message + later, np.inf), message)
    return Settled(np.where(other, np.nextafter(loss + message, np.inf), 0.0), message)


def _largest(found: Settled) -> float:
    return float(np.max(found.message, where=np.isfinite(found.message), initial=0.0))


def _exact_steps(side: Side, runs: Sequence[Run], k: int) -> int:
    """How many places a sweep visits one by one; a single long run of a settled side needs none.

    Its middle is then farther from both ends than a sweep would come, or steps take too long.
    """
    work = k**4 * max((1, *side.phases))
    most = int(np.clip(5e9 / work, min(64, side.most_steps), side.most_steps))
    longest = 2 * most if most * work <= _CHEAP else most // 2
    if len(runs) == 1 and side.starts_settled and runs[0].steps > longest:
        return 0
    return most


def _moves_little(a: Matrix, b: Matrix, enough: float) -> bool:
    defined = np.isfinite(a)
    return bool(np.array_equal(defined, np.isfinite(b)) and np.max(np.abs(a[defined] - b[defined])) <= enough)


def _is_near(a: Matrix | None, bound: Matrix) -> bool:
    """Whether a bound for all later places is hardly above what a sweep has come to."""
    if a is None:
        return False
    defined = np.isfinite(a)
    return bool(np.array_equal(defined, np.isfinite(bound)) and np.all(bound[defined] <= a[defined] * (1 + _NEAR)))


def _adding_up(place: int, steps: int, a: Matrix | None, loss: Matrix, phases: tuple[int, ...]) -> Iterator[Segment]:
    """Yield the bound that needs nothing: Φ(A) ≤ max A, so no step adds more than its own largest loss."""
    enters = 0.0 if a is None else float(np.max(a, where=np.isfinite(a), initial=0.0))
    each, rounding = float(loss.max()), UNIT * (len(loss) + 4)  # rows sum to 1 up to rounding, at every step
    block, done = 1, 0
    while done < steps:
        block = min(block, steps - done) if each > 0 else steps
        most = up(enters + (done + block - 1) * each + (done + block) * rounding)
        message = np.broadcast_to(np.where(np.eye(len(loss), dtype=np.bool_), 0.0, most), (*phases, *loss.shape))
        yield Segment(place + done + 1, place + done + block, message)
        done, block = done + block, 2 * block


def overlaps(
    future: Sequence[Segment], past: Sequence[Segment], runs: Sequence[Run]
) -> Iterator[tuple[int, int, Matrix, Matrix, Matrix]]:
    """Yield maximal stretches of records that share all three, in order: first, last, future, past, own loss."""
    first, f, g, r, run_end = 1, 0, 0, 0, runs[0].steps
    length = future[-1].last
    while first <= length:
        last = min(future[f].last, past[g].last, run_end)
        yield first, last, future[f].message, past[g].message, runs[r].loss
        f += future[f].last == last
        g += past[g].last == last
        if run_end == last and last < length:
            r += 1
            run_end += runs[r].steps
        first = last + 1
