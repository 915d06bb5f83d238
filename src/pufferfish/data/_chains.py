"""Rows become chains: segments, gaps and transitions by window expressions, which an engine then counts.

Within a subject, in order, each kept row is compared with the kept row before it. It is **linked** by one step of the
chain, a transition if both states are observed; or comes after **a gap**, which is some steps whose records were not
observed, or with ``gaps="independent"`` begins a chain of its own.

By time, rows at most ``max_gap`` apart are linked. By position, rows next to each other in the table are
linked, and a hole of n left-out rows is n + 1 steps. A missing state is a row that takes a step and is not
observed; with ``missing="split"`` it is left out, and leaves a gap however short.

The engine counts rows by (chain, state before, state, linked) and adds up the steps of their gaps: a result about as
large as the number of chains times the transitions that occur, which is all that is ever held here. Only gaps between
times that are no whole numbers come one by one, to be divided exactly.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import ceil
from operator import or_
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from pufferfish.data._columns import count_where, is_absent
from pufferfish.theta.states import state_label

SUBJECT, TIME, STATE, KEEP = "__pf_subject", "__pf_time", "__pf_state", "__pf_keep"
_POSITION, _BEFORE, _APART, _LINKED = "__pf_position", "__pf_before", "__pf_apart", "__pf_linked"
_SECOND, _STEPS, _COUNT, EARLIER = "__pf_second", "__pf_steps", "__pf_count", "__pf_earlier"
LASTED, _RUN, _SEGMENT = "__pf_lasted", "__pf_run", "__pf_segment"
PHASE, _BEGAN = "__pf_phase", "__pf_began"
CARRIED = "__pf_carried"
CELL = "__pf_cell_"  # begins the names of the columns that say in which group of each grouping a row is

CHAIN_KEYS = (SUBJECT, _SECOND, STATE)
"""By what chains are counted: subject, segment or gap, and state; then come number and steps."""

Frame = nw.LazyFrame[Any]


class Gaps(NamedTuple):
    """What the times between rows say."""

    late: int = 0  # how many gaps are hardly longer than records may be apart
    longest_late: float = 0  # the longest of these
    longest: float = 0  # the longest of all
    crossed: int = 0  # how many rows come after a change of clocks that is known
    shortest: float | None = None  # the shortest time between linked rows

    def and_of(self, more: "Gaps") -> "Gaps":
        """Return what these and those of more rows say."""
        known = [shortest for shortest in (self.shortest, more.shortest) if shortest is not None]
        return Gaps(
            self.late + more.late,
            max(self.longest_late, more.longest_late),
            max(self.longest, more.longest),
            self.crossed + more.crossed,
            min(known, default=None),
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows are laid out in chains."""

    subject: bool  # whether rows belong to subjects
    order: str  # the column that orders rows: their number in the source, or time
    timed: bool  # whether rows have a time
    max_gap: int | float | None  # longest time between linked rows, as times are; None for adjacency by position
    split: bool  # whether rows with a missing state are left out, leaving a gap
    independent: bool  # whether every segment is its own chain
    clock: bool = False  # whether transitions are counted by the phase of a clock that they begin in
    memory: int = 1  # how many records before each one are looked at
    batched: bool = False  # whether rows come in batches, each with the last rows before it, marked ``CARRIED``
    groupings: int = 0  # how many columns say in which group a row is

    def in_order(self, frame: Frame) -> Frame:
        """Add to rows their position, the time before (``earlier``) and the difference, null for a subject's first."""
        if self.max_gap is None or self.split:
            if self.max_gap is None and not self.subject and self.order != TIME:
                position = nw.col(self.order)
            else:
                counted = nw.when(~nw.col(CARRIED)).then(nw.col(self.order)) if self.batched else nw.col(self.order)
                position = self._running(counted.cum_count(), _POSITION)
            frame = frame.with_columns(position.cast(nw.Int64).alias(_POSITION))
        if not self.timed:
            return frame
        earlier = self._before(nw.col(TIME))
        return frame.with_columns(earlier.alias(EARLIER)).with_columns((nw.col(TIME) - nw.col(EARLIER)).alias(_APART))

    def faults(self, frame: Frame, *, duplicate: bool) -> Frame:
        """Return the rows of :meth:`in_order` that repeat the time before them, or go back."""
        apart = nw.col(_APART)
        return self._new(frame).filter(~apart.is_null() & ((apart == 0) if duplicate else (apart < 0)))

    def fault_counts(self, frame: Frame) -> dict[bool, int]:
        """Count the rows of :meth:`in_order` that repeat the time before them (True), and those that go back."""
        apart = nw.col(_APART)
        of_kinds = [count_where(~apart.is_null() & fault).alias(str(fault)) for fault in (apart < 0, apart == 0)]
        back, same = self._new(frame).select(*of_kinds).collect().row(0)
        return {True: int(same or 0), False: int(back or 0)}

    def link(self, frame: Frame, *, filtered: bool) -> Frame:
        """Compare kept rows of :meth:`in_order` each with the one before; ``filtered`` if they have ``KEEP``."""
        by_position = self.max_gap is None
        if filtered:
            frame = frame.filter(nw.col(KEEP))
        if self.split:
            frame = frame.filter(~nw.col(STATE).is_null())
        apart = self._axis - self._before(self._axis)
        frame = frame.with_columns(apart.alias(_APART), self._before(nw.col(STATE)).alias(_BEFORE))
        if self.timed and by_position:
            frame = frame.with_columns((nw.col(TIME) - self._before(nw.col(TIME))).alias(LASTED))
        if self.clock:
            frame = frame.with_columns(self._before(nw.col(PHASE)).alias(_BEGAN))
        apart = nw.col(_APART)
        linked = ~apart.is_null() & (apart <= (1 if self.max_gap is None else self.max_gap))
        if self.split and not by_position:
            hole = nw.col(_POSITION) - self._before(nw.col(_POSITION))
            linked = linked & ~hole.is_null() & (hole == 1)
        frame = frame.with_columns(linked.alias(_LINKED))
        if self.independent:
            begins = ~nw.col(_LINKED) & ~nw.col(CARRIED) if self.batched else ~nw.col(_LINKED)
            segment = self._running(begins.cast(nw.Int64).cum_sum(), _SEGMENT)
            frame = frame.with_columns(segment.alias(_SEGMENT))
        for lag in range(2, self.memory + 1):  # what was before the record before, where that one was linked too
            earlier = nw.when(nw.col(_LINKED)).then(nw.col(_lag(lag - 1))).alias(_lag(lag))
            frame = frame.with_columns(earlier).with_columns(self._before(nw.col(_lag(lag))).alias(_lag(lag)))
        return frame

    def groups(self, linked: Frame, step: int | float | None) -> Frame:
        """Count linked rows, and add up the steps they take; gaps that no engine can divide are counted by length."""
        is_linked, apart = nw.col(_LINKED), nw.col(_APART)
        is_gap = ~is_linked & ~apart.is_null()
        second, in_gap = nw.lit(0).cast(nw.Int64), nw.lit(0)
        if self.independent:
            second, in_gap = nw.col(_SEGMENT), nw.lit(1)
        elif self.max_gap is None:
            in_gap = apart
        elif isinstance(step, int) and linked.collect_schema()[TIME].is_integer():
            in_gap = _whole_steps(apart, step)
        else:
            second = nw.when(is_gap).then(apart)
        marked = self._new(linked).with_columns(
            *(nw.when(is_linked).then(nw.col(name)).alias(name) for name in (_BEFORE, *self._more)),
            second.alias(_SECOND),
            nw.when(is_gap).then(in_gap).otherwise(nw.lit(1)).cast(nw.Int64).alias(_STEPS),
            self._named,
        )
        return counted(marked, [SUBJECT, _SECOND, _BEFORE, STATE, _LINKED, *self._more], steps=True)

    @property
    def transition_keys(self) -> list[str]:
        """By what linked rows are counted: state before, state, and phase or what was before it; then comes number."""
        return [_BEFORE, STATE, *self._more]

    def transitions_of(self, groups: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
        """Add up groups of linked rows by the keys of transitions."""
        return added_up(groups.filter(nw.col(_LINKED)), self.transition_keys)

    @property
    def totals(self) -> list[str]:
        """Columns in which running totals go on from batch to batch."""
        return [*([_POSITION] if self.max_gap is None or self.split else []), *([_SEGMENT] if self.independent else [])]

    @property
    def _more(self) -> list[str]:
        """What transitions are counted by besides: the phase they begin in, or what was before the state before."""
        return [*([_BEGAN] if self.clock else []), *(_lag(lag) for lag in range(2, self.memory + 1))]

    def pairs_apart(self, linked: Frame, steps: int) -> nw.DataFrame[Any]:
        """Count pairs of observed states so many linked steps apart: subject, earlier state, state, and number."""
        run = self._over((~nw.col(_LINKED)).cast(nw.Int64).cum_sum()).alias(_RUN)
        frame = linked.with_columns(run, self._named).with_columns(
            self._over(nw.col(STATE).shift(steps)).alias(_BEFORE), self._over(nw.col(_RUN).shift(steps)).alias(EARLIER)
        )
        together = ~nw.col(EARLIER).is_null() & (nw.col(EARLIER) == nw.col(_RUN))
        both = frame.filter(together & ~nw.col(_BEFORE).is_null() & ~nw.col(STATE).is_null())
        return counted(both, [SUBJECT, _BEFORE, STATE]).collect()

    def steps(self, linked: Frame, block: float) -> nw.DataFrame[Any]:
        """Count transitions by subject, block of time (:meth:`runs`), phase, state two before, before, and state."""
        known = nw.col(_LINKED) & ~nw.col(_BEFORE).is_null() & ~nw.col(STATE).is_null()
        earlier = nw.when(nw.col(_LINKED)).then(nw.col(_BEFORE)).alias(EARLIER)
        frame = linked.with_columns(earlier, self._block(block), self._named)
        frame = frame.with_columns(self._over(nw.col(EARLIER).shift(1)).alias(EARLIER)).filter(known)
        return counted(frame, [SUBJECT, _SEGMENT, *([_BEGAN] if self.clock else []), EARLIER, _BEFORE, STATE]).collect()

    def by_phase(self, linked: Frame) -> nw.DataFrame[Any]:
        """Count observed records by phase and state."""
        return counted(linked.filter(~nw.col(STATE).is_null()), [PHASE, STATE]).collect()

    @staticmethod
    def one_cell_each(linked: Frame, alike: Iterable[Sequence[Any]]) -> Frame:
        """Return the rows with the first of cells that hold the same state (1 and 1.0, or merged ones) for all."""
        for first, *others in alike:
            for name in (STATE, _BEFORE) if others else ():
                same = nw.when(nw.col(name).is_in(others)).then(nw.lit(first)).otherwise(nw.col(name))
                linked = linked.with_columns(same.alias(name))
        return linked

    def runs(self, linked: Frame, block: float) -> nw.DataFrame[Any]:
        """Count runs of equal states: subject, block of time, state, records, whether begun, next state, and number.

        A run has begun (1) where the record before it had another state; else its beginning was not seen (0). The next
        state is null where a gap or an unobserved record cuts the run off. It is of the block that it begins in: blocks
        are so long in the unit of the axis, which is time where rows have one.
        """
        known = nw.col(_LINKED) & ~nw.col(_BEFORE).is_null() & ~nw.col(STATE).is_null()
        moved = known & (nw.col(_BEFORE) != nw.col(STATE))
        frame = linked.with_columns(
            (~known | moved).cast(nw.Int64).alias(_RUN),
            moved.cast(nw.Int64).alias(_SECOND),
            nw.when(moved).then(nw.col(STATE)).alias(EARLIER),
            self._block(block),
            self._named,
        )
        frame = frame.with_columns(
            self._over(nw.col(_RUN).cum_sum()).alias(_RUN), self._over(nw.col(EARLIER).shift(-1)).alias(EARLIER)
        ).filter(~nw.col(STATE).is_null())
        runs = frame.group_by(SUBJECT, _RUN, STATE).agg(
            nw.len().alias(LASTED), nw.col(_SECOND).max(), nw.col(EARLIER).max(), nw.col(_SEGMENT).min()
        )
        return counted(runs, [SUBJECT, _SEGMENT, STATE, LASTED, _SECOND, EARLIER]).collect()

    def _block(self, block: float) -> nw.Expr:
        axis = nw.col(TIME if self.timed else _POSITION)
        return (axis // block).cast(nw.Int64).alias(_SEGMENT)

    @property
    def cell_keys(self) -> list[str]:
        """By what rows are counted for groups: the columns that say in which group they are, and state."""
        return [*(f"{CELL}{i}" for i in range(self.groupings)), STATE]

    def in_cells(self, linked: Frame) -> Frame:
        """Return what groups are counted by, of all rows that were kept."""
        return self._new(linked).select(self.cell_keys)

    @property
    def cell_step_keys(self) -> list[str]:
        """By what the same rows are counted with their steps: group, state before where they are linked, and state."""
        return [*self.cell_keys[:-1], _BEFORE, STATE]

    def steps_in_cells(self, linked: Frame) -> Frame:
        """Return what groups and the steps that lead to their rows are counted by, of all rows that were kept."""
        before = nw.when(nw.col(_LINKED)).then(nw.col(_BEFORE)).alias(_BEFORE)
        return self._new(linked).with_columns(before).select(self.cell_step_keys)

    def observed(self, linked: Frame, *, timed: bool) -> Frame:
        """Return subject, time (or the number of the row in its series) and state of the rows that have a state."""
        axis = nw.col(TIME if timed else _POSITION)
        rows = self._new(linked).filter(~nw.col(STATE).is_null())
        return rows.select(self._named, axis.alias(TIME), nw.col(STATE))

    def apart(self, linked: Frame, step: int) -> Frame:
        """Return the rows that are not one step after the row before: subject, place, how far apart, whether linked."""
        apart = nw.col(_APART)
        rows = self._new(linked).filter(~apart.is_null() & ((apart != step) | ~nw.col(_LINKED)))
        return rows.select(self._named, self._axis.alias(_SECOND), apart, nw.col(_LINKED))

    def ends(self, linked: Frame, step: int) -> Frame:
        """Return each subject's first and last place, and how many rows are no whole steps after the one before."""
        apart = nw.col(_APART)
        near = apart <= (1 if self.max_gap is None else self.max_gap)
        off = (apart // step * step != apart) | (near != (apart == step))  # not every engine has a remainder
        counted_off = nw.when(~apart.is_null() & off).then(nw.lit(1)).otherwise(nw.lit(0)).cast(nw.Int64)
        rows = self._new(linked).select(self._named, self._axis.alias(_SECOND), counted_off.alias(_STEPS))
        places = nw.col(_SECOND).min().alias(_BEGAN), nw.col(_SECOND).max().alias(_SEGMENT)
        ends = rows.group_by(SUBJECT).agg(*places, nw.col(_STEPS).sum())
        return ends.select(SUBJECT, _BEGAN, _SEGMENT, _STEPS)

    def steps_of(self, linked: Frame) -> Frame:
        """Return the time since the row before, of rows that are linked."""
        lasted = LASTED if self.max_gap is None else _APART
        return self._new(linked).filter(nw.col(_LINKED)).select(nw.col(lasted).alias(LASTED))

    def gaps(self, linked: Frame, step: float | None, changes: Sequence[int]) -> Gaps:
        """Look at the times between rows: one hardly longer than ``max_gap``, and no whole number of steps, is late."""
        shortest = nw.when(nw.col(_LINKED)).then(nw.col(LASTED if self.max_gap is None else _APART)).min()
        if self.max_gap is None:
            return Gaps(shortest=self._new(linked).select(shortest.alias(_BEGAN)).collect().item())
        apart, longest = nw.col(_APART), self.max_gap
        late = ~apart.is_null() & (apart > longest) & (apart * 4 <= longest * 5)
        if step is not None:
            late = late & (apart // step * step != apart)  # not every engine has a remainder
        through = [~apart.is_null() & (nw.col(TIME) >= change) & (nw.col(TIME) - apart < change) for change in changes]
        one_chain = nw.col(_LINKED) if self.independent else ~apart.is_null()
        none = nw.lit(0)
        gaps = self._new(linked).select(
            count_where(late).alias(_COUNT),
            nw.when(late).then(apart).otherwise(none).max().alias(LASTED),
            nw.when(one_chain).then(apart).otherwise(none).max().alias(_APART),
            count_where(one_chain & reduce(or_, through, apart.is_null())).alias(_RUN),
            shortest.alias(_BEGAN),
        )
        number, most, most_of_all, crossed, least = gaps.collect().row(0)
        return Gaps(int(number or 0), most or 0, most_of_all or 0, int(crossed or 0), least)

    @staticmethod
    def most_frequent(lasted: Frame) -> nw.DataFrame[Any]:
        """Return the most frequent time between linked rows, the shortest of those that tie, if any rows are linked."""
        return lasted.sort(_COUNT, LASTED, descending=[True, False]).head(1).collect()

    @property
    def _axis(self) -> nw.Expr:
        """Where a row is in its series, in the unit of ``max_gap``."""
        return nw.col(_POSITION if self.max_gap is None else TIME)

    @property
    def _named(self) -> nw.Expr:
        """The subject of a row; all rows are of one where there are no subjects."""
        return nw.col(SUBJECT) if self.subject else nw.lit("").alias(SUBJECT)

    def _new(self, frame: Frame) -> Frame:
        """Leave out rows that were counted with the batch before."""
        return frame.filter(~nw.col(CARRIED)) if self.batched else frame

    def _running(self, window: nw.Expr, total: str) -> nw.Expr:
        """Go on with a running total of new rows where the batches before left it, in the column ``total``."""
        here = self._over(window)
        if not self.batched:
            return here
        reached = nw.col(total).max()
        before = (reached.over(SUBJECT) if self.subject else reached).fill_null(0)
        return nw.when(nw.col(CARRIED)).then(nw.col(total)).otherwise(here + before)

    def _before(self, column: nw.Expr) -> nw.Expr:
        """Return what a column holds in the row before, of the same subject."""
        if not self.batched:
            return self._over(column.shift(1))
        if not self.subject:
            return column.shift(1)
        return nw.when(nw.col(SUBJECT) == nw.col(SUBJECT).shift(1)).then(column.shift(1))

    def _over(self, window: nw.Expr) -> nw.Expr:
        return window.over(SUBJECT, order_by=self.order) if self.subject else window.over(order_by=self.order)


def _lag(lag: int) -> str:
    return _BEFORE if lag == 1 else f"{_BEFORE}_{lag}"


def counted(rows: Frame, keys: Sequence[str], *, steps: bool = False) -> Frame:
    """Count rows by keys, and add up their steps."""
    sums = [nw.col(_STEPS).sum()] if steps else []
    counts = rows.group_by(keys).agg(nw.len().alias(_COUNT), *sums)
    return counts.select(*keys, nw.col(_COUNT).cast(nw.Int64), *([_STEPS] if steps else []))


def added_up(groups: nw.DataFrame[Any], keys: Sequence[str], *, steps: bool = False) -> nw.DataFrame[Any]:
    """Add up the counts of groups that are equal in some keys."""
    sums = [_COUNT, *([_STEPS] if steps else [])]
    return groups.group_by(keys).agg(nw.col(sums).sum()).select(*keys, *sums)


def tabulated(shape: Sequence[int], entries: Iterable[Sequence[int]]) -> NDArray[np.int64]:
    """Add up numbers in a table: each stands last in an entry, behind its place."""
    table = np.zeros(shape, dtype=np.int64)
    for *place, n in entries:
        table[tuple(place)] += n
    return table


def summed(pairs: Iterable[tuple[Any, int]]) -> Counter[Any]:
    """Add up numbers by what stands before them."""
    sums = Counter[Any]()
    for key, n in pairs:
        sums[key] += n
    return sums


def _whole_steps(gap: nw.Expr, step: int) -> nw.Expr:
    """Do what :func:`~pufferfish.data._chains.gap_steps` does, on an engine and for whole numbers."""
    fits = gap // step
    steps = fits + (gap > fits * step).cast(nw.Int64)
    return nw.when(steps > 2).then(steps).otherwise(nw.lit(2))


# -- The fold: groups of rows that an engine has counted are added up to what each chain holds -----------------------


def gap_steps(gap: int | float, step: int | float) -> int:
    """Count the steps in a gap: gap/step rounded up, and at least 2, so that one record at least is unobserved.

    A longer chain never leaks less, so rounding up goes towards privacy.

    >>> gap_steps(25, 10), gap_steps(11, 10), gap_steps(24, 10)
    (3, 2, 3)
    """
    return max(2, ceil(Fraction(gap) / Fraction(step)))


class Fold:
    """What was counted by :data:`CHAIN_KEYS`, per chain; gaps that no engine divided are divided here."""

    def __init__(self, layout: Layout, step: int | float | None, chains: nw.DataFrame[Any]) -> None:
        self.counts = Counter[tuple[tuple[str, int], Any]]()  # observed records, by chain and state
        self.steps = Counter[tuple[str, int]]()
        self.unseen = Counter[tuple[str, int]]()  # steps that have no row
        self.missing = Counter[str]()  # rows without a state, by subject
        self.unsized = False
        for subject, second, state, number, steps in chains.iter_rows():
            label, n = state_label(subject), int(number)
            chain = (label, int(second) if layout.independent else 0)
            if is_absent(state):
                self.missing[label] += n
            else:
                self.counts[chain, state] += n
            taken = int(steps)
            if not layout.independent and not is_absent(second) and second:
                self.unsized = self.unsized or step is None
                gap = int(second) if float(second).is_integer() else float(second)
                taken += n * (2 if step is None else gap_steps(gap, step))
            self.steps[chain] += taken
            self.unseen[chain] += taken - n

    @property
    def totals(self) -> Counter[Any]:
        """Observed records of each state."""
        return summed((state, n) for (_, state), n in self.counts.items())
