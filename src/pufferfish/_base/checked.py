"""What users give: real numbers, and nothing that merely can be turned into them; lists, choices, and typed text.

numpy turns much into numbers without a word: truth values into 0 and 1, text into what it spells, complex numbers into
their real part, masked entries into what lies below the mask. Each of these is a slip, and a model or a budget that was
not meant, so all of them are refused.

A call with missing, unknown or too many arguments is Python's own TypeError, as in any other library.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.words import did_you_mean
from pufferfish.errors import ModelError, ParameterError, PufferfishError, shortened


def why_no_number(value: Any) -> str | None:
    """Return what is wrong with something given as a number; None where it is a real number.

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
    """Return a whole number as an int; a TypeError for anything else, such as a truth value."""
    if why_no_number(value) is not None:
        raise TypeError
    return index(value)


def real_array(given: Any) -> NDArray[np.float64]:
    """Return a new array of real numbers; a TypeError says what else it holds, or that rows differ in length.

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
        entries: Any = np.array(given, dtype=object) if plain else np.asarray(given)
    except ValueError:
        raise TypeError("is not an array of numbers (rows of equal length)") from None
    if entries.dtype.kind in "fiu":
        return np.array(entries, dtype=np.float64)
    if entries.dtype.kind != "O":
        words = {"b": "truth values", "c": "complex numbers", "U": "text", "S": "text"}
        raise TypeError(f"holds {words.get(entries.dtype.kind, f'entries of type {entries.dtype}')}")
    one_of_each: dict[type, Any] = {type(entry): entry for entry in entries.flat}
    for entry in one_of_each.values():
        if (wrong := why_no_number(entry)) is not None:
            if isinstance(entry, list | tuple | np.ndarray):
                raise TypeError("is not an array of numbers (rows of equal length)")
            raise TypeError(f"holds an entry {wrong}" if wrong.startswith("of type") else f"holds {wrong}")
    try:
        return np.array(entries, dtype=np.float64)
    except (OverflowError, ValueError, TypeError):
        raise TypeError("holds a number that is too large for a floating-point number") from None


def probabilities(given: Any, name: str) -> NDArray[np.float64]:
    """Return a new array of the probabilities that a user gives; whether they are laws is not looked at."""
    try:
        return real_array(given)
    except TypeError as error:
        raise ModelError(f"{name} {error}; expected an array of probabilities") from None


def whole_array(given: Any) -> NDArray[np.int64]:
    """Return a new array of whole numbers, where numpy would cut 2.7 to 2; a TypeError says what else it holds."""
    numbers = real_array(given)
    if not np.all((np.abs(numbers) < 2.0**53) & (numbers == np.floor(numbers))):
        raw = np.asarray(given)
        if raw.dtype.kind in "iu" and (raw.dtype.kind == "i" or not raw.size or int(raw.max()) < 2**63):
            return raw.astype(np.int64)
        raise TypeError("holds a number that is not whole, or is above 2^53")
    return numbers.astype(np.int64)


def with_sums_of_one(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows, along the last axis, divided by their sums, which are nearly 1.

    A row that sums to 1 within rounding is left as it is: what was divided before, and written to a file or copied,
    stays the same to the last bit.
    """
    sums = table.sum(axis=-1, keepdims=True)
    near = np.abs(sums - 1) <= table.shape[-1] * np.finfo(np.float64).eps
    return table / np.where(near, 1.0, sums)


def _masked(given: Any) -> bool:
    """Whether anything in nested lists is masked; numpy would take what lies below the mask."""
    if isinstance(given, np.ma.MaskedArray):
        return True
    return isinstance(given, list | tuple) and any(map(_masked, given))


# -- Lists, numbers, truth values and words that users give ----------------------------------------------------------


def is_list(given: Any) -> bool:
    """Return whether something has members in an order: a list, tuple, array, column; text and sets have none.

    >>> is_list([1, 2]), is_list("ab"), is_list({1, 2}), is_list(np.array(5))
    (True, False, False, False)
    """
    if isinstance(given, str | bytes | set | frozenset | Mapping) or not isinstance(given, Iterable):
        return False
    return not (isinstance(given, np.ndarray) and given.ndim == 0)


