"""Queries of networks: some nodes, each node by itself, nodes that count differently; how far each node moves them."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from network_oracle import Network, moves, random_network
from network_queries import NAMES, by_name
from networks import model_of
from pufferfish.errors import QueryError
from pufferfish.queries import LinearQuery, Query

ROWS = {"smoke": ("yes", "no"), "age": ("young", "old", "no"), "lung": ("yes", "no")}
"""Of another order than their names."""
STATES = ("yes", "no", "young", "old")
EVERY = [random_network(seed, 2 + seed % 4, parents=2) for seed in range(15)]
NETWORKS = [network for network in EVERY if any("b" in names for names in network.states)]


def bound(query: Query, rows: int = 10) -> LinearQuery:
    found = query.bind(STATES, 3 * rows, ROWS)
    assert isinstance(found, LinearQuery)
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_distances_of_every_node_are_what_it_can_change(network: Network, name: str) -> None:
    """And values are what was asked, up to a constant."""
    asked, bound_ = by_name(network, name), pf.MarkovQuilt(model_of(network))
    linear = bound_.bind(asked.query)
    answers = network.answers(asked.answer)
    each = moves(answers)
    for j, truth in enumerate(each):
        assert linear.distances[j] * float(linear.unit) == pytest.approx(truth, abs=1e-12)
        if not linear.reads(j):
            assert not truth.any()
    assert linear.lipschitz == pytest.approx(max(float(truth.max()) for truth in each), abs=1e-12)
    states = model_of(network).states
    for row in itertools.product(*network.states):
        value = np.array(linear.value([states.index(s) for s in row])) * float(linear.unit)
        assert value == pytest.approx(np.array(asked.answer(row)), abs=1e-12)


@pytest.mark.parametrize("network", NETWORKS[::3], ids=str)
def test_distances_by_states_are_the_largest_over_nodes_that_have_both(network: Network) -> None:
    states = model_of(network).states
    for name in NAMES:
        asked = by_name(network, name)
        linear = pf.MarkovQuilt(model_of(network)).bind(asked.query)
        truth = np.zeros((len(states), len(states)))
        for names, move in zip(network.states, moves(network.answers(asked.answer)), strict=True):
            for x, y in itertools.product(range(len(names)), repeat=2):
                at = states.index(names[x]), states.index(names[y])
                truth[at] = max(truth[at], move[x, y])
        assert linear.unit_distance * float(linear.unit) == pytest.approx(truth, abs=1e-12)


class TestSubset:
    def test_states_are_those_of_its_nodes(self) -> None:
        found = bound(pf.Subset(pf.Histogram(), ["age", "lung"]))
        assert found.labels == ("young", "old", "no", "yes")
        assert found.unit == Fraction(1, 20)
        assert found.factors is not None
        assert found.factors.tolist() == [0, 1, 1]
        assert found.weights.tolist() == [[0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0]]
        assert found.description.endswith("of age, lung")

    def test_order_of_names_is_kept(self) -> None:
        assert bound(pf.Subset(pf.Histogram(), ["lung", "age"])).labels == ("yes", "no", "young", "old")

    def test_one_name_is_one_record(self) -> None:
        assert pf.Subset(pf.Count("yes"), "lung") == pf.Subset(pf.Count("yes"), ["lung"])
        assert bound(pf.Subset(pf.Frequency("yes"), "lung")).unit == Fraction(1, 10)

    def test_a_sum_needs_values_for_its_nodes_states_only(self) -> None:
        found = bound(pf.Subset(pf.Sum({"young": 1.5, "old": 0.5, "no": 0}), ["age"]))
        assert [int(w) * found.unit for w in found.weights[0]] == [0, 0, Fraction(3, 2), Fraction(1, 2)]

    def test_kinds(self) -> None:
        assert pf.Subset(pf.Histogram(), ["age"]).is_histogram
        assert not pf.Subset(pf.Count("no"), ["age"]).is_histogram
        assert pf.Subset(pf.Frequency("no"), ["age"]).kind == "frequency"

    def test_steps_of_a_chain(self) -> None:
        """Places from 0."""
        found = pf.Subset(pf.Count("b"), [0, 2]).bind(["a", "b"], 4)
        assert found.factors is not None
        assert found.factors.tolist() == [1, 0, 1, 0]

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: pf.Subset(pf.Count("yes"), []), "Subset has the records .*, expected at least one name"),
            (lambda: pf.Subset(pf.Count("yes"), ["age", "age"]), "at least one name, each once"),
            (lambda: bound(pf.Subset(pf.Count("yes"), ["lungs"])), "no record 'lungs'. Did you mean 'lung'"),
            (lambda: bound(pf.Subset(pf.Count("yes"), [1])), "no record 1. Records: smoke, age, lung"),
            (lambda: bound(pf.Subset(pf.Count("yes"), ["age"])), "'yes': the model has no such state. States: young"),
            (lambda: bound(pf.Subset(pf.Count(["yes", "no"]), ["lung"])), "all 2 states is the public number"),
            (lambda: bound(pf.Subset(pf.Sum([1, 2, 3]), ["lung"])), "sum has 3 values, the model 2 states"),
            (lambda: bound(pf.Subset(pf.Sum([2, 2]), ["lung"])), "every state has the value 2"),
            (lambda: bound(pf.Subset(pf.Subset(pf.Count("yes"), ["lung"]), ["lung"])), "Subset is of Subset"),
            (lambda: bound(pf.Subset(pf.Marginals(["lung"]), ["lung"])), "Subset is of Marginals"),
            (lambda: bound(pf.Subset("lung", ["lung"])), "Subset is of 'lung', expected a query such as Count"),  # type: ignore[arg-type]
            (lambda: bound(pf.Subset(pf.Function(len), ["lung"])), "expected a query such as Count"),
            (lambda: pf.Subset(pf.Count("b"), [4]).bind(["a", "b"], 4), "no record 4. Records: 0, 1, 2, 3"),
        ],
    )
    def test_refusals(self, make: Any, message: str) -> None:
        with pytest.raises(QueryError, match=message):
            make()


class TestMarginals:
    def test_outputs(self) -> None:
        found = bound(pf.Marginals(["age", "smoke"]), rows=4)
        assert found.labels == ("age=young", "age=old", "age=no", "smoke=yes", "smoke=no")
        assert found.unit == Fraction(1, 4)
        assert found.value([1, 3, 0]) == (0, 1, 0, 0, 1)  # smoke no, age old, lung yes
        assert found.blocks == (((0, 1, 2), 1), ((3, 4), 0))
        assert [found.reads(place) for place in range(3)] == [True, True, False]

    def test_of_all(self) -> None:
        found = bound(pf.Marginals(relative=False))
        assert len(found.labels) == 7
        assert found.unit == 1
        assert found.value([0, 2, 1]) == (1, 0, 1, 0, 0, 0, 1)

    def test_of_one_node_is_a_histogram_of_it(self) -> None:
        one, two = bound(pf.Marginals(["lung"])), bound(pf.Marginals(["lung", "age"]))
        assert one.factors is not None
        assert one.factors.tolist() == [0, 0, 1]
        assert two.line is None

    def test_each_node_moves_its_own_outputs(self) -> None:
        """By 2 whatever its neighbours: a node is in one histogram only."""
        network = model_of(NETWORKS[3])
        linear = pf.MarkovQuilt(network, length=7).bind(pf.Marginals())
        assert linear.unit == Fraction(1, 7)
        for place, k in enumerate(network.sizes):
            assert linear.distance_of(place).tolist() == (2.0 * (1 - np.eye(k))).tolist()

    def test_kinds(self) -> None:
        assert (pf.Marginals().kind, pf.Marginals(relative=False).kind) == ("marginals", "marginal-counts")
        assert pf.Marginals().is_histogram

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: pf.Marginals([]), "Marginals has the records .*, expected at least one name"),
            (lambda: pf.Marginals(["age", "age"]), "each once"),
            (lambda: bound(pf.Marginals(["agee"])), "no record 'agee'. Did you mean 'age'"),
            (lambda: pf.Marginals().bind(["a", "b"], 10), "need a network, whose records have names: use Histogram"),
        ],
    )
    def test_refusals(self, make: Any, message: str) -> None:
        with pytest.raises(QueryError, match=message):
            make()


class TestFactors:
    def test_one_for_every_node_not_for_every_cell(self) -> None:
        network = model_of(NETWORKS[1])
        n = len(network.nodes)
        query = pf.Weighted(pf.Count("b"), range(1, n + 1))
        assert pf.MarkovQuilt(network, length=50).bind(query).factors.tolist() == list(range(1, n + 1))
        with pytest.raises(QueryError, match=f"there are {n + 1} factors for {n} records: expected one per record"):
            pf.MarkovQuilt(network).bind(pf.Weighted(pf.Count("b"), [1] * (n + 1)))

    def test_a_window_is_of_nodes_in_their_order(self) -> None:
        network = model_of(NETWORKS[2])
        linear = pf.MarkovQuilt(network, length=5).bind(pf.Window(pf.Frequency("b"), 1, 3))
        assert linear.factors.tolist()[:3] == [0, 1, 1]
        assert linear.unit == Fraction(1, 10)
        with pytest.raises(QueryError, match="0 <= start < stop <= length"):
            pf.MarkovQuilt(network).bind(pf.Window(pf.Count("b"), 0, len(network.nodes) + 1))
