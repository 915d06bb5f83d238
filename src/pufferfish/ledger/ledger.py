"""The ledger: one budget for many releases of the same records.

Losses of releases add, record by record, whatever the query; leakage does not. So a ledger holds an influence bound,
adds up the record-level losses d_t(x, x') of everything released from one table, and asks the bound once what the sum
leaks. Queries and noise may be chosen after earlier answers were seen: for a fixed sequence of outputs the density
is the product of the releases' densities, and its loss the sum of theirs. They may not depend on the data.

A ledger belongs to one **base**: the records, states, filter and bins of one table. What is read from a part of it (a
window of time, rows that a filter keeps) or in coarser states is a loss on the base too, 0 where nothing is read.
Anything else is refused.
"""

import math
import os
import re
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import msgspec

from pufferfish.calibration import Calibration
from pufferfish.core.inversion import bracket
from pufferfish.core.rounding import float_up
from pufferfish.data.sequences import Base, Sequences
from pufferfish.errors import BudgetExceeded, ParameterError, PufferfishError, RecordError, ReleaseRefused
from pufferfish.ledger.book import Book, BookFile, Entry
from pufferfish.ledger.charges import Charge, as_windows, charge_of, total_loss, windows_read
from pufferfish.ledger.ties import check_base, check_lengths, check_start, groups_of
from pufferfish.mechanisms import bound_of
from pufferfish.mechanisms.base import InfluenceBound
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.model_file import ThetaRecord
from pufferfish.models.lengths import ChainLength
from pufferfish.queries import Query

__all__ = ["Ledger"]

_SAME = 1e-6
"""Leakage computed twice may differ by this share: a search that starts elsewhere ends elsewhere, a little."""


