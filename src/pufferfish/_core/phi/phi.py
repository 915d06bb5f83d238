r"""Φ: what a bound on pairwise log ratios becomes one step of a chain further, with a proof.

For a kernel K (rows: laws K(x,·) of the next state) and a matrix A of pairwise bounds (A(y,y) = 0)

.. math:: \Phi_K(A)[x,x'] = \log \max_v \Big\{ \frac{K(x,\cdot) v}{K(x',\cdot) v} : v > 0,\;
          v_y \le e^{A(y,y')} v_{y'} \text{ for all } y, y' \Big\}

**Proof by flows.** For p = K(x,·), q = K(x',·) and *any* f(y,z) ≥ 0 let
:math:`\mathrm{in}_y = \sum_z f(z,y) e^{A(z,y)}` and :math:`\mathrm{out}_y = \sum_z f(y,z)`. If
:math:`p_y + \mathrm{in}_y - \mathrm{out}_y \le \lambda q_y` for every y, then Φ ≤ log λ, whatever led to f: a search
(:mod:`pufferfish._core.phi.simplex`) proposes it, and what is returned here is what f proves, rounded up.

Entries of A that are +∞ are absent constraints; an entry for a state that cannot occur is never 0.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from pufferfish._core import Array, Indices, Mask, Matrix, Whole
from pufferfish._core.chains import markov
from pufferfish._core.divergence import max_log_ratio
from pufferfish._core.numbers.compiled import Loops
from pufferfish._core.numbers.rounding import SMALLEST, UNIT, up
from pufferfish._core.phi.certificate import SEARCHED, pass_on, prove, search_each, walk
from pufferfish._core.phi.simplex import climb
from pufferfish.errors import ModelError

# Derivatives of Φ: by which entries of A each entry changes, as flat indices, and how much; shape (..., k², m).
Slopes = tuple[Whole, Matrix]

_INTERPRETED = 20_000  # work of a search (pairs times states squared) before loading the compiled one pays
_LOOPS = Loops(climb, prove, walk, after=_INTERPRETED)
_OF_STACKS = Loops(search_each, pass_on, after=_INTERPRETED)
# Into how many parts a search is cut at most, and the work (pairs times states squared) that each has at least.
_MOST_PARTS, _WORTH_A_CORE = 32, 200_000
DENSE = 36  # linear systems of at most this many unknowns are solved directly, larger ones nearly
# How exactly large linear systems are solved: a residual of this share, or what so many products give.
_NEARLY, _MOST_PRODUCTS = 1e-4, 200


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """Laws of the next state, each entry between two bounds; a stack of them has one more axis in front."""

    upper: Matrix  # bounds on K(x, y), (..., k, k); 0 exactly where K is
    lower: Matrix
    rows: Mask  # states x that can occur; only pairs of these have a log ratio

    @classmethod
    def of_logs(cls, logs: Matrix, rows: Mask, error: float) -> "Kernel":
        """Return the kernel with the given logarithms (−∞ for a zero), each good to ``error``."""
        largest = float(np.max(np.abs(logs), where=np.isfinite(logs), initial=1.0))
        slack = error + 8 * UNIT * largest
        values = np.ascontiguousarray(np.exp(np.where(rows[..., None], logs, -np.inf)))  # one layout: compiled once
        upper = np.where(values > 0, np.maximum(values * np.exp(slack) * (1 + 8 * UNIT), SMALLEST), 0.0)
        upper[rows[..., None] & np.isfinite(logs) & (values == 0)] = SMALLEST
        if not np.all(np.any(upper > 0, axis=-1) | ~rows):
            raise ModelError("a state that a record can have leads nowhere: all of its probabilities are 0")
        lower = np.where(values > SMALLEST, values * np.exp(-slack) * (1 - 8 * UNIT), 0.0)
        return cls(upper, lower, rows)


@dataclass(slots=True, eq=False)
class _Trees:
    """Where the search stands for every pair: trees of tight constraints, and the multipliers of their arcs."""

    x: Whole
    x_: Whole
    inside: Mask
    follows: Mask
    tails: Whole
    heads: Whole
    flows: Matrix
    shares: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """What does not depend on A: the pairs of rows of a kernel, the states they reach, and ratios for every A."""

    kernel: Kernel
    x: Whole
    x_: Whole
    inside: Mask
    reached: tuple[Indices, ...]
    always: Array

    @classmethod
    def of(cls, kernel: Kernel) -> "_Pairs":
        pairs = np.nonzero(kernel.rows[:, None] & kernel.rows[None, :] & ~np.eye(kernel.rows.size, dtype=np.bool_))
        x, x_ = (np.ascontiguousarray(indices) for indices in pairs)
        reached = np.flatnonzero(np.any(kernel.upper[kernel.rows] > 0, axis=0))
        always = without_flows(kernel)[x, x_] if x.size else np.zeros(0)
        return cls(kernel, x, x_, _inside(kernel, x, x_), np.ix_(reached, reached), always)


class LogRatios:
    """Φ of kernels that change little from call to call: the search goes on from where it was."""

    def __init__(self) -> None:
        self._trees: _Trees | None = None
        self._pairs: _Pairs | None = None
        self._work = 0

    def __call__(self, kernel: Kernel, a: Matrix) -> Matrix:
        """Return an upper bound on Φ_K(A), (k, k): +∞ for pairs of which one cannot occur, 0 on the diagonal."""
        k, pairs = a.shape[0], self._pairs_of(kernel)
        x, x_ = pairs.x, pairs.x_
        bounds: Matrix = np.full((k, k), np.inf)
        np.fill_diagonal(bounds, 0.0)
        if x.size:
            most = up(float(np.max(a[pairs.reached])) + UNIT * (k + 4))  # rows sum to 1 up to rounding
            proved = np.minimum(pairs.always, most)
            if most <= SEARCHED:
                proved = np.minimum(proved, self.of_pairs(kernel, a, x, x_))
            bounds[x, x_] = proved
        return bounds

    def walk(self, kernel: Kernel, a: Matrix, loss: Matrix, most: int, enough: float) -> Matrix:
        """Return Φ(A), Φ(d + Φ(A)) …, at most so many, (n, k, k), until steps change by at most ``enough``."""
        pairs, k = self._pairs_of(kernel), a.shape[0]
        x, x_ = pairs.x, pairs.x_
        loops = _LOOPS.at(self._work + x.size * k**2)
        # the first trees are made where the first search is, as if each place were asked
        alone = self._trees is None or loops is _LOOPS.plain or len(_parts(x.size, k**2)) > 1
        if alone or most == 1 or not x.size:
            return self(kernel, a)[None]
        known, messages = self._trees_for(kernel, a, x, x_), np.empty((most, k, k))
        laws = kernel.upper, kernel.lower, pairs.reached[1].ravel(), x, x_, pairs.always
        trees = known.follows, known.tails, known.heads, known.flows, known.shares
        n = loops.walk(*laws, *trees, np.ascontiguousarray(loss), enough, np.array(a, order="C"), messages)
        return messages[:n].copy()

    def of_pairs(self, kernel: Kernel, a: Matrix, x: Whole, x_: Whole) -> Array:
        """Return what the flows found prove for the laws ``upper[x]``, ``lower[x_]``, A at most ``SEARCHED``; (n,)."""
        trees = self._trees_for(kernel, a, x, x_)
        arcs = trees.tails, trees.heads, trees.flows
        work = x.size * a.shape[0] ** 2
        self._work += work
        _LOOPS.count(work)
        search = _LOOPS.at(self._work).climb

        def look(part: slice) -> None:
            trees.follows[part.start] = False
            changed = (array[part] for array in (trees.follows, *arcs, trees.shares))
            search(kernel.upper, kernel.lower, a, x[part], x_[part], *changed)

        if search is climb:
            look(slice(0, x.size))
        else:
            in_parts(look, x.size, a.shape[0] ** 2)
        trees.follows[:] = False
        return certify(kernel, a, x, x_, *arcs)

    def slopes(self, which: Indices) -> tuple[Whole, Whole, Matrix] | None:
        """Return the derivatives of chosen pairs at the last call: arcs (tails, heads) and slopes, shape (n, k − 1)."""
        trees = self._trees
        return None if trees is None else (trees.tails[which], trees.heads[which], trees.shares[which])

    def solve(self, residual: Matrix) -> Matrix:
        """Solve d = residual + Φ'd with the derivative at the last call, or return the residual."""
        trees = self._trees
        if trees is None:
            return residual
        return solve_slopes(residual, trees.x, trees.x_, trees.tails, trees.heads, trees.shares)

    def _pairs_of(self, kernel: Kernel) -> _Pairs:
        if self._pairs is None or self._pairs.kernel is not kernel:
            self._pairs = _Pairs.of(kernel)
        return self._pairs

    def _trees_for(self, kernel: Kernel, a: Matrix, x: Whole, x_: Whole) -> _Trees:
        pairs, known = self._pairs, self._trees
        same_pairs = pairs is not None and pairs.kernel is kernel and pairs.x is x and pairs.x_ is x_
        inside = pairs.inside if pairs is not None and same_pairs else _inside(kernel, x, x_)
        if known is None or (known.inside is not inside and not np.array_equal(known.inside, inside)):
            known = stars_of(kernel, a, x, x_, inside)
        known.x, known.x_ = x, x_
        self._trees = known
        return known


