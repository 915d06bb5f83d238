"""How a table of independent rows is read, one column per node of a Bayesian network, as counts.

In order: the options are checked against the network; the source is opened, and the columns of nodes are chosen from
those it has; cells, subjects and the filter become expressions; subjects are checked; then the engine counts the
states of all columns. Columns of one type are stacked and counted in one pass: a scan of a wide file per column
would take many times as long.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from pufferfish.data.bins import MAX_STATES
from pufferfish.data.chains import KEEP, SUBJECT
from pufferfish.data.columns import count_where, is_absent, state_column, subject_column
from pufferfish.data.files import ROW, Source, engine_errors, open_source
from pufferfish.data.independent_rows import Rows, RowsBase
from pufferfish.data.labels import count_rows, label_states, refuse_strangers
from pufferfish.data.options import listed
from pufferfish.data.places import Places
from pufferfish.data.row_options import RowOptions, check_row_options
from pufferfish.errors import DataError
from pufferfish.theta.states import state_label

__all__ = ["count_cells"]

_CELL, _STATE, _COUNT = "__pf_cell", "__pf_state", "__pf_count"
Frame = nw.LazyFrame[Any]


def count_cells(source: Any, network: Any, columns: Any, subject: Any, where: Any, missing: Any) -> Rows:
    """Do the work of :func:`~pufferfish.read_rows`."""
    options = check_row_options(network, columns, subject, where, missing)
    table = open_source(source, options.needed, options.where.columns if options.where else ())
    with engine_errors(table.name, table.path):
        return _read(table, options)


def _read(table: Source, options: RowOptions) -> Rows:
    cells = options.cells(list(table.schema))
    frame = _kept(table, options, cells)
    places = Places(subject=options.subject is not None, ordered=table.ordered)
    if options.subject is not None:
        _check_subjects(frame, options.subject, places)
    states = {label: options.network.node_states[options.nodes[label]] for label in cells}
    groups = _count(frame, cells, MAX_STATES + max(map(len, states.values())))
    sizes = {sum(held.values()) for held in groups.values()}
    if len(sizes) > 1:
        raise DataError(f"{table.name} changed while it was read: columns have {min(sizes)} to {max(sizes)} rows")
    if sizes == {0}:
        raise table.nothing(None if options.where is None else options.where.text)
    absent = {label: held.get(None, 0) for label, held in groups.items()}
    if options.missing == "refuse" and any(absent.values()):
        raise _missing(frame, cells, absent, places)
    counts = {
        label: _in_order(groups[label], states[label], _named(label, cells), untyped=table.untyped) for label in cells
    }
    return Rows(
        nodes=tuple(options.nodes[label] for label in cells),
        states={options.nodes[label]: states[label] for label in cells},
        counts={options.nodes[label]: np.array(counts[label], dtype=np.int64) for label in cells},
        records=sizes.pop(),
        base=RowsBase(
            source=table.name,
            columns=cells,
            subject=options.subject,
            where=None if options.where is None else options.where.text,
            missing=options.missing,
        ),
    )


def _kept(table: Source, options: RowOptions, cells: Mapping[str, str]) -> Frame:
    """Cells, subject and row number of the rows that the filter keeps, under names of our own."""
    schema = table.schema
    chosen = {f"{_CELL}{i}": state_column(name, schema[name]) for i, name in enumerate(cells.values())}
    if options.subject is not None:
        chosen[SUBJECT] = subject_column(options.subject, schema[options.subject])
    if table.ordered:
        chosen[ROW] = nw.col(ROW).cast(nw.Int64)
    if options.where is None:
        return table.frame.select(expression.alias(name) for name, expression in chosen.items())
    frame, columns = table.filter_columns(options.where.columns)
    chosen[KEEP] = options.where.keep(columns)
    return frame.select(expression.alias(name) for name, expression in chosen.items()).filter(nw.col(KEEP))


def _check_subjects(frame: Frame, name: str, places: Places) -> None:
    none = nw.col(SUBJECT).is_null()
    rows = frame.group_by(SUBJECT).agg(nw.len().alias(_COUNT))
    several = rows.filter((nw.col(_COUNT) > 1) | none)
    counted = several.select(
        nw.when(none).then(nw.col(_COUNT).cast(nw.Int64)).otherwise(nw.lit(0)).sum().alias("no_subject"),
        count_where(~none).alias("several"),
    )
    missing, n = (int(count or 0) for count in counted.collect().row(0))
    if missing:
        raise places.no_subject(frame, name, missing)
    if n:
        most = several.sort(_COUNT, SUBJECT, descending=[True, False]).select(SUBJECT, _COUNT).head(1)
        label, rows = most.collect().row(0)
        raise DataError(
            f"column {name!r} has several rows for {n:,} subject{'' if n == 1 else 's'} (e.g. {state_label(label)!r}: "
            f"{count_rows(rows)}): rows of one subject are not independent of each other; keep one row of each, e.g. "
            "with where="
        )


def _count(frame: Frame, cells: Mapping[str, str], most: int) -> dict[str, dict[Any, int]]:
    """Count the rows in every state of every node, missing ones as None; columns of one type are counted together.

    A column of more than ``most`` states is refused before all of them are held here.
    """
    types = frame.collect_schema()
    by_type: dict[Any, list[str]] = {}
    keys = {f"{_CELL}{i}": label for i, label in enumerate(cells)}
    for key in keys:
        by_type.setdefault(types[key], []).append(key)
    counts: dict[str, dict[Any, int]] = {label: {} for label in cells}
    for together in by_type.values():
        groups = (
            _stacked(frame, together).group_by(_CELL, _STATE).agg(nw.len().alias(_COUNT)).select(_CELL, _STATE, _COUNT)
        )
        enough = (most + 2) * len(together) + 1  # of so many, too many are of one column; fewer are all there are
        for key, state, n in groups.head(enough).collect().iter_rows():
            states, held = counts[keys[key]], None if is_absent(state) else state
            states[held] = states.get(held, 0) + int(n)
    for label, states in counts.items():
        if len(states) > most + 1:
            raise DataError(
                f"{_named(label, cells)} has more than {most:,} different values, expected the states of the node: "
                "give the node's own column in columns="
            )
    return counts


def _stacked(frame: Frame, keys: list[str]) -> Frame:
    """Put columns of one type under each other, with their names."""
    kind = frame.implementation
    if kind.is_polars() or kind.is_pandas_like() or kind.is_pyspark():
        return frame.select(keys).unpivot(keys, variable_name=_CELL, value_name=_STATE)
    # databases leave missing values out of an UNPIVOT
    return nw.concat([frame.select(nw.lit(key).alias(_CELL), nw.col(key).alias(_STATE)) for key in keys])


def _missing(frame: Frame, cells: Mapping[str, str], absent: Mapping[str, int], places: Places) -> DataError:
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


def _in_order(held: Mapping[Any, int], states: Sequence[str], named: str, *, untyped: bool) -> list[int]:
    """Return the counts of a node's states, in its order."""
    observed = {state: n for state, n in held.items() if state is not None}
    if not observed:
        raise DataError(
            f"{named} has no observed state: all {count_rows(sum(held.values()))} are missing; leave the node out of "
            "columns="
        )
    totals: dict[str, int] = {}
    for state, name in label_states(observed, states, untyped=untyped, where=named, owner="the node").items():
        totals[name] = totals.get(name, 0) + observed[state]
    refuse_strangers(named, totals, states, "the node")
    return [totals.get(state, 0) for state in states]
