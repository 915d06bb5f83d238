"""Graphs as figures: nodes told apart by shape as well as by colour, with arrows between rows.

Hollow nodes and shapes read in grey print, and for all eyes. Lengths are inches throughout, so that boxes are as wide
as their names.

Where nodes of a graph without cycles stand is decided in the way of Gansner, Koutsofios, North and Vo (1993), in short:

1. rows that make all edges together as short as can be, by a flow of least cost; what a full row cannot take goes down;
2. an edge that passes rows takes a *lane* in each of them, so that it runs between boxes;
3. rows are put in order by the barycentres of their neighbours, down and up in turn; the fewest crossings are kept;
4. boxes and lanes move toward their neighbours as far as order and distances let them: least squares, row by row.

Parts that no edge joins are laid out by themselves and set side by side. Nothing is random: one graph, one picture.
"""

import importlib
import math
import re
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._draw.chart import Graph, Role
from pufferfish._draw.figure import new_figure, require_matplotlib
from pufferfish.errors import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# -- Rows, lanes and places -----------------------------------------------------------------------------------------


def nearest(pulls: list[list[tuple[float, float]]], offsets: list[float]) -> list[float]:
    """Return the places nearest to those that (place, strength) pull to, in least squares, at least offsets apart.

    Less the offsets it is isotonic regression: neighbours that would overlap are pooled and move as one.
    """
    pools: list[tuple[float, float, int]] = []
    for pull, offset in zip(pulls, offsets, strict=True):
        total, count = sum(strength for _, strength in pull), 1
        mean = sum(place * strength for place, strength in pull) / total - offset
        while pools and pools[-1][0] > mean:
            left_mean, heavier, more = pools.pop()
            mean = (mean * total + left_mean * heavier) / (total + heavier)
            total, count = total + heavier, count + more
        pools.append((mean, total, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


GAP, LANE, RISE = 0.2, 0.15, 0.42
"""Least distance of two boxes, of a lane from its neighbour, and of two rows of boxes."""

_ASPECT, _SWEEPS, _MOVES = 1.7, 24, 24
_STRAIGHT = (1.0, 2.0, 8.0)
"""How hard an edge pulls its ends together, by how many of them are lanes: long edges should not bend."""

Row = list[Any]
"""Nodes, which are ints, and lanes, which are (parent, child, row), from left to right."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Centres of boxes, and for every edge the points where it passes a row, from the parent down; y points up.

    Every box is within 0 ≤ x ≤ ``size[0]`` and 0 ≤ y ≤ ``size[1]``.
    """

    positions: NDArray[np.float64]
    routes: dict[tuple[int, int], NDArray[np.float64]]
    size: tuple[float, float]


def layered(parents: Sequence[Sequence[int]], widths: Sequence[float] | None = None, height: float = 0.4) -> Layout:
    """Place the nodes of a directed graph without cycles in rows, every parent above its children.

    ``parents`` are those of every node, as places in this sequence; the box of each is 1 wide by default.

    Examples
    --------
    >>> layered([[], [0], [0]]).positions.round(2).tolist()
    [[1.1, 1.06], [0.5, 0.2], [1.7, 0.2]]
    """
    nx: Any = importlib.import_module("networkx")
    graph = nx.DiGraph((parent, node) for node, above in enumerate(parents) for parent in above)
    graph.add_nodes_from(range(len(parents)))
    wide: dict[Any, float] = dict(enumerate([1.0] * len(parents) if widths is None else widths))
    area = sum(width + GAP for width in wide.values()) * (height + RISE) * 1.4
    most = max(8.0, math.sqrt(_ASPECT * area), *wide.values())
    parts = sorted(nx.weakly_connected_components(graph), key=lambda part: (-len(part), min(part)))
    drawn = [_part(graph.subgraph(sorted(part)), wide, height, most) for part in parts]
    most = max([most, *(width for _, width, _ in drawn)])
    centres: dict[Any, tuple[float, float]] = {}
    left = top = right = low = 0.0
    for places, width, tall in drawn:  # on shelves, from left to right
        if left + width > most + 1e-9:
            left, top = 0.0, low - RISE
        centres |= {v: (left + x, top + y) for v, (x, y) in places.items()}
        right, low = max(right, left + width), min(low, top - tall)
        left += width + 2 * GAP
    routes: dict[tuple[int, int], list[tuple[float, float]]] = {edge: [] for edge in graph.edges}
    for v, (x, y) in centres.items():
        if v not in wide:
            routes[v[:2]].append((x, y - low))
    positions = np.array([centres[v] for v in wide]).reshape(-1, 2) - [0.0, low]
    return Layout(positions, {edge: np.array(way).reshape(-1, 2) for edge, way in routes.items()}, (right, -low))


def _part(graph: Any, widths: dict[Any, float], height: float, most: float) -> tuple[dict[Any, Any], float, float]:
    """Return the places of the nodes and lanes of a connected graph, right of the origin and below, and its size."""
    nx: Any = importlib.import_module("networkx")
    row = _row_of_each(graph, widths, most)
    steps = nx.DiGraph()
    steps.add_nodes_from(graph)
    for parent, child in graph.edges:
        lanes = [(parent, child, r) for r in range(row[parent] + 1, row[child])]
        row |= {lane: lane[2] for lane in lanes}
        nx.add_path(steps, [parent, *lanes, child])
    started: list[Row] = [[] for _ in range(max(row.values()) + 1)]
    for v in nx.dfs_preorder_nodes(steps.to_undirected()):
        started[row[v]].append(v)
    rows = _ordered(started, steps)
    widths = dict.fromkeys(steps, 0.0) | {v: widths[v] for v in graph}
    x = _across(rows, steps, widths)
    left, right = min(x[v] - widths[v] / 2 for v in x), max(x[v] + widths[v] / 2 for v in x)
    places: dict[Any, tuple[float, float]] = {}
    depth = height / 2
    for r, members in enumerate(rows):
        if r:
            # where edges run far to the side, rows stand apart, or they would be too flat to follow
            far = max(abs(x[v] - x[w]) for v in members for w in steps.pred[v])
            depth += height + RISE + 0.07 * min(far, 8.0)
        places |= {v: (x[v] - left, -depth) for v in members}
    return places, right - left, depth + height / 2


def _row_of_each(graph: Any, widths: dict[int, float], most: float) -> dict[Any, int]:
    """Return the row of every node: where edges are shortest in all, or below where that row is full.

    The sum of the lengths is least if a flow of greatest length, which carries from each node to its children as much
    more than it receives as it has more of them, uses edges from a row to the next only: linear programming duality.
    """
    nx: Any = importlib.import_module("networkx")
    tight = nx.DiGraph()
    for v in graph:
        tight.add_node(v, demand=graph.in_degree(v) - graph.out_degree(v))
        tight.add_edge("top", v, weight=0)
    tight.nodes["top"]["demand"] = 0
    tight.add_edges_from(graph.edges, weight=-1)
    _, flow = nx.network_simplex(tight)
    tight.add_edges_from([(c, p) for p, c in graph.edges if flow[p][c]], weight=1)
    up: dict[int, int] = nx.single_source_bellman_ford_path_length(tight, "top")
    row: dict[Any, int] = {}
    filled: defaultdict[int, float] = defaultdict(float)
    for v in sorted(graph, key=lambda v: (-up[v], graph.in_degree(v) - graph.out_degree(v), v)):
        row[v] = max([-up[v], *(row[parent] + 1 for parent in graph.pred[v])])
        while filled[row[v]] and filled[row[v]] + widths[v] > most:
            row[v] += 1
        filled[row[v]] += widths[v] + GAP
    return row


def _ordered(rows: list[Row], steps: Any) -> list[Row]:
    """Return the rows in the order with the fewest crossings of those that sweeps down and up lead to."""
    best, fewest = rows, _crossings(rows, steps)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        near = steps.pred if down else steps.succ
        rows = [list(row) for row in rows]
        shares = _shares(rows)
        for row in rows if down else rows[::-1]:
            row.sort(key=lambda v: sum(shares[w] for w in near[v]) / len(near[v]) if near[v] else shares[v])
            shares |= _shares([row])
        crossings = _crossings(rows, steps)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def _shares(rows: list[Row]) -> dict[Any, float]:
    return {v: (i + 0.5) / len(row) for row in rows for i, v in enumerate(row)}


def _crossings(rows: list[Row], steps: Any) -> int:
    shares = _shares(rows)
    ends = [np.array([(shares[v], shares[w]) for v in row for w in steps.succ[v]]).reshape(-1, 2).T for row in rows]
    return sum(int(np.sum((a[:, None] < a) & (b[:, None] > b))) for a, b in ends)


def _across(rows: list[Row], steps: Any, widths: dict[Any, float]) -> dict[Any, float]:
    """Return the centre of every box and lane along its row."""
    lane = {v: isinstance(v, tuple) for v in widths}
    x: dict[Any, float] = {}
    placed: list[tuple[Row, list[float]]] = []
    for row in rows:
        gaps = [(widths[v] + widths[w]) / 2 + (LANE if lane[v] or lane[w] else GAP) for v, w in pairwise(row)]
        offsets = list(accumulate(gaps, initial=0.0))
        x |= {v: offset - offsets[-1] / 2 for v, offset in zip(row, offsets, strict=True)}
        placed.append((row, offsets))
    for move in range(_MOVES):
        down = move % 2 == 0
        near = steps.pred if down else steps.succ
        for row, offsets in placed if down else reversed(placed):
            pulls = [[(x[w], _STRAIGHT[lane[v] + lane[w]]) for w in near[v]] or [(x[v], 1e-3)] for v in row]
            x |= zip(row, nearest(pulls, offsets), strict=True)
    return x


# -- The figure ------------------------------------------------------------------------------------------------------

_INK, _GREY = "#1a1a1a", "#8c8c8c"
_LOOKS: dict[Role, tuple[str, str, float, float, float, int]] = {
    "node": ("#D55E00", _INK, 2.2, 0.3, 0.3, 2),
    "quilt": ("#56B4E9", "#0072B2", 1.6, 0.3, 0.5, 2),
    "nearby": ("#F5CE7A", "#B87F00", 1.2, 0.38, 0.38, 9),
    "remote": ("#ECECEC", _GREY, 0.8, 0, 0, 1),
    "plain": ("#ECECEC", _GREY, 0.8, 0, 0, 1),
}
"""Face, border and its width: vermilion, sky blue and orange of Okabe and Ito, lightened where grey print needs it.

Then what is cut off a corner across and along, in heights of the box, and points of the cut: two straight, more round.
"""

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
    face, border, line, across, along, points = _LOOKS[role]
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


def _paths(layout: Layout, widths: list[float]) -> dict[tuple[int, int], Any]:
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
