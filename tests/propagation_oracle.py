"""Brute force for leakage propagation: densities over all sequences of a short chain; knows nothing of the package.

A density m over the k^T sequences is an array with T axes. It is *record-Lipschitz* for losses d of shape (T, k, k)
if m(z) ≤ e^{d_t(z_t, z'_t)} m(z') whenever z and z' differ in record t alone: all that a release's record-level loss
says about the release.
"""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

Array = NDArray[np.float64]


def chain_law(initial: ArrayLike, transition: ArrayLike, length: int) -> Array:
    """Law of all sequences, one axis per record."""
    law, p = np.asarray(initial, dtype=float), np.asarray(transition, dtype=float)
    for _ in range(length - 1):
        law = law[..., None] * p
    return law


def losses_per_pair(losses: ArrayLike, length: int, k: int) -> Array:
    """A number, (T,), (k, k) or (T, k, k) losses as (T, k, k), zero on the diagonal."""
    given = np.asarray(losses, dtype=float)
    if given.ndim == 1:
        given = given[:, None, None]
    return np.broadcast_to(given, (length, k, k)) * (1 - np.eye(k))


def shortest_paths(d: Array) -> Array:
    closed = d.copy()
    for z in range(d.shape[-1]):
        closed = np.minimum(closed, closed[..., :, z, None] + closed[..., None, z, :])
    return closed


def lipschitz(log_m: Array, d: Array) -> Array:
    """Largest record-Lipschitz log density below a given one (McShane): min over z' of log m(z') + d(z, z').

    The distance of two sequences is the sum over records, so one pass per axis does.
    """
    for t, loss in enumerate(shortest_paths(d)):
        along = np.moveaxis(log_m, t, -1)
        log_m = np.moveaxis((along[..., None, :] + loss).min(axis=-1), -1, t)
    return log_m


def is_lipschitz(log_m: Array, d: Array, slack: float = 1e-12) -> bool:
    return all(
        np.all(along[..., :, None] - along[..., None, :] <= loss + slack)
        for along, loss in ((np.moveaxis(log_m, t, -1), loss) for t, loss in enumerate(d))
    )


def potentials(values: Array) -> Array:
    """Σ_t values[t, z_t] over all sequences z; values of shape (T, k)."""
    total = np.zeros(())
    for row in values:
        total = total[..., None] + row
    return total


def tilts(d: Array) -> Iterator[Array]:
    """Extreme sums of potentials: for every record +d(x, z) or −d(z, x), in patterns that repeat after 1 or 2 records.

    On binary chains with symmetric losses these are the sign tilts, alternating ones among them.
    """
    length, k, _ = d.shape
    closed = shortest_paths(d)
    extreme = [*(closed[:, :, x] for x in range(k)), *(-closed[:, x, :] for x in range(k))]
    for even, odd in itertools.product(extreme, repeat=2):
        yield potentials(np.where(np.arange(length)[:, None] % 2 == 0, even, odd))


def random_densities(rng: np.random.Generator, d: Array, count: int) -> Iterator[Array]:
    """Log densities of every kind: closed noise, sign patterns, potentials, their minima and maxima."""
    length, k, _ = d.shape
    shape, size, closed = (k,) * length, float(d.sum(axis=0).max()) + 1e-3, shortest_paths(d)
    for n in range(count):
        kind = n % 5
        if kind == 0:
            yield lipschitz(rng.normal(size=shape) * size * rng.choice([0.1, 1, 10]), d)
        elif kind == 1:
            yield lipschitz(rng.choice([-1.0, 1.0], size=shape) * size * rng.choice([0.2, 1, 5]), d)
        elif kind == 2:  # cones around a few sequences
            spikes = np.where(rng.random(shape) < 3 / k**length, rng.normal(size=shape), 1e3)
            spikes.flat[rng.integers(spikes.size)] = 0.0
            yield lipschitz(spikes, d)
        else:
            several = [potentials(_random_potential(rng, closed)) + rng.normal() * size / 2 for _ in range(kind - 1)]
            combine = np.minimum if rng.random() < 0.5 else np.maximum
            yield combine.reduce(several)


def _random_potential(rng: np.random.Generator, closed: Array) -> Array:
    length, k, _ = closed.shape
    at, records = rng.integers(k, size=length), np.arange(length)
    return np.where(rng.random((length, 1)) < 0.5, closed[records, :, at], -closed[records, at, :])


