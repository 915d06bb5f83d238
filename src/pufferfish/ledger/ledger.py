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
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pufferfish.calibration import Calibration
from pufferfish.core.inversion import bracket
from pufferfish.data.bins import bin_labels
from pufferfish.data.sequences import Base, Sequences
from pufferfish.errors import BudgetExceeded, ParameterError, PufferfishError, RecordError, ReleaseRefused
from pufferfish.ledger.book import Book, BookFile, Entry
from pufferfish.ledger.charges import Charge, Windows, as_windows, charge_of, total_loss
from pufferfish.mechanisms import bound_of
from pufferfish.mechanisms.base import InfluenceBound, as_epsilon
from pufferfish.model_file import ThetaRecord
from pufferfish.models.lengths import ChainLength
from pufferfish.queries import Query

__all__ = ["Ledger"]


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
        try:
            budget = as_epsilon(budget)
        except ParameterError:
            raise ParameterError(f"budget is {budget!r}, expected a positive finite number such as 1.0") from None
        self._bound = bound
        self._file: BookFile | None = None
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
            for entry in book.entries:
                _check_entry(entry, bound)
        except (PufferfishError, ValueError, TypeError, ZeroDivisionError) as error:
            raise RecordError(f"{path} holds no valid ledger: {error}") from error
        ledger._file, ledger._book = file, book
        return ledger

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger to a new file; from now on everything spent is on the disk before ``spend`` returns.

        Raises
        ------
        RecordError
            If the file exists (a ledger is never replaced) or cannot be written, or the ledger has a file already.
        """
        if self._file is not None:
            raise RecordError(f"this ledger is kept in {self._file.path}: a copy would spend the same budget twice")
        file = BookFile(path)
        with file.alone():
            if Path(path).exists():
                raise RecordError(f"{path} exists, and a ledger is never replaced: open it, or name another file")
            file.write(self._book)
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
        return self.budget - self.spent

    def leakage_with(self, what: Any, *, window: Any = None, coarsening: Mapping[Any, Any] | None = None) -> float:
        """Return what would be spent after one more release; spends nothing. Parameters as for :meth:`spend`."""
        charge = self._charge(what, None, window, coarsening)
        return self._leakage([*(entry.charge for entry in self.entries), charge])

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
        level = self.budget if up_to is None else as_epsilon(up_to)
        if level > self.budget:
            raise BudgetExceeded(f"up_to is {level:g}, above the budget of {self.budget:g}")
        spent = self.spent
        if spent >= level:
            raise BudgetExceeded(f"{spent:.6g} are spent already, and no noise makes a release cost nothing")
        bound = self._bound
        part = bound if length is None else bound.of(bound.theta, length, **bound.settings)
        alone = part.calibrate(query, level)

        def leakage(scale: float) -> float:
            return self.leakage_with(replace(alone, unit_scale=scale), window=window)

        # what is left over counts: near the level a share of the level itself would be too coarse
        tolerance = max(1e-6 * (level - spent) / level, 1e-12)
        scale = bracket(leakage, level, alone.unit_scale, tolerance=tolerance, from_above=False).enough
        if not scale < math.inf:
            raise BudgetExceeded(f"{spent:.6g} of {level:g} are spent, and what is left is too little for any noise")
        return _with_noise(alone, scale)

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
        with self._alone():
            charge = self._charge(what, data, window, coarsening)
            after = self._leakage([*(entry.charge for entry in self._book.entries), charge])
            if not after <= self.budget:
                raise BudgetExceeded(
                    f"this release would raise what is spent from {self.spent:.6g} to {after:.6g}, above the budget "
                    f"of {self.budget:g}; ledger.calibrate(query), or --up-to, finds the least noise that fits"
                )
            entry = Entry(
                number=len(self._book.entries) + 1,
                created=_now(),
                what=note or _in_words(what),
                epsilon=what.epsilon if isinstance(what, Calibration) else None,
                distance=[list(row) for row in charge.distance],
                scale=str(charge.scale),
                windows=None if charge.windows is None else list(charge.windows),
                spent=after,
            )
            base = self._book.base if data is None or self._book.base is not None else data.base
            self._commit([*self._book.entries, entry], base)
            return entry

    def _leakage(self, charges: Sequence[Charge]) -> float:
        return self._bound.leakage(total_loss(charges, self._bound.length, self._bound.theta.k))

    def _charge(self, what: Any, data: Sequences | None, window: Any, coarsening: Mapping[Any, Any] | None) -> Charge:
        windows = as_windows(window, self._bound.length)
        states = self._bound.theta.states
        groups: list[int] | None = None
        if isinstance(what, Calibration):
            if not what.composes:
                raise ReleaseRefused(
                    f"{what.title} calibrates noise to one query, and its epsilon does not add to others; charge the "
                    "same release at its record-level loss, which adds: ledger.spend(calibration.record_loss)"
                )
            groups = _groups(states, self._book.base, what.theta.states, data, coarsening)
            _check_lengths(what.length, self._bound.length, None, "the calibration")
        if data is not None:
            if self._book.base is None and (groups or windows or sorted(data.length) != sorted(self._bound.length)):
                raise ReleaseRefused(
                    "the ledger does not know its base yet, and these data are not all of it: make the ledger with "
                    "base=sequences.base of the whole table"
                )
            _check_base(data.base, self._book.base)
            _check_lengths(data.length, self._bound.length, windows, "the data")
        return charge_of(what, len(states), windows, groups)

    def _now_in_file(self) -> Book:
        """Return the book as it is now; a file may have grown by other programs' releases."""
        if self._file is not None:
            self._take(self._file.read())
        return self._book

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Hold the book, up to date, with every other program kept out."""
        if self._file is None:
            yield
            return
        with self._file.alone():
            self._take(self._file.read())
            yield

    def _take(self, book: Book) -> None:
        known = self._book
        same = all(
            getattr(book, name) == getattr(known, name)
            for name in ("budget", "mechanism", "settings", "theta", "length")
        )
        if not same or book.entries[: len(known.entries)] != known.entries:
            raise RecordError("the ledger's file was changed by hand or replaced by another: open it anew")
        for entry in book.entries[len(known.entries) :]:
            _check_entry(entry, self._bound)
        self._book = book

    def _commit(self, entries: list[Entry], base: Base | None) -> None:
        book = self._book
        changed = Book(
            created=book.created,
            budget=book.budget,
            mechanism=book.mechanism,
            settings=book.settings,
            theta=book.theta,
            length=book.length,
            base=base,
            entries=entries,
        )
        if self._file is not None:
            self._file.write(changed)
        self._book = changed


def _check_bound(bound: Any) -> None:
    if not isinstance(bound, InfluenceBound):
        raise ParameterError(
            f"bound is {type(bound).__name__}, expected a mechanism such as LeakagePropagation(theta, length)"
        )
    if not bound.composes:
        raise ReleaseRefused(f"{bound.title} does not compose: use LeakagePropagation, or another influence bound")
    if bound.theta.stands_for_more:
        raise ReleaseRefused("a ledger needs theta, whose states are known, not pi_min and eigengap alone")


def _check_entry(entry: Entry, bound: InfluenceBound) -> None:
    """Refuse an entry that no ledger wrote."""
    k, charge = bound.theta.k, entry.charge
    square = len(charge.distance) == k and all(len(row) == k for row in charge.distance)
    if not square or min(min(row) for row in charge.distance) < 0 or not charge.scale > 0 or not entry.spent >= 0:
        raise ParameterError("an entry's distances or scale are out of range")
    if charge.windows is not None:
        as_windows(list(charge.windows), bound.length)


def _check_base(found: Base, base: Base | None) -> None:
    """Refuse data that were not read from the same table in the same way; a filter on an unfiltered base is a part."""
    if base is None:
        return
    for name, remedy in _TIED.items():
        here, there = getattr(found, name), getattr(base, name)
        if here == there or (name == "where" and there is None):
            continue
        raise ReleaseRefused(
            f"the ledger is tied to another base: its {name} is {there!r}, and that of the data is {here!r}; {remedy}"
        )


_TIED = {
    "source": "losses add over the same records only: another table needs a ledger of its own",
    "state": "another column needs a ledger of its own",
    "subject": "read the table as the ledger's was",
    "time": "read the table as the ledger's was",
    "max_gap": "read the table as the ledger's was",
    "step": "read the table as the ledger's was",
    "where": "a part of a filtered base is known only for a base without a filter: make the ledger for the whole table",
    "missing": "read the table as the ledger's was",
    "gaps": "read the table as the ledger's was",
}


def _check_lengths(
    found: Sequence[ChainLength], base: Sequence[ChainLength], windows: Windows | None, whose: str
) -> None:
    """Refuse chains that are no part of the base's chains: longer ones, or more of them."""
    steps = [chain.steps for chain in base] if windows is None else [w[1] - w[0] for w in windows if w is not None]
    here, there = (sorted(values, reverse=True) for values in ([chain.steps for chain in found], steps))
    records = [sorted((chain.records for chain in chains), reverse=True) for chains in (found, base)]
    fits = len(here) <= len(there) and all(a <= b for a, b in zip(here, there, strict=False))
    if not fits or any(a > b for a, b in zip(*records, strict=False)):
        part = "a window" if windows is not None else "the base"
        raise ReleaseRefused(
            f"{whose} has {len(here)} chains, the longest of {here[0]} steps and {records[0][0]} records, and {part} "
            f"of the ledger {len(there)}, the longest of {there[0]}: other records need a ledger of their own"
        )


