"""Time of one leakage evaluation on forests, beside the same two sweeps in plain Python.

    python benchmarks/trees.py [--nodes N ...]

Every node has tables and losses of its own. The plain sweeps maximise over the cones' star vertices only: all there are
with two or three states, so the numbers have to agree; with four they can only be lower. Then, the seconds of a whole
calibration: a count on a network of the most nodes.
"""

import argparse
import time

import numpy as np
from numpy.typing import NDArray

import pufferfish as pf
from pufferfish._core.propagation.clusters import ClusterPropagation

Array = NDArray[np.float64]


def shape(kind: str, n: int, rng: np.random.Generator) -> list[int]:
    above = {
        "random": lambda i: int(rng.integers(i)),
        "path": lambda i: i - 1,
        "star": lambda i: 0,
        "binary": lambda i: (i - 1) // 2,
    }[kind]
    return [-1] + [above(i) for i in range(1, n)]


def phi(kernel: Array, a: Array) -> Array:
    """Best star for every pair of rows; bounds closed by shortest paths."""
    grown = np.exp(a)
    sums = kernel @ np.concatenate([grown, 1 / grown.T], axis=1)
    return np.log((sums[:, None, :] / sums[None, :, :]).max(axis=2))


def plainly(parents: list[int], tables: list[Array], losses: list[Array]) -> float:
    """Two sweeps over a tree whose parents come before their children; all tables positive."""
    n = len(parents)
    marginals = [tables[0]]
    for i in range(1, n):
        marginals.append(marginals[parents[i]] @ tables[i])
    children: list[list[int]] = [[] for _ in parents]
    for i in range(1, n):
        children[parents[i]].append(i)
    message = [np.zeros_like(loss) for loss in losses]
    below = [np.zeros_like(loss) for loss in losses]
    above = [np.zeros_like(loss) for loss in losses]
    for i in reversed(range(1, n)):
        message[i] = phi(tables[i], losses[i] + below[i])
        below[parents[i]] = below[parents[i]] + message[i]
    worst = 0.0
    for i in range(n):
        worst = max(worst, float((losses[i] + above[i] + below[i]).max()))
        after = [np.zeros_like(losses[i])]
        for child in reversed(children[i]):
            after.append(after[-1] + message[child])
        before = losses[i] + above[i]
        for child, rest in zip(children[i], after[-2::-1], strict=True):
            reverse = (marginals[i][:, None] * tables[child] / marginals[child]).T
            above[child] = phi(reverse, before + rest)
            before = before + message[child]
    return worst


def forest(parents: list[int], tables: list[Array]) -> ClusterPropagation:
    scopes = [((i,) if p < 0 else (p, i), table) for i, (p, table) in enumerate(zip(parents, tables, strict=True))]
    return ClusterPropagation(scopes, [table.shape[-1] for table in tables])


def calibrations(n: int, rng: np.random.Generator) -> None:
    print(f"\n{'tree':<8}{'k':>3}{'nodes':>8}{'calibrate, s':>14}{'noise multiplier':>18}")
    for kind in ("random", "binary", "path", "star"):
        for k in (2, 3):
            states = [f"s{x}" for x in range(k)]
            cpts = {
                f"n{i}": pf.CPT(
                    states,
                    (rng.dirichlet(np.ones(k), size=None if p < 0 else k) * 0.9 + 0.1 / k).tolist(),
                    [] if p < 0 else [f"n{p}"],
                )
                for i, p in enumerate(shape(kind, n, rng))
            }
            start = time.perf_counter()
            found = pf.LeakagePropagation(pf.BayesianNetwork(cpts)).calibrate(pf.Count("s1"), 1.0)
            print(f"{kind:<8}{k:>3}{n:>8,}{time.perf_counter() - start:>14.2f}{found.noise_multiplier:>18.4g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000])
    nodes = parser.parse_args().nodes
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    forest([-1] + [0] * 1000, [np.ones(2) / 2] + [np.ones((2, 2)) / 2] * 1000).leakage([1 - np.eye(2)] * 1001)
    print(f"loading or making the compiled sweeps: {time.perf_counter() - start:.1f} s\n")
    print(f"{'tree':<8}{'k':>3}{'nodes':>8}{'model':>10}{'leakage':>10}{'plain':>9}{'ratio':>8}{'nats':>10}")
    for n in nodes:
        for kind in ("random", "path", "star"):
            for k in (2, 3, 4):
                parents = shape(kind, n, rng)
                tables = [rng.dirichlet(np.ones(k), size=None if p < 0 else k) * 0.9 + 0.1 / k for p in parents]
                loss = 0.1 if kind != "star" else 1e-3  # the star's centre hears all leaves
                losses = [loss * rng.uniform(1, 2, size=(k, k)) * (1 - np.eye(k)) for _ in parents]
                start = time.perf_counter()
                engine = forest(parents, tables)
                model = time.perf_counter() - start
                start = time.perf_counter()
                found = engine.leakage(losses).total
                fast = time.perf_counter() - start
                start = time.perf_counter()
                expected = plainly(parents, tables, losses)
                slow = time.perf_counter() - start
                assert found >= expected * (1 - 1e-9)
                assert k > 3 or found <= expected * (1 + 1e-6)  # rounding adds up along a path
                print(f"{kind:<8}{k:>3}{n:>8,}{model:>10.4f}{fast:>10.4f}{slow:>9.3f}{slow / fast:>8.0f}{found:>10.4f}")
    calibrations(max(nodes), rng)


if __name__ == "__main__":
    main()
