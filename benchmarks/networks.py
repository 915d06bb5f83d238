"""Noise and time of the Markov Quilt Mechanism on Bayesian networks from BIF files: a table of every file in a folder.

Usage: python benchmarks/networks.py FOLDER
"""

import sys
import time
from pathlib import Path

import pufferfish as pf


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    paths = sorted(p for p in Path(sys.argv[1]).iterdir() if p.name.endswith((".bif", ".bif.gz")))
    print("| network | nodes | most states | zeros | ε | GroupDP | MarkovQuilt | worst node | nearby | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for path in paths:
        network = pf.BayesianNetwork.from_bif(path)
        zeros = sum(int((table == 0).sum()) for _, table in network.tables)
        for epsilon in (1.0, 5.0):
            query = pf.Marginals(relative=False)
            group = pf.GroupDP(network).calibrate(query, epsilon).noise_multiplier or 0.0
            start = time.perf_counter()
            found = pf.MarkovQuilt(pf.BayesianNetwork(network.cpts)).calibrate(query, epsilon)
            seconds = time.perf_counter() - start
            print(
                f"| {path.name.split('.')[0]} | {len(network.nodes)} | {max(network.sizes)} | {zeros} | {epsilon:g} "
                f"| {group:.4g} | {found.noise_multiplier or 0.0:.4g} | {found.witness.node} | {found.witness.nearby} "
                f"| {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
