"""How a table is read as sequences of states.

In order: the options are checked; the source is opened and its needed columns selected; the filter, the times
and the states become expressions; rows are checked (subject, time, order); then two or three aggregate
queries give everything :class:`~pufferfish.data.sequences.Sequences` holds.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from pufferfish._base.durations import Duration
from pufferfish.data._cells import groups_of, without_group
from pufferfish.data._chain_rows import BAD, ChainRows
from pufferfish.data._chains import TIME, Fold, Layout, tabulated
from pufferfish.data._columns import is_absent
from pufferfish.data._count import Counted, with_places
from pufferfish.data._options import Options, open_table
from pufferfish.data.fingerprint import fingerprint_of
from pufferfish.data.groups import Groups
from pufferfish.data.labels import count_rows, labels_of, placed_states
from pufferfish.data.sequences import HOUR, Base, Sequences, slack_of
from pufferfish.data.source import ROW, Source, are_paths
from pufferfish.errors import DataError, ParameterError
from pufferfish.theta.lengths import ChainLength

_FEW = 10  # fewer late records are not spoken of, nor fewer than one in a hundred
_UNITS = (1_000_000, 1_000)  # microseconds of a second, and of a millisecond


def read_chains(source: Any, **reading: Any) -> Sequences:
    """Do the work of :func:`~pufferfish.read_sequences`."""
    options = Options(**reading)
    if are_paths(source) and len(source) > 1 and options.max_gap is None:
        # without times the last row of one file would be next to the first of another
        raise ParameterError("several files need time and max_gap, which order their rows")
    with open_table(source, options) as table:
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
    counted = Counted(rows, options)
    in_chains = counted.chains.total()
    if len(in_chains) == 0:
        raise rows.no_rows()
    step = None if counted.step is None else counted.step.value
    fold = Fold(layout, step, in_chains)
    if options.bins is not None and BAD in {int(state) for state in fold.totals}:
        raise rows.not_a_number()
    cells = counted.cells.total() if options.by else None
    if cells is not None and (grouping := without_group(cell for *cell, _, _ in cells.iter_rows())) is not None:
        raise rows.no_group(grouping)
    _check_missing(fold, options)
    label = partial(labels_of, options=options, untyped=table.untyped)
    column = f"column {options.state!r}"
    states, index = placed_states(label(fold.totals), fold.totals, options.states, column, "the model")
    chains = sorted({chain for chain, _ in fold.counts})
    _check_chains(chains, fold, options)
    place = {chain: i for i, chain in enumerate(chains)}
    k = len(states)
    counts = tabulated((len(chains), k), ((place[chain], index[state], n) for (chain, state), n in fold.counts.items()))
    moves = [
        (*more, index[before], index[state], int(n))
        for before, state, *more, n in counted.transitions.total().iter_rows()
        if not (is_absent(before) or is_absent(state))
    ]
    transitions = tabulated((k, k), (move[-3:] for move in moves))
    by_phase = histories = None
    if options.clock is not None:
        by_phase = tabulated((options.clock.phases, k, k), ((int(phase), *move) for phase, *move in moves))
    elif options.order > 1:
        whole = [move for move in moves if not any(map(is_absent, move[:-3]))]
        past = ((*(index[state] for state in reversed(move[:-3])), *move[-3:]) for move in whole)
        histories = tabulated((k,) * (options.order + 1), past)
    clocks_slack = slack_of(int(step)) if rows.wall and layout.max_gap is not None and step is not None else 0
    names = [name for name, _ in chains]
    stretches = counted.stretches
    places = {} if stretches is None else stretches.of(names)
    lengths = tuple(
        with_places(
            ChainLength(fold.steps[chain] + _longer(fold.unseen[chain], clocks_slack, options), int(total)),
            places.get(chain[0], ()) if options.taken is None else (),  # a series asks for places by themselves
        )
        for chain, total in zip(chains, counts.sum(axis=1), strict=True)
    )
    order = sorted((i for i in range(k) if counts[:, i].any()), key=lambda i: states[i])  # whatever the states' order
    per_chain = sorted((length.steps, *row) for length, row in zip(lengths, counts[:, order].tolist(), strict=True))
    held = [states[i] for i in order], transitions[np.ix_(order, order)].tolist(), per_chain
    changes_of_state = int(transitions.sum() - np.trace(transitions))
    shortest = counted.gaps.shortest
    return Sequences(
        states=states,
        counts=counts,
        transitions=transitions,
        length=lengths,
        subjects=len(set(names)),
        base=Base(
            source=table.name,
            state=options.state,
            time=options.time,
            max_gap=None if options.max_gap is None else str(options.max_gap),
            step=None if counted.step is None else str(counted.step),
            bins=options.bins,
            gaps=options.gaps,
            time_zone=options.time_zone,
            ambiguous=options.ambiguous,
            **options.facts,
        ),
        names=None if options.subject is None else tuple(names),
        usual_step=None if counted.usual is None else str(counted.usual),
        shortest_step=None if shortest is None else _length(shortest, has_unit=rows.instants),
        grid=None if stretches is None else stretches.grid([(chain[0], fold.steps[chain]) for chain in chains]),
        clock=None if options.clock is None else options.clock.name,
        transitions_by_phase=by_phase,
        histories=histories,
        groups=None if cells is None else _groups(cells, counted, options, index, k),
        late=_late(counted, options, int(counts.sum())),
        clock_changes=_changes(rows, counted, layout.max_gap),
        stretches=None if options.taken is None else tuple(map(places.get, names)),
        read_before=rows.read_before,
        asked=None if options.taken is None else options.taken.entries,
        fingerprint=fingerprint_of(held, changes_of_state, counted.sample.blocks(label)),
    )


def _check_missing(fold: Fold, options: Options) -> None:
    """Refuse missing states, where none may be, or all are."""
    absent = sum(fold.missing.values())
    if absent and options.missing == "refuse":
        label = min(fold.missing)
        of = f" (e.g. subject {label!r}: {fold.missing[label]})" if options.subject else ""
        raise DataError(
            f"column {options.state!r} has no state in {count_rows(absent)}{of}: missing='refuse'; use 'unobserved' or "
            "fill them in"
        )
    if not fold.counts:
        raise DataError(f"column {options.state!r} has no observed state: all {count_rows(absent)} are missing")


def _check_chains(chains: Sequence[tuple[str, int]], fold: Fold, options: Options) -> None:
    """Refuse chains of which each has one record, and gaps that nobody knows the steps of."""
    if options.taken is None and fold.totals.total() == len(chains):
        gap = f" and max_gap ({options.max_gap})" if options.max_gap else ""
        raise DataError(
            f"every chain has exactly one record ({len(chains)} in all), so no records can depend on each other: check "
            f"the subject column{f' {options.subject!r}' if options.subject else ''}{gap}"
        )
    if fold.unsized:
        raise DataError(
            f"no two records are within max_gap ({options.max_gap}) of each other, so the length of a step is "
            "unknown: give step=, or a longer max_gap"
        )


def _groups(cells: Any, counted: Counted, options: Options, index: dict[Any, int], k: int) -> Groups:
    """Return the observed records of each group, and the steps that lead to them, where these were counted."""
    in_cells = [(tuple(cell), index[x], int(n)) for *cell, x, n in cells.iter_rows() if not is_absent(x)]
    steps = None
    if counted.cell_steps is not None:
        steps = [
            (tuple(cell), index[before], index[state], int(n))
            for *cell, before, state, n in counted.cell_steps.total().iter_rows()
            if not (is_absent(before) or is_absent(state))
        ]
    return groups_of(options.by, {options.state: in_cells}, {options.state: k}, steps)


def _changes(rows: ChainRows, counted: Counted, max_gap: float | None) -> Literal["possible", "known"] | None:
    """Return whether clocks may have been changed between records of a chain, or were, as far as it was looked at."""
    step = counted.step or counted.usual
    gapped = max_gap is not None and counted.gaps.longest > min(max_gap, HOUR)
    if rows.wall and step is not None and slack_of(int(step.value)) and gapped:
        return "possible"
    return "known" if counted.gaps.crossed else None


def _longer(unseen: int, slack: int, options: Options) -> int:
    """Return how many steps more a chain may have than its times say: clocks set back in one gap are set forward."""
    # Changes of clocks take turns: set forward in between is another gap, or two linked rows that are more than an hour
    # apart by local time, which hide it.
    assert options.max_gap is not None or not slack
    hidden = options.max_gap is not None and options.max_gap.value > HOUR
    return slack * (unseen if hidden else min(unseen, 1))


def _late(counted: Counted, options: Options, records: int) -> tuple[int, str] | None:
    """Return how many records are hardly too late to be linked, and the limit that would link them; None for a few."""
    number, longest = counted.gaps.late, counted.gaps.longest_late
    if options.max_gap is None or number < _FEW or number * 100 < records:
        return None
    if options.max_gap.has_unit:  # in as round a number as the limit itself
        unit = next((unit for unit in _UNITS if options.max_gap.value >= 60 * unit), 1)
        longest = -(-int(longest) // unit) * unit
    step = counted.step or counted.usual
    if step is not None and longest >= 2 * step.value:  # models refuse such a max_gap
        return None
    return number, _length(longest, has_unit=options.max_gap.has_unit)


def _length(time: float, *, has_unit: bool) -> str:
    return str(Duration(int(time) if float(time).is_integer() else float(time), has_unit=has_unit))
