import polars as pl
import pytest

import pufferfish as pf
import pufferfish.polars

TABLE = pl.DataFrame({"id": ["a", "a", "b"], "minute": [1, 2, 1], "activity": ["rest", "walk", "rest"]})
READING = {"subject": "id", "time": "minute", "max_gap": 1}


@pytest.mark.parametrize("frame", [TABLE, TABLE.lazy()], ids=["eager", "lazy"])
def test_a_frame_is_read_as_by_the_functions(frame: pl.DataFrame | pl.LazyFrame) -> None:
    sequences, same = frame.pufferfish.sequences("activity", **READING), pf.read_sequences(TABLE, "activity", **READING)
    assert (sequences.states, sequences.length) == (same.states, same.length)
    assert sequences.transitions.tolist() == same.transitions.tolist() == [[0, 1], [0, 0]]
    rain = pf.CPT(["rest", "walk"], [0.5, 0.5])
    rows = frame.pufferfish.rows(pf.BayesianNetwork({"activity": rain}))
    assert rows.counts["activity"].tolist() == [2, 1]


def test_a_misspelt_column_is_one_line() -> None:
    with pytest.raises(pf.DataError, match=r"column 'activty' not found\. Did you mean 'activity'\?"):
        TABLE.pufferfish.sequences("activty")
