"""``pufferfish example``: tables to try commands on, and nothing is ever replaced."""

import shlex
from pathlib import Path

import polars as pl
import pytest

import pufferfish as pf
from commands import READING, refused, run


def test_tables_that_every_command_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("example")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("written: survey-2019.csv, steps.csv\n")
    made = {name: Path(name).read_bytes() for name in ("survey-2019.csv", "steps.csv")}
    fitted = run("fit", "survey-2019.csv", *READING, "--output", "model.json")
    assert fitted.exit_code == 0, fitted.output
    chain = pf.read_model("model.json").theta.members[0]
    assert chain.transition_matrix.diagonal() == pytest.approx([0.85, 0.95], abs=0.02)  # active, rest
    data = pf.read_sequences("steps.csv", "activity", subject="id", time="minute", max_gap="1min", by=["sex"])
    assert (data.records, data.subjects, len(data.length)) == (6 * 3 * 1440, 6, 6)
    assert {time[:7] for time in made["steps.csv"].decode().split(",") if time.startswith("2020")} == {
        "2020-01",
        "2020-02",
    }  # for filters by the month
    (tmp_path / "other").mkdir()
    assert run("example", "other").exit_code == 0
    assert {name: Path("other", name).read_bytes() for name in made} == made  # the same everywhere


def test_a_power_meter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four weeks of two years; nights are quiet, and the same hour is not the same every day."""
    monkeypatch.chdir(tmp_path)
    done = run("example", "--power")
    assert done.stdout.startswith("written: meter-2019.csv, meter-2020.csv\n")
    told = done.stdout.splitlines()[1].partition("read both with ")[2]
    made = run("fit", "meter-2019.csv", *shlex.split(told), "--smoothing", 1, "--output", "model.json")
    assert made.exit_code == 0, made.output
    for name in ("meter-2019.csv", "meter-2020.csv"):
        table = pl.read_csv(name, try_parse_dates=True)
        assert len(table) == 28 * 1440
        by_hour = table.group_by(pl.col("minute").dt.hour()).agg(pl.col("watts").mean())
        quiet, busy = (by_hour.filter(pl.col("minute").is_in(hours))["watts"].mean() for hours in ([2, 3], [18, 19]))
        assert 2 * quiet < busy
        assert table["watts"].min() >= 110
        assert 4500 < table["watts"].max() < 5000
    assert not Path("steps.csv").exists()


def test_nothing_is_replaced_and_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text("mine\n")
    says = [f"{tmp_path / 'steps.csv'} exists", "pufferfish example FOLDER", "move this file away"]
    refused("example", tmp_path, says=says)
    assert [path.name for path in tmp_path.iterdir()] == ["steps.csv"]
    assert (tmp_path / "steps.csv").read_text() == "mine\n"
    refused("example", tmp_path / "absent", says=["there is no folder", "make it first"])
    refused("example", tmp_path / "steps.csv", says=["there is no folder"])
