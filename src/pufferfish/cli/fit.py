"""``pufferfish fit``: a model from public data."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import click
from click.core import ParameterSource

from pufferfish.cli.numbers import NUMBER
from pufferfish.cli.options import split_list, table_options
from pufferfish.cli.printing import print_warnings, progress
from pufferfish.cli.tables import fingerprint, opened
from pufferfish.cli.targets import check_targets
from pufferfish.data import read_sequences
from pufferfish.errors import ParameterError, printable
from pufferfish.fit import fit_chain, fit_interval
from pufferfish.model_file import MODEL, Model, write_model
from pufferfish.theta.chain_class import ChainClass
from pufferfish.theta.chain_intervals import IntervalChain
from pufferfish.theta.markov_chain import MarkovChain

__all__ = ["fit_command"]


@click.command("fit")
@click.argument("tables", metavar="TABLE...", type=str, nargs=-1, required=True)
@table_options(networks=False)
@click.option("--states", metavar="A,B,…", help="The states, in order [default: those in the table, sorted].")
@click.option(
    "--initial",
    type=click.Choice(["stationary", "any"]),
    default="stationary",
    show_default=True,
    help="Law of the first record: the stationary one, or every law at once.",
)
@click.option("--smoothing", type=NUMBER, default=0.0, show_default=True, help="Added to every transition count.")
@click.option(
    "--confidence",
    type=NUMBER,
    metavar="C",
    help="Instead of one chain, bounds that hold all transition probabilities with this confidence, such as 0.95.",
)
@click.option("--output", required=True, metavar="FILE", help="Where the model is written, as JSON.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier model.")
@click.pass_context
def fit_command(
    context: click.Context,
    tables: tuple[str, ...],
    states: str | None,
    initial: Literal["stationary", "any"],
    smoothing: float,
    confidence: float | None,
    output: str,
    overwrite: bool,
    **reading: Any,
) -> None:
    """Fit a Markov chain, or bounds on one, to PUBLIC data and write it as a model file.

    The model is part of what everybody is assumed to know: fit it to data that is already public, such as an
    earlier survey, never to the table it shall protect.

    \b
    Example:
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 10min --output model.json
      pufferfish fit survey-2019.csv --state activity --subject id --confidence 0.95 --output model.json
    """
    if confidence is not None:
        _check_confidence(context, confidence, initial)
    check_targets([("--output", output, MODEL)], inputs=tables, overwrite=overwrite)
    names = None if states is None else split_list(states)
    reading["missing"] = reading["missing"] or "unobserved"
    with opened(tables, reading) as table, progress("reading the table"):
        sequences = read_sequences(table, states=names, **reading)
        fitted_on = fingerprint(table, reading)
    print_warnings(sequences.warnings)
    theta = (
        ChainClass((fit_chain(sequences, initial=initial, smoothing=smoothing),))
        if confidence is None
        else fit_interval(sequences, confidence)
    )
    base = sequences.base
    kept = f", rows where {base.where}" if base.where else ""
    origin = (
        f"fitted to public data on {datetime.now(UTC).date().isoformat()}: {base.source}, column {base.state}{kept}, "
        f"{sequences.records} records of {sequences.subjects} subject{'s' if sequences.subjects != 1 else ''}"
    )
    observed = int(sequences.transitions.sum())
    if isinstance(theta, IntervalChain):
        origin += f"; bounds with {100 * (confidence or 0):g}% confidence from {observed} transitions"
    theta = replace(theta, origin=origin)
    step = base.step or (sequences.usual_step if base.max_gap else None)
    model = Model(theta=theta, bins=base.bins, step=step, fitted_on=fitted_on)
    counted = f"from {observed:,} transitions between {sequences.records:,} records"
    lines = _of_bounds(theta, counted) if isinstance(theta, IntervalChain) else _of_chain(theta.chains[0], counted)
    write_model(model, output)
    for line in [*lines, f"written: {output}"]:
        click.echo(printable(line))
    click.echo("Take this file as public from now on, and protect other data with it than the data it came from.")


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


def _of_chain(chain: MarkovChain, counted: str) -> list[str]:
    lines = [f"chain of {chain.k} states {counted}"]
    if chain.is_irreducible:
        lines.append(f"π_min {chain.pi_min:.3g}, eigengap of P P* {chain.eigengap:.3g}, period {chain.period}")
    else:
        lines.append("reducible: not every state can be reached from every other")
    impossible = int((chain.transition_matrix == 0).sum())
    if impossible:
        lines.append(
            f"{impossible} of {chain.k**2} transitions were never seen and are taken as impossible, which is a strong "
            "claim; --smoothing 1 does not make it"
        )
    return lines


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
