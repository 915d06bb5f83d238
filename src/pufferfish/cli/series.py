"""``pufferfish series``: releases of one question, one after the other."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import click

from pufferfish._base.words import number
from pufferfish._base.writing import Kind, Output
from pufferfish._draw.figure import PICTURE, picture_of
from pufferfish.cli._tables import check_targets
from pufferfish.cli.options import argument, command, option
from pufferfish.cli.print import print_table, print_warnings
from pufferfish.errors import printable
from pufferfish.release.cells import csv_of
from pufferfish.release.series import NUMBERS, series

__all__ = ["series_command"]

_HEADING = re.compile(rb"period,(?:.+,)?output," + ",".join(NUMBERS).encode() + rb"\r?\n")

SERIES = Kind("series of releases", lambda content: _HEADING.match(content) is not None, "name another file", (".csv",))
"""It is made of records, so it is replaced as pictures are; it is known by all of its first line."""

_MOST = 40
"""Rows that are printed; all are in the table."""


@dataclass(frozen=True, kw_only=True)
class SeriesOptions:
    """Which releases, and where their series goes."""

    releases: tuple[str, ...] = argument("RELEASE...", required=True)
    output: str | None = option("Where the series is written as a table (.csv), with totals and averages.", "FILE")
    plot: str | None = option("Where a picture is drawn (.png, .svg, .pdf).", "FILE")
    average: int = option("Over how many releases in a row averages are taken.", "N", default=4, show_default=True)


@command("series", SeriesOptions)
def series_command(options: SeriesOptions) -> None:
    """Put releases of one query one after the other: values, changes, totals and averages, with their errors.

    Records alone are read, so it costs no privacy. Errors are exact for the noise. A change is marked where noise alone
    makes so large a one in at most 5% of cases.

    \b
    Example:
      pufferfish series week*.json --output series.csv --plot series.png
    """
    targets = [("--output", options.output, SERIES), ("--plot", options.plot, PICTURE)]
    check_targets(targets, inputs=options.releases, overwrite=True)
    found = series(options.releases, average=options.average)
    if found.history.holds is False:
        print_warnings([found.history.says])
    rows, names = found.rows, found.names
    shown = [
        (*(str(row[name]) for name in names), *_told(row), "yes" if row["exceeds_noise"] else "")
        for row in rows[-_MOST:]
    ]
    heads = ("value", "± 95%", "change", "± 95%", "total", "± 95%", "exceeds noise")
    print_table((*names, *heads), shown, names=len(names))
    if len(rows) > _MOST:
        click.echo(f"{len(rows) - _MOST:,} earlier rows are not shown; all are in --output")
    click.echo("a change exceeds noise where noise alone makes so large a one in at most 5% of cases")
    if options.output is not None:
        with Output(options.output, SERIES, overwrite=True) as file:
            file.write(csv_of(found.to_frame(), for_spreadsheets=False))
        click.echo(printable(f"written: {options.output}"))
    if options.plot is not None:
        with Output(options.plot, PICTURE, overwrite=True) as file:
            file.write(picture_of(found.plot(), options.plot))
        click.echo(printable(f"written: {options.plot}"))


def _told(row: Mapping[str, object]) -> list[str]:
    names = ("value", "error_95", "change", "change_error_95", "total", "total_error_95")
    return ["" if row[name] is None else number(float(str(row[name])), 4) for name in names]
