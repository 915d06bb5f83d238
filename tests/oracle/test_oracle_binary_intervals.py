"""Classes of two-state chains: certified suprema against members, grids, and every density of short chains."""

import itertools
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from propagation_oracle import chain_law, losses_per_pair, supremum
from pufferfish.errors import BudgetExceeded
from pufferfish.mechanisms.binary_interval import propagated, quilted, root_box, supremum as certified, width_of

NEAR = 1e-9
LAWS = [0.5, 0.15, 0.8, NEAR, 1 - NEAR]
BOUNDS = [pf.MQMApprox, pf.MQMExact, pf.LeakagePropagation, pf.GK16]


def chain(p0: float, p1: float, start: Any) -> pf.MarkovChain:
    law = start if isinstance(start, str) else [start, 1 - start]
    return pf.MarkovChain([[p0, 1 - p0], [1 - p1, p1]], law)


def interval(low: float, high: float, start: str = "any") -> pf.BinaryChainInterval:
    return pf.BinaryChainInterval(low, high, initial_distribution=start)


def members(theta: pf.BinaryChainInterval, per_side: int) -> list[pf.MarkovChain]:
    """A grid over p0 and p1, its ends included, with laws inside and near the corners, or the stationary ones."""
    ps = np.linspace(theta.low, theta.high, per_side)
    starts = LAWS if theta.initial_distribution == "any" else ["stationary"]
    return [chain(*at) for at in itertools.product(ps, ps, starts)]


@pytest.mark.parametrize("start", ["any", "stationary"])
@pytest.mark.parametrize(("low", "high"), [(0.3, 0.7), (0.1, 0.4), (0.55, 0.95), (0.2, 0.75)])
@pytest.mark.parametrize("length", [2, pytest.param(7, marks=pytest.mark.slow)])
def test_certified_noise_is_the_largest_that_a_member_needs(
    low: float, high: float, start: str, length: int, slow: bool
) -> None:
    """Never below the largest on a grid, and hardly above it."""
    theta = interval(low, high, start)
    some = members(theta, 3 if slow else 2)
    for bound in BOUNDS[:3]:
        for epsilon in (0.2, 5.0):
            found = bound(theta, length).calibrate(pf.Count(1), epsilon)
            grid = max(bound(one, length).calibrate(pf.Count(1), epsilon).scale for one in some)
            assert grid * (1 - 2e-6) <= found.scale <= grid * 1.005, (bound, epsilon)
            assert found.witness.nearest is not None
            assert 0 <= found.witness.nearest.gap < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("bound", BOUNDS[:3])
