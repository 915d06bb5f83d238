"""Laws of additive integer queries against the enumeration of all databases in fractions, and closed forms far out."""

import itertools
import math
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from pufferfish._core.laws.of_networks import Factor, additive_law, all_node_laws
from pufferfish._core.numbers.wide import Wide
from pufferfish.errors import ModelError

Table = tuple[tuple[int, ...], NDArray[np.float64]]


@dataclass(frozen=True)
class Network:
    tables: list[Table]
    sizes: list[int]
    weights: list[NDArray[np.int64]]
    allowed: list[NDArray[np.bool_] | None]

    def enumerated(self, keep: int | None = None) -> dict[tuple[int, int], Fraction]:
        """Masses by (state of the node kept, value of the query), from every database there is."""
        exact = [
            (scope, {at: Fraction(float(table[at])) for at in np.ndindex(table.shape)}) for scope, table in self.tables
        ]
        found: dict[tuple[int, int], Fraction] = {}
        for x in itertools.product(*(range(k) for k in self.sizes)):
            if all(a is None or a[v] for a, v in zip(self.allowed, x, strict=True)):
                mass = math.prod((table[tuple(x[v] for v in scope)] for scope, table in exact), start=Fraction(1))
                key = (0 if keep is None else x[keep], sum(int(w[v]) for w, v in zip(self.weights, x, strict=True)))
                found[key] = found.get(key, Fraction(0)) + mass
        return found

    def law(self) -> Factor:
        return additive_law(self.tables, self.sizes, self.weights, self.allowed)

    def given(self, j: int, state: int) -> Factor:
        """The same together with one state of a variable, as evidence."""
        mask = np.arange(self.sizes[j]) == state
        before = self.allowed[j]
        allowed = [*self.allowed[:j], mask if before is None else mask & before, *self.allowed[j + 1 :]]
        return additive_law(self.tables, self.sizes, self.weights, allowed)

    def laws(self) -> dict[int, Factor]:
        found = list(all_node_laws(self.tables, self.sizes, self.weights, self.allowed))
        assert sorted(j for j, _ in found) == list(range(len(self.sizes)))
        return dict(found)


def agree(law: Factor, truth: dict[tuple[int, int], Fraction]) -> None:
    """Every mass to within the error that it comes with, compared in fractions; every zero exact."""
    assert law.log_error < 1e-12
    bound = Fraction(law.log_error)
    rows = [law.masses] if len(law.masses.shape) == 1 else [law.masses[x] for x in range(law.masses.shape[0])]
    found: dict[tuple[int, int], Fraction] = {}
    for x, row in enumerate(rows):
        digits, exponent = row.whole()
        found |= {(x, law.start + n): Fraction(d) / Fraction(2) ** exponent for n, d in enumerate(digits)}
    assert found.keys() >= {key for key, mass in truth.items() if mass}
    for key, mass in found.items():
        true = truth.get(key, Fraction(0))
        assert abs(mass - true) <= bound * true, key


def random_rows(rng: np.random.Generator, shape: Sequence[int]) -> NDArray[np.float64]:
    """Rows with exact zeros here and there, and masses of many sizes."""
    rows = rng.uniform(0, 1, tuple(shape)) ** rng.integers(1, 20, tuple(shape))
    rows[rng.random(rows.shape) < 0.25] = 0.0
    rows[..., 0] += (rows.sum(axis=-1) == 0) * 1.0
    return rows / rows.sum(axis=-1, keepdims=True)


