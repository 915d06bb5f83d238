"""Groups of rows on an engine, the rows that a filter keeps, and which row a message is about.

The rows of a CSV file are counted below its header, without blank lines, so that a row of text in several lines is one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from pufferfish.data._chains import CELL, KEEP, SUBJECT, Frame, summed, tabulated
from pufferfish.data._columns import Column, collected, is_absent, kind_of, row_count, state_column
from pufferfish.data._times import local_columns
from pufferfish.data.groupings import PARTS, Grouping, part_of
from pufferfish.data.groups import MAX_CELLS, Groups, in_order
from pufferfish.data.labels import count_rows
from pufferfish.data.source import ROW, Source
from pufferfish.data.where import Where
from pufferfish.errors import DataError, public, shortened
from pufferfish.theta.states import state_label

# -- Which row a message is about ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowLocator:
    """What is known of where a row is."""

    subject: bool  # whether rows have a subject
    ordered: bool  # whether rows have a number
    header: bool = False  # whether they stand below a header, as in a CSV file

    def head(self, frame: nw.LazyFrame[Any], *more: nw.Expr) -> dict[str, Any]:
        """First row of a frame: its subject, row number, and more."""
        columns = [*more, *([nw.col(SUBJECT)] if self.subject else []), *([nw.col(ROW)] if self.ordered else [])]
        rows = (frame.sort(ROW) if self.ordered else frame).select(columns).head(1)
        return collected(rows).rows(named=True)[0] if columns else {}

    @property
    def below(self) -> str:
        """What is said behind the number of a row: from where it is counted."""
        return " below the header" if self.header else ""

    def describe(self, row: dict[str, Any], which: str = "") -> str:
        """Say in brackets where a row is, and ``which`` it is; nothing where that is not known."""
        parts: list[str] = []
        if ROW in row:
            parts.append(f"row {int(row[ROW]) + 1}{self.below}")
        if SUBJECT in row and not is_absent(row[SUBJECT]):
            parts.append(f"subject {state_label(row[SUBJECT])!r}")
        return f" ({which}{', '.join(parts)})" if parts else ""

    def first(self, frame: nw.LazyFrame[Any]) -> str:
        """Say where the first row of a frame is, or nothing."""
        return self.describe(self.head(frame), "first: ")

    def no_subject(self, frame: nw.LazyFrame[Any], name: str, n: int) -> DataError:
        """Error for a column of subjects that are missing in n rows."""
        return DataError(
            f"column {name!r} has no subject in {count_rows(n)}{self.first(frame.filter(nw.col(SUBJECT).is_null()))}: "
            "every record needs a subject; drop these rows or fill in their subject"
        )


MAX_PAIRS = 1_000_000  # states of a cell, over all cells: so many numbers are held, and released


def selected(table: Source, chosen: dict[str, nw.Expr], where: Where | None, by: Sequence[Grouping]) -> Frame:
    """Select columns under names of our own, with the keys of groups and, where there is a filter, what it keeps."""
    frame, columns = table.frame, dict[str, Column]()
    if where is not None:
        frame, columns = table.filter_columns(where.columns)
    parts = [(grouping.part, grouping.column) for grouping in by if grouping.part]
    timed = dict.fromkeys((*(where.timed if where else ()), *(column for _, column in parts)))
    hours = [*(where.hours if where else ()), *(column for part, column in parts if part == "hour")]
    frame, local = local_columns(table, frame, list(timed), hours)
    if where is not None:
        chosen = chosen | {KEEP: where.keep(columns, local)}
    keys = {f"{CELL}{i}": _key_of(grouping, table.schema, local) for i, grouping in enumerate(by)}
    return frame.select(expression.alias(name) for name, expression in (chosen | keys).items())


def _key_of(grouping: Grouping, schema: Mapping[str, Any], local: Mapping[str, Column]) -> nw.Expr:
    """Return in which group of a grouping a row is, null where it is in none."""
    if grouping.part is not None:
        column = local[grouping.column]
        return nw.when(~column.missing).then(PARTS[grouping.part](column.value))
    dtype = schema[grouping.column]
    kind = kind_of(dtype)
    if kind in ("instant", "other"):
        parts = f": group by a part of them, such as {part_of('date', grouping.column)}" if kind == "instant" else ""
        raise DataError(f"column {grouping.column!r} holds {dtype}, expected names of groups{parts}")
    return state_column(grouping.column, dtype)


def refuse_many_cells(by: Sequence[Grouping], counted: nw.DataFrame[Any]) -> None:
    """Refuse more cells than a release has; what was counted by cell and state is given, or its first rows."""
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
    counted: Mapping[Any, Sequence[tuple[tuple[Any, ...], int | None, int]]],
    sizes: Mapping[Any, int],
    steps: Sequence[tuple[tuple[Any, ...], int, int, int]] | None = None,
) -> Groups:
    """Make groups of how many records each cell has in each state (None for none), and of the steps between states."""
    first = next(iter(counted.values()))  # in every other column cells have as many records
    totals = summed((cell, n) for cell, _, n in first)
    cells = {cell: tuple(grouping.label(x) for grouping, x in zip(by, cell, strict=True)) for cell in totals}
    labels = in_order(set(cells.values()))
    for i, grouping in enumerate(by):
        if grouping.nested:
            _check_nested(grouping.text, by[i + 1].text, [label[i : i + 2] for label in labels])
    place_of = {label: place for place, label in enumerate(labels)}
    places = {cell: place_of[label] for cell, label in cells.items()}
    size, k = len(labels), next(iter(sizes.values()))
    in_steps = None if steps is None else ((places[cell], *step) for cell, *step in steps)
    return Groups(
        by=tuple(grouping.text for grouping in by),
        cells=labels,
        records=tuple(tabulated((size,), ((places[cell], n) for cell, n in totals.items())).tolist()),
        counts={
            name: tabulated((size, sizes[name]), ((places[cell], x, n) for cell, x, n in of_column if x is not None))
            for name, of_column in counted.items()
        },
        steps=None if in_steps is None else tabulated((size, k, k), in_steps),
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


def without_group(cells: Iterable[Sequence[Any]]) -> int | None:
    """Return a grouping that is missing in some cell; None where all are whole."""
    return next((i for cell in cells for i, value in enumerate(cell) if is_absent(value)), None)


def missing_group(grouping: Grouping, rows: nw.LazyFrame[Any], places: RowLocator) -> DataError:
    """Error for rows that are in no group, which are given."""
    n = count_rows(row_count(rows))
    return DataError(
        f"column {grouping.column!r} has no value in {n}{places.first(rows)}, but every record needs a "
        f"group: fill it in, or leave out such rows by where='{_spelled(grouping.column)} != none'"
    )


def _spelled(column: str) -> str:
    return column if column.isidentifier() else f'col("{column}")'
