"""Networks in model files: what is written comes back, and nothing else is taken for it."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

import pufferfish as pf
from pufferfish.cli import main
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, RecordError
from pufferfish.fit.model_file import chains_of

BIF = """network rain { }
variable Rain { type discrete [ 2 ] { no, yes }; }
variable Wet { type discrete [ 3 ] { dry, 0-5, 5+ }; }
probability ( Rain ) { table 0.8, 0.2; }
probability ( Wet | Rain ) { (no) 0.9, 0.1, 0; (yes) 0.333, 0.333, 0.333; }
"""


def network(rain: float = 1 / 3) -> pf.BayesianNetwork:
    return pf.BayesianNetwork(
        {
            "Wet ☂": pf.CPT(["dry", "5+"], [[1, 0], [0.1, 0.9], [1 / 7, 6 / 7]], parents=["Rain"]),
            "Rain": pf.CPT(["no", "some", "much"], [1 - rain, rain / 3, 2 * rain / 3]),
        }
    )


def same(one: Any, other: Any) -> None:
    assert one.nodes == other.nodes
    assert one.node_states == other.node_states
    for node in one.nodes:
        assert one.cpts[node].parents == other.cpts[node].parents
        assert np.array_equal(one.cpts[node].table, other.cpts[node].table)


def test_a_class_of_networks_reads_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    members = (network(), network(0.1), network(0))
    pf.write_model(pf.Model(theta=pf.ModelClass(members, "two offices"), fitted_on="ab" * 32 + ":"), path)
    found = pf.read_model(path)
    assert found.theta.origin == "two offices"
    assert found.fitted_on == "ab" * 32 + ":"
    assert found.theta.chains == ()
    for mine, theirs in zip(members, found.theta.members, strict=True):
        same(mine, theirs)
    pf.write_model(found, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_a_network_or_a_list_of_them_makes_a_model() -> None:
    assert pf.Model(theta=network()).theta.origin == "stated by the user"
    assert len(pf.Model(theta=[network(), network(0.1)]).theta.members) == 2


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300).filter(lambda row: sum(row) > 1e-3))
def test_rows_divided_by_their_sums_are_not_divided_again(row: list[float]) -> None:
    law = np.array(row) / sum(row)
    once = pf.BayesianNetwork({"x": pf.CPT(range(len(row)), law)}).cpts["x"]
    again = pf.BayesianNetwork({"x": once}).cpts["x"]
    assert np.array_equal(once.table, again.table)
    assert once.table.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("name", "compress"), [("rain.bif", bytes), ("rain.BIF.gz", gzip.compress)])
def test_a_bif_file_is_a_model_of_one_network(tmp_path: Path, name: str, compress: Callable[[bytes], bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(compress(BIF.encode()))
    model = pf.read_model(path)
    assert model.theta.origin == f"stated by the user: {name}"
    assert model.theta.kind == "Bayesian networks"
    same(model.theta.members[0], pf.BayesianNetwork.from_bif(path))
    pf.write_model(model, tmp_path / "model.json")
    same(pf.read_model(tmp_path / "model.json").theta.members[0], model.theta.members[0])


def test_a_damaged_bif_file_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "rain.bif"
    path.write_text(BIF.replace("(yes)", "(maybe)"))
    with pytest.raises(RecordError, match=r"rain\.bif, line 5: 'maybe' is no state of 'Rain'"):
        pf.read_model(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(kind="cliques"), "a class of cliques, expected Markov chains or Bayesian networks"),
        (lambda d: d.update(kind="Markov chains"), "a class of Markov chains, expected"),
        (lambda d: d.pop("kind"), "a class of Markov chains, expected"),
        (lambda d: d.update(members=[]), "theta of Bayesian networks is described by its members"),
        (lambda d: d.update(states=["no"]), "states are no, those of the members dry, 5"),
        (lambda d: d.update(chains=[{"transition_matrix": [[1]], "initial_distribution": "any"}]), "not by chains"),
        (lambda d: d.update(step="1min"), "step is '1min', and belongs to Markov chains"),
        (lambda d: d.update(bins=[1.0, 2.0]), "bins is .*, and belongs to Markov chains"),
        (lambda d: d["members"][0].update(extra=1), "network 0: Object contains unknown field"),
        (lambda d: d["members"][0]["nodes"].pop("Rain"), "network 0: node 'Wet ☂' has the parent 'Rain', which is no"),
        (lambda d: d["members"][0]["nodes"]["Rain"].pop("states"), "network 0: .*missing required field `states`"),
        (lambda d: d["members"][0]["nodes"]["Rain"].update(table=[0.5, 0.5, 0.1]), "network 0: .* sums to 1.1"),
        (lambda d: d["members"][0]["nodes"]["Rain"].update(table=[[1, 0], [1]]), "not an array of numbers"),
        (lambda d: d["members"][0]["nodes"]["Rain"].update(parents=["Wet ☂"]), "network 0: .*table has shape"),
        (lambda d: d["members"].append(d["members"][0] | {"nodes": {}}), "network 1: cpts is empty"),
    ],
)
def test_a_bad_model_file_is_refused(tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str) -> None:
    path = tmp_path / "model.json"
    pf.write_model(pf.Model(theta=network()), path)
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))
    with pytest.raises(RecordError, match=message) as caught:
        pf.read_model(path)
    assert "\n" not in str(caught.value)


def test_a_file_of_chains_from_before_networks_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    chain = pf.MarkovChain([[0.9, 0.1], [1 / 3, 2 / 3]], states=["<2", ">=2"])
    pf.write_model(pf.Model(theta=chain, bins=(1.0, 2.0, 3.0), step="1min"), path)
    record = json.loads(path.read_text())
    assert record.pop("members") == []
    assert record.pop("kind") == "Markov chains"
    path.write_text(json.dumps(record))
    found = pf.read_model(path)
    assert np.array_equal(found.theta.chains[0].transition_matrix, chain.transition_matrix)
    assert (found.bins, found.step) == ((1.0, 2.0, 3.0), "1min")


def test_models_of_other_kinds_are_refused() -> None:
    with pytest.raises(ModelError, match=r"theta is a class of .*; a Model holds Markov chains or"):
        pf.Model(theta=pf.Cliques([0.5, 0.5], states=["a", "b"]))
    with pytest.raises(ModelError, match="theta is int"):
        pf.Model(theta=3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="step is '1min', and belongs to Markov chains"):
        pf.Model(theta=network(), step="1min")
    with pytest.raises(ParameterError, match=r"bins is \(0.0, 1.0\), and belongs to Markov chains"):
        pf.Model(theta=network(), bins=(0.0, 1.0))


def test_nodes_that_are_not_text_are_not_written(tmp_path: Path) -> None:
    coins = pf.BayesianNetwork({True: pf.CPT(["a", "b"], [0.5, 0.5])})
    with pytest.raises(RecordError, match=r"node True is bool, and files name nodes by text: .* 'true'"):
        pf.write_model(pf.Model(theta=coins), tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_chains_are_told_from_networks(tmp_path: Path) -> None:
    chains = pf.Model(theta=pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]))
    assert chains_of(chains, "model.json") is chains
    with pytest.raises(
        NotApplicableError, match=r"net\.json holds Bayesian networks; this command knows Markov chains"
    ):
        chains_of(pf.Model(theta=network()), "net.json")


def test_commands_that_know_chains_refuse_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rain.bif").write_text(BIF)
    result = CliRunner().invoke(main, ["robustness", "rain.bif", "rain.bif", "--length", "10"])
    assert result.exit_code == 2
    assert "rain.bif holds Bayesian networks; this command knows Markov chains only" in result.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rain.bif"]
