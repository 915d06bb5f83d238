"""Reading files that are small by nature: models, releases, ledgers. Regular files of a bounded size, or one error.

A device may never end and a pipe may never begin, so only regular files are opened. What is read is compared with what
this package would write for it: a misspelt or missing key, which a decoder would take for its default, is refused.
"""

import hashlib
import json
import os
import re
import stat
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from pufferfish._base.words import nearest
from pufferfish.errors import PufferfishError, RecordError, shortened

T = TypeVar("T")

LARGEST = 256 * 2**20
"""Most bytes of a model, release or ledger: a chain of 2,000 states, the most there may be, has half as many."""

_MOST_NEAR = 1_000  # so many files of a folder are looked at for one that was meant

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_ONE_AT_A_TIME = threading.RLock()
"""msgspec learns a type when it is first asked for: another thread that asks meanwhile may end the process."""

if hasattr(os, "register_at_fork"):  # a child waits for no thread of its parent
    os.register_at_fork(
        before=_ONE_AT_A_TIME.acquire,
        after_in_parent=_ONE_AT_A_TIME.release,
        after_in_child=_ONE_AT_A_TIME.release,
    )


def converted(plain: Any, kind: type[T], **how: Any) -> T:
    """Return plain values as an object of a kind, validated, as ``msgspec.convert``; threads take turns."""
    with _ONE_AT_A_TIME:
        return msgspec.convert(plain, kind, **how)


def decoded(content: bytes | str, kind: type[T]) -> T:
    """Return what JSON holds as an object of a kind, validated, as ``msgspec.json.decode``; threads take turns."""
    with _ONE_AT_A_TIME:
        return msgspec.json.decode(content, type=kind)


def display_path(path: Any) -> str:
    """Return a path for a message; a very long one is cut in its middle."""
    return shortened(str(path))


def is_address(where: Any) -> bool:
    """Whether somebody names a database, by an address such as ``sqlite:///book.db``, and not a file."""
    return isinstance(where, str) and "://" in where


def shown_address(where: str) -> str:
    """Return an address without its password, which stands in no message and no file.

    >>> shown_address("postgresql://office:secret@host/clinic?table=steps&password=secret")
    'postgresql://office@host/clinic?table=steps&password='
    """
    address, mark, name = where.partition("#")
    address = re.sub("://([^/:@]*):[^/]*@", r"://\1@", address)
    return re.sub("(?<=[?&])password=[^&]*", "password=", address) + mark + name


@contextmanager
def failing(failure: str, path: Any) -> Generator[None]:
    """Turn whatever the system says of a path into one line: ``failure`` is "cannot read" or "cannot write"."""
    try:
        yield
    except PufferfishError:
        raise
    except FileNotFoundError as error:
        raise RecordError(f"{failure} {display_path(path)}: there is no such {_lacking(path)}") from error
    except (OSError, ValueError, TypeError, RuntimeError) as error:  # RuntimeError: a loop of links
        raise RecordError(f"{failure} {display_path(path)}: {getattr(error, 'strerror', None) or error}") from error


def near_files(path: str | os.PathLike[str]) -> str:
    """Return the question whether a file of the same folder was meant, with the space before it; empty if none is near.

    >>> near_files("no/such/folder/model.json")
    ''
    """
    missing = Path(path)
    try:
        with os.scandir(missing.parent) as entries:
            here = [entry.name for entry in islice(entries, _MOST_NEAR) if entry.is_file()]
    except (OSError, ValueError):
        return ""
    stems = {Path(name).stem: name for name in here if name.isprintable() and Path(name).suffix == missing.suffix}
    near = nearest(missing.stem, stems)
    return f" Did you mean {stems[near]!r}?" if near else ""


def _lacking(path: Any) -> str:
    folder = Path(path).parent
    return f"file.{near_files(path)}".rstrip(".") if folder.is_dir() else f"folder as {display_path(folder)}"


def leads_nowhere(path: str | os.PathLike[str]) -> str | None:
    """Return what a link names, in words, where that is not there; None for all other paths.

    >>> leads_nowhere("model.json")
    """
    link = Path(path)
    if not link.is_symlink() or link.exists():
        return None
    target = display_path(os.readlink(link))
    return f"it is a link to {target}, which does not exist; remove the link, or name another file"


