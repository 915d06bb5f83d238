"""Charts on pages; tables of numbers as colours: cells with their numbers where there is room, else small squares."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.view import Grid, Html, Tabled, grid_of, in_short, join, part_shown, tag
from pufferfish._base.words import number
from pufferfish._draw.chart import Heat, Lines, from_to
from pufferfish._draw.lines import lines_figure
from pufferfish._draw.page import table

__all__ = ["MOST_COLUMNS", "chart_part", "heat_map"]

MOST_COLUMNS = 12
"""Columns up to which numbers stand in the cells: more do not fit on a page."""

_MOST_ROWS = 60
_MOST_LISTED = 500
_LEVELS = 10
_MOST_TOLD = 12


def chart_part(chart: Grid | Tabled) -> Html:
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
            grid = part_shown(grid_of(chart), _MOST_LISTED)
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
    """Return a table of numbers whose cells are the darker the larger they are.

    Parameters
    ----------
    rows, columns : sequence of str
        Names; markup is taken as it is.
    values : (rows, columns) ndarray
        What is not positive stays without colour, NaN without number.
    caption : str
        What is shown.
    corner : str
        Heading of the names of rows.
    most : float, optional
        The value of the darkest colour; by default the largest one.
    text : callable, optional
        What stands in a cell, from its row and column; by default the number.
    plain : int
        How many first columns are no data, but what the others are read with: they stand on the ground of the page.
    weak : (rows, columns) ndarray of bool, optional
        Which values are no larger than their own error: they have no colour.
    marked : callable
        What stands in the cell of such a value, from its text.
    """
    largest = float(np.nanmax(values, initial=0.0)) if most is None else most
    share = np.nan_to_num(np.clip(values / largest, 0, 1)) if largest > 0 else np.zeros(values.shape)
    faint = np.zeros(values.shape, dtype=np.bool_) if weak is None else weak
    share = np.where(faint, 0.0, share)
    if len(columns) > MOST_COLUMNS or len(rows) > _MOST_ROWS:
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
        tag(
            "tr",
            tag("th", name, scope="row"),
            *(cell(i, j) for j in range(len(columns))),
        )
        for i, name in enumerate(rows)
    ]
    return table([corner, *columns], body, caption, class_="heat")


def _squares(
    rows: Sequence[str],
    columns: Sequence[str],
    values: NDArray[np.float64],
    share: NDArray[np.float64],
    caption: str,
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
