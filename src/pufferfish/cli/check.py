"""``pufferfish check``: whether a model describes public data, and what its noise leaks where it does not."""

import os
from dataclasses import dataclass

import click

from pufferfish._base.words import names_of
from pufferfish._draw.figure import PICTURE, save_figure
from pufferfish.check.check import ModelCheck, check_model
from pufferfish.check.network import NetworkCheck, network_text
from pufferfish.check.record import CHECK, protecting, with_verdict
from pufferfish.check.shown import draw_check
from pufferfish.check.words import text_of
from pufferfish.cli._tables import Reading, check_targets, opened, read_under
from pufferfish.cli.messages import as_options, say
from pufferfish.cli.options import accept_option, argument, command, flag, node_names, option
from pufferfish.cli.print import progress
from pufferfish.cli.project import from_project
from pufferfish.data.rows import Rows
from pufferfish.data.sequences import Sequences
from pufferfish.errors import ParameterError
from pufferfish.fit.model_file import Model, is_bif, read_model, write_model
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.release.released_check import check_released, released_text


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What is checked."""

    model: str = argument("MODEL")
    tables: tuple[str, ...] = argument("TABLE...", required=True)
    reading: Reading
    epsilon: float = option("Privacy parameter of the noise to be judged.", default=1.0, show_default=True)
    released: bool = option("TABLE are releases (.json): check MODEL against their noisy values, at no privacy cost.")
    plot: str | None = option("Draw stays, hours and forgetting (.png, .svg, .pdf).", "FILE")
    details: bool = option("Print also the numbers of each subject and hour, and how soon states are forgotten.")
    output: str | None = option("Write all numbers, as JSON.", "FILE")
    overwrite: bool = option("Replace an earlier check.")
    accept: tuple[str, ...] = accept_option(public="everybody may see TABLE, which MODEL was not fitted to")


@command("check", CheckOptions)
def check_command(options: CheckOptions) -> None:
    """Say whether MODEL describes a PUBLIC table, and what its noise leaks to somebody who knows better.

    What it prints are exact numbers of the table. So it reads the table that the model was fitted to, or one of which
    you say that it is public; never a table that shall be protected. The verdict is kept in MODEL, and every release
    under it tells it.

    With --released it reads releases instead, which everybody may see: whether MODEL allows their numbers, with their
    noise. That verdict is not kept.

    \b
    Example:
      pufferfish check model.json survey-2019.csv --state activity --subject id --time minute --max-gap 1min
      pufferfish check patients.json register.csv
      pufferfish check model.json --released week1.json week2.json
      pufferfish check model.json survey-2021.csv --state activity --subject id --time minute --max-gap 1min \\
        --accept public --plot check.png
    """
    epsilon, plot, output = as_epsilon(options.epsilon), options.plot, options.output
    check_targets(
        [("--plot", plot, PICTURE), ("--output", output, CHECK)],
        inputs=(options.model, *options.tables),
        overwrite=options.overwrite,
    )
    model = read_model(options.model)
    if options.released:
        _check_released(options, model)
        return
    networks = model.theta.networks
    if networks and plot is not None:
        raise ParameterError("--plot draws stays, hours and forgetting of chains: leave it out for a network")
    with opened(options.tables, options.reading) as source:
        read = read_under(source, model, options.reading)
        if "public" not in options.accept and read.fingerprint not in (model.fitted_on or "").split():
            raise ParameterError(
                f"{options.model} was not fitted to {names_of(options.tables)} as it is read here, and a check prints "
                "exact numbers of the table: if everybody may see them, give --accept public; never check a table "
                "that you want to protect"
            )
        arguments = options.reading.of_rows() if networks else options.reading.of_chains()
        if networks:
            arguments["columns"] = node_names(options.reading.columns, model.theta)
        with progress("checking the model"):
            check = check_model(model, source, public=True, epsilon=epsilon, **arguments)
    if isinstance(check, NetworkCheck):
        text, more = network_text(check, as_options, details=options.details), "every pair of columns"
    else:
        text = text_of(check, as_options, details=options.details)
        more = "every subject, how soon states are forgotten, and the hours"
    click.echo(text)
    if not options.details:
        say("", f"--details prints more: {more}")
    if output is not None:
        check.to_json(output, overwrite=options.overwrite)
        say(f"written: {output}")
    if plot is not None and isinstance(check, ModelCheck):
        save_figure(draw_check(check), plot)
        say(f"written: {plot}")
    say(_kept(options, model, check, read))


def _check_released(options: CheckOptions, model: Model) -> None:
    """Print what releases say of a model, and write it."""
    given = [name for name in options.reading.given if not from_project(name)]
    given += [name for name in ("accept", "plot") if getattr(options, name)]
    given += ["epsilon"] if options.epsilon != 1 else []
    if given:
        raise ParameterError(f"{names_of(map(flag, given))} is for tables, but --released reads releases: leave it out")
    with progress("checking the model"):
        check = check_released(model, options.tables)
    click.echo(released_text(check, details=options.details))
    if options.output is not None:
        check.to_json(options.output, overwrite=options.overwrite)
        say(f"written: {options.output}")


def _kept(options: CheckOptions, model: Model, check: ModelCheck | NetworkCheck, read: Sequences | Rows) -> str:
    """Write the verdict into the model's file, where that is no secret, and say so."""
    if is_bif(options.model):
        return f"the verdict is not kept: {options.model} is a BIF file, which cannot hold it"
    folders = (".", os.path.dirname(options.model) or ".", *(os.path.dirname(table) or "." for table in options.tables))
    if (protects := protecting(read.base.source, folders)) is not None:
        return (
            f"the verdict is not kept: {protects.name} protects a table of this name, and a verdict would show exact "
            "numbers of it"
        )
    kept = with_verdict(model, check, read)
    write_model(kept, options.model)
    assert kept.checked is not None
    return f"kept in {options.model}: {kept.checked.in_words()}"
