r"""How long states last: observed stays against the geometric ones of a Markov chain.

A stay that a gap cuts off lasted at least as long as was seen. Leaving such stays out would shorten the picture, so the
share of stays that last longer than n records is estimated by Kaplan and Meier's product: of the stays that reached
their n-th record, with what followed seen, the share that went on.
"""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["HIGH", "geometric", "observed"]

HIGH = 0.95
"""The quantile that is shown beside the mean."""


def observed(ended: NDArray[np.int64], cut: NDArray[np.int64]) -> tuple[float, float] | None:
    """Return mean and high quantile of stays, in records; None where none was seen to end.

    Where the longest stays are all cut off, the mean counts them as ended, and a quantile beyond is infinite.

    Parameters
    ----------
    ended, cut : ndarray
        Entry n is the number of stays of n records whose end was seen, or that were cut off then.

    Examples
    --------
    >>> import numpy as np
    >>> observed(np.array([0, 3, 0, 1]), np.array([0]))
    (1.5, 3.0)
    """
    longest = max(len(ended), len(cut))
    over, lost = (np.pad(each, (0, longest - len(each))) for each in (ended, cut))
    if not over.any():
        return None
    reached = (over + lost)[::-1].cumsum()[::-1]
    left = np.cumprod(1 - over / np.maximum(reached, 1))  # share of stays that last longer than n records
    within = np.flatnonzero(left <= (1 - HIGH) * (1 + 1e-12))
    return float(left[:-1].sum()), float(within[0]) if within.size else math.inf


def geometric(stay: float) -> tuple[float, float]:
    """Return mean and high quantile of the stays of a chain that keeps its state with this probability.

    Examples
    --------
    >>> geometric(0.5)
    (2.0, 5.0)
    """
    if stay >= 1:
        return math.inf, math.inf
    if stay <= 0:
        return 1.0, 1.0
    return 1 / (1 - stay), float(max(1, math.ceil(math.log(1 - HIGH) / math.log(stay) * (1 - 1e-12))))
