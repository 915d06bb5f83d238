"""What is promised, what is not, and what is assumed: the part of a page that everybody should read."""

import math
from collections.abc import Sequence

from pufferfish.report.html import Html, section, tag

__all__ = ["promise_part"]


def promise_part(
    epsilon: float,
    promise: str,
    not_promised: Sequence[str],
    assumptions: Sequence[str],
    secrets: Sequence[tuple[str, str]] | None,
    *,
    title: str = "What is promised, and what is not",
) -> Html:
    """Return the promise in plain words, its unit, and its limits, each as its record says it."""
    unit = "any one record, whatever its neighbours tell"
    if secrets is not None:
        unit = "the secrets that are named below, whatever other records tell"
    factor = f"a factor of {math.exp(epsilon):.3g}" if epsilon < 700 else "any factor"
    plain = (
        f"Whoever sees the release, and knows how records depend on each other, can raise or lower the odds between "
        f"two values of one record by {factor} at most (e^ε with ε = {epsilon:g}). The smaller ε, the less is told."
    )
    if secrets is not None:
        plain = plain.replace("two values of one record", "two secrets of a pair")
    return section(
        title,
        tag("p", "Unit of protection: ", tag("strong", unit), ".", class_="lead"),
        tag("p", plain),
        tag("p", promise, class_="card"),
        tag("h4", "Not promised"),
        tag("ul", *(tag("li", text) for text in not_promised)),
        *([tag("h4", "Assumed"), tag("ul", *(tag("li", text) for text in assumptions))] if assumptions else []),
    )
