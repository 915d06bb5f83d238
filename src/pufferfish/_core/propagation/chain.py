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
soon as it moves no more and is below a certified fixed point (:mod:`pufferfish._core.propagation.fixed_point`), which
then covers the rest of the run; stretches that come again and again are one cycle with one certificate
(:mod:`pufferfish._core.propagation.folding`). So the cost does not depend on T.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.inversion import bracket
from pufferfish._core.numbers.rounding import up
from pufferfish._core.phi.phi import close
from pufferfish._core.propagation.folding import Repeated, folded
from pufferfish._core.propagation.past_and_future import AnyPast, Side, future_of, past_of
from pufferfish._core.propagation.past_and_future_interval import PastBetween, sides_between
from pufferfish._core.propagation.steps import Cycle, Same, Steps
from pufferfish._core.propagation.sweep import Run, Segment, exact_steps, from_the_end, overlaps, sweep, sweep_folded

__all__ = ["Attained", "ChainPropagation", "past_of_any"]

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
        found = cls.__new__(cls)
        found._states = np.arange(len(lower))
        found._future, found._past = sides_between(lower, upper)
        return found

    @np.errstate(over="ignore")  # beyond the largest number a sum is infinite, which is more
    def leakage(self, runs: Sequence[Run]) -> Attained:
        """Bound the leakage of a profile, its runs from the first record to the last."""
        if self._states.size == 1:
            return Attained(0.0)
        each = {run.loss.tobytes(): run.loss for run in runs}  # profiles of many runs have few losses
        own = {name: close(loss)[np.ix_(self._states, self._states)] for name, loss in each.items()}
        closed = [Run(run.steps, own[run.loss.tobytes()]) for run in runs]
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
        for first, last, after, before, own in overlaps(future, past, runs):
            secrets = self._past.secrets(first, last)
            if not secrets.any():
                continue
            total = np.where(secrets, own + before + after, -np.inf)
            total[np.isnan(total)] = np.inf  # no number is no proof
            at = np.unravel_index(int(np.argmax(total)), total.shape)
            if worst is None or total[at] > most:
                most, worst = up(float(total[at])), ((first + last) // 2, at, total.shape, (own, before, after))
        if worst is None:
            return Attained(0.0)
        node, at, shape, parts = worst
        *phase, x, x_ = (int(v) for v in at)
        each = (float(np.broadcast_to(part, shape)[at]) for part in parts)
        pair = int(self._states[x]), int(self._states[x_])
        return Attained(most, node, pair, *each, phase=phase[0] if phase else None)
