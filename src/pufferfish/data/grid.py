"""Where chains begin and end on the axis of time, where all their times are whole numbers of steps apart.

Two readings of one table then say where the records of one are among those of the other: a record's place in its chain
is its time less that of the first record, in steps. A ledger asks this of a part that it charges (docs/ledger.md).

**Times without a zone** do not say it exactly: nobody knows where clocks were changed between two of them. Clocks show
standard time, or an hour more. So two local times are as far apart as they say, or an hour less (the hour that clocks
skip in spring never was), or an hour more. Fewer steps between two records mostly let more leak, but not always: in a
chain that nearly goes around in a cycle, a record a whole cycle away tells more than a nearer one. So no hour is just
taken away. A record may be at each place up to an hour from the one that its time says, and is charged at all of them
(:func:`widened`): gaps have as few unread steps as they can have, and larger losses never leak less. That is so
wherever clocks are changed by an hour or less, however often. A chain with a gap is an hour longer than times say:
where an hour came twice inside of the gap, so long is the true one. Records without a gap between them are next to each
other, as ``max_gap`` says.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pufferfish._base.checked import listed, whole_number
from pufferfish._base.frozen import ReadOnly
from pufferfish.errors import ParameterError

__all__ = ["HOUR", "TimeGrid", "slack_of", "widened"]

HOUR = 3_600_000_000
"""By so much, in microseconds, clocks are changed in summer; in a few zones by less."""


@dataclass(frozen=True, slots=True)
class TimeGrid(ReadOnly):
    """Times of chains as whole numbers of steps.

    Parameters
    ----------
    step : int
        Time that a step takes: microseconds, or the unit of numbers that are times.
    ends : tuple of ((int, int) or None)
        Times of each chain's first and last record; None for a chain with records that are no whole numbers of steps
        apart.
    slack : int, default 0
        How many steps a record may be from where its time says, because times have no zone (:func:`slack_of`).

    Examples
    --------
    An hour of the second of two days, in minutes:

    >>> TimeGrid(1, ((1500, 1559),)).places(0, TimeGrid(1, ((0, 1439), (1440, 2879))), 1)
    (60, 119)
    """

    step: int
    ends: tuple[tuple[int, int] | None, ...]
    slack: int = 0

    def __post_init__(self) -> None:
        try:
            step, slack = whole_number(self.step), whole_number(self.slack)
            ends = tuple(None if own is None else _span(own) for own in listed(self.ends, "ends", "two times each"))
        except (TypeError, ValueError):
            raise ParameterError(
                "a grid of times is a step, and of each chain the first and the last time, expected whole numbers"
            ) from None
        if step < 1 or slack < 0:
            raise ParameterError(f"a grid of times has a step of {step}, a slack of {slack}; expected 1, 0, or more")
        if any(own is not None and (own[0] > own[1] or (own[1] - own[0]) % step) for own in ends):
            raise ParameterError("a grid of times has a chain that ends before it begins, or between two steps")
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "slack", slack)
        object.__setattr__(self, "ends", ends)

    @property
    def steps(self) -> tuple[int | None, ...]:
        """How many steps each chain has by its times."""
        return tuple(None if own is None else (own[1] - own[0]) // self.step + 1 for own in self.ends)

    def places(self, chain: int, base: "TimeGrid", of: int) -> tuple[int, int] | None:
        """Return which steps of a chain of another grid the two ends of one are; None where the grids do not fit."""
        own, there = self.ends[chain], base.ends[of]
        if own is None or there is None or self.step != base.step or (own[0] - there[0]) % self.step:
            return None
        return (own[0] - there[0]) // self.step, (own[1] - there[0]) // self.step


def _span(own: Any) -> tuple[int, int]:
    first, last = listed(own, "ends", "two times")
    return whole_number(first), whole_number(last)


def slack_of(step: int) -> int:
    """Return how many steps of so many microseconds a change of clocks may put between two times without a zone.

    Examples
    --------
    >>> slack_of(60_000_000), slack_of(7_200_000_000), slack_of(86_400_000_000)
    (60, 1, 0)
    """
    return 0 if step % (24 * HOUR) == 0 else -(-HOUR // step)


def widened(spans: Iterable[tuple[int, int]], by: int, size: int) -> tuple[tuple[int, int], ...]:
    """Return spans of steps, in order, that reach further on both sides, within a chain; those that meet become one.

    Examples
    --------
    >>> widened([(0, 60), (120, 180), (600, 660)], 60, 660)
    ((0, 240), (540, 660))
    """
    found: list[tuple[int, int]] = []
    for start, stop in spans:
        start, stop = max(start - by, 0), min(stop + by, size)
        if found and start <= found[-1][1]:
            start = found.pop()[0]
        found.append((start, stop))
    return tuple(found)
