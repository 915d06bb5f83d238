"""Leakage propagation on chains, as engines: of one record, and of any so many steps in a row, an hour or a day.

Of one record it is the least of what propagation and Markov quilts prove. Stretches are those of
docs/proofs/stretches.md: all events about the values of n grid steps in a row of one chain, unread steps too. Where the
sum of all losses of a chain is less, that is the bound: it covers a person whose records are one chain.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import report_progress
from pufferfish._core.numbers.rounding import float_up, up
from pufferfish._core.propagation.chain import Attained, ChainPropagation, TuplePropagation, ends_apart
from pufferfish._core.propagation.forgetting import told_by_stretch
from pufferfish._core.propagation.past_and_future import AnyPast
from pufferfish._core.propagation.steps import Steps
from pufferfish._core.propagation.sweep import Run, folded
from pufferfish._core.quilts.chain_search import LeakThrough, Objective, Score
from pufferfish._core.strategies import mean_shifts
from pufferfish.mechanisms.binary_interval import BinaryPropagation
from pufferfish.mechanisms.engine import Bound, Engine, largest_bound, largest_divisor, least_divisor, total_of
from pufferfish.mechanisms.group_dp import ChainGroups, EntryDP, IndependentRecords
from pufferfish.mechanisms.mqm_exact import ExactQuilts
from pufferfish.mechanisms.witness import AnyWitness, PhaseWitness, PropagationWitness, QuiltWitness, StretchWitness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide
from pufferfish.theta.continua import BinaryChainInterval, ForgettingClass, IntervalChain
from pufferfish.theta.lengths import FOR_EVER, ChainLength
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.model_class import Theta
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.tuple_chains import HigherOrderChain, StaysChain

MOST_STATES = 80  # chains with more are left to quilts: a step grows like the fourth power of their number
_MOST_RUNS = 4096  # profiles that change more often are rounded up to so many runs, unless they repeat themselves
_MOST_REPEATED = 2**16  # changes up to which it is looked whether a profile repeats itself: seven years of hours
_MOST_IN_CYCLE = 1e7  # steps of a period times the third power of the states: what trees are kept for in memory
_UNLIKELY = 1e-9  # with transitions less likely than this initial laws are not searched one by one
AnyChain = MarkovChain | IntervalChain | PeriodicChain | HigherOrderChain | StaysChain  # what a member of Θ is


@dataclass(frozen=True, slots=True, eq=False)
class _Member:
    """A member of Θ, or an interval class, with the bounds that stand beside propagation, where it has them."""

    chain: AnyChain
    quilts: ExactQuilts | None
    alone: IndependentRecords | None
    every_law: BinaryPropagation | None


@dataclass(frozen=True, slots=True, eq=False)
class ChainSearch:
    """A member of Θ, by its number, with as little memory as it can; and a search, where it can be followed."""

    theta: int
    chain: AnyChain | ForgettingClass
    propagation: ChainPropagation | None


def _propagation(chain: AnyChain) -> ChainPropagation | None:
    """Return a new search, so that what it proves does not depend on what was asked before."""
    if chain.k > MOST_STATES:
        return None
    if isinstance(chain, IntervalChain):
        return ChainPropagation.between(chain.lower, chain.upper)
    if isinstance(chain, PeriodicChain):
        return ChainPropagation(chain.cycle, chain.initial_distribution)
    start = chain.initial_distribution
    if isinstance(chain, HigherOrderChain | StaysChain):
        return TuplePropagation(chain.kernel, chain.tuples, start if isinstance(start, str) else start.ravel())
    return ChainPropagation(chain.transition_matrix, start)


def spreads(chain: AnyChain | ForgettingClass, losses: BlockLoss) -> float:
    """Return about how many times its own loss a record leaks, where losses are small: a first guess."""
    if isinstance(chain, IntervalChain | ForgettingClass):
        return 1.0
    observed = float(losses.steps[losses.largest > 0].sum())
    if isinstance(chain, HigherOrderChain | StaysChain):  # what is not seen of a record lasts, and tells too
        shifts = mean_shifts(chain.kernel, observed) @ np.eye(chain.k)[chain.tuples[:, 0]]
    else:
        shifts = mean_shifts(chain.mean_matrices[0], observed)
    return max(1.0, float(np.abs(shifts[:, None] - shifts[None]).sum(axis=2).max()) / 2)


def searches(theta: Theta) -> list[ChainSearch]:
    """Return a new search for every member of a class of chains, in order."""
    parts = theta.parts
    if len(parts) > 1:
        return [replace(search, theta=first + search.theta) for first, part in parts for search in searches(part)]
    if isinstance(theta, ForgettingClass):
        return [ChainSearch(0, theta, None)]
    if isinstance(theta, BinaryChainInterval):
        of_corner = _CornerUnderAnyLaw if theta.initial_distribution == "any" else ChainPropagation
        corners = theta.some_members  # p0 = p1 = high, and p0 = p1 = low
        return [ChainSearch(0, chain, of_corner(chain.transition_matrix, "stationary")) for chain in corners]
    return _searches_of([_member(chain) for chain in _chains(theta)])


def _searches_of(members: Sequence[_Member]) -> list[ChainSearch]:
    return [ChainSearch(i, member.chain, _propagation(member.chain)) for i, member in enumerate(members)]


class _CornerUnderAnyLaw(ChainPropagation):
    """A corner under any law (intervals.md, "The two corners"): what its own first record leads to is not used."""

    def __init__(self, matrix: NDArray[np.float64], initial: Literal["stationary"]) -> None:
        super().__init__(matrix, initial)
        self._past = AnyPast(Steps(matrix), ages=False)


class ChainLeakage(Engine):
    """Leakage of every chain of a class, the least that propagation and quilts prove."""

    loses_its_way = True

    def __init__(self, theta: Theta) -> None:
        self._theta = theta
        self._members = [_member(chain) for chain in _chains(theta)]
        # not where records are followed in tuples: those hold steps themselves
        self.supports_step_losses = not any(isinstance(member.chain, HigherOrderChain) for member in self._members)

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage by the worst member and chain."""
        most: Bound = 0.0, None
        for case in self._each(losses, _searches_of(self._members)):
            most = largest_bound((most, self._one(*case, idle=most[0])))
        return most

    def fast_estimate(self) -> Callable[[RecordLoss], float]:
        """Return what says about what propagation proves; all bounds, where some members have no propagation."""
        # all answers share one search for each member: what they have in common is computed once
        propagations = [_propagation(member.chain) for member in self._members]
        followed = [propagation for propagation in propagations if propagation is not None]
        if len(followed) < len(propagations):
            return super().fast_estimate()

        def guess(losses: RecordLoss) -> float:
            runs = [as_runs(chain, self._theta.k) for chain in chains_that_can_decide(losses)]
            return max(propagation.guess(run) for propagation in followed for run in runs)

        return guess

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterator[Bound]:
        """Yield the least noise found, then that of quilts alone, whose proof does not depend on a search for flows."""
        yield self._least_divisor(losses, epsilon)
        engines: list[Engine] = [member.alone or member.quilts or ChainGroups() for member in self._members]
        yield largest_bound(bound for engine in engines for bound in engine.candidate_scales(losses, epsilon))

    def _one(self, theta: int, propagation: ChainPropagation | None, chain: BlockLoss, idle: float = 0.0) -> Bound:
        """Leakage of one chain under one θ, the least at hand; or one not above ``idle``, which cannot decide."""
        member = self._members[theta]
        if member.alone is not None:
            return _of(theta, *member.alone.leakage(RecordLoss((chain,))))
        anyhow = self._followed(theta, propagation, chain, idle)
        if member.every_law is None:
            return anyhow
        by_law = member.every_law.leakage(RecordLoss((chain,)))
        return _of(theta, *by_law) if by_law[0] <= anyhow[0] else anyhow

    def _followed(self, theta: int, propagation: ChainPropagation | None, chain: BlockLoss, idle: float) -> Bound:
        if propagation is None:
            return self._by_others(theta, chain, LeakThrough()) or (math.inf, None)
        attained = propagation.leakage(as_runs(chain, self._theta.k))
        if attained.node == 0:
            return 0.0, None
        proved = attained.total, self._witness(attained, theta, chain)
        if attained.total <= idle:
            return proved
        return self._by_others(theta, chain, LeakThrough(), attained.total, attained.node) or proved

    def _by_others(
        self, theta: int, chain: BlockLoss, objective: Objective, value: float = math.inf, node: int | None = None
    ) -> Bound | None:
        """Return what quilts prove, or the sum of all losses where there are none, if it is less than ``value``."""
        quilts = self._members[theta].quilts
        if quilts is None:
            total = objective(total_of(chain)[0], 0.0)
            bound = (total, _all_of(chain)) if total < value else None
        else:  # the record that decided elsewhere is asked first
            bound = quilts.less_than(value, chain, node or _middle_of_the_heaviest(chain), objective)
        return None if bound is None else _of(theta, *bound)

    def _least_divisor(self, losses: RecordLoss, epsilon: float) -> Bound:
        return largest_divisor(
            self._each(losses, _searches_of(self._members)),
            lambda case, divisor: self._one(*case[:2], case[2].divided(divisor), idle=epsilon),
            lambda case: _of(case[0], *self._one_divisor(*case, epsilon)),
            epsilon,
        )

    def _one_divisor(self, theta: int, propagation: ChainPropagation | None, chain: BlockLoss, epsilon: float) -> Bound:
        """Least divisor of one chain under one θ, and a witness; none where there is no secret."""
        member, score = self._members[theta], Score(epsilon)
        if member.alone is not None:
            return largest_bound(member.alone.candidate_scales(RecordLoss((chain,)), epsilon))
        best: Bound = math.inf, None
        if member.every_law is not None:
            (best,) = member.every_law.candidate_scales(RecordLoss((chain,)), epsilon)
        node = None
        if propagation is not None:
            runs = as_runs(chain, self._theta.k)
            start = spreads(member.chain, chain) * float(chain.largest.max()) / epsilon
            divisor = propagation.least_divisor(runs, epsilon, start) if start > 0 else math.inf
            if divisor < math.inf:
                attained = propagation.leakage([run.divided(divisor) for run in runs])
                if attained.node == 0:
                    return 0.0, None
                node = attained.node
                if divisor < best[0]:
                    best = divisor, self._witness(attained, theta, chain)
        return self._by_others(theta, chain, score, best[0], node) or best

    def _each(
        self, losses: RecordLoss, new: Sequence[ChainSearch]
    ) -> Iterator[tuple[int, ChainPropagation | None, BlockLoss]]:
        """Yield every member of Θ with every chain that can decide; the chains of a member share one new search."""
        chains = list(chains_that_can_decide(losses))
        # those that seem to leak most come first: of the others it is enough that they leak no more
        first = sorted(new, key=lambda search: -spreads(search.chain, chains[0])) if chains and len(new) > 1 else new
        for i, search in enumerate(first):
            for c, chain in enumerate(chains):
                report_progress("propagating leakage", (i + c / len(chains)) / len(new))
                yield search.theta, search.propagation, chain

    def _witness(self, attained: Attained, theta: int, chain: BlockLoss) -> PropagationWitness:
        states, (x, x_) = self._theta.states, attained.pair
        witness = PropagationWitness(
            theta=theta,
            length=chain.length.steps,
            node=attained.node - 1,
            secret_pair=(states[x], states[x_]),
            own=attained.own,
            past=attained.past,
            future=attained.future,
        )
        member = self._members[theta].chain
        if isinstance(member, PeriodicChain) and attained.phase is not None:
            return PhaseWitness(**msgspec.structs.asdict(witness), phase=member.phase_of(attained.phase))
        return witness


