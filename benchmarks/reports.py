"""What a comparison and a page cost beside the noise that they are about, as ratios of time.

    python benchmarks/reports.py

A comparison of every mechanism is held against the calibrations in it (what else it takes is the lower bound); a
preview, with the noise of one mechanism at 41 ε and that of each other one at nine, against one comparison. Last the
seconds of work for a page about four releases.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import pufferfish as pf
from pufferfish.release.show.page import Source, report_page


def sticky(k: int, stay: float) -> pf.MarkovChain:
    """Return a chain that mostly stays in its state."""
    mixed = np.random.default_rng(0).dirichlet(np.ones(k), size=k)
    p = stay * np.eye(k) + (1 - stay) * mixed
    return pf.MarkovChain(p / p.sum(axis=1, keepdims=True))


CASES: list[tuple[str, Any, int]] = [
    ("2 states", pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 5_000),
    ("10 states", sticky(10, 0.9), 5_000),
    ("20 states", sticky(20, 0.9), 1_000),
    ("120 states", sticky(120, 0.9), 1_000),
    ("every initial law", pf.MarkovChain(sticky(3, 0.9).transition_matrix, "any"), 1_000),
    ("8 members", [sticky(3, 0.9 + i / 1000) for i in range(8)], 1_000),
]


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the time of some work, and what came out."""
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def main() -> None:
    """Print a line for each case."""
    pf.compare(CASES[0][1], pf.Histogram(), 1.0, 100)  # loads compiled code
    print(f"{'Θ':<20}{'compare, s':>11}{'calibrations':>14}{'lower bound':>13}{'preview / compare':>19}")
    for name, theta, length in CASES:
        spent, found = seconds(lambda theta=theta, length=length: pf.compare(theta, pf.Histogram(), 1.0, length))
        calibrated = sum(row.seconds for row in found)
        with tempfile.TemporaryDirectory() as folder:
            page, _ = seconds(lambda found=found, folder=folder: found.report(Path(folder) / "page.html"))
        shares = f"{calibrated / spent:>14.0%}{found.bound_seconds / spent:>13.0%}"
        print(f"{name:<20}{spent:>11.2f}{shares}{page / spent:>19.2f}", flush=True)
    print(f"a page about four releases: {four_releases():.2f} s of work")


def four_releases() -> float:
    """Return the seconds of work for a page about four releases of a year of days."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"s": rng.choice(["a", "b", "c"], 8760)}).with_columns(
        pl.datetime_range(pl.datetime(2026, 1, 1), pl.datetime(2026, 12, 31, 23), "1h", eager=False).alias("t")
    )
    chain = pf.MarkovChain(sticky(3, 0.5).transition_matrix, states=["a", "b", "c"])
    sources: list[Source] = []
    asked: list[tuple[Any, Any]] = [
        (pf.Histogram(), None),
        (pf.Histogram(), "hour"),
        (pf.Frequency("a"), "month"),
        (pf.Frequency("b"), ["weekday", "hour"]),
    ]
    for query, by in asked:
        data = pf.read_sequences(frame, "s", time="t", max_gap="1h", by=by)
        noise = pf.LeakagePropagation(chain, data.length).calibrate(query, 1.0)
        sources.append(Source(pf.release(data, query, noise)))
    start = time.process_time()
    report_page(sources)
    return time.process_time() - start


if __name__ == "__main__":
    main()
