"""Brute force on small networks, from the definitions; knows nothing of the package under test.

A network is a table per node, one axis for each parent in order and the node's own last; entries are dyadic, so that a
zero of the joint law is an exact zero. Nodes are numbers here, and may come before their parents.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pairs = Sequence[NDArray[np.bool_]]
Row = tuple[str, ...]

STATES = {1: [("a",)], 2: [("a", "b"), ("b", "c"), ("c", "a")], 3: [("a", "b", "c"), ("c", "d", "b")]}
"""Names of states, by their number: nodes share some of them, at other places."""


def dyadic_law(rng: np.random.Generator, k: int, zeros: float, bits: int = 8) -> Array:
    """Masses that are whole multiples of 2^-bits; each is zero with the given chance."""
    kept = rng.random(k) >= zeros
    if not kept.any():
        kept[rng.integers(k)] = True
    weights = np.where(kept, rng.dirichlet(np.ones(k)) + 0.05, 0.0)
    whole = np.floor(weights / weights.sum() * 2**bits)
    whole[int(np.argmax(whole))] += 2**bits - whole.sum()
    return whole / 2**bits


def joint_law(parents: Sequence[Sequence[int]], tables: Sequence[Any]) -> Any:
    """Probability of every database, one axis per node: the product of its entries. Fractions in, fractions out."""
    sizes = [np.shape(table)[-1] for table in tables]
    law = np.ones(sizes, dtype=np.asarray(tables[0]).dtype)
    for node, (above, table) in enumerate(zip(parents, tables, strict=True)):
        axes = [*above, node]
        values = np.transpose(np.asarray(table), np.argsort(axes))
        law = law * values.reshape([sizes[j] if j in axes else 1 for j in range(len(sizes))])
    return law


def given(law: Any, node: int, others: Sequence[int]) -> Any:
    """P(node, others) as a matrix: a row for each state of the node, and no order of columns to rely on."""
    kept = sorted({node, *others})
    summed = law.sum(axis=tuple(j for j in range(law.ndim) if j not in kept))
    return np.moveaxis(summed, kept.index(node), 0).reshape(law.shape[node], -1)


@dataclass(frozen=True, eq=False)
class Network:
    """Tables of a few nodes, with everything computed from the law of all databases."""

    name: str
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[Array, ...]
    states: tuple[Row, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def size(self) -> int:
        return len(self.parents)

    @property
    def sizes(self) -> list[int]:
        return [len(names) for names in self.states]

    @cached_property
    def law(self) -> Array:
        return joint_law(self.parents, self.tables)

    @cached_property
    def graph(self) -> Any:
        graph = nx.DiGraph()
        graph.add_nodes_from(range(self.size))
        graph.add_edges_from((parent, node) for node, above in enumerate(self.parents) for parent in above)
        return graph

    @property
    def is_forest(self) -> bool:
        return all(len(above) <= 1 for above in self.parents)

    @cached_property
    def possible(self) -> list[NDArray[np.bool_]]:
        return [given(self.law, node, ()).sum(axis=1) > 0 for node in range(self.size)]

    def secrets(self, node: int) -> NDArray[np.bool_]:
        """Pairs of different values that the node can have."""
        can = self.possible[node]
        return can[:, None] & can[None, :] & ~np.eye(len(can), dtype=np.bool_)

    @cached_property
    def _known(self) -> dict[tuple[Any, ...], Any]:
        return {}

    def nearby(self, node: int, quilt: Sequence[int]) -> set[int]:
        """The node and all that the quilt does not d-separate from it."""
        key = "nearby", node, tuple(quilt)
        if key not in self._known:
            others = set(range(self.size)) - {node, *quilt}
            joined = {j for j in others if not nx.is_d_separator(self.graph, {node}, {j}, set(quilt))}
            self._known[key] = {node} | joined
        return self._known[key]

    def is_quilt(self, node: int, quilt: Sequence[int]) -> bool:
        """Whether all that is not nearby is together independent of the node given the quilt."""
        remote = set(range(self.size)) - self.nearby(node, quilt) - set(quilt)
        return not remote or nx.is_d_separator(self.graph, {node}, remote, set(quilt))

    def influence(self, node: int, quilt: Sequence[int], pairs: NDArray[np.bool_] | None = None) -> float:
        """Definition 4.1, over values that can occur."""
        key = "influence", node, tuple(quilt)
        if key not in self._known:
            self._known[key] = log_ratios(self.law, node, quilt)
        asked = self.secrets(node) if pairs is None else pairs & self.secrets(node)
        return max(0.0, float(self._known[key].max(initial=0.0, where=asked)))

    def quilts(self, node: int) -> Iterator[tuple[int, ...]]:
        """Every set of other nodes."""
        others = [j for j in range(self.size) if j != node]
        for count in range(len(others) + 1):
            yield from itertools.combinations(others, count)

    def best(
        self,
        node: int,
        losses: Sequence[float | Array],
        judge: Callable[[float, float], float],
        pairs: NDArray[np.bool_],
    ) -> float:
        """What the best of all quilts of a node proves; of a loss per pair of states, those that are possible count."""
        each = [
            float(np.max(loss, initial=0, where=self.secrets(j))) if np.ndim(loss) else float(loss)
            for j, loss in enumerate(losses)
        ]
        return min(
            judge(math.fsum(each[j] for j in self.nearby(node, quilt)), self.influence(node, quilt, pairs))
            for quilt in self.quilts(node)
        )

    def answers(self, query: Callable[[Row], Sequence[float]]) -> Array:
        """A query's answer on every database; shape (*sizes, m)."""
        every = [query(row) for row in itertools.product(*self.states)]
        return np.array(every, dtype=float).reshape(*self.sizes, -1)

    def true_loss(self, answers: Array, scale: float, secrets: Pairs | None = None) -> float:
        """Loss of the answers with Laplace noise on every output, over all secret pairs of all nodes."""
        pairs = [self.secrets(node) for node in range(self.size)]
        if secrets is not None:
            pairs = [both & asked for both, asked in zip(pairs, secrets, strict=True)]
        return laplace_loss(self.law, answers, scale, pairs)


