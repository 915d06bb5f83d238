"""What the figures of the experiments share."""

from collections.abc import Iterable, Sequence
from typing import Any

from pufferfish._draw.figure import INK, MARKS, new_figure

__all__ = ["clean", "legend", "logarithmic", "marks", "new_figure", "series"]


def series(
    axes: Any, mechanism: str, at: Sequence[Any], values: Sequence[Any], *, marks: Sequence[Any], label: str
) -> None:
    """Draw a line through values, and marks beside it, in the mechanism's colour."""
    if not at:
        return
    colour, marker = MARKS[mechanism]
    axes.plot(at, values, color=colour, linewidth=1.3, zorder=2)
    axes.plot(at, marks, color=colour, marker=marker, markersize=4.5, linestyle="", label=label, zorder=3)


def marks(
    axes: Any,
    mechanism: str,
    at: Sequence[Any],
    values: Sequence[Any],
    *,
    label: str | None = None,
    hollow: bool = False,
) -> None:
    """Draw marks in the mechanism's colour and shape; hollow ones are the paper's."""
    if not at:
        return
    colour, marker = MARKS[mechanism]
    axes.plot(
        at,
        values,
        color=colour,
        marker=marker,
        markersize=7,
        linestyle="",
        markerfacecolor="none" if hollow else colour,
        markeredgecolor=colour,
        label=label,
        zorder=3,
    )


def clean(axes: Any) -> None:
    """Leave a frame of two sides, and a pale grid."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(which="major", color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)


def logarithmic(axes: Any, which: str) -> None:
    """Make the x or the y axis logarithmic; minor ticks go without labels, which would overlap."""
    from matplotlib.ticker import NullFormatter

    axes.set(**{f"{which}scale": "log"})
    getattr(axes, f"{which}axis").set_minor_formatter(NullFormatter())


def legend(figure: Any, panels: Iterable[Any], title: str, *, columns: int = 7) -> None:
    """Put what the marks of all panels mean under the figure."""
    found = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    handles, labels = list(found.values()), list(found)
    box = figure.legend(
        handles,
        labels,
        title=title,
        loc="outside lower center",
        ncols=min(len(labels), columns),
        frameon=False,
        fontsize=9,
        title_fontsize=9,
        labelcolor=INK,
    )
    box.get_title().set_multialignment("center")
