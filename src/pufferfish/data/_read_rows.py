"""How a table of independent rows is read, one column per node of a Bayesian network, as counts.

In order: the options are checked against the network; the source is opened, and the columns of nodes are chosen from
those it has; cells, subjects and the filter become expressions; subjects are checked; then the engine counts the
states of all columns. Columns of one type are stacked and counted in one pass: a scan of a wide file per column
would take many times as long.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from pufferfish._base import view
from pufferfish._base.words import names_of
from pufferfish.data._cells import (
    MAX_PAIRS,
    RowLocator,
    groups_of,
    missing_group,
    refuse_many_cells,
    selected,
    without_group,
)
from pufferfish.data._chains import CELL, KEEP, SUBJECT, counted, summed, tabulated
from pufferfish.data._columns import count_where, is_absent, state_column, subject_column
from pufferfish.data._options import RowOptions, open_table
from pufferfish.data.fingerprint import fingerprint_of_rows
from pufferfish.data.groups import Groups
from pufferfish.data.labels import count_rows, label_states, placed_states, sorted_labels
from pufferfish.data.rows import Rows, RowsBase
from pufferfish.data.source import ROW, Source
from pufferfish.errors import DataError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.states import MOST_STATES, state_label

_CELL, _STATE, _COUNT = "__pf_cell", "__pf_state", "__pf_count"

Held = list[tuple[tuple[Any, ...], Any, int]]
"""Of one column how many rows of each group hold what; None stands for a missing state, and () for no groups."""


def count_cells(source: Any, **reading: Any) -> Rows:
    """Do the work of :func:`~pufferfish.read_rows`."""
    options = RowOptions(**reading)
    with open_table(source, options) as table:
        return RowCells(table, options).rows()[0]


def states_of_columns(
    source: Any, names: Sequence[str] | None, *, subject: Any, where: Any
) -> dict[str, tuple[str, ...]]:
    """Return the states that columns hold, sorted; of all columns but those of subject and where, if none is named."""
    unknown = BayesianNetwork({name: CPT(["?"], [1.0]) for name in names or ("all columns",)})
    options = RowOptions(network=unknown, subject=subject, where=where)
    public = [name for name in (options.subject, *options.public) if name is not None]

    def needed(present: Sequence[str]) -> Sequence[str]:
        if options.where is not None:
            options.where.refuse_unquoted(present)
        chosen = [name for name in present if name not in public] if names is None else names
        if not chosen:
            raise DataError("the table has only the columns of subject and where: there is nothing to fit")
        return list(dict.fromkeys([*chosen, *public]))

    with open_table(source, options, needed) as table:
        names = [name for name in table.schema if name not in {*public, ROW}] if names is None else names
        cells = RowCells(table, options, {name: name for name in names})
        states: dict[str, tuple[str, ...]] = {}
        for name, held in cells.count(MOST_STATES, remedy="bin it, or leave it out").items():
            raw = {cell for _, cell, _ in held if cell is not None}
            if not raw:
                raise DataError(f"{cells.named(name)} has no observed state: leave it out")
            labels = label_states(raw, (), untyped=table.untyped, where=cells.named(name), owner="the node")
            states[name] = sorted_labels(set(labels.values()), cells.named(name))
        return states


class RowCells:
    """The cells of the rows that a filter keeps, under names of our own, with their groups, subject and row number."""

    def __init__(self, table: Source, options: RowOptions, columns: dict[str, str] | None = None) -> None:
        schema = table.schema
        self.columns = options.cells(list(schema)) if columns is None else columns  # of each node that is read
        self.table, self.options = table, options
        self.keys = {label: f"{_CELL}{i}" for i, label in enumerate(self.columns)}
        self.groups = [f"{CELL}{i}" for i in range(len(options.by))]
        self.places = RowLocator(subject=options.subject is not None, ordered=table.ordered, header=table.untyped)
        chosen = {self.keys[label]: state_column(name, schema[name]) for label, name in self.columns.items()}
        if options.subject is not None:
            chosen[SUBJECT] = subject_column(options.subject, schema[options.subject])
        if table.ordered:
            chosen[ROW] = nw.col(ROW).cast(nw.Int64)
        frame = selected(table, chosen, options.where, options.by)
        self.frame = frame if options.where is None else frame.filter(nw.col(KEEP))

    def rows(self) -> tuple[Rows, dict[str, dict[Any, int]]]:
        """Return what is counted, and of each node the places of the states that its cells mean."""
        options, table = self.options, self.table
        self._check_subjects()
        nodes = {label: options.nodes[label] for label in self.keys}
        states = {label: options.network.node_states[node] for label, node in nodes.items()}
        held = self.count(MOST_STATES + max(map(len, states.values())))
        grouping = without_group(group for of_column in held.values() for group, _, _ in of_column)
        if grouping is not None:
            rows = self.frame.filter(nw.col(self.groups[grouping]).is_null())
            raise missing_group(options.by[grouping], rows, self.places)
        records = self._records(held)
        if not records:
            raise table.nothing(None if options.where is None else options.where.text)
        totals = {label: summed((state, n) for _, state, n in of_column) for label, of_column in held.items()}
        absent = {label: of_column.pop(None, 0) for label, of_column in totals.items()}
        if options.missing == "refuse" and any(absent.values()):
            raise self._missing(absent)
        places: dict[str, dict[Any, int]] = {}
        for label, known in states.items():
            named = self.named(label)
            if not totals[label]:
                raise DataError(
                    f"{named} has no observed state: all {count_rows(records)} are missing; leave the node out of "
                    "columns="
                )
            labels = label_states(totals[label], known, untyped=table.untyped, where=named, owner="the node")
            _, places[label] = placed_states(labels, totals[label], known, named, "the node")
        counts = {
            label: tabulated((len(known),), ((places[label][x], n) for x, n in totals[label].items()))
            for label, known in states.items()
        }
        groups = None
        if options.by:
            in_groups = {
                node: [(group, places[label].get(x), n) for group, x, n in held[label]] for label, node in nodes.items()
            }
            groups = groups_of(options.by, in_groups, {node: len(states[label]) for label, node in nodes.items()})
        rows = Rows(
            nodes=tuple(nodes.values()),
            states={node: states[label] for label, node in nodes.items()},
            counts={node: counts[label] for label, node in nodes.items()},
            records=records,
            base=RowsBase(source=table.name, columns=self.columns, **options.facts),
            groups=groups,
            joint={
                tuple(nodes[label] for label in labels): self._together(
                    {label: places[label] for label in labels}, [len(states[label]) for label in labels], groups
                )
                for labels in options.joint
            },
            fingerprint=fingerprint_of_rows(
                {label: dict(zip(known, counts[label].tolist(), strict=True)) for label, known in states.items()}
            ),
        )
        return rows, places

    def _together(
        self, states: Mapping[str, Mapping[Any, int]], sizes: Sequence[int], groups: Groups | None
    ) -> NDArray[np.int64]:
        """Count the rows in each combination of states, of each group if any; a row with a missing cell is in none."""
        cells = {cell: place for place, cell in enumerate(groups.cells if groups is not None else ())}
        if max(len(cells), 1) * prod(sizes) > MAX_PAIRS:
            raise DataError(
                f"{len(cells):,} groups with {prod(sizes):,} combinations of states each are more than {MAX_PAIRS:,}: "
                "make fewer groups, or count fewer columns together"
            )
        keys = [*(self.keys[label] for label in states), *self.groups]
        part = counted(self.frame, keys).head(MAX_PAIRS + 1).collect()
        if len(part) > MAX_PAIRS:
            raise DataError(
                f"{self.table.name}: more than {MAX_PAIRS:,} combinations of spellings: give each state one spelling"
            )
        entries: list[list[Any]] = []
        for *values, n in part.iter_rows():
            node_values, group = values[: len(sizes)], values[len(sizes) :]
            if any(is_absent(value) for value in node_values):
                continue
            index = [place.get(value) for place, value in zip(states.values(), node_values, strict=True)]
            if groups is not None:
                labels = (grouping.label(x) for grouping, x in zip(self.options.by, group, strict=True))
                index = [cells.get(tuple(labels)), *index]
            if None in index:
                raise DataError(f"{self.table.name} changed while it was read: a state was not there before")
            entries.append([*index, int(n)])
        return tabulated((*([len(cells)] if groups is not None else []), *sizes), entries)

    def _check_subjects(self) -> None:
        """Refuse rows without a subject, and subjects with several rows."""
        name = self.options.subject
        if name is None:
            return
        none = nw.col(SUBJECT).is_null()
        several = counted(self.frame, [SUBJECT]).filter((nw.col(_COUNT) > 1) | none)
        numbers = several.select(
            nw.when(none).then(nw.col(_COUNT)).otherwise(nw.lit(0)).sum().alias("no_subject"),
            count_where(~none).alias("several"),
        )
        missing, n = (int(count or 0) for count in numbers.collect().row(0))
        if missing:
            raise self.places.no_subject(self.frame, name, missing)
        if n:
            most = several.sort(_COUNT, SUBJECT, descending=[True, False]).select(SUBJECT, _COUNT).head(1)
            label, rows = most.collect().row(0)
            raise DataError(
                f"column {name!r} has several rows for {view.counted(n, 'subject')} (e.g. {state_label(label)!r}: "
                f"{count_rows(rows)}): rows of one subject are not independent of each other; keep one row of each, "
                "e.g. with where="
            )

    def count(self, most: int, remedy: str = "give the node's own column in columns=") -> dict[str, Held]:
        """Count the rows in every state of every node, columns of a type together; more than ``most`` are refused."""
        types = self.frame.collect_schema()
        by_type: dict[Any, dict[str, str]] = {}
        for label, key in self.keys.items():
            by_type.setdefault(types[key], {})[key] = label
        held: dict[str, Held] = {label: [] for label in self.keys}
        groups = self.groups
        for label_of in by_type.values():  # under each other, with their names
            columns = self.frame.select(*label_of, *groups)
            stacked = columns.unpivot(list(label_of), index=groups or None, variable_name=_CELL, value_name=_STATE)
            enough = (most + 2) * len(label_of)  # of more, too many are of one column; fewer are all there are
            part = counted(stacked, [_CELL, *groups, _STATE]).head((MAX_PAIRS if groups else enough) + 1).collect()
            if groups:
                refuse_many_cells(self.options.by, part)
            for key, *group, state, n in part.iter_rows():
                held[label_of[key]].append((tuple(group), None if is_absent(state) else state, int(n)))
        for label, of_column in held.items():
            if len({state for _, state, _ in of_column}) > most + 1:
                raise DataError(
                    f"{self.named(label)} has more than {most:,} different values, expected the states of the node: "
                    f"{remedy}"
                )
        return held

    def _records(self, held: Mapping[str, Held]) -> int:
        """Return the number of rows, which is the same in every column, and of every group."""
        by_group = [summed((group, n) for group, _, n in of_column) for of_column in held.values()]
        if any(groups != by_group[0] for groups in by_group):
            sizes = [groups.total() for groups in by_group]
            raise DataError(
                f"{self.table.name} changed while it was read: columns have {min(sizes)} to {max(sizes)} rows"
            )
        return by_group[0].total()

    def _missing(self, absent: Mapping[str, int]) -> DataError:
        """Error that says how many cells of which columns are missing."""
        first, *others = [label for label, n in absent.items() if n]
        place = self.places.first(self.frame.filter(nw.col(self.keys[first]).is_null()))
        more = [f"{self.named(label)} in {count_rows(absent[label])}" for label in others]
        return DataError(
            f"{self.named(first)} has no state in {count_rows(absent[first])}{place}"
            f"{f', {names_of(more, 8)}' if more else ''}: missing='refuse'; fill them in, or use 'unobserved' if it "
            "is public which cells are missing"
        )

    def named(self, label: str) -> str:
        """Name the column of a node in messages."""
        column = self.columns[label]
        return f"column {column!r}" + ("" if column == label else f" (node {label!r})")