def random_network(seed: int, nodes: int, *, most_parents: int, states: int, components: int = 1) -> Network:
    """Nodes in a random numbering; parents come from the same component."""
    rng = np.random.default_rng(seed)
    names = [int(v) for v in rng.permutation(nodes)]
    sizes = [int(k) for k in rng.integers(2, states + 1, nodes)]
    tables: list[Table] = []
    for i, node in enumerate(names):
        earlier = [names[e] for e in range(i) if e % components == i % components]
        count = min(len(earlier), int(rng.integers(most_parents > 1 and i % 3 == 0, most_parents + 1)))
        parents = [int(v) for v in rng.choice(earlier, count, replace=False)] if count else []
        tables.append(((*parents, node), random_rows(rng, [sizes[v] for v in (*parents, node)])))
    weights = [rng.integers(-4, 5, k) for k in sizes]
    allowed: list[NDArray[np.bool_] | None] = [None] * nodes
    for node in rng.choice(nodes, int(rng.integers(0, 3)), replace=False):
        mask = rng.random(sizes[node]) < 0.6
        mask[int(rng.integers(sizes[node]))] = True
        allowed[node] = mask
    return Network(tables, sizes, weights, allowed)


CASES = (
    [random_network(seed, 5 + seed % 2, most_parents=3, states=3) for seed in range(25)]
    + [random_network(100 + seed, 9, most_parents=1, states=2) for seed in range(10)]
    + [random_network(200 + seed, 6, most_parents=2, states=3, components=2 + seed % 3) for seed in range(15)]
)


@pytest.mark.parametrize("network", CASES, ids=range(len(CASES)))
def test_every_law_is_that_of_the_enumeration(network: Network) -> None:
    agree(network.law(), network.enumerated())
    together = network.laws()
    for j in range(len(network.sizes)):
        agree(together[j], network.enumerated(j))


def test_the_cases_have_what_makes_them_hard() -> None:
    assert sum(any(a is not None for a in c.allowed) for c in CASES) > 10
    assert sum(all(len(scope) <= 2 for scope, _ in c.tables) for c in CASES) > 10
    assert sum(any(len(scope) > 2 for scope, _ in c.tables) for c in CASES) > 20
    assert any(not mass for c in CASES for mass in c.enumerated().values())
    assert any(c.law().start < 0 for c in CASES)


def test_evidence_that_cannot_be_has_no_mass() -> None:
    tables: list[Table] = [((0,), np.array([1.0, 0.0])), ((0, 1), np.array([[0.5, 0.5], [0.1, 0.9]]))]
    weights = [np.array([0, 1])] * 2
    for allowed in ([np.array([False, True]), None], [np.array([False, False]), None]):
        network = Network(tables, [2, 2], weights, list(allowed))
        for law in (network.law(), network.given(1, 0), *network.laws().values()):
            assert not law.masses.positive.any()
        assert network.laws()[0].masses.shape[0] == 2


def test_a_table_of_its_own_and_a_constant_count() -> None:
    """Several tables over the same variables, a variable without any, and a table over none."""
    tables: list[Table] = [
        ((1, 0), np.array([[1.0, 2.0], [0.0, 4.0]])),
        ((0, 1), np.array([[0.5, 0.25], [0.125, 0.75]])),
        ((), np.array(0.5)),
        ((1,), np.array([3.0, 1.0])),
    ]
    network = Network(tables, [2, 2, 3], [np.array([0, 5]), np.array([-2, 1]), np.array([0, 7, 7])], [None] * 3)
    agree(network.law(), network.enumerated())
    for j, law in network.laws().items():
        agree(law, network.enumerated(j))


def path(nodes: int, seed: int = 5) -> Network:
    rng = np.random.default_rng(seed)
    tables: list[Table] = [((0,), np.array([0.25, 0.75]))]
    for t in range(1, nodes):
        ones = rng.uniform(0.6, 0.95, 2)
        tables.append(((t - 1, t), np.array([1 - ones, ones]).T))
    return Network(tables, [2] * nodes, [np.array([0, 1])] * nodes, [None] * nodes)


