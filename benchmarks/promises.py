"""What promises add to a release, and what hiding an hour or a day takes beside hiding a record, in CPU seconds.

    python benchmarks/promises.py [--data FOLDER]

A million records, read already. A release is the search for its noise, its proof, its values and its record; "adds" is
the share of the table of promises in all else. Then the search for noise that hides an hour, and a day, over that for a
record. With --data the chain of 51 states is fitted to the electricity of that folder, and is as long.
"""

import argparse
import time
from bisect import bisect
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import pufferfish as pf

FILE = "electricity_uci_2y_2006-12-17_1051200min.csv.gz"
T = 1_000_000


def sticky(k: int, stay: float = 0.8) -> np.ndarray:
    """Return a matrix whose neighbouring states communicate most."""
    rng = np.random.default_rng(7)
    weights = rng.gamma(2.0, size=(k, k)) * np.exp(-np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / 4) + 1e-4
    return stay * np.eye(k) + (1 - stay) * weights / weights.sum(axis=1, keepdims=True)


def by_hour(k: int, start: str = "stationary") -> pf.PeriodicChain:
    """Return a chain that moves less by night."""
    hours = [sticky(k, 0.95 - 0.01 * min(hour, 24 - hour)) for hour in range(24)]
    return pf.PeriodicChain(hours, start, clock="hour", step="1min")


def cases(folder: Path | None) -> Iterator[tuple[str, Any, Any]]:
    """Yield names, classes Θ, and data."""
    matrices = {k: sticky(k) for k in (2, 4, 51)}
    if folder is not None:
        data = pf.read_sequences(folder / FILE, "watts", bins="0,200,...,10200", step="1min")
        yield "51 states, electricity", pf.fit_chain(data), data
    else:
        yield "51 states", pf.MarkovChain(matrices[51]), simulated(matrices[51])
    for k in (2, 4):
        data = simulated(matrices[k])
        yield f"{k} states", pf.MarkovChain(matrices[k]), data
        yield f"{k} states, any first law", pf.MarkovChain(matrices[k], "any"), data
        yield f"{k} states, hours of the day", by_hour(k), data
    yield "2 states, hours of the day, any", by_hour(2, "any"), simulated(matrices[2])
    again = np.stack([matrices[4]] * 4) * 0.9 + 0.1 * np.eye(4)
    yield "4 states, order 2", pf.HigherOrderChain(again), simulated(matrices[4])


def simulated(matrix: np.ndarray) -> Any:
    """Return a series of one subject, minute by minute."""
    rows, state, states = np.cumsum(matrix, axis=1).tolist(), 0, list[str]()
    for share in np.random.default_rng(1).random(T).tolist():
        state = min(bisect(rows[state], share), len(matrix) - 1)
        states.append(str(state))
    start = datetime(2020, 1, 1)
    times = pl.datetime_range(start, start + timedelta(minutes=T - 1), "1m", eager=True)
    table = pl.DataFrame({"state": states, "time": times})
    names = [str(x) for x in range(len(matrix))]
    return pf.read_sequences(table, "state", time="time", max_gap="1min", states=names)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU time of some work, and what came out."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, help="folder with the electricity data")
    folder = parser.parse_args().data
    print(f"{'Θ':<34}{'query':<12}{'noise, s':>9}{'release, s':>11}{'promises adds':>14}{'hour':>7}{'day':>7}")
    for name, theta, data in cases(folder):
        for query in (pf.Histogram(), pf.Switches()):
            line(name, theta, data, query)


def line(name: str, theta: Any, data: Any, query: Any) -> None:
    """Time one case, with new mechanisms."""
    model = pf.Model(theta=theta, step="1min")
    pf.LeakagePropagation(model, 1000).calibrate(query, 1.0).promises()  # loads compiled code
    searched, noise = seconds(lambda: pf.LeakagePropagation(model, data.length).calibrate(query, 1.0))
    promised, _ = seconds(noise.promises)
    released, _ = seconds(lambda: pf.release(data, query, noise, accept="public"))
    hidden = [
        seconds(partial(pf.LeakagePropagation(model, data.length, protect=unit).calibrate, query, 1.0))[0] / searched
        for unit in ("1h", "1d")
    ]
    whole = searched + released - promised
    print(
        f"{name:<34}{query.kind:<12}{searched:>9.3f}{whole:>11.3f}{promised / whole:>14.1%}"
        f"{hidden[0]:>7.2f}{hidden[1]:>7.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
