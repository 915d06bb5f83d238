"""A Markov chain from public sequences, by counting transitions.

The result is part of what everybody is assumed to know. Fitting it to the data it shall protect makes a comparison,
not a guarantee (the noise itself then depends on the secrets).
"""

from typing import Literal

import numpy as np

from pufferfish.data.sequences import Sequences
from pufferfish.errors import ModelError, ParameterError
from pufferfish.models.markov_chain import MarkovChain

__all__ = ["fit_chain"]


def fit_chain(
    sequences: Sequences, *, initial: Literal["stationary", "any"] = "stationary", smoothing: float = 0.0
) -> MarkovChain:
    """Maximum-likelihood chain of the observed one-step transitions.

    Parameters
    ----------
    sequences : Sequences
        Public data.
    initial : {"stationary", "any"}, default "stationary"
        The initial law of the result: its stationary one, or the class of all.
    smoothing : float, default 0
        Added to every transition count. Without it a transition that was never observed has probability 0, which
        is a claim: that it cannot happen.

    Returns
    -------
    MarkovChain
        With the states of the sequences.

    Raises
    ------
    ModelError
        If a state is never left, or the chain is reducible where its stationary law is asked for.
    ParameterError
        If smoothing is negative or not finite.
    """
    if not 0 <= smoothing < np.inf:
        raise ParameterError(f"smoothing is {smoothing!r}, expected a number of at least 0")
    counts = sequences.transitions + smoothing
    if not sequences.transitions.any():
        raise ModelError(
            "no two consecutive records of a subject were observed, so there is no transition to count; "
            "check the subject and time columns and max_gap"
        )
    lost = np.flatnonzero(counts.sum(axis=1) == 0)
    if lost.size:
        names = ", ".join(repr(sequences.states[int(x)]) for x in lost[:4]) + (", …" if lost.size > 4 else "")
        raise ModelError(
            f"no transition out of state{'s' if lost.size > 1 else ''} {names} was observed; use smoothing (such as "
            "1), merge states, or leave them out"
        )
    try:
        return MarkovChain(counts / counts.sum(axis=1, keepdims=True), initial, states=sequences.states)
    except ModelError as error:
        raise ModelError(f"{error}; or use smoothing (such as 1), which lets every transition happen") from error
