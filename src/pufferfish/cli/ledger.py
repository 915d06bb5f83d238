"""``pufferfish ledger``: one budget for many releases of the same table."""

from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from pufferfish._base.durations import parse_duration
from pufferfish._base.view import counted
from pufferfish._base.words import at_least, at_most, names_of, number
from pufferfish._base.writing import same_file
from pufferfish._core.numbers.laplace import laplace_sum
from pufferfish._draw.figure import PICTURE, save_figure
from pufferfish.cli._tables import Reading, check_targets, opened, read_under
from pufferfish.cli.messages import say
from pufferfish.cli.options import (
    DEFAULT_MECHANISM,
    MODEL_FAILED,
    MODEL_FITTED_HERE,
    MODEL_HELP,
    PROTECT_HELP,
    QUERY_HELP,
    SECRETS_HELP,
    WITHIN_HELP,
    accept_option,
    argument,
    command,
    hidden_by,
    mechanism_named,
    option,
    secret_settings,
)
from pufferfish.cli.print import print_promises, print_table, print_warnings, progress
from pufferfish.cli.project import here
from pufferfish.data import Rows, RowsBase, Sequences
from pufferfish.data.read import check_reading
from pufferfish.data.sequences import Base
from pufferfish.data.steps import check_step
from pufferfish.errors import BudgetExceeded, ParameterError
from pufferfish.fit.model_file import read_model
from pufferfish.ledger import LEDGER, Ledger, files_of, shown_where
from pufferfish.ledger.shown import ALL_TELL, part_of
from pufferfish.mechanisms import BOUNDS
from pufferfish.queries import Histogram, Marginals
from pufferfish.queries.words import query_of
from pufferfish.release.prepare import warnings_of_model, warnings_of_reading, warnings_of_stretch
from pufferfish.theta.model_class import Theta
from pufferfish.theta.record import ThetaRecord


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

    ledger: str = argument("FILE|ADDRESS")
    model: str = option(MODEL_HELP, "FILE", required=True)
    budget: float = option("The most that all releases may leak together, above 0.", required=True)
    table: tuple[str, ...] = option(
        "The table whose releases are charged; repeat for a table of several files. A growing table may come later.",
        "FILE",
    )
    grows: bool = option(
        "The table grows: each release reads the new rows, from files of any name, and is charged at their times; "
        "subjects may join and leave. Needs --time and --max-gap, and times a whole number of steps apart."
    )
    reading: Reading
    mechanism: str | None = option(
        f"Mechanism that proves how much the releases leak together [default: {DEFAULT_MECHANISM}].",
        type=click.Choice([m.name for m in BOUNDS]),
    )
    secrets: str | None = option(SECRETS_HELP, "A,B,…")
    protect: str | None = option(f"{PROTECT_HELP} The budget is then about that.", "1h")
    within: str | None = option(WITHIN_HELP, "R")
    accept: tuple[str, ...] = accept_option(model=MODEL_FAILED, public=MODEL_FITTED_HERE)


@command("create", LedgerCreateOptions, ledger_command)
def ledger_create_command(options: LedgerCreateOptions) -> None:
    """Make a ledger for TABLE, read in one way: its records, states, filter and bins.

    It is a file, or rows of a database: sqlite:///book.db, or postgresql://user@host/database#name. Every command takes
    such an address in place of the file.

    \b
    Example, a table of states over time:
      pufferfish ledger create book.json --model model.json --budget 2 \\
        --table steps.csv --state activity --subject id --time minute --max-gap 1min
    Example, a table with one row per subject and one column per node of a network:
      pufferfish ledger create book.json --model asia.bif --budget 2 --table patients.csv
    """
    if not options.table and not options.grows:
        raise ParameterError("give --table, whose releases are charged, or --grows for a table that does not exist yet")
    if options.grows and options.reading.where is not None:
        raise ParameterError(
            "--where is for single releases of a growing table: leave it out, because the ledger counts all rows"
        )
    inputs = (*options.table, options.model)
    needed = files_of(options.ledger)
    for file in needed:
        if any(same_file(file, source) for source in inputs):
            raise ParameterError(f"{file} is the input file and would become the ledger: name another file")
    path = options.ledger if options.ledger in needed else None  # a database is looked at when it is opened
    check_targets([("FILE", path, LEDGER)], inputs=inputs, overwrite=False)
    model, mechanism = read_model(options.model), mechanism_named(options.mechanism, BOUNDS)
    settings = secret_settings(options.secrets, mechanism, model.theta)
    data = None
    if options.table:
        with opened(options.table, options.reading) as source:
            data = read_under(source, model, options.reading)
    settings |= hidden_by(mechanism, options.protect, options.within, data, model)
    already_printed = () if data is None else warnings_of_reading(data, model)
    print_warnings(
        text for text in warnings_of_model(data, model, accept=options.accept) if text not in already_printed
    )
    length: Any = 2 if data is None else data.length
    base: Any = data
    if data is None:  # of a table that is still to come
        arguments: dict[str, Any] = {"step": model.step, "bins": model.bins, **options.reading.of_chains()}
        check_reading(**arguments)
        base = Base(source="a table that grows", **arguments)
        check_step(base, model)
    bound = mechanism.of(model, length, **settings)
    print_warnings(() if data is None else warnings_of_stretch(data, bound.protection))
    ledger = Ledger(bound, options.budget, base=base, grows=options.grows)
    ledger.save(options.ledger)
    say(f"counts what is told of {ledger.hides}")
    if not options.grows:  # losses add, and leakage does not
        query, tried = Marginals() if bound.networks else Histogram(), Ledger(bound, 1e6)
        for _ in range(2):
            tried.spend(bound.calibrate(query, 1.0))
        say(f"two releases of ε = 1 each, of {query.kind}, cost {at_most(tried.spent)} together")
    size = "a table that grows, for ever" if options.grows or data is None else _size(data)
    say(f"ledger for {size}, budget {number(options.budget, 6)}", f"written: {shown_where(options.ledger)}")
    if path is not None:
        say(f"{needed[-1]} is an empty lock file; leave it in place")


