"""The noise of every mechanism against ε, as a figure.

The chart of the noise on a page: ± 95% against ε, a line for each mechanism, for wide screens and for narrow ones.

On wide screens the names of the lines stand at their ends; on narrow ones, which have no room there, in a list below.
The page shows one of the two; its script moves the mark of the slider in both.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._base.view import Html, tag
from pufferfish._base.words import at_most, number
from pufferfish._draw.chart import Line, Lines
from pufferfish._draw.figure import draw_lines, new_figure
from pufferfish._draw.layers import nearest
from pufferfish._draw.lines import decade, tick
from pufferfish._draw.svg import INK, MARKS, mark_of, titled
from pufferfish.compare.rows import ComparisonRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_noise", "noise_chart"]

# -- The chart of the noise on a page: ± 95% against ε, a line for each mechanism, for wide screens and f ------------


@dataclass(frozen=True, slots=True)
class _Frame:
    """The size of a chart, and the ends of its axes in it."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float


_WIDE = _Frame(896, 314, 66, 620, 14, 286)
"""As wide as a page: right of its axes stand the names of its lines."""

_NARROW = _Frame(364, 270, 58, 358, 12, 242)
"""As wide as a phone."""

_NAME = 20
"""How far apart the names of lines are at least."""

_SAMPLE = 28
"""Length of the piece of a line beside its name."""

_ONE_END = 3.0
"""Lines that end so near each other have one place where their names stand."""

_DASHES = ("7 4", "2 3", "12 4", "8 3 2 3", "14 3 2 3 2 3", "4 4", "1 5", "16 6", "10 3 5 3")
"""Strokes and gaps of lines, which tell them apart without colour; that of the page's own mechanism is whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scales:
    """What is drawn, and the powers of ten at the ends of its scale of errors."""

    titles: Sequence[str]
    errors: Sequence[Sequence[float | None]]
    epsilons: Sequence[float]
    epsilon: float
    own: int
    least: float
    most: float

    @property
    def drawn(self) -> list[int]:
        """The lines that have two points at least, the page's own mechanism last, above the others."""
        lines = [i for i, line_errors in enumerate(self.errors) if sum(bool(error) for error in line_errors) > 1]
        return sorted(lines, key=lambda i: i == self.own)

    def at(self, frame: _Frame, along: float, error: float) -> tuple[float, float]:
        """Return where an error is in a chart, at an ε that lies so far along the axis, from 0 to 1."""
        share = math.log(error / self.least) / math.log(self.most / self.least)
        return frame.left + (frame.right - frame.left) * along, frame.bottom - (frame.bottom - frame.top) * share

    def points(self, frame: _Frame, place: int) -> list[tuple[float, float]]:
        """Return the points of a line."""
        last = len(self.errors[place]) - 1
        return [self.at(frame, i / last, error) for i, error in enumerate(self.errors[place]) if error]

    @property
    def middle(self) -> tuple[float, float]:
        """How far along the axis the ε is that is asked for, and the error there."""
        along = list(self.epsilons).index(self.epsilon) / (len(self.epsilons) - 1)
        errors = self.errors[self.own]
        return along, errors[round(along * (len(errors) - 1))] or self.most


def noise_chart(
    titles: Sequence[str],
    errors: Sequence[Sequence[float | None]],
    epsilons: Sequence[float],
    epsilon: float,
    own_place: int,
) -> tuple[Html, dict[str, Any]]:
    """Return the errors against ε, both on logarithmic scales, and where the script finds its way in the pictures.

    Parameters
    ----------
    titles : sequence of str
        The names of the mechanisms.
    errors : sequence of sequence of float or None
        Of each mechanism the errors at some of the ε, the first and the last among them, in equal ratios.
    epsilons : sequence of float
        All ε, in equal ratios.
    epsilon : float
        The one that is asked for, one of them.
    own_place : int
        The mechanism that the page is about, by its place.
    """
    known = [error for line_errors in errors for error in line_errors if error]
    if not known or max(known) <= min(known):
        return Html(""), {}
    least, most = decade(min(known), math.floor), decade(max(known), math.ceil)
    scales = _Scales(
        titles=titles, errors=errors, epsilons=epsilons, epsilon=epsilon, own=own_place, least=least, most=most
    )
    ends = {place: scales.points(_WIDE, place)[-1] for place in scales.drawn}
    names = _names(titles, ends, own_place)
    figure = tag(
        "figure",
        _picture(scales, _WIDE, "chart on-wide", names),
        _picture(scales, _NARROW, "chart on-narrow"),
        _list_of_lines(scales, sorted(ends, key=lambda place: (place != own_place, ends[place][1]))),
        _caption(scales, names),
    )
    return figure, {"least": least, "most": most, "frames": [asdict(_WIDE), asdict(_NARROW)]}


