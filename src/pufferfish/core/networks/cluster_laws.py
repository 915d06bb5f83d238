r"""Laws of the clusters of a junction tree, in logarithms, with bounds on their errors.

The buckets are visited twice. Upwards, every bucket multiplies the tables given to it with what its children send, and
sums its own node out: that is λ(S), sent to its parent; divided by λ it is P(node | S). Downwards, P(bucket) is
P(node | S) times P(S), which the parent's law gives.

Logarithms hold probabilities like 1e-300 times 1e-300, and an exact zero stays −∞. Sums are of non-negative numbers, so
a logarithm is off by at most the sum of what every step on its way adds: a few units in the last place of the largest
logarithm, and half a unit for each addend.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pufferfish.core.networks.junction_tree import Bucket, Scope
from pufferfish.core.numbers.rounding import UNIT

__all__ = ["MOST_ENTRIES", "ClusterLaws", "Table"]

Logs = NDArray[np.float64]
Table = tuple[tuple[int, ...], NDArray[np.float64]]

MOST_ENTRIES = 1 << 23
"""Entries of the largest bucket whose law is made: 64 megabytes."""


class ClusterLaws:
    """Laws of the buckets of a network.

    Parameters
    ----------
    buckets : sequence of Bucket
        Buckets of the network, parents after their children.
    tables : sequence of (nodes, ndarray)
        Tables whose product is the law: their nodes, one axis each. Every one fits into a bucket.
    sizes : sequence of int
        Number of states of every node.
    normalised : bool
        Whether every table is the law of its last node given the others; otherwise the law is the tables' product
        divided by its sum.
    """

    def __init__(
        self, buckets: Sequence[Bucket], tables: Sequence[Table], sizes: Sequence[int], *, normalised: bool = True
    ) -> None:
        self._buckets = buckets
        self._normalised = normalised
        self._sizes = sizes
        self._logs: list[Logs] = []
        self._errors: list[float] = []
        self._send_up(_given_tables(buckets, tables))
        self._send_down()

    def of(self, bucket: int, scope: Scope) -> tuple[Logs, float]:
        """Return log P(scope), ascending axes, −∞ for what cannot occur, and a bound on the error of the rest.

        Parameters
        ----------
        bucket : int
            Place of a bucket that holds the scope.
        scope : tuple of int
            The nodes.
        """
        return self._summed(self._logs[bucket], self._errors[bucket], self._buckets[bucket].scope, scope)

    def _send_up(self, given: list[list[Table]]) -> None:
        sent: list[list[tuple[Scope, Logs, float]]] = [[] for _ in self._buckets]
        for place, bucket in enumerate(self._buckets):
            if self._normalised and not sent[place] and _is_conditional(bucket, given[place]):
                # P(node | S) as it is given: it sums to 1, and the parent need not be told
                ((nodes, table),) = given[place]
                with np.errstate(divide="ignore"):
                    self._logs.append(_aligned(np.log(table), nodes, bucket.scope))
                self._errors.append(UNIT * (table.shape[-1] + 8 + _largest(self._logs[-1])))
                continue
            logs, error = np.zeros([self._sizes[v] for v in bucket.scope]), 0.0
            for nodes, table in given[place]:
                with np.errstate(divide="ignore"):
                    logs += _aligned(np.log(table), nodes, bucket.scope)
                # a row sums to 1 up to rounding, and so does what it stands for
                error += UNIT * (table.shape[-1] + 8)
            for scope, message, its in sent[place]:
                logs += _aligned(message, scope, bucket.scope)
                error += its
            sent[place] = []
            error += UNIT * 4 * _largest(logs)
            up, above = self._summed(logs, error, bucket.scope, bucket.separator)
            if bucket.parent >= 0:
                sent[bucket.parent].append((bucket.separator, up, above))
            self._logs.append(_divided(logs, _aligned(up, bucket.separator, bucket.scope)))
            self._errors.append(error + above + UNIT * 4 * _largest(self._logs[-1]))

    def _send_down(self) -> None:
        for place in range(len(self._buckets) - 1, -1, -1):
            bucket = self._buckets[place]
            if bucket.parent < 0:
                continue
            law, error = self.of(bucket.parent, bucket.separator)
            self._logs[place] += _aligned(law, bucket.separator, bucket.scope)
            self._errors[place] += error + UNIT * 4 * _largest(self._logs[place])

    def _summed(self, logs: Logs, error: float, scope: Scope, kept: Scope) -> tuple[Logs, float]:
        if scope == kept:
            return logs, error
        axes = tuple(axis for axis, node in enumerate(scope) if node not in kept)
        top = logs.max(axis=axes, keepdims=True)
        top[top == -np.inf] = 0.0
        with np.errstate(divide="ignore", under="ignore"):
            sums = np.log(np.exp(logs - top).sum(axis=axes)) + top.squeeze(axes)
        addends = math.prod(self._sizes[scope[axis]] for axis in axes)
        return sums, error + UNIT * (addends + 16 + 4 * _largest(logs))


def _given_tables(buckets: Sequence[Bucket], tables: Sequence[Table]) -> list[list[Table]]:
    """Give every table to the bucket in which the first of its nodes is eliminated: it holds all of them."""
    place = {bucket.node: at for at, bucket in enumerate(buckets)}
    given: list[list[Table]] = [[] for _ in buckets]
    for nodes, table in tables:
        given[min(place[node] for node in nodes)].append((nodes, table))
    return given


def _is_conditional(bucket: Bucket, given: Sequence[Table]) -> bool:
    """Whether all that a bucket is given is the table of its node given the others."""
    return len(given) == 1 and given[0][0][-1] == bucket.node and len(given[0][0]) == len(bucket.scope)


def _aligned(array: Logs, nodes: Sequence[int], scope: Scope) -> Logs:
    """Return an array with axes for ``nodes`` as one with axes for a scope that holds them, of length 1 for others."""
    order = sorted(range(len(nodes)), key=lambda axis: nodes[axis])
    lengths = dict(zip(nodes, array.shape, strict=True))
    return array.transpose(order).reshape([lengths.get(node, 1) for node in scope])


def _divided(logs: Logs, by: Logs) -> Logs:
    """Subtract logarithms; what cannot occur stays so."""
    return logs - np.where(by == -np.inf, 0.0, by)


def _largest(logs: Logs) -> float:
    """Return the largest finite logarithm in absolute value, at least 1."""
    return max(float(-np.min(logs, where=logs > -np.inf, initial=0.0)), float(logs.max(initial=0.0)))
