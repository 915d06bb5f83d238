"""Published networks: every marginal equals pyAgrum's, and quilts never need more noise than group privacy."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from optional import pyagrum_or_skip

FOLDER = Path(__file__).parent.parent.parent.parent / "shared" / "data" / "bayesnets"
NAMES = ("asia", "barley", "cancer", "child", "earthquake", "hailfinder", "insurance", "survey")


def network_of(name: str) -> pf.BayesianNetwork:
    path = FOLDER / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in ../shared/data/bayesnets")
    return pf.BayesianNetwork.from_bif(path)


def in_pyagrum(gum: Any, network: pf.BayesianNetwork) -> Any:
    """Return the same network in double precision: pyAgrum reads files in single precision."""
    found = gum.BayesNet("again")
    for node in network.nodes:
        found.add(gum.LabelizedVariable(str(node), "", len(network.node_states[node])))
    for node, cpt in network.cpts.items():
        for parent in cpt.parents:
            found.addArc(str(parent), str(node))
    for node, cpt in network.cpts.items():
        table = found.cpt(str(node))
        for at in product(*(range(k) for k in cpt.table.shape[:-1])):
            place = {str(parent): x for parent, x in zip(cpt.parents, at, strict=True)}
            if place:
                table[place] = cpt.table[at].tolist()
            else:
                table.fillWith(cpt.table.tolist())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_marginals_are_those_of_pyagrum(name: str) -> None:
    gum = pyagrum_or_skip()
    network = network_of(name)
    again = in_pyagrum(gum, network)
    inference = gum.LazyPropagation(again)
    inference.makeInference()
    for node in network.nodes:
        theirs = np.array(inference.posterior(str(node)).tolist())
        np.testing.assert_allclose(network.marginal(node), theirs, rtol=0, atol=1e-10, err_msg=str(node))


def test_a_network_of_the_repository_is_the_same_in_pyagrum() -> None:
    """Needs no data: what the comparison above rests on."""
    gum = pyagrum_or_skip()
    rng = np.random.default_rng(5)
    states, cpts = ["a", "b", "c"], {}
    for j in range(7):
        parents = [f"X{p}" for p in range(j) if rng.random() < 0.5]
        table = rng.dirichlet(np.ones(3), size=[3] * len(parents))
        cpts[f"X{j}"] = pf.CPT(states, table, parents)
    network = pf.BayesianNetwork(cpts)
    again = in_pyagrum(gum, network)
    inference = gum.LazyPropagation(again)
    inference.makeInference()
    for node in network.nodes:
        theirs = np.array(inference.posterior(str(node)).tolist())
        np.testing.assert_allclose(network.marginal(node), theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["asia", "cancer", "earthquake", "survey"])
def test_quilts_never_need_more_than_the_group(name: str) -> None:
    network = network_of(name)
    query = pf.Marginals(relative=False)
    for epsilon in (1.0, 5.0):
        quilts, group = (make(network).calibrate(query, epsilon).scale for make in (pf.MarkovQuilt, pf.GroupDP))
        assert quilts <= group * (1 + 1e-9)


PROPAGATION = {
    "asia": (3.965, 0.812),
    "cancer": (2.754, 0.5284),
    "survey": (1.3273, 0.2621),
    "earthquake": (3.5155, 0.7198),
    "child": (9.253, 1.7716),
}
"""Noise multipliers of the counts of every column at ε = 1 and 5."""


@pytest.mark.parametrize("name", PROPAGATION)
def test_propagation_needs_so_much_and_no_laplace_noise_could_do_with_much_less(name: str) -> None:
    network = network_of(name)
    for epsilon, multiplier in zip((1.0, 5.0), PROPAGATION[name], strict=True):
        found = pf.LeakagePropagation(network).calibrate(pf.Marginals(relative=False), epsilon)
        assert found.noise_multiplier == pytest.approx(multiplier, rel=1e-3)
        assert found.lower_bound <= found.scale <= found.lower_bound * (1.035 if name == "child" else 1.0001)


def test_the_scales_that_the_page_of_networks_tells() -> None:
    """Of docs/networks.md, where the search is over in a moment."""
    lines = (Path(__file__).parent.parent.parent / "docs" / "networks.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    told = {(row[0], float(row[4])): row for row in rows if row[0] in NAMES}
    assert len(told) == 2 * len(NAMES)
    for (name, _), row in told.items():
        group, quilts, propagation = (float(row[column]) for column in (5, 6, 8))
        assert propagation <= quilts <= group, name
        assert name == "barley" or float(row[10]) <= propagation, name  # its clusters are too large for a lower bound
    for name in ("asia", "cancer", "earthquake", "survey"):
        network = network_of(name)
        for epsilon in (1.0, 5.0):
            row = told[name, epsilon]
            assert int(row[1]) == len(network.nodes)
            for make, column in ((pf.MarkovQuilt, 6), (pf.LeakagePropagation, 8)):
                found = make(network).calibrate(pf.Marginals(relative=False), epsilon).noise_multiplier
                assert found == pytest.approx(float(row[column]), rel=1e-3)
