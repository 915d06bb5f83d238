"""The noise of every mechanism, and a slider for ε: the curves are computed here, the page looks them up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pufferfish.comparison_row import ComparisonRow, NoiseCurve
from pufferfish.digits import at_most, number, to_the_noise
from pufferfish.markup import Html, join, tag
from pufferfish.mechanisms.mechanism import LEAST_EPSILON
from pufferfish.report.html import fold, table
from pufferfish.report.spread import nearest

__all__ = ["Noise", "noise_part", "points_around"]

_STEPS = 10
"""Places of the slider from one computed ε to the next."""

_TO_TEN = 4
"""Computed ε on either side, up to ten times and down to a tenth of the one that is asked for."""

_WIDE, _HIGH = 896, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 620, 14, 286
"""The picture takes the width of a page; right of ``_RIGHT`` stand the names of its lines."""

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_NAME = 20
"""How far apart the names of lines are at least: the height of a letter on a phone."""

_ONE_END = 3.0
"""Lines that end so near each other have one place where their names stand."""

_DASHES = ("7 4", "2 3", "12 4", "8 3 2 3", "14 3 2 3 2 3", "4 4", "1 5", "16 6", "10 3 5 3")
"""Strokes and gaps of lines, which tell them apart without colour; that of the page's own mechanism is whole."""


