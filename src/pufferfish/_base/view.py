"""How objects show themselves: a view of titles, facts and tables, as text and as HTML in notebooks; tables as frames.

An object says what there is to see (:class:`View`, plain texts), and this file alone writes it for people: as text, and
as the HTML of notebooks, where every table has a caption and headings that screen readers announce.

A :class:`Html` is text that is safe already; :func:`tag` escapes all other text, so a name from a table or model can
never become markup. Notebooks and the pages of reports are written with it.
"""

import importlib.util
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

from pufferfish._base.words import WEAK, number
from pufferfish.errors import ParameterError, printable, shortened

# -- Markup of HTML: every text in it is escaped ---------------------------------------------------------------------

_VOID = frozenset({"meta", "input", "br"})


class Html(str):
    """Markup: text that is escaped already."""

    __slots__ = ()


Part = "Html | str | float | None | Iterable[Part]"
"""What may stand in an element; None is nothing, and all text but :class:`Html` is escaped."""


def _safe(part: Any) -> str:
    if part is None:
        return ""
    if isinstance(part, Html):
        return part
    if isinstance(part, str):
        return escape(printable(part))
    return "".join(map(_safe, part)) if isinstance(part, Iterable) else escape(str(part))


def join(*parts: Any) -> Html:
    """Return parts one after the other; text is escaped.

    >>> join("a < b", tag("b", "c"))
    'a &lt; b<b>c</b>'
    """
    return Html("".join(map(_safe, parts)))


def tag(name: str, /, *parts: Any, **attributes: Any) -> Html:
    """Return an element; ``class_`` and ``aria_label`` are written as HTML has them, None and False are left out.

    >>> tag("td", "<script>", class_="n", title='"')
    '<td class="n" title="&quot;">&lt;script&gt;</td>'
    """
    attribute_text = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(printable(str(value)))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{attribute_text}>" if name in _VOID else f"<{name}{attribute_text}>{join(*parts)}</{name}>")


MOST_ROWS, MOST_COLUMNS = 30, 12
"""Rows and columns of a table that are shown; how many more there are is said."""

_LONGEST = 60
_LONGEST_FACT = 600

FRAMES = ("polars", "pandas", "pyarrow")
"""Libraries whose tables ``to_frame`` makes."""

_LEFT = "text-align:left"
_RIGHT = "text-align:right"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: cells are numbers or texts; the first ``heads`` columns name the rows.

    ``wide`` and ``long`` are the columns and rows of the whole table, where only the first are given.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    heads: int = 1
    wide: int | None = None
    long: int | None = None

    @property
    def grid(self) -> "Grid":
        """The table itself."""
        return self


