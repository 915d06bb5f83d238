"""Pictures of Bayesian networks: which node decides the noise, behind which quilt, and what is nearby or remote.

Roles are those of Definition 4.2. Here it is said which nodes a picture shows, in which roles, with which words;
``_draw/network.py`` draws it.
"""

import importlib
import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pufferfish._base.view import Html, View, counted, in_short, join, tag
from pufferfish._base.words import at_most
from pufferfish._draw.chart import Graph, Role
from pufferfish._draw.figure import shortened
from pufferfish._draw.network import draw_graph
from pufferfish._draw.page import chart_part, fold
from pufferfish.errors import ParameterError, printable
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.markov_quilt import ActiveQuilt
from pufferfish.mechanisms.witness import AnyWitness, ClusterWitness, CouplingWitness, PhaseWitness, QuiltWitness
from pufferfish.queries import JointQuery, LinearQuery
from pufferfish.theta.bayesian_network import BayesianNetwork, Quilt
from pufferfish.theta.chain_class import Continuum
from pufferfish.theta.model_class import Theta
from pufferfish.theta.shown import transitions
from pufferfish.theta.states import phase_name, state_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NODES = 120  # larger networks are drawn around one node only

_COUNTED: tuple[Role, ...] = ("quilt", "nearby", "remote", "plain")

_AROUND = 40  # how many nodes of a larger network are drawn around a node without a quilt
_LONGEST = 40
_MOST_TOLD = 3  # clusters around the worst node whose leakage is told one by one


@dataclass(frozen=True, slots=True)
class _Subject:
    """The node that a picture is about, its quilt where it has one, and what is said of it."""

    place: int | None
    quilt: Quilt | None
    words: str
    word: str = "node"


def marked(network: BayesianNetwork, calibration: Calibration | None, node: Any, quilt: Any) -> Graph:
    """Return what a picture shows; arguments and errors are those of :func:`pufferfish.draw_network`."""
    for name, given, kind in (("network", network, BayesianNetwork), ("calibration", calibration, Calibration)):
        if not isinstance(given, kind) and (given is not None or name == "network"):
            raise ParameterError(f"{name} is {type(given).__name__}, expected a {kind.__name__}")
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
    positions = {place: i for i, place in enumerate(drawn)}
    left = Counter(role for place, role in enumerate(roles) if place not in positions)
    words = [f"{left[role]:,} {'' if role == 'plain' else role + ' '}" for role in _COUNTED if left[role]]
    return Graph(
        places=tuple(drawn),
        parents=tuple(tuple(positions[parent] for parent in above[place] if parent in positions) for place in drawn),
        names=tuple(state_label(network.nodes[place]) for place in drawn),
        roles=tuple(roles[place] for place in drawn),
        filled=tuple(read[place] for place in drawn),
        title=_title(network, calibration, subject, quilt),
        legend=tuple(_legend(network, subject, roles, read)),
        note=f"{'and '.join(words)}{'node is' if left.total() == 1 else 'nodes are'} not drawn" if words else "",
    )


def short(text: Any) -> str:
    """Return a name as one that prints, with the middle of a long one left out."""
    return shortened(str(text), _LONGEST)


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
            raise ParameterError("a quilt is given without a node: name its node by node=")
        if isinstance(quilt, str) or not isinstance(quilt, Quilt | Iterable):
            raise ParameterError(f"quilt is {quilt!r}, expected an ActiveQuilt, a Quilt, or a list of names")
        place = network.place(node)
        shown = quilt if isinstance(quilt, Quilt) else Quilt.of(network, node, quilt)
        shown.checked(network, node)
        return _Subject(place, shown, _of_quilt(network.nodes[place], None, None, shown))
    place = None if node is None else network.place(node)
    if calibration is not None:
        seen = calibration.witness
        # where laws of the query were compared the witness counts nodes
        worst = network.place(seen.node) if isinstance(seen.node, str) else seen.node
        if place is None or place == worst:
            return _of_witness(network, seen, worst)
    return _Subject(place, None, "" if place is None else f"node {short(network.nodes[place])}")


