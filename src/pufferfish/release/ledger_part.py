"""The history of a ledger on a page."""

from collections.abc import Mapping
from typing import Any

from pufferfish.ledger import Ledger
from pufferfish.ledger.book import Entry
from pufferfish.markup import Html, join, tag
from pufferfish.report.html import number, table

__all__ = ["ledger_part"]


def ledger_part(ledger: Ledger, here: Mapping[int, int]) -> Html:
    """Return what the book says; ``here`` are the entries on the page, with their places there."""

    def row(entry: Entry) -> Html:
        share = min(1.0, entry.spent / ledger.budget)
        what: Any = entry.what
        if entry.number in here:
            what = join(tag("a", entry.what, href=f"#release-{here[entry.number]}"), " (on this page)")
        bar = tag(
            "svg",
            tag("rect", x=0, y=4, width=round(100 * share, 2), height=12),
            tag("path", d="M100 0V20"),
            viewBox="0 0 100 20",
            preserveAspectRatio="none",
            aria_hidden="true",
        )
        return tag(
            "tr",
            tag("th", entry.number, scope="row"),
            tag("td", what),
            tag("td", "" if entry.epsilon is None else number(entry.epsilon), class_="n"),
            tag("td", bar, class_="bar"),
            tag("td", number(entry.spent), class_="n"),
            class_="own" if entry.number in here else None,
        )

    caption = f"All releases; together: what all up to this one leak at most, of a budget of {ledger.budget:g}"
    return tag(
        "section",
        tag("h2", "The ledger"),
        tag(
            "p",
            f"Spent {number(ledger.spent)} of {number(ledger.budget)}, by {ledger.bound.title}. Remaining: "
            f"{number(ledger.remaining)}. Epsilons of single releases do not add up to what they leak together.",
        ),
        table(["", "what", "alone", "", "together"], map(row, ledger.entries), caption, names=2, class_="values"),
    )
