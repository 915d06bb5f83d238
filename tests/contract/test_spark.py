"""A cluster reads as one machine does: the same counts, lengths and refusals, in few passes over the table.

The tables here are small and awkward, many subjects at once; the whole suite of :mod:`test_engines` runs on Spark too
with ``--slow``.
"""

import random
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta

import duckdb
import numpy as np
import polars as pl
import pytest
from test_engines import NETWORK, random_rows, spark_frame, summary

import pufferfish as pf
import spark_cluster
from commands import refused, run
from pufferfish.data import _sampling
from pufferfish.errors import PufferfishError

pytestmark = [pytest.mark.spark, pytest.mark.program, pytest.mark.filterwarnings("ignore::ResourceWarning")]

SCHEMA = {"who": pl.String, "t": pl.Int32, "act": pl.String, "ok": pl.Boolean, "level": pl.Int8}


def many_subjects():
    """Random tables next to each other, a subject of one record, and one with most of the rows; in no order."""
    rows = [row | {"who": f"{seed}/{row['who']}"} for seed in range(30) for row in random_rows(seed)]
    rows.append({"who": "once", "t": 5, "act": "rest", "ok": True, "level": 2})
    rng, clock = random.Random(1), 0
    for _ in range(3000):
        clock += rng.choice([1, 1, 1, 2, 5])
        act, ok = rng.choice(["rest", "walk", "run", None]), rng.choice([True, True, False, None])
        rows.append({"who": "skewed", "t": clock, "act": act, "ok": ok, "level": rng.choice([0, 1, 2, None])})
    rng.shuffle(rows)
    return pl.DataFrame(rows, schema=SCHEMA)


def in_duckdb(frame):
    connection = duckdb.connect()
    connection.register("held", frame.to_arrow())
    return connection.sql("select * from held")


OPTIONS = [
    {},
    {"max_gap": 2},
    {"max_gap": 3, "step": 2, "where": "not ok or level in [2, 3]"},
    {"max_gap": 4, "missing": "split", "gaps": "independent"},
    {"where": "ok", "missing": "split"},
    {"where": "level != 1 and t > 2", "gaps": "independent"},
]
ALL_AT_ONCE = {"max_gap": 4, "step": 2, "missing": "split", "gaps": "independent", "where": "not ok or level > 0"}


def test_the_same_as_on_one_machine(spark, tmp_path, slow):
    frame = many_subjects()
    table, relation, ordered = spark_frame(frame, tmp_path), in_duckdb(frame), frame.sort("who", "t")
    for options in [*OPTIONS, ALL_AT_ONCE] if slow else [ALL_AT_ONCE]:
        reading = {"state": "act", "subject": "who", "time": "t", "by": ["ok", "who"]} | options
        reading["where"] = f"({options.get('where', 'who != none')}) and ok != none"
        expected = pf.read_sequences(ordered, **reading)
        for found in (pf.read_sequences(table, **reading), pf.read_sequences(relation, **reading)):
            assert summary(found) == summary(expected), options
            assert (found.base.step, found.usual_step, found.shortest_step) == (
                expected.base.step,
                expected.usual_step,
                expected.shortest_step,
            )
            assert (found.groups.cells, found.groups.records) == (expected.groups.cells, expected.groups.records)
            assert np.array_equal(found.groups.counts["act"], expected.groups.counts["act"])
            assert np.array_equal(found.groups.steps, expected.groups.steps)
            assert found.groups.steps.sum() > 0
    assert len(expected.length) > 50


def test_one_chain_of_bins(spark, tmp_path):
    values = [None, -3.5, 0.0, 1.0, 1.5, 2.0, 5.0, 7.0, float("inf"), float("nan")] * 9
    frame = pl.DataFrame({"t": [i / 4 for i in range(90)], "level": values})
    expected = pf.read_sequences(frame, "level", time="t", bins="0,1,2,5", max_gap=0.25)
    found = pf.read_sequences(spark_frame(frame, tmp_path), "level", time="t", bins="0,1,2,5", max_gap=0.25)
    assert summary(found) == summary(expected)


