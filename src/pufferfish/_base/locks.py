"""Lock files: who holds one keeps other programs out. They stay: one that is removed could be held by two programs.

Who removes a lock while another program waits for it leaves that program with a file that has no name, and a third one
makes a new file. A program could look, once it holds a lock, whether the name still is that of its file. But all of
them would have to: older versions of this package and of filelock do not, and on a network disk a removed file that is
open keeps a name. A budget that is spent twice is worse than an empty file.
"""

import os
import stat
from pathlib import Path

from pufferfish._base.reading import shown
from pufferfish.errors import RecordError

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
