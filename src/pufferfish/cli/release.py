"""``pufferfish release``: a statistic of a table, with noise.

From top to bottom this file follows the work: options; inputs; noise; what is asked of the table and checked without
drawing anything (a dry run ends there); noise is drawn and files are written; what is printed.

Checks stand in the order in which more is known: what the options alone show; what the model shows; the ledger; the
files that are to be written. So a slip costs neither the reading of a table nor a calibration.
"""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import click

from pufferfish._base.view import counted
from pufferfish._base.words import WEAK, at_most, change_of_odds, number
from pufferfish._base.writing import Output, same_file
from pufferfish._draw.figure import PICTURE, picture_of
from pufferfish.cli._tables import TABLE, GroupedReading, Target, check_options, check_targets, opened, read_under
from pufferfish.cli.messages import messages, print_error, say
from pufferfish.cli.options import (
    ACCURACY_HELP,
    ALPHA_HELP,
    DEFAULT_MECHANISM,
    MODEL_FAILED,
    MODEL_FITTED_HERE,
    MODEL_HELP,
    NOISE_HELP,
    PROTECT_HELP,
    QUERY_HELP,
    SECRETS_HELP,
    WITHIN_HELP,
    accept_option,
    argument,
    check_composes,
    command,
    hidden_by,
    mechanism_named,
    node_names,
    option,
    refuse_given,
    secret_settings,
)
from pufferfish.cli.print import print_promises, print_table, print_warnings, progress, until_done
from pufferfish.cli.project import from_project, here
from pufferfish.compare.contest import Contest
from pufferfish.data import Rows, Sequences
from pufferfish.errors import NotApplicableError, ParameterError, PufferfishError, RecordError, printable, shortened
from pufferfish.fit.model_file import Model, read_model
from pufferfish.ledger import Entry, Ledger, files_of, shown_where
from pufferfish.ledger.shown import part_of
from pufferfish.mechanisms import MECHANISMS, Mechanism
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.engine import MOST_EPSILON
from pufferfish.mechanisms.mechanism import as_epsilon, check_share
from pufferfish.mechanisms.words import noise_hides_everything, wide_quantiles
from pufferfish.queries import Query, Transitions
from pufferfish.queries.words import notes_of_query, query_of
from pufferfish.release import (
    PROOF,
    RELEASE,
    Certificate,
    EachRelease,
    Release,
    ReleasePlan,
    certify,
    prepare,
    prepare_each,
)
from pufferfish.release.draw import errors_of_groups, records_of_subjects
from pufferfish.release.prepare import ACCEPTED, Prepared, warnings_of_model, warnings_of_reading
from pufferfish.release.record import calibration_again, csv_of, quantile_rows, warning_of_formulas
from pufferfish.release.release import read_recorded
from pufferfish.release.show import text
from pufferfish.release.show.values import weak_line, weak_lines
from pufferfish.release.store import OutputFiles
from pufferfish.release.sums import frame_with_totals
from pufferfish.theta.record import ThetaRecord

