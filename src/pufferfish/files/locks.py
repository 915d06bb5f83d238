"""Lock files: who holds one keeps other programs out. They stay: one that is removed could be held by two programs."""

import os
import stat
from pathlib import Path

from pufferfish.errors import RecordError
from pufferfish.files.reading import shown

__all__ = ["check_lock"]

_LARGEST_LOCK = 200
"""Bytes that a lock file may have: programs may write into it who they are."""


def check_lock(lock: Path, what: str) -> None:
    """Refuse to take somebody's file for a lock.

    Raises
    ------
    RecordError
        If the file that is there is none.
    """
    if os.path.lexists(lock):
        status = lock.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_LOCK:
            raise RecordError(f"cannot lock {what}: {shown(lock)} is no lock, but another file; move it")
