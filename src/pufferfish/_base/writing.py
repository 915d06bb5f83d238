"""Writing files whole: into a file beside the target that nobody sees, which then takes its name.

An :class:`Output` is made before what it shall hold is known: whatever can fail (folder, permissions, space) fails
then, and not after a budget was spent. Its hidden file is locked as long as its program lives, so that those of killed
programs are known, and the next program to write there removes them.
"""

import errno
import os
import re
import stat
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from pufferfish._base.kinds import Kind, check_output
from pufferfish._base.reading import LARGEST, failing, shown
from pufferfish.errors import RecordError

try:
    import fcntl
except ImportError:  # not a Unix: hidden files of killed programs stay
    fcntl: Any = None

__all__ = ["Output", "check_writable", "sweep", "write_whole"]

_OURS = re.compile(r"\.pufferfish-[0-9a-f]{32}\.tmp")
_NOT_HERE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
"""What a disk answers that cannot reserve room."""

_ALIVE: set[str] = set()
"""Hidden files of this program: on some network disks a program cannot see its own locks."""


class Output:
    """A place for one file, kept ready until its content is known; use it by ``with``.

    Parameters
    ----------
    path : path-like
        The file; links are followed.
    kind : Kind or None
        What will be written; see :func:`pufferfish._base.kinds.check_output`.
    overwrite : bool
        Whether an earlier file of the same kind may be replaced.

    Raises
    ------
    RecordError
        If nothing can be written there, or what is there must not be replaced.
    """

    def __init__(self, path: str | os.PathLike[str], kind: Kind | None, *, overwrite: bool) -> None:
        self._given, self._kind, self._overwrite = path, kind, overwrite
        self.path = check_output(path, kind, overwrite=overwrite)
        with failing("cannot write", path):
            sweep(self.path.parent)
            self._hidden, self._handle = _hidden_in(self.path.parent)

    def __enter__(self) -> "Output":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget the place; a file that was written stays."""
        if self._handle >= 0:
            self._hidden.unlink(missing_ok=True)
            self._close()

    def reserve(self, size: int) -> None:
        """Take room on the disk for so many bytes, where the disk can.

        Raises
        ------
        RecordError
            If there is too little.
        """
        if hasattr(os, "posix_fallocate"):
            with failing("cannot write", self._given):
                try:
                    os.posix_fallocate(self._handle, 0, size)
                except OSError as error:
                    if error.errno not in _NOT_HERE:
                        raise

    def write(self, content: bytes) -> None:
        """Write the file, once: when this returns, it is on the disk.

        Raises
        ------
        RecordError
            If it cannot be written; what was there before stays.
        """
        if self._kind is not None and len(content) > LARGEST:  # what is not known by its content is not read whole
            raise RecordError(f"cannot write {shown(self._given)}: it would have more than {LARGEST >> 20} MiB")
        with failing("cannot write", self._given):
            left = memoryview(content)
            while left:
                left = left[os.write(self._handle, left) :]
            os.ftruncate(self._handle, len(content))  # what was reserved and not needed
            os.fsync(self._handle)
            if (
                check_output(self._given, self._kind, overwrite=self._overwrite) != self.path
            ):  # another program was here
                raise OSError(0, "it has become a link to another place meanwhile")
            os.chmod(self._hidden, _mode_for(self.path, self._kind))
            self._take_the_name()
            self._close()
            _flush_folder(self.path.parent)

    def _take_the_name(self) -> None:
        """Put the hidden file where it belongs; a name that is free is taken by one program only.

        It takes the name whole, in one step: a program that is killed leaves no empty file, which the next one would
        have to refuse. Disks without second names (hard links) cannot do that: there the name is claimed first.
        """
        if os.path.lexists(self.path):
            os.replace(self._hidden, self.path)
            return
        try:
            os.link(self._hidden, self.path)
        except FileExistsError:
            raise
        except (OSError, NotImplementedError):
            self._claim_the_name()
        else:
            with suppress(OSError):  # the file is written: a second name that stays is swept away later
                self._hidden.unlink()

    def _claim_the_name(self) -> None:
        os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            os.replace(self._hidden, self.path)
        except BaseException:
            self.path.unlink(missing_ok=True)
            raise

    def _close(self) -> None:
        _ALIVE.discard(self._hidden.name)
        handle, self._handle = self._handle, -1
        os.close(handle)


def check_writable(path: str | os.PathLike[str], kind: Kind | None, *, overwrite: bool) -> Path:
    """Return where an output would be written, if it could be; parameters and errors as for :class:`Output`."""
    with Output(path, kind, overwrite=overwrite) as output:
        return output.path


def write_whole(path: str | os.PathLike[str], content: bytes, kind: Kind | None, *, overwrite: bool) -> None:
    """Write a file in one step, so that a crash leaves the old one or the new one; as :class:`Output` does."""
    with Output(path, kind, overwrite=overwrite) as output:
        output.write(content)


def sweep(folder: Path) -> None:
    """Remove hidden files that killed programs of this user left in a folder; never what is in use or anybody else's.

    What cannot be removed stays: it is in nobody's way.
    """
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.name for entry in entries if _OURS.fullmatch(entry.name)]:
            if name not in _ALIVE:
                with suppress(OSError):
                    _sweep_one(folder / name)


def _sweep_one(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its program lives
            if _is_still(path, status):
                path.unlink()
    finally:
        os.close(handle)


def _hidden_in(folder: Path) -> tuple[Path, int]:
    """Make a hidden file, locked; between the two another program may have swept it, and then the next is tried."""
    while True:
        name = f".pufferfish-{uuid.uuid4().hex}.tmp"
        _ALIVE.add(name)
        path = folder / name
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
            handle = os.open(path, flags, 0o600)
        except BaseException:
            _ALIVE.discard(name)
            raise
        if fcntl is not None:
            with suppress(OSError):  # a disk without locks: then nobody can sweep there either
                fcntl.flock(handle, fcntl.LOCK_EX)
        if _is_still(path, os.fstat(handle)):
            return path, handle
        os.close(handle)
        _ALIVE.discard(name)


def _is_still(path: Path, status: os.stat_result) -> bool:
    """Whether a name still is that of an open file."""
    try:
        now = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (now.st_dev, now.st_ino) == (status.st_dev, status.st_ino)


def _flush_folder(folder: Path) -> None:
    """Make a new name in a folder survive a loss of power, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mode_for(target: Path, kind: Kind | None) -> int:
    """Permissions of the file that is replaced, or those a new one would get; a secret is its owner's alone."""
    if target.exists():
        return target.stat().st_mode & 0o777
    if kind is not None and kind.secret:
        return 0o600
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask
