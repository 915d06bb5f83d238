"""From the error that is allowed to the least ε, and to what an algorithm of others may spend."""

import math
from typing import Literal

import pytest

import pufferfish as pf
from pufferfish._core.numbers import laplace
from pufferfish.mechanisms.engine import four_digits_up, steps_within

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
NETWORK = pf.BayesianNetwork(
    {"a": pf.CPT(["x", "y"], [0.5, 0.5]), "b": pf.CPT(["x", "y"], [[0.9, 0.1], [0.2, 0.8]], parents=["a"])}
)
CASES = {
    "propagation": (pf.LeakagePropagation(CHAIN, 500), pf.Histogram(), 0.05),
    "quilts": (pf.MQMExact(CHAIN, 500), pf.Sum([0, 2.5]), 40.0),
    "approximate quilts": (pf.MQMApprox(CHAIN, 500), pf.Frequency("active"), 0.3),
    "groups": (pf.GroupDP(CHAIN, length=50), pf.Count("active"), 25.0),
    "a continuum": (pf.LeakagePropagation(pf.BinaryChainInterval(0.3, 0.7), 30), pf.Count(1), 12.0),
    "a network": (pf.LeakagePropagation(NETWORK, length=200), pf.Marginals(["b"]), 0.045),
    "laws": (pf.ExactLaplace(CHAIN, 40), pf.Count("active"), 11.0),
    "transport": (pf.Wasserstein(CHAIN, 40), pf.Count("active"), 11.0),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("joint", [False, True])
def test_the_least_epsilon_that_is_as_accurate_as_asked(name: str, joint: bool) -> None:
    mechanism, query, allowed = CASES[name]
    found = mechanism.calibrate(query, accuracy=allowed, alpha=0.1, joint=joint)
    assert found.accuracy(0.1, joint=joint) <= allowed
    assert mechanism.calibrate(query, found.epsilon).unit_scale == found.unit_scale
    less = mechanism.calibrate(query, found.epsilon * (1 - 2.5e-3))
    assert less.accuracy(0.1, joint=joint) > allowed
    assert found.prove_leakage() <= found.epsilon


@pytest.mark.parametrize(("records", "allowed"), [(5, 0.6), (10, 0.3), (10, 0.7), (15, 0.6)])
@pytest.mark.parametrize("noise", ["equal", "best"])
def test_what_was_asked_holds_to_the_last_digit(records: int, allowed: float, noise: Literal["equal", "best"]) -> None:
    """Three units of 1/5 are 0.6, and not 3 · 0.2 = 0.6000000000000001; in the record of a release too."""
    mechanism = pf.GroupDP(CHAIN, records)
    found = mechanism.calibrate(pf.Histogram(), accuracy=allowed, noise=noise)
    release = pf.release((["rest", "active"] * records)[:records], pf.Histogram(), found)
    said = release.accuracy_95
    for error in (found.accuracy(), release.accuracy(), said.each, *found.accuracies(), *release.accuracies()):
        assert allowed * 0.8 < error <= allowed
    assert found.accuracy() == allowed == release.accuracy()
    assert mechanism.leakage(found.record_loss) <= found.epsilon


def test_alpha_is_five_percent_unless_given() -> None:
    mechanism = pf.LeakagePropagation(CHAIN, 500)
    usual = mechanism.calibrate(pf.Count("active"), accuracy=30)
    assert usual.epsilon == mechanism.calibrate(pf.Count("active"), accuracy=30, alpha=0.05).epsilon
    assert usual.epsilon < mechanism.calibrate(pf.Count("active"), accuracy=30, alpha=0.01).epsilon


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"accuracy": 0}, "accuracy is 0, expected a positive number"),
        ({"accuracy": -1.0}, "accuracy is -1.0"),
        ({"accuracy": math.nan}, "accuracy is nan"),
        ({"accuracy": True}, "accuracy is True"),
        ({"accuracy": "2%"}, "accuracy is '2%'"),
        ({"accuracy": 1e30}, "accuracy is 1e"),
        ({"accuracy": 1e15}, "even the smallest epsilon, 0.00001, is more accurate"),
        ({"accuracy": 5, "alpha": 1.0}, "alpha is 1.0, expected a probability"),
        ({"accuracy": 5, "joint": "yes"}, "joint is 'yes', expected True or False"),
        ({"accuracy": 5, "epsilon": 1.0}, "epsilon and accuracy both determine"),
        ({"alpha": 0.05, "epsilon": 1.0}, "alpha and joint only work with accuracy"),
        ({}, "^epsilon is missing"),
    ],
)
def test_what_cannot_be_asked(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(pf.ParameterError, match=message):
        pf.LeakagePropagation(CHAIN, 500).calibrate(pf.Count("active"), **arguments)  # type: ignore[arg-type]


def test_where_nothing_is_secret_no_epsilon_is_the_least() -> None:
    certain = pf.MarkovChain([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
    with pytest.raises(pf.ModelError, match="no secret to protect"):
        pf.LeakagePropagation(certain, 5).calibrate(pf.Count(1), accuracy=2)


def test_the_widest_noise_of_an_accuracy() -> None:
    for t in (0, 1, 2, 17, 1000, 10**6):
        for alpha in (0.001, 0.05, 0.5):
            for together in (1, 4):
                b = laplace.widest(t, alpha, together=together)
                assert laplace.accuracy(b, alpha, together=together) <= t
                assert laplace.accuracy(b * (1 + 1e-9), alpha, together=together) > t


def test_units_and_digits_are_those_that_were_written() -> None:
    unit = pf.Histogram().bind(("a", "b"), 1000).unit
    assert [steps_within(accuracy, unit) for accuracy in (0.001, 0.007, 0.29, 0.0005)] == [1, 7, 290, 0]
    assert [four_digits_up(value) for value in (1.0, 1.0000001, 0.99999, 1234.4, 5e-9)] == [
        1.0,
        1.001,
        1.0,
        1235.0,
        5e-9,
    ]


def test_what_an_algorithm_of_others_may_spend(slow: bool) -> None:
    for mechanism in (
        pf.LeakagePropagation(CHAIN, 500),
        pf.MQMExact(CHAIN, 500),
        pf.GroupDP(CHAIN, length=50),
        pf.LeakagePropagation(pf.BinaryChainInterval(0.3, 0.7), 30),
        pf.MarkovQuilt(NETWORK),
    ):
        for epsilon in (0.1, 1.0, 4.0) if slow else (0.1, 4.0):
            spent = mechanism.record_epsilon(epsilon)
            assert mechanism.leakage(spent, enough=epsilon) <= epsilon
            assert mechanism.leakage(spent * 1.002) > epsilon
    with pytest.raises(pf.ParameterError, match="epsilon is 0"):
        pf.MQMExact(CHAIN, 500).record_epsilon(0)


def test_a_comparison_by_accuracy_shows_the_epsilon_of_each() -> None:
    found = pf.compare(CHAIN, pf.Frequency("active"), accuracy=0.02, length=2000)
    fit = [row for row in found if row.reason is None]
    assert [row.epsilon for row in fit] == sorted(row.epsilon or 0 for row in fit)
    assert all(row.accuracy is not None and row.accuracy <= 0.02 for row in fit)
    assert next(row for row in fit if row.recommended).mechanism == "propagation"
    assert "frequency, hiding any one record, within 0.02 with 0.95 probability" in str(found)
    assert " epsilon" in str(found)
    for wrong in ({"accuracy": 0.1, "epsilon": 1.0}, {"alpha": 0.1, "epsilon": 1.0}, {}):
        with pytest.raises(pf.ParameterError, match=r"epsilon|accuracy"):
            pf.compare(CHAIN, pf.Count("active"), length=10, **wrong)  # type: ignore[arg-type]
