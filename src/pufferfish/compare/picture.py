"""The noise of every mechanism against ε, as a figure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferfish._draw.chart import Line, Lines
from pufferfish._draw.figure import draw_lines, new_figure
from pufferfish._draw.svg import INK, MARKS, mark_of, titled
from pufferfish.compare.rows import ComparisonRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_noise"]

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
        under = next((other for other in drawn if _same(curves[other], curve)), None)
        same = "" if under is None else f", the same as\n{titles[under]} within 1%"
        hidden = any(_same(curve, curves[other]) for other in curves if other not in (*drawn, name))
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
    at, scales = np.array(curve).T
    return Line(name=name, x=at, low=scales, high=scales, **look)


def _same(one: Sequence[tuple[float, float]], other: Sequence[tuple[float, float]]) -> bool:
    """Return whether two curves lie on each other: noise at the same ε, within a hundredth of each other."""
    return [e for e, _ in one] == [e for e, _ in other] and all(
        abs(a - b) <= _AS_ONE * b for (_, a), (_, b) in zip(one, other, strict=True)
    )
