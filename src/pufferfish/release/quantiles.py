"""Quantiles of a cumulative distribution with noise, and intervals that hold together; post-processing, no more.

The quantile of a share q is the first state up to which at least q of the records are. With probability 95% every value
of the distribution is within its error of the exact one, all of them together. Then no state before the first whose
value plus its error reaches q can be the quantile, and the quantile is no later than the first whose value less its
error reaches q. So all intervals hold together with that probability, whatever shares are asked for.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.frozen import FrozenRecord
from pufferfish.release.postprocessing import ascending

__all__ = ["QuantileRecord", "quantiles_of"]

_ROUNDED = 1e-9
"""By how much, as a share of the records, sums of doubles may be off; intervals are wider by it."""


class QuantileRecord(FrozenRecord, frozen=True, forbid_unknown_fields=True):
    """The state up to which a share of the records is; with 95% probability it is from ``low`` to ``high``."""

    share: float
    state: str
    low: str
    high: str


def quantiles_of(
    shares: Sequence[float], noisy: Sequence[float], errors: NDArray[np.float64], states: Sequence[str], total: float
) -> list[QuantileRecord]:
    """Return quantiles with their intervals.

    Parameters
    ----------
    shares : sequence of float
        Which, between 0 and 1.
    noisy : sequence of float
        The values up to each state but the last.
    errors : (k − 1,) ndarray
        What they are all within.
    states : sequence of str
        All states, from the lowest to the highest.
    total : float
        The value up to the last state, which is public.

    Examples
    --------
    >>> quantiles_of([0.5], [0.2, 0.45, 0.9], np.full(3, 0.1), ["a", "b", "c", "d"], 1.0)
    [QuantileRecord(share=0.5, state='c', low='b', high='c')]
    """
    middle = [*ascending(noisy), math.inf]
    most = [*(np.array(noisy) + errors + _ROUNDED * total), math.inf]
    least = [*(np.array(noisy) - errors - _ROUNDED * total), math.inf]
    found: list[QuantileRecord] = []
    for share in shares:
        state, low, high = (
            next(x for x, value in enumerate(values) if value >= share * total) for values in (middle, most, least)
        )
        found.append(QuantileRecord(share, states[state], states[low], states[high]))
    return found
