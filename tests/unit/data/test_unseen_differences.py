"""Names that look the same and have other code points: no message shows two equal names and says nothing."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.data import read_sequences
from pufferfish.errors import DataError, ModelError, ParameterError

COMPOSED, APART = "r\xe9veil", "re\u0301veil"
"""The same letters, an é of one code point and one of two."""

UNSEEN = "The two look the same but have different code points: write both in one Unicode form (NFC)"


@pytest.mark.parametrize(("written", "asked"), [(COMPOSED, APART), (APART, COMPOSED)])
def test_messages_about_columns_and_states_say_so(tmp_path: Path, written: str, asked: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"id,{written},awake\n1,{written},yes\n2,dort,yes\n", encoding="utf-8")
    meant = rf"Did you mean '.*'\? {re.escape(UNSEEN)}"
    for options in (
        {"state": asked},
        {"state": "awake", "subject": asked},
        {"state": "awake", "by": [asked]},
        {"state": "awake", "where": f"{asked} == 'dort'"},
        {"state": written, "states": [asked, "dort"]},
    ):
        with pytest.raises((DataError, ParameterError), match=meant):
            read_sequences(path, **options)


def test_two_such_states_and_nodes_are_refused() -> None:
    table = pl.DataFrame({"c": [COMPOSED, APART, "dort"]})
    with pytest.raises(
        DataError, match=re.escape(f"column 'c' holds the state {COMPOSED!r} in two spellings. {UNSEEN}")
    ):
        read_sequences(table, "c")
    with pytest.raises(
        ModelError, match=rf"states\[2\] repeats the name .*: give each its own name\. {re.escape(UNSEEN)}$"
    ):
        pf.MarkovChain(np.full((3, 3), 1 / 3), states=[COMPOSED, "dort", APART])
    network = pf.BayesianNetwork({COMPOSED: pf.CPT(["no", "yes"], [0.8, 0.2]), "x": pf.CPT(["a", "b"], [0.5, 0.5])})
    with pytest.raises(DataError, match=rf"by columns\. {re.escape(UNSEEN)}"):
        pf.read_rows(pl.DataFrame({APART: ["no", "yes"], "x": ["a", "b"]}), network)


@pytest.mark.parametrize("name", ["\xb5g", "\u03bcg", COMPOSED, APART, "\ufb01ne"])
def test_a_filter_takes_names_as_they_are_written(name: str) -> None:
    """Python's own grammar would look for a Greek letter instead of the micro sign."""
    table = pl.DataFrame({"s": ["a", "b", "a"], name: [1, 2, 3]})
    assert read_sequences(table, "s", where=f"0 < {name} <= 2 and ({name} != 7)").records == 2


@pytest.mark.parametrize("at", [2**20 - 3, 2**20 - 2, 2**20 - 1, 2**20, 30])  # files are looked at in parts of 2^20
def test_files_that_were_joined_are_refused(tmp_path: Path, at: int) -> None:
    """The mark between them would be a part of a subject's name, who would then be two subjects."""
    path, mark = tmp_path / "joined.csv", b"\xef\xbb\xbf"
    rows = (at - 12) // 4
    first = (b"id,s\n" + b"1,x\n" * rows + b"1,y").ljust(at - 1, b"y") + b"\n"
    path.write_bytes(mark + first)
    assert read_sequences(path, "s", subject="id").records == rows + 1
    path.write_bytes(mark + first + mark + b"1,x\n")
    with pytest.raises(DataError, match=f"line {rows + 3:,} of the file has a byte order mark inside"):
        read_sequences(path, "s", subject="id")