UTC_TIMES = [
    *(datetime(2021, 10, 31, 0, 0) + timedelta(minutes=30 * i) for i in range(16)),  # clocks go back in Paris
    *(datetime(2021, 3, 14, 2, 0) + timedelta(minutes=30 * i) for i in range(12)),  # a clock of New York has no 2:30
    *(datetime(1969, 12, 31, 23, 58, 59, 999_999) + timedelta(minutes=i) for i in range(4)),
    *(datetime(1883, 11, 18, 17, 0, 0, 1) + timedelta(minutes=5 * i) for i in range(6)),
]


@pytest.mark.slow
def test_times_of_every_kind(spark, tmp_path, slow):
    """The session is in New York, whose clock must have no say."""
    states = ["abc"[i % 3] for i in range(len(UTC_TIMES))]
    naive = pl.DataFrame({"t": UTC_TIMES, "act": states}).sort("t")
    zoned = naive.with_columns(pl.col("t").dt.replace_time_zone("UTC"))
    east = timedelta(hours=5, minutes=30)
    with_offsets = [f"\u2003{t}Z" if i % 2 else f"{t + east} +0530" for i, t in enumerate(naive["t"])]
    minutes = {"max_gap": "30min"}
    cases = [
        (naive, naive, minutes | {"where": "'2021-03-14 02:30' <= t < '2021-10-31 05:00'"}),
        (naive.with_columns(pl.col("t").cast(pl.String)), naive, minutes),
        (zoned, zoned, minutes | {"where": "'2021-03-14 02:30Z' <= t < '2021-10-31T06:00+01:00'"}),
        (zoned.with_columns(pl.Series("t", with_offsets)), zoned, minutes),
        (naive.with_columns(pl.col("t").dt.epoch("us")), zoned, minutes | {"max_gap": 30 * 60 * 10**6}),
    ]
    for table, ordered, options in cases if slow else (cases[0], cases[3]):
        shuffled = spark_frame(table.sample(fraction=1, shuffle=True, seed=1), tmp_path)
        found = pf.read_sequences(shuffled, "act", time="t", **options)
        expected = pf.read_sequences(ordered, "act", time="t", **(options | minutes))
        assert summary(found) == summary(expected), table.schema


@pytest.mark.slow
def test_local_times_of_a_zone(spark, tmp_path, slow):
    """A night in Paris whose clock is set back, and hours of which times without a zone do not say all."""
    utc = [datetime(2021, 10, 30, 20, 0) + timedelta(minutes=10 * i) for i in range(72)]
    zoned = pl.DataFrame({"t": utc, "act": ["abc"[i % 3] for i in range(72)]}).with_columns(
        pl.col("t").dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Paris").dt.replace_time_zone(None)
    )
    once = zoned.unique("t", keep="first", maintain_order=True)
    table, reading = spark_frame(once, tmp_path), {"time": "t", "max_gap": "10min", "where": "hour(t) != 3"}
    zones = [{"time_zone": "Europe/Paris", "ambiguous": "later"}, {}]
    for zone in zones if slow else zones[:1]:
        found, expected = (pf.read_sequences(source, "act", **reading, **zone) for source in (table, once))
        assert summary(found) == summary(expected)
        assert (found.grid, found.clock_changes) == (expected.grid, expected.clock_changes)
        assert found.length[0].places or not zone
    for zone in ({"time_zone": "Europe/Paris"}, {"time_zone": "UTC", "ambiguous": "drop", "max_gap": None}):
        assert refusal(table, reading | zone) == refusal(in_duckdb(once), reading | zone)


