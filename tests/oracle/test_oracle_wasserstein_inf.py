"""pf.wasserstein_inf against the monotone coupling in fractions, an LP over couplings, and augmenting paths."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish.errors import ModelError
from query_laws import Law, bottleneck, w_inf, w_inf_by_lp

TINY = 1e-300


def parts(rng: np.random.Generator, n: int, of: int) -> list[int]:
    """Positive whole numbers that add up to ``of``."""
    cuts = np.sort(rng.choice(np.arange(1, of), n - 1, replace=False))
    return [int(v) for v in np.diff([0, *cuts, of])]


def random_law(rng: np.random.Generator, n: int, of: int, m: int = 0, side: int = 9) -> Law:
    """Masses that are parts of one whole, so that ties abound."""
    places: set[Any] = set()
    while len(places) < n:
        places.add(
            Fraction(int(rng.integers(-side, side + 1)), 2)
            if not m
            else tuple(Fraction(int(v)) for v in rng.integers(0, side + 1, m))
        )
    return {x: Fraction(v, of) for x, v in zip(sorted(places), parts(rng, n, of), strict=True)}


def plain(law: Law) -> tuple[list[Any], list[Fraction]]:
    return [[int(v) for v in x] if isinstance(x, tuple) else x for x in law], list(law.values())


def in_floats(law: Law) -> tuple[list[Any], list[float]]:
    return [[int(v) for v in x] if isinstance(x, tuple) else float(x) for x in law], [float(m) for m in law.values()]


def distance(mu: Law, nu: Law, write: Any = plain) -> float:
    return pf.wasserstein_inf(*write(mu), *write(nu))


@pytest.mark.parametrize("seed", range(60))
def test_random_laws_on_the_line(seed: int) -> None:
    rng = np.random.default_rng(seed)
    of = int(rng.choice([12, 30, 64, 210]))
    mu, nu = (random_law(rng, int(rng.integers(1, 8)), of) for _ in range(2))
    truth = w_inf(mu, nu)
    assert truth == w_inf_by_lp(mu, nu) == bottleneck(mu, nu)  # three oracles, one number
    assert distance(mu, nu) == truth
    # as floats the masses are rounded, and the ties of the fractions are ties still
    assert distance(mu, nu, in_floats) == truth


@pytest.mark.parametrize("seed", range(40))
def test_random_masses_of_full_precision(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    places = [rng.choice(30, 6, replace=False) / 4 for _ in range(2)]
    masses = [rng.dirichlet(np.full(6, 0.5)) for _ in range(2)]
    mu, nu = (
        {Fraction(float(v)): Fraction(float(m)) for v, m in zip(x, p, strict=True)}
        for x, p in zip(places, masses, strict=True)
    )
    assert pf.wasserstein_inf(places[0], masses[0], places[1], masses[1]) == w_inf_by_lp(mu, nu)


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("seed", range(15))
def test_random_laws_of_vectors(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    of = int(rng.choice([12, 30, 64]))
    mu, nu = (random_law(rng, int(rng.integers(1, 7)), of, m, 4) for _ in range(2))
    truth = w_inf_by_lp(mu, nu)
    assert truth == bottleneck(mu, nu)
    assert distance(mu, nu) == truth
    assert distance(mu, nu, in_floats) == truth


def test_vectors_on_a_line_are_numbers() -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        mu, nu = (random_law(rng, 5, 30, 1, 20) for _ in range(2))
        doubled = [{(2 * x[0], -x[0]): mass for x, mass in law.items()} for law in (mu, nu)]
        assert (
            distance(*doubled)
            == 3 * distance(mu, nu)
            == 3 * w_inf(*({x[0]: m for x, m in law.items()} for law in (mu, nu)))
        )


# --- equal laws, written differently ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "p", "y", "q"),
    [
        ([0, 1], [0.1 + 0.2, 0.7], [0, 1], [0.3, 0.7]),
        ([0, 1], [0.1 + 0.2, 1 - 0.3], [0, 1], [0.3, 0.7]),
        ([0, 1], [sum([0.1] * 3), sum([0.1] * 7)], [0, 1], [0.3, 0.7]),
        ([0, 5, 9], [1 / 3, 1 / 3, 1 / 3], [0, 5, 9], [1 - 2 / 3, 1 - 1 / 3 - 1 / 3, 1 / 3]),
        ([0, 7], [sum([1 / 7] * 5), 2 / 7], [0, 7], [5 / 7, 1 / 7 + 1 / 7]),
        ([0, 7], [sum([1 / 7] * 5), sum([1 / 7] * 2)], [0, 0, 7], [1 - 2 / 7 - 3 / 7, 3 / 7, 2 / 7]),
        ([3, 3, 3, 8], [0.125, 0.25, 0.125, 0.5], [8, 3], [0.5, 0.5]),
        ([0.1, 0.2], [Fraction(1, 3), Fraction(2, 3)], ["0.2", "0.1"], [Fraction(2, 3), Fraction(1, 3)]),
        ([1, 2, 99], [0.5, 0.5, 0.0], [1, 2], [0.5, 0.5]),
        ([0, 10], [Fraction(1, 3), Fraction(2, 3)], [0, 10], [1 / 3, 2 / 3]),
        ([[0, 3], [3, 0]], [0.1 + 0.2, 0.7], [[3, 0], [0, 3]], [0.7, 0.3]),
        ([[0, 3], [3, 0], [5, 5]], [1 / 7] * 2 + [5 / 7], [[0, 3], [3, 0], [5, 5]], [1 / 7, 1 / 7, sum([1 / 7] * 5)]),
    ],
    ids=str,
)
def test_equal_laws(x: Any, p: Any, y: Any, q: Any) -> None:
    if any(isinstance(v, str) for v in y):
        y = [Fraction(v) for v in y]
    assert pf.wasserstein_inf(x, p, y, q) == 0
    assert pf.wasserstein_inf(y, q, x, p) == 0


def test_long_laws_that_were_added_up_differently() -> None:
    """Normalised once by a sum, once twice over, once in another order: a hundred ties, none of them in floats."""
    rng = np.random.default_rng(0)
    weights = rng.random(100)
    p = weights / weights.sum()
    q = weights / weights[::-1].cumsum()[-1]
    again = (p / 3) / math.fsum(p / 3)
    places = np.arange(100) ** 2
    assert len({tuple(p), tuple(q), tuple(again)}) > 1
    for one, other in itertools.permutations((p, q, again), 2):
        assert pf.wasserstein_inf(places, one, places, other) == 0


def test_exact_masses_are_not_forgiven_a_rounding() -> None:
    third = Fraction(1, 3)
    more = third + Fraction(1, 10**40)
    assert pf.wasserstein_inf([0, 10], [third, 1 - third], [0, 10], [more, 1 - more]) == 10
    assert pf.wasserstein_inf([0, 10], [float(third), 2 / 3], [0, 10], [float(more), 2 / 3]) == 0


# --- tails -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", [1e-17, 1e-100, TINY])
def test_tails_decide(tail: float) -> None:
    for sign in (1, -1):
        x, y = [0, sign], [0, sign, sign * 50]
        assert pf.wasserstein_inf(x, [0.5, 0.5], y, [0.5, 0.5, tail]) == 49
        assert pf.wasserstein_inf(y, [0.5, 0.5, tail], x, [0.5, 0.5]) == 49
        # tails of different sizes on both sides, far apart: the nearer fills what it can
        assert pf.wasserstein_inf([*x, sign * 20], [0.5, 0.5, tail], y, [0.5, 0.5, tail]) == 30
        assert pf.wasserstein_inf([*x, sign * 20], [0.5, 0.5, tail / 2], y, [0.5, 0.5, tail]) == 49


@pytest.mark.parametrize("tail", [1e-17, TINY])
def test_both_tails_at_once(tail: float) -> None:
    mu = [-30, 0, 1, 40], [tail, 0.5, 0.5, tail]
    assert pf.wasserstein_inf(*mu, [0, 1], [0.5, 0.5]) == 39
    assert pf.wasserstein_inf(*mu, [-31, 0, 1, 40], [tail, 0.5, 0.5, tail]) == 1
    assert pf.wasserstein_inf(*mu, [-30, 0, 1, 40], [tail, 0.5, 0.5, tail]) == 0


@pytest.mark.parametrize("lost", [1e-17, 1e-100, TINY])
def test_a_little_mass_in_the_middle_of_two_modes_counts(lost: float) -> None:
    """There both cumulative masses are 1/2 to the last bit, and what lies between is neither's rounding."""
    assert pf.wasserstein_inf([0, 100], [0.5, 0.5], [0, 50, 100], [0.5, lost, 0.5]) == 50
    assert pf.wasserstein_inf([0, 30, 100], [0.5, lost, 0.5], [0, 50, 100], [0.5, lost, 0.5]) == 20
    assert pf.wasserstein_inf([0, 50, 100], [0.5, lost, 0.5], [0, 50, 100], [0.5, lost, 0.5]) == 0
    # half of it has to go elsewhere, whichever side
    assert pf.wasserstein_inf([0, 45, 100], [0.5, lost / 2, 0.5], [0, 50, 100], [0.5, lost, 0.5]) == 50


