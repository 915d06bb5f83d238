"""Figures of matplotlib: their labels, colours and axes, how charts are drawn, and how figures are written.

What all pictures share: titles that name the content, shares in percent, error bars or a sentence about them. The same
mechanism looks the same in every picture, and all eyes can tell them apart: colours are Okabe and Ito's, and as shapes
differ too, nothing rests on colour alone.
"""

import io
import itertools
import math
import os
import re
import textwrap
import unicodedata
import warnings
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.reading import check_path, display_path
from pufferfish._base.words import WEAK, number
from pufferfish._base.writing import Kind, write_whole
from pufferfish._draw.chart import Bars, Chart, Heat, Line, Lines, Picture
from pufferfish.errors import ParameterError, RecordError, printable

# -- Figures, and how they are written -------------------------------------------------------------------------------

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
    """Write a figure as PNG, SVG or PDF; of what is there already only pictures of this program are replaced."""
    write_whole(path, picture_of(figure, path), PICTURE, overwrite=True)


def picture_of(figure: Any, path: str | os.PathLike[str]) -> bytes:
    """Return a figure as the content of a file with this name; refuse other names than those of the three kinds."""
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


# -- Labels of pictures: how wide they are ---------------------------------------------------------------------------

_LONGEST_LABEL = 24


def shortened(text: str, longest: int = _LONGEST_LABEL) -> str:
    """Cut a label to one that fits and prints, with the middle of a long one left out: ends tell labels apart.

    Chinese, Japanese and Korean letters are as wide as two others.
    """
    plain = printable(text)
    if width_of(plain) <= longest:
        return plain
    half = longest // 2
    return f"{_beginning(plain, half)}…{_beginning(plain[::-1], half - 1)[::-1]}"


def width_of(text: str) -> int:
    """Return how wide a text is, in letters.

    Examples
    --------
    >>> width_of("walk"), width_of("歩く")
    (4, 4)
    """
    return sum(map(_columns, text))


def _beginning(text: str, columns: int) -> str:
    return "".join(c for c, end in zip(text, accumulate(map(_columns, text)), strict=True) if end <= columns)


def _columns(letter: str) -> int:
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


# -- Colours and marks: the same mechanism looks the same in every picture -------------------------------------------

BLUE, INK, PALE, ORANGE = "#0072B2", "#1a1a1a", "#9ecae1", "#D55E00"

LINES = (
    (BLUE, "o"),
    (ORANGE, "s"),
    ("#009E73", "D"),
    ("#CC79A7", "v"),
    ("#E69F00", "^"),
    ("#56B4E9", "X"),
    (INK, "P"),
    ("#8c8c8c", "d"),
)
"""Colours and markers of lines in one panel, in this order."""

MARKS = {
    "entry-dp": ("#1a1a1a", "+"),
    "participant-dp": ("#1a1a1a", "P"),
    "group-dp": ("#8c8c8c", "X"),
    "gk16": ("#D55E00", "s"),
    "mqm-approx": ("#E69F00", "^"),
    "mqm-exact": ("#009E73", "D"),
    "markov-quilt": ("#1a1a1a", "d"),
    "propagation": (BLUE, "o"),
    "wasserstein": ("#CC79A7", "v"),
    "exact-laplace": ("#56B4E9", "*"),
    "bayesian-dp": ("#6A3D9A", "<"),
    "temporal": ("#8B4513", ">"),
}
"""Colour and marker of every mechanism, and of bounds of other papers, by name."""


def mark_of(mechanism: str) -> tuple[str, str]:
    """Return the colour and marker of a mechanism by its name; those that have none of their own share one."""
    return MARKS.get(mechanism, (ORANGE, "h"))


_MOST_LINES = 5
"""Lines of one sentence above a picture: what is longer ends after a word, with an ellipsis."""

_LINE, _LINES_WITH_ROOM = 0.17, 3
"""Inches that each line above a picture takes, and for how many of them figures have room as they are made."""

_MOST_LABELS = 26
_MOST_LOG_TICKS = 7
_MOST_LABEL_LINES = 3
_MOST_LYING = 40
_LONG = 9
"""Letters from which a name takes too much room below a bar where it is turned."""

_LONGEST_ROW = 48
"""Letters of a name beside a bar that lies."""

_MARGINS = 0.7
"""Inches of a panel that its axis does not take."""

_MOST_NUMBERED = 14
"""Bars up to which their numbers stand above them."""

_LETTERS = 13
"""Letters of a title that fit an inch."""

Array = NDArray[np.float64]


