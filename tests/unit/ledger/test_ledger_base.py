"""What a ledger is tied to: its base, coarser states of it, and bounds that compose."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from ledgers import CHAIN, COARSE, COIN, COUNT, FINE, GROUPS, OneQuery, in_file, ledger_of, read, spends_nothing
from pufferfish.errors import PufferfishError, ReleaseRefused
from pufferfish.ledger import Ledger

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
    """They are matched by their names: a and c are 5 apart, whatever stands between them."""
    matrix, order = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]]), [2, 0, 1]
    chain = pf.MarkovChain(matrix, states=["a", "b", "c"])
    turned = pf.MarkovChain(matrix[np.ix_(order, order)], states=["c", "a", "b"])
    query, charged = pf.Sum({"a": 0, "b": 1, "c": 5}), []
    for theta, given in ((chain, {}), (turned, {}), (turned, {"coarsening": {"a": "a", "b": "b", "c": "c"}})):
        ledger = ledger_of(chain, 100, 5.0)
        ledger.spend(pf.LeakagePropagation(theta, 100).calibrate(query, 0.5), **given)
        charged.append(ledger.entries[0].distance)
    assert charged == [[[0, 1, 5], [1, 0, 4], [5, 4, 0]]] * 3


def test_a_loss_between_states_in_another_order_is_refused() -> None:
    """Its entries are told by their places: those of data, or of a calibration, whose states stand otherwise."""
    data, turned = read([[60, 40]]), pf.MarkovChain([[0.6, 0.4], [0.1, 0.9]], states=["active", "rest"])
    ledger = ledger_of(turned, 100, 5.0, base=data.base)
    loss = np.array([[0.0, 0.1], [0.2, 0.0]])
    spends_nothing(ledger, lambda: ledger.spend(loss, data=data), ReleaseRefused, "are in another order")
    once = pf.ExactLaplace(CHAIN, 10).calibrate(COUNT, 0.5)
    spends_nothing(ledger, lambda: ledger.spend(once), ReleaseRefused, r"on the ledger's states, in their order")
    ledger.spend(0.1, data=data)
    ledger.spend(0.1 * (1 - np.eye(2)), data=data)  # the same between all states
    ledger.spend(pf.LeakagePropagation(CHAIN, 100).calibrate(COUNT, 0.1), data=data)
    assert len(ledger.entries) == 3


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


# What does not compose


def test_a_bound_that_does_not_compose_is_refused() -> None:
    with pytest.raises(ReleaseRefused, match=r"OneQuery does not cover several releases: use LeakagePropagation"):
        ledger_of(bound=OneQuery)


def test_a_calibration_that_does_not_compose_names_the_way_out() -> None:
    ledger, data = ledger_of(length=10), read([[6, 4]])
    calibration = pf.ExactLaplace(CHAIN, 10).calibrate(COUNT, 0.5)
    for act in (lambda: ledger.spend(calibration), lambda: pf.release(data, COUNT, calibration, ledger=ledger)):
        spends_nothing(ledger, act, ReleaseRefused, r"Laplace calibrates .* ledger\.spend\(calibration\.record_loss\)")
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
    timed = {"time": "minute"} if "max_gap" in reading else {}  # gaps are between times
    ledger = ledger_of(budget=5.0, base=read([[60, 40]], **timed).base)
    calibration = ledger.bound.calibrate(COUNT, 0.1)
    data = read([[60, 40]], **timed, **reading)
    (name,) = reading
    match = rf"({name} of the ledger's table is .*|the ledger was made for a column without {name})"
    spends_nothing(ledger, lambda: pf.release(data, COUNT, calibration, ledger=ledger), ReleaseRefused, match)
    spends_nothing(ledger, lambda: ledger.spend(calibration, data=data), ReleaseRefused, match)


@pytest.mark.parametrize(
    "reading", [{"source": "other.csv"}, {"gaps": "independent"}, {"bins": (0.0, 1.0, 2.0)}], ids=str
)
def test_raw_losses_of_another_base_are_refused_too(reading: dict[str, Any]) -> None:
    ledger, _ = based()
    data = read([[60, 40]], **reading)
    spends_nothing(ledger, lambda: ledger.spend(0.01, data=data), ReleaseRefused, "the ledger's table is|without bins")


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
    spends_nothing(
        ledger,
        lambda: pf.release(data, COUNT, calibration, ledger=ledger),
        ReleaseRefused,
        "where of the ledger",
    )
    pf.release(read([[60, 40]], where="awake"), COUNT, calibration, ledger=ledger)


def test_longer_chains_and_more_of_them_are_other_records() -> None:
    ledger, _ = based()
    calibration = pf.LeakagePropagation(CHAIN, [200, 200]).calibrate(COUNT, 0.1)
    spends_nothing(ledger, lambda: ledger.spend(calibration), ReleaseRefused, "make another ledger")
    loss = 0.01
    for data in (read([[61, 40]]), read([[10, 10], [10, 10]], subject=None), read([[60, 40]], steps=[120])):
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


def test_a_raw_loss_is_a_number_not_what_can_be_read_as_one() -> None:
    ledger = Ledger(pf.GroupDP(CHAIN, 5), 3.0)
    for loss in (True, "0.1", np.array([["0", "1"], ["1", "0"]]), np.ma.masked_array([[0.0, 1.0], [1.0, 0.0]], True)):
        with pytest.raises(
            pf.ParameterError, match=r"a loss .* expected a calibration, a number, or one number for every pair"
        ):
            ledger.spend(loss)
    assert ledger.entries == ()
