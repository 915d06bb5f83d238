"""What is asked of the data; to add a query, write its file and name it here."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import FrozenDict
from pufferfish._core.strategies import prefixes
from pufferfish.errors import QueryError
from pufferfish.queries.of_columns import Joint, Marginals, Subset, refuse_pooling
from pufferfish.queries.of_records import Function, Weighted, Window
from pufferfish.queries.of_states import (
    CDF,
    Bouts,
    Count,
    Frequency,
    Histogram,
    Mean,
    Quantiles,
    Sum,
    Switches,
    Transitions,
)
from pufferfish.queries.query import (
    BoundQuery,
    FunctionQuery,
    JointQuery,
    Line,
    LinearQuery,
    Query,
    QueryKind,
    RecordQuery,
    StepQuery,
    Variables,
)
from pufferfish.queries.record_loss import Profile, StepLoss

QUERIES: tuple[type[Query], ...] = (
    Histogram,
    Count,
    Frequency,
    Sum,
    Mean,
    CDF,
    Quantiles,
    Marginals,
    Joint,
    Transitions,
    Switches,
    Bouts,
)
"""Queries that are linear in the states of the records, or in their steps."""

KINDS: Mapping[str, QueryKind] = FrozenDict({word: kind for query in QUERIES for word, kind in query.kinds.items()})
"""Words for queries that are linear in the states of the records or in their steps, with what is known of each."""


def measure_of(kind: str) -> str:
    """Return what the answers of a kind of query are numbers of.

    >>> measure_of("histogram"), measure_of("marginal-counts"), measure_of("mean")
    ('share of records', 'rows', 'mean')
    """
    return KINDS[kind].measure if kind in KINDS else kind


def weights_of(kind: str, k: int) -> NDArray[np.int64]:
    """Return the weights of a kind of query with several outputs on k states.

    >>> weights_of("cdf", 3).tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    if kind in Histogram.kinds:
        return np.eye(k, dtype=np.int64)
    if kind in CDF.kinds or kind in Quantiles.kinds:
        return prefixes(k)
    raise QueryError(f"what a query of the kind {kind!r} weighs is not told by its kind")
