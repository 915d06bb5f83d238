"""Θ = [α, 1 − α], T = 100 (Section 5.2): scales of Wasserstein and ExactLaplace for a count, certified for all of Θ."""

from typing import Any

import pytest

import pufferfish as pf

TABLE = [
    pytest.param("stationary", 0.1, 10, 1.0, 8.64511, marks=pytest.mark.slow),
    pytest.param("stationary", 0.2, 5, 0.2, 19.97881, marks=pytest.mark.slow),
    ("stationary", 0.3, 3, 5.0, 0.29761),
    ("stationary", 0.4, 2, 1.0, 1.46806),
    pytest.param("any", 0.2, 5, 5.0, 0.47150, marks=pytest.mark.slow),
    pytest.param("any", 0.4, 2, 1.0, 1.46912, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("start", "alpha", "distance", "epsilon", "scale"), TABLE)
def test_scales_of_the_synthetic_class(start: Any, alpha: float, distance: int, epsilon: float, scale: float) -> None:
    theta = pf.BinaryChainInterval(alpha, 1 - alpha, initial_distribution=start)
    assert pf.Wasserstein(theta, 100).distance(pf.Count("1")) == distance
    found = pf.ExactLaplace(theta, 100).calibrate(pf.Count("1"), epsilon)
    assert found.scale == pytest.approx(scale, rel=1e-3)
    # the chain that stays the most needs no more, and hardly less
    corner = pf.MarkovChain([[1 - alpha, alpha], [alpha, 1 - alpha]], start)
    least = pf.ExactLaplace(corner, 100).calibrate(pf.Count("1"), epsilon).scale
    assert least <= found.scale * (1 + 1e-9) <= least * 1.002
