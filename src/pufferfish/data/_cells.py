"""Groups of rows on an engine: the columns that say in which cell a row is, and what was counted by them.

Which row a message is about: its number in the table, and its subject.

The rows of a CSV file are counted below its header, without blank lines, so that a row of text in several lines is one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from pufferfish.data._chains import CELL, SUBJECT
from pufferfish.data._columns import Column, collected, is_absent, kind_of, state_column
from pufferfish.data.groupings import PARTS, Grouping, part_of
from pufferfish.data.groups import MAX_CELLS, Groups, in_order
from pufferfish.data.labels import count_rows
from pufferfish.data.source import ROW
from pufferfish.data.where import Where
from pufferfish.errors import DataError, public, shortened
from pufferfish.theta.states import state_label

__all__ = [
    "MAX_PAIRS",
    "CellCounts",
    "RowLocator",
    "expressions_of",
    "groups_of",
    "hour_columns",
    "missing_group",
    "refuse_many_cells",
    "timed_columns",
    "without_group",
]

# -- Which row a message is about ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowLocator:
    """What is known of where a row is.

    Parameters
    ----------
    subject : bool
        Whether rows have a subject.
    ordered : bool
        Whether rows have a number.
    header : bool
        Whether they stand below a header, as in a CSV file.
    """

    subject: bool
    ordered: bool
    header: bool = False

    def head(self, frame: nw.LazyFrame[Any], *more: nw.Expr) -> dict[str, Any]:
        """First row of a frame: its subject, row number, and more."""
        columns: list[nw.Expr] = list(more)
        if self.subject:
            columns.append(nw.col(SUBJECT))
        if self.ordered:
            frame = frame.sort(ROW)
            columns.append(nw.col(ROW))
        return collected(frame.select(columns).head(1)).rows(named=True)[0] if columns else {}

    @property
    def below(self) -> str:
        """What is said behind the number of a row: from where it is counted."""
        return " below the header" if self.header else ""

    def describe(self, row: dict[str, Any]) -> str:
        """Say in words where a row is, as far as it is known."""
        parts: list[str] = []
        if ROW in row:
            parts.append(f"row {int(row[ROW]) + 1}{self.below}")
        if SUBJECT in row and not is_absent(row[SUBJECT]):
            parts.append(f"subject {state_label(row[SUBJECT])!r}")
        return ", ".join(parts)

    def first(self, frame: nw.LazyFrame[Any]) -> str:
        """Say where the first row of a frame is, or nothing."""
        described = self.describe(self.head(frame))
        return f" (first: {described})" if described else ""

    def no_subject(self, frame: nw.LazyFrame[Any], name: str, n: int) -> DataError:
        """Error for a column of subjects that are missing in n rows."""
        return DataError(
            f"column {name!r} has no subject in {count_rows(n)}{self.first(frame.filter(nw.col(SUBJECT).is_null()))}: "
            "every record needs a subject; drop these rows or fill in their subject"
        )


CellCounts = Mapping[Any, Mapping[tuple[Any, ...], Mapping[str | None, int]]]
CellSteps = Mapping[tuple[Any, ...], Mapping[tuple[str, str], int]]

MAX_PAIRS = 1_000_000
"""States of a cell, over all cells: so many numbers are held, and released."""


def expressions_of(
    by: Sequence[Grouping], schema: Mapping[str, Any], local: Mapping[str, Column]
) -> dict[str, nw.Expr]:
    """Return the keys of groups, null where a record has none.

    Parameters
    ----------
    by : sequence of Grouping
        The groupings.
    schema : mapping
        Types of the table's columns.
    local : mapping
        Local times of the columns whose parts are needed.

    Raises
    ------
    DataError
        If a column holds what no group can be named by.
    """
    keys: dict[str, nw.Expr] = {}
    for i, grouping in enumerate(by):
        if grouping.part is not None:
            column = local[grouping.column]
            key = nw.when(~column.missing).then(PARTS[grouping.part](column.value))
        else:
            kind = kind_of(schema[grouping.column])
            if kind in ("instant", "other"):
                parts = (
                    f": group by a part of them, such as {part_of('date', grouping.column)}"
                    if kind == "instant"
                    else ""
                )
                raise DataError(
                    f"column {grouping.column!r} holds {schema[grouping.column]}, expected names of groups{parts}"
                )
            key = state_column(grouping.column, schema[grouping.column])
        keys[f"{CELL}{i}"] = key
    return keys


def refuse_many_cells(by: Sequence[Grouping], counted: nw.DataFrame[Any]) -> None:
    """Refuse more cells than a release has; what was counted by cell and state is given, or its first rows.

    Raises
    ------
    DataError
        If there are more.
    """
    pairs = len(counted)
    if pairs <= MAX_CELLS:
        return
    keys = [f"{CELL}{i}" for i in range(len(by))]
    if pairs > MAX_PAIRS or len(counted.select(keys).unique()) > MAX_CELLS:
        raise DataError(
            f"by {', '.join(grouping.text for grouping in by)} makes more than {MAX_CELLS:,} groups, or {MAX_PAIRS:,} "
            "counts in all groups: make fewer groups, such as hours instead of times"
        )


def groups_of(
    by: Sequence[Grouping],
    by_column: CellCounts,
    states: Mapping[Any, Sequence[str]],
    steps: CellSteps | None = None,
    *,
    rows: bool,
) -> Groups:
    """Make groups of what was counted.

    Parameters
    ----------
    by : sequence of Grouping
        The groupings.
    by_column : mapping
        For every column and cell, as an engine names it, the records in each state; those without a state under None.
    states : mapping
        The states of each column.
    steps : mapping, optional
        For every cell how often each state of the one column is followed by each.
    rows : bool
        Whether records without a state are among the public number of records of a cell: for tables of rows.
    """
    cells = {cell: 0 for of_column in by_column.values() for cell in of_column}
    for counts in by_column.values():
        for cell, by_state in counts.items():
            cells[cell] = max(cells[cell], sum(n for state, n in by_state.items() if rows or state is not None))
    named = {
        cell: tuple(grouping.label(x) for grouping, x in zip(by, cell, strict=True)) for cell, n in cells.items() if n
    }
    labels = in_order(set(named.values()))
    for i, grouping in enumerate(by):
        if grouping.nested:
            _check_nested(grouping.text, by[i + 1].text, [label[i : i + 2] for label in labels])
    place_of = {label: place for place, label in enumerate(labels)}
    places = {cell: place_of[label] for cell, label in named.items()}
    size = len(labels)
    records = [0] * size
    for cell, place in places.items():
        records[place] += cells[cell]
    tables = {name: np.zeros((size, len(column_states)), dtype=np.int64) for name, column_states in states.items()}
    for name, counts in by_column.items():
        index = {state: x for x, state in enumerate(states[name])}
        for cell, by_state in counts.items():
            for state, n in by_state.items():
                if state is not None:
                    tables[name][places[cell], index[state]] += n
    step_table = None
    if steps is not None:
        (column_states,) = states.values()
        index = {state: x for x, state in enumerate(column_states)}
        step_table = np.zeros((size, len(index), len(index)), dtype=np.int64)
        for cell, pairs in steps.items():
            for (before, state), n in pairs.items():
                step_table[places[cell], index[before], index[state]] += n
    return Groups(
        by=tuple(grouping.text for grouping in by),
        cells=labels,
        records=tuple(records),
        counts=tables,
        steps=step_table,
        nested=tuple(grouping.text for grouping in by if grouping.nested),
    )


def _check_nested(inner: str, outer: str, pairs: Iterable[Sequence[str]]) -> None:
    """Refuse a hierarchy in which a group is in two groups of the next level; which groups there are is public."""
    within: dict[str, str] = {}
    for group, wider in pairs:
        if within.setdefault(group, wider) != wider:
            raise public(
                DataError(
                    f"by says {inner}<{outer}, and {inner} {shortened(group)!r} is in two groups of {outer}, "
                    f"{shortened(within[group])!r} and {shortened(wider)!r}: write {outer}<{inner} if you mean that, "
                    f"or {inner},{outer}"
                )
            )


def without_group(cells: Iterable[tuple[Any, ...]]) -> int | None:
    """Return a grouping that is missing in some cell; None where all are whole."""
    return next((i for cell in cells for i, value in enumerate(cell) if is_absent(value)), None)


def missing_group(grouping: Grouping, rows: nw.LazyFrame[Any], places: RowLocator) -> DataError:
    """Error for rows that are in no group, which are given."""
    n = int(collected(rows.select(nw.len().alias("n"))).item())
    return DataError(
        f"column {grouping.column!r} has no value in {count_rows(n)}{places.first(rows)}, but every record needs a "
        f"group: fill it in, or leave out such rows by where='{_spelled(grouping.column)} != none'"
    )


def timed_columns(where: Where | None, by: Sequence[Grouping]) -> list[str]:
    """Return the columns of which a filter or groupings read parts of time."""
    return list(
        dict.fromkeys((*(where.timed if where else ()), *(grouping.column for grouping in by if grouping.part)))
    )


def hour_columns(where: Where | None, by: Sequence[Grouping]) -> list[str]:
    """Return the columns of which a filter or groupings read the hour."""
    return [*(where.hours if where else ()), *(grouping.column for grouping in by if grouping.part == "hour")]


def _spelled(column: str) -> str:
    return column if column.isidentifier() else f'col("{column}")'
