"""Queries take different columns of a table for one only when told: one rule in Python and on the command line."""

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

import pufferfish as pf
from pufferfish.cli import main

YES_NO = ["no", "yes"]
NET = pf.BayesianNetwork(
    {
        "smoker": pf.CPT(YES_NO, [0.8, 0.2]),
        "cough": pf.CPT(YES_NO[::-1], [[0.1, 0.9], [0.4, 0.6]], ["smoker"]),
        "fever": pf.CPT(["none", "high"], [[0.5, 0.5], [0.9, 0.1]], ["cough"]),
    }
)
TABLE = pl.DataFrame({"smoker": ["no", "yes"], "cough": ["yes", "yes"], "fever": ["none", "high"]})
POOLED = [pf.Histogram(), pf.Count("yes"), pf.Frequency("no"), pf.Sum({"no": 0, "yes": 1, "*": 0})]


@pytest.mark.parametrize("query", POOLED, ids=lambda q: q.kind)
def test_in_python_columns_are_named_and_have_equal_states(query: pf.queries.Query) -> None:
    rows = pf.read_rows(TABLE, NET)
    mechanism = pf.LeakagePropagation(NET, length=2)
    relative = query.kind in ("histogram", "frequency")
    python = "Marginals()" if relative else "Marginals(relative=False)"
    for act in (
        lambda: pf.release(rows, query, mechanism.calibrate(query, 1.0)),
        lambda: pf.compare(NET, query, 1.0, 2),
    ):
        with pytest.raises(pf.QueryError, match="would count the 3 columns smoker, cough, fever as one") as caught:
            act()
        words = str(caught.value)
        assert f"--query {'marginals' if relative else 'marginal-counts'} (in Python {python})" in words
        assert "--columns A,B" in words
    if query.kind != "sum":
        named = pf.Subset(query, ["smoker", "cough"])
        assert pf.release(rows, named, mechanism.calibrate(named, 1.0)).query.kind == query.kind
        assert pf.compare(NET, named, 1.0, 2)[0].scale
    if query.kind == "histogram":
        with pytest.raises(
            pf.QueryError, match=r"states differ .*--query marginals --columns smoker,fever \(in Python"
        ):
            pf.compare(NET, pf.Subset(query, ["smoker", "fever"]), 1.0, 2)
        one = pf.Subset(query, ["fever"])
        assert pf.compare(NET, one, 1.0, 2)[0].scale


def test_one_column_is_never_pooled() -> None:
    coin = pf.BayesianNetwork({"a": pf.CPT(YES_NO, [0.5, 0.5])})
    rows = pf.read_rows(pl.DataFrame({"a": ["no", "yes"]}), coin)
    assert pf.release(rows, pf.Count("yes"), pf.GroupDP(coin, 2).calibrate(pf.Count("yes"), 1.0)).query.kind == "count"


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pf.write_model(pf.Model(theta=NET), "net.json")
    TABLE.write_csv("table.csv")

    def run(command: str, query: str, *columns: str) -> Result:
        table = (
            ["table.csv", "--model", "net.json", "--output", "r.json", "--accept", "noise"]
            if command == "release"
            else ["net.json"]
        )
        return CliRunner().invoke(main, [command, *table, "--query", query, "--epsilon", "1", *columns])

    for command in ("release", "compare"):
        for query, instead in (("histogram", "marginals"), ("count:yes", "marginal-counts")):
            result = run(command, query)
            assert result.exit_code == 2
            assert f"--query {instead} " in result.stderr
            assert len(result.stderr.splitlines()) == 1
            result = run(command, query, "--columns", "smoker,fever")
            assert result.exit_code == 2
            assert f"--query {instead} --columns smoker,fever" in result.stderr
            assert not Path("r.json").exists()
            assert run(command, query, "--columns", "smoker,cough").exit_code == 0
            Path("r.json").unlink(missing_ok=True)
            assert run(command, instead, "--columns", "smoker,fever").exit_code == 0
            Path("r.json").unlink(missing_ok=True)
