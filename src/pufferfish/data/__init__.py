"""Tables become sequences: per chain the counts of its states, the transitions, the steps it spans.

This is the private half of the package up to the release: everything that touches rows is here, and what
leaves it is an aggregate, :class:`Sequences`. The rows stay in the engine that holds them (polars for files;
polars, pandas, DuckDB or another engine that narwhals speaks for tables in memory).

=================  ==========================================================================
``read``           :func:`read_sequences`, the one entrance
``sequences``      :class:`Sequences` and :class:`Base`, what comes out and how it was read
``options``        the options, checked before a table is opened
``files``          the edge: a path or a table becomes one lazy narwhals frame
``columns``        columns of any engine as numbers, microseconds or labels
``rows``           subject, time, state and filter of each row, checked
``chains``         segments, gaps, transitions: the window expressions and the fold of their groups
``labels``         names of states
``where``          the small language of row filters
``bins``           numeric values as states
``durations``      "10min" and its relatives
=================  ==========================================================================
"""

from pufferfish.data.read import read_sequences
from pufferfish.data.sequences import Base, Sequences

__all__ = ["Base", "Sequences", "read_sequences"]
