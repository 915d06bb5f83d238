"""``pufferfish release``: a statistic of a table, with noise.

What ``pufferfish release`` is asked for, and what is refused of it before its table is opened.

Checks stand in the order in which more is known: what the options alone show; what the model shows; the ledger; the
files that are to be written. So a slip costs neither the reading of a table nor a calibration.
"""

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import click
from rich.table import Table
from rich.text import Text

from pufferfish._base.view import counted
from pufferfish._base.words import at_most, change_of_odds, number
from pufferfish._base.writing import same_file
from pufferfish._draw.figure import PICTURE
from pufferfish.cli._tables import check_options, opened, read_under
from pufferfish.cli.options import (
    ACCURACY_HELP,
    ALPHA_HELP,
    DEFAULT_MECHANISM,
    NOISE_HELP,
    NUMBER,
    QUERY_HELP,
    check_composes,
    mechanism_named,
    node_names,
    order_of_states,
    parse_query,
    secret_settings,
    table_options,
)
from pufferfish.cli.print import print_before, print_table, print_warnings, progress, until_done
from pufferfish.cli.targets import REPLACED, REPLACES, TABLE, Target, check_targets, release_files
from pufferfish.cli.telling import tell, telling
from pufferfish.compare.contest import Contest
from pufferfish.data import Rows, Sequences
from pufferfish.errors import NotApplicableError, ParameterError, PufferfishError, printable, shortened
from pufferfish.fit.model_file import Model, read_model
from pufferfish.ledger import Entry, Ledger, lock_of
from pufferfish.ledger.shown import part_of
from pufferfish.mechanisms import MECHANISMS, Mechanism
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.mechanism import MOST_EPSILON, as_epsilon
from pufferfish.mechanisms.words import nothing_seen
from pufferfish.queries import Query, Transitions
from pufferfish.release import RELEASE, EachRelease, Release, prepare, prepare_each
from pufferfish.release.cells import errors_of_groups, records_of_subjects
from pufferfish.release.derive import Prepared
from pufferfish.release.facts import GroupsRecord
from pufferfish.release.prepare import warnings_of_model, warnings_of_reading
from pufferfish.release.show.text import (
    assumed_in_short,
    heads_of_groups,
    impossible_lines,
    lines_of_each,
    noise_line,
    postprocessing_lines,
    promise_line,
    quantile_lines,
    rows_of_groups,
    size_line,
    summary,
    without_ledger,
)
from pufferfish.release.show.weak_values import weak_lines
from pufferfish.release.spreadsheets import warning_of_formulas
from pufferfish.release.store import Places
from pufferfish.theta.model_class import Theta

__all__ = [
    "BY_HELP",
    "DRY",
    "Asked",
    "Ground",
    "check_each_model",
    "check_each_options",
    "check_group_accuracy",
    "check_useful",
    "epsilon_for",
    "errors_of_subjects",
    "ground_of",
    "once_for",
    "places_of",
    "print_group_errors",
    "print_groups",
    "print_plan",
    "print_promise",
    "release_command",
    "release_each_subject",
    "split_groupings",
]

# -- ``pufferfish release --each-subject`` ---------------------------------------------------------------------------


def check_each_options(reading: dict[str, Any], plot: str | None, csv: str | None, up_to: float | None) -> None:
    """Refuse options that do not go with ``--each-subject``."""
    if reading["subject"] is None:
        raise ParameterError("--each-subject needs --subject: the column that says whose records they are")
    if reading["by"] is not None:
        raise ParameterError(
            "--by does not go with --each-subject: release the groups of all subjects together, or --by the column of "
            "subjects without --each-subject"
        )
    if csv is not None:
        raise ParameterError("--csv is for one release, and --each-subject writes a table as --output: leave it out")
    if plot is not None:
        raise ParameterError("--plot draws one value, and --each-subject releases one for each subject: leave it out")
    if up_to is not None:
        raise ParameterError(
            "--up-to does not go with --each-subject: after a crash the same command goes on, and what is spent would "
            "have changed by then; give --epsilon"
        )


def check_each_model(theta: Theta, query: Query, accuracy: float | None) -> None:
    """Refuse a network, and an accuracy that differs from subject to subject."""
    if not theta.of_chains:
        raise ParameterError(
            f"--each-subject is for Markov chains, and the model is a class of {theta.kind}: there each row is a "
            "subject of its own"
        )
    if accuracy is not None and query.known is not None and query.known.relative:
        raise ParameterError(
            f"--accuracy of a {query.kind} differs from subject to subject, as their numbers of records do: ask for "
            "counts or sums, or give --epsilon"
        )


