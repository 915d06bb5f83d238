"""One release for each of many subjects: time and memory of every step, and what one noise for everybody costs.

    python benchmarks/many_subjects.py [--subjects N] [--records N] [--ledger]

The table has a chain of two states for every subject, 0.5 to 1.5 times ``--records`` records long. Reading it is most
of the time and of the memory; a draw takes about 25 microseconds of one processor, and all processors draw.

The second table says what the shortest subjects pay for having the same noise as the longest: the scale of a chain of
each length by itself, as a share of the scale for everybody.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import pufferfish as pf

CHAINS = {
    "forgets in 2 records": [[0.9, 0.1], [0.4, 0.6]],
    "forgets in 10 records": [[0.95, 0.05], [0.05, 0.95]],
    "forgets in 50 records": [[0.99, 0.01], [0.01, 0.99]],
}
LENGTHS = (1, 5, 20, 100, 300, 1000, 10_000)


def write_table(path: Path, subjects: int, records: int) -> int:
    """Write stationary chains, a hundred of them again and again under other names."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(records // 2, records + records // 2 + 1, subjects)
    total = int(lengths.sum())
    uniform = rng.random(min(total, 3_000_000))
    state, states = 0, np.empty(len(uniform), dtype=np.uint8)
    for t, u in enumerate(uniform.tolist()):
        state = int(u < (0.6 if state else 0.1))
        states[t] = state
    who = pl.Series("id", np.repeat(np.arange(subjects, dtype=np.int32), lengths))
    activity = pl.Series(np.array(["rest", "active"])[np.resize(states, total)], dtype=pl.String)
    pl.DataFrame({"id": who, "activity": activity}).write_parquet(path)
    return total


def gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def costs() -> None:
    print(f"\nscale of a chain by itself, of that for {LENGTHS[-1]:,} records (epsilon 1)")
    print(f"{'records':>24s}" + "".join(f"{n:>9,}" for n in LENGTHS))
    for name, matrix in CHAINS.items():
        chain = pf.MarkovChain(matrix)
        scales = [pf.LeakagePropagation(chain, n).calibrate(pf.Count(1), 1.0).scale for n in LENGTHS]
        print(f"{name:>24s}" + "".join(f"{scale / scales[-1]:9.2f}" for scale in scales))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--subjects", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=300)
    given = parser.parse_args()
    chain = pf.MarkovChain(CHAINS["forgets in 2 records"], states=["rest", "active"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        total = write_table(path, given.subjects, given.records)
        print(f"{given.subjects:,} subjects, {total:,} records; {gigabytes():.2f} GB so far")

        def step(what: str, start: float) -> None:
            print(f"{what:40s} {time.perf_counter() - start:7.1f} s   up to {gigabytes():.2f} GB")

        start = time.perf_counter()
        data = pf.read_sequences(path, "activity", subject="id", states=chain.states)
        step("read", start)
        start = time.perf_counter()
        bound = pf.LeakagePropagation(chain, data.length)
        noise = bound.calibrate(pf.Histogram(), 1.0)
        step("calibrate", start)
        start = time.perf_counter()
        ledger = pf.Ledger(bound, 4.0, base=data)
        ledger.save(Path(folder) / "book.json")
        step("make a ledger", start)
        start = time.perf_counter()
        output = Path(folder) / "values.parquet"
        pf.release_each(data, pf.Histogram(), noise, output, ledger=ledger)
        step(f"release {2 * given.subjects:,} values", start)
        start = time.perf_counter()
        pf.Ledger.open(Path(folder) / "book.json")
        step("open the ledger", start)
        sizes = {name: (Path(folder) / name).stat().st_size / 2**20 for name in ("values.parquet", "book.json")}
        record = output.with_suffix(".json").stat().st_size / 2**10
        print(", ".join(f"{name} {size:.1f} MB" for name, size in sizes.items()) + f", record {record:.1f} kB")
    costs()


if __name__ == "__main__":
    main()
