"""Rows of numbers as a table in Markdown, and as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pufferfish.errors import printable

__all__ = ["Table", "csv_of", "number", "printed"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table to read.

    Parameters
    ----------
    title : str
        What it shows, in one line.
    header : tuple of str
        Headings.
    rows : tuple of tuple of str
        Cells, as printed.
    texts : int, default 1
        So many of the first columns are of text, the others of numbers.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1

    def markdown(self) -> str:
        """Return the table in Markdown.

        Examples
        --------
        >>> print(Table("Noise", ("mechanism", "scale"), (("GroupDP", "100"),)).markdown())
        **Noise**
        <BLANKLINE>
        | mechanism | scale |
        |---|---:|
        | GroupDP | 100 |
        """
        rule = "|".join("---" if i < self.texts else "---:" for i in range(len(self.header)))
        lines = [_line(self.header), f"|{rule}|", *(_line(row) for row in self.rows)]
        return f"**{printable(self.title)}**\n\n" + "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(printable(cell).replace("|", "\\|") for cell in cells) + " |"


def csv_of(rows: Sequence[Mapping[str, str | float | int | None]]) -> bytes:
    """Return rows as a CSV file: one column for every name, numbers to six digits, nothing where there is nothing."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in (row.get(name) for name in names)])
    return text.getvalue().encode()


def printed(value: float | None) -> str:
    """Write a number as the paper printed it.

    Examples
    --------
    >>> printed(516.1555), printed(None)
    ('516.1555', 'N/A')
    """
    return "N/A" if value is None else repr(value)


def number(value: object) -> str:
    """Write a number to four digits, and nothing as N/A.

    Examples
    --------
    >>> number(0.00052134), number(None), number(1051.2)
    ('0.0005213', 'N/A', '1051')
    """
    if not isinstance(value, int | float):
        return "N/A"
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
