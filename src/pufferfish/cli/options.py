"""How options are declared and read: as fields of a dataclass, of which click's options are made.

Numbers on a command line: plain decimals, and nothing else that Python would take for a number.

Python reads ``1_0`` as 10, and digits of other scripts too. On a command line these are slips of the finger, and some
decide how much privacy is left.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import Field, field, fields, is_dataclass
from functools import partial, wraps
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin

import click

from pufferfish._base.reading import read_file
from pufferfish._base.words import did_you_mean, names_of, number
from pufferfish.data import Rows, Sequences
from pufferfish.errors import ParameterError, QueryError, RecordError, printable
from pufferfish.fit.model_file import Model
from pufferfish.mechanisms import BOUNDS, MECHANISMS, InfluenceBound, LeakagePropagation, MarkovQuilt, Mechanism
from pufferfish.mechanisms.protection import Protection, step_of
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
from pufferfish.queries.of_numbers import is_range, states_within, values_of_bins
from pufferfish.theta.model_class import Theta
from pufferfish.theta.states import intervals_of_states

__all__ = [
    "ACCURACY_HELP",
    "ALPHA_HELP",
    "DEFAULT_MECHANISM",
    "MODEL_HELP",
    "NOISE_HELP",
    "NUMBER",
    "PROTECT_HELP",
    "QUERY_HELP",
    "SECRETS_HELP",
    "WHOLE",
    "WITHIN_HELP",
    "accept_option",
    "argument",
    "bound_named",
    "check_composes",
    "command",
    "each_once",
    "hidden_by",
    "mechanism_named",
    "node_names",
    "notes_of_query",
    "option",
    "parse_lengths",
    "parse_query",
    "plain_number",
    "plain_whole",
    "protection_asked",
    "secret_settings",
    "split_groupings",
    "split_list",
    "state_list",
    "step_in",
]

Options = TypeVar("Options")

# -- Numbers on a command line ---------------------------------------------------------------------------------------

_NUMBER = r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|nan)"
"""Also what is infinite or no number: which values an option may have is said where it is used."""

_WHOLE = r"[+-]?[0-9]{1,4000}"


def plain_number(text: str) -> float:
    """Return the number that a text is.

    Raises
    ------
    ValueError
        If it is no plain decimal.

    Examples
    --------
    >>> plain_number("1e-3")
    0.001
    >>> plain_number("1_0")
    Traceback (most recent call last):
        ...
    ValueError: '1_0' is no plain number such as 1, 0.5 or 1e-3
    """
    if re.fullmatch(_NUMBER, text.strip()) is None:
        raise ValueError(f"{text.strip()!r} is no plain number such as 1, 0.5 or 1e-3")
    return float(text)


def plain_whole(text: str) -> int:
    """Return the whole number that a text is.

    Raises
    ------
    ValueError
        If it is no plain whole number.
    """
    if re.fullmatch(_WHOLE, text.strip()) is None:
        raise ValueError(f"{text.strip()!r} is no plain whole number such as 10 or 5000")
    return int(text)


class _Number(click.ParamType):  # not generic in every click
    """A plain number of an option."""

    def __init__(self, *, whole: bool) -> None:
        self.name = "integer" if whole else "float"
        self._read = plain_whole if whole else plain_number

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or refuse it in one line."""
        if not isinstance(value, str):  # a default
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


NUMBER, WHOLE = _Number(whole=False), _Number(whole=True)


# -- Options, each declared once: as a field of a dataclass that a command is called with ----------------------------

_OF_CLICK = "click"


def option(help: str, metavar: str | None = None, *, name: str | None = None, **settings: Any) -> Any:
    """Declare that a field is an option of its own name, or of another one, and of the type of the field.

    ``settings`` are those of ``click.option``; ``read`` makes the value of the field from its text.
    """
    return field(metadata={_OF_CLICK: (click.Option, name, {"help": help, "metavar": metavar, **settings})})


def accept_option(**refusals: str) -> Any:
    """Declare ``--accept``: for each refusal of a command that a user can accept its word, and what it means.

    No word accepts two refusals of a command: who accepts one is still stopped by the others.
    """
    told = "; ".join(f"{word}: {what}" for word, what in refusals.items())
    return option(f"Accept one refusal, by its word; may be repeated. {told}.", type=click.Choice(list(refusals)))


def argument(metavar: str | None = None, **settings: Any) -> Any:
    """Declare that a field is an argument; ``settings`` are those of ``click.argument``."""
    return field(metadata={_OF_CLICK: (click.Argument, None, {"metavar": metavar, **settings})})


