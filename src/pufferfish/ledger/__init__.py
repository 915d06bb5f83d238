"""Many releases of the same records, within one budget."""

from pufferfish.ledger.book import Entry
from pufferfish.ledger.ledger import Ledger

__all__ = ["Entry", "Ledger"]
