"""Whether the records of a table are one step of a model apart, as its proofs take them to be."""

from typing import Any

from pufferfish._base.durations import parse_duration
from pufferfish.data.sequences import Base, Sequences
from pufferfish.errors import DataError
from pufferfish.theta.model_class import Described


def same_step(one: str, other: str) -> bool:
    """Whether two steps take as long: 60min is 1h, and a number without a unit of time is neither.

    >>> same_step("60min", "1h"), same_step("1", "1us")
    (True, False)
    """
    return parse_duration(one, "step") == parse_duration(other, "step")


def skips_steps(base: Base, step: str) -> bool:
    """Whether records two steps or more apart would count as one step; a chain then seems shorter than it is.

    Lengths that cannot be compared, one with a unit of time and one without, count as too long.

    >>> base = Base(source="day.csv", state="activity", time="time", max_gap="90s")
    >>> skips_steps(base, "1min"), skips_steps(base, "30s"), skips_steps(base, "90")
    (False, True, True)
    """
    longest, one = (parse_duration(length, "step") for length in (base.max_gap or step, step))
    return longest.has_unit != one.has_unit or longest.value >= 2 * one.value


def check_step(data: Any, model: Described) -> None:
    """Refuse records that are not one step of the model apart, or of which nobody says how far apart they are.

    ``data`` are records, or how those of a table that is still to come will be read: a :class:`Base`.

    A model with a clock needs times, and believes no step that is only stated. Times without ``max_gap`` say how far
    apart most records are, and not all: where some are missing, two records would count as neighbours that are not.
    """
    expected = model.step
    if expected is None or not isinstance(data, Sequences | Base):
        return
    base, usual = (data, None) if isinstance(data, Base) else (data.base, data.usual_step)
    clock = model.theta.step is not None
    step = base.step or usual
    if step is None:
        remedy = f" and max_gap='{expected}'" if clock else f", or give step='{expected}' if that is what they are"
        raise DataError(
            f"a step of the model takes {expected}, but the time between the table's records is unknown: give "
            f"time={remedy}"
        )
    if not same_step(step, expected):
        alternative = "" if clock else f"; if the times are wrong, give step='{expected}' without time= and max_gap="
        raise DataError(
            f"a step of the model takes {expected}, but the table's records are {step} apart: use a model of this "
            f"step, or aggregate the table to one record every {expected}{alternative}"
        )
    if base.time is not None and base.max_gap is None and not clock:  # a clock looks at all times anyway
        raise DataError(
            "the table is read without max_gap, so neighbouring records would count as one step of the model "
            f"({expected}) apart, whatever their times; if records are missing, more would leak than is promised. "
            f"Give max_gap='{expected}'; if the times are wrong, give step='{expected}' without time="
        )
    if skips_steps(base, expected):
        raise DataError(
            f"max_gap is {base.max_gap} and a step of the model takes {expected}, so records up to "
            f"{base.max_gap} apart would count as one step, and more would leak than is promised: give "
            f"max_gap='{expected}', and what lies between is unobserved records"
        )
