"""Pictures of the noise of every mechanism against ε: as a figure, and as the chart of a page.

On wide screens the names of the chart's lines stand at their ends; on narrow ones, which have no room there, in a list
below. The page shows one of the two; its script moves the mark of the slider in both.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._base.view import Html, tag
from pufferfish._base.words import at_most, number
from pufferfish._draw.chart import Line, Lines
from pufferfish._draw.figure import INK, MARKS, draw_lines, mark_of, new_figure, titled
from pufferfish._draw.layers import nearest
from pufferfish._draw.lines import SAMPLE, Frame, decade, path_of, powers, sample, tick
from pufferfish.compare.rows import ComparisonRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_noise", "noise_chart"]

# -- The chart of a page: ± 95% against ε, a line for each mechanism, for wide screens and for narrow ones ------------

_WIDE = Frame(896, 314, 66, 620, 14, 286)
"""As wide as a page: right of its axes stand the names of its lines."""

_NARROW = Frame(364, 270, 58, 358, 12, 242)
"""As wide as a phone."""

_NAME = 20
"""How far apart the names of lines are at least."""

_ONE_END = 3.0
"""Lines that end so near each other have one place where their names stand."""

_DASHES = ("7 4", "2 3", "12 4", "8 3 2 3", "14 3 2 3 2 3", "4 4", "1 5", "16 6", "10 3 5 3")
"""Strokes and gaps of lines, which tell them apart without colour; that of the page's own mechanism is whole."""


def noise_chart(
    titles: Sequence[str],
    errors: Sequence[Sequence[float | None]],
    epsilons: Sequence[float],
    epsilon: float,
    own: int,
) -> tuple[Html, dict[str, Any]]:
    """Return the errors against ε, both on logarithmic scales, and where the script finds its way in the pictures.

    ``errors`` has for each mechanism those at some of the ε, the first and the last among them, in equal ratios;
    ``own`` is the place of the mechanism that the page is about.
    """
    known = [error for line in errors for error in line if error]
    if not known or max(known) <= min(known):
        return Html(""), {}
    least, most = decade(min(known), math.floor), decade(max(known), math.ceil)

    def at(frame: Frame, along: float, error: float) -> tuple[float, float]:
        return frame.at(along, math.log(error / least) / math.log(most / least))

    def points(frame: Frame, place: int) -> list[tuple[float, float]]:
        last = len(errors[place]) - 1
        return [at(frame, i / last, error) for i, error in enumerate(errors[place]) if error]

    drawn = [i for i, line in enumerate(errors) if sum(bool(error) for error in line) > 1]
    drawn.sort(key=lambda i: i == own)  # the page's own mechanism last, above the others
    ends = {place: points(_WIDE, place)[-1] for place in drawn}
    names = _names(titles, ends, own)
    last, middle = len(epsilons) - 1, list(epsilons).index(epsilon)
    error_here = errors[own][round(middle / last * (len(errors[own]) - 1))] or most
    label = (
        f"The error that one value exceeds with 5% probability, from ε = {at_most(epsilons[0])} to "
        f"{number(epsilons[-1])}: it falls as ε grows. The table below has the numbers."
    )

    def picture(frame: Frame, class_: str, names: Sequence[Html] = ()) -> Html:
        ticks = [frame.level(at(frame, 0, error)[1], tick(error), class_="grid") for error in powers(least, most)]
        for i in sorted({0, middle, last}):
            x, anchor = frame.at(i / last, 0)[0], "end" if i == last else "middle"
            text = f"ε = {at_most(epsilons[i])}"
            ticks.append([tag("text", text, x=f"{x:.1f}", y=frame.bottom + 18, text_anchor=anchor)])
        lines = [
            tag("path", tag("title", titles[place]), d=path_of(points(frame, place)), **_look(place, own))
            for place in drawn
        ]
        x, y = at(frame, middle / last, error_here)
        slider = tag("path", d=f"M{x:.1f} {frame.top}V{frame.bottom}", class_="at")
        dot = tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=5, class_="dot")
        return frame.picture(ticks, lines, names, slider, dot, label=label, class_=class_)

    listed = [
        tag("li", sample(**_look(place, own)), tag("span", titles[place]), class_="own" if place == own else None)
        for place in sorted(ends, key=lambda place: (place != own, ends[place][1]))
    ]
    figure = tag(
        "figure",
        picture(_WIDE, "chart on-wide", names),
        picture(_NARROW, "chart on-narrow"),
        tag("ul", listed, class_="lines on-narrow"),
        _caption(titles[own], names, ended=any(error == 0 for line in errors for error in line)),
    )
    return figure, {"least": least, "most": most, "frames": [asdict(_WIDE), asdict(_NARROW)]}


