r"""How well laws predict transitions that they were not fitted to.

A law that was fitted to some transitions predicts these too well. So every transition is predicted by all others (leave
one out), which needs counts only: a row that holds the transition c times among n, smoothed by w transitions of a
simpler law p, gives it the probability (c − 1 + w p) / (n − 1 + w). The laws, each completed by a simpler one:

*   **pooled**: one row for each state, completed by ½ for every entry;
*   **own**: a row for each subject and state, completed by what all other subjects do;
*   **two before** (order 2): a row for each pair of states, completed by the pooled law;
*   **hour**: a row for each hour and state, completed by the pooled law.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pufferfish.data.public_counts import Steps

__all__ = ["TOWARDS", "by_model", "held_out"]

TOWARDS = 10.0
"""Transitions of the simpler law that every row is given."""

Values = NDArray[np.float64]
Whole = NDArray[np.int64]


def held_out(steps: "Steps", k: int) -> dict[str, Values]:
    """Return the probability of every group of transitions under each law, by all other transitions.

    Parameters
    ----------
    steps : Steps
        Transitions of at least one subject.
    k : int
        Number of states.

    Returns
    -------
    dict of str to ndarray
        "pooled" and "order2"; "own" where there are several subjects, and "hour" where there is a clock.
    """
    x, y, n = steps.before, steps.state, steps.number
    pooled = _left_out(x, y, n, 1 / k, k / 2, k)
    found = {"pooled": pooled}
    if len(np.unique(steps.subject)) > 1:
        mine, all_mine = _totals(steps.subject * k + x, n), _totals((steps.subject * k + x) * k + y, n)
        others, all_others = _totals(x, n) - mine, _totals(x * k + y, n) - all_mine
        like = (all_others + 0.5) / (others + k / 2)
        found["own"] = _left_out(steps.subject * k + x, y, n, like, TOWARDS, k)
    known = steps.earlier >= 0
    second = pooled.copy()
    pairs = (steps.earlier * k + x)[known]
    second[known] = _left_out(pairs, y[known], n[known], pooled[known], TOWARDS, k)
    found["order2"] = second
    if np.all(steps.phase >= 0):
        found["hour"] = _left_out(steps.phase * k + x, y, n, pooled, TOWARDS, k)
    return found


def by_model(steps: "Steps", matrices: Sequence[Values]) -> Values:
    """Return the probability of every group of transitions under each chain; shape (chains, groups)."""
    return np.array([matrix[steps.before, steps.state] for matrix in matrices])


def _left_out(row: Whole, y: Whole, n: Whole, like: Values | float, w: float, k: int) -> Values:
    return (_totals(row * k + y, n) - 1 + w * like) / (_totals(row, n) - 1 + w)


def _totals(key: Whole, n: Whole) -> Values:
    """Return for every group the number of transitions of all groups with its key."""
    _, which = np.unique(key, return_inverse=True)
    return np.bincount(which, weights=n).astype(np.float64)[which]
