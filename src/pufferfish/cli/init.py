"""``pufferfish init``: write ``pufferfish.toml``, which holds what every command of a folder would repeat."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import click

from pufferfish._base.checked import plain_number
from pufferfish._base.reading import is_address
from pufferfish._base.view import counted
from pufferfish._base.words import did_you_mean, names_of
from pufferfish._base.writing import Kind, check_output, write_whole
from pufferfish.cli._tables import ChainReading
from pufferfish.cli.messages import rows_are_read, say
from pufferfish.cli.options import PROTECT_HELP, WITHIN_HELP, CoverOptions, argument, command, one_or_list, option
from pufferfish.cli.print import print_warnings
from pufferfish.cli.project import load_project, new_file
from pufferfish.data import columns, read_lengths
from pufferfish.data.read import check_reading
from pufferfish.data.sequences import Sequences
from pufferfish.data.steps import skips_steps
from pufferfish.errors import ParameterError, shortened
from pufferfish.ledger import shown_where
from pufferfish.ledger.book import positive
from pufferfish.mechanisms.protection import stretch_asked

_PROJECT = Kind(
    "project file",
    lambda content: b"[table]" in content,
    "give --overwrite to replace it, or change it in an editor",
    (".toml",),
)

_SUBJECTS = ("id", "subject", "patient", "person", "participant", "user", "who", "household", "name")
_TIMES = ("time", "timestamp", "datetime", "minute", "date", "day", "hour")


@dataclass(frozen=True, kw_only=True)
class ProjectReading(ChainReading):
    """How every command of a project reads its tables; which rows, and with which cluster, each command says."""

    where: str | None = field(default=None, init=False)
    spark: str | None = field(default=None, init=False)


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """What a project holds."""

    tables: tuple[str, ...] = argument("TABLE...", required=True)
    reading: ProjectReading
    model: str = option(
        "Model file: the class Θ; pufferfish fit writes it.", "FILE", default="model.json", show_default=True
    )
    ledger: str = option(
        "Ledger that every release is charged to: a file, or the address of a database.",
        "FILE",
        default="book.json",
        show_default=True,
    )
    budget: float | None = option("The most that all releases may leak together, such as 1 [asked for].", "E")
    protect: str | None = option(PROTECT_HELP, "1h")
    within: str | None = option(WITHIN_HELP, "R")
    above: CoverOptions
    overwrite: bool = option("Replace an earlier pufferfish.toml.")


@command("init", InitOptions)
def init_command(options: InitOptions) -> None:
    """Write pufferfish.toml for TABLE: how it is read, the model, the ledger and its budget.

    What no option says is asked, on a terminal. It looks at the names of the columns, at times and at subjects, never
    at states. Every command of this folder then reads the file, and options given to a command come first.

    \b
    Example:
      pufferfish init steps.csv --state activity --subject id --time minute --max-gap 1min --budget 1
      pufferfish fit survey-2019.csv
      pufferfish ledger create
      pufferfish release --query histogram --epsilon 0.5
    """
    file = new_file()
    target = check_output(file, _PROJECT, overwrite=options.overwrite)
    rows_are_read()
    present = columns(one_or_list(options.tables))
    reading, public = _reading(options, present)
    budget = options.budget
    if budget is None:
        budget = plain_number(_asked("--budget", "Budget of all releases together, ε", "1"))
    budget = positive(budget, "budget")
    if options.protect is not None:
        step = None if public is None else public.base.step
        stretch_asked(options.protect, step or options.protect)  # where none is known any length of time will do
    keys: dict[str, Any] = {"model": options.model, "ledger": options.ledger, "budget": budget}
    keys |= {name: value for name in ("protect", "within") if (value := getattr(options, name)) is not None}
    above = options.above
    above = above if above.words is None else replace(above, words=_seen(above.words, file))
    paths = [_seen(path, file) for path in options.tables]
    content = _written(keys, {"path": one_or_list(paths), **reading}, above)
    write_whole(target, content.encode(), _PROJECT, overwrite=options.overwrite)
    load_project(file)  # what this program wrote, it reads
    if public is not None:
        subjects = "1 chain" if public.names is None else counted(public.subjects, "subject")
        step = "" if public.usual_step is None else f", most of them {public.usual_step} after the one before"
        say(f"{counted(public.records, 'record')} of {subjects}{step}")
        print_warnings(public.warnings)
    say(f"written: {file}")
    model, ledger = options.model, options.ledger
    say("next:")
    if not Path(model).exists():
        say(f"  pufferfish fit PUBLIC.csv    # writes {model}; never from this table")
    if not Path(ledger).exists():
        say(f"  pufferfish ledger create     # makes {shown_where(ledger)}")
    say("  pufferfish release --query histogram --epsilon 0.5")


def _reading(options: InitOptions, present: Sequence[str]) -> tuple[dict[str, Any], Sequences | None]:
    """Return how the table is read, and its public part; what is not given is asked."""
    given = {name: getattr(options.reading, name) for name in options.reading.given}
    for name in ("state", "subject", "time"):
        if name in given and given[name] not in present:
            what = f"--{name} is {shortened(repr(given[name]))}, but the table has no such column"
            raise ParameterError(f"{what}.{did_you_mean(given[name], present)} Columns are {names_of(present)}")
    if "state" not in given:
        left = [name for name in present if name not in given.values()]
        given["state"] = _asked("--state", f"Column of states ({', '.join(left)})", None, present)
    for name, usual, what in (("subject", _SUBJECTS, "subjects"), ("time", _TIMES, "times")):
        if name not in given and sys.stdin.isatty():
            left = [column for column in present if column not in given.values()]
            guess = next((column for column in left if column.lower() in usual), "")
            answer = click.prompt(f"Column of {what}, or nothing ({', '.join(left)})", default=guess)
            given |= {name: answer} if answer else {}
    if "time" in given and "max_gap" not in given and sys.stdin.isatty():
        given["max_gap"] = click.prompt("Longest time from one record to the next, such as 1min")
    check_reading(**given)
    public = None
    if "time" in given:
        asked = {name: given[name] for name in ("subject", "time", "time_zone", "ambiguous", "step") if name in given}
        if gap := given.get("max_gap"):
            public = read_lengths(one_or_list(options.tables), **asked, max_gap=gap)
            step = public.base.step
            if step is not None and skips_steps(public.base, step):  # every command would refuse it
                raise ParameterError(
                    f"max_gap is {public.base.max_gap} and the table's records are {step} apart: give max_gap='{step}'"
                )
    return given, public


def _asked(name: str, text: str, default: str | None, choices: Sequence[str] | None = None) -> str:
    """Ask on a terminal; elsewhere say which option is missing."""
    if not sys.stdin.isatty():
        raise ParameterError(f"give {name} as an option: this is not a terminal where questions can be asked")
    kind = None if choices is None else click.Choice(list(choices))
    return click.prompt(text, default=default, type=kind, show_choices=False)


def _seen(path: str, file: str) -> str:
    """Return a table as seen from the folder of the file."""
    if is_address(path):
        where, of_file = path.partition(":///")[::2]
        return path if where == "postgresql" or not of_file else f"{where}:///{_seen(of_file, file)}"
    return Path(os.path.relpath(path, os.path.dirname(file) or ".")).as_posix()


def _written(keys: dict[str, Any], table: dict[str, Any], above: CoverOptions) -> str:
    """Return the content of a file: JSON's texts, numbers and lists are TOML's; what is not given is a comment."""
    top, rows = ([f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in part.items()] for part in (keys, table))
    lines = ["# What every pufferfish command of this folder would repeat; options on a command line come first.", *top]
    report: list[str] = []
    for each in fields(CoverOptions):
        text = getattr(above, each.name)
        shown = json.dumps(text or each.metadata["example"], ensure_ascii=False)
        report.append(f"{'# ' if text is None else ''}{each.name} = {shown}")
    labels = ["# [labels]", '# rest = "At rest"    # how pages name states, outputs and groups']
    heading = "# What stands above every page of pufferfish report: take the # away, and write your own."
    return "\n".join([*lines, "", "[table]", *rows, "", heading, "[report]", *report, "", *labels]) + "\n"
