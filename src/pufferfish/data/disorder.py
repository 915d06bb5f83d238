"""Times that do not increase within a subject are refused; the message shows the first of them."""

from typing import Any

import narwhals as nw

from pufferfish.data.chain_rows import ChainRows
from pufferfish.data.chains import SUBJECT, TIME, Frame, Layout
from pufferfish.data.labels import count_rows
from pufferfish.errors import DataError
from pufferfish.theta.states import state_label

__all__ = ["Disorder"]


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
        rows, name, duplicate = self.rows, self.rows.options.time, False not in self.first
        found, n = self.first[duplicate], count_rows(self.counts[duplicate])
        of = f" for subject {state_label(found[SUBJECT])!r}" if rows.has_subject else ""
        times = {key: rows.time_text(found[key]) for key in ("earlier", "later")}
        if duplicate:
            raise DataError(
                f"column {name!r} repeats {times['later']}{of} (duplicate times in {n}): times increase strictly "
                "within a subject; drop or aggregate the duplicates"
                + ("" if rows.has_subject else ", or give subject=")
            )
        raise DataError(
            f"column {name!r} is unsorted: {times['later']} comes after {times['earlier']}{of} (in {n}): times "
            "increase strictly within a subject; sort the table by "
            + ("subject and time" if rows.has_subject else "time, or give subject=")
            + (
                "; where clocks were set back, write times with their offset, such as 2024-10-27T02:00+01:00"
                if rows.instants and not rows.zoned
                else ""
            )
        )
