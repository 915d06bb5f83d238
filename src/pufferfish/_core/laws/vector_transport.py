r"""Transport between laws of integer vectors: :math:`W_\infty` in the L1 metric, and the mass no coupling keeps close.

W is at least :math:`W_\infty` of two laws exactly when the bipartite network with an arc between atoms that are at most
W apart carries a flow that exhausts the first (Hall, Strassen). The rest of the greatest flow, ``unmatched``, is the δ
of an (ε, δ) variant. Masses are exact integers of any size: a tail of mass 1e-300 decides as well as any other.

1. *From below.* For a sign vector v in :math:`\{-1, 0, 1\}^m` the projection :math:`v \cdot x` is 1-Lipschitz in L1, so
   every half-line needs :math:`p\{v \cdot x \le t\} \le q\{v \cdot y \le t + W\}`.
2. *From above.* Filling the atoms in the order of :math:`v \cdot x` is a coupling; its longest arc is a bound.
3. *In between*, by halving the distances that occur; the flow within a shorter one is what a longer one starts from.

Atoms along one line, or any staircase that is monotone in every coordinate, are isometric to numbers
(:func:`pufferfish._core.laws.transport.carried`), and have no limit of size.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish._core import Indices, Mask, Whole
from pufferfish._core.laws.transport import carried
from pufferfish.errors import ModelError

_Law = tuple[Whole, list[int]]

_Flow = list[dict[int, int]]  # what each atom of q takes from which of p
_PAIRS = 4_000_000  # most pairs of atoms a matrix of distances is built for (32 megabytes)
_ALL_SIGNS = 4  # up to this dimension all 3^m - 1 sign vectors are tried, above it the coordinates and two diagonals
_FAR = 2**62  # beyond every distance: atoms are closer than this in L1


def least_reach(x: ArrayLike, p: Sequence[int], y: ArrayLike, q: Sequence[int], *, slack: Fraction | int = 0) -> int:
    r"""Return the least W such that p and q have a coupling that moves nothing farther than W in L1: :math:`W_\infty`.

    Atoms stand in the rows of x and y, where one may occur several times; masses are over one denominator. With
    ``slack`` s > 0 every mass is known up to a factor in [1/(1+s), 1+s]; with s = 0 each law is divided by its sum.
    Why a slack never adds to W, and what it costs, is told in :mod:`pufferfish._core.laws.transport`.

    Raises
    ------
    ModelError
        If the sums differ by more than the slack allows, distances reach 2**62, or a flow is needed between atoms that
        are not on one line and have more than 4e6 pairs.

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


def _indices(values: Mask) -> list[int]:
    """Return the places where values are true."""
    return np.flatnonzero(values).tolist()


def _greatest_flow(close: Mask, p: list[int], q: list[int], start: _Flow, whole: bool) -> _Flow:
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
                for j in _indices(close[i] & unmet):
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
