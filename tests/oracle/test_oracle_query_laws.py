"""Wasserstein distances and exact Laplace losses of queries on every model, against the listing of all databases."""

import itertools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import CASES, Case, awkward, dyadic_law, dyadic_matrix
from enumeration import exact_stationary
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, QueryError
from query_laws import (
    Ask,
    Databases,
    Pair,
    bottleneck,
    carried,
    count,
    farthest,
    grid,
    histogram,
    laplace_loss,
    laplace_loss_in_digits,
    loss_on,
    share,
    total,
    weighted,
    within,
)

ROUNDING = 1e-9

Asked = tuple[pf.queries.Query, Ask]


def all_queries(k: int, length: int) -> list[Asked]:
    """Queries that one number decides, with what they mean."""
    values = [0.5, -1, 2.25][:k]
    factors = [(3 * t + 1) % 5 - 1 for t in range(length)]
    factors[0] = factors[0] or 2
    found: list[Asked] = [
        (pf.Count(1), count(1)),
        (pf.Frequency([0]), share(count(0))),
        (pf.Sum(values), total(values)),
        (pf.Mean({str(x): v for x, v in enumerate(values)}), share(total(values))),
        (pf.Weighted(pf.Count(1), factors), weighted(lambda x: Fraction(x == 1), factors)),
    ]
    if length > 2:
        found.append((pf.Window(pf.Sum(values), 1, length - 1), within(total(values), 1, length - 1)))
        found.append((pf.Window(pf.Frequency(1), 0, 2), within(share(count(1)), 0, 2)))
    return found


def check(
    make: Callable[..., Any],
    queries: Sequence[Asked],
    pairs_of: Callable[[Ask], list[Pair]],
    *,
    scales: Sequence[float] = (0.7, 3.0),
) -> None:
    """W, the loss and the least noise of every query are those of the laws listed."""
    for query, ask in queries:
        pairs = pairs_of(ask)
        truth = farthest(pairs)
        wasserstein, exact = make(pf.Wasserstein), make(pf.ExactLaplace)
        assert wasserstein.distance(query) == float(truth), query
        for scale in scales:
            true = laplace_loss(pairs, scale)
            assert true - ROUNDING <= exact.loss(query, scale) <= true + ROUNDING, (query, scale)
        if not truth:
            for bound in (wasserstein, exact):
                with pytest.raises((ModelError, NotApplicableError), match=r"nothing to hide|the same whichever"):
                    bound.calibrate(query, 1.0)
            continue
        found = wasserstein.calibrate(query, 0.8)
        assert found.scale == pytest.approx(float(truth) / 0.8, rel=1e-9)
        assert found.scale >= float(truth) / 0.8 * (1 - 1e-15)
        assert laplace_loss(pairs, found.scale) <= 0.8 + 1e-12


def check_least(exact: pf.ExactLaplace, query: pf.queries.Query, pairs: list[Pair], epsilon: float) -> None:
    """The calibrated noise leaks at most ε, and a thousandth less leaks more."""
    scale = exact.calibrate(query, epsilon).scale
    assert laplace_loss(pairs, scale) <= epsilon + 1e-12
    assert laplace_loss(pairs, 0.999 * scale) > epsilon


# --- chains ----------------------------------------------------------------------------------------------------------

SHORT = [case for case in CASES if case.length <= 6 or len(case.initial) == 2]


def of_case(case: Case) -> Databases:
    return Databases.of_chain(list(case.initial), case.transition, case.length)


@pytest.mark.parametrize("case", SHORT, ids=str)
def test_chains(case: Case) -> None:
    databases = of_case(case)
    check(lambda kind: kind(case.chain, case.length), all_queries(len(case.initial), case.length), databases.pairs)


@pytest.mark.parametrize("seed", range(12))
def test_stationary_chains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, length = 2 + seed % 2, int(rng.integers(2, 8 if seed % 2 == 0 else 6))
    while True:
        matrix = dyadic_matrix(rng, k, 0.3 if seed % 3 == 0 else 0.0)
        try:
            chain = pf.MarkovChain(matrix)
        except ModelError:
            continue
        break
    databases = Databases.of_chain(exact_stationary(matrix), matrix, length)
    check(lambda kind: kind(chain, length), all_queries(k, length), databases.pairs)


@pytest.mark.parametrize(
    ("matrix", "initial"),
    [
        ([["1/3", "2/3"], ["2/3", "1/3"]], ["1/2", "1/2"]),
        ([["1/7", "6/7"], ["1/7", "6/7"]], ["1/7", "6/7"]),
        ([["0.3", "0.7"], ["0.3", "0.7"]], ["0.1", "0.9"]),
        ([["0.9", "0.1"], ["0.1", "0.9"]], ["1/2", "1/2"]),
        ([["1/3", "1/3", "1/3"]] * 3, ["1/3", "1/3", "1/3"]),
        ([["0.1", "0.2", "0.7"]] * 3, ["0.7", "0.2", "0.1"]),
        ([["0", "1/3", "2/3"], ["2/3", "0", "1/3"], ["1/3", "2/3", "0"]], ["1/3", "1/3", "1/3"]),
        ([["0.2", "0.8"], ["0.8", "0.2"]], ["0.2", "0.8"]),
    ],
    ids=str,
)
def test_ties_that_doubles_cannot_hold(matrix: list[list[str]], initial: list[str]) -> None:
    """Cumulative masses that are equal as fractions, in chains whose entries no double holds."""
    exact = [[Fraction(v) for v in row] for row in matrix]
    start = [Fraction(v) for v in initial]
    chain = pf.MarkovChain([[float(v) for v in row] for row in exact], [float(v) for v in start])
    for length in (2, 5):
        databases = Databases.of_chain(start, np.array(exact, dtype=object), length)
        check(lambda kind, length=length: kind(chain, length), all_queries(len(start), length), databases.pairs)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("case", CASES[1:30:2], ids=str)
