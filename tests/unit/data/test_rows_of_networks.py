"""What read_rows makes of small tables by hand, and one test per message a table can meet."""

from datetime import date
from decimal import Decimal

import duckdb
import msgspec
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.data import Rows, RowsBase, read_rows
from pufferfish.errors import DataError, ModelError, ParameterError


def network_of(**states):
    """A network in which every node hangs on the first."""
    cpts, above = {}, None
    for name, own in states.items():
        row = [1 / len(own)] * len(own)
        cpts[name] = pf.CPT(own, row if above is None else [row] * len(states[above]), [above] if above else [])
        above = above or name
    return pf.BayesianNetwork(cpts)


NETWORK = network_of(rain=["no", "yes"], wind=["low", "high", "storm"], wet=["dry", "wet"])
TABLE = {
    "day": [1, 2, 3, 4],
    "wet": ["dry", "wet", "wet", "dry"],
    "rain": ["no", "yes", "no", "no"],
    "month": ["may", "may", "june", "june"],
}


def counts(rows):
    return {node: array.tolist() for node, array in rows.counts.items()}


def change(**columns):
    return pl.DataFrame(TABLE | columns, strict=False)


def refused(source, network=NETWORK, **options):
    """The one line of the error."""
    with pytest.raises(pf.PufferfishError) as caught:
        read_rows(source, network, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    return type(caught.value), message


# -- what is read --------------------------------------------------------------------------------------------


def test_nodes_that_are_columns_are_read_in_the_order_of_the_network():
    rows = read_rows(pl.DataFrame(TABLE), NETWORK)
    assert rows.nodes == ("rain", "wet")
    assert list(rows.counts) == list(rows.states) == ["rain", "wet"]
    assert counts(rows) == {"rain": [3, 1], "wet": [2, 2]}
    assert rows.states == {"rain": ("no", "yes"), "wet": ("dry", "wet")}
    assert rows.records == rows.length == 4
    assert rows.observed == {"rain": 4, "wet": 4}
    assert rows.base == RowsBase(source="polars frame", columns={"rain": "rain", "wet": "wet"})


def test_a_state_that_no_row_has_is_counted_as_none():
    rows = read_rows(change(wind=["storm", "low", "storm", "storm"]), NETWORK)
    assert counts(rows)["wind"] == [1, 0, 3]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["wet"], {"wet": "wet"}),
        (("wet", "rain"), {"rain": "rain", "wet": "wet"}),
        ({"rain": "wet it was"}, {"rain": "wet it was"}),
        ({"wind": "rain", "rain": "wet it was"}, {"rain": "wet it was", "wind": "rain"}),
    ],
)
def test_columns_that_are_chosen(columns, expected):
    frame = change(rain=["low", "high", "low", "low"]) if "wind" in columns else pl.DataFrame(TABLE)
    rows = read_rows(frame.with_columns(pl.Series("wet it was", ["no", "yes", "yes", "yes"])), NETWORK, columns=columns)
    assert rows.base.columns == expected
    assert list(rows.base.columns) == list(rows.nodes)
    if "rain" in expected and isinstance(columns, dict):
        assert counts(rows)["rain"] == [1, 3]
    if "wind" in columns:
        assert counts(rows)["wind"] == [3, 1, 0]


def test_nodes_that_are_no_text():
    numbers = pf.BayesianNetwork({0: pf.CPT(["a", "b"], [0.5, 0.5]), 1: pf.CPT([0, 1], [0.5, 0.5])})
    frame = pl.DataFrame({"1": [0, 1, 1], "0": ["a", "a", "b"]})
    for table in (frame, pd.DataFrame({1: [0, 1, 1], 0: ["a", "a", "b"]})):
        rows = read_rows(table, numbers)
        assert rows.nodes == (0, 1)
        assert counts(rows) == {0: [2, 1], 1: [1, 2]}
        assert rows.base.columns == {"0": "0", "1": "1"}
    assert read_rows(frame, numbers, columns=["1"]).nodes == (1,)
    assert read_rows(frame, numbers, columns={1.0: "1"}).nodes == (1,)


