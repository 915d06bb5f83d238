"""A table of a database by its address: ``duckdb:///FILE?table=T``, ``sqlite:///FILE?table=T``, ``postgresql://…?table=T``.

DuckDB reads its own files. SQLite is read by Python's module and PostgreSQL by psycopg, which ledgers use too: only the
columns that are needed, in batches, in the order of their times. Nothing is written, and a view is a table too.
"""

import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import polars as pl

from pufferfish._base.reading import display_path, shown_address
from pufferfish.errors import DataError, ParameterError, public

_SCHEMES = ("duckdb", "sqlite", "postgresql")
FETCHED = 100_000  # rows that are asked for at a time

_TYPES: dict[int, Any] = {
    16: pl.Boolean,
    **dict.fromkeys((20, 21, 23), pl.Int64),
    **dict.fromkeys((700, 701, 1700), pl.Float64),  # real, double precision, numeric
    1082: pl.Date,
    1114: pl.Datetime("us"),
    1184: pl.Datetime("us", "UTC"),
}
"""Types of columns by PostgreSQL's numbers of them; of any other type a value is its text."""

_HOW = "write duckdb:///FILE?table=NAME, sqlite:///FILE?table=NAME or postgresql://HOST/DATABASE?table=NAME"


class DatabaseTable:
    """A table of a database, not opened yet; ``name`` is how records and messages call it, without a password."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        options = dict(parse_qsl(parts.query))
        self._scheme, self._table = parts.scheme, options.pop("table", "")
        if self._scheme not in _SCHEMES:
            raise public(
                DataError(
                    f"{shown_address(address)} is an address, and only local files are read: download it first; for a "
                    f"table of a database {_HOW}"
                )
            )
        if not self._table:
            raise public(ParameterError(f"{shown_address(address)} names no table: {_HOW}"))
        self._file: Path | None = None
        self._address = urlunsplit(parts._replace(query=urlencode(options), fragment=""))
        if self._scheme == "postgresql":
            where = parts.path.removeprefix("/") or "PostgreSQL"
        else:
            if parts.netloc or len(parts.path) < 2 or options:
                raise public(ParameterError(f"{shown_address(address)} names no file: {_HOW}"))
            self._file = Path(parts.path.removeprefix("/"))
            where = display_path(self._file.name)
            if not self._file.is_file():
                raise public(DataError(f"cannot read {display_path(self._file)}: there is no such file"))
        self.name = f"table {self._table} of {where}"

    @property
    def untyped(self) -> bool:
        """Whether columns have no types, as in SQLite, where each value has its own: all is text, as in a CSV file."""
        return self._scheme == "sqlite"

    def rows(self, choose: Callable[[Sequence[str]], Sequence[str]], order: str | None) -> Any:
        """Return the chosen columns, in the order of one; what a value is read as never depends on other rows."""
        if self._scheme == "duckdb":
            relation: Any = _module("duckdb", "duckdb").connect(str(self._file), read_only=True).table(self._table)
            return relation.select(*(_quoted(name) for name in choose(relation.columns)))
        table = ".".join(map(_quoted, self._table.split(".")))
        with closing(self._connected()) as connection:
            cursor = connection.execute(f"SELECT * FROM {table} LIMIT 0")
            kinds = {column[0]: pl.String if self.untyped else _TYPES.get(column[1]) for column in cursor.description}
            names, casts = choose(list(kinds)), {pl.String: "TEXT", None: "TEXT", pl.Float64: "FLOAT"}
            as_cast = {name: casts.get(kinds[name]) for name in names}
            columns = [f"CAST({_quoted(n)} AS {cast})" if cast else _quoted(n) for n, cast in as_cast.items()]
            asked = f"SELECT {', '.join(columns)} FROM {table}" + (f" ORDER BY {_quoted(order)}" if order else "")
            schema = {name: kinds[name] or pl.String for name in names}
            cursor, parts = connection.execute(asked), list[pl.DataFrame]()
            while rows := cursor.fetchmany(FETCHED):
                parts.append(pl.DataFrame(rows, schema, orient="row"))
            return pl.concat([pl.DataFrame(schema=schema), *parts])

    def _connected(self) -> Any:
        if self._file is not None:
            return sqlite3.connect(f"file:{quote(str(self._file.resolve()))}?mode=ro", uri=True)
        connection = _module("psycopg", "postgresql").connect(self._address, connect_timeout=30)
        connection.read_only = True
        return connection


def table_at(source: Any) -> DatabaseTable | None:
    """Return the table that an address names; None of what is no address."""
    named = isinstance(source, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", source)
    return DatabaseTable(source) if named and "://" in source else None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _module(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ParameterError(f"this database is read by {name}: pip install 'pufferfish-privacy[{extra}]'") from None
