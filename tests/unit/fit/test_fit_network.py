"""Networks from public tables: every number against a plain count, arrows in all ways to write them, and refusals."""

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.errors import DataError, ModelError, ParameterError, RecordError
from pufferfish.fit.model_file import write_bif
from pufferfish.fit.network import fit_network_to, parse_arrows
from sampled_networks import WARD, rows_of

ARROWS = "smoke->lung, age->lung, lung->either->xray, rare->either"
TABLE = rows_of(WARD, 600, seed=1)


def by_hand(table: pl.DataFrame, node: str, parents: list[str], smoothing: float) -> dict[tuple[str, ...], float]:
    """The probability of each state given each row of parents, by a plain loop."""
    shares = Counter(table[node])
    rows = Counter(table.select(parents).rows()) if parents else Counter({(): table.height})
    cells = Counter(table.select(*parents, node).rows())
    return {
        (*above, state): (cells[*above, state] + smoothing * shares[state] / table.height) / (n + smoothing)
        for above, n in rows.items()
        for state in shares
    }


@pytest.mark.parametrize("smoothing", [0.0, 1.0, 12.5])
def test_tables_are_those_of_a_plain_count(smoothing: float) -> None:
    network = pf.fit_network(TABLE, ARROWS, smoothing=smoothing).networks[0]
    assert set(network.edges) == set(WARD.edges)
    for node, cpt in network.cpts.items():
        for place, p in by_hand(TABLE, node, list(cpt.parents), smoothing).items():
            names = [*cpt.parents, node]
            index = tuple(network.node_states[name].index(state) for name, state in zip(names, place, strict=True))
            assert cpt.table[index] == pytest.approx(p, abs=1e-12)


def test_rows_that_were_never_seen_are_the_nodes_shares_and_are_told() -> None:
    table = pl.DataFrame({"a": ["x", "x", "y", "y"], "b": ["p", "p", "p", "q"], "c": ["no", "yes", "no", "no"]})
    for smoothing in (0.0, 2.0):
        fit = fit_network_to(table, "a->c, b->c", columns=None, smoothing=smoothing, certainties=[])
        assert fit.theta.networks[0].cpts["c"].table[0, 1].tolist() == [0.75, 0.25]  # a=x, b=q
        assert "1 of 6 rows of tables were never seen and are the node's shares" in fit.theta.origin
        assert [(t.node, t.rows, t.unseen) for t in fit.tables] == [("a", 1, 0), ("c", 4, 1), ("b", 1, 0)]


def test_certainties_stay_certain() -> None:
    loose, certain = (pf.fit_network(TABLE, ARROWS, certainties=c).networks[0] for c in ([], ["either"]))
    assert (loose.cpts["either"].table[0, 0] > 0).all()
    table = certain.cpts["either"].table
    assert table[0, 0].tolist() == [1, 0]
    assert table[1, 0].tolist() == [0, 1]
    assert (certain.cpts["lung"].table > 0).all()
    assert not TABLE.filter(pl.col("rare") == "yes", pl.col("lung") == "yes").height  # never seen: not certain
    assert (table[1, 1] > 0).all()


def test_arrows_are_written_in_several_ways(tmp_path: Path) -> None:
    expected = parse_arrows(ARROWS)
    assert expected == [("smoke", "lung"), ("age", "lung"), ("lung", "either"), ("either", "xray"), ("rare", "either")]
    file = tmp_path / "arrows.txt"
    file.write_text("# what we know\nsmoke->lung\nage -> lung  # of course\n\nlung->either->xray, rare->either\n")
    assert parse_arrows(file) == parse_arrows(str(file)) == parse_arrows(expected) == expected
    assert parse_arrows(np.array(expected).tolist()) == expected
    assert parse_arrows([], empty=True) == parse_arrows("", empty=True) == []


def test_a_comma_that_is_missing_between_arrows_is_asked_for() -> None:
    with pytest.raises(
        DataError, match=r"'lung smoke' not found.*Arrows are separated by commas: is one missing in 'lung "
    ):
        pf.fit_network(TABLE, "age->lung smoke->either")
    with pytest.raises(DataError, match="not found") as told:
        pf.fit_network(TABLE, "age->lung cough")
    assert "commas" not in str(told.value)


