r"""Max-influence of chain quilts where the matrix of every step is any one between two bounds, and every initial law.

As in :mod:`pufferfish._core.quilts.influence` the log ratio of a quilt's law given two values of its node splits into a
right and a left part. Let M be a product of b matrices between the bounds, with F_b(x,x') ≥ max_y log M(x,y)/M(x',y).

**Right.** F_1 = max_y log u(x,y)/l(x',y). M is one matrix times a product of b − 1, whose columns v have
log v(z)/v(z') ≤ F_{b−1}(z,z'), so :math:`F_b = \Phi_{[l,u]}(F_{b-1})` will do. So will log U_b(x,y)/L_b(x',y) with
bounds on the entries of M, and F_{b−1} itself (data processing): the least is taken. Bounds on entries are what
removes the infinities of zeros in ``lower`` once every state is reached from every other.

**Left.** Let M be the product of the a matrices before the node. The left part is
:math:`\log \pi_i(x')/\pi_i(x) + \max_y \log M(y,x)/M(y,x')`. As π_i = ν M for the law ν of record i − a, the first term
is at most :math:`\max_w \log M(w,x')/M(w,x)`, and the sum at most
:math:`\max_{y,w} \log \frac{M(y,x) M(w,x')}{M(w,x) M(y,x')} \le \max_{y,w} F_a(y,w) + F_a(w,y)`, Hilbert's projective
diameter of M, whatever the initial law. Or both terms are bounded by entries: with
C_n(x,x') = max_y log U_n(y,x)/L_n(y,x') the left part is at most C_{i−1}(x',x) + C_a(x,x'), the i − 1 steps before the
node being such a product too. C never grows either.

**Far ends.** Beyond n steps Birkhoff's theorem does: with D = max F_n(y,w) + F_n(w,y) a product of n matrices
contracts Hilbert's metric by tanh(D/4), so all rows of a product of mn are within :math:`D \tanh(D/4)^{m-1}`, and the
log ratio of two laws is no more than their Hilbert distance. The diameter of the columns is that of the rows.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.interval_matrices import EntryBounds
from pufferfish._core.chains.markov import bool_matmul
from pufferfish._core.divergence import max_log_ratio
from pufferfish._core.numbers.rounding import UNIT, up
from pufferfish._core.phi.rows_between_bounds import IntervalRatios

__all__ = ["IntervalGroup", "IntervalInfluence"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

_WORK, _MOST_STEPS = 3e8, 2048
"""Bounds are computed step by step up to so many, and while steps times k⁵ is below this."""

_NEAR = 1e-4
"""A diameter below this is left to Birkhoff's theorem."""

_SETTLED = 1e-9
"""A prior that moves by no more than this is taken for all later nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class IntervalGroup:
    """Consecutive nodes with one bound on their prior.

    Parameters
    ----------
    first, last : int
        The nodes, 1-based, both included.
    pairs : (2, n) ndarray of int
        The secret pairs: ordered pairs x ≠ x' of states that the nodes can take.
    prior : (k, k) ndarray
        Upper bound on log π_i(x')/π_i(x).
    """

    first: int
    last: int
    pairs: NDArray[np.intp]
    prior: Matrix


class IntervalInfluence:
    """Right and left parts of one interval matrix, computed when asked for and kept.

    Parameters
    ----------
    lower, upper : (k, k) ndarray
        Bounds on the entries, rows = from.
    """

    def __init__(self, lower: Matrix, upper: Matrix) -> None:
        self._possible: Mask = upper > 0
        self._k: int = lower.shape[0]
        self._independent = bool(np.all(lower == upper) and np.all(lower == lower[0]))  # nothing is told, exactly
        self._ratios = IntervalRatios(lower, upper)
        self._entries = EntryBounds(lower, upper)
        self._most = int(np.clip(_WORK / self._k**5, 64, _MOST_STEPS))
        self._forward = [self._ratios.whatever]
        self._columns = [_log_ratios(upper.T, lower.T)]

    def right(self, b: int) -> Matrix:
        """Return the right part at distance b for all ordered pairs; shape (k, k)."""
        if self._independent:
            return np.zeros((self._k, self._k))
        n = self._advance(b)
        near = self._forward[n - 1]
        return np.minimum(near, self._beyond(b)) if b > n else near

    def left(self, group: IntervalGroup, a: int) -> Matrix:
        """Return the left part at distance a of the group's nodes for all ordered pairs; shape (k, k)."""
        if self._independent:
            return np.zeros((self._k, self._k))
        n = self._advance(a)
        with np.errstate(invalid="ignore"):
            by_entries = group.prior + self._columns[n - 1]
        diameter = self._beyond(a) if a > n else _diameter(self._forward[n - 1])
        return np.where(by_entries < diameter, by_entries, diameter)  # what is no number is no bound

    def groups(self, length: int) -> Iterator[IntervalGroup]:
        """Yield the groups of nodes of a chain of ``length`` records: ever longer blocks, until the prior settles."""
        reached, prior = np.ones(self._k, dtype=np.bool_), np.full((self._k, self._k), np.inf)
        first, last = 1, 1
        while first <= length:
            pairs = np.nonzero(reached[:, None] & reached[None, :] & ~np.eye(self._k, dtype=np.bool_))
            yield IntervalGroup(first, last, np.array(pairs, dtype=np.intp), prior)
            for _ in range(min(last - first + 1, self._k)):  # falls at every step until it stays
                reached = bool_matmul(reached[None, :], self._possible)[0]
            first = last + 1
            before, n = prior, self._advance(last)
            prior = self._columns[n - 1].T
            with np.errstate(invalid="ignore"):
                settled = bool(np.all((before - prior <= _SETTLED) | ((before == prior) & (first > 4 * self._k))))
            last = length if settled or n < first - 1 else min(length, first + first // 4)

    def _advance(self, steps: int) -> int:
        """Look at products of up to so many matrices; return of how many were looked at."""
        while len(self._forward) < min(steps, self._most) and not _diameter(self._forward[-1]) < _NEAR:
            self._entries.advance()
            least, most = self._entries.least, self._entries.most
            before = self._forward[-1]
            forward = np.minimum(np.minimum(self._ratios(before), before), np.maximum(_log_ratios(most, least), 0.0))
            np.fill_diagonal(forward, 0.0)
            self._forward.append(forward)
            self._columns.append(np.minimum(self._columns[-1], _log_ratios(most.T, least.T)))
        return min(steps, len(self._forward))

    def _beyond(self, distance: int) -> float:
        """Bound the Hilbert distance of any two rows of a product of more matrices than were looked at."""
        n = len(self._forward)
        diameter = _diameter(self._forward[-1])
        if not diameter < math.inf:
            return math.inf
        rate = math.tanh(diameter / 4) * (1 + 8 * UNIT)
        times = min(distance // n - 1, 1000)
        return up(diameter * (1 + 1e-12) * rate**times, 8) + UNIT if rate < 1 else diameter


def _diameter(forward: Matrix) -> float:
    """Return a bound on Hilbert's projective diameter, rounded up."""
    return up(float(np.max(forward + forward.T)))


def _log_ratios(most: Matrix, least: Matrix) -> Matrix:
    """Return max over y of log most(x,y)/least(x',y), rounded up; shape (k, k)."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.concatenate([most, least]))
    return max_log_ratio(logs)[: len(most), len(most) :] + 8 * UNIT * 700