def log_ratios(law: Any, node: int, quilt: Sequence[int]) -> Array:
    """Definition 4.1 for every pair of values that the node can have, 0 for others.

    Of a law of fractions it is exact up to one logarithm.
    """
    together = given(law, node, quilt)
    alone = together.sum(axis=1)
    found = np.zeros((len(alone), len(alone)))
    if not quilt:
        return found
    for x, other in itertools.permutations(np.flatnonzero(alone > 0), 2):
        support = together[x] > 0
        if np.any(together[other][support] == 0):
            found[x, other] = math.inf
        else:
            ratios = (together[x] * alone[other])[support] / (together[other] * alone[x])[support]
            found[x, other] = _log(ratios.max())
    return found


def _log(ratio: Any) -> float:
    if isinstance(ratio, float):
        return math.log(ratio)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def laplace_loss(law: Array, answers: Array, scale: float, pairs: Pairs) -> float:
    """Largest log ratio over outputs, for the given pairs of values of the nodes.

    With all outputs but one fixed, the likelihood ratio is monotone in that one between two atoms and constant beyond
    them: so the worst output has coordinates of atoms.
    """
    atoms, place = np.unique(answers.reshape(law.size, -1), axis=0, return_inverse=True)
    outputs = np.array(list(itertools.product(*(np.unique(column) for column in atoms.T))))
    noise = np.exp(-np.abs(outputs[:, None, :] - atoms[None, :, :]).sum(axis=2) / scale)
    worst = 0.0
    for node, asked in enumerate(pairs):
        where = np.broadcast_to(np.arange(law.shape[node]).reshape(-1, *[1] * (law.ndim - node - 1)), law.shape)
        masses = np.zeros((len(atoms), law.shape[node]))
        np.add.at(masses, (place.ravel(), where.ravel()), law.ravel())
        means, alone = noise @ masses, masses.sum(axis=0)
        for x, other in zip(*np.nonzero(asked), strict=True):
            ratios = means[:, x] * alone[other] / (means[:, other] * alone[x])
            worst = max(worst, math.log(ratios.max()))
    return worst


def several_rows(law: Array, answers: Array, rows: int) -> tuple[Array, Array]:
    """The law of several independent rows, and their answers added up."""
    together, total, n = law, answers, law.ndim
    for _ in range(rows - 1):
        new = law.shape
        total = total.reshape(*total.shape[:-1], *[1] * n, total.shape[-1]) + answers
        together = together.reshape(*together.shape, *[1] * n) * law
        assert together.shape[-n:] == new
    return together, total


def random_network(seed: int, n: int, parents: int = 3, most: int = 3) -> Network:
    """Any directed graph without cycles, its nodes in any order; more zeros as the seed grows, and point masses.

    ``parents`` is the most that a node has: 1 makes forests, of several trees at times.
    """
    rng = np.random.default_rng([seed, n, parents])
    place = rng.permutation(n)
    above: list[tuple[int, ...]] = [()] * n
    for at in range(1, n):
        least = (0, 0, 1, parents)[seed % 4]
        count = min(at, int(rng.integers(least, parents + 1)))
        above[place[at]] = tuple(int(place[j]) for j in rng.permutation(at)[:count])
    return _filled(f"{seed}-{n}-{parents}", rng, above, seed, most)


def shaped(name: str, parents: Sequence[Sequence[int]], seed: int, most: int = 3) -> Network:
    """A network with given edges."""
    return _filled(f"{name}-{seed}", np.random.default_rng([seed, len(parents)]), parents, seed, most)


