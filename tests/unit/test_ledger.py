"""The ledger: what releases leak together, exactly; what it refuses; and that nothing else is spent."""

import copy
import importlib
import json
import math
import os
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.core.rounding import float_up
from pufferfish.data import Base
from pufferfish.errors import BudgetExceeded, DataError, ParameterError, PufferfishError, RecordError, ReleaseRefused
from pufferfish.ledger import Ledger

COUNT = pf.Count("active")
COIN = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["rest", "active"])
CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
THETA1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1.0, 0.0], states=["rest", "active"])
FINE = pf.MarkovChain([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], states=["lie", "sit", "walk"])
COARSE = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
GROUPS = {"lie": "rest", "sit": "rest", "walk": "active"}
JUMP = 1 - np.eye(2)
RELEASE = importlib.import_module("pufferfish.release")
TENTHS = [float_up(Fraction(i, 10)) for i in range(1, 11)]
"""Least floats that are at least 1/10, 2/10, … 1."""


class OneQuery(pf.GroupDP):
    """Stands for a calibration to one query, as the Wasserstein mechanism makes it."""

    name = "one-query"
    title = "OneQuery"
    composes = False


def ledger_of(
    chain: pf.MarkovChain = CHAIN,
    length: Any = 100,
    budget: float = 1.0,
    bound: Any = pf.LeakagePropagation,
    **more: Any,
) -> Ledger:
    return Ledger(bound(chain, length), budget, **more)


def in_file(path: Path, *args: Any, **options: Any) -> Ledger:
    ledger = ledger_of(*args, **options)
    ledger.save(path)
    return ledger


def read(
    counts: list[list[int]], states: tuple[str, ...] = ("rest", "active"), steps: list[int] | None = None, **base: Any
) -> pf.Sequences:
    spans = steps or [sum(row) for row in counts]
    return pf.Sequences(
        states=states,
        counts=np.array(counts),
        transitions=np.zeros((len(states), len(states)), dtype=np.int64),
        length=tuple(pf.ChainLength(n, sum(row)) for n, row in zip(spans, counts, strict=True)),
        subjects=len(counts),
        base=Base(**({"source": "table.csv", "state": "activity"} | base)),
    )


def spends_nothing(ledger: Ledger, act: Callable[[], object], error: type[Exception], match: str | None = None) -> None:
    """One clear error of this package, on one line, and the book is as before."""
    before, spent, base = ledger.entries, ledger.spent, ledger.base
    with pytest.raises(error, match=match) as caught:
        act()
    assert isinstance(caught.value, PufferfishError), repr(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) > 10
    assert (ledger.entries, ledger.spent, ledger.base) == (before, spent, base)


# Exact sums


def test_a_new_ledger_has_spent_nothing() -> None:
    ledger = ledger_of(budget=2.5)
    assert (ledger.spent, ledger.remaining, ledger.budget, ledger.entries, ledger.base) == (0.0, 2.5, 2.5, (), None)
    assert ledger.bound.name == "propagation"


def test_ten_times_a_tenth_is_one() -> None:
    ledger = ledger_of(COIN, bound=pf.EntryDP)
    for i in range(10):
        assert ledger.spend(0.1).spent == TENTHS[i]
    assert ledger.spent == 1.0
    assert ledger.remaining == 0.0
    spends_nothing(ledger, lambda: ledger.spend(1e-12), BudgetExceeded, "budget of 1")


@pytest.mark.parametrize(("budget", "tenths"), [(0.1, 1), (0.2, 2), (0.3, 3), (0.6, 6), (0.7, 7), (0.9, 9), (1.1, 11)])
def test_as_many_tenths_fit_as_the_budget_says(budget: float, tenths: int) -> None:
    ledger = ledger_of(COIN, budget=budget, bound=pf.EntryDP)
    for _ in range(tenths):
        ledger.spend(0.1)
    spends_nothing(ledger, lambda: ledger.spend(0.1), BudgetExceeded)
    assert ledger.remaining >= 0


def test_a_budget_of_one_admits_exactly_ten_releases_of_a_tenth() -> None:
    ledger, data = ledger_of(COIN, bound=pf.EntryDP), read([[60, 40]])
    calibration = pf.EntryDP(COIN, 100).calibrate(COUNT, 0.1)
    for i in range(10):
        assert pf.release(data, COUNT, calibration, ledger=ledger).ledger.entry == i + 1
    assert 1 - 1e-12 < ledger.spent <= 1.0
    spends_nothing(ledger, lambda: pf.release(data, COUNT, calibration, ledger=ledger), BudgetExceeded)


@pytest.mark.parametrize("bound", [pf.EntryDP, pf.GroupDP, pf.MQMApprox, pf.MQMExact, pf.LeakagePropagation])
def test_ten_raw_tenths_fit_every_bound_on_one_record(bound: Any) -> None:
    ledger = ledger_of(COIN, 1, bound=bound)
    for _ in range(10):
        ledger.spend(0.1)
    assert ledger.spent == 1.0
    spends_nothing(ledger, lambda: ledger.spend(0.1), BudgetExceeded)


@pytest.mark.parametrize("bound", [pf.MQMExact, pf.LeakagePropagation])
@pytest.mark.parametrize("row", [[0.5, 0.5], [0.7, 0.3], [0.2, 0.3, 0.5]], ids=str)
def test_ten_raw_tenths_fit_bounds_that_see_independence(bound: Any, row: list[float]) -> None:
    ledger = ledger_of(pf.MarkovChain([row] * len(row)), 100, bound=bound)
    for _ in range(10):
        ledger.spend(0.1)
    assert ledger.spent == 1.0
    spends_nothing(ledger, lambda: ledger.spend(0.1), BudgetExceeded)


@pytest.mark.parametrize("bound", [pf.EntryDP, pf.GroupDP, pf.MQMExact, pf.LeakagePropagation])
def test_ten_calibrated_tenths_fit_every_bound_on_independent_records(bound: Any) -> None:
    ledger = ledger_of(COIN, 50, bound=bound)
    calibration = ledger.bound.calibrate(COUNT, 0.1)
    for _ in range(10):
        ledger.spend(calibration)
    assert 1 - 1e-9 < ledger.spent <= 1.0
    spends_nothing(ledger, lambda: ledger.spend(calibration), BudgetExceeded)


def test_thirds_add_exactly() -> None:
    ledger = ledger_of(COIN, bound=pf.EntryDP)
    calibration = replace(pf.EntryDP(COIN, 100).calibrate(COUNT, 1.0), unit_scale=3.0)
    for spent in (math.nextafter(1 / 3, 1), math.nextafter(2 / 3, 1), 1.0):
        assert ledger.spend(calibration).spent == pytest.approx(spent, abs=1e-15)
    assert ledger.spent == 1.0


def test_the_same_losses_in_any_order_leak_the_same() -> None:
    losses = [0.3, 0.1, [[0.0, 0.07], [0.02, 0.0]], 0.2]
    found = []
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        ledger = ledger_of(budget=10.0)
        for i in order:
            ledger.spend(losses[i])
        found.append(ledger.spent)
    assert found[1:] == pytest.approx(found[:2], rel=1e-7)


