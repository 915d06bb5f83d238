"""The number of steps of some kind, as a statistic to which the steps of a chain add, and its records nothing."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.laws.law import Law
from pufferfish.errors import NotApplicableError
from pufferfish.queries import StepQuery
from pufferfish.theta.secrets import CountIs

__all__ = ["StepCoding"]


class StepCoding:
    """What records and steps add to a query about steps with one output.

    Parameters
    ----------
    query : StepQuery
        The query.
    counts : sequence of CountIs
        What secrets count: nothing.

    Raises
    ------
    NotApplicableError
        If the query has several outputs, or secrets count records.
    """

    norm: int = 1
    """How far the output moves when the number of steps moves by 1, in units."""

    def __init__(self, query: StepQuery, counts: Sequence[CountIs]) -> None:
        if len(query.labels) > 1:
            raise NotApplicableError(
                "laws of several numbers of steps are not computed: use LeakagePropagation, MQMExact or GroupDP"
            )
        if counts:
            raise NotApplicableError(
                "laws of a number of steps given how many records are in some states are not computed: give secrets "
                "about single records, or leave them out"
            )
        self.values: NDArray[np.int64] = np.zeros(len(query.outputs), dtype=np.int64)
        self.moves: NDArray[np.int64] = (query.outputs == 0).astype(np.int64)

    def decoded(self, law: Law | None, given: Sequence[CountIs] = ()) -> Law | None:
        """Return the law of the query: that of the statistic."""
        return law
