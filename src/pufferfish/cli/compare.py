"""``pufferfish compare``: the noise of every mechanism, before anything is spent."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import click

from pufferfish._base.checked import each_once, split_list
from pufferfish._base.view import counted
from pufferfish._draw.figure import PICTURE, save_figure
from pufferfish._draw.page import PREVIEW
from pufferfish.cli._tables import BY_HELP, GroupedReading, check_targets, opened, read_under
from pufferfish.cli.messages import say
from pufferfish.cli.options import (
    ACCURACY_HELP,
    ALPHA_HELP,
    NOISE_HELP,
    PROTECT_HELP,
    QUERY_HELP,
    SECRETS_HELP,
    WITHIN_HELP,
    argument,
    check_composes,
    command,
    node_names,
    option,
    parse_lengths,
    protection_asked,
    refuse_given,
    split_groupings,
    step_in,
)
from pufferfish.cli.print import print_promises, print_warnings, progress
from pufferfish.cli.project import from_project
from pufferfish.cli.release import accuracy_of_all, fewest_records, print_group_errors
from pufferfish.compare.comparison import Comparison, report_together
from pufferfish.compare.contest import COMPOSING, ComparisonRow, Contest, mechanisms_named, one_query_rows
from pufferfish.compare.noise import draw_noise
from pufferfish.data import Rows, Sequences
from pufferfish.errors import ParameterError
from pufferfish.fit.model_file import read_model
from pufferfish.mechanisms import MECHANISMS, MarkovQuilt, Mechanism
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.mechanism import LEAST_EPSILON, as_epsilon
from pufferfish.mechanisms.network_picture import draw_network
from pufferfish.mechanisms.words import few_as_planned, few_in_groups
from pufferfish.queries import Query
from pufferfish.queries.words import notes_of_query, query_of
from pufferfish.release.again import shell_line
from pufferfish.release.derive import assumed_of
from pufferfish.release.prepare import warnings_of_stretch
from pufferfish.release.show.text import read_line
from pufferfish.theta.model_class import Theta
from pufferfish.theta.states import state_label

_FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""At which multiples of ε ``compare --plot`` looks too."""


@dataclass(frozen=True, kw_only=True)
class _TableIfAny(GroupedReading):
    by: list[str] | None = option(f"With --table: the error of each group. {BY_HELP}", "A,B,…", read=split_groupings)


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What is compared."""

    model: str = argument("MODEL")
    length: tuple[str, ...] = option(
        "Records of one chain; repeat, or N1,N2,…. For a network the rows of its table [default: 1].", "N"
    )
    table: tuple[str, ...] = option("Take the (public) lengths from a table.", "FILE")
    reading: _TableIfAny
    query: tuple[str, ...] = option(f"{QUERY_HELP}. Repeat it for several queries of one table.", "QUERY")
    secrets: str | None = option(SECRETS_HELP, "A,B,…")
    protect: str | None = option(PROTECT_HELP, "1h")
    within: str | None = option(WITHIN_HELP, "R")
    promises: bool = option("Show what the least noise promises for a record, an hour, a day, a series.")
    epsilon: float | None = option("Privacy parameter ε, above 0.")
    accuracy: float | None = option(ACCURACY_HELP, "A")
    alpha: float | None = option(ALPHA_HELP, "P")
    noise: Literal["equal", "best"] | None = option(NOISE_HELP)
    mechanisms: str | None = option(
        f"Compare only these, of {', '.join(kind.name for kind in MECHANISMS)} [default: all, except exact-laplace "
        "and wasserstein if they would take minutes].",
        "A,B,…",
    )
    plot: str | None = option("Draw the noise from ε/10 to 10 ε (.png, .svg, .pdf).", "FILE")
    report: str | None = option("Write a preview as a page for a browser (.html).", "FILE")
    draw: str | None = option("Draw a network, its worst node and that node's best quilt.", "FILE")


def _as_in_project(options: CompareOptions) -> CompareOptions:
    """Return the options; where lengths are given, without the table of the project, and how it is read."""
    if not (options.length and from_project("table")):
        return options
    usual: dict[str, Any] = {"gaps": "unobserved"}
    theirs: dict[str, Any] = {name: usual.get(name) for name in options.reading.given if from_project(name)}
    return replace(options, table=(), reading=replace(options.reading, **theirs))


@command("compare", CompareOptions)
def compare_command(options: CompareOptions) -> None:
    """Noise of every mechanism under MODEL, before anything is spent.

    \b
    Example:
      pufferfish compare model.json --length 5000 --query histogram --epsilon 1
      pufferfish compare asia.bif --columns lung,bronc --query marginal-counts --epsilon 1
      pufferfish compare model.json --length 5000 --query histogram --epsilon 1 --protect 1h --promises
      pufferfish compare model.json --length 5000 --query histogram --query cdf --epsilon 1 --report preview.html
      pufferfish compare model.json --table steps.csv --state activity --subject id --time minute --max-gap 1min \\
        --by hour,sex --epsilon 1
    """
    options = _as_in_project(options)
    epsilon, accuracy, reading = options.epsilon, options.accuracy, options.reading
    tables, lengths = options.table, options.length
    if (epsilon is None) == (accuracy is None):
        two = "--epsilon and --accuracy (the allowed error) both determine the noise: give one of them"
        none = "give --epsilon, or --accuracy (the allowed error) to see which epsilon it needs"
        raise ParameterError(none if epsilon is None else two)
    if options.alpha is not None and accuracy is None:
        raise ParameterError("--alpha only works with --accuracy")
    if epsilon is not None:
        epsilon = as_epsilon(epsilon)
    inputs = (options.model, *tables)
    targets = [("--plot", options.plot, PICTURE), ("--draw", options.draw, PICTURE)]
    check_targets([*targets, ("--report", options.report, PREVIEW)], inputs=inputs, overwrite=False)
    model = read_model(options.model)
    theta = model.theta
    secret, nodes = node_names(options.secrets, theta), node_names(reading.columns, theta)
    asked: tuple[str | None, ...] = options.query or (None,)
    queries = [query_of(text, theta, nodes, bins=model.bins) for text in asked]
    kinds, left_out = _kinds_asked(options.mechanisms, groups=reading.by is not None)
    if len(queries) > 1 and (options.plot or options.draw):
        raise ParameterError("--plot and --draw show one query: give one --query, or leave them out")
    if options.draw is not None and not theta.networks:
        raise ParameterError("--draw is for networks, but the model consists of Markov chains: leave it out")
    if not tables:
        read = [name for name in reading.given if not (theta.networks and name == "columns")]
        refuse_given(options, read, "{} is for reading a table: give --table, or leave it out")
    if tables and lengths:
        raise ParameterError("--length and --table both give the number of records: give one of them")
    if not tables and not lengths and not theta.networks:
        raise ParameterError("give the chains' lengths by --length N, or a --table to take them from")
    data = None
    if tables:
        with opened(tables, reading) as table:
            data = read_under(table, model, reading)
        length: Any = data.length
        present = data.nodes if isinstance(data, Rows) else None
        queries = [query_of(text, theta, nodes, present, model.bins) for text in asked]
    else:
        length = _length_given(lengths, theta)
    step = step_in(data, model)
    hidden = protection_asked(options.protect, options.within, theta, step)
    print_warnings(warnings_of_stretch(data, hidden.get("protect")))
    compared: list[tuple[Contest, Comparison]] = []
    for query in queries:
        more: dict[str, Any] = {"secrets": secret, "kinds": kinds, "left_out": left_out, **hidden}
        contest = Contest(model, query, length, noise=options.noise or "best", **more)
        with progress("comparing mechanisms"):
            found = _asked(contest, options, query, data)
        click.echo(found)
        compared.append((contest, found))
    if data is not None:
        nodes = [state_label(node) for network in theta.networks[:1] for node in network.nodes]
        say(read_line(data, nodes))
    for query, (contest, found) in zip(queries, compared, strict=True):
        say(*notes_of_query(query, model))
        taken = next((row for row in found if row.recommended), None)
        if taken is not None:
            calibration = contest.calibration(taken)
            if options.promises:
                print_promises(calibration.promises(step))
            if options.table or options.length:
                _warn_of_few(calibration, data)
        say(*_lines_of_size(options, theta, query, length))
    contest, found = compared[0]
    if found.rows[0].epsilon is None and epsilon is None:
        return  # no mechanism applies, and there is nothing to draw
    _draw_pictures(options, contest, found, queries[0], length, secret)
    if options.report is not None:
        with progress("making the preview"):
            taken = next((row for row in found if row.recommended), None)
            assumed = None if data is None or taken is None else assumed_of(data.base, of_chains=theta.of_chains)
            told = [_release_command(options, text) for text in asked]
            report_together([found for _, found in compared], options.report, assumptions=assumed, commands=told)
        say(f"written: {options.report}")


def _length_given(texts: tuple[str, ...], theta: Theta) -> Any:
    """Return the lengths of chains, or the number of rows of a network's table."""
    lengths = parse_lengths(texts)
    if not theta.networks:
        return lengths
    if len(lengths) > 1:
        raise ParameterError("give one --length for a network: the number of rows of its table")
    return lengths[0] if lengths else 1


