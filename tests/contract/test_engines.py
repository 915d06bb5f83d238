"""Every engine reads a table alike: as a plain-Python reader does, over random tables and every option."""

import itertools
import random
from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil
from pathlib import Path
from tempfile import mkdtemp

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from optional import ibis_table
from pufferfish.data import read_rows, read_sequences
from pufferfish.errors import DataError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT

START = datetime(2016, 2, 28, 23, 50)


def random_rows(seed, *, missing=True):
    """Interleaved subjects, irregular times, holes in the filter, missing states, as a list of dicts."""
    rng = random.Random(seed)
    clock = {name: rng.randrange(5) for name in rng.sample(["b", "a", "d", "c"], rng.randint(1, 4))}
    rows = []
    for _ in range(rng.choice([6, 25, 60])):
        subject = rng.choice(list(clock))
        clock[subject] += rng.choice([1, 1, 1, 1, 2, 2, 3, 4, 7, 11])
        state = rng.choice(["rest", "walk", "run", None if missing else "run"])
        ok = rng.choice([True, True, True, False, None])
        level = rng.choice([0, 1, 2, 3, None])
        rows.append({"who": subject, "t": clock[subject], "act": state, "ok": ok, "level": level})
    return rows


ACT = CPT(["rest", "run", "swim", "walk"], [0.25] * 4)
OK = CPT(["false", "true"], [0.5, 0.5])


class NothingToRead(Exception):
    """What the plain reader raises where read_sequences refuses."""


def plain_reader(rows, *, subject, max_gap, where, missing, gaps, step):
    """The rules, one after another, over a list of dicts."""
    by_subject = {}
    for row in rows:
        by_subject.setdefault(row["who"] if subject else "", []).append(row)
    chains, links, order, rows_read = [], Counter(), [], 0
    for name in sorted(by_subject):
        kept = []  # (place, row): place is the time, or the position in the table
        for position, row in enumerate(by_subject[name]):
            if where(row):
                kept.append((position if max_gap is None else row["t"], row))
        if missing == "refuse" and any(row["act"] is None for _, row in kept):
            raise NothingToRead
        chain, before = None, None
        for number, (place, row) in enumerate(kept):
            if missing == "split" and row["act"] is None:
                continue
            gap, rows_read = None, rows_read + 1
            if before is not None:
                old_number, old_place, _ = before
                apart = place - old_place
                if max_gap is None:
                    gap = apart if apart > 1 else None
                elif apart > max_gap or number - old_number > 1:
                    gap = apart
                if gap is None:
                    links[apart] += 1
            if chain is None or (gap is not None and gaps == "independent"):
                chain = {"counts": Counter(), "moves": Counter(), "gaps": [], "linked": 0}
                chains.append(chain)
                order.append(name)
            elif gap is not None:
                chain["gaps"].append(gap)
            else:
                chain["linked"] += 1
                if row["act"] is not None and before[2]["act"] is not None:
                    chain["moves"][before[2]["act"], row["act"]] += 1
            if row["act"] is not None:
                chain["counts"][row["act"]] += 1
            before = (number, place, row)
    if max_gap is not None and links:
        usual = min(links, key=lambda apart: (-links[apart], apart))
        step = step or usual
        if 2 * usual <= step and 2 * links[usual] > rows_read:  # most rows are two or more in a step that was given
            raise NothingToRead
    seen = [(chain, name) for chain, name in zip(chains, order, strict=True) if chain["counts"]]
    if not seen or all(chain["counts"].total() == 1 for chain, _ in seen):
        raise NothingToRead
    if max_gap is not None and step is None and any(chain["gaps"] for chain, _ in seen):
        raise NothingToRead
    states = sorted({state for chain, _ in seen for state in chain["counts"]})
    steps = []
    for chain, _ in seen:
        total = 1 + chain["linked"]
        for gap in chain["gaps"]:
            total += gap if max_gap is None else max(2, ceil(Fraction(gap, step)))
        steps.append(total)
    moves = sum((chain["moves"] for chain, _ in seen), Counter())
    return {
        "states": tuple(states),
        "counts": [[chain["counts"][state] for state in states] for chain, _ in seen],
        "transitions": [[moves[a, b] for b in states] for a in states],
        "steps": tuple(steps),
        "subjects": len({name for _, name in seen}),
    }


