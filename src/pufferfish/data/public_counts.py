"""Pairs of states that are some steps apart, counted for every subject: what forgetting is estimated from.

Only pairs without a gap between them count, both of whose records are observed: their distance is known to the step.

What a public table tells of habits: transitions with their past, occupancy by hour, how long states last.

How often each row of states occurs in a public table of independent rows: of it any columns are counted together.

All of it is counted by the table's engine. It is exact, and so only for tables that everybody may see.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.durations import parse_duration
from pufferfish.data._chain_rows import ChainRows
from pufferfish.data._chains import Frame, Layout
from pufferfish.data._columns import is_absent
from pufferfish.data._options import check_options
from pufferfish.data._read_chains import layout_of, read_chains
from pufferfish.data._read_rows import count_distinct, states_of_columns
from pufferfish.data.labels import labels_of
from pufferfish.data.read import read_sequences
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.data.source import engine_errors, open_source
from pufferfish.errors import ParameterError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.states import clock_named, state_label

__all__ = [
    "Habits",
    "LinkedRows",
    "PairsApart",
    "PublicRows",
    "Steps",
    "as_steps",
    "opened",
    "pairs_of",
    "read_habits",
    "read_pairs_apart",
    "read_public_rows",
]

_OPTIONS: dict[str, Any] = {
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
class PairsApart:
    """Pairs of observed states so many steps apart.

    Parameters
    ----------
    steps : int
        Steps from the first to the second of a pair.
    subjects : tuple of str
        The subjects that have such pairs, sorted.
    counts : (subjects, k, k) ndarray of int64
        Pairs of each subject; rows are the earlier states.
    """

    steps: int
    subjects: tuple[str, ...]
    counts: NDArray[np.int64]


def read_pairs_apart(
    source: Any, state: str, apart: Sequence[Any], **reading: Any
) -> tuple[Sequences, tuple[PairsApart, ...]]:
    """Read a table of public data as sequences, and count the pairs of states that are some time apart.

    Parameters
    ----------
    source, state, **reading
        As for :func:`read_sequences`.
    apart : sequence
        Numbers of steps, or lengths of time such as ``"8min"``, which are as many steps as they have, rounded up.

    Raises
    ------
    ParameterError, DataError
        As :func:`read_sequences` does; and if a length of time comes without times.
    """
    sequences = read_chains(source, **{"state": state, **_OPTIONS, **reading})
    step = sequences.base.step or sequences.usual_step
    steps = [as_steps(distance, step) for distance in apart]
    with opened(source, state, sequences, reading) as rows:
        return sequences, tuple(pairs_of(rows, n) for n in steps)


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
    options = check_options(state=state, **(_OPTIONS | dict(reading)))
    table = open_source(source, options.needed, options.public, order=options.time)
    layout = layout_of(table, options)

    with engine_errors(table.name, table.path):
        rows = ChainRows(table, options, layout)
        linked = layout.link(layout.in_order(rows.frame), filtered=rows.filtered)
        labels = partial(labels_of, options=options, untyped=table.untyped)
        yield LinkedRows(layout, linked, sequences.states, labels)


def as_steps(apart: Any, step: Any) -> int:
    """Return a length of time as steps, rounded up; a whole number is that many steps.

    Raises
    ------
    ParameterError
        If it is neither, or nothing says how long a step is.
    """
    length = parse_duration(apart, "forgets")
    if not length.has_unit:
        if not isinstance(length.value, int):
            raise ParameterError(f"forgets is {apart!r}, expected a whole number of steps, or a time such as '8min'")
        return length.value
    one = None if step is None else parse_duration(step, "step")
    if one is None or not one.has_unit:
        raise ParameterError(
            f"forgets is {apart!r}, and nothing says how long a step is: give step as a length of time, such as 1min, "
            "or the column of times; or say after how many steps, such as 8"
        )
    return ceil(Fraction(length.value) / Fraction(one.value))


def pairs_of(opened_: LinkedRows, n: int) -> PairsApart:
    """Count the pairs of states so many steps apart."""
    groups = opened_.layout.pairs_apart(opened_.frame, n).iter_rows()
    rows = [(state_label(who), a, b, int(number)) for who, a, b, number in groups if not (is_absent(a) or is_absent(b))]
    index = opened_.indices({state for _, a, b, _ in rows for state in (a, b)})
    subjects = sorted({who for who, *_ in rows})
    place = {who: i for i, who in enumerate(subjects)}
    counts = np.zeros((len(subjects), len(opened_.states), len(opened_.states)), dtype=np.int64)
    for who, before, state, number in rows:
        counts[place[who], index[before], index[state]] += number
    return PairsApart(n, tuple(subjects), counts)


# -- What a public table tells of habits -----------------------------------------------------------------------------

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Observed transitions in groups of equal ones, as arrays of one length.

    Parameters
    ----------
    subject, phase, earlier, before, state : ndarray of int64
        Whose it is, the phase of the clock it begins in, the states two steps before, before and now; -1 where there is
        no clock, or the earlier state is not known.
    number : ndarray of int64
        How many such transitions there are.
    """

    subject: Whole
    phase: Whole
    earlier: Whole
    before: Whole
    state: Whole
    number: Whole