def places_of(output: str, *, inputs: Sequence[str], overwrite: bool, for_spreadsheets: bool) -> Places:
    """Return where the table and its record go; refuse what is to be read."""
    places = Places(output, overwrite=overwrite, for_spreadsheets=for_spreadsheets)
    for path in (places.table, places.record, places.pending_table, places.pending_record, places.lock):
        if any(same_file(path, source) for source in inputs):
            raise ParameterError(f"--output {path.name} is the file to be read: it would be lost; name another")
    return places


def release_each_subject(
    data: Sequences | Rows,
    query: Query,
    calibration: Calibration,
    places: Places,
    *,
    told: Sequence[str],
    asked_for: str | None,
    postprocess: Literal["valid"] | None,
    warnings: Sequence[str],
    ledger: Ledger | None,
) -> None:
    """Release, write, and say what was promised; warnings, and the ε that was found, come before anything is spent."""
    replaced = places.record.exists()  # by Places an earlier release

    def begin() -> None:
        print_before(ready.warnings, told, asked_for)
        telling().interrupted = None

    with progress("releasing"):
        ready = prepare_each(
            data, query, calibration, places, postprocess=postprocess, warnings=warnings, ledger=ledger
        )
        try:
            found = ready.finish(begin)
        except BaseException as error:
            if not (places.begun and places.pending_record.exists()):
                raise
            why = telling().words(error) if isinstance(error, PufferfishError) else "interrupted"
            tell(
                f"error: {printable(why)}; {printable(places.given_record)}.pending says what was begun: run the same "
                "command again, which goes on, and spends no budget twice"
            )
            if isinstance(error, PufferfishError | KeyboardInterrupt):
                sys.exit(1)
            raise
    click.echo(summary(found))
    for line in (*errors_of_subjects(found, data), size_line(found, data)):
        click.echo(printable(line))
    people = counted(data.subjects, "subject") if isinstance(data, Sequences) else "subjects"
    click.echo(
        printable(
            f"{places.given} is about persons under their own names: it says of {people} that they are in the data "
            "and how many records each has, without noise"
        )
    )
    click.echo(printable(f"written: {places.given}, {places.given_record}"))
    click.echo(
        printable(f"{places.lock.name} keeps two programs from making it at the same time; it is empty, and stays")
    )
    if replaced:
        click.echo(REPLACED)


def errors_of_subjects(found: EachRelease, data: Sequences | Rows) -> list[str]:
    """Say the errors of a value that is divided by each subject's own number of records."""
    if not (found.query.divided_by_records and isinstance(data, Sequences)):
        return []
    records = records_of_subjects(data).tolist()
    few, most = (f"± {found.accuracy_95.each / n:.3g} for {counted(n, 'record')}" for n in (min(records), max(records)))
    own = few if few == most else f"from {most} to {few}"
    return [f"each value with 95% probability: {own} (error_95 in the table says it of each subject)"]


# -- ``--by``: a value for each public group of records --------------------------------------------------------------

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


