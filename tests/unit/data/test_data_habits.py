"""What a table tells of habits, against plain loops, on every engine."""

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from optional import ibis_table
from pufferfish.data.public_counts import Habits, read_habits

START = datetime(2024, 3, 1, 21, 0)
Row = tuple[str, int, str | None]


def rows_of(seed: int, subjects: int = 3, length: int = 60) -> list[Row]:
    """Records every half hour, some missing, some without a state."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for s in range(subjects):
        state = "a"
        for t in range(length):
            state = state if rng.random() < 0.7 else "abc"[int(rng.integers(3))]
            if rng.random() > 0.08:
                rows.append((f"s{s}", t, None if rng.random() < 0.05 else state))
    return rows


def by_hand(rows: list[Row], *, clock: bool) -> tuple[Counter[Any], Counter[Any], Counter[Any]]:
    """Transitions with their past, records by hour, and stays whose beginning was seen."""
    at = {(who, t): s for who, t, s in rows}
    steps: Counter[Any] = Counter()
    hours: Counter[Any] = Counter()
    stays: Counter[Any] = Counter()
    for (who, t), s in at.items():
        if s is None:
            continue
        hours[(START + timedelta(minutes=30 * t)).hour, s] += 1
        before = at.get((who, t - 1))
        if before is None:
            continue
        hour = (START + timedelta(minutes=30 * (t - 1))).hour if clock else -1
        steps[who, hour, at.get((who, t - 2)), before, s] += 1
        if before != s:
            n = 1
            while at.get((who, t + n)) == s:
                n += 1
            stays[s, n, at.get((who, t + n)) is not None] += 1
    return steps, hours, stays


def check(found: Habits, rows: list[Row], *, clock: bool) -> None:
    steps, hours, stays = by_hand(rows, clock=clock)
    names = [*found.sequences.states, None]
    daily = found.sequences.daily
    assert daily is not None
    each = daily.steps
    got: Counter[Any] = Counter()
    for who, phase, z, x, y, n in zip(
        each.subject, each.phase, each.earlier, each.before, each.state, each.number, strict=True
    ):
        got[daily.subjects[who], int(phase), names[z], names[x], names[y]] += int(n)
    assert got == steps
    assert sum(got.values()) == found.sequences.transitions.sum()
    runs = daily.runs
    kept = {
        (names[x], n, ended): int(number)
        for x in range(len(names) - 1)
        for ended, by_length in zip((True, False), runs.stays(runs.state == x), strict=True)
        for n, number in enumerate(by_length)
        if number
    }
    assert kept == dict(stays)
    assert np.array_equal(runs.transitions(len(names) - 1), found.sequences.transitions)
    at = {(who, t): s for who, t, s in rows if s is not None}
    begins = {(who, t): s for (who, t), s in at.items() if at.get((who, t - 1)) != s}
    after = Counter()
    for (who, t), s in begins.items():
        n = next(n for n in range(1, len(rows) + 1) if at.get((who, t + n)) != s)
        after[who, s, n, (who, t - 1) in at, at.get((who, t + n))] += 1
    told = Counter()
    for who, x, n, begun, y, number in zip(
        runs.subject, runs.state, runs.lasted, runs.begun, runs.following, runs.number, strict=True
    ):
        told[daily.subjects[who], names[x], int(n), bool(begun), names[y]] += int(number)
    assert told == after
    if clock:
        assert found.occupancy is not None
        assert {(h, names[x]): n for (h, x), n in np.ndenumerate(found.occupancy) if n} == dict(hours)


def test_every_engine_counts_what_plain_loops_count(tmp_path: Path, slow: bool) -> None:
    for seed in range(4 if slow else 1):
        rows = rows_of(seed)
        columns = {
            "who": [who for who, *_ in rows],
            "t": [START + timedelta(minutes=30 * t) for _, t, _ in rows],
            "s": [s for *_, s in rows],
        }
        frame, pandas = pl.DataFrame(columns), pd.DataFrame(columns)
        path = tmp_path / "t.csv"
        frame.write_csv(path)
        connection = duckdb.connect()
        connection.register("frame", frame.to_arrow())
        sources: list[Any] = [
            frame,
            frame.lazy(),
            path,
            pandas,
            connection.sql("select * from frame"),
            ibis_table(frame),
        ]
        for source in sources if slow else sources[::2]:  # the others are tables of the same engines
            for clock in ("hour", None):
                found = read_habits(source, "s", [1, 3], subject="who", time="t", max_gap="30min", clock=clock)
                check(found, rows, clock=clock is not None)
                assert np.array_equal(found.pairs[0].counts.sum(axis=0), found.sequences.transitions)


SPELLINGS: dict[str, tuple[dict[str, list[str]], list[str]]] = {
    "merged": ({"a": ["a"], "b": ["c"], "c": ["x", "y", "z"]}, ["a", "c", "(other)"]),
    "numbers": ({"a": ["1", "1.0"], "b": ["2", "2.00", "2.0"], "c": ["3"]}, ["1", "2", "3"]),
}
"""What cells hold for each state, and the states that they are; numbers are read alike where a file has no types."""


@pytest.mark.parametrize("case", SPELLINGS)
def test_cells_that_hold_one_state_are_one_run(case: str, tmp_path: Path) -> None:
    """Merged states, and 1 beside 1.0: a stay goes on from one spelling to the other."""
    cells, states = SPELLINGS[case]
    rng, rows = np.random.default_rng(5), rows_of(5)
    held = [None if s is None else str(rng.choice(cells[s])) for *_, s in rows]
    times = [START + timedelta(minutes=30 * t) for _, t, _ in rows]
    frame = pl.DataFrame({"who": [who for who, *_ in rows], "t": times, "s": held})
    frame.write_csv(tmp_path / "t.csv")
    sources: list[Any] = [tmp_path / "t.csv"]
    if case == "merged":
        connection = duckdb.connect()
        connection.register("frame", frame.to_arrow())
        categories = frame.with_columns(pl.col("s").cast(pl.Categorical))
        sources += [frame, categories, frame.to_pandas().astype({"s": "category"}), ibis_table(frame)]
        sources += [connection.sql("select * from frame")]
    read = [(who, t, None if s is None else dict(zip("abc", states, strict=True))[s]) for who, t, s in rows]
    for source in sources:
        found = read_habits(source, "s", [1], subject="who", time="t", max_gap="30min", states=states)
        check(found, read, clock=False)


def test_one_chain_without_subjects_or_times() -> None:
    found = read_habits(pl.DataFrame({"s": list("aabbbacc")}), "s", [1])
    check(found, [("", t, s) for t, s in enumerate("aabbbacc")], clock=False)
    assert found.sequences.daily is not None
    assert found.sequences.daily.subjects == ("",)
    assert found.occupancy is None


def test_the_unit_of_times_that_are_numbers_makes_no_days() -> None:
    """A thousand records in one unit of time are ten parts as they are in a thousand units."""
    states = [*"aabbbacc"] * 125
    days = []
    for step in (1, 1 / 1024, 2.5):
        frame = pl.DataFrame({"t": [i * step for i in range(1000)], "s": states})
        sequences = read_habits(frame, "s", [1], time="t", max_gap=step).sequences
        assert sequences.daily is not None
        days.append(sequences.daily.steps.day.tolist())
    assert max(days[0]) == 9
    assert days[0] == days[1] == days[2]
