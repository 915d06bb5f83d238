"""Sums of record-level losses, and the options of single mechanisms."""

import math
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.errors import ModelError, ParameterError
from pufferfish.mechanisms.engine import largest_bound
from pufferfish.mechanisms.mqm_approx import mixing_bound
from pufferfish.mechanisms.mqm_exact import Weights
from pufferfish.queries.record_loss import BlockLoss, as_record_loss
from pufferfish.theta.lengths import ChainLength
from pufferfish.theta.model_class import as_theta

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
THETA = as_theta(CHAIN)


def losses(values: Any) -> BlockLoss:
    array = np.asarray(values, dtype=float)
    steps = array.shape[0] if array.ndim in (1, 3) else 10
    return as_record_loss(array, THETA, (ChainLength(steps, steps),)).blocks[0]


@pytest.mark.parametrize(
    "profile",
    [
        [0.1, 0.2, 0.3, 0.0, 0.7],
        [0.0, 0.0, 1e-300, 0.0],
        [1e300, 1e-300, 1.0],
        [5e-324, 0.0, 1e-323],
        [0.1] * 7,
        list(np.random.default_rng(0).exponential(1, 500)),
    ],
    ids=["plain", "tiny", "wide", "subnormal", "equal", "long"],
)
def test_weights_are_sums_rounded_up(profile: list[float]) -> None:
    weights, length = Weights(losses(profile)), len(profile)
    assert weights.uniform == (len(set(profile)) == 1)
    first, last = (np.array(index) + 1 for index in np.triu_indices(length))
    runs = list(zip(first, last, weights.many(first, last), strict=True))[:: 1 + length // 20]
    for i, j, many in runs:
        truth = math.fsum(profile[i - 1 : j])
        coarse = max(profile) * (j - i + 1) * 2.0**-40 + 1e-321
        for found in (weights(int(i), int(j)), float(many)):
            assert truth <= found <= truth * (1 + 1e-14) + coarse


def test_weights_count_the_largest_change_of_a_matrix() -> None:
    matrices = np.array([[[0, 0.1], [0.3, 0]], [[0, 0.5], [0.2, 0]]])
    assert Weights(losses(matrices))(1, 2) == pytest.approx(0.8)
    assert Weights(losses(matrices[0]))(1, 10) == pytest.approx(3.0)
    assert Weights(losses([0.0, 0.0]))(1, 2) <= 1e-320


def test_a_list_is_one_entry_per_chain_only_where_there_are_several() -> None:
    one, two = (ChainLength(2, 2),), (ChainLength(2, 2), ChainLength(3, 3))
    assert as_record_loss([0.1, 0.2], THETA, one).blocks[0].stacked.tolist() == [0.1, 0.2]
    assert [entry.stacked.tolist() for entry in as_record_loss([0.1, 0.2], THETA, two).blocks] == [[0.1], [0.2]]
    assert as_record_loss([[0.1, 0.2]], THETA, one).blocks[0].stacked.tolist() == [0.1, 0.2]


def test_losses_are_held_as_stretches() -> None:
    held = losses([0.1, 0.1, 0.2, 0.0, 0.0])
    assert (held.steps.tolist(), held.stacked.tolist(), held.of_observed) == ([2, 1, 2], [0.1, 0.2, 0.0], False)
    assert held.per_record.tolist() == [0.1, 0.1, 0.2, 0.0, 0.0]
    same = as_record_loss(pf.Profile([(2, 0.1), (1, 0.2), (2, 0.0)]), THETA, (ChainLength(5, 5),)).blocks[0]
    assert same.key == held.key
    parts = pf.Profile([(4, [[0, 0.1], [0.3, 0]]), (1, 0.2)])
    mixed = as_record_loss(parts, THETA, (ChainLength(5, 3),)).blocks[0]
    assert mixed.stacked.tolist() == [[[0, 0.1], [0.3, 0]], [[0, 0.2], [0.2, 0]]]


@pytest.mark.parametrize(
    ("stretches", "message"),
    [
        ([], "stretches of 0 steps, expected 5"),
        ([(4, 0.1)], "stretches of 4 steps, expected 5"),
        ([(5, 0.1), (0, 0.1)], "at least 1 in each"),
        ([(5, -0.1)], "negative or not finite"),
        ([(5, math.nan)], "negative or not finite"),
        ([(5, [0.1, 0.2])], "a loss of shape"),
        ([5], "not a profile"),
        ([("x", 0.1)], "not a profile"),
        ([(5, "x")], "the loss of a stretch holds text"),
    ],
)
def test_bad_profiles(stretches: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        pf.MQMExact(CHAIN, 5).leakage(pf.Profile(stretches))


def test_group_dp_charges_observed_records_only() -> None:
    bound = pf.GroupDP(CHAIN, [ChainLength(100, 10), ChainLength(12, 12)])
    assert bound.leakage(1.0) == pytest.approx(12.0)
    assert bound.leakage([np.linspace(0, 1, 100), 0.5]) == pytest.approx(np.linspace(0, 1, 100)[-10:].sum())
    witness = bound.calibrate(pf.Count(1), 1.0).witness
    assert (witness.length, witness.nearby, witness.active_quilt) == (12, 12, ())


def test_participant_dp_needs_no_model_of_the_records() -> None:
    calibration = pf.ParticipantDP([300, 120], theta=CHAIN).calibrate(pf.Histogram(), 0.5)
    assert calibration.scale == pytest.approx(2 * 300 / (420 * 0.5))
    assert calibration.mechanism == "participant-dp"


def test_entry_dp_is_the_largest_single_loss() -> None:
    coin = pf.MarkovChain([[0.7, 0.3], [0.7, 0.3]])
    assert pf.EntryDP(coin, [3, 2]).leakage([[0.1, 0.4, 0.2], 0.3]) == 0.4
    assert pf.EntryDP(coin, 100).calibrate(pf.Sum([0, 2.5]), 0.5).scale == pytest.approx(5.0)


@pytest.mark.parametrize("make", [pf.EntryDP, pf.MQMExact])
def test_where_every_record_is_certain_there_is_nothing_to_calibrate(make: Any) -> None:
    certain = pf.MarkovChain([[1, 0], [1, 0]], [1, 0])
    assert make(certain, 10).leakage(1.0) == 0.0
    with pytest.raises(ModelError, match="no secret to protect"):
        make(certain, 10).calibrate(pf.Count(1), 1.0)


def test_one_uncertain_record_is_enough() -> None:
    late = pf.MarkovChain([[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]], [0, 1, 0])
    witness = pf.MQMExact(late, 3).calibrate(pf.Count(0), 1.0).witness
    assert witness.node == 1
    assert pf.MQMExact(late, 1).leakage(1.0) == 0.0


@pytest.mark.parametrize("longest", [0, -1, 2.5, math.nan, "x"], ids=str)
def test_bad_max_quilt_length(longest: Any) -> None:
    with pytest.raises(ParameterError, match="max_quilt_length"):
        pf.MQMExact(CHAIN, 10, max_quilt_length=longest)


def test_bad_support() -> None:
    with pytest.raises(ParameterError, match='support is \'both\', expected "definition" or "paper"'):
        pf.MQMExact(CHAIN, 10, support="both")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 10}, "needs theta, or both pi_min and eigengap"),
        ({"length": 10, "pi_min": 0.2}, "needs theta, or both"),
        ({"pi_min": 0.2, "eigengap": 1.0}, "length is missing"),
        ({"pi_min": 0.6, "eigengap": 1.0, "length": 10}, "pi_min is 0.6"),
        ({"pi_min": 0.0, "eigengap": 1.0, "length": 10}, "pi_min is 0.0"),
        ({"pi_min": math.nan, "eigengap": 1.0, "length": 10}, "pi_min is nan"),
        ({"pi_min": 0.2, "eigengap": 2.1, "length": 10}, "eigengap is 2.1"),
        ({"pi_min": 0.2, "eigengap": -1.0, "length": 10}, "eigengap is -1.0"),
    ],
)
def test_bad_numbers_for_mqm_approx(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        pf.MQMApprox(**options)


def test_mixing_bound_is_the_closed_form_above_the_threshold_only() -> None:
    for t in (5, 8, 40):
        delta = math.exp(-0.75 * t / 2) / 0.2
        truth = 2 * math.atanh(delta)
        assert truth <= mixing_bound(0.2, 0.75, t) <= truth * (1 + 1e-9) + 1e-14
    assert 2 * math.log(1 / 0.2) / 0.75 > 4
    assert mixing_bound(0.2, 0.75, 4) == math.inf
    assert mixing_bound(0.2, 0.75, 10**9) < 1e-200


@pytest.mark.parametrize("k", [2, 3, 4])
def test_mixing_bound_covers_the_powers_of_the_matrix(k: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = 0.5 * np.eye(k) + 0.5 * rng.dirichlet(np.ones(k), k)
        bound = pf.MQMApprox(pf.MarkovChain(p), 10)
        for t in (4, 10, 30):
            power = np.linalg.matrix_power(p, t)
            truth = np.log(power[:, None, :] / power[None, :, :]).max()
            assert truth <= mixing_bound(bound.pi_min, bound.eigengap, t) * (1 + 1e-12) + 1e-13


def test_stretches_of_other_lengths_are_other_losses() -> None:
    """In one mechanism, whose answers are kept, and for chains that are compared by what tells their losses apart."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    short, long = pf.Profile([(5, 0.3), (35, 0.0)]), pf.Profile([(30, 0.3), (10, 0.0)])
    for kind in (pf.GroupDP, pf.MQMExact, pf.LeakagePropagation):
        asked = kind(chain, length=40)
        assert asked.leakage(short) < asked.leakage(long) == kind(chain, length=40).leakage(long)
        for pair in ([short, long], [long, short]):
            assert kind(chain, length=[40, 40]).leakage(pair) == asked.leakage(long)


def test_a_value_that_is_no_number_is_the_worst() -> None:
    first = largest_bound(iter([(math.nan, None), (0.5, None)]))
    last = largest_bound(iter([(0.5, None), (math.nan, None)]))
    assert first[0] == last[0] == math.inf
