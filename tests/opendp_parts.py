"""The parts of OpenDP that tests use: its ``prelude`` has all of it, and loads scikit-learn where that is installed."""

from opendp import measurements as m, transformations as t
from opendp.domains import atom_domain, vector_domain
from opendp.measures import max_divergence, zero_concentrated_divergence
from opendp.metrics import (
    change_one_distance,
    hamming_distance,
    insert_delete_distance,
    l1_distance,
    symmetric_distance,
)
from opendp.mod import enable_features

__all__ = [
    "atom_domain",
    "change_one_distance",
    "enable_features",
    "hamming_distance",
    "insert_delete_distance",
    "l1_distance",
    "m",
    "max_divergence",
    "symmetric_distance",
    "t",
    "vector_domain",
    "zero_concentrated_divergence",
]