# -- Options ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """What a release is asked for."""

    tables: tuple[str, ...] = argument("TABLE...", required=True)
    reading: GroupedReading
    model: str = option(MODEL_HELP, "FILE", required=True)
    query: str | None = option(QUERY_HELP, "QUERY")
    epsilon: float | None = option("Privacy parameter ε of this release, above 0.")
    accuracy: float | None = option(ACCURACY_HELP, "A")
    alpha: float | None = option(ALPHA_HELP, "P")
    max_epsilon: float | None = option(
        "The largest ε allowed for --epsilon, or needed for --accuracy; a larger one is refused [default: "
        f"{MOST_EPSILON:g}].",
        "E",
    )
    noise: Literal["equal", "best"] | None = option(NOISE_HELP)
    up_to: float | None = option(
        "With --ledger, in place of ε: the most that may be spent in all after this release.", "E"
    )
    planned: bool = option(
        "With the --ledger of a growing table, in place of ε: use the noise that was planned for QUERY."
    )
    again: bool = option(
        "For a growing table: read also rows that an earlier release of QUERY read; they are charged twice."
    )
    no_late: bool = option("For a growing table: refuse rows that are earlier than those that were read last.")
    mechanism: str | None = option(
        f"How the noise is calibrated [default: {DEFAULT_MECHANISM}]; with --up-to by the ledger's own.",
        type=click.Choice([m.name for m in MECHANISMS]),
    )
    once: bool = option(
        "Use the mechanism with the least noise for this query alone, of all that compare shows. If it covers only "
        "one query, no ledger can count the release, and its ε cannot be added to others."
    )
    secrets: str | None = option(SECRETS_HELP, "A,B,…")
    protect: str | None = option(PROTECT_HELP, "1h")
    within: str | None = option(WITHIN_HELP, "R")
    valid: bool = option("Post-process to a possible value (a histogram that sums to its total).")
    output: str | None = option("Where the release is written, as JSON; not needed for a dry run.", "FILE")
    plot: str | None = option("Where a picture is drawn (.png, .svg, .pdf).", "FILE")
    csv: str | None = option("Where the values are written as a table too (.csv).", "FILE")
    for_spreadsheets: bool = option(
        "In CSV tables, write a single quote before each name that a spreadsheet would run as a formula (=, +, -, @)."
    )
    overwrite: bool = option("Replace the record of an earlier release.")
    ledger: str | None = option("Ledger that this release is charged to.", "FILE")
    no_ledger: bool = option("Charge no ledger, though pufferfish.toml names one.")
    certificate: str | None = option(
        "Where to write a proof of the promise that anybody can check without this program (pufferfish checker); the "
        "noise is then the provable one, mostly no larger.",
        "FILE",
    )
    each_subject: bool = option(
        "Release a value for each subject, under the subject's own name: --output is their table (.parquet or .csv), "
        "and the record is written to a .json file of the same name. If interrupted, run the same command again to "
        "continue."
    )
    accept: tuple[str, ...] = accept_option(
        noise="the noise hides the whole result, so the budget is spent for nothing",
        model=MODEL_FAILED,
        public=MODEL_FITTED_HERE,
    )
    dry_run: bool = option(
        "Check everything that a release checks, and print its noise, its errors and what the ledger would spend; "
        "nothing is drawn, spent or written."
    )
    json: bool = option(
        "With --dry-run: print one JSON object with the fields of a record except values; everything else is printed "
        "to standard error."
    )

    @property
    def kind(self) -> type[Mechanism]:
        """The mechanism that calibrates the noise, unless a ledger does."""
        return mechanism_named(self.mechanism)

    def shape(self, mechanism: Mechanism, query: Query) -> Literal["equal", "best"]:
        """Return the shape of noise that is asked for, or by default the best where one is searched."""
        return self.noise or ("best" if mechanism.shapes(query) and not self.each_subject else "equal")

    @property
    def targets(self) -> list[Target]:
        """The files of a release, and the options that name them."""
        files = [("--output", self.output, RELEASE), ("--csv", self.csv, TABLE), ("--plot", self.plot, PICTURE)]
        return [*files, ("--certificate", self.certificate, PROOF)]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The files that are read, which must not be written over."""
        ledger_files = () if self.ledger is None else files_of(self.ledger)
        return (*self.tables, self.model, *ledger_files)

    def check(self) -> None:
        """Refuse options that do not go with each other."""
        if self.json and not self.dry_run:
            raise ParameterError("--json only works with --dry-run: --output writes a release as JSON")
        if self.output is None and (self.each_subject or not self.dry_run):
            raise click.UsageError("Missing option '--output'.")
        self._check_level()
        if self.once:
            self._check_once()
        if self.up_to is not None or self.planned:
            self._check_up_to()
        with_option = {"--ledger": self.ledger, "--by": self.reading.by, "--each-subject": self.each_subject}
        check_composes(self.kind, {name: bool(value) for name, value in with_option.items()})
        if self.for_spreadsheets and self.csv is None and not self.each_subject:
            raise ParameterError(
                "--for-spreadsheets only works with --csv or --each-subject: give one of them, or leave it out"
            )
        if self.certificate is not None:
            one = "--certificate is for one release of all records: leave out {}"
            refuse_given(self, ("by", "each_subject"), one)
            larger = "--certificate takes a little more noise, so it needs --epsilon: give it in place of {}"
            refuse_given(self, ("accuracy", "up_to", "planned"), larger)
        if self.each_subject:
            self._check_each_subject()

    def _check_level(self) -> None:
        """Refuse none or two of the options that say how much may leak, and what goes with another of them only."""
        levels = {"epsilon": self.epsilon, "accuracy": self.accuracy, "up-to": self.up_to}
        names = [name for name, value in levels.items() if value is not None] + ["planned"] * self.planned
        if len(names) != 1:
            both = f"--{' and --'.join(names)} are given: " if names else ""
            raise ParameterError(
                f"{both}give one of --epsilon and --accuracy (the allowed error), or with --ledger one of --up-to "
                "(the most spent in all after this) and --planned"
            )
        if self.alpha is not None and self.accuracy is None:
            raise ParameterError("--alpha only works with --accuracy")
        if self.max_epsilon is not None:
            if self.up_to is not None:
                raise ParameterError(
                    "--max-epsilon limits --epsilon and --accuracy, but --up-to is a limit itself: leave out one of "
                    "them"
                )
            as_epsilon(self.max_epsilon)
        if self.epsilon is not None:
            self.check_epsilon("--epsilon", as_epsilon(self.epsilon))

    def check_epsilon(self, name: str, epsilon: float) -> None:
        """Refuse an ε that nobody would have asked for: a slip cannot be taken back."""
        allowed = MOST_EPSILON if self.max_epsilon is None else self.max_epsilon
        if epsilon > allowed:
            raise ParameterError(
                f"{name} means ε = {at_most(epsilon)}, above the limit of {number(allowed)}: the odds of two values "
                f"of a record could change by a factor of {change_of_odds(epsilon)}. Use a smaller ε or a larger "
                f"error, or give --max-epsilon {math.ceil(epsilon)} if you are sure"
            )

    def _check_once(self) -> None:
        """Refuse ``--once`` with what needs noise that adds up, and with a mechanism that is named."""
        two = "--once chooses the mechanism with the least noise, but {} names one: leave out one of them"
        refuse_given(self, ("mechanism",), two)
        no, one = "--once does not work with {}, which ", ": leave out one of them"
        refuse_given(self, ("ledger", "up_to"), f"{no}needs noise that adds to other noise{one}")
        refuse_given(self, ("by", "each_subject"), f"{no}asks more than one query of all records{one}")
        if self.noise == "best":
            what = "which is a shape of noise that adds, which --once does not search"
            raise ParameterError(f"--once does not work with --noise best, {what}{one}")

    def _check_up_to(self) -> None:
        """Refuse ``--up-to`` or ``--planned`` without a ledger, and what the ledger settles by itself."""
        by_ledger = "--planned" if self.planned else "--up-to"
        if self.ledger is None:
            says = "which noise is planned" if self.planned else "how much of a ledger may be spent"
            raise ParameterError(f"{by_ledger} needs --ledger: it says {says}; else give --epsilon or --accuracy")
        settled = (
            f"{{0}} does not work with {by_ledger}, which uses the mechanism and the secrets of the ledger: leave out "
            f"{{0}}, or give --epsilon instead of {by_ledger}"
        )
        refuse_given(self, ("mechanism", "secrets", "protect", "within"), settled)
        if self.planned and self.noise == "best":
            raise ParameterError(settled.format("--noise best"))

    def _check_each_subject(self) -> None:
        """Refuse options that do not go with ``--each-subject``."""
        if self.reading.subject is None:
            raise ParameterError("--each-subject needs --subject, the column of subjects")
        for name, says in {
            "by": "does not work with --each-subject: release the groups of all subjects together, or --by the column "
            "of subjects without --each-subject",
            "csv": "is for one release, but --each-subject writes its table as --output: leave it out",
            "plot": "draws one release, but --each-subject releases one value for each subject: leave it out",
            "planned": "does not work with --each-subject: give --epsilon",
        }.items():
            refuse_given(self, (name,), f"{{}} {says}")


# -- The work --------------------------------------------------------------------------------------------------------


@command("release", ReleaseOptions)
def release_command(options: ReleaseOptions) -> None:
    """Release a statistic of TABLE with noise that accounts for correlation.

    A table of states over time, or, with a network as model, of one row per subject and one column per node.

    \b
    Example:
      pufferfish release steps.csv --state activity --subject id --time minute --max-gap 1min \\
        --model model.json --query histogram --epsilon 1 --output release.json --plot release.png
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
    messages().interrupted = "interrupted: nothing was drawn or spent"
    options = _as_in_project(options)
    options.check()
    inputs = load_inputs(options)
    noise = calibrate(options, inputs)
    if options.csv is not None and not options.for_spreadsheets:
        groups = noise.data.groups
        named = [] if groups is None else [*groups.by, *(name for cell in groups.cells for name in cell)]
        print_warnings(filter(None, [warning_of_formulas([*named, *noise.calibration.linear.labels])]))
    if options.dry_run:
        _plan(options, inputs, noise)
    elif inputs.files is not None:
        _release_each_subject(options, inputs, noise, inputs.files)
    else:
        _release(options, inputs, noise)


