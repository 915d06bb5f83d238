"""A verdict kept in the file of the model that was checked: the word, the day, and which public table it was.

Never of a table that is protected: word and fingerprint would be exact functions of its rows, in a file that is public.
So no verdict is kept of a table that a ledger or a release in sight is about, by its name; and a release refuses a
model whose verdict is of the table that it reads, by its fingerprint.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pufferfish.check.record import Checked
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.fit.model_file import Model
from pufferfish.theta.record import CONDEMNED, Checking

__all__ = ["protecting", "with_verdict"]

_PROTECTING = ("pufferfish-release", "pufferfish-ledger", "pufferfish-measurement")

_LARGEST = 2**25
"""Bytes of a file that may be a record: ledgers grow."""


def with_verdict(model: Model, check: Checked, data: Sequences | Rows) -> Model:
    """Return a model that says what its check against these data found.

    Where another table condemned it, that stays: what one table contradicts is not mended by another.
    """
    before = model.checked
    if before is not None and before.word == CONDEMNED and before.fingerprint != data.fingerprint:
        return model
    same = data.fingerprint is not None and data.fingerprint in (model.fitted_on or "").split()
    checking = Checking(
        word=check.verdict.word,
        date=datetime.now(UTC).date().isoformat(),
        source=data.base.source,
        same=same,
        fingerprint=data.fingerprint,
    )
    return replace(model, checked=checking)


def protecting(table: str, folders: Iterable[str | os.PathLike[str]]) -> Path | None:
    """Return a ledger or a release in some folders that is about a table of this name; None where there is none.

    A table of several files has the names of all of them, and is about each.
    """
    names = set(_files_of(table))
    for folder in dict.fromkeys(Path(folder).resolve() for folder in folders):
        for path in sorted(folder.glob("*.json")):
            if path.is_file() and path.stat().st_size <= _LARGEST and not names.isdisjoint(_tables_of(path)):
                return path
    return None


def _tables_of(path: Path) -> Iterator[str]:
    """Yield the names of the tables that a ledger or a release is about; none of any other file."""
    try:
        record: Any = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, OSError, RecursionError):
        return
    if not isinstance(record, dict) or record.get("format") not in _PROTECTING:
        return
    for holder in (record, record.get("data")):
        for name in ("base", "rows_base", "rows"):
            base = holder.get(name) if isinstance(holder, dict) else None
            if isinstance(base, dict) and isinstance(base.get("source"), str):
                yield from _files_of(base["source"])


def _files_of(table: str) -> list[str]:
    return [table, *table.split(", ")]
