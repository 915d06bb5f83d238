"""Pairs of states that are some steps apart, counted for every subject: what forgetting is estimated from.

Only pairs without a gap between them count, both of whose records are observed: their distance is known to the step.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
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
from pufferfish.data._read_chains import layout_of, read_chains
from pufferfish.data.labels import labels_of
from pufferfish.data.options import check_options
from pufferfish.data.sequences import Sequences
from pufferfish.data.source import engine_errors, open_source
from pufferfish.errors import ParameterError
from pufferfish.theta.states import state_label

__all__ = ["LinkedRows", "PairsApart", "as_steps", "opened", "pairs_of", "read_pairs_apart"]

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
    given = sequences.base.step or sequences.usual_step
    steps = [as_steps(each, given) for each in apart]
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
    table = open_source(source, options.needed, options.public)
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
