r"""Stretches: what is told of many records in a row, from what propagation says of the first and of the last one.

With F and G of :mod:`pufferfish._core.propagation.chain`, and δ the loss of a step, events about the values of the
records i … j leak at most

.. math::
    \max_{x \ne x'} \; G_i[x_i, x'_i] + \sum_{t=i}^{j} d_t(x_t, x'_t)
    + \delta \, |\{t < j : (x_t, x_{t+1}) \ne (x'_t, x'_{t+1})\}| + F_j[x_j, x'_j]

over paths x, x' that can occur (docs/proofs/stretches.md). For one place the maximum is found record by record, in
whole multiples of a small power of two, so that it is seen exactly when sums grow by the same number again and again;
for every place by bounds on groups of them, of which those with the largest are divided.
"""

import heapq
import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from pufferfish._core import Indices, Mask, Matrix, Whole
from pufferfish._core.numbers.rounding import float_up
from pufferfish._core.propagation.sweep import Repeated, Run, Segment

_BITS = 60  # losses are whole multiples of their sum over two to so many: sums of them fit 64 bits
SAME = 2.0**-36  # sums that differ by less than this share are one sum that was rounded in different ways
# Stands for a pair of states that no two paths lead to; with any sum of losses it is still negative.
_NEVER = -(2**62)
# Places are not told apart any more once their bound is above what one of them attains by this share.
_NEAR_ENOUGH = 1e-7
_MOST_BOUNDS = 2000  # how many bounds on places in a row are computed at most; then the largest of them is taken


@dataclass(frozen=True, slots=True)
class PathPair:
    """The two paths of a stretch that are told apart best, as far as its ends go."""

    total: float  # the leakage in nats, rounded up
    first: tuple[int, int]  # the two states of the first record
    last: tuple[int, int]  # and of the last one
    past: float  # what the records before the stretch tell
    future: float  # and those after it
    phase: int | None = None  # of the first record, in a cycle

    @property
    def own(self) -> float:
        """What the records and steps of the stretch tell themselves."""
        return max(self.total - self.past - self.future, 0.0) if self.total < math.inf else math.inf


# -- One place: pairs of paths ----------------------------------------------------------------------------------------


