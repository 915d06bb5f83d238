"""Temporal privacy leakage, from its definition, for comparison only: numbers here are not rounded up.

Cao, Yoshikawa, Xiao and Xiong, *Quantifying Differential Privacy under Temporal Correlations* (ICDE 2017). At each time
something is released that is ε-differentially private for the record of that time. What all releases tell about
record t, in nats, is at most B_t + F_t - ε with

    B_t = L_B(B_{t-1}) + ε,    F_t = L_F(F_{t+1}) + ε,    B_1 = F_T = ε,
    L(α) = max over rows p, q of a matrix and v in [1, e^α]^k of  log (p·v) / (q·v).

L_F takes the transition matrix, L_B that of the reversed chain. The maximum has v = e^α where p/q is largest, and 1
elsewhere: one of k sets of states for each two rows, known before α is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Step", "record_epsilon", "temporal_leakage"]


@dataclass(frozen=True, slots=True)
class Step:
    """The function L of one matrix.

    Parameters
    ----------
    more, less : (n,) ndarray
        Probabilities p(S) and q(S) of sets S of next states under two rows; those that can be the maximum.
    """

    more: NDArray[np.float64]
    less: NDArray[np.float64]

    @classmethod
    def of(cls, matrix: NDArray[np.float64]) -> "Step":
        """Collect the sets of each two rows of a (k, k) matrix."""
        p, q = matrix[:, None, :], matrix[None, :, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(p > 0, p / q, 0.0)  # nothing is lost where both are 0
        order = np.argsort(-ratio, axis=2)
        sets = [np.cumsum(np.take_along_axis(np.broadcast_to(x, ratio.shape), order, 2), 2).ravel() for x in (p, q)]
        more, less = (np.where(x > 1 - 1e-12, 1.0, x) for x in sets)
        order = np.lexsort((-more, less))  # a set with no more of p than another with less of q is never needed
        more, less = more[order], less[order]
        best = more > np.concatenate([[0.0], np.maximum.accumulate(more)[:-1]])
        return cls(more[best], less[best])

    @property
    def forgets_nothing(self) -> bool:
        """Whether two rows have no next state in common: then L(α) = α."""
        return bool(np.any((self.more == 1) & (self.less == 0)))

    def __call__(self, alpha: float) -> float:
        """Return L(α)."""
        beyond = np.expm1(alpha)
        return max(0.0, float(np.max(np.log1p(self.more * beyond) - np.log1p(self.less * beyond))))


def temporal_leakage(past: Step, future: Step, epsilon: float, length: int, enough: float = np.inf) -> float:
    """Return the largest leakage of any record, or some number above ``enough``.

    Parameters
    ----------
    past, future : Step
        L_B and L_F.
    epsilon : float
        What the release of each time may tell about its record.
    length : int
        Number of records.
    enough : float, optional
        Larger leakage need not be known.
    """
    before, after = (_sweep(step, epsilon, length, enough) for step in (past, future))
    return float(np.max(before + after[::-1]) - epsilon)


def _sweep(step: Step, epsilon: float, length: int, enough: float) -> NDArray[np.float64]:
    """Return the leakage from one end to each record."""
    if step.forgets_nothing:  # every record adds all that it tells
        return epsilon * np.arange(1.0, length + 1)
    found = [epsilon]
    while len(found) < length and found[-1] <= enough:
        found.append(step(found[-1]) + epsilon)
        if found[-1] - found[-2] <= 1e-12 * found[-1]:  # the rest is the same
            break
    return np.pad(found, (0, length - len(found)), mode="edge")


def record_epsilon(leakage: Callable[[float], float], epsilon: float) -> float:
    """Return the largest record-level ε, to six digits, with which an increasing leakage is at most ε."""
    low, high = 0.0, epsilon
    if leakage(high) <= epsilon:
        return high
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if leakage(middle) <= epsilon else (low, middle)
    return low
