"""The picture of a release of a table of two ways, such as transitions (rows = from, columns = to): a heat map."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._draw.figure import new_figure, require_matplotlib
from pufferfish._draw.svg import INK, log_ticks, made_with, name_ticks, shortened, titled, told_error
from pufferfish.queries import measure_of
from pufferfish.release.facts import ReleaseFields

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_table"]

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

    down, across = ([shortened(state) for state in states] for _, states in (rows, columns))
    high, wide, error = len(down), len(across), release.accuracy(0.05)
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
    name_ticks(axes, across, size, most=_MOST_LABELS)
    each = -(-high // _MOST_LABELS)
    axes.set_yticks(np.arange(0, high, each), down[::each], parse_math=False)
    axes.set_xlabel(shortened(columns[0]), parse_math=False)
    axes.set_ylabel(shortened(rows[0]), parse_math=False)
    if max(high, wide) <= _MOST_WRITTEN:
        for (x, y), value in np.ndenumerate(table):
            dark = value > 0 and float(norm(value)) > 0.6
            text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
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