def summary(data):
    assert data.lengths == tuple(data.counts.sum(axis=1).tolist())
    return {
        "states": data.states,
        "counts": data.counts.tolist(),
        "transitions": data.transitions.tolist(),
        "steps": data.spans,
        "subjects": data.subjects,
    }


def in_polars(rows, _):
    schema = {"who": pl.String, "t": rows_type(rows), "act": pl.String, "ok": pl.Boolean, "level": pl.Int8}
    return pl.DataFrame(rows, schema=schema)


def rows_type(rows):
    return pl.Datetime("ms") if isinstance(rows[0]["t"], datetime) else pl.Int16


def in_lazy_polars(rows, folder):
    return in_polars(rows, folder).lazy()


def in_categorical_polars(rows, folder):
    return in_polars(rows, folder).with_columns(pl.col("who", "act").cast(pl.Categorical))


def in_pandas(rows, _):
    return pd.DataFrame(rows, index=[7] * len(rows))  # an index that says nothing


def in_nullable_pandas(rows, _):
    return pd.DataFrame(rows).convert_dtypes()


def in_object_pandas(rows, _):
    return pd.DataFrame(rows).astype(object)


def in_categorical_pandas(rows, _):
    return pd.DataFrame(rows).astype({"who": "category", "act": "category", "ok": "category", "level": "category"})


def in_arrow(rows, folder):
    return in_polars(rows, folder).to_arrow()


def in_duckdb(rows, folder):
    shuffled = in_polars(rows, folder).sample(fraction=1, shuffle=True, seed=3)  # a relation has no order
    connection = duckdb.connect()
    connection.register("held", shuffled.to_arrow())
    return connection.sql("select * from held")


def in_ibis(rows, folder):
    return ibis_table(in_polars(rows, folder).sample(fraction=1, shuffle=True, seed=3))


def in_csv(rows, folder):
    in_polars(rows, folder).write_csv(folder / "table.csv")
    return folder / "table.csv"


def in_quoted_csv_gz(rows, folder):
    pd.DataFrame(rows).to_csv(folder / "table.csv.gz", index=False, quoting=1)
    return str(folder / "table.csv.gz")


def in_tsv(rows, folder):
    in_polars(rows, folder).write_csv(folder / "table.tsv", separator="\t")
    return folder / "table.tsv"


def in_parquet(rows, folder):
    in_polars(rows, folder).write_parquet(folder / "table.parquet")
    return folder / "table.parquet"


def in_spark(rows, folder):
    """Rows of every subject lie in many files and in no order, and one file has none."""
    return spark_frame(in_polars(rows, folder).sample(fraction=1, shuffle=True, seed=3), folder)


def spark_frame(frame, folder):
    held = Path(mkdtemp(dir=folder))
    for i, part in enumerate([frame.gather_every(2), frame.gather_every(2, 1), frame.clear()]):
        part.write_parquet(held / f"{i}.parquet")
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession().read.parquet(str(held))


WITHOUT_ORDER = (in_duckdb, in_ibis, in_spark)
ENGINES = [
    in_polars,
    in_lazy_polars,
    in_categorical_polars,
    in_pandas,
    in_nullable_pandas,
    in_object_pandas,
    in_categorical_pandas,
    in_arrow,
    in_duckdb,
    in_ibis,
    in_csv,
    in_quoted_csv_gz,
    in_tsv,
    in_parquet,
    pytest.param(in_spark, marks=[pytest.mark.spark, pytest.mark.slow]),  # usually test_spark.py stands for it
]


@pytest.fixture(autouse=True)
def cluster_for_spark(request):
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("spark")


PLACES = {getattr(engine, "values", (engine,))[0]: i for i, engine in enumerate(ENGINES)}
every_engine = pytest.mark.parametrize("engine", ENGINES)
FILTERS = {
    None: lambda row: True,
    "ok": lambda row: row["ok"] is True,
    "not ok or level in [2, 3]": lambda row: row["ok"] is False or row["level"] in (2, 3),
    "level != 1 and t > 2": lambda row: row["level"] not in (None, 1) and row["t"] > 2,
}
OPTIONS = [
    {"time": time, "max_gap": max_gap, "step": step, "where": where, "missing": missing, "gaps": gaps}
    for (time, max_gap, step), where, missing, gaps in itertools.product(
        [(None, None, None), ("t", None, None), ("t", 2, None), ("t", 3, 2), ("t", 4, None)],
        FILTERS,
        ["unobserved", "split", "refuse"],
        ["unobserved", "independent"],
    )
]


