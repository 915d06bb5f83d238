"""Pictures of releases: bars with the errors of their noise, groups, tables of two ways, and quantiles.

:func:`draw_release` chooses which.
"""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pufferfish._base.view import counted
from pufferfish._base.words import WEAK, at_most, number
from pufferfish._draw.figure import (
    BLUE,
    INK,
    LINES,
    ORANGE,
    PALE,
    bars_with_errors,
    clean,
    lie_better,
    log_ticks,
    name_ticks,
    new_figure,
    percent,
    require_matplotlib,
    shortened,
    titled,
    write_cells,
)
from pufferfish.data.groups import cells_for_people
from pufferfish.queries import Joint, Transitions, measure_of
from pufferfish.release.facts import GroupsRecord, decode
from pufferfish.release.record import ReleaseFields
from pufferfish.release.show.values import are_shares

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PANELS = 12
_MOST_BARS = 60
_MOST_TICKS = 40
_MOST_LABELS = 30

_MOST_WRITTEN = 12
"""States up to which the numbers stand in the cells of a table."""

_SEEN = 0.012
"""An error bar shorter than this share of its axis cannot be told from the line of its bar."""

Array = NDArray[np.float64]


def draw_release(release: ReleaseFields) -> "Figure":
    """Draw the released value of each output with a 95% error bar of its noise; a table of two ways as a heat map."""
    if release.groups is not None:
        groups = release.groups
        return _draw_groups(release, replace(groups, cells=cells_for_people(groups.by, groups.cells)))
    if release.query.kind in Transitions.kinds:
        states, steps = release.theta.states, f"{release.data.steps or 0:,} steps"
        return _draw_table(release, ("from", states), ("to", states), steps)
    query = decode(release.calibration.query)
    if isinstance(query, Joint) and len(query.records) == 2:
        nodes: Any = release.theta.members[0]["nodes"]
        row, column = ((str(name), list(nodes[str(name)]["states"])) for name in query.records)
        return _draw_table(release, row, column, _counted_rows(release))
    if release.quantiles:
        return _draw_quantiles(release)
    labels, base = release.query.labels, release.data.base
    places = shortened(base.state) if len(labels) > 1 and base is not None else ""
    errors = release.accuracies(0.05)
    return _draw_bars(release, labels, release.value, errors, places, measure_of(release.query.kind))


def _draw_bars(
    release: ReleaseFields, names: Sequence[str], values: Array, errors: Array, places: str, measure: str
) -> "Figure":
    """Draw a bar for each value, upright, or lying where names are long; of very many groups a line and a band."""
    share, noisy, by_group = are_shares(release), np.array(release.noisy_values), release.groups is not None
    wide = min(14.0, max(5.0, 0.32 * len(names) + 2))
    lying = lie_better([shortened(name) for name in names], wide)
    figure = new_figure(7.2, max(3.0, 0.26 * len(names) + 1.6)) if lying else new_figure(wide, 4.2)
    axes: Any = figure.add_subplot()
    if by_group and len(names) > _MOST_BARS:
        positions = np.arange(len(names))
        axes.fill_between(positions, noisy - errors, noisy + errors, color=PALE, linewidth=0)
        axes.plot(positions, values, color=BLUE, linewidth=1.0)
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.margins(x=0.01)
        name_ticks(axes, [shortened(name) for name in names], wide, most=_MOST_TICKS)
        clean(axes, share)
        shown = "band"
    else:
        shown = _errors_shown(values, noisy, errors)
        look: dict[str, Any] = {"most": _MOST_TICKS} if by_group else {}
        seen = bool(shown)
        bars_with_errors(axes, names, values, noisy, errors, wide=wide, share=share, seen=seen, lying=lying, **look)
    axes.set_xlabel(measure if lying else places, parse_math=False)
    axes.set_ylabel(places if lying else measure, parse_math=False)
    return _finished(figure, release, shown)


