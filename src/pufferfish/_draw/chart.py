"""What there is to draw, as data: tables of numbers, bars, lines and graphs, and pictures, which are made of these.

An object says once which marks show it. From them its tables are written as text and for notebooks (``_base/view``, by
:attr:`grid`), the pages of reports (``_draw/page``) and figures of matplotlib (``_draw/figure``,
``_draw/network``). Numbers are single ones, or go from a least to a most: then a class is shown, and no estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.view import MOST_COLUMNS, MOST_ROWS, Grid, in_short

Array = NDArray[np.float64]


def from_to(low: float, high: float) -> str | float:
    """Return a number, or in words from which to which one it goes.

    Examples
    --------
    >>> from_to(0.5, 0.5), from_to(0.25, 0.5)
    (0.5, '0.25 to 0.5')
    """
    return low if low == high else f"{in_short(low)} to {in_short(high)}"


@dataclass(frozen=True, slots=True)
class Heat:
    """Probabilities in rows and columns, each from a least to a most; 0 is what is impossible.

    ``low`` and ``high`` are (rows, columns) arrays; ``axes`` says what the names of rows, and those of columns, are.
    """

    caption: str
    rows: Sequence[str]
    columns: Sequence[str]
    low: Array
    high: Array
    axes: tuple[str, str] = ("from", "to")

    @property
    def corner(self) -> str:
        """Heading of the names of rows."""
        return " \\ ".join(self.axes)

    @property
    def grid(self) -> Grid:
        """The first rows and columns as a table."""
        square = len(self.rows) == len(self.columns)
        ends = zip(self.low[: MOST_COLUMNS if square else MOST_ROWS], self.high, strict=False)
        cells = [list(map(from_to, low[:MOST_COLUMNS].tolist(), high[:MOST_COLUMNS].tolist())) for low, high in ends]
        rows = [[name, *row] for name, row in zip(self.rows, cells, strict=False)]
        heads = [self.corner, *self.columns[:MOST_COLUMNS]]
        return Grid(self.caption, heads, rows, wide=len(self.columns), long=len(self.rows))


@dataclass(frozen=True, slots=True)
class Bars:
    """Numbers that are not negative, and may have no end: a bar for each, of the name beside it.

    ``label`` stands along an axis, ``heads`` above the names and the numbers in a table. Where ``low`` and ``high``,
    (n,) arrays, differ a bar goes from the one to the other; of (m, n) ``points``, each of a ``point``, they are the
    ends.
    """

    caption: str
    label: str
    names: Sequence[str]
    low: Array
    high: Array
    points: Array | None = None
    point: str = ""
    heads: tuple[str, str] = ("", "")

    @property
    def grid(self) -> Grid:
        """The first bars as a table."""
        ends = zip(self.names[:MOST_ROWS], self.low.tolist(), self.high.tolist(), strict=False)
        rows = [[name, from_to(low, high)] for name, low, high in ends]
        return Grid(self.caption, self.heads, rows, long=len(self.names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line; what goes up in steps, or points; a band where its least and its most differ.

    It goes through ``x``, ``low`` and ``high``, (n,) arrays. In tables it is called ``head``, where that is another
    word than its name. Its colour and marker, ``mark``, are by default those of its place among the others. A ``wide``
    line is not hidden by another one over it; a wide point stands out. ``below`` says what is coloured below it.
    """

    name: str
    x: Array
    low: Array
    high: Array
    head: str = ""
    look: Literal["line", "dashes", "steps", "points"] = "line"
    mark: tuple[str, str] | None = None
    wide: bool = False
    below: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines over one axis; a table has those over the places of the first points, or of the first line.

    ``head`` stands above the places in a table. With names of the ``places`` 0, 1, … lines are named where they end,
    else in a legend. ``ticks`` says which places are named along the axis, and how. Both axes are logarithmic
    (``log``), or values are shares.
    """

    caption: str
    lines: Sequence[Line]
    label: str
    value_label: str
    head: str = ""
    places: Sequence[str] = ()
    ticks: tuple[Sequence[float], Sequence[str]] | None = None
    log: bool = False

    @property
    def grid(self) -> Grid:
        """The lines over the places of the first points, or of the first line, as a table."""
        positions = next((line.x for line in self.lines if line.look == "points"), self.lines[0].x)
        lines = [line for line in self.lines if np.array_equal(line.x, positions)]
        few = lines[:MOST_COLUMNS]
        names = self.places or [int(x) for x in positions]
        columns = [list(map(from_to, line.low.tolist(), line.high.tolist())) for line in few]
        rows = [[name, *cells] for name, *cells in zip(names, *columns, strict=False)]
        return Grid(self.caption, [self.head, *(line.head or line.name for line in few)], rows, wide=len(lines))

    @property
    def extremes(self) -> Grid:
        """The least and the most of each line, and the places where it has them, as a table."""
        rows: list[list[str | float]] = []
        for line in self.lines[:MOST_ROWS]:
            least, most = int(line.low.argmin()), int(line.high.argmax())
            ends = (float(line.low[least]), self.places[least], float(line.high[most]), self.places[most])
            rows.append([line.name, *ends])
        return Grid(self.caption.partition(", by ")[0], ["state", "least", "at", "most", "at"], rows)


Role = Literal["node", "quilt", "nearby", "remote", "plain"]
"""What a node of a graph is told apart by, in shape and colour: the one it is about, those that stand around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Nodes with arrows between them, and what is said of them.

    Of the whole graph the nodes at some ``places`` are drawn. Each has those of its ``parents`` that are drawn as well,
    as places among the drawn ones, a name, a role, and may be hollow. ``note`` says what of the graph is not drawn, and
    ``legend`` what shapes mean, hollow ones too.
    """

    places: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    roles: tuple[Role, ...]
    filled: tuple[bool, ...]
    title: str
    legend: tuple[tuple[Role, bool, str], ...] = ()
    note: str = ""


Chart = Heat | Bars | Lines


@dataclass(frozen=True, slots=True)
class Picture:
    """Charts side by side, from the left, and what is to be known of them, in full sentences."""

    title: str
    charts: Sequence[Chart]
    notes: Sequence[str] = ()
