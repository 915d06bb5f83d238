"""Two corners of a class of two-state chains: no member leaks more, by a plain recursion that knows no package.

With a stationary start the worse corner is the supremum over the class. For every initial law the worse corner bounds
it with a past that takes the worst law at each step. The proof is in docs/proofs/intervals.md, "The two corners".
"""

import itertools
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from propagation_oracle import Array, chain_law
from stretch_oracle import supremum_of_stretch
from stretches import leakage_of_stretch

SLACK = 1e-9
UPPER = 1.005
"""What a bound may be above what some member needs: far less than any loss of a real fault."""


# -- Members, all at once: arrays of p0, of p1 and of P(X_1 = 0), NaN for the stationary law --------------------------


def arrives(p0: Array, p1: Array, a01: Array, a10: Array) -> tuple[Array, Array]:
    """What a step makes of a ratio v(0)/v(1) between e^−a10 and e^a01: it is extreme at one of the two."""
    ends = [np.log((p0 * v + 1 - p0) / ((1 - p1) * v + p1)) for v in (np.exp(a01), np.exp(-a10))]
    return np.maximum(np.maximum(*ends), 0), np.maximum(-np.minimum(*ends), 0)


def sides(p0: Array, p1: Array, zero: Array, d: Array, step: float = 0.0) -> tuple[Array, Array]:
    """What the past and the future tell of every record, for the pairs (0,1) and (1,0): shape (T, 2, members)."""
    past, future = (np.zeros((len(d), 2, p0.size)) for _ in range(2))
    for i in range(len(d) - 2, -1, -1):
        future[i] = arrives(p0, p1, *(d[i + 1, :, None] + future[i + 1]))
        future[i] += step
    for i in range(1, len(d)):
        stays0 = zero * p0 / (zero * p0 + (1 - zero) * (1 - p1))
        stays1 = (1 - zero) * p1 / (zero * (1 - p0) + (1 - zero) * p1)
        own = np.isnan(zero)  # a stationary two-state chain is reversible
        past[i] = arrives(np.where(own, p0, stays0), np.where(own, p1, stays1), *(d[i - 1, :, None] + past[i - 1]))
        past[i] += step
        zero = zero * p0 + (1 - zero) * (1 - p1)
    return past, future


def leaks(p0: Array, p1: Array, zero: Array, d: Array) -> Array:
    """Leakage of every member."""
    past, future = sides(p0, p1, zero, d)
    return (d[:, :, None] + past + future).max(axis=(0, 1))


def stretch_leaks(p0: Array, p1: Array, zero: Array, d: Array, n: int, step: float) -> Array:
    """The same of n records in a row: all pairs of different paths, which are all possible."""
    past, future = sides(p0, p1, zero, d, step)
    worst = np.zeros(p0.size)
    paths = list(itertools.product(range(2), repeat=n))
    for (x, y), i in itertools.product(itertools.permutations(paths, 2), range(len(d) - n + 1)):
        own = sum(d[i + t, a] for t, (a, b) in enumerate(zip(x, y, strict=True)) if a != b)
        steps = sum(x[t : t + 2] != y[t : t + 2] for t in range(n - 1))
        before = past[i, x[0]] if x[0] != y[0] else 0.0
        after = future[i + n - 1, x[-1]] if x[-1] != y[-1] else 0.0
        worst = np.maximum(worst, own + step * steps + before + after)
    return worst


def refined(p0: float, p1: float, d: Array) -> float:
    """Leakage of one matrix under its worst initial law: a grid in log odds, and finer ones around its best point."""
    odds, best = np.linspace(-25, 25, 201), 0.0
    for _ in range(4):
        with np.errstate(over="ignore"):
            zero = 1 / (1 + np.exp(odds))
        found = leaks(np.full(odds.size, p0), np.full(odds.size, p1), zero, d)
        best, at, width = max(best, found.max()), odds[int(np.argmax(found))], odds[1] - odds[0]
        odds = np.linspace(at - width, at + width, 41)
    return best


def members(rng: np.random.Generator, box: Array, count: int) -> tuple[Array, Array]:
    """Corners, edges and the midst of a rectangle; and members that forget at once, or hardly at all."""
    inside = box[:, :1] + (box[:, 1:] - box[:, :1]) * rng.random((2, count))
    inside[0, ::3] = rng.choice(box[0], inside[0, ::3].size)
    inside[1, 1::3] = rng.choice(box[1], inside[1, 1::3].size)
    inside[1, ::7] = np.clip(1 - inside[0, ::7], *box[1])  # p0 + p1 = 1 where the rectangle holds such a chain
    corners = np.array(list(itertools.product(*box))).T
    return tuple(np.concatenate([inside, corners], axis=1))


