"""Lines as SVG, drawn by the program itself: over logarithmic axes, and with bands over public groups.

Notebooks have no style sheet: :func:`lines_figure` brings its own looks, and takes the colours of a page where there is
one. Bands (:func:`band_charts`, :func:`small_multiples`) are for pages alone. A label for which there is no room is
left out: the numbers stand in a table beside each picture.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.view import Html, tag
from pufferfish._base.words import at_most, number
from pufferfish._draw.chart import Line, Lines


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a picture, and the ends of its axes in it."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float

    def at(self, along: float, up: float) -> tuple[float, float]:
        """Return the point that lies so far along both axes, from 0 to 1."""
        return self.left + (self.right - self.left) * along, self.bottom - (self.bottom - self.top) * up

    def level(self, y: float, text: str, *, gap: float = 6, **look: Any) -> list[Html]:
        """Return the line of a value across the picture, with its number on the left."""
        return [
            tag("path", d=f"M{self.left} {y:.1f}H{self.right}", **look),
            tag("text", text, x=self.left - gap, y=f"{y + 4:.1f}", text_anchor="end"),
        ]

    def picture(self, *marks: Any, label: str, **look: Any) -> Html:
        """Return a picture of this size; ``label`` says what it shows."""
        return tag("svg", marks, viewBox=f"0 0 {self.width} {self.height}", **look, role="img", aria_label=label)


def path_of(points: Iterable[tuple[float, float]]) -> str:
    """Return a line through points as SVG has it."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def powers(low: float, high: float, most: int = 6) -> list[float]:
    """Return powers of ten from the one to the other, at most about so many."""
    decades = round(math.log10(high / low))
    return [low * 10**power for power in range(0, decades + 1, -(-decades // most))]


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


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

SAMPLE = 28
"""Length of the piece of a line beside its name."""

# -- Lines over logarithmic axes -------------------------------------------------------------------------------------

_PHONE = Frame(364, 276, 54, 352, 24, 218)
"""As wide as a phone; two rows of names have room below."""

_LETTER, _ROW = 7.2, 16
"""The width of a letter and the height of a line of text, of 13 pixels."""

_PIECE = 6
_ENDS = ((_PHONE.left + 4, "start"), (_PHONE.right, "end"))
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
    middle = {"x": (_PHONE.left + _PHONE.right) / 2, "y": _PHONE.height - 4, "text_anchor": "middle"}
    picture = _PHONE.picture(
        marks,
        below,
        tag("text", chart.value_label, x=2, y=12),
        tag("text", chart.label, **middle),
        label=chart.caption,
        style="display:block;width:100%;max-width:32rem;height:auto;font-size:13px;fill:currentColor",
    )
    return tag("figure", picture, tag("figcaption", chart.caption))


@dataclass(slots=True)
class _Axes:
    """The ends of both scales, which places are taken, and of which points the number is told."""

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
        return _PHONE.at(
            *(math.log(value / low) / math.log(high / low) for value, (low, high) in ((x, self.x), (y, self.y)))
        )

    def label(self, text: str, places: Iterable[tuple[float, float, str]], **attributes: Any) -> Html | None:
        """Return a text at the first of some places, each with its anchor, where nothing else stands."""
        wide = _LETTER * len(text)
        for x, y, anchor in places:
            left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            box = left, y - _ROW, left + wide, y
            inside = left >= 0 and box[2] <= _PHONE.width
            if inside and not any(_overlap(box, other) for other in self.taken):
                self.taken.append(box)
                return tag("text", text, x=f"{x:.1f}", y=f"{y - 4:.1f}", text_anchor=anchor, **attributes)
        return None


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _grid(axes: _Axes) -> list[Html]:
    """Return the powers of ten of the numbers."""
    parts: list[Html] = []
    for value in powers(*axes.y):
        y, text = axes.at(axes.x[0], value)[1], tick(value)
        axes.taken.append((_PHONE.left - 6 - _LETTER * len(text), y - _ROW / 2, _PHONE.left - 6, y + _ROW / 2))
        parts += _PHONE.level(y, text, style=_LOOKS["grid"])
    return parts


def _marks(axes: _Axes, line: Line) -> list[Html]:
    """Return a line with its points, or points alone; no label stands upon them."""
    points = [axes.at(float(x), float(y)) for x, y in zip(line.x, line.high, strict=True)]
    path = tag("path", d=path_of(points), style=_LOOKS.get(line.look))
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
    middle = min(max(at_x, half), _PHONE.width - half)
    rows = [_PHONE.bottom + 8 + _ROW * row for row in (1, 2)]
    stroke = tag("path", d=f"M{at_x:.1f} {_PHONE.bottom}v5", style=_LOOKS["grid"])
    return tag("g", stroke, axes.label(text, [(middle, row, "middle") for row in rows]))


# -- Lines with bands over public groups: one picture on wide screens, a small one for each line on a phone -----------

MOST_LINES = 5
"""Lines up to which one picture shows them together."""

_WIDE, _NARROW = Frame(1104, 206, 48, 1100, 8, 182), Frame(364, 170, 48, 360, 8, 146)
_SMALL = Frame(224, 126, 48, 220, 8, 102)
_FEW = 3
_MOST_DOTS = 62


@dataclass(frozen=True, slots=True)
class Band:
    """One line: its name, a value at each place (NaN where there is none), the ends of its band, and which are weak."""

    name: str
    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    weak: NDArray[np.bool_]


def band_charts(lines: Sequence[Band], places: Sequence[str], write: Callable[[float], str], label: str) -> Html:
    """Return a chart of lines over named places for wide screens, and for narrow ones a chart of each."""
    ends = _ends(lines)
    wide = _bands(lines, places, write, ends, _WIDE, label, "bands on-wide")
    narrow: list[Html | None] = []
    for i, line in enumerate(lines):
        narrow += [tag("h4", line.name, class_="on-narrow") if len(lines) > 1 else None]
        narrow += [_bands([line], places, write, ends, _NARROW, f"{label}: {line.name}", "bands on-narrow", i)]
    return tag("figure", _legend(lines), wide, narrow)


def small_multiples(
    panels: Sequence[tuple[str, Sequence[Band]]], places: Sequence[str], write: Callable[[float], str], label: str
) -> Html:
    """Return a chart for each panel, beside each other as far as there is room, each with a scale of its own."""
    few = len(panels) <= _FEW
    frame = _NARROW if few else _SMALL
    shown = [
        tag("div", tag("h4", name), _bands(lines, places, write, _ends(lines), frame, f"{label}: {name}", "bands"))
        for name, lines in panels
    ]
    return tag("figure", _legend(panels[0][1]), tag("div", shown, class_="panels few" if few else "panels"))


def _legend(lines: Sequence[Band]) -> Html | None:
    """Return the names of lines beside a piece of each, where there are several."""
    pieces = [tag("li", sample(class_=f"line b{i}"), line.name) for i, line in enumerate(lines)]
    return tag("ul", pieces, class_="lines") if len(lines) > 1 else None


def sample(**look: Any) -> Html:
    """Return a piece of a line, to stand beside its name."""
    return tag("svg", tag("path", d=f"M0 5h{SAMPLE}", **look), viewBox=f"0 0 {SAMPLE} 10", aria_hidden="true")


def _ends(lines: Sequence[Band]) -> tuple[float, float, float]:
    """Return the ends of the scale of values, and the step of its ticks: all bands are on it, and a near 0."""
    low = float(min(np.nanmin(line.low) for line in lines))
    high = float(max(np.nanmax(line.high) for line in lines))
    if 0 < low < high - low:
        low = 0.0
    reach = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(reach / 4))
    step = next(power * times for times in (1, 2, 5, 10) if reach <= 4.5 * power * times)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step


def _bands(
    lines: Sequence[Band],
    places: Sequence[str],
    write: Callable[[float], str],
    ends: tuple[float, float, float],
    frame: Frame,
    label: str,
    class_: str,
    first: int = 0,
) -> Html:
    """Return the chart in one size; ``first`` is the colour of the first line."""
    low, most, step = ends
    reach = (most - low) or 1.0

    def at(i: float, value: float) -> tuple[float, float]:
        return frame.at((i + 0.5) / len(places), (value - low) / reach)

    levels: list[Html] = []
    for value in (low + i * step for i in range(round(reach / step) + 1)):
        look = "zero" if value == 0 else "grid"
        levels += frame.level(at(0, value)[1], write(round(value, 12)), gap=5, class_=look)
    longest = _LETTER * max(map(len, places))
    names: list[Html] = []
    for i in range(0, len(places), math.ceil(len(places) * (longest + 8) / (frame.right - frame.left))):
        middle = min(max(at(i, low)[0], longest / 2), frame.width - longest / 2)
        names.append(tag("text", places[i], x=f"{middle:.1f}", y=frame.height - 6, text_anchor="middle"))
    bands, drawn = list[Html](), list[Html]()
    for i, line in enumerate(lines, first):
        for run in _runs(~np.isnan(line.values)):
            sides = (0,) if len(run) > 1 else (-2, 2)
            high_end, low_end = (
                [(x + side, y) for x, y in (at(j, end[j]) for j in run) for side in sides]
                for end in (line.high, line.low)
            )
            points = [(j, *at(j, line.values[j])) for j in run]
            dots = points if len(places) <= _MOST_DOTS or len(run) == 1 else ()
            bands.append(tag("path", d=f"{path_of([*high_end, *reversed(low_end)])}z", class_=f"band b{i}"))
            drawn.append(tag("path", d=path_of((x, y) for _, x, y in points), class_=f"line b{i}"))
            for j, x, y in dots:
                weak = "weak" if line.weak[j] else "dot"
                drawn.append(tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=3, class_=f"b{i} {weak}"))
    return frame.picture(levels, names, bands, drawn, label=label, class_=class_)


def _runs(known: NDArray[np.bool_]) -> list[list[int]]:
    """Return the places of what is known, those that stand next to each other together."""
    return [list(run) for is_known, run in groupby(range(len(known)), key=lambda i: bool(known[i])) if is_known]
