"""What all pictures share: titles that name the content, shares in percent, error bars or a sentence about them.

Colours and marks: the same mechanism looks the same in every picture, and all eyes can tell them apart.

Colours are Okabe and Ito's; as shapes differ too, nothing rests on colour alone.
"""

import math
import re
import textwrap
import unicodedata
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.words import WEAK, at_most, number
from pufferfish.errors import printable

__all__ = [
    "BLUE",
    "INK",
    "LINES",
    "LONGEST_ROW",
    "MARKS",
    "ORANGE",
    "PALE",
    "bars_with_errors",
    "clean",
    "errors_are_seen",
    "in_percent",
    "in_short_lines",
    "is_share",
    "lie_better",
    "log_ticks",
    "made_with",
    "mark_of",
    "name_rows",
    "name_ticks",
    "percent",
    "shortened",
    "titled",
    "told_error",
    "width_of",
]

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

_ANY_OTHER = (ORANGE, "h")


def mark_of(mechanism: str) -> tuple[str, str]:
    """Return the colour and marker of a mechanism by its name; those that have none of their own share one."""
    return MARKS.get(mechanism, _ANY_OTHER)


_SEEN = 0.012
"""An error bar shorter than this share of its axis cannot be told from the line of its bar."""

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

LONGEST_ROW = 48
"""Letters of a name beside a bar that lies."""

_MARGINS = 0.7
"""Inches of a panel that its axis does not take."""

_MOST_WRITTEN = 14
_LETTERS = 13
"""Letters of a title that fit an inch."""

Array = NDArray[np.float64]


def is_share(measure: str) -> bool:
    """Return whether answers are shares, which pictures show in percent."""
    return measure.startswith("share")


def in_percent(value: float, error: float) -> str:
    """Return a share in percent, to three digits of its error: more would be noise.

    Examples
    --------
    >>> in_percent(0.44872, 0.0038), in_percent(0.5, 0.7)
    ('44.9%', '50%')
    """
    digits = 0 if error >= 0.1 else 1 if error >= 0.0005 else 3
    return f"{100 * value:.{digits}f}%"


def told_error(least: float, most: float, share: bool) -> str:
    """Say how large errors are: in percentage points where values are shares.

    Examples
    --------
    >>> told_error(0.004, 0.004, True), told_error(3, 5.123, False)
    ('± 0.4 percentage points', '± 3 to 5.12')
    """
    low, high = (number(100 * error if share else error, 3) for error in (least, most))
    unit = " percentage points" if share else ""
    return f"± {low if low == high else f'{low} to {high}'}{unit}"


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


def made_with(title: str, epsilon: float, size: str, description: str) -> str:
    """Say which mechanism made the noise and of how much the values are, unless the description says that.

    Examples
    --------
    >>> made_with("GroupDP", 1.0, "n = 2,352", "share of the 2,352 records in each of 2 states")
    'GroupDP, ε = 1'
    >>> made_with("GroupDP", 1.0, "n = 2", "share of records in each of 2 states")
    'GroupDP, ε = 1, n = 2'
    """
    number_alone = size.removeprefix("n = ").split()[0]
    mention = re.search(rf"(?<![\d,.]){number_alone} (record|row|step)s?\b", description)
    return f"{title}, ε = {at_most(epsilon)}{'' if mention else f', {size}'}"


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
    room = int(_LETTERS * max(wide - _MARGINS, 1.0) / max(len(shown), 1)) - 1
    lines = [in_short_lines(label, room) for label in shown]
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


def name_rows(axes: Any, labels: Sequence[str]) -> None:
    """Write the names of places along the vertical axis, from the top."""
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    axes.set_ylim(len(labels) - 0.4, -0.6)


def lie_better(labels: Sequence[str], wide: float) -> bool:
    """Return whether bars should lie, because the names below standing ones would have to be turned and are long.

    Examples
    --------
    >>> lie_better(["rest", "walk"], 5.0), lie_better([f"intensive_care={i}" for i in range(12)], 5.0)
    (False, True)
    """
    room = int(_LETTERS * max(wide - _MARGINS, 1.0) / max(len(labels), 1)) - 1
    turned = any(in_short_lines(label, room) is None for label in labels)
    return turned and len(labels) <= _MOST_LYING and max(map(width_of, labels)) >= _LONG


def errors_are_seen(values: Array, noisy: Array, errors: Array) -> bool:
    """Return whether lines as long as the errors can be told from the ends of bars that share one scale.

    Examples
    --------
    >>> bars = np.array([100.0, 200.0])
    >>> errors_are_seen(bars, bars, np.array([1.0, 1.0])), errors_are_seen(bars, bars, np.array([1.0, 9.0]))
    (False, True)
    """
    top = max(0.0, float(np.max(values)), float(np.max(noisy + errors)))
    bottom = min(0.0, float(np.min(values)), float(np.min(noisy - errors)))
    return bool(2 * np.max(errors) >= _SEEN * (top - bottom))


def bars_with_errors(
    axes: Any, values: Array, noisy: Array, errors: Array, *, share: bool, seen: bool, lying: bool = False
) -> None:
    """Draw bars, with error bars where they can be seen, and the values in numbers where they are few.

    A bar that is no longer than its own error is hollow, and its number has the sign of such a value.
    """
    positions, weak = np.arange(len(values)), np.abs(values) <= errors
    low, high = noisy - errors, noisy + errors
    many = len(positions) > 120
    width = 0.8 if len(positions) > 1 else 0.3
    colours = {"color": np.where(weak, "white", PALE), "edgecolor": BLUE, "linewidth": 0 if many else 0.8}
    if lying:
        axes.barh(positions, values, height=width, **colours)
    else:
        axes.bar(positions, values, width=width, **colours)
    if seen:
        (axes.hlines if lying else axes.vlines)(positions, low, high, color=INK, linewidth=1.2)
    (axes.axvline if lying else axes.axhline)(0, color=INK, linewidth=0.6)
    if len(positions) == 1:
        axes.set_xlim(-1, 1)
    if len(positions) > (_MOST_LYING if lying else _MOST_WRITTEN):
        return
    tops = np.maximum(high, np.maximum(values, 0.0))
    for x, value, error, top, faint in zip(positions, values, errors, tops, weak, strict=True):
        whole = error >= 0.5 or abs(value) >= 1000
        text = in_percent(value, error) if share else f"{value:,.0f}" if whole else f"{value:.4g}"
        text = f"{WEAK} {text}" if faint else text
        place = (top, x) if lying else (x, top)
        where = {"va": "center"} if lying else {"ha": "center"}
        axes.annotate(text, place, (2, 0) if lying else (0, 2), textcoords="offset points", fontsize=8, **where)
    axes.margins(**({"x": 0.15} if lying else {"y": 0.1}))
