"""How options are declared and read: as fields of a dataclass, of which click's options are made."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import wraps
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import click

from pufferfish._base.checked import each_once, plain_number, plain_whole, split_list
from pufferfish._base.reading import display_path, read_file
from pufferfish.data import Rows, Sequences
from pufferfish.errors import ParameterError, RecordError
from pufferfish.fit.model_file import Model
from pufferfish.mechanisms import MECHANISMS, LeakagePropagation, MarkovQuilt, Mechanism
from pufferfish.mechanisms.protection import Protection, step_of
from pufferfish.queries.words import QUERY_WORDS
from pufferfish.release.check import check_record
from pufferfish.release.record import ReleaseFields
from pufferfish.theta.model_class import Theta

Options = TypeVar("Options")
Kind = TypeVar("Kind", bound=Mechanism)

# -- Options, each declared once: as a field of a dataclass that a command is called with ----------------------------


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

_OF_CLICK = "click"


def option(
    help: str,
    metavar: str | None = None,
    *,
    read: Callable[[Any], Any] | None = None,
    example: str | None = None,
    **settings: Any,
) -> Any:
    """Declare that a field is an option of its name and type, with settings of ``click.option``; ``read`` its text."""
    said = {"help": help, "metavar": metavar, **settings}
    return field(metadata={_OF_CLICK: (click.Option, said), "read": read, "example": example})


def accept_option(**refusals: str) -> Any:
    """Declare ``--accept``, with a word for each refusal of a command that a user can accept; none accepts two."""
    told = "; ".join(f"{word}: {what}" for word, what in refusals.items())
    return option(
        f"Release or continue despite one refusal, named by its word; may be repeated. {told}.",
        type=click.Choice(list(refusals)),
    )


def argument(metavar: str | None = None, **settings: Any) -> Any:
    """Declare that a field is an argument; ``settings`` are those of ``click.argument``."""
    return field(metadata={_OF_CLICK: (click.Argument, {"metavar": metavar, **settings})})


def command(
    name: str, options: type[Options], group: click.Group | None = None
) -> Callable[[Callable[[Options], None]], click.Command]:
    """Make a command of a function of one object with all options; fields that are dataclasses are groups of them."""

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


def one_or_list(paths: Sequence[str]) -> Any:
    """Return a table of one file, or of several, as the library takes it."""
    return paths[0] if len(paths) == 1 else list(paths)


def refuse_contradiction(release: ReleaseFields, path: str) -> None:
    """Refuse a record in which something does not follow from the rest."""
    try:
        check_record(release)
    except RecordError as error:
        more = "pufferfish verify says all that is wrong"
        raise RecordError(f"{display_path(path)} contradicts itself: {error}; {more}") from error


def flag(name: str) -> str:
    """Return an option as it is given, by the name of its field."""
    return f"--{name.replace('_', '-')}"


def refuse_given(options: Any, names: Sequence[str], says: str) -> None:
    """Refuse the first of some options that is given, of a command or of how it reads tables; ``{}`` stands for it."""
    for name in names:
        value = getattr(options if hasattr(options, name) else options.reading, name)
        if not (value is None or value is False or value == ()):
            raise ParameterError(says.format(flag(name)))


def _parameter(declared: Field[Any]) -> click.Parameter:
    """Return what click has to know of a field."""
    parameter, settings = declared.metadata[_OF_CLICK]
    optional = get_origin(declared.type) in (Union, UnionType)
    kind: Any = get_args(declared.type)[0] if optional else declared.type
    several = get_origin(kind) is tuple
    kind = get_args(kind)[0] if several else kind
    known: dict[str, Any] = {bool: {"is_flag": True}, float: {"type": NUMBER}, int: {"type": WHOLE}}.get(kind, {})
    if get_origin(kind) is Literal:
        known = {"type": click.Choice(get_args(kind))}
    if several:
        known |= {"multiple": True} if parameter is click.Option else {"nargs": -1}
    flags = [] if parameter is click.Argument else [flag(declared.name)]
    return parameter([declared.name, *flags], **known | settings)


def _filled(options: type[Options], values: dict[str, Any]) -> Options:
    """Return the options of a command line."""
    filled: dict[str, Any] = {}
    for declared in fields(cast(Any, options)):
        if _OF_CLICK in declared.metadata:
            value, read = values[declared.name], declared.metadata.get("read")
            filled[declared.name] = value if value is None or read is None else read(value)
        elif is_dataclass(declared.type):
            filled[declared.name] = _filled(cast(type[Any], declared.type), values)
    return options(**filled)


# -- What several commands say of an option --------------------------------------------------------------------------

DEFAULT_MECHANISM = LeakagePropagation.name

MODEL_HELP = "Model file: the class Θ."
QUERY_HELP = f"{QUERY_WORDS} [default: histogram; marginals for networks]"
SECRETS_HELP = "Nodes of a network that are secret [default: all]."
ACCURACY_HELP = "Instead of ε: the allowed error, in the query's units; the smallest ε for it is used."
NOISE_HELP = (
    "equal: one scale for every output; best: the measured counts and scales with the smallest expected error that a "
    "search finds, with the same proof [default: best, for queries with several outputs that count states]."
)
ALPHA_HELP = "With --accuracy: the probability of a larger error in one value [default: 0.05]."

MODEL_FAILED = "a check of MODEL against public data said: do not go on"
MODEL_FITTED_HERE = (
    "MODEL was fitted to this TABLE or a part of it, which everybody may see; there is then no privacy guarantee"
)

PROTECT_HELP = (
    "What the noise hides. For chains: a number of steps in a row, a length of time such as 1h or 1d, or subject for "
    "a whole series. For networks: columns of one row, such as smoke+lung, or row for all of them [default: one "
    "record, or with a ledger what the ledger counts]."
)
WITHIN_HELP = (
    "Hide only differences between values at most this far apart, in the units of the bins, or between the pairs of "
    "states a:b,c:d,… [default: any two]."
)


@dataclass(frozen=True, kw_only=True)
class CoverOptions:
    """What an office says of a page; ``init`` writes the examples as comments."""

    title: str | None = option("Title of the page.", "TEXT", example="Steps in May")
    office: str | None = option("Who publishes it.", "TEXT", example="Office of Statistics")
    period: str | None = option("The period that the releases are about.", "TEXT", example="May 2026")
    contact: str | None = option("Whom to ask.", "TEXT", example="statistics@office.example")
    note: str | None = option("A paragraph before everything else.", "TEXT", example="Approved on 3 June.")
    words: str | None = option(
        "A translation of the words of the page: pufferfish words writes the table.", "FILE", example="words.toml"
    )


# -- How the texts of options are read -------------------------------------------------------------------------------


def mechanism_named(name: str | None, among: Sequence[type[Kind]] = MECHANISMS) -> type[Kind]:
    """Return the mechanism that ``--mechanism`` names; propagation where none is named."""
    return next(mechanism for mechanism in among if mechanism.name == (name or DEFAULT_MECHANISM))


def secret_settings(text: str | None, mechanism: type[Mechanism], theta: Theta) -> dict[str, Any]:
    """Return what ``--secrets`` means for a mechanism."""
    secrets = node_names(text, theta)
    if secrets is None:
        return {}
    if not issubclass(mechanism, MarkovQuilt | LeakagePropagation):
        raise ParameterError(
            f"--secrets is for {MarkovQuilt.name} and {LeakagePropagation.name}: {mechanism.title} always hides all "
            "records"
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
    """Return what ``--protect`` and ``--within`` mean for a mechanism; without a table any length of time is taken."""
    step = step_in(data, model) or (protect if data is None else None)
    settings = protection_asked(protect, within, model.theta, step)
    if settings and not mechanism.hides_several:
        raise ParameterError(
            f"--protect and --within are for {LeakagePropagation.name}: {mechanism.title} covers one record only"
        )
    return settings


def node_names(text: str | None, theta: Theta) -> list[Any] | None:
    """Return the nodes of a list with commas, as the network names them."""
    if text is None:
        return None
    if not theta.networks:
        raise ParameterError(
            "--columns and --secrets are for networks, but the model consists of Markov chains: leave them out"
        )
    network = theta.networks[0]
    return [network.nodes[network.place(name)] for name in each_once(split_list(text), text)]


def split_groupings(text: str) -> list[str]:
    """Return the groupings of a list with commas; a comma in quotes or brackets is part of a name.

    >>> split_groupings('sex, col("team, name"),hour(time)')
    ['sex', 'col("team, name")', 'hour(time)']
    """
    pieces = [piece if i % 2 else piece.replace(",", "\0") for i, piece in enumerate(text.split('"'))]
    parts = [part.strip() for part in '"'.join(pieces).split("\0")]
    if not all(parts):
        raise ParameterError(f"--by {text!r} has an empty part: remove the extra comma, or add what is missing")
    return parts


def state_list(text: str | None) -> list[str] | None:
    """Return the states of a list with commas, or of a file with one in each line: a model has two states or more."""
    if text is None or "," in text:
        return None if text is None else split_list(text)
    try:
        lines = read_file(text).decode("utf-8-sig").rstrip().split("\n")
    except (RecordError, UnicodeDecodeError) as error:
        why = error if isinstance(error, RecordError) else f"{text} is not UTF-8 text: save it as UTF-8"
        raise ParameterError(
            f"--states is {text!r}, expected two or more states, such as rest,walk, or a file with a state in each "
            f"line: {why}"
        ) from error
    names = [line.strip() for line in lines]
    if not all(names):
        raise ParameterError(f"line {names.index('') + 1} of {text} is empty: --states expects a state in each line")
    return each_once(names, text)


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
            f"--length has the part {text.strip()!r}: write numbers without leading zeros and without commas for "
            "thousands, 10080 instead of 10,080"
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
                f"{named} {mechanism.name} does not work with {option}: {mechanism.title} calibrates noise for one "
                f"query of all records{_ONE_QUERY[option]}; use {named} {DEFAULT_MECHANISM}, or leave out {option}"
            )