def test_the_golden_row_of_compositions() -> None:
    ledger = ledger_of(THETA1, budget=10.0)
    found = [ledger.spend(JUMP / 3.3364).spent for _ in range(10)]
    assert [round(found[k - 1], 3) for k in (1, 2, 5, 10)] == [1.000, 2.086, 4.377, 6.553]


def test_the_golden_row_as_releases() -> None:
    ledger = ledger_of(THETA1, budget=10.0)
    calibration = replace(pf.LeakagePropagation(THETA1, 100).calibrate(COUNT, 1.0), unit_scale=3.3364)
    found = [ledger.spend(calibration).spent for _ in range(10)]
    assert [round(found[k - 1], 3) for k in (1, 2, 5, 10)] == [1.000, 2.086, 4.377, 6.553]


def test_leakage_is_asked_once_and_is_never_the_sum_of_epsilons() -> None:
    ledger = ledger_of(THETA1, budget=100.0)
    calibration = pf.LeakagePropagation(THETA1, 100).calibrate(COUNT, 1.0)
    for k in range(1, 6):
        spent = ledger.spend(calibration).spent
        assert spent == pytest.approx(ledger.bound.leakage(k * calibration.record_loss), rel=1e-7)
        assert k == 1 or abs(spent - k) > 0.02


