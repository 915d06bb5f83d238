"""Laws of short chains that stand for a class Θ: what must hold of every member is asked of these.

Nothing here proves anything. An audit, and the contract of every engine, compute the true loss under each of them from
the definition; so they are chosen to come near what a class allows, at its corners and beyond what a tidy model does.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ChainLaw", "some_starts", "starts_of"]

_CORNER = 1e-9
"""The supremum over all first laws is approached at a corner, and is often not what a point mass has."""


class ChainLaw(NamedTuple):
    """The law of a short chain.

    Parameters
    ----------
    first : (k, …) ndarray
        Law of the first m records, on m axes.
    steps : sequence of (k, …, k) ndarray
        For each record more: its law given the m records before it, the latest last.
    """

    first: NDArray[np.float64]
    steps: Sequence[NDArray[np.float64]]


def starts_of(
    initial: NDArray[np.float64] | str, stationary: Callable[[], NDArray[np.float64]], k: int, order: int = 1
) -> Iterable[NDArray[np.float64]]:
    """Return the law of the first records of a chain: the given or the stationary one, or some where it is any."""
    if not isinstance(initial, str):
        return [initial]
    return some_starts(k, order) if initial == "any" else [stationary()]


def some_starts(k: int, order: int = 1) -> Iterator[NDArray[np.float64]]:
    """Yield laws of the first records of a chain that may start anyhow: even ones, of two values, and near a corner.

    Parameters
    ----------
    k : int
        Number of states.
    order : int
        How many records the law is of; most telling is that they are all equal.
    """
    size = k**order
    alike = np.arange(k) * ((size - 1) // (k - 1))  # places of the values whose records are all equal
    even = np.full(size, 1 / size)
    yield even.reshape((k,) * order)
    for x in range(k):
        for y in range(x):
            two = _CORNER * even
            two[alike[[x, y]]] += (1 - _CORNER) / 2
            yield two.reshape((k,) * order)
    for value in range(size):
        for rest in (0.5, 0.2, _CORNER):
            corner = rest * even
            corner[value] += 1 - rest
            yield corner.reshape((k,) * order)
