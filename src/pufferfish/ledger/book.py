"""The book of a ledger: what is written of each release, and what is checked when it is read.

Entries form a chain: each holds a digest of the entry before it, which holds one of the entry before that. The record
of a release shows this digest (``ledger.previous``). One ledger has one entry after each, so two records with one
predecessor tell that an old copy of the ledger was put back, or that two copies of it were used.
"""

import hashlib
import json
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any

import msgspec
import numpy as np

from pufferfish._base.durations import is_moment
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.words import number
from pufferfish._core.numbers.rounding import float_up
from pufferfish.data.rows import RowsBase
from pufferfish.data.sequences import Base, TimeGrid
from pufferfish.errors import ParameterError
from pufferfish.fit.model_file import Model
from pufferfish.ledger._reads import ReadGroup
from pufferfish.ledger.subjects import Subjects
from pufferfish.mechanisms import InfluenceBound, bound_of
from pufferfish.mechanisms.mechanism import LEAST_EPSILON, as_epsilon
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.model_class import Theta
from pufferfish.theta.record import Checking, ThetaRecord

FORMAT = "pufferfish-ledger"
VERSION = 6

AnyBase = Base | RowsBase
"""How a table was read: for chains, or for networks."""

_NONCE = 16
"""Random bytes of a nonce: too many to try."""

Nonce = Annotated[str, msgspec.Meta(pattern=rf"\A[0-9a-f]{{{2 * _NONCE}}}\Z")]
"""A random number that stands in the ledger alone, hexadecimal."""


class Entry(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One release in the book; or, with ``theta``, another class Θ."""

    number: int
    """Its place in the book, from 1."""
    nonce: Nonce
    """A random number, by which nobody without the ledger can compute the entry's digest."""
    previous: str
    """Digest of the entry before it, or of the ledger as it began: see :meth:`Book.last_digest`."""
    created: str
    """When it was written, UTC; the release came after."""
    what: str
    """The query in words, or what the user said."""
    epsilon: float | None
    """What this release alone leaks at most, by its own calibration."""
    distance: list[list[int]] | dict[str, list[list[int]]]
    """How far one record moves the answer when it goes from state x to x', in units, (k, k); of a network by node."""
    scale: str
    """Noise scale in the same units, an exact fraction."""
    windows: list[list[tuple[int, int]] | None] | None
    """Per chain the stretches of steps that were read, each its first step (0-based) and one past its last, in order
    and apart; None for a chain that was not read. None for all of all chains, and for networks.
    """
    reads: list[ReadGroup] | None = None
    """Of a table that grows: which steps of whom were read. None for a plan, which may read every step once."""
    question: str | None = None
    """Of a table that grows: what was asked, in words, by which rows that it did not read yet are found."""
    subjects: str | None = None
    """Which of the ledger's subjects were read: a bit for each, compressed, in base 64; None for all of them."""
    release: str | None = None
    """The number, drawn at random, by which a release with several files knows its entry again after a crash."""
    step: int = 0
    """How far one step, from a record of a chain to the next, moves the answer if it alone is changed, in units."""
    where: str | None = None
    """The filter of the rows that were read, where the ledger's table has none; it is for people."""
    theta: ThetaRecord | None = None
    model: "ModelOfBook | None" = None
    """Of an entry that is no release: the class Θ under which all releases are charged from now on, the earlier too."""
    spent: float
    """Leakage of all entries up to this one together: of the subject for whom it is most."""

    @classmethod
    def of_change(cls, theta: ThetaRecord, model: "ModelOfBook | None", **more: Any) -> "Entry":
        """Return the entry of another Θ."""
        return cls(**more, theta=theta, model=model, epsilon=None, distance=[], scale="1", windows=None)


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
    "theta",
    "model",
    "spent",
)
"""Fields of an entry that its digest is of: those that tell about the release, not about subjects."""

