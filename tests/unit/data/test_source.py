"""Every table but Spark's becomes one polars frame at the door, exactly, whatever types its engine has."""

import gzip
from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pufferfish.data import read_sequences, source
from pufferfish.errors import DataError, ParameterError

ROWS = "select i // 10 as who, i as t, case when i % 7 < 3 then 'a' else 'b' end as act from range(100) r(i)"


def test_a_relation_is_ordered_and_fetched_in_batches(monkeypatch):
    monkeypatch.setattr(source, "FETCHED", 7)
    connection = duckdb.connect()
    expected = read_sequences(connection.sql(ROWS).pl(), "act", subject="who", time="t", max_gap=1)
    relation = connection.sql(f"{ROWS} order by hash(i)")
    data = read_sequences(relation, "act", subject="who", time="t", max_gap=1)
    assert data.counts.tolist() == expected.counts.tolist()
    assert data.transitions.tolist() == expected.transitions.tolist()
    assert data.fingerprint == expected.fingerprint
    for refused, how in (
        ("t < 0", r"no row of DuckDB relation is left where t < 0 \(100 before\)"),
        ("t", "where 't'"),
    ):
        with pytest.raises(DataError, match=how):
            read_sequences(relation, "act", subject="who", time="t", where=refused)
        assert connection.sql("select 1").fetchall() == [(1,)]  # no reading is left open
    empty = connection.sql(f"select * from ({ROWS}) where t < 0")
    with pytest.raises(DataError, match=r"^DuckDB relation has no rows$"):
        read_sequences(empty, "act", time="t")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_several_files_are_one_table(kind: str, tmp_path: Path) -> None:
    whole = duckdb.connect().sql(ROWS).pl()
    reading = {"subject": "who", "time": "t", "max_gap": 1}
    paths = [tmp_path / f"{name}.{kind}" for name in ("first", "second")]
    for path, part in zip(paths, (whole[:55], whole[55:]), strict=True):
        write(part, path)
    data, expected = read_sequences(paths, "act", **reading), read_sequences(whole, "act", **reading)
    assert data.base.source == f"first.{kind}, second.{kind}"
    for told in ("states", "length"):
        assert getattr(data, told) == getattr(expected, told)
    assert data.counts.tolist() == expected.counts.tolist()
    assert data.transitions.tolist() == expected.transitions.tolist(), "subject 5 goes on in the second file"
    if kind == "parquet":
        assert data.fingerprint == expected.fingerprint
    with pytest.raises(DataError, match="increas"):
        read_sequences(paths[::-1], "act", **reading)
    with pytest.raises(ParameterError, match="several files need time and max_gap"):
        read_sequences(paths, "act", subject="who")
    write(whole[55:].rename({"act": "state"}), paths[1])
    with pytest.raises(DataError, match=rf"second\.{kind}: column 'act' not found"):
        read_sequences(paths, "act", **reading)
    if kind == "parquet":
        write(whole[55:].cast({"t": pl.Float64}), paths[1])
        with pytest.raises(DataError, match=r"second\.parquet has other columns or column types than first"):
            read_sequences(paths, "act", **reading)


def write(table: pl.DataFrame, path: Path) -> None:
    if path.suffix == ".parquet":
        table.write_parquet(path)
        return
    text = table.write_csv().encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def test_times_of_a_relation_that_are_text_are_ordered_by_what_they_say():
    """As text, 9:30+02:00 comes after 8:00+00:00."""
    walls = ["2020-01-01T08:00+00:00", "2020-01-01T09:30+02:00", "2020-01-01T08:30Z", "2020-01-01T09:00+00:00"]
    states = ["b", "a", "a", "b"]
    rows = ", ".join(f"('{wall}', '{state}')" for wall, state in zip(walls, states, strict=True))
    relation = duckdb.connect().sql(f"select * from (values {rows}) r(t, act)")
    data = read_sequences(relation, "act", time="t", max_gap="30min")
    assert (data.spans, data.transitions.tolist()) == ((4,), [[0, 2], [1, 0]])  # 7:30 a, 8:00 b, 8:30 a, 9:00 b


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "date", "timestamp_s", "timestamp_ns"])
def test_a_time_without_end_is_none(kind):
    """DuckDB writes it as a number like any other."""
    rows = "(values ('2020-01-01', 'a'), ('2020-01-02', 'b'), ('infinity', 'a'), ('-infinity', 'b')) r(t, x)"
    relation = duckdb.connect().sql(f"select t::{kind} as t, x from {rows}")
    with pytest.raises(DataError, match=r"column 't' has no time in 2 rows"):
        read_sequences(relation, "x", time="t")


