"""Groups of records: public cells, such as the hour of the day and the sex of the subject, with the counts of each.

Every record is in one cell, which follows from what is public about it. So when one record changes its state, the
counts of one cell change, as those of the whole table would: all cells together cost what one table costs.

A step is in the cell of the record that it leads to. So every step is in one cell, which is public too; a record that
changes its state moves the step into it in its own cell, and the step out of it in the cell of the next record.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import whole_array
from pufferfish._base.frozen import FrozenDict, ReadOnly, read_only
from pufferfish._base.view import counted
from pufferfish.errors import ParameterError, printable
from pufferfish.theta.states import phase_name

MAX_CELLS = 100_000

Whole = NDArray[np.int64]


def checked_counts(given: Any, name: str, of: str, shape: tuple[int, ...], expected: str = "") -> NDArray[np.int64]:
    """Return numbers of records as a read-only array of a shape, which ``expected`` says in words."""
    try:
        array = whole_array(given)
    except TypeError as error:
        raise ParameterError(f"{name} {error}; expected numbers of {of}") from None
    if array.shape != shape:
        raise ParameterError(f"{name} has shape {array.shape}, expected {expected or shape}")
    if (array < 0).any():
        raise ParameterError(f"{name} has a negative entry, expected numbers of {of}")
    return read_only(array)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Groups(ReadOnly):
    """Cells of public groupings, in a fixed order, with the counts of each; private, except for the numbers of records.

    >>> Groups(by=("sex",), cells=(("f",), ("m",)), records=(3, 2), counts={"activity": [[2, 1], [0, 2]]})
    Groups(2 cells by sex)
    """

    by: tuple[str, ...]  # the groupings: columns, and parts of times such as ``hour(time)``
    cells: tuple[tuple[str, ...], ...]  # for each cell its label under every grouping
    records: tuple[int, ...]  # observed records, or rows, of each cell (public)
    counts: Mapping[Any, NDArray[np.int64]]  # (cells, k) records, for the state column or every node that was read
    # (cells, k, k): how often each state is followed by each, by the cell of the record that follows; None for tables
    # of rows, and where cells are so many that their steps were not counted
    steps: NDArray[np.int64] | None = None
    nested: tuple[str, ...] = ()  # groupings of which each group is in one group of the next: ``zone<region``

    def __post_init__(self) -> None:
        counts = {name: read_only(whole_array(array)) for name, array in self.counts.items()}
        self._keep(by=check_by(self.by), cells=tuple(map(tuple, self.cells)), records=tuple(map(int, self.records)))
        self._keep(counts=FrozenDict(counts), nested=tuple(self.nested))
        n = len(self.cells)
        if not 1 <= n <= MAX_CELLS or len(set(self.cells)) != n or len(self.records) != n:
            raise ParameterError(f"there are {n} cells and {len(self.records)} numbers of records: one for each cell")
        if any(len(cell) != len(self.by) for cell in self.cells):
            raise ParameterError(f"a cell has a label for each of the {len(self.by)} groupings, {', '.join(self.by)}")
        if not nested_in_order(self.by, self.cells, self.nested):
            raise ParameterError(f"nested is {', '.join(self.nested)}, expected groupings inside of the next one")
        for name, array in counts.items():
            if array.ndim != 2 or len(array) != n or (array < 0).any():
                raise ParameterError(f"counts[{name!r}] has shape {array.shape}, expected numbers of {n} cells")
            if (array.sum(axis=1) > self.records).any():
                raise ParameterError(f"counts[{name!r}] has more records in a cell than there are")
        if self.steps is not None:
            steps = read_only(whole_array(self.steps))
            self._keep(steps=steps)
            k = steps.shape[-1] if steps.ndim else 0
            if steps.shape != (n, k, k) or (steps < 0).any() or (steps.sum(axis=(1, 2)) > self.records).any():
                raise ParameterError(
                    f"steps has shape {steps.shape}, expected ({n}, k, k) for k states, and no more steps in a cell "
                    "than records: each leads to one of them"
                )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong with the groups, which are public: times at midnight may be dates without a time of day."""
        return tuple(
            f"All records are in the group 0 of {name}: the times are between midnight and one o'clock. If they are "
            "dates without a time of day, group by date, week, weekday or month."
            for i, name in enumerate(self.by)
            if name.startswith("hour(") and {cell[i] for cell in self.cells} == {"0"}
        )

    def __repr__(self) -> str:
        return printable(f"Groups({counted(len(self.cells), 'cell')} by {', '.join(self.by)})")


