r"""∞-Wasserstein distance on the line and of vectors, and how much mass can be carried within a reach.

:math:`W_\infty(\mu, \nu)` is the least w with F_μ(n) ≤ F_ν(n + w) and F_ν(n) ≤ F_μ(n + w) for all n: the tails decide
it as much as the bulk, so cumulative masses are compared by their logarithms, counted from the nearer end.

Where two cumulative masses are equal, rounding cannot tell which is the larger. Then masses are numbers known up to a
factor 1 + s: laws within that factor of μ, ν can be coupled within w if μ/(1+s) can be carried into ν·(1+s) within w,
and ν/(1+s) into μ·(1+s). Laplace noise of scale b then leaks at most w/b + 2 log(1 + s), and :class:`Shift` says both
numbers.

Of integer vectors, in the L1 metric, :func:`least_reach` bounds W by projections on sign vectors v: from below, as
every half-line needs :math:`p\{v \cdot x \le t\} \le q\{v \cdot y \le t + W\}`; from above, as filling the atoms in the
order of v·x is a coupling. In between, distances are halved, and a flow decides whether all mass fits (Hall, Strassen).
Masses are exact integers of any size. Proofs: ``docs/proofs/laws.md``.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise, product
from math import lcm

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._core import Indices, Mask, Whole
from pufferfish._core.laws.law import Law, VectorLaw
from pufferfish._core.numbers.rounding import UNIT, least_whole, up
from pufferfish.errors import ModelError


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
    """Whether masses known up to a factor 1 + s can be coupled within reach: flows that fill either side merge."""
    more, unit = (1 + s).numerator ** 2, (1 + s).denominator ** 2
    small_p, large_q = [v * unit for v in p], [v * more for v in q]
    if carried(x, small_p, y, large_q, reach) < sum(small_p):
        return False
    small_q, large_p = [v * unit for v in q], [v * more for v in p]
    return carried(y, small_q, x, large_p, reach) == sum(small_q)


def carried(x: Sequence[int], p: Sequence[int], y: Sequence[int], q: Sequence[int], reach: int) -> int:
    """Return how much of p at x can be carried to room q at y within reach: each mass to the lowest, in turn."""
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
    """Return W∞ of laws on the line whose places increase, exactly; masses are known up to a factor 1 + s."""
    denominator, unit = (lcm(*(v.denominator for v in values)) for values in ((*p, *q), (*x, *y)))
    places, others = ([int(v * unit) for v in values] for values in (x, y))
    here, there = ([int(m * denominator) for m in masses] for masses in (p, q))
    farthest = max(places[-1] - others[0], others[-1] - places[0])
    return Fraction(least_whole(lambda reach: _fits(places, here, others, there, reach, s), -1, farthest), unit)


# -- Vectors ----------------------------------------------------------------------------------------------------------

_Law = tuple[Whole, list[int]]

_Flow = list[dict[int, int]]  # what each atom of q takes from which of p
_PAIRS = 4_000_000  # most pairs of atoms a matrix of distances is built for (32 megabytes)
_ALL_SIGNS = 4  # up to this dimension all 3^m - 1 sign vectors are tried, above it the coordinates and two diagonals
_FAR = 2**62  # beyond every distance: atoms are closer than this in L1


def least_reach(x: ArrayLike, p: Sequence[int], y: ArrayLike, q: Sequence[int], *, slack: Fraction | int = 0) -> int:
    r"""Return the least W such that p and q have a coupling that moves nothing farther than W in L1: :math:`W_\infty`.

    Atoms stand in the rows of x and y, where one may occur several times; masses are over one denominator. With
    ``slack`` s > 0 every mass is known up to a factor in [1/(1+s), 1+s], which never adds to W; with s = 0 each law is
    divided by its sum. A ModelError if the sums differ by more than the slack allows, distances reach 2**62, or a flow
    is needed between atoms that are not on one line and have more than 4e6 pairs.

    Examples
    --------
    A tail of mass 1e-300 counts, unless a slack says that it may be rounding:

    >>> one = 10**300
    >>> x = [[0, 0], [1, 0], [0, 5]]
    >>> least_reach(x, [one, one, one], x, [one - 1, one + 1, one])
    1
    >>> least_reach(x, [one, one, one], x, [one - 1, one + 1, one], slack=Fraction(1, 2**53))
    0
    """
    (x_, p_), (y_, q_) = _two_laws(x, p, y, q)
    exact = Fraction(slack)
    if exact == 0:
        p_, q_ = _normalised(p_, q_)
    low, high = exact.denominator**2, (exact.numerator + exact.denominator) ** 2
    if sum(p_) * low > sum(q_) * high or sum(q_) * low > sum(p_) * high:
        raise ModelError(
            "p and q have sums farther apart than the factor (1 + slack)**2: give both over one denominator, and a "
            "slack that covers the rounding of their masses, or slack=0 to divide each by its sum"
        )
    forth = _least(x_, [a * low for a in p_], y_, [b * high for b in q_], 0)
    if exact == 0:
        return forth  # sums are equal, so that what exhausts p fills q
    return _least(y_, [b * low for b in q_], x_, [a * high for a in p_], forth)


def unmatched(x: ArrayLike, p: Sequence[int], y: ArrayLike, q: Sequence[int], reach: int) -> Fraction:
    """Return the share of the mass that every coupling of p and q moves farther than ``reach``; 0 from W∞ on.

    Each law is divided by its sum. Parameters and errors are those of :func:`least_reach`.

    Examples
    --------
    >>> unmatched([[0, 0], [5, 5]], [3, 1], [[0, 1], [0, 9]], [3, 1], reach=1)
    Fraction(1, 4)
    """
    (x_, p_), (y_, q_) = _two_laws(x, p, y, q)
    if reach < 0:
        return Fraction(1)
    p_, q_ = _normalised(p_, q_)
    return 1 - Fraction(_within(x_, p_, y_, q_)[0](reach), sum(p_))


def _two_laws(x: ArrayLike, p: Sequence[int], y: ArrayLike, q: Sequence[int]) -> tuple[_Law, _Law]:
    """Return the atoms that have mass, counted from their lowest corner so that no distance overflows, and masses."""
    x, y = np.asarray(x, dtype=np.int64), np.asarray(y, dtype=np.int64)
    both = np.vstack([x, y])
    lowest, highest = both.min(axis=0), both.max(axis=0)
    span = sum(int(high) - int(low) for high, low in zip(highest, lowest, strict=True))
    if span >= _FAR:
        raise ModelError(f"the atoms are up to {span} apart, expected distances below 2**62")
    with_mass, others = ([i for i, mass in enumerate(masses) if mass] for masses in (p, q))
    return ((x - lowest)[with_mass], [p[i] for i in with_mass]), ((y - lowest)[others], [q[i] for i in others])


def _normalised(p: list[int], q: list[int]) -> tuple[list[int], list[int]]:
    """Both laws over the product of their sums, where these differ."""
    total_p, total_q = sum(p), sum(q)
    if total_p == total_q:
        return p, q
    return [a * total_q for a in p], [b * total_p for b in q]


def _least(x: Whole, p: list[int], y: Whole, q: list[int], at_least: int) -> int:
    """Return the least reach, no less than a given one, within which all of p can be moved into q."""
    bounds = [_sweep(x, p, y, q, signs) for signs in _directions(x.shape[1])]
    low, high = max(at_least, *(low for low, _ in bounds)), min(high for _, high in bounds)
    if low >= high:
        return low
    moved, reaches = _within(x, p, y, q, whole=True)
    first, last = max(0, bisect_right(reaches, low) - 1), bisect_left(reaches, high)
    need = sum(p)
    if moved(reaches[first]) < need:
        first = bisect_left(reaches, need, lo=first + 1, hi=last, key=moved)
    return max(low, reaches[first])


def _directions(m: int) -> list[Whole]:
    """Return sign vectors to project on, each with its opposite: all of them in few dimensions."""
    if m <= _ALL_SIGNS:
        return [np.array(signs) for signs in product((-1, 0, 1), repeat=m) if any(signs)]
    half = [*np.eye(m, dtype=np.int64), np.ones(m, dtype=np.int64), 1 - 2 * (np.arange(m) % 2)]
    return [*half, *(-signs for signs in half)]


def _sweep(x: Whole, p: list[int], y: Whole, q: list[int], signs: Whole) -> tuple[int, int]:
    """Return bounds: from below by the half-lines of a projection, from above by filling in its order."""
    on_x, on_y = x @ signs, y @ signs
    order_x, order_y = np.argsort(on_x, kind="stable"), np.argsort(on_y, kind="stable")
    to_x, to_y = _running(p, order_x), _running(q, order_y)
    ends: Indices = np.searchsorted(to_y, to_x)
    low = int(np.max(on_y[order_y[ends]] - on_x[order_x]))
    breaks = np.concatenate([to_x, to_y[: int(ends[-1])]])
    i, j = order_x[np.searchsorted(to_x, breaks)], order_y[np.searchsorted(to_y, breaks)]
    return low, int(np.max(np.abs(x[i] - y[j]).sum(axis=1)))


def _running(masses: list[int], order: Indices) -> NDArray[np.object_]:
    """Return the sums of masses in a given order, exactly."""
    return np.array(list(accumulate(masses[int(i)] for i in order)), dtype=object)


def _within(
    x: Whole, p: list[int], y: Whole, q: list[int], whole: bool = False
) -> tuple[Callable[[int], int], Sequence[int]]:
    """Return how much of p can be moved into q within a reach, as a function of it, and the reaches where it may grow.

    With ``whole``, the function may say less where it is not all of p, and the reaches too short for that are left out.
    """
    signs = _staircase(np.vstack([x, y]))
    if signs is not None:
        on_x, p_ = _sorted(x @ signs, p)
        on_y, q_ = _sorted(y @ signs, q)
        return lambda reach: carried(on_x, p_, on_y, q_, reach), range(
            max(on_x[-1], on_y[-1]) - min(on_x[0], on_y[0]) + 1
        )
    if len(x) * len(y) > _PAIRS:
        raise ModelError(
            f"{len(x)} and {len(y)} atoms have {len(x) * len(y)} pairs, expected at most {_PAIRS}: "
            "bin the query more coarsely, or drop to fewer coordinates"
        )
    distances = np.zeros((len(x), len(y)), dtype=np.int64)
    for c in range(x.shape[1]):
        distances += np.abs(x[:, c, None] - y[None, :, c])
    flows: dict[int, _Flow] = {-1: [{} for _ in q]}

    def moved(reach: int) -> int:
        start = flows[max(shorter for shorter in flows if shorter <= reach)]
        flows[reach] = _greatest_flow(distances <= min(reach, _FAR), p, q, start, whole)
        return sum(sum(taken.values()) for taken in flows[reach])

    reaches: Whole = np.unique(distances)
    return moved, reaches[reaches >= distances.min(axis=1).max()].tolist()


def _sorted(places: Whole, masses: list[int]) -> tuple[list[int], list[int]]:
    order = np.argsort(places).tolist()
    return places[order].tolist(), [masses[i] for i in order]


def _staircase(points: Whole) -> Whole | None:
    """Signs v with ‖a − b‖₁ = |v·(a − b)| for all points, if there are any; the points are distances from one corner.

    Along such a line, the point farthest from any other is an end, and the one farthest from that the other end.
    """
    end = points[np.argmax(np.abs(points - points[0]).sum(axis=1))]
    far_end = points[np.argmax(np.abs(points - end).sum(axis=1))]
    signs = np.sign(far_end - end)
    steps: Whole = np.diff(points[np.argsort(points @ signs)], axis=0)
    along = bool(np.all(steps * signs >= 0)) and not np.any(steps[:, signs == 0])
    return signs if along else None


# -- Greatest flows between the atoms of two laws --------------------------------------------------------------------


def _greatest_flow(close: Mask, p: list[int], q: list[int], start: _Flow, whole: bool) -> _Flow:
    """Return a greatest flow from p to q along the pairs that are close, from a flow that has these pairs already.

    Where a search finds no room, all that it met is a cut, which no other need enter; with ``whole`` the flow ends
    there.
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
                for j in np.flatnonzero(close[i] & unmet).tolist():
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
