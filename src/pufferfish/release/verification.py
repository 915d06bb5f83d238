"""What was found when a release was checked: what holds, what does not, and what nobody can check from its record."""

import os
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import msgspec

from pufferfish._base.checked import listed
from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.reading import display_path
from pufferfish._base.view import Grid, Shown, View
from pufferfish.errors import ParameterError, printable
from pufferfish.release.record import AnyRelease, any_release, encoded

_WIDTH = 100


class Finding(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """One thing that was checked.

    ``what`` it is about; whether it ``holds``, None where it could not be checked; and what it ``says``: what was
    computed again, what is wrong, or why it could not be checked. ``fields`` are those of the record that it is about,
    with dots between names. ``absent``: all that does not hold is that the release is not in what it was compared with,
    as it says itself.
    """

    what: str
    holds: bool | None
    says: str
    fields: list[str]
    absent: bool = False

    @property
    def word(self) -> str:
        """Whether it holds, in words: on the screen, in notebooks and in reports."""
        if self.holds is None:
            return "not checked"
        return "holds" if self.holds else "not in it" if self.absent else "does not hold"


class Verification(FrozenRecord, Shown, frozen=True, forbid_unknown_fields=True):
    """All findings about a release, the ``subject``, in the order in which they were looked at; it prints as text."""

    subject: str
    findings: list[Finding]

    @property
    def holds(self) -> bool:
        """Whether nothing was found that does not hold, and the release is in all that it was compared with."""
        return all(finding.holds is not False for finding in self.findings)

    @property
    def proved(self) -> bool:
        """Whether the proof of the noise was computed again, and holds."""
        return any(finding.what == PROOF and finding.holds for finding in self.findings)

    @property
    def wrong(self) -> list[Finding]:
        """What does not hold."""
        return [finding for finding in self.findings if finding.holds is False]

    @property
    def unchecked(self) -> list[Finding]:
        """What could not be checked."""
        return [finding for finding in self.findings if finding.holds is None]

    @property
    def worst_first(self) -> list[Finding]:
        """First what does not hold, last what could not be checked."""
        return [finding for state in (False, True, None) for finding in self.findings if finding.holds is state]

    def __repr__(self) -> str:
        return f"Verification({self.subject!r}, holds={self.holds}, {len(self.findings)} findings)"

    def _view(self) -> View:
        rows = [[finding.what, finding.word, finding.says] for finding in self.worst_first]
        grid = Grid("What was computed again", ["what", "found", "says"], rows, long=len(rows))
        return View(self.subject, None, [grid], [f"{self.verdict[:1].upper()}{self.verdict[1:]}."])

    def __str__(self) -> str:
        rows = self.worst_first
        width = max((len(finding.what) for finding in rows), default=0)
        lines = [printable(self.subject)]
        for finding in rows:
            word = finding.word if finding.holds is not False else finding.word.upper()
            head = f"{word:13}  {finding.what:{width}}  "
            says = printable(finding.says)
            first, *more = wrap(says, _WIDTH - 15, break_long_words=False, break_on_hyphens=False) or [""]
            lines += [head + first, *(" " * len(head) + line for line in more)]
        return "\n".join([*lines, self.verdict])

    @property
    def verdict(self) -> str:
        """All of it in one sentence."""
        wrong = [finding for finding in self.wrong if not finding.absent]
        if wrong:
            many = "1 thing does" if len(wrong) == 1 else f"{len(wrong)} things do"
            return f"{many} not hold: do not rely on this record"
        proof_note = ", the proof included" if self.proved else "; the proof could not be checked"
        absent = "".join(f"; the release is not in this {finding.what}" for finding in self.wrong)
        return f"all that could be checked holds{proof_note}{absent}"


PROOF = "proof"
"""The finding about the proof of the noise."""


def holds(what: str, says: str, fields: Sequence[str] = ()) -> Finding:
    """Return that something holds."""
    return Finding(what, True, says, list(fields))


def fails(what: str, says: str, fields: Sequence[str] = ()) -> Finding:
    """Return that something does not hold."""
    return Finding(what, False, says, list(fields))


def unchecked(what: str, says: str, fields: Sequence[str] = ()) -> Finding:
    """Return that something could not be checked."""
    return Finding(what, None, says, list(fields))


# -- Whether several releases can all be of one history of their ledger ----------------------------------------------
#
# A record names the digest of the ledger's entry before its own (``ledger.previous``), and a ledger has one entry after
# each: so two different releases with the same one show that the ledger was copied.

_FIELDS = ("ledger.previous",)


def verify_together(releases: Sequence[AnyRelease | str | os.PathLike[str]]) -> Finding:
    """Check that no two of several releases follow the same entry of a ledger.

    Two do where an old copy of a ledger is put back and used again, or where two copies are used: what is spent then
    does not count both releases. :func:`verify` looks at one record, and cannot see it. It shows only where the first
    release after the copy is at hand from both sides. One release under two names is no such case.

    ``releases`` are of any kind, or their files; whether each of them holds is not looked at. The finding says whether
    it ``holds``, None where fewer than two were charged to a ledger, and which follow the same entry.

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
    named = [f"release {i}" if isinstance(item, AnyRelease) else item for i, item in enumerate(items, start=1)]
    read = [any_release(item) for item in items]
    return one_history([(display_path(name), release) for name, release in zip(named, read, strict=True)])


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
        says = (
            f"{', '.join(names[:-1])} and {names[-1]} follow the same entry of a ledger, and only one can: an old copy "
            "of the ledger was put back, or two copies of it were used, or one record copies the place of another; "
            f"what is spent does not count {'both' if len(names) == 2 else 'all of them'}"
            for names in forks
        )
        return fails("ledger", "; ".join(says), _FIELDS)
    if len(following) < 2:
        says = "fewer than two different releases name an entry of a ledger: there is nothing to compare"
        return unchecked("ledger", says, _FIELDS)
    return holds("ledger", f"no two of these {len(following)} releases follow the same entry of a ledger", _FIELDS)
