"""What stands in the file of a release: its fields, and what follows from them alone.

A release is of a query, with values for all records, for each public group or for each subject; or of a measurement.
The parts of these records are in :mod:`pufferfish.release.facts`. What checks, proves, shows and writes releases takes
these classes; the public ones (:mod:`pufferfish.release.release`) are the same records with methods that do all that.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pufferfish._base.checked import one_of, truth
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.reading import decode_record, display_path, failing, file_digest
from pufferfish._base.view import FRAMES, frame_of_columns
from pufferfish._base.words import to_the_noise
from pufferfish._base.writing import read_file, record_kind
from pufferfish._core.numbers import laplace as laplace_sums
from pufferfish.data.bins import bin_labels
from pufferfish.errors import ParameterError, QueryError, RecordError, shortened
from pufferfish.mechanisms import MECHANISMS, ApproximateWasserstein, Mechanism, ParticipantDP, Promise
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.protection import Protection
from pufferfish.mechanisms.words import hidden_in_words
from pufferfish.queries import CDF, KINDS, Quantiles, Query
from pufferfish.queries.strategy import Strategy
from pufferfish.release.facts import (
    WEIGHTED,
    AccuracyRecord,
    CalibrationRecord,
    CountedRecord,
    DataRecord,
    GroupsRecord,
    LedgerRecord,
    MechanismRecord,
    NoiseRecord,
    QueryRecord,
    SubjectsRecord,
    decode,
    record_loss_of,
    strategy_of,
)
from pufferfish.release.postprocessing import BySubject, Clipped, PostProcessing, QuantileRecord, quantiles_of
from pufferfish.theta.joint_distribution import GivenLaws
from pufferfish.theta.model_class import Theta
from pufferfish.theta.record import Checking, ThetaRecord

if TYPE_CHECKING:
    import polars as pl

# -- The record of a release -----------------------------------------------------------------------------------------

FORMAT = "pufferfish-release"
VERSION = 4

RELEASE = record_kind(
    "release",
    FORMAT,
    "it is the record of an earlier release; name another file, or give overwrite=True to replace the file (its "
    "privacy budget stays spent)",
)


class ReleaseFields(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Private values and what was promised; :class:`~pufferfish.Release` explains each field.

    The values of each subject are not in the record, but in the table that ``subjects`` names.
    """

    format: str = FORMAT
    version: int = VERSION
    created: str
    query: QueryRecord
    values: list[float]
    noisy_values: list[float]
    postprocessing: PostProcessing | None
    quantiles: list[QuantileRecord] | None = None
    epsilon: float
    delta: float = 0.0
    hides: str
    promise: str
    promises: list[Promise]
    warnings: list[str]
    not_promised: list[str]
    assumptions: list[str]
    noise: NoiseRecord
    counted: CountedRecord | None = None
    accuracy_95: AccuracyRecord
    mechanism: MechanismRecord
    data: DataRecord
    theta: ThetaRecord
    checked: Checking | None = None
    software: dict[str, str]
    ledger: LedgerRecord | None = None
    groups: GroupsRecord | None = None
    subjects: SubjectsRecord | None = None
    calibration: CalibrationRecord

    @property
    def value(self) -> NDArray[np.float64]:
        """The released value; shape (m,), one entry per output of the query, or (groups, m)."""
        values = np.array(self.values)
        return values if self.groups is None else values.reshape(len(self.groups.cells), -1)

    @property
    def scale(self) -> float:
        """Laplace scale of the noise on each output, before groups are divided; the largest, of measurements."""
        return self.noise.scale

    @property
    def protection(self) -> Protection | None:
        """What is hidden together, as the settings of its mechanism say; None for one record and any two values."""
        return Protection.in_settings(self.calibration.settings)

    @property
    def step(self) -> str | None:
        """How long a step takes, where the times of the table say it."""
        return self.data.step

    @property
    def cell_that_divides(self) -> Literal["group", "subject"] | None:
        """What the noise is divided by the records of; None where nothing is divided after noise was drawn."""
        if self.subjects is not None:
            return "subject" if self.subjects.divided_by_records else None
        return "group" if self.groups is not None and self.groups.divided_by is not None else None

    @property
    def whole(self) -> bool:
        """Whether values and their errors are whole numbers, as counts are; what was drawn does not decide it."""
        unit, post = self.noise.unit, self.postprocessing
        moved = post is not None and not isinstance(post, Clipped)
        moved = moved and not (isinstance(post, BySubject) and not post.projected)
        return unit == math.floor(unit) and self.cell_that_divides is None and not moved

    def writer(self, digits: int = 3) -> Callable[[float, float], str]:
        """Return what writes values and errors to so many digits of their noise; whole numbers have no decimals.

        It takes a value and by what its group's noise is divided, 1 where there is none.
        """
        scale, whole = self.scale, self.whole
        return lambda value, over: to_the_noise(value, scale / over, digits=digits, whole=whole)

    @property
    def strategy(self) -> Strategy | None:
        """What was measured, and how the outputs follow from it; None where every output got noise of one scale."""
        return strategy_of(self.query.kind, self.theta.states, self.noise)

    @property
    def record_loss(self) -> NDArray[np.float64]:
        """Record-level loss of the release for every pair of states of a chain, in nats, rounded up; shape (k, k).

        Computed from :attr:`counted`, as whoever reads a release may do: ``leakage`` of a bound takes it. A
        ``QueryError`` if the query is a function of the user's, or counts steps or the cells of a network's table.
        """
        if self.counted is None:
            raise QueryError("the query is a function of the user's: how far one record moves it is not known")
        return record_loss_of(self.counted)

    def accuracy(self, alpha: float = 0.05, *, joint: bool = False) -> float:
        """Error of the noisy value that is exceeded with probability at most alpha; with groups, in all of them.

        Parameters
        ----------
        alpha : float, default 0.05
            Probability, strictly between 0 and 1.
        joint : bool, default False
            For all outputs at once rather than for each of them.
        """
        noise, strategy, groups = self.noise, self.strategy, self.groups
        if truth(joint, "joint") and strategy is not None:  # one error for all outputs, less than the largest of theirs
            share = laplace_sums.share_of_each(alpha, 1 if groups is None else len(groups.cells))
            error = noise.worth(strategy.error(noise.one_scale, share, joint=True))
        else:
            error = max(self._undivided(alpha, joint), default=0.0)
        return error if groups is None else error * groups.most_error

    def accuracies(self, alpha: float = 0.05, *, joint: bool = False) -> NDArray[np.float64]:
        """Error of each value that it, or with ``joint`` any of them its own, exceeds with probability at most alpha.

        Parameters are those of :meth:`accuracy`; of the shape of :attr:`value`: (m,), or (groups, m).
        """
        errors, groups = np.array(self._undivided(alpha, joint)), self.groups
        if groups is None:
            return errors
        by_group: NDArray[np.float64] = errors / np.array(groups.divided_by or [1] * len(groups.cells))[:, None]
        return by_group

    def _undivided(self, alpha: float, joint: bool) -> list[float]:
        """Return the error of each output, before what its group is divided by."""
        for_all, noise, strategy = truth(joint, "joint"), self.noise, self.strategy
        m, cells = len(self.query.labels), 1 if self.groups is None else len(self.groups.cells)
        if strategy is None:
            return [noise.accuracy(alpha, m * cells if for_all else 1)] * m
        share = laplace_sums.share_of_each(alpha, cells if for_all else 1)
        return [noise.worth(error) for error in strategy.errors(noise.one_scale, share, joint=for_all)]

    def quantiles_at(self, shares: Sequence[float]) -> list[QuantileRecord]:
        """Return quantiles of a cumulative distribution, with intervals that hold together with 95% probability.

        They are of some ``shares``, strictly between 0 and 1. Of groups those of the first one come first, then those
        of the next; the intervals of all groups hold together. A ``QueryError`` if the release is of another query.
        """
        kind, groups, states = self.query.kind, self.groups, self.theta.states
        if kind.startswith(WEIGHTED) or not (kind in CDF.kinds or kind in Quantiles.kinds):
            raise QueryError(f"quantiles are of a cumulative distribution, and this release is of the kind {kind!r}")
        if not KINDS[kind].relative and self.data.base is None:
            raise QueryError("how many records a count of one database is of is not in its record: ask for shares")
        records = [self.data.records] if groups is None else groups.records
        edges = None if self.data.base is None else self.data.base.bins
        edges = edges if edges is not None and bin_labels(edges) == tuple(states) else None
        noisy = np.reshape(self.noisy_values, (len(records), -1)).tolist()
        errors = np.reshape(self.accuracies(0.05, joint=True), (len(records), -1))
        totals = [1.0 if KINDS[kind].relative else float(n) for n in records]
        given = Quantiles(shares).shares
        cells = zip(noisy, errors, totals, strict=True)
        return [q for values, error, total in cells for q in quantiles_of(given, values, error, states, total, edges)]


