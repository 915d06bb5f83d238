r"""Transport between laws of integer vectors: :math:`W_\infty` in the L1 metric, and the mass no coupling keeps close.

**What is computed.** For laws p on atoms :math:`x_i` and q on atoms :math:`y_j`,

.. math:: W_\infty(p, q) = \min_\gamma\, \max\{\|x_i - y_j\|_1 : \gamma_{ij} > 0\}

over the couplings γ of p and q: the scale of the Wasserstein mechanism (Song, Wang, Chaudhuri 2017, Section 3) for
a query that is a vector of integers, such as a histogram. W is at least :math:`W_\infty` exactly when the bipartite
network with an arc from i to j wherever :math:`\|x_i - y_j\|_1 \le W` carries a flow that exhausts p (Hall, Strassen).
The largest share that a coupling can keep within W is the greatest flow; the rest, ``unmatched``, is the δ of an
(ε, δ) variant.

**Masses are exact integers.** A tail of mass 1e-300 decides :math:`W_\infty` as well as any other, so no float takes
part in a decision: a flow is found in integers of any size, and where it does not exhaust p its least cut is a set S
of atoms with :math:`p(S) > q\{y : \mathrm{dist}(y, S) \le W\}`, exactly.

**How W is found.**

1. *From below.* Every atom of p needs an atom of q within W. For a sign vector v in :math:`\{-1, 0, 1\}^m` the
   projection :math:`v \cdot x` is 1-Lipschitz in L1, so every half-line needs
   :math:`p\{v \cdot x \le t\} \le q\{v \cdot y \le t + W\}`.
2. *From above.* Filling the atoms in the order of :math:`v \cdot x` is a coupling; its longest arc is a bound.
3. *In between*, a flow at a candidate distance. If it exhausts p, W is at most its longest arc. If not, its cut S
   rules out every distance up to the least W with :math:`p(S) \le q\{\mathrm{dist}(y, S) \le W\}`: the next candidate.
   Every other candidate halves the distances left, so there are at most about twice as many flows as a bisection needs,
   and most often one to five.

**Atoms along one line**, or along any staircase that is monotone in every coordinate, are isometric to numbers: there
:math:`\|a - b\|_1 = |v \cdot (a - b)|`, and the first atom within reach is always the right one to take. This needs no
network, and has no limit of size.

**The flow** starts from a greedy one. A breadth-first search over *all* arcs (numpy) then either shows that nothing
more fits, or names a few arcs for each atom it meets, which are handed to networkx with the flow so far; so the network
in memory is a small multiple of the number of atoms, however dense the reach is.
"""

import importlib
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferfish.errors import ModelError, ParameterError

__all__ = ["least_reach", "matched_mass", "unmatched"]

_PAIRS = 4_000_000
"""Most pairs of atoms a matrix of distances is built for (32 megabytes)."""

_ROWS = 256
"""Rows of the matrix of distances filled at a time."""

_PARENTS = 4
"""Arcs named for an atom of q each time the search meets it."""

_ALL_SIGNS = 4
"""Up to this dimension all 3^m - 1 sign vectors are tried, above it the coordinates and two diagonals."""

_FAR = 2**62
"""Beyond every distance: atoms are closer than this in L1."""

_Moved = dict[tuple[int, int], int]


