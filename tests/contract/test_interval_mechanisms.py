"""What every mechanism owes a class that is a continuum: proofs, copies, ledgers, releases, comparisons."""

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import polars
import pytest

import pufferfish as pf
from pufferfish.errors import NotApplicableError, ReleaseRefused
from pufferfish.mechanisms import BOUNDS, MECHANISMS

CLASSES = {
    "any": pf.BinaryChainInterval(0.4, 0.6, states=["a", "b"], origin="a textbook"),
    "stationary": pf.BinaryChainInterval(0.4, 0.6, initial_distribution="stationary", states=["a", "b"]),
    "bounds": pf.IntervalChain([[0.5, 0.4], [0.4, 0.5]], [[0.6, 0.5], [0.5, 0.6]], states=["a", "b"]),
}
BOTH = {"group-dp", "gk16", "mqm-exact", "propagation"}
FIXED = BOTH | {"mqm-approx", "wasserstein", "exact-laplace"}
COVERED = {"any": FIXED, "stationary": FIXED, "bounds": BOTH}
EVERYTHING = [(make, name) for name in CLASSES for make in MECHANISMS if make.name in COVERED[name]]


def data(length: int) -> pf.Sequences:
    states = np.random.default_rng(2).choice(["a", "b"], length).tolist()
    return pf.read_sequences(polars.DataFrame({"s": states}), state="s")


@pytest.mark.parametrize(
    "name", [pytest.param("any", marks=pytest.mark.slow), "stationary", pytest.param("bounds", marks=pytest.mark.slow)]
)
def test_comparisons_have_every_mechanism_or_a_reason(name: str, slow: bool) -> None:
    rows = pf.compare(CLASSES[name], pf.Count("b"), 1.0, length=12 if slow else 3)
    assert {row.mechanism for row in rows if row.reason is None} == COVERED[name]
    for row in rows:
        if row.reason is None:
            assert row.scale is not None
            assert row.over_lower_bound is not None
            assert row.over_lower_bound >= 0.998
        else:
            assert row.reason
            assert "\n" not in row.reason
    scales = {row.mechanism: row.scale for row in rows if row.scale}
    assert scales["propagation"] <= scales["mqm-exact"] * (1 + 1e-9)
    assert scales["mqm-exact"] <= scales["group-dp"] * (1 + 1e-6)  # a continuum is certified so near


@pytest.mark.parametrize(("make", "name"), EVERYTHING)
def test_calibrations_prove_what_they_promise_and_copies_do(make: Any, name: str, slow: bool) -> None:
    length = 9 if slow else 4
    mechanism = make.of(CLASSES[name], length)
    for query in (pf.Count("b"), pf.Histogram()):
        found = mechanism.calibrate(query, 0.7)
        assert 0 < found.prove_leakage() <= 0.7
        assert found.witness.length == length
        again = pickle.loads(pickle.dumps(found))
        assert again.scale == copy.deepcopy(found).scale == found.scale
        assert again.prove_leakage() == found.prove_leakage()
        assert again.theta == found.theta
        release = pf.release(data(length), query, found)
        theta = release.to_dict()["theta"]
        assert theta["kind"] == CLASSES[name].kind
        assert len(theta["members"]) == 1
        assert "one of Θ: a" in release.to_dict()["assumptions"][0]


@pytest.mark.parametrize(("make", "name"), [(make, name) for make, name in EVERYTHING if make in BOUNDS])
def test_ledgers_take_a_release_at_its_epsilon(make: Any, name: str) -> None:
    bound = make.of(CLASSES[name], 9)
    calibration = bound.calibrate(pf.Histogram(), 0.5)
    ledger = pf.Ledger(make.of(CLASSES[name], 9), budget=0.5)
    ledger.spend(calibration)
    assert 0.499 <= ledger.spent <= 0.5
    twice = pf.Ledger(bound, budget=5.0)
    for _ in range(2):
        twice.spend(calibration)
    both = bound.leakage(2 * calibration.record_loss)
    assert twice.spent == pytest.approx(both, rel=2e-3)


@pytest.mark.parametrize(("make", "name"), [(m, n) for m, n in EVERYTHING if m in BOUNDS and m.name != "group-dp"])
def test_longer_chains_and_more_loss_never_leak_less(make: Any, name: str) -> None:
    leaks = [make.of(CLASSES[name], length).leakage(0.3) for length in (1, 2, 5, 40, 400)]
    assert leaks[0] >= 0.3
    assert all(b >= a * (1 - 1e-3) for a, b in itertools.pairwise(leaks))
    bound = make.of(CLASSES[name], 30)
    losses = [bound.leakage(loss) for loss in (0.0, 1e-9, 0.1, 0.2, 2.0)]
    assert losses[0] == 0.0
    assert all(b >= a for a, b in itertools.pairwise(losses))


def test_what_is_refused_is_refused_with_a_reason() -> None:
    theta, bounds = CLASSES["any"], CLASSES["bounds"]
    for make, class_, reason in (
        (pf.EntryDP, theta, "correlated under members of Θ"),
        (pf.EntryDP, bounds, "may be correlated"),
        (pf.MQMApprox, bounds, "no stationary law"),
        (pf.Wasserstein, bounds, "one transition matrix"),
        (pf.ExactLaplace, bounds, "one transition matrix"),
        (pf.GK16, pf.BinaryChainInterval(0.1, 0.9), "spectral norm"),
    ):
        with pytest.raises(NotApplicableError, match=reason):
            make.of(class_, 20)
    assert pf.EntryDP(pf.BinaryChainInterval(0.5, 0.5), 20).calibrate(pf.Count("1"), 2.0).scale == pytest.approx(0.5)
    with pytest.raises(NotApplicableError):
        pf.robustness(theta, pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["a", "b"]), length=5)
    with pytest.raises(ReleaseRefused):
        pf.release(data(10), pf.Count("b"), pf.LeakagePropagation(theta, 9).calibrate(pf.Count("b"), 1.0))
