r"""Laws under every initial law at once: mixtures whose weights an adversary may choose.

Let A_x be the probability of a secret s given the first state x, and μ_x the law of the statistic given both; B_x, ν_x
the same for another secret s'. Under an initial law q the law given s is Σ q_x A_x μ_x / Σ q_x A_x. For a functional u
of the first law and v of the second (a cumulative probability, the density of a noisy output) the ratio to be bounded
is

.. math:: \frac{\sum q_x A_x u_x \cdot \sum q_x B_x}{\sum q_x A_x \cdot \sum q_x B_x v_x}.

**Two first states suffice.** With Σ q A = 1 (scaling q does not matter) and Σ q B fixed, it is a ratio of two linear
forms on {q ≥ 0: two equations}, largest at a vertex, which has at most two positive entries.

**On two states in closed form.** With weights 1 and t it is (n₀ + n₁t + n₂t²)/(d₀ + d₁t + d₂t²), all coefficients
non-negative, and at most λ for all t > 0 exactly if λd₀ ≥ n₀, λd₂ ≥ n₂, and n₁ ≤ λd₁ or
(n₁ − λd₁)² ≤ 4(λd₀ − n₀)(λd₂ − n₂). The least such λ is a root of a quadratic; a λ a little above it is put into these
inequalities again, with rounding against it, so nothing rests on the root.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.laws.laplace_loss import smoothed
from pufferfish._core.laws.law import Law
from pufferfish._core.laws.transport import Shift, shift
from pufferfish._core.numbers.rounding import UNIT, or_infinite

__all__ = ["LawFamily", "mixture_loss", "mixture_shift"]

Logs = NDArray[np.float64]

_INFLATE = (1e-11, 1e-9, 1e-7, 1e-5)
_ROUND = 64 * UNIT
_FARTHEST = 690.0
"""Logarithm of the largest ratio that is told from an infinite one."""


@dataclass(frozen=True, slots=True)
class LawFamily:
    """Laws of a statistic given a secret, one for each first state; None where that state rules the secret out."""

    laws: tuple[Law | None, ...]

    @property
    def size(self) -> int:
        """Numbers kept."""
        return sum(law.size for law in self.laws if law is not None)


def mixture_loss(mu: LawFamily, nu: LawFamily, scale: float) -> float:
    """Return the largest loss of Laplace noise for two secrets under any initial law, in nats, rounded up."""
    low, high = _range(mu, nu)
    (u, first), (v, second) = (smoothed(family.laws, low, high, scale) for family in (mu, nu))
    if not (first < math.inf and second < math.inf):
        return math.inf
    a, b = _weights(mu), _weights(nu)
    error = first + second + _weight_error(mu, nu)
    there = _worst_ratio(a + u, b, a, b + v)
    back = _worst_ratio(b + v, a, b, a + u)
    return or_infinite(max(0.0, *(or_infinite(float(np.max(ratios))) for ratios in (there, back))) + error)


def mixture_shift(mu: LawFamily, nu: LawFamily) -> Shift:
    """Bound the ∞-Wasserstein distance of the laws given two secrets under any initial law.

    Where cumulative masses are equal under some initial law, rounding cannot tell, and the next whole number is taken.
    """
    pairs = [(m, n) for m in mu.laws for n in nu.laws if m is not None and n is not None]
    single = [(m, n) for m, n in zip(mu.laws, nu.laws, strict=True) if m is not None and n is not None]
    # any two first states at once are no less than any mixture; one first state is a mixture
    high = max((shift(m, n).certain for m, n in pairs), default=0)
    low = max((shift(m, n).near for m, n in single), default=0) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if _within(mu, nu, middle) and _within(nu, mu, middle):
            high = middle
        else:
            low = middle
    return Shift(high, high, 0.0)


def _within(mu: LawFamily, nu: LawFamily, reach: int) -> bool:
    """Whether F_μ(n) ≤ F_ν(n + reach) for certain, at all n and under all initial laws."""
    low, high = _range(mu, nu)
    a, b = _weights(mu), _weights(nu)
    error = _weight_error(mu, nu) + sum(law.cumulative_error for family in (mu, nu) for law in family.laws if law)
    numbers = np.arange(low - 1, high + 1)
    below, there = (_on(family, _below, places) for family, places in ((mu, numbers), (nu, numbers + reach)))
    above, beyond = (_on(family, _above, places) for family, places in ((mu, numbers), (nu, numbers + reach)))
    by_below = _worst_ratio(a + below, b, a, b + there) <= -error
    by_above = _worst_ratio(b + beyond, a, b, a + above) <= -error
    return bool(np.all(by_below | by_above))


def _below(law: Law, numbers: NDArray[np.int64]) -> Logs:
    """Return log P(F ≤ n)."""
    found = law.log_below()[np.clip(numbers - law.start, 0, law.size - 1)]
    return np.where(numbers < law.start, -np.inf, np.where(numbers >= law.end, 0.0, found))


def _above(law: Law, numbers: NDArray[np.int64]) -> Logs:
    """Return log P(F > n)."""
    found = law.log_above()[np.clip(numbers + 1 - law.start, 0, law.size - 1)]
    return np.where(numbers >= law.end, -np.inf, np.where(numbers < law.start, 0.0, found))


def _on(family: LawFamily, of: Callable[[Law, NDArray[np.int64]], Logs], numbers: NDArray[np.int64]) -> Logs:
    return np.array([np.full(len(numbers), -np.inf) if law is None else of(law, numbers) for law in family.laws])


def _range(mu: LawFamily, nu: LawFamily) -> tuple[int, int]:
    laws = [law for family in (mu, nu) for law in family.laws if law is not None]
    return min(law.start for law in laws), max(law.end for law in laws)


def _weights(family: LawFamily) -> Logs:
    """Return log P(secret | first state), −∞ where it is ruled out; shape (k, 1)."""
    return np.array([[-np.inf if law is None else law.log_weight] for law in family.laws])


def _weight_error(mu: LawFamily, nu: LawFamily) -> float:
    """Bound the error that the weights bring into a ratio."""
    laws = [law for family in (mu, nu) for law in family.laws if law is not None]
    return 4 * max(law.log_error + 16 * UNIT * (1 + abs(law.log_weight)) for law in laws)


def _worst_ratio(alpha: Logs, beta: Logs, gamma: Logs, delta: Logs) -> Logs:
    """Bound log (α·q)(β·q)/((γ·q)(δ·q)) over all q ≥ 0 from above; all given as logs, shape (k, n) or (k, 1).

    0/0 is skipped, as secrets of probability 0 are; a positive number over 0 is ∞.
    """
    n = max(a.shape[1] for a in (alpha, beta, gamma, delta))
    alpha, beta, gamma, delta = (np.broadcast_to(a, (len(a), n)) for a in (alpha, beta, gamma, delta))
    worst = np.full(n, -np.inf)
    for x in range(len(alpha)):
        worst = np.maximum(worst, _ratio(alpha[x] + beta[x], gamma[x] + delta[x]))
    for x, y in combinations(range(len(alpha)), 2):
        n1 = np.logaddexp(alpha[x] + beta[y], alpha[y] + beta[x])
        d1 = np.logaddexp(gamma[x] + delta[y], gamma[y] + delta[x])
        n0, n2 = alpha[x] + beta[x], alpha[y] + beta[y]
        d0, d2 = gamma[x] + delta[x], gamma[y] + delta[y]
        worst = np.maximum(worst, _quadratic(n0, n1, n2, d0, d1, d2))
    return worst


def _ratio(n: Logs, d: Logs) -> Logs:
    with np.errstate(invalid="ignore"):
        return np.where(n == -np.inf, -np.inf, n - d)


def _quadratic(n0: Logs, n1: Logs, n2: Logs, d0: Logs, d1: Logs, d2: Logs) -> Logs:
    """Bound log sup over t > 0 of (n₀ + n₁t + n₂t²)/(d₀ + d₁t + d₂t²), coefficients given as logs."""
    ends = np.maximum(_ratio(n0, d0), _ratio(n2, d2))
    # without d₀ or d₂ it is a ratio of two sums of two terms: at most the larger of the ratios of terms
    lopsided = (d0 == -np.inf) | (d2 == -np.inf)
    # else t is measured so that d₀ and d₂ are alike, which makes d₁ the largest, and all are divided by that
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        turn = np.where(lopsided, 0.0, (d2 - d0) / 2)
        top = np.where(lopsided, 0.0, d1 - turn)
        m0, m1, m2 = np.exp(n0 - top), np.exp(n1 - turn - top), np.exp(n2 - 2 * turn - top)
        e0, e1, e2 = np.exp(d0 - top), np.exp(d1 - turn - top), np.exp(d2 - 2 * turn - top)
        square, linear, constant = e1**2 - 4 * e0 * e2, 2 * (m1 * e1 - 2 * (e0 * m2 + m0 * e2)), m1**2 - 4 * m0 * m2
        root = np.sqrt(np.maximum(linear**2 - 4 * square * np.maximum(constant, 0.0), 0.0))
        outer = np.exp(np.minimum(ends, _FARTHEST))
        inside = (linear > 0) & (m1 > outer * e1)  # else the ratio is largest at t → 0 or t → ∞
        middle = np.where(inside, 2 * np.maximum(constant, 0.0) / np.where(inside, linear + root, 1.0), 0.0)
        least = np.maximum(outer, middle)
        found = np.full(len(n0), np.inf)
        for inflate in reversed(_INFLATE):
            λ = least * (1 + inflate)
            first, last = (λ * e * (1 - _ROUND) - m * (1 + _ROUND) for e, m in ((e0, m0), (e2, m2)))
            over = m1 * (1 + _ROUND) - λ * e1 * (1 - _ROUND)
            holds = (over <= 0) | (over * over * (1 + _ROUND) <= 4 * first * last * (1 - _ROUND))
            found = np.where(holds & (first >= 0) & (last >= 0), np.log(λ), found)
    nothing = (n0 == -np.inf) & (n1 == -np.inf) & (n2 == -np.inf)
    found = np.where(ends > _FARTHEST, np.inf, np.maximum(found, ends))
    return np.where(nothing, -np.inf, np.where(lopsided, np.maximum(ends, _ratio(n1, d1)), found))
