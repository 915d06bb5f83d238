"""The edge: a path or a table of any kind becomes one lazy frame of the needed columns, of polars; or of Spark.

Files are scanned by polars, lazily. Frames in memory are taken over column by column. A database orders its rows by
time, and they are fetched in batches whenever they are read: it may be larger than memory. Only rows on a cluster stay
where they are; narwhals asks Spark what it asks polars.

CSV columns are read as text whatever they look like: a type guessed from the first rows breaks when row 5,000 holds a
word; text is given its meaning later, from all rows.
"""

import os
import re
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl
from polars.io.plugins import register_io_source

from pufferfish._base.reading import display_path, leads_nowhere, near_files, shown_address
from pufferfish._base.words import did_you_mean, names_of, nearest
from pufferfish.data._columns import Column, kind_of, native_column, profile_text, row_count, with_text_column
from pufferfish.data._csv_text import (
    KINDS,
    engine_errors,
    is_parquet,
    line_with,
    other_kind,
    other_separator,
    refuse_text,
    separator_of,
)
from pufferfish.data._database import FETCHED, table_at
from pufferfish.data.groupings import PARTS
from pufferfish.data.spark import SparkFiles, of_spark, refuse_lines
from pufferfish.errors import DataError, public
from pufferfish.theta.states import state_label

ROW = "__pf_row"

Needed = Sequence[str] | Callable[[Sequence[str]], Sequence[str]]
"""Names of the columns that are needed, or a function that chooses them from those that are there."""


@dataclass(frozen=True, slots=True)
class Source:
    """A table on its way in."""

    frame: nw.LazyFrame[Any]  # the needed columns, and ``ROW``, the number of each row, but where it is one of Spark
    name: str  # file name without folder, or the kind of table
    ordered: bool  # whether rows have an order of their own, so that their numbers tell where they are
    untyped: bool = False  # whether all columns are text because the file says nothing about types (CSV)
    zoned: frozenset[str] = frozenset()  # columns that are in UTC now, and whose type does not say that they had a zone
    path: Path | None = None  # the file, if it is one
    zones: Mapping[str, str] = field(default_factory=dict[str, str])  # the time zones that columns had on the way in

    @property
    def schema(self) -> dict[str, Any]:
        """Types of the columns."""
        return dict(self.frame.collect_schema())

    def filter_columns(self, names: Sequence[str]) -> tuple[nw.LazyFrame[Any], dict[str, Column]]:
        """Read columns as numbers, text, true/false or instants: by their types, or by all their values if untyped.

        Only for columns that are public, such as those of a row filter: where the table says no types, what one value
        is taken for depends on the others. Values are in new columns of the frame, to which the columns refer.
        """
        frame, columns = self.frame, dict[str, Column]()
        profiles = profile_text(frame, names) if self.untyped else {}
        schema = self.schema
        for i, name in enumerate(names):
            parsed = f"__pf_parsed_{i}"
            if self.untyped:
                frame, columns[name] = with_text_column(frame, name, profiles[name], parsed)
                continue
            polars = frame.implementation.is_polars()
            column = native_column(name, schema[name], zoned=name in self.zoned, polars=polars)
            if column.kind != "other":
                frame, column = frame.with_columns(column.value.alias(parsed)), replace(column, value=nw.col(parsed))
            columns[name] = column
        return frame, columns

    def nothing(self, where: str | None) -> DataError:
        """Error for a table of which no row is left."""
        total = row_count(self.frame)
        if not total:
            return DataError(f"{self.name} has no rows")
        return DataError(f"no row of {self.name} is left where {where} ({total:,} before)")


_ANY_ZONE = "POLARS_IGNORE_TIMEZONE_PARSE_ERROR"
"""Without it polars panics, in many lines, on zones such as +05:30. What zones mean is known to :mod:`._times`."""


def _is_path(source: Any) -> bool:
    """Whether a source names a file."""
    return isinstance(source, str | os.PathLike)


