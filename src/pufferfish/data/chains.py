"""Rows become chains: segments, gaps and transitions by window expressions, then a fold of few groups.

Within a subject, in order, each kept row is compared with the kept row before it:

- **linked**: one step of the chain; a transition, if both states are observed;
- **a gap** of g: not a transition. Under ``gaps="unobserved"`` it is some number of steps whose records were
  not observed; under ``gaps="independent"`` the row begins a chain of its own.

By time, rows at most ``max_gap`` apart are linked. By position, rows next to each other in the table are
linked, and a hole of n left-out rows is n + 1 steps. A missing state is a row that takes a step and is not
observed; with ``missing="split"`` it is left out, and leaves a gap however short.

The engine counts rows by (chain, state before, state, linked, gap): a result about as large as the number of
chains times the transitions that occur, which is all that is ever held here.
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
_GAP, _SEGMENT, _COUNT, _EARLIER = "__pf_gap", "__pf_segment", "__pf_count", "__pf_earlier"
_LASTED = "__pf_lasted"
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
    """

    subject: bool
    order: str
    timed: bool
    max_gap: int | float | None
    split: bool
    independent: bool
    clock: bool = False

    def order_faults(self, frame: Frame) -> Frame:
        """Add to rows the time before (``earlier``) and the difference; null for the first of a subject."""
        earlier = self._over(nw.col(TIME).shift(1))
        return frame.with_columns(earlier.alias(_EARLIER)).with_columns((nw.col(TIME) - nw.col(_EARLIER)).alias(_APART))

    def fault(self, *, duplicate: bool) -> nw.Expr:
        """Whether a row of :meth:`order_faults` repeats the time before it, or goes back; never null."""
        apart = nw.col(_APART)
        return ~apart.is_null() & ((apart == 0) if duplicate else (apart < 0))

    def fault_counts(self, frame: Frame) -> tuple[int, int]:
        """Count the rows that go back in time, and of rows that repeat the time before them."""
        counted = self.order_faults(frame).select(
            count_where(self.fault(duplicate=False)).alias("back"),
            count_where(self.fault(duplicate=True)).alias("same"),
        )
        back, same = counted.collect().row(0)
        return int(back or 0), int(same or 0)

    @property
    def earlier(self) -> str:
        """Column of :meth:`order_faults` with the time before."""
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
        return frame.with_columns(linked.alias(_LINKED))

    def groups(self, linked: Frame) -> nw.DataFrame[Any]:
        """Count linked rows by chain, state before, state, whether linked, and gap."""
        is_linked = nw.col(_LINKED)
        before = nw.when(is_linked).then(nw.col(_BEFORE)).alias(_BEFORE)
        if self.independent:
            second = self._over((~is_linked).cast(nw.Int64).cum_sum()).alias(_SEGMENT)
        else:
            second = nw.when(~is_linked).then(nw.col(_APART)).alias(_GAP)
        extra = [nw.lit("").alias(SUBJECT)] if not self.subject else []
        frame = linked.with_columns(before, second, *extra)
        keys = [SUBJECT, _SEGMENT if self.independent else _GAP, _BEFORE, STATE, _LINKED]
        if self.clock:
            frame = frame.with_columns(nw.when(is_linked).then(nw.col(_BEGAN)).alias(_BEGAN))
            keys.append(_BEGAN)
        return frame.group_by(keys).agg(nw.len().alias(_COUNT)).select(*keys, _COUNT).collect()

    def pairs_apart(self, linked: Frame, steps: int) -> nw.DataFrame[Any]:
        """Count pairs of observed states so many linked steps apart: subject, earlier state, state, and number."""
        run = self._over((~nw.col(_LINKED)).cast(nw.Int64).cum_sum()).alias(_SEGMENT)
        extra = [] if self.subject else [nw.lit("").alias(SUBJECT)]
        frame = linked.with_columns(run, *extra).with_columns(
            self._over(nw.col(STATE).shift(steps)).alias(_BEFORE),
            self._over(nw.col(_SEGMENT).shift(steps)).alias(_EARLIER),
        )
        together = ~nw.col(_EARLIER).is_null() & (nw.col(_EARLIER) == nw.col(_SEGMENT))
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
            (~stayed).cast(nw.Int64).alias(_SEGMENT), (known & ~stayed).cast(nw.Int64).alias(_GAP), *one
        )
        frame = frame.with_columns(
            self._over(nw.col(_SEGMENT).cum_sum()).alias(_SEGMENT),
            self._over(nw.col(_GAP).shift(-1)).fill_null(0).alias(_EARLIER),
        ).filter(~nw.col(STATE).is_null())
        runs = frame.group_by(SUBJECT, _SEGMENT, STATE).agg(
            nw.len().alias(_LASTED), nw.col(_GAP).max(), nw.col(_EARLIER).max()
        )
        keys = [STATE, _LASTED, _EARLIER]
        seen = runs.filter(nw.col(_GAP) > 0)
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


def keep_rows(frame: Frame, condition: nw.Expr) -> Frame:
    """Filter rows that windows will run over: in pandas those need an index that counts the rows left."""
    kept = frame.filter(condition)
    return nw.maybe_reset_index(kept.collect()).lazy() if kept.implementation.is_pandas_like() else kept


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
    missing: dict[str, int] = field(default_factory=dict[str, int])
    unsized_gap: bool = False

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Add groups: rows of (subject, segment or gap, state before, state, linked, and a phase if any, count)."""
        for subject, second, before, state, linked, *phase, number in rows:
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
                if phase:
                    here = self.by_phase.setdefault(int(phase[0]), {})
                    here[before, state] = here.get((before, state), 0) + n
            first = not linked and (self.layout.independent or is_absent(second))
            self.steps[chain] = self.steps.get(chain, 0) + n * (1 if linked or first else self._steps(second))

    def _steps(self, gap: Any) -> int:
        if self.layout.max_gap is None:
            return int(gap)
        if self.step is None:
            self.unsized_gap = True
            return 2
        return gap_steps(int(gap) if float(gap).is_integer() else float(gap), self.step)

    def relabel(self, labels: Mapping[Any, str]) -> None:
        """Rename states; those that get the same name become one."""
        self.transitions = _renamed(self.transitions, labels)
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


def _renamed(transitions: Mapping[tuple[Any, Any], int], labels: Mapping[Any, str]) -> dict[tuple[Any, Any], int]:
    renamed: dict[tuple[Any, Any], int] = {}
    for (before, state), n in transitions.items():
        key = (labels[before], labels[state])
        renamed[key] = renamed.get(key, 0) + n
    return renamed
