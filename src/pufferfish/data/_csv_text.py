"""Kinds of files, and what is wrong with one: the line and the remedy, where an engine would say neither or take it."""

import csv
import gzip
import re
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from pufferfish._base.reading import display_path
from pufferfish.errors import DataError, PufferfishError

# -- Kinds of tables, by the names of their files --------------------------------------------------------------------

_CSV = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
KINDS = ".csv, .csv.gz, .tsv, .tsv.gz or .parquet"


def separator_of(name: str) -> str | None:
    """Return what separates the cells of a CSV file; None for files of other kinds."""
    return next((value for suffix, value in _CSV.items() if name.lower().endswith(suffix)), None)


def is_parquet(name: str) -> bool:
    """Whether a file is Parquet."""
    return name.lower().endswith((".parquet", ".pq"))


def other_kind(name: str) -> str:
    """Return what is said of a file of another kind, after its name."""
    workbook = name.lower().endswith((".xlsx", ".xls", ".ods"))
    remedy = "save the sheet as CSV in UTF-8" if workbook else "name a table in CSV so that it ends in .csv"
    return f"is not of a kind that can be read, expected {KINDS}: {remedy}"


def other_separator(columns: Sequence[str]) -> str:
    """Return what is said of a CSV file whose only column holds other separators, as many spreadsheets write them."""
    mark = re.search(r"[;\t|]", columns[0]) if len(columns) == 1 else None
    if mark is None:
        return ""
    seems = f" The file seems to separate columns by {mark[0]!r}, expected ',' (.csv) or a tab (.tsv): "
    if mark[0] == "\t":
        return f"{seems}name it so that it ends in .tsv, with decimal points."
    decimals = ", decimal_comma=True" if mark[0] == ";" else ""
    return (
        f"{seems}save it so, with decimal points, or in Python polars.read_csv(FILE, "
        f"separator={mark[0]!r}{decimals}).write_csv(NEW)."
    )


# -- What is wrong with a text ---------------------------------------------------------------------------------------

_LONGEST_LINE = 10**6  # bytes of a line, and of the names of all columns
_HEAD = 2**16  # bytes by which the kind of text is told
_CHUNK = 2**20
_TITLE_LINES = 20  # among which the names of the columns are looked for
_QUOTE = ord('"')
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1b-\x1f\x7f]")
"""Bytes of characters that no table has; Ctrl-Z is told by itself."""

_ONE_IN = 8  # one in so many bytes at least is NUL where characters have two bytes and many of them are Latin letters

_STRAY = "it has a stray quote"
_BOM = b"\xef\xbb\xbf"  # what some programs write before UTF-8
NO_TEXT = {
    b"\0": "the byte 0x00, as have files that are no text or were not written to their end: save it as text, without",
    b"\x1a": "the byte 0x1a, by which old programs end a file: save it as text, without",
    _BOM: "a byte order mark inside, as have files that were joined: remove it, or save the file again",
}
"""Bytes that would become a part of names, which look the same with them; what they mostly are, and the remedy."""


def wrong_text(path: Path) -> str | None:
    """Return which line of a CSV file is no UTF-8 text, in words; None if none is found."""
    with suppress(OSError, EOFError, ValueError, zlib.error), _opened(path) as file:  # the error at hand says enough
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return _not_utf8(path, number, line[error.start])
    return None


def _not_utf8(path: Path, number: int, byte: int) -> str:
    name, ending = path.name, "csv" if separator_of(path.name) == "," else "tsv"
    new = f"{name.split('.')[0]}-utf8.{ending}"
    convert = f"iconv -f WINDOWS-1252 -t UTF-8 {display_path(name)} > {display_path(new)}"
    if _is_packed(path):
        convert = f"gzip -dc {display_path(name)} | iconv -f WINDOWS-1252 -t UTF-8 > {display_path(new)}"
    return (
        f"line {number:,} of the file is no UTF-8 text (it has the byte {byte:#04x}; the file may be in Latin-1 or "
        f"Windows-1252): save it as CSV in UTF-8, such as by: {convert}"
    )


