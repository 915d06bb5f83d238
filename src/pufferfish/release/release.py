"""Releases: records with the methods that show, check and verify them, and the one place where rows meet noise.

A :class:`Release` holds everything a reader needs to judge it (query, noise, Θ and where it came from, what is
promised and what is not) and never the exact value.
"""

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never, Self, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pufferfish._base.checked import truth
from pufferfish._base.durations import now
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.reading import LARGEST, check_path, display_path
from pufferfish._base.view import Grid, Printed, Shown, View, counted
from pufferfish._base.words import at_most
from pufferfish._base.writing import decode_record, read_record, write_whole
from pufferfish._draw.figure import save_figure
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError, RecordError, warn
from pufferfish.ledger import Entry, Ledger
from pufferfish.ledger.same_records import check_start
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.promises import Promise
from pufferfish.queries import Query
from pufferfish.release.certificate import Certificate, certify
from pufferfish.release.check import check_record, leaves
from pufferfish.release.derive import place_in, with_values
from pufferfish.release.draw import database_of
from pufferfish.release.facts import (
    AccuracyRecord,
    DataRecord,
    GroupsRecord,
    LedgerRecord,
    MechanismRecord,
    NoiseRecord,
    QueryRecord,
    TableRecord,
)
from pufferfish.release.prepare import Prepared, check_arguments, checked, inconsistent, note_of
from pufferfish.release.record import (
    FORMAT,
    MEASUREMENT,
    MEASUREMENT_FORMAT,
    MEASUREMENT_VERSION,
    RELEASE,
    VERSION,
    MeasurementFields,
    ReleaseFields,
    encoded,
    frame_of,
    read_table,
)
from pufferfish.release.show.pictures import draw_release
from pufferfish.release.show.text import measurement_view, release_view, summary
from pufferfish.release.steps import FromTransitions
from pufferfish.release.verification import Verification
from pufferfish.release.verify import verify, verify_measurement

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

# -- What every kind of release can do for its readers ---------------------------------------------------------------


class Reported:
    """A record of a release that has a page of its own (:mod:`pufferfish.release.show.page`)."""

    __slots__ = ()

    def report(
        self: Any,
        path: str | os.PathLike[str],
        *,
        values: Any = None,
        ledger: Any = None,
        certificate: Any = None,
        brief: bool = False,
        suppress: bool = False,
    ) -> None:
        """Write a page about the release that a browser shows: one file, which needs no network.

        It says what is hidden and what was released, what is promised and what is not, what an adversary may believe,
        what the budget was, what error other ε would have, and how all of it was made. The proof is computed again
        first. Of what is there already only an earlier report is replaced.

        Parameters
        ----------
        path : path-like
            The page, a name that ends in ``.html`` as a rule.
        values, ledger, certificate : optional
            As for :func:`verify`; the page shows the values, and the history of the book. With a ``Certificate`` it
            holds release and proof, and checks itself when it is opened.
        brief, suppress : bool, default False
            Without the noise of other ε, which may take long; without values no larger than their own error.
        """
        from pufferfish.release.show.page import Source, write_report  # here, for it loads what draws networks

        proof = None if certificate is None else (encoded(self).decode(), certificate.proof)
        source = Source(self, values=None if values is None else Path(values), proof=proof)
        write_report([source], path, ledger=ledger, brief=brief, verified=True, suppress=suppress)


