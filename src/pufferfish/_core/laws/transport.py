r"""∞-Wasserstein distance on the line, and how much mass can be carried within a reach.

:math:`W_\infty(\mu, \nu)` is the least w with F_μ(n) ≤ F_ν(n + w) and F_ν(n) ≤ F_μ(n + w) for all n: the tails decide
it as much as the bulk, so cumulative masses are compared by their logarithms, counted from the nearer end, with the
bound of their error.

Where two cumulative masses are equal, rounding cannot tell which is the larger. Then masses are numbers known up to a
factor 1 + s: laws within that factor of μ, ν can be coupled within w if μ/(1+s) can be carried into ν·(1+s) within w,
and ν/(1+s) into μ·(1+s), as a flow that saturates the one side and one that saturates the other can be merged into one
that saturates both (Mendelsohn and Dulmage). Laplace noise of scale b then leaks at most w/b + 2 log(1 + s) (Theorem
2.4), and :class:`Shift` says both numbers. Matching each atom, in increasing order, to the smallest unmatched mass
within reach carries as much as can be carried. Proofs: ``docs/proofs/laws.md``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from pufferfish._core import Whole
from pufferfish._core.laws.law import Law, VectorLaw
from pufferfish._core.numbers.rounding import UNIT, least_whole, up


@dataclass(frozen=True, slots=True)
class Shift:
    """How far the mass of one law has to move to become another.

    ``certain`` is no less than W∞ of the laws, whatever their error; within ``near`` they are coupled when their
    masses may change by a factor e^{±slack/2}. The nats ``slack`` are 0 where ``near`` is ``certain``.
    """

    certain: int
    near: int
    slack: float

    def scale(self, epsilon: float) -> float:
        """Return a scale of Laplace noise that leaks at most epsilon."""
        if self.slack < epsilon and self.near < self.certain:
            return min(self.certain / epsilon, self.near / (epsilon - self.slack))
        return self.certain / epsilon


def shift(mu: Law, nu: Law) -> Shift:
    """Bound the ∞-Wasserstein distance of two laws on the whole numbers, exactly where rounding can tell."""
    at_least, at_most = (max(pair) for pair in zip(_one_way(mu, nu), _one_way(nu, mu), strict=True))
    if at_least == at_most:
        return Shift(at_most, at_most, 0.0)
    s, slack = tie(mu, nu)
    x, p, y, q = atoms(mu, nu)
    places, others = x[:, 0].tolist(), y[:, 0].tolist()
    near = least_whole(lambda reach: _fits(places, p, others, q, reach, s), at_least - 1, at_most)
    return Shift(at_most, near, slack if near < at_most else 0.0)


def tie(mu: Law | VectorLaw, nu: Law | VectorLaw) -> tuple[Fraction, float]:
    """Return s such that the masses of two laws are known up to a factor 1 + s, and the nats that this costs."""
    # the smallest power of two, which is exact to multiply with
    s = Fraction(2) ** math.ceil(math.log2(math.expm1(max(mu.log_error, nu.log_error, 4 * UNIT))))
    return s, up(mu.log_error + nu.log_error + 2 * math.log1p(float(s)) + 4 * UNIT)


def atoms(mu: Law | VectorLaw, nu: Law | VectorLaw) -> tuple[Whole, list[int], Whole, list[int]]:
    """Return points and whole masses of two laws, over one denominator."""
    (p, p_bits), (q, q_bits) = mu.masses.whole(), nu.masses.whole()
    common = max(p_bits, q_bits)
    return mu.points, [v << (common - p_bits) for v in p], nu.points, [v << (common - q_bits) for v in q]


def _one_way(mu: Law, nu: Law) -> tuple[int, int]:
    """Return w that is needed, and w that is enough, for F_μ(n) ≤ F_ν(n + w) at all n."""
    error = mu.cumulative_error + nu.cumulative_error
    ends = np.arange(mu.size)  # n = start + ends: F_μ(n), and the mass above n
    below, there = (np.append(law.log_below[:-1], 0.0) for law in (mu, nu))  # the last: all of the mass
    above, beyond = (np.append(law.log_above[1:], -np.inf) for law in (mu, nu))
    falling = -beyond  # increasing, as F_ν is
    needed = np.maximum(np.searchsorted(there, below - error), np.searchsorted(falling, -above - error))
    enough = np.minimum(np.searchsorted(there, below + error), np.searchsorted(falling, -above + error))
    last = nu.size - 1
    needed, enough = np.minimum(needed, last), np.minimum(enough, last)
    offset = nu.start - mu.start
    return max(0, int(np.max(needed - ends)) + offset), max(0, int(np.max(enough - ends)) + offset)


def _fits(x: Sequence[int], p: Sequence[int], y: Sequence[int], q: Sequence[int], reach: int, s: Fraction) -> bool:
    """Whether masses known up to a factor 1 + s can be coupled within reach."""
    more, unit = (1 + s).numerator ** 2, (1 + s).denominator ** 2
    small_p, large_q = [v * unit for v in p], [v * more for v in q]
    if carried(x, small_p, y, large_q, reach) < sum(small_p):
        return False
    small_q, large_p = [v * unit for v in q], [v * more for v in p]
    return carried(y, small_q, x, large_p, reach) == sum(small_q)


def carried(x: Sequence[int], p: Sequence[int], y: Sequence[int], q: Sequence[int], reach: int) -> int:
    """Return how much of the masses p at x can be carried to places y with room q within reach, x and y increasing."""
    room = list(q)
    total, j = 0, 0
    for place, mass in zip(x, p, strict=True):
        left = mass
        while left and j < len(room):
            if room[j] == 0 or y[j] < place - reach:
                j += 1
            elif y[j] > place + reach:
                break
            else:
                moved = min(left, room[j])
                left -= moved
                room[j] -= moved
                total += moved
    return total


def distance(
    x: Sequence[Fraction], p: Sequence[Fraction], y: Sequence[Fraction], q: Sequence[Fraction], s: Fraction
) -> Fraction:
    """Return W∞ of laws of sum 1 on the line, whose places increase, in exact arithmetic.

    Masses are known up to a factor 1 + s; 0 for masses that are exact.
    """
    denominator, unit = (lcm(*(v.denominator for v in values)) for values in ((*p, *q), (*x, *y)))
    places, others = ([int(v * unit) for v in values] for values in (x, y))
    here, there = ([int(m * denominator) for m in masses] for masses in (p, q))
    farthest = max(places[-1] - others[0], others[-1] - places[0])
    return Fraction(least_whole(lambda reach: _fits(places, here, others, there, reach, s), -1, farthest), unit)