def least_reach(x: ArrayLike, p: Sequence[int], y: ArrayLike, q: Sequence[int], *, slack: Fraction | int = 0) -> int:
    r"""Least W such that p and q have a coupling that moves nothing farther than W in L1: :math:`W_\infty(p, q)`.

    Parameters
    ----------
    x : array_like of int, shape (n, m)
        Atoms of p, one in each row; an atom may occur in several rows.
    p : sequence of int, length n
        Masses of the atoms, non-negative, over one denominator common to p and q.
    y, q
        The same for the second law, shapes (n', m) and n'.
    slack : Fraction or int, optional
        s ≥ 0: every mass is known up to a factor in [1/(1+s), 1+s], as a rounded float is.

    Returns
    -------
    int
        With ``slack=0``, :math:`W_\infty` of p and q, each divided by its sum, exactly. With s > 0, the least W such
        that some p', q' of equal sums, with every :math:`p'_i/p_i` and :math:`q'_j/q_j` in [1/(1+s), 1+s], have a
        coupling within W.

    Raises
    ------
    ModelError
        If atoms and masses do not fit together, a law has no mass, the sums differ by more than the slack allows, or
        the atoms are not on one line and have more than 4e6 pairs.
    ParameterError
        If the slack is negative or no number.

    Notes
    -----
    *With slack*, two one-sided questions are asked: can :math:`p_i/(1+s)` all be moved within W into
    :math:`q_j(1+s)`, and :math:`q_j/(1+s)` into :math:`p_i(1+s)`? The answer is the least W that says yes to both. By
    the theorem of Mendelsohn and Dulmage for flows (a flow that covers the lower bounds of one side and one that covers
    those of the other, both within the upper bounds, can be merged into one that covers both), that is the coupling
    of p' and q' above. Since :math:`p \le (1+s)p'` and :math:`q' \le (1+s)q`, noise that makes shifts of W
    :math:`\varepsilon`-indistinguishable makes p and q :math:`(\varepsilon + 2\ln(1+s))`-indistinguishable, and any
    laws whose masses are within the factor of p and q :math:`(\varepsilon + 4\ln(1+s))`. W itself is at most
    :math:`W_\infty` of any such laws: a slack never adds to W, it has to be paid in ε.

    *Cost.* Memory is the matrix of n n' distances. Time is a few flows, each of which grows about like n n' in numpy
    and like (n + n') to a power between 1 and 2 in Python.

    References
    ----------
    Song, Wang, Chaudhuri (2017), Section 3; Mendelsohn, Dulmage (1958), Theorem 1; Strassen (1965), Theorem 11.

    Examples
    --------
    >>> least_reach([[0, 0], [3, 1]], [1, 1], [[1, 0], [3, 0]], [1, 1])
    1

    A tail of mass 1e-300 counts, unless a slack says that it may be rounding:

    >>> one = 10**300
    >>> x = [[0, 0], [1, 0], [0, 5]]
    >>> least_reach(x, [one, one, one], x, [one - 1, one + 1, one])
    1
    >>> least_reach(x, [one, one, one], x, [one - 1, one + 1, one], slack=Fraction(1, 2**53))
    0
    """
    x_, p_ = _law(x, p, "p")
    y_, q_ = _law(y, q, "q")
    for masses, name in ((p_, "p"), (q_, "q")):
        if not masses:
            raise ModelError(f"{name} has no mass at all, expected a distribution over its atoms")
    exact = _at_least_0(slack)
    ground = _ground(x_, y_)
    if exact == 0:
        return _one_way(ground, *_normalised(p_, q_), 0)
    low, high = exact.denominator**2, (exact.numerator + exact.denominator) ** 2
    total_p, total_q = sum(p_), sum(q_)
    if total_p * low > total_q * high or total_q * low > total_p * high:
        raise ModelError(
            "p and q have sums farther apart than the factor (1 + slack)**2: give both over one denominator, and a "
            "slack that covers the rounding of their masses, or slack=0 to divide each by its sum"
        )
    forth = _one_way(ground, [a * low for a in p_], [b * high for b in q_], 0)
    return _one_way(ground.turned(), [b * low for b in q_], [a * high for a in p_], forth)


def matched_mass(x: ArrayLike, p_caps: Sequence[int], y: ArrayLike, q_caps: Sequence[int], reach: int) -> int:
    """Greatest flow from atoms x to atoms y along the pairs at most ``reach`` apart in L1.

    Parameters
    ----------
    x : array_like of int, shape (n, m)
        Atoms that send, one in each row.
    p_caps : sequence of int, length n
        What each can send, non-negative, of any size.
    y, q_caps
        Atoms that receive and what each can take, shapes (n', m) and n'.
    reach : int
        Longest L1 distance allowed.

    Returns
    -------
    int
        The greatest flow, exactly.

    Raises
    ------
    ModelError
        If atoms and capacities do not fit together, or the atoms are not on one line and have more than 4e6 pairs.

    Examples
    --------
    >>> matched_mass([[0, 0], [2, 2]], [10**400, 3], [[0, 1], [9, 9]], [5, 10**400], reach=1)
    5
    """
    x_, p_ = _law(x, p_caps, "p_caps")
    y_, q_ = _law(y, q_caps, "q_caps")
    if not p_ or not q_ or reach < 0:
        _same_dimension(x_, y_)
        return 0
    return _matched(_ground(x_, y_), p_, q_, reach)


