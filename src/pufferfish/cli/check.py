"""``pufferfish check``: whether a model describes public data, and what its noise leaks where it does not."""

from typing import Any

import click

from pufferfish._draw.figure import PICTURE, save_figure
from pufferfish.check import CHECK, check_model
from pufferfish.check.shown import draw_check
from pufferfish.check.words import text_of
from pufferfish.cli._tables import opened, read_under
from pufferfish.cli.as_options import as_options
from pufferfish.cli.options import NUMBER, table_options
from pufferfish.cli.print import progress
from pufferfish.cli.targets import check_targets
from pufferfish.errors import NotApplicableError, ParameterError, printable
from pufferfish.fit.model_file import read_model
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.theta.chain_class import ChainClass

__all__ = ["check_command"]


@click.command("check")
@click.argument("model_path", metavar="MODEL", type=str)
@click.argument("table", type=str)
@table_options(networks=False)
@click.option(
    "--epsilon", type=NUMBER, default=1.0, show_default=True, help="Privacy parameter of the noise that is spoken of."
)
@click.option("--plot", "plot_path", metavar="FILE", help="Draw stays, hours and forgetting (.png, .svg, .pdf).")
@click.option(
    "--details", is_flag=True, help="Print the numbers of subjects and hours, and how soon is forgotten, too."
)
@click.option("--output", metavar="FILE", help="Write all numbers, as JSON.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier check.")
@click.option(
    "--i-know-this-is-public", "public", is_flag=True, help="TABLE is public though MODEL was not fitted to it."
)
def check_command(
    model_path: str,
    table: str,
    epsilon: float,
    plot_path: str | None,
    details: bool,
    output: str | None,
    overwrite: bool,
    public: bool,
    **reading: Any,
) -> None:
    """Say whether MODEL describes a PUBLIC table, and what its noise leaks to somebody who knows better.

    What it prints are exact numbers of the table. So it reads the table that the model was fitted to, or one of which
    you say that it is public; never a table that shall be protected.

    \b
    Example:
      pufferfish check model.json survey-2019.csv --state activity --subject id --time minute --max-gap 1min
      pufferfish check model.json survey-2021.csv --state activity --subject id --time minute --max-gap 1min \\
        --i-know-this-is-public --plot check.png
    """
    epsilon = as_epsilon(epsilon)
    check_targets(
        [("--plot", plot_path, PICTURE), ("--output", output, CHECK)], inputs=(model_path, table), overwrite=overwrite
    )
    model = read_model(model_path)
    if not isinstance(model.theta, ChainClass):
        instead = "check a chain fitted to the same data, with fit without --clock, --confidence and --forgets"
        if model.theta.networks:
            instead = "compare the tables of its nodes with shares that you count in public data"
        raise NotApplicableError(f"{model_path} holds {model.theta.kind}, and check covers Markov chains: {instead}")
    with opened((table,), reading) as source:
        read = read_under(source, model, reading | {"columns": None})
        if not public and model.fitted_on != read.fingerprint:
            raise ParameterError(
                f"{model_path} was not fitted to {table} as it is read here, and a check tells exact numbers of the "
                "table: if everybody may see them, give --i-know-this-is-public; never check a table that shall be "
                "protected"
            )
        options = {name: value for name, value in reading.items() if name != "state"}
        options["missing"] = options["missing"] or "unobserved"
        with progress("checking the model"):
            found = check_model(model, source, reading["state"], public=True, epsilon=epsilon, **options)
    click.echo(text_of(found, as_options, details=details))
    if not details:
        click.echo("\n--details prints more: each subject's predictions, how soon states are forgotten, and the hours")
    if output is not None:
        found.to_json(output, overwrite=overwrite)
        click.echo(printable(f"written: {output}"))
    if plot_path is not None:
        save_figure(draw_check(found), plot_path)
        click.echo(printable(f"written: {plot_path}"))
