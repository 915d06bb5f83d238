"""Many releases of the same records, within one budget."""

from pufferfish.ledger.book import Entry
from pufferfish.ledger.kept import LEDGER, files_of, is_address, name_of, shown_where
from pufferfish.ledger.ledger import Ledger