def test_a_class_of_networks_with_the_same_nodes():
    cpts = NETWORK.cpts | {"rain": pf.CPT(["no", "yes"], [0.9, 0.1])}
    other = pf.BayesianNetwork(cpts)
    both = pf.ModelClass((NETWORK, other))
    for theta in ([NETWORK, other], (other, NETWORK), both, pf.Model(theta=both)):
        assert counts(read_rows(pl.DataFrame(TABLE), theta)) == {"rain": [3, 1], "wet": [2, 2]}


def test_rows_that_a_filter_keeps():
    frame = change(n=[1, None, 3, 4])
    assert counts(read_rows(frame, NETWORK, where="n >= 1 and month == 'june'"))["rain"] == [2, 0]
    rows = read_rows(frame, NETWORK, where="n < 4", columns=["wet"])
    assert (rows.records, counts(rows)) == (2, {"wet": [1, 1]})
    assert rows.base.where == "n < 4"


def test_missing_cells_are_not_counted_where_they_are_public():
    frame = change(rain=["no", None, "no", None], wet=[None, "wet", "wet", "dry"])
    rows = read_rows(frame, NETWORK, missing="unobserved")
    assert counts(rows) == {"rain": [2, 0], "wet": [1, 2]}
    assert (rows.records, rows.observed) == (4, {"rain": 2, "wet": 3})


def test_missing_cells_of_rows_that_are_left_out_do_not_matter():
    assert counts(read_rows(change(rain=["no", None, "no", "yes"]), NETWORK, where="day != 2"))["rain"] == [2, 1]


def test_one_row():
    assert counts(read_rows(pl.DataFrame(TABLE).head(1), NETWORK, subject="day")) == {"rain": [1, 0], "wet": [1, 0]}


# -- labels --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "states"),
    [
        (pl.Series([10, 2, 10], dtype=pl.Int8), [2, 10]),
        (pl.Series([10.0, 2.0, 10.0]), ["2", "10"]),
        (pl.Series([Decimal(10), Decimal(2), Decimal(10)]), [2.0, 10.0]),
        (pl.Series([0.5, -2.0, 0.5]), [-2, 0.5]),
        (pl.Series([True, False, True]), [False, True]),
        (pl.Series(["10", "2", "10"]), [2, 10]),
        (pl.Series(["walk", "run", "walk"], dtype=pl.Categorical), ["run", "walk"]),
        (pl.Series(["walk", "run", "walk"], dtype=pl.Enum(["walk", "run", "sit"])), ["run", "walk"]),
        (pl.Series([2**60, 2**60 + 1, 2**60]), [2**60 + 1, 2**60]),
    ],
)
def test_cells_are_states_by_their_labels(column, states, tmp_path):
    frame, network = pl.DataFrame({"x": column, "row": [1, 2, 3]}), network_of(x=states)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    connection = duckdb.connect()
    connection.register("held", frame.to_arrow())
    tables = [frame, frame.lazy(), frame.to_pandas(), frame.to_arrow(), connection.sql("select * from held")]
    for table in [*tables, nw.from_native(frame), tmp_path / "t.csv", tmp_path / "t.parquet"]:
        assert counts(read_rows(table, network)) == {"x": [1, 2]}


def test_pandas_columns_after_a_missing_value(tmp_path):
    held = pd.DataFrame({"x": [1, 2, None, 1], "b": [True, None, False, True]})
    held.to_csv(tmp_path / "t.csv", index=False)
    network = network_of(x=[1, 2, 3], b=[True, False])
    tables = [held, held.astype(object), held.convert_dtypes(), held.astype("category"), tmp_path / "t.csv"]
    for table in tables:
        rows = read_rows(table, network, missing="unobserved")
        assert counts(rows) == {"x": [2, 1, 0], "b": [2, 1]}