def expected_and_read(rows, table, options, subject="who"):
    """What the plain reader finds and what read_sequences finds; None where either refuses."""
    plain = {key: value for key, value in options.items() if key != "time"}
    try:
        expected = plain_reader(rows, **(plain | {"subject": subject, "where": FILTERS[options["where"]]}))
    except NothingToRead:
        expected = None
    try:
        found = summary(read_sequences(table, "act", subject=subject, **options))
    except DataError:
        found = None
    return expected, found


@pytest.mark.grid(keep=len(ENGINES))
@every_engine
def test_every_engine_reads_as_the_plain_reader_does(engine, tmp_path, slow):
    read, first = Counter(), PLACES[engine]  # every engine has other options, and with --slow every one
    for seed in range(4 if slow else 3):
        rows = random_rows(seed, missing=seed % 4 != 3)
        table = engine(rows, tmp_path)
        for options in OPTIONS[seed::4] if slow else OPTIONS[seed + 3 * first :: 166]:
            if options["time"] is None and engine in WITHOUT_ORDER:
                continue
            expected, found = expected_and_read(rows, table, options)
            assert found == expected, (seed, options)
            read[expected is not None] += 1
    assert read[True] > (40 if slow else 0)  # the comparison is of tables, not of refusals


def test_many_random_tables(slow):
    read = 0
    for seed in range(100, 200 if slow else 120):
        rows = random_rows(seed)
        options = OPTIONS[seed * 7 % len(OPTIONS)]
        expected, found = expected_and_read(rows, in_polars(rows, None), options)
        assert found == expected, (seed, options)
        read += expected is not None
    assert read > (40 if slow else 6)


@every_engine
def test_a_table_without_subjects_is_one_chain(engine, tmp_path, slow):
    rows = random_rows(5)
    for i, row in enumerate(rows):
        row["t"] = 2 * i + (i % 3 == 0)
    table = engine(rows, tmp_path)
    for options in OPTIONS[:: 5 if slow else 11]:
        if options["time"] is None and engine in WITHOUT_ORDER:
            continue
        expected, found = expected_and_read(rows, table, options, subject=None)
        assert found == expected, options
        if expected is not None and options["gaps"] == "unobserved":
            assert len(found["counts"]) == 1


@every_engine
def test_timestamps_are_read_as_minutes_are(engine, tmp_path):
    rows = random_rows(2)
    timed = [row | {"t": START + timedelta(minutes=row["t"])} for row in rows]  # over 29 February
    minutes = in_polars(rows, None)
    stamps = engine(timed, tmp_path)
    for where, gaps in itertools.product([None, "ok"], ["unobserved", "independent"]):
        a = read_sequences(minutes, "act", subject="who", time="t", max_gap=3, where=where, gaps=gaps)
        b = read_sequences(stamps, "act", subject="who", time="t", max_gap="3min", where=where, gaps=gaps)
        more = {there - here for here, there in zip(a.spans, b.spans, strict=True)}
        # every chain has a gap, in which clocks may have been set back, where the engine gives these times no zone
        assert more in (({0}, {60}) if gaps == "unobserved" else ({0},))
        assert summary(a) | {"steps": b.spans} == summary(b)
        assert b.base.step == (None if gaps == "independent" else f"{a.base.step}min")
        assert b.usual_step == f"{a.usual_step}min"
        by_position = read_sequences(stamps, "act", subject="who", time="t", where=where)
        assert (
            by_position.usual_step
            == f"{read_sequences(minutes, 'act', subject='who', time='t', where=where).usual_step}min"
        )


def expected_steps(rows, kept, parts, by):
    """Count each step at most two days long by the group of the record that it leads to, one by one."""
    expected, last = Counter(), {}
    for row in sorted(filter(kept, rows), key=lambda row: (row["who"], row["t"])):
        before = last.get(row["who"])
        last[row["who"]] = row
        if before is not None and row["t"] - before["t"] <= timedelta(days=2):
            if before["act"] is not None and row["act"] is not None:
                expected[tuple(parts[name](row) for name in by), before["act"], row["act"]] += 1
    return expected


