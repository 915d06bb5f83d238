"""What is promised, what is not, and what is assumed: the part of a page that everybody should read."""

import math
from collections.abc import Sequence

from pufferfish._base.view import Html, tag
from pufferfish._base.words import at_most
from pufferfish._draw.page import fold, section
from pufferfish.mechanisms.words import TOGETHER

__all__ = ["promise_part"]

_MOST_PAIRS = 20


def promise_part(
    epsilon: float,
    promise: str,
    not_promised: Sequence[str],
    assumptions: Sequence[str],
    secrets: Sequence[tuple[str, str]] | None,
    *,
    delta: float = 0.0,
    title: str = "What is promised, and what is not",
) -> Html:
    """Return the promise in plain words, its unit, and its limits; its exact sentence is folded."""
    together = [text for text in not_promised if text.startswith(TOGETHER)]  # this a ledger does promise
    unit = "any one record, whatever its neighbours tell"
    if secrets is not None:
        unit = "the secrets that are named below, whatever other records tell"
    factor = f"a factor of {at_most(math.exp(epsilon), 3)}" if epsilon < 700 else "any factor"
    what = "two values of one record" if secrets is None else "two secrets of a pair"
    plain = (
        f"Take somebody who believes any distribution in Θ, however records depend on each other there. Seeing the "
        f"release changes the odds between {what} by {factor} at most (e^ε with ε = {at_most(epsilon)}). The smaller "
        "ε, the less is told."
    )
    told = [tag("p", plain, class_="card"), fold("The exact sentence of the promise", tag("p", promise))]
    if delta:  # what is exact says δ, and few words cannot: it stands open
        fails = f"The promise may fail, with a probability that δ = {delta:g} says."
        told = [tag("p", fails, " The smaller ε and δ, the less is told."), tag("p", promise, class_="card")]
    pairs = [f"({a}) or ({b})" for a, b in (secrets or ())[:_MOST_PAIRS]]
    more = "; …" if len(secrets or ()) > _MOST_PAIRS else "."
    return section(
        title,
        tag("p", "Unit of protection: ", tag("strong", unit), ".", class_="lead"),
        *([tag("p", "The pairs of secrets: ", "; ".join(pairs), more)] if pairs else []),
        *told,
        *(tag("p", text, class_="card") for text in together),
        tag("h4", "Not promised"),
        tag("ul", *(tag("li", text) for text in not_promised if text not in together)),
        *([tag("h4", "Assumed"), tag("ul", *(tag("li", text) for text in assumptions))] if assumptions else []),
    )
