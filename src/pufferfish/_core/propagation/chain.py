r"""Leakage propagation: how far record-level loss travels along a Markov chain (docs/proofs/propagation.md).

Let the density of a release change by at most a factor e^{d_t(x,x')} when record t goes from x to x'. With Φ from
:mod:`pufferfish._core.phi.phi` and R_i(x,y) = P(X_{i−1}=y | X_i=x),

.. math::
    F_T = 0,\; F_i = \Phi_P(d_{i+1} + F_{i+1}) \qquad
    G_1 = 0,\; G_i = \Phi_{R_i}(d_{i-1} + G_{i-1}) \qquad
    \mathrm{leakage} = \max_i \max_{x \ne x'} d_i + F_i + G_i

over pairs x, x' that X_i can take: what the record itself tells, what its future tells, what its past tells.

**More memory** (docs/proofs/higher_order.md). Where the next record depends on the m records before it, :math:`Y_v =
(X_v, \ldots, X_{v+m-1})` is a Markov chain, followed by m − 1 records that nobody observes. Every record's loss is
counted once, in the first cluster that holds it for what lies ahead, in the last one for what lies behind; the leakage
about record v is

.. math::
    d_v + \Phi_{P(Y_v | X_v)}\Big(\sum_{0<j<m} d_{v+j}(\text{record } j) + G_v + F_v\Big).
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal, Self

import numpy as np

from pufferfish._core import Indices, Mask, Matrix, Vector
from pufferfish._core.chains.markov import closed_classes
from pufferfish._core.numbers.rounding import UNIT, bracket, up
from pufferfish._core.phi.phi import Kernel, LogRatios, close
from pufferfish._core.propagation.past_and_future import Side, future_of, past_of, sides_between
from pufferfish._core.propagation.steps import Steps
from pufferfish._core.propagation.stretch import SAME, PathPair, StretchLeak, unfolded, worst_paths, worst_place
from pufferfish._core.propagation.sweep import (
    Fold,
    Repeated,
    Run,
    Segment,
    exact_steps,
    folded,
    from_the_end,
    overlaps,
    plus,
    sweep,
    sweep_folded,
)

Law = tuple[Vector, Mask, float]

_MOST_KNOWN = 2**22  # numbers that a search keeps of what it found


@dataclass(frozen=True, slots=True)
class Attained:
    """Where the leakage is attained, and what it is made of, in nats."""

    total: float  # rounded up
    node: int = 0  # the record, 1-based (the middle one of those alike); 0 where no record has two possible states
    pair: tuple[int, int] = (0, 0)  # its two states
    own: float = 0.0  # what the record itself tells, its past and its future
    past: float = 0.0
    future: float = 0.0
    phase: int | None = None  # of the record, in a cycle


@dataclass(frozen=True, slots=True, eq=False)
class _Told:
    """What the future and the past tell of the records of a profile, or of those that are kept of it."""

    future: Sequence[Segment]
    past: Sequence[Segment]
    runs: Sequence[Run]
    fold: Fold | None


class _Known:
    """What was told of the last few profiles, by their runs: as many as take little memory, and the last one."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], tuple[_Told, int]] = {}

    def of(self, runs: Sequence[Run], make: Callable[[], _Told]) -> _Told:
        """Return what was told of a profile, or find it now."""
        losses: dict[bytes, int] = {}  # profiles of many runs have few losses
        steps = tuple((run.steps, losses.setdefault(run.loss.tobytes(), len(losses)), run.within) for run in runs)
        key = steps, tuple(losses)
        if key not in self._kept:
            told = make()
            self._kept[key] = told, sum(segment.message.size for side in (told.future, told.past) for segment in side)
            while len(self._kept) > 1 and sum(size for _, size in self._kept.values()) > _MOST_KNOWN:
                self._kept.pop(next(iter(self._kept)))
        return self._kept[key][0]


