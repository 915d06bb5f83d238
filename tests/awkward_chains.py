"""Chains for the oracles: dyadic entries, so that doubles hold them exactly, and every way to be awkward."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import pufferfish as pf

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A start, a matrix and a length."""

    name: str
    initial: Array
    transition: Array
    length: int

    @property
    def chain(self) -> pf.MarkovChain:
        return pf.MarkovChain(self.transition, self.initial)

    def __str__(self) -> str:
        return self.name


def dyadic_law(rng: np.random.Generator, k: int, zeros: float = 0.0, bits: int = 12) -> Array:
    """A random law whose masses are whole multiples of 2^-bits; each is zero with the given chance."""
    kept = rng.random(k) >= zeros
    if not kept.any():
        kept[rng.integers(k)] = True
    weights = np.where(kept, rng.dirichlet(np.ones(k)) + 0.02, 0.0)
    whole = np.floor(weights / weights.sum() * 2**bits)
    whole[int(np.argmax(whole))] += 2**bits - whole.sum()
    return whole / 2**bits


def dyadic_matrix(rng: np.random.Generator, k: int, zeros: float = 0.0) -> Array:
    return np.array([dyadic_law(rng, k, zeros) for _ in range(k)])


def random_case(seed: int) -> Case:
    """Two or three states, up to seven records, with more and more zeros as the seed grows."""
    rng = np.random.default_rng(seed)
    k, zeros = int(rng.integers(2, 4)), (0.0, 0.2, 0.45)[seed % 3]
    length = int(rng.integers(2, 8 if k == 2 else 7))
    start = np.eye(k)[rng.integers(k)] if seed % 4 == 1 else dyadic_law(rng, k, zeros)
    return Case(f"random-{seed}", start, dyadic_matrix(rng, k, zeros), length)


def awkward(name: str, initial: list[float], transition: list[list[float]], length: int = 6) -> Case:
    return Case(name, np.array(initial), np.array(transition), length)


TINY = 2.0**-40
AWKWARD = [
    awkward("one-record", [0.25, 0.75], [[0.5, 0.5], [0.25, 0.75]], 1),
    awkward("point-mass", [1, 0], [[0.75, 0.25], [0.375, 0.625]], 7),
    awkward("never-reached", [0.5, 0.5, 0], [[0.875, 0.125, 0], [0.125, 0.875, 0], [0.5, 0.5, 0]]),
    awkward("left-for-good", [0.25, 0.25, 0.5], [[0.875, 0.125, 0], [0.125, 0.875, 0], [0.25, 0.25, 0.5]]),
    awkward("two-classes", [0.5, 0.25, 0.25], [[1, 0, 0], [0, 0.75, 0.25], [0, 0.5, 0.5]]),
    awkward("absorbing", [0.5, 0.5], [[0.75, 0.25], [0, 1]]),
    awkward("period-2", [0.25, 0.75], [[0, 1], [1, 0]]),
    awkward("period-3-from-a-point", [1, 0, 0], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    awkward("period-2-of-three", [0.5, 0.25, 0.25], [[0, 0.25, 0.75], [1, 0, 0], [1, 0, 0]]),
    awkward("certain-then-free", [1, 0, 0], [[0, 1, 0], [0.5, 0, 0.5], [0.25, 0.5, 0.25]]),
    awkward("frozen", [0.5, 0.5], [[1, 0], [0, 1]], 4),
    awkward("nearly-frozen", [0.5, 0.5], [[1 - TINY, TINY], [TINY, 1 - TINY]], 7),
    awkward("nearly-certain-start", [1 - TINY, TINY], [[0.75, 0.25], [0.5, 0.5]], 7),
    awkward("independent", [0.25, 0.75], [[0.25, 0.75], [0.25, 0.75]]),
    awkward("independent-of-start", [1, 0], [[0.25, 0.75], [0.25, 0.75]]),
    awkward("thin-cycle", [0.5, 0.5, 0], [[0, 1, 0], [0, 0, 1], [0.0078125, 0.9921875, 0]], 7),
]
RANDOM = [random_case(seed) for seed in range(24)]
CASES = AWKWARD + RANDOM