def nested_in_order(by: Sequence[str], cells: Sequence[Sequence[str]], nested: Sequence[str]) -> bool:
    """Whether some groupings, in their order, have each of their groups in one group of the next grouping.

    >>> nested_in_order(["zone", "region"], [["a", "n"], ["b", "n"]], ["zone"])
    True
    >>> nested_in_order(["zone", "region"], [["a", "n"], ["a", "s"]], ["zone"])
    False
    """
    places = [i for i, name in enumerate(by[:-1]) if name in nested]
    in_one = all(len({cell[i] for cell in cells}) == len({(cell[i], cell[i + 1]) for cell in cells}) for i in places)
    return [by[i] for i in places] == list(nested) and in_one


def check_by(by: Any, private: Collection[str] = (), called: str = "") -> tuple[str, ...]:
    """Return groupings as they stand in records, refused as :func:`~pufferfish.data.groupings.parse_by` does it."""
    from pufferfish.data.groupings import parse_by  # here: it loads what reads tables

    return tuple(grouping.text for grouping in parse_by(tuple(by), time=None, private=private, called=called))


def sentence_of(by: tuple[str, ...], records: str) -> str:
    """Say what a release by groups takes as public."""
    known = " Weekdays count from Monday, 0." if any(grouping.startswith("weekday(") for grouping in by) else ""
    return (
        f"Records are grouped by {', '.join(by)}. In which group each {records} is, and so which groups there are and "
        f"how many {records}s each has, is public, and assumed independent of the states.{known}"
    )


def kept_rows(where: str) -> str:
    """Say what a row filter takes as public."""
    return f"Only rows where {where} are used; which rows those are is public, and assumed independent of the states."


def in_order(cells: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return cells in their one order, grouping by grouping: by size where all labels are numbers, else as text.

    >>> in_order([("10", "m"), ("9", "m"), ("9", "f")])
    (('9', 'f'), ('9', 'm'), ('10', 'm'))
    """
    all_cells = list(cells)
    sizes = [{label: _size(label) for label in labels} for labels in zip(*all_cells, strict=True)]
    by_size = [None not in of_labels.values() for of_labels in sizes]

    def key(cell: tuple[str, ...]) -> list[tuple[float, str]]:
        return [((sizes[i][label] or 0.0) if by_size[i] else 0.0, label) for i, label in enumerate(cell)]

    return tuple(sorted(all_cells, key=key))


def _size(label: str) -> float | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return number if isfinite(number) else None


def cells_for_people(by: Sequence[str], cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the labels of groups with the names of weekdays, which records count from Monday, 0.

    >>> cells_for_people(["weekday(time)", "hour(time)"], [["0", "5"], ["6", "23"]])
    [['Mon', '5'], ['Sun', '23']]
    """
    days = {str(day): phase_name("weekday", day)[:3] for day in range(7)}
    names = [days if grouping.startswith("weekday(") else {} for grouping in by]
    return [[day_names.get(label, label) for day_names, label in zip(names, cell, strict=True)] for cell in cells]


# -- By subject and day, of public tables: days of 24 hours from midnight UTC, or tenths of the longest series ---------


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

    def stays(self, which: NDArray[np.bool_]) -> tuple[Whole, Whole]:
        """Return how many of some runs whose beginning was seen have 0, 1, … records: that ended, and were cut off."""
        begun, ends = which & (self.begun > 0), self.following >= 0
        parts = [(self.lasted[part], self.number[part]) for part in (begun & ends, begun & ~ends)]
        ended, cut = (np.bincount(n, runs, int(n.max(initial=0)) + 1).astype(np.int64) for n, runs in parts)
        return ended, cut

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
