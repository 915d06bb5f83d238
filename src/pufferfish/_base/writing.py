"""Writing files whole: into a file beside the target that nobody sees, which then takes its name.

An :class:`Output` is made before what it shall hold is known: whatever can fail (folder, permissions, space) fails
then, and not after a budget was spent. Its hidden file is locked as long as its program lives, so that those of killed
programs are known, and the next program to write there removes them.

Which file may be replaced: only what the same command would itself have written, known by its content. A name says
nothing: ``model.json`` may be a ledger, and what stands at ``release.json`` may be the only record of budget that is
spent.

Lock files: who holds one keeps other programs out. They stay: who removes a lock while another program waits for it
leaves that program with a file that has no name, and a third one makes a new file. A budget that is spent twice is
worse than an empty file.
"""

import errno
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from pufferfish._base.reading import (
    LARGEST as LARGEST,
    check_path,
    decode_record as decode_record,
    decoded,
    display_path,
    failing,
    leads_nowhere,
    read_file as read_file,
    read_record as read_record,
)
from pufferfish._base.words import composed
from pufferfish.errors import ParameterError, RecordError

# -- Which file may be replaced --------------------------------------------------------------------------------------

_ENDINGS = frozenset(
    ".bif .csv .doc .docx .feather .gz .htm .html .ipynb .jpg .json .md .parquet .pdf .png .py .svg .tsv .txt .xlsx "
    ".yaml .zip".split()
)
"""Names that end so promise a certain kind of file; one that ends in .2031 or .final promises nothing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a command writes into a file."""

    name: str  # in words, such as "release"
    holds: Callable[[bytes], bool]  # whether the content of a file is of this kind
    keep: str  # why such a file is not replaced unasked, and what to do
    endings: tuple[str, ...]  # how names of such files end, in small letters
    any_name: bool = False  # whether other endings may do, that are no other kind's: only this program reads it
    secret: bool = False  # whether a new one is for its owner alone to read

    def check_name(self, option: str, path: str) -> None:
        """Refuse a name that promises another kind of file than will be written there."""
        ending = Path(path).suffix.lower()
        if ending not in self.endings and not (self.any_name and ending not in _ENDINGS):
            raise ParameterError(
                f"{option} is {display_path(path)!r}, expected a name that ends in {', '.join(self.endings)}: "
                f"a {self.name} is written there"
            )


def record_kind(name: str, format_: str, keep: str, *, secret: bool = False) -> Kind:
    """Return the kind of a JSON record of this package, known by its ``format``."""
    return Kind(name, lambda content: _format_of(content) == format_, keep, (".json",), any_name=True, secret=secret)


def check_output(path: str | os.PathLike[str], kind: Kind | None, *, overwrite: bool) -> Path:
    """Return where an output is to be written: the one rule of what may be replaced: only its ``kind``."""
    check_path(path)
    if os.fspath(path) == "-":
        raise RecordError("cannot write to standard output: name a file")
    if kind is not None and Path(path).name.lower().endswith(".lock"):
        raise RecordError(
            f"cannot write {display_path(path)}: names that end in .lock are reserved for lock files; name another file"
        )
    with failing("cannot write", path):
        target = Path(path).resolve()
        if not target.parent.is_dir():
            no_folder = f"there is no folder {display_path(Path(path).parent)}; make it first"
            raise OSError(0, leads_nowhere(path) or no_folder)
        try:
            mode = target.stat().st_mode  # a name that is too long for the disk is noticed here
        except FileNotFoundError:
            return target
        if stat.S_ISDIR(mode):
            raise OSError(0, "it is a folder; name a file")
        if not stat.S_ISREG(mode):
            raise OSError(0, "it is a device or a pipe; name a file")
        if kind is not None:
            _check_kind(path, target, kind, overwrite=overwrite)
        if not os.access(target, os.W_OK):
            raise OSError(0, "the file is write-protected")
    return target


def _check_kind(path: Any, target: Path, kind: Kind, *, overwrite: bool) -> None:
    try:
        content = read_file(target)
        holds = kind.holds(content)
    except RecordError as error:
        raise RecordError(f"{display_path(path)} exists and cannot be read ({error}): name another file") from error
    if not holds:
        format_ = _format_of(content)
        problem = f"holds a {format_} file" if format_ is not None else f"is no {kind.name}" if content else "is empty"
        raise RecordError(
            f"{display_path(path)} exists and {problem}: only an earlier {kind.name} is ever replaced; name "
            "another file, or move this one away first"
        )
    if not overwrite:
        raise RecordError(f"{display_path(path)} exists: {kind.keep}")


