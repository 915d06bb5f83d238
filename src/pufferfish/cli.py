"""The command line: thin calls of the library.

Every command prints what it did to standard output, progress and warnings to standard error, and one clear line with
exit code 2 on bad input, before anything is written or spent.
"""

import csv
import hashlib
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from pufferfish.comparison import Comparison, compare
from pufferfish.core.progress import listening
from pufferfish.data import Sequences, read_sequences
from pufferfish.data.durations import parse_duration
from pufferfish.errors import DataError, ParameterError, PufferfishError, QueryError, RecordError, printable
from pufferfish.files import check_writable
from pufferfish.fit import fit_chain
from pufferfish.ledger import Ledger
from pufferfish.mechanisms import BOUNDS, MECHANISMS, InfluenceBound, LeakagePropagation, Mechanism
from pufferfish.mechanisms.mechanism import as_epsilon
from pufferfish.model_file import Model, chains_of, read_model, write_model
from pufferfish.models.chain_class import ChainClass
from pufferfish.queries import Count, Frequency, Histogram, Mean, Query, Sum
from pufferfish.release import FORMAT as RELEASE_FORMAT
from pufferfish.release import Release, release
from pufferfish.report.plot import PICTURE_KINDS, draw_noise, require_matplotlib, save_figure
from pufferfish.robustness import robustness

__all__ = ["main"]

_DEFAULT_MECHANISM = LeakagePropagation.name

_FACTORS = (0.1, 0.2, 0.5, 2.0, 5.0, 10.0)
"""At which multiples of ε ``compare --plot`` looks too."""