def in_percent(value: float, error: float) -> str:
    """Return a share in percent, to three digits of its error: more would be noise.

    Examples
    --------
    >>> in_percent(0.44872, 0.0038), in_percent(0.5, 0.7)
    ('44.9%', '50%')
    """
    digits = 0 if error >= 0.1 else 1 if error >= 0.0005 else 3
    return f"{100 * value:.{digits}f}%"


def titled(figure: Any, *lines: str) -> None:
    """Write what the picture shows above it, then how it was made; the picture grows where that takes many lines."""
    wide, high = figure.get_size_inches()
    first, *others = map(printable, lines)
    title_lines = [
        part for line in (first[:1].upper() + first[1:], *others) for part in _in_lines(line, int(_LETTERS * wide))
    ]
    figure.set_size_inches(wide, high + _LINE * max(0, len(title_lines) - _LINES_WITH_ROOM))
    figure.suptitle("\n".join(title_lines), fontsize=10, x=0.01, ha="left", parse_math=False)


def _in_lines(text: str, most: int) -> list[str]:
    """Break a text between words into lines of so many letters, all about as long: no word stands alone at the end.

    It ends after a word where it is too long.

    Examples
    --------
    >>> _in_lines("survey-2019.csv, column activity", 20), _in_lines("word " * 99, 9)[-1]
    (['survey-2019.csv,', 'column activity'], 'word …')
    >>> _in_lines("noisy value ± 29 with 95% probability each", 40)
    ['noisy value ± 29 with', '95% probability each']
    """
    wrapped = textwrap.wrap(text, most, max_lines=_MOST_LINES, placeholder=" …", break_on_hyphens=False)
    if len(wrapped) < 2 or wrapped[-1].endswith(" …"):
        return wrapped
    longest = min(most, max(map(len, text.split())))
    for narrower in range(max(longest, -(-len(text) // len(wrapped))), most):
        lines = textwrap.wrap(text, narrower, break_on_hyphens=False)
        if len(lines) == len(wrapped):
            return lines
    return wrapped


def percent(share: float, _: object = None) -> str:
    """Return a share as text of a scale, as matplotlib asks for it.

    Examples
    --------
    >>> percent(0.1 + 0.2), percent(-0.025)
    ('30%', '-2.5%')
    """
    return f"{100 * share:.6g}%"


def clean(axes: Any, share: bool = False, *, lying: bool = False) -> None:
    """Take away lines that say nothing, write shares in percent (below bars that lie), other numbers with commas."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if share:
        values = axes.xaxis if lying else axes.yaxis
        values.set_major_formatter(percent)
        values.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], min_n_ticks=4))
    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(axis.get_major_formatter(), ScalarFormatter) and np.abs(axis.get_view_interval()).max() >= 1000:
            axis.set_major_formatter("{x:,.10g}")


def log_ticks(low: float, high: float) -> list[float]:
    """Return about six round numbers between two positive ones, for a scale of logarithms.

    Examples
    --------
    >>> log_ticks(6, 61), log_ticks(1, 9), log_ticks(0.5, 2e3), log_ticks(61, 64), log_ticks(2.1, 4.2)
    ([10.0, 20.0, 50.0], [1.0, 2.0, 5.0], [1.0, 10.0, 100.0, 1000.0], [61.0, 62.0, 63.0, 64.0], [2.5, 3.0, 3.5, 4.0])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for digits in ((1,), (1, 2, 5), tuple(range(1, 10))):
        ticks = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
        inside = [value for value in ticks if low <= value <= high]
        if len(inside) >= 3:
            return inside[:: -(-len(inside) // _MOST_LOG_TICKS)]
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9 * high)))
    room = (high - low) / step
    step /= 1 if room >= 3 else 2 if room >= 2 else 5
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def name_ticks(axes: Any, labels: Sequence[str], wide: float, *, most: int = _MOST_LABELS) -> None:
    """Write the names of places along the horizontal axis: in lines or turned where long, some where they are many."""
    every = -(-len(labels) // most)
    shown = labels[::every]
    lines = [in_short_lines(label, _room(wide, len(shown))) for label in shown]
    crowded = any(line is None for line in lines)
    shown = shown if crowded else ["\n".join(line or []) for line in lines]
    axes.set_xticks(
        range(0, len(labels), every),
        shown,
        parse_math=False,
        rotation=60 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor" if crowded else "default",
    )


def _room(wide: float, names: int) -> int:
    """Return how many letters each of some names has below a picture."""
    return int(_LETTERS * max(wide - _MARGINS, 1.0) / max(names, 1)) - 1


def in_short_lines(label: str, room: int) -> list[str] | None:
    """Break a label at its spaces and signs into at most three lines of so many letters; None where it does not fit.

    Examples
    --------
    >>> in_short_lines("intensive_care=yes", 10), in_short_lines("walk", 4), in_short_lines("walking", 4)
    (['intensive_', 'care=yes'], ['walk'], None)
    """
    lines = [""]
    for part in re.findall(r"[^\s=_,;/-]*[\s=_,;/-]*", label):
        if lines[-1] and width_of((lines[-1] + part).rstrip()) > room:
            lines.append("")
        lines[-1] += part
    stripped = [line.rstrip() for line in lines]
    return stripped if len(stripped) <= _MOST_LABEL_LINES and max(map(width_of, stripped)) <= room else None


def lie_better(labels: Sequence[str], wide: float) -> bool:
    """Return whether bars should lie, because the names below standing ones would have to be turned and are long.

    Examples
    --------
    >>> lie_better(["rest", "walk"], 5.0), lie_better([f"intensive_care={i}" for i in range(12)], 5.0)
    (False, True)
    """
    turned = any(in_short_lines(label, _room(wide, len(labels))) is None for label in labels)
    return turned and len(labels) <= _MOST_LYING and max(map(width_of, labels)) >= _LONG


def bars_with_errors(
    axes: Any,
    names: Sequence[str],
    values: Array,
    noisy: Array,
    errors: Array,
    *,
    wide: float,
    share: bool,
    seen: bool,
    lying: bool,
    most: int = _MOST_LABELS,
) -> None:
    """Draw named bars, with error bars where they can be seen, and the values in numbers where they are few.

    A bar that is no longer than its own error is hollow, and its number has the sign of such a value.
    """
    positions, weak = np.arange(len(values)), np.abs(values) <= errors
    low, high = noisy - errors, noisy + errors
    width = 0.8 if len(positions) > 1 else 0.3
    line = 0 if len(positions) > 120 else 0.8
    colours = {"color": np.where(weak, "white", PALE), "edgecolor": BLUE, "linewidth": line}
    if lying:
        axes.barh(positions, values, height=width, **colours)
    else:
        axes.bar(positions, values, width=width, **colours)
    if seen:
        (axes.hlines if lying else axes.vlines)(positions, low, high, color=INK, linewidth=1.2)
    (axes.axvline if lying else axes.axhline)(0, color=INK, linewidth=0.6)
    if len(positions) == 1:
        axes.set_xlim(-1, 1)
    if len(positions) <= (_MOST_LYING if lying else _MOST_NUMBERED):
        tops = np.maximum(high, np.maximum(values, 0.0))
        for x, value, error, top, faint in zip(positions, values, errors, tops, weak, strict=True):
            whole = error >= 0.5 or abs(value) >= 1000
            text = in_percent(value, error) if share else f"{value:,.0f}" if whole else f"{value:.4g}"
            place, off, where = ((top, x), (2, 0), {"va": "center"}) if lying else ((x, top), (0, 2), {"ha": "center"})
            text = f"{WEAK} {text}" if faint else text
            axes.annotate(text, place, off, textcoords="offset points", fontsize=8, **where)
        axes.margins(**({"x": 0.15} if lying else {"y": 0.1}))
    if lying:
        name_rows(axes, [shortened(name, _LONGEST_ROW) for name in names])
    else:
        name_ticks(axes, [shortened(name) for name in names], wide, most=most)
    clean(axes, share, lying=lying)


def name_rows(axes: Any, labels: Sequence[str]) -> None:
    """Write the names of places along the vertical axis, from the top."""
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    axes.set_ylim(len(labels) - 0.4, -0.6)


def write_cells(axes: Any, texts: NDArray[np.str_], dark: NDArray[np.bool_], size: float) -> None:
    """Write a text into each cell of a table of colours, in white upon dark ones."""
    for (row, column), text in np.ndenumerate(texts):
        colour = "white" if dark[row, column] else INK
        axes.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)


# -- Charts as figures -----------------------------------------------------------------------------------------------

_MOST_WRITTEN, _MOST_ROWS, _MOST_ON_A_LINE = 12, 40, 4
"""Columns up to which cells hold numbers, rows that are drawn, and columns up to which a cell's ends are on a line."""

_MOST_POINTS = 100
"""Points of each bar up to which they are drawn."""

_FEW, _LONGEST, _BAR = 12, 40, 1.5
"""Letters of rows' names for which there is room anyway, of a name at most; inches of the colours."""

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
        dash = "\n– " if crowded else " – "
        texts = [
            [_probabilities(*ends, dash) for ends in zip(*row, strict=True)] for row in zip(low, high, strict=True)
        ]
        write_cells(axes, np.array(texts), norm(high) > 0.6, 7 if apart and crowded else 8)
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
        name_rows(axes, [shortened(name) for name in bars.names])
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
        if drawn:
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
