r"""The exact loss of Laplace noise for a statistic whose laws are known (beyond the paper).

For laws μ, ν of an integer statistic the loss of Lap(b) is the largest log ratio, either way, of
:math:`(\mu * k)(w) = \sum_n \mu(n)\, e^{-|w-n|/b}` and the same for ν. Between two neighbouring atoms the ratio is a
Möbius function of e^{2w/b}, hence monotone, and beyond the outermost atoms it is constant: whole numbers w between them
suffice, for real noise as for the discrete noise of a release. Both sums over n ≤ w and n > w are geometric recursions,
so the loss at all w costs as much as reading the laws.

It never increases with b, since Lap(b') with b' > b is Lap(b) and more independent noise.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.laws.law import Law, log_rounding
from pufferfish._core.numbers.rounding import UNIT, or_infinite
from pufferfish._core.numbers.wide import Wide

__all__ = ["laplace_loss", "smoothed"]

_FARTHEST = 1e12
"""Logarithms of what noise could make of a law's farthest mass, up to which wide numbers reach."""


def laplace_loss(mu: Law, nu: Law, scale: float) -> float:
    """Return the loss of Laplace noise for a pair of laws, in nats, rounded up.

    Examples
    --------
    >>> from fractions import Fraction
    >>> point, other = (Law.exact(n, [Fraction(1)]) for n in (0, 3))
    >>> round(laplace_loss(point, other, 3.0), 9)
    1.0
    """
    low, high = min(mu.start, nu.start), max(mu.end, nu.end)
    (first, error), (second, other) = (smoothed([law], low, high, scale) for law in (mu, nu))
    if not (error < math.inf and other < math.inf):
        return math.inf
    return or_infinite(float(np.max(np.abs(first - second))) + error + other)


def smoothed(laws: Sequence[Law | None], low: int, high: int, scale: float) -> tuple[NDArray[np.float64], float]:
    """Return log Σ_n μ(n) e^{−|w−n|/b} for w from low to high, for each of some laws, and a bound of its error.

    A law that is None has −∞; the error is infinite where wide numbers do not reach.
    """
    # what is computed for a ratio e^{−1/b} that is rounded holds for a scale next to b: take one below it
    b = scale * (1 - 8 * UNIT * (1 + 1 / scale + scale))
    size = high - low + 1
    logs = np.full((len(laws), size), -np.inf)
    if not 0 < b < math.inf or size / b > _FARTHEST:
        return logs, math.inf
    ratio, error = Wide.exp(-1 / b), 0.0
    for i, law in enumerate(laws):
        if law is not None:
            found = law.masses.smoothed(ratio, law.start - low, size)
            logs[i] = found.log()
            error = max(error, or_infinite(law.log_error + log_rounding(found, 4 * size)))
    return logs, error