def unmatched(x: ArrayLike, p: Sequence[int], y: ArrayLike, q: Sequence[int], reach: int) -> Fraction:
    r"""Share of the mass that every coupling of p and q moves farther than ``reach``: :math:`\delta(W)`.

    Parameters
    ----------
    x, p, y, q
        The two laws, as in :func:`least_reach`; each is divided by its sum.
    reach : int
        Longest L1 distance W allowed.

    Returns
    -------
    Fraction
        Least :math:`\gamma\{\|x - y\|_1 > W\}` over the couplings γ; 0 exactly from :math:`W_\infty` on.

    Raises
    ------
    ModelError
        As in :func:`least_reach`.

    Examples
    --------
    >>> unmatched([[0, 0], [5, 5]], [3, 1], [[0, 1], [0, 9]], [3, 1], reach=1)
    Fraction(1, 4)
    """
    x_, p_ = _law(x, p, "p")
    y_, q_ = _law(y, q, "q")
    for masses, name in ((p_, "p"), (q_, "q")):
        if not masses:
            raise ModelError(f"{name} has no mass at all, expected a distribution over its atoms")
    _same_dimension(x_, y_)
    if reach < 0:
        return Fraction(1)
    p_, q_ = _normalised(p_, q_)
    return 1 - Fraction(_matched(_ground(x_, y_), p_, q_, reach), sum(p_))


@dataclass(frozen=True, slots=True)
class _Ground:
    """Where the atoms are.

    Attributes
    ----------
    x, y : (n, m) and (n', m) ndarray of int64
        The atoms, all coordinates at least 0.
    signs : (m,) ndarray of int64, optional
        v such that L1 distances are those of the projections on v, if the atoms lie along one line or staircase.
    distances : (n, n') ndarray of int64
        All L1 distances; of shape (0, 0) where ``signs`` says it all.
    """

    x: NDArray[np.int64]
    y: NDArray[np.int64]
    signs: NDArray[np.int64] | None
    distances: NDArray[np.int64]

    def turned(self) -> "_Ground":
        """Exchange the two laws."""
        return _Ground(self.y, self.x, self.signs, self.distances.T)


def _law(atoms: ArrayLike, masses: Sequence[int], name: str) -> tuple[NDArray[np.int64], list[int]]:
    """Distinct atoms of positive mass, and their masses."""
    points = np.asarray(atoms)
    if points.ndim != 2 or points.shape[1] == 0:
        raise ModelError(f"the atoms of {name} have shape {points.shape}, expected one row of integers for each atom")
    if points.dtype.kind not in "iu":
        raise ModelError(f"the atoms of {name} are {points.dtype}, expected integers: scale the query to whole numbers")
    if len(points) != len(masses):
        raise ModelError(f"{name} has {len(masses)} masses for {len(points)} atoms, expected as many")
    try:
        exact = [operator.index(mass) for mass in masses]
    except TypeError:
        raise ModelError(
            f"{name} holds a mass that is no integer; give numerators over one common denominator"
        ) from None
    if any(mass < 0 for mass in exact):
        bad = next(i for i, mass in enumerate(exact) if mass < 0)
        raise ModelError(f"{name}[{bad}] is negative, expected a mass of at least 0")
    if points.size and int(points.max()) > np.iinfo(np.int64).max:
        raise ModelError(f"the atoms of {name} reach {int(points.max())}, beyond 64-bit integers")
    kept = [i for i, mass in enumerate(exact) if mass]
    distinct, where = np.unique(points[kept].astype(np.int64), axis=0, return_inverse=True)
    merged = [0] * len(distinct)
    for i, atom in zip(kept, where.ravel().tolist(), strict=True):
        merged[atom] += exact[i]
    return distinct, merged


def _at_least_0(slack: Fraction | int) -> Fraction:
    try:
        exact = Fraction(slack)
    except (TypeError, ValueError, OverflowError):
        exact = Fraction(-1)
    if exact < 0:
        raise ParameterError(f"slack is {slack}, expected at least 0: masses are known up to the factor 1 + slack")
    return exact


def _same_dimension(x: NDArray[np.int64], y: NDArray[np.int64]) -> None:
    if x.shape[1] != y.shape[1]:
        raise ModelError(f"the atoms of p have {x.shape[1]} coordinates and those of q {y.shape[1]}, expected as many")


