r"""The discrete Laplace law on the integers, P(Z = z) ∝ exp(−|z|/b).

With p = e^{−1/b}: P(|Z| > t) = 2 p^{t+1}/(1+p) for whole t ≥ 0, E|Z| = 2p/(1−p²). Its log density changes by at most
1/b per step, as the continuous law's does, so every bound for Lap(b) on an integer query holds for it.
"""

import math

from pufferfish.core.numbers import real_number
from pufferfish.errors import ParameterError

__all__ = ["accuracy", "mean_modulus", "variance_of_modulus"]


def mean_modulus(b: float) -> float:
    """Return E|Z|.

    Examples
    --------
    >>> round(mean_modulus(10.0), 3)
    9.983
    """
    return 1 / math.sinh(1 / b) if b > 0.002 else 0.0


def variance_of_modulus(b: float) -> float:
    """Return the variance of |Z|: E Z² = 2p/(1−p)², less the square of the mean.

    Examples
    --------
    >>> round(variance_of_modulus(10.0), 2)
    100.17
    """
    return 1 / (2 * math.sinh(1 / (2 * b)) ** 2) - mean_modulus(b) ** 2 if b > 0.002 else 0.0


def accuracy(b: float, alpha: float, *, together: int = 1) -> int:
    """Return the least whole t with P(|Z| > t for any of ``together`` independent Z) ≤ alpha.

    Raises
    ------
    ParameterError
        If alpha is not strictly between 0 and 1.

    Examples
    --------
    >>> accuracy(10.0, 0.05)
    30
    """
    share = real_number(alpha)
    if share is None or not 0 < share < 1:
        raise ParameterError(f"alpha is {alpha!r}, expected a probability strictly between 0 and 1")
    alpha = -math.expm1(math.log1p(-share) / together)
    t = max(0, math.ceil(-b * (math.log(alpha / 2) + math.log1p(math.exp(-1 / b)))) - 1)
    while _log_tail(b, t) > math.log(alpha):
        t += 1
    while t > 0 and _log_tail(b, t - 1) <= math.log(alpha):
        t -= 1
    return t


def _log_tail(b: float, t: int) -> float:
    """Return log P(|Z| > t)."""
    return math.log(2) - (t + 1) / b - math.log1p(math.exp(-1 / b))
