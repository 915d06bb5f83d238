"""Tables and numbers on standard output, progress on standard error."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from pufferfish.cli.telling import telling
from pufferfish.core.numbers.progress import listening

__all__ = ["never_seen", "print_before", "print_table", "print_warnings", "progress"]


@contextmanager
def progress(what: str) -> Generator[None]:
    """Show a bar on standard error while something long runs."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)

        def listen(stage: str, share: float) -> None:
            bar.update(task, description=f"{what}: {stage}" if stage != what else what, completed=share, total=1.0)

        with listening(listen):
            yield


def print_table(table: Table) -> None:
    """Print a table at its own width: a cut number would be a wrong number."""
    Console(width=10_000, soft_wrap=True).print(table)


def print_warnings(texts: Iterable[str]) -> None:
    """Print warnings on standard error, a line each."""
    for text in texts:
        telling().warn(text)


def print_before(warnings: Iterable[str], told: Iterable[str], asked_for: str | None) -> None:
    """Say what must be known before a budget is spent: the warnings that were not told yet, and which ε was found."""
    known = set(told)
    print_warnings(text for text in warnings if text not in known)
    if asked_for is not None:
        click.echo(asked_for)


def never_seen(probabilities: Sequence[NDArray[np.float64]], smoothing: float, where: str = "") -> list[str]:
    """Return the line about what a fit takes as impossible because nobody did it; none if there is nothing."""
    impossible = sum(int((p == 0).sum()) for p in probabilities)
    if not impossible:
        return []
    return [
        f"{impossible} of {sum(p.size for p in probabilities)} transitions were never seen and are taken as "
        f"impossible{where}, which is a strong claim; --smoothing {smoothing:g} does not make it"
    ]