# -- What its noise was calibrated from ------------------------------------------------------------------------------


def composes(mechanism: str) -> bool:
    """Whether noise of a mechanism is for more than one query."""
    return mechanism not in {kind.name for kind in (*MECHANISMS, ApproximateWasserstein) if not kind.composes}


def function_of_user(record: ReleaseFields) -> str | None:
    """Return what of a release is a function of the user's, which no record holds; None where nothing is."""
    stated, kind = record.calibration, record.query.kind
    if stated.query is None and kind.removeprefix(WEIGHTED) in KINDS:
        raise RecordError(f"expected that calibration.query says which {kind} it is: it is no function of yours")
    if record.theta.kind == GivenLaws.kind:
        return "the law of the query"
    if stated.query is None:
        return "the query"
    if stated.settings is None:
        if record.mechanism.secrets is None:
            raise RecordError("expected that calibration.settings says how the mechanism was set: no secrets are named")
        return "a secret"
    return None


def mechanism_again(record: ReleaseFields, theta: Theta | None = None) -> Mechanism:
    """Return the mechanism of a release, made again from its record: Θ, if no other is given, lengths and settings."""
    stated = record.calibration
    kind = mechanism_named(record.mechanism.name)
    theta = record.theta.any_theta() if theta is None else theta
    if theta is None:
        raise ParameterError("Θ is described by a function of the user's")
    length: Any = stated.chains() if theta.of_chains else stated.records if theta.networks else None
    settings = {key: decode(value) for key, value in (stated.settings or {}).items()}
    try:
        return kind.of(theta, length, **settings)
    except TypeError as error:
        raise ParameterError(f"{kind.title} takes no such settings: {error}") from error


