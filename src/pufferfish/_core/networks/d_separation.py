"""Separation in directed graphs without cycles: which nodes can tell about a node once others are known.

Sets of nodes are whole numbers, bit j for node j: unions, differences and tests cost little, and sets can be keys.
Nodes that no active path joins given Q are independent given Q; the same is separation by Q in the *moral graph* of an
*ancestral* set, one that holds all parents of its nodes (Lauritzen, *Graphical Models*, Section 3.2.2; Koller,
Friedman,
*Probabilistic Graphical Models*, Algorithm 3.1).
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from graphlib import TopologicalSorter

from pufferfish._base.frozen import ReadOnly


def set_of(nodes: Sequence[int]) -> int:
    """Return a set of nodes as a number; :func:`members` is the way back."""
    return sum(1 << j for j in set(nodes))


def members(nodes: int) -> Iterator[int]:
    """Yield the nodes of a set in ascending order."""
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest


class Dag(ReadOnly):
    """A directed graph without cycles, from the parents of every node."""

    size: int
    parents: tuple[int, ...]
    children: tuple[int, ...]
    is_forest: bool
    _reach: dict[int, int]

    def __init__(self, parents: Sequence[Sequence[int]]) -> None:
        children = [0] * len(parents)
        for node, above in enumerate(parents):
            for parent in above:
                children[parent] |= 1 << node
        vars(self).update(
            size=len(parents),
            parents=tuple(set_of(above) for above in parents),
            children=tuple(children),
            is_forest=all(len(above) <= 1 for above in parents),
            _reach={},
        )

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Nodes, parents before their children."""
        parents = {node: members(above) for node, above in enumerate(self.parents)}
        return tuple(TopologicalSorter(parents).static_order())

    @cached_property
    def below(self) -> tuple[int, ...]:
        """Every node with its descendants."""
        descendants = [1 << node for node in range(self.size)]
        for node in reversed(self.order):
            for child in members(self.children[node]):
                descendants[node] |= descendants[child]
        return tuple(descendants)

    @cached_property
    def above(self) -> tuple[int, ...]:
        """Every node with its ancestors."""
        ancestors = [1 << node for node in range(self.size)]
        for node in self.order:
            for parent in members(self.parents[node]):
                ancestors[node] |= ancestors[parent]
        return tuple(ancestors)

    def ancestral(self, nodes: int) -> int:
        """Return the smallest ancestral set that holds some nodes."""
        ancestors = 0
        for node in members(nodes):
            if not ancestors >> node & 1:
                ancestors |= self.above[node]
        return ancestors

    def reach(self, node: int) -> int:
        """Return the node and all that it is not independent of, with nothing given."""
        if node not in self._reach:
            reached = self.connected(node, 0)
            for member in members(reached) if self.is_forest else (node,):
                self._reach[member] = reached
        return self._reach[node]

    def connected(self, node: int, given: int) -> int:
        """Return the node and all that it is not d-separated from by a set, which does not hold the node."""
        going_up, going_down = 1 << node, 0  # an arrow was followed backwards to arrive, or forwards
        up: list[int] = [node]
        down: list[int] = []
        while up or down:
            if up:
                current = up.pop()
                if given >> current & 1:
                    continue
                rises, falls = self.parents[current], self.children[current]
            else:
                current = down.pop()
                several = self.parents[current] & (self.parents[current] - 1)  # else it joins nothing
                rises = self.parents[current] if several and self.below[current] & given else 0
                falls = 0 if given >> current & 1 else self.children[current]
            rises, falls = rises & ~going_up, falls & ~going_down
            going_up, going_down = going_up | rises, going_down | falls
            up.extend(members(rises))
            down.extend(members(falls))
        return (going_up | going_down) & ~given

    def near(self, node: int, alive: int) -> int:
        """Return the neighbours of a node in the moral graph of an ancestral set."""
        children = self.children[node] & alive
        neighbours = self.parents[node] | children
        for child in members(children):
            neighbours |= self.parents[child]
        return neighbours & ~(1 << node)

    def component(self, node: int, alive: int, without: int) -> int:
        """Return the nodes joined with a node in the moral graph of an ancestral set once others are taken out."""
        joined, fresh = 1 << node, 1 << node
        while fresh:
            reached = 0
            for member in members(fresh):
                reached |= self.near(member, alive)
            fresh = reached & ~joined & ~without
            joined |= fresh
        return joined

    def components(self, node: int, others: int) -> Iterator[int]:
        """Yield the parts of the moral graph of all that matters for some nodes, once another is taken out."""
        alive, left = self.ancestral(others | 1 << node), others
        while left:
            joined = self.component((left & -left).bit_length() - 1, alive, 1 << node)
            yield joined
            left &= ~joined

    def branches(self, node: int, others: int) -> list[int]:
        """Split nodes into parts that are independent of each other given one node, which is not among them."""
        return [joined & others for joined in self.components(node, others)]
