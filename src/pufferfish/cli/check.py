"""``pufferfish check``: whether a model describes public data, and what its noise leaks where it does not."""

from dataclasses import dataclass

import click

from pufferfish._draw.figure import PICTURE, save_figure
from pufferfish.check import CHECK, check_model
from pufferfish.check.shown import draw_check
from pufferfish.check.words import text_of
from pufferfish.cli._tables import ChainReading, check_targets, opened, read_under
from pufferfish.cli.messages import as_options
from pufferfish.cli.options import accept_option, argument, command, option
from pufferfish.cli.print import progress
from pufferfish.errors import NotApplicableError, ParameterError, printable
from pufferfish.fit.model_file import read_model
from pufferfish.mechanisms.mechanism import as_epsilon

__all__ = ["check_command"]


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What is checked."""

    model: str = argument("MODEL")
    table: str = argument()
    reading: ChainReading
    epsilon: float = option("Privacy parameter of the noise that is spoken of.", default=1.0, show_default=True)
    plot: str | None = option("Draw stays, hours and forgetting (.png, .svg, .pdf).", "FILE")
    details: bool = option("Print the numbers of subjects and hours, and how soon is forgotten, too.")
    output: str | None = option("Write all numbers, as JSON.", "FILE")
    overwrite: bool = option("Replace an earlier check.")
    accept: tuple[str, ...] = accept_option(public="TABLE, which MODEL was not fitted to, may be seen by everybody")


@command("check", CheckOptions)
def check_command(options: CheckOptions) -> None:
    """Say whether MODEL describes a PUBLIC table, and what its noise leaks to somebody who knows better.

    What it prints are exact numbers of the table. So it reads the table that the model was fitted to, or one of which
    you say that it is public; never a table that shall be protected.

    \b
    Example:
      pufferfish check model.json survey-2019.csv --state activity --subject id --time minute --max-gap 1min
      pufferfish check model.json survey-2021.csv --state activity --subject id --time minute --max-gap 1min \\
        --accept public --plot check.png
    """
    epsilon, plot, output = as_epsilon(options.epsilon), options.plot, options.output
    check_targets(
        [("--plot", plot, PICTURE), ("--output", output, CHECK)],
        inputs=(options.model, options.table),
        overwrite=options.overwrite,
    )
    model = read_model(options.model)
    if not model.theta.chains:
        instead = "check a chain fitted to the same data, with fit without --clock, --confidence and --forgets"
        if model.theta.networks:
            instead = "compare the tables of its nodes with shares that you count in public data"
        raise NotApplicableError(f"{options.model} holds {model.theta.kind}, and check covers Markov chains: {instead}")
    with opened((options.table,), options.reading) as source:
        read = read_under(source, model, options.reading)
        if "public" not in options.accept and model.fitted_on != read.fingerprint:
            raise ParameterError(
                f"{options.model} was not fitted to {options.table} as it is read here, and a check tells exact "
                "numbers of the table: if everybody may see them, give --accept public; never check a table "
                "that shall be protected"
            )
        with progress("checking the model"):
            check = check_model(model, source, public=True, epsilon=epsilon, **options.reading.of_chains())
    click.echo(text_of(check, as_options, details=options.details))
    if not options.details:
        click.echo("\n--details prints more: each subject's predictions, how soon states are forgotten, and the hours")
    if output is not None:
        check.to_json(output, overwrite=options.overwrite)
        click.echo(printable(f"written: {output}"))
    if plot is not None:
        save_figure(draw_check(check), plot)
        click.echo(printable(f"written: {plot}"))
