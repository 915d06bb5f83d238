"""Numbers and lists as people type them: plain decimals, and nothing else that Python would take for a number.

Python reads ``1_0`` as 10, and digits of other scripts too. On a command line these are slips of the finger, and some
decide how much privacy is left.
"""

import re

from pufferfish.errors import ParameterError

__all__ = ["each_once", "plain_number", "plain_whole", "split_list"]

_NUMBER = r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|nan)"
"""Also what is infinite or no number: which values an option may have is said where it is used."""

_WHOLE = r"[+-]?[0-9]{1,4000}"


def plain_number(text: str) -> float:
    """Return the number that a text is.

    >>> plain_number("1e-3")
    0.001
    >>> plain_number("1_0")
    Traceback (most recent call last):
        ...
    ValueError: '1_0' is not a plain number such as 1, 0.5 or 1e-3
    """
    if re.fullmatch(_NUMBER, text.strip()) is None:
        raise ValueError(f"{text.strip()!r} is not a plain number such as 1, 0.5 or 1e-3")
    return float(text)


def plain_whole(text: str) -> int:
    """Return the whole number that a text is."""
    if re.fullmatch(_WHOLE, text.strip()) is None:
        raise ValueError(f"{text.strip()!r} is not a plain whole number such as 10 or 5000")
    return int(text)


def split_list(text: str) -> list[str]:
    """Parts of a list with commas; a part in double quotes may hold some, and ``=`` with a value may follow it.

    >>> split_list('home, "ward, general"')
    ['home', 'ward, general']
    >>> split_list('"ward, general"=1,*=0')
    ['ward, general=1', '*=0']
    """
    parts, start = list[str](), 0
    while start <= len(text):
        part = _PART.match(text, start)
        if part is None:
            raise ParameterError(f'{text!r} is not a list: put a part with a comma in quotes, as in one,"two, three"')
        quoted, value, plain = part.groups()
        parts.append(plain.strip() if quoted is None else quoted.replace('""', '"').strip() + value.strip())
        start = part.end() + 1
    if not all(parts):
        raise ParameterError(f"{text!r} has an empty part: remove the extra comma, or add what is missing")
    return parts


_PART = re.compile(r'\s*+(?:"((?:[^"]|"")*)"\s*((?:=[^,"]*)?)|(?!")([^,]*))(?=,|\Z)')


def each_once(parts: list[str], text: str) -> list[str]:
    """Return names as they are, and refuse one that is given twice."""
    for i, part in enumerate(parts):
        if part in parts[:i]:
            raise ParameterError(f"{text!r} names {part!r} twice: name it once")
    return parts
