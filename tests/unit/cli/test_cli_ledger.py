"""The ledger on the command line: the usual way, and one clear line for every bad input."""

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import commands
import pufferfish as pf
from commands import READING, in_two, run, write_table
from ledgers import put
from pufferfish._base.words import at_most
from pufferfish.ledger import Ledger


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and p.suffix != ".lock"}


def refused(folder: Path, *arguments: object, says: Sequence[str]) -> str:
    """Refused in one line, which is returned, and every file is as before."""
    before = contents(folder)
    line = commands.refused(*arguments, says=says)
    assert contents(folder) == before
    return line


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "table.csv", 2, subjects=2, minutes=100, awake=60)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    record = {
        "format": "pufferfish-model",
        "version": 1,
        "origin": "a survey",
        "states": ["active", "rest"],
        "step": "1min",
        "chains": [{"transition_matrix": [[0.9, 0.1], [0.2, 0.8]], "initial_distribution": "stationary"}],
    }
    path.write_text(json.dumps(record))
    return path


@pytest.fixture
def book(tmp_path: Path, table: Path, model: Path) -> Path:
    path = tmp_path / "book.json"
    result = run("ledger", "create", path, "--model", model, "--budget", 1, "--table", table, *READING)
    assert result.exit_code == 0, result.output
    assert f"{path}.lock is an empty lock file; leave it in place" in result.stdout
    return path


def test_a_table_of_two_files_is_charged(tmp_path: Path, table: Path, model: Path) -> None:
    first, second = in_two(table)
    book, output = tmp_path / "two.json", tmp_path / "r.json"
    two = ["--table", first, "--table", second]
    created = run("ledger", "create", book, "--model", model, "--budget", 1, *two, *READING)
    assert "ledger for 200 records in 2 chains" in created.stdout
    release = ["release", first, second, *READING, "--model", model, "--ledger", book, "--epsilon", 0.4]
    result = run(*release, "--output", output)
    assert "ledger: number 1, spent 0.4 of 1 in all" in result.stdout, result.output
    assert Ledger.open(book).base.source == pf.Release.from_json(output).data.base.source == "first.csv, second.csv"


def test_the_usual_way(tmp_path: Path, table: Path, model: Path, book: Path) -> None:
    empty = run("ledger", "show", book)
    assert empty.exit_code == 0
    assert "spent 0 of 1 by LeakagePropagation, remaining 1" in empty.stdout
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    base = ["release", table, *READING, "--model", model, "--ledger", book]
    result = run(*base, "--epsilon", 0.4, "--output", first)
    assert result.exit_code == 0, result.output
    assert "ledger: number 1, spent 0.4 of 1 in all" in result.stdout
    result = run(*base, "--query", "count:active", "--up-to", 0.9, "--output", second)
    assert result.exit_code == 0, result.output
    assert "ledger: number 2, spent 0.9" in result.stdout or "spent 0.89999" in result.stdout
    releases = [pf.Release.from_json(path) for path in (first, second)]
    ledger = Ledger.open(book)
    assert [r.ledger.entry for r in releases] == [e.number for e in ledger.entries] == [1, 2]
    assert [r.ledger.spent for r in releases] == [e.spent for e in ledger.entries]
    assert [r.epsilon for r in releases] == [e.epsilon for e in ledger.entries]
    assert 0.99 * 0.9 <= ledger.spent <= 0.9
    assert releases[1].epsilon < 0.6
    assert not any(found.warnings for found in releases)
    other, third = tmp_path / "other.json", tmp_path / "third.json"
    other.write_text(model.read_text().replace("0.9, 0.1", "0.8, 0.2"))
    base[base.index(model)] = other
    result = run(*base, "--epsilon", 0.01, "--accept", "noise", "--output", third)
    assert result.exit_code == 0, result.output
    assert "The ledger has another Θ than this release" in result.output
    assert "warning: The ledger has another Θ" in run("show", third).stdout
    ledger = Ledger.open(book)
    shown = run("ledger", "show", book)
    for words in ("histogram", "count", "table.csv", "a survey", f"spent {at_most(ledger.spent)} of 1"):
        assert words in shown.stdout
    assert shown.stdout.count("(ε under another Θ)") == 1


def test_create_says_what_it_is_for(tmp_path: Path, book: Path) -> None:
    ledger = Ledger.open(book)
    assert ledger.base.source == "table.csv"
    assert ledger.base.max_gap == "1min"
    assert sum(chain.records for chain in ledger.bound.length) == 200
    assert ledger.entries == ()


