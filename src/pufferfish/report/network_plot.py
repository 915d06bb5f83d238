"""Pictures of Bayesian networks: which node decides the noise, behind which quilt, and what is nearby or remote.

Roles are told apart by shape as well as by colour, and nodes that the query does not read are hollow: the picture reads
in grey print, and for all eyes. Lengths are inches throughout, so that boxes are as wide as their names.
"""

import re
import warnings
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pufferfish.calibration import Calibration
from pufferfish.calls import called_as
from pufferfish.errors import printable
from pufferfish.models.bayesian_network import BayesianNetwork
from pufferfish.report.layered import Layout, layered
from pufferfish.report.network_marks import Marked, Role, marked
from pufferfish.report.plot import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_network"]

_INK, _GREY = "#1a1a1a", "#8c8c8c"
_STYLES: dict[Role, tuple[str, str, float]] = {
    "node": ("#D55E00", _INK, 2.2),
    "quilt": ("#56B4E9", "#0072B2", 1.6),
    "nearby": ("#F5CE7A", "#B87F00", 1.2),
    "remote": ("#ECECEC", _GREY, 0.8),
    "plain": ("#ECECEC", _GREY, 0.8),
}
"""Face, border and its width: vermilion, sky blue and orange of Okabe and Ito, lightened where grey print needs it."""

_FONT, _TITLE_FONT = 8.0, 10.0
_HEIGHT, _PAD, _NARROWEST = 0.4, 0.13, 0.62
_MARGIN, _LINE, _ENTRY = 0.25, 0.2, 0.27
_LEAST_WIDTH, _COLUMN = 6.4, 2.7
_LONGEST_WORD, _LONGEST_LINE = 9, 13
_LEAN = 0.5
"""Inches that an edge moves aside per inch down where it passes a row: its lane is wide enough for that."""


