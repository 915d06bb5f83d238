"""How a table is read as sequences of states.

In order: the options are checked; the source is opened and its needed columns selected; the filter, the times
and the states become expressions; rows are checked (subject, time, order); then two or three aggregate
queries give everything :class:`~pufferfish.data.sequences.Sequences` holds.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.durations import Duration
from pufferfish.data._cells import groups_of, without_group
from pufferfish.data._chain_rows import BAD, ChainRows
from pufferfish.data._chains import TIME, Fold, Layout
from pufferfish.data._count import Counted, count_rows_of_chains, with_places
from pufferfish.data._options import Options, check_options
from pufferfish.data.fingerprint import fingerprint_of
from pufferfish.data.labels import count_rows, labels_of, name_states
from pufferfish.data.sequences import HOUR, Base, Sequences, slack_of
from pufferfish.data.source import ROW, Source, are_paths, engine_errors, open_source
from pufferfish.errors import DataError, ParameterError
from pufferfish.theta.lengths import ChainLength

__all__ = ["layout_of", "read_chains"]

_FEW = 10
"""Fewer late records are not spoken of, nor fewer than one in a hundred."""

_UNITS = (1_000_000, 1_000)
"""Microseconds of a second, and of a millisecond."""


def read_chains(source: Any, **reading: Any) -> Sequences:
    """Do the work of :func:`~pufferfish.read_sequences`."""
    options = check_options(**reading)
    if are_paths(source) and len(source) > 1 and options.max_gap is None:
        # without times the last row of one file would be next to the first of another
        raise ParameterError("several files need time and max_gap, which order their rows")
    table = open_source(source, options.needed, options.public, parts=options.parts, order=options.time)
    with engine_errors(table.name, table.path):
        return _read(table, options)


def layout_of(table: Source, options: Options) -> Layout:
    """Return how the rows of a table are laid out in chains."""
    return Layout(
        subject=options.subject is not None,
        order=ROW if ROW in table.schema else TIME,
        timed=options.time is not None,
        max_gap=None if options.max_gap is None else options.max_gap.value,
        split=options.missing == "split",
        independent=options.gaps == "independent",
        clock=options.clock is not None,
        memory=options.order,
        groupings=len(options.by),
    )


def _read(table: Source, options: Options) -> Sequences:
    layout = layout_of(table, options)
    rows = ChainRows(table, options, layout)
    counted = count_rows_of_chains(rows, options)
    if len(counted.chains) == 0:
        raise rows.no_rows()
    fold = Fold(layout, None if counted.step is None else counted.step.value)
    fold.add(counted.chains, counted.transitions)
    if options.bins is not None and BAD in {int(state) for state in fold.states}:
        raise rows.not_a_number()
    if counted.cells is not None:
        fold.add_cells(counted.cells)
        if counted.cell_steps is not None:
            fold.add_cell_steps(counted.cell_steps)
        if (grouping := without_group(fold.cells)) is not None:
            raise rows.no_group(grouping)
    in_time = rows.wall and layout.max_gap is not None
    slack = slack_of(int(counted.step.value)) if in_time and counted.step is not None else 0
    changes = _changes(rows, counted, layout.max_gap)
    return _sequences(fold, table, options, counted, slack, changes, rows)


def _changes(rows: ChainRows, counted: Counted, max_gap: float | None) -> Literal["possible", "known"] | None:
    """Return whether clocks may have been changed between records of a chain, or were, as far as it was looked at."""
    step = counted.step or counted.usual
    gapped = max_gap is not None and counted.gaps.longest > min(max_gap, HOUR)
    if rows.wall and step is not None and slack_of(int(step.value)) and gapped:
        return "possible"
    return "known" if counted.gaps.crossed else None


def _longer(unseen: int, slack: int, options: Options) -> int:
    """Return how many steps more than its times say a chain may have, of which so many have no row.

    Changes of clocks take turns. So where clocks are set back in two gaps, they are set forward in between: in another
    gap, or between two rows that are linked and more than an hour apart by local time, which hide it.
    """
    assert options.max_gap is not None or not slack
    hidden = options.max_gap is not None and options.max_gap.value > HOUR
    return slack * (unseen if hidden else min(unseen, 1))


def _sequences(
    fold: Fold,
    table: Source,
    options: Options,
    counted: Counted,
    slack: int,
    changes: Literal["possible", "known"] | None,
    rows: ChainRows,
) -> Sequences:
    step, usual, shortest = counted.step, counted.usual, counted.gaps.shortest
    absent = sum(fold.missing.values())
    if absent and options.missing == "refuse":
        label = min(fold.missing)
        of = f" (e.g. subject {label!r}: {fold.missing[label]})" if options.subject else ""
        raise DataError(
            f"column {options.state!r} has no state in {count_rows(absent)}{of}: missing='refuse'; use 'unobserved' or "
            "fill them in"
        )
    states = name_states(fold, options, untyped=table.untyped)
    chains = sorted(chain for chain, counts in fold.counts.items() if counts)
    if not chains:
        raise DataError(f"column {options.state!r} has no observed state: all {count_rows(absent)} are missing")
    if options.taken is None and all(sum(fold.counts[chain].values()) == 1 for chain in chains):
        gap = f" and max_gap ({options.max_gap})" if options.max_gap else ""
        raise DataError(
            f"every chain has exactly one record ({len(chains)} in all), so no records can depend on each other: check "
            f"the subject column{f' {options.subject!r}' if options.subject else ''}{gap}"
        )
    if fold.unsized_gap:
        raise DataError(
            f"no two records are within max_gap ({options.max_gap}) of each other, so the length of a step is "
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
    by_phase = None
    if options.clock is not None:
        by_phase = np.zeros((options.clock.phases, len(states), len(states)), dtype=np.int64)
        for phase, pairs in fold.by_phase.items():
            for (before, state), n in pairs.items():
                by_phase[phase, index[before], index[state]] += n
    histories = None
    if options.order > 1:
        histories = np.zeros((len(states),) * (options.order + 1), dtype=np.int64)
        for history, n in fold.histories.items():
            histories[tuple(index[state] for state in history)] += n
    places: dict[str, tuple[int, ...]] = {}
    if counted.stretches is not None:
        places = counted.stretches.of(label for label, _ in chains)
    placed = places if options.taken is None else {}  # a series asks for places by themselves
    lengths = tuple(
        with_places(
            ChainLength(fold.steps[chain] + _longer(fold.unseen[chain], slack, options), int(total)),
            placed.get(chain[0], ()),
        )
        for chain, total in zip(chains, counts.sum(axis=1), strict=True)
    )
    grid = None
    if counted.stretches is not None:
        grid = counted.stretches.grid([(chain[0], fold.steps[chain]) for chain in chains])
    base = Base(
        source=table.name,
        state=options.state,
        subject=options.subject,
        time=options.time,
        max_gap=None if options.max_gap is None else str(options.max_gap),
        step=None if step is None else str(step),
        bins=options.bins,
        where=None if options.where is None else options.where.text,
        missing=options.missing,
        gaps=options.gaps,
        by=tuple(grouping.text for grouping in options.by) or None,
        time_zone=options.time_zone,
        ambiguous=options.ambiguous,
    )
    return Sequences(
        states=states,
        counts=counts,
        transitions=transitions,
        length=lengths,
        subjects=len({label for label, _ in chains}),
        base=base,
        names=None if options.subject is None else tuple(label for label, _ in chains),
        usual_step=None if usual is None else str(usual),
        shortest_step=None if shortest is None else _length(shortest, has_unit=rows.instants),
        grid=grid,
        clock=None if options.clock is None else options.clock.name,
        transitions_by_phase=by_phase,
        histories=histories,
        groups=groups_of(options.by, {options.state: fold.cells}, {options.state: states}, fold.cell_steps, rows=False)
        if options.by
        else None,
        late=_late(counted, options, int(counts.sum())),
        clock_changes=changes,
        stretches=None if options.taken is None else tuple(places.get(label) for label, _ in chains),
        read_before=rows.read_before,
        asked=None if options.taken is None else options.taken.entries,
        fingerprint=_fingerprint(table, options, counted, states, counts, transitions, lengths),
    )


def _late(counted: Counted, options: Options, records: int) -> tuple[int, str] | None:
    """Return how many records are hardly too late to be linked, and the limit that would link them; None for a few."""
    number, longest = counted.gaps.late, counted.gaps.longest_late
    if options.max_gap is None or number < _FEW or number * 100 < records:
        return None
    if options.max_gap.has_unit:  # in as round a number as the limit itself
        unit = next((unit for unit in _UNITS if options.max_gap.value >= 60 * unit), 1)
        longest = -(-int(longest) // unit) * unit
    return number, _length(longest, has_unit=options.max_gap.has_unit)


def _length(time: float, *, has_unit: bool) -> str:
    return str(Duration(int(time) if float(time).is_integer() else float(time), has_unit=has_unit))


def _fingerprint(
    table: Source,
    options: Options,
    counted: Counted,
    states: Sequence[str],
    counts: NDArray[np.int64],
    transitions: NDArray[np.int64],
    lengths: Sequence[ChainLength],
) -> str:
    """Return by what a model knows the table again: in whatever order states and chains are."""
    order = sorted((i for i in range(len(states)) if counts[:, i].any()), key=lambda i: states[i])
    chains = sorted(
        (chain.steps, *chain_counts) for chain, chain_counts in zip(lengths, counts[:, order].tolist(), strict=True)
    )
    held = [states[i] for i in order], transitions[np.ix_(order, order)].tolist(), chains
    blocks = counted.sample.blocks(partial(labels_of, options=options, untyped=table.untyped))
    return fingerprint_of(held, int(transitions.sum() - np.trace(transitions)), blocks)