def test_a_gap_that_a_rounding_may_cross_is_crossed_by_mass_that_is_there() -> None:
    """0.5 against 0.5 + 2e-16 is a rounding, against 0.5 + 1e-9 it is not."""
    near, far = 0.5 + 2.3e-16, 0.5 + 1e-9
    assert pf.wasserstein_inf([0, 100], [0.5, 0.5], [0, 100], [near, 0.5]) == 0
    assert pf.wasserstein_inf([0, 100], [0.5, 0.5], [0, 100], [far, 1 - far]) == 100


def test_tails_of_vectors() -> None:
    mu = [[0, 0], [1, 0]], [0.5, 0.5]
    assert pf.wasserstein_inf(*mu, [[0, 0], [1, 0], [7, 9]], [0.5, 0.5, TINY]) == 15
    assert pf.wasserstein_inf([[0, 0], [90, 90]], [0.5, 0.5], [[0, 0], [40, 40], [90, 90]], [0.5, 1e-17, 0.5]) == 80


# --- simple laws -----------------------------------------------------------------------------------------------------


def test_disjoint_supports() -> None:
    assert pf.wasserstein_inf([0, 1], [0.5, 0.5], [10, 12], [0.25, 0.75]) == 12 - 0
    assert pf.wasserstein_inf([0, 1], [0.25, 0.75], [10, 12], [0.5, 0.5]) == 11
    assert pf.wasserstein_inf([0], [1], [7.25], [1.0]) == 7.25
    assert pf.wasserstein_inf([-1e9], [1], [1e9], [1]) == 2e9


