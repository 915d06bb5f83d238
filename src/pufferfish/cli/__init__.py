"""The command line: thin calls of the library, one file a command.

Every command prints what it did to standard output, progress and warnings to standard error, and one clear line with
exit code 2 on bad input, before anything is written or spent.
"""

import errno
import importlib
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from pufferfish._base.words import did_you_mean
from pufferfish.cli.messages import Messages
from pufferfish.errors import PufferfishError, one_line, printable

_COMMANDS = {
    "init": "Write pufferfish.toml, with the options that every command of a folder would repeat.",
    "fit": "Estimate a model from public data.",
    "check": "Check whether a model describes public data, and what its noise leaks if it does not.",
    "compare": "Show the noise of every mechanism, before anything is spent.",
    "release": "Release a statistic of a table with noise that accounts for correlation.",
    "notebook": "Write a notebook that repeats a release with new noise.",
    "show": "Show a release: values, promise, noise, warnings.",
    "report": "Write a web page about releases to hand over.",
    "words": "Write the words of such a page as a table, to translate them.",
    "series": "Show releases of one query over time: changes, totals, averages, with their errors.",
    "verify": "Check a release: compute its proof again.",
    "certify": "Write a proof of a release that can be checked without this program.",
    "checker": "Write the program that checks such proofs.",
    "ledger": "Keep one budget for many releases of the same table.",
    "robustness": "Compute how much more leaks under a belief outside of the model.",
    "example": "Write made-up tables to try the other commands on.",
    "completion": "Print the completion of commands and options for bash, zsh or fish.",
}
"""What each command does, for whom it is named in a file of its own: only the one that is called is loaded."""

_WITH = {"words": "report", "checker": "certify"}
"""Commands that stand in the file of another one."""