def command(
    name: str, options: type[Options], group: click.Group | None = None
) -> Callable[[Callable[[Options], None]], click.Command]:
    """Make a command of a function that takes its options as one object.

    Fields that are dataclasses themselves are groups of options that several commands have.
    """

    def decorate(function: Callable[[Options], None]) -> click.Command:
        @wraps(function)
        def run(**values: Any) -> None:
            function(_filled(options, values))

        made = click.command(name, params=list(_parameters(options)))(run)
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def _parameters(options: type[Any]) -> Iterator[click.Parameter]:
    for declared in fields(options):
        if _OF_CLICK in declared.metadata:
            yield _parameter(declared)
        elif is_dataclass(declared.type):
            yield from _parameters(cast(type[Any], declared.type))


def _parameter(declared: Field[Any]) -> click.Parameter:
    """Return what click has to know of a field."""
    parameter, name, settings = declared.metadata[_OF_CLICK]
    optional = get_origin(declared.type) in (Union, UnionType)
    kind: Any = get_args(declared.type)[0] if optional else declared.type
    several = get_origin(kind) is tuple
    kind = get_args(kind)[0] if several else kind
    known: dict[str, Any] = {}
    if get_origin(kind) is Literal:
        known = {"type": click.Choice(get_args(kind))}
    elif kind in (float, int):
        known = {"type": NUMBER if kind is float else WHOLE}
    elif kind is bool:
        known = {"is_flag": True}
    if several:
        known |= {"multiple": True} if parameter is click.Option else {"nargs": -1}
    click_settings = {key: value for key, value in settings.items() if key != "read"}
    flags = [] if parameter is click.Argument else [name or f"--{declared.name.replace('_', '-')}"]
    return parameter([declared.name, *flags], **known | click_settings)


def _filled(options: type[Options], values: dict[str, Any]) -> Options:
    """Return the options of a command line."""
    filled: dict[str, Any] = {}
    for declared in fields(cast(Any, options)):
        if _OF_CLICK in declared.metadata:
            value, read = values[declared.name], declared.metadata[_OF_CLICK][2].get("read")
            filled[declared.name] = value if value is None or read is None else read(value)
        elif is_dataclass(declared.type):
            filled[declared.name] = _filled(cast(type[Any], declared.type), values)
    return options(**filled)


# -- What several commands say of an option --------------------------------------------------------------------------

DEFAULT_MECHANISM = LeakagePropagation.name

MODEL_HELP = "Model file: the class Θ."
SECRETS_HELP = "Nodes of a network that are secret [default: all]."
ACCURACY_HELP = "Instead of ε: the error that is allowed, in the query's units; the least ε is found."
NOISE_HELP = (
    "equal: one scale for every output; best: the counts and the scales with the least expected error that a search "
    "finds, proved like any other noise [default: equal]."
)
ALPHA_HELP = "With --accuracy: the probability of a larger error in one value [default: 0.05]."

PROTECT_HELP = (
    "What the noise hides. Of chains: so many steps in a row, a length of time such as 1h or 1d, or subject, a whole "
    "series; of networks: columns of one row, such as smoke+lung, or row, all of them [default: one record, or with a "
    "ledger what the ledger counts]."
)
WITHIN_HELP = (
    "Hide only values at most so far apart, in the units of the bins; or only between the states of a:b,c:d,… "
    "[default: any two]."
)

# -- How the texts of options are read -------------------------------------------------------------------------------


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


def protection_asked(protect: str | None, within: str | None, theta: Theta, step: str | None) -> dict[str, Any]:
    """Return what ``--protect`` and ``--within`` mean for a mechanism, where a step takes so long."""
    near: Any = within
    if within is not None:
        try:
            near = float(within)
        except ValueError:
            near = [tuple(pair.split(":")) for pair in split_list(within)]
    protection = Protection.of(protect, near, theta, step)
    return {} if protection is None else {"protect": protection}


def step_in(data: Sequences | Rows | None, model: Model) -> str | None:
    """Return how long a step takes, as the model says it, or else the table."""
    known = step_of(model.theta, model)
    return known if known is not None or not isinstance(data, Sequences) else data.base.step or data.usual_step


def hidden_by(
    mechanism: type[Mechanism], protect: str | None, within: str | None, data: Sequences | Rows | None, model: Model
) -> dict[str, Any]:
    """Return what ``--protect`` and ``--within`` mean for a mechanism; refuse one that hides one record only.

    Without a table, which may say how long a step takes, any length of time is taken.
    """
    step = step_in(data, model) or (protect if data is None else None)
    settings = protection_asked(protect, within, model.theta, step)
    if settings and not mechanism.hides_several:
        raise ParameterError(
            f"--protect and --within are for {LeakagePropagation.name}: {mechanism.title} proves what is told of one "
            "record alone"
        )
    return settings


