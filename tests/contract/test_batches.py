"""A table that polars reads in many small batches is what it is in one: counts, lengths, warnings and refusals."""

import random
from datetime import datetime, timedelta

import duckdb
import numpy as np
import polars as pl
import pytest
from test_engines import OPTIONS, expected_and_read, in_csv, in_polars, random_rows

from pufferfish.data import _count, read_sequences
from pufferfish.data._chains import Layout
from pufferfish.errors import PufferfishError

START = datetime(2016, 2, 28, 23, 50)


def read(table, **options):
    """What is read, or refused, as text."""
    try:
        data = read_sequences(table, "act", **options)
    except PufferfishError as error:
        return str(error)
    lists = [None if a is None else a.tolist() for a in (data.counts, data.transitions, data.transitions_by_phase)]
    cells = None if data.groups is None else (data.groups.cells, data.groups.counts["act"].tolist())
    return repr((data.states, lists, data.histories, data.length, data.subjects, data.usual_step, data.base, cells))


def in_one_and_in_many(table, monkeypatch, rows, **options):
    whole = read(table, **options)
    monkeypatch.setattr(_count, "BATCH", rows)
    parts = read(table, **options)
    monkeypatch.undo()
    return whole, parts


@pytest.mark.parametrize("engine", [in_polars, in_csv])
def test_small_batches_are_read_as_the_plain_reader_does(engine, tmp_path, monkeypatch, slow):
    counted = 0
    for seed in range(6):
        rows = random_rows(seed)
        if not seed:  # without subjects
            rows = [row | {"t": 2 * i + (i % 3 == 0)} for i, row in enumerate(rows)]
        table = engine(rows, tmp_path)
        monkeypatch.setattr(_count, "BATCH", 7 + 4 * seed)
        for options in OPTIONS[seed :: 11 if slow else 59]:
            expected, found = expected_and_read(rows, table, options, subject="who" if seed else None)
            assert found == expected, (seed, options)
            counted += expected is not None
    assert counted > (20 if slow else 4)


def test_memory_clocks_and_groups_go_on_from_batch_to_batch(monkeypatch, slow):
    for seed in range(4 if slow else 2):
        rows = [row | {"t": START + timedelta(hours=row["t"])} for row in random_rows(seed + 40)]
        options = {"time": "t", "max_gap": "1h", "subject": "who" if seed % 2 else None}
        frame = in_polars(rows, None) if seed % 2 else in_polars(rows, None).unique("t").sort("t")
        grouped = {"by": ["hour", "who"], "missing": "split"}
        for more in ({"order": 3}, {"order": 2, "missing": "split"}, {"clock": "hour"}, grouped):
            whole, parts = in_one_and_in_many(frame, monkeypatch, 5, **options, **more)
            assert parts == whole, (seed, more)
            assert "ChainLength" in whole


def test_steps_of_groups_are_counted_unless_they_are_too_many(monkeypatch):
    rows = [row | {"t": START + timedelta(hours=row["t"])} for row in random_rows(41)]
    options = {"subject": "who", "time": "t", "max_gap": "1h", "by": "who"}
    whole = read_sequences(in_polars(rows, None), "act", **options)
    connection = duckdb.connect()
    connection.register("held", in_polars(rows, None).to_arrow())
    at_once = connection.sql("select * from held")
    for limit in (10**6, whole.groups.counts["act"].size + len(whole.groups.cells)):
        monkeypatch.setattr(_count, "MAX_PAIRS", limit)
        monkeypatch.setattr(_count, "BATCH", 5)
        for table in (in_polars(rows, None), at_once):
            groups = read_sequences(table, "act", **options).groups
            assert groups.records == whole.groups.records
            assert np.array_equal(groups.counts["act"], whole.groups.counts["act"])
            assert groups.steps is None if limit < 10**6 else np.array_equal(groups.steps, whole.groups.steps)
    assert whole.groups.steps.sum() > 0


def test_what_is_refused_is_refused_in_the_same_words(tmp_path, monkeypatch, slow):
    rng = random.Random(3)
    good = [{"who": rng.choice("ab"), "t": i, "act": rng.choice("xy")} for i in range(40)]
    repeated = [row | {"t": row["t"] // 2} for row in good]
    back = [row | {"t": row["t"] if row["t"] % 9 else 0} for row in good]
    both = [*back, *repeated]
    many = [row | {"act": str(row["t"])} for row in [{"who": "a", "t": i} for i in range(2300)]]
    alone = [{"who": "a", "t": 100 * i, "act": "x"} for i in range(30)]
    for i, rows in enumerate((repeated, back, both, many, alone, [row | {"who": None} for row in good])):
        pl.DataFrame(rows).write_csv(tmp_path / "table.csv")
        tables = (pl.DataFrame(rows), tmp_path / "table.csv")
        for table in tables if slow else tables[i % 2 :][:1]:
            size = 500 if rows is many else 6
            whole, parts = in_one_and_in_many(table, monkeypatch, size, subject="who", time="t", max_gap=5)
            assert parts == whole
            assert not whole.startswith("(")


def test_the_usual_step_is_that_of_all_rows_and_not_of_the_first_batch(monkeypatch):
    times = [0, 2, 4, 6, 30, *range(40, 60), 90]
    frame = pl.DataFrame({"t": times, "act": ["x", "y"] * 13})
    whole, parts = in_one_and_in_many(frame, monkeypatch, 5, time="t", max_gap=2)
    assert parts == whole
    assert "step='1'" in whole


def test_subjects_that_end_are_looked_back_at_no_more(monkeypatch):
    """What is held at a time is a batch and the last rows of its subjects, however many rows or subjects there are."""
    frame = pl.DataFrame({"who": [i // 4 for i in range(4_000)], "t": range(4_000), "act": ["x", "y"] * 2_000})
    in_order, sizes = Layout.in_order, []

    def noted(layout, rows):
        sizes.append(len(rows))
        return in_order(layout, rows)

    monkeypatch.setattr(Layout, "in_order", noted)
    monkeypatch.setattr(_count, "BATCH", 200)
    assert read_sequences(frame, "act", subject="who", time="t").subjects == 1_000
    assert len(sizes) == 20
    assert max(sizes) <= 200 + 200
