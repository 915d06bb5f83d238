r"""The influence matrix Γ of a Markov chain (Ghosh and Kleinberg 2016; docs/proofs/gk16.md).

.. math:: \Gamma_{ij} = \tfrac12 \max \log
          \frac{P(X_i = x \mid X_j = y, \text{rest})}{P(X_i = x \mid X_j = y', \text{rest})}

over values x, y, y' and those of the rest: only neighbours have entries. Inside the chain :math:`P(x \mid u, z) =
P(u,x) P(x,z) / P^2(u,z)`, so the maximum splits:

.. math:: 2\Gamma_{i,i-1} = \max_{u,u'} \Big[ \max_x \log \frac{P(u,x)}{P(u',x)}
          + \max_z \log \frac{P^2(u',z)}{P^2(u,z)} \Big]

and likewise for the record after. For the last record :math:`P^2` drops out; for the first, :math:`P^2(u, \cdot)`
becomes qP with its initial law q, or any row of P for every initial law at once.

**Alphabets.** Let S_1 be the support of q, and S_{i+1} the states that can follow one of S_i. Unless every state of
S_{i+1} can follow every one of S_i the chain is refused: two records could tell each other apart for sure while no
conditional law of one record shows it.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish._core import Indices, Mask, Matrix, Vector
from pufferfish._core.chains.markov import LogPowers, LogVectorPath, stationary_log_error
from pufferfish._core.divergence import max_log_ratio
from pufferfish._core.numbers.compiled import Loop
from pufferfish._core.numbers.rounding import UNIT, up

# -- The matrix: certified norms, and certified rows of (I − Γ)⁻¹ ---------------------------------------------------

# For Γ ≥ 0 with ρ(Γ) < 1, (I − Γ)⁻¹ = I + Γ + Γ² + … is non-negative and grows with every entry of Γ, so that upper
# bounds on entries give upper bounds on everything asked here, in steps proportional to the length of the chain. What
# is computed from sums, products and quotients of numbers that are not negative is moved up after every step, and what
# is left of a subtraction is moved down: all results are upper bounds, whatever the rounding.

_TIGHT = 1e-12  # relative width at which the search for the norm ends
_LEAST = 1e-250  # what every weight is raised by, so that no product underflows
_WORK = 20_000_000  # entries of the inverse that are looked at, one by one, where only some records are observed


@dataclass(frozen=True, slots=True, eq=False)
class InfluenceMatrix:
    """The matrix Γ of a chain of T records: only neighbours influence each other, by 0 or at least 1e-20.

    Examples
    --------
    >>> gamma = InfluenceMatrix(np.array([0, 0.25, 0.25]), np.array([0.25, 0.25, 0]), np.ones(3, dtype=bool))
    >>> round(gamma.norm, 9), round(8 * gamma.norm**2, 9), gamma.norm_is_below_one
    (0.353553391, 1.0, True)
    >>> [round(part, 9) for part in gamma.largest_row_sum(np.ones(3))]
    [1.714285714, 1]
    """

    left: Vector  # Γ[i, i−1] and Γ[i, i+1] of every record i, 0 beyond the ends
    right: Vector
    secret: Mask  # records with more than one possible state

    @property
    def norm_is_below_one(self) -> bool:
        """Whether the spectral norm is proven to be below 1."""
        return bool(_norm_is_below(self.left.size, self.left, self.right, 1.0))

    @property
    def norm(self) -> float:
        """Spectral norm, rounded up; 1e-12 of it is what it may be too large by."""
        down, up_ = np.append(self.left[1:], 0.0), np.insert(self.right[:-1], 0, 0.0)
        high = float(np.max(self.left + self.right) * np.max(down + up_)) * (1 + 1e-14)
        low = float(np.max(down**2 + up_**2))
        if not (0 < high < math.inf):
            return high
        high *= 1 + 4 * _TIGHT
        while high - low > _TIGHT * high:
            middle = (low + high) / 2
            if _norm_is_below(self.left.size, self.left, self.right, middle):
                high = middle
            else:
                low = middle
        return up(math.sqrt(high))

    def largest_row_sum(self, weights: Vector) -> tuple[float, int] | None:
        """Bound max_i Σ_j (I − Γ)⁻¹[i, j] · weights[j] over secret records i, and say which; ``inf`` if not proven."""
        return self._worst(self._row_sums(weights))

    def largest_sum_of(self, count: int) -> tuple[float, int] | None:
        """Bound the same where ``count`` weights, one does not know which, are 1 and the others 0."""
        n = self.left.size
        sums = self._row_sums(np.ones(n))
        if count < n:
            most = max(1, min(count, _WORK // n))
            _largest_sums(n * most, self.left, self.right, count, most, sums)
        return self._worst(sums)

    def _row_sums(self, weights: Vector) -> Vector:
        sums = np.empty(self.left.size)
        if not _solve(2 * sums.size, self.left, self.right, weights + _LEAST, sums):
            sums[:] = math.inf
        return sums

    def _worst(self, sums: Vector) -> tuple[float, int] | None:
        if not self.secret.any():
            return None
        worst = int(np.argmax(np.where(self.secret, sums, -1.0)))
        return up(float(sums[worst])), worst


_UP, _DOWN = 1 + 2.0**-49, 1 - 2.0**-51  # more than the roundings of one step: at most 8 of 2^-53 each
_CLEARLY_FALLING = 1 - 2.0**-30


def norm_is_below(left: Any, right: Any, square: float) -> bool:
    """Whether ‖Γ‖₂² < ``square`` is proven: all pivots of ``square`` − ΓᵀΓ are positive though rounded down."""
    n = left.size
    older, old = 1.0, 1.0
    for j in range(n):
        taken = 0.0
        if j > 0:
            taken += right[j - 1] * right[j - 1]
        if j + 1 < n:
            taken += left[j + 1] * left[j + 1]
        if j > 1:
            both = left[j - 1] * right[j - 1]
            taken += both * both / older
        pivot = (square - taken * _UP) * _DOWN
        if not pivot > 0:
            return False
        older, old = old, pivot
    return True


def solve(left: Any, right: Any, weights: Any, sums: Any) -> bool:
    """Write an upper bound on (I − Γ)⁻¹ · weights, at least 1e-250, if every pivot of I − Γ is proven positive."""
    n = left.size
    pivots = np.empty(n)
    for i in range(n):
        if i == 0:
            pivots[i], sums[i] = 1.0, weights[i]
            continue
        back = left[i] / pivots[i - 1]
        pivots[i] = (1 - back * right[i - 1] * _UP) * _DOWN
        if not pivots[i] > 0:
            return False
        sums[i] = (weights[i] + back * sums[i - 1]) * _UP
    sums[n - 1] = sums[n - 1] / pivots[n - 1] * _UP
    for i in range(n - 2, -1, -1):
        sums[i] = (sums[i] + right[i] * sums[i + 1]) / pivots[i] * _UP
    return True


def largest_sums(left: Any, right: Any, count: int, most: int, sums: Any) -> None:
    """Lower row sums of (I − Γ)⁻¹, which ``sums`` holds, to bounds on the sums of the ``count`` largest entries.

    Away from the diagonal entries change by ratios that are the same in every row: where none is above 1, the largest
    are next to the diagonal, and each after ``most`` of them is at most the next.
    """
    n = left.size
    up, down = np.empty(n), np.empty(n)
    up[0], down[n - 1] = 1.0, 1.0
    for i in range(1, n):
        up[i] = (1 - left[i] / up[i - 1] * right[i - 1] * _UP) * _DOWN
    for i in range(n - 2, -1, -1):
        down[i] = (1 - right[i] / down[i + 1] * left[i + 1] * _UP) * _DOWN
    for i in range(n):
        if not (up[i] > 0 and down[i] > 0):
            return
    for i in range(1, n):
        if not max(left[i] / up[i - 1], right[i - 1] / down[i]) < _CLEARLY_FALLING:
            return
    for i in range(n):
        before = left[i] / up[i - 1] if i > 0 else 0.0
        after = right[i] / down[i + 1] if i + 1 < n else 0.0
        pivot = 1.0
        if i > 0:
            pivot -= before * right[i - 1] * _UP
        if i + 1 < n:
            pivot -= after * left[i + 1] * _UP
        pivot = pivot * _DOWN - 2.0**-50
        if not pivot > 0:
            continue
        diagonal = 1 / pivot * _UP
        total, taken, a, b = diagonal, 1, i, i
        before, after = diagonal * before * _UP, diagonal * after * _UP
        while taken < count and taken < most and max(before, after) > 0:
            if before >= after:
                total += before
                a -= 1
                before = before * left[a] / up[a - 1] * _UP if a > 0 else 0.0
            else:
                total += after
                b += 1
                after = after * right[b] / down[b + 1] * _UP if b + 1 < n else 0.0
            total *= _UP
            taken += 1
        total = (total + (count - taken) * max(before, after)) * _UP
        sums[i] = min(sums[i], total)


_norm_is_below, _solve, _largest_sums = Loop(norm_is_below), Loop(solve), Loop(largest_sums)


# -- Its entries for a chain ----------------------------------------------------------------------------------------


class Alphabets(NamedTuple):
    """Which states records can have: ``sets[i]`` for the i-th record, and from ``cycle`` on again and again."""

    sets: list[Indices]
    cycle: int
    missing: tuple[int, int] | None
    """A state, and another that a record after it may have, but never has after this one."""

    @classmethod
    def of(cls, start: Mask, possible: Mask) -> "Alphabets":
        """Follow the support of the initial law along the transitions that are possible."""
        sets: list[Indices] = []
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
        matrix = self.leading(steps)
        if steps > 1:
            n, t = self.last.size, steps - 2
            matrix.left[-1] = self.last[t if t < n else self.cycle + (t - self.cycle) % (n - self.cycle)]
        return matrix

    def leading(self, steps: int) -> InfluenceMatrix:
        """Return the first so many rows and columns of Γ for longer chains: its norm is at most that of Γ."""
        left, right = (np.concatenate([[0.0], self._along(part, steps - 1)]) for part in (self.left, self.right))
        right[0] = self.first
        right[-1] = 0.0
        return InfluenceMatrix(left, right, self._along(self.several, steps))

    def _along(self, values: NDArray[Any], records: int) -> NDArray[Any]:
        """Return what is known by alphabet for so many records in turn."""
        head, again = values[:records], values[self.cycle :]
        left = records - head.size
        return np.concatenate([head, np.tile(again, -(-left // again.size))[:left]])


def chain_influences(p: Matrix, start: Vector | None) -> Influences:
    """Return the influences of a chain with an initial law, or (None) with every initial law at once."""
    if start is None:
        return _influences(p, np.ones(len(p), dtype=np.bool_), None, 0.0)
    path = LogVectorPath(start, p)
    support = path.support
    path.advance()
    return _influences(p, support, path.log, path.log_error)


def stationary_influences(p: Matrix, pi: Vector) -> Influences:
    """Return the influences of a chain that starts with its stationary law π."""
    return _influences(p, np.ones(len(p), dtype=np.bool_), np.log(pi), stationary_log_error(len(p)))


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

    def inner(u: Indices, x: Indices, z: Indices) -> tuple[float, float, float]:
        onto, over, through = one[np.ix_(u, x)], one[np.ix_(x, z)], two[np.ix_(u, z)]
        of_last, of_next = max_log_ratio(onto), max_log_ratio(over.T)
        left, right = of_last + max_log_ratio(through).T, of_next + max_log_ratio(through.T).T
        return half(left), half(right), half(of_last)

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
    columns = max_log_ratio(one[np.ix_(s1, s2)].T)
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