def can_be_followed(theta: Theta) -> bool:
    """Whether :func:`searches` knows every member of a class of chains, and none is too large."""
    known = BinaryChainInterval | IntervalChain | ForgettingClass
    return all(
        (part.members or isinstance(part, known)) and not any(map(too_large, part.members)) for _, part in theta.parts
    )


def too_large(member: Any) -> str | None:
    """Return why a chain with a clock, or with more memory, cannot be propagated, or None."""
    most = f"at most {MOST_STATES} are possible here"
    if isinstance(member, HigherOrderChain) and (values := member.k**member.order) > MOST_STATES:
        has = f"{member.order} records in a row have {values:,} values"
        return f"{has}, but {most}: merge states, or use a lower order, or GroupDP"
    if isinstance(member, StaysChain) and (kinds := len(member.tuples)) > MOST_STATES:
        has = f"its states have {kinds:,} kinds of stay together"
        return f"{has}, but {most}: fit fewer kinds, merge states, or use GroupDP"
    if isinstance(member, PeriodicChain) and (k := member.k) > MOST_STATES:
        may = f"chains with a clock may have at most {MOST_STATES} states here"
        return f"{may}, but these have {k}: merge states, or use GroupDP"
    if isinstance(member, PeriodicChain) and (steps := len(member.cycle)) * member.k**3 > _MOST_IN_CYCLE:
        remedy = "merge states, or use a longer step, a clock with fewer phases, or GroupDP"
        return f"a period of {steps:,} steps with {member.k} states is too large: {remedy}"
    return None


