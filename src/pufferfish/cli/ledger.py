"""``pufferfish ledger``: one budget for many releases of the same table."""

from typing import Any

import click
from rich.table import Table
from rich.text import Text

from pufferfish._base.view import counted
from pufferfish._base.words import at_least, at_most, number
from pufferfish._base.writing import same_file
from pufferfish._draw.figure import PICTURE, save_figure
from pufferfish.cli._tables import opened, read_under
from pufferfish.cli.options import DEFAULT_MECHANISM, NUMBER, bound_named, secret_settings, table_options
from pufferfish.cli.print import print_table
from pufferfish.cli.targets import check_targets
from pufferfish.data import Rows, RowsBase, Sequences
from pufferfish.data.sequences import Base
from pufferfish.errors import ParameterError, printable
from pufferfish.fit.model_file import read_model
from pufferfish.ledger import LEDGER, Ledger, lock_of
from pufferfish.ledger.shown import part_of
from pufferfish.mechanisms import BOUNDS

__all__ = ["ledger_command"]


@click.group("ledger")
def ledger_command() -> None:
    """One budget for many releases of the same table.

    \b
    Example:
      pufferfish ledger create book.json --model model.json --budget 2 \\
        --table steps.csv --state activity --subject id --time minute --max-gap 1min
      pufferfish release steps.csv --state activity --subject id --time minute --max-gap 1min \\
        --model model.json --epsilon 0.5 --ledger book.json --output first.json
      pufferfish ledger show   book.json
    """


@ledger_command.command("create")
@click.argument("ledger_path", metavar="FILE")
@click.option("--model", "model_path", required=True, metavar="FILE", help="Model file: the class Θ.")
@click.option("--budget", required=True, type=NUMBER, help="The most that all releases may leak together, above 0.")
@click.option("--table", required=True, metavar="FILE", help="The table whose releases are charged.")
@table_options()
@click.option(
    "--mechanism",
    "mechanism_name",
    type=click.Choice([m.name for m in BOUNDS]),
    help=f"What proves how much the releases leak together [default: {DEFAULT_MECHANISM}].",
)
@click.option("--secrets", metavar="A,B,…", help="Nodes of a network that are secret [default: all].")
def ledger_create_command(
    ledger_path: str,
    model_path: str,
    budget: float,
    table: str,
    mechanism_name: str | None,
    secrets: str | None,
    **reading: Any,
) -> None:
    """Make a ledger for TABLE, read in one way: its records, states, filter and bins.

    \b
    Example, a table of states over time:
      pufferfish ledger create book.json --model model.json --budget 2 \\
        --table steps.csv --state activity --subject id --time minute --max-gap 1min
    Example, a table with one row per subject and one column per node of a network:
      pufferfish ledger create book.json --model asia.bif --budget 2 --table patients.csv
    """
    inputs = (table, model_path)
    if any(same_file(lock_of(ledger_path), source) for source in inputs):
        raise ParameterError(f"{lock_of(ledger_path)} is the file to be read, and would be the lock; name another")
    check_targets([("FILE", ledger_path, LEDGER)], inputs=inputs, overwrite=False)
    model = read_model(model_path)
    mechanism = bound_named(mechanism_name)
    settings = secret_settings(secrets, mechanism, model.theta)
    with opened([table], reading) as source:
        data = read_under(source, model, reading)
    ledger = Ledger(mechanism.of(model.theta, data.length, **settings), budget, base=data)
    ledger.save(ledger_path)
    click.echo(f"ledger for {_size(data)}, budget {number(budget, 6)}")
    click.echo(printable(f"written: {ledger_path}"))
    click.echo(
        printable(f"{lock_of(ledger_path)} keeps two programs from spending at the same time; it is empty, and stays")
    )


@ledger_command.command("show")
@click.argument("ledger_path", metavar="FILE")
@click.option(
    "--plot", "plot_path", metavar="PICTURE", help="Draw what is spent against the budget (.png, .svg, .pdf)."
)
def ledger_show_command(ledger_path: str, plot_path: str | None) -> None:
    """Show the releases in a ledger, what they leak together, and what is left.

    \b
    Example:
      pufferfish ledger show book.json --plot book.png
    """
    check_targets([("--plot", plot_path, PICTURE)], inputs=(ledger_path, lock_of(ledger_path)), overwrite=False)
    ledger = Ledger.open(ledger_path)
    table = Table(box=None, pad_edge=False)
    for heading in ("", "when (UTC)", "what"):
        table.add_column(heading)
    for heading in ("alone", "together"):
        table.add_column(heading, justify="right")
    for entry in ledger.entries:
        alone = "" if entry.epsilon is None else at_most(entry.epsilon)
        what = Text(printable(", ".join(filter(None, (entry.what, part_of(entry, ledger))))))
        table.add_row(str(entry.number), entry.created[:19], what, alone, at_most(entry.spent))
    if ledger.entries:
        print_table(table)
    base = ledger.base
    if base is not None:
        click.echo(printable(f"table {base.source}, {_columns(base)}; Θ: {ledger.bound.theta.origin}"))
    click.echo(
        f"spent {at_most(ledger.spent)} of {number(ledger.budget, 6)} by {ledger.bound.title}, "
        f"remaining {at_least(ledger.remaining)}"
    )
    if plot_path is not None:
        save_figure(ledger.plot(), plot_path)
        click.echo(printable(f"written: {plot_path}"))


def _size(data: Sequences | Rows) -> str:
    if isinstance(data, Rows):
        return f"{counted(data.records, 'row')} with {counted(len(data.nodes), 'node')} each"
    return f"{counted(data.records, 'record')} in {counted(len(data.length), 'chain')}"


def _columns(base: Base | RowsBase) -> str:
    if isinstance(base, Base):
        return f"column {base.state}"
    names = list(base.columns.values())
    return f"columns {', '.join(names[:8])}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")
