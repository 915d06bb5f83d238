"""Where chains begin on the axis of time, where all their times are whole numbers of steps apart.

Two readings of one table then say where the records of one are among those of the other: a record's place in its chain
is its time less that of the first record, in steps. A ledger asks this of a part that it charges (docs/ledger.md).

**Times without a zone** do not say it exactly: nobody knows where clocks were changed between two of them. Clocks show
standard time, or an hour more. So two local times are as far apart as they say, or an hour less (the hour that clocks
skip in spring never was), or an hour more. Fewer steps between two records mostly let more leak, but not always: in a
chain that nearly goes around in a cycle, a record a whole cycle away tells more than a nearer one. So no hour is just
taken away. A record may be at each place up to an hour from the one that its time says, and is charged at all of them
(:func:`widened`): gaps have as few unread steps as they can have, and larger losses never leak less. That is so
wherever clocks are changed by an hour or less, however often. The chain stays as long as times say: where an hour came
twice inside of a gap, its last records lie up to an hour beyond what is charged (docs/known_limits.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pufferfish.core.numbers.given import whole_number
from pufferfish.core.numbers.read_only import ReadOnly
from pufferfish.errors import ParameterError
from pufferfish.given import listed

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
    starts : tuple of (int or None)
        Time of each chain's first record; None for a chain with records that are no whole numbers of steps apart.
    slack : int, default 0
        How many steps a record may be from where its time says, because times have no zone (:func:`slack_of`).

    Examples
    --------
    The same two chains a day later, in minutes:

    >>> TimeGrid(1, (1440, 2880)).offset(0, TimeGrid(1, (0, 1440)), 1)
    0
    """

    step: int
    starts: tuple[int | None, ...]
    slack: int = 0

    def __post_init__(self) -> None:
        try:
            step, slack = whole_number(self.step), whole_number(self.slack)
            given = listed(self.starts, "starts", "a time for each chain")
            starts = tuple(None if start is None else whole_number(start) for start in given)
        except TypeError:
            raise ParameterError(
                "a grid of times is a step and a start for each chain, expected whole numbers"
            ) from None
        if step < 1 or slack < 0:
            raise ParameterError(f"a grid of times has a step of {step}, a slack of {slack}; expected 1, 0, or more")
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "slack", slack)
        object.__setattr__(self, "starts", starts)

    def offset(self, chain: int, base: "TimeGrid", of: int) -> int | None:
        """Return how many steps a chain begins after one of another grid; None where the two grids do not fit."""
        start, first = self.starts[chain], base.starts[of]
        if start is None or first is None or self.step != base.step or (start - first) % self.step:
            return None
        return (start - first) // self.step


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
