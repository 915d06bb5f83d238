"""``pufferfish example``: made-up tables, those of the documentation, to try every command on."""

import hashlib
from collections.abc import Iterator
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

_PEOPLE = {"survey-2019.csv": (8, datetime(2019, 5, 6), 2), "steps.csv": (6, datetime(2020, 1, 31), 3)}
"""How many people, the first day, how many days."""

_METERS = {"meter-2019.csv": (datetime(2019, 1, 7), 28), "meter-2020.csv": (datetime(2020, 1, 6), 28)}
"""The first day, a Monday, and how many days."""

_WATTS = {"asleep": (130, 420), "away": (110, 380), "home": (260, 1350), "cooking": (1300, 4700)}
"""Between which watts a household's power is."""

_WATTS_STAY = 0.9
"""How often the next minute has the same appliances on, and about the same watts."""

_EXAMPLE = Kind(
    "example",
    lambda _: True,
    "nothing is ever written over. Name another folder, as in pufferfish example FOLDER, or move this file away first",
    (".csv",),
)


@click.command("example")
@click.argument("folder", default=".", type=str)
@click.option("--power", is_flag=True, help="Instead: a household's power meter, minute by minute.")
def example_command(folder: str, power: bool) -> None:
    """Write two made-up tables into FOLDER [default: here]: survey-2019.csv, which is public, and steps.csv, private.

    Both say minute by minute who was at rest and who was active: the tables of the examples in the documentation. With
    --power they are meter-2019.csv, public, and meter-2020.csv, private. Files that are there are never replaced.

    \b
    Example:
      pufferfish example
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 10min --output model.json
      pufferfish example --power
    """
    where = Path(folder)
    if not where.is_dir():
        raise ParameterError(f"there is no folder {shown(folder)}: make it first, or leave it out for this one")
    tables = (
        {name: _meter(*asked) for name, asked in _METERS.items()}
        if power
        else {name: _people(*asked) for name, asked in _PEOPLE.items()}
    )
    paths = [where / name for name in tables]
    with ExitStack() as stack:  # none is written where another is in the way
        outputs = [stack.enter_context(Output(path, _EXAMPLE, overwrite=False)) for path in paths]
        for output, rows in zip(outputs, tables.values(), strict=True):
            output.write(("\n".join(rows) + "\n").encode())
    reading = "--state watts --time minute" if power else "--state activity --subject id --time minute"
    bins = ' --bins "0,500,...,5000"' if power else ""
    click.echo(printable(f"written: {', '.join(map(str, paths))}"))
    click.echo(f"made up; read both with {reading} --max-gap 10min{bins}")


def _chance(*of: object) -> float:
    """Return a number from 0 to 1 that follows from a digest of names: nothing is drawn at random but noise."""
    return int.from_bytes(hashlib.sha256(",".join(map(str, of)).encode()).digest()[:4]) / 2**32


def _people(people: int, first: datetime, days: int) -> Iterator[str]:
    """Yield the rows of a Markov chain for each person, one each minute."""
    yield "id,sex,minute,activity"
    times = [str(first + timedelta(minutes=minute)) for minute in range(days * 1440)]
    for person in range(people):
        who, state = f"p{person + 1},{'fm'[person % 2]}", 0
        for time in times:
            yield f"{who},{time},{_STATES[state]}"
            state = state if _chance(who, time) < _STAYS[state] else 1 - state


def _meter(first: datetime, days: int) -> Iterator[str]:
    """Yield the rows of a household's power, one each minute."""
    yield "minute,watts"
    part, watts = "", 0
    for minute in range(days * 1440):
        time = first + timedelta(minutes=minute)
        doing = _doing(time)
        if doing != part or _chance("changes", time) > _WATTS_STAY:
            low, high = _WATTS[doing]
            part, watts = doing, round(low + (high - low) * _chance("watts", time) ** 2)
        yield f"{time},{watts + round(20 * _chance('wobbles', time))}"


def _doing(time: datetime) -> str:
    """Return what the household does, in quarters of an hour: not at the same time every day."""
    hour = time.hour + time.minute / 60 + 1.5 * _chance("late", time.date()) - 0.75
    if not 6.5 <= hour < 23:
        return "asleep"
    if time.weekday() < 5 and 8.5 <= hour < 16.5:
        return "away"
    meal = 7 <= hour < 7.5 or 18.5 <= hour < 19.5
    return "cooking" if meal and _chance("cooks", time.date(), time.hour, time.minute // 15) < 0.8 else "home"
