"""Rows become chains: segments, gaps and transitions by window expressions, then a fold of few groups.

Within a subject, in order, each kept row is compared with the kept row before it:

- **linked**: one step of the chain; a transition, if both states are observed;
- **a gap** of g: not a transition. Under ``gaps="unobserved"`` it is some number of steps whose records were
  not observed; under ``gaps="independent"`` the row begins a chain of its own.

By time, rows at most ``max_gap`` apart are linked. By position, rows next to each other in the table are
linked, and a hole of n left-out rows is n + 1 steps. A missing state is a row that takes a step and is not
observed; with ``missing="split"`` it is left out, and leaves a gap however short.

The engine counts rows by (chain, state before, state, linked) and adds up the steps of their gaps: a result about as
large as the number of chains times the transitions that occur, which is all that is ever held here. Only gaps between
times that are no whole numbers come one by one, to be divided exactly.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

import narwhals as nw

from pufferfish.data.columns import count_where, is_absent
from pufferfish.theta.states import state_label

__all__ = ["KEEP", "PHASE", "STATE", "SUBJECT", "TIME", "Fold", "Frame", "Layout", "gap_steps", "keep_rows"]

SUBJECT, TIME, STATE, KEEP = "__pf_subject", "__pf_time", "__pf_state", "__pf_keep"
_POSITION, _BEFORE, _APART, _LINKED = "__pf_position", "__pf_before", "__pf_apart", "__pf_linked"
_SECOND, _STEPS, _COUNT, _EARLIER = "__pf_second", "__pf_steps", "__pf_count", "__pf_earlier"
_LASTED, _RUN = "__pf_lasted", "__pf_run"
PHASE, _BEGAN = "__pf_phase", "__pf_began"

Frame = nw.LazyFrame[Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows are laid out in chains.

    Parameters
    ----------
    subject : bool
        Whether rows belong to subjects.
    order : str
        Column that orders rows: their number in the source, or time.
    timed : bool
        Whether rows have a time.
    max_gap : int or float or None
        Longest time between linked rows, in the unit of the time column; None for adjacency by position.
    split : bool
        Whether rows with a missing state are left out, leaving a gap.
    independent : bool
        Whether every segment is its own chain.
    clock : bool
        Whether rows have a phase of a clock, and transitions are counted by the phase that they begin in.
    memory : int
        How many records before each one are looked at.
    """

    subject: bool
    order: str
    timed: bool
    max_gap: int | float | None
    split: bool
    independent: bool
    clock: bool = False
    memory: int = 1

    def with_earlier(self, frame: Frame) -> Frame:
        """Add to rows the time before (``earlier``) and the difference; null for the first of a subject."""
        if not self.timed:
            return frame
        earlier = self._over(nw.col(TIME).shift(1))
        return frame.with_columns(earlier.alias(_EARLIER)).with_columns((nw.col(TIME) - nw.col(_EARLIER)).alias(_APART))

    def fault(self, *, duplicate: bool) -> nw.Expr:
        """Whether a row of :meth:`with_earlier` repeats the time before it, or goes back; never null."""
        apart = nw.col(_APART)
        return ~apart.is_null() & ((apart == 0) if duplicate else (apart < 0))

    def fault_counts(self, frame: Frame) -> tuple[int, int]:
        """Count rows of :meth:`with_earlier` that go back in time, and those that repeat the time before them."""
        counted = frame.select(
            count_where(self.fault(duplicate=False)).alias("back"),
            count_where(self.fault(duplicate=True)).alias("same"),
        )
        back, same = counted.collect().row(0)
        return int(back or 0), int(same or 0)

    @property
    def earlier(self) -> str:
        """Column of :meth:`with_earlier` with the time before."""
        return _EARLIER

    def link(self, frame: Frame, *, filtered: bool) -> Frame:
        """Compare each kept row with the one before it; ``filtered`` if the frame has the ``KEEP`` column."""
        by_position = self.max_gap is None
        if by_position or self.split:
            if by_position and not self.subject and self.order != TIME:
                position = nw.col(self.order)
            else:
                position = self._over(nw.col(self.order).cum_count())
            frame = frame.with_columns(position.cast(nw.Int64).alias(_POSITION))
        if filtered:
            frame = keep_rows(frame, nw.col(KEEP))
        if self.split:
            frame = keep_rows(frame, ~nw.col(STATE).is_null())
        axis = nw.col(_POSITION if by_position else TIME)
        frame = frame.with_columns(
            (axis - self._over(axis.shift(1))).alias(_APART), self._over(nw.col(STATE).shift(1)).alias(_BEFORE)
        )
        if self.timed and by_position:
            frame = frame.with_columns((nw.col(TIME) - self._over(nw.col(TIME).shift(1))).alias(_LASTED))
        if self.clock:
            frame = frame.with_columns(self._over(nw.col(PHASE).shift(1)).alias(_BEGAN))
        apart = nw.col(_APART)
        linked = ~apart.is_null() & (apart <= (1 if self.max_gap is None else self.max_gap))
        if self.split and not by_position:
            hole = nw.col(_POSITION) - self._over(nw.col(_POSITION).shift(1))
            linked = linked & ~hole.is_null() & (hole == 1)
        frame = frame.with_columns(linked.alias(_LINKED))
        for lag in range(2, self.memory + 1):  # what was before the record before, where that one was linked too
            earlier = nw.when(nw.col(_LINKED)).then(nw.col(_lag(lag - 1))).alias(_lag(lag))
            frame = frame.with_columns(earlier).with_columns(self._over(nw.col(_lag(lag)).shift(1)).alias(_lag(lag)))
        return frame

    def groups(self, linked: Frame, step: int | float | None) -> Frame:
        """Count linked rows by chain, state before, state and whether linked, and add up their steps.

        Gaps that are not divided by whole numbers count as no step here, and rows are counted by gap too.
        """
        is_linked, apart = nw.col(_LINKED), nw.col(_APART)
        is_gap = ~is_linked & ~apart.is_null()
        second, in_gap = nw.lit(0), nw.lit(0)
        if self.independent:
            second, in_gap = self._over((~is_linked).cast(nw.Int64).cum_sum()), nw.lit(1)
        elif self.max_gap is None:
            in_gap = apart
        elif isinstance(step, int) and linked.collect_schema()[TIME].is_integer():
            in_gap = _whole_steps(apart, step)
        else:
            second = nw.when(is_gap).then(apart)
        lags = [_lag(lag) for lag in range(2, self.memory + 1)]
        began = [_BEGAN] if self.clock else []
        frame = linked.with_columns(
            nw.when(is_linked).then(nw.col(_BEFORE)).alias(_BEFORE),
            *(nw.when(is_linked).then(nw.col(name)).alias(name) for name in (*began, *lags)),
            second.alias(_SECOND),
            nw.when(is_gap).then(in_gap).otherwise(nw.lit(1)).cast(nw.Int64).alias(_STEPS),
            *([] if self.subject else [nw.lit("").alias(SUBJECT)]),
        )
        keys = [SUBJECT, _SECOND, _BEFORE, STATE, _LINKED, *began, *lags]
        counted = frame.group_by(keys).agg(nw.len().alias(_COUNT), nw.col(_STEPS).sum())
        return counted.select(*keys, _COUNT, _STEPS)

    def pairs_apart(self, linked: Frame, steps: int) -> nw.DataFrame[Any]:
        """Count pairs of observed states so many linked steps apart: subject, earlier state, state, and number."""
        run = self._over((~nw.col(_LINKED)).cast(nw.Int64).cum_sum()).alias(_RUN)
        extra = [] if self.subject else [nw.lit("").alias(SUBJECT)]
        frame = linked.with_columns(run, *extra).with_columns(
            self._over(nw.col(STATE).shift(steps)).alias(_BEFORE),
            self._over(nw.col(_RUN).shift(steps)).alias(_EARLIER),
        )
        together = ~nw.col(_EARLIER).is_null() & (nw.col(_EARLIER) == nw.col(_RUN))
        both = frame.filter(together & ~nw.col(_BEFORE).is_null() & ~nw.col(STATE).is_null())
        keys = [SUBJECT, _BEFORE, STATE]
        return both.group_by(keys).agg(nw.len().alias(_COUNT)).select(*keys, _COUNT).collect()

    def steps(self, linked: Frame) -> nw.DataFrame[Any]:
        """Count transitions with their past: subject, phase or null, two states before or null, before, state, number.

        The state two steps before is null where there is a gap, or it was not observed.
        """
        known = nw.col(_LINKED) & ~nw.col(_BEFORE).is_null() & ~nw.col(STATE).is_null()
        one = [] if self.subject else [nw.lit("").alias(SUBJECT)]
        frame = linked.with_columns(nw.when(nw.col(_LINKED)).then(nw.col(_BEFORE)).alias(_EARLIER), *one)
        frame = frame.with_columns(self._over(nw.col(_EARLIER).shift(1)).alias(_EARLIER)).filter(known)
        keys = [SUBJECT, *([_BEGAN] if self.clock else []), _EARLIER, _BEFORE, STATE]
        return frame.group_by(keys).agg(nw.len().alias(_COUNT)).select(*keys, _COUNT).collect()

    def by_phase(self, linked: Frame) -> nw.DataFrame[Any]:
        """Count observed records by phase and state."""
        frame = linked.filter(~nw.col(STATE).is_null())
        return frame.group_by(PHASE, STATE).agg(nw.len().alias(_COUNT)).select(PHASE, STATE, _COUNT).collect()

    def stays(self, linked: Frame) -> nw.DataFrame[Any]:
        """Count stays whose beginning was seen: state, records, whether the end was seen (0 or 1), and number.

        A stay is a run of equal states. Its end is not seen where a gap or an unobserved record cuts it off.
        """
        known = nw.col(_LINKED) & ~nw.col(_BEFORE).is_null() & ~nw.col(STATE).is_null()
        stayed = known & (nw.col(_BEFORE) == nw.col(STATE))
        one = [] if self.subject else [nw.lit("").alias(SUBJECT)]
        frame = linked.with_columns(
            (~stayed).cast(nw.Int64).alias(_RUN), (known & ~stayed).cast(nw.Int64).alias(_SECOND), *one
        )
        frame = frame.with_columns(
            self._over(nw.col(_RUN).cum_sum()).alias(_RUN),
            self._over(nw.col(_SECOND).shift(-1)).fill_null(0).alias(_EARLIER),
        ).filter(~nw.col(STATE).is_null())
        runs = frame.group_by(SUBJECT, _RUN, STATE).agg(
            nw.len().alias(_LASTED), nw.col(_SECOND).max(), nw.col(_EARLIER).max()
        )
        keys = [STATE, _LASTED, _EARLIER]
        seen = runs.filter(nw.col(_SECOND) > 0)
        return seen.group_by(keys).agg(nw.len().alias(_COUNT)).select(*keys, _COUNT).collect()

    def usual_step(self, linked: Frame) -> int | float | None:
        """Most frequent time between linked rows, the shortest of those that tie; None if no rows are linked."""
        lasted = _LASTED if self.max_gap is None else _APART
        counted = linked.filter(nw.col(_LINKED)).group_by(lasted).agg(nw.len().alias(_COUNT))
        first = counted.sort(_COUNT, lasted, descending=[True, False]).head(1).collect()
        if len(first) == 0:
            return None
        value = first[lasted].to_list()[0]
        return int(value) if float(value).is_integer() else float(value)

    def _over(self, window: nw.Expr) -> nw.Expr:
        return window.over(SUBJECT, order_by=self.order) if self.subject else window.over(order_by=self.order)


