"""A ledger charges a release on the steps that it reads, where times say which these are; else on all steps."""

import datetime as dt
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from ledgers import put, spends_nothing
from pufferfish.errors import ParameterError, RecordError, ReleaseRefused
from pufferfish.ledger._chain_charges import stretches_of

START = dt.datetime(2024, 1, 1)
CHAIN = pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["rest", "active"])
COUNT = pf.Count("active")


def table(days: int, *, subjects: int = 1, every: int = 10) -> pl.DataFrame:
    """Records every so many minutes; each subject begins a day after the one before."""
    parts = []
    for subject in range(subjects):
        times = [START + dt.timedelta(days=subject, minutes=every * i) for i in range(days * 1440 // every)]
        states = np.random.default_rng(subject).choice(["rest", "active"], len(times))
        parts.append(pl.DataFrame({"who": f"s{subject}", "time": times, "state": states, "worn": True}))
    return pl.concat(parts)


TABLE = table(4)


def read(where: str | None = None, frame: Any = TABLE, **how: Any) -> pf.Sequences:
    usual = {"max_gap": "10min", "time_zone": "UTC", "states": ["rest", "active"]}
    return pf.read_sequences(frame, "state", time="time", where=where, **{**usual, **how})


@cache
def noise_of(length: tuple[pf.ChainLength, ...]) -> pf.Calibration:
    return pf.LeakagePropagation(CHAIN, length).calibrate(COUNT, 0.5)


def noise_for(data: pf.Sequences) -> pf.Calibration:
    return noise_of(data.length)


def ledger_of(base: pf.Sequences, *wheres: str | None, known: bool = True, **how: Any) -> pf.Ledger:
    """A ledger of the table with a release for each filter, at ε = 0.5 by itself."""
    ledger = pf.Ledger(pf.LeakagePropagation(CHAIN, base.length), 50.0, base=base if known else base.base)
    for where in wheres:
        data = read(where, **how)
        ledger.spend(noise_for(data), data=data)
    return ledger


def test_hours_and_halves_cost_what_they_read() -> None:
    base = read()
    halves = ["time < '2024-01-03'", "time >= '2024-01-03'"]
    spent = {
        wheres: ledger_of(base, *wheres).spent
        for wheres in [
            ("hour(time) == 8",),
            ("hour(time) == 8", "hour(time) == 20"),
            ("hour(time) == 8", "hour(time) == 9"),
            ("hour(time) == 8", "hour(time) == 8"),
            tuple(halves),
            (halves[0], halves[1], None),
            (halves[0], f"{halves[0]} and worn"),
        ]
    }
    alone, apart, beside, twice, both, three, again = spent.values()
    assert 0.4999 < alone <= 0.5  # a release of one hour a day costs its own epsilon
    assert alone <= apart < 0.5005
    assert 0.6 < beside < 0.75
    assert twice > 0.98
    assert 0.4999 < both < 0.5005  # two halves of the table
    assert three == pytest.approx(ledger_of(base, None, None).spent, rel=1e-3)
    assert again > 0.98
    anywhere = ledger_of(base, "hour(time) == 8", "hour(time) == 20", known=False)
    assert anywhere.spent > 1.5
    assert anywhere.entries[0].windows is None


def test_a_year_of_two_hours_is_asked_once() -> None:
    frame = table(365)
    base = read(frame=frame)
    ledger = ledger_of(base, "hour(time) == 8", "hour(time) == 20", frame=frame)
    assert 0.4999 < ledger.spent < 0.5005
    (windows,) = ledger.entries[0].windows or ()
    assert windows is not None
    assert len(windows) == 365
    assert list(windows[:2]) == [(48, 54), (192, 198)]


def test_each_subject_has_its_own_places() -> None:
    frame, how = table(8, subjects=3, every=60), {"subject": "who", "max_gap": "1h"}
    base = read(frame=frame, **how)
    ledger = ledger_of(base, "date(time) == '2024-01-03'", frame=frame, **how)
    assert ledger.entries[0].windows == [[(48, 72)], [(24, 48)], [(0, 24)]]
    later = read("date(time) == '2024-01-09' and who != 's0'", frame, **how)
    ledger.spend(noise_for(later), data=later)
    assert ledger.entries[1].windows == [None, [(168, 192)], [(144, 168)]]
    assert 0.4999 < ledger.spent < 0.5005
    ledger.spend(noise_for(later), data=later)
    assert ledger.spent > 0.98
    assert ledger.calibrate(COUNT, up_to=1.2, data=read("date(time) == '2024-01-05'", frame, **how)).epsilon > 1
    everything = read("who == 's1'", frame, **how)
    ledger.spend(noise_for(everything), data=everything)
    assert ledger.entries[3].windows is None  # all steps of the one whom it reads
    assert ledger.entries[3].subjects is not None


def test_where_times_do_not_say_it_all_steps_are_charged() -> None:
    frame = table(6)
    early = pl.int_range(pl.len()).is_between(5, 9)
    off = frame.with_columns(pl.when(early).then(pl.col("time") + pl.duration(minutes=1)).otherwise("time"))
    where = "hour(time) == 20"
    cases: list[tuple[pf.Sequences, pf.Sequences]] = [
        (read(frame=frame, max_gap=None), read(where, frame, max_gap=None)),  # rows have a place, and no time
        (
            read(frame=off, max_gap="12min", step="10min"),
            read(where, off, max_gap="12min", step="10min"),
        ),
        (read(frame=frame[:300]), read(where, frame)),  # planned for more records than there were
    ]
    for base, data in cases:
        longest = pf.ChainLength(6 * 144, 6 * 144)
        ledger = pf.Ledger(pf.LeakagePropagation(CHAIN, [longest]), 50.0, base=base)
        ledger.spend(noise_for(data), data=data)
        assert ledger.entries[0].windows is None
        assert ledger.spent > 0.6


def test_a_base_with_a_filter_of_its_own() -> None:
    """A ledger of one hour a day knows where it is, and steps are charged everywhere."""
    base = read("hour(time) == 8")
    ledger = ledger_of(base, "hour(time) == 8")
    assert 0.4999 < ledger.spent <= 0.5
    ledger.spend(pf.LeakagePropagation(CHAIN, base.length).calibrate(pf.Transitions(), 0.5), data=base)
    assert ledger.entries[1].windows is None
    assert 0.9 < ledger.spent < 2.0


def test_a_window_that_times_contradict_is_refused() -> None:
    base, data = read(), read("time >= '2024-01-03'")
    ledger, noise = ledger_of(base), noise_for(read("time >= '2024-01-03'"))
    spends_nothing(
        ledger,
        lambda: ledger.spend(noise, data=data, window=(0, 288)),
        ReleaseRefused,
        "steps 288 to 575 of a chain by their times",
    )
    ledger.spend(noise, data=data, window=(250, 576))
    assert ledger.entries[0].windows == [[(250, 576)]]
    for wrong in ([[(0, 5), (5, 9)]], [[(8, 9), (0, 5)]], [[(0, 5), 9]], [[]]):
        spends_nothing(ledger, lambda wrong=wrong: ledger.spend(0.01, window=wrong), ParameterError, "window")
    few = read("hour(time) == 8")
    assert few.length[0].records == 24
    spends_nothing(
        ledger_of(base, known=False),
        lambda: ledger_of(base, known=False).spend(noise_for(few), data=few, window=[(0, 1), (575, 576)]),
        ReleaseRefused,
        "make another ledger",
    )


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "moved onto the other release": lambda b: b["entries"][1].update(windows=b["entries"][0]["windows"]),
    "beyond the end": lambda b: b["entries"][0]["windows"][0].append([575, 577]),
    "all steps": lambda b: b["entries"][0].update(windows=None),
    "ends": lambda b: b["grid"].update(ends=[None, [0, 0]]),
    "an end that is no number": lambda b: b["grid"].update(ends=[[0, "x"]]),
}


def test_what_is_written_is_read_again_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    base = read()
    ledger = pf.Ledger(pf.LeakagePropagation(CHAIN, base.length), 2.0, base=base)
    ledger.save(path)
    found = []
    for where in ("hour(time) == 8", "hour(time) == 9"):
        data = read(where)
        found.append(pf.release(data, COUNT, noise_for(data), ledger=ledger))
    again = pf.Ledger.open(path)
    assert again.spent == ledger.spent < 0.75
    assert again.entries[0].windows == ledger.entries[0].windows
    assert found[1].verify(ledger=path, table=TABLE).holds
    good = json.loads(path.read_text())
    midnight = int(START.replace(tzinfo=dt.UTC).timestamp()) * 1_000_000
    assert good["grid"] == {"step": 600_000_000, "ends": [[midnight, midnight + 575 * 600_000_000]], "slack": 0}
    for what, edit in EDITS.items():
        ledger_file = json.loads(path.read_text())
        edit(ledger_file)
        put(tmp_path / "edited.json", ledger_file)
        with pytest.raises(RecordError) as caught:
            pf.Ledger.open(tmp_path / "edited.json")
        assert "\n" not in str(caught.value), what
    moved = json.loads(path.read_text())
    moved["grid"]["ends"][0][0] -= 600_000_000
    put(path, moved)
    with pytest.raises(RecordError, match="changed by hand or replaced"):
        _ = ledger.spent
    fewer = json.loads(json.dumps(good))  # three days leak what four do: only the release can tell
    fewer["entries"] = fewer["entries"][:1]
    fewer["entries"][0]["windows"][0] = fewer["entries"][0]["windows"][0][:3]
    put(tmp_path / "fewer.json", fewer)
    told = [part for part in found[0].verify(ledger=tmp_path / "fewer.json").findings if part.what == "ledger"]
    assert not told[0].holds
    assert "18 steps, and the release reads 24" in told[0].says


def teststretches_of_that_touch_are_charged_as_one() -> None:
    """None are written so; if some were, no step between them would go free."""
    whole = stretches_of([((2, 9),), ((4, 5),)], 12)
    assert whole == [
        (2, frozenset()), (2, frozenset({0})), (1, frozenset({0, 1})), (4, frozenset({0})), (3, frozenset())
    ]  # fmt: skip
    for i in range(3, 9):
        parts = stretches_of([((2, i), (i, 9)), ((4, 5),)], 12)
        each = [active for steps, active in parts for _ in range(steps)]
        assert each == [active for steps, active in whole for _ in range(steps)], i


@pytest.mark.parametrize("naive_first", [True, False])
def test_times_with_and_without_a_zone_name_other_hours(naive_first: bool) -> None:
    """The same rows, read twice: two o'clock was charged at steps of 10:00, as if other records had been read."""
    naive, zoned_time = TABLE, pl.col("time").dt.replace_time_zone("America/Los_Angeles")
    zoned = TABLE.with_columns(zoned_time)
    base, part = (naive, zoned) if naive_first else (zoned, naive)
    where = "hour(time) in [2, 3, 4, 5]"
    ledger = pf.Ledger(pf.LeakagePropagation(CHAIN, len(TABLE)), 50.0, base=read(frame=base, time_zone=None))
    ledger.spend(1.0, data=read(where, base, time_zone=None))
    other = read(where, part, time_zone=None)
    spends_nothing(
        ledger,
        lambda: ledger.spend(1.0, data=other),
        ReleaseRefused,
        "the same times mean different hours, so read both in the same",
    )
