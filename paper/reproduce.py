"""``python -m paper reproduce``: the tables and figures of the paper."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from paper.experiments import (
    EXPERIMENTS,
    DataSets,
    Experiment,
    Results,
    Settings,
    find_data,
    run,
    workplace,
)
from pufferfish._base.progress import listening
from pufferfish._draw.figure import require_matplotlib
from pufferfish.cli.messages import print_error, rows_are_read
from pufferfish.cli.options import WHOLE
from pufferfish.cli.print import print_table
from pufferfish.errors import DataError, ParameterError, printable

__all__ = ["reproduce_command"]

_ALL, _LIST = "all", "list"
_BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
_MOST_TRIALS = 1_000_000


@click.command("reproduce")
@click.argument("name", metavar="NAME|all|list", type=click.Choice([*_BY_NAME, _ALL, _LIST]))
@click.option(
    "--data",
    "data_path",
    type=Path,
    help="Folder with the data sets, or one table of your own (which columns: documentation, The paper's experiments).",
)
@click.option("--trials", type=WHOLE, metavar="N", help="Releases simulated per cell [default: as many as the paper].")
@click.option("--seed", type=WHOLE, default=2017, show_default=True, help="Of simulated data and noise.")
@click.option(
    "--output",
    "folder",
    type=Path,
    default=Path("results"),
    show_default=True,
    metavar="FOLDER",
    help="Where NAME.csv, NAME.md and NAME.png are written; made if it is not there.",
)
def reproduce_command(name: str, data_path: Path | None, trials: int | None, seed: int, folder: Path) -> None:
    """Run an experiment of the paper: its numbers as CSV, a table in Markdown, and a figure.

    Noise is simulated, from a seed, and models are fitted to the data they protect, as in the paper: what is written
    compares mechanisms, and is no private release of a table of yours. An interrupted run goes on where it was.

    \b
    Example:
      python -m paper reproduce list
      python -m paper reproduce figure-synthetic --output results
      python -m paper reproduce all --data data --output results
      python -m paper reproduce table-activity --data cyclists.csv
    """
    if name == _LIST:
        _print_list()
        return
    if trials is not None and not 2 <= trials <= _MOST_TRIALS:
        raise ParameterError(f"--trials is {trials}, expected a number from 2 to {_MOST_TRIALS:,}")
    if seed < 0:
        raise ParameterError(f"--seed is {seed}, expected a number of at least 0")
    require_matplotlib()
    if data_path is not None:
        rows_are_read()
    data = find_data(data_path)
    if data.missing:
        print_error(f"not in {printable(str(data_path))}, so left out: {', '.join(data.missing)}")
    chosen = _possible(EXPERIMENTS, data) if name == _ALL else [_with_data(_BY_NAME[name], data, data_path)]
    work = [(experiment, Settings(seed, trials or experiment.trials, data)) for experiment in chosen]
    with workplace(work, folder):
        for i, (experiment, settings) in enumerate(work):
            try:
                with _bars(experiment) as on_part:
                    found = run(experiment, settings, folder, on_part)
            except KeyboardInterrupt:
                kept = f"interrupted: what is done is kept in {folder}; the same command goes on from there"
                print_error(kept)
                raise
            _print_results(experiment, found, first=i == 0)


def _print_list() -> None:
    rows = list[tuple[str, ...]]()
    for experiment in EXPERIMENTS:
        uses = "" if not experiment.uses else "more with data"
        needs = f"{' or '.join(experiment.needs)} data" if experiment.needs else uses
        rows.append((experiment.name, experiment.title, experiment.source, needs))
    print_table(("name", "what", "in the paper", "needs"), rows, names=4)


def _possible(experiments: Sequence[Experiment], data: DataSets) -> list[Experiment]:
    """Leave out what there are no data for, and say so."""
    possible = [experiment for experiment in experiments if not experiment.needs or data.of(experiment.needs)]
    left_out = [experiment for experiment in experiments if experiment not in possible]
    if left_out:
        names = ", ".join(f"{experiment.name} ({' or '.join(experiment.needs)} data)" for experiment in left_out)
        print_error(f"left out, for want of data: {names}; give --data")
    return possible


def _with_data(experiment: Experiment, data: DataSets, path: Path | None) -> Experiment:
    """Refuse an experiment that there are no data for."""
    if experiment.needs and not data.of(experiment.needs):
        kind = " or ".join(experiment.needs)
        where = f"give --data: a folder with {kind} data" if path is None else f"{path} has none"
        raise DataError(f"{experiment.name} needs {kind} data, {where} (documentation: The paper's experiments)")
    return experiment


@contextmanager
def _bars(experiment: Experiment) -> Generator[Callable[[int, int, str], None]]:
    """Show on standard error how many parts are done, and how far the one at work is."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        parts = bar.add_task(experiment.name, total=None)
        stage = bar.add_task("", total=100, visible=False)

        def on_part(done: int, total: int, key: str) -> None:
            bar.update(parts, description=f"{experiment.name}: {printable(key)}", completed=done, total=total)
            bar.update(stage, visible=False)

        def listen(what: str, share: float) -> None:
            bar.update(stage, description=f"  {what}", completed=round(100 * share), visible=True)

        with listening(listen):
            yield on_part


def _print_results(experiment: Experiment, found: Results, *, first: bool) -> None:
    click.echo(("" if first else "\n") + f"{experiment.title} ({experiment.source})")
    for sentence in found.about:
        click.echo(printable(sentence))
    for table in found.tables:
        click.echo(f"\n{printable(table.title)}")
        print_table(table.header, table.rows, names=table.texts)
    for sentence in ("", *found.reasons):
        click.echo(printable(sentence))
    click.echo(f"written: {', '.join(str(path) for path in found.written)}")
