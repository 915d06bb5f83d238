"""What is counted of public tables only, for it is exact: pairs of states some steps apart, habits, and whole rows.

- Pairs of states that are some steps apart, for every subject: what forgetting is estimated from. Only pairs without a
  gap between them count, both of whose records are observed: their distance is known to the step.
- Habits: transitions with their past, occupancy by the phase of a clock, how long states last.
- How often each row of states occurs in a table of independent rows: of it any columns are counted together.

All of it is counted by the table's engine, which reads a table of sequences once more for it.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.durations import parse_duration
from pufferfish.data._chain_rows import ChainRows
from pufferfish.data._chains import STATE, Frame, Layout, counted, tabulated
from pufferfish.data._columns import is_absent
from pufferfish.data._options import Options, RowOptions, open_table
from pufferfish.data._read_chains import layout_of, read_chains
from pufferfish.data._read_rows import RowCells, states_of_columns
from pufferfish.data.groups import Daily, Runs, Steps, Whole
from pufferfish.data.labels import labels_of
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import DataError, ParameterError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.states import clock_named, state_label

_DAY = 86_400_000_000  # microseconds of 24 hours
_MOST_HELD = 100_000_000  # cells of distinct rows that are held at once
_BLOCKS = 10  # parts of the longest series that take the place of days, without times


@dataclass(frozen=True, slots=True, eq=False)
class LinkedRows:
    """A table that was read as sequences, opened once more: its rows, each compared with the one before it."""

    layout: Layout
    frame: Frame
    states: tuple[str, ...]
    labels: Callable[[set[Any]], Mapping[Any, str]]  # from what cells hold to the names of states

    def indices(self, cells: Iterable[Any]) -> dict[Any, int]:
        """Return which state each of these cells holds, as a number; −1 for those that hold none."""
        index, raw = {name: i for i, name in enumerate(self.states)}, set(cells)
        labels = self.labels({cell for cell in raw if not is_absent(cell)})
        return {cell: -1 if is_absent(cell) else index[labels[cell]] for cell in raw}

    def in_states(self) -> Frame:
        """Return the rows with one cell for each state, so that equal states are equal cells."""
        cells = [cell for cell, _ in counted(self.frame, [STATE]).collect().iter_rows()]
        held = defaultdict[int, list[Any]](list)
        for cell, i in self.indices(cells).items():
            held[i].append(cell)
        return self.layout.one_cell_each(self.frame, [cells for i, cells in held.items() if i >= 0])


@contextmanager
def opened(source: Any, state: str, sequences: Sequences, reading: Mapping[str, Any]) -> Generator[LinkedRows]:
    """Open a table again that was read as sequences; the engine's errors inside are told as its reader tells them."""
    options = Options(state=state, **reading)
    with open_table(source, options) as table:
        layout = layout_of(table, options)
        rows = ChainRows(table, options, layout)
        linked = layout.link(layout.in_order(rows.frame), filtered=rows.filtered)
        labels = partial(labels_of, options=options, untyped=table.untyped)
        yield LinkedRows(layout, linked, sequences.states, labels)


# -- Pairs of states some steps apart --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class PairsApart:
    """Pairs of observed states so many steps apart."""

    steps: int
    subjects: tuple[str, ...]  # those that have such pairs, sorted
    counts: Whole  # (subjects, k, k); rows are the earlier states


def read_pairs_apart(
    source: Any, state: str, apart: Sequence[Any], **reading: Any
) -> tuple[Sequences, tuple[PairsApart, ...]]:
    """Read a table, and count the pairs of states that are so many steps, or a time such as ``"8min"``, apart."""
    sequences = read_chains(source, state=state, **reading)
    step = sequences.base.step or sequences.usual_step
    steps = [as_steps(distance, step) for distance in apart]
    with opened(source, state, sequences, reading) as rows:
        return sequences, tuple(_pairs_of(rows, n) for n in steps)


def as_steps(apart: Any, step: Any) -> int:
    """Return a length of time as steps, rounded up; a whole number is that many steps."""
    length = parse_duration(apart, "forgets")
    if not length.has_unit:
        if not isinstance(length.value, int):
            raise ParameterError(f"forgets is {apart!r}, expected a whole number of steps, or a time such as '8min'")
        return length.value
    one = None if step is None else parse_duration(step, "step")
    if one is None or not one.has_unit:
        raise ParameterError(
            f"forgets is {apart!r}, but the length of a step is unknown: give step as a length of time, such as 1min, "
            "or the column of times; or give a number of steps, such as 8"
        )
    return math.ceil(Fraction(length.value) / Fraction(one.value))


def _pairs_of(rows: LinkedRows, n: int) -> PairsApart:
    """Count the pairs of states so many steps apart."""
    pairs = list(rows.layout.pairs_apart(rows.frame, n).iter_rows())
    index = rows.indices(state for _, before, state, _ in pairs for state in (before, state))
    known = [(state_label(who), index[a], index[b], number) for who, a, b, number in pairs]
    known = [pair for pair in known if min(pair[1:3]) >= 0]
    subjects = sorted({who for who, *_ in known})
    place, k = {who: i for i, who in enumerate(subjects)}, len(rows.states)
    counts = tabulated((len(subjects), k, k), ((place[who], *pair) for who, *pair in known))
    return PairsApart(n, tuple(subjects), counts)


