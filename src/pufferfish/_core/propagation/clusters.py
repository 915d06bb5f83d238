r"""Leakage propagation on every Bayesian network: one sweep over a cluster tree (docs/proofs/networks.md).

Clusters C of a junction tree tell each other what the records behind them tell. Every record has one **home**, a
smallest cluster that holds it. With record-level losses d_v and the separator S of C and its neighbour D

.. math::
    A_C = \sum_{v \text{ at home in } C} d_v + \sum_{E \in N(C)} M_{E \to C} \qquad
    M_{C \to D} = \Phi_{P(C|S)}(A_C \text{ without } D) \qquad
    \mathrm{leakage}(v) = d_v + \Phi_{P(C|v)}(A_C \text{ without } d_v), \; C \text{ the home of } v

**Only what matters needs states.** A bound on variables of S alone passes as it is, outside of Φ; for the others Φ is
taken over the configurations of their variables V, with P(V | S). Any upper bound on Φ will do, and every step takes
the best that it can afford: Φ over all configurations of V at once; one variable at a time, with the others as a
separator; for a term left out of V its largest entry; the max-divergence of P(V | S), whatever the losses are.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import BoundedCache
from pufferfish._core import Mask, Matrix, Vector, Whole
from pufferfish._core.networks.cluster_laws import MOST_ENTRIES, ClusterLaws, Configurations
from pufferfish._core.networks.junction_tree import Bucket, ClusterTree, Scope, Table, buckets_of, cluster_tree
from pufferfish._core.numbers.compiled import Loops
from pufferfish._core.numbers.rounding import UNIT, bracket, up
from pufferfish._core.propagation.cluster_plan import INNER, Layout, Term, eliminate, gathered, sweep, worst_of
from pufferfish.errors import ModelError

LOOPS = Loops(
    gathered,
    sweep,
    eliminate,
    worst_of,
    after=50_000,  # pairs times squared columns
)
# What Φ of one step may take, about; the first is taken with which a sweep is no longer than it may.
_SECONDS_OF_A_STEP = (1.0, 0.3, 0.1, 0.03, 0.01)
# What all steps may take, about, and up to when other homes of records are tried.
_SECONDS_OF_A_SWEEP, SECONDS_OF_ALTERNATIVES = 12.0, 1.0
_KEPT = 4  # losses whose leakage is remembered, and sweeps, for losses that are 0 at other nodes
_LOOSE = 1e-4  # how near to epsilon a calibration comes where a sweep takes more than a second
_GUESSES = 6  # steps by a parabola before a calibration searches by secants
_FAR_OFF = 1e30  # no step by a parabola starts from a value this many times its goal


@dataclass(frozen=True, slots=True)
class Attained:
    """Where the leakage of a network is attained, and what it is made of, in nats."""

    total: float  # rounded up; 0 where there is no secret
    node: int | None = None  # 0-based; None where there is no secret
    pair: tuple[int, int] = (0, 0)  # its two states
    own: float = 0.0  # what the node itself tells
    # and what each neighbouring cluster tells about it: the nodes of the cluster but for the node itself, and how much
    neighbours: tuple[tuple[Scope, float], ...] = ()


class ClusterSweep:
    """The steps that make all messages of a network, and what every secret node leaks.

    Planned once for losses that are 0 at the same nodes, from buckets of the nodes that matter; then it only
    calculates.
    """

    def __init__(
        self, buckets: Sequence[Bucket], tables: Sequence[Table], sizes: Sequence[int], lossy: Scope, secret: Scope
    ) -> None:
        # phase 1: clusters, their laws, and the home of every record
        self._states = states = Configurations(ClusterLaws(buckets, tables, sizes), sizes)
        self._tree = tree = cluster_tree(buckets)
        self._homes = homes = _homes(tree, sizes)
        self._near: list[list[int]] = [[] for _ in tree.scopes]
        for cluster, parent in enumerate(tree.parents):
            if parent >= 0:
                self._near[cluster].append(parent)
                self._near[parent].append(cluster)
        possible = {v: states.possible(tree.buckets[homes[v]], v) for v in sorted({*lossy, *secret})}
        self._lossy: list[tuple[int, Whole]] = [(v, possible[v]) for v in lossy]
        self._secret: list[tuple[int, Whole]] = [(v, possible[v]) for v in secret if possible[v].size > 1]
        # phase 2: the steps, with the most time for each that all together can be afforded
        for most in _SECONDS_OF_A_STEP:
            self._lay_out(Layout(states, most))
            if self._layout.seconds <= _SECONDS_OF_A_SWEEP:
                break
        self.seconds = self._layout.seconds
        self._steps, self._work = self._layout.steps(), 0.0
        self._known: BoundedCache[Attained] = BoundedCache(_KEPT)
        self._totals = _totals(self._secret, self._own, self._leaks)

    def _lay_out(self, layout: Layout) -> None:
        """Plan all steps in an empty layout."""
        self._layout = layout
        self._own = {v: layout.loss(v, can.size) for v, can in self._lossy}
        self._at_home: list[list[Term]] = [[] for _ in self._tree.scopes]
        for v, term in self._own.items():
            if term.size > 1:
                self._at_home[self._homes[v]].append(term)
        self._told: list[dict[int, Term]] = [{} for _ in self._tree.scopes]
        self._leaks: list[list[Term | None]] = []
        self._plan()

    def _plan(self) -> None:
        """Plan all messages, and what every secret record leaks besides its own loss, in one way or several."""
        tree, layout = self._tree, self._layout
        edges = [(cluster, parent) for cluster, parent in enumerate(tree.parents) if parent >= 0]
        for sender, receiver in (*reversed(edges), *((parent, cluster) for cluster, parent in edges)):
            message = self._sent(sender, receiver, {}, None)
            if message is not None:
                self._told[receiver][sender] = message
        self._leaks = [[self._leak(v, self._homes[v], {})] for v, _ in self._secret]
        for (v, _), leaks in zip(self._secret, self._leaks, strict=True):
            if layout.seconds <= SECONDS_OF_ALTERNATIVES and len(tree.scopes[self._homes[v]]) > 1:
                leaks.extend(self._elsewhere(v))

    def _sent(self, sender: int, receiver: int, instead: dict[int, Term | None], without: Term | None) -> Term | None:
        """Plan the message of a cluster to another; see :meth:`_terms`."""
        tree = self._tree
        about = tree.scopes[sender if tree.separates[sender] else receiver]  # one of the two is a separator
        terms = self._terms(sender, {receiver: None, **instead}, without)
        return self._layout.message(tree.buckets[sender], tree.scopes[sender], about, terms)

    def _terms(self, cluster: int, instead: dict[int, Term | None], without: Term | None) -> list[Term]:
        """Return the bounds at home in a cluster, but one, and its neighbours' messages, some replaced by others."""
        messages = {**self._told[cluster], **instead} if instead else self._told[cluster]
        every = (*self._at_home[cluster], *messages.values())
        return [term for term in every if term is not None and term is not without]

    def _leak(self, v: int, cluster: int, instead: dict[int, Term | None]) -> Term | None:
        """Plan what a cluster that is the home of a record tells about it."""
        terms = self._terms(cluster, instead, self._own.get(v))
        return self._layout.message(self._tree.buckets[cluster], self._tree.scopes[cluster], (v,), terms)

    def _elsewhere(self, v: int) -> list[Term | None]:
        """Plan what leaks of a record when another cluster is its home: messages change on the way there alone."""
        tree = self._tree
        leaks: list[Term | None] = []
        waiting: list[tuple[int, int, dict[int, Term | None]]] = [(self._homes[v], -1, {})]
        while waiting:
            home, came_from, instead = waiting.pop()
            if home != self._homes[v] and not tree.separates[home]:
                leaks.append(self._leak(v, home, instead))
            for cluster in self._near[home]:
                if cluster != came_from and v in tree.scopes[cluster]:
                    message = self._sent(home, cluster, instead, self._own.get(v))
                    waiting.append((cluster, home, {home: message}))
        return leaks

    def losses(self, losses: Sequence[Matrix]) -> Vector:
        """Return closed losses of all nodes as the flat array that memory begins with."""
        return np.concatenate([np.zeros(0), *(_flat(losses[v], can) for v, can in self._lossy)])

    def pairs(self, secrets: Sequence[Mask] | None) -> Mask:
        """Return which pairs of possible states of every secret node shall not be told apart, flat."""
        if secrets is None:
            different = {k: ~np.eye(k, dtype=np.bool_).ravel() for k in {can.size for _, can in self._secret}}
            parts = [different[can.size] for _, can in self._secret]
        else:
            parts = [_flat(secrets[v], can) for v, can in self._secret]
        return np.concatenate([np.zeros(0, dtype=np.bool_), *parts])

    def worst(self, losses: Vector, pairs: Mask) -> Attained:
        """Return where losses leak most; what was asked last is known."""
        return self._known.of((losses.tobytes(), pairs.tobytes()), lambda: self._swept(losses, pairs))

    def _swept(self, losses: Vector, pairs: Mask) -> Attained:
        """Take all steps, and return where losses leak most."""
        memory = self._filled(losses)
        with np.errstate(all="ignore"):
            worst: tuple[Any, ...] = LOOPS.at(self._work).worst_of(*self._totals, pairs, memory)
        which, x, x_, way, total = worst
        if which < 0:
            return Attained(0.0)
        node, can = self._secret[int(which)]
        place = int(x) * can.size + int(x_)
        loss = float(memory[self._own[node].source + place]) if node in self._own else 0.0
        leak = self._leaks[int(which)][int(way)]
        neighbours = tuple(
            (tuple(v for v in term.cluster if v != node), float(memory[term.source + (place if term.scope else 0)]))
            for term in (leak.leaves() if leak is not None else ())
        )
        return Attained(float(total), node, (int(can[x]), int(can[x_])), loss, neighbours)

    def _filled(self, losses: Vector) -> Vector:
        """Take all steps, and return memory."""
        memory = np.zeros(self._layout.room)
        memory[: losses.size] = losses
        self._work += self._layout.work
        loops = LOOPS.at(self._work)
        done = 0
        with np.errstate(all="ignore"):
            for large in self._layout.large:
                loops.sweep(self._steps, done, large.step + 1, memory)
                done = large.step + 1
                self._take_out(loops, large, memory)
            loops.sweep(self._steps, done, len(self._steps.outs), memory)
        return memory

    def _take_out(self, loops: Any, large: Any, memory: Vector) -> None:
        """Finish a step whose Φ is taken one variable at a time."""
        a = loops.gathered(self._steps, large.step, INNER, large.columns, memory)
        for kernel in large.kernels:
            rows = len(kernel[0]) - 1
            message = np.empty((rows, rows))
            loops.eliminate(*kernel, a, message)
            np.minimum(message, up(float(a.max())), out=message)  # where no path leads
            a = message
        rows, out = len(a), int(self._steps.outs[large.step])
        square = memory[out : out + rows * rows].reshape(rows, rows)
        square += np.minimum(a, large.cap)
        square *= 1 + 2 * UNIT
        np.fill_diagonal(square, 0.0)


