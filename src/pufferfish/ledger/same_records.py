"""Which records of a ledger's base a release reads, where that is a table of Markov chains.

The data are the same table read the same way, or a part of it, or in coarser states. A step that is not read has no
loss. A user says steps for all chains, or for subjects by their names: chains have no order that a user could mean. So
an hour of each day is charged as that hour, wherever in the base it is. Times say it where all records of a chain are
whole numbers of steps apart (:class:`~pufferfish.data.sequences.TimeGrid`). Where they do not, a release is charged on
all steps of its chains. Times without a zone say it to an hour: then the hours beside are charged too.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from operator import index
from typing import Any

import numpy as np

from pufferfish._base.words import did_you_mean, names_of
from pufferfish.data.bins import bin_labels, inner_edges_of
from pufferfish.data.sequences import Base, Sequences, TimeGrid
from pufferfish.errors import ParameterError, ReleaseRefused, shortened
from pufferfish.ledger.subjects import Subjects
from pufferfish.queries import LinearQuery
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.model_class import Theta, gives_first_law

Steps = tuple[tuple[int, int], ...]
"""Steps of a chain that are read: the first (0-based) and one past the last of each stretch, in order and apart."""

Windows = tuple[Steps | None, ...]
"""Per chain the steps that are read; None for a chain that is not read."""

SAME_SOURCE = (
    "a ledger recognises its table by this name: read the same table from there, so that one ledger counts all "
    "releases of these records; only for other records make another ledger"
)
SAME_OPTIONS = "read the table with the same options as the ledger's"

MUST_MATCH = {
    "source": SAME_SOURCE,
    "state": "make another ledger for another column",
    **dict.fromkeys(("subject", "time", "time_zone", "ambiguous", "max_gap", "gaps", "step"), SAME_OPTIONS),
    "where": "a part of the table can be charged only if the ledger's base has no filter: make the ledger for the "
    "whole table",
    "missing": SAME_OPTIONS,
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
    """Refuse noise for a window on its own, which starts later than the chain, where Θ tells the law of its start."""
    windows: Any = window.values() if isinstance(window, Mapping) else [] if window is None else [window]
    if any(_steps(each)[0][0] > 0 for each in windows) and gives_first_law(theta):
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
    """Return for each state of the base that of the release that it counts as, by edges of bins; None for the same."""
    stated_groups = None if coarsening is None else _given(states, release_states, coarsening)
    edges = None if base is None else base.bins
    if edges is not None and states == bin_labels(edges):
        coarse = inner_edges_of(release_states, edges[1:-1])
        if data is not None and data.base.bins is not None and data.base.bins[1:-1] != coarse:
            coarse = None
        if coarse is None:
            inner = ", ".join(f"{edge:g}" for edge in edges[1:-1][:8]) + (", …" if len(edges) > 10 else "")
            raise ReleaseRefused(
                f"the inner edges of the ledger's bins are {inner}, and those of the release "
                f"({names_of(release_states, 6)}) are not among them: use bins that join bins of the ledger, or make "
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
            f"the release has the states {names_of(release_states, 6)} and the ledger {names_of(states, 6)}: if each "
            "release state is a group of ledger states, name the groups by coarsening={state of the ledger: state of "
            "the release, …}"
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
    strangers = [state for state in named if state not in states]
    for why in (
        *(f"names {state!r}, which is not a state of the ledger.{did_you_mean(state, states)}" for state in strangers),
        *(
            f"says {named.get(x)!r} of state {x!r}, no state of the release."
            for x in states
            if named.get(x) not in release_states
        ),
        *(f"uses {x!r} for no state of the ledger." for x in release_states if x not in named.values()),
    ):
        raise ReleaseRefused(
            f"coarsening {why} Give each state of the ledger ({names_of(states, 6)}) one of the release "
            f"({names_of(release_states, 6)}), and use all of these"
        )
    return [release_states.index(named[state]) for state in states]


# -- Which steps are read: windows that a user names, or what times say ----------------------------------------------


def as_windows(window: Any, length: Sequence[ChainLength], subjects: Subjects | None) -> Windows | None:
    """Return the window of each chain of a base: one for all, as far as a chain goes, or a dict's by subjects."""
    if window is None:
        return None
    windows: list[Steps | None] = [None] * len(length)
    for places, stretches in _of_chains(window, len(length), subjects):
        steps = max(length[place].steps for place in places)
        if stretches[-1][1] > steps:
            raise ParameterError(f"window {stretches[-1]} is not inside a chain of {steps:,} steps")
        for place in places:
            last = length[place].steps
            windows[place] = tuple((start, min(stop, last)) for start, stop in stretches if start < last) or None
    return tuple(windows)


def windows_written(windows: Sequence[Any], length: Sequence[ChainLength]) -> Windows:
    """Return the windows that an entry of a ledger says, checked: one for each chain of its base, None if not read."""
    checked = tuple(None if window is None else _steps(list(window)) for window in windows)
    fits = len(checked) == len(length) and any(checked)
    if not fits or any(window and window[-1][1] > chain.steps for window, chain in zip(checked, length, strict=True)):
        raise ParameterError(f"windows do not fit {len(length)} chains: {shortened(repr(windows))}")
    return checked


