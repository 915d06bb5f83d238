"""Row filters: refused by one line, or rows are kept that the opposite filter drops."""

from datetime import datetime
from functools import cache

import polars as pl

import pufferfish as pf
from fuzz.mutation import of_text
from fuzz.target import Accepted, Target, file

__all__ = ["TARGET"]

_WORDS = """and or not in ( ) [ ] { } , == != < <= > >= = + - * ** / % ~ | & := : . ' " \\ # @ lambda if else for await
True False None null true nan inf 0 1 -1 1.5 1e400 99999999999999999999 0x10 1_0 'a' "b" f'a' b'a' '''
n sex day t awake state hour minute weekday date month year day col( hour(t) date(t) '2024-05-01'
'08:00' é \0 \n __import__""".split()


@cache
def seeds() -> list[bytes]:
    texts = [
        "awake and n > 0",
        'sex in ["m", "f"]',
        "hour(t) == 8 or not awake",
        "1 < n <= 7.5",
        'col("sex") != "m"',
        "date(t) >= '2024-05-01'",
        "n not in [1, 2, None] and weekday(t) < 5",
        "t < '2024-05-01 09:00'",
        "n == -1 or day > 0",
    ]
    return [text.encode() for text in texts]


@cache
def _tables() -> list[object]:
    frame = pl.DataFrame(
        {
            "state": ["rest", "active"] * 12,
            "n": [0, 1, 2, None, 5, -1] * 4,
            "day": [0.5, None, float("nan"), 3.0] * 6,
            "sex": ["m", "f", None] * 8,
            "awake": [True, False, None, True] * 6,
            "t": [datetime(2024, 5, 1, i, 30) for i in range(24)],
        }
    )
    return [frame, file("filtered.csv", frame.write_csv().encode())]


def one_input(data: bytes) -> None:
    where = data.decode("utf-8", "surrogateescape")
    wrong: pf.PufferfishError | None = None
    for table in _tables():
        kept = 0
        for text in (where, f"not ({where})"):
            try:
                kept += pf.read_sequences(table, "state", where=text).records
            except pf.PufferfishError as error:
                wrong = error
        if kept > 24:
            raise Accepted(f"kept: {kept} of 24 rows by a filter and its opposite")
    if wrong is not None:
        raise wrong


TARGET = Target("where", seeds, one_input, of_text([w + s for w in _WORDS for s in ("", " ")]))
