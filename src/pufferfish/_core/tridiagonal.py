r"""Tridiagonal influence matrices Γ: certified norms, and certified rows of (I − Γ)⁻¹.

For Γ ≥ 0 with ρ(Γ) < 1, (I − Γ)⁻¹ = I + Γ + Γ² + … is non-negative and grows with every entry of Γ, so that upper
bounds on entries give upper bounds on everything asked here. All of it takes a number of steps proportional to the
length of the chain; :mod:`pufferfish._core.tridiagonal_loops` says how it is rounded.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.compiled import Loop
from pufferfish._core.numbers.rounding import up
from pufferfish._core.tridiagonal_loops import largest_sums, norm_is_below, solve

__all__ = ["InfluenceMatrix"]

Vector = NDArray[np.float64]

_TIGHT = 1e-12
"""Relative width at which the search for the norm ends."""

_LEAST = 1e-250
"""What every weight is raised by, so that no product underflows."""

_WORK = 20_000_000
"""Entries of the inverse that are looked at, one by one, where only some records are observed."""


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
        """Bound max_i Σ_j (I − Γ)⁻¹[i, j] · weights[j] over the secret records, and say where it is attained.

        Parameters
        ----------
        weights : (T,) ndarray
            Numbers from 0 to 1.

        Returns
        -------
        (float, int) or None
            The bound, rounded up, ``inf`` where none was proven; and i. None if no record is secret.
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


_norm_is_below, _solve, _largest_sums = Loop(norm_is_below), Loop(solve), Loop(largest_sums)