def test_releases_under_the_same_quilt_share_its_influence() -> None:
    """MATH: K releases of the same noise leak K·ε − (K−1)·e, e the influence of the quilt."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [0.8, 0.2], states=["rest", "active"])
    bound = pf.MQMExact(chain, 3)
    calibration = bound.calibrate(COUNT, 10.0)
    influence, ledger = calibration.witness.influence, Ledger(bound, 1000.0)
    assert influence > 1
    for k in range(1, 6):
        spent = ledger.spend(calibration).spent
        assert bound.prove(k * calibration.record_loss)[1].active_quilt == calibration.witness.active_quilt
        assert spent == pytest.approx(k * 10 - (k - 1) * influence, rel=1e-12)


def test_quilts_never_leak_more_than_the_sum() -> None:
    bound = pf.MQMExact(THETA1, 100)
    ledger, calibration = Ledger(bound, 100.0), bound.calibrate(COUNT, 1.0)
    for k in range(1, 6):
        assert ledger.spend(calibration).spent <= k


def test_different_queries_and_noise_add_as_matrices() -> None:
    ledger = ledger_of(FINE, 50, 10.0)
    count = ledger.bound.calibrate(pf.Count("walk"), 0.3)
    histogram = ledger.bound.calibrate(pf.Histogram(), 0.5)
    ledger.spend(count)
    ledger.spend(histogram)
    ledger.spend(0.01)
    together = count.record_loss + histogram.record_loss + 0.01 * (1 - np.eye(3))
    assert ledger.spent == pytest.approx(ledger.bound.leakage(together), rel=1e-9)


def test_what_is_spent_never_falls() -> None:
    ledger, rng, last = ledger_of(budget=50.0), np.random.default_rng(3), 0.0
    for _ in range(15):
        start = int(rng.integers(0, 90))
        window = None if rng.random() < 0.4 else (start, int(rng.integers(start + 1, 101)))
        entry = ledger.spend(round(float(rng.uniform(0.001, 0.2)), 4), window=window)
        assert entry.spent >= last * (1 - 1e-9)
        last = entry.spent


# Windows


def test_disjoint_windows_leak_less_than_the_same_window_twice() -> None:
    apart, twice, whole = (ledger_of(budget=10.0) for _ in range(3))
    apart.spend(0.1, window=(0, 50))
    apart.spend(0.1, window=(50, 100))
    twice.spend(0.1, window=(0, 50))
    twice.spend(0.1, window=(0, 50))
    whole.spend(0.1)
    assert apart.spent < twice.spent
    assert apart.spent == pytest.approx(whole.spent, rel=1e-9)


@pytest.mark.parametrize("bound", [pf.MQMExact, pf.MQMApprox, pf.LeakagePropagation, pf.GroupDP])
def test_windows_are_a_profile_of_the_sum(bound: Any) -> None:
    ledger = ledger_of(budget=100.0, bound=bound)
    ledger.spend(0.1, window=(0, 60))
    ledger.spend(0.2, window=(40, 90))
    ledger.spend([[0, 0.05], [0.025, 0]])
    three = np.array([[0, 0.05], [0.025, 0]])
    parts = [(40, 0.1), (20, 0.3), (30, 0.2), (10, 0.0)]
    profile = pf.Profile([(steps, loss * JUMP + three) for steps, loss in parts])
    assert ledger.spent == pytest.approx(ledger.bound.leakage(profile), rel=1e-7)
    assert ledger.entries[1].windows == [(40, 90)]


def test_a_far_window_costs_almost_nothing_more() -> None:
    ledger = ledger_of(length=2000, budget=5.0)
    ledger.spend(0.2, window=(0, 100))
    near = ledger.spent
    ledger.spend(0.2, window=(1900, 2000))
    assert ledger.spent == pytest.approx(near, rel=1e-6)


def test_a_window_of_everything_costs_what_everything_costs() -> None:
    part, whole = ledger_of(), ledger_of()
    assert part.spend(0.1, window=(0, 100)).spent == pytest.approx(whole.spend(0.1).spent, rel=1e-12)


def test_windows_of_several_chains_are_one_each() -> None:
    ledger = ledger_of(length=[30, 20], budget=10.0)
    ledger.spend(0.1, window=[(0, 10), None])
    ledger.spend(0.2, window=[(5, 30), (0, 20)])
    profiles = [pf.Profile([(5, 0.1), (5, 0.1 + 0.2), (20, 0.2)]), pf.Profile([(20, 0.2)])]
    assert ledger.spent == pytest.approx(ledger.bound.leakage(profiles), rel=1e-12)
    assert ledger.entries[0].windows == [(0, 10), None]


def test_different_chains_do_not_add() -> None:
    ledger = ledger_of(length=[50, 50], budget=10.0)
    first = ledger.spend(0.1, window=[(0, 50), None]).spent
    assert ledger.spend(0.1, window=[None, (0, 50)]).spent == pytest.approx(first, rel=1e-12)
    assert ledger.spend(0.1, window=[None, (0, 50)]).spent > 1.5 * first


def test_a_release_of_a_window() -> None:
    ledger = ledger_of(base=read([[60, 40]]).base)
    data = read([[15, 10]], where="day == 1")
    calibration = ledger.calibrate(pf.Frequency("active"), up_to=0.5, length=data.length, window=(0, 25))
    found = pf.release(data, pf.Frequency("active"), calibration, ledger=ledger, window=(0, 25))
    assert 0.495 <= found.ledger.spent <= 0.5
    assert ledger.entries[0].windows == [(0, 25)]


def test_a_later_window_has_not_the_first_law_of_the_chain() -> None:
    """MATH: with a point-mass start the clock of a chain read from step 50 would start too late.

    The ledger charges the window rightly; it is the release's own epsilon, proved on a chain of 2 steps from its
    start, that would be too small.
    """
    ledger = ledger_of(THETA1, base=read([[60, 40]]).base)
    data = read([[1, 1]])
    calibration = pf.LeakagePropagation(THETA1, 2).calibrate(COUNT, 0.3)
    assert ledger.leakage_with(calibration, window=(50, 52)) > 0.45
    spends_nothing(
        ledger, lambda: pf.release(data, COUNT, calibration, ledger=ledger, window=(50, 52)), ReleaseRefused, "first"
    )
    pf.release(data, COUNT, calibration, ledger=ledger, window=(0, 2))


def test_a_small_window_costs_no_jump_under_group_dp() -> None:
    """50 records in 100 steps at 0.01 leak 0.5; one step more at 1e-9 cannot double that."""
    ledger = ledger_of(length=pf.ChainLength(100, 50), bound=pf.GroupDP)
    ledger.spend(0.01)
    assert ledger.spent == pytest.approx(0.5)
    assert ledger.leakage_with(1e-9, window=(0, 1)) == pytest.approx(0.5)


# Coarser states


def test_a_coarsening_is_charged_on_the_base() -> None:
    ledger = ledger_of(FINE, 100, 5.0)
    calibration = pf.LeakagePropagation(COARSE, 100).calibrate(COUNT, 0.5)
    ledger.spend(calibration, coarsening=GROUPS)
    assert ledger.entries[0].distance == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    fine = calibration.record_loss[np.ix_([0, 0, 1], [0, 0, 1])]
    assert ledger.spent == pytest.approx(ledger.bound.leakage(fine), rel=1e-12)


def test_bins_say_themselves_how_they_coarsen() -> None:
    fine = pf.MarkovChain(FINE.transition_matrix, states=["<1", "1-2", ">=2"])
    coarse = pf.MarkovChain(COARSE.transition_matrix, states=["<2", ">=2"])
    table = read([[40, 30, 30]], fine.states, bins=(0.0, 1.0, 2.0, 3.0))
    ledger = ledger_of(fine, 100, 5.0, base=table.base)
    query = pf.Histogram()
    data = read([[70, 30]], coarse.states, bins=(0.0, 2.0, 3.0))
    calibration = pf.LeakagePropagation(coarse, 100).calibrate(query, 0.5)
    pf.release(data, query, calibration, ledger=ledger)
    assert ledger.entries[0].distance == [[0, 0, 2], [0, 0, 2], [2, 2, 0]]
    # Edges that do not lie on those of the base are another base.
    other = pf.MarkovChain(COARSE.transition_matrix, states=["<1.5", ">=1.5"])
    data = read([[70, 30]], other.states, bins=(0.0, 1.5, 3.0))
    calibration = pf.LeakagePropagation(other, 100).calibrate(query, 0.5)
    spends_nothing(
        ledger, lambda: pf.release(data, query, calibration, ledger=ledger), ReleaseRefused, "are not among them"
    )


@pytest.mark.parametrize(
    "coarsening",
    [None, {}, {"lie": "rest", "sit": "rest"}, {**GROUPS, "walk": "run"}, {"rest": "lie"}],
    ids=str,
)
def test_a_coarsening_that_does_not_say_all_is_refused(coarsening: Any) -> None:
    ledger = ledger_of(FINE, 100, 5.0)
    calibration = pf.LeakagePropagation(COARSE, 100).calibrate(COUNT, 0.5)
    spends_nothing(ledger, lambda: ledger.spend(calibration, coarsening=coarsening), ReleaseRefused, "coarsening")


def test_the_same_states_in_another_order_are_not_taken_by_place() -> None:
    ledger = ledger_of(budget=5.0)
    turned = pf.MarkovChain([[0.6, 0.4], [0.1, 0.9]], states=["active", "rest"])
    calibration = pf.LeakagePropagation(turned, 100).calibrate(COUNT, 0.5)
    spends_nothing(ledger, lambda: ledger.spend(calibration), ReleaseRefused, "states")
    ledger.spend(calibration, coarsening={"rest": "rest", "active": "active"})
    assert ledger.entries[0].distance == [[0, 1], [1, 0]]


def test_a_coarsening_cannot_make_a_release_free() -> None:
    """All states as one: the charge would be 0 for a release that tells them apart."""
    data, ledger = read([[60, 40]]), ledger_of()
    calibration = ledger.bound.calibrate(COUNT, 0.5)
    lie = {"rest": "active", "active": "active"}
    spends_nothing(ledger, lambda: ledger.spend(calibration, coarsening=lie), ReleaseRefused)
    spends_nothing(ledger, lambda: pf.release(data, COUNT, calibration, ledger=ledger, coarsening=lie), ReleaseRefused)


def test_a_coarsening_that_leaves_a_released_state_without_a_source_is_refused() -> None:
    ledger = ledger_of(FINE, 100, 5.0)
    calibration = pf.LeakagePropagation(COARSE, 100).calibrate(COUNT, 0.5)
    lie = dict.fromkeys(GROUPS, "rest")
    spends_nothing(ledger, lambda: ledger.spend(calibration, coarsening=lie), ReleaseRefused)


def test_a_coarsening_that_contradicts_the_bins_is_refused() -> None:
    """A release by '<1.5' tells values inside the bin '1-2' apart; no groups of the base's bins say so."""
    fine = pf.MarkovChain(FINE.transition_matrix, states=["<1", "1-2", ">=2"])
    other = pf.MarkovChain(COARSE.transition_matrix, states=["<1.5", ">=1.5"])
    table = read([[40, 30, 30]], fine.states, bins=(0.0, 1.0, 2.0, 3.0))
    ledger = ledger_of(fine, 100, 5.0, base=table.base)
    data = read([[70, 30]], other.states, bins=(0.0, 1.5, 3.0))
    query = pf.Histogram()
    calibration = pf.LeakagePropagation(other, 100).calibrate(query, 0.5)
    lie = {"<1": "<1.5", "1-2": "<1.5", ">=2": ">=1.5"}
    spends_nothing(ledger, lambda: pf.release(data, query, calibration, ledger=ledger, coarsening=lie), ReleaseRefused)


# Bad input


@pytest.mark.parametrize("budget", [0, -1, math.nan, math.inf, "x", None, [1], 10**400], ids=lambda b: str(b)[:8])
def test_bad_budgets(budget: Any) -> None:
    with pytest.raises(ParameterError, match="budget is"):
        ledger_of(budget=budget)


def test_a_budget_can_be_spent_to_the_last_bit() -> None:
    for budget in (0.1, 0.5, 1.0, 0.3, 0.7):
        ledger = ledger_of(COIN, budget=budget, bound=pf.EntryDP)
        assert ledger.spend(budget).spent == budget
        spends_nothing(ledger, lambda ledger=ledger: ledger.spend(1e-6), BudgetExceeded)
        ledger = ledger_of(COIN, budget=budget, bound=pf.EntryDP)
        more = math.nextafter(math.nextafter(budget, math.inf), math.inf)
        spends_nothing(ledger, lambda ledger=ledger, more=more: ledger.spend(more), BudgetExceeded)


