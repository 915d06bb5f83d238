"""CSV tables: refused by one line, or read as Python's own reader of CSV reads them, no row lost."""

import csv
import gzip
import io
import random
from collections.abc import Sequence
from functools import cache

import pufferfish as pf
from fuzz.mutation import of_bytes, of_text
from fuzz.target import Accepted, Target, file

__all__ = ["TARGET"]

_CELLS = [
    ",",
    ",,",
    "\n",
    "\r\n",
    "\r",
    '"',
    '""',
    '"a,b"',
    '"a\nb"',
    "rest",
    "active",
    "S1",
    "2024-05-01 08:00:00",
    "2024-05-01",
    "2024-13-01",
    "0",
    "-0.0",
    "1e999",
    "NaN",
    "inf",
    "null",
    "NA",
    "True",
    "\t",
    ";",
    "\ufeff",
    "\0",
    "é",
    " rest ",
    "1.0",
    "1_000",
    "2024-05-01T08:00:00+05:30",
    "9999999999999999999",
    "__pf_row",
    "t",
    "state",
]
_change = of_text(_CELLS)


@cache
def seeds() -> list[bytes]:
    times = [f"2024-05-01 {8 + t // 60:02d}:{t % 60:02d}:00" for t in range(30)]
    plain = "".join(f"S{s},{t},{['rest', 'active'][(i // 3) % 2]},{i}\n" for s in range(2) for i, t in enumerate(times))
    quoted = "".join(f'S1,{i},"rest, ""or"" not",{i / 2}\n' for i in range(20))
    found = [f"id,t,state,n\n{plain}".encode(), f"id,t,state,n\n{quoted}".encode()]
    return [*found, b"id,t,state,n\r\nS1,0,,1\r\nS1,1,rest,\r\n\r\nS1,2,active,2\r\n", gzip.compress(found[0], mtime=0)]


def mutate(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        try:
            return (
                gzip.compress(_change(gzip.decompress(data), rng, others), mtime=0)
                if rng.random() < 0.5
                else of_bytes(data, rng, others)
            )
        except Exception:
            return of_bytes(data, rng, others)
    return _change(data, rng, others)


def one_input(data: bytes) -> None:
    packed = data.startswith(b"\x1f\x8b")
    path = file("table.csv.gz" if packed else "table.csv", data)
    wrong: pf.PufferfishError | None = None
    for options in (
        {},
        {"subject": "id", "time": "t", "max_gap": "10min"},
        {"time": "t", "missing": "split"},
        {"bins": [0, 5, 10, 90]},
    ):
        try:
            column = "n" if "bins" in options else "state"
            found = pf.read_sequences(path, column, **options)  # type: ignore[arg-type]
        except pf.PufferfishError as error:
            wrong = error
            continue
        if int(found.counts.sum()) != found.records:
            raise Accepted(f"records: {found.records} of them, and counts of {int(found.counts.sum())}")
        if not options:
            _same_as_python(gzip.decompress(data) if packed else data, found)
    if wrong is not None:
        raise wrong


def _same_as_python(data: bytes, found: pf.Sequences) -> None:
    """Compare with another reader, where that understands the file too; to it CR alone ends a line."""
    if b"\r" in data.replace(b"\r\n", b""):
        return
    try:
        text = data.decode("utf-8-sig").lstrip("\r\n")  # empty lines before the header are no header
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except (csv.Error, UnicodeDecodeError):
        return
    cells = [row["state"] for row in rows]
    more = [row.get(None, []) for row in rows]  # cells beyond the columns; an empty one that ends the file is let pass
    if any(more[:-1]) or (more and any(more[-1])):
        raise Accepted("cells: a line has more cells than there are columns, and was taken")
    if found.records != sum(bool(cell) for cell in cells):
        raise Accepted(f"rows: {sum(bool(cell) for cell in cells)} states, of which {found.records} were read")


TARGET = Target("csv", seeds, one_input, mutate)