def _normalised(p: list[int], q: list[int]) -> tuple[list[int], list[int]]:
    """Both laws over the product of their sums, where these differ."""
    total_p, total_q = sum(p), sum(q)
    if total_p == total_q:
        return p, q
    return [a * total_q for a in p], [b * total_p for b in q]


def _ground(x: NDArray[np.int64], y: NDArray[np.int64]) -> _Ground:
    _same_dimension(x, y)
    both = np.vstack([x, y])
    lowest = both.min(axis=0)
    span = sum(int(high) - int(low) for high, low in zip(both.max(axis=0), lowest, strict=True))
    if span >= _FAR:
        raise ModelError(f"the atoms are up to {span} apart, expected distances below 2**62")
    x, y, both = x - lowest, y - lowest, both - lowest
    signs = _staircase(both)
    if signs is not None:
        return _Ground(x, y, signs, np.empty((0, 0), dtype=np.int64))
    if len(x) * len(y) > _PAIRS:
        raise ModelError(
            f"{len(x)} and {len(y)} atoms have {len(x) * len(y)} pairs, expected at most {_PAIRS}: "
            "bin the query more coarsely, or drop to fewer coordinates"
        )
    distances = np.zeros((len(x), len(y)), dtype=np.int64)
    for first in range(0, len(x), _ROWS):
        for c in range(x.shape[1]):
            distances[first : first + _ROWS] += np.abs(x[first : first + _ROWS, c, None] - y[None, :, c])
    return _Ground(x, y, None, distances)


