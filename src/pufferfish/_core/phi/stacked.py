"""Φ of a stack of kernels, one for each phase of a cycle: each takes the bounds of the phase beside it.

What :class:`pufferfish._core.phi.phi.LogRatios` does for one kernel, with the same search and the same certificate, for
many in one compiled loop. Kernels whose laws have their zeros in the same places share one list of pairs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.numbers.compiled import Loops
from pufferfish._core.numbers.rounding import UNIT
from pufferfish._core.phi.certificate import SEARCHED, pass_on, search_each
from pufferfish._core.phi.phi import DENSE, Kernel, in_parts, stars_of, without_flows

__all__ = ["StackedRatios", "solve_around"]

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]

# Work of the search (pairs times states squared) that is interpreted before loading the compiled one pays.
_INTERPRETED = 20_000
# Arcs that changes are passed along, at most, before a step of Newton's method is taken as it is.
_MOST_PASSED = 10**8
_ENOUGH = 1e-4  # changes end to be passed on when they are this small a share of what they began with


@dataclass(slots=True, eq=False)
class _Group:
    """Kernels of a stack that have their zeros in the same places, and where the search stands for each."""

    which: Places
    x: NDArray[np.int64]
    x_: NDArray[np.int64]
    inside: Mask
    reached: tuple[Places, ...]
    tails: NDArray[np.int64]
    heads: NDArray[np.int64]
    flows: Matrix
    shares: Matrix
    always: Matrix


class StackedRatios:
    """Φ of stacks of kernels that change little from call to call: the search goes on from where it was.

    Kernel j takes the bounds of phase j + ``beside``, around the cycle: 1 for the future, −1 for the past.
    """

    def __init__(self, beside: int) -> None:
        self._beside = beside
        self._kernel: Kernel | None = None
        self._groups: list[_Group] = []
        self._work = 0

    def __call__(self, kernel: Kernel, a: Matrix) -> Matrix:
        """Return upper bounds on Φ of N kernels, (N, k, k): +∞ for pairs of states of which one cannot occur.

        From closed bounds A at each phase, (N, k, k), or the same at all.
        """
        if self._kernel is not kernel:
            self._take(kernel)
        k = kernel.rows.shape[-1]
        a = np.ascontiguousarray(np.roll(np.broadcast_to(a, kernel.upper.shape), -self._beside, axis=0))
        bounds = np.full(kernel.upper.shape, np.inf)
        bounds[:, np.arange(k), np.arange(k)] = 0.0
        for group in self._groups:
            if not group.x.size:
                continue
            most = np.max(a[np.ix_(group.which, *group.reached)], axis=(-2, -1), initial=0.0)
            proved = np.minimum(group.always, ((most + UNIT * (k + 4)) * (1 + 4 * UNIT))[:, None])
            searched = most <= SEARCHED
            if searched.all():
                proved = np.minimum(proved, self._search(kernel, a, group))
            bounds[group.which[:, None], group.x, group.x_] = proved
        return bounds

    def solve(self, residual: Matrix) -> Matrix:
        """Solve δ = residual + Φ'δ around the cycle, with Φ' the derivatives at the last call."""
        phases, k = len(residual), int(residual.shape[-1])
        ends = np.zeros((phases, k * k, max(k - 1, 1)), dtype=np.int64)
        shares = np.zeros(ends.shape)
        for group in self._groups:
            if group.x.size:
                place = group.which[:, None], group.x * k + group.x_
                ends[place], shares[place] = group.tails * k + group.heads, group.shares
        return solve_around(residual, ends, shares, self._beside, self._loops)

    def _search(self, kernel: Kernel, a: Matrix, group: _Group) -> Matrix:
        proved = np.empty((group.which.size, group.x.size))
        search = self._loops(proved.size * a.shape[-1] ** 2).search_each
        # in one layout, for the loop is compiled anew for every other
        laws = (np.ascontiguousarray(kernel.upper), np.ascontiguousarray(kernel.lower))

        def look(part: slice) -> None:
            trees = (array[part] for array in (group.tails, group.heads, group.flows, group.shares))
            with np.errstate(all="ignore"):
                search(*laws, a, group.which[part], group.x, group.x_, *trees, proved[part])

        if not group.shares.any():  # all begin where the first one ends
            look(slice(0, 1))
            group.tails[:], group.heads[:] = group.tails[0], group.heads[0]
        in_parts(look, group.which.size, group.x.size * a.shape[-1] ** 2)
        return proved

    def _loops(self, work: int) -> Any:
        self._work += work
        _LOOPS.count(work)
        return _LOOPS.at(self._work)

    def _take(self, kernel: Kernel) -> None:
        """Group the kernels, and keep the trees of groups that are as they were."""
        known, self._kernel = self._groups, kernel
        self._groups = []
        pattern = np.concatenate([kernel.rows[:, None, :], kernel.upper > 0, kernel.lower > 0], axis=1)
        packed = np.packbits(pattern.reshape(len(pattern), -1), axis=1)
        _, first, of = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        for n in range(len(first)):
            which = np.flatnonzero(of.ravel() == n)
            same = [g for g in known if np.array_equal(g.which, which)] if known else []
            self._groups.append(_grouped(kernel, which, same[0] if same else None))


def solve_around(
    residual: Matrix,
    ends: NDArray[np.int64],
    shares: Matrix,
    beside: int,
    loops_for: Callable[[int], Any] = lambda work: _LOOPS.at(work),
) -> Matrix:
    """Solve δ = residual + Φ'δ around a cycle whose phase j looks at phase j + ``beside`` = ±1.

    Φ' are :data:`~pufferfish._core.phi.phi.Slopes` of shape (N, k², m); ``loops_for`` tells the loops for some work.
    """
    phases, unknowns = len(residual), shares.shape[1]
    places: Places = np.arange(phases)
    source: Places = np.roll(places, -beside)
    order: Places = np.ascontiguousarray(places[::-beside])
    change = np.empty((phases, unknowns))
    direct = unknowns <= DENSE
    most = max(4, (_INTERPRETED if direct else _MOST_PASSED) // ends.size)
    enough = _ENOUGH * float(np.max(np.abs(residual)))
    arguments = ends, shares, source, order, residual.reshape(phases, -1)
    if not loops_for(ends.size * (1 if direct else most)).pass_on(*arguments, most, enough, change) and direct:
        _solve_around(*arguments, change)  # a cycle that hardly forgets would take very many rounds
    return change.reshape(residual.shape)


def _grouped(kernel: Kernel, which: Places, known: _Group | None) -> _Group:
    upper, lower, rows = kernel.upper[which[0]], kernel.lower[which[0]], kernel.rows[which[0]]
    k = rows.size
    x, x_ = np.nonzero(rows[:, None] & rows[None, :] & ~np.eye(k, dtype=np.bool_))
    reached = np.flatnonzero(np.any(upper[rows] > 0, axis=0))
    every = np.ones(k, dtype=np.bool_)
    always = np.array([without_flows(Kernel(kernel.upper[n], kernel.lower[n], every))[x, x_] for n in which])
    inside = (upper > 0)[x] | (lower > 0)[x_]
    fields = (which, x, x_, inside, (reached, reached))
    if known is not None and np.array_equal(known.x, x) and np.array_equal(known.inside, inside):
        return _Group(*fields, known.tails, known.heads, known.flows, known.shares, always)
    first = stars_of(Kernel(upper, lower, rows), np.zeros((k, k)), x, x_, inside)
    tails, heads = (np.repeat(ends[None], which.size, axis=0) for ends in (first.tails, first.heads))
    return _Group(*fields, tails, heads, np.zeros(tails.shape), np.zeros(tails.shape), always)


def _solve_around(
    ends: NDArray[np.int64], shares: Matrix, source: Places, order: Places, residual: Matrix, change: Matrix
) -> None:
    """Do what :func:`pass_on` does, by one linear system: how the last kernel's change comes back to it."""
    last, unknowns = source[order[0]], residual.shape[1]
    back, added = np.eye(unknowns), np.zeros(unknowns)
    for j in order:  # δ_j = back · δ_last + added
        back = np.einsum("en,enu->eu", shares[j], back[ends[j]])
        added = residual[j] + np.sum(shares[j] * added[ends[j]], axis=-1)
    try:
        change[last] = np.linalg.solve(np.eye(unknowns) - back, added)
    except np.linalg.LinAlgError:
        change[:] = residual
        return
    for j in order[:-1]:
        change[j] = residual[j] + np.sum(shares[j] * change[source[j]][ends[j]], axis=-1)


_LOOPS = Loops(search_each, pass_on, after=_INTERPRETED)
