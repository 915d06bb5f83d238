"""What one side of a record tells of it where only forgetting is known: a plain loop that numba can compile.

Bounds A are carried as excesses e^A − 1: then a step is a product and a sum of terms that are all positive, and each of
them is rounded up.
"""

import math
from typing import Any

import numpy as np

__all__ = ["carry"]

_UP = 1.0 + 2.0**-50
"""Above the error of one exponential, of a product, and of a sum of two."""

_SUMMED = 1.0 + 2.0**-51
"""Above the error of a sum of losses as a double."""


def carry(before: Any, quantum: float, held: Any, steps: Any, keeps: Any, reach: int) -> Any:
    """Return e^A − 1 of every record, A what it and all later records tell of it, in nats; rounded up.

    Parameters
    ----------
    before : (T + 1,) ndarray of int64
        Losses of all records before each one, and of all, in units of ``quantum``.
    quantum : float
        A power of two, in nats.
    held : (T,) ndarray
        For records in the midst of a long stretch of equal losses e^A − 1 of its fixed point; −1 for others.
    steps, keeps : (p,) ndarray of int64, (p,) ndarray
        After so many steps at most so much of the state is known, in total variation; rounded up.
    reach : int
        The largest of ``steps``.
    """
    records, pairs = before.size - 1, steps.size
    excess = np.zeros(records + 1)
    seen, grown, times = np.full(pairs + 1, -1, np.int64), np.zeros(pairs + 1), np.ones(pairs + 1)
    for i in range(records - 1, -1, -1):
        if held[i] >= 0.0:
            if held[i + 1] >= 0.0:  # the same stretch: another one does not follow without records of its own
                excess[i] = excess[i + 1]
            else:
                most = held[i]
                for j in range(i + 1, min(i + 1 + reach, records + 1)):
                    most = max(most, excess[j])
                excess[i] = most
            continue
        least = math.inf
        for p in range(pairs + 1):
            after = i + 1 if p == pairs else i + steps[p]
            if after > records:
                continue
            units = before[after] - before[i]
            if units != seen[p]:
                seen[p] = units
                loss = float(units) * quantum * _SUMMED
                if loss < 700.0:
                    grown[p], times[p] = math.expm1(loss) * _UP, math.exp(loss) * _UP
                else:
                    grown[p], times[p] = math.inf, math.inf
            share, then = 1.0 if p == pairs else float(keeps[p]), float(excess[after])
            found = float(grown[p])
            if share > 0.0 and then > 0.0:
                found = (found + float(times[p]) * share * _UP * then) * _UP
            least = min(least, found)
        excess[i] = least
    return excess