def bound_named(name: str | None) -> type[InfluenceBound]:
    """Return the mechanism that ``--mechanism`` names, of those that compose; the same default."""
    mechanism = mechanism_named(name)
    return next(bound for bound in BOUNDS if bound is mechanism)


def node_names(text: str | None, theta: Theta) -> list[Any] | None:
    """Return the nodes of a list with commas, as the network names them."""
    if text is None:
        return None
    if not theta.networks:
        raise ParameterError("--columns and --secrets name nodes of a network, and the model is made of Markov chains")
    network = theta.networks[0]
    return [network.nodes[network.place(name)] for name in each_once(split_list(text), text)]


def split_list(text: str) -> list[str]:
    """Parts of a list with commas; a part in double quotes may hold some, and ``=`` with a value may follow it.

    Examples
    --------
    >>> split_list('home, "ward, general"')
    ['home', 'ward, general']
    >>> split_list('"ward, general"=1,*=0')
    ['ward, general=1', '*=0']
    """
    parts, start = list[str](), 0
    while start <= len(text):
        part = _PART.match(text, start)
        if part is None:
            raise ParameterError(f'{text!r} is no list: quote a part with commas, all of it, as in one,"two, three"')
        quoted, value, plain = part.groups()
        parts.append(plain.strip() if quoted is None else quoted.replace('""', '"').strip() + value.strip())
        start = part.end() + 1
    if not all(parts):
        raise ParameterError(f"{text!r} has an empty part: take the odd comma out, or name what is missing")
    return parts


def split_groupings(text: str) -> list[str]:
    """Return the groupings of a list with commas; a comma in quotes or brackets is part of a name.

    Examples
    --------
    >>> split_groupings('sex, col("team, name"),hour(time)')
    ['sex', 'col("team, name")', 'hour(time)']
    """
    pieces = [piece if i % 2 else piece.replace(",", "\0") for i, piece in enumerate(text.split('"'))]
    parts = [part.strip() for part in '"'.join(pieces).split("\0")]
    if not all(parts):
        raise ParameterError(f"--by {text!r} has an empty part: take the odd comma out, or name what is missing")
    return parts


def state_list(text: str | None) -> list[str] | None:
    """Return the states that an option names: a list with commas, or a file with a name in each line.

    What has no comma is the name of a file: a model has two states or more, so no list is meant.

    Raises
    ------
    ParameterError
        If the list has an empty part, or the file cannot be read, has no state, one twice, or an empty line among them.
    """
    if text is None or "," in text:
        return None if text is None else split_list(text)
    try:
        lines = read_file(text).decode("utf-8-sig").rstrip().split("\n")
    except (RecordError, UnicodeDecodeError) as error:
        why = error if isinstance(error, RecordError) else f"{text} is no UTF-8 text: save it as UTF-8"
        raise ParameterError(
            f"--states is {text!r}, expected two or more states, such as rest,walk, or a file with a state in each "
            f"line: {why}"
        ) from error
    names = [line.strip() for line in lines]
    if not any(names):
        raise ParameterError(f"{text} is empty: --states expects a state in each line")
    if not all(names):
        raise ParameterError(f"line {names.index('') + 1} of {text} is empty: --states expects a state in each line")
    return each_once(names, text)


_PART = re.compile(r'\s*+(?:"((?:[^"]|"")*)"\s*((?:=[^,"]*)?)|(?!")([^,]*))(?=,|\Z)')


def each_once(parts: list[str], text: str) -> list[str]:
    """Return names as they are, and refuse one that is given twice."""
    for i, part in enumerate(parts):
        if part in parts[:i]:
            raise ParameterError(f"{text!r} names {part!r} twice: name it once")
    return parts


def parse_lengths(texts: tuple[str, ...]) -> list[int]:
    """Return the lengths of all ``--length``, each one or several with commas; 10,080 may be either, and is refused."""
    for text in texts:
        if _THOUSANDS.fullmatch(text.strip()):
            one, several = text.strip().replace(",", ""), " ".join(f"--length {int(n)}" for n in text.split(","))
            raise ParameterError(
                f"--length {text.strip()} may be one number or several: write --length {one}, or {several}"
            )
    return [_whole(part) for text in texts for part in text.split(",")]


_PADDED = re.compile(r"[+-]?0[0-9]")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(,[0-9]{3})+")


def _whole(text: str) -> int:
    if _PADDED.match(text.strip()):
        raise ParameterError(
            f"--length has the part {text.strip()!r}: write numbers without a zero in front, and without commas for "
            "thousands, 10080 and not 10,080"
        )
    try:
        return plain_whole(text)
    except ValueError:
        raise ParameterError(f"--length is {text!r}, expected a whole number of records, such as 5000") from None