FAULTS = [
    ({"act": list("aab"), "t": [1, 2, 3]}, {}),  # nothing orders the rows
    ({"act": list("aab"), "t": [1, 2, 3]}, {"time": "tt"}),
    ({"act": list("aab"), "t": [1, 2, 3]}, {"time": "t", "max_gap": "10min"}),
    ({"act": list("aab"), "t": [1, 2, 3]}, {"time": "t", "where": "act == 'a'"}),
    ({"act": list("aab"), "t": [True, False, True]}, {"time": "t"}),
    ({"act": list("aab"), "t": [1, 2, None]}, {"time": "t"}),
    ({"act": list("aab"), "t": [1, 2, 2]}, {"time": "t"}),
    ({"act": list("aab"), "t": [1, 2, 3]}, {"time": "t", "states": ["a", "c"]}),
    ({"act": list("aab"), "t": [1, 2, 3], "who": ["x", "x", None]}, {"time": "t", "subject": "who"}),
    ({"act": list("aab"), "t": ["2021-01-01", "2021-02-30", "2021-01-03"]}, {"time": "t"}),
    ({"act": list("aab"), "t": ["2021-01-01", "2021-01-02T00:00Z", "2021-01-03"]}, {"time": "t"}),
    ({"act": list("aab"), "t": [1.0, 2.0, float("inf")]}, {"time": "t"}),
    ({"act": ["a", None, "b"], "t": [1, 2, 3]}, {"time": "t", "missing": "refuse"}),
    ({"act": list("aab"), "t": [1, 2, 3], "who": list("xyz")}, {"time": "t", "subject": "who"}),
    ({"act": list("aab"), "t": [1, 20, 30]}, {"time": "t", "max_gap": 1}),
    ({"act": ["1", "2", "two"], "t": [1, 2, 3]}, {"time": "t", "bins": [0, 1, 2]}),
    ({"act": list(range(2100)), "t": list(range(2100))}, {"time": "t"}),
    ({"act": pl.Series([None, None], dtype=pl.String), "t": [1, 2]}, {"time": "t"}),
]


def refusal(table, reading):
    with pytest.raises(PufferfishError) as found:
        pf.read_sequences(table, "act", **reading)
    return str(found.value).replace("Spark table", "DuckDB relation")


def test_the_same_refusals_as_on_one_machine(spark, tmp_path, slow):
    for columns, reading in FAULTS if slow else FAULTS[1:10:2]:
        frame = pl.DataFrame(columns)
        assert refusal(spark_frame(frame, tmp_path), reading) == refusal(in_duckdb(frame), reading), reading
    dotted = spark_frame(pl.DataFrame({"a.b": [1, 2], "act": ["x", "y"]}), tmp_path)
    assert "column 'a.b' has a dot or a backtick in its name" in refusal(dotted, {"time": "a.b"})


def test_rows_are_counted_as_on_one_machine(spark, tmp_path, slow):
    rows = pl.DataFrame([row | {"t": i} for i, row in enumerate(random_rows(2))], schema=SCHEMA)
    table = spark_frame(rows, tmp_path)
    for where in ("t > 7 and who != 'a'", None) if slow else ("t > 7 and who != 'a'",):
        expected, found = (
            pf.read_rows(source, NETWORK, subject="t", where=where, missing="unobserved") for source in (rows, table)
        )
        assert found.records == expected.records
        assert {n: c.tolist() for n, c in found.counts.items()} == {n: c.tolist() for n, c in expected.counts.items()}
    one, other = (
        pf.fit_network(source, "act->ok", subject="t", missing="unobserved").networks[0] for source in (rows, table)
    )
    assert one.cpts["ok"].table.tolist() == other.cpts["ok"].table.tolist()
    twice = spark_frame(rows.with_columns(pl.lit(1).alias("t")), tmp_path)
    with pytest.raises(PufferfishError, match=r"several rows for 1 subject \(e.g. '1': 25 rows\)"):
        pf.read_rows(twice, NETWORK, subject="t", missing="unobserved")


