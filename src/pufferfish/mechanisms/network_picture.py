"""What a picture of a Bayesian network shows: which nodes, in which roles, with which words; no drawing.

Roles are those of Definition 4.2: the node whose secret it is about, its quilt, the nodes nearby, which count with
their whole loss, and the remote ones, which are independent of the node given the quilt.

Pictures of Bayesian networks: which node decides the noise, behind which quilt, and what is nearby or remote.

Roles are told apart by shape as well as by colour, and nodes that the query does not read are hollow: the picture reads
in grey print, and for all eyes. Lengths are inches throughout, so that boxes are as wide as their names.
"""

import importlib
import math
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pufferfish._base.view import counted
from pufferfish._base.words import at_most
from pufferfish._draw.figure import new_figure, require_matplotlib
from pufferfish.errors import ParameterError, printable
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.network_quilts import ActiveQuilt
from pufferfish.mechanisms.witness import AnyWitness, ClusterWitness, CouplingWitness, QuiltWitness
from pufferfish.queries import JointQuery, LinearQuery
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.quilt import Quilt
from pufferfish.theta.states import state_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pufferfish._draw.layers import Layout

__all__ = ["MOST_NODES", "Marked", "Role", "draw_network", "marked", "network_in_page", "short"]

MOST_NODES = 120
"""Larger networks are drawn around one node only."""

Role = Literal["node", "quilt", "nearby", "remote", "plain"]

_COUNTED: tuple[Role, ...] = ("quilt", "nearby", "remote", "plain")

_AROUND = 40
"""How many nodes of a larger network are drawn around a node without a quilt."""

_LONGEST = 40

