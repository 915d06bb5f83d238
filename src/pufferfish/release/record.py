"""A release: its value, its record, and the file that holds it."""

import math
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from pufferfish._base.checked import truth
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.reading import LARGEST, check_path, failing, file_digest, shown
from pufferfish._base.view import Shown, View, counted
from pufferfish._base.words import at_most
from pufferfish._base.writing import Kind, decode_record, read_record, record_kind, write_whole
from pufferfish.errors import PufferfishError, RecordError
from pufferfish.release.check import contradictions, near
from pufferfish.release.facts import (
    FORMAT,
    VERSION,
    AccuracyRecord,
    CalibrationRecord,
    DataRecord,
    LedgerRecord,
    MechanismRecord,
    NoiseRecord,
    QueryRecord,
    ReleaseFields,
    frame_of,
)
from pufferfish.release.steps import dwell_times_of, fitted_chain, histogram_of, switches_of
from pufferfish.release.synthetic import synthetic_series
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.record import ThetaRecord

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from pufferfish.release.verification import Verification

__all__ = [
    "EACH",
    "RELEASE",
    "EachQuery",
    "EachRelease",
    "Release",
    "Reported",
    "TableRecord",
    "is_table_of",
    "table_kind",
]

# -- What every kind of release can do for its readers ---------------------------------------------------------------


class Reported:
    """A record of a release that has a page of its own (:mod:`pufferfish.release.show.page`)."""

    __slots__ = ()

    def report(
        self: Any,
        path: str | os.PathLike[str],
        *,
        ledger: Any = None,
        brief: bool = False,
    ) -> None:
        """Write a page about the release that a browser shows: one file, which needs no network.

        It says what was released, what is promised and what is not, what an adversary may believe, which record decides
        the noise, and what error other mechanisms and other ε would have. The proof is computed again first. Of what is
        there already only an earlier report is replaced.

        Parameters
        ----------
        path : path-like
            The page, a name that ends in ``.html`` as a rule.
        ledger : Ledger or path-like, optional
            The book that the release was charged to: its history is shown.
        brief : bool, default False
            Without the noise of other mechanisms and of other ε, which may take long to compute.

        Raises
        ------
        RecordError
            If the record does not hold, or the page cannot be written.
        """
        from pufferfish.release.show.page import Source, write_report

        write_report([Source(self)], path, ledger=ledger, brief=brief)


RELEASE = record_kind(
    "release",
    FORMAT,
    "it is the record of an earlier release, which is spent; name another file, or give overwrite=True",
)