def _as_in_project(options: ReleaseOptions) -> ReleaseOptions:
    """Return the options with what a project says where they say nothing: which file is written, what is hidden."""
    project = here()
    if options.no_ledger:
        if options.ledger is not None and not from_project("ledger"):
            raise ParameterError("--ledger and --no-ledger are both given: give one")
        hidden: dict[str, Any] = {} if project is None else dict(project.hidden)
        hidden |= {name: given for name in hidden if (given := getattr(options, name)) is not None}
        options = replace(options, ledger=None, **hidden)
    if options.output is None and project is not None and not options.each_subject and not options.dry_run:
        options = replace(options, output=project.free_output(options.query or "release"))
    return options


# -- Inputs: the model, the ledger, and the files that are to be written ---------------------------------------------


@dataclass(frozen=True)
class Inputs:
    """What a release needs besides its table."""

    model: Model
    settings: dict[str, Any]
    """Of the mechanism."""
    nodes: list[Any] | None
    """Those of a network that are read; all that the table has, if None."""
    query: Query
    ledger: Ledger | None
    files: OutputFiles | None
    """Where values for each subject go."""

    @property
    def begun(self) -> bool:
        """Whether an earlier run was interrupted, which this one finishes."""
        return self.files is not None and self.files.pending_record.exists()


