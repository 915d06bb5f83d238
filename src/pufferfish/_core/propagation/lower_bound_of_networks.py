r"""How much a Laplace release of a network's nodes certainly leaks: sign tilts, as for chains.

Far out in the direction of a sign vector s the density of Lap(b) noise on a sum of per-node contributions w_v(x) is
proportional to :math:`\prod_v e^{s^T w_v(X_v)/b}`. Let Q be the law of the
network times this product, made a law again. Then

.. math:: \log \frac{E[\prod_v g_v(X_v) \mid X_i = x]}{E[\prod_v g_v(X_v) \mid X_i = x']}
          = \log \frac{Q(X_i = x)}{P(X_i = x)} - \log \frac{Q(X_i = x')}{P(X_i = x')}

is what outputs there tell about node i, so that one pass over the clusters gives it for every node. Signs are sought
for one node and one pair of its states: an output's sign is that of the difference of its means under Q given x and
x', which is the slope of the expression above, until no sign changes. Numbers are rounded *down*.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pufferfish._core.networks.cluster_laws import ClusterLaws, Table
from pufferfish._core.networks.junction_tree import buckets_of
from pufferfish._core.numbers.rounding import UNIT

__all__ = ["TiltedNetwork"]

_STEEPEST = 300.0
"""Exponents of tilts beyond this many nats would leave the range of a double; then nothing is claimed."""

_TURNS = 20

_MANY = 1 << 20
"""Entries of all clusters up to which a bound is sought: each of some fifty passes goes over all of them."""

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


class TiltedNetwork:
    """What sign tilts of a release of one network tell.

    Parameters
    ----------
    tables : sequence of (nodes, ndarray)
        For every node j, in order, P(X_j | parents): axes for its parents, then for j.
    sizes : sequence of int
        Number of states of every node.
    contributions : sequence of (m, k_j) ndarray of int
        What each state of every node adds to each output.
    node, pair : int, (int, int)
        The node, and its two states, for which signs are sought.
    """

    all_signs = False
    tolerance = 1e-6

    def __init__(
        self,
        tables: Sequence[Table],
        sizes: Sequence[int],
        contributions: Sequence[NDArray[np.int64]],
        node: int,
        pair: tuple[int, int],
    ) -> None:
        self._tables, self._sizes = list(tables), sizes
        self._contributions = [np.asarray(w, dtype=np.float64) for w in contributions]
        self._node, self._pair = node, pair
        self._buckets = buckets_of([nodes for nodes, _ in tables], sizes)
        entries = [math.prod(sizes[v] for v in bucket.scope) for bucket in self._buckets]
        # every node is looked up in a smallest bucket that holds it
        largest_first = sorted(range(len(entries)), key=lambda b: -entries[b])
        self._holds = {v: (b, at) for b in largest_first for at, v in enumerate(self._buckets[b].scope)}
        self.affordable = sum(entries) <= _MANY
        self._plain = self._marginals([]) if self.affordable else []

    def candidates(self) -> Matrix:
        """Return the signs that are best where noise is large; shape (1, m)."""
        return self._improved(np.zeros(len(self._contributions[0])), np.inf)[None, :]

    def search(self, signs: Matrix, scale: float) -> Matrix:
        """Return signs that are as good as single turns make them at a scale; shape (n, m)."""
        return np.unique(np.array([self._climb(each, scale) for each in signs]), axis=0)

    def losses(self, signs: Matrix, scale: float) -> Vector:
        """Return what each tilt tells at least, about the node about which it tells most; shape (n,)."""
        return np.array([self._loss(each, scale) for each in signs])

    def _climb(self, signs: Vector, scale: float) -> Vector:
        for _ in range(_TURNS):
            better = self._improved(signs, scale)
            if np.array_equal(better, signs):
                break
            signs = better
        return signs

    def _improved(self, signs: Vector, scale: float) -> Vector:
        """Return the signs of the slopes at some tilt."""
        tilts = self._tilts(signs, scale)
        means: list[Vector] = []
        for state in self._pair:
            alone = np.zeros(self._sizes[self._node])
            alone[state] = 1.0
            laws = self._marginals([*tilts, ((self._node,), alone)])
            means.append(
                np.sum([w @ np.exp(logs) for w, (logs, _) in zip(self._contributions, laws, strict=True)], axis=0)
            )
        return np.where(means[0] >= means[1], 1.0, -1.0)

    def _loss(self, signs: Vector, scale: float) -> float:
        steepest = max(float(np.ptp(signs @ w)) for w in self._contributions) / scale
        if steepest > _STEEPEST:
            return 0.0
        tilts = self._tilts(signs, scale)
        # what a tilt's table may be off by, in nats: its exponent and the exponential
        off = len(tilts) * UNIT * (8 + 4 * steepest)
        best = 0.0
        for (tilted, error), (plain, its) in zip(self._marginals(tilts), self._plain, strict=True):
            can = plain > -np.inf
            told = tilted[can] - plain[can]
            best = max(best, float(np.ptp(told)) - 2 * (error + its + off) - 8 * UNIT * float(np.max(np.abs(told))))
        return best

    def _tilts(self, signs: Vector, scale: float) -> list[Table]:
        exponents = [signs @ w / scale for w in self._contributions]
        return [((v,), np.exp(t - t.max())) for v, t in enumerate(exponents) if np.ptp(t) > 0]

    def _marginals(self, factors: Sequence[Table]) -> list[tuple[Vector, float]]:
        """Return logarithms of every node's law, and by how much they may be off, under the network times factors."""
        laws = ClusterLaws(self._buckets, [*self._tables, *factors], self._sizes, normalised=not factors)
        found: list[tuple[Vector, float]] = []
        for v in range(len(self._sizes)):
            bucket, at = self._holds[v]
            logs, errors = laws.of([bucket], [at])
            found.append((logs[0], float(errors[0])))
        return found
