"""What ``--query`` can say: a word for each query, and what follows it; a new query has a line in ``_WORDS``."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pufferfish._base.words import did_you_mean, names_of
from pufferfish.cli.numbers import plain_number
from pufferfish.cli.options import each_once, split_list
from pufferfish.errors import QueryError, printable
from pufferfish.fit.model_file import Model
from pufferfish.queries import (
    CDF,
    Bouts,
    Count,
    Frequency,
    Histogram,
    Joint,
    Marginals,
    Mean,
    Quantiles,
    Query,
    Subset,
    Sum,
    Switches,
    Transitions,
    refuse_pooling,
)
from pufferfish.theta.model_class import Theta

__all__ = ["QUERY_HELP", "order_of_states", "parse_query"]


def _values(parts: list[str], text: str) -> dict[str, float] | list[float]:
    """Return what states are worth: by name, or in their order."""
    named = [part.rpartition("=") for part in parts]  # a state such as >=100 has one too
    if not all(equals for _, equals, _ in named):
        return [_value(part, text) for part in parts]
    values = {state.strip(): _value(value, text) for state, _, value in named}
    if len(values) < len(named):
        raise QueryError(f"query {text!r} gives a state two values: each state has one")
    return values


def _shares(parts: list[str], text: str) -> list[float]:
    return [_value(part, text) for part in parts]


def _value(given: str, text: str) -> float:
    """Return the number that a state is worth, which is text on a command line."""
    try:
        return plain_number(given)
    except ValueError:
        raise QueryError(
            f"query {text!r} has the value {given.strip()!r}, expected a number such as 1, 0.5 or 1e-3"
        ) from None


class _Parts(NamedTuple):
    """What follows a word and its colon: how help shows it, an example, and how its parts are read."""

    shown: str
    example: str
    read: Callable[[list[str], str], Any]
    name: str = "state"


_STATES = _Parts("STATE,…", "STATE,…", each_once)
_VALUES = _Parts("STATE=V,…,*=V", "STATE=1,*=0 (* is all other states)", _values)
_NODES = _Parts("NODE,NODE,…", "NODE,NODE,…", each_once, "node")
_SHARES = _Parts(".1,.5,.9", ".1,.5,.9, shares of the records", _shares, "quantile")


class _Word(NamedTuple):
    """The query that a word names, made of what follows it; with ``parts`` None nothing does."""

    make: Callable[..., Query]
    parts: _Parts | None = None


_WORDS: Mapping[str, _Word] = {
    "histogram": _Word(Histogram),
    "histogram-counts": _Word(partial(Histogram, relative=False)),
    "count": _Word(Count, _STATES),
    "frequency": _Word(Frequency, _STATES),
    "sum": _Word(Sum, _VALUES),
    "mean": _Word(Mean, _VALUES),
    "cdf": _Word(CDF),
    "cdf-counts": _Word(partial(CDF, relative=False)),
    "quantiles": _Word(Quantiles, _SHARES),
    "transitions": _Word(Transitions),
    "transition-rates": _Word(partial(Transitions, relative=True)),
    "bouts": _Word(Bouts, _STATES),
    "switches": _Word(Switches),
    "switch-rate": _Word(partial(Switches, relative=True)),
}
_OF_COLUMNS = ("marginals", "marginal-counts")
_TOGETHER: Mapping[str, _Word] = {
    "joint": _Word(Joint, _NODES),
    "joint-counts": _Word(partial(Joint, relative=False), _NODES),
}
"""Queries of networks that name their columns themselves."""

QUERY_HELP = (
    f"{', '.join(f'{name}:{word.parts.shown}' if word.parts else name for name, word in _WORDS.items())} (* is all "
    "other states; a state with a comma is given in double quotes; V1,V2,… are the values of all states in their "
    "order; a histogram is of shares; cdf and quantiles are of ordered states, such as bins; transitions: how often "
    "each state is followed by each; bouts: how often states begin; switches: changes of state; rates are per record); "
    "for networks marginals (shares in every column) and marginal-counts, joint:NODE,NODE,… and "
    "joint-counts:NODE,NODE,… (rows in each combination of their states), and the others on --columns that have the "
    "same states "
    "[default: histogram; marginals for networks]"
)


def order_of_states(query: Query, model: Model) -> str | None:
    """Say in which order a cumulative query takes states that are no bins: it is that of the model's list."""
    if not query.is_cumulative or model.bins is not None:
        return None
    return f"states in the order of the model, lowest first: {printable(names_of(model.theta.states))}"


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
        if text is not None and text.partition(":")[0] in _TOGETHER:
            raise QueryError(
                f"query {text!r} counts columns of a network's table together, and the model is made of Markov chains: "
                "how often each state is followed by each is --query transitions"
            )
        return _parse("histogram" if text is None else text)
    if text is None or text in _OF_COLUMNS:
        return Marginals(named if present is None else present, relative=text != "marginal-counts")
    found = _parse(text)
    if isinstance(found, Joint):
        network = theta.networks[0]
        return Joint([network.nodes[network.place(node)] for node in found.records], relative=found.relative)
    found = found if named is None else Subset(found, named)
    refuse_pooling(found, theta.networks[0].node_states)
    return found


def _parse(text: str) -> Query:
    name, colon, argument = text.partition(":")
    if not text.strip():
        raise QueryError("--query is empty: name one, such as histogram, or leave it out")
    known = {**_WORDS, **_TOGETHER}
    if name not in known and name not in _OF_COLUMNS:
        words = (*known, *_OF_COLUMNS)
        raise QueryError(f"query {text!r} is not understood.{did_you_mean(name, words)} Queries: {', '.join(words)}")
    word = known.get(name)
    if word is None or word.parts is None:
        if colon or word is None:
            raise QueryError(
                f"query {text!r}: {name} is of all states and takes nothing after it; count:{argument or 'STATE'} "
                "counts some of them"
            )
        return word.make()
    if not argument.strip():
        raise QueryError(f"query {text!r} names no {word.parts.name}: expected {name}:{word.parts.example}")
    return word.make(word.parts.read(split_list(argument), text))
