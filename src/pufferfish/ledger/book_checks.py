"""What is checked when a ledger's book is opened: its entries say what a ledger would have written."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pufferfish._base.durations import is_moment
from pufferfish._core.numbers.rounding import float_up
from pufferfish.errors import ParameterError
from pufferfish.ledger.file import Book, Entry
from pufferfish.mechanisms.mechanism import LEAST_EPSILON, as_epsilon

__all__ = ["check_book", "positive"]

_SAME = 1e-6
"""Leakage computed twice may differ by this share: a search that starts elsewhere ends elsewhere, a little."""

_FALLS = 1e-3
"""By what share a proof for more losses may come out below one for fewer: searches end where they are near enough."""

_MOST_CHECKED = 16
"""Entries of a book whose leakage is computed again when it is opened: that of long books takes time."""


def check_book(book: Book, places: int, leakage: Callable[[Sequence[Entry]], float], *, known: int = 0) -> None:
    """Refuse a book whose entries no ledger wrote, or which do not say what they leak.

    Parameters
    ----------
    book : Book
        What a file holds.
    places : int
        Chains of its base.
    leakage : callable
        What some entries leak together.
    known : int, default 0
        So many of the first entries are known, and not computed again.

    Raises
    ------
    ParameterError
        If no ledger wrote it.
    """
    entries, most = book.entries, float_up(Fraction(repr(book.budget)))
    if not is_moment(book.created):
        raise ParameterError(f"created is {book.created!r}, expected a time with its zone")
    if book.subjects is not None:
        book.subjects.check(places)
    elif any(entry.subjects is not None for entry in entries):
        raise ParameterError("an entry names subjects, and the book has none")
    if book.grid is not None and len(book.grid.ends) != places:
        raise ParameterError(f"it says when {len(book.grid.ends)} chains begin and end, and its base has {places}")
    before = 0.0
    for place, entry in enumerate(entries, start=1):
        if entry.number != place:
            raise ParameterError(f"entry {place} has the number {entry.number}")
        if not is_moment(entry.created):
            raise ParameterError(f"entry {place} was created at {entry.created!r}, expected a time with its zone")
        if not 0 <= entry.spent <= most:
            raise ParameterError(f"entry {place} says that {entry.spent} are spent, of {book.budget:g}")
        if entry.spent < before * (1 - _FALLS):
            raise ParameterError(
                f"entry {place} says {entry.spent:.6g} are spent, and the entry before it {before:.6g}: what is "
                "spent never falls"
            )
        before = entry.spent
    free = max((entry.number for entry in entries if entry.spent == 0), default=0)
    numbers = {round(n) for n in np.linspace(known + 1, len(entries), min(_MOST_CHECKED, len(entries) - known))}
    for number in sorted(numbers | ({free} if free > known else set())):
        spent, stated = leakage(entries[:number]), entries[number - 1].spent
        if abs(spent - stated) > _SAME * stated:
            raise ParameterError(f"entry {number} says {stated:.6g} are spent, and up to it leak {spent:.6g}")


def positive(value: Any, name: str) -> float:
    """Return a budget, or a part of one; refused where it is no finite number above 0."""
    try:
        return as_epsilon(value)
    except ParameterError:
        raise ParameterError(
            f"{name} is {value!r}, expected a finite number of at least {LEAST_EPSILON:g}, such as 1.0"
        ) from None
