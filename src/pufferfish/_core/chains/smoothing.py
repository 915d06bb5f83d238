r"""Transitions that a count is completed by: a weight for each row, spread as the other rows are.

A row of which n transitions were seen gets w more, by a law that knows nothing of its row but its name: it stays as
often as all rows together do, and leaves for the states as all others enter them,

.. math:: q_x(x) = s, \qquad q_x(y) = (1 - s) \frac{e_y}{1 - e_x}, \qquad s = \frac{S + 1/2}{N + 1},
    \qquad e_y = \frac{M_y + 1/k}{M + 1},

where of N transitions S stay and M = N − S move, M_y of them to y: one transition more is shared evenly among what may
happen, so nothing has probability 0. One count for each *cell*, in contrast, is k transitions for each row, which stay
with probability 1/k: a row of few transitions forgets where it was, and the noise is too small.
"""

import numpy as np
from numpy.typing import NDArray

from pufferfish._core import Matrix


def spread(counts: NDArray[np.number]) -> Matrix:
    """Return the laws q by which rows of counts are completed, one for each state; no entry is 0.

    Examples
    --------
    >>> spread(np.array([[6, 1, 0], [1, 0, 0], [0, 0, 0]])).round(3).tolist()
    [[0.722, 0.222, 0.056], [0.222, 0.722, 0.056], [0.139, 0.139, 0.722]]
    """
    k = counts.shape[0]
    if k == 1:
        return np.ones((1, 1))
    entered = counts.sum(axis=0) - counts.diagonal()
    stay = (counts.trace() + 0.5) / (counts.sum() + 1)
    law = np.tile((entered + 1 / k) / (entered.sum() + 1), (k, 1))
    np.fill_diagonal(law, 0)
    law *= (1 - stay) / law.sum(axis=1, keepdims=True)
    np.fill_diagonal(law, stay)
    return law


def completed(counts: NDArray[np.number], weight: float, towards: Matrix) -> Matrix:
    """Return rows of counts as laws, so many transitions of other laws added to each; rows of nothing stay 0."""
    added = counts + weight * towards
    totals = added.sum(axis=-1, keepdims=True)
    return np.divide(added, totals, out=np.zeros_like(added), where=totals > 0)


def smoothed(counts: NDArray[np.number], weight: float) -> Matrix:
    """Return the transition matrix of counts, so many transitions of the laws of :func:`spread` added to every row."""
    return completed(counts, weight, spread(counts))
