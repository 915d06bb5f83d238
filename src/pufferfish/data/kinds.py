"""Kinds of tables, by the names of their files."""

import re
from collections.abc import Sequence

__all__ = ["KINDS", "is_parquet", "other_kind", "other_separator", "separator_of"]

_CSV = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
KINDS = ".csv, .csv.gz, .tsv, .tsv.gz or .parquet"


def separator_of(name: str) -> str | None:
    """Return what separates the cells of a CSV file; None for files of other kinds."""
    return next((value for suffix, value in _CSV.items() if name.lower().endswith(suffix)), None)


def is_parquet(name: str) -> bool:
    """Whether a file is Parquet."""
    return name.lower().endswith((".parquet", ".pq"))


def other_kind(name: str) -> str:
    """Return what is said of a file of another kind, after its name."""
    workbook = name.lower().endswith((".xlsx", ".xls", ".ods"))
    remedy = "save the sheet as CSV in UTF-8" if workbook else "name a table in CSV so that it ends in .csv"
    return f"is not of a kind that can be read, expected {KINDS}: {remedy}"


def other_separator(columns: Sequence[str]) -> str:
    """Return what is said of a CSV file whose only column holds other separators, as many spreadsheets write them."""
    mark = re.search(r"[;\t|]", columns[0]) if len(columns) == 1 else None
    if mark is None:
        return ""
    seems = f" The file seems to separate columns by {mark[0]!r}, expected ',' (.csv) or a tab (.tsv): "
    if mark[0] == "\t":
        return f"{seems}name it so that it ends in .tsv, with decimal points."
    decimals = ", decimal_comma=True" if mark[0] == ";" else ""
    return (
        f"{seems}save it so, with decimal points, or in Python polars.read_csv(FILE, "
        f"separator={mark[0]!r}{decimals}).write_csv(NEW)."
    )
