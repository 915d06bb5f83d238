"""Queries on joint distributions, laws of one's own, cliques and networks, against the listing of all databases."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from awkward_chains import dyadic_law
from query_checks import Asked, Record, check, check_least, check_secrets
from query_laws import (
    Ask,
    Databases,
    Pair,
    bottleneck,
    count,
    farthest,
    histogram,
    laplace_loss,
    share,
    total,
    weighted,
)

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
