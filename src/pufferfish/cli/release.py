"""``pufferfish release``: a statistic of a table, with noise."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from pufferfish.cli._tables import opened, read_under
from pufferfish.cli.interrupts import until_done
from pufferfish.cli.numbers import NUMBER
from pufferfish.cli.options import (
    ACCURACY_HELP,
    ALPHA_HELP,
    DEFAULT_MECHANISM,
    NOISE_HELP,
    table_options,
)
from pufferfish.cli.print import print_before, print_table, print_warnings, progress
from pufferfish.cli.queries import QUERY_HELP, order_of_states, parse_query
from pufferfish.cli.release_asked import Asked, Ground, epsilon_for, ground_of, once_for
from pufferfish.cli.release_each import release_each_subject
from pufferfish.cli.release_groups import BY_HELP, print_groups
from pufferfish.cli.release_plan import DRY, print_plan, print_promise
from pufferfish.cli.release_useful import check_useful
from pufferfish.cli.targets import REPLACED, REPLACES, release_files
from pufferfish.cli.telling import telling
from pufferfish.data import Rows, Sequences
from pufferfish.errors import printable
from pufferfish.ledger import Ledger
from pufferfish.mechanisms import MECHANISMS
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.mechanism import MOST_EPSILON
from pufferfish.queries import Query, Transitions
from pufferfish.release import Release, prepare, prepare_each
from pufferfish.release.derive import Prepared
from pufferfish.release.prepare import warnings_of_model, warnings_of_reading
from pufferfish.release.show.text import assumed_in_short, impossible_lines, noise_line, quantile_lines
from pufferfish.release.show.weak_values import weak_lines
from pufferfish.release.spreadsheets import warning_of_formulas

__all__ = ["release_command"]


@click.command("release")
@click.argument("tables", metavar="TABLE...", type=str, nargs=-1, required=True)
@table_options()
@click.option("--by", metavar="A,B,…", help=BY_HELP)
@click.option("--model", "model_path", required=True, metavar="FILE", help="Model file: the class Θ.")
@click.option("--query", "query_text", metavar="QUERY", help=QUERY_HELP)
@click.option("--epsilon", type=NUMBER, help="Privacy parameter ε of this release, above 0.")
@click.option("--accuracy", type=NUMBER, metavar="A", help=ACCURACY_HELP)
@click.option("--alpha", type=NUMBER, metavar="P", help=ALPHA_HELP)
@click.option(
    "--max-epsilon",
    type=NUMBER,
    metavar="E",
    help=f"The largest ε that --epsilon may be, or --accuracy may take; more is refused [default: {MOST_EPSILON:g}].",
)
@click.option("--noise", type=click.Choice(["equal", "best"]), default="equal", help=NOISE_HELP)
@click.option("--up-to", type=NUMBER, metavar="E", help="With --ledger, instead: what may be spent in all after it.")
@click.option(
    "--mechanism",
    "mechanism_name",
    type=click.Choice([m.name for m in MECHANISMS]),
    help=f"How the noise is calibrated [default: {DEFAULT_MECHANISM}]; with --up-to by the ledger's own.",
)
@click.option(
    "--once",
    is_flag=True,
    help="The least noise for this query alone, by whichever mechanism of all that compare shows. What it takes may be "
    "for one query: then no ledger can count the release, and its ε adds to that of no other one.",
)
@click.option("--secrets", metavar="A,B,…", help="Nodes of a network that are secret [default: all].")
@click.option("--valid", is_flag=True, help="Post-process to a possible value (a histogram that sums to its total).")
@click.option("--output", metavar="FILE", help="Where the release is written, as JSON; a dry run can do without.")
@click.option("--plot", "plot_path", metavar="FILE", help="Where a picture is drawn (.png, .svg, .pdf).")
@click.option("--csv", "csv_path", metavar="FILE", help="Where the values are written as a table too (.csv).")
@click.option(
    "--for-spreadsheets",
    is_flag=True,
    help="Write a single quote before each name in a CSV table that a spreadsheet takes for a formula (=, +, -, @).",
)
@click.option("--overwrite", is_flag=True, help="Replace the record of an earlier release.")
@click.option("--ledger", "ledger_path", metavar="FILE", help="Ledger that this release is charged to.")
@click.option(
    "--each-subject",
    is_flag=True,
    help="A value for each subject, under the subject's own name: --output is a table of them (.parquet or .csv), and "
    "its record goes into a .json file of the same name. If it is killed, the same command goes on.",
)
@click.option(
    "--i-know-this-is-public",
    "public_table",
    is_flag=True,
    help="Release also where MODEL was fitted to this very TABLE or a part of it: then nothing is promised of it.",
)
@click.option(
    "--anyway",
    is_flag=True,
    help="Release also where the noise hides all that the values could say: then ε is used up for nothing.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check all that a release checks, and print its noise, its errors and what the ledger would have spent; draw, "
    "spend and write nothing.",
)
def release_command(**options: Any) -> None:
    """Release a statistic of TABLE with noise that accounts for correlation.

    A table of states over time, or, with a network as model, of one row per subject and one column per node.

    \b
    Example:
      pufferfish release steps.csv --state activity --subject id --time minute --max-gap 1min \\
        --model model.json --query histogram --epsilon 1 --output release.json --plot release.png
      pufferfish release patients.csv --model asia.bif --columns lung,bronc --epsilon 1 --output release.json
      pufferfish release patients.csv --model asia.bif --query joint:smoke,lung --epsilon 1 --output release.json
      pufferfish release steps.csv --state activity --subject id --time minute --max-gap 1min --model model.json \\
        --epsilon 1 --each-subject --output values.parquet
      pufferfish release steps.csv --state activity --subject id --time minute --max-gap 1min --by hour,sex \\
        --model model.json --epsilon 1 --output release.json --csv release.csv --plot release.png
      pufferfish release steps.csv --state activity --subject id --time minute --max-gap 1min --model model.json \\
        --epsilon 1 --dry-run
      pufferfish release shifts.csv --state shift --model shifts.json --query count:night --epsilon 1 --once \\
        --output release.json
    """
    telling().interrupted = "interrupted: nothing was drawn or spent"
    asked = Asked.of(options)
    asked.check()
    ground = ground_of(asked)
    found = _calibrated(asked, ground)
    if asked.csv_path is not None and not asked.for_spreadsheets:
        print_warnings(filter(None, [warning_of_formulas(_names_in_table(found))]))
    if asked.dry_run:
        _plan(asked, ground, found)
    elif ground.places is not None:
        release_each_subject(
            found.data,
            found.query,
            found.calibration,
            ground.places,
            told=found.told,
            asked_for=found.asked_for,
            **found.making(asked, ground),
        )
    else:
        _release(asked, ground, found)


@dataclass(frozen=True)
class _Calibrated:
    """A table that was read, and the noise for it; nothing is drawn or spent yet."""

    data: Sequences | Rows
    query: Query
    calibration: Calibration
    warnings: list[str]
    """Those that the release keeps."""
    told: tuple[str, ...]
    """Those that were told when the table was read."""
    asked_for: str | None
    """What an accuracy takes, and ``--once`` took."""
    check_useful: Callable[[], None]

    def making(self, asked: Asked, ground: Ground) -> dict[str, Any]:
        """Return how the release is made."""
        postprocess = "valid" if asked.valid else None
        return {"postprocess": postprocess, "warnings": self.warnings, "ledger": ground.ledger}

    def print_before(self, ready: Prepared[Any], ground: Ground) -> None:
        """Print what is to be known before anything is spent."""
        print_before(ready.warnings, self.told, self.asked_for)
        if (order := order_of_states(self.query, ground.model)) is not None:
            click.echo(order)


def _names_in_table(found: _Calibrated) -> list[str]:
    """Return the names that a table of the release holds: of groupings, of groups, and of outputs."""
    groups = found.data.groups
    named = [] if groups is None else [*groups.by, *(name for cell in groups.cells for name in cell)]
    return [*named, *found.calibration.linear.labels]


def _calibrated(asked: Asked, ground: Ground) -> _Calibrated:
    """Read the table, and calibrate the noise for it."""
    model, reading = ground.model, dict(asked.reading)
    with opened(asked.tables, reading) as table:
        data = read_under(table, model, reading, ground.query, ground.ledger)
    warnings = warnings_of_model(data, model, public=asked.public_table)
    told = warnings_of_reading(data, model)
    # without --columns a network's query asks for the nodes that the table has
    query = parse_query(asked.query_text, model.theta, ground.nodes, data.nodes if isinstance(data, Rows) else None)
    with progress("calibrating noise"):
        calibration = ground.calibrate(asked, query, data)

    def check() -> None:
        if not (asked.anyway or ground.begun):  # what an earlier run has begun is finished
            check_useful(data, calibration, each_subject=asked.each_subject, larger=ground.larger(asked))

    if asked.up_to is not None or asked.each_subject:
        check()
    lines: list[str] = [] if asked.accuracy is None else [epsilon_for(asked, calibration)]
    asked_for = "\n".join([*lines, *([once_for(calibration)] if asked.once else [])]) or None
    return _Calibrated(data, query, calibration, warnings, told, asked_for, check)


def _plan(asked: Asked, ground: Ground, found: _Calibrated) -> None:
    """Check all that a release checks, and print all of it but its values."""
    making = found.making(asked, ground)
    with progress("checking"):
        ready: Prepared[Any] = (
            prepare(found.data, found.query, found.calibration, **making)
            if ground.places is None
            else prepare_each(found.data, found.query, found.calibration, ground.places, **making)
        )
        plan, entry = ready.plan()
    found.check_useful()
    found.print_before(ready, ground)
    print_plan(plan, entry, ground.ledger, found.data, found.calibration)
    record = asked.output if ground.places is None else ground.places.record
    replaced = record is not None and Path(record).exists()
    click.echo(DRY + (f"; {REPLACES}" if replaced else ""))


def _release(asked: Asked, ground: Ground, found: _Calibrated) -> None:
    """Draw the noise, spend, write, and print what was released."""
    data, ledger, output = found.data, ground.ledger, asked.output
    assert output is not None
    with release_files(asked.targets, overwrite=asked.overwrite, for_spreadsheets=asked.for_spreadsheets) as files:
        values = 1 if data.groups is None else len(data.groups.cells) * len(found.calibration.linear.labels)
        files.reserve(ground.model.theta, values)
        with progress("releasing"):
            ready = prepare(data, found.query, found.calibration, **found.making(asked, ground))
        with ExitStack() as stack:
            late = until_done("noise is being drawn" if ledger is None else "budget is being spent, and noise drawn")

            def begin() -> None:  # all else that can be refused was, and nothing is spent yet
                found.check_useful()
                found.print_before(ready, ground)
                stack.enter_context(late)
                telling().interrupted = None

            released = ready.finish(begin)
            replaced = Path(output).exists()  # by check_targets an earlier release, and nothing else
            files.write(released)
            _print_release(released, data, output, asked.csv_path, ledger)
            written = [path for _, path, _ in asked.targets if path is not None]
            click.echo(printable(f"written: {', '.join(written)}"))
            if replaced:
                click.echo(REPLACED)


def _of_pairs(found: Release) -> Table:
    """Return the table of transitions: a row for each state that steps come from, a column for each they go to."""
    states, write = found.theta.states, found.writer()
    table = Table(box=None, pad_edge=False)
    table.add_column(f"{found.query.kind}: from, to")
    for state in states:
        table.add_column(Text(printable(state)), justify="right")
    for x, state in enumerate(states):
        row = found.values[x * len(states) : (x + 1) * len(states)]
        table.add_row(Text(printable(state)), *(write(value, 1) for value in row))
    return table


def _of_outputs(found: Release) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(found.query.kind)
    for heading in ("value", "± 95%"):
        table.add_column(heading, justify="right")
    each, write = zip(found.query.labels, found.values, found.accuracies(0.05), strict=True), found.writer()
    for label, value, error in each:
        table.add_row(Text(printable(label)), write(value, 1), write(float(error), 1))
    return table


def _print_release(
    found: Release, data: Sequences | Rows, output: str, csv_path: str | None, ledger: Ledger | None
) -> None:
    if found.groups is None:
        _print_values(found)
    else:
        print_groups(found, found.groups, csv_path)
    entry = None if found.ledger is None or ledger is None else ledger.entries[found.ledger.entry - 1]
    print_promise(found, data, entry, ledger)
    click.echo(printable(f"assumed (in full in {output}): {assumed_in_short(found)}"))


def _print_values(found: Release) -> None:
    for line in quantile_lines(found):
        click.echo(line)
    pairs = found.query.kind in Transitions.kinds
    print_table(_of_pairs(found) if pairs else _of_outputs(found))
    if pairs:
        click.echo(f"each value ± {found.writer()(found.accuracy(0.05), 1)} with 95% probability")
    for line in (*weak_lines(found), noise_line(found), *impossible_lines(found)):
        click.echo(line)
