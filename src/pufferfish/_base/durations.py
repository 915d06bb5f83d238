"""Lengths of time as people write them: ``"10min"``, ``"1h30min"``, a ``timedelta``, or a bare number.

A length with a unit is kept as whole microseconds, so that comparisons and step counts are exact; a bare
number has the unit of a numeric time column, whatever that is.
"""

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np

from pufferfish._base.words import number
from pufferfish.errors import ParameterError

# -- When something was made, as text in releases and ledgers --------------------------------------------------------


def now(after: str | None = None) -> str:
    """Return the time, in UTC, to the second; never one before ``after``: clocks are set back.

    >>> is_moment(now())
    True
    """
    moment = datetime.now(UTC).replace(microsecond=0)
    return (moment if after is None else max(moment, datetime.fromisoformat(after))).isoformat(timespec="seconds")


def is_moment(text: str) -> bool:
    r"""Whether a text is a time in ISO 8601, with a time zone, and nothing else.

    >>> is_moment("2026-01-31T12:00:00+00:00"), is_moment("2026-01-31T12:00:00"), is_moment("today")
    (True, False, False)
    >>> is_moment("2026-01-31T12:00:00+00:00\x00"), is_moment("2026-01-31\x1b12:00:00+00:00")
    (False, False)
    """
    if not text.isprintable():  # Python stops reading at a NUL, and takes any sign between a day and its time
        return False
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def in_words(moment: str) -> str:
    """Return a time as people read it, in UTC.

    >>> in_words("2026-11-22T23:30:00+09:00")
    '2026-11-22 14:30:00 UTC'
    """
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_NAMES = {
    "us": "us", "µs": "us", "μs": "us",
    "ms": "ms",
    "s": "s", "sec": "s", "second": "s", "seconds": "s",
    "min": "min", "mins": "min", "minute": "min", "minutes": "min",
    "h": "h", "hour": "h", "hours": "h",
    "d": "d", "day": "d", "days": "d",
    "w": "w", "week": "w", "weeks": "w",
}  # fmt: skip
_READ = {**_UNITS, "w": 7 * _UNITS["d"]}  # units that are read; weeks are written as days
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zµμ]+)")
_LONGEST = 50  # characters, far more than any length of time needs
_LARGEST = 10**17  # microseconds: about 3,000 years, so that no engine's 64-bit integers overflow


@dataclass(frozen=True, slots=True)
class Duration:
    """A positive length of time.

    >>> str(Duration(600_000_000, has_unit=True)), str(Duration(5, has_unit=False))
    ('10min', '5')
    """

    value: int | float  # microseconds if ``has_unit``, else a number in the unit of the time column
    has_unit: bool  # whether the length was given with a unit of time

    def __str__(self) -> str:
        return format_micros(int(self.value)) if self.has_unit else repr(self.value)


def format_micros(micros: int) -> str:
    """Microseconds as the shortest text that :func:`parse_duration` reads back.

    >>> format_micros(5_400_000_000), format_micros(12_500_000), format_micros(2 * 86_400_000_000)
    ('1h30min', '12s500ms', '2d')
    """
    parts: list[str] = []
    for unit in reversed(_UNITS):
        count, micros = divmod(micros, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def rounded_micros(micros: float) -> str:
    """Microseconds in the largest unit that they fill, to three digits.

    >>> rounded_micros(211_764_706), rounded_micros(90.25 * 3_600_000_000), rounded_micros(math.inf)
    ('3.53min', '3.76d', '∞')
    """
    if not math.isfinite(micros):
        return number(micros)
    unit = next((name for name in reversed(_UNITS) if micros >= _UNITS[name]), "us")
    return f"{number(micros / _UNITS[unit], 3)}{unit}"


def parse_duration(value: Any, name: str) -> Duration:
    """Read a length of time; ``name`` is the option's name in messages.

    >>> parse_duration("10min", "max_gap")
    Duration(value=600000000, has_unit=True)
    >>> parse_duration("600", "max_gap")
    Duration(value=600, has_unit=False)
    """
    if isinstance(value, np.timedelta64):
        value = value.astype("timedelta64[us]").item()
    if isinstance(value, Integral) and abs(int(value)) > _LARGEST:  # may have too many digits to be shown
        raise ParameterError(f"{name} has more than 17 digits, expected a length of time")
    if isinstance(value, timedelta):
        length = Duration(value // timedelta(microseconds=1), has_unit=True)
    elif isinstance(value, str):
        length = _from_text(value, name)
    elif isinstance(value, Real) and not isinstance(value, bool):
        length = Duration(int(value) if isinstance(value, Integral) else float(value), has_unit=False)
    else:
        raise _unreadable(value, name)
    if not math.isfinite(length.value) or not 0 < length.value <= _LARGEST:
        limit = " (and below 3,000 years)" if length.has_unit else " and finite"
        raise ParameterError(f"{name} is {value!r}, expected more than 0{limit}")
    return length


def _from_text(text: str, name: str) -> Duration:
    stripped = text.strip().lower()
    if len(stripped) > _LONGEST:
        raise ParameterError(
            f"{name} has {len(stripped):,} characters, expected a length of time such as '10min' in at most {_LONGEST}"
        )
    with suppress(ValueError):
        return Duration(int(stripped) if re.fullmatch("[0-9]+", stripped) else float(stripped), has_unit=False)
    total, end = Fraction(0), 0
    while part := _PART.match(stripped, end):
        unit = _NAMES.get(part[2])
        if unit is None:
            raise _unreadable(text, name)
        total += Fraction(part[1]) * _READ[unit]
        end = part.end()
    if end == 0 or stripped[end:].strip():
        raise _unreadable(text, name)
    if total.denominator != 1:
        raise ParameterError(f"{name} is {text!r}, expected whole microseconds")
    return Duration(int(total), has_unit=True)


def _unreadable(value: Any, name: str) -> ParameterError:
    return ParameterError(
        f"{name} is {value!r}, expected a length of time such as '10min', '600s', '1h30min' or '2d' "
        "(units: us, ms, s, min, h, d, w), a timedelta, or a number where time is numeric"
    )
