"""A ledger of a table that grows: what a week costs after many, beside the first: ``python benchmarks/bulletin.py``.

Weekly histograms of daily records, a tenth of the subjects away at random. ``--subjects 100000 --weeks 520`` is ten
years of an office, and takes some minutes.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import pufferfish as pf
from pufferfish.data.sequences import Base, Sequences, TimeGrid

DAY = 86_400_000_000
QUERY = pf.Histogram()
BASE = Base(source="week.csv", state="s", subject="who", time="t", max_gap="1d", step="1d")


def week(number: int, names: np.ndarray, rng: np.random.Generator) -> Sequences:
    """What a week's file is read as."""
    here = names[rng.random(len(names)) >= 0.1]
    span, n = (7 * DAY * number, 7 * DAY * number + 6 * DAY), len(here)
    return Sequences(
        states=("a", "b"),
        counts=np.tile([[5, 2]], (n, 1)),
        transitions=np.array([[3 * n, n], [n, n]]),
        length=(pf.ChainLength(7, 7),) * n,
        subjects=n,
        base=BASE,
        names=tuple(here.tolist()),
        grid=TimeGrid(DAY, (span,) * n),
    )


def main() -> None:
    """Print CPU seconds and megabytes."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--subjects", type=int, default=10_000)
    given.add_argument("--weeks", type=int, default=104)
    options = given.parse_args()
    names = np.array([f"person-{i:06}" for i in range(options.subjects)])
    rng, chain = np.random.default_rng(1), pf.MarkovChain([[0.99, 0.01], [0.02, 0.98]], states=["a", "b"])
    ledger = pf.Ledger(pf.LeakagePropagation(chain, 7), 1.0, base=BASE, grows=True)
    ledger.plan([QUERY])
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "book.json"
        ledger.save(book)
        for number in range(options.weeks):
            data = week(number, names, rng)
            noise = ledger.as_planned(QUERY, data)
            start = time.process_time()
            ledger.spend(noise, data=data)
            seconds.append(time.process_time() - start)
        start = time.process_time()
        again = pf.Ledger.open(book)
        opening = time.process_time() - start
        assert again.spent == ledger.spent <= 1.0
        size = os.path.getsize(book) / 1e6
    first, last = np.median(seconds[1:6]), np.median(seconds[-5:])
    print("# A ledger of a table that grows\n")
    print("| subjects | weeks | a spend at first, CPU s | a spend at last, CPU s | ratio | opening, CPU s | file, MB |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    times = f"{first:.3f} | {last:.3f} | {last / first:.2f} | {opening:.2f}"
    print(f"| {options.subjects:,} subjects | {options.weeks} | {times} | {size:.1f} |")


if __name__ == "__main__":
    main()
