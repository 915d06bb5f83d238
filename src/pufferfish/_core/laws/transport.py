r"""∞-Wasserstein distance on the line, and how much mass stays behind at a given reach.

:math:`W_\infty(\mu, \nu)` is the least w for which some coupling of μ and ν moves no mass farther than w. On the line
it is the least w with F_μ(n) ≤ F_ν(n + w) and F_ν(n) ≤ F_μ(n + w) for all n: the tails decide it as much as the bulk,
so cumulative masses are compared by their logarithms, counted from the nearer end, with the bound of their error.

Where two cumulative masses are equal, rounding cannot tell which is the larger. Then masses are compared as numbers
known up to a factor 1 + s: if laws μ', ν' within that factor of μ, ν can be coupled within w, Laplace noise of scale b
leaks at most w/b + 2 log(1 + s) (Theorem 2.4 with D∞ ≤ log(1 + s) on both sides), and :class:`Shift` says both numbers.

Such μ', ν' exist if μ/(1+s) can be carried into ν·(1+s) within w, and ν/(1+s) into μ·(1+s): a flow that saturates the
one side and a flow that saturates the other can be merged into one that saturates both (Mendelsohn and Dulmage). On the
line matching each atom, in increasing order, to the smallest unmatched mass within reach carries as much as can be
carried.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.laws.law import Law
from pufferfish._core.numbers.rounding import UNIT, float_up, up

__all__ = ["Flow", "Shift", "carried", "distance", "greatest_flow", "indices", "shift", "unmatched"]

# -- Greatest flows between the atoms of two laws --------------------------------------------------------------------

Flow = list[dict[int, int]]
"""What each atom of q takes from which of p."""


def indices(values: NDArray[np.bool_]) -> list[int]:
    """Return the places where values are true."""
    return np.flatnonzero(values).tolist()


def greatest_flow(close: NDArray[np.bool_], p: list[int], q: list[int], start: Flow, whole: bool) -> Flow:
    """Return a greatest flow from p to q along the pairs that are close, from a flow that has these pairs already.

    Breadth first from every atom of p, forth along all close pairs and back along the flow, until there is room. Where
    there is none, all that the search met is full and stays so: it is a cut, and no other search need enter it. With
    ``whole`` the flow ends there. Atoms that few others reach come first.
    """
    taken = [dict(masses) for masses in start]
    room = [mass - sum(masses.values()) for mass, masses in zip(q, taken, strict=True)]
    supply = list(p)
    for i, mass in (pair for masses in taken for pair in masses.items()):
        supply[i] -= mass
    contested: list[int] = close.sum(axis=0).tolist()
    outside = np.ones(len(q), dtype=bool)
    for source in map(int, np.argsort(close.sum(axis=1), kind="stable")):
        while supply[source]:
            came: dict[int, int] = {}
            gives: dict[int, int] = {}
            ends: list[int] = []
            unmet = outside.copy()
            for i in (queue := [source]):
                for j in indices(close[i] & unmet):
                    came[j] = i
                    fresh = [k for k in taken[j] if k != source and k not in gives]
                    gives |= dict.fromkeys(fresh, j)
                    queue += fresh
                    if room[j]:
                        ends.append(j)
                if ends:
                    break
                unmet &= ~close[i]
            if not ends:
                if whole:
                    return taken
                outside = unmet
                break
            for end in sorted(ends, key=lambda j: contested[j]):
                way: list[tuple[int, int]] = [(came[end], end)]
                while way[-1][0] != source:
                    j = gives[way[-1][0]]
                    way.append((came[j], j))
                back = [(i, j) for (i, _), (_, j) in pairwise(way)]  # what i gives to j, it gives elsewhere instead
                mass = min([supply[source], room[end], *(taken[j].get(i, 0) for i, j in back)])
                supply[source] -= mass
                room[end] -= mass
                for change, pairs in ((mass, way), (-mass, back)):
                    for i, j in pairs:
                        taken[j][i] = taken[j].get(i, 0) + change
                        if not taken[j][i]:
                            del taken[j][i]
    return taken


@dataclass(frozen=True, slots=True)
class Shift:
    """How far the mass of one law has to move to become another.

    Parameters
    ----------
    certain : int
        No less than W∞ of the laws, whatever their error.
    near : int
        Reach within which they are coupled when their masses may change by a factor e^{±slack/2}.
    slack : float
        Nats that this costs; 0 where ``near`` is ``certain``.
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
    # the smallest power of two that covers what is not known of the masses: exact to multiply with
    s = Fraction(2) ** math.ceil(math.log2(math.expm1(max(mu.log_error, nu.log_error, 4 * UNIT))))
    (p, q), (x, y) = _whole(mu, nu), (_points(mu), _points(nu))
    low, high = at_least - 1, at_most  # not within low; within high
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(x, p, y, q, middle, s):
            high = middle
        else:
            low = middle
    slack = up(mu.log_error + nu.log_error + 2 * math.log1p(float(s)) + 4 * UNIT)
    return Shift(at_most, high, slack if high < at_most else 0.0)