BAD_LOSSES = [
    math.nan,
    math.inf,
    -0.1,
    0,
    0.0,
    None,
    "x",
    [],
    {},
    object(),
    1j,
    [[0.1]],
    [0.1, 0.1],
    np.zeros((2, 2)),
    np.ones((3, 3)),
    [[0, -0.1], [0.1, 0]],
    [[0, math.nan], [0.1, 0]],
    [[0, 0.1], [0.1]],
    pf.Profile([(100, 0.1)]),
]


@pytest.mark.parametrize("loss", BAD_LOSSES, ids=lambda v: str(v)[:20])
def test_bad_losses(loss: Any, tmp_path: Path) -> None:
    for ledger in (ledger_of(), in_file(tmp_path / "book.json")):
        ledger.spend(0.01)
        spends_nothing(ledger, lambda ledger=ledger: ledger.spend(loss), ParameterError, "loss")
        with pytest.raises(ParameterError, match="loss"):
            ledger.leakage_with(loss)


def test_a_loss_on_the_diagonal_alone_is_no_loss() -> None:
    ledger = ledger_of()
    spends_nothing(ledger, lambda: ledger.spend(np.eye(2)), ParameterError, "loss")


BAD_WINDOWS = [
    5,
    "ab",
    (),
    [],
    {},
    (0,),
    (0, 5, 10),
    (0, 0),
    (5, 3),
    (-1, 5),
    (0, 101),
    (0, 0.5),
    (0, math.nan),
    (0, math.inf),
    (True, 5),
    (0, True),
    [None],
    [(0, 50), (50, 100)],
    ("0", "5"),
    (None, 5),
]


@pytest.mark.parametrize("window", BAD_WINDOWS, ids=str)
def test_bad_windows(window: Any) -> None:
    ledger = ledger_of()
    spends_nothing(ledger, lambda: ledger.spend(0.01, window=window), ParameterError, "window")


@pytest.mark.parametrize(
    "window",
    [5, "ab", [], [(0, 5)], [(0, 5), None, None], [None, None], [(0, 11), None], [(0, math.inf), None]],
    ids=str,
)
def test_bad_windows_of_several_chains(window: Any) -> None:
    ledger = ledger_of(length=[10, 10])
    spends_nothing(ledger, lambda: ledger.spend(0.01, window=window), ParameterError, "window")


@pytest.mark.parametrize("scale", [0.0, -1.0, -7.0, math.nan, math.inf, 1e-320], ids=str)
@pytest.mark.parametrize("bound", [pf.LeakagePropagation, pf.GroupDP])
def test_a_calibration_with_no_scale_is_refused(scale: float, bound: Any) -> None:
    ledger = ledger_of(bound=bound)
    calibration = ledger.bound.calibrate(COUNT, 0.3)
    ledger.spend(calibration)
    spends_nothing(ledger, lambda: ledger.spend(replace(calibration, unit_scale=scale)), PufferfishError)


def test_nothing_can_be_paid_back() -> None:
    """A negative scale is a negative loss: it would lower what is spent."""
    ledger = ledger_of()
    calibration = ledger.bound.calibrate(COUNT, 0.3)
    ledger.spend(calibration)
    refund = replace(calibration, unit_scale=-2 * calibration.unit_scale)
    spends_nothing(ledger, lambda: ledger.spend(refund), PufferfishError)
    assert ledger.spent == pytest.approx(0.3, rel=1e-5)


@pytest.mark.parametrize("bound", [pf.EntryDP, pf.GroupDP, pf.MQMExact, pf.LeakagePropagation])
def test_a_loss_too_large_for_any_budget_is_one_clear_error(bound: Any) -> None:
    ledger = ledger_of(COIN, bound=bound)
    for loss in (700.0, 1e5, 1e300, 1.7e308):
        spends_nothing(ledger, lambda loss=loss: ledger.spend(loss), BudgetExceeded, "budget")


def test_a_leakage_without_a_bound_does_not_fit() -> None:
    class Unbounded(pf.GroupDP):
        def _leakage(self, losses: Any) -> Any:
            return math.inf, super()._leakage(losses)[1]

    class NoNumber(pf.GroupDP):
        def _leakage(self, losses: Any) -> Any:
            return math.nan, super()._leakage(losses)[1]

    for bound in (Unbounded, NoNumber):
        ledger = ledger_of(bound=bound, budget=1e308)
        spends_nothing(ledger, lambda ledger=ledger: ledger.spend(0.01), BudgetExceeded)
        assert ledger.remaining == 1e308


@pytest.mark.parametrize("note", [5, ["a"], "\ud800"], ids=repr)
def test_a_note_that_is_no_text_spends_nothing_and_leaves_the_book_readable(tmp_path: Path, note: Any) -> None:
    ledger = in_file(tmp_path / "book.json")
    with pytest.raises((PufferfishError, TypeError)):
        ledger.spend(0.01, note=note)
    assert ledger.spent == 0
    assert Ledger.open(tmp_path / "book.json").entries == ()


def test_notes_are_kept(tmp_path: Path) -> None:
    ledger = in_file(tmp_path / "book.json")
    ledger.spend(0.01, note="café, \u202eodd\n")
    assert Ledger.open(tmp_path / "book.json").entries[0].what == "café, \u202eodd\n"


@pytest.mark.parametrize("bound", [None, "propagation", CHAIN, pf.LeakagePropagation], ids=str)
def test_a_bound_is_a_mechanism(bound: Any) -> None:
    with pytest.raises(ParameterError, match="bound is"):
        Ledger(bound, 1.0)


# What does not compose


def test_a_bound_that_does_not_compose_is_refused() -> None:
    with pytest.raises(ReleaseRefused, match=r"OneQuery does not compose: use LeakagePropagation"):
        ledger_of(bound=OneQuery)


def test_a_calibration_that_does_not_compose_names_the_way_out() -> None:
    ledger, data = ledger_of(length=10), read([[6, 4]])
    calibration = OneQuery(CHAIN, 10).calibrate(COUNT, 0.5)
    for act in (lambda: ledger.spend(calibration), lambda: pf.release(data, COUNT, calibration, ledger=ledger)):
        spends_nothing(ledger, act, ReleaseRefused, r"OneQuery calibrates .* ledger\.spend\(calibration\.record_loss\)")
    ledger.spend(calibration.record_loss)
    assert ledger.spent == pytest.approx(ledger.bound.leakage(calibration.record_loss), rel=1e-12)


def test_the_way_out_holds_losses_of_very_different_size(tmp_path: Path) -> None:
    query = pf.Sum({"lie": 0, "sit": 1e-5, "walk": 12345.678})
    calibration = pf.GroupDP(FINE, 10).calibrate(query, 0.5)
    ledger = in_file(tmp_path / "book.json", FINE, 10, 5.0)
    ledger.spend(calibration.record_loss)
    other = Ledger.open(tmp_path / "book.json")
    assert other.entries == ledger.entries
    assert other.spent == pytest.approx(ledger.bound.leakage(calibration.record_loss), rel=1e-12)


