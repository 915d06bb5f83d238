"""The option ``by``: public groupings of records, by columns and by parts of times, before a table is opened.

``sex`` is a column, ``hour(time)`` a part of the times in a column, ``hour`` alone a part of the times of the table,
and ``col("any name")`` a column whatever its name. A grouping must not refer to a column of states: in which group a
record is must be public.

Parts of time are what local clocks and calendars show, alike on every engine: local time comes as whole microseconds
since 1970 (:mod:`._times`), so that an engine only divides whole numbers.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import narwhals as nw

from pufferfish._base.checked import is_list
from pufferfish.errors import DataError, ParameterError
from pufferfish.theta.states import state_label

# -- Parts of time ---------------------------------------------------------------------------------------------------

_HOUR = 3_600_000_000
MICROS_OF_DAY = 24 * _HOUR

_DAYS_BEFORE = 7 * 200_000  # so many days before 1970, whole weeks, is before the year 1
_THURSDAY = 3  # 1970 began on a Thursday; Monday is 0
_ERA = 146_097  # days of 400 years
_MARCH_0 = 719_468  # days from 1 March of the year 0 to 1970


def never_negative(wall: nw.Expr) -> nw.Expr:
    """Count a local time from whole weeks before the year 1: below 0 engines round differently."""
    return wall + _DAYS_BEFORE * MICROS_OF_DAY


def _date(wall: nw.Expr) -> nw.Expr:
    return (never_negative(wall) // MICROS_OF_DAY).cast(nw.Int64) - _DAYS_BEFORE


def _hour(wall: nw.Expr) -> nw.Expr:
    return ((never_negative(wall) // _HOUR).cast(nw.Int64) % 24).cast(nw.Int64)


def _weekday(wall: nw.Expr) -> nw.Expr:
    return (((never_negative(wall) // MICROS_OF_DAY).cast(nw.Int64) + _THURSDAY) % 7).cast(nw.Int64)


def _week(wall: nw.Expr) -> nw.Expr:
    since = ((never_negative(wall) // MICROS_OF_DAY).cast(nw.Int64) + _THURSDAY) // 7
    return since.cast(nw.Int64) * 7 - (_THURSDAY + _DAYS_BEFORE)


def _month(wall: nw.Expr) -> nw.Expr:
    """Month of a local time, 1 to 12, by Neri and Schneider, Euclidean affine functions (2022): in few operations."""
    day = _date(wall) + _MARCH_0
    of_century = _floor(_rest(4 * day + 3, _ERA), 4)
    of_year = _floor(_rest(2_939_745 * (4 * of_century + 3), 2**32), 4 * 2_939_745)
    month = _floor(2141 * of_year + 197_913, 2**16)
    return month + nw.when(month <= 12).then(nw.lit(0)).otherwise(nw.lit(-12))


def _floor(number: nw.Expr, by: int) -> nw.Expr:
    """Divide whole numbers from 0 to 2^52, whose quotients doubles do not round up; // takes its operand many times."""
    return (number / by).floor().cast(nw.Int64)


def _rest(number: nw.Expr, by: int) -> nw.Expr:
    return (number % by).cast(nw.Int64)


PARTS: Mapping[str, Callable[[nw.Expr], nw.Expr]] = {
    "hour": _hour,
    "weekday": _weekday,
    "date": _date,
    "week": _week,
    "month": _month,
}
"""Parts of local time as whole numbers: weekdays from Monday, 0; dates and Mondays of weeks as days since 1970."""

DATES = ("date", "week")  # the parts that are dates
RANGES = {"hour": (0, 23), "weekday": (0, 6), "month": (1, 12)}  # the least and the greatest that these parts are

# -- Groupings -------------------------------------------------------------------------------------------------------

_MOST = 8

NODE_COLUMN = "node column"
"""What a private column of a network's table is called: its states can be counted with those of other nodes."""

TAKEN = ("output", "records", "value", "noisy_value", "error_95")  # columns of the table of a release

_PART = re.compile(rf"({'|'.join(PARTS)})\s*\((.*)\)", re.DOTALL)
_COLUMN = re.compile(r"""col\s*\(\s*(?:"([^"]*)"|'([^']*)')\s*\)""")
_CALL = re.compile(r"\w+\s*\(.*\)", re.DOTALL)
_BARE = re.compile(r"col\s*\((.*)\)", re.DOTALL)
_1970 = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Grouping:
    """One grouping."""

    text: str  # as it is shown, which is as it may be given
    column: str  # the column that it reads
    part: str | None  # the part of its times; None for the values of the column themselves
    nested: bool = False  # whether each of its groups is in one group of the next grouping, as in ``zone<region``

    def label(self, value: Any) -> str:
        """Name a group by what an engine found."""
        if self.part in DATES:
            return str(_1970 + timedelta(days=int(value)))
        return str(int(value)) if self.part else state_label(value)