def test_columns_of_many_types_together():
    frame = pl.DataFrame({"a": ["1", "2"], "b": [1, 2], "c": [1.0, 2.0], "d": [True, False], "e": [1, 1]})
    network = network_of(e=[2, 1], d=["true", "false"], c=[2, 1], b=[1, 2], a=[1, 2])
    expected = {"e": [0, 2], "d": [1, 1], "c": [1, 1], "b": [1, 1], "a": [1, 1]}
    for table in (frame, frame.to_pandas(), frame.to_arrow()):
        assert counts(read_rows(table, network)) == expected


def test_csv_states_that_only_look_like_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1.0,01\n2,1\n1,01\n")
    assert counts(read_rows(tmp_path / "t.csv", network_of(x=[1, 2], y=["01", "1"]))) == {"x": [2, 1], "y": [2, 1]}
    (tmp_path / "t.csv").write_text('x,y\n1.0,True\n2.0,""\n1.0,FALSE\n')
    rows = read_rows(tmp_path / "t.csv", network_of(x=["1.0", "2.0"], y=[False, True]), missing="unobserved")
    assert counts(rows) == {"x": [2, 1], "y": [1, 1]}


# -- subjects ------------------------------------------------------------------------------------------------


def test_every_subject_has_one_row(tmp_path):
    frame = pl.DataFrame(TABLE)
    frame.write_csv(tmp_path / "t.csv")
    for table in (frame, frame.to_pandas(), tmp_path / "t.csv"):
        assert read_rows(table, NETWORK, subject="day").base.subject == "day"


@pytest.mark.parametrize("kind", [pl.DataFrame, lambda columns: pd.DataFrame(columns)])
def test_several_rows_of_a_subject(kind):
    table = kind(TABLE | {"day": [7, 8, 7, 8], "who": ["b", "a", "a", "a"]})
    assert refused(table, subject="day") == (
        DataError,
        "column 'day' has several rows for 2 subjects (e.g. '7': 2 rows): rows of one subject are not independent of "
        "each other; keep one row of each, e.g. with where=",
    )
    assert "has several rows for 1 subject (e.g. 'a': 3 rows)" in refused(table, subject="who")[1]
    assert read_rows(table, NETWORK, subject="day", where="month == 'may'").records == 2
    assert read_rows(table, NETWORK).records == 4  # without subject= every row is one, and the assumptions say so


def test_rows_without_a_subject():
    frame = change(day=[1, None, None, 2])
    assert refused(frame, subject="day")[1] == (
        "column 'day' has no subject in 2 rows (first: row 2): every record needs a subject; drop these rows or fill "
        "in their subject"
    )
    assert read_rows(frame, NETWORK, subject="day", where="day != none").records == 2


# -- columns and options -------------------------------------------------------------------------------------


