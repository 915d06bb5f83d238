"""Columns as numbers, microseconds or labels, in expressions that polars and Spark compute alike.

Engines differ in what they do with a text that is no number, a 30 February, a time zone, a difference of two
timestamps. So nothing here relies on them: text is matched by a regular expression first and converted where it
matches, and instants become whole microseconds since 1970 (UTC) by calendar arithmetic.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Literal

import narwhals as nw

from pufferfish.errors import DataError

Kind = Literal["number", "text", "boolean", "instant", "nothing", "other"]

INTEGER = r"^-?[0-9]{1,18}$"
NUMBER = r"^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?|[iI][nN][fF]|[nN][aA][nN]|[iI]nfinity)$"
BOOLEAN = r"^(?:true|false|True|False|TRUE|FALSE)$"
_LEAP = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DAY = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]{1,9})?)?"
_ZONE = r" ?(?:Z|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])"
ISO = rf"^{_DAY}(?:[T ]{_CLOCK}(?:{_ZONE})?)?$"
ZONED = rf"[0-9]{_ZONE}$"
_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""White space of Unicode: engines differ in what they take for it."""
_NOT_ZONE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.,]*)? ?"
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column as two expressions that are never null: its values, and where they are missing."""

    name: str
    kind: Kind
    value: nw.Expr  # anything where it is missing; of instants microseconds
    missing: nw.Expr
    zoned: bool = False  # for instants, whether they have a time zone
    untyped: bool = False  # for text of a file without types, which could have been times, and some values are none


@dataclass(frozen=True, slots=True)
class TextProfile:
    """How many values of a text column look like what."""

    values: int  # those that are not missing
    booleans: int
    integers: int
    numbers: int
    instants: int
    zoned: int  # instants with an offset
    plain: int  # instants like 2016-04-13 08:00:00

    @property
    def mixed(self) -> bool:
        """Whether some instants have an offset, and others none."""
        return self.zoned not in (0, self.values)


def kind_of(dtype: Any) -> Kind:
    """Say what a column of a narwhals data type can be used as."""
    if dtype.is_numeric():
        return "number"
    if dtype == nw.Boolean:
        return "boolean"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "text"
    return "instant" if dtype in (nw.Datetime, nw.Date) else "other"


def missing(column: nw.Expr, dtype: Any) -> nw.Expr:
    """Whether a value is missing: null, or NaN in a column of floats; never null itself."""
    if not dtype.is_float():
        return column.is_null()
    return column.is_null() | column.fill_null(0.0).is_nan()


def no_time(column: nw.Expr, dtype: Any) -> nw.Expr:
    """Whether a time is missing, or is text that says nothing; never null itself."""
    return clean_text(column) == "" if kind_of(dtype) == "text" else missing(column, dtype)


def native_column(name: str, dtype: Any, *, zoned: bool = False, polars: bool = False) -> Column:
    """Read a column by its type; ``zoned`` for instants in UTC whose type does not say so."""
    column, kind = nw.col(name), kind_of(dtype)
    if kind == "instant":
        value = _polars_micros(column) if polars else _spark_micros(column, dtype)
    elif kind == "text":
        value = column.cast(nw.String).fill_null("")
    elif kind == "boolean":
        value = column.fill_null(False)
    elif kind == "number":
        value = column.cast(nw.Int64).fill_null(0) if dtype.is_integer() else column.cast(nw.Float64).fill_null(0.0)
    else:
        value = column
    return Column(name, kind, value, missing(column, dtype), zoned or getattr(dtype, "time_zone", None) is not None)


def state_column(name: str, dtype: Any) -> nw.Expr:
    """Read a column of states by its type, null where they are missing; very large whole numbers as text."""
    column, kind = nw.col(name), kind_of(dtype)
    if kind == "boolean":
        value = nw.when(column.fill_null(False)).then(nw.lit("true")).otherwise(nw.lit("false"))
    elif kind == "number":
        large = dtype in (nw.UInt64, nw.Int128, nw.UInt128)
        value = column.cast((nw.String if large else nw.Int64) if dtype.is_integer() else nw.Float64)
    elif kind == "text":
        value = column.cast(nw.String)
    else:
        raise DataError(f"state column {name!r} holds {dtype}, expected text, numbers or true/false")
    return nw.when(~missing(column, dtype)).then(value)


def subject_column(name: str, dtype: Any) -> nw.Expr:
    """Read a column of subjects by its type, null where they are missing."""
    column, kind = nw.col(name), kind_of(dtype)
    if kind == "other":
        raise DataError(f"subject column {name!r} holds {dtype}, expected text or numbers")
    return nw.when(~missing(column, dtype)).then(column.cast(nw.String) if kind == "text" else column)


def profile_text(frame: nw.LazyFrame[Any], names: Sequence[str]) -> dict[str, TextProfile]:
    """Look at all values of text columns, in one pass."""
    frame = with_text_looks(frame.select(names), names)
    tests = [test.alias(f"{i} {key}") for i, name in enumerate(names) for key, test in text_tests(name).items()]
    counts: dict[str, Any] = collected(frame.select(tests)).rows(named=True)[0]
    return {
        name: TextProfile(**{key: int(counts[f"{i} {key}"] or 0) for key in text_tests(name)})
        for i, name in enumerate(names)
    }


def with_text_looks(frame: nw.LazyFrame[Any], names: Sequence[str]) -> nw.LazyFrame[Any]:
    """Prepare text columns for :func:`text_tests`: what several tests look at is worked out once."""
    frame = frame.with_columns(clean_text(nw.col(name)).alias(name) for name in names)
    return frame.with_columns(nw.col(name).str.contains(ISO).alias(f"{name}_iso") for name in names)


def text_tests(name: str) -> dict[str, nw.Expr]:
    """Count the values of a prepared text column that look like what, by the names of :class:`TextProfile`."""
    text, iso = nw.col(name), nw.col(f"{name}_iso")
    tests = {
        "values": text != "",
        "booleans": text.str.contains(BOOLEAN),
        "integers": text.str.contains(INTEGER),
        "numbers": text.str.contains(NUMBER),
        "instants": iso,
        "zoned": iso & text.str.contains(ZONED),
        "plain": iso & (text.str.len_chars() == 19) & (text.str.slice(10, 1) == " "),
    }
    return {key: count_where(test) for key, test in tests.items()}


def with_text_column(
    frame: nw.LazyFrame[Any], name: str, profile: TextProfile, parsed: str
) -> tuple[nw.LazyFrame[Any], Column]:
    """Read text as what all its values look like, into a column of its own: else engines parse it for each use."""
    text, value = clean_text(nw.col(name)), nw.col(parsed)
    absent = text == ""
    if profile.values == 0:
        return frame.with_columns(text.alias(parsed)), Column(name, "nothing", value, absent)
    if profile.booleans == profile.values:
        truth = text.is_in(["true", "True", "TRUE"])
        return frame.with_columns(truth.alias(parsed)), Column(name, "boolean", value, absent)
    if profile.numbers == profile.values:
        integer = profile.integers == profile.values
        frame = frame.with_columns(text_number(text, integer=integer).alias(parsed))
        return frame, Column(name, "number", value, absent if integer else absent | value.is_nan())
    if profile.instants == profile.values and not profile.mixed:
        frame = with_text_instants(frame.with_columns(text.alias(parsed)), parsed, profile)
        return frame, Column(name, "instant", value, absent, profile.zoned > 0)
    frame = frame.with_columns(nw.col(name).fill_null("").alias(parsed))
    return frame, Column(name, "text", value, absent, untyped=True)


def is_absent(value: Any) -> bool:
    """Whether a value of a collected result is missing: None, or NaN.

    >>> is_absent(None), is_absent(float("nan")), is_absent(0)
    (True, True, False)
    """
    return value is None or bool(value != value)


def count_where(condition: nw.Expr) -> nw.Expr:
    """Count the rows where a condition that is never null holds."""
    return condition.cast(nw.Int64).sum()


def collected(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Collect the few numbers that a look at all rows gives; polars then holds only some rows at a time."""
    return frame.collect(engine="streaming") if frame.implementation.is_polars() else frame.collect()


