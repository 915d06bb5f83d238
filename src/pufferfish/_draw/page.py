"""Pages of HTML: one file that needs no network, every text escaped, and a policy that lets nothing else run or load.

Here are the page itself, whose script reads its numbers as JSON, and its parts: sections, tables, sliders, and tables
of numbers as colours (cells with their numbers where there is room, else small squares).
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.view import Html, Tabled, in_short, join, part_shown, tag
from pufferfish._base.words import number
from pufferfish._base.writing import Kind
from pufferfish._draw.chart import Heat, Lines, from_to
from pufferfish._draw.lines import lines_figure

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


def section(title: str, *parts: Any) -> Html:
    """Return a section with a heading."""
    return tag("section", tag("h3", title), *parts)


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

    The first ``names`` columns hold names, the others numbers. A row that is a ``<tr>``, and a cell that is a ``<td>``
    or ``<th>``, are taken as they are. The caption is for people who cannot see the table too; without ``titled`` it is
    not printed, as where a summary right above says the same. ``search`` stands before a box that finds rows, where
    there are many of them.
    """
    first = tag("tr", *(_head(part, i, names) for i, part in enumerate(heads)))
    body = [
        row if isinstance(row, Html) else tag("tr", *(_cell(part, i, names) for i, part in enumerate(row)))
        for row in rows
    ]
    shown = tag("table", tag("thead", first), tag("tbody", body), class_=class_ or None, aria_label=caption)
    scrolls = tag("div", shown, class_="scroll", role="region", aria_label=caption, tabindex=0)
    box = tag("input", type="search", class_="find", autocomplete="off")
    found = tag("p", tag("label", search, " ", box), class_="search", hidden=True)
    above = tag("p", caption, class_="caption", aria_hidden="true") if titled else None
    return join(above, found if search and len(body) > _MANY else None, scrolls)


def bar(*marks: Html) -> Html:
    """Return the picture of a bar that is as wide as its cell, 100, and 20 high; the numbers stand beside it."""
    return tag("svg", *marks, viewBox="0 0 100 20", preserveAspectRatio="none", aria_hidden="true")


def _head(part: Any, i: int, names: int) -> Html:
    if isinstance(part, Html) and part.startswith("<th"):
        return part
    return tag("th", part, scope="col", class_=None if i < names else "n")


def _cell(part: Any, i: int, names: int) -> Html:
    if isinstance(part, Html) and part.startswith(("<td", "<th")):
        return part
    return tag("th", part, scope="row") if i < names else tag("td", part, class_="n")


def slider(
    name: str,
    label: str,
    ends: tuple[str, str],
    sentence: str,
    back: str,
    *,
    last: int,
    at: int,
    told: str | None = None,
) -> Html:
    """Return a slider with places from 0 to ``last``, which a script wakes; ``sentence`` says what is at its place now.

    ``ends`` says what is at its two ends, ``back`` what a button does that moves it to where it began.
    """
    control = tag(
        "input",
        type="range",
        id=f"{name}-slider",
        min=0,
        max=last,
        step=1,
        value=at,
        aria_describedby=told,
        autocomplete="off",
        disabled=True,
    )
    return tag(
        "div",
        tag("label", label, for_=f"{name}-slider"),
        control,
        tag("div", *(tag("span", end) for end in ends), class_="ends"),
        tag("output", sentence, for_=f"{name}-slider", id=told, aria_live="polite"),
        tag("div", tag("button", back, type="button")),
        class_="slider",
    )


# -- Tables of numbers as colours -----------------------------------------------------------------------------------

MOST_COLUMNS = 12
"""Columns up to which numbers stand in the cells: more do not fit on a page."""

MANY_ROWS = 60
"""Rows up to which cells hold numbers."""

_MOST_LISTED = 500
_LEVELS = 10
_MOST_TOLD = 12


