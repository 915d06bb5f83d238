"""Engines: what bounds the leakage of record losses under one kind of Θ, and the inverse.

An influence bound is what users see; an engine is what proves, and may ask engines of other bounds. Losses of steps are
charged to records (docs/proofs/transitions.md): a record is part of two steps, of loss δ each, so a bound on the
leakage of d + 2δ covers both. Engines that follow a chain from record to record need less: leakage(d + δ) + δ is a
bound, where the first and the last record of a chain need no δ of their own.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import cached_property
from operator import itemgetter
from typing import Any, ClassVar, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import real_that
from pufferfish._base.progress import BoundedCache
from pufferfish._base.words import number
from pufferfish._core.numbers.rounding import bracket, float_up, or_infinite, up
from pufferfish.errors import ParameterError
from pufferfish.mechanisms.witness import AnyWitness, ForgettingWitness, PropagationWitness, QuiltWitness
from pufferfish.queries.record_loss import BlockLoss, RecordLoss, chains_that_can_decide

# -- From an accuracy to ε: whole units of error ---------------------------------------------------------------------

LEAST_EPSILON = 1e-5  # below it the rounding errors of a proof, about 1e-13 at each record, decide the noise
MOST_EPSILON = 10.0  # above it nobody asks who means to promise something: odds change by a factor of 22,026
LARGEST_ANSWER = 2**60  # in units, that a query may have: sums, and the noise on them, are 64-bit integers
MOST_NUDGES = 30  # so often a noise, or an epsilon, is raised until it is proved to be enough

_Made = TypeVar("_Made")
_Case = TypeVar("_Case")


def accuracy_reached(
    calibrated: Callable[[float], _Made], reaches: Callable[[_Made], bool], leakage: float
) -> _Made | None:
    """Return what is calibrated at the least ε, of four digits from a leakage upwards, that is accurate enough."""
    for step in range(MOST_NUDGES):
        epsilon = four_digits_up(leakage, step)
        if not LEAST_EPSILON <= epsilon < math.inf:
            raise ParameterError(
                f"even the smallest epsilon, {number(LEAST_EPSILON)}, is more accurate than that: ask for a smaller "
                "error"
            )
        calibration = calibrated(epsilon)
        if reaches(calibration):
            return calibration
    return None


def steps_within(accuracy: Any, unit: Fraction) -> int:
    """Return how many whole units an error may have; refuse one not positive, or more than any noise errs."""
    expected = "a positive number, in the units of the query"
    value = real_that(lambda number: 0 < number < math.inf, accuracy, "accuracy", expected)
    steps = math.floor(Fraction(repr(value)) / unit)
    if steps > LARGEST_ANSWER:
        raise ParameterError(f"accuracy is {accuracy!r}, and answers are at most {float(LARGEST_ANSWER * unit):.3g}")
    return steps


def four_digits_up(value: float, more: int = 0) -> float:
    """Return a positive number rounded up to four digits, or so many steps of the last digit above that."""
    exact = Decimal(repr(value))
    last = Decimal(1).scaleb(exact.adjusted() - 3)
    return float((exact / last).to_integral_value(ROUND_CEILING) * last + more * last)


ROUNDING = 1e-8  # share of ε by which noise that leaks too much may do so for its rounding
NO_NOISE = 1e9  # nats: a loss by which next to nothing is hidden
_KEPT = 8  # leakages that an engine remembers: a noise is often verified right after it was found

Bound = tuple[float, AnyWitness | None]
"""A leakage or a divisor, and where it is attained; no witness where there is no secret to protect."""


class Engine(ABC):
    """An upper bound, over every member of Θ, on what record losses leak; and its inverse."""

    takes_steps: ClassVar[bool] = False  # whether it proves losses of steps by itself, and needs no :class:`WithSteps`
    supports_step_losses: bool = False  # whether it follows chains from record to record (transitions.md)
    loses_its_way: bool = False  # whether a proof alone may end at more than the search had proved on its way

    def leakage(self, losses: RecordLoss, enough: float | None = None) -> Bound:
        """Bound the leakage of losses, and say where it is attained; ``enough`` is worth a longer search, if given."""
        return self._proved.of((losses.key, enough), lambda: self.prove(losses, enough))

    @abstractmethod
    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Compute :meth:`leakage`, rounded up: ``inf`` where no bound holds, 0 and None without a secret."""

    def fast_estimate(self) -> Callable[[RecordLoss], float]:
        """Return what says about how much losses leak, quickly: for one search, whose outcome is proved afterwards."""
        return lambda losses: self.leakage(losses)[0]

    @abstractmethod
    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterable[Bound]:
        """Yield numbers that divide the losses so that they leak at most epsilon: the least, and others if it fails."""

    def verify(self, losses: RecordLoss, scale: float, epsilon: float) -> Bound:
        """Bound the leakage of losses over a scale, which a search found for an ε.

        Where the way that the search went is lost, a proof for less noise, searched anew, is one for this.
        """
        bound = self.leakage(losses.divided(scale), epsilon)
        if not self.loses_its_way or bound[0] <= epsilon * (1 + ROUNDING):
            return bound
        divisor, witness = next(iter(self.candidate_scales(losses, epsilon)))
        return (epsilon, witness) if 0 < divisor <= scale else bound

    @cached_property
    def _proved(self) -> BoundedCache[Bound]:
        return BoundedCache(_KEPT)


