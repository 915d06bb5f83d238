"""Ctrl-C while a release is made: what is spent must not be lost between the draw and the file that holds it."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from pufferfish.cli.telling import tell

__all__ = ["until_done"]


@contextmanager
def until_done(what: str) -> Generator[None]:
    """Go on to the end of the block where it is interrupted (Ctrl-C), and say so at once; it has to be short."""
    if threading.current_thread() is not threading.main_thread():  # others are never interrupted
        yield
        return

    told = False

    def wait(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if not told:
            told = True
            tell(f"interrupted too late: {what}, so this is finished first, and written")

    before = signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