def _lag(lag: int) -> str:
    return _BEFORE if lag == 1 else f"{_BEFORE}_{lag}"


def keep_rows(frame: Frame, condition: nw.Expr) -> Frame:
    """Filter rows that windows will run over: in pandas those need an index that counts the rows left."""
    kept = frame.filter(condition)
    return nw.maybe_reset_index(kept.collect()).lazy() if kept.implementation.is_pandas_like() else kept


def _whole_steps(gap: nw.Expr, step: int) -> nw.Expr:
    """Do what :func:`gap_steps` does, on an engine and for whole numbers."""
    fits = gap // step
    steps = fits + (gap > fits * step).cast(nw.Int64)
    return nw.when(steps > 2).then(steps).otherwise(nw.lit(2))


def gap_steps(gap: int | float, step: int | float) -> int:
    """Count the steps in a gap: gap/step rounded up, and at least 2, so that one record at least is unobserved.

    A longer chain never leaks less, so rounding up goes towards privacy.

    Examples
    --------
    >>> gap_steps(25, 10), gap_steps(11, 10), gap_steps(24, 10)
    (3, 2, 3)
    """
    return max(2, ceil(Fraction(gap) / Fraction(step)))


@dataclass(slots=True)
class Fold:
    """Groups of rows added up per chain, in plain Python: the result of an engine is small by now.

    Parameters
    ----------
    layout : Layout
        How rows are laid out.
    step : int or float or None
        Length of a step; None by position, where gaps are already steps, or if there are no gaps.
    """

    layout: Layout
    step: int | float | None
    counts: dict[tuple[str, int], dict[Any, int]] = field(default_factory=dict[tuple[str, int], dict[Any, int]])
    steps: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    transitions: dict[tuple[Any, Any], int] = field(default_factory=dict[tuple[Any, Any], int])
    by_phase: dict[int, dict[tuple[Any, Any], int]] = field(default_factory=dict[int, dict[tuple[Any, Any], int]])
    histories: dict[tuple[Any, ...], int] = field(default_factory=dict[tuple[Any, ...], int])
    missing: dict[str, int] = field(default_factory=dict[str, int])
    unsized_gap: bool = False

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Add groups: rows of subject, segment or gap, state before, state, linked, what else counts, n and steps.

        What else counts is the phase at which a step began, or what was before the state before.
        """
        for subject, second, before, state, linked, *more, number, steps in rows:
            label, n = state_label(subject), int(number)
            chain = (label, int(second) if self.layout.independent else 0)
            counts = self.counts.setdefault(chain, {})
            observed = not is_absent(state)
            if observed:
                counts[state] = counts.get(state, 0) + n
            else:
                self.missing[label] = self.missing.get(label, 0) + n
            if linked and observed and not is_absent(before):
                self.transitions[before, state] = self.transitions.get((before, state), 0) + n
                if self.layout.clock:
                    here = self.by_phase.setdefault(int(more[0]), {})
                    here[before, state] = here.get((before, state), 0) + n
                elif not any(is_absent(earlier) for earlier in more):
                    history = (*reversed(more), before, state)
                    self.histories[history] = self.histories.get(history, 0) + n
            gap = None if self.layout.independent or is_absent(second) else second
            self.steps[chain] = self.steps.get(chain, 0) + int(steps) + (n * self._steps(gap) if gap else 0)

    def _steps(self, gap: Any) -> int:
        if self.step is None:
            self.unsized_gap = True
            return 2
        return gap_steps(int(gap) if float(gap).is_integer() else float(gap), self.step)

    def relabel(self, labels: Mapping[Any, str]) -> None:
        """Rename states; those that get the same name become one."""
        self.transitions = _renamed(self.transitions, labels)
        self.histories = _renamed(self.histories, labels)
        self.by_phase = {phase: _renamed(found, labels) for phase, found in self.by_phase.items()}
        for chain, counts in self.counts.items():
            merged: dict[Any, int] = {}
            for state, n in counts.items():
                merged[labels[state]] = merged.get(labels[state], 0) + n
            self.counts[chain] = merged

    @property
    def states(self) -> set[Any]:
        """The states that occur."""
        return {state for counts in self.counts.values() for state in counts}

    @property
    def totals(self) -> dict[Any, int]:
        """Observed records of each state."""
        totals: dict[Any, int] = {}
        for counts in self.counts.values():
            for state, n in counts.items():
                totals[state] = totals.get(state, 0) + n
        return totals


def _renamed(counted: Mapping[Any, int], labels: Mapping[Any, str]) -> dict[Any, int]:
    renamed: dict[Any, int] = {}
    for states, n in counted.items():
        key = tuple(labels[state] for state in states)
        renamed[key] = renamed.get(key, 0) + n
    return renamed
