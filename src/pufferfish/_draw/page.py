"""Pages of HTML: one file that needs no network, every text escaped, and a policy that lets nothing else run or load.

Numbers for the script stand in the page as JSON.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

import msgspec

from pufferfish._base.view import Html, join, tag
from pufferfish._base.writing import Kind

__all__ = ["CHECKED_HERE", "PREVIEW", "REPORT", "fold", "page", "section", "table"]

_HEAD = '<!doctype html>\n<html lang="{}">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="{}">'
_MARKS = {"report": "pufferfish-report", "preview": "pufferfish-preview"}


def _kind(name: str, full_name: str, keep: str) -> Kind:
    mark = re.compile(re.escape(_HEAD).replace(r"\{\}", "{}").format("[a-zA-Z0-9-]{1,35}", _MARKS[name]).encode())
    return Kind(full_name, lambda content: mark.match(content) is not None, keep, (".html", ".htm"))


REPORT = _kind("report", "report of releases", "it is an earlier report; name another file, or give --overwrite")
PREVIEW = _kind("preview", "preview of a release", "name another file")
"""A preview is made of public things alone: it is made anew as pictures are, and nothing is lost."""


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Nothing may be loaded; the script that may run is named by its digest beside this."""


_MANY = 12
"""Rows from which on a table can be searched."""

CHECKED_HERE = tag(
    "section",
    tag("h3", "The proof, checked by this page"),
    tag("p", "A browser that runs scripts checks the proof here.", class_="lead", id="checked", aria_live="polite"),
    tag("p", class_="soft", id="unchecked"),
)
"""Where a page says what its own proof proves."""


def section(title: str, *parts: Any, **attributes: Any) -> Html:
    """Return a section with a heading."""
    return tag("section", tag("h3", title), *parts, **attributes)


def fold(summary: Any, *parts: Any) -> Html:
    """Return what is shown when its summary is clicked, and always in print."""
    return tag("details", tag("summary", summary), *parts)


def table(
    heads: Sequence[Any],
    rows: Iterable[Sequence[Any] | Html],
    caption: str,
    *,
    names: int = 1,
    class_: str = "",
    titled: bool = True,
    search: str = "",
) -> Html:
    """Return a table that scrolls by itself where it is wider than the page.

    Parameters
    ----------
    heads : sequence
        Headings of the columns, a ``<th>`` as it is; numbers stand right of the first ``names`` columns.
    rows : iterable of sequences
        Cells, markup or text; a row that is a ``<tr>`` and a cell that is a ``<td>`` or ``<th>`` are taken as they are.
    caption : str
        What the table shows, for people who cannot see it too.
    names : int
        How many columns hold names.
    titled : bool
        Whether the caption is printed above: not where a summary right above says the same.
    search : str
        What stands before a box that finds rows, where there are many of them.
    """
    first = tag("tr", *(_head(part, i, names) for i, part in enumerate(heads)))
    body = [
        row if isinstance(row, Html) else tag("tr", *(_cell(part, i, names) for i, part in enumerate(row)))
        for row in rows
    ]
    head, held = tag("thead", first), tag("tbody", body)
    shown = tag("table", head, held, class_=class_ or None, aria_label=caption)
    scrolls = tag("div", shown, class_="scroll", role="region", aria_label=caption, tabindex=0)
    box = tag("input", type="search", class_="find", autocomplete="off")
    found = (
        tag("p", tag("label", search, " ", box), class_="search", hidden=True) if search and len(body) > _MANY else None
    )
    return join(tag("p", caption, class_="caption", aria_hidden="true") if titled else None, found, scrolls)


def _head(part: Any, i: int, names: int) -> Html:
    if isinstance(part, Html) and part.startswith("<th"):
        return part
    return tag("th", part, scope="col", class_=None if i < names else "n")


def _cell(part: Any, i: int, names: int) -> Html:
    if isinstance(part, Html) and part.startswith(("<td", "<th")):
        return part
    return tag("th", part, scope="row") if i < names else tag("td", part, class_="n")


def page(
    kind: str,
    title: str,
    body: Html,
    data: Any = None,
    proof: tuple[str, str] | None = None,
    *,
    lang: str = "en",
    scroll: str = "scroll → for all of it",
) -> bytes:
    """Return a page as the content of a file.

    Parameters
    ----------
    kind : {"report", "preview"}
        Which kind of page: it says so in its head, by which it is known again.
    title : str
        Title of the page.
    body : Html
        What it shows.
    data : optional
        What the script reads, as plain values.
    proof : tuple, optional
        The texts of a release and of its proof, which the page checks when it is opened, where ``body`` has
        :data:`CHECKED_HERE`.
    lang, scroll : str
        The language, and what stands above a table that is wider than the page.
    """
    names = ("page.css", "page.js") if proof is None else ("page.css", "check.js", "page.js")
    style, *scripts = (files("pufferfish._draw").joinpath(name).read_text("utf-8") for name in names)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    policy = " ".join([f"{_POLICY}; script-src", *(f"'sha256-{digest}'" for digest in digests)])
    held = {"data": data} if proof is None else {"data": data, "proof": proof}
    contents = {name: msgspec.json.encode(part).decode().replace("<", "\\u003c") for name, part in held.items()}
    head = join(
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Html(style)),
    )
    end = join(
        *(tag("script", Html(content), type="application/json", id=name) for name, content in contents.items()),
        *(tag("script", Html(script)) for script in scripts),
    )
    whole_body = tag("body", Html(f"\n{body}\n{end}\n"), data_scroll=scroll)
    whole = f"{_HEAD.format(lang, _MARKS[kind])}\n{head}\n</head>\n{whole_body}\n</html>\n"
    return whole.encode("utf-8", "backslashreplace")
