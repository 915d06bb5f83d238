"""Numbers on a command line: plain decimals, and nothing else that Python would take for a number.

Python reads ``1_0`` as 10, and digits of other scripts too. On a command line these are slips of the finger, and some
decide how much privacy is left.
"""

import re
from typing import Any

import click

__all__ = ["NUMBER", "WHOLE", "plain_number", "plain_whole"]

_NUMBER = r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|nan)"
"""Also what is infinite or no number: which values an option may have is said where it is used."""

_WHOLE = r"[+-]?[0-9]{1,4000}"


def plain_number(text: str) -> float:
    """Return the number that a text is.

    Raises
    ------
    ValueError
        If it is no plain decimal.

    Examples
    --------
    >>> plain_number("1e-3")
    0.001
    >>> plain_number("1_0")
    Traceback (most recent call last):
        ...
    ValueError: '1_0' is no plain number such as 1, 0.5 or 1e-3
    """
    if re.fullmatch(_NUMBER, text.strip()) is None:
        raise ValueError(f"{text.strip()!r} is no plain number such as 1, 0.5 or 1e-3")
    return float(text)


def plain_whole(text: str) -> int:
    """Return the whole number that a text is.

    Raises
    ------
    ValueError
        If it is no plain whole number.
    """
    if re.fullmatch(_WHOLE, text.strip()) is None:
        raise ValueError(f"{text.strip()!r} is no plain whole number such as 10 or 5000")
    return int(text)


class _Number(click.ParamType):  # not generic in every click
    """A plain number of an option."""

    def __init__(self, *, whole: bool) -> None:
        self.name = "integer" if whole else "float"
        self._read = plain_whole if whole else plain_number

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or refuse it in one line."""
        if not isinstance(value, str):  # a default
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


NUMBER, WHOLE = _Number(whole=False), _Number(whole=True)
