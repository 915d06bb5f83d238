"""Tables, and noise, that break off in the middle."""

import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

import pufferfish as pf
from faults.processes import forked
from faults.rows import Fault, Row, holds, wrong
from faults.trials import contents, prepared
from pufferfish.errors import PufferfishError

__all__ = ["engines"]


class Broken(Exception):
    """What an engine raises in the middle."""


def engines(place: Path, quick: bool) -> Iterator[Row]:
    """Tables that break off while they are read, under a ledger: an error in one line, and nothing is spent."""
    folder = prepared(place / "good")
    before = contents(folder)
    for name in ("polars", "DuckDB", "CSV that is cut off", "noise"):
        trials, broken = 0, 0
        for after in (0, 30, 119):
            trials += 1
            code, said = forked(lambda name=name, after=after: _broken(name, after), folder)
            left = {n: c for n, c in contents(folder).items() if not n.endswith((".lock", ".gz"))}
            try:
                holds(code == 0, said)
                if name == "noise":  # drawn after it is booked: spent, and not released
                    entries = json.loads(left.pop("book.json"))["entries"]
                    holds(len(entries) == 1 + trials, "not booked")
                    holds(
                        left == {n: c for n, c in before.items() if n != "book.json" and not n.endswith(".lock")},
                        "changed",
                    )
                else:
                    holds(left == {n: c for n, c in before.items() if not n.endswith(".lock")}, "something changed")
            except Fault as fault:
                broken += wrong(f"{name} after {after}: {fault}")
        found = "spent, not released" if name == "noise" else "refused, nothing spent"
        yield Row(f"{name}: fails after 0, 30 and 119 of 120 rows", trials, found, broken)


def _broken(name: str, after: int) -> None:
    """Release with a table, or noise, that fails after so many rows; end with 0 where it fails as it should."""
    ledger = pf.Ledger.open("book.json")
    rows = pl.read_csv("table.csv")
    table: Any = rows
    order = {"time": "row"} if name == "DuckDB" else {}
    if name == "noise":
        table = "table.csv"

        def fails(exact: Any, *_: Any, **__: Any) -> Callable[[], list[int]]:
            return lambda: (_ for _ in ()).throw(Broken("no more random numbers"))

        importlib.import_module("pufferfish.release.draw").discrete_laplace_noise = fails
    elif name == "polars":
        from polars.io.plugins import register_io_source

        def batches(*_: Any) -> Iterator[pl.DataFrame]:
            yield rows[:after]
            raise Broken("the disk is gone")

        table = register_io_source(batches, schema=rows.schema)
    elif name == "DuckDB":
        import duckdb

        kept = duckdb.connect()

        def count(row: int) -> int:
            if row >= after:
                raise Broken("the disk is gone")
            return row

        kept.create_function("count_row", count, ["BIGINT"], "BIGINT")
        kept.register("rows", rows.with_row_index("row"))
        table = kept.sql("select id, activity, row from rows where count_row(row) >= 0")
    else:
        import gzip

        content = gzip.compress(Path("table.csv").read_bytes())
        Path("cut.csv.gz").write_bytes(content[: len(content) * (after + 30) // 160])
        table = "cut.csv.gz"
    query = pf.Histogram()
    try:
        data = pf.read_sequences(table, "activity", subject="id", **order)
        noise = ledger.bound.calibrate(query, 0.5)
        pf.release(data, query, noise, ledger=ledger)
    except (PufferfishError, Broken) as error:
        whys = {"noise": "no more random numbers", "CSV that is cut off": "incomplete or damaged"}
        why = whys.get(name, "the disk is gone")
        holds(len(str(error).splitlines()) == 1 and why in str(error), str(error))
        return
    holds(False, "it did not fail")
