"""Supports, powers in logarithms, stationary laws: against exact fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from enumeration import exact_stationary
from pufferfish._core.chains.markov import (
    LogPowers,
    LogVectorPath,
    closed_classes,
    period,
    stationary_law,
    stationary_log_error,
    strong_components,
)
from pufferfish._core.numbers.rounding import down, up
from pufferfish._core.quilts.influence import ChainInfluence
from pufferfish.errors import ModelError

Array = NDArray[np.float64]
Exact = list[list[Fraction]]


def fractions(table: Array) -> Exact:
    return [[Fraction(float(v)) for v in row] for row in np.atleast_2d(table)]


def product(a: Exact, b: Exact) -> Exact:
    return [[sum((row[z] * b[z][y] for z in range(len(b))), Fraction(0)) for y in range(len(b[0]))] for row in a]


def log_of(value: Fraction) -> float:
    """Logarithm of a fraction of any size, to a relative 1e-15 of its terms."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    scaled = value / Fraction(2) ** shift
    return math.log(float(scaled)) + shift * math.log(2)


def assert_logs(found: Array, error: float, truth: Exact) -> None:
    """Structural zeros are −∞, everything else is within the promised error."""
    assert error < 1e-6
    for x, row in enumerate(truth):
        for y, value in enumerate(row):
            if value == 0:
                assert found[x, y] == -np.inf
            else:
                assert abs(found[x, y] - log_of(value)) <= error + 1e-15 * abs(found[x, y])


DENSE = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.0625, 0.0625, 0.875]])
UNDERFLOWS = np.array([[0.5, 0.5, 1e-170, 0], [0.5, 0.5, 1e-190, 0], [0.5, 0.5, 0, 1e-170], [0.5, 0.5, 0, 0]])
MATRICES = {
    "dense": DENSE,
    "cycle": np.array([[0, 1.0, 0], [0, 0, 1], [1, 0, 0]]),
    "reducible": np.array([[0.5, 0.5, 0], [0, 0.25, 0.75], [0, 0.5, 0.5]]),
    "transient, gone": np.array([[0, 0.5, 0.5], [0, 0.25, 0.75], [0, 0.5, 0.5]]),
    "underflows": UNDERFLOWS,
    "fades": np.array([[1e-60, 1 - 1e-60, 0], [0, 1e-80, 1], [0, 0, 1]]),
    "subnormal": np.array([[1, 1e-310], [0.5, 0.5]]),
}


@pytest.mark.parametrize("name", list(MATRICES))
def test_log_powers(name: str) -> None:
    powers, exact = LogPowers(MATRICES[name]), fractions(MATRICES[name])
    power = fractions(np.eye(len(exact)))
    for t in range(12):
        assert_logs(powers.log(t), powers.log_error(t), power)
        assert (powers.support(t) == np.array([[v > 0 for v in row] for row in power])).all()
        power = product(power, exact)


@pytest.mark.parametrize("name", list(MATRICES))
@pytest.mark.parametrize("corner", [None, 0, 1])
def test_log_vector_path(name: str, corner: int | None) -> None:
    p = MATRICES[name]
    q = np.full(len(p), 1 / len(p)) if corner is None else np.eye(len(p))[corner]
    path, row = LogVectorPath(q, p), fractions(q)
    for step in range(12):
        assert path.step == step
        assert_logs(path.log[None, :], path.log_error, row)
        assert path.support.tolist() == [v > 0 for v in row[0]]
        path.advance()
        row = product(row, fractions(p))


def test_long_products_keep_their_error_bound() -> None:
    powers, exact = LogPowers(DENSE), fractions(DENSE)
    power = exact
    for _ in range(6):
        power = product(power, power)
    assert_logs(powers.log(64), powers.log_error(64), power)
    assert powers.log_error(10**6) < 1e-8


@pytest.mark.parametrize("name", ["dense", "underflows", "fades", "reducible"])
def test_right_and_left_parts_are_never_below_the_truth(name: str) -> None:
    p = MATRICES[name]
    k, exact = len(p), fractions(p)
    influence = ChainInfluence(p, "any")
    power = exact
    for b in range(1, 6):
        right = influence.right(b)
        for x, other in itertools.permutations(range(k), 2):
            terms = [(power[x][y], power[other][y]) for y in range(k) if power[x][y]]
            truth = max(math.inf if not under else log_of(over / under) for over, under in terms)
            if math.isinf(truth):
                assert right[x, other] == math.inf
            else:
                assert truth * (1 - 1e-15) <= right[x, other] <= truth + 1e-9
        power = product(power, exact)