def _asked(contest: Contest, options: CompareOptions, query: Query, data: Sequences | Rows | None) -> Comparison:
    """Return the noise of every mechanism at the ε that is asked for, or at which it is as accurate as asked."""
    if options.accuracy is None:
        return contest.at(as_epsilon(options.epsilon))
    fewest = None if data is None else fewest_records(query, data)
    if data is None or fewest is None:
        return contest.at_accuracy(options.accuracy, options.alpha)
    found = contest.at_accuracy(accuracy_of_all(options.accuracy, query, data), options.alpha)
    group = f" within {options.accuracy:g} in the group of {fewest:,} records, so within "
    return replace(found, title=found.title.replace(" within ", group))


def _draw_pictures(
    options: CompareOptions, contest: Contest, found: Comparison, query: Query, length: Any, secret: list[Any] | None
) -> None:
    """Draw the noise from ε/10 to 10 ε, and a network, where that is asked for."""
    theta, epsilon = contest.theta, as_epsilon(options.epsilon or found.rows[0].epsilon)
    if options.plot is not None:
        with progress("comparing"):
            here = found if options.accuracy is None else contest.at(epsilon)  # by accuracy each row has its own ε
            epsilons = [e for e in (epsilon * f for f in _FACTORS) if LEAST_EPSILON <= e < math.inf]
            least = next((row for row in here if row.scale and row.noise == "equal"), None)
            noise = [] if least is None else contest.curves(contest.calibration(least), epsilons)
            floor = {} if least is None else contest.lower_bounds(least, epsilons)
        chains: list[int] = [] if theta.networks else [getattr(chain, "records", chain) for chain in length]
        of = _chains(chains) if chains else counted(length, "row")
        made = [f"Noise against ε for the query {query.kind}: {of}", f"Θ: {theta.origin}"]
        save_figure(draw_noise(noise, floor, made, here.measure), options.plot)
        say(f"written: {options.plot}")
    if options.draw is not None:
        with progress("drawing the network"):
            calibration = MarkovQuilt(theta, length=length, secrets=secret).calibrate(query, epsilon)
        save_figure(draw_network(theta.networks[calibration.witness.theta], calibration), options.draw)
        say(f"written: {options.draw}")


def _release_command(options: CompareOptions, query: str | None) -> str:
    """Return the command that releases a query as it was compared, up to its ε."""
    reading: dict[str, Any] = {name.replace("_", "-"): getattr(options.reading, name) for name in options.reading.given}
    reading |= {name: ",".join(value) for name, value in reading.items() if isinstance(value, list)}
    hidden = {"secrets": options.secrets, "protect": options.protect, "within": options.within}
    line = shell_line(
        ["release", *(options.table or ["TABLE"])],
        reading | {"model": options.model, "query": query, "noise": options.noise} | hidden,
    )
    return f"{line} --epsilon"


def _lines_of_size(options: CompareOptions, theta: Theta, query: Query, length: Any) -> Iterator[str]:
    """Say of how many records this is, where that may be others than were meant."""
    if options.length and not theta.networks and len(length) > 1:  # one with a comma for thousands would be two
        shown = ", ".join(str(chain) for chain in length[:8]) + (", …" if len(length) > 8 else "")
        yield f"of {len(length):,} chains, of {shown} records"
    if theta.networks and not options.table and not options.length and query.known and query.known.relative:
        yield "without --length the table has one row; --length gives the number of rows"


def _warn_of_few(calibration: Calibration, data: Sequences | Rows | None) -> None:
    """Print the errors of groups, if there are some, and warn where noise hides nearly all."""
    if data is None or data.groups is None:
        print_warnings(few_as_planned(calibration))
        return
    groups = data.groups
    say("above: errors for all records together; below: for each group")
    print_group_errors(data, calibration)
    print_warnings(few_in_groups(calibration, calibration.linear, groups.cells, groups.records))


def _kinds_asked(
    mechanisms: str | None, *, groups: bool
) -> tuple[tuple[type[Mechanism], ...] | None, list[ComparisonRow]]:
    """Return the mechanisms to ask, None for the usual ones, and rows of those that groups rule out."""
    named = None if mechanisms is None else mechanisms_named(each_once(split_list(mechanisms), mechanisms))
    if not groups:
        return named, []
    for kind in named or ():
        check_composes(kind, {"--by": True}, "--mechanisms")
    return (COMPOSING, one_query_rows("group")) if named is None else (named, [])


def _chains(lengths: Sequence[int]) -> str:
    """Say how many chains and records there are.

    >>> _chains([5000]), _chains([20, 1500])
    ('1 chain with 5,000 records', '2 chains with 1,520 records')
    """
    return f"{counted(len(lengths), 'chain')} with {counted(sum(lengths), 'record')}"
