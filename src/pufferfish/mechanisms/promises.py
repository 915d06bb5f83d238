"""What one noise hides, unit by unit: a near value, a record, an hour, a day, a person, and what holds without Θ.

The same noise promises something of every unit; the larger the unit, the larger ε. Nothing of it costs noise: each row
is a bound on what the losses of the noise tell (``docs/proofs/stretches.md``). Rows are rounded up.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from pufferfish._base.durations import parse_duration
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.view import counted
from pufferfish._base.words import number
from pufferfish._core.numbers.rounding import float_up
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.protected import ProtectedStretch, leakage_of_series
from pufferfish.mechanisms.protection import Protection, step_of
from pufferfish.queries import FunctionQuery
from pufferfish.queries.record_loss import RecordLoss, chains_that_can_decide, loss_of_query
from pufferfish.theta.states import intervals_of_states

__all__ = ["Promise", "promises_of"]

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
    epsilon : float
        What is told of it at most, in nats, rounded up.
    holds : str
        What that means, and what it does not cover, in one sentence.
    """

    unit: str
    steps: int | None
    epsilon: float
    holds: str


_STRETCH = "Any one such stretch, read or not; two separate ones are not covered, and do not add."


def promises_of(calibration: Calibration, step: str | None = None) -> list[Promise]:
    """Return what a noise promises of every unit, the smallest first.

    Parameters
    ----------
    calibration : Calibration
        The noise.
    step : str, optional
        How long a step takes; by default what the model of Θ, or its clock, says.
    """
    measured, theta = calibration.measured, calibration.theta
    if isinstance(measured, FunctionQuery):
        return [_record(calibration)]
    losses = loss_of_query(measured, theta, calibration.length).divided(calibration.unit_scale)
    if theta.of_chains and not theta.stands_for_more:
        return [*_of_chains(calibration, losses, step or step_of(theta, calibration.bound.model)), _alone(losses)]
    if theta.networks:
        (block,) = losses.blocks
        row = float_up(sum(map(Fraction, block.largest.tolist()), Fraction(0)))
        holds = "All cells of any one row together: a person whose data are one row."
        return [_record(calibration), Promise("a whole row", None, row, holds), _alone(losses)]
    return [_record(calibration), _alone(losses)]


def _record(calibration: Calibration) -> Promise:
    unit = "one cell of a row" if calibration.theta.networks else "one record"
    named = calibration.bound.secrets is not None
    holds = "Which secret of a pair holds." if named else "Any one value of it against any other."
    return Promise("the secrets that were named" if named else unit, None, calibration.epsilon, holds)


def _alone(losses: RecordLoss) -> Promise:
    """Return what holds whatever the law of the records is: event-level differential privacy."""
    most = max(float(chain.largest.max()) + min(2, chain.length.steps - 1) * chain.step for chain in losses.blocks)
    holds = "One record by itself, if no other record tells of it: plain differential privacy of single events."
    return Promise("one record, without any model", None, math.nextafter(most, math.inf) if most else 0.0, holds)


def _of_chains(calibration: Calibration, losses: RecordLoss, step: str | None) -> Iterator[Promise]:
    theta, length = calibration.theta, calibration.length
    longest = max(chain.steps for chain in length)
    protection = calibration.bound.protection

    def stretch(steps: int, within: float | None = None) -> float | None:
        near = None if within is None else Protection(steps, within).near(theta.states)
        try:
            return ProtectedStretch(theta, length, steps, near=near).leakage(losses)
        except NotApplicableError:
            return None

    within = _width(theta.states)
    nearest = None if within is None else stretch(1, within)
    if within is not None and nearest is not None:
        holds = "Values that are so near each other; not whether a value is above some number or below."
        yield Promise(f"one record, among values at most {number(within, 6)} apart", 1, nearest, holds)
    one = stretch(1)
    if protection is None:  # what its own mechanism proves may be less
        one = calibration.epsilon if one is None else min(calibration.epsilon, one)
    if one is not None:
        yield Promise("one record", 1, one, "The state of one subject at one time, against any other state.")
    asked: dict[int, str] = {} if protection is None else {protection.steps_of(length): protection.in_words(step)}
    for steps, words in sorted((_stretches(step) | asked).items()):
        epsilon = stretch(steps) if 1 < steps < longest else None
        if epsilon is not None:
            yield Promise(words, steps, epsilon, _STRETCH)
    series = max(leakage_of_series(chain) for chain in chains_that_can_decide(losses, steps=True))
    holds = "All records of one subject together, whatever their law is, where they are one chain: group privacy."
    yield Promise("the whole series of one subject", longest, series, holds)


def _stretches(step: str | None) -> dict[int, str]:
    """Return stretches that people ask about, in steps, with their words."""
    one = None if step is None else parse_duration(step, "step")
    if one is None or not one.has_unit or not isinstance(one.value, int):
        return {steps: f"{counted(steps, 'step')} in a row" for steps in _COUNTS}
    each = {-(-seconds * _SECOND // one.value): words for words, seconds in _TIMES}
    return {steps: f"{words} ({counted(steps, 'step')} in a row)" for steps, words in each.items()}


def _width(states: tuple[str, ...]) -> float | None:
    """Return the width of the widest inner bin, or the largest step between numbers; None for other states."""
    intervals = intervals_of_states(states)
    if intervals is None or len(states) <= 2:
        return None
    if all(low == high for low, high in intervals):
        values = sorted(low for low, _ in intervals if low is not None)
        return float(max(b - a for a, b in pairwise(values)))
    return float(max(high - low for low, high in intervals if low is not None and high is not None))
