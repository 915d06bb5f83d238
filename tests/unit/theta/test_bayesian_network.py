"""Bayesian networks made by hand: what they hold, and one clear line for every way to get them wrong."""

import re
from typing import Any

import numpy as np
import pytest

from pufferfish.errors import ModelError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.model_class import Member, as_theta

COIN = CPT(["no", "yes"], [0.5, 0.5])


def copy(*parents: Any) -> CPT:
    return CPT(["no", "yes"], np.full((2,) * (len(parents) + 1), 0.5), parents=parents)


def sprinkler() -> BayesianNetwork:
    return BayesianNetwork(
        {
            "wet": CPT(
                ["dry", "wet"], [[[1, 0], [0.2, 0.8]], [[0.1, 0.9], [0.01, 0.99]]], parents=["sprinkler", "rain"]
            ),
            "sprinkler": CPT(["no", "yes"], [[0.6, 0.4], [0.99, 0.01]], parents=["rain"]),
            "rain": CPT(["no", "yes"], [0.8, 0.2]),
            "moon": CPT([1.0, 2, 3], [0.5, 0.25, 0.25]),
        }
    )


def test_names_orders_and_groups() -> None:
    network = sprinkler()
    assert network.nodes == ("wet", "sprinkler", "rain", "moon")
    assert network.order == ("rain", "moon", "sprinkler", "wet")
    assert network.node_states["moon"] == ("1", "2", "3")
    assert network.states == ("dry", "wet", "no", "yes", "1", "2", "3")
    assert network.components == (("wet", "sprinkler", "rain"), ("moon",))
    assert network.groups == (3, 1)
    assert network.sizes == (2, 2, 2, 3)
    assert repr(network) == "BayesianNetwork(<4 nodes: wet, sprinkler, rain, moon; 3 edges>)"
    assert repr(network.cpts["wet"]) == "CPT(dry, wet | sprinkler, rain)"


def test_components_keep_the_order_of_nodes_where_edges_cross() -> None:
    network = BayesianNetwork({0: COIN, 1: COIN, 2: copy(0), 3: copy(1), 4: copy(2)})
    assert network.components == ((0, 2, 4), (1, 3))
    assert network.groups == (3, 2)


def test_tables_name_their_axes_by_position() -> None:
    network = sprinkler()
    scopes = [scope for scope, _ in network.tables]
    assert scopes == [(1, 2, 0), (2, 1), (2,), (3,)]
    assert network.tables[0][1][1, 0, 1] == 0.9  # P(wet | sprinkler = yes, rain = no)


def test_a_long_chain_of_nodes_needs_no_recursion() -> None:
    network = BayesianNetwork({t: copy(t - 1) if t else COIN for t in range(5000, -1, -1)})
    assert network.order == tuple(range(5001))
    assert network.groups == (5001,)


def test_a_network_is_a_member_of_a_class() -> None:
    network = sprinkler()
    assert isinstance(network, Member)
    theta = as_theta([network, sprinkler()])
    assert theta.kind == "Bayesian networks"
    assert [length.records for length in theta.lengths] == [3, 1]


def test_rows_are_divided_by_their_sums_and_zeros_stay() -> None:
    network = BayesianNetwork({"x": CPT(["a", "b", "c"], [0.0, 0.3, 0.7 + 5e-10])})
    table = network.cpts["x"].table
    assert table.sum() == pytest.approx(1, abs=1e-15)
    assert table[0] == 0
    assert table[2] < 0.7 + 5e-10


