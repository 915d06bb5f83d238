"""What chance alone gives: people who all live by one chain, and the noise that their own chains seem to need.

Of many estimates the largest is too large, so the largest noise of everybody's own chain says little by itself. Here
the one chain of all is simulated for every person, as long as each was observed, and everybody's own chain is fitted
to that: what people's own chains need beyond it is theirs, and not chance.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import part_of
from pufferfish._core.chains.smoothing import smoothed
from pufferfish.fit.chain import SMOOTHING
from pufferfish.fit.members import noise_of
from pufferfish.fit.subjects import own_matrices
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.markov_chain import MarkovChain

__all__ = ["largest_by_chance", "simulated", "walked"]

_PIECE = 1000
"""Transitions that are simulated one after the other; more of a person are further pieces, side by side."""


def largest_by_chance(transitions: NDArray[np.int64], *, draws: int = 20, seed: int = 0) -> NDArray[np.float64]:
    """Return the largest noise that own chains of people need who all live by the chain of all, sorted by size.

    ``transitions`` are everybody's, of shape (people, k, k); all of them are simulated ``draws`` times.

    Examples
    --------
    >>> import numpy as np
    >>> ten_alike = np.tile([[160, 40], [40, 160]], (10, 1, 1))
    >>> largest = largest_by_chance(ten_alike)
    >>> len(largest), bool(largest[0] > largest_by_chance(ten_alike[:1], draws=1)[0])
    (20, True)
    """
    rng, largest = np.random.default_rng(seed), list[float]()
    lengths = transitions.sum(axis=(1, 2))
    pooled = MarkovChain(smoothed(transitions.sum(axis=0), SMOOTHING))
    for draw in range(draws):
        with part_of("own chains by chance", draw, draws):
            counts = simulated(np.broadcast_to(pooled.transition_matrix, transitions.shape), lengths, rng)
            largest.append(noise_of(ChainClass(tuple(map(MarkovChain, own_matrices(counts))))))
    return np.sort(largest)


def simulated(matrices: NDArray[np.float64], lengths: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return transitions of people with these matrices, so many of each, in pieces that begin with stationary laws."""
    k, pieces = matrices.shape[1], -(-lengths // _PIECE)
    who = np.repeat(np.arange(len(lengths)), pieces)
    left = np.concatenate([n - _PIECE * np.arange(m) for n, m in zip(lengths, pieces, strict=True)])
    starts = np.array([MarkovChain(matrix).stationary_distribution for matrix in matrices])
    path = walked(matrices[who], starts[who], min(_PIECE, int(lengths.max(initial=0))), rng)
    counts = np.zeros((len(lengths), k, k), dtype=np.int64)
    for step, (at, following) in enumerate(pairwise(path)):
        np.add.at(counts, (who, at, following), left > step)
    return counts


def walked(
    matrices: NDArray[np.float64], starts: NDArray[np.float64], steps: int, rng: np.random.Generator
) -> Iterator[NDArray[np.intp]]:
    """Yield the states of several chains, side by side, at first and after each of so many steps."""
    laws, every = matrices.cumsum(axis=2), np.arange(len(matrices))
    at = _drawn(starts.cumsum(axis=1), rng)
    yield at
    for _ in range(steps):
        at = _drawn(laws[every, at], rng)
        yield at


def _drawn(cumulative: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return one state for each law, given its cumulative sums."""
    return (rng.random(len(cumulative))[:, None] >= cumulative[:, :-1]).sum(axis=1)
