"""Chains with unobserved records: noise for ChainLength(T, r) covers every choice of the r observed records."""

from itertools import combinations

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import dyadic_law, dyadic_matrix
from enumeration import worst_count_loss
from pufferfish.mechanisms import InfluenceBound


def chains(seed: int) -> list[pf.MarkovChain]:
    rng = np.random.default_rng(seed)
    p = dyadic_matrix(rng, 2, zeros=0.0)
    return [pf.MarkovChain(p, start) for start in ("stationary", "any", dyadic_law(rng, 2), [1.0, 0.0])]


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("make", [pf.MQMExact, pf.MQMApprox, pf.GroupDP], ids=lambda make: make.name)
@pytest.mark.parametrize("seed", range(4))
def test_every_place_of_the_observed_records_is_covered(make: type[InfluenceBound], seed: int, slow: bool) -> None:
    steps = 7 if slow else 6
    for chain in chains(seed):
        for records in (1, 2, 4, steps - 1):
            bound = make(chain, pf.ChainLength(steps, records))
            scale = bound.calibrate(pf.Count(1), 1.0).scale
            start = chain.initial_distribution
            starts = {
                "stationary": [chain.stationary_distribution],
                "any": [np.array([1 - 1e-9, 1e-9]), np.array([0.5, 0.5])],
            }
            laws = starts[start] if isinstance(start, str) else [start]
            for places in combinations(range(steps), records):
                observed = np.isin(np.arange(steps), places)
                assert bound.leakage(observed / scale) <= 1 + 1e-9
                for law in laws:
                    assert worst_count_loss(np.array(law), chain.transition_matrix, observed, 1, scale) <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_chains_with_more_steps_or_more_records_decide(seed: int) -> None:
    """Of several chains those that no other outdoes are looked at, and together they give the largest bound."""
    rng = np.random.default_rng(seed)
    chain = chains(seed)[seed % 4]
    lengths = [pf.ChainLength(int(t), int(rng.integers(1, t + 1))) for t in rng.integers(1, 60, size=6)]
    together = pf.MQMExact(chain, lengths)
    each = [pf.MQMExact(chain, length) for length in lengths]
    for loss in (0.05, 0.7):
        assert together.leakage(loss) == pytest.approx(max(bound.leakage(loss) for bound in each), rel=1e-12)
    scales = [bound.calibrate(pf.Count(1), 1.0).scale for bound in each]
    assert together.calibrate(pf.Count(1), 1.0).scale == pytest.approx(max(scales), rel=1e-12)


def test_the_cap_is_what_group_privacy_charges() -> None:
    sticky = pf.MarkovChain([[0.999, 0.001], [0.001, 0.999]])
    few = pf.ChainLength(steps=1000, records=12)
    assert pf.MQMExact(sticky, few).leakage(0.1) == pytest.approx(1.2)
    assert pf.MQMExact(sticky, few).leakage([0.1] * 1000) > 2  # a loss for every step charges every step


def test_records_of_a_cycle_that_count_as_next_to_each_other_get_too_little_noise(slow: bool) -> None:
    """The table under ``max_gap`` in docs/tables.md: three records every third step of a near cycle change together."""
    matrix = np.where(np.roll(np.eye(3), 1, axis=1) > 0, 0.999, 0.0005)
    chain, scales = pf.MarkovChain(matrix), {}
    for records in (3, 300, 3_000, 30_000) if slow else (3, 300):
        lengths = pf.ChainLength(records, records), pf.ChainLength(3 * records - 2, records)
        scales[records] = [pf.LeakagePropagation(chain, [n]).calibrate(pf.Count(0), 1.0).scale for n in lengths]
    expected = {3: (2.0, 3.0), 300: (180, 300), 3_000: (819, 928), 30_000: (928, 928)}
    for records, found in scales.items():
        assert found == pytest.approx(expected[records], rel=2e-3), records
    start = np.full(3, 1 / 3)
    adjacent, third = np.ones(3, dtype=bool), np.arange(7) % 3 == 0
    assert (
        worst_count_loss(start, matrix, adjacent, 0, scales[3][0])
        <= 1
        < 1.4
        < worst_count_loss(start, matrix, third, 0, scales[3][0])
    )
    assert worst_count_loss(start, matrix, third, 0, scales[3][1]) <= 1 + 1e-9
