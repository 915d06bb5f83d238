"""``pufferfish fit``: a model from public data."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import click

from pufferfish.cli.options import split_list, table_options
from pufferfish.cli.printing import progress
from pufferfish.cli.tables import fingerprint
from pufferfish.cli.targets import check_targets
from pufferfish.data import read_sequences
from pufferfish.fit import fit_chain
from pufferfish.model_file import Model, write_model
from pufferfish.models.chain_class import ChainClass

__all__ = ["fit_command"]


@click.command("fit")
@click.argument("table", type=click.Path(path_type=Path))
@table_options(networks=False)
@click.option("--states", metavar="A,B,…", help="The states, in order [default: those in the table, sorted].")
@click.option(
    "--initial",
    type=click.Choice(["stationary", "any"]),
    default="stationary",
    show_default=True,
    help="Law of the first record: the stationary one, or every law at once.",
)
@click.option("--smoothing", type=float, default=0.0, show_default=True, help="Added to every transition count.")
@click.option("--output", required=True, metavar="FILE", help="Where the model is written, as JSON.")
def fit_command(
    table: Path,
    states: str | None,
    initial: Literal["stationary", "any"],
    smoothing: float,
    output: str,
    **reading: Any,
) -> None:
    """Fit a Markov chain to PUBLIC data and write it as a model file.

    The model is part of what everybody is assumed to know: fit it to data that is already public, such as an
    earlier survey, never to the table it shall protect.

    \b
    Example:
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 10min --output model.json
    """
    check_targets(output, None, inputs=(table,), keep=None, overwrite=False)
    names = None if states is None else split_list(states)
    with progress("reading the table"):
        reading["missing"] = reading["missing"] or "unobserved"
        sequences = read_sequences(table, states=names, **reading)
    chain = fit_chain(sequences, initial=initial, smoothing=smoothing)
    base = sequences.base
    kept = f", rows where {base.where}" if base.where else ""
    origin = (
        f"fitted to public data on {datetime.now(UTC).date().isoformat()}: {base.source}, column {base.state}{kept}, "
        f"{sequences.records} records of {sequences.subjects} subject{'s' if sequences.subjects != 1 else ''}"
    )
    model = Model(theta=ChainClass((chain,), origin), bins=base.bins, step=base.step, fitted_on=fingerprint(table))
    observed, impossible = int(sequences.transitions.sum()), int((chain.transition_matrix == 0).sum())
    lines = [f"chain of {chain.k} states from {observed:,} transitions between {sequences.records:,} records"]
    if chain.is_irreducible:
        lines.append(f"π_min {chain.pi_min:.3g}, eigengap of P P* {chain.eigengap:.3g}, period {chain.period}")
    else:
        lines.append("reducible: not every state can be reached from every other")
    if impossible:
        lines.append(
            f"{impossible} of {chain.k**2} transitions were never seen and are taken as impossible, which is a strong "
            "claim; --smoothing 1 does not make it"
        )
    write_model(model, output)
    for line in [*lines, f"written: {output}"]:
        click.echo(line)
    click.echo("Take this file as public from now on, and protect other data with it than the data it came from.")
