"""Ctrl-C while the command line loads its modules, which takes about a second: "Aborted!" instead of a traceback.

Nothing has been read or written by then, so that the program can end at once. This module is imported before all
others, and imports nothing that takes long.
"""

import os
import signal
import sys
import threading
from itertools import pairwise
from types import FrameType

__all__ = ["end_quietly", "started"]


def end_quietly() -> None:
    """End quietly where the command line is interrupted, until :func:`started`; other programs are left alone."""
    alone = threading.current_thread() is threading.main_thread()
    if alone and _of_command_line() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _abort)


def started() -> None:
    """Leave interrupts to the command from now on."""
    if signal.getsignal(signal.SIGINT) is _abort:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _of_command_line() -> bool:
    """Whether this program is ``pufferfish`` or ``python -m pufferfish``."""
    name = sys.argv[0] if sys.argv else ""
    if name == "-m":  # until Python has found the module
        return ("-m", "pufferfish") in pairwise(sys.orig_argv)
    return os.path.basename(name) in ("pufferfish", "pufferfish.exe")


def _abort(number: int, frame: FrameType | None) -> None:
    os.write(2, b"Aborted!\n")
    os._exit(1)
