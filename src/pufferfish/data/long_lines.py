"""Tables whose lines never end: an engine holds a line as a whole, and a small packed file may hold a huge one."""

import gzip
import mmap
from pathlib import Path

from pufferfish._base.reading import shown
from pufferfish.errors import DataError

__all__ = ["LONGEST_LINE", "refuse_long_lines"]

LONGEST_LINE = 10**6
"""Bytes of a line, and of the names of all columns."""


def refuse_long_lines(path: Path, *, packed: bool) -> None:
    """Refuse a text file that has a line of more than :data:`LONGEST_LINE` bytes.

    Raises
    ------
    DataError
        If it has; the first such line is named by the byte at which it begins.
    """
    if path.stat().st_size * (1 if not packed else _MOST_PACKED) <= LONGEST_LINE:
        return
    at = _in_packed(path) if packed else _in_plain(path)
    if at is not None:
        raise DataError(
            f"a line of {shown(path.name)} has more than {LONGEST_LINE:,} bytes (it begins at byte {at:,}"
            f"{' of what is packed' if packed else ''}): is it a CSV file? Shorten its cells"
        )


_MOST_PACKED = 1100
"""Bytes that one byte of a gzip file may become, at most."""


def _in_plain(path: Path) -> int | None:
    """Return where the first long line begins; only the ends of stretches are looked at, so little is read."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = 0
        while len(content) - at > LONGEST_LINE:
            end = content.rfind(b"\n", at, at + LONGEST_LINE + 1)
            if end < 0:
                return at
            at = end + 1
    return None


def _in_packed(path: Path) -> int | None:
    at = read = 0  # where the line at hand begins, and how much was unpacked
    with gzip.open(path, "rb") as file:
        while chunk := file.read(LONGEST_LINE):
            first = chunk.find(b"\n")
            if read + (first if first >= 0 else len(chunk)) - at > LONGEST_LINE:
                return at
            if first >= 0:
                at = read + chunk.rfind(b"\n") + 1
            read += len(chunk)
    return None
