"""Parts of time are those of the calendar on every engine, and short enough where an engine writes them out as SQL."""

from collections.abc import Callable
from datetime import date
from typing import Any

import duckdb
import narwhals as nw
import polars as pl
import pytest

from pufferfish.data.groupings import MICROS_OF_DAY, PARTS

LONGEST = 5000
"""Characters of SQL: // alone takes its operand eight times in DuckDB, and steps that build on it did not end."""

DAYS = pl.date_range(date(1, 1, 1), date(9999, 12, 31), eager=True)
# the days around the ends of months and eras, and a spread of all others, at the first and the last moment of the day
SOME = DAYS.filter((DAYS.dt.day() > 27) | (DAYS.dt.day() == 1) | (DAYS.dt.ordinal_day() % 97 == 0)).gather_every(7)
MIDNIGHTS = pl.DataFrame({"day": SOME, "wall": SOME.cast(pl.Int32).cast(pl.Int64) * MICROS_OF_DAY})
ROWS = pl.concat([MIDNIGHTS, MIDNIGHTS.with_columns(pl.col("wall") + MICROS_OF_DAY - 1)])
EXPECTED: dict[str, Callable[[pl.DataFrame], pl.Series]] = {
    "hour": lambda rows: (rows["wall"] % MICROS_OF_DAY) // (MICROS_OF_DAY // 24),
    "weekday": lambda rows: rows["day"].dt.weekday() - 1,
    "date": lambda rows: rows["day"].cast(pl.Int32),
    "week": lambda rows: rows["day"].cast(pl.Int32) - rows["day"].dt.weekday() + 1,
    "month": lambda rows: rows["day"].dt.month(),
}


def in_duckdb(rows: pl.DataFrame) -> Any:
    connection = duckdb.connect()
    connection.register("held", rows.to_arrow())
    return connection.sql("select * from held")


ENGINES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda rows: rows,
    "pandas": lambda rows: rows.to_pandas(),
    "arrow": lambda rows: rows.to_arrow(),
    "DuckDB": in_duckdb,
}


def test_they_are_those_of_the_calendar() -> None:
    assert set(EXPECTED) == set(PARTS)
    for engine, make in ENGINES.items():
        frame: Any = nw.from_native(make(ROWS))
        parts = frame.select("wall", *(part(nw.col("wall")).alias(name) for name, part in PARTS.items()))
        collected = parts.collect() if isinstance(parts, nw.LazyFrame) else parts
        found = pl.DataFrame(collected.to_arrow()).sort("wall")
        rows = ROWS.sort("wall")
        for name, expected in EXPECTED.items():
            assert found[name].to_list() == expected(rows).to_list(), (engine, name)


@pytest.mark.parametrize("name", PARTS)
def test_an_engine_has_little_to_write_out(name: str) -> None:
    frame: Any = nw.from_native(in_duckdb(ROWS.head(1)))
    query = frame.select(PARTS[name](nw.col("wall")).alias(name)).to_native().sql_query()
    assert len(query) < LONGEST