def points_around(epsilon: float) -> list[float]:
    """Return the ε at which curves are computed, in equal ratios, the one that is asked for among them.

    Examples
    --------
    >>> len(points_around(1.0)), points_around(1.0)[::4]
    (9, [0.1, 1.0, 10.0])
    """
    found = [epsilon * 10 ** (i / _TO_TEN) for i in range(-_TO_TEN, _TO_TEN + 1)]
    return [e for e in found if LEAST_EPSILON <= e < math.inf]


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of mechanisms at one ε, and around it.

    Parameters
    ----------
    rows : sequence of ComparisonRow
        At the ε that is asked for.
    epsilons : sequence of float
        Where the curves were computed.
    curves : sequence of NoiseCurve
        The noise there.
    epsilon : float
        The one that is asked for, one of ``epsilons``.
    mechanism, noise : str
        Which mechanism the page is about, and the shape of its noise.
    lower : float or None
        A scale below which no Laplace noise of one scale gives the guarantee.
    measure : str
        What answers, and their errors, are numbers of.
    scale_measure : str
        What the scales of noise are numbers of, where that is something else; "" where it is the same.
    own_word : str
        What is said of that mechanism.
    scale_factor, error_factor : float
        By what scales and errors are multiplied: where the values are of groups, those of all records together were
        compared.
    division : float
        By what the scales are still to be divided, to be those of the noise whose errors are told: the records of the
        smallest group, where values are shares of groups.
    whole : bool
        Whether errors are whole numbers, as those of counts are.
    """

    rows: Sequence[ComparisonRow]
    epsilons: Sequence[float]
    curves: Sequence[NoiseCurve]
    epsilon: float
    mechanism: str
    noise: str
    measure: str
    lower: float | None
    own_word: str = "this release"
    scale_factor: float = 1.0
    error_factor: float = 1.0
    scale_measure: str = ""
    division: float = 1.0
    whole: bool = False

    def written(self, error: float, scale: float) -> str:
        """Write an error of noise to its digits, as page.js does: the value has as many, wherever it stands."""
        if error == 0 or scale == 0:
            return number(error)
        return to_the_noise(error, scale / self.division, whole=self.whole)


def noise_part(about: Noise, name: str) -> tuple[Html, dict[str, Any] | None]:
    """Return the table of mechanisms with its slider, and what the script reads; ``name`` is its place in the page."""
    fit = [row for row in about.rows if row.reason is None]
    places: dict[tuple[str, str], int] = {(curve.mechanism, curve.noise): i for i, curve in enumerate(about.curves)}
    own = places.get((about.mechanism, about.noise))
    rows = [_row(about, row, places.get((row.mechanism, row.noise))) for row in fit]
    apart, measured = bool(about.scale_measure), "" if about.scale_measure else f" ({about.measure})"
    shown = table(
        ["mechanism", _head("noise scale", about.scale_measure), _head("± 95%", about.measure if apart else "")],
        rows,
        f"Noise of every mechanism{measured}; ± 95%: one value is within this of the exact one with 95% probability",
        class_="noise",
    )
    said: list[Any] = []
    if about.lower:
        least = f"no Laplace noise with one scale below {number(about.lower)} gives this guarantee"
        said += [tag("p", f"At ε = {at_most(about.epsilon)} {least}, whatever the mechanism.")]
    refused = [row for row in about.rows if row.reason is not None]
    if refused:
        reasons = tag("ul", *(tag("li", tag("strong", row.title), f": {row.reason}") for row in refused))
        said += [fold("Mechanisms that do not apply, or were not asked, and why", reasons)]
    if own is None:
        return join(shown, *said), None
    chart, frame = _chart(about, own)
    data = {
        "id": name,
        "epsilons": about.epsilons,
        "steps": _STEPS,
        "division": about.division,
        "whole": about.whole,
        "own": own,
        "curves": [
            {"scale": _times(c.scales, about.scale_factor), "error": _times(c.errors, about.error_factor)}
            for c in about.curves
        ],
        **frame,
    }
    return tag("div", _slider(about, own, name), chart, shown, *said, id=name), data


def _head(title: str, measure: str) -> Html:
    """Return the heading of a column of numbers, with what they are numbers of."""
    return join(title, tag("small", measure) if measure else None)


def _row(about: Noise, row: ComparisonRow, place: int | None) -> Html:
    own = (row.mechanism, row.noise) == (about.mechanism, about.noise)
    note = about.own_word if own else "" if row.composes else "for one query only"
    name = f"{row.title}{', best shape' if row.noise == 'best' else ''}"
    scale, error = (row.scale or 0.0) * about.scale_factor, (row.accuracy or 0.0) * about.error_factor
    return tag(
        "tr",
        tag("th", name, tag("small", note) if note else None, scope="row"),
        tag("td", number(scale), class_="n scale"),
        tag("td", about.written(error, scale), class_="n error"),
        class_="own" if own else None,
        data_curve=place,
    )


def _slider(about: Noise, own: int, name: str) -> Html:
    middle = list(about.epsilons).index(about.epsilon)
    error = (about.curves[own].errors[middle] or 0.0) * about.error_factor
    scale = (about.curves[own].scales[middle] or 0.0) * about.scale_factor
    told = f"ε = {at_most(about.epsilon)}: {error_in_words(about.written(error, scale))}"
    control = tag(
        "input",
        type="range",
        id=f"{name}-slider",
        min=0,
        max=_STEPS * (len(about.epsilons) - 1),
        step=1,
        value=_STEPS * middle,
        aria_describedby=f"{name}-told",
        autocomplete="off",
        disabled=True,
    )
    ends = tag(
        "div",
        tag("span", f"ε = {at_most(about.epsilons[0])}: more private"),
        tag("span", f"ε = {at_most(about.epsilons[-1])}: more exact"),
        class_="ends",
    )
    back = tag("button", f"Back to ε = {at_most(about.epsilon)}", type="button")
    return tag(
        "div",
        tag("label", "What if ε were another? Move it (arrow keys work too):", for_=f"{name}-slider"),
        control,
        ends,
        tag("output", told, for_=f"{name}-slider", id=f"{name}-told", aria_live="polite"),
        tag("div", back),
        class_="slider",
    )


def error_in_words(error: str) -> str:
    """Say what an error of the noise means, as page.js does.

    Examples
    --------
    >>> error_in_words("0")
    'the noise is 0 with at least 95% probability: each value would then be published exactly'
    """
    if error == "0":
        return "the noise is 0 with at least 95% probability: each value would then be published exactly"
    return f"each value is within {error} of the exact one with 95% probability"


def _chart(about: Noise, own: int) -> tuple[Html, dict[str, float]]:
    """Return the errors against ε, both on logarithmic scales, and where the script finds its way in the picture."""
    errors = [_times(curve.errors, about.error_factor) for curve in about.curves]
    known = [error for each in errors for error in each if error]
    if not known or max(known) <= min(known):
        return Html(""), {}
    least, most = _decade(min(known), math.floor), _decade(max(known), math.ceil)
    last = len(about.epsilons) - 1

    def at(i: int, error: float) -> tuple[float, float]:
        share = math.log(error / least) / math.log(most / least)
        return _LEFT + (_RIGHT - _LEFT) * i / last, _BOTTOM - (_BOTTOM - _TOP) * share

    lines: list[Html] = []
    ends: dict[int, tuple[float, float]] = {}
    for place in sorted(range(len(errors)), key=lambda i: i == own):
        points = [at(i, error) for i, error in enumerate(errors[place]) if error]
        d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        title = tag("title", about.curves[place].title)
        if len(points) > 1:
            lines.append(tag("path", title, d=d, **_line(place, own)))
            ends[place] = points[-1]
    decades = round(math.log10(most / least))
    every = -(-decades // 6)
    ticks: list[Html] = []
    for power in range(0, decades + 1, every):
        y = at(0, least * 10**power)[1]
        ticks += [
            tag("path", d=f"M{_LEFT} {y:.1f}H{_RIGHT}", class_="grid"),
            tag("text", _tick(least * 10**power), x=_LEFT - 6, y=f"{y + 4:.1f}", text_anchor="end"),
        ]
    for i in sorted({0, list(about.epsilons).index(about.epsilon), last}):
        x = at(i, least)[0]
        ticks += [tag("text", f"ε = {at_most(about.epsilons[i])}", x=f"{x:.1f}", y=_BOTTOM + 18, text_anchor="middle")]
    ticks[-1] = Html(ticks[-1].replace('"middle"', '"end"'))
    middle = list(about.epsilons).index(about.epsilon)
    x, y = at(middle, errors[own][middle] or most)
    marks = [
        tag("path", d=f"M{x:.1f} {_TOP}V{_BOTTOM}", class_="at"),
        tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=5, class_="dot"),
    ]
    label = (
        f"The error that one value exceeds with 5% probability, from ε = {at_most(about.epsilons[0])} to "
        f"{number(about.epsilons[-1])}: it falls as ε grows. The table below has the numbers."
    )
    names = _names(about, ends, own)
    drawn = tag(
        "svg",
        ticks,
        lines,
        names,
        marks,
        viewBox=f"0 0 {_WIDE} {_HIGH - 16}",
        class_="chart",
        role="img",
        aria_label=label,
    )
    words = (
        f"± 95% against ε, both on logarithmic scales. Thick: {about.curves[own].title}; dashed: the other mechanisms "
        "of the table, named where their lines end."
    )
    if any(">= " in name for name in names):
        words += " A name with = before it is of a line that ends at the same point as the one above."
    if any(error == 0 for each in errors for error in each):
        words += " A line ends where the noise is 0 with 95% probability: exact values would be published there."
    frame = {"left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _BOTTOM, "least": least, "most": most}
    box = tag("div", drawn, class_="scroll", role="region", aria_label="Chart: ± 95% against ε", tabindex=0)
    return tag("figure", box, tag("figcaption", words)), frame


def _names(about: Noise, ends: dict[int, tuple[float, float]], own: int) -> list[Html]:
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
    lowest = [_BOTTOM - _NAME * i for i in reversed(range(len(order)))]  # the last is no lower than the axis
    wanted = [[(min(middle[p] + offsets[p], low), 1.0)] for p, low in zip(order, lowest, strict=True)]
    heights = dict(zip(order, nearest(wanted, [_NAME * i for i in range(len(order))]), strict=True))
    found: list[Html] = []
    for block in blocks:
        x, y = ends[block[0]]
        centre = (heights[block[0]] + heights[block[-1]]) / 2
        found.append(tag("path", d=f"M{x + 2:.1f} {y:.1f}L{_RIGHT + 14} {centre:.1f}", class_="leader"))
        if len(block) > 1:
            found.append(
                tag(
                    "path",
                    d=f"M{_RIGHT + 14} {heights[block[0]] - 6:.1f}V{heights[block[-1]] + 6:.1f}",
                    class_="leader",
                )
            )
        for place in block:
            height = heights[place]
            found += [
                tag("path", d=f"M{_RIGHT + 18} {height:.1f}h28", **_line(place, own)),
                tag(
                    "text",
                    f"{'' if place == block[0] else '= '}{about.curves[place].title}",
                    x=_RIGHT + 51,
                    y=f"{height + 5:.1f}",
                    class_="name own" if place == own else "name",
                ),
            ]
    return found


def _line(place: int, own: int) -> dict[str, Any]:
    """Return how the line of a mechanism looks."""
    if place == own:
        return {"class_": "line own"}
    other = place - (place > own)
    return {"class_": f"line of-{other % 4}", "stroke_dasharray": _DASHES[other % len(_DASHES)]}


def _tick(value: float) -> str:
    """Write a power of ten in the room that is left of the axis.

    Examples
    --------
    >>> _tick(0.001), _tick(10000.0), _tick(1e6), _tick(1e-12)
    ('0.001', '10,000', '10⁶', '10⁻¹²')
    """
    power = round(math.log10(value))
    return number(value, 2) if -4 < power < 5 else f"10{str(power).translate(_RAISED)}"


def _decade(value: float, rounding: Any) -> float:
    return 10.0 ** rounding(math.log10(value))


def _times(values: Sequence[float | None], factor: float) -> list[float | None]:
    return [None if value is None else value * factor for value in values]