def _one_way(mu: Law, nu: Law) -> tuple[int, int]:
    """Return w that is needed, and w that is enough, for F_μ(n) ≤ F_ν(n + w) at all n."""
    error = mu.cumulative_error + nu.cumulative_error
    ends = np.arange(mu.size)  # n = start + ends: F_μ(n), and the mass above n
    below, there = (np.append(law.log_below()[:-1], 0.0) for law in (mu, nu))  # the last: all of the mass
    above, beyond = (np.append(law.log_above()[1:], -np.inf) for law in (mu, nu))
    falling = -beyond  # increasing, as F_ν is
    needed = np.maximum(np.searchsorted(there, below - error), np.searchsorted(falling, -above - error))
    enough = np.minimum(np.searchsorted(there, below + error), np.searchsorted(falling, -above + error))
    last = nu.size - 1
    needed, enough = np.minimum(needed, last), np.minimum(enough, last)
    offset = nu.start - mu.start
    return max(0, int(np.max(needed - ends)) + offset), max(0, int(np.max(enough - ends)) + offset)


def _points(law: Law) -> list[int]:
    return [law.start + int(n) for n in np.flatnonzero(law.masses.positive)]


def _whole(mu: Law, nu: Law) -> tuple[list[int], list[int]]:
    """Return the positive masses of two laws as whole numbers over one denominator."""
    (p, p_bits), (q, q_bits) = mu.masses.whole(), nu.masses.whole()
    common = max(p_bits, q_bits)
    return [v << (common - p_bits) for v in p if v], [v << (common - q_bits) for v in q if v]


def _fits(x: Sequence[Any], p: Sequence[int], y: Sequence[Any], q: Sequence[int], reach: Any, s: Fraction) -> bool:
    """Whether masses known up to a factor 1 + s can be coupled within reach."""
    more, unit = (1 + s).numerator ** 2, (1 + s).denominator ** 2
    small_p, large_q = [v * unit for v in p], [v * more for v in q]
    if carried(x, small_p, y, large_q, reach) < sum(small_p):
        return False
    small_q, large_p = [v * unit for v in q], [v * more for v in p]
    return carried(y, small_q, x, large_p, reach) == sum(small_q)


def carried(x: Sequence[Any], p: Sequence[int], y: Sequence[Any], q: Sequence[int], reach: Any) -> int:
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


def unmatched(mu: Law, nu: Law, reach: int) -> float:
    """Return the share of the mass that no coupling of two laws keeps within reach, rounded up with their error."""
    (p, q), (x, y) = _whole(mu, nu), (_points(mu), _points(nu))
    total_p, total_q = sum(p), sum(q)
    here, there = [v * total_q for v in p], [v * total_p for v in q]
    behind = Fraction(total_p * total_q - carried(x, here, y, there, reach), total_p * total_q)
    # masses that are wrong by a factor e^η move at most e^η − 1 of the total on either side
    return min(1.0, float_up(behind) + 2 * math.expm1(mu.log_error + nu.log_error))


def distance(
    x: Sequence[Fraction], p: Sequence[Fraction], y: Sequence[Fraction], q: Sequence[Fraction], s: Fraction
) -> Fraction:
    """Return W∞ of two laws on the line in exact arithmetic, masses being known up to a factor 1 + s.

    Parameters
    ----------
    x, y : sequences of Fraction
        Places, increasing.
    p, q : sequences of Fraction
        Their masses, positive, each of sum 1.
    s : Fraction
        0 for masses that are exact.
    """
    denominator = lcm(*(m.denominator for m in (*p, *q)))
    here, there = [int(m * denominator) for m in p], [int(m * denominator) for m in q]
    most = _monotone(x, here, y, there)
    if not s:
        return most
    candidates = sorted({abs(a - b) for a in x for b in y if abs(a - b) < most})
    low, high = -1, len(candidates)
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(x, here, y, there, candidates[middle], s):
            high = middle
        else:
            low = middle
    return candidates[high] if high < len(candidates) else most


def _monotone(x: Sequence[Fraction], p: list[int], y: Sequence[Fraction], q: list[int]) -> Fraction:
    """Return how far the monotone coupling, which is the best on the line, moves mass."""
    i = j = 0
    here, there, most = p[0], q[0], Fraction(0)
    while True:
        most = max(most, abs(x[i] - y[j]))
        moved = min(here, there)
        here, there = here - moved, there - moved
        if not here:
            i += 1
            if i == len(p):
                return most
            here = p[i]
        if not there:
            j += 1
            there = q[j]
