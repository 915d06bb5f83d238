"""Public clocks: which phase a time is at, and how many steps a phase takes."""

from dataclasses import dataclass
from typing import Any

from pufferfish._base.durations import format_micros, parse_duration
from pufferfish._base.words import did_you_mean
from pufferfish.errors import ModelError, ParameterError

__all__ = ["CLOCKS", "Clock", "clock_named", "phase_name", "steps_of_phase"]

_HOUR = 3_600_000_000


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock that everybody can read.

    Parameters
    ----------
    name : str
        How it is called.
    phases : int
        How many phases it goes through.
    micros : int
        How long each of them lasts, in microseconds.
    word : str
        What one phase is.
    at_1970 : int
        The phase that 1970 began in: a Thursday, at midnight.
    """

    name: str
    phases: int
    micros: int
    word: str
    at_1970: int


CLOCKS = {
    clock.name: clock
    for clock in (
        Clock("hour", 24, _HOUR, "hour", 0),
        Clock("weekday", 7, 24 * _HOUR, "day", 3),
        Clock("weekday-hour", 168, _HOUR, "hour", 72),
    )
}
"""Hours count from 0, midnight to 1 o'clock; days from Monday, 0; hours of the week from Monday's first."""


def phase_name(clock: str | None, phase: int) -> str:
    """Return what a phase of a clock is called.

    Examples
    --------
    >>> phase_name("hour", 7), phase_name("weekday-hour", 31), phase_name(None, 2)
    ('7:00 to 8:00', 'Tuesday 7:00 to 8:00', 'phase 2')
    """
    if clock == "weekday":
        return _DAYS[phase % 7]
    if clock in CLOCKS:
        day = f"{_DAYS[phase // 24 % 7]} " if clock == "weekday-hour" else ""
        return f"{day}{phase % 24}:00 to {phase % 24 + 1}:00"
    return f"phase {phase}"


def clock_named(name: Any) -> Clock:
    """Return a clock by its name.

    Raises
    ------
    ParameterError
        If there is none of this name.
    """
    if not isinstance(name, str) or name not in CLOCKS:
        hint = did_you_mean(name, tuple(CLOCKS)) if isinstance(name, str) else ""
        raise ParameterError(f"clock is {name!r}, expected one of {', '.join(map(repr, CLOCKS))}.{hint}")
    return CLOCKS[name]


def steps_of_phase(clock: Clock, step: Any) -> tuple[str, int]:
    """Return a step as text, and how many steps a phase of the clock takes.

    Raises
    ------
    ModelError
        If a phase is no whole number of steps.
    """
    if step is None:
        raise ModelError(
            f'step is missing: with clock="{clock.name}" give the time between records, such as step="1min"'
        )
    try:
        length = parse_duration(step, "step")
    except ParameterError as error:
        raise ModelError(str(error)) from None
    if not length.has_unit:
        raise ModelError(f"step is {step!r} without a unit, expected a length of time such as '1min'")
    micros = int(length.value)
    if micros > clock.micros or clock.micros % micros:
        raise ModelError(
            f"step is {length}, and one {clock.word} of the clock ({format_micros(clock.micros)}) is no whole number "
            "of such steps: use a step that divides it, or plain phases (clock=None) with a matrix for each step"
        )
    return str(length), clock.micros // micros
