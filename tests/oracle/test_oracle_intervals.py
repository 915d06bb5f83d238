"""IntervalChain: no member, whatever matrix it takes at each step and however it starts, leaks more than the bound."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

import pufferfish as pf
from propagation_oracle import Array, density_loss, losses_per_pair, random_densities, supremum, tilts
from pufferfish._core.phi.rows_between_bounds import EntryBounds, IntervalRatios, Marginals
from pufferfish._core.quilts.influence import IntervalInfluence


def interval(rng: np.random.Generator, k: int, width: float, zeros: float = 0.0) -> pf.IntervalChain:
    p = rng.dirichlet(np.ones(k), size=k)
    keep = rng.random((k, k)) >= zeros
    np.fill_diagonal(keep, True)
    p = p * keep / (p * keep).sum(axis=1, keepdims=True)
    less, more = rng.random((2, k, k)) * width
    return pf.IntervalChain(np.maximum(p - less, 0), np.where(keep, np.minimum(p + more, 1), 0))


def law_between(rng: np.random.Generator, lower: Array, upper: Array) -> Array:
    """A random law of a row: extreme, filling bounds in a random order, or a mixture of such."""
    laws = []
    for _ in range(1 + int(rng.integers(3))):
        law = lower.copy()
        for y in rng.permutation(law.size):
            law[y] += min(upper[y] - law[y], max(1 - law.sum(), 0.0))
        laws.append(law)
    law = rng.dirichlet(np.ones(len(laws))) @ np.array(laws)
    return law / law.sum()


def matrix_between(rng: np.random.Generator, theta: pf.IntervalChain) -> Array:
    return np.array([law_between(rng, lo, up) for lo, up in zip(theta.lower, theta.upper, strict=True)])


def start(rng: np.random.Generator, k: int) -> Array:
    corner = np.eye(k)[rng.integers(k)]
    near = 0.5 ** rng.integers(0, 40)
    return (1 - near) * corner + near * rng.dirichlet(np.ones(k))


def law_of(initial: Array, matrices: list[Array]) -> Array:
    law = initial
    for p in matrices:
        law = law[..., None] * p
    return law


def members(rng: np.random.Generator, theta: pf.IntervalChain, length: int, count: int) -> Iterator[Array]:
    for _ in range(count):
        yield law_of(start(rng, theta.k), [matrix_between(rng, theta) for _ in range(length - 1)])


def climb(rng: np.random.Generator, theta: pf.IntervalChain, length: int, log_m: Array, steps: int) -> float:
    """The loss of one density under the worst member that changing one row or the start at a time finds."""
    initial, matrices = start(rng, theta.k), [matrix_between(rng, theta) for _ in range(length - 1)]
    worst = density_loss(law_of(initial, matrices), log_m)
    for _ in range(steps):
        start_, matrices_ = initial, [p.copy() for p in matrices]
        if rng.random() < 0.2:
            start_ = start(rng, theta.k)
        else:
            x = int(rng.integers(theta.k))
            matrices_[int(rng.integers(length - 1))][x] = law_between(rng, theta.lower[x], theta.upper[x])
        found = density_loss(law_of(start_, matrices_), log_m)
        if found > worst:
            worst, initial, matrices = found, start_, matrices_
    return worst


CASES = [(seed, 2 + seed % 2, 2 + seed % 5, (0.02, 0.1, 0.4)[seed % 3], 0.3 * (seed % 4 == 3)) for seed in range(16)]


@pytest.mark.parametrize(("seed", "k", "length", "width", "zeros"), CASES)
def test_no_member_leaks_more(seed: int, k: int, length: int, width: float, zeros: float, slow: bool) -> None:
    many, steps = (20, 100) if slow else (8, 40)
    rng = np.random.default_rng(seed)
    theta = interval(rng, k, width, zeros)
    bounds = [pf.LeakagePropagation(theta, length), pf.MQMExact(theta, length), pf.GroupDP(theta, length)]
    for losses in (0.5, rng.random(length) * (rng.random(length) < 0.7), rng.random((k, k))):
        d = losses_per_pair(losses, length, k)
        given = losses if np.ndim(losses) < 2 else losses * (1 - np.eye(k))
        found = [bound.leakage(given) for bound in bounds]
        assert found[0] <= min(found[1:]) * (1 + 1e-12)
        densities = [*random_densities(rng, d, 10), *list(tilts(d))[:20]]
        worst = max(density_loss(law, log_m) for law in members(rng, theta, length, many) for log_m in densities)
        chosen = densities[int(rng.integers(len(densities)))]
        worst = max(worst, *(climb(rng, theta, length, density, steps) for density in (chosen, densities[-1])))
        assert worst <= found[0] * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_no_lipschitz_density_leaks_more(seed: int) -> None:
    """The supremum over all densities that the record-level losses allow, by linear programs, of random members."""
    rng = np.random.default_rng(100 + seed)
    k, length = (2, 4) if seed % 2 else (3, 3)
    theta, loss = interval(rng, k, 0.2, 0.2 * (seed == 4)), float(rng.choice([0.3, 1.0]))
    bound = pf.LeakagePropagation(theta, length).leakage(loss)
    d = losses_per_pair(loss, length, k)
    assert max(supremum(law, d) for law in members(rng, theta, length, 4)) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_future_of_two_states_is_exact(seed: int) -> None:
    """The first record has a future only: what is proved is attained by extreme rows and an extreme density."""
    rng = np.random.default_rng(seed)
    theta, length, loss = interval(rng, 2, 0.3), 5, 0.4
    rows = [[np.array([lo, 1 - lo]) for lo in (theta.lower[x, 0], theta.upper[x, 0])] for x in (0, 1)]
    tops = np.full((2, 2), -np.inf)  # [x, x'] of log E[m | first is x] / E[m | first is x']
    future = {(0.0, 0.0)}
    for _ in range(length - 1):  # log-ratio ranges of what is ahead, over all members: v(0)/v(1)
        logs = set()
        for a, b in future:
            for v in (np.array([math.exp(loss + a), 1.0]), np.array([1.0, math.exp(loss + b)])):
                logs |= {math.log((r @ v) / (r_ @ v)) for r in rows[0] for r_ in rows[1]}
        future = {(max(logs), max(-min(logs), 0.0))}
    ((tops[0, 1], tops[1, 0]),) = future
    chain = pf.LeakagePropagation(theta, length)
    profile = np.full(length, loss)
    profile[0] = 1e-9
    found = chain.prove(profile)[1]
    assert found is not None
    ratios, a = IntervalRatios(theta.lower, theta.upper), np.zeros((2, 2))
    for _ in range(length - 1):
        a = ratios(np.where(np.eye(2), 0.0, loss + a))
    assert a[0, 1] == pytest.approx(max(tops[0, 1], 0.0), rel=1e-9, abs=1e-12)
    assert a[1, 0] == pytest.approx(tops[1, 0], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_phi_is_the_worst_pair_of_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = 2 + seed % 4
    theta = interval(rng, k, 0.2)
    a = rng.random((k, k)) * (1 - np.eye(k)) * rng.choice([0.1, 2.0])
    exact = IntervalRatios(theta.lower, theta.upper, exact=True)(a)
    chords = IntervalRatios(theta.lower, theta.upper, exact=False)(a)
    assert np.all(exact <= chords * (1 + 1e-9) + 1e-12)
    attained = np.zeros((k, k))
    closed = a.copy()
    for z in range(k):
        closed = np.minimum(closed, closed[:, z, None] + closed[None, z, :])
    for _ in range(300):
        u = rng.normal(size=k) * 3 * a.max()
        v = np.exp(np.min(closed + u[None, :], axis=1))  # in the cone
        order = np.argsort(v)
        for x in range(k):
            for x_ in range(k):
                if x != x_:
                    best = fill(theta.lower[x], theta.upper[x], order[::-1]) @ v
                    least = fill(theta.lower[x_], theta.upper[x_], order) @ v
                    attained[x, x_] = max(attained[x, x_], math.log(best / least))
    assert np.all(attained <= exact * (1 + 1e-9) + 1e-12)
    off = ~np.eye(k, dtype=bool)
    assert k > 3 or np.all(attained[off] >= 0.9 * exact[off])  # of more states random vectors come less near


def fill(lower: Array, upper: Array, order: Array) -> Array:
    law = lower.copy()
    for y in order:
        law[y] += min(upper[y] - law[y], max(1 - law.sum(), 0.0))
    return law


@pytest.mark.parametrize("seed", range(8))
def test_entries_marginals_and_influence_hold_for_members(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k = 2 + seed % 2
    theta = interval(rng, k, 0.15, 0.3 * (seed % 4 == 3))
    entries, marginals = EntryBounds(theta.lower, theta.upper), Marginals(theta.lower, theta.upper)
    influence = IntervalInfluence(theta.lower, theta.upper)
    groups = list(influence.groups(8))
    for steps in range(1, 6):
        low, high = marginals.bounds(marginals.known(steps))
        for _ in range(40):
            product = np.linalg.multi_dot([np.eye(k), *(matrix_between(rng, theta) for _ in range(steps)), np.eye(k)])
            assert np.all(product <= entries.most * (1 + 1e-12) + 1e-15)
            assert np.all(product >= entries.least * (1 - 1e-12) - 1e-15)
            law = start(rng, k)
            marginal = law @ product
            assert np.all(marginal <= high + 1e-12)
            assert np.all(marginal >= low - 1e-12)
            group = next(g for g in groups if g.first <= steps + 1 <= g.last)
            joint = law[:, None] * product
            with np.errstate(divide="ignore", invalid="ignore"):
                ahead = np.log(product[:, None, :] / product[None, :, :])
                behind = np.log(joint / marginal)  # [y, x]
                told = behind[:, :, None] - behind[:, None, :]
            right, left = influence.right(steps), influence.left(group, steps)
            for (x, x_), part in zip(group.pairs.T, left, strict=True):
                if marginal[x] > 0 and marginal[x_] > 0:
                    assert np.nanmax(ahead[x, x_]) <= right[x, x_] * (1 + 1e-9) + 1e-12
                    assert np.nanmax(told[:, x, x_]) <= part * (1 + 1e-9) + 1e-12
        entries.advance()


STUCK = pytest.param([[0.75, 0.25], [0.0, 1.0]], marks=pytest.mark.slow)


@pytest.mark.parametrize("p", [[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.8, 0.2]], STUCK])
def test_bounds_that_meet_are_one_matrix(p: list[list[float]], slow: bool) -> None:
    """Under every sequence of matrices that are all the same one; of two states "any" searches every initial law."""
    theta, chain = pf.IntervalChain(p, p), pf.MarkovChain(p, "any")
    for length in (1, 2):
        found = pf.LeakagePropagation(theta, length).leakage(0.7)
        assert found == pytest.approx(pf.LeakagePropagation(chain, length).leakage(0.7), rel=1e-6)
    for length in (5, 100, 10**5 if p[1][0] else 1000 if slow else 200):
        found, any_ = (pf.LeakagePropagation(t, length).leakage(0.2) for t in (theta, chain))
        assert any_ * (1 - 1e-5) <= found
        assert found >= 0.9 * any_
    assert pf.MQMExact(theta, 100).leakage(0.2) >= pf.MQMExact(chain, 100).leakage(0.2) * (1 - 1e-9)


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("k", [2, 3, 6])
def test_wider_intervals_never_leak_less(k: int) -> None:
    p = np.random.default_rng(k).dirichlet(np.ones(k) * 3, size=k)
    for bound in (pf.LeakagePropagation, pf.MQMExact):
        last = 0.0
        for width in (0.0, 1e-4, 1e-3, 0.02, 0.1):
            theta = pf.IntervalChain(np.maximum(p - width, p / 2), np.minimum(p + width, 1))
            now = bound(theta, 200).leakage(0.05)
            assert now >= last * (1 - 1e-6)
            last = now


def test_long_chains_cost_no_more_and_gaps_profiles_and_several_chains_are_covered() -> None:
    p = np.array([[0.9, 0.07, 0.03], [0.05, 0.9, 0.05], [0.1, 0.1, 0.8]])
    theta = pf.IntervalChain(p - 0.01, p + 0.01)
    long = pf.LeakagePropagation(theta, 10**6)
    assert pf.LeakagePropagation(theta, 2000).leakage(0.05) <= long.leakage(0.05) * (1 + 1e-6)
    assert long.leakage(0.05) < 50
    gaps = pf.LeakagePropagation(theta, [pf.ChainLength(records=10, steps=50), 30])
    assert gaps.leakage(0.05) <= long.leakage(0.05)
    day = pf.Profile([(1000, 0.0), (1000, 0.05), (10**6, 0.0)])
    profile = pf.LeakagePropagation(theta, 10**6 + 2000).leakage(day)
    assert profile <= long.leakage(0.05) * (1 + 1e-4)  # by another certified fixed point


@pytest.mark.slow
def test_zeros_below_cost_little_once_every_state_is_reached() -> None:
    theta = pf.IntervalChain([[0.85, 0.0, 0.05], [0.05, 0.85, 0.0], [0.0, 0.05, 0.85]], np.full((3, 3), 0.95))
    assert math.isinf(IntervalInfluence(theta.lower, theta.upper).right(1).max())
    assert pf.MQMExact(theta, 10**6).leakage(0.01) < 5
    stuck = pf.IntervalChain([[0.5, 0.0], [0.0, 0.5]], [[1.0, 0.5], [0.5, 1.0]])  # may never change at all
    assert pf.LeakagePropagation(stuck, 1000).leakage(0.1) == pytest.approx(100, rel=1e-9)
