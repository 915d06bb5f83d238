"""The ledger: one budget for many releases of the same records.

Losses of releases add, record by record, whatever the query; leakage does not. So a ledger holds an influence bound,
adds up the record-level losses d_t(x, x') of everything released from one table, and asks the bound once what the sum
leaks. Queries and noise may be chosen after earlier answers were seen: for a fixed sequence of outputs the density
is the product of the releases' densities, and its loss the sum of theirs. They may not depend on the data.

A ledger belongs to one **base**: the records, states, filter and bins of one table. What is read from a part of it (a
window of time, rows that a filter keeps) or in coarser states is a loss on the base too, 0 where nothing is read.
Anything else is refused. A subject pays for the releases that read its records (:mod:`pufferfish.ledger.subjects`).
What is charged on chains, on rows of networks, and on a table that grows, say ``_chain_charges``, ``_node_charges`` and
``_series_charges``. All that reads or writes the book under its lock is one class, in this file.
"""

import math
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pufferfish._base.checked import truth
from pufferfish._base.durations import now
from pufferfish._base.view import Printed, View
from pufferfish._base.words import at_most, number
from pufferfish._core.numbers.rounding import bracket, float_up
from pufferfish.data.read import read_rest, read_sequences
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import (
    BudgetExceeded,
    ParameterError,
    PufferfishError,
    RecordError,
    ReleaseRefused,
    printable,
    shortened,
)
from pufferfish.fit.model_file import check_names
from pufferfish.ledger._chain_charges import ChainCharging
from pufferfish.ledger._node_charges import NodeCharging
from pufferfish.ledger._reads import Reads
from pufferfish.ledger._series_charges import (
    Planned,
    SeriesCharging,
    alone_for_ever,
    for_ever,
    planned_in,
    question_of,
    taken_before,
    with_enough_noise,
)
from pufferfish.ledger.book import (
    AnyBase,
    Book,
    Entry,
    ModelOfBook,
    check_book,
    fields_of_base,
    new_nonce,
    positive,
)
from pufferfish.ledger.charges import Charge, Charging
from pufferfish.ledger.kept import Kept, Where, kept_at, shown_where
from pufferfish.ledger.shown import draw_ledger, entries_frame, in_words, view_of, what_fits
from pufferfish.ledger.subjects import Subjects, grid_of, names_in
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.influence_bound import InfluenceBound
from pufferfish.mechanisms.mechanism import LEAST_EPSILON
from pufferfish.mechanisms.promises import Promise, promises_of_losses
from pufferfish.mechanisms.protection import step_of
from pufferfish.mechanisms.words import hidden_in_words
from pufferfish.queries import Query
from pufferfish.queries.record_loss import as_record_loss
from pufferfish.theta.record import ThetaRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_READING = ("state", "subject", "time", "time_zone", "ambiguous", "max_gap", "step", "bins", "missing", "gaps")
"""What a base says of how its table is read."""

_ROUNDED = 1e-9
"""By which share what is spent may be above a level, as sums are computed in another order."""

_DAMAGED = (PufferfishError, ValueError, TypeError, OverflowError)
"""What reading a book that no ledger wrote may raise."""


class _AboveBudget(BudgetExceeded):
    """A release that does not fit; its remedy is still to be found."""


# -- How a ledger is charged: on chains, on networks, or on a table that grows ---------------------------------------


def without_positions(bound: Any) -> Any:
    """Return a bound that knows nothing of where records are: each entry of a ledger says which steps it reads."""
    if not (isinstance(bound, InfluenceBound) and bound.theta.of_chains and any(c.places for c in bound.length)):
        return bound
    return bound.of(bound.given_by, [chain.without_positions for chain in bound.length], **bound.settings)


