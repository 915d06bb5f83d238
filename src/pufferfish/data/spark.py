"""Tables on a Spark cluster: what Spark needs and other engines do not.

Rows stay on the cluster, and are read by the expressions of every other engine. Spark shows an instant on the clock of
the session, so :func:`of_spark` makes it a time in UTC first; it takes CSV lines for what they are not, so
:func:`refuse_lines` looks at them; and every query reads the table anew, so :func:`held` keeps what several read.

docs/spark.md counts the passes and says what reaches the driver.
"""

import os
import re
import shutil
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import narwhals as nw

from pufferfish._base.reading import display_path
from pufferfish.data._csv_text import NO_TEXT, engine_errors, is_parquet, other_kind, separator_of
from pufferfish.errors import DataError, ParameterError, public

_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"

_SETTINGS = {
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.caseSensitive": "true",  # as on every other engine
}


@dataclass(frozen=True, slots=True)
class SparkFiles:
    """Files that a cluster reads, as a source for ``read_sequences`` and ``read_rows``."""

    paths: tuple[str, ...]  # files, folders or globs, as Spark finds them
    name: str  # their names without folders
    frame: Any  # all their columns
    separator: str | None  # what separates cells, for CSV; None for Parquet

    @property
    def untyped(self) -> bool:
        """Whether all columns are text because the files say nothing about types."""
        return self.separator is not None


# -- tables ----------------------------------------------------------------------------------------------------


def of_spark(native: Any, columns: Sequence[str]) -> tuple[nw.LazyFrame[Any], frozenset[str]]:
    """Select columns, instants as times in UTC; return them, and which ones were instants."""
    functions: Any = import_module("pyspark.sql.functions")
    kinds = {field.name: field.dataType.typeName() for field in native.schema.fields}
    zoned = frozenset(name for name in columns if kinds[name] == "timestamp")
    selected: list[Any] = []
    for name in columns:
        if re.search(r"[.`]", name):
            raise DataError(
                f"column {name!r} has a dot or a backtick in its name, which Spark reads as a part of another column: "
                "rename it"
            )
        column = functions.col(name)
        if name in zoned:  # hours and days of an instant would follow the session's time zone
            column = functions.expr(f"timestampadd(MICROSECOND, unix_micros(`{name}`), {_EPOCH})")
        elif kinds[name] == "void":
            column = column.cast("string")
        selected.append(column.alias(name))
    return nw.from_native(native.select(*selected)), zoned


@contextmanager
def held(frame: nw.LazyFrame[Any]) -> Generator[nw.LazyFrame[Any]]:
    """Keep a frame on the cluster while several queries read it; other engines read it as it is."""
    if not frame.implementation.is_pyspark():
        yield frame
        return
    native = frame.to_native().persist()
    try:
        yield nw.from_native(native)
    finally:
        native.unpersist()


# -- files -----------------------------------------------------------------------------------------------------


def spark_files(session: Any, paths: Sequence[str]) -> SparkFiles:
    """Open Parquet or CSV files, folders of them, or globs, on the machines of a cluster."""
    names: list[str] = []
    for path in paths:  # no file is opened for it
        with engine_errors(display_path(path)):
            names += session.read.text(path, recursiveFileLookup=True).inputFiles()
    if not names:
        raise DataError(f"{display_path(', '.join(paths))} holds no files")
    for name in names:
        if separator_of(name) is None and not is_parquet(name):
            raise DataError(f"{display_path(os.path.basename(name))} {other_kind(name)}")
    separators = set(map(separator_of, names))
    if len(separators) > 1:
        kinds = sorted({"Parquet" if one is None else f"CSV with {one!r}" for one in separators})
        raise DataError(f"the files are of several kinds ({', '.join(kinds)}): read those of one kind at a time")
    separator = separators.pop()
    name = ", ".join(os.path.basename(path.rstrip("/")) or path for path in paths)
    if not name.isprintable():  # it is written into releases and ledgers, as text
        raise DataError(f"the file name {name!r} has characters that do not print: rename the file")
    with engine_errors(name):
        if separator is None:
            return SparkFiles(tuple(paths), name, session.read.parquet(*paths), None)
        lines = session.read.options(header=True, enforceSchema=False, escape='"', recursiveFileLookup=True)
        return SparkFiles(tuple(paths), name, lines.csv(list(paths), sep=separator), separator)


def refuse_lines(files: SparkFiles) -> None:
    """Refuse CSV files with lines that Spark, which reads each by itself, would cut or take for others in silence."""
    if files.separator is None:
        return
    if len(files.frame.columns) < 2:
        raise DataError(f"{files.name} has only one column, and Spark would skip its empty cells: save it as Parquet")
    functions: Any = import_module("pyspark.sql.functions")
    separator = files.separator
    line = functions.regexp_replace("value", "\r$", "")
    bare = functions.regexp_replace(line, rf'(?:^|(?<={separator}))"(?:[^"]|"")*"(?={separator}|$)', "")
    faults = {
        "no UTF-8 text: save it as CSV in UTF-8": ~functions.is_valid_utf8("value"),
        **{fault: functions.contains("value", functions.lit(mark.decode())) for mark, fault in NO_TEXT.items()},
        "a line with CR inside: end lines with LF or CRLF": functions.contains(line, functions.lit("\r")),
        "a cell of several lines or a stray quote: Spark reads each line by itself, so save it as Parquet, or without "
        'line ends in cells, and write a quote inside a cell twice ("")': functions.contains(bare, functions.lit('"')),
        "a line with more cells than the first line has columns; quote cells that hold commas": (
            functions.size(functions.split(bare, separator)) > len(files.frame.columns)
        ),
    }
    text = files.frame.sparkSession.read.text(list(files.paths), lineSep="\n", recursiveFileLookup=True)
    counted = text.agg(*(functions.count_if(fault).alias(str(i)) for i, fault in enumerate(faults.values()))).first()
    for fault, n in zip(faults, counted, strict=True):
        if n:
            raise DataError(f"{files.name} cannot be read: it has {fault} ({n:,} line{'' if n == 1 else 's'})")


# -- the session -----------------------------------------------------------------------------------------------


@contextmanager
def spark_session(master: str) -> Generator[Any]:
    """Start Spark on a master such as ``local[4]`` or ``spark://host:7077``, and stop it; one that runs stays."""
    if find_spec("pyspark") is None:
        raise public(ParameterError("--spark needs PySpark: pip install 'pufferfish-privacy[spark]'"))
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=os.path.join(home, "bin") if home else None) is None:
        where = f"none is in JAVA_HOME ({display_path(home)})" if home else "none is found"
        raise public(
            ParameterError(
                f"--spark needs Java 17 or newer, and {where}: install it, on Debian by apt-get install "
                "openjdk-17-jre-headless, or set JAVA_HOME"
            )
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's opinion of the version of pandas, which is not used here
        spark: Any = import_module("pyspark.sql").SparkSession
        running = session = spark.getActiveSession()
        if running is None:
            builder = spark.builder.master(master).appName("pufferfish")
            try:
                session = builder.config(map=_SETTINGS).getOrCreate()
            except Exception as error:
                line = " ".join(str(error).split()).rpartition("Exception: ")[2][:300]
                given = display_path(master)
                raise public(ParameterError(f"--spark: Spark does not start on {given!r}: {line}")) from error
    if running is not None:
        yield running
        return
    try:
        yield session
    finally:
        session.stop()
