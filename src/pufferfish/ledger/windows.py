"""Which steps of the base's chains a release reads."""

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from pufferfish.errors import ParameterError, ReleaseRefused
from pufferfish.queries import LinearQuery
from pufferfish.theta.lengths import ChainLength

__all__ = ["Windows", "as_windows", "windows_read"]

Windows = tuple[tuple[int, int] | None, ...]
"""Per chain the steps that are read, first (0-based) and one past the last; None for a chain that is not read."""


def as_windows(window: Any, length: Sequence[ChainLength]) -> Windows | None:
    """Return the window of each chain, checked.

    Parameters
    ----------
    window : (int, int), list of these or None, or None
        First step (0-based) and one past the last; for several chains one entry per chain, None for a chain that is
        not read.
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
        pairs: list[tuple[Any, ChainLength]] = list(zip(window, length, strict=True))  # pyright: ignore[reportUnknownArgumentType]
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


def _window(entry: Any, steps: int) -> tuple[int, int] | None:
    if entry is None:
        return None
    try:
        start, stop = (index(edge) for edge in entry)
        if any(isinstance(edge, bool) for edge in entry):
            raise ValueError
    except (TypeError, ValueError):
        raise ParameterError(
            f"window is {entry!r}, expected (first step, one past the last), such as (0, 1440)"
        ) from None
    if not 0 <= start < stop <= steps:
        raise ParameterError(f"window ({start}, {stop}) is not inside a chain of {steps} steps")
    return start, stop