class _Moves:
    """The steps that are possible, for largest sums over paths; stacks of matrices, one for each phase.

    ``possible``, (N, k, k), is by the phase of the record that a step begins at; where N is 1 stacks are of any size.
    ``step`` is the loss of a step on which two paths differ, ``near`` the pairs of states that they may be at, None for
    all. ``backwards`` paths are followed from their ends.
    """

    def __init__(self, possible: Mask, step: int, near: Mask | None, *, backwards: bool) -> None:
        phases, k = possible.shape[:2]
        # leads[φ, y, x]: whether what is at x, one place before, comes to y, a record of phase φ
        self._leads: Mask = possible if backwards else np.roll(possible, 1, axis=0).swapaxes(1, 2)
        self._shift, self._step, self.period = (-1 if backwards else 1), step, phases
        self._all = bool(self._leads.all())
        phase, arrives, leaves = np.nonzero(self._leads)
        moving, staying = (((phase - shift) % phases) * k + leaves for shift in (self._shift, 0))
        counts = np.bincount(phase * k + arrives, minlength=phases * k)
        nowhere = np.flatnonzero(counts == 0)  # takes the additional row, where nothing is
        at = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self._moving, self._staying = (np.insert(sources, at[nowhere], phases * k) for sources in (moving, staying))
        self._starts = at + np.concatenate([[0], np.cumsum(counts == 0)[:-1]])
        self._diagonal = np.eye(k, dtype=np.bool_)
        self._apart: Mask = ~self._diagonal if near is None else ~self._diagonal & near
        self._near = near
        self._splits: tuple[bytes, Whole] | None = None

    def _moved(self, values: Any) -> Any:
        return values if self.period == 1 else np.roll(values, self._shift, axis=0)

    def _first_after(self, values: Whole) -> Whole:
        """Return for each state of the first path the largest values of those that lead to it, at the next phase."""
        if self._all:
            return np.broadcast_to(self._moved(values.max(axis=1, keepdims=True)), values.shape)
        return self._best(values, self._moving)

    def _second_after(self, values: Whole) -> Whole:
        """Return the same for the second path, once the first one has moved on to the next phase."""
        if self._all:
            return np.broadcast_to(values.max(axis=2, keepdims=True), values.shape)
        return self._best(values.swapaxes(1, 2), self._staying).swapaxes(1, 2)

    def _best(self, values: Whole, sources: Indices) -> Whole:
        n, k = len(values) // self.period, values.shape[-1]
        stacked = values.reshape(n, -1, k).swapaxes(0, 1).reshape(-1, n * k)  # every phase has a row for each state
        rows = np.concatenate([stacked, np.full((1, n * k), _NEVER)])
        best = np.maximum.reduceat(rows[sources], self._starts, axis=0)
        return best.reshape(-1, n, k).swapaxes(0, 1).reshape(values.shape)

    def states_after(self, states: Mask) -> Mask:
        """Return which states, by phase, follow some states."""
        return np.any(self._leads & self._moved(states)[:, None, :], axis=2)

    def pairs_after(self, apart: Whole, together: Mask) -> tuple[Whole, bool]:
        """Return the largest sums one step later, without the loss of the record there.

        From those of paths that are ``apart``, and where equal ones are ``together``. And whether no paths that part
        only now have a larger sum.
        """
        later = self._second_after(self._first_after(apart)) + self._step
        if self._step:
            # no step differs where both paths are at one state, and go on to one state
            free = np.where(self._diagonal, apart - self._step, apart)
            by_first = self._first_after(free)
            joined = np.where(self._leads, by_first, _NEVER).max(axis=2) + self._step
            later = np.where(self._diagonal, joined[:, :, None], later)
        if self._near is not None:
            later = np.where(self._near, later, _NEVER)
        parting = self._parting(together)
        before = bool(np.all(parting <= np.where(later < 0, _NEVER, later)))
        return np.maximum(later, parting), before

    def _parting(self, together: Mask) -> Whole:
        """Return the sums of paths that were equal up to here, and go to different states."""
        key = together.tobytes()
        if self._splits is None or self._splits[0] != key:
            leads = (self._leads & self._moved(together)[:, None, :]).astype(np.float64)
            both = (leads @ leads.swapaxes(1, 2) > 0) & self._apart
            self._splits = key, np.where(both, np.int64(self._step), np.int64(_NEVER))
        return self._splits[1]


@dataclass(slots=True)
class _Paths:
    """All pairs of paths on their way: those that differ by their largest sums, and where equal ones are."""

    moves: _Moves
    apart: Whole
    together: Mask

    def follow(self, steps: int, loss: Whole) -> None:
        """Go on through a run of records with the same loss.

        Once the largest sums are those of an earlier record and one number more, by phase, they go on like this:
        exactly, where no paths that part later would have had a larger sum, or the number is 0. Distances grow twofold,
        so any cycle is found.
        """
        period, left = self.moves.period, steps
        earlier, together, since, patience, parted_before = self.apart, self.together, 0, period, True
        while left:
            before = self._go(loss)
            left, since, parted_before = left - 1, since + 1, parted_before and before
            if since % period == 0 and left > since and np.array_equal(together, self.together):
                grown = self._grown_since(earlier)
                if grown is not None and (parted_before or not grown.any()):
                    times = left // since
                    self.apart = np.where(self.apart >= 0, self.apart + times * grown[:, None, None], _NEVER)
                    for _ in range(left % since):
                        self._go(loss)
                    return
            if since >= patience:
                earlier, together, since, patience, parted_before = self.apart, self.together, 0, 2 * patience, True

    def _go(self, loss: Whole) -> bool:
        later, parted_before = self.moves.pairs_after(self.apart, self.together)
        later = later + loss
        self.apart, self.together = np.where(later >= 0, later, _NEVER), self.moves.states_after(self.together)
        return parted_before

    def _grown_since(self, earlier: Whole) -> Whole | None:
        """Return by how much all sums have grown, for each phase, if that is one number."""
        occurs = self.apart >= 0
        if not np.array_equal(occurs, earlier >= 0):
            return None
        grown = np.where(occurs, self.apart - earlier, 0).max(axis=(1, 2))
        return grown if np.all(self.apart - earlier == np.where(occurs, grown[:, None, None], 0)) else None