def _groups(
    states: tuple[str, ...],
    base: Base | None,
    found: tuple[str, ...],
    data: Sequences | None,
    coarsening: Mapping[Any, Any] | None,
) -> list[int] | None:
    """Return for each state of the base the release's state that it counts as; None where they are the same."""
    bins = None if data is None else data.base.bins
    if coarsening is not None:
        named = {str(state): str(group) for state, group in coarsening.items()}
        for state in states:
            if named.get(state) not in found:
                raise ReleaseRefused(
                    f"coarsening says {named.get(state)!r} of state {state!r}, expected one of the release's states: "
                    f"{', '.join(found)}"
                )
        return [found.index(named[state]) for state in states]
    if found == states:
        if base is not None and bins != base.bins and data is not None:
            raise ReleaseRefused(f"the ledger is tied to another base: its bins are {base.bins}, the data's {bins}")
        return None
    if base is not None and base.bins is not None and bins is not None and set(bins[1:-1]) <= set(base.bins[1:-1]):
        fine, coarse = base.bins, bins
        if states == bin_labels(fine) and found == bin_labels(coarse):
            return [sum(edge <= low for edge in coarse[1:-1]) for low in (-math.inf, *fine[1:-1])]
    raise ReleaseRefused(
        f"the release has the states {_shown(found)} and the ledger {_shown(states)}: if the first are groups of the "
        "second, say which by coarsening={state of the ledger: state of the release, …}"
    )


def _shown(states: Sequence[str]) -> str:
    return ", ".join(states[:6]) + (", …" if len(states) > 6 else "")


def _with_noise(calibration: Calibration, unit_scale: float) -> Calibration:
    """Return a calibration of the same query with other noise, and what that alone leaks."""
    found = replace(calibration, unit_scale=unit_scale)
    leakage, witness = calibration.bound.prove(found.record_loss)
    return found if witness is None else replace(found, epsilon=leakage, witness=witness)


def _in_words(what: Any) -> str:
    if isinstance(what, Calibration):
        return f"{what.query.kind}: {what.linear.description}"
    return "a release of given record-level loss"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
