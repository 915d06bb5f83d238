"""How prepared rows are counted: by polars batch by batch, or by Spark at once.

Both ways ask the same expressions of :class:`~pufferfish.data._chains.Layout`: whether times increase, how long a step
usually takes, and how many rows there are of each group.

Rows that polars reads come in batches, so that memory does not grow with the table.

Rows have an order, in which the times of each subject increase. So nothing has to be sorted on disk, and
no row is written anywhere. Windows over a batch see the last rows of its subjects in the batches before: these rows are
carried along, marked ``CARRIED``, and not counted again. Every batch is counted by the expressions that count a whole
table (:class:`~pufferfish.data._chains.Layout`), and the counts of batches are added up.

Where the observed records of a chain are: from the times of the rows that a filter by time keeps.

Only times say it, never states. It is known where the filter reads the time column alone and all times of a subject
lie on the grid of its steps: rows that follow each other are one step apart, and gaps are whole numbers of steps. Else
nothing is known of that subject, and noise is for the worst places that its records may have. Times without a zone say
it to an hour, and every place that a record may have is one of an observed record (:mod:`.grid`).
"""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, pairwise
from typing import Any, cast

import narwhals as nw
import polars as pl

from pufferfish._base.durations import Duration
from pufferfish.data._cells import MAX_PAIRS, refuse_many_cells
from pufferfish.data._chain_rows import ChainRows, Disorder
from pufferfish.data._chains import CARRIED, CELL, STATE, SUBJECT, Frame, Gaps, Layout, added_up, counted
from pufferfish.data._options import Options
from pufferfish.data._sampling import Sample
from pufferfish.data.bins import MAX_STATES
from pufferfish.data.sequences import HOUR, TimeGrid, slack_of, widened
from pufferfish.data.spark import held
from pufferfish.errors import DataError, ParameterError
from pufferfish.theta.lengths import MOST_PLACED, ChainLength
from pufferfish.theta.states import state_label

__all__ = ["Counted", "Stretches", "Sums", "batches_of", "count_rows_of_chains", "stretches_of", "with_places"]

# -- Rows that polars reads come in batches --------------------------------------------------------------------------

BATCH = 250_000
"""Rows of a batch. More take more memory, fewer more time."""


def batches_of(frame: Frame, layout: Layout, *, filtered: bool) -> Generator[tuple[Frame, Frame]]:
    """Yield the rows of a polars frame batch by batch: in order, and linked.

    Parameters
    ----------
    frame : narwhals LazyFrame
        Prepared rows.
    layout : Layout
        How they are laid out, in batches.
    filtered : bool
        Whether the frame has the column ``KEEP``.
    """
    native: pl.LazyFrame = frame.to_native()
    schema = native.collect_schema()
    labels = (SUBJECT, STATE, *(f"{CELL}{i}" for i in range(layout.groupings)))
    words = [pl.col(name).cast(_category()) for name in labels if schema.get(name) == pl.String]
    totals = [pl.lit(None, pl.Int64).alias(name) for name in layout.totals]
    carried: pl.DataFrame | None = None
    for rows in _collected(native):
        new = rows.with_columns(pl.lit(value=False).alias(CARRIED), *words, *totals)
        here, elsewhere = _of_subjects(new.clear() if carried is None else carried, new, layout)
        held = pl.concat([here, new])
        if layout.subject:  # then the row before is that of the same subject; the sort keeps their order
            held = held.sort(pl.col(SUBJECT).to_physical(), maintain_order=True)
        ordered: Any = layout.in_order(cast(Any, nw.from_native(held)))  # pyrefly: ignore[no-matching-overload]
        linked: Any = layout.link(ordered, filtered=filtered)
        yield ordered.lazy(), linked.lazy()
        carried = pl.concat([elsewhere, _last_rows(ordered.to_native(), linked.to_native(), new.columns, layout)])


def _category() -> pl.Categorical:
    """Return a type for text of which much is equal: each text is kept once, as a number."""
    return pl.Categorical(pl.Categories.random())


