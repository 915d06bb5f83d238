r"""Tridiagonal influence matrices Γ: certified norms, and certified rows of (I − Γ)⁻¹.

For Γ ≥ 0 with ρ(Γ) < 1, (I − Γ)⁻¹ = I + Γ + Γ² + … is non-negative and grows with every entry of Γ, so that upper
bounds on entries give upper bounds on everything asked here. All of it takes a number of steps proportional to the
length of the chain.

``left[i]`` and ``right[i]`` are the entries Γ[i, i−1] and Γ[i, i+1] of a non-negative matrix, 0 beyond its ends. They
are 0 or at least 1e-20, so that nothing here underflows. What is computed from sums, products and quotients of numbers
that are not negative is moved up after every step, and what is left of a subtraction is moved down: all results are
upper bounds, whatever the rounding.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.compiled import Loop
from pufferfish._core.numbers.rounding import up

__all__ = ["InfluenceMatrix"]

Vector = NDArray[np.float64]

_TIGHT = 1e-12  # relative width at which the search for the norm ends
_LEAST = 1e-250  # what every weight is raised by, so that no product underflows
# Entries of the inverse that are looked at, one by one, where only some records are observed.
_WORK = 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class InfluenceMatrix:
    """The matrix Γ of a chain of T records: only neighbours influence each other.

    Parameters
    ----------
    left, right : (T,) ndarray
        Γ[i, i−1] and Γ[i, i+1]: influence of the records before and after on record i; 0 beyond the ends. Entries are
        0 or at least 1e-20.
    secret : (T,) ndarray of bool
        Records with more than one possible state; the others are nobody's secret.

    Examples
    --------
    >>> gamma = InfluenceMatrix(np.array([0, 0.25, 0.25]), np.array([0.25, 0.25, 0]), np.ones(3, dtype=bool))
    >>> round(gamma.norm, 9), round(8 * gamma.norm**2, 9), gamma.norm_is_below_one
    (0.353553391, 1.0, True)
    >>> [round(part, 9) for part in gamma.largest_row_sum(np.ones(3))]
    [1.714285714, 1]
    """

    left: Vector
    right: Vector
    secret: NDArray[np.bool_]

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
        """Bound max_i Σ_j (I − Γ)⁻¹[i, j] · weights[j] over the secret records, weights from 0 to 1; and say which i.

        Rounded up, ``inf`` where nothing was proven; None if no record is secret.
        """
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


# -- The loops, for numba to compile ----------------------------------------------------------------------------------

_UP, _DOWN = 1 + 2.0**-49, 1 - 2.0**-51  # more than the roundings of one step: at most 8 of 2^-53 each
_CLEARLY_FALLING = 1 - 2.0**-30


def norm_is_below(left: Any, right: Any, square: float) -> bool:
    """Whether ``square`` − ΓᵀΓ is proven to be positive definite: then ‖Γ‖₂² < ``square``.

    ΓᵀΓ has entries only on the diagonal and two places off it, so that its even and its odd rows are tridiagonal
    matrices of their own, and one is positive definite if and only if all pivots of its elimination are positive.
    Less in one pivot is less in the next: pivots that are positive though rounded down prove it.
    """
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
    """Write an upper bound on (I − Γ)⁻¹ · weights, if every pivot of I − Γ is proven positive; weights at least 1e-250.

    Positive pivots make I − Γ an M-matrix, so that its inverse is the sum of the powers of Γ.
    """
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

    From G = (I − Γ)⁻¹[i, j] to the next column away from i, the entry is multiplied by a ratio that does not depend on
    i. Where no ratio is above 1, the largest entries of a row are next to its diagonal, and what follows ``most`` of
    them is at most the next one each.
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
