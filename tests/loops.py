"""Compile the loops that tests need, on two cores, before the tests start: each of their processes would do it anew.

    python tests/loops.py

What is compiled is kept on the disk (numba's cache), so a second run ends at once.
"""

import sys
import time
from collections.abc import Callable
from multiprocessing import get_context

import numpy as np

import pufferfish as pf


def chain(k: int) -> pf.MarkovChain:
    return pf.MarkovChain(np.random.default_rng(0).dirichlet(np.ones(k), k))


def clock(k: int) -> pf.PeriodicChain:
    return pf.PeriodicChain(np.random.default_rng(0).dirichlet(np.ones(k), (24, k)))


def tree(nodes: int) -> pf.BayesianNetwork:
    step = [[0.9, 0.1], [0.2, 0.8]]
    first = {"v0": pf.CPT(["a", "b"], [0.5, 0.5])}
    below = {f"v{i}": pf.CPT(["a", "b"], step, [f"v{(i - 1) // 2}"]) for i in range(1, nodes)}
    return pf.BayesianNetwork(first | below)


BINARY = pf.BinaryChainInterval(0.2, 0.8)
CASES: dict[str, Callable[[], object]] = {
    "networks": lambda: pf.LeakagePropagation(tree(1000)).calibrate(pf.Count("a"), 1.0),
    "two-state boxes": lambda: pf.LeakagePropagation(BINARY, 100).calibrate(pf.Count("1"), 1.0),
    "their quilts": lambda: pf.MQMExact(BINARY, 100).calibrate(pf.Count("1"), 1.0),
    "chains": lambda: pf.LeakagePropagation(chain(5), 1000).calibrate(pf.Histogram(), 1.0),
    "laws of a chain": lambda: pf.ExactLaplace(chain(2), 1000).calibrate(pf.Count("1"), 1.0),
    "wide laws": lambda: pf.Wasserstein(chain(3), 300).calibrate(pf.Count("1"), 1.0),
    "clocks": lambda: pf.LeakagePropagation(clock(4), 100).calibrate(pf.Histogram(), 1.0),
    "GK16": lambda: pf.GK16(pf.MarkovChain([[0.55, 0.45], [0.5, 0.5]], "any"), 1_000_000).calibrate(pf.Count("1"), 1.0),
}
"""The longest first."""


def run(name: str) -> str:
    start = time.process_time()
    CASES[name]()
    return f"{name:<18}{time.process_time() - start:>6.1f} s"


if __name__ == "__main__":
    with get_context("spawn").Pool(2) as pool:
        for line in pool.imap_unordered(run, CASES):
            sys.stdout.write(f"{line}\n")
