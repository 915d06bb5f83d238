"""Ledgers of Bayesian networks: what releases of a table of independent rows leak together, exactly."""

import importlib
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from ledgers import TENTHS, put, spends_nothing
from network_ledgers import APART, BOUNDS, COLLIDER, LINE, STEP, YES_NO, in_file, ledger_of, quilts, rows_of
from pufferfish._base.words import at_most
from pufferfish.errors import BudgetExceeded, ParameterError, ReleaseRefused
from pufferfish.ledger import Ledger

COUNT = pf.Subset(pf.Count("yes"), ["a", "b"])
RELEASE = importlib.import_module("pufferfish.release.draw")
JUMP = 1 - np.eye(2)

# Exact sums


def test_a_new_ledger_has_spent_nothing() -> None:
    ledger = ledger_of(budget=2.5)
    assert (ledger.spent, ledger.remaining, ledger.budget, ledger.entries, ledger.base) == (0.0, 2.5, 2.5, (), None)


@pytest.mark.parametrize("bound", [pf.GroupDP, pf.LeakagePropagation, quilts], ids=["group", "propagation", "quilts"])
def test_ten_times_a_tenth_is_one(bound: Any) -> None:
    ledger = ledger_of(APART, bound=bound)
    for i in range(10):
        assert ledger.spend(0.1).spent == TENTHS[i]
    assert ledger.spent == 1.0
    spends_nothing(ledger, lambda: ledger.spend(1e-12), BudgetExceeded, "budget of 1")


@pytest.mark.parametrize(("budget", "tenths"), [(0.1, 1), (0.2, 2), (0.3, 3), (0.6, 6), (0.7, 7), (0.9, 9), (1.1, 11)])
def test_as_many_tenths_fit_as_the_budget_says(budget: float, tenths: int) -> None:
    ledger = ledger_of(APART, budget=budget)
    for _ in range(tenths):
        ledger.spend({"a": 0.1})
    spends_nothing(ledger, lambda: ledger.spend({"a": 0.1}), BudgetExceeded)
    ledger.spend({"b": 0.1})


def test_thirds_add_exactly() -> None:
    ledger = ledger_of(APART)
    calibration = replace(ledger.bound.calibrate(COUNT, 1.0), unit_scale=3.0)
    assert ledger.spend(calibration).spent == math.nextafter(1 / 3, 1)
    assert ledger.spend(calibration).spent == pytest.approx(2 / 3, abs=1e-15)
    assert ledger.spend(calibration).spent == 1.0


@pytest.mark.parametrize("bound", [pf.GroupDP, pf.LeakagePropagation, quilts], ids=["group", "propagation", "quilts"])
def test_ten_calibrated_tenths_fit(bound: Any) -> None:
    data = rows_of(APART)
    ledger = ledger_of(APART, bound=bound, base=data.base)
    calibration = ledger.bound.calibrate(pf.Marginals(), 0.1)
    for i in range(10):
        assert pf.release(data, pf.Marginals(), calibration, ledger=ledger).ledger.entry == i + 1
    assert 1 - 1e-9 < ledger.spent <= 1.0
    spends_nothing(ledger, lambda: pf.release(data, pf.Marginals(), calibration, ledger=ledger), BudgetExceeded)


@pytest.mark.parametrize("name", BOUNDS, ids=str)
def test_different_queries_noise_and_losses_add_node_by_node(name: str) -> None:
    make, network = BOUNDS[name]
    ledger = Ledger(make(network, 50), 50.0)
    ledger.spend(0.01)
    found = {node: 0.01 * (1 - np.eye(k)) for node, k in zip(network.nodes, network.sizes, strict=True)}
    by_hand = {"b": [[0, 0.2], [0.05, 0]], "a": 0.1}
    ledger.spend(by_hand)
    found["b"] = found["b"] + by_hand["b"]
    found["a"] = found["a"] + 0.1 * JUMP
    total = pf.Sum(dict.fromkeys(network.states, 0) | {"yes": 2.5})
    queries = [pf.Marginals(["c", "a"]), pf.Subset(pf.Count("yes"), ["b"]), total]
    for query, epsilon in zip(queries, (0.3, 1.5, 0.7), strict=True):
        calibration = ledger.bound.calibrate(query, epsilon)
        ledger.spend(calibration)
        found = {node: loss + calibration.node_loss[node] for node, loss in found.items()}
    assert ledger.spent == pytest.approx(ledger.bound.leakage(found), rel=1e-9)
    assert [sorted(entry.distance) for entry in ledger.entries[1:4]] == [["a", "b"], ["a", "c"], ["b"]]
    assert ledger.entries[3].distance == {"b": [[0, 1], [1, 0]]}
    assert ledger.entries[1].distance["b"][1][0] * 4 == ledger.entries[1].distance["b"][0][1]


def test_what_is_spent_on_one_node_leaves_independent_ones_free() -> None:
    ledger = ledger_of(APART, budget=5.0)
    for node in ("a", "b", "c"):
        assert ledger.spend({node: 0.3}).spent == TENTHS[2]
    assert ledger.spend({"b": 0.3}).spent == TENTHS[5]


