"""Wasserstein distances and exact Laplace losses of queries on Markov chains, against the listing of all databases."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import CASES, Case, awkward, dyadic_law, dyadic_matrix
from enumeration import exact_stationary
from pufferfish.errors import ModelError, NotApplicableError
from query_checks import check, check_least, of_chains
from query_laws import (
    Databases,
    bottleneck,
    carried,
    count,
    farthest,
    grid,
    histogram,
    laplace_loss,
    laplace_loss_in_digits,
    loss_on,
    total,
    within,
)

SHORT = [case for case in CASES if case.length <= 6 or len(case.initial) == 2]


def of_case(case: Case) -> Databases:
    return Databases.of_chain(list(case.initial), case.transition, case.length)


@pytest.mark.parametrize("case", SHORT, ids=str)
def test_chains(case: Case) -> None:
    databases = of_case(case)
    check(lambda kind: kind(case.chain, case.length), of_chains(len(case.initial), case.length), databases.pairs)


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
    check(lambda kind: kind(chain, length), of_chains(k, length), databases.pairs)


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
        check(lambda kind, length=length: kind(chain, length), of_chains(len(start), length), databases.pairs)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("case", CASES[1:30:2], ids=str)
def test_the_least_noise_of_chains(case: Case, epsilon: float) -> None:
    databases = of_case(case)
    for query, ask in of_chains(len(case.initial), case.length)[:3]:
        pairs = databases.pairs(ask)
        if farthest(pairs) and laplace_loss(pairs, 1e-4) > epsilon:
            check_least(pf.ExactLaplace(case.chain, case.length), query, pairs, epsilon)


@pytest.mark.parametrize("epsilon", [1e-5, 2e-5])
def test_the_least_noise_is_never_more_than_enough_for_a_tiny_epsilon(epsilon: float) -> None:
    """The least ε that is taken: the distance between the laws may prove less noise than the loss that is computed."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])
    exact, wasserstein = (
        kind(chain, 100).calibrate(pf.Count(1), epsilon) for kind in (pf.ExactLaplace, pf.Wasserstein)
    )
    assert exact.scale <= wasserstein.scale * (1 + 1e-8)


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
    with pytest.raises(NotApplicableError, match="this one has 3 outputs"):
        pf.ExactLaplace(chain, length).loss(pf.Histogram(), 1.0)


# --- several chains, and classes -------------------------------------------------------------------------------------


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
    queries = of_chains(k, 2)[:4]
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