def test_certified_noise_on_long_chains(bound: Any, slow: bool) -> None:
    theta = interval(0.3, 0.7)
    found = bound(theta, 100).calibrate(pf.Count(1), 1.0).scale
    spread = [0.3, 0.302, 0.7] if slow else [0.3, 0.7]
    laws = [*LAWS, 0.84375, 0.25]
    grid = [chain(*at) for at in itertools.product(spread, spread, laws)]
    largest = max(bound(one, 100).calibrate(pf.Count(1), 1.0).scale for one in grid)
    assert largest * (1 - 2e-6) <= found <= largest * 1.005
    longer = bound(theta, 10**6).calibrate(pf.Count(1), 1.0).scale
    assert found * (1 - 1e-3) <= longer <= found * 1.01  # the worst record is near the start, or in the middle


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("start", ["any", "stationary"])
def test_one_chain_is_an_interval(bound: Any, start: str, slow: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(4 if slow else 2):
        p, length = rng.uniform(0.35, 0.65), int(rng.integers(1, 40))
        for epsilon in (0.3, 3.0):
            one = bound(chain(p, p, start), length).calibrate(pf.Histogram(), epsilon).scale
            found = bound(interval(p, p, start), length).calibrate(pf.Histogram(), epsilon).scale
            assert found == pytest.approx(one, rel=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_no_density_with_these_losses_leaks_more_under_any_member(seed: int) -> None:
    """The largest loss over all record-Lipschitz densities, by linear programs, for members drawn at random."""
    rng = np.random.default_rng(seed)
    low, high = np.sort(rng.uniform(0.05, 0.95, 2))
    start = ["any", "stationary"][seed % 2]
    length = int(rng.integers(2, 5))
    losses: Any = [
        0.5,
        rng.uniform(0, 1.5, length) * (rng.random(length) > 0.3),
        np.array([[0.0, 1.1], [0.2, 0.0]]),
        rng.uniform(0, 1, (length, 2, 2)) * (1 - np.eye(2)),
    ][seed % 4]
    theta = interval(low, high, start)
    exact, quilts = pf.LeakagePropagation(theta, length).leakage(losses), pf.MQMExact(theta, length).leakage(losses)
    ends = (low, high)
    worst = 0.0
    for i in range(10):
        p0, p1 = (rng.choice(ends), rng.choice(ends)) if i % 2 else rng.uniform(low, high, 2)
        p = np.array([[p0, 1 - p0], [1 - p1, p1]])
        law = np.array([1 - p1, 1 - p0]) / (2 - p0 - p1)
        if start == "any":
            zero = rng.choice([NEAR, 1 - NEAR, rng.uniform()])
            law = np.array([zero, 1 - zero])
        worst = max(worst, supremum(chain_law(law, p, length), losses_per_pair(losses, length, 2)))
    assert worst <= min(exact, quilts) * (1 + 1e-7)
    assert exact <= quilts * (1 + 1e-3)


def boxes_of(rng: np.random.Generator, start: str) -> Any:
    ends = np.sort(rng.beta(0.5, 0.5, (3, 2)) * 0.998 + 0.001, axis=1)
    return root_box(tuple(ends[0]), tuple(ends[1]), start) if start == "stationary" else ends


@pytest.mark.parametrize("start", ["any", "stationary"])
@pytest.mark.parametrize("seed", range(30))
def test_bounds_over_a_box_hold_for_its_points(start: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    box = boxes_of(rng, start)
    length = int(rng.choice([1, 2, 5, 20, 300]))
    runs = np.array([[length, *rng.exponential(1.0, 2)]])
    if length > 4:
        first = length // 3
        runs = np.array([[first, *rng.exponential(1.0, 2)], [length - first, 0.3, 0.0]])
    profile = rng.exponential(0.3, length if seed % 2 else 1)
    points = np.repeat((box[:, 0] + (box[:, 1] - box[:, 0]) * np.round(rng.random((20, 3)), 1))[:, :, None], 2, axis=2)
    for epsilon in (0.0, 0.7):
        for bound in (
            lambda b, e: propagated(b, runs, e, 0.0),
            lambda b, e: quilted(start, b, length, length, profile, e, 0.0),
            lambda b, e: quilted("mixing", b, length, length, profile, e, 0.0),
        ):
            whole, single = bound(box[None], epsilon)[0][0], bound(points, epsilon)[0]
            assert np.all(single <= whole * (1 + 1e-7)), (epsilon, single.max() / whole)


@pytest.mark.parametrize("start", ["any", "stationary"])
def test_quilts_with_gaps_profiles_and_limits_like_those_of_one_chain(start: str) -> None:
    rng = np.random.default_rng(3)
    for length in (7, 40, 300, pf.ChainLength(60, 25)):
        p0, p1 = rng.uniform(0.2, 0.9, 2)
        zero = (1 - p1) / (2 - p0 - p1) if start == "stationary" else float(rng.uniform())
        steps = getattr(length, "steps", length)
        one = pf.MQMExact(chain(p0, p1, start if start == "stationary" else zero), length, max_quilt_length=9)
        box = np.array([[p0, p0], [p1, p1], [-1.0, -1.0] if start == "stationary" else [zero, zero]])[None]
        records = getattr(length, "records", length)
        for losses in (np.array([0.2]), rng.uniform(0, 0.4, steps) * (rng.random(steps) > 0.5)):
            if losses.size == 1:
                value = quilted(start, box, steps, records, losses, 0.0, 0.0, 9)[0][0]
                assert value == pytest.approx(one.leakage(0.2), rel=1e-9)
            elif records == steps:
                value = quilted(start, box, steps, steps, losses, 0.0, 0.0, 9)[0][0]
                assert value == pytest.approx(one.leakage(losses), rel=1e-9)


def test_suprema_are_brackets() -> None:
    """(x − .3)² + y on a box: bounds by intervals, and values at points."""

    def bound(boxes: Any, floor: float) -> Any:
        (a, b), (_, d) = boxes[:, 0].T, boxes[:, 1].T
        upper = np.maximum((a - 0.3) ** 2, (b - 0.3) ** 2) - np.abs(b - a) * 0.0 + d
        return np.maximum(upper + 0.1 * (b - a), floor), np.zeros((len(boxes), 1))

    box = np.array([[0.0, 1.0], [0.0, 2.0]])
    for gap in (1e-1, 1e-3, 1e-6):
        found = certified(box, bound, width=lambda b: b[:, :, 1] - b[:, :, 0], gap=gap)
        assert 2.49 * (1 - gap) <= found.least <= 2.49 <= found.most <= found.least * (1 + gap)
    assert certified(box, bound, width=lambda b: b[:, :, 1] - b[:, :, 0], gap=1e-3, floor=5.0).most == 5.0
    proven = certified(box, bound, width=lambda b: b[:, :, 1] - b[:, :, 0], gap=1e-1, enough=2.4901)
    assert proven.most <= 2.4901
    far = certified(box, bound, width=lambda b: b[:, :, 1] - b[:, :, 0], gap=1e-3, enough=100.0)
    assert far.most <= 2.49 * 1.001
    capped = certified(box, bound, width=lambda b: b[:, :, 1] - b[:, :, 0], gap=1e-9, cap=2.0)
    assert 2.0 < capped.least <= 2.49 <= capped.most
    beyond = certified(box, bound, width=lambda b: b[:, :, 1] - b[:, :, 0], gap=1e-3, enough=2.4)
    assert 2.49 <= beyond.most <= 2.4925


def test_no_number_is_no_bound() -> None:
    def bound(boxes: Any, _: float) -> Any:
        return np.full(len(boxes), np.nan), np.zeros((len(boxes), 1))

    assert certified(root_box((0.5, 0.5), (0.5, 0.5), "stationary"), bound, width=width_of, gap=1e-3).most == np.inf


def test_a_calibration_fits_a_budget_of_its_epsilon_and_repeats() -> None:
    theta = interval(0.2, 0.6)
    bound = pf.LeakagePropagation(theta, 50)
    first = bound.leakage(0.3)
    calibration = bound.calibrate(pf.Histogram(), 1.0)
    assert calibration.prove_leakage() <= 1.0
    ledger = pf.Ledger(pf.LeakagePropagation(theta, 50), budget=1.0)
    ledger.spend(calibration)
    assert 0.99 <= ledger.spent <= 1.0
    roomy = pf.Ledger(pf.LeakagePropagation(theta, 50), budget=3.0)
    roomy.spend(calibration)
    assert 0.99 <= roomy.spent <= 1.001
    with pytest.raises(BudgetExceeded):
        ledger.spend(calibration)
    assert bound.leakage(0.3) == first == pf.LeakagePropagation(theta, 50).leakage(0.3)


@pytest.mark.parametrize(
    ("theta", "length"),
    [
        pytest.param(pf.MarkovChain([[0.997, 0.003], [0.005, 0.995]], "any"), 1000, marks=pytest.mark.slow, id="slow"),
        pytest.param(pf.MarkovChain([[0.97, 0.03], [0.04, 0.96]], "any"), pf.ChainLength(30, 7), id="seven observed"),
        pytest.param(
            pf.MarkovChain([[0.97, 0.03], [0.04, 0.96]], "any"),
            pf.ChainLength(100_000, 1),
            marks=pytest.mark.slow,
            id="one observed",
        ),
        pytest.param(pf.MarkovChain([[0.5, 0.5], [1e-17, 1.0]], "any"), 20, id="hardly possible"),
        pytest.param(pf.MarkovChain([[0.5, 0.5], [1e-13, 1.0 - 1e-13]], "any"), 20, id="unlikely"),
        pytest.param(interval(0.05, 0.97), pf.ChainLength(300, 3), marks=pytest.mark.slow, id="three observed"),
        pytest.param(interval(0.0001, 0.5), 10, id="wide"),
    ],
)
def test_never_more_noise_than_quilts(theta: Any, length: Any) -> None:
    """Slow chains, hardly any observed records, transitions that hardly ever happen."""
    for query in (pf.Count(1), pf.Histogram()):
        quilts = pf.MQMExact(theta, length).calibrate(query, 1.0).scale
        found = pf.LeakagePropagation(theta, length).calibrate(query, 1.0)
        assert found.scale <= quilts * (1 + 1e-9)
        assert found.prove_leakage() <= 1.0


def test_given_numbers_hold_for_all_members() -> None:
    theta = interval(0.3, 0.7)
    own = pf.MQMApprox(theta, 100)
    given = pf.MQMApprox(theta, 100, pi_min=own.pi_min, eigengap=own.eigengap)
    alone = pf.MQMApprox(pi_min=own.pi_min, eigengap=own.eigengap, length=100)
    needs = [bound.calibrate(pf.Count("1"), 1.0).scale for bound in (own, given, alone)]
    assert needs[0] < needs[1] == pytest.approx(needs[2])
    assert (own.pi_min, own.eigengap) == (pytest.approx(0.3), pytest.approx(1.2))


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.5), (1e-17, 0.5), (0.5, 1.0), (0.6, 0.4), (-0.1, 0.5)])
def test_bounds_are_probabilities_of_staying(low: float, high: float) -> None:
    with pytest.raises(pf.PufferfishError, match="expected"):
        pf.BinaryChainInterval(low, high)