def test_the_least_noise_of_chains(case: Case, epsilon: float) -> None:
    databases = of_case(case)
    for query, ask in all_queries(len(case.initial), case.length)[:3]:
        pairs = databases.pairs(ask)
        if farthest(pairs) and laplace_loss(pairs, 1e-4) > epsilon:
            check_least(pf.ExactLaplace(case.chain, case.length), query, pairs, epsilon)


def test_laws_that_differ_by_less_than_epsilon_need_next_to_no_noise() -> None:
    """Both secrets leave every answer possible, and hardly change the odds: the loss stays finite."""
    chain = pf.MarkovChain([[0.5, 0.5], [0.5625, 0.4375]], [0.5, 0.5])
    pairs = Databases.of_chain([0.5, 0.5], [[0.5, 0.5], [0.5625, 0.4375]], 3).pairs(within(count(1), 1, 3))
    query = pf.Window(pf.Count(1), 1, 3)
    secrets = [(pf.RecordIs(0, 0), pf.RecordIs(0, 1))]
    exact = pf.ExactLaplace(chain, 3, secrets=secrets)
    most = laplace_loss(pairs[:1], 1e-3)
    assert 0.1 < most < 1
    found = exact.calibrate(query, 2.0)
    assert 0 < found.scale < 1e-3
    assert found.prove_leakage() <= 2.0
    assert exact.loss(query, 0.01) == pytest.approx(most, abs=1e-9)
    assert exact.calibrate(query, most / 2).scale > 0.1


@pytest.mark.parametrize("case", [*CASES[:3], *CASES[17:20], CASES[21]], ids=str)
def test_the_supremum_is_at_atoms_and_at_infinity(case: Case) -> None:
    """50 digits: nothing between or beyond the atoms is larger, and what is computed is the largest at the atoms."""
    databases = of_case(case)
    values = [0, 2, 5][: len(case.initial)]
    exact = pf.ExactLaplace(case.chain, case.length)
    for scale in (0.4, 5.0):
        losses = [laplace_loss_in_digits(mu, nu, scale) for mu, nu in databases.pairs(total(values))]
        decides, elsewhere = (max((both[i] for both in losses), default=Decimal(0)) for i in (0, 1))
        assert elsewhere - decides <= Decimal(10) ** -40
        found = exact.loss(pf.Sum(values), scale)
        assert float(decides) - 1e-14 <= found <= float(decides) + 1e-10


@pytest.mark.parametrize("scale", [0.3, 1.0, 6.0])
@pytest.mark.parametrize("case", [case for case in CASES if len(case.initial) == 2][:8], ids=str)
def test_a_histogram_of_two_states_has_two_noises(case: Case, scale: float) -> None:
    """Two independent noises on two outputs: the loss over a grid of outputs of the plane, between atoms too."""
    pairs = of_case(case).pairs(histogram(2))
    if not pairs:
        return
    exact = pf.ExactLaplace(case.chain, case.length)
    true = laplace_loss(pairs, scale, 3)
    assert laplace_loss(pairs, scale) == pytest.approx(true, abs=1e-12)
    assert exact.loss(pf.Histogram(relative=False), scale) == pytest.approx(true, abs=1e-9)
    assert exact.loss(pf.Histogram(), scale / case.length) == pytest.approx(true, abs=1e-9)
    assert pf.Wasserstein(case.chain, case.length).distance(pf.Histogram(relative=False)) == float(
        farthest(pairs, bottleneck)
    )


@pytest.mark.parametrize("seed", range(8))
def test_histograms_of_three_states(seed: int) -> None:
    """Vectors: the exact L1 bottleneck; ExactLaplace says that no single number decides."""
    rng = np.random.default_rng(seed)
    length = 2 + seed % 3
    start = np.eye(3)[seed % 3] if seed % 4 == 0 else dyadic_law(rng, 3, 0.2, bits=6)
    matrix = dyadic_matrix(rng, 3, (0.0, 0.3)[seed % 2])
    pairs = Databases.of_chain(list(start), matrix, length).pairs(histogram(3))
    chain = pf.MarkovChain(matrix, start)
    bound = pf.Wasserstein(chain, length)
    truth = farthest(pairs, bottleneck)
    assert bound.distance(pf.Histogram(relative=False)) == float(truth)
    assert bound.distance(pf.Histogram()) == pytest.approx(float(truth) / length, rel=1e-12)
    if truth:
        scale = bound.calibrate(pf.Histogram(relative=False), 1.5).scale
        assert scale == pytest.approx(float(truth) / 1.5, rel=1e-9)
        assert laplace_loss(pairs, scale) <= 1.5 + 1e-12
    with pytest.raises(NotApplicableError, match="3 outputs that no single"):
        pf.ExactLaplace(chain, length).loss(pf.Histogram(), 1.0)