_OF_CHANGE = ("number", "nonce", "previous", "created", "what", "theta", "model", "spent")
"""Fields of an entry of another Θ."""


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
    def spent(self) -> float:
        """What all releases so far leak together at most, in nats."""
        return self.entries[-1].spent if self.entries else 0.0

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
        said = {name: getattr(digested, name) for name in names}
        content = json.dumps(said, default=msgspec.to_builtins)
        return hashlib.sha256(content.encode()).hexdigest()

    def check_chain(self, known: int = 0) -> None:
        """Refuse entries after the first ``known`` ones that do not name the entry before them."""
        for before, entry in enumerate(self.entries[known:], start=known):
            if entry.previous != self._digest_up_to(before):
                named = f"entry {before}" if before else "the ledger as it began"
                raise ParameterError(
                    f"entry {before + 1} does not follow {named}: its digest of the entry before is different"
                )

    def with_entry(self, entry: Entry) -> "Book":
        """Return the book with one more entry."""
        return msgspec.structs.replace(self, entries=[*self.entries, entry])

    def bound(self, theta: Theta, model: ModelOfBook | None) -> InfluenceBound:
        """Return the bound that the book names, on the class Θ and what is known of its model."""
        lengths = {pair: ChainLength(*pair) for pair in set(self.length)}
        length = self.rows if theta.networks else [lengths[pair] for pair in self.length]
        given: Any = theta if model is None else model.model(theta)
        return bound_of(self.mechanism, given, length, self.settings)


def new_nonce() -> str:
    """Return the random number of a new book, or of a new entry."""
    return secrets.token_hex(_NONCE)


def fields_of_base(base: AnyBase | None) -> dict[str, Any]:
    """Return the fields of a book that hold a base; groups of its records are a matter of each release."""
    base = None if base is None else replace(base, by=None)
    rows = isinstance(base, RowsBase)
    return {"base": None if rows else base, "rows_base": base if rows else None}


# -- What is checked when a ledger's book is opened ------------------------------------------------------------------

_SAME = 1e-6
"""Leakage computed twice may differ by this share: a search that starts elsewhere ends elsewhere, a little."""

_FALLS = 1e-3
"""By what share a proof for more losses may come out below one for fewer: searches end where they are near enough."""

_MOST_CHECKED = 16
"""Entries of a book whose leakage is computed again when it is opened: that of long books takes time."""


def check_book(book: Book, leakage: Callable[[Sequence[Entry]], float], *, known: int = 0) -> None:
    """Refuse a book that no ledger wrote, or that does not say what it leaks; ``known`` entries are believed."""
    entries, most = book.entries, float_up(Fraction(repr(book.budget)))
    if not is_moment(book.created):
        raise ParameterError(f"created is {book.created!r}, expected a time with its zone")
    before = 0.0
    for place, entry in enumerate(entries, start=1):
        if entry.number != place:
            raise ParameterError(f"entry {place} has the number {entry.number}")
        if not is_moment(entry.created):
            raise ParameterError(f"entry {place} was created at {entry.created!r}, expected a time with its zone")
        if not 0 <= entry.spent <= (most if entry.theta is None else math.inf):
            raise ParameterError(f"entry {place} says that {entry.spent} are spent, of {number(book.budget, 6)}")
        if entry.spent < before * (1 - _FALLS):
            raise ParameterError(
                f"entry {place} says {entry.spent:.6g} are spent, and the entry before it {before:.6g}: what is "
                "spent never falls"
            )
        before = entry.spent
        if entry.theta is not None and entry != Entry.of_change(**{name: getattr(entry, name) for name in _OF_CHANGE}):
            raise ParameterError(f"entry {place} changes Θ, and says what only a release does")
    free = max((entry.number for entry in entries if entry.spent == 0), default=0)
    numbers = {round(n) for n in np.linspace(known + 1, len(entries), min(_MOST_CHECKED, len(entries) - known))}
    for last in sorted(numbers | ({free} if free > known else set())):
        spent, stated = leakage(entries[:last]), entries[last - 1].spent
        if abs(spent - stated) > _SAME * stated:
            raise ParameterError(f"entry {last} says {stated:.6g} are spent, and up to it leak {spent:.6g}")
    book.check_chain(known)


def positive(value: Any, name: str) -> float:
    """Return a budget, or a part of one, refused where it is no finite number above 0."""
    try:
        return as_epsilon(value)
    except ParameterError:
        raise ParameterError(
            f"{name} is {value!r}, expected a finite number of at least {number(LEAST_EPSILON)}, such as 1.0"
        ) from None