def test_every_engine_gives_the_same_network(tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "t.csv")
    TABLE.write_parquet(tmp_path / "t.parquet")
    tables: list[Any] = [TABLE.lazy(), TABLE.to_pandas(), tmp_path / "t.csv", tmp_path / "t.parquet"]
    relation = duckdb.from_arrow(TABLE.to_arrow())
    expected = pf.fit_network(TABLE, ARROWS).networks[0]
    for table in [*tables, relation, TABLE.sample(fraction=1, shuffle=True, seed=3)]:
        network = pf.fit_network(table, ARROWS).networks[0]
        assert network.edges == expected.edges
        for node in network.nodes:
            assert np.array_equal(network.cpts[node].table, expected.cpts[node].table)


def test_numbers_of_a_file_without_types_are_one_state(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,10\n1.0,9\n2,10\n")
    network = pf.fit_network(path, "a->b").networks[0]
    assert network.node_states == {"a": ("1", "2"), "b": ("9", "10")}


def test_missing_cells_subjects_and_filters_are_as_for_rows() -> None:
    table = pl.DataFrame(
        {"who": [1, 2, 3, 4, 5], "a": ["x", "y", None, "x", "y"], "b": ["p", None, "p", "q", "p"], "w": [1, 1, 1, 1, 0]}
    )
    with pytest.raises(DataError, match="missing='refuse'"):
        pf.fit_network(table, "a->b")
    theta = pf.fit_network(table, "a->b", missing="unobserved", smoothing=0, subject="who", where="w == 1")
    assert "rows where w == 1, 4 rows" in theta.origin
    assert theta.networks[0].cpts["a"].table.round(6).tolist() == [0.666667, 0.333333]
    assert theta.networks[0].cpts["b"].table.round(6).tolist() == [[0.5, 0.5], [0.666667, 0.333333]]
    with pytest.raises(DataError, match="several rows for 1 subject"):
        pf.fit_network(table.with_columns(who=pl.Series([1, 1, 2, 3, 4])), "a->b", subject="who", missing="unobserved")


def test_columns_without_arrows_are_independent() -> None:
    network = pf.fit_network(TABLE, "smoke->lung", columns=["xray", "lung"]).networks[0]
    assert network.nodes == ("smoke", "lung", "xray")
    assert network.groups == (2, 1)
    assert pf.fit_network(TABLE, [], columns=["xray"]).networks[0].edges == ()


def test_the_tree_of_chow_and_liu_is_the_best_of_all() -> None:
    """Against the information of every tree, by enumeration of the pairs' sums."""
    names = ["either", "lung", "smoke", "xray"]
    table = rows_of(WARD, 2_000, seed=2)
    theta = pf.fit_network(table, "chow-liu", columns=names, smoothing=0)
    edges = theta.networks[0].edges
    assert len(edges) == 3
    assert {"either"} == set(names) - {child for _, child in edges}  # the first name is the root

    def information(a: str, b: str) -> float:
        both, first, second = Counter(table.select(a, b).rows()), Counter(table[a]), Counter(table[b])
        n = table.height
        return sum(c / n * np.log(c * n / first[x] / second[y]) for (x, y), c in both.items())

    pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    trees = [
        (p, q, r)
        for i, p in enumerate(pairs)
        for j, q in enumerate(pairs[:i])
        for r in pairs[:j]
        if {*p, *q, *r} == set(names) and len({frozenset(x) for x in (p, q, r)}) == 3
    ]
    best = max(trees, key=lambda tree: sum(information(*pair) for pair in tree))
    assert {frozenset(edge) for edge in edges} == {frozenset(pair) for pair in best}
    shuffled = table.select(names[::-1]).sample(fraction=1, shuffle=True, seed=1)
    assert set(pf.fit_network(shuffled, "chow-liu").networks[0].edges) == set(edges)
    assert "tree of Chow and Liu" in theta.origin


@pytest.mark.parametrize(
    ("arrows", "options", "kind", "says"),
    [
        ("smoke->lung->smoke", {}, ModelError, "cycle: smoke → lung → smoke"),
        ("smoke->smoke", {}, ParameterError, "cannot depend on itself"),
        ("smoke->lung, smoke->lung", {}, ParameterError, "smoke->lung twice"),
        ("smoke->lungs", {}, DataError, "column 'lungs' not found. Did you mean 'lung'"),
        ("smoke->", {}, ParameterError, "expected an arrow such as smoke->lung"),
        ("smoke->lung, age", {}, ParameterError, "arrows has 'age'"),
        ("nowhere.txt", {}, ParameterError, "not a file of arrows"),
        ([("smoke",)], {}, ParameterError, r"arrows\[0\]"),
        ([], {}, ParameterError, "arrows is empty"),
        (5, {}, ParameterError, "arrows is 5"),
        ("smoke->lung", {"certainties": ["lunge"]}, ParameterError, "not a node. Did you mean 'lung'"),
        ("smoke->lung", {"columns": "xray"}, ParameterError, "columns is 'xray'"),
        ("smoke->lung", {"columns": ["xray", "xray"]}, ParameterError, "twice"),
        ("smoke->lung", {"smoothing": -1}, ParameterError, "smoothing"),
        ("smoke->lung", {"by": "age"}, ParameterError, "by is not an option"),
        ("smoke->lung", {"where": "lung == 'no'"}, pf.PufferfishError, "lung"),
    ],
)
def test_what_is_no_network_is_refused_in_one_line(arrows: Any, options: Any, kind: Any, says: str) -> None:
    with pytest.raises(kind, match=says) as caught:
        pf.fit_network(TABLE, arrows, **options)
    assert "\n" not in str(caught.value)


def test_tables_that_are_too_large_are_refused_with_numbers() -> None:
    wide = pl.DataFrame({f"c{i}": list(range(40)) for i in range(5)})
    with pytest.raises(ModelError, match=r"102,400,000 entries for 40 rows of data, at most 1,000,000"):
        pf.fit_network(wide, [(f"c{i}", "c4") for i in range(4)])
    names = [f"c{i}" for i in range(33)]
    with pytest.raises(ModelError, match="32 parents, at most 31"):
        pf.fit_network(wide, [(name, "c32") for name in names[:-1]])
    many = pl.DataFrame({"id": list(range(3_000)), "a": ["x"] * 3_000})
    with pytest.raises(DataError, match="bin it, or leave it out"):
        pf.fit_network(many, "chow-liu")


def test_the_model_knows_the_table_it_was_fitted_to(tmp_path: Path) -> None:
    theta = pf.fit_network(TABLE, ARROWS)
    rows = pf.read_rows(TABLE, theta)
    model = pf.Model.fitted(theta, rows)
    assert model.theta.origin.startswith("fitted to public data on ")
    assert "polars frame, 600 rows; 1 row of a node's shares added" in model.theta.origin
    pf.write_model(model, tmp_path / "m.json")
    read = pf.read_model(tmp_path / "m.json")
    query = pf.Marginals()
    noise = pf.LeakagePropagation(read, length=rows.length).calibrate(query, 1.0)
    with pytest.raises(pf.PufferfishError, match="fitted to this very table"):
        pf.release(rows, query, noise)
    other = pf.read_rows(rows_of(WARD, 600, seed=9), theta)
    assert len(pf.release(other, query, noise).values) == 12
    with pytest.raises(ParameterError, match="data has the column 'smoke'"):
        pf.Model.fitted(pf.BayesianNetwork({"smoke": pf.CPT(["a"], [1.0])}), rows)
    with pytest.raises(ParameterError, match="data is Sequences"):
        pf.Model.fitted(theta, pf.read_sequences(TABLE, "smoke"))


def test_bif_files_hold_the_same_network(tmp_path: Path) -> None:
    odd = TABLE.rename({"lung": "lung disease", "xray": "x{ray}"}).with_columns(pl.col("age") + "//, |;")
    network = pf.fit_network(odd, [("smoke", "lung disease"), ("lung disease", "x{ray}"), ("age", "x{ray}")]).networks[
        0
    ]
    path = tmp_path / "odd.bif"
    write_bif(pf.Model(theta=network), path)
    read = pf.BayesianNetwork.from_bif(path)
    assert (read.nodes, read.edges, dict(read.node_states)) == (network.nodes, network.edges, dict(network.node_states))
    for node in network.nodes:
        assert np.abs(read.cpts[node].table - network.cpts[node].table).max() <= 1e-15
    with pytest.raises(RecordError, match="quotation marks"):
        write_bif(pf.Model(theta=pf.BayesianNetwork({'a"b': pf.CPT(["x"], [1.0])})), tmp_path / "no.bif")
    assert not (tmp_path / "no.bif").exists()
    pyagrum = pytest.importorskip("pyagrum")
    write_bif(pf.Model(theta=pf.fit_network(TABLE, ARROWS)), path.with_name("plain.bif"))
    assert pyagrum.loadBN(str(path.with_name("plain.bif"))).size() == 6