@dataclass(frozen=True, slots=True, eq=False)
class Habits:
    """What a table tells of habits.

    Parameters
    ----------
    sequences : Sequences
        The table as it was read.
    subjects : tuple of str
        The subjects that have transitions, sorted.
    steps : Steps
        All transitions with their past.
    pairs : tuple of PairsApart
        Pairs of states some steps apart, as was asked.
    occupancy : (phases, k) ndarray of int64 or None
        Observed records by phase of the clock.
    stays : tuple of (ndarray, ndarray)
        For every state the stays whose end was seen, and those that were cut off: entry n is how many had n records.
    """

    sequences: Sequences
    subjects: tuple[str, ...]
    steps: Steps
    pairs: tuple[PairsApart, ...]
    occupancy: Whole | None
    stays: tuple[tuple[Whole, Whole], ...]


def read_habits(source: Any, state: str, apart: Sequence[int], *, clock: str | None = None, **reading: Any) -> Habits:
    """Read a table of public data as sequences, and count what it tells of habits.

    Parameters
    ----------
    source, state, clock, **reading
        As for :func:`read_sequences`.
    apart : sequence of int
        Numbers of steps at which pairs of states are counted.

    Raises
    ------
    ParameterError, DataError
        As :func:`read_sequences` does.
    """
    reading = reading | {"clock": clock}
    sequences = read_sequences(source, state, **reading)
    with opened(source, state, sequences, reading) as rows:
        subjects, steps = _steps(rows)
        pairs = tuple(pairs_of(rows, n) for n in apart)
        occupancy = None if clock is None else _occupancy(rows, clock_named(clock).phases)
        return Habits(sequences, subjects, steps, pairs, occupancy, _stays(rows))


def _steps(rows: LinkedRows) -> tuple[tuple[str, ...], Steps]:
    groups = [list(group) for group in rows.layout.steps(rows.frame).iter_rows()]
    for group in groups:
        group[0] = state_label(group[0])
    subjects = tuple(sorted({group[0] for group in groups}))
    place = {who: i for i, who in enumerate(subjects)}
    index = rows.indices({state for group in groups for state in group[-4:-1] if not is_absent(state)})
    columns = np.empty((6, len(groups)), dtype=np.int64)
    for i, (who, *phase, earlier, before, state, number) in enumerate(groups):
        past = -1 if is_absent(earlier) else index[earlier]
        columns[:, i] = place[who], int(phase[0]) if phase else -1, past, index[before], index[state], number
    return subjects, Steps(*columns)


def _occupancy(rows: LinkedRows, phases: int) -> Whole:
    groups = list(rows.layout.by_phase(rows.frame).iter_rows())
    index = rows.indices({state for _, state, _ in groups})
    counts = np.zeros((phases, len(rows.states)), dtype=np.int64)
    for phase, state, number in groups:
        counts[int(phase), index[state]] += int(number)
    return counts


def _stays(rows: LinkedRows) -> tuple[tuple[Whole, Whole], ...]:
    groups = list(rows.layout.stays(rows.frame).iter_rows())
    index = rows.indices({state for state, *_ in groups})
    mine: list[list[tuple[int, bool, int]]] = [[] for _ in rows.states]
    for state, lasted, ended, number in groups:
        mine[index[state]].append((int(lasted), bool(ended), int(number)))
    return tuple((_by_length(stays, ended=True), _by_length(stays, ended=False)) for stays in mine)


def _by_length(stays: Iterable[tuple[int, bool, int]], *, ended: bool) -> Whole:
    stays = list(stays)
    counts = np.zeros(1 + max((lasted for lasted, *_ in stays), default=0), dtype=np.int64)
    for lasted, seen, number in stays:
        if seen == ended:
            counts[lasted] += number
    return counts


# -- How often each row of states occurs -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class PublicRows:
    """A public table of independent rows: how often each row of states occurs.

    Parameters
    ----------
    rows : Rows
        The counts of every column by itself, and how the table was read.
    places : (m, n) ndarray of int16
        Of every distinct row the place of each node's state, −1 where it is missing.
    numbers : (m,) ndarray of int64
        How many such rows there are.
    """

    rows: Rows
    places: NDArray[np.int16]
    numbers: NDArray[np.int64]

    def together(self, nodes: Sequence[Any]) -> NDArray[np.int64]:
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
    """Read a public table of independent rows by the nodes of a network, or by columns whose states it tells itself.

    Parameters
    ----------
    source, missing, **reading
        As for :func:`~pufferfish.read_rows`, without ``by`` and ``joint``.
    nodes : sequence of str, or BayesianNetwork
        Names of columns, or the network; None for all columns but those that say whose a row is, and which are read.

    Raises
    ------
    DataError, ParameterError, ModelError
        As :func:`~pufferfish.read_rows` does; or if there are too many different rows.
    """
    if not isinstance(nodes, BayesianNetwork):
        states = states_of_columns(source, nodes, subject=reading.get("subject"), where=reading.get("where"))
        nodes = BayesianNetwork({name: CPT(held, np.full(len(held), 1 / len(held))) for name, held in states.items()})
    return PublicRows(*count_distinct(source, nodes, missing=missing, **reading))
