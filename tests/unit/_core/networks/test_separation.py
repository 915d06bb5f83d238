"""d-separation, moral graphs and branches against networkx, on graphs of any shape."""

import itertools

import networkx as nx
import numpy as np
import pytest

from network_oracle import SHAPED, Network, random_network
from pufferfish._core.networks.d_separation import Dag, members, set_of

GRAPHS = [
    *SHAPED,
    *(random_network(seed, 4 + seed % 5, parents=1 + seed % 3, most=2) for seed in range(36)),
]


def dag_of(network: Network) -> Dag:
    return Dag(network.parents)


def some_sets(network: Network, count: int = 40) -> list[tuple[int, tuple[int, ...]]]:
    """Nodes with sets of other nodes: all where these are few."""
    every = [(node, quilt) for node in range(network.size) for quilt in network.quilts(node)]
    if len(every) <= 200:
        return every
    rng = np.random.default_rng(network.size)
    return [every[i] for i in rng.choice(len(every), count, replace=False)]


def moral(network: Network, nodes: set[int]) -> nx.Graph:
    """The moral graph of the smallest ancestral set, by its definition."""
    alive = set(nodes).union(*(nx.ancestors(network.graph, j) for j in nodes))
    graph = nx.Graph()
    graph.add_nodes_from(alive)
    for node in alive:
        family = [*network.parents[node], node]
        graph.add_edges_from(itertools.combinations(family, 2))
    return graph


def test_sets_are_numbers() -> None:
    assert set_of([]) == 0
    assert set_of([3, 0, 3]) == 9
    assert list(members(0)) == []
    assert list(members(set_of([70, 2]))) == [2, 70]


@pytest.mark.parametrize("network", GRAPHS, ids=str)
def test_connected_is_what_is_not_d_separated(network: Network) -> None:
    dag = dag_of(network)
    for node, quilt in some_sets(network):
        assert set(members(dag.connected(node, set_of(quilt)))) == network.nearby(node, quilt)


@pytest.mark.parametrize("network", GRAPHS, ids=str)
def test_reach_is_what_depends_on_a_node(network: Network) -> None:
    dag = dag_of(network)
    for node in range(network.size):
        assert set(members(dag.reach(node))) == network.nearby(node, ())


@pytest.mark.parametrize("network", GRAPHS, ids=str)
def test_ancestors_descendants_and_order(network: Network) -> None:
    dag, graph = dag_of(network), network.graph
    assert sorted(dag.order) == list(range(network.size))
    assert dag.is_forest == network.is_forest
    for node in range(network.size):
        assert all(dag.order.index(parent) < dag.order.index(node) for parent in network.parents[node])
        assert set(members(dag.above[node])) == {node} | nx.ancestors(graph, node)
        assert set(members(dag.below[node])) == {node} | nx.descendants(graph, node)
        assert set(members(dag.children[node])) == set(graph.successors(node))
    for node, quilt in some_sets(network):
        assert set(members(dag.ancestral(set_of([node, *quilt])))) == set(moral(network, {node, *quilt}))


@pytest.mark.parametrize("network", GRAPHS, ids=str)
def test_neighbours_and_components_of_the_moral_graph(network: Network) -> None:
    dag = dag_of(network)
    for node, quilt in some_sets(network):
        graph = moral(network, {node, *quilt})
        alive = set_of(list(graph))
        assert set(members(dag.near(node, alive))) == set(graph.neighbors(node))
        graph.remove_nodes_from(quilt)
        found = dag.component(node, alive, set_of(quilt))
        assert set(members(found)) == nx.node_connected_component(graph, node)


@pytest.mark.parametrize("network", GRAPHS, ids=str)
def test_branches_are_independent_given_the_node_and_as_small_as_can_be(network: Network) -> None:
    dag = dag_of(network)
    for node, quilt in some_sets(network):
        parts = [set(members(part)) for part in dag.branches(node, set_of(quilt))]
        assert sorted(itertools.chain(*parts)) == sorted(quilt)
        for part in parts:
            rest = set(quilt) - part
            assert not rest or nx.is_d_separator(network.graph, part, rest, {node})
            for size in range(1, len(part)):
                for some in itertools.combinations(sorted(part), size):
                    assert not nx.is_d_separator(network.graph, set(some), set(quilt) - set(some), {node})


def test_a_long_chain_and_a_wide_star() -> None:
    """More nodes than a machine word has bits."""
    chain = Dag([[], *([j] for j in range(299))])
    assert chain.connected(150, set_of([100, 170])) == set_of(list(range(101, 170)))
    assert chain.reach(3) == (1 << 300) - 1
    star = Dag([[], *([0] for _ in range(299))])
    assert star.connected(5, 1) == 1 << 5
    sink = Dag([*([] for _ in range(299)), list(range(299))])
    assert sink.reach(7) == set_of([7, 299])
    assert sink.connected(7, 1 << 299) == (1 << 299) - 1