class Proportional(Engine):
    """An engine whose leakage is in proportion to the losses."""

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterable[Bound]:
        """Return the one that follows from the leakage."""
        total, witness = self.leakage(losses)
        return [(total / epsilon, witness)]


def no_noise(losses: RecordLoss) -> float:
    """Return a divisor that leaves as good as no noise: the smallest loss is a billion nats."""
    # the largest may be that of a state that cannot occur, or of a record that is no secret
    return losses.smallest / NO_NOISE


def largest_bound(bounds: Iterable[Bound]) -> Bound:
    """Return the largest of several values, the first where they are equal; those without any secret do not count."""
    most: Bound | None = None
    for computed, witness in bounds:
        value = or_infinite(computed)
        no_secret = witness is None and value == 0
        if not no_secret and (most is None or not value <= most[0]):
            most = value, witness
    return most or (0.0, None)


def smallest_bound(*bounds: Bound) -> Bound:
    """Return the least of several bounds on the same thing."""
    return min(bounds, key=itemgetter(0))


def largest_divisor(
    cases: Iterable[_Case], leakage: Callable[[_Case, float], Bound], least: Callable[[_Case], Bound], epsilon: float
) -> Bound:
    """Return the largest of the least divisors of cases, passing over those that leak no more than epsilon with it."""
    most: Bound = 0.0, None
    for case in cases:
        if most[0] == math.inf:
            break
        if not most[0] > 0 or not leakage(case, most[0])[0] <= epsilon:
            most = largest_bound((most, least(case)))
    return most


def least_divisor(leakage: Callable[[float], Bound], epsilon: float, start: float, tolerance: float = 1e-6) -> Bound:
    """Return the least number at which a falling leakage is at most epsilon, within ``tolerance``; ∞ if none is."""
    divisor = bracket(lambda x: leakage(x)[0], epsilon, start, tolerance=tolerance, from_above=False).enough
    if divisor == math.inf:
        return math.inf, None
    witness = leakage(divisor)[1]
    return (0.0 if witness is None else divisor), witness


_MOST_EXACT = 4096  # stretches of a profile up to which losses are added exactly


def total_of(losses: BlockLoss) -> Bound:
    """Return what all observed records of a chain cost together, rounded up, and the trivial quilt."""
    heaviest = np.argsort(-losses.largest, kind="stable")
    largest, left = losses.largest[heaviest], losses.length.records
    # no more records than were observed cost anything, wherever they are
    before = np.concatenate([[0], np.cumsum(losses.steps[heaviest])[:-1]])
    times = np.clip(left - before, 0, losses.steps[heaviest])
    total, records = sum_up(largest, times), int(times[largest > 0].sum())
    return total, QuiltWitness(theta=0, length=losses.length.steps, active_quilt=(), nearby=records, influence=0.0)


def sum_up(losses: NDArray[np.float64], times: NDArray[np.int64]) -> float:
    """Return the sum of losses times their numbers, rounded up: exact where it can be held."""
    if not np.all(np.isfinite(losses)):
        return math.inf
    if losses.size <= _MOST_EXACT:
        return float_up(sum(Fraction(float(e)) * int(n) for e, n in zip(losses, times, strict=True)))
    with np.errstate(over="ignore"):  # beyond the largest number it is infinite, which is more
        return up(float(np.sum(losses * times)), 8 * losses.size)


# -- Losses of steps, for every engine -------------------------------------------------------------------------------

_SHORT = 64  # steps of a chain up to which its first and last record are told from the others
_ROUNDED = 1e-9  # what is left of a record's own loss, as a share of that of a step, is a rounding


class WithSteps(Engine):
    """An engine that may be asked about losses of steps too, by one that bounds losses of records."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.loses_its_way = engine.loses_its_way

    def fast_estimate(self) -> Callable[[RecordLoss], float]:
        """Estimate losses of records alone."""
        return self._engine.fast_estimate()

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage of the losses of records that stand for those of steps."""
        if not losses.step:
            return self._engine.leakage(losses, enough)
        step = losses.step if self._engine.supports_step_losses else 0.0
        left = None if enough is None or not enough > step else enough - step
        alone = self._of_records(losses)
        if not alone.largest < math.inf:  # what is added left the range of a double: nothing is proved
            return math.inf, None
        leakage, witness = self._engine.leakage(alone, left)
        if witness is None and leakage == 0:  # there is no secret
            return leakage, witness
        total = up(leakage + step)
        return total, None if witness is None else _with_steps(witness, step, total)

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterable[Bound]:
        """Yield those of the engine for records, where its losses can stand for those of steps; else search."""
        if not losses.step:
            yield from self._engine.candidate_scales(losses, epsilon)
            return
        alone = self._of_records(losses)
        if not self._engine.supports_step_losses:
            yield from self._engine.candidate_scales(alone, epsilon)
            return
        if isinstance(self._engine, Proportional):
            total, witness = self.prove(losses, None)
            yield total / epsilon, witness
            return
        start = losses.step / epsilon
        if alone.largest:
            first, witness = next(iter(self._engine.candidate_scales(alone, epsilon)))
            if witness is None:
                yield first, witness
                return
            start += first if first < math.inf else 0.0
        yield least_divisor(lambda divisor: self.leakage(losses.divided(divisor), epsilon), epsilon, start)

    def _of_records(self, losses: RecordLoss) -> RecordLoss:
        """Return losses of records that stand for those of steps too, of the chains that can decide."""
        charged = _charged if self._engine.supports_step_losses else _twice
        return RecordLoss(tuple(charged(_spread(chain)) for chain in chains_that_can_decide(losses, steps=True)))


