r"""Exact inference on Bayesian networks: joint laws of a few nodes, and how far a node moves the law of others.

A joint law P(X_S) is the product of the tables of all ancestors of S with every other variable summed out, in an order
that opt_einsum finds before anything is computed: a contraction that would need too much memory is refused.

:meth:`Inference.log_ratios` is the max-influence of Definition 4.1, pair by pair: for a set S of nodes and a node i

.. math:: L_{x,x'} = \max_{y : P(X_S=y|X_i=x) > 0} \log \frac{P(X_S=y|X_i=x)}{P(X_S=y|X_i=x')}.

Contractions only add and multiply non-negative numbers, so every entry has a relative error of at most (roundings on
its way) · 2^-52. Where something could underflow, supports are computed from the tables' exact zeros, and an entry
below :data:`~pufferfish._core.numbers.rounding.TINY` makes a ratio with it infinite.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pufferfish._base.frozen import ReadOnly, read_only
from pufferfish._base.view import counted
from pufferfish._core import Mask, Matrix
from pufferfish._core.divergence import max_log_ratio
from pufferfish._core.networks.d_separation import Dag, members
from pufferfish._core.networks.junction_tree import Table
from pufferfish._core.numbers.rounding import TINY, UNIT
from pufferfish.errors import ModelError

MOST_ENTRIES = 1 << 24  # entries of the largest array that a contraction may make: 128 megabytes

_MOST_WORK = 2e9  # multiplications that one contraction for a max-influence may take: some seconds
_MOST_VALUES = 1 << 22
"""Values that a part of a quilt and the node may have together: larger ones tell much, and take long."""

_COLUMNS = 1 << 16  # values of the other nodes that are compared at a time


@dataclass(frozen=True, slots=True, eq=False)
class _Contraction:
    """A plan to multiply tables and sum all variables out but those of ``scope``."""

    tables: tuple[Table, ...]
    scope: tuple[int, ...]
    path: list[tuple[int, ...]]
    largest: int
    work: float
    roundings: int

    def run(self, arrays: Sequence[Matrix]) -> Matrix:
        if len(arrays) == 1 and self.tables[0][0] == self.scope:
            return arrays[0]
        import opt_einsum  # here: chains do without

        operands: list[object] = []
        for (axes, _), array in zip(self.tables, arrays, strict=True):
            operands += [array, axes]
        return np.asarray(opt_einsum.contract(*operands, self.scope, optimize=self.path), dtype=np.float64)


class Inference(ReadOnly):
    """Exact inference on one network; what was computed of max-influences is kept.

    ``tables`` has the conditional probability table of every node j, in order: axes for its parents, then j itself.
    """

    dag: Dag
    _tables: tuple[Table, ...]
    _sizes: tuple[int, ...]
    _ratios: dict[tuple[int, int], Matrix]
    _marginals: dict[int, tuple[Matrix, Mask, float]]

    def __init__(self, tables: Sequence[Table], sizes: Sequence[int]) -> None:
        dag = Dag([axes[:-1] for axes, _ in tables])
        vars(self).update(dag=dag, _tables=tuple(tables), _sizes=tuple(sizes), _ratios={}, _marginals={})

    def joint(self, nodes: Sequence[int]) -> Matrix:
        """Return P(X_nodes), one axis per node in the order given; a ModelError before any work if it is too large."""
        law = self._planned(self.dag.ancestral(sum(1 << j for j in nodes)), tuple(nodes), "ask for fewer nodes")
        return read_only(law.run([table for _, table in law.tables]))

    def possible(self, node: int) -> Mask:
        """Return which states a node can have, from the tables' exact zeros; shape (k,)."""
        return self._marginal(node)[1]

    def log_ratios(self, node: int, part: int) -> Matrix:
        """Bound the log ratios of the law of a set of nodes, for every pair of states of one node; shape (k, k).

        Rounded up; +∞ where x' excludes what x allows, and everywhere off the diagonal where it takes too large an
        array to know. Rows and columns of states that the node cannot have are 0.
        """
        key = node, part
        if key not in self._ratios:
            self._ratios[key] = read_only(self._found(node, part))
        return self._ratios[key]

    def _found(self, node: int, part: int) -> Matrix:
        k, possible = self._sizes[node], self.possible(node)
        pairs = possible[:, None] & possible[None, :] & ~np.eye(k, dtype=np.bool_)
        unknown = np.where(pairs, np.inf, 0.0)
        others = tuple(members(part))
        tables, slack = self._conditional(node, part)
        if not math.isfinite(slack):
            return unknown
        if math.prod(self._sizes[j] for j in (node, *others)) > _MOST_VALUES:
            return unknown
        law = self._plan(tables, (node, *others))
        if law.largest > MOST_ENTRIES or law.work > _MOST_WORK:
            return unknown
        values = law.run([table for _, table in law.tables]).reshape(k, -1)[possible]
        support = self._support(law, values, k, possible)
        if support is None:
            return unknown
        error = (law.roundings + 8) * UNIT + slack
        ratios = _row_ratios(values, support, error)
        bounds = np.zeros((k, k))
        bounds[np.ix_(possible, possible)] = ratios
        return np.where(pairs, bounds, 0.0)

    def _support(self, law: _Contraction, values: Matrix, k: int, possible: Mask) -> Mask | None:
        """Return which values are not 0, by the tables' exact zeros; None where that is not known."""
        least = sum(math.log(float(np.min(table[table > 0]))) for _, table in law.tables)
        if least > math.log(TINY):  # nothing can underflow
            return values > 0
        every = {j for axes, _ in law.tables for j in axes}
        if sum(math.log(self._sizes[j]) for j in every) > 600:
            return None
        return law.run([(table > 0).astype(np.float64) for _, table in law.tables]).reshape(k, -1)[possible] > 0

    def _conditional(self, node: int, part: int) -> tuple[list[Table], float]:
        """Return tables whose product is the law of a part given a node, but for a factor per state; their error."""
        if self.dag.is_forest:
            return self._along(node, part)
        useful = sum(self.dag.components(node, part))  # they are disjoint
        alive = members(self.dag.ancestral(part | 1 << node))
        tables = [self._tables[j] for j in alive if any(useful >> v & 1 for v in self._tables[j][0])]
        return tables, 4 * UNIT * len(tables)

    def _along(self, node: int, part: int) -> tuple[list[Table], float]:
        """Return the kernels of the steps that lead from a node of a forest to the nodes of a part."""
        line = [node]
        while self.dag.parents[line[-1]]:
            line.append(self.dag.parents[line[-1]].bit_length() - 1)
        above = {ancestor: height for height, ancestor in enumerate(line)}
        steps: dict[tuple[int, int], None] = {}
        for target in members(part):
            current = target
            while current not in above and self.dag.parents[current]:
                parent = self.dag.parents[current].bit_length() - 1
                steps[parent, current] = None
                current = parent
            if current not in above:  # another tree
                return [], math.inf
            for height in range(above[current], 0, -1):
                steps[line[height - 1], line[height]] = None
        kernels = [self._step(a, b) for a, b in steps]
        return [table for table, _ in kernels], sum(error for _, error in kernels)

    def _step(self, a: int, b: int) -> tuple[Table, float]:
        """Return P(X_b | X_a) of neighbours in a forest, and a bound on its relative error."""
        if self.dag.parents[b] >> a & 1:
            return self._tables[b], 4 * UNIT
        upper, support, error = self._marginal(b)
        if np.any(upper[support] < TINY):
            return ((a, b), self._tables[a][1].T), math.inf
        joint = upper[:, None] * self._tables[a][1]
        if np.any(joint[(self._tables[a][1] > 0) & support[:, None]] < TINY):
            return ((a, b), joint.T), math.inf
        # not divided by P(X_a): a factor for each state of a, which only matters where a is not the first of the way
        total = joint.sum(axis=0)
        kernel = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
        return ((a, b), np.ascontiguousarray(kernel.T)), 2 * error + UNIT * (len(joint) + 12)

    def _marginal(self, node: int) -> tuple[Matrix, Mask, float]:
        """Return a node's law, which of its states are possible, and a bound on the relative error."""
        way = [node]
        while way[-1] not in self._marginals:
            up = self.dag.parents[way[-1]]
            if not self.dag.is_forest or not up:
                self._marginals[way[-1]] = self._alone(way[-1])
            else:
                way.append(up.bit_length() - 1)
        for child in reversed(way[:-1]):
            law, support, error = self._marginals[self.dag.parents[child].bit_length() - 1]
            table = self._tables[child][1]
            reached = np.asarray(np.any(support[:, None] & (table > 0), axis=0), dtype=np.bool_)
            self._marginals[child] = law @ table, read_only(reached), error + UNIT * (len(law) + 6)
        return self._marginals[node]

    def _alone(self, node: int) -> tuple[Matrix, Mask, float]:
        law = self._planned(self.dag.above[node], (node,), "the network is too dense for exact inference; use GroupDP")
        values = law.run([table for _, table in law.tables])
        everything = np.ones(self._sizes[node], dtype=np.bool_)
        support = self._support(law, values[:, None], self._sizes[node], everything)
        if support is None:
            raise ModelError(
                "the network has too many nodes and too small numbers to tell which states are possible: use GroupDP"
            )
        return values, read_only(support[:, 0]), UNIT * (law.roundings + 8)

    def _planned(self, ancestors: int, nodes: tuple[int, ...], remedy: str) -> _Contraction:
        """Plan the joint law of some nodes from the tables of their ancestors, or refuse it."""
        law = self._plan([self._tables[j] for j in members(ancestors)], nodes)
        if law.largest > MOST_ENTRIES:
            raise ModelError(
                f"the joint law of {counted(len(nodes), 'node')} takes an array of {law.largest:,} numbers "
                f"({8 * law.largest / 1e9:.3g} GB), but at most {MOST_ENTRIES:,} are possible: {remedy}"
            )
        return law

    def _plan(self, tables: Sequence[Table], scope: tuple[int, ...]) -> _Contraction:
        if len(tables) == 1 and tables[0][0] == scope:
            return _Contraction(tuple(tables), scope, [], tables[0][1].size, 0.0, 0)
        import opt_einsum  # here: chains do without

        operands: list[object] = []
        for axes, table in tables:
            operands += [table, axes]
        path, info = opt_einsum.contract_path(*operands, scope, optimize="auto")
        roundings = len(tables)
        for step in info.contraction_list:
            roundings += math.prod(info.size_dict[v] for v in step[1])
        largest = max(int(info.largest_intermediate), math.prod(self._sizes[j] for j in scope))
        return _Contraction(tuple(tables), scope, list(path), largest, float(info.opt_cost), roundings)


