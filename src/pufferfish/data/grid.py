"""Where chains begin on the axis of time, where all their times are whole numbers of steps apart.

Two readings of one table then say where the records of one are among those of the other: a record's place in its chain
is its time less that of the first record, in steps. A ledger asks this of a part that it charges (docs/ledger.md).
"""

from dataclasses import dataclass

from pufferfish.core.numbers.given import whole_number
from pufferfish.core.numbers.read_only import ReadOnly
from pufferfish.errors import ParameterError
from pufferfish.given import listed

__all__ = ["TimeGrid"]


@dataclass(frozen=True, slots=True)
class TimeGrid(ReadOnly):
    """Times of chains as whole numbers of steps.

    Parameters
    ----------
    step : int
        Time that a step takes: microseconds, or the unit of numbers that are times.
    starts : tuple of (int or None)
        Time of each chain's first record; None for a chain with records that are no whole numbers of steps apart.

    Examples
    --------
    The same two chains a day later, in minutes:

    >>> TimeGrid(1, (1440, 2880)).offset(0, TimeGrid(1, (0, 1440)), 1)
    0
    """

    step: int
    starts: tuple[int | None, ...]

    def __post_init__(self) -> None:
        try:
            step = whole_number(self.step)
            given = listed(self.starts, "starts", "a time for each chain")
            starts = tuple(None if start is None else whole_number(start) for start in given)
        except TypeError:
            raise ParameterError(
                "a grid of times is a step and a start for each chain, expected whole numbers"
            ) from None
        if step < 1:
            raise ParameterError(f"a grid of times has a step of {step}, expected at least 1")
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "starts", starts)

    def offset(self, chain: int, base: "TimeGrid", of: int) -> int | None:
        """Return how many steps a chain begins after one of another grid; None where the two grids do not fit."""
        start, first = self.starts[chain], base.starts[of]
        if start is None or first is None or self.step != base.step or (start - first) % self.step:
            return None
        return (start - first) // self.step
