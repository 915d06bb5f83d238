"""Libraries that tests compare with, and that a machine may lack."""

from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest


def pyagrum_or_skip() -> Any:
    """Return pyAgrum, or skip; it needs a system library that a bare Debian machine lacks."""
    reason = "pyAgrum cannot be loaded: pip install pyagrum (and on Debian apt-get install libgomp1)"
    return pytest.importorskip("pyagrum", reason=reason, exc_type=ImportError)


def ibis_table(frame: pl.DataFrame) -> Any:
    """Return a frame as a table of ibis on DuckDB; through a file, since ibis warns about frames."""
    ibis: Any = pytest.importorskip("ibis")
    connection = ibis.duckdb.connect()
    with TemporaryDirectory() as folder:
        frame.write_parquet(f"{folder}/held.parquet")
        connection.raw_sql(f"create table held as select * from read_parquet('{folder}/held.parquet')")
    return connection.table("held")