def are_paths(source: Any) -> bool:
    """Whether a source is a list of files."""
    return isinstance(source, list | tuple) and len(source) > 0 and all(map(_is_path, source))


def paths_of(source: Any) -> list[str]:
    """Return the files of a source as words of a command line; TABLE for what is no file."""
    paths = source if are_paths(source) else [source]
    return [shown_address(os.fspath(path)) if _is_path(path) else "TABLE" for path in paths]


def open_source(
    source: Any, columns: Needed, public: Collection[str] = (), *, parts: Collection[str] = (), order: str | None = None
) -> Source:
    """Open a file or table, or several files as one table, and select its needed columns.

    ``public`` columns hold nothing private, such as times and the columns of a filter. In a pandas column of Python
    objects, their values together say of what type it is; the values of other columns become labels, each by itself.
    ``parts`` may have been meant as parts of time, ``hour`` of ``hour(time)``: what a message about them says.
    ``order`` is the column of times by which the rows of a database are ordered.
    """
    wanted = _Wanted(columns, public, parts, order)
    if _is_path(source):
        return _no_empty_text(_from_path(source, wanted))
    if are_paths(source):
        return _no_empty_text(_one_of(source, wanted))
    if isinstance(source, SparkFiles):
        with engine_errors(source.name):
            return _no_empty_text(_from_spark(source, wanted))
    with engine_errors(f"{type(source).__module__.partition('.')[0]} {type(source).__name__}"):
        return _no_empty_text(_from_table(source, wanted))


def _from_path(given: Any, wanted: "_Wanted") -> Source:
    if (table := table_at(given)) is not None:
        with engine_errors(table.name):
            source = _from_table(table.rows(wanted.columns, wanted.order), replace(wanted, public=()))
            return replace(source, name=table.name, ordered=False, untyped=table.untyped)
    path = Path(os.fsdecode(given))
    with engine_errors(display_path(path.name), path):
        return _from_file(os.fsdecode(given), wanted)


def _one_of(paths: Sequence[Any], wanted: "_Wanted") -> Source:
    """Return several files as one table, the rows of each after those of the one before."""
    files = list[Source]()
    for path in paths:
        try:
            files.append(_from_path(path, wanted))
        except DataError as error:
            name = display_path(Path(os.fsdecode(path)).name)
            error.args = (str(error) if name in str(error) else f"{name}: {error}",)
            raise
    first, *others = files
    for other in others:
        if other.schema != first.schema or other.zones != first.zones or other.untyped != first.untyped:
            raise DataError(
                f"{other.name} has other columns or column types than {first.name}: several files are read as one "
                "table only if their columns are the same"
            )
    frames = [nw.to_native(file.frame.drop(ROW)) for file in files]
    frame = numbered(pl.concat(frames, how="vertical"))
    return replace(first, frame=frame, name=", ".join(file.name for file in files), path=None)


def _why_no_table(path: Path) -> str | None:
    """Return why a path of this machine is no table that can be read; None if it may be one."""
    shown, name = display_path(path), path.name
    if path.is_dir():
        return f"{shown} is a folder, expected a file ({KINDS})"
    if nowhere := leads_nowhere(path):
        return f"{shown} cannot be read: {nowhere}"
    if not path.exists():
        return f"file {shown} not found.{near_files(path)}".rstrip(".")
    if not path.is_file():
        return f"{shown} is a device or a pipe; name a regular file"
    if not name.isprintable():  # it is written into releases and ledgers, as text
        return f"the file name {name!r} has characters that do not print: rename the file"
    if separator_of(name) is None and not is_parquet(name):
        return f"{display_path(name)} {other_kind(name)}"
    return f"{name} is empty (0 bytes)" if path.stat().st_size == 0 else None


