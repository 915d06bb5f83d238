"""Figures of matplotlib: how charts are drawn, how figures are made, and how they are written."""

import io
import itertools
import os
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pufferfish._base.reading import check_path, display_path
from pufferfish._base.words import number
from pufferfish._base.writing import Kind, write_whole
from pufferfish._draw.chart import Bars, Chart, Heat, Line, Lines, Picture
from pufferfish._draw.svg import BLUE, INK, LINES, PALE, clean, log_ticks, name_ticks, shortened, titled, width_of
from pufferfish.errors import ParameterError, RecordError

__all__ = [
    "PICTURE",
    "PICTURE_KINDS",
    "draw_lines",
    "figure_of",
    "new_figure",
    "picture_of",
    "require_matplotlib",
    "save_figure",
]

PICTURE_KINDS = (".png", ".svg", ".pdf")

_SIGNS = (b"\x89PNG\r\n\x1a\n", b"<?xml", b"%PDF-")
_MARK = "pufferfish-picture"
_MARKED = {".png": "Software", ".svg": "Creator", ".pdf": "Creator"}


def _is_picture(content: bytes) -> bool:
    return content.startswith(_SIGNS) and _MARK.encode() in content


PICTURE = Kind("picture", _is_picture, "name another file", PICTURE_KINDS)
"""Pictures say in their metadata who drew them: only those are drawn over."""


def require_matplotlib() -> None:
    """Raise ParameterError where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ParameterError("plots need matplotlib: pip install 'pufferfish-privacy[plot]'") from None


def new_figure(wide: float, high: float, layout: str | None = "constrained") -> Any:
    """Return an empty figure of so many inches, which notebooks show by themselves.

    It belongs to no window and to no list of open figures: nothing has to be closed.
    """
    require_matplotlib()
    return _picture_class()(figsize=(wide, high), layout=layout)


@cache
def _picture_class() -> Any:
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows where it is the last line of a cell, without a magic command."""

        def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
            title = " ".join(self.get_suptitle().split())
            return _drawn(self, ".png", dpi=100), {"alt": f"Picture. {title}".strip()}

    return Picture