def rectangle(rng: np.random.Generator) -> Array:
    """Ends of p0 and of p1: wide, narrow, degenerate, at 0 or 1, all that last or all that alternate."""
    box = np.sort(rng.beta(0.5, 0.5, (2, 2)), axis=1)
    kind = rng.integers(6)
    if kind == 0:
        box[rng.integers(2)] = box[rng.integers(2), :1]
    elif kind == 1:
        box[:, 1] = np.minimum(box[:, 0] + rng.random(2) * 0.05, 1)
    elif kind == 2:
        box[rng.integers(2), rng.integers(2)] = rng.choice([0.0, 1.0])
        box.sort(axis=1)
    elif kind == 3:
        box /= 2
    elif kind == 4:
        box = 0.5 + box / 2
    return box


def profile(rng: np.random.Generator, length: int) -> tuple[Any, Array]:
    """Losses as a bound takes them, and d(0,1), d(1,0) of every record: equal, gaps, windows, matrices that change."""
    size = rng.choice([0.05, 0.5, 2.0])
    kind = rng.integers(4)
    if kind == 0:
        given: Any = float(rng.random() * size + 1e-3)
        pairs = np.full((length, 2), given)
    elif kind == 1:
        given = rng.exponential(size, length) * (rng.random(length) < 0.5)
        given[rng.integers(length)] = size
        pairs = np.repeat(given[:, None], 2, axis=1)
    elif kind == 2:
        given = np.array([[0, rng.random() * size], [rng.random() * size * rng.integers(2), 0]])
        pairs = np.repeat([[given[0, 1], given[1, 0]]], length, axis=0)
    else:
        pairs = rng.exponential(size, (length, 2)) * (rng.random((length, 2)) < 0.6)
        pairs[rng.integers(length)] = size
        given = np.zeros((length, 2, 2))
        given[:, 0, 1], given[:, 1, 0] = pairs.T
    return given, pairs


def square(rng: np.random.Generator, start: str) -> pf.BinaryChainInterval:
    low, high = np.sort(np.clip(rng.beta(0.5, 0.5, 2), *rng.choice([[1e-9, 1 - 1e-9], [0.02, 0.98]])))
    if rng.random() < 0.2:
        low = high
    return pf.BinaryChainInterval(float(low), float(high), initial_distribution=start)  # type: ignore[arg-type]


def of_theta(rng: np.random.Generator, theta: pf.BinaryChainInterval, count: int) -> tuple[Array, Array]:
    return members(rng, np.array([[theta.low, theta.high]] * 2), count)


# -- The theorem, for rectangles --------------------------------------------------------------------------------------


def test_no_stationary_chain_of_a_rectangle_tells_more_than_its_corner(slow: bool) -> None:
    """Entry by entry, of past and future: so of records, of stretches, and of steps."""
    for seed in range(3000 if slow else 150):
        rng = np.random.default_rng(seed)
        box, (_, d) = rectangle(rng), profile(rng, int(rng.integers(1, 30)))
        p0, p1 = members(rng, box, 178)
        corners = (np.append(p0, ends) for p0, ends in ((p0, box[0]), (p1, box[1])))
        with np.errstate(invalid="ignore", divide="ignore"):
            both = sides(*corners, np.full(p0.size + 2, np.nan), d, float(rng.choice([0, 0.3])))
        lasts = p0 + p1 >= 1
        for side in both:
            least, most = side[..., -2, None], side[..., -1, None]
            assert np.all(side[..., :-2][..., lasts] <= most * (1 + SLACK) + 1e-14), seed
            assert np.all(side[..., :-2][..., ~lasts] <= least * (1 + SLACK) + 1e-14), seed