def _homes(tree: ClusterTree, sizes: Sequence[int]) -> dict[int, int]:
    """Return for every node its home: the separator that it is alone, or the smallest bucket that holds it.

    At larger separators Φ would be taken twice, which is no less than once.
    """
    homes: dict[int, int] = {}
    least: dict[int, float] = {}
    for cluster, scope in enumerate(tree.scopes):
        if tree.separates[cluster] and len(scope) > 1:
            continue
        size = math.prod(float(sizes[v]) for v in scope)
        for v in scope:
            if size < least.get(v, np.inf):
                homes[v], least[v] = cluster, size
    return homes


def _flat(matrix: NDArray[Any], can: Whole) -> NDArray[Any]:
    """Return the entries of a matrix for pairs of states that a node can have."""
    return (matrix if len(matrix) == can.size else matrix[np.ix_(can, can)]).ravel()


def _totals(
    secret: Sequence[tuple[int, Whole]], loss_terms: dict[int, Term], leaks: Sequence[Sequence[Term | None]]
) -> tuple[Whole, ...]:
    """Return what ``worst_of`` needs to add a record's loss and what else leaks."""
    every_leak = [leak for several in leaks for leak in several]
    numbers = [
        [loss_terms[v].source if v in loss_terms else -1 for v, _ in secret],
        [0, *np.cumsum([len(several) for several in leaks])],
        [-1 if leak is None else leak.source for leak in every_leak],
        [0 if leak is None else leak.size for leak in every_leak],
        [can.size for _, can in secret],
    ]
    return tuple(np.array(column, dtype=np.int64) for column in numbers)


