"""Θ on a page: what an adversary may believe, in words and as the charts of its view."""

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from pufferfish._base.view import Html, View, in_short, join, tag
from pufferfish._draw.heat import chart_part
from pufferfish._draw.network import draw_graph
from pufferfish._draw.page import fold
from pufferfish.errors import printable
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.network_picture import MOST_NODES, marked
from pufferfish.mechanisms.witness import PhaseWitness
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import ChainClass, Continuum
from pufferfish.theta.model_class import Theta
from pufferfish.theta.shown import transitions
from pufferfish.theta.states import phase_name

__all__ = ["theta_part"]

_MOST_MEMBERS = 3
"""Members of Θ that are drawn, beginning with the one that decides; the others are in its file."""


def theta_part(theta: Theta, *, decides: int = 0, calibration: Calibration | None = None) -> Html:
    """Return Θ in words, tables and pictures.

    Parameters
    ----------
    theta : Theta
        The class.
    decides : int
        The member that decides the noise, which is drawn first.
    calibration : Calibration, optional
        The noise: of a network the node that decides is marked, and what tells it.
    """
    many = len(theta.members)
    which = "one distribution" if many == 1 else f"{many:,} distributions" if many else "a whole range of distributions"
    more = f". The records follow {theta.in_words}" if ":" in theta.in_words else ""
    start = tag("p", f"Θ is what somebody who attacks may believe about the records: {which} ({theta.kind}){more}.")
    origin = tag("p", f"Where it came from: {theta.origin}.")
    if isinstance(theta, Continuum):
        return join(start, origin, _viewed(theta._view()))
    return join(start, origin, *_members(theta, decides, calibration))


def _viewed(view: View) -> Html:
    """Return facts, charts and notes of a view; where Θ came from was said."""
    facts = {name: in_short(value) for name, value in (view.facts or {}).items() if value and name != "origin"}
    listed = tag("ul", [tag("li", f"{name}: {value}") for name, value in facts.items()]) if facts else None
    return join(listed, *map(chart_part, view.grids), *(tag("p", note) for note in view.notes))


def _members(theta: Any, decides: int, calibration: Calibration | None) -> Iterator[Html]:
    members: Sequence[Any] = theta.members
    first = decides if 0 <= decides < len(members) else 0
    shown = [first, *(i for i in range(len(members)) if i != first)][:_MOST_MEMBERS]
    names = theta.names if isinstance(theta, ChainClass) else ()
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
        return join(_drawn(member, calibration), fold(f"All {len(member.nodes):,} nodes as a table", viewed))
    if calibration is not None and isinstance(calibration.witness, PhaseWitness):
        phase = calibration.witness.phase
        matrix, what = member.matrices[phase], f"Transition probabilities, {phase_name(member.clock, phase)}"
        return join(viewed, chart_part(transitions(member.states, matrix, matrix, what)))
    return viewed


def _drawn(network: BayesianNetwork, calibration: Calibration | None) -> Html:
    """Return the picture of a network; it is drawn in colours for a light ground, and stands on one."""
    try:
        from matplotlib import rc_context
    except ImportError:
        told = "The network is not drawn, for that needs matplotlib: pip install 'pufferfish-privacy[plot]'."
        return tag("p", told, class_="soft")
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
    wide = float(box.split()[2])
    opened = tag("svg", viewBox=box, width=f"{wide * 4 / 3:.0f}", role="img", aria_label=label)
    return Html(f"{opened.removesuffix('</svg>')}{inside.strip().replace('xlink:href', 'href')}")
