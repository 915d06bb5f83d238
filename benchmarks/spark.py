"""Time to read a table on Spark, beside hand-written Spark SQL that counts the same, on the same cluster in one run.

    python benchmarks/spark.py [--rows N] [--subjects N] [--master MASTER]

The SQL counts what releases need and checks nothing: no missing times or subjects, no ties. Reading should take at most
twice as long.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pufferfish as pf

GAP = 10  # minutes

LINKED = f"""
with ordered as (
  select who, activity, unix_micros(t) as t, lag(unix_micros(t)) over w as earlier, lag(activity) over w as before
  from records window w as (partition by who order by t)
), linked as (
  select *, t - earlier as apart, coalesce(t - earlier <= {GAP} * 60000000, false) as linked from ordered
)
"""
STEP = "select apart from linked where linked group by apart order by count(*) desc, apart limit 1"
GROUPS = """
select who, if(linked, null, apart) as gap, if(linked, before, null) as before, activity, linked, count(*)
from linked group by all
"""


def by_hand(session: Any) -> int:
    """Count rows by subject, two states and gap, after the usual step."""
    session.sql(LINKED + STEP).toArrow()
    return sum(session.sql(LINKED + GROUPS).toArrow()["count(1)"].to_pylist())


def by_pufferfish(session: Any) -> int:
    table = session.table("records")
    data = pf.read_sequences(table, "activity", subject="who", time="t", max_gap=f"{GAP}min")
    return data.records


def seconds(count: Callable[[Any], int], session: Any, rows: int) -> float:
    start = time.perf_counter()
    assert count(session) == rows
    return time.perf_counter() - start


def generate(session: Any, path: Path, rows: int, subjects: int) -> None:
    """Minutes of subjects with a gap in every fifty, in no order."""
    session.range(rows, numPartitions=8).selectExpr(
        f"id % {subjects} as who",
        f"timestamp_seconds(60 * (id div {subjects} + 60 * (id div {subjects} div 50))) as t",
        "element_at(array('rest', 'sit', 'walk', 'run'), cast(pmod(hash(id), 4) as int) + 1) as activity",
    ).orderBy("activity").write.parquet(str(path))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--subjects", type=int, default=2_000)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    if find_spec("pyspark") is None or shutil.which("java") is None:
        print("spark.py: skipped, as PySpark or Java is missing")
        return
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(given.master).appName("pufferfish benchmark")
    quiet = {"spark.log.level": "ERROR", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    for name, value in quiet.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.shuffle.partitions", "8").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records"
        generate(session, path, given.rows, given.subjects)
        session.read.parquet(str(path)).createOrReplaceTempView("records")
        took: dict[str, list[float]] = {"by hand": [], "pufferfish": []}
        for _ in range(4):  # the first is a rehearsal: Java compiles what it runs often
            took["by hand"].append(seconds(by_hand, session, given.rows))
            took["pufferfish"].append(seconds(by_pufferfish, session, given.rows))
        session.stop()
    best = {name: min(times[1:]) for name, times in took.items()}
    print(f"{given.rows:,} rows of {given.subjects:,} subjects on {given.master}")
    for name, value in best.items():
        print(f"{name:12s} {value:7.2f} s {value / best['by hand']:5.2f} times Spark SQL by hand")


if __name__ == "__main__":
    main()