def _from_file(given: str, wanted: "_Wanted") -> Source:
    path, why = Path(given), None
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", given):  # a drive of Windows has one letter; a path has lost one slash
        why = f"{display_path(given)} is a web address, but only local files are read: download it first"
    elif given.endswith(("/", os.sep)) and not os.path.isdir(given):
        why = f"{display_path(given)} ends in {given[-1]}, as only the name of a folder does: name a file"
    if why := why or _why_no_table(path):
        raise public(DataError(why))
    parquet = is_parquet(path.name)
    if parquet:
        _refuse_no_parquet(path)
        os.environ.setdefault(_ANY_ZONE, "1")  # for good: rows are read, and the schema is looked up, later
        scan = pl.scan_parquet(path, glob=False)
    else:
        refuse_text(path)
        scan = pl.scan_csv(path, separator=separator_of(path.name) or ",", infer_schema=False, glob=False)
        # polars leaves a quote that is written twice as it is, in the header; a quote that is not is refused
        scan = scan.rename({name: name.replace('""', '"') for name in scan.collect_schema().names() if '""' in name})
    schema = scan.collect_schema()
    columns = wanted.columns(schema.names(), untyped=not parquet, path=None if parquet else path)
    if not parquet and len(schema) > 1:  # a blank line is no row, and no step between its neighbours
        blank = pl.all_horizontal(pl.col(schema.names()).is_null())
        scan = scan.with_row_index(ROW).filter(~blank).drop(ROW)  # unnumbered, polars filters in its parser, slowly
    frame, zones = numbered(scan).select(*columns, ROW), _zones(schema, columns)
    return Source(frame, path.name, ordered=True, untyped=not parquet, path=path, zones=zones)


def _refuse_no_parquet(path: Path) -> None:
    """Refuse a file that has only the name of a Parquet file: each begins and ends with the same letters."""
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(max(path.stat().st_size - 4, 0))
        end = file.read()
    if start == b"PARE" or end == b"PARE":
        raise DataError(f"{display_path(path.name)} is an encrypted Parquet file: write it without encryption")
    if start != b"PAR1":
        raise DataError(f"{display_path(path.name)} is not a Parquet file: give it the ending of its format ({KINDS})")
    if end != b"PAR1":
        raise DataError(f"{display_path(path.name)} is incomplete: copy or write it again")


def _from_spark(files: SparkFiles, wanted: "_Wanted") -> Source:
    columns = wanted.columns(files.frame.columns, untyped=files.untyped)
    frame, zoned = of_spark(files.frame.dropna("all") if files.untyped else files.frame, columns)  # a blank line
    if files.untyped:
        refuse_lines(files)
    return Source(frame, files.name, ordered=False, untyped=files.untyped, zoned=zoned)


def _no_empty_text(source: Source) -> Source:
    """Take an empty text for a missing value, in every table: files of text could not tell them apart."""
    texts = [name for name, dtype in source.schema.items() if kind_of(dtype) == "text"]
    held = {name: nw.col(name).cast(nw.String) for name in texts}  # a category may have no empty text to compare with
    frame = source.frame.with_columns(
        nw.when(~text.is_null() & (text != "")).then(text).alias(name) for name, text in held.items()
    )
    return replace(source, frame=frame)


# -- Tables in memory and in databases become one polars frame -------------------------------------------------------


def _from_table(table: Any, wanted: "_Wanted") -> Source:
    native: Any = nw.to_native(table, pass_through=True)
    if type(native).__module__.partition(".")[0] == "pandas" and hasattr(native, "columns"):
        rows, zones = _of_pandas(native, wanted)
        return Source(numbered(rows.lazy()), "pandas frame", ordered=True, zones=zones)
    if hasattr(native, "column_names") and hasattr(native, "select"):  # Arrow's: a join may have a name twice
        native = native.select(wanted.columns(native.column_names))
    try:
        held: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(native)
    except TypeError:
        raise DataError(
            f"source is a {type(native).__name__}, expected a path or a table (polars, pandas, DuckDB, …)"
        ) from None
    kind = held.implementation
    schema = held.collect_schema()
    columns = wanted.columns(list(native.columns) if kind.is_duckdb() else schema.names())
    zones = _zones(schema, columns)
    if kind.is_pyspark():
        relation, zoned = of_spark(native, columns)
        return Source(relation, "Spark table", ordered=False, zoned=zoned, zones=zones)
    if isinstance(native, pl.DataFrame | pl.LazyFrame):
        return Source(numbered(native.lazy().select(columns)), "polars frame", ordered=True, zones=zones)
    if isinstance(held, nw.DataFrame):
        name = "Arrow table" if kind.is_pyarrow() else f"{kind.name.lower()} frame"
        return Source(numbered(_of_arrow(held.select(columns).to_arrow()).lazy()), name, ordered=True, zones=zones)
    name = "DuckDB relation" if kind.is_duckdb() else f"{kind.name.lower()} table"
    return Source(numbered(_of_database(held.select(columns), wanted.order)), name, ordered=False, zones=zones)