def _collected(native: pl.LazyFrame) -> Generator[pl.DataFrame]:
    """Collect a frame in batches, one at least."""
    yielded = False
    for rows in native.collect_batches(chunk_size=BATCH, lazy=True):
        yielded = True
        yield rows
    if not yielded:
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
    """Counts of batches, added up whenever they have become many.

    Parameters
    ----------
    keys : sequence of str
        By what is counted.
    steps : bool
        Whether steps are added up too.

    ``rows`` are those of all counts that were not added up yet.
    """

    keys: Sequence[str]
    steps: bool = False
    _parts: list[nw.DataFrame[Any]] = field(default_factory=list[nw.DataFrame[Any]])
    rows: int = 0
    _limit: int = 4 * BATCH

    def add(self, rows: Frame) -> nw.DataFrame[Any]:
        """Count the rows of a batch, and return their counts."""
        return self.add_part(counted(rows, self.keys, steps=self.steps).collect())

    def add_part(self, part: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
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

_MOST = 4096
"""Gaps of all subjects together, and stretches of different chains, up to which places are kept."""

_MOST_ASKED = 1 << 22
"""The same where a ledger of a table that grows asks for them."""


def _tells_grid(options: Options) -> bool:
    """Whether times may say where in its chain a row is."""
    return options.time is not None and options.missing != "split" and options.gaps == "unobserved"


def _tells_places(options: Options) -> bool:
    """Whether times alone say which rows are kept, or it is asked where rows are whatever says it."""
    if options.taken is not None:
        return _tells_grid(options)
    return _tells_grid(options) and options.where is not None and set(options.where.columns) == {options.time}


class Stretches:
    """What times say of where rows are, collected from one frame or from batches.

    Parameters
    ----------
    layout : Layout
        How rows are laid out.
    gaps : bool
        Whether times alone say which rows are kept, so that gaps are of interest.
    zoned : bool
        Whether differences of times are known: they are instants or numbers, and no local times without a zone.
    most : int
        Gaps up to which places are kept.
    """

    def __init__(self, layout: Layout, *, gaps: bool, zoned: bool, most: int = _MOST) -> None:
        self._layout = layout
        self._most = most
        self._zoned = zoned
        self._asks_gaps = gaps
        self._step = 0
        self._known = True
        self._ends: dict[str, tuple[Any, Any]] = {}
        self._off: set[str] = set()
        self._gaps: list[tuple[Any, ...]] = []

    def add(self, linked: Frame, step: float | None) -> None:
        """Look at linked rows, all of them or those of a batch; gaps are divided by the step, where they are times."""
        whole_step = (
            1 if self._layout.max_gap is None else 0 if step is None or not float(step).is_integer() else int(step)
        )
        self._known = self._known and whole_step > 0 and self._step in (0, whole_step)
        self._step = whole_step
        if not self._known:
            return
        if self._asks_gaps and len(self._gaps) <= self._most:
            self._gaps += self._layout.apart(linked, self._step).head(self._most + 1).collect().iter_rows()
        for subject, first, last, off in self._layout.ends(linked, self._step).collect().iter_rows():
            label = state_label(subject)
            before, after = self._ends.get(label, (first, last))
            self._ends[label] = min(before, first), max(after, last)
            if off:
                self._off.add(label)

    def of(self, subjects: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """Return of each subject how many steps are observed, not observed, observed, …, where that is known."""
        if not (self._known and self._asks_gaps) or len(self._gaps) > self._most or self._hidden:
            return {}
        gaps: dict[str, list[tuple[Any, Any, bool]]] = {}
        for subject, place, apart, linked in self._gaps:
            gaps.setdefault(state_label(subject), []).append((place, apart, linked))
        by_subject = {subject: self._one(subject, sorted(gaps.get(subject, ()))) for subject in subjects}
        known = {subject: stretches for subject, stretches in by_subject.items() if stretches}
        return known if sum(map(len, set(known.values()))) <= self._most else {}

    def grid(self, chains: Sequence[tuple[str, int]]) -> TimeGrid | None:
        """Return the ends of chains, given of each its subject and its steps; None where times do not say them."""
        if not self._known or self._layout.max_gap is None or self._step < 1 or self._hidden:
            return None
        ends = tuple(self._span(subject, steps) for subject, steps in chains)
        return TimeGrid(self._step, ends, self._slack) if any(ends) else None

    @property
    def _slack(self) -> int:
        """How many steps a record may be from where its time says; none where steps are rows, and not times."""
        return 0 if self._zoned or self._layout.max_gap is None else slack_of(self._step)

    @property
    def _hidden(self) -> bool:
        """Whether clocks may have been set forward between rows that are linked: then gaps may add up to hours."""
        return self._slack > 0 and (self._layout.max_gap or 0) > HOUR

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
        stretches: list[int] = []
        if not all(_is_whole(n) for n in (begins, last, *(n for place, apart, _ in gaps for n in (place, apart)))):
            return ()
        for place, apart, _ in gaps:
            stretches += [int(place - apart - begins), int(apart) - step]
            begins = place
        stretches.append(int(last - begins))
        if any(n % step for n in stretches):
            return ()
        steps = [n // step + (i % 2 == 0) for i, n in enumerate(stretches)]
        if min(steps) < 1:
            return ()
        if self._slack:
            observed = tuple(pairwise(accumulate(steps, initial=0)))[::2]
            edges = chain.from_iterable(widened(observed, self._slack, sum(steps) + self._slack))
            steps = [stop - start for start, stop in pairwise(edges)]
        return tuple(steps) if len(steps) > 1 else ()


def _is_whole(number: Any) -> bool:
    return float(number).is_integer() and abs(number) < 2**53


def stretches_of(layout: Layout, options: Options, *, zoned: bool) -> Stretches | None:
    """Return what collects where rows are, by times with a zone or without; None where times do not say it."""
    gaps = _tells_places(options)
    if not gaps and (layout.max_gap is None or not _tells_grid(options)):
        return None
    return Stretches(layout, gaps=gaps, zoned=zoned, most=_MOST if options.taken is None else _MOST_ASKED)


def with_places(chain: ChainLength, stretches: tuple[int, ...]) -> ChainLength:
    """Return the length of a chain with where its records are, if the two agree and bounds can follow them."""
    fits = sum(stretches) == chain.steps <= MOST_PLACED and sum(stretches[::2]) >= chain.records
    return ChainLength(chain.steps, chain.records, stretches) if stretches and fits else chain


@dataclass(frozen=True, slots=True)
class Counted:
    """What a table holds, counted.

    Parameters
    ----------
    chains, transitions : narwhals DataFrame
        Rows counted by the keys of chains, with their steps, and by those of transitions (:class:`Layout`).
    step : Duration or None
        Time that a step takes, where gaps are divided by it.
    usual : Duration or None
        Most frequent time between linked rows, where nothing else says how long a step is.
    cells : narwhals DataFrame or None
        Rows counted by the keys of groups, where there are any.
    cell_steps : narwhals DataFrame or None
        The same rows counted with the steps that lead to them, where these are not too many.
    stretches : Stretches or None
        Where rows are, if times say it.
    gaps : Gaps
        What the times between rows say.
    sample : Sample
        Blocks of rows, by which the table is known again.
    """

    chains: nw.DataFrame[Any]
    transitions: nw.DataFrame[Any]
    sample: Sample
    step: Duration | None
    usual: Duration | None
    cells: nw.DataFrame[Any] | None = None
    stretches: Stretches | None = None
    gaps: Gaps = field(default_factory=Gaps)
    cell_steps: nw.DataFrame[Any] | None = None


def count_rows_of_chains(rows: ChainRows, options: Options) -> Counted:
    """Check the order of prepared rows, and count them."""
    in_batches = rows.frame.implementation.is_polars()
    return _in_batches(rows, options) if in_batches else _at_once(rows, options)


# -- at once ---------------------------------------------------------------------------------------------------------


def _at_once(rows: ChainRows, options: Options) -> Counted:
    layout = rows.layout
    with held(layout.in_order(rows.chained)) as ordered:
        disorder = Disorder(rows, layout)
        disorder.look(ordered)
        disorder.refuse()
        linked = layout.link(ordered, filtered=rows.filtered)
        most_frequent = (
            layout.usual_step(counted(layout.steps_of(linked), layout.lasted_keys))
            if options.step is None and layout.timed
            else None
        )
        step, usual = _steps(most_frequent, rows, options)
        value = _value(step)
        stretches = stretches_of(layout, options, zoned=not rows.wall)
        if stretches is not None:
            stretches.add(linked, value)
        gaps = layout.gaps(linked, _value(step or usual), rows.changes) if layout.timed else Gaps()
        sample = _sample(rows, layout, options)
        sample.add(linked, _between(step, usual))
        marked = layout.marked(linked, value)
        groups = _brought(layout.groups(marked), options.state)  # in one query: on a cluster each one costs a pass
        cells = cell_steps = None
        if options.by:
            steps = counted(layout.steps_in_cells(linked), layout.cell_step_keys).head(MAX_PAIRS + 1).collect()
            cell_steps = steps if len(steps) <= MAX_PAIRS else None
            if cell_steps is None:
                cells = counted(layout.in_cells(linked), layout.cell_keys).head(MAX_PAIRS + 1).collect()
            else:
                cells = added_up(cell_steps, layout.cell_keys)
            refuse_many_cells(options.by, cells)
    chains, transitions = layout.chains_of(groups), layout.transitions_of(groups)
    return Counted(chains, transitions, sample, step, usual, cells, stretches, gaps, cell_steps)


def _value(step: Duration | None) -> float | None:
    return None if step is None else step.value


def _steps(most_frequent: float | None, rows: ChainRows, options: Options) -> tuple[Duration | None, Duration | None]:
    """Return the step that divides gaps, and the usual one, given the most frequent time between linked rows."""
    usual = None if most_frequent is None else Duration(most_frequent, has_unit=rows.instants)
    if options.clock is not None:
        _check_clock(options, options.step or usual)
    if options.step is not None:
        return options.step, None
    return (usual if _divides(rows.layout) else None), usual


def _sample(rows: ChainRows, layout: Layout, options: Options) -> Sample:
    """Return what collects blocks of rows: of times, if they are in the unit of a step that is given."""
    counted_alike = options.step is None or options.step.has_unit == rows.instants
    return Sample(layout, timed=layout.timed and counted_alike)


def _between(step: Duration | None, usual: Duration | None) -> float | None:
    """Return the time between records, by the step that is given or else the usual one."""
    known = step or usual
    return None if known is None else float(known.value)


def _divides(layout: Layout) -> bool:
    """Whether gaps are times, which are divided by a step."""
    return layout.max_gap is not None and not layout.independent


def _check_clock(options: Options, step: Duration | None) -> None:
    """Refuse to take records that are further than one step apart for neighbours: the clock would be late."""
    longest = options.max_gap
    if longest is None or step is None or longest.value < 2 * step.value:
        return
    raise ParameterError(
        f"max_gap is {longest} and a step takes {step}: with a clock neighbouring records must be one step apart; "
        f"give max_gap={str(step)!r}, and longer gaps are unobserved records, through which the clock runs on"
    )


def _brought(groups: nw.LazyFrame[Any], state: str) -> nw.DataFrame[Any]:
    """Bring groups here, unless their states are so many that they are hardly fewer than the rows."""
    if not groups.implementation.is_pyspark():
        brought = groups.collect()
        _refuse_many_states(state, brought.get_column(STATE).n_unique())
        return brought
    with held(groups) as kept:  # on a cluster they are counted before they leave it
        states = kept.group_by(STATE).agg(nw.len().alias("n")).select(nw.len().alias("n"))
        _refuse_many_states(state, int(states.collect().item()))
        return kept.collect()


def _refuse_many_states(state: str, distinct: int) -> None:
    if distinct > MAX_STATES + 1:
        raise DataError(
            f"column {state!r} has {distinct:,} different values, expected at most {MAX_STATES} states: "
            "give bins= to make numbers states"
        )


# -- batch by batch --------------------------------------------------------------------------------------------------


def _in_batches(rows: ChainRows, options: Options) -> Counted:
    """Count in one pass, if the first batch shows how long a step is; else in two."""
    tally = _Tally(rows, options)
    tally.count(options.step.value if options.step else None, _between(options.step, None))
    while True:
        step, usual = _steps(tally.usual_step, rows, options)
        value, between = _value(step), _between(step, usual)
        if (value == tally.divided_by or not _divides(rows.layout)) and tally.sample.fits(between):
            break
        tally.count(value, between)
    if tally.distinct:
        _refuse_many_states(options.state, tally.distinct)
    cells = cell_steps = None
    if options.by:
        cells, cell_steps = tally.cells.total(), None if tally.cell_steps is None else tally.cell_steps.total()
    counts = tally.chains.total(), tally.transitions.total()
    return Counted(*counts, tally.sample, step, usual, cells, tally.stretches, tally.gaps, cell_steps)


class _Tally:
    """What the batches of a table add up to.

    Gaps are divided by the step that is given, or by the usual step of the first batch that has one; whoever counts
    sees in the end whether that was the step of all.
    """

    def __init__(self, rows: ChainRows, options: Options) -> None:
        self.rows = rows
        self.layout = replace(rows.layout, batched=True)
        self.by = options.by
        self.options = options
        self.asks_step = options.step is None and self.layout.timed

    def count(self, step: float | None, between: float | None) -> None:
        """Count all rows, given the step that divides gaps and the time between records, if they are known.

        Raises
        ------
        DataError
            If times do not increase.
        """
        layout, rows = self.layout, self.rows
        self.divided_by, self.distinct, self.gaps = step, 0, Gaps()
        self.chains, self.transitions = Sums(layout.chain_keys, steps=True), Sums(layout.transition_keys)
        self.lasted, self.cells = Sums(layout.lasted_keys), Sums(layout.cell_keys)
        self.cell_steps: Sums | None = Sums(layout.cell_step_keys)
        self.stretches = stretches_of(layout, self.options, zoned=not rows.wall)
        self.sample = _sample(rows, layout, self.options)
        disorder, states = Disorder(rows, layout), set[Any]()
        for ordered, linked in batches_of(rows.chained, layout, filtered=rows.filtered):
            disorder.look(ordered)
            if self.asks_step:
                self.lasted.add(layout.steps_of(linked))
                between = between or self.usual_step
                if self.divided_by is None and _divides(layout):
                    self.divided_by = between
            if layout.timed:
                step = self.divided_by or _value(self.options.step) or self.usual_step
                self.gaps = self.gaps.and_of(layout.gaps(linked, step, rows.changes))
            if self.stretches is not None:
                self.stretches.add(linked, self.divided_by)
            self.sample.add(linked, between)
            if len(states) <= MAX_STATES + 1:  # else there are hardly fewer groups than rows
                marked = layout.marked(linked, self.divided_by).collect().lazy()  # once for both counts
                self.transitions.add(layout.moves(marked))
                states.update(self.chains.add(marked).get_column(STATE).unique().to_list())
                if self.by:
                    self._count_cells(linked)
        disorder.refuse()
        if len(states) > MAX_STATES + 1:
            self.distinct = rows.distinct_states()

    def _count_cells(self, linked: Frame) -> None:
        """Count the rows of groups, and the steps that lead to them as long as these are not too many."""
        layout = self.layout
        if self.cell_steps is None:
            self.cells.add(layout.in_cells(linked))
        else:
            part = self.cell_steps.add(layout.steps_in_cells(linked))
            self.cells.add_part(added_up(part, layout.cell_keys))
            if self.cell_steps.rows > MAX_PAIRS and len(self.cell_steps.total()) > MAX_PAIRS:
                self.cell_steps = None
        refuse_many_cells(self.by, self.cells.total())

    @property
    def usual_step(self) -> float | None:
        """Most frequent time between the linked rows that were counted."""
        return self.layout.usual_step(self.lasted.total().lazy()) if self.asks_step else None