def steps_by_group(groups, states):
    return {
        (cell, states[x], states[y]): n
        for cell, table in zip(groups.cells, groups.steps.tolist(), strict=True)
        for x, row in enumerate(table)
        for y, n in enumerate(row)
        if n
    }


@every_engine
def test_groups_are_counted_as_they_are_one_by_one(engine, tmp_path):
    rows = [row | {"t": START + timedelta(minutes=997 * row["t"])} for row in random_rows(7 + PLACES[engine] % 3)]
    table = engine(rows, tmp_path)
    parts = {
        "hour(t)": lambda row: str(row["t"].hour),
        "weekday(t)": lambda row: str(row["t"].weekday()),
        "date(t)": lambda row: str(row["t"].date()),
        "week(t)": lambda row: str(row["t"].date() - timedelta(days=row["t"].weekday())),
        "month(t)": lambda row: str(row["t"].month),
        "who": lambda row: row["who"],
        # beside a missing value pandas writes numbers as floats, and a group is called what the file says
        "level": lambda row: f"{row['level']}{'.0' if engine is in_quoted_csv_gz else ''}",
    }
    where = "level != none and hour(t) in [0, 3, 4, 5, 9, 10, 20, 22] and date(t) >= '2016-02-29' and weekday(t) != 2"

    def kept(row):
        day = row["t"].day > 28 or row["t"].month > 2
        return (
            row["level"] is not None
            and row["t"].hour in (0, 3, 4, 5, 9, 10, 20, 22)
            and day
            and row["t"].weekday() != 2
        )

    for by in (["hour(t)", "who"], ["date(t)"], ["week(t)"], ["month(t)", "level", "weekday(t)"]):
        expected = Counter()
        for row in rows:
            if kept(row) and row["act"] is not None:
                expected[tuple(parts[name](row) for name in by), row["act"]] += 1
        data = read_sequences(table, "act", subject="who", time="t", max_gap="2d", where=where, by=by)
        groups, own = data.groups, data.groups.counts["act"]
        numbers = by not in (["date(t)"], ["week(t)"])  # dates are in order as text
        order = [tuple((float(x) if x.isdigit() else 0, x) if numbers else x for x in cell) for cell in groups.cells]
        assert order == sorted(order)
        assert groups.records == tuple(own.sum(axis=1).tolist())
        assert own.sum(axis=0).tolist() == data.counts.sum(axis=0).tolist()  # in all they are the table's
        found = {
            (cell, s): n
            for cell, line in zip(groups.cells, own.tolist(), strict=True)
            for s, n in zip(data.states, line, strict=True)
        }
        assert {key: n for key, n in found.items() if n} == expected
        assert steps_by_group(groups, data.states) == expected_steps(rows, kept, parts, by)
        assert np.array_equal(groups.steps.sum(axis=0), data.transitions)
    with pytest.raises(DataError, match=r"column 'level' has no value in \d+ rows? \(first: .*needs a group"):
        read_sequences(table, "act", subject="who", time="t", by="level")
    expected = Counter((row["who"], str(row["t"].hour), row["act"]) for row in rows)
    counted = read_rows(table, BayesianNetwork({"act": ACT, "ok": OK}), missing="unobserved", by=["who", "hour(t)"])
    own = counted.groups.counts["act"].tolist()
    for cell, n, line in zip(counted.groups.cells, counted.groups.records, own, strict=True):
        assert [expected[*cell, state] for state in counted.states["act"]] == line
        assert n == sum(line) + expected[*cell, None]
    assert sum(counted.groups.records) == len(rows)


@every_engine
def test_bins_count_as_numpy_does(engine, tmp_path):
    rng = random.Random(11)
    values = [rng.choice([None, -3.5, 0, 1, 1.5, 2, 2.5, 5, 7, 1e9, float("inf"), float("nan")]) for _ in range(200)]
    rows = [{"who": "a", "t": i, "act": None, "ok": True, "level": None} for i in range(200)]
    frame = in_polars(rows, None).with_columns(pl.Series("level", values, dtype=pl.Float64))
    held = engine_of_frame(engine, frame, tmp_path)
    data = read_sequences(held, "level", time="t", bins=[0, 1, 2, 5, 10])
    edges = np.array([1, 2, 5])
    known = [value for value in values if value is not None and value == value]
    expected = np.bincount(np.searchsorted(edges, known, side="right"), minlength=4)
    assert data.states == ("<1", "1-2", "2-5", ">=5")
    assert data.counts.tolist() == [expected.tolist()]
    assert data.records == len(known) < 200 == data.spans[0]