class ClusterPropagation:
    """Leakage of a Bayesian network, for any record-level losses of its nodes.

    ``tables`` has P(X_j | parents) for every node j, in order: axes for its parents, then for j; rows are
    distributions. ``sizes`` are the numbers of states.

    Examples
    --------
    >>> flip = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> family = ClusterPropagation([((0,), np.array([0.5, 0.5])), ((0, 1), flip), ((0, 2), flip)], [2, 2, 2])
    >>> one = 1 - np.eye(2)
    >>> found = family.leakage([one, one, one])
    >>> round(found.total, 4), found.node, round(found.own, 4)
    (2.5523, 0, 1.0)
    >>> sorted((near, round(nats, 4)) for near, nats in found.neighbours)
    [((1,), 0.7761), ((2,), 0.7761)]
    """

    def __init__(self, tables: Sequence[Table], sizes: Sequence[int]) -> None:
        self._tables = tables
        self._sizes = sizes
        self._sweeps: BoundedCache[ClusterSweep] = BoundedCache(_KEPT)

    @cached_property
    def affordable(self) -> bool:
        """Whether the laws of all clusters can be made; otherwise no bound of this kind is known."""
        return all(math.prod(self._sizes[v] for v in bucket.scope) <= MOST_ENTRIES for bucket in self._buckets)

    @cached_property
    def _buckets(self) -> list[Bucket]:
        return buckets_of([nodes for nodes, _ in self._tables], self._sizes)

    def leakage(self, losses: Sequence[Matrix], secrets: Sequence[Mask] | None = None) -> Attained:
        """Bound the leakage, for losses and (optional) secrets of every node: (k_i, k_i) matrices.

        Losses are ≥ 0, 0 on the diagonal; else a ModelError. Secrets are the pairs that shall not be told apart, by
        default all.
        """
        closed = closed_losses(losses, self._sizes)
        plan = self._plan(closed, secrets)
        return plan.worst(plan.losses(closed), plan.pairs(secrets))

    def least_divisor(
        self,
        losses: Sequence[Matrix],
        epsilon: float,
        start: float,
        secrets: Sequence[Mask] | None = None,
        tolerance: float = 1e-6,
    ) -> float:
        """Least number to divide the losses by so that at most epsilon leaks, or ``inf``; slow ones to 1e-4."""
        closed = closed_losses(losses, self._sizes)
        plan = self._plan(closed, secrets)
        flat, pairs = plan.losses(closed), plan.pairs(secrets)

        def leakage(divisor: float) -> float:
            with np.errstate(over="ignore", under="ignore"):
                divided = np.where(flat > 0, np.nextafter(flat / divisor, np.inf), 0.0)
            return plan.worst(divided, pairs).total

        if plan.seconds > 1:
            tolerance = max(tolerance, _LOOSE)
        start = _crossing(leakage, epsilon * (1 - tolerance / 2), start, tolerance / 2)
        return bracket(leakage, epsilon, start, tolerance=tolerance, from_above=False).enough

    def _plan(self, losses: Sequence[Matrix], secrets: Sequence[Mask] | None) -> ClusterSweep:
        """Return the steps for losses that are 0 at the same nodes, made once."""
        lossy = tuple(v for v, loss in enumerate(losses) if loss.any())
        secret = tuple(v for v in range(len(losses)) if secrets is None or secrets[v].any())
        return self._sweeps.of((lossy, secret), lambda: self._planned(lossy, secret))

    def _planned(self, lossy: Scope, secret: Scope) -> ClusterSweep:
        needed = with_ancestors(self._tables, {*lossy, *secret})
        tables = [self._tables[v] for v in needed]
        every = len(needed) == len(self._tables)
        buckets = self._buckets if every else buckets_of([nodes for nodes, _ in tables], self._sizes)
        return ClusterSweep(buckets, tables, self._sizes, lossy, secret)


