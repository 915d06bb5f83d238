"""Conditional probability tables: the law of a node of a Bayesian network, given the states of its parents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._base.checked import called_as, real_array
from pufferfish._base.frozen import ReadOnly, read_only
from pufferfish.errors import ModelError, printable
from pufferfish.theta.shown import ShownModel
from pufferfish.theta.states import listed_labels, listed_names

__all__ = ["CPT", "TOLERANCE"]

TOLERANCE = 1e-9
"""How far a row may be from summing to 1; rows are then divided by their sum."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class CPT(ShownModel, ReadOnly):
    """Conditional probability table of one node; read-only.

    Rows are checked, and divided by their sum, by the network, which knows what the node and its parents are called.

    Parameters
    ----------
    states : sequence
        Distinct names of the node's k states.
    table : array_like, shape (k_parent1, …, k_parentm, k)
        ``table[y1, …, ym, x]`` = P(node = x | parents = y1 … ym): one axis for every parent, in the order of
        ``parents``, and the node's own states last. A node without parents has one row.
    parents : sequence, optional
        Names of the parent nodes.

    Raises
    ------
    ModelError
        If names repeat, or the table is no array of numbers with such a shape.

    Examples
    --------
    >>> CPT(["no", "yes"], [[0.9, 0.1], [0.2, 0.8]], parents=["rain"])
    CPT(no, yes | rain)
    """

    states: tuple[str, ...]
    table: NDArray[np.float64]
    parents: tuple[Any, ...]

    @called_as('CPT(["no", "yes"], [0.8, 0.2])')
    def __init__(self, states: Sequence[Any], table: ArrayLike, parents: Sequence[Any] = ()) -> None:
        names = listed_labels(states, "states", '["no", "yes"]')
        if not names:
            raise ModelError("states is empty: a node has at least one state")
        above = listed_names(parents, "parents", '["rain"]')
        try:
            values = real_array(table)
        except TypeError as error:
            raise ModelError(f"table {error}; expected an array of probabilities") from None
        if values.ndim != len(above) + 1 or values.shape[-1] != len(names):
            axes = "".join(f"number of states of {name}, " for name in above)
            raise ModelError(
                f"table has shape {values.shape}, expected ({axes}{len(names)}): one axis for every parent and the "
                f"node's own {len(names)} states last"
            )
        object.__setattr__(self, "states", names)
        object.__setattr__(self, "table", read_only(values))
        object.__setattr__(self, "parents", above)

    def __repr__(self) -> str:
        given = f" | {', '.join(str(p) for p in self.parents)}" if self.parents else ""
        return printable(f"CPT({', '.join(self.states)}{given})")
