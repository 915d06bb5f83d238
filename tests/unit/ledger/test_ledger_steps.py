"""Releases of steps in a ledger: charged by their steps, which is less than by two for each record."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.errors import RecordError, ReleaseRefused
from pufferfish.ledger.kept import with_digest

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["a", "b"])
BOUND = pf.LeakagePropagation(CHAIN, length=[400, 300])
STEPS = BOUND.calibrate(pf.Transitions(), 1.0)
COUNTS = BOUND.calibrate(pf.Histogram(), 1.0)


def test_losses_of_steps_add_like_those_of_records(tmp_path: Path) -> None:
    ledger = pf.Ledger(BOUND, budget=10.0)
    ledger.spend(STEPS)
    assert ledger.spent == pytest.approx(1.0, rel=1e-5)
    ledger.spend(COUNTS)
    ledger.spend(STEPS)
    both = pf.StepLoss(4 / STEPS.unit_scale, COUNTS.record_loss)
    assert ledger.spent == pytest.approx(BOUND.leakage(both), rel=1e-9)
    assert ledger.spent < BOUND.leakage(2 * STEPS.record_loss + COUNTS.record_loss)  # two steps for each record
    ledger.save(tmp_path / "ledger.json")
    again = pf.Ledger.open(tmp_path / "ledger.json")
    assert [entry.step for entry in again.entries] == [2, 0, 2]
    assert again.spent == ledger.spent
    found = again.calibrate(pf.Switches(), up_to=5.0)
    again.spend(found)
    assert again.spent == pytest.approx(5.0, rel=1e-4)
    assert again.entries[-1].step == 1
    bouts = again.calibrate(pf.Bouts(BOUND.theta.states[0]), up_to=6.0)  # a loss of records alone, and half of that
    again.spend(bouts)
    assert again.spent == pytest.approx(6.0, rel=1e-4)
    assert again.entries[-1].step == 0
    assert again.entries[-1].distance == [[0, 1], [1, 0]]


def test_an_entry_that_hides_its_steps_is_noticed(tmp_path: Path) -> None:
    ledger = pf.Ledger(BOUND, budget=10.0)
    ledger.spend(STEPS)
    ledger.save(tmp_path / "ledger.json")
    for step in (0, -2, 1):
        ledger_file = json.loads((tmp_path / "ledger.json").read_text())
        ledger_file["entries"][0]["step"] = step
        (tmp_path / "changed.json").write_bytes(with_digest(json.dumps(ledger_file).encode()))
        with pytest.raises(RecordError):
            pf.Ledger.open(tmp_path / "changed.json")


def test_steps_of_windows_count_where_they_are() -> None:
    """Two halves of a chain cost what the larger one does, more or less; the same half twice costs both."""
    bound = pf.LeakagePropagation(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["a", "b"]), length=400)
    part = pf.LeakagePropagation(CHAIN, length=200).calibrate(pf.Transitions(), 1.0)
    apart, same = pf.Ledger(bound, 10.0), pf.Ledger(bound, 10.0)
    for ledger, windows in ((apart, [(0, 200), (200, 400)]), (same, [(0, 200), (0, 200)])):
        for window in windows:
            ledger.spend(part, window=window)
    assert apart.spent == pytest.approx(1.0, rel=1e-4)
    assert same.spent == pytest.approx(bound.leakage(pf.StepLoss(4 / part.unit_scale)), rel=1e-6)


def test_coarser_states_have_the_same_steps() -> None:
    fine = pf.MarkovChain(np.full((3, 3), 1 / 3) * 0.4 + 0.6 * np.eye(3), states=["a", "b1", "b2"])
    bound = pf.LeakagePropagation(fine, length=400)
    ledger = pf.Ledger(bound, 10.0)
    coarse = pf.LeakagePropagation(CHAIN, length=400).calibrate(pf.Transitions(), 1.0)
    ledger.spend(coarse, coarsening={"a": "a", "b1": "b", "b2": "b"})
    assert ledger.spent == pytest.approx(bound.leakage(pf.StepLoss(2 / coarse.unit_scale)), rel=1e-9)


def test_rows_that_a_filter_leaves_out_would_make_other_steps() -> None:
    table = pl.DataFrame({"t": range(40), "state": ["a", "b"] * 20, "good": [True, False, True, True] * 10})
    whole = pf.read_sequences(table, "state", time="t", max_gap="2")
    some = pf.read_sequences(table, "state", time="t", max_gap="2", where="good")
    bound = pf.LeakagePropagation(CHAIN, length=whole.length)
    ledger = pf.Ledger(bound, 5.0, base=whole.base)
    noise = pf.LeakagePropagation(CHAIN, length=some.length).calibrate(pf.Transitions(), 0.1)
    with pytest.raises(ReleaseRefused, match="neighbouring records here may not be"):
        pf.release(some, pf.Transitions(), noise, ledger=ledger)
    assert not ledger.entries
    pf.release(whole, pf.Transitions(), bound.calibrate(pf.Transitions(), 0.1), ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("query", [pf.Bouts("a"), pf.Bouts(["a", "c"]), pf.Switches(), pf.Transitions()], ids=repr)
def test_the_order_of_a_releases_states_is_not_charged(query: Any) -> None:
    """The ledger has an order of its own: what it charges is the same, also where a state is impossible."""
    for matrix, start in (
        ([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]], "stationary"),
        ([[0.6, 0.4, 0.0], [0.2, 0.8, 0.0], [0.5, 0.5, 0.0]], [0.5, 0.5, 0.0]),
    ):
        chain, order, spent = pf.MarkovChain(matrix, start, states=["a", "b", "c"]), [2, 0, 1], []
        law = start if isinstance(start, str) else np.array(start)[order]
        turned = pf.MarkovChain(np.array(matrix)[np.ix_(order, order)], law, states=["c", "a", "b"])
        for theta in (chain, turned):
            ledger = pf.Ledger(pf.LeakagePropagation(chain, 9), 10.0)
            ledger.spend(pf.LeakagePropagation(theta, 9).calibrate(query, 1.0))
            spent.append(ledger.spent)
        assert spent[1] == pytest.approx(spent[0], rel=1e-4)
        assert spent[0] == pytest.approx(1.0, rel=1e-4)


def test_bouts_in_coarser_states_are_charged_between_the_states_of_the_base() -> None:
    states, groups = ["a", "b1", "b2"], {"a": "a", "b1": "b", "b2": "b"}
    fine = pf.MarkovChain(np.full((3, 3), 1 / 3) * 0.4 + 0.6 * np.eye(3), states=states)
    bound = pf.LeakagePropagation(fine, length=400)
    for order in (["a", "b"], ["b", "a"]):
        ledger = pf.Ledger(bound, 10.0)
        coarse = pf.LeakagePropagation(pf.MarkovChain([[0.7, 0.3], [0.3, 0.7]], states=order), 400)
        noise = coarse.calibrate(pf.Bouts("b"), 1.0)
        ledger.spend(noise, coarsening=groups)
        assert ledger.entries[0].distance == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
        same = bound.calibrate(pf.Bouts(["b1", "b2"]), 1.0)  # the same number, asked in the ledger's own states
        assert ledger.spent == pytest.approx(bound.leakage(same.record_loss * same.unit_scale / noise.unit_scale))