@pytest.mark.parametrize("mechanism", ["group-dp", "mqm-exact", "mqm-approx"])
def test_every_bound(tmp_path: Path, table: Path, model: Path, mechanism: str) -> None:
    book, output = tmp_path / "book.json", tmp_path / "release.json"
    create = ["ledger", "create", book, "--model", model, "--budget", 2, "--table", table, *READING]
    assert run(*create, "--mechanism", mechanism).exit_code == 0
    base = ["release", table, *READING, "--model", model, "--ledger", book]
    result = run(*base, "--epsilon", 0.3, "--mechanism", mechanism, "--accept", "noise", "--output", output)
    assert result.exit_code == 0, result.output
    assert pf.Release.from_json(output).ledger.mechanism == mechanism
    assert Ledger.open(book).spent == pytest.approx(0.3, rel=1e-5)


def test_a_part_by_a_filter_is_charged_to_the_whole(tmp_path: Path, table: Path, model: Path, book: Path) -> None:
    output = tmp_path / "release.json"
    base = ["release", table, *READING, "--model", model, "--ledger", book, "--where", "awake"]
    result = run(*base, "--epsilon", 0.2, "--accept", "noise", "--output", output)
    assert result.exit_code == 0, result.output
    result = run(*base, "--up-to", 0.8, "--output", tmp_path / "other.json")
    assert result.exit_code == 0, result.output
    assert 0.792 <= Ledger.open(book).spent <= 0.8


def test_months_by_where_cost_the_larger_and_not_the_sum(tmp_path: Path, model: Path) -> None:
    rows = [
        (who, dt.datetime(2020, 1, 1) + dt.timedelta(hours=8 * i), ("rest", "active")[(i * 7 + len(who)) % 3 == 0])
        for who in ("ann", "robert")
        for i in range(180)
    ]
    table, book = tmp_path / "table.csv", tmp_path / "months.json"
    table.write_text("id,minute,activity\n" + "".join(f"{who},{time},{state}\n" for who, time, state in rows))
    reading = [*READING[:-1], "8h", "--step", "8h", "--time-zone", "UTC"]
    record = json.loads(model.read_text()) | {"step": "8h"}
    model.write_text(json.dumps(record))
    made = run("ledger", "create", book, "--model", model, "--budget", 2, "--table", table, *reading)
    assert made.exit_code == 0, made.output
    january = "minute >= '2020-01-01' and minute < '2020-02-01'"
    spent, files = [], []
    for where in (january, "minute >= '2020-02-01' and minute < '2020-03-01'", "month(minute) == 1"):
        files.append(tmp_path / f"{len(files)}.json")
        base = ["release", table, *reading, "--model", model, "--ledger", book, "--where", where]
        result = run(*base, "--epsilon", 0.5, "--output", files[-1])
        assert result.exit_code == 0, result.output
        steps = 2 * 87 if "'2020-02-01' and" in where else 2 * 93
        assert f"charged on where {where}, {steps} of 360 steps, spent" in result.stdout
        spent.append(Ledger.open(book).spent)
    assert spent[0] == pytest.approx(0.5, rel=1e-3)
    assert spent[1] < 0.505
    assert spent[2] > 0.95  # January again
    assert [own for own in Ledger.open(book).entries[1].windows or ()] == [[(93, 180)]] * 2
    checked = run("verify", files[1], "--ledger", book, "--table", table, "--model", model)
    assert checked.exit_code == 0, checked.output
    assert "where minute >= '2020-02-01'" in " ".join(run("ledger", "show", book).stdout.split())


def test_a_refusal_recommends_only_what_would_work(tmp_path: Path, table: Path, model: Path, book: Path) -> None:
    """Where --up-to would only find noise that hides everything, the refusal of --epsilon says so at once."""
    base = ["release", table, *READING, "--model", model, "--ledger", book]
    assert run(*base, "--epsilon", 0.5, "--output", tmp_path / "first.json").exit_code == 0
    much = (*base, "--epsilon", 0.9, "--output", tmp_path / "second.json")
    line = refused(tmp_path, *much, says=["above the budget of 1; for all that is left: --up-to 1"])
    assert line.endswith("--up-to 1")
    each = (*base, "--epsilon", 0.9, "--each-subject", "--output", tmp_path / "each.csv")
    line = refused(tmp_path, *each, says=["above the budget of 1; the largest epsilon that fits is 0."])
    assert not list(tmp_path.glob("each*"))  # not even the lock, which would stay
    most = float(line.rpartition(" ")[2])
    dry = [*each[: each.index("--epsilon")], "--each-subject", "--output", tmp_path / "each.csv", "--dry-run"]
    assert run(*dry, "--epsilon", most).exit_code == 0
    refused(tmp_path, *dry, "--epsilon", 1.01 * most, says=[f"the largest epsilon that fits is {most:g}"])
    assert run(*base, "--up-to", 1, "--output", tmp_path / "second.json").exit_code == 0
    third = (*base, "--output", tmp_path / "third.json")
    refused(tmp_path, *third, "--up-to", 1, says=["what remains up to 1 is too little for any release"])
    result = run(*third, "--epsilon", 0.1)
    assert result.exit_code == 2
    assert "almost no budget is left" in result.stderr
    assert "--up-to" not in result.stderr
    assert not (tmp_path / "third.json").exists()