def _staircase(points: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Signs v with ‖a − b‖₁ = |v·(a − b)| for all points, if there are any; the points are distances from one corner.

    Along such a line, the point farthest from any other is an end, and the one farthest from that the other end.
    """
    end = points[np.argmax(np.abs(points - points[0]).sum(axis=1))]
    other = points[np.argmax(np.abs(points - end).sum(axis=1))]
    signs = np.sign(other - end)
    steps: NDArray[np.int64] = np.diff(points[_order(points @ signs)], axis=0)
    along = bool(np.all(steps * signs >= 0)) and not np.any(steps[:, signs == 0])
    return signs if along else None


def _order(values: NDArray[np.int64]) -> NDArray[np.intp]:
    return np.argsort(values, kind="stable")


def _where(values: NDArray[np.bool_]) -> list[int]:
    return [int(i) for i in np.flatnonzero(values)]


def _matched(ground: _Ground, p: list[int], q: list[int], reach: int) -> int:
    if ground.signs is not None:
        return _first_fit(ground.x @ ground.signs, p, ground.y @ ground.signs, q, reach)
    return sum(_flow(ground.distances <= min(reach, _FAR), p, q, {}).moved.values())


def _one_way(ground: _Ground, p: list[int], q: list[int], least: int) -> int:
    """Least W, at least ``least``, within which all of p can be moved into q; the sum of p is at most that of q."""
    lower, upper = least, _FAR
    for signs in _directions(ground):
        below, above = _sweep(ground, p, q, signs)
        lower, upper = max(lower, below), min(upper, above)
    if lower >= upper:
        return lower
    if ground.signs is not None:
        return _least_on_line(ground.x @ ground.signs, p, ground.y @ ground.signs, q, lower, upper)
    distances = ground.distances
    lower = max(lower, int(distances.min(axis=1).max()))
    candidates: NDArray[np.int64] = np.unique(distances)
    moved: _Moved = {}
    halve = False
    while lower < upper:  # everything below `lower` is ruled out, `upper` is enough
        left = candidates[(candidates >= lower) & (candidates < upper)]
        if not left.size:
            return upper
        reach = int(left[(left.size - 1) // 2 if halve else 0])
        flow = _flow(distances <= reach, p, q, moved)
        if flow.cut.any():
            lower = _past_cut(distances, p, q, flow.cut)
            moved = flow.moved
        else:
            upper = max(int(distances[pair]) for pair in flow.moved)
        halve = not halve
    return lower


def _past_cut(distances: NDArray[np.int64], p: list[int], q: list[int], cut: NDArray[np.bool_]) -> int:
    """Least W at which the atoms of a cut find room enough for their own mass."""
    need = sum(p[i] for i in _where(cut))
    nearest: NDArray[np.int64] = distances[cut].min(axis=0)
    room = 0
    for j in (int(j) for j in _order(nearest)):
        room += q[j]
        if room >= need:
            return int(nearest[j])
    raise AssertionError("q has less mass than p")  # pragma: no cover


def _directions(ground: _Ground) -> list[NDArray[np.int64]]:
    """Sign vectors to project on, each with its opposite."""
    if ground.signs is not None:
        return [ground.signs, -ground.signs]
    m = ground.x.shape[1]
    if m <= _ALL_SIGNS:
        return [np.array(v, dtype=np.int64) for v in product((-1, 0, 1), repeat=m) if any(v)]
    units = np.eye(m, dtype=np.int64)
    half = [*units, np.ones(m, dtype=np.int64), 1 - 2 * (np.arange(m, dtype=np.int64) % 2)]
    return [*half, *(-v for v in half)]


def _sweep(ground: _Ground, p: list[int], q: list[int], signs: NDArray[np.int64]) -> tuple[int, int]:
    """Bounds on the least W: from below by the half-lines of a projection, from above by filling in its order."""
    on_x, on_y = ground.x @ signs, ground.y @ signs
    order_x, order_y = _order(on_x), _order(on_y)
    to_x, to_y = _running(p, order_x), _running(q, order_y)
    ends: NDArray[np.intp] = np.searchsorted(to_y, to_x)
    lower = int(np.max(on_y[order_y[ends]] - on_x[order_x]))
    breaks = np.concatenate([to_x, to_y[: int(ends[-1])]])
    i, j = order_x[np.searchsorted(to_x, breaks)], order_y[np.searchsorted(to_y, breaks)]
    return lower, int(np.max(np.abs(ground.x[i] - ground.y[j]).sum(axis=1)))


def _running(masses: list[int], order: NDArray[np.intp]) -> NDArray[np.object_]:
    """Sum masses in a given order, exactly."""
    return np.array(list(accumulate(masses[int(i)] for i in order)), dtype=object)


def _first_fit(on_x: NDArray[np.int64], p: list[int], on_y: NDArray[np.int64], q: list[int], reach: int) -> int:
    """Greatest flow between numbers at most ``reach`` apart.

    From left to right, each atom takes from the leftmost it can reach: those to the right serve later atoms at least
    as long, and what lies out of reach on the left stays so.
    """
    order_y = [int(j) for j in _order(on_y)]
    at, room = [int(place) for place in on_y], list(q)
    total, k = 0, 0
    for i in (int(i) for i in _order(on_x)):
        here, rest = int(on_x[i]), p[i]
        while rest and k < len(order_y) and at[order_y[k]] <= here + reach:
            j = order_y[k]
            taken = min(rest, room[j]) if at[j] >= here - reach else 0
            total, rest, room[j] = total + taken, rest - taken, room[j] - taken
            if rest:
                k += 1
    return total


def _least_on_line(
    on_x: NDArray[np.int64], p: list[int], on_y: NDArray[np.int64], q: list[int], lower: int, upper: int
) -> int:
    """Least W within which p fits into q on a line, between a bound that may be enough and one that is."""
    need = sum(p)
    reach = lower
    while lower < upper:
        if _first_fit(on_x, p, on_y, q, reach) == need:
            upper = reach
        else:
            lower = reach + 1
        reach = (lower + upper) // 2
    return lower


@dataclass(frozen=True, slots=True)
class _Flow:
    """A greatest flow.

    Attributes
    ----------
    moved : dict
        What is moved from i to j, where it is not 0.
    cut : (n,) ndarray of bool
        Atoms of p whose mass exceeds all the room within their reach; none where the flow exhausts p.
    """

    moved: _Moved
    cut: NDArray[np.bool_]


def _flow(close: NDArray[np.bool_], p: list[int], q: list[int], start: _Moved) -> _Flow:
    """Greatest flow from p to q along the pairs that are close, from a flow that has these pairs already.

    Parameters
    ----------
    close : (n, n') ndarray of bool
        The pairs along which mass may move.
    p, q : list of int
        What each can send and take.
    start : dict
        A flow along such pairs.

    Returns
    -------
    _Flow
        The flow and the cut that proves it greatest.
    """
    moved = dict(start)
    supply, room = list(p), list(q)
    for (i, j), mass in moved.items():
        supply[i] -= mass
        room[j] -= mass
    _greedy(close, supply, room, moved)
    arcs: set[tuple[int, int]] = set(moved)
    while True:
        found = _search(close, supply, room, moved)
        if not found.open:
            return _Flow(moved, found.rows)
        arcs |= found.arcs
        _augment(supply, room, moved, [a for a in arcs if found.rows[a[0]] and found.columns[a[1]]])


def _greedy(close: NDArray[np.bool_], supply: list[int], room: list[int], moved: _Moved) -> None:
    """Move what can be moved at once, the atoms with the fewest neighbours first."""
    columns = _order(close.sum(axis=0))
    free = np.array([room[int(j)] > 0 for j in columns], dtype=bool)
    for i in (int(i) for i in _order(close.sum(axis=1))):
        if not supply[i]:
            continue
        for k in _where(close[i, columns] & free):
            j = int(columns[k])
            _move(supply, room, moved, i, j, min(supply[i], room[j]))
            free[k] = room[j] > 0
            if not supply[i]:
                break


def _move(supply: list[int], room: list[int], moved: _Moved, i: int, j: int, mass: int) -> None:
    supply[i] -= mass
    room[j] -= mass
    moved[i, j] = moved.get((i, j), 0) + mass


@dataclass(frozen=True, slots=True)
class _Found:
    """What more supply could reach.

    Attributes
    ----------
    rows, columns : (n,) and (n',) ndarray of bool
        Atoms of p and q that are met.
    arcs : set of (int, int)
        A few of the pairs on the way; to every atom of q that is met there is a way along them.
    open : bool
        Whether an atom of q with room is among them.
    """

    rows: NDArray[np.bool_]
    columns: NDArray[np.bool_]
    arcs: set[tuple[int, int]]
    open: bool


def _search(close: NDArray[np.bool_], supply: list[int], room: list[int], moved: _Moved) -> _Found:
    """Search breadth first from the atoms with supply, forth along all close pairs and back along the flow."""
    back: list[list[int]] = [[] for _ in room]
    for i, j in moved:
        back[j].append(i)
    rows = np.array([mass > 0 for mass in supply], dtype=bool)
    columns = np.zeros(len(room), dtype=bool)
    arcs: set[tuple[int, int]] = set()
    layer = np.flatnonzero(rows)
    while layer.size:
        unmet = np.flatnonzero(~columns)
        met, parent = np.nonzero(close[np.ix_(layer, unmet)].T)
        if not met.size:
            break
        names, starts, counts = np.unique(met, return_index=True, return_counts=True)
        shift = names * ((math.sqrt(5) - 1) / 2) % 1  # spread over the parents, another one for every atom
        for h in range(_PARENTS):
            pick = starts + (((h + shift) / _PARENTS % 1) * counts).astype(np.intp)
            arcs.update(zip(layer[parent[pick]].tolist(), unmet[names].tolist(), strict=True))
        new = unmet[names]
        columns[new] = True
        fresh = {i for j in (int(j) for j in new) for i in back[j] if not rows[i]}
        layer = np.array(sorted(fresh), dtype=np.intp)
        rows[layer] = True
    return _Found(rows, columns, arcs, any(room[j] for j in _where(columns)))


def _augment(supply: list[int], room: list[int], moved: _Moved, arcs: list[tuple[int, int]]) -> None:
    """Add the greatest flow that fits along some arcs, and back along the flow so far."""
    nx: Any = importlib.import_module("networkx")
    graph: Any = nx.DiGraph()
    for i, j in arcs:
        graph.add_edge(("x", i), ("y", j))
        back = moved.get((i, j), 0)
        if back:
            graph.add_edge(("y", j), ("x", i), capacity=back)
    for i in {i for i, _ in arcs}:
        if supply[i]:
            graph.add_edge("p", ("x", i), capacity=supply[i])
    for j in {j for _, j in arcs}:
        if room[j]:
            graph.add_edge(("y", j), "q", capacity=room[j])
    residual: Any = nx.algorithms.flow.preflow_push(graph, "p", "q")
    for i, j in arcs:
        mass: int = residual["x", i]["y", j]["flow"]
        if mass:
            _move(supply, room, moved, i, j, mass)
            if not moved[i, j]:
                del moved[i, j]
