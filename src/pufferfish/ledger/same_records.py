"""What belongs to a base of Markov chains: the same table read the same way, or a part of it, or coarser states."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pufferfish._base.words import did_you_mean, names_of
from pufferfish.data.bins import bin_labels, inner_edges_of
from pufferfish.data.sequences import Base, Sequences
from pufferfish.errors import ReleaseRefused
from pufferfish.ledger._windows import Windows, begins_later
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.model_class import Theta, gives_first_law

__all__ = ["MUST_MATCH", "check_lengths", "check_start", "groups_of"]


MUST_MATCH = {
    "source": "a ledger recognises its table by this name: read the same table from there, so that one ledger counts "
    "all releases of these records; only for other records make another ledger",
    "state": "make another ledger for another column",
    "subject": "read the table with the same options as the ledger's",
    "time": "read the table with the same options as the ledger's",
    "time_zone": "read the table with the same options as the ledger's",
    "ambiguous": "read the table with the same options as the ledger's",
    "max_gap": "read the table with the same options as the ledger's",
    "gaps": "read the table with the same options as the ledger's",
    "step": "read the table with the same options as the ledger's",
    "where": "a part of the table can be charged only if the ledger's base has no filter: make the ledger for the "
    "whole table",
    "missing": "read the table with the same options as the ledger's",
}
"""What two readings of the same records share, and what to do where not; gaps come before the step they give."""


def check_lengths(
    chains: Sequence[ChainLength], base: Sequence[ChainLength], windows: Windows | None, whose: str
) -> None:
    """Refuse chains that are no part of the base's chains: longer ones, or more of them."""
    parts = [(chain.steps, chain.records) for chain in base]
    if windows is not None:
        parts = [
            (window[-1][1] - window[0][0], min(chain.records, sum(stop - start for start, stop in window)))
            for chain, window in zip(base, windows, strict=True)
            if window
        ]
    there, records_there = (sorted(values, reverse=True) for values in zip(*parts, strict=True))
    here = sorted((chain.steps for chain in chains), reverse=True)
    records = sorted((chain.records for chain in chains), reverse=True)
    fits = len(here) <= len(there) and all(a <= b for a, b in zip(here, there, strict=False))
    if not fits or any(a > b for a, b in zip(records, records_there, strict=False)):
        part = "a window" if windows is not None else "the base"
        raise ReleaseRefused(
            f"{whose} has {len(here)} chains, the longest of {here[0]} steps and {records[0]} records, and {part} "
            f"of the ledger {len(there)}, the longest of {there[0]}: make another ledger for other records"
        )


def check_start(theta: Theta, window: Any) -> None:
    """Refuse noise for a window on its own where Θ tells the law of the base's first record.

    Raises
    ------
    ReleaseRefused
        If a window starts later than the chain and a member of Θ has an array as its initial law.
    """
    if begins_later(window) and gives_first_law(theta):
        raise ReleaseRefused(
            "Θ gives the law of the chain's first record as an array, but the window starts later: calibrate with the "
            'lengths of the whole base, or use a Θ with initial_distribution="any" or "stationary"'
        )


def groups_of(
    states: tuple[str, ...],
    base: Base | None,
    release_states: tuple[str, ...],
    data: Sequences | None,
    coarsening: Mapping[Any, Any] | None,
) -> list[int] | None:
    """Return for each state of the base the release's state that it counts as; None where they are the same.

    Where the base has bins, edges decide: a coarsening that is given has to agree with them.

    Raises
    ------
    ReleaseRefused
        If the release's states are no groups of the base's.
    """
    stated_groups = None if coarsening is None else _given(states, release_states, coarsening)
    edges = None if base is None else base.bins
    if edges is not None and states == bin_labels(edges):
        coarse = inner_edges_of(release_states, edges[1:-1])
        if data is not None and data.base.bins is not None and data.base.bins[1:-1] != coarse:
            coarse = None
        if coarse is None:
            raise ReleaseRefused(
                f"the inner edges of the ledger's bins are {_numbers(edges[1:-1])}, and those of the release "
                f"({_shown(release_states)}) are not among them: use bins that join bins of the ledger, or make "
                "another ledger"
            )
        groups = [sum(edge <= low for edge in coarse) for low in (-math.inf, *edges[1:-1])]
    elif data is not None and data.base.bins is not None and base is not None:
        raise ReleaseRefused(
            "the ledger was made for a column without bins, but these data have bins: read them without bins"
        )
    elif release_states == states:
        groups = list(range(len(states)))
    elif stated_groups is not None:
        groups = stated_groups
    elif sorted(release_states) == sorted(states):  # the same states in another order
        groups = [release_states.index(state) for state in states]
    else:
        raise ReleaseRefused(
            f"the release has the states {_shown(release_states)} and the ledger {_shown(states)}: if each release "
            "state is a group of ledger states, name the groups by "
            "coarsening={state of the ledger: state of the release, …}"
        )
    if stated_groups is not None and stated_groups != groups:
        raise ReleaseRefused(
            "coarsening contradicts the names of the states: leave it out if the states are equal or are bins"
        )
    return None if groups == list(range(len(release_states))) else groups


def _given(states: tuple[str, ...], release_states: tuple[str, ...], coarsening: Mapping[Any, Any]) -> list[int]:
    if not isinstance(coarsening, Mapping):
        raise ReleaseRefused("coarsening is not a mapping: give {state of the ledger: state of the release, …}")
    named = {str(state): str(group) for state, group in coarsening.items()}
    for state in named:
        if state not in states:
            hint = did_you_mean(state, states)
            raise ReleaseRefused(
                f"coarsening names {state!r}, which is not a state of the ledger.{hint} States: {_shown(states)}"
            )
    for state in states:
        if named.get(state) not in release_states:
            raise ReleaseRefused(
                f"coarsening says {named.get(state)!r} of state {state!r}, expected one of the release's states: "
                f"{names_of(release_states)}"
            )
    if len(set(named.values())) < len(release_states):
        raise ReleaseRefused(
            "coarsening does not use every state of the release: give each one at least one state of the ledger"
        )
    return [release_states.index(named[state]) for state in states]


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{v:g}" for v in values[:8]) + (", …" if len(values) > 8 else "")


def _shown(states: Sequence[str]) -> str:
    return names_of(states, 6)