class Recorded(ReleaseFields, Reported, Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A release of a query, wherever its values are: it is read, checked, proved and shown in one way."""

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Self:
        """Read a release file, validated: what follows from something else in it is computed again.

        A ``RecordError`` if it is damaged, of another version or kind, unfinished, or contradicts itself.
        """
        record = read_recorded(cls, path)
        if record.subjects is not None and record.subjects.table is None:
            raise RecordError(f"{display_path(path)} belongs to an unfinished release: it has no table yet")
        return record

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain numbers, texts, lists and dicts."""
        return msgspec.to_builtins(self)

    def check(self) -> None:
        """Compute again what follows from something else in the record; a ``RecordError`` if it contradicts itself."""
        check_record(self)

    def check_readable(self) -> None:
        """As :meth:`check`, and that what is written is read again as it is."""
        self.check()
        content = encoded(self)
        read_back = decode_record(content, "it", type(self), format_=FORMAT, version=VERSION, complete=True)
        if read_back != self:
            raise RecordError("it is read again as another record")
        if len(content) > LARGEST:
            raise RecordError(f"it would have more than {LARGEST >> 20} MiB")

    def _view(self) -> View:
        return release_view(self)

    def __str__(self) -> str:
        return summary(self, most=20)

    def verify(
        self, *, model: Any = None, ledger: Any = None, table: Any = None, values: Any = None, certificate: Any = None
    ) -> Verification:
        """Compute the proof again, and all that follows from something else; arguments as for :func:`verify`."""
        return verify(self, model=model, ledger=ledger, table=table, values=values, certificate=certificate)


class Release(FromTransitions, Recorded, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A private value and the record of what was promised; made by :func:`release`.

    Parameters
    ----------
    values, noisy_values : list of float
        The released value of each output, after post-processing if there was any, and as the noise left it. With groups
        m values for the first group, then m for the next; ``value`` has them as an array of shape (groups, m).
    postprocessing : Projected, Clipped or None
        What was done to the noisy values; it uses nothing but them and public numbers.
    epsilon, delta : float
        Privacy parameters; ``delta`` is 0 but for (ε, δ) mechanisms.
    query, noise, mechanism, theta, data, accuracy_95, calibration, ledger, groups : records
        See their classes; from ``calibration`` the proof of the noise is computed. There is a ``ledger`` where one was
        kept, and there are ``groups`` where the table was read with ``by``.
    promise, not_promised, assumptions, warnings : str, and lists of str
        What is promised, and not; what that rests on; what a reader must know first.
    created, software : str, and dict of str to str
        Time of the release, UTC; versions.
    """

    def to_frame(self, of: Literal["values", "quantiles"] | None = None, *, into: str = "polars") -> Any:
        """Return the values as a table: a row for each output, of each group if there are any.

        Columns: one for every grouping (whole numbers where all of its groups are named by such, as hours are),
        ``output``, ``records`` (of the group), ``value``, ``noisy_value`` where values were post-processed, and
        ``error_95``, which the noisy value exceeds with probability at most 5%. Where quantiles were asked for, and
        ``of`` is not "values", a row for each: ``quantile``, ``state``, ``low_95`` and ``high_95``. ``into`` names the
        library whose table it is: "polars", "pandas" or "pyarrow".
        """
        return frame_of(self, of, into)

    def to_json(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> str:
        """Return the record as JSON, and write it to a path that is given; nothing is left behind where that fails.

        ``overwrite`` says whether the record of an earlier release may be replaced: what it says is spent, and nobody
        can check it without its record. No other file ever is.
        """
        replaces, content = truth(overwrite, "overwrite"), encoded(self)
        if path is not None:
            write_whole(path, content, RELEASE, overwrite=replaces)
        return content.decode()

    def certificate(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> Certificate:
        """Return a proof of what this release promises, and write it to a path that is given; see :func:`certify`."""
        found = certify(self)
        if path is not None:
            found.to_json(path, overwrite=overwrite)
        return found

    def __repr__(self) -> str:
        noise = f"{self.mechanism.title}, ε = {at_most(self.epsilon)}, noise scale {self.scale:.6g}"
        return f"Release({self.query.kind}, {counted(len(self.values), 'value')}, {noise})"

    def plot(self, path: str | os.PathLike[str] | None = None) -> "Figure":
        """Draw the value with error bars of the noise (95% for each output), with matplotlib; write it to a path."""
        if path is not None:
            check_path(path)
        figure = draw_release(self)
        if path is not None:
            save_figure(figure, path)
        return figure


class EachRelease(Recorded, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The record of one release for each subject of a table; made by :func:`release_each`.

    Its fields are those of a :class:`Release`; the values are in the table beside it, which ``subjects`` names. The
    noise is the same for every subject, divided by its number of records where its values are; ``accuracy_95.joint`` is
    about all outputs of one subject. ``postprocessing`` says what was done to the noisy values of each subject.
    """

    @property
    def table(self) -> TableRecord | None:
        """Where the values are; None before they were drawn."""
        return None if self.subjects is None else self.subjects.table

    @property
    def release(self) -> str | None:
        """A number drawn at random, by which the release knows its entry in a ledger."""
        return None if self.subjects is None else self.subjects.release

    def read_table(self, path: str | os.PathLike[str]) -> "pl.DataFrame":
        """Return the values: the table beside the record, refused where it is not the one that was written."""
        return read_table(self, path)

    def __repr__(self) -> str:
        what = f"{self.query.kind} for each of {counted(self.data.subjects, 'subject')}"
        return f"EachRelease({what}, {self.mechanism.title}, ε = {at_most(self.epsilon)})"


class MeasurementRelease(MeasurementFields, Reported, Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The value of a measurement, and what was promised; made by :func:`release_measurement`.

    ``value`` is what the measurement returned, and ``measurement`` the note of whoever released it, or the kinds of its
    input and output. ``record_loss`` is how much it tells of one record alone, in nats: its privacy map at one changed
    record. ``leakage`` is how much of one record once correlation is used, in nats, rounded up; at most ``epsilon``.
    ``length`` has steps and observed records of each chain.
    """

    def __repr__(self) -> str:
        return f"MeasurementRelease({self.measurement!r}, ε = {at_most(self.epsilon)}, leakage {self.leakage:.6g})"

    def _view(self) -> View:
        return measurement_view(self)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the record as JSON, and write it to a path that is given; an earlier release is never replaced."""
        if any(isinstance(leaf, float) and not math.isfinite(leaf) for leaf in leaves(self.value).values()):
            raise RecordError("the value holds NaN or an infinite number, which cannot be written to a file")
        content = encoded(self)
        if path is not None:
            write_whole(path, content, MEASUREMENT, overwrite=False)
        return content.decode()

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "MeasurementRelease":
        """Read a record, and prove again what it promises; a ``RecordError`` if that cannot be."""
        record = read_record(path, cls, format_=MEASUREMENT_FORMAT, version=MEASUREMENT_VERSION, complete=True)
        try:
            record.verify()
        except RecordError as error:
            raise RecordError(f"{display_path(path)} contradicts itself: {error}") from error
        return record

    def verify(self) -> float:
        """Compute again what the record-level loss leaks, and return it, in nats; a ``RecordError`` if it contradicts.

        That the measurement has this record-level loss is what its privacy map said; the record cannot show it.
        """
        return verify_measurement(self)


class ReleasePlan(Printed, FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the record of a release would hold beside its values; nothing of it depends on a record's value.

    :class:`~pufferfish.Release` explains each field; ``ledger.spent`` is what would be spent in all.
    """

    query: QueryRecord
    epsilon: float
    delta: float
    hides: str
    promise: str
    promises: list[Promise]
    warnings: list[str]
    not_promised: list[str]
    assumptions: list[str]
    noise: NoiseRecord
    accuracy_95: AccuracyRecord
    mechanism: MechanismRecord
    data: DataRecord
    ledger: LedgerRecord | None = None
    groups: GroupsRecord | None = None

    @classmethod
    def of(cls, draft: ReleaseFields) -> "ReleasePlan":
        """Return the plan that is in a record without values."""
        return cls(**{name: getattr(draft, name) for name in cls.__struct_fields__})

    def to_json(self) -> str:
        """Return the plan as one JSON object."""
        return msgspec.json.encode(self).decode()

    def __repr__(self) -> str:
        return f"ReleasePlan({self.query.kind}, ε = {at_most(self.epsilon)}, noise scale {self.noise.scale:.6g})"

    def _view(self) -> View:
        ledger = self.ledger
        facts = {"hides": self.hides, "ε": at_most(self.epsilon), "noise scale": self.noise.scale}
        if ledger is not None:
            facts["spent in all after it"] = f"{at_most(ledger.spent)} of {ledger.budget:g}"
        errors = self.accuracy_95.outputs or [self.accuracy_95.each] * len(self.query.labels)
        worst = "" if self.groups is None else ", in the group where it is largest"
        rows = [[label, error] for label, error in zip(self.query.labels, errors, strict=True)]
        grid = Grid(f"Error of each value{worst}", [self.query.kind, "± 95%"], rows)
        return View("Not released: nothing is drawn or spent", facts, [grid], [*self.warnings, self.promise])


AnyRecorded = TypeVar("AnyRecorded", bound=Recorded)


def read_recorded(kind: type[AnyRecorded], path: str | os.PathLike[str]) -> AnyRecorded:
    """Return a release of a query of one kind from its file, validated; it may be unfinished."""
    record = read_record(path, kind, format_=FORMAT, version=VERSION, complete=True)
    right_kind = Release if record.subjects is None else EachRelease
    if not issubclass(kind, right_kind):
        where = "has its values in it" if record.subjects is None else "has values for each subject, in a table"
        raise RecordError(f"{display_path(path)} {where}: read it by {right_kind.__name__}.from_json")
    try:
        record.check()
    except RecordError as error:
        raise RecordError(f"{display_path(path)} contradicts itself: {error}") from error
    return record


# -- Making a release ------------------------------------------------------------------------------------------------


def release(
    data: Sequences | Rows | Mapping[Any, Any] | Sequence[Any],
    query: Query,
    calibration: Calibration | None = None,
    *,
    postprocess: Literal["valid"] | None = None,
    warnings: Sequence[str] = (),
    ledger: Ledger | None = None,
    window: Any = None,
    coarsening: Mapping[Any, Any] | None = None,
    accept: str | Collection[str] = (),
    **unknown: Never,
) -> Release:
    """Release a query's value with calibrated noise.

    Parameters
    ----------
    data : Sequences, Rows, mapping, or sequence of states
        The private data: a table, from :func:`read_sequences`, or from :func:`read_rows` for networks; or one database,
        a dict from the names of its records to their states (a list of states where records have no names but their
        order).
    query : Query
        What is asked; the query the noise was calibrated for.
    calibration : Calibration
        The noise, from a mechanism's ``calibrate``: epsilon and the mechanism are chosen there.
    postprocess : {"valid"}, optional
        Make the value a possible one: a histogram non-negative with the public total (the nearest such, in
        Euclidean distance), other queries inside their range. It costs no privacy, and is recorded.
    warnings : sequence of str
        Sentences to put into the record.
    ledger : Ledger, optional
        The budget that this release is written into, after everything was checked and before noise is drawn.
    window, coarsening : optional
        Which part of the ledger's base the data are, as for :meth:`Ledger.spend`.
    accept : str or collection of str, default ()
        The refusals that you accept, by word. ``"public"``: everybody may see the data, so a model that was fitted to
        them is taken, and nothing is promised.

    Raises
    ------
    ReleaseRefused
        If the calibration is for another query, other states, or shorter chains than the data's, the data are not
        the ledger's, or the model was fitted to them.
    BudgetExceeded
        If the ledger has too little left; nothing is spent.
    DataError, ParameterError
        If the data holds states the model lacks; if an argument is not what it should be.
    """
    calibration = check_arguments(data, query, calibration, unknown)
    settings: Any = {"window": window, "coarsening": coarsening, "accept": accept}
    ready = prepare(data, query, calibration, postprocess=postprocess, warnings=warnings, ledger=ledger, **settings)
    warn(text for text in ready.warnings if text not in warnings)
    return ready.finish()


def prepare(
    data: Sequences | Rows | Mapping[Any, Any] | Sequence[Any],
    query: Query,
    calibration: Calibration,
    *,
    ledger: Ledger | None = None,
    window: Any = None,
    coarsening: Mapping[Any, Any] | None = None,
    **options: Any,
) -> Prepared[Release]:
    """Check and prove all that can be refused, and return what spends the budget and draws; see :func:`release`.

    Other ``options`` are those of :func:`checked`. Its ``finish`` may wait for other programs that hold the ledger, and
    computes what the sum of all releases leaks.
    """
    if ledger is None and not (window is None and coarsening is None):
        raise ParameterError("window and coarsening only work with a ledger: give ledger too")
    records = data if isinstance(data, Sequences | Rows) else database_of(data, calibration)
    calibration, cells, draft = checked(Release, records, query, calibration, ledger=ledger, **options)
    draw = cells.sampler(calibration)

    def fill(numbers: NDArray[np.int64], booked: LedgerRecord | None, after: str | None = None) -> Release:
        noisy = cells.values(numbers).ravel().tolist()
        return with_values(replace(draft, created=now(after), noisy_values=noisy, ledger=booked), calibration)

    zeros = np.zeros((len(cells.names), len(draft.query.labels)), dtype=np.int64)
    charge: Any = {"data": records, "window": window, "coarsening": coarsening}
    charge["note"] = note_of(f"{draft.query.kind}: {draft.query.description}", calibration.theta, ledger)
    # a reader must be able to take what is written: it is tried on zeros and an entry, while nothing is spent
    try:
        # one that does not compose the ledger refuses, and says what to do
        trial_place = None if ledger is None or not calibration.composes else place_in(ledger, None)
        fill(zeros, trial_place).check_readable()
    except RecordError as error:
        if ledger is not None:  # what it refuses it says in its own words
            ledger.check(calibration, **charge)
        raise inconsistent(error) from error

    def plan() -> tuple[Release, Entry | None]:
        if ledger is None:
            return draft, None
        _check_start(ledger, calibration, window)
        entry = ledger.check(calibration, **charge)
        booked = place_in(ledger, entry)
        return with_values(replace(draft, ledger=booked), calibration), entry

    def finish(begin: Callable[[], object] = lambda: None) -> Release:
        if ledger is None:
            begin()
            return fill(draw(), None)
        _check_start(ledger, calibration, window)
        entry = ledger.spend(calibration, **charge, begin=begin)
        return fill(draw(), place_in(ledger, entry), entry.created)

    return Prepared(tuple(draft.warnings), plan, finish)


def plan(
    data: Sequences | Rows | Mapping[Any, Any] | Sequence[Any],
    query: Query,
    calibration: Calibration | None = None,
    *,
    postprocess: Literal["valid"] | None = None,
    ledger: Ledger | None = None,
    window: Any = None,
    coarsening: Mapping[Any, Any] | None = None,
    accept: str | Collection[str] = (),
) -> ReleasePlan:
    """Check all that :func:`release` checks, and return what it would promise; nothing is drawn, spent or written.

    Arguments and errors are those of :func:`release`.

    Examples
    --------
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    >>> noise = pf.LeakagePropagation(chain, length=100).calibrate(pf.Count(1), 1.0)
    >>> planned = plan([0, 1] * 50, pf.Count(1), noise)
    >>> planned.accuracy_95.each, planned.ledger
    (10.0, None)
    """
    calibration = check_arguments(data, query, calibration, {})
    settings: Any = {"window": window, "coarsening": coarsening, "accept": accept}
    draft, _ = prepare(data, query, calibration, postprocess=postprocess, ledger=ledger, **settings).plan()
    return ReleasePlan.of(draft)


def _check_start(ledger: Ledger, calibration: Calibration, window: Any) -> None:
    """Refuse a part of a ledger's chains whose start the calibration's Θ does not describe."""
    theta, length = calibration.theta, ledger.bound.length
    if theta.of_chains and ledger.bound.theta.of_chains and tuple(calibration.length) != tuple(length):
        check_start(theta, window)
