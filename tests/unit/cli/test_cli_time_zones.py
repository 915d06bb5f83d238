"""``--time-zone`` in every command that reads times, and records that come a little later than ``--max-gap``."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from commands import refused, run

READING = ("--state", "act", "--subject", "who", "--time", "t", "--max-gap", "10min")
PARIS = ("--time-zone", "Europe/Paris")


def write_table(path: Path, begins: datetime, *, seed: int = 0) -> Path:
    """Records of ten hours of three people, as clocks in Paris show them."""
    instants = [begins + timedelta(minutes=10 * i) for i in range(60)]
    walls = [instant.astimezone(ZoneInfo("Europe/Paris")).replace(tzinfo=None) for instant in instants]
    rows = [
        {"who": f"p{who}", "t": wall, "act": "walk" if (i * 7 + who + seed) % 11 > 6 else "rest"}
        for who in range(3)
        for i, wall in enumerate(walls)
    ]
    pl.DataFrame(rows).write_csv(path, datetime_format="%Y-%m-%d %H:%M:%S")
    return path


@pytest.fixture
def spring(tmp_path: Path) -> Path:
    return write_table(tmp_path / "spring.csv", datetime(2024, 3, 30, 22, tzinfo=UTC))


def succeeds(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_every_command_reads_local_times_of_a_zone(tmp_path: Path, spring: Path) -> None:
    model, book, out = tmp_path / "m.json", tmp_path / "b.json", tmp_path / "r.json"
    table = write_table(tmp_path / "private.csv", datetime(2024, 3, 30, 22, tzinfo=UTC), seed=3)
    read = (*READING, *PARIS)
    assert "177 transitions" in succeeds("fit", spring, *read, "--output", model)
    assert "174 transitions" in succeeds("fit", spring, *READING, "--output", tmp_path / "gap.json")
    assert succeeds("check", model, spring, *read).startswith("Do not go on.")  # habits of a clock, not of a chain
    model_as_it_is = ("--model", model, "--accept", "model")
    succeeds("compare", model, "--table", table, *read, "--epsilon", 1)
    succeeds("ledger", "create", book, *model_as_it_is, "--budget", 3, "--table", table, *read)
    where = ("--where", "hour(t) in [1, 3]", "--accept", "noise")
    release = ("release", table, *model_as_it_is, "--epsilon", 0.5, *where)
    refused(
        *release,
        *READING,
        "--ledger",
        book,
        "--output",
        out,
        says=["--time-zone of the ledger's table is 'Europe/Paris', and for these"],
    )
    assert "times are what clocks of Europe/Paris show" in succeeds(*release, *read, "--ledger", book, "--output", out)
    record = json.loads(out.read_text())
    assert (record["data"]["base"]["time_zone"], record["data"]["base"]["ambiguous"]) == ("Europe/Paris", None)
    assert record["data"]["longest_chain"] == 12
    succeeds("verify", out, "--table", table, "--ledger", book)
    record["data"]["base"]["time_zone"] = "UTC"  # in which 1:50 and 3:00 are more than an hour apart
    out.write_text(json.dumps(record))
    assert run("verify", out, "--table", table).exit_code == 1
    windows = json.loads(book.read_text())["entries"][0]["windows"]
    assert windows[0] == [[12, 24]]


def test_without_a_zone_hours_are_charged_to_an_hour(tmp_path: Path, spring: Path) -> None:
    model, book = tmp_path / "m.json", tmp_path / "b.json"
    succeeds("fit", spring, *READING, "--output", model)
    table = write_table(tmp_path / "private.csv", datetime(2024, 3, 30, 22, tzinfo=UTC), seed=3)
    succeeds("ledger", "create", book, "--model", model, "--budget", 3, "--table", table, *READING)
    succeeds("release", table, *READING, "--model", model, "--epsilon", 0.5, "--where", "hour(t) == 3",
             "--accept", "noise", "--ledger", book, "--output", tmp_path / "r.json")  # fmt: skip
    kept = json.loads(book.read_text())
    assert kept["grid"]["slack"] == 6
    assert kept["entries"][0]["windows"][0] == [[24 - 6, 30 + 6]]


def test_a_notebook_reads_the_zone_too(tmp_path: Path, spring: Path) -> None:
    model, out = tmp_path / "m.json", tmp_path / "r.json"
    succeeds("fit", spring, *READING, *PARIS, "--output", model)
    table = write_table(tmp_path / "private.csv", datetime(2024, 3, 30, 22, tzinfo=UTC), seed=3)
    succeeds(
        "release", table, *READING, *PARIS, "--ambiguous", "later", "--model", model, "--epsilon", 0.5, "--output", out
    )
    succeeds("notebook", out, "--output", tmp_path / "n.ipynb")
    book = (tmp_path / "n.ipynb").read_text()
    assert "time_zone='Europe/Paris'" in book
    assert "ambiguous='later'" in book


def test_times_that_come_twice_are_refused_or_decided(tmp_path: Path, spring: Path) -> None:
    autumn = write_table(tmp_path / "autumn.csv", datetime(2024, 10, 26, 22, tzinfo=UTC))
    fit = ("fit", autumn, *READING, "--output", tmp_path / "m.json")
    words = [
        "which clocks in Europe/Paris show twice",
        "write times with their offset",
        "choose --ambiguous drop",
    ]
    refused(*fit, *PARIS, says=words)
    assert "138 transitions" in succeeds(*fit, *PARIS, "--ambiguous", "drop")
    refused(
        *fit[:-1],
        tmp_path / "n.json",
        "--ambiguous",
        "drop",
        says=["time-zone is missing: give the time zone by --time-zone"],
    )
    refused("fit", spring, *READING, "--time-zone", "Paris/Europe", "--output", tmp_path / "n.json",
            says=["'Paris/Europe', expected a zone such as 'Europe/Paris'"])  # fmt: skip
    assert not (tmp_path / "n.json").exists()


def test_records_that_come_a_little_late_are_spoken_of(tmp_path: Path) -> None:
    times = [datetime(2024, 5, 1) + timedelta(minutes=5 * i, seconds=6 * ((i + 1) // 2)) for i in range(400)]
    frame = pl.DataFrame({"t": times, "act": ["rest", "walk", "walk", "rest", "rest"] * 80})
    frame.write_csv(tmp_path / "late.csv", datetime_format="%Y-%m-%d %H:%M:%S")
    fit = ("fit", tmp_path / "late.csv", "--state", "act", "--time", "t", "--output", tmp_path / "m.json")
    result = run(*fit, "--max-gap", "5min")
    assert result.exit_code == 0, result.output
    assert "warning: 200 gaps between records are only slightly longer than --max-gap (5min)" in result.stderr
    assert "If these records are only a little late, give --max-gap 5min6s, which joins them all." in result.stderr
    assert "from 199 transitions" in result.output
    again = run(*fit, "--max-gap", "5min6s", "--overwrite")
    assert "from 399 transitions" in again.output
    assert again.stderr == ""
    quiet = run("--quiet-errors", *fit, "--max-gap", "5min", "--overwrite")
    assert "late" not in quiet.stderr
    assert "200" not in quiet.stderr
    independent = run(*fit, "--max-gap", "5min", "--gaps", "independent", "--overwrite")
    assert "(5min): chains of their own begin after them" in independent.stderr


def test_a_ledger_of_a_growing_table_says_how_the_hour_that_comes_twice_is_read(tmp_path: Path, spring: Path) -> None:
    model, book, bare = tmp_path / "m.json", tmp_path / "b.json", tmp_path / "bare.json"
    succeeds("fit", spring, *READING, *PARIS, "--output", model)
    for path, zone in ((book, PARIS), (bare, ())):
        succeeds("ledger", "create", path, "--grows", "--model", model, "--budget", 1, *READING, *zone)
        succeeds("ledger", "plan", path, "--query", "histogram", "--up-to", 0.9)
    autumn = write_table(tmp_path / "autumn.csv", datetime(2024, 10, 26, 22, tzinfo=UTC))
    asked = ("--state", "act", "--model", model, "--query", "histogram", "--planned", "--accept", "noise")
    release = ("release", autumn, *asked, "--output", tmp_path / "r.json", "--ledger")
    refused(*release, book, says=["which clocks in Europe/Paris show twice", "--ambiguous drop"])
    succeeds(*release, book, "--ambiguous", "drop")
    summer = ("release", spring, *asked, "--output", tmp_path / "s.json", "--ledger", bare)
    refused(*summer, says=["have no time zone", "make a new ledger with --time-zone"])
