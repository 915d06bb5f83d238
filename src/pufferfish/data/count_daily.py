"""A table that was read as sequences, opened once more: its linked rows, and what is counted of them by day."""

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
from pufferfish.data.daily import Daily, Runs, Steps
from pufferfish.data.labels import labels_of
from pufferfish.data.sequences import Sequences
from pufferfish.data.source import engine_errors, open_source
from pufferfish.theta.states import state_label

__all__ = ["READING", "LinkedRows", "daily_of", "opened"]

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


def daily_of(rows: LinkedRows, sequences: Sequences) -> Daily:
    """Count transitions and runs of equal states of every subject and day."""
    day = _day(rows.layout, sequences)
    runs = [list(group) for group in rows.layout.runs(rows.frame, day).iter_rows()]
    steps = [list(group) for group in rows.layout.steps(rows.frame, day).iter_rows()]
    cells = {state for group in runs for state in (group[2], group[5]) if not is_absent(state)}
    index = rows.indices(cells | {state for group in steps for state in group[-4:-1] if not is_absent(state)})
    subjects = tuple(sorted({state_label(group[0]) for group in runs}))
    place = {who: i for i, who in enumerate(subjects)}
    of_runs, of_steps = np.empty((7, len(runs)), dtype=np.int64), np.empty((7, len(steps)), dtype=np.int64)
    for i, (who, on, state, lasted, begun, following, number) in enumerate(runs):
        later = -1 if is_absent(following) else index[following]
        of_runs[:, i] = place[state_label(who)], on, index[state], lasted, begun, later, number
    for i, (who, on, *phase, earlier, before, state, number) in enumerate(steps):
        past = -1 if is_absent(earlier) else index[earlier]
        began = int(phase[0]) if phase else -1
        of_steps[:, i] = place[state_label(who)], on, began, past, index[before], index[state], number
    # engines give groups in any order
    of_runs, of_steps = (columns[:, np.lexsort(columns[::-1])] for columns in (of_runs, of_steps))
    return Daily(subjects, Steps(*of_steps), Runs(*of_runs))


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
