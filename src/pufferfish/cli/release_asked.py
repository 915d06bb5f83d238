"""What ``pufferfish release`` is asked for, and what is refused of it before its table is opened.

Checks stand in the order in which more is known: what the options alone show; what the model shows; the ledger; the
files that are to be written. So a slip costs neither the reading of a table nor a calibration.
"""

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

import click

from pufferfish._base.words import at_most, change_of_odds, number
from pufferfish._draw.figure import PICTURE
from pufferfish.cli._tables import check_options
from pufferfish.cli.options import (
    DEFAULT_MECHANISM,
    check_composes,
    mechanism_named,
    node_names,
    secret_settings,
)
from pufferfish.cli.queries import parse_query
from pufferfish.cli.release_each import check_each_model, check_each_options, places_of
from pufferfish.cli.release_groups import check_group_accuracy, split_groupings
from pufferfish.cli.targets import TABLE, Target, check_targets
from pufferfish.cli.telling import telling
from pufferfish.compare.contest import Contest
from pufferfish.data import Rows, Sequences
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.fit.model_file import Model, read_model
from pufferfish.ledger import Ledger, lock_of
from pufferfish.mechanisms import Mechanism
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.mechanism import MOST_EPSILON, as_epsilon
from pufferfish.queries import Query
from pufferfish.release import RELEASE
from pufferfish.release.store import Places

__all__ = ["Asked", "Ground", "epsilon_for", "ground_of", "once_for"]


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
