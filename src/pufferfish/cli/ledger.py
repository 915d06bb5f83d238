"""``pufferfish ledger``: one budget for many releases of the same table."""

from dataclasses import dataclass

import click

from pufferfish._base.view import counted
from pufferfish._base.words import at_least, at_most, number
from pufferfish._base.writing import same_file
from pufferfish._draw.figure import PICTURE, save_figure
from pufferfish.cli._tables import Reading, check_targets, opened, read_under
from pufferfish.cli.options import (
    DEFAULT_MECHANISM,
    MODEL_HELP,
    PROTECT_HELP,
    SECRETS_HELP,
    WITHIN_HELP,
    accept_option,
    argument,
    bound_named,
    command,
    hidden_by,
    option,
    secret_settings,
)
from pufferfish.cli.print import print_promises, print_table, print_warnings, progress
from pufferfish.data import Rows, RowsBase, Sequences
from pufferfish.data.sequences import Base
from pufferfish.errors import ParameterError, printable
from pufferfish.fit.model_file import read_model
from pufferfish.ledger import LEDGER, Ledger, lock_of
from pufferfish.ledger.shown import ALL_TELL, part_of
from pufferfish.mechanisms import BOUNDS
from pufferfish.release.prepare import warnings_of_model, warnings_of_reading, warnings_of_stretch

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


@dataclass(frozen=True, kw_only=True)
class LedgerCreateOptions:
    """What a ledger is for."""

    ledger: str = argument("FILE")
    model: str = option(MODEL_HELP, "FILE", required=True)
    budget: float = option("The most that all releases may leak together, above 0.", required=True)
    table: tuple[str, ...] = option(
        "The table whose releases are charged; repeat for one of several files.", "FILE", required=True
    )
    reading: Reading
    mechanism: str | None = option(
        f"What proves how much the releases leak together [default: {DEFAULT_MECHANISM}].",
        type=click.Choice([m.name for m in BOUNDS]),
    )
    secrets: str | None = option(SECRETS_HELP, "A,B,…")
    protect: str | None = option(f"{PROTECT_HELP} The budget is then about that.", "1h")
    within: str | None = option(WITHIN_HELP, "R")
    accept: tuple[str, ...] = accept_option(
        model="a check of MODEL against public data said: do not go on",
        public="MODEL was fitted to this TABLE or a part of it, which everybody may see; nothing is promised then",
    )


@command("create", LedgerCreateOptions, ledger_command)
def ledger_create_command(options: LedgerCreateOptions) -> None:
    """Make a ledger for TABLE, read in one way: its records, states, filter and bins.

    \b
    Example, a table of states over time:
      pufferfish ledger create book.json --model model.json --budget 2 \\
        --table steps.csv --state activity --subject id --time minute --max-gap 1min
    Example, a table with one row per subject and one column per node of a network:
      pufferfish ledger create book.json --model asia.bif --budget 2 --table patients.csv
    """
    path, inputs = options.ledger, (*options.table, options.model)
    lock = lock_of(path)
    if any(same_file(lock, source) for source in inputs):
        raise ParameterError(f"{lock} is the file to be read, and would be the lock; name another")
    check_targets([("FILE", path, LEDGER)], inputs=inputs, overwrite=False)
    model, mechanism = read_model(options.model), bound_named(options.mechanism)
    settings = secret_settings(options.secrets, mechanism, model.theta)
    with opened(options.table, options.reading) as source:
        data = read_under(source, model, options.reading)
    settings |= hidden_by(mechanism, options.protect, options.within, data, model)
    already_printed = warnings_of_reading(data, model)
    print_warnings(
        text for text in warnings_of_model(data, model, accept=options.accept) if text not in already_printed
    )
    bound = mechanism.of(model.theta, data.length, **settings)
    print_warnings(warnings_of_stretch(data, bound.protection))
    ledger = Ledger(bound, options.budget, base=data)
    ledger.save(path)
    click.echo(printable(f"counts what is told of {ledger.hides}"))
    click.echo(f"ledger for {_size(data)}, budget {number(options.budget, 6)}")
    click.echo(printable(f"written: {path}"))
    click.echo(printable(f"{lock} keeps two programs from spending at the same time; it is empty, and stays"))


@dataclass(frozen=True, kw_only=True)
class LedgerShowOptions:
    """Which ledger is shown."""

    ledger: str = argument("FILE")
    plot: str | None = option("Draw what is spent against the budget (.png, .svg, .pdf).", "PICTURE")


@command("show", LedgerShowOptions, ledger_command)
def ledger_show_command(options: LedgerShowOptions) -> None:
    """Show the releases in a ledger, what they leak together, and what is left.

    \b
    Example:
      pufferfish ledger show book.json --plot book.png
    """
    inputs = (options.ledger, lock_of(options.ledger))
    check_targets([("--plot", options.plot, PICTURE)], inputs=inputs, overwrite=False)
    ledger = Ledger.open(options.ledger)
    click.echo(printable(f"counts what is told of {ledger.hides}"))
    rows = list[tuple[str, ...]]()
    for entry in ledger.entries:
        alone = "" if entry.epsilon is None else at_most(entry.epsilon)
        description = ", ".join(filter(None, (entry.what, part_of(entry, ledger))))
        rows.append((str(entry.number), entry.created[:19], description, alone, at_most(entry.spent)))
    if rows:
        print_table(("", "when (UTC)", "what", "alone", "together"), rows, names=3)
    base = ledger.base
    if base is not None:
        click.echo(printable(f"table {base.source}, {_columns(base)}; Θ: {ledger.bound.theta.origin}"))
    click.echo(
        f"spent {at_most(ledger.spent)} of {number(ledger.budget, 6)} by {ledger.bound.title}, "
        f"remaining {at_least(ledger.remaining)}"
    )
    with progress("what all releases tell together"):
        promises = ledger.promises()
    if promises:
        print_promises(promises, ALL_TELL)
    if options.plot is not None:
        save_figure(ledger.plot(), options.plot)
        click.echo(printable(f"written: {options.plot}"))


def _size(data: Sequences | Rows) -> str:
    if isinstance(data, Rows):
        return f"{counted(data.records, 'row')} with {counted(len(data.nodes), 'node')} each"
    return f"{counted(data.records, 'record')} in {counted(len(data.length), 'chain')}"


def _columns(base: Base | RowsBase) -> str:
    if isinstance(base, Base):
        return f"column {base.state}"
    names = list(base.columns.values())
    return f"columns {', '.join(names[:8])}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")