def test_losses_of_nodes_are_told_by_names_alone() -> None:
    """A list has the order of somebody's network, which need not be the ledger's."""
    ledger = ledger_of(COLLIDER, bound=quilts, budget=9.0)
    for loss in ([0.1, 0, 0.3 * (1 - np.eye(3)), 0.2], (0.1, 0, 0.3, 0.2), np.full(4, 0.1)):
        spends_nothing(ledger, lambda loss=loss: ledger.spend(loss), ParameterError, "but nodes have names")
    ledger.spend({"a": 0.1, "c": 0.3 * (1 - np.eye(3)), "d": 0.2})
    assert set(ledger.entries[0].distance) == {"a", "c", "d"}


def test_nodes_are_charged_by_name_whatever_their_order() -> None:
    turned = pf.BayesianNetwork({name: LINE.cpts[name] for name in ("c", "a", "b")})
    query = pf.Subset(pf.Count("yes"), ["a"])
    ledger, data = ledger_of(budget=9.0), rows_of()
    calibration = pf.LeakagePropagation(turned, 50).calibrate(query, 1.0)
    pf.release(data, query, calibration, ledger=ledger)
    assert ledger.entries[0].distance == {"a": [[0, 1], [1, 0]]}
    assert ledger.spent == pytest.approx(ledger.bound.leakage({"a": 1 / calibration.unit_scale}), rel=1e-12)


def test_releases_under_the_same_quilt_share_its_influence() -> None:
    """MATH: K releases of the same noise leak K·ε − (K−1)·e, e the influence of the quilt; less than the sum of ε."""
    bound = quilts(LINE, 1, secrets=["b"])
    calibration = bound.calibrate(pf.Count("yes"), 10.0)
    influence, ledger = calibration.witness.influence, Ledger(bound, 1000.0)
    assert influence > 1
    for k in range(1, 6):
        spent = ledger.spend(calibration).spent
        loss = {node: k * d for node, d in calibration.node_loss.items()}
        assert bound.prove(loss)[1].active_quilt == calibration.witness.active_quilt == ("a", "c")
        assert spent == pytest.approx(k * 10 - (k - 1) * influence, rel=1e-12)


def test_releases_under_another_quilt_are_asked_anew() -> None:
    """Each release alone is best served by another quilt; together one quilt serves both, and costs what it costs."""
    bound = quilts(LINE, 1, secrets=["b"])
    ledger = Ledger(bound, 100.0)
    small, large = bound.calibrate(pf.Count("yes"), 0.3), bound.calibrate(pf.Count("yes"), 10.0)
    assert small.witness.active_quilt != large.witness.active_quilt
    ledger.spend(small)
    ledger.spend(large)
    total = {node: loss + large.node_loss[node] for node, loss in small.node_loss.items()}
    assert ledger.spent == pytest.approx(bound.leakage(total), rel=1e-12)
    assert ledger.spent < 10.3


def test_the_ledgers_own_theta_and_secrets_decide() -> None:
    """The charge is a record-level loss, which no Θ and no secret of the calibration changes."""
    ledger = ledger_of(budget=9.0)
    for bound in (pf.GroupDP(APART, 50), quilts(LINE, 50, secrets=["c"]), pf.LeakagePropagation(APART, 20)):
        calibration = bound.calibrate(pf.Count("yes"), 0.1)
        alone = ledger_of(budget=9.0).spend(calibration)
        assert alone.epsilon == 0.1
        assert alone.spent == pytest.approx(ledger.bound.leakage(calibration.node_loss), rel=1e-12)
    assert ledger.leakage_with(pf.GroupDP(APART, 50).calibrate(pf.Count("yes"), 0.1)) > 0.2