def _errors_shown(values: Array, noisy: Array, errors: Array) -> str:
    """Return "line" where lines as long as the errors can be told from the ends of bars that share one scale.

    Examples
    --------
    >>> bars = np.array([100.0, 200.0])
    >>> _errors_shown(bars, bars, np.array([1.0, 1.0])), _errors_shown(bars, bars, np.array([1.0, 9.0]))
    ('', 'line')
    """
    top = max(0.0, float(np.max(values)), float(np.max(noisy + errors)))
    bottom = min(0.0, float(np.min(values)), float(np.min(noisy - errors)))
    return "line" if 2 * np.max(errors) >= _SEEN * (top - bottom) else ""


def _finished(figure: Any, release: ReleaseFields, shown: str | None, more: str = "") -> "Figure":
    """Return the figure with its title, and a note on the errors.

    These are ``shown`` as a line or a band, too little to be seen where it is empty, or not drawn where it is None.
    """
    errors = release.accuracies(0.05)
    error = _told_error(float(errors.min()), float(errors.max()), are_shares(release))
    unseen = ", not drawn" if shown is None else "" if shown else ", too little to be seen here"
    more = ("; post-processed" if release.postprocessing else "") + more
    if shown is not None and (np.abs(release.value) <= errors).any():
        more += "; hollow: no larger than its error"
    by = "" if release.groups is None else f", by {', '.join(release.groups.by)}"
    note = f"{f'{shown}: ' if shown else ''}noisy value {error} with 95% probability each{unseen}{more}"
    titled(figure, f"{release.query.description}{by}", _origin(release), note)
    return figure


def _told_error(least: float, most: float, share: bool) -> str:
    """Say how large errors are: in percentage points where values are shares.

    Examples
    --------
    >>> _told_error(0.004, 0.004, True), _told_error(3, 5.123, False)
    ('± 0.4 percentage points', '± 3 to 5.12')
    """
    low, high = (number(100 * error if share else error, 3) for error in (least, most))
    return f"± {low if low == high else f'{low} to {high}'}{' percentage points' if share else ''}"


def _origin(release: ReleaseFields, description: str | None = None, n: str | None = None) -> str:
    """Say which mechanism made the noise, and of how much the values are unless the description says that."""
    if n is None:
        n = f"n = {release.data.records:,}" if release.data.rows is None else _counted_rows(release)
    alone = n.removeprefix("n = ").split()[0]
    mention = rf"(?<![\d,.]){alone} (record|row|step)s?\b"
    said = re.search(mention, release.query.description if description is None else description)
    return f"{release.mechanism.title}, ε = {at_most(release.epsilon)}{'' if said else f', {n}'}"


def _counted_rows(release: ReleaseFields) -> str:
    return counted(release.data.subjects, "row")


# -- A release by groups ---------------------------------------------------------------------------------------------


def _draw_groups(release: ReleaseFields, groups: GroupsRecord) -> "Figure":
    """Draw the values of each group, with 95% error bars of the noise where there is room for them.

    One output of one grouping: values along the groups. Several outputs of few groups: a panel for each group, which is
    a table from state to state for transitions. Else a panel for each output, with a scale of its own, so that rare
    states are seen beside frequent ones: lines along the grouping that has most groups, one for each group of the
    others, or heat maps where these are many.
    """
    labels, few = release.query.labels, len(groups.cells) <= _MOST_PANELS
    if release.query.kind in Transitions.kinds and few:
        return _table_of_each_group(release, groups)
    if len(labels) > 1 and few:
        return _panel_of_each_group(release, groups)
    if len(labels) == 1 and len(groups.by) == 1:
        names = [", ".join(cell) for cell in groups.cells]
        measure = f"{measure_of(release.query.kind)}: {shortened(labels[0])}"
        return _draw_bars(release, names, release.value[:, 0], np.array(groups.error_95), groups.by[0], measure)
    return _panel_of_each_output(release, groups)


