"""Best quilts on any Bayesian network: the search behind Algorithm 2.

A quilt of node i is a set Q of other nodes. What Q does not d-separate from i is *nearby*; its **weight** is the summed
loss of the nearby nodes, i among them; its **influence** the largest log ratio e(X_Q | X_i) over the secret pairs.

All quilts worth having are the neighbours of a connected set I around i in the moral graph of the network without D, a
set that holds all descendants of its nodes but not i. They are reached from ({i}, ∅) by two moves on a neighbour q of
I, both of which make the weight of I ∪ D grow and the influence fall: **absorb** q into I, or **swallow** a child q of
I with all its descendants into D. So a pair whose weight alone is no better than what was found is not worth a look,
and a best-first search that visits all others has found the best quilt of all (proof: ``docs/proofs/quilts.md``).
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from pufferfish._core import Array, Mask
from pufferfish._core.networks.d_separation import Dag, members
from pufferfish._core.networks.inference import Inference
from pufferfish._core.numbers.rounding import UNIT, up
from pufferfish._core.quilts.chain_search import Objective

_LARGE = 16  # a quilt counts as one that is looked at for every so many nodes that it has
_MOST_TOGETHER = 24  # nodes whose joint law is looked at; that of more has too many values
_WAITING = 32  # for every quilt that may be looked at, how many may be waiting
_FEWEST = 4  # quilts that are looked at for a node in any case
_SPHERES = 64  # distances up to which all nodes around one are absorbed together, to begin with


class NodeWeights:
    """Sums of the record-level losses of sets of nodes, rounded up; of each node its largest loss, at least 0."""

    def __init__(self, losses: Array) -> None:
        alike: dict[float, int] = {}
        for node, loss in enumerate(losses.tolist()):
            alike[loss] = alike.get(loss, 0) | 1 << node
        self.free: int = alike.pop(0.0, 0)
        self._alike = list(alike.items())

    def __call__(self, nodes: int) -> float:
        """Sum over a set of nodes."""
        total, terms = 0.0, 0
        for loss, those in self._alike:
            times = (nodes & those).bit_count()
            if times:  # none of an infinite loss is nothing
                total += up(loss * times) if times > 1 else loss
                terms += 1
        return up(total, terms) if terms > 1 else total


@dataclass(frozen=True, slots=True)
class NetworkQuilt:
    """A quilt of a node of a network, and what it costs: summed losses of the nearby nodes, max-influence, objective.

    ``quilt`` and ``nearby`` are sets of nodes; all others are remote. ``pair`` is the secret pair at which the
    influence is attained; None for a quilt that tells nothing.
    """

    node: int
    quilt: int
    nearby: int
    pair: tuple[int, int] | None
    weight: float
    influence: float
    value: float


@dataclass(frozen=True, slots=True)
class _State:
    """A connected set around a node, what was swallowed, and the neighbours of the first without the second."""

    inside: int
    dropped: int
    border: int


@dataclass(eq=False)
class QuiltSearch:
    """Search for the best quilts of the nodes of one network, the worst ones first.

    It looks at ``most`` quilts for each node, None for all that can matter, and at ``in_all`` for all nodes together,
    after which each further node has :data:`_FEWEST`.
    """

    inference: Inference
    weights: NodeWeights
    objective: Objective
    most: int | None
    in_all: int | None = None
    looked: int = 0
    tells: Callable[[int], None] | None = None

    def __post_init__(self) -> None:
        self._dag: Dag = self.inference.dag
        self._all: int = (1 << self._dag.size) - 1

    def judged(self, node: int, quilt: int, pairs: Mask, than: float = np.inf) -> NetworkQuilt:
        """Return what a quilt, any set of other nodes, costs at a node whose secret pairs are given, (k, k).

        Where it cannot be better than ``than``, only a lower bound is found, and its value is infinite.
        """
        nearby = self._dag.connected(node, quilt) if quilt else self._dag.reach(node)
        weight = self.weights(nearby)
        if self.objective(weight, 0.0) >= than:
            return NetworkQuilt(node, quilt, nearby, None, weight, np.inf, np.inf)
        parts = self._parts(node, quilt, nearby)
        if not parts:
            return NetworkQuilt(node, quilt, nearby, None, weight, 0.0, self.objective(weight, 0.0))
        if max(part.bit_count() for part in parts) > _MOST_TOGETHER:
            return NetworkQuilt(node, quilt, nearby, None, weight, np.inf, np.inf)
        if than < np.inf and any(part & (part - 1) for part in parts):
            least, pair = _largest([self._singles(node, part) for part in parts], pairs)
            if least == np.inf or self.objective(weight, least) >= than:
                return NetworkQuilt(node, quilt, nearby, pair, weight, least, np.inf)
        influence, pair = _largest([self.inference.log_ratios(node, part) for part in parts], pairs)
        value = self.objective(weight, influence) if influence < np.inf else np.inf
        return NetworkQuilt(node, quilt, nearby, pair, weight, influence, value)

    def first_look(self, node: int, pairs: Mask, than: float = np.inf) -> NetworkQuilt:
        """Return the best of the trivial quilt and of what :meth:`best` starts from; quickly."""
        best = self.judged(node, 0, pairs)
        for state in self._seeds(node):
            least = min(best.value, than)
            if self.objective(self.weights(state.inside | state.dropped), 0.0) < least:
                best = min(best, self.judged(node, state.border, pairs, least), key=attrgetter("value"))
        return best

    def best(
        self,
        node: int,
        pairs: Mask,
        *,
        enough: float = -np.inf,
        than: float = np.inf,
        first: NetworkQuilt | None = None,
        hints: Sequence[int] = (),
    ) -> NetworkQuilt:
        """Return the best quilt found of a node, at least one pair of whose states is secret.

        ``enough`` need not be improved on; only what is better than ``than`` counts. ``first`` is that of
        :meth:`first_look`, ``hints`` are quilts to try first.
        """
        best = self.first_look(node, pairs, than) if first is None else first
        enough = max(enough, 0.0)
        most = self.most
        if most is not None and self.in_all is not None:
            most = min(most, max(self.in_all - self.looked, _FEWEST))
        for quilt in hints:
            if best.value > enough and not quilt >> node & 1:
                best = min(best, self.judged(node, quilt, pairs, min(best.value, than)), key=attrgetter("value"))
        if not self._dag.is_forest:
            best = self._grown_one_by_one(best, pairs, enough, than, most)
        left, order = most, 0
        room = None if left is None else _WAITING * left
        heap: list[tuple[float, float, int, _State]] = []
        seen: set[tuple[int, int]] = set()

        def wait(states: Iterable[_State], promise: float) -> None:
            nonlocal order
            for state in states:
                weight = self.weights(state.inside | state.dropped)
                key = state.inside, state.dropped
                if room is not None and len(seen) >= room:
                    return
                if key not in seen and self.objective(weight, 0.0) < min(best.value, than):
                    seen.add(key)
                    heapq.heappush(heap, (promise, weight, order, state))
                    order += 1

        wait(self._seeds(node), -np.inf)
        while heap and best.value > enough and (left is None or left > 0):
            _, weight, _, state = heapq.heappop(heap)
            if self.objective(weight, 0.0) < min(best.value, than):
                candidate = self.judged(node, state.border, pairs, min(best.value, than))
                best = min(best, candidate, key=attrgetter("value"))
                spent = 1 + state.border.bit_count() // _LARGE
                self.looked += spent
                left = None if left is None else left - spent
                if self.tells is not None:
                    self.tells(self.looked)
                wait(
                    self._moves(state),
                    self.objective.promise(candidate.weight, candidate.influence, min(best.value, than)),
                )
        return best

    def _grown_one_by_one(
        self, best: NetworkQuilt, pairs: Mask, enough: float, than: float, most: int | None
    ) -> NetworkQuilt:
        """Return the quilt grown by the node that helps most, again and again: good in dense networks."""
        while best.value > enough:
            inside = list(members(best.nearby & ~(1 << best.node)))
            larger = best
            for j in inside[:most]:
                self.looked += 1
                candidate = self.judged(best.node, best.quilt | 1 << j, pairs, min(larger.value, than))
                larger = min(larger, candidate, key=attrgetter("value"))
            if larger is best:
                break
            best = larger
        return best

    def _parts(self, node: int, quilt: int, nearby: int) -> list[int]:
        """Return the parts of a quilt that tell something, independent of each other given the node."""
        dependent = quilt & self._dag.reach(node)
        if not dependent:
            return []
        if self._dag.is_forest:
            return list(self._twigs(node, dependent, nearby))
        return [part for part in self._dag.branches(node, quilt) if part & dependent]

    def _singles(self, node: int, part: int) -> Array:
        """Return the largest log ratios of single nodes of a part."""
        dependent = part & self._dag.reach(node)
        return np.max([self.inference.log_ratios(node, 1 << j) for j in members(dependent)], axis=0)

    def _twigs(self, node: int, quilt: int, nearby: int) -> Iterator[int]:
        """Yield the quilt's nodes on each branch of a tree."""
        for first in members(self._dag.parents[node] | self._dag.children[node]):
            part, fresh, seen = 0, 1 << first, 1 << node
            while fresh:
                part |= fresh & quilt
                seen |= fresh
                reached = 0
                for member in members(fresh & nearby):
                    reached |= self._dag.parents[member] | self._dag.children[member]
                fresh = reached & ~seen & (nearby | quilt)
            if part:
                yield part

    def _seeds(self, node: int) -> Iterator[_State]:
        """Yield growing spheres, also with descendants swallowed, and with all nodes absorbed that cost nothing."""
        below = 0 if self._dag.is_forest else self._dag.below[node] & ~(1 << node)
        for dropped in dict.fromkeys((0, below)):
            for free in dict.fromkeys((0, self.weights.free)):
                state = self._grown(1 << node, dropped, free)
                for _ in range(_SPHERES):
                    yield state
                    if not state.border:
                        break
                    state = self._grown(state.inside | state.border, dropped, free)

    def _grown(self, inside: int, dropped: int, free: int = 0) -> _State:
        """Return the state with a connected set, grown by all neighbours in ``free`` and theirs."""
        alive, border, fresh = self._all & ~dropped, 0, inside
        while fresh:
            for node in members(fresh):
                border |= self._dag.near(node, alive)
            fresh = border & free & ~inside
            inside |= fresh
            border &= ~inside
        return _State(inside, dropped, border)

    def _moves(self, state: _State) -> Iterator[_State]:
        """Yield the states that absorbing or swallowing one neighbour leads to."""
        alive = self._all & ~state.dropped
        below_inside = 0
        for q in members(state.border):
            inside = state.inside | 1 << q
            yield _State(inside, state.dropped, (state.border | self._dag.near(q, alive)) & ~inside)
        if self._dag.is_forest:
            return
        for node in members(state.inside):
            below_inside |= self._dag.children[node]
        for q in members(state.border & below_inside):
            swallowed = self._dag.below[q] & alive
            parents = 0
            for node in members(swallowed):
                parents |= self._dag.parents[node]
            # with no parents but themselves and those inside absorbing them is as good
            if not swallowed & state.inside and parents & ~swallowed & ~state.inside:
                yield self._grown(state.inside, state.dropped | swallowed)


def _largest(tells: Sequence[Array], pairs: Mask) -> tuple[float, tuple[int, int]]:
    """Return the largest sum of log ratios over secret pairs, rounded up, and where it is."""
    total = np.sum(tells, axis=0) * (1 + UNIT * len(tells)) if len(tells) > 1 else tells[0]
    total = np.where(pairs, total, -np.inf)
    x, x_ = (int(v) for v in np.unravel_index(int(np.argmax(total)), total.shape))
    return float(total[x, x_]), (x, x_)
