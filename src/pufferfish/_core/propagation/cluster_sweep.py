"""The sweep over a cluster tree: which messages are made, in which order, and what they tell of every secret node.

The mathematics is in :mod:`pufferfish._core.propagation.clusters`. A sweep is planned once for losses that are 0 at the
same nodes, and then only calculates.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferfish._base.progress import BoundedCache
from pufferfish._core.networks.cluster_laws import ClusterLaws, Table
from pufferfish._core.networks.configurations import Configurations
from pufferfish._core.networks.junction_tree import Bucket, ClusterTree, Scope, cluster_tree
from pufferfish._core.numbers.compiled import Loops
from pufferfish._core.numbers.rounding import UNIT, up
from pufferfish._core.propagation.cluster_plan import Layout, Term
from pufferfish._core.propagation.loops import INNER, eliminate, gathered, sweep, worst_of

__all__ = ["LOOPS", "SECONDS_OF_ALTERNATIVES", "Attained", "ClusterSweep"]

LOOPS = Loops(
    gathered,
    sweep,
    eliminate,
    worst_of,
    after=50_000,  # pairs times squared columns
)

_SECONDS_OF_A_STEP = (1.0, 0.3, 0.1, 0.03, 0.01)
"""What Φ of one step may take, about; the first is taken with which a sweep is no longer than it may."""

_SECONDS_OF_A_SWEEP, SECONDS_OF_ALTERNATIVES = 12.0, 1.0
"""What all steps may take, about, and up to when other homes of records are tried."""

_KEPT = 4
"""Losses whose leakage is remembered."""

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Attained:
    """Where the leakage of a network is attained, and what it is made of.

    Parameters
    ----------
    total : float
        The leakage in nats, rounded up; 0 where there is no secret.
    node : int or None
        The node, 0-based; None where there is no secret.
    pair : (int, int)
        The two states.
    own : float
        What the node itself tells.
    neighbours : tuple of (tuple of int, float)
        What each neighbouring cluster tells about it: the nodes of the cluster but for the node itself, and nats.
    """

    total: float
    node: int | None = None
    pair: tuple[int, int] = (0, 0)
    own: float = 0.0
    neighbours: tuple[tuple[Scope, float], ...] = ()


class ClusterSweep:
    """The steps that make all messages of a network, and what every secret node leaks.

    From buckets of the nodes that matter, their tables, the numbers of states of all nodes, and the nodes that have a
    loss or are secret. Planned once for losses that are 0 at the same nodes; then it only calculates.
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
        self._lossy: list[tuple[int, Indices]] = [(v, possible[v]) for v in lossy]
        self._secret: list[tuple[int, Indices]] = [(v, possible[v]) for v in secret if possible[v].size > 1]
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
        parts = [_flat(losses[v], can) for v, can in self._lossy]
        return np.concatenate(parts) if parts else np.zeros(0)

    def pairs(self, secrets: Sequence[Mask] | None) -> Mask:
        """Return which pairs of possible states of every secret node shall not be told apart, flat."""
        if secrets is None:
            different = {k: ~np.eye(k, dtype=np.bool_).ravel() for k in {can.size for _, can in self._secret}}
            parts = [different[can.size] for _, can in self._secret]
        else:
            parts = [_flat(secrets[v], can) for v, can in self._secret]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)

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
        neighbours = _explained(node, self._leaks[int(which)][int(way)], place, memory)
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


def _explained(node: int, leak: Term | None, place: int, memory: Vector) -> tuple[tuple[Scope, float], ...]:
    """Return what every cluster around a node tells about a pair of its states."""
    return tuple(
        (tuple(v for v in term.cluster if v != node), float(memory[term.source + (place if term.scope else 0)]))
        for term in (leak.leaves() if leak is not None else ())
    )


def _homes(tree: ClusterTree, sizes: Sequence[int]) -> dict[int, int]:
    """Return for every node its home: the separator that it is alone, or the smallest bucket that holds it.

    At larger separators Φ would be taken twice, of P(bucket | separator) and of P(separator | node), which is no less
    than once of P(bucket | node).
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


def _flat(matrix: NDArray[Any], can: Indices) -> NDArray[Any]:
    """Return the entries of a matrix for pairs of states that a node can have."""
    return (matrix if len(matrix) == can.size else matrix[np.ix_(can, can)]).ravel()


def _totals(
    secret: Sequence[tuple[int, Indices]], loss_terms: dict[int, Term], leaks: Sequence[Sequence[Term | None]]
) -> tuple[Indices, ...]:
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
