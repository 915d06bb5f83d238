"""How a cell is read depends on that cell and on what is public, never on another cell."""

import random
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.data import read_rows, read_sequences
from pufferfish.data.labels import label_states
from pufferfish.errors import DataError

WORDS = {"where": "column 'x'", "owner": "the model"}
TEXTS = ["1", "1.0", "1.00", "01", "-0", "0", "2.50", "2.5", "true", "True", "FALSE", "n/a", "007", "7", "1E5", "walk"]
MODELS = [
    [],
    ["0", "1", "2.5", "01", "007", "7", "1E5", "true", "false", "n/a", "walk"],
    ["1.00", "-0", "2.50", "007", "1E5", "True", "FALSE", "n/a", "walk"],
]


def labels(cells, known):
    return label_states(cells, known, untyped=True, **WORDS)


def csv_of(folder, cells, name="t.csv"):
    (folder / name).write_text("\n".join(["x,n", *(f"{cell},{i}" for i, cell in enumerate(cells))]) + "\n")
    return folder / name


def network_of(states):
    return pf.BayesianNetwork({"x": pf.CPT(states, [1 / len(states)] * len(states))})


def test_every_cell_of_a_csv_is_labelled_by_itself():
    rng = random.Random(1)
    for known in MODELS:
        alone = {cell: labels([cell], known)[cell] for cell in TEXTS}
        for _ in range(50):
            cells = rng.sample(TEXTS, rng.randint(1, len(TEXTS)))
            assert labels(cells, known) == {cell: alone[cell] for cell in cells}


def test_exact_matches_win_and_numbers_and_truths_match_by_value():
    assert labels(TEXTS, [])["1.00"] == "1"
    assert labels(["1.0", "1", "01", "n/a"], ["1.0", "n/a"]) == {"1.0": "1.0", "1": "1.0", "01": "01", "n/a": "n/a"}
    assert labels(["TRUE", "true", "False"], ["True", "n/a"]) == {"TRUE": "True", "true": "True", "False": "false"}
    codes = ["007", "+7", "7.", ".7", "1E5", "1e5", " 7", "inf", "nan", "9" * 5000, "9" * 400 + ".5"]
    assert labels(codes, ["7", "100000"]) == {code: code for code in codes}  # text, unless a state spells them
    assert labels(["12345678901234567891.0", "-0.0", "0.1"], []) == {
        "12345678901234567891.0": "12345678901234567891",
        "-0.0": "0",
        "0.1": "0.1",
    }


def test_one_record_changes_no_other_count(tmp_path, slow):
    """The same table with one record replaced: one count goes down by one, one goes up."""
    rng = random.Random(7)
    states = MODELS[1]
    cells = [cell for cell in TEXTS if labels([cell], states)[cell] in states]
    network = network_of(states)
    for _ in range(20 if slow else 6):
        rows = [rng.choice(cells) for _ in range(12)]
        others = list(rows)
        others[rng.randrange(12)] = rng.choice(cells)
        pair = [csv_of(tmp_path, table, f"{i}.csv") for i, table in enumerate((rows, others))]
        for counts in (
            [read_sequences(path, "x", time="n", states=states).counts[0] for path in pair],
            [read_rows(path, network).counts["x"] for path in pair],
        ):
            assert np.abs(counts[0] - counts[1]).sum() in (0, 2)


def test_tables_with_an_unknown_beside_numbers_are_read(tmp_path):
    for cells, states, expected in (
        (["1.0", "2.0", "unknown", "1"], [1, 2, "unknown"], [2, 1, 1]),
        (["True", "FALSE", "n/a", "true"], [True, False, "n/a"], [2, 1, 1]),
    ):
        path = csv_of(tmp_path, cells)
        assert read_sequences(path, "x", states=states).counts.tolist() == [expected]
        assert read_rows(path, network_of(states)).counts["x"].tolist() == expected
        with pytest.raises(DataError, match=r"holds states that the model lacks: .* \(1 row\)"):
            read_sequences(path, "x", states=states[:2])


def test_a_model_whose_states_read_alike_is_refused_for_csv_alone(tmp_path):
    for states in (["1", "1.0", "2"], ["true", "TRUE"], ["0.5", "0.50"]):
        path = csv_of(tmp_path, [states[0]] * 3)
        for read in (
            lambda path, states: read_sequences(path, "x", states=states),
            lambda path, states: read_rows(path, network_of(states)),
        ):
            with pytest.raises(
                DataError, match="are the same there: rename one of them in both, or give a table"
            ) as no:
                read(path, states)
            assert "column 'x' comes from a CSV file" in str(no.value)
            assert "\n" not in str(no.value)
    typed = pl.DataFrame({"x": ["1", "1.0", "1"]})
    assert read_sequences(typed, "x", states=["1", "1.0"]).counts.tolist() == [[2, 1]]
    assert read_sequences(csv_of(tmp_path, ["01", "1"] * 2), "x", states=["01", "1"]).counts.tolist() == [[2, 2]]


