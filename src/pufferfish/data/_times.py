"""Local time of instants, and instants of local time: what the clocks of a time zone show, alike on every engine.

Engines know different names of time zones, and some lose them on the way. So the offsets of a zone from UTC come from
Python's :mod:`zoneinfo`, for the years that a table spans, and an engine only compares and adds whole numbers.
"""

import re
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

__all__ = ["LocalClock", "given_zone", "local_columns", "local_time", "offsets_of", "shifted", "zone_named"]

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})")
_EPOCH, _DAY = datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=1)
_FIRST, _LAST = datetime(1800, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""Clocks of a zone are followed between these days, and keep the offset they had before and after."""


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
        day = 2 * _DAY // timedelta(microseconds=1)  # no clock is further from UTC
        return cls(offsets_of(zone, first - day, last + day))

    @property
    def changes(self) -> list[tuple[int, int, int]]:
        """At which instants clocks are changed, from which offset to which."""
        steps = zip(self.offsets, self.offsets[1:], strict=False)
        return [(instant, before, after) for (_, before), (instant, after) in steps]

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


def offsets_of(zone: tzinfo, first: int, last: int) -> list[tuple[int, int]]:
    """Return from which instants on a zone has which offset, in microseconds, for instants from first to last.

    >>> hour = 3_600_000_000
    >>> offsets = offsets_of(ZoneInfo("Europe/Berlin"), 0, 2 * 365 * 24 * hour)
    >>> [(start // hour, offset // hour) for start, offset in offsets]
    [(0, 1)]
    """
    begins, ends = (
        min(max(_EPOCH + timedelta(microseconds=instant), _FIRST), _LAST) for instant in _within(first, last)
    )
    offsets = [(first, _offset(zone, begins))]
    while begins < ends:
        after = begins + _DAY
        if _offset(zone, after) != _offset(zone, begins):
            low, high = begins, after
            while high - low > timedelta(seconds=1):
                middle = low + (high - low) // 2
                low, high = (middle, high) if _offset(zone, middle) == _offset(zone, begins) else (low, middle)
            changes = high.replace(microsecond=0)
            offsets.append(((changes - _EPOCH) // timedelta(microseconds=1), _offset(zone, after)))
        begins = after
    return offsets


def shifted(instant: nw.Expr, offsets: list[tuple[int, int]]) -> nw.Expr:
    """Return what the clocks show at instants, in microseconds, from where each offset begins."""
    return instant + _offset_at(instant, offsets)


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
    return shifted(time, offsets_of(zone_named(zone, column), first, last))


def _within(first: int, last: int) -> tuple[int, int]:
    least, most = ((bound - _EPOCH) // timedelta(microseconds=1) for bound in (_FIRST, _LAST))
    return min(max(first, least), most), min(max(last, least), most)


def _offset(zone: tzinfo, instant: datetime) -> int:
    return (instant.astimezone(zone).utcoffset() or timedelta()) // timedelta(microseconds=1)


# -- Columns of times as their local clocks show them ----------------------------------------------------------------

_DATE = 10
"""Characters of a date without a time of day."""


def local_columns(
    table: Source, frame: nw.LazyFrame[Any], names: Sequence[str], hours: Collection[str] = ()
) -> tuple[nw.LazyFrame[Any], dict[str, Column]]:
    """Add to a frame of the table the local times of some public columns, in microseconds since 1970.

    The local time of an instant with a zone is that of its zone; of text with an offset, what the text says without it.
    Of ``hours`` the hour is asked for: all records of a column of dates would have the same.

    Returns
    -------
    (narwhals LazyFrame, dict of str to Column)
        The frame with more columns, and the columns, which refer to them.
    """
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
    if profile.instants < profile.values or profile.zoned not in (0, profile.values):
        raise _no_times(name, "text" if profile.instants < profile.values else "times with and without a UTC offset")
    instant, plain = f"{wall}_utc", profile.plain == profile.values
    text = clean_text(nw.col(name))
    if hour and profile.values and not profile.plain:
        dates = collected(frame.select(count_where(text.str.len_chars() == _DATE).alias("n"))).item()
        if int(dates or 0) == profile.values:
            raise _no_hour(name)
    frame = frame.with_columns(text.alias(instant))
    frame = with_text_instants(frame, instant, zoned=profile.zoned > 0, wall=wall, plain=plain)
    return frame.drop(instant), text == ""


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
