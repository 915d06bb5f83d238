"""What is asked of the data."""

from pufferfish.queries.linear import BoundQuery, FunctionQuery, Line, LinearQuery, Query
from pufferfish.queries.of_records import Function, Weighted, Window
from pufferfish.queries.of_states import Count, Frequency, Histogram, Mean, Sum

__all__ = [
    "BoundQuery",
    "Count",
    "Frequency",
    "Function",
    "FunctionQuery",
    "Histogram",
    "Line",
    "LinearQuery",
    "Mean",
    "Query",
    "Sum",
    "Weighted",
    "Window",
]
