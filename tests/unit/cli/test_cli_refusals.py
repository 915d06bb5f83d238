"""The command line: one clear line for every bad input, and nothing written, replaced or spent."""

import io
import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pufferfish as pf
from commands import READING, refused, run
from pufferfish.cli import main
from pufferfish.ledger import Ledger

BAD_OPTIONS = {
    "epsilon 0": (["--epsilon", "0"], ["epsilon is 0", "positive"]),
    "epsilon negative": (["--epsilon", "-1"], ["epsilon is -1"]),
    "epsilon nan": (["--epsilon", "nan"], ["epsilon is nan"]),
    "epsilon inf": (["--epsilon", "inf"], ["epsilon is inf"]),
    "unknown column": (["--state", "activty"], ["'activty' not found", "Did you mean 'activity'"]),
    "unknown query": (["--query", "median"], ["query 'median' is not understood"]),
    "unknown query state": (["--query", "count:walking"], ["'walking'", "active, rest"]),
    "count of all": (["--query", "count:active,rest"], ["public number of records"]),
    "absent model": (["--model", "absent.json"], ["cannot read absent.json: there is no such file"]),
    "misspelt model": (["--model", "modle.json"], ["no such file. Did you mean 'model.json'?"]),
    "model in no folder": (["--model", "absent/model.json"], ["there is no such folder as absent"]),
    "misspelt part of time": (["--by", "hours"], ["A part of the time is called 'hour'"]),
    "absent output folder": (["--output", "absent/release.json"], ["cannot write", "there is no folder absent"]),
    "picture kind": (["--plot", "release.xyz"], [".png"]),
    "picture folder": (["--plot", "absent/release.png"], ["there is no folder absent"]),
    "filter on the state": (["--where", "activity == 'rest'"], ["activity"]),
    "two queries": (["--query", "cdf", "--query=count:rest"], ["--query is given twice", "give it once"]),
    "two units": (["--protect", "1d", "--protect", "1h"], ["--protect is given twice", "give it once"]),
    "bad filter": (["--where", "awake +"], ["awake +"]),
    "bad gap": (["--max-gap", "soon"], ["soon"]),
    "entry-dp on correlated records": (["--mechanism", "entry-dp"], ["EntryDP does not apply", "correlated"]),
}

HEAD = "id,minute,activity\n"

BAD_TABLES = {
    "empty": ("", []),
    "header only": (HEAD, []),
    "unsorted": (HEAD + "A,2024-05-01 08:02,rest\nA,2024-05-01 08:01,rest\n", ["A", "sort"]),
    "duplicate": (
        HEAD + "A,2024-05-01 08:01,rest\nA,2024-05-01 08:01,rest\n",
        ["A", "rows 1 and 2 below the header", "duplicate"],
    ),
    "unparsable": (HEAD + "A,2024-05-01 08:01,rest\nA,yesterday,rest\n", ["yesterday"]),
    "one row each": (HEAD + "A,2024-05-01 08:01,rest\nB,2024-05-01 08:01,rest\n", ["one record"]),
    "unknown state": (HEAD + "A,2024-05-01 08:01,rest\nA,2024-05-01 08:02,asleep\n", ["asleep", "active"]),
    "all missing": (HEAD + "A,2024-05-01 08:01,\nA,2024-05-01 08:02,\n", []),
}


def model_record(matrix: list[list[float]], start: object = "stationary", **change: object) -> str:
    chain = {"transition_matrix": matrix, "initial_distribution": start}
    record = {
        "format": "pufferfish-model",
        "version": 1,
        "origin": "test",
        "states": ["rest", "active"],
        "step": "1min",
    }
    return json.dumps(record | {"chains": [chain]} | change)


BAD_MODELS = {
    "truncated": (model_record([[0.9, 0.1], [0.4, 0.6]])[:60], ["damaged or incomplete"]),
    "another version": (model_record([[0.9, 0.1], [0.4, 0.6]], version=7), ["version 7"]),
    "not stochastic": (model_record([[0.9, 0.2], [0.4, 0.6]]), ["transition_matrix[0] sums to 1.1", "transpose"]),
    "negative": (model_record([[1.1, -0.1], [0.4, 0.6]]), ["transition_matrix[0][1] is -0.1"]),
    "NaN": (model_record([[float("nan"), 0.1], [0.4, 0.6]]), ["it is not JSON"]),
    "reducible": (model_record([[1, 0], [0, 1]]), ["reducible", "rest", "active"]),
    "transient": (model_record([[0.5, 0.5], [0, 1]]), ["never returns to state {rest}"]),
    "no secret": (model_record([[1, 0], [0, 1]], [1, 0]), ["no secret to protect"]),
}