def save_figure(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure as PNG, SVG or PDF; of what is there already only pictures of this program are replaced.

    Raises
    ------
    RecordError
        If the file cannot be written, or is something else.
    """
    write_whole(path, picture_of(figure, path), PICTURE, overwrite=True)


def picture_of(figure: Any, path: str | os.PathLike[str]) -> bytes:
    """Return a figure as the content of a file with this name: PNG, SVG or PDF.

    Raises
    ------
    RecordError
        If the name ends otherwise.
    """
    check_path(path)
    kind = Path(path).suffix.lower()
    if kind not in PICTURE_KINDS:
        raise RecordError(f"cannot draw {display_path(path)}: expected a name that ends in {', '.join(PICTURE_KINDS)}")
    return _drawn(figure, kind, dpi=150)


def _drawn(figure: Any, kind: str, dpi: int) -> bytes:
    picture = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box is drawn; the JSON has the name
        figure.savefig(picture, dpi=dpi, format=kind[1:], metadata={_MARKED[kind]: _MARK})
    return picture.getvalue()


# -- Charts as figures -----------------------------------------------------------------------------------------------

_MOST_WRITTEN, _MOST_ROWS, _MOST_ON_A_LINE = 12, 40, 4
"""Columns up to which cells hold numbers, rows that are drawn, and columns up to which a cell's ends are on a line."""

_MOST_POINTS = 100
"""Points of each bar up to which they are drawn."""

_LETTERS, _FEW, _LONGEST, _BAR = 13, 12, 40, 1.5
"""Letters in an inch, those of rows' names for which there is room anyway, of a name at most; inches of the colours."""

_PANEL, _ALONE, _HIGH = 4.8, 6.2, 3.8
"""Width of bars or lines beside other charts, and of lines alone; least height of a figure."""


def figure_of(picture: Picture, source: str) -> Any:
    """Return a picture as a figure; ``source`` says where it is from, below all else that is said."""
    wide = [_wide(chart) for chart in picture.charts]
    high = max(_heat_high(chart) if isinstance(chart, Heat) else _HIGH for chart in picture.charts)
    figure = new_figure(_ALONE if len(wide) == 1 and wide[0] == _PANEL else sum(wide), high)
    panels = figure.subplots(1, len(wide), width_ratios=wide, squeeze=False)[0]
    for axes, chart in zip(panels, picture.charts, strict=True):
        match chart:
            case Heat():
                _draw_heat(figure, axes, chart)
            case Bars():
                _draw_bars(axes, chart)
            case Lines():
                draw_lines(axes, chart)
    rows = max((len(chart.rows) for chart in picture.charts if isinstance(chart, Heat)), default=0)
    left = f"; the first {_MOST_ROWS} of {rows:,} rows are drawn" if rows > _MOST_ROWS else ""
    titled(figure, picture.title, *picture.notes, f"{source}{left}")
    return figure


def _wide(chart: Chart) -> float:
    if not isinstance(chart, Heat):
        return _PANEL
    return min(10.0, max(4.2, 0.55 * len(chart.columns) + 2.4)) + _names_wide(chart)


def _names_wide(heat: Heat) -> float:
    """Return how many inches the names of rows need beyond those that there are for short ones."""
    longest = max(width_of(shortened(name, _LONGEST)) for name in heat.rows[:_MOST_ROWS])
    return max(0, longest - _FEW) / _LETTERS


def _heat_high(chart: Heat) -> float:
    rows = min(len(chart.rows), _MOST_ROWS)
    return min(10.0, max(_HIGH, (0.42 if rows <= 16 else 0.2) * rows + 1.8))


def _draw_heat(figure: Any, axes: Any, heat: Heat) -> None:
    """Draw probabilities as colours by their square roots, so that rare transitions are seen beside staying.

    Between two ends the colour is that of the larger one, so that white is impossible, and cells name both.
    """
    from matplotlib.colors import PowerNorm

    norm = PowerNorm(0.5, 0.0, 1.0)
    low, high, rows = heat.low[:_MOST_ROWS], heat.high[:_MOST_ROWS], heat.rows[:_MOST_ROWS]
    image = axes.imshow(np.ma.masked_equal(high, 0.0), cmap="Blues", norm=norm, aspect="auto")
    name_ticks(axes, [shortened(name) for name in heat.columns], _wide(heat) - _names_wide(heat) - _BAR)
    axes.set_yticks(range(len(rows)), [shortened(name, _LONGEST) for name in rows], parse_math=False)
    axes.set_ylabel(heat.axes[0])
    axes.set_xlabel(heat.axes[1])
    apart = bool(np.any(high > low))
    if len(heat.columns) <= _MOST_WRITTEN:
        crowded = len(heat.columns) > _MOST_ON_A_LINE
        for (x, y), most in np.ndenumerate(high):
            text = _probabilities(float(low[x, y]), float(most), "\n– " if crowded else " – ")
            dark = float(norm(most)) > 0.6
            size = 7 if apart and crowded else 8
            axes.text(y, x, text, ha="center", va="center", fontsize=size, color="white" if dark else INK)
    figure.colorbar(image, ax=axes, shrink=0.8, ticks=[0, 0.01, 0.1, 0.25, 0.5, 1]).set_label(
        "largest probability\n(white: impossible)" if apart else "probability (white: impossible)"
    )


def _probabilities(low: float, high: float, dash: str = " – ") -> str:
    """Return one probability in two digits, or a range of them in three.

    Examples
    --------
    >>> _probabilities(0.25, 0.25), _probabilities(0.2512, 0.3), _probabilities(0.0, 4e-4), _probabilities(0.99949, 1.0)
    ('0.25', '0.251 – 0.300', '0 – 0.0004', '0.999 – 1')
    """
    if low == high:
        return _probability(low, 2)
    return f"{_probability(low, 3)}{dash}{_probability(high, 3)}"


def _probability(value: float, digits: int) -> str:
    if value in (0.0, 1.0):
        return f"{value:.0f}" if value == 0 or digits > 2 else f"{value:.{digits}f}"
    return f"{value:.{digits}f}" if value >= 10.0**-digits else f"{value:.1g}"


def _draw_bars(axes: Any, bars: Bars) -> None:
    """Draw bars that lie: one number from 0; between two ends from the one to the other, with points where given."""
    low, high, few = bars.low, bars.high, len(bars.names) <= _MOST_ROWS
    right = (1.25 if np.isfinite(high).all() else 2.5) * max([1.0, *low[np.isfinite(low)], *high[np.isfinite(high)]])
    apart = bool(np.any(high > low))
    for y, (least, most) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        start = least if apart else 0.0
        if np.isfinite(least):
            axes.barh([y], [min(most, right) - start], left=start, color=PALE, edgecolor=BLUE, linewidth=0.8)
        if few:
            x = next((end for end in (most, least) if np.isfinite(end)), 0.0)
            axes.annotate(_ends(least, most), (x, y), (3, 0), textcoords="offset points", va="center", fontsize=8)
    points = bars.points if bars.points is not None and apart and len(bars.points) <= _MOST_POINTS else ()
    for values in points:
        known = np.flatnonzero(np.isfinite(values))
        axes.plot(values[known], known, color=INK, marker="o", markersize=2.5, linestyle="")
    if few:
        axes.set_yticks(range(len(bars.names)), [shortened(name) for name in bars.names], parse_math=False)
    axes.set_ylim(len(bars.names) - 0.4, -0.6)
    axes.set_xlim(0, right)
    spread = f":\nleast to most in Θ{f'; a point for each {bars.point}' if len(points) else ''}" if apart else ""
    axes.set_xlabel(f"{bars.label}{spread}")
    clean(axes)


def _ends(least: float, most: float) -> str:
    """Return a number, or from which to which one it goes; without an end it is for always.

    Examples
    --------
    >>> _ends(6.571, 6.571), _ends(6.571, 7.2), _ends(1234.5, np.inf), _ends(np.inf, np.inf)
    ('6.57', '6.57 – 7.2', '1,230 or more, or always', 'always')
    """
    if not np.isfinite(least):
        return "always"
    if not np.isfinite(most):
        return f"{number(least, 3)} or more, or always"
    return number(least, 3) if least == most else f"{number(least, 3)} – {number(most, 3)}"


def draw_lines(axes: Any, lines: Lines) -> None:
    """Draw lines, bands, steps and points; they are named where they end, or in a legend."""
    drawn = lines.lines
    if lines.places and len(drawn) > len(LINES):  # those that are largest in the mean, in their order
        largest = sorted(range(len(drawn)), key=lambda i: -float((drawn[i].low + drawn[i].high).mean()))
        drawn = [drawn[i] for i in sorted(largest[: len(LINES)])]
    for line, standard in zip(drawn, itertools.cycle(LINES), strict=False):
        _draw_line(axes, line, standard, named=not lines.places)
    if lines.log:
        axes.set_xscale("log")
        axes.set_yscale("log")
    for line in drawn:
        if line.below:
            axes.autoscale(False)
            grey = {"color": "0.92", "linewidth": 0, "zorder": 0}
            axes.fill_between(line.x, line.low, axes.get_ylim()[0], label=line.below, **grey)
    if lines.ticks is not None:
        axes.set_xticks(*lines.ticks)
    axes.set_xlabel(lines.label)
    axes.set_ylabel(lines.value_label)
    if lines.log:
        ticks = log_ticks(*axes.get_ylim()) if drawn else []
        axes.set_yticks(ticks, [f"{tick:,.6g}" for tick in ticks])
        axes.minorticks_off()
        axes.grid(which="major", color="0.92", linewidth=0.6)
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5), labelspacing=0.8)
    elif lines.places:
        axes.margins(x=0.12)
    else:
        axes.set_ylim(0, 1.08)
        axes.set_xlim(0, max(float(line.x.max()) for line in drawn))
        axes.legend(frameon=False, fontsize=8, loc="lower right")
    clean(axes)


