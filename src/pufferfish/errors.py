"""The errors a user can meet, each one clear line: what was given, where, the rule, the remedy.

::

    PufferfishError
    ├── ParameterError       a number or option out of its range (epsilon, length, alpha, …)
    ├── ModelError           a distribution that is not one, or lacks what was asked of it
    ├── QueryError           a query that does not fit the model's states
    ├── NotApplicableError   a mechanism whose guarantee does not cover this Θ
    ├── DataError            a table that cannot be read as sequences or rows of states
    ├── RecordError          a model or release file that is damaged, of another version, or cannot be written
    └── ReleaseRefused       noise, data and ledger do not belong together: nothing was released
        └── BudgetExceeded   a ledger has too little left: nothing was spent

All but ``NotApplicableError``, ``ReleaseRefused`` and ``BudgetExceeded`` are also ``ValueError``. The command line
prints the message and exits with code 2.

A message is for the owner of the table: it may quote states, subjects and numbers of rows. Every class has a ``kind``,
a fixed sentence that everybody may read (``pufferfish --quiet-errors`` prints no more), and an error whose whole
message depends on no row says so by ``public``.

What a release warns of stands in its record. In Python it is also given to :mod:`warnings`, as a ``ReleaseWarning``,
before anything is spent: ``warnings.simplefilter("error", ReleaseWarning)`` makes it a refusal.
"""

import re
import sys
import warnings
from collections.abc import Iterable
from typing import ClassVar, TypeVar

__all__ = [
    "BudgetExceeded",
    "DataError",
    "ModelError",
    "NotApplicableError",
    "ParameterError",
    "PufferfishError",
    "QueryError",
    "RecordError",
    "ReleaseRefused",
    "ReleaseWarning",
    "one_line",
    "printable",
    "public",
    "shortened",
    "warn",
]


def printable(text: str) -> str:
    r"""Return text with control characters spelled out, so that a name from a file cannot write to a terminal.

    Examples
    --------
    >>> print(printable("walk" + chr(27) + "[2J"))
    walk\x1b[2J
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, most: int = 200) -> str:
    """Return text for a message: a very long one is cut in its middle.

    Examples
    --------
    >>> shortened("rest"), len(shortened("a" * 3000))
    ('rest', 199)
    """
    half = most // 2 - 1
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


_LONGEST = 1_000
"""Characters of a message."""


def one_line(text: str) -> str:
    """Return a message in one line, whatever names and values from files it quotes: what is very long is cut.

    Examples
    --------
    >>> one_line("two" + chr(10) + "lines").isprintable(), len(one_line("query " + "x" * 10_000))
    (True, 205)
    >>> len(one_line("very " * 10_000 + "long"))
    999
    """
    return shortened(re.sub(r"\S{201,}", lambda word: shortened(word[0]), printable(text)), _LONGEST)


class PufferfishError(Exception):
    """The root of every error this package raises on purpose; its message is one line."""

    kind: ClassVar[str] = "this is refused"
    """What failed, in words that depend on no row of any table."""
    public: bool = False
    """Whether the message depends on no row either; where there is doubt, it does."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class ParameterError(PufferfishError, ValueError):
    """A number or option is out of its range."""

    kind = "an option does not fit"


class ModelError(PufferfishError, ValueError):
    """A model is not a probability distribution, or lacks a property that was asked of it."""

    kind = "the model does not fit"


class QueryError(PufferfishError, ValueError):
    """A query does not fit the states of the model."""

    kind = "the query does not fit"


class NotApplicableError(PufferfishError):
    """A mechanism's guarantee does not cover this class of distributions, or this query.

    Parameters
    ----------
    reason : str
        Why.
    title : str, optional
        The mechanism, where the reason is its own.
    """

    kind = "the mechanism does not apply"

    def __init__(self, reason: str, title: str | None = None) -> None:
        super().__init__(reason, title)
        self.reason = reason
        self.title = title

    def __str__(self) -> str:
        return one_line(self.reason if self.title is None else f"{self.title} does not apply: {self.reason}")


class DataError(PufferfishError, ValueError):
    """A table cannot be read as sequences or rows of states."""

    kind = "the table cannot be read as was asked"


class RecordError(PufferfishError, ValueError):
    """A file of this package is damaged, of another version, or cannot be read or written."""

    kind = "a file cannot be read or written"


class ReleaseRefused(PufferfishError):
    """Noise, data and ledger do not belong together; nothing was released."""

    kind = "the release is refused"


class BudgetExceeded(ReleaseRefused):
    """A ledger has too little left; nothing was spent and nothing released."""

    kind = "the ledger has too little left"
    public = True  # what is spent, and what a release would add: calibration sees no row, and the book is public


class ReleaseWarning(UserWarning):
    """A warning about a release: noise that hides everything, an ε that promises little, a doubtful table."""


def warn(texts: Iterable[str]) -> None:
    """Give what a release warns of to :mod:`warnings`, as said by the line of the user's that called this package.

    Raises
    ------
    ReleaseWarning
        If the user turned such warnings into errors.
    """
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(printable(text), ReleaseWarning, stacklevel=level)


_Error = TypeVar("_Error", bound=PufferfishError)


def public(error: _Error) -> _Error:
    """Mark an error whose message depends on no row of any table, and return it.

    Examples
    --------
    >>> public(DataError("file steps.csv not found")).public
    True
    """
    error.public = True
    return error
