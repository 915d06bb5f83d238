"""``--protect``, ``--within`` and ``--promises``: what is hidden, asked for and told on the command line."""

import datetime as dt
import json
from pathlib import Path

import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run

READING = ["--state", "state", "--subject", "id", "--time", "minute", "--max-gap", "1min"]
CHAIN = pf.MarkovChain([[0.97, 0.03], [0.06, 0.94]], states=["rest", "walk"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    minutes = pl.datetime_range(pl.datetime(2024, 5, 1), pl.datetime(2024, 5, 2, 11), "1m", eager=True)
    states = [["rest", "walk"][(m // 17) % 2] for m in range(len(minutes))]
    table = pl.concat(pl.DataFrame({"id": who, "minute": minutes, "state": states}) for who in ("ann", "bob"))
    table.write_csv("steps.csv")
    pf.write_model(pf.Model(theta=CHAIN, step="1min"), "model.json")
    pf.write_model(pf.Model(theta=CHAIN), "stepless.json")
    return tmp_path


def test_a_release_for_an_hour_says_so_first(folder: Path) -> None:
    asked = ["release", "steps.csv", *READING, "--query", "histogram", "--epsilon", 1]
    hour = run(*asked, "--model", "model.json", "--protect", "1h", "--output", "hour.json")
    assert hour.exit_code == 0, hour.output
    hides = "hides any stretch of 60 steps in a row of one subject (1h, where no step takes less than 1min), at ε = 1"
    first = f"{hides}; no ledger counts it"
    assert hour.stdout.splitlines()[0] == first
    for line in (
        "1h (60 steps in a row)  ",
        "1d: any one day of one subject (1,440 steps in a row)  ",
        "one record, without any model  ",
    ):
        assert line in hour.stdout
    record = json.loads((folder / "hour.json").read_text())
    assert record["calibration"]["settings"] == {"protect": 60, "within": None}
    minute = run(*asked, "--model", "model.json", "--output", "minute.json")
    record = "hides any one record (the state of one subject at one time), at ε = 1; no ledger counts it"
    assert minute.stdout.startswith(f"{record}\n")
    scales = [pf.Release.from_json(f"{name}.json").scale for name in ("hour", "minute")]
    assert scales[0] > 3 * scales[1]
    shown = run("show", "hour.json").stdout
    assert shown.startswith(f"{hides}\n")
    assert "Facts about longer stretches, or about two separate ones together, are not hidden" in shown
    assert run("verify", "hour.json", "--table", "steps.csv", "--model", "model.json").exit_code == 0
    planned = run(*asked, "--model", "model.json", "--protect", "1h", "--dry-run")
    assert planned.stdout.startswith(f"{first}\n")
    # a table says how long a step takes where the model does not; by number it need not be known
    for model, protect in (("stepless.json", "1h"), ("stepless.json", "60")):
        other = run(*asked, "--model", model, "--protect", protect, "--output", f"{protect}.json")
        assert other.exit_code == 0, other.output
        assert pf.Release.from_json(f"{protect}.json").scale == scales[0]
    each = run(*asked, "--model", "model.json", "--protect", "1h", "--each-subject", "--output", "each.csv")
    assert each.stdout.startswith(f"{hides}\n")
    assert run("verify", "each.json").exit_code == 0
    page = run("report", "hour.json", "--output", "page.html", "--brief")
    assert page.exit_code == 0, page.output
    assert "any stretch of 60 steps in a row" in (folder / "page.html").read_text()


def test_compare_and_ledgers_are_about_the_unit_too(folder: Path) -> None:
    asked = ["compare", "model.json", "--length", 3000, "--query", "histogram", "--epsilon", 1]
    plain, hour = (" ".join(run(*asked, "--promises", *more).stdout.split()) for more in ([], ["--protect", "1h"]))
    assert "what this noise tells of ε, at most odds change one record" in plain
    assert plain.startswith("histogram, hiding any one record, at ε = 1;")
    assert hour.startswith("histogram, hiding any 1h of one subject, at ε = 1;")
    assert "it proves the leakage for one record, not for" in hour
    made = run(
        *("ledger", "create", "book.json", "--model", "model.json", "--budget", 4, "--protect", "1h"),
        *("--table", "steps.csv", *READING),
    )
    assert made.exit_code == 0, made.output
    unit = "any stretch of 60 steps in a row of one subject (1h, where no step takes less than 1min)"
    assert made.stdout.startswith(f"counts what is told of {unit}\n")
    release = [
        "release",
        "steps.csv",
        *READING,
        "--model",
        "model.json",
        "--query",
        "count:walk",
        "--ledger",
        "book.json",
    ]
    done = run(*release, "--epsilon", 1, "--output", "r.json")
    assert done.exit_code == 0, done.output
    spent = pf.Ledger.open("book.json").spent
    (hour_row,) = (row for row in pf.Release.from_json("r.json").promises if row.steps == 60)
    assert spent == pytest.approx(hour_row.epsilon, rel=1e-6)
    shown = run("ledger", "show", "book.json").stdout.splitlines()
    assert shown[0] == f"counts what is told of {unit}"
    assert done.stdout.splitlines()[0] == f"hides {unit}, at ε = 1"
    table = shown[shown.index(next(line for line in shown if line.startswith("what all releases together tell of"))) :]
    assert [line.split("  ")[0] for line in table[1:]] == [row.unit for row in pf.Release.from_json("r.json").promises]
    ledger = pf.Ledger.open("book.json")
    assert ledger.hides == unit
    assert unit in repr(ledger)
    assert f"hides: {unit}" in str(ledger)
    assert "What all releases together tell at most, unit by unit:" in str(ledger)
    assert [promise.epsilon for promise in ledger.promises()] == pytest.approx(
        [row.epsilon for row in pf.Release.from_json("r.json").promises], rel=1e-6
    )
    assert ledger.spent == spent
    refused(
        *release, "--up-to", 4, "--protect", "1h", "--output", "s.json", says=["--protect does not work with --up-to"]
    )
    rest = run(*release, "--up-to", 4, "--output", "s.json")
    stated = ["--state", "state", "--step", "1min"]  # a step that was only stated is no length of time
    run(
        "ledger",
        "create",
        "other.json",
        "--model",
        "model.json",
        "--budget",
        4,
        "--table",
        "steps.csv",
        *stated,
        "--protect",
        60,
    )
    assert run("ledger", "show", "other.json").stdout.startswith(f"counts what is told of {unit.split(' (')[0]}\n")
    assert rest.stdout.startswith("hides any stretch of 60 steps in a row of one subject")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--protect", "0"], "expected a number of steps such as 60, a length of time such as '1h' or '1d', or "),
        (["--protect", "tuesday"], "--protect is 'tuesday', expected a number of steps such as 60, a length of "),
        (["--within", "100"], "the states are neither numbers nor bins"),
        (["--within", "rest:run"], "expected pairs of two of the states rest, walk"),
        (["--protect", "1h", "--mechanism", "mqm-exact"], "--protect and --within are for propagation"),
        (["--protect", "1h", "--gaps", "independent"], "cuts each subject's series into independent chains"),
    ],
    ids=str,
)
def test_what_cannot_be_hidden_is_one_line(folder: Path, options: list[str], says: str) -> None:
    asked = ["release", "steps.csv", *READING, "--model", "model.json", "--query", "histogram", "--epsilon", 1]
    refused(*asked, *options, "--output", "r.json", says=[says])
    assert not (folder / "r.json").exists()


def test_an_hour_that_may_hold_more_steps_is_told_of_with_their_number(folder: Path) -> None:
    times = pl.datetime_range(pl.datetime(2024, 5, 1), pl.datetime(2024, 5, 3), "1m", eager=True)
    late = [dt.timedelta(seconds=5 * (m % 6 in (2, 3))) for m in range(len(times))]  # steps take from 55 to 65
    states = [["rest", "walk"][(m // 17) % 2] for m in range(len(times))]
    pl.DataFrame({"id": "ann", "minute": times + pl.Series(late), "state": states}).write_csv("late.csv")
    reading = [*READING[:-1], "70s"]
    release = ["release", "late.csv", *reading, "--model", "model.json", "--epsilon", 1, "--output"]
    least = "Steps of this table take as little as 55s"
    hour = f"warning: {least}, so 1h may hold 66 steps, and the noise hides 60 in a row: give --protect 66"
    compare = ["compare", "model.json", "--query", "histogram", "--epsilon", 1, "--table", "late.csv", *reading]
    book = ["ledger", "create", "book.json", "--model", "model.json", "--budget", 4, "--table", "late.csv", *reading]
    for asked in ([*release, "hour.json"], [*release, "once.json", "--once"], compare, book):
        assert run(*asked, "--protect", "1h").stderr.splitlines() == [hour], asked
    record = pf.Release.from_json("hour.json")
    assert record.warnings == [hour[9:].replace("--protect 66", "protect='66'")]
    assert pf.verify(record).holds
    told = (
        f"warning: {least}, and lengths of time are told in steps of 1min: so {{}} in a row are called, may hold {{}}\n"
    )
    for options, words, held in (
        (["--protect", "66"], "1h6min, as 66 steps", 73),
        ([], "5min, as 5 steps", 6),  # of the table of promises
        (["--ledger", "book.json"], "1h, as 60 steps", 66),
    ):
        assert run(*release, f"{held}{len(options)}.json", *options).stderr == told.format(words, held)
    assert run(*release, "short.json", "--protect", "90s").stderr == ""  # holds two at most, and two are hidden
    assert run("release", "steps.csv", *release[2:], "even.json", "--protect", "1h").stderr == ""