@pytest.mark.slow
def test_tails_of_a_long_path_are_those_of_the_closed_form() -> None:
    """P(F = 0) and P(F = 1) of 3,000 records, far below the least double, and what makes up the rest is 1."""
    nodes = 3000
    network = path(nodes)
    law = network.law()
    stay = [math.log(table[0, 0]) for scope, table in network.tables if len(scope) == 2]
    none = math.log(0.25) + math.fsum(stay)
    assert none < -4000
    logs = law.masses.log()
    assert logs[0] == pytest.approx(none, rel=1e-14, abs=law.log_error)
    rows = [table for scope, table in network.tables if len(scope) == 2]
    single = [math.log(0.75 / 0.25) + math.log(rows[0][1, 0] / rows[0][0, 0])]
    for t in range(1, nodes):
        leave = math.log(rows[t - 1][0, 1] / rows[t - 1][0, 0])
        single.append(leave + (math.log(rows[t][1, 0] / rows[t][0, 0]) if t < nodes - 1 else 0.0))
    top = max(single)
    one = none + top + math.log(math.fsum(math.exp(s - top) for s in single))
    assert logs[1] == pytest.approx(one, rel=1e-14, abs=law.log_error)
    assert logs[-1] == pytest.approx(math.log(0.75) + math.fsum(math.log(r[1, 1]) for r in rows), rel=1e-14)
    assert float(law.masses.sum().log()) == pytest.approx(0, abs=1e-11)
    assert law.log_error < 1e-11


def log_star(leaves: int, low: float, high: float) -> NDArray[np.float64]:
    """Logarithms of the joint law of a hub, worth nothing, and the number of ones among its leaves."""
    counts = np.arange(leaves + 1)
    choose = np.array([math.log(math.comb(leaves, n)) for n in counts])
    return np.array(
        [
            math.log(p) + choose + counts * math.log(q) + (leaves - counts) * math.log1p(-q)
            for p, q in ((0.7, low), (0.3, high))
        ]
    )


@pytest.mark.slow
def test_star_is_a_mixture_of_binomials() -> None:
    leaves, low, high = 500, 0.015625, 0.75
    rows = np.array([[1 - low, low], [1 - high, high]])
    tables: list[Table] = [((0,), np.array([0.7, 0.3])), *(((0, j), rows) for j in range(1, leaves + 1))]
    weights = [np.array([0, 0]), *([np.array([0, 1])] * leaves)]
    network = Network(tables, [2] * (leaves + 1), weights, [None] * (leaves + 1))
    expected = log_star(leaves, low, high)
    assert expected.min() < -2000
    for state in (0, 1):
        np.testing.assert_allclose(network.given(0, state).masses.log(), expected[state], atol=1e-11)
    np.testing.assert_allclose(network.law().masses.log(), np.logaddexp(*expected), atol=1e-11)
    counts = np.arange(leaves + 1)
    with np.errstate(divide="ignore"):
        given_leaf = np.logaddexp(*expected) + np.log(np.array([leaves - counts, counts]) / leaves)
    for j, law in network.laws().items():
        np.testing.assert_allclose(law.masses.log(), expected if j == 0 else given_leaf, atol=1e-11)


def close(one: Wide, two: Wide, error: float) -> None:
    np.testing.assert_array_equal(one.positive, two.positive)
    where = one.positive
    np.testing.assert_allclose(one.log()[where], two.log()[where], rtol=1e-14, atol=error)


def large_tree(seed: int, nodes: int) -> Network:
    rng = np.random.default_rng(seed)
    sizes = [int(k) for k in rng.integers(2, 4, nodes)]
    tables: list[Table] = [((0,), random_rows(rng, [sizes[0]]))]
    for j in range(1, nodes):
        above = int(rng.integers(max(0, j - 40), j))
        alone = j % 50 == 0
        scope = (j,) if alone else (above, j)
        tables.append((scope, random_rows(rng, [sizes[v] for v in scope])))
    allowed: list[NDArray[np.bool_] | None] = [None] * nodes
    allowed[7] = np.arange(sizes[7]) > 0
    return Network(tables, sizes, [rng.integers(-2, 3, k) for k in sizes], allowed)