def _panel_of_each_group(release: ReleaseFields, groups: GroupsRecord) -> "Figure":
    """Draw bars of the outputs, a panel for each group."""
    outputs, share = release.query.labels, are_shares(release)
    values, noisy = release.value, np.array(release.noisy_values).reshape(release.value.shape)
    errors = release.accuracies(0.05)
    wide = min(4.2, max(5.0 / len(values), 2.4, 0.3 * len(outputs) + 1))
    lying = lie_better([shortened(label) for label in outputs], wide)
    wide, high = (4.2, max(1.4, 0.24 * len(outputs) + 0.8)) if lying else (wide, 2.6)
    figure, panels = _grid(len(values), wide, high, alike=not lying)
    shown = _errors_shown(values, noisy, errors)
    look: dict[str, Any] = {"wide": wide, "share": share, "seen": bool(shown), "lying": lying}
    for axes, cell, n, *numbers in zip(panels, groups.cells, groups.records, values, noisy, errors, strict=True):
        bars_with_errors(axes, outputs, *numbers, **look)
        _named(axes, f"{shortened(', '.join(cell))} (n = {n:,})")
        axes.tick_params(labelbottom=True)
    if lying:
        ends = np.array([axes.get_xlim() for axes in panels])
        for axes in panels:
            axes.set_xlim(ends[:, 0].min(), ends[:, 1].max())
    (figure.supxlabel if lying else figure.supylabel)(measure_of(release.query.kind), fontsize=10)
    return _finished(figure, release, shown)


def _table_of_each_group(release: ReleaseFields, groups: GroupsRecord) -> "Figure":
    """Draw the steps from each state to each as a table of colours, for each group."""
    states = [shortened(state) for state in release.theta.states]
    k, wide = len(states), min(6.0, max(3.6, 0.5 * len(states) + 2))
    figure, panels = _grid(len(groups.cells), wide, max(2.6, min(6.0, 0.35 * k + 1.2)))
    tables, errors = release.value.reshape(-1, k, k), release.accuracies(0.05).reshape(-1, k, k)
    steps = groups.steps or groups.records
    for axes, cell, n, table, error in zip(panels, groups.cells, steps, tables, errors, strict=True):
        _heat_map(figure, axes, table, states, are_shares(release))
        name_ticks(axes, states, wide, most=_MOST_LABELS)
        _named(axes, f"{shortened(', '.join(cell))} ({n:,} steps)")
        if k <= _MOST_WRITTEN:
            most = float(np.abs(table).max()) or 1.0
            write_cells(axes, _written(table, error), np.abs(table) > 0.6 * most, 7)
    figure.supxlabel("to", fontsize=10)
    figure.supylabel("from", fontsize=10)
    return _finished(figure, release, None, "; each panel has its own scale")


def _panel_of_each_output(release: ReleaseFields, groups: GroupsRecord) -> "Figure":
    """Draw each output in a panel of its own, those with the largest values where there are many outputs."""
    labels, share = release.query.labels, are_shares(release)
    by_size = np.argsort(-np.nansum(release.value, axis=0), kind="stable")[:_MOST_PANELS]
    chosen = sorted(int(j) for j in by_size)
    ways = [list(dict.fromkeys(labels_of_way)) for labels_of_way in zip(*groups.cells, strict=True)]
    i = max(range(len(ways)), key=lambda i: len(ways[i]))
    across = ways[i]
    rest_of = [", ".join(label for j, label in enumerate(cell) if j != i) for cell in groups.cells]
    others = list(dict.fromkeys(rest_of))
    at = [others.index(rest) for rest in rest_of], [across.index(cell[i]) for cell in groups.cells]
    numbers = np.full((3, len(others), len(across), len(chosen)), np.nan)  # values, noisy values, and errors
    noisy = np.array(release.noisy_values).reshape(release.value.shape)
    for table, of_groups in zip(numbers, (release.value, noisy, release.accuracies(0.05)), strict=True):
        table[at] = of_groups[:, chosen]
    lines = len(others) <= len(LINES)
    wide = 4.2 if len(chosen) > 1 else 6.5
    figure, panels = _grid(len(chosen), wide, 2.8 if lines else min(8.0, max(2.8, 0.16 * len(others) + 1.2)))
    for j, axes in enumerate(panels):
        if lines:
            _lines(axes, numbers[..., j], share)
        else:
            _heat_map(figure, axes, numbers[0, ..., j], others, share)
        name_ticks(axes, [shortened(name) for name in across], wide, most=13)
        axes.tick_params(labelbottom=True)
        _named(axes, shortened(labels[chosen[j]], 40))
    for axes in panels[-min(4, len(panels)) :]:
        axes.set_xlabel(groups.by[i], parse_math=False)
    rest = [name for j, name in enumerate(groups.by) if j != i]
    if lines:
        figure.supylabel(measure_of(release.query.kind), fontsize=10)
    elif rest:
        figure.supylabel(shortened(", ".join(rest)), fontsize=10, parse_math=False)
    if lines and len(others) > 1:
        names = [_no_formula(shortened(line_name)) for line_name in others]
        handles = panels[0].get_lines()[: len(others)]
        look = {"loc": "outside lower left", "ncols": 4, "frameon": False, "fontsize": 9}
        figure.legend(handles, names, title=", ".join(rest), **look)
    left = len(labels) - len(chosen)
    more = f"; the {left:,} outputs with the least values are not drawn" if left else ""
    more += "; each panel has its own scale" if len(chosen) > 1 else ""
    return _finished(figure, release, "band" if lines else None, more)