@pytest.mark.parametrize("case", BAD_OPTIONS, ids=str)
def test_bad_options_are_one_line_and_nothing_is_written(
    tmp_path: Path, private: Path, model: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(p.name for p in tmp_path.iterdir())
    options, says = BAD_OPTIONS[case]
    given = ["--model", model, "--epsilon", 1, "--output", "release.json", *options]
    refused("release", private, *READING, *given, says=says)
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize("case", BAD_TABLES, ids=str)
def test_bad_tables_are_one_line_and_nothing_is_written(tmp_path: Path, model: Path, case: str) -> None:
    content, says = BAD_TABLES[case]
    table, output = tmp_path / "bad.csv", tmp_path / "release.json"
    table.write_text(content)
    refused("release", table, *READING, "--model", model, "--epsilon", 1, "--output", output, says=says)
    assert not output.exists()


@pytest.mark.parametrize("case", BAD_MODELS, ids=str)
def test_bad_models_are_one_line_and_nothing_is_written(tmp_path: Path, private: Path, case: str) -> None:
    content, says = BAD_MODELS[case]
    path, output = tmp_path / "bad.json", tmp_path / "release.json"
    path.write_text(content)
    refused("release", private, *READING, "--model", path, "--epsilon", 1, "--output", output, says=says)
    assert not output.exists()


@pytest.mark.parametrize(
    ("matrix", "says"),
    [([[0, 1], [1, 0]], "period 2"), ([[0.2, 0.8], [0.8, 0.2]], None)],
)
def test_a_periodic_chain_is_refused_where_the_mechanism_needs_otherwise(
    tmp_path: Path, private: Path, matrix: list[list[float]], says: str | None
) -> None:
    path, output = tmp_path / "model.json", tmp_path / "release.json"
    path.write_text(model_record(matrix))
    arguments = ["--model", path, "--epsilon", 1, "--mechanism", "mqm-approx", "--output", output]
    if says:
        refused("release", private, *READING, *arguments, says=["MQMApprox does not apply", says])
    else:
        assert run("release", private, *READING, *arguments).exit_code == 0


def test_fit_refuses_what_it_cannot_count(tmp_path: Path) -> None:
    table, output = tmp_path / "t.csv", tmp_path / "m.json"
    table.write_text("state\na\nb\nc\n")
    fit = ["fit", table, "--state", "state", "--overwrite", "--output", output]
    refused(*fit, "--smoothing", 0, says=["no transition out of state 'c'", "smoothing"])
    refused(*fit, says=["50.0% of the model", "give --accept smoothing"])
    assert not output.exists()
    assert run(*fit, "--accept", "smoothing").exit_code == 0
    refused(*fit, "--smoothing", "-1", says=["smoothing is -1"])
    table.write_text("state\na\nb\nc\nc\n")
    refused(*fit, "--smoothing", 0, says=["never returns to state", "smoothing"])


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_spent(
    tmp_path: Path, private: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[object] = []
    module = sys.modules["pufferfish.release.draw"]
    monkeypatch.setattr(module, "discrete_laplace_noise", lambda *a, **k: drawn.append(a))
    release = ["release", private, *READING, "--model", model, "--epsilon", 1]
    refused(*release, "--output", tmp_path, says=["it is a folder"])
    refused(*release, "--output", tmp_path / "r.json", "--plot", tmp_path / "r.json", says=[".png"])
    refused(*release, "--output", tmp_path / "r.png", "--plot", tmp_path / "r.png", says=[".json"])
    assert drawn == []


def test_no_output_may_replace_what_is_read(tmp_path: Path, private: Path, public: Path, model: Path) -> None:
    release = ["release", private, *READING, "--model", model, "--epsilon", 1]
    before = {path: path.read_bytes() for path in (private, public, model)}
    refused(*release, "--output", private, says=["is the input file"])
    refused(*release, "--output", model, says=["is the input file"])
    refused(*release, "--output", tmp_path / "r.json", "--plot", model, says=["is the input file"])
    refused("fit", public, *READING, "--output", public, says=["is the input file"])
    link = tmp_path / "link.json"
    link.symlink_to(private)
    refused(*release, "--output", link, says=["is the input file"])
    assert {path: path.read_bytes() for path in before} == before


def test_the_record_of_an_earlier_release_is_kept(tmp_path: Path, private: Path, model: Path) -> None:
    output = tmp_path / "release.json"
    release = ["release", private, *READING, "--model", model, "--epsilon", 1, "--output", output]
    assert run(*release).exit_code == 0
    first = output.read_bytes()
    refused(*release, says=["exists", "--overwrite"])
    assert output.read_bytes() == first
    assert run(*release, "--overwrite", "--query", "count:active").exit_code == 0
    assert pf.Release.from_json(output).query.kind == "count"


def test_devices_and_standard_output_are_no_files(private: Path, model: Path) -> None:
    release = ["release", private, *READING, "--model", model, "--epsilon", 1, "--overwrite"]
    refused(*release, "--output", "/dev/null", says=["device"])
    refused(*release, "--output", "-", says=["standard output"])
    refused(*release, "--output", "a" * 300 + ".json", says=["name too long"])
    assert Path("/dev/null").is_char_device()


def test_fit_that_fails_writes_nothing(tmp_path: Path) -> None:
    table, output = tmp_path / "t.csv", tmp_path / "m.json"
    table.write_text("state\na\nb\nc\nc\n")
    refused("fit", table, "--state", "state", "--smoothing", "1e-300", "--output", output, says=["below 1e-270"])
    assert not output.exists()


def test_no_command_replaces_a_release_unasked(tmp_path: Path, private: Path, public: Path, model: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    release = ["release", private, *READING, "--model", model, "--epsilon", 1]
    assert run(*release, "--output", first).exit_code == 0
    kept = first.read_bytes()
    picture = tmp_path / "first.svg"
    picture.write_bytes(kept)
    refused(*release, "--output", second, "--plot", picture, says=["holds a pufferfish-release"])
    refused("fit", public, *READING, "--overwrite", "--output", first, says=["holds a pufferfish-release"])
    assert first.read_bytes() == picture.read_bytes() == kept
    assert not second.exists()
    refused("fit", public, *READING, "--output", model, says=["exists", "--overwrite"])
    assert run("fit", public, *READING, "--output", model, "--overwrite").exit_code == 0  # a model is made anew


@pytest.mark.parametrize("text", ['count:"active', "count:active\nrest", 'mean:"a"b=1'])
def test_a_broken_list_is_one_line(tmp_path: Path, private: Path, model: Path, text: str) -> None:
    release = ["release", private, *READING, "--model", model, "--epsilon", 1, "--output", tmp_path / "r.json"]
    refused(*release, "--query", text, says=[])


def test_options_before_a_command_are_refused_in_one_line() -> None:
    result = CliRunner().invoke(main, ["--versionn"])
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert re.match(
        r"error: No such option:? '?--versionn'?\.? Did you mean '?--version'?\?; see ", line
    )  # of any click


def test_a_model_that_is_given_as_an_option_is_said_to_come_first() -> None:
    for command in ("check", "compare", "robustness"):
        result = CliRunner().invoke(main, [command, "--model", "m.json"], prog_name="pufferfish")
        assert result.exit_code == 2
        said = f"the model file is given first, without --model: pufferfish {command} model.json"
        assert result.output.startswith(f"error: {said}")
    assert "given first" not in CliRunner().invoke(main, ["fit", "t.csv", "--model", "m.json"]).output


def test_a_check_takes_its_table_without_an_option() -> None:
    result = CliRunner().invoke(main, ["check", "m.json", "--table", "t.csv"], prog_name="pufferfish")
    assert result.exit_code == 2
    said = "the table is given after the model, without --table: pufferfish check model.json table.csv"
    assert result.output.startswith(f"error: {said}")


def test_a_message_that_quotes_a_huge_cell_is_cut(tmp_path: Path, model: Path) -> None:
    table = tmp_path / "long.csv"
    table.write_text("activity\nrest\n" + "x" * 200_000 + "\n")
    command = ["release", str(table), "--state", "activity", "--model", str(model), "--query", "histogram"]
    result = CliRunner().invoke(
        main, [*command, "--epsilon", "1", "--step", "1min", "--output", str(tmp_path / "r.json")]
    )
    assert result.exit_code == 2
    assert len(result.output) < 2_100
    assert result.output.startswith("error: ")


@pytest.mark.parametrize("number", ["1_0", "１", "0x1", "1e", "", "1,5", "1__0", "infinity"])
def test_numbers_of_the_command_line_are_plain_decimals(
    tmp_path: Path, private: Path, model: Path, number: str
) -> None:
    output = tmp_path / "release.json"
    for name in ("--epsilon", "--up-to"):
        refused(
            "release",
            private,
            *READING,
            "--model",
            model,
            name,
            number,
            "--output",
            output,
            says=[name, "plain number"],
        )
    refused("compare", model, "--length", 5, "--epsilon", number, says=["--epsilon", "plain number"])
    refused("robustness", model, model, "--length", 5, "--epsilon", number, says=["--epsilon", "plain number"])
    refused("fit", private, *READING, "--smoothing", number, "--output", output, says=["--smoothing", "plain number"])
    refused("fit", private, *READING, "--confidence", number, "--output", output, says=["--confidence"])
    budget = ["ledger", "create", output, "--model", model, "--table", private, *READING, "--budget", number]
    refused(*budget, says=["--budget", "plain number"])
    if number != "1,5":
        refused("compare", model, "--length", number, "--epsilon", 1, says=["--length", "whole number"])
        refused("compare", model, "--length", 5, "--epsilon", 1, "--query", f"sum:{number}1_0,1", says=["sum:"])
    assert not output.exists()


@pytest.mark.parametrize("number", ["1e-1", ".5", "1.", " 1 ", "+1"])
def test_numbers_in_other_plain_forms_are_taken(model: Path, number: str) -> None:
    assert run("compare", model, "--length", 5, "--epsilon", number).exit_code == 0


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("", "the query is empty"),
        (" ", "the query is empty"),
        ("histogram:", "nothing may follow"),
        ("count:rest,", "empty part"),
        ("count:,rest", "empty part"),
        ("frequency:rest,,active", "empty part"),
        ("count:rest,rest", "'rest' twice"),
        ("frequency:rest,rest", "'rest' twice"),
        ("sum:1,0,", "empty part"),
        ("histogram-counts:", "nothing may follow"),
        ("count:", "names no state"),
        ("count: ", "names no state"),
    ],
)
def test_odd_parts_of_a_query_are_refused(model: Path, query: str, says: str) -> None:
    refused("compare", model, "--length", 5, "--epsilon", 1, "--query", query, says=[says])


@pytest.mark.slow
@pytest.mark.program
@pytest.mark.skipif(sys.platform == "win32", reason="streams closed by a shell of Unix")
def test_a_closed_standard_output_is_no_traceback(tmp_path: Path, private: Path, model: Path) -> None:
    """As a closed pipe: what was made is written, and exit code 1 says that nobody could read what was printed."""
    output = tmp_path / "release.json"
    command = [sys.executable, "-m", "pufferfish", "release", str(private), *READING, "--model", str(model)]
    command += ["--mechanism", "group-dp", "--epsilon", "10", "--output", str(output)]
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True)
    assert (closed.returncode, closed.stderr) == (1, "")
    assert pf.Release.from_json(output).epsilon == 10
    both = ["sh", "-c", '"$@" --overwrite >&- 2>&-', "sh", *command]
    assert subprocess.run(both, capture_output=True).returncode == 1