class _Group(click.Group):
    """Commands whose known errors become one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PufferfishError as error:
            click.echo(f"error: {printable(str(error))}", err=True)
            ctx.exit(2)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="pufferfish-privacy", prog_name="pufferfish")
def main() -> None:
    """Private statistics of correlated records.

    \b
    The usual way:
      pufferfish fit      PUBLIC.csv  --state activity --subject id --time t --max-gap 10min --output model.json
      pufferfish compare  model.json  --length 5000 --query histogram --epsilon 1
      pufferfish release  PRIVATE.csv --state activity --subject id --time t --max-gap 10min --model model.json
                                      --query histogram --epsilon 1 --output release.json --plot release.png
    """


def _table_options(*, required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
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


_QUERY_HELP = "histogram (shares), histogram-counts, count:STATE,…, frequency:STATE,…, sum:V1,V2,… or mean:STATE=V,…"


@main.command("release")
@click.argument("table", type=click.Path(path_type=Path))
@_table_options()
@click.option("--model", "model_path", required=True, metavar="FILE", help="Model file: the class Θ.")
@click.option("--query", "query_text", default="histogram", show_default=True, metavar="QUERY", help=_QUERY_HELP)
@click.option("--epsilon", type=float, help="Privacy parameter ε of this release, above 0.")
@click.option("--up-to", type=float, metavar="E", help="With --ledger, instead: what may be spent in all after it.")
@click.option(
    "--mechanism",
    "mechanism_name",
    type=click.Choice([m.name for m in MECHANISMS]),
    help=f"How the noise is calibrated [default: {_DEFAULT_MECHANISM}]; with --up-to by the ledger's own.",
)
@click.option("--valid", is_flag=True, help="Post-process to a possible value (a histogram that sums to its total).")
@click.option("--output", required=True, metavar="FILE", help="Where the release is written, as JSON.")
@click.option("--plot", "plot_path", metavar="FILE", help="Where a picture is drawn (.png, .svg, .pdf).")
@click.option("--overwrite", is_flag=True, help="Replace the record of an earlier release.")
@click.option("--ledger", "ledger_path", metavar="FILE", help="Ledger that this release is charged to.")
def release_command(
    table: Path,
    model_path: str,
    query_text: str,
    epsilon: float | None,
    up_to: float | None,
    mechanism_name: str | None,
    valid: bool,
    output: str,
    plot_path: str | None,
    overwrite: bool,
    ledger_path: str | None,
    **reading: Any,
) -> None:
    """Release a statistic of TABLE with noise that accounts for correlation.

    \b
    Example:
      pufferfish release steps.csv --state activity --subject id --time minute --max-gap 10min \\
        --model model.json --query histogram --epsilon 1 --output release.json --plot release.png
    """
    if (epsilon is None) == (up_to is None):
        raise ParameterError("give --epsilon, or with --ledger instead --up-to: what may be spent in all after this")
    if up_to is not None and (ledger_path is None or mechanism_name is not None):
        raise ParameterError("--up-to needs --ledger, whose mechanism calibrates: leave out --mechanism")
    if epsilon is not None:
        as_epsilon(epsilon)
    query = _parse_query(query_text)
    inputs = (table, model_path, *([ledger_path, f"{ledger_path}.lock"] if ledger_path else []))
    _check_targets(output, plot_path, inputs=inputs, keep="--output", overwrite=overwrite)
    model = chains_of(read_model(model_path), model_path)
    ledger = None if ledger_path is None else Ledger.open(ledger_path)
    sequences = _read(table, model, reading)
    with _progress("calibrating noise"):
        if ledger is None or epsilon is not None:
            bound = _mechanism(mechanism_name or _DEFAULT_MECHANISM)(model.theta, sequences.length)
            calibration = bound.calibrate(query, as_epsilon(epsilon))
        else:
            calibration = ledger.calibrate(query, up_to=up_to, length=sequences.length)
    warnings = _warnings(table, model)
    postprocess = "valid" if valid else None
    with _progress("releasing"):
        found = release(sequences, query, calibration, postprocess=postprocess, warnings=warnings, ledger=ledger)
    found.to_json(output)
    if plot_path is not None:
        found.plot(plot_path)
    _print_release(found)
    for text in found.warnings:
        click.echo(f"warning: {text}", err=True)
    written = [output] + ([plot_path] if plot_path else [])
    click.echo(f"written: {', '.join(written)}")


@main.group("ledger")
def ledger_group() -> None:
    """One budget for many releases of the same table.

    \b
    Example:
      pufferfish ledger create book.json --model model.json --budget 2 --table steps.csv --state activity --subject id
      pufferfish release steps.csv --state activity --subject id --model model.json --epsilon 0.5
                                   --ledger book.json --output first.json
      pufferfish ledger show   book.json
    """


@ledger_group.command("create")
@click.argument("ledger_path", metavar="FILE")
@click.option("--model", "model_path", required=True, metavar="FILE", help="Model file: the class Θ.")
@click.option("--budget", required=True, type=float, help="The most that all releases may leak together, above 0.")
@click.option("--table", required=True, type=click.Path(path_type=Path), help="The table whose releases are charged.")
@_table_options()
@click.option(
    "--mechanism",
    "mechanism_name",
    type=click.Choice([m.name for m in BOUNDS]),
    default=_DEFAULT_MECHANISM,
    show_default=True,
    help="What proves how much the releases leak together.",
)
def ledger_create_command(
    ledger_path: str, model_path: str, budget: float, table: Path, mechanism_name: str, **reading: Any
) -> None:
    """Make a ledger for TABLE, read in one way: its records, states, filter and bins.

    \b
    Example:
      pufferfish ledger create book.json --model model.json --budget 2 \
        --table steps.csv --state activity --subject id --time minute --max-gap 10min
    """
    if check_writable(ledger_path).exists():
        if any(Path(source).exists() and Path(ledger_path).samefile(source) for source in (table, model_path)):
            raise ParameterError(f"{ledger_path} is the file to be read: it would be lost; name another")
        raise RecordError(f"{ledger_path} exists, and a ledger is never replaced: name another file")
    model = chains_of(read_model(model_path), model_path)
    sequences = _read(table, model, reading)
    ledger = Ledger(_bound(mechanism_name)(model.theta, sequences.length), budget, base=sequences.base)
    ledger.save(ledger_path)
    click.echo(f"ledger for {sequences.records:,} records in {len(sequences.length):,} chains, budget {budget:g}")
    click.echo(f"written: {ledger_path}")


@ledger_group.command("show")
@click.argument("ledger_path", metavar="FILE")
def ledger_show_command(ledger_path: str) -> None:
    """Show the releases in a ledger, what they leak together, and what is left.

    \b
    Example:
      pufferfish ledger show book.json
    """
    ledger = Ledger.open(ledger_path)
    table = Table(box=None, pad_edge=False)
    for heading in ("", "when (UTC)", "what"):
        table.add_column(heading)
    for heading in ("alone", "together"):
        table.add_column(heading, justify="right")
    for entry in ledger.entries:
        alone = "" if entry.epsilon is None else _number(entry.epsilon)
        what = Text(printable(entry.what + (", a part" if entry.windows else "")))
        table.add_row(str(entry.number), entry.created[:19], what, alone, _number(entry.spent))
    if ledger.entries:
        _print_table(table)
    base = ledger.base
    if base is not None:
        click.echo(printable(f"table {base.source}, column {base.state}; Θ: {ledger.bound.theta.origin}"))
    click.echo(
        f"spent {_number(ledger.spent)} of {_number(ledger.budget)} by {ledger.bound.title}, "
        f"remaining {_number(ledger.remaining)}"
    )


@main.command("fit")
@click.argument("table", type=click.Path(path_type=Path))
@_table_options()
@click.option("--states", metavar="A,B,…", help="The states, in order [default: those in the table, sorted].")
@click.option(
    "--initial",
    type=click.Choice(["stationary", "any"]),
    default="stationary",
    show_default=True,
    help="Law of the first record: the stationary one, or every law at once.",
)
@click.option("--smoothing", type=float, default=0.0, show_default=True, help="Added to every transition count.")
@click.option("--output", required=True, metavar="FILE", help="Where the model is written, as JSON.")
def fit_command(
    table: Path,
    states: str | None,
    initial: Literal["stationary", "any"],
    smoothing: float,
    output: str,
    **reading: Any,
) -> None:
    """Fit a Markov chain to PUBLIC data and write it as a model file.

    The model is part of what everybody is assumed to know: fit it to data that is already public, such as an
    earlier survey, never to the table it shall protect.

    \b
    Example:
      pufferfish fit survey-2019.csv --state activity --subject id --time minute --max-gap 10min --output model.json
    """
    _check_targets(output, None, inputs=(table,), keep=None, overwrite=False)
    names = None if states is None else _split(states)
    with _progress("reading the table"):
        sequences = read_sequences(table, states=names, **reading)
    chain = fit_chain(sequences, initial=initial, smoothing=smoothing)
    base = sequences.base
    kept = f", rows where {base.where}" if base.where else ""
    origin = (
        f"fitted to public data on {datetime.now(UTC).date().isoformat()}: {base.source}, column {base.state}{kept}, "
        f"{sequences.records} records of {sequences.subjects} subject{'s' if sequences.subjects != 1 else ''}"
    )
    model = Model(theta=ChainClass((chain,), origin), bins=base.bins, step=base.step, fitted_on=_fingerprint(table))
    observed, impossible = int(sequences.transitions.sum()), int((chain.transition_matrix == 0).sum())
    lines = [f"chain of {chain.k} states from {observed:,} transitions between {sequences.records:,} records"]
    if chain.is_irreducible:
        lines.append(f"π_min {chain.pi_min:.3g}, eigengap of P P* {chain.eigengap:.3g}, period {chain.period}")
    else:
        lines.append("reducible: not every state can be reached from every other")
    if impossible:
        lines.append(
            f"{impossible} of {chain.k**2} transitions were never seen and are taken as impossible, which is a strong "
            "claim; --smoothing 1 does not make it"
        )
    write_model(model, output)
    for line in [*lines, f"written: {output}"]:
        click.echo(line)
    click.echo("Take this file as public from now on, and protect other data with it than the data it came from.")


@main.command("compare")
@click.argument("model_path", metavar="MODEL", type=str)
@click.option("--length", "lengths", multiple=True, metavar="N", help="Records of one chain; repeat, or N1,N2,….")
@click.option("--table", type=click.Path(path_type=Path), help="Take the (public) lengths from a table instead.")
@_table_options(required=False)
@click.option("--query", "query_text", default="histogram", show_default=True, metavar="QUERY", help=_QUERY_HELP)
@click.option("--epsilon", required=True, type=float, help="Privacy parameter ε, above 0.")
@click.option("--plot", "plot_path", metavar="FILE", help="Draw the noise from ε/10 to 10 ε (.png, .svg, .pdf).")
def compare_command(
    model_path: str,
    lengths: tuple[str, ...],
    table: Path | None,
    query_text: str,
    epsilon: float,
    plot_path: str | None,
    **reading: Any,
) -> None:
    """Noise of every mechanism under MODEL, before anything is spent.

    \b
    Example:
      pufferfish compare model.json --length 5000 --query histogram --epsilon 1
    """
    epsilon = as_epsilon(epsilon)
    query = _parse_query(query_text)
    if plot_path is not None:
        _check_picture(plot_path)
        check_writable(plot_path)
    model = chains_of(read_model(model_path), model_path)
    if (table is None) == (not lengths):
        raise ParameterError("give the chains' lengths by --length N, or a --table to take them from")
    if table is None:
        length: Any = _lengths(lengths)
    elif reading["state"] is None:
        raise ParameterError("--table needs --state: the column of states")
    else:
        length = _read(table, model, reading).length
    with _progress("comparing mechanisms"):
        rows = compare(model.theta, query, epsilon, length)
    click.echo(printable(f"{query_text} at ε = {epsilon:g}; Θ: {model.theta.origin}"))
    _print_comparison(rows)
    if plot_path is not None:
        with _progress("comparing at other ε"):
            others = {e: compare(model.theta, query, e, length) for e in (epsilon * f for f in _FACTORS)}
        save_figure(draw_noise({epsilon: rows} | others), plot_path)
        click.echo(f"written: {plot_path}")


@main.command("robustness")
@click.argument("model_path", metavar="MODEL", type=str)
@click.argument("belief_path", metavar="BELIEF", type=str)
@click.option(
    "--length",
    "lengths",
    multiple=True,
    required=True,
    metavar="N",
    help="Steps of one chain, unobserved ones included; repeat, or N1,N2,….",
)
@click.option("--epsilon", type=float, help="Privacy parameter ε under MODEL: say what it is under BELIEF.")
def robustness_command(model_path: str, belief_path: str, lengths: tuple[str, ...], epsilon: float | None) -> None:
    """How much more leaks if an adversary's BELIEF is outside of MODEL: ε + 2Δ (Theorem 2.4).

    \b
    Example:
      pufferfish robustness model.json belief.json --length 10 --epsilon 1
    """
    epsilon = None if epsilon is None else as_epsilon(epsilon)
    model, belief = (chains_of(read_model(path), path) for path in (model_path, belief_path))
    if model.bins != belief.bins:
        raise ParameterError(f"{model_path} and {belief_path} have other bins: their states mean different things")
    if model.step is not None and belief.step is not None and _time(model.step) != _time(belief.step):
        raise ParameterError(f"transitions of {model_path} take {model.step}, of {belief_path} {belief.step}")
    with _progress("comparing belief and model"):
        found = robustness(model.theta, belief.theta, _lengths(lengths))
    click.echo(printable(f"Θ: {model.theta.origin}; belief: {belief.theta.origin}"))
    if found.reason is not None:
        click.echo(printable(f"Δ is infinite: {found.reason}"))
        click.echo("Nothing follows for this belief from privacy under Θ; a Θ that contains it, or one like it, does")
        return
    click.echo(f"Δ = {_number(found)}")
    if found.secret is not None:
        click.echo(printable(f"decided by: {found.secret} ({found.direction})"))
    click.echo(f"closest member of Θ: number {found.theta} (from 0); worst belief: number {found.belief}")
    if epsilon is not None:
        effective = _number(found.effective_epsilon(epsilon))
        click.echo(f"what is private at ε = {epsilon:g} under Θ leaks at most ε + 2Δ = {effective} to this belief")


def _lengths(texts: tuple[str, ...]) -> list[int]:
    return [_whole(part) for text in texts for part in text.split(",")]


def _read(table: Path, model: Model, reading: dict[str, Any]) -> Sequences:
    options = dict(reading)
    if options["bins"] is None and model.bins is not None:
        options["bins"] = model.bins
    with _progress("reading the table"):
        sequences = read_sequences(table, states=model.theta.states, **options)
    step = sequences.base.step
    if step is not None and model.step is not None and _time(step) != _time(model.step):
        raise DataError(
            f"the model's transitions take {model.step}, the table's records are {step} apart: use a model of this "
            f"step, or give --step {model.step} if that is what they are"
        )
    return sequences


def _mechanism(name: str) -> type[Mechanism]:
    return next(mechanism for mechanism in MECHANISMS if mechanism.name == name)


def _bound(name: str) -> type[InfluenceBound]:
    return next(bound for bound in BOUNDS if bound.name == name)


def _time(step: str) -> float:
    return float(parse_duration(step, "step").value)


def _parse_query(text: str) -> Query:
    kind, _, argument = text.partition(":")
    parts = _split(argument)
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
    raise QueryError(f"query {text!r} is not understood. Queries: {_QUERY_HELP}")


def _split(text: str) -> list[str]:
    """Parts of a list with commas; a part in double quotes may hold some."""
    try:
        rows = list(csv.reader([text], skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise ParameterError(f'{text!r} is no list: {error}; quote a part with commas as "a,b"') from error
    return [part.strip() for part in (rows[0] if rows else []) if part.strip()]


def _whole(text: str) -> int:
    try:
        return int(text.strip().replace("_", ""))
    except ValueError:
        raise ParameterError(f"--length is {text!r}, expected a whole number of records") from None


def _check_targets(
    output: str, plot_path: str | None, *, inputs: Sequence[str | Path], keep: str | None, overwrite: bool
) -> None:
    """Refuse what could not or must not be written, before any noise is drawn.

    Never what is to be read; without ``overwrite`` no earlier release, nor any file at the option ``keep``.
    """
    for option, target in (("--output", output), ("--plot", plot_path)):
        if target is None:
            continue
        written = check_writable(target)
        if written.exists() and any(Path(source).exists() and written.samefile(source) for source in inputs):
            raise ParameterError(f"{option} {target} is the file to be read: it would be lost; name another")
        if written.exists() and not overwrite and (option == keep or _is_release(written)):
            raise RecordError(
                f"{option} {target} exists: it may be the record of an earlier release, which is spent; name another "
                "file, or give --overwrite"
            )
    if plot_path is not None:
        _check_picture(plot_path)
        if Path(plot_path).resolve() == Path(output).resolve():
            raise ParameterError("--plot and --output name the same file")


def _check_picture(path: str) -> None:
    if Path(path).suffix.lower() not in PICTURE_KINDS:
        raise ParameterError(f"--plot is {path!r}, expected a name that ends in {', '.join(PICTURE_KINDS)}")
    require_matplotlib()


def _is_release(path: Path) -> bool:
    with path.open("rb") as file:
        return f'"{RELEASE_FORMAT}"'.encode() in file.read(200)


def _fingerprint(table: Path) -> str:
    with table.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _warnings(table: Path, model: Model) -> tuple[str, ...]:
    if model.fitted_on is None or model.fitted_on != _fingerprint(table):
        return ()
    return (
        "The model was fitted to this very table. The noise then depends on the secrets it should hide: "
        "take this release as a comparison, not as a guarantee.",
    )


@contextmanager
def _progress(what: str) -> Generator[None]:
    """Show a bar on standard error while something long runs."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)

        def listen(stage: str, share: float) -> None:
            progress.update(task, description=f"{what}: {stage}" if stage != what else what, completed=share, total=1.0)

        with listening(listen):
            yield