_ONE_QUERY = {
    "--ledger": ", and its ε does not add to others",
    "--by": ", and not for each group",
    "--each-subject": ", and not for each subject",
}
"""Why mechanisms that calibrate noise to one query do not go with an option."""


def check_composes(mechanism: type[Mechanism], options: dict[str, bool], named: str = "--mechanism") -> None:
    """Refuse options that go with mechanisms that compose only: it is known at once, and calibrating may take long."""
    for option, is_given in options.items():
        if is_given and not mechanism.composes:
            raise ParameterError(
                f"{named} {mechanism.name} does not go with {option}: {mechanism.title} calibrates noise to one "
                f"query of all records{_ONE_QUERY[option]}; use {named} {DEFAULT_MECHANISM}, or leave out {option}"
            )


# -- What ``--query`` can say: a word for each query -----------------------------------------------------------------


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
    """Return the number that a state is worth, which is text on a command line."""
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
    parts: _Parts | None = None


_WORDS: Mapping[str, _Word] = {
    "histogram": _Word(Histogram),
    "histogram-counts": _Word(partial(Histogram, relative=False)),
    "count": _Word(Count, _STATES),
    "frequency": _Word(Frequency, _STATES),
    "share": _Word(Frequency, _STATES),
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
    "each state is followed by each; of bins also mean and sum alone, and share:>=180, share:70..180 or count:<70; "
    "bouts: how often states begin; switches: changes of state; rates are per record); "
    "for networks marginals (shares in every column) and marginal-counts, joint:NODE,NODE,… and "
    "joint-counts:NODE,NODE,… (rows in each combination of their states), and the others on --columns that have the "
    "same states "
    "[default: histogram; marginals for networks]"
)


def notes_of_query(query: Query, model: Model) -> list[str]:
    """Return what is to be known of a query before it is answered: the order of states, what bins count as."""
    return [said for said in (_order_of_states(query, model), _middles_of_bins(query, model)) if said is not None]


def _order_of_states(query: Query, model: Model) -> str | None:
    """Say in which order a cumulative query takes states that are no bins: it is that of the model's list."""
    if not query.is_cumulative or model.bins is not None:
        return None
    return f"states in the order of the model, lowest first: {printable(names_of(model.theta.states))}"


def parse_query(
    text: str | None,
    theta: Theta,
    named: Sequence[Any] | None = None,
    present: Sequence[Any] | None = None,
    bins: Sequence[float] | None = None,
) -> Query:
    """Return the query of ``--query``.

    For networks ``named`` are the nodes of ``--columns``, and ``present`` those that a table has: the histogram of
    every column is of those that are there, and queries that take several columns for one are of those that were named.
    ``bins`` are the edges of bins, at whose middles a mean counts.
    """
    if not theta.networks:
        if text in _OF_COLUMNS:
            raise QueryError(f"query {text!r} is for networks, and the model is made of Markov chains: ask a histogram")
        if text is not None and text.partition(":")[0] in _TOGETHER:
            raise QueryError(
                f"query {text!r} counts columns of a network's table together, and the model is made of Markov chains: "
                "how often each state is followed by each is --query transitions"
            )
        return _of_numbers(text, theta.states, bins) or _parse("histogram" if text is None else text)
    if text is None or text in _OF_COLUMNS:
        return Marginals(named if present is None else present, relative=text != "marginal-counts")
    query = _parse(text)
    if isinstance(query, Joint):
        network = theta.networks[0]
        return Joint([network.nodes[network.place(node)] for node in query.records], relative=query.relative)
    query = query if named is None else Subset(query, named)
    refuse_pooling(query, theta.networks[0].node_states)
    return query


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


def _middles_of_bins(query: Query, model: Model) -> str | None:
    """Say how far a mean or sum of bins can be off beside its noise, where each bin counts at its middle."""
    if not isinstance(query, Mean | Sum) or model.theta.networks or intervals_of_states(model.theta.states) is None:
        return None
    known = values_of_bins(model.theta.states, model.bins)
    if known.clamped is None or repr(query) not in (repr(Mean(known.values)), repr(Sum(known.values))):
        return None
    low, high = known.clamped
    off = f"at most {number(known.off)}" + ("" if isinstance(query, Mean) else " a record")
    return (
        f"bins count at their middle, so the {query.kind} can be off by {off} beside the noise; values below "
        f"{number(low)} count as {number(low)}, and those of {number(high)} or more as {number(high)}"
    )


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
