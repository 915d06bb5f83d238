"""Columns of times as their local clocks show them: what parts of time in filters and groups are of."""

from collections.abc import Collection, Sequence
from typing import Any

import narwhals as nw

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
from pufferfish.data._times import local_time
from pufferfish.data.groupings import part_of
from pufferfish.data.source import Source
from pufferfish.errors import DataError

__all__ = ["local_columns"]

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

    Raises
    ------
    DataError
        If a column holds no times, or dates where their hour is asked for.
    """
    schema, found = table.schema, dict[str, Column]()
    for i, name in enumerate(names):
        wall, dtype = f"__pf_wall_{i}", schema[name]
        if kind_of(dtype) == "text":
            frame, missing = _of_text(frame, name, wall, hour=name in hours)
        elif kind_of(dtype) == "instant":
            if name in hours and (dtype == nw.Date or table.dates(name)):
                raise _no_hour(name)
            column = native_column(name, dtype, polars=frame.implementation.is_polars())
            frame, missing = frame.with_columns(column.value.alias(wall)), column.missing
            zone = table.zones().get(name) or getattr(dtype, "time_zone", None)
            if zone is not None:
                frame = frame.with_columns(local_time(frame, wall, zone, name).alias(wall))
        else:
            raise _no_times(name, str(dtype))
        found[name] = Column(name, "instant", nw.col(wall), missing)
    return frame, found


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
        "use its date, weekday or month, or the hour of another column"
    )


def _no_times(name: str, held: str) -> DataError:
    return DataError(
        f"column {name!r} holds {held}, and {part_of('hour', name)}, weekday, date and month need times, such as "
        "2016-04-13 08:00:00"
    )