def _charging_on(bound: Any, *, grows: bool) -> Charging:
    """Return how releases are charged under a bound, refused where it cannot keep a ledger."""
    bound = for_ever(bound) if grows else without_positions(bound)
    if not isinstance(bound, InfluenceBound):
        raise ParameterError(
            f"bound is {type(bound).__name__}, expected a mechanism such as LeakagePropagation(theta, length)"
        )
    if not bound.composes:
        raise ReleaseRefused(
            f"{bound.title} does not cover several releases: use LeakagePropagation, or another mechanism that composes"
        )
    if bound.theta.stands_for_more:
        raise ReleaseRefused("a ledger needs theta, whose states are known, not pi_min and eigengap alone")
    if grows:
        return SeriesCharging(bound)
    if bound.theta.of_chains:
        return ChainCharging(bound)
    if bound.networks:
        return NodeCharging(bound)
    raise ReleaseRefused(f"a ledger covers Markov chains and Bayesian networks, but Θ is a class of {bound.theta.kind}")


def _charges_in(charging: Charging, book: Book, entries: Sequence[Entry]) -> list[Charge]:
    """Return the charges of some entries of a book; one of another Θ is none."""
    return [charging.read(entry, book) for entry in entries if entry.theta is None]


def _leakage_under(charging: Charging, book: Book, entries: Sequence[Entry], *more: Charge, among: Any = None) -> float:
    charges = [*_charges_in(charging, book, entries), *more]
    if not charges:
        return 0.0
    bound, losses = charging.together(charges, among)
    return bound.leakage(losses, enough=book.budget)


def _placed(book: Book) -> dict[str, Any]:
    """Return the place of the next entry of a book."""
    place = {"number": len(book.entries) + 1, "nonce": new_nonce(), "previous": book.last_digest()}
    return place | {"created": now()}


def _too_little(spent: float, level: float) -> BudgetExceeded:
    return BudgetExceeded(
        f"{at_most(spent)} are spent, so what remains up to {number(level, 6)} is too little for any release"
    )


# -- The ledger ------------------------------------------------------------------------------------------------------


