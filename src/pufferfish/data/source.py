"""The edge: a path or a table of any kind becomes one lazy narwhals frame of the needed columns.

Files are scanned by polars, lazily. CSV columns are read as text whatever they look like: a type guessed from
the first rows breaks when row 5,000 holds a word; text is given its meaning later, from all rows.
"""

import gzip
import os
import re
import zlib
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from pufferfish._base.reading import leads_nowhere, near_files, shown
from pufferfish._base.words import did_you_mean, names_of, nearest
from pufferfish.data._calendar import PARTS
from pufferfish.data._columns import Column, collected, kind_of, native_column, profile_text, with_text_column
from pufferfish.data._csv_text import (
    KINDS,
    is_parquet,
    line_with,
    other_kind,
    other_separator,
    refuse_text,
    separator_of,
    wrong_line,
    wrong_text,
)
from pufferfish.data.spark import SparkFiles, of_spark, refuse_lines
from pufferfish.errors import DataError, PufferfishError, public
from pufferfish.theta.states import state_label

__all__ = ["ROW", "Needed", "Source", "engine_errors", "is_path", "open_source"]

ROW = "__pf_row"

Needed = Sequence[str] | Callable[[Sequence[str]], Sequence[str]]
"""Names of the columns that are needed, or a function that chooses them from those that are there."""


