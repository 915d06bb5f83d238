"""Brute force for columns: linear programs over all densities of one row of a network; knows nothing of the package.

A density is a positive function f of all rows. Of two rows s and s' its logarithms may differ by Σ_v d_v(s_v, s'_v).
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

Array = NDArray[np.float64]
Value = tuple[int, ...]


class RowDensities:
    """All densities of rows with given losses of their columns, a (k_v, k_v) matrix for each."""

    def __init__(self, losses: Sequence[Array]) -> None:
        sizes = [len(loss) for loss in losses]
        self.rows = np.array(list(itertools.product(*map(range, sizes))))
        self.apart = np.zeros((len(self.rows),) * 2)
        for v, loss in enumerate(losses):
            closed = loss.copy()
            for z in range(len(closed)):
                closed = np.minimum(closed, closed[:, z, None] + closed[None, z, :])
            self.apart += closed[self.rows[:, None, v], self.rows[None, :, v]]
        # the distance is a sum over columns, so changes of one column alone say it all
        i, j = np.nonzero((self.rows[:, None, :] != self.rows[None, :, :]).sum(axis=2) == 1)
        places = np.tile(np.arange(i.size), 2), np.concatenate([i, j])
        values = np.concatenate([np.ones(i.size), -np.exp(self.apart[i, j])])
        self._edges = coo_matrix((values, places), shape=(i.size, len(self.rows))).tocsr()

    def most(self, gain: Array, unit: Array) -> float:
        """Largest log ratio of the means of one density under two laws of all rows; never above the truth."""
        zero = np.zeros(self._edges.shape[0])
        found = linprog(-gain, A_ub=self._edges, b_ub=zero, A_eq=unit[None, :], b_eq=[1.0], method="highs")
        assert found.status == 0, found.message
        logs = np.log(np.maximum(found.x, 1e-300))
        f = np.exp((logs[None, :] + self.apart).min(axis=1))  # Lipschitz exactly
        return math.log(float(gain @ f) / float(unit @ f))

    def given(self, law: Array, columns: Sequence[int]) -> dict[Value, Array]:
        """Law of all rows given each joint value of the columns that can occur."""
        weights, laws = law.ravel(), {}
        for value in itertools.product(*(range(law.shape[v]) for v in columns)):
            mass = np.where(np.all(self.rows[:, list(columns)] == value, axis=1), weights, 0.0)
            if mass.any():
                laws[value] = mass / mass.sum()
        return laws

    def between(self, law: Array, columns: Sequence[int], z: Value, other: Value) -> float:
        """Largest log ratio of the means of one density, given two joint values of the columns."""
        laws = self.given(law, columns)
        return self.most(laws[z], laws[other])


def supremum_of_columns(
    law: Array, losses: Sequence[Array], columns: Sequence[int], rng: np.random.Generator, most: int
) -> tuple[float, int]:
    """Largest log ratio of any density over pairs of joint values, and how many programs that took.

    Of more pairs than ``most`` those are taken whose own losses differ most, and some at random.
    """
    densities = RowDensities(losses)
    laws = densities.given(law, columns)
    pairs = list(itertools.permutations(laws, 2))
    if len(pairs) > most:
        pairs.sort(key=lambda pair: -sum(losses[v][a, b] for v, a, b in zip(columns, *pair, strict=True)))
        others = [pairs[i] for i in rng.permutation(np.arange(most // 2, len(pairs)))[: most - most // 2]]
        pairs = pairs[: most // 2] + others
    return max((densities.most(laws[z], laws[z_]) for z, z_ in pairs), default=0.0), len(pairs)
