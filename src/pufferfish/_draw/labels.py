"""Labels of pictures: how wide they are, and how long ones are cut to what fits."""

import unicodedata
from collections.abc import Sequence
from itertools import accumulate

from pufferfish.errors import printable
from pufferfish.theta.clocks import phase_name

__all__ = ["cells_for_people", "shortened", "width_of"]

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


def cells_for_people(by: Sequence[str], cells: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the labels of groups with the names of weekdays, which records count from Monday, 0.

    Examples
    --------
    >>> cells_for_people(["weekday(time)", "hour(time)"], [["0", "5"], ["6", "23"]])
    [['Mon', '5'], ['Sun', '23']]
    """
    days = {str(day): phase_name("weekday", day)[:3] for day in range(7)}
    names = [days if each.startswith("weekday(") else {} for each in by]
    return [[own.get(label, label) for own, label in zip(names, cell, strict=True)] for cell in cells]
