"""The book of a ledger: what is written, and how two programs and a crash cannot spoil it.

Entries form a chain: each holds a digest of the entry before it, which holds one of the entry before that. The record
of a release shows this digest (``ledger.previous``). One ledger has one entry after each, so two records with one
predecessor tell that an old copy of the ledger was put back, or that two copies of it were used.
"""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from pufferfish._base.durations import is_moment
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.reading import check_path, display_path, failing, leads_nowhere
from pufferfish._base.words import number
from pufferfish._base.writing import (
    check_lock,
    check_writable,
    decode_record,
    read_file,
    record_kind,
    sweep,
    write_whole,
)
from pufferfish._core.numbers.rounding import float_up
from pufferfish.data.rows import RowsBase
from pufferfish.data.sequences import Base, TimeGrid
from pufferfish.errors import ParameterError, RecordError
from pufferfish.fit.model_file import Model
from pufferfish.ledger._reads import ReadGroup
from pufferfish.ledger.subjects import Subjects
from pufferfish.mechanisms import InfluenceBound, bound_of
from pufferfish.mechanisms.mechanism import LEAST_EPSILON, as_epsilon
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.model_class import Theta
from pufferfish.theta.record import Checking, ThetaRecord

__all__ = [
    "LEDGER",
    "AnyBase",
    "Book",
    "BookFile",
    "Entry",
    "book_of",
    "check_book",
    "lock_of",
    "new_nonce",
    "positive",
    "with_digest",
]

FORMAT = "pufferfish-ledger"
VERSION = 5

LEDGER = record_kind("ledger", FORMAT, "a ledger is never replaced; name another file", secret=True)
"""It holds the key of the digests of subjects (:mod:`~pufferfish.ledger.subjects`)."""

AnyBase = Base | RowsBase
"""How a table was read: for chains, or for networks."""

_WAIT = 60.0
"""Seconds to wait for another program that is spending."""


_NONCE = 16
"""Random bytes of a nonce: too many to try."""

Nonce = Annotated[str, msgspec.Meta(pattern=rf"\A[0-9a-f]{{{2 * _NONCE}}}\Z")]
"""A random number that stands in the ledger alone, hexadecimal."""


