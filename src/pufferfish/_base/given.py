"""Lists, numbers, truth values and words that users give: what they are, and one line where they are something else."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pufferfish._base.checked import whole_number
from pufferfish.errors import ParameterError, PufferfishError, shortened

__all__ = ["check_kind", "is_list", "listed", "one_of", "texts", "truth", "whole_at_least"]


def is_list(given: Any) -> bool:
    """Return whether something has members in an order: a list, tuple, array, column; text and sets have none.

    Examples
    --------
    >>> is_list([1, 2]), is_list("ab"), is_list({1, 2}), is_list(np.array(5))
    (True, False, False, False)
    """
    if isinstance(given, str | bytes | set | frozenset | Mapping) or not isinstance(given, Iterable):
        return False
    return not (isinstance(given, np.ndarray) and given.ndim == 0)


def listed(given: Any, what: str, expected: str, error: type[PufferfishError] = ParameterError) -> list[Any]:
    """Return the members of a list that a user gives.

    Raises
    ------
    PufferfishError
        Of the kind that is named, if it is none; masked entries are none of a list either.
    """
    members: list[Any] = list(given) if is_list(given) else []
    if not is_list(given) or any(member is np.ma.masked for member in members):
        raise error(f"{what} is {shortened(repr(given))}, expected {expected}")
    return members


def texts(given: Any, what: str) -> tuple[str, ...]:
    """Return the names that a user gives, as a tuple.

    Raises
    ------
    ParameterError
        If it is no list of texts.
    """
    members = listed(given, what, "a list of names")
    if not all(isinstance(member, str) for member in members):
        raise ParameterError(f"{what} is {shortened(repr(given))}, expected a list of names, each of them text")
    return tuple(members)


def check_kind(given: Any, kind: type, what: str) -> None:
    """Refuse what is of another kind than one class of this package.

    Raises
    ------
    ParameterError
        If it is.
    """
    if not isinstance(given, kind):
        raise ParameterError(f"{what} is {shortened(repr(given))}, expected a {kind.__name__}")


def truth(given: Any, what: str, error: type[PufferfishError] = ParameterError) -> bool:
    """Return a truth value that a user gives; text such as "no" is none.

    Raises
    ------
    PufferfishError
        Of the kind that is named, if it is none.
    """
    if not isinstance(given, bool | np.bool_):
        raise error(f"{what} is {shortened(repr(given))}, expected True or False")
    return bool(given)


def whole_at_least(given: Any, what: str, least: int, also: str = "") -> int:
    """Return a whole number that a user gives; ``also`` ends the message, such as by an example.

    Raises
    ------
    ParameterError
        If it is none, or below the least one.
    """
    try:
        number = whole_number(given)
    except TypeError:
        number = least - 1
    if number < least:
        raise ParameterError(f"{what} is {given!r}, expected a whole number of at least {least}{also}")
    return number


def one_of(given: Any, words: tuple[str | None, ...]) -> bool:
    """Return whether something is one of a few words; an array is none, though it compares with each of them."""
    return (given is None or isinstance(given, str)) and given in words