def test_parts_never_grow_with_the_distance() -> None:
    influence = ChainInfluence(DENSE, "stationary")
    (group,) = influence.groups(100)
    for t in range(1, 60):
        assert (influence.right(t + 1) <= influence.right(t) + 1e-12).all()
        assert (influence.left(group, t + 1) <= influence.left(group, t) + 1e-12).all()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [2, 3, 6])
def test_stationary_law_is_accurate_entry_by_entry(seed: int, k: int) -> None:
    """Entries of π down to 1e-60, each to a relative 1e-13: a solver with subtractions loses them all."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), k)
    p[:, -1] *= 10.0 ** -rng.uniform(5, 60)
    p /= p.sum(axis=1, keepdims=True)
    truth = exact_stationary(p)
    for found, exact in zip(stationary_law(p), truth, strict=True):
        assert abs(math.log(found) - log_of(exact)) <= min(stationary_log_error(k) + 1e-13, 2e-13)


def test_stationary_law_of_nearly_separate_parts() -> None:
    p = np.array([[1 - 1e-14, 1e-14], [3e-14, 1 - 3e-14]])
    assert stationary_law(p) == pytest.approx([0.75, 0.25], rel=1e-13)


@pytest.mark.parametrize(
    "p",
    [
        [[1, 1e-300], [0.5, 0.5]],
        [[1, 1e-290, 0], [0.5, 0, 0.5], [0.5, 0.5, 0]],
        # an entry of the elimination, not of π, is subnormal: 1e-160 · 1.3e-163 of a π₁ of 1.3e-58
        [[1 - 1e-160, 0, 1e-160], [1e-265, 1, 0], [1, 1.3e-163, 0]],
        # the sum overflows before it is divided by: all zeros, and then no secret to protect
        [[0, 1, 0, 0], [1e-200, 0, 0.5, 0.5], [0, 3e-109, 1, 0], [0, 3e-109, 0, 1]],
        [[0, 1, 0, 0], [1e-200, 0, 0.5, 0.5], [0, 6e-109, 1, 0], [0, 6e-109, 0, 1]],
    ],
    ids=["pi", "pi-of-three", "inside", "overflow", "subnormal"],
)
def test_stationary_law_refuses_what_it_cannot_hold(p: list[list[float]]) -> None:
    with pytest.raises(ModelError, match="too small to compute accurately"):
        stationary_law(np.array(p, dtype=float))


CLASSES = {
    "irreducible": ([[0, 1, 0], [0, 0, 1], [1, 1, 0]], [[0, 1, 2]], [[0, 1, 2]]),
    "absorbing": ([[1, 1, 0], [0, 1, 1], [0, 0, 1]], [[0], [1], [2]], [[2]]),
    "two closed": ([[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0]], [[0], [1, 2], [3]], [[0], [1, 2]]),
    "long way round": (np.eye(9, k=1) + np.eye(9, k=-8), [list(range(9))], [list(range(9))]),
}


@pytest.mark.parametrize("name", list(CLASSES))
def test_classes(name: str) -> None:
    table, strong, closed = CLASSES[name]
    support = np.array(table) > 0
    assert strong_components(support) == strong
    assert closed_classes(support) == closed


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[0, 1], [1, 0]], 2),
        ([[1, 1], [1, 0]], 1),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], 3),
        ([[0, 1, 0], [0, 0, 1], [1, 1, 0]], 1),
        ([[0, 1, 1], [1, 0, 0], [1, 0, 0]], 2),
        (np.eye(12, k=1) + np.eye(12, k=-11), 12),
        (np.eye(6, k=1) + np.eye(6, k=-5) + np.eye(6, k=-3), 2),
    ],
)
def test_period(table: Array, expected: int) -> None:
    assert period(np.array(table) > 0) == expected


@pytest.mark.parametrize("x", [1.0, -3.7, 1e-300, 1e300, 5e-324])
def test_up_and_down_enclose(x: float) -> None:
    assert down(x) < x < up(x)
    assert up(x) - x <= 1e-15 * abs(x) + 2e-323
    assert up(x, 1) == math.nextafter(x, math.inf)


@pytest.mark.parametrize("x", [math.inf, -math.inf])
def test_infinities_stay(x: float) -> None:
    assert up(x) == down(x) == x
