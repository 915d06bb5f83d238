"""Sweeps: what one side of a chain tells about every record, from its end inwards.

On a run of records with the same loss a sweep stops as soon as it moves no more and is below a certified fixed point
(:mod:`pufferfish._core.propagation.steps`), which then covers the rest of the run.

Of a profile that repeats, such as one hour of each day for a year, one cycle stands for all but the first and the last:
its sweeps begin with a bound that they do not end above, so by induction every later cycle begins below it too. Only
chains that are too long to be followed record by record are folded.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from pufferfish._core import Mask, Matrix
from pufferfish._core.numbers.rounding import UNIT, up
from pufferfish._core.phi.phi import close
from pufferfish._core.propagation.past_and_future import Homogeneous, Side
from pufferfish._core.propagation.steps import Settled

# -- Profiles that repeat: equal stretches that come again and again are one cycle -----------------------------------

# Repetitions of fewer cycles are left as they are: a bound for any number of cycles may be far above theirs.
_FEWEST = 5
_LONGEST = 64  # stretches of the longest cycle that is looked for


@dataclass(frozen=True, slots=True)
class Repeated:
    """A cycle among the stretches of a folded profile, from ``first`` to before ``stop``, that stands for so many."""

    first: int
    stop: int
    times: int


@dataclass(frozen=True, slots=True)
class Fold:
    """A folded profile: which of its stretches are left, in order, and the cycles among them."""

    kept: tuple[int, ...]
    repeated: tuple[Repeated, ...]

    def place(self, place: int, steps: Sequence[int]) -> int:
        """Return a record that one of the folded profile stands for, 1-based; ``steps`` are those of its stretches."""
        more = 0
        for cycle in self.repeated:
            before, length = sum(steps[: cycle.first]), sum(steps[cycle.first : cycle.stop])
            if place > before + length:
                more += (cycle.times - 1) * length
            elif place > before:
                more += (cycle.times - 1) // 2 * length
        return place + more


def folded(stretches: Sequence[Hashable]) -> Fold:
    """Fold a profile, given what tells its stretches apart.

    Examples
    --------
    >>> folded([7, *"ab" * 365, "c"])
    Fold(kept=(0, 1, 2, 3, 4, 729, 730, 731), repeated=(Repeated(first=3, stop=5, times=363),))
    """
    names: dict[Hashable, int] = {}
    ids = [names.setdefault(stretch, len(names)) for stretch in stretches]
    kept, repeated, place = list[int](), list[Repeated](), 0
    while place < len(ids):
        period, times = _most(ids, place)
        if times < _FEWEST:
            kept.append(place)
            place += 1
            continue
        end = place + period * times
        kept += range(place, place + 2 * period)
        repeated.append(Repeated(len(kept) - period, len(kept), times - 2))
        kept += range(end - period, end)
        place = end
    return Fold(tuple(kept), tuple(repeated))


def _most(ids: Sequence[int], place: int) -> tuple[int, int]:
    """Return the cycle that begins here and covers most, and how often it comes."""
    best = 1, 1
    for period in range(1, min(_LONGEST, (len(ids) - place) // _FEWEST) + 1):
        matching = place
        while matching + period < len(ids) and ids[matching] == ids[matching + period]:
            matching += 1
        times = (matching - place) // period + 1
        if times >= _FEWEST and period * times > best[0] * best[1]:
            best = period, times
    return best


# A bound for losses that are larger by this share is above any that another run may have settled at.
_ROOMIER = 1e-5
_CONVERGED = 1e-7  # a sweep moves no more once a step changes it by at most this share of the largest loss
_HARDLY_MOVES = 1e-3  # the same for a sweep that proves nothing
# A sweep also ends where the certified fixed point, which covers all that follows, is above it by this share.
_NEAR = 1e-4
# How much farther than the last time a sweep has come when it is compared with the fixed point again.
_LOOKS = 1.25
_FIRST_LOOK = 64
# A fixed bound is lifted by this share at once; by more where a sweep has visited all it visits one by one.
_LIFTED = 1e-6
_CHEAP = 1e7  # places times the fourth power of the states: what a sweep visits in about a second
_MOST_CYCLES = 512  # how often a cycle is gone through to find a bound that it does not end above
# Places of a cycle, times the fourth power of the states, that are gone through besides where that is quick.
_CYCLE_WORK = 2e6
_STILL = 1e-5  # such a bound is tried once a cycle ends above what entered by at most this share
_FASTEST = 0.98  # the largest share of what the last cycle added that the next one is taken to add


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Consecutive records with the same loss."""

    steps: int  # how many
    loss: Matrix  # record-level loss d of each; (k, k), zero diagonal
    # loss between two values of a record that have the same state, where a chain knows more of it than its state
    within: float = 0.0

    def divided(self, divisor: float) -> Self:
        """Return the run with its loss divided, rounded up."""
        with np.errstate(over="ignore"):  # beyond the largest number it is infinite, which is more
            quotient, within = self.loss / divisor, np.float64(self.within) / divisor
        loss = np.where(self.loss > 0, np.nextafter(quotient, np.inf), 0.0)
        return replace(self, loss=loss, within=math.nextafter(float(within), math.inf) if self.within else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Places of a sweep, first to last, that share a bound on what arrives there; and states that hold all theirs."""

    first: int
    last: int
    message: Matrix
    states: Mask | None = None


def from_the_end(segments: Sequence[Segment], length: int) -> list[Segment]:
    """Return segments of a sweep from the last record backwards by the places of the chain."""
    return [Segment(length + 1 - s.last, length + 1 - s.first, s.message) for s in reversed(segments)]


def sweep(side: Side, runs: Sequence[Run], *, proven: bool = True) -> list[Segment]:
    """Run from a side's end of the chain inwards; unless ``proven``, a run ends as soon as the sweep hardly moves."""
    sweeper = _Sweep(side, runs, proven=proven)
    for run in runs:
        sweeper.follow(run)
    return sweeper.segments


def sweep_folded(side: Side, runs: Sequence[Run], repeated: Sequence[Repeated]) -> list[Segment] | None:
    """Do the same with cycles that stand for several; None where one of them could not be certified."""
    sweeper, start = _Sweep(side, runs), 0
    for cycle in repeated:
        for run in runs[start : cycle.first]:
            sweeper.follow(run)
        if not sweeper.repeat(runs[cycle.first : cycle.stop]):
            return None
        start = cycle.stop
    for run in runs[start:]:
        sweeper.follow(run)
    return sweeper.segments


class _Sweep:
    """A sweep on its way: how far it has come, and with what bound ``a``."""

    def __init__(self, side: Side, runs: Sequence[Run], *, proven: bool = True) -> None:
        self.side, self.proven = side, proven
        self.room = max(float(run.loss.max()) for run in runs)
        self.heaviest = close(np.max([run.loss for run in runs], axis=0))
        self.visits = exact_steps(side, runs)
        self.place = 0
        self.a: Matrix | None = None
        self.segments: list[Segment] = []

    def follow(self, run: Run) -> None:
        """Go through a run of records with the same loss."""
        side, k = self.side, run.loss.shape[0]
        left, still, look = run.steps, False, _FIRST_LOOK
        enough = (_CONVERGED if self.proven else _HARDLY_MOVES) * self.room
        while left:
            spent = self.visits <= 0
            looks = self.a is not None and run.steps - left >= look
            if still or spent or looks:
                look = max(look, int(_LOOKS * (run.steps - left)))
                settled = _covering(side, self.place, self.a, run, self.heaviest if spent else None, self.room)
                if still and settled is not None and self.a is not None:
                    settled = min(settled, _drifting(side, self.place, left, self.a, run.loss) or settled, key=_largest)
                near = settled is not None and (still or spent or _is_near(self.a, settled.bound))
                if settled is not None and near:
                    self.segments.append(Segment(self.place + 1, self.place + left, settled.message))
                    self.place, self.a = self.place + left, settled.bound
                    break
                if spent:
                    self.segments.extend(_adding_up(self.place, left, self.a, run.loss, side.phases))
                    self.place += left
                    self.a = np.nextafter(run.loss + self.segments[-1].message, np.inf)
                    break
            if self.a is None:  # nothing arrives at the first record
                messages = np.zeros((1, *side.phases, k, k))
                before, arrived = None, _arrived(run.loss, messages[0])
            else:
                most = max(1, min(left, self.visits, look - (run.steps - left)))
                messages = side.walk(self.place, self.a, run.loss, most, enough)
                before, arrived = (self.a, *(_arrived(run.loss, message) for message in messages[-2:]))[-2:]
            self.segments.extend(
                Segment(self.place + i, self.place + i, message) for i, message in enumerate(messages, 1)
            )
            n = len(messages)
            self.place, self.visits, left = self.place + n, self.visits - n, left - n
            still = left < run.steps - 1 and before is not None and _moves_little(before, arrived, enough)
            self.a = arrived
            if still and left and not self.proven:
                self.segments.append(Segment(self.place + 1, self.place + left, messages[-1]))
                self.place, left = self.place + left, 0

    def repeat(self, cycle: Sequence[Run]) -> bool:
        """Go through a cycle of runs that comes several times, and return whether the bounds hold each time.

        What enters is raised to a bound A with which the cycle ends at most at A: then by induction what one cycle told
        from A on covers all of them, and what follows goes on from A.
        """
        side = self.side.from_here(self.place)
        if side is None or self.a is None:
            return False
        if side.quick:
            steps, k = sum(run.steps for run in cycle), len(self.a)
            self.visits += int(min(_MOST_CYCLES * steps, _CYCLE_WORK / k**4))
        least = _CONVERGED * self.room
        enters, slack, before = self.a, least, np.inf
        for _ in range(_MOST_CYCLES):
            raised = np.where(enters > 0, np.nextafter(enters + slack, np.inf), 0.0)
            within = copy(self)
            within.side, within.a = side, raised
            within.segments = []
            for run in cycle:
                within.follow(run)
            self.visits = within.visits
            if self.visits <= 0:
                return False
            if np.all(within.a <= raised):
                self.side, self.place, self.a = side, within.place, raised
                self.segments.extend(within.segments)
                return True
            defined = np.isfinite(raised)
            if not np.array_equal(defined, np.isfinite(within.a)):
                return False
            grown = float(np.max(within.a[defined] - raised[defined]))
            # bounds that close in on a limit, each time by the same share, are raised beyond it
            share = min(grown / before, _FASTEST) if grown <= _STILL * float(raised[defined].max()) else 0.0
            slack = least + 2 * grown * share / (1 - share)
            enters, before = np.maximum(enters, within.a), grown
        return False


def _covering(
    side: Side, place: int, a: Matrix | None, run: Run, heaviest: Matrix | None, room: float
) -> Settled | None:
    """Return a bound for all later places that ``a`` is below; with ``heaviest`` losses wider ones are tried too."""
    entering = side.secrets(max(place, 1), max(place, 1))

    def covers(candidate: Settled | None) -> bool:
        return candidate is not None and (a is None or bool(np.all(a[entering] <= candidate.bound[entering])))

    settled = side.settled(place, run.loss, room)
    if covers(settled):
        return settled
    lifted = _lifted_above(side, settled, a, entering)
    if lifted is not None and settled is not None:
        if heaviest is not None or _largest(lifted) <= _largest(settled) * (1 + _LIFTED):
            return lifted
    if heaviest is None:
        return None
    # above what an earlier run may have settled at, its slack included; where there is none larger losses are no help
    roomier = heaviest * (1 + _ROOMIER) if place else heaviest
    wider = (
        lambda: side.at_worst(run.loss, room),
        lambda: side.settled(place, heaviest, room),
        lambda: side.settled(place, roomier, room),
        lambda: side.at_worst(heaviest, room),
        lambda: side.at_worst(roomier, room),
    )
    return next((bound for bound in (find() for find in wider) if covers(bound)), None)


def _lifted_above(side: Side, settled: Settled | None, a: Matrix | None, entering: Mask) -> Settled | None:
    """Return a fixed bound lifted above what a sweep has come to, where sweeps come from above or places take long.

    Φ(A + μ) ≤ Φ(A) + μ for a closed A, so what holds of A holds of A + μ.
    """
    if settled is None or a is None or not (side.phases or side.falls):
        return None
    among = np.where(entering | np.eye(entering.shape[-1], dtype=np.bool_), settled.bound, np.inf)
    if side.falls and not np.all(among <= close(among)):
        return None
    with np.errstate(invalid="ignore"):
        by = float(np.max(a[entering] - settled.bound[entering], initial=0.0))
    if not by < np.inf:
        return None
    return Settled(plus(settled.bound, up(by)), plus(settled.message, up(by)))


def _drifting(side: Side, place: int, steps: int, a: Matrix, loss: Matrix) -> Settled | None:
    """Return a bound that covers so many places after this one: what a step adds now, no later one exceeds.

    As Φ(A + μ) ≤ Φ(A) + μ for a closed A, n steps add at most nμ (docs/proofs/propagation.md). The fixed point may be
    far above in a chain that hardly moves.
    """
    later_side = side.from_here(place)
    if not isinstance(later_side, Homogeneous) or side.phases:
        return None
    a, off_diagonal = close(a), ~np.eye(len(a), dtype=np.bool_)
    message = later_side.phi(a)
    defined = np.isfinite(message) & off_diagonal
    if not np.array_equal(np.isfinite(a) & off_diagonal, defined):
        return None
    added = up(float(np.max(np.nextafter(loss + message, np.inf)[defined] - a[defined], initial=0.0)))
    later = up(added * (steps - 1))
    message = np.where(off_diagonal & (message + later > message), np.nextafter(message + later, np.inf), message)
    return Settled(np.where(off_diagonal, np.nextafter(loss + message, np.inf), 0.0), message)


def _largest(settled: Settled) -> float:
    return float(np.max(settled.message, where=np.isfinite(settled.message), initial=0.0))


def exact_steps(side: Side, runs: Sequence[Run]) -> int:
    """How many places a sweep visits one by one: none of a single long run whose middle is far away."""
    work = len(runs[0].loss) ** 4 * max((1, *side.phases))
    most = int(np.clip(5e9 / work, min(64, side.most_steps), side.most_steps))
    longest = 2 * most if most * work <= _CHEAP else most // 2
    if len(runs) == 1 and side.starts_settled and runs[0].steps > longest:
        return 0
    return most


def plus(bounds: Matrix, step: float) -> Matrix:
    """Return bounds with the loss of a step added between any two states, rounded up."""
    if not step:
        return bounds
    off_diagonal = ~np.eye(bounds.shape[-1], dtype=np.bool_)
    return np.where(off_diagonal, np.nextafter(bounds + step, np.inf), 0.0)


def _arrived(loss: Matrix, message: Matrix) -> Matrix:
    """Return the bounds of a place: what its record tells, and what arrives there."""
    return np.where(message == 0, loss, np.nextafter(loss + message, np.inf))


def _moves_little(a: Matrix, b: Matrix, enough: float) -> bool:
    defined = np.isfinite(a)
    alike = a.shape == b.shape and (defined == np.isfinite(b)).all()
    return bool(alike and np.abs(a[defined] - b[defined]).max() <= enough)


def _is_near(a: Matrix | None, bound: Matrix) -> bool:
    """Whether a bound for all later places is hardly above what a sweep has come to."""
    if a is None:
        return False
    defined = np.isfinite(a)
    return bool(np.array_equal(defined, np.isfinite(bound)) and np.all(bound[defined] <= a[defined] * (1 + _NEAR)))


def _adding_up(place: int, steps: int, a: Matrix | None, loss: Matrix, phases: tuple[int, ...]) -> Iterator[Segment]:
    """Yield the bound that needs nothing: Φ(A) ≤ max A, so no step adds more than its own largest loss."""
    enters = 0.0 if a is None else float(np.max(a, where=np.isfinite(a), initial=0.0))
    largest, rounding = float(loss.max()), UNIT * (len(loss) + 4)  # rows sum to 1 up to rounding, at every step
    block, done = 1, 0
    while done < steps:
        block = min(block, steps - done) if largest > 0 else steps
        most = up(enters + (done + block - 1) * largest + (done + block) * rounding)
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
