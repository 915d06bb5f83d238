"""``pufferfish fit``: a model from public data."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from pufferfish._base.view import counted, grid_lines
from pufferfish._draw.figure import PICTURE, save_figure
from pufferfish.cli._tables import opened
from pufferfish.cli.options import NUMBER, state_list, table_options
from pufferfish.cli.print import never_seen, print_warnings, progress
from pufferfish.cli.targets import check_targets
from pufferfish.data import Sequences, read_sequences
from pufferfish.data.bins import bin_labels, parse_bins
from pufferfish.data.labels import words_for_missing
from pufferfish.errors import ParameterError, printable
from pufferfish.fit.chain import fit_chain, fit_interval, fit_order, fit_periodic
from pufferfish.fit.forgetting import SMOOTHING, OverlapEstimate, fit_forgetting
from pufferfish.fit.model_file import MODEL, Model, write_model
from pufferfish.fit.subjects import POOLING, SubjectsFit, fit_each_subject
from pufferfish.theta.chain_class import ChainClass, ChainModels
from pufferfish.theta.chain_intervals import IntervalChain
from pufferfish.theta.forgetting_class import ForgettingClass
from pufferfish.theta.higher_order_chain import HigherOrderChain
from pufferfish.theta.markov_chain import MarkovChain
from pufferfish.theta.periodic_chain import PeriodicChain
from pufferfish.theta.picture import draw_model
from pufferfish.theta.shown import main_grids
from pufferfish.theta.states import CLOCKS, phase_name

if TYPE_CHECKING:
    from pufferfish.data.spark import SparkFiles

__all__ = ["fit_command", "forgetting_model", "subjects_model"]

# -- ``pufferfish fit --forgets`` ------------------------------------------------------------------------------------


def forgetting_model(
    table: "str | SparkFiles | None",
    forgets: tuple[str, ...],
    overlaps: tuple[float, ...],
    states: str | None,
    smoothing: float | None,
    reading: dict[str, Any],
) -> tuple[Model, list[str]]:
    """Return the model, and what to say of it.

    Raises
    ------
    ParameterError
        If an overlap is stated and a table given, or neither; or one of the options does not go with the others.
    """
    if not forgets:
        raise ParameterError("--overlap says how much, and --forgets after what time: give both")
    names = state_list(states)
    if overlaps:
        return _stated(table, forgets, overlaps, names, smoothing, reading)
    if table is None:
        raise ParameterError(
            "give the TABLE of public data that the overlap is estimated from, or state it by --overlap"
        )
    if reading["state"] is None:
        raise ParameterError("give --state: the column of states")
    asked: dict[str, Any] = reading | {"missing": reading["missing"] or "unobserved", "states": names}
    with progress("reading the table"):
        found = fit_forgetting(
            table,
            asked.pop("state"),
            list(forgets),
            smoothing=SMOOTHING if smoothing is None else smoothing,
            **asked,
        )
    print_warnings(found.sequences.warnings)
    model = Model.fitted(found.theta, found.sequences)
    lines = [line for each in found.estimates for line in _lines_of_forgetting(each, model.step)]
    lines.append(
        f"each subject's laws were given {found.smoothing:g} independent pairs of all subjects: little data looks less "
        "forgetful than it is"
    )
    return model, lines


def _stated(
    table: "str | SparkFiles | None",
    forgets: tuple[str, ...],
    overlaps: tuple[float, ...],
    names: list[str] | None,
    smoothing: float | None,
    reading: dict[str, Any],
) -> tuple[Model, list[str]]:
    if table is not None:
        raise ParameterError("--overlap states what a TABLE would tell: leave one of them out")
    if len(overlaps) != len(forgets):
        raise ParameterError(f"--forgets is given {len(forgets)} times and --overlap {len(overlaps)}: one for each")
    for name, value in {**reading, "smoothing": smoothing}.items():
        if value is not None and name not in ("bins", "step", "gaps"):
            raise ParameterError(f"--{name.replace('_', '-')} is about a TABLE, and --overlap needs none: leave it out")
    bins = None if reading["bins"] is None else parse_bins(reading["bins"])
    if names is None and bins is None:
        raise ParameterError("give the --states of the records, such as sit,stand,walk, or --bins")
    from pufferfish.data.public_counts import as_steps  # here: it loads what reads tables

    steps = [as_steps(each, reading["step"]) for each in forgets]
    theta = ForgettingClass(steps, list(overlaps), bin_labels(bins) if names is None and bins is not None else names)
    lines = [f"after {n} steps habits overlap by {share:g}, as stated" for n, share in theta.pairs]
    return Model(theta=theta, bins=bins, step=reading["step"]), lines


def _lines_of_forgetting(found: OverlapEstimate, step: str | None) -> list[str]:
    whose = f"the least of {counted(found.subjects, 'subject')}, that of {found.subject!r}, " if found.subject else ""
    after = f"after {found.steps:,} steps{'' if step is None else f' of {step}'}"
    return [
        f"{after} habits overlap by {found.overlap:.4g}: {whose}about the state {found.steps:,} steps "
        f"{found.direction}",
        f"  all taken together {found.pooled:.4g}, from {found.pairs:,} pairs of records",
    ]


# -- ``pufferfish fit --each-subject`` -------------------------------------------------------------------------------


def subjects_model(
    table: "str | SparkFiles",
    states: str | None,
    initial: Literal["stationary", "any"],
    smoothing: float | None,
    pooling: float | None,
    reading: dict[str, Any],
) -> tuple[Model, list[str]]:
    """Return the model, and what to say of it."""
    asked: dict[str, Any] = reading | {"missing": reading["missing"] or "unobserved"}
    with progress("reading the table"):
        found = fit_each_subject(
            table,
            asked.pop("state"),
            pooling=POOLING if pooling is None else pooling,
            smoothing=smoothing or 0.0,
            initial=initial,
            states=state_list(states),
            **asked,
        )
    print_warnings(found.sequences.warnings)
    return Model.fitted(found.theta, found.sequences), _lines_of_subjects(found)


def _lines_of_subjects(found: SubjectsFit) -> list[str]:
    theta, subjects = found.theta, found.sequences.subjects
    each = f"{counted(len(theta.chains), 'chain')} of {theta.k} states, " + (
        "one for each subject"
        if len(theta.chains) == subjects
        else f"for {subjects:,} subjects: equal ones are kept once"
    )
    lines = [f"{each}, from {int(found.sequences.transitions.sum()):,} transitions"]
    if found.pooling:
        lines.append(
            f"every row of every subject was given {found.pooling:g} transitions of all subjects; "
            f"{found.mostly_pool} subject{' has' if found.mostly_pool == 1 else 's have'} a row with fewer of its own"
        )
    return lines + never_seen([chain.transition_matrix for chain in theta.chains], 1)


_NO_GAP = (
    "The table is read without --max-gap: records that follow each other count as one step, however long the time "
    "between them, and the model does not say how long its step takes."
)


@click.command("fit")
@click.argument("tables", metavar="[TABLE]...", type=str, nargs=-1)
@table_options(networks=False)
@click.option(
    "--states",
    metavar="A,B,…",
    help="The states, in order, or a file with one in each line [default: those in the table, sorted].",
)
@click.option(
    "--initial",
    type=click.Choice(["stationary", "any"]),
    default="stationary",
    show_default=True,
    help="Law of the first record: the stationary one, or every law at once.",
)
@click.option(
    "--smoothing",
    type=NUMBER,
    help="Added to every transition count [default: 0]; with --forgets pairs of all subjects added to each [default: "
    f"{SMOOTHING:g}].",
)
@click.option(
    "--confidence",
    type=NUMBER,
    metavar="C",
    help="Instead of one chain, bounds that hold all transition probabilities with this confidence, such as 0.95.",
)
@click.option(
    "--forgets",
    multiple=True,
    metavar="LEN",
    help="Instead of a chain, how much habits overlap after this time (8min), or number of steps (8); may be repeated.",
)
@click.option(
    "--overlap",
    "overlaps",
    multiple=True,
    type=NUMBER,
    metavar="SHARE",
    help="With --forgets, the overlap as you know it: then no TABLE is read; one for each --forgets.",
)
@click.option(
    "--clock",
    type=click.Choice(list(CLOCKS)),
    help="A transition matrix for each hour of the day, weekday, or hour of the week.",
)
@click.option(
    "--each-subject",
    is_flag=True,
    help="A chain for each subject; the noise then holds for everybody's habits. --subject says whose a record is.",
)
@click.option(
    "--pooling",
    type=NUMBER,
    help="With --clock, --order or --each-subject: transitions added to every row, spread as those of all together "
    f"[default: 0, and {POOLING:g} for --each-subject].",
)
@click.option(
    "--order",
    type=click.IntRange(min=2, max=6),
    metavar="M",
    help="Let each record depend on so many before it, instead of one.",
)
@click.option("--output", required=True, metavar="FILE", help="Where the model is written, as JSON.")
@click.option("--plot", "plot_path", metavar="FILE", help="Draw transitions and dwell times (.png, .svg, .pdf).")
@click.option("--overwrite", is_flag=True, help="Replace an earlier model.")
@click.pass_context
def fit_command(
    context: click.Context,
    tables: tuple[str, ...],
    states: str | None,
    initial: Literal["stationary", "any"],
    smoothing: float | None,
    confidence: float | None,
    forgets: tuple[str, ...],
    overlaps: tuple[float, ...],
    clock: str | None,
    each_subject: bool,
    pooling: float | None,
    order: int | None,
    output: str,
    plot_path: str | None,
    overwrite: bool,
    **reading: Any,
) -> None:
    """Fit a Markov chain, bounds on one, or how soon it forgets, to PUBLIC data; and write it as a model file.

    The model is part of what everybody is assumed to know: fit it to data that is already public, such as an
    earlier survey, never to the table it shall protect.

    \b
    Example:
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 1min --output model.json
      pufferfish fit survey-2019.csv --state activity --subject id --confidence 0.95 --output model.json
      pufferfish fit survey-2019.csv --state activity --subject id --each-subject --output model.json
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --forgets 8min --output model.json
      pufferfish fit --forgets 8 --overlap 0.43 --states sit,stand,walk --output model.json
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 1min --clock hour \\
        --smoothing 0.5 --output hourly.json
    """
    targets = [("--output", output, MODEL), ("--plot", plot_path, PICTURE)]
    if forgets or overlaps:
        _check_forgetting(context)
        check_targets(targets, inputs=tables, overwrite=overwrite)
        with _opened_if_any(tables, reading) as table:
            found = forgetting_model(table, forgets, overlaps, states, smoothing, reading)
        _write(*found, output, plot_path, named=states is not None)
        return
    if not tables:
        raise ParameterError("give the TABLE of public data; only --forgets with --overlap needs none")
    if reading["state"] is None:
        raise ParameterError("give --state: the column of states")
    if clock is None and order is None and not each_subject and pooling is not None:
        raise ParameterError(
            "--pooling belongs to --clock, --order and --each-subject: one matrix is of all transitions together"
        )
    if confidence is not None and not (clock is None and order is None):
        raise ParameterError("--confidence gives bounds on one matrix: leave out --clock and --order")
    if confidence is not None:
        _check_confidence(context, confidence, initial)
    check_targets(targets, inputs=tables, overwrite=overwrite)
    if each_subject:
        _check_each_subject(context, reading)
        with opened(tables, reading) as table:
            of_each = subjects_model(table, states, initial, smoothing, pooling, reading)
        _write(*of_each, output, plot_path, named=states is not None)
        return
    names = state_list(states)
    reading["missing"] = reading["missing"] or "unobserved"
    with opened(tables, reading) as table, progress("reading the table"):
        sequences = read_sequences(table, states=names, clock=clock, order=order or 1, **reading)
    loose = [_NO_GAP] if reading["time"] and not (reading["max_gap"] or clock) else []
    print_warnings([*sequences.warnings, *loose])
    added: Any = {"smoothing": smoothing or 0.0, "pooling": pooling or 0.0}
    theta: ChainClass | ChainModels | IntervalChain
    if clock is not None:
        theta = ChainModels((fit_periodic(sequences, initial=initial, **added),))
    elif order is not None:
        theta = ChainModels((fit_order(sequences, initial=initial, **added),))
    elif confidence is not None:
        theta = fit_interval(sequences, confidence)
    else:
        theta = ChainClass((fit_chain(sequences, initial=initial, smoothing=smoothing or 0.0),))
    model = Model.fitted(theta, sequences)
    observed = int(sequences.transitions.sum())
    counted = f"from {observed:,} transitions between {sequences.records:,} records"
    lines = _lines(theta, sequences, counted, pooling or 0.0)
    _write(model, lines, output, plot_path, named=names is not None)


def _write(model: Model, lines: list[str], output: str, plot_path: str | None, *, named: bool) -> None:
    """Write a model, and say what is in it; ``named`` is whether the user named the states."""
    if not named:
        print_warnings(
            f"the state {word!r} looks like a word for missing, and is a state of the model: if it is none, leave such "
            "cells of the table empty, and fit again"
            for word in words_for_missing(model.theta.states)
        )
    figure = None if plot_path is None else draw_model(model.theta)
    grids = main_grids(model.theta, model.step)
    write_model(model, output)
    if plot_path is not None:
        save_figure(figure, plot_path)
    click.echo(printable(lines[0]))
    for grid in grids:
        click.echo("\n".join(grid_lines(grid)))
    for line in [*lines[1:], f"written: {', '.join(filter(None, (output, plot_path)))}"]:
        click.echo(printable(line))
    if model.fitted_on is not None:
        click.echo("Take this file as public from now on, and protect other data with it than the data it came from.")


@contextmanager
def _opened_if_any(tables: tuple[str, ...], reading: dict[str, Any]) -> "Generator[str | SparkFiles | None]":
    if tables:
        with opened(tables, reading) as table:
            yield table
    elif reading.pop("spark") is not None:
        raise ParameterError("--spark says where TABLE is read, and there is none: give one, or leave --spark out")
    else:
        yield None


def _check_forgetting(context: click.Context) -> None:
    """Refuse options that speak of transition probabilities."""
    for name in ("initial", "confidence", "clock", "each_subject", "pooling", "order"):
        if context.get_parameter_source(name) != ParameterSource.DEFAULT:
            option = name.replace("_", "-")
            raise ParameterError(
                f"--{option} is about transition probabilities, and --forgets needs none: leave it out"
            )


def _check_each_subject(context: click.Context, reading: dict[str, Any]) -> None:
    """Refuse options that do not go with a chain for each subject."""
    for name in ("confidence", "clock", "order"):
        if context.get_parameter_source(name) != ParameterSource.DEFAULT:
            raise ParameterError(
                f"--each-subject gives every subject one matrix: leave out --{name}, or --each-subject"
            )
    if reading["subject"] is None:
        raise ParameterError("give --subject: the column that says whose chain --each-subject fits")


def _check_confidence(context: click.Context, confidence: float, initial: str) -> None:
    """Refuse options that speak of one chain."""
    given = {name for name in ("initial", "smoothing") if context.get_parameter_source(name) != ParameterSource.DEFAULT}
    if "initial" in given and initial == "stationary":
        raise ParameterError("--confidence gives bounds for every initial law: leave out --initial stationary")
    if "smoothing" in given:
        raise ParameterError(
            "--confidence needs no --smoothing: bounds leave room for transitions that were never seen"
        )
    if not 0 < confidence < 1:
        raise ParameterError(
            f"--confidence is {confidence:g}, expected a probability such as 0.95, above 0 and below 1"
        )


def _lines(
    theta: ChainClass | ChainModels | IntervalChain, sequences: Sequences, counted: str, pooling: float
) -> list[str]:
    if isinstance(theta, IntervalChain):
        return _of_bounds(theta, counted)
    if isinstance(theta, ChainModels):
        (member,) = theta.members
        return (
            _of_clock(member, sequences, counted, pooling)
            if isinstance(member, PeriodicChain)
            else _of_order(member, counted)
        )
    return _of_chain(theta.chains[0], counted)


def _of_clock(chain: PeriodicChain, sequences: Sequences, counted: str, pooling: float) -> list[str]:
    assert chain.clock is not None
    assert sequences.transitions_by_phase is not None
    each = sequences.transitions_by_phase.sum(axis=(1, 2))
    word, fewest = CLOCKS[chain.clock].word, int(each.argmin())
    lines = [
        f"{chain.phases} matrices of {chain.k} states, one for each {word}, one record every {chain.step}, {counted}",
        f"fewest transitions: {int(each[fewest]):,}, at {phase_name(chain.clock, fewest)}",
    ]
    unseen = [phase for phase, seen in enumerate(each) if seen == 0]
    if unseen and not pooling:
        names = ", ".join(phase_name(chain.clock, phase) for phase in unseen[:4])
        lines.append(
            f"nothing was observed in {len(unseen)} of {chain.phases} phases ({names}"
            f"{', …' if len(unseen) > 4 else ''}): --smoothing alone says that records are independent there, a strong "
            "claim; --pooling 10 takes them to be as in the other phases"
        )
    return lines + never_seen([chain.matrices], 0.5, f" at their {word}")


def _of_order(chain: HigherOrderChain, counted: str) -> list[str]:
    line = f"chain of {chain.k} states, each record depends on the {chain.order} before it, {counted}"
    return [line, *never_seen([chain.tensor], 0.5)]


def _of_chain(chain: MarkovChain, counted: str) -> list[str]:
    lines = [f"chain of {chain.k} states {counted}"]
    if chain.is_irreducible:
        _ = chain.pi_min  # a law too extreme to be computed is refused before anything is written
    else:
        lines.append("reducible: not every state can be reached from every other")
    return lines + never_seen([chain.transition_matrix], 1)


def _of_bounds(theta: IntervalChain, counted: str) -> list[str]:
    width = theta.upper - theta.lower
    lines = [
        f"bounds on the transitions between {theta.k} states {counted}",
        f"half widths from {width.min() / 2:.3g} to {width.max() / 2:.3g}; matrices between them may follow each other",
    ]
    possible = int((theta.lower == 0).sum())
    if possible:
        lines.append(f"{possible} of {theta.k**2} transitions are not known to happen: their lower bound is 0")
    return lines