class Ledger:
    """A budget for all releases of one table.

    Parameters
    ----------
    bound : InfluenceBound
        What proves how much the releases leak together: a mechanism on Θ and the lengths of the whole table. It need
        not be the mechanism that calibrated them.
    budget : float
        The most that they may leak together, ε in nats.
    base : Base, optional
        How the table was read, ``sequences.base``. By default the first data that are spent on settle it.

    Raises
    ------
    ReleaseRefused
        If the bound does not compose.
    ParameterError
        If the budget is not a positive finite number.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> bound = pf.LeakagePropagation(chain, length=100)
    >>> ledger = Ledger(bound, budget=1.0)
    >>> entry = ledger.spend(bound.calibrate(pf.Count(1), epsilon=0.3))
    >>> entry = ledger.spend(ledger.calibrate(pf.Histogram(), up_to=0.8))
    >>> round(ledger.spent, 4), round(ledger.remaining, 4)
    (0.8, 0.2)
    """

    def __init__(self, bound: InfluenceBound, budget: float, *, base: Base | None = None) -> None:
        _check_bound(bound)
        budget = _positive(budget, "budget")
        self._bound = bound
        self._file: BookFile | None = None
        self._lock = threading.RLock()
        self._book = Book(
            created=_now(),
            budget=budget,
            mechanism=bound.name,
            settings=bound.settings,
            theta=ThetaRecord.of(bound.theta),
            length=[(chain.steps, chain.records) for chain in bound.length],
            base=base,
            entries=[],
        )

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Ledger":
        """Open a ledger's file; it stays in the file, and other programs may spend from it too.

        Raises
        ------
        RecordError
            If the file is missing, damaged, of another version, or contradicts itself.
        """
        file = BookFile(path)
        book = file.read()
        try:
            length = [ChainLength(steps, records) for steps, records in book.length]
            bound = bound_of(book.mechanism, book.theta.theta(), length, book.settings)
            ledger = cls(bound, book.budget, base=book.base)
            ledger._check(book)
        except (PufferfishError, ValueError, TypeError) as error:
            raise RecordError(f"{path} holds no valid ledger: {error}") from error
        ledger._file, ledger._book = file, book
        return ledger

    def __repr__(self) -> str:
        where = "" if self._file is None else f", {str(self._file.path)!r}"
        return f"Ledger({self._bound.title}, spent {self.spent:.6g} of {self.budget:g}{where})"

    def __reduce__(self) -> Any:
        if self._file is None:
            raise TypeError("a copy of a ledger would spend the same budget twice: save it, and open the file")
        return Ledger.open, (self._file.path,)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger to a new file; from now on everything spent is on the disk before ``spend`` returns.

        Raises
        ------
        RecordError
            If the file exists (a ledger is never replaced) or cannot be written, or the ledger has a file already.
        """
        with self._lock:
            if self._file is not None:
                raise RecordError(f"this ledger is kept in {self._file.path}: a copy would spend the same budget twice")
            book = self._book
            again = bound_of(book.mechanism, self._bound.theta, self._bound.length, book.settings)
            if type(again) is not type(self._bound):
                raise RecordError(
                    f"a ledger's file names its mechanism, and {type(self._bound).__name__} is none of this package's"
                )
            file = BookFile(path)
            with file.alone():
                if file.path.exists():
                    raise RecordError(f"{path} exists, and a ledger is never replaced: open it, or name another file")
                file.write(book)
            self._file = file

    @property
    def bound(self) -> InfluenceBound:
        """What proves how much the releases leak together."""
        return self._bound

    @property
    def budget(self) -> float:
        """The most that all releases may leak together, in nats."""
        return self._book.budget

    @property
    def base(self) -> Base | None:
        """How the table was read; None until data were spent on."""
        return self._now_in_file().base

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The releases so far, first to last."""
        return tuple(self._now_in_file().entries)

    @property
    def spent(self) -> float:
        """What all releases so far leak together at most, in nats."""
        book = self._now_in_file()
        return book.entries[-1].spent if book.entries else 0.0

    @property
    def remaining(self) -> float:
        """Budget less what is spent. The next release costs less or more than its own ε: ask :meth:`leakage_with`."""
        return max(0.0, self.budget - self.spent)

    def leakage_with(self, what: Any, *, window: Any = None, coarsening: Mapping[Any, Any] | None = None) -> float:
        """Return what would be spent after one more release; spends nothing. Parameters as for :meth:`spend`."""
        book = self._now_in_file()
        charge = self._charge(book, what, None, window, coarsening)
        return self._leakage([*(entry.charge for entry in book.entries), charge])

    def calibrate(
        self, query: Query, *, up_to: float | None = None, length: Any = None, window: Any = None
    ) -> Calibration:
        """Least noise with which a query can be released next, so that all releases leak at most ``up_to``.

        Parameters
        ----------
        query : Query
            What is asked next.
        up_to : float, optional
            What may be spent after it; by default the whole budget.
        length : int, ChainLength, or sequence of these, optional
            Lengths of the data that it reads, ``data.length``, where those are a part of the base.
        window : optional
            As for :meth:`spend`.

        Returns
        -------
        Calibration
            Its ``epsilon`` is what this release alone leaks.

        Raises
        ------
        BudgetExceeded
            If no noise is enough.
        """
        level = self.budget if up_to is None else _positive(up_to, "up_to")
        if level > self.budget:
            raise BudgetExceeded(f"up_to is {level:g}, above the budget of {self.budget:g}")
        spent = self.spent
        if spent >= level:
            raise BudgetExceeded(
                f"{spent:.6g} of the budget of {self.budget:g} are spent already: up_to has to be above that"
            )
        bound = self._bound
        part = bound if length is None else bound.of(bound.theta, length, **bound.settings)
        if length is not None:
            check_start(bound.chain_class, as_windows(window, bound.length))
        left = level - spent
        alone = part.calibrate(query, left)

        def added(scale: float) -> float:
            return self.leakage_with(replace(alone, unit_scale=scale), window=window) - spent

        found = replace(
            alone, unit_scale=bracket(added, left, alone.unit_scale, tolerance=1e-5, from_above=False).enough
        )
        if not found.unit_scale < math.inf:
            raise BudgetExceeded(f"{spent:.6g} are spent, and what is left to {level:g} is too little for any noise")
        leakage, witness = part.prove(found.record_loss)
        return found if witness is None else replace(found, epsilon=leakage, witness=witness)

    def spend(
        self,
        what: Any,
        *,
        data: Sequences | None = None,
        window: Any = None,
        coarsening: Mapping[Any, Any] | None = None,
        note: str | None = None,
    ) -> Entry:
        """Check that one more release fits the budget, and write it into the book; the release comes after.

        Parameters
        ----------
        what : Calibration, float or array_like
            The release: calibrated noise, or its record-level loss in nats (a number, or shape (k, k)).
        data : Sequences, optional
            What it reads, to be checked against the base.
        window : (int, int) or list of these, optional
            Steps of the chain that the release reads, first (0-based) and one past the last; for several chains one
            entry per chain, None for a chain that is not read. By default all.
        coarsening : mapping, optional
            For each state of the base the state of the release that it counts as; found by itself where both are bins.
        note : str, optional
            What to write into the book.

        Returns
        -------
        Entry
            What was written.

        Raises
        ------
        BudgetExceeded
            If it does not fit; nothing is spent.
        ReleaseRefused
            If the release does not compose, or belongs to another base; nothing is spent.
        """
        if note is not None and not isinstance(note, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ParameterError(f"note is {note!r}, expected text")
        with self._alone():
            book = self._book
            charge = self._charge(book, what, data, window, coarsening)
            after = self._leakage([*(entry.charge for entry in book.entries), charge])
            if not after <= float_up(Fraction(repr(book.budget))):
                spent = book.entries[-1].spent if book.entries else 0.0
                raise BudgetExceeded(
                    f"this release would raise what is spent from {spent:.6g} to {after:.6g}, above the budget "
                    f"of {book.budget:g}; ledger.calibrate(query), or --up-to, finds the least noise that fits"
                )
            entry = Entry(
                number=len(book.entries) + 1,
                created=_now(),
                what=note or _in_words(what),
                epsilon=what.epsilon if isinstance(what, Calibration) else None,
                distance=[list(row) for row in charge.distance],
                scale=str(charge.scale),
                windows=None if charge.windows is None else list(charge.windows),
                spent=min(after, book.budget),
            )
            base = data.base if data is not None and book.base is None else book.base
            changed = msgspec.structs.replace(book, base=base, entries=[*book.entries, entry])
            if self._file is not None:
                self._file.write(changed)
            self._book = changed
            return entry

    def _leakage(self, charges: Sequence[Charge]) -> float:
        return self._bound.leakage(total_loss(charges, self._bound.length, self._bound.theta.k))

    def _charge(
        self, book: Book, what: Any, data: Sequences | None, window: Any, coarsening: Mapping[Any, Any] | None
    ) -> Charge:
        theta, length = self._bound.theta, self._bound.length
        windows = as_windows(window, length)
        if isinstance(what, Calibration):
            if not what.composes:
                raise ReleaseRefused(
                    f"{what.title} calibrates noise to one query, and its epsilon does not add to others; charge the "
                    "same release at its record-level loss, which adds: ledger.spend(calibration.record_loss)"
                )
            check_lengths(what.length, length, None, "the calibration")
            windows = windows_read(what, windows, length)
            found = what.theta.states
        else:
            if coarsening is not None:
                raise ParameterError("coarsening goes with a calibration: a loss is given on the ledger's own states")
            found = theta.states
            strange = [] if data is None or data.base.bins else [s for s in data.states if s not in found]
            if strange:
                raise ReleaseRefused(
                    f"the data have the state {strange[0]!r}, and the ledger's states are {', '.join(found)}"
                )
        groups = groups_of(theta.states, book.base, found, data, coarsening)
        if data is not None:
            if book.base is None and (groups or windows or sorted(data.length) != sorted(length)):
                raise ReleaseRefused(
                    "the ledger does not know its base yet, and these data are not all of it: make the ledger with "
                    "base=sequences.base of the whole table"
                )
            check_base(data.base, book.base)
            check_lengths(data.length, length, windows, "the data")
        return charge_of(what, theta.k, windows, groups)

    def _now_in_file(self) -> Book:
        """Return the book as it is now; a file may have grown by other programs' releases."""
        with self._lock:
            if self._file is not None:
                self._take(self._file.read())
            return self._book

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Hold the book, up to date, with every other thread and program kept out."""
        with self._lock:
            if self._file is None:
                yield
                return
            with self._file.alone():
                self._take(self._file.read())
                yield

    def _check(self, book: Book) -> None:
        """Refuse a book whose entries no ledger wrote, or whose last one does not say what they leak."""
        check_entries(book, self._bound)
        if book.entries:
            spent, stated = self._leakage([entry.charge for entry in book.entries]), book.entries[-1].spent
            if abs(spent - stated) > _SAME * stated:
                raise ParameterError(f"its last entry says {stated:.6g} are spent, its entries leak {spent:.6g}")

    def _take(self, book: Book) -> None:
        known = self._book
        fixed = ("budget", "mechanism", "settings", "theta", "length")
        same = all(getattr(book, name) == getattr(known, name) for name in fixed)
        grown = book.entries[: len(known.entries)] == known.entries and known.base in (None, book.base)
        if not (same and grown):
            raise RecordError("the ledger's file was changed by hand or replaced by another: open it anew")
        try:
            if len(book.entries) > len(known.entries):
                self._check(book)
        except (PufferfishError, ValueError, TypeError) as error:
            raise RecordError(f"the ledger's file was changed by hand: {error}") from error
        self._book = book


def _check_bound(bound: Any) -> None:
    if not isinstance(bound, InfluenceBound):
        raise ParameterError(
            f"bound is {type(bound).__name__}, expected a mechanism such as LeakagePropagation(theta, length)"
        )
    if not bound.composes:
        raise ReleaseRefused(f"{bound.title} does not compose: use LeakagePropagation, or another influence bound")
    if not bound.theta.chains:
        raise ReleaseRefused(f"a ledger covers Markov chains, and Θ is a class of {bound.theta.kind}")
    if bound.theta.stands_for_more:
        raise ReleaseRefused("a ledger needs theta, whose states are known, not pi_min and eigengap alone")


def check_entries(book: Book, bound: InfluenceBound) -> None:
    """Refuse entries that no ledger wrote.

    Raises
    ------
    ParameterError, ValueError
        If a number is out of order or out of range.
    """
    k = bound.theta.k
    for place, entry in enumerate(book.entries, start=1):
        distance = entry.distance
        square = len(distance) == k and all(len(row) == k for row in distance)
        if entry.number != place or not square or min(map(min, distance)) < 0 or not max(map(max, distance)) > 0:
            raise ParameterError(f"entry {place} has another number, or distances that are none")
        if any(distance[x][x] for x in range(k)):
            raise ParameterError(f"entry {place} has a distance from a state to itself")
        if re.fullmatch(r"[0-9]+(/[1-9][0-9]*)?", entry.scale) is None or not entry.charge.scale > 0:
            raise ParameterError(f"entry {place} has the scale {entry.scale!r}, expected a positive fraction")
        if not 0 < entry.spent <= float_up(Fraction(repr(book.budget))):
            raise ParameterError(f"entry {place} says that {entry.spent} are spent, of {book.budget:g}")
        if entry.windows is not None:
            as_windows(list(entry.windows), bound.length)


def _positive(value: Any, name: str) -> float:
    try:
        return as_epsilon(value)
    except ParameterError:
        raise ParameterError(f"{name} is {value!r}, expected a positive finite number such as 1.0") from None


def _in_words(what: Any) -> str:
    if isinstance(what, Calibration):
        return f"{what.query.kind}: {what.linear.description}"
    return "a release of given record-level loss"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
