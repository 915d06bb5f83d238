r"""The discrete Laplace law on the integers, P(Z = z) ∝ exp(−|z|/b).

With p = e^{−1/b}: P(|Z| > t) = 2 p^{t+1}/(1+p) for whole t ≥ 0, E|Z| = 2p/(1−p²). Its log density changes by at most
1/b per step, as the continuous law's does, so every bound for Lap(b) on an integer query holds for it.
"""

import math

from pufferfish._base.checked import real_number
from pufferfish.errors import ParameterError

__all__ = ["accuracy", "as_share", "mean_modulus", "variance_of_modulus", "widest"]

_TOLD_APART = 2.0**33
"""At scales below this the tails at t and t + 1 differ by much more than their rounding, for every alpha there is."""

_ROUNDING = 1e-14
"""Above it: more than the closed form can be off, as a share of itself and of the scale."""

_NARROW, _NEXT_TO_NONE = 1e-12, 1e-6

_LARGEST = 1.7e308
_MOST_STEPS = 4


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


_FEW_DIGITS = 1e-290
"""Quotients below this may have lost digits."""


def as_share(alpha: float) -> float:
    """Return a probability strictly between 0 and 1.

    Raises
    ------
    ParameterError
        If it is none.
    """
    share = real_number(alpha)
    if share is None or not 0 < share < 1:
        raise ParameterError(f"alpha is {alpha!r}, expected a probability strictly between 0 and 1")
    return share


def accuracy(b: float, alpha: float, *, together: int = 1) -> int:
    """Return the least whole t with P(|Z| > t for any of ``together`` independent Z) ≤ alpha.

    At scales of 2^33 and more, where doubles no longer tell t and t + 1 apart, a t that is a little larger.

    Raises
    ------
    ParameterError
        If alpha is not strictly between 0 and 1, or the scale is not positive and finite.

    Examples
    --------
    >>> accuracy(10.0, 0.05)
    30
    """
    share = as_share(alpha)
    if not 0 < b < math.inf:
        raise ParameterError(f"the scale is {b!r}, expected a positive finite number")
    each = -math.expm1(math.log1p(-share) / together)
    level = math.log(each) if each > _FEW_DIGITS else math.log(share) - math.log(together)
    closed = b * (math.log(2) - level - math.log1p(math.exp(-1 / b)))  # P(|Z| > t) = alpha at t + 1 = closed
    if b >= _TOLD_APART:
        return math.ceil(min(closed + _ROUNDING * (closed + b), _LARGEST))
    t = max(0, math.ceil(closed) - 1)
    for _ in range(_MOST_STEPS):  # rounding: one step at most, up or down
        if _log_tail(b, t) > level:
            t += 1
        elif t > 0 and _log_tail(b, t - 1) <= level:
            t -= 1
        else:
            break
    return t


def _log_tail(b: float, t: int) -> float:
    """Return log P(|Z| > t)."""
    return math.log(2) - (t + 1) / b - math.log1p(math.exp(-1 / b))


def widest(t: int, alpha: float, *, together: int = 1) -> float:
    """Return the largest scale, to 1e-12, at which :func:`accuracy` is at most a whole t ≥ 0.

    Examples
    --------
    >>> b = widest(30, 0.05)
    >>> round(b, 3), accuracy(b, 0.05), accuracy(b * 1.001, 0.05)
    (10.185, 30, 31)
    """
    low, high = 0.0, 1.0
    while accuracy(high, alpha, together=together) <= t:
        low, high = high, 2 * high
    while high - low > _NARROW * high:
        middle = (low + high) / 2
        if middle > 0 and accuracy(middle, alpha, together=together) <= t:
            low = middle
        else:
            high = middle
        if high < _NEXT_TO_NONE:  # any noise at all errs too often
            break
    return low