def wrong_line(path: Path) -> str | None:
    """Return which line of a CSV file has stray quotes or too many cells, in words; None if none is found."""
    separator = separator_of(path.name) or ","
    quoted = re.compile(rf'(?:^|(?<={separator}))"(?:[^"]|"")*"(?={separator}|[\r\n]*$)')
    before, inside, columns = 0, None, None
    record: list[str] = []  # the lines of the row at hand
    with suppress(OSError, EOFError, ValueError, zlib.error), _text_of(path) as file:  # the error at hand says enough
        lines = (record.append(line.decode("latin-1")) or record[-1] for line in file)
        rows = csv.reader(lines, delimiter=separator, strict=True)
        try:
            for row in rows:
                if inside is None and '"' in quoted.sub("", "".join(record)):
                    inside = before + 1
                record.clear()
                columns = len(row) if columns is None else columns
                if len(row) > columns:
                    which = f"line {before + 1:,} of the file"
                    return f"{which} has more cells than the first line has columns; quote cells that hold commas"
                before = rows.line_num
        except csv.Error as error:
            line = f"line {before + 1:,} of the file"
            if "field larger" in str(error):
                most = csv.field_size_limit()
                return f"{line} has a cell of more than {most:,} characters: is a quote not closed?"
            if "end of data" in str(error):
                return f"the quote of a cell in {line} is not closed: write another one where the cell ends"
            return (
                f"{line} has a stray quote: a cell that begins with a quote ends at the next one; write a quote inside "
                'such a cell twice ("")'
            )
    if inside is None:
        return None
    return (
        f"line {inside:,} of the file has a stray quote inside a cell: put such a cell in quotes, and write a quote "
        'inside it twice ("")'
    )


def line_with(name: str, path: Path) -> int | None:
    """Return which of the first lines of a CSV file names a column, where the first line has one cell only: a title."""
    with _opened(path) as file:
        lines = [file.readline(_LONGEST_LINE).decode("utf-8-sig", "replace") for _ in range(_TITLE_LINES)]
    separator = separator_of(path.name) or ","
    cells = [[cell.strip(' \t\r\n"') for cell in line.split(separator)] for line in lines]
    named = [sum(map(bool, row)) for row in cells]
    title = next(csv.reader([f"{lines[0]}\n"], delimiter=separator))
    if sum(map(bool, map(str.strip, title))) > 1:
        return None
    return next((i + 1 for i, row in enumerate(cells) if name in row and named[i] > named[0]), None)


def refuse_text(path: Path) -> None:
    """Refuse a CSV file whose text the engine would take for other lines, or for other names, than it has."""
    _refuse_other_packing(path)
    with _opened(path) as file:
        head = file.read(_HEAD)
        ends = b"\n" in head or len(head) < _HEAD or b"\n" in file.read(_LONGEST_LINE - _HEAD)
    name = display_path(path.name)
    if head.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise DataError(f"{name} is no CSV file but a workbook of Excel or the like: save it there as CSV in UTF-8")
    if not head.strip(b"\r\n") and len(head) < _HEAD:
        raise DataError(f"{name} has no header line, all its lines are empty: the first line names the columns")
    if _is_wide(head):
        raise DataError(f"{name} is no UTF-8 text (it looks like UTF-16): save it as CSV in UTF-8")
    if _is_binary(head):
        raise DataError(
            f"{name} holds no text: it is damaged, or of another kind than its name says; export the table once more, "
            "as CSV in UTF-8"
        )
    if not ends:
        raise DataError(f"the first line of {name} has more than {_LONGEST_LINE:,} characters: is it a CSV file?")
    unquoted = re.sub(rb'"[^"]*("|$)', b"", head)
    if b"\r" in unquoted.partition(b"\n")[0].removesuffix(b"\r"):
        ends_in = "CR CR LF" if b"\r\r\n" in head else "CR alone, as on old Macs"
        raise DataError(f"the lines of {name} end in {ends_in}: save it with line ends LF or CRLF")
    first = head.partition(b"\n")[0]
    try:  # names of columns, which the engine would take with signs for what it cannot read
        first.decode()
    except UnicodeDecodeError as error:
        if error.end < len(head) or len(head) < _HEAD:
            raise DataError(f"{name} cannot be read: {_not_utf8(path, 1, first[error.start])}") from None
    if (start := _long_line(path)) is not None:
        packed = " of what is packed" if _is_packed(path) else ""
        raise DataError(
            f"a line of {name} has more than {_LONGEST_LINE:,} bytes (it begins at byte {start:,}{packed}): is it a "
            "CSV file? Shorten its cells"
        )
    if fault := _fault(path):
        raise DataError(f"{name} cannot be read: {fault}")


def _long_line(path: Path) -> int | None:
    """Return where the first line begins that has more bytes than a line may have; None if none has."""
    start = read = 0  # where the line at hand begins, and how much was read
    with _opened(path) as file:
        while chunk := file.read(_LONGEST_LINE):
            first = chunk.find(b"\n")
            if read + (first if first >= 0 else len(chunk)) - start > _LONGEST_LINE:
                return start
            if first >= 0:
                start = read + chunk.rfind(b"\n") + 1
            read += len(chunk)
    return None


