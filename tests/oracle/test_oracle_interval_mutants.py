"""Bounds over intervals where they have little room: constants of the proofs that other tests leave some slack."""

import math

import numpy as np
import pytest

import pufferfish as pf
from propagation_oracle import Array
from pufferfish._core.propagation.past_and_future import PastBetween
from pufferfish._core.quilts.influence import IntervalInfluence
from pufferfish.mechanisms.one_query._two_state import Loss, _Search
from pufferfish.mechanisms.one_query.two_state_cells import Cell, CellSums
from pufferfish.mechanisms.one_query.two_state_coordinates import Arrivals, Paths, Square

TIGHT = [
    # records, scale, cell, initial odds: what ρ is off its plane decides
    (3, 0.19575, Cell((-2.4952531765656687, -2.482838437178103), (0.24116793595130892, 1.1276235567457542)), (-1, -1)),
    (3, 1.3585, Cell((-4.311438240852004, -4.297607161353379), (0.2721655158604185, 0.9114255318738728)), None),
    (2, 0.3, Cell((-4.5, -4.49), (0.5, 1.5)), None),
    (4, 0.25, Cell((-5.0, -4.99), (0.1, 0.9)), None),
    # hardly a cell: the initial odds are a coordinate
    (2, 2.0, Cell((-1.0, -1.0 + 1e-6), (0.5, 0.5 + 1e-6)), (-1.0, 0.5)),
    (4, 0.5, Cell((-2.0, -2.0 + 1e-6), (0.1, 0.1 + 1e-6)), (-0.2, 0.2)),
    (4, 0.5, Cell((1.0, 1.0 + 1e-6), (0.3, 0.3 + 1e-6)), (0.0, 1.0)),
    (4, 0.5, Cell((1.0, 1.0 + 1e-6), (0.3, 0.3 + 1e-6)), (-math.inf, math.inf)),
]


@pytest.mark.slow
@pytest.mark.grid(keep=1)
@pytest.mark.parametrize(("steps", "scale", "cell", "start"), TIGHT, ids=str)
def test_no_chain_of_a_cell_is_above_its_bound(
    steps: int, scale: float, cell: Cell, start: tuple[float, float] | None
) -> None:
    """Record by record and number by number: elsewhere the worst of all of them is what is compared."""
    own, rows, loss = start is not None, np.arange(steps), Loss(steps, scale)
    paths, arrivals, (first, last) = Paths(steps, own=own), Arrivals(steps), start or (-math.inf, -math.inf)
    sums = CellSums(paths, arrivals, cell, rows, loss.functional)
    odds = np.unique([first, last, *np.linspace(max(first, -9), min(last, 9), 9)]) if own else [first]
    points = [
        CellSums(paths, arrivals, Cell((a, a), (b, b)), rows, loss.functional)
        for a in np.linspace(*cell.coupling, 5)
        for b in np.linspace(*cell.field, 5)
    ]
    for state in (0, 1):
        ratios = loss.ratios(state)
        attained = np.max([point.values(ratios, rows, h) for point in points for h in odds], axis=0)
        for row in rows[own:]:
            for w in range(loss.size):
                left, tops = sums.clear(ratios, np.array([[row, first, last, w, w]]), -1e9)
                assert len(left)
                assert tops.max() >= attained[row, w] - 1e-13


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(("low", "high"), [(0.1, 0.9), (0.1, 0.4), (0.6, 0.9)])
def test_a_search_starts_with_all_and_loses_nothing_by_cutting(low: float, high: float, own: bool) -> None:
    rng, steps = np.random.default_rng(4), 5
    run = _Search(Square(low, high), Paths(steps, own=own), Loss(steps, 1.0), 5e-4)
    root = run.root()
    stays = [*rng.uniform(low, high, (100, 2)), (low, high), (low, low), (high, high)]
    chains = [(math.log((1 - p0) / p0) + math.log((1 - p1) / p1), math.log(p1 / p0)) for p0, p1 in map(sorted, stays)]
    for z, x in chains:
        cells = [root.cell]
        for _ in range(24):
            cells = [
                c
                for c in cells
                if c.coupling[0] - 1e-12 <= z <= c.coupling[1] + 1e-12 and c.field[0] - 1e-12 <= x <= c.field[1] + 1e-12
            ][:2]
            assert cells
            cells = [half for cell in cells for half in run.cut(cell)]
    for items in root.items:
        if own:
            assert items[:, 0].tolist() == list(range(steps))
            assert (items[1:, 1] == -math.inf).all()
            assert (items[1:, 2] == math.inf).all()
        else:
            assert items[:, 0].tolist() == list(range((steps + 1) // 2))
        assert (items[:, 3] == 0).all()
        assert (items[:, 4] == steps).all()


def test_the_middle_record_of_a_stationary_chain_counts() -> None:
    theta = pf.BinaryChainInterval(0.6, 0.8, initial_distribution="stationary")
    member = pf.MarkovChain([[0.8, 0.2], [0.2, 0.8]], "stationary")
    found, attained = (pf.ExactLaplace(t, 3).loss(pf.Count(1), 1.0) for t in (theta, member))
    assert attained * (1 - 1e-12) <= found <= attained * 1.005


@pytest.mark.parametrize("seed", range(8))
def test_what_covers_all_later_records_covers_the_next_one(seed: int) -> None:
    """Chains that are slow to forget their start, so that it matters after how many steps bounds on it hold."""
    rng = np.random.default_rng(seed)
    k, stay = 2 + seed % 2, (0.9, 0.99)[seed // 4]
    p = stay * np.eye(k) + (1 - stay) * rng.dirichlet(np.ones(k), size=k)
    theta = pf.IntervalChain(np.maximum(p - 0.002, 0), np.minimum(p + 0.002, 1))
    loss = 0.3 * (1 - np.eye(k))
    for place in range(2, 6):
        side = PastBetween(theta.lower, theta.upper)
        settled = side.settled(place, loss, 0.3)
        if settled is not None:
            assert np.all(PastBetween(theta.lower, theta.upper).message(place + 1, settled.bound) <= settled.message)


@pytest.mark.grid(keep=2)
@pytest.mark.parametrize("stay", [0.55, 0.75, 0.9])
@pytest.mark.parametrize("looked", [1, 2, 3])
def test_far_ends_hold_for_powers(stay: float, looked: int) -> None:
    """Of symmetric chains on two states Birkhoff's contraction is the eigenvalue: there is no room."""
    p: Array = np.array([[stay, 1 - stay], [1 - stay, stay]])
    influence = IntervalInfluence(p, p)
    influence._most = looked
    for b in range(1, 12):
        log = np.log(np.linalg.matrix_power(p, b))
        hilbert = 2 * abs(float(log[0, 0] - log[1, 0]))
        right = influence.right(b)
        assert right[0, 1] >= hilbert / 2 - 1e-12
        assert influence._beyond(b) >= hilbert - 1e-12 or b < looked
