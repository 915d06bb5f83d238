"""The example programs run, and say what the docs say they do."""

import runpy
import sys
from pathlib import Path

import pytest

import pufferfish as pf

REPOSITORY = Path(__file__).parent.parent.parent
REGISTER = REPOSITORY.parent / "shared" / "data" / "contact_hagelloch_measles_1861.csv.gz"


def measles(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["measles.py", *arguments])
    runpy.run_path(str(REPOSITORY / "examples" / "measles.py"), run_name="__main__")


def test_measles_of_a_small_village(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["household,tI,tR", "1,30,40", "1,36.5,39", "1,50,60", "2,37,41", "2,10,20", "3,38,44"]
    (tmp_path / "register.csv").write_text("\n".join(rows) + "\n")
    output = tmp_path / "release.json"
    measles(monkeypatch, str(tmp_path / "register.csv"), "--output", str(output))
    printed = capsys.readouterr().out
    assert "6 children in 3 households, the largest of 3" in printed
    release = pf.Release.from_json(output)
    assert release.data.records == 6
    assert release.mechanism.name == "exact-laplace"
    assert release.theta.kind == "cliques"
    assert len(release.theta.members) == 4


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        (".", (), "is a folder, expected a CSV file"),
        ("nowhere.csv", (), "No such file"),
        ("other.csv", (), 'unable to find column "household"'),
        ("register.csv", ("--epsilon", "-1"), "epsilon"),
        ("register.csv", ("--output", "no/folder/r.json"), "no/folder"),
    ],
)
def test_what_measles_cannot_read_is_one_line(
    name: str,
    options: tuple[str, ...],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "register.csv").write_text("household,tI,tR\n1,30,40\n1,50,60\n2,37,41\n")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SystemExit, match="2"):
        measles(monkeypatch, str(tmp_path / name), *options)
    told = capsys.readouterr().err.strip().splitlines()
    assert says in told[-1]
    assert told[-1].startswith("measles.py: error: ")


def test_measles_of_hagelloch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if not REGISTER.exists():
        pytest.skip(f"real data absent: {REGISTER.name} is not in ../shared/data")
    measles(monkeypatch, str(REGISTER))
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert printed[0][:5] == ["188", "children", "in", "56", "households,"]
    table = (REPOSITORY / "docs" / "framework.md").read_text()
    for line in printed[2:5]:
        assert "| " + " | ".join(line) + " |" in table