# --- several chains --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_total_of_several_chains(seed: int) -> None:
    """Lengths [3, 2, 2]: the query is of all records, whichever chain the secret is in."""
    rng = np.random.default_rng(seed)
    k = 2 + (seed == 5)
    lengths = [[3, 2, 2], [2, 3], [1, 1, 4], [2, 2, 2], [5, 1], [2, 2]][seed]
    start, matrix = dyadic_law(rng, k, 0.3), dyadic_matrix(rng, k, 0.3)
    databases = Databases({(): Fraction(1)})
    for length in lengths:
        databases = databases * Databases.of_chain(list(start), matrix, length)
    queries = all_queries(k, 2)[:4]
    chain = pf.MarkovChain(matrix, start)
    check(lambda kind: kind(chain, lengths), queries, databases.pairs)
    if k == 2:
        truth = laplace_loss(databases.pairs(histogram(2)), 2.0)
        assert pf.ExactLaplace(chain, lengths).loss(pf.Histogram(relative=False), 2.0) == pytest.approx(truth, abs=1e-9)


def test_other_chains_blur() -> None:
    """The law of the total, not of one chain: another chain fills its gaps, and less has to move."""
    start, matrix = [0.5, 0.25, 0.25], [[0.5, 0, 0.5], [0, 0.5, 0.5], [0.25, 0.25, 0.5]]
    one = Databases.of_chain(start, matrix, 2)
    alone, among = (farthest(databases.pairs(total([0, 1, 3]))) for databases in (one, one * one))
    assert among < alone
    chain, query = pf.MarkovChain(matrix, start), pf.Sum([0, 1, 3])
    assert [pf.Wasserstein(chain, lengths).distance(query) for lengths in ([2], [2, 2])] == [alone, among] == [6, 5]


# --- classes, and every initial distribution -------------------------------------------------------------------------


def test_the_worst_theta_decides() -> None:
    cases = [
        awkward("one", [1, 0], [[0.75, 0.25], [0.375, 0.625]], 5),
        awkward("two", [0.5, 0.5], [[0.25, 0.75], [0.875, 0.125]], 5),
    ]
    theta = [case.chain for case in cases]
    pairs = {case.name: of_case(case).pairs(count(1)) for case in cases}
    for scale in (0.5, 2.0, 8.0):
        each = [laplace_loss(own, scale) for own in pairs.values()]
        assert pf.ExactLaplace(theta, 5).loss(pf.Count(1), scale) == pytest.approx(max(each), abs=1e-9)
    assert pf.Wasserstein(theta, 5).distance(pf.Count(1)) == max(float(farthest(own)) for own in pairs.values())


def starts(rng: np.random.Generator, k: int) -> list[list[Fraction]]:
    """Initial laws: corners, next to corners, edges, and inside."""
    found = [[Fraction(int(x == y)) for y in range(k)] for x in range(k)]
    for tiny in (Fraction(1, 10**9), Fraction(1, 10**3)):
        for x in range(k):
            for y in range(k):
                if x != y:
                    law = [Fraction(0)] * k
                    law[x], law[y] = 1 - tiny, tiny
                    found.append(law)
            found.append([1 - (k - 1) * tiny if y == x else tiny for y in range(k)])
    for x, y in itertools.combinations(range(k), 2):
        for part in (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)):
            law = [Fraction(0)] * k
            law[x], law[y] = part, 1 - part
            found.append(law)
    found += [[Fraction(float(v)) for v in dyadic_law(rng, k)] for _ in range(8)]
    return found


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


def any_queries(k: int, length: int) -> list[Asked]:
    factors = [1, 0, -2, 1, 3][:length]
    return [
        (pf.Count(1), count(1)),
        (pf.Sum([0.5, -1, 2][:k]), total([0.5, -1, 2][:k])),
        (pf.Window(pf.Count(0), 1, length), within(count(0), 1, length)),
        (pf.Weighted(pf.Count(1), factors), weighted(lambda x: Fraction(x == 1), factors)),
    ]


def worst_over_starts(matrix: Any, length: int, ask: Ask, secrets: Any = None) -> list[Pair]:
    rng = np.random.default_rng(0)
    return [
        pair
        for start in starts(rng, len(matrix))
        for pair in Databases.of_chain(start, matrix, length).pairs(ask, secrets)
    ]


@pytest.mark.parametrize(("matrix", "length"), ANY, ids=str)
def test_every_initial_distribution_is_covered(matrix: Any, length: int) -> None:
    """No start leaks more: corners, next to them (1e-9), edges, inside."""
    chain = pf.MarkovChain(matrix, "any")
    wasserstein, exact = pf.Wasserstein(chain, length), pf.ExactLaplace(chain, length)
    for query, ask in any_queries(chain.k, length):
        pairs = worst_over_starts(matrix, length, ask)
        assert wasserstein.distance(query) >= float(farthest(pairs))
        for scale in (0.7, 4.0):
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


ANY_IS_TIGHT = True
"""Set once the supremum over initial laws is computed rather than bounded."""