def windows_read(
    linear: LinearQuery, of: Sequence[ChainLength], windows: Windows | None, length: Sequence[ChainLength]
) -> Windows | None:
    """Return the windows that were given, or else what a query says itself that it reads.

    It says so by the places of records in the chain that it was calibrated for. These are places in a chain of the base
    only where that is as long: of a part nobody said where it begins, so every step of the base's chain is charged.
    """
    if linear.factors is None:
        return windows
    read, chain = np.flatnonzero(linear.factors), of[0].without_positions
    query_window: Steps = ((int(read[0]), int(read[-1]) + 1),)
    if windows is None:
        return tuple(query_window if there == chain else ((0, there.steps),) for there in length)
    if any(
        there == chain and window not in (None, query_window) for there, window in zip(length, windows, strict=True)
    ):
        raise ReleaseRefused(
            f"the query reads records {read[0]} to {read[-1]}, but window names others: leave window out"
        )
    return windows


def places_of_chains(data: Sequences, subjects: Subjects | None) -> list[list[int]]:
    """Return for each chain of data those of its subject in the base; the only one where nobody said whose it is."""
    if subjects is None:
        return [[0]] * len(data.length)
    places = subjects.places_of(data.names or ())
    return [places[name] for name in data.names or ()]


def windows_by_time(
    data: Sequences | None, grid: TimeGrid | None, subjects: Subjects | None, length: Sequence[ChainLength]
) -> Windows | None:
    """Return the steps that data read by their times, all where these do not say; refuse others than the base has."""
    if data is None or (subjects is None) != (data.names is None):
        return None
    if grid is None or data.grid is None or (subjects is None and len(length) > 1):
        return None
    if data.grid.slack != grid.slack and data.grid.step == grid.step:
        raise ReleaseRefused(
            f"column {data.base.time!r} has times {_zones(data.grid)}, and the ledger was made from times "
            f"{_zones(grid)}: the same times mean different hours, so read both in the same way (time_zone= names the "
            "zone of local times)"
        )
    windows: list[Steps | None] = [None] * len(length)
    part = False
    for i, (chain, there) in enumerate(zip(data.length, places_of_chains(data, subjects), strict=True)):
        one = there[0] if len(there) == 1 and windows[there[0]] is None else None
        read = None if one is None else _read(chain, data.grid.places(i, grid, one), grid, one, length[one].steps)
        for place in there:
            everything = ((0, length[place].steps),)
            windows[place] = read or everything
            part = part or windows[place] != everything
    return tuple(windows) if part else None


def _zones(grid: TimeGrid) -> str:
    return "without a zone" if grid.slack else "with a zone"


def check_within(known: Windows, windows: Windows, whose: str) -> None:
    """Refuse windows that leave out what times say is read."""
    for read, window in zip(known, windows, strict=True):
        for start, stop in read or ():
            if not any(first <= start and stop <= last for first, last in window or ()):
                raise ReleaseRefused(
                    f"{whose} are steps {start} to {stop - 1} of a chain by their times, but window lacks some of "
                    "them: leave window out"
                )


def _read(chain: ChainLength, ends: tuple[int, int] | None, grid: TimeGrid, of: int, steps: int) -> Steps | None:
    """Return the steps of the base's chain that a chain with these ends reads; None if its ends are not known."""
    within = grid.places(of, grid, of)
    if ends is None or within is None:
        return None
    (first, last), (_, latest) = ends, within
    if first < 0 or last > latest:
        raise ReleaseRefused(
            f"by their times the data cover steps {first} to {last} of a chain, but the ledger's base has steps 0 to "
            f"{latest}: make a ledger for the whole table"
        )
    edges = list(accumulate(chain.places or (chain.steps,), initial=first))
    edges[0], edges[-1] = max(first - grid.slack, 0), min(last + 1 + grid.slack, steps)
    return tuple(pairwise(edges))[::2]


def _of_chains(window: Any, chains: int, subjects: Subjects | None) -> list[tuple[list[int], Steps]]:
    """Return places of chains, with the steps that are read of each."""
    if not isinstance(window, Mapping):
        return [(list(range(chains)), _steps(window))]
    if subjects is None:
        raise ParameterError(
            "window names subjects, but the ledger does not know the subjects of its chains: make it with base=data, "
            "or give one window for all chains"
        )
    if not window or not all(isinstance(name, str) for name in window):
        raise ParameterError(
            f"window is {shortened(repr(window))}, expected {{subject: (first step, one past the last)}}"
        )
    places = subjects.places_of(window, by="window has")
    return [(places[name], _steps(chain_window)) for name, chain_window in window.items()]


def _steps(window: Any) -> Steps:
    """Return stretches of steps, in order and apart, that a user or a ledger's file gives."""
    if not isinstance(window, list | tuple) or not any(isinstance(stretch, list | tuple | None) for stretch in window):
        return (_stretch(window),)
    stretches = tuple(_stretch(stretch) for stretch in window)
    if any(stop >= start for (_, stop), (start, _) in pairwise(stretches)):
        raise ParameterError(
            f"window {shortened(repr(window))} has stretches that are out of order or touch: sort and join them; to "
            "give windows by subject use {subject: (first step, one past the last)}"
        )
    return stretches


def _stretch(entry: Any) -> tuple[int, int]:
    try:
        if isinstance(entry, set | frozenset | Mapping):  # they have no order
            raise ValueError
        start, stop = (index(edge) for edge in entry)
        if any(isinstance(edge, bool) for edge in entry):
            raise ValueError
    except (TypeError, ValueError):
        raise ParameterError(
            f"window has {shortened(repr(entry))}, expected (first step, one past the last), such as (0, 1440), a list "
            "of such stretches, or {subject: window}"
        ) from None
    if not 0 <= start < stop:
        raise ParameterError(f"window ({start}, {stop}) is empty or begins before step 0")
    return start, stop