class Entry(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One release in the book.

    Parameters
    ----------
    number : int
        Its place in the book, from 1.
    nonce : str
        A random number, by which nobody without the ledger can compute the entry's digest.
    previous : str
        Digest of the entry before it; of the ledger as it began, for the first one: see :meth:`Book.last_digest`.
    created : str
        When it was written, UTC; the release came after.
    what : str
        The query in words, or what the user said.
    epsilon : float or None
        What this release alone leaks at most, by its own calibration.
    distance : list of lists of int, or dict of str to these
        How far one record moves the answer when it goes from state x to x', in units; shape (k, k). For a network one
        for every node that is read, by its name.
    scale : str
        Noise scale in the same units, an exact fraction.
    windows : list or None
        Per chain the stretches of steps that were read, each its first step (0-based) and one past its last, in order
        and apart; None for a chain that was not read. None for all of all chains, and for networks.
    reads : list of ReadGroup or None
        Of a table that grows: which steps of whom were read. None for a plan, which may read every step once.
    question : str or None
        Of a table that grows: what was asked, in words, by which rows that it did not read yet are found.
    subjects : str or None
        Which of the ledger's subjects were read: a bit for each, compressed, in base 64; None for all of them.
    release : str or None
        The number, drawn at random, by which a release with several files knows its entry again after a crash.
    step : int
        How far one step, from a record of a chain to the next, moves the answer if it alone is changed, in units.
    where : str or None
        The filter of the rows that were read, where the ledger's table has none; it is for people.
    spent : float
        Leakage of all entries up to this one together: of the subject for whom it is most.
    """

    number: int
    nonce: Nonce
    previous: str
    created: str
    what: str
    epsilon: float | None
    distance: list[list[int]] | dict[str, list[list[int]]]
    scale: str
    windows: list[list[tuple[int, int]] | None] | None
    reads: list[ReadGroup] | None = None
    question: str | None = None
    subjects: str | None = None
    release: str | None = None
    step: int = 0
    where: str | None = None
    spent: float


_Whole = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]

_BEGINNING = ("nonce", "created", "budget", "mechanism")
"""Fields of a book that the digest of its beginning is of."""

_DIGESTED = (
    "nonce",
    "number",
    "previous",
    "created",
    "what",
    "epsilon",
    "distance",
    "scale",
    "step",
    "question",
    "release",
    "spent",
)
"""Fields of an entry that its digest is of: those that tell about the release, not about subjects."""


class ModelOfBook(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a ledger's bound knew of its model besides Θ, as a model's file says it."""

    step: str | None = None
    bins: tuple[float, ...] | None = None
    fitted_on: str | None = None
    checked: Checking | None = None

    @classmethod
    def of(cls, bound: InfluenceBound) -> "ModelOfBook | None":
        """Return it; None where the bound was made of Θ alone."""
        model = bound.model
        if not isinstance(model, Model):
            return None
        return cls(step=model.step, bins=model.bins, fitted_on=model.fitted_on, checked=model.checked)

    def model(self, theta: Theta) -> Model:
        """Return the model again, of the class Θ."""
        return Model(theta=theta, step=self.step, bins=self.bins, fitted_on=self.fitted_on, checked=self.checked)


class Book(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All of a ledger: about chains of these lengths, or about a network's table of so many rows.

    ``grid`` says where the chains of its base begin in time, by which releases of a part are found in them. ``nonce``
    is random, as that of an entry. Where the table ``grows``, chains have no end, ``subjects`` are those who came so
    far, and ``grid`` says how long a step is, and a time that a step begins with.
    """

    format: str = FORMAT
    version: int = VERSION
    digest: str = "0" * 64
    nonce: Nonce
    created: str
    budget: float
    mechanism: str
    settings: dict[str, Any]
    theta: ThetaRecord
    model: ModelOfBook | None = None
    length: list[tuple[_Whole, _Whole]]
    rows: _Whole | None = None
    base: Base | None
    rows_base: RowsBase | None = None
    grid: TimeGrid | None = None
    subjects: Subjects | None = None
    grows: bool = False
    entries: list[Entry]

    @property
    def tied_to(self) -> AnyBase | None:
        """How the table was read; None where that is not known yet."""
        return self.rows_base if self.base is None else self.base

    def last_digest(self) -> str:
        """Return the digest of the last entry, or of the ledger as it began: the next entry names it as ``previous``.

        It is the SHA-256 of what the entry says about its release, of its own ``previous``, and of its nonce. So it
        depends on all entries so far, and two copies of a ledger that book the same in the same second differ. What the
        entry says about subjects is left out: who was read, which steps, and the filter, which may name somebody.
        Records show the digest. The nonce stands in the ledger alone, so that no reader of records can test guesses
        about the rest, such as the note of a release that was never published.
        """
        return self._digest_up_to(len(self.entries))

    def _digest_up_to(self, number: int) -> str:
        """Return the digest of an entry, by its number; for 0 that of the ledger as it began."""
        digested, names = (self.entries[number - 1], _DIGESTED) if number else (self, _BEGINNING)
        # json, not msgspec: a note in memory may be text that UTF-8 cannot write
        content = json.dumps({name: getattr(digested, name) for name in names})
        return hashlib.sha256(content.encode()).hexdigest()

    def check_chain(self, known: int = 0) -> None:
        """Refuse entries after the first ``known`` ones that do not name the entry before them.

        Raises
        ------
        ParameterError
            If one names another.
        """
        for before, entry in enumerate(self.entries[known:], start=known):
            if entry.previous != self._digest_up_to(before):
                named = f"entry {before}" if before else "the ledger as it began"
                raise ParameterError(f"entry {before + 1} does not follow {named}: its digest of that does not fit")

    def with_entry(self, entry: Entry) -> "Book":
        """Return the book with one more entry."""
        return msgspec.structs.replace(self, entries=[*self.entries, entry])

    def with_settled(self, **of_base: Any) -> "Book":
        """Return the book with what a release settles of its base (:meth:`Charging.settled`)."""
        return msgspec.structs.replace(self, **of_base) if of_base else self

    def bound(self, theta: Theta) -> InfluenceBound:
        """Return the bound that the book names, on the class Θ."""
        lengths = {pair: ChainLength(*pair) for pair in set(self.length)}
        length = self.rows if theta.networks else [lengths[pair] for pair in self.length]
        given: Any = theta if self.model is None else self.model.model(theta)
        return bound_of(self.mechanism, given, length, self.settings)


def new_nonce() -> str:
    """Return the random number of a new book, or of a new entry."""
    return secrets.token_hex(_NONCE)


def size_of(bound: InfluenceBound) -> dict[str, Any]:
    """Return the fields of a book that say how large the whole table is."""
    if bound.networks:
        return {"length": [], "rows": bound.rows}
    return {"length": [(chain.steps, chain.records) for chain in bound.length], "rows": None}


def fields_of_base(base: AnyBase | None) -> dict[str, Any]:
    """Return the fields of a book that hold a base; groups of its records are a matter of each release."""
    base = None if base is None else replace(base, by=None)
    rows = isinstance(base, RowsBase)
    return {"base": None if rows else base, "rows_base": base if rows else None}


def filter_of(data: Any, base: AnyBase | None) -> str | None:
    """Return the filter of data that are a part of a base; none where the base is all of them, or has it too."""
    where = None if data is None or base is None else data.base.where
    return None if base is not None and where == base.where else where


_ANEW = (
    "make a new ledger and charge all releases of the old one to it first (ledger.spend in Python), because a new one "
    "counts from 0, and what two ledgers spent is no bound on both together"
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
            "it was changed since it was written, by hand or by a fault of the disk (its digest does not fit). Undo "
            "the change; if that cannot be done, take the whole budget as spent"
        )


def book_of(content: bytes, source: str) -> Book:
    """Return the book that the content of a file holds, validated.

    Raises
    ------
    RecordError
        If it is none, or was changed since it was written; ``source`` is its name in messages.
    """
    return decode_record(
        content, source, Book, format_=FORMAT, version=VERSION, complete=True, check=_check_digest, anew=_ANEW
    )


def lock_of(path: str | os.PathLike[str]) -> str:
    """Return the name of the lock file of a ledger."""
    return f"{os.fspath(path)}.lock"


class BookFile:
    """A book on disk. Whoever holds :meth:`alone` is the only program that reads and writes it.

    Parameters
    ----------
    path : path-like
        The file. A lock file of the same name with ``.lock`` is kept beside it.

    Raises
    ------
    RecordError
        If the path leads nowhere, such as a loop of links.
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
        """Keep every other program out; a crash lets them in again.

        Raises
        ------
        RecordError
            If another program keeps the book for longer than a minute, or the folder cannot be written.
        """
        from filelock import FileLock, Timeout

        check_writable(self.path, LEDGER, overwrite=True)
        path = Path(lock_of(self.path))
        lock = FileLock(path, timeout=_WAIT)
        try:
            check_lock(path, f"the ledger {display_path(self._given)}")
            lock.acquire()
        except Timeout:
            raise RecordError(
                f"another program has kept the ledger {display_path(self._given)} for {_WAIT:g} s: try again"
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
        """Read the book, validated.

        Raises
        ------
        RecordError
            If it is missing, damaged, of another version, or has a second name: then a write would leave two books.
        """
        with failing("cannot read", self._given):
            names = self._names()
            if names > 1:  # of one who was killed when it had just given the ledger its name
                sweep(self.path.parent)
                names = self._names()
        if names > 1:
            raise RecordError(
                f"the ledger {display_path(self._given)} has {names} names (hard links), which would become two "
                "books: delete all of them but one"
            )
        return book_of(read_file(self.path), display_path(self._given))

    def _names(self) -> int:
        return self.path.stat().st_nlink if self.path.is_file() else 1

    def write(self, ledger_file: Book, *, new: bool = False) -> None:
        """Write the book in one step; when this returns, it is on the disk.

        Raises
        ------
        RecordError
            If it cannot be written, or could not be read again; or a new one would replace a file.
        """
        ledger_file = msgspec.structs.replace(ledger_file, digest=_NO_DIGEST.decode())
        try:
            content = msgspec.json.format(msgspec.json.encode(ledger_file), indent=1) + b"\n"
            again = msgspec.json.decode(content, type=Book)
        except (msgspec.MsgspecError, UnicodeError, TypeError) as error:
            raise RecordError(f"the entry could not be read again, and was not written: {error}") from error
        if again != ledger_file:
            raise RecordError("the entry could not be read again as it is, and was not written")
        write_whole(self.path, with_digest(content), LEDGER, overwrite=not new)


# -- What is checked when a ledger's book is opened ------------------------------------------------------------------

_SAME = 1e-6
"""Leakage computed twice may differ by this share: a search that starts elsewhere ends elsewhere, a little."""

_FALLS = 1e-3
"""By what share a proof for more losses may come out below one for fewer: searches end where they are near enough."""

_MOST_CHECKED = 16
"""Entries of a book whose leakage is computed again when it is opened: that of long books takes time."""


def check_book(ledger_file: Book, leakage: Callable[[Sequence[Entry]], float], *, known: int = 0) -> None:
    """Refuse a book whose entries no ledger wrote, or which do not say what they leak.

    Parameters
    ----------
    book : Book
        What a file holds.
    leakage : callable
        What some entries leak together.
    known : int, default 0
        So many of the first entries are known, and neither their leakage nor their chain is computed again.

    Raises
    ------
    ParameterError
        If no ledger wrote it.
    """
    entries, most = ledger_file.entries, float_up(Fraction(repr(ledger_file.budget)))
    if not is_moment(ledger_file.created):
        raise ParameterError(f"created is {ledger_file.created!r}, expected a time with its zone")
    before = 0.0
    for place, entry in enumerate(entries, start=1):
        if entry.number != place:
            raise ParameterError(f"entry {place} has the number {entry.number}")
        if not is_moment(entry.created):
            raise ParameterError(f"entry {place} was created at {entry.created!r}, expected a time with its zone")
        if not 0 <= entry.spent <= most:
            raise ParameterError(f"entry {place} says that {entry.spent} are spent, of {number(ledger_file.budget, 6)}")
        if entry.spent < before * (1 - _FALLS):
            raise ParameterError(
                f"entry {place} says {entry.spent:.6g} are spent, and the entry before it {before:.6g}: what is "
                "spent never falls"
            )
        before = entry.spent
    free = max((entry.number for entry in entries if entry.spent == 0), default=0)
    numbers = {round(n) for n in np.linspace(known + 1, len(entries), min(_MOST_CHECKED, len(entries) - known))}
    for last in sorted(numbers | ({free} if free > known else set())):
        spent, stated = leakage(entries[:last]), entries[last - 1].spent
        if abs(spent - stated) > _SAME * stated:
            raise ParameterError(f"entry {last} says {stated:.6g} are spent, and up to it leak {spent:.6g}")
    ledger_file.check_chain(known)


def positive(value: Any, name: str) -> float:
    """Return a budget, or a part of one; refused where it is no finite number above 0."""
    try:
        return as_epsilon(value)
    except ParameterError:
        raise ParameterError(
            f"{name} is {value!r}, expected a finite number of at least {number(LEAST_EPSILON)}, such as 1.0"
        ) from None
