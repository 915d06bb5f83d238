"""What one noise hides, unit by unit: a near value, a record, an hour, a day, a person, and what holds without Θ.

The same noise promises something of every unit; the larger the unit, the larger ε. Nothing of it costs noise: each row
is a bound on what the losses of the noise tell (``docs/proofs/stretches.md``). Rows are rounded up.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from pufferfish._base.durations import format_micros, parse_duration
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.view import counted
from pufferfish._base.words import number
from pufferfish._core.numbers.rounding import float_up
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.protected import ProtectedStretch, leakage_of_series
from pufferfish.mechanisms.protection import Protection
from pufferfish.queries import FunctionQuery
from pufferfish.queries.record_loss import RecordLoss, chains_that_can_decide, loss_of_query
from pufferfish.theta.states import intervals_of_states

__all__ = ["Promise", "Unit", "promises_of", "promises_with", "units_of"]

_TIMES = (("5min", 300), ("1h", 3_600), ("1d", 86_400), ("7d", 7 * 86_400))
_COUNTS = (10, 100, 1_000)
_SECOND = 1_000_000


class Promise(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """What is promised of one unit.

    Parameters
    ----------
    unit : str
        What is hidden.
    steps : int or None
        Grid steps of a stretch; None where it is none.
    near : bool
        Whether it is about near values only.
    epsilon : float
        What is told of it at most, in nats, rounded up.
    holds : str
        What that means, and what it does not cover, in one sentence.
    """

    unit: str
    steps: int | None
    near: bool
    epsilon: float
    holds: str


_WHOLE = "the whole series of one subject"
_STRETCH = "Any one such stretch, read or not; two separate ones are not covered, and do not add."
_TIME = "It lasts as long as is said where no step takes less than {}."
_NEAR = "Values that are so near each other; not whether a value is above some number or below."
_SERIES = "All records of one subject together, whatever their law is, where they are one chain: group privacy."
_ROW = "All cells of any one row together: a person whose data are one row."
_ALONE = "One record by itself, if no other record tells of it: plain differential privacy of single events."


class Unit(NamedTuple):
    """Something that a noise hides: its words, its steps, what it covers, and how to ask what is told of it."""

    words: str
    steps: int | None
    holds: str
    leakage: Callable[[RecordLoss], float]
    near: bool = False


def promises_of(calibration: Calibration, step: str | None, *, cut: bool = False) -> list[Promise]:
    """Return what a noise promises of every unit, the smallest first.

    Parameters
    ----------
    calibration : Calibration
        The noise.
    step : str or None
        How long a step takes, where that is known.
    cut : bool, default False
        Whether a subject may have several chains: nothing is then promised of its stretches.
    """
    units, measured = units_of(calibration, step, cut=cut), calibration.measured
    if isinstance(measured, FunctionQuery):
        losses = RecordLoss(())
    else:
        losses = loss_of_query(measured, calibration.theta, calibration.length).divided(calibration.unit_scale)
    epsilons = [unit.leakage(losses) for unit in units]
    # what is told of a larger unit at most is told of a smaller one at most; the last one is not about Θ
    least = math.inf
    for i in reversed(range(len(epsilons) - 1)):
        if not units[i].near:
            epsilons[i] = least = min(epsilons[i], least)
    return promises_with(units, epsilons)


def promises_with(units: Sequence[Unit], epsilons: Sequence[float]) -> list[Promise]:
    """Return the promises of units, given what is told of each at most."""
    pairs = zip(units, epsilons, strict=True)
    return [Promise(unit.words, unit.steps, unit.near, epsilon, unit.holds) for unit, epsilon in pairs]


def units_of(calibration: Calibration, step: str | None, *, cut: bool = False) -> list[Unit]:
    """Return the units that a noise promises something of, the smallest first, without computing what.

    Where chains are cut a stretch of a subject, or its whole series, is in several of them, and no bound on one.
    """
    theta, epsilon = calibration.theta, calibration.epsilon
    alone = Unit("one record, without any model", None, _ALONE, _of_one)
    if theta.of_chains and not theta.stands_for_more and not isinstance(calibration.measured, FunctionQuery):
        units = [*_of_chains(calibration, step), alone]
        return [unit for unit in units if unit.steps in (None, 1) and unit.words != _WHOLE] if cut else units
    words, holds = "one cell of a row" if theta.networks else "one record", "Any one value of it against any other."
    if calibration.bound.secrets is not None:
        words, holds = "the secrets that were named", "Which secret of a pair holds."
    own = Unit(words, None, holds, _as_asked(epsilon))
    if isinstance(calibration.measured, FunctionQuery):
        return [own]
    return [own, Unit("a whole row", None, _ROW, _of_row), alone] if theta.networks else [own, alone]


def _of_one(losses: RecordLoss) -> float:
    """Return what holds whatever the law of the records is: event-level differential privacy."""
    most = max(float(chain.largest.max()) + min(2, chain.length.steps - 1) * chain.step for chain in losses.blocks)
    return math.nextafter(most, math.inf) if most else 0.0


def _of_row(losses: RecordLoss) -> float:
    (block,) = losses.blocks
    return float_up(sum(map(Fraction, block.largest.tolist()), Fraction(0)))


def _of_series(losses: RecordLoss) -> float:
    return max(leakage_of_series(chain) for chain in chains_that_can_decide(losses, steps=True))


def _of_chains(calibration: Calibration, step: str | None) -> Iterator[Unit]:
    theta, length, epsilon = calibration.theta, calibration.length, calibration.epsilon
    longest, protection = max(chain.steps for chain in length), calibration.bound.protection

    try:
        first = ProtectedStretch(theta, length, 1)
    except NotApplicableError:
        first = None

    def stretch(steps: int, near: Protection | None = None) -> Callable[[RecordLoss], float] | None:
        mask = None if near is None else near.near(theta.states)

        def leakage(losses: RecordLoss) -> float:
            assert first is not None
            with calibration.bound.searched(losses) as found:
                return first.of(steps, near=mask, found=found).leakage(losses)

        return None if first is None else leakage

    width = _width(theta.states)
    nearest = None if width is None else stretch(1, Protection(1, width))
    if width is not None and nearest is not None:
        yield Unit(f"one record, among values at most {number(width, 17)} apart", 1, _NEAR, nearest, near=True)
    if protection is not None and protection.within is not None:
        yield Unit(protection.in_words(step), protection.steps_of(length), _NEAR, _as_asked(epsilon), near=True)
    one = stretch(1)
    own = calibration.bound.secrets is None and not calibration.delta
    if protection is None and own:  # what its own mechanism proves of any record may be less
        one = _as_asked(epsilon) if one is None else _least_of(_as_asked(epsilon), one)
    if one is not None:
        yield Unit("one record", 1, "The state of one subject at one time, against any other state.", one)
    asked = set() if protection is None else {protection.steps_of(length)}
    for steps, words in sorted(_stretches(step, asked).items()):
        leakage = stretch(steps) if 1 < steps < longest else None
        if leakage is not None:
            yield Unit(words, steps, _STRETCH if step is None else f"{_STRETCH} {_TIME.format(step)}", leakage)
    yield Unit(_WHOLE, longest, _SERIES, _of_series)


def _as_asked(epsilon: float) -> Callable[[RecordLoss], float]:
    """Return what is told of the unit that was asked for: the mechanism proves it."""

    def leakage(losses: RecordLoss) -> float:
        return epsilon

    return leakage


def _least_of(
    one: Callable[[RecordLoss], float], other: Callable[[RecordLoss], float]
) -> Callable[[RecordLoss], float]:
    return lambda losses: min(one(losses), other(losses))


def _stretches(step: str | None, asked: set[int]) -> dict[int, str]:
    """Return stretches that people ask about, and those that were asked for, in steps, with their words."""
    one = None if step is None else parse_duration(step, "step")
    if one is None or not one.has_unit or not isinstance(one.value, int):
        return {steps: f"{counted(steps, 'step')} in a row" for steps in {*_COUNTS, *asked}}
    words = {steps: format_micros(one.value * steps) for steps in asked}
    words |= {-(-seconds * _SECOND // one.value): text for text, seconds in _TIMES}
    return {steps: f"{text} ({counted(steps, 'step')} in a row)" for steps, text in words.items()}


def _width(states: tuple[str, ...]) -> float | None:
    """Return the width of the widest inner bin, or the largest step between numbers; None for other states."""
    intervals = intervals_of_states(states)
    if intervals is None or len(states) <= 2:
        return None
    if all(low == high for low, high in intervals):
        values = sorted(low for low, _ in intervals if low is not None)
        widest = max(b - a for a, b in pairwise(values))
    else:
        widest = max(high - low for low, high in intervals if low is not None and high is not None)
    width = float(widest)  # its decimals are what counts
    return width if Fraction(repr(width)) >= widest else math.nextafter(width, math.inf)
