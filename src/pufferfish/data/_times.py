"""Local time of instants, and instants of local time: what the clocks of a time zone show, alike on every engine.

Engines know different names of time zones, and some lose them on the way. So the offsets of a zone from UTC come from
Python's :mod:`zoneinfo`, for the years that a table spans, and an engine only compares and adds whole numbers.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import reduce
from operator import or_
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import narwhals as nw

from pufferfish._base.words import did_you_mean
from pufferfish.data._columns import (
    Column,
    clean_text,
    collected,
    count_where,
    kind_of,
    native_column,
    profile_text,
    with_text_instants,
)
from pufferfish.data.groupings import part_of
from pufferfish.data.source import Source
from pufferfish.errors import DataError, ParameterError

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})")
_EPOCH, _DAY = datetime(1970, 1, 1, tzinfo=UTC), 86_400  # seconds
_FIRST, _LAST = -170 * 365 * _DAY, 230 * 365 * _DAY
"""Clocks of a zone are followed between these seconds since 1970, and keep the offset they had before and after."""


def zone_named(name: str, column: str) -> tzinfo:
    """Return a time zone by its name, such as Europe/Berlin, UTC or +05:30."""
    try:
        if (fixed := _OFFSET.fullmatch(name)) is not None:
            east = timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
            return timezone(east if fixed[1] == "+" else -east)
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise DataError(
            f"column {column!r} has times in the zone {name!r}, which this computer does not know: convert it to "
            "local times without a zone"
        ) from None


def given_zone(name: Any) -> tzinfo:
    """Return the time zone of the option ``time_zone``: one of the names that all machines know, or a fixed offset."""
    known = available_timezones()
    if isinstance(name, str) and (name in known or _OFFSET.fullmatch(name)):
        with suppress(DataError):  # +99:00
            return zone_named(name, name)
    hint = did_you_mean(name, sorted(known)) if isinstance(name, str) else ""
    raise ParameterError(f"time_zone is {name!r}, expected a zone such as 'Europe/Paris', 'UTC' or '+05:30'.{hint}")


@dataclass(frozen=True, slots=True)
class LocalClock:
    """The clock of a time zone, over the years that a table spans: which instants its local times are.

    In Berlin clocks were set forward on 31 March 2024 at 2:00, and back on 27 October at 3:00:

    >>> hour, spring = 3_600_000_000, 1_711_843_200_000_000
    >>> clock = LocalClock.between(ZoneInfo("Europe/Berlin"), spring, spring + 300 * 24 * hour)
    >>> [((instant - spring) // hour, before // hour, after // hour) for instant, before, after in clock.changes]
    [(1, 1, 2), (5041, 2, 1)]
    """

    offsets: Sequence[tuple[int, int]]  # from which instants on the zone has which offset, in microseconds

    @classmethod
    def between(cls, zone: tzinfo, first: int, last: int) -> "LocalClock":
        """Return the clock of a zone for local times from first to last, in microseconds."""
        day = 2 * 86_400_000_000  # no clock is further from UTC
        return cls(_offsets_of(zone, first - day, last + day))

    @property
    def changes(self) -> list[tuple[int, int, int]]:
        """At which instants clocks are changed, from which offset to which."""
        steps = zip(self.offsets, self.offsets[1:], strict=False)
        return [(instant, before, after) for (_, before), (instant, after) in steps]

    def wall(self, instant: nw.Expr) -> nw.Expr:
        """Return what the clocks show at an instant."""
        return instant + _offset_at(instant, self.offsets)

    def skipped(self, wall: nw.Expr) -> nw.Expr:
        """Whether clocks never show a local time: it is in an hour that they skip."""
        return _within_any(wall, [(instant + before, instant + after) for instant, before, after in self.changes])

    def twice(self, wall: nw.Expr) -> nw.Expr:
        """Whether clocks show a local time twice: it is in an hour that they repeat."""
        return _within_any(wall, [(instant + after, instant + before) for instant, before, after in self.changes])

    def instant(self, wall: nw.Expr, *, later: bool) -> nw.Expr:
        """Return the instant of a local time; of two the later one, or the earlier."""
        walls = [(instant + (min if later else max)(before, after), after) for instant, before, after in self.changes]
        return wall - _offset_at(wall, [self.offsets[0], *walls])


def _within_any(wall: nw.Expr, spans: Sequence[tuple[int, int]]) -> nw.Expr:
    tests = [(wall >= begins) & (wall < ends) for begins, ends in spans if begins < ends]
    return reduce(or_, tests, wall.is_null())  # no time is null


def _offsets_of(zone: tzinfo, first: int, last: int) -> list[tuple[int, int]]:
    """Return from which instants on a zone has which offset, in microseconds, for instants from first to last.

    >>> hour = 3_600_000_000
    >>> offsets = _offsets_of(ZoneInfo("Europe/Berlin"), 0, 2 * 365 * 24 * hour)
    >>> [(start // hour, offset // hour) for start, offset in offsets]
    [(0, 1)]
    """

    def offset(second: int) -> int:
        moment = (_EPOCH + timedelta(seconds=second)).astimezone(zone)
        return (moment.utcoffset() or timedelta()) // timedelta(microseconds=1)

    begins, ends = (min(max(instant // 1_000_000, _FIRST), _LAST) for instant in (first, last))
    offsets = [(first, offset(begins))]
    for day in range(begins, ends, _DAY):
        before, after = offset(day), offset(day + _DAY)
        if after != before:
            change = day + bisect_left(range(day, day + _DAY), True, key=lambda second: offset(second) != before)
            offsets.append((change * 1_000_000, after))
    return offsets


def _offset_at(time: nw.Expr, offsets: Sequence[tuple[int, int]]) -> nw.Expr:
    offset = nw.lit(offsets[0][1])
    for start, then in offsets[1:]:
        offset = nw.when(time >= start).then(nw.lit(then)).otherwise(offset)
    return offset


def local_time(frame: nw.LazyFrame[Any], instant: str, zone: str, column: str) -> nw.Expr:
    """Return what the clocks of a zone show at the instants in a column, which messages call ``column``."""
    time = nw.col(instant)
    ends = collected(frame.select(time.min().alias("first"), time.max().alias("last"))).row(0)
    first, last = (int(end or 0) for end in ends)
    return LocalClock(_offsets_of(zone_named(zone, column), first, last)).wall(time)


# -- Columns of times as their local clocks show them ----------------------------------------------------------------

_DATE = 10  # characters of a date without a time of day


def local_columns(
    table: Source, frame: nw.LazyFrame[Any], names: Sequence[str], hours: Collection[str] = ()
) -> tuple[nw.LazyFrame[Any], dict[str, Column]]:
    """Add local times of public columns to a frame, in microseconds; for ``hours`` a column of dates is refused."""
    schema, columns = table.schema, dict[str, Column]()
    for i, name in enumerate(names):
        wall, dtype = f"__pf_wall_{i}", schema[name]
        if kind_of(dtype) == "text":
            frame, missing = _of_text(frame, name, wall, hour=name in hours)
        elif kind_of(dtype) == "instant":
            if name in hours and dtype == nw.Date:
                raise _no_hour(name)
            column = native_column(name, dtype, polars=frame.implementation.is_polars())
            frame, missing = frame.with_columns(column.value.alias(wall)), column.missing
            zone = table.zones.get(name)
            if zone is not None:
                frame = frame.with_columns(local_time(frame, wall, zone, name).alias(wall))
        else:
            raise _no_times(name, str(dtype))
        columns[name] = Column(name, "instant", nw.col(wall), missing)
    return frame, columns


def _of_text(frame: nw.LazyFrame[Any], name: str, wall: str, *, hour: bool) -> tuple[nw.LazyFrame[Any], nw.Expr]:
    profile = profile_text(frame, [name])[name]
    if profile.instants < profile.values or profile.mixed:
        raise _no_times(name, "text" if profile.instants < profile.values else "times with and without a UTC offset")
    text, instant = clean_text(nw.col(name)), f"{wall}_utc"
    if hour and profile.values and not profile.plain:
        dates = collected(frame.select(count_where(text.str.len_chars() == _DATE).alias("n"))).item()
        if int(dates or 0) == profile.values:
            raise _no_hour(name)
    return with_text_instants(frame.with_columns(text.alias(instant)), instant, profile, wall).drop(instant), text == ""


def _no_hour(name: str) -> DataError:
    return DataError(
        f"column {name!r} holds dates without a time of day, so {part_of('hour', name)} would be 0 for every record: "
        "use its date, week, weekday or month, or the hour of another column"
    )


def _no_times(name: str, held: str) -> DataError:
    return DataError(
        f"column {name!r} holds {held}, and {part_of('hour', name)}, weekday, date, week and month need times, such as "
        "2016-04-13 08:00:00"
    )