def engine_of_frame(engine, frame, folder):
    """The same engines, for a frame that is not made of rows."""
    name = engine.__name__
    if "pandas" in name:
        held = pd.DataFrame(frame.to_dict(as_series=False))
        return held.convert_dtypes() if "nullable" in name else held.astype(object) if "object" in name else held
    if "csv" in name or "tsv" in name:
        path = folder / ("table.tsv" if "tsv" in name else "table.csv")
        frame.write_csv(path, separator="\t" if "tsv" in name else ",")
        return path
    if "parquet" in name:
        frame.write_parquet(folder / "table.parquet")
        return folder / "table.parquet"
    if "spark" in name:
        return spark_frame(frame, folder)
    if "duckdb" in name:
        connection = duckdb.connect()
        connection.register("held", frame.to_arrow())
        return connection.sql("select * from held")
    if "ibis" in name:
        return ibis_table(frame)
    return frame.to_arrow() if "arrow" in name else frame.lazy() if "lazy" in name else frame


@every_engine
@pytest.mark.parametrize(
    ("fault", "message"), [("unsorted", "comes after 5 for subject 'a'"), ("repeats", "repeats 5")]
)
def test_every_engine_refuses_a_wrong_order(engine, fault, message, tmp_path):
    times = [1, 5, 4] if fault == "unsorted" else [1, 5, 5]
    rows = [{"who": "a", "t": t, "act": "rest", "ok": True, "level": 1} for t in times]
    table = engine(rows, tmp_path)
    if fault == "unsorted" and engine in WITHOUT_ORDER:
        assert read_sequences(table, "act", subject="who", time="t").records == 3  # time orders it
        return
    with pytest.raises(DataError, match=message):
        read_sequences(table, "act", subject="who", time="t")


@every_engine
def test_kept_rows_alone_must_be_in_order_where_the_filter_comes_first(engine, tmp_path):
    rows = [{"who": "a", "t": t, "act": "rest", "ok": t != 5, "level": 1} for t in [1, 2, 5, 5, 3]]
    table = engine(rows, tmp_path)
    data = read_sequences(table, "act", subject="who", time="t", max_gap=1, where="ok")
    assert (data.lengths, data.spans) == ((3,), (3,))
    with pytest.raises(DataError, match=r"repeats 5|unsorted: 3 comes after 5"):
        read_sequences(table, "act", subject="who", time="t", where="ok")


def test_white_space_around_times_is_the_same_on_every_engine():
    """All of Unicode's, and nothing else: engines differ in what they strip when not told."""
    times = [
        f"{blank}2021-01-0{i + 1}{blank}" for i, blank in enumerate(["", " ", "\u00a0", "\u2028", "\x85", "\u3000"])
    ]
    frame = pl.DataFrame({"t": times, "act": list("aababb")})
    connection = duckdb.connect()
    connection.register("held", frame.to_arrow())
    relation = connection.sql("select * from held")
    for table in (frame, frame.to_arrow(), relation, pd.DataFrame(frame.to_dict(as_series=False))):
        assert read_sequences(table, "act", time="t", max_gap="1d").spans == (6,)
    separated = frame.with_columns(pl.col("t") + "\x1c")  # which Python strips, and Unicode does not call white space
    connection.register("more", separated.to_arrow())
    for table in (separated, connection.sql("select * from more"), pd.DataFrame(separated.to_dict(as_series=False))):
        with pytest.raises(DataError, match="expected a"):
            read_sequences(table, "act", time="t")


def test_a_relation_without_time_is_refused():
    with pytest.raises(DataError, match=r"rows of this table \(.*\) have no order: give time="):
        read_sequences(ibis_table(pl.DataFrame({"act": [1, 1, 1]})), "act")
    relation = duckdb.connect().sql("select 1 as act from range(3)")
    with pytest.raises(DataError, match=r"rows of this table \(DuckDB relation\) have no order: give time="):
        read_sequences(relation, "act")


