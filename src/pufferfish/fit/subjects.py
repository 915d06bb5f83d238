"""Everybody's chain: a class Θ with a Markov chain for each subject of a public table.

One chain for all subjects together is the chain of nobody in particular. Here every subject has a chain of its own, and
the noise holds for all of them. What little is known of a subject is completed by what all others do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import ReadOnly
from pufferfish._core.chains.markov import completed, smoothed
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError
from pufferfish.fit.chain import SMOOTHING, added_count, check_rows, check_transitions, fitted
from pufferfish.fit.made_up import MadeUp, judged
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.markov_chain import MarkovChain

if TYPE_CHECKING:
    from pufferfish.data.public_counts import PairsApart

Counts = NDArray[np.int64]

_NAMED = 3  # subjects with the same chain that are named; of others the number is said


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectsFit(ReadOnly):
    """The chains of the subjects of a public table, and what they were fitted to.

    ``theta`` has a chain for each subject, equal ones once; its ``names`` say whose they are. ``sequences`` is the
    table as it was read, ``made_up`` how much of it the subjects did not do themselves, and ``mostly_others`` how many
    subjects have a row with fewer transitions of its own than it was given.
    """

    theta: ChainClass
    sequences: Sequences
    made_up: MadeUp
    mostly_others: int


def fit_each_subject(
    source: Any,
    state: str,
    *,
    smoothing: float = SMOOTHING,
    initial: Literal["stationary", "any"] = "stationary",
    **reading: Any,
) -> SubjectsFit:
    """Fit a chain to every subject of a public table, in the order of their names; Θ is the list of them.

    A :class:`ModelError` or :class:`ParameterError` is raised as for :func:`fit_chain`, of each subject.

    Parameters
    ----------
    source, state, **reading
        The public data, as for :func:`read_sequences`, as are errors.
    smoothing : float, default 1
        So many transitions are added to every row of every subject, spread as those of all *other* subjects together
        are, by :func:`fit_chain` with the same smoothing. More pulls in the extreme subject, who decides the noise.
        With 0 subjects are taken as they are: what a subject was not seen to do is then impossible for that subject.
    initial : {"stationary", "any"}, default "stationary"
        The initial law of every chain: its stationary one, or the class of all.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> days = pl.DataFrame({"who": ["a"] * 40 + ["b"] * 40, "s": list("rrrw" * 10) + list("rrww" * 10)})
    >>> fit = fit_each_subject(days, "s", subject="who")
    >>> fit.theta.names, [chain.transition_matrix[0].round(2).tolist() for chain in fit.theta.chains]
    (('subject a', 'subject b'), [[0.66, 0.34], [0.51, 0.49]])
    """
    added = added_count("smoothing", smoothing)
    if reading.get("subject") is None:
        raise ParameterError("subject is missing: give the column of subjects, or use fit_chain")
    from pufferfish.data.public_counts import read_pairs_apart  # here: it loads what reads tables

    sequences, (pairs,) = read_pairs_apart(source, state, [1], **reading)
    return class_of_each(pairs, sequences, smoothing=added, initial=initial)


def class_of_each(
    pairs: "PairsApart",
    sequences: Sequences,
    *,
    smoothing: float = SMOOTHING,
    initial: Literal["stationary", "any"] = "stationary",
) -> SubjectsFit:
    """Return the subjects' chains from their transitions, which are pairs one step apart."""
    check_transitions(sequences)
    matrices = own_matrices(pairs.counts, smoothing)
    check_rows(
        matrices,
        lambda at: f"out of state {sequences.states[at[1]]!r} of subject {pairs.subjects[at[0]]!r}",
        "which uses the transitions of the other subjects",
    )
    everybody = list(zip(pairs.subjects, matrices, strict=True))
    unseen = sequences.subjects - len(pairs.subjects)
    if unseen:
        everybody.append(("", smoothed(pairs.counts.sum(axis=0), smoothing)))
    named: dict[bytes, list[str]] = {}
    chains: dict[bytes, MarkovChain] = {}
    for who, matrix in everybody:
        key = matrix.tobytes()
        named.setdefault(key, []).append(who)
        if key not in chains:
            whose = f"the chain of subject {who!r}: " if who else ""
            chains[key] = fitted(MarkovChain, matrix, initial, states=sequences.states, whose=whose)
    rows = pairs.counts.sum(axis=2)
    few = int(np.sum(np.any(rows < smoothing, axis=1))) + unseen
    base = sequences.base
    origin = (
        f"fitted to public data: {base.source}, column {base.state}, a chain for each of {sequences.subjects:,} "
        f"subjects{f', {len(chains):,} of them different' if len(chains) < sequences.subjects else ''}, every "
        f"row completed by {smoothing:g} of all others; {sequences.records:,} records"
    )
    names = tuple(_names(subjects, unseen) for subjects in named.values())
    theta = ChainClass(tuple(chains.values()), origin, names=names)
    judgement = judged(pairs.counts, matrices, smoothing, why="the rows of one subject are no complete model")
    return SubjectsFit(theta=theta, sequences=sequences, made_up=judgement, mostly_others=few)


def own_matrix(mine: Counts, others: Counts, smoothing: float = SMOOTHING) -> NDArray[np.float64]:
    """Return a transition matrix of a subject's counts, completed by what all others do; a lone one as one chain is."""
    return completed(mine, smoothing, smoothed(others if np.any(others) else mine, smoothing))


def own_matrices(counts: Counts, smoothing: float = SMOOTHING) -> NDArray[np.float64]:
    """Return everybody's transition matrix; counts and matrices have shape (subjects, k, k)."""
    everybody = counts.sum(axis=0)
    return np.array([own_matrix(mine, everybody - mine, smoothing) for mine in counts])


def _names(who: Sequence[str], unseen: int) -> str:
    seen = [name for name in who if name]
    more = len(seen) - _NAMED
    names = ", ".join(seen[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    parts = [f"subject{'s' if len(seen) > 1 else ''} {names}"] if seen else []
    if len(seen) < len(who):
        parts.append(f"all together, for {unseen} subject{'s' if unseen > 1 else ''} without transitions")
    return "; ".join(parts)
