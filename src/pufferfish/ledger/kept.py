"""Where a ledger is kept, so that two programs and a crash cannot spoil it: in a file, or as rows of an SQL database.

One table of a database holds all of its ledgers. Row 0 of a ledger is its book as it began; each row after it is one
entry, with what a release settles of the base: who came, for one. Rows are added and never changed, so that a role
with the rights to SELECT and INSERT is enough. Each row holds a digest of itself and of the row before it.

Two writers at once: who spends holds the lock file, or the database's own lock, from before it reads what is spent
until its entry is written. Whatever else writes there, a second row of one number breaks the table's primary key.

SQLite is Python's own module, and PostgreSQL's is psycopg. Five statements are all that is needed: a library over them
would bring a parser of addresses, and nothing else that is used here.
"""

import hashlib
import os
import re
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.reading import (
    check_path,
    decoded,
    display_path,
    failing,
    is_address,
    leads_nowhere,
    shown_address,
)
from pufferfish._base.writing import (
    check_lock,
    check_output,
    check_writable,
    decode_record,
    read_file,
    record_kind,
    sweep,
    write_whole,
)
from pufferfish.data.rows import RowsBase
from pufferfish.data.sequences import Base, TimeGrid
from pufferfish.errors import ParameterError, RecordError
from pufferfish.ledger.book import FORMAT, VERSION, Book, Entry
from pufferfish.ledger.subjects import Subjects

# -- In a file ---------------------------------------------------------------------------------------------------------

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


_CHANGED = "nothing was written: the entry could not be read back unchanged"


@contextmanager
def _readable() -> Generator[None]:
    """Say in one line that an entry is none that could be read again."""
    try:
        yield
    except (msgspec.MsgspecError, UnicodeError, TypeError) as error:
        raise RecordError(f"nothing was written: the entry could not be read back: {error}") from error


def lock_of(path: str | os.PathLike[str]) -> str:
    """Return the name of the lock file of a ledger."""
    return f"{os.fspath(path)}.lock"


class BookFile:
    """A book on disk, with a lock file beside it; whoever holds :meth:`alone` is alone to read and write it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_path(path)
        self.name = display_path(path)
        with failing("cannot read", path):
            if nowhere := leads_nowhere(path):
                raise RecordError(f"cannot read {self.name}: {nowhere}")
            self.path = Path(path).resolve()  # whatever folder the program moves to

    @contextmanager
    def alone(self) -> Generator[None]:
        """Keep every other program out, and wait a minute for one that does so; a crash lets them in again."""
        from filelock import FileLock, Timeout

        check_writable(self.path, LEDGER, overwrite=True)
        path = Path(lock_of(self.path))
        lock = FileLock(path, timeout=WAIT)
        try:
            check_lock(path, f"the ledger {self.name}")
            lock.acquire()
        except Timeout:
            busy = f"another program is using the ledger {self.name}, for {WAIT:g} s now: try again later"
            raise RecordError(busy) from None
        except OSError as error:
            raise RecordError(f"cannot lock the ledger {self.name}: {error.strerror or error}") from error
        try:  # what fails in here is no fault of the lock
            yield
        finally:
            lock.release()

    def read(self) -> Book:
        """Read the book, validated; one with a second name is refused, for a write would leave two books."""
        with failing("cannot read", self.name):
            names = self._names()
            if names > 1:  # of one who was killed when it had just given the ledger its name
                sweep(self.path.parent)
                names = self._names()
        if names > 1:
            raise RecordError(
                f"the ledger {self.name} has {names} names (hard links), which would become two ledgers: delete all of "
                "them but one"
            )
        content = read_file(self.path)
        if content.startswith(b"SQLite format 3"):
            raise RecordError(f"{self.name} is an SQLite database: name the ledger in it sqlite:///{self.name}")
        return book_of(content, self.name)

    def _names(self) -> int:
        return self.path.stat().st_nlink if self.path.is_file() else 1

    def create(self, book: Book) -> None:
        """Write a new book, which replaces no file."""
        with self.alone():
            self.write(book, new=True)

    def write(self, book: Book, *, new: bool = False) -> None:
        """Write the book in one step, so that it can be read again; when this returns, it is on the disk."""
        book = msgspec.structs.replace(book, digest=_NO_DIGEST.decode())
        with _readable():
            content = msgspec.json.format(msgspec.json.encode(book), indent=1) + b"\n"
            again = decoded(content, Book)
        if again != book:
            raise RecordError(_CHANGED)
        write_whole(self.path, with_digest(content), LEDGER, overwrite=not new)


# -- In a database ---------------------------------------------------------------------------------------------------

_TABLE = "pufferfish_ledger"
_COLUMNS = (
    "ledger TEXT NOT NULL, number INTEGER NOT NULL, digest TEXT NOT NULL, content TEXT NOT NULL, "
    "PRIMARY KEY (ledger, number)"
)
_SCHEMES = ("sqlite", "postgresql")
_NAME = "ledger"
"""What a ledger is called whose address names none."""

_BEGUN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED",  # so that what is read under the lock is what was there when it was given
    f"SET LOCAL lock_timeout = '{WAIT:g}s'",
    "SELECT set_config('synchronous_commit', 'on', true) "
    "WHERE current_setting('synchronous_commit') IN ('off', 'local')",
)
"""How a transaction begins in PostgreSQL, whatever the server is set to."""

_Stored = tuple[int, str, str]
"""Number, digest and content of a row."""


class _Head(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What of a book is not an entry, and may change; ``subjects`` are those who are new."""

    base: Base | None
    rows_base: RowsBase | None
    grid: TimeGrid | None
    subjects: Subjects | None

    @classmethod
    def between(cls, before: Book, after: Book) -> "_Head | None":
        """Return what changes from one book to another; None for nothing."""
        names = cls.__struct_fields__
        if all(getattr(before, name) == getattr(after, name) for name in names):
            return None
        new = None if after.subjects is None else after.subjects.without(before.subjects)
        return cls(base=after.base, rows_base=after.rows_base, grid=after.grid, subjects=new)

    def on(self, book: Book) -> Book:
        """Return a book with the change."""
        subjects = self.subjects
        if subjects is not None and book.subjects is not None:
            subjects = book.subjects.with_those(subjects)
        return msgspec.structs.replace(
            book, base=self.base, rows_base=self.rows_base, grid=self.grid, subjects=subjects or book.subjects
        )


