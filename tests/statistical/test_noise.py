"""The noise has the law it is calibrated for, by χ² with a control that must fail."""

import math

import numpy as np
import pytest
from scipy import stats

from pufferfish.errors import ReleaseRefused
from pufferfish.release.noise import discrete_laplace_noise, noise_in_bulk

DRAWS = 40_000


def chi_square(values: np.ndarray, scale: float) -> float:
    """p-value of integer values against the discrete Laplace law of a scale."""
    reach = math.ceil(4 * scale)
    p = math.exp(-1 / scale)
    inside = np.array([(1 - p) / (1 + p) * p ** abs(z) for z in range(-reach, reach + 1)])
    expected = np.concatenate([[p ** (reach + 1) / (1 + p)], inside, [p ** (reach + 1) / (1 + p)]]) * values.size
    observed = np.bincount(np.clip(values, -reach - 1, reach + 1) + reach + 1, minlength=expected.size)
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("scale", [0.7, 3.0, 12.5])
def test_noise_is_discrete_laplace_of_its_scale(scale: float) -> None:
    values = np.array(discrete_laplace_noise([5] * DRAWS, scale, lipschitz=1)()) - 5
    # A true law fails this once in a million runs; a scale off by 10% has a p-value far below.
    assert chi_square(values, scale) > 1e-6
    assert chi_square(values, 1.1 * scale) < 1e-6
    assert chi_square(values, 0.9 * scale) < 1e-6


def test_noise_in_bulk_is_that_of_its_scale_and_independent() -> None:
    exact = np.arange(DRAWS + 7).reshape(-1, 1) + np.array([[0, 10**9]])  # values of two outputs, in several parts
    noise = noise_in_bulk(exact, 3.0, lipschitz=2)() - exact
    assert noise.shape == exact.shape
    assert chi_square(noise.ravel(), 3.0) > 1e-6
    assert chi_square(noise.ravel(), 2.7) < 1e-6
    half = len(noise) // 2
    for pair in (noise, np.stack([noise[:half], noise[-half:]]).reshape(2, -1).T, noise[:10_000].reshape(4, -1).T):
        assert abs(np.corrcoef(pair.T)[0, 1]) < 0.05
    with pytest.raises(ReleaseRefused, match="does not protect"):
        noise_in_bulk(exact, 0.0, lipschitz=2)


def test_coordinates_are_independent() -> None:
    values = np.array(discrete_laplace_noise([0] * DRAWS, 4.0, lipschitz=1)()).reshape(-1, 2)
    assert abs(np.corrcoef(values.T)[0, 1]) < 0.05
    assert abs(np.corrcoef(np.stack([values[:, 0], values[:, 0] + values[:, 1]]))[0, 1]) > 0.5  # control


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_scale_that_protects_nothing_is_refused(scale: float) -> None:
    with pytest.raises(ReleaseRefused, match="does not protect"):
        discrete_laplace_noise([1, 2], scale, lipschitz=1)()


def test_what_does_not_fit_64_bits_is_refused() -> None:
    with pytest.raises(ReleaseRefused, match="64-bit"):
        discrete_laplace_noise([2**61], 1e17, lipschitz=1)()


def test_opendp_must_confirm_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    from opendp import measurements

    real = measurements.make_laplace

    def too_little(domain: object, metric: object, scale: float) -> object:
        return real(domain, metric, scale=scale / 2)

    monkeypatch.setattr(measurements, "make_laplace", too_little)
    with pytest.raises(ReleaseRefused, match="OpenDP gives"):
        discrete_laplace_noise([1], 3.0, lipschitz=2)()


@pytest.mark.parametrize("scale", np.geomspace(1e-3, 1e12, 60))
@pytest.mark.parametrize("lipschitz", [1, 2, 7919])
def test_every_scale_passes_opendps_own_map(scale: float, lipschitz: int) -> None:
    assert len(discrete_laplace_noise([0, 1], float(scale), lipschitz=lipschitz)()) == 2
