"""Options that several commands share, and how their texts are read."""

import csv
from collections.abc import Callable
from typing import Any

import click

from pufferfish.errors import ParameterError, QueryError
from pufferfish.mechanisms import BOUNDS, MECHANISMS, InfluenceBound, LeakagePropagation, Mechanism
from pufferfish.queries import Count, Frequency, Histogram, Mean, Query, Sum

__all__ = [
    "DEFAULT_MECHANISM",
    "QUERY_HELP",
    "bound_named",
    "mechanism_named",
    "parse_lengths",
    "parse_query",
    "split_list",
    "table_options",
]

DEFAULT_MECHANISM = LeakagePropagation.name

QUERY_HELP = "histogram (shares), histogram-counts, count:STATE,…, frequency:STATE,…, sum:V1,V2,… or mean:STATE=V,…"


def table_options(*, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options that say how a table is read."""
    options = [
        click.option("--state", required=required, metavar="COL", help="Column of states, or of numbers to bin."),
        click.option("--subject", metavar="COL", help="Column of the independent unit; without it, one chain."),
        click.option("--time", metavar="COL", help="Column of times (ISO date-times, dates, or numbers)."),
        click.option("--max-gap", metavar="LEN", help="Longest step between consecutive records: 10min, 1h, 90s, …"),
        click.option("--step", metavar="LEN", help="Length of one step [default: the most frequent one]."),
        click.option("--bins", metavar="EDGES", help='Edges of bins of a numeric column: "0,200,...,10200".'),
        click.option("--where", metavar="EXPR", help="Rows to keep, such as \"awake and group == 'A'\"."),
        click.option(
            "--missing",
            type=click.Choice(["unobserved", "split", "refuse"]),
            default="unobserved",
            show_default=True,
            help="Records without a state: not observed; a public gap; or an error.",
        ),
        click.option(
            "--gaps",
            type=click.Choice(["unobserved", "independent"]),
            default="unobserved",
            show_default=True,
            help="A subject's segments: one chain with unobserved records, or independent chains (as in the paper).",
        ),
    ]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def mechanism_named(name: str) -> type[Mechanism]:
    """Return the mechanism that ``--mechanism`` names."""
    return next(mechanism for mechanism in MECHANISMS if mechanism.name == name)


def bound_named(name: str) -> type[InfluenceBound]:
    """Return the mechanism that ``--mechanism`` names, of those that compose."""
    return next(bound for bound in BOUNDS if bound.name == name)


def parse_query(text: str) -> Query:
    """Return the query of ``--query``."""
    kind, _, argument = text.partition(":")
    parts = split_list(argument)
    if kind in ("histogram", "histogram-counts") and not argument:
        return Histogram(relative=kind == "histogram")
    if kind in ("count", "frequency") and parts:
        return Count(parts) if kind == "count" else Frequency(parts)
    if kind in ("sum", "mean") and parts:
        of = Sum if kind == "sum" else Mean
        named = [part.partition("=") for part in parts]
        if all(equals for _, equals, _ in named):
            values = {state.strip(): value for state, _, value in named}
            if len(values) < len(named):
                raise QueryError(f"query {text!r} gives a state two values: each state has one")
            return of(values)
        return of(parts)
    raise QueryError(f"query {text!r} is not understood. Queries: {QUERY_HELP}")


def split_list(text: str) -> list[str]:
    """Parts of a list with commas; a part in double quotes may hold some."""
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise ParameterError(f'{text!r} is no list: {error}; quote a part with commas as "a,b"') from error
    return [part.strip() for part in (rows[0] if rows else []) if part.strip()]


def parse_lengths(texts: tuple[str, ...]) -> list[int]:
    """Return the lengths of all ``--length``, each one or several with commas."""
    return [_whole(part) for text in texts for part in text.split(",")]


def _whole(text: str) -> int:
    try:
        return int(text.strip().replace("_", ""))
    except ValueError:
        raise ParameterError(f"--length is {text!r}, expected a whole number of records") from None
