"""``pufferfish release``: a statistic of a table, with noise."""

import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import click
from rich.table import Table
from rich.text import Text

from pufferfish.calibration import Calibration
from pufferfish.cli.interrupts import until_done
from pufferfish.cli.numbers import NUMBER
from pufferfish.cli.options import (
    ACCURACY_HELP,
    ALPHA_HELP,
    DEFAULT_MECHANISM,
    MOST_EPSILON,
    NOISE_HELP,
    check_composes,
    mechanism_named,
    node_names,
    secret_settings,
    table_options,
)
from pufferfish.cli.printing import print_before, print_table, progress
from pufferfish.cli.queries import QUERY_HELP, order_of_states, parse_query
from pufferfish.cli.release_each import check_each_model, check_each_options, places_of, release_each_subject
from pufferfish.cli.release_groups import BY_HELP, check_group_accuracy, print_groups, split_groupings
from pufferfish.cli.release_plan import DRY, print_plan, print_promise
from pufferfish.cli.tables import check_options, fingerprint, opened, read_under
from pufferfish.cli.targets import REPLACED, REPLACES, TABLE, check_targets, release_files
from pufferfish.cli.telling import telling
from pufferfish.data import Rows, Sequences
from pufferfish.digits import at_most, number
from pufferfish.errors import ParameterError, printable
from pufferfish.few_records import nothing_seen
from pufferfish.ledger import Ledger, lock_of
from pufferfish.mechanisms import MECHANISMS
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.model_file import Model, read_model
from pufferfish.queries import Query, Transitions
from pufferfish.release import RELEASE, Release, prepare, prepare_each
from pufferfish.release.draft import Prepared
from pufferfish.release.each_values import records_of_subjects
from pufferfish.release.summary import assumed_in_short, impossible_lines, noise_line, quantile_lines
from pufferfish.release.under_model import warnings_of_model, warnings_of_reading
from pufferfish.report.plot import PICTURE
from pufferfish.shown import counted

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
@click.option("--secrets", metavar="A,B,…", help="Nodes of a network that are secret [default: all].")
@click.option("--valid", is_flag=True, help="Post-process to a possible value (a histogram that sums to its total).")
@click.option("--output", metavar="FILE", help="Where the release is written, as JSON; a dry run can do without.")
@click.option("--plot", "plot_path", metavar="FILE", help="Where a picture is drawn (.png, .svg, .pdf).")
@click.option("--csv", "csv_path", metavar="FILE", help="Where the values are written as a table too (.csv).")
@click.option("--overwrite", is_flag=True, help="Replace the record of an earlier release.")
@click.option("--ledger", "ledger_path", metavar="FILE", help="Ledger that this release is charged to.")
@click.option(
    "--each-subject",
    is_flag=True,
    help="A value for each subject: --output is a table of them (.parquet or .csv), and its record goes into a .json "
    "file of the same name. If it is killed, the same command goes on.",
)
@click.option(
    "--i-know-this-is-public",
    "public_table",
    is_flag=True,
    help="Release also where MODEL was fitted to this very TABLE: then nothing is promised of it.",
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
def release_command(
    tables: tuple[str, ...],
    model_path: str,
    query_text: str | None,
    epsilon: float | None,
    accuracy: float | None,
    alpha: float | None,
    max_epsilon: float | None,
    noise: Literal["equal", "best"],
    up_to: float | None,
    mechanism_name: str | None,
    secrets: str | None,
    valid: bool,
    output: str | None,
    plot_path: str | None,
    csv_path: str | None,
    by: str | None,
    overwrite: bool,
    ledger_path: str | None,
    each_subject: bool,
    public_table: bool,
    anyway: bool,
    dry_run: bool,
    **reading: Any,
) -> None:
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
    """
    telling().interrupted = "interrupted: nothing was drawn or spent"
    if output is None and (each_subject or not dry_run):
        raise click.UsageError("Missing option '--output'.")
    reading["by"] = None if by is None else split_groupings(by)
    _check_level({"epsilon": epsilon, "accuracy": accuracy, "up-to": up_to}, alpha, max_epsilon)
    mechanism = mechanism_named(mechanism_name)
    if up_to is not None:
        _check_up_to(ledger_path, {"--mechanism": mechanism_name, "--secrets": secrets})
    check_composes(
        mechanism, {"--ledger": ledger_path is not None, "--by": by is not None, "--each-subject": each_subject}
    )
    inputs = (*tables, model_path, *([ledger_path, lock_of(ledger_path)] if ledger_path else []))
    if each_subject:
        check_each_options(reading, plot_path, csv_path, up_to)
    model = read_model(model_path)
    check_options(model, reading)
    settings = secret_settings(secrets, mechanism, model.theta)
    named = node_names(reading["columns"], model.theta)
    asked = parse_query(query_text, model.theta, named)
    if each_subject:
        check_each_model(model.theta, asked, accuracy)
    if by is not None:
        check_group_accuracy(asked, accuracy)
    ledger = None if ledger_path is None else Ledger.open(ledger_path)
    if ledger is not None and ledger.bound.theta.kind != model.theta.kind:
        raise ParameterError(
            f"{ledger_path} is about {ledger.bound.theta.kind}, and {model_path} holds {model.theta.kind}: "
            "name the ledger of this table"
        )
    places, begun = None, False
    targets = [("--output", output, RELEASE), ("--csv", csv_path, TABLE), ("--plot", plot_path, PICTURE)]
    if each_subject:
        assert output is not None
        places = places_of(output, inputs=inputs, overwrite=overwrite)
        begun = places.pending_record.exists()
        if begun:
            telling().interrupted = (
                f"interrupted: this run drew and spent nothing; {places.given_record}.pending holds what an "
                "earlier one began: run the same command again"
            )
    else:
        check_targets(targets, inputs=inputs, overwrite=overwrite)
    with opened(tables, reading) as table:
        data = read_under(table, model, reading, asked, ledger)
        # another pass over a cluster's table: only for a model that says what it was fitted to
        known = model.fitted_on and fingerprint(table, reading, data if isinstance(data, Sequences) else None)
    warnings = warnings_of_model(data, model, public=public_table, fingerprint=known)
    told = warnings_of_reading(data, model)  # when the table was read
    query = parse_query(query_text, model.theta, named, data.nodes if isinstance(data, Rows) else None)
    if up_to is not None and ledger is not None:
        _check_order(query, model, ledger)
    with progress("calibrating noise"):
        if up_to is None or ledger is None:
            bound = mechanism.of(model.theta, data.length, **settings)
            calibration = bound.calibrate(query, epsilon, accuracy=accuracy, alpha=alpha, noise=noise)
        else:
            calibration = ledger.calibrate(query, up_to=up_to, data=data, noise=noise)
    asked_for = None if accuracy is None else _asked_for(accuracy, alpha, calibration, max_epsilon)
    larger = _larger(up_to, ledger)

    def check_seen() -> None:
        if not (anyway or begun):  # what an earlier run has begun is finished
            _check_seen(data, calibration, each_subject=each_subject, larger=larger)

    if up_to is not None or each_subject:
        check_seen()
    making: Any = {"postprocess": "valid" if valid else None, "warnings": warnings, "ledger": ledger}
    if dry_run:
        with progress("checking"):
            ready: Prepared[Any] = (
                prepare(data, query, calibration, **making)
                if places is None
                else prepare_each(data, query, calibration, places, **making)
            )
            plan, entry = ready.plan()
        check_seen()
        print_before(ready.warnings, told, asked_for)
        if (order := order_of_states(query, model)) is not None:
            click.echo(order)
        print_plan(plan, entry, ledger, data, calibration)
        record = output if places is None else places.record
        replaced = record is not None and Path(record).exists()
        click.echo(DRY + (f"; {REPLACES}" if replaced else ""))
        return
    if places is not None:
        release_each_subject(data, query, calibration, places, told=told, asked_for=asked_for, **making)
        return
    assert output is not None
    with release_files(targets, overwrite=overwrite) as files:
        files.reserve(
            model.theta, 1 if data.groups is None else len(data.groups.cells) * len(calibration.linear.labels)
        )
        with progress("releasing"):
            ready = prepare(data, query, calibration, **making)
        with ExitStack() as stack:
            late = until_done("noise is being drawn" if ledger is None else "budget is being spent, and noise drawn")

            def begin() -> None:  # all else that can be refused was, and nothing is spent yet
                check_seen()
                print_before(ready.warnings, told, asked_for)
                if (order := order_of_states(query, model)) is not None:
                    click.echo(order)
                stack.enter_context(late)
                telling().interrupted = None

            found = ready.finish(begin)
            replaced = Path(output).exists()  # by check_targets an earlier release, and nothing else
            files.write(found)
            _print_release(found, data, output, csv_path, ledger)
            written = [path for _, path, _ in targets if path is not None]
            click.echo(printable(f"written: {', '.join(written)}"))
            if replaced:
                click.echo(REPLACED)


def _check_level(levels: dict[str, float | None], alpha: float | None, max_epsilon: float | None) -> None:
    """Refuse none or two of the options that say how much may leak, and what goes with another of them only."""
    asked = [name for name, given in levels.items() if given is not None]
    if len(asked) != 1:
        both = f"--{' and --'.join(asked)} are given: " if asked else ""
        raise ParameterError(
            f"{both}give one of --epsilon, --accuracy (the error that is allowed), and with --ledger --up-to (what may "
            "be spent in all after this)"
        )
    if alpha is not None and levels["accuracy"] is None:
        raise ParameterError("--alpha says how often --accuracy may be missed: give --accuracy, or leave it out")
    if max_epsilon is not None:
        if levels["up-to"] is not None:
            raise ParameterError(
                "--max-epsilon bounds --epsilon and --accuracy, and --up-to is a bound itself: leave one out"
            )
        as_epsilon(max_epsilon)
    if (epsilon := levels["epsilon"]) is not None:
        as_epsilon(epsilon)
        _check_epsilon("--epsilon", epsilon, max_epsilon)


def _check_up_to(ledger: str | None, others: dict[str, str | None]) -> None:
    """Refuse ``--up-to`` without a ledger, and what the ledger settles by itself."""
    if ledger is None:
        raise ParameterError(
            "--up-to needs --ledger: it says how much of a ledger may be spent; else give --epsilon or --accuracy"
        )
    for option, given in others.items():
        if given is not None:
            raise ParameterError(
                f"{option} does not go with --up-to, which uses the mechanism and the secrets of the ledger: leave out "
                f"{option}, or give --epsilon instead of --up-to"
            )


def _check_order(query: Query, model: Model, ledger: Ledger) -> None:
    """Refuse an order of states that is not the ledger's, under whose Θ ``--up-to`` calibrates."""
    theirs, ours = ledger.bound.theta.states, model.theta.states
    if query.is_cumulative and theirs != ours and sorted(theirs) == sorted(ours):
        raise ParameterError(
            f"--up-to uses the ledger's model, which has the states in the order {', '.join(theirs)}, and --model in "
            f"the order {', '.join(ours)}: name a model of the ledger's order, or give --epsilon"
        )


def _check_epsilon(option: str, epsilon: float, most: float | None) -> None:
    """Refuse an ε that nobody would have asked for: a slip cannot be taken back."""
    allowed = MOST_EPSILON if most is None else most
    if epsilon > allowed:
        odds = f"{math.exp(epsilon):,.0f}" if epsilon < 30 else f"e^{at_most(epsilon)}"
        raise ParameterError(
            f"{option} takes ε = {at_most(epsilon)}, and at most {number(allowed)} is allowed: the odds of two values "
            f"of a record could change by a factor of {odds}. Ask for less, or give --max-epsilon "
            f"{math.ceil(epsilon)} if you mean it"
        )


def _asked_for(accuracy: float, alpha: float | None, calibration: Calibration, most: float | None) -> str:
    """Say which ε an accuracy takes; refuse one that nobody would have asked for."""
    _check_epsilon(f"--accuracy {accuracy:g}", calibration.epsilon, most)
    sure = f"{100 * (1 - (0.05 if alpha is None else alpha)):g}%"
    asked = f"each value within {accuracy:g} of the exact one with {sure} probability"
    return f"asked: {asked}, which takes ε = {at_most(calibration.epsilon)}"


def _larger(up_to: float | None, ledger: Ledger | None) -> str:
    """Return what to give for less noise; nothing where the whole budget is asked for."""
    if up_to is None or ledger is None:
        return "give a larger ε"
    return "give a larger --up-to" if up_to < ledger.budget else ""


def _check_seen(data: Sequences | Rows, calibration: Calibration, *, each_subject: bool, larger: str) -> None:
    """Refuse to spend anything on noise that hides everything; the noise and the numbers of records are public.

    ``larger`` is the remedy of less noise, if there is one.
    """
    if each_subject and isinstance(data, Sequences):
        records = records_of_subjects(data).tolist()
        told = f"each of {counted(len(records), 'subject')}"
    elif data.groups is not None:
        records, told = list(data.groups.records), "each of the groups" if len(data.groups.records) > 1 else "the group"
    else:
        records, told = [data.records], counted(data.records, "row" if isinstance(data, Rows) else "record")
    if not nothing_seen(calibration, records):
        return
    remedy = f"take more records, ask for less, or {larger}" if larger else "the budget is as good as used up"
    raise ParameterError(
        f"the noise of ε = {at_most(calibration.epsilon)} would hide all that {told} can say: its error is as large as "
        f"the range of what can be true. Nothing is spent: {remedy}; if you mean it, give --anyway"
    )


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
    for line in (noise_line(found), *impossible_lines(found)):
        click.echo(line)
