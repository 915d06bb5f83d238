"""What a public table tells of habits: transitions with their past, occupancy by hour, how long states last.

All of it is counted by the table's engine. It is exact, and so only for tables that everybody may see.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.data._columns import is_absent
from pufferfish.data.public_counts import LinkedRows, PairsApart, opened, pairs_of
from pufferfish.data.read import read_sequences
from pufferfish.data.sequences import Sequences
from pufferfish.theta.states import clock_named, state_label

__all__ = ["Habits", "Steps", "read_habits"]

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
    found = np.empty((6, len(groups)), dtype=np.int64)
    for i, (who, *phase, earlier, before, state, number) in enumerate(groups):
        past = -1 if is_absent(earlier) else index[earlier]
        found[:, i] = place[who], int(phase[0]) if phase else -1, past, index[before], index[state], number
    return subjects, Steps(*found)


def _occupancy(rows: LinkedRows, phases: int) -> Whole:
    groups = list(rows.layout.by_phase(rows.frame).iter_rows())
    index = rows.indices({state for _, state, _ in groups})
    found = np.zeros((phases, len(rows.states)), dtype=np.int64)
    for phase, state, number in groups:
        found[int(phase), index[state]] += int(number)
    return found


def _stays(rows: LinkedRows) -> tuple[tuple[Whole, Whole], ...]:
    groups = list(rows.layout.stays(rows.frame).iter_rows())
    index = rows.indices({state for state, *_ in groups})
    mine: list[list[tuple[int, bool, int]]] = [[] for _ in rows.states]
    for state, lasted, ended, number in groups:
        mine[index[state]].append((int(lasted), bool(ended), int(number)))
    return tuple((_by_length(each, ended=True), _by_length(each, ended=False)) for each in mine)


def _by_length(stays: Iterable[tuple[int, bool, int]], *, ended: bool) -> Whole:
    stays = list(stays)
    found = np.zeros(1 + max((lasted for lasted, *_ in stays), default=0), dtype=np.int64)
    for lasted, seen, number in stays:
        if seen == ended:
            found[lasted] += number
    return found