def test_numbers_that_stand_for_a_class_have_no_ledger() -> None:
    with pytest.raises(ReleaseRefused, match="states are known"):
        Ledger(pf.MQMApprox(pi_min=0.2, eigengap=0.5, length=100), 1.0)


# The base


def based(**options: Any) -> tuple[Ledger, pf.Calibration]:
    ledger = ledger_of(budget=5.0, base=read([[60, 40]]).base, **options)
    return ledger, ledger.bound.calibrate(COUNT, 0.1)


@pytest.mark.parametrize(
    "reading",
    [
        {"source": "other.csv"},
        {"state": "mood"},
        {"subject": "id"},
        {"time": "minute"},
        {"max_gap": "10min"},
        {"step": "1min"},
        {"missing": "refuse"},
        {"gaps": "independent"},
        {"bins": (0.0, 1.0, 2.0)},
    ],
    ids=str,
)
def test_another_base_is_refused_with_reason_and_remedy(reading: dict[str, Any]) -> None:
    ledger, calibration = based()
    data = read([[60, 40]], **reading)
    (name,) = reading
    match = rf"another base: its {name} (is|are) .*"
    spends_nothing(ledger, lambda: pf.release(data, COUNT, calibration, ledger=ledger), ReleaseRefused, match)
    spends_nothing(ledger, lambda: ledger.spend(calibration, data=data), ReleaseRefused, match)


@pytest.mark.parametrize(
    "reading", [{"source": "other.csv"}, {"gaps": "independent"}, {"bins": (0.0, 1.0, 2.0)}], ids=str
)
def test_raw_losses_of_another_base_are_refused_too(reading: dict[str, Any]) -> None:
    ledger, _ = based()
    data = read([[60, 40]], **reading)
    spends_nothing(ledger, lambda: ledger.spend(0.01, data=data), ReleaseRefused, "another base")


def test_raw_losses_of_data_with_other_states_are_refused() -> None:
    ledger, _ = based()
    data = read([[60, 20, 20]], ("rest", "walk", "run"))
    spends_nothing(ledger, lambda: ledger.spend(0.01, data=data), PufferfishError)


def test_a_filter_on_a_whole_base_is_a_part_of_it_and_costs_the_whole() -> None:
    ledger, calibration = based()
    data = read([[20, 10]], where="awake")
    part = pf.release(data, COUNT, calibration, ledger=ledger).ledger.spent
    ledger, calibration = based()
    assert part == pf.release(read([[60, 40]]), COUNT, calibration, ledger=ledger).ledger.spent


@pytest.mark.parametrize("where", [None, "awake == True", " awake", "awake and day == 1"], ids=str)
def test_a_part_of_a_filtered_base_is_not_known(where: str | None) -> None:
    ledger = ledger_of(budget=5.0, base=read([[60, 40]], where="awake").base)
    calibration = ledger.bound.calibrate(COUNT, 0.1)
    data = read([[60, 40]], where=where)
    spends_nothing(ledger, lambda: pf.release(data, COUNT, calibration, ledger=ledger), ReleaseRefused, "its where is")
    pf.release(read([[60, 40]], where="awake"), COUNT, calibration, ledger=ledger)


def test_longer_chains_and_more_of_them_are_other_records() -> None:
    ledger, _ = based()
    calibration = pf.LeakagePropagation(CHAIN, [200, 200]).calibrate(COUNT, 0.1)
    spends_nothing(ledger, lambda: ledger.spend(calibration), ReleaseRefused, "ledger of their own")
    loss = 0.01
    for data in (read([[61, 40]]), read([[10, 10], [10, 10]]), read([[60, 40]], steps=[120])):
        spends_nothing(ledger, lambda data=data: ledger.spend(loss, data=data), ReleaseRefused, "the data has")


def test_more_records_in_the_same_steps_are_other_records() -> None:
    ledger = ledger_of(length=pf.ChainLength(100, 50), budget=5.0, base=read([[30, 20]]).base)
    spends_nothing(ledger, lambda: ledger.spend(0.01, data=read([[60, 40]])), ReleaseRefused, "100 records")
    ledger.spend(0.01, data=read([[30, 20]], steps=[100]))


def test_data_longer_than_their_window_are_refused() -> None:
    ledger, calibration = based()
    data = read([[60, 40]])
    act = lambda: pf.release(data, COUNT, calibration, ledger=ledger, window=(0, 50))  # noqa: E731
    spends_nothing(ledger, act, ReleaseRefused, "a window")


def test_the_first_data_settle_the_base() -> None:
    ledger = ledger_of(budget=5.0)
    calibration = ledger.bound.calibrate(COUNT, 0.1)
    part = read([[6, 4]])
    spends_nothing(ledger, lambda: pf.release(part, COUNT, calibration, ledger=ledger), ReleaseRefused, "base=")
    whole = read([[60, 40]])
    pf.release(whole, COUNT, calibration, ledger=ledger)
    assert ledger.base == whole.base
    other = read([[60, 40]], source="other.csv")
    spends_nothing(ledger, lambda: pf.release(other, COUNT, calibration, ledger=ledger), ReleaseRefused, "other.csv")
    assert pf.release(part, COUNT, calibration, ledger=ledger).ledger.entry == 2


def test_noise_from_another_theta_is_charged_by_the_ledgers_own() -> None:
    ledger = ledger_of(budget=5.0)
    weak = pf.EntryDP(COIN, 100).calibrate(COUNT, 0.1)
    assert ledger.spend(weak).epsilon == 0.1
    assert ledger.spent == pytest.approx(ledger.bound.leakage(weak.record_loss), rel=1e-12)
    assert ledger.spent > 0.25


# Adaptive


def test_the_next_noise_may_be_chosen_after_the_last_answer() -> None:
    ledger, data = ledger_of(budget=1.0, base=read([[60, 40]]).base), read([[60, 40]])
    levels = [0.2, 0.5, 0.9, 1.0]
    for level in levels:
        query = COUNT if ledger.entries and ledger.entries[-1].spent > 0.4 else pf.Histogram()
        calibration = ledger.calibrate(query, up_to=level)
        found = pf.release(data, query, calibration, ledger=ledger)
        assert 0.99 * level <= found.ledger.spent <= level
        assert found.ledger.spent == ledger.spent
    spends_nothing(ledger, lambda: ledger.calibrate(COUNT, up_to=0.9), BudgetExceeded, "spent already")


@pytest.mark.parametrize("bound", [pf.GroupDP, pf.MQMApprox, pf.MQMExact, pf.LeakagePropagation])
@pytest.mark.parametrize("up_to", [1e-6, 0.3, 3.0])
@pytest.mark.parametrize("query", [COUNT, pf.Histogram(), pf.Mean([0, 1.5])], ids=lambda q: q.kind)
def test_calibrated_noise_spends_what_was_asked(bound: Any, up_to: float, query: Any) -> None:
    ledger = ledger_of(budget=3.0, bound=bound)
    for level in (up_to / 4, up_to / 2, up_to):
        calibration = ledger.calibrate(query, up_to=level)
        assert ledger.leakage_with(calibration) == ledger.spend(calibration).spent
        assert 0.99 * level <= ledger.spent <= level
        assert calibration.epsilon >= calibration.prove_leakage()


