"""Reading the files of the experiments: tables as they are, with what their columns must hold."""

import hashlib
from pathlib import Path

import polars as pl

from pufferfish.data.source import engine_errors
from pufferfish.errors import DataError

__all__ = ["FILTERS", "error_of", "hash_of", "load_table", "minutes", "need"]

FILTERS = ("awake", "worn", "wear")
"""Columns of true and false: only rows where all that are there are true are records."""
_NUMBERS = ("watts", "day", "minute", "age", "bmi")
_KINDS = (".parquet", ".csv", ".csv.gz")


def load_table(path: Path) -> pl.DataFrame:
    """Read a table; of a CSV file every column is text, for nobody knows what 01 or 01/02/2020 means."""
    if not path.name.endswith(_KINDS):
        raise DataError(f"{path} is no table: expected a name that ends in {', '.join(_KINDS)}")
    with engine_errors(path.name):
        frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema=False)
    texts = {name for name, kind in frame.schema.items() if kind == pl.String}
    numbers = [_as_number(frame[name], path) for name in _NUMBERS if name in texts]
    truths = [_as_truth(frame[name], path) for name in FILTERS if name in texts]
    return frame.with_columns(numbers + truths)


def _as_number(column: pl.Series, path: Path) -> pl.Series:
    numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    _refuse_others(column, numbers, path, "a number")
    return numbers


def _as_truth(column: pl.Series, path: Path) -> pl.Series:
    words = {"true": True, "false": False, "1": True, "0": False}
    truths = column.str.strip_chars().str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Boolean)
    _refuse_others(column, truths, path, "true or false")
    return truths


def _refuse_others(column: pl.Series, understood: pl.Series, path: Path, expected: str) -> None:
    lost = column.filter(understood.is_null() & column.is_not_null())
    if len(lost):
        raise DataError(f"column {column.name!r} of {path} holds {lost[0]!r}, expected {expected} or nothing")


_MOST_DAYS = 1_000_000


def minutes(frame: pl.DataFrame, path: Path) -> pl.Expr:
    """Return the times that days and minutes of the day stand for, from some day on: no clock is set back in them."""
    if frame.filter(pl.col("day").cast(pl.Float64).abs() > _MOST_DAYS).height:
        raise DataError(f"column 'day' of {path} goes beyond {_MOST_DAYS:,} days: number each subject's days from 1")
    minutes = pl.col("day").cast(pl.Float64) * 1440 + pl.col("minute").cast(pl.Float64)
    return pl.datetime(2000, 1, 1, time_zone="UTC") + pl.duration(minutes=minutes)


def error_of(label: str, path: Path, error: DataError) -> DataError:
    """Return an error of a frame as one of the file that it was read from."""
    return DataError(f"{label}: {str(error).replace('polars frame', path.name)}")


def need(frame: pl.DataFrame, path: Path, *names: str) -> None:
    """Refuse a table that lacks a column."""
    for name in names:
        if name not in frame.columns:
            raise DataError(
                f"{path} has no column {name!r}: an activity table has subject, state and timestamp (or day and "
                "minute), a table of power has watts, one row a minute (documentation: The paper's experiments)"
            )


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