def density_loss(law: Array, log_m: Array) -> float:
    """Pufferfish ratio of one density: max over records i and states x, x' of log E[m|X_i=x] / E[m|X_i=x']."""
    m = np.exp(log_m - log_m.max())
    worst = 0.0
    for t in range(law.ndim):
        others = tuple(a for a in range(law.ndim) if a != t)
        mass, mean = law.sum(axis=others), (law * m).sum(axis=others)
        logs = np.log(mean[mass > 0] / mass[mass > 0])
        worst = max(worst, float(logs.max() - logs.min()))
    return worst


def supremum(law: Array, d: Array) -> float:
    """Largest ratio of any record-Lipschitz density."""
    return max((value for *_, value in suprema(law, d)), default=0.0)


def suprema(law: Array, d: Array) -> Iterator[tuple[int, int, int, float]]:
    """Largest log ratio of any record-Lipschitz density for each record and pair of states, by a linear program.

    Every program's optimum is turned into a density that is Lipschitz exactly, so the number is never above the truth.
    """
    shape, k = law.shape, law.shape[0]
    sequences = np.arange(law.size).reshape(shape)
    rows, columns, values, n = [], [], [], 0
    for t, loss in enumerate(d):
        along = np.moveaxis(sequences, t, -1).reshape(-1, k)
        for x, y in itertools.permutations(range(k), 2):
            z, z_ = along[:, x], along[:, y]
            rows.append(np.tile(np.arange(n, n + z.size), 2))
            columns.append(np.concatenate([z, z_]))
            values.append(np.concatenate([np.ones(z.size), np.full(z.size, -math.exp(loss[x, y]))]))
            n += z.size
    edges = coo_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(n, law.size)
    ).tocsr()
    for t in range(law.ndim):
        given = np.moveaxis(law, t, 0).reshape(k, -1)
        index = np.moveaxis(sequences, t, 0).reshape(k, -1)
        possible = [x for x in range(k) if given[x].any()]
        for x, x_ in itertools.permutations(possible, 2):
            gain, unit = np.zeros(law.size), np.zeros(law.size)
            gain[index[x]], unit[index[x_]] = given[x] / given[x].sum(), given[x_] / given[x_].sum()
            found = linprog(-gain, A_ub=edges, b_ub=np.zeros(n), A_eq=unit[None, :], b_eq=[1.0], method="highs")
            assert found.status == 0, found.message
            m = np.exp(lipschitz(np.log(np.maximum(found.x, 1e-300)).reshape(shape), d).ravel())
            yield t, x, x_, math.log(float(gain @ m) / float(unit @ m))


def supremum_of_steps(law: Array, d: Array, step: float) -> float:
    """Largest ratio of any density that also moves by at most ``step`` for each step that changes: every pair compared.

    The distance of two sequences is the sum of the losses of the records that differ, and ``step`` for every step from
    one record to the next that is another one. Several records that change in a row share steps, so pairs of sequences
    that differ in one record alone do not say it all.
    """
    length, k = law.ndim, law.shape[0]
    z = np.array(list(itertools.product(range(k), repeat=length)))
    apart = sum(shortest_paths(d)[t][z[:, None, t], z[None, :, t]] for t in range(length))
    pairs = z[:, :-1] * k + z[:, 1:]
    apart = apart + step * (pairs[:, None, :] != pairs[None, :, :]).sum(axis=2)
    apart = np.asarray(apart)
    i, j = np.nonzero(~np.eye(len(z), dtype=bool))
    rows = np.arange(i.size)
    values = np.concatenate([np.ones(i.size), -np.exp(apart[i, j])])
    edges = coo_matrix((values, (np.tile(rows, 2), np.concatenate([i, j]))), shape=(i.size, len(z))).tocsr()
    weights, worst = law.ravel(), 0.0
    for t in range(length):
        given = [np.where(z[:, t] == x, weights, 0.0) for x in range(k)]
        possible = [each / each.sum() for each in given if each.any()]
        for gain, unit in itertools.permutations(possible, 2):
            found = linprog(-gain, A_ub=edges, b_ub=np.zeros(i.size), A_eq=unit[None, :], b_eq=[1.0], method="highs")
            assert found.status == 0, found.message
            m = np.log(np.maximum(found.x, 1e-300))
            m = np.exp((m[None, :] + apart).min(axis=1))  # Lipschitz exactly
            worst = max(worst, math.log(float(gain @ m) / float(unit @ m)))
    return worst


def most_telling(every: list[Array], d: Array, count: int) -> list[Array]:
    """The laws under which the extreme sums of potentials leak most: linear programs for all of them take minutes."""
    if len(every) <= count:
        return every
    by_tilts = [max(density_loss(law, m) for m in itertools.islice(tilts(d), 40)) for law in every]
    order = sorted(range(len(every)), key=by_tilts.__getitem__, reverse=True)
    return [every[i] for i in order[:count]]