def test_too_much_is_refused_and_nothing_is_spent(tmp_path: Path, table: Path, model: Path, book: Path) -> None:
    base = ["release", table, *READING, "--model", model, "--ledger", book]
    assert run(*base, "--epsilon", 0.7, "--output", tmp_path / "first.json").exit_code == 0
    second = tmp_path / "second.json"
    refused(tmp_path, *base, "--epsilon", 0.7, "--output", second, says=["above the budget of 1", "--up-to"])
    refused(tmp_path, *base, "--up-to", 0.5, "--output", second, says=["spent already"])
    refused(tmp_path, *base, "--up-to", 1.5, "--output", second, says=["above the budget of 1"])
    refused(tmp_path, *base, "--epsilon", 0.1, "--output", tmp_path / "first.json", says=["exists"])
    assert len(Ledger.open(book).entries) == 1


@pytest.mark.parametrize("mechanism", ["propagation", "group-dp"])
def test_the_last_of_a_budget_is_not_spent_on_noise_that_hides_all(
    tmp_path: Path, table: Path, model: Path, mechanism: str
) -> None:
    book = tmp_path / "book.json"
    create = ["ledger", "create", book, "--model", model, "--budget", 1, "--table", table, *READING]
    assert run(*create, "--mechanism", mechanism).exit_code == 0
    base = ["release", table, *READING, "--model", model, "--ledger", book]
    most = ["--epsilon", 0.9, "--accept", "noise", "--mechanism", mechanism, "--output", tmp_path / "r.json"]
    assert run(*base, *most).exit_code == 0
    asked = [*base, "--output", tmp_path / "last.json"]
    last = [*asked, "--query", "count:active"]
    near = f"{Ledger.open(book).spent + 2e-5:.9f}"
    says = ["the whole range of values that 200 records can have", "Nothing is spent", "give --accept noise"]
    refused(tmp_path, *last, "--up-to", near, says=says)
    refused(tmp_path, *last, "--up-to", near, "--by", "id", says=["values that each of the groups can have"])
    shaped = ["--query", "histogram", "--noise", "best"]
    refused(tmp_path, *asked, *shaped, "--up-to", near, says=["so the result would tell nothing"])
    refused(tmp_path, *asked, "--query", "switches", "--up-to", near, says=["so the result would tell nothing"])
    assert len(Ledger.open(book).entries) == 1
    done = run(*last, "--up-to", near, "--accept", "noise")
    assert done.exit_code == 0, done.output
    assert "The noise hides nearly all" in done.stderr
    assert Ledger.open(book).spent <= float(near)


BAD_RELEASES = {
    "neither": ([], ["--epsilon"]),
    "both": (["--epsilon", 0.1, "--up-to", 0.5], ["--epsilon"]),
    "up to 0": (["--up-to", 0], ["up"]),
    "up to nan": (["--up-to", "nan"], ["up"]),
    "epsilon 0": (["--epsilon", 0], ["epsilon is 0"]),
    "absent ledger": (["--epsilon", 0.1, "--ledger", "absent.json"], ["cannot read", "absent.json"]),
    "a model as a ledger": (["--epsilon", 0.1, "--ledger", "model.json"], ["not a pufferfish-ledger file"]),
    "a table as a ledger": (["--epsilon", 0.1, "--ledger", "table.csv"], ["looks like a table"]),
    "a folder as a ledger": (["--epsilon", 0.1, "--ledger", "."], ["cannot read"]),
    "output on the ledger": (["--epsilon", 0.1, "--output", "book.json"], ["is the input file"]),
    "output on the ledger, overwrite": (
        ["--epsilon", 0.1, "--output", "book.json", "--overwrite"],
        ["is the input file"],
    ),
    "output in no folder": (["--epsilon", 0.1, "--output", "absent/release.json"], ["there is no folder"]),
    "plot on the ledger": (["--epsilon", 0.1, "--plot", "book.json"], ["is the input file"]),
    "other gap": (["--epsilon", 0.1, "--max-gap", "5min"], ["--max-gap of the ledger's table is '1min'"]),
    "other gaps": (["--epsilon", 0.1, "--gaps", "independent"], ["gaps of the ledger's table is"]),
    "other missing": (["--epsilon", 0.1, "--missing", "split"], ["missing of the ledger's table is 'unobserved'"]),
    "other subject": (["--epsilon", 0.1, "--where", "id == 'none'"], []),
    "unknown state": (["--epsilon", 0.1, "--query", "count:asleep"], ["asleep"]),
    "epsilon too small": (["--epsilon", 1e-18], ["at least 0.00001"]),
    "noise too large": (["--epsilon", 1e-5, "--query", "sum:active=1e13,rest=1"], ["64-bit"]),
    "mechanism that does not apply": (["--epsilon", 0.1, "--mechanism", "entry-dp"], ["EntryDP does not apply"]),
}


