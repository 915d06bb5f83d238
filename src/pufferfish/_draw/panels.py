"""Lines with bands over public groups, as SVG: one picture on wide screens, a small one for each line on a phone.

No script is needed, and colours come from the style sheet of the page. The numbers stand in a table beside it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pufferfish._base.view import Html, join, tag

__all__ = ["MOST_LINES", "Band", "band_charts", "small_multiples"]

MOST_LINES = 5
"""Lines up to which one picture shows them together."""

_WIDE, _NARROW, _SMALL = (1104, 206), (364, 170), (224, 126)
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 4, 8, 24
_FEW = 3
_LETTER = 7.5
_MOST_DOTS = 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """One line: its name, a value at each place (NaN where there is none), the ends of its band, and which are weak."""

    name: str
    values: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    weak: Sequence[bool]


def band_charts(lines: Sequence[Band], places: Sequence[str], write: Callable[[float], str], label: str) -> Html:
    """Return a chart of lines over named places for wide screens, and for narrow ones a chart of each."""
    ends = _ends(lines)
    wide = _svg(lines, places, write, ends, _WIDE, label, "bands on-wide")
    names = [tag("h4", line.name, class_="on-narrow") if len(lines) > 1 else None for line in lines]
    narrow = [
        join(name, _svg([line], places, write, ends, _NARROW, f"{label}: {line.name}", "bands on-narrow", i))
        for i, (line, name) in enumerate(zip(lines, names, strict=True))
    ]
    return tag("figure", _legend(lines), wide, narrow)


def small_multiples(
    panels: Sequence[tuple[str, Sequence[Band]]], places: Sequence[str], write: Callable[[float], str], label: str
) -> Html:
    """Return a chart for each panel, beside each other as far as there is room, each with a scale of its own."""
    few = len(panels) <= _FEW
    size = _NARROW if few else _SMALL
    shown = [
        tag("div", tag("h4", name), _svg(lines, places, write, _ends(lines), size, f"{label}: {name}", "bands"))
        for name, lines in panels
    ]
    return tag("figure", _legend(panels[0][1]), tag("div", shown, class_="panels few" if few else "panels"))


def _legend(lines: Sequence[Band]) -> Html | None:
    """Return the names of lines beside a piece of each, where there are several."""
    if len(lines) < 2:
        return None
    pieces = [
        tag(
            "li",
            tag("svg", tag("path", d="M0 5h28", class_=f"line b{i}"), viewBox="0 0 28 10", aria_hidden="true"),
            line.name,
        )
        for i, line in enumerate(lines)
    ]
    return tag("ul", pieces, class_="lines")


def _ends(lines: Sequence[Band]) -> tuple[float, float, float]:
    """Return the ends of the scale of values, and the step of its ticks: all bands are on it, and a near 0."""
    low = min(x for line in lines for x in line.low if not math.isnan(x))
    high = max(x for line in lines for x in line.high if not math.isnan(x))
    if 0 < low < high - low:
        low = 0.0
    reach = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(reach / 4))
    step = next(power * times for times in (1, 2, 5, 10) if reach <= 4.5 * power * times)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step


def _svg(
    lines: Sequence[Band],
    places: Sequence[str],
    write: Callable[[float], str],
    ends: tuple[float, float, float],
    size: tuple[int, int],
    label: str,
    class_: str,
    first: int = 0,
) -> Html:
    """Return the chart in one size; ``first`` is the colour of the first line."""
    (wide, high), (low, most, step) = size, ends
    reach = (most - low) or 1.0

    def x(i: float) -> float:
        return _LEFT + (wide - _LEFT - _RIGHT) * ((i + 0.5) / len(places))

    def y(value: float) -> float:
        return high - _BOTTOM - (high - _TOP - _BOTTOM) * (value - low) / reach

    marks: list[Html] = []
    for i in range(round(reach / step) + 1):
        at = y(low + i * step)
        name = write(round(low + i * step, 12))
        marks.append(
            tag("path", d=f"M{_LEFT} {at:.1f}H{wide - _RIGHT}", class_="zero" if low + i * step == 0 else "grid")
        )
        marks.append(tag("text", name, x=_LEFT - 5, y=f"{at + 4:.1f}", text_anchor="end"))
    longest = max(map(len, places))
    every = math.ceil(len(places) * (longest * _LETTER + 8) / (wide - _LEFT - _RIGHT))
    for i in range(0, len(places), every):
        half = longest * _LETTER / 2
        middle = min(max(x(i), half), wide - half)
        marks.append(tag("text", places[i], x=f"{middle:.1f}", y=high - 6, text_anchor="middle"))
    for i, line in enumerate(lines, first):
        for run in _runs(line.values):
            upper = [f"{x(j):.1f} {y(line.high[j]):.1f}" for j in run]
            lower = [f"{x(j):.1f} {y(line.low[j]):.1f}" for j in reversed(run)]
            if len(run) == 1:
                upper, lower = (
                    [f"{x(run[0]) + dx:.1f} {y(end[run[0]]):.1f}" for dx in (-2, 2)] for end in (line.high, line.low)
                )
                lower.reverse()
            marks.append(tag("path", d=f"M{'L'.join([*upper, *lower])}z", class_=f"band b{i}"))
    for i, line in enumerate(lines, first):
        for run in _runs(line.values):
            path = "L".join(f"{x(j):.1f} {y(line.values[j]):.1f}" for j in run)
            marks.append(tag("path", d=f"M{path}", class_=f"line b{i}"))
            marks += [
                tag(
                    "circle",
                    cx=f"{x(j):.1f}",
                    cy=f"{y(line.values[j]):.1f}",
                    r=3,
                    class_=f"b{i} {'weak' if line.weak[j] else 'dot'}",
                )
                for j in run
                if len(places) <= _MOST_DOTS or len(run) == 1
            ]
    return tag("svg", marks, viewBox=f"0 0 {wide} {high}", class_=class_, role="img", aria_label=label)


def _runs(values: Sequence[float]) -> list[list[int]]:
    """Return the places of values that stand next to each other."""
    runs: list[list[int]] = [[]]
    for i, value in enumerate(values):
        if math.isnan(value):
            runs.append([])
        else:
            runs[-1].append(i)
    return [run for run in runs if run]
