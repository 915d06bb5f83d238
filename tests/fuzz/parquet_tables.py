"""Parquet tables: refused by one line, or read."""

import io
from functools import cache

import polars as pl

import pufferfish as pf
from fuzz.mutation import of_bytes
from fuzz.target import Accepted, Target, file

__all__ = ["TARGET"]


@cache
def seeds() -> list[bytes]:
    table = pl.DataFrame(
        {
            "id": ["S1"] * 30 + ["S2"] * 30,
            "t": [*range(30)] * 2,
            "state": ["rest", "active", None] * 20,
            "n": [0.5, 7] * 30,
        }
    )
    typed = table.with_columns(pl.from_epoch("t", time_unit="s"), pl.col("state").cast(pl.Categorical))
    found = list[bytes]()
    for frame, compression in ((table, "uncompressed"), (typed, "zstd"), (table, "snappy")):
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression=compression)  # type: ignore[arg-type]
        found.append(buffer.getvalue())
    return found


def one_input(data: bytes) -> None:
    path = file("table.parquet", data)
    for options in ({}, {"subject": "id", "time": "t"}):
        found = pf.read_sequences(path, "state", **options)  # type: ignore[arg-type]
        if int(found.counts.sum()) != found.records:
            raise Accepted(f"records: {found.records} of them, and counts of {int(found.counts.sum())}")


TARGET = Target("parquet", seeds, one_input, of_bytes)
