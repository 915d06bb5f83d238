"""What is asked of the data; to add a query, write its file and name it here."""

from collections.abc import Mapping

from pufferfish.core.numbers.read_only import FrozenDict
from pufferfish.queries.linear import (
    BoundQuery,
    FunctionQuery,
    Line,
    LinearQuery,
    Query,
    QueryKind,
    StepQuery,
    Variables,
)
from pufferfish.queries.of_records import Function, Weighted, Window
from pufferfish.queries.of_states import Count, Frequency, Histogram, Mean, Sum
from pufferfish.queries.of_steps import Switches, Transitions
from pufferfish.queries.of_variables import Marginals, Subset, refuse_pooling
from pufferfish.queries.record_loss import Profile, StepLoss

__all__ = [
    "KINDS",
    "BoundQuery",
    "Count",
    "Frequency",
    "Function",
    "FunctionQuery",
    "Histogram",
    "Line",
    "LinearQuery",
    "Marginals",
    "Mean",
    "Profile",
    "Query",
    "QueryKind",
    "StepLoss",
    "StepQuery",
    "Subset",
    "Sum",
    "Switches",
    "Transitions",
    "Variables",
    "Weighted",
    "Window",
    "measure_of",
    "refuse_pooling",
]

QUERIES: tuple[type[Query], ...] = (Histogram, Count, Frequency, Sum, Mean, Marginals, Transitions, Switches)
"""Queries that are linear in the states of the records, or in their steps."""

KINDS: Mapping[str, QueryKind] = FrozenDict({word: kind for query in QUERIES for word, kind in query.kinds.items()})
"""Words for queries that are linear in the states of the records or in their steps, with what is known of each."""


def measure_of(kind: str) -> str:
    """Return what the answers of a kind of query are numbers of.

    Examples
    --------
    >>> measure_of("histogram"), measure_of("marginal-counts"), measure_of("mean")
    ('share of records', 'rows', 'mean')
    """
    return KINDS[kind].measure if kind in KINDS else kind
