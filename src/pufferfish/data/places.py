"""Which row a message is about: its number in the table, and its subject.

The rows of a CSV file are counted below its header, without blank lines, so that a row of text in several lines is one.
"""

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from pufferfish.data._chains import SUBJECT
from pufferfish.data._columns import collected, is_absent
from pufferfish.data.labels import count_rows
from pufferfish.data.source import ROW
from pufferfish.errors import DataError
from pufferfish.theta.states import state_label

__all__ = ["Places"]


@dataclass(frozen=True, slots=True)
class Places:
    """What is known of where a row is.

    Parameters
    ----------
    subject : bool
        Whether rows have a subject.
    ordered : bool
        Whether rows have a number.
    header : bool
        Whether they stand below a header, as in a CSV file.
    """

    subject: bool
    ordered: bool
    header: bool = False

    def head(self, frame: nw.LazyFrame[Any], *more: nw.Expr) -> dict[str, Any]:
        """First row of a frame: its subject, row number, and more."""
        columns: list[nw.Expr] = list(more)
        if self.subject:
            columns.append(nw.col(SUBJECT))
        if self.ordered:
            frame = frame.sort(ROW)
            columns.append(nw.col(ROW))
        return collected(frame.select(columns).head(1)).rows(named=True)[0] if columns else {}

    @property
    def below(self) -> str:
        """What is said behind the number of a row: from where it is counted."""
        return " below the header" if self.header else ""

    def describe(self, found: dict[str, Any]) -> str:
        """Say in words where a row is, as far as it is known."""
        parts: list[str] = []
        if ROW in found:
            parts.append(f"row {int(found[ROW]) + 1}{self.below}")
        if SUBJECT in found and not is_absent(found[SUBJECT]):
            parts.append(f"subject {state_label(found[SUBJECT])!r}")
        return ", ".join(parts)

    def first(self, frame: nw.LazyFrame[Any]) -> str:
        """Say where the first row of a frame is, or nothing."""
        described = self.describe(self.head(frame))
        return f" (first: {described})" if described else ""

    def no_subject(self, frame: nw.LazyFrame[Any], name: str, n: int) -> DataError:
        """Error for a column of subjects that are missing in n rows."""
        return DataError(
            f"column {name!r} has no subject in {count_rows(n)}{self.first(frame.filter(nw.col(SUBJECT).is_null()))}: "
            "every record belongs to a subject; drop these rows or name their subject"
        )
