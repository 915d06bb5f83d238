"""Query-specific mechanisms for two-state chains in an interval: cells, what is covered, and what is refused."""

import math
import pickle
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.errors import NotApplicableError
from pufferfish.mechanisms.one_query._two_state import Loss, Reach, search
from pufferfish.mechanisms.one_query.two_state_cells import Cell, CellSums
from pufferfish.mechanisms.one_query.two_state_coordinates import Arrivals, Paths, Perron, Square

CELLS = [
    Cell((-3.0, -2.6), (0.1, 0.3)),
    Cell((-0.2, 0.3), (0.0, 0.4)),
    Cell((1.5, 2.1), (0.5, 0.6)),
    Cell((-4.0, 3.0), (0.0, 2.0)),
]
THETA = pf.BinaryChainInterval(0.3, 0.7)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_end_is_near_its_tangent_plane(cell: Cell) -> None:
    rng, (z, x) = np.random.default_rng(0), cell.centre
    centre = Perron.of(z, x)
    for a, b in zip(rng.uniform(*cell.coupling, 300), rng.uniform(*cell.field, 300), strict=True):
        plane = centre.end + centre.end_by_field * (b - x) + centre.end_by_coupling * (a - z)
        assert abs(Perron.of(a, b).end - plane) <= cell.deviation


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_no_chain_of_a_cell_is_above_its_bound(cell: Cell, own: bool) -> None:
    """Every record and number, cleared or not, and initial odds inside an interval, at its ends and without end."""
    steps, rng = 5, np.random.default_rng(1)
    paths, arrivals, rows = Paths(steps, own=own), Arrivals(steps), np.arange(steps)
    for start in [(-1.0, 0.5), (-math.inf, -2.0), (-math.inf, math.inf), (1.0, 1.0)] if own else [(-math.inf,) * 2]:
        for question in (Loss(steps, 1.5), Reach(steps, 2)):
            for state in (0, 1):
                ratios = question.ratios(state)
                sums = CellSums(paths, arrivals, cell, rows, question.functional)
                ends = (max(start[0], -9.0), min(start[1], 9.0))
                hs = [*start, *(rng.uniform(min(ends), max(ends), 4) if own else [])]
                for row in rows[own:]:
                    points = [
                        CellSums(paths, arrivals, Cell((a, a), (b, b)), np.array([row]), question.functional)
                        for a, b in zip(rng.uniform(*cell.coupling, 6), rng.uniform(*cell.field, 6), strict=True)
                    ]
                    worst = max(float(p.values(ratios, np.array([row]), h).max()) for p in points for h in hs)
                    items = np.array([[row, *start, 0, question.size - 1]])
                    # at a level just below the worst something has to be left
                    left, _ = sums.clear(ratios, items, worst - 1e-9)
                    assert len(left)
                    assert len(sums.clear(ratios, items, math.inf)[0]) == 0


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.9), (0.1, 0.4), (0.3, 0.3)])
def test_couplings_and_fields_cover_the_square(low: float, high: float) -> None:
    square, rng = Square(low, high), np.random.default_rng(2)
    stays = [*rng.uniform(low, high, (200, 2)), *((a, b) for a in (low, high) for b in (low, high))]
    for p0, p1 in (sorted(pair) for pair in stays):
        z, x = math.log((1 - p0) / p0) + math.log((1 - p1) / p1), math.log(p1 / p0)
        assert square.couplings[0] <= z <= square.couplings[1]
        assert x <= square.most(z, z) <= square.most(*square.couplings)
        found = Perron.of(z, x)
        assert math.exp(-found.log_value) == pytest.approx(p0)
        assert math.exp(2 * found.end) == pytest.approx((1 - p0) / (1 - p1))


def test_a_search_that_is_cut_short_still_covers_all() -> None:
    paths = Paths(20, own=True)
    full, short = (
        search(Square(0.3, 0.7), paths, Loss(20, 4.0), tolerance=5e-4, cells=cells) for cells in (10_000, 12)
    )
    assert full.value <= full.bound <= full.value * (1 + 5e-4 + 1e-12)
    assert short.bound >= full.value
    assert short.bound > short.value * 1.01
    assert search(Square(0.3, 0.7), paths, Reach(20, 3), cells=5).bound > 0


def test_a_distance_that_is_too_short_is_disproved() -> None:
    paths = Paths(20, own=False)
    assert search(Square(0.3, 0.7), paths, Reach(20, 2), cells=1000).bound == math.inf
    assert search(Square(0.3, 0.7), paths, Reach(20, 3), cells=1000).bound == 0


def test_calibration_is_proven_and_least(slow: bool) -> None:
    length = 30 if slow else 10
    exact = pf.ExactLaplace(THETA, length)
    found = exact.calibrate(pf.Count("1"), 1.0)
    leaks, witness = exact.verify(found)
    assert 1 - 2e-3 <= leaks <= 1
    assert exact.loss(pf.Count("1"), found.scale / 1.002) > 1
    assert witness is not None
    assert (witness.theta, witness.length, set(witness.secret_pair)) == (0, length, {"0", "1"})
    anew = pickle.loads(pickle.dumps(exact))
    assert anew.verify(found)[0] == leaks