@pytest.mark.skipif(not ANY_IS_TIGHT, reason='the bound for initial_distribution="any" is not tight yet')
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


# --- secrets of one's own --------------------------------------------------------------------------------------------

Record = pf.RecordIs


def chain_secrets(k: int, length: int) -> list[tuple[str, Any, Any]]:
    """Pairs of secrets, with what they mean of a row of states."""
    last = length - 1
    found: list[tuple[str, Any, Any]] = [
        (
            "several states",
            (Record(1, [0, 1]), Record(1, [k - 1])),
            (lambda r: r[1] in (0, 1), lambda r: r[1] == k - 1),
        ),
        ("across records", (Record(0, 1), Record(last, 0)), (lambda r: r[0] == 1, lambda r: r[last] == 0)),
        (
            "both ends",
            (Record(0, 0) & Record(last, 0), Record(0, 1) & Record(last, 1)),
            (lambda r: r[0] == r[last] == 0, lambda r: r[0] == r[last] == 1),
        ),
        (
            "counts",
            (pf.CountIs(1, at_least=2), pf.CountIs(1, at_most=1)),
            (lambda r: r.count(1) >= 2, lambda r: r.count(1) < 2),
        ),
        (
            "a count and a record",
            (pf.CountIs([0], 1, 2) & Record(last, 1), pf.CountIs([0], at_most=0)),
            (lambda r: 1 <= r.count(0) <= 2 and r[last] == 1, lambda r: r.count(0) == 0),
        ),
        (
            "two counts",
            (pf.CountIs(0, at_least=1) & pf.CountIs(1, at_least=1), Record(0, 0) & pf.CountIs(0, length)),
            (lambda r: 0 in r and 1 in r, lambda r: r.count(0) == length),
        ),
        ("contradictory", (Record(0, 0) & Record(0, 1), Record(0, 1)), (lambda r: False, lambda r: r[0] == 1)),
        ("overlapping", (Record(0, 0), pf.CountIs(0, at_least=1)), (lambda r: r[0] == 0, lambda r: 0 in r)),
    ]
    if k == 3:
        found.append(
            (
                "all but one state",
                (Record(0, [0, 2]) & pf.CountIs([1, 2], at_least=1), pf.CountIs([1, 2], at_least=2)),
                (lambda r: r[0] != 1 and sum(x > 0 for x in r) >= 1, lambda r: sum(x > 0 for x in r) >= 2),
            ),
        )
    return found


def check_secrets(
    make: Callable[..., Any], queries: Sequence[Asked], databases: Databases, cases: Sequence[tuple[str, Any, Any]]
) -> None:
    for _, secrets, meant in cases:
        check(
            lambda kind, s=secrets: make(kind, [s]),
            queries,
            lambda ask, m=meant: databases.pairs(ask, [m]),
            scales=[1.0],
        )
    secrets, meant = [case[1] for case in cases[:4]], [case[2] for case in cases[:4]]
    check(lambda kind: make(kind, secrets), queries[:2], lambda ask: databases.pairs(ask, meant))


@pytest.mark.parametrize("case", [CASES[1], CASES[4], CASES[6], CASES[11], CASES[17], CASES[21], CASES[24]], ids=str)
def test_secrets_of_chains(case: Case) -> None:
    k, length = len(case.initial), min(case.length, 5)
    databases = Databases.of_chain(list(case.initial), case.transition, length)
    queries = all_queries(k, length)
    queries = [queries[0], queries[2], *queries[4:6]]
    check_secrets(
        lambda kind, secrets: kind(case.chain, length, secrets=secrets), queries, databases, chain_secrets(k, length)
    )


@pytest.mark.parametrize("seed", range(3))
def test_secrets_of_several_chains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    start, matrix, lengths = dyadic_law(rng, 2), dyadic_matrix(rng, 2, 0.2), [3, 2, 2]
    chain = pf.MarkovChain(matrix, start)
    one, two = (Databases.of_chain(list(start), matrix, length) for length in (3, 2))
    cases = [
        ("one", (Record((0, 1), 0), Record((0, 1), 1)), (lambda r: r[1] == 0, lambda r: r[1] == 1)),
        (
            "across",
            (Record((0, 2), 0) & Record((2, 0), 1), Record((1, 1), 1)),
            (lambda r: r[2] == 0 and r[5] == 1, lambda r: r[4] == 1),
        ),
        (
            "all",
            (pf.CountIs(1, at_least=4), pf.CountIs(1, at_most=3)),
            (lambda r: r.count(1) >= 4, lambda r: r.count(1) < 4),
        ),
        (
            "all and one",
            (pf.CountIs(0, 3, 5) & Record((1, 0), 1), Record((2, 1), [0])),
            (lambda r: 3 <= r.count(0) <= 5 and r[3] == 1, lambda r: r[6] == 0),
        ),
    ]
    check_secrets(
        lambda kind, secrets: kind(chain, lengths, secrets=secrets), all_queries(2, 2)[:3], one * two * two, cases
    )