def listed(given: Any, name: str, expected: str, error: type[PufferfishError] = ParameterError) -> list[Any]:
    """Return the members of a list that a user gives."""
    members: list[Any] = list(given) if is_list(given) else []
    if not is_list(given) or any(member is np.ma.masked for member in members):
        raise error(f"{name} is {shortened(repr(given))}, expected {expected}")
    return members


def texts(given: Any, name: str) -> tuple[str, ...]:
    """Return the names that a user gives, as a tuple."""
    members = listed(given, name, "a list of names")
    if not all(isinstance(member, str) for member in members):
        raise ParameterError(f"{name} is {shortened(repr(given))}, expected a list of names as text")
    return tuple(members)


def check_kind(given: Any, kind: type, name: str) -> None:
    """Refuse what is of another kind than one class of this package."""
    if not isinstance(given, kind):
        raise ParameterError(f"{name} is {shortened(repr(given))}, expected a {kind.__name__}")


def truth(given: Any, name: str, error: type[PufferfishError] = ParameterError) -> bool:
    """Return a truth value that a user gives; text such as "no" is none."""
    if not isinstance(given, bool | np.bool_):
        raise error(f"{name} is {shortened(repr(given))}, expected True or False")
    return bool(given)


def whole_at_least(given: Any, name: str, least: int, also: str = "") -> int:
    """Return a whole number that a user gives; ``also`` ends the message, such as by an example."""
    try:
        number = whole_number(given)
    except TypeError:
        number = least - 1
    if number < least:
        raise ParameterError(f"{name} is {given!r}, expected a whole number of at least {least}{also}")
    return number


def real_that(
    fits: Callable[[float], bool], given: Any, name: str, expected: str, error: type[PufferfishError] = ParameterError
) -> float:
    """Return a real number that a user gives, and that fits."""
    number = real_number(given)
    if number is None or not fits(number):
        raise error(f"{name} is {shortened(repr(given))}, expected {expected}")
    return number


def accepted_words(given: Any, words: tuple[str, ...]) -> frozenset[str]:
    """Return the refusals that a user accepts: each is named by a word of its own, and no word accepts them all.

    A word may name a refusal that does not come up.

    >>> sorted(accepted_words(["b", "a"], ("a", "b", "c"))), sorted(accepted_words("c", ("a", "b", "c")))
    (['a', 'b'], ['c'])
    """
    members: list[Any] = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
    for member in members:
        if not one_of(member, words):
            known = ", ".join(map(repr, words))
            raise ParameterError(
                f"accept is {shortened(repr(given))}, expected one of these words, or a list of them: {known}"
            )
    return frozenset(members)


def check_choice(option: str, given: Any, allowed: Sequence[str]) -> None:
    """Refuse a value of an option that is none of those allowed."""
    if not isinstance(given, str) or given not in allowed:
        raise ParameterError(
            f"{option} is {given!r}, expected one of {', '.join(map(repr, allowed))}.{did_you_mean(given, allowed)}"
        )


def one_of(given: Any, words: tuple[str | None, ...]) -> bool:
    """Return whether something is one of a few words; an array is none, though it compares with each of them."""
    return (given is None or isinstance(given, str)) and given in words


# -- Numbers and lists as people type them ---------------------------------------------------------------------------
# Python reads ``1_0`` as 10, and digits of other scripts too. On a command line these are slips of the finger, and some
# decide how much privacy is left. So plain decimals are read, and nothing else that Python would take for a number.

_NUMBER = r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|nan)"
"""Also what is infinite or no number: which values an option may have is said where it is used."""

_WHOLE = r"[+-]?[0-9]{1,4000}"


def plain_number(text: str) -> float:
    """Return the number that a text is; a ValueError if it is no plain decimal.

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
    """Return the whole number that a text is; a ValueError if it is no plain one."""
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