def powers_of_two_in_cone(rng: np.random.Generator, exponents: NDArray[np.int64]) -> list[Fraction]:
    """A v of the cone v_y ≤ 2^{c(y,z)} v_z, exactly; ``exponents`` c is a closed matrix of whole numbers ≥ 0."""
    k = len(exponents)
    start = rng.integers(-30, 31, size=k)
    log2 = [min(int(start[z]) + int(exponents[y, z]) for z in range(k)) for y in range(k)]
    v = [Fraction(2) ** e for e in log2]
    assert all(v[y] <= Fraction(2) ** int(exponents[y, z]) * v[z] for y in range(k) for z in range(k))
    return v


def log_of_fraction(value: Fraction) -> float:
    """Logarithm of a fraction of any size, to about 1e-15."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    return math.log(value / Fraction(2) ** shift) + shift * math.log(2)


def two_state_leakage(initial: ArrayLike, transition: ArrayLike, losses: ArrayLike) -> float:
    """Leakage of a binary chain by the plain recursion, losses (T,): on two states Φ has two candidates for v."""
    p, d = np.asarray(transition, dtype=float), np.asarray(losses, dtype=float)
    length = d.size

    def phi(kernel: Array, a: Array) -> Array:
        result = np.zeros((2, 2))
        for x, x_ in ((0, 1), (1, 0)):
            for v in (np.array([math.exp(a[0, 1]), 1.0]), np.array([1.0, math.exp(a[1, 0])])):
                result[x, x_] = max(result[x, x_], math.log((kernel[x] @ v) / (kernel[x_] @ v)))
        return result

    marginals, flip = [np.asarray(initial, dtype=float)], 1 - np.eye(2)
    for _ in range(length - 1):
        marginals.append(marginals[-1] @ p)
    after, before = [np.zeros((2, 2))] * length, [np.zeros((2, 2))] * length
    for t in reversed(range(length - 1)):
        after[t] = phi(p, after[t + 1] + d[t + 1] * flip)
    for t in range(1, length):
        if marginals[t].min() > 0:
            reverse = marginals[t - 1][None, :] * p.T / marginals[t][:, None]
            if marginals[t - 1].min() > 0:
                before[t] = phi(reverse, before[t - 1] + d[t - 1] * flip)
    return max(
        float((after[t] + before[t] + d[t] * flip).max()) if marginals[t].min() > 0 else 0.0 for t in range(length)
    )


def zero_filled_leakage(initial: Array, transition: Array, losses: Array, *, fill_past_rows: bool) -> float:
    """The recursion misread: pairs with an impossible state are bounded by 0 (plus their loss) instead of absent."""
    p, d, k = np.asarray(transition, dtype=float), np.asarray(losses, dtype=float), len(initial)
    length, flip = d.size, 1 - np.eye(k)

    def phi(kernel: Array, a: Array, rows: list[int]) -> Array:
        result, bounds = np.zeros((k, k)), np.exp(shortest_paths(a))
        edges = [
            [1.0 if z == y else -bounds[y, w] if z == w else 0.0 for z in range(k)]
            for y, w in itertools.permutations(range(k), 2)
        ]
        for x, x_ in itertools.permutations(rows, 2):
            found = linprog(
                -kernel[x], A_ub=edges, b_ub=np.zeros(len(edges)), A_eq=kernel[x_][None, :], b_eq=[1.0], method="highs"
            )
            result[x, x_] = math.log(-found.fun)
        return result

    marginals = [np.asarray(initial, dtype=float)]
    for _ in range(length - 1):
        marginals.append(marginals[-1] @ p)
    after, before = [np.zeros((k, k))] * length, [np.zeros((k, k))] * length
    for t in reversed(range(length - 1)):
        after[t] = phi(p, after[t + 1] + d[t + 1] * flip, list(range(k)))
    for t in range(1, length):
        rows = [x for x in range(k) if marginals[t][x] > 0]
        reverse = np.zeros((k, k))
        reverse[rows] = marginals[t - 1][None, :] * p.T[rows] / marginals[t][rows, None]
        own = d[t - 1] * flip
        if not fill_past_rows:  # undefined entries are 0 altogether, own loss included
            possible = marginals[t - 1] > 0
            own = own * possible[:, None] * possible[None, :]
        before[t] = phi(reverse, before[t - 1] + own, rows)
    worst = 0.0
    for t in range(length):
        rows = [x for x in range(k) if marginals[t][x] > 0]
        for x, x_ in itertools.permutations(rows, 2):
            worst = max(worst, float(after[t][x, x_] + before[t][x, x_] + d[t]))
    return worst
