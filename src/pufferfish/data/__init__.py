"""Tables become sequences, per chain the counts of its states, the transitions, the steps it spans; or counts of rows.

This is the private half of the package up to the release: everything that touches rows is here, and what
leaves it is an aggregate, :class:`Sequences` or :class:`Rows`. Every table becomes one polars frame; only rows on a
Spark cluster stay there.

===================  ========================================================================
``read``             the entrances; ``_read_chains`` and ``_read_rows`` do the work
``sequences``        :class:`Sequences` and :class:`Base`, what comes out of chains and how they were read
``rows``             :class:`Rows` and :class:`RowsBase`, what comes out of independent rows
``_options``         the options of both, checked before a table is opened
``source``           the edge: a path or a table becomes one lazy frame, of polars or Spark; ``_csv_text``,
                     ``_database`` and ``spark`` know files, databases and clusters
``_columns``         columns of any engine as numbers, microseconds or labels; ``_times`` knows local clocks
``_chain_rows``      subject, time, state and filter of each row of chains, checked
``_chains``          segments, gaps, transitions: the window expressions and the fold of their groups
``_count``           the counts, batch by batch; ``_sampling`` and ``fingerprint`` recognise a table
``groups``           :class:`Groups`, counts of public groups; ``groupings`` reads the option, ``_cells`` counts
``where``            the small language of row filters
``labels``, ``bins`` names of states, and numeric values as states
``public_counts``    what is counted of public tables only
===================  ========================================================================
"""

from pufferfish.data.read import columns, read_lengths, read_rows, read_sequences
from pufferfish.data.rows import Rows, RowsBase
from pufferfish.data.sequences import Base, Sequences

__all__ = ["Base", "Rows", "RowsBase", "Sequences", "columns", "read_lengths", "read_rows", "read_sequences"]
