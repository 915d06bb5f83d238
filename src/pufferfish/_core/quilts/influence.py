r"""Max-influence of chain quilts: how much the records at a distance tell about one record (docs/proofs/quilts.md).

For a node i of a chain (1-based) and a quilt {X_{i−a}, X_{i+b}} the log ratio of the quilt's law given two values x, x'
of X_i splits into a right and a left part (Section 4.4):

.. math::
    \mathrm{right}_b(x,x') &= \max_y \log P^b(x,y)/P^b(x',y) \\
    \mathrm{left}_{i,a}(x,x') &= \log \pi_i(x')/\pi_i(x) + \max_y \log P^a(y,x)/P^a(y,x')

The max-influence is the largest sum over pairs x ≠ x' of the support of π_i (Definition 4.1). Neither part ever
increases with its distance. The node enters only through the **prior** log π_i(x')/π_i(x), so nodes fall into groups
that share their left parts, with a prior that covers all of them.

:class:`IntervalInfluence` is the same where the matrix of every step is any one between two bounds, and the initial law
any (docs/proofs/intervals.md).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pufferfish._core import Indices, Mask, Matrix, Vector
from pufferfish._core.chains.markov import (
    LogPowers,
    LogVectorPath,
    bool_matmul,
    closure,
    log_matmul,
    log_of,
    mixes,
    stationary_law,
    stationary_log_error,
)
from pufferfish._core.divergence import max_log_ratio
from pufferfish._core.numbers.rounding import UNIT, up
from pufferfish._core.phi.rows_between_bounds import EntryBounds, IntervalRatios
from pufferfish.errors import ModelError

# -- Max-influence of chain quilts where the matrix of every step is any one between two bounds ----------------------


_WORK, _MOST_STEPS = 3e8, 2048  # bounds are computed step by step up to so many, and while steps times k⁵ is below this
_NEAR = 1e-4  # a diameter below this is left to Birkhoff's theorem
_SETTLED = 1e-9  # a prior that moves by no more than this is taken for all later nodes


@dataclass(frozen=True, slots=True, eq=False)
class NodeGroup:
    """Consecutive nodes first..last, 1-based, that share their prior.

    Where they are several, left parts run over every state that any record can take. ``pairs``, (2, n), are the secret
    pairs: ordered pairs x ≠ x' of states that the nodes can take; ``prior``, (n,), bounds log π_i(x')/π_i(x) of each.
    """

    first: int
    last: int
    pairs: Indices
    prior: Vector


class IntervalInfluence:
    """Right and left parts of matrices between bounds (k, k), rows = from, computed when asked for and kept."""

    def __init__(self, lower: Matrix, upper: Matrix) -> None:
        self._possible: Mask = upper > 0
        self._k: int = lower.shape[0]
        self._independent = bool(np.all(lower == upper) and np.all(lower == lower[0]))  # nothing is told, exactly
        self._ratios = IntervalRatios(lower, upper)
        self._entries = EntryBounds(lower, upper)
        self._most = int(np.clip(_WORK / self._k**5, 64, _MOST_STEPS))
        self._forward = [self._ratios.whatever]
        self._columns = [_log_ratios(upper.T, lower.T)]

    def right(self, b: int) -> Matrix:
        """Return the right part at distance b for all ordered pairs; shape (k, k)."""
        if self._independent:
            return np.zeros((self._k, self._k))
        n = self._advance(b)
        near = self._forward[n - 1]
        return np.minimum(near, self._beyond(b)) if b > n else near

    def left(self, group: NodeGroup, a: int) -> Vector:
        """Return the left part at distance a of the group's nodes, for its pairs; shape (n,)."""
        if self._independent:
            return np.zeros(group.prior.shape)
        n = self._advance(a)
        with np.errstate(invalid="ignore"):
            by_entries = group.prior + self._columns[n - 1][group.pairs[0], group.pairs[1]]
        diameter = self._beyond(a) if a > n else _diameter(self._forward[n - 1])
        return np.where(by_entries < diameter, by_entries, diameter)  # what is no number is no bound

    def groups(self, length: int) -> Iterator[NodeGroup]:
        """Yield the groups of nodes of a chain of ``length`` records: ever longer blocks, until the prior settles."""
        reached, prior = np.ones(self._k, dtype=np.bool_), np.full((self._k, self._k), np.inf)
        first, last = 1, 1
        while first <= length:
            yield _group(first, last, prior, _both(reached))
            for _ in range(min(last - first + 1, self._k)):  # falls at every step until it stays
                reached = bool_matmul(reached[None, :], self._possible)[0]
            first = last + 1
            before, n = prior, self._advance(last)
            prior = self._columns[n - 1].T
            with np.errstate(invalid="ignore"):
                settled = bool(np.all((before - prior <= _SETTLED) | ((before == prior) & (first > 4 * self._k))))
            last = length if settled or n < first - 1 else min(length, first + first // 4)

    def _advance(self, steps: int) -> int:
        """Look at products of up to so many matrices; return of how many were looked at."""
        while len(self._forward) < min(steps, self._most) and not _diameter(self._forward[-1]) < _NEAR:
            self._entries.advance()
            least, most = self._entries.least, self._entries.most
            before = self._forward[-1]
            forward = np.minimum(np.minimum(self._ratios(before), before), np.maximum(_log_ratios(most, least), 0.0))
            np.fill_diagonal(forward, 0.0)
            self._forward.append(forward)
            self._columns.append(np.minimum(self._columns[-1], _log_ratios(most.T, least.T)))
        return min(steps, len(self._forward))

    def _beyond(self, distance: int) -> float:
        """Bound the Hilbert distance of any two rows of a product of more matrices than were looked at."""
        n = len(self._forward)
        diameter = _diameter(self._forward[-1])
        if not diameter < math.inf:
            return math.inf
        rate = math.tanh(diameter / 4) * (1 + 8 * UNIT)
        times = min(distance // n - 1, 1000)
        return up(diameter * (1 + 1e-12) * rate**times, 8) + UNIT if rate < 1 else diameter


def _diameter(forward: Matrix) -> float:
    """Return a bound on Hilbert's projective diameter, rounded up."""
    return up(float(np.max(forward + forward.T)))


def _log_ratios(most: Matrix, least: Matrix) -> Matrix:
    """Return max over y of log most(x,y)/least(x',y), rounded up; shape (k, k)."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.concatenate([most, least]))
    return max_log_ratio(logs)[: len(most), len(most) :] + 8 * UNIT * 700


SINGLE_NODES = 4096  # nodes up to here are groups of their own until the marginals settle

SETTLED = 1e-10
"""Marginals have settled once every later prior is within this of the stationary one, plus rounding; the excess
and the rounding are added to the prior, so the bound holds whatever this number."""

NOTHING = 1e-10  # nats by which a part may still fall and count as settled


class ChainInfluence:
    """Right and left log-ratio bounds of one chain, computed when asked for and kept.

    ``initial`` is the initial law (k,), "stationary", or "any". If ``structural``, the left maximum runs over states
    that the record can take (Definition 4.1); otherwise over all states, as the paper's equation prints it: no less.
    """

    def __init__(
        self, transition_matrix: Matrix, initial: Vector | Literal["stationary", "any"], *, structural: bool = True
    ) -> None:
        self._p = transition_matrix
        self._k: int = transition_matrix.shape[0]
        self._initial: Vector | Literal["stationary", "any"] = initial
        self._structural = structural
        self._independent = bool(np.all(transition_matrix == transition_matrix[0]))  # then nothing is told, exactly
        self._powers = LogPowers(transition_matrix)
        self._known: dict[tuple[int, bytes | None], Matrix] = {}
        self._reachable = np.ones(self._k, dtype=np.bool_)
        if structural and not isinstance(initial, str):
            self._reachable = closure(initial > 0, transition_matrix > 0)

    def right(self, b: int) -> Matrix:
        """Return the right part at distance b for all ordered pairs; shape (k, k)."""
        if self._independent:
            return np.zeros((self._k, self._k))
        return self._ratios(b, None)

    def left(self, group: NodeGroup, a: int) -> Vector:
        """Return the left part at distance a of the group's nodes, for its pairs; shape (n,)."""
        if self._independent:
            return np.zeros(group.prior.shape)
        exact = self._structural and group.first == group.last
        support = self._possible(group.first - a) if exact else self._reachable
        return group.prior + self._ratios(a, support)[group.pairs[0], group.pairs[1]]

    def _ratios(self, distance: int, support: Mask | None) -> Matrix:
        """Return max over y of log P^d(x,y)/P^d(x',y); or of log P^d(y,x)/P^d(y,x') over y in ``support``."""
        key = distance, None if support is None else support.tobytes()
        if key not in self._known:
            # no path leaves all states: then, as on the right, what is told never grows with the distance
            near = self._settled_before(distance, support) if support is None or support.all() else None
            if near is None:
                logs = self._powers.log(distance)
                rows = logs if support is None else np.ascontiguousarray(logs[support].T)
                near = max_log_ratio(rows) + 2 * self._powers.log_error(distance)
            self._known[key] = near
        return self._known[key]

    def _settled_before(self, distance: int, support: Mask | None) -> Matrix | None:
        """Return the part at a shorter distance, a power of two, that has settled: no later one tells more."""
        near = 1
        while near < distance:
            ratios = self._ratios(near, support)
            with np.errstate(invalid="ignore"):  # ∞ less ∞ is no number, and has not settled
                settled = bool(np.max(ratios + ratios.T) <= NOTHING)
            if settled:
                return ratios
            near *= 2
        return None

    def groups(self, length: int) -> Iterator[NodeGroup]:
        """Yield the groups of nodes of a chain of ``length`` records, first to last."""
        if isinstance(self._initial, str):
            yield from self._stationary(length) if self._initial == "stationary" else self._any(length)
        else:
            yield from self._given(self._initial, length)

    def at(self, node: int, length: int) -> NodeGroup:
        """Return a node of a chain of ``length`` records by itself, without those before it."""
        if isinstance(self._initial, str):
            if self._initial == "stationary":
                return next(self._stationary(length))
            return _group(node, node, self._backward_any(node - 1), _both(self._possible(node)))
        support = self._possible(node)
        logs = log_matmul(log_of(self._initial, self._initial > 0)[None], self._powers.log(node - 1))[0]
        largest = float(np.max(np.abs(logs), where=support, initial=0.0))
        error = self._powers.log_error(node - 1) + UNIT * (self._k + 8 + 4 * largest)
        return _group(node, node, _difference(logs) + 2 * error, _both(support))

    def _stationary(self, length: int) -> Iterator[NodeGroup]:
        everywhere = np.ones(self._k, dtype=np.bool_)
        log_pi, error = self._log_stationary(everywhere)
        yield _group(1, length, _difference(log_pi) + error, _both(everywhere))

    def _given(self, initial: Vector, length: int) -> Iterator[NodeGroup]:
        path = LogVectorPath(initial, self._p)
        settled: dict[bytes, tuple[Vector, float] | None] = {}
        for first, last in _blocks(length):
            here = path.support
            if here.tobytes() not in settled:
                stays = not np.any(self._p[here][:, ~here]) and mixes(self._p, here)
                try:
                    settled[here.tobytes()] = self._log_stationary(here) if stays else None
                except ModelError:
                    settled[here.tobytes()] = None  # too small to compute: searched node by node
            stationary = settled[here.tobytes()]
            if stationary is not None:
                log_pi, error = stationary
                ratio = path.log[here] - log_pi[here]
                drift = float(ratio.max() - ratio.min())
                if drift <= SETTLED:
                    # once for the stationary law in the prior, once for it in the drift
                    rounding = 2 * error + 2 * path.log_error
                    yield _group(first, length, _difference(log_pi) + drift + rounding, _both(here))
                    return
            prior, pairs = np.full((self._k, self._k), -np.inf), np.zeros((self._k, self._k), dtype=np.bool_)
            for _ in range(first, last + 1):
                both = _both(path.support)
                now = _difference(path.log) + 2 * path.log_error
                prior = np.where(both, np.maximum(prior, now), prior)
                pairs |= both
                path.advance()
            yield _group(first, last, prior, pairs)

    def _any(self, length: int) -> Iterator[NodeGroup]:
        everywhere = np.ones(self._k, dtype=np.bool_)
        settled = self._log_stationary(everywhere) if mixes(self._p, everywhere) else None
        for first, last in _blocks(length):
            reached = self._possible(first)  # never grows with the node
            prior, pairs = self._backward_any(first - 1), _both(reached)
            if settled is not None and reached.all():
                log_pi, error = settled
                rounding = error + 2 * self._powers.log_error(first - 1)
                if np.max(prior - _difference(log_pi)) <= SETTLED + rounding:
                    yield _group(first, length, prior, pairs)
                    return
            yield _group(first, last, prior, pairs)

    def _backward_any(self, steps: int) -> Matrix:
        """Prior under every initial law: max over starts y of log P^steps(y,x')/P^steps(y,x); shape (k, k)."""
        if steps == 0:
            unbounded = np.full((self._k, self._k), np.inf)
            np.fill_diagonal(unbounded, 0.0)
            return unbounded
        return self._ratios(steps, np.ones(self._k, dtype=np.bool_)).T.copy()

    def _possible(self, node: int) -> Mask:
        """Return the states that a node can have; shape (k,)."""
        first = np.ones(self._k, dtype=np.bool_) if isinstance(self._initial, str) else self._initial > 0
        return bool_matmul(first[None], self._powers.support(node - 1))[0]

    def _log_stationary(self, states: Mask) -> tuple[Vector, float]:
        """Return the log stationary law on an irreducible set of states, and a bound on a difference's error."""
        members = np.flatnonzero(states)
        logs = np.full(self._k, -np.inf)
        logs[members] = np.log(stationary_law(self._p[np.ix_(members, members)]))
        finite = float(np.max(np.abs(logs[members])))
        return logs, 2 * (stationary_log_error(len(members)) + 2**-51 * finite)


def _difference(logs: Vector) -> Matrix:
    """Return logs[x'] − logs[x] for all ordered pairs (x, x'); meaningless outside the support; shape (k, k)."""
    with np.errstate(invalid="ignore"):
        return logs[None, :] - logs[:, None]


def _both(support: Mask) -> Mask:
    """Return which ordered pairs of different states are both possible; shape (k, k)."""
    return support[:, None] & support[None, :] & ~np.eye(support.size, dtype=np.bool_)


def _group(first: int, last: int, prior: Matrix, pairs: Mask) -> NodeGroup:
    """Return the group with the priors of its pairs; a prior that is no number fails closed, as +∞."""
    x, x_ = np.nonzero(pairs)
    chosen = prior[x, x_]
    return NodeGroup(first, last, np.array([x, x_], dtype=np.intp), np.where(np.isnan(chosen), np.inf, chosen))


def _blocks(length: int) -> Iterator[tuple[int, int]]:
    """Yield the groups of nodes that have not settled: single ones first, then ever longer blocks."""
    first = 1
    while first <= length:
        last = min(length, first + first // (SINGLE_NODES + 1))
        yield first, last
        first = last + 1