def _inside(kernel: Kernel, x: Whole, x_: Whole) -> Mask:
    """Return the states that either row of each pair reaches; shape (n, k)."""
    return (kernel.upper > 0)[x] | (kernel.lower > 0)[x_]


def in_parts(look: Callable[[slice], None], many: int, work: int) -> None:
    """Look at many pairs or kernels on several cores where that pays, in parts that are the same on every machine."""
    parts = _parts(many, work)
    if len(parts) == 1:
        look(parts[0])
        return
    looking = [_cores(os.getpid()).submit(look, part) for part in parts]
    try:
        for each in looking:
            each.result()
    finally:  # what is looked at may be asked again: after Ctrl-C nobody goes on writing into it
        for each in looking:
            each.cancel()
        wait(looking)


@cache
def _cores(_process: int) -> ThreadPoolExecutor:
    """Return the threads of a process, which live as long as it: to start some for each search costs more than most."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="pufferfish-pairs")


def _parts(many: int, work: int) -> list[slice]:
    most = max(1, min(_MOST_PARTS, many * work // _WORTH_A_CORE))
    size = -(-many // most)
    return [slice(first, min(first + size, many)) for first in range(0, many, size)]


def slopes_of(k: int, x: Whole, x_: Whole, tails: Whole, heads: Whole, slopes: Matrix) -> Slopes:
    """Return derivatives by all pairs of k states, given those of the pairs x, x_ by arcs; shape (..., n, m) each."""
    shape = *tails.shape[:-2], k * k, tails.shape[-1]
    ends, shares = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    ends[..., x * k + x_, :], shares[..., x * k + x_, :] = tails * k + heads, slopes
    return ends, shares


def solve_slopes(residual: Matrix, x: Whole, x_: Whole, tails: Whole, heads: Whole, slopes: Matrix) -> Matrix:
    """Solve δ = residual + Φ'δ nearly, for the derivatives of the pairs x, x_ by arcs; shape (n, m) each."""
    return solve_flat(residual, *slopes_of(len(residual), x, x_, tails, heads, slopes))


