"""Θ in pictures: what an adversary may believe, drawn for a page."""

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.view import Html, join, tag
from pufferfish._base.words import number
from pufferfish._draw.heat import heat_map
from pufferfish._draw.page import fold, table
from pufferfish.errors import printable
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.chain_intervals import BinaryChainInterval, IntervalChain
from pufferfish.theta.cliques import Cliques
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.joint_distribution import JointDistribution
from pufferfish.theta.model_class import Theta
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.states import phase_name, state_label

__all__ = ["theta_part"]

_MOST_MEMBERS = 3
"""Members of Θ that are drawn, beginning with the one that decides; the others are in its file."""

_MOST_ROWS = 40


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
    if isinstance(theta, ForgettingClass):
        return join(start, origin, _forgetting(theta))
    if isinstance(theta, BinaryChainInterval):
        low, high = theta.low, theta.high
        stay, leave = f"{low:.3g} to {high:.3g}", f"{1 - high:.3g} to {1 - low:.3g}"
        lower = np.array([[low, 1 - high], [1 - high, low]])
        upper = np.array([[high, 1 - low], [1 - low, high]])
        words = [[stay, leave], [leave, stay]]
        return join(start, origin, _between(theta.states, lower, upper, lambda i, j: words[i][j]))
    if isinstance(theta, IntervalChain):
        low, high = theta.lower, theta.upper
        return join(
            start, origin, _between(theta.states, low, high, lambda i, j: f"{low[i, j]:.3g} to {high[i, j]:.3g}")
        )
    return join(start, origin, *_members(theta, decides, calibration))


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
    if isinstance(member, PeriodicChain):
        return _clock(member, calibration)
    if isinstance(member, HigherOrderChain):
        return _tensor(member)
    if isinstance(member, BayesianNetwork):
        return _network(member, calibration)
    if isinstance(member, Cliques):
        return _cliques(member)
    if isinstance(member, JointDistribution):
        return _joint(member)
    matrix = getattr(member, "transition_matrix", None)
    if matrix is None:
        return tag("p", "The laws of the answer are a function of the user's, which no file holds.")
    return join(_matrix(member.states, matrix), tag("p", _start(member.initial_distribution, member.states)))


def _matrix(
    states: Sequence[str],
    matrix: NDArray[np.float64],
    caption: str = "Probability of the next state (columns), given the present one (rows)",
) -> Html:
    return heat_map(states, states, matrix, caption, corner="from \\ to", most=1.0)


def _between(
    states: Sequence[str], low: NDArray[np.float64], high: NDArray[np.float64], text: Callable[[int, int], str]
) -> Html:
    caption = "Bounds on the probability of the next state (columns), given the present one (rows)"
    return heat_map(states, states, (low + high) / 2, caption, corner="from \\ to", most=1.0, text=text)


def _start(start: Any, states: Sequence[str]) -> str:
    if isinstance(start, str):
        return {
            "stationary": "The first record has the stationary law: the chain has run for long.",
            "any": "The first record may have any law.",
        }[start]
    flat = np.asarray(start).ravel()
    if len(flat) != len(states):
        return "The law of the first records is given, in the model."
    likely = np.argsort(-flat)[:8]
    law = ", ".join(f"{states[x]} {number(float(flat[x]), 3)}" for x in likely)
    return f"The law of the first record: {law}{', …' if len(flat) > 8 else ''}."


def _forgetting(theta: ForgettingClass) -> Html:
    rows = [[f"{steps:,}", number(share, 4)] for steps, share in theta.pairs]
    caption = "How much of their probability two laws share, whatever the two states so many steps before or after"
    return table(["steps", "overlap at least"], rows, caption)


def _clock(chain: PeriodicChain, calibration: Calibration | None) -> Html:
    stay = np.array([np.diagonal(matrix) for matrix in chain.matrices])
    names = [phase_name(chain.clock, phase) for phase in range(chain.phases)]
    lasts = "" if chain.step is None else f"; a step takes {chain.step}"
    strip = heat_map(
        names,
        chain.states,
        stay,
        f"The clock: the probability to stay in each state (columns) for one step, at each phase (rows){lasts}",
        corner="stay in",
        most=1.0,
    )
    phase = getattr(None if calibration is None else calibration.witness, "phase", 0)
    there = _matrix(chain.states, chain.matrices[phase % chain.phases], f"Transitions, {names[phase % chain.phases]}")
    return join(strip, there, tag("p", _start(chain.initial_distribution, chain.states)))


def _tensor(chain: HigherOrderChain) -> Html:
    rows = [", ".join(states) for states in product(chain.states, repeat=chain.order)]
    caption = f"Probability of the next state (columns), given the last {chain.order} (rows, the latest last)"
    flat = chain.tensor.reshape(-1, chain.k)
    drawn = heat_map(rows, chain.states, flat, caption, corner="last \\ next", most=1.0)
    return join(drawn, tag("p", _start(chain.initial_distribution, chain.states)))


def _cliques(cliques: Cliques) -> Html:
    sizes = ", ".join(map(str, cliques.groups[:20])) + (", …" if len(cliques.groups) > 20 else "")
    law = cliques.laws[0]
    rows = [[str(j), number(float(p), 3)] for j, p in enumerate(law[:_MOST_ROWS])]
    caption = f"The first group: how many of its {len(law) - 1} people are {cliques.states[1]!r}, and how probable"
    return join(tag("p", f"Independent groups of {sizes} people."), table(["people", "probability"], rows, caption))


def _joint(joint: JointDistribution) -> Html:
    order = sorted(range(len(joint.rows)), key=lambda i: -joint.probabilities[i])[:_MOST_ROWS]
    rows = [[", ".join(joint.rows[i]), number(float(joint.probabilities[i]), 3)] for i in order]
    count = len(joint.rows)
    caption = f"The {len(rows)} likeliest of {count:,} databases" if count > len(rows) else "All databases"
    return table([", ".join(map(state_label, joint.variables)), "probability"], rows, caption)


def _network(network: BayesianNetwork, calibration: Calibration | None) -> Html:
    names = {node: state_label(node) for node in network.nodes}
    rows = [
        [
            names[node],
            tag("td", ", ".join(state_label(parent) for parent in network.cpts[node].parents) or "none"),
            tag("td", ", ".join(network.node_states[node])),
        ]
        for node in network.nodes[:500]
    ]
    listed = table(["node", "its parents", "its states"], rows, "The network as a table")
    return join(_drawn(network, calibration), fold(f"All {len(network.nodes):,} nodes as a table", listed))


def _drawn(network: BayesianNetwork, calibration: Calibration | None) -> Html:
    """Return the picture of a network; it is drawn in colours for a light ground, and stands on one."""
    try:
        from matplotlib import rc_context
    except ImportError:
        told = "The network is not drawn, for that needs matplotlib: pip install 'pufferfish-privacy[plot]'."
        return tag("p", told, class_="soft")
    from pufferfish.mechanisms.network_picture import network_in_page

    if calibration is None and len(network.nodes) > 120:
        return tag("p", "The network is too large to be drawn.", class_="soft")
    svg = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "pufferfish"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure, title = network_in_page(network, calibration)
        words = printable(title)  # the caption says it: a title of a wide picture would be cut on a phone
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
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