def test_time_zones_do_not_follow_the_clock_of_the_connection():
    """Four half hours over the end of summer time in Paris; local clocks show 02:00 and 02:30 twice."""
    utc = [datetime(2021, 10, 31, 0, 0) + timedelta(minutes=30 * i) for i in range(4)]
    frame = pl.DataFrame({"t": utc, "act": ["a", "b", "b", "a"]}).with_columns(
        pl.col("t").dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Paris")
    )
    connection = duckdb.connect()
    try:
        connection.execute("set TimeZone = 'Europe/Paris'")
    except duckdb.Error:  # built without its time zones: then they cannot interfere
        pass
    connection.register("held", frame.to_arrow())
    tables = [frame, frame.to_arrow(), connection.sql("select * from held")]
    tables.append(pd.DataFrame({"t": pd.to_datetime(utc, utc=True).tz_convert("Europe/Paris"), "act": list("abba")}))
    for table in tables:
        data = read_sequences(table, "act", time="t", max_gap="30min", where='t >= "2021-10-31T02:30+02:00"')
        assert (data.lengths, data.spans, data.transitions.tolist()) == ((3,), (3,), [[0, 0], [1, 1]])


@pytest.mark.parametrize("zone", ["+05:30", "-11:00", "Nowhere/Land"])
def test_zones_that_polars_does_not_know_are_read_from_parquet(zone, tmp_path, capfd):
    """Polars panics on such zones, in some hundred lines on standard error."""
    utc = [datetime(2021, 10, 31, 2, 0) + timedelta(minutes=30 * i) for i in range(4)]
    times = pa.array(utc, pa.timestamp("us", tz=zone))
    parquet.write_table(pa.table({"t": times, "act": list("abba")}), tmp_path / "t.parquet")
    table = tmp_path / "t.parquet"
    assert read_sequences(table, "act", time="t", max_gap="30min").transitions.tolist() == [[0, 1], [1, 1]]
    assert read_sequences(table, "act").records == 4  # the column is in the file, and not asked for
    if zone == "Nowhere/Land":
        with pytest.raises(DataError, match=r"times in the zone 'Nowhere/Land', which this computer does not know"):
            read_sequences(table, "act", time="t", max_gap="30min", by="hour")
    else:
        hours = read_sequences(table, "act", time="t", max_gap="30min", by="hour").groups.cells
        assert hours == ((("7",), ("8",), ("9",)) if zone == "+05:30" else (("15",), ("16",)))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("micros", [2**53 + 3, 2**62 - 10**8, -(2**53) - 9])
@pytest.mark.parametrize("subject", [None, "who"])
def test_large_times_are_read_exactly_from_pandas_too(micros, subject):
    times = np.array([micros + i for i in range(6)], dtype="datetime64[us]")
    frame = pd.DataFrame({"t": times, "act": list("abaabb"), "who": "x"})
    for table in (frame, pl.from_pandas(frame)):
        data = read_sequences(table, "act", subject=subject, time="t", max_gap="1us")
        assert (data.lengths, data.spans, data.transitions.tolist()) == ((6,), (6,), [[1, 2], [1, 1]])
    text = pd.DataFrame({"t": [f"9999-01-01 00:00:00.00000{i}" for i in range(6)], "act": list("abaabb")})
    assert read_sequences(text, "act", time="t", max_gap="1us").transitions.tolist() == [[1, 2], [1, 1]]


# -- independent rows ----------------------------------------------------------------------------------------

NODE_STATES = {"level": range(4), "act": ["rest", "run", "swim", "walk"], "latent": [0, 1], "ok": [True, False]}
NETWORK = BayesianNetwork({node: CPT(own, [1 / len(own)] * len(own)) for node, own in NODE_STATES.items()})
ROW_FILTERS = {
    None: lambda row: True,
    "t > 7 and who != 'a'": lambda row: row["t"] > 7 and row["who"] != "a",
    "not t in [1, 2, 3]": lambda row: row["t"] not in (1, 2, 3),
    "t > 99": lambda row: False,
}


