"""Graphs as figures: nodes told apart by shape as well as by colour, with arrows between rows.

Hollow nodes and shapes read in grey print, and for all eyes. Lengths are inches throughout, so that boxes are as wide
as their names.
"""

import re
import textwrap
import warnings
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._draw.chart import Graph, Role
from pufferfish._draw.figure import new_figure, require_matplotlib
from pufferfish.errors import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pufferfish._draw.layers import Layout

__all__ = ["draw_graph"]

_INK, _GREY = "#1a1a1a", "#8c8c8c"
_COLOURS: dict[Role, tuple[str, str, float]] = {
    "node": ("#D55E00", _INK, 2.2),
    "quilt": ("#56B4E9", "#0072B2", 1.6),
    "nearby": ("#F5CE7A", "#B87F00", 1.2),
    "remote": ("#ECECEC", _GREY, 0.8),
    "plain": ("#ECECEC", _GREY, 0.8),
}
"""Face, border and its width: vermilion, sky blue and orange of Okabe and Ito, lightened where grey print needs it."""

_CORNERS: dict[Role, tuple[float, float, int]] = {
    "node": (0.3, 0.3, 2),
    "quilt": (0.3, 0.5, 2),
    "nearby": (0.38, 0.38, 9),
    "remote": (0, 0, 1),
    "plain": (0, 0, 1),
}
"""What is cut off a corner across and along, in heights of the box, and points of the cut: two straight, more round."""

_FONT, _HEIGHT, _PAD, _NARROWEST = 8.0, 0.4, 0.13, 0.62
_MARGIN, _LINE, _ENTRY, _COLUMN = 0.25, 0.2, 0.27, 2.7
_LEAST_WIDTH, _LEAST_WIDTH_IN_PAGE, _LETTERS = 6.4, 3.3, 11
"""Least width of a picture, and of one without a title, which a phone shows whole; letters that fit an inch."""


