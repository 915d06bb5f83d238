"""``pufferfish series``: releases of one question, one after the other."""

import re
from dataclasses import dataclass

from pufferfish._base.checked import split_list
from pufferfish._base.view import counted
from pufferfish._base.words import number
from pufferfish._base.writing import Kind, write_whole
from pufferfish._draw.figure import PICTURE, save_figure
from pufferfish.cli._tables import check_targets
from pufferfish.cli.messages import say
from pufferfish.cli.options import argument, command, option
from pufferfish.cli.print import print_table, print_warnings
from pufferfish.release.record import csv_of
from pufferfish.release.series import NUMBERS, OF_GROUPS, series

_HEADING = re.compile(f"period,(?:.+,)?output,{','.join(NUMBERS)}(?:,{','.join(OF_GROUPS)})?\r?\n".encode())

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
    average: int = option("Number of successive releases in each average.", "N", default=4, show_default=True)
    against: str | None = option(
        "For releases by groups, the group that others are compared with [default: the first].", "GROUP"
    )


@command("series", SeriesOptions)
def series_command(options: SeriesOptions) -> None:
    """Put releases of one query one after the other: values, changes, totals and averages, with their errors.

    Records alone are read, so it costs no privacy. Errors are exact for the noise. A change is marked where noise alone
    makes so large a one in at most 5% of cases. Where the releases are by groups, so are differences from one of them.

    \b
    Example:
      pufferfish series week*.json --output series.csv --plot series.png
    """
    targets = [("--output", options.output, SERIES), ("--plot", options.plot, PICTURE)]
    check_targets(targets, inputs=options.releases, overwrite=True)
    against = None if options.against is None else split_list(options.against)
    found = series(options.releases, average=options.average, against=against)
    if found.history.holds is False:
        print_warnings([found.history.says])
    made = [(release.created, release.ledger and release.ledger.entry) for release in found.releases]
    if made != sorted(made):
        order = "the releases are not in the order in which they were made; changes and totals follow the given order "
        print_warnings([f"{order}(shells sort week10 before week2; ls -v sorts numbers)"])
    rows, names = found.rows, found.names
    numbers, marks = [*_SHOWN], ["exceeds_noise"]
    heads = ["value", "± 95%", "change", "± 95%", "total", "± 95%", "exceeds noise"]
    if found.against is not None:
        numbers, marks = [*numbers, *OF_GROUPS[:2]], [*marks, OF_GROUPS[2]]
        heads[-1:] = [f"less {found.against_in_words}", "± 95%", "change exceeds noise", "differs"]
    shown = [
        (*(str(row[n]) for n in names), *(_told(row[n]) for n in numbers), *("yes" if row[n] else "" for n in marks))
        for row in rows[-_MOST:]
    ]
    print_table((*names, *heads), shown, names=len(names))
    if len(rows) > _MOST:
        say(f"{len(rows) - _MOST:,} earlier rows are not shown; all are in --output")
    say("a change exceeds noise if noise alone makes such a large change in at most 5% of cases")
    if found.against is not None:
        many, other = sum(row["differs"] is not None for row in rows), found.against_in_words
        say(
            f"a group differs from {other} where noise alone makes so large a difference in at most 5% of "
            f"cases: of {counted(many, 'difference')} about {number(many / 20, 2)} though there are none"
        )
    if options.output is not None:
        write_whole(options.output, csv_of(found.to_frame(), for_spreadsheets=False), SERIES, overwrite=True)
        say(f"written: {options.output}")
    if options.plot is not None:
        save_figure(found.plot(), options.plot)
        say(f"written: {options.plot}")


_SHOWN = ("value", "error_95", "change", "change_error_95", "total", "total_error_95")


def _told(value: object) -> str:
    return "" if value is None else number(float(str(value)), 4)
