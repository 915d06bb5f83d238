"""Tables become sequences, per chain the counts of its states, the transitions, the steps it spans; or counts of rows.

This is the private half of the package up to the release: everything that touches rows is here, and what
leaves it is an aggregate, :class:`Sequences` or :class:`Rows`. Every table becomes one polars frame; only rows on a
Spark cluster stay there.

====================  =======================================================================
``read``              :func:`read_sequences`, the entrance for chains; ``chain_reading`` does the work
``sequences``         :class:`Sequences` and :class:`Base`, what comes out and how it was read
``read_rows``         :func:`read_rows`, the entrance for independent rows; ``row_reading`` does the work
``independent_rows``  :class:`Rows` and :class:`RowsBase`, what comes out and how it was read
``options``           the options of chains, checked before a table is opened
``row_options``       those of independent rows, checked against a network
``files``             the edge: a path or a table becomes one lazy frame, of polars or Spark
``kinds``             kinds of files, by their names
``spark``             what only Spark needs: its files, times, copies and session
``columns``           columns of any engine as numbers, microseconds or labels
``chain_rows``        subject, time, state and filter of each row of chains, checked
``chains``            segments, gaps, transitions: the window expressions and the fold of their groups
``groups``            :class:`Groups`, counts of public groups; ``groupings`` reads the option, ``cells`` counts
``calendar``          parts of local times, which ``local_columns`` makes of a table's columns
``labels``            names of states
``places``            which row a message is about
``where``             the small language of row filters
``lagged``            pairs of states some steps apart, for what is fitted to public data
``bins``              numeric values as states
``durations``         "10min" and its relatives
====================  =======================================================================
"""

from pufferfish.data.read import columns, read_lengths, read_rows, read_sequences
from pufferfish.data.rows import Rows, RowsBase
from pufferfish.data.sequences import Base, Sequences

__all__ = ["Base", "Rows", "RowsBase", "Sequences", "columns", "read_lengths", "read_rows", "read_sequences"]
