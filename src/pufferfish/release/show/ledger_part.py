"""The history of a ledger on a page."""

from collections.abc import Mapping, Sequence
from typing import Any

from pufferfish._base.view import Html, join, tag
from pufferfish._base.words import at_least, at_most, number
from pufferfish._draw.page import table
from pufferfish.ledger import Ledger
from pufferfish.ledger.file import Entry

__all__ = ["NOT_COUNTED", "ledger_part"]

NOT_COUNTED = "not in the ledger: what is spent does not include it"
"""What is said of a release that is shown beside a ledger, and was never charged to it."""


def ledger_part(ledger: Ledger, here: Mapping[int, int], apart: Sequence[tuple[int, str]] = ()) -> Html:
    """Return what the book says.

    ``here`` are the entries on the page, with their places there; ``apart`` the places and titles of releases on the
    page that the book does not have.
    """

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
            tag("td", what, class_="what"),
            tag("td", "" if entry.epsilon is None else at_most(entry.epsilon), class_="n"),
            tag("td", bar, class_="bar"),
            tag("td", at_most(entry.spent), class_="n"),
            class_="own" if entry.number in here else None,
        )

    caption = f"All releases; together: what all up to this one leak at most, of a budget of {number(ledger.budget, 6)}"
    return tag(
        "section",
        tag("h2", "The ledger"),
        tag(
            "p",
            f"Spent {at_most(ledger.spent)} of {number(ledger.budget, 6)}, by {ledger.bound.title}. Remaining: "
            f"{at_least(ledger.remaining)}. Epsilons of single releases do not add up to what they leak together.",
        ),
        *(
            tag("p", tag("strong", "Warning: "), tag("a", title, href=f"#release-{place}"), f" is {NOT_COUNTED}.")
            for place, title in apart
        ),
        table(
            ["no.", "what", "alone", tag("th", "", scope="col", class_="bar"), "together"],
            map(row, ledger.entries),
            caption,
            names=2,
            class_="values ledger",
        ),
    )
