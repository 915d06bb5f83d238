"""Tables and numbers on standard output, progress on standard error."""

import signal
import sys
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from pufferfish._base.progress import Listener, listening
from pufferfish._base.view import in_columns
from pufferfish.cli.messages import messages, print_error, say
from pufferfish.errors import printable
from pufferfish.mechanisms import Promise
from pufferfish.mechanisms.promises import promise_grid

# -- Ctrl-C while a release is made ----------------------------------------------------------------------------------


@contextmanager
def until_done(reason: str) -> Generator[None]:
    """Go on to the end of the block where it is interrupted (Ctrl-C), and say so at once; it has to be short."""
    if threading.current_thread() is not threading.main_thread():  # others are never interrupted
        yield
        return

    warned = False

    def wait(number: int, frame: FrameType | None) -> None:
        nonlocal warned
        if not warned:
            warned = True
            print_error(f"interrupted too late: {reason}, so the release is finished and written first")

    before = signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_FIRST, _THEN = 10.0, 30.0
"""Seconds after which long work is told of where there is no terminal, and from then on."""


@contextmanager
def progress(title: str) -> Generator[None]:
    """Tell on standard error how far something long is: by a bar on a terminal, else by a plain line now and then."""
    console = Console(stderr=True)
    # as rich may be told to take any file for a terminal
    bars = console.is_terminal and not console.is_dumb_terminal and sys.stderr.isatty()
    with _bar(title, console) if bars else _lines(title) as listen, listening(listen):
        yield


@contextmanager
def _bar(title: str, console: Console) -> Generator[Listener]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, done="")

        def listen(stage: str, share: float) -> None:
            done = f"{share:.0%}" if share else ""
            bar.update(task, description=_named(title, stage), completed=share, total=1.0, done=done)

        yield listen


@contextmanager
def _lines(title: str) -> Generator[Listener]:
    """Say how far it is by a watch of its own, for what takes long may report nothing meanwhile."""
    begun, over = time.monotonic(), Event()
    stage, share = title, 0.0

    def listen(now: str, done: float) -> None:
        nonlocal stage, share
        stage, share = now, done

    def watch() -> None:
        left = _FIRST
        while not over.wait(left):
            far = f"{share:.0%} of this step" if share else "at work"
            with suppress(OSError, ValueError):  # whoever read it has gone
                say(f"{_named(title, stage)}: {far}, {time.monotonic() - begun:,.0f} s so far", err=True)
            left = _THEN

    watcher = Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield listen
    finally:
        over.set()
        watcher.join()


def _named(title: str, stage: str) -> str:
    return title if stage == title else f"{title}: {stage}"


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1) -> None:
    """Print a table at its own width, for a cut number is a wrong one; the first ``names`` columns are words."""
    cells = [[printable(cell) for cell in row] for row in (heads, *rows)]
    say(*in_columns(cells, [i >= names for i in range(len(heads))]))


def print_promises(promises: Sequence[Promise], whose: str = "what this noise tells of") -> None:
    """Print what is told at most of every unit; what each covers stands in the documentation (Units)."""
    grid = promise_grid(promises, whose)
    print_table(grid.columns[:3], [row[:3] for row in grid.rows])


def print_warnings(texts: Iterable[str]) -> None:
    """Print warnings on standard error, a line each."""
    for text in texts:
        messages().warn(text)