def _named(axes: Any, name: str) -> None:
    axes.set_title(name, fontsize=9, loc="left", parse_math=False)


def _lines(axes: Any, numbers: Array, share: bool) -> None:
    """Draw each row of values as a line, in a band as wide as the error of its noise; these are the three tables."""
    positions = np.arange(numbers.shape[2])
    rows = list(zip(*numbers, LINES, strict=False))
    for row, noisy_row, error_row, (colour, marker) in rows:
        axes.plot(positions, row, color=colour, marker=marker, markersize=3.5, linewidth=1.2)
        low, high = noisy_row - error_row, noisy_row + error_row
        axes.fill_between(positions, low, high, color=colour, alpha=0.15, linewidth=0)
    for row, _, error_row, (colour, marker) in rows:  # after all lines: a legend has those
        weak = np.abs(row) <= error_row
        axes.plot(positions[weak], row[weak], marker, color=colour, markersize=3.5, markerfacecolor="white")
    axes.axhline(0, color=INK, linewidth=0.6)
    clean(axes, share)


def _heat_map(figure: Any, axes: Any, table: Array, rows: Sequence[str], share: bool) -> None:
    """Draw values as colours, dark above 0 in one colour and below in another; what is not there stays empty."""
    from matplotlib.ticker import FuncFormatter, StrMethodFormatter

    most = float(np.nanmax(np.abs(table))) or 1.0
    least, colours = (-most, "PuOr_r") if float(np.nanmin(table)) < 0 else (0.0, "Blues")
    image = axes.imshow(table, aspect="auto", interpolation="nearest", cmap=colours, vmin=least, vmax=most)
    step = -(-len(rows) // _MOST_TICKS)
    names = [shortened(row) for row in rows[::step]]
    axes.set_yticks(range(0, len(rows), step), names, parse_math=False, fontsize=7)
    figure.colorbar(image, ax=axes, format=FuncFormatter(percent) if share else StrMethodFormatter("{x:,.10g}"))


def _written(table: Array, errors: Array) -> NDArray[np.str_]:
    """Write the numbers of a table for its cells, with the sign of those that are no larger than their error."""
    weak = np.abs(table) <= errors
    texts = [f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}" for x in table.ravel().tolist()]
    return np.array(
        [f"{WEAK} {text}" if faint else text for text, faint in zip(texts, weak.flat, strict=True)]
    ).reshape(table.shape)


def _grid(n: int, wide: float, high: float, *, alike: bool = False) -> tuple[Any, list[Any]]:
    """Return a figure with so many panels, at most four in a row."""
    columns = n if n <= 3 else min(4, math.ceil(math.sqrt(n)))
    lines = -(-n // columns)
    figure = new_figure(max(5.0, wide * columns), high * lines + 1)
    panels: Any = figure.subplots(lines, columns, squeeze=False, sharey=alike).ravel()
    for axes in panels[n:]:
        axes.set_axis_off()
    return figure, list(panels[:n])


def _no_formula(label: str) -> str:
    """Return a label that a legend takes as it is: no formula, and not left out for its underscore."""
    text = label.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


# -- A table of two ways, and quantiles ------------------------------------------------------------------------------


def _draw_table(
    release: ReleaseFields, rows: tuple[str, Sequence[str]], columns: tuple[str, Sequence[str]], n: str
) -> "Figure":
    """Draw the released value of each pair of states as a colour; values that are not positive are left white.

    Rows, whose values come first in the release, and columns have a title and their names; ``n`` says of how much the
    values are.
    """
    require_matplotlib()
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import StrMethodFormatter

    row_names, column_names = ([shortened(state) for state in states] for _, states in (rows, columns))
    high, wide, error = len(row_names), len(column_names), release.accuracy(0.05)
    table = release.value.reshape(high, wide)
    # what is within the error is noise: colours begin there
    most = max(float(table.max()), error)
    norm = LogNorm(vmin=min(max(error, most / 1e6), most / 2), vmax=most)
    height, size = (min(12.0, max(5.0, 0.55 * k + 2.2)) for k in (high, wide))
    figure = new_figure(size + 1.0, height)
    axes: Any = figure.add_subplot()
    image = axes.imshow(
        np.ma.masked_less_equal(table, 0), cmap="Blues", norm=norm, aspect="equal" if high == wide else "auto"
    )
    name_ticks(axes, column_names, size, most=_MOST_LABELS)
    step = -(-high // _MOST_LABELS)
    axes.set_yticks(np.arange(0, high, step), row_names[::step], parse_math=False)
    axes.set_xlabel(shortened(columns[0]), parse_math=False)
    axes.set_ylabel(shortened(rows[0]), parse_math=False)
    if max(high, wide) <= _MOST_WRITTEN:
        dark = np.array([value > 0 and float(norm(value)) > 0.6 for value in table.ravel().tolist()])
        write_cells(axes, _written(table, np.full(table.shape, error)), dark.reshape(table.shape), 8)
    ticks = log_ticks(float(norm.vmin or 0.0), most)
    bar: Any = figure.colorbar(image, ax=axes, shrink=0.8, ticks=ticks, format=StrMethodFormatter("{x:,.10g}"))
    bar.ax.minorticks_off()
    bar.set_label(f"{measure_of(release.query.kind)} (log scale)")
    note = f"each value {_told_error(error, error, share=False)} with 95% probability; white: nothing, or below 0"
    titled(figure, release.query.description, _origin(release, n=n), note)
    return figure


def _draw_quantiles(release: ReleaseFields) -> "Figure":
    """Draw the cumulative distribution as steps with its error, and each quantile with the states it may be."""
    states = list(release.theta.states)
    wide = min(14.0, max(6.0, 0.4 * len(states) + 2))
    figure = new_figure(wide, 4.4)
    axes: Any = figure.add_subplot()
    errors = release.accuracies(0.05, joint=True)
    positions = np.arange(len(states))
    values, low, high = (np.append(release.value + error, 1.0) for error in (0.0, -errors, errors))
    axes.fill_between(positions, low, high, step="post", color=PALE, alpha=0.6, linewidth=0)
    axes.step(positions, values, where="post", color=BLUE, linewidth=1.5)
    axes.plot(positions, values, linestyle="", marker="o", markersize=3, color=BLUE)
    for quantile in release.quantiles or []:
        first, here, last = (states.index(x) for x in (quantile.low, quantile.state, quantile.high))
        axes.plot([first, last], [quantile.share] * 2, color=ORANGE, linewidth=3, solid_capstyle="round")
        axes.plot([here], [quantile.share], color=ORANGE, marker="D", markersize=7, markeredgecolor=INK)
        name = f"{quantile.share:.3%}".replace(".000%", "%") + f": {shortened(quantile.state)}"
        near: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9, "parse_math": False}
        axes.annotate(name, (max(here, last), quantile.share), (8, -3), **near)
    name_ticks(axes, [shortened(state) for state in states], wide)
    axes.set_xlim(-0.3, len(states) - 0.4 + 0.12 * len(states))
    axes.set_ylabel("share of records up to this state")
    clean(axes, share=True)
    title = "Quantiles of the records"
    legend = "bar: the states it may be, all of them with 95% probability; band: the same of the distribution"
    titled(figure, title, _origin(release, title), legend)
    return figure
