"""Which steps of which subjects a release of a table that grows reads.

Steps are numbered by time: a step is as long as the ledger's grid says, and has the same number in every file. Subjects
that are read alike are one group, whatever their number: a week of a hundred thousand people is one line.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import FrozenRecord
from pufferfish.errors import ParameterError
from pufferfish.ledger.subjects import packed, unpacked_bits

Runs = tuple[tuple[int, int], ...]
"""Steps: the first and one past the last of each stretch, in order and apart."""

Numbers = NDArray[np.int64]
"""Numbers of subjects in the order in which they came, increasing."""

# -- Steps -----------------------------------------------------------------------------------------------------------


def joined(*runs: Runs) -> Runs:
    """Return the steps that are in one of some runs.

    >>> joined(((0, 7), (14, 21)), ((7, 9),))
    ((0, 9), (14, 21))
    """
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(stretch for some in runs for stretch in some):
        if merged and start <= merged[-1][1]:
            first, last = merged.pop()
            start, stop = first, max(last, stop)
        merged.append((start, stop))
    return tuple(merged)


def common(one: Runs, other: Runs) -> Runs:
    """Return the steps that are in both of two runs."""
    shared: list[tuple[int, int]] = []
    i = j = 0
    while i < len(one) and j < len(other):
        start, stop = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < stop:
            shared.append((start, stop))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(shared)


def without(one: Runs, other: Runs) -> Runs:
    """Return the steps that are in the first of two runs only.

    >>> without(((0, 21),), ((7, 14),))
    ((0, 7), (14, 21))
    """
    if not one:
        return ()
    edges = [one[0][0], *(edge for stretch in other for edge in stretch), one[-1][1]]
    between = tuple((start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if start < stop)
    return common(one, between)


# -- Steps of subjects -----------------------------------------------------------------------------------------------


class ReadGroup(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Subjects that were read alike, as a ledger's file says it: a bit for each as they came, packed, in base 64."""

    steps: list[tuple[int, int]]
    subjects: Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(frozen=True)
class Reads:
    """What steps are read of which subjects, in groups; those in a file are unpacked when they are asked for."""

    parts: "tuple[tuple[Runs, Numbers | _Packed], ...]"

    @property
    def groups(self) -> tuple[tuple[Runs, Numbers], ...]:
        """The steps of each group, and the numbers of its subjects."""
        return tuple((runs, who.numbers if isinstance(who, _Packed) else who) for runs, who in self.parts)

    @classmethod
    def of(cls, runs: Iterable[Runs], numbers: Iterable[int]) -> "Reads":
        """Return what is read of subjects, given the runs of each and its number."""
        by_runs: dict[Runs, list[int]] = {}
        for read, number in zip(runs, numbers, strict=True):
            if read:
                by_runs.setdefault(read, []).append(number)
        return cls(tuple((read, np.array(sorted(who), dtype=np.int64)) for read, who in by_runs.items()))

    @classmethod
    def written(cls, groups: Sequence[ReadGroup], subjects: int | None, entry: str) -> "Reads":
        """Return what an entry of a ledger of so many subjects says, checked; of any number where it was known."""
        parts = tuple((tuple(group.steps), _Packed(group.subjects, subjects, entry)) for group in groups)
        apart = all(
            runs
            and all(start < stop for start, stop in runs)
            and all(stop < start for (_, stop), (start, _) in pairwise(runs))
            for runs, _ in parts
        )
        if not (parts and apart and len({who.text for _, who in parts}) == len(parts)):
            raise _none(entry, subjects)
        return cls(parts)

    def as_written(self) -> list[ReadGroup]:
        """Return it as an entry says it."""
        return [
            ReadGroup(steps=list(runs), subjects=who.text if isinstance(who, _Packed) else _packed(who))
            for runs, who in self.parts
        ]

    @cached_property
    def hull(self) -> tuple[int, int]:
        """The first step that is read of anybody, and one past the last; (0, 0) where nothing is read."""
        if not self.parts:
            return 0, 0
        return min(runs[0][0] for runs, _ in self.parts), max(runs[-1][1] for runs, _ in self.parts)

    @property
    def steps(self) -> int:
        """How many steps of subjects are read."""
        return sum(sum(stop - start for start, stop in runs) * len(numbers) for runs, numbers in self.groups)

    def before(self, step: int) -> int:
        """Return how many steps of subjects are read that come before a step."""
        return sum(
            sum(max(min(stop, step) - start, 0) for start, stop in runs) * len(numbers) for runs, numbers in self.groups
        )

    @property
    def subjects(self) -> int:
        """How many subjects are read."""
        return sum(len(numbers) for _, numbers in self.groups)

    def of_subjects(self, numbers: Numbers) -> "Reads":
        """Return what is read of some subjects."""
        parts = ((runs, np.intersect1d(who, numbers, assume_unique=True)) for runs, who in self.groups)
        return Reads(tuple((runs, who) for runs, who in parts if len(who)))

    def near(self, first: int, last: int) -> bool:
        """Whether anything is read between two steps."""
        return self.hull[0] < last and first < self.hull[1]

    def split(self, earlier: Sequence["Reads"]) -> tuple["Reads", "Reads"]:
        """Return what is read for the first time, and what some earlier releases read before."""
        first, last = self.hull
        near = [(runs, who) for reads in earlier if reads.near(first, last) for runs, who in reads.groups]
        near = [(runs, who) for runs, who in near if any(common(runs, mine) for mine, _ in self.parts)]
        if not near:
            return self, Reads(())
        new: list[tuple[Runs, Numbers]] = []
        again: list[tuple[Runs, Numbers]] = []
        for mine, numbers in self.groups:
            for which, who in signatures([others for _, others in near], numbers):
                before = joined(*(near[i][0] for i in which))
                for kept, part in ((new, without(mine, before)), (again, common(mine, before))):
                    if part:
                        kept.append((part, who))
        return Reads(tuple(new)), Reads(tuple(again))


