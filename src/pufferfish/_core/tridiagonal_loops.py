r"""The loops of :mod:`pufferfish._core.tridiagonal`, for numba to compile.

``left[i]`` and ``right[i]`` are the entries Γ[i, i−1] and Γ[i, i+1] of a non-negative matrix, 0 beyond its ends. They
are 0 or at least 1e-20, so that nothing here underflows. What is computed from sums, products and quotients of numbers
that are not negative is moved up after every step, and what is left of a subtraction is moved down: all results are
upper bounds, whatever the rounding.
"""

from typing import Any

import numpy as np

__all__ = ["largest_sums", "norm_is_below", "solve"]

_UP, _DOWN = 1 + 2.0**-49, 1 - 2.0**-51
"""More than the roundings of one step: at most 8 of 2^-53 each."""

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
