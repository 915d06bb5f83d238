"""When something was made, as text in releases and ledgers: ISO 8601 with a time zone."""

from datetime import UTC, datetime

__all__ = ["in_words", "is_moment", "now"]


def now(after: str | None = None) -> str:
    """Return the time, in UTC, to the second; never one before ``after``: clocks are set back.

    Examples
    --------
    >>> is_moment(now())
    True
    """
    found = datetime.now(UTC).replace(microsecond=0)
    return (found if after is None else max(found, datetime.fromisoformat(after))).isoformat(timespec="seconds")


def is_moment(text: str) -> bool:
    r"""Whether a text is a time in ISO 8601, with a time zone, and nothing else.

    Examples
    --------
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

    Examples
    --------
    >>> in_words("2026-11-22T23:30:00+09:00")
    '2026-11-22 14:30:00 UTC'
    """
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
