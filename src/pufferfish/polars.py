"""``frame.pufferfish``: a frame of polars becomes sequences or rows at the end of its own expressions.

``import pufferfish.polars`` gives it to every ``DataFrame`` and ``LazyFrame``; ``import pufferfish`` alone does not:
it loads nothing that reads tables.
"""

from typing import Any

import polars as pl

from pufferfish.data import Rows, Sequences, read_rows, read_sequences


@pl.api.register_dataframe_namespace("pufferfish")
@pl.api.register_lazyframe_namespace("pufferfish")
class PufferfishNamespace:
    """What ``frame.pufferfish`` has.

    Examples
    --------
    >>> import polars as pl
    >>> import pufferfish.polars
    >>> frame = pl.DataFrame({"minute": [0, 1, 2], "activity": ["rest", "walk", "rest"]})
    >>> frame.filter(pl.col("minute") > 0).pufferfish.sequences("activity", time="minute", max_gap=1)
    Sequences(2 states, 1 chain, 1 subject, 2 records)
    """

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame

    def sequences(self, state: str, **reading: Any) -> Sequences:
        """Return what :func:`pufferfish.read_sequences` reads of this frame, by the same arguments."""
        return read_sequences(self._frame, state, **reading)

    def rows(self, network: Any, **reading: Any) -> Rows:
        """Return what :func:`pufferfish.read_rows` reads of this frame, by the same arguments."""
        return read_rows(self._frame, network, **reading)
