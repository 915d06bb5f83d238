"""Pictures of releases: bars with the errors of their noise, groups, tables of two ways, and quantiles.

:func:`draw_release` at the end chooses which; the pictures of groups and of tables stand before it.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pufferfish._base.view import counted
from pufferfish._base.words import WEAK
from pufferfish._draw.figure import new_figure, require_matplotlib
from pufferfish._draw.svg import (
    BLUE,
    INK,
    LINES,
    LONGEST_ROW,
    ORANGE,
    PALE,
    bars_with_errors,
    clean,
    errors_are_seen,
    is_share,
    lie_better,
    log_ticks,
    made_with,
    name_rows,
    name_ticks,
    percent,
    shortened,
    titled,
    told_error,
)
from pufferfish.data.groups import cells_for_people
from pufferfish.queries import Joint, Transitions, measure_of
from pufferfish.release.facts import GroupsRecord, decode
from pufferfish.release.record import ReleaseFields

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_groups", "draw_release", "draw_table"]

# -- The picture of a release by groups ------------------------------------------------------------------------------

_HOLLOW = "; hollow: no larger than its error"
_MOST_PANELS = 12
_MOST_BARS = 60
_MOST_TICKS = 40

Array = NDArray[np.float64]


def draw_groups(release: ReleaseFields, groups: GroupsRecord) -> "Figure":
    """Draw the values of each group, with 95% error bars of the noise where there is room for them.

    One output of one grouping: values along the groups. Several outputs of few groups: a panel for each group, which is
    a table from state to state for transitions. Else a panel for each output, with a scale of its own, so that rare
    states are seen beside frequent ones: lines along the grouping that has most groups, one for each group of the
    others, or heat maps where these are many.
    """
    groups = replace(groups, cells=cells_for_people(groups.by, groups.cells))
    if release.query.kind in Transitions.kinds and len(groups.cells) <= _MOST_PANELS:
        return _table_of_each_group(release, groups)
    if len(release.query.labels) > 1 and len(groups.cells) <= _MOST_PANELS:
        return _panel_of_each_group(release, groups)
    if len(release.query.labels) == 1 and len(groups.by) == 1:
        return _along(release, groups)
    return _panel_of_each_output(release, groups)


def _panel_of_each_group(release: ReleaseFields, groups: GroupsRecord) -> "Figure":
    """Draw bars of the outputs, a panel for each group."""
    outputs, share = [shortened(label) for label in release.query.labels], _shares(release)
    values, noisy = release.value, np.array(release.noisy_values).reshape(release.value.shape)
    wide = min(4.2, max(5.0 / len(values), 2.4, 0.3 * len(outputs) + 1))
    lying = lie_better(outputs, wide)
    if lying:
        outputs, wide = [shortened(label, LONGEST_ROW) for label in release.query.labels], 4.2
    figure, panels = _grid(len(values), wide, max(1.4, 0.24 * len(outputs) + 0.8) if lying else 2.6, alike=not lying)
    errors = release.accuracies(0.05)
    seen = errors_are_seen(values, noisy, errors)
    for g, axes in enumerate(panels):
        bars_with_errors(axes, values[g], noisy[g], errors[g], share=share, seen=seen, lying=lying)
        label = shortened(", ".join(groups.cells[g]))
        axes.set_title(f"{label} (n = {groups.records[g]:,})", fontsize=9, loc="left", parse_math=False)
        if lying:
            name_rows(axes, outputs)
        else:
            name_ticks(axes, outputs, wide)
        axes.tick_params(labelbottom=True)
        clean(axes, share, lying=lying)
    if lying:
        _same_scale(panels)
    (figure.supxlabel if lying else figure.supylabel)(measure_of(release.query.kind), fontsize=10)
    return _titled(figure, release, groups, seen=seen)


def _table_of_each_group(release: ReleaseFields, groups: GroupsRecord) -> "Figure":
    """Draw the steps from each state to each as a table of colours, for each group."""
    states = [shortened(state) for state in release.theta.states]
    k, wide = len(states), min(6.0, max(3.6, 0.5 * len(states) + 2))
    figure, panels = _grid(len(groups.cells), wide, max(2.6, min(6.0, 0.35 * k + 1.2)))
    steps = groups.steps or groups.records
    values, weak = (
        release.value.reshape(-1, k, k),
        (np.abs(release.value) <= release.accuracies(0.05)).reshape(-1, k, k),
    )
    for axes, cell, n, table, faint in zip(panels, groups.cells, steps, values, weak, strict=True):
        _heat_map(figure, axes, table, states, _shares(release))
        name_ticks(axes, states, wide, most=_MOST_LABELS)
        axes.set_title(f"{shortened(', '.join(cell))} ({n:,} steps)", fontsize=9, loc="left", parse_math=False)
        if k <= _MOST_WRITTEN:
            most = float(np.abs(table).max()) or 1.0
            for (x, y), value in np.ndenumerate(table):
                text = f"{WEAK} {_written(value)}" if faint[x, y] else _written(value)
                colour = "white" if abs(value) > 0.6 * most else INK
                axes.text(y, x, text, ha="center", va="center", fontsize=7, color=colour)
    figure.supxlabel("to", fontsize=10)
    figure.supylabel("from", fontsize=10)
    return _titled(figure, release, groups, seen=False, drawn=False, more="; each panel has its own scale")


def _written(value: float) -> str:
    """Write a number into a cell of a table."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _along(release: ReleaseFields, groups: GroupsRecord) -> "Figure":
    """Draw one value for each group: bars, or a line where there are many."""
    cells = [shortened(", ".join(cell)) for cell in groups.cells]
    wide, share = min(14.0, max(5.0, 0.32 * len(cells) + 2)), _shares(release)
    lying = lie_better(cells, wide)
    figure = new_figure(6.4, max(3.0, 0.26 * len(cells) + 1.6)) if lying else new_figure(wide, 4.2)
    axes: Any = figure.add_subplot()
    values, noisy, error = release.value[:, 0], np.array(release.noisy_values), np.array(groups.error_95)
    seen = len(cells) > _MOST_BARS or errors_are_seen(values, noisy, error)
    if len(cells) <= _MOST_BARS:
        bars_with_errors(axes, values, noisy, error, share=share, seen=seen, lying=lying)
    else:
        positions = np.arange(len(cells))
        axes.fill_between(positions, noisy - error, noisy + error, color=PALE, linewidth=0)
        axes.plot(positions, values, color=BLUE, linewidth=1.0)
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.margins(x=0.01)
    if lying:
        name_rows(axes, cells)
    else:
        name_ticks(axes, cells, wide, most=_MOST_TICKS)
    measure = f"{measure_of(release.query.kind)}: {shortened(release.query.labels[0])}"
    places = ", ".join(groups.by)
    axes.set_xlabel(measure if lying else places, parse_math=False)
    axes.set_ylabel(places if lying else measure, parse_math=False)
    clean(axes, share, lying=lying)
    return _titled(figure, release, groups, seen=seen)


