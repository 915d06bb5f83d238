"""The picture of a release of transitions: a heat map, rows = from, columns = to."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish.queries import measure_of
from pufferfish.release.fields import ReleaseFields
from pufferfish.report.axes import titled
from pufferfish.report.palette import INK
from pufferfish.report.plot import new_figure, require_matplotlib, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_transitions"]

_MOST_WRITTEN = 12
"""States up to which the numbers stand in the cells."""

_MOST_LABELS = 30


def draw_transitions(release: ReleaseFields) -> "Figure":
    """Draw the released value of each pair of states as a colour; values that are not positive are left white."""
    require_matplotlib()
    from matplotlib.colors import LogNorm

    names = [shortened(state) for state in release.theta.states]
    k, error = len(names), release.accuracy(0.05)
    table = release.value.reshape(k, k)
    # what is within the error is noise: colours begin there
    most = max(float(table.max()), error)
    norm = LogNorm(vmin=min(max(error, most / 1e6), most / 2), vmax=most)
    size = min(12.0, max(5.0, 0.55 * k + 2.2))
    figure = new_figure(size + 1.0, size)
    axes: Any = figure.add_subplot()
    image = axes.imshow(np.ma.masked_less_equal(table, 0), cmap="Blues", norm=norm)
    every = -(-k // _MOST_LABELS)
    at = np.arange(0, k, every)
    crowded = sum(len(name) + 2 for name in names[::every]) > 9 * size
    axes.set_xticks(
        at,
        names[::every],
        parse_math=False,
        rotation=60 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor" if crowded else "default",
    )
    axes.set_yticks(at, names[::every], parse_math=False)
    axes.set_xlabel("to")
    axes.set_ylabel("from")
    if k <= _MOST_WRITTEN:
        for (x, y), value in np.ndenumerate(table):
            dark = value > 0 and float(norm(value)) > 0.6
            text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
            axes.text(y, x, text, ha="center", va="center", fontsize=8, color="white" if dark else INK)
    bar: Any = figure.colorbar(image, ax=axes, shrink=0.8, format="%g")
    bar.ax.minorticks_off()
    bar.set_label(measure_of(release.query.kind))
    titled(
        figure,
        release.query.description,
        f"{release.mechanism.title}, ε = {release.epsilon:g}, {release.data.steps or 0:,} steps",
        f"each value ± {error:.3g} with 95% probability; white: nothing, or below 0",
    )
    return figure
