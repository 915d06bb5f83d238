"""initial_distribution="any" and one query: no initial law needs more noise than is found, and some need as much."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import dyadic_law
from query_checks import Asked, chain_secrets
from query_laws import Ask, Databases, Pair, bouts, count, farthest, laplace_loss, switches, total, weighted, within

ANY = [
    ([[0.875, 0.125], [0.375, 0.625]], 5),
    ([[0.25, 0.75], [0.75, 0.25]], 4),
    ([[0.75, 0.25], [0, 1]], 4),
    ([[0, 1], [1, 0]], 4),
    ([[0.25, 0.75], [0.25, 0.75]], 4),
    ([[0.5, 0.25, 0.25], [0.125, 0.875, 0], [0, 0.5, 0.5]], 3),
    ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], 4),
    ([[0.875, 0.125, 0], [0.125, 0.875, 0], [0.5, 0.5, 0]], 4),
]


def starts(rng: np.random.Generator, k: int, *, few: bool = False) -> list[list[Fraction]]:
    """Initial laws: corners, next to corners, edges, and inside; of each kind the hardest if few are asked for."""
    found = [[Fraction(int(x == y)) for y in range(k)] for x in range(k)]
    for tiny in (Fraction(1, 10**9), Fraction(1, 10**3))[: 1 if few else 2]:
        for x in range(k):
            for y in range(k):
                if x != y:
                    law = [Fraction(0)] * k
                    law[x], law[y] = 1 - tiny, tiny
                    found.append(law)
            found.append([1 - (k - 1) * tiny if y == x else tiny for y in range(k)])
    for x, y in itertools.combinations(range(k), 2):
        for part in (Fraction(1, 2), Fraction(1, 4), Fraction(3, 4))[: 1 if few else 3]:
            law = [Fraction(0)] * k
            law[x], law[y] = part, 1 - part
            found.append(law)
    found += [[Fraction(float(v)) for v in dyadic_law(rng, k)] for _ in range(2 if few else 8)]
    return found


def any_queries(k: int, length: int) -> list[Asked]:
    factors = [1, 0, -2, 1, 3][:length]
    return [
        (pf.Count(1), count(1)),
        (pf.Sum([0.5, -1, 2][:k]), total([0.5, -1, 2][:k])),
        (pf.Switches(), switches),
        (pf.Bouts(1), bouts),
        (pf.Window(pf.Count(0), 1, length), within(count(0), 1, length)),
        (pf.Weighted(pf.Count(1), factors), weighted(lambda x: Fraction(x == 1), factors)),
    ]


def worst_over_starts(matrix: Any, length: int, ask: Ask, secrets: Any = None, *, few: bool = False) -> list[Pair]:
    rng = np.random.default_rng(0)
    return [
        pair
        for start in starts(rng, len(matrix), few=few)
        for pair in Databases.of_chain(start, matrix, length).pairs(ask, secrets)
    ]


@pytest.mark.grid(keep=1)
@pytest.mark.parametrize(("matrix", "length"), ANY, ids=str)
def test_every_initial_distribution_is_covered(matrix: Any, length: int, slow: bool) -> None:
    """No start leaks more: corners, next to them (1e-9), edges, inside."""
    chain = pf.MarkovChain(matrix, "any")
    wasserstein, exact = pf.Wasserstein(chain, length), pf.ExactLaplace(chain, length)
    for i, (query, ask) in enumerate(any_queries(chain.k, length)):
        pairs = worst_over_starts(matrix, length, ask, few=not slow)
        assert wasserstein.distance(query) >= float(farthest(pairs))
        for scale in (0.7, 4.0) if slow else ((0.7, 4.0)[i % 2],):
            assert exact.loss(query, scale) >= laplace_loss(pairs, scale) - 1e-12
        if farthest(pairs):
            assert laplace_loss(pairs, exact.calibrate(query, 1.0).scale) <= 1 + 1e-12


def test_every_initial_distribution_of_several_chains_is_covered() -> None:
    matrix, lengths = [[0.875, 0.125], [0.375, 0.625]], [3, 2]
    exact = pf.ExactLaplace(pf.MarkovChain(matrix, "any"), lengths)
    for start in starts(np.random.default_rng(0), 2):
        each = [Databases.of_chain(start, matrix, length) for length in lengths]
        pairs = (each[0] * each[1]).pairs(count(1))
        assert exact.loss(pf.Count(1), 1.0) >= laplace_loss(pairs, 1.0) - 1e-12
        assert pf.Wasserstein(exact.theta, lengths).distance(pf.Count(1)) >= farthest(pairs)


@pytest.mark.parametrize(("matrix", "length"), [ANY[0], ANY[2], ANY[5]], ids=str)
def test_secrets_under_every_initial_distribution(matrix: Any, length: int) -> None:
    chain = pf.MarkovChain(matrix, "any")
    for _, secrets, meant in chain_secrets(chain.k, length)[:5]:
        pairs = worst_over_starts(matrix, length, count(1), [meant])
        exact = pf.ExactLaplace(chain, length, secrets=[secrets])
        assert exact.loss(pf.Count(1), 1.0) >= laplace_loss(pairs, 1.0) - 1e-12
        assert pf.Wasserstein(chain, length, secrets=[secrets]).distance(pf.Count(1)) >= farthest(pairs)


# --- the supremum ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.grid(keep=1)
@pytest.mark.parametrize(("matrix", "length"), ANY, ids=str)
def test_every_initial_distribution_is_matched(matrix: Any, length: int) -> None:
    """The supremum over initial laws, approached next to corners: by a fine search over them, within a thousandth."""
    chain = pf.MarkovChain(matrix, "any")
    for query, ask in any_queries(chain.k, length):
        for scale in (0.7, 4.0):
            assert pf.ExactLaplace(chain, length).loss(query, scale) <= supremum(matrix, length, ask, scale) + 1e-3


def supremum(matrix: Any, length: int, ask: Ask, scale: float) -> float:
    """Loss of the worst initial law, by climbing: steps in the logarithms of its masses, from many starts.

    A noisy output w, a record's value x and a start z go together with k(z, x) = Σ_n P(F=n, X=x | z) e^{−|w−n|/b},
    and the loss at a start q is the log of Σ q k(·, x)/Σ q P(x | ·) against the same for x'.
    """
    k = len(matrix)
    each = [Databases.of_chain([Fraction(int(x == z)) for x in range(k)], matrix, length) for z in range(k)]
    worst = 0.0
    laws = [
        {
            (t, x): (sum(m for row, m in d.law.items() if row[t] == x), d.given(ask, lambda row, t=t, x=x: row[t] == x))
            for t in range(length)
            for x in range(k)
        }
        for d in each
    ]
    answers = sorted({a for own in laws for _, law in own.values() if law for a in law})
    outputs = np.array([float(a) for a in answers])
    values = np.exp(-np.abs(outputs[:, None] - outputs[None, :]) / scale)
    for t in range(length):
        for x, other in itertools.permutations(range(k), 2):
            masses, noisy = np.zeros((2, k)), np.zeros((2, k, len(answers)))
            for z in range(k):
                for i, value in enumerate((x, other)):
                    mass, law = laws[z][(t, value)]
                    if law:
                        masses[i, z] = float(mass)
                        noisy[i, z] = float(mass) * values @ [float(law.get(a, 0)) for a in answers]
            for w in range(len(answers)):
                worst = max(worst, climbed(masses, noisy[:, :, w]))
    return worst


def climbed(masses: np.ndarray, likelihood: np.ndarray) -> float:
    """Supremum over q > 0 of log (q·k_x / q·p_x) − log (q·k_x' / q·p_x'); two or three starts, in logarithms."""
    k = masses.shape[1]
    axis = np.concatenate([np.linspace(-60, 60, 241)])
    points = np.stack([a.ravel() for a in np.meshgrid(*[axis] * (k - 1), indexing="ij")], axis=1)
    best, step = -np.inf, 0.5
    for _ in range(4):
        q = np.exp(np.concatenate([np.zeros((len(points), 1)), points], axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (
                np.log(q @ likelihood[0]) - np.log(q @ masses[0]) - np.log(q @ likelihood[1]) + np.log(q @ masses[1])
            )
        found = np.where(np.isfinite(found), found, -np.inf)
        top = int(np.argmax(found))
        best = max(best, float(found[top]))
        around = np.linspace(-step, step, 21)
        points = points[top] + np.stack([a.ravel() for a in np.meshgrid(*[around] * (k - 1), indexing="ij")], axis=1)
        step /= 10
    return best


@pytest.mark.parametrize(("matrix", "length"), [ANY[0], ANY[1], ANY[4]], ids=str)
def test_the_search_over_initial_laws_is_what_listing_gives(matrix: Any, length: int) -> None:
    """The oracle itself: no listed start is above what climbing finds, and the search finds no more than the bound."""
    found = supremum(matrix, length, count(1), 1.0)
    assert found >= laplace_loss(worst_over_starts(matrix, length, count(1)), 1.0) - 1e-6
    assert found <= pf.ExactLaplace(pf.MarkovChain(matrix, "any"), length).loss(pf.Count(1), 1.0) + 1e-9