class _Row(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One row after the first."""

    entry: Entry
    settles: _Head | None


class _Known(NamedTuple):
    """A book, and the number and digest of its last row."""

    book: Book
    number: int
    digest: str


def _digest(before: str, content: str) -> str:
    return hashlib.sha256(f"{before}\n{content}".encode()).hexdigest()


class BookDatabase:
    """A book in a database; as :class:`BookFile`.

    Its address is ``sqlite:///book.db`` (one more slash before a path from the root) or
    ``postgresql://user@host/database``, as libpq takes it; ``#name`` at its end for one of several ledgers.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme not in _SCHEMES:
            raise RecordError(
                f"{shown_address(address)} is an address of {parts.scheme!r}, but a ledger is kept in a file, in "
                "sqlite:///FILE or in postgresql://HOST/DATABASE"
            )
        self._ledger = parts.fragment or _NAME
        self._known: _Known | None = None
        self._held: Any = None
        if parts.scheme == "sqlite":
            if parts.netloc or len(parts.path) < 2 or parts.query:
                raise RecordError(f"{address} names no file: write sqlite:///book.db, or sqlite:////folder/book.db")
            file = Path(parts.path.removeprefix("/")).resolve()  # whatever folder the program moves to
            self.file: Path | None = file
            self.path = f"sqlite:///{file}" + (f"#{parts.fragment}" if parts.fragment else "")
        else:
            self.file, self.path = None, address
        self.name = shown_address(address)

    # -- The database ------------------------------------------------------------------------------------------

    @contextmanager
    def _connected(self) -> Generator[Any]:
        """Open the database, each statement for itself; what it says is one line."""
        if self._held is not None:
            yield self._held
            return
        errors: Any = _psycopg().Error if self.file is None else sqlite3.Error
        try:
            connection = self._connection()
            try:
                yield connection
            finally:
                with suppress(errors):
                    connection.close()  # what was not committed was never there
        except errors as error:
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise RecordError(f"the ledger {self.name} cannot be used: {said[0]}") from error

    def _connection(self) -> Any:
        if self.file is not None:
            uri = f"file:{quote(str(self.file))}?mode=rw"  # a file that is not there is not made
            connection = sqlite3.connect(uri, uri=True, timeout=WAIT, isolation_level=None)
            connection.execute("PRAGMA synchronous = EXTRA")
            return connection
        return _psycopg().connect(self.path.partition("#")[0], autocommit=True, connect_timeout=round(WAIT))

    def _do(self, connection: Any, statement: str, *values: Any) -> Any:
        return connection.execute(statement if self.file is not None else statement.replace("?", "%s"), values)

    @contextmanager
    def alone(self) -> Generator[None]:
        """Keep every other program out, and wait a minute for one that does so; a crash lets them in again."""
        with self._connected() as connection:
            for statement in ("BEGIN IMMEDIATE",) if self.file is not None else _BEGUN:
                self._do(connection, statement)
            if self.file is None:
                self._do(connection, "SELECT pg_advisory_xact_lock(hashtext(?))", f"{_TABLE} {self._ledger}")
            self._held = connection
            try:
                yield
            finally:
                self._held = None

    # -- The book ----------------------------------------------------------------------------------------------

    def read(self) -> Book:
        """Read the rows that are new, validated, and return the book."""
        known = self._known
        if self.file is not None and not self.file.exists():
            raise RecordError(f"cannot read {self.name}: there is no such file")
        if self.file is not None and self.file.stat().st_nlink > 1:  # a crash under one of them spoils the others
            raise RecordError(f"the ledger {self.name} has several names (hard links): delete all of them but one")
        with self._connected() as connection:
            rows: list[_Stored] = []
            if self._has_table(connection):
                rows = self._rows(connection, 0 if known is None else known.number)
                if known is not None and (not rows or rows[0][:2] != (known.number, known.digest)):
                    known, rows = None, self._rows(connection, 0)  # the ledger will see that it is another
            if not rows:
                raise RecordError(f"there is no ledger {self._ledger!r} in {self.name}: {self._others(connection)}")
        self._known = self._with(known, rows if known is None else rows[1:])
        return self._known.book

    def _rows(self, connection: Any, first: int) -> list[_Stored]:
        found = self._do(
            connection,
            f"SELECT number, digest, content FROM {_TABLE} WHERE ledger = ? AND number >= ? ORDER BY number",
            self._ledger,
            first,
        )
        return [tuple(row) for row in found.fetchall()]

    def _with(self, known: _Known | None, rows: list[_Stored]) -> _Known:
        """Return the book with more rows, each of which follows the one before it."""
        number = 0
        try:
            for number, digest, content in rows:
                if number != (0 if known is None else known.number + 1):
                    raise ValueError("a row before it is missing")
                if digest != _digest("" if known is None else known.digest, content):
                    raise ValueError("it was changed after it was written (wrong digest)")
                if known is None:
                    known = _Known(book_of(content.encode(), self.name), 0, digest)
                    continue
                row = decoded(content, _Row)
                if _text(row) != content:
                    raise ValueError("it is not as this program writes it")
                book = known.book if row.settles is None else row.settles.on(known.book)
                known = _Known(book.with_entry(row.entry), number, digest)
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            raise RecordError(f"the ledger {self.name} is damaged: row {number}: {error}") from error
        assert known is not None
        return known

    def create(self, book: Book) -> None:
        """Write a new book; one that is there already is never replaced."""
        if self.file is not None:
            check_output(self.file, None, overwrite=True)
            # it holds who is in the table: for its owner alone to read; never deleted, for another may hold it by now
            with failing("cannot write", self.file), suppress(FileExistsError):
                os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with self.alone(), self._connected() as connection:
            if not self._has_table(connection):
                self._do(connection, f"CREATE TABLE {_TABLE} ({_COLUMNS})")
            elif self._rows(connection, 0):
                raise RecordError(
                    f"{self.name} holds a ledger {self._ledger!r}: a ledger is never replaced; name another, as "
                    f"in {self.name.partition('#')[0]}#second"
                )
            self.write(book)

    def write(self, book: Book) -> None:
        """Add the entries that are new, in one transaction; when this returns, they are on the disk."""
        known, rows = self._known, list[_Stored]()
        for number, content in enumerate(_contents(known, book), start=0 if known is None else known.number + 1):
            digest = _digest(rows[-1][1] if rows else "" if known is None else known.digest, content)
            rows.append((number, digest, content))
        again = self._with(known, rows)
        if msgspec.structs.replace(again.book, digest=book.digest) != book:
            raise RecordError(_CHANGED)
        with self._connected() as connection:
            for row in rows:
                self._do(connection, f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?)", self._ledger, *row)
            self._do(connection, "COMMIT")
        self._known = again

    def _has_table(self, connection: Any) -> bool:
        lite = "SELECT 1 FROM sqlite_master WHERE name = ?"
        asked = "SELECT 1 WHERE to_regclass(?) IS NOT NULL" if self.file is None else lite
        return self._do(connection, asked, _TABLE).fetchone() is not None

    def _others(self, connection: Any) -> str:
        names: list[str] = []
        if self._has_table(connection):
            names = [row[0] for row in self._do(connection, f"SELECT ledger FROM {_TABLE} WHERE number = 0").fetchall()]
        there = f"there are {', '.join(map(repr, sorted(names)))}" if names else "it has none"
        return f"{there}; pufferfish ledger create makes one"


def _contents(known: _Known | None, book: Book) -> Iterator[str]:
    """Return what the rows say that make one book another; what is settled stands in the first."""
    if known is None:
        begun = msgspec.structs.replace(book, entries=[], digest="0" * 64)
        yield with_digest(msgspec.json.encode(begun)).decode()
        before = begun
    else:
        before = known.book
    settles = _Head.between(before, book)
    for entry in book.entries[len(before.entries) :]:
        yield _text(_Row(entry=entry, settles=settles))
        settles = None


def _text(row: _Row) -> str:
    with _readable():
        return msgspec.json.encode(row).decode()


# -- Where a ledger is kept: in a file, or in a database -------------------------------------------------------------

Where = str | os.PathLike[str]
"""A file, or the address of a database."""

Kept = BookFile | BookDatabase
"""A book that lasts. Whoever holds ``alone()`` is the only program that reads and writes it."""


def kept_at(where: Where) -> Kept:
    """Return the keeping of a ledger."""
    return BookDatabase(where) if isinstance(where, str) and is_address(where) else BookFile(where)


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


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise ParameterError(
            "a ledger in PostgreSQL needs psycopg: pip install 'pufferfish-privacy[postgresql]'"
        ) from None
    return psycopg