def _picture(scales: _Scales, frame: _Frame, class_: str, names: Sequence[Html] = ()) -> Html:
    """Return the chart in one of its sizes."""
    lines = [
        tag(
            "path",
            tag("title", scales.titles[place]),
            d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in scales.points(frame, place)),
            **_look(place, scales.own),
        )
        for place in scales.drawn
    ]
    x, y = scales.at(frame, *scales.middle)
    marks = [
        tag("path", d=f"M{x:.1f} {frame.top}V{frame.bottom}", class_="at"),
        tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=5, class_="dot"),
    ]
    label = (
        f"The error that one value exceeds with 5% probability, from ε = {at_most(scales.epsilons[0])} to "
        f"{number(scales.epsilons[-1])}: it falls as ε grows. The table below has the numbers."
    )
    return tag(
        "svg",
        _ticks(scales, frame),
        lines,
        names,
        marks,
        viewBox=f"0 0 {frame.width} {frame.height}",
        class_=class_,
        role="img",
        aria_label=label,
    )


def _ticks(scales: _Scales, frame: _Frame) -> list[Html]:
    """Return the lines and numbers of the errors, and the ε at both ends and in the middle."""
    decades = round(math.log10(scales.most / scales.least))
    ticks: list[Html] = []
    for power in range(0, decades + 1, -(-decades // 6)):
        y = scales.at(frame, 0, scales.least * 10**power)[1]
        text = tick(scales.least * 10**power)
        ticks += [
            tag("path", d=f"M{frame.left} {y:.1f}H{frame.right}", class_="grid"),
            tag("text", text, x=frame.left - 6, y=f"{y + 4:.1f}", text_anchor="end"),
        ]
    last = len(scales.epsilons) - 1
    for i in sorted({0, list(scales.epsilons).index(scales.epsilon), last}):
        x, anchor = scales.at(frame, i / last, scales.least)[0], "end" if i == last else "middle"
        text = f"ε = {at_most(scales.epsilons[i])}"
        ticks.append(tag("text", text, x=f"{x:.1f}", y=frame.bottom + 18, text_anchor=anchor))
    return ticks


def _list_of_lines(scales: _Scales, order: Sequence[int]) -> Html:
    """Return the names of lines, each beside a piece of its line."""
    return tag(
        "ul",
        *(
            tag(
                "li",
                tag(
                    "svg",
                    tag("path", d=f"M0 5h{_SAMPLE}", **_look(place, scales.own)),
                    viewBox=f"0 0 {_SAMPLE} 10",
                    aria_hidden="true",
                ),
                tag("span", scales.titles[place]),
                class_="own" if place == scales.own else None,
            )
            for place in order
        ),
        class_="lines on-narrow",
    )


def _caption(scales: _Scales, names: Sequence[Html]) -> Html:
    """Say what the chart shows, and where its lines are named."""
    equal = any(">= " in name for name in names)
    beside = " A name with = before it is of a line that ends at the same point as the one above." if equal else ""
    ended = " A line ends where the noise is 0 with 95% probability: exact values would be published there."
    return tag(
        "figcaption",
        f"± 95% against ε, both on logarithmic scales. Thick: {scales.titles[scales.own]}; dashed: the other "
        "mechanisms of the table, named ",
        tag("span", f"where their lines end.{beside}", class_="on-wide"),
        tag("span", "below the chart.", class_="on-narrow"),
        ended if any(error == 0 for line_errors in scales.errors for error in line_errors) else None,
    )


def _names(titles: Sequence[str], ends: Mapping[int, tuple[float, float]], own_place: int) -> list[Html]:
    """Return the names of lines, each with its dashes, beside their ends: moved apart where they would overlap.

    Where lines end at one point their names are one block, with the page's own mechanism first.
    """
    blocks: list[list[int]] = []
    for place in sorted(ends, key=lambda place: (ends[place][1], place)):
        there = next((block for block in blocks if math.dist(ends[block[0]], ends[place]) <= _ONE_END), None)
        if there is None:
            blocks.append([place])
        else:
            there.append(place)
    blocks = [sorted(block, key=lambda place: (place != own_place, place)) for block in blocks]
    order = [place for block in blocks for place in block]
    middle = {place: ends[block[0]][1] - _NAME * (len(block) - 1) / 2 for block in blocks for place in block}
    offsets = {place: _NAME * block.index(place) for block in blocks for place in block}
    lowest = [_WIDE.bottom - _NAME * i for i in reversed(range(len(order)))]  # the last is no lower than the axis
    wanted = [[(min(middle[p] + offsets[p], low), 1.0)] for p, low in zip(order, lowest, strict=True)]
    heights = dict(zip(order, nearest(wanted, [_NAME * i for i in range(len(order))]), strict=True))
    parts: list[Html] = []
    for block in blocks:
        x, y = ends[block[0]]
        centre = (heights[block[0]] + heights[block[-1]]) / 2
        parts.append(tag("path", d=f"M{x + 2:.1f} {y:.1f}L{_WIDE.right + 14} {centre:.1f}", class_="leader"))
        if len(block) > 1:
            parts.append(
                tag(
                    "path",
                    d=f"M{_WIDE.right + 14} {heights[block[0]] - 6:.1f}V{heights[block[-1]] + 6:.1f}",
                    class_="leader",
                )
            )
        for place in block:
            height = heights[place]
            parts += [
                tag("path", d=f"M{_WIDE.right + 18} {height:.1f}h{_SAMPLE}", **_look(place, own_place)),
                tag(
                    "text",
                    f"{'' if place == block[0] else '= '}{titles[place]}",
                    x=_WIDE.right + 51,
                    y=f"{height + 5:.1f}",
                    class_="name own" if place == own_place else "name",
                ),
            ]
    return parts


def _look(place: int, own_place: int) -> dict[str, Any]:
    """Return how the line of a mechanism looks."""
    if place == own_place:
        return {"class_": "line own"}
    rank = place - (place > own_place)
    return {"class_": f"line of-{rank % 4}", "stroke_dasharray": _DASHES[rank % len(_DASHES)]}


_AS_ONE = 0.01
"""Curves of noise within this share of each other cannot be told apart in a picture."""


def draw_noise(
    comparisons: Mapping[float, Sequence[ComparisonRow]], made: Sequence[str] = (), measure: str = ""
) -> "Figure":
    """Draw the noise scale of every mechanism against ε, with the lower bound that none can go below.

    Parameters
    ----------
    comparisons : mapping from float to sequence of ComparisonRow
        What :func:`pufferfish.compare` returned for each ε, all for one query.
    made : sequence of str, optional
        What stands above the picture: the query and of how many records it is, then the model.
    measure : str, optional
        What the query's answers are numbers of.
    """
    epsilons = sorted(comparisons)
    curves: dict[str, list[tuple[float, float]]] = {name: [] for name in MARKS}
    floor: dict[float, float] = {}
    for e in epsilons:
        for row in comparisons[e]:
            if row.noise == "best":  # its error is not in proportion to its largest loss
                continue
            if row.scale:
                curves.setdefault(row.mechanism, []).append((e, row.scale))
            if row.scale and row.lower_bound:
                floor[e] = row.lower_bound
    titles = {row.mechanism: row.title for row in comparisons[epsilons[0]]}
    lines: list[Line] = []
    drawn: list[str] = []
    for name, curve in curves.items():
        if not curve:
            continue
        under = next((earlier for earlier in drawn if _same(curves[earlier], curve)), None)
        same = "" if under is None else f", the same as\n{titles[under]} within 1%"
        hidden = any(_same(curve, curves[later]) for later in curves if later not in (*drawn, name))
        lines.append(_line(f"{titles[name]}{same}", curve, mark=mark_of(name), wide=hidden))
        drawn.append(name)
    if floor:
        grey = "too little: Laplace noise of one\nscale does not give the guarantee"
        lines.append(_line("lower bound", list(floor.items()), look="dashes", mark=(INK, ""), below=grey))
    figure = new_figure(8.2, 4.8)
    noise = Lines(
        caption="Noise of each mechanism against ε",
        lines=lines,
        label="ε (privacy parameter)",
        value_label=f"noise scale{f' ({measure})' if measure else ''}",
        ticks=(epsilons, [f"{e:.3g}" for e in epsilons]),
        log=True,
    )
    draw_lines(figure.add_subplot(), noise)
    titled(figure, *(made or [noise.caption]))
    return figure


def _line(name: str, curve: Sequence[tuple[float, float]], **look: Any) -> Line:
    epsilons, scales = np.array(curve).T
    return Line(name=name, x=epsilons, low=scales, high=scales, **look)


def _same(first: Sequence[tuple[float, float]], second: Sequence[tuple[float, float]]) -> bool:
    """Return whether two curves lie on each other: noise at the same ε, within a hundredth of each other."""
    return [e for e, _ in first] == [e for e, _ in second] and all(
        abs(a - b) <= _AS_ONE * b for (_, a), (_, b) in zip(first, second, strict=True)
    )
