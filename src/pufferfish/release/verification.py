"""What was found when a release was checked: what holds, what does not, and what nobody can check from its record."""

from collections.abc import Sequence

from pufferfish._base.frozen import FrozenRecord
from pufferfish._base.view import Grid, Shown, View
from pufferfish.errors import printable

__all__ = ["Finding", "Verification", "fails", "holds", "not_in", "unchecked"]

_WIDTH = 100


class Finding(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """One thing that was checked.

    Parameters
    ----------
    what : str
        What it is about.
    holds : bool or None
        Whether it holds; None where it could not be checked.
    says : str
        What was computed again, what is wrong, or why it could not be checked.
    fields : list of str
        Fields of the record, with dots between names, that it is about.
    absent : bool, default False
        Whether all that does not hold is that the release is not in what it was compared with, as it says itself.
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
    """All findings about a release; ``print`` shows them on one screen.

    Parameters
    ----------
    subject : str
        The release in one line.
    findings : list of Finding
        In the order in which they were looked at.
    """

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
            first, *more = _wrapped(printable(finding.says), _WIDTH - 15)
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


def _wrapped(text: str, width: int) -> list[str]:
    """Return a text in lines of at most this width; a longer word has a line of its own."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def holds(what: str, says: str, fields: Sequence[str] = ()) -> Finding:
    """Return that something holds."""
    return Finding(what, True, says, list(fields))


def fails(what: str, says: str, fields: Sequence[str] = ()) -> Finding:
    """Return that something does not hold."""
    return Finding(what, False, says, list(fields))


def not_in(what: str, says: str, fields: Sequence[str] = ()) -> Finding:
    """Return that a release is not in what it was compared with, and that it does not say that it is."""
    return Finding(what, False, says, list(fields), absent=True)


def unchecked(what: str, says: str, fields: Sequence[str] = ()) -> Finding:
    """Return that something could not be checked."""
    return Finding(what, None, says, list(fields))
