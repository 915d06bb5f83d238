"""``pufferfish example``: the two tables of the documentation, made up, to try every command on."""

import hashlib
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import click

from pufferfish.errors import ParameterError, printable
from pufferfish.files import Kind, Output
from pufferfish.files.reading import shown

__all__ = ["example_command"]

_STATES = ("rest", "active")
_STAYS = (0.95, 0.85)
"""How often the next minute is as this one."""

_TABLES = {"survey-2019.csv": (8, datetime(2019, 5, 6), 2), "steps.csv": (6, datetime(2020, 1, 31), 3)}
"""How many people, the first day, how many days."""

_EXAMPLE = Kind(
    "example",
    lambda _: True,
    "nothing is ever written over. Name another folder, as in pufferfish example FOLDER, or move this file away first",
    (".csv",),
)


@click.command("example")
@click.argument("folder", default=".", type=str)
def example_command(folder: str) -> None:
    """Write two made-up tables into FOLDER [default: here]: survey-2019.csv, which is public, and steps.csv, private.

    Both say minute by minute who was at rest and who was active: the tables of the examples in the documentation. Files
    that are there are never replaced.

    \b
    Example:
      pufferfish example
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 10min --output model.json
    """
    where = Path(folder)
    if not where.is_dir():
        raise ParameterError(f"there is no folder {shown(folder)}: make it first, or leave it out for this one")
    paths = [where / name for name in _TABLES]
    with ExitStack() as stack:  # none is written where another is in the way
        outputs = [stack.enter_context(Output(path, _EXAMPLE, overwrite=False)) for path in paths]
        for output, asked in zip(outputs, _TABLES.values(), strict=True):
            output.write(_table(*asked).encode())
    click.echo(printable(f"written: {', '.join(map(str, paths))}"))
    click.echo("made up; read both with --state activity --subject id --time minute --max-gap 10min")


def _table(people: int, first: datetime, days: int) -> str:
    """Return a table of a Markov chain for each person, a row each minute.

    Whether a state stays follows from a digest of who and when: nothing is drawn at random but noise.
    """
    rows = ["id,sex,minute,activity"]
    times = [str(first + timedelta(minutes=minute)) for minute in range(days * 1440)]
    for person in range(people):
        who, state = f"p{person + 1},{'fm'[person % 2]}", 0
        for time in times:
            rows.append(f"{who},{time},{_STATES[state]}")
            digest = hashlib.sha256(f"{who},{time}".encode()).digest()
            state = state if int.from_bytes(digest[:4]) < _STAYS[state] * 2**32 else 1 - state
    return "\n".join(rows) + "\n"