def grid(rows: int, columns: int) -> Network:
    """Every node hangs on the one above and the one before."""
    rng = np.random.default_rng(3)
    tables: list[Table] = []
    for j in range(columns):
        for i in range(rows):
            scope = [i + rows * j]
            if j:
                scope.insert(0, i + rows * (j - 1))
            if i:
                scope.insert(0, i - 1 + rows * j)
            ones = rng.uniform(0.1, 0.9, (2,) * (len(scope) - 1))
            tables.append((tuple(scope), np.stack([1 - ones, ones], axis=-1)))
    nodes = rows * columns
    return Network(tables, [2] * nodes, [np.array([0, 1])] * nodes, [None] * nodes)


LARGE = pytest.param(large_tree(1, 120), marks=pytest.mark.slow)


@pytest.mark.parametrize("network", [LARGE, path(30), grid(2, 12)], ids=["forest", "path", "grid"])
def test_all_laws_at_once_are_those_one_by_one(network: Network) -> None:
    for j, law in network.laws().items():
        for state in range(network.sizes[j]):
            alone = network.given(j, state)
            rows = {law.start + n: law.masses[state, n] for n in range(law.masses.shape[1])}
            for n in range(alone.masses.shape[0]):
                close(rows.pop(alone.start + n), alone.masses[n], law.log_error + alone.log_error)
            assert not any(rest.positive for rest in rows.values())


def test_sums_of_all_laws_are_the_law_of_the_query(slow: bool) -> None:
    network = path(400 if slow else 200)
    whole = network.law()
    for law in network.laws().values():
        close(law.masses.sum(axis=0), whole.masses, law.log_error + whole.log_error)


def test_messages_too_many_to_hold_are_refused() -> None:
    """Each array is small, but a long path has many of them."""
    network = path(60)
    held = dict(tables=network.tables, sizes=network.sizes, weights=network.weights)
    assert len(list(all_node_laws(**held, most_entries=2000))) == 60
    with pytest.raises(ModelError, match="entries"):
        next(all_node_laws(**held, most_entries=1800))
    assert additive_law(**held, most_entries=130).masses.shape == (61,)


def test_long_thin_grid_is_easy() -> None:
    network = grid(2, 60)
    law = network.law()
    assert float(law.masses.sum().log()) == pytest.approx(0, abs=1e-12)
    all_zero = math.fsum(math.log(table[(0,) * table.ndim]) for _, table in network.tables)
    assert law.masses.log()[0] == pytest.approx(all_zero, rel=1e-13)


def test_dense_network_is_refused_before_memory_is_used() -> None:
    rng = np.random.default_rng(0)
    tables: list[Table] = []
    for j in range(40):
        parents = [int(v) for v in rng.choice(j, min(j, 7), replace=False)] if j else []
        ones = rng.uniform(0.1, 0.9, (2,) * len(parents))
        tables.append(((*parents, j), np.stack([1 - ones, ones], axis=-1)))
    weights = [np.array([0, 1])] * 40
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=r"needs an array of about \S+ entries \(\S+ MB\), allowed are 5e\+07"):
            additive_law(tables, [2] * 40, weights)
        with pytest.raises(ModelError, match="too densely connected"):
            next(all_node_laws(tables, [2] * 40, weights))
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


def test_too_many_values_are_refused() -> None:
    coins: list[Table] = [((j,), np.array([0.5, 0.5])) for j in range(3)]
    with pytest.raises(ModelError, match="too many values"):
        additive_law(coins, [2] * 3, [np.array([0, 10**18])] * 3)
    assert additive_law(coins, [2] * 3, [np.array([0, 10])] * 3, most_entries=31).masses.shape == (31,)
    with pytest.raises(ModelError, match="about 31 entries"):
        additive_law(coins, [2] * 3, [np.array([0, 10])] * 3, most_entries=30)
    with pytest.raises(ModelError, match="about 62 entries"):
        next(all_node_laws(coins, [2] * 3, [np.array([0, 10])] * 3, most_entries=61))
    assert len(list(all_node_laws(coins, [2] * 3, [np.array([0, 10])] * 3, most_entries=62))) == 3