def test_a_past_that_knows_no_law_bounds_every_start(slow: bool) -> None:
    """The larger of two corners with it, as for a stretch of one record, against members with starts of their own."""
    for seed in range(1500 if slow else 40):
        rng = np.random.default_rng(seed)
        theta, length = square(rng, "any"), int(rng.integers(1, 9))
        given, d = profile(rng, length)
        bound = leakage_of_stretch(theta, length, given, 1)[0]
        p0, p1 = of_theta(rng, theta, 178)
        zero = 1 / (1 + np.exp(rng.uniform(-8, 8, p0.size)))
        found = leaks(p0, p1, zero, d)
        worst = max(found.max(), *(refined(a, b, d) for a, b in ((theta.low,) * 2, (theta.high,) * 2)))
        at = int(np.argmax(found))
        assert max(worst, refined(p0[at], p1[at], d)) <= bound * (1 + SLACK) + 1e-12, seed
        if length < 3:  # then the largest is a member's
            assert bound <= worst * UPPER + 1e-12, seed


def test_up_to_three_records_a_corner_has_the_worst_start(slow: bool) -> None:
    """Each with its own worst law, for rectangles too; beyond, nobody knows."""
    for seed in range(1500 if slow else 60):
        rng = np.random.default_rng(seed)
        box, (_, d) = np.clip(rectangle(rng), 1e-6, 1 - 1e-6), profile(rng, int(rng.integers(1, 4)))
        p0, p1 = members(rng, box, 60)
        some = leaks(p0, p1, 1 / (1 + np.exp(rng.uniform(-8, 8, p0.size))), d)
        most = max(refined(*box[:, 1], d), refined(*box[:, 0], d))
        tried = [refined(p0[at], p1[at], d) for at in np.argsort(-some)[:4]]
        assert max(some.max(), *tried) <= most * (1 + 1e-6), seed


def test_with_a_given_start_no_corner_need_be_the_worst() -> None:
    """From three records on: the counterexample of the proof."""
    d = np.repeat([[0.02], [0.02], [0.25]], 2, axis=1)
    p0, p1 = np.array([0.7, 0.1, 0.1]), np.array([0.7, 0.1, 0.2538])
    high, low, member = leaks(p0, p1, np.full(3, 0.001), d)
    assert (high, low, member) == (
        pytest.approx(0.2569, abs=6e-5),
        pytest.approx(0.2599, abs=6e-5),
        pytest.approx(0.2627, abs=6e-5),
    )
    theta = pf.BinaryChainInterval(0.1, 0.7)
    assert member <= pf.LeakagePropagation(theta, 3).leakage(d[:, 0])
    assert member <= leakage_of_stretch(theta, 3, d[:, 0], 1)[0]


# -- What the package says --------------------------------------------------------------------------------------------


def test_stationary_chains_need_what_the_worse_corner_needs(slow: bool) -> None:
    """Leakage and noise: never below any member, never above the worst one."""
    for seed in range(1500 if slow else 60):
        rng = np.random.default_rng(seed)
        theta, length = square(rng, "stationary"), int(rng.choice([1, 2, 3, 7, 40]))
        given, d = profile(rng, length)
        p0, p1 = of_theta(rng, theta, 178)
        own, mechanism = np.full(p0.size, np.nan), pf.LeakagePropagation(theta, length)
        found, worst = mechanism.leakage(given), leaks(p0, p1, own, d).max()
        group = d.max(axis=1).sum()
        assert min(worst, group) <= found * (1 + SLACK), seed
        assert found <= worst * UPPER, seed
        epsilon = float(rng.choice([0.2, 1.0, 4.0]))
        (divisor, _), *_ = mechanism._engine.candidate_scales(as_losses(mechanism, given), epsilon)
        assert leaks(p0, p1, own, d / divisor).max() <= epsilon * (1 + SLACK), seed
        assert leaks(p0, p1, own, d / divisor * UPPER).max() >= epsilon, seed


def as_losses(mechanism: pf.LeakagePropagation, given: Any) -> Any:
    from pufferfish.queries.record_loss import as_record_loss

    return as_record_loss(given, mechanism.theta, mechanism.length)


def test_any_start_needs_what_some_member_needs(slow: bool) -> None:
    """Never below a member, its start refined; and hardly above the one that the witness names."""
    for seed in range(400 if slow else 12):
        rng = np.random.default_rng(seed)
        theta, length = square(rng, "any"), int(rng.choice([1, 2, 3, 5, 12]))
        given, d = profile(rng, length)
        found, witness = pf.LeakagePropagation(theta, length).prove(given)
        p0, p1 = of_theta(rng, theta, 178)
        some = leaks(p0, p1, 1 / (1 + np.exp(rng.uniform(-8, 8, p0.size))), d)
        tried = [(p0[at], p1[at]) for at in np.argsort(-some)[:2]] + [(theta.low,) * 2, (theta.high,) * 2]
        worst = max(some.max(), *(refined(*at, d) for at in tried))
        assert worst <= found * (1 + SLACK), seed
        if witness is not None and witness.nearest is not None:
            assert witness.nearest.transition_matrix is not None
            (at0, _), (_, at1) = witness.nearest.transition_matrix
            assert found <= max(worst, refined(at0, at1, d)) * UPPER, seed