def _no_dates(_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Source:
    """A table on its way in.

    Parameters
    ----------
    frame : narwhals LazyFrame
        The needed columns, and ``ROW`` if rows have an order.
    name : str
        File name without folder, or the kind of table.
    ordered : bool
        Whether rows have an order.
    untyped : bool
        Whether all columns are text because the file says nothing about types (CSV).
    zoned : frozenset of str
        Columns that had a time zone before the edge turned them into UTC.
    path : Path, optional
        The file, if it is one.
    zones : callable
        Returns the time zones that columns had on the way in, where their types no longer say so.
    dates : callable
        Returns whether a public column had dates without a time of day on the way in, where its type no longer says so.
    """

    frame: nw.LazyFrame[Any]
    name: str
    ordered: bool
    untyped: bool = False
    zoned: frozenset[str] = frozenset()
    path: Path | None = None
    zones: Callable[[], dict[str, str]] = dict[str, str]
    dates: Callable[[str], bool] = _no_dates

    @property
    def schema(self) -> dict[str, Any]:
        """Types of the columns."""
        return dict(self.frame.collect_schema())

    def filter_columns(self, names: Sequence[str]) -> tuple[nw.LazyFrame[Any], dict[str, Column]]:
        """Read columns as numbers, text, true/false or instants: by their types, or by all their values if untyped.

        Only for columns that are public, such as those of a row filter: where the table says no types, what one value
        is taken for depends on the others.

        Returns
        -------
        (narwhals LazyFrame, dict of str to Column)
            The frame with more columns, which hold the values, and the columns of a filter, which refer to them.
        """
        frame, found = self.frame, dict[str, Column]()
        profiles = profile_text(frame, names) if self.untyped else {}
        schema = self.schema
        for i, name in enumerate(names):
            parsed = f"__pf_parsed_{i}"
            if self.untyped:
                frame, found[name] = with_text_column(frame, name, profiles[name], parsed)
                continue
            polars = frame.implementation.is_polars()
            column = native_column(name, schema[name], zoned=name in self.zoned, polars=polars)
            if column.kind != "other":
                frame, column = frame.with_columns(column.value.alias(parsed)), replace(column, value=nw.col(parsed))
            found[name] = column
        return frame, found

    def nothing(self, where: str | None) -> DataError:
        """Error for a table of which no row is left."""
        total = int(collected(self.frame.select(nw.len().alias("n"))).item())
        if not total:
            return DataError(f"{self.name} has no rows")
        return DataError(f"no row of {self.name} is left where {where} ({total:,} before)")


_ANY_ZONE = "POLARS_IGNORE_TIMEZONE_PARSE_ERROR"
"""Without it polars panics, in many lines, on zones such as +05:30. What zones mean is known to :mod:`.local_time`."""

_DAMAGED = "File out of specification"
"""What polars says of a Parquet file whose parts do not fit together."""


@contextmanager
def engine_errors(name: str, path: Path | None = None) -> Generator[None]:
    """Turn whatever an engine raises into one line; the path of a CSV file helps to say which of its lines is wrong.

    Examples
    --------
    >>> with engine_errors("table.csv"):
    ...     raise OSError("unexpected end of file")
    Traceback (most recent call last):
    pufferfish.errors.DataError: table.csv cannot be read: unexpected end of file
    """
    try:
        yield
    except (PufferfishError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        line = " ".join(str(error).split()) or type(error).__name__
        if path is not None and separator_of(path.name) is not None:  # the engine's words are for its own users
            line = wrong_text(path) or wrong_line(path) or line.partition(" The current offset")[0]
            if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile) or "gzip" in str(error):
                line = "the compressed file is cut off or damaged: copy or pack it again"
        elif _DAMAGED in line:
            line = f"the file is damaged ({line.rpartition(_DAMAGED)[2].strip(' :')[:100]}): copy or write it again"
        raise DataError(f"{name} cannot be read: {line[:300]}") from error


def is_path(source: Any) -> bool:
    """Whether a source names a file."""
    return isinstance(source, str | os.PathLike)


def open_source(source: Any, columns: Needed, public: Collection[str] = (), *, parts: Collection[str] = ()) -> Source:
    """Open a file or table and select its needed columns.

    Parameters
    ----------
    source : path or table
        What to open.
    columns : sequence of str, or function
        The needed columns.
    public : collection of str
        Those that hold nothing private, such as times and the columns of a filter. In a pandas column of Python
        objects, their values together say of what type it is; the values of other columns become labels, each by
        itself.

    parts : collection of str
        Those that may have been meant as parts of time, ``hour`` of ``hour(time)``: what a message about them says.

    Raises
    ------
    DataError
        If the file cannot be read, the object is not a table, or a column is not found.
    """
    if is_path(source):
        _refuse_no_file(os.fsdecode(source))
        path = Path(os.fsdecode(source))
        with engine_errors(shown(path.name), path):
            return _no_empty_text(_from_file(path, columns, parts))
    if isinstance(source, SparkFiles):
        with engine_errors(source.name):
            return _no_empty_text(_from_spark(source, columns, parts))
    with engine_errors(f"{type(source).__module__.partition('.')[0]} {type(source).__name__}"):
        return _no_empty_text(_from_table(source, columns, public, parts))


def _refuse_no_file(name: str) -> None:
    """Refuse what a path would be made of though it names no file of this machine."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", name):  # a drive of Windows has one letter; a path has lost one slash
        raise public(DataError(f"{shown(name)} is an address, and only local files are read: download it first"))
    if name.endswith(("/", os.sep)) and not os.path.isdir(name):
        raise public(DataError(f"{shown(name)} ends in {name[-1]}, as only the name of a folder does: name a file"))


def _from_file(path: Path, needed: Needed, parts: Collection[str]) -> Source:
    if path.is_dir():
        raise public(DataError(f"{shown(path)} is a folder, expected a file ({KINDS})"))
    if nowhere := leads_nowhere(path):
        raise public(DataError(f"{shown(path)} cannot be read: {nowhere}"))
    if not path.exists():
        raise public(DataError(f"file {shown(path)} not found.{near_files(path)}".rstrip(".")))
    if not path.is_file():
        raise public(DataError(f"{shown(path)} is a device or a pipe, and only regular files are read"))
    if not path.name.isprintable():  # it is written into releases and ledgers, as text
        raise public(DataError(f"the file name {path.name!r} has characters that do not print: rename the file"))
    separator = separator_of(path.name)
    parquet = is_parquet(path.name)
    if separator is None and not parquet:
        raise public(DataError(f"{shown(path.name)} {other_kind(path.name)}"))
    if path.stat().st_size == 0:
        raise public(DataError(f"{path.name} is empty (0 bytes)"))
    if parquet:
        _refuse_no_parquet(path)
        os.environ.setdefault(_ANY_ZONE, "1")  # for good: rows are read, and the schema is looked up, later
        scan = pl.scan_parquet(path, glob=False)
    else:
        refuse_text(path)
        scan = pl.scan_csv(path, separator=separator or ",", infer_schema=False, glob=False)
    schema = scan.collect_schema()
    columns = _require(needed, schema.names(), untyped=not parquet, path=None if parquet else path, parts=parts)
    if not parquet and len(schema) > 1:  # a blank line is no row, and no step between its neighbours
        blank = pl.all_horizontal(pl.col(schema.names()).is_null())
        scan = scan.with_row_index(ROW).filter(~blank).drop(ROW)  # unnumbered, polars filters in its parser, slowly
    frame = scan.with_row_index(ROW)
    return Source(nw.from_native(_polars(frame, columns)), path.name, ordered=True, untyped=not parquet, path=path)  # pyrefly: ignore[no-matching-overload]


def _refuse_no_parquet(path: Path) -> None:
    """Refuse a file that has only the name of a Parquet file: each begins and ends with the same letters."""
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(max(path.stat().st_size - 4, 0))
        end = file.read()
    if start == b"PARE" or end == b"PARE":
        raise DataError(f"{shown(path.name)} is an encrypted Parquet file: write it without encryption")
    if start != b"PAR1":
        raise DataError(f"{shown(path.name)} is not a Parquet file: name a file by what it holds ({KINDS})")
    if end != b"PAR1":
        raise DataError(f"{shown(path.name)} is cut off: a Parquet file ends as it begins; copy or write it again")


def _from_spark(files: SparkFiles, needed: Needed, parts: Collection[str]) -> Source:
    columns = _require(needed, files.frame.columns, untyped=files.untyped, parts=parts)
    frame, zoned = of_spark(files.frame.dropna("all") if files.untyped else files.frame, columns)  # a blank line
    if files.untyped:
        refuse_lines(files)
    return Source(frame, files.name, ordered=False, untyped=files.untyped, zoned=zoned)


def _from_table(table: Any, needed: Needed, public: Collection[str], parts: Collection[str]) -> Source:
    source = _untimed(table, needed, public, parts)
    return replace(source, zones=partial(_zones, table), dates=partial(_dates, table))


def _no_empty_text(source: Source) -> Source:
    """Take an empty text for a missing value, in every table: files of text could not tell them apart."""
    texts = [name for name, dtype in source.schema.items() if kind_of(dtype) == "text"]
    held = {name: nw.col(name).cast(nw.String) for name in texts}  # a category may have no empty text to compare with
    frame = source.frame.with_columns(
        nw.when(~text.is_null() & (text != "")).then(text).alias(name) for name, text in held.items()
    )
    return replace(source, frame=frame)


def _zones(table: Any) -> dict[str, str]:
    """Return the names of the time zones of a table's columns, where they have one."""
    native: Any = nw.to_native(table, pass_through=True)
    if type(native).__module__.partition(".")[0] == "pandas":  # narwhals does not know the names of all time zones
        return {str(n): str(t.tz) for n, t in native.dtypes.items() if getattr(t, "tz", None) is not None}
    schema = nw.from_native(native).collect_schema()
    zones = {name: getattr(dtype, "time_zone", None) for name, dtype in schema.items()}
    return {name: zone for name, zone in zones.items() if zone is not None}


def _dates(table: Any, name: str) -> bool:
    """Whether all values of a public column of a pandas frame are dates of Python, which are read as midnights."""
    native: Any = nw.to_native(table, pass_through=True)
    if type(native).__module__.partition(".")[0] != "pandas":
        return False
    pd: Any = import_module("pandas")
    column = native[_labels(native)[name]]
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    # a timestamp is a date to Python, and so to pandas
    return pd.api.types.infer_dtype(column, skipna=True) == "date" and not any(
        isinstance(value, datetime) for value in column.dropna()
    )


def _labels(native: Any) -> dict[str, Any]:
    """Return the labels of the columns of a pandas frame, which need not be text, by their names."""
    return {str(label): label for label in native.columns}


def _untimed(table: Any, needed: Needed, public: Collection[str], parts: Collection[str]) -> Source:
    native: Any = nw.to_native(table, pass_through=True)
    if type(native).__module__.partition(".")[0] == "pandas" and hasattr(native, "columns"):
        native = _pandas(native, needed, public, parts)
    try:
        held: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(native)
    except TypeError:
        raise DataError(
            f"source is a {type(native).__name__}, expected a path or a table (polars, pandas, DuckDB, …)"
        ) from None
    frame: nw.LazyFrame[Any] = held.lazy()
    columns = _require(needed, frame.collect_schema().names(), parts=parts)
    kind = frame.implementation
    if isinstance(native, pl.DataFrame | pl.LazyFrame):
        lazy = _polars(native.lazy().select(columns).with_row_index(ROW), columns)
        return Source(nw.from_native(lazy), "polars frame", ordered=True)  # pyrefly: ignore[no-matching-overload]
    if isinstance(held, nw.DataFrame):
        rows = held.select(columns)
        if not (kind.is_pandas() or kind.is_modin() or kind.is_cudf()):  # Arrow has no window functions
            zoned = [name for name in columns if getattr(rows.schema[name], "time_zone", None) is not None]
            rows = rows.with_columns(nw.col(name).dt.convert_time_zone("UTC") for name in zoned)  # polars lacks +05:30
            lazy = _polars(rows.to_polars().lazy().with_row_index(ROW), columns)
            return Source(nw.from_native(lazy), "Arrow table", ordered=True)  # pyrefly: ignore[no-matching-overload]
        name = "pandas frame" if kind.is_pandas() else f"{kind.name.lower()} frame"
        return Source(rows.with_row_index(ROW).lazy(), name, ordered=True)
    if kind.is_duckdb():
        relation, zoned = _duckdb(native, frame, columns)
        return Source(relation, "DuckDB relation", ordered=False, zoned=zoned)
    if kind.is_pyspark():
        relation, zoned = of_spark(native, columns)
        return Source(relation, "Spark table", ordered=False, zoned=zoned)
    return Source(frame.select(columns), f"{kind.name.lower()} table", ordered=False)


def _polars(frame: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
    """Give columns that hold nothing at all a type."""
    schema = frame.collect_schema()
    nothing = [name for name in columns if schema[name] == pl.Null]
    return frame.with_columns(pl.col(name).cast(pl.String) for name in nothing).select(*columns, ROW)


def _duckdb(native: Any, frame: nw.LazyFrame[Any], columns: Sequence[str]) -> tuple[nw.LazyFrame[Any], frozenset[str]]:
    """Turn timestamps with a time zone into UTC: their parts would follow the zone of the connection."""
    duckdb: Any = import_module("duckdb")
    schema = frame.collect_schema()
    zoned = {name for name in columns if getattr(schema[name], "time_zone", None) is not None}
    # neither function needs the extension of DuckDB that knows time zones
    micros, stamp = partial(duckdb.FunctionExpression, "epoch_us"), partial(duckdb.FunctionExpression, "make_timestamp")
    held = {name: duckdb.ColumnExpression(name) for name in columns}
    selected = [stamp(micros(column)).alias(name) if name in zoned else column for name, column in held.items()]
    relation: nw.LazyFrame[Any] = nw.from_native(native.select(*selected))
    return relation, frozenset(zoned)


def _pandas(native: Any, needed: Needed, public: Collection[str], parts: Collection[str]) -> Any:
    """Needed columns of a pandas frame with one type each and missing values that are not NaN."""
    pd: Any = import_module("pandas")
    labels = _labels(native)
    tidy: dict[str, Any] = {}
    index = [str(name) for name in native.index.names if name is not None]
    for name in _require(needed, [str(name) for name in native.columns], parts=parts, index=index):
        column: Any = native[labels[name]].reset_index(drop=True)
        if isinstance(column.dtype, pd.CategoricalDtype):
            values = column.cat.categories.array
            if values.dtype.kind in "iu":  # a missing cell would make floats of all whole numbers
                values = pd.array(values, dtype="Int64" if values.dtype.kind == "i" else "UInt64")
            column = pd.Series(pd.api.extensions.take(values, column.cat.codes.to_numpy(), allow_fill=True))
        if column.dtype == object:
            column = _typed(column) if name in public else _labelled(column)
        if str(column.dtype).startswith(("int", "uint")):
            column = column.astype("Int64")
        elif str(column.dtype) == "bool":
            column = column.astype("boolean")
        elif isinstance(column.dtype, pd.DatetimeTZDtype):
            column = column.dt.tz_convert("UTC")  # narwhals does not know the names of all time zones
        tidy[name] = column
    return pd.DataFrame(tidy)


def _labelled(column: Any) -> Any:
    """Label Python objects, each by itself."""
    pd: Any = import_module("pandas")
    if pd.api.types.infer_dtype(column, skipna=True) in {"string", "empty"}:  # the same, and fast
        return column.astype("string")
    return column.map(state_label, na_action="ignore").astype("string")


def _typed(column: Any) -> Any:
    """Give a public column of Python objects the type that all of them have, or else their labels."""
    pd: Any = import_module("pandas")
    kind: str = pd.api.types.infer_dtype(column, skipna=True)
    if kind == "boolean":
        return column.astype("boolean")
    if kind == "integer":
        return column.astype("Int64")
    if kind in {"floating", "mixed-integer-float", "decimal"}:
        return column.astype("Float64" if kind == "mixed-integer-float" else float)
    if kind in {"datetime", "datetime64", "date"}:
        zoned = all(getattr(time, "tzinfo", None) is not None for time in column.dropna())
        return pd.to_datetime(column, utc=True) if zoned else pd.to_datetime(column)
    return _labelled(column)


_AGAIN = re.compile(r"(.*)_duplicated_[0-9]+", re.DOTALL)
"""What the engine calls a column whose name is there already."""


def _names(present: Sequence[str], *, untyped: bool) -> list[str]:
    """Return the names of columns for a message, as the file has them."""
    names = [name for name in present if not (untyped and (again := _AGAIN.fullmatch(name)) and again[1] in present)]
    return [name or "(one without a name)" for name in names]


def _require(
    needed: Needed,
    present: Sequence[str],
    *,
    untyped: bool = False,
    path: Path | None = None,
    parts: Collection[str] = (),
    index: Collection[str] = (),
) -> Sequence[str]:
    """Return the needed columns; refuse those that are not there, or there twice.

    ``path`` is that of a CSV file, ``parts`` are the columns that may have been meant as parts of time, and ``index``
    the names of a pandas index.
    """
    columns = needed(present) if callable(needed) else needed
    for name in columns:
        if name.startswith("__pf_"):
            raise DataError(f"column {name!r} has a name that begins with '__pf_', kept for internal use: rename it")
        if name not in present:
            hint = ""
            if untyped and (separated := other_separator(present)):
                hint = separated
            elif untyped and len(present) == 1 and "," in present[0].removeprefix("sep="):
                hint = " The file seems to have each line in quotes, as one cell: save it as CSV again."
            elif untyped and re.match("sep=|#", present[0]):
                hint = " The first line of the file is not the one that names the columns: delete it."
            elif path is not None and (line := line_with(name, path)):
                hint = f" Line {line} of the file has this name: delete what stands above the names of the columns."
            meant = did_you_mean(name, present)
            if name in index:
                raise DataError(
                    f"column {name!r} not found: {name!r} is the index of the frame, and no column; give "
                    "frame.reset_index()"
                )
            if name in parts and name in PARTS:
                meant = f" For a part of the time, say of which column: {name}(column)."
            elif name in parts and not meant and (part := nearest(name, PARTS)):
                meant = f" A part of the time is called {part!r}."
            there = names_of(_names(present, untyped=untyped))
            raise DataError(f"column {name!r} not found.{meant} Columns: {there}.{hint}")
        base = again[1] if untyped and (again := _AGAIN.fullmatch(name)) and again[1] in present else name
        twice = untyped and any((again := _AGAIN.fullmatch(p)) and again[1] == base for p in present)
        if twice or present.count(name) > 1:
            raise DataError(f"column {base!r} is there more than once: rename or drop the others")
    return columns
