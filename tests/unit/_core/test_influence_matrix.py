"""Norms and inverses of tridiagonal influence matrices, against dense linear algebra and against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from pufferfish._core.gk16 import InfluenceMatrix


def random_matrix(seed: int, n: int, norm: float) -> InfluenceMatrix:
    rng = np.random.default_rng(seed)
    left, right = rng.uniform(size=(2, n)) * (rng.uniform(size=(2, n)) < 0.9)
    left[0] = right[-1] = 0.0
    size = np.linalg.norm(dense(left, right), 2)
    factor = norm / size if size else 1.0
    return InfluenceMatrix(left * factor, right * factor, np.ones(n, dtype=bool))


def dense(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.diag(left[1:], -1) + np.diag(right[:-1], 1)


def exact_row_sums(matrix: InfluenceMatrix, weights: np.ndarray) -> list[Fraction]:
    """(I − Γ)⁻¹ weights by elimination in fractions."""
    n = matrix.left.size
    left, right, w = ([Fraction(float(v)) for v in a] for a in (matrix.left, matrix.right, weights))
    pivots, y = [Fraction(1)], [w[0]]
    for i in range(1, n):
        pivots.append(1 - left[i] * right[i - 1] / pivots[-1])
        y.append(w[i] + left[i] * y[-1] / pivots[i - 1])
    x = [y[-1] / pivots[-1]]
    for i in reversed(range(n - 1)):
        x.insert(0, (y[i] + right[i] * x[0]) / pivots[i])
    return x


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 50])
@pytest.mark.parametrize("seed", range(5))
def test_the_norm_is_tight_from_above(seed: int, n: int) -> None:
    for norm in (0.3, 0.999, 1.001, 40.0):
        matrix = random_matrix(seed, n, norm)
        true = np.linalg.norm(dense(matrix.left, matrix.right), 2)
        assert true * (1 - 1e-14) <= matrix.norm <= true * (1 + 1e-11)
        assert matrix.norm_is_below_one == (true < 1)


def test_a_norm_of_exactly_one_is_not_below() -> None:
    half = np.array([0, 1.0, 0]), np.array([0.0, 0, 0])
    assert not InfluenceMatrix(*half, np.ones(3, dtype=bool)).norm_is_below_one
    just_below = np.nextafter(1, 0) * (1 - 1e-14)
    assert InfluenceMatrix(half[0] * just_below, half[1], np.ones(3, dtype=bool)).norm_is_below_one


@pytest.mark.parametrize("n", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("seed", range(5))
def test_row_sums_are_upper_bounds_and_tight(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    for norm in (0.2, 0.9, 0.999999):
        matrix = random_matrix(seed, n, norm)
        for weights in (np.ones(n), rng.uniform(size=n), np.eye(n)[n // 2]):
            exact = exact_row_sums(matrix, weights)
            found, node = matrix.largest_row_sum(weights) or (0.0, 0)
            assert max(exact) <= Fraction(found) <= max(exact) * Fraction(1 + 1e-8)
            assert exact[node] >= max(exact) * Fraction(1 - 1e-8)


def test_no_pivot_no_bound() -> None:
    ones = np.ones(4)
    assert InfluenceMatrix(ones, ones, ones > 0).largest_row_sum(ones) == (np.inf, 0)


def test_records_without_secrets_do_not_decide() -> None:
    left, right = np.array([0, 0.4, 0.4]), np.array([0.4, 0.4, 0])
    _, node = InfluenceMatrix(left, right, np.array([True, False, False])).largest_row_sum(np.ones(3)) or (0.0, 1)
    assert node == 0
    assert InfluenceMatrix(left, right, np.zeros(3, dtype=bool)).largest_sum_of(2) is None


@pytest.mark.parametrize("count", [1, 2, 5, 11, 12])
@pytest.mark.parametrize("seed", range(8))
def test_sums_of_the_largest_entries(seed: int, count: int) -> None:
    """Exact where entries fall away from the diagonal, never too small where they do not."""
    n = 12
    matrix = random_matrix(seed, n, 0.4 if seed < 4 else 0.98)
    inverse = np.linalg.inv(np.eye(n) - dense(matrix.left, matrix.right))
    true = np.sort(inverse, axis=1)[:, -count:].sum(axis=1).max()
    found, _ = matrix.largest_sum_of(count) or (0.0, 0)
    assert true * (1 - 1e-12) <= found <= inverse.sum(axis=1).max() * (1 + 1e-9)
    if seed < 4 or count == n:
        assert found == pytest.approx(true, rel=1e-12)


def test_some_random_matrices_have_entries_that_rise() -> None:
    """Control: the case above in which the largest entries are not next to the diagonal does occur."""
    matrix = InfluenceMatrix(np.array([0, 0, 0.7]), np.array([0.7, 0.99, 0]), np.ones(3, dtype=bool))
    inverse = np.linalg.inv(np.eye(3) - dense(matrix.left, matrix.right))
    assert inverse[0, 1] > inverse[0, 0]
    found, _ = matrix.largest_sum_of(1) or (0.0, 0)
    assert found >= inverse.max()
