"""Noise multipliers of forgetting classes: histogram, ε = 1, long series (the table of docs/forgetting.md)."""

import pytest

import pufferfish as pf


@pytest.mark.parametrize(("steps", "keeps", "multiplier"), [(8, 0.571, 42.5), (8, 0.791, 92.5), (68, 0.415, 259.0)])
def test_overlaps_of_chains_fitted_to_real_data(steps: int, keeps: float, multiplier: float) -> None:
    theta = pf.ForgettingClass(steps, 1 - keeps, ["a", "b", "c", "d"])
    for length in (1_000_000, 10**15):
        found = pf.LeakagePropagation(theta, length).calibrate(pf.Histogram(relative=False), 1.0)
        assert found.noise_multiplier == pytest.approx(multiplier, rel=0.01)
        assert found.prove_leakage() <= 1.0
