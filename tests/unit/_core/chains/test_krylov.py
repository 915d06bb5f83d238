"""Large linear systems from products alone."""

import math

import numpy as np

from pufferfish._core.chains import markov


def test_it_solves_what_a_direct_method_solves() -> None:
    rng = np.random.default_rng(3)
    for n in (1, 5, 60):
        matrix = np.eye(n) - 0.95 * rng.dirichlet(np.ones(n), size=n)
        right = rng.normal(size=n)
        found = markov.solve(lambda x, m=matrix: m @ x, right, tolerance=1e-10, most=200)
        np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-7, atol=1e-9)


def test_it_needs_few_products_where_the_series_needs_thousands() -> None:
    """One slow mode: the series of a chain that moves once in a thousand steps."""
    n, slow = 50, 1 - 1e-4
    matrix = np.eye(n) - slow * np.diag(np.r_[1.0, np.full(n - 1, 0.3)])
    products = []

    def apply(x: np.ndarray) -> np.ndarray:
        products.append(x)
        return matrix @ x

    right = np.ones(n)
    found = markov.solve(apply, right, tolerance=1e-8, most=200)
    assert len(products) <= 5
    np.testing.assert_allclose(matrix @ found, right, atol=1e-6)


def test_what_cannot_be_solved_ends() -> None:
    singular = np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = markov.solve(lambda x: singular @ x, np.array([1.0, 1.0]), tolerance=1e-9, most=50)
    assert np.all(np.isfinite(found))
    assert markov.solve(lambda x: x, np.zeros(3), tolerance=1e-9, most=5).tolist() == [0.0, 0.0, 0.0]


def test_products_that_are_no_numbers_give_what_was_found_before() -> None:
    for broken in (math.nan, math.inf):
        found = markov.solve(lambda x, b=broken: x * b, np.array([1.0, 2.0]), tolerance=1e-9, most=50)
        assert found.tolist() == [1.0, 2.0]