@pytest.mark.slow
def test_queries_that_are_one_number_are_counts() -> None:
    exact, wasserstein = pf.ExactLaplace(THETA, 6), pf.Wasserstein(THETA, 6)
    one, reach = exact.calibrate(pf.Count("1"), 1.0).scale, wasserstein.distance(pf.Count("1"))
    for query, times in [
        (pf.Count("0"), 1),
        (pf.Frequency("1"), 1 / 6),
        (pf.Histogram(relative=False), 2),
        (pf.Sum([1, 4]), 3),
        (pf.Mean([0, -2]), 1 / 3),
    ]:
        assert exact.calibrate(query, 1.0).scale == pytest.approx(times * one, rel=2e-3)
        assert wasserstein.distance(query) == pytest.approx(times * reach)


def test_a_window_is_a_chain_of_its_own(slow: bool) -> None:
    """The law of its first record is any, or the stationary one."""
    for start in ("any", "stationary"):
        low, stop = (0.3, 9) if slow else (0.4, 5)
        theta = pf.BinaryChainInterval(low, 1 - low, initial_distribution=start)
        window, alone = pf.Window(pf.Count("1"), 3, stop), pf.ExactLaplace(theta, stop - 3)
        found = pf.ExactLaplace(theta, 20).calibrate(window, 1.0)
        assert found.scale == pytest.approx(alone.calibrate(pf.Count("1"), 1.0).scale)
        assert found.witness is not None
        assert found.witness.node is not None
        assert 3 <= found.witness.node < stop
        members = pf.ExactLaplace([pf.MarkovChain([[1 - low, low], [low, 1 - low]], start)], 20)
        assert members.loss(window, found.scale) <= 1


@pytest.mark.slow
def test_the_worst_of_several_chains_decides() -> None:
    each = [pf.ExactLaplace(THETA, length).loss(pf.Count("1"), 2.0) for length in (3, 8)]
    assert pf.ExactLaplace(THETA, [3, 8, 3]).loss(pf.Count("1"), 2.0) == max(each)
    assert pf.Wasserstein(THETA, [1, 8]).distance(pf.Count("1")) == pf.Wasserstein(THETA, 8).distance(pf.Count("1"))


@pytest.mark.parametrize("kind", [pf.Wasserstein, pf.ExactLaplace])
def test_what_is_not_covered_is_refused(kind: type[pf.Wasserstein] | type[pf.ExactLaplace]) -> None:
    pair = (pf.RecordIs(0, "0"), pf.RecordIs(1, "1"))
    with pytest.raises(NotApplicableError, match="secrets of your own"):
        kind(THETA, 5, secrets=[pair])
    with pytest.raises(NotApplicableError, match="at most"):
        kind(THETA, 100_000).calibrate(pf.Count("1"), 1.0)
    with pytest.raises(NotApplicableError, match="at most"):
        kind(pf.BinaryChainInterval(1e-9, 0.5), 100).calibrate(pf.Count("1"), 1.0)
    with pytest.raises(NotApplicableError, match="count differently"):
        kind(THETA, 4).calibrate(pf.Weighted(pf.Count("1"), [1, 2, 1, 1]), 1.0)
    with pytest.raises(NotApplicableError, match="count differently"):
        kind(THETA, 4).calibrate(pf.Weighted(pf.Count("1"), [1, 0, 1, 1]), 1.0)
    with pytest.raises(NotApplicableError, match="gaps"):
        kind(THETA, pf.ChainLength(10, 7)).calibrate(pf.Count("1"), 1.0)
    with pytest.raises(NotApplicableError, match="one transition matrix"):
        kind(pf.IntervalChain([[0.8, 0.1], [0.3, 0.5]], [[0.9, 0.2], [0.5, 0.7]]), 5)
    with pytest.raises(NotApplicableError, match="continuum"):
        pf.ApproximateWasserstein(THETA, 5, delta=1e-6)


def test_scales_that_are_too_small_leak_no_more_than_the_group_of_all_records() -> None:
    loss = pf.ExactLaplace(THETA, 5).loss(pf.Count("1"), 1e-4)
    assert 5 / 1e-4 <= loss == pytest.approx(5 / 1e-4)


@pytest.mark.parametrize(("low", "high", "length"), [(0.97, 0.9999, 5), (0.5, 1 - 1e-9, 2), (0.001, 0.01, 3)])
def test_never_more_noise_than_group_privacy(low: float, high: float, length: int) -> None:
    """All but certain chains: what all records tell together is a bound, too, and ends the search."""
    theta = pf.BinaryChainInterval(low, high)
    found = pf.ExactLaplace(theta, length).calibrate(pf.Count("1"), 1.0)
    assert found.scale <= length * (1 + 1e-9)
    assert found.prove_leakage() <= 1.0


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("start", ["any", "stationary"])
def test_an_interval_of_one_chain_is_that_chain(start: Any, slow: bool) -> None:
    theta = pf.BinaryChainInterval(0.3, 0.3, initial_distribution=start)
    chain = pf.MarkovChain([[0.3, 0.7], [0.7, 0.3]], start)
    for length in (1, 3, 40 if slow else 12):
        for mechanism in (pf.ExactLaplace, pf.Wasserstein):
            one, other = (mechanism(t, length).calibrate(pf.Count("1"), 0.7) for t in (theta, chain))
            assert one.scale == other.scale
            assert one.prove_leakage() == other.prove_leakage()


def test_an_epsilon_beyond_what_doubles_hold_costs_what_group_privacy_costs(slow: bool) -> None:
    """It was a division by zero from ε = 300 on: no member is seen to leak that much."""
    for epsilon in (300.0, 1e6) if slow else (300.0,):
        noise = pf.ExactLaplace(THETA, 1).calibrate(pf.Count("1"), epsilon)
        assert 1 / epsilon <= noise.scale <= 1 / epsilon * (1 + 1e-12)
        assert noise.witness.nearest is None
