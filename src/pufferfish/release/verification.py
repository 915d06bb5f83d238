"""What was found when a release was checked: what holds, what does not, and what nobody can check from its record."""

from collections.abc import Sequence

from pufferfish.errors import printable
from pufferfish.frozen_record import FrozenRecord
from pufferfish.shown import Shown, View

__all__ = ["Finding", "Verification", "fails", "holds", "unchecked"]

_WORDS = {True: "holds", False: "DOES NOT HOLD", None: "not checked"}
_WIDTH = 100


class Finding(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """One thing that was looked at.

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
    """

    what: str
    holds: bool | None
    says: str
    fields: list[str]


class Verification(FrozenRecord, Shown, frozen=True, forbid_unknown_fields=True):
    """All that was found; ``print`` shows it on one screen.

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
        """Whether nothing was found that does not hold."""
        return all(found.holds is not False for found in self.findings)

    @property
    def wrong(self) -> list[Finding]:
        """What does not hold."""
        return [found for found in self.findings if found.holds is False]

    @property
    def unchecked(self) -> list[Finding]:
        """What could not be checked."""
        return [found for found in self.findings if found.holds is None]

    def __repr__(self) -> str:
        return f"Verification({self.subject!r}, holds={self.holds}, {len(self.findings)} findings)"

    def _view(self) -> View:
        from pufferfish.release.views import of_verification

        return of_verification(self)

    def __str__(self) -> str:
        order = (False, True, None)
        rows = [found for state in order for found in self.findings if found.holds is state]
        wide = max((len(found.what) for found in rows), default=0)
        lines = [printable(self.subject)]
        for found in rows:
            head = f"{_WORDS[found.holds]:13}  {found.what:{wide}}  "
            first, *more = _wrapped(printable(found.says), _WIDTH - 15)
            lines += [head + first, *(" " * len(head) + line for line in more)]
        return "\n".join([*lines, self.verdict])

    @property
    def verdict(self) -> str:
        """All of it in one sentence."""
        if self.wrong:
            many = "1 thing does" if len(self.wrong) == 1 else f"{len(self.wrong)} things do"
            return f"{many} not hold: do not rely on this record"
        proof = next((found for found in self.findings if found.what == PROOF), None)
        if proof is None or proof.holds is None:
            return "all that could be checked holds; the proof could not be checked"
        return "all that could be checked holds, the proof included"


PROOF = "proof"
"""The finding about the proof of the noise."""


def _wrapped(text: str, width: int) -> list[str]:
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


def unchecked(what: str, says: str, fields: Sequence[str] = ()) -> Finding:
    """Return that something could not be checked."""
    return Finding(what, None, says, list(fields))
