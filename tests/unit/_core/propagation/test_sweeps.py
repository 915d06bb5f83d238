"""A sweep ends where the certified fixed point is hardly above it, and a continuum needs no more than by quilts."""

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.propagation import sweep
from pufferfish._core.propagation.chain import ChainPropagation, TuplePropagation
from pufferfish._core.propagation.past_and_future import Homogeneous
from pufferfish._core.propagation.steps import FixedPoint
from pufferfish._core.propagation.sweep import Run
from pufferfish.mechanisms.binary_interval import supremum

STICKY = np.array([[0.99, 0.006, 0.004], [0.003, 0.995, 0.002], [0.001, 0.004, 0.995]])


def places_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which every step of a sweep adds an entry."""
    seen: list[int] = []
    step = Homogeneous.message

    def message(self: Homogeneous, place: int, a: np.ndarray) -> np.ndarray:
        seen.append(place)
        return step(self, place, a)

    monkeypatch.setattr(Homogeneous, "message", message)
    return seen


@pytest.mark.parametrize("loss", [pytest.param(0.002, marks=pytest.mark.slow), 0.02])
def test_a_sweep_ends_at_the_fixed_point_and_hardly_proves_more(monkeypatch: pytest.MonkeyPatch, loss: float) -> None:
    chain, run = ChainPropagation(STICKY, "stationary"), [Run(4000, loss * (1 - np.eye(3)))]
    monkeypatch.setattr(sweep, "_NEAR", -1.0)  # step by step, until nothing moves
    exact = chain.leakage(run).total
    monkeypatch.undo()
    seen = places_of(monkeypatch)
    found = chain.leakage(run).total
    assert exact * (1 - 1e-6) <= found <= exact * (1 + 2e-4)
    assert len(seen) < 3000  # of 2 × 4000 steps


@pytest.mark.slow
def test_more_records_never_make_a_jump_in_noise() -> None:
    slow = np.full((3, 3), 5e-4) + (1 - 1.5e-3) * np.eye(3)
    scales = [
        pf.LeakagePropagation(pf.MarkovChain(slow), length=n).calibrate(pf.Count(1), 1.0).scale for n in (2040, 2060)
    ]
    assert scales[0] <= scales[1] * (1 + 1e-6)
    assert scales[1] <= scales[0] * 1.02


@pytest.mark.parametrize("start", ["any", "stationary"])
def test_a_continuum_needs_no_more_than_by_quilts(start: str) -> None:
    theta = pf.BinaryChainInterval(0.1, 0.6, initial_distribution=start)
    for epsilon in (0.5, 2.0):
        for length in (5, 40):
            quilts = pf.MQMExact(theta, length=length).calibrate(pf.Count(1), epsilon).scale
            found = pf.LeakagePropagation(theta, length=length).calibrate(pf.Count(1), epsilon).scale
            assert found <= quilts * (1 + 1e-9)


def test_points_of_a_continuum_that_need_less_than_one_before_are_not_followed_to_the_end() -> None:
    floors: list[float] = []

    def bound(boxes: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
        if np.all(boxes[:, :, 0] == boxes[:, :, 1]):
            floors.append(floor)
        return np.maximum(boxes[:, 0, 1] * (2 - boxes[:, 0, 0]), floor), np.zeros((len(boxes), 1))

    found = supremum(np.array([[0.0, 1.3]]), bound, width=lambda boxes: boxes[:, :, 1] - boxes[:, :, 0], gap=1e-4)
    assert found.least <= 1.0 <= found.most <= 1 + 1e-3
    assert floors[0] == 0.0
    assert len(floors) > 1
    assert all(floor > 0.9 for floor in floors[1:])


def stays_of_three_kinds(seed: int) -> pf.StaysChain:
    rng = np.random.default_rng(seed)
    exits = rng.dirichlet(np.ones(12), 12) * (1 - np.eye(12))
    means = rng.choice([3.0, 20.0, 90.0, 400.0], (12, 3))
    stays = [
        [(share, 1 - 1 / mean) for share, mean in zip((0.7, 0.2, 0.1), of_state, strict=True)] for of_state in means
    ]
    return pf.StaysChain(exits / exits.sum(axis=1, keepdims=True), stays)


def test_kinds_of_stay_are_found_from_below_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guess that takes kinds of stay for states is too large: Newton's method went from it step by step, in vain."""
    slacks: list[float] = []
    newton = FixedPoint._newton
    monkeypatch.setattr(FixedPoint, "_newton", lambda *given: slacks.append(given[2]) or newton(*given))
    chain = stays_of_three_kinds(0)
    noise = pf.LeakagePropagation(chain, 10**6).noise_to_compare(pf.Histogram(), 1.0)
    assert len(slacks) <= 16  # two for each noise that is asked
    slacks.clear()
    loss = 1 / noise * (1 - np.eye(12))
    leakage = TuplePropagation(chain.kernel, chain.tuples, "stationary").leakage([Run(10**6, loss)]).total
    assert leakage == pytest.approx(1, abs=1e-5)
    assert len(slacks) == 2
    assert max(slacks) <= 1e-7 / noise * (1 + 1e-9)


@pytest.mark.slow
def test_a_step_too_far_is_no_reason_to_give_up() -> None:
    """Near the largest loss that has a fixed point Newton's method goes too far first, and comes back."""
    chain, loss = stays_of_three_kinds(0), 0.0045 * (1 - np.eye(12))
    found = TuplePropagation(chain.kernel, chain.tuples, "stationary").leakage([Run(10**6, loss)])
    assert 6 < found.total < 7  # the sum of all losses is 6859
