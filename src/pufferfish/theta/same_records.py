"""Networks about the same records: the same nodes with the same states, whatever their edges.

A class Θ may hold a network with an edge and one without it: whether two records depend on each other is what an
adversary need not know. Nodes and states have names, so their order is no matter either: that of the first network is
taken for all.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pufferfish.errors import ModelError
from pufferfish.theta.bayesian_network import BayesianNetwork
from pufferfish.theta.bif import CPT
from pufferfish.theta.states import state_label

__all__ = ["same_records"]


def same_records(networks: Sequence[BayesianNetwork], name: str) -> tuple[BayesianNetwork, ...]:
    """Return networks with nodes and states in the order of the first one.

    Parameters
    ----------
    networks : sequence of BayesianNetwork
        At least one.
    name : str
        What errors call the sequence.

    Raises
    ------
    ModelError
        If one has other nodes than the first, or a node has other states.

    Examples
    --------
    >>> coin = CPT(["no", "yes"], [0.5, 0.5])
    >>> apart = BayesianNetwork({"a": coin, "b": coin})
    >>> edge = BayesianNetwork({"b": CPT(["yes", "no"], [[0.1, 0.9], [0.8, 0.2]], ["a"]), "a": coin})
    >>> same_records([apart, edge], "theta")[1].node_states == apart.node_states
    True
    """
    first = networks[0]
    return (first, *(_like(network, first, f"{name}[{i}]", name) for i, network in enumerate(networks[1:], 1)))


def _like(network: BayesianNetwork, first: BayesianNetwork, this: str, name: str) -> BayesianNetwork:
    mine = {state_label(node): node for node in network.nodes}
    names = {state_label(node): node for node in first.nodes}
    if mine.keys() != names.keys():
        raise ModelError(
            f"{this} has the nodes {_shown(mine)} and {name}[0] {_shown(names)}: all members of a class are about the "
            f"same records; {_odd_one(list(mine), list(names))}"
        )
    for label, node in names.items():
        states = network.node_states[mine[label]]
        if set(states) != set(first.node_states[node]):
            raise ModelError(
                f"node {node!r} has the states {_shown(states)} in {this} and {_shown(first.node_states[node])} in "
                f"{name}[0]: all members of a class share the states of every node"
            )
    if network.nodes == first.nodes and network.node_states == first.node_states:
        return network
    order = {
        label: [network.node_states[mine[label]].index(state) for state in first.node_states[node]]
        for label, node in names.items()
    }
    tables: dict[Any, CPT] = {}
    for label, node in names.items():
        cpt = network.cpts[mine[label]]
        above = [state_label(parent) for parent in cpt.parents]
        table = cpt.table[np.ix_(*(order[axis] for axis in (*above, label)))]
        tables[node] = CPT(first.node_states[node], table, [names[parent] for parent in above])
    return BayesianNetwork(tables)


def _odd_one(mine: Sequence[str], names: Sequence[str]) -> str:
    """Say which node one network has and the other lacks."""
    lacking = [label for label in names if label not in mine]
    if lacking:
        return f"it lacks the node {lacking[0]!r}"
    return f"the node {next(label for label in mine if label not in names)!r} is only there"


def _shown(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:8]) + (", …" if len(listed) > 8 else "")