def _filled(
    name: str,
    rng: np.random.Generator,
    parents: Sequence[Sequence[int]],
    seed: int,
    most: int,
    states: Sequence[Row] | None = None,
) -> Network:
    some = [STATES[k][rng.integers(len(STATES[k]))] for k in rng.integers(2, most + 1, size=len(parents))]
    names = states or some
    zeros = (0.0, 0.0, 0.2, 0.0, 0.45)[seed % 5]
    tables = []
    for node, above in enumerate(parents):
        k, shape = len(names[node]), [len(names[j]) for j in above]
        rows = [dyadic_law(rng, k, zeros * (rng.random() < 0.7)) for _ in range(math.prod(shape))]
        tables.append(np.array(rows).reshape(*shape, k))
    if seed % 7 == 3:
        root = next(node for node, above in enumerate(parents) if not above)
        tables[root] = np.eye(len(names[root]))[0]
    return Network(name, tuple(map(tuple, parents)), tuple(tables), tuple(names))


SHAPES: dict[str, list[list[int]]] = {
    "told by a descendant": [[], [], [1, 0], [2], [3]],
    "told by one of two descendants": [[], [], [0, 1], [2], [2], [1]],
    "diamond": [[], [0], [0], [1, 2], [3]],
    "M": [[], [], [0], [0, 1], [1], [3]],
    "children with other parents": [[], [], [], [0, 1], [2, 0], [4]],
    "a child below a child": [[], [0], [1], [0, 2], []],
    "hidden chain": [[], [0], [1], [0], [1], [2]],
    "parents listed backwards": [[3, 2], [0], [3], [], [2, 1, 0]],
    "two parts": [[], [0], [], [2], [2, 3], []],
    "star": [[5], [5], [5], [5], [5], []],
    "collider star": [[5, 4, 3, 2], [0], [], [], [], []],
}
"""Edges worth a look: for each node its parents."""


def with_odd_tables(network: Network, seed: int) -> Network:
    """The same nodes under tables with exact equalities: rows alike, a parent that is ignored or copied, states alike.

    Entries stay dyadic. A state that no row reaches is impossible, and so are the rows below that name it.
    """
    rng, tables = np.random.default_rng([seed, 77]), []
    for table in network.tables:
        k, odd = table.shape[-1], table.copy()
        kind = rng.choice(["ignores a parent", "all rows alike", "copies a parent", "states alike", "never", "plain"])
        if kind == "ignores a parent" and table.ndim > 1:
            axis = int(rng.integers(table.ndim - 1))
            odd = np.broadcast_to(table.take([0], axis=axis), table.shape).copy()
        elif kind == "all rows alike":
            odd = np.broadcast_to(table[(0,) * (table.ndim - 1)], table.shape).copy()
        elif kind == "copies a parent" and table.ndim > 1:
            axis = int(rng.integers(table.ndim - 1))
            at = np.arange(table.shape[axis]).reshape([-1 if a == axis else 1 for a in range(table.ndim)]) % k
            odd = np.broadcast_to(at == np.arange(k), table.shape).astype(np.float64)
        elif kind == "states alike":
            odd[..., 0] = odd[..., -1] = (table[..., 0] + table[..., -1]) / 2
        elif kind == "never":
            state = int(rng.integers(k))
            odd[..., (state + 1) % k] += odd[..., state]
            odd[..., state] = 0.0
        tables.append(odd)
    return Network(f"odd {network}", network.parents, tuple(tables), network.states)


SHAPED = [shaped(name, parents, seed) for seed, (name, parents) in enumerate(SHAPES.items())]
SHAPED += [with_odd_tables(network, seed) for seed, network in enumerate(SHAPED)]


def with_other_tables(network: Network, seed: int, parents: Sequence[Sequence[int]] | None = None) -> Network:
    """The same nodes and states under another law, of the same graph or another one."""
    rng = np.random.default_rng([seed, network.size])
    return _filled(f"{network}-{seed}", rng, network.parents if parents is None else parents, seed, 3, network.states)


def moves(answers: Array) -> list[Array]:
    """How far the answers move in L1 at most when one node alone goes from state x to x'; (k, k) for every node."""
    found = []
    for node in range(answers.ndim - 1):
        along = np.moveaxis(answers, node, 0)
        away = np.abs(along[:, None] - along[None, :]).sum(axis=-1)
        found.append(away.reshape(*away.shape[:2], -1).max(axis=2))
    return found


def algorithm_2(
    theta: Sequence[Network], losses: Sequence[float | Array], epsilon: float, secrets: Pairs | None = None
) -> float:
    """σ_max where node j may move the answer by ``losses[j]``, with every set of nodes a quilt."""

    def score(weight: float, influence: float) -> float:
        return weight / (epsilon - influence) if influence < epsilon else math.inf

    worst = 0.0
    for network in theta:
        for node in range(network.size):
            pairs = network.secrets(node) if secrets is None else network.secrets(node) & secrets[node]
            if pairs.any():
                worst = max(worst, network.best(node, losses, score, pairs))
    return worst


def needs_none(network: Network, answers: Array, epsilon: float, secrets: Pairs | None = None) -> bool:
    """Whether the exact answer is private: what it reads is behind quilts that tell less than ε of every secret."""
    losses = list(moves(answers))
    return algorithm_2([network], losses, epsilon, secrets) == 0
