"""The book of a ledger: what is written, and how two programs and a crash cannot spoil it."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from pufferfish.data.sequences import Base
from pufferfish.errors import RecordError
from pufferfish.files import check_writable, read_record, write_whole
from pufferfish.ledger.charges import Charge
from pufferfish.model_file import ThetaRecord

__all__ = ["Book", "BookFile", "Entry"]

FORMAT = "pufferfish-ledger"
VERSION = 1

_WAIT = 60.0
"""Seconds to wait for another program that is spending."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One release in the book.

    Parameters
    ----------
    number : int
        Its place in the book, from 1.
    created : str
        When it was written, UTC; the release came after.
    what : str
        The query in words, or what the user said.
    epsilon : float or None
        What this release alone leaks at most, by its own calibration.
    distance : list of lists of int
        How far one record moves the answer when it goes from state x to x', in units; shape (k, k).
    scale : str
        Noise scale in the same units, an exact fraction.
    windows : list or None
        Per chain the steps that were read, first (0-based) and one past the last; None for all of all chains.
    spent : float
        Leakage of all entries up to this one together.
    """

    number: int
    created: str
    what: str
    epsilon: float | None
    distance: list[list[int]]
    scale: str
    windows: list[tuple[int, int] | None] | None
    spent: float

    @property
    def charge(self) -> Charge:
        """The record-level loss of this release."""
        distance = tuple(tuple(row) for row in self.distance)
        return Charge(distance, Fraction(self.scale), None if self.windows is None else tuple(self.windows))


class Book(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All of a ledger."""

    format: str = FORMAT
    version: int = VERSION
    created: str
    budget: float
    mechanism: str
    settings: dict[str, Any]
    theta: ThetaRecord
    length: list[tuple[int, int]]
    base: Base | None
    entries: list[Entry]


class BookFile:
    """A book on disk. Whoever holds :meth:`alone` is the only program that reads and writes it.

    Parameters
    ----------
    path : path-like
        The file. A lock file of the same name with ``.lock`` is kept beside it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._given = path
        self.path = Path(path).resolve()  # whatever folder the program moves to

    @contextmanager
    def alone(self) -> Generator[None]:
        """Keep every other program out; a crash lets them in again.

        Raises
        ------
        RecordError
            If another program keeps the book for longer than a minute, or the folder cannot be written.
        """
        from filelock import FileLock, Timeout

        check_writable(self.path)
        try:
            with FileLock(f"{self.path}.lock", timeout=_WAIT):
                yield
        except Timeout:
            raise RecordError(f"another program has kept the ledger {self._given} for {_WAIT:g} s: try again") from None
        except OSError as error:
            raise RecordError(f"cannot lock the ledger {self._given}: {error.strerror or error}") from error

    def read(self) -> Book:
        """Read the book, validated.

        Raises
        ------
        RecordError
            If it is missing, damaged, of another version, or has a second name: then a write would leave two books.
        """
        try:
            names = self.path.stat().st_nlink if self.path.is_file() else 1
        except OSError:
            names = 1
        if names > 1:
            raise RecordError(f"the ledger {self._given} has {names} names (hard links), which would become two books")
        return read_record(self.path, Book, format_=FORMAT, version=VERSION)

    def write(self, book: Book) -> None:
        """Write the book in one step; when this returns, it is on the disk.

        Raises
        ------
        RecordError
            If it cannot be written, or could not be read again.
        """
        try:
            content = msgspec.json.format(msgspec.json.encode(book), indent=1) + b"\n"
            again = msgspec.json.decode(content, type=Book)
        except (msgspec.MsgspecError, UnicodeError, TypeError) as error:
            raise RecordError(f"the entry could not be read again, and was not written: {error}") from error
        if again != book:
            raise RecordError("the entry could not be read again as it is, and was not written")
        write_whole(self.path, content)
