"""The noise of every mechanism against ε, as a figure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pufferfish._draw.figure import new_figure
from pufferfish._draw.svg import INK, MARKS, clean, log_ticks, mark_of, titled
from pufferfish.compare.rows import ComparisonRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_noise"]

_AS_ONE = 0.01
"""Curves of noise within this share of each other cannot be told apart in a picture."""


def draw_noise(
    comparisons: Mapping[float, Sequence[ComparisonRow]], made: Sequence[str] = (), measure: str = ""
) -> "Figure":
    """Draw the noise scale of every mechanism against ε, with the lower bound that none can go below.

    Parameters
    ----------
    comparisons : mapping from float to sequence of ComparisonRow
        What :func:`pufferfish.compare` returned for each ε, all for one query.
    made : sequence of str, optional
        What stands above the picture: the query and of how many records it is, then the model.
    measure : str, optional
        What the query's answers are numbers of.
    """
    figure = new_figure(8.2, 4.8)
    axes: Any = figure.add_subplot()
    epsilons = sorted(comparisons)
    curves: dict[str, list[tuple[float, float]]] = {name: [] for name in MARKS}
    floor: dict[float, float] = {}
    for e in epsilons:
        for row in comparisons[e]:
            if row.noise == "best":  # its error is not in proportion to its largest loss
                continue
            if row.scale:
                curves.setdefault(row.mechanism, []).append((e, row.scale))
            if row.scale and row.lower_bound:
                floor[e] = row.lower_bound
    titles = {row.mechanism: row.title for row in comparisons[epsilons[0]]}
    drawn: list[str] = []
    for name, curve in curves.items():
        if not curve:
            continue
        under = next((other for other in drawn if _same(curves[other], curve)), None)
        same = "" if under is None else f", the same as\n{titles[under]} within 1%"
        hidden = any(_same(curve, curves[other]) for other in curves if other not in (*drawn, name))
        at, noise = zip(*curve, strict=True)
        colour, marker = mark_of(name)
        wide, size = (4.5, 9.0) if hidden else (1.6, 4.5)
        label = f"{titles[name]}{same}"
        axes.plot(at, noise, color=colour, marker=marker, markersize=size, linewidth=wide, label=label)
        drawn.append(name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    if floor:
        at, noise = zip(*floor.items(), strict=True)
        axes.plot(at, noise, color=INK, linestyle=(0, (4, 2)), linewidth=1.0, label="lower bound")
        axes.autoscale(False)
        grey = "too little: Laplace noise of one\nscale does not give the guarantee"
        axes.fill_between(at, noise, axes.get_ylim()[0], color="0.92", linewidth=0, zorder=0, label=grey)
    axes.set_xticks(epsilons, [f"{e:.3g}" for e in epsilons])
    if drawn:
        ticks = log_ticks(*axes.get_ylim())
        axes.set_yticks(ticks, [f"{tick:,.6g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("ε (privacy parameter)")
    axes.set_ylabel(f"noise scale{f' ({measure})' if measure else ''}")
    axes.grid(which="major", color="0.92", linewidth=0.6)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5), labelspacing=0.8)
    clean(axes)
    titled(figure, *(made or ["Noise of each mechanism against ε"]))
    return figure


def _same(one: Sequence[tuple[float, float]], other: Sequence[tuple[float, float]]) -> bool:
    """Return whether two curves lie on each other: noise at the same ε, within a hundredth of each other."""
    return [e for e, _ in one] == [e for e, _ in other] and all(
        abs(a - b) <= _AS_ONE * b for (_, a), (_, b) in zip(one, other, strict=True)
    )