@pytest.mark.slow
def test_few_passes_and_rows_stay_on_the_cluster(cluster, spark, tmp_path, monkeypatch):
    """docs/spark.md says how many passes there are; what comes to the driver is as long as what is counted."""
    rows, subjects = 6000, 4
    times = [i + (i // 40) ** 2 for i in range(rows)]  # of a hundred gaps, all different
    frame = pl.DataFrame({"t": times, "who": [i % subjects for i in range(rows)], "act": [i % 3 for i in range(rows)]})
    numbers, text = (spark_frame(table, tmp_path) for table in (frame, frame.with_columns(pl.col("t").cast(pl.String))))
    came: list[int] = []
    to_arrow = type(numbers).toArrow

    def counting(native):
        found = to_arrow(native)
        came.append(found.num_rows)
        return found

    monkeypatch.setattr(type(numbers), "toArrow", counting)
    monkeypatch.setattr(_sampling, "_BLOCKS", 4)  # blocks by which the table is known again, of thousands of rows
    monkeypatch.setattr(_sampling, "_EACH", 1)
    for table in (numbers, text):
        before = cluster.rows_scanned(spark)
        pf.read_sequences(table, "act", subject="who", time="t", max_gap=subjects)
        assert cluster.rows_scanned(spark) - before == 2 * rows
    network = pf.BayesianNetwork({node: pf.CPT(range(4), [0.25] * 4) for node in ("who", "act")})
    before = cluster.rows_scanned(spark)
    pf.read_rows(numbers, network, subject="t")
    assert cluster.rows_scanned(spark) - before == 2 * rows
    blocks = 2 * 16  # of each subject at most, and about 2 where records are near to each other
    assert max(came) <= subjects * 3 * blocks
    assert sorted(came)[-3] <= subjects * 3 * 4  # subjects, states, and states before or none
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == 0  # nothing is kept afterwards


def written(folder, name, frame):
    (folder / name).mkdir()
    for i, part in enumerate(frame.partition_by("who")):
        part.write_csv(folder / name / f"{i}.csv")
        part.write_parquet(folder / name / f"{i}.parquet")
    frame.write_csv(folder / f"{name}.csv")
    return folder / name


@pytest.mark.slow
def test_the_command_line_reads_folders_and_globs(cluster, spark, tmp_path, monkeypatch, slow):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(4)
    rows = [(who, 2 * t, rng.choice(["rest", 'a "quoted", state', None]), t % 7) for who in "xyz" for t in range(80)]
    frame = pl.DataFrame(rows, schema=["who", "t", "act", "level"], orient="row")
    folder = written(tmp_path, "days", frame)
    reading = ["--state", "act", "--subject", "who", "--time", "t", "--max-gap", 2]
    on_cluster = [*reading, "--spark", cluster.master]
    where = ["--where", "level != 3"]
    assert run("fit", "days.csv", *reading, *where, "--output", "one.json").exit_code == 0
    fitted = run("fit", f"{folder}/*.csv", *on_cluster, *where, "--output", "many.json")
    assert fitted.exit_code == 0, fitted.output
    files = [pf.read_model(f"{name}.json") for name in ("one", "many")]
    assert files[0].fitted_on == files[1].fitted_on
    models = [file.theta.chains[0] for file in files]
    assert models[0].transition_matrix.tolist() == models[1].transition_matrix.tolist()
    files = [folder / "0.parquet", folder / "[12].parquet"]
    again = ["release", *files, *on_cluster, *where, "--model", "many.json", "--epsilon", 1, "--output", "release.json"]
    refused(*again, says=["the model was fitted to this very table"])
    made = run(*again, "--accept", "public")
    assert made.exit_code == 0, made.output
    assert "fitted to this very table" in made.stderr
    release = pf.Release.from_json("release.json")
    assert release.data.base.source == "0.parquet, [12].parquet"
    assert release.data.records == frame.filter((pl.col("level") != 3) & pl.col("act").is_not_null()).height
    refused("fit", folder, *on_cluster, "--output", "no.json", says=["several kinds (CSV with ',', Parquet)"])
    refused("fit", f"{folder}/x*.csv", *on_cluster, "--output", "no.json", says=[f"file {folder}/x*.csv not found"])
    lines = [
        (b"x,1,rest,3,4", "more cells than the first line"),
        (b'x,1,"two\nlines",3', "a cell of several lines or a stray quote"),
        (b"x,1,caf\xe9,3", "no UTF-8 text"),
        (b"x,1,re\x1ast,3", "the byte 0x1a, by which old programs end a file"),
        (b"x,1,re\rst,3", "a line with CR inside"),
        (b"x,1,re\0st,3", "the byte 0x00, as have files"),
        (b"\xef\xbb\xbfx,1,rest,3", "a byte order mark inside, as have files that were joined"),
    ]
    for i, (line, says) in enumerate(lines if slow else lines[2:4]):
        (tmp_path / f"{i}.csv").write_bytes(b"who,t,act,level\r\nx,0,rest,2\r\n" + line + b"\r\nx,5,rest\r\n")
        found = f"{i}.csv cannot be read: it has"
        refused("fit", tmp_path / f"{i}.csv", *on_cluster, "--output", "no.json", says=[found, says])
    assert not (tmp_path / "no.json").exists()


@pytest.mark.slow
def test_a_table_that_grows_is_read_on_as_on_one_machine(spark, tmp_path):
    """Rows that were read are left out on the cluster; late rows, new subjects and gaps are found there too."""
    first = datetime(2024, 1, 1)
    early = {"x": [0, 1, 3, 4, 6], "y": [0, 1, 2], "z": []}
    so_far = {"x": [*range(9)], "y": [0, 1, 2, 7, 8], "z": [5, 6]}
    chain, query = pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["a", "b"]), pf.Histogram()
    reading = {"state": "s", "subject": "who", "time": "t", "max_gap": "1h", "step": "1h", "time_zone": "UTC"}

    def rows(held):
        told = [(who, first + timedelta(hours=n), "ab"[n % 2]) for who, some in held.items() for n in some]
        return pl.DataFrame(told, schema=["who", "t", "s"], orient="row")

    kept = []
    for engine in ("polars", "spark"):
        base = pf.read_sequences(rows(early), **reading).base
        ledger = pf.Ledger(pf.LeakagePropagation(chain, 2), 5.0, base=base, grows=True)
        for held in (early, so_far):
            frame = rows(held)
            source = frame if engine == "polars" else spark_frame(frame, tmp_path)
            data = ledger.read(source, query)
            ledger.spend(pf.LeakagePropagation(chain, data.length).calibrate(query, 0.5), data=data)
            kept.append((engine, data.read_before, data.counts.tolist(), data.stretches, data.names))
    assert [each[1:] for each in kept[:2]] == [each[1:] for each in kept[2:]]
    assert kept[3][1] == 8


@pytest.mark.slow
def test_the_command_line_starts_spark_itself(tmp_path):
    spark_cluster.skip_without_spark()
    rows = {"who": ["a"] * 9, "t": range(9), "act": list("xyxxyyxyx")}
    pl.DataFrame(rows).write_parquet(tmp_path / "day.parquet")
    reading = ["--state", "act", "--subject", "who", "--time", "t", "--spark", "local[1]", "--output", "model.json"]
    reading += ["--accept", "smoothing"]  # of nine rows
    for table, code, last in (("none.parquet", 2, "error: file none.parquet not found"), ("day.parquet", 0, "")):
        command = [sys.executable, "-m", "pufferfish", "fit", table, *reading]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stderr
        assert not last or done.stderr.splitlines()[-1] == last
        assert (tmp_path / "model.json").exists() == (code == 0)


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(cluster, spark, slow):
    """Its part is counted again by another, which finds other partitions' results where they were left."""
    if not slow:
        pytest.skip("workers that can be killed are there with --slow")
    table = spark.range(0, 4_000_000, numPartitions=24).selectExpr(
        "id % 50 as who", "id div 50 as t", "pmod(hash(id), 3) as act"
    )
    reading = {"state": "act", "subject": "who", "time": "t", "max_gap": 1}
    expected = pf.read_sequences(table, **reading)
    found = []
    counting = threading.Thread(target=lambda: found.append(pf.read_sequences(table, **reading)))
    cluster.add_worker()
    removed = len(cluster.happened("ExecutorRemoved"))
    counting.start()
    tracker = spark.sparkContext.statusTracker()
    while counting.is_alive():
        stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
        if any(stage is not None and 4 <= stage.numCompletedTasks < 20 for stage in stages):
            break
        time.sleep(0.01)
    assert counting.is_alive()
    cluster.processes[1].kill()
    counting.join(timeout=300)
    until = time.monotonic() + 60  # the log may come after the results
    while len(cluster.happened("ExecutorRemoved")) == removed and time.monotonic() < until:
        time.sleep(0.1)
    assert len(cluster.happened("ExecutorRemoved")) > removed
    assert found[0].counts.tolist() == expected.counts.tolist()
    assert found[0].transitions.tolist() == expected.transitions.tolist()
    assert found[0].length == expected.length
