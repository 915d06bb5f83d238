"""Rows of numbers as a table in Markdown, and as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Table", "csv_of", "number"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table to read.

    Parameters
    ----------
    title : str
        What it shows, in one line.
    header : tuple of str
        Headings; the first column is of text, the others of numbers.
    rows : tuple of tuple of str
        Cells, as printed.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

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
        rule = "|".join(["---", *["---:"] * (len(self.header) - 1)])
        lines = [_line(self.header), f"|{rule}|", *(_line(row) for row in self.rows)]
        return f"**{self.title}**\n\n" + "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def csv_of(rows: Sequence[Mapping[str, str | float | int | None]]) -> bytes:
    """Return rows as a CSV file: one column for every name, numbers to six digits, nothing where there is nothing."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([f"{v:.6g}" if isinstance(v, float) else v for v in (row.get(name) for name in names)])
    return text.getvalue().encode()


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
