"""Which steps of the base's chains a release reads: those that a user names, or those that its times say.

A step that is not read has no loss. A user says steps for all chains, or for subjects by their names: chains have no
order that a user could mean. So an hour of each day is charged as that hour, wherever in the base it is. Times
say it where all records of a chain are whole numbers of steps apart (:class:`~pufferfish.data.sequences.TimeGrid`).
Where they do not, a release is charged on all steps of its chains. Times without a zone say it to an hour: then the
hours beside are charged too.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from operator import index
from typing import Any

import numpy as np

from pufferfish.data.sequences import Sequences, TimeGrid
from pufferfish.errors import ParameterError, ReleaseRefused, shortened
from pufferfish.ledger.subjects import Subjects
from pufferfish.queries import LinearQuery
from pufferfish.theta.lengths import ChainLength

__all__ = [
    "Steps",
    "Windows",
    "as_windows",
    "begins_later",
    "check_within",
    "windows_by_time",
    "windows_read",
    "windows_written",
]

Steps = tuple[tuple[int, int], ...]
"""Steps of a chain that are read: the first (0-based) and one past the last of each stretch, in order and apart."""

Windows = tuple[Steps | None, ...]
"""Per chain the steps that are read; None for a chain that is not read."""


def as_windows(window: Any, length: Sequence[ChainLength], subjects: Subjects | None) -> Windows | None:
    """Return the window of each chain, checked.

    Parameters
    ----------
    window : (int, int), list of these, dict, or None
        First step (0-based) and one past the last, or several such stretches in order, with steps between them that are
        not read. It is that of every chain, as far as the chain goes; or a dict says for subjects, by name, which steps
        of their chains are read, and nobody else's are.
    length : sequence of ChainLength
        The chains of the base.
    subjects : Subjects or None
        Whose they are; None where that is not known.

    Raises
    ------
    ParameterError
        If a window is empty or leaves its chain, or is given by name where nobody said whose chains these are.
    ReleaseRefused
        If it names a subject that is not in the base.
    """
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


def begins_later(window: Any) -> bool:
    """Whether a window leaves out the first step of some chain."""
    windows: Any = window.values() if isinstance(window, Mapping) else [] if window is None else [window]
    return any(_steps(chain_window)[0][0] > 0 for chain_window in windows)


def windows_written(windows: Sequence[Any], length: Sequence[ChainLength]) -> Windows:
    """Return the windows that an entry of a ledger says: one for each chain of its base, None for one not read.

    Raises
    ------
    ParameterError
        If they are none.
    """
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

    Raises
    ------
    ReleaseRefused
        If a window is given, and the query says otherwise.
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


def windows_by_time(
    data: Sequences, grid: TimeGrid | None, places: Mapping[str, Sequence[int]] | None, length: Sequence[ChainLength]
) -> Windows | None:
    """Return which steps of the base's chains data read, as their times say.

    Parameters
    ----------
    data : Sequences
        What is read.
    grid : TimeGrid or None
        Where the chains of the base begin.
    places : mapping or None
        For the subjects in the data their chains in the base; None where nobody said whose these are.
    length : sequence of ChainLength
        The chains of the base.

    Returns
    -------
    tuple or None
        All steps of a chain whose times do not say it; None where all steps of all chains in the data are read.

    Raises
    ------
    ReleaseRefused
        If times say that records lie outside of the base: no proof is about these.
    """
    if grid is None or data.grid is None or (places is None and len(length) > 1):
        return None
    if data.grid.slack != grid.slack and data.grid.step == grid.step:
        raise ReleaseRefused(
            f"column {data.base.time!r} has times {_zones(data.grid)}, and the ledger was made from times "
            f"{_zones(grid)}: the same times mean different hours, so read both in the same way (time_zone= names the "
            "zone of local times)"
        )
    chain_places = [[0]] * len(data.length) if places is None else [places[name] for name in data.names or ()]
    windows: list[Steps | None] = [None] * len(length)
    part = False
    for i, (chain, there) in enumerate(zip(data.length, chain_places, strict=True)):
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
    """Refuse windows that leave out what times say is read.

    Raises
    ------
    ReleaseRefused
        If they do.
    """
    for read, window in zip(known, windows, strict=True):
        for start, stop in read or ():
            if not any(first <= start and stop <= last for first, last in window or ()):
                raise ReleaseRefused(
                    f"{whose} are steps {start} to {stop - 1} of a chain by their times, but window lacks some of "
                    "them: leave window out"
                )


def _read(chain: ChainLength, ends: tuple[int, int] | None, grid: TimeGrid, of: int, steps: int) -> Steps | None:
    """Return the steps of the base's chain that a chain reads, given its ends among them; None if these are not known.

    What is between its own ends was widened when it was read; of the base there is more on both sides.
    """
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