def row_count(frame: nw.LazyFrame[Any]) -> int:
    """Return how many rows a frame has."""
    return int(collected(frame.select(nw.len().alias("n"))).item())


def clean_text(column: nw.Expr) -> nw.Expr:
    """Text without nulls and without white space around it."""
    return column.cast(nw.String).fill_null("").str.strip_chars(_BLANKS)


def text_number(text: nw.Expr, *, integer: bool) -> nw.Expr:
    """Numbers of clean text; 0 where it is not a number."""
    pattern = INTEGER if integer else NUMBER
    digits = nw.when(text.str.contains(pattern)).then(text).otherwise(nw.lit("0"))
    return digits.cast(nw.Int64 if integer else nw.Float64)


def with_text_instants(
    frame: nw.LazyFrame[Any], name: str, profile: TextProfile, wall: str | None = None
) -> nw.LazyFrame[Any]:
    """Replace a column of ISO text by microseconds since 1970; digits after the sixth are dropped.

    Every value is ISO text, with an offset, which is taken off, or without one, as its profile says; or it is missing
    or empty, and becomes 0. With ``wall``, what the text says without its offset, the local clock, is kept in a column
    of that name. Where all texts are plain, polars reads them itself: five times as fast. It would also read what is no
    ISO text, so they must have been looked at. Else it goes in steps, each a column of its own: engines would evaluate
    a part once for every place it stands in.
    """
    local, offset = f"{name}_local", f"{name}_offset"
    text = clean_text(nw.col(name))
    if profile.plain == profile.values and frame.implementation.is_polars():
        whole = nw.when(text != "").then(text).otherwise(nw.lit("1970-01-01 00:00:00"))
        frame = frame.with_columns(_polars_micros(whole.str.to_datetime("%Y-%m-%d %H:%M:%S")).alias(name))
        return frame if wall is None else frame.with_columns(nw.col(name).alias(wall))
    frame = frame.with_columns(nw.when(text != "").then(text).otherwise(nw.lit("1970-01-01")).alias(local))
    if not profile.zoned:
        frame = frame.with_columns(_full(nw.col(local)).alias(local))
        frame = frame.with_columns(_instant(nw.col(local)).alias(name)).drop(local)
        return frame if wall is None else frame.with_columns(nw.col(name).alias(wall))
    # the offset is written as +0530; the default has none: nothing is cut from it, and it is 0 minutes east
    zone = nw.col(local).str.replace_all(_NOT_ZONE, "").str.replace_all("[:Z]", "")
    without = nw.col(local).str.replace_all(_ZONE + "$", "")
    frame = frame.with_columns(nw.concat_str(zone, nw.lit("+0000")).alias(offset), without.alias(local))
    east = nw.when(nw.col(offset).str.slice(0, 1) == "-").then(nw.lit(-1)).otherwise(nw.lit(1))
    minutes = east * (_integer(nw.col(offset), 1, 2) * 60 + _integer(nw.col(offset), 3, 2))
    frame = frame.with_columns(_full(nw.col(local)).alias(local), minutes.alias(offset))
    if wall is not None:
        frame = frame.with_columns(_instant(nw.col(local)).alias(wall))
    return frame.with_columns((_instant(nw.col(local)) - nw.col(offset) * 60_000_000).alias(name)).drop(local, offset)


