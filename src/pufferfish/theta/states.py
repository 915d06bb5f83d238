"""State names: what a table calls its states, as text that survives CSV, Parquet and JSON.

A table may hold states as integers, text, booleans, or (after a missing value crept into a pandas column)
as floats or decimals. Models, queries and releases name states by one canonical label, so that ``1``, ``1.0`` and
``"1"`` are the same state wherever they come from.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple, cast

from pufferfish._base.checked import is_list
from pufferfish._base.durations import format_micros, parse_duration
from pufferfish._base.words import composed, did_you_mean, names_of, unseen_difference
from pufferfish.errors import ModelError, ParameterError, shortened

MOST_STATES = 2_000  # so many states a table, and a class that is told by little more than their names, may have

# -- States that are numbers, or bins of numbers ---------------------------------------------------------------------


def intervals_of_states(states: Sequence[str]) -> list[tuple[Fraction | None, Fraction | None]] | None:
    """Return from where to where the values of each state are; None where states are neither numbers nor bins.

    A number is an interval of one value. The first bin has no lower end and the last one no upper end: None.

    >>> [[end and int(end) for end in state] for state in intervals_of_states(["<200", "200-400", ">=400"])]
    [[None, 200], [200, 400], [400, None]]
    >>> [int(low) for low, _ in intervals_of_states(["3", "-1"])], intervals_of_states(["rest", "walk"])
    ([3, -1], None)
    """
    if all(_NUMBER.fullmatch(state) for state in states):
        numbers = [Fraction(state) for state in states]
        return [(number, number) for number in numbers]
    edges = [states[0].removeprefix("<")]
    for state in states[1:-1]:  # a bin begins at the edge where the one before it ends
        edges.append(state.removeprefix(f"{edges[-1]}-"))
    named = len(states) > 1 and all(_NUMBER.fullmatch(edge) for edge in edges)
    middle = [f"{low}-{high}" for low, high in pairwise(edges)]
    if not named or list(states) != [f"<{edges[0]}", *middle, f">={edges[-1]}"]:
        return None
    ends = [None, *map(Fraction, edges), None]
    return list(pairwise(ends))


_NUMBER = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?(?:e[+-]?\d{1,3})?", re.ASCII)


# -- Public clocks: which phase a time is at -------------------------------------------------------------------------

_HOUR = 3_600_000_000

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Clock(NamedTuple):
    """A public clock: its phases, what one is in a ``word``, and in which 1970 began: on a Thursday, at midnight."""

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
    """Return a clock by its name."""
    if not isinstance(name, str) or name not in CLOCKS:
        hint = did_you_mean(name, tuple(CLOCKS)) if isinstance(name, str) else ""
        raise ParameterError(f"clock is {name!r}, expected one of {', '.join(map(repr, CLOCKS))}.{hint}")
    return CLOCKS[name]


def steps_of_phase(clock: Clock, step: Any) -> tuple[str, int]:
    """Return a step as text, and how many steps a phase of the clock takes."""
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
            f"step is {length}, and one {clock.word} of the clock ({format_micros(clock.micros)}) is not a whole "
            "number of such steps: use a step that divides it, or plain phases (clock=None) with a matrix for each step"
        )
    return str(length), clock.micros // micros


_MANY_DIGITS = 300  # of a decimal that is left as it is written


def state_label(value: Any) -> str:
    """Canonical label of one state.

    >>> state_label(1), state_label(1.0), state_label("1"), state_label(True), state_label("walking")
    ('1', '1', '1', 'true', 'walking')
    >>> state_label(Decimal("1.0")), state_label(Decimal("0.50"))
    ('1', '0.5')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}:
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _MANY_DIGITS:
        return str(int(value)) if value == value.to_integral_value() else state_label(float(value))
    if isinstance(value, Real) and float(value).is_integer():
        return str(int(float(value)))
    return str(value)


def refuse_missing(value: Any, argument: str) -> None:
    """Refuse None and NaN as a name: they stand for what is missing, and a record with no value is in no state."""
    nan = isinstance(value, Real | Decimal) and value != value
    if value is None or nan or type(value).__name__ in {"NAType", "NaTType"}:
        raise ModelError(f"{argument} is {value!r}, expected a name: None and NaN mean missing values")