def _in_class(network: BayesianNetwork, calibration: Calibration, theta: int) -> BayesianNetwork:
    """Return the member of Θ of the worst case, whose order of nodes is the calibration's; refuse another network."""
    members: tuple[Any, ...] = getattr(calibration.theta, "networks", ())
    if theta >= len(members):
        raise ParameterError(f"the calibration is for {calibration.theta.kind}, not for this Bayesian network")
    member: BayesianNetwork = members[theta]
    if _graph(network) != _graph(member):
        raise ParameterError(
            f"network has other nodes or edges than theta[{theta}], which determines the noise: draw that one"
        )
    return member


def _graph(network: BayesianNetwork) -> tuple[set[str], set[tuple[str, ...]]]:
    return {*map(state_label, network.nodes)}, {tuple(map(state_label, edge)) for edge in network.edges}


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
        words += f", leaks {_parts_in_words(witness)}"
    return _Subject(place, None, words, "worst node")


def _parts_in_words(witness: ClusterWitness) -> str:
    """Say how much the node itself tells, and each cluster around it, the most first."""
    around = sorted(witness.neighbours, key=lambda part: -part[1])
    parts = [
        (nats, f"through {', '.join(map(short, nodes[:2]))}{', …' if len(nodes) > 2 else ''}")
        for nodes, nats in around[:_MOST_TOLD]
    ]
    if len(around) > _MOST_TOLD:
        parts.append((math.fsum(nats for _, nats in around[_MOST_TOLD:]), "through others"))
    return ", ".join(f"{nats:.2g} {how}" for nats, how in [(witness.own, "by itself"), *parts])


def _of_node(name: Any, pair: tuple[str, str] | None) -> str:
    return f"node {short(name)}" + ("" if pair is None else f" ({short(pair[0])} / {short(pair[1])})")


def _of_quilt(name: Any, pair: tuple[str, str] | None, influence: float | None, quilt: Quilt) -> str:
    clause = "" if influence is None else f", influence {influence:.2g}"
    return f"{_of_node(name, pair)}{clause if quilt.quilt else ', trivial quilt'}, {len(quilt.nearby):,} nearby"


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
    graph = nx.Graph({node: list(above) for node, above in enumerate(parents)})
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


def draw_network(
    network: BayesianNetwork, calibration: Calibration | None = None, *, node: Any = None, quilt: Any = None
) -> "Figure":
    """Draw a Bayesian network, parents above children, and the record and quilt that determine the noise.

    The worst node is an octagon, the nodes of its quilt are hexagons, those nearby are round and the remote ones
    rectangles; nodes that the query does not read are hollow. Networks of more than 120 nodes are drawn around the node
    only. The figure is one of matplotlib. A :class:`ParameterError` or :class:`ModelError` if matplotlib is not
    installed, the arguments do not belong together, the network is large and no node is given or decides, a node is
    unknown, or the quilt is none of that node.

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

    Examples
    --------
    ::

        mechanism = pf.MarkovQuilt(network)
        calibration = mechanism.calibrate(pf.Count("yes"), epsilon=1)
        pf.draw_network(network, calibration).savefig("worst.png")
        first, *_ = mechanism.active_quilts(calibration)
        pf.draw_network(network, calibration, quilt=first).savefig("first.svg")
    """
    return draw_graph(marked(network, calibration, node, quilt))


# -- Θ on a page: what an adversary may believe, in words and as the charts of its view ------------------------------

_MOST_MEMBERS = 3  # members of Θ that are drawn, beginning with the one that decides; the others are in its file


