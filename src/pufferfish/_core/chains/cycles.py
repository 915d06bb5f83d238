r"""Algebra of chains whose matrix is another one at every phase of a cycle; one phase is the usual chain.

:math:`P_\varphi` is the matrix of the step from a record at phase φ to the next one, at phase φ + 1. Arrays of a cycle
have its N phases as their first axis. The **periodic law** π_φ is the law at phase φ of a chain that has run for ever:
:math:`\pi_{\varphi+1} = \pi_\varphi P_\varphi`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import (
    bool_matmul,
    closed_classes,
    mixes,
    stationary_law,
    stationary_log_error,
)
from pufferfish._core.numbers.rounding import TINY, UNIT
from pufferfish.errors import ModelError

__all__ = ["followers", "least_cycle", "moved_on", "one_period", "period_mixes", "periodic_law"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


def moved_on(values: Any) -> Any:
    """Return at every phase what stood at the phase before it."""
    return np.roll(values, 1, axis=0)


def least_cycle(which: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the shortest cycle that a cycle of numbers repeats."""
    n = len(which)
    for length in range(1, n + 1):
        if n % length == 0 and np.array_equal(which, np.tile(which[:length], n // length)):
            return which[:length]
    return which


def followers(states: Mask, matrices: Matrix) -> Mask:
    """Return the states that can follow those at the phase before; shape (N, k)."""
    return moved_on(bool_matmul(states[:, None, :], matrices > 0)[:, 0, :])


def one_period(matrices: Matrix) -> tuple[Matrix, Mask]:
    """Return the product of a cycle's matrices, from phase 0 round to phase 0, and which entries are positive.

    Raises
    ------
    ModelError
        If a positive entry on the way is too small for a double to hold accurately.
    """
    product, support = matrices[0], matrices[0] > 0
    for matrix in matrices[1:]:
        product, support = product @ matrix, bool_matmul(support, matrix > 0)
        if np.any(product[support] < TINY):
            raise ModelError(
                "the transition probabilities over one period of the clock have one below 1e-270, too small to compute "
                'with: smooth the matrices (fit with a smoothing), or give initial_distribution="any"'
            )
    return product, support


def period_mixes(matrices: Matrix, support: Mask) -> bool:
    """Whether one period, from phase 0, forgets its start on states that it cannot leave."""
    possible = matrices[0] > 0
    for matrix in matrices[1:]:
        possible = bool_matmul(possible, matrix > 0)
    return mixes(possible.astype(np.float64), support[0])


def periodic_law(matrices: Matrix, within: Mask | None = None) -> tuple[Matrix, Mask, float]:
    r"""Return the periodic law of a cycle, where it is positive, and a bound on the error of its logarithms.

    ``within`` are the states at phase 0 that the chain cannot leave, by default all; both results are of shape (N, k).

    Raises
    ------
    ModelError
        If there are several periodic laws, or a probability is too small to compute accurately.

    Notes
    -----
    Every entry of the product of N matrices has a relative error of at most :math:`N \gamma_k`. By the matrix-tree
    theorem a stationary probability is a ratio of sums of products of k − 1 entries off the diagonal, so its logarithm
    is off by at most 2(k − 1) times that, plus what state reduction adds.
    """
    phases, k = len(matrices), int(matrices.shape[-1])
    product, possible = one_period(matrices)
    states: NDArray[np.intp] = np.arange(k) if within is None else np.flatnonzero(within)
    classes = closed_classes(possible[np.ix_(states, states)])
    if len(classes) > 1:
        raise ModelError(
            "the matrices have several periodic laws: over one period of the clock the chain never leaves states "
            f"{_few(states[classes[0]])} nor {_few(states[classes[1]])}"
        )
    members = states[classes[0]]
    law, support = np.zeros((phases, k)), np.zeros((phases, k), dtype=np.bool_)
    law[0, members], support[0, members] = stationary_law(product[np.ix_(members, members)]), True
    for phase in range(phases - 1):
        law[phase + 1] = law[phase] @ matrices[phase]
        support[phase + 1] = bool_matmul(support[phase][None, :], matrices[phase] > 0)[0]
    if np.any(law[support] < TINY):
        raise ModelError(
            "the periodic law has a probability below 1e-270, too small to compute accurately; merge states that are "
            "all but impossible, or give initial_distribution as an array"
        )
    rounding = phases * (k + 4) * UNIT
    return law, support, stationary_log_error(k) + 2 * k * rounding + rounding


def _few(states: NDArray[np.intp]) -> str:
    return "{" + ", ".join(str(int(x)) for x in states[:4]) + (", …}" if states.size > 4 else "}")
