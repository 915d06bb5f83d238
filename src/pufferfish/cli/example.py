"""``pufferfish example``: made-up tables, those of the documentation, to try every command on."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import click

from pufferfish._base.reading import display_path
from pufferfish._base.writing import Kind, Output
from pufferfish.cli.messages import say
from pufferfish.errors import ParameterError

_NEXT = {"rest": {"rest": 0.95, "active": 0.05}, "active": {"active": 0.85, "rest": 0.15}}
"""How often each state follows each."""

_WALKS = {"rest": {"rest": 0.97, "walk": 0.03}, "walk": {"walk": 0.92, "rest": 0.06, "run": 0.02}}
_WALKS |= {"run": {"run": 0.9, "walk": 0.1}}

_PEOPLE = {"survey-2019.csv": (8, datetime(2019, 5, 6), 2), "steps.csv": (6, datetime(2020, 1, 31), 3)}
"""How many people, the first day, how many days."""

_WEEK = {"walks-2019.csv": (10, datetime(2019, 5, 6), 1), "week-2020.csv": (1, datetime(2020, 1, 6), 7)}

_METERS = {"meter-2019.csv": (datetime(2019, 1, 7), 28), "meter-2020.csv": (datetime(2020, 1, 6), 28)}
"""The first day, a Monday, and how many days."""

_WATTS = {"asleep": (130, 420), "away": (110, 380), "home": (260, 1350), "cooking": (1300, 4700)}
"""Between which watts a household's power is."""

_WATTS_STAY = 0.9
"""How often the next minute has the same appliances on, and about the same watts."""

_EXAMPLE = Kind(
    "example",
    lambda _: True,
    "existing files are never replaced. Name another folder, as in pufferfish example FOLDER, or move this file away "
    "first",
    (".csv",),
)


@click.command("example")
@click.argument("folder", default=".", type=str)
@click.option("--week", is_flag=True, help="Instead: a week of one person, minute by minute.")
@click.option("--power", is_flag=True, help="Instead: a household's power meter, minute by minute.")
def example_command(folder: str, week: bool, power: bool) -> None:
    """Write two made-up tables into FOLDER [default: here]: survey-2019.csv, which is public, and steps.csv, private.

    Both say minute by minute who was at rest and who was active: the tables of the examples in the documentation. With
    --week they are walks-2019.csv, public, and week-2020.csv, private; with --power meter-2019.csv and meter-2020.csv.
    Files that are there are never replaced.

    \b
    Example:
      pufferfish example
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 1min --output model.json
      pufferfish example --week
      pufferfish example --power
    """
    if week and power:
        raise ParameterError("--week and --power are two examples: call pufferfish example once for each")
    where = Path(folder)
    if not where.is_dir():
        raise ParameterError(f"there is no folder {display_path(folder)}: make it first, or leave it out for this one")
    if power:
        tables = {name: _meter(*asked) for name, asked in _METERS.items()}
    else:
        tables = {
            name: _people(*asked, _WALKS if week else _NEXT) for name, asked in (_WEEK if week else _PEOPLE).items()
        }
    paths = [where / name for name in tables]
    with ExitStack() as stack:  # none is written where another is in the way
        outputs = [stack.enter_context(Output(path, _EXAMPLE, overwrite=False)) for path in paths]
        for output, rows in zip(outputs, tables.values(), strict=True):
            output.write(("\n".join(rows) + "\n").encode())
    reading = "--state watts --time minute" if power else "--state activity --subject id --time minute"
    bins = ' --bins "0,500,...,5000"' if power else ""
    say(f"written: {', '.join(map(str, paths))}")
    say(f"made up; read both with {reading} --max-gap 1min{bins}")


def _chance(*of: object) -> float:
    """Return a number from 0 to 1 that follows from a digest of names: nothing is drawn at random but noise."""
    return int.from_bytes(hashlib.sha256(",".join(map(str, of)).encode()).digest()[:4]) / 2**32


def _people(people: int, first: datetime, days: int, follows: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the rows of a Markov chain for each person, one each minute."""
    yield "id,sex,minute,activity"
    times = [str(first + timedelta(minutes=minute)) for minute in range(days * 1440)]
    for person in range(people):
        who, state = f"p{person + 1},{'fm'[person % 2]}", "rest"
        for time in times:
            yield f"{who},{time},{state}"
            state = _drawn(follows[state], _chance(who, time))


def _drawn(shares: Mapping[str, float], chance: float) -> str:
    """Return the state that a number from 0 to 1 falls on, where states lie side by side, each as wide as its share."""
    *firsts, last = shares
    for state in firsts:
        chance -= shares[state]
        if chance < 0:
            return state
    return last


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