class Release(ReleaseFields, Reported, Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A private value and the record of what was promised; made by :func:`release`.

    Parameters
    ----------
    values : list of float
        The released value of each output, after post-processing if there was any; with groups, m values for the first
        group, then m for the next (``value`` has them as an array of shape (groups, m)).
    noisy_values : list of float
        The value as the noise left it.
    postprocessing : Projected, Clipped or None
        What was done to the noisy values; it uses nothing but them and public numbers.
    epsilon, delta : float
        Privacy parameters; ``delta`` is 0 but for (ε, δ) mechanisms.
    query, noise, mechanism, theta, data, accuracy_95 : records
        See their classes.
    promise : str
        What is promised, in one sentence.
    not_promised, assumptions, warnings : list of str
        What is not; what the promise rests on; what a reader must know first.
    created : str
        Time of the release, UTC.
    software : dict of str to str
        Versions.
    ledger : record or None
        Its place among other releases of the same records, where a ledger was kept.
    groups : record or None
        The public groups that the values are of, where the table was read with ``by``.
    calibration : record
        What the proof of its noise is computed from; ``msgspec.UNSET`` in releases of earlier versions.
    """

    def histogram(self) -> dict[str, float]:
        """Return the share of records in each state, from a release of transitions; it costs no privacy.

        This and what follows use the noisy counts and public numbers alone: the nearest counts that are not negative,
        add up to the number of steps, and enter each state as often as they leave it.

        Raises
        ------
        QueryError
            If the release is not of transitions.
        """
        return histogram_of(self)

    def chain(self) -> MarkovChain:
        """Return a fitted chain, from a release of transitions; it costs no privacy.

        Half a step is added to each count, so that no transition is impossible because noise hid it. Noise for other
        releases of the same records must not be calibrated to it alone: the chain says what the records are like, not
        what an adversary may believe.

        Raises
        ------
        QueryError
            If the release is not of transitions.
        """
        return fitted_chain(self)

    def dwell_times(self) -> dict[str, float]:
        """Return how many records in a row each state lasts in the mean, from a release of transitions.

        Raises
        ------
        QueryError
            If the release is not of transitions.
        """
        return dwell_times_of(self)

    def switches(self) -> float:
        """Return how many steps change the state, from a release of transitions or of switches.

        Raises
        ------
        QueryError
            If the release is of something else.
        """
        return switches_of(self)

    def synthetic(self, length: int, series: int | None = None, *, seed: int | None = None) -> list[Any]:
        """Return a synthetic series of states, drawn from the fitted chain; it costs no privacy.

        Parameters
        ----------
        length : int
            Records of the series.
        series : int, optional
            How many series; by default one, which is returned by itself.
        seed : int, optional
            The same seed gives the same series. It has nothing to do with the noise of the release, which was drawn
            before, and which nothing can seed.

        Returns
        -------
        list of str, or list of these
            The states.

        Raises
        ------
        QueryError
            If the release is not of transitions.
        ParameterError
            If a number is none.
        """
        return synthetic_series(self, length, series, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain numbers, texts, lists and dicts."""
        return msgspec.to_builtins(self)

    def to_frame(self, of: Literal["values", "quantiles"] | None = None, *, into: str = "polars") -> Any:
        """Return the values as a table: a row for each output, of each group if there are any.

        Columns: one for every grouping, ``output``, ``records`` (of the group), ``value``, ``noisy_value`` where values
        were post-processed, and ``error_95``, which the noisy value exceeds with probability at most 5%. Groupings
        whose groups are all named by whole numbers, such as hours, are columns of whole numbers.

        Parameters
        ----------
        of : {"values", "quantiles"}, optional
            By default the quantiles where they were asked for, a row for each with columns ``quantile``, ``state``,
            ``low_95`` and ``high_95``; else the values.
        into : {"polars", "pandas", "pyarrow"}, default "polars"
            The library whose table it is.

        Raises
        ------
        ParameterError
            If there are no quantiles, or the library is another one or not installed.
        """
        return frame_of(self, of, into)

    def to_json(self, path: str | os.PathLike[str] | None = None, *, overwrite: bool = False) -> str:
        """Return the record as JSON, and write it to a file if a path is given.

        Parameters
        ----------
        path : path-like, optional
            The file.
        overwrite : bool, default False
            Whether the record of an earlier release may be replaced: what it says is spent, and nobody can check it
            without its record. No other file ever is.

        Raises
        ------
        RecordError
            If the file cannot be written, or is there already; nothing is left behind.
        """
        insisted, content = truth(overwrite, "overwrite"), self._encoded()
        if path is not None:
            write_whole(path, content, RELEASE, overwrite=insisted)
        return content.decode()

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "Release":
        """Read a release file, validated: what follows from something else in it is computed again.

        Raises
        ------
        RecordError
            If the file is damaged, of another version, or contradicts itself.
        """
        found = read_record(path, cls, format_=FORMAT, version=VERSION, complete=True)
        try:
            found.check()
        except RecordError as error:
            raise RecordError(f"{path} contradicts itself: {error}") from error
        return found

    def check(self) -> None:
        """Compute again what follows from something else in the record, and that it can be written.

        Raises
        ------
        RecordError
            If the record contradicts itself, or holds text that no file can.
        """
        try:
            self.theta.check()
            wrong = next(contradictions(self), None)
        except (PufferfishError, ValueError, TypeError, OverflowError) as error:
            raise RecordError(str(error)) from error
        if wrong is not None:
            raise RecordError(f"expected that {wrong}")
        self._encoded()

    def check_readable(self) -> None:
        """As :meth:`check`, and that what is written is read again as it is.

        Raises
        ------
        RecordError
            If not.
        """
        self.check()
        content = self._encoded()
        again = decode_record(content, "it", type(self), format_=FORMAT, version=VERSION, complete=True)
        if again != self:
            raise RecordError("it is read again as another record")
        if len(content) > LARGEST:
            raise RecordError(f"it would have more than {LARGEST >> 20} MiB")

    def __repr__(self) -> str:
        noise = f"{self.mechanism.title}, ε = {at_most(self.epsilon)}, noise scale {self.scale:.6g}"
        return f"Release({self.query.kind}, {counted(len(self.values), 'value')}, {noise})"

    def _view(self) -> View:
        from pufferfish.release.show.text import of_release

        return of_release(self)

    def __str__(self) -> str:
        from pufferfish.release.show.text import summary

        return summary(self, most=20)

    def verify(self, *, model: Any = None, ledger: Any = None, table: Any = None) -> "Verification":
        """Compute the proof again, and all that follows from something else; arguments as for :func:`verify`."""
        from pufferfish.release.verify import verify

        return verify(self, model=model, ledger=ledger, table=table)

    def _encoded(self) -> bytes:
        try:
            return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"
        except TypeError as error:
            raise RecordError(f"the record holds what no file can: {error}") from error
        except UnicodeEncodeError as error:
            raise RecordError(f"the record holds {error.object!r}, which is no text that UTF-8 can write") from error

    def plot(self, path: str | os.PathLike[str] | None = None) -> "Figure":
        """Draw the value with error bars of the noise (95% for each output); write it if a path is given.

        Raises
        ------
        ParameterError
            If matplotlib is not installed.
        RecordError
            If the picture cannot be written.
        """
        from pufferfish._draw.figure import save_figure
        from pufferfish.release.show.pictures import draw_release

        if path is not None:
            check_path(path)
        figure = draw_release(self)
        if path is not None:
            save_figure(figure, path)
        return figure


# -- The record of a release with one value for each subject ---------------------------------------------------------

TABLE_ENDINGS = (".parquet", ".csv")

EACH_FORMAT = "pufferfish-each-subject"
EACH_VERSION = 3

OWN_RECORDS = "records of the subject"
"""What a description says in place of the number of records of the table."""

EACH = record_kind(
    "release for each subject",
    EACH_FORMAT,
    "it is the record of an earlier release, which is spent; name another file, or give overwrite=True",
)


class EachQuery(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """What was asked of each subject; ``lipschitz`` is how far one record moves the outputs of its subject.

    With ``divided_by_records`` the outputs of a subject are divided by the number of its records, which is public.
    ``lipschitz``, the noise and the accuracy are those before.
    """

    kind: str
    description: str
    labels: list[str]
    lipschitz: float
    divided_by_records: bool


class TableRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The file that holds the values, without its folder, its columns, rows and SHA-256."""

    name: str
    columns: list[str]
    rows: int
    sha256: str


class EachRelease(FrozenRecord, Shown, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The record of one release for each subject of a table; made by :func:`release_each`.

    Parameters
    ----------
    release : str
        A number drawn at random, by which the release knows its entry in a ledger.
    query, noise, accuracy_95, mechanism, data, theta : records
        See their classes. The noise is the same for every subject: with ``query.divided_by_records`` the noise of a
        subject is divided by its number of records too. ``accuracy_95.joint`` is about all outputs of one subject.
    postprocessing : {"projected", "clipped"} or None
        What was done to the noisy values of each subject: the nearest values that are possible for so many records.
    promise : str
        What is promised, in one sentence, of all values together.
    table : record or None
        Where the values are; None before they were drawn.
    calibration : record
        What the proof of its noise is computed from; ``msgspec.UNSET`` in releases of earlier versions.
    """

    format: str = EACH_FORMAT
    version: int = EACH_VERSION
    release: str
    created: str
    query: EachQuery
    postprocessing: Literal["projected", "clipped"] | None
    epsilon: float
    promise: str
    warnings: list[str]
    not_promised: list[str]
    assumptions: list[str]
    noise: NoiseRecord
    accuracy_95: AccuracyRecord
    mechanism: MechanismRecord
    data: DataRecord
    theta: ThetaRecord
    software: dict[str, str]
    ledger: LedgerRecord | None = None
    table: TableRecord | None = None
    calibration: CalibrationRecord | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "EachRelease":
        """Read the record, validated: what follows from something else in it is computed again.

        Raises
        ------
        RecordError
            If the file is damaged, of another version, contradicts itself, or is of a release that was not finished.
        """
        found = read_each(path)
        if found.table is None:
            raise RecordError(f"{shown(path)} is of a release that was not finished: it has no table yet")
        return found

    def read_table(self, path: str | os.PathLike[str]) -> "pl.DataFrame":
        """Return the values: the table beside the record, refused where it is not the one that was written.

        Raises
        ------
        RecordError
            If the file cannot be read, or is another one.
        """
        import polars as pl

        if self.table is None or file_digest(path) != self.table.sha256:
            raise RecordError(f"{shown(path)} is not the table of this release: its digest does not fit")
        with failing("cannot read", path):
            if Path(path).suffix.lower() == ".parquet":
                return pl.read_parquet(Path(path))
            return pl.read_csv(Path(path), schema_overrides={"subject": pl.String, "output": pl.String})

    def __repr__(self) -> str:
        of = f"{self.query.kind} for each of {counted(self.data.subjects, 'subject')}"
        return f"EachRelease({of}, {self.mechanism.title}, ε = {at_most(self.epsilon)})"

    def _view(self) -> View:
        from pufferfish.release.show.text import of_each

        return of_each(self)

    def __str__(self) -> str:
        from pufferfish.release.show.text import summary

        return summary(self, most=20)

    def verify(self, *, model: Any = None, ledger: Any = None, table: Any = None, values: Any = None) -> "Verification":
        """Compute the proof again, and all that follows from something else; arguments as for :func:`verify`."""
        from pufferfish.release.verify import verify

        return verify(self, model=model, ledger=ledger, table=table, values=values)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        values: Any = None,
        ledger: Any = None,
        brief: bool = False,
    ) -> None:
        """Write a page about the release, as :meth:`Release.report` does.

        Parameters
        ----------
        path, ledger, brief
            As for other releases.
        values : path-like, optional
            The table of values, which is summarised.

        Raises
        ------
        RecordError
            If the record or the table does not hold, or the page cannot be written.
        """
        from pufferfish.release.show.page import Source, write_report

        write_report([Source(self, values=None if values is None else Path(values))], path, ledger=ledger, brief=brief)

    def encoded(self) -> bytes:
        """Return the record as JSON."""
        try:
            return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"
        except (TypeError, UnicodeEncodeError) as error:
            raise RecordError(f"the record holds what no file can: {error}") from error

    def check(self) -> None:
        """Compute again what follows from something else in the record.

        The rules are those of other releases: they are asked about one with the same noise, whose values are 0.

        Raises
        ------
        RecordError
            If the record contradicts itself.
        """
        try:
            self.theta.check()
            wrong = next(contradictions(self.as_release()), None)
            said, again = self.accuracy_95, accuracy_of(self.noise, len(self.query.labels))
            same = near(said.each, again.each) and near(said.joint, again.joint)
            if wrong is None and not (same and (said.alpha, said.outputs) == (again.alpha, again.outputs)):
                wrong = "accuracy_95 is that of the noise"
            if wrong is None and self.postprocessing not in (None, "clipped", "projected"):
                wrong = "the post-processing is one of this program's"
            if wrong is None and self.table is not None:
                rows = self.data.subjects * len(self.query.labels)
                own = self.table.rows == rows and self.table.columns == columns_of(self.postprocessing is not None)
                plain = self.table.name == os.path.basename(self.table.name) and len(self.table.sha256) == 64
                wrong = None if own and plain else "the table has a row for each subject and output"
        except (PufferfishError, ValueError, TypeError, ArithmeticError) as error:
            raise RecordError(str(error)) from error
        if wrong is not None:
            raise RecordError(f"expected that {wrong}")

    def as_release(self) -> Release:
        """Return a release of all records together with the same noise, and 0 for values."""
        query, records, noise = self.query, self.data.records, self.noise
        if not (0 < noise.scale < math.inf and 0 < noise.unit < math.inf and records > 0 and query.labels):
            raise RecordError("expected that scale, unit and the numbers of records and outputs are above 0")
        by = records if query.divided_by_records else 1
        zeros = [0.0] * len(query.labels)
        multiplier = self.noise.noise_multiplier
        noise = NoiseRecord(self.noise.law, self.noise.scale / by, self.noise.unit / by, multiplier)
        return Release(
            created=self.created,
            query=QueryRecord(
                query.kind,
                query.description.replace(OWN_RECORDS, f"{records:,} records"),
                query.labels,
                query.lipschitz / by,
                records if query.divided_by_records else None,
            ),
            values=zeros,
            noisy_values=zeros,
            postprocessing=None,
            epsilon=self.epsilon,
            promise=self.promise,
            warnings=self.warnings,
            not_promised=self.not_promised,
            assumptions=self.assumptions,
            noise=noise,
            accuracy_95=accuracy_of(noise, len(query.labels)),
            mechanism=self.mechanism,
            data=self.data,
            theta=self.theta,
            software=self.software,
            ledger=self.ledger,
            calibration=self.calibration,
        )


def read_each(path: str | os.PathLike[str]) -> EachRelease:
    """Return a record, validated, whether its release was finished or not."""
    found = read_record(path, EachRelease, format_=EACH_FORMAT, version=EACH_VERSION, complete=True)
    try:
        found.check()
    except RecordError as error:
        raise RecordError(f"{shown(path)} contradicts itself: {error}") from error
    return found


def accuracy_of(noise: NoiseRecord, outputs: int) -> AccuracyRecord:
    """Return the errors that noise exceeds with 5% probability."""
    return AccuracyRecord(0.05, noise.accuracy(0.05), noise.accuracy(0.05, outputs))


def columns_of(valid: bool) -> list[str]:
    """Return the columns of the table of values."""
    return ["subject", "records", "output", "value", *(["noisy_value"] if valid else []), "error_95"]


def is_table_of(path: str | os.PathLike[str], *records: Path) -> bool:
    """Whether a file is the table that one of these records names."""
    if not Path(path).is_file():
        return False
    for record in records:
        with suppress(RecordError):
            table = read_each(record).table
            if table is not None and table.sha256 == file_digest(path):
                return True
    return False


def table_kind(*, ours: bool) -> Kind:
    """Return the kind of a table of which it is known whether a record beside it names it; no other is replaced."""
    return Kind(
        "table of a release for each subject",
        lambda content: ours,
        "it is the table of an earlier release, which is spent; name another file, or give overwrite=True",
        TABLE_ENDINGS,
    )
