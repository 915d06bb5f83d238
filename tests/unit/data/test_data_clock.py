"""Transitions by the phase of a clock: every engine reads the local hour alike, and gaps move the clock on."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import pufferfish as pf
from optional import ibis_table
from pufferfish.data._times import zone_named
from pufferfish.errors import DataError, ModelError, ParameterError

START = datetime(2016, 2, 28, 22, 30)  # a Sunday
MINUTES = [0, 30, 60, 90, 120, 240, 270, 300, 1500, 1530, 3000, 3030]
STATES = ["a", "b", "b", "a", "a", "b", None, "a", "b", "b", "a", "b"]
ROWS = [(START + timedelta(minutes=m), s) for m, s in zip(MINUTES, STATES, strict=True)]
PHASES = {
    "hour": lambda t: t.hour,
    "weekday": lambda t: t.weekday(),
    "weekday-hour": lambda t: 24 * t.weekday() + t.hour,
}


def expected(clock: str, rows: list[tuple[datetime, str | None]]) -> np.ndarray[Any, Any]:
    found = np.zeros(({"hour": 24, "weekday": 7, "weekday-hour": 168}[clock], 2, 2), dtype=np.int64)
    for (before, x), (after, y) in itertools.pairwise(rows):
        if after - before == timedelta(minutes=30) and x is not None and y is not None:
            found[PHASES[clock](before), "ab".index(x), "ab".index(y)] += 1
    return found


def tables() -> dict[str, Any]:
    frame = pl.DataFrame({"t": [t for t, _ in ROWS], "s": [s for _, s in ROWS]})
    text = frame.with_columns(pl.col("t").dt.strftime("%Y-%m-%d %H:%M"))
    pandas = pd.DataFrame({"t": [t for t, _ in ROWS], "s": [s for _, s in ROWS]})
    connection = duckdb.connect()
    connection.register("frame", frame.to_arrow())
    return {
        "polars": frame,
        "polars lazy": frame.lazy(),
        "text": text,
        "pandas": pandas,
        "duckdb": connection.sql("select * from frame"),
        "ibis": ibis_table(frame),
    }


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("clock", list(PHASES))
def test_every_engine_counts_by_the_local_clock(clock: str, slow: bool) -> None:
    for i, (name, table) in enumerate(tables().items()):
        data = pf.read_sequences(table, "s", time="t", max_gap="30min", clock=clock)
        assert data.transitions_by_phase is not None
        assert np.array_equal(data.transitions_by_phase, expected(clock, ROWS)), name
        assert np.array_equal(data.transitions_by_phase.sum(axis=0), data.transitions), name
        if slow or i % 3 == 0:
            plain = pf.read_sequences(table, "s", time="t", max_gap="30min")
            assert (plain.length, plain.base) == (data.length, data.base), name


def test_times_with_a_zone_follow_the_clock_of_the_zone() -> None:
    zone = ZoneInfo("America/New_York")
    local = [(t.replace(tzinfo=zone), s) for t, s in ROWS]
    instants = pl.Series([t.astimezone(UTC) for t, _ in local])
    frame = pl.DataFrame({"t": instants.dt.convert_time_zone("America/New_York"), "s": STATES})
    text = pl.DataFrame({"t": [t.isoformat() for t, _ in local], "s": STATES})
    pandas = pd.DataFrame({"t": pd.to_datetime([t for t, _ in local]), "s": STATES})
    for table in (frame, text, pandas):
        data = pf.read_sequences(table, "s", time="t", max_gap="30min", clock="hour")
        assert np.array_equal(data.transitions_by_phase, expected("hour", ROWS))
    utc = frame.with_columns(pl.col("t").dt.convert_time_zone("UTC"))
    data = pf.read_sequences(utc, "s", time="t", max_gap="30min", clock="hour")
    assert np.array_equal(data.transitions_by_phase, np.roll(expected("hour", ROWS), 5, axis=0))


def test_times_before_1970_and_several_subjects() -> None:
    rows = [(t.replace(year=1956), s) for t, s in ROWS if s is not None]
    frame = pl.DataFrame({"t": [t for t, _ in rows] * 2, "s": [s for _, s in rows] * 2, "who": [1] * 11 + [2] * 11})
    data = pf.read_sequences(frame, "s", time="t", subject="who", max_gap="30min", clock="weekday-hour")
    assert np.array_equal(data.transitions_by_phase, 2 * expected("weekday-hour", rows))


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({"clock": "hours", "time": "t", "max_gap": "30min"}, "clock is 'hours', expected one of"),
        ({"clock": "hour"}, "clock is 'hour', and time is missing"),
        ({"clock": "hour", "time": "t"}, "clock is 'hour', and max_gap is missing"),
        ({"clock": "hour", "time": "n", "max_gap": 1}, "column 'n' holds numbers: a clock needs times"),
        ({"clock": "hour", "time": "t", "max_gap": "1h"}, "max_gap is 1h and a step takes 30min"),
    ],
)
def test_refusals(reading: dict[str, Any], message: str) -> None:
    frame = pl.DataFrame({"t": [t for t, _ in ROWS], "n": range(12), "s": STATES})
    with pytest.raises((ParameterError, DataError), match=message) as refusal:
        pf.read_sequences(frame, "s", **reading)
    assert "\n" not in str(refusal.value)


def test_fitting_says_which_phase_lacks_what() -> None:
    frame = pl.DataFrame({"t": [t for t, _ in ROWS], "s": STATES})
    data = pf.read_sequences(frame, "s", time="t", max_gap="30min", clock="hour")
    with pytest.raises(ModelError, match=r"no transition out of state 'b' in phase 0 .* was observed .*smoothing"):
        pf.fit_periodic(data, smoothing=0)
    with pytest.raises(ParameterError, match="read without a clock"):
        pf.fit_periodic(pf.read_sequences(frame, "s"))
    pooled = pf.fit_chain(data, smoothing=10).transition_matrix
    chain = pf.fit_periodic(data, smoothing=10)
    assert (chain.clock, chain.step) == ("hour", "30min")
    assert np.allclose(chain.matrices[12], pooled)  # nothing was seen at noon
    counts = data.transitions_by_phase
    assert counts is not None
    assert np.allclose(chain.matrices[22, 0], (counts[22, 0] + 10 * pooled[0]) / (counts[22, 0].sum() + 10))


def test_the_hour_after_the_clocks_change() -> None:
    """Berlin, 27 March 2016: at 2 o'clock clocks go to 3; a column of instants follows them, on every engine."""
    start = datetime(2016, 3, 26, 23, 0, tzinfo=UTC)
    instants = [start + timedelta(minutes=30 * i) for i in range(8)]
    states = ["a", "b"] * 4
    hours = [t.astimezone(ZoneInfo("Europe/Berlin")).hour for t in instants]
    assert hours == [0, 0, 1, 1, 3, 3, 4, 4]
    frame = pl.DataFrame({"t": pl.Series(instants).dt.convert_time_zone("Europe/Berlin"), "s": states})
    pandas = pd.DataFrame({"t": pd.to_datetime(instants).tz_convert("Europe/Berlin"), "s": states})
    for table in (frame, pandas, frame.to_arrow()):
        data = pf.read_sequences(table, "s", time="t", max_gap="30min", clock="hour")
        assert data.transitions_by_phase is not None
        assert [int(data.transitions_by_phase[h].sum()) for h in (0, 1, 2, 3, 4)] == [2, 2, 0, 2, 1]