def load_inputs(options: ReleaseOptions) -> Inputs:
    """Read the model, open the ledger and find the places of the files; refuse what does not go together."""
    model = read_model(options.model)
    ledger = None if options.ledger is None else Ledger.open(options.ledger)
    check_options(model, options.reading, ledger)
    settings = secret_settings(options.secrets, options.kind, model.theta)
    nodes = node_names(options.reading.columns, model.theta)
    query = query_of(options.query, model.theta, nodes, bins=model.bins)
    hidden_by(options.kind, options.protect, options.within, None, model)
    if options.each_subject and not model.theta.of_chains:
        raise ParameterError(
            f"--each-subject is for Markov chains, but the model is a class of {model.theta.kind}, where each row is "
            "a subject: leave it out"
        )
    if options.ledger is not None and ledger is not None and ledger.bound.theta.kind != model.theta.kind:
        raise ParameterError(
            f"{shown_where(options.ledger)} is for {ledger.bound.theta.kind}, but {options.model} holds "
            f"{model.theta.kind}: name the ledger of this table"
        )
    if ledger is None or not ledger.grows:
        made = "{} is for growing tables: give a --ledger made by pufferfish ledger create --grows"
        refuse_given(options, ("planned", "again", "no_late"), made)
    if not options.each_subject:
        _check_noise_of(ledger, options, model)
        check_targets(options.targets, inputs=options.inputs, overwrite=options.overwrite)
        return Inputs(model, settings, nodes, query, ledger, None)
    assert options.output is not None
    files = OutputFiles(options.output, overwrite=options.overwrite, for_spreadsheets=options.for_spreadsheets)
    for path in (files.table, files.record, files.pending_table, files.pending_record, files.lock):
        if any(same_file(path, source) for source in options.inputs):
            raise ParameterError(f"--output {path.name} is the input file, which would be lost: name another file")
    inputs = Inputs(model, settings, nodes, query, ledger, files)
    if inputs.begun:
        messages().interrupted = (
            f"interrupted: this run drew and spent nothing; {files.given_record}.pending holds what an earlier run "
            "began: run the same command again"
        )
    else:
        _check_noise_of(ledger, options, model)
    return inputs


def _check_noise_of(ledger: Ledger | None, options: ReleaseOptions, model: Model) -> None:
    """Refuse a model that is not the ledger's, where the noise is the ledger's."""
    by_ledger = "planned" if options.planned else "up-to" if options.up_to is not None else None
    if ledger is not None and by_ledger and ThetaRecord.of(model.theta) != ThetaRecord.of(ledger.bound.theta):
        raise ParameterError(
            f"--{by_ledger} uses the ledger's Θ ({ledger.bound.theta.origin}), but {options.model} holds another one: "
            "name the ledger's model, give --epsilon, or first charge all releases under the new one (pufferfish "
            "ledger change)"
        )


def fewest_records(query: Query, data: Sequences | Rows, *, each_subject: bool = False) -> int | None:
    """Return the records of the smallest group, or subject, where errors of values are the largest in it; else None."""
    if query.known is None or not query.known.relative:
        return None
    if each_subject and isinstance(data, Sequences):
        return int(min(records_of_subjects(data)))
    return None if data.groups is None else min(data.groups.records)


def accuracy_of_all(accuracy: float, query: Query, data: Sequences | Rows, *, each_subject: bool = False) -> float:
    """Return the accuracy of all records together with which the smallest group, or subject, has the one asked for."""
    fewest = fewest_records(query, data, each_subject=each_subject)
    check_share(query, accuracy)
    # so many records of the group are as many of all: what rounding takes off must not be one record less
    return accuracy if fewest is None else accuracy * fewest / data.records * (1 + 2**-51)


# -- The table is read, and its noise calibrated; nothing is drawn or spent ------------------------------------------


@dataclass(frozen=True)
class Noise:
    """A table that was read, and the noise for it."""

    data: Sequences | Rows
    query: Query
    calibration: Calibration
    warnings: list[str]
    """Those that the release keeps."""
    lines: list[str]
    """What an accuracy takes, ``--once`` took, and a certificate costs."""
    certificate: Certificate | None = None


def calibrate(options: ReleaseOptions, inputs: Inputs) -> Noise:
    """Read the table, and calibrate the noise for it."""
    model = inputs.model
    with opened(options.tables, options.reading) as table:
        data = read_under(table, model, options.reading, inputs.query, inputs.ledger, again=options.again)
    if isinstance(data, Sequences) and inputs.ledger is not None and inputs.ledger.grows:
        _print_what_is_new(options, inputs.query, data, inputs.ledger)
    warnings = warnings_of_model(data, model, accept=options.accept)
    # without --columns a network's query asks for the nodes that the table has
    present = data.nodes if isinstance(data, Rows) else None
    query = query_of(options.query, model.theta, inputs.nodes, present, model.bins)
    with progress("calibrating noise"):
        calibration = _calibration(options, inputs, query, data)
    if options.up_to is not None or options.each_subject:
        _check_useful(options, inputs, data, calibration)
    lines: list[str] = []
    if options.accuracy is not None:
        fewest = fewest_records(query, data, each_subject=options.each_subject)
        lines += [_accuracy_note(options, options.accuracy, calibration, fewest)]
    lines += [_once_note(calibration)] if options.once else []
    certificate = None
    if options.certificate is not None:
        with progress("finding a proof"):
            certificate = certify(calibration)
        assert certificate.calibration is not None
        price = "this very noise"
        if certificate.price != 0:
            price = f"{at_most(100 * certificate.price, 3)}% more noise than the mechanism's"
            groups = ": no bounds were found near that, so this noise hides all records together (group privacy)"
            price += groups if certificate.group_privacy else ""
        lines += [f"certificate: proved in whole numbers, with {price}"]
        calibration = certificate.calibration
    return Noise(data, query, calibration, warnings, lines, certificate)