def test_the_answer_is_rounded_up() -> None:
    third = pf.wasserstein_inf([0], [1], [Fraction(1, 3)], [1])
    assert Fraction(third) >= Fraction(1, 3)
    assert third == pytest.approx(1 / 3, rel=1e-15)


@pytest.mark.parametrize("m", [0, 2])
@pytest.mark.parametrize("seed", range(12))
def test_it_is_a_metric(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    one, two, three = (random_law(rng, int(rng.integers(2, 6)), 12, m, 5) for _ in range(3))
    assert distance(one, one) == 0
    assert distance(one, two) == distance(two, one) > 0
    assert distance(one, three) <= distance(one, two) + distance(two, three)
    moved = {(tuple(v + 3 for v in x) if m else x + 3): mass for x, mass in one.items()}
    assert distance(one, moved) == 3 * max(m, 1)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "p", "y", "q", "says"),
    [
        ([0, 1], [0.5], [0], [1], r"p sum to 0\.5"),
        ([0, 1], [1.0], [0], [1], "x has 2 atoms and p 1 masses"),
        ([0], [1], [0, 1], [1.0], "y has 2 atoms and q 1 masses"),
        ([0, 1], [0.5, 0.4], [0], [1], r"p sum to 0\.9, expected 1"),
        ([0], [1], [0, 1], [0.5, 0.4], r"q sum to 0\.9, expected 1"),
        ([0, 1], [1.5, -0.5], [0], [1], r"p\[1\] is -0\.5"),
        ([0, 1], [math.nan, 1], [0], [1], r"p\[0\] is nan"),
        ([0, 1], [math.inf, 1], [0], [1], r"p\[0\] is inf"),
        ([0, 1], ["a", 1], [0], [1], r"p\[0\] is 'a'"),
        ([], [], [0], [1], "p sum to 0"),
        ([math.inf], [1], [0], [1], r"x\[0\] is inf, expected a finite number"),
        ([0], [1], [math.nan], [1], r"y\[0\] is nan"),
        (["a"], [1], [0], [1], r"x\[0\] is 'a'"),
        ([[0, 1]], [1], [[0, 1, 2]], [1], "atoms of 2 and of 3 coordinates"),
        ([[0, 1]], [1], [0], [1], "atoms of 1 and of 2 coordinates"),
        ([[0, 0.5]], [1], [[0, 1]], [1], "vectors must be of whole numbers"),
    ],
)
def test_errors(x: Any, p: Any, y: Any, q: Any, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        pf.wasserstein_inf(x, p, y, q)
