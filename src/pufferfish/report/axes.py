"""What all pictures share: titles that name the content, shares in percent, error bars or a sentence about them."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish.report.palette import BLUE, INK, PALE
from pufferfish.report.plot import shortened

__all__ = ["bars_with_errors", "clean", "in_percent", "is_share", "name_ticks", "percent", "titled", "told_error"]

_SEEN = 0.012
"""An error bar shorter than this share of its axis cannot be told from the line of its bar."""

_LONGEST = 200
"""Letters of one sentence above a picture."""

_MOST_LABELS = 26
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
    low, high = (f"{100 * error if share else error:.3g}" for error in (least, most))
    unit = " percentage points" if share else ""
    return f"± {low if low == high else f'{low} to {high}'}{unit}"


def titled(figure: Any, *lines: str) -> None:
    """Write what the picture shows above it, then how it was made."""
    most = int(_LETTERS * figure.get_size_inches()[0])
    first, *others = (shortened(line, _LONGEST) for line in lines)
    told = [part for line in (first[:1].upper() + first[1:], *others) for part in textwrap.wrap(line, most)]
    figure.suptitle("\n".join(told), fontsize=10, x=0.01, ha="left", parse_math=False)


def percent(share: float, _: object = None) -> str:
    """Return a share as text of a scale, as matplotlib asks for it.

    Examples
    --------
    >>> percent(0.1 + 0.2), percent(-0.025)
    ('30%', '-2.5%')
    """
    return f"{100 * share:.6g}%"


def clean(axes: Any, share: bool = False) -> None:
    """Take away lines that say nothing, and write shares in percent."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if share:
        axes.yaxis.set_major_formatter(percent)


def name_ticks(axes: Any, labels: Sequence[str], wide: float, *, most: int = _MOST_LABELS) -> None:
    """Write the names of places along the horizontal axis: turned where they are long, some where they are many."""
    every = -(-len(labels) // most)
    shown = labels[::every]
    crowded = sum(len(label) + 2 for label in shown) > 9 * wide
    axes.set_xticks(
        range(0, len(labels), every),
        shown,
        parse_math=False,
        rotation=60 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor" if crowded else "default",
    )


def bars_with_errors(axes: Any, values: Array, noisy: Array, errors: Array, *, share: bool) -> bool:
    """Draw bars with error bars, and the values in numbers where they are few; return whether the errors are seen."""
    at = np.arange(len(values))
    low, high = noisy - errors, noisy + errors
    many = len(at) > 120
    width = 0.8 if len(at) > 1 else 0.3
    axes.bar(at, values, width=width, color=PALE, edgecolor=BLUE, linewidth=0 if many else 0.8)
    axes.vlines(at, low, high, color=INK, linewidth=1.2)
    axes.axhline(0, color=INK, linewidth=0.6)
    if len(at) == 1:
        axes.set_xlim(-1, 1)
    if len(at) <= _MOST_WRITTEN:
        for x, value, error, top in zip(at, values, errors, np.maximum(high, np.maximum(values, 0.0)), strict=True):
            text = in_percent(value, error) if share else f"{value:,.0f}" if error >= 0.5 else f"{value:.4g}"
            axes.annotate(text, (x, top), (0, 2), textcoords="offset points", ha="center", fontsize=8)
        axes.margins(y=0.1)
    bottom, top = axes.get_ylim()
    return bool(2 * errors.min() >= _SEEN * (top - bottom))
