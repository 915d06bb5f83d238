"""Noise and time on Bayesian networks from BIF files: group privacy, quilts, propagation, and a lower bound.

Usage: python benchmarks/networks.py FOLDER

A table of every file in the folder. Scales are noise multipliers of the counts of every column (Marginals).
"""

import sys
import time
from pathlib import Path

import pufferfish as pf

HEAD = (
    "network | nodes | most states | zeros | ε | GroupDP | MarkovQuilt | seconds | LeakagePropagation | seconds "
    "| lower bound | worst node"
)


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    paths = sorted(p for p in Path(sys.argv[1]).iterdir() if p.name.endswith((".bif", ".bif.gz")))
    print(f"| {HEAD} |\n|{'---|' * (HEAD.count('|') + 1)}")
    for path in paths:
        network = pf.BayesianNetwork.from_bif(path)
        zeros = sum(int((table == 0).sum()) for _, table in network.tables)
        for epsilon in (1.0, 5.0):
            query = pf.Marginals(relative=False)
            group = pf.GroupDP(network).calibrate(query, epsilon).noise_multiplier or 0.0
            scales, seconds = [], []
            for make in (pf.MarkovQuilt, pf.LeakagePropagation):
                start = time.perf_counter()
                found = make(pf.BayesianNetwork(network.cpts)).calibrate(query, epsilon)
                seconds.append(time.perf_counter() - start)
                scales.append(found.noise_multiplier or 0.0)
            least = f"{found.lower_bound / found.scale * scales[-1]:.4g}" if found.lower_bound else "–"
            print(
                f"| {path.name.split('.')[0]} | {len(network.nodes)} | {max(network.sizes)} | {zeros} | {epsilon:g} "
                f"| {group:.4g} | {scales[0]:.4g} | {seconds[0]:.1f} | {scales[1]:.4g} | {seconds[1]:.1f} "
                f"| {least} | {found.witness.node} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