def _draw_line(axes: Any, line: Line, standard: tuple[str, str], *, named: bool) -> None:
    colour, marker = line.mark or standard
    look: dict[str, Any] = {"color": colour} | ({"label": line.name} if named else {})
    if np.any(line.high > line.low):
        axes.fill_between(line.x, line.low, line.high, alpha=0.35, linewidth=0.8, **look)
    elif line.look == "steps":
        axes.step(line.x, line.low, where="post", linewidth=1.2, **look)
    elif line.look == "points":
        axes.plot(line.x, line.low, marker=marker, linestyle="", zorder=3, **look)
        for x, value in zip(line.x, line.low, strict=True):
            axes.annotate(f"{value:.3g}", (x, value), (5, -11), textcoords="offset points", fontsize=8)
    elif line.look == "dashes":
        axes.plot(line.x, line.low, linestyle=(0, (4, 2)), linewidth=1.0, **look)
    else:
        width, size = (4.5, 9.0) if line.wide else (1.4, 4.0)
        axes.plot(line.x, line.low, marker=marker, markersize=size, linewidth=width, **look)
    if not named:
        end = (line.x[-1], (line.low[-1] + line.high[-1]) / 2)
        near = {"textcoords": "offset points", "color": colour, "fontsize": 8, "parse_math": False}
        axes.annotate(shortened(line.name, 14), end, (6, -3), **near)