@pytest.mark.parametrize(("matrix", "length"), [ANY[0], ANY[2], ANY[5]], ids=str)
def test_secrets_under_every_initial_distribution(matrix: Any, length: int) -> None:
    chain = pf.MarkovChain(matrix, "any")
    for _, secrets, meant in chain_secrets(chain.k, length)[:5]:
        pairs = worst_over_starts(matrix, length, count(1), [meant])
        exact = pf.ExactLaplace(chain, length, secrets=[secrets])
        assert exact.loss(pf.Count(1), 1.0) >= laplace_loss(pairs, 1.0) - 1e-12
        assert pf.Wasserstein(chain, length, secrets=[secrets]).distance(pf.Count(1)) >= farthest(pairs)


CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [0.5, 0.5])


@pytest.mark.parametrize(
    "secret", [Record(3, 0), Record(-1, 0), Record("x", 0), Record((0, 7), 0), Record(0, "nobody")], ids=str
)
def test_secrets_about_nothing_are_refused(secret: Any) -> None:
    with pytest.raises(ParameterError, match="there is no"):
        pf.Wasserstein(CHAIN, 3, secrets=[(secret, Record(0, 1))]).distance(pf.Count(1))


JOINT = pf.JointDistribution([["0", "1"], ["1", "0"], ["1", "1"]], [0.25, 0.25, 0.5])
NETWORK = pf.BayesianNetwork({"a": pf.CPT([0, 1], [0.5, 0.5]), "b": pf.CPT([0, 1], [[0.5, 0.5], [0.25, 0.75]], ["a"])})


@pytest.mark.parametrize(
    "model",
    [
        pytest.param([CHAIN, 3], id="chain"),
        pytest.param([NETWORK], id="network"),
        pytest.param([JOINT], id="joint"),
        pytest.param([pf.Cliques([0.25, 0.5, 0.25])], id="cliques"),
    ],
)
def test_counts_of_states_that_do_not_exist_are_refused(model: list[Any]) -> None:
    """A misspelt state would make a secret that is never true, and its pair would be left out without a word."""
    misspelt = (pf.CountIs("misspelt", at_least=1), pf.CountIs(1, at_least=1))
    sound = (pf.CountIs(1, 0, 0), pf.CountIs(1, at_least=1))
    with pytest.raises(ParameterError, match="misspelt"):
        pf.Wasserstein(*model, secrets=[misspelt, sound]).distance(pf.Count(1))


def test_neighbouring_numbers_as_secrets() -> None:
    """Whether 0 or 1, 1 or 2, … records are in a state: many pairs about one count."""
    length = 8
    secrets = [(pf.CountIs(1, n, n), pf.CountIs(1, n + 1, n + 1)) for n in range(length)]
    meant = [(lambda r, n=n: r.count(1) == n, lambda r, n=n: r.count(1) == n + 1) for n in range(length)]
    databases = Databases.of_chain([0.5, 0.5], [[0.75, 0.25], [0.375, 0.625]], length)
    chain = pf.MarkovChain([[0.75, 0.25], [0.375, 0.625]], [0.5, 0.5])
    queries: list[Asked] = [(pf.Count(1), count(1)), (pf.Window(pf.Count(1), 0, 4), within(count(1), 0, 4))]
    check(lambda kind: kind(chain, length, secrets=secrets), queries, lambda ask: databases.pairs(ask, meant))


def test_no_scale_is_called_too_small_that_is_enough() -> None:
    """The lower bound is about any two values of any record; here the secrets say less, and less noise is enough."""
    matrix, start, length = [[0.875, 0.125], [0.375, 0.625]], [0.5, 0.5], 7
    secrets = [(Record(0, 0) & Record(5, 1), Record(0, 1) & Record(5, 1))]
    meant = [(lambda r: r[0] == 0 and r[5] == 1, lambda r: r[0] == r[5] == 1)]
    found = pf.ExactLaplace(pf.MarkovChain(matrix, start), length, secrets=secrets).calibrate(pf.Count(1), 1.0)
    pairs = Databases.of_chain(start, matrix, length).pairs(count(1), meant)
    assert laplace_loss(pairs, found.scale) <= 1 + 1e-12
    assert laplace_loss(pairs, 0.999 * found.scale) > 1
    assert found.lower_bound <= found.scale


