"""A ledger's file: how two programs and a crash cannot spoil it."""

import hashlib
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pufferfish._base.reading import check_path, decoded, display_path, failing, leads_nowhere
from pufferfish._base.writing import (
    check_lock,
    check_writable,
    decode_record,
    read_file,
    record_kind,
    sweep,
    write_whole,
)
from pufferfish.errors import RecordError
from pufferfish.ledger.book import FORMAT, VERSION, Book

LEDGER = record_kind("ledger", FORMAT, "a ledger is never replaced; name another file", secret=True)
"""It holds the key of the digests of subjects (:mod:`~pufferfish.ledger.subjects`)."""

WAIT = 60.0
"""Seconds to wait for another program that is spending."""

_ANEW = (
    "make a new ledger and first charge all releases of the old one to it (ledger.spend in Python): a new ledger "
    "starts at 0, and two ledgers do not bound what their releases leak together"
)
"""What to do with a ledger of another version."""

_DIGEST = re.compile(rb'"digest": ?"([0-9a-f]{64})"')
_NO_DIGEST = b"0" * 64


def with_digest(content: bytes) -> bytes:
    """Return the content of a ledger's file with the digest that fits it: SHA-256 of it all, with 0 for the digest."""
    digest = _DIGEST.search(content)
    if digest is None:
        raise ValueError("it has no digest: another program wrote it, or a part is lost")
    head, tail = content[: digest.start(1)], content[digest.end(1) :]
    return head + hashlib.sha256(head + _NO_DIGEST + tail).hexdigest().encode() + tail


def _check_digest(content: bytes) -> None:
    if with_digest(content) != content:
        raise ValueError(
            "it was changed after it was written, by hand or by a disk fault (wrong digest). Undo the change; if you "
            "cannot, treat the whole budget as spent"
        )


def book_of(content: bytes, source: str) -> Book:
    """Return the book that the content of a file holds, validated; ``source`` is its name in messages."""
    return decode_record(
        content, source, Book, format_=FORMAT, version=VERSION, complete=True, check=_check_digest, anew=_ANEW
    )


def lock_of(path: str | os.PathLike[str]) -> str:
    """Return the name of the lock file of a ledger."""
    return f"{os.fspath(path)}.lock"


class BookFile:
    """A book on disk, with a lock file of the same name and ``.lock`` beside it.

    Whoever holds :meth:`alone` is the only program that reads and writes it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_path(path)
        self._given = path
        with failing("cannot read", path):
            if nowhere := leads_nowhere(path):
                raise RecordError(f"cannot read {display_path(path)}: {nowhere}")
            self.path = Path(path).resolve()  # whatever folder the program moves to

    @contextmanager
    def alone(self) -> Generator[None]:
        """Keep every other program out, and wait a minute for one that does so; a crash lets them in again."""
        from filelock import FileLock, Timeout

        check_writable(self.path, LEDGER, overwrite=True)
        path = Path(lock_of(self.path))
        lock = FileLock(path, timeout=WAIT)
        try:
            check_lock(path, f"the ledger {display_path(self._given)}")
            lock.acquire()
        except Timeout:
            raise RecordError(
                f"another program is using the ledger {display_path(self._given)}, for {WAIT:g} s now: try again later"
            ) from None
        except OSError as error:
            raise RecordError(
                f"cannot lock the ledger {display_path(self._given)}: {error.strerror or error}"
            ) from error
        try:  # what fails in here is no fault of the lock
            yield
        finally:
            lock.release()

    def read(self) -> Book:
        """Read the book, validated; one with a second name is refused, for a write would leave two books."""
        with failing("cannot read", self._given):
            names = self._names()
            if names > 1:  # of one who was killed when it had just given the ledger its name
                sweep(self.path.parent)
                names = self._names()
        if names > 1:
            raise RecordError(
                f"the ledger {display_path(self._given)} has {names} names (hard links), which would become two "
                "ledgers: delete all of them but one"
            )
        content = read_file(self.path)
        if content.startswith(b"SQLite format 3"):
            given = display_path(self._given)
            raise RecordError(f"{given} is an SQLite database: name the ledger in it sqlite:///{given}")
        return book_of(content, display_path(self._given))

    def _names(self) -> int:
        return self.path.stat().st_nlink if self.path.is_file() else 1

    def create(self, book: Book) -> None:
        """Write a new book, which replaces no file."""
        with self.alone():
            self.write(book, new=True)

    def write(self, book: Book, *, new: bool = False) -> None:
        """Write the book in one step, so that it can be read again; when this returns, it is on the disk."""
        book = msgspec.structs.replace(book, digest=_NO_DIGEST.decode())
        try:
            content = msgspec.json.format(msgspec.json.encode(book), indent=1) + b"\n"
            again = decoded(content, Book)
        except (msgspec.MsgspecError, UnicodeError, TypeError) as error:
            raise RecordError(f"nothing was written: the entry could not be read back: {error}") from error
        if again != book:
            raise RecordError("nothing was written: the entry could not be read back unchanged")
        write_whole(self.path, with_digest(content), LEDGER, overwrite=not new)