def _caption(own_title: str, names: Sequence[Html], *, ended: bool) -> Html:
    """Say what the chart shows, and where its lines are named."""
    equal = any(">= " in name for name in names)
    beside = " A name with = before it is of a line that ends at the same point as the one above." if equal else ""
    return tag(
        "figcaption",
        f"± 95% against ε, both on logarithmic scales. Thick: {own_title}; dashed: the other "
        "mechanisms of the table, named ",
        tag("span", f"where their lines end.{beside}", class_="on-wide"),
        tag("span", "below the chart.", class_="on-narrow"),
        " A line ends where the noise is 0 with 95% probability: exact values would be published there."
        if ended
        else None,
    )


def _names(titles: Sequence[str], ends: Mapping[int, tuple[float, float]], own: int) -> list[Html]:
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
    blocks = [sorted(block, key=lambda place: (place != own, place)) for block in blocks]
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
                tag("path", d=f"M{_WIDE.right + 18} {height:.1f}h{SAMPLE}", **_look(place, own)),
                tag(
                    "text",
                    f"{'' if place == block[0] else '= '}{titles[place]}",
                    x=_WIDE.right + 51,
                    y=f"{height + 5:.1f}",
                    class_="name own" if place == own else "name",
                ),
            ]
    return parts


def _look(place: int, own: int) -> dict[str, Any]:
    """Return how the line of a mechanism looks."""
    if place == own:
        return {"class_": "line own"}
    rank = place - (place > own)
    return {"class_": f"line of-{rank % 4}", "stroke_dasharray": _DASHES[rank % len(_DASHES)]}


_AS_ONE = 0.01
"""Curves of noise within this share of each other cannot be told apart in a picture."""


def draw_noise(
    comparisons: Mapping[float, Sequence[ComparisonRow]], made: Sequence[str] = (), measure: str = ""
) -> "Figure":
    """Draw the noise scale of every mechanism against ε, with the lower bound that none can go below.

    ``comparisons`` has for each ε what :func:`pufferfish.compare` returned, all for one query; ``made`` stands above
    the picture: the query and of how many records it is, then the model.
    """
    epsilons = sorted(comparisons)
    curves: dict[str, list[tuple[float, float]]] = {name: [] for name in MARKS}
    floor: dict[float, float] = {}
    titles: dict[str, str] = {}
    for e in epsilons:
        for row in comparisons[e]:
            titles.setdefault(row.mechanism, row.title)
            if not row.scale or row.noise == "best":  # whose error is not in proportion to its largest loss
                continue
            curves.setdefault(row.mechanism, []).append((e, row.scale))
            if row.lower_bound:
                floor[e] = row.lower_bound
    drawn = {name: curve for name, curve in curves.items() if curve}
    lines: list[Line] = []
    for i, (name, curve) in enumerate(drawn.items()):
        alike = [j for j, other in enumerate(drawn.values()) if _same(other, curve)]
        same = f", the same as\n{titles[list(drawn)[alike[0]]]} within 1%" if alike[0] < i else ""
        lines.append(_line(f"{titles[name]}{same}", curve, mark=mark_of(name), wide=alike[-1] > i))
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