def worst_paths(
    past: Matrix,
    own: Sequence[Run],
    future: Matrix,
    states: Mask,
    transitions: Mask,
    *,
    step: float = 0.0,
    near: Mask | None = None,
    witness: bool = True,
) -> PathPair | None:
    """Return the two possible paths of one stretch that are told apart best; None where it has one path only.

    ``past`` is G at the first record of the stretch and ``future`` F at the last one, (..., k, k), by the phase of that
    record; G is −∞ for pairs of states that the record never has at one place. ``own`` are the losses of the records,
    ``states`` (..., k) those that the first one can have, and ``transitions`` (..., k, k) the steps that can occur, by
    the phase of the record that they begin at. ``step`` is the loss of a step inside of the stretch on which the paths
    differ, ``near`` the pairs of states that they may be at. Without a ``witness`` only the bound is right.

    Examples
    --------
    Two records of a chain that repeats itself: only two paths can occur.

    >>> unlike = 1.0 - np.eye(2)
    >>> pair = worst_paths(0.5 * unlike, [Run(2, 0.25 * unlike)], 0 * unlike, np.ones(2, bool), np.eye(2, dtype=bool))
    >>> pair.total, pair.first, pair.last
    (1.0, (0, 1), (0, 1))
    """
    k, records = past.shape[-1], sum(run.steps for run in own)
    past, future = past.reshape(-1, k, k), future.reshape(-1, k, k)
    states, possible = states.reshape(-1, k), transitions.reshape(-1, k, k)
    phases, off_diagonal = len(past), ~np.eye(k, dtype=np.bool_)
    alike = bool(np.all(possible == possible[:1]))
    if alike:  # the same steps at every phase: all stands by the phase of the first record
        possible = possible[:1]
        future = np.roll(future, 1 - records, axis=0) if phases > 1 else future
    begins = states[:, :, None] & states[:, None, :] & (off_diagonal if near is None else off_diagonal & near)
    begins &= past != -math.inf
    if np.any(~(past[begins] < math.inf)):  # also where it is no number
        phase, *pair = (int(v) for v in np.argwhere(begins & ~(past < math.inf))[0])
        both = int(pair[0]), int(pair[1])
        return PathPair(math.inf, both, both, math.inf, 0.0, phase if transitions.ndim > 2 else None)
    known_past, known_future = np.where(begins, past, 0.0), np.where(future < math.inf, future, 0.0)
    with np.errstate(over="ignore"):
        largest = float(known_past.max(initial=0.0)) + float(known_future.max(initial=0.0))
        largest += sum(run.steps * (float(run.loss.max()) + step) for run in own)
    if not largest < 1e300:
        return PathPair(math.inf, (0, 0), (0, 0), math.inf, 0.0)
    exponent = math.frexp(largest)[1] + 1 - _BITS if largest > 0 else 0

    def whole(values: Matrix | float) -> Whole:
        return np.ceil(np.ldexp(values, -exponent)).astype(np.int64)

    unit, losses = Fraction(2) ** exponent, [whole(run.loss) for run in own]
    arrives, leaves, steps = whole(known_past), whole(known_future), int(whole(step))

    # the paths with the largest sum, and where they end
    onwards = _Moves(possible, steps, near, backwards=False)
    paths = _Paths(onwards, np.where(begins, arrives + losses[0], _NEVER), states.copy())
    for n, run in enumerate(own):
        paths.follow(run.steps - (n == 0), losses[n])
    ends = paths.apart >= 0
    if not ends.any():
        return None
    sums = np.where(ends, paths.apart + leaves, _NEVER)
    unbounded = ends & ~(future < math.inf)
    phase, x, x_ = _first_of_largest(unbounded.astype(np.int64) if unbounded.any() else sums)
    total = math.inf if unbounded.any() else float_up(int(sums.max()) * unit)

    if not witness:
        return PathPair(total, (x, x_), (x, x_), 0.0, 0.0)

    # where they began: back from that end
    only = np.zeros((phases, k, k), dtype=np.bool_)
    only[phase, x, x_] = x != x_
    alone = np.zeros((phases, k), dtype=np.bool_)
    alone[phase, x] = x == x_
    back = _Paths(_Moves(possible, steps, near, backwards=True), np.where(only, losses[-1], _NEVER), alone)
    for n, run in enumerate(reversed(own)):
        back.follow(run.steps - (n == 0), losses[-1 - n])
    starts = np.where((back.apart >= 0) & states[:, :, None] & states[:, None, :], back.apart + arrives, _NEVER)
    first = phase if alike else (phase - records + 1) % phases
    y, y_ = _first_of_largest(starts[first])
    told = float(known_past[first, y, y_]), float(future[phase, x, x_])
    return PathPair(total, (y, y_), (x, x_), *told, first if transitions.ndim > 2 else None)


