"""How prepared rows are counted: by Spark at once, by polars in batches, so that memory does not grow with the table.

Both ways ask the same expressions of :class:`~pufferfish.data._chains.Layout`, and what Spark counts is one batch.

Rows have an order, in which the times of each subject increase. So nothing has to be sorted on disk, and no row is
written anywhere. Windows over a batch see the last rows of its subjects in the batches before: these rows are carried
along, marked ``CARRIED``, and not counted again. The counts of batches are added up.

Where the observed records of a chain are follows from times, never from states. It is known where the filter reads the
time column alone and all times of a subject lie on the grid of its steps: rows that follow each other are one step
apart, and gaps are whole numbers of steps. Else nothing is known of that subject, and noise is for the worst places
that its records may have. Times without a zone say it to an hour, and every place that a record may have is one of an
observed record (:class:`~pufferfish.data.sequences.TimeGrid`).
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, cast

import narwhals as nw
import polars as pl

from pufferfish._base.durations import Duration
from pufferfish.data._cells import MAX_PAIRS, refuse_many_cells
from pufferfish.data._chain_rows import ChainRows, Disorder
from pufferfish.data._chains import (
    CARRIED,
    CELL,
    CHAIN_KEYS,
    LASTED,
    STATE,
    SUBJECT,
    Frame,
    Gaps,
    Layout,
    added_up,
    counted,
)
from pufferfish.data._options import Options
from pufferfish.data._sampling import Sample
from pufferfish.data.sequences import HOUR, TimeGrid, slack_of, widened
from pufferfish.data.spark import held
from pufferfish.errors import DataError, ParameterError
from pufferfish.theta.lengths import MOST_PLACED, ChainLength
from pufferfish.theta.states import MOST_STATES, state_label

# -- Rows that polars reads come in batches --------------------------------------------------------------------------

BATCH = 250_000  # rows of a batch. More take more memory, fewer more time.


def _batches(rows: ChainRows, layout: Layout) -> Generator[tuple[Frame, Frame]]:
    """Yield prepared rows batch by batch: in order, and linked. On a cluster all of them are one batch."""
    filtered = rows.filtered
    if not layout.batched:
        with held(layout.in_order(rows.chained)) as ordered:
            yield ordered, layout.link(ordered, filtered=filtered)
        return
    native: pl.LazyFrame = rows.chained.to_native()
    schema = native.collect_schema()
    labels = (SUBJECT, STATE, *(f"{CELL}{i}" for i in range(layout.groupings)))
    texts = [name for name in labels if schema.get(name) == pl.String]  # of which many are equal: each is kept once
    words = [pl.col(name).cast(pl.Categorical(pl.Categories.random())) for name in texts]
    totals = [pl.lit(None, pl.Int64).alias(name) for name in layout.totals]
    carried: pl.DataFrame | None = None
    for batch in _collected(native):
        new = batch.with_columns(pl.lit(value=False).alias(CARRIED), *words, *totals)
        here, elsewhere = _of_subjects(new.clear() if carried is None else carried, new, layout)
        held_rows = pl.concat([here, new])
        if layout.subject:  # then the row before is that of the same subject; the sort keeps their order
            held_rows = held_rows.sort(pl.col(SUBJECT).to_physical(), maintain_order=True)
        ordered: Any = layout.in_order(cast(Any, nw.from_native(held_rows)))  # pyrefly: ignore[no-matching-overload]
        linked: Any = layout.link(ordered, filtered=filtered)
        yield ordered.lazy(), linked.lazy()
        carried = pl.concat([elsewhere, _last_rows(ordered.to_native(), linked.to_native(), new.columns, layout)])


def _collected(native: pl.LazyFrame) -> Generator[pl.DataFrame]:
    """Collect a frame in batches, one at least."""
    rows = None
    for rows in native.collect_batches(chunk_size=BATCH, lazy=True):
        yield rows
    if rows is None:
        yield native.clear().collect()


def _of_subjects(carried: pl.DataFrame, new: pl.DataFrame, layout: Layout) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split carried rows into those of subjects that have new rows, and the others."""
    if not layout.subject or len(carried) < BATCH:
        return carried, carried.clear()
    subjects = new.select(pl.col(SUBJECT).unique())
    return carried.join(subjects, on=SUBJECT, how="semi"), carried.join(subjects, on=SUBJECT, how="anti")


def _last_rows(ordered: pl.DataFrame, linked: pl.DataFrame, columns: list[str], layout: Layout) -> pl.DataFrame:
    """Choose the rows that the next batch looks back at: the last that were kept, and the last of all."""
    last = _tail(linked.select(columns), layout, layout.memory)
    if len(linked) < len(ordered):  # rows were left out; their positions and times count
        both = pl.concat([last, _tail(ordered.select(columns), layout, 1)])
        last = both.unique(layout.order, keep="first", maintain_order=True)
    return last.with_columns(pl.lit(value=True).alias(CARRIED))


