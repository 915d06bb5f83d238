r"""The influence matrix Γ of a Markov chain (Ghosh and Kleinberg 2016).

.. math:: \Gamma_{ij} = \tfrac12 \max \log
          \frac{P(X_i = x \mid X_j = y, \text{rest})}{P(X_i = x \mid X_j = y', \text{rest})}

over values x, y, y' and those of the rest. Given its neighbours, a record is independent of all others, so only
neighbours have entries. Inside the chain :math:`P(x \mid u, z) = P(u,x) P(x,z) / P^2(u,z)`, and the maximum over
x, z splits from that over pairs (u, u'):

.. math:: 2\Gamma_{i,i-1} = \max_{u,u'} \Big[ \max_x \log \frac{P(u,x)}{P(u',x)}
          + \max_z \log \frac{P^2(u',z)}{P^2(u,z)} \Big]

and likewise for the record after. The last record has no record after it (:math:`P^2` drops out), and the first has
its initial law q in place of a record before, so that :math:`P^2(u, \cdot)` becomes qP. For every initial law at once,
the largest entry is approached by laws near a corner: qP becomes any row of P.

**Alphabets.** The conditional laws must be defined, and positive, for *all* values of the neighbours that occur at
all. Let S_1 be the support of q, and S_{i+1} the states that can follow one of S_i. Unless every state of S_{i+1} can
follow every one of S_i, two records could tell each other apart for sure while no conditional law of one record shows
it (two records that are always equal have Γ = 0 where only possible values count). So such chains are refused. Where
none is refused, every row of P over S_i has the support S_{i+1}: there are at most k + 1 different alphabets, and from
some record on they take turns.

The influence matrix of every chain whose transition matrices lie between two bounds, step by step.

Entries of Γ (:mod:`pufferfish._core.gk16`) are bounded over all pairs of consecutive matrices P, Q
between the bounds, every one on its own. For a record x between u and z, and with a, b the rows u' and u of P and v the
column z of Q,

.. math:: 2\Gamma_{i,i-1} = \max \log \frac{b_x}{b \cdot v} \frac{a \cdot v}{a_x}, \qquad
          2\Gamma_{i,i+1} = \max \log \frac{a \cdot v'}{a \cdot v} \frac{v_x}{v'_x}.

Both are quotients of linear functions of each of a, b (laws between bounds) and of each entry of v, v' (numbers
between bounds: one from each row). Such a quotient is largest at a vertex, and the largest over laws a is found by
Dinkelbach's iteration, each step of which fills a law greedily, and certified by one more step. So on the left all
corners of the box of v are tried; with more than 2^4 corners v stands at its upper bounds above and its lower ones
below. On the right the box has one best corner: v at its lower and v' at its upper bounds, but for entry x, where it is
the other way round. Nothing else is lost on the left; on the right it is not asked whether one row can have both
entries, which for two states it can.

With more than a dozen states both are bounded by the largest cross ratio, which needs no search.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.chains.markov import LogPowers, LogVectorPath, stationary_log_error
from pufferfish._core.numbers.rounding import UNIT, or_infinite
from pufferfish._core.tridiagonal import InfluenceMatrix

__all__ = [
    "Alphabets",
    "Influences",
    "chain_influences",
    "interval_influences",
    "largest_ratio",
    "spread",
    "stationary_influences",
    "steps_of",
]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Alphabets(NamedTuple):
    """Which states records can have: ``sets[i]`` for the i-th record, and from ``cycle`` on again and again."""

    sets: list[NDArray[np.intp]]
    cycle: int
    missing: tuple[int, int] | None
    """A state, and another that a record after it may have, but never has after this one."""

    @classmethod
    def of(cls, start: Mask, possible: Mask, certain: Mask) -> "Alphabets":
        """Follow the support of the initial law along transitions that are possible, and those that are in any case."""
        sets: list[NDArray[np.intp]] = []
        seen: dict[bytes, int] = {}
        now = start
        while now.tobytes() not in seen:
            seen[now.tobytes()] = len(sets)
            sets.append(np.flatnonzero(now))
            after: Mask = np.any(possible[now], axis=0)
            absent = np.argwhere(np.logical_and(np.outer(now, after), ~certain))
            if absent.size:
                return cls(sets, 0, (int(absent[0, 0]), int(absent[0, 1])))
            now = after
        return cls(sets, seen[now.tobytes()], None)

    def after(self, i: int) -> int:
        """Return the index of the alphabet that follows the i-th."""
        return i + 1 if i + 1 < len(self.sets) else self.cycle


@dataclass(frozen=True, slots=True, eq=False)
class Influences:
    """Entries of Γ for chains of every length, rounded up.

    Parameters
    ----------
    first, least_first : float
        Γ[1, 2]; and a quarter of the largest log cross ratio, which it is at least, whatever the initial law.
    left, right : (n,) ndarray
        Γ[i, i−1] and Γ[i, i+1] of a record with two neighbours, by the alphabet of the record before it.
    last : (n,) ndarray
        Γ[T, T−1], by the alphabet of the record before it.
    several : (n,) ndarray of bool
        Whether an alphabet has more than one state.
    cycle : int
        Which of the n alphabets follows the last.
    """

    first: float
    least_first: float
    left: Vector
    right: Vector
    last: Vector
    several: Mask
    cycle: int

    def with_inner_ends(self) -> "Influences":
        """Return the same with the influence of inner records at the two ends as well, as if the chain went on."""
        first = max(self.least_first, float(self.right.max())) if self.first else 0.0
        return replace(self, first=first, last=np.maximum(self.last, self.left))

    def matrix(self, steps: int) -> InfluenceMatrix:
        """Return Γ for a chain of so many records."""
        left, right = self._of_records(steps)
        if steps > 1:
            n, t = self.last.size, steps - 2
            left[-1] = self.last[t if t < n else self.cycle + (t - self.cycle) % (n - self.cycle)]
        right[-1] = 0.0
        return InfluenceMatrix(left, right, self._along(self.several, steps))

    def leading(self, steps: int) -> InfluenceMatrix:
        """Return the first so many rows and columns of Γ for longer chains: its norm is at most that of Γ."""
        left, right = self._of_records(steps)
        right[-1] = 0.0
        return InfluenceMatrix(left, right, self._along(self.several, steps))

    def _of_records(self, steps: int) -> tuple[Vector, Vector]:
        """Return the influences on the first so many records of a chain that goes on."""
        left, right = (np.concatenate([[0.0], self._along(part, steps - 1)]) for part in (self.left, self.right))
        right[0] = self.first
        return left, right

    def _along(self, values: NDArray[Any], records: int) -> NDArray[Any]:
        """Return what is known by alphabet for so many records in turn."""
        head, again = values[:records], values[self.cycle :]
        left = records - head.size
        return np.concatenate([head, np.tile(again, -(-left // again.size))[:left]])


def spread(logs: Matrix) -> Matrix:
    """Return max over columns of row a less row b; shape (rows, rows)."""
    return np.array([(row - logs).max(axis=1) for row in logs])


def chain_influences(p: Matrix, start: Vector | None) -> Influences:
    """Return the influences of a chain with an initial law, or with every initial law at once.

    Parameters
    ----------
    p : (k, k) ndarray
        Transition matrix; every state that can follow a state of an alphabet can follow all of them.
    start : (k,) ndarray or None
        Law of the first record; None for every law.
    """
    if start is None:
        return _influences(p, _all_states(p), None, 0.0)
    path = LogVectorPath(start, p)
    support = path.support
    path.advance()
    return _influences(p, support, path.log, path.log_error)


def stationary_influences(p: Matrix, pi: Vector) -> Influences:
    """Return the influences of a chain that starts with its stationary law π."""
    return _influences(p, _all_states(p), np.log(pi), stationary_log_error(len(p)))


def _all_states(p: Matrix) -> Mask:
    return np.ones(len(p), dtype=np.bool_)


def _influences(p: Matrix, support: Mask, second: Vector | None, second_error: float) -> Influences:
    """Return the influences, from the logarithms of the second record's law; None for every law of the first."""
    possible = p > 0
    alphabets = Alphabets.of(support, possible, possible)
    powers = LogPowers(p)
    one, two = powers.log(1), powers.log(2)
    error = powers.log_error(1) + powers.log_error(2) + 8 * p.shape[0] * UNIT

    def half(total: Matrix) -> float:
        """Half of the largest sum of two spreads, moved up by their errors."""
        return float(total.max()) / 2 * (1 + 2 * UNIT) + error

    def inner(u: NDArray[np.intp], x: NDArray[np.intp], z: NDArray[np.intp]) -> tuple[float, float, float]:
        onto, over, through = one[np.ix_(u, x)], one[np.ix_(x, z)], two[np.ix_(u, z)]
        of_last = spread(onto)
        return half(of_last + spread(through).T), half(spread(over.T) + spread(through.T).T), half(of_last)

    s1, s2 = alphabets.sets[0], alphabets.sets[alphabets.after(0)]
    columns = spread(one[np.ix_(s1, s2)].T)
    prior = columns if second is None else second[s2][:, None] - second[s2][None, :]
    first = half(columns + prior.T) + second_error
    return steps_of(alphabets, first, half(columns + columns.T) / 2, inner)