def check_path(path: Any) -> None:
    """Refuse what is no path: a number would be taken for an open file."""
    if not isinstance(path, str | os.PathLike):
        type_name = path.__name__ if isinstance(path, type) else type(path).__name__
        raise RecordError(f"the path of a file is {type_name}, expected its name as text, or a pathlib.Path")
    name = os.fsdecode(os.fspath(cast("str | os.PathLike[str]", path)))
    if not name.strip():
        raise RecordError("the name of a file is empty: name one")
    if name.lstrip().startswith("{"):
        raise RecordError(f"{display_path(path)} is what such a file holds, expected the file's name")
    if name.endswith(("/", os.sep)) and not os.path.isdir(name):
        raise RecordError(f"{display_path(path)} ends in {os.sep}, as only the name of a folder does: name a file")


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file."""
    check_path(path)
    with failing("cannot read", path):
        if nowhere := leads_nowhere(path):
            raise RecordError(f"cannot read {display_path(path)}: {nowhere}")
        _check_regular(os.stat(path))
        # NONBLOCK: what became a pipe since would wait for its other end
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            _check_regular(os.fstat(file.fileno()))
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise OSError(0, f"it has more than {LARGEST >> 20} MiB, more than any file of this program")
    return content


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    with failing("cannot read", path), Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise OSError(0, "it is a folder; name a file")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "it is a device or a pipe; name a regular file")
    if status.st_size > LARGEST:
        raise OSError(0, f"it has more than {LARGEST >> 20} MiB, more than any file of this program")


def read_record(
    path: str | os.PathLike[str], kind: type[T], *, format_: str, version: int, complete: bool = False
) -> T:
    """Read a JSON record of this package, validated; parameters as for :func:`decode_record`."""
    return decode_record(read_file(path), display_path(path), kind, format_=format_, version=version, complete=complete)


def decode_record(
    content: bytes,
    source: str,
    kind: type[T],
    *,
    format_: str,
    version: int,
    complete: bool = False,
    check: Callable[[bytes], None] | None = None,
    anew: str = "make the file again",
) -> T:
    """Return the record that the content of a file holds; ``source`` is the file's name in messages.

    ``format_`` and ``version`` stand at its top. With ``complete`` every key has to be there, as this package writes
    it; by default those with a default may be left out. ``check`` takes the content once its format and version are
    known, and raises ``ValueError`` where it is damaged. ``anew`` says what to do with a file of another version, if
    the program that wrote it is not at hand.
    """
    try:
        # some editors leave a byte order mark
        head: Any = msgspec.json.decode(content.removeprefix(_BYTE_ORDER_MARK))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if not content.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith((b"{", b"[")):
            reason = "looks like a table" if b"," in content.partition(b"\n")[0] else "is not JSON"
            raise RecordError(f"{source} {reason if content else 'is empty'}, expected a {format_} file") from error
        raise RecordError(f"{source} is damaged or incomplete, it is not JSON: {error}") from error
    if not isinstance(head, dict) or head.get("format") != format_:
        file_format = head.get("format") if isinstance(head, dict) else None
        ours = isinstance(file_format, str) and re.fullmatch("pufferfish-[a-z-]{1,30}", file_format)
        reason = f"this is a {file_format} file" if ours else f'expected "format": "{format_}" at its top'
        raise RecordError(f"{source} is not a {format_} file: {reason}")
    file_version: Any = head.get("version")
    if isinstance(file_version, bool) or file_version != version:
        raise RecordError(
            f"{source} is version {file_version!r} of {format_}, this program reads version {version}: "
            f"{anew}, or use the program that wrote it"
        )
    try:
        if check is not None:
            check(content)
        else:
            _check_each_key_once(content)
        record = converted(head, kind)
        if complete:
            _same(head, msgspec.json.decode(msgspec.json.encode(record)), "$")
    except (msgspec.ValidationError, ValueError, OverflowError, RecursionError) as error:
        raise RecordError(f"{source} is not a valid {format_} file: {error}") from error
    return record


def _check_each_key_once(content: bytes) -> None:
    """Refuse a key that an object gives twice: decoders take the last one in silence, readers see the first."""

    def check(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {display_path(key)!r} is given twice")
            seen.add(key)

    json.loads(content.removeprefix(_BYTE_ORDER_MARK).decode(), object_pairs_hook=check, parse_int=str)


def _same(original: Any, again: Any, where: str) -> None:
    """Refuse what a decoder passed over in silence: keys that are unknown or missing, however deep."""
    if original == again:  # as nearly always, and quick for a book of many subjects
        return
    if isinstance(original, dict) and isinstance(again, dict):
        here, there = cast("dict[str, Any]", original), cast("dict[str, Any]", again)
        for key in here.keys() - there.keys():
            raise ValueError(f"{where} has the unknown field {key!r}")
        for key in there.keys() - here.keys():
            raise ValueError(f"{where} lacks the field {key!r}")
        for key, value in here.items():
            _same(value, there[key], f"{where}.{key}")
    elif isinstance(original, list) and isinstance(again, list):
        listed, anew = cast("list[Any]", original), cast("list[Any]", again)
        if len(listed) != len(anew):
            raise ValueError(f"{where} has {len(listed)} entries, expected {len(anew)}")
        for i, pair in enumerate(zip(listed, anew, strict=True)):
            _same(*pair, f"{where}[{i}]")
    elif original != again:
        raise ValueError(f"{where} is {original!r}, expected {again!r}")
