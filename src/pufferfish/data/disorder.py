"""Times that do not increase within a subject are refused; the message shows the first of them."""

from typing import Any

import narwhals as nw

from pufferfish.data._chain_rows import ChainRows
from pufferfish.data._chains import SUBJECT, TIME, Frame, Layout
from pufferfish.data._columns import collected
from pufferfish.data.labels import count_rows
from pufferfish.data.source import ROW
from pufferfish.errors import DataError
from pufferfish.theta.states import state_label

__all__ = ["Disorder"]

_MIDNIGHT = " 00:00:00"


class Disorder:
    """Rows that are out of order, as far as rows were looked at.

    Parameters
    ----------
    rows : ChainRows
        The prepared rows.
    layout : Layout
        How they are laid out.
    """

    def __init__(self, rows: ChainRows, layout: Layout) -> None:
        self.rows = rows
        self.layout = layout
        self.counts = {True: 0, False: 0}  # rows that repeat the time before them, and those that go back
        self.first = dict[bool, dict[str, Any]]()

    def look(self, ordered: Frame) -> None:
        """Look at rows of :meth:`Layout.in_order`."""
        if not self.layout.timed:
            return
        back, same = self.layout.fault_counts(ordered)
        for duplicate, n in ((False, back), (True, same)):
            if n and duplicate not in self.first:
                earlier, later = nw.col(self.layout.earlier), nw.col(TIME)
                faults = self.layout.faults(ordered, duplicate=duplicate)
                self.first[duplicate] = self.rows.places.head(faults, earlier.alias("earlier"), later.alias("later"))
            self.counts[duplicate] += n

    def refuse(self) -> None:
        """Refuse what was seen.

        Raises
        ------
        DataError
            If a time goes back, or is repeated.
        """
        if not self.first:
            return
        rows, duplicate = self.rows, False not in self.first
        found, n = self.first[duplicate], count_rows(self.counts[duplicate])
        times = {key: rows.time_text(found[key]) for key in ("earlier", "later")}
        clocks = rows.wall
        if clocks and all(text.endswith(_MIDNIGHT) for text in times.values()):  # dates, which no clock changes
            times, clocks = {key: text.removesuffix(_MIDNIGHT) for key, text in times.items()}, False
        of = f" for subject {state_label(found[SUBJECT])!r}" if rows.has_subject else ""
        column, order = f"column {rows.options.time!r}", "times increase strictly within a subject"
        whose = "" if rows.has_subject else ", or give subject="
        check = (
            f"check that column {rows.options.subject!r} says whose records they are, then " if rows.has_subject else ""
        )
        set_back = (
            "; where clocks were set back, write times with their offset, such as 2024-10-27T02:00+01:00"
            if clocks or rows.options.zone is not None
            else ""
        )
        if set_back and rows.options.max_gap is not None:
            zone = rows.options.time_zone
            set_back += f", or leave that hour out: {'' if zone else 'time_zone= and '}ambiguous='drop'"
        twice = self._twice(found)
        if duplicate:
            where = f"{twice}; duplicate times" if twice else "duplicate times"
            raise DataError(
                f"{column} repeats {times['later']}{of} ({where} in {n}): {order}; {check}drop or aggregate the "
                f"duplicates{whose}"
            )
        if twice and rows.has_subject:  # as in a table that was added to itself: sorting it would not help
            raise DataError(
                f"{column} has {times['later']} twice{of} ({twice}): {order}; {check}drop or aggregate the "
                f"duplicates, and sort the table by subject and time{set_back}"
            )
        raise DataError(
            f"{column} is unsorted: {times['later']} comes after {times['earlier']}{of} (in {n}): {order}; sort the "
            f"table by {'subject and time' if rows.has_subject else 'time'}{whose}{set_back}"
        )

    def _twice(self, found: dict[str, Any]) -> str:
        """Return the first two rows of a subject that have a time, in words; "" where there are none, or no numbers."""
        places = self.rows.places
        if not places.ordered:
            return ""
        same = nw.col(TIME) == found["later"]
        if self.rows.has_subject:
            same = same & (nw.col(SUBJECT) == found[SUBJECT])
        alike = collected(self.rows.frame.filter(same).select(ROW).sort(ROW).head(2)).get_column(ROW).to_list()
        if len(alike) < 2:
            return ""
        one, other = (f"{row + 1:,}" for row in alike)
        return f"rows {one} and {other}{places.below}"
