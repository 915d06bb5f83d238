"""Where a ledger is kept: in a file, or in a database."""

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from pufferfish._base.reading import display_path, is_address, shown_address
from pufferfish.ledger.book import Book
from pufferfish.ledger.database import BookDatabase
from pufferfish.ledger.file import BookFile, lock_of

__all__ = ["Kept", "Where", "files_of", "is_address", "kept_at", "name_of", "shown_where"]

Where = str | os.PathLike[str]
"""A file, or the address of a database."""


class Kept(Protocol):
    """A book that lasts. Whoever holds :meth:`alone` is the only program that reads and writes it."""

    @property
    def path(self) -> Path | str:
        """Where it is, whatever folder the program moves to."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Keep every other program out; a crash lets them in again."""
        ...

    def read(self) -> Book:
        """Read the book, validated."""
        ...

    def create(self, book: Book) -> None:
        """Write a new one, where there is none."""
        ...

    def write(self, book: Book) -> None:
        """Write the book, with more entries than before; when this returns, it is on the disk."""
        ...


def kept_at(where: Any) -> Kept:
    """Return the keeping of a ledger.

    Raises
    ------
    RecordError
        If the path or address leads nowhere.
    """
    return BookDatabase(where) if is_address(where) else BookFile(where)


def files_of(where: str) -> tuple[str, ...]:
    """Return the files that a ledger needs: nothing else may be written there."""
    if not is_address(where):
        return where, lock_of(where)
    file = BookDatabase(where).file
    return () if file is None else (str(file), f"{file}-journal")


def name_of(where: Where) -> str:
    """Return how a command in the ledger's own folder names it."""
    return shown_where(where) if is_address(where) else Path(where).name


def shown_where(where: Where) -> str:
    """Return where a ledger is, for people: an address without its password."""
    return shown_address(where) if isinstance(where, str) and is_address(where) else display_path(where)
