"""The worst of all mixtures, against a fine grid of weights that it must bound and nearly meet."""

import numpy as np
import pytest

from pufferfish._core.laws.of_chains import _quadratic, _worst_ratio


def ratio(forms: list[np.ndarray], q: np.ndarray) -> np.ndarray:
    a, b, c, d = (q @ np.exp(form) for form in forms)
    return np.log(a * b / (c * d))


@pytest.mark.parametrize("spread", [0.1, 3.0, 30.0])
@pytest.mark.parametrize("seed", range(40))
def test_two_first_states(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    forms = [rng.uniform(-spread, spread, (2, 1)) for _ in range(4)]
    t = np.exp(np.linspace(-30 - 2 * spread, 30 + 2 * spread, 20001))
    best = ratio(forms, np.column_stack([np.ones_like(t), t])).max()
    found = _worst_ratio(*forms)[0]
    assert best - 1e-12 <= found <= best + 1e-4


@pytest.mark.parametrize("seed", range(10))
def test_more_first_states(seed: int) -> None:
    rng = np.random.default_rng(seed)
    forms = [rng.uniform(-3, 3, (4, 1)) for _ in range(4)]
    weights = np.exp(rng.uniform(-20, 5, (100_000, 4)))
    found = _worst_ratio(*forms)[0]
    assert ratio(forms, weights).max() <= found + 1e-12
    pairs = [_worst_ratio(*(form[[x, y]] for form in forms))[0] for x in range(4) for y in range(x)]
    assert found == pytest.approx(max(pairs), rel=1e-9)


def test_impossible_secrets() -> None:
    never, zero = -np.inf, 0.0
    a, b = np.array([[zero], [never]]), np.array([[never], [zero]])
    # each secret is possible after one first state only: mixtures of both tell them apart by u and v alone
    assert _worst_ratio(a + 1.0, b, a, b - 0.5)[0] == pytest.approx(1.5, rel=1e-10)
    # a probability that can be 0 where the other is not
    assert _worst_ratio(a, b, a, np.array([[never], [never]]))[0] == np.inf
    assert _worst_ratio(np.array([[never], [never]]), b, a, b)[0] == -np.inf
    with_zero = np.array([[zero], [zero]])
    assert _worst_ratio(with_zero, with_zero, with_zero, np.array([[never], [zero]]))[0] == np.inf


def test_first_states_that_all_but_rule_a_secret_out() -> None:
    """Terms that no double holds beside the others still decide."""
    never, zero = -np.inf, 0.0
    alpha = np.array([[-930.0], [3.0]])
    beta = np.array([[zero], [never]])
    gamma = np.array([[-930.0], [zero]])
    delta = np.array([[never], [zero]])
    # (α₀ + α₁t)(β₀) / ((γ₀ + γ₁t)(δ₁t)): unbounded at t → 0
    assert _worst_ratio(alpha, beta, gamma, delta)[0] == np.inf
    n = [np.array([v]) for v in (never, -900.0, 5.0)]
    d = [np.array([v]) for v in (never, -902.0, 6.0)]
    assert _quadratic(*n, *d)[0] == 2.0
    assert _quadratic(*n[::-1], *d[::-1])[0] == 2.0