_MOST_TOLD = 3
"""Clusters around the worst node whose leakage is told one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """The nodes of a picture and its words.

    ``drawn`` are their places in the network, ``parents`` those of their parents that are drawn as well, as places in
    ``drawn``. A node is ``read`` if the query reads it, or there is no calibration. The ``title`` says what decides,
    the ``note`` what is not drawn; the ``legend`` has a role, whether read, and words.
    """

    drawn: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    roles: tuple[Role, ...]
    read: tuple[bool, ...]
    title: str
    legend: tuple[tuple[Role, bool, str], ...]
    note: str


@dataclass(frozen=True, slots=True)
class _Subject:
    """The node that a picture is about, its quilt where it has one, and what is said of it."""

    place: int | None
    quilt: Quilt | None
    words: str
    word: str = "node"


def marked(network: BayesianNetwork, calibration: Calibration | None, node: Any, quilt: Any) -> Marked:
    """Return what a picture shows; the arguments are those of :func:`pufferfish.draw_network`.

    Raises
    ------
    ParameterError
        If the arguments do not belong together, or the network is large and no node is given.
    ModelError
        If a node is unknown, or a quilt is none of that node.
    """
    given: Any = network
    if not isinstance(given, BayesianNetwork):
        raise ParameterError(f"network is {type(given).__name__}, expected a BayesianNetwork")
    given = calibration
    if given is not None and not isinstance(given, Calibration):
        raise ParameterError(f"calibration is {type(given).__name__}, expected a Calibration")
    if calibration is not None:
        theta = quilt.theta if isinstance(quilt, ActiveQuilt) else calibration.witness.theta
        network = _in_class(network, calibration, theta)
    subject = _subject(network, calibration, node, quilt)
    roles = _roles(network, subject)
    read = [True for _ in roles]
    if calibration is not None and isinstance(calibration.linear, LinearQuery | JointQuery):
        read = [bool(distance.any()) for distance in calibration.linear.distances]
    above = [tuple(network.place(parent) for parent in network.cpts[name].parents) for name in network.nodes]
    drawn = _drawn(above, roles, subject)
    at = {place: i for i, place in enumerate(drawn)}
    left = Counter(role for place, role in enumerate(roles) if place not in at)
    words = [f"{left[role]:,} {'' if role == 'plain' else role + ' '}" for role in _COUNTED if left[role]]
    return Marked(
        drawn=tuple(drawn),
        parents=tuple(tuple(at[parent] for parent in above[place] if parent in at) for place in drawn),
        names=tuple(state_label(network.nodes[place]) for place in drawn),
        roles=tuple(roles[place] for place in drawn),
        read=tuple(read[place] for place in drawn),
        title=_title(network, calibration, subject, quilt),
        legend=tuple(_legend(network, subject, roles, read)),
        note=f"{'and '.join(words)}{'node is' if left.total() == 1 else 'nodes are'} not drawn" if words else "",
    )


def short(text: Any) -> str:
    """Return a name as one that prints, with the middle of a long one left out: ends tell names apart."""
    plain = printable(str(text))
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST // 2] + "…" + plain[1 - _LONGEST // 2 :]


def _subject(network: BayesianNetwork, calibration: Calibration | None, node: Any, quilt: Any) -> _Subject:
    if isinstance(quilt, ActiveQuilt):
        if node is not None and network.place(node) != network.place(quilt.node):
            raise ParameterError(f"node is {node!r} and the quilt that of node {quilt.node!r}: leave node out")
        quilt.quilt.checked(network, quilt.node)
        place = network.place(quilt.node)
        words = _of_quilt(network.nodes[place], quilt.secret_pair, quilt.influence, quilt.quilt)
        return _Subject(place, quilt.quilt, words)
    if quilt is not None:
        if node is None:
            raise ParameterError("a quilt is given and no node: name the node= whose quilt it is")
        if isinstance(quilt, str) or not isinstance(quilt, Quilt | Iterable):
            raise ParameterError(f"quilt is {quilt!r}, expected an ActiveQuilt, a Quilt, or a list of names")
        place = network.place(node)
        shown = quilt if isinstance(quilt, Quilt) else Quilt.of(network, node, quilt)
        shown.checked(network, node)
        return _Subject(place, shown, _of_quilt(network.nodes[place], None, None, shown))
    place = None if node is None else network.place(node)
    if calibration is not None:
        worst = _place_of(network, calibration.witness)
        if place is None or place == worst:
            return _of_witness(network, calibration.witness, worst)
    return _Subject(place, None, "" if place is None else f"node {short(network.nodes[place])}")


def _in_class(network: BayesianNetwork, calibration: Calibration, theta: int) -> BayesianNetwork:
    """Return the member of Θ for which the worst case was found, whose order of nodes is that of the calibration.

    Another network is refused.
    """
    members: tuple[Any, ...] = getattr(calibration.theta, "networks", ())
    if theta >= len(members):
        raise ParameterError(f"the calibration is for {calibration.theta.kind}, not for this Bayesian network")
    other: BayesianNetwork = members[theta]
    if set(map(state_label, network.nodes)) != set(map(state_label, other.nodes)) or _edges(network) != _edges(other):
        raise ParameterError(
            f"network has other nodes or edges than theta[{theta}], which decides this calibration: draw that one"
        )
    return other


def _edges(network: BayesianNetwork) -> set[tuple[str, str]]:
    return {(state_label(parent), state_label(child)) for parent, child in network.edges}


def _place_of(network: BayesianNetwork, witness: AnyWitness) -> int | None:
    """Return the place of the worst node, which a witness names, or counts where laws of the query were compared."""
    return witness.node if witness.node is None or isinstance(witness.node, int) else network.place(witness.node)


def _of_witness(network: BayesianNetwork, witness: AnyWitness, place: int | None) -> _Subject:
    moves = f", the query's law moves by {witness.distance:.3g}" if isinstance(witness, CouplingWitness) else ""
    if place is None:
        if isinstance(witness, QuiltWitness):
            return _Subject(None, None, f"the losses of {counted(witness.nearby, 'connected node')} decide")
        secrets = witness.secret_pair
        words = "" if secrets is None else f" {short(secrets[0])} / {short(secrets[1])}"
        return _Subject(None, None, f"the secrets{words} decide{moves}")
    name = network.nodes[place]
    if isinstance(witness, QuiltWitness):
        quilt = Quilt.of(network, name, witness.active_quilt)
        words = _of_quilt(name, witness.secret_pair, witness.influence, quilt)
        return _Subject(place, quilt, words, "worst node")
    words = _of_node(name, witness.secret_pair) + moves
    if isinstance(witness, ClusterWitness):
        words += f", leaks {_told(witness)}"
    return _Subject(place, None, words, "worst node")


def _told(witness: ClusterWitness) -> str:
    """Say how much the node itself tells, and each cluster around it, the most first."""
    around = sorted(witness.neighbours, key=lambda told: -told[1])
    told = [(nats, f"through {_few(nodes)}") for nodes, nats in around[:_MOST_TOLD]]
    if len(around) > _MOST_TOLD:
        told.append((math.fsum(nats for _, nats in around[_MOST_TOLD:]), "through others"))
    return ", ".join(f"{nats:.2g} {how}" for nats, how in [(witness.own, "by itself"), *told])


def _few(nodes: Sequence[str]) -> str:
    return ", ".join(short(node) for node in nodes[:2]) + (", …" if len(nodes) > 2 else "")


def _of_node(name: Any, pair: tuple[str, str] | None) -> str:
    return f"node {short(name)}" + ("" if pair is None else f" ({short(pair[0])} / {short(pair[1])})")


def _of_quilt(name: Any, pair: tuple[str, str] | None, influence: float | None, quilt: Quilt) -> str:
    told = "" if influence is None else f", influence {influence:.2g}"
    return f"{_of_node(name, pair)}{told if quilt.quilt else ', trivial quilt'}, {len(quilt.nearby):,} nearby"


def _title(network: BayesianNetwork, calibration: Calibration | None, subject: _Subject, quilt: Any) -> str:
    edges = sum(len(cpt.parents) for cpt in network.cpts.values())
    size = f"{counted(len(network.nodes), 'node')}, {counted(edges, 'edge')}"
    if calibration is None:
        return f"Bayesian network of {size}" + (f": {subject.words}" if subject.words else "")
    theta = quilt.theta if isinstance(quilt, ActiveQuilt) else calibration.witness.theta
    under = f", theta[{theta}]" if len(calibration.theta.members) > 1 else ""
    return f"{calibration.title}, ε = {at_most(calibration.epsilon)}{under}: {subject.words}"


def _roles(network: BayesianNetwork, subject: _Subject) -> list[Role]:
    role: dict[int, Role] = {}
    if subject.quilt is not None:
        role.update((network.place(name), "quilt") for name in subject.quilt.quilt)
        role.update((network.place(name), "nearby") for name in subject.quilt.nearby)
    if subject.place is not None:
        role[subject.place] = "node"
    return [role.get(place, "plain" if subject.quilt is None else "remote") for place in range(len(network.nodes))]


def _drawn(parents: list[tuple[int, ...]], roles: list[Role], subject: _Subject) -> list[int]:
    """Return the nodes to draw: all, or those around the node that the picture is about."""
    if len(roles) <= MOST_NODES:
        return list(range(len(roles)))
    if subject.place is None:
        raise ParameterError(
            f"the network has {len(roles):,} nodes, and at most {MOST_NODES} are drawn: name a node= to draw what is "
            "around it"
        )
    nx: Any = importlib.import_module("networkx")
    graph = nx.Graph((parent, node) for node, above in enumerate(parents) for parent in above)
    graph.add_nodes_from(range(len(roles)))
    near: list[int] = list(nx.single_source_shortest_path_length(graph, subject.place))  # the nearest first
    if subject.quilt is None:
        return sorted(near[:_AROUND])
    inside = [place for place, role in enumerate(roles) if role in ("node", "quilt", "nearby")]
    around = set(inside).union(*(graph[place] for place in inside))
    first = [place for place in inside if roles[place] != "nearby"]
    ordered = dict.fromkeys([*first, *(place for place in near if place in around), *sorted(around)])
    return sorted(list(ordered)[:MOST_NODES])


def _legend(
    network: BayesianNetwork, subject: _Subject, roles: list[Role], read: list[bool]
) -> list[tuple[Role, bool, str]]:
    entries: list[tuple[Role, bool, str]] = []
    if subject.place is not None:
        entries.append(("node", read[subject.place], f"{subject.word}: {short(network.nodes[subject.place])}"))
    if subject.quilt is not None:
        size, nearby = len(subject.quilt.quilt), len(subject.quilt.nearby)
        entries.append(("quilt", True, f"quilt: {counted(size, 'node')}" if size else "quilt: empty, the trivial one"))
        itself = "with the node itself" if nearby > 1 else "the node itself"
        entries.append(("nearby", True, f"nearby: {counted(nearby, 'node')}, {itself}"))
        entries.append(("remote", True, f"remote: {counted(len(subject.quilt.remote), 'node')}"))
    elif entries:
        entries.append(("plain", True, f"other: {counted(len(roles) - 1, 'node')}"))
    unread = read.count(False)
    if unread:
        entries.append(("plain", False, f"hollow: {counted(unread, 'node')} not read, loss 0"))
    return entries


# -- Pictures of Bayesian networks -----------------------------------------------------------------------------------

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
    shown = marked(network, calibration, node, quilt)
    return _figure(shown, _LEAST_WIDTH, [words for words in (shown.title, shown.note) if words])


def network_in_page(network: BayesianNetwork, calibration: Calibration | None) -> tuple["Figure", str]:
    """Return the picture of a network as wide as what is in it, and its title, which the page has beside it.

    Raises
    ------
    ParameterError
        If matplotlib is not installed, or the network is large and no node decides.
    """
    require_matplotlib()
    shown = marked(network, calibration, None, None)
    return _figure(shown, _LEAST_WIDTH_IN_PAGE, []), " ".join(words for words in (shown.title, shown.note) if words)


def _figure(shown: Marked, least: float, said: Sequence[str]) -> "Figure":
    """Draw a network that is marked, at least so many inches wide, below what is said of it."""
    from matplotlib.legend_handler import HandlerPatch
    from matplotlib.patches import FancyArrowPatch, Polygon

    from pufferfish._draw.layers import layered

    labels = [_label(name) for name in shown.names]
    widths = [max(_NARROWEST, _text_width(label) + 2 * _PAD) for label in labels]
    layout = layered(shown.parents, widths, _HEIGHT)
    wide = max(least, layout.size[0] + 2 * _MARGIN)
    title = [line for words in said for line in textwrap.wrap(words, int(_LETTERS * wide))]
    columns = max(1, min(len(shown.legend), int((wide - 2 * _MARGIN) / _COLUMN)))
    below = _MARGIN + _ENTRY * -(-len(shown.legend) // columns) + (_MARGIN if shown.legend else 0)
    tall = below + layout.size[1] + _LINE * len(title) + 2 * _MARGIN

    figure = new_figure(wide, tall, layout=None)
    axes: Any = figure.add_axes((0, 0, 1, 1))
    left = (wide - layout.size[0]) / 2
    axes.set(xlim=(-left, wide - left), ylim=(-below, tall - below))
    axes.set_axis_off()
    for (parent, child), path in _paths(layout, widths).items():
        near = {shown.roles[parent], shown.roles[child]} <= {"node", "quilt", "nearby"}
        line, colour = (1.1, _INK) if near else (0.7, _GREY)
        head = "-|>,head_length=3.4,head_width=1.7"
        axes.add_patch(
            FancyArrowPatch(path=path, arrowstyle=head, lw=line, color=colour, fill=True, zorder=1 + near / 2)
        )
    for i, (x, y) in enumerate(layout.positions):
        axes.add_patch(Polygon(**_box(shown.roles[i], shown.read[i], x, y, widths[i], _HEIGHT)))
        font: dict[str, Any] = {"fontsize": _FONT, "color": _INK, "linespacing": 1.05, "parse_math": False}
        axes.text(x, y, labels[i], ha="center", va="center_baseline", zorder=3, **font)
    corner: dict[str, Any] = {"x": _MARGIN / wide, "y": 1 - _MARGIN / tall, "ha": "left", "va": "top"}
    figure.suptitle("\n".join(title), fontsize=10, parse_math=False, **corner)
    if shown.legend:
        legend = figure.legend(
            [Polygon(**_box(role, read, 12, 3, 24, 11)) for role, read, _ in shown.legend],
            [words for _, _, words in shown.legend],
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


def _box(role: Role, read: bool, x: float, y: float, width: float, height: float) -> dict[str, Any]:
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
        "facecolor": face if read else "white",
        "edgecolor": border if read or role != "node" else face,
        "linewidth": line,
        "linestyle": "-" if read else (0, (3, 1.5)),
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
    fitting = [at for at in breaks if 3 <= at <= min(len(plain) - 2, 13) >= len(plain) - at - 1]
    if len(plain) <= (9 if fitting else 13):
        return plain
    at = min(fitting, key=lambda at: abs(2 * at - len(plain)), default=(len(plain) + 1) // 2)
    return f"{plain[:at].rstrip()}\n{plain[at:]}"


def _text_width(label: str) -> float:
    """Return the width of the widest line, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box is drawn
        draw, font = TextToPath(), FontProperties(size=_FONT)
        return max(draw.get_text_width_height_descent(line, font, False)[0] for line in label.split("\n")) / 72
