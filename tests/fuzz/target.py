"""What a target is, and what counts as a finding.

A finding is an exception that is no ``PufferfishError``, a message of several lines, a warning, a hang, very much
memory, or :class:`Accepted`, which a target raises where something was taken that must not be.
"""

import os
import random
import resource
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.mutation import Mutate
from pufferfish.errors import PufferfishError

__all__ = ["Accepted", "Finding", "Target", "file", "finding_of", "scratch"]

SECONDS = 10
"""Of computing; what takes longer hangs."""

WAITING = 120
"""Seconds by the clock, on a machine that others use too; what waits longer waits for ever."""

MEMORY = 2**30
"""Bytes; more is too much for a small input."""


class Accepted(AssertionError):
    """Something was accepted that says what is not so."""


class _Hang(BaseException):
    """Nothing catches it on the way."""


@dataclass(frozen=True)
class Target:
    """One way in.

    Parameters
    ----------
    name : str
        As the runner calls it.
    seeds : callable
        Returns valid inputs, made by this program itself.
    one_input : callable
        Takes bytes as the program would; returns if they are refused by one line, or taken and sound.
    mutate : callable
        Changes an input.
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    one_input: Callable[[bytes], None]
    mutate: Mutate

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        """Return an input with something changed."""
        return self.mutate(data, rng, self.seeds())


@dataclass(frozen=True)
class Finding:
    """What is wrong, and a name under which the same fault is counted once."""

    kind: str
    says: str


@cache
def scratch() -> Path:
    """Return a folder for files, in memory where there is such a disk."""
    shared = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="pufferfish-fuzz-", dir=shared if os.access(shared, os.W_OK) else None))


def file(name: str, data: bytes) -> Path:
    """Write an input to a file, and return where."""
    path = scratch() / name
    path.write_bytes(data)
    return path


def finding_of(target: Target, data: bytes) -> Finding | None:
    """Give an input to a target, and return what is wrong; None if nothing is."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with _limited(), warnings.catch_warnings():
            warnings.simplefilter("error")
            target.one_input(data)
    except PufferfishError as error:
        said = str(error)
        if not said.strip() or "\n" in said or len(said) > 1000:
            return Finding(f"message: {_place(error)}", f"not one line of words: {said[:300]!r}")
    except Accepted as error:
        return Finding(f"accepted: {str(error).partition(':')[0]}", str(error))
    except _Hang as error:
        return Finding(f"hang: {_place(error)}", f"more than {SECONDS} s; {_place(error)}")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a library derives from it alone
        return Finding(f"{type(error).__name__}: {_place(error)}", "".join(traceback.format_exception(error))[-3000:])
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return Finding("memory", f"{grown >> 20} MiB") if grown > MEMORY else None


@contextmanager
def _limited() -> Generator[None]:
    def stop(number: int, frame: Any) -> None:
        raise _Hang

    limits = ((signal.SIGPROF, signal.ITIMER_PROF, SECONDS), (signal.SIGALRM, signal.ITIMER_REAL, WAITING))
    before = [signal.signal(number, stop) for number, _, _ in limits]
    try:
        for _, timer, seconds in limits:
            signal.setitimer(timer, seconds)
        yield
    finally:
        for (number, timer, _), old in zip(limits, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, old)


def _place(error: BaseException) -> str:
    """Return the last line of this package that an error came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/pufferfish/" in f.filename]
    return f"{frames[-1].filename.rpartition('/pufferfish/')[2]}:{frames[-1].name}" if frames else "?"