def test_a_fitted_model_reads_the_table_it_was_fitted_on(tmp_path):
    rng = random.Random(3)
    for _ in range(20):
        path = csv_of(tmp_path, [rng.choice(TEXTS) for _ in range(30)])
        found = read_sequences(path, "x")
        again = read_sequences(path, "x", states=found.states)
        assert (again.states, again.counts.tolist()) == (found.states, found.counts.tolist())
        assert again.transitions.tolist() == found.transitions.tolist()


OBJECTS = [1, 1.0, True, False, Decimal("1.0"), Decimal("2.50"), 2.5, "1", "1.0", "n/a", 2**53 + 1, np.float64(3), None]


def test_every_python_object_of_a_pandas_column_is_labelled_by_itself(slow):
    one = {}
    for value in OBJECTS[:-1]:
        one[len(one)] = read_sequences(pd.DataFrame({"x": pd.Series([value] * 2, dtype=object)}), "x").states
    rng = random.Random(5)
    for _ in range(30 if slow else 4):
        picked = [rng.randrange(len(OBJECTS)) for _ in range(6)] + [0, 0]
        held = pd.DataFrame({"x": pd.Series([OBJECTS[i] for i in picked], dtype=object)})
        expected = {name for i in picked if i < len(one) for name in one[i]}
        for table in (held, held.astype("category")) if len({type(OBJECTS[i]) for i in picked}) < 2 else (held,):
            assert set(read_sequences(table, "x").states) == expected


def test_decimals_beside_a_word_are_the_numbers_they_were():
    cells = [Decimal("1.0"), Decimal("2.50"), Decimal("1"), Decimal("2.5")]
    for more, states in (([], ["1", "2.5"]), (["unknown"], ["1", "2.5", "unknown"])):
        held = pd.DataFrame({"x": pd.Series(cells + more, dtype=object)})
        expected = [2, 2, 1][: len(states)]
        assert read_sequences(held, "x", states=states).counts.tolist() == [expected]
        assert read_rows(held, network_of(states)).counts["x"].tolist() == expected
    frame = pl.DataFrame({"x": cells, "t": [1, 2, 3, 4]})
    connection = duckdb.connect()
    connection.register("held", frame.to_arrow())
    for table in (frame, frame.to_arrow(), connection.sql("select * from held")):
        assert read_sequences(table, "x", time="t", states=["1", "2.5"]).counts.tolist() == [[2, 2]]


def test_whole_numbers_beside_a_fraction_keep_their_digits():
    held = pd.DataFrame({"x": pd.Series([2**53, 2**53 + 1, 0.5], dtype=object)})
    assert read_sequences(held, "x").counts.tolist() == [[1, 1, 1]]
    who = pd.DataFrame({"x": list("abab"), "who": pd.Series([2**53, 2**53 + 1, 2**53, 0.5], dtype=object)})
    assert read_sequences(who, "x", subject="who").subjects == 3


def test_objects_of_public_columns_have_the_type_of_all_of_them():
    held = pd.DataFrame({"x": list("abab"), "n": [1, 1, 2, 2], "t": [0, 1, 2, 3]}).astype(object)
    data = read_sequences(held, "x", time="t", max_gap=1, where="t > 0")
    assert (data.records, data.base.step) == (3, "1")
    assert read_sequences(held, "x", subject="n", time="t", where="n > 1").records == 2


def test_a_missing_cell_of_a_categorical_column_changes_no_other_label() -> None:
    """Codes of missing cells made floats of whole numbers, and 2^53 + 1 became 2^53."""
    pandas = pytest.importorskip("pandas")
    large = 2**53
    states = ["1", str(large), str(large + 1)]
    for cells, counts in (([large + 1, large, 1, 1], [2, 1, 1]), ([large + 1, large, 1, None], [1, 1, 1])):
        column = pandas.Categorical(cells, categories=[large + 1, large, 1])
        found = pf.read_sequences(pandas.DataFrame({"a": column}), state="a", states=states, missing="unobserved")
        assert found.counts.tolist() == [counts]
