"""Labels of pictures: how wide they are, and how long ones are cut to what fits."""

import unicodedata
from itertools import accumulate

from pufferfish.errors import printable

__all__ = ["shortened", "width_of"]

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