@dataclass(frozen=True, kw_only=True)
class LedgerPlanOptions:
    """What is planned."""

    ledger: str = argument("FILE")
    query: str = option(QUERY_HELP, "QUERY", required=True)
    also: tuple[str, ...] = option("Another query to plan; may be repeated.", "QUERY")
    every: tuple[str, ...] = option(
        "How often each query is released, such as 1w, in the order of the queries: only a note.", "LEN"
    )
    levels: int = option(
        "Number of levels at which QUERY is released, such as weeks and quarters (--every 1w --every 13w): each row "
        "is read once at each level, so a quarter's total has the noise of one release instead of thirteen.",
        default=1,
        show_default=True,
        type=click.IntRange(1, 9),
    )
    up_to: float | None = option(
        "The most to spend in all, instead of the whole budget, to leave room for corrections.", "E"
    )
    dry_run: bool = option("Print the noise, and reserve nothing.")


@command("plan", LedgerPlanOptions, ledger_command)
def ledger_plan_command(options: LedgerPlanOptions) -> None:
    """Plan releases of a table that grows, for ever: the noise with which all of them stay within the budget.

    A planned release reads every row once. While releases stay within the plan (pufferfish release --planned), they
    cost nothing more than the plan, however many there are; new subjects and late rows do not either.

    \b
    Example:
      pufferfish ledger plan book.json --query histogram --every 1w --also transitions --every 4w
    """
    ledger, levels = Ledger.open(options.ledger), options.levels
    texts = [*[options.query] * levels, *options.also]
    if levels > 1 and not options.every:
        raise ParameterError(f"--levels {levels} needs --every for each level, such as --every 1w --every 13w")
    if options.every and len(options.every) != len(texts):
        what = "queries, each level for itself" if levels > 1 else "queries"
        raise ParameterError(f"--every is given {len(options.every)} times for {len(texts)} {what}: give one for each")
    parts = [_parts_of(every, options.every[0]) for every in options.every[:levels]]
    bins = ledger.base.bins if isinstance(ledger.base, Base) else None
    queries = [query_of(text, ledger.bound.theta, bins=bins) for text in texts]
    times = [f", every {every}" for every in options.every] or [""] * len(texts)
    notes = [f"plan: {text}{every}" for text, every in zip(texts, times, strict=True)]
    with progress("looking for noise"):
        once = ledger.plan(queries[levels - 1 :], up_to=options.up_to, dry_run=True)[0]  # without levels
        before, plans = ledger.spent, ledger.plan(queries, up_to=options.up_to, notes=notes, dry_run=options.dry_run)
    rows = [(plan.what.removeprefix("plan: "), f"{plan.unit_scale:.6g}", f"{plan.error_95:.4g}") for plan in plans]
    print_table(("for ever", "noise scale, in counts", "± 95%"), rows, names=1)
    for plan, every, part in zip(plans[1:], options.every[1:], parts[1:], strict=False):
        as_sum, alone = (laplace_sum((each.unit_scale,) * part).accuracy(0.05) for each in (plans[0], once))
        say(
            f"a total of {every}: ± {plan.error_95} by its own release, ± {as_sum} as the sum of {part} releases; "
            f"without levels ± {alone}, and ± {once.error_95} of one release"
        )
    spent = plans[-1].spent
    say(
        f"in all at most ε = {at_most(spent)} about {ledger.hides}, after any number of releases",
        f"spent so far: {at_most(before)}",
        "a step from the last row of one release to the first row of the next is counted in neither",
    )
    if options.dry_run:
        say("a dry run: nothing was reserved; the same command without --dry-run does")
        return
    if levels > 1:
        say("release the first level with --planned, each other one with --planned --again")
    reserved = f"{at_most(spent)} of {number(ledger.budget, 6)}"
    say(f"reserved in {shown_where(options.ledger)}: {reserved}; release with --planned")