# -- What ``pufferfish release`` is asked for ------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """The options of one release; ``reading`` are those that say how a table is read."""

    tables: tuple[str, ...]
    reading: dict[str, Any]
    model_path: str
    query_text: str | None
    epsilon: float | None
    accuracy: float | None
    alpha: float | None
    max_epsilon: float | None
    noise: Literal["equal", "best"]
    up_to: float | None
    mechanism_name: str | None
    once: bool
    secrets: str | None
    valid: bool
    output: str | None
    plot_path: str | None
    csv_path: str | None
    for_spreadsheets: bool
    overwrite: bool
    ledger_path: str | None
    each_subject: bool
    public_table: bool
    anyway: bool
    dry_run: bool

    @classmethod
    def of(cls, options: dict[str, Any]) -> "Asked":
        """Return what the command line says."""
        reading = dict(options)
        own = {field.name: reading.pop(field.name) for field in fields(cls) if field.name != "reading"}
        if reading["by"] is not None:
            reading["by"] = split_groupings(reading["by"])
        return cls(reading=reading, **own)

    @property
    def mechanism(self) -> type[Mechanism]:
        """What calibrates the noise, unless a ledger does."""
        return mechanism_named(self.mechanism_name)

    @property
    def targets(self) -> list[Target]:
        """The files of a release, and the options that name them."""
        return [
            ("--output", self.output, RELEASE),
            ("--csv", self.csv_path, TABLE),
            ("--plot", self.plot_path, PICTURE),
        ]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The files that are read, which must not be written over."""
        book = () if self.ledger_path is None else (self.ledger_path, str(lock_of(self.ledger_path)))
        return (*self.tables, self.model_path, *book)

    def check(self) -> None:
        """Refuse options that do not go with each other."""
        if self.output is None and (self.each_subject or not self.dry_run):
            raise click.UsageError("Missing option '--output'.")
        self._check_level()
        if self.once:
            self._check_once()
        if self.up_to is not None:
            self._check_up_to()
        with_option = {"--ledger": self.ledger_path, "--by": self.reading["by"], "--each-subject": self.each_subject}
        check_composes(self.mechanism, {option: bool(given) for option, given in with_option.items()})
        if self.for_spreadsheets and self.csv_path is None and not self.each_subject:
            raise ParameterError(
                "--for-spreadsheets is about a table of --csv, or of --each-subject: give one, or leave it out"
            )
        if self.each_subject:
            check_each_options(self.reading, self.plot_path, self.csv_path, self.up_to)

    def _check_level(self) -> None:
        """Refuse none or two of the options that say how much may leak, and what goes with another of them only."""
        levels = {"epsilon": self.epsilon, "accuracy": self.accuracy, "up-to": self.up_to}
        asked = [name for name, given in levels.items() if given is not None]
        if len(asked) != 1:
            both = f"--{' and --'.join(asked)} are given: " if asked else ""
            raise ParameterError(
                f"{both}give one of --epsilon, --accuracy (the error that is allowed), and with --ledger --up-to (what "
                "may be spent in all after this)"
            )
        if self.alpha is not None and self.accuracy is None:
            raise ParameterError("--alpha says how often --accuracy may be missed: give --accuracy, or leave it out")
        if self.max_epsilon is not None:
            if self.up_to is not None:
                raise ParameterError(
                    "--max-epsilon bounds --epsilon and --accuracy, and --up-to is a bound itself: leave one out"
                )
            as_epsilon(self.max_epsilon)
        if self.epsilon is not None:
            as_epsilon(self.epsilon)
            _check_epsilon("--epsilon", self.epsilon, self.max_epsilon)

    def _check_once(self) -> None:
        """Refuse ``--once`` with what needs noise that adds up, and with a mechanism that is named."""
        if self.mechanism_name is not None:
            raise ParameterError(
                "--once takes the mechanism with the least noise, and --mechanism names one: leave out one of them"
            )
        adds, one = "needs noise that adds to other noise", "asks more than one query of all records"
        for option, given, why in (
            ("--ledger", self.ledger_path, adds),
            ("--up-to", self.up_to, adds),
            ("--by", self.reading["by"], one),
            ("--each-subject", self.each_subject, one),
            ("--noise best", self.noise == "best", "is a shape of noise that adds, which --once does not search"),
        ):
            if given:
                raise ParameterError(f"--once does not go with {option}, which {why}: leave out one of them")

    def _check_up_to(self) -> None:
        """Refuse ``--up-to`` without a ledger, and what the ledger settles by itself."""
        if self.ledger_path is None:
            raise ParameterError(
                "--up-to needs --ledger: it says how much of a ledger may be spent; else give --epsilon or --accuracy"
            )
        for option, given in {"--mechanism": self.mechanism_name, "--secrets": self.secrets}.items():
            if given is not None:
                raise ParameterError(
                    f"{option} does not go with --up-to, which uses the mechanism and the secrets of the ledger: leave "
                    f"out {option}, or give --epsilon instead of --up-to"
                )


@dataclass(frozen=True)
class Ground:
    """What a release stands on besides its table: the model, the ledger, and the places of what is written."""

    model: Model
    settings: dict[str, Any]
    """Of the mechanism."""
    nodes: list[Any] | None
    """Those of a network that are read; all that the table has, if None."""
    query: Query
    ledger: Ledger | None
    places: Places | None
    """Where values for each subject go."""
    begun: bool
    """Whether an earlier run was interrupted, which this one finishes."""

    def calibrate(self, asked: Asked, query: Query, data: Sequences | Rows) -> Calibration:
        """Calibrate the noise, by the mechanism or by the ledger."""
        if asked.up_to is not None and self.ledger is not None:
            _check_order(query, self.model, self.ledger)
            return self.ledger.calibrate(query, up_to=asked.up_to, data=data, noise=asked.noise)
        if asked.once:
            return self._least(asked, query, data)
        bound = asked.mechanism.of(self.model.theta, data.length, **self.settings)
        return bound.calibrate(query, asked.epsilon, accuracy=asked.accuracy, alpha=asked.alpha, noise=asked.noise)

    def _least(self, asked: Asked, query: Query, data: Sequences | Rows) -> Calibration:
        """Return the least noise for this query alone, of all mechanisms."""
        contest = Contest(self.model.theta, query, data.length, secrets=self.settings.get("secrets"), noise=asked.noise)
        if asked.accuracy is None:
            assert asked.epsilon is not None
            found = contest.at(asked.epsilon, bounded=False)
        else:
            found = contest.at_accuracy(asked.accuracy, asked.alpha)
        if found.least is None:
            reason = next(row.reason for row in found if row.mechanism == DEFAULT_MECHANISM)
            raise NotApplicableError(f"no mechanism applies to this query; {reason}")
        return contest.calibration(found.least)

    def larger(self, asked: Asked) -> str:
        """Return what to give for less noise; nothing where the whole budget is asked for."""
        if asked.up_to is None or self.ledger is None:
            return "give a larger ε"
        return "give a larger --up-to" if asked.up_to < self.ledger.budget else ""


def ground_of(asked: Asked) -> Ground:
    """Read the model, open the ledger and find the places of the files; refuse what does not go together."""
    model = read_model(asked.model_path)
    check_options(model, asked.reading)
    settings = secret_settings(asked.secrets, asked.mechanism, model.theta)
    nodes = node_names(asked.reading["columns"], model.theta)
    query = parse_query(asked.query_text, model.theta, nodes)
    if asked.each_subject:
        check_each_model(model.theta, query, asked.accuracy)
    if asked.reading["by"] is not None:
        check_group_accuracy(query, asked.accuracy)
    ledger = None if asked.ledger_path is None else Ledger.open(asked.ledger_path)
    if ledger is not None and ledger.bound.theta.kind != model.theta.kind:
        raise ParameterError(
            f"{asked.ledger_path} is about {ledger.bound.theta.kind}, and {asked.model_path} holds {model.theta.kind}: "
            "name the ledger of this table"
        )
    if not asked.each_subject:
        check_targets(asked.targets, inputs=asked.inputs, overwrite=asked.overwrite)
        return Ground(model, settings, nodes, query, ledger, None, begun=False)
    assert asked.output is not None
    places = places_of(
        asked.output, inputs=asked.inputs, overwrite=asked.overwrite, for_spreadsheets=asked.for_spreadsheets
    )
    begun = places.pending_record.exists()
    if begun:
        telling().interrupted = (
            f"interrupted: this run drew and spent nothing; {places.given_record}.pending holds what an earlier one "
            "began: run the same command again"
        )
    return Ground(model, settings, nodes, query, ledger, places, begun)


def epsilon_for(asked: Asked, calibration: Calibration) -> str:
    """Say which ε an accuracy takes; refuse one that nobody would have asked for."""
    assert asked.accuracy is not None
    _check_epsilon(f"--accuracy {asked.accuracy:g}", calibration.epsilon, asked.max_epsilon)
    sure = f"{100 * (1 - (0.05 if asked.alpha is None else asked.alpha)):g}%"
    wanted = f"each value within {asked.accuracy:g} of the exact one with {sure} probability"
    return f"asked: {wanted}, which takes ε = {at_most(calibration.epsilon)}"


def once_for(calibration: Calibration) -> str:
    """Say what ``--once`` took, and what that excludes."""
    least = f"once: {calibration.title} has the least noise for this query alone"
    if calibration.composes:
        return f"{least}, and a ledger could count it: --ledger does, if there may be other releases"
    return f"{least}: no ledger can count this release, and its epsilon adds to that of no other release of the records"


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
        raise ParameterError(
            f"{option} takes ε = {at_most(epsilon)}, and at most {number(allowed)} is allowed: the odds of two values "
            f"of a record could change by a factor of {change_of_odds(epsilon)}. Ask for less, or give --max-epsilon "
            f"{math.ceil(epsilon)} if you mean it"
        )


# -- What ``pufferfish release`` prints beside its values ------------------------------------------------------------

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


# -- Noise that hides all that the values could say ------------------------------------------------------------------


def check_useful(data: Sequences | Rows, calibration: Calibration, *, each_subject: bool, larger: str) -> None:
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
