"""Options that several commands share, and how their texts are read."""

import csv
from collections.abc import Callable, Sequence
from typing import Any

import click

from pufferfish.cli.numbers import plain_number, plain_whole
from pufferfish.errors import ParameterError, QueryError
from pufferfish.hints import did_you_mean
from pufferfish.mechanisms import BOUNDS, MECHANISMS, InfluenceBound, LeakagePropagation, MarkovQuilt, Mechanism
from pufferfish.queries import (
    Count,
    Frequency,
    Histogram,
    Marginals,
    Mean,
    Query,
    Subset,
    Sum,
    Switches,
    Transitions,
    refuse_pooling,
)
from pufferfish.theta.model_class import Theta

__all__ = [
    "ACCURACY_HELP",
    "ALPHA_HELP",
    "DEFAULT_MECHANISM",
    "QUERY_HELP",
    "bound_named",
    "mechanism_named",
    "node_names",
    "parse_lengths",
    "parse_query",
    "secret_settings",
    "split_list",
    "table_options",
]

DEFAULT_MECHANISM = LeakagePropagation.name

_OF_ALL_STATES = ("histogram", "histogram-counts", *Transitions.kinds, *Switches.kinds)
_OF_STATES = ("count", "frequency")
_OF_VALUES = ("sum", "mean")
_OF_COLUMNS = ("marginals", "marginal-counts")

ACCURACY_HELP = "Instead of ε: the error that is allowed, in the query's units; the least ε is found."
ALPHA_HELP = "With --accuracy: the probability of a larger error in one value [default: 0.05]."
QUERY_HELP = (
    "histogram (shares), histogram-counts, transitions (how often each state is followed by each), switches (changes "
    "of state), transition-rates and switch-rate (both per record), count:STATE,…, frequency:STATE,…, sum:V1,V2,… or "
    "mean:STATE=V,…,*=V (* is all other states); for networks marginals (shares in every column) and marginal-counts, "
    "and the others on --columns that have the same states [default: histogram; marginals for networks]"
)