def _parts_of(long: str, short: str) -> int:
    """Return how many releases of one level make one of another."""
    lengths = [parse_duration(text, "--every").value for text in (long, short)]
    if lengths[0] % lengths[1]:
        raise ParameterError(f"--every {long} is not a whole number of {short}, so its total is not a sum of theirs")
    return int(lengths[0] // lengths[1])


@dataclass(frozen=True, kw_only=True)
class LedgerChangeOptions:
    """Which Θ a ledger has from now on."""

    ledger: str = argument("FILE")
    model: str = option(MODEL_HELP, "FILE", required=True)
    dry_run: bool = option("Print what would be spent, and change nothing.")
    accept: tuple[str, ...] = accept_option(
        model=MODEL_FAILED,
        budget="under MODEL more than the budget is already spent, so nothing more can be released",
    )


@command("change", LedgerChangeOptions, ledger_command)
def ledger_change_command(options: LedgerChangeOptions) -> None:
    """Charge all releases of a ledger anew under another MODEL, and those that follow, where the old one did not hold.

    What is spent never falls by it. First see what would be spent: --dry-run.

    \b
    Example:
      pufferfish ledger change book.json --model model-2024.json --dry-run
    """
    model, ledger = read_model(options.model), Ledger.open(options.ledger)
    print_warnings(warnings_of_model(None, model, accept=options.accept))
    before, budget = ledger.spent, number(ledger.budget, 6)
    with progress("charging all releases again"):
        entry = ledger.change(model, dry_run=True)
    charged = counted(sum(known.theta is None for known in ledger.entries), "entry", "entries")
    never = "; it never falls" if entry.spent == before else ""
    say(
        f"old Θ: {ledger.bound.theta.origin}",
        f"new Θ: {model.theta.origin}{_differing(ledger.bound.theta, model.theta)}",
        f"{charged} charged again: spent {at_most(before)} before, {at_most(entry.spent)} now, of {budget}{never}",
    )
    if entry.spent > ledger.budget:
        if "budget" not in options.accept:
            raise BudgetExceeded(
                f"under {options.model} {at_most(entry.spent)} are already spent, above the budget of {budget}, so "
                "nothing more could be released. To change the model anyway, give --accept budget"
            )
        say("more than the budget is spent: nothing more can be released")
    if options.dry_run:
        say("a dry run: nothing was changed; the same command without --dry-run does")
        return
    say(f"written: {shown_where(options.ledger)}, entry {ledger.change(model).number}")
    project = here()
    named = None if project is None else project.keys.get("model")
    if project is not None and named is not None and project.path_of(named) != options.model:
        say(f"pufferfish.toml still names the model {named}: write {options.model} there")


def _differing(old: Theta, new: Theta) -> str:
    """Say where two classes differ whose origins read alike; else the origins say it."""
    records = ThetaRecord.of(old), ThetaRecord.of(new)
    if records[0].origin != records[1].origin:
        return ""
    differs = [name for name in records[0].__struct_fields__ if getattr(records[0], name) != getattr(records[1], name)]
    if not differs:
        return " (the same in every number)"
    apart = ""
    if len(old.chains) == len(new.chains) and old.states == new.states:
        pairs = zip(old.chains, new.chains, strict=True)
        most = max((float(np.abs(a.transition_matrix - b.transition_matrix).max()) for a, b in pairs), default=0.0)
        apart = f": transition probabilities by up to {number(most, 3)}" if most else ""
    return f" (the origin reads alike, and it is another class: it differs in {', '.join(differs)}{apart})"


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
    check_targets([("--plot", options.plot, PICTURE)], inputs=files_of(options.ledger), overwrite=False)
    ledger = Ledger.open(options.ledger)
    say(f"counts what is told of {ledger.hides}")
    rows = [
        (
            f"{entry.number}",
            entry.created[:19],
            ", ".join(filter(None, (entry.what, part_of(entry, ledger)))),
            "" if entry.epsilon is None else at_most(entry.epsilon),
            at_most(entry.spent),
        )
        for entry in ledger.entries
    ]
    if rows:
        print_table(("", "when (UTC)", "what", "alone", "together"), rows, names=3)
    base = ledger.base
    if base is not None:
        say(f"table {base.source}, {_columns(base)}; Θ: {ledger.bound.theta.origin}")
    say(
        f"spent {at_most(ledger.spent)} of {number(ledger.budget, 6)} by {ledger.bound.title}, "
        f"remaining {at_least(ledger.remaining)}"
    )
    with progress("what all releases tell together"):
        promises = ledger.promises()
    if promises:
        print_promises(promises, ALL_TELL)
    if options.plot is not None:
        save_figure(ledger.plot(), options.plot)
        say(f"written: {options.plot}")


def _size(data: Sequences | Rows) -> str:
    if isinstance(data, Rows):
        return f"{counted(data.records, 'row')} with {counted(len(data.nodes), 'node')} each"
    return f"{counted(data.records, 'record')} in {counted(len(data.length), 'chain')}"


def _columns(base: Base | RowsBase) -> str:
    if isinstance(base, Base):
        return f"column {base.state}"
    return f"columns {names_of(base.columns.values(), 8)}"