def _full(local: nw.Expr) -> nw.Expr:
    """Text with a time to the microsecond."""
    size = local.str.len_chars()
    rest = nw.lit("000000")
    for length, padding in ((19, ".000000"), (16, ":00.000000"), (10, " 00:00:00.000000")):
        rest = nw.when(size == length).then(nw.lit(padding)).otherwise(rest)
    return nw.concat_str(local, rest)


def _instant(full: nw.Expr) -> nw.Expr:
    day = _days(_integer(full, 0, 4), _integer(full, 5, 2), _integer(full, 8, 2))
    minute = (day * 24 + _integer(full, 11, 2)) * 60 + _integer(full, 14, 2)
    return (minute * 60 + _integer(full, 17, 2)) * 1_000_000 + _integer(full, 20, 6)


def _polars_micros(column: nw.Expr) -> nw.Expr:
    """Microseconds since 1970, where an instant is their number; 0 where it is null."""
    return column.cast(nw.Datetime("us")).dt.timestamp("us").fill_null(0)


def _spark_micros(column: nw.Expr, dtype: Any) -> nw.Expr:
    """Microseconds since 1970 of Spark's times, which are in UTC and have no zone any more; 0 where they are null."""
    if dtype == nw.Date:
        column = column.cast(nw.Datetime("us"))
    # with a type, or an engine takes it for a time in a zone of its own
    part = column.fill_null(nw.lit(_EPOCH, nw.Datetime("us"))).dt
    day = _days(part.year().cast(nw.Int64), part.month().cast(nw.Int64), part.day().cast(nw.Int64))
    minute = (day * 24 + part.hour().cast(nw.Int64)) * 60 + part.minute().cast(nw.Int64)
    micros = part.microsecond().cast(nw.Int64)
    carried = nw.when(micros < 0).then(nw.lit(1_000_000)).otherwise(nw.lit(0))  # Spark's, before 1970
    return (minute * 60 + part.second().cast(nw.Int64)) * 1_000_000 + micros + carried


