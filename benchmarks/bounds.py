"""Noise under bounds on every transition probability, and under every initial law, beside lower bounds and quilts.

    python benchmarks/bounds.py

Histograms at ε = 1, as noise multipliers. First ``IntervalChain(P − w, P + w)`` over 1,000,000 records; then bounds
fitted to n expected public transitions with 95% confidence; then ``MarkovChain(P, "any")`` over 10,000 records.
"""

import itertools
import time

import numpy as np
from numpy.typing import NDArray

import pufferfish as pf
from pufferfish.fit.chain import proportion_bounds

FOUR = [[0.92, 0.03, 0.03, 0.02], [0.02, 0.93, 0.03, 0.02], [0.03, 0.03, 0.90, 0.04], [0.005, 0.01, 0.005, 0.98]]
CHAINS = {
    "2 states": [[0.9, 0.1], [0.4, 0.6]],
    "3 states": [[0.90, 0.07, 0.03], [0.05, 0.90, 0.05], [0.10, 0.10, 0.80]],
    "4 states": FOUR,
}


def multiplier(theta: object, length: int) -> pf.Calibration:
    return pf.LeakagePropagation(theta, length).calibrate(pf.Histogram(), 1.0)


def intervals() -> None:
    print("chain      " + "".join(f"{f'± {w:g}':>12}" for w in (0, 0.001, 0.01)))
    for name, rows in CHAINS.items():
        p = np.array(rows)
        widths = (0.0, 0.001, 0.01)
        found = [multiplier(pf.IntervalChain(np.maximum(p - w, 0), p + w), 10**6).noise_multiplier for w in widths]
        print(f"{name:<11}" + "".join(f"{m:>12.4g}" for m in found), flush=True)


def fitted() -> None:
    p = np.array(FOUR)
    start = np.linalg.matrix_power(p, 4096)[0]
    print("\n4 states, bounds fitted to n transitions (T = 100,000)")
    for n in (10**4, 10**5, 10**6):
        exits = np.rint(n * start).astype(int)
        bounds = [
            [proportion_bounds(round(exits[x] * p[x, y]), exits[x], 0.05 / 16) for y in range(4)] for x in range(4)
        ]
        theta = pf.IntervalChain(*np.moveaxis(np.array(bounds), 2, 0))
        found = multiplier(theta, 10**5)
        print(
            f"n = {n:<9,} {found.noise_multiplier:>8.4g}, {found.scale / found.lower_bound:.2f} times the lower bound"
        )


def every_law() -> None:
    rng = np.random.default_rng(0)
    chains: dict[str, NDArray[np.float64]] = {name: np.array(rows) for name, rows in CHAINS.items()}
    chains["2, slow"] = np.array([[0.98, 0.02], [0.01, 0.99]])
    chains["3, slow"] = np.array([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.005, 0.005, 0.99]])
    for k in (3, 4, 5, 8):
        p = rng.dirichlet(np.ones(k) * 0.5, k) * 0.3 + 0.7 * np.eye(k)
        chains[f"{k}, random"] = p / p.sum(axis=1, keepdims=True)
    print(f"\n{'every law':<11}{'any':>9}{'/ lower bound':>15}{'stationary':>12}{'MQMExact':>10}{'seconds':>9}")
    for name, p in chains.items():
        start = time.perf_counter()
        found = multiplier(pf.MarkovChain(p, "any"), 10**4)
        seconds = time.perf_counter() - start
        stationary = multiplier(pf.MarkovChain(p), 10**4).noise_multiplier
        quilts = pf.MQMExact(pf.MarkovChain(p, "any"), 10**4).calibrate(pf.Histogram(), 1.0).noise_multiplier
        print(
            f"{name:<11}{found.noise_multiplier:>9.4g}{found.scale / found.lower_bound:>15.3f}{stationary:>12.4g}"
            f"{quilts:>10.4g}{seconds:>9.1f}",
            flush=True,
        )


def two_states() -> None:
    """Counts under every initial law on chains that tend to stay: how far above the lower bound, at most."""
    print("\nevery law, 2 states that tend to stay, counts over 50 records: most above the lower bound")
    worst: dict[str, float] = {}
    for p, q in itertools.product((0.5, 0.1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-9, 1e-10, 1e-12, 0.0), repeat=2):
        for epsilon in (0.1, 1.0, 5.0):
            if p + q > 0:
                chain = pf.MarkovChain([[1 - p, p], [q, 1 - q]], "any")
                found = pf.LeakagePropagation(chain, 50).calibrate(pf.Count("1"), epsilon)
                kind = "all at least 1e-8" if min(p, q) >= 1e-8 else "one 1e-9 or less, or 0"
                worst[kind] = max(worst.get(kind, 0.0), found.scale / found.lower_bound - 1)
    for kind, above in worst.items():
        print(f"transition probabilities {kind}: {above:.1%}")


if __name__ == "__main__":
    intervals()
    fitted()
    every_law()
    two_states()