def solve_flat(residual: Matrix, ends: Whole, shares: Matrix) -> Matrix:
    """Solve δ = residual + Φ'δ nearly, Φ' as :data:`Slopes`; return the residual where there is no solution."""
    k = residual.shape[0]
    if k * k <= DENSE:
        matrix = np.eye(k * k)
        np.subtract.at(matrix, (np.arange(k * k)[:, None], ends), shares)
        try:
            return np.asarray(np.linalg.solve(matrix, residual.ravel()), dtype=np.float64).reshape(k, k)
        except np.linalg.LinAlgError:
            return residual
    pair, arc = np.nonzero(shares)
    if not pair.size:
        return residual
    ends, shares = ends[pair, arc], shares[pair, arc]
    firsts = np.flatnonzero(np.diff(pair, prepend=-1))

    def missed(change: Array) -> Array:
        left = change.copy()
        left[pair[firsts]] -= np.add.reduceat(shares * change[ends], firsts)
        return left

    return markov.solve(missed, residual.ravel(), tolerance=_NEARLY, most=_MOST_PRODUCTS).reshape(k, k)


def certify(kernel: Kernel, a: Matrix, x: Whole, x_: Whole, tails: Whole, heads: Whole, flows: Matrix) -> Array:
    """Return what flows on the arcs of each pair prove, see :func:`pufferfish._core.phi.certificate.prove`; (n,)."""
    proved = np.empty(x.size)
    with np.errstate(all="ignore"):
        _LOOPS.at(0).prove(kernel.upper, kernel.lower, a, x, x_, tails, heads, flows, proved)
    return proved


