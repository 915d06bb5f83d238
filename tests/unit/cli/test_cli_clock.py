"""A model with a clock on the command line: fitted, compared, released under, and booked."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from commands import refused, run

LOCAL = ("--state", "act", "--subject", "who", "--time", "t", "--max-gap", "1h")
READING = (*LOCAL, "--time-zone", "UTC")


def write_table(path: Path, seed: int) -> Path:
    start = datetime(2024, 1, 1)
    rows = [
        {"who": who, "t": start + timedelta(hours=h), "act": "walk" if (h * 7 + who + seed) % 24 > 15 else "rest"}
        for who in range(3)
        for h in range(24 * 30)
        if h % 97 != 5
    ]
    pl.DataFrame(rows).write_csv(path)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path, table = tmp_path / "hourly.json", write_table(tmp_path / "public.csv", 1)
    result = run("fit", table, *READING, "--clock", "hour", "--smoothing", 2, "--output", path)
    assert result.exit_code == 0, result.output
    assert "24 matrices of 2 states, one for each hour, one record every 1h" in result.output
    assert "fewest transitions:" in result.output
    return path


def test_from_a_table_with_hours_to_a_release_and_its_ledger(tmp_path: Path, model: Path) -> None:
    table, book, output = write_table(tmp_path / "private.csv", 2), tmp_path / "book.json", tmp_path / "release.json"
    result = run("compare", model, "--length", 100, "--epsilon", 1)
    assert result.exit_code == 0, result.output
    assert "LeakagePropagation" in result.output
    result = run("ledger", "create", book, "--model", model, "--budget", 2, "--table", table, *READING)
    assert result.exit_code == 0, result.output
    result = run("release", table, *READING, "--model", model, "--epsilon", 0.5, "--query", "histogram",
                 "--ledger", book, "--output", output)  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(output.read_text())
    assert found["theta"]["kind"] == "periodic Markov chains"
    assert found["mechanism"]["witness"]["kind"] == "propagation-by-clock"
    assert run("ledger", "show", book).exit_code == 0


def test_refusals(tmp_path: Path, model: Path) -> None:
    table, output = write_table(tmp_path / "private.csv", 2), tmp_path / "other.json"
    fit = ("fit", table, *READING, "--output", output)
    assert "leave out --clock" in refused(*fit, "--clock", "hour", "--confidence", 0.9)
    assert "no transition out of state" in refused(*fit, "--clock", "weekday-hour", "--smoothing", 0)
    assert "--max-gap is 2h and a step takes 1h" in refused(*fit, "--clock", "hour", "--max-gap", "2h")
    release = ("release", table, "--state", "act", "--subject", "who", "--model", model, "--epsilon", 1)
    assert "give --time" in refused(*release, "--output", output)
    assert "read without --max-gap" in refused(*release, "--time", "t", "--output", output)
    assert not output.exists()


def test_a_step_that_is_only_stated_is_no_remedy(tmp_path: Path, model: Path) -> None:
    table, output = tmp_path / "fast.csv", tmp_path / "release.json"
    start = datetime(2024, 1, 1)
    rows = [{"who": 1, "t": start + timedelta(minutes=20 * i), "act": ("rest", "walk")[i % 3 == 0]} for i in range(90)]
    pl.DataFrame(rows).write_csv(table)
    message = refused("release", table, *READING, "--model", model, "--epsilon", 1, "--output", output)
    assert "records are 20min apart: use a model of this step, or aggregate the table" in message
    assert "--step" not in message


def test_hours_without_records_are_named(tmp_path: Path) -> None:
    table, output = tmp_path / "mornings.csv", tmp_path / "model.json"
    start = datetime(2024, 1, 1)
    times = (start + timedelta(hours=h) for h in range(24 * 9) if h % 24 < 12)
    pl.DataFrame([{"who": 1, "t": t, "act": ("rest", "walk")[t.day % 2]} for t in times]).write_csv(table)
    fit = ("fit", table, *READING, "--clock", "hour", "--overwrite", "--output", output)
    result = run(*fit, "--accept", "smoothing")
    assert "nothing was observed in 13 of 24 phases (11:00 to 12:00, 12:00 to 13:00, " in result.output
    assert "no transition out of state" in refused(*fit, "--smoothing", 0)


def test_a_release_says_what_accuracy_was_asked(tmp_path: Path, model: Path) -> None:
    table, output = write_table(tmp_path / "private.csv", 2), tmp_path / "release.json"
    result = run("release", table, *READING, "--model", model, "--accuracy", 0.2, "--alpha", 0.01, "--output", output)
    assert result.exit_code == 0, result.output
    assert "error of at most 0.2 with 99% probability needs ε = " in result.output
    assert "may begin at any hour of the day, and whose clock nobody changes" in output.read_text()


def test_a_series_that_a_change_of_clocks_may_cut_follows_no_clock(tmp_path: Path, model: Path) -> None:
    """Records of two hours are missing on the night of 31 March; local times do not say whether it was one."""
    rows = [
        {"who": 1, "t": datetime(2024, 3, 29) + timedelta(hours=h), "act": "walk" if h % 24 > 15 else "rest"}
        for h in range(96)
        if h not in (50, 51)
    ]
    frame, table = pl.DataFrame(rows), tmp_path / "march.csv"
    frame.write_csv(table, datetime_format="%Y-%m-%d %H:%M:%S")
    release = (
        "release",
        table,
        *LOCAL,
        "--model",
        model,
        "--epsilon",
        1,
        "--accept",
        "noise",
        "--output",
        tmp_path / "r.json",
    )
    refused(*release, says=["Θ follows a clock, but times in column 't' have no zone, and clocks may"])
    words = ["clocks in Europe/Paris changed within a series", "keep only the records before or after"]
    refused(*release, "--time-zone", "Europe/Paris", says=words)
    for more in (
        ("--where", "t < '2024-03-31'"),
        ("--gaps", "independent"),
        ("--time-zone", "UTC"),
        ("--time-zone", "Asia/Kolkata"),
        ("--time-zone", "Europe/Paris", "--where", "t < '2024-03-31'"),
        ("--time-zone", "Europe/Paris", "--gaps", "independent"),
    ):
        result = run(*release, *more, "--overwrite")
        assert result.exit_code == 0, (more, result.output)
    assert run("fit", table, *LOCAL, "--smoothing", 1, "--output", tmp_path / "m.json").exit_code == 0
