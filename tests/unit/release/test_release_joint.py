"""Releases of several columns together: how they are counted, what is released, what is refused."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish.errors import DataError, NotApplicableError, ParameterError, QueryError, RecordError, ReleaseRefused

SMOKER = pf.CPT(["no", "yes"], [0.8, 0.2])
COUGH = pf.CPT(["no", "yes"], [[0.9, 0.1], [0.6, 0.4]], parents=["smoker"])
FEVER = pf.CPT(["none", "mild", "high"], [[0.9, 0.08, 0.02], [0.6, 0.3, 0.1]], parents=["cough"])
NETWORK = pf.BayesianNetwork({"smoker": SMOKER, "cough": COUGH, "fever": FEVER})
TABLE = pl.DataFrame(
    {
        "smoker": ["no", "yes", "no", "no", "yes", "yes"],
        "cough": ["no", "yes", "yes", "no", "yes", "no"],
        "fever": ["none", "high", "mild", "none", "none", "high"],
        "ward": ["a", "a", "b", "b", "b", "b"],
    }
)
FEVER_COUGH = pf.Joint(["fever", "cough"], relative=False)
COUNTS = [2, 1, 0, 1, 1, 1]
"""Rows in each combination of fever and cough, cough changing fastest."""


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the noise by none, so that the exact value shows."""
    drawing = sys.modules["pufferfish.release.draw"]
    monkeypatch.setattr(drawing, "discrete_laplace_noise", lambda exact, scale, lipschitz: lambda: exact)
    monkeypatch.setattr(drawing, "noise_in_bulk", lambda exact, scale, lipschitz: lambda: exact)


def read(table: Any = TABLE, **options: Any) -> pf.Rows:
    return pf.read_rows(table, NETWORK, **{"joint": ["cough", "fever"], **options})


def released(query: pf.Joint = FEVER_COUGH, rows: pf.Rows | None = None, **options: Any) -> pf.Release:
    data = read() if rows is None else rows
    noise = pf.LeakagePropagation(NETWORK, length=data.length).calibrate(query, epsilon=1.0)
    return pf.release(data, query, noise, **options)


@pytest.mark.usefixtures("silent")
def test_every_engine_counts_the_same() -> None:
    frame = TABLE.to_pandas()
    for table in (TABLE, TABLE.lazy(), frame, duckdb.from_df(frame), TABLE.to_arrow()):
        found = read(table)
        assert found.joint["cough", "fever"].tolist() == [[2, 0, 1], [1, 1, 1]]
        assert released(rows=found).noisy_values == COUNTS


def test_columns_of_other_types_and_spellings_are_counted_as_by_themselves() -> None:
    network = pf.BayesianNetwork({"a": pf.CPT(["1", "2"], [0.5, 0.5]), "b": pf.CPT(["false", "true"], [0.5, 0.5])})
    table = pd.DataFrame({"a": [1.0, 2.0, 2.0, None], "b": [True, False, True, True]})
    rows = pf.read_rows(table, network, joint=["a", "b"], missing="unobserved")
    assert rows.joint["a", "b"].tolist() == [[0, 1], [1, 1]]
    assert rows.counts["b"].tolist() == [1, 3]


@pytest.mark.usefixtures("silent")
def test_the_exact_value() -> None:
    three = pf.Joint(["smoker", "fever", "cough"])
    rows = read(joint=[["cough", "fever"], ["cough", "smoker", "fever"]])
    release = released(three, rows)
    each = Counter(zip(TABLE["smoker"], TABLE["fever"], TABLE["cough"], strict=True))
    assert release.query.labels[1] == "smoker=no, fever=none, cough=yes"
    expected = [each[s, f, c] / 6 for s in SMOKER.states for f in FEVER.states for c in COUGH.states]
    assert release.noisy_values == pytest.approx(expected)
    assert released(rows=rows).noisy_values == COUNTS
    row = {"smoker": "no", "cough": "yes", "fever": "mild"}
    noise = pf.LeakagePropagation(NETWORK).calibrate(FEVER_COUGH, 1.0)
    assert pf.release(row, FEVER_COUGH, noise).noisy_values == [0, 0, 0, 1, 0, 0]


@pytest.mark.usefixtures("silent")
def test_a_row_with_a_missing_cell_is_in_no_combination() -> None:
    rows = read(TABLE.with_columns(fever=pl.Series([None, *TABLE["fever"][1:]])), missing="unobserved")
    release = released(rows=rows)
    assert release.noisy_values == [1, *COUNTS[1:]]
    assert rows.counts["cough"].tolist() == [3, 3]
    with pytest.raises(ParameterError, match="in how many rows all of them are there"):
        released(rows=rows, postprocess="valid")