def same_file(one_path: str | os.PathLike[str], other_path: str | os.PathLike[str]) -> bool:
    """Whether two paths name one file, or would if it were made: by links, or by names that some disks take as one."""
    try:
        first, second = Path(one_path).resolve(), Path(other_path).resolve()
        there = [path.exists() for path in (first, second)]
        if all(there):
            return first.samefile(second)
        if any(there):
            return False
        return _folded(first.name) == _folded(second.name) and first.parent.samefile(second.parent)
    except (OSError, ValueError, TypeError, RuntimeError):
        return False  # a path that leads nowhere is refused where it is opened


def _folded(name: str) -> str:
    """Return a name as a disk that takes no notice of capitals knows it."""
    return composed(composed(name).casefold())


class _Head(msgspec.Struct):
    format: str


def _format_of(content: bytes) -> str | None:
    """Return which format of this package a file says it holds; None for other files."""
    try:
        file_format = decoded(content.removeprefix(b"\xef\xbb\xbf"), _Head).format
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return file_format if file_format.startswith("pufferfish-") else None


# -- Writing a file whole --------------------------------------------------------------------------------------------

try:
    import fcntl
except ImportError:  # not a Unix: hidden files of killed programs stay
    fcntl: Any = None

_OURS = re.compile(r"\.pufferfish-[0-9a-f]{32}\.tmp")
_NOT_HERE = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)  # what a disk answers that cannot reserve room
_ALIVE: set[str] = set()  # hidden files of this program: on some network disks a program cannot see its own locks


def check_room(path: Path, size: int, given: str) -> None:
    """Refuse to begin a file where its disk has no room for so many bytes, about; ``given`` is its name in messages."""
    with failing("cannot write", given):
        free = shutil.disk_usage(path.parent).free
    if free < size:
        raise RecordError(f"cannot write {given}: it needs about {size:,} bytes, and its disk has {free:,} free")


class Output:
    """A place for one file, kept ready until its content is known; use it by ``with``. See :func:`check_output`."""

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
        """Take room on the disk for so many bytes, where the disk can."""
        if hasattr(os, "posix_fallocate"):
            with failing("cannot write", self._given):
                try:
                    os.posix_fallocate(self._handle, 0, size)
                except OSError as error:
                    if error.errno not in _NOT_HERE:
                        raise

    def write(self, content: bytes) -> None:
        """Write the file, once: when this returns, it is on the disk."""
        if self._kind is not None and len(content) > LARGEST:  # what is not known by its content is not read whole
            raise RecordError(f"cannot write {display_path(self._given)}: it would have more than {LARGEST >> 20} MiB")
        with failing("cannot write", self._given):
            left = memoryview(content)
            while left:
                left = left[os.write(self._handle, left) :]
            os.ftruncate(self._handle, len(content))  # what was reserved and not needed
            os.fsync(self._handle)
            now = check_output(self._given, self._kind, overwrite=self._overwrite)
            if now != self.path:  # another program was here
                raise OSError(0, "it was replaced by a link to another place while the program ran")
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
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            try:
                os.replace(self._hidden, self.path)
            except BaseException:
                self.path.unlink(missing_ok=True)
                raise
        else:
            with suppress(OSError):  # the file is written: a second name that stays is swept away later
                self._hidden.unlink()

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
    """Remove what killed programs of this user left in a folder, never what is in use; what cannot be, stays."""
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
        path = folder / f".pufferfish-{uuid.uuid4().hex}.tmp"
        _ALIVE.add(path.name)  # before it is there: another thread may sweep
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o600)
        except BaseException:
            _ALIVE.discard(path.name)
            raise
        if fcntl is not None:
            with suppress(OSError):  # a disk without locks: then nobody can sweep there either
                fcntl.flock(handle, fcntl.LOCK_EX)
        if _is_still(path, os.fstat(handle)):
            return path, handle
        os.close(handle)
        _ALIVE.discard(path.name)


def _is_still(path: Path, status: os.stat_result) -> bool:
    """Whether a name still is that of an open file."""
    try:
        return os.path.samestat(os.lstat(path), status)
    except FileNotFoundError:
        return False


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


# -- Lock files ------------------------------------------------------------------------------------------------------

_LARGEST_LOCK = 200  # bytes that a lock file may have: programs may write into it who they are


def check_lock(lock: Path, target: str) -> None:
    """Refuse to take somebody's file for a lock."""
    if os.path.lexists(lock):
        status = lock.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_LOCK:
            raise RecordError(f"cannot lock {target}: {display_path(lock)} is no lock, but another file; move it")