def mechanism_named(name: str) -> type[Mechanism]:
    """Return the mechanism of a name; a ``ParameterError`` if there is none."""
    kind = next((m for m in (*MECHANISMS, ParticipantDP, ApproximateWasserstein) if m.name == name), None)
    if kind is None:
        raise ParameterError(f"there is no mechanism {name!r}")
    return kind


def query_again(record: ReleaseFields) -> Query:
    """Return the query that a record names; a ``PufferfishError`` if it is none."""
    query = decode(record.calibration.query)
    if not isinstance(query, Query):
        raise ParameterError(f"calibration.query is {shortened(repr(record.calibration.query))}, which is no query")
    return query


def calibration_again(record: ReleaseFields, theta: Theta | None = None) -> Calibration:
    """Return the calibration of a release, made again from its record alone; nothing in it is proved yet.

    Where another Θ is given, it is that of the same noise under it.
    """
    bound, query = mechanism_again(record, theta), query_again(record)
    return Calibration(
        epsilon=record.epsilon,
        unit_scale=record.calibration.unit_scale,
        query=query,
        linear=bound.bind(query),
        witness=record.mechanism.witness,
        bound=bound,
        strategy=record.strategy,
    )


# -- The values of a release as a table ------------------------------------------------------------------------------


def frame_of(release: ReleaseFields, of: str | None = None, into: str = "polars") -> Any:
    """Return what a release says as a table: a row for each value, of each group if there are any, or each quantile."""
    if of not in (None, "values", "quantiles"):
        library = f"; a library is named by into: to_frame(into={of!r})" if one_of(of, FRAMES) else ""
        raise ParameterError(f'of is {of!r}, expected "values" or "quantiles"{library}')
    if of == "quantiles" and not release.quantiles:
        raise ParameterError("this release has no quantiles: ask it by quantiles_at, or for its values")
    groups, m = release.groups, len(release.query.labels)
    by, cells = (list[str](), [[""]]) if groups is None else (groups.by, groups.cells)
    columns: dict[str, list[Any]]
    if release.quantiles and of != "values":
        rows = list(quantile_rows(release))
        columns = {name: [row[name] for row in rows] for name in rows[0]}
    else:
        columns = {name: [cell[i] for cell in cells for _ in range(m)] for i, name in enumerate(by)}
        columns["output"] = list(release.query.labels) * len(cells)
        if groups is not None:
            columns["records"] = [n for n in groups.records for _ in range(m)]
        columns["value"] = list(release.values)
        if release.postprocessing is not None:
            columns["noisy_value"] = list(release.noisy_values)
        columns["error_95"] = release.accuracies(0.05).ravel().tolist()
    columns |= {name: _as_numbers(columns[name]) for name in by}
    return frame_of_columns(columns, {name: type(values[0]) for name, values in columns.items()}, into)


def quantile_rows(release: ReleaseFields) -> Iterator[dict[str, float | str]]:
    """Yield the row of each quantile in a table: its group, its state or of bins its value, and where it may be."""
    quantiles, groups = release.quantiles or [], release.groups
    cells = [()] if groups is None else groups.cells
    for i, quantile in enumerate(quantiles):
        found: dict[str, float | str] = {}
        if groups is not None:
            found = dict(zip(groups.by, cells[i * len(cells) // len(quantiles)], strict=True))
        found["quantile"] = quantile.share
        if quantile.value is None or quantile.between is None:
            found |= {"state": quantile.state, "low_95": quantile.low, "high_95": quantile.high}
        else:
            found |= {"value": quantile.value, "low_95": quantile.between[0], "high_95": quantile.between[1]}
        yield found


_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


def _as_numbers(labels: list[str]) -> list[Any]:
    """Return the labels of groups, as whole numbers where all of them are some: as a CSV file of them is read.

    Examples
    --------
    >>> _as_numbers(["0", "13"]), _as_numbers(["0", "01"])
    ([0, 13], ['0', '01'])
    """
    whole = all(_WHOLE.fullmatch(label) for label in set(labels))
    return [int(label) for label in labels] if whole else labels


_HEADING = re.compile(
    rb"(?:(?:output|.+,output,records),value(?:,noisy_value)?,error_95|(?:.+,)?quantile,(?:state|value),low_95,high_95)\r?\n"
)


def columns_of(valid: bool) -> list[str]:
    """Return the columns of the table with values of each subject."""
    return ["subject", "records", "output", "value", *(["noisy_value"] if valid else []), "error_95"]


def read_table(record: ReleaseFields, path: str | os.PathLike[str]) -> "pl.DataFrame":
    """Return the values of each subject: the table beside the record, refused where it is not the one it names."""
    import polars as pl

    table = None if record.subjects is None else record.subjects.table
    if table is None or file_digest(path) != table.sha256:
        raise RecordError(f"{display_path(path)} is not the table of this release: its digest is different")
    with failing("cannot read", path):
        try:
            if Path(path).suffix.lower() == ".parquet":
                return pl.read_parquet(Path(path))
            return pl.read_csv(Path(path), schema_overrides={"subject": pl.String, "output": pl.String})
        except pl.exceptions.PolarsError as error:
            raise RecordError(f"cannot read {display_path(path)}: it is not such a table: {error}") from error


def is_table(content: bytes) -> bool:
    """Whether a CSV file is the table of a release; one of a release for each subject has other columns.

    Examples
    --------
    >>> is_table(b"sex,output,records,value,error_95\\n"), is_table(b"subject,records,output,value,error_95\\n")
    (True, False)
    """
    return _HEADING.match(content) is not None


# -- Names that a spreadsheet would take for formulas, and run (CSV injection) ---------------------------------------
#
# A table's cell that begins with =, +, -, @, a tab or a line end is a formula to a spreadsheet. OWASP advises to put a
# single quote before it (owasp.org, "CSV Injection"). Other programs would then read another name, so it is done only
# where it is asked for. Numbers, and bins such as -5-0, are formulas that can do no harm, and stay as they are.

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_FORMULA = re.compile(rf"[=+@\t\r\n]|-(?!{_NUMBER}(?:--?{_NUMBER})?\Z)")


def csv_of(frame: "pl.DataFrame", *, for_spreadsheets: bool) -> bytes:
    """Return a table as CSV, with names as a spreadsheet shows them if it is for one.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"output": ["=1+1", "-5-0", "rest"], "value": [-1.5, 0.0, 2.0]})
    >>> print(csv_of(table, for_spreadsheets=True).decode(), end="")
    output,value
    '=1+1,-1.5
    -5-0,0.0
    rest,2.0
    """
    if for_spreadsheets:
        import polars as pl

        text_columns = [name for name, dtype in frame.schema.items() if dtype == pl.String]
        for name in text_columns:
            names = frame[name].unique().drop_nulls().to_list()
            # one that begins with ' too: else two names could become one
            quoted = {text: f"'{text}" for text in names if _FORMULA.match(text) or text.startswith("'")}
            frame = frame.with_columns(pl.col(name).replace(quoted)) if quoted else frame
        frame = frame.rename({name: f"'{name}" for name in frame.columns if _FORMULA.match(name)})
    return frame.write_csv().encode()


def warning_of_formulas(names: Iterable[str]) -> str | None:
    """Return what to say of the names in a table that a spreadsheet takes for formulas; None if there are none.

    Examples
    --------
    >>> warning_of_formulas(["rest", "-5-0", "<0"])
    >>> warning_of_formulas(["rest", "@SUM"])
    "The name '@SUM' would run as a formula in a spreadsheet: give for_spreadsheets=True to write a ' before it."
    """
    formulas = [name for name in names if _FORMULA.match(name)]
    if not formulas:
        return None
    more = f" (and {len(formulas) - 1:,} more)" if len(formulas) > 1 else ""
    return (
        f"The name {formulas[0][:60]!r}{more} would run as a formula in a spreadsheet: give for_spreadsheets=True to "
        "write a ' before it."
    )


# -- The record of the release of a measurement ----------------------------------------------------------------------

MEASUREMENT_FORMAT = "pufferfish-measurement"
MEASUREMENT_VERSION = 1

MEASUREMENT = record_kind(
    "release of a measurement", MEASUREMENT_FORMAT, "it is the record of an earlier release; name another file"
)


class MeasurementFields(FrozenRecord, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a measurement said, and what was promised; :class:`~pufferfish.MeasurementRelease` explains each field."""

    format: str = MEASUREMENT_FORMAT
    version: int = MEASUREMENT_VERSION
    created: str
    value: Any
    measurement: str
    record_loss: float
    leakage: float
    epsilon: float
    promise: str
    not_promised: list[str]
    assumptions: list[str]
    mechanism: str
    settings: dict[str, Any]
    length: list[tuple[int, int]]
    theta: ThetaRecord
    checked: Checking | None = None
    software: dict[str, str]
    ledger: LedgerRecord | None = None

    @property
    def protection(self) -> Protection | None:
        """What is hidden together, as the settings of its mechanism say; None for one record and any two values."""
        return Protection.in_settings(self.settings)

    @property
    def hides(self) -> str:
        """The unit that is hidden, in words."""
        return hidden_in_words(None, self.protection, None, of_chains=True, networks=False)


# -- Any of them as a file -------------------------------------------------------------------------------------------


def encoded(record: ReleaseFields | MeasurementFields) -> bytes:
    """Return a record as JSON."""
    try:
        return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
    except UnicodeEncodeError as error:
        raise RecordError(f"the record holds {error.object!r}, which is no text that UTF-8 can write") from error
    except (TypeError, ValueError) as error:
        raise RecordError(f"the record cannot be written to a file: {shortened(str(error))}") from error


def release_in(content: bytes, source: str) -> ReleaseFields:
    """Return a release from the content of a file, which messages call ``source``; it may contradict itself."""
    return decode_record(content, source, ReleaseFields, format_=FORMAT, version=VERSION, complete=True)


AnyRelease = ReleaseFields | MeasurementFields
"""All kinds of releases that have a record."""


def any_release(given: Any) -> AnyRelease:
    """Return a release of any kind that is given, or read from its file; whether it holds is not looked at."""
    if isinstance(given, AnyRelease):
        return given
    if not isinstance(given, str | os.PathLike):
        raise ParameterError(f"releases has {shortened(repr(given))}, expected a release or its file")
    return any_release_in(read_file(given), display_path(given))


def any_release_in(content: bytes, source: str) -> AnyRelease:
    """Return a release of any kind from the content of a file, which messages call ``source``."""
    if not MEASUREMENT.holds(content):
        return release_in(content, source)
    form, version = MEASUREMENT_FORMAT, MEASUREMENT_VERSION
    return decode_record(content, source, MeasurementFields, format_=form, version=version, complete=True)