def parse_instant(text: str) -> tuple[int, bool] | None:
    """Microseconds since 1970 of one ISO text and whether it has an offset, or None if it is not one.

    >>> parse_instant("1970-01-01T01:00+01:00"), parse_instant("1970-01-02"), parse_instant("yesterday")
    ((0, True), (86400000000, False), None)
    """
    text = text.strip()
    if re.search(ISO, text) is None:
        return None
    zoned = re.search(ZONED, text) is not None
    try:
        instant = datetime.fromisoformat(text.replace(" +", "+").replace(" -", "-").replace(" Z", "Z"))
        utc = instant.astimezone(UTC).replace(tzinfo=None) if zoned else instant
    except (ValueError, OverflowError):
        return None
    return (utc - _EPOCH) // timedelta(microseconds=1), zoned


def other_date(text: str) -> bool:
    """Whether text begins with a date that is not in the order of ISO.

    >>> [other_date(text) for text in ("28.03.2026 10:00", "3/28/26", "2026/3/28", "2026-03-28")]
    [True, True, True, False]
    """
    return re.match(r"[0-9]{1,2}([./-])[0-9]{1,2}\1[0-9]{2}|[0-9]{4}([./])[0-9]{1,2}\2[0-9]", text.strip()) is not None


def format_instant(micros: int, *, zone: tzinfo | None = None) -> str:
    """Microseconds since 1970 as ISO text; of an instant as the clocks of a zone show it.

    >>> format_instant(60_000_000), format_instant(60_000_000, zone=UTC)
    ('1970-01-01 00:01:00', '1970-01-01 00:01:00+00:00')
    """
    try:
        shown = _EPOCH + timedelta(microseconds=micros)
        return str(shown if zone is None else shown.replace(tzinfo=UTC).astimezone(zone))
    except OverflowError:
        return f"{micros} microseconds after 1970"


def _integer(text: nw.Expr, start: int, length: int) -> nw.Expr:
    return text.str.slice(start, length).cast(nw.Int64)


def _days(year: nw.Expr, month: nw.Expr, day: nw.Expr) -> nw.Expr:
    """Days since 1970-01-01 in the Gregorian calendar; the year is taken to begin in March."""
    early = month <= 2
    year = year - early.cast(nw.Int64)
    month = month + nw.when(early).then(nw.lit(9)).otherwise(nw.lit(-3))
    return year * 365 + year // 4 - year // 100 + year // 400 + (month * 153 + 2) // 5 + day - 719_469
