"""``--by``: a value for each public group of records, and beforehand its error."""

from collections.abc import Sequence
from itertools import islice

import click
from rich.table import Table
from rich.text import Text

from pufferfish._base.words import at_most
from pufferfish.cli.print import print_table
from pufferfish.data import Rows, Sequences
from pufferfish.errors import ParameterError, printable, shortened
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import Query
from pufferfish.release import Release
from pufferfish.release.cells import errors_of_groups
from pufferfish.release.facts import GroupsRecord
from pufferfish.release.show.text import heads_of_groups, impossible_lines, noise_line, rows_of_groups
from pufferfish.release.show.weak_values import weak_lines

__all__ = ["BY_HELP", "check_group_accuracy", "print_group_errors", "print_groups", "split_groupings"]

BY_HELP = (
    "Release each public group of records, at the noise of one: by columns (sex), and by the hour, weekday (0 is "
    "Monday), date or month of --time or of another column, hour(admitted)."
)

_MOST_ROWS = 48


def split_groupings(text: str) -> list[str]:
    """Return the groupings of a list with commas; a comma in quotes or brackets is part of a name.

    Examples
    --------
    >>> split_groupings('sex, col("team, name"),hour(time)')
    ['sex', 'col("team, name")', 'hour(time)']
    """
    pieces = [piece if i % 2 else piece.replace(",", "\0") for i, piece in enumerate(text.split('"'))]
    parts = [part.strip() for part in '"'.join(pieces).split("\0")]
    if not all(parts):
        raise ParameterError(f"--by {text!r} has an empty part: take the odd comma out, or name what is missing")
    return parts


def check_group_accuracy(query: Query, accuracy: float | None) -> None:
    """Refuse an accuracy that differs from group to group."""
    if accuracy is not None and query.known is not None and query.known.relative:
        raise ParameterError(
            f"--accuracy of {query.kind} differs from group to group, as their numbers of records do: ask for counts "
            "or sums, or give --epsilon"
        )


def print_groups(found: Release, groups: GroupsRecord, csv_path: str | None) -> None:
    """Print a row for each group and output, the first of them where there are many, and what the noise is."""
    heads = heads_of_groups(found, groups)
    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(heads):
        table.add_column(Text(printable(name)), justify="left" if i < len(heads) - 3 else "right")
    for row in islice(rows_of_groups(found, groups), _MOST_ROWS):
        table.add_row(*(Text(printable(part)) for part in row))
    print_table(table)
    _print_weekdays(groups.by)
    if len(found.values) > _MOST_ROWS:
        where = "all are in the file of --csv" if csv_path is not None else "--csv FILE writes all as a table"
        click.echo(f"… and {len(found.values) - _MOST_ROWS:,} more values: {where}")
    for line in (*weak_lines(found), noise_line(found), *impossible_lines(found)):
        click.echo(line)


def print_group_errors(data: Sequences | Rows, calibration: Calibration) -> None:
    """Print how many records each group has, and the error of its values: both are public, and nothing is spent."""
    assert data.groups is not None
    groups, errors = data.groups, errors_of_groups(data, calibration)
    table = Table(box=None, pad_edge=False)
    for name in groups.by:
        table.add_column(Text(printable(name)))
    for heading in ("records", "± 95%"):
        table.add_column(heading, justify="right")
    rows = list(zip(groups.cells, groups.records, errors, strict=True))
    for cell, records, error in rows[:_MOST_ROWS]:
        table.add_row(*(Text(printable(label)) for label in cell), f"{records:,}", f"{error:.4g}")
    click.echo(f"each value of {_each(len(rows))}, by {calibration.title} at ε = {at_most(calibration.epsilon)}:")
    print_table(table)
    _print_weekdays(groups.by)
    if len(rows) > _MOST_ROWS:
        worst = max(range(len(rows)), key=errors.__getitem__)
        name = printable(shortened(", ".join(groups.cells[worst])))
        click.echo(f"… and {len(rows) - _MOST_ROWS:,} more groups; the largest error is {errors[worst]:.3g} ({name})")


def _print_weekdays(by: Sequence[str]) -> None:
    """Say which weekday is 0, where groups are called so."""
    if any(each.startswith("weekday(") for each in by):
        click.echo("weekdays: 0 is Monday, 6 is Sunday")


def _each(groups: int) -> str:
    return "the one group" if groups == 1 else f"each of {groups:,} groups"
