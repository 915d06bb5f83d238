"""Query-specific mechanisms for a continuum of chains: no member leaks more, and some nearly as much."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from query_laws import Databases, Pair, count, farthest, laplace_loss

INTERVALS = [(0.1, 0.9), (0.1, 0.4), (0.6, 0.9), (0.3, 0.35), (0.3, 0.3), (0.2, 0.6)]
CASES = [pytest.param(*case, marks=[] if i < 3 else pytest.mark.slow) for i, case in enumerate(INTERVALS)]
SCALES = (0.5, 2.0, 15.0)
TINY = Fraction(1, 10**9)


def matrices(low: float, high: float, many: int) -> list[list[list[float]]]:
    rng = np.random.default_rng(7)
    stays = [(a, b) for a in (low, high) for b in (low, high)]
    stays += [tuple(rng.uniform(low, high, 2)) for _ in range(many)]
    return [[[p0, 1 - p0], [1 - p1, p1]] for p0, p1 in stays]


def starts(matrix: list[list[float]], start: str) -> list[list[Fraction]]:
    p0, p1 = (Fraction(matrix[x][x]) for x in (0, 1))
    stationary = [(1 - p1) / (2 - p0 - p1), (1 - p0) / (2 - p0 - p1)]
    if start == "stationary":
        return [stationary]
    ones = [Fraction(0), TINY, Fraction(1, 50), Fraction(1, 3), Fraction(9, 10), 1 - TINY, Fraction(1)]
    return [stationary, *([1 - one, one] for one in ones)]


def pairs_of(matrix: list[list[float]], start: str, length: int) -> list[Pair]:
    exact = [[Fraction(v) for v in row] for row in matrix]
    exact = [[row[0], 1 - row[0]] for row in exact[:1]] + [[1 - exact[1][1], exact[1][1]]]
    return [
        pair for law in starts(matrix, start) for pair in Databases.of_chain(law, exact, length).pairs(count(1), None)
    ]


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("start", ["any", "stationary"])
@pytest.mark.parametrize(("low", "high"), CASES)
def test_no_member_leaks_more(low: float, high: float, start: Any, slow: bool) -> None:
    """By listing all databases, in fractions: initial laws inside, in corners and 1e-9 from them."""
    theta = pf.BinaryChainInterval(low, high, initial_distribution=start)
    for length in (1, 2, 5) if slow else (3,):
        exact, wasserstein = pf.ExactLaplace(theta, length), pf.Wasserstein(theta, length)
        pairs = [pair for matrix in matrices(low, high, 4 if slow else 3) for pair in pairs_of(matrix, start, length)]
        assert wasserstein.distance(pf.Count(1)) >= farthest(pairs)
        for scale in SCALES if slow else SCALES[::2]:
            assert exact.loss(pf.Count(1), scale) >= laplace_loss(pairs, scale) - 1e-12


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize("start", ["any", "stationary"])
@pytest.mark.parametrize(("low", "high"), CASES)
def test_some_member_leaks_nearly_as_much(low: float, high: float, start: Any, slow: bool) -> None:
    """Within half a percent of the worst member that is found, whose loss is known exactly; distances are attained."""
    for length in (2, 6, 20) if slow else (3,):
        theta = pf.BinaryChainInterval(low, high, initial_distribution=start)
        chains = [pf.MarkovChain(matrix, start) for matrix in matrices(low, high, 12 if slow else 4)]
        some = pf.ExactLaplace(chains, length)
        for scale in SCALES if slow else SCALES[::2]:
            assert pf.ExactLaplace(theta, length).loss(pf.Count(1), scale) <= some.loss(pf.Count(1), scale) * 1.005
        assert pf.Wasserstein(theta, length).distance(pf.Count(1)) <= pf.Wasserstein(chains, length).distance(
            pf.Count(1)
        )


def test_members_outside_leak_more() -> None:
    """The tests above can fail: a wider interval has members that break the bound of a narrower one."""
    narrow = pf.BinaryChainInterval(0.3, 0.7)
    pairs = pairs_of([[0.8, 0.2], [0.2, 0.8]], "any", 5)
    assert pf.ExactLaplace(narrow, 5).loss(pf.Count(1), 2.0) < laplace_loss(pairs, 2.0)
    assert pf.Wasserstein(narrow, 5).distance(pf.Count(1)) < farthest(pairs)


@pytest.mark.slow
@pytest.mark.parametrize("start", ["any", "stationary"])
def test_members_between_the_corners_are_covered(start: Any, slow: bool) -> None:
    """Long chains, members on a grid that is finer near the worst, and initial laws inside: none above, one near."""
    theta, length, scale = pf.BinaryChainInterval(0.2, 0.6, initial_distribution=start), 40 if slow else 8, 3.0
    stays = [0.2, 0.35, 0.5, 0.59, 0.598, 0.6]
    laws: list[Any] = ["stationary"] if start == "stationary" else ["any", [0.5, 0.5], [0.8, 0.2], [1e-9, 1 - 1e-9]]
    members = [pf.MarkovChain([[a, 1 - a], [1 - b, b]], law) for a in stays for b in stays for law in laws]
    worst = pf.ExactLaplace(members, length).loss(pf.Count(1), scale)
    assert worst * (1 - 1e-9) <= pf.ExactLaplace(theta, length).loss(pf.Count(1), scale) <= worst * 1.005
