"""Whether a release is about the same Θ as the ledger that it is charged to."""

import msgspec

from pufferfish.ledger import Ledger
from pufferfish.theta.model_class import Theta
from pufferfish.theta.record import ThetaRecord

__all__ = ["is_note_of", "note_of", "warnings_of_ledger"]

_OF_OTHER = " (ε under another Θ)"

_OTHER_THETA = (
    "The ledger has another Θ than this release: ε of this release holds under its own Θ, and what is spent "
    "in all under the ledger's."
)
"""The ledger's own Θ is not in the record, so this is the only place to say it."""


def warnings_of_ledger(theta: Theta, ledger: Ledger | None) -> list[str]:
    """Return what a release under a Θ warns of that is charged to a ledger."""
    return [] if ledger is None or _same(theta, ledger.bound.theta) else [_OTHER_THETA]


def note_of(what: str, theta: Theta, ledger: Ledger | None) -> str:
    """Return what a release under a Θ is called in a ledger's book."""
    return what if ledger is None or _same(theta, ledger.bound.theta) else what + _OF_OTHER


def is_note_of(note: str, what: str) -> bool:
    """Whether a ledger's book means a release by a note, under whichever Θ."""
    return note.removesuffix(_OF_OTHER) == what


def _same(one: Theta, other: Theta) -> bool:
    """Whether two classes hold the same laws, whatever they are called and wherever they came from."""
    if one is other:
        return True
    records = [msgspec.structs.replace(ThetaRecord.of(theta), origin="", names=[]) for theta in (one, other)]
    return records[0] == records[1]
