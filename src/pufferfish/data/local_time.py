"""Local time of instants: what the clocks of a time zone show, alike on every engine.

Engines know different names of time zones, and some lose them on the way. So the offsets of a zone from UTC come from
Python's :mod:`zoneinfo`, for the years that a table spans, and an engine only compares and adds whole numbers.
"""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals as nw

from pufferfish.data.columns import collected
from pufferfish.errors import DataError

__all__ = ["local_time", "offsets_of", "shifted", "zone_named"]

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})")
_EPOCH, _DAY = datetime(1970, 1, 1, tzinfo=UTC), timedelta(days=1)
_FIRST, _LAST = datetime(1800, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""Clocks of a zone are followed between these days, and keep the offset they had before and after."""


def zone_named(name: str, column: str) -> tzinfo:
    """Return a time zone by its name, such as Europe/Berlin, UTC or +05:30.

    Raises
    ------
    DataError
        If the name is not known.
    """
    if (fixed := _OFFSET.fullmatch(name)) is not None:
        east = timedelta(hours=int(fixed[2]), minutes=int(fixed[3]))
        return timezone(east if fixed[1] == "+" else -east)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise DataError(
            f"column {column!r} has times of the zone {name!r}, whose clock is not known here: convert it to local "
            "times without a zone"
        ) from None


def offsets_of(zone: tzinfo, first: int, last: int) -> list[tuple[int, int]]:
    """Return from which instants on a zone has which offset, in microseconds, for instants from first to last.

    Examples
    --------
    >>> hour = 3_600_000_000
    >>> found = offsets_of(ZoneInfo("Europe/Berlin"), 0, 2 * 365 * 24 * hour)
    >>> [(at // hour, offset // hour) for at, offset in found]
    [(0, 1)]
    """
    begins, ends = (min(max(_EPOCH + timedelta(microseconds=at), _FIRST), _LAST) for at in _within(first, last))
    found = [(first, _offset(zone, begins))]
    while begins < ends:
        after = begins + _DAY
        if _offset(zone, after) != _offset(zone, begins):
            low, high = begins, after
            while high - low > timedelta(seconds=1):
                middle = low + (high - low) // 2
                low, high = (middle, high) if _offset(zone, middle) == _offset(zone, begins) else (low, middle)
            changes = high.replace(microsecond=0)
            found.append(((changes - _EPOCH) // timedelta(microseconds=1), _offset(zone, after)))
        begins = after
    return found


def shifted(instant: nw.Expr, offsets: list[tuple[int, int]]) -> nw.Expr:
    """Return what the clocks show at instants, in microseconds, from where each offset begins."""
    offset = nw.lit(offsets[0][1])
    for at, then in offsets[1:]:
        offset = nw.when(instant >= at).then(nw.lit(then)).otherwise(offset)
    return instant + offset


def local_time(frame: nw.LazyFrame[Any], instant: str, zone: str, column: str) -> nw.Expr:
    """Return what the clocks of a zone show at the instants in a column of a frame; ``column`` is its name in messages.

    Raises
    ------
    DataError
        If the zone is not known.
    """
    at = nw.col(instant)
    ends = collected(frame.select(at.min().alias("first"), at.max().alias("last"))).row(0)
    first, last = (int(end or 0) for end in ends)
    return shifted(at, offsets_of(zone_named(zone, column), first, last))


def _within(first: int, last: int) -> tuple[int, int]:
    least, most = ((each - _EPOCH) // timedelta(microseconds=1) for each in (_FIRST, _LAST))
    return min(max(first, least), most), min(max(last, least), most)


def _offset(zone: tzinfo, instant: datetime) -> int:
    return (instant.astimezone(zone).utcoffset() or timedelta()) // timedelta(microseconds=1)
