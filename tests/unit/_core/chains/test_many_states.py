"""Models of a thousand states: what is asked of them takes k² numbers, never k³, and no copy for every chain."""

import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

import pufferfish as pf
from pufferfish._core import divergence
from pufferfish._core.quilts import influence
from pufferfish._core.quilts.influence import ChainInfluence
from pufferfish.queries import LinearQuery

K = 1000


def peak_of(work: Callable[[], object]) -> float:
    """Return the most memory that some work held at a time, in megabytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@cache
def some_chain(k: int, seed: int = 0) -> pf.MarkovChain:
    return pf.MarkovChain(np.random.default_rng(seed).dirichlet(np.ones(k), size=k) * 0.9 + 0.1 / k)


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("length", [1_000_000, [1] * 20_000])
def test_group_dp_of_a_thousand_states_takes_little_memory(length: int | list[int]) -> None:
    chain = some_chain(K)

    def work() -> None:
        for bound in (pf.GroupDP(chain, length=length), pf.ParticipantDP(length, theta=chain)):
            found = bound.calibrate(pf.Histogram(relative=False), 1.0)
            assert found.scale == pytest.approx(2e6 if isinstance(length, int) else 2.0)

    assert peak_of(work) < 200  # k² numbers are 8 MB, k³ are 8 GB


def test_distances_of_weights_are_sums_over_outputs() -> None:
    rng = np.random.default_rng(1)
    for outputs, k in ((1, 2), (3, 5), (7, 4), (5, 5)):
        weights = rng.integers(-4, 5, size=(outputs, k)) * rng.integers(0, 2, size=(outputs, k))
        slow = np.abs(weights[:, :, None] - weights[:, None, :]).sum(axis=0)
        bound = LinearQuery(weights, Fraction(1), ("x",) * outputs, "")
        assert np.array_equal(bound.unit_distance, slow)


def test_compiled_ratios_are_those_of_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    cases = [np.log(rng.random((7, 5))) for _ in range(4)]
    for logs in cases[1:]:
        logs[rng.random(logs.shape) < 0.4] = -np.inf
    cases[3][2] = -np.inf
    slow = [divergence.max_log_ratio(logs) for logs in cases]
    monkeypatch.setattr(divergence, "_MANY", 0)
    for logs, expected in zip(cases, slow, strict=True):
        assert np.array_equal(divergence.max_log_ratio(logs), expected)


def test_a_chain_that_mixes_fast_needs_few_powers_however_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    slow = influence.max_log_ratio

    def counted(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        compared.append(len(logs))
        return slow(logs)

    monkeypatch.setattr(influence, "max_log_ratio", counted)
    scales, needed = [], []
    for settled in (influence.NOTHING, -1.0):  # the second: nothing ever counts as settled
        monkeypatch.setattr(influence, "NOTHING", settled)
        compared.clear()
        scales.append(pf.MQMExact(some_chain(12), length=10**6).calibrate(pf.Histogram(), 1.0).scale)
        needed.append(len(compared))
    assert scales[0] == pytest.approx(scales[1], rel=1e-9)
    assert needed[0] < 0.8 * needed[1]


def test_parts_that_have_settled_are_upper_bounds_of_what_is_farther() -> None:
    chain = some_chain(4, seed=3)
    found, powers = ChainInfluence(chain.transition_matrix, "stationary"), np.linalg.matrix_power
    (group,) = found.groups(200)
    for distance in (1, 2, 5, 17, 60, 150):
        logs = np.log(powers(chain.transition_matrix, distance))
        right = (logs[:, None, :] - logs[None, :, :]).max(axis=2)
        left = (logs.T[:, None, :] - logs.T[None, :, :]).max(axis=2)[group.pairs[0], group.pairs[1]] + group.prior
        for told, exact in ((found.right(distance), right), (found.left(group, distance), left)):
            assert np.all(told >= exact - 1e-13)
            assert np.all(told <= exact + 1e-9)


def test_no_lower_bound_is_looked_for_where_that_takes_arrays_of_k_cubed() -> None:
    calibration = pf.GroupDP(some_chain(400), length=10).calibrate(pf.Histogram(), 1.0)
    assert peak_of(lambda: calibration.lower_bound) < 100
    assert calibration.lower_bound == 0.0


def test_laws_of_a_thousand_states_are_refused_in_words() -> None:
    with pytest.raises(pf.PufferfishError, match=r"about 10\^\d+ values.* ask for fewer outputs"):
        pf.Wasserstein(some_chain(K), length=1_000_000).calibrate(pf.Histogram(), 1.0)
