"""Chains with several kinds of stay, from public sequences: stays are mixtures (:mod:`.mixture`), exits are counted."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish.data.groups import Runs
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError
from pufferfish.fit.chain import SMOOTHING, added_count, check_rows
from pufferfish.fit.left_out import MOST_KINDS, POOLED_STAYS, LeftOut, daily_of
from pufferfish.fit.mixture import Mixture, StaysSeen, climbed, fit_mixture
from pufferfish.theta.tuple_chains import StaysChain


def fit_stays(
    sequences: Sequences,
    *,
    kinds: int | None = None,
    initial: Literal["stationary", "any"] = "stationary",
    smoothing: float = SMOOTHING,
) -> StaysChain:
    """Fit a chain with several kinds of stay in each state, from the shortest stays on, to public data.

    A :class:`ModelError` or :class:`ParameterError` is raised as for :func:`fit_chain`; and if the sequences were read
    without ``daily``, or there are no such kinds.

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
        So many exits are added to those of every state, spread as all exits together are.

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
    runs, k, states = daily_of(sequences).runs, len(sequences.states), sequences.states
    mixtures = pooled_mixtures(runs, k, _kinds(sequences, kinds))
    weight = added_count("smoothing", smoothing)
    return chain_of_stays(runs.transitions(k), mixtures, states, initial=initial, smoothing=weight)


def fit_stays_of_each(
    sequences: Sequences,
    *,
    kinds: int | None = None,
    initial: Literal["stationary", "any"] = "stationary",
    pooling: float = POOLED_STAYS,
) -> list[StaysChain]:
    """Return a chain with kinds of stay for every subject, in the order of their names; see :func:`fit_stays`.

    ``pooling`` (default 10) stays of all subjects, in the kinds of all, are added to every state of a subject, and one
    exit. Without them a stay that a gap cuts off makes a kind that never ends.
    """
    daily, k, weight = daily_of(sequences), len(sequences.states), added_count("pooling", pooling)
    pool = pooled_mixtures(daily.runs, k, _kinds(sequences, kinds))
    everybody = daily.runs.transitions(k)
    chains: list[StaysChain] = []
    for who in range(len(daily.subjects)):
        runs = daily.runs.chosen(daily.runs.subject == who)
        mine, mixtures = runs.transitions(k), own_mixtures(runs, pool, weight)
        chains.append(chain_of_stays(mine, mixtures, sequences.states, everybody - mine, initial=initial))
    return chains


# -- The chain of all states ------------------------------------------------------------------------------------------


def pooled_mixtures(runs: Runs, k: int, kinds: int, starts: Sequence[Mixture | None] | None = None) -> list[Mixture]:
    """Return the stays of each state as a mixture of at most so many kinds; a start is that of nearly the same runs."""
    each = zip(range(k), starts or [None] * k, strict=True)
    return [fit_mixture(StaysSeen.of(runs, runs.state == x), kinds, start) for x, start in each]


def own_mixtures(runs: Runs, pool: Sequence[Mixture], weight: float) -> list[Mixture]:
    """Return the same of a subject's runs, so many stays of the pool's added to those of each state."""
    return [climbed(StaysSeen.of(runs, runs.state == x), mixture, mixture, weight)[0] for x, mixture in enumerate(pool)]


def chain_of_stays(
    transitions: NDArray[np.int64],
    mixtures: Sequence[Mixture],
    states: Sequence[str],
    pool: NDArray[np.int64] | None = None,
    *,
    initial: Literal["stationary", "any"] = "stationary",
    smoothing: float = SMOOTHING,
) -> StaysChain:
    """Return the chain of some transitions, exits completed by those of the pool, or by where all exits lead."""
    k = len(states)
    others = ~np.eye(k, dtype=np.bool_)
    exits, pooled = (np.where(others, n, 0.0) for n in (transitions, transitions if pool is None else pool))
    entered = np.where(others, np.broadcast_to(pooled.sum(axis=0) + 0.5, (k, k)), 0.0)
    added = entered if pool is None else pooled + 0.5 * others
    rows = exits + smoothing * added / np.maximum(added.sum(axis=1, keepdims=True), 1e-300)
    check_rows(rows, lambda at: f"from state {states[at[0]]!r} to another", "or merge states, or leave them out")
    kinds = [mixture.kinds for mixture in mixtures]
    return StaysChain(rows / rows.sum(axis=1, keepdims=True), kinds, initial, states=states)


def _kinds(sequences: Sequences, kinds: Any) -> int:
    """Return how many kinds of stay are fitted: as given, or as many as predict left-out days best."""
    if kinds is None:
        return LeftOut(sequences).kinds
    number = int(kinds) if isinstance(kinds, Integral) and not isinstance(kinds, bool) else 0
    if not 1 <= number <= MOST_KINDS:
        raise ParameterError(f"kinds is {kinds!r}, expected a number of kinds of stay from 1 to {MOST_KINDS}")
    return number