@pytest.mark.parametrize("case", BAD_RELEASES, ids=str)
def test_bad_releases_spend_nothing(
    tmp_path: Path, table: Path, model: Path, book: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options, says = BAD_RELEASES[case]
    base = ["release", "table.csv", *READING, "--model", "model.json", "--ledger", "book.json"]
    refused(tmp_path, *base, "--output", "release.json", *options, says=says)
    assert Ledger.open(book).entries == ()


def test_up_to_needs_a_ledger(tmp_path: Path, table: Path, model: Path) -> None:
    base = ["release", table, *READING, "--model", model, "--output", tmp_path / "release.json"]
    refused(tmp_path, *base, "--up-to", 0.5, says=["--up-to needs --ledger"])
    for option, value in (("--mechanism", "exact-laplace"), ("--secrets", "a")):
        says = [f"{option} does not work with --up-to", f"leave out {option}, or give --epsilon instead of --up-to"]
        refused(tmp_path, *base, "--up-to", 0.5, "--ledger", "book.json", option, value, says=says)


@pytest.mark.parametrize("mechanism", ["exact-laplace", "wasserstein"])
def test_a_mechanism_for_one_query_is_refused_before_anything_is_read(tmp_path: Path, mechanism: str) -> None:
    base = ["release", "nowhere.csv", *READING, "--model", "nowhere.json", "--ledger", "nowhere-book.json"]
    line = refused(
        tmp_path,
        *base,
        "--epsilon",
        1,
        "--mechanism",
        mechanism,
        "--output",
        tmp_path / "release.json",
        says=[f"--mechanism {mechanism} does not work with --ledger", "use --mechanism propagation, or leave out"],
    )
    assert "nowhere" not in line


def test_another_table_is_refused(tmp_path: Path, model: Path, book: Path) -> None:
    other = write_table(tmp_path / "other.csv", 5, subjects=2, minutes=100, awake=60)
    base = ["release", other, *READING, "--model", model, "--ledger", book, "--output", tmp_path / "release.json"]
    refused(
        tmp_path,
        *base,
        "--epsilon",
        0.1,
        says=["source of the ledger's table", "'other.csv'", "read the same table from there"],
    )


def test_a_table_that_grew_is_refused(tmp_path: Path, model: Path, book: Path) -> None:
    table = write_table(tmp_path / "table.csv", 2, subjects=2, minutes=101, awake=60)
    base = ["release", table, *READING, "--model", model, "--ledger", book, "--output", tmp_path / "release.json"]
    refused(tmp_path, *base, "--epsilon", 0.1, says=["make another ledger"])


def test_a_release_over_the_lock_of_the_ledger_is_not_lost(
    tmp_path: Path, table: Path, model: Path, book: Path
) -> None:
    output = tmp_path / "book.json.lock"
    base = ["release", table, *READING, "--model", model, "--ledger", book, "--epsilon", 0.1]
    run(*base, "--output", output)
    if len(Ledger.open(book).entries) == 1:  # else it was refused
        assert run(*base, "--output", tmp_path / "second.json").exit_code == 0
        assert pf.Release.from_json(output).ledger.entry == 1


BAD_LEDGERS = {
    "budget 0": (["--budget", 0], ["budget is 0"]),
    "budget negative": (["--budget", -1], ["budget is -1"]),
    "budget nan": (["--budget", "nan"], ["budget is nan"]),
    "budget inf": (["--budget", "inf"], ["budget is inf"]),
    "absent table": (["--table", "absent.csv"], ["absent.csv"]),
    "absent model": (["--model", "absent.json"], ["cannot read absent.json"]),
    "unknown column": (["--state", "activty"], ["Did you mean 'activity'"]),
    "bound that does not apply": (["--mechanism", "entry-dp"], ["EntryDP does not apply"]),
}


@pytest.mark.parametrize("case", BAD_LEDGERS, ids=str)
def test_bad_ledgers_are_not_made(
    tmp_path: Path, table: Path, model: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options, says = BAD_LEDGERS[case]
    create = ["ledger", "create", "book.json", "--model", "model.json", "--table", "table.csv", "--budget", 1, *READING]
    refused(tmp_path, *create, *options, says=says)
    assert not (tmp_path / "book.json").exists()


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("book.json", ["book.json exists"]),
        ("table.csv", ["is the input file"]),
        ("model.json", ["is the input file"]),
        ("absent/book.json", ["there is no folder"]),
        (".", ["it is a folder"]),
    ],
)
def test_a_ledger_is_not_made_over_a_file(
    tmp_path: Path, table: Path, model: Path, book: Path, target: str, says: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    create = ["ledger", "create", target, "--model", "model.json", "--table", "table.csv", "--budget", 9, *READING]
    refused(tmp_path, *create, says=says)
    assert not (tmp_path / "absent").exists()


def test_the_refusal_to_replace_a_ledger_names_no_option_that_is_not_there(
    tmp_path: Path, table: Path, model: Path, book: Path
) -> None:
    result = run("ledger", "create", book, "--model", model, "--table", table, "--budget", 9, *READING)
    assert "--output" not in result.stderr
    assert "--overwrite" not in result.stderr


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "pufferfish-ledger", "version": 99}'])
def test_showing_what_is_no_ledger(tmp_path: Path, content: str) -> None:
    path = tmp_path / "book.json"
    path.write_text(content)
    refused(tmp_path, "ledger", "show", path, says=["book.json"])
    refused(tmp_path, "ledger", "show", tmp_path / "absent.json", says=["cannot read"])


