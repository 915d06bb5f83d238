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
import io
import os
import secrets
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pufferfish._base.checked import truth
from pufferfish._base.durations import now
from pufferfish._base.reading import display_path, failing, file_digest
from pufferfish._base.writing import Kind, check_lock, check_output, check_room, write_whole
from pufferfish._core.numbers import laplace
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError, PufferfishError, RecordError, warn
from pufferfish.ledger import Entry, Ledger
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import Query
from pufferfish.release.derive import place_in, with_values
from pufferfish.release.draw import Cells
from pufferfish.release.facts import LedgerRecord, SubjectsRecord, TableRecord
from pufferfish.release.postprocessing import BySubject
from pufferfish.release.prepare import Prepared, checked, inconsistent, note_of
from pufferfish.release.record import RELEASE, columns_of, csv_of, encoded, warning_of_formulas
from pufferfish.release.release import EachRelease, read_recorded

TABLE_ENDINGS = (".parquet", ".csv")

_REQUEST = ("query", "postprocessing", "epsilon", "noise", "data", "theta")
"""What two records of the same request share."""

_ROOM_OF_VALUE = 200
"""Bytes that a row of the table takes at most, about."""

_FINISH_IT = (
    "run that command again to finish it; or delete the file to give the release up (its ledger entry stays spent)"
)
_KEPT = (
    "it is the table of an earlier release; name another file, or give overwrite=True to replace the file (its "
    "privacy budget stays spent)"
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
    chain. A query that is divided by the number of records is divided by that of the subject. It is what
    :func:`release` does of a table that is grouped by its subjects, with the values in a table beside the record.

    Parameters
    ----------
    data : Sequences
        The private data, read with ``subject``. Who the subjects are, and how many records each has, is public.
    query, calibration, postprocess, warnings, ledger, accept
        As for :func:`release`; the ledger gets one entry for all subjects.
    output : path-like
        The table of values, a name that ends in ``.parquet`` or ``.csv``; the record of what was promised goes into
        a file of the same name that ends in ``.json``. If the program is killed, the same call goes on from there.
    overwrite : bool, default False
        Whether the files of an earlier release for each subject may be replaced.
    for_spreadsheets : bool, default False
        Write a single quote before each name in a ``.csv`` table that a spreadsheet would take for a formula, such as
        one that begins with ``=``. Without it, such names are warned of.

    Returns
    -------
    EachRelease
        The record; its ``read_table(output)`` are the values. A ``RecordError`` if the files cannot be written, or are
        in the way; all else as for :func:`release`, and nothing is spent.

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
    files = OutputFiles(output, overwrite=overwrite, for_spreadsheets=for_spreadsheets)
    settings: Any = {"postprocess": postprocess, "warnings": warnings, "accept": accept}
    ready = prepare_each(data, query, calibration, files, ledger=ledger, **settings)
    warn(text for text in ready.warnings if text not in warnings)
    return ready.finish()


class OutputFiles:
    """Where the table of values and its record go; refused where something is in the way.

    ``overwrite``: the files of an earlier release for each subject may be replaced. ``for_spreadsheets``: names that
    are formulas to a spreadsheet are quoted.
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
        kind = Kind("table of a release for each subject", lambda _: ours, _KEPT, TABLE_ENDINGS)
        self.table = check_output(output, None if ours and replaced else kind, overwrite=replaced)
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

        check_lock(self.lock, self.given)
        lock = FileLock(self.lock)
        with failing("cannot write", self.lock):
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
    for record in records if Path(path).is_file() else ():
        with suppress(RecordError):
            table = read_recorded(EachRelease, record).table
            if table is not None and table.sha256 == file_digest(path):
                return True
    return False


def prepare_each(
    data: Sequences | Rows,
    query: Query,
    calibration: Calibration,
    files: OutputFiles,
    *,
    ledger: Ledger | None = None,
    **options: Any,
) -> Prepared[EachRelease]:
    """Check and prove all that can be refused, and return what spends the budget, draws, and writes the files.

    Other ``options`` are those of :func:`checked`.
    """
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
    checks_names = files.as_text and not files.for_spreadsheets
    names = (*calibration.linear.labels, *sorted(set(data.names))) if checks_names else ()
    subjects_record = SubjectsRecord(secrets.token_hex(16), False, None)
    options |= {"subjects": subjects_record, "names_warnings": list(filter(None, [warning_of_formulas(names)]))}
    calibration, subjects, draft = checked(EachRelease, data, query, calibration, ledger=ledger, **options)
    linear, draw = calibration.linear, subjects.sampler(calibration)
    numbered = draft.subjects or subjects_record
    try:
        place = None if ledger is None else place_in(ledger, None)
        _finish_record(files, draft, place, calibration, b"")
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
            begun = replace(draft, subjects=replace(numbered, release=secrets.token_hex(16)), created=now())
            values = len(subjects.names) * len(linear.labels)
            # the record twice, as it is replaced, a new ledger beside the old one, and the table
            check_room(files.record, 3 * len(encoded(begun)) + _ROOM_OF_VALUE * values, files.given)
            write_whole(files.pending_record, encoded(begun), None, overwrite=True)
        place, files.begun = None, True
        if ledger is None or entry is not None:
            begin()
        if ledger is not None:
            note = f"{begun.query.kind}, one for each of {begun.data.subjects:,} subjects: {begun.query.description}"
            charge: Any = {"note": note_of(note, calibration.theta, ledger), "release": begun.release, "begin": begin}
            try:
                entry = entry or ledger.spend(calibration, data=data, **charge)
            except PufferfishError:
                with suppress(OSError):
                    files.pending_record.unlink()  # nothing was spent, and nothing drawn
                raise
            place = place_in(ledger, entry)
        if already_drawn:
            with failing("cannot read", files.pending_table):
                content = files.pending_table.read_bytes()
        else:
            content = table_of(files, begun, subjects, draw())
            write_whole(files.pending_table, content, None, overwrite=True)
        record = _finish_record(files, begun, place, calibration, content)
        write_whole(files.pending_record, encoded(record), None, overwrite=True)
        return record

    return Prepared(tuple(draft.warnings), plan, finish)


def table_of(files: OutputFiles, record: EachRelease, subjects: Cells, noisy: NDArray[np.int64]) -> bytes:
    """Return the table of the noisy values as the content of its file."""
    import polars as pl

    labels, postprocessing = record.query.labels, record.postprocessing
    values, count = subjects.values(noisy), len(subjects.names)
    units = laplace.accuracy(record.calibration.unit_scale, 0.05)
    error = subjects.values(np.full((count, 1), units, dtype=np.int64))
    records = subjects.records if subjects.by is None else np.ones_like(subjects.records)
    names = pl.Series([subject for (subject,) in subjects.names], dtype=pl.String)
    columns: dict[str, Any] = {
        "subject": names.gather(np.repeat(np.arange(count), len(labels))),
        "records": np.repeat(subjects.records, len(labels)),
        "output": list(labels) * count,
        "value": (postprocessing.of(values, records) if isinstance(postprocessing, BySubject) else values).ravel(),
        "noisy_value": values.ravel(),
        "error_95": np.repeat(error, len(labels)),
    }
    frame = pl.DataFrame({column: columns[column] for column in columns_of(postprocessing is not None)})
    if files.table.suffix.lower() != ".parquet":
        return csv_of(frame, for_spreadsheets=files.for_spreadsheets)
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def _finish_record(
    files: OutputFiles, record: EachRelease, place: LedgerRecord | None, calibration: Calibration, content: bytes
) -> EachRelease:
    """Return the record with its place in a ledger and its table, checked as a reader will."""
    rows, columns = record.data.subjects * len(record.query.labels), columns_of(record.postprocessing is not None)
    table = TableRecord(files.table.name, columns, rows, hashlib.sha256(content).hexdigest())
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
        which = f"of {record.query.kind} at epsilon {record.epsilon:g}, and this one has another {differing}"
        raise _Interrupted(files, which, _FINISH_IT)
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
