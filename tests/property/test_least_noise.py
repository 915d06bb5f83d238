"""Leakage propagation takes the least of what propagation and quilts prove: it never needs more noise than MQMExact."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.propagation.chain import Attained, ChainPropagation

ROUNDING = 1 + 1e-12


def nearly_certain_law(rng: np.random.Generator, k: int, kind: int) -> np.ndarray:
    """Entries over twelve orders of magnitude, one that is all but certain, or some that are 0."""
    law = 10.0 ** rng.uniform(-12, -8 if kind == 1 else 0, k)
    if kind == 1:
        law[rng.integers(k)] = 1
    if kind == 2:
        law *= rng.random(k) < 0.6
    if not law.any():
        law[rng.integers(k)] = 1
    return law / law.sum()


def random_problem(seed: int) -> tuple[pf.MarkovChain, int, pf.queries.Query, float]:
    rng = np.random.default_rng(seed)
    k, kind = int(rng.integers(2, 7)), int(rng.integers(3))
    p = np.array([nearly_certain_law(rng, k, kind) for _ in range(k)])
    starts = ("any", "stationary", np.eye(k)[rng.integers(k)], nearly_certain_law(rng, k, kind))
    start = starts[rng.integers(4)]
    try:
        chain = pf.MarkovChain(p, start)
    except pf.PufferfishError:  # no stationary law
        chain = pf.MarkovChain(p, nearly_certain_law(rng, k, kind))
    sums = pf.Sum([int(v) for v in rng.integers(0, 100, k)] if k > 2 else [3, 1])
    query = [pf.Histogram(relative=False), pf.Count(0), sums][rng.integers(3)]
    return chain, int(rng.choice([1, 2, 3, 4, 8, 30])), query, float(rng.choice([0.1, 1.762, 6.0]))


def scale_of(bound: Any, query: pf.queries.Query, epsilon: float) -> float:
    try:
        return bound.calibrate(query, epsilon).scale
    except pf.PufferfishError as error:
        if "no secret to protect" in str(error) or "no noise is needed" in str(error):
            return 0.0
        raise


def test_never_more_noise_than_quilts(slow: bool) -> None:
    for seed in range(24 if slow else 8):
        chain, length, query, epsilon = random_problem(seed)
        least = scale_of(pf.LeakagePropagation(chain, length), query, epsilon)
        assert least <= scale_of(pf.MQMExact(chain, length), query, epsilon) * ROUNDING, seed


def test_never_more_noise_than_quilts_for_windows_classes_and_bounds(slow: bool) -> None:
    for seed in range(100, 106 if slow else 103):
        chain, _, query, epsilon = random_problem(seed)
        other = pf.MarkovChain(np.roll(chain.transition_matrix, 1, axis=0), "any", states=chain.states)
        spread = np.minimum(chain.transition_matrix * 1.5 + 1e-10, 1.0)
        between = pf.IntervalChain(chain.transition_matrix * 0.5, spread, states=chain.states)
        for theta in ([chain, other], between if chain.k < 4 else other):
            for asked in (query, pf.Window(query, 1, 3)):
                least = scale_of(pf.LeakagePropagation(theta, 5), asked, epsilon)
                assert least <= scale_of(pf.MQMExact(theta, 5), asked, epsilon) * ROUNDING, seed


# rows all but certain of the next state: bounds that hold at every distance lie far above those of thirty records
HARDLY_MOVES = np.array(
    [
        [1.4e-9, 4.9e-12, 8.4e-11, 1.0, 5.7e-12],
        [1.0e-10, 8.4e-10, 1.0, 5.0e-9, 1.0e-12],
        [1.6e-12, 2.2e-12, 3.4e-9, 1.0, 1.7e-10],
        [1.6e-12, 1.0, 1.5e-12, 6.3e-12, 8.5e-10],
        [1.9e-11, 1.0, 5.9e-10, 6.7e-9, 2.1e-11],
    ]
)
START = np.array([1.0, 7.1e-10, 3.2e-10, 1.1e-11, 1.2e-9])


def hardly_moving(start: Any = START) -> pf.MarkovChain:
    start = start if isinstance(start, str) else start / start.sum()
    return pf.MarkovChain(HARDLY_MOVES / HARDLY_MOVES.sum(axis=1, keepdims=True), start)


def test_a_chain_that_hardly_moves_is_followed_through_its_few_records() -> None:
    """Its noise was 317, and that of quilts is 300: a bound for every horizon was taken after two records of thirty."""
    calibration = pf.LeakagePropagation(hardly_moving(), 30).calibrate(pf.Count(0), 0.1)
    assert calibration.scale < 25
    assert pf.LeakagePropagation(hardly_moving(), 30).leakage(calibration.record_loss) <= 0.1 * (1 + 1e-6)


@pytest.mark.parametrize("start", ["any", "stationary", START], ids=["any", "stationary", "given"])
def test_what_is_found_on_the_way_is_above_every_horizon_step_by_step(start: Any) -> None:
    """Longer chains never leak less, and a chain of few records less than its bound for all horizons."""
    told = [pf.LeakagePropagation(hardly_moving(start), length).leakage(0.01) for length in (2, 3, 8, 30)]
    for one, longer in pairwise(told):
        assert one <= longer * (1 + 1e-5)


@pytest.mark.slow
def test_a_proof_that_was_found_on_the_way_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new search that proves nothing at the noise found does not make it larger: the way is gone again."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])
    quilts = pf.MQMExact(chain, 100).calibrate(pf.Count(1), 1.0).scale
    monkeypatch.setattr(ChainPropagation, "leakage", _only_when_asked_before(ChainPropagation.leakage))
    calibration = pf.LeakagePropagation(chain, 100).calibrate(pf.Count(1), 1.0)
    assert calibration.scale < 0.4 * quilts
    assert calibration.prove_leakage() <= 1.0


def test_the_next_best_noise_is_taken_where_the_best_cannot_be_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])
    quilts = pf.MQMExact(chain, 100).calibrate(pf.Count(1), 1.0).scale
    monkeypatch.setattr(ChainPropagation, "least_divisor", lambda *_: 0.5)  # far too little
    calibration = pf.LeakagePropagation(chain, 100).calibrate(pf.Count(1), 1.0)
    assert calibration.scale <= quilts * ROUNDING


def _only_when_asked_before(leakage: Any) -> Any:
    """A search that finds a proof only from where an earlier one ended."""

    def found(self: ChainPropagation, runs: Any) -> Attained:
        asked = self.__dict__.setdefault("asked", [])
        asked.append(True)
        attained = leakage(self, runs)
        return attained if len(asked) > 1 else Attained(math.inf, attained.node, attained.pair)

    return found
