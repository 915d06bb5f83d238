"""Max-divergence: the largest log ratio of two laws."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pufferfish._base.checked import probabilities
from pufferfish._core import Array
from pufferfish._core.numbers.compiled import Loops
from pufferfish._core.numbers.rounding import UNIT, log_up, up
from pufferfish.errors import ModelError

_AT_ONCE = 2**22  # differences held at a time, some 32 megabytes
_MANY = 10**8  # differences from which on compiled loops pay for being loaded


def max_divergence(p: ArrayLike, q: ArrayLike) -> float:
    r"""Max-divergence :math:`D_\infty(p\|q) = \max_{y: p(y)>0} \log p(y)/q(y)` of two laws on the same points.

    Parameters
    ----------
    p, q : array_like, shape (m,)
        Non-negative masses, each summing to 1 (tolerance 1e-9).

    Returns
    -------
    float
        The divergence in nats, ``inf`` where p has mass and q has none; rounded up by a few ulps, never below 0. It
        holds for the masses as they are given, and for the laws that they are after division by their sums: where
        these differ, for the larger of the two.

    Raises
    ------
    ModelError
        If the laws differ in length, or one is not a probability distribution.

    References
    ----------
    Song, Wang, Chaudhuri (2017), Section 2.3 (guarantee against close adversaries).

    Examples
    --------
    >>> round(max_divergence([1/3, 1/2, 1/6], [1/2, 1/4, 1/4]), 6)
    0.693147
    """
    p_, q_ = _law(p, "p"), _law(q, "q")
    if p_.shape != q_.shape:
        raise ModelError(f"p has {p_.size} points and q has {q_.size}: both laws need the same points")
    mass = p_ > 0
    if np.any(q_[mass] == 0):
        return float("inf")
    logs = np.log(p_[mass]) - np.log(q_[mass])
    slack = 4 * UNIT * (2 + float(np.max(np.abs(np.log(q_[mass])))))
    # Divided by their sums, all ratios grow by the one factor sum(q)/sum(p), which may be below 1.
    missing = max(0.0, log_up(_sum(q_) / _sum(p_)))
    return max(0.0, up(float(np.max(logs)) + slack + missing))


def _sum(law: Array) -> Fraction:
    return sum(map(Fraction, law.tolist()), Fraction(0))


def _law(masses: Any, name: str) -> Array:
    law = probabilities(masses, name)
    if law.ndim != 1 or law.size == 0:
        raise ModelError(f"{name} has shape {law.shape}, expected one dimension with at least one mass")
    if not np.all(np.isfinite(law)) or np.any(law < 0):
        bad = int(np.flatnonzero(~(np.isfinite(law) & (law >= 0)))[0])
        raise ModelError(f"{name}[{bad}] is {law[bad]}, expected a probability between 0 and 1")
    if abs(float(law.sum()) - 1) > 1e-9:
        raise ModelError(f"{name} sums to {law.sum():.12g}, expected 1 (tolerance 1e-9)")
    return law


def max_log_ratio(log_rows: Array) -> Array:
    """Largest log ratio of every pair of rows of logarithms: +∞ where only x' has a zero, −∞ where x is all zeros."""
    k = log_rows.shape[0]
    ratios = np.empty((k, k))
    if np.any(np.isnan(log_rows)):  # not a logarithm: fail closed
        return np.full((k, k), np.inf)
    if k * log_rows.size >= _MANY:
        _LOOPS.compiled.log_ratios(np.ascontiguousarray(log_rows), np.ascontiguousarray(log_rows.T), ratios)
        return ratios
    finite = bool(np.all(np.isfinite(log_rows)))
    rows = max(1, _AT_ONCE // max(log_rows.size, 1))
    for first in range(0, k, rows):
        block = log_rows[first : first + rows, None, :]
        with np.errstate(invalid="ignore"):
            differences = block - log_rows[None, :, :]
        if not finite:
            differences[np.isnan(differences)] = -np.inf  # 0/0: the column is outside the support of both
        np.max(differences, axis=2, out=ratios[first : first + rows])
    return ratios


def log_ratios(rows: Any, columns: Any, ratios: Any) -> None:
    """Fill in the largest log ratios; ``columns`` is the transpose, so that the innermost loop is over rows."""
    for x in range(rows.shape[0]):
        best = ratios[x]
        best[:] = -np.inf
        for y in range(rows.shape[1]):
            here, column = rows[x, y], columns[y]
            for x_ in range(rows.shape[0]):
                difference = here - column[x_]
                if difference > best[x_]:
                    best[x_] = difference


_LOOPS = Loops(log_ratios)