@pytest.mark.parametrize("up_to", [0.2, 0.5, 0.8, 1.0])
def test_noise_calibrated_for_the_whole_budget_fits_a_ledger_opened_anew(tmp_path: Path, up_to: float) -> None:
    for i, first in enumerate((0.01, 0.02, 0.03)):
        ledger = in_file(tmp_path / f"{i}.json", THETA1, budget=up_to)
        ledger.spend(first)
        calibration = ledger.calibrate(pf.Histogram())
        assert 0.99 * up_to <= Ledger.open(tmp_path / f"{i}.json").spend(calibration).spent <= up_to


def test_calibrating_for_nothing_left() -> None:
    ledger = ledger_of(COIN, bound=pf.EntryDP)
    spends_nothing(ledger, lambda: ledger.calibrate(COUNT, up_to=1.1), BudgetExceeded, "above the budget")
    ledger.spend(1.0)
    spends_nothing(ledger, lambda: ledger.calibrate(COUNT), BudgetExceeded, "spent already")
    for up_to in (0, -1, math.nan, math.inf, "x"):
        spends_nothing(ledger, lambda up_to=up_to: ledger.calibrate(COUNT, up_to=up_to), PufferfishError)


@pytest.mark.parametrize("up_to", [0, -1, math.nan, "x"], ids=str)
def test_a_bad_level_is_called_by_its_name(up_to: Any) -> None:
    ledger = ledger_of()
    spends_nothing(ledger, lambda: ledger.calibrate(COUNT, up_to=up_to), ParameterError, "up_to is")


@pytest.mark.parametrize("left", [0.1, 0.02, 0.01, 1e-3, 1e-5])
@pytest.mark.parametrize("bound", [pf.EntryDP, pf.GroupDP, pf.MQMExact, pf.LeakagePropagation])
def test_what_is_left_can_be_spent_however_little_it_is(bound: Any, left: float) -> None:
    ledger = ledger_of(COIN if bound is pf.EntryDP else CHAIN, bound=bound)
    ledger.spend(ledger.calibrate(COUNT, up_to=1 - left))
    before = ledger.spent
    assert ledger.spend(ledger.calibrate(COUNT)).spent <= 1.0
    assert ledger.spent - before >= 0.5 * left


def test_asking_what_would_be_spent_spends_nothing(tmp_path: Path) -> None:
    ledger = in_file(tmp_path / "book.json")
    before = (tmp_path / "book.json").read_bytes()
    would = ledger.leakage_with(0.05, window=(0, 10))
    ledger.calibrate(COUNT, up_to=0.5)
    assert (tmp_path / "book.json").read_bytes() == before
    assert ledger.entries == ()
    assert ledger.spend(0.05, window=(0, 10)).spent == would


# Releases


def test_the_entry_is_written_before_noise_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, data = tmp_path / "book.json", read([[60, 40]])
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


def test_noise_that_fails_or_is_interrupted_stays_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = read([[60, 40]])
    for i, error in enumerate((KeyboardInterrupt, MemoryError, OSError)):
        ledger = in_file(tmp_path / f"{i}.json", base=data.base)

        def fail(*_: object, error: type[BaseException] = error, **__: object) -> Callable[[], list[int]]:
            def draw() -> list[int]:
                raise error

            return draw

        monkeypatch.setattr(RELEASE, "discrete_laplace_noise", fail)
        with pytest.raises(error):
            pf.release(data, COUNT, ledger.bound.calibrate(COUNT, 0.3), ledger=ledger)
        assert len(Ledger.open(tmp_path / f"{i}.json").entries) == len(ledger.entries) == 1


def test_a_release_that_is_refused_spends_nothing(tmp_path: Path) -> None:
    data = read([[60, 40]])
    bound = pf.LeakagePropagation(CHAIN, 100)
    calibration = bound.calibrate(COUNT, 0.3)
    cases: list[tuple[pf.Sequences, Any, Any, dict[str, Any], type[Exception], str]] = [
        (read([[60, 30, 10]], ("rest", "active", "asleep")), COUNT, calibration, {}, DataError, "asleep"),
        (data, pf.Histogram(), calibration, {}, ReleaseRefused, "calibrated for"),
        (data, COUNT, replace(calibration, unit_scale=calibration.unit_scale / 2), {}, ReleaseRefused, "proves"),
        (data, COUNT, replace(calibration, unit_scale=-calibration.unit_scale), {}, PufferfishError, "."),
        (data, COUNT, bound.calibrate(COUNT, 1e-17), {}, ReleaseRefused, "64-bit"),
        (data, COUNT, calibration, {"postprocess": "magic"}, ParameterError, "postprocess"),
        (data, COUNT, calibration, {"window": (0, 500)}, ParameterError, "window"),
        (read([[600, 400]]), COUNT, calibration, {}, ReleaseRefused, "1000 steps"),
        (data, COUNT, bound.calibrate(COUNT, 1.5), {}, BudgetExceeded, "--up-to"),
    ]
    for ledger in (Ledger(bound, 1.0), in_file(tmp_path / "book.json", base=data.base)):
        for table, query, noise, options, error, match in cases:
            spends_nothing(
                ledger,
                lambda ledger=ledger, t=table, q=query, n=noise, o=options: pf.release(t, q, n, ledger=ledger, **o),
                error,
                match,
            )


def test_a_window_without_a_ledger_means_nothing_and_is_refused() -> None:
    data = read([[60, 40]])
    calibration = pf.LeakagePropagation(CHAIN, 100).calibrate(COUNT, 0.3)
    for part in ({"window": (0, 50)}, {"coarsening": {"rest": "rest"}}):
        with pytest.raises(ParameterError, match="ledger"):
            pf.release(data, COUNT, calibration, **part)


def test_a_release_says_what_is_spent_in_all() -> None:
    data, ledger = read([[60, 40]]), ledger_of(budget=2.0)
    calibration = ledger.bound.calibrate(COUNT, 0.5)
    pf.release(data, COUNT, calibration, ledger=ledger)
    found = pf.release(data, COUNT, calibration, ledger=ledger)
    assert found.ledger.entry == 2
    assert found.ledger.spent == ledger.spent
    assert found.ledger.budget == 2.0
    assert found.ledger.mechanism == "propagation"
    assert any("number 2" in text and f"{ledger.spent:.6g}" in text for text in found.not_promised)
    assert pf.release(data, COUNT, calibration).ledger is None


# On disk


