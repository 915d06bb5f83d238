"""How prepared rows are counted: by the engine that holds them, in one go, or batch by batch where that is polars.

Both ways ask the same expressions of :class:`~pufferfish.data._chains.Layout`: whether times increase, how long a step
usually takes, and how many rows there are of each group.
"""

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from pufferfish._base.durations import Duration
from pufferfish.data._cells import MAX_PAIRS, refuse_many_cells
from pufferfish.data._chain_rows import ChainRows
from pufferfish.data._chains import STATE, Layout, counted
from pufferfish.data._sampling import Sample
from pufferfish.data.batches import Sums, batches_of
from pufferfish.data.bins import MAX_STATES
from pufferfish.data.disorder import Disorder
from pufferfish.data.options import Options
from pufferfish.data.spark import held
from pufferfish.data.stretches import Stretches, stretches_of
from pufferfish.errors import DataError, ParameterError

__all__ = ["Counted", "count_rows_of_chains"]


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
    stretches : Stretches or None
        Where rows are, if times say it.
    gaps : tuple
        How many gaps are hardly longer than records may be apart, the longest of these and of all, and how many records
        come after a change of clocks that is known (:meth:`Layout.gaps`).
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
    gaps: tuple[int, float, float, int] = (0, 0, 0, 0)


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
        found = (
            layout.usual_step(counted(layout.steps_of(linked), layout.lasted_keys))
            if options.step is None and layout.timed
            else None
        )
        step, usual = _steps(found, rows, options)
        value = _value(step)
        stretches = stretches_of(layout, options, zoned=not rows.wall)
        if stretches is not None:
            stretches.add(linked, value)
        gaps = (0, 0, 0, 0) if layout.max_gap is None else layout.gaps(linked, _value(step or usual), rows.changes)
        sample = _sample(rows, layout, options)
        sample.add(linked, _between(step, usual))
        marked = layout.marked(linked, value)
        groups = _brought(layout.groups(marked), options.state)  # in one query: on a cluster each one costs a pass
        cells = None
        if options.by:
            cells = counted(layout.in_cells(linked), layout.cell_keys).head(MAX_PAIRS + 1).collect()
            refuse_many_cells(options.by, cells)
    chains, transitions = layout.chains_of(groups), layout.transitions_of(groups)
    return Counted(chains, transitions, sample, step, usual, cells, stretches, gaps)


def _value(step: Duration | None) -> float | None:
    return None if step is None else step.value


def _steps(found: float | None, rows: ChainRows, options: Options) -> tuple[Duration | None, Duration | None]:
    """Return the step that divides gaps, and the usual one, given the most frequent time between linked rows."""
    usual = None if found is None else Duration(found, has_unit=rows.instants)
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
        f"max_gap is {longest} and a step takes {step}: with a clock records that follow each other are one step "
        f"apart; give max_gap={str(step)!r}, and longer gaps are unobserved records, through which the clock runs on"
    )


def _brought(groups: nw.LazyFrame[Any], state: str) -> nw.DataFrame[Any]:
    """Bring groups here, unless their states are so many that they are hardly fewer than the rows."""
    if not groups.implementation.is_pyspark():
        found = groups.collect()
        _refuse_many_states(state, found.get_column(STATE).n_unique())
        return found
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
    cells = tally.cells.total() if options.by else None
    counts = tally.chains.total(), tally.transitions.total()
    return Counted(*counts, tally.sample, step, usual, cells, tally.stretches, tally.gaps)


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
        self.divided_by, self.distinct, self.gaps = step, 0, (0, 0.0, 0.0, 0)
        self.chains, self.transitions = Sums(layout.chain_keys, steps=True), Sums(layout.transition_keys)
        self.lasted, self.cells = Sums(layout.lasted_keys), Sums(layout.cell_keys)
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
            if layout.max_gap is not None:
                step = self.divided_by or _value(self.options.step) or self.usual_step
                late, most, most_of_all, crossed = layout.gaps(linked, step, rows.changes)
                before = self.gaps
                self.gaps = before[0] + late, max(before[1], most), max(before[2], most_of_all), before[3] + crossed
            if self.stretches is not None:
                self.stretches.add(linked, self.divided_by)
            self.sample.add(linked, between)
            if len(states) <= MAX_STATES + 1:  # else there are hardly fewer groups than rows
                marked = layout.marked(linked, self.divided_by).collect().lazy()  # once for both counts
                self.transitions.add(layout.moves(marked))
                states.update(self.chains.add(marked).get_column(STATE).unique().to_list())
                if self.by:
                    self.cells.add(layout.in_cells(linked))
                    refuse_many_cells(self.by, self.cells.total())
        disorder.refuse()
        if len(states) > MAX_STATES + 1:
            self.distinct = rows.distinct_states()

    @property
    def usual_step(self) -> float | None:
        """Most frequent time between the linked rows that were counted."""
        return self.layout.usual_step(self.lasted.total().lazy()) if self.asks_step else None
