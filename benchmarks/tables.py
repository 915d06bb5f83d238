"""Time, CPU and memory to read tables of many rows, beside hand-written DuckDB SQL that counts the same.

    python benchmarks/tables.py ["N KIND" ...] [--subjects N] [--interleaved] [--folder FOLDER]

Each reading is a process of its own. Its CPU and its peak memory are what the system says of the whole process, with
the start of Python in it. The SQL has the memory limit of ``--memory`` and a folder to spill to. It sorts, since a
table of SQL has no order, and checks nothing: no missing times or subjects, no ties. Reading should take at most 1.5
times as long as the SQL.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

GAP = 10  # minutes
SHARE = 50  # one gap in so many rows
BATCH = 2_000_000

SQL = f"""
create temp table linked as
with ordered as (
  select who, activity, epoch_us(t) as t, lag(epoch_us(t)) over w as earlier, lag(activity) over w as before
  from records window w as (partition by who order by t)
), differences as (
  select who, activity, t - earlier as apart, before from ordered
)
select who, if(apart <= {GAP} * 60000000, before, null) as before, activity,
  coalesce(apart <= {GAP} * 60000000, false) as linked, apart, count(*) as n
from differences group by all
"""
STEP = "select apart from linked where linked group by apart order by sum(n) desc, apart limit 1"
GROUPS = """
select who, before, activity, linked, sum(n),
  sum(n * if(linked or apart is null, 1, greatest(2, apart // {step} + (apart % {step} > 0)::int)))
from linked group by all
"""


def by_hand(path: Path, memory: str) -> int:
    """Count rows by subject and two states, and the steps of gaps, after the usual step."""
    import duckdb

    with tempfile.TemporaryDirectory(dir=path.parent) as spill:
        connection = duckdb.connect(config={"threads": 2, "memory_limit": memory, "temp_directory": spill})
        read = "read_parquet" if path.suffix == ".parquet" else "read_csv"
        connection.sql(f"create view records as select * from {read}('{path}')")
        connection.execute(SQL)
        step = connection.execute(STEP).fetchone()
        groups = connection.execute(GROUPS.format(step=step[0])).fetchall()
        return sum(number for _, _, activity, _, number, _ in groups if activity is not None)


def by_pufferfish(path: Path, memory: str) -> int:
    import pufferfish as pf

    data = pf.read_sequences(path, "activity", subject="who", time="t", max_gap=f"{GAP}min")
    return data.records


READERS: dict[str, Callable[[Path, str], int]] = {"DuckDB SQL by hand": by_hand, "pufferfish": by_pufferfish}


def generate(path: Path, rows: int, subjects: int, *, interleaved: bool) -> None:
    """Minutes of subjects, with gaps of up to a day, one subject after another or all of them minute by minute."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(1)
    each = rows // subjects
    began = np.datetime64(datetime(2020, 1, 1), "us")
    activities = pl.Series(["rest", "sit", "walk", "run", None])

    def part(who: Any, minute: Any) -> pl.DataFrame:
        state = np.where(rng.random(len(who)) < 0.01, 4, rng.integers(0, 4, len(who)))
        return pl.DataFrame(
            {
                "who": pl.Series(who),
                "t": pl.Series(began + minute.astype("timedelta64[m]")),
                "activity": activities.gather(state),
            }
        )

    def minutes(n: int, k: int) -> Any:
        steps = np.where(rng.random((n, k)) < 1 / SHARE, rng.integers(11, 1440, (n, k)), 1)
        return np.cumsum(steps, axis=0)

    def parts() -> Any:
        if interleaved:
            last, some = np.zeros(subjects, np.int64), max(1, BATCH // subjects)
            for first in range(0, each, some):
                n = min(some, each - first)
                found = last + minutes(n, subjects)
                last = found[-1]
                yield part(np.tile(np.arange(subjects), n), found.ravel())
        else:
            some = max(1, BATCH // each)
            for first in range(0, subjects, some):
                n = min(some, subjects - first)
                yield part(np.repeat(np.arange(first, first + n), each), minutes(each, n).T.ravel())

    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        writer = None
        for frame in parts():
            table = frame.to_arrow()
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table.cast(writer.schema), row_group_size=500_000)
        writer.close()
        return
    with path.open("wb") as file:
        for i, frame in enumerate(parts()):
            frame.write_csv(file, include_header=not i, datetime_format="%Y-%m-%d %H:%M:%S")


def measured(reader: str, path: Path, memory: str) -> tuple[float, float, float, str]:
    """Return the seconds, seconds of CPU and GB that a process takes to read a table, and what it found."""
    start = time.perf_counter()
    receive, send = os.pipe()
    given = [sys.executable, __file__, "--read", reader, "--memory", memory, "--folder", str(path)]
    files = [(os.POSIX_SPAWN_DUP2, send, 1), (os.POSIX_SPAWN_CLOSE, receive)]
    process = os.posix_spawn(sys.executable, given, os.environ, file_actions=files)
    os.close(send)
    with os.fdopen(receive) as said:
        found = said.read()
    _, status, used = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{reader} failed on {path.name}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20, found


def main() -> None:
    parser = argparse.ArgumentParser()
    small = [f"{millions}_000_000 {kind}" for kind in ("parquet", "csv") for millions in (1, 4)]
    parser.add_argument("tables", nargs="*", default=small, help='rows and kind of file: "4_000_000 csv"')
    parser.add_argument("--subjects", type=int, default=20_000)
    parser.add_argument("--memory", default="1500MB")
    parser.add_argument("--interleaved", action="store_true")
    parser.add_argument("--only", default=",".join(READERS))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--read")
    given = parser.parse_args()
    if given.read is not None:
        print(READERS[given.read](given.folder, given.memory))
        return
    if find_spec("duckdb") is None:
        print("tables.py: skipped, as DuckDB is missing")
        return
    print("# Reading tables of many rows\n")
    print("| rows, kind of file | read by | seconds | CPU seconds | peak memory, GB | time, ratio | CPU, ratio |")
    print("|---|---|---:|---:|---:|---:|---:|", flush=True)
    ours: dict[str, list[tuple[int, float]]] = {}
    for table in given.tables:
        rows, kind = int(table.split()[0]), table.split()[1]
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            path = Path(folder) / f"records.{kind}"
            generate(path, rows, given.subjects, interleaved=given.interleaved)
            first, same = None, set[str]()
            for reader in given.only.split(","):
                took, cpu, memory, found = measured(reader, path, given.memory)
                first = first or (took, cpu)
                same.add(found.strip())
                if reader == "pufferfish":
                    ours.setdefault(kind, []).append((rows, cpu))
                print(
                    f"| {rows:,} rows, {kind} | {reader} | {took:.1f} | {cpu:.1f} | {memory:.2f} "
                    f"| {took / first[0]:.2f} | {cpu / first[1]:.2f} |",
                    flush=True,
                )
            assert len(same) == 1, f"the readers count different records: {same}"
    print("\n| CPU seconds of pufferfish | once | each million rows |\n|---|---:|---:|")
    for kind, ((few, fast), *others) in ours.items():
        for many, slow in others[-1:]:  # a line through the shortest and the longest table
            each = (slow - fast) / (many - few)
            print(f"| {kind} | {fast - each * few:.1f} | {each * 1e6:.3f} |")


if __name__ == "__main__":
    main()
