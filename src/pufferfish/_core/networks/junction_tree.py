"""Junction trees: the records of a Bayesian network in clusters, and the clusters in a tree.

Eliminate the nodes of the moral graph one after the other, joining the neighbours of each as it goes; a node v and its
neighbours S_v at that moment are a **bucket**, whose parent is the bucket of the first node of S_v to be eliminated.
Given what two neighbouring buckets share, the **separator**, the two sides of the edge between them are independent.

The next node is the one whose elimination adds the fewest edges, an edge counted by the states that it joins (min-fill
by weight); among nodes that add none the one that comes last, children before their parents: then what its bucket holds
is its own table, which sums to 1 and need not be multiplied.

References: Koller, Friedman, *Probabilistic Graphical Models*, Chapters 9 and 10; Lauritzen, *Graphical Models*.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pufferfish._core import Array

Scope = tuple[int, ...]
Table = tuple[Scope, Array]  # nodes, and a number for each of their configurations: one axis per node

_MANY = 32  # neighbours from which on a node's price is not kept up to date


class Bucket(NamedTuple):
    """A node that is eliminated, with its neighbours at that moment, the ``separator``; scopes ascend.

    ``parent`` is the parent's place in the list of buckets, −1 where nothing is left of the component.
    """

    node: int
    scope: Scope
    separator: Scope
    parent: int


def buckets_of(scopes: Sequence[Scope], sizes: Sequence[int]) -> list[Bucket]:
    """Eliminate all nodes and return their buckets; parents come after their children.

    ``scopes`` are sets of nodes that some bucket has to hold: every node with its parents, the node itself last.

    Examples
    --------
    >>> [bucket.scope for bucket in buckets_of([(0,), (0, 1), (1, 2)], [2, 2, 2])]
    [(1, 2), (0, 1), (0,)]
    """
    near: dict[int, set[int]] = {}
    for scope in scopes:
        for node in scope:
            near.setdefault(node, set()).update(scope)
    for node, others in near.items():
        others.discard(node)
    weights = [math.log(max(size, 1)) for size in sizes]

    rank = _ranks(scopes)

    def price(node: int) -> tuple[float, float]:
        """Weight of the edges that are added; then the bucket's size, or the node's place where none are added."""
        others = near[node]
        if len(others) < 2:
            return 0.0, -rank[node]
        added = 0.0
        for neighbour in others:
            for unjoined in others - near[neighbour]:
                added += weights[neighbour] * weights[unjoined] if unjoined < neighbour else 0.0
        return added, sum(weights[neighbour] for neighbour in others) + weights[node] if added else -rank[node]

    prices: dict[int, tuple[float, float]] = {}
    queue: list[tuple[float, float, int]] = []
    stale: set[int] = set()  # many neighbours: the price is asked for again only when the node's turn comes

    def ask(node: int) -> None:
        prices[node] = price(node) if len(near[node]) <= _MANY or node in prices else (math.inf, 0.0)
        heapq.heappush(queue, (*prices[node], node))

    for node in sorted(near):
        ask(node)
        if prices[node][0] == math.inf:
            stale.add(node)
    order: dict[int, int] = {}
    separators: list[tuple[int, Scope]] = []
    while queue:
        added, second, node = heapq.heappop(queue)
        if node in order or prices[node] != (added, second):
            continue
        if node in stale:
            stale.discard(node)
            ask(node)
            continue
        others = near.pop(node)
        order[node] = len(order)
        separators.append((node, tuple(sorted(others))))
        changed = set(others)
        for one in others:
            near[one].discard(node)
            fresh = others - near[one]
            if len(fresh) > 1:  # one is among them
                near[one] |= fresh - {one}
                changed |= near[one]
        for one in changed:
            if len(near[one]) > _MANY:
                stale.add(one)
            else:
                ask(one)
    return [
        Bucket(node, tuple(sorted((node, *others))), others, min([order[v] for v in others]) if others else -1)
        for node, others in separators
    ]


def _ranks(scopes: Sequence[Scope]) -> dict[int, int]:
    """Return a place for every node, after those of its parents."""
    children: dict[int, list[int]] = {}
    missing: dict[int, int] = {}
    for *parents, node in scopes:
        missing[node] = len(parents)
        for parent in parents:
            children.setdefault(parent, []).append(node)
    order = [node for node, count in missing.items() if not count]
    for node in order:
        for child in children.get(node, ()):
            missing[child] -= 1
            if not missing[child]:
                order.append(child)
    return {node: place for place, node in enumerate(order)}


@dataclass(frozen=True, slots=True)
class ClusterTree:
    """Clusters in a forest: the largest buckets, and between them their separators.

    For every cluster its nodes, its parent (−1 for a root), which comes first, a bucket that holds it, and its kind.
    """

    scopes: tuple[Scope, ...]
    parents: tuple[int, ...]
    buckets: tuple[int, ...]
    separates: tuple[bool, ...]


def cluster_tree(buckets: Sequence[Bucket]) -> ClusterTree:
    """Join buckets by their separators, as paths of copies where several buckets hang on one.

    A bucket whose nodes are the separator of one below it is a part of that one, which takes its place.

    Examples
    --------
    >>> star = cluster_tree(buckets_of([(0,), (0, 1), (0, 2), (0, 3)], [2, 2, 2, 2]))
    >>> star.scopes
    ((0, 3), (0,), (0,), (0, 1), (0, 2))
    """
    separators = [bucket.separator for bucket in buckets]
    below: list[list[int]] = [[] for _ in buckets]
    roots: list[int] = []
    for place, bucket in enumerate(buckets):
        stands = next((child for child in below[place] if separators[child] == bucket.scope), place)
        if stands != place:
            below[stands] += [child for child in below[place] if child != stands]
            separators[stands] = bucket.separator
        (roots if bucket.parent < 0 else below[bucket.parent]).append(stands)
    scopes: list[Scope] = []
    parents: list[int] = []
    origins: list[int] = []
    separates: list[bool] = []

    def add(scope: Scope, parent: int, bucket: int, separator: bool) -> int:
        scopes.append(scope)
        parents.append(parent)
        origins.append(bucket)
        separates.append(separator)
        return len(scopes) - 1

    # a bucket is laid out below its parent's separator; those below it wait on the list
    waiting = [(place, -1) for place in roots]
    while waiting:
        place, parent = waiting.pop()
        cluster = add(buckets[place].scope, parent, place, False)
        last: dict[Scope, int] = {}
        for child in below[place]:
            separator = separators[child]
            last[separator] = add(separator, last.get(separator, cluster), place, True)
            waiting.append((child, last[separator]))
    return ClusterTree(tuple(scopes), tuple(parents), tuple(origins), tuple(separates))
