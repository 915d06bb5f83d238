"""Networks of pyAgrum: tables arrive with axes and states by name, and doubtful ones are refused."""

from typing import Any

import numpy as np
import pytest

from optional import pyagrum_or_skip
from pufferfish.errors import ModelError
from pufferfish.theta.bayesian_network import BayesianNetwork

pyagrum = pyagrum_or_skip()


def agrum() -> Any:
    bn = pyagrum.fastBN("C{u|v}<-A{yes|no}; C<-B{x|y|z}; N[2]")
    bn.cpt("A").fillWith([0.25, 0.75])
    bn.cpt("B").fillWith([0.125, 0.125, 0.75])
    bn.cpt("N").fillWith([0, 1])
    for a in range(2):
        for b in range(3):
            bn.cpt("C")[{"A": a, "B": b}] = [(1 + a + 2 * b) / 16, (15 - a - 2 * b) / 16]
    return bn


def test_a_pyagrum_network_keeps_names_axes_and_numbers() -> None:
    network = BayesianNetwork.from_pyagrum(agrum())
    assert network.nodes == ("C", "A", "B", "N")
    assert network.node_states == {"A": ("yes", "no"), "B": ("x", "y", "z"), "C": ("u", "v"), "N": ("0", "1")}
    cpt = network.cpts["C"]
    table = cpt.table if cpt.parents == ("A", "B") else cpt.table.swapaxes(0, 1)
    assert table[..., 0].tolist() == [[(1 + a + 2 * b) / 16 for b in range(3)] for a in range(2)]
    assert network.cpts["N"].table.tolist() == [0, 1]


def test_axes_of_pyagrum_in_another_order_are_taken_by_name() -> None:
    bn = agrum()
    before = BayesianNetwork.from_pyagrum(bn).cpts["C"]
    turned = bn.cpt("C").reorganize(["B", "C", "A"])
    bn.cpt("C").fillWith(turned)
    after = BayesianNetwork.from_pyagrum(bn).cpts["C"]
    assert after.parents == before.parents
    assert np.array_equal(after.table, before.table)


def test_noisy_gates_of_pyagrum_are_read_as_their_tables() -> None:
    bn = pyagrum.BayesNet()
    cause = bn.add(pyagrum.LabelizedVariable("cause", "", 2))
    effect = bn.addNoisyOR(pyagrum.LabelizedVariable("effect", "", 2), 0.25)
    bn.addWeightedArc(cause, effect, 0.5)
    bn.cpt("cause").fillWith([0.5, 0.5])
    network = BayesianNetwork.from_pyagrum(bn)
    expected = [[bn.cpt("effect")[{"cause": c, "effect": e}] for e in range(2)] for c in range(2)]
    assert network.cpts["effect"].table.tolist() == expected
    assert expected[0] == [0.75, 0.25]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([0.0, 0.0], r"the table of node 'A' sums to 0, expected 1 \(tolerance 1e-07\).*normalizeAsCPT"),
        ([0.5, 0.4999], "the table of node 'A' sums to 0.9999"),
        ([-0.5, 1.5], "the table of node 'A' where A = yes is -0.5"),
        ([float("nan"), 0.5], "the table of node 'A' sums to nan"),
        ([float("inf"), 0.5], "the table of node 'A' sums to inf"),
    ],
)
def test_rows_of_pyagrum_that_are_no_distributions_are_refused(numbers: list[float], message: str) -> None:
    bn = agrum()
    bn.cpt("A").fillWith(numbers)
    with pytest.raises(ModelError, match=message):
        BayesianNetwork.from_pyagrum(bn)


def test_a_row_with_parents_is_named() -> None:
    bn = agrum()
    bn.cpt("C")[{"A": 1, "B": 2}] = [0.5, 0.4]
    with pytest.raises(ModelError, match=r"node 'C' where .*A = no.* sums to 0.9") as caught:
        BayesianNetwork.from_pyagrum(bn)
    assert "B = z" in str(caught.value)


def test_single_precision_is_explained() -> None:
    bn = agrum()
    single = [float(np.float32(0.01)), float(np.float32(0.99))]
    assert abs(sum(single) - 1) > 1e-9
    bn.cpt("A").fillWith(single)
    assert BayesianNetwork.from_pyagrum(bn).cpts["A"].table == pytest.approx([0.01, 0.99], rel=1e-7)


@pytest.mark.parametrize("given", [None, "asia.bif", pyagrum.BayesNet, pyagrum.InfluenceDiagram()])
def test_what_is_no_pyagrum_network_is_refused(given: Any) -> None:
    with pytest.raises(ModelError, match=r"bn is .*, expected a pyagrum.BayesNet"):
        BayesianNetwork.from_pyagrum(given)
