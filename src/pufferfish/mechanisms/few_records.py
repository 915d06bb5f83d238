"""Warnings where there are so few records that noise hides what they say.

A value of n records lies in a range that n records span: n times what one of them can move it. Where its interval (the
value ± the error of the noise) is as wide as this range, a release warns; where the error alone is as large, whatever
is released could have been said without the data, and no budget is spent on it unasked. How many records there are is
public, and so is the noise: a warning tells nothing of the data, and is there before anything is spent.
"""

from collections.abc import Sequence

from pufferfish._base.view import counted
from pufferfish.errors import shortened
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import BoundQuery, JointQuery, LinearQuery, StepQuery
from pufferfish.theta.model_class import Theta

__all__ = ["few_as_planned", "few_in_all", "few_in_groups", "few_of_subjects", "nothing_seen"]

_NAMED = 3


def nothing_seen(calibration: Calibration, records: Sequence[int]) -> bool:
    """Whether the noise hides all that each of these numbers of records, of a table or of its groups, would say."""
    return len(_too_few(calibration, calibration.linear, records, 1.0)) == len(records)


def few_in_all(calibration: Calibration, bound: BoundQuery, records: int) -> list[str]:
    """Return the warning that a whole table has too few records, if it has."""
    if not _too_few(calibration, bound, [records], _HALF):
        return []
    error = f"{_least_error(calibration):.3g}"
    return [
        f"The noise hides nearly all: an interval of ± {error} is as wide as the range of what can be true of "
        f"{counted(records, 'row' if calibration.theta.networks else 'record')}. {_REMEDY}"
    ]


def few_as_planned(calibration: Calibration) -> list[str]:
    """Return the same of the records that noise was calibrated for, of which there may be no table yet."""
    records = calibration.bound.rows if calibration.theta.networks else calibration.records
    return few_in_all(calibration, calibration.linear, records)


def few_in_groups(
    calibration: Calibration, bound: BoundQuery, cells: Sequence[Sequence[str]], records: Sequence[int]
) -> list[str]:
    """Return the warning that some groups have too few records, which names the first of them."""
    few = _too_few(calibration, bound, records, _HALF)
    if not few:
        return []
    names = "; ".join(shortened(", ".join(cells[g])) for g in few[:_NAMED]) + ("; …" if len(few) > _NAMED else "")
    whole = "the one group" if len(records) == 1 else f"{len(few):,} of {len(records):,} groups"
    return [
        f"The noise hides nearly all that {whole} would say ({names}): for so few records a value and its error are an "
        "interval as wide as the range of what can be true. Make groups larger, for example by month and not by date. "
        f"{_REMEDY}"
    ]


def few_of_subjects(calibration: Calibration, bound: BoundQuery, records: Sequence[int]) -> list[str]:
    """Return the warning that some subjects have too few records for a value of their own."""
    few = _too_few(calibration, bound, records, _HALF)
    if not few:
        return []
    return [
        f"The noise hides nearly all that the values of {len(few):,} of {counted(len(records), 'subject')} would say: "
        f"for so few records a value and its error are an interval as wide as the range of what can be true. {_REMEDY}"
    ]


_REMEDY = "Take more records, ask for less (one state, coarser bins), or take a larger epsilon."


_HALF = 0.5


def _too_few(calibration: Calibration, bound: BoundQuery, records: Sequence[int], share: float) -> list[int]:
    """Return the places of the numbers of records of whose range the noise's error is such a share or more."""
    span = _span_of_one(bound, calibration.theta)
    if span is None:
        return []
    error = _least_error(calibration) / float(calibration.linear.unit)
    return [place for place, n in enumerate(records) if error >= share * span * n]


def _least_error(calibration: Calibration) -> float:
    """Return the error of the output that has the least noise; what follows from public numbers has none."""
    errors = calibration.accuracies(0.05)
    return float(min(errors[errors > 0], default=0.0))


def _span_of_one(bound: BoundQuery, theta: Theta) -> int | None:
    """Return how many units one record, step, or row of a network can add to an output; None where that differs."""
    if isinstance(bound, JointQuery | StepQuery):
        return 1
    if not isinstance(bound, LinearQuery) or not (theta.networks or (theta.of_chains and bound.factors is None)):
        return None
    return int(bound.spans.max())
