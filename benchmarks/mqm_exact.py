"""MQMExact on a long stationary chain: our search against a plain numpy reference, in the same run.

The reference is Algorithm 3 as one would write it in numpy, with the speed-ups the paper names: all powers stored,
every quilt {X_{i-a}, X_{i+b}} of the middle node in order of a + b, until no larger quilt can win.

    python benchmarks/mqm_exact.py [--data FILE.csv.gz --column watts --bins "0,200,...,10200"]

Without --data: a random chain of 51 states whose neighbours communicate.
"""

import argparse
import time

import numpy as np

import pufferfish as pf

T = 1_051_200


def reference(p: np.ndarray, pi: np.ndarray, epsilon: float) -> tuple[float, int, int]:
    """Score and quilt of the middle node of a long stationary chain."""
    with np.errstate(divide="ignore"):
        prior = np.log(pi)[None, :] - np.log(pi)[:, None]
    best, quilt = np.inf, (0, 0)
    power = np.eye(len(p))
    right: list[np.ndarray] = [np.array(np.inf)]
    left: list[np.ndarray] = [np.array(np.inf)]
    n = 1
    while n / epsilon < best:
        power = power @ p
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(power)
            right.append(np.nanmax(logs[:, None, :] - logs[None, :, :], axis=2))
            left.append(prior + np.nanmax(logs.T[:, None, :] - logs.T[None, :, :], axis=2))
        for a in range(1, n + 1):
            influence = (left[a] + right[n + 1 - a]).max()
            if influence < epsilon and n / (epsilon - influence) < best:
                best, quilt = n / (epsilon - influence), (a, n + 1 - a)
        n += 1
    return best, *quilt


def chain_of(arguments: argparse.Namespace) -> tuple[pf.MarkovChain, int]:
    if arguments.data:
        sequences = pf.read_sequences(arguments.data, arguments.column, bins=arguments.bins)
        return pf.fit_chain(sequences, smoothing=0), sequences.records
    rng = np.random.default_rng(7)
    distance = np.abs(np.subtract.outer(np.arange(51), np.arange(51)))
    weights = rng.gamma(2.0, size=(51, 51)) * np.exp(-distance / 4.0) + 1e-4 + 20 * np.eye(51)
    return pf.MarkovChain(weights / weights.sum(axis=1, keepdims=True)), T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--column", default="watts")
    parser.add_argument("--bins", default="0,200,...,10200")
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    chain, length = chain_of(arguments)

    start = time.perf_counter()
    found = pf.MQMExact(chain, length).calibrate(pf.Histogram(relative=False), arguments.epsilon)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    score, a, b = reference(chain.transition_matrix, chain.stationary_distribution, arguments.epsilon)
    plain = time.perf_counter() - start

    assert abs(found.noise_multiplier / score - 1) < 1e-9, (found.noise_multiplier, score)
    print(f"k = {chain.k}, T = {length:,}, epsilon = {arguments.epsilon:g}")
    print(f"noise multiplier {score:.6g}, quilt ({a}, {b})")
    print(f"MQMExact        {ours:8.2f} s")
    print(f"plain numpy     {plain:8.2f} s")
    print(f"ratio           {plain / ours:8.1f}")


if __name__ == "__main__":
    main()
