"""Numbers that users give: real numbers, and nothing that merely can be turned into them.

numpy turns much into numbers without a word: truth values into 0 and 1, text into what it spells, complex numbers into
their real part, masked entries into what lies below the mask. Each of these is a slip, and a model or a budget that was
not meant, so all of them are refused.
"""

import math
from decimal import Decimal
from numbers import Real
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["real_array", "real_number", "whole_array", "whole_number", "why_no_number", "with_sums_of_one"]


def why_no_number(value: Any) -> str | None:
    """Return what is wrong with something given as a number; None where it is a real number.

    Examples
    --------
    >>> why_no_number(0.5), why_no_number(True), why_no_number("1"), why_no_number(1j)
    (None, 'a truth value', 'text', 'a complex number')
    """
    if isinstance(value, bool | np.bool_):
        return "a truth value"
    if isinstance(value, str | bytes):
        return "text"
    if value is np.ma.masked:
        return "a masked entry"
    if isinstance(value, np.timedelta64):  # numpy counts it among the whole numbers
        return "a time"
    if isinstance(value, Real | Decimal):
        return None
    if isinstance(value, complex | np.complexfloating):
        return "a complex number"
    return f"of type {type(value).__name__}"


def real_number(value: Any) -> float | None:
    """Return a real number as a float, maybe infinite or NaN; None for anything else.

    Examples
    --------
    >>> real_number(1), real_number("1"), real_number(True), real_number(10**400)
    (1.0, None, None, inf)
    """
    if type(value) is np.ndarray and np.ndim(value) == 0:
        value = np.asarray(value, dtype=object)[()]
    if why_no_number(value) is not None:
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signalling NaN of decimal
        return math.nan


def whole_number(value: Any) -> int:
    """Return a whole number as an int.

    Raises
    ------
    TypeError
        If it is none; a truth value is none either.
    """
    if why_no_number(value) is not None:
        raise TypeError
    return index(value)


def real_array(given: Any) -> NDArray[np.float64]:
    """Return a new array of real numbers.

    Raises
    ------
    TypeError
        If it holds anything else, or rows of unequal length; the message says what.

    Examples
    --------
    >>> real_array([[1, 0], [0.5, 0.5]]).shape
    (2, 2)
    >>> real_array([0.5, True])
    Traceback (most recent call last):
    TypeError: holds a truth value
    """
    if _masked(given):
        raise TypeError("holds masked entries: fill them in, or leave them out")
    plain = isinstance(given, list | tuple)
    try:
        found: Any = np.array(given, dtype=object) if plain else np.asarray(given)
    except ValueError:
        raise TypeError("is not an array of numbers (rows of equal length)") from None
    if found.dtype.kind in "fiu":
        return np.array(found, dtype=np.float64)
    if found.dtype.kind != "O":
        words = {"b": "truth values", "c": "complex numbers", "U": "text", "S": "text"}
        raise TypeError(f"holds {words.get(found.dtype.kind, f'entries of type {found.dtype}')}")
    one_of_each: dict[type, Any] = {type(entry): entry for entry in found.flat}
    for entry in one_of_each.values():
        wrong = why_no_number(entry)
        if wrong is not None:
            rows = isinstance(entry, list | tuple | np.ndarray)
            raise TypeError("is not an array of numbers (rows of equal length)" if rows else f"holds {_holding(wrong)}")
    try:
        return np.array(found, dtype=np.float64)
    except (OverflowError, ValueError, TypeError):
        raise TypeError("holds a number that no double can hold") from None


def whole_array(given: Any) -> NDArray[np.int64]:
    """Return a new array of whole numbers; numpy would cut 2.7 to 2.

    Raises
    ------
    TypeError
        If it holds anything else; the message says what.
    """
    numbers = real_array(given)
    if not np.all((np.abs(numbers) < 2.0**53) & (numbers == np.floor(numbers))):
        raw = np.asarray(given)
        if raw.dtype.kind in "iu" and (raw.dtype.kind == "i" or not raw.size or int(raw.max()) < 2**63):
            return raw.astype(np.int64)
        raise TypeError("holds a number that is not whole, or beyond 2^53")
    return numbers.astype(np.int64)


def with_sums_of_one(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows, along the last axis, divided by their sums, which are nearly 1.

    A row that sums to 1 within rounding is left as it is: what was divided before, and written to a file or copied,
    stays the same to the last bit.
    """
    sums = table.sum(axis=-1, keepdims=True)
    near = np.abs(sums - 1) <= table.shape[-1] * np.finfo(np.float64).eps
    return table / np.where(near, 1.0, sums)


def _holding(wrong: str) -> str:
    return f"an entry {wrong}" if wrong.startswith("of type") else wrong


def _masked(given: Any) -> bool:
    """Whether anything in nested lists is masked; numpy would take what lies below the mask."""
    if isinstance(given, np.ma.MaskedArray):
        return True
    return isinstance(given, list | tuple) and any(_masked(part) for part in given if _may_hold(part))


def _may_hold(part: Any) -> bool:
    return isinstance(part, list | tuple | np.ma.MaskedArray)
