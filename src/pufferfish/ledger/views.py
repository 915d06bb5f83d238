"""What a ledger shows: its entries as a table, in a notebook and as a frame, and which part of the table each read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pufferfish._base.view import MOST_ROWS, Grid, View, counted, frame_of_columns
from pufferfish._base.words import at_least, at_most, number
from pufferfish.ledger.file import Entry
from pufferfish.ledger.subjects import unpacked
from pufferfish.mechanisms.calibration import Calibration

if TYPE_CHECKING:
    from pufferfish.ledger.ledger import Ledger

__all__ = ["entries_frame", "in_words", "part_of", "view_of"]


def part_of(entry: Entry, ledger: "Ledger") -> str:
    """Say which part of the ledger's table an entry read, and is charged on; nothing where it read all of it."""
    parts = [f"where {entry.where}"] if entry.where else []
    if entry.windows:
        parts.append(f"{_steps_of(entry.windows):,} of {sum(chain.steps for chain in ledger.bound.length):,} steps")
    if entry.subjects is not None:
        chains = len(ledger.bound.length)
        read = sum(unpacked(entry.subjects, chains, "the entry"))
        parts.append(f"{read:,} of {counted(chains, 'chain')}")
    return ", ".join(parts)


def _steps_of(windows: Sequence[Sequence[tuple[int, int]] | None]) -> int:
    """Return how many steps of the ledger's chains an entry is charged on."""
    return sum(end - begin for stretches in windows for begin, end in stretches or ())


def entries_frame(ledger: "Ledger", into: str) -> Any:
    """Return the entries as a table."""
    entries = ledger.entries
    columns: dict[str, list[Any]] = {
        "number": [entry.number for entry in entries],
        "created": [entry.created for entry in entries],
        "what": [entry.what for entry in entries],
        "part": [part_of(entry, ledger) or None for entry in entries],
        "epsilon": [entry.epsilon for entry in entries],
        "spent": [entry.spent for entry in entries],
    }
    types = {"number": int, "created": str, "what": str, "part": str, "epsilon": float, "spent": float}
    return frame_of_columns(columns, types, into)


def view_of(ledger: "Ledger") -> View:
    """Return the last entries and what is left."""
    entries = ledger.entries
    rows = [
        [entry.number, entry.created[:19], entry.what, part_of(entry, ledger), entry.epsilon, entry.spent]
        for entry in entries[-MOST_ROWS:]
    ]
    caption = "Releases: what each leaks alone at most, and all up to it together"
    grid = Grid(caption, ["number", "when (UTC)", "what", "part", "alone", "together"], rows, long=len(entries))
    base = ledger.base
    facts = {
        "table": None if base is None else base.source,
        "class Θ": f"{ledger.bound.theta.kind}; {ledger.bound.theta.origin}",
        "mechanism": ledger.bound.title,
    }
    spent = f"spent {at_most(ledger.spent)} of {number(ledger.budget, 6)}, remaining {at_least(ledger.remaining)}"
    return View(f"Ledger: {spent}", facts, [grid])


def in_words(what: Any) -> str:
    """Return what an entry says of a release."""
    if isinstance(what, Calibration):
        return f"{what.query.kind}: {what.linear.description}"
    return "a release of given record-level loss"
