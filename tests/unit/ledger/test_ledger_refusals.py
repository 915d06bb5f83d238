"""Bad input, and releases that are refused: one clear error, and nothing is spent."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from ledgers import CHAIN, COIN, COUNT, RELEASE, in_file, ledger_of, read, spends_nothing
from pufferfish._base.words import at_most
from pufferfish.errors import BudgetExceeded, DataError, ParameterError, PufferfishError, RecordError, ReleaseRefused
from pufferfish.ledger import Ledger

LARGE = pf.Sum({"active": 1e13, "rest": 1})
"""So much noise at a small ε that it does not fit 64-bit integers."""

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


def test_what_fits_is_recommended_as_it_can_be_typed() -> None:
    ledger = ledger_of(budget=1.23456789)
    much = pf.LeakagePropagation(CHAIN, 100).calibrate(COUNT, 2.0)
    spends_nothing(ledger, lambda: ledger.spend(much), BudgetExceeded, r"calibrate\(query, up_to=1.23456789\)$")
    spends_nothing(ledger, lambda: ledger.spend(50.0), BudgetExceeded, "1.23457 are left: release with more noise")
    ledger.spend(ledger.calibrate(COUNT))
    spends_nothing(ledger, lambda: ledger.spend(much), BudgetExceeded, "almost no budget is left")


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
    [
        5,
        "ab",
        [],
        (0, 11),
        [(0, 5), None],
        [(0, 5), (0, 5)],
        [None, None],
        (0, math.inf),
        {},
        {"ann": (0, 5)},
        {0: (0, 5)},
    ],
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
        def _prove(self, losses: Any, enough: float | None = None) -> Any:
            return math.inf, super()._prove(losses, enough)[1]

    class NoNumber(pf.GroupDP):
        def _prove(self, losses: Any, enough: float | None = None) -> Any:
            return math.nan, super()._prove(losses, enough)[1]

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
        (data, LARGE, bound.calibrate(LARGE, 1e-5), {}, ReleaseRefused, "64-bit"),
        (data, COUNT, calibration, {"postprocess": "magic"}, ParameterError, "postprocess"),
        (data, COUNT, calibration, {"window": (0, 500)}, ParameterError, "window"),
        (read([[600, 400]]), COUNT, calibration, {}, ReleaseRefused, "1,000 steps"),
        (data, COUNT, bound.calibrate(COUNT, 1.5), {}, BudgetExceeded, "ledger.calibrate"),
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
    assert any("number 2" in text and f"at most {at_most(ledger.spent)};" in text for text in found.not_promised)
    assert pf.release(data, COUNT, calibration).ledger is None


@pytest.mark.parametrize("kept", [False, True])
def test_a_release_that_begins_while_another_is_written_is_refused(tmp_path: Path, kept: bool) -> None:
    """On the same thread, as a signal may do: one of the two would be lost."""
    bound = pf.LeakagePropagation(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 50)
    ledger = pf.Ledger(bound, 1.0)
    if kept:
        ledger.save(tmp_path / "book.json")
    noise, refusals = bound.calibrate(pf.Count(1), 0.9), []

    def within() -> None:
        with pytest.raises(RecordError) as caught:
            ledger.spend(noise, note="inner")
        refusals.append(caught)
        assert ledger.check(noise).number == 1  # to look is allowed

    ledger.spend(noise, note="outer", begin=within)
    assert len(refusals) == 1
    assert [entry.what for entry in ledger.entries] == ["outer"]
    with pytest.raises(BudgetExceeded):
        ledger.spend(noise, begin=within)
    assert len(refusals) == 1
    ledger.spend(1e-3, note="later")  # the ledger is free again
