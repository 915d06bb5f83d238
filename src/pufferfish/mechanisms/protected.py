r"""More than one record: what a release tells of any so many steps of a chain in a row, an hour or a day.

The secrets are all events about the values of n grid steps in a row of one chain, unread steps too. Leakage propagation
bounds them by the losses of these steps and by what the past and the future tell of the first and of the last one
(``docs/proofs/stretches.md``). Where the sum of all losses of a chain is less, that is the bound: it covers a whole
series, hence a person whose records are one chain.

It is one stretch that is protected, not two of them together, and not "near or not" where only near values are secrets.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.rounding import float_up, up
from pufferfish._core.propagation.chain import ChainPropagation, ends_apart
from pufferfish._core.propagation.forgetting import told_by_stretch
from pufferfish._core.propagation.sweep import Run
from pufferfish.mechanisms._propagation_on_chains import ChainSearch, as_runs, searches, spreads
from pufferfish.mechanisms.engine import Bound, Engine, largest_bound, largest_divisor, least_divisor
from pufferfish.mechanisms.group_dp import total_of
from pufferfish.mechanisms.witness import StretchWitness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.lengths import FOR_EVER, ChainLength
from pufferfish.theta.model_class import Theta
from pufferfish.theta.periodic_chain import PeriodicChain

__all__ = ["ProtectedStretch", "leakage_of_series"]


class ProtectedStretch(Engine):
    """What losses tell of any so many steps of a chain in a row; a shorter chain is protected as a whole.

    Parameters
    ----------
    theta : Theta
        The class Θ, of chains that can be followed.
    length : sequence of ChainLength
        Lengths of the data set's independent chains.
    steps : int
        Grid steps of a stretch, read or not.
    near : (k, k) ndarray of bool, optional
        Which pairs of states are near. Only two courses of the stretch that are near at every step are secrets then. It
        hides no event that holds of some values and not of others, such as "above 200".
    """

    takes_steps = True

    def __init__(
        self, theta: Theta, length: Sequence[ChainLength], steps: int, near: NDArray[np.bool_] | None = None
    ) -> None:
        self.theta, self.length, self.steps, self.near = theta, length, steps, near

    def new_searches(self) -> list[ChainSearch]:
        """Return a search for each member of Θ; a chain without ends may begin anywhere in what is asked about."""
        new = searches(self.theta)
        if all(chain.steps < FOR_EVER for chain in self.length):
            return new
        return [
            search if search.propagation is None else replace(search, propagation=search.propagation.at_every_age())
            for search in new
        ]

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage with new searches: what it proves does not depend on what was asked before."""
        new = self.new_searches()
        self._last = losses.key, new
        return self.told(new, losses)

    def told(self, known: Sequence[ChainSearch], losses: RecordLoss) -> Bound:
        """Bound the leakage with searches that may know what they were asked before."""
        return largest_bound(self._bound(*case) for case in _cases(known, losses))

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterable[Bound]:
        """Return the least number found."""

        def leakage(case: tuple[ChainSearch, BlockLoss], divisor: float) -> Bound:
            search, chain = case
            return self._bound(search, chain.divided(divisor))

        def least(case: tuple[ChainSearch, BlockLoss]) -> Bound:
            search, chain = case
            largest = float(chain.largest.max()) + chain.step
            start = largest / epsilon * (min(self.steps, chain.length.steps) - 1 + spreads(search.chain, chain))
            return least_divisor(partial(leakage, case), epsilon, start) if largest > 0 else (0.0, None)

        return [largest_divisor(_cases(self.new_searches(), losses), leakage, least, epsilon)]

    def _bound(self, search: ChainSearch, chain: BlockLoss) -> Bound:
        if isinstance(search.chain, ForgettingClass):
            bound = self._by_forgetting(search.theta, search.chain, chain)
        elif search.propagation is None:
            bound = math.inf, None
        else:
            bound = self._by_propagation(search, search.propagation, chain)
            if bound[1] is None:
                return bound
        total, length = leakage_of_series(chain), chain.length.steps
        if bound[0] <= total:
            return bound
        return total, StretchWitness(
            theta=search.theta, length=length, node=0, by="series", steps=length, own=total, past=0.0, future=0.0
        )

    def _by_propagation(self, search: ChainSearch, propagation: ChainPropagation, chain: BlockLoss) -> Bound:
        length, names = chain.length.steps, self.theta.states
        steps = min(self.steps, length)
        step = chain.step if length > 1 else 0.0
        worst = propagation.stretch(as_runs(chain, self.theta.k), steps, step=step, near=self.near)
        if worst.paths is None:
            return 0.0, None
        paths, phase = worst.paths, worst.paths.phase
        first, last = ((names[x], names[x_]) for x, x_ in (paths.first, paths.last))
        if phase is not None and isinstance(search.chain, PeriodicChain):
            phase = search.chain.phase_of(phase)
        return worst.total, StretchWitness(
            theta=search.theta,
            length=length,
            node=worst.first - 1,
            secret_pair=first,
            by="propagation",
            steps=steps,
            last_pair=last,
            own=paths.own,
            past=paths.past,
            future=paths.future,
            phase=phase,
        )

    def _by_forgetting(self, theta: int, member: ForgettingClass, chain: BlockLoss) -> Bound:
        length = chain.length.steps
        steps, step = min(self.steps, length), chain.step if length > 1 else 0.0
        runs = [Run(int(n), np.array(loss)) for n, loss in zip(chain.steps, chain.largest, strict=True)]
        if step:  # a step is charged to the record before it or after it, on both sides (docs/proofs/transitions.md)
            runs = ends_apart(runs)
            runs = [
                Run(run.steps, run.loss + step if 0 < i < len(runs) - 1 else run.loss) for i, run in enumerate(runs)
            ]
        counts, losses = np.array([run.steps for run in runs]), np.array([float(run.loss) for run in runs])
        parts = told_by_stretch(counts, np.nextafter(losses, np.inf) if step else losses, member.forgets, steps)
        total = up(parts.total + step) if step else parts.total
        return total, StretchWitness(
            theta=theta,
            length=length,
            node=parts.node,
            by="forgetting",
            steps=steps,
            own=parts.own,
            past=parts.past,
            future=parts.future,
        )


def _cases(known: Sequence[ChainSearch], losses: RecordLoss) -> Iterator[tuple[ChainSearch, BlockLoss]]:
    """Yield every member of Θ with every chain that can decide."""
    return product(known, chains_that_can_decide(losses, steps=True))


def leakage_of_series(losses: BlockLoss) -> float:
    """Return what a release tells of all records of a chain together: the sum of its losses, rounded up.

    It needs no model of the records: a person whose records are this chain is hidden by so much.
    """
    total = total_of(losses)[0]
    if not losses.step or not total < math.inf:
        return total
    steps = min(losses.length.records, losses.length.steps) - 1
    return float_up(Fraction(total) + Fraction(losses.step) * steps)