def test_no_column_is_a_node():
    frame = pl.DataFrame({"Rain": ["no"], "Day": [1]})
    kind, message = refused(frame)
    assert kind is DataError
    assert message == (
        "no column is a node of the network: rename columns, or in Python give columns={'rain': 'Rain'}. Columns: "
        "Rain, Day. Nodes: rain, wind, wet."
    )
    assert refused(pl.DataFrame({"x": [1]}))[1].startswith(
        "no column is a node of the network: rename columns, or in Python give columns={node: column}. Columns: x."
    )
    assert "Columns: x." in refused(pd.DataFrame({"x": [1]}))[1]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("rain", "columns is 'rain', expected a list such as ['rain'] or a dict"),
        (7, "columns is 7, expected a list"),
        ([], "columns is empty, expected a list"),
        ({}, "columns is empty, expected a list"),
        (["ran"], "columns names 'ran', which is not a node. Did you mean 'rain'? Nodes: rain, wind, wet"),
        ({"Rain": "rain"}, "columns names 'Rain', which is not a node. Did you mean 'rain'?"),
        ([None], "columns names None, which is not a node. Nodes: rain, wind, wet"),
        ([["rain"]], "columns names ['rain'], which is not a node"),
        ({"rain": 3}, "columns['rain'] is 3, expected the name of a column"),
        ({"rain": None}, "columns['rain'] is None, expected the name of a column"),
        (["rain", "wet", "rain"], "columns names the node 'rain' more than once"),
        ({"rain": "wet", "wet": "wet"}, "columns gives the column 'wet' to two nodes"),
    ],
)
def test_columns_that_are_none(columns, words):
    kind, message = refused(pl.DataFrame(TABLE), columns=columns)
    assert kind is ParameterError
    assert words in message


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"columns": ["wind"]}, DataError, "column 'wind' not found. Columns: day, wet, rain, month."),
        ({"columns": {"rain": "mnth"}}, DataError, "column 'mnth' not found. Did you mean 'month'?"),
        ({"subject": "dy"}, DataError, "column 'dy' not found. Did you mean 'day'?"),
        ({"subject": 3}, ParameterError, "subject is 3, expected the name of a column"),
        ({"subject": "wet"}, ParameterError, "subject is 'wet', the column of a node: expected the column that names"),
        ({"subject": "wind"}, ParameterError, "subject is 'wind', the column of a node"),
        (
            {"columns": {"wind": "month"}, "subject": "month"},
            ParameterError,
            "subject is 'month', the column of a node",
        ),
        ({"missing": "split"}, ParameterError, "missing is 'split', expected one of 'refuse', 'unobserved'"),
        ({"missing": None}, ParameterError, "missing is None, expected one of 'refuse', 'unobserved'"),
        ({"where": 3}, ParameterError, "where is 3, expected text"),
        ({"where": "mont == 'may'"}, DataError, "column 'mont' not found. Did you mean 'month'?"),
        ({"where": "day > 9"}, DataError, "no row of polars frame is left where day > 9 (4 before)"),
        ({"where": "day > 9", "subject": "day"}, DataError, "no row of polars frame is left where day > 9"),
    ],
)
def test_options_out_of_range(options, kind, words):
    found, message = refused(pl.DataFrame(TABLE), **options)
    assert (found, words in message) == (kind, True), message


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        ("rain == 'no'", None),
        ("day > 1 and not (col('wet') != 'dry')", None),
        ("rain == none", ["wet"]),  # not read, and as private
        ("wind == 'low'", None),  # a node, whether it is a column or not
        ("month == 'may'", {"rain": "month"}),
        ("rain == 'no'", {"rain": "month"}),
    ],
)
def test_a_filter_on_a_node_is_refused(where, columns):
    kind, message = refused(pl.DataFrame(TABLE), where=where, columns=columns)
    assert kind is DataError
    assert message.startswith(f"where {where!r} refers to the node column ")
    assert "a filter is public, so it must not depend on the private states" in message


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (3, "network is int, expected a BayesianNetwork or a list of them"),
        ("rain", "network is str, expected"),
        ({"rain": NETWORK}, "network is dict, expected"),
        (None, "network is NoneType, expected"),
        ([], "network is empty, expected"),
        (pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), "network is MarkovChain, expected a BayesianNetwork or a list"),
        ([NETWORK, 3], "network[1] is int, expected a BayesianNetwork"),
        (pf.ModelClass((pf.Cliques.of_sizes([2], lambda n: [0.5, 0, 0.5]),)), "network[0] is Cliques, expected"),
        ([NETWORK, network_of(rain=["no", "yes"])], "network[1] has the nodes rain and network[0] rain, wind, wet"),
        (
            [network_of(a=["x", "y", "z"], b=["x", "y"]), network_of(a=["x", "y"], b=["x", "y", "z"])],
            "node 'a' has the states x, y in network[1] and x, y, z in network[0]: all members of a class share",
        ),
    ],
)
def test_models_that_are_no_network(network, words):
    kind, message = refused(pl.DataFrame(TABLE), network)
    assert (kind, words in message) == (ModelError, True), message


# -- cells ---------------------------------------------------------------------------------------------------


def test_states_that_the_node_lacks():
    assert refused(change(rain=["no", "maybe", "maybe", "NA"])) == (
        DataError,
        "column 'rain' holds states that the node lacks: 'maybe' (2 rows), 'NA' (1 row). If 'NA' means a missing "
        "state, leave the cell empty. The node's states: no, yes",
    )
    message = refused(pl.DataFrame(TABLE), columns={"rain": "month"})[1]
    assert message.startswith("column 'month' (node 'rain') holds states that the node lacks: 'june' (2 rows)")


