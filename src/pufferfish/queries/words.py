"""What a query is called where people type it: a word for each, and what may follow it.

The command line's ``--query`` and :func:`pufferfish.query` read the same words, which
:func:`pufferfish.named_queries` lists.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from pufferfish._base.checked import each_once, plain_number, split_list
from pufferfish._base.frozen import ReadOnly
from pufferfish._base.words import did_you_mean, names_of, number
from pufferfish.errors import ParameterError, QueryError, printable
from pufferfish.queries.of_columns import Joint, Marginals, Subset, refuse_pooling
from pufferfish.queries.of_states import (
    CDF,
    Bouts,
    Count,
    Frequency,
    Histogram,
    Mean,
    Quantiles,
    Sum,
    Switches,
    Transitions,
)
from pufferfish.queries.query import Query
from pufferfish.theta.model_class import Described, Theta, as_theta
from pufferfish.theta.states import intervals_of_states


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuery(ReadOnly):
    """A query with a name, as ``--query`` takes it: ``written`` with what follows its ``word`` in capitals."""

    word: str
    written: str
    meaning: str
    of_networks: bool = False


class BinValues(NamedTuple):
    """What each state counts as, how far values can be off, and which edges outer values are clamped to."""

    values: list[float]
    off: float
    clamped: tuple[float, float] | None


def named_queries() -> tuple[NamedQuery, ...]:
    """Return every named query that :func:`query` and ``--query`` understand.

    Examples
    --------
    >>> [each.written for each in named_queries()][:4]
    ['histogram', 'histogram-counts', 'count:STATE,…', 'share:STATE,…']
    """
    return tuple(
        NamedQuery(word=name, written=word.written(name), meaning=word.meaning, of_networks=word.of_networks)
        for name, word in _WORDS.items()
    )


def query(text: str, model: Any = None, *, columns: Sequence[Any] | None = None) -> Query:
    """Return the query that a text describes, as ``--query`` reads it.

    A :class:`QueryError` if the text is not understood, or does not go with the model.

    Parameters
    ----------
    text : str
        A word of :func:`named_queries`, and after a colon what it takes, as in ``"quantiles:.1,.5,.9"``.
    model : model, class or Model, optional
        What the table is described by: it knows the states and bins that ``"mean"``, ``"sum"`` and a range such as
        ``"share:>=180"`` are of, and the columns of networks.
    columns : sequence, optional
        Of networks the columns that are asked; by default all.

    Examples
    --------
    >>> query("frequency:rest")
    Frequency(states=('rest',))
    """
    if not isinstance(text, str):
        raise ParameterError(f'text is {text!r}, expected a query in words, such as "frequency:rest"')
    if model is None:
        if columns is not None:
            raise ParameterError("columns only work with a network: give model too")
        return _parse(text)
    theta = as_theta(model)
    if columns is not None and not theta.networks:
        raise ParameterError(
            "columns only work with a network, but the model consists of Markov chains: leave them out"
        )
    named = None if columns is None else [theta.networks[0].nodes[theta.networks[0].place(name)] for name in columns]
    return query_of(text, theta, named, bins=model.bins if isinstance(model, Described) else None)


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


def _value(part: str, text: str) -> float:
    try:
        return plain_number(part)
    except ValueError:
        raise QueryError(
            f"query {text!r} has the value {part.strip()!r}, expected a number such as 1, 0.5 or 1e-3"
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
    meaning: str
    parts: _Parts | None = None
    of_networks: bool = False

    def written(self, name: str) -> str:
        """Return how a query of this word is written."""
        return name if self.parts is None else f"{name}:{self.parts.shown}"


_SHARE = _Word(Frequency, "share of the records in some states; of numbers share:>=180 or share:70..180", _STATES)
_WORDS: Mapping[str, _Word] = {
    "histogram": _Word(Histogram, "share of the records in each state"),
    "histogram-counts": _Word(partial(Histogram, relative=False), "number of records in each state"),
    "count": _Word(Count, "number of records in some states; of numbers count:<70", _STATES),
    "share": _SHARE,
    "frequency": _SHARE,
    "sum": _Word(Sum, "sum of what the states are worth; of bins sum alone", _VALUES),
    "mean": _Word(Mean, "mean of what the states are worth; of bins mean alone", _VALUES),
    "cdf": _Word(CDF, "share of the records up to each state, of ordered states such as bins"),
    "cdf-counts": _Word(partial(CDF, relative=False), "number of records up to each state"),
    "quantiles": _Word(Quantiles, "the states at which these shares of the records are reached", _SHARES),
    "transitions": _Word(Transitions, "how often each state follows each"),
    "transition-rates": _Word(partial(Transitions, relative=True), "the same per record"),
    "bouts": _Word(Bouts, "how often some states begin", _STATES),
    "switches": _Word(Switches, "how often the state changes"),
    "switch-rate": _Word(partial(Switches, relative=True), "the same per record"),
    "marginals": _Word(Marginals, "share of the rows in each state of every column", None, True),
    "marginal-counts": _Word(
        partial(Marginals, relative=False), "number of rows in each state of every column", None, True
    ),
    "joint": _Word(Joint, "share of the rows in each combination of states of some columns", _NODES, True),
    "joint-counts": _Word(partial(Joint, relative=False), "number of rows in each combination", _NODES, True),
}

_CHAINS, _NETWORKS = (
    ", ".join(word.written(name) for name, word in _WORDS.items() if word.of_networks is of) for of in (False, True)
)

QUERY_WORDS = (
    f"{_CHAINS} (* is all other states; a state with a comma is given in double quotes; V1,V2,… are the values of "
    "all states in their order; a histogram is of shares; cdf and quantiles are of ordered states, such as bins; "
    "transitions: how often each state follows each; of bins also mean and sum alone, and share:>=180, "
    "share:70..180 or count:<70; bouts: how often states begin; switches: changes of state; rates are per record); for "
    f"networks {_NETWORKS} (marginals: shares in every column; joint: rows in each combination of states), and the "
    "others on columns that have the same states"
)
"""What a query can be, as help says it."""


def notes_of_query(query: Query, model: Described) -> list[str]:
    """Return what is to be known of a query before it is answered: the order of states, what bins count as."""
    order = f"states in the order of the model, lowest first: {printable(names_of(model.theta.states))}"
    ordered = [order] if query.is_cumulative and model.bins is None else []
    return [*ordered, *filter(None, [_middles_of_bins(query, model)])]


def query_of(
    text: str | None,
    theta: Theta,
    named: Sequence[Any] | None = None,
    present: Sequence[Any] | None = None,
    bins: Sequence[float] | None = None,
) -> Query:
    """Return the query of ``--query``, by default a histogram, of ``named`` nodes, those ``present``, or ``bins``."""
    word = _word(text or "")
    if not theta.networks:
        if word is not None and word.of_networks:
            raise QueryError(
                f"query {text!r} is for networks, but the model consists of Markov chains: ask for a histogram, or "
                "for transitions (how often each state follows each)"
            )
        return _of_numbers(text, theta.states, bins) or _parse("histogram" if text is None else text)
    if text is None or (word is not None and word.of_networks and word.parts is None):
        return Marginals(named if present is None else present, relative=text != "marginal-counts")
    asked = _parse(text)
    if isinstance(asked, Joint):
        network = theta.networks[0]
        return Joint([network.nodes[network.place(node)] for node in asked.records], relative=asked.relative)
    asked = asked if named is None else Subset(asked, named)
    refuse_pooling(asked, theta.networks[0].node_states)
    return asked


def _of_numbers(text: str | None, states: Sequence[str], bins: Sequence[float] | None) -> Query | None:
    """Return a query of states that are numbers or bins, which takes no list of states; None for all others."""
    name, _, argument = (text or "").partition(":")
    if intervals_of_states(states) is None:
        return None
    if text in ("mean", "sum"):
        values = values_of_bins(states, bins).values
        return Mean(values) if text == "mean" else Sum(values)
    if name in ("share", "frequency", "count") and is_range(argument.strip()) and argument not in states:
        within = states_within(states, argument.strip())
        return Count(within) if name == "count" else Frequency(within)
    return None


def bins_at_middles(query: Any, states: Sequence[str], edges: Sequence[float] | None) -> BinValues | None:
    """Return what bins count as, where a query is the mean or sum of their middles; None of all others."""
    if not isinstance(query, Mean | Sum) or intervals_of_states(states) is None:
        return None
    known = values_of_bins(states, edges)
    if known.clamped is None or repr(query) not in (repr(Mean(known.values)), repr(Sum(known.values))):
        return None
    return known


def _middles_of_bins(query: Query, model: Described) -> str | None:
    """Say how far a mean or sum of bins can be off beside its noise, where each bin counts at its middle."""
    known = None if model.theta.networks else bins_at_middles(query, model.theta.states, model.bins)
    if known is None or known.clamped is None:
        return None
    low, high = known.clamped
    off = f"at most {number(known.off)}" + ("" if isinstance(query, Mean) else " a record")
    return (
        f"each bin counts as its middle, so the {query.kind} may have an error of {off} besides the noise; values "
        f"below {number(low)} count as {number(low)}, and those of {number(high)} or more as {number(high)}"
    )


def _word(text: str) -> _Word | None:
    return _WORDS.get(text.partition(":")[0])


def _parse(text: str) -> Query:
    name, colon, argument = text.partition(":")
    if not text.strip():
        raise QueryError("the query is empty: name one, such as histogram, or leave it out")
    word = _word(text)
    if word is None:
        raise QueryError(f"query {text!r} is not understood.{did_you_mean(name, _WORDS)} Queries: {', '.join(_WORDS)}")
    if word.parts is None:
        if colon:
            raise QueryError(
                f"query {text!r}: {name} covers all states, so nothing may follow it; count:{argument or 'STATE'} "
                "counts some of them"
            )
        return word.make()
    if not argument.strip():
        raise QueryError(f"query {text!r} names no {word.parts.name}: expected {name}:{word.parts.example}")
    return word.make(word.parts.read(split_list(argument), text))


# -- States that are numbers, or bins of a number --------------------------------------------------------------------
#
# A bin counts at its middle, so a mean of bins is off by at most half of the widest one, beside its noise, where all
# values are clamped to the outer edges. Where those are not known the first and the last bin count at the edge that
# they have.


def values_of_bins(states: Sequence[str], edges: Sequence[float] | None = None) -> BinValues:
    """Return what the states are worth, which are bins of a number or numbers; of bins ``edges`` are all their edges.

    >>> values_of_bins(["<70", "70-180", ">=180"], [0, 70, 180, 400])
    BinValues(values=[35.0, 125.0, 290.0], off=110.0, clamped=(0.0, 400.0))
    """
    ends = _ends_of(states)
    if edges is not None and len(edges) == len(states) + 1:
        exact = [Fraction(repr(float(edge))) for edge in edges]
        middles = [float((low + high) / 2) for low, high in pairwise(exact)]
        widest = max(high - low for low, high in pairwise(exact))
        return BinValues(middles, float(widest / 2), (float(exact[0]), float(exact[-1])))
    values, off = list[float](), Fraction(0)
    for low, high in ends:
        known = [end for end in (low, high) if end is not None]
        values.append(float(sum(known, Fraction(0)) / len(known)))
        off = max(off, (known[-1] - known[0]) / 2)
    open_ended = ends[0][0] is None
    return BinValues(values, float(off), (values[0], values[-1]) if open_ended else None)


def states_within(states: Sequence[str], text: str) -> list[str]:
    """Return the states whose values all lie in a range, such as ``>=180``, ``<70`` or ``70..180`` (without 180).

    >>> bins = ["<70", "70-180", ">=180"]
    >>> states_within(bins, ">=70"), states_within(bins, "70..180")
    (['70-180', '>=180'], ['70-180'])
    """
    ends = _ends_of(states)
    low, high = _range(text)
    edges = sorted({end for pair in ends for end in pair if end is not None})
    for end in (low, high):
        if ends[0][0] is None and end is not None and end not in edges:
            shown = names_of(f"{float(edge):g}" for edge in edges)
            raise QueryError(f"{text!r} ends inside a bin: choose one of the edges {shown}")

    def lies_within(first: Fraction | None, last: Fraction | None) -> bool:
        above = low is None or (first is not None and first >= low)
        # a bin ends before its upper edge, a number is itself
        below = high is None or (last is not None and (last < high if first == last else last <= high))
        return above and below

    within = [state for state, ends_of_state in zip(states, ends, strict=True) if lies_within(*ends_of_state)]
    if not within or len(within) == len(states):
        raise QueryError(f"{text!r} holds {'all' if within else 'none'} of the states, so there is nothing to ask")
    return within


def is_range(text: str) -> bool:
    """Whether a text is a range of numbers, and no name of a state."""
    try:
        _range(text)
    except (QueryError, ValueError):
        return False
    return True


def _ends_of(states: Sequence[str]) -> list[tuple[Fraction | None, Fraction | None]]:
    ends = intervals_of_states(states)
    if ends is None:
        shown = names_of(list(states)[:4])
        raise QueryError(
            f"states are {shown}, which are neither numbers nor bins: give each state a value, as in "
            "mean:low=1,high=3, or read a column of numbers with bins"
        )
    return ends


def _range(text: str) -> tuple[Fraction | None, Fraction | None]:
    """Return from where to where a range goes; None for no end."""
    try:
        if text.startswith(">="):
            return Fraction(text[2:].strip()), None
        if text.startswith("<"):
            return None, Fraction(text[1:].strip())
        low, dots, high = text.partition("..")
        if dots and Fraction(low) < Fraction(high):
            return Fraction(low), Fraction(high)
    except (ValueError, ZeroDivisionError):
        pass
    raise QueryError(f"{text!r} is not a range of numbers: expected one such as >=180, <70 or 70..180")