def close(a: Matrix) -> Matrix:
    """Return the largest matrix below ``a`` with the triangle inequality: shortest paths; the cone is the same."""
    closed = a.copy()
    with np.errstate(over="ignore"):  # a sum beyond the largest number is no shorter path
        for z in range(a.shape[-1]):
            np.minimum(closed, closed[..., :, z, None] + closed[..., None, z, :], out=closed)
    return closed


def without_flows(kernel: Kernel) -> Matrix:
    """Log ratios that hold whatever A is: the max-divergence of the two rows; shape (..., k, k)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        upper, lower = np.log(kernel.upper), np.log(kernel.lower)
        k = upper.shape[-2]
        if upper.ndim == 2:
            most = max_log_ratio(np.concatenate([upper, lower]))[:k, k:]
        else:  # column by column for all kernels of a stack
            most = np.full((*upper.shape[:-1], k), -np.inf)
            for above, below in zip(np.moveaxis(upper, -1, 0), np.moveaxis(lower, -1, 0), strict=True):
                ratios = np.where(np.isneginf(above)[..., None], -np.inf, above[..., None] - below[..., None, :])
                np.maximum(most, ratios, out=most)
    return np.maximum(most + 8 * UNIT * 700, 0.0)


def stars_of(kernel: Kernel, a: Matrix, x: Whole, x_: Whole, inside: Mask) -> _Trees:
    """Start from the best of the 2k vertices in which one state is below, or above, all others."""
    n, k = inside.shape
    bounds = np.where(np.isfinite(a), a, 0.0)
    above, below = np.exp(bounds - bounds.max(axis=0)), np.exp(-bounds)  # columns: u = A[:, z]; rows: u = -A[z, :]
    vertices = np.concatenate([above, below.T], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (kernel.upper @ vertices)[x] / (kernel.lower @ vertices)[x_]
    ratios = np.where(np.concatenate([inside, inside], axis=1) & ~np.isnan(ratios), ratios, -1.0)
    best = np.argmax(ratios, axis=1)
    centre, falling = best % k, best < k
    leaves = inside.copy()
    leaves[np.arange(n), centre] = False
    arc = np.cumsum(leaves, axis=1) - 1
    pair, state = np.nonzero(leaves)
    tails, heads = np.zeros((n, max(k - 1, 1)), dtype=np.int64), np.zeros((n, max(k - 1, 1)), dtype=np.int64)
    tails[pair, arc[pair, state]] = np.where(falling[pair], state, centre[pair])
    heads[pair, arc[pair, state]] = np.where(falling[pair], centre[pair], state)
    follows = np.zeros(n, dtype=np.bool_)
    follows[1:] = np.all(inside[1:] == inside[:-1], axis=1)
    return _Trees(x, x_, inside, follows, tails, heads, np.zeros(tails.shape), np.zeros(tails.shape))


# -- Φ of a stack of kernels, one for each phase of a cycle: each takes the bounds of the phase beside it --------------

# Arcs that changes are passed along, at most, before a step of Newton's method is taken as it is.
_MOST_PASSED = 10**8
_ENOUGH = 1e-4  # changes end to be passed on when they are this small a share of what they began with


@dataclass(slots=True, eq=False)
class _Group:
    """Kernels of a stack that have their zeros in the same places, and where the search stands for each."""

    which: Indices
    pattern: bytes
    pairs: _Pairs
    always: Matrix
    tails: Whole
    heads: Whole
    flows: Matrix
    shares: Matrix


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
        """Return upper bounds on Φ of N kernels, (N, k, k), from closed bounds A at each phase, or the same at all."""
        if self._kernel is not kernel:
            self._take(kernel)
        k = kernel.rows.shape[-1]
        a = np.ascontiguousarray(np.roll(np.broadcast_to(a, kernel.upper.shape), -self._beside, axis=0))
        bounds = np.full(kernel.upper.shape, np.inf)
        bounds[:, np.arange(k), np.arange(k)] = 0.0
        for group in self._groups:
            if not group.pairs.x.size:
                continue
            reached = group.pairs.reached[1].ravel()
            most = np.max(a[np.ix_(group.which, reached, reached)], axis=(-2, -1), initial=0.0)
            proved = np.minimum(group.always, ((most + UNIT * (k + 4)) * (1 + 4 * UNIT))[:, None])
            searched = most <= SEARCHED
            if searched.all():
                proved = np.minimum(proved, self._search(kernel, a, group))
            bounds[group.which[:, None], group.pairs.x, group.pairs.x_] = proved
        return bounds

    def solve(self, residual: Matrix) -> Matrix:
        """Solve δ = residual + Φ'δ around the cycle, with Φ' the derivatives at the last call."""
        phases, k = len(residual), int(residual.shape[-1])
        ends = np.zeros((phases, k * k, max(k - 1, 1)), dtype=np.int64)
        shares = np.zeros(ends.shape)
        for group in self._groups:
            if group.pairs.x.size:
                place = group.which[:, None], group.pairs.x * k + group.pairs.x_
                ends[place], shares[place] = group.tails * k + group.heads, group.shares
        return solve_around(residual, ends, shares, self._beside, self._loops)

    def _search(self, kernel: Kernel, a: Matrix, group: _Group) -> Matrix:
        proved = np.empty((group.which.size, group.pairs.x.size))
        search = self._loops(proved.size * a.shape[-1] ** 2).search_each
        # in one layout, for the loop is compiled anew for every other
        laws = (np.ascontiguousarray(kernel.upper), np.ascontiguousarray(kernel.lower))

        def look(part: slice) -> None:
            trees = (array[part] for array in (group.tails, group.heads, group.flows, group.shares))
            with np.errstate(all="ignore"):
                search(*laws, a, group.which[part], group.pairs.x, group.pairs.x_, *trees, proved[part])

        if not group.shares.any():  # all begin where the first one ends
            look(slice(0, 1))
            group.tails[:], group.heads[:] = group.tails[0], group.heads[0]
        in_parts(look, group.which.size, group.pairs.x.size * a.shape[-1] ** 2)
        return proved

    def _loops(self, work: int) -> Any:
        self._work += work
        _OF_STACKS.count(work)
        return _OF_STACKS.at(self._work)

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
            self._groups.append(_grouped(kernel, which, packed[which[0]].tobytes(), same[0] if same else None))


def solve_around(
    residual: Matrix,
    ends: Whole,
    shares: Matrix,
    beside: int,
    loops_for: Callable[[int], Any] = lambda work: _OF_STACKS.at(work),
) -> Matrix:
    """Solve δ = residual + Φ'δ, Φ' as :data:`Slopes`, around a cycle: phase j looks at phase j + ``beside`` = ±1."""
    phases, unknowns = len(residual), shares.shape[1]
    places: Indices = np.arange(phases)
    source: Indices = np.roll(places, -beside)
    order: Indices = np.ascontiguousarray(places[::-beside])
    change = np.empty((phases, unknowns))
    direct = unknowns <= DENSE
    most = max(4, (_INTERPRETED if direct else _MOST_PASSED) // ends.size)
    enough = _ENOUGH * float(np.max(np.abs(residual)))
    arguments = ends, shares, source, order, residual.reshape(phases, -1)
    if not loops_for(ends.size * (1 if direct else most)).pass_on(*arguments, most, enough, change) and direct:
        _solve_around(*arguments, change)  # a cycle that hardly forgets would take very many rounds
    return change.reshape(residual.shape)


def _grouped(kernel: Kernel, which: Indices, pattern: bytes, known: _Group | None) -> _Group:
    if known is not None and known.pattern == pattern:
        pairs = known.pairs
    else:
        pairs = _Pairs.of(Kernel(kernel.upper[which[0]], kernel.lower[which[0]], kernel.rows[which[0]]))
    x, x_, k = pairs.x, pairs.x_, len(pairs.kernel.rows)
    always = without_flows(Kernel(kernel.upper[which], kernel.lower[which], kernel.rows[which]))[:, x, x_]
    if known is not None and np.array_equal(known.pairs.x, x) and np.array_equal(known.pairs.inside, pairs.inside):
        return replace(known, which=which, pattern=pattern, pairs=pairs, always=always)
    first = stars_of(pairs.kernel, np.zeros((k, k)), x, x_, pairs.inside)
    tails, heads = (np.repeat(ends[None], which.size, axis=0) for ends in (first.tails, first.heads))
    return _Group(which, pattern, pairs, always, tails, heads, np.zeros(tails.shape), np.zeros(tails.shape))


def _solve_around(
    ends: Whole, shares: Matrix, source: Indices, order: Indices, residual: Matrix, change: Matrix
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