def _print_what_is_new(options: ReleaseOptions, query: Query, data: Sequences, ledger: Ledger) -> None:
    """Say which rows of a table that grows are released, before anything is spent."""
    if data.read_before:
        left = counted(data.read_before, "row")
        said = f"{left} were read by an earlier release of this query and are left out (--again reads them too)"
        say(said, err=options.json)
    late = ledger.late_steps(data, query)
    if late and options.no_late:
        raise ParameterError(
            f"{late:,} late rows are earlier than those that were read last, and --no-late refuses them"
        )
    if late:
        twice = ", those that were read before a second time" if options.again else ""
        said = f"late rows, before those that were read last: {late:,}, charged at their own time{twice}"
        say(said, err=options.json)


def _calibration(options: ReleaseOptions, inputs: Inputs, query: Query, data: Sequences | Rows) -> Calibration:
    """Calibrate the noise: by the ledger, by the mechanism, or by the one of all with the least noise."""
    theta, ledger, accuracy = inputs.model.theta, inputs.ledger, options.accuracy
    if accuracy is not None:
        accuracy = accuracy_of_all(accuracy, query, data, each_subject=options.each_subject)
    if options.planned and ledger is not None and isinstance(data, Sequences):
        return ledger.as_planned(query, data)
    if options.up_to is not None and ledger is not None:
        if inputs.begun and inputs.files is not None:  # what is spent has changed: it goes on with the noise it had
            return calibration_again(read_recorded(EachRelease, inputs.files.pending_record), theta)
        return ledger.calibrate(query, up_to=options.up_to, data=data, noise=options.shape(ledger.bound, query))
    hidden = hidden_by(options.kind, options.protect, options.within, data, inputs.model)
    if not hidden and ledger is not None and options.kind.hides_several and theta.states == ledger.bound.theta.states:
        # what is charged to a budget about stretches is about the same stretches, where nothing else is asked for
        hidden = ledger.hides_by
    if not options.once:
        mechanism = options.kind.of(theta, data.length, **inputs.settings, **hidden)
        shape = options.shape(mechanism, query)
        return mechanism.calibrate(query, options.epsilon, accuracy=accuracy, alpha=options.alpha, noise=shape)
    contest = Contest(theta, query, data.length, secrets=inputs.settings.get("secrets"), **hidden)
    if options.epsilon is not None:
        comparison = contest.at(options.epsilon, bounded=False)
    else:
        assert accuracy is not None
        comparison = contest.at_accuracy(accuracy, options.alpha)
    if comparison.least is None:
        reason = next(row.reason for row in comparison if row.mechanism == DEFAULT_MECHANISM)
        raise NotApplicableError(f"no mechanism applies to this query; {reason}")
    return contest.calibration(comparison.least)


def _accuracy_note(options: ReleaseOptions, accuracy: float, calibration: Calibration, fewest: int | None) -> str:
    """Say which ε an accuracy takes; refuse one that nobody would have asked for."""
    options.check_epsilon(f"--accuracy {accuracy:g}", calibration.epsilon)
    sure = f"{100 * (1 - (0.05 if options.alpha is None else options.alpha)):g}%"
    told = f"error of at most {accuracy:g} with {sure} probability"
    if fewest is not None:
        cell = "subject" if options.each_subject else "group"
        told += f" for the {cell} of {fewest:,} records, and less for all others,"
    return f"{told} needs ε = {at_most(calibration.epsilon)}"


def _once_note(calibration: Calibration) -> str:
    """Say what ``--once`` took, and what that excludes."""
    least = f"once: {calibration.title} has the least noise for this query alone"
    if calibration.composes:
        return f"{least}, and a ledger can count it: give --ledger if there may be other releases"
    return f"{least}: no ledger can count this release, and its epsilon cannot be added to that of other releases"