# -- What a table tells of habits ------------------------------------------------------------------------------------


def daily_of(rows: LinkedRows, sequences: Sequences) -> Daily:
    """Count transitions and runs of equal states of every subject and day."""
    day = _day(rows.layout, sequences)
    runs = list(rows.layout.runs(rows.in_states(), day).iter_rows())
    steps = list(rows.layout.steps(rows.frame, day).iter_rows())
    cells = [(run[2], run[5]) for run in runs] + [step[-4:-1] for step in steps]
    index = rows.indices(cell for held in cells for cell in held)
    subjects = tuple(sorted({state_label(run[0]) for run in runs}))
    place = {who: i for i, who in enumerate(subjects)}
    of_runs, of_steps = np.empty((7, len(runs)), dtype=np.int64), np.empty((7, len(steps)), dtype=np.int64)
    for i, (who, on, state, lasted, begun, following, number) in enumerate(runs):
        of_runs[:, i] = place[state_label(who)], on, index[state], lasted, begun, index[following], number
    for i, (who, on, *phase, earlier, before, state, number) in enumerate(steps):
        began = int(phase[0]) if phase else -1
        of_steps[:, i] = place[state_label(who)], on, began, index[earlier], index[before], index[state], number
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
    part = steps * one / _BLOCKS
    return max(1.0, math.ceil(part)) if one.is_integer() else part  # times may be in a unit as large as all of them


@dataclass(frozen=True, slots=True, eq=False)
class Habits:
    """What a table tells of habits."""

    sequences: Sequences  # with what was counted by day
    pairs: tuple[PairsApart, ...]
    occupancy: Whole | None  # (phases, k) observed records by phase of the clock


def read_habits(source: Any, state: str, apart: Sequence[int], *, clock: str | None = None, **reading: Any) -> Habits:
    """Read a table, and count what it tells of habits, with the pairs of states so many steps ``apart``."""
    reading = reading | {"clock": clock}
    sequences = read_chains(source, state=state, **reading)
    with opened(source, state, sequences, reading) as rows:
        pairs, occupancy = tuple(_pairs_of(rows, n) for n in apart), None
        if clock is not None:
            shape = clock_named(clock).phases, len(rows.states)
            groups = list(rows.layout.by_phase(rows.frame).iter_rows())
            index = rows.indices(state for _, state, _ in groups)
            occupancy = tabulated(shape, ((int(phase), index[state], n) for phase, state, n in groups))
        return Habits(replace(sequences, daily=daily_of(rows, sequences)), pairs, occupancy)


# -- How often each row of states occurs -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class PublicRows:
    """A table of independent rows: how often each row of states occurs."""

    rows: Rows  # the counts of every column by itself, and how the table was read
    places: NDArray[np.int16]  # (m, n): of every distinct row the place of each node's state, −1 where it is missing
    numbers: Whole  # (m,): how many such rows there are

    def together(self, nodes: Sequence[Any]) -> Whole:
        """Return the rows in each combination of the nodes' states, an axis for each, without rows that lack one."""
        sizes = [len(self.rows.states[node]) for node in nodes]
        places = self.places[:, [self.rows.nodes.index(node) for node in nodes]].T.astype(np.intp)
        whole = (places >= 0).all(axis=0)
        cells = np.ravel_multi_index(tuple(places[:, whole]), sizes)
        counts = np.bincount(cells, weights=self.numbers[whole], minlength=int(np.prod(sizes)))
        return counts.reshape(sizes).astype(np.int64)


def read_public_rows(
    source: Any, nodes: Sequence[str] | BayesianNetwork | None, *, missing: Any = "refuse", **reading: Any
) -> PublicRows:
    """Read independent rows by a network, or by columns (all if None), which tell their states themselves."""
    if not isinstance(nodes, BayesianNetwork):
        states = states_of_columns(source, nodes, subject=reading.get("subject"), where=reading.get("where"))
        nodes = BayesianNetwork({name: CPT(held, np.full(len(held), 1 / len(held))) for name, held in states.items()})
    options = RowOptions(network=nodes, missing=missing, **reading)
    with open_table(source, options) as table:
        cells = RowCells(table, options)
        rows, places = cells.rows()
        most = _MOST_HELD // len(cells.keys)
        part = counted(cells.frame, list(cells.keys.values())).head(most + 1).collect()
        if len(part) > most:
            raise DataError(
                f"{table.name} has more than {most:,} different rows in {len(cells.keys)} columns, too many for "
                "memory: read fewer columns, or a part of the rows"
            )
        held = np.full((len(part), len(cells.keys)), -1, dtype=np.int16)
        for j, (label, key) in enumerate(cells.keys.items()):
            held[:, j] = [-1 if is_absent(cell) else places[label][cell] for cell in part[key].to_list()]
        return PublicRows(rows, held, np.array(part[part.columns[-1]].to_list(), dtype=np.int64))