class Commands(click.Group):
    """Commands that are loaded when they are called, and whose known errors become one line and exit code 2."""

    what_they_do: Mapping[str, str] = _COMMANDS
    modules: Mapping[str, str] = {name: f"pufferfish.cli.{_WITH.get(name, name)}" for name in _COMMANDS}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which they are mostly used."""
        return list(self.what_they_do)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command."""
        if cmd_name not in self.modules:
            return None
        return getattr(importlib.import_module(self.modules[cmd_name]), f"{cmd_name}_command")

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command that is called; a misspelt one is told what it was probably meant to be."""
        if args and not args[0].startswith("-") and args[0] not in self.modules:
            ctx.fail(f"No such command {args[0]!r}.{did_you_mean(args[0], self.modules)}")
        resolved = super().resolve_command(ctx, args)
        _check_given_once(resolved[1], resolved[2])
        return resolved

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the commands do, none of them loaded."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.what_they_do.items()))

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command."""
        if "_PUFFERFISH_COMPLETE" in os.environ:  # a shell asks, at the press of Tab
            importlib.import_module("pufferfish.cli.completion")
        return super().main(*args, **kwargs)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the options before the command; what is wrong with them is one line too."""
        try:
            return super().make_context(*args, **kwargs)
        except NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            _tell(error, "pufferfish")
            raise click.exceptions.Exit(2) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and say in one line what is wrong with it."""
        closed, messages = _closed(), Messages(quiet=bool(ctx.params.get("quiet_errors")))
        ctx.obj = messages
        try:
            result = super().invoke(ctx)
            if closed:  # as where whoever read the output has gone
                ctx.exit(1)
            sys.stdout.flush()
            return result
        except NoArgsIsHelpError:  # a group without a command: its help
            raise
        except click.UsageError as error:
            if messages.quiet:
                messages.say(f"error: {messages.words(error)}")
            else:
                _tell(error, f"{ctx.command_path} {ctx.invoked_subcommand or ''}".rstrip())
            ctx.exit(2)
        except PufferfishError as error:
            messages.say(f"error: {messages.words(error)}")
            ctx.exit(2)
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read the output has gone, such as head
                raise
            _forget_output()
            where = "standard output" if error.filename is None else str(error.filename)
            why = messages.words(error) if messages.quiet else f"cannot write to {where}: {error.strerror or error}"
            messages.say(printable(f"error: {why}"))
            ctx.exit(1)
        except (click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            if messages.interrupted is None:
                raise
            messages.say(printable(messages.interrupted))
            ctx.exit(1)
        except BaseException as error:
            if not messages.quiet or isinstance(error, SystemExit):
                raise
            messages.say(f"error: {messages.words(error)}")  # its traceback could quote rows
            ctx.exit(1)
        finally:
            messages.end()


_COMBINED = ("--query", "--where", "--by", "--columns", "--secrets", "--protect", "--states", "--arrows", "--certain")
"""Options of which who gives two means both; of others the last one counts, as everywhere."""


def _check_given_once(called: click.Command | None, args: list[str]) -> None:
    """Refuse two of an option whose last one alone would count, where both are meant."""
    options = [arg.partition("=")[0] for arg in takewhile(lambda arg: arg != "--", args)]
    several = {name for each in getattr(called, "params", ()) if getattr(each, "multiple", False) for name in each.opts}
    for name in _COMBINED:
        if options.count(name) > 1 and name not in several:
            raise click.UsageError(f"{name} is given twice: give it once")


_MODEL_FIRST = (" check", " compare", " robustness")


def _tell(error: click.UsageError, command: str) -> None:
    """Print in one line what is wrong with a command line, and where it is explained."""
    path = command if error.ctx is None else error.ctx.command_path
    message = " ".join(error.format_message().split()).rstrip(".")
    if isinstance(error, click.NoSuchOption) and error.option_name == "--quiet-errors":
        message, path = "give --quiet-errors before the command", "pufferfish"
    elif isinstance(error, click.NoSuchOption) and error.option_name == "--model" and path.endswith(_MODEL_FIRST):
        message = f"the model file is given first, without --model: {path} model.json …"
    elif isinstance(error, click.NoSuchOption) and error.option_name == "--table" and path.endswith(" check"):
        message = f"the table is given after the model, without --table: {path} model.json table.csv …"
    if (
        (lacking := re.match(r"No such command '(.*?)'", message))
        and error.ctx is not None
        and "Did you mean" not in message
    ):
        group = error.ctx.command
        known = group.list_commands(error.ctx) if isinstance(group, click.Group) else []
        message += f".{did_you_mean(lacking[1], known)}".rstrip(".")  # newer versions of click say it themselves
    above = _above(error)
    click.echo(f"error: {one_line(message)}{_nearest_choice(error)}{above}; see {path} --help", err=True)


def _above(error: click.UsageError) -> str:
    """Say of what is missing that a project of a folder above may have it."""
    context = error.ctx
    if not isinstance(error, click.MissingParameter) or context is None or context.find_root().params.get("project"):
        return ""
    from pufferfish.cli.project import FILE, project_above

    folder = project_above()
    if folder is None:
        return ""
    folder = one_line(folder)
    return (
        f"; {folder}/{FILE} is read only in its own folder: run the command there, or give --project {folder} before it"
    )


def _closed() -> bool:
    """Whether there is no standard output (``>&-``); what is printed there is let go from now on."""
    if sys.stdout is not None:
        return False
    sys.stdout = open(os.devnull, "w")  # takes the number of the closed one, so that no file does
    return True


def _forget_output() -> None:
    """Let what could not be printed go, so that Python does not try again when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _nearest_choice(error: click.UsageError) -> str:
    """Return what a value was probably meant to be, of an option with a few known ones."""
    kind = error.param.type if isinstance(error, click.BadParameter) and error.param is not None else None
    refused = re.match(r"'(.*?)' is not one of", error.message)
    return (
        f".{did_you_mean(refused[1], kind.choices)}".rstrip(".") if isinstance(kind, click.Choice) and refused else ""
    )


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="pufferfish-privacy", prog_name="pufferfish")
@click.option(
    "--quiet-errors",
    is_flag=True,
    envvar="PUFFERFISH_QUIET_ERRORS",
    help="Errors and warnings show only what kind of thing failed, and nothing about the rows of a table: for logs "
    "that others read. Give it before the command, or set PUFFERFISH_QUIET_ERRORS=1.",
)
@click.option(
    "--project",
    metavar="FOLDER",
    envvar="PUFFERFISH_PROJECT",
    help="Folder with a pufferfish.toml, written by pufferfish init, of options that every command would repeat "
    "[default: the current folder, if it has one]. Give it before the command.",
)
def main(quiet_errors: bool, project: str | None) -> None:
    """Private statistics of correlated records.

    \b
    The usual way:
      pufferfish fit      PUBLIC.csv  --state activity --subject id --time t --max-gap 1min --output model.json
      pufferfish compare  model.json  --length 5000 --query histogram --epsilon 1
      pufferfish release  PRIVATE.csv --state activity --subject id --time t --max-gap 1min --model model.json
                                      --query histogram --epsilon 1 --output release.json --plot release.png
    """
    from pufferfish.cli.project import enter

    enter(project)