def test_whole_numbers_wider_than_64_bits_keep_every_digit():
    large = 2**100
    relation = duckdb.connect().sql(f"select {large}::hugeint + i % 2 as x, (i * 3)::hugeint as t from range(4) r(i)")
    data = read_sequences(relation, "x", time="t", max_gap=3)
    assert data.states == (str(large), str(large + 1))
    assert data.transitions.tolist() == [[0, 2], [1, 0]]
    unsigned = [2**64 - 1, 2**64 - 2, 2**64 - 1]
    for frame in (pl.DataFrame({"x": pl.Series(unsigned, dtype=pl.UInt64)}), pd.DataFrame({"x": unsigned})):
        assert read_sequences(frame, "x").states == (str(2**64 - 2), str(2**64 - 1))
    with pytest.raises(DataError, match=r"column .x. holds 12676506\d+, expected times of at most"):
        read_sequences(relation, "t", time="x", max_gap=1)


def test_dictionaries_and_zones_of_arrow_are_read_by_what_they_hold():
    times = [datetime(2021, 5, 1) + timedelta(hours=i) for i in range(4)]
    held = {
        "number": pa.array([3, 1, None, 3]).dictionary_encode(),
        "day": pa.array([time.date() for time in times]).dictionary_encode(),
        "t": pa.array(times, pa.timestamp("s", "+05:30")),
    }
    table = pa.table(held)
    data = read_sequences(table, "number", time="t", max_gap="1h", by="hour(t)", where="date(day) >= '2021-05-01'")
    assert (data.states, data.counts.tolist()) == (("1", "3"), [[1, 2]])
    assert data.groups.cells == (("5",), ("6",), ("8",))
    with pytest.raises(DataError, match=r"column 'x' holds month_day_nano_interval, expected text, numbers, true/fal"):
        read_sequences(pa.table({"x": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), "x")


@pytest.mark.parametrize("held", [date(2020, 1, 1), pd.Timestamp("2020-01-01")])
def test_python_dates_of_pandas_have_no_hour(held):
    frame = pd.DataFrame({"day": [held + timedelta(days=i) for i in range(3)], "x": list("aba")}).astype(object)
    if isinstance(held, datetime):
        assert read_sequences(frame, "x", time="day", by="hour(day)").groups.cells == (("0",),)
        return
    with pytest.raises(DataError, match=r"column 'day' holds dates without a time of day"):
        read_sequences(frame, "x", time="day", by="hour(day)")


def test_types_of_pandas_that_say_nothing_are_refused():
    for column in (pd.period_range("2020-01", periods=2, freq="M"), pd.to_timedelta([1, 2], "min"), [1j, 2j]):
        with pytest.raises(DataError, match=r"column 'x' holds (period|timedelta|complex).*, expected text, numbers"):
            read_sequences(pd.DataFrame({"x": column}), "x")


def test_a_quote_in_the_header_is_written_twice_as_in_any_cell(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text('"zone ""x""","a"""\n1,"p ""q"""\n2,r\n')
    assert read_sequences(path, 'zone "x"').states == ("1", "2")
    assert read_sequences(path, 'a"').states == ('p "q"', "r")