class ChainPropagation:
    """Leakage of one chain, for any profile of record-level losses.

    ``matrices`` are P, rows = from, or P_φ of the step from phase φ of a cycle to the next, (N, k, k): the first record
    may be at any phase. ``initial`` is the initial law, whatever the phase, or "stationary" (periodic), or "any".
    """

    def __init__(self, matrices: Matrix, initial: Vector | Literal["stationary", "any"]) -> None:
        steps = Steps(matrices)
        self._known = _Known()
        self._states: Indices = np.arange(steps.k)
        possible = np.ones(matrices.shape[:-1], dtype=np.bool_)
        if not isinstance(initial, str):
            possible = steps.reached(np.broadcast_to(initial > 0, possible.shape))
            # a state that no record can have is none
            self._states = np.flatnonzero(possible.reshape(-1, steps.k).any(axis=0))
            steps, initial = steps.restricted(self._states), initial[self._states]
        elif steps.phases and initial == "stationary":
            possible = steps.law()[1]
        self._possible: Mask = steps.matrices > 0
        self._future: Side = future_of(steps, possible[..., self._states])
        self._past: Side = past_of(steps, initial)

    @classmethod
    def between(cls, lower: Matrix, upper: Matrix) -> Self:
        """Return the search under every initial law and every sequence of matrices between two bounds."""
        search = cls.__new__(cls)
        search._known = _Known()
        search._states = np.arange(len(lower))
        search._possible = upper > 0
        search._future, search._past = sides_between(lower, upper)
        return search

    def at_every_age(self) -> Self:
        """Return the search for chains that may begin at any place of a profile, not only at its first record."""
        other = copy(self)
        other._past, other._known = self._past.at_every_age(), _Known()
        return other

    @np.errstate(over="ignore")  # beyond the largest number a sum is infinite, which is more
    def leakage(self, runs: Sequence[Run]) -> Attained:
        """Bound the leakage of a profile, its runs from the first record to the last."""
        if self._states.size == 1:
            return Attained(0.0)
        told = self._told(self._closed(runs))
        worst = self._worst(told)
        if told.fold is None:
            return worst
        return replace(worst, node=told.fold.place(worst.node, [run.steps for run in told.runs]))

    def stretch(self, runs: Sequence[Run], records: int, *, step: float = 0.0, near: Mask | None = None) -> StretchLeak:
        """Bound what is told of any so many records in a row (docs/proofs/stretches.md), no more than the chain has.

        ``step`` is the loss of each step. With ``near`` pairs of states, paths must be near at every record.
        """
        if self._states.size == 1:
            return StretchLeak(0.0)
        own = self._closed(ends_apart(runs) if step else runs)
        # what the border records of the chain pass on has no step behind it
        charged = [
            Run(run.steps, plus(run.loss, step) if 0 < i < len(own) - 1 else run.loss) for i, run in enumerate(own)
        ]
        told = self._told(_levelled(charged, (self._future, self._past)) if step else own)
        fold = told.fold or Fold(tuple(range(len(own))), ())
        chain = unfolded([own[i] for i in fold.kept], told.past, told.future, fold.repeated, records)
        length = sum(run.steps for run in chain.runs)
        # the border steps of a stretch: none where the chain begins or ends
        past = [
            replace(each, message=plus(each.message, step) if each.last > 1 else each.message)
            for each in self._with_states(chain.past)
        ]
        future = [
            replace(each, message=plus(each.message, step) if each.first < length else each.message)
            for each in chain.future
        ]
        among = None if near is None else near[np.ix_(self._states, self._states)]

        def evaluate(
            before: Matrix, states: Mask, losses: Sequence[Run], after: Matrix, _places: Any, witness: bool
        ) -> PathPair | None:
            return worst_paths(before, losses, after, states, self._possible, step=step, near=among, witness=witness)

        places = length - records + 1
        worst = worst_place(past, future, chain.runs, records, evaluate, places=places, ahead=records - 1)
        return self._named(replace(worst, first=chain.place(worst.first, records) if worst.first else 0))

    def _with_states(self, past: Sequence[Segment]) -> list[Segment]:
        return [replace(each, states=self._past.states(each.first, each.last)) for each in past]

    def _closed(self, runs: Sequence[Run]) -> list[Run]:
        """Return runs with their losses closed by shortest paths, between states that can occur."""
        losses = {run.loss.tobytes(): run.loss for run in runs}  # profiles of many runs have few losses
        closed_losses = {name: close(loss)[np.ix_(self._states, self._states)] for name, loss in losses.items()}
        return [Run(run.steps, closed_losses[run.loss.tobytes()]) for run in runs]

    @np.errstate(over="ignore")
    def _told(self, closed: Sequence[Run]) -> _Told:
        """Return what other records tell of each, which stretches of all lengths ask for: kept of the last profiles."""
        return self._known.of(closed, lambda: self._swept(closed))

    def _swept(self, closed: Sequence[Run]) -> _Told:
        """Sweep from both ends; profiles of long chains that repeat are folded where that can be certified."""
        steps = sum(run.steps for run in closed)
        if any(steps > exact_steps(side, closed) for side in (self._future, self._past)):
            fold = folded([(run.steps, run.loss.tobytes()) for run in closed])
            kept = [closed[i] for i in fold.kept]
            past = sweep_folded(self._past, kept, fold.repeated) if fold.repeated else None
            if past is not None:
                n = len(kept)
                mirrored = [Repeated(n - cycle.stop, n - cycle.first, cycle.times) for cycle in reversed(fold.repeated)]
                future = sweep_folded(self._future, kept[::-1], mirrored)
                if future is not None:
                    return _Told(from_the_end(future, sum(run.steps for run in kept)), past, kept, fold)
        future = from_the_end(sweep(self._future, closed[::-1]), steps)
        return _Told(future, sweep(self._past, closed), closed, None)

    def _named(self, worst: StretchLeak) -> StretchLeak:
        """Return where a stretch leaks most by the states of the chain."""
        if worst.paths is None:
            return worst
        first, last = ((int(self._states[x]), int(self._states[x_])) for x, x_ in (worst.paths.first, worst.paths.last))
        return replace(worst, paths=replace(worst.paths, first=first, last=last))

    def guess(self, runs: Sequence[Run]) -> float:
        """Return about what a profile leaks, for searches: no bound."""
        if len(runs) > 1 or self._states.size == 1:
            return self.leakage(runs).total
        closed = self._closed(runs)
        future, past = (sweep(side, closed, proven=False) for side in (self._future, self._past))
        return self._worst(_Told(from_the_end(future, closed[0].steps), past, closed, None)).total

    def least_divisor(self, runs: Sequence[Run], epsilon: float, start: float, tolerance: float = 1e-6) -> float:
        """Least number to divide the losses by so that at most epsilon leaks, or ``inf``; from a guess."""

        def leakage(divisor: float) -> float:
            return self.leakage([run.divided(divisor) for run in runs]).total

        return bracket(leakage, epsilon, start, tolerance=tolerance, from_above=False).enough

    def _worst(self, told: _Told) -> Attained:
        worst: tuple[int, tuple[np.intp, ...], tuple[int, ...], tuple[Matrix, Matrix, Matrix]] | None = None
        most = 0.0
        for first, last, after, before, loss in overlaps(told.future, told.past, told.runs):
            secrets = self._past.secrets(first, last)
            if not secrets.any():
                continue
            total = np.where(secrets, loss + before + after, -np.inf)
            total[np.isnan(total)] = np.inf  # no number is no proof
            place = np.unravel_index(int(np.argmax(total)), total.shape)
            if worst is None or total[place] > most:
                most, worst = up(float(total[place])), ((first + last) // 2, place, total.shape, (loss, before, after))
        if worst is None:
            return Attained(0.0)
        node, place, shape, parts = worst
        *phase, x, x_ = (int(v) for v in place)
        shares = (float(np.broadcast_to(part, shape)[place]) for part in parts)
        pair = int(self._states[x]), int(self._states[x_])
        return Attained(most, node, pair, *shares, phase=phase[0] if phase else None)


# -- Chains with more memory ------------------------------------------------------------------------------------------


class TuplePropagation(ChainPropagation):
    """Leakage of one chain of order m, for any profile of record-level losses.

    ``kernel``, (s, s), is the matrix of its clusters, and ``tuples``, (s, m), are the states of the m records in each
    value of a cluster. Several values may stand for the same states: then what else they are, such as the kind of a
    stay, is no secret, and is never seen (docs/proofs/stays.md). ``initial`` is the law of the first m records,
    "stationary" or "any".
    """

    def __init__(self, kernel: Matrix, tuples: Indices, initial: Vector | Literal["stationary", "any"]) -> None:
        steps = Steps(kernel)
        members: Indices = np.arange(len(kernel))
        if not isinstance(initial, str):
            members = np.flatnonzero(steps.reached(initial > 0))
            initial = initial[members]
        elif initial == "stationary":
            members = np.array(closed_classes(kernel > 0)[0])
        steps, self._tuples = steps.restricted(members), tuples[members]
        self._possible: Mask = steps.matrices > 0
        self._order: int = tuples.shape[1]
        self._states: Indices = np.unique(self._tuples[:, 0])
        self._future = future_of(steps, np.ones(len(members), dtype=np.bool_))
        self._past = past_of(steps, initial)
        self._known = _Known()
        self._kernels: dict[bytes, tuple[Law, Kernel]] = {}
        self._ratios: dict[bytes, LogRatios] = {}

    def at_every_age(self) -> Self:
        """Return the search for chains that may begin at any place of a profile."""
        other = super().at_every_age()
        other._kernels, other._ratios = dict[bytes, tuple[Law, Kernel]](), dict[bytes, LogRatios]()
        return other

    @np.errstate(over="ignore")
    def leakage(self, runs: Sequence[Run]) -> Attained:
        """Bound the leakage of a profile, its runs from the first record to the last."""
        if self._states.size == 1:
            return Attained(0.0)
        closed = [replace(run, loss=close(run.loss)) for run in runs]
        m = self._order
        told = self._told(closed)
        future, past = told.future, told.past
        first_runs, between = _together([closed, *(_later(closed, j) for j in range(1, m))])
        middle = [
            Run(run.steps, sum((self._lifted(d, j + 1) for j, d in enumerate(losses)), np.zeros_like(past[0].message)))
            for run, losses in zip(first_runs, between, strict=True)
        ]
        most, worst, ends = -np.inf, None, list(accumulate(run.steps for run in first_runs))
        for first, last, after, before, inside in overlaps(future, past, middle):
            seen = np.any(self._past.secrets(first, last), axis=0)
            states = np.unique(self._tuples[seen, 0])
            if states.size < 2:
                continue
            loss = first_runs[bisect_right(ends, first - 1)].loss
            leaks = self._of_first(before + (inside + after), seen, first, last)
            at = np.searchsorted(self._states, states)
            total = loss[np.ix_(states, states)] + leaks[np.ix_(at, at)]
            total[np.isnan(total)] = np.inf  # no number is no proof
            np.fill_diagonal(total, -np.inf)
            if total.max() > most:
                most, place = float(total.max()), np.unravel_index(int(np.argmax(total)), total.shape)
                x, x_ = (int(states[v]) for v in place)
                worst = first, last, (x, x_), float(loss[x, x_]), before, inside + after, seen
        if worst is None:
            return Attained(0.0)
        # what the past tells alone, and the rest
        first, last, pair, own, before, others, seen = worst
        x, x_ = np.searchsorted(self._states, pair)
        leak = max(most - own, 0.0)
        behind = min(float(self._of_first(before, seen, first, last)[x, x_]), leak)
        if not np.any(others[np.ix_(seen, seen)] > 0):  # nothing follows
            behind = leak
        return Attained(up(most), (first + last) // 2, pair, own, behind, leak - behind)

    @np.errstate(over="ignore")
    def stretch(self, runs: Sequence[Run], records: int, *, step: float = 0.0, near: Mask | None = None) -> StretchLeak:
        """Bound what is told of any so many records in a row; a record is charged both of its steps.

        Fewer records than a cluster has are its first ones, of which its other records, past and future tell.
        """
        if self._states.size == 1:
            return StretchLeak(0.0)
        closed = [Run(run.steps, plus(close(run.loss), 2 * step)) for run in runs]
        length, m = sum(run.steps for run in closed), self._order
        told = self._told(closed)
        k = len(closed[0].loss)
        near_states = np.ones((k, k), dtype=np.bool_) if near is None else near
        begun = self._tuples[:, : min(records, m)]
        near_tuples, near_begun = (
            np.logical_and.reduce([near_states[np.ix_(column, column)] for column in tuples.T])
            for tuples in (self._tuples, begun)
        )
        near_tuples = None if near is None else near_tuples
        _, groups = np.unique(begun, axis=0, return_inverse=True)
        groups = groups.reshape(-1).astype(np.intp)

        # nor do clusters of so many records name values of these, where several values of a cluster stand for one
        few = records < m or (records == m and int(groups.max()) + 1 < len(groups))

        def of_clusters(
            before: Matrix, states: Mask, losses: Sequence[Run], after: Matrix, _places: Any, witness: bool
        ) -> PathPair | None:
            of_first, later = self._first_cluster(losses)
            first = np.sum(of_first, axis=0)
            own = [Run(1, first), *(Run(run.steps, self._lifted(run.loss, m - 1)) for run in later)]
            paths = worst_paths(before, own, after, states, self._possible, near=near_tuples, witness=witness)
            if paths is None:
                return None
            (x, x_), (y, y_) = paths.first, paths.last
            ends = (self._tuples[x, 0], self._tuples[x_, 0]), (self._tuples[y, -1], self._tuples[y_, -1])
            return replace(paths, first=_whole(ends[0]), last=_whole(ends[1]))

        def of_few(
            before: Matrix,
            states: Mask,
            losses: Sequence[Run],
            after: Matrix,
            places: tuple[int, int] | None,
            _witness: bool,
        ) -> PathPair | None:
            of_first = self._first_cluster(losses)[0]
            own, others = np.sum(of_first[:records], axis=0), np.sum(of_first[records:], axis=0)
            count = int(groups.max()) + 1
            if places is not None:  # absent bounds are none: anything less would tie other states together
                before = np.where(before == -np.inf, np.inf, before)
            leaks = self._of_groups(others + before + after, states, groups, count, places)
            secret = states[:, None] & states[None, :] & near_begun & (groups[:, None] != groups[None, :])
            if not secret.any():
                return None
            total = np.where(secret, own + leaks[np.ix_(groups, groups)], -np.inf)
            total[np.isnan(total)] = np.inf  # no number is no proof
            largest = float(total.max())
            x, x_ = (int(v) for v in np.argwhere(np.isclose(total, largest, rtol=SAME, atol=0))[0])
            first, last = (begun[x, 0], begun[x_, 0]), (begun[x, -1], begun[x_, -1])
            most, alone = up(largest, 2 * m), float(own[x, x_])
            behind = float(self._of_groups(before, states, groups, count, places)[groups[x], groups[x_]])
            behind = min(behind, max(most - alone, 0.0))
            return PathPair(most, _whole(first), _whole(last), behind, max(most - behind - alone, 0.0))

        continued = [*closed, Run(m - 1, np.zeros((k, k)))] if m > 1 else closed
        return worst_place(
            self._with_states(told.past),
            told.future,
            continued,
            max(records, m),
            of_few if few else of_clusters,
            places=length - records + 1,
            ahead=max(records - m, 0),
        )

    def _first_cluster(self, losses: Sequence[Run]) -> tuple[list[Matrix], list[Run]]:
        """Return the losses of the first m records of a stretch, between clusters, and the runs of the others."""
        left, of_first = list(losses), list[Matrix]()
        for j in range(self._order):
            of_first.append(self._lifted(left[0].loss, j))
            left = _later_part(left, 1)
        return of_first, left

    def guess(self, runs: Sequence[Run]) -> float:
        """Return what a profile leaks at most: here there is no quicker way."""
        return self.leakage(runs).total

    def _of_first(self, bounds: Matrix, seen: Mask, first: int, last: int) -> Matrix:
        """Return what bounds between clusters tell of their first records: under their law if it is known, or any."""
        places = np.searchsorted(self._states, self._tuples[:, 0])
        return self._of_groups(bounds, seen, places, self._states.size, (first, last))

    def _of_groups(self, bounds: Matrix, seen: Mask, groups: Indices, k: int, places: tuple[int, int] | None) -> Matrix:
        """Return what bounds between clusters tell of which of k groups a cluster is in, at places first to last.

        Without places they are bounds at several ones with other states each, and −∞ where no place has both. Shortest
        paths would then go through states that a place does not have, and no law is that of all.
        """
        bounds = np.where(np.isnan(bounds), np.inf, bounds)
        bounds = bounds if places is None else close(bounds)
        largest = np.zeros((k, k))
        inside = np.flatnonzero(seen)
        inside = inside[np.argsort(groups[inside], kind="stable")]
        there, firsts = np.unique(groups[inside], return_index=True)
        if there.size:
            most = np.maximum.reduceat(bounds[np.ix_(inside, inside)], firsts, axis=0)
            most = np.maximum(np.maximum.reduceat(most, firsts, axis=1), 0.0)
            np.fill_diagonal(most, 0.0)
            upwards = 4 * np.spacing(np.where(np.isfinite(most) & (most > 0), most, 0.0))
            largest[np.ix_(there, there)] = most + np.where(most > 0, upwards, 0.0)
        kernel = None if places is None else self._law_in_groups(groups, places)
        if kernel is None or not largest.any():
            return largest
        ratios = self._ratios.setdefault(groups.tobytes(), LogRatios())(kernel, bounds)[:k, :k]
        return np.where(np.isfinite(ratios), np.minimum(largest, ratios), largest)

    def _law_in_groups(self, groups: Indices, places: tuple[int, int]) -> Kernel | None:
        """Return P(Y | its group) at some places, in one row for each group; None where no law is known."""
        law = self._past.law(*places)
        if law is None:
            return None
        key = groups.tobytes()
        if key not in self._kernels or self._kernels[key][0] is not law:
            logs, positive, error = law
            s = len(logs)
            kernel_logs, rows = np.full((s, s), -np.inf), np.zeros(s, dtype=np.bool_)
            for x in np.unique(groups[positive]):
                of_x = positive & (groups == x)
                top = float(logs[of_x].max())
                kernel_logs[x, of_x] = logs[of_x] - top - np.log(np.exp(logs[of_x] - top).sum())
                rows[x] = True
            self._kernels[key] = law, Kernel.of_logs(kernel_logs, rows, 2 * error + UNIT * (s + 8))
        return self._kernels[key][1]

    def _swept(self, closed: Sequence[Run]) -> _Told:
        """Return what the records after each cluster tell of it, and those before it."""
        length, m = sum(run.steps for run in closed), self._order
        ahead = [Run(run.steps, self._lifted(run.loss, m - 1, run.within)) for run in _later(closed, m - 1)]
        behind = [Run(run.steps, self._lifted(run.loss, 0, run.within)) for run in closed]
        return _Told(from_the_end(sweep(self._future, ahead[::-1]), length), sweep(self._past, behind), closed, None)

    def _lifted(self, loss: Matrix, j: int, within: float = 0.0) -> Matrix:
        """Return the loss of record j of a cluster, between values of the cluster: ``within`` where it is the same."""
        states = self._tuples[:, j]
        lifted = loss[np.ix_(states, states)]
        if not within:
            return lifted
        others = (states[:, None] == states[None, :]) & ~np.eye(len(states), dtype=np.bool_)
        return np.where(others, within, lifted)


def _later(runs: Sequence[Run], by: int) -> list[Run]:
    """Return for each record the loss of the one so many steps later, 0 beyond the last."""
    dropped = min(by, sum(run.steps for run in runs))
    later = _later_part(runs, by)
    return [*later, Run(dropped, np.zeros_like(runs[0].loss))] if dropped else later


def _later_part(runs: Sequence[Run], by: int) -> list[Run]:
    """Return runs without their first so many records."""
    left, later = by, list[Run]()
    for run in runs:
        dropped = min(left, run.steps)
        left -= dropped
        if run.steps > dropped:
            later.append(replace(run, steps=run.steps - dropped))
    return later


def ends_apart(runs: Sequence[Run]) -> list[Run]:
    """Return the same profile with its first and its last record in runs of their own."""
    length = sum(run.steps for run in runs)
    first, rest = Run(1, runs[0].loss), _later_part(runs, 1)
    if length < 3:
        return [first, *rest]
    *before, end = rest
    inner = [*before, Run(end.steps - 1, end.loss)] if end.steps > 1 else before
    return [first, *inner, Run(1, end.loss)]


def _levelled(runs: Sequence[Run], sides: Sequence[Side]) -> Sequence[Run]:
    """Return one run where both sides have one bound for it: border records are charged what all others are."""
    longest = max(runs, key=lambda run: run.steps)
    level = [Run(sum(run.steps for run in runs), longest.loss)]
    borders = all(run is longest or (run.steps == 1 and np.all(run.loss <= longest.loss)) for run in runs)
    return level if borders and not any(exact_steps(side, level) for side in sides) else runs


def _whole(pair: tuple[np.intp, np.intp]) -> tuple[int, int]:
    return int(pair[0]), int(pair[1])


def _together(profiles: Sequence[Sequence[Run]]) -> tuple[list[Run], list[list[Matrix]]]:
    """Cut several profiles of the same records where any changes: runs of the first, and the losses of the others."""
    edges = [list(accumulate(run.steps for run in runs)) for runs in profiles]
    cuts = sorted({edge for profile_edges in edges for edge in profile_edges})
    first_runs, others = list[Run](), list[list[Matrix]]()
    for begins, ends in zip([0, *cuts[:-1]], cuts, strict=True):
        losses = [runs[bisect_right(edge, begins)].loss for runs, edge in zip(profiles, edges, strict=True)]
        first_runs.append(Run(ends - begins, losses[0]))
        others.append(losses[1:])
    return first_runs, others