def test_what_is_given_stays_as_it_is() -> None:
    table = np.array([0.5, 0.5])
    cpt = CPT(["no", "yes"], table)
    table[0] = 1.0
    network = BayesianNetwork({"x": cpt})
    assert network.cpts["x"].table[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        network.cpts["x"].table[0] = 1.0
    with pytest.raises(AttributeError):
        cpt.states = ("a", "b")


@pytest.mark.parametrize(
    ("states", "table", "parents", "message"),
    [
        ("no", [1.0], (), 'states is \'no\', expected a list of names such as ["no", "yes"]'),
        (2, [0.5, 0.5], (), "states is 2, expected a list of names"),
        ([], [], (), "states is empty: a node has at least one state"),
        (["a", "b"], [[0.5, 0.5]] * 2, "rain", "parents is 'rain', expected a list of names such as [\"rain\"]"),
        ([1, "1"], [0.5, 0.5], (), "states[1] repeats the name '1': give each its own name"),
        (["a", "b"], np.full((2, 2, 2), 0.5), ["u", "u"], "parents[1] repeats the name 'u': give each its own name"),
        (["a", "b"], [[0.5, 0.5], [1.0]], ["u"], "table is not an array of numbers (rows of equal length)"),
        (["a", "b"], ["x", "y"], (), "table holds text; expected an array of probabilities"),
        (["a", "b"], [0.5, 0.5], ["u"], "table has shape (2,), expected (number of states of u, 2): one axis"),
        (["a", "b"], [0.2, 0.3, 0.5], (), "table has shape (3,), expected (2): one axis for every parent and the"),
    ],
)
def test_tables_that_are_none(states: Any, table: Any, parents: Any, message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)) as error:
        CPT(states, table, parents)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("cpts", "message"),
    [
        ([COIN], "cpts is list, expected a dict from the nodes' names to their CPTs"),
        ({}, "cpts is empty: give at least one node"),
        ({"x": [0.5, 0.5]}, "cpts['x'] is list, expected a CPT"),
        ({1: COIN, "1": COIN}, "nodes 1 and '1' have the same name; give every node its own name"),
        (
            {"rain": COIN, "wet": copy("rian")},
            "node 'wet' has the parent 'rian', which is not a node. Did you mean 'rain'? Nodes: rain, wet",
        ),
        ({"wet": copy("xyz")}, "node 'wet' has the parent 'xyz', which is not a node. Nodes: wet"),
        ({"wet": copy([1])}, "node 'wet' has the parent [1], which is not a node"),
        ({"x": copy("x")}, "edges form a cycle: x → x; a Bayesian network has none"),
        (
            {"top": COIN, "a": copy("c", "top"), "b": copy("a"), "c": copy("b"), "below": copy("c")},
            "edges form a cycle: a → b → c → a; a Bayesian network has none, so turn or drop one of these edges",
        ),
        (
            {"u": CPT(["a", "b", "c"], [0.2, 0.3, 0.5]), "x": copy("u")},
            "the table of node 'x' has shape (2, 2), expected (3, 2): 3 states of u, and its own 2 last",
        ),
        (
            {"u": COIN, "x": CPT(["a", "b"], [[0.5, 0.5], [1.5, -0.5]], ["u"])},
            "the table of node 'x' where u = yes, x = b is -0.5, expected a probability between 0 and 1",
        ),
        ({"x": CPT(["a", "b"], [np.nan, 1.0])}, "the table of node 'x' where x = a is nan"),
        ({"x": CPT(["a", "b"], [0.0, np.inf])}, "the table of node 'x' where x = b is inf"),
        ({"x": CPT(["a", "b"], [1e308, 1e308])}, "the table of node 'x' sums to inf, expected 1"),
        (
            {"u": COIN, "v": COIN, "x": CPT(["a", "b"], [[[0.5, 0.5], [0.5, 0.47]]] * 2, ["u", "v"])},
            "the table of node 'x' where u = no, v = yes sums to 0.97, expected 1 (tolerance 1e-09). Rows run along",
        ),
    ],
)
def test_networks_that_are_none(cpts: Any, message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)) as error:
        BayesianNetwork(cpts)
    assert "\n" not in str(error.value)


def test_cycles_below_a_cycle_are_not_named_for_it() -> None:
    """A node that only hangs on a cycle is no part of what is named, whatever comes first."""
    with pytest.raises(ModelError, match=r"cycle: (a → b → a|b → a → b);"):
        BayesianNetwork({"below": copy("b"), "a": copy("b"), "b": copy("a")})
