"""How the cost of a calibration grows: with states, with records, with nodes and with the size of clusters.

    python benchmarks/growth.py [--quick]

Every row is one calibration of a histogram (chains) or of all nodes' counts (networks) at ε = 1, or one release, in CPU
seconds of this process, compiled loops loaded. The last columns fit seconds = c · size^p to the larger half of the
sizes. The tables are Markdown: `make performance` keeps them for docs/performance.md.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

import pufferfish as pf


def random_chain(k: int) -> pf.MarkovChain:
    """A chain whose neighbouring states communicate most; it forgets about as fast whatever k is."""
    rng = np.random.default_rng(7)
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) * 51 / k
    weights = rng.gamma(2.0, size=(k, k)) * np.exp(-distance / 4.0) + 1e-4 + 20 * k / 51 * np.eye(k)
    return pf.MarkovChain(weights / weights.sum(axis=1, keepdims=True))


def random_tree(nodes: int) -> pf.BayesianNetwork:
    """A tree of nodes with three states, each node below one that comes before it."""
    rng = np.random.default_rng(nodes)
    states = ["a", "b", "c"]
    cpts = {"v0": pf.CPT(states, rng.dirichlet(np.full(3, 2.0)))}
    for i in range(1, nodes):
        cpts[f"v{i}"] = pf.CPT(states, rng.dirichlet(np.full(3, 2.0), size=3), [f"v{rng.integers(i)}"])
    return pf.BayesianNetwork(cpts)


def released(columns: int) -> Callable[[], Any]:
    """A release of the marginals of a tree, with its checks, for which noise is calibrated already."""
    network, rng = random_tree(columns), np.random.default_rng(1)
    rows = pf.read_rows(pl.DataFrame({node: rng.choice(["a", "b", "c"], 20) for node in network.nodes}), network)
    noise = pf.LeakagePropagation(network, rows.length).calibrate(pf.Marginals(), 1.0)
    return lambda: pf.release(rows, pf.Marginals(), noise)


def long_memory(parents: int, nodes: int = 24) -> pf.BayesianNetwork:
    """A row of nodes with two states, each below the last few: clusters of 2 ** (parents + 1) configurations."""
    rng = np.random.default_rng(parents)
    cpts = {}
    for i in range(nodes):
        above = [f"v{j}" for j in range(max(0, i - parents), i)]
        table = rng.dirichlet(np.full(2, 2.0), size=(2,) * len(above)) if above else rng.dirichlet(np.full(2, 2.0))
        cpts[f"v{i}"] = pf.CPT(["a", "b"], table, above)
    return pf.BayesianNetwork(cpts)


def seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def table(title: str, what: str, sizes: Sequence[int], work: Callable[[int], Callable[[], Any]]) -> None:
    """Print one row of times; each size is prepared before its clock starts."""
    taken = [seconds(work(size)) for size in sizes]
    half = len(sizes) // 2
    power, _ = np.polyfit(np.log(sizes[half:]), np.log(np.maximum(taken[half:], 1e-3)), 1)
    heads = [f"{size:,}" for size in sizes]
    print(f"| CPU seconds, by {what} | {' | '.join(heads)} | grows like power | from |")
    print("|---|" + "---:|" * (len(sizes) + 2))
    print(f"| {title} | {' | '.join(f'{x:.2g}' for x in taken)} | {power:z.1f} | {sizes[half]:,} |\n", flush=True)


def calibrated(bound: Any, query: Any) -> Callable[[], Any]:
    return lambda: bound.calibrate(query, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only sizes that take a few seconds")
    quick = parser.parse_args().quick
    million = 1_000_000
    print("# How the cost of a calibration grows\n")
    for warm in (20, 26):  # loads what is compiled
        pf.LeakagePropagation(random_chain(warm), 1000).calibrate(pf.Histogram(), 1.0)
    pf.LeakagePropagation(random_tree(300)).calibrate(pf.Marginals(), 1.0)
    pf.LeakagePropagation(long_memory(6)).calibrate(pf.Marginals(), 1.0)
    table(
        "leakage propagation, a million records",
        "states",
        (8, 16, 26, 36) if quick else (8, 16, 26, 36, 51, 64, 80),
        lambda k: calibrated(pf.LeakagePropagation(random_chain(k), million), pf.Histogram()),
    )
    table(
        "leakage propagation, 12 states",
        "records",
        [10**i for i in range(2, 9)],
        lambda t: calibrated(pf.LeakagePropagation(random_chain(12), t), pf.Histogram()),
    )
    table(
        "MQMExact, a million records",
        "states",
        (16, 51, 100) if quick else (16, 51, 100, 200),
        lambda k: calibrated(pf.MQMExact(random_chain(k), million), pf.Histogram()),
    )
    table(
        "leakage propagation, trees",
        "nodes",
        (100, 300, 1000) if quick else (100, 300, 1000, 3000, 10_000),
        lambda n: calibrated(pf.LeakagePropagation(random_tree(n)), pf.Marginals()),
    )
    table(
        "a release of all columns, 20 rows", "columns", (100, 300, 1000) if quick else (100, 300, 1000, 3000), released
    )
    table(
        "leakage propagation, 24 nodes",
        "configurations",
        [2**i for i in ((3, 4, 5, 6) if quick else (3, 4, 5, 6, 7, 8, 9))],
        lambda size: calibrated(pf.LeakagePropagation(long_memory(size.bit_length() - 2)), pf.Marginals()),
    )


if __name__ == "__main__":
    main()