def _all_of(chain: BlockLoss) -> QuiltWitness:
    """Return the witness of the sum of all losses of a chain: the trivial quilt, around its heaviest record."""
    steps, node = chain.length.steps, _middle_of_the_heaviest(chain) - 1
    return QuiltWitness(theta=0, length=steps, node=node, active_quilt=(), nearby=steps, influence=0.0)


def _middle_of_the_heaviest(chain: BlockLoss) -> int:
    """Return a record, 1-based, in the middle of the stretch with the largest loss."""
    heaviest = int(np.argmax(chain.largest))
    return int(chain.steps[:heaviest].sum() + (chain.steps[heaviest] + 1) // 2)


def _of(theta: int, leakage: float, witness: AnyWitness | None) -> Bound:
    return leakage, None if witness is None else msgspec.structs.replace(witness, theta=theta)


def as_runs(losses: BlockLoss, k: int) -> list[Run]:
    """Return a chain's losses as runs of records with the same loss; profiles with very many are rounded up."""
    off_diagonal = ~np.eye(k, dtype=np.bool_)
    values = losses.stacked if losses.stacked.ndim == 3 else losses.stacked[:, None, None]
    together = 1 if _repeats(losses.steps, values) else -(-len(values) // _MOST_RUNS)
    runs = list[Run]()
    for i in range(0, len(values), together):
        loss = values[i : i + together].max(axis=0) * off_diagonal
        # a record that has no step beside it is not charged one: then no loss of another state is so large
        within = min(losses.charged, float(loss.min(initial=math.inf, where=off_diagonal)))
        runs.append(Run(int(losses.steps[i : i + together].sum()), loss, within))
    return runs


def _repeats(steps: NDArray[np.int64], values: NDArray[np.float64]) -> bool:
    """Whether a profile with very many stretches has few once it is folded."""
    if not _MOST_RUNS < len(values) <= _MOST_REPEATED:
        return False
    return len(folded([(int(n), value.tobytes()) for n, value in zip(steps, values, strict=True)]).kept) <= _MOST_RUNS


def _chains(theta: Theta) -> Sequence[AnyChain]:
    members: Any = theta.members
    return (theta,) if isinstance(theta, IntervalChain) else members


def _member(chain: AnyChain) -> _Member:
    if isinstance(chain, PeriodicChain | HigherOrderChain | StaysChain):
        least = chain.reduced  # a clock with one phase is none, nor are stays of one kind
        return _Member(least, None, None, None) if not isinstance(least, MarkovChain) else _member(least)
    if isinstance(chain, IntervalChain):
        return _Member(chain, ExactQuilts(chain), None, None)
    alone = IndependentRecords(chain) if EntryDP.supports(chain) is None else None
    start, likely = chain.initial_distribution, bool(np.all(chain.transition_matrix > _UNLIKELY))
    by_law = chain.k == 2 and isinstance(start, str) and start == "any" and likely
    return _Member(chain, ExactQuilts(chain), alone, BinaryPropagation(chain) if by_law else None)


# -- Stretches ---------------------------------------------------------------------------------------------------------


class ProtectedStretch(Engine):
    """What losses tell of any so many steps of a chain in a row; with ``near`` of courses that are near at each."""

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
        return self.told(self.new_searches(), losses)

    def told(self, known: Sequence[ChainSearch], losses: RecordLoss) -> Bound:
        """Bound the leakage with searches that may know what they were asked before."""
        return largest_bound(self._bound(*case) for case in product(known, chains_that_can_decide(losses, steps=True)))

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

        return [
            largest_divisor(
                product(self.new_searches(), chains_that_can_decide(losses, steps=True)), leakage, least, epsilon
            )
        ]

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
        told = {"own": total, "past": 0.0, "future": 0.0}
        return total, StretchWitness(theta=search.theta, length=length, node=0, by="series", steps=length, **told)

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
        told = {"own": parts.own, "past": parts.past, "future": parts.future}
        return total, StretchWitness(theta=theta, length=length, node=parts.node, by="forgetting", steps=steps, **told)


def leakage_of_series(losses: BlockLoss) -> float:
    """Return what a release tells of all records of a chain together, whatever their law is: the sum of its losses."""
    total = total_of(losses)[0]
    if not losses.step or not total < math.inf:
        return total
    steps = min(losses.length.records, losses.length.steps) - 1
    return float_up(Fraction(total) + Fraction(losses.step) * steps)
