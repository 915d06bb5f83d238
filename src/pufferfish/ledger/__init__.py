"""Many releases of the same records, within one budget."""

from pufferfish.ledger.file import LEDGER, Entry, lock_of
from pufferfish.ledger.ledger import Ledger

__all__ = ["LEDGER", "Entry", "Ledger", "lock_of"]