def signatures(groups: Sequence[Numbers], numbers: Numbers) -> Iterator[tuple[tuple[int, ...], Numbers]]:
    """Yield the different sets of groups that some subjects are in, and who is in each; quick for many subjects."""
    if not len(numbers):
        return
    marks = np.zeros((-(-len(groups) // 8), len(numbers)), dtype=np.uint8)
    for i, group in enumerate(groups):
        marks[i // 8, np.searchsorted(numbers, np.intersect1d(numbers, group, assume_unique=True))] |= 1 << (i % 8)
    rows = np.ascontiguousarray(marks.T)
    keys = rows.view(np.dtype((np.void, rows.shape[1]))).ravel() if rows.shape[1] else np.zeros(len(numbers), np.uint8)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(first)))
    for at, start, stop in zip(first, [0, *ends[:-1]], ends, strict=True):
        inside = np.flatnonzero(np.unpackbits(rows[at], bitorder="little"))
        yield tuple(inside.tolist()), numbers[order[start:stop]]


def runs_of(first: int, stretches: Sequence[int] | None, steps: int) -> Runs:
    """Return the steps of a chain that are read, given its first, and how many are observed, not observed, …."""
    edges = list(accumulate(stretches or (steps,), initial=first))
    return tuple(pairwise(edges))[::2]


# -- In a file -------------------------------------------------------------------------------------------------------


def _packed(numbers: Numbers) -> str:
    marks = np.zeros(int(numbers[-1]) + 1, dtype=np.bool_)
    marks[numbers] = True
    return packed(marks)


_MOST = 1 << 30


@dataclass(frozen=True, slots=True)
class _Packed:
    """Subjects as an entry of a ledger of so many says them."""

    text: str
    subjects: int | None
    entry: str

    @property
    def numbers(self) -> Numbers:
        """Their numbers; refused where these are others than those that there are."""
        most = _MOST if self.subjects is None else self.subjects
        marks = unpacked_bits(self.text, most)
        numbers = np.flatnonzero(marks)
        if not (len(marks) <= 8 * -(-most // 8) and len(numbers) and numbers[-1] < most):
            raise _none(self.entry, self.subjects)
        return numbers.astype(np.int64)


def _none(entry: str, subjects: int | None) -> ParameterError:
    many = "" if subjects is None else f"{subjects} "
    return ParameterError(f"{entry} lacks the steps of the {many}subjects that it reads")
