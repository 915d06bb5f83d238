"""Transitions and changes of state on the command line."""

from pathlib import Path

import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run

STATES = ["rest", "walk"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"state": ["rest", "rest", "walk"] * 400}).write_csv("steps.csv")
    pf.write_model(pf.Model(theta=pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]], states=STATES)), "model.json")  # type: ignore[arg-type]
    return tmp_path


def test_release_of_transitions(files: Path) -> None:
    pytest.importorskip("matplotlib")
    found = run(
        *("release", "steps.csv", "--state", "state", "--model", "model.json", "--query", "transitions"),
        *("--epsilon", 5000, "--max-epsilon", 5000, "--output", "release.json", "--plot", "release.png"),
    )
    assert found.exit_code == 0, found.output
    lines = [line.split() for line in found.stdout.splitlines()]
    assert lines.pop(0)[:4] == ["hides", "any", "one", "record"]
    assert lines[0] == ["transitions:", "from,", "to", "rest", "walk"]
    assert [line[0] for line in lines[1:3]] == STATES
    assert [float(v.replace(",", "")) for line in lines[1:3] for v in line[1:]] == [400, 400, 399, 0]
    assert "each value ± " in found.stdout
    assert (files / "release.png").exists()
    assert pf.Release.from_json(files / "release.json").data.steps == 1199


def test_compare_of_transitions_and_switches(files: Path) -> None:
    scales: dict[str, float] = {}
    for query in ("transitions", "switches", "switch-rate"):
        found = run("compare", "model.json", "--length", 50, "--query", query, "--epsilon", 1)
        assert found.exit_code == 0, found.output
        refused_by_laws = "Wasserstein, ExactLaplace: this mechanism covers one number of steps" in " ".join(
            found.stdout.split()
        )
        assert refused_by_laws == (query == "transitions")
        row = next(line for line in found.stdout.splitlines() if line.startswith("* LeakagePropagation"))
        scales[query] = float(row.split()[2])
    assert scales["transitions"] == pytest.approx(2 * scales["switches"], rel=1e-4)
    assert scales["switch-rate"] == pytest.approx(scales["switches"] / 50, rel=1e-4)


def test_what_is_no_query_is_one_line(files: Path) -> None:
    for query, expected in (("transition", "Did you mean 'transitions'"), ("switches:rest", "covers all states")):
        refused("compare", "model.json", "--length", 9, "--query", query, "--epsilon", 1, says=[expected])
