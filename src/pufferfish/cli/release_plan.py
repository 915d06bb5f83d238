"""What ``pufferfish release`` prints beside its values, and with ``--dry-run`` instead of them."""

import click
from rich.table import Table
from rich.text import Text

from pufferfish._base.words import at_most, number
from pufferfish.cli.print import print_table
from pufferfish.cli.release_each import errors_of_subjects
from pufferfish.cli.release_groups import print_group_errors
from pufferfish.data import Rows, Sequences
from pufferfish.errors import printable
from pufferfish.ledger import Entry, Ledger
from pufferfish.ledger.shown import part_of
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries import Transitions
from pufferfish.release import EachRelease, Release
from pufferfish.release.show.text import (
    assumed_in_short,
    lines_of_each,
    noise_line,
    postprocessing_lines,
    promise_line,
    size_line,
    without_ledger,
)

__all__ = ["DRY", "print_plan", "print_promise"]

DRY = "a dry run: nothing was drawn, spent or written; the same command without --dry-run releases"


def print_plan(
    found: Release | EachRelease,
    entry: Entry | None,
    ledger: Ledger | None,
    data: Sequences | Rows,
    calibration: Calibration,
) -> None:
    """Print the error of each value, and all that a release would say but its values; it is public.

    ``found`` and ``entry`` are the record and its place in the ledger as they would be.
    """
    if isinstance(found, EachRelease):
        for line in (*lines_of_each(found), *errors_of_subjects(found, data)):
            click.echo(printable(line))
    else:
        if data.groups is not None:
            print_group_errors(data, calibration)
        else:
            _print_errors(found)
        if shares := calibration.query.quantiles:
            named = ", ".join(f"{share:g}" for share in shares)
            click.echo(f"from these values: the quantiles {named}, each with the states between which it is (95%)")
        click.echo(noise_line(found))
    print_promise(found, data, entry, ledger, planned=True)
    click.echo(printable(f"assumed: {assumed_in_short(found)}"))


def print_promise(
    found: Release | EachRelease,
    data: Sequences | Rows,
    entry: Entry | None,
    ledger: Ledger | None,
    *,
    planned: bool = False,
) -> None:
    """Print what is charged, what the values went through, what was read, and what is promised."""
    if entry is not None and ledger is not None:
        part = part_of(entry, ledger)
        charged = f"charged on {part}, " if part else ""
        spent = f"{at_most(entry.spent)} of {number(ledger.budget, 6)}"
        said = f"it would be number {entry.number}, {charged}{spent} spent" if planned else None
        click.echo(printable(f"ledger: {said or f'number {entry.number}, {charged}spent {spent}'} in all"))
    for line in (*without_ledger(found), *postprocessing_lines(found), size_line(found, data), promise_line(found)):
        click.echo(printable(line))


def _print_errors(found: Release) -> None:
    errors, write = found.accuracies(0.05), found.writer()
    if found.query.kind in Transitions.kinds:
        states = len(found.theta.states)
        each = found.writer()(found.accuracy(0.05), 1)
        click.echo(f"{found.query.kind}: {states} x {states} values, each ± {each} with 95% probability")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column(found.query.kind)
    table.add_column("± 95%", justify="right")
    for label, error in zip(found.query.labels, errors, strict=True):
        table.add_row(Text(printable(label)), write(float(error), 1))
    print_table(table)