def _panel_of_each_output(release: ReleaseFields, groups: GroupsRecord) -> "Figure":
    """Draw each output in a panel of its own, those with the largest values where there are many outputs."""
    labels = release.query.labels
    by_size = np.argsort(-np.nansum(release.value, axis=0), kind="stable")[:_MOST_PANELS]
    chosen = sorted(int(j) for j in by_size)
    distinct = [list(dict.fromkeys(cell[i] for cell in groups.cells)) for i in range(len(groups.by))]
    i = max(range(len(groups.by)), key=lambda i: len(distinct[i]))
    across = distinct[i]
    others = list(dict.fromkeys(_other_labels(cell, i) for cell in groups.cells))
    table = np.full((len(others), len(across), len(chosen)), np.nan)
    noisy, error = table.copy(), table.copy()
    noisy_values = np.array(release.noisy_values).reshape(release.value.shape)
    for cell, value, noisy_row, error_row in zip(
        groups.cells, release.value, noisy_values, release.accuracies(0.05), strict=True
    ):
        at = others.index(_other_labels(cell, i)), across.index(cell[i])
        table[at], noisy[at], error[at] = value[chosen], noisy_row[chosen], error_row[chosen]
    lines = len(others) <= len(LINES)
    wide = 4.2 if len(chosen) > 1 else 6.5
    figure, panels = _grid(len(chosen), wide, 2.8 if lines else min(8.0, max(2.8, 0.16 * len(others) + 1.2)))
    for j, axes in enumerate(panels):
        if lines:
            _lines(axes, table[:, :, j], noisy[:, :, j], error[:, :, j], _shares(release))
        else:
            _heat_map(figure, axes, table[:, :, j], others, _shares(release))
        name_ticks(axes, [shortened(name) for name in across], wide, most=13)
        axes.tick_params(labelbottom=True)
        axes.set_title(shortened(labels[chosen[j]], 40), fontsize=9, loc="left", parse_math=False)
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
        figure.legend(
            handles, names, loc="outside lower left", ncols=4, frameon=False, fontsize=9, title=", ".join(rest)
        )
    left = len(labels) - len(chosen)
    more = f"; the {left:,} outputs with the least values are not drawn" if left else ""
    scales = "; each panel has its own scale" if len(chosen) > 1 else ""
    return _titled(figure, release, groups, seen=lines, drawn=lines, more=more + scales)