def _zones(schema: Mapping[str, Any], columns: Sequence[str]) -> dict[str, str]:
    """Return the names of the time zones of columns that have one."""
    return {name: zone for name in columns if (zone := getattr(schema[name], "time_zone", None)) is not None}


def rows_beside(frame: nw.LazyFrame[Any], names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> nw.LazyFrame[Any]:
    """Return rows as a frame of the engine that another frame is one of, to be joined with it."""
    native: Any = frame.to_native()
    if frame.implementation.is_pyspark():
        return nw.from_native(native.sparkSession.createDataFrame(list(rows), list(names)))
    known = dict(native.collect_schema())
    types = {name: known.get(name, pl.Int64) for name in names}
    beside: Any = pl.DataFrame(list(rows), types, orient="row").lazy()
    return nw.from_native(beside)


def numbered(frame: pl.LazyFrame) -> nw.LazyFrame[Any]:
    """Add the numbers of rows to a frame, and give columns that hold nothing at all a type."""
    nothing = [name for name, dtype in frame.collect_schema().items() if dtype == pl.Null]
    return nw.from_native(frame.with_columns(pl.col(nothing).cast(pl.String)).with_row_index(ROW))  # pyrefly: ignore[no-matching-overload]


def _of_arrow(rows: Any) -> pl.DataFrame:
    """Take columns of Arrow as polars has them, each by its type alone: times with a zone in UTC, no dictionaries."""
    columns = list[pl.Series]()
    for arrow_field in rows.schema:
        column, held = rows.column(arrow_field.name), arrow_field.type
        if hasattr(held, "value_type") and hasattr(held, "index_type"):  # a dictionary
            held = held.value_type
        if getattr(held, "tz", None) is not None:  # of zones polars knows names, but no +05:30
            held = import_module("pyarrow").timestamp(held.unit, "UTC")
        if str(held).startswith("decimal256"):  # polars would panic, in many lines
            raise _no_type(arrow_field.name, arrow_field.type)
        try:
            series = pl.Series(arrow_field.name, column if held == arrow_field.type else column.cast(held))
        except (pl.exceptions.PolarsError, NotImplementedError, ValueError, TypeError):
            raise _no_type(arrow_field.name, arrow_field.type) from None
        whole = isinstance(series.dtype, pl.Decimal) and series.dtype.scale == 0
        columns.append(series.cast(pl.Int128) if whole else series)
    return pl.DataFrame(columns)


def _no_type(name: str, held: Any) -> DataError:
    return DataError(f"column {name!r} holds {held}, expected text, numbers, true/false or times")


def _of_database(rows: nw.LazyFrame[Any], order: str | None) -> pl.LazyFrame:
    """Return rows of a database, in its order of times, as a frame that fetches them in batches whenever it is read."""
    schema = rows.collect_schema()
    if order is not None and kind_of(schema[order]) != "text":
        rows = rows.sort(order)
    if not rows.implementation.is_duckdb():
        return _of_arrow(rows.collect("pyarrow").to_native()).lazy()
    duckdb: Any = import_module("duckdb")
    columns = {name: duckdb.ColumnExpression(name) for name in schema}
    for name in [name for name, dtype in schema.items() if kind_of(dtype) == "instant"]:  # 'infinity' is no time
        infinite = duckdb.FunctionExpression("isinf", columns[name])
        columns[name] = duckdb.CaseExpression(~infinite, columns[name]).alias(name)
    relation = rows.to_native().select(*columns.values())

    def batches(
        wanted: list[str] | None, predicate: pl.Expr | None, most: int | None, _: int | None
    ) -> Generator[pl.DataFrame]:
        pyarrow: Any = import_module("pyarrow")
        with relation.to_arrow_reader(FETCHED) as reader:
            for batch in reader:
                frame = _of_arrow(pyarrow.Table.from_batches([batch]))
                if most is not None:
                    frame = frame.head(most)
                    most -= len(frame)
                frame = frame if predicate is None else frame.filter(predicate)
                yield frame.select(wanted) if wanted else frame  # of no columns there would be no rows to count
                if most == 0:
                    return

    return register_io_source(batches, schema=_of_arrow(relation.limit(0).to_arrow_table()).schema)


def _of_pandas(native: Any, wanted: "_Wanted") -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the needed columns of a pandas frame, and their zones; private objects become labels each by itself."""
    pd: Any = import_module("pandas")
    labels = {str(label): label for label in native.columns}  # they need not be text
    index = [str(name) for name in native.index.names if name is not None]
    columns, zones = list[pl.Series](), dict[str, str]()
    for name in wanted.columns([str(name) for name in native.columns], index=index):
        column: Any = native[labels[name]]
        if isinstance(column.dtype, pd.CategoricalDtype):
            values = column.cat.categories.array
            if values.dtype.kind in "iu":  # a missing cell would make floats of all whole numbers
                values = pd.array(values, dtype="Int64" if values.dtype.kind == "i" else "UInt64")
            column = pd.Series(pd.api.extensions.take(values, column.cat.codes.to_numpy(), allow_fill=True))
        if column.dtype == object:
            column = _typed(column) if name in wanted.public else _labelled(column)
        if (zone := getattr(getattr(column.dtype, "pyarrow_dtype", column.dtype), "tz", None)) is not None:
            zones[name] = str(zone)
        columns.append(_series(name, column))
    return pl.DataFrame(columns), zones


def _series(name: str, column: Any) -> pl.Series:
    """Return a column of pandas, all of one type, as one of polars, in which what is missing is null."""
    pd: Any = import_module("pandas")
    is_of, dtype = pd.api.types, column.dtype
    if isinstance(column, pl.Series):
        return column.alias(name)
    if isinstance(dtype, pd.ArrowDtype):
        return _of_arrow(import_module("pyarrow").table({name: column.array.__arrow_array__()})).to_series()
    missing = pl.Series(column.isna().to_numpy(dtype=bool))
    if is_of.is_bool_dtype(dtype):
        values = pl.Series(column.to_numpy(dtype=bool, na_value=False))
    elif is_of.is_integer_dtype(dtype):
        values = pl.Series(column.to_numpy(dtype="u8" if is_of.is_unsigned_integer_dtype(dtype) else "i8", na_value=0))
    elif is_of.is_float_dtype(dtype):
        values = pl.Series(column.to_numpy(dtype="f8", na_value=float("nan")))
    elif is_of.is_datetime64_any_dtype(dtype):
        zoned = getattr(dtype, "tz", None) is not None
        wall = (column.dt.tz_convert("UTC").dt.tz_localize(None) if zoned else column).to_numpy()
        values = pl.Series(wall.astype("M8[us]") if wall.dtype == "M8[s]" else wall)
        values = values.dt.replace_time_zone("UTC") if zoned else values
    elif is_of.is_string_dtype(dtype):
        values = pl.Series(column.to_numpy(dtype=object, na_value=None).tolist(), dtype=pl.String)
    else:
        raise _no_type(name, dtype)
    return pl.select(pl.when(~missing).then(values).alias(name)).to_series()


def _labelled(column: Any) -> Any:
    """Label Python objects, each by itself."""
    pd: Any = import_module("pandas")
    if pd.api.types.infer_dtype(column, skipna=True) in {"string", "empty"}:  # the same, and fast
        return column.astype("string")
    for kind in set(map(type, column)):
        if issubclass(kind, bytes | bytearray | list | tuple | dict | set):
            raise _no_type(str(column.name), kind.__name__)
    return column.map(state_label, na_action="ignore").astype("string")


def _typed(column: Any) -> Any:
    """Give a public column of Python objects the type that all of them have, or else their labels."""
    pd: Any = import_module("pandas")
    kind: str = pd.api.types.infer_dtype(column, skipna=True)
    types = {"boolean": "boolean", "integer": "Int64", "mixed-integer-float": "Float64"}
    if (held := types.get(kind, float if kind in {"floating", "decimal"} else None)) is not None:
        return column.astype(held)
    if kind in {"datetime", "datetime64", "date"}:
        known = column.dropna()
        if kind == "date" and not any(isinstance(value, datetime) for value in known):  # a timestamp is a date, too
            return pl.Series([None if pd.isna(value) else value for value in column], dtype=pl.Date)
        of_zones = {getattr(time, "tzinfo", None) for time in known}
        if None in of_zones and len(of_zones) > 1:
            raise DataError(
                f"column {str(column.name)!r} has times with a zone and times without one: give every time a zone"
            )
        return pd.to_datetime(column, utc=len(of_zones) > 1)
    return _labelled(column)


_AGAIN = re.compile(r"(.*)_duplicated_[0-9]+", re.DOTALL)  # what the engine calls a column whose name is there already


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What :func:`open_source` is asked for."""

    needed: Needed
    public: Collection[str]
    parts: Collection[str]
    order: str | None

    def columns(
        self, present: Sequence[str], *, untyped: bool = False, path: Path | None = None, index: Collection[str] = ()
    ) -> Sequence[str]:
        """Return the needed columns; refuse those that are not there, or there twice."""
        columns = self.needed(present) if callable(self.needed) else self.needed
        for name in columns:
            if name.startswith("__pf_"):
                raise DataError(
                    f"column {name!r} has a name that begins with '__pf_', kept for internal use: rename it"
                )
            if name not in present:
                if name in index:
                    raise DataError(
                        f"column {name!r} not found: {name!r} is the index of the frame, not a column; give "
                        "frame.reset_index()"
                    )
                meant = did_you_mean(name, present)
                if name in self.parts and name in PARTS:
                    meant = f" For a part of a time, name the column: {name}(column)."
                elif name in self.parts and not meant and (part := nearest(name, PARTS)):
                    meant = f" A part of the time is called {part!r}."
                first = [n for n in present if not (untyped and (again := _AGAIN.fullmatch(n)) and again[1] in present)]
                there = names_of(n or "(one without a name)" for n in first)
                hint = _hint(name, present, path) if untyped else ""
                raise DataError(f"column {name!r} not found.{meant} Columns: {there}.{hint}")
            base = again[1] if untyped and (again := _AGAIN.fullmatch(name)) and again[1] in present else name
            twice = untyped and any((again := _AGAIN.fullmatch(p)) and again[1] == base for p in present)
            if twice or present.count(name) > 1:
                raise DataError(f"column {base!r} occurs more than once: rename or drop the others")
        return columns


def _hint(name: str, present: Sequence[str], path: Path | None) -> str:
    """Say why a CSV file may lack a column that somebody names."""
    if separated := other_separator(present):
        return separated
    if len(present) == 1 and "," in present[0].removeprefix("sep="):
        return " Each line of the file seems to be one quoted cell: save it as CSV again."
    if re.match("sep=|#", present[0]):
        return " The first line of the file does not name the columns: delete it."
    line = None if path is None else line_with(name, path)
    return f" Line {line} of the file has this name: delete the lines above it." if line else ""