@called_as("draw_network(network, calibration)")
def draw_network(
    network: BayesianNetwork, calibration: Calibration | None = None, *, node: Any = None, quilt: Any = None
) -> "Figure":
    """Draw a Bayesian network, parents above children, and what decides the noise of a calibration.

    The worst node is an octagon, the nodes of its quilt are hexagons, those nearby are round and the remote ones
    rectangles; nodes that the query does not read are hollow. Where no quilt decides, the worst node alone is marked
    and the title says what does. Networks of more than 120 nodes are drawn around the node only, and the picture says
    what it leaves out.

    Parameters
    ----------
    network : BayesianNetwork
        The network: the member of Θ that decides, where there is a calibration.
    calibration : Calibration, optional
        Noise for the network, of any mechanism.
    node : name, optional
        Another node than the worst one.
    quilt : ActiveQuilt, Quilt or list of names, optional
        The quilt to show; one of :meth:`MarkovQuilt.active_quilts` knows its node, others need ``node``.

    Returns
    -------
    matplotlib.figure.Figure
        Write it with its ``savefig``.

    Raises
    ------
    ParameterError
        If matplotlib is not installed, the arguments do not belong together, or the network is large and no node is
        given or decides.
    ModelError
        If a node is unknown, or the quilt is none of that node.

    Examples
    --------
    The noise of a mechanism, and the quilt of another node under the same noise::

        mechanism = pf.MarkovQuilt(network)
        calibration = mechanism.calibrate(pf.Count("yes"), epsilon=1)
        pf.draw_network(network, calibration).savefig("worst.png")
        first, *_ = mechanism.active_quilts(calibration)
        pf.draw_network(network, calibration, quilt=first).savefig("first.svg")
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    shown = marked(network, calibration, node, quilt)
    labels = [_label(name) for name in shown.names]
    widths = [max(_NARROWEST, _text_width(label) + 2 * _PAD) for label in labels]
    layout = layered(shown.parents, widths, _HEIGHT)
    wide = max(_LEAST_WIDTH, layout.size[0] + 2 * _MARGIN)
    title = [line for words in (shown.title, shown.note) for line in _wrapped(words, wide - 2 * _MARGIN)]
    columns = max(1, min(len(shown.legend), int((wide - 2 * _MARGIN) / _COLUMN)))
    below = _ENTRY * -(-len(shown.legend) // columns) + (_MARGIN if shown.legend else 0)
    above = _LINE * len(title) + 2 * _MARGIN
    tall = above + layout.size[1] + _MARGIN + below
    figure: Any = Figure(figsize=(wide, tall))
    left = (wide - layout.size[0]) / 2
    axes: Any = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-left, wide - left), ylim=(-_MARGIN - below, tall - _MARGIN - below))
    axes.set_axis_off()
    _draw_edges(axes, shown, layout, widths)
    for i, (x, y) in enumerate(layout.positions):
        role, read = shown.roles[i], shown.read[i]
        axes.add_patch(_shape(role, read, x - widths[i] / 2, y - _HEIGHT / 2, widths[i], _HEIGHT))
        axes.text(
            x, y, labels[i], ha="center", va="center_baseline", zorder=3, parse_math=False, **_letters(role, read)
        )
    figure.suptitle(
        "\n".join(title),
        x=_MARGIN / wide,
        y=1 - _MARGIN / tall,
        ha="left",
        va="top",
        fontsize=_TITLE_FONT,
        parse_math=False,
    )
    if shown.legend:
        _draw_legend(figure, shown, columns, (wide, tall))
    return figure


def _draw_edges(axes: Any, shown: Marked, layout: Layout, widths: list[float]) -> None:
    from matplotlib.patches import FancyArrowPatch

    inside = [role in ("node", "quilt", "nearby") for role in shown.roles]
    starts, ends = _ports(layout, widths)
    for (parent, child), bends in layout.routes.items():
        way = [starts[parent, child], *((float(x), float(y)) for x, y in bends), ends[parent, child]]
        near = inside[parent] and inside[child]
        arrow: Any = FancyArrowPatch(
            path=_curve(way),
            arrowstyle="-|>,head_length=3.4,head_width=1.7",
            shrinkA=0,
            shrinkB=0,
            color=_INK if near else _GREY,
            linewidth=1.1 if near else 0.7,
            fill=True,
            zorder=1.5 if near else 1,
        )
        axes.add_patch(arrow)


Ends = dict[tuple[int, int], tuple[float, float]]


def _ports(layout: Layout, widths: list[float]) -> tuple[Ends, Ends]:
    """Return where edges leave and enter boxes: side by side, in the order of where they go."""
    positions, routes = layout.positions, layout.routes
    found: tuple[Ends, Ends] = ({}, {})
    for own, ports in enumerate(found):
        sides: dict[int, list[tuple[float, tuple[int, int]]]] = {}
        for edge, bends in routes.items():
            next_x = positions[edge[1 - own], 0] if not len(bends) else bends[-own, 0]
            sides.setdefault(edge[own], []).append((float(next_x), edge))
        for node, edges in sides.items():
            x, y = (float(at) for at in positions[node])
            apart = min(0.12, 0.6 * widths[node] / max(len(edges) - 1, 1))
            for i, (_, edge) in enumerate(sorted(edges)):
                ports[edge] = (x + (i - (len(edges) - 1) / 2) * apart, y + (own - 0.5) * _HEIGHT)
    return found


def _curve(way: list[tuple[float, float]]) -> Any:
    """Return a curve that leaves and enters boxes upright, passes rows in a straight line, and bends between them."""
    from matplotlib.path import Path

    steps = [(x1 - x0) / (y1 - y0) for (x0, y0), (x1, y1) in pairwise(way)]
    lean = [0.0, *(_between(a, b) for a, b in pairwise(steps)), 0.0]
    half = [0.0, *([_HEIGHT / 2] * (len(way) - 2)), 0.0]
    points, codes = [way[0]], [int(Path.MOVETO)]
    for i, (x, y) in enumerate(way[1:], 1):
        x0, y0 = points[-1]
        x1, y1 = x + lean[i] * half[i], y + half[i]
        reach = 0.45 * (y1 - y0)
        points += [(x0 + lean[i - 1] * reach, y0 + reach), (x1 - lean[i] * reach, y1 - reach), (x1, y1)]
        codes += [int(Path.CURVE4)] * 3
        if half[i]:
            points.append((x - lean[i] * half[i], y - half[i]))
            codes.append(int(Path.LINETO))
    return Path(points, codes)


def _between(a: float, b: float) -> float:
    """Return the slope between those of two lines that meet, upright where they turn, cut to ``_LEAN``."""
    if a * b <= 0:
        return 0.0
    slope = 2 * a * b / (a + b)
    return max(-_LEAN, min(_LEAN, slope))


def _shape(role: Role, read: bool, x: float, y: float, width: float, height: float) -> Any:
    """Return the box of a node in the shape of its role, its lower left corner at (x, y)."""
    from matplotlib.patches import FancyBboxPatch, Polygon

    face, border, line = _STYLES[role]
    style: dict[str, Any] = {
        "facecolor": face if read else "white",
        "edgecolor": border if read or role != "node" else "#D55E00",
        "linewidth": line,
        "linestyle": "-" if read else (0, (3, 1.5)),
        "zorder": 2,
    }
    if role in ("nearby", "remote", "plain"):
        rounded = f"round,pad=0,rounding_size={0.38 * height}" if role == "nearby" else "square,pad=0"
        return FancyBboxPatch((x, y), width, height, boxstyle=rounded, **style)
    cut = 0.3 * height
    level = height / 2 if role == "quilt" else cut
    right, top = x + width, y + height
    corners = [(x + cut, y), (right - cut, y), (right, y + level), (right, top - level), (right - cut, top)]
    return Polygon([*corners, (x + cut, top), (x, top - level), (x, y + level)], closed=True, **style)


def _letters(role: Role, read: bool) -> dict[str, Any]:
    return {"fontsize": _FONT, "color": _INK if read or role != "remote" else "#595959", "linespacing": 1.05}


def _draw_legend(figure: Any, shown: Marked, columns: int, size: tuple[float, float]) -> None:
    from matplotlib.legend_handler import HandlerPatch

    handles = [_shape(role, read, 0, 0, 1, 1) for role, read, _ in shown.legend]

    def drawer(role: Role, read: bool) -> Any:
        def draw(*, xdescent: float, ydescent: float, width: float, height: float, **_: Any) -> Any:
            return _shape(role, read, -xdescent, -ydescent, width, height)

        return HandlerPatch(patch_func=draw)

    legend = figure.legend(
        handles,
        [words for _, _, words in shown.legend],
        handler_map={handle: drawer(role, read) for handle, (role, read, _) in zip(handles, shown.legend, strict=True)},
        loc="lower left",
        bbox_to_anchor=(_MARGIN / size[0], 0.6 * _MARGIN / size[1]),
        borderpad=0,
        borderaxespad=0,
        ncols=columns,
        frameon=False,
        fontsize=9,
        handlelength=2.6,
        handleheight=1.3,
        columnspacing=1.6,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _label(name: str) -> str:
    """Return a name in one or two lines that fit a box; of longer ones the middle is left out."""
    plain = printable(name)
    if len(plain) > 2 * _LONGEST_LINE:
        return f"{plain[: _LONGEST_LINE - 1]}…\n{plain[-_LONGEST_LINE:]}"
    breaks = [m.end() for m in re.finditer(r"[\s_\-./:]+(?=.)|[a-z0-9](?=[A-Z])", plain)]
    fitting = [at for at in breaks if 3 <= at <= min(len(plain) - 2, _LONGEST_LINE) >= len(plain) - at - 1]
    if len(plain) <= (_LONGEST_WORD if fitting else _LONGEST_LINE):
        return plain
    at = min(fitting, key=lambda at: abs(2 * at - len(plain)), default=(len(plain) + 1) // 2)
    return f"{plain[:at].rstrip()}\n{plain[at:]}"


def _wrapped(words: str, width: float) -> list[str]:
    """Return words in lines of the title that are at most so wide."""
    lines: list[str] = []
    for word in words.split():
        if lines and _text_width(f"{lines[-1]} {word}", _TITLE_FONT) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _text_width(label: str, size: float = _FONT) -> float:
    """Return the width of the widest line, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box is drawn
        draw, font = TextToPath(), FontProperties(size=size)
        points = [draw.get_text_width_height_descent(line, font, False)[0] for line in label.split("\n")]
    return max(points) / 72
