"""Runs of equal states, by whose they are and by day: how long people stay in a state, and where they go then."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Runs"]

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs of equal observed states, in groups of equal ones, as arrays of one length.

    Parameters
    ----------
    subjects : tuple of str
        Whose they are, sorted.
    subject, day, state : ndarray of int64
        Whose a run is, the day (of 24 hours from midnight UTC) on which it begins, and which state.
    lasted : ndarray of int64
        How many records it has.
    begun : ndarray of int64
        1 where the record before it had another state, 0 where its beginning was not seen.
    following : ndarray of int64
        The state after it; -1 where a gap, an unobserved record or the end of the data cuts it off.
    number : ndarray of int64
        How many such runs there are.
    """

    subjects: tuple[str, ...]
    subject: Whole
    day: Whole
    state: Whole
    lasted: Whole
    begun: Whole
    following: Whole
    number: Whole

    def chosen(self, which: NDArray[np.bool_]) -> "Runs":
        """Return some of the runs."""
        columns = (self.subject, self.day, self.state, self.lasted, self.begun, self.following, self.number)
        return Runs(self.subjects, *(column[which] for column in columns))

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