def _check_useful(options: ReleaseOptions, inputs: Inputs, data: Sequences | Rows, calibration: Calibration) -> None:
    """Refuse to spend anything on noise that hides everything; the noise and the numbers of records are public."""
    if "noise" in options.accept or inputs.begun:  # what an earlier run has begun is finished
        return
    if options.each_subject and isinstance(data, Sequences):
        records = records_of_subjects(data).tolist()
        whose = f"each of {counted(len(records), 'subject')}"
    elif data.groups is not None:
        records = list(data.groups.records)
        whose = "each of the groups" if len(records) > 1 else "the group"
    else:
        records, whose = [data.records], counted(data.records, "row" if isinstance(data, Rows) else "record")
    larger = "ε" if options.up_to is None else "--up-to"
    if not noise_hides_everything(calibration, records):
        bins, asked = inputs.model.bins, calibration.query.quantiles
        wide = wide_quantiles(calibration, max(records), len(bins) - 1) if bins and asked else None
        if wide is not None:
            raise ParameterError(f"{wide} {larger}; if you are sure, give --accept noise")
        return
    remedy = f"take more records, ask for less, or give a larger {larger}"
    if options.up_to is not None and inputs.ledger is not None and options.up_to >= inputs.ledger.budget:
        remedy = "almost no budget is left"
    raise ParameterError(
        f"with ε = {at_most(calibration.epsilon)} the error is as large as the whole range of values that {whose} can "
        f"have, so the result would tell nothing. Nothing is spent: {remedy}; if you are sure, give --accept noise"
    )


def _prepared(options: ReleaseOptions, inputs: Inputs, noise: Noise) -> Prepared[Any]:
    """Check and prove all that can be refused."""
    asked = noise.data, noise.query, noise.calibration
    postprocess: Literal["valid"] | None = "valid" if options.valid else None
    accept = [word for word in options.accept if word in ACCEPTED]
    more: Any = {"warnings": noise.warnings, "ledger": inputs.ledger, "model": inputs.model, "accept": accept}
    if inputs.files is None:
        return prepare(*asked, postprocess=postprocess, **more)
    return prepare_each(*asked, inputs.files, postprocess=postprocess, **more)


def _print_before(inputs: Inputs, noise: Noise, warnings: Iterable[str]) -> None:
    """Print what must be known before a budget is spent: the warnings that were not told yet, and which ε was found."""
    known = set(warnings_of_reading(noise.data, inputs.model))
    print_warnings(warning for warning in warnings if warning not in known)
    say(*noise.lines, *notes_of_query(noise.query, inputs.model))


# -- A dry run -------------------------------------------------------------------------------------------------------


def _plan(options: ReleaseOptions, inputs: Inputs, noise: Noise) -> None:
    """Check all that a release checks, and print all of it but its values."""
    with progress("checking"):
        ready = _prepared(options, inputs, noise)
        plan, entry = ready.plan()
    _check_useful(options, inputs, noise.data, noise.calibration)
    if options.json:
        print_warnings(ready.warnings)
        click.echo(ReleasePlan.of(plan).to_json())
        return
    _print_before(inputs, noise, ready.warnings)
    _print_head(plan)
    if isinstance(plan, EachRelease):
        say(*text.lines_of_each(plan), *_errors_of_subjects(plan, noise.data))
    else:
        _print_errors(plan, noise)
    _print_promise(plan, noise.data, entry, inputs.ledger, planned=True)
    print_promises(plan.promises)
    say(f"assumed: {text.assumed_in_short(plan)}")
    record = options.output if inputs.files is None else inputs.files.record
    replaces = f"; {REPLACES}" if record is not None and Path(record).exists() else ""
    say(f"a dry run: nothing was drawn, spent or written; the same command without --dry-run releases{replaces}")


# -- Noise is drawn, and files are written ---------------------------------------------------------------------------

REPLACED = (
    "the old file was replaced, but its privacy budget stays spent: if it was of these records too, two releases of "
    "them are now public, and together they leak more than one alone (documentation: Composing releases)"
)
"""Said where the record of a release is replaced: what was published stays known."""

REPLACES = (
    "it would replace the earlier release there, whose privacy budget stays spent: if it was of these records too, "
    "two releases of them would be public"
)
"""Said by a dry run."""

_ROOM = 2**18
"""Bytes kept free on the disk for a picture, and for what a release holds beside Θ and its values."""


def _release(options: ReleaseOptions, inputs: Inputs, noise: Noise) -> None:
    """Draw the noise, spend, write, and print what was released."""
    data, ledger = noise.data, inputs.ledger
    targets = {option: (path, kind) for option, path, kind in options.targets if path is not None}
    with ExitStack() as stack:  # files are made ready before anything is spent
        outputs = {
            option: stack.enter_context(Output(path, kind, overwrite=options.overwrite or kind is not RELEASE))
            for option, (path, kind) in targets.items()
        }
        values = 1 if data.groups is None else len(data.groups.cells) * len(noise.calibration.linear.labels)
        for name, output in outputs.items():
            theta = 4 * ThetaRecord.of(inputs.model.theta).size if name == "--output" else 0
            output.reserve(theta + _ROOM + 200 * values)
        with progress("releasing"):
            ready = _prepared(options, inputs, noise)
            if noise.certificate is not None:
                noise.certificate.check(ready.plan()[0])
        with ExitStack() as to_the_end:
            late = until_done("noise is being drawn" if ledger is None else "budget is being spent, and noise drawn")

            def begin() -> None:  # all else that can be refused was, and nothing is spent yet
                _check_useful(options, inputs, data, noise.calibration)
                _print_before(inputs, noise, ready.warnings)
                to_the_end.enter_context(late)
                messages().interrupted = None

            release: Release = ready.finish(begin)
            replaced = Path(targets["--output"][0]).exists()  # by check_targets an earlier release, and nothing else
            _write(release, outputs, options)
            if noise.certificate is not None:
                outputs["--certificate"].write(noise.certificate.to_json().encode())
            _print_release(release, data, options, ledger)
            say(f"written: {', '.join(path for path, _ in targets.values())}")
            if replaced:
                say(REPLACED)