def _first_of_largest(sums: Whole) -> tuple[int, ...]:
    """Return the first place of a largest sum: where several are as large but for rounding, the same one always."""
    most = int(sums.max())
    return tuple(int(v) for v in np.unravel_index(int(np.argmax(sums >= most - int(most * SAME))), sums.shape))


# -- Every place ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StretchLeak:
    """Where a stretch is told apart best: the leakage of every stretch in nats, rounded up, and the worst one.

    ``first`` is its first record, 1-based (the middle one of those alike), or 0 where no stretch has two paths.
    """

    total: float
    first: int = 0
    paths: PathPair | None = None


Evaluate = Callable[[Matrix, Mask, Sequence[Run], Matrix, tuple[int, int] | None, bool], PathPair | None]
"""From G, the states of the first record, the losses of a stretch and F to its worst paths.

Besides: the first and the last place where it may begin, None if not all have the same states; and whether it matters
which paths are the worst.
"""


@dataclass(frozen=True, slots=True)
class _Group:
    """Places that are looked at together: so many in a row, from each of some that are followed by the same losses."""

    starts: tuple[int, ...]
    count: int

    def parts(self) -> "list[_Group]":
        """Return the middle, and what is on either side of it: first of places in a row, then of those to start at."""
        n = self.count if self.count > 1 else len(self.starts)
        cuts = ((0, n // 2), (n // 2, n // 2 + 1), (n // 2 + 1, n))
        if self.count > 1:
            return [_Group(tuple(s + a for s in self.starts), b - a) for a, b in cuts if a < b]
        return [_Group(self.starts[a:b], 1) for a, b in cuts if a < b]


class _Places:
    """Bounds on stretches that begin at any of several places."""

    def __init__(
        self,
        past: Sequence[Segment],
        future: Sequence[Segment],
        runs: Sequence[Run],
        records: int,
        ahead: int,
        evaluate: Evaluate,
    ) -> None:
        self._runs, self._evaluate, self._records, self._ahead = runs, evaluate, records, ahead
        states = [each.states for each in past if each.states is not None]
        self._states = np.array(states)
        occur = self._states[..., :, None] & self._states[..., None, :]
        self._messages: Matrix = np.where(occur, np.array([each.message for each in past]), -np.inf)
        self._ahead_of: Matrix = np.array([each.message for each in future])
        supports: dict[bytes, int] = {}
        self._states_of = np.array([supports.setdefault(each.tobytes(), len(supports)) for each in states])
        self._past_ends = [each.last for each in past]
        self._future_ends = [each.last for each in future]
        self._run_ends = list(accumulate(run.steps for run in runs))
        names: dict[bytes, int] = {}
        self._kinds = [names.setdefault(run.loss.tobytes(), len(names)) for run in runs]
        self._kept: dict[frozenset[int], Matrix] = {}

    def groups(self, places: int) -> list[_Group]:
        """Return all places, those together whose stretches begin and end in runs of the same kinds and lengths."""
        ends, records, first = self._run_ends, self._records, 1
        lengths = [run.steps for run in self._runs]
        starts: dict[tuple[object, ...], list[int]] = {}
        while first <= places:
            low, high = bisect_left(ends, first), bisect_left(ends, first + records - 1)
            last = min(places, ends[low], ends[high] - records + 1)
            covered = slice(low, high + 1)
            key = tuple(self._kinds[covered]), tuple(lengths[covered]), ends[low] - first, last - first
            starts.setdefault(key, []).append(first)
            first = last + 1
        return [_Group(tuple(firsts), int(key[-1]) + 1) for key, firsts in starts.items()]  # type: ignore[call-overload]

    def bound(self, group: _Group, *, witness: bool = False) -> tuple[PathPair | None, bool]:
        """Bound all stretches that begin at some places, and return whether they are all alike: then it is exact."""
        first, last = group.starts[0], group.starts[0] + group.count - 1
        before = self._segments(self._past_ends, group, 0)
        after = self._segments(self._future_ends, group, self._ahead)
        same_states = len(set(self._states_of[before].tolist())) == 1
        states = np.any(self._states[before], axis=0)
        message, future = np.max(self._messages[before], axis=0), np.max(self._ahead_of[after], axis=0)
        places = (first, group.starts[-1] + group.count - 1) if same_states else None
        window = self._window(first, last)
        alike = len(before) == len(after) == 1 and (group.count == 1 or len(window) == 1)
        return self._evaluate(message, states, window, future, places, witness), alike

    @staticmethod
    def _segments(ends: Sequence[int], group: _Group, ahead: int) -> list[int]:
        """Return the segments that hold the places of a group, or places so many steps ahead."""
        numbers = set[int]()
        for start in group.starts:
            low = bisect_left(ends, start + ahead)
            numbers.update(range(low, bisect_left(ends, start + group.count - 1 + ahead, lo=low) + 1))
        return sorted(numbers)

    def _window(self, first: int, last: int) -> list[Run]:
        """Return, for each record of a stretch, the largest loss it has if the stretch begins at first to last."""
        ends, records = self._run_ends, self._records
        low, high = bisect_left(ends, first), bisect_left(ends, last + records - 1)
        # the runs that position t can lie in change where its first place leaves a run, or its last place enters one
        leaves = (end + 1 - first for end in ends[low : high + 1])
        enters = (end + 1 - last for end in ends[low : high + 1])
        cuts = sorted({0, *(t for t in (*leaves, *enters) if 0 < t < records)})
        window = list[Run]()
        for begins, stops in itertools.pairwise([*cuts, records]):
            covered = slice(bisect_left(ends, first + begins), bisect_left(ends, last + begins) + 1)
            window.append(Run(stops - begins, self._largest(covered)))
        return window

    def _largest(self, covered: slice) -> Matrix:
        kinds = frozenset(self._kinds[covered])
        if kinds not in self._kept:
            different = dict(zip(self._kinds[covered], self._runs[covered], strict=True)).values()
            self._kept[kinds] = np.max([run.loss for run in different], axis=0)
        return self._kept[kinds]


def worst_place(
    past: Sequence[Segment],
    future: Sequence[Segment],
    runs: Sequence[Run],
    records: int,
    evaluate: Evaluate,
    *,
    places: int,
    ahead: int,
) -> StretchLeak:
    """Bound what is told of every stretch of a chain that begins at the places 1 … ``places``.

    ``past`` has the states of its places. ``evaluate`` is given the losses of so many records of a stretch, G at its
    first place (−∞ for pairs of states that no place has), and F so many places ``ahead`` of it; it must not fall as
    these grow.
    """
    search = _Places(past, future, runs, records, ahead, evaluate)
    most, queue, bounds = StretchLeak(0.0), list[tuple[float, int, _Group]](), 0
    decides: _Group | None = None
    waiting = search.groups(places)
    while True:
        for group in waiting:
            bounds, (pair, alike) = bounds + 1, search.bound(group)
            if pair is not None and not alike:
                heapq.heappush(queue, (-pair.total, bounds, group))
            elif pair is not None and (most.paths is None or pair.total > most.total):
                middle = group.starts[len(group.starts) // 2] + (group.count - 1) // 2
                most, decides = StretchLeak(pair.total, middle, pair), group
        if not queue or -queue[0][0] <= most.total * (1 + _NEAR_ENOUGH) or bounds > _MOST_BOUNDS:
            break
        waiting = heapq.heappop(queue)[2].parts()
    if decides is not None:
        most = replace(most, paths=search.bound(decides, witness=True)[0])
    return replace(most, total=-queue[0][0]) if queue and -queue[0][0] > most.total else most


# -- Profiles that repeat ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Unfolded:
    """A chain with so many cycles that every stretch is there; of each repetition its places, and those left out."""

    runs: list[Run]
    past: list[Segment]
    future: list[Segment]
    left_out: list[tuple[int, int, int]]

    def place(self, place: int, records: int) -> int:
        """Return a place of the whole chain at which a stretch begins that looks like the one at this place."""
        return place + sum(
            left_out for first, last, left_out in self.left_out if place >= first and place + records - 1 > last
        )


def unfolded(
    runs: Sequence[Run], past: Sequence[Segment], future: Sequence[Segment], repeated: Sequence[Repeated], records: int
) -> Unfolded:
    """Return a chain with as many cycles as a stretch of so many records can tell from more of them.

    From the runs of a folded profile, what arrives at their places, and its cycles. No segment is in two runs.
    """
    ends = [0, *accumulate(run.steps for run in runs)]
    blocks, start = list[tuple[int, int, int, int]](), 0
    for cycle in repeated:
        length = ends[cycle.stop] - ends[cycle.first]
        kept = min(cycle.times, -(-records // length) + 2)
        blocks += [(start, cycle.first, 1, 0), (cycle.first, cycle.stop, kept, (cycle.times - kept) * length)]
        start = cycle.stop
    blocks.append((start, len(runs), 1, 0))
    new_runs, left_out, place = list[Run](), list[tuple[int, int, int]](), 0
    sides: tuple[list[Segment], list[Segment]] = ([], [])
    for first, stop, kept, missing in blocks:
        length = ends[stop] - ends[first]
        for _ in range(kept):
            new_runs += runs[first:stop]
            for side, segments in zip(sides, (past, future), strict=True):
                side += _moved(segments, ends[first] + 1, ends[stop], place - ends[first])
            place += length
        if missing:
            left_out.append((place - kept * length + 1, place, missing))
    return Unfolded(new_runs, *sides, left_out)


def _moved(segments: Sequence[Segment], first: int, last: int, by: int) -> list[Segment]:
    """Return what is said of the places first to last, moved by so many places."""
    low = bisect_left([segment.last for segment in segments], first)
    high = bisect_right([segment.first for segment in segments], last)
    return [
        replace(segment, first=max(segment.first, first) + by, last=min(segment.last, last) + by)
        for segment in segments[low:high]
    ]
