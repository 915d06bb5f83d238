"""Brute force for stretches: linear programs over all densities of a short chain; knows nothing of the package.

A density is a positive function f of all sequences of a chain. Of two sequences s and s' its logarithms may differ by
Σ_t d_t(s_t, s'_t), and by δ for every step from a record to the next on which they differ.
"""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from propagation_oracle import Array, shortest_paths

Path = tuple[int, ...]


def law_of_tuples(first: Array, tensor: Array, length: int) -> Array:
    """Law of all sequences of a chain whose next record depends on the last m ones; ``first`` is the law of m."""
    m = first.ndim
    law = first.sum(axis=tuple(range(length, m))) if length < m else first
    for _ in range(length - m):
        law = law[..., None] * tensor
    return law


class Densities:
    """All densities of sequences with given losses of records, shape (T, k, k), and of steps."""

    def __init__(self, d: Array, step: float = 0.0) -> None:
        length, k, _ = d.shape
        self.z = np.array(list(itertools.product(range(k), repeat=length)))
        apart = np.zeros((len(self.z),) * 2)
        for t, loss in enumerate(shortest_paths(d)):
            apart += loss[self.z[:, None, t], self.z[None, :, t]]
        steps = self.z[:, :-1] * k + self.z[:, 1:]
        apart += step * (steps[:, None, :] != steps[None, :, :]).sum(axis=2)
        self.apart = apart
        differ = (self.z[:, None, :] != self.z[None, :, :]).sum(axis=2)
        # without losses of steps the distance is a sum over records, so changes of one record alone say it all
        i, j = np.nonzero(differ > 0 if step else differ == 1)
        rows = np.tile(np.arange(i.size), 2)
        values = np.concatenate([np.ones(i.size), -np.exp(apart[i, j])])
        self._edges = coo_matrix((values, (rows, np.concatenate([i, j]))), shape=(i.size, len(self.z))).tocsr()

    def most(self, gain: Array, unit: Array) -> float:
        """Largest log ratio of the means of one density under two laws of all sequences; never above the truth."""
        zero = np.zeros(self._edges.shape[0])
        found = linprog(-gain, A_ub=self._edges, b_ub=zero, A_eq=unit[None, :], b_eq=[1.0], method="highs")
        assert found.status == 0, found.message
        m = np.log(np.maximum(found.x, 1e-300))
        m = np.exp((m[None, :] + self.apart).min(axis=1))  # Lipschitz exactly
        return math.log(float(gain @ m) / float(unit @ m))

    def given(self, law: Array, first: int, records: int) -> dict[Path, Array]:
        """Law of all sequences given each possible path of the records from ``first``, 0-based, on."""
        weights, laws = law.ravel(), {}
        for path in itertools.product(range(law.shape[0]), repeat=records):
            of_path = np.where(np.all(self.z[:, first : first + records] == path, axis=1), weights, 0.0)
            if of_path.any():
                laws[path] = of_path / of_path.sum()
        return laws

    def between(self, law: Array, first: int, x: Path, x_: Path) -> float:
        """Largest log ratio of any density, given two paths of the same records."""
        laws = self.given(law, first, len(x))
        return self.most(laws[x], laws[x_])


def pairs_by_loss(d: Array, first: int, paths: Sequence[Path], most: int) -> Iterator[tuple[Path, Path]]:
    """Yield so many pairs of paths at most, those first whose own losses differ most."""
    pairs = list(itertools.permutations(paths, 2))
    if len(pairs) > most:
        pairs.sort(key=lambda pair: -sum(d[first + t, x, y] for t, (x, y) in enumerate(zip(*pair, strict=True))))
    yield from pairs[:most]


def supremum_of_stretch(
    law: Array, d: Array, records: int, *, step: float = 0.0, most: int = 10**9, near: NDArray[np.bool_] | None = None
) -> float:
    """Largest log ratio of any density, any so many records in a row, and any two of their paths."""
    densities, worst = Densities(d, step), 0.0
    for first in range(law.ndim - records + 1):
        given = densities.given(law, first, records)
        for x, x_ in pairs_by_loss(d, first, list(given), most):
            if near is None or all(near[a, b] for a, b in zip(x, x_, strict=True)):
                worst = max(worst, densities.most(given[x], given[x_]))
    return worst


def worst_pair(
    past: Array,
    own: Array,
    future: Array,
    states: NDArray[np.bool_],
    possible: NDArray[np.bool_],
    step: float,
    near: NDArray[np.bool_],
) -> float | None:
    """The largest sum over pairs of possible paths, all of them tried; arrays have the phase of a cycle first."""
    phases, k = states.shape
    records, best = len(own), None
    for phase in range(phases):

        def occurs(path: Path, phase: int = phase) -> bool:
            steps = enumerate(itertools.pairwise(path))
            return bool(states[phase, path[0]]) and all(possible[(phase + t) % phases, a, b] for t, (a, b) in steps)

        paths = [path for path in itertools.product(range(k), repeat=records) if occurs(path)]
        end = (phase + records - 1) % phases
        for x, x_ in itertools.permutations(paths, 2):
            if not all(near[a, b] for a, b in zip(x, x_, strict=True)):
                continue
            total = past[phase, x[0], x_[0]] + future[end, x[-1], x_[-1]]
            total += sum(own[t, a, b] for t, (a, b) in enumerate(zip(x, x_, strict=True)))
            total += step * sum(s != s_ for s, s_ in zip(itertools.pairwise(x), itertools.pairwise(x_), strict=True))
            best = total if best is None else max(best, total)
    return best
