"""Columns of a table of independent rows that are counted together, by the engine that holds them."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from pufferfish.data._cells import MAX_PAIRS
from pufferfish.data._columns import is_absent
from pufferfish.data.groupings import Grouping
from pufferfish.data.groups import Groups
from pufferfish.errors import DataError

__all__ = ["count_together"]

_COUNT = "__pf_count"


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
            "group by less, or count fewer columns together"
        )
    keys = frame.collect_schema().names()
    counted = frame.group_by(keys).agg(nw.len().alias(_COUNT)).select(*keys, _COUNT)
    part = counted.head(MAX_PAIRS + 1).collect()
    if len(part) > MAX_PAIRS:
        raise DataError(f"{table}: more than {MAX_PAIRS:,} combinations of spellings: spell each state in one way")
    found = np.zeros((*([len(cells)] if groups is not None else []), *sizes), dtype=np.int64)
    for *values, n in part.iter_rows():
        own, group = values[: len(sizes)], values[len(sizes) :]
        if any(is_absent(value) for value in own):
            continue
        at = [place.get(value) for place, value in zip(states, own, strict=True)]
        if groups is not None:
            at = [cells.get(tuple(each.label(x) for each, x in zip(by, group, strict=True))), *at]
        if None in at:
            raise DataError(f"{table} changed while it was read: a state was not there before")
        found[tuple(at)] += int(n)
    return found