def test_a_reopened_ledger_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    theta = pf.ChainClass((CHAIN, THETA1), "survey")
    for i, bound in enumerate(
        (
            pf.LeakagePropagation(theta, [100, 50]),
            pf.MQMExact(theta, [100, 50], max_quilt_length=40),
            pf.MQMApprox(CHAIN, [100, 50]),
            pf.GroupDP(theta, [pf.ChainLength(100, 80), pf.ChainLength(50, 50)]),
            pf.ParticipantDP([100, 50], theta=theta),
        )
    ):
        path = tmp_path / f"{i}.json"
        ledger = Ledger(bound, 20.0, base=read([[60, 40], [25, 25]]).base)
        ledger.spend(0.01)
        ledger.save(path)
        ledger.spend(bound.calibrate(COUNT, 0.3))
        ledger.spend([[0, 1 / 3], [1e-9, 0]], window=[(3, 40), None])
        other = Ledger.open(path)
        assert other.entries == ledger.entries
        assert (other.spent, other.budget, other.base) == (ledger.spent, ledger.budget, ledger.base)
        assert (other.bound.name, other.bound.settings) == (bound.name, bound.settings)
        assert (other.bound.length, other.bound.theta.origin) == (bound.length, bound.theta.origin)
        assert other.leakage_with(0.05) == pytest.approx(ledger.leakage_with(0.05), rel=1e-7)
        assert other.spend(0.05) == ledger.entries[-1]


def test_a_ledger_is_never_replaced_nor_copied(tmp_path: Path) -> None:
    ledger = in_file(tmp_path / "book.json")
    with pytest.raises(RecordError, match="never replaced"):
        ledger_of().save(tmp_path / "book.json")
    with pytest.raises(RecordError, match="twice"):
        ledger.save(tmp_path / "copy.json")
    assert not (tmp_path / "copy.json").exists()


def test_saving_into_no_folder_makes_none(tmp_path: Path) -> None:
    ledger = ledger_of()
    with pytest.raises(RecordError, match="folder"):
        ledger.save(tmp_path / "absent" / "book.json")
    assert list(tmp_path.iterdir()) == []
    ledger.save(tmp_path / "book.json")


def test_a_bound_that_cannot_be_made_again_is_not_saved(tmp_path: Path) -> None:
    """It would be reopened as the mechanism it inherits its name from, with other leakages."""

    class Stricter(pf.GroupDP):
        def _leakage(self, losses: Any) -> Any:
            total, witness = super()._leakage(losses)
            return 5 * total, witness

    with pytest.raises(PufferfishError):
        ledger_of(bound=Stricter).save(tmp_path / "book.json")
    assert not (tmp_path / "book.json").exists()


def test_two_objects_on_one_file_are_one_ledger(tmp_path: Path) -> None:
    first = in_file(tmp_path / "book.json", COIN, bound=pf.EntryDP)
    second = Ledger.open(tmp_path / "book.json")
    for i in range(5):
        assert first.spend(0.1).number == 2 * i + 1
        assert second.spend(0.1).number == 2 * i + 2
    assert first.spent == second.spent == 1.0
    spends_nothing(first, lambda: first.spend(0.1), BudgetExceeded)
    spends_nothing(second, lambda: second.spend(0.1), BudgetExceeded)


def test_a_link_is_the_same_ledger(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path, link = tmp_path / "folder" / "book.json", tmp_path / "link.json"
    first = in_file(path, COIN, bound=pf.EntryDP)
    link.symlink_to(path)
    second = Ledger.open(link)
    second.spend(0.6)
    assert link.is_symlink()
    spends_nothing(first, lambda: first.spend(0.6), BudgetExceeded)


def test_a_second_hard_name_does_not_spend_the_budget_twice(tmp_path: Path) -> None:
    """Replacing the file parts the two names: each would go on as a ledger of its own."""
    first = in_file(tmp_path / "book.json", COIN, bound=pf.EntryDP)
    os.link(tmp_path / "book.json", tmp_path / "hard.json")
    spent = 0
    for spend in (first.spend, lambda loss: Ledger.open(tmp_path / "hard.json").spend(loss)):
        try:
            spend(0.6)
            spent += 1
        except PufferfishError:
            pass
    assert spent <= 1


def test_a_ledger_stays_in_its_file_when_the_folder_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    first = in_file(Path("book.json"), COIN, bound=pf.EntryDP)
    monkeypatch.chdir(tmp_path / "b")
    first.spend(0.6)
    assert Ledger.open(tmp_path / "a" / "book.json").spent == TENTHS[5]
    second = in_file(Path("book.json"), COIN, bound=pf.EntryDP)
    first.spend(0.1)
    assert second.spent == 0.0


def test_a_ledger_whose_file_lost_entries_is_refused_while_it_is_open(tmp_path: Path) -> None:
    """A backup restored under a running program; one that is opened later cannot know."""
    path = tmp_path / "book.json"
    ledger = in_file(path)
    ledger.spend(0.01)
    backup = path.read_bytes()
    ledger.spend(0.01)
    path.write_bytes(backup)
    with pytest.raises(RecordError, match="changed by hand or replaced"):
        ledger.spend(0.01)
    with pytest.raises(RecordError, match="changed by hand or replaced"):
        _ = ledger.spent
    assert path.read_bytes() == backup


def test_another_base_put_into_an_open_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path, base=read([[60, 40]]).base)
    book = json.loads(path.read_text())
    book["base"]["source"] = "other.csv"
    path.write_text(json.dumps(book))
    with pytest.raises(RecordError, match="changed by hand or replaced"):
        ledger.spend(0.01)