@pytest.mark.parametrize("epsilon", [1e-11, 1e-12])
def test_the_least_noise_is_never_more_than_enough_for_a_tiny_epsilon(epsilon: float) -> None:
    """The error of the computed loss is above such an ε; the distance between the laws proves less noise, exactly."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])
    exact, wasserstein = (
        kind(chain, 100).calibrate(pf.Count(1), epsilon) for kind in (pf.ExactLaplace, pf.Wasserstein)
    )
    assert exact.scale <= wasserstein.scale * (1 + 1e-8)


def test_a_clique_has_nobody_in_no_state() -> None:
    """That at most 0 people are well or ill is impossible, as it is in every other model; the pair is left out."""
    impossible = (pf.CountIs(["0", "1"], at_most=0), Record(0, 1))
    joint = pf.JointDistribution([["0", "1"], ["1", "0"]], [0.5, 0.5])
    for model in (joint, pf.Cliques([0, 1, 0])):
        with pytest.raises(ModelError, match="nothing to hide"):
            pf.Wasserstein(model, secrets=[impossible]).calibrate(pf.Sum([0, 1]), 1.0)


# --- joint distributions, and laws of one's own ----------------------------------------------------------------------


def random_joint(seed: int) -> tuple[pf.JointDistribution, Databases]:
    rng = np.random.default_rng(seed)
    k, n = 2 + seed % 2, int(rng.integers(2, 5))
    rows = [tuple(int(v) for v in rng.integers(0, k, n)) for _ in range(int(rng.integers(4, 14)))]
    rows += [(x,) * n for x in range(k)]
    masses = [Fraction(int(v), 7) for v in rng.integers(1, 9, len(rows))]
    masses = [m / sum(masses) for m in masses]
    names = ["abcd"[x] for x in range(k)]
    joint = pf.JointDistribution(
        [[names[x] for x in row] for row in rows], masses, variables=[f"r{t}" for t in range(n)], states=names
    )
    return joint, Databases.listed(rows, masses)


@pytest.mark.parametrize("seed", range(10))
def test_joint_distributions(seed: int) -> None:
    joint, databases = random_joint(seed)
    k, n = len(joint.states), databases.records
    values = [0.5, -1, 2.25][:k]
    largest = pf.Function(lambda row: max("abcd".index(v) for v in row.values()) / 2, "half the largest", unit=0.5)
    runs = pf.Function(
        lambda row: [3 * sum(v == row["r0"] for v in row.values()), sum(v == row["r0"] for v in row.values())],
        ["a", "b"],
    )
    queries: list[Asked] = [
        (pf.Count("b"), count(1)),
        (pf.Sum(values), total(values)),
        (pf.Weighted(pf.Count("a"), range(1, n + 1)), weighted(lambda x: Fraction(x == 0), range(1, n + 1))),
        (largest, lambda row: Fraction(max(row), 2)),
    ]
    check(lambda kind: kind(joint), queries, databases.pairs)
    # two outputs on a line, each with its own noise: on a grid of the plane
    pairs = databases.pairs(lambda row: (3 * Fraction(row.count(row[0])), Fraction(row.count(row[0]))))
    assert pf.Wasserstein(joint).distance(runs) == farthest(pairs, bottleneck)
    for scale in (1.0, 6.0):
        assert pf.ExactLaplace(joint).loss(runs, scale) == pytest.approx(laplace_loss(pairs, scale, 6), abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_facts_about_joint_distributions(seed: int) -> None:
    joint, databases = random_joint(seed)
    same = pf.Fact("first and last are the same", lambda row: row["r0"] == row[joint.variables[-1]])
    differ = pf.Fact("first and last differ", lambda row: row["r0"] != row[joint.variables[-1]])
    cases = [
        ("facts", (same, differ), (lambda r: r[0] == r[-1], lambda r: r[0] != r[-1])),
        (
            "facts and records",
            (same & Record("r0", "a"), differ & pf.CountIs("b", at_least=1)),
            (lambda r: r[0] == r[-1] == 0, lambda r: r[0] != r[-1] and 1 in r),
        ),
        (
            "several states",
            (Record("r1", ["a", "b"]), pf.CountIs(["a", "b"], at_most=1)),
            (lambda r: r[1] in (0, 1), lambda r: sum(x in (0, 1) for x in r) <= 1),
        ),
        ("impossible", (pf.Fact("never", lambda row: False), same), (lambda r: False, lambda r: r[0] == r[-1])),
    ]
    queries: list[Asked] = [(pf.Count("b"), count(1)), (pf.Frequency("a"), share(count(0)))]
    check_secrets(lambda kind, secrets: kind(joint, secrets=secrets), queries, databases, cases)


@pytest.mark.parametrize("seed", range(8))
def test_histograms_of_joint_distributions(seed: int) -> None:
    joint, databases = random_joint(seed)
    pairs = databases.pairs(histogram(len(joint.states)))
    assert pf.Wasserstein(joint).distance(pf.Histogram(relative=False)) == farthest(pairs, bottleneck)


def test_facts_need_databases_that_are_listed() -> None:
    fact = pf.Fact("first and last are the same", lambda row: row[0] == row[2])
    with pytest.raises(NotApplicableError, match="use a JointDistribution"):
        pf.Wasserstein(CHAIN, 3, secrets=[(fact, Record(0, 1))]).distance(pf.Count(1))
    with pytest.raises(QueryError, match="needs a JointDistribution"):
        pf.Wasserstein(CHAIN, 3).distance(pf.Function(lambda row: 1, "one"))


@pytest.mark.parametrize("seed", range(8))
def test_laws_of_ones_own(seed: int) -> None:
    """The same joint distributions, their laws computed outside: floats and fractions, numbers and vectors."""
    joint, databases = random_joint(seed)
    k, n = len(joint.states), databases.records

    def laws_of(ask: Ask, write: Any) -> dict[str, dict[Any, Any]]:
        return {
            f"record 0 is {name}": {
                tuple(write(v) for v in a) if isinstance(a, tuple) else write(a): write(m) for a, m in law.items()
            }
            for x, name in enumerate(joint.states)
            if (law := databases.given(ask, lambda r, x=x: r[0] == x))
        }

    def pairs(ask: Ask) -> list[Pair]:
        return databases.pairs(
            ask, [(lambda r, x=x: r[0] == x, lambda r, y=y: r[0] == y) for x, y in itertools.combinations(range(k), 2)]
        )

    values = [0.5, -1, 2.25][:k]
    asks = {pf.Count("b"): count(1), pf.Mean(values): share(total(values)), pf.Frequency("a"): share(count(0))}
    for write in (Fraction, float):
        # a mean is on a grid of its own: a float next to a multiple of the unit stands for it
        theta = pf.GivenLaws(lambda query, write=write: laws_of(asks[query], write), records=n, states=joint.states)
        check(lambda kind, theta=theta: kind(theta), list(asks.items()), pairs)
        counts = pf.Histogram(relative=False)
        vectors = pf.GivenLaws(laws_of(histogram(k), write), records=n, states=joint.states, query=counts)
        assert pf.Wasserstein(vectors).distance(counts) == farthest(pairs(histogram(k)), bottleneck)


def test_pairs_of_given_laws() -> None:
    laws = {"a": {0: 1.0}, "b": {1: 1.0}, "c": {5: 1.0}}
    for pairs, truth in ((None, 5), ([("a", "b")], 1), ([("b", "c")], 4), ([("a", "b"), ("c", "b")], 4)):
        theta = pf.GivenLaws(laws, records=5, states=[0, 1], pairs=pairs, query=pf.Count(1))
        assert pf.Wasserstein(theta).distance(pf.Count(1)) == truth
        assert pf.ExactLaplace(theta).calibrate(pf.Count(1), 0.5).scale == pytest.approx(2 * truth, rel=1e-8)


# --- cliques ---------------------------------------------------------------------------------------------------------


def random_cliques(seed: int) -> tuple[pf.Cliques, Databases]:
    rng = np.random.default_rng(seed)
    laws: list[list[Fraction]] = []
    for _ in range(1 + seed % 3):
        weights = rng.integers(1, 30, int(rng.integers(1, 5)) + 1)
        weights[1:][rng.random(len(weights) - 1) < 0.25] = 0
        laws.append([Fraction(int(w), int(weights.sum())) for w in weights])
    if seed % 4 == 3 and len(laws) > 1:
        laws[1] = laws[0]
    databases = Databases({(): Fraction(1)})
    for law in laws:
        databases = databases * Databases.of_clique(law)
    return pf.Cliques(laws, states=["well", "ill"]), databases


@pytest.mark.parametrize("seed", range(16))
def test_cliques(seed: int) -> None:
    """Unions of up to three cliques of up to four people, person by person."""
    cliques, databases = random_cliques(seed)
    queries: list[Asked] = [
        (pf.Count("ill"), count(1)),
        (pf.Frequency("well"), share(count(0))),
        (pf.Sum([-2, 0.5]), total([-2, 0.5])),
    ]
    check(lambda kind: kind(cliques), queries, databases.pairs)
    pairs = databases.pairs(histogram(2))
    if pairs:
        assert pf.Wasserstein(cliques).distance(pf.Histogram(relative=False)) == farthest(pairs, bottleneck)
        assert pf.ExactLaplace(cliques).loss(pf.Histogram(relative=False), 2.0) == pytest.approx(
            laplace_loss(pairs, 2.0), abs=1e-9
        )
        query, ask = queries[seed % 2]
        if laplace_loss(databases.pairs(ask), 1e-4) > 0.7:
            check_least(pf.ExactLaplace(cliques), query, databases.pairs(ask), 0.7)


@pytest.mark.parametrize("seed", [1, 2, 4, 5, 7, 8, 10, 11])
def test_secrets_of_cliques(seed: int) -> None:
    cliques, databases = random_cliques(seed)
    sizes = cliques.groups
    at = [sum(sizes[:c]) for c in range(len(sizes))]
    end, last = len(sizes) - 1, databases.records - 1
    one, other = ((0, 0), (end, sizes[end] - 1)) if end else (0, sizes[0] - 1)
    cases = [
        ("across cliques", (Record(one, "ill"), Record(other, "well")), (lambda r: r[0] == 1, lambda r: r[last] == 0)),
        (
            "together",
            (Record(one, "ill") & Record(other, "ill"), Record(one, "well") & Record(other, "well")),
            (lambda r: r[0] == r[last] == 1, lambda r: r[0] == r[last] == 0),
        ),
        (
            "one of each",
            (Record(one, "ill") & Record(other, "well"), Record(other, "ill")),
            (lambda r: r[0] == 1 and r[last] == 0, lambda r: r[last] == 1),
        ),
        ("whatever", (Record(one, ["well", "ill"]), Record(one, "ill")), (lambda r: True, lambda r: r[0] == 1)),
        (
            "outbreak",
            (pf.CountIs("ill", at_least=2), pf.CountIs("ill", at_most=1)),
            (lambda r: sum(r) >= 2, lambda r: sum(r) < 2),
        ),
        (
            "outbreak, and the well",
            (pf.CountIs("well", 1, 2) & Record(one, "ill"), pf.CountIs("ill", at_least=1)),
            (lambda r: 1 <= r.count(0) <= 2 and r[0] == 1, lambda r: sum(r) >= 1),
        ),
        (
            "two ranges",
            (pf.CountIs("ill", at_least=1) & pf.CountIs("well", at_least=1), pf.CountIs("ill", at_most=0)),
            (lambda r: 0 in r and 1 in r, lambda r: sum(r) == 0),
        ),
        (
            "everybody in some state",
            (pf.CountIs(["ill", "well"], at_least=1), Record(one, "ill")),
            (lambda r: True, lambda r: r[0] == 1),
        ),
    ]
    assert len(at) == len(sizes)
    check_secrets(
        lambda kind, secrets: kind(cliques, secrets=secrets),
        [(pf.Count("ill"), count(1)), (pf.Frequency("well"), share(count(0)))],
        databases,
        cases,
    )


# --- Bayesian networks -----------------------------------------------------------------------------------------------


def random_network(seed: int) -> tuple[pf.BayesianNetwork, Databases]:
    """Up to five nodes of two or three states, up to two parents each, tables with zeros."""
    rng = np.random.default_rng(seed)
    n = 2 + seed % 4
    sizes = [2 + int(rng.random() < 0.25 * (n < 5)) for _ in range(n)]
    parents = [
        sorted(int(v) for v in rng.choice(j, int(rng.integers(0, min(j, 2) + 1)), replace=False)) for j in range(n)
    ]
    tables = []
    for j in range(n):
        shape = [sizes[i] for i in parents[j]]
        rows = [dyadic_law(rng, sizes[j], 0.15, bits=6) for _ in range(math.prod(shape))]
        tables.append(np.array(rows).reshape(*shape, sizes[j]))
    cpts = {f"n{j}": pf.CPT(range(sizes[j]), tables[j], [f"n{i}" for i in parents[j]]) for j in range(n)}
    shuffled = [f"n{j}" for j in rng.permutation(n)]
    order = [int(name[1:]) for name in shuffled]
    listed = Databases.of_network(parents, tables)
    return (
        pf.BayesianNetwork({name: cpts[name] for name in shuffled}),
        Databases({tuple(row[j] for j in order): mass for row, mass in listed.law.items()}),
    )


@pytest.mark.parametrize("seed", range(20))
def test_networks(seed: int) -> None:
    network, databases = random_network(seed)
    k, n = len(network.states), databases.records
    values = {str(x): v for x, v in enumerate([0.5, -1, 2.25][:k])}
    in_order = [values[str(x)] for x in range(k)]
    queries: list[Asked] = [
        (pf.Count(1), count(1)),
        (pf.Sum(values), total(in_order)),
        (pf.Mean(values), share(total(in_order))),
        (pf.Weighted(pf.Count(0), range(-1, n - 1)), weighted(lambda x: Fraction(x == 0), range(-1, n - 1))),
    ]
    check(lambda kind: kind(network), queries, databases.pairs)
    pairs = databases.pairs(histogram(k))
    assert pf.Wasserstein(network).distance(pf.Histogram(relative=False)) == farthest(pairs, bottleneck)


@pytest.mark.parametrize("seed", range(10))
def test_secrets_of_networks(seed: int) -> None:
    network, databases = random_network(seed)
    place = {name: i for i, name in enumerate(network.nodes)}
    a, b = place["n0"], place["n1"]
    cases = [
        ("across", (Record("n0", 1), Record("n1", 0)), (lambda r: r[a] == 1, lambda r: r[b] == 0)),
        (
            "together",
            (Record("n0", [0, 1]) & Record("n1", 1), Record("n0", 0) & Record("n1", 0)),
            (lambda r: r[a] in (0, 1) and r[b] == 1, lambda r: r[a] == r[b] == 0),
        ),
        (
            "counts",
            (pf.CountIs(1, at_least=2), pf.CountIs(1, at_most=1) & Record("n0", 0)),
            (lambda r: r.count(1) >= 2, lambda r: r.count(1) < 2 and r[a] == 0),
        ),
    ]
    queries: list[Asked] = [(pf.Count(1), count(1)), (pf.Frequency(0), share(count(0)))]
    check_secrets(lambda kind, secrets: kind(network, secrets=secrets), queries, databases, cases)


# --- the oracle itself -----------------------------------------------------------------------------------------------


def test_the_grid_finds_what_only_a_corner_shows() -> None:
    """Two independent noises tell opposite corners apart, not what the coordinates tell one by one."""
    mu = {(Fraction(0), Fraction(0)): Fraction(1, 2), (Fraction(3), Fraction(3)): Fraction(1, 2)}
    nu = {(Fraction(0), Fraction(3)): Fraction(1, 2), (Fraction(3), Fraction(0)): Fraction(1, 2)}
    assert loss_on(mu, nu, 1.0, grid(mu, nu)) > 2
    for i in (0, 1):
        one, other = ({x: Fraction(1, 2) for x in {a[i] for a in law}} for law in (mu, nu))
        assert loss_on(one, other, 1.0, grid(one, other)) == 0


def test_augmenting_paths_reroute() -> None:
    mu = {Fraction(0): Fraction(1, 2), Fraction(2): Fraction(1, 2)}
    nu = {Fraction(1): Fraction(1, 2), Fraction(3): Fraction(1, 2)}
    assert [carried(mu, nu, Fraction(r)) for r in range(2)] == [0, 1]
    assert carried(mu, {Fraction(1): Fraction(3, 4), Fraction(9): Fraction(1, 4)}, Fraction(1)) == Fraction(3, 4)