def with_ancestors(tables: Sequence[Table], nodes: Iterable[int]) -> list[int]:
    """Return nodes and all that lead to them: what only follows them tells nothing."""
    ancestors = set(nodes)
    fresh = list(ancestors)
    while fresh:
        fresh = list({v for node in fresh for v in tables[node][0] if v not in ancestors})
        ancestors.update(fresh)
    return sorted(ancestors)


def _crossing(leakage: Callable[[float], float], goal: float, start: float, tolerance: float) -> float:
    """Guess the divisor at which the leakage comes to a goal: it is nearly a u + c u², with u = 1 / divisor."""
    u, last = 1 / start, None
    for _ in range(_GUESSES):
        if not 0 < u < math.inf or 1 / u == math.inf:  # numbers do not reach so far
            return start
        value = leakage(1 / u)
        if abs(value / goal - 1) <= tolerance or not 1 / _FAR_OFF < value / goal < _FAR_OFF:
            break
        a, c = value / u, 0.0
        if last is not None and last[0] != u:
            c = (a - last[1]) / (u - last[0])
        last = u, a
        a -= c * u
        if a <= 0 or a * a + 4 * c * goal < 0:  # no parabola through both comes to the goal
            break
        u = 2 * goal / (a + math.sqrt(a * a + 4 * c * goal))
    return 1 / u


