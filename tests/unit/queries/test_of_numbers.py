"""Queries of bins that need no list of states: their middles, and ranges."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish.errors import QueryError
from pufferfish.fit.model_file import write_model
from pufferfish.queries.words import is_range, states_within, values_of_bins

BINS = ["<70", "70-180", "180-250", ">=250"]


def test_bins_count_at_their_middle_and_at_the_edge_they_have() -> None:
    assert values_of_bins(BINS) == ([70.0, 125.0, 215.0, 250.0], 55.0, (70.0, 250.0))
    assert values_of_bins(["-1.5", "2"]) == ([-1.5, 2.0], 0.0, None)
    with pytest.raises(
        QueryError, match=r"states are rest, walk, which are neither numbers nor bins: give each state a value"
    ):
        values_of_bins(["rest", "walk"])


@pytest.mark.parametrize(
    ("text", "states"),
    [
        (">=180", ["180-250", ">=250"]),
        ("<70", ["<70"]),
        ("<180", ["<70", "70-180"]),
        ("70..250", ["70-180", "180-250"]),
        (">= 250", [">=250"]),
    ],
)
def test_ranges_are_of_whole_bins(text: str, states: list[str]) -> None:
    assert states_within(BINS, text) == states
    assert is_range(text)


def test_a_number_is_in_the_range_that_it_is_in() -> None:
    numbers = ["0", "1", "2", "3.5"]
    assert states_within(numbers, ">=2") == ["2", "3.5"]
    assert states_within(numbers, "<2") == ["0", "1"]
    assert states_within(numbers, "0.5..3.5") == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (">=100", "ends inside a bin: choose one of the edges 70, 180, 250"),
        ("0..100", "ends inside a bin"),
        ("180..70", "not a range of numbers"),
        (">=x", "not a range of numbers"),
        ("rest", "not a range of numbers"),
        (">=1/0", "not a range of numbers"),
    ],
)
def test_ranges_that_are_none_are_refused(text: str, why: str) -> None:
    with pytest.raises(QueryError, match=why):
        states_within(BINS, text)
    with pytest.raises(QueryError, match="holds all of the states"):
        states_within(["1", "2"], ">=0")
    with pytest.raises(QueryError, match="holds none of the states"):
        states_within(["1", "2"], ">=3")


def test_numbers_are_asked_as_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of a clamped column is within half a bin and the noise of what is released."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    glucose = np.clip(np.cumsum(rng.normal(size=30_000)) % 300, 0, 300)
    rows = {"who": np.repeat([f"p{i}" for i in range(30)], 1000), "t": np.tile(np.arange(1000), 30), "mg": glucose}
    pl.DataFrame(rows).write_csv("t.csv")
    matrix = np.full((4, 4), 0.25)
    write_model(pf.Model(theta=pf.MarkovChain(matrix, states=BINS), bins=(0.0, 70.0, 180.0, 250.0, 400.0)), "m.json")
    asked = [
        "release",
        "t.csv",
        "--model",
        "m.json",
        "--state",
        "mg",
        "--subject",
        "who",
        "--epsilon",
        "2",
        "--max-gap",
    ]
    asked += ["1", "--time", "t"]
    done = run(*asked, "--query", "mean", "--output", "mean.json")
    assert done.exit_code == 0, done.output
    assert (
        "the mean may have an error of at most 75 besides the noise; values below 0 count as 0, and those of 400 or"
        in done.output
    )
    mean = pf.Release.from_json("mean.json")
    assert abs(mean.values[0] - glucose.mean()) <= 75 + mean.accuracy(1e-9)
    for query, share in (("share:>=180", glucose >= 180), ("frequency:70..180", (glucose >= 70) & (glucose < 180))):
        done = run(*asked, "--query", query, "--output", "share.json", "--overwrite")
        assert done.exit_code == 0, done.output
        found = pf.Release.from_json("share.json")
        assert abs(found.values[0] - share.mean()) <= found.accuracy(1e-9)
    done = run(*asked, "--query", "count:<70", "--output", "count.json")
    assert abs(pf.Release.from_json("count.json").values[0] - (glucose < 70).sum()) <= 200
    assert run(*asked, "--query", "sum", "--output", "sum.json").exit_code == 0
    refused(*asked, "--query", "share:>=100", "--output", "x.json", says=["ends inside a bin"])
    named = run(*asked, "--query", "share:>=250", "--output", "named.json")  # a state of this name
    assert named.exit_code == 0
    assert "besides the noise" not in run(*asked, "--query", "mean:<70=1,*=0", "--output", "m2.json").output
