"""Names that a spreadsheet would run as formulas are warned of once, and quoted where that is asked for."""

import csv
from pathlib import Path

import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish.errors import ParameterError

STATES = ["=1+1", "+cmd", "@SUM(A1)", "-2+3+cmd|' /C calc'!A0", "-5", "-5-0", "<0", "rest"]
FORMULAS = set(STATES[:4])
READING = ["--state", "s", "--subject", "who", "--time", "t", "--max-gap", 1]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pl.DataFrame:
    """A table with its model, in the working folder."""
    monkeypatch.chdir(tmp_path)
    whose = ["\t=x", "\r=y", "ann", "=z"]
    frame = pl.DataFrame(
        [(who, t, STATES[(t + i) % 8], ["=g", "h"][i % 2]) for i, who in enumerate(whose) for t in range(80)],
        schema=["who", "t", "s", "=group"],
        orient="row",
    )
    frame.write_parquet("t.parquet")
    chain = pf.MarkovChain([[0.125] * 8] * 8, states=STATES)
    pf.write_model(pf.Model(theta=chain, step="1"), "m.json")
    return frame


@pytest.mark.usefixtures("table")
def test_names_in_tables_of_the_command_line() -> None:
    release = ["release", "t.parquet", *READING, "--model", "m.json", "--epsilon", 5, "--output", "r.json"]
    told = run(*release, "--csv", "r.csv")
    assert told.exit_code == 0, told.output
    assert told.stderr.count("The name '=1+1' (and 3 more) would run as a formula in a spreadsheet") == 1
    assert "give --for-spreadsheets to write a ' before it" in told.stderr
    assert [row["output"] for row in rows_of(Path("r.csv"))] == STATES
    quiet = run(*release, "--csv", "r.csv", "--for-spreadsheets", "--overwrite")
    assert "formula" not in quiet.stderr
    rows = rows_of(Path("r.csv"))
    assert [row["output"] for row in rows] == [f"'{name}" if name in FORMULAS else name for name in STATES]
    assert [float(row["value"]) for row in rows] == pf.Release.from_json("r.json").values
    grouped = run(*release, "--by", "=group", "--csv", "g.csv", "--for-spreadsheets", "--overwrite")
    assert grouped.exit_code == 0, grouped.output
    assert {row["'=group"] for row in rows_of(Path("g.csv"))} == {"'=g", "h"}
    assert "formula" not in run(*release, "--overwrite").stderr  # nobody opens a record in a spreadsheet
    refused(*release, "--overwrite", "--for-spreadsheets", says=["--for-spreadsheets only works with --csv"])


@pytest.mark.usefixtures("table")
def test_values_of_each_subject() -> None:
    each = ["release", "t.parquet", *READING, "--model", "m.json", "--epsilon", 5, "--each-subject", "--output"]
    told = run(*each, "v.csv")
    assert told.exit_code == 0, told.output
    assert told.stderr.count("would run as a formula in a spreadsheet") == 1
    assert "v.csv has people under their own names: it shows that 4 subjects" in told.stdout
    assert {row["subject"] for row in rows_of(Path("v.csv"))} == {"\t=x", "\r=y", "ann", "=z"}
    assert "\x1b" not in told.output
    quoted = run(*each, "v.csv", "--for-spreadsheets", "--overwrite")
    assert quoted.exit_code == 0, quoted.output
    assert "formula" not in quoted.stderr
    assert {row["subject"] for row in rows_of(Path("v.csv"))} == {"'\t=x", "'\r=y", "ann", "'=z"}
    assert len(pf.EachRelease.from_json("v.json").read_table("v.csv")) == 32
    assert "formula" not in run(*each, "v.parquet", "--overwrite").stderr
    refused(*each, "v.parquet", "--overwrite", "--for-spreadsheets", says=["--for-spreadsheets is for CSV"])


def test_python_warns_and_quotes_too(table: pl.DataFrame) -> None:
    data = pf.read_sequences(table, "s", subject="who", time="t", max_gap=1)
    noise = pf.GroupDP(pf.read_model("m.json"), data.length).calibrate(pf.Count("rest"), 5.0)
    found = pf.release_each(data, pf.Count("rest"), noise, "p.csv", for_spreadsheets=True)
    assert not any("formula" in text for text in found.warnings)
    with pytest.warns(pf.ReleaseWarning, match="give for_spreadsheets=True"):
        pf.release_each(data, pf.Count("rest"), noise, "p.csv", overwrite=True)
    with pytest.raises(ParameterError, match="for_spreadsheets"):
        pf.release_each(data, pf.Count("rest"), noise, "p.csv", for_spreadsheets="no")  # pyrefly: ignore[bad-argument-type]
