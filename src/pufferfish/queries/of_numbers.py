"""What states are worth that are bins of a number, and which of them lie in a range.

A bin counts at its middle, so a mean of bins is off by at most half of the widest one, beside its noise, where all
values are clamped to the outer edges. Where those are not known the first and the last bin count at the edge they have.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from pufferfish._base.words import names_of
from pufferfish.errors import QueryError
from pufferfish.theta.states import intervals_of_states

__all__ = ["BinValues", "is_range", "states_within", "values_of_bins"]


class BinValues(NamedTuple):
    """What each state counts as, and how far a value between the edges can be from that: half of the widest bin.

    ``clamped`` are the edges that values beyond them count as; None where states are numbers themselves.
    """

    values: list[float]
    off: float
    clamped: tuple[float, float] | None


def values_of_bins(states: Sequence[str], edges: Sequence[float] | None = None) -> BinValues:
    """Return what the states are worth, which are bins of a number or numbers; of bins ``edges`` are all their edges.

    Examples
    --------
    >>> values_of_bins(["<70", "70-180", ">=180"])
    BinValues(values=[70.0, 125.0, 180.0], off=55.0, clamped=(70.0, 180.0))
    >>> values_of_bins(["<70", "70-180", ">=180"], [0, 70, 180, 400])
    BinValues(values=[35.0, 125.0, 290.0], off=110.0, clamped=(0.0, 400.0))
    >>> values_of_bins(["0", "1", "2"]).values
    [0.0, 1.0, 2.0]
    """
    ends = _ends_of(states)
    if edges is not None and len(edges) == len(states) + 1:
        exact = [Fraction(repr(float(edge))) for edge in edges]
        middles = [float((low + high) / 2) for low, high in pairwise(exact)]
        widest = max(high - low for low, high in pairwise(exact))
        return BinValues(middles, float(widest / 2), (float(exact[0]), float(exact[-1])))
    values, off = list[float](), Fraction(0)
    for low, high in ends:
        known = [end for end in (low, high) if end is not None]
        values.append(float(sum(known, Fraction(0)) / len(known)))
        off = max(off, (known[-1] - known[0]) / 2)
    open_ended = ends[0][0] is None
    return BinValues(values, float(off), (values[0], values[-1]) if open_ended else None)


def states_within(states: Sequence[str], text: str) -> list[str]:
    """Return the states whose values all lie in a range, such as ``>=180``, ``<70`` or ``70..180`` (without 180).

    Examples
    --------
    >>> bins = ["<70", "70-180", ">=180"]
    >>> states_within(bins, ">=70"), states_within(bins, "70..180")
    (['70-180', '>=180'], ['70-180'])
    """
    ends = _ends_of(states)
    low, high = _range(text)
    edges = sorted({end for pair in ends for end in pair if end is not None})
    for end in (low, high):
        if ends[0][0] is None and end is not None and end not in edges:
            shown = names_of(f"{float(edge):g}" for edge in edges)
            raise QueryError(f"{text!r} ends inside a bin: choose one of the edges {shown}")
    within = [
        state
        for state, (first, last) in zip(states, ends, strict=True)
        if (low is None or (first is not None and first >= low)) and (high is None or _below(first, last, high))
    ]
    if not within or len(within) == len(states):
        raise QueryError(f"{text!r} holds {'all' if within else 'none'} of the states, so there is nothing to ask")
    return within


def is_range(text: str) -> bool:
    """Whether a text is a range of numbers, and no name of a state."""
    try:
        _range(text)
    except (QueryError, ValueError):
        return False
    return True


def _below(first: Fraction | None, last: Fraction | None, high: Fraction) -> bool:
    """Whether all of a state is below a number: a bin ends before its upper edge, a number is itself."""
    return last is not None and (last < high if first == last else last <= high)


def _ends_of(states: Sequence[str]) -> list[tuple[Fraction | None, Fraction | None]]:
    ends = intervals_of_states(states)
    if ends is None:
        shown = names_of(list(states)[:4])
        raise QueryError(
            f"states are {shown}, which are neither numbers nor bins: give each state a value, as in "
            "mean:low=1,high=3, or read a column of numbers with bins"
        )
    return ends


def _range(text: str) -> tuple[Fraction | None, Fraction | None]:
    """Return from where to where a range goes; None for no end."""
    try:
        if text.startswith(">="):
            return Fraction(text[2:].strip()), None
        if text.startswith("<"):
            return None, Fraction(text[1:].strip())
        low, dots, high = text.partition("..")
        if dots and Fraction(low) < Fraction(high):
            return Fraction(low), Fraction(high)
    except (ValueError, ZeroDivisionError):
        pass
    raise QueryError(f"{text!r} is not a range of numbers: expected one such as >=180, <70 or 70..180")