def _is_wide(head: bytes) -> bool:
    """Whether bytes are text of two or four bytes for each character: it says so itself, or has a NUL in each."""
    marked = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not (marked or head.count(b"\0") * _ONE_IN >= len(head) > 0):
        return False
    whole = head[: len(head) // 4 * 4]
    codes = ("utf-16", "utf-32") if marked else ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
    return any(_is_printable(whole, code) for code in codes)


def _is_printable(text: bytes, code: str) -> bool:
    try:
        decoded = text.decode(code)
    except UnicodeDecodeError as error:  # a character of which only the beginning was read
        decoded = text[: error.start].decode(code) if error.start >= len(text) - 4 else "\0"
    return "".join(decoded.split()).isprintable()


def _is_binary(head: bytes) -> bool:
    """Whether bytes are no text in any code: they are no UTF-8, and have control characters, as no Latin-1 text has."""
    try:
        head.decode()
    except UnicodeDecodeError as error:  # at the end a character of which only the beginning was read
        return error.end < len(head) and _CONTROL.search(head) is not None
    return False


def _fault(path: Path) -> str | None:
    """Return which line holds bytes of no text or a stray quote, in words; None if none does.

    A stray quote neither begins nor ends a cell, nor is one of two inside a cell in quotes. From there on the engine
    may take rows for a part of a cell, and so lose them without an error. Quotes open and close by turns; one that
    opens follows the end of a cell or, being the second of two, one that closes.
    """
    separator = (separator_of(path.name) or ",").encode()
    around = np.frombuffer(b'\r\n"' + separator, np.uint8)
    inside, before, line = 0, b"\n", 1
    with _text_of(path) as file:
        chunk = file.read(_CHUNK)
        while chunk:
            more = file.read(_CHUNK)
            seen = chunk + more[: len(_BOM) - 1]
            for mark, fault in NO_TEXT.items():
                if (place := seen.find(mark)) >= 0:
                    line += seen.count(b"\n", 0, place)
                    return f"line {line:,} of the file has {fault}"
            line += chunk.count(b"\n")
            if b'"' in chunk:
                text = np.frombuffer(before + chunk + (more[:1] or b"\n"), np.uint8)
                quotes = np.flatnonzero(text[1:-1] == _QUOTE) + 1
                opens, closes = quotes[inside::2], quotes[1 - inside :: 2]
                if not (np.isin(text[opens - 1], around[1:]).all() and np.isin(text[closes + 1], around).all()):
                    return wrong_line(path) or _STRAY
                inside = (inside + len(quotes)) % 2
            before, chunk = chunk[-1:], more
    return wrong_line(path) or _STRAY if inside == 1 else None


def _refuse_other_packing(path: Path) -> None:
    """Refuse a file that is compressed and not named so, or named so and not compressed."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    name = display_path(path.name)
    if packed and not _is_packed(path):
        raise DataError(f"{name} is compressed by gzip: rename it to {display_path(path.name + '.gz')}, or unpack it")
    if not packed and _is_packed(path):
        raise DataError(
            f"{name} is not compressed by gzip, as its name says: rename it to {display_path(path.name[:-3])}"
        )


def _is_packed(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if _is_packed(path) else path.open("rb")


@contextmanager
def _text_of(path: Path) -> Generator[Any]:
    """Open a file behind the byte order mark that it may begin with."""
    with _opened(path) as file:
        if file.read(len(_BOM)) != _BOM:
            file.seek(0)
        yield file


@contextmanager
def engine_errors(name: str, path: Path | None = None) -> Generator[None]:
    """Turn whatever an engine raises into one line; the path of a CSV file helps to say which of its lines is wrong.

    >>> with engine_errors("table.csv"):
    ...     raise OSError("unexpected end of file")
    Traceback (most recent call last):
    pufferfish.errors.DataError: table.csv cannot be read: unexpected end of file
    """
    try:
        yield
    except (PufferfishError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        line = " ".join(str(error).split()) or type(error).__name__
        if "PATH_NOT_FOUND" in line:  # Spark's
            raise DataError(f"file {name} not found") from error
        if path is not None and separator_of(path.name) is not None:  # the engine's words are for its own users
            line = wrong_text(path) or wrong_line(path) or line.partition(" The current offset")[0]
            if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile) or "gzip" in str(error):
                line = "the compressed file is incomplete or damaged: copy or compress it again"
        elif _DAMAGED in line:
            line = f"the file is damaged ({line.rpartition(_DAMAGED)[2].strip(' :')[:100]}): copy or write it again"
        raise DataError(f"{name} cannot be read: {line[:300]}") from error


_DAMAGED = "File out of specification"  # what polars says of a Parquet file whose parts do not fit together