def table_options(
    *, networks: bool = True, state_needed: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options that say how a table is read: of chains, or of networks too."""
    not_here = "; not for networks" if networks else ""
    columns = click.option(
        "--columns", metavar="A,B,…", help="Nodes of a network to read [default: all with a column]."
    )
    options = [
        click.option(
            "--state", required=state_needed, metavar="COL", help=f"Column of states, or of numbers to bin{not_here}."
        ),
        *([columns] if networks else []),
        click.option("--subject", metavar="COL", help="Column of the independent unit; without it, one chain."),
        click.option("--time", metavar="COL", help="Column of times (ISO date-times, dates, or numbers)."),
        click.option("--max-gap", metavar="LEN", help="Longest step between consecutive records: 10min, 1h, 90s, …"),
        click.option("--step", metavar="LEN", help="Time that one step takes [default: the most frequent one]."),
        click.option("--bins", metavar="EDGES", help='Edges of bins of a numeric column: "0,200,...,10200".'),
        click.option("--where", metavar="EXPR", help="Rows to keep, such as \"awake and group == 'A'\"."),
        click.option(
            "--missing",
            type=click.Choice(["unobserved", "split", "refuse"]),
            help="Records without a state: not observed; a public gap; or an error "
            f"[default: unobserved{'; refuse for networks' if networks else ''}].",
        ),
        click.option(
            "--gaps",
            type=click.Choice(["unobserved", "independent"]),
            default="unobserved",
            show_default=True,
            help="A subject's segments: one chain with unobserved records, or independent chains (as in the paper).",
        ),
        _spark_option(),
    ]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _spark_option() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give the option that reads tables on a cluster."""
    return click.option(
        "--spark",
        metavar="MASTER",
        help="Read with Spark on a master such as spark://host:7077 or local[4]: files, folders or globs.",
    )


def mechanism_named(name: str | None) -> type[Mechanism]:
    """Return the mechanism that ``--mechanism`` names; propagation where none is named."""
    return next(mechanism for mechanism in MECHANISMS if mechanism.name == (name or DEFAULT_MECHANISM))


def secret_settings(text: str | None, mechanism: type[Mechanism], theta: Theta) -> dict[str, Any]:
    """Return what ``--secrets`` means for a mechanism."""
    secrets = node_names(text, theta)
    if secrets is None:
        return {}
    if not issubclass(mechanism, MarkovQuilt | LeakagePropagation):
        raise ParameterError(
            f"--secrets is for {MarkovQuilt.name} and {LeakagePropagation.name}: {mechanism.title} keeps all secret"
        )
    return {"secrets": secrets}


def bound_named(name: str | None) -> type[InfluenceBound]:
    """Return the mechanism that ``--mechanism`` names, of those that compose; the same default."""
    found = mechanism_named(name)
    return next(bound for bound in BOUNDS if bound is found)


def parse_query(
    text: str | None, theta: Theta, named: Sequence[Any] | None = None, present: Sequence[Any] | None = None
) -> Query:
    """Return the query of ``--query``.

    For networks ``named`` are the nodes of ``--columns``, and ``present`` those that a table has: the histogram of
    every column is of those that are there, and queries that take several columns for one are of those that were named.
    """
    if not theta.networks:
        if text in _OF_COLUMNS:
            raise QueryError(f"query {text!r} is for networks, and the model is made of Markov chains: ask a histogram")
        return _parse("histogram" if text is None else text)
    if text is None or text in _OF_COLUMNS:
        return Marginals(named if present is None else present, relative=text != "marginal-counts")
    found = _parse(text)
    found = found if named is None else Subset(found, named)
    refuse_pooling(found, theta.networks[0].node_states)
    return found


def node_names(text: str | None, theta: Theta) -> list[Any] | None:
    """Return the nodes of a list with commas, as the network names them."""
    if text is None:
        return None
    if not theta.networks:
        raise ParameterError("--columns and --secrets name nodes of a network, and the model is made of Markov chains")
    network = theta.networks[0]
    return [network.nodes[network.place(name)] for name in _each_once(split_list(text), text)]


def _parse(text: str) -> Query:
    kind, colon, argument = text.partition(":")
    if not colon and kind in Transitions.kinds:
        return Transitions(relative=kind != "transitions")
    if not colon and kind in Switches.kinds:
        return Switches(relative=kind != "switches")
    if kind in _OF_ALL_STATES and not colon:
        return Histogram(relative=kind == "histogram")
    parts = split_list(argument) if kind in (*_OF_STATES, *_OF_VALUES) and argument.strip() else []
    if kind in _OF_STATES and parts:
        parts = _each_once(parts, text)
        return Count(parts) if kind == "count" else Frequency(parts)
    if kind in _OF_VALUES and parts:
        of = Sum if kind == "sum" else Mean
        named = [part.partition("=") for part in parts]
        if all(equals for _, equals, _ in named):
            values = {state.strip(): _value(value, text) for state, _, value in named}
            if len(values) < len(named):
                raise QueryError(f"query {text!r} gives a state two values: each state has one")
            return of(values)
        return of([_value(part, text) for part in parts])
    if not text.strip():
        raise QueryError("--query is empty: name one, such as histogram, or leave it out")
    kinds = (*_OF_ALL_STATES, *_OF_STATES, *_OF_VALUES, *_OF_COLUMNS)
    if kind in (*_OF_ALL_STATES, *_OF_COLUMNS):
        raise QueryError(
            f"query {text!r}: {kind} is of all states and takes nothing after it; count:{argument or 'STATE'} counts "
            "some of them"
        )
    if kind in kinds:
        example = f"{kind}:STATE,…" if kind in _OF_STATES else f"{kind}:STATE=1,*=0 (* is all other states)"
        raise QueryError(f"query {text!r} names no state: expected {example}")
    raise QueryError(f"query {text!r} is not understood.{did_you_mean(kind, kinds)} Queries: {', '.join(kinds)}")


def _value(given: str, text: str) -> float:
    """Return the number that a state is worth, which is text on a command line."""
    try:
        return plain_number(given)
    except ValueError:
        raise QueryError(
            f"query {text!r} has the value {given.strip()!r}, expected a number such as 1, 0.5 or 1e-3"
        ) from None


def split_list(text: str) -> list[str]:
    """Parts of a list with commas; a part in double quotes may hold some."""
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise ParameterError(f'{text!r} is no list: {error}; quote a part with commas as "a,b"') from error
    parts = [part.strip() for part in (rows[0] if rows else [])]
    if not parts or not all(parts):
        raise ParameterError(f"{text!r} has an empty part: take the odd comma out, or name what is missing")
    return parts


def _each_once(parts: list[str], text: str) -> list[str]:
    """Refuse a name that is given twice."""
    for i, part in enumerate(parts):
        if part in parts[:i]:
            raise ParameterError(f"{text!r} names {part!r} twice: name it once")
    return parts


def parse_lengths(texts: tuple[str, ...]) -> list[int]:
    """Return the lengths of all ``--length``, each one or several with commas."""
    return [_whole(part) for text in texts for part in text.split(",")]


def _whole(text: str) -> int:
    try:
        return plain_whole(text)
    except ValueError:
        raise ParameterError(f"--length is {text!r}, expected a whole number of records, such as 5000") from None