def theta_part(theta: Theta, *, decides: int = 0, calibration: Calibration | None = None) -> Html:
    """Return Θ in words, tables and pictures: the member that decides a calibration's noise first, its node marked."""
    many = len(theta.members)
    one = "member" if any(isinstance(member, Continuum) for member in theta.members) else "distribution"
    which = f"one {one}" if many == 1 else f"{many:,} {one}s" if many else "a whole range of distributions"
    more = f". The records follow {theta.in_words}" if ":" in theta.in_words else ""
    start = tag(
        "p", f"Θ is the set of beliefs that an attacker may hold about the records: {which} ({theta.kind}){more}."
    )
    origin = tag("p", f"Where it came from: {theta.origin}.")
    return join(start, origin, *(_members(theta, decides, calibration) if many else [_viewed(theta._view())]))


def _viewed(view: View) -> Html:
    """Return a view without where Θ came from, which was said."""
    facts = {name: in_short(value) for name, value in (view.facts or {}).items() if value and name != "origin"}
    listed = tag("ul", [tag("li", f"{name}: {value}") for name, value in facts.items()]) if facts else None
    return join(listed, *map(chart_part, view.grids), *(tag("p", note) for note in view.notes))


def _members(theta: Any, decides: int, calibration: Calibration | None) -> Iterator[Html]:
    members: Sequence[Any] = theta.members
    first = decides if 0 <= decides < len(members) else 0
    shown = [first, *(i for i in range(len(members)) if i != first)][:_MOST_MEMBERS]
    names = theta.names
    for i in shown:
        if len(members) > 1:
            name = f" ({names[i]})" if names else ""
            yield tag("h4", f"Member {i}{name} of {len(members)}", ", which decides the noise" if i == first else "")
        yield _member(members[i], calibration if i == first else None)
    if len(members) > len(shown):
        yield tag("p", f"The other {len(members) - len(shown):,} members are not drawn here.", class_="soft")


def _member(member: Any, calibration: Calibration | None) -> Html:
    viewed = _viewed(member._view())
    if isinstance(member, BayesianNetwork):
        return join(_network_part(member, calibration), fold(f"All {len(member.nodes):,} nodes as a table", viewed))
    if calibration is not None and isinstance(calibration.witness, PhaseWitness):
        phase = calibration.witness.phase
        matrix, caption = member.matrices[phase], f"Transition probabilities, {phase_name(member.clock, phase)}"
        return join(viewed, chart_part(transitions(member.states, matrix, matrix, caption)))
    return viewed


def _network_part(network: BayesianNetwork, calibration: Calibration | None) -> Html:
    """Return the picture of a network; it is drawn in colours for a light ground, and stands on one."""
    try:
        from matplotlib import rc_context
    except ImportError:
        message = "The network is not drawn, for that needs matplotlib: pip install 'pufferfish-privacy[plot]'."
        return tag("p", message, class_="soft")
    if calibration is None and len(network.nodes) > MOST_NODES:
        return tag("p", "The network is too large to be drawn.", class_="soft")
    svg = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "pufferfish"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        graph = marked(network, calibration, None, None)
        words = printable(" ".join(filter(None, (graph.title, graph.note))))  # a title would be cut on a phone
        draw_graph(graph, in_page=True).savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    picture = inline_svg(svg.getvalue(), f"The network, parents above children. {words}")
    paper = tag("div", picture, class_="paper")
    box = tag("div", paper, class_="scroll", role="region", aria_label="Picture of the network", tabindex=0)
    ended = f"{words.rstrip('.')}. " if words.strip() else ""
    return tag("figure", box, tag("figcaption", f"{ended}Arrows go from parents to children."))


def inline_svg(text: str, label: str) -> Html:
    """Return the picture of a program that writes SVG files as part of a page: no head, no links, a label instead."""
    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    inside = re.sub(r"^<svg[^>]*>", "", body, count=1)
    size = re.search(r'viewBox="([^"]*)"', body)
    box = size.group(1) if size else "0 0 100 100"
    opened = tag("svg", viewBox=box, width=f"{float(box.split()[2]) * 4 / 3:.0f}", role="img", aria_label=label)
    return Html(f"{opened.removesuffix('</svg>')}{inside.strip().replace('xlink:href', 'href')}")
