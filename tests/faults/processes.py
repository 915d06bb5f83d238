"""Work in a process of its own, killed at a time or before one of its calls of the system."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.figure  # noqa: F401 - what commands load is loaded once, before they are started by fork
import opendp.measurements  # noqa: F401

from pufferfish.cli import main
from pufferfish.ledger.kept import BookDatabase

__all__ = ["command", "dying", "ended", "forked", "started"]

CALLS = (
    "open",
    "write",
    "fsync",
    "replace",
    "rename",
    "link",
    "unlink",
    "ftruncate",
    "posix_fallocate",
    "chmod",
    "close",
)
"""What a program asks of the system when it writes; it is killed before each of these, in the middle of a write, and
before each statement to a database."""


def started(work: Callable[[], object], folder: Path, said: Path) -> int:
    """Do something in a process of its own, in a folder; what it prints goes into a file. Return the process."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        handle = os.open(said, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
        os.chdir(folder)
        work()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a process; return its exit code, below 0 if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forked(work: Callable[[], object], folder: Path, *, kill_after: float | None = None) -> tuple[int, str]:
    """Do something in a process of its own; return how it ended (below 0: by a signal) and what it printed."""
    said = folder.parent / f"said-{os.getpid()}"
    child = started(work, folder, said)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)  # it may have ended: then it is waited for below
    return ended(child), said.read_text(errors="replace")


def command(arguments: list[str]) -> Callable[[], object]:
    """Return a command line as work."""
    return lambda: main.main(arguments)


def dying(work: Callable[[], object], moment: int, counted: Path | None = None) -> Callable[[], object]:
    """Return work that is killed before its so-many-th call of the system; without a moment the calls are counted."""

    def watched() -> None:
        calls = 0

        def watch(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*given: Any, **more: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == moment:
                    if name == "write" and len(given[1]) > 1:
                        real(given[0], bytes(given[1])[: len(given[1]) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*given, **more)

            return call

        for name in CALLS:
            setattr(os, name, watch(name, getattr(os, name)))
        setattr(BookDatabase, "_do", watch("statement", BookDatabase._do))  # noqa: B010 - a name of its own
        try:
            work()
        finally:
            if counted is not None:
                counted.write_text(str(calls))

    return watched