def steps_of(
    alphabets: Alphabets,
    first: float,
    least_first: float,
    inner: Callable[[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]], tuple[float, float, float]],
) -> Influences:
    """Return the influences from those of every three alphabets in turn; a record with one state has none.

    Parameters
    ----------
    alphabets : Alphabets
        What records can be.
    first, least_first : float
        As for :class:`Influences`.
    inner : callable
        Three alphabets ↦ the influences ``left``, ``right``, ``last`` on a record with the second of them.
    """
    n = len(alphabets.sets)
    several = np.array([len(states) > 1 for states in alphabets.sets])
    influences = np.zeros((n, 3))
    for i in range(n):
        j = alphabets.after(i)
        m = alphabets.after(j)
        influences[i] = inner(alphabets.sets[i], alphabets.sets[j], alphabets.sets[m])
        before, after = several[i] and several[j], several[j] and several[m]
        influences[i] *= [before, after, before]
    together = bool(several[0] and several[alphabets.after(0)])
    left, right, last = influences.T.copy()
    return Influences(
        first=first if together else 0.0,
        least_first=least_first if together else 0.0,
        left=left,
        right=right,
        last=last,
        several=several,
        cycle=alphabets.cycle,
    )


# -- The influence matrix of every chain whose transition matrices lie between two bounds ----------------------------

