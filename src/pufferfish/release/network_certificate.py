"""How proofs for Bayesian networks are found: a tree of clusters, and the least bounds that the checker accepts.

Messages go along the tree once, up and then down (docs/proofs/certificate.md). Each is found in doubles, by the
checker's own rule and in its order of moves, then put in whole numbers and asked of the checker. Nothing that is found
has to be right.
"""

import math
from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np

from pufferfish._core.networks.junction_tree import buckets_of, cluster_tree
from pufferfish._core.phi.phi import Kernel, LogRatios, close
from pufferfish.release.checker import check, check_networks

_MOST_WORK = 20_000_000
"""Pairs of values of a bound times values of its cluster, of all bounds: about a million take a second to check."""

_ROOM = 1e-11
"""Share by which a factor that was found in doubles is raised before it is put in whole numbers."""

_EACH_MOVE = 1e-8
"""What each move costs more, in nats: so that one move is cheaper than two that lead there."""


def of_network(network: Any, claim: Any) -> tuple[dict[str, Any], float]:
    """Return a proof of a network, and what leaks at most by it, in nats.

    Parameters
    ----------
    network : check_networks.Network
        The network as the checker reads it.
    claim : check_networks.Table
        What a release promises.

    Raises
    ------
    NotProved
        If only the losses of all cells together can prove it, or clusters have too many values.
    """
    check.need(claim.secrets, "the losses of all cells of a row together are more than ε")
    clusters, parents = _clusters(network, [nodes for nodes, _ in claim.secrets])
    tree = check_networks.Tree(network, clusters, parents)
    losses, messages, found = network.losses(tree, claim), dict[tuple[int, int], Any](), dict[tuple[int, int], Any]()
    both = [*tree.edges, *((parent, child) for child, parent in tree.edges)]
    work = sum(len(tree.summed(i, tree.shared[i, j])) ** 2 * len(tree.laws[i]) for i, j in both)
    check.need(work <= _MOST_WORK, "its clusters have too many values for a certificate")
    ways = {"up": both[: len(tree.edges)], "down": both[len(tree.edges) :]}
    unit = 10 ** (18 - claim.digits)
    for child, parent in [*reversed(ways["up"]), *ways["down"]]:
        bounds = network.bounds_at(messages, losses, child, parent)
        told = _Found(check_networks.Told(tree, child, tree.shared[child, parent], bounds), unit)
        numbers = [
            [(told.least.get((s, s_), check.ONE) - check.ONE) // unit for s_ in told.values] for s in told.values
        ]
        messages[child, parent] = network.bound(tree, child, parent, claim, numbers)
        found[child, parent] = numbers, told.named
    most, hidden = check.ONE, list[list[list[int]]]()
    for nodes, pairs in claim.secrets:
        home = tree.home(nodes)
        told = _Found(check_networks.Told(tree, home, nodes, network.bounds_at(messages, losses, home)), 1)
        hidden.append(told.named)
        most = max(most, *(factor for pair, factor in told.least.items() if pairs is None or pair in pairs), check.ONE)
    proof: dict[str, Any] = {"clusters": clusters, "parents": parents}
    proof |= {way: [found[edge][0] for edge in edges] for way, edges in ways.items()}
    proof["moves"] = {way: [found[edge][1] for edge in edges] for way, edges in ways.items()} | {"hidden": hidden}
    return proof, math.log(most / check.ONE)


class _Found:
    """The least factors found for the rows of each two values, and moves for those that need them.

    Parameters
    ----------
    told : check_networks.Told
        What is asked, as the checker has it.
    unit : int
        Factors are 1 and a whole multiple of it.
    """

    def __init__(self, told: Any, unit: int) -> None:
        self.values: list[tuple[int, ...]] = list(told.rows)
        self.least: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self.named: list[list[int]] = []
        factors, arcs = _cheapest(told)
        for at, (n, m) in enumerate(permutations(range(len(self.values)), 2)):
            pair = self.values[n], self.values[m]
            passed = check.over(*(bound.between(*map(part, pair)) for part, bound in told.passed)) / check.ONE
            more, step = math.ceil((factors[n, m] * passed * (1 + _ROOM) - 1) * check.ONE / unit), 0
            moves = ends_first(arcs[at])
            while not told.holds(*pair, asked := check.ONE + (more + step) * unit):
                if told.holds(*pair, asked, moves):
                    self.named.append([n, m, *(end for move in moves for end in move)])
                    break
                step = 2 * step + max(1, more >> 40)
            self.least[pair] = asked


def _cheapest(told: Any) -> tuple[Any, list[list[tuple[int, int]]]]:
    """Return the least factors for the rows of each two values, in doubles, and the moves that prove them."""
    rows, cells = len(told.rows), len(told.cells)
    size = max(rows, cells)
    laws, a = np.zeros((size, size)), np.full((size, size), np.inf)
    laws[:rows, :cells] = [[mass / sum(row) for mass in row] for row in told.rows.values()]
    a[:cells, :cells] = 0
    for n, bound in enumerate(told.bounds):
        places = [cell[n] for cell in told.cells]
        a[:cells, :cells] += np.log(np.array(bound.factors, dtype=np.float64) / check.ONE)[np.ix_(places, places)]
    ratios = LogRatios()
    np.fill_diagonal(a, 0.0)
    a = close(a) + _EACH_MOVE
    np.fill_diagonal(a, 0.0)
    with np.errstate(over="ignore"):  # a factor that no double holds is none
        factors = np.exp(ratios(Kernel(laws, laws, np.arange(size) < rows), a))
    pairs = rows * (rows - 1)
    slopes = ratios.slopes(np.arange(pairs)) if pairs else None
    if slopes is None:
        return factors, [[] for _ in range(pairs)]
    tails, heads = slopes[0].tolist(), slopes[1].tolist()
    return factors, [[(y, z) for y, z in zip(*ends, strict=True) if y != z] for ends in zip(tails, heads, strict=True)]


def _clusters(network: Any, together: list[tuple[str, ...]]) -> tuple[list[list[str]], list[int]]:
    """Return clusters that hold each table, and nodes that are hidden together; each but the first is under another."""
    names = list(network.states)
    place = {name: n for n, name in enumerate(names)}
    sizes = [len(states) for states in network.states.values()]
    mark = len(names)  # one more node, a child of those that are hidden together
    scopes = [tuple(place[node] for node in scope) for scope, _ in network.tables]
    scopes += [(*(place[node] for node in nodes), mark) for nodes in together if len(nodes) > 1]
    tree = cluster_tree(buckets_of(scopes, [*sizes, 1]))
    clusters, parents, stands = list[list[str]](), list[int](), dict[int, int]()
    for n, (scope, above) in enumerate(zip(tree.scopes, tree.parents, strict=True)):
        if tree.separates[n]:
            stands[n] = stands[above]
            continue
        stands[n] = len(clusters)
        clusters.append([names[v] for v in scope if v != mark])
        if len(clusters) > 1:
            parents.append(stands[above] if above >= 0 else 0)
    return clusters, parents


def ends_first(arcs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the arcs of a forest in an order in which each is the last one of one of its ends."""
    left, ordered = list(dict.fromkeys(arc for arc in arcs if arc[0] != arc[1])), list[tuple[int, int]]()
    while left:
        degree = Counter(end for arc in left for end in arc)
        ends = [arc for arc in left if degree[arc[0]] == 1 or degree[arc[1]] == 1] or left
        ordered += ends
        left = [arc for arc in left if arc not in ends]
    return ordered