def test_what_tells_nothing_of_a_secret_is_free_and_stays_in_the_book(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    Ledger(quilts(APART, 50, secrets=["a"]), 1.0).save(path)
    ledger = Ledger.open(path)
    assert ledger.spend({"b": 5.0}).spent == 0.0
    assert Ledger.open(path).entries == ledger.entries
    assert ledger.spend({"a": 0.25}).spent == 0.25
    assert Ledger.open(path).spend({"b": 700.0}).spent == 0.25
    ledger_file = json.loads(path.read_text())
    ledger_file["entries"][1]["spent"] = 0.0
    put(path, ledger_file)
    with pytest.raises(pf.PufferfishError, match="entry 2 says 0 are spent"):
        Ledger.open(path)


# Adaptive


@pytest.mark.parametrize("name", BOUNDS, ids=str)
def test_calibrated_noise_spends_what_was_asked(name: str) -> None:
    make, network = BOUNDS[name]
    data = rows_of(network)
    ledger = Ledger(make(network, 50), 4.0, base=data.base)
    queries = [pf.Marginals(), COUNT, pf.Subset(pf.Histogram(), ["b", "a"]), pf.Subset(pf.Frequency("yes"), ["a", "b"])]
    for level, query in zip((0.01, 0.4, 1.5, 4.0), queries, strict=True):
        calibration = ledger.calibrate(query, up_to=level)
        would = ledger.leakage_with(calibration)
        found = pf.release(data, query, calibration, ledger=ledger)
        assert would == found.ledger.spent == ledger.spent
        assert 0.99 * level <= ledger.spent <= level
        assert calibration.epsilon >= calibration.prove_leakage()
    spends_nothing(ledger, lambda: ledger.calibrate(COUNT, up_to=3.0), BudgetExceeded, "spent already")


def test_noise_for_a_part_of_the_rows() -> None:
    ledger, part = ledger_of(base=rows_of().base), rows_of(n=20, where="age > 60")
    query = pf.Subset(pf.Frequency("yes"), ["a", "b", "c"])
    calibration = ledger.calibrate(query, up_to=0.5, length=part.length)
    assert calibration.bound.rows == 20
    found = pf.release(part, query, calibration, ledger=ledger)
    assert 0.495 <= found.ledger.spent <= 0.5
    spends_nothing(ledger, lambda: ledger.calibrate(query, length=60), ReleaseRefused, "make another ledger")


def test_asking_what_would_be_spent_spends_nothing(tmp_path: Path) -> None:
    ledger = in_file(tmp_path / "book.json")
    before = (tmp_path / "book.json").read_bytes()
    would = ledger.leakage_with({"a": 0.05})
    ledger.calibrate(COUNT, up_to=0.5)
    assert (tmp_path / "book.json").read_bytes() == before
    assert ledger.entries == ()
    assert ledger.spend({"a": 0.05}).spent == would > 0


# Releases


def test_a_release_says_what_is_spent_in_all(tmp_path: Path) -> None:
    data = rows_of()
    ledger = ledger_of(budget=2.0, base=data.base)
    calibration = ledger.bound.calibrate(pf.Marginals(), 0.5)
    pf.release(data, pf.Marginals(), calibration, ledger=ledger)
    found = pf.release(data, pf.Marginals(), calibration, ledger=ledger)
    assert (found.ledger.entry, found.ledger.spent, found.ledger.budget) == (2, ledger.spent, 2.0)
    assert found.ledger.mechanism == "propagation"
    assert any("number 2" in text and f"at most {at_most(ledger.spent)};" in text for text in found.not_promised)
    found.to_json(tmp_path / "release.json")
    assert pf.Release.from_json(tmp_path / "release.json") == found
    assert ledger.entries[0].what == "marginals: share of the 50 rows in each state of a, b, c"


def test_the_entry_is_written_before_noise_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, data = tmp_path / "book.json", rows_of()
    ledger = in_file(path, base=data.base)
    seen: list[int] = []

    def watched(*_: object, **__: object) -> Callable[[], list[int]]:
        seen.append(len(json.loads(path.read_text())["entries"]))

        def draw() -> list[int]:
            seen.append(len(json.loads(path.read_text())["entries"]))
            return [7]

        return draw

    monkeypatch.setattr(RELEASE, "discrete_laplace_noise", watched)
    found = pf.release(data, COUNT, ledger.bound.calibrate(COUNT, 0.3), ledger=ledger)
    assert seen == [0, 1]
    assert found.values == [7.0]


# A network of one node, and of several members


def test_a_network_of_one_node_and_a_class_of_several_networks() -> None:
    one = pf.BayesianNetwork({"a": pf.CPT(["x", "y", "z"], [0.2, 0.3, 0.5])})
    ledger = ledger_of(one, budget=5.0)
    ledger.spend({"a": 0.1})
    ledger.spend({"a": [[0, 1, 1], [1, 0, 0], [1, 0, 0]]})
    assert ledger.spent == pytest.approx(1.1, rel=1e-12)
    stickier = pf.BayesianNetwork(dict(LINE.cpts) | {"c": pf.CPT(YES_NO, [[0.99, 0.01], [0.01, 0.99]], ["b"])})
    theta = pf.ModelClass((LINE, stickier), "two surveys")
    both, each = ledger_of(theta, budget=5.0), [ledger_of(network, budget=5.0) for network in (LINE, stickier)]
    for ledger in (both, *each):
        ledger.spend(0.2)
        ledger.spend({"c": 0.7})
    assert both.spent == pytest.approx(max(ledger.spent for ledger in each), rel=1e-9)
    assert len({round(ledger.spent, 6) for ledger in each}) == 2
    assert both.bound.theta.origin == "two surveys"


def test_names_that_are_no_text_are_named_by_their_label() -> None:
    numbered = pf.BayesianNetwork({0: pf.CPT(YES_NO, [0.8, 0.2]), 1: pf.CPT(YES_NO, STEP, [0])})
    ledger, data = ledger_of(numbered, budget=5.0), rows_of(numbered)
    calibration = ledger.bound.calibrate(pf.Marginals([1]), 0.5)
    pf.release(data, pf.Marginals([1]), calibration, ledger=ledger)
    assert ledger.entries[0].distance == {"1": [[0, 2], [2, 0]]}
    assert ledger.spend({0: 0.1}).spent == pytest.approx(ledger.leakage_with({"0": 1e-12}), rel=1e-9)
