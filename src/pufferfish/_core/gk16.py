r"""The influence matrix Γ of a Markov chain (Ghosh and Kleinberg 2016).

.. math:: \Gamma_{ij} = \tfrac12 \max \log
          \frac{P(X_i = x \mid X_j = y, \text{rest})}{P(X_i = x \mid X_j = y', \text{rest})}

over values x, y, y' and those of the rest. Given its neighbours, a record is independent of all others, so only
neighbours have entries. Inside the chain :math:`P(x \mid u, z) = P(u,x) P(x,z) / P^2(u,z)`, and the maximum over
x, z splits from that over pairs (u, u'):

.. math:: 2\Gamma_{i,i-1} = \max_{u,u'} \Big[ \max_x \log \frac{P(u,x)}{P(u',x)}
          + \max_z \log \frac{P^2(u',z)}{P^2(u,z)} \Big]

and likewise for the record after. The last record has no record after it (:math:`P^2` drops out), and the first has
its initial law q in place of a record before, so that :math:`P^2(u, \cdot)` becomes qP. For every initial law at once,
the largest entry is approached by laws near a corner: qP becomes any row of P.

**Alphabets.** The conditional laws must be defined, and positive, for *all* values of the neighbours that occur at
all. Let S_1 be the support of q, and S_{i+1} the states that can follow one of S_i. Unless every state of S_{i+1} can
follow every one of S_i, two records could tell each other apart for sure while no conditional law of one record shows
it (two records that are always equal have Γ = 0 where only possible values count). So such chains are refused. Where
none is refused, every row of P over S_i has the support S_{i+1}: there are at most k + 1 different alphabets, and from
some record on they take turns.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import LogPowers, LogVectorPath, stationary_log_error
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.tridiagonal import InfluenceMatrix

__all__ = ["Alphabets", "Influences", "chain_influences", "stationary_influences"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Alphabets(NamedTuple):
    """Which states records can have: ``sets[i]`` for the i-th record, and from ``cycle`` on again and again."""

    sets: list[NDArray[np.intp]]
    cycle: int
    missing: tuple[int, int] | None
    """A state, and another that a record after it may have, but never has after this one."""

    @classmethod
    def of(cls, start: Mask, possible: Mask) -> "Alphabets":
        """Follow the support of the initial law along the transitions that are possible."""
        sets: list[NDArray[np.intp]] = []
        seen: dict[bytes, int] = {}
        now = start
        while now.tobytes() not in seen:
            seen[now.tobytes()] = len(sets)
            sets.append(np.flatnonzero(now))
            after: Mask = np.any(possible[now], axis=0)
            absent = np.argwhere(np.logical_and(np.outer(now, after), ~possible))
            if absent.size:
                return cls(sets, 0, (int(absent[0, 0]), int(absent[0, 1])))
            now = after
        return cls(sets, seen[now.tobytes()], None)

    def after(self, i: int) -> int:
        """Return the index of the alphabet that follows the i-th."""
        return i + 1 if i + 1 < len(self.sets) else self.cycle


@dataclass(frozen=True, slots=True, eq=False)
class Influences:
    """Entries of Γ for chains of every length, rounded up; arrays are by the alphabet of the record before."""

    first: float  # Γ[1, 2]
    least_first: float  # a quarter of the largest log cross ratio, which that is at least, whatever the initial law
    left: Vector  # Γ[i, i−1] and Γ[i, i+1] of a record with two neighbours
    right: Vector
    last: Vector  # Γ[T, T−1]
    several: Mask  # whether an alphabet has more than one state
    cycle: int  # which alphabet follows the last

    def with_inner_ends(self) -> "Influences":
        """Return the same with the influence of inner records at the two ends as well, as if the chain went on."""
        first = max(self.least_first, float(self.right.max())) if self.first else 0.0
        return replace(self, first=first, last=np.maximum(self.last, self.left))

    def matrix(self, steps: int) -> InfluenceMatrix:
        """Return Γ for a chain of so many records."""
        left, right = self._of_records(steps)
        if steps > 1:
            n, t = self.last.size, steps - 2
            left[-1] = self.last[t if t < n else self.cycle + (t - self.cycle) % (n - self.cycle)]
        right[-1] = 0.0
        return InfluenceMatrix(left, right, self._along(self.several, steps))

    def leading(self, steps: int) -> InfluenceMatrix:
        """Return the first so many rows and columns of Γ for longer chains: its norm is at most that of Γ."""
        left, right = self._of_records(steps)
        right[-1] = 0.0
        return InfluenceMatrix(left, right, self._along(self.several, steps))

    def _of_records(self, steps: int) -> tuple[Vector, Vector]:
        """Return the influences on the first so many records of a chain that goes on."""
        left, right = (np.concatenate([[0.0], self._along(part, steps - 1)]) for part in (self.left, self.right))
        right[0] = self.first
        return left, right

    def _along(self, values: NDArray[Any], records: int) -> NDArray[Any]:
        """Return what is known by alphabet for so many records in turn."""
        head, again = values[:records], values[self.cycle :]
        left = records - head.size
        return np.concatenate([head, np.tile(again, -(-left // again.size))[:left]])


def spread(logs: Matrix) -> Matrix:
    """Return max over columns of row a less row b; shape (rows, rows)."""
    return np.array([(row - logs).max(axis=1) for row in logs])


def chain_influences(p: Matrix, start: Vector | None) -> Influences:
    """Return the influences of a chain with an initial law, or (None) with every initial law at once.

    Every state that can follow a state of an alphabet can follow all of them.
    """
    if start is None:
        return _influences(p, _all_states(p), None, 0.0)
    path = LogVectorPath(start, p)
    support = path.support
    path.advance()
    return _influences(p, support, path.log, path.log_error)


def stationary_influences(p: Matrix, pi: Vector) -> Influences:
    """Return the influences of a chain that starts with its stationary law π."""
    return _influences(p, _all_states(p), np.log(pi), stationary_log_error(len(p)))


def _all_states(p: Matrix) -> Mask:
    return np.ones(len(p), dtype=np.bool_)


def _influences(p: Matrix, support: Mask, second: Vector | None, second_error: float) -> Influences:
    """Return the influences, from the logarithms of the second record's law; None for every law of the first."""
    possible = p > 0
    alphabets = Alphabets.of(support, possible)
    powers = LogPowers(p)
    one, two = powers.log(1), powers.log(2)
    error = powers.log_error(1) + powers.log_error(2) + 8 * p.shape[0] * UNIT

    def half(total: Matrix) -> float:
        """Half of the largest sum of two spreads, moved up by their errors."""
        return float(total.max()) / 2 * (1 + 2 * UNIT) + error

    def inner(u: NDArray[np.intp], x: NDArray[np.intp], z: NDArray[np.intp]) -> tuple[float, float, float]:
        onto, over, through = one[np.ix_(u, x)], one[np.ix_(x, z)], two[np.ix_(u, z)]
        of_last = spread(onto)
        return half(of_last + spread(through).T), half(spread(over.T) + spread(through.T).T), half(of_last)

    # every three alphabets in turn; a record with one state has no influence
    n = len(alphabets.sets)
    several = np.array([len(states) > 1 for states in alphabets.sets])
    influences = np.zeros((n, 3))
    for i in range(n):
        j = alphabets.after(i)
        m = alphabets.after(j)
        influences[i] = inner(alphabets.sets[i], alphabets.sets[j], alphabets.sets[m])
        before, after = several[i] and several[j], several[j] and several[m]
        influences[i] *= [before, after, before]
    s1, s2 = alphabets.sets[0], alphabets.sets[alphabets.after(0)]
    columns = spread(one[np.ix_(s1, s2)].T)
    prior = columns if second is None else second[s2][:, None] - second[s2][None, :]
    first = half(columns + prior.T) + second_error
    together = bool(several[0] and several[alphabets.after(0)])
    left, right, last = influences.T.copy()
    return Influences(
        first=first if together else 0.0,
        least_first=half(columns + columns.T) / 2 if together else 0.0,
        left=left,
        right=right,
        last=last,
        several=several,
        cycle=alphabets.cycle,
    )