class Tabled(Protocol):
    """What can be written as a table: one, or a chart of ``_draw/chart.py``."""

    @property
    def grid(self) -> Grid:
        """The table."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """A title, facts with their names, tables and charts, notes in full sentences, and pictures for notebooks."""

    title: str
    facts: Mapping[str, Any] | None = None
    grids: Sequence[Tabled] = ()
    notes: Sequence[str] = ()
    pictures: Sequence[Html] = ()


class Shown:
    """An object that notebooks show as a view."""

    __slots__ = ()

    def _view(self) -> View:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return html_of(self._view())


class Printed(Shown):
    """An object that is printed as its view too; its ``repr`` stays a line."""

    __slots__ = ()

    def __str__(self) -> str:
        return text_of(self._view())


def view_of(shown: Shown) -> View:
    """Return what an object shows."""
    return shown._view()


def in_short(value: Any) -> str:
    """Return a number in four digits, a truth value as a word, nothing as nothing, anything else as text that prints.

    >>> in_short(0.123456), in_short(1234567), in_short(True), in_short(None), in_short("rest")
    ('0.1235', '1,234,567', 'yes', '', 'rest')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number(value)
    return printable(str(value))


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> counted(1, "group"), counted(1200, "group"), counted(2, "entry", "entries")
    ('1 group', '1,200 groups', '2 entries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def html_of(view: View) -> Html:
    """Return a view as HTML: everything in it is escaped.

    >>> html_of(View("a < b", {"<script>": 1}))
    '<div class="pufferfish"><p><strong>a &lt; b</strong></p><ul><li>&lt;script&gt;: 1</li></ul></div>'
    """
    facts = {name: value for name, value in (view.facts or {}).items() if value is not None}
    items = [tag("li", _text(name), ": ", _text(value, _LONGEST_FACT)) for name, value in facts.items()]
    return tag(
        "div",
        tag("p", tag("strong", _text(view.title, _LONGEST_FACT))),
        tag("ul", items) if items else None,
        [_table(grid) for grid in (shown.grid for shown in view.grids) if grid.rows],
        view.pictures,
        [tag("p", _text(note, _LONGEST_FACT)) for note in view.notes],
        class_="pufferfish",
    )


def text_of(view: View) -> str:
    """Return a view as text, with tables in columns.

    >>> print(text_of(View("a title", {"a fact": 1200}, [Grid("a table", ["state", "value"], [["rest", 0.25]])])))
    a title
    a fact: 1,200
    a table:
    state  value
    rest    0.25
    """
    facts = [f"{name}: {in_short(value)}" for name, value in (view.facts or {}).items() if value is not None]
    lines = [view.title, *facts]
    for shown in view.grids:
        lines += grid_lines(shown.grid)
    return "\n".join(printable(line) for line in (*lines, *view.notes))


def grid_lines(grid: Grid) -> list[str]:
    """Return a table as lines, its caption first; none without rows."""
    if not grid.rows:
        return []
    grid = part_shown(grid)
    cells = [[printable(in_short(cell)) for cell in row] for row in (grid.columns, *grid.rows)]
    return [printable(f"{grid.caption}:"), *in_columns(cells, _numeric_columns(grid))]


def in_columns(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Return rows of texts as lines, each column as wide as its widest text; some stand on the right.

    >>> in_columns([["state", "n"], ["rest", "12"]], [False, True])
    ['state   n', 'rest   12']
    """
    from rich.cells import cell_len  # here: most objects are never shown

    columns: list[list[str]] = []
    for column, on_right in zip(zip(*rows, strict=True), right, strict=True):
        widths = list(map(cell_len, column))  # some letters take the place of two
        spaces = [" " * (max(widths) - width) for width in widths]
        columns.append(
            [f"{space}{cell}" if on_right else cell + space for cell, space in zip(column, spaces, strict=True)]
        )
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def part_shown(grid: Grid, most: int = MOST_ROWS) -> Grid:
    """Return the rows and columns of a table that are shown; its caption says how many are not.

    >>> part_shown(Grid("numbers", ["n", "n * n"], [[n, n * n] for n in range(99)])).caption
    'numbers (69 more rows not shown)'
    """
    columns = list(grid.columns)[: MOST_COLUMNS + grid.heads]
    rows = [row[: len(columns)] for row in grid.rows[:most]]
    wide = (grid.wide or len(grid.columns) - grid.heads) - (len(columns) - grid.heads)
    long = (grid.long or len(grid.rows)) - len(rows)
    left = [counted(n, noun) for n, noun in ((long, "more row"), (wide, "more column")) if n > 0]
    caption = grid.caption + (f" ({' and '.join(left)} not shown)" if left else "")
    return Grid(caption, columns, rows, grid.heads)


def _numeric_columns(grid: Grid) -> list[bool]:
    """Say of each column whether it holds numbers, which stand on the right; words stand on the left."""
    cells = [[in_short(row[i]) for row in grid.rows] for i in range(len(grid.columns))]
    return [i >= grid.heads and all(_NUMBER.fullmatch(cell) for cell in column) for i, column in enumerate(cells)]


def _table(grid: Grid) -> Html:
    grid = part_shown(grid)
    sides = [_RIGHT if right else _LEFT for right in _numeric_columns(grid)]
    heads = [tag("th", _text(name), scope="col", style=side) for name, side in zip(grid.columns, sides, strict=True)]
    body: list[Html] = []
    for row in grid.rows:
        cells = [
            tag("th", _text(cell), scope="row", style=f"{side};font-weight:normal")
            if i < grid.heads
            else tag("td", _text(cell, _LONGEST_FACT), style=side)
            for i, (cell, side) in enumerate(zip(row, sides, strict=True))
        ]
        body.append(tag("tr", cells))
    return tag(
        "table",
        tag("caption", _text(grid.caption, _LONGEST_FACT), style=f"caption-side:top;white-space:nowrap;{_LEFT}"),
        tag("thead", tag("tr", heads)),
        tag("tbody", body),
    )


_NUMBER = re.compile(rf"({WEAK} )?(-?[\d,.]+(e[+-]?\d+)?|inf|nan)?")


def _text(value: Any, most: int = _LONGEST) -> str:
    return shortened(in_short(value), most)


def frame_of_columns(columns: Mapping[str, Sequence[Any]], types: Mapping[str, type], into: str = "polars") -> Any:
    """Return columns as a table of the library that is asked for, with the same types in each.

    A library that is unknown or not installed is refused.

    >>> frame_of_columns({"state": ["rest"], "value": [None]}, {"state": str, "value": float}).schema
    Schema([('state', String), ('value', Float64)])
    """
    import narwhals as nw

    if into not in FRAMES:
        raise ParameterError(f"into is {into!r}, expected one of {', '.join(map(repr, FRAMES))}")
    if importlib.util.find_spec(into) is None:
        raise ParameterError(f"into={into!r} needs {into}, which is not installed: pip install {into}")
    kinds: dict[type, Any] = {str: nw.String(), float: nw.Float64(), int: nw.Int64(), bool: nw.Boolean()}
    schema, content = {name: kinds[types[name]] for name in columns}, {n: list(c) for n, c in columns.items()}
    if into != "pandas":
        return nw.from_dict(content, schema, backend=into).to_native()
    # whole numbers of pandas know no missing ones: such columns are made by the library itself
    known = {name: kind for name, kind in schema.items() if all(v is not None for v in content[name])}
    casts = (nw.col(name).cast(kind) for name, kind in known.items() if kind != nw.String())
    return nw.from_dict(content, backend=into).with_columns(casts).to_native()