def _print_release(found: Release) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column(found.query.kind)
    for heading in ("value", "± 95%"):
        table.add_column(heading, justify="right")
    error = found.accuracy(0.05)
    for label, value in zip(found.query.labels, found.values, strict=True):
        table.add_row(Text(printable(label)), _rounded(value, found.scale), _rounded(error, found.scale))
    _print_table(table)
    click.echo(
        f"{found.mechanism.title}, ε = {found.epsilon:g}: discrete Laplace noise of scale {found.scale:.6g} on each "
        f"of {len(found.values)} values; all are within {_rounded(found.accuracy(0.05, joint=True), found.scale)} "
        "with 95% probability"
    )
    if found.ledger is not None:
        booked = found.ledger
        click.echo(f"ledger: number {booked.entry}, spent {_number(booked.spent)} of {_number(booked.budget)} in all")
    if found.mechanism.name not in {bound.name for bound in BOUNDS}:
        click.echo(found.not_promised[-1])
    if found.postprocessing:
        click.echo(f"post-processed: {found.postprocessing}")
    click.echo(found.promise)
    for text in found.assumptions:
        click.echo(printable(f"assumed: {text}"))


def _print_comparison(rows: Comparison) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("mechanism")
    for heading in ("scale", "noise multiplier", "expected L1 error", "/ lower bound", "seconds"):
        table.add_column(heading, justify="right")
    for row in rows:
        if row.reason is not None:
            table.add_row(row.title, "N/A", "", "", "", "")
        else:
            numbers = (row.scale, row.noise_multiplier, row.expected_l1_error)
            ratio = "" if row.over_lower_bound is None else f"{row.over_lower_bound:.4g}"
            table.add_row(row.title, *(_number(v or 0.0) for v in numbers), ratio, f"{row.seconds:.2f}")
    _print_table(table)
    lower = next((row.lower_bound for row in rows if row.lower_bound), None)
    if lower is not None:
        click.echo(f"lower bound: Laplace noise of a scale below {_number(lower)} cannot give this guarantee")
    for row in rows:
        if row.reason is not None:
            click.echo(printable(f"{row.title}: N/A, {row.reason}"))


def _print_table(table: Table) -> None:
    """Print a table at its own width: a cut number would be a wrong number."""
    Console(width=10_000, soft_wrap=True).print(table)


def _number(value: float) -> str:
    return f"{value:.6g}"


def _rounded(value: float, scale: float) -> str:
    """Write a value to three digits of its noise: more would be noise."""
    decimals = max(0, 2 - math.floor(math.log10(scale)))
    return f"{value:,.{decimals}f}" if decimals <= 9 and abs(value) < 1e15 else f"{value:.6g}"