class Ledger(Printed):
    """A budget for all releases of one table.

    Parameters
    ----------
    bound : InfluenceBound
        What proves how much the releases leak together: a mechanism that composes, on Θ and the lengths of the whole
        table. It need not be the mechanism that calibrated them.
    budget : float
        The most that they may leak together, ε in nats.
    base : Sequences, Rows, Base or RowsBase, optional
        All of the table, as it was read: the ledger then knows who its subjects are, and releases about different
        subjects do not add. Or only how it was read, ``sequences.base``. By default the first data settle it.
    grows : bool, default False
        Whether the table grows: releases read files with new rows, or the whole table so far.

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

    def __init__(
        self,
        bound: InfluenceBound,
        budget: float,
        *,
        base: AnyBase | Sequences | Rows | None = None,
        grows: bool = False,
    ) -> None:
        self._first = charging = _charging_on(bound, grows=truth(grows, "grows"))
        self._later: dict[int, Charging] = {}
        bound = charging.bound
        data, base = (base, base.base) if isinstance(base, Sequences | Rows) else (None, base)
        charging.check_base(base)
        budget = positive(budget, "budget")
        names = None if grows else names_in(bound, data)
        self._file: Kept | None = None
        self._lock = threading.RLock()
        self._spending = False
        self._book = Book(
            nonce=new_nonce(),
            created=now(),
            budget=budget,
            mechanism=bound.name,
            settings=bound.settings,
            theta=ThetaRecord.of(bound.theta),
            model=ModelOfBook.of(bound),
            length=[] if bound.networks else [(chain.steps, chain.records) for chain in bound.length],
            rows=bound.rows if bound.networks else None,
            **fields_of_base(base),
            subjects=None if names is None else Subjects.of(names),
            grid=None if grows else grid_of(data, names, bound),
            grows=grows,
            entries=[],
        )

    @classmethod
    def open(cls, path: Where) -> "Ledger":
        """Open a ledger's file, or its rows in a database; it stays there, and other programs may spend from it too.

        A RecordError says if it is missing, damaged, of another version, or contradicts itself.
        """
        file = kept_at(path)
        book = file.read()
        try:
            bound = book.bound(book.theta.theta(), book.model)
            ledger = cls(bound, book.budget, base=book.tied_to, grows=book.grows)
            if any(getattr(ledger._book, name) != getattr(book, name) for name in ("length", "rows")):
                raise ParameterError("it has the size of a table for another kind of models")
            ledger._charging.check(book)
            check_book(book, partial(ledger._leakage, book))
        except _DAMAGED as error:
            raise RecordError(f"{shown_where(path)} holds no valid ledger: {error}") from error
        ledger._file, ledger._book = file, book
        return ledger

    def __repr__(self) -> str:
        where = "" if self._file is None else f", {shown_where(self._file.path)!r}"
        spent = f"spent {at_most(self.spent)} of {number(self.budget, 6)}"
        return f"Ledger({self.bound.title}, {spent}, hides {printable(self.hides)}{where})"

    def _charged_by(self, book: Book, entries: Sequence[Entry]) -> tuple[Charging, float]:
        """Return how some first entries of a book are charged, and what was spent when Θ was changed last."""
        change = next((entry for entry in reversed(entries) if entry.theta is not None), None)
        if change is None or change.theta is None:
            return self._first, 0.0
        number = change.number
        if number not in self._later:
            bound = book.bound(change.theta.theta(), change.model)
            self._later[number] = _charging_on(bound, grows=book.grows)
        return self._later[number], book.entries[number - 2].spent if number > 1 else 0.0

    @property
    def _charging(self) -> Charging:
        return self._charged_by(self._book, self._book.entries)[0]

    def _view(self) -> View:
        return view_of(self)

    def to_frame(self, *, into: str = "polars") -> Any:
        """Return the entries as a table of polars, or of the library named: "pandas" or "pyarrow"."""
        return entries_frame(self, into)

    def plot(self) -> "Figure":
        """Draw what all releases leak together after each entry, against the budget; needs matplotlib."""
        return draw_ledger(self)

    def __reduce__(self) -> Any:
        if self._file is None:
            raise TypeError(
                "a copied ledger would spend the same budget twice: save the ledger and open its file instead"
            )
        return Ledger.open, (self._file.path,)

    def save(self, path: Where) -> None:
        """Write the ledger to a new file; from now on everything spent is on the disk before ``spend`` returns.

        An empty file of the same name with ``.lock`` stays beside it, by which programs wait for each other. Instead of
        a file, the address of a database: ``"sqlite:///book.db"``, or ``"postgresql://user@host/database"`` with
        ``#name`` at its end for one of several ledgers there. A RecordError says if there is one already, which is
        never replaced, if this ledger is kept somewhere already, or if it cannot be written.
        """
        with self._lock:
            if self._file is not None:
                raise RecordError(
                    f"this ledger is kept in {shown_where(self._file.path)}: a copy would spend the same budget "
                    "twice; open the file instead"
                )
            bound = self.bound
            check_names(bound.theta, shown_where(path))
            if type(self._book.bound(bound.theta, self._book.model)) is not type(bound):
                raise RecordError(
                    f"a ledger file names a mechanism of this package, but {type(bound).__name__} is not one: "
                    "keep this ledger in memory"
                )
            file = kept_at(path)
            file.create(self._book)
            self._file = file

    @property
    def path(self) -> Path | str | None:
        """The file that the ledger is kept in, or the address of its database; None where it is in memory alone."""
        return None if self._file is None else self._file.path

    @property
    def bound(self) -> InfluenceBound:
        """What proves how much the releases leak together."""
        return self._charging.bound

    def bound_at(self, number: int) -> InfluenceBound:
        """Return the bound under which an entry was written; that of all releases until Θ was changed."""
        return self._charged_by(self._book, self._book.entries[:number])[0].bound

    @property
    def budget(self) -> float:
        """The most that all releases may leak together, in nats."""
        return self._book.budget

    @property
    def grows(self) -> bool:
        """Whether the ledger is of a table that grows: releases read files with new rows, or the whole table so far."""
        return self._book.grows

    @property
    def hides_by(self) -> dict[str, Any]:
        """What ``protect`` and ``within`` a release by itself is calibrated with, to hide what the budget is about."""
        return self._charging.hides

    @property
    def base(self) -> AnyBase | None:
        """How the table was read; None until data were spent on."""
        return self._now_in_file().tied_to

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The releases so far, first to last."""
        return tuple(self._now_in_file().entries)

    @property
    def spent(self) -> float:
        """What all releases so far leak together at most, in nats."""
        return self._now_in_file().spent

    @property
    def hides(self) -> str:
        """What the budget is about, in words: any one record, or what ``protect`` and ``within`` of its bound say."""
        bound, theta = self.bound, self.bound.theta
        secrets = None if bound.secrets is None else [(str(a), str(b)) for a, b in bound.secrets]
        step = self._step(self._now_in_file())
        kind = {"of_chains": theta.of_chains, "networks": bool(theta.networks)}
        return hidden_in_words(secrets, bound.protection, step, **kind)

    def _step(self, book: Book) -> str | None:
        """Return how long a step takes, where gaps were looked for in times, as a release says it too."""
        if book.tied_to is None:
            return step_of(self.bound.theta, self.bound.model)
        base = book.base
        return None if base is None or base.max_gap is None else base.step

    def promises(self) -> list[Promise]:
        """Return what all releases so far tell together of every unit, as :meth:`Calibration.promises`.

        None where nothing was released yet. Nothing is spent.

        Examples
        --------
        >>> import pufferfish as pf
        >>> chain = pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]])
        >>> bound = pf.LeakagePropagation(chain, length=100)
        >>> ledger = pf.Ledger(bound, budget=2.0)
        >>> for _ in range(2):
        ...     spent = ledger.spend(bound.calibrate(pf.Histogram(), 0.5))
        >>> [(promise.unit, round(promise.epsilon, 2)) for promise in ledger.promises()][:2]
        [('one record', 1.01), ('10 steps in a row', 2.55)]
        """
        book = self._now_in_file()
        charges = _charges_in(self._charging, book, book.entries)
        if not charges:
            return []
        read, losses = self._charging.together(charges)
        together = as_record_loss(losses, read.theta, read.length)
        cut = book.base is not None and book.base.gaps == "independent"
        return promises_of_losses(self.bound, together, book.spent, self._step(book), cut=cut)

    @property
    def remaining(self) -> float:
        """Budget less what is spent; what the next release costs is not its ε: ask :meth:`leakage_with`."""
        return max(0.0, self.budget - self.spent)

    def leakage_with(
        self,
        what: Any,
        *,
        data: Sequences | Rows | None = None,
        window: Any = None,
        coarsening: Mapping[Any, Any] | None = None,
    ) -> float:
        """Return what would be spent after one more release; spends nothing. Parameters as for :meth:`spend`."""
        book = self._now_in_file()
        charge = self._charging.charge(what, book=book, data=data, window=window, coarsening=coarsening)
        return self._leakage(book, book.entries, charge)

    def calibrate(
        self,
        query: Query,
        *,
        up_to: float | None = None,
        length: Any = None,
        window: Any = None,
        data: Sequences | Rows | None = None,
        noise: Literal["equal", "best"] = "equal",
    ) -> Calibration:
        """Return the least noise with which a query can be released next, so that all leak at most ``up_to``.

        Parameters
        ----------
        query, noise
            As for a mechanism's ``calibrate``.
        up_to : float, optional
            What may be spent after it; by default the whole budget.
        length : int, ChainLength, or sequence of these, optional
            Lengths of the data, or the rows of a network's table, where those are a part of the base.
        window, data : optional
            As for :meth:`spend`. Of data about a part of the subjects, only what those spent counts.

        Returns
        -------
        Calibration
            Its ``epsilon`` is what this release alone leaks.

        Raises
        ------
        BudgetExceeded
            If no noise is enough.
        """
        level = self._level(up_to)
        book = self._now_in_file()
        reads, stated = self._charging.about(data, book), book.spent
        spent = stated if reads is None else self._leakage(book, book.entries, among=reads)
        if stated > level or spent >= level:
            raise BudgetExceeded(
                f"{at_most(stated)} of the budget of {number(self.budget, 6)} are spent already: up_to must be larger"
            )
        length = data.length if length is None and data is not None else length
        part = self.bound if length is None else self._charging.part(length, window)
        left = level - spent
        if left < LEAST_EPSILON:
            raise _too_little(spent, level)
        alone = part.calibrate(query, left, noise=noise)

        def added(scale: float) -> float:
            what = replace(alone, unit_scale=scale)
            charge = self._charging.charge(what, book=book, data=data, window=window, coarsening=None)
            return self._leakage(book, book.entries, charge, among=reads) - spent

        scale = bracket(added, left, alone.unit_scale, tolerance=1e-5, from_above=False).enough
        if not scale < math.inf:
            raise _too_little(spent, level)
        return replace(_proved(part, replace(alone, unit_scale=scale)), up_to=level)

    def _level(self, up_to: float | None) -> float:
        """Return what may be spent in all."""
        level = self.budget if up_to is None else positive(up_to, "up_to")
        if level > self.budget:
            raise BudgetExceeded(f"up_to is {number(level, 6)}, above the budget of {number(self.budget, 6)}")
        return level

    def read(
        self,
        source: Any,
        query: Query | None = None,
        *,
        where: str | None = None,
        by: Any = None,
        again: bool = False,
        **reading: Any,
    ) -> Sequences:
        """Read a table, or the next file of one that grows, as the ledger says.

        Parameters
        ----------
        source, where, by, **reading
            As for :func:`~pufferfish.read_sequences`; of other options the ledger knows what is usual. The source has
            new rows alone, or the whole table so far; a DataError says if it holds nothing new.
        query : Query, optional
            What shall be released. Rows that an earlier release of the same question read are left out then, for each
            of them is charged once; late rows, which nobody read yet, are not.
        again : bool, default False
            Keep rows that were read before: they are charged once more.
        """
        book = self._now_in_file()
        options = self.reading(where=where, by=by, **reading)
        if not book.grows:
            return read_sequences(source, **options)
        if query is None or truth(again, "again"):
            return read_rest(source, taken_before(book, [], None), **options)
        if not isinstance(query, Query):
            raise ParameterError(f"query is {query!r}, expected a query such as Histogram()")
        before = self._read_before(book, book.entries, question_of(query), where)
        return read_rest(source, taken_before(book, before, len(book.entries)), **options)

    def reading(self, **given: Any) -> dict[str, Any]:
        """Return the arguments of ``read_sequences`` for the table, as far as known, and besides what is given."""
        base = self._now_in_file().base
        if base is None and "state" not in given:
            raise ParameterError("the ledger does not know yet how its table is read: give state=, time= and the like")
        known = {} if base is None else {name: getattr(base, name) for name in _READING}
        return {**known, "states": self.bound.theta.states, **given}

    def read_as(self, number: int, source: Any, *, again: bool, **reading: Any) -> Sequences:
        """Read a table as an entry's release did: without rows that earlier ones of the question read, or again."""
        book = self._now_in_file()
        entry, earlier = book.entries[number - 1], book.entries[: number - 1]
        before = [] if again else self._read_before(book, earlier, entry.question, entry.where)
        return read_rest(source, taken_before(book, before, len(book.entries)), **reading)

    def _read_before(
        self, book: Book, entries: Sequence[Entry], question: str | None, where: str | None
    ) -> list[Reads]:
        """Return what some entries read, of those that release one question of the rows that one filter keeps."""
        same = [entry for entry in entries if entry.question == question and entry.where == where]
        return [reads for charge in _charges_in(self._charging, book, same) if (reads := charge.steps_read) is not None]

    def late_steps(self, data: Sequences, query: Query) -> int:
        """Return how many steps of data come before the last one that a release of the same question read."""
        book, charging = self._now_in_file(), self._charging
        if not isinstance(charging, SeriesCharging):
            return 0
        charging.check_tied(data, book)
        before = self._read_before(book, book.entries, question_of(query), data.base.where)
        return charging.reads_of(data, book).before(max(reads.hull[1] for reads in before)) if before else 0

    def plan(
        self,
        queries: Sequence[Query],
        *,
        up_to: float | None = None,
        notes: Sequence[str] = (),
        dry_run: bool = False,
    ) -> list[Planned]:
        """Reserve a part of the budget for releases that read every step once each, for ever.

        The scale of each is found so that all of them together leak at most ``up_to``, whatever the length of the
        series, and so that each alone would leak the same. What a release of the query with this noise, or more, reads
        for the first time costs nothing more, late rows included.

        Parameters
        ----------
        queries : sequence of Query
            What shall be released again and again; one that is named twice may read every step twice.
        up_to : float, optional
            What may be spent in all; by default the whole budget, which leaves nothing for rows that are corrected.
        notes : sequence of str, optional
            What to write into the book for each.
        dry_run : bool, default False
            Only say it, and reserve nothing.

        Returns
        -------
        list of Planned
            Of each query the scale of its noise, in counts; a BudgetExceeded says if no noise is enough.
        """
        level = self._level(up_to)
        if not isinstance(self._charging, SeriesCharging):
            raise ParameterError("plan is for growing tables: make the ledger with grows=True")
        if not queries:
            raise ParameterError("queries is empty: give the queries that you will release regularly")
        known = {planned.question: planned.entry for planned in self.planned}
        for question in map(question_of, queries):
            if question in known:
                raise ParameterError(
                    f"{question} is already planned as entry {known[question]}, and a plan cannot change: releases use "
                    "its noise. Plan all queries and all levels in one command"
                )
        alone = alone_for_ever(self.bound, queries, level)
        with self._alone():
            book, charging = self._book, self._charging

            def told(planned: Sequence[Calibration]) -> float:
                return self._leakage(book, book.entries, *(charging.planned(made, book) for made in planned))

            planned = with_enough_noise(alone, told, level)
            if planned is None:
                raise _too_little(self.spent, level)
            for i, made in enumerate(_proved(self.bound, made) for made in planned):
                charge = charging.planned(made, book)
                spent = self._leakage(book, book.entries, charge)
                note = notes[i] if i < len(notes) else f"plan: {made.query.kind}"
                book = book.with_entry(self._entry(book, charge, max(spent, book.spent), what=note, of=made))
            if not truth(dry_run, "dry_run"):
                self._write(book)
            return planned_in(book)[-len(queries) :]

    def change(self, model: Any, *, dry_run: bool = False) -> Entry:
        """Charge all releases so far, and all that follow, under another class Θ.

        What is spent never falls by it. Where it is more than the budget then, nothing more can be released.

        Parameters
        ----------
        model : Model, MarkovChain, BayesianNetwork, or a class of these
            The new Θ, with the states of the old one, in their order.
        dry_run : bool, default False
            Only say it, and write nothing.

        Returns
        -------
        Entry
            Its ``spent`` is what all releases so far leak under the new class, or more.
        """
        with self._alone():
            book, old = self._book, self.bound
            size: Any = old.rows if old.networks else old.length
            new = _charging_on(old.of(model, size, **old.settings), grows=book.grows)
            theta, record = new.bound.theta, ModelOfBook.of(new.bound)
            same = all(
                getattr(record, name, None) in (None, getattr(book.base, name, None)) for name in ("bins", "step")
            )
            if theta.states != old.theta.states or not (same or book.base is None):
                raise ParameterError(
                    "the new Θ has other states, another order of states, other bins or another step than the ledger, "
                    "whose entries are charged by states: make a new ledger, and charge all releases of the old one "
                    "to it (ledger.spend)"
                )
            spent = max(_leakage_under(new, book, book.entries), book.spent)
            entry = Entry.of_change(
                ThetaRecord.of(theta),
                record,
                **_placed(book),
                what=f"another Θ, for all entries: {shortened(theta.origin)}",
                spent=spent,
            )
            if not truth(dry_run, "dry_run"):
                self._write(book.with_entry(entry))
            return entry

    def _write(self, book: Book) -> None:
        if self._file is not None:
            self._file.write(book)
        self._book = book

    @property
    def planned(self) -> list[Planned]:
        """What is planned, with the noise of each."""
        return planned_in(self._now_in_file())

    def as_planned(self, query: Query, data: Sequences) -> Calibration:
        """Return the noise that is planned for a query, for a release of these data; refused where none is."""
        if not (isinstance(query, Query) and isinstance(data, Sequences)):
            raise ParameterError("as_planned takes a query and the data of one release, in this order")
        part = self._charging.part(data.length, None)
        alone = part.calibrate(query, self.budget)
        scales = [planned.unit_scale for planned in self.planned if planned.question == question_of(query)]
        if not scales:
            plans = "; ".join(planned.what.removeprefix("plan: ") for planned in self.planned)
            only = f", only for {plans}: plan it too" if plans else ": make a plan"
            raise ParameterError(
                f"no noise is planned for {query.kind}{only} (pufferfish ledger plan), or give an epsilon"
            )
        return _proved(part, replace(alone, unit_scale=max(scales)))

    def spend(
        self,
        what: Any,
        *,
        data: Sequences | Rows | None = None,
        window: Any = None,
        coarsening: Mapping[Any, Any] | None = None,
        note: str | None = None,
        begin: Callable[[], object] | None = None,
        release: str | None = None,
    ) -> Entry:
        """Check that one more release fits the budget, write it into the book and return it; the release comes after.

        Parameters
        ----------
        what : Calibration, float or array_like
            The release: calibrated noise, or its record-level loss in nats. That is a number, or shape (k, k) between
            the ledger's states in their order, ``ledger.bound.theta.states``; for a network a number, or a dict from
            nodes to entries, as ``bound.leakage`` takes them.
        data : Sequences or Rows, optional
            What it reads, to be checked against the base.
        window : (int, int), list of these, or dict, optional
            Of chains: steps that the release reads of each, first (0-based) and one past the last; a list of pairs is
            several stretches. A dict from subjects, by name, to windows reads nobody else. By default what the times
            of the data say, or all.
        coarsening : mapping, optional
            Of chains: for each state of the base the one of the release that it counts as; of bins it is known.
        note : str, optional
            What to write into the book.
        begin : callable, optional
            Called when everything is checked, right before the book is changed: until then nothing is spent.
        release : str, optional
            A number drawn at random, by which a release with several files knows its entry again.

        Raises
        ------
        BudgetExceeded
            If it does not fit; nothing is spent.
        ReleaseRefused
            If the release does not compose, or belongs to another base; nothing is spent.
        """
        with self._remedies(what, data, window, each_subject=release is not None), self._alone():
            entry, changed = self._next(what, data, window, coarsening, note, release)
            if begin is not None:
                begin()
            self._write(changed)
            return entry

    def check(
        self,
        what: Any,
        *,
        data: Sequences | Rows | None = None,
        window: Any = None,
        coarsening: Mapping[Any, Any] | None = None,
        note: str | None = None,
        release: str | None = None,
    ) -> Entry:
        """Return the entry that :meth:`spend` would write, and refuse what it would; nothing is spent."""
        with self._remedies(what, data, window, each_subject=release is not None):
            self._now_in_file()
            return self._next(what, data, window, coarsening, note, release)[0]

    def charged(self, entry: Entry, what: Calibration, data: Sequences) -> bool:
        """Return whether an entry charges all that a release of these data reads: these steps of these subjects."""
        book = self._now_in_file()
        data = replace(data, asked=None)
        charge = self._charging.charge(what, book=book, data=data, window=None, coarsening=None)
        everything = () if book.grows else ("windows", "subjects")  # where an entry names none, it charges all
        return all(
            getattr(entry, name) == value or (name in everything and getattr(entry, name) is None)
            for name, value in self._charging.written(charge).items()
        )

    @contextmanager
    def _remedies(self, released: Any, data: Any, window: Any, *, each_subject: bool) -> Generator[None]:
        """Say what would fit, where a release does not."""
        try:
            yield
        except _AboveBudget as error:
            # looked for when others can spend again: it is a calibration, which may take long
            raise BudgetExceeded(f"{error}; {what_fits(self, released, data, window, each=each_subject)}") from None

    def _next(
        self, released: Any, data: Any, window: Any, coarsening: Any, note: str | None, release: str | None
    ) -> tuple[Entry, Book]:
        """Return the entry of one more release, and the book with it; refused where it does not fit."""
        if note is not None and not isinstance(note, str):
            raise ParameterError(f"note is {note!r}, expected text")
        book = self._book  # once: another thread may put its own in this place
        charge = self._charging.charge(released, book=book, data=data, window=window, coarsening=coarsening)
        settled = msgspec.structs.replace(book, **self._charging.settled(data, book))
        after = max(self._leakage(settled, book.entries, charge), book.spent)
        base = settled.tied_to
        where = None if data is None or base is None or data.base.where == base.where else data.base.where
        what = note or in_words(released)
        level = released.up_to if isinstance(released, Calibration) else None
        if level is not None and not after <= level * (1 + _ROUNDED):
            raise BudgetExceeded(
                f"another release was charged meanwhile, so this one would raise what is spent to {at_most(after)}, "
                f"above its limit of {number(level, 6)}: calibrate again (on the command line run the command again)"
            )
        entry = self._entry(settled, charge, after, what=what, of=released, where=where, release=release)
        return entry, settled.with_entry(entry)

    def _entry(self, book: Book, charge: Charge, spent: float, *, what: str, of: Any, **more: Any) -> Entry:
        """Return the next entry of a book; refused where what is spent with it is above the budget."""
        if not spent <= float_up(Fraction(repr(book.budget))):
            raise _AboveBudget(
                f"this release would raise what is spent from {at_most(book.spent)} to {at_most(spent)}, above the "
                f"budget of {number(book.budget, 6)}"
            )
        calibration = of if isinstance(of, Calibration) else None
        return Entry(
            **_placed(book),
            what=what,
            epsilon=None if calibration is None else calibration.epsilon,
            question=charge.question,
            **self._charging.written(charge),
            **more,
            spent=min(spent, book.budget),
        )

    def _leakage(self, book: Book, entries: Sequence[Entry], *more: Charge, among: Any = None) -> float:
        """Return what some entries of a book leak together, with more charges; of all chains, or of some only."""
        charging, least = self._charged_by(book, entries)
        leakage = _leakage_under(charging, book, entries, *more, among=among)
        return max(leakage, least)  # in this order: what is no number stays

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
            if self._spending:  # on the same thread: what it books would be lost, or it would wait for itself
                raise RecordError("this ledger is busy with another spend: try again when that is done")
            self._spending = True
            try:
                if self._file is None:
                    yield
                    return
                with self._file.alone():
                    self._take(self._file.read())
                    yield
            finally:
                self._spending = False

    def _take(self, book: Book) -> None:
        """Hold a book that was read again, refused where it does not go on from the one that is known."""
        known = self._book
        fixed = ("nonce", "created", "budget", "mechanism", "settings", "theta", "model", "length", "rows", "grows")
        same = all(getattr(book, name) == getattr(known, name) for name in fixed)
        grown = book.entries[: len(known.entries)] == known.entries
        if known.entries or not known.grows:
            grown = grown and known.tied_to in (None, book.tied_to)
        if known.tied_to is not None and not known.grows:
            same = same and book.subjects == known.subjects and book.grid == known.grid
        if not (same and grown):
            raise RecordError("the ledger's file was changed by hand or replaced by another: open it again")
        try:
            if len(book.entries) > len(known.entries):
                self._charging.check(book)
                check_book(book, partial(self._leakage, book), known=len(known.entries))
        except _DAMAGED as error:
            raise RecordError(f"the ledger's file was changed by hand: {error}") from error
        self._book = book


def _proved(bound: InfluenceBound, calibration: Calibration) -> Calibration:
    """Return noise with what it leaks, proved, and rounded up by more than other versions of libraries differ."""
    leakage, witness = bound.verify(calibration)
    return (
        calibration
        if witness is None
        else replace(calibration, epsilon=max(leakage * (1 + 1e-9), LEAST_EPSILON), witness=witness)
    )
