"""What public data say by subject and day: transitions with their past, and runs of equal states.

Days are of 24 hours from midnight UTC; without times they are tenths of the longest series.
"""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import ReadOnly, read_only

Whole = NDArray[np.int64]


class _Columns(ReadOnly):
    """Arrays of one length, which cannot be changed."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, each.name, read_only(np.asarray(getattr(self, each.name), dtype=np.int64)))

    def chosen(self, which: NDArray[np.bool_]) -> Self:
        """Return some of them."""
        return type(self)(*(getattr(self, each.name)[which] for each in fields(self)))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class Steps(_Columns):
    """Observed transitions in groups of equal ones, as arrays of one length."""

    subject: Whole  # whose it is
    day: Whole  # on which it ends
    phase: Whole  # of the clock, in which it begins; -1 where there is no clock
    earlier: Whole  # the state two steps before; -1 where it is not known
    before: Whole
    state: Whole
    number: Whole  # how many such transitions there are


@dataclass(frozen=True, slots=True, eq=False)
class Runs(_Columns):
    """Runs of equal observed states, in groups of equal ones, as arrays of one length."""

    subject: Whole  # whose a run is
    day: Whole  # on which it begins
    state: Whole
    lasted: Whole  # how many records it has
    begun: Whole  # 1 where the record before it had another state, 0 where its beginning was not seen
    following: Whole  # the state after it; -1 where a gap, an unobserved record or the end of the data cuts it off
    number: Whole  # how many such runs there are

    def by_length(self, which: NDArray[np.bool_]) -> Whole:
        """Return for n = 0, 1, … how many of some runs have n records."""
        lasted, number = self.lasted[which], self.number[which]
        return np.bincount(lasted, number, int(lasted.max(initial=0)) + 1).astype(np.int64)

    def transitions(self, k: int) -> Whole:
        """Return the transitions that the runs are made of; shape (k, k)."""
        counts = np.zeros((k, k), dtype=np.int64)
        np.add.at(counts, (self.state, self.state), (self.lasted - 1) * self.number)
        ended = self.following >= 0
        np.add.at(counts, (self.state[ended], self.following[ended]), self.number[ended])
        return counts


@dataclass(frozen=True, slots=True, eq=False)
class Daily(ReadOnly):
    """What was counted by subject and day."""

    subjects: tuple[str, ...]  # whose records they are, sorted; ``subject`` of steps and runs is a place here
    steps: Steps  # transitions with their past
    runs: Runs  # runs of equal states, which are made of the same transitions