def chart_part(chart: Tabled) -> Html:
    """Return a chart, or a table, as a part of a page: probabilities have colours, other numbers stand in a table.

    Between a least and a most the colour is that of the most, so that white is impossible.
    """
    match chart:
        case Heat(caption, rows, columns, low, high):

            def ends(i: int, j: int) -> str:
                return in_short(from_to(float(low[i, j]), float(high[i, j])))

            text = ends if np.any(high > low) else None
            return heat_map(rows, columns, high, caption, corner=chart.corner, most=1.0, text=text)
        case Lines(log=True):
            return lines_figure(chart)
        case Lines(places=[_, *_]):
            most = np.stack([line.high for line in chart.lines], axis=1)
            names = [line.name for line in chart.lines]
            return heat_map(chart.places, names, most, chart.caption, corner=chart.head, most=1.0)
        case _:
            grid = part_shown(chart.grid, _MOST_LISTED)
            return table(grid.columns, [list(map(in_short, row)) for row in grid.rows], grid.caption, names=grid.heads)


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: NDArray[np.float64],
    caption: str,
    *,
    corner: str = "",
    most: float | None = None,
    text: Callable[[int, int], str] | None = None,
    plain: int = 0,
    weak: NDArray[np.bool_] | None = None,
    marked: Callable[[str], Any] = str,
) -> Html:
    """Return a table of numbers whose cells are the darker the larger they are, the darkest at ``most``.

    What is not positive stays without colour, NaN without number. ``text`` says what stands in a cell, from its row and
    column, by default the number. The first ``plain`` columns are no data, but what the others are read with: they
    stand on the ground of the page. Values that are ``weak``, no larger than their own error, have no colour, and
    ``marked`` makes the content of their cells from its text.
    """
    largest = float(np.nanmax(values, initial=0.0)) if most is None else most
    share = np.nan_to_num(np.clip(values / largest, 0, 1)) if largest > 0 else np.zeros(values.shape)
    faint = np.zeros(values.shape, dtype=np.bool_) if weak is None else weak
    share = np.where(faint, 0.0, share)
    if len(columns) > MOST_COLUMNS or len(rows) > MANY_ROWS:
        return _squares(rows, columns, values, share, caption)

    def as_number(i: int, j: int) -> str:
        return "" if np.isnan(values[i, j]) else number(float(values[i, j]), 3)

    write = text or as_number

    def cell(i: int, j: int) -> Html:
        if j < plain:
            return tag("td", write(i, j), class_="plain")
        if faint[i, j]:
            return tag("td", marked(write(i, j)), class_="weak")
        return tag("td", write(i, j), style=f"--h:{share[i, j]:.2f}")

    body = [
        tag("tr", tag("th", name, scope="row"), *(cell(i, j) for j in range(len(columns))))
        for i, name in enumerate(rows)
    ]
    return table([corner, *columns], body, caption, class_="heat")


def _squares(
    rows: Sequence[str], columns: Sequence[str], values: NDArray[np.float64], share: NDArray[np.float64], caption: str
) -> Html:
    """Return a picture with a square for each number, and the largest numbers in words."""
    high, wide = values.shape
    levels = np.ceil(share * _LEVELS).astype(int)
    paths = [
        tag(
            "path",
            d="".join(f"M{j} {i}h1v1h-1z" for i, j in np.argwhere(levels == level).tolist()),
            fill_opacity=level / _LEVELS,
        )
        for level in range(1, _LEVELS + 1)
        if (levels == level).any()
    ]
    order = np.argsort(-np.nan_to_num(values, nan=-np.inf), axis=None)[:_MOST_TOLD]
    cells: list[tuple[int, int]] = [divmod(place, wide) for place in order.tolist()]
    largest = ", ".join(f"{rows[i]} / {columns[j]}: {number(float(values[i, j]), 3)}" for i, j in cells)
    stretched = high * 6 < wide or wide * 6 < high
    drawn = tag(
        "svg",
        tag("rect", width=wide, height=high),
        paths,
        viewBox=f"0 0 {wide} {high}",
        preserveAspectRatio="none" if stretched else None,
        style="height:9rem" if stretched else f"--wide:{min(40, max(16, wide))}rem",
        class_="raster",
        role="img",
        aria_label=f"{caption}. Darker is more.",
        shape_rendering="crispEdges",
    )
    ends = f"Rows from {rows[0]} (top) to {rows[-1]}, columns from {columns[0]} (left) to {columns[-1]}. "
    return tag("figure", drawn, tag("figcaption", join(f"{caption}. {ends}The largest: {largest}.")))


# -- The page itself -------------------------------------------------------------------------------------------------


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
    """Return a page as the content of a file; its head says of which kind it is, "report" or "preview".

    ``data`` is what the script reads, as plain values. ``proof`` has the texts of a release and of its proof, which the
    page checks when it is opened, where ``body`` has :data:`CHECKED_HERE`. ``scroll`` stands above a table that is
    wider than the page.
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