def _tail(frame: pl.DataFrame, layout: Layout, n: int) -> pl.DataFrame:
    if not layout.subject:
        return frame.tail(n)
    return frame.filter(pl.col(SUBJECT).ne_missing(pl.col(SUBJECT).shift(-n)))


@dataclass(slots=True)
class Sums:
    """Counts of batches, added up whenever they have become many."""

    keys: Sequence[str]  # by what is counted
    steps: bool = False  # whether steps are added up too
    _parts: list[nw.DataFrame[Any]] = field(default_factory=list[nw.DataFrame[Any]])
    rows: int = 0  # rows of all counts that were not added up yet
    _limit: int = 4 * BATCH

    def count(self, rows: Frame) -> nw.DataFrame[Any]:
        """Count the rows of a batch, and return their counts; of more than a release may have, only so many."""
        return self.add(counted(rows, self.keys).head(MAX_PAIRS + 1).collect())

    def add(self, part: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
        """Take the counts of a batch, and return them."""
        self._parts.append(part)
        self.rows += len(part)
        if self.rows > self._limit:
            self.total()
            self._limit = 2 * self.rows + 4 * BATCH
        return part

    def total(self) -> nw.DataFrame[Any]:
        """Add up what has been counted so far."""
        if len(self._parts) > 1:
            self._parts = [added_up(nw.concat(self._parts), self.keys, steps=self.steps)]
            self.rows = len(self._parts[0])
        words = [name for name, dtype in self._parts[0].schema.items() if dtype == nw.Categorical]
        return self._parts[0].with_columns(nw.col(words).cast(nw.String)) if words else self._parts[0]


# -- Where the observed records of a chain are -----------------------------------------------------------------------

_MOST = 4096  # gaps of all subjects together, and stretches of different chains, up to which places are kept
_MOST_ASKED = 1 << 22  # the same where a ledger of a table that grows asks for them


@dataclass(slots=True, kw_only=True)
class Stretches:
    """What times say of where rows are, collected from batches."""

    layout: Layout
    gaps: bool  # whether times alone say which rows are kept, so that gaps are of interest
    zoned: bool  # whether differences of times are known, as those of instants and numbers are
    most: int  # gaps up to which places are kept
    _step: int = 0
    _known: bool = True
    _ends: dict[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    _off: set[str] = field(default_factory=set[str])
    _gaps: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])

    def add(self, linked: Frame, step: float | None) -> None:
        """Look at linked rows, all of them or those of a batch; gaps are divided by the step, where they are times."""
        whole_step = (
            1 if self.layout.max_gap is None else 0 if step is None or not float(step).is_integer() else int(step)
        )
        self._known = self._known and whole_step > 0 and self._step in (0, whole_step)
        self._step = whole_step
        if not self._known:
            return
        if self.gaps and len(self._gaps) <= self.most:
            self._gaps += self.layout.apart(linked, self._step).head(self.most + 1).collect().iter_rows()
        for subject, first, last, off in self.layout.ends(linked, self._step).collect().iter_rows():
            label = state_label(subject)
            before, after = self._ends.get(label, (first, last))
            self._ends[label] = min(before, first), max(after, last)
            if off:
                self._off.add(label)

    def of(self, subjects: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Return of each subject how many steps are observed, not observed, observed, …, where that is known."""
        if not (self._known and self.gaps) or len(self._gaps) > self.most or self._hidden:
            return {}
        gaps: dict[str, list[tuple[Any, Any, bool]]] = {}
        for subject, place, apart, linked in self._gaps:
            gaps.setdefault(state_label(subject), []).append((place, apart, linked))
        by_subject = {subject: self._one(subject, sorted(gaps.get(subject, ()))) for subject in subjects}
        known = {subject: stretches for subject, stretches in by_subject.items() if stretches}
        return known if sum(map(len, set(known.values()))) <= self.most else {}

    def grid(self, chains: Sequence[tuple[str, int]]) -> TimeGrid | None:
        """Return the ends of chains, given of each its subject and its steps; None where times do not say them."""
        if not self._known or self.layout.max_gap is None or self._step < 1 or self._hidden:
            return None
        ends = tuple(self._span(subject, steps) for subject, steps in chains)
        return TimeGrid(self._step, ends, self._slack) if any(ends) else None

    @property
    def _slack(self) -> int:
        """How many steps a record may be from where its time says; none where steps are rows, and not times."""
        return 0 if self.zoned or self.layout.max_gap is None else slack_of(self._step)

    @property
    def _hidden(self) -> bool:
        """Whether clocks may have been set forward between rows that are linked: then gaps may add up to hours."""
        return self._slack > 0 and (self.layout.max_gap or 0) > HOUR

    def _span(self, subject: str, steps: int) -> tuple[int, int] | None:
        """Return the times of a subject's first and last row, if its chain has as many steps as they say."""
        if subject in self._off or subject not in self._ends:
            return None
        first, last = self._ends[subject]
        if not all(_is_whole(n) for n in (first, last)) or last - first != (steps - 1) * self._step:
            return None
        return int(first), int(last)

    def _one(self, subject: str, gaps: list[tuple[Any, Any, bool]]) -> tuple[int, ...]:
        step = self._step
        if not gaps or subject not in self._ends or any(linked for *_, linked in gaps):
            return ()
        begins, last = self._ends[subject]
        if not all(_is_whole(n) for n in (begins, last, *(n for place, apart, _ in gaps for n in (place, apart)))):
            return ()
        edges = [begins, *(edge for place, apart, _ in gaps for edge in (place - apart + step, place)), last + step]
        times = [int(edge - begins) for edge in edges]  # from which on rows are observed, and not observed, by turns
        if any(time % step for time in times) or any(stop - start < step for start, stop in pairwise(times)):
            return ()
        places = [time // step for time in times]
        if self._slack:
            observed = zip(places[::2], places[1::2], strict=True)
            places = [*chain.from_iterable(widened(observed, self._slack, places[-1] + self._slack))]
        return tuple(stop - start for start, stop in pairwise(places)) if len(places) > 2 else ()


def _is_whole(number: Any) -> bool:
    return float(number).is_integer() and abs(number) < 2**53


def _stretches_of(layout: Layout, options: Options, *, zoned: bool) -> Stretches | None:
    """Return what collects where rows are; None where times do not say it, and none is asked for."""
    tells_grid = options.time is not None and options.missing != "split" and options.gaps == "unobserved"
    by_time = options.where is not None and set(options.where.columns) == {options.time}
    gaps = tells_grid and (options.taken is not None or by_time)
    if not gaps and (layout.max_gap is None or not tells_grid):
        return None
    return Stretches(layout=layout, gaps=gaps, zoned=zoned, most=_MOST if options.taken is None else _MOST_ASKED)


def with_places(chain: ChainLength, stretches: tuple[int, ...]) -> ChainLength:
    """Return the length of a chain with where its records are, if the two agree and bounds can follow them."""
    fits = sum(stretches) == chain.steps <= MOST_PLACED and sum(stretches[::2]) >= chain.records
    return ChainLength(chain.steps, chain.records, stretches) if stretches and fits else chain


# -- What the batches of a table add up to ---------------------------------------------------------------------------


class Counted:
    """What a table holds, counted: once more where the step that divided gaps is not the usual one of all rows."""

    step: Duration | None  # time that a step takes, where gaps are divided by it
    usual: Duration | None  # most frequent time between linked rows, where nothing else says how long a step is
    chains: Sums  # rows by the keys of chains, with their steps
    transitions: Sums
    cells: Sums  # rows by the keys of groups
    cell_steps: Sums | None  # the same with the steps that lead to them, where these are not too many
    stretches: Stretches | None  # where rows are, if times say it
    gaps: Gaps
    sample: Sample  # by what the table is known again

    def __init__(self, rows: ChainRows, options: Options) -> None:
        self._rows, self._options = rows, options
        layout = self._layout = replace(rows.layout, batched=rows.frame.implementation.is_polars())
        self._asks_step = layout.timed and (options.step is None or layout.max_gap is not None)
        self._divides = layout.max_gap is not None and not layout.independent  # gaps are times
        self._count(_value(options.step))
        if options.step is not None and self._asks_step:
            self._refuse_nearer(options.step)
        while True:
            frequent = self._usual_step
            usual = None if frequent is None else Duration(frequent, has_unit=rows.instants)
            if options.clock is not None:
                _check_clock(options, options.step or usual)
            self.step = options.step or (usual if self._divides else None)
            self.usual = usual if options.step is None else None
            fits = not self._divides or _value(self.step) == self._divided_by
            if fits and self.sample.fits(_value(self.step or self.usual)):
                return
            self._count(_value(self.step), _value(self.step or self.usual))

    def _count(self, step: float | None, between: float | None = None) -> None:
        """Count all rows, given the step that divides gaps and the time between records, if they are known."""
        layout, rows, options = self._layout, self._rows, self._options
        between = between or step
        self._divided_by, self.gaps = step, Gaps()
        self.chains, self.transitions = Sums(CHAIN_KEYS, steps=True), Sums(layout.transition_keys)
        self._lasted, self.cells = Sums([LASTED]), Sums(layout.cell_keys)
        self.cell_steps = Sums(layout.cell_step_keys)
        self.stretches = _stretches_of(layout, options, zoned=not rows.wall)
        # blocks of rows are of times, if a step that is given is in their unit
        alike = options.step is None or options.step.has_unit == rows.instants
        self.sample = Sample(layout, timed=layout.timed and alike)
        disorder, states = Disorder(rows, layout), set[Any]()
        with closing(_batches(rows, layout)) as batches:
            for ordered, linked in batches:
                disorder.look(ordered)
                if not layout.batched:  # the only batch, which would be counted in vain
                    disorder.refuse()
                if self._asks_step:
                    lasted = counted(layout.steps_of(linked), [LASTED])
                    self._lasted.add(lasted.collect() if layout.batched else layout.most_frequent(lasted))
                    between = between or self._usual_step
                    if self._divided_by is None and self._divides:
                        self._divided_by = between
                if layout.timed:
                    known = self._divided_by or _value(options.step) or self._usual_step
                    self.gaps = self.gaps.and_of(layout.gaps(linked, known, rows.changes))
                if self.stretches is not None:
                    self.stretches.add(linked, self._divided_by)
                self.sample.add(linked, between)
                if len(states) <= MOST_STATES + 1:  # else there are hardly fewer groups than rows
                    groups = self._groups(linked)
                    self.chains.add(added_up(groups, CHAIN_KEYS, steps=True))
                    self.transitions.add(layout.transitions_of(groups))
                    states.update(groups.get_column(STATE).unique().to_list())
                    if options.by:
                        self._count_cells(linked)
        disorder.refuse()
        if len(states) > MOST_STATES + 1:
            self._refuse_many_states(rows.distinct_states())

    def _refuse_nearer(self, step: Duration) -> None:
        """Refuse a step that was given if most records are two in it or more: they would count as further apart."""
        usual, times = self._usual_step, self._layout.most_frequent(self._lasted.total().lazy())
        records = sum(int(n) for *_, n, _ in self.chains.total().iter_rows())
        if usual is not None and 2 * usual <= step.value and 2 * int(times.row(0)[1]) > records:
            apart = Duration(usual, has_unit=self._rows.instants)
            raise DataError(
                f"step is {step}, but most records are {apart} after the one before: leave out step=, or aggregate the "
                f"table to one record every {step}"
            )

    def _groups(self, linked: Frame) -> nw.DataFrame[Any]:
        """Count linked rows by chain and transition in one query: on a cluster each one costs a pass."""
        groups = self._layout.groups(linked, self._divided_by)
        if self._layout.batched:
            return groups.collect()
        with held(groups) as kept:  # states are counted before they leave the cluster
            states = kept.group_by(STATE).agg(nw.len().alias("n")).select(nw.len().alias("n"))
            self._refuse_many_states(int(states.collect().item()))
            return kept.collect()

    def _refuse_many_states(self, distinct: int) -> None:
        if distinct > MOST_STATES + 1:
            raise DataError(
                f"column {self._options.state!r} has {distinct:,} different values, expected at most {MOST_STATES} "
                "states: give bins= to make numbers states"
            )

    def _count_cells(self, linked: Frame) -> None:
        """Count the rows of groups, and the steps that lead to them as long as these are not too many."""
        layout, part = self._layout, None
        if self.cell_steps is not None:
            part = self.cell_steps.count(layout.steps_in_cells(linked))
            if self.cell_steps.rows > MAX_PAIRS and len(self.cell_steps.total()) > MAX_PAIRS:
                self.cell_steps = None
        if part is None or len(part) > MAX_PAIRS:
            self.cells.count(layout.in_cells(linked))
        else:
            self.cells.add(added_up(part, layout.cell_keys))
        refuse_many_cells(self._options.by, self.cells.total())

    @property
    def _usual_step(self) -> float | None:
        """Most frequent time between the linked rows that were counted; None if there are none."""
        if not self._asks_step or not len(most := self._layout.most_frequent(self._lasted.total().lazy())):
            return None
        value = most.row(0)[0]
        return int(value) if float(value).is_integer() else float(value)


def _value(step: Duration | None) -> float | None:
    return None if step is None else step.value


def _check_clock(options: Options, step: Duration | None) -> None:
    """Refuse to take records that are further than one step apart for neighbours: the clock would be late."""
    longest = options.max_gap
    if longest is None or step is None or longest.value < 2 * step.value:
        return
    raise ParameterError(
        f"max_gap is {longest} and a step takes {step}: with a clock neighbouring records must be one step apart; "
        f"give max_gap={str(step)!r}, and longer gaps are unobserved records, through which the clock runs on"
    )
