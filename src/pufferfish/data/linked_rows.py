"""A table that was read as sequences, opened once more: its linked rows, and the runs of equal states in it."""

import math
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pufferfish._base.durations import parse_duration
from pufferfish.data._chain_rows import ChainRows
from pufferfish.data._chains import Frame, Layout
from pufferfish.data._columns import is_absent
from pufferfish.data._options import check_options
from pufferfish.data._read_chains import layout_of
from pufferfish.data.labels import labels_of
from pufferfish.data.runs import Runs
from pufferfish.data.sequences import Sequences
from pufferfish.data.source import engine_errors, open_source
from pufferfish.theta.states import state_label

__all__ = ["READING", "LinkedRows", "opened", "runs_of"]

READING: dict[str, Any] = {
    "subject": None,
    "time": None,
    "max_gap": None,
    "bins": None,
    "where": None,
    "states": None,
    "missing": "unobserved",
    "gaps": "unobserved",
    "step": None,
    "time_zone": None,
    "ambiguous": None,
}


@dataclass(frozen=True, slots=True, eq=False)
class LinkedRows:
    """A table that was read as sequences, opened once more: its rows, each compared with the one before it.

    Parameters
    ----------
    layout : Layout
        How rows are laid out in chains.
    frame : narwhals LazyFrame
        The linked rows.
    states : tuple of str
        Names of the states.
    labels : callable
        From what cells hold to the names of states.
    """

    layout: Layout
    frame: Frame
    states: tuple[str, ...]
    labels: Callable[[set[Any]], Mapping[Any, str]]

    def indices(self, raw: set[Any]) -> dict[Any, int]:
        """Return which state each of these cells holds, as a number."""
        index = {name: i for i, name in enumerate(self.states)}
        return {state: index[label] for state, label in self.labels(raw).items()}


@contextmanager
def opened(source: Any, state: str, sequences: Sequences, reading: Mapping[str, Any]) -> Generator[LinkedRows]:
    """Open a table again that was read as sequences; the engine's errors inside are told as its reader tells them."""
    options = check_options(state=state, **(READING | dict(reading)))
    table = open_source(source, options.needed, options.public, order=options.time)
    layout = layout_of(table, options)

    with engine_errors(table.name, table.path):
        rows = ChainRows(table, options, layout)
        linked = layout.link(layout.in_order(rows.frame), filtered=rows.filtered)
        labels = partial(labels_of, options=options, untyped=table.untyped)
        yield LinkedRows(layout, linked, sequences.states, labels)


def runs_of(rows: LinkedRows, sequences: Sequences) -> Runs:
    """Count the runs of equal states of every subject and day."""
    groups = [list(group) for group in rows.layout.runs(rows.frame, _day(rows.layout, sequences)).iter_rows()]
    index = rows.indices({state for group in groups for state in (group[2], group[5]) if not is_absent(state)})
    subjects = tuple(sorted({state_label(group[0]) for group in groups}))
    place = {who: i for i, who in enumerate(subjects)}
    columns = np.empty((7, len(groups)), dtype=np.int64)
    for i, (who, day, state, lasted, begun, following, number) in enumerate(groups):
        later = -1 if is_absent(following) else index[following]
        columns[:, i] = place[state_label(who)], day, index[state], lasted, begun, later, number
    return Runs(subjects, *columns[:, np.lexsort(columns[::-1])])


def _day(layout: Layout, sequences: Sequences) -> float:
    """Return how long a day is in the unit of the axis: 24 hours, or a tenth of the longest series without times."""
    step = sequences.base.step or sequences.usual_step
    if layout.timed and step is not None and parse_duration(step, "step").has_unit:
        return _DAY
    steps = max(length.steps for length in sequences.length)
    one = float(parse_duration(step, "step").value) if layout.timed and step is not None else 1.0
    return max(1.0, math.ceil(steps * one / _BLOCKS))


_DAY = 86_400_000_000
"""Microseconds of 24 hours."""

_BLOCKS = 10
