"""How a table of independent rows is read, one column per node of a Bayesian network, as counts.

In order: the options are checked against the network; the source is opened, and the columns of nodes are chosen from
those it has; cells, subjects and the filter become expressions; subjects are checked; then the engine counts the
states of all columns. Columns of one type are stacked and counted in one pass: a scan of a wide file per column
would take many times as long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.view import counted
from pufferfish.data._cells import (
    MAX_PAIRS,
    RowLocator,
    expressions_of,
    groups_of,
    hour_columns,
    missing_group,
    refuse_many_cells,
    timed_columns,
    without_group,
)
from pufferfish.data._chains import CELL, KEEP, SUBJECT
from pufferfish.data._columns import Column, count_where, is_absent, state_column, subject_column
from pufferfish.data._options import RowOptions, check_row_options, listed
from pufferfish.data._times import local_columns
from pufferfish.data.bins import MAX_STATES
from pufferfish.data.fingerprint import fingerprint_of_rows
from pufferfish.data.groupings import Grouping
from pufferfish.data.groups import Groups
from pufferfish.data.labels import count_rows, label_states, refuse_strangers, sorted_labels
from pufferfish.data.rows import Rows, RowsBase
from pufferfish.data.source import ROW, Source, engine_errors, open_source
from pufferfish.errors import DataError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.states import state_label

__all__ = ["count_cells", "count_distinct", "count_together", "states_of_columns"]

# -- Columns of a table of independent rows that are counted together ------------------------------------------------

_ALIKE = "__pf_count"
Frame = nw.LazyFrame[Any]


def count_together(
    table: str,
    frame: nw.LazyFrame[Any],
    states: Sequence[Mapping[Any, int]],
    sizes: Sequence[int],
    by: Sequence[Grouping],
    groups: Groups | None,
) -> NDArray[np.int64]:
    """Count the rows in each combination of states, of each group if there are any.

    Parameters
    ----------
    table : str
        What errors call the table.
    frame : narwhals LazyFrame
        The columns of the nodes, then those of the groups.
    states : sequence of mapping
        For each node the place of the state that a cell means.
    sizes : sequence of int
        The number of states of each node.
    by, groups : groupings and Groups
        The groups of rows.

    Returns
    -------
    (groups, …) ndarray of int64
        An axis for each node; the axis of groups is there if there are any. A row in which a cell is missing is in no
        combination.

    Raises
    ------
    DataError
        If there are too many combinations of groups, or the table changed since its columns were counted.
    """
    cells = {cell: place for place, cell in enumerate(groups.cells if groups is not None else ())}
    if max(len(cells), 1) * prod(sizes) > MAX_PAIRS:
        raise DataError(
            f"{len(cells):,} groups with {prod(sizes):,} combinations of states each are more than {MAX_PAIRS:,}: "
            "make fewer groups, or count fewer columns together"
        )
    keys = frame.collect_schema().names()
    counted = frame.group_by(keys).agg(nw.len().alias(_ALIKE)).select(*keys, _ALIKE)
    part = counted.head(MAX_PAIRS + 1).collect()
    if len(part) > MAX_PAIRS:
        raise DataError(f"{table}: more than {MAX_PAIRS:,} combinations of spellings: give each state one spelling")
    counts = np.zeros((*([len(cells)] if groups is not None else []), *sizes), dtype=np.int64)
    for *values, n in part.iter_rows():
        node_values, group = values[: len(sizes)], values[len(sizes) :]
        if any(is_absent(value) for value in node_values):
            continue
        index = [place.get(value) for place, value in zip(states, node_values, strict=True)]
        if groups is not None:
            index = [cells.get(tuple(grouping.label(x) for grouping, x in zip(by, group, strict=True))), *index]
        if None in index:
            raise DataError(f"{table} changed while it was read: a state was not there before")
        counts[tuple(index)] += int(n)
    return counts


_CELL, _STATE, _COUNT = "__pf_cell", "__pf_state", "__pf_count"


def count_cells(
    source: Any, network: Any, columns: Any, subject: Any, where: Any, missing: Any, by: Any, joint: Any = None
) -> Rows:
    """Do the work of :func:`~pufferfish.read_rows`."""
    options = check_row_options(network, columns, subject, where, missing, by, joint)
    table = open_source(source, options.needed, options.public, parts=options.parts)
    with engine_errors(table.name, table.path):
        return _read(table, options)[0]


def count_distinct(
    source: Any, network: Any, *, columns: Any = None, subject: Any = None, where: Any = None, missing: Any = "refuse"
) -> tuple[Rows, NDArray[np.int16], NDArray[np.int64]]:
    """Read a table as :func:`~pufferfish.read_rows` does, and count how often each row of states occurs, too.

    Returns
    -------
    (Rows, (m, n) ndarray of int16, (m,) ndarray of int64)
        What was read; of every distinct row the places of its states, −1 for missing ones, a column for each node; and
        how many such rows there are.

    Raises
    ------
    DataError
        As :func:`~pufferfish.read_rows` does, or if there are too many distinct rows to be held.
    """
    options = check_row_options(network, columns, subject, where, missing)
    table = open_source(source, options.needed, options.public, parts=options.parts)
    with engine_errors(table.name, table.path):
        rows, frame, labels = _read(table, options)
        keys = [f"{_CELL}{i}" for i in range(len(rows.nodes))]
        most = _MOST_HELD // len(keys)
        part = frame.group_by(keys).agg(nw.len().alias(_ALIKE)).select(*keys, _ALIKE).head(most + 1).collect()
        if len(part) > most:
            raise DataError(
                f"{table.name} has more than {most:,} different rows in {len(keys)} columns, too many for memory: "
                "read fewer columns, or a part of the rows"
            )
        held = np.full((len(part), len(keys)), -1, dtype=np.int16)
        for j, (key, node) in enumerate(zip(keys, rows.nodes, strict=True)):
            places = {cell: rows.states[node].index(state) for cell, state in labels[state_label(node)].items()}
            held[:, j] = [-1 if is_absent(cell) else places[cell] for cell in part[key].to_list()]
        return rows, held, np.array(part[_ALIKE].to_list(), dtype=np.int64)


_MOST_HELD = 100_000_000
"""Cells of distinct rows that are held at once."""


def states_of_columns(
    source: Any, names: Sequence[str] | None, *, subject: Any, where: Any
) -> dict[str, tuple[str, ...]]:
    """Return the states that columns hold, sorted; of all columns but those that say who and which, if none is named.

    Raises
    ------
    DataError
        If the table cannot be read, or a column has too many states, none, or one in two spellings.
    ParameterError
        If subject or where are none.
    """
    options = check_row_options(_placeholder(names or ("all columns",)), None, subject, where, "unobserved")
    public = {options.subject, *options.public}

    def needed(present: Sequence[str]) -> Sequence[str]:
        if options.where is not None:
            options.where.refuse_unquoted(present)
        chosen = [name for name in present if name not in public] if names is None else names
        if not chosen:
            raise DataError("the table has only the columns of subject and where: there is nothing to fit")
        return list(
            dict.fromkeys([*chosen, *(name for name in (options.subject, *options.public) if name is not None)])
        )

    table = open_source(source, needed, options.public, parts=options.parts)
    with engine_errors(table.name, table.path):
        names = [name for name in table.schema if name not in {*public, ROW}] if names is None else names
        cells = {name: name for name in names}
        options = replace(options, network=_placeholder(names), nodes=cells)
        frame = _kept(table, options, cells)
        states: dict[str, tuple[str, ...]] = {}
        for name, grouped in _count(frame, cells, MAX_STATES, (), remedy="bin it, or leave it out").items():
            raw = [cell for cell in _together(grouped) if cell is not None]
            if not raw:
                raise DataError(f"{_named(name, cells)} has no observed state: leave it out")
            labels = label_states(raw, (), untyped=table.untyped, where=_named(name, cells), owner="the node")
            states[name] = sorted_labels(set(labels.values()), _named(name, cells))
        return states


def _placeholder(names: Sequence[str]) -> BayesianNetwork:
    """Return a network of columns whose states are not known yet."""
    return BayesianNetwork({name: CPT(["?"], [1.0]) for name in names})


def _read(table: Source, options: RowOptions) -> tuple[Rows, Frame, dict[str, dict[Any, str]]]:
    """Return what is counted, the cells it is counted from, and the states that these mean."""
    cells = options.cells(list(table.schema))
    frame = _kept(table, options, cells)
    places = RowLocator(subject=options.subject is not None, ordered=table.ordered, header=table.untyped)
    if options.subject is not None:
        _check_subjects(frame, options.subject, places)
    states = {label: options.network.node_states[options.nodes[label]] for label in cells}
    by_group = _count(frame, cells, MAX_STATES + max(map(len, states.values())), options.by)
    grouping = without_group({cell for grouped in by_group.values() for cell in grouped})
    if grouping is not None:
        rows = frame.filter(nw.col(f"{CELL}{grouping}").is_null())
        raise missing_group(options.by[grouping], rows, places)
    groups = {label: _together(grouped) for label, grouped in by_group.items()}
    sizes = {sum(held.values()) for held in groups.values()}
    totals = [{group: sum(by_state.values()) for group, by_state in grouped.items()} for grouped in by_group.values()]
    if any(total != totals[0] for total in totals[1:]):
        raise DataError(f"{table.name} changed while it was read: columns have {min(sizes)} to {max(sizes)} rows")
    if sizes == {0}:
        raise table.nothing(None if options.where is None else options.where.text)
    absent = {label: held.get(None, 0) for label, held in groups.items()}
    if options.missing == "refuse" and any(absent.values()):
        raise _missing(frame, cells, absent, places)
    names = {
        label: _checked_labels(groups[label], states[label], _named(label, cells), untyped=table.untyped)
        for label in cells
    }
    counts = {label: _in_order(groups[label], states[label], names[label]) for label in cells}
    nodes = {label: options.nodes[label] for label in cells}
    by_groups = (
        None
        if not options.by
        else groups_of(
            options.by,
            {
                nodes[label]: {g: _renamed(by_state, names[label]) for g, by_state in by_group[label].items()}
                for label in cells
            },
            {node: states[label] for label, node in nodes.items()},
            rows=True,
        )
    )
    joint = {
        tuple(nodes[label] for label in labels): count_together(
            table.name,
            frame.select(*(f"{_CELL}{list(cells).index(label)}" for label in labels), *_groups(options.by)),
            [{state: states[label].index(name) for state, name in names[label].items()} for label in labels],
            [len(states[label]) for label in labels],
            options.by,
            by_groups,
        )
        for labels in options.joint
    }
    rows = Rows(
        nodes=tuple(nodes.values()),
        states={node: states[label] for label, node in nodes.items()},
        counts={node: np.array(counts[label], dtype=np.int64) for label, node in nodes.items()},
        records=sizes.pop(),
        base=RowsBase(
            source=table.name,
            columns=cells,
            subject=options.subject,
            where=None if options.where is None else options.where.text,
            missing=options.missing,
            by=tuple(grouping.text for grouping in options.by) or None,
        ),
        groups=by_groups,
        joint=joint,
        fingerprint=fingerprint_of_rows(
            {label: dict(zip(states[label], counts[label], strict=True)) for label in cells}
        ),
    )
    return rows, frame, names


def _kept(table: Source, options: RowOptions, cells: Mapping[str, str]) -> Frame:
    """Cells, subject and row number of the rows that the filter keeps, under names of our own."""
    schema = table.schema
    chosen = {f"{_CELL}{i}": state_column(name, schema[name]) for i, name in enumerate(cells.values())}
    if options.subject is not None:
        chosen[SUBJECT] = subject_column(options.subject, schema[options.subject])
    if table.ordered:
        chosen[ROW] = nw.col(ROW).cast(nw.Int64)
    frame, where, columns = table.frame, options.where, dict[str, Column]()
    if where is not None:
        frame, columns = table.filter_columns(where.columns)
    hours = hour_columns(where, options.by)
    frame, local = local_columns(table, frame, timed_columns(where, options.by), hours)
    chosen |= expressions_of(options.by, schema, local)
    if where is not None:
        chosen[KEEP] = where.keep(columns, local)
    frame = frame.select(expression.alias(name) for name, expression in chosen.items())
    return frame if where is None else frame.filter(nw.col(KEEP))


def _check_subjects(frame: Frame, name: str, places: RowLocator) -> None:
    none = nw.col(SUBJECT).is_null()
    rows = frame.group_by(SUBJECT).agg(nw.len().alias(_COUNT))
    several = rows.filter((nw.col(_COUNT) > 1) | none)
    numbers = several.select(
        nw.when(none).then(nw.col(_COUNT).cast(nw.Int64)).otherwise(nw.lit(0)).sum().alias("no_subject"),
        count_where(~none).alias("several"),
    )
    missing, n = (int(count or 0) for count in numbers.collect().row(0))
    if missing:
        raise places.no_subject(frame, name, missing)
    if n:
        most = several.sort(_COUNT, SUBJECT, descending=[True, False]).select(SUBJECT, _COUNT).head(1)
        label, rows = most.collect().row(0)
        raise DataError(
            f"column {name!r} has several rows for {counted(n, 'subject')} (e.g. {state_label(label)!r}: "
            f"{count_rows(rows)}): rows of one subject are not independent of each other; keep one row of each, e.g. "
            "with where="
        )


Held = dict[tuple[Any, ...], dict[Any, int]]
"""For every group the rows in each state, missing ones under None; one group without a name where there are none."""


def _count(
    frame: Frame,
    cells: Mapping[str, str],
    most: int,
    by: Sequence[Grouping],
    remedy: str = "give the node's own column in columns=",
) -> dict[str, Held]:
    """Count the rows in every state of every node; columns of one type are counted together.

    A column of more than ``most`` states is refused before all of them are held here.
    """
    types = frame.collect_schema()
    by_type: dict[Any, list[str]] = {}
    keys = {f"{_CELL}{i}": label for i, label in enumerate(cells)}
    for key in keys:
        by_type.setdefault(types[key], []).append(key)
    counts: dict[str, Held] = {label: {} for label in cells}
    groups = _groups(by)
    for together in by_type.values():
        counted_by = [_CELL, *groups, _STATE]
        numbers = (
            _stacked(frame, together, groups)
            .group_by(counted_by)
            .agg(nw.len().alias(_COUNT))
            .select(*counted_by, _COUNT)
        )
        enough = (most + 2) * len(together)  # of more, too many are of one column; fewer are all there are
        part = numbers.head((MAX_PAIRS if groups else enough) + 1).collect()
        if groups:
            refuse_many_cells(by, part)
        for key, *group, state, n in part.iter_rows():
            states, held = counts[keys[key]].setdefault(tuple(group), {}), None if is_absent(state) else state
            states[held] = states.get(held, 0) + int(n)
    for label, grouped in counts.items():
        if len(_together(grouped)) > most + 1:
            raise DataError(
                f"{_named(label, cells)} has more than {most:,} different values, expected the states of the node: "
                f"{remedy}"
            )
    return counts


def _groups(by: Sequence[Grouping]) -> list[str]:
    """Return the columns that say in which group a row is."""
    return [f"{CELL}{i}" for i in range(len(by))]


def _together(grouped: Held) -> dict[Any, int]:
    """Add up all groups."""
    totals: dict[Any, int] = {}
    for by_state in grouped.values():
        for state, n in by_state.items():
            totals[state] = totals.get(state, 0) + n
    return totals


def _stacked(frame: Frame, keys: list[str], groups: list[str]) -> Frame:
    """Put columns of one type under each other, with their names, beside the columns of groups."""
    return frame.select(*keys, *groups).unpivot(keys, index=groups or None, variable_name=_CELL, value_name=_STATE)


def _missing(frame: Frame, cells: Mapping[str, str], absent: Mapping[str, int], places: RowLocator) -> DataError:
    """Error that says how many cells of which columns are missing."""
    first, *others = [label for label, n in absent.items() if n]
    place = places.first(frame.filter(nw.col(f"{_CELL}{list(cells).index(first)}").is_null()))
    more = [f"{_named(label, cells)} in {count_rows(absent[label])}" for label in others]
    return DataError(
        f"{_named(first, cells)} has no state in {count_rows(absent[first])}{place}"
        f"{f', {listed(more)}' if more else ''}: missing='refuse'; fill them in, or use 'unobserved' if it is public "
        "which cells are missing"
    )


def _named(label: str, cells: Mapping[str, str]) -> str:
    return f"column {cells[label]!r}" + ("" if cells[label] == label else f" (node {label!r})")


def _checked_labels(held: Mapping[Any, int], states: Sequence[str], named: str, *, untyped: bool) -> dict[Any, str]:
    """Return the states that cells mean; refuse those that the node lacks."""
    observed = {state: n for state, n in held.items() if state is not None}
    if not observed:
        raise DataError(
            f"{named} has no observed state: all {count_rows(sum(held.values()))} are missing; leave the node out of "
            "columns="
        )
    labels = label_states(observed, states, untyped=untyped, where=named, owner="the node")
    totals = {state: n for state, n in _renamed(observed, labels).items() if state is not None}
    refuse_strangers(named, totals, states, "the node")
    return labels


def _renamed(held: Mapping[Any, int], labels: Mapping[Any, str]) -> dict[str | None, int]:
    """Count by labels, missing cells under None."""
    totals: dict[str | None, int] = {}
    for state, n in held.items():
        name = None if state is None else labels[state]
        totals[name] = totals.get(name, 0) + n
    return totals


def _in_order(held: Mapping[Any, int], states: Sequence[str], labels: Mapping[Any, str]) -> list[int]:
    """Return the counts of a node's states, in its order."""
    totals = _renamed(held, labels)
    return [totals.get(state, 0) for state in states]