def test_only_the_commonest_strangers_are_listed():
    frame = pl.DataFrame({"rain": [i for i in range(12) for _ in range(i + 1)]})
    assert "'4' (5 rows) and 4 more. The node's states: no, yes" in refused(frame)[1]


def test_a_column_of_many_values_is_not_held():
    frame = pl.DataFrame({"rain": [f"id{i}" for i in range(3000)], "wet": ["dry"] * 3000})
    assert refused(frame)[1] == (
        "column 'rain' has more than 2,002 different values, expected the states of the node: give the node's own "
        "column in columns="
    )
    assert "'id0' (1 row)" in refused(frame.head(2000))[1]
    wide = network_of(rain=[f"id{i}" for i in range(3000)], wet=["dry"])
    assert read_rows(frame, wide).counts["rain"].tolist() == [1] * 3000


def test_missing_cells_are_refused():
    frame = change(rain=["no", None, "no", None], wet=["dry", "dry", "wet", None])
    assert refused(frame) == (
        DataError,
        "column 'rain' has no state in 2 rows (first: row 2), column 'wet' in 1 row: missing='refuse'; fill them in, "
        "or use 'unobserved' if it is public which cells are missing",
    )
    assert "in 2 rows (first: row 2, subject '2'), column 'wet' in 1 row:" in refused(frame, subject="day")[1]
    renamed = refused(frame.rename({"rain": "Rain"}), columns={"rain": "Rain"})[1]
    assert renamed.startswith("column 'Rain' (node 'rain') has no state in 2 rows (first: row 2): missing='refuse'")
    nan = pl.DataFrame({"rain": [1.0, float("nan"), 2.0]})
    assert "column 'rain' has no state in 1 row" in refused(nan, network_of(rain=[1, 2]))[1]


@pytest.mark.parametrize("column", [[None] * 4, pl.Series([None] * 4, dtype=pl.Float64), pl.Series([float("nan")] * 4)])
def test_a_column_of_nothing_is_left_out_by_name(column):
    frame = change(rain=column)
    for table in (frame, frame.to_pandas()):
        message = refused(table, missing="unobserved")[1]
        assert message == (
            "column 'rain' has no observed state: all 4 rows are missing; leave the node out of columns="
        )
    assert counts(read_rows(frame, NETWORK, columns=["wet"])) == {"wet": [2, 2]}


def test_columns_that_hold_no_states():
    message = refused(change(rain=[date(2020, 1, 1)] * 4))[1]
    assert message == "state column 'rain' holds Date, expected text, numbers or true/false"
    assert "subject column 'who' holds" in refused(change(who=[[1]] * 4), subject="who")[1]


def test_tables_without_rows(tmp_path):
    frame = pl.DataFrame(TABLE).clear()
    assert refused(frame)[1] == "polars frame has no rows"
    assert refused(frame, subject="day", where="day > 1")[1] == "polars frame has no rows"
    (tmp_path / "t.csv").write_text("rain,wet\n")
    assert refused(tmp_path / "t.csv")[1] == "t.csv has no rows"
    assert refused(frame.to_pandas())[1] == "pandas frame has no rows"


def test_files_and_tables_that_cannot_be_read(tmp_path):
    assert refused(tmp_path / "gone.csv")[1].endswith("gone.csv not found")
    assert "expected a path or a table" in refused([1, 2])[1]
    (tmp_path / "t.csv").write_text("rain,rain\nno,no\n")
    assert refused(tmp_path / "t.csv")[1] == "column 'rain' occurs more than once: rename or drop the others"
    twice = pd.DataFrame([["no", "no"]], columns=["rain", "rain"])
    assert refused(twice)[1] == "column 'rain' occurs more than once: rename or drop the others"
    (tmp_path / "bad.csv").write_bytes(b"rain\n\xe9\nno\n")
    assert refused(tmp_path / "bad.csv")[1].startswith("bad.csv cannot be read: ")