@pytest.mark.grid(keep=7)
@pytest.mark.parametrize("command", ["fit", "check", "compare", "ledger", "release", "release, asked", "report"])
@pytest.mark.slow
def test_a_reader_that_goes_is_exit_code_1_and_nothing_else(
    command: str, tmp_path: Path, public: Path, private: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are whole or not there; of a ledger is spent what a release was written for, and no lock is blamed."""
    book, output, first = (tmp_path / name for name in ("book.json", "output.json", "first.json"))
    given = [*READING, "--model", model]
    assert run("ledger", "create", book, *given, "--table", private, "--budget", 9).exit_code == 0
    release = ["release", private, *given, "--mechanism", "group-dp", "--query", "count:active"]
    assert run(*release, "--epsilon", 3, "--output", first).exit_code == 0
    commands: dict[str, list[Any]] = {
        "fit": ["fit", public, *READING, "--output", output],
        "check": ["check", model, public, *READING, "--accept", "public"],
        "compare": ["compare", model, "--length", 9, "--epsilon", 1, "--mechanisms", "group-dp"],
        "ledger": ["ledger", "show", book],
        "release": [*release, "--epsilon", 3, "--ledger", book, "--output", output],
        "release, asked": [*release, "--accuracy", 150, "--ledger", book, "--output", output],  # says its ε before
        "report": ["report", first, "--brief", "--output", tmp_path / "report.html"],
    }
    told, (reader, writer) = io.StringIO(), os.pipe()
    os.close(reader)
    with monkeypatch.context() as patched, suppress(BrokenPipeError), os.fdopen(writer, "w") as gone:
        patched.setattr(sys, "stdout", gone)
        patched.setattr(sys, "stderr", told)
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in commands[command]], prog_name="pufferfish")
    assert (ended.value.code, told.getvalue()) == (1, "")
    assert output.exists() == (command in ("fit", "release"))
    assert (tmp_path / "report.html").exists() == (command == "report")
    assert len(Ledger.open(book).entries) == (command == "release")
    if command == "release":
        assert pf.Release.from_json(output).ledger is not None


def test_a_smoothing_that_drowns_the_counts_is_refused(tmp_path: Path, public: Path) -> None:
    for smoothing in ("1e308", "1.1e15", "inf", "-1"):
        refused(
            "fit",
            public,
            *READING,
            "--smoothing",
            smoothing,
            "--output",
            tmp_path / "new.json",
            says=["smoothing is", "0 to 1e+15"],
        )
    most = ["--smoothing", "1e15", "--accept", "smoothing"]
    assert run("fit", public, *READING, *most, "--output", tmp_path / "new.json").exit_code == 0


def test_names_that_may_have_been_meant_are_of_the_same_kind(
    tmp_path: Path, private: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [private, *READING, "--model", model, "--epsilon", 1]
    (tmp_path / "survey.csv").write_text("a\n")
    assert "Did you mean" not in refused("release", *given, "--output", "r.json", "--ledger", "survey.json")
    refused("ledger", "creat", says=["Did you mean 'create'"])
    assert run("release", *given, "--output", "r.json").exit_code == 0
    refused("report", "r.json", "--output", "r.pdf", says=["expected a name that ends in .html"])
    preview = ["compare", model, "--length", 60, "--epsilon", 1, "--report"]
    refused(*preview, "preview.txt", says=["expected a name that ends in .html"])


def test_it_is_said_how_much_is_read_and_of_how_many_chains(tmp_path: Path, private: Path, model: Path) -> None:
    result = run("release", private, *READING, "--model", model, "--epsilon", 1, "--output", tmp_path / "r.json")
    data = pf.Release.from_json(tmp_path / "r.json").data
    assert f"read: {data.records:,} records of {data.subjects} subjects\n" in result.stdout
    says = ["--length 1,050 may be one number or several: write --length 1050, or --length 1 --length 50"]
    refused("compare", model, "--length", "1,050", "--epsilon", 1, says=says)
    for text in ("10,080,5", "1,000,2000", "+10,080", "10, 080"):
        refused(
            "compare", model, "--length", text, "--epsilon", 1, says=["--length has the part '0", "10080 instead of"]
        )
    compared = run("compare", model, "--length", "1050,20", "--epsilon", 1)
    assert "of 2 chains, of 1050, 20 records\n" in compared.stdout
    assert " chains, of " not in run("compare", model, "--length", "1050", "--epsilon", 1).stdout


def test_messages_name_options_and_not_arguments_of_python(tmp_path: Path, private: Path, model: Path) -> None:
    release = ["release", private, "--state", "activity", "--model", model, "--epsilon", 1, "--output", tmp_path / "r"]
    with pytest.raises(pf.errors.DataError, match=r"within a subject; sort the table by time, or give subject="):
        pf.read_sequences(private, "activity", time="minute", max_gap="1min")
    says = ["within a subject; sort the table by time, or give --subject"]
    refused(*release, "--time", "minute", "--max-gap", "1min", says=says)
    refused(*release, "--max-gap", "1min", says=["--max-gap is '1min' but there is no time: give --time, the column"])
    lines = private.read_text().splitlines()
    private.write_text("\n".join([*lines[:40], lines[40].replace("rest", "").replace("active", ""), *lines[41:], ""]))
    refused(*release, *READING[2:], "--missing", "refuse", says=["in 1 row (e.g. subject 'S0': 1): --missing refuse;"])
    private.write_text("\n".join([lines[0].replace("awake", "max_gap"), *lines[1:], ""]))  # a name stays what it is
    says = ["column 'max_gaps' not found. Did you mean 'max_gap'? Columns: id, minute, activity, max_gap."]
    refused(*release, *READING[2:], "--where", "max_gaps", says=says)
    lengths = ["compare", model, "--length", 0, "--epsilon", 1]
    refused(*lengths, says=["--length is 0, expected at least 1 record"])
    refused(*lengths, "--accuracy", 0.1, says=["--epsilon and --accuracy", "give one"])
    private.write_text("\n".join([*lines, ""]))
    steps = ["--query", "bouts:active", "--by", "awake"]
    refused(*release, *READING[2:], *steps, says=["or read the table without --by"])
    refused(*release[:-1], tmp_path / "r.json", *READING[2:], "--each-subject", says=["--output is '", "or .csv: "])
    book = ["ledger", "create", tmp_path / "b.json", "--table", private, *READING, "--model", model]
    refused(*book, "--budget", -1, says=["--budget is -1.0, expected"])