def test_a_zone_that_nobody_knows_is_refused() -> None:
    with pytest.raises(DataError, match="times in the zone 'Mars/Olympus'"):
        zone_named("Mars/Olympus", "t")
    assert zone_named("+05:30", "t").utcoffset(None) == timedelta(hours=5, minutes=30)
    assert zone_named("UTC-03:00", "t").utcoffset(None) == timedelta(hours=-3)


@pytest.mark.parametrize("dtype", [None, object])
def test_pandas_objects_of_a_zone_are_read_by_its_clock(dtype: type | None) -> None:
    times = [datetime(2024, 6, 1, 8, minute, tzinfo=ZoneInfo("Europe/Berlin")) for minute in (0, 1, 2)]
    frame = pd.DataFrame({"t": pd.Series(times, dtype=dtype), "s": list("aba")})
    groups = pf.read_sequences(frame, "s", time="t", by="hour(t)").groups
    assert groups is not None
    assert list(groups.cells) == [("8",)]


def test_pandas_objects_with_and_without_a_zone_are_refused() -> None:
    times = [datetime(2024, 6, 1, 8, 0, tzinfo=ZoneInfo("Europe/Berlin")), datetime(2024, 6, 1, 8, 1)]
    frame = pd.DataFrame({"t": pd.Series(times, dtype=object), "s": list("ab")})
    with pytest.raises(pf.DataError, match=r"'t' has times with a zone and times without one"):
        pf.read_sequences(frame, "s", time="t")


def test_text_is_not_compared_with_a_time_letter_by_letter() -> None:
    frame = pl.DataFrame({"t": ["2024-06-01T08:00:00", "2024-06-01T09:00:00"], "s": list("ab")})
    with pytest.raises(DataError, match=r"'t' holds text, which would be compared with '2024-06-01 08:30'"):
        pf.read_sequences(frame, "s", time="t", where="t >= '2024-06-01 08:30'")


def test_a_join_that_has_a_column_twice_is_refused() -> None:
    relation = duckdb.sql(
        "select * from (values (1, 'a'), (2, 'b')) a(t, s) join (values (1, 'x'), (2, 'x')) b(t, s) on a.t = b.t"
    )
    with pytest.raises(pf.DataError, match=r"column 't' occurs more than once"):
        pf.read_sequences(relation, "s", time="t")
