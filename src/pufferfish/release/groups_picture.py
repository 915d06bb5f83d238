"""The picture of a release by groups: a panel for each group, or values along the groups, or a heat map of many."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.queries import measure_of
from pufferfish.release.fields import ReleaseFields
from pufferfish.release.groups import GroupsRecord
from pufferfish.report.palette import BLUE, INK, PALE
from pufferfish.report.plot import require_matplotlib, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_groups"]

_MOST_PANELS = 12
_MOST_BARS = 60
_MOST_TICKS = 40

Array = NDArray[np.float64]


def draw_groups(release: ReleaseFields, groups: GroupsRecord) -> "Figure":
    """Draw the values of each group, with 95% error bars of the noise where there is room for them.

    One output: values along the groups of one grouping, a heat map of two. Several: a panel for each of few groups, a
    heat map of groups and outputs where there are many.
    """
    require_matplotlib()
    outputs = [shortened(label) for label in release.query.labels]
    cells = [shortened(", ".join(cell)) for cell in groups.cells]
    values = release.value
    if len(outputs) > 1:
        if len(cells) <= _MOST_PANELS:
            return _panels(release, groups, outputs, values)
        return _heat_map(release, groups, values, cells, outputs, (", ".join(groups.by), _states(release)))
    if len(groups.by) == 1:
        return _along(release, groups, cells, values[:, 0])
    rows, columns = _distinct([cell[:-1] for cell in groups.cells]), _distinct([cell[-1:] for cell in groups.cells])
    table = np.full((len(rows), len(columns)), np.nan)
    for cell, value in zip(groups.cells, values[:, 0].tolist(), strict=True):
        table[rows.index(tuple(cell[:-1])), columns.index(tuple(cell[-1:]))] = value
    down, across = ([shortened(", ".join(label)) for label in labels] for labels in (rows, columns))
    return _heat_map(release, groups, table, down, across, (", ".join(groups.by[:-1]), groups.by[-1]))


def _panels(release: ReleaseFields, groups: GroupsRecord, outputs: list[str], values: Array) -> "Figure":
    """Draw bars of the outputs, a panel for each group."""
    from matplotlib.figure import Figure

    n, noisy = len(values), np.array(release.noisy_values).reshape(values.shape)
    columns = min(4, n)
    lines = -(-n // columns)
    wide = min(4.2, max(2.2, 0.3 * len(outputs) + 1))
    figure: Any = Figure(figsize=(max(5.0, wide * columns), 2.4 * lines + 1), layout="constrained")
    panels: Any = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    at = np.arange(len(outputs))
    crowded = sum(len(label) + 2 for label in outputs) > 11 * wide
    for g, axes in enumerate(panels.ravel()):
        if g >= n:
            axes.set_axis_off()
            continue
        _bars(axes, at, values[g], noisy[g], np.full(len(at), groups.error_95[g]))
        label = shortened(", ".join(groups.cells[g]))
        axes.set_title(f"{label} (n = {groups.records[g]:,})", fontsize=9, loc="left", parse_math=False)
        axes.set_xticks(at, outputs, parse_math=False, rotation=60 if crowded else 0)
    for axes in panels[:, 0]:
        axes.set_ylabel(measure_of(release.query.kind))
    return _titled(figure, release, groups, "bars: noisy value ± 95% of its noise")


def _along(release: ReleaseFields, groups: GroupsRecord, cells: list[str], values: Array) -> "Figure":
    """Draw one value for each group: bars, or a line where there are many."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(min(14.0, max(5.0, 0.32 * len(cells) + 2)), 4.2), layout="constrained")
    axes: Any = figure.add_subplot()
    at, noisy, error = np.arange(len(cells)), np.array(release.noisy_values), np.array(groups.error_95)
    if len(cells) <= _MOST_BARS:
        _bars(axes, at, values, noisy, error)
    else:
        axes.fill_between(at, noisy - error, noisy + error, color=PALE, linewidth=0)
        axes.plot(at, values, color=BLUE, linewidth=1.0)
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.margins(x=0.01)
    _ticks(axes.set_xticks, cells, rotation=60 if sum(len(cell) + 2 for cell in cells) > 120 else 0)
    axes.set_xlabel(", ".join(groups.by), parse_math=False)
    axes.set_ylabel(f"{measure_of(release.query.kind)}: {shortened(release.query.labels[0])}", parse_math=False)
    return _titled(figure, release, groups, "with the noisy value ± 95% of its noise")


def _heat_map(
    release: ReleaseFields,
    groups: GroupsRecord,
    table: Array,
    rows: list[str],
    columns: list[str],
    names: tuple[str, str],
) -> "Figure":
    """Draw a table of values as colours; what is not there stays empty."""
    from matplotlib.figure import Figure

    wide, high = min(12.0, max(5.5, 0.3 * len(columns) + 3.5)), min(12.0, max(3.5, 0.18 * len(rows) + 1.5))
    figure: Any = Figure(figsize=(wide, high), layout="constrained")
    axes: Any = figure.add_subplot()
    drawn = axes.imshow(table, aspect="auto", interpolation="nearest", cmap="Blues")
    _ticks(axes.set_xticks, columns, rotation=60 if sum(len(label) + 2 for label in columns) > 11 * wide else 0)
    _ticks(axes.set_yticks, rows)
    axes.set_ylabel(names[0], parse_math=False)
    axes.set_xlabel(names[1], parse_math=False)
    what = measure_of(release.query.kind)
    label = what if len(release.query.labels) > 1 else f"{what}: {shortened(release.query.labels[0])}"
    figure.colorbar(drawn, ax=axes).set_label(label, parse_math=False)
    low, high_error = min(groups.error_95), max(groups.error_95)
    error = f"{low:.3g}" if low == high_error else f"{low:.3g} to {high_error:.3g}"
    return _titled(figure, release, groups, f"each within {error}, with 95% probability")


def _bars(axes: Any, at: Any, values: Array, noisy: Array, error: Array) -> None:
    axes.bar(at, values, color=PALE, edgecolor=BLUE, linewidth=0.8)
    axes.vlines(at, noisy - error, noisy + error, color=INK, linewidth=1.0)
    axes.axhline(0, color=INK, linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _ticks(place: Any, labels: list[str], rotation: int = 0) -> None:
    every = -(-len(labels) // _MOST_TICKS)
    place(range(0, len(labels), every), labels[::every], parse_math=False, rotation=rotation)


def _titled(figure: Any, release: ReleaseFields, groups: GroupsRecord, noise: str) -> "Figure":
    n = f"n = {release.data.records:,}" if release.data.rows is None else f"{release.data.subjects:,} rows"
    by = shortened(", ".join(groups.by), 60)
    done = "; post-processed" if release.postprocessing else ""
    lines = f"{release.query.kind} by {by}", f"{release.mechanism.title}, ε = {release.epsilon:g}, {n}", noise + done
    figure.suptitle("\n".join(lines), fontsize=10, x=0.01, ha="left", parse_math=False)
    return figure


def _states(release: ReleaseFields) -> str:
    base = release.data.base
    return "" if base is None else shortened(base.state)


def _distinct(labels: list[Any]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(tuple(label) for label in labels))