def test_a_file_that_goes_away_is_an_error_and_not_a_new_budget(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path)
    ledger.spend(0.01)
    path.unlink()
    with pytest.raises(RecordError, match="cannot read"):
        ledger.spend(0.01)
    assert not path.exists()


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "negative distance": lambda b: b["entries"][-1].update(distance=[[0, -1], [-1, 0]]),
    "no distance": lambda b: b["entries"][-1].update(distance=[]),
    "distance of another shape": lambda b: b["entries"][-1].update(distance=[[0, 1]]),
    "distance not whole": lambda b: b["entries"][-1].update(distance=[[0, 0.5], [0.5, 0]]),
    "distance not free of itself": lambda b: b["entries"][-1].update(distance=[[5, 1], [1, 5]]),
    "distance beyond floats": lambda b: b["entries"][-1].update(distance=[[0, 10**400], [1, 0]]),
    "scale 0": lambda b: b["entries"][-1].update(scale="0"),
    "scale 1/0": lambda b: b["entries"][-1].update(scale="1/0"),
    "scale nan": lambda b: b["entries"][-1].update(scale="nan"),
    "scale inf": lambda b: b["entries"][-1].update(scale="inf"),
    "scale negative": lambda b: b["entries"][-1].update(scale="-3"),
    "scale empty": lambda b: b["entries"][-1].update(scale=""),
    "scale of many digits": lambda b: b["entries"][-1].update(scale="1" + "0" * 5000),
    "scale a number": lambda b: b["entries"][-1].update(scale=3.0),
    "scale too small": lambda b: b["entries"][-1].update(scale="1/1" + "0" * 400),
    "scale huge": lambda b: b["entries"][-1].update(scale="1" + "0" * 300),
    "window out of range": lambda b: b["entries"][-1].update(windows=[[0, 101]]),
    "window before the start": lambda b: b["entries"][-1].update(windows=[[-5, 50]]),
    "window of nothing": lambda b: b["entries"][-1].update(windows=[None]),
    "too many windows": lambda b: b["entries"][-1].update(windows=[[0, 5], [5, 9]]),
    "spent negative": lambda b: b["entries"][-1].update(spent=-1.0),
    "spent lowered in the last entry": lambda b: b["entries"][-1].update(spent=0.0),
    "spent lowered in the first entry": lambda b: b["entries"][0].update(spent=0.0),
    "spent above the budget": lambda b: b["entries"][-1].update(spent=99.0),
    "first entry removed": lambda b: b["entries"].pop(0),
    "numbers repeated": lambda b: b["entries"][-1].update(number=1),
    "numbers skipped": lambda b: b["entries"][-1].update(number=9),
    "entries turned": lambda b: b["entries"].reverse(),
    "more spent than the budget": lambda b: b.update(budget=0.01),
    "budget 0": lambda b: b.update(budget=0.0),
    "budget negative": lambda b: b.update(budget=-1.0),
    "budget text": lambda b: b.update(budget="1"),
    "no such mechanism": lambda b: b.update(mechanism="magic"),
    "mechanism that does not apply": lambda b: b.update(mechanism="entry-dp"),
    "strange settings": lambda b: b.update(settings={"a": 1}),
    "length 0": lambda b: b.update(length=[[0, 0]]),
    "no length": lambda b: b.update(length=[]),
    "no theta": lambda b: b["theta"].update(chains=[]),
    "no transition matrix": lambda b: b["theta"]["chains"][0].update(transition_matrix=[[0.9, 0.9], [0.4, 0.6]]),
    "other theta": lambda b: b["theta"]["chains"][0].update(transition_matrix=[[0.5, 0.5], [0.5, 0.5]]),
    "unknown field": lambda b: b.update(extra=1),
    "lost field": lambda b: b.pop("budget"),
    "other version": lambda b: b.update(version=99),
    "other format": lambda b: b.update(format="pufferfish-release"),
}


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_a_file_edited_by_hand_is_refused_when_it_is_opened(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path)
    ledger.spend(0.02)
    ledger.spend(0.03, window=(0, 50))
    book = json.loads(path.read_text())
    EDITS[edit](book)
    path.write_text(json.dumps(book))
    with pytest.raises(RecordError) as caught:
        Ledger.open(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", ["0", "1/0", "nan", "", "1/1" + "0" * 400], ids=lambda s: s[:5])
def test_an_entry_edited_into_an_open_ledger_is_one_clear_error(tmp_path: Path, scale: str) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path)
    other = Ledger.open(path)
    other.spend(0.02)
    book = json.loads(path.read_text())
    book["entries"][-1]["scale"] = scale
    path.write_text(json.dumps(book))
    for act in (lambda: ledger.spent, lambda: ledger.spend(0.01)):
        with pytest.raises(PufferfishError):
            act()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "book.json"
    path.write_bytes(content)
    with pytest.raises(RecordError):
        Ledger.open(path)
    for name in ("absent.json", "."):
        with pytest.raises(RecordError, match="cannot read"):
            Ledger.open(tmp_path / name)


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "^C"])
def test_a_write_that_fails_spends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    path, data = tmp_path / "book.json", read([[60, 40]])
    ledger = in_file(path, base=data.base)
    before = path.read_bytes()
    drawn: list[int] = []
    monkeypatch.setattr(RELEASE, "discrete_laplace_noise", lambda *_, **__: lambda: drawn.append(1) or [1])

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises((RecordError, KeyboardInterrupt)):
            pf.release(data, COUNT, ledger.bound.calibrate(COUNT, 0.3), ledger=ledger)
    assert path.read_bytes() == before
    assert drawn == []
    assert {p.name for p in tmp_path.iterdir()} <= {"book.json", "book.json.lock"}
    assert ledger.spend(0.01).number == 1


def test_a_failure_after_the_book_is_in_place_is_spent_and_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = tmp_path / "book.json", read([[60, 40]])
    ledger = in_file(path, base=data.base)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pufferfish.files._flush_folder", fail)
        with pytest.raises(KeyboardInterrupt):
            pf.release(data, COUNT, ledger.bound.calibrate(COUNT, 0.3), ledger=ledger)
    assert len(ledger.entries) == 1
    assert ledger.spend(0.01).number == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_or_folder_spends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path)
    for target, mode in ((path, 0o400), (tmp_path, 0o500)):
        old = target.stat().st_mode
        target.chmod(mode)
        try:
            spends_nothing(ledger, lambda: ledger.spend(0.01), RecordError)
        finally:
            target.chmod(old)


# Several hands


def spend_in_threads(ledgers: list[Ledger], each: int) -> int:
    done: list[int] = []
    start = threading.Barrier(len(ledgers))

    def go(ledger: Ledger) -> None:
        start.wait()
        for _ in range(each):
            try:
                done.append(ledger.spend(0.1).number)
            except BudgetExceeded:
                pass

    threads = [threading.Thread(target=go, args=(ledger,)) for ledger in ledgers]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert sorted(done) == list(range(1, len(done) + 1))
    return len(done)


def test_threads_on_one_ledger_in_memory_spend_one_budget() -> None:
    for _ in range(10):
        ledger = ledger_of(COIN, bound=pf.EntryDP)
        assert spend_in_threads([ledger] * 8, 3) == len(ledger.entries) == 10
        assert [entry.spent for entry in ledger.entries] == TENTHS


def test_threads_on_one_file_spend_one_budget(tmp_path: Path) -> None:
    ledger = in_file(tmp_path / "book.json", COIN, bound=pf.EntryDP)
    others = [Ledger.open(tmp_path / "book.json") for _ in range(3)]
    assert spend_in_threads([ledger, ledger, *others], 3) == len(ledger.entries) == 10
    assert [entry.spent for entry in ledger.entries] == TENTHS


def test_reading_while_another_thread_spends_is_no_error(tmp_path: Path) -> None:
    ledger, wrong, stop = in_file(tmp_path / "book.json", COIN, bound=pf.EntryDP), [], threading.Event()

    def look() -> None:
        while not stop.is_set():
            try:
                assert ledger.spent <= 1.0
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        assert spend_in_threads([ledger] * 3, 4) == 10
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert wrong == []


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_ledger_in_memory_is_no_second_budget(copied: Callable[[Ledger], Ledger]) -> None:
    ledger = ledger_of(COIN, bound=pf.EntryDP)
    try:
        other = copied(ledger)
    except (PufferfishError, TypeError):
        return  # refused: that is a clear answer too
    other.spend(0.6)
    with pytest.raises(BudgetExceeded):
        ledger.spend(0.6)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_ledger_in_a_file_is_the_same_ledger(tmp_path: Path, copied: Callable[[Ledger], Ledger]) -> None:
    ledger = in_file(tmp_path / "book.json", COIN, bound=pf.EntryDP)
    copied(ledger).spend(0.6)
    spends_nothing(ledger, lambda: ledger.spend(0.6), BudgetExceeded)
