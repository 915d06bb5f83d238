"""Time to read a CSV file with row filters, beside the same table read with a filter on numbers.

    python benchmarks/filters.py [--rows N]

A filter parses a text column once, however often it names it. Filters on times should take at most a few times as long
as one on numbers, and not more for a condition that is longer.
"""

import argparse
import tempfile
import time
from datetime import datetime
from pathlib import Path

import numpy as np
import polars as pl

import pufferfish as pf

FILTERS = (
    "steps > 3",
    "group == 'a'",
    "start >= '2003-05-12'",
    "'2003-05-12' <= start < '2003-06-01' or start == none",
)


def seconds(path: Path, where: str) -> float:
    start = time.perf_counter()
    pf.read_sequences(path, "state", subject="who", where=where)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=800_000)
    n = parser.parse_args().rows
    rng = np.random.default_rng(1)
    starts = pl.datetime_range(datetime(2003, 1, 1), datetime(2003, 12, 31), "1m", eager=True).gather(
        np.sort(rng.integers(0, 500_000, n))
    )
    frame = pl.DataFrame(
        {
            "who": np.arange(n) * 4 // n,
            "start": starts.dt.strftime("%Y-%m-%d %H:%M:%S"),
            "steps": rng.integers(0, 100, n),
            "group": rng.choice(["a", "b"], n),
            "state": rng.choice(["x", "y", "z"], n),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.write_csv(path)
        plain = min(seconds(path, FILTERS[0]) for _ in range(2))
        for where in FILTERS:
            took = min(seconds(path, where) for _ in range(2))
            print(f"{where:60s} {took:6.2f} s {took / plain:6.1f} times a filter on numbers")


if __name__ == "__main__":
    main()
