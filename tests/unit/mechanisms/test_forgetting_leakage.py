"""Forgetting classes under the mechanisms: shapes of losses, windows, gaps, several chains, ledgers, noise."""

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.propagation import forgetting

STATES = ["a", "b", "c"]
THETA = pf.ForgettingClass([4, 15], [0.5, 0.9], STATES)


def of(length: object) -> pf.LeakagePropagation:
    return pf.LeakagePropagation(THETA, length)


def test_every_shape_of_a_loss_is_taken() -> None:
    d = 0.05
    number = of(60).leakage(d)
    matrix = d * (1 - np.eye(3))
    half = matrix.copy()
    half[0, 1] = half[1, 0] = d / 2
    for same in (np.full(60, d), matrix, half, np.broadcast_to(half, (60, 3, 3)), pf.Profile([(20, d), (40, half)])):
        assert of(60).leakage(same) == pytest.approx(number, rel=1e-9)
    assert of([60, 7]).leakage([0.0, d]) == pytest.approx(of(7).leakage(d), rel=1e-12)
    assert of([60, 7]).leakage(d) == number
    assert of(60).leakage(0.0) == 0.0


def test_more_loss_more_records_and_fewer_statements_never_leak_less() -> None:
    rng = np.random.default_rng(4)
    one = pf.ForgettingClass(4, 0.5, STATES)
    for _ in range(20):
        d = rng.random(30) * rng.integers(0, 2, 30) * 0.3
        found = of(30).leakage(d)
        assert found <= of(30).leakage(d + 0.01 * rng.random(30)) * (1 + 1e-9)
        assert found <= of(31).leakage(np.append(d, 0.1)) * (1 + 1e-9)
        assert found <= pf.LeakagePropagation(one, 30).leakage(d) * (1 + 1e-9)
        assert found <= pf.GroupDP(THETA, 30).leakage(d) * (1 + 1e-9)
        assert found >= d.max()


def test_independent_records_tell_of_themselves_alone() -> None:
    theta = pf.ForgettingClass(1, 1.0, STATES)
    assert pf.LeakagePropagation(theta, 10**9).leakage(0.3) == pytest.approx(0.3, rel=1e-9)


def test_few_observed_records_tell_no_more_than_all_of_them() -> None:
    rare = pf.LeakagePropagation(THETA, pf.ChainLength(steps=5000, records=3))
    assert rare.leakage(0.01) == pytest.approx(0.03, rel=1e-9)
    assert isinstance(rare.calibrate(pf.Count("a"), 1.0).witness, pf.QuiltWitness)
    many = pf.LeakagePropagation(THETA, pf.ChainLength(steps=5000, records=4000))
    assert many.leakage(0.01) == pytest.approx(of(5000).leakage(0.01), rel=1e-12)


def test_a_window_and_its_noise() -> None:
    query = pf.Window(pf.Count("a"), 3000, 3010)
    found = of(9000).calibrate(query, 1.0)
    assert found.scale == pytest.approx(10.0, rel=1e-6) or found.scale < 10
    assert isinstance(found.witness, pf.ForgettingWitness)
    assert isinstance(found.witness.node, int)
    assert 2990 <= found.witness.node < 3020
    assert found.prove_leakage() <= 1.0
    assert of(9000).leakage(np.where(np.abs(np.arange(9000) - 3004.5) < 5, 1 / found.scale, 0)) <= 1 + 1e-9


def test_an_hour_a_day_over_a_year_is_followed_minute_by_minute() -> None:
    day = [(600, 0.0), (60, 0.004), (780, 0.0)]
    theta = pf.ForgettingClass([8, 60], [0.43, 0.9], STATES)
    year = pf.LeakagePropagation(theta, 365 * 1440).leakage(pf.Profile(day * 365))
    one = pf.LeakagePropagation(theta, 1440).leakage(pf.Profile(day))
    assert one <= year < 1.01 * one
    assert year < 60 * 0.004


def test_noise_is_least_at_every_epsilon_and_length() -> None:
    for epsilon in (1e-5, 0.1, 1.0, 8.0):
        for length in (1, 2, 5, 40, 3000, 10**7, [50, pf.ChainLength(90, 20)]):
            found = of(length).calibrate(pf.Histogram(), epsilon)
            assert found.prove_leakage() <= epsilon
            d = 1 / (found.noise_multiplier or 1)
            assert of(length).leakage(d * 1.0001) > epsilon


def test_noise_is_finite_where_next_to_nothing_is_forgotten() -> None:
    theta = pf.ForgettingClass(1000, 1e-6, STATES)
    found = pf.LeakagePropagation(theta, 10**15).calibrate(pf.Count("a"), 1.0)
    assert 1e8 < found.noise_multiplier < 1e10  # type: ignore[operator]
    assert found.prove_leakage() <= 1.0


def test_releases_under_one_ledger_add_up_before_leakage_is_asked() -> None:
    bound = of([400, 90])
    first, second = (bound.calibrate(query, 0.7) for query in (pf.Histogram(), pf.Count("b")))
    ledger = pf.Ledger(bound, budget=2.0)
    ledger.spend(first)
    assert ledger.spent == pytest.approx(0.7, rel=1e-6)
    ledger.spend(second)
    together = bound.leakage(first.record_loss + second.record_loss)
    assert ledger.spent == pytest.approx(together, rel=1e-9)
    with pytest.raises(pf.BudgetExceeded):
        ledger.spend(bound.calibrate(pf.Histogram(), 1.5))


def test_long_pairs_are_left_out_of_long_profiles_only(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = pf.Profile([(500, 0.02), (500, 0.01)])
    bound = pf.LeakagePropagation(pf.ForgettingClass([4, 15], [0.1, 0.9], STATES), 1000)
    direct = bound.leakage(profile)
    monkeypatch.setattr(forgetting, "_DIRECT", 100)
    monkeypatch.setattr(forgetting, "_FOLLOWED", 60)
    assert pf.LeakagePropagation(bound.theta, 1000).leakage(profile) > direct * 1.01


def test_losses_beyond_the_largest_number_are_infinite() -> None:
    for losses in ([1e308] * 4 + [0.0], [1.7e308, 0.1, 1.7e308]):
        assert of(len(losses)).leakage(losses) == np.inf
    for length in (50, 10**5):
        assert of(length).leakage(1.7e308) == np.inf
        assert of(length).record_epsilon(1.7e308) > 0
        assert of(length).calibrate(pf.Histogram(), 1.7e308).scale > 0