def test_the_loss_is_that_of_the_nodes_that_are_read() -> None:
    noise = pf.LeakagePropagation(NETWORK, length=6).calibrate(FEVER_COUGH, 1.0)
    loss = noise.node_loss
    assert not loss["smoker"].any()
    for node in ("cough", "fever"):
        assert loss[node][0, 1] == pytest.approx(2 / noise.scale)
    marginals = pf.LeakagePropagation(NETWORK, length=6).calibrate(pf.Marginals(["fever", "cough"]), 1.0)
    assert noise.scale == pytest.approx(6 * marginals.scale)
    assert pf.LeakagePropagation(NETWORK, length=6, secrets=["smoker"]).calibrate(FEVER_COUGH, 1.0).scale < noise.scale


def test_files_tables_and_proofs(tmp_path: Path) -> None:
    for relative, postprocess in ((True, None), (True, "valid"), (False, "valid")):
        query = pf.Joint(["fever", "cough"], relative=relative)
        found = released(query, postprocess=postprocess)
        found.to_json(tmp_path / "release.json", overwrite=True)
        again = pf.Release.from_json(tmp_path / "release.json")
        assert again == found
        assert again.verify(table=TABLE).holds
        if postprocess:
            assert min(again.values) >= 0
            assert sum(again.values) == pytest.approx(1 if relative else 6)
        assert found.to_frame()["output"].to_list() == list(found.query.labels)


def test_a_changed_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "release.json"
    text = released(pf.Joint(["fever", "cough"]), postprocess="valid").to_json()
    for old, new in (
        ("fever=mild, cough=no", "fever=mild, cough=maybe"),
        ('"divided_by": 6', '"divided_by": 12'),
        ('"kind": "joint"', '"kind": "joint-counts"'),
        ('"kind": "joint"', '"kind": "marginals"'),
    ):
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(RecordError):
            pf.Release.from_json(path)


@pytest.mark.usefixtures("silent")
def test_groups(tmp_path: Path) -> None:
    rows = read(by="ward")
    for query, times in ((FEVER_COUGH, (1, 1)), (pf.Joint(["fever", "cough"]), (2, 4))):
        found = released(query, rows, postprocess="valid")
        assert found.value * np.array(times)[:, None] == pytest.approx(
            np.array([[1, 0, 0, 0, 0, 1], [1, 1, 0, 1, 1, 0]]), abs=1e-12
        )
        found.to_json(tmp_path / "release.json", overwrite=True)
        assert pf.Release.from_json(tmp_path / "release.json") == found
        assert found.verify(table=TABLE).holds


def test_a_ledger_charges_the_nodes_that_are_read() -> None:
    bound, rows = pf.LeakagePropagation(NETWORK, length=6), read()
    ledger = pf.Ledger(bound, budget=3.0)
    for _ in range(2):
        released(ledger=ledger, rows=rows)
    noise = bound.calibrate(FEVER_COUGH, 1.0)
    assert ledger.spent == pytest.approx(bound.leakage([0.0, 4 / noise.scale, 4 / noise.scale]))


def test_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    axes = released().plot(tmp_path / "two.png").axes
    assert (axes[0].get_ylabel(), axes[0].get_xlabel()) == ("fever", "cough")
    assert [text.get_text() for text in axes[0].get_yticklabels()] == list(FEVER.states)
    three = pf.Joint(["smoker", "fever", "cough"])
    bars = released(three, read(joint=three.records)).plot(tmp_path / "three.svg").axes
    assert len(bars[0].patches) == 12


def test_every_bound_that_composes_covers_it() -> None:
    found = pf.compare(NETWORK, FEVER_COUGH, 1.0, length=6)
    covers = {row.mechanism for row in found if row.noise_multiplier}
    assert covers == {"group-dp", "markov-quilt", "propagation"}
    with pytest.raises(NotApplicableError, match="does not cover tables of several columns"):
        pf.Wasserstein(NETWORK, length=6).calibrate(FEVER_COUGH, 1.0)
    with pytest.raises(NotApplicableError, match='use noise="equal"'):
        pf.LeakagePropagation(NETWORK, length=6).calibrate(FEVER_COUGH, 1.0, noise="best")


