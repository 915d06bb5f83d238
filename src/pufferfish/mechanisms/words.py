"""Which record decides the noise, and why: a witness in plain words, with what tells how much as a bar."""

from collections.abc import Sequence
from typing import Any

from pufferfish._base.view import Html, join, tag
from pufferfish._base.words import at_most, number
from pufferfish._draw.page import table
from pufferfish.mechanisms.witness import (
    AloneWitness,
    AnyWitness,
    ClusterWitness,
    CouplingWitness,
    ForgettingWitness,
    LawWitness,
    MatrixWitness,
    PhaseWitness,
    PropagationWitness,
    QuiltWitness,
)
from pufferfish.theta.model_class import Theta
from pufferfish.theta.states import phase_name

__all__ = ["witness_part"]

_MOST_NODES = 12

_LEAST_SEEN, _LEAST_NAMED = 0.1, 4.0
"""Percent of the leakage from which a part is drawn, and from which there is room for its number."""


def witness_part(seen: AnyWitness, leakage: float, epsilon: float, theta: Theta | None) -> Html:
    """Return which secret decides the noise, in words, and what tells how much of it."""
    networks = theta is not None and bool(theta.networks)
    which = _where(seen, networks=networks, of_chains=theta is None or theta.of_chains)
    pair = "."
    if seen.secret_pair is not None:
        a, b = seen.secret_pair
        pair = f": whether it is {a!r} or {b!r}."
    told = f"Of this secret at most {at_most(leakage)} leaks, and ε = {at_most(epsilon)} is allowed."
    return join(
        tag("p", f"The noise is for the secret that needs most; {which}{pair} {told}"), *_why(seen, leakage, theta)
    )


def _where(seen: AnyWitness, *, networks: bool, of_chains: bool) -> str:
    if seen.node is None:
        return "all records are alike"
    if networks:
        return f"here the column {seen.node!r} of a row"
    if isinstance(seen.node, int) and of_chains:
        return f"here record {seen.node} (counted from 0) of a chain of {seen.length:,} steps"
    return f"here record {seen.node!r}" if isinstance(seen.node, str) else f"here record {seen.node}"


def _why(seen: AnyWitness, leakage: float, theta: Theta | None) -> Sequence[Html]:
    parts: list[tuple[str, float]] = []
    words = ""
    match seen:
        case AloneWitness():
            words = "Records are independent of each other in every distribution of Θ: each tells of itself alone."
        case QuiltWitness(active_quilt=(), nearby=nearby):
            words = f"The proof counts all {nearby:,} records that may depend on it in full."
        case QuiltWitness(active_quilt=quilt, nearby=nearby, influence=influence):
            names = ", ".join(map(str, quilt[:_MOST_NODES])) + (", …" if len(quilt) > _MOST_NODES else "")
            words = (
                f"The proof draws a line around it, a Markov quilt ({names}): the {nearby:,} records inside count in "
                "full, and those outside only by what the quilt can tell of it."
            )
            parts = [(f"the {nearby:,} records inside", leakage - influence), ("the records outside", influence)]
        case PropagationWitness() | ForgettingWitness():
            if isinstance(seen, PhaseWitness):
                clock = getattr(theta.members[0], "clock", None) if theta is not None and theta.members else None
                words = f"It stands at {phase_name(clock, seen.phase)} of the clock. "
            words += "How well the record itself, all earlier records and all later ones tell the two values apart:"
            parts = [
                ("the record itself", seen.own),
                ("the earlier records", seen.past),
                ("the later records", seen.future),
            ]
        case ClusterWitness():
            words = "How well the record itself tells, and each group of columns around it with all that lies behind:"
            behind = [(", ".join(names[:_MOST_NODES]) or "the rest", nats) for names, nats in seen.neighbours]
            parts = [("the record itself", seen.own), *behind]
        case MatrixWitness():
            words = "Its row in the matrix of influences between records (GK16) is the one that decides."
        case CouplingWitness():
            words = (
                f"The law of the answer moves by {number(seen.distance)} at most from one secret to the other "
                "(∞-Wasserstein distance), and noise must hide such a move."
            )
        case LawWitness():
            words = "The laws of the noisy answer, given the one secret and given the other, differ most here."
    found = [tag("p", words)]
    if parts:
        found += [_bar(parts)]
    if seen.nearest is not None:
        found += [tag("p", _gap(seen.nearest.gap), class_="soft")]
    return found


def _gap(gap: float) -> str:
    return f"Θ is a continuum that was searched: the noise is {number(100 * gap, 2)}% above what a member of it needs."


def _bar(parts: Sequence[tuple[str, float]]) -> Html:
    total = sum(max(nats, 0.0) for _, nats in parts) or 1.0
    shares = [100 * max(nats, 0.0) / total for _, nats in parts]
    spans = [
        tag("span", str(i) if share > _LEAST_NAMED else "", style=f"width:{share:.2f}%")
        for i, share in enumerate(shares, 1)
        if share > _LEAST_SEEN
    ]
    rows: list[Any] = [
        [f"{i}. {name}", number(max(nats, 0.0)), f"{share:.0f}%"]
        for i, ((name, nats), share) in enumerate(zip(parts, shares, strict=True), 1)
    ]
    bar = tag("div", spans, class_="parts", aria_hidden="true")
    return join(bar, table(["what tells", "leakage (nats)", "share"], rows, "What tells how much of the worst secret"))