class SeveralEngines(Engine):
    """The engines of the parts of a class of mixed kinds, each after the number of its first member."""

    takes_steps = True

    def __init__(self, engines: Sequence[tuple[int, Engine]]) -> None:
        self._engines = engines

    def prove(self, losses: RecordLoss, enough: float | None) -> Bound:
        """Bound the leakage by the largest of the parts."""
        return largest_bound(_of_part(first, engine.leakage(losses, enough)) for first, engine in self._engines)

    def verify(self, losses: RecordLoss, scale: float, epsilon: float) -> Bound:
        """Bound the leakage part by part."""
        return largest_bound(_of_part(first, part.verify(losses, scale, epsilon)) for first, part in self._engines)

    def fast_estimate(self) -> Callable[[RecordLoss], float]:
        """Return the largest estimate of all parts."""
        guesses = [engine.fast_estimate() for _, engine in self._engines]
        return lambda losses: max(guess(losses) for guess in guesses)

    def candidate_scales(self, losses: RecordLoss, epsilon: float) -> Iterable[Bound]:
        """Yield the largest number of those that the parts need, then the largest of those that they need at most."""
        yield largest_divisor(
            self._engines,
            lambda part, divisor: part[1].leakage(losses.divided(divisor), epsilon),
            lambda part: _of_part(part[0], next(iter(part[1].candidate_scales(losses, epsilon)))),
            epsilon,
        )
        yield largest_bound(
            _of_part(first, bound)
            for first, engine in self._engines
            for bound in engine.candidate_scales(losses, epsilon)
        )


def _of_part(first: int, bound: Bound) -> Bound:
    """Return a bound of a part whose first member has a number in the whole."""
    value, witness = bound
    return value, None if witness is None else msgspec.structs.replace(witness, theta=first + witness.theta)


def _spread(chain: BlockLoss) -> BlockLoss:
    """Forget where records are if only their steps are charged, which are next to unobserved records too: all count."""
    if not chain.length.places or not chain.step or chain.largest.any():
        return chain
    return replace(BlockLoss.same_for_all(chain.length.without_positions, np.zeros(())), step=chain.step)


def _charged(chain: BlockLoss) -> BlockLoss:
    """Charge every record the loss of one step; in short chains not the first and the last one."""
    if not chain.step:
        return chain
    more = _plus(chain.stacked, chain.step)
    steps = chain.length.steps
    if chain.of_observed and chain.length.records == steps and 2 <= steps <= _SHORT:
        ends = chain.stacked
        between = [more] if steps > 2 else []
        values, stretches = np.concatenate([ends, *between, ends]), np.array([1, *([steps - 2] if between else []), 1])
        return BlockLoss(chain.length, stretches, values, False, charged=chain.step)
    return replace(chain, values=more, step=0.0, charged=chain.step)


def _twice(chain: BlockLoss) -> BlockLoss:
    """Charge every record the loss of both steps that it is part of."""
    return replace(chain, values=_plus(chain.stacked, 2 * chain.step), step=0.0) if chain.step else chain


def _plus(values: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Return losses with that of a step added between any two states, rounded up."""
    if values.ndim < 3:
        return np.nextafter(values + step, np.inf)
    off_diagonal = ~np.eye(values.shape[-1], dtype=np.bool_)
    return np.where(off_diagonal, np.nextafter(values + step, np.inf), 0.0)


def _with_steps(witness: AnyWitness, step: float, total: float) -> AnyWitness:
    """Say what steps tell as a part of the side of the record on which they are."""
    if not isinstance(witness, PropagationWitness | ForgettingWitness):
        return witness
    inner = 0 < (witness.node if isinstance(witness.node, int) else 0) < witness.length - 1
    past, future = (witness.past, witness.future) if inner else (0.0, 0.0)
    beside = witness.own - step
    own_loss = beside if beside > _ROUNDED * step else 0.0
    left = max(total - own_loss - past - future, 0.0)
    if inner:
        past, future = past + left / 2, future + left / 2
    elif witness.node == 0:
        future = left
    else:
        past = left
    return msgspec.structs.replace(witness, own=own_loss, past=past, future=future)
