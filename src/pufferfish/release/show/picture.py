"""The picture of a release: its values with the error bars of their noise."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._base.view import counted
from pufferfish._draw.figure import new_figure
from pufferfish._draw.svg import (
    BLUE,
    INK,
    LONGEST_ROW,
    ORANGE,
    PALE,
    bars_with_errors,
    clean,
    errors_are_seen,
    is_share,
    lie_better,
    made_with,
    name_rows,
    name_ticks,
    shortened,
    titled,
    told_error,
)
from pufferfish.queries import Joint, Transitions, measure_of
from pufferfish.release.facts import ReleaseFields
from pufferfish.release.query_rules import joint_nodes, nodes_of
from pufferfish.release.show.pictures import draw_groups
from pufferfish.release.show.table_picture import draw_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_release"]


def draw_release(release: ReleaseFields) -> "Figure":
    """Draw the released value of each output with a 95% error bar of its noise; a table of two ways as a heat map."""
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
    return _quantiles(release) if release.quantiles else _values(release)


def _values(release: ReleaseFields) -> "Figure":
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
    titled(figure, description, _made(release, description), _noise(release, errors, share, seen))
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
    at, values = np.arange(len(states)), np.append(release.value, 1.0)
    low, high = np.append(release.value - errors, 1.0), np.append(release.value + errors, 1.0)
    axes.fill_between(at, low, high, step="post", color=PALE, alpha=0.6, linewidth=0)
    axes.step(at, values, where="post", color=BLUE, linewidth=1.5)
    axes.plot(at, values, linestyle="", marker="o", markersize=3, color=BLUE)
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
    how = "bar: the states it may be, all of them with 95% probability; band: the same of the distribution"
    title = "Quantiles of the records"
    titled(figure, title, _made(release, title), how)
    return figure


def _noise(release: ReleaseFields, errors: Any, share: bool, seen: bool) -> str:
    done = "; post-processed" if release.postprocessing else ""
    told = f"noisy value {told_error(errors.min(), errors.max(), share)} with 95% probability each"
    return f"{'line: ' if seen else ''}{told}{'' if seen else ', too little to be seen here'}{done}"


def _made(release: ReleaseFields, title: str) -> str:
    n = f"n = {release.data.records:,}" if release.data.rows is None else _rows(release)
    return made_with(release.mechanism.title, release.epsilon, n, title)


def _rows(release: ReleaseFields) -> str:
    return counted(release.data.subjects, "row")