def draw_graph(graph: Graph, *, in_page: bool = False) -> "Figure":
    """Draw a graph, its title above; a page has the title beside the picture, which is then as wide as what is in it.

    Raises
    ------
    ParameterError
        If matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib.legend_handler import HandlerPatch
    from matplotlib.patches import FancyArrowPatch, Polygon

    from pufferfish._draw.layers import layered

    least = _LEAST_WIDTH_IN_PAGE if in_page else _LEAST_WIDTH
    texts = [words for words in (graph.title, graph.note) if words and not in_page]
    labels = [_label(name) for name in graph.names]
    widths = [max(_NARROWEST, _text_width(label) + 2 * _PAD) for label in labels]
    layout = layered(graph.parents, widths, _HEIGHT)
    wide = max(least, layout.size[0] + 2 * _MARGIN)
    title = [line for words in texts for line in textwrap.wrap(words, int(_LETTERS * wide))]
    columns = max(1, min(len(graph.legend), int((wide - 2 * _MARGIN) / _COLUMN)))
    below = _MARGIN + _ENTRY * -(-len(graph.legend) // columns) + (_MARGIN if graph.legend else 0)
    tall = below + layout.size[1] + _LINE * len(title) + 2 * _MARGIN

    figure = new_figure(wide, tall, layout=None)
    axes: Any = figure.add_axes((0, 0, 1, 1))
    left = (wide - layout.size[0]) / 2
    axes.set(xlim=(-left, wide - left), ylim=(-below, tall - below))
    axes.set_axis_off()
    for (parent, child), path in _paths(layout, widths).items():
        near = {graph.roles[parent], graph.roles[child]} <= {"node", "quilt", "nearby"}
        line, colour = (1.1, _INK) if near else (0.7, _GREY)
        head = "-|>,head_length=3.4,head_width=1.7"
        axes.add_patch(
            FancyArrowPatch(path=path, arrowstyle=head, lw=line, color=colour, fill=True, zorder=1 + near / 2)
        )
    for i, (x, y) in enumerate(layout.positions):
        axes.add_patch(Polygon(**_box(graph.roles[i], graph.filled[i], x, y, widths[i], _HEIGHT)))
        font: dict[str, Any] = {"fontsize": _FONT, "color": _INK, "linespacing": 1.05, "parse_math": False}
        axes.text(x, y, labels[i], ha="center", va="center_baseline", zorder=3, **font)
    corner: dict[str, Any] = {"x": _MARGIN / wide, "y": 1 - _MARGIN / tall, "ha": "left", "va": "top"}
    figure.suptitle("\n".join(title), fontsize=10, parse_math=False, **corner)
    if graph.legend:
        legend = figure.legend(
            [Polygon(**_box(role, filled, 12, 3, 24, 11)) for role, filled, _ in graph.legend],
            [words for _, _, words in graph.legend],
            handler_map={Polygon: HandlerPatch(_as_it_is)},
            loc="lower left",
            bbox_to_anchor=(_MARGIN / wide, 0.6 * _MARGIN / tall),
            borderaxespad=0,
            borderpad=0,
            ncols=columns,
            frameon=False,
            fontsize=9,
            handlelength=8 / 3,
            handleheight=4 / 3,
            labelspacing=0.75,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
    return figure


def _box(role: Role, filled: bool, x: float, y: float, width: float, height: float) -> dict[str, Any]:
    """Return the polygon of a node around (x, y), in the shape and colours of its role."""
    face, border, line = _COLOURS[role]
    across, along, points = _CORNERS[role]
    turn = np.linspace(0, np.pi / 2, points)
    right = width / 2 - height * across * (1 - np.cos(turn))
    top = height / 2 - height * along * (1 - np.sin(turn))
    xs = np.concatenate([right, -right[::-1], -right, right[::-1]])
    ys = np.concatenate([top, top[::-1], -top, -top[::-1]])
    return {
        "xy": np.column_stack([x + xs, y + ys]),
        "facecolor": face if filled else "white",
        "edgecolor": border if filled or role != "node" else face,
        "linewidth": line,
        "linestyle": "-" if filled else (0, (3, 1.5)),
        "zorder": 2,
    }


def _as_it_is(*, orig_handle: Any, **_: Any) -> Any:
    """Return the polygon of an entry of the legend, whose default is a plain rectangle."""
    from matplotlib.patches import Polygon

    return Polygon(orig_handle.get_xy())


def _paths(layout: "Layout", widths: list[float]) -> dict[tuple[int, int], Any]:
    """Return the curve of every edge: upright at boxes and through rows, and bent between them.

    Edges leave and enter a box side by side, in the order of where they go.
    """
    from matplotlib.path import Path

    half = _HEIGHT / 2
    ways = {(p, c): [layout.positions[p], *way, layout.positions[c]] for (p, c), way in layout.routes.items()}
    ports: dict[tuple[int, int], list[float]] = {edge: [0.0, 0.0] for edge in ways}
    for end, step in ((0, 1), (1, -2)):
        for node in range(len(widths)):
            here = sorted((ways[edge][step][0], edge) for edge in ways if edge[end] == node)
            apart = min(0.12, 0.6 * widths[node] / max(len(here) - 1, 1))
            for i, (_, edge) in enumerate(here):
                ports[edge][end] = layout.positions[node][0] + (i - (len(here) - 1) / 2) * apart
    paths: dict[tuple[int, int], Any] = {}
    for edge, way in ways.items():
        xs = [ports[edge][0], *(x for x, _ in way[1:-1]), ports[edge][1]]
        points, codes = [(xs[0], way[0][1] - half)], [int(Path.MOVETO)]
        for (x0, x1), ((_, y0), (_, y1)) in zip(pairwise(xs), pairwise(way), strict=True):
            if len(points) > 1:
                points, codes = [*points, (x0, y0 - half)], [*codes, int(Path.LINETO)]
            middle = (y0 + y1) / 2
            points += [(x0, middle), (x1, middle), (x1, y1 + half)]
            codes += [int(Path.CURVE4)] * 3
        paths[edge] = Path(points, codes)
    return paths


def _label(name: str) -> str:
    """Return a name in one or two lines that fit a box; of longer ones the middle is left out."""
    plain = printable(name)
    if len(plain) > 26:
        return f"{plain[:12]}…\n{plain[-13:]}"
    breaks = [m.end() for m in re.finditer(r"[\s_\-./:]+(?=.)|[a-z0-9](?=[A-Z])", plain)]
    fitting = [split for split in breaks if 3 <= split <= min(len(plain) - 2, 13) >= len(plain) - split - 1]
    if len(plain) <= (9 if fitting else 13):
        return plain
    split = min(fitting, key=lambda split: abs(2 * split - len(plain)), default=(len(plain) + 1) // 2)
    return f"{plain[:split].rstrip()}\n{plain[split:]}"


def _text_width(label: str) -> float:
    """Return the width of the widest line, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box is drawn
        draw, font = TextToPath(), FontProperties(size=_FONT)
        return max(draw.get_text_width_height_descent(line, font, False)[0] for line in label.split("\n")) / 72
