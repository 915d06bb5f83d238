"""The picture of a release: its values with the error bars of their noise."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish.queries import Joint, Transitions, measure_of
from pufferfish.release.fields import ReleaseFields
from pufferfish.release.groups_picture import draw_groups
from pufferfish.release.query_rules import joint_nodes, nodes_of
from pufferfish.release.table_picture import draw_table
from pufferfish.report.palette import BLUE, INK, PALE
from pufferfish.report.plot import require_matplotlib, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_release"]

_MOST_LABELS = 26


def draw_release(release: ReleaseFields) -> "Figure":
    """Draw the released value of each output with a 95% error bar of its noise; a table of two ways as a heat map."""
    require_matplotlib()
    if release.groups is not None:
        return draw_groups(release, release.groups)
    if release.query.kind in Transitions.kinds:
        states, steps = release.theta.states, f"{release.data.steps or 0:,} steps"
        return draw_table(release, ("from", states), ("to", states), steps)
    nodes = nodes_of(release)
    names = (joint_nodes(release.query.labels, nodes) if release.query.kind in Joint.kinds else None) or []
    if len(names) == 2:
        row, column = ((name, nodes[name]) for name in names)
        return draw_table(release, row, column, _rows(release))
    from matplotlib.figure import Figure

    labels, values = [shortened(label) for label in release.query.labels], release.value
    errors = release.accuracies(0.05)
    wide = min(14.0, max(5.0, 0.32 * len(labels) + 2))
    figure: Any = Figure(figsize=(wide, 4.2), layout="constrained")
    axes: Any = figure.add_subplot()
    at = np.arange(len(labels))
    low, high = release.noisy_values - errors, release.noisy_values + errors
    bars = axes.bar(at, values, width=0.8 if len(labels) > 1 else 0.3, color=PALE, edgecolor=BLUE, linewidth=0.8)
    lines = axes.vlines(at, low, high, color=INK, linewidth=1.2)
    axes.plot(at, release.noisy_values, linestyle="", marker="_", color=INK, markersize=6)
    axes.axhline(0, color=INK, linewidth=0.6)
    if len(labels) == 1:
        axes.set_xlim(-1, 1)
    every = -(-len(labels) // _MOST_LABELS)
    crowded = sum(len(label) + 2 for label in labels) > 11 * wide
    many = len(labels) > 120
    if many:
        for bar in bars:
            bar.set_linewidth(0)
    axes.set_xticks(
        at[::every],
        labels[::every],
        parse_math=False,
        rotation=60 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor" if crowded else "default",
    )
    axes.set_ylabel(measure_of(release.query.kind))
    if len(labels) > 1 and release.data.base is not None:
        axes.set_xlabel(shortened(release.data.base.state), parse_math=False)
    n = f"n = {release.data.records:,}" if release.data.rows is None else _rows(release)
    axes.set_title(f"{release.mechanism.title}, ε = {release.epsilon:g}, {n}", loc="left")
    least, most = (f"{error:.3g}" for error in (errors.min(), errors.max()))
    shown = "released value" + (" (post-processed)" if release.postprocessing else "")
    figure.legend(
        [bars, lines],
        [shown, f"noisy value ± {least if least == most else f'{least} to {most}'}, 95% of the noise of each output"],
        loc="outside lower left",
        frameon=False,
        fontsize=9,
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def _rows(release: ReleaseFields) -> str:
    n = release.data.subjects
    return f"{n:,} row{'' if n == 1 else 's'}"
