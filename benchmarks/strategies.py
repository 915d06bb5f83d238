"""Expected error of a histogram of counts: noise of one scale beside the best shape found, each with its certificate.

    python benchmarks/strategies.py [--data FOLDER] [--epsilon E]

With --data, chains are fitted to the files of that folder (Fitbit, activPAL, electricity); without it, to the power
data in examples/. The models come from the data they stand for here: a comparison, not a guarantee. "leaks" is what the
bound proves of the noise; "lower" how near the scales are to ones that leak more than ε for certain.
"""

import argparse
import time
from pathlib import Path

from propagation import chains, random_chain

import pufferfish as pf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    pf.LeakagePropagation(random_chain(20), 100).calibrate(pf.Histogram(), 1.0)  # loads the compiled search
    print(
        f"{'data':<12}{'k':>4}{'query':>18}{'one scale':>11}{'best':>9}{'ratio':>7}  {'scales':<16}{'leaks':>12}"
        f"{'lower':>8}{'seconds':>9}"
    )
    for name, chain, length in chains(arguments.data):
        for query in (pf.Histogram(relative=False), pf.CDF(relative=False)):
            equal = pf.LeakagePropagation(chain, length).calibrate(query, arguments.epsilon)
            start = time.perf_counter()
            best = pf.LeakagePropagation(chain, length).calibrate(query, arguments.epsilon, noise="best")
            seconds = time.perf_counter() - start
            errors = equal.expected_l1_error, best.expected_l1_error
            print(
                f"{name:<12}{chain.k:>4}{query.kind:>18}{errors[0]:>11.1f}{errors[1]:>9.1f}"
                f"{errors[1] / errors[0]:>7.2f}"
                f"  {f'{min(best.scales):.4g} to {best.scale:.4g}':<16}{best.prove_leakage():>12.9f}"
                f"{best.lower_bound / best.scale:>8.3f}{seconds:>9.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