def _row_ratios(values: Matrix, support: Mask, error: float) -> Matrix:
    """Largest log ratios of rows that are laws up to a factor, each number good to a relative error; shape (n, n)."""
    high = np.where(support, np.maximum(values, TINY), 0.0)
    with np.errstate(divide="ignore"):
        logs = np.log(high)
        weights = np.log(high.sum(axis=1))
    low = np.where(support & (values < TINY), -np.inf, logs)
    rows, n = np.full((len(values), len(values)), -np.inf), len(values)
    for first in range(0, values.shape[1], _COLUMNS):
        block = slice(first, first + _COLUMNS)
        if np.array_equal(low[:, block], logs[:, block]):
            block_ratios = max_log_ratio(logs[:, block])
        else:
            block_ratios = max_log_ratio(np.concatenate([logs[:, block], low[:, block]]))[:n, n:]
        np.maximum(rows, block_ratios, out=rows)
    total = np.abs(weights)[:, None] + np.abs(weights)[None, :] + np.max(np.abs(logs), where=support, initial=1.0)
    adds = UNIT * (values.shape[1] + 8)
    ratios = rows - weights[:, None] + weights[None, :] + 4 * error + 2 * adds + 8 * UNIT * total
    ratios[np.isnan(ratios)] = np.inf
    return np.maximum(ratios, 0.0)
