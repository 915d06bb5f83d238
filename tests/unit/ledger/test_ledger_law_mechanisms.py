"""Calibrations to the law of one query in a ledger: they do not compose, and what is charged instead."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from ledgers import CHAIN, COUNT, in_file, ledger_of, read, spends_nothing
from pufferfish.errors import ParameterError, PufferfishError
from pufferfish.ledger import Ledger

MECHANISMS = [
    pytest.param(pf.Wasserstein, {}, id="wasserstein"),
    pytest.param(pf.ExactLaplace, {}, id="exact-laplace"),
    pytest.param(pf.ApproximateWasserstein, {"delta": 1e-6}, id="approximate-wasserstein"),
]


@pytest.mark.parametrize(("make", "options"), MECHANISMS)
def test_its_epsilon_is_refused_and_nothing_is_spent(make: Any, options: dict[str, Any], tmp_path: Path) -> None:
    calibration = make(CHAIN, 100, **options).calibrate(COUNT, 0.1)
    assert not calibration.composes
    for ledger in (ledger_of(budget=5.0), in_file(tmp_path / f"{make.name}.json", budget=5.0)):
        ledger.spend(0.01)
        for act in (ledger.spend, ledger.leakage_with):
            spends_nothing(ledger, lambda act=act: act(calibration), PufferfishError, make.title)
        assert len(ledger.entries) == 1


@pytest.mark.parametrize(("make", "options"), MECHANISMS)
def test_its_record_loss_can_be_charged(make: Any, options: dict[str, Any], tmp_path: Path) -> None:
    """The way out: the same noise, charged as what any Laplace noise of that scale costs. It is above its ε."""
    calibration = make(CHAIN, 100, **options).calibrate(COUNT, 0.5)
    path = tmp_path / "book.json"
    for ledger in (ledger_of(budget=20.0), in_file(path, budget=20.0)):
        before = ledger.leakage_with(calibration.record_loss)
        entry = ledger.spend(calibration.record_loss)
        assert entry.spent == ledger.spent == before
        direct = pf.LeakagePropagation(CHAIN, 100).leakage(calibration.record_loss)
        assert ledger.spent == pytest.approx(direct, rel=1e-9)
        # exact Laplace noise is what propagation would have needed on this chain; the others have more noise
        assert ledger.spent <= 0.5 * (1 + 1e-6)
        # a second release of the same noise adds record by record, not ε by ε
        twice = ledger.spend(calibration.record_loss).spent
        assert entry.spent < twice
        assert twice == pytest.approx(pf.LeakagePropagation(CHAIN, 100).leakage(2 * calibration.record_loss), rel=1e-9)
    assert Ledger.open(path).spent == pytest.approx(twice, rel=1e-12)


def test_the_record_loss_is_above_epsilon_where_a_single_query_leaks_less() -> None:
    """Negative correlation: a single count leaks little, and what it is charged must cover every other query too."""
    alternating = pf.MarkovChain([[0.2, 0.8], [0.7, 0.3]], states=["rest", "active"])
    ledger = ledger_of(alternating, budget=20.0)
    calibration = pf.ExactLaplace(alternating, 100).calibrate(COUNT, 0.5)
    assert ledger.spend(calibration.record_loss).spent > 1.0


@pytest.mark.parametrize(("make", "options"), MECHANISMS)
def test_it_is_no_bound_of_a_ledger(make: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=make.title):
        Ledger(make(CHAIN, 100, **options), 1.0)


@pytest.mark.parametrize(("make", "options"), MECHANISMS)
def test_a_release_into_a_ledger_is_refused(make: Any, options: dict[str, Any]) -> None:
    data, ledger = read([[60, 40]]), ledger_of(budget=5.0)
    calibration = make(CHAIN, 100, **options).calibrate(COUNT, 0.1)
    spends_nothing(ledger, lambda: pf.release(data, COUNT, calibration, ledger=ledger), PufferfishError, make.title)


def test_a_vector_query_is_charged_for_all_its_outputs() -> None:
    chain = pf.MarkovChain([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], states=["lie", "sit", "walk"])
    calibration = pf.Wasserstein(chain, 4).calibrate(pf.Histogram(relative=False), 1.0)
    loss = calibration.record_loss
    assert loss[0, 1] == pytest.approx(2 / calibration.scale, rel=1e-12)
    assert np.array_equal(loss, loss.T)
    ledger = ledger_of(chain, length=4, budget=50.0)
    assert ledger.spend(loss).spent >= 2 / calibration.scale
    spends_nothing(ledger, lambda: ledger.spend(calibration), PufferfishError, "Wasserstein")
