r"""More than one record: what a release tells of any so many steps of a chain in a row, an hour or a day.

The secrets are all events about the values of n grid steps in a row of one chain, unread steps too. Leakage propagation
bounds them by the losses of these steps and by what the past and the future tell of the first and of the last one
(``docs/proofs/stretches.md``). Where the sum of all losses of a chain is less, that is the bound: it covers a whole
series, hence a person whose records are one chain.

It is one stretch that is protected, not two of them together, and not "near or not" where only near values are secrets.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._base.checked import whole_number
from pufferfish._core.numbers.rounding import bracket, float_up, up
from pufferfish._core.propagation.chain import ChainPropagation, ends_apart
from pufferfish._core.propagation.forgetting import told_by_stretch
from pufferfish._core.propagation.sweep import Run
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.mechanisms._propagation_on_chains import ChainSearch, as_runs, searches, too_large
from pufferfish.mechanisms.engine import Bound, Engine
from pufferfish.mechanisms.group_dp import total_of
from pufferfish.mechanisms.protection import StretchProtection
from pufferfish.mechanisms.witness import StretchWitness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, as_record_loss, chains_that_can_decide
from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.lengths import FOR_EVER, ChainLength
from pufferfish.theta.model_class import Theta, as_theta, lengths_of
from pufferfish.theta.periodic_chain import PeriodicChain

__all__ = [
    "ProtectedStretch",
    "StretchEngine",
    "leakage_of_series",
]

Mask = NDArray[np.bool_]

_TOLERANCE = 1e-6
"""How near the leakage of the noise must come to ε, as a share of it."""


StretchBound = tuple[float, StretchWitness | None]
"""A leakage in nats, rounded up, and where it is attained; no witness where there is no secret."""


class ProtectedStretch:
    """What releases tell of any so many steps of a chain in a row.

    Parameters
    ----------
    theta : model, sequence of models, or class
        The class Θ: chains with every kind of initial law, with a clock or more memory, :class:`IntervalChain`,
        :class:`BinaryChainInterval`, or :class:`ForgettingClass`.
    length : int, ChainLength, or sequence of these
        T, or the lengths of the data set's independent chains.
    steps : int
        Grid steps of a stretch, read or not. A shorter chain is protected as a whole.
    near : (k, k) array_like of bool, optional
        Which pairs of states are near. Only two courses of the stretch that are near at every
        step are secrets then. It hides no event that holds of some values and not of others, such as "above 200".

    Raises
    ------
    NotApplicableError
        If the bound does not cover Θ; the message says why.
    ParameterError
        If steps or near are none.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]])
    >>> hour = ProtectedStretch(chain, 10_000, steps=60)
    >>> round(hour.leakage(1 / 64.70552), 4), round(hour.least_divisor(1.0, epsilon=1.0), 2)
    (1.0, 64.71)
    """

    def __init__(self, theta: Any, length: Any, steps: int, *, near: ArrayLike | None = None) -> None:
        self.theta = as_theta(theta)
        reason = _not_covered(self.theta)
        if reason is not None:
            raise NotApplicableError(reason, "protection of a stretch")
        self.length = lengths_of(self.theta, length)
        try:
            self.steps = whole_number(steps)
        except TypeError:
            self.steps = 0
        if self.steps < 1:
            raise ParameterError(f"steps is {steps!r}, expected a whole number of grid steps, at least 1")
        self.near = None if near is None else _as_near(near, self.theta.k)

    def leakage(self, record_loss: Any) -> float:
        """Bound what a release tells of a stretch, from its record-level losses.

        Parameters
        ----------
        record_loss : float, array_like, Profile, StepLoss, or list of these
            As :meth:`InfluenceBound.leakage` takes it.

        Returns
        -------
        float
            The leakage in nats, rounded up; ``inf`` where no bound holds.
        """
        return self.prove(record_loss)[0]

    def prove(self, record_loss: Any) -> StretchBound:
        """Return :meth:`leakage` and where it is attained (None: there is no secret to protect)."""
        most: StretchBound = 0.0, None
        for search, chain in self._each(record_loss):
            bound = self._bound(search, chain)
            if bound[1] is not None and (most[1] is None or bound[0] > most[0]):
                most = bound
        return most

    def least_divisor(self, record_loss: Any, epsilon: float) -> float:
        """Return the least number found that divides the losses so that a stretch leaks at most epsilon.

        For the losses of a query with noise of scale 1 it is the least scale of the noise, on the private side within a
        share of 1e-6 of ε; ``inf`` where no noise is enough, and 0 where there is no secret.
        """
        if not 0 < epsilon < math.inf:
            raise ParameterError(f"epsilon is {epsilon!r}, expected a positive number of nats")
        most = 0.0
        for search, chain in self._each(record_loss):

            def leakage(divisor: float, search: ChainSearch = search, chain: BlockLoss = chain) -> float:
                return self._bound(search, chain.divided(divisor))[0]

            largest = float(chain.largest.max()) + chain.step
            if not largest > 0 or (most > 0 and leakage(most) <= epsilon):
                continue
            start = largest / epsilon * (min(self.steps, chain.length.steps) - 1 + search.spreads(chain))
            most = max(most, bracket(leakage, epsilon, start, tolerance=_TOLERANCE, from_above=False).enough)
        return most

    def _each(self, record_loss: Any) -> Iterator[tuple[ChainSearch, BlockLoss]]:
        """Yield every member of Θ with every chain that can decide."""
        losses = (
            record_loss if isinstance(record_loss, RecordLoss) else as_record_loss(record_loss, self.theta, self.length)
        )
        chains = list(chains_that_can_decide(losses, steps=True))
        yield from itertools.product(self.searches, chains)

    @cached_property
    def searches(self) -> list[ChainSearch]:
        """Its searches, one for each member of Θ, which know what they were asked.

        A chain that has no end on either side may begin anywhere in what is asked about.
        """
        found = searches(self.theta)
        if all(chain.steps < FOR_EVER for chain in self.length):
            return found
        return [
            search if search.propagation is None else replace(search, propagation=search.propagation.at_every_age())
            for search in found
        ]

    def anew(self) -> "ProtectedStretch":
        """Return the same with new searches, so that what it proves does not depend on what was asked before."""
        return ProtectedStretch(self.theta, self.length, self.steps, near=self.near)

    def of(
        self, steps: int, *, near: Mask | None = None, found: Sequence[ChainSearch] | None = None
    ) -> "ProtectedStretch":
        """Return the same for another stretch, with the same searches, or with others that know what is asked."""
        other = ProtectedStretch(self.theta, self.length, steps, near=near)
        other.__dict__["searches"] = self.searches if found is None else found
        return other

    def _bound(self, search: ChainSearch, chain: BlockLoss) -> StretchBound:
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

    def _by_propagation(self, search: ChainSearch, propagation: ChainPropagation, chain: BlockLoss) -> StretchBound:
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

    def _by_forgetting(self, theta: int, member: ForgettingClass, chain: BlockLoss) -> StretchBound:
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


class StretchEngine(Engine):
    """What losses tell of a stretch, as an engine of an influence bound; it takes losses of steps as they are."""

    def __init__(self, theta: Theta, length: Sequence[ChainLength], protection: StretchProtection) -> None:
        near = protection.near(theta.states)
        self._stretch = ProtectedStretch(theta, length, protection.steps_of(length), near=near)

    takes_steps = True

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage of losses, and say where it is attained."""
        stretch = self._stretch.anew()
        self._last = losses.key, stretch.searches
        return stretch.prove(losses)

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterable[Bound]:
        """Return the least number found that divides the losses so that a stretch leaks at most epsilon."""
        divisor = self._stretch.anew().least_divisor(losses, epsilon)
        return [(divisor, self.leakage(losses.divided(divisor), epsilon)[1] if 0 < divisor < np.inf else None)]