@pytest.mark.parametrize("start", ["stationary", "any"])
def test_stretches_and_steps(start: str, slow: bool) -> None:
    for seed in range(600 if slow else 25):
        rng = np.random.default_rng(seed)
        theta, length = square(rng, start), int(rng.integers(2, 8))
        n, step = int(rng.integers(1, min(length, 3) + 1)), float(rng.choice([0, 0.3]))
        given, d = profile(rng, length)
        bound = leakage_of_stretch(theta, length, pf.StepLoss(step, given) if step else given, n)
        p0, p1 = of_theta(rng, theta, 178)
        zero = np.full(p0.size, np.nan) if start == "stationary" else 1 / (1 + np.exp(rng.uniform(-8, 8, p0.size)))
        worst = stretch_leaks(p0, p1, zero, d, n, step).max()
        total = d.max(axis=1).sum() + step * (length - 1)
        assert min(worst, total) <= bound[0] * (1 + SLACK), seed
        if start == "stationary":
            assert bound[0] <= min(worst, total) * UPPER, seed
        assert bound[1] is None or bound[1].theta == 0


@pytest.mark.parametrize("start", ["stationary", "any"])
def test_no_density_tells_more_of_a_stretch(start: str, slow: bool) -> None:
    """The worst of all densities, by linear programs, under members drawn at random."""
    for seed in range(150 if slow else 6):
        rng = np.random.default_rng(seed)
        low, high = np.sort(rng.uniform(0.03, 0.97, 2))
        theta, length = pf.BinaryChainInterval(low, high, initial_distribution=start), int(rng.integers(2, 5))  # type: ignore[arg-type]
        n, step = int(rng.integers(1, min(length, 2) + 1)), float(rng.choice([0, 0.3]))
        given, pairs = profile(rng, length)
        d = np.zeros((length, 2, 2))
        d[:, 0, 1], d[:, 1, 0] = pairs.T
        bound = leakage_of_stretch(theta, length, pf.StepLoss(step, given) if step else given, n)[0]
        for _ in range(3):
            p0, p1 = rng.choice([low, high, rng.uniform(low, high)], 2)
            zero = (1 - p1) / (2 - p0 - p1) if start == "stationary" else rng.choice([1e-6, 1 - 1e-6, rng.random()])
            law = chain_law([zero, 1 - zero], [[p0, 1 - p0], [1 - p1, p1]], length)
            assert supremum_of_stretch(law, d, n, step=step, most=16) <= bound * (1 + 1e-7) + 1e-9, seed


def test_long_chains_and_gaps_of_few_records() -> None:
    """A settled bound holds for the rest; of a few records nothing tells more than all of them."""
    rng = np.random.default_rng(5)
    for low, high in ((0.2, 0.97), (0.01, 0.3), (0.6, 0.9)):
        theta = pf.BinaryChainInterval(low, high, initial_distribution="stationary")
        p0, p1 = of_theta(rng, theta, 40)
        d = np.full((2000, 2), 0.05)
        worst = leaks(p0, p1, np.full(p0.size, np.nan), d).max()
        for length in (2000, 10**7):
            assert worst * (1 - 1e-7) <= pf.LeakagePropagation(theta, length).leakage(0.05) <= worst * UPPER
        few = pf.LeakagePropagation(theta, pf.ChainLength(2000, 3))
        found, witness = few.prove(0.05)
        assert found == pytest.approx(min(worst, 0.15), rel=1e-6)
        assert isinstance(witness, pf.QuiltWitness) == (worst > 0.15)
        every = pf.LeakagePropagation(pf.BinaryChainInterval(low, high), pf.ChainLength(2000, 3)).leakage(0.05)
        assert found * (1 - 1e-9) <= every <= 0.15 * (1 + 1e-9)
        assert few.leakage(0.05) <= pf.MQMExact(theta, pf.ChainLength(2000, 3)).leakage(0.05) * (1 + 1e-9)
