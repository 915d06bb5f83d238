"""A class of networks with and without an edge: everything that takes a class takes it."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import pufferfish as pf
from pufferfish.cli import main
from pufferfish.errors import ModelError
from pufferfish.theta.model_class import as_theta

COIN = pf.CPT(["no", "yes"], [0.5, 0.5])
APART = pf.BayesianNetwork({"a": COIN, "b": COIN, "c": COIN})
EDGE = pf.BayesianNetwork({"c": COIN, "b": pf.CPT(["yes", "no"], [[0.1, 0.9], [0.8, 0.2]], ["a"]), "a": COIN})
CLASS = [APART, EDGE]


def test_nodes_and_states_stand_in_the_order_of_the_first() -> None:
    theta = as_theta(CLASS)
    one, other = theta.networks
    assert one is APART
    assert other.nodes == one.nodes
    assert other.node_states == one.node_states
    assert other.edges == (("a", "b"),)
    assert other.cpts["b"].table.tolist() == [[0.9, 0.1], [0.2, 0.8]]
    assert np.array_equal(other.marginal("a", "b"), EDGE.marginal("a", "b")[:, ::-1])


def test_records_that_may_depend_on_each_other_under_any_member() -> None:
    """An edge of one member and an edge of another join three nodes."""
    other = pf.BayesianNetwork({"a": COIN, "b": COIN, "c": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.2, 0.8]], ["b"])})
    assert [group.records for group in as_theta([APART, EDGE]).lengths] == [2, 1]
    assert [group.records for group in as_theta([EDGE, other]).lengths] == [3]


def test_what_is_no_class() -> None:
    fewer = pf.BayesianNetwork({"a": COIN, "b": COIN})
    more = pf.BayesianNetwork({"a": COIN, "b": COIN, "c": COIN, "d": COIN})
    others = pf.BayesianNetwork({"a": COIN, "b": COIN, "c": pf.CPT(["no", "maybe"], [0.5, 0.5])})
    for network, words in (
        (
            fewer,
            "theta[1] has the nodes a, b and theta[0] a, b, c: all members of a class are about the same records; ",
        ),
        (fewer, "it lacks the node 'c'"),
        (more, "the node 'd' is only there"),
        (others, "node 'c' has the states no, maybe in theta[1] and no, yes in theta[0]"),
    ):
        with pytest.raises(ModelError) as refusal:
            as_theta([APART, network])
        assert words in str(refusal.value)


def test_cliques_are_of_the_same_people() -> None:
    with pytest.raises(
        ModelError, match=r"theta\[1\] is about groups of 2, 2 records and theta\[0\] of 4: all members"
    ):
        as_theta([pf.Cliques([0.2] * 5), pf.Cliques([[0.5, 0.25, 0.25]] * 2)])


def test_tables_releases_ledgers_and_comparisons(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": ["no", "yes"] * 5, "b": ["yes", "no"] * 5, "c": ["no"] * 10})
    rows = pf.read_rows(table, CLASS)
    assert rows.nodes == ("a", "b", "c")
    query = pf.Marginals()
    bound = pf.MarkovQuilt(CLASS, length=rows.length)
    ledger = pf.Ledger(bound, budget=2.0)
    calibration = bound.calibrate(query, 1.0)
    released = pf.release(rows, query, calibration, ledger=ledger)
    assert released.epsilon == 1.0
    count = pf.Subset(pf.Count("yes"), ["a", "b"])
    assert pf.release({"a": "no", "b": "yes", "c": "no"}, count, pf.GroupDP(CLASS).calibrate(count, 1))
    named = {row.mechanism: row.scale for row in pf.compare(CLASS, count, 1.0, secrets=["b"]) if row.scale}
    assert set(named) == {"group-dp", "markov-quilt", "propagation", "wasserstein", "exact-laplace"}
    ledger.save(tmp_path / "book.json")
    assert pf.Ledger.open(tmp_path / "book.json").spent == ledger.spent
    # noise for one member's graph is a loss of the same records
    edge = as_theta(CLASS).networks[1]
    ledger.spend(pf.MarkovQuilt(edge, length=rows.length).calibrate(pf.Marginals(["c"]), 0.5))


def test_model_files_and_the_command_line(tmp_path: Path) -> None:
    model, table = tmp_path / "model.json", tmp_path / "table.csv"
    pf.write_model(pf.Model(theta=CLASS), model)
    again = pf.read_model(model).theta
    assert [network.edges for network in again.networks] == [(), (("a", "b"),)]
    table.write_text("a,b,c\n" + "no,yes,no\nyes,no,no\n" * 5)
    options = ["--query", "marginals", "--epsilon", "1"]
    for command in (
        ["compare", str(model), "--table", str(table), *options],
        [
            "release",
            str(table),
            "--model",
            str(model),
            *options,
            "--accept",
            "noise",
            "--output",
            str(tmp_path / "release.json"),
        ],
    ):
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.output


def test_pictures_show_the_member_that_decides() -> None:
    pytest.importorskip("matplotlib")
    from pufferfish.mechanisms.network_picture import marked

    query = pf.Weighted(pf.Count("yes"), [3, 1, 0])
    calibration = pf.MarkovQuilt(CLASS).calibrate(query, 1.0)
    assert calibration.witness.theta == 1
    shown = marked(EDGE, calibration, None, None)  # as it was given, in its own order
    assert shown.names == ("a", "b", "c")
    assert shown.filled == (True, True, False)
    assert pf.draw_network(EDGE, calibration) is not None


def test_quilts_of_ones_own() -> None:
    """Names are a quilt under every graph; a Quilt is checked under each, and the message says which it is none of."""
    bound = pf.MarkovQuilt(CLASS, {"a": [["b"]]})
    assert bound.calibrate(pf.Count("yes"), 1.0).scale > 0
    with pytest.raises(
        ModelError, match=r"under theta\[1\]: the quilt \{\} does not separate node 'a' from the remote"
    ):
        pf.MarkovQuilt(CLASS, {"a": [pf.Quilt.of(APART, "a", [])]})