def closed_losses(losses: Sequence[Matrix], sizes: Sequence[int]) -> list[Matrix]:
    """Check losses, and close them by shortest paths, many at once: a sum of doubles rounded up."""
    matrices: list[Matrix] = [np.asarray(loss, dtype=np.float64) for loss in losses]
    if [loss.shape for loss in matrices] != [(k, k) for k in sizes]:
        raise ModelError(f"losses are of {len(matrices)} nodes, expected one matrix of pairs of states for each node")
    by_size: dict[int, list[int]] = {}
    for v, loss in enumerate(matrices):
        by_size.setdefault(len(loss), []).append(v)
    for k, nodes in by_size.items():
        a = np.stack([matrices[v] for v in nodes])
        if not np.all(a >= 0) or np.any(np.diagonal(a, axis1=1, axis2=2)):
            raise ModelError("a loss is negative, no number, or not 0 from a state to itself")
        others = a[:, ~np.eye(k, dtype=bool)]
        if others.size and others.max() <= 2 * others.min():
            continue  # no way round is shorter, as for counts of many states
        with np.errstate(over="ignore"):  # a sum beyond the largest double is no bound
            for z in range(k):
                np.minimum(a, (a[:, :, z, None] + a[:, z, None, :]) * (1 + 2 * UNIT), out=a)
        for v, closed in zip(nodes, a, strict=True):
            matrices[v] = closed
    return matrices
