"""A filter by time alone says where the records that it keeps are; any other filter says how many they are."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.data import _count
from pufferfish.data.sequences import TimeGrid
from pufferfish.errors import ParameterError, ReleaseRefused
from pufferfish.theta.lengths import ChainLength

START = dt.datetime(2024, 1, 1)
CHAIN = pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["a", "b"])


def table(days: int, *, every: int = 10, subjects: int = 1) -> pl.DataFrame:
    """Records every so many minutes; the second subject begins a day later."""
    parts = []
    for subject in range(subjects):
        times = [START + dt.timedelta(days=subject, minutes=every * i) for i in range(days * 1440 // every)]
        states = np.random.default_rng(subject).choice(["a", "b"], len(times))
        parts.append(pl.DataFrame({"who": f"s{subject}", "time": times, "state": states, "worn": True}))
    return pl.concat(parts)


def read(frame: object, where: str | None = "hour(time) == 8", **how: object) -> pf.Sequences:
    return pf.read_sequences(
        frame, "state", time="time", where=where, **{"max_gap": "10min", "time_zone": "UTC", **how}
    )


def test_a_filter_by_time_says_where_records_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    frame, hours = table(4), ChainLength(438, 24, (6, 138, 6, 138, 6, 138, 6))
    assert read(frame).length == (hours,)
    assert read(frame, max_gap=None).length == (hours,)  # holes in the table
    assert read(frame.to_pandas()).length == (hours,)
    frame.write_csv(tmp_path / "t.csv")
    assert read(tmp_path / "t.csv").length == (hours,)
    monkeypatch.setattr(_count, "BATCH", 29)
    assert read(frame).length == (hours,)
    several = read(table(4, subjects=2), subject="who", where="weekday(time) in [0, 2]")
    assert several.length == (ChainLength(432, 288, (144, 144, 144)), ChainLength(144, 144))
    missing = frame.with_columns(pl.when(pl.int_range(pl.len()) != 50).then(pl.col("state")).alias("state"))
    assert read(missing).length == (ChainLength(438, 23, hours.places),)


def test_places_are_not_followed_through_gaps_of_ten_million_steps() -> None:
    """Bounds look at each step of a chain whose places they know; a decade of seconds would be gigabytes."""
    years = [dt.datetime(2000 + i, 1, 1, 8) + dt.timedelta(seconds=s) for i in (0, 1) for s in range(5)]
    frame = pl.DataFrame({"time": years, "state": ["a", "b"] * 5})
    (chain,) = read(frame, max_gap="1s").length
    assert chain == ChainLength(366 * 86_400 + 5, 10)
    assert pf.LeakagePropagation(CHAIN, chain).calibrate(pf.Count("a"), 1.0).scale > 0
    with pytest.raises(ParameterError, match=r"places for its records.*at most 10,000,000 steps: leave them out"):
        ChainLength(chain.steps, 10, places=(5, chain.steps - 10, 5))


def test_where_times_do_not_say_it_nothing_is_known() -> None:
    frame = table(3)
    unknown = ChainLength(294, 18)
    assert read(frame, where="hour(time) == 8 and worn").length == (unknown,)
    off_the_grid = frame.with_columns(
        pl.when(pl.int_range(pl.len()) < 100).then("time").otherwise(pl.col("time") + pl.duration(minutes=1))
    )
    assert not read(off_the_grid, max_gap="12min").length[0].places
    assert not read(frame, missing="split").length[0].places
    slow = frame.filter(pl.int_range(pl.len()) != 50)  # two records that are two steps apart count as one step
    assert not read(slow, max_gap="20min").length[0].places
    assert read(frame, where=None).length == (ChainLength(432, 432),)
    assert [chain.places for chain in read(frame, gaps="independent").length] == [()] * 3
    with pytest.raises(ParameterError, match="places of a chain"):
        ChainLength(10, 4, (4, 5))
    with pytest.raises(ParameterError, match="places of a chain"):
        ChainLength(10, 5, (4, 2, 4)).__class__(10, 9, (4, 2, 4))


def test_states_never_change_what_is_known() -> None:
    frame = table(3)
    other = frame.with_columns(pl.lit("a").alias("state"))
    assert read(frame).length == read(other).length


def test_releases_of_known_places_need_the_noise_of_their_own_records_and_are_checked(tmp_path: Path) -> None:
    data = read(table(5))
    bound = pf.LeakagePropagation(CHAIN, data.length)
    known = bound.calibrate(pf.Count("a"), 1.0)
    hour = pf.LeakagePropagation(CHAIN, 6).calibrate(pf.Count("a"), 1.0)
    anywhere = pf.LeakagePropagation(CHAIN, [c.without_positions for c in data.length]).calibrate(pf.Count("a"), 1.0)
    assert hour.scale <= known.scale * 1.0001 <= hour.scale * 1.01 < anywhere.scale
    assert known.lower_bound <= known.scale
    release = pf.release(data, pf.Count("a"), known)
    release.to_json(tmp_path / "r.json")
    again = pf.Release.from_json(tmp_path / "r.json")
    assert again.calibration.places == [list(data.length[0].places)]
    assert again.verify(table=table(5)).holds
    forged = msgspec.json.decode((tmp_path / "r.json").read_bytes())
    forged["calibration"]["places"] = None  # records anywhere: this noise is not enough
    (tmp_path / "f.json").write_bytes(msgspec.json.encode(forged))
    assert not pf.verify(tmp_path / "f.json").holds
    with pytest.raises(ReleaseRefused, match="at these places"):
        pf.release(read(table(5), where="hour(time) == 9 or hour(time) == 8"), pf.Count("a"), known)
    with pytest.raises(ReleaseRefused, match="at these places"):
        pf.release(read(table(5), where="hour(time) == 8 and worn"), pf.Count("a"), known)


def test_steps_of_known_places_need_no_more_noise_than_those_of_any() -> None:
    """A chain that hardly moves, where quilts decide: as many steps as records count, and not those between them."""
    sticky, known = pf.MarkovChain([[0.999, 0.001], [0.002, 0.998]]), ChainLength(294, 18, (6, 138) * 2 + (6,))
    for mechanism in (pf.LeakagePropagation, pf.MQMExact, pf.GroupDP):
        for query in (pf.Transitions(), pf.Switches()):
            scales = [
                mechanism(sticky, length).calibrate(query, 1.0).scale for length in (known, known.without_positions)
            ]
            assert scales[0] == pytest.approx(scales[1], rel=1e-6), mechanism
            assert scales[0] <= 2 * 19 * (1 + 1e-9)


def test_times_say_where_chains_begin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    frame, step = table(4, subjects=2), 600_000_000
    midnight = [int(dt.datetime(2024, 1, day, tzinfo=dt.UTC).timestamp()) * 1_000_000 for day in (1, 2)]
    whole = TimeGrid(step, tuple((start, start + 575 * step) for start in midnight))
    eight = TimeGrid(step, tuple((start + 48 * step, start + (3 * 144 + 53) * step) for start in midnight))
    frame.write_csv(tmp_path / "t.csv")
    sources: list[object] = [frame, frame.to_pandas(), tmp_path / "t.csv"]
    for source in sources:
        assert read(source, None, subject="who").grid == whole
        for where in ("hour(time) == 8", "hour(time) == 8 and worn"):  # also where gaps are not looked at
            assert read(source, where, subject="who").grid == eight
    monkeypatch.setattr(_count, "BATCH", 151)
    assert read(frame, None, subject="who").grid == whole
    assert read(frame, subject="who").grid == eight
    early = pl.int_range(pl.len()).is_between(5, 9) & (pl.col("who") == "s0")
    shifted = frame.with_columns(pl.when(early).then(pl.col("time") + pl.duration(minutes=1)).otherwise("time"))
    found = read(shifted, None, subject="who", max_gap="12min", step="10min").grid
    assert found == TimeGrid(step, (None, whole.ends[1]))
    for how in ({"max_gap": None}, {"missing": "split"}, {"gaps": "independent"}, {"max_gap": "20min"}):
        thinned = frame.filter(pl.int_range(pl.len()) % 90 != 50) if how == {"max_gap": "20min"} else frame
        assert read(thinned, None, subject="who", **how).grid is None
    for wrong in (
        (0, ((1, 1),)),
        (1.5, ((1, 1),)),
        (1, ((0.5, 1),)),
        (1, ((2, 1),)),
        (2, ((1, 2),)),
        (1, (1,)),
        (1, 7),
    ):
        with pytest.raises(ParameterError):
            TimeGrid(*wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="ends of 1 chains"):
        replace(read(frame, subject="who"), grid=TimeGrid(1, ((0, 1),)))
