"""Which states the records of a chain can have, record by record, by the exact zeros of the model."""

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import bool_matmul, closure

__all__ = ["Places", "places_of"]

Mask = NDArray[np.bool_]
Places = list[tuple[int, Mask]]
"""Stretches of a chain: a number of records, and the states that each of them can have."""

_FOLLOWED = 4096
"""Records that are looked at one by one; the later ones are taken to have every state that any of them can have."""


def places_of(start: Mask, possible: Mask, steps: int) -> Places:
    """Return the stretches of a chain of so many records.

    Parameters
    ----------
    start : (k,) ndarray of bool
        States that the first record can have.
    possible : (k, k) ndarray of bool
        Transitions that can happen, rows = from.
    steps : int
        Records of the chain.
    """
    found: list[Mask] = [start]
    while len(found) < min(steps, _FOLLOWED):
        after = bool_matmul(found[-1][None, :], possible)[0]
        if np.array_equal(after, found[-1]):
            break
        found.append(after)
    left = steps - len(found)
    stretches: Places = [(1, states) for states in found]
    if left:
        stretches.append((left, closure(found[-1], possible)))
    return stretches
