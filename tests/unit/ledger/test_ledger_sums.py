"""What releases leak together, exactly: sums, windows, and noise chosen as one goes."""

import math
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from ledgers import CHAIN, COIN, COUNT, FINE, JUMP, TENTHS, THETA1, in_file, ledger_of, read, spends_nothing
from pufferfish.errors import BudgetExceeded, ParameterError, PufferfishError, ReleaseRefused
from pufferfish.ledger import Ledger
from pufferfish.ledger.charges import sum_up

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


def test_sums_are_rounded_up_once() -> None:
    rng = random.Random(4)
    for _ in range(50):
        scales = [Fraction(rng.randrange(1, 1000), rng.randrange(1, 1000)) for _ in range(rng.randrange(1, 6))]
        distances = [((0, rng.randrange(9)), (rng.randrange(1, 9), 0)) for _ in scales]
        found = sum_up(zip(distances, scales, strict=True), 2)
        for x, y in ((0, 1), (1, 0)):
            exact = sum((distance[x][y] / scale for distance, scale in zip(distances, scales, strict=True)), Fraction())
            assert Fraction(math.nextafter(found[x, y], -math.inf)) < exact <= Fraction(found[x, y])
        assert found[0, 0] == found[1, 1] == 0


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
    assert ledger.entries[1].windows == [[(40, 90)]]


def test_a_far_window_costs_almost_nothing_more() -> None:
    ledger = ledger_of(length=2000, budget=5.0)
    ledger.spend(0.2, window=(0, 100))
    near = ledger.spent
    ledger.spend(0.2, window=(1900, 2000))
    assert ledger.spent == pytest.approx(near, rel=1e-6)


def test_a_window_of_everything_costs_what_everything_costs() -> None:
    part, whole = ledger_of(), ledger_of()
    assert part.spend(0.1, window=(0, 100)).spent == pytest.approx(whole.spend(0.1).spent, rel=1e-12)


def test_windows_of_several_chains_are_those_of_their_subjects() -> None:
    base = read([[15, 15], [10, 10]], names=("ann", "bob"))
    ledger = ledger_of(length=base.length, budget=10.0, base=base)
    ledger.spend(0.1, window={"ann": (0, 10)})
    ledger.spend(0.2, window={"bob": (0, 20), "ann": (5, 30)})
    profiles = [pf.Profile([(5, 0.1), (5, 0.1 + 0.2), (20, 0.2)]), pf.Profile([(20, 0.2)])]
    assert ledger.spent == pytest.approx(ledger.bound.leakage(profiles), rel=1e-12)
    assert ledger.entries[0].windows == [[(0, 10)], None]


def test_different_chains_do_not_add() -> None:
    base = read([[25, 25], [25, 25]], names=("ann", "bob"))
    ledger = ledger_of(length=base.length, budget=10.0, base=base)
    first = ledger.spend(0.1, window={"ann": (0, 50)}).spent
    assert ledger.spend(0.1, window={"bob": (0, 50)}).spent == pytest.approx(first, rel=1e-12)
    assert ledger.spend(0.1, window={"bob": (0, 50)}).spent > 1.5 * first


def test_a_window_without_names_is_one_of_every_chain() -> None:
    """As far as a chain goes; where no name says whose they are, every release counts for everybody."""
    ledger = ledger_of(length=[30, 20], budget=10.0)
    ledger.spend(0.1, window=[(0, 10), (15, 30)])
    assert ledger.entries[0].windows == [[(0, 10), (15, 30)], [(0, 10), (15, 20)]]
    ledger.spend(0.1, window=(25, 30))
    assert ledger.entries[1].windows == [[(25, 30)], None]


def test_a_release_of_a_window() -> None:
    ledger = ledger_of(base=read([[60, 40]]).base)
    data = read([[15, 10]], where="day == 1")
    calibration = ledger.calibrate(pf.Frequency("active"), up_to=0.5, length=data.length, window=(0, 25))
    found = pf.release(data, pf.Frequency("active"), calibration, ledger=ledger, window=(0, 25))
    assert 0.495 <= found.ledger.spent <= 0.5
    assert ledger.entries[0].windows == [[(0, 25)]]


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
@pytest.mark.parametrize("up_to", [1e-4, 0.3, 3.0])
@pytest.mark.parametrize("query", [COUNT, pf.Histogram(), pf.Mean([0, 1.5])], ids=lambda q: q.kind)
def test_calibrated_noise_spends_what_was_asked(bound: Any, up_to: float, query: Any) -> None:
    ledger = ledger_of(budget=3.0, bound=bound)
    for level in (up_to / 4, up_to / 2, up_to):
        calibration = ledger.calibrate(query, up_to=level)
        assert ledger.leakage_with(calibration) == ledger.spend(calibration).spent
        assert 0.99 * level <= ledger.spent <= level
        assert calibration.epsilon >= calibration.prove_leakage()


@pytest.mark.parametrize("up_to", [0.2, 0.5, 0.8, 1.0])
def test_noise_calibrated_for_the_whole_budget_fits_a_ledger_opened_anew(
    tmp_path: Path, up_to: float, slow: bool
) -> None:
    for i, first in enumerate((0.01, 0.02, 0.03) if slow else (0.02,)):
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


def test_what_may_be_spent_in_all_is_asked_again_when_it_is_charged(tmp_path: Path) -> None:
    """Two programs that ask for the noise of what is left at the same time: the second is refused, and asks anew."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["a", "b"])
    path = tmp_path / "book.json"
    pf.Ledger(pf.LeakagePropagation(chain, 50), 3.0).save(path)
    one, other = pf.Ledger.open(path), pf.Ledger.open(path)
    noise, same = (ledger.calibrate(pf.Histogram(), up_to=1.0) for ledger in (one, other))
    assert one.spend(noise).spent <= 1.0
    with pytest.raises(pf.BudgetExceeded, match=r"raise what is spent to 2[.]086, above its limit of 1"):
        other.spend(same)
    assert len(pf.Ledger.open(path).entries) == 1
    assert other.spend(other.calibrate(pf.Histogram(), up_to=2.0)).spent <= 2.0
