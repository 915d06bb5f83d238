"""Which steps of the base's chains a release reads: those that a user names, or those that its times say.

A step that is not read has no loss. So an hour of each day is charged as that hour, wherever in the base it is. Times
say it where all records of a chain are whole numbers of steps apart (:class:`~pufferfish.data.grid.TimeGrid`). Where
they do not, a release is charged on all steps of its chains. Times without a zone say it to an hour: then the hours
beside are charged too.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from operator import index
from typing import Any

import numpy as np

from pufferfish.data.grid import TimeGrid
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError, ReleaseRefused
from pufferfish.queries import LinearQuery
from pufferfish.theta.lengths import ChainLength

__all__ = ["Steps", "Windows", "as_windows", "check_within", "windows_by_time", "windows_read"]

Steps = tuple[tuple[int, int], ...]
"""Steps of a chain that are read: the first (0-based) and one past the last of each stretch, in order and apart."""

Windows = tuple[Steps | None, ...]
"""Per chain the steps that are read; None for a chain that is not read."""


def as_windows(window: Any, length: Sequence[ChainLength]) -> Windows | None:
    """Return the window of each chain, checked.

    Parameters
    ----------
    window : (int, int), list of these or None, or None
        First step (0-based) and one past the last; for several chains one entry per chain, None for a chain that is
        not read. An entry may be a list of pairs: stretches in order, with steps between them that are not read.
    length : sequence of ChainLength
        The chains of the base.

    Raises
    ------
    ParameterError
        If a window is empty or leaves its chain, or there is not one per chain.
    """
    if window is None:
        return None
    if len(length) == 1 and not isinstance(window, list):
        window = [window]
    if isinstance(window, set | frozenset):
        raise ParameterError(f"window is {window!r}, expected (first step, one past the last): a set has no order")
    try:
        pairs: list[tuple[Any, ChainLength]] = list(zip(window, length, strict=True))
    except (TypeError, ValueError):
        raise ParameterError(
            f"window is {window!r}, expected a list of {len(length)}: (first step, one past the last) per chain, "
            "None to leave it out"
        ) from None
    found = tuple(_window(entry, chain.steps) for entry, chain in pairs)
    if not any(found):
        raise ParameterError("window leaves out every chain: nothing would be read")
    return found


def windows_read(linear: LinearQuery, windows: Windows | None, length: Sequence[ChainLength]) -> Windows | None:
    """Return the window that a query reads by itself, or else the one that was given.

    Raises
    ------
    ReleaseRefused
        If both are there and differ.
    """
    if linear.factors is None:
        return windows
    read = np.flatnonzero(linear.factors)
    own = as_windows((int(read[0]), int(read[-1]) + 1), length)
    if windows is not None and windows != own:
        raise ReleaseRefused(
            f"the query reads records {read[0]} to {read[-1]}, and window says otherwise: leave window out"
        )
    return own


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
    own = [[0]] * len(data.length) if places is None else [places[name] for name in data.names or ()]
    found: list[Steps | None] = [None] * len(length)
    part = False
    for i, (chain, there) in enumerate(zip(data.length, own, strict=True)):
        one = there[0] if len(there) == 1 and found[there[0]] is None else None
        slack = max(grid.slack, data.grid.slack)  # a ledger of an earlier version says none
        read = None if one is None else _read(chain, data.grid.offset(i, grid, one), length[one].steps, slack)
        for place in there:
            everything = ((0, length[place].steps),)
            found[place] = read or everything
            part = part or found[place] != everything
    return tuple(found) if part else None


def check_within(known: Windows, given: Windows, whose: str) -> None:
    """Refuse windows that leave out what times say is read.

    Raises
    ------
    ReleaseRefused
        If they do.
    """
    for c, (read, said) in enumerate(zip(known, given, strict=True)):
        for start, stop in read or ():
            if not any(first <= start and stop <= last for first, last in said or ()):
                raise ReleaseRefused(
                    f"{whose} of chain {c} are steps {start} to {stop - 1} by their times, and window leaves some of "
                    "them out: leave window out"
                )


def _read(chain: ChainLength, offset: int | None, steps: int, slack: int) -> Steps | None:
    """Return the steps of the base's chain that a chain reads; None if that is not known.

    What is between its own ends was widened when it was read; of the base there is more on both sides.
    """
    if offset is None:
        return None
    if offset < 0 or offset + chain.steps > steps:
        raise ReleaseRefused(
            f"by their times the data reach from step {offset} to step {offset + chain.steps - 1} of a chain that has "
            f"steps 0 to {steps - 1} in the ledger's base: records that came later or earlier need a ledger of all"
        )
    edges = list(accumulate(chain.places or (chain.steps,), initial=offset))
    edges[0], edges[-1] = max(edges[0] - slack, 0), min(edges[-1] + slack, steps)
    return tuple(pairwise(edges))[::2]


def _window(entry: Any, steps: int) -> Steps | None:
    if entry is None:
        return None
    if isinstance(entry, list | tuple) and any(isinstance(each, list | tuple) for each in entry):
        found = tuple(_stretch(each, steps) for each in entry)
        if any(stop >= start for (_, stop), (start, _) in pairwise(found)):
            raise ParameterError(f"window {entry!r} has stretches that are out of order, or touch: join those that do")
        return found
    return (_stretch(entry, steps),)


def _stretch(entry: Any, steps: int) -> tuple[int, int]:
    try:
        start, stop = (index(edge) for edge in entry)
        if any(isinstance(edge, bool) for edge in entry):
            raise ValueError
    except (TypeError, ValueError):
        raise ParameterError(
            f"window is {entry!r}, expected (first step, one past the last), such as (0, 1440)"
        ) from None
    if not 0 <= start < stop <= steps:
        raise ParameterError(f"window ({start}, {stop}) is not inside a chain of {steps:,} steps")
    return start, stop