Indices = NDArray[np.intp]

_FEW = 12
"""States up to which laws are searched."""

_CORNERS = 4
"""Entries of a column up to which all corners of its box are tried."""

_MOST_STEPS = 50


def largest_ratio(above: Matrix, below: Matrix, lower: Matrix, upper: Matrix) -> Matrix:
    """Largest (a · above)/(a · below) over the laws a between two bounds, rounded up.

    Parameters
    ----------
    above, below : (..., k) ndarray
        Non-negative numbers.
    lower, upper : (..., k) ndarray
        Bounds on a, which some law keeps; of a shape that goes with the others.

    Returns
    -------
    (...) ndarray
        The ratios; ``inf`` where a · below can be 0.

    Examples
    --------
    >>> low, high = np.array([0.25, 0.5]), np.array([0.5, 0.75])
    >>> round(float(largest_ratio(np.array([2.0, 1.0]), np.array([0.0, 1.0]), low, high)), 9)
    3.0
    """
    above, below, lower, upper = np.broadcast_arrays(above, below, lower, upper)
    room, left = upper - lower, np.maximum(1 - lower.sum(axis=-1), 0.0)

    def best(gain: Matrix) -> Matrix:
        order = np.argsort(-gain, axis=-1, kind="stable")
        sizes = np.take_along_axis(room, order, axis=-1)
        filled = np.cumsum(sizes, axis=-1) - sizes
        added = np.clip(left[..., None] - filled, 0.0, sizes)
        law = lower.copy()
        np.put_along_axis(law, order, np.take_along_axis(lower, order, axis=-1) + added, axis=-1)
        return law

    least = np.maximum((lower * below).sum(axis=-1), below.min(axis=-1)) * (1 - 1e-14)
    ratio = np.zeros(least.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(_MOST_STEPS):
            law = best(above - ratio[..., None] * below)
            better = (law * above).sum(axis=-1) / (law * below).sum(axis=-1)
            better = np.where(least > 0, better, 0.0)
            if not np.any(better > ratio * (1 + 4 * UNIT)):
                break
            ratio = np.maximum(ratio, better)
        gain = above - ratio[..., None] * below
        missed = (best(gain) * gain).sum(axis=-1)
        missed += (4 * above.shape[-1] + 16) * UNIT * (above.max(axis=-1) + ratio * below.max(axis=-1))
        return np.where(least > 0, (ratio + np.maximum(missed, 0.0) / least) * (1 + 8 * UNIT), np.inf)


def interval_influences(lower: Matrix, upper: Matrix, alphabets: Alphabets) -> Influences:
    """Bound the influences under every initial law and every sequence of matrices between two bounds.

    Parameters
    ----------
    lower, upper : (k, k) ndarray
        Bounds on the entries; positive wherever ``alphabets`` need it.
    alphabets : Alphabets
        What records can be.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # ∞ is too large, and no number is taken as ∞
        return _influences_between(lower, upper, alphabets)


def _influences_between(lower: Matrix, upper: Matrix, alphabets: Alphabets) -> Influences:
    s1, s2 = alphabets.sets[0], alphabets.sets[alphabets.after(0)]
    lo, hi = lower[np.ix_(s1, s2)], upper[np.ix_(s1, s2)]
    first = float(_of_two(_quotients(lo, hi)).max())

    def inner(u: Indices, x: Indices, z: Indices) -> tuple[float, float, float]:
        onto = lower[np.ix_(u, x)], upper[np.ix_(u, x)]
        over = lower[np.ix_(x, z)], upper[np.ix_(x, z)]
        rows = np.log(onto[1][:, None, :] / onto[0][None, :, :]).max(axis=2) + 8 * UNIT
        np.fill_diagonal(rows, 0.0)
        left, right = float((rows + rows.T).max()), float(_of_two(_quotients(*over)).max())
        if len(lower) <= _FEW:
            left, right = min(left, _left(*onto, *over)), min(right, _right(*onto, *over))
        return _half(left), _half(right), _half(float(rows.max()))

    return steps_of(alphabets, _half(first), _half(first) / 2, inner)


def _half(twice: float) -> float:
    return or_infinite(twice) / 2 * (1 + 4 * UNIT) + 16 * UNIT


def _quotients(lo: Matrix, hi: Matrix) -> Matrix:
    """Bound log P(x, z)/P(x, z') in every row x; shape (rows, columns, columns)."""
    k = lo.shape[1]
    quotients = np.log(hi[:, :, None] / lo[:, None, :]) + 8 * UNIT
    if lo.shape[0] <= _FEW:
        unit = np.eye(k)
        ratio = largest_ratio(unit[:, None, :], unit[None, :, :], lo[:, None, None, :], hi[:, None, None, :])
        quotients = np.minimum(quotients, np.log(ratio) + 8 * UNIT)
    quotients[:, np.arange(k), np.arange(k)] = 0.0
    return quotients


def _of_two(quotients: Matrix) -> Matrix:
    """Add quotients of (z, z') in one row to those of (z', z) in another; of the same row they would cancel."""
    rows = quotients.shape[0]
    back = np.swapaxes(quotients, 1, 2)
    sums = [quotients[x] + np.delete(back, x, axis=0).max(axis=0) for x in range(rows) if rows > 1]
    return np.array(sums) if sums else np.zeros(1)


def _left(lo: Matrix, hi: Matrix, lo2: Matrix, hi2: Matrix) -> float:
    k, unit, worst = lo.shape[1], np.eye(lo.shape[1]), 0.0
    for z in range(lo2.shape[1]):
        box = np.stack([lo2[:, z], hi2[:, z]])
        corners = (
            [(box[list(c), range(k)],) * 2 for c in product((0, 1), repeat=k)] if k <= _CORNERS else [(box[1], box[0])]
        )
        for high, low in corners:
            of_b = np.log(largest_ratio(unit, low, lo[:, None, :], hi[:, None, :]))
            of_a = np.log(largest_ratio(high, unit, lo[:, None, :], hi[:, None, :]))
            both = (of_b[:, None, :] + of_a[None, :, :]).max(axis=2)
            np.fill_diagonal(both, 0.0)
            worst = max(worst, or_infinite(float(both.max())))
    return worst + 16 * UNIT * (1 + worst)


def _right(lo: Matrix, hi: Matrix, lo2: Matrix, hi2: Matrix) -> float:
    k, worst = lo.shape[1], 0.0
    diagonal = np.eye(k, dtype=np.bool_)
    for z, z_ in product(range(lo2.shape[1]), repeat=2):
        if z == z_:
            continue
        below = np.where(diagonal, hi2[:, z], lo2[:, z])
        above = np.where(diagonal, lo2[:, z_], hi2[:, z_])
        ratio = largest_ratio(above, below, lo[:, None, :], hi[:, None, :]).max(axis=0)
        worst = max(worst, or_infinite(float(np.log(ratio * (hi2[:, z] / lo2[:, z_])).max())))
    return worst + 16 * UNIT * (1 + worst)