def _write(release: Release, outputs: Mapping[str, Output], options: ReleaseOptions) -> None:
    """Write release, table and picture; print the release where it cannot be written, for it is spent."""
    content = release.to_json()
    try:
        outputs["--output"].write(content.encode())
    except BaseException as error:
        spent = "the release is made"
        if release.ledger is not None:
            spent += f", and the ledger's budget for it is spent (entry {release.ledger.entry})"
        why = error if isinstance(error, RecordError) else f"interrupted before {options.output} was written"
        print_error(f"error: {printable(str(why))}; {spent}: keep its record, which follows on standard output")
        click.echo(content, nl=False)
        if not isinstance(error, RecordError):
            raise
        sys.exit(1)
    making = {
        "--csv": lambda: csv_of(frame_with_totals(release), for_spreadsheets=options.for_spreadsheets),
        "--plot": lambda: picture_of(release.plot(), str(options.plot)),
    }
    for name, make in making.items():
        if name in outputs:
            try:
                outputs[name].write(make())
            except (RecordError, MemoryError) as error:
                why = error if isinstance(error, RecordError) else f"not enough memory for {name}"
                print_error(f"error: {printable(f'{why}; the release is written: {options.output}')}")
                sys.exit(1)


def _release_each_subject(options: ReleaseOptions, inputs: Inputs, noise: Noise, files: OutputFiles) -> None:
    """Release, write, and say what was promised; warnings, and the ε that was found, come before anything is spent."""
    data, replaced = noise.data, files.record.exists()  # by Places an earlier release

    def begin() -> None:
        _print_before(inputs, noise, ready.warnings)
        messages().interrupted = None

    with progress("releasing"):
        ready = _prepared(options, inputs, noise)
        try:
            release: EachRelease = ready.finish(begin)
        except BaseException as error:
            if not (files.begun and files.pending_record.exists()):
                raise
            why = messages().words(error) if isinstance(error, PufferfishError) else "interrupted"
            print_error(
                f"error: {printable(why)}; {printable(files.given_record)}.pending holds the unfinished release: run "
                "the same command again to finish it; no budget is spent twice"
            )
            if isinstance(error, PufferfishError | KeyboardInterrupt):
                sys.exit(1)
            raise
    people = counted(data.subjects, "subject") if isinstance(data, Sequences) else "subjects"
    say(
        *text.summary(release).splitlines(),
        *_errors_of_subjects(release, data),
        *_weak_of_subjects(release, files),
        *text.promise_lines(release),
        text.size_line(release, data),
        f"{files.given} has people under their own names: it shows that {people} are in the data and how many records "
        "each has, without noise",
        f"written: {files.given}, {files.given_record}",
        f"{files.lock.name} is an empty lock file; leave it in place",
        *([REPLACED] if replaced else []),
    )


# -- What is printed -------------------------------------------------------------------------------------------------

_MOST_ROWS = 48


def _print_release(release: Release, data: Sequences | Rows, options: ReleaseOptions, ledger: Ledger | None) -> None:
    _print_head(release)
    if release.groups is None:
        _print_values(release)
    elif release.quantiles:
        quantiles = list(quantile_rows(release))
        told = [[x if isinstance(x, str) else number(x) for x in row.values()] for row in quantiles]
        _print_rows(list(quantiles[0]), told, 4, release.groups.by, options.csv)
    else:
        heads = text.heads_of(release)
        _print_rows(heads, list(text.rows_of(release)), 3, release.groups.by, options.csv)
        for title, heads, rows in text.totals_of_groups(release):
            say(f"{title}:")
            print_table(heads, rows[:_MOST_ROWS], names=len(heads) - 3)
    shown = release.groups is None or not release.quantiles  # else values are not shown: quantiles follow from them
    weak, impossible = (weak_lines(release), text.impossible_lines(release)) if shown else ([], [])
    say(*weak, text.noise_line(release), *impossible)
    entry = None if release.ledger is None or ledger is None else ledger.entries[release.ledger.entry - 1]
    _print_promise(release, data, entry, ledger)
    print_promises(release.promises)
    say(f"assumed (in full in {options.output}): {text.assumed_in_short(release)}")


def _print_head(release: Release | EachRelease) -> None:
    """Print what stands before any value: what is hidden, and whether a ledger counts the release."""
    counted_by = "; no ledger counts it" if release.ledger is None else ""
    say(f"{text.hides_line(release)}{counted_by}")


