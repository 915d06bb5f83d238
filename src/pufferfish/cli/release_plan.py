"""``pufferfish release --dry-run``: what the same command would release, while nothing is drawn, spent or written."""

import click
from rich.table import Table
from rich.text import Text

from pufferfish.calibration import Calibration
from pufferfish.cli.printing import number, print_table
from pufferfish.cli.release_each import errors_of_subjects
from pufferfish.cli.release_groups import print_group_errors
from pufferfish.data import Rows, Sequences
from pufferfish.errors import printable
from pufferfish.queries import Transitions
from pufferfish.release import EachRelease, Release
from pufferfish.release.summary import noise_line, of_each, read_line, rounded

__all__ = ["print_plan"]

_NOTHING = "a dry run: nothing was drawn, spent or written; the same command without --dry-run releases"


def print_plan(found: Release | EachRelease, data: Sequences | Rows, calibration: Calibration) -> None:
    """Print the error of each value, the noise and the promise, and what the ledger would say; all of it is public.

    ``found`` is the record as it would be, but for its values.
    """
    if isinstance(found, EachRelease):
        for line in (*of_each(found), *errors_of_subjects(found, data)):
            click.echo(printable(line))
    elif data.groups is not None:
        print_group_errors(data, calibration)
    else:
        _print_errors(found)
    if not isinstance(found, EachRelease):
        click.echo(noise_line(found))
    if found.ledger is not None:
        booked = found.ledger
        spent = f"{number(booked.spent)} of {number(booked.budget)}"
        click.echo(f"ledger: it would be number {booked.entry}, and {spent} spent in all after it")
    click.echo(read_line(found))
    click.echo(printable(found.promise))
    click.echo(_NOTHING)


def _print_errors(found: Release) -> None:
    errors = found.accuracies(0.05)
    if found.query.kind in Transitions.kinds:
        states = len(found.theta.states)
        each = rounded(found.accuracy(0.05), found.scale)
        click.echo(f"{found.query.kind}: {states} x {states} values, each ± {each} with 95% probability")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column(found.query.kind)
    table.add_column("± 95%", justify="right")
    for label, error in zip(found.query.labels, errors, strict=True):
        table.add_row(Text(printable(label)), rounded(float(error), found.scale))
    print_table(table)
