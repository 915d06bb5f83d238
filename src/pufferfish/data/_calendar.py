"""Parts of time: the hour, weekday, date or month that local clocks and calendars show, alike on every engine.

Local time comes as whole microseconds since 1970 (:mod:`.local_time`), so that an engine only divides whole numbers.
"""

from collections.abc import Callable, Mapping

import narwhals as nw

__all__ = ["MICROS_OF_DAY", "PARTS", "RANGES"]

_HOUR = 3_600_000_000
MICROS_OF_DAY = 24 * _HOUR
_WEEKS = 200_000
"""So many weeks before 1970 is before the year 1: times counted from there are never below 0, where engines round
differently."""

_DAYS_BEFORE = 7 * _WEEKS
_THURSDAY = 3
"""1970 began on a Thursday; Monday is 0."""

_ERA = 146_097
"""Days of 400 years."""

_MARCH_0 = 719_468
"""Days from 1 March of the year 0 to 1970."""


def _days(wall: nw.Expr) -> nw.Expr:
    """Days from 1970-01-01 to the date that a local time has."""
    return (_after(wall) // MICROS_OF_DAY).cast(nw.Int64) - _DAYS_BEFORE


def _hour(wall: nw.Expr) -> nw.Expr:
    """Hour of the day of a local time, 0 to 23."""
    return ((_after(wall) // _HOUR).cast(nw.Int64) % 24).cast(nw.Int64)


def _weekday(wall: nw.Expr) -> nw.Expr:
    return (((_after(wall) // MICROS_OF_DAY).cast(nw.Int64) + _THURSDAY) % 7).cast(nw.Int64)


def _month(wall: nw.Expr) -> nw.Expr:
    """Month of a local time, 1 to 12; the year is taken to begin in March, so that 29 February is its last day.

    The numbers are those of Neri and Schneider, Euclidean affine functions and their application to calendar algorithms
    (2022). Each step names the one before it hardly more than once: engines write it out as often as it is named.
    """
    day = _days(wall) + _MARCH_0
    of_century = _floor(_rest(4 * day + 3, _ERA), 4)
    of_year = _floor(_rest(2_939_745 * (4 * of_century + 3), 2**32), 4 * 2_939_745)
    month = _floor(2141 * of_year + 197_913, 2**16)
    return month + nw.when(month <= 12).then(nw.lit(0)).otherwise(nw.lit(-12))


def _after(wall: nw.Expr) -> nw.Expr:
    return wall + _DAYS_BEFORE * MICROS_OF_DAY


def _floor(number: nw.Expr, by: int) -> nw.Expr:
    """Divide whole numbers from 0 to 2^52, whose quotients doubles do not round up; // takes its operand many times."""
    return (number / by).floor().cast(nw.Int64)


def _rest(number: nw.Expr, by: int) -> nw.Expr:
    return (number % by).cast(nw.Int64)


PARTS: Mapping[str, Callable[[nw.Expr], nw.Expr]] = {
    "hour": _hour,
    "weekday": _weekday,
    "date": _days,
    "month": _month,
}
"""Parts of local time as whole numbers: weekdays from Monday, 0; dates as days since 1970."""

RANGES = {"hour": (0, 23), "weekday": (0, 6), "month": (1, 12)}
"""The least and the greatest that these parts are."""
