r"""The discrete Laplace law, and sums of independent variables of different scales: tails and mean moduli.

P(Z = z) ∝ exp(−|z|/b) on the integers. With p = e^{−1/b}: P(|Z| > t) = 2 p^{t+1}/(1+p) for whole t ≥ 0. Every bound for
Lap(b) on an integer query holds for it. The characteristic function of one Z is

.. math:: \varphi(t) = \frac{1-p}{1+p}\left(\frac{p e^{it}}{1 - p e^{it}} + \frac{1}{1 - p e^{-it}}\right).

One Fourier transform of their product gives the law of a sum S; where scales are large, each Z is first rounded up to a
multiple of a grid, so that the upper tail is never understated. The mean is

.. math:: E|S| = \frac{1}{\pi} \int_0^\pi \frac{1 - \varphi(t)}{1 - \cos t}\, dt.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache

import numpy as np

from pufferfish._base.checked import real_number
from pufferfish._core import Array, Mask
from pufferfish._core.numbers.rounding import least_whole
from pufferfish.errors import ParameterError

# -- The discrete Laplace law on the integers ------------------------------------------------------------------------

_TOLD_APART = 2.0**33
"""At scales below this the tails at t and t + 1 differ by much more than their rounding, for every alpha there is."""

_ROUNDING = 1e-14  # above it: more than the closed form can be off, as a share of itself and of the scale
_NARROW, _NEXT_TO_NONE = 1e-12, 1e-6

_LARGEST = 1.7e308
_MOST_STEPS = 4


def mean_modulus(b: float) -> float:
    """Return E|Z|."""
    return 1 / math.sinh(1 / b) if b > 0.002 else 0.0


_FEW_DIGITS = 1e-290  # quotients below this may have lost digits


def check_alpha(alpha: float) -> float:
    """Return a probability strictly between 0 and 1, or raise a ParameterError."""
    share = real_number(alpha)
    if share is None or not 0 < share < 1:
        raise ParameterError(f"alpha is {alpha!r}, expected a probability strictly between 0 and 1")
    return share


def accuracy(b: float, alpha: float, *, together: int = 1) -> int:
    """Return the least whole t with P(|Z| > t for any of ``together`` independent Z) ≤ alpha.

    At scales of 2^33 and more, where doubles no longer tell t and t + 1 apart, a t that is a little larger.

    Examples
    --------
    >>> accuracy(10.0, 0.05)
    30
    """
    share, single_share = check_alpha(alpha), share_of_each(alpha, together)
    if not 0 < b < math.inf:
        raise ParameterError(f"the scale is {b!r}, expected a positive finite number")
    level = math.log(single_share) if single_share > _FEW_DIGITS else math.log(share) - math.log(together)
    closed = b * (math.log(2) - level - math.log1p(math.exp(-1 / b)))  # P(|Z| > t) = alpha at t + 1 = closed
    if b >= _TOLD_APART:
        return math.ceil(min(closed + _ROUNDING * (closed + b), _LARGEST))
    t = max(0, math.ceil(closed) - 1)  # but for rounding: one step at most, up or down
    return least_whole(lambda t: _log_tail(b, t) <= level, max(-1, t - _MOST_STEPS), t + _MOST_STEPS)


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


_FINEST = 2000.0
"""With larger scales than this the law is that of a grid, which is never below, and above by at most 0.1% a term."""

_SURE = 45.0  # scales from 0 to where no draw comes: e^{−45} is below 1e-19
_FOURIER = 1e-12  # above what a Fourier transform of these sizes errs by, summed over a tail
_THETAS = 64  # exponents at which Chernoff's bound is tried
_NODES, _FIRST = 160, 1e-5

_LEAST_SCALE, _LARGEST_SCALE = 1e-300, 1e14
"""Smaller ones are taken for the least, whose inverse a double holds: more noise than there is."""


class LaplaceSum:
    """The sum of independent discrete Laplace variables of positive scales.

    A ParameterError if there are several, and doubles no longer tell exp(-1/scale) of one from 1 well enough.

    Examples
    --------
    >>> LaplaceSum([10.0]).accuracy(0.05), LaplaceSum([10.0, 10.0]).accuracy(0.05)
    (30, 41)
    """

    def __init__(self, scales: Sequence[float]) -> None:
        self._scales = np.sort(np.maximum(np.array([b for b in scales], dtype=np.float64), _LEAST_SCALE))
        self._largest = float(self._scales.max())
        if self._scales.size > 1 and not self._largest <= _LARGEST_SCALE:
            raise ParameterError(
                f"sums of noise are computed up to a scale of {_LARGEST_SCALE:g} units, and this is {self._largest:g}"
            )

    def accuracy(self, alpha: float) -> int:
        """Return the least whole t found with P(|S| > t) ≤ alpha; never below the least there is."""
        if self._scales.size == 1:
            return accuracy(self._largest, alpha)
        low, high = -1, max(1, math.ceil(self._largest))
        while self.tail(high) > alpha:
            low, high = high, 2 * high
        return least_whole(lambda t: self.tail(t) <= alpha, low, high)

    def tail(self, t: int) -> float:
        """Return P(|S| > t) for a whole t ≥ 0, or a little more."""
        if self._scales.size == 1:
            b = self._largest
            return min(1.0, 2 * math.exp(-(t + 1) / b) / (1 + math.exp(-1 / b)) * (1 + 1e-12))
        grid, upper = self._upper
        place = t // grid
        by_law = 2 * float(upper[place]) + _FOURIER if place < upper.size else 1.0
        return min(1.0, by_law, self._chernoff(t))

    @cached_property
    def _upper(self) -> tuple[int, Array]:
        """P(S' > n·grid) for n = 0, 1, …, S' the sum of the terms, each rounded up to the grid."""
        grid = max(1, math.ceil(self._largest / _FINEST))
        far = _SURE * self._largest + 10 * math.sqrt(2 * float(np.sum(self._scales**2))) + grid * self._scales.size
        n = 1 << math.ceil(math.log2(max(64.0, 2 * far / grid)))
        turn = np.exp(2j * np.pi * np.arange(n // 2 + 1) / n)
        phi = np.ones(n // 2 + 1, dtype=np.complex128)
        for b in self._scales.tolist():
            p, less = math.exp(-1 / b), -math.expm1(-grid / b)  # 1 − q
            q = 1 - less
            phi *= less / (1 + p) * (p * turn / (1 - q * turn) + 1 / (1 - q / turn))
        law = np.maximum(np.fft.irfft(np.conj(phi), n)[: n // 2], 0.0)
        above = np.cumsum(law[::-1])[::-1]
        return grid, np.append(above[1:], 0.0)

    def _chernoff(self, t: int) -> float:
        """Return a bound on P(|S| > t) from the moments of e^{θS}."""
        thetas = np.linspace(0, 1, _THETAS + 2)[1:-1] / self._largest
        p, per = np.exp(-1 / self._scales)[:, None], (1 / self._scales)[:, None]
        ends = (1 - np.exp(thetas - per)) * (1 - np.exp(-thetas - per))
        moments = np.sum(2 * np.log1p(-p) - np.log(ends), axis=0)
        least = float(np.min(moments - thetas * (t + 1)))
        return 2 * math.exp(least) * (1 + 1e-9) if least < 0 else 1.0


@lru_cache(maxsize=256)
def laplace_sum(scales: tuple[float, ...]) -> LaplaceSum:
    """Return the sum of variables of these scales; what was computed of it lately is known."""
    return LaplaceSum(scales)


Sums = Sequence[tuple[float, ...]]
"""For each output the scales of the noises that it is the sum of."""


def errors_within(sums: Sums, alpha: float, *, joint: bool = False, apart: bool = False) -> list[int]:
    """Return for each output the error that it exceeds with probability at most alpha.

    With ``joint``, alpha is that of any of them; with ``apart``, no noise is in two outputs.
    """
    share = check_alpha(alpha)
    if joint:
        share = share_of_each(share, len(sums)) if apart else share / len(sums)
    return [laplace_sum(scales).accuracy(share) for scales in sums]


def share_of_each(alpha: float, groups: int) -> float:
    """Return the probability of one group where that of any of some independent groups, all alike, is alpha."""
    share = check_alpha(alpha)
    return share if groups == 1 else -math.expm1(math.log1p(-share) / groups)


def joint_error(sums: Sums, alpha: float, *, apart: bool = False) -> int:
    """Return the error that any output exceeds with probability at most alpha; see :func:`errors_within`."""
    share = check_alpha(alpha)
    laws = [(laplace_sum(scales), times) for scales, times in Counter(sums).items()]

    def any_beyond(t: int) -> float:
        tails = [(law.tail(t), times) for law, times in laws]
        if not apart:
            return sum(tail * times for tail, times in tails)
        return -math.expm1(sum(times * math.log1p(-min(tail, 1 - 1e-16)) for tail, times in tails))

    errors = errors_within(sums, share)
    high = max(errors_within(sums, share, joint=True, apart=apart))
    return least_whole(lambda t: any_beyond(t) <= share, max(errors) - 1, high)


@cache
def _nodes() -> tuple[Array, Array]:
    """Return nodes and weights of a quadrature on (−1, 1)."""
    return np.polynomial.legendre.leggauss(_NODES)


def mean_moduli(scales: Array, taken: Mask) -> Array:
    """Return E|S| of several sums of discrete Laplace variables of scales (m,); ``taken`` (n, m) says of which each is.

    Examples
    --------
    >>> mean_moduli(np.array([10.0, 5.0]), np.array([[True, False], [True, True]])).round(2)
    array([ 9.98, 11.65])
    """
    first = _FIRST / float(scales.max())
    nodes, weights = _nodes()
    low, high = math.log(min(first, 1.0)), math.log(math.pi)
    t = np.exp(low + (nodes + 1) * (high - low) / 2)
    weights = weights * (high - low) / 2 * t
    half = np.sin(t / 2) ** 2
    spread = 1 / (2 * np.sinh(1 / (2 * np.maximum(scales, 0.002))) ** 2)  # E Z²
    logs = np.log1p(2 * spread[:, None] * half)  # φ = 1 / (1 + 2·E Z²·sin²(t/2))
    lost = -np.expm1(-(taken.astype(np.float64) @ logs))
    whole = lost @ (weights / (2 * half)) + taken @ spread * math.exp(low)
    moduli: Array = whole / math.pi
    return moduli