def test_a_table_that_changes_while_it_is_read():
    """The cells are of two types, so they are counted in two passes."""
    sizes = iter(range(2, 100))
    frame = pl.LazyFrame({"x": [1] * 100, "y": ["a"] * 100})
    whole = {"schema": frame.collect_schema(), "projection_pushdown": False}
    shrinking = frame.map_batches(lambda held: held.head(next(sizes)), **whole)
    message = refused(shrinking, network_of(x=[1], y=["a"]))[1]
    assert message == "polars frame changed while it was read: columns have 2 to 3 rows"


# -- what comes out ------------------------------------------------------------------------------------------


def test_what_is_shown_is_public():
    rows = read_rows(pl.DataFrame({"rain": ["no"] * 1700 + ["yes"] * 23}), NETWORK)
    assert repr(rows) == "Rows(1 node, 1,723 rows)"
    said = str(rows)
    assert said.splitlines()[:3] == ["polars frame", "nodes: rain", "rows: 1,723"]
    assert "1,700" not in said + rows._repr_html_()  # how many are of which state is private


def test_base_goes_through_json():
    rows = read_rows(
        pl.DataFrame(TABLE), NETWORK, columns={"rain": "rain"}, subject="day", where="day > 1", missing="unobserved"
    )
    assert msgspec.json.decode(msgspec.json.encode(rows.base), type=RowsBase) == rows.base
    assert rows.base == RowsBase(
        source="polars frame", columns={"rain": "rain"}, subject="day", where="day > 1", missing="unobserved"
    )


def test_assumptions_say_what_was_chosen():
    frame = pl.DataFrame(TABLE)
    assert read_rows(frame, NETWORK).assumptions == (
        "Rows are independent of each other under every θ: one row per subject.",
        "The number of rows is public, and assumed independent of the states.",
    )
    assert read_rows(frame, NETWORK, subject="day", where="day > 1", missing="unobserved").assumptions == (
        "Rows are independent of each other under every θ: one row per subject (column 'day').",
        "A missing cell is an unobserved record: it is not counted.",
        "The number of rows and which cells are missing are public, and assumed independent of the states.",
        "Only rows where day > 1 are used; which rows those are is public, and assumed independent of the states.",
    )


GOOD = {
    "nodes": ("a", "b"),
    "states": {"a": ("x", "y"), "b": ("u",)},
    "counts": {"b": [3], "a": [1, 2]},
    "records": 3,
    "base": RowsBase(source="t.csv", columns={"a": "a", "b": "b"}),
}


def test_arrays_are_read_only_copies():
    given = np.array([1, 2])
    rows = Rows(**(GOOD | {"counts": {"a": given, "b": [3]}}))
    given[0] = 9
    assert counts(rows) == {"a": [1, 2], "b": [3]}
    assert rows.counts["a"].dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        rows.counts["a"][0] = 5
    with pytest.raises(AttributeError):
        rows.records = 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": (), "states": {}, "counts": {}}, "nodes is empty, expected at least one node"),
        ({"records": 0}, "records is 0, expected a whole number of at least 1"),
        ({"states": {"a": ("x", "y")}}, "states is about 'a', expected the nodes 'a', 'b'"),
        ({"counts": {"a": [1, 2], "c": [3]}}, "counts is about 'a', 'c', expected the nodes"),
        ({"counts": {"a": [1, 2, 0], "b": [3]}}, r"counts\['a'\] has shape \(3,\), expected one number for each of"),
        ({"counts": {"a": [4, -1], "b": [3]}}, r"counts\['a'\] has a negative entry"),
        ({"counts": {"a": [1, 1], "b": [3]}}, r"counts\['a'\] sums to 2, but there are 3 rows"),
        ({"counts": {"a": [1, 3], "b": [3]}}, r"counts\['a'\] sums to 4, but there are 3 rows"),
    ],
)
def test_rows_are_checked(change, words):
    Rows(**GOOD)
    with pytest.raises(ParameterError, match=words):
        Rows(**(GOOD | change))
