"""Lengths of the independent chains of a data set, one for each subject.

Gaps inside a subject are *unobserved records of the same chain*: correlation decays across them, but no query reads
them and their record-level loss is 0. A chain therefore has two lengths: the steps it spans, for bounds that follow the
correlation through time, and the records observed on the way, for group privacy, which charges each in full.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pufferfish._base.checked import is_list, listed, whole_number
from pufferfish._base.frozen import ReadOnly
from pufferfish.errors import ParameterError

FOR_EVER = 2**59  # steps of a chain that has no end: no bound of a chain that is longer would be larger
MOST_STEPS = 2**60  # a chain has fewer steps, so that a few times as many still are numbers of 64 bits
MOST_PLACED = 10_000_000  # steps of a chain of which bounds may know where its records are: they look at each of them


@dataclass(frozen=True, slots=True, order=True)
class ChainLength(ReadOnly):
    """Length of one chain: the steps it spans and the records observed in it.

    Parameters
    ----------
    steps : int
        Steps from the first to the last record, both included, at least ``records``.
    records : int
        Observed records, at least 1.
    places : tuple of int, optional
        Where they are, if that is public and known: how many steps in a row are observed, then how many are not, and
        so on in turn, from the first record to the last. Empty where it is not known: records may be anywhere.

    Examples
    --------
    >>> ChainLength(1500, 120, places=(60, 1380, 60)).covers(ChainLength(1500, 120))
    False
    """

    steps: int
    records: int
    places: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self._keep(**{name: _whole(getattr(self, name), f"{name} of a chain") for name in ("steps", "records")})
        if self.steps >= MOST_STEPS:
            raise ParameterError("a chain has 2^60 steps or more: give its number of records")
        if not 1 <= self.records <= self.steps:
            raise ParameterError(
                f"a chain of {self.steps:,} steps with {self.records:,} observed records does not exist: "
                "expected 1 <= records <= steps"
            )
        try:
            places = tuple(whole_number(n) for n in self.places)
        except TypeError:
            raise ParameterError(f"places of a chain are {self.places!r}, expected numbers of steps") from None
        self._keep(places=places)
        if places and self.steps > MOST_PLACED:
            raise ParameterError(
                f"a chain of {self.steps:,} steps has places for its records, but places are used for at most "
                f"{MOST_PLACED:,} steps: leave them out (the proof then covers all places), or use longer steps"
            )
        if places and not (
            len(places) % 2 == 1 and min(places) >= 1 and sum(places) == self.steps and sum(places[::2]) >= self.records
        ):
            raise ParameterError(
                f"places of a chain of {self.steps:,} steps and {self.records:,} records are observed and unobserved "
                "steps in turn, expected an odd number of them, each at least 1, which add up to the steps and hold "
                "the records"
            )

    def __repr__(self) -> str:
        where = f", places={self.places}" if self.places else ""
        return f"ChainLength(steps={self.steps}, records={self.records}{where})"

    @property
    def without_positions(self) -> "ChainLength":
        """The same length with nothing known of where its records are."""
        return ChainLength(self.steps, self.records) if self.places else self

    def covers(self, other: "ChainLength") -> bool:
        """Whether noise for this chain is enough for another, of no more steps and records, or with its places."""
        return self == other if self.places else other.steps <= self.steps and other.records <= self.records


def as_lengths(length: Any) -> tuple[ChainLength, ...]:
    """Chain lengths from T, a ``ChainLength``, or an iterable of either, one entry per independent chain in any order.

    >>> as_lengths([3, ChainLength(9, 5)])
    (ChainLength(steps=3, records=3), ChainLength(steps=9, records=5))
    """
    if isinstance(length, ChainLength):
        return (length,)
    if is_list(length) and length is not np.ma.masked:
        entries = listed(length, "length", "T, or one length per independent chain")
        lengths = tuple(_one(entry, f"length[{i}]") for i, entry in enumerate(entries))
        if not lengths:
            raise ParameterError("length is empty: give T, or one length per independent chain")
        return lengths
    return (_one(length, "length"),)


def _one(entry: Any, name: str) -> ChainLength:
    if isinstance(entry, ChainLength):
        return entry
    steps = _whole(entry, name)
    if steps < 1:
        raise ParameterError(f"{name} is {steps}, expected at least 1 record")
    return ChainLength(steps, steps)


def _whole(number: Any, name: str) -> int:
    try:
        return whole_number(number)
    except TypeError:
        inner = "; give what it has: data.length" if hasattr(number, "length") else ""
        raise ParameterError(
            f"{name} is {number!r}, expected a positive integer: the number of records in the chain{inner}"
        ) from None
