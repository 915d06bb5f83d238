"""Files this package writes: whole or not at all; and reads: checked or refused."""

import os
import tempfile
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pufferfish.errors import RecordError

__all__ = ["check_writable", "read_record", "write_whole"]

T = TypeVar("T")

_HIDDEN = ".pufferfish-"


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Return the path if a file could be written there.

    Raises
    ------
    RecordError
        If its folder does not exist or cannot be written to, or the path is a folder.
    """
    if str(path) == "-":
        raise RecordError("cannot write to standard output: name a file")
    try:
        target = Path(path).resolve()
        if target.is_dir():
            raise RecordError(f"cannot write {path}: it is a folder; name a file")
        if not target.parent.is_dir():
            raise RecordError(f"cannot write {path}: there is no folder {Path(path).parent}; make it first")
        if target.exists() and not target.is_file():
            raise RecordError(f"cannot write {path}: it is a device or a pipe; name a file")
        if target.exists() and not os.access(target, os.W_OK):
            raise RecordError(f"cannot write {path}: the file is write-protected")
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=_HIDDEN):
            pass
    except RecordError:  # it is a ValueError too, and says all there is to say
        raise
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a loop of links
        raise RecordError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
    return target


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file in one step, so that a crash leaves the old one or the new one.

    Raises
    ------
    RecordError
        If it cannot be written; nothing is left behind.
    """
    target = check_writable(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=_HIDDEN)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode_for(target))
        os.replace(name, target)
        _flush_folder(target.parent)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise RecordError(f"cannot write {path}: {error.strerror}") from error


def _flush_folder(folder: Path) -> None:
    """Make a new name in a folder survive a loss of power, where the system can."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mode_for(target: Path) -> int:
    """Permissions of the file that is replaced, or those a new one would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask


def read_record(path: str | os.PathLike[str], kind: type[T], *, format_: str, version: int) -> T:
    """Read a JSON record of this package, validated.

    Raises
    ------
    RecordError
        If the file cannot be read, is not JSON, is of another format or version, or lacks a field.
    """
    source = Path(path)
    try:
        content = source.read_bytes().removeprefix(b"\xef\xbb\xbf")  # a byte order mark some editors leave
    except (OSError, ValueError) as error:
        raise RecordError(f"cannot read {source}: {getattr(error, 'strerror', None) or error}") from error
    try:
        head: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"{source} is damaged or cut short, it is not JSON: {error}") from error
    if not isinstance(head, dict) or head.get("format") != format_:  # pyright: ignore[reportUnknownMemberType]
        raise RecordError(f'{source} is no {format_} file: expected "format": "{format_}" at its top')
    found: Any = head.get("version")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if found != version:
        raise RecordError(
            f"{source} is version {found!r} of {format_}, this program reads version {version}: "
            "make the file anew, or use the program that wrote it"
        )
    try:
        return msgspec.convert(head, kind)
    except msgspec.ValidationError as error:
        raise RecordError(f"{source} is not a valid {format_} file: {error}") from error