def plain_counts(rows, *, where, missing):
    """Counts of the states of every node, one cell after another; None where they are refused."""
    kept = [row for row in rows if where(row)]
    counts = {node: [0] * len(own) for node, own in NODE_STATES.items() if node != "latent"}
    for row in kept:
        for node, own in counts.items():
            if row[node] is not None:
                own[list(NODE_STATES[node]).index(row[node])] += 1
            elif missing == "refuse":
                return None
    return (len(kept), counts) if kept and all(map(any, counts.values())) else None


@pytest.mark.grid(keep=len(ENGINES))
@every_engine
def test_every_engine_counts_rows_as_they_are_counted_one_by_one(engine, tmp_path, slow):
    read, first = Counter(), PLACES[engine]
    for seed in range(8) if slow else (first % 8,):
        rows = [row | {"t": i} for i, row in enumerate(random_rows(seed, missing=seed % 2 == 0))]
        if seed % 2:  # nothing is missing
            rows = [row | {"ok": row["ok"] is True, "level": row["level"] or 0} for row in rows]
        table = engine(rows, tmp_path)
        for (where, keep), missing in itertools.product(ROW_FILTERS.items(), ["refuse", "unobserved"]):
            expected = plain_counts(rows, where=keep, missing=missing)
            try:
                data = read_rows(table, NETWORK, subject="t", where=where, missing=missing)
                found = (data.records, {node: own.tolist() for node, own in data.counts.items()})
            except DataError:
                found = None
            assert found == expected, (seed, where, missing)
            read[expected is not None] += 1
    assert read[True] > (20 if slow else 0)
    assert read[False] > (10 if slow else 0)


@every_engine
def test_every_engine_refuses_rows_that_depend_on_each_other(engine, tmp_path):
    rows = [{"who": who, "t": 1, "act": "rest", "ok": True, "level": 1} for who in ["b", "a", "c", "b", "c", "c"]]
    table = engine(rows, tmp_path)
    with pytest.raises(DataError, match=r"has several rows for 2 subjects \(e\.g\. 'c': 3 rows\)"):
        read_rows(table, NETWORK, subject="who")
    with pytest.raises(DataError, match=r"has several rows for 1 subject \(e\.g\. '1': 6 rows\)"):
        read_rows(table, NETWORK, subject="t")
    assert read_rows(table, NETWORK, subject="who", where="who == 'a'").records == 1


@pytest.mark.parametrize("engine", [in_lazy_polars, in_duckdb, in_csv, in_parquet])
def test_rows_stay_in_the_engine(engine, tmp_path, monkeypatch):
    rows = [row | {"t": i} for i, row in enumerate(random_rows(0) * 30)]
    table = engine(rows, tmp_path)
    collect, sizes = nw.LazyFrame.collect, []

    def collect_and_note(frame, *args, **options):
        collected = collect(frame, *args, **options)
        sizes.append(len(collected))
        return collected

    monkeypatch.setattr(nw.LazyFrame, "collect", collect_and_note)
    data = read_rows(table, NETWORK, subject="t", where="t >= 0", missing="unobserved")
    assert 0 < max(sizes) <= 12 < data.records  # at most every state of every node, and missing


@every_engine
def test_an_empty_text_is_a_missing_value_everywhere(engine, tmp_path):
    rows = [{"who": "a", "t": i, "act": act, "ok": True, "level": 1} for i, act in enumerate(["rest", "", "run", ""])]
    table = engine(rows, tmp_path)
    data = read_sequences(table, "act", subject="who", time="t", max_gap=1)
    assert (data.states, data.counts.tolist(), data.spans) == (("rest", "run"), [[1, 1]], (4,))
    with pytest.raises(DataError, match="no state in 2 rows"):
        read_sequences(table, "act", time="t", missing="refuse")
    with pytest.raises(DataError, match="'act' has no state in 2 rows"):
        read_rows(table, NETWORK, columns=["act"])
    kept = read_sequences(table, "who", time="t", where="act != 'walk'")  # where it is not known, it is left out
    assert kept.records == 2
    with pytest.raises(DataError, match="every chain has exactly one record"):
        read_sequences(table, "who", time="t", where="act != 'run'")
    with pytest.raises(DataError, match="'act' has no subject in 2 rows"):
        read_sequences(table, "ok", subject="act", time="t")
