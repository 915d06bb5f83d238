"""Tables become sequences, per chain the counts of its states, the transitions, the steps it spans; or counts of rows.

This is the private half of the package up to the release: everything that touches rows is here, and what
leaves it is an aggregate, :class:`Sequences` or :class:`Rows`. Every table becomes one polars frame; only rows on a
Spark cluster stay there.

``read`` has the entrances, ``_read_chains`` and ``_read_rows`` do the work, by ``_options`` that are checked first.
``source`` is the edge where files (``_csv_text``), databases (``_database``) and clusters (``spark``) become one frame;
``_columns`` and ``_times`` read its columns, ``where`` its filter; ``_chain_rows``, ``_chains`` and ``_count`` make
chains of its rows, and ``_cells`` groups. ``sequences``, ``rows`` and ``groups`` are what comes out of it.
"""

from pufferfish.data.read import columns, read_lengths, read_rows, read_sequences
from pufferfish.data.rows import Rows, RowsBase
from pufferfish.data.sequences import Base, Sequences
