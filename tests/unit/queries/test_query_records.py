"""Queries in which records count differently, on every mechanism that takes them, and in a ledger."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.errors import NotApplicableError, QueryError, ReleaseRefused

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
START = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [0.0, 1.0])


@pytest.mark.parametrize(
    ("query", "match"),
    [
        (lambda: pf.Window(pf.Count(1), 5, 5), "0 <= start < stop"),
        (lambda: pf.Window(pf.Count(1), -1, 5), "0 <= start < stop"),
        (lambda: pf.Window(pf.Count(1), 5, 11), "0 <= start < stop"),
        (lambda: pf.Window(pf.Window(pf.Count(1), 0, 5), 0, 2), "expected a query such as"),
        (lambda: pf.Window("count", 0, 2), "expected a query such as"),  # type: ignore[arg-type]
        (lambda: pf.Window(pf.Count(1), 0, 1.5), "stop is 1.5"),  # type: ignore[arg-type]
        (lambda: pf.Function("count"), "takes a dict"),  # type: ignore[arg-type]
        (lambda: pf.Weighted(pf.Count(1), [1, 2]), "2 factors for 10 records"),
        (lambda: pf.Weighted(pf.Count(1), [0] * 10), "all 0"),
        (lambda: pf.Weighted(pf.Count(1), [0.5] * 10), "whole numbers"),  # type: ignore[list-item]
        (lambda: pf.Weighted(pf.Count(1), [2**40] * 10), "beyond 2"),
        (lambda: pf.Function(len, unit=0), "unit is 0"),
        (lambda: pf.Function(len, unit="x"), "unit is 'x'"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused(query: Any, match: str) -> None:
    with pytest.raises(QueryError, match=match):
        pf.Wasserstein(CHAIN, 10).calibrate(query(), 1.0)


def test_records_of_several_chains_have_no_factors() -> None:
    for length in ([5, 5], pf.ChainLength(10, 8)):
        for make in (pf.GroupDP, pf.LeakagePropagation, pf.ExactLaplace):
            with pytest.raises(QueryError, match="one chain without gaps"):
                make(CHAIN, length).calibrate(pf.Window(pf.Count(1), 0, 2), 1.0)


def test_a_function_that_leaves_its_grid_is_refused() -> None:
    joint = pf.JointDistribution([[0], [1]], [0.5, 0.5])
    halves = pf.Function(lambda row: int(row[0]) / 2, unit=0.5)
    assert pf.Wasserstein(joint).distance(halves) == 0.5
    for bad, match in (
        (pf.Function(lambda row: int(row[0]) / 2), "not a multiple of the unit 1"),
        (pf.Function(lambda row: (1, 2)), "2 numbers for 1 labels"),
        (pf.Function(lambda row: "x"), "not a multiple"),
        (pf.Function(lambda row: float("nan")), "not a multiple"),
    ):
        with pytest.raises(QueryError, match=match):
            pf.Wasserstein(joint).distance(bad)
    with pytest.raises(NotApplicableError, match="unknown for a function"):
        pf.GroupDP(joint).calibrate(halves, 1.0)


@pytest.mark.parametrize("theta", [CHAIN, START], ids=["stationary", "given start"])
def test_a_window_costs_bounds_what_its_profile_costs(theta: pf.MarkovChain) -> None:
    window = pf.Window(pf.Count(1), 20, 30)
    least = pf.ExactLaplace(theta, 60).calibrate(window, 1.0).scale
    for make in (pf.GroupDP, pf.MQMExact, pf.LeakagePropagation):
        bound = make(theta, 60)
        calibration = bound.calibrate(window, 1.0)
        profile = np.zeros(60)
        profile[20:30] = np.nextafter(1 / calibration.unit_scale, 1)
        assert bound.leakage(profile) == calibration.prove_leakage() <= 1.0
        assert calibration.scale <= bound.calibrate(pf.Count(1), 1.0).scale
        assert least <= calibration.scale * (1 + 1e-8)


def test_factors_scale_losses() -> None:
    bound = pf.LeakagePropagation(CHAIN, 12)
    factors = [1, -2, 0, 3] * 3
    calibration = bound.calibrate(pf.Weighted(pf.Count(1), factors), 1.0)
    profile = np.abs(factors) / calibration.unit_scale
    assert bound.leakage(profile) == pytest.approx(1.0, rel=1e-5)
    assert float(np.max(calibration.record_loss)) == pytest.approx(3 / calibration.unit_scale)


def test_a_ledger_charges_a_window_for_its_records() -> None:
    bound = pf.LeakagePropagation(CHAIN, 60)
    window = pf.Window(pf.Count(1), 20, 30)
    calibration = bound.calibrate(window, 0.5)
    alone, whole = pf.Ledger(bound, 5.0), pf.Ledger(bound, 5.0)
    alone.spend(calibration)
    assert alone.spent == pytest.approx(0.5, rel=1e-4)
    whole.spend(calibration.record_loss)
    assert whole.spent > alone.spent
    again = pf.Ledger(bound, 5.0)
    again.spend(calibration, window=(20, 30))
    assert again.spent == alone.spent
    with pytest.raises(ReleaseRefused, match="reads records 20 to 29"):
        again.spend(calibration, window=(0, 10))
    assert again.spent == alone.spent


def test_places_in_a_part_of_a_chain_are_none_in_the_chain() -> None:
    """Rows 50 to 69, that a filter keeps: the query knows them as its records 0 to 19, and they are none of these."""
    rows = pl.DataFrame({"state": ["0", "1"] * 50, "row": range(100)})
    base = pf.read_sequences(rows, "state", states=["0", "1"])
    part = pf.read_sequences(rows, "state", where="row >= 50 and row < 70", states=["0", "1"])
    query = pf.Weighted(pf.Count("1"), [1] * 20)
    noise = pf.LeakagePropagation(CHAIN, part.length).calibrate(query, 0.5)
    ledger = pf.Ledger(pf.LeakagePropagation(CHAIN, base.length), 5.0, base=base)
    pf.release(part, query, noise, ledger=ledger)
    pf.release(part, query, noise, ledger=ledger, window=(50, 70))
    assert [entry.windows for entry in ledger.entries] == [[[(0, 100)]], [[(50, 70)]]]
    assert ledger.spent > 0.9


def test_what_is_no_fact_no_law_no_row_is_refused() -> None:
    with pytest.raises(pf.PufferfishError, match="fact in words"):
        pf.Fact(bool, "a fact")  # type: ignore[arg-type]
    with pytest.raises(pf.PufferfishError, match="law is"):
        pf.Cliques.of_sizes([2], [1, 2, 3])  # type: ignore[arg-type]
    with pytest.raises(pf.PufferfishError, match="none negative"):
        pf.Cliques.of_sizes([2], lambda n: [float("nan")] * 3)


def test_a_frame_is_read_by_rows() -> None:
    frame = pl.DataFrame({"x": ["a", "a"], "y": ["b", "a"]})
    for given in (frame, frame.to_numpy()):
        assert pf.JointDistribution(given, [0.9, 0.1]).rows == (("a", "b"), ("a", "a"))