def leakage_of_series(losses: BlockLoss) -> float:
    """Return what a release tells of all records of a chain together: the sum of its losses, rounded up.

    It needs no model of the records: a person whose records are this chain is hidden by so much.
    """
    total = total_of(losses)[0]
    if not losses.step or not total < math.inf:
        return total
    steps = min(losses.length.records, losses.length.steps) - 1
    return float_up(Fraction(total) + Fraction(losses.step) * steps)


def _not_covered(theta: Any) -> str | None:
    for _, part in theta.parts:
        if not part.of_chains or not (part.members or isinstance(part, _CONTINUA)):
            known = "Markov chains, chains between bounds and forgetting classes"
            return f"it covers {known}, and Θ is a class of {part.kind}"
    return next((reason for _, part in theta.parts for one in part.members if (reason := too_large(one))), None)


_CONTINUA = (BinaryChainInterval, IntervalChain, ForgettingClass)
"""Those that :func:`searches` knows."""


def _as_near(given: ArrayLike, k: int) -> Mask:
    near = np.array(given)
    if (
        near.dtype != np.bool_
        or near.shape != (k, k)
        or not np.all(near.diagonal())
        or not np.array_equal(near, near.T)
    ):
        raise ParameterError(f"near is no symmetric ({k}, {k}) array of bool with a true diagonal")
    return near
