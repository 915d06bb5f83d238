"""Noise and time of leakage propagation beside the other mechanisms and the lower bound; and Φ beside a linear program.

    python benchmarks/propagation.py [--data FOLDER]

With --data, chains are fitted to the files of that folder (Fitbit, activPAL, electricity); without it, to the power
data in examples/ and a random chain of 51 states. Every row is a histogram; scales are noise multipliers, scale / 2.
The models come from the data they stand for here: a comparison, not a guarantee.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

import pufferfish as pf
from pufferfish._core.chains.markov import log_of
from pufferfish._core.phi.phi import Kernel, LogRatios

EXAMPLES = Path(__file__).parent.parent / "examples" / "data"
ACTIVITY = {"subject": "subject", "time": "timestamp", "max_gap": "10min"}


def chains(folder: Path | None) -> Iterator[tuple[str, pf.MarkovChain, tuple[pf.ChainLength, ...]]]:
    files = {
        "Fitbit": ("activity_fitbit_minute.parquet", "state", ACTIVITY | {"where": "awake"}),
        "activPAL": ("activity_activpal_12s.parquet", "state", ACTIVITY | {"where": "awake and worn"}),
        "electricity": ("electricity_uci_2y_2006-12-17_1051200min.csv.gz", "watts", {"bins": "0,200,...,10200"}),
    }
    for name, (file, state, reading) in files.items():
        if folder is not None and (folder / file).exists():
            data = pf.read_sequences(folder / file, state, **reading)
            yield name, pf.fit_chain(data, smoothing=0), data.length
    if folder is None:
        for bins in ("0,500,...,5000", "0,200,...,10200"):
            data = pf.read_sequences(EXAMPLES / "household_power_2008.csv.gz", "watts", bins=bins)
            yield "household", pf.fit_chain(data, smoothing=0.01), data.length


def table(folder: Path | None) -> None:
    pf.LeakagePropagation(random_chain(20), 100).calibrate(pf.Histogram(), 1.0)  # loads the compiled search
    print(
        f"{'data':<12}{'k':>4}{'ε':>6}{'GroupDP':>12}{'MQMApprox':>12}{'MQMExact':>12}{'propagation':>13}"
        f"{'lower bound':>13}{'gap':>8}{'seconds':>9}"
    )
    for name, chain, length in chains(folder):
        for epsilon in (0.2, 1.0, 5.0):
            rows = {row.mechanism: row for row in pf.compare(chain, pf.Histogram(), epsilon, length)}
            best = rows["propagation"]
            noise = [rows[m].noise_multiplier for m in ("group-dp", "mqm-approx", "mqm-exact", "propagation")]
            shown = "".join(f"{'N/A' if v is None else f'{v:.6g}':>12}" for v in noise)
            floor = best.noise_multiplier / best.over_lower_bound
            print(
                f"{name:<12}{chain.k:>4}{epsilon:>6g}{shown} {floor:>13.6g}{best.over_lower_bound - 1:>8.2%}"
                f"{best.seconds:>9.3f}",
                flush=True,
            )


def random_chain(k: int) -> pf.MarkovChain:
    rng = np.random.default_rng(7)
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    weights = rng.gamma(2.0, size=(k, k)) * np.exp(-distance / 4.0) + 1e-4 + 20 * np.eye(k)
    return pf.MarkovChain(weights / weights.sum(axis=1, keepdims=True))


def beside_a_linear_program(k: int = 51, pairs: int = 20) -> None:
    chain = random_chain(k)
    p = chain.transition_matrix
    kernel = Kernel.of_logs(log_of(p, p > 0), np.ones(k, dtype=bool), 1e-14)
    a = 0.02 * np.abs(np.subtract.outer(np.arange(k), np.arange(k))) ** 0.7
    ratios = LogRatios()
    ratios(kernel, a * 0.99)
    fresh = LogRatios()
    start = time.perf_counter()
    found = fresh(kernel, a)
    cold = (time.perf_counter() - start) / (k * (k - 1))
    start = time.perf_counter()
    ratios(kernel, a)
    warm = (time.perf_counter() - start) / (k * (k - 1))
    y, z = np.nonzero(~np.eye(k, dtype=bool))
    cone = np.zeros((y.size, k))
    cone[np.arange(y.size), y], cone[np.arange(y.size), z] = 1.0, -np.exp(a[y, z])
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    for _ in range(pairs):
        x, x_ = rng.choice(k, 2, replace=False)
        solved = linprog(-p[x], A_ub=cone, b_ub=np.zeros(len(cone)), A_eq=p[x_][None], b_eq=[1.0])
        assert abs(np.log(-solved.fun) - found[x, x_]) < 1e-6
    linear = (time.perf_counter() - start) / pairs
    print(
        f"\nΦ, k = {k}, seconds per pair: HiGHS {linear:.2e}, from scratch {cold:.2e} (ratio {linear / cold:.0f}), "
        f"from a close bound {warm:.2e} (ratio {linear / warm:.0f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    arguments = parser.parse_args()
    table(arguments.data)
    beside_a_linear_program()


if __name__ == "__main__":
    main()
