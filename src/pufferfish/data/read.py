"""Read a table as sequences of states: the one entrance from rows to aggregates.

In order: the options are checked; the source is opened and its needed columns selected; the filter, the times
and the states become expressions; rows are checked (subject, time, order); then two or three aggregate
queries give everything :class:`~pufferfish.data.sequences.Sequences` holds.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np

from pufferfish.data.bins import MAX_STATES, bin_index, bin_labels, parse_bins
from pufferfish.data.chains import KEEP, STATE, SUBJECT, TIME, Fold, Layout
from pufferfish.data.columns import (
    ISO,
    NUMBER,
    ZONED,
    Column,
    clean_text,
    count_where,
    format_instant,
    kind_of,
    missing,
    native_column,
    profile_text,
    text_column,
    text_instant,
    text_number,
)
from pufferfish.data.durations import Duration, parse_duration
from pufferfish.data.files import ROW, Source, engine_errors, open_source
from pufferfish.data.sequences import Base, Sequences
from pufferfish.data.where import Where, parse_where
from pufferfish.errors import DataError, ParameterError
from pufferfish.models.lengths import ChainLength
from pufferfish.models.states import state_label

__all__ = ["read_sequences"]

Missing = Literal["unobserved", "split", "refuse"]
Gaps = Literal["unobserved", "independent"]
Frame = nw.LazyFrame[Any]

_VALUE = "__pf_value"
_BAD = -2  # bin number of text that is not a number
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_TRUTHS = {"true", "false", "True", "False", "TRUE", "FALSE"}


def read_sequences(
    source: Any,
    state: str,
    *,
    subject: str | None = None,
    time: str | None = None,
    max_gap: str | timedelta | float | None = None,
    bins: str | Sequence[float] | None = None,
    where: str | None = None,
    states: Iterable[Any] | None = None,
    missing: Missing = "unobserved",
    gaps: Gaps = "unobserved",
    step: str | timedelta | float | None = None,
) -> Sequences:
    """Read a table as sequences of states, without holding its rows.

    Parameters
    ----------
    source : path or table
        CSV (``.csv``, ``.csv.gz``, ``.tsv``, ``.tsv.gz``) or Parquet file; or a polars or pandas frame, a DuckDB
        relation, or another table that narwhals takes. A CSV column is text: it is read as numbers, times or
        true/false where all its values are; an empty field is missing.
    state : str
        Column of the states: text, whole numbers, true/false, or numbers to be binned.
    subject : str, optional
        Column of the independent unit; None if the table is one chain.
    time : str, optional
        Column of time: timestamps, dates, ISO text, or numbers. Strictly increasing within a subject; subjects
        may be interleaved. Rows of a DuckDB relation have no order, so there it is needed, and it orders them.
    max_gap : str, timedelta or number, optional
        Longest time between adjacent records, such as ``"10min"``; a number for numeric time. Rows left out by
        ``where`` are out before differences are taken. Without it, rows next to each other in the table are
        adjacent, and a row left out by ``where`` is a hole.
    bins : str or sequence of float, optional
        Edges that make numbers states, such as ``"0,200,...,10200"``; values outside count in the end bins.
    where : str, optional
        Row filter over other columns, such as ``'awake and group != "none"'``. Rows where it is not known to
        be true are left out.
    states : sequence, optional
        The model's states; a state of the table not among them is refused.
    missing : {"unobserved", "split", "refuse"}
        A missing state is a record that takes a step but is not observed (default); leaves a gap, which declares
        public which states are missing; or is refused. Missing records at the ends of a chain count as steps
        under "unobserved": a longer span never lowers the noise.
    gaps : {"unobserved", "independent"}
        Stretches between gaps are one chain per subject, with unobserved records in between (default); or each
        is a chain of its own, which under-protects where states before and after a gap are correlated.
    step : str, timedelta or number, optional
        Time that one step takes, to turn gaps into steps; by default the most frequent time between adjacent
        records (the shortest of those that tie).

    Returns
    -------
    Sequences
        Counts, transitions and lengths, chains in the order of their subjects' labels as text.

    Raises
    ------
    DataError
        If the table cannot be read, or does not hold what the options say.
    ParameterError
        If an option is out of its range or does not go with the others.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"minute": [0, 1, 2, 9, 10], "activity": ["rest", "walk", "walk", "rest", "rest"]})
    >>> data = read_sequences(table, "activity", time="minute", max_gap=1)
    >>> data.states, data.counts.tolist(), data.transitions.tolist(), data.length
    (('rest', 'walk'), [[3, 2]], [[1, 1], [0, 1]], (ChainLength(steps=11, records=5),))
    """
    plan = _plan(source, state, subject, time, max_gap, bins, where, states, missing, gaps, step)
    with engine_errors(_name_of(source)):
        table = open_source(source, plan.columns)
    with engine_errors(table.name):
        return _Reading(table, plan).sequences()


def _name_of(source: Any) -> str:
    if isinstance(source, str | os.PathLike):
        return Path(os.fsdecode(source)).name
    return f"{type(source).__module__.partition('.')[0]} {type(source).__name__}"


class _Reading:
    """One reading of one table: holds the expressions that the steps share."""

    def __init__(self, table: Source, plan: _Plan) -> None:
        self.table = table
        self.plan = plan
        self.schema: dict[str, Any] = dict(table.frame.collect_schema())
        self.layout = Layout(
            subject=plan.subject is not None,
            order=ROW if table.ordered else TIME,
            max_gap=None if plan.max_gap is None else plan.max_gap.value,
            split=plan.missing == "split",
            independent=plan.gaps == "independent",
        )
        self.instants = False
        self.zoned = False

    def sequences(self) -> Sequences:
        plan, table = self.plan, self.table
        if not table.ordered and plan.time is None:
            raise DataError(f"rows of a {table.name} have no order: give time=, the column that orders them")
        frame = self._selected()
        filtered = plan.where is not None
        if filtered and plan.max_gap is not None:
            frame, filtered = frame.filter(nw.col(KEEP)), False
        frame = self._checked(frame)
        linked = self.layout.link(frame, filtered=filtered)
        step = self._step(linked)
        fold = Fold(self.layout, None if step is None else step.value)
        groups = self.layout.groups(linked)
        if len(groups) == 0:
            raise self._no_rows()
        self._few_states(groups)
        fold.add(groups.iter_rows())
        if plan.bins is not None and _BAD in {int(state) for state in fold.states}:
            raise self._not_a_number(frame)
        return self._result(fold, step)

    # -- results -----------------------------------------------------------------------------------------

    def _step(self, linked: Frame) -> Duration | None:
        if self.plan.max_gap is None or self.plan.gaps == "independent":
            return None
        if self.plan.step is not None:
            return self.plan.step
        usual = self.layout.usual_step(linked)
        return None if usual is None else Duration(usual, has_unit=self.instants)

    def _result(self, fold: Fold, step: Duration | None) -> Sequences:
        plan = self.plan
        absent = sum(fold.missing.values())
        if absent and plan.missing == "refuse":
            label = min(fold.missing)
            of = f" (e.g. subject {label!r}: {fold.missing[label]})" if self.layout.subject else ""
            raise DataError(
                f"column {plan.state!r} has no state in {_rows(absent)}{of}: missing='refuse'; use 'unobserved' or "
                "fill them in"
            )
        states = self._named(fold)
        chains = sorted(chain for chain, counts in fold.counts.items() if counts)
        if not chains:
            raise DataError(f"column {plan.state!r} has no observed state: all {_rows(absent)} are missing")
        if all(sum(fold.counts[chain].values()) == 1 for chain in chains):
            gap = f" and max_gap ({plan.max_gap})" if plan.max_gap else ""
            raise DataError(
                f"every chain has exactly one record ({len(chains)} in all), so no two are correlated: check the "
                f"subject column{f' {plan.subject!r}' if plan.subject else ''}{gap}"
            )
        if fold.unsized_gap:
            raise DataError(
                f"no two records are within max_gap ({plan.max_gap}) of each other, so the length of a step is "
                "unknown: give step=, or a longer max_gap"
            )
        index = {name: i for i, name in enumerate(states)}
        counts = np.zeros((len(chains), len(states)), dtype=np.int64)
        for i, chain in enumerate(chains):
            for state, n in fold.counts[chain].items():
                counts[i, index[state]] += n
        transitions = np.zeros((len(states), len(states)), dtype=np.int64)
        for (before, state), n in fold.transitions.items():
            transitions[index[before], index[state]] += n
        lengths = tuple(
            ChainLength(fold.steps[chain], int(total)) for chain, total in zip(chains, counts.sum(axis=1), strict=True)
        )
        base = Base(
            source=self.table.name,
            state=plan.state,
            subject=plan.subject,
            time=plan.time,
            max_gap=None if plan.max_gap is None else str(plan.max_gap),
            step=None if step is None else str(step),
            bins=plan.bins,
            where=None if plan.where is None else plan.where.text,
            missing=plan.missing,
            gaps=plan.gaps,
        )
        return Sequences(
            states=states,
            counts=counts,
            transitions=transitions,
            length=lengths,
            subjects=len({label for label, _ in chains}),
            base=base,
        )
