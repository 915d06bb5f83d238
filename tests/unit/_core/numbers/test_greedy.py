"""Factors by the rule of certificates: least ones, with their derivatives."""

import numpy as np
import pytest
from numpy.typing import NDArray

from pufferfish._core.phi.certificate import least_factors

Matrix = NDArray[np.float64]
ROWS, BOUND = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([[1.0, 1.5], [1.5, 1.0]])


@pytest.mark.parametrize("seed", range(5))
def test_slopes_are_derivatives(seed: int) -> None:
    """By every entry of the bound, beside a difference of factors; for all pairs of rows of six states."""
    rng, k = np.random.default_rng(seed), 6
    rows, bound = rng.dirichlet(np.full(k, 0.6), k), np.exp(rng.uniform(0.2, 1.0, (k, k)))
    np.fill_diagonal(bound, 1.0)
    pairs = np.argwhere(~np.eye(k, dtype=np.bool_))

    def found(bound: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        return least_factors(rows, pairs, bound, np.arange(k), np.full(len(pairs), 2.0))

    factors, tails, heads, slopes = found(bound)
    for y, z in pairs:
        further = bound.copy()
        further[y, z] += 1e-7
        known = np.sum(np.where((tails == y) & (heads == z), slopes, 0.0), axis=1)
        np.testing.assert_allclose(known, (found(further)[0] - factors) / 1e-7, atol=1e-4)


@pytest.mark.parametrize("guess", [1.0, 1.2, 1.7, 50.0])
def test_the_guess_does_not_matter(guess: float) -> None:
    factors = least_factors(ROWS, np.array([[0, 1], [1, 0]]), BOUND, np.arange(2), np.full(2, guess))[0]
    np.testing.assert_allclose(factors, [1.45 / 1.2, 1.3 / 1.05], rtol=1e-11)


def test_where_no_factor_is_enough() -> None:
    """What one row has where the other has nothing cannot be moved to a state without a part."""
    rows = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    assert np.isinf(least_factors(rows, np.array([[0, 1]]), np.ones((3, 3)), np.array([0]), np.array([2.0]))[0]).all()