def test_what_is_refused() -> None:
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["no", "yes"])
    many = pf.BayesianNetwork({f"v{i}": pf.CPT(["a", "b"], [0.5, 0.5]) for i in range(17)})
    law = pf.JointDistribution([["a", "a"], ["b", "b"]], [0.5, 0.5], variables=["u", "v"])
    other = read(joint=["smoker", "fever"])
    makes: list[tuple[type[Exception], str, Any]] = [
        (QueryError, r"expected two or more; .*Marginals\(\['cough'\]\)", lambda: pf.Joint(["cough"])),
        (QueryError, "each once", lambda: pf.Joint(["cough", "cough"])),
        (QueryError, r"use Transitions\(\)", lambda: pf.GroupDP(chain, 9).calibrate(pf.Joint(["a", "b"]), 1.0)),
        (QueryError, "use a BayesianNetwork", lambda: pf.GroupDP(law).calibrate(pf.Joint(["u", "v"]), 1.0)),
        (QueryError, "have 131,072 combinations", lambda: pf.GroupDP(many).calibrate(pf.Joint(many.nodes), 1.0)),
        (QueryError, "have 131,072 combinations", lambda: pf.read_rows(TABLE, many, joint=list(many.nodes))),
        (QueryError, "Did you mean 'cough'", lambda: released(pf.Joint(["fever", "cogh"]))),
        (QueryError, "expected a query such as", lambda: pf.GroupDP(NETWORK).calibrate(subset(), 1.0)),
        (ParameterError, r"joint=\['fever', 'cough'\]", lambda: released(rows=other)),
        (ParameterError, "joint is 'cough', expected two", lambda: read(joint="cough")),
        (ParameterError, "joint has cough, expected two", lambda: read(joint=["cough"])),
        (ParameterError, "Did you mean 'cough'", lambda: read(joint=["cogh", "fever"])),
        (ParameterError, "name it in both", lambda: read(columns=["cough"])),
        (DataError, "no column has its name", lambda: read(TABLE.drop("fever"))),
        (DataError, "has no state in 1 row", lambda: read(TABLE.with_columns(fever=pl.lit(None)).slice(0, 1))),
        (ReleaseRefused, "calibrated for number of the 6 rows", lambda: swapped()),
    ]
    for kind, says, make in makes:
        with pytest.raises(kind, match=says) as caught:
            make()
        assert "\n" not in str(caught.value)


def subset() -> pf.Subset:
    return pf.Subset(FEVER_COUGH, ["cough"])


def swapped() -> pf.Release:
    """A calibration whose bound query is that of other nodes."""
    from dataclasses import replace

    bound = pf.LeakagePropagation(NETWORK, length=6)
    noise = replace(bound.calibrate(FEVER_COUGH, 1.0), query=pf.Joint(["fever", "smoker"], relative=False))
    return pf.release(read(), pf.Joint(["fever", "smoker"], relative=False), noise)


def test_counts_that_contradict_each_other_are_refused() -> None:
    rows = read()
    own = {name: getattr(rows, name) for name in ("nodes", "states", "counts", "records", "base", "groups")}
    for joint, says in (
        ({("cough", "fever"): [[2, 0, 1], [1, 2, 0]]}, "does not add up to the counts of 'fever'"),
        ({("cough", "fever"): [[2, 0, 1]]}, r"has shape \(1, 3\)"),
        ({("cough", "fever"): [[2, 0, 1], [1, 3, -1]]}, "expected numbers of rows"),
        ({("cough",): [3, 3]}, "expected two or more of the nodes"),
    ):
        with pytest.raises(ParameterError, match=says):
            pf.Rows(**own, joint=joint)  # type: ignore[arg-type]


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    TABLE.sample(6000, with_replacement=True, seed=1).write_csv("rows.csv")
    pf.write_model(pf.Model(theta=pf.ModelClass((NETWORK,), "by hand")), "model.json")
    pf.write_model(pf.Model(theta=pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]], states=["no", "yes"])), "chain.json")  # type: ignore[arg-type]
    how = ("--epsilon", 1, "--output", "release.json", "--csv", "release.csv")
    found = run("release", "rows.csv", "--model", "model.json", "--query", "joint-counts:fever,cough", *how)
    assert found.exit_code == 0, found.output
    assert "fever=none, cough=no" in found.stdout
    record = pf.Release.from_json("release.json")
    assert pl.read_csv("release.csv")["value"].to_list() == record.values
    assert sum(record.values) == pytest.approx(6000, abs=200)
    compared = run("compare", "model.json", "--query", "joint:fever,cough", "--length", 6000, "--epsilon", 1)
    assert compared.exit_code == 0, compared.output
    for query, model, says in (
        ("joint", "model.json", "names no node: expected joint:NODE"),
        ("joint:fever", "model.json", "expected two or more"),
        ("joint:fever,cogh", "model.json", "Did you mean 'cough'"),
        ("joint:a,b", "chain.json", "for transitions (how often each state follows"),
    ):
        refused("compare", model, "--length", 9, "--query", query, "--epsilon", 1, says=[says])
