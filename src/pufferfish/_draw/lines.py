"""Lines over logarithmic axes as SVG, for pages and notebooks alike: one picture that a phone can show too.

It brings its own looks, as notebooks have no style sheet, and takes the colours of a page where there is one. A label
for which there is no room is left out: the numbers stand in a table beside it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pufferfish._base.view import Html, tag
from pufferfish._base.words import at_most, number
from pufferfish._draw.chart import Line, Lines

__all__ = ["decade", "lines_figure", "tick"]

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 364, 276, 54, 352, 24, 218
"""The size of the picture, that of a phone, and the ends of its axes; two rows of names have room below."""

_LETTER, _ROW = 7.2, 16
"""The width of a letter and the height of a line of text, of 13 pixels."""

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MOST_TICKS = 6
_PIECE = 6
_ENDS = ((_LEFT + 4, "start"), (_RIGHT, "end"))
_ACCENT = "var(--accent, #0072b2)"
_LOOKS = {
    "line": f"fill:none;stroke:{_ACCENT};stroke-width:2.5",
    "dashes": "fill:none;stroke:currentColor;stroke-dasharray:4 3",
    "grid": "fill:none;stroke:currentColor;opacity:.2",
    "dot": f"fill:{_ACCENT}",
    "ring": f"fill:none;stroke:{_ACCENT};stroke-width:2",
}


def lines_figure(chart: Lines) -> Html:
    """Return lines over logarithmic axes, with their caption: the first one with a dot at each of its points.

    Points are rings, or where they stand out dots, with their numbers; dashes have a name. Which
    label has room is decided in the order of the lines from the last one, so that points come before what lies below.
    """
    axes = _Axes.of(chart)
    names: Sequence[tuple[float, str]] = () if chart.ticks is None else list(zip(*chart.ticks, strict=True))
    marks: list[Html | None] = [*_grid(axes)]
    for line in chart.lines:
        marks += _marks(axes, line)
    for line in reversed(chart.lines):
        marks += _numbers(axes, line)
    below = [_name(axes, x, text) for x, text in (*names[:1], *reversed(names[1:]))]  # the ends have room first
    middle = {"x": (_LEFT + _RIGHT) / 2, "y": _HEIGHT - 4, "text_anchor": "middle"}
    picture = tag(
        "svg",
        marks,
        below,
        tag("text", chart.value_label, x=2, y=12),
        tag("text", chart.label, **middle),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        style="display:block;width:100%;max-width:32rem;height:auto;font-size:13px;fill:currentColor",
        role="img",
        aria_label=chart.caption,
    )
    return tag("figure", picture, tag("figcaption", chart.caption))


@dataclass(slots=True)
class _Axes:
    """Where numbers stand, which places are taken, and of which points the number is told."""

    x: tuple[float, float]
    y: tuple[float, float]
    taken: list[tuple[float, float, float, float]] = field(default_factory=list[tuple[float, float, float, float]])
    told: set[tuple[float, float]] = field(default_factory=set[tuple[float, float]])

    @classmethod
    def of(cls, chart: Lines) -> "_Axes":
        x = [float(value) for line in chart.lines for value in line.x]
        y = [float(value) for line in chart.lines for value in (*line.low, *line.high)]
        least, most = decade(min(y), math.floor), decade(max(y), math.ceil)
        return cls((min(x), max(x)), (least, most if most > least else 10 * least))

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point is in the picture."""
        along, up = (math.log(value / low) / math.log(high / low) for value, (low, high) in ((x, self.x), (y, self.y)))
        return _LEFT + (_RIGHT - _LEFT) * along, _BOTTOM - (_BOTTOM - _TOP) * up

    def label(self, text: str, places: Iterable[tuple[float, float, str]], **attributes: Any) -> Html | None:
        """Return a text at the first of some places, each with its anchor, where nothing else stands."""
        wide = _LETTER * len(text)
        for x, y, anchor in places:
            left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            box = left, y - _ROW, left + wide, y
            inside = left >= 0 and box[2] <= _WIDTH
            if inside and not any(_overlap(box, other) for other in self.taken):
                self.taken.append(box)
                return tag("text", text, x=f"{x:.1f}", y=f"{y - 4:.1f}", text_anchor=anchor, **attributes)
        return None


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _grid(axes: _Axes) -> list[Html]:
    """Return the powers of ten of the numbers."""
    low, high = axes.y
    powers = round(math.log10(high / low))
    parts: list[Html] = []
    for power in range(0, powers + 1, -(-powers // _MOST_TICKS)):
        y, text = axes.at(axes.x[0], low * 10**power)[1], tick(low * 10**power)
        axes.taken.append((_LEFT - 6 - _LETTER * len(text), y - _ROW / 2, _LEFT - 6, y + _ROW / 2))
        parts += [
            tag("path", d=f"M{_LEFT} {y:.1f}H{_RIGHT}", style=_LOOKS["grid"]),
            tag("text", text, x=_LEFT - 6, y=f"{y + 4:.1f}", text_anchor="end"),
        ]
    return parts


def _marks(axes: _Axes, line: Line) -> list[Html]:
    """Return a line with its points, or points alone; no label stands upon them."""
    points = [axes.at(float(x), float(y)) for x, y in zip(line.x, line.high, strict=True)]
    path = tag("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), style=_LOOKS.get(line.look))
    along = points
    if line.look != "points":
        pieces = max(2, round(math.dist(points[0], points[-1]) / _PIECE))
        along = [
            (x + (next_x - x) * i / pieces, y + (next_y - y) * i / pieces)
            for (x, y), (next_x, next_y) in pairwise(points)
            for i in range(pieces + 1)
        ]
    axes.taken += [(x - 3, y - 3, x + 3, y + 3) for x, y in along]
    if line.look == "dashes":
        return [path]
    size, style = (5, "dot") if line.wide else (6, "ring") if line.look == "points" else (3, "dot")
    circles = [tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=size, style=_LOOKS[style]) for x, y in points]
    return circles if line.look == "points" else [path, *circles]


def _numbers(axes: _Axes, line: Line) -> list[Html | None]:
    """Return the numbers of points, left above them or right below them: a line that rises is at neither place."""
    if line.look == "dashes":
        y = axes.at(float(line.x[0]), float(line.high[0]))[1]
        return [axes.label(line.name, [(x, y + dy, end) for dy in (_ROW + 4, -4) for x, end in _ENDS])]
    texts: list[Html | None] = []
    for x, y in reversed(list(zip(line.x.tolist(), line.high.tolist(), strict=True))):
        if (x, y) in axes.told:
            continue
        axes.told.add((x, y))
        at_x, at_y = axes.at(x, y)
        above, below = (at_x - 4, at_y - 4, "end"), (at_x + 5, at_y + _ROW + 4, "start")
        is_ring = line.look == "points" and not line.wide
        places = [*((below, above) if is_ring else (above, below)), (at_x, at_y - 8, "middle")]
        texts.append(axes.label(at_most(y, 3), places, font_weight="bold" if line.wide else None))
    return texts


def _name(axes: _Axes, x: float, text: str) -> Html:
    """Return the name of a place along the axis, in the first row or the second, or its stroke alone."""
    at_x = axes.at(x, axes.y[0])[0]
    half = _LETTER * len(text) / 2
    middle = min(max(at_x, half), _WIDTH - half)
    rows = [_BOTTOM + 8 + _ROW * row for row in (1, 2)]
    stroke = tag("path", d=f"M{at_x:.1f} {_BOTTOM}v5", style=_LOOKS["grid"])
    return tag("g", stroke, axes.label(text, [(middle, row, "middle") for row in rows]))


def tick(value: float) -> str:
    """Write a power of ten in the room that is left of the axis.

    Examples
    --------
    >>> tick(0.001), tick(10000.0), tick(1e6), tick(1e-12)
    ('0.001', '10,000', '10⁶', '10⁻¹²')
    """
    power = round(math.log10(value))
    return number(value, 2) if -4 < power < 5 else f"10{str(power).translate(_RAISED)}"


def decade(value: float, rounding: Callable[[float], float]) -> float:
    """Return the power of ten that a number is rounded to."""
    return 10.0 ** rounding(math.log10(value))
