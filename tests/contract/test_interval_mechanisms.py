"""What every mechanism owes a class that is a continuum: proofs, copies, ledgers, releases, comparisons."""

import copy
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish.errors import NotApplicableError, ReleaseRefused
from pufferfish.mechanisms import BOUNDS, MECHANISMS

CLASSES = {
    "any": pf.BinaryChainInterval(0.4, 0.6, states=["a", "b"], origin="a textbook"),
    "stationary": pf.BinaryChainInterval(0.4, 0.6, initial_distribution="stationary", states=["a", "b"]),
    "bounds": pf.IntervalChain([[0.5, 0.4], [0.4, 0.5]], [[0.6, 0.5], [0.5, 0.6]], states=["a", "b"]),
}
BOTH = {"group-dp", "mqm-exact", "propagation"}
FIXED = BOTH | {"gk16", "mqm-approx"}
COVERED = {"any": FIXED, "stationary": FIXED, "bounds": BOTH}
FOR_ONE_QUERY = (pf.Wasserstein, pf.ExactLaplace)
REMEDY = "use LeakagePropagation; a list of some of its chains would protect under these chains only"
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
        (
            pf.EntryDP,
            theta,
            "it covers lists of Markov chains, and Θ is a class of two-state",
        ),
        (pf.EntryDP, bounds, "one transition matrix"),
        (pf.MQMApprox, bounds, "one transition matrix, .*; use LeakagePropagation"),
        (pf.GK16, bounds, "one transition matrix, .*; use LeakagePropagation"),
        (pf.Wasserstein, bounds, "one transition matrix"),
        (pf.ExactLaplace, bounds, "one transition matrix"),
        (pf.GK16, pf.BinaryChainInterval(0.1, 0.9), "spectral norm"),
    ):
        with pytest.raises(NotApplicableError, match=reason):
            make.of(class_, 20)
    with pytest.raises(NotApplicableError):
        pf.robustness(theta, pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["a", "b"]), length=5)
    with pytest.raises(ReleaseRefused):
        pf.release(data(10), pf.Count("b"), pf.LeakagePropagation(theta, 9).calibrate(pf.Count("b"), 1.0))


@pytest.mark.parametrize("make", FOR_ONE_QUERY)
def test_noise_for_one_query_is_refused_over_a_continuum_with_the_remedy(make: Any, tmp_path: Path) -> None:
    theta = CLASSES["any"]
    for settings in ({}, {"secrets": [(pf.RecordIs(0, "a"), pf.RecordIs(0, "b"))]}):
        with pytest.raises(NotApplicableError, match=f"^{make.title} does not apply: .*{REMEDY}$"):
            make(theta, 20, **settings)
    with pytest.raises(NotApplicableError, match=REMEDY):
        pf.ApproximateWasserstein(theta, 20, delta=1e-6)
    table, model, output = (tmp_path / name for name in ("table.csv", "model.json", "release.json"))
    table.write_text("s\n" + "a\nb\n" * 20)
    pf.write_model(pf.Model(theta=theta), model)
    told = ["--query", "count:b", "--epsilon", 1, "--mechanism", make.name, "--output", output]
    refused("release", table, "--state", "s", "--model", model, *told, says=[make.title, REMEDY])
    assert not output.exists()
    given = ["--length", 20, "--query", "count:b", "--epsilon", 1, "--mechanisms", make.name]
    compared = run("compare", model, *given)
    assert compared.exit_code == 0, compared.output
    assert REMEDY in " ".join(compared.stdout.split())


def test_a_comparison_says_the_reason_of_both_once() -> None:
    found = " ".join(str(pf.compare(CLASSES["any"], pf.Count("b"), 1.0, length=3)).split())
    assert found.count(REMEDY) == 1
    assert f"Wasserstein, ExactLaplace: it covers lists of chains, but Θ is a continuum: {REMEDY}" in found


@pytest.mark.parametrize("start", ["any", "stationary"])
@pytest.mark.parametrize("make", FOR_ONE_QUERY)
def test_an_interval_of_one_chain_is_that_chain(make: Any, start: Any) -> None:
    theta = pf.BinaryChainInterval(0.3, 0.3, initial_distribution=start)
    chain = pf.MarkovChain([[0.3, 0.7], [0.7, 0.3]], start)
    for length in (1, 3, 12):
        one, other = (make(each, length).calibrate(pf.Count("1"), 0.7) for each in (theta, chain))
        assert one.scale == other.scale
        assert one.prove_leakage() == other.prove_leakage()


@pytest.mark.parametrize("make", FOR_ONE_QUERY)
def test_an_older_release_over_a_continuum_is_refused_in_one_line(make: Any, tmp_path: Path) -> None:
    """Earlier versions covered it: a record that says so is refused with the remedy."""
    path = tmp_path / "release.json"
    one_chain = pf.BinaryChainInterval(0.3, 0.3, states=["a", "b"])
    noise = make(one_chain, 9).calibrate(pf.Count("b"), 1.0)
    record = json.loads(pf.release(data(9), pf.Count("b"), noise).to_json())
    record["theta"]["members"][0]["high"] = 0.7
    record["mechanism"]["witness"]["nearest"] = {"gap": 4.5e-4, "transition_matrix": None, "initial_distribution": None}
    record["assumptions"][0] = record["assumptions"][0].replace("0.3 and 0.3", "0.3 and 0.7")
    path.write_text(json.dumps(record))
    wrong = [line for line in pf.verify(path).findings if line.holds is False]
    assert [line.what for line in wrong] == ["record"]
    assert all(REMEDY in line.says for line in wrong)
    assert run("verify", path).exit_code == 1
    line = refused("report", path, "--output", tmp_path / "report.html", says=[REMEDY])
    assert "does not hold" in line
