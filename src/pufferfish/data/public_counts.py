"""Pairs of states that are some steps apart, counted for every subject: what forgetting is estimated from.

Only pairs without a gap between them count, both of whose records are observed: their distance is known to the step.

What a public table tells of habits: transitions with their past, occupancy by hour, how long states last.

How often each row of states occurs in a public table of independent rows: of it any columns are counted together.

All of it is counted by the table's engine. It is exact, and so only for tables that everybody may see.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.durations import parse_duration
from pufferfish.data._columns import is_absent
from pufferfish.data._read_chains import read_chains
from pufferfish.data._read_rows import count_distinct, states_of_columns
from pufferfish.data.count_daily import READING, LinkedRows, daily_of, opened
from pufferfish.data.daily import Daily, Steps
from pufferfish.data.read import read_sequences
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.states import clock_named, state_label

__all__ = [
    "Habits",
    "PairsApart",
    "PublicRows",
    "as_steps",
    "pairs_of",
    "read_habits",
    "read_pairs_apart",
    "read_public_rows",
]


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
    sequences = read_chains(source, **{"state": state, **READING, **reading})
    step = sequences.base.step or sequences.usual_step
    steps = [as_steps(distance, step) for distance in apart]
    with opened(source, state, sequences, reading) as rows:
        return sequences, tuple(pairs_of(rows, n) for n in steps)


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
            f"forgets is {apart!r}, but the length of a step is unknown: give step as a length of time, such as 1min, "
            "or the column of times; or give a number of steps, such as 8"
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
class Habits:
    """What a table tells of habits.

    Parameters
    ----------
    sequences : Sequences
        The table as it was read.
    daily : Daily
        Transitions and runs of equal states, by subject and day.
    pairs : tuple of PairsApart
        Pairs of states some steps apart, as was asked.
    occupancy : (phases, k) ndarray of int64 or None
        Observed records by phase of the clock.
    """

    sequences: Sequences
    daily: Daily
    pairs: tuple[PairsApart, ...]
    occupancy: Whole | None

    @property
    def subjects(self) -> tuple[str, ...]:
        """The subjects that have transitions, sorted."""
        return tuple(self.daily.subjects[i] for i in np.unique(self.daily.steps.subject).tolist())

    @property
    def steps(self) -> Steps:
        """The transitions, ``subject`` being a place in :attr:`subjects`."""
        steps = self.daily.steps
        return replace(steps, subject=np.unique(steps.subject, return_inverse=True)[1].reshape(-1))

    @property
    def stays(self) -> tuple[tuple[Whole, Whole], ...]:
        """For every state the stays whose end was seen, and those cut off: entry n is how many had n records.

        Only those whose beginning was seen are counted.
        """
        runs = self.daily.runs
        of_states = [(runs.state == x) & (runs.begun > 0) for x in range(len(self.sequences.states))]
        ended = runs.following >= 0
        return tuple((runs.by_length(of_state & ended), runs.by_length(of_state & ~ended)) for of_state in of_states)


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
        pairs = tuple(pairs_of(rows, n) for n in apart)
        occupancy = None if clock is None else _occupancy(rows, clock_named(clock).phases)
        return Habits(sequences, daily_of(rows, sequences), pairs, occupancy)


def _occupancy(rows: LinkedRows, phases: int) -> Whole:
    groups = list(rows.layout.by_phase(rows.frame).iter_rows())
    index = rows.indices({state for _, state, _ in groups})
    counts = np.zeros((phases, len(rows.states)), dtype=np.int64)
    for phase, state, number in groups:
        counts[int(phase), index[state]] += int(number)
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
