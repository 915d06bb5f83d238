"""Local times: with a time zone they are instants; without one a record may be an hour from where its time says."""

import datetime as dt
import itertools
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.data import _count
from pufferfish.data.sequences import Base, TimeGrid
from pufferfish.errors import DataError, ParameterError

PARIS = "Europe/Paris"
ONE = dt.datetime(2024, 3, 31, 1, tzinfo=dt.UTC)
SPRING, AUTUMN = dt.datetime(2024, 3, 30, 22), dt.datetime(2024, 10, 26, 22)


def night(begins: dt.datetime, *, zone: str = PARIS, minutes: int = 1, hours: int = 6) -> pl.DataFrame:
    """Records of some hours, from an instant in UTC on, as the clocks of a zone show them."""
    utc = [begins + dt.timedelta(minutes=minutes * i) for i in range(hours * 60 // minutes)]
    frame = pl.DataFrame({"time": utc, "state": ["a", "b", "b"] * (len(utc) // 3)})
    return frame.with_columns(pl.col("time").dt.replace_time_zone("UTC").dt.convert_time_zone(zone))


def local(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("time").dt.replace_time_zone(None))


def once(frame: pl.DataFrame) -> pl.DataFrame:
    """Local times, of those that come twice the first only."""
    return local(frame).unique("time", keep="first", maintain_order=True)


def read(frame: Any, **how: Any) -> pf.Sequences:
    return pf.read_sequences(frame, "state", time="time", **{"max_gap": "1min", **how})


def engines(frame: pl.DataFrame) -> Iterator[Any]:
    yield from (frame, frame.to_pandas(), frame.with_columns(pl.col("time").cast(pl.String)))
    connection = duckdb.connect()
    connection.register("held", frame.to_arrow())
    yield connection.sql("select * from held")


def summary(data: pf.Sequences) -> tuple[Any, ...]:
    groups = None if data.groups is None else (data.groups.cells, data.groups.records)
    phases = None if data.transitions_by_phase is None else data.transitions_by_phase.tolist()
    return data.length, data.counts.tolist(), data.transitions.tolist(), data.grid, groups, phases


@pytest.mark.parametrize("how", [{}, {"where": "hour(time) in [1, 3]"}, {"by": "hour"}, {"clock": "hour"}], ids=str)
def test_local_times_of_a_zone_are_read_like_its_instants(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    zoned = night(SPRING)
    expected = summary(read(zoned, **how))
    for source in engines(local(zoned)):
        assert summary(read(source, time_zone=PARIS, **how)) == expected
    monkeypatch.setattr(_count, "BATCH", 57)
    assert summary(read(local(zoned), time_zone=PARIS, **how)) == expected


def test_what_was_read_belongs_to_the_base() -> None:
    data = read(local(night(SPRING)), time_zone=PARIS, ambiguous="drop")
    assert (data.base.time_zone, data.base.ambiguous) == (PARIS, "drop")
    assert "Times are what clocks of Europe/Paris show; records at times that they show twice are left out" in " ".join(
        data.assumptions
    )
    with pytest.raises(ParameterError, match="ambiguous is 'later' and time_zone is missing"):
        Base(source="t", state="s", time="t", ambiguous="later")
    with pytest.raises(ParameterError, match="time_zone is 'UTC' but there is no time"):
        Base(source="t", state="s", time_zone="UTC")


def test_times_that_clocks_skip_are_refused() -> None:
    frame = local(night(SPRING)).with_columns(
        time=pl.datetime_range(SPRING, SPRING + dt.timedelta(hours=6), "1m", closed="left")
    )
    for source in engines(frame):
        with pytest.raises(
            DataError, match=r"has 2024-03-31 02:00:00.*, which clocks in Europe/Paris skip \(such times"
        ):
            read(source, time_zone=PARIS)
    assert read(frame, time_zone="UTC").transitions.sum() == 359
    assert read(frame, time_zone=PARIS, where="hour(time) != 2").length[0].steps == 300


def test_times_that_clocks_show_twice_are_decided(slow: bool) -> None:
    zoned = night(AUTUMN)
    with pytest.raises(
        DataError, match=r"02:00:00 \(row 121\), which clocks in Europe/Paris show twice .*: write times "
    ):
        read(once(zoned), time_zone=PARIS)
    steps = {"earlier": (180, 60, 120), "later": (120, 60, 180), "drop": (120, 120, 120)}
    for i, (ambiguous, (before, gap, after)) in enumerate(steps.items()):
        for source in itertools.islice(engines(once(zoned)), 0 if slow else i, None, 1 if slow else 2):
            data = read(source, time_zone=PARIS, ambiguous=ambiguous, where="date(time) <= '2024-10-27'")
            assert data.length == (pf.ChainLength(360, before + after, (before, gap, after)),), ambiguous
            assert data.transitions.sum() == before + after - 2
    assert read(local(zoned), time_zone=PARIS, ambiguous="drop").length == (pf.ChainLength(360, 240),)
    with pytest.raises(DataError, match=r"or leave that hour out: ambiguous='drop'"):
        read(local(zoned), time_zone=PARIS, ambiguous="earlier")
    with pytest.raises(DataError, match=r"or leave that hour out: time_zone= and ambiguous='drop'"):
        read(local(zoned))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"time_zone": "Europe/Pari"}, r"time_zone is 'Europe/Pari', expected .* Did you mean 'Europe/Paris'\?"),
        ({"time_zone": 1}, "time_zone is 1, expected a zone such as 'Europe/Paris'"),
        ({"time_zone": "+99:00"}, r"time_zone is '\+99:00', expected a zone"),
        ({"time_zone": "/etc/localtime"}, "expected a zone such as"),
        ({"time_zone": PARIS, "time": None, "max_gap": None}, "but there is no time: give time="),
        ({"ambiguous": "drop"}, "ambiguous is 'drop' and time_zone is missing"),
        ({"time_zone": PARIS, "ambiguous": "first"}, "expected one of 'earlier', 'later', 'drop'"),
        ({"time_zone": PARIS, "ambiguous": "drop", "max_gap": None}, "ambiguous is 'drop' and max_gap is missing"),
    ],
)
def test_wrong_zones_are_refused(how: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        pf.read_sequences(local(night(SPRING)), "state", **{"time": "time", "max_gap": "1min", **how})


def test_a_zone_is_for_times_that_have_none() -> None:
    zoned = night(SPRING)
    offsets = zoned.with_columns(pl.col("time").dt.to_string("%Y-%m-%d %H:%M:%S%:z"))
    for frame in (zoned, offsets):
        with pytest.raises(DataError, match="already have a time zone or an offset: leave out time_zone"):
            read(frame, time_zone=PARIS)
    numbers = zoned.with_columns(pl.int_range(pl.len()).alias("time"))
    with pytest.raises(
        DataError, match="time_zone is 'Europe/Paris', and column 'time' holds numbers: a time zone needs"
    ):
        read(numbers, time_zone=PARIS, max_gap=1)
    days = pl.DataFrame({"time": [dt.date(2024, 3, 25 + i) for i in range(7)], "state": list("abababa")})
    for frame in (days, days.with_columns(pl.col("time").cast(pl.String)), days.to_pandas()):
        with pytest.raises(DataError, match="holds dates without a time of day, to which clock changes do not matter"):
            read(frame, time_zone=PARIS, max_gap="1d")
    assert read(days, max_gap="1d", where="date(time) not in ['2024-03-26']").length[0].places == (1, 1, 5)


def test_of_local_times_every_place_that_a_record_may_have_is_charged() -> None:
    """In spring the gap from 1:59 to 3:00 is one step, or that of an hour: both are covered, on every engine."""
    zoned, one = night(SPRING), int(ONE.timestamp()) * 1_000_000
    for source in engines(local(zoned)):
        data = read(source, where="hour(time) in [1, 3]")
        assert data.length == (pf.ChainLength(180 + 60, 120),)  # all steps, and those of an hour that came twice
        assert data.grid == TimeGrid(60_000_000, ((one, one + 179 * 60_000_000),), slack=60)
    assert read(zoned, where="hour(time) in [1, 3]").length == (pf.ChainLength(120, 120),)
    (apart,) = read(local(zoned), where="hour(time) in [0, 5]").length
    assert apart == pf.ChainLength(300 + 60 + 60, 60 + 60, (120, 120, 180))


@pytest.mark.parametrize(
    "zone", [PARIS, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca"]
)
@pytest.mark.parametrize("minutes", [10, 30, 60])
def test_true_places_are_among_those_that_local_times_may_have(zone: str, minutes: int, slow: bool) -> None:
    """Over a year and a half of hours, once for each list of hours, or from each moment with each of them."""
    begins = [dt.datetime(2023, month, 1) for month in (1, 6)]
    every = list(itertools.product(begins, ([8], [0, 1, 3], [2, 20])))
    for begin, hours in every if slow else [every[1], every[5]]:
        zoned = night(begin, zone=zone, minutes=minutes, hours=24 * 540).unique(
            "time", keep="first", maintain_order=True
        )
        seen = once(zoned)
        data = read(seen, max_gap=f"{minutes}min", step=f"{minutes}min", where=f"hour(time) in {hours}")
        clocks = zoned.filter(pl.col("time").dt.replace_time_zone(None).is_first_distinct())
        kept = clocks.filter(pl.col("time").dt.hour().is_in(hours))["time"].dt.timestamp("us").to_list()
        true = {(time - kept[0]) // (minutes * 60_000_000) for time in kept}
        (chain,) = data.length
        if not chain.places:  # a change by half a step: then all steps are charged
            assert (zone, minutes) == ("Australia/Lord_Howe", 60)
            continue
        edges = [0, *itertools.accumulate(chain.places)]
        charged = {place for start, stop in zip(edges[::2], edges[1::2], strict=True) for place in range(start, stop)}
        assert true <= charged
        if ZoneInfo(zone).utcoffset(begins[0]) != ZoneInfo(zone).utcoffset(begins[1]):
            said = (seen.filter(pl.col("time").dt.hour().is_in(hours))["time"].dt.timestamp("us")).to_list()
            assert not true <= {(time - said[0]) // (minutes * 60_000_000) for time in said}
