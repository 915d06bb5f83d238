"""Networks of pgmpy: tables arrive with axes and states by name, and doubtful ones are refused."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pufferfish.errors import ModelError
from pufferfish.theta._imports import _classes
from pufferfish.theta.bayesian_network import BayesianNetwork


def cpd(variable: Any, values: Any, parents: tuple[Any, ...] = (), **state_names: Any) -> SimpleNamespace:
    """Return an object with the attributes of a TabularCPD: axes of values are the variable, then its parents."""
    return SimpleNamespace(
        variable=variable, variables=[variable, *parents], values=np.array(values), state_names=state_names
    )


class DiscreteBayesianNetwork:
    """The part of pgmpy's class that is read."""

    def __init__(self, nodes: list[Any], edges: list[tuple[Any, Any]], cpds: list[Any]) -> None:
        self._nodes, self._edges, self._cpds = nodes, edges, cpds

    def nodes(self) -> list[Any]:
        return self._nodes

    def edges(self) -> list[tuple[Any, Any]]:
        return self._edges

    def get_cpds(self) -> list[Any]:
        return self._cpds


A = cpd("A", [0.25, 0.75], A=["yes", "no"])
B = cpd("B", [0.125, 0.125, 0.75], B=[1, 2, 3])
NUMBERS = np.arange(1, 7).reshape(2, 3) / 16
C = cpd("C", [NUMBERS, 1 - NUMBERS], ("A", "B"), C=["u", "v"], A=["yes", "no"], B=[1, 2, 3])


def pgmpy_like(c: Any = C, **changes: Any) -> DiscreteBayesianNetwork:
    parts: dict[str, Any] = {"nodes": ["C", "A", "B"], "edges": [("A", "C"), ("B", "C")], "cpds": [A, B, c]}
    return DiscreteBayesianNetwork(**parts | changes)


def test_a_pgmpy_network_keeps_names_axes_and_numbers() -> None:
    network = BayesianNetwork.from_pgmpy(pgmpy_like())
    assert network.nodes == ("C", "A", "B")
    assert network.node_states == {"C": ("u", "v"), "A": ("yes", "no"), "B": ("1", "2", "3")}
    assert network.cpts["C"].parents == ("A", "B")
    assert network.cpts["C"].table[..., 0].tolist() == NUMBERS.tolist()


def test_the_axis_of_a_node_is_found_by_name() -> None:
    turned = cpd("C", np.moveaxis(C.values, 0, 1), **C.state_names)
    turned.variables = ["A", "C", "B"]
    assert np.array_equal(
        BayesianNetwork.from_pgmpy(pgmpy_like(turned)).cpts["C"].table,
        BayesianNetwork.from_pgmpy(pgmpy_like()).cpts["C"].table,
    )


def test_states_without_names_are_numbered() -> None:
    coin, copy = cpd("A", [0.5, 0.5]), cpd(7, np.eye(2), ("A",))
    network = BayesianNetwork.from_pgmpy(DiscreteBayesianNetwork(["A", 7], [("A", 7)], [coin, copy]))
    assert network.node_states == {"A": ("0", "1"), 7: ("0", "1")}


def changed(c: Any = C, **changes: Any) -> SimpleNamespace:
    return SimpleNamespace(**vars(c) | changes)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (None, "model is NoneType, expected a DiscreteBayesianNetwork of pgmpy"),
        (SimpleNamespace(get_cpds=list), "model is SimpleNamespace, expected"),
        (pgmpy_like(SimpleNamespace(variable="C", evidence=["A"])), "is SimpleNamespace, expected a TabularCPD"),
        (pgmpy_like(cpds=[A, B]), "node 'C' has no CPD"),
        (pgmpy_like(nodes=["A", "B"]), "node 'C' has a CPD and is not in the graph"),
        (pgmpy_like(cpds=[A, A, B, C]), "node 'A' has two CPDs"),
        (
            pgmpy_like(edges=[("A", "C")]),
            r"node 'C' has the parents \['A'\] in the graph and \['A', 'B'\] in its CPD",
        ),
        (
            pgmpy_like(changed(state_names=C.state_names | {"A": ["no", "yes"]})),
            "node 'C' has the states no, yes for its parent 'A', whose own are yes, no: give both CPDs the same",
        ),
        (
            pgmpy_like(changed(state_names={"C": ["u", "v"]})),
            "node 'C' has the states 0, 1 for its parent 'A', whose own are yes, no",
        ),
        (pgmpy_like(changed(state_names=C.state_names | {"C": ["u"]})), "the CPD of node 'C' names 1 states of 'C'"),
        (pgmpy_like(changed(state_names=C.state_names | {"C": [1, 1.0]})), r"node 'C': states\[1\] repeats the name"),
        (pgmpy_like(changed(values=NUMBERS)), "the CPD of node 'C' has 2 axes, expected one for each of"),
        (pgmpy_like(changed(values=[["x"]])), "the values of the CPD of node 'C' are no array of numbers"),
        (pgmpy_like(changed(variables=["C", "A", "A"])), "the CPD of node 'C' is about"),
        (pgmpy_like(changed(variables=["D", "A", "B"])), "the CPD of node 'C' is about"),
        (
            pgmpy_like(changed(values=np.array([NUMBERS, 1 - NUMBERS + 1e-4]))),
            r"node 'C' where A = yes, B = 1 sums to 1.0001, expected 1 \(tolerance 1e-09\)\. get_cpds",
        ),
        (pgmpy_like(changed(values=np.array([-NUMBERS, 1 + NUMBERS]))), "C = u is -0.0625, expected a probability"),
    ],
)
def test_what_is_no_clear_pgmpy_network_is_refused(model: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        BayesianNetwork.from_pgmpy(model)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore")  # pgmpy's own
def test_a_real_pgmpy_network_is_read() -> None:
    models: Any = pytest.importorskip("pgmpy.models", reason="pgmpy is large, and not among the tools of development")
    discrete: Any = pytest.importorskip("pgmpy.factors.discrete")
    kind = getattr(models, "DiscreteBayesianNetwork", None) or models.BayesianNetwork
    assert _classes(kind([])) & {"BayesianNetwork", "DiscreteBayesianNetwork"}
    model = kind([("A", "C"), ("B", "C")])
    model.add_cpds(
        discrete.TabularCPD("A", 2, [[0.25], [0.75]], state_names={"A": ["yes", "no"]}),
        discrete.TabularCPD("B", 3, [[0.125], [0.125], [0.75]], state_names={"B": [1, 2, 3]}),
        discrete.TabularCPD("C", 2, C.values.reshape(2, 6), ["A", "B"], [2, 3], state_names=C.state_names),
    )
    network, expected = BayesianNetwork.from_pgmpy(model), BayesianNetwork.from_pgmpy(pgmpy_like())
    assert network.node_states == expected.node_states
    for node in network.nodes:
        assert network.cpts[node].parents == expected.cpts[node].parents
        assert np.array_equal(network.cpts[node].table, expected.cpts[node].table)
