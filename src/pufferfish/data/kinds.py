"""Kinds of tables, by the names of their files."""

__all__ = ["KINDS", "is_parquet", "separator_of"]

_CSV = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
KINDS = ".csv, .csv.gz, .tsv, .tsv.gz or .parquet"


def separator_of(name: str) -> str | None:
    """Return what separates the cells of a CSV file; None for files of other kinds."""
    return next((value for suffix, value in _CSV.items() if name.lower().endswith(suffix)), None)


def is_parquet(name: str) -> bool:
    """Whether a file is Parquet."""
    return name.lower().endswith((".parquet", ".pq"))
