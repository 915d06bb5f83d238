"""Options that several commands share, and how their texts are read."""

import re
from collections.abc import Callable
from typing import Any

import click

from pufferfish._base.reading import read_file
from pufferfish.cli.numbers import plain_whole
from pufferfish.errors import ParameterError, RecordError
from pufferfish.mechanisms import BOUNDS, MECHANISMS, InfluenceBound, LeakagePropagation, MarkovQuilt, Mechanism
from pufferfish.theta.model_class import Theta

__all__ = [
    "ACCURACY_HELP",
    "ALPHA_HELP",
    "DEFAULT_MECHANISM",
    "NOISE_HELP",
    "bound_named",
    "check_composes",
    "each_once",
    "mechanism_named",
    "node_names",
    "parse_lengths",
    "secret_settings",
    "split_list",
    "state_list",
    "table_options",
]

DEFAULT_MECHANISM = LeakagePropagation.name

ACCURACY_HELP = "Instead of ε: the error that is allowed, in the query's units; the least ε is found."
NOISE_HELP = (
    "equal: one scale for every output; best: the counts and the scales with the least expected error that a search "
    "finds, proved like any other noise [default: equal]."
)
ALPHA_HELP = "With --accuracy: the probability of a larger error in one value [default: 0.05]."


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
        click.option(
            "--time-zone", metavar="ZONE", help="Zone of times that have none: Europe/Paris, so that gaps are right."
        ),
        click.option(
            "--ambiguous",
            type=click.Choice(["earlier", "later", "drop"]),
            help="With --time-zone: of times that come twice the earlier, the later, or none [default: refused].",
        ),
        click.option("--max-gap", metavar="LEN", help="Longest time between successive records: 1min, 90s, 1h, 1d, …"),
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
    parts, at = list[str](), 0
    while at <= len(text):
        part = _PART.match(text, at)
        if part is None:
            raise ParameterError(f'{text!r} is no list: quote a part with commas, all of it, as in one,"two, three"')
        quoted, value, plain = part.groups()
        parts.append(plain.strip() if quoted is None else quoted.replace('""', '"').strip() + value.strip())
        at = part.end() + 1
    if not all(parts):
        raise ParameterError(f"{text!r} has an empty part: take the odd comma out, or name what is missing")
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
    for option, given in options.items():
        if given and not mechanism.composes:
            raise ParameterError(
                f"{named} {mechanism.name} does not go with {option}: {mechanism.title} calibrates noise to one "
                f"query of all records{_ONE_QUERY[option]}; use {named} {DEFAULT_MECHANISM}, or leave out {option}"
            )
