"""Brute force for leakage on forests: densities over all databases of a few nodes; knows nothing of the package.

A density m over the databases is an array with one axis per node. It is *record-Lipschitz* for losses d (one (k_i, k_i)
matrix per node) if m(z) ≤ e^{d_i(z_i, z'_i)} m(z') whenever z and z' differ in node i alone.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

Array = NDArray[np.float64]
Pairs = Sequence[NDArray[np.bool_]]


def joint_law(parents: Sequence[int], tables: Sequence[Any]) -> Any:
    """Probability of every database: the product of its tables' entries. Fractions in, fractions out."""
    sizes = [np.shape(table)[-1] for table in tables]
    law = np.ones(sizes, dtype=np.asarray(tables[0]).dtype)
    for node, (parent, table) in enumerate(zip(parents, tables, strict=True)):
        values = np.asarray(table)
        shape = [1] * len(sizes)
        shape[node] = sizes[node]
        if parent >= 0:
            shape[parent] = sizes[parent]
            values = values if parent < node else values.T
        law = law * values.reshape(shape)
    return law


def shortest_paths(d: Array) -> Array:
    closed = d.copy()
    for z in range(len(d)):
        closed = np.minimum(closed, closed[:, z, None] + closed[None, z, :])
    return closed


def lipschitz(log_m: Array, losses: Sequence[Array]) -> Array:
    """Largest record-Lipschitz log density below a given one (McShane), one node after the other."""
    for node, loss in enumerate(losses):
        along = np.moveaxis(log_m, node, -1)
        log_m = np.moveaxis((along[..., None, :] + shortest_paths(loss)).min(axis=-1), -1, node)
    return log_m


def pairs_of(law: Any, secrets: Pairs | None) -> list[tuple[int, int, int]]:
    """Nodes and pairs of states that both can occur and shall not be told apart."""
    found = []
    for node, k in enumerate(law.shape):
        mass = np.moveaxis(law, node, 0).reshape(k, -1).sum(axis=1)
        for x, x_ in itertools.permutations(range(k), 2):
            if mass[x] > 0 and mass[x_] > 0 and (secrets is None or secrets[node][x, x_]):
                found.append((node, x, x_))
    return found


def supremum(law: Array, losses: Sequence[Array], secrets: Pairs | None = None) -> float:
    """Largest ratio of any record-Lipschitz density: one linear program per node and pair of states.

    Every program's optimum is turned into a density that is Lipschitz exactly, so the number is never above the truth.
    """
    databases = np.arange(law.size).reshape(law.shape)
    rows, columns, values, n = [], [], [], 0
    for node, loss in enumerate(losses):
        along = np.moveaxis(databases, node, -1).reshape(-1, len(loss))
        for x, y in itertools.permutations(range(len(loss)), 2):
            rows.append(np.tile(np.arange(n, n + len(along)), 2))
            columns.append(np.concatenate([along[:, x], along[:, y]]))
            values.append(np.repeat([1.0, -math.exp(loss[x, y])], len(along)))
            n += len(along)
    edges = coo_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), (n, law.size)).tocsr()
    worst = 0.0
    for node, x, x_ in pairs_of(law, secrets):
        given, at = (np.moveaxis(array, node, 0) for array in (law, databases))
        gain, unit = np.zeros(law.size), np.zeros(law.size)
        gain[at[x].ravel()], unit[at[x_].ravel()] = (given[s].ravel() / given[s].sum() for s in (x, x_))
        found = linprog(-gain, A_ub=edges, b_ub=np.zeros(n), A_eq=unit[None, :], b_eq=[1.0], method="highs")
        assert found.status == 0, found.message
        m = np.exp(lipschitz(np.log(np.maximum(found.x, 1e-300)).reshape(law.shape), losses).ravel())
        worst = max(worst, math.log(float(gain @ m) / float(unit @ m)))
    return worst


def density_loss(law: Any, m: Any, secrets: Pairs | None = None) -> float:
    """Largest log ratio of E[m | X_i = x] and E[m | X_i = x']; exact up to the logarithm if both are fractions."""
    tilted = law * m
    masses, means = (
        [np.moveaxis(a, node, 0).reshape(k, -1).sum(axis=1) for node, k in enumerate(law.shape)] for a in (law, tilted)
    )
    worst = 0.0
    for node, x, x_ in pairs_of(law, secrets):
        mass, mean = masses[node], means[node]
        worst = max(worst, log_ratio(mean[x] * mass[x_], mean[x_] * mass[x]))
    return worst


def log_ratio(a: Any, b: Any) -> float:
    if not isinstance(a, Fraction):
        return math.log(a / b)
    ratio = a / b
    shift = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    return math.log(ratio / Fraction(2) ** shift) + shift * math.log(2)


def product(factors: Sequence[Any]) -> Any:
    """Density that is a product of one factor per node, given at each of its states."""
    m = np.ones((), dtype=np.asarray(factors[0]).dtype)
    for factor in factors:
        m = m[..., None] * np.asarray(factor)
    return m


def binary_tilts(bounds: Sequence[Any]) -> list[Any]:
    """Extreme products on binary nodes: node i prefers state 0 by e^{d_i(0,1)}, or state 1 by e^{d_i(1,0)}.

    ``bounds`` are the e^{d_i}, as floats or fractions. On binary forests the supremum is among these: every average
    over a subtree is most extreme when every factor is.
    """
    ends = [([b[0, 1], b[0, 0]], [b[0, 0], b[1, 0]]) for b in bounds]
    return [product([np.asarray(factor) for factor in factors]) for factors in itertools.product(*ends)]


def laplace_loss(law: Array, values: Sequence[Array], scale: float, secrets: Pairs | None = None) -> float:
    """Exact loss of Σ_i values[i][x_i] with Laplace noise.

    Between atoms the likelihood ratio is monotone, beyond them it is constant: the worst output is an atom.
    """
    sums = np.zeros(())
    for row in values:
        sums = sums[..., None] + row
    outputs = np.unique(sums)
    noise = np.exp(-np.abs(outputs[:, None] - sums.ravel()) / scale)
    return max(density_loss(law, m.reshape(law.shape), secrets) for m in noise)
