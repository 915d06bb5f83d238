"""Seconds and memory of Wasserstein and ExactLaplace on long chains, beside the plain way of computing the same laws.

    python benchmarks/law_mechanisms.py

The plain way convolves both sides of every record in doubles, without grouping records. It is run where it is bearable
(T = 2,000), may find no larger W (doubles lose the tails), and its time there is the reference of the ratio. Memory is
the peak of what Python and numpy allocate (tracemalloc), in MB.
"""

import time
import tracemalloc

import numpy as np

import pufferfish as pf

CHAINS = {
    "running example": [[0.9, 0.1], [0.4, 0.6]],
    "sticky": [[0.99, 0.01], [0.02, 0.98]],
    "three states": [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]],
}


def plain_distance(p: list[list[float]], steps: int) -> int:
    """Return W of the number of records in state 1, from the laws given every record."""
    matrix = np.array(p)
    k = len(p)
    pi = pf.MarkovChain(matrix).stationary_distribution
    left, right = [np.zeros((k, steps + 1))], [np.zeros((k, steps + 1))]
    left[0][np.arange(k), (np.arange(k) == 1).astype(int)] = pi
    right[0][:, 0] = 1
    for _ in range(steps - 1):
        arrived = matrix.T @ left[-1]
        arrived[1] = np.roll(arrived[1], 1)
        left.append(arrived)
        ahead = right[-1].copy()
        ahead[1] = np.roll(ahead[1], 1)
        right.append(matrix @ ahead)
    worst = 0
    for i in range(steps):
        laws = [np.convolve(left[i][a], right[steps - 1 - i][a])[: steps + 1] / pi[a] for a in range(k)]
        below = [np.cumsum(law) for law in laws]
        for a in range(k):
            for b in range(k):
                if a != b:
                    reach = np.searchsorted(below[b] * (1 + 1e-9), below[a]) - np.arange(steps + 1)
                    worst = max(worst, int(reach[below[a] < 0.5].max()))
    return worst


def measured(make: type[pf.Wasserstein], chain: pf.MarkovChain, steps: int) -> tuple[float, float, float]:
    tracemalloc.start()
    start = time.perf_counter()
    scale = make(chain, steps).calibrate(pf.Count(1), 1.0).scale
    seconds = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return scale, seconds, peak


def main() -> None:
    pf.ExactLaplace(pf.MarkovChain(CHAINS["running example"]), 2000).calibrate(pf.Count(1), 1.0)  # compiles the loops
    print(f"{'chain':<18}{'T':>7}  {'mechanism':<14}{'scale':>12}{'seconds':>9}{'MB':>7}{'plain, s':>10}{'ratio':>8}")
    for name, p in CHAINS.items():
        chain = pf.MarkovChain(p)
        for steps in (2000, 10_000):
            if name == "sticky" and steps == 10_000:
                continue
            plain = None
            if steps == 2000:
                start = time.perf_counter()
                reference = plain_distance(p, steps)
                plain = time.perf_counter() - start
                assert reference <= pf.Wasserstein(chain, steps).distance(pf.Count(1))
            for make in (pf.Wasserstein, pf.ExactLaplace):
                scale, seconds, peak = measured(make, chain, steps)
                ratio = "" if plain is None else f"{plain:>10.2f}{plain / seconds:>7.1f}x"
                print(f"{name:<18}{steps:>7,}  {make.title:<14}{scale:>12.6g}{seconds:>9.2f}{peak:>7.0f}{ratio}")


if __name__ == "__main__":
    main()
