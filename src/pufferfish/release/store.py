"""One release for each subject: many values, one promise, one entry in a ledger, two files.

Subjects are independent of each other under every θ, so a record of one subject moves its own outputs only. The values
of all subjects together are one release, and its record loss is that of one subject's: noise that is enough for the
longest chain is enough for everybody.

The files appear one after the other, and a program may be killed between any two steps:

1. ``out.json.pending``, the record without a table, with a number drawn at random;
2. the entry in the ledger, with this number;
3. noise is drawn, and ``out.parquet.pending`` written;
4. ``out.json.pending`` again, now with the digest of the table: from here on nothing is drawn again;
5. ``out.parquet.pending`` becomes ``out.parquet``, then ``out.json.pending`` becomes ``out.json``.

The same command goes on from the step that it finds. Noise is drawn again only where no table was written. The steps,
and what goes on from them, stand in one file, to be read side by side.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from pufferfish._base.checked import truth
from pufferfish._base.durations import now
from pufferfish._base.reading import display_path, failing, file_digest
from pufferfish._base.writing import Kind, check_lock, check_output, check_room, write_whole
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError, PufferfishError, RecordError, warn
from pufferfish.ledger import Entry, Ledger
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.words import few_of_subjects
from pufferfish.queries import LinearQuery, Query
from pufferfish.release.cells import cells_of, table_of, warning_of_formulas
from pufferfish.release.derive import place_in, with_values
from pufferfish.release.facts import LedgerRecord, SubjectsRecord, TableRecord
from pufferfish.release.prepare import note_of
from pufferfish.release.ready import Prepared, checked, inconsistent
from pufferfish.release.record import RELEASE, columns_of, encoded
from pufferfish.release.release import EachRelease, as_release, read_recorded
from pufferfish.theta.model_class import Described

__all__ = ["OutputFiles", "prepare_each", "release_each"]

TABLE_ENDINGS = (".parquet", ".csv")

_REQUEST = ("query", "postprocessing", "epsilon", "noise", "data", "theta")
"""What two records of the same request share."""

_ROOM_OF_VALUE = 200
"""Bytes that a row of the table takes at most, about."""

_FINISH_IT = (
    "run that command again to finish it; or delete the file to give the release up (its ledger entry stays spent)"
)
_FINISH_THERE = "name that file, and the release is finished there"


def release_each(
    data: Sequences,
    query: Query,
    calibration: Calibration,
    output: str | os.PathLike[str],
    *,
    postprocess: Literal["valid"] | None = None,
    warnings: Sequence[str] = (),
    ledger: Ledger | None = None,
    overwrite: bool = False,
    accept: str | Collection[str] = (),
    for_spreadsheets: bool = False,
) -> EachRelease:
    """Release a query's value for each subject of a table, with calibrated noise.

    Subjects are independent, so all values together have the ε of one. Every subject has the noise of the longest
    chain. A query that is divided by the number of records is divided by that of the subject.

    Parameters
    ----------
    data : Sequences
        The private data, read by :func:`read_sequences` with ``subject``. Who the subjects are, and how many records
        each has, is public, and stands in the table.
    query : Query
        What is asked of each subject; the query the noise was calibrated for.
    calibration : Calibration
        The noise, from the ``calibrate`` of a mechanism that composes, such as LeakagePropagation, on ``data.length``.
    output : path-like
        The table of values, a name that ends in ``.parquet`` or ``.csv``; the record of what was promised goes into
        a file of the same name that ends in ``.json``. If the program is killed, the same call goes on from there.
    postprocess : {"valid"}, optional
        Make the values of each subject possible ones, as :func:`release` does.
    warnings : sequence of str
        Sentences to put into the record.
    ledger : Ledger, optional
        The budget: one entry for all of them.
    overwrite : bool, default False
        Whether the files of an earlier release for each subject may be replaced.
    accept : str or collection of str, default ()
        As for :func:`release`.
    for_spreadsheets : bool, default False
        Write a single quote before each name in a ``.csv`` table that a spreadsheet would take for a formula, such as
        one that begins with ``=``. Without it, such names are warned of.

    Returns
    -------
    EachRelease
        The record; its ``read_table(output)`` are the values.

    Raises
    ------
    ReleaseRefused, BudgetExceeded, DataError, ParameterError
        As for :func:`release`; nothing is spent.
    RecordError
        If the files cannot be written, or are in the way.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> days = pl.DataFrame({"who": ["a"] * 40 + ["b"] * 20, "s": list("rrrw" * 10) + list("rrww" * 5)})
    >>> data = pf.read_sequences(days, "s", subject="who")
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["r", "w"])
    >>> noise = pf.LeakagePropagation(chain, data.length).calibrate(pf.Count("w"), epsilon=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = pf.release_each(data, pf.Count("w"), noise, folder + "/values.csv")
    ...     table = found.read_table(folder + "/values.csv")
    >>> table.columns, table["subject"].to_list(), table["records"].to_list()
    (['subject', 'records', 'output', 'value', 'error_95'], ['a', 'b'], [40, 20])
    """
    ready = prepare_each(
        data,
        query,
        calibration,
        OutputFiles(output, overwrite=overwrite, for_spreadsheets=for_spreadsheets),
        postprocess=postprocess,
        warnings=warnings,
        ledger=ledger,
        accept=accept,
    )
    warn(text for text in ready.warnings if text not in warnings)
    return ready.finish()


class OutputFiles:
    """Where the table of values and its record go.

    Parameters
    ----------
    output : path-like
        The table.
    overwrite : bool
        Whether the files of an earlier release for each subject may be replaced.
    for_spreadsheets : bool, default False
        Whether names that are formulas to a spreadsheet are quoted.
    """

    def __init__(self, output: str | os.PathLike[str], *, overwrite: bool, for_spreadsheets: bool = False) -> None:
        if not isinstance(output, str | os.PathLike) or Path(output).suffix.lower() not in TABLE_ENDINGS:
            raise ParameterError(
                f"output is {display_path(output)!r}, expected a name that ends in .parquet or .csv: the table of "
                "values; its record is written to a .json file of the same name"
            )
        self.as_text = Path(output).suffix.lower() == ".csv"
        self.for_spreadsheets = truth(for_spreadsheets, "for_spreadsheets")
        if self.for_spreadsheets and not self.as_text:
            raise ParameterError(
                f"for_spreadsheets=True is for CSV, and {display_path(output)} has types, by which a name is no "
                "formula: leave it out, or name a .csv file"
            )
        record = Path(output).with_suffix(".json")
        self.begun = False  # whether something was spent, or drawn: then the same command goes on
        self.given, self.given_record = display_path(output), display_path(record)
        self._named, self._overwrite = (output, record), overwrite
        self.check()

    def check(self) -> None:
        """Find the files, all links followed, and refuse what is in the way."""
        output, record = self._named
        self.record = check_output(record, RELEASE, overwrite=self._overwrite)
        self.pending_record = self.record.with_name(f"{self.record.name}.pending")
        unfinished = self.pending_record.exists()
        ours, replaced = _is_table_of(output, self.record, self.pending_record), self._overwrite or unfinished
        self.table = check_output(output, None if ours and replaced else _table_kind(ours=ours), overwrite=replaced)
        self.pending_table = self.table.with_name(f"{self.table.name}.pending")
        self.lock = self.pending_record.with_name(f"{self.pending_record.name}.lock")
        if self.pending_table.exists() and not unfinished:
            raise RecordError(
                f"{self.given}.pending exists, but is not of an unfinished release: move it away, or name another file"
            )
        for pending in (self.pending_table, self.pending_record):
            check_output(pending, None, overwrite=True)

    @contextmanager
    def alone(self) -> Generator[None]:
        """Keep out every other program that makes this release."""
        from filelock import FileLock, Timeout

        path = self.lock
        lock = FileLock(path)
        check_lock(path, self.given)
        with failing("cannot write", path):
            try:
                lock.acquire(timeout=0)
            except Timeout:
                raise RecordError(
                    f"another program is making {self.given}: wait for it, or name another file"
                ) from None
        try:
            self.check()  # what another program finished meanwhile
            yield
        finally:
            lock.release()


def _is_table_of(path: str | os.PathLike[str], *records: Path) -> bool:
    """Whether a file is the table that one of these records names."""
    if not Path(path).is_file():
        return False
    for record in records:
        with suppress(RecordError):
            table = read_recorded(EachRelease, record).table
            if table is not None and table.sha256 == file_digest(path):
                return True
    return False


def _table_kind(*, ours: bool) -> Kind:
    """Return the kind of a table of which it is known whether a record beside it names it; no other is replaced."""
    return Kind(
        "table of a release for each subject",
        lambda content: ours,
        "it is the table of an earlier release; name another file, or give overwrite=True to replace the file (its "
        "privacy budget stays spent)",
        TABLE_ENDINGS,
    )


def prepare_each(
    data: Sequences | Rows,
    query: Query,
    calibration: Calibration,
    files: OutputFiles,
    *,
    postprocess: Literal["valid"] | None = None,
    warnings: Sequence[str] = (),
    ledger: Ledger | None = None,
    accept: str | Collection[str] = (),
    model: Described | None = None,
) -> Prepared[EachRelease]:
    """Check and prove all that can be refused, and return what spends the budget, draws, and writes the files."""
    if not isinstance(data, Sequences) or data.names is None:
        raise ParameterError(
            "a release for each subject needs the column of subjects: read the table with subject (a network's table "
            "has one row for each subject)"
        )
    if data.groups is not None:
        raise ParameterError(
            "the table was read with by=, but a release for each subject has no groups: read it without by=, or use "
            "release and group by the column of subjects"
        )
    if not isinstance(calibration, Calibration):
        raise ParameterError("the calibration is missing: release_each(data, query, calibration, output)")
    ready = checked(
        data,
        query,
        calibration,
        postprocess=postprocess,
        warnings=warnings,
        ledger=ledger,
        accept=accept,
        by_subject=True,
        model=model,
    )
    calibration, linear = ready.calibration, ready.calibration.linear
    assert isinstance(linear, LinearQuery)
    subjects = cells_of(data, calibration, by_subject=True)
    draw = subjects.sampler(calibration)
    extra_warnings = few_of_subjects(calibration, linear, subjects.records.tolist())
    if files.as_text and not files.for_spreadsheets:
        extra_warnings += filter(None, [warning_of_formulas((*linear.labels, *(name for (name,) in subjects.names)))])
    subjects_record = SubjectsRecord(secrets.token_hex(16), linear.divided_by is not None, None)
    draft = as_release(EachRelease, ready.draft(extra_warnings, subjects=subjects_record))
    try:
        place = None if ledger is None else place_in(ledger, None)
        _finish_record(draft, place, calibration, _table_record(files, draft, b""))
    except RecordError as error:
        raise inconsistent(error) from error

    def plan() -> tuple[EachRelease, Entry | None]:
        begun = _find_interrupted(files, draft, ledger)
        if ledger is None:
            return begun or draft, None
        entry = booked(ledger, begun) or ledger.check(calibration, data=data, release=draft.release)
        place = place_in(ledger, entry)
        return with_values(replace(begun or draft, ledger=place), calibration), entry

    def finish(begin: Callable[[], object] = lambda: None) -> EachRelease:
        if ledger is not None and not files.lock.exists():
            plan()  # the lock stays once it is there: what is refused leaves none
        with files.alone():
            begun = _find_interrupted(files, draft, ledger)
            if begun is None or begun.table is None:
                begun = draw_and_write(begun, begin)
            else:
                files.begun = True
                begin()
            return _publish(files, begun)

    def booked(ledger: Ledger | None, begun: EachRelease | None) -> Entry | None:
        entry, drawn = _entry_booked(ledger, begun), files.pending_table.exists()
        if ledger is None or begun is None or begun.table is not None:
            return entry
        if entry is None and drawn:
            raise _Interrupted(files, "whose values were drawn, and which this ledger did not charge", _FINISH_IT)
        if entry is not None and not drawn and not ledger.charged(entry, calibration, data):
            raise _Interrupted(files, f"that was charged for other records, as entry {entry.number}", _FINISH_IT)
        return entry

    def draw_and_write(begun: EachRelease | None, begin: Callable[[], object]) -> EachRelease:
        entry = booked(ledger, begun)
        # values that were drawn may have been seen: they are kept, however the program ended
        already_drawn = begun is not None and files.pending_table.exists()
        if begun is None or (entry is None and not already_drawn):
            begun = replace(draft, subjects=replace(subjects_record, release=secrets.token_hex(16)), created=now())
            values = len(subjects.names) * len(linear.labels)
            # the record twice, as it is replaced, a new ledger beside the old one, and the table
            check_room(files.record, 3 * len(encoded(begun)) + _ROOM_OF_VALUE * values, files.given)
            _write_pending(files.pending_record, begun)
        place, files.begun = None, True
        if ledger is None or entry is not None:
            begin()
        if ledger is not None:
            entry = entry or _spend(files, ledger, begun, calibration, data, begin)
            place = place_in(ledger, entry)
        if already_drawn:
            with failing("cannot read", files.pending_table):
                content = files.pending_table.read_bytes()
        else:
            table_file = files.table.name, files.for_spreadsheets
            content = table_of(
                subjects, draw(), linear.labels, calibration.unit_scale, draft.postprocessing, *table_file
            )
            write_whole(files.pending_table, content, None, overwrite=True)
        record = _finish_record(begun, place, calibration, _table_record(files, begun, content))
        _write_pending(files.pending_record, record)
        return record

    return Prepared(tuple(draft.warnings), plan, finish)


def _table_record(files: OutputFiles, record: EachRelease, content: bytes) -> TableRecord:
    rows = record.data.subjects * len(record.query.labels)
    columns = columns_of(record.postprocessing is not None)
    return TableRecord(files.table.name, columns, rows, hashlib.sha256(content).hexdigest())


def _finish_record(
    record: EachRelease, place: LedgerRecord | None, calibration: Calibration, table: TableRecord
) -> EachRelease:
    """Return the record with its place in a ledger and its table, checked as a reader will."""
    subjects = None if record.subjects is None else replace(record.subjects, table=table)
    finished = with_values(replace(record, ledger=place, subjects=subjects), calibration)
    finished.check()
    return finished


def _find_interrupted(files: OutputFiles, draft: EachRelease, ledger: Ledger | None) -> EachRelease | None:
    """Return the record of the same release that was interrupted, if there is one; refuse that of another.

    What is finished but for its name is not booked any more: it has to be of the ledger that is given.
    """
    if not files.pending_record.exists():
        return None
    record = read_recorded(EachRelease, files.pending_record)
    differing = next((name for name in _REQUEST if getattr(record, name) != getattr(draft, name)), None)
    if differing is not None:
        raise _Interrupted(
            files,
            f"of {record.query.kind} at epsilon {record.epsilon:g}, and this one has another {differing}",
            _FINISH_IT,
        )
    charged_here = record.ledger is None if ledger is None else _entry_booked(ledger, record) is not None
    if record.table is not None and not charged_here:
        charged_to = "to no ledger" if record.ledger is None else "to a ledger, which this one does not name"
        raise _Interrupted(files, f"that was charged {charged_to}", _FINISH_IT)
    if record.table is not None and record.table.name != files.table.name:
        raise _Interrupted(files, f"into {record.table.name}", _FINISH_THERE)
    for suffix in TABLE_ENDINGS:  # a release with another suffix has the same record
        elsewhere = files.table.with_suffix(suffix).name
        begun_there = os.path.lexists(files.table.with_name(f"{elsewhere}.pending"))
        if begun_there and elsewhere != files.table.name:
            raise _Interrupted(files, f"into {elsewhere}", _FINISH_THERE)
    return record


class _Interrupted(RecordError):
    """Another release was interrupted here. Its epsilon may follow from the lengths of chains: not all may read it."""

    kind = "another release was interrupted here: run its command again, or delete its .pending file to give it up"

    def __init__(self, files: OutputFiles, which: str, remedy: str) -> None:
        super().__init__(f"{files.given_record}.pending is an interrupted release {which}: {remedy}")


def _entry_booked(ledger: Ledger | None, begun: EachRelease | None) -> Entry | None:
    """Return what a release that was interrupted booked already."""
    if ledger is None or begun is None:
        return None
    return next((entry for entry in ledger.entries if entry.release == begun.release), None)


def _spend(
    files: OutputFiles,
    ledger: Ledger,
    begun: EachRelease,
    calibration: Calibration,
    data: Sequences,
    begin: Callable[[], object],
) -> Entry:
    """Charge the release to the ledger; where that is refused, its record is deleted."""
    note = f"{begun.query.kind}, one for each of {begun.data.subjects:,} subjects: {begun.query.description}"
    note = note_of(note, calibration.theta, ledger)
    try:
        return ledger.spend(calibration, data=data, note=note, release=begun.release, begin=begin)
    except PufferfishError:
        with suppress(OSError):
            files.pending_record.unlink()  # nothing was spent, and nothing drawn
        raise


def _write_pending(path: Path, record: EachRelease) -> None:
    write_whole(path, encoded(record), None, overwrite=True)


def _publish(files: OutputFiles, record: EachRelease) -> EachRelease:
    """Give the finished files their names; what was drawn is never drawn again."""
    assert record.table is not None
    files.check()  # what was made here by others while noise was drawn
    is_pending = files.pending_table.exists() and file_digest(files.pending_table) == record.table.sha256
    is_in_place = files.table.exists() and file_digest(files.table) == record.table.sha256
    with failing("cannot write", files.given):
        if is_pending:
            os.replace(files.pending_table, files.table)
        os.replace(files.pending_record, files.record)
    if not (is_pending or is_in_place):
        raise RecordError(
            f"this release was finished, and its table is no longer at {files.given}: find it where it was moved; "
            f"noise is never drawn twice. Its record is {files.given_record}"
        )
    return record
