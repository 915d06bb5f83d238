"""Models that doubles can hardly hold: nearly reducible, periodic and deterministic, entries down to 5e-324.

Each kind is a function that draws a model, its length, and laws of its members in decimals of 60 digits.
"""

import itertools
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

import pufferfish as pf
from precise import DIGITS, Law, chain_law, corners, law_of_steps, network_law, rows, stationary

__all__ = ["bounds_around", "of_boxes", "of_chains", "of_clocks", "of_intervals", "of_networks", "row", "table"]

TINY = (1e-300, 1e-200, 1e-160, 1e-100, 1e-40, 2.0**-52, 5e-324, 1e-310, 1e-270, 1e-8)


def row(rng: np.random.Generator, k: int, zeros: float) -> np.ndarray:
    """A law with one large entry, and others that are tiny, dyadic or zero."""
    found, main = np.zeros(k), int(rng.integers(k))
    for y in range(k):
        if y != main and (kind := rng.random()) >= zeros:
            found[y] = rng.choice(TINY if kind < zeros + 0.55 else [1 / 8, 1 / 4, 1 / 16, 1 / (2 * k)])
    found[main] = 1 - found.sum()
    return found


def table(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    found, zeros = np.zeros(shape), float(rng.choice([0.0, 0.3]))
    for place in np.ndindex(shape[:-1]):
        found[place] = row(rng, shape[-1], zeros)
    return found


def starts(start: Any, k: int, p: np.ndarray) -> list[list[Decimal]]:
    """The initial laws to try: the one, or several where any may be."""
    if not isinstance(start, str):
        return [rows(start)[0]]
    if start == "stationary":
        return [stationary(p)]
    near = [np.where(np.eye(k)[i], 1, share) for i in range(k) for share in (1e-9, 1e-30)]
    return [rows(law)[0] for law in (*near, np.ones(k), np.eye(k)[0])]


def of_chains(rng: np.random.Generator) -> tuple[Any, int, list[Law]]:
    k, length = int(rng.integers(2, 4)), int(rng.integers(1, 5))
    p = np.roll(table(rng, (k, k)), int(rng.random() < 0.3), axis=0)
    start: Any = ["stationary", "any", row(rng, k, 0.3), np.eye(k)[0]][rng.integers(4)]
    theta = pf.MarkovChain(p, start)
    laws = starts(theta.initial_distribution, k, theta.transition_matrix)
    return theta, length, [chain_law(law, [theta.transition_matrix] * (length - 1)) for law in laws]


def of_clocks(rng: np.random.Generator) -> tuple[Any, int, list[Law]]:
    k, n, length = int(rng.integers(2, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    theta = pf.PeriodicChain(table(rng, (n, k, k)), ["any", row(rng, k, 0.0), np.eye(k)[0]][rng.integers(3)])
    steps = [[theta.matrices[(phase + t) % n] for t in range(length - 1)] for phase in range(n)]
    laws = starts(theta.initial_distribution, k, theta.matrices[0])[:3]
    return theta, length, [chain_law(law, each) for law in laws for each in steps]


def of_boxes(rng: np.random.Generator) -> tuple[Any, int, list[Law]]:
    """Two-state chains between bounds that leave next to nothing out, or next to nothing in."""
    low, high = float(rng.choice([1e-300, 1e-9, 0.1, 0.4])), float(rng.choice([1 - 2.0**-53, 1 - 1e-9, 0.9, 0.6]))
    theta, length = pf.BinaryChainInterval(low, high, initial_distribution="stationary"), int(rng.integers(1, 5))
    return theta, length, list(of_corners(low, high, length))


def of_corners(low: float, high: float, length: int) -> Iterator[Law]:
    with localcontext(DIGITS):
        for stay, other in itertools.product((Decimal(low), Decimal(high)), repeat=2):
            p = [[stay, 1 - stay], [1 - other, other]]
            law = {(x,): p[1 - x][x] / (p[0][1] + p[1][0]) for x in range(2)}
            for _ in range(length - 1):
                law = {(*seq, y): w * p[seq[-1]][y] for seq, w in law.items() for y in range(2) if p[seq[-1]][y]}
            yield law


def of_intervals(rng: np.random.Generator) -> tuple[Any, int, list[Law]]:
    """Chains between bounds on every entry: any extreme matrix at every step, any start."""
    k, length = int(rng.integers(2, 4)), int(rng.integers(1, 5))
    theta = bounds_around(rng, k)
    rows_of = [corners(lower, upper) for lower, upper in zip(theta.lower, theta.upper, strict=True)]

    def matrix() -> list[list[Decimal]]:
        return [some[rng.integers(len(some))] for some in rows_of]

    laws = starts("any", k, theta.lower)
    return (
        theta,
        length,
        [law_of_steps(laws[i], [matrix() for _ in range(length - 1)]) for i in rng.permutation(len(laws))[:4]],
    )


def bounds_around(rng: np.random.Generator, k: int) -> pf.IntervalChain:
    """Bounds around a matrix of large, tiny and impossible entries: none, next to none, or half of the room."""
    p, width = table(rng, (k, k)), rng.choice([0.0, 1e-300, 1e-12, 0.1, 0.5], size=(k, k))
    return pf.IntervalChain(np.maximum(p - width, 0), np.minimum(p + width * (p > 0), 1))


def of_networks(rng: np.random.Generator) -> tuple[Any, None, list[Law]]:
    n, shape = int(rng.integers(2, 5)), int(rng.integers(3))
    sizes = [int(k) for k in rng.integers(2, 4, size=n)] if n < 4 else [2] * n
    cpts: dict[Any, pf.CPT] = {}
    for j in range(n):
        above = [[j - 1], [0], sorted({int(v) for v in rng.choice(max(j, 1), size=2)})][shape] if j else []
        given = table(rng, (*(sizes[v] for v in above), sizes[j]))
        cpts[f"v{j}"] = pf.CPT([str(x) for x in range(sizes[j])], given, [f"v{v}" for v in above])
    network = pf.BayesianNetwork(cpts)
    return network, None, [network_law(network)]
