"""Views of objects as text: titles, facts and tables, as notebooks show them."""

from collections.abc import Iterable

import click
from rich.table import Table
from rich.text import Text

from pufferfish.cli.printing import print_table
from pufferfish.errors import printable
from pufferfish.shown import Grid, View, in_short, numeric_columns, part_shown

__all__ = ["print_grids", "print_view"]


def print_view(view: View) -> None:
    """Print a title, facts, tables and notes; a table shows so many rows as in a notebook."""
    click.echo(printable(view.title))
    for name, value in (view.facts or {}).items():
        if value is not None:
            click.echo(printable(f"{name}: {in_short(value)}"))
    print_grids(view.grids)
    for note in view.notes:
        click.echo(printable(note))


def print_grids(grids: Iterable[Grid]) -> None:
    """Print tables, each under its caption."""
    for grid in map(part_shown, grids):
        if not grid.rows:
            continue
        click.echo(printable(f"{grid.caption}:"))
        table = Table(box=None, pad_edge=False)
        for name, right in zip(grid.columns, numeric_columns(grid), strict=True):
            table.add_column(Text(printable(name)), justify="right" if right else "left")
        for row in grid.rows:
            table.add_row(*(Text(in_short(cell)) for cell in row))
        print_table(table)
