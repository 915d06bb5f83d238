"""GK16 in the paper's synthetic experiment (Section 5, "Simulations"): Θ = [α, 1 − α], T = 100."""

from typing import Any

import pytest

import pufferfish as pf
from pufferfish.errors import NotApplicableError

ROW = dict(
    zip(
        (0.33, 0.34, 0.35, 0.36, 0.37, 0.38, 0.39, 0.40),
        (33.57, 15.25, 9.98, 7.48, 6.02, 5.06, 4.39, 3.887),
        strict=True,
    )
)


def calibrated(alpha: float, start: Any, ends: Any, epsilon: float = 1.0) -> float:
    theta = pf.BinaryChainInterval(alpha, 1 - alpha, initial_distribution=start)
    return pf.GK16(theta, 100, ends=ends).calibrate(pf.Count(1), epsilon).scale


@pytest.mark.parametrize("ends", ["definition", "paper", None])
@pytest.mark.parametrize("start", ["any", "stationary"])
@pytest.mark.parametrize("alpha", ROW)
def test_noise_for_intervals(alpha: float, start: str, ends: str | None) -> None:
    """By brute force, at ε = 1, to the digits given."""
    assert calibrated(alpha, start, ends) == pytest.approx(ROW[alpha], abs=5.1e-3)
    assert calibrated(alpha, start, ends, 0.2) == pytest.approx(5 * calibrated(alpha, start, ends), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize(
    ("start", "ends", "refused", "applies"),
    [
        ("stationary", "definition", 0.3218, 0.3220),
        ("stationary", "paper", 0.3218, 0.3220),
        ("any", "paper", 0.3218, 0.3220),
        ("any", None, 0.3218, 0.3220),
        ("stationary", None, 0.3218, 0.3220),
        ("any", "definition", 0.3225, 0.3227),
    ],
)
def test_it_applies_from_a_threshold_on_whatever_epsilon(
    start: str, ends: str | None, refused: float, applies: float, epsilon: float
) -> None:
    """The dashed line of the figure: α > .3219, at every ε; by the definition the first record can make it .3226."""
    assert 1 < calibrated(applies, start, ends, epsilon) * epsilon < 1e5
    with pytest.raises(
        NotApplicableError, match=r"^GK16 does not apply: the influence matrix has spectral norm 1\.000"
    ):
        calibrated(refused, start, ends, epsilon)


def test_one_symmetric_chain() -> None:
    """p0 = p1 = .6, stationary, T = 100, ε = 1: 3.887, where MQMExact needs 3.572."""
    chain = pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    assert pf.GK16(chain, 100).calibrate(pf.Count(1), 1.0).scale == pytest.approx(3.887, abs=5e-4)
    assert pf.MQMExact(chain, 100).calibrate(pf.Count(1), 1.0).scale == pytest.approx(3.572, abs=5e-4)
