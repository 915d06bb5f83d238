"""Whether several releases can all be of one history of their ledger.

A ledger has one entry after each. A record names the digest of the entry before its own (``ledger.previous``), so two
different releases with the same one tell that an old copy of the ledger was put back and used again, or that two copies
of it were used. Then no ledger counts both releases, though each of them may hold by itself.
"""

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from pufferfish._base.checked import listed
from pufferfish._base.reading import decode_record, display_path
from pufferfish._base.writing import read_file
from pufferfish.errors import ParameterError, shortened
from pufferfish.release.record import (
    MEASUREMENT,
    MEASUREMENT_FORMAT,
    MEASUREMENT_VERSION,
    MeasurementFields,
    ReleaseFields,
    encoded,
)
from pufferfish.release.verification import Finding, fails, holds, unchecked
from pufferfish.release.verify import release_in

__all__ = ["AnyRelease", "any_release_in", "check_named_once", "one_history", "verify_together"]

AnyRelease = ReleaseFields | MeasurementFields
"""All kinds of releases that have a record."""

_FIELDS = ("ledger.previous",)


def verify_together(releases: Sequence[AnyRelease | str | os.PathLike[str]]) -> Finding:
    """Check that no two of several releases follow the same entry of a ledger.

    Two do where an old copy of a ledger is put back and used again, or where two copies are used: what is spent then
    does not count both releases. :func:`verify` looks at one record, and cannot see it. It shows only where the first
    release after the copy is at hand from both sides. One release under two names is no such case.

    Parameters
    ----------
    releases : sequence of Release, EachRelease, MeasurementRelease or path-like
        The releases, or their files. Whether each of them holds is not looked at: ask :func:`verify`.

    Returns
    -------
    Finding
        Whether it ``holds``, and what it ``says``, which names releases that follow the same entry; ``holds`` is None
        where fewer than two releases were charged to a ledger.

    Raises
    ------
    RecordError
        If a file is no release.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish as pf
    >>> chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    >>> data = pf.read_sequences(pl.DataFrame({"state": ["rest", "active"] * 50}), "state")
    >>> bound = pf.LeakagePropagation(chain, data.length)
    >>> ledger, noise = pf.Ledger(bound, budget=2.0), bound.calibrate(pf.Count("active"), epsilon=0.5)
    >>> releases = [pf.release(data, pf.Count("active"), noise, ledger=ledger) for _ in range(2)]
    >>> pf.verify_together(releases).holds
    True
    """
    items = listed(releases, "releases", 'releases or their files, such as ["first.json", "second.json"]')
    return one_history([_named(release, place) for place, release in enumerate(items, start=1)])


def any_release_in(content: bytes, source: str) -> AnyRelease:
    """Return a release of any kind from the content of a file, which messages call ``source``."""
    if not MEASUREMENT.holds(content):
        return release_in(content, source)
    form, version = MEASUREMENT_FORMAT, MEASUREMENT_VERSION
    return decode_record(content, source, MeasurementFields, format_=form, version=version, complete=True)


def check_named_once(releases: Sequence[tuple[str, Any]]) -> None:
    """Refuse a release that is named twice: its noise would be taken for that of two."""
    known: dict[bytes, str] = {}
    for name, release in releases:
        content = msgspec.json.encode(release)
        if content in known:
            raise ParameterError(f"{name} is the same release as {known[content]}: name each once")
        known[content] = name


def one_history(releases: Sequence[tuple[str, AnyRelease]]) -> Finding:
    """Return whether no two of some releases, each with its name in words, follow the same entry of a ledger."""
    # for each predecessor the different releases after it, each under the first of its names
    following: dict[str, dict[bytes, str]] = {}
    for name, release in releases:
        if release.ledger is not None:
            contents = following.setdefault(release.ledger.previous, {})
            contents.setdefault(encoded(release), f"{name} (entry {release.ledger.entry})")
    forks = [list(names.values()) for names in following.values() if len(names) > 1]
    if forks:
        return fails("ledger", "; ".join(map(_fork, forks)), _FIELDS)
    if len(following) < 2:
        says = "fewer than two different releases name an entry of a ledger: there is nothing to compare"
        return unchecked("ledger", says, _FIELDS)
    return holds("ledger", f"no two of these {len(following)} releases follow the same entry of a ledger", _FIELDS)


def _fork(names: Sequence[str]) -> str:
    """Say which releases follow the same entry."""
    which = f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        f"{which} follow the same entry of a ledger, and only one can: an old copy of the ledger was put back, or two "
        "copies of it were used, or one record copies the place of another; what is spent does not count "
        f"{'both' if len(names) == 2 else 'all of them'}"
    )


def _named(release: Any, place: int) -> tuple[str, AnyRelease]:
    """Return a release with its name in words, read from its file if it is a path."""
    if isinstance(release, AnyRelease):
        return f"release {place}", release
    if not isinstance(release, str | os.PathLike):
        raise ParameterError(f"releases[{place - 1}] is {shortened(repr(release))}, expected a release or its file")
    name = display_path(release)
    return name, any_release_in(read_file(release), name)
