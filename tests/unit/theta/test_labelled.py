"""Labels of frames and series: they are the states, or what contradicts the states is refused."""

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import pufferfish as pf
from pufferfish.errors import ModelError

pd = pytest.importorskip("pandas")

P = [[0.9, 0.1], [0.4, 0.6]]
AB = pd.DataFrame(P, index=["a", "b"], columns=["a", "b"])
BA = AB.loc[["b", "a"], ["b", "a"]]
NAMES = ["a", "b"]
LAW = pd.Series({"b": 0.3, "a": 0.7})


def frame(rows: list[Any] | None, columns: list[Any] | None) -> Any:
    return pd.DataFrame(P, index=rows, columns=columns)


def test_labels_are_the_states() -> None:
    for chain in (
        pf.MarkovChain(AB), pf.MarkovChain(frame(None, NAMES)), pf.MarkovChain(AB, states=NAMES),
        pf.MarkovChain(pl.DataFrame({"a": [0.9, 0.4], "b": [0.1, 0.6]})), pf.MarkovChain(pd.DataFrame(P), states=NAMES),
        pf.MarkovChain(AB, LAW[NAMES]), pf.PeriodicChain([AB, AB]), pf.IntervalChain(AB * 0.5, AB),
        pf.HigherOrderChain(AB), pf.HigherOrderChain([AB, AB]),
    ):  # fmt: skip
        assert tuple(chain.states) == ("a", "b"), chain
    assert pf.MarkovChain(BA).states == ("b", "a")
    for numbered in (frame(None, None), pl.DataFrame(np.array(P)), P):
        assert pf.MarkovChain(numbered).states == ("0", "1")
        assert pf.MarkovChain(numbered, states=NAMES).states == ("a", "b")


@pytest.mark.parametrize(
    "make",
    [
        lambda: pf.MarkovChain(frame(["a", "b"], ["b", "a"])),
        lambda: pf.MarkovChain(frame([1, 0], [0, 1])),
        lambda: pf.MarkovChain(frame([0, 1], [1, 0])),
        lambda: pf.MarkovChain(AB, states=["b", "a"]),
        lambda: pf.MarkovChain(pd.DataFrame(P), states=[1, 0]),
        lambda: pf.MarkovChain(pl.DataFrame({"b": [0.9, 0.4], "a": [0.1, 0.6]}), states=NAMES),
        lambda: pf.MarkovChain([AB.loc["a"], AB.loc["b"][["b", "a"]]]),
        lambda: pf.MarkovChain(AB, LAW),
        lambda: pf.PeriodicChain([AB, BA]),
        lambda: pf.PeriodicChain([AB, BA], states=NAMES),
        lambda: pf.PeriodicChain([AB, AB], LAW),
        lambda: pf.IntervalChain(AB * 0.5, BA),
        lambda: pf.HigherOrderChain([AB, BA]),
        lambda: pf.HigherOrderChain(AB, LAW),
    ],
)
@pytest.mark.grid(keep=14)
def test_labels_in_another_order_are_refused(make: Any) -> None:
    with pytest.raises(ModelError, match=r"has the labels .*, and the states are .*put it in the order of the states"):
        make()


def test_a_table_of_arrow_has_labels_too() -> None:
    table = pa.table({"b": [0.9, 0.4], "a": [0.1, 0.6]})
    with pytest.raises(ModelError):
        pf.MarkovChain(table, states=NAMES)  # type: ignore[arg-type]


def test_a_label_that_is_missing_is_no_state() -> None:
    with pytest.raises(ModelError, match="None and NaN mean missing values"):
        pf.MarkovChain(frame(["a", None], ["a", None]))