def test_showing_a_ledger_that_was_edited(tmp_path: Path, table: Path, model: Path, book: Path) -> None:
    base = ["release", table, *READING, "--model", model, "--ledger", book]
    assert run(*base, "--epsilon", 0.3, "--output", tmp_path / "release.json").exit_code == 0
    record = json.loads(book.read_text())
    record["entries"][0]["scale"] = "1/0"
    put(book, record)
    refused(tmp_path, "ledger", "show", book, says=["no valid ledger"])
    refused(tmp_path, *base, "--epsilon", 0.3, "--output", tmp_path / "other.json", says=["no valid ledger"])
    record["entries"][0].update(scale="1", spent=0.0)
    put(book, record)
    refused(tmp_path, "ledger", "show", book, says=["no valid ledger"])


def test_what_a_ledger_shows_cannot_move_the_cursor(tmp_path: Path, book: Path) -> None:
    Ledger.open(book).spend(0.01, note="a\x1b[2Jb\nc")
    shown = run("ledger", "show", book)
    assert shown.exit_code == 0
    assert "\x1b" not in shown.stdout


def test_without_a_ledger_all_is_as_before(tmp_path: Path, table: Path, model: Path, book: Path) -> None:
    output = tmp_path / "release.json"
    assert run("release", table, *READING, "--model", model, "--epsilon", 1, "--output", output).exit_code == 0
    assert pf.Release.from_json(output).ledger is None
    assert Ledger.open(book).entries == ()


def test_a_reading_that_is_not_the_ledgers_is_one_line(tmp_path: Path, table: Path, model: Path, book: Path) -> None:
    """Not first a warning that advises the step of the model, and then the refusal."""
    base = ["release", table, *READING[:-2], "--model", model, "--ledger", book, "--epsilon", 0.1]
    says = [
        "--max-gap of the ledger's table is '1min', and for these data not given; read the table with the same "
        "options as the ledger's"
    ]
    refused(tmp_path, *base, "--output", tmp_path / "r.json", says=says)


def test_a_ledger_of_the_fitted_table_is_refused_unless_it_is_public(tmp_path: Path, table: Path) -> None:
    model, book = tmp_path / "fitted.json", tmp_path / "public.json"
    assert run("fit", table, *READING, "--output", model).exit_code == 0
    create = ("ledger", "create", book, "--model", model, "--budget", 1, "--table", table, *READING)
    refused(tmp_path, *create, says=["fitted to this very table", "give --accept public"])
    result = run(*create, "--accept", "public")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("warning: The model was fitted to this very table")
    assert book.exists()
