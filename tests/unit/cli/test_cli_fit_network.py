"""The command line that fits networks to tables of rows, checks them, and releases other tables under them."""

import json
import shlex
from pathlib import Path

import pytest

import pufferfish as pf
from commands import refused, run
from sampled_networks import WARD, rows_of

ARROWS = "smoke->lung, age->lung, lung->either->xray, rare->either"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows_of(WARD, 3_000, seed=1).with_row_index("id").write_csv("register.csv")
    rows_of(WARD, 500, seed=2).with_row_index("id").write_csv("patients.csv")
    return tmp_path


def test_a_network_is_fitted_checked_and_released_under() -> None:
    fitted = run(
        "fit", "register.csv", "--arrows", ARROWS, "--certain", "either", "--subject", "id", "--output", "m.json"
    )
    assert fitted.exit_code == 0, fitted.output
    assert fitted.stdout.startswith("network of 6 columns and 5 arrows from 3,000 rows\n")
    assert "values of tables never occur and are treated as impossible" in fitted.stdout
    model = pf.read_model("m.json")
    assert set(model.theta.networks[0].edges) == set(WARD.edges)
    assert model.fitted_on is not None
    assert "register.csv, 3,000 rows" in model.theta.origin
    told = run("check", "m.json", "register.csv", "--subject", "id", "--output", "c.json")
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("Go on.\n")
    assert "--details prints more: every pair of columns" in told.stdout
    assert json.loads(Path("c.json").read_text())["kind"] == "Bayesian networks"
    refused("check", "m.json", "patients.csv", says=["was not fitted to patients.csv", "--accept public"])
    refused("check", "m.json", "register.csv", "--plot", "c.png", says=["--plot", "network"])
    refused(
        "release", "register.csv", "--model", "m.json", "--epsilon", 1, "--output", "r.json", says=["this very table"]
    )
    released = run("release", "patients.csv", "--model", "m.json", "--epsilon", 1, "--output", "r.json")
    assert released.exit_code == 0, released.output
    assert run("verify", "r.json", "--model", "m.json").exit_code == 0


def test_a_missing_arrow_is_told() -> None:
    arrows = "smoke->lung, lung->either->xray, rare->either"
    assert run("fit", "register.csv", "--arrows", arrows, "--columns", "age", "--output", "m.json").exit_code == 0
    told = run("check", "m.json", "register.csv")
    assert "age and lung are not independent" in told.stdout or "lung and age are not independent" in told.stdout
    (next_,) = [line for line in told.stdout.splitlines() if line.startswith("  pufferfish fit register.csv --arrows ")]
    assert run(*shlex.split(next_)[1:]).exit_code == 0  # as it can be copied
    edges = pf.read_model("network.json").theta.networks[0].edges
    assert {frozenset(edge) for edge in edges} >= {frozenset(("age", "lung")), frozenset(("smoke", "lung"))}


@pytest.mark.parametrize("option", ["--arrows", "--certain"])
def test_arrows_given_twice_are_refused(option: str) -> None:  # of two, the last one alone would count
    twice = ["--arrows", ARROWS, "--certain", "either", option, "smoke->lung" if option == "--arrows" else "lung"]
    refused("fit", "register.csv", *twice, "--output", "m.json", says=[f"{option} is given twice", "give it once"])
    assert not Path("m.json").exists()


def test_bif_is_written_where_the_name_says_so() -> None:
    Path("arrows.txt").write_text("smoke->lung\nlung->xray # of course\n")
    fitted = run("fit", "register.csv", "--arrows", "arrows.txt", "--output", "m.bif", "--plot", "m.png")
    assert fitted.exit_code == 0, fitted.output
    assert "A BIF file does not hold what it was fitted to" in fitted.stdout
    assert Path("m.png").read_bytes().startswith(b"\x89PNG")
    assert pf.BayesianNetwork.from_bif("m.bif").edges == (("smoke", "lung"), ("lung", "xray"))
    refused("fit", "register.csv", "--arrows", "arrows.txt", "--output", "m.bif", says=["m.bif", "--overwrite"])
    assert run("fit", "register.csv", "--arrows", "arrows.txt", "--output", "m.bif", "--overwrite").exit_code == 0
    Path("other.bif").write_text("network other {\n}\n")
    refused("fit", "register.csv", "--arrows", "arrows.txt", "--output", "other.bif", "--overwrite", says=["other.bif"])
    assert Path("other.bif").read_text() == "network other {\n}\n"
    told = run("check", "m.bif", "register.csv", "--accept", "public")
    assert told.exit_code == 0, told.output


def test_the_best_tree_is_fitted_without_arrows() -> None:
    columns = "smoke,lung,either,xray"
    fitted = run("fit", "register.csv", "--arrows", "chow-liu", "--columns", columns, "--output", "m.json")
    assert fitted.exit_code == 0, fitted.output
    assert "arrows: lung->smoke, either->lung, either->xray\n" in fitted.stdout
    assert len(pf.read_model("m.json").theta.networks[0].edges) == 3


def test_rows_of_few_data_are_told() -> None:
    rows_of(WARD, 60, seed=3).write_csv("small.csv")
    fitted = run("fit", "small.csv", "--arrows", ARROWS, "--output", "m.json")
    assert "rows of its table are counted from few data (below 10)" in fitted.stdout
    assert "were never seen, and are the shares of all rows" in fitted.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--arrows", "smoke->lung", "--clock", "hour"], ["--clock", "for chains"]),
        (["--arrows", "smoke->lung", "--state", "smoke"], ["--state is for Markov chains", "network"]),
        (["--arrows", "smoke->lung", "--states", "a,b"], ["--states", "for chains"]),
        (["--state", "smoke", "--columns", "lung"], ["--columns is for networks", "--arrows"]),
        (["--state", "smoke", "--certain", "lung"], ["--certain is for networks"]),
        (["--arrows", "smoke->lung->smoke"], ["cycle"]),
        (["--arrows", "smoke->nowhere"], ["column 'nowhere' not found"]),
        (["--arrows", "nowhere.txt"], ["not a file of arrows"]),
        (["--arrows", "smoke->lung", "--missing", "split"], ["missing"]),
        (["--arrows", "smoke->lung", "--certain", "lunge"], ["Did you mean 'lung'"]),
    ],
)
def test_refusals(arguments: list[str], says: list[str]) -> None:
    refused("fit", "register.csv", *arguments, "--output", "m.json", says=says)
    assert not Path("m.json").exists()


def test_a_network_needs_a_table() -> None:
    refused("fit", "--arrows", "smoke->lung", "--output", "m.json", says=["give the TABLE"])
    refused("fit", "register.csv", "--arrows", "smoke->lung", "--output", "m.bif.gz", says=["ends in .bif"])
