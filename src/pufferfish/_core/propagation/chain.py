r"""Leakage propagation: how far record-level loss travels along a Markov chain.

Let the density of a release change by at most a factor e^{d_t(x,x')} when record t goes from x to x'. With Φ from
:mod:`pufferfish._core.phi.phi` and R_i(x,y) = P(X_{i−1}=y | X_i=x),

.. math::
    F_T = 0,\; F_i = \Phi_P(d_{i+1} + F_{i+1}) \qquad
    G_1 = 0,\; G_i = \Phi_{R_i}(d_{i-1} + G_{i-1}) \qquad
    \mathrm{leakage} = \max_i \max_{x \ne x'} d_i + F_i + G_i

over pairs x, x' that X_i can take: what the record itself tells, what its future tells, what its past tells. The proof
is in ``docs/proofs/propagation.md``.

Two sweeps compute F and G from the ends of the chain inwards. On a run of records with the same loss a sweep stops as
soon as it moves no more and is below a certified fixed point (:mod:`pufferfish._core.propagation.steps`), which
then covers the rest of the run; stretches that come again and again are one cycle with one certificate
(:mod:`pufferfish._core.propagation.sweep`). So the cost does not depend on T.

Leakage propagation on chains with more memory: a path of clusters of m records in a row.

The next record depends on the m records before it, so :math:`Y_v = (X_v, \ldots, X_{v+m-1})` is a Markov chain. Every
record has a home, so that its loss is counted once: for what lies behind, the cluster that it is the first record of;
for what lies ahead, the one that it is the last of. With the chain continued by m − 1 records that nobody observes,

.. math::
    F_v = \Phi_K(d_{v+m}(\text{last}) + F_{v+1}) \qquad G_v = \Phi_R(d_{v-1}(\text{first}) + G_{v-1})

are bounds between values of :math:`Y_v`, and the leakage about record v, the first of its cluster, is

.. math::
    d_v + \Phi_{P(Y_v | X_v)}\Big(\sum_{0<j<m} d_{v+j}(\text{record } j) + G_v + F_v\Big).

It is propagation on a junction tree (docs/proofs/networks.md) whose clusters form a path; sweeps and fixed points are
those of :mod:`pufferfish._core.propagation.chain`.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import closed_classes, log_of
from pufferfish._core.numbers.rounding import UNIT, bracket, up
from pufferfish._core.phi.phi import Kernel, LogRatios, close
from pufferfish._core.propagation.past_and_future import AnyPast, PastBetween, Side, future_of, past_of, sides_between
from pufferfish._core.propagation.steps import Cycle, Same, Steps
from pufferfish._core.propagation.sweep import (
    Repeated,
    Run,
    Segment,
    exact_steps,
    folded,
    from_the_end,
    overlaps,
    sweep,
    sweep_folded,
)

__all__ = ["Attained", "ChainPropagation", "TuplePropagation", "past_of_any"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


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
        search = cls.__new__(cls)
        search._states = np.arange(len(lower))
        search._future, search._past = sides_between(lower, upper)
        return search

    @np.errstate(over="ignore")  # beyond the largest number a sum is infinite, which is more
    def leakage(self, runs: Sequence[Run]) -> Attained:
        """Bound the leakage of a profile, its runs from the first record to the last."""
        if self._states.size == 1:
            return Attained(0.0)
        losses = {run.loss.tobytes(): run.loss for run in runs}  # profiles of many runs have few losses
        closed_losses = {name: close(loss)[np.ix_(self._states, self._states)] for name, loss in losses.items()}
        closed = [Run(run.steps, closed_losses[run.loss.tobytes()]) for run in runs]
        steps = sum(run.steps for run in closed)
        if any(steps > exact_steps(side, closed) for side in (self._future, self._past)):
            fold = folded([(run.steps, run.loss.tobytes()) for run in closed])
            kept = [closed[i] for i in fold.kept]
            sides = self._sides_folded(kept, fold.repeated) if fold.repeated else None
            if sides is not None:
                worst = self._worst(*sides, kept)
                return replace(worst, node=fold.place(worst.node, [run.steps for run in kept]))
        return self._worst(sweep(self._future, closed[::-1]), sweep(self._past, closed), closed)

    def guess(self, runs: Sequence[Run]) -> float:
        """Return about what a profile leaks, for searches: no bound."""
        if len(runs) > 1 or self._states.size == 1:
            return self.leakage(runs).total
        closed = [Run(run.steps, close(run.loss)[np.ix_(self._states, self._states)]) for run in runs]
        future, past = (sweep(side, closed, proven=False) for side in (self._future, self._past))
        return self._worst(future, past, closed).total

    def least_divisor(self, runs: Sequence[Run], epsilon: float, start: float, tolerance: float = 1e-6) -> float:
        """Least number by which the losses must be divided to leak at most epsilon, or ``inf``.

        Within the tolerance, on the private side. ``start`` is a guess.
        """

        def leakage(divisor: float) -> float:
            return self.leakage([run.divided(divisor) for run in runs]).total

        return bracket(leakage, epsilon, start, tolerance=tolerance, from_above=False).enough

    def _sides_folded(
        self, runs: Sequence[Run], repeated: Sequence[Repeated]
    ) -> tuple[list[Segment], list[Segment]] | None:
        """Return what the future and the past tell of every record, or None where a cycle could not be certified."""
        past = sweep_folded(self._past, runs, repeated)
        if past is None:
            return None
        n = len(runs)
        mirrored = [Repeated(n - cycle.stop, n - cycle.first, cycle.times) for cycle in reversed(repeated)]
        future = sweep_folded(self._future, runs[::-1], mirrored)
        return None if future is None else (future, past)

    def _worst(self, future: Sequence[Segment], past: Sequence[Segment], runs: Sequence[Run]) -> Attained:
        future = from_the_end(future, sum(run.steps for run in runs))
        worst: tuple[int, tuple[np.intp, ...], tuple[int, ...], tuple[Matrix, Matrix, Matrix]] | None = None
        most = 0.0
        for first, last, after, before, loss in overlaps(future, past, runs):
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


# -- Leakage propagation on chains with more memory ------------------------------------------------------------------

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class _Worst:
    """The largest leakage so far: of the middle of records first to last, between states x and x_."""

    total: float
    first: int = 0
    last: int = 0
    x: int = 0
    x_: int = 0
    own: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    before: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    others: Matrix = field(default_factory=lambda: np.zeros((0, 0)))


class TuplePropagation(ChainPropagation):
    """Leakage of one chain of order m, for any profile of record-level losses.

    Parameters
    ----------
    kernel : (s, s) ndarray
        Transition matrix of the clusters.
    tuples : (s, m) ndarray of int
        The states of the m records in each value of a cluster.
    initial : (s,) ndarray, "stationary" or "any"
        Law of the first m records, or the class of all of them.
    """

    def __init__(
        self, kernel: Matrix, tuples: NDArray[np.intp], initial: Vector | Literal["stationary", "any"]
    ) -> None:
        steps = Same(kernel)
        kept = np.ones(len(kernel), dtype=np.bool_)
        if isinstance(initial, str):
            if initial == "stationary":
                kept[:] = False
                kept[closed_classes(kernel > 0)[0]] = True
        else:
            kept = steps.reached(initial > 0)
        members = np.flatnonzero(kept)
        steps, self._tuples = steps.restricted(members), tuples[members]
        self._order: int = tuples.shape[1]
        self._states: NDArray[np.intp] = np.unique(self._tuples[:, 0])
        self._future = future_of(steps, np.ones(len(members), dtype=np.bool_))
        self._always: Kernel | None = None
        if isinstance(initial, str):
            self._past = past_of_any(steps) if initial == "any" else past_of(steps, None)
            if initial == "stationary":
                law, positive, error = steps.law()
                self._always = self._given_first(log_of(law, positive), positive, error)
        else:
            self._past = past_of(steps, initial[members])
        self._ratios = LogRatios()

    @np.errstate(over="ignore")
    def leakage(self, runs: Sequence[Run]) -> Attained:
        """Bound the leakage of a profile, its runs from the first record to the last."""
        if self._states.size == 1:
            return Attained(0.0)
        closed = [Run(run.steps, close(run.loss)) for run in runs]
        length, m = sum(run.steps for run in closed), self._order
        ahead = [Run(run.steps, self._lifted(run.loss, m - 1)) for run in _later(closed, m - 1)]
        behind = [Run(run.steps, self._lifted(run.loss, 0)) for run in closed]
        future = from_the_end(sweep(self._future, ahead[::-1]), length)
        past = sweep(self._past, behind)
        first_runs, between = _together([closed, *(_later(closed, j) for j in range(1, m))])
        middle = [
            Run(run.steps, sum((self._lifted(d, j + 1) for j, d in enumerate(losses)), np.zeros_like(behind[0].loss)))
            for run, losses in zip(first_runs, between, strict=True)
        ]
        worst, ends = _Worst(-np.inf), list(accumulate(run.steps for run in first_runs))
        for first, last, after, before, inside in overlaps(future, past, middle):
            loss = first_runs[bisect_right(ends, first - 1)].loss
            candidate = self._of_records(first, last, loss, before, inside + after)
            worst = candidate if candidate.total > worst.total else worst
        return self._parts(worst) if worst.first else Attained(0.0)

    def guess(self, runs: Sequence[Run]) -> float:
        """Return what a profile leaks at most: here there is no quicker way."""
        return self.leakage(runs).total

    def _of_records(self, first: int, last: int, loss: Matrix, before: Matrix, others: Matrix) -> "_Worst":
        """Bound what is told of records first to last, each the first of its cluster."""
        seen = np.any(self._past.secrets(first, last), axis=0)
        states = np.unique(self._tuples[seen, 0])
        if states.size < 2:
            return _Worst(-np.inf)
        leaks = self._of_first(before + others, seen, first, last)
        places = np.searchsorted(self._states, states)
        total = loss[np.ix_(states, states)] + leaks[np.ix_(places, places)]
        total[np.isnan(total)] = np.inf  # no number is no proof
        np.fill_diagonal(total, -np.inf)
        x, x_ = (int(states[v]) for v in np.unravel_index(int(np.argmax(total)), total.shape))
        return _Worst(float(total.max()), first, last, x, x_, loss, before, others)

    def _parts(self, worst: "_Worst") -> Attained:
        """Say what the worst record itself, its past and its future tell: what the past tells alone, and the rest."""
        first, last, before, others = worst.first, worst.last, worst.before, worst.others
        x, x_ = (int(np.searchsorted(self._states, v)) for v in (worst.x, worst.x_))
        loss, seen = float(worst.own[worst.x, worst.x_]), np.any(self._past.secrets(first, last), axis=0)
        leak = max(worst.total - loss, 0.0)
        behind = min(float(self._of_first(before, seen, first, last)[x, x_]), leak)
        if not np.any(others[np.ix_(seen, seen)] > 0):  # nothing follows
            behind = leak
        pair = worst.x, worst.x_
        return Attained(up(worst.total), (first + last) // 2, pair, loss, behind, leak - behind)

    def _of_first(self, bounds: Matrix, seen: Mask, first: int, last: int) -> Matrix:
        """Return what bounds between clusters tell of their first records: under their law if it is known, or any."""
        places, k = np.searchsorted(self._states, self._tuples[:, 0]), self._states.size
        bounds = close(np.where(np.isnan(bounds), np.inf, bounds))
        largest = np.zeros((k, k))
        for x in range(k):
            for x_ in range(k):
                rows, columns = seen & (places == x), seen & (places == x_)
                if x != x_ and rows.any() and columns.any():
                    largest[x, x_] = up(float(np.max(bounds[np.ix_(rows, columns)])))
        law = self._past.law(first, last)
        kernel = self._always if law is None else self._given_first(*law)
        if kernel is None or not largest.any():
            return largest
        ratios = self._ratios(kernel, bounds)[:k, :k]
        return np.where(np.isfinite(ratios), np.minimum(largest, ratios), largest)

    def _given_first(self, logs: Vector, positive: Mask, error: float) -> Kernel:
        """Return P(Y | X = x) of a law of clusters, in one row for each state x."""
        places, s = np.searchsorted(self._states, self._tuples[:, 0]), len(logs)
        kernel_logs, rows = np.full((s, s), -np.inf), np.zeros(s, dtype=np.bool_)
        for x in np.unique(places[positive]):
            of_x = positive & (places == x)
            top = float(logs[of_x].max())
            kernel_logs[x, of_x] = logs[of_x] - top - np.log(np.exp(logs[of_x] - top).sum())
            rows[x] = True
        return Kernel.of_logs(kernel_logs, rows, 2 * error + UNIT * (s + 8))

    def _lifted(self, loss: Matrix, j: int) -> Matrix:
        """Return the loss of record j of a cluster, between values of the cluster."""
        states = self._tuples[:, j]
        return loss[np.ix_(states, states)]


def _later(runs: Sequence[Run], by: int) -> list[Run]:
    """Return for each record the loss of the one so many steps later, 0 beyond the last."""
    left, later = by, list[Run]()
    for run in runs:
        dropped = min(left, run.steps)
        left -= dropped
        if run.steps > dropped:
            later.append(Run(run.steps - dropped, run.loss))
    return [*later, Run(by - left, np.zeros_like(runs[0].loss))] if by - left else later


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