def _print_values(release: Release) -> None:
    """Print the values: of transitions a row for each state that steps come from, a column for each they go to."""
    say(*text.quantile_lines(release))
    kind, states, write = release.query.kind, release.theta.states, release.writer()
    if kind not in Transitions.kinds:
        print_table(text.heads_of(release), text.rows_of(release))
        return
    values = iter(release.values)
    rows = [(state, *(write(value, 1) for value in islice(values, len(states)))) for state in states]
    print_table((f"{kind}: from, to", *states), rows)
    say(f"each value ± {write(release.accuracy(0.05), 1)} with 95% probability")


def _print_rows(
    heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: int, by: Sequence[str], csv: str | None
) -> None:
    """Print the first rows of values by groups, of which so many columns are numbers."""
    print_table(heads, rows[:_MOST_ROWS], names=len(heads) - numbers)
    _print_weekdays(by)
    if (left := len(rows) - _MOST_ROWS) > 0:
        where = "all are in the file of --csv" if csv is not None else "--csv FILE writes all as a table"
        say(f"… and {left:,} more values: {where}")


def _print_errors(plan: Release, noise: Noise) -> None:
    """Print the error of each value that a release would have; it is public."""
    kind, write = plan.query.kind, plan.writer()
    if noise.data.groups is not None:
        print_group_errors(noise.data, noise.calibration)
    elif kind in Transitions.kinds:
        states, error = len(plan.theta.states), write(plan.accuracy(0.05), 1)
        say(f"{kind}: {states} x {states} values, each ± {error} with 95% probability")
    else:
        errors = zip(plan.query.labels, plan.accuracies(0.05), strict=True)
        print_table((kind, "± 95%"), [(label, write(float(error), 1)) for label, error in errors])
    if shares := noise.query.quantiles:
        named = ", ".join(f"{share:g}" for share in shares)
        say(f"from these values: the quantiles {named}, each with the states between which it is (95%)")
    say(text.noise_line(plan))


def print_group_errors(data: Sequences | Rows, calibration: Calibration) -> None:
    """Print how many records each group has, and the error of its values: both are public, and nothing is spent."""
    assert data.groups is not None
    groups, errors = data.groups, errors_of_groups(data, calibration)
    values = zip(groups.cells, groups.records, errors, strict=True)
    rows = [(*cell, f"{records:,}", f"{error:.4g}") for cell, records, error in values]
    scope = "the one group" if len(rows) == 1 else f"each of {len(rows):,} groups"
    say(f"each value of {scope}, by {calibration.title} at ε = {at_most(calibration.epsilon)}:")
    print_table((*groups.by, "records", "± 95%"), rows[:_MOST_ROWS], names=len(groups.by))
    _print_weekdays(groups.by)
    if len(rows) > _MOST_ROWS:
        worst = max(range(len(rows)), key=errors.__getitem__)
        name = shortened(", ".join(groups.cells[worst]))
        say(f"… and {len(rows) - _MOST_ROWS:,} more groups; the largest error is {errors[worst]:.3g} ({name})")


def _print_weekdays(by: Sequence[str]) -> None:
    """Say which weekday is 0, where groups are called so."""
    if any(grouping.startswith("weekday(") for grouping in by):
        say("weekdays: 0 is Monday, 6 is Sunday")


def _errors_of_subjects(release: EachRelease, data: Sequences | Rows) -> list[str]:
    """Say the errors of a value that is divided by each subject's own number of records."""
    if not (release.cell_that_divides is not None and isinstance(data, Sequences)):
        return []
    records, error = records_of_subjects(data).tolist(), release.accuracy_95.each
    few, most = (f"± {error / n:.3g} for {counted(n, 'record')}" for n in (min(records), max(records)))
    error_range = few if few == most else f"from {most} to {few}"
    return [f"each value with 95% probability: {error_range} (error_95 in the table has it for each subject)"]


def _weak_of_subjects(release: EachRelease, files: OutputFiles) -> list[str]:
    """Say how many values of the table are no larger than their error, and that some cannot be true as they are."""
    frame = release.read_table(files.table)
    weak = (frame["value"].abs() <= frame["error_95"]).to_numpy()
    marked = [f"{WEAK} {weak_line(weak)}; reports mark them"] if weak.any() else []
    return [*marked, *text.impossible_lines(release, frame["value"].to_list())]


def _print_promise(
    release: Release | EachRelease,
    data: Sequences | Rows,
    entry: Entry | None,
    ledger: Ledger | None,
    *,
    planned: bool = False,
) -> None:
    """Print what is charged, what the values went through, what was read, and what is promised."""
    if entry is not None and ledger is not None:
        part = part_of(entry, ledger)
        place = f"number {entry.number}, charged on {part}, " if part else f"number {entry.number}, "
        spent = f"{at_most(entry.spent)} of {number(ledger.budget, 6)}"
        told = f"it would be {place}{spent} spent" if planned else f"{place}spent {spent}"
        say(f"ledger: {told} in all")
    lines = [*text.without_ledger(release), *text.postprocessing_lines(release)]
    say(*lines, text.size_line(release, data), text.promise_line(release))
