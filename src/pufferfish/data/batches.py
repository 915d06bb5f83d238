"""Rows that polars reads come in batches, so that memory does not grow with the table.

The rows of a file have an order, in which the times of each subject increase. So nothing has to be sorted on disk, and
no row is written anywhere. Windows over a batch see the last rows of its subjects in the batches before: these rows are
carried along, marked ``CARRIED``, and not counted again. Every batch is counted by the expressions that count a whole
table (:class:`~pufferfish.data._chains.Layout`), and the counts of batches are added up.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import narwhals as nw
import polars as pl

from pufferfish.data._chains import CARRIED, CELL, STATE, SUBJECT, Frame, Layout, added_up, counted

__all__ = ["Sums", "batches_of"]

BATCH = 250_000
"""Rows of a batch. More take more memory, fewer more time."""


def batches_of(frame: Frame, layout: Layout, *, filtered: bool) -> Generator[tuple[Frame, Frame]]:
    """Yield the rows of a polars frame batch by batch: in order, and linked.

    Parameters
    ----------
    frame : narwhals LazyFrame
        Prepared rows.
    layout : Layout
        How they are laid out, in batches.
    filtered : bool
        Whether the frame has the column ``KEEP``.
    """
    native: pl.LazyFrame = frame.to_native()
    schema = native.collect_schema()
    labels = (SUBJECT, STATE, *(f"{CELL}{i}" for i in range(layout.groupings)))
    words = [pl.col(name).cast(_category()) for name in labels if schema.get(name) == pl.String]
    totals = [pl.lit(None, pl.Int64).alias(name) for name in layout.totals]
    carried: pl.DataFrame | None = None
    for rows in _collected(native):
        new = rows.with_columns(pl.lit(value=False).alias(CARRIED), *words, *totals)
        here, elsewhere = _of_subjects(new.clear() if carried is None else carried, new, layout)
        held = pl.concat([here, new])
        if layout.subject:  # then the row before is that of the same subject; the sort keeps their order
            held = held.sort(pl.col(SUBJECT).to_physical(), maintain_order=True)
        ordered: Any = layout.in_order(cast(Any, nw.from_native(held)))  # pyrefly: ignore[no-matching-overload]
        linked: Any = layout.link(ordered, filtered=filtered)
        yield ordered.lazy(), linked.lazy()
        carried = pl.concat([elsewhere, _last_rows(ordered.to_native(), linked.to_native(), new.columns, layout)])


def _category() -> pl.Categorical:
    """Return a type for text of which much is equal: each text is kept once, as a number."""
    return pl.Categorical(pl.Categories.random())


def _collected(native: pl.LazyFrame) -> Generator[pl.DataFrame]:
    """Collect a frame in batches, one at least."""
    found = False
    for rows in native.collect_batches(chunk_size=BATCH, lazy=True):
        found = True
        yield rows
    if not found:
        yield native.clear().collect()


def _of_subjects(carried: pl.DataFrame, new: pl.DataFrame, layout: Layout) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split carried rows into those of subjects that have new rows, and the others."""
    if not layout.subject or len(carried) < BATCH:
        return carried, carried.clear()
    subjects = new.select(pl.col(SUBJECT).unique())
    return carried.join(subjects, on=SUBJECT, how="semi"), carried.join(subjects, on=SUBJECT, how="anti")


def _last_rows(ordered: pl.DataFrame, linked: pl.DataFrame, columns: list[str], layout: Layout) -> pl.DataFrame:
    """Choose the rows that the next batch looks back at: the last that were kept, and the last of all."""
    last = _tail(linked.select(columns), layout, layout.memory)
    if len(linked) < len(ordered):  # rows were left out; their positions and times count
        both = pl.concat([last, _tail(ordered.select(columns), layout, 1)])
        last = both.unique(layout.order, keep="first", maintain_order=True)
    return last.with_columns(pl.lit(value=True).alias(CARRIED))


def _tail(frame: pl.DataFrame, layout: Layout, n: int) -> pl.DataFrame:
    if not layout.subject:
        return frame.tail(n)
    return frame.filter(pl.col(SUBJECT).ne_missing(pl.col(SUBJECT).shift(-n)))


@dataclass(slots=True)
class Sums:
    """Counts of batches, added up whenever they have become many.

    Parameters
    ----------
    keys : sequence of str
        By what is counted.
    steps : bool
        Whether steps are added up too.
    """

    keys: Sequence[str]
    steps: bool = False
    _parts: list[nw.DataFrame[Any]] = field(default_factory=list[nw.DataFrame[Any]])
    _rows: int = 0
    _limit: int = 4 * BATCH

    def add(self, rows: Frame) -> nw.DataFrame[Any]:
        """Count the rows of a batch, and return their counts."""
        part = counted(rows, self.keys, steps=self.steps).collect()
        self._parts.append(part)
        self._rows += len(part)
        if self._rows > self._limit:
            self.total()
            self._limit = 2 * self._rows + 4 * BATCH
        return part

    def total(self) -> nw.DataFrame[Any]:
        """Add up what has been counted so far."""
        if len(self._parts) > 1:
            self._parts = [added_up(nw.concat(self._parts), self.keys, steps=self.steps)]
            self._rows = len(self._parts[0])
        words = [name for name, dtype in self._parts[0].schema.items() if dtype == nw.Categorical]
        return self._parts[0].with_columns(nw.col(words).cast(nw.String)) if words else self._parts[0]