def listed_names(given: Any, argument: str, example: str = '["rest", "walk"]') -> tuple[Any, ...]:
    """Return the names in a sequence, whose labels are distinct: of states, or of records."""
    if not is_list(given):
        shown = shortened(repr(cast("object", given)))
        raise ModelError(f"{argument} is {shown}, expected a list of names such as {example}")
    names: tuple[Any, ...] = tuple(given)
    seen: dict[str, str] = {}
    for i, name in enumerate(names):
        refuse_missing(name, f"{argument}[{i}]")
        label = state_label(name)
        before = seen.setdefault(composed(label), label)
        if i >= len(seen):
            unseen = unseen_difference(label, before)
            message = f"{argument}[{i}] repeats the name {shortened(label)!r}: give each its own name.{unseen}"
            raise ModelError(message.rstrip("."))
    return names


def listed_labels(given: Any, argument: str, example: str = '["rest", "walk"]') -> tuple[str, ...]:
    """Return the labels of a sequence of distinct names; see :func:`listed_names`.

    >>> listed_labels([1, 2.0], "states")
    ('1', '2')
    """
    return tuple(map(state_label, listed_names(given, argument, example)))


def check_number_of_states(names: Sequence[str]) -> None:
    """Refuse more states than there may be: tables of pairs of them are made, however short their list is in a file."""
    if len(names) > MOST_STATES:
        raise ModelError(f"states has {len(names):,} names, expected at most {MOST_STATES:,}: merge states")


def state_names(states: Any, k: int) -> tuple[str, ...]:
    """Return the labels of k states, which are numbered where they have no names."""
    names = listed_labels(range(k) if states is None else states, "states")
    if len(names) != k:
        raise ModelError(f"states has {len(names)} names, expected {k}: one per row of transition_matrix")
    return names


# -- Names on what probabilities are given in ------------------------------------------------------------------------


def states_by_labels(given: Any, states: Sequence[Any] | None, argument: str) -> Sequence[Any] | None:
    """Return the states, those of the labels where none are given; refuse labels that say something else.

    Probabilities are taken by position, so labels in another order would give them to other states. Frames and series
    of pandas, frames of polars and tables of Arrow have labels, also inside lists. Labels 0, 1, … are none, unless the
    states are these numbers.

    >>> import pandas
    >>> states_by_labels(pandas.Series([0.2, 0.8], index=["rest", "walk"]), None, "initial_distribution")
    ['rest', 'walk']
    >>> states_by_labels([[0.9, 0.1], [0.4, 0.6]], ["rest", "walk"], "transition_matrix")
    ['rest', 'walk']
    """
    axes = [list(axis) for axis in _axes(given)]
    if not axes or (states is not None and not is_list(states)):
        return states
    if states is None:
        states = next((axis for axis in axes if not _is_numbered(axis)), None)
    if states is None:
        return None
    names = [state_label(name) for name in states]
    for axis in axes:
        labels = [state_label(name) for name in axis]
        if labels != names and not (_is_numbered(axis) and set(labels) != set(names)):
            raise ModelError(
                f"{argument} has the labels {names_of(labels)}, and the states are {names_of(names)}: put it in the "
                "order of the states, such as P.loc[states, states], or give its numbers without labels"
            )
    return states


def _axes(given: Any) -> Iterable[Any]:
    """Return the labels of every axis that has some."""
    if hasattr(given, "iloc"):
        return [given.index, *([given.columns] if hasattr(given, "columns") else [])]
    if hasattr(given, "column_names"):
        return [given.column_names]
    if hasattr(given, "get_column"):
        return [given.columns]
    parts: list[Any] = list(given) if isinstance(given, list | tuple) else []
    if parts and not isinstance(parts[0], int | float):
        return [axis for part in parts for axis in _axes(part)]
    return []


def _is_numbered(axis: Sequence[Any]) -> bool:
    """Whether labels are those that pandas and polars write where nobody gave any."""
    labels = [state_label(name) for name in axis]
    return any(labels == [f"{before}{i}" for i in range(len(labels))] for before in ("", "column_"))