def parse_by(by: Any, *, time: str | None, private: Collection[str], called: str) -> tuple[Grouping, ...]:
    """Read the option ``by``; none if it is not given.

    ``time`` is the column of times, which parts without a column are of; ``private`` are columns that may not be named,
    and what they are ``called`` in messages.

    >>> [grouping.text for grouping in parse_by(["hour", "sex"], time="t", private=["activity"], called="state column")]
    ['hour(t)', 'sex']
    >>> [(each.text, each.nested) for each in parse_by("zone<region", time=None, private=[], called="")]
    [('zone', True), ('region', False)]
    """
    if by is None:
        return ()
    texts: list[Any] = [by] if isinstance(by, str) else list(by) if is_list(by) else []
    if not 1 <= len(texts) <= _MOST or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ParameterError(
            f"by is {by!r}, expected 1 to {_MOST} groupings, each a column or a part of its times, such as "
            "['hour(time)', 'sex']"
        )
    groupings = tuple(
        replace(_parsed(level, time), nested=level is not levels[-1])
        for levels in map(_levels, texts)
        for level in levels
    )
    for i, grouping in enumerate(groupings):
        if grouping.column in private:
            joint = ", or count its states with those of another node: --query joint:NODE,NODE (pf.Joint in Python)"
            raise DataError(
                f"by names the {called} {grouping.column!r}: groups are public, so they must not depend on the "
                f"private states; group by another column{joint if called == NODE_COLUMN else ''}"
            )
        if grouping.text in [earlier.text for earlier in groupings[:i]]:
            raise ParameterError(f"by names {grouping.text!r} twice: name it once")
        if grouping.text in TAKEN:
            raise ParameterError(
                f"by names {grouping.text!r}, which is the name of a column of every result: rename your column"
            )
    return groupings


def _levels(text: str) -> list[str]:
    """Return the groupings of a hierarchy, the smallest first; a ``<`` in quotes is part of a name.

    >>> _levels("zone < region<country"), _levels('col("a<b")')
    (['zone', 'region', 'country'], ['col("a<b")'])
    """
    pieces = [piece if i % 2 else piece.replace("<", "\0") for i, piece in enumerate(text.split('"'))]
    return [level.strip() for level in '"'.join(pieces).split("\0")]


def _parsed(text: str, time: str | None) -> Grouping:
    part, inner = None, text
    if (matched := _PART.fullmatch(text)) is not None:
        part, inner = matched[1], matched[2].strip()
    if text in PARTS and time is not None:
        part, column = text, time
    elif (named := _COLUMN.fullmatch(inner)) is not None:
        column = named[1] or named[2]
    else:
        column = "" if _CALL.fullmatch(inner) else inner
    if not column:
        raise ParameterError(
            f"by has {text!r}, expected a column, or {', '.join(f'{name}(column)' for name in PARTS)}; "
            f"{_remedy(part, inner)}"
        )
    if part is not None:
        return Grouping(part_of(part, column), column, part)
    return Grouping(_quoted(column) if column in PARTS else _spelled(column), column, None)


def _remedy(part: str | None, inner: str) -> str:
    """Say how a column is named whose name looks like something else."""
    name = inner if (bare := _BARE.fullmatch(inner)) is None else bare[1].strip()
    if not name or not _COLUMN.fullmatch(_quoted(name)):
        return 'a column of any other name is col("name")'
    meant = _quoted(name) if part is None else f"{part}({_quoted(name)})"
    return f"if {name!r} is the name of a column, write {meant}"


def part_of(part: str, column: str) -> str:
    """Write a part of the times in a column, as it may be given.

    >>> part_of("hour", "my time"), part_of("hour", "Time (local)")
    ('hour(my time)', 'hour(col("Time (local)"))')
    """
    return f"{part}({_spelled(column)})"


def _spelled(column: str) -> str:
    """Write the name of a column, in ``col`` where it would not be read as it stands."""
    return _quoted(column) if column != column.strip() or _CALL.fullmatch(column) else column


def _quoted(column: str) -> str:
    return f"col('{column}')" if '"' in column else f'col("{column}")'
