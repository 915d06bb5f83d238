"""What is asked of the data."""

from pufferfish.queries.linear import BoundQuery, FunctionQuery, Line, LinearQuery, Query, Variables, measure_of
from pufferfish.queries.of_records import Function, Weighted, Window
from pufferfish.queries.of_states import Count, Frequency, Histogram, Mean, Sum
from pufferfish.queries.of_variables import Marginals, Subset, refuse_pooling
from pufferfish.queries.record_loss import Profile

__all__ = [
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
    "Subset",
    "Sum",
    "Variables",
    "Weighted",
    "Window",
    "measure_of",
    "refuse_pooling",
]
