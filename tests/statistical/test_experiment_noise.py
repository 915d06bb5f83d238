"""Errors of experiments are those of releases: noise from a seed has the law of the noise a release draws."""

import numpy as np
import pytest
from scipy import stats

import pufferfish as pf
from paper.experiments.sampling import discrete_laplace, stream
from pufferfish.release.noise import discrete_laplace_noise

DRAWS = 40_000


def same_law(first: np.ndarray, second: np.ndarray, scale: float) -> float:
    """p-value of two samples by χ² on cells of a third of the scale, the tails beyond four scales in one cell each."""
    width = max(1, round(scale / 3))
    cells = [np.clip(np.floor_divide(values, width), -12, 12) for values in (first, second)]
    table = np.array([np.bincount(c.astype(np.int64) + 12, minlength=25) for c in cells])
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) >= 10]).pvalue)


@pytest.mark.parametrize("scale", [0.2, 3.0, 400.0])
def test_an_experiment_draws_what_a_release_draws(scale: float) -> None:
    released = np.array(discrete_laplace_noise([0] * DRAWS, scale, lipschitz=1)())
    # A true law fails this once in a million runs; a scale off by 15% has a p-value far below.
    assert same_law(released, discrete_laplace(stream(1, scale), scale, (DRAWS,)), scale) > 1e-6
    for other in (1.15 * scale, scale / 1.15):
        assert same_law(released, discrete_laplace(stream(2, scale), other, (DRAWS,)), scale) < 1e-6


@pytest.mark.slow
def test_a_release_errs_as_much_as_the_experiment_says() -> None:
    """Through ``pf.release`` itself: the mean error of 400 releases is the expected one."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    states = ["rest", "rest", "active", "rest", "active"] * 8
    found = pf.GroupDP(chain, len(states)).calibrate(pf.Count("active"), 8.0)
    errors = np.array([abs(pf.release(states, pf.Count("active"), found).value[0] - 16) for _ in range(400)])
    standard_error = errors.std(ddof=1) / 20
    assert abs(errors.mean() - found.expected_l1_error) < 6 * standard_error
    assert abs(errors.mean() - 2 * found.expected_l1_error) > 6 * standard_error  # control