def _lines(axes: Any, values: Array, noisy: Array, error: Array, share: bool) -> None:
    """Draw each row of values as a line, in a band as wide as the error of its noise."""
    positions = list(range(int(values.shape[1])))
    for row, noisy_row, error_row, (colour, marker) in zip(values, noisy, error, LINES, strict=False):
        axes.plot(positions, row, color=colour, marker=marker, markersize=3.5, linewidth=1.2)
        axes.fill_between(
            positions, noisy_row - error_row, noisy_row + error_row, color=colour, alpha=0.15, linewidth=0
        )
    for row, error_row, (colour, marker) in zip(
        values, error, LINES, strict=False
    ):  # after all lines: a legend has those
        weak = np.abs(row) <= error_row
        axes.plot(np.array(positions)[weak], row[weak], marker, color=colour, markersize=3.5, markerfacecolor="white")
    axes.axhline(0, color=INK, linewidth=0.6)
    clean(axes, share)


def _heat_map(figure: Any, axes: Any, table: Array, rows: list[str], share: bool) -> None:
    """Draw values as colours, dark above 0 in one colour and below in another; what is not there stays empty."""
    from matplotlib.ticker import FuncFormatter, StrMethodFormatter

    most = float(np.nanmax(np.abs(table))) or 1.0
    signed = float(np.nanmin(table)) < 0
    image = axes.imshow(
        table,
        aspect="auto",
        interpolation="nearest",
        cmap="PuOr_r" if signed else "Blues",
        vmin=-most if signed else 0.0,
        vmax=most,
    )
    tick_step = -(-len(rows) // _MOST_TICKS)
    axes.set_yticks(
        range(0, len(rows), tick_step), [shortened(row) for row in rows[::tick_step]], parse_math=False, fontsize=7
    )
    figure.colorbar(image, ax=axes, format=FuncFormatter(percent) if share else StrMethodFormatter("{x:,.10g}"))


def _grid(n: int, wide: float, high: float, *, alike: bool = False) -> tuple[Any, list[Any]]:
    """Return a figure with so many panels, at most four in a row."""
    columns = n if n <= 3 else min(4, math.ceil(math.sqrt(n)))
    lines = -(-n // columns)
    figure = new_figure(max(5.0, wide * columns), high * lines + 1)
    panels: Any = figure.subplots(lines, columns, squeeze=False, sharey=alike).ravel()
    for axes in panels[n:]:
        axes.set_axis_off()
    return figure, list(panels[:n])


def _same_scale(panels: list[Any]) -> None:
    """Give all panels of lying bars the same ends of their scale."""
    ends = np.array([axes.get_xlim() for axes in panels])
    for axes in panels:
        axes.set_xlim(ends[:, 0].min(), ends[:, 1].max())


def _titled(
    figure: Any, release: ReleaseFields, groups: GroupsRecord, *, seen: bool, drawn: bool = True, more: str = ""
) -> "Figure":
    """Return the figure with its title, and with a note on the errors: whether they are seen, or drawn at all."""
    errors = release.accuracies(0.05)
    error = told_error(float(errors.min()), float(errors.max()), _shares(release))
    unseen = "" if seen else ", too little to be seen here" if drawn else ", not drawn"
    postprocessed = "; post-processed" if release.postprocessing else ""
    more += _HOLLOW * bool(drawn and (np.abs(release.value) <= errors).any())
    titled(
        figure,
        f"{release.query.description}, by {', '.join(groups.by)}",
        _origin(release, release.query.description),
        f"each noisy value {error} with 95% probability{unseen}{postprocessed}{more}",
    )
    return figure


def _shares(release: ReleaseFields) -> bool:
    return is_share(measure_of(release.query.kind))


def _other_labels(cell: Any, i: int) -> str:
    return ", ".join(label for j, label in enumerate(cell) if j != i)


def _no_formula(label: str) -> str:
    """Return a label that a legend takes as it is: no formula, and not left out for its underscore."""
    text = label.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


# -- The picture of a release of a table of two ways -----------------------------------------------------------------

_MOST_WRITTEN = 12
"""States up to which the numbers stand in the cells."""

_MOST_LABELS = 30


def draw_table(
    release: ReleaseFields, rows: tuple[str, Sequence[str]], columns: tuple[str, Sequence[str]], n: str
) -> "Figure":
    """Draw the released value of each pair of states as a colour; values that are not positive are left white.

    Parameters
    ----------
    release : ReleaseFields
        The release: its values are those of the first row of the table, then of the next.
    rows, columns : (str, sequence of str)
        What the rows, and the columns, are, and the name of each.
    n : str
        In words, of how much the values are.
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
    tick_step = -(-high // _MOST_LABELS)
    axes.set_yticks(np.arange(0, high, tick_step), row_names[::tick_step], parse_math=False)
    axes.set_xlabel(shortened(columns[0]), parse_math=False)
    axes.set_ylabel(shortened(rows[0]), parse_math=False)
    if max(high, wide) <= _MOST_WRITTEN:
        for (x, y), value in np.ndenumerate(table):
            dark = value > 0 and float(norm(value)) > 0.6
            text = f"{WEAK} {_written(value)}" if abs(value) <= error else _written(value)
            axes.text(y, x, text, ha="center", va="center", fontsize=8, color="white" if dark else INK)
    ticks = log_ticks(float(norm.vmin or 0.0), most)
    bar: Any = figure.colorbar(image, ax=axes, shrink=0.8, ticks=ticks, format=StrMethodFormatter("{x:,.10g}"))
    bar.ax.minorticks_off()
    bar.set_label(f"{measure_of(release.query.kind)} (log scale)")
    titled(
        figure,
        release.query.description,
        made_with(release.mechanism.title, release.epsilon, n, release.query.description),
        f"each value {told_error(error, error, share=False)} with 95% probability; white: nothing, or below 0",
    )
    return figure


# -- The picture of a release: its values with the error bars of their noise -----------------------------------------


def draw_release(release: ReleaseFields) -> "Figure":
    """Draw the released value of each output with a 95% error bar of its noise; a table of two ways as a heat map."""
    if release.groups is not None:
        return draw_groups(release, release.groups)
    if release.query.kind in Transitions.kinds:
        states, steps = release.theta.states, f"{release.data.steps or 0:,} steps"
        return draw_table(release, ("from", states), ("to", states), steps)
    query = decode(release.calibration.query)
    if isinstance(query, Joint) and len(query.records) == 2:
        nodes: Any = release.theta.members[0]["nodes"]
        row, column = ((str(name), list(nodes[str(name)]["states"])) for name in query.records)
        return draw_table(release, row, column, _counted_rows(release))
    return _quantiles(release) if release.quantiles else _values(release)


def _values(release: ReleaseFields) -> "Figure":
    """Draw a bar for each output: upright, or lying where names are long."""
    labels, errors = [shortened(label) for label in release.query.labels], release.accuracies(0.05)
    measure = measure_of(release.query.kind)
    share = is_share(measure)
    wide = min(14.0, max(5.0, 0.32 * len(labels) + 2))
    noisy = np.array(release.noisy_values)
    seen, lying = errors_are_seen(release.value, noisy, errors), lie_better(labels, wide)
    labels = [shortened(label, LONGEST_ROW) for label in release.query.labels] if lying else labels
    figure = new_figure(7.2, max(3.0, 0.26 * len(labels) + 1.6)) if lying else new_figure(wide, 4.2)
    axes: Any = figure.add_subplot()
    bars_with_errors(axes, release.value, noisy, errors, share=share, seen=seen, lying=lying)
    places = shortened(release.data.base.state) if len(labels) > 1 and release.data.base is not None else ""
    if lying:
        name_rows(axes, labels)
    else:
        name_ticks(axes, labels, wide)
    axes.set_xlabel(measure if lying else places, parse_math=False)
    axes.set_ylabel(places if lying else measure, parse_math=False)
    clean(axes, share, lying=lying)
    description = release.query.description
    titled(figure, description, _origin(release, description), _note_on_errors(release, errors, share, seen))
    return figure


def _quantiles(release: ReleaseFields) -> "Figure":
    """Draw the cumulative distribution as steps with its error, and each quantile with the states it may be."""
    quantiles = release.quantiles or []
    states = list(release.theta.states)
    names = [shortened(state) for state in states]
    wide = min(14.0, max(6.0, 0.4 * len(states) + 2))
    figure = new_figure(wide, 4.4)
    axes: Any = figure.add_subplot()
    errors = release.accuracies(0.05, joint=True)
    positions, values = np.arange(len(states)), np.append(release.value, 1.0)
    low, high = np.append(release.value - errors, 1.0), np.append(release.value + errors, 1.0)
    axes.fill_between(positions, low, high, step="post", color=PALE, alpha=0.6, linewidth=0)
    axes.step(positions, values, where="post", color=BLUE, linewidth=1.5)
    axes.plot(positions, values, linestyle="", marker="o", markersize=3, color=BLUE)
    for quantile in quantiles:
        first, here, last = (states.index(x) for x in (quantile.low, quantile.state, quantile.high))
        axes.plot([first, last], [quantile.share] * 2, color=ORANGE, linewidth=3, solid_capstyle="round")
        axes.plot([here], [quantile.share], color=ORANGE, marker="D", markersize=7, markeredgecolor=INK)
        axes.annotate(
            f"{quantile.share:.3%}".replace(".000%", "%") + f": {shortened(quantile.state)}",
            (max(here, last), quantile.share),
            (8, -3),
            textcoords="offset points",
            fontsize=9,
            parse_math=False,
        )
    name_ticks(axes, names, wide)
    axes.set_xlim(-0.3, len(states) - 0.4 + 0.12 * len(states))
    axes.set_ylabel("share of records up to this state")
    clean(axes, share=True)
    legend = "bar: the states it may be, all of them with 95% probability; band: the same of the distribution"
    title = "Quantiles of the records"
    titled(figure, title, _origin(release, title), legend)
    return figure


def _note_on_errors(release: ReleaseFields, errors: Any, share: bool, seen: bool) -> str:
    postprocessed = "; post-processed" if release.postprocessing else ""
    postprocessed += _HOLLOW * bool((np.abs(release.value) <= errors).any())
    error = f"noisy value {told_error(errors.min(), errors.max(), share)} with 95% probability each"
    return f"{'line: ' if seen else ''}{error}{'' if seen else ', too little to be seen here'}{postprocessed}"


def _origin(release: ReleaseFields, title: str) -> str:
    n = f"n = {release.data.records:,}" if release.data.rows is None else _counted_rows(release)
    return made_with(release.mechanism.title, release.epsilon, n, title)


def _counted_rows(release: ReleaseFields) -> str:
    return counted(release.data.subjects, "row")
