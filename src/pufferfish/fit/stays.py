"""Chains with several kinds of stay, from public sequences: stays are mixtures (:mod:`.mixture`), exits are counted."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import whole_number
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ModelError, ParameterError
from pufferfish.fit.chain import added_count
from pufferfish.fit.left_out import MOST_KINDS, POOLED_STAYS, LeftOut, daily_of
from pufferfish.fit.mixture import Mixture, StaysSeen, climbed, fit_mixture
from pufferfish.theta.stays_chain import StaysChain

__all__ = ["fit_stays", "fit_stays_of_each"]


def fit_stays(
    sequences: Sequences,
    *,
    kinds: int | None = None,
    initial: Literal["stationary", "any"] = "stationary",
    smoothing: float = 1.0,
) -> StaysChain:
    """Chain whose states last for stays of several kinds, from public data.

    Parameters
    ----------
    sequences : Sequences
        Public data, read with ``daily=True``.
    kinds : int, optional
        Kinds of stay in each state, 1 to 3; by default as many as predict left-out days best. A state that has too few
        stays for so many gets fewer.
    initial : {"stationary", "any"}, default "stationary"
        The initial law of the result: its stationary one, or every law of state and kind of stay.
    smoothing : float, default 1
        So many exits are added to those of every state, spread as all exits together are. Without them an exit that was
        never seen cannot happen.

    Returns
    -------
    StaysChain
        With the states of the sequences; kinds from the shortest stays on.

    Raises
    ------
    ModelError
        If no stay in some state was seen from its beginning to its end, or the chain has no one stationary law where it
        is asked for.
    ParameterError
        If the sequences were read without ``daily``, or there are no such kinds.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> days = ("r" * 40 + "w" + "rwrwrrwrw" * 5) * 20
    >>> data = pf.read_sequences(pl.DataFrame({"s": list(days)}), "s", daily=True)
    >>> chain = pf.fit_stays(data, kinds=2)
    >>> chain.kinds, [round(1 / (1 - keep), 1) for _, keep in chain.stays[0]]
    ((2, 1), [1.2, 37.5])
    """
    runs, most = daily_of(sequences).runs, _kinds(sequences, kinds)
    mixtures = [fit_mixture(StaysSeen.of(runs, runs.state == x), most) for x in range(len(sequences.states))]
    return _chain(sequences, sequences.transitions, mixtures, initial, added_count("smoothing", smoothing), None)


def fit_stays_of_each(
    sequences: Sequences,
    *,
    kinds: int | None = None,
    initial: Literal["stationary", "any"] = "stationary",
    pooling: float = POOLED_STAYS,
) -> list[StaysChain]:
    """Return a chain with kinds of stay for every subject, in the order of their names.

    Parameters
    ----------
    sequences, kinds, initial
        As for :func:`fit_stays`.
    pooling : float, default 10
        So many stays of all subjects, in the kinds of all, are added to every state of a subject, and one exit. Without
        them a stay that a gap cuts off makes a kind that never ends.

    Raises
    ------
    ModelError, ParameterError
        As :func:`fit_stays` does.
    """
    daily, k, weight = daily_of(sequences), len(sequences.states), added_count("pooling", pooling)
    runs, most = daily.runs, _kinds(sequences, kinds)
    pool = [fit_mixture(StaysSeen.of(runs, runs.state == x), most) for x in range(k)]
    chains: list[StaysChain] = []
    for who in range(len(daily.subjects)):
        of_who = runs.subject == who
        of_states = [StaysSeen.of(runs, of_who & (runs.state == x)) for x in range(k)]
        mixtures = [climbed(stays, pool[x], pool[x], weight)[0] for x, stays in enumerate(of_states)]
        exits = runs.chosen(of_who).transitions(k)
        chains.append(_chain(sequences, exits, mixtures, initial, 1.0, sequences.transitions - exits))
    return chains


# -- The chain of all states ------------------------------------------------------------------------------------------


def _chain(
    sequences: Sequences,
    transitions: NDArray[np.int64],
    mixtures: list[Mixture],
    initial: Literal["stationary", "any"],
    weight: float,
    pool: NDArray[np.int64] | None,
) -> StaysChain:
    """Return the chain of some transitions: exits as counted, and so many more, as those of the pool."""
    k = len(sequences.states)
    others = ~np.eye(k, dtype=np.bool_)
    exits, pooled = (np.where(others, n, 0.0) for n in (transitions, sequences.transitions if pool is None else pool))
    entered = np.where(others, np.broadcast_to(pooled.sum(axis=0) + 0.5, (k, k)), 0.0)
    added = entered if pool is None else pooled + 0.5 * others
    rows = exits + weight * added / np.maximum(added.sum(axis=1, keepdims=True), 1e-300)
    totals = rows.sum(axis=1)
    if np.any(totals == 0):
        name = sequences.states[int(np.flatnonzero(totals == 0)[0])]
        raise ModelError(
            f"state {name!r} was never seen to be left; use smoothing (such as 1), merge states, or leave it out"
        )
    kinds = [mixture.kinds for mixture in mixtures]
    return StaysChain(rows / totals[:, None], kinds, initial, states=sequences.states)


def _kinds(sequences: Sequences, kinds: object) -> int:
    """Return how many kinds of stay are fitted: as given, or as many as predict left-out days best."""
    if kinds is None:
        return LeftOut(sequences).kinds
    try:
        number = whole_number(kinds)
    except TypeError:
        number = 0
    if not 1 <= number <= MOST_KINDS:
        raise ParameterError(f"kinds is {kinds!r}, expected how many kinds of stay a state has, 1 to {MOST_KINDS}")
    return number
