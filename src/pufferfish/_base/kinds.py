"""Which file may be replaced: only what the same command would itself have written, known by its content.

A name says nothing: ``model.json`` may be a ledger, and what stands at ``release.json`` may be the only record of
budget that is spent. So a file that is in the way is opened, and is replaced only if it holds the kind of thing that
shall be written there.
"""

import os
import stat
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pufferfish._base.reading import check_path, failing, leads_nowhere, read_file, shown
from pufferfish.errors import ParameterError, RecordError

__all__ = ["Kind", "check_output", "record_kind", "same_file"]

_ENDINGS = frozenset(
    ".bif .csv .doc .docx .feather .gz .htm .html .ipynb .jpg .json .md .parquet .pdf .png .py .svg .tsv .txt .xlsx "
    ".yaml .zip".split()
)
"""Names that end so promise a certain kind of file; one that ends in .2031 or .final promises nothing."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a command writes into a file.

    Parameters
    ----------
    name : str
        In words, such as "release".
    holds : callable
        Whether the content of a file is of this kind.
    keep : str
        Why such a file is not replaced unasked, and what to do.
    endings : tuple of str
        How names of such files end, in small letters.
    any_name : bool, default False
        Whether a name may also end in something else, if it is no other kind's: for files that only this program reads,
        which knows them by their content.
    secret : bool, default False
        Whether a new one is for its owner alone to read.
    """

    name: str
    holds: Callable[[bytes], bool]
    keep: str
    endings: tuple[str, ...]
    any_name: bool = False
    secret: bool = False

    def check_name(self, option: str, path: str) -> None:
        """Refuse a name that promises another kind of file than will be written there.

        Raises
        ------
        ParameterError
            If it does.
        """
        ending = Path(path).suffix.lower()
        if ending not in self.endings and not (self.any_name and ending not in _ENDINGS):
            raise ParameterError(
                f"{option} is {shown(path)!r}, expected a name that ends in {', '.join(self.endings)}: "
                f"a {self.name} is written there"
            )


def record_kind(name: str, format_: str, keep: str, *, secret: bool = False) -> Kind:
    """Return the kind of a JSON record of this package, known by its ``format``."""
    return Kind(name, lambda content: _format_of(content) == format_, keep, (".json",), any_name=True, secret=secret)


def check_output(path: str | os.PathLike[str], kind: Kind | None, *, overwrite: bool) -> Path:
    """Return where an output is to be written, all links followed: the one rule of what may be replaced.

    Parameters
    ----------
    path : path-like
        As the user names it.
    kind : Kind or None
        What shall be written; None for files of a folder that is this package's own, which are replaced unseen.
    overwrite : bool
        Whether a file of the same kind may be replaced. No other file ever is.

    Raises
    ------
    RecordError
        If there is no such folder, or something stands there that must not be replaced.
    """
    check_path(path)
    given = os.fspath(path)
    if str(given) == "-":
        raise RecordError("cannot write to standard output: name a file")
    if not str(given).strip():
        raise RecordError("cannot write: the name of the file is empty; name a file")
    if str(given).endswith(("/", os.sep)):
        raise RecordError(f"cannot write {shown(path)}: a name that ends in {os.sep} is a folder's; name a file")
    if kind is not None and Path(path).name.lower().endswith(".lock"):
        raise RecordError(
            f"cannot write {shown(path)}: names that end in .lock are kept for ledgers that are in use; name another"
        )
    with failing("cannot write", path):
        target = Path(path).resolve()
        if not target.parent.is_dir():
            if nowhere := leads_nowhere(path):
                raise RecordError(f"cannot write {shown(path)}: {nowhere}")
            raise RecordError(
                f"cannot write {shown(path)}: there is no folder {shown(Path(path).parent)}; make it first"
            )
        try:
            mode = target.stat().st_mode  # a name that is too long for the disk is noticed here
        except FileNotFoundError:
            return target
        if stat.S_ISDIR(mode):
            raise RecordError(f"cannot write {shown(path)}: it is a folder; name a file")
        if not stat.S_ISREG(mode):
            raise RecordError(f"cannot write {shown(path)}: it is a device or a pipe; name a file")
        if kind is not None:
            _check_kind(path, target, kind, overwrite=overwrite)
        if not os.access(target, os.W_OK):
            raise RecordError(f"cannot write {shown(path)}: the file is write-protected")
    return target


def _check_kind(path: Any, target: Path, kind: Kind, *, overwrite: bool) -> None:
    try:
        content = read_file(target)
        holds = kind.holds(content)
    except RecordError as error:
        raise RecordError(f"{shown(path)} exists and cannot be looked at ({error}): name another file") from error
    if not holds:
        other = _format_of(content)
        what = f"holds a {other} file" if other is not None else f"is no {kind.name}" if content else "is empty"
        raise RecordError(
            f"{shown(path)} exists and {what}: only an earlier {kind.name} is ever replaced; name "
            "another file, or move this one away first"
        )
    if not overwrite:
        raise RecordError(f"{shown(path)} exists: {kind.keep}")


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths name one file, or would if it were made: by links, or by names that some disks take as one."""
    try:
        first, second = Path(one).resolve(), Path(other).resolve()
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
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


class _Head(msgspec.Struct):
    format: str


def _format_of(content: bytes) -> str | None:
    """Return which format of this package a file says it holds; None for other files."""
    try:
        found = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"), type=_Head).format
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if found.startswith("pufferfish-") else None
