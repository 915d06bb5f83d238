"""The command line: the main job, and one clear line for every bad input."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import pufferfish as pf
from commands import READING, every_command, refused, run, write_table
from pufferfish.cli import main


@pytest.fixture
def public(tmp_path: Path) -> Path:
    return write_table(tmp_path / "public.csv", 1)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    return write_table(tmp_path / "private.csv", 2)


@pytest.fixture
def model(tmp_path: Path, public: Path) -> Path:
    path = tmp_path / "model.json"
    result = run("fit", public, *READING, "--output", path)
    assert result.exit_code == 0, result.output
    return path


def test_the_main_job(tmp_path: Path, private: Path, model: Path) -> None:
    output, plot = tmp_path / "release.json", tmp_path / "release.png"
    result = run(
        "release", private, *READING, "--model", model, "--epsilon", 1, "--valid", "--output", output, "--plot", plot
    )
    assert result.exit_code == 0, result.output
    found = pf.Release.from_json(output)
    assert found.query.labels == ["active", "rest"]
    assert found.data.records == 900
    assert found.data.subjects == 3
    assert found.mechanism.name == "propagation"
    assert found.warnings == []
    assert "public.csv" in found.theta.origin
    assert plot.stat().st_size > 1000
    for words in ("active", "95% probability", found.promise, "written:"):
        assert words in result.stdout


def test_the_error_that_is_allowed_gives_the_epsilon(
    tmp_path: Path, private: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, given = tmp_path / "release.json", ["--model", model, "--query", "histogram", "--accuracy", 0.15]
    assert run("release", private, *READING, *given, "--output", output).exit_code == 0
    found = pf.Release.from_json(output)
    assert found.accuracy(0.05) <= 0.15
    compared = run("compare", model, "--table", private, *READING, "--accuracy", 0.15).stdout
    assert f"{found.epsilon:.4g}" in next(line for line in compared.splitlines() if "LeakagePropagation" in line)
    drawn: list[Any] = []
    monkeypatch.setattr("pufferfish.cli.compare.draw_noise", lambda found: drawn.append(found))
    monkeypatch.setattr("pufferfish.cli.compare.save_figure", lambda *_: None)
    assert run("compare", model, "--length", 50, "--accuracy", 0.3, "--plot", tmp_path / "n.png").exit_code == 0
    for epsilon, rows in drawn[0].items():  # every mechanism at the ε where it is drawn
        assert {row.epsilon for row in rows if row.reason is None} <= {epsilon, None}
    sure = run("release", private, *READING, *given, "--alpha", 0.01, "--output", tmp_path / "sure.json")
    assert sure.exit_code == 0
    assert pf.Release.from_json(tmp_path / "sure.json").epsilon > found.epsilon
    once = ["--output", tmp_path / "other.json"]
    refused("release", private, *READING, *given, "--epsilon", 1, *once, says=["give one of --epsilon, --accuracy"])
    refused("release", private, *READING, "--model", model, *once, says=["give one of --epsilon, --accuracy"])
    refused("release", private, *READING, "--model", model, "--epsilon", 1, "--alpha", 0.1, *once, says=["--alpha"])
    refused("release", private, *READING, *given[:-1], 0, *once, says=["accuracy is 0"])
    refused("compare", model, "--length", 10, says=["give --epsilon, or --accuracy"])
    refused("compare", model, "--length", 10, "--epsilon", 1, "--alpha", 0.1, says=["--alpha"])


def test_fit_says_that_the_model_is_public(tmp_path: Path, public: Path) -> None:
    result = run("fit", public, *READING, "--output", tmp_path / "m.json")
    assert "public" in result.stdout
    record = json.loads((tmp_path / "m.json").read_text())
    assert record["origin"].startswith("fitted to public data on 20")
    sequences = pf.read_sequences(public, "activity", subject="id", time="minute", max_gap="10min")
    expected = sequences.transitions / sequences.transitions.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(record["chains"][0]["transition_matrix"], expected)


def test_releasing_the_table_the_model_was_fitted_to_is_called_no_guarantee(
    tmp_path: Path, public: Path, model: Path
) -> None:
    output = tmp_path / "release.json"
    result = run("release", public, *READING, "--model", model, "--epsilon", 1, "--output", output)
    assert result.exit_code == 0
    assert "not as a guarantee" in result.stderr
    assert "not as a guarantee" in pf.Release.from_json(output).warnings[0]


def test_compare_shows_every_mechanism_and_why_one_does_not_apply(model: Path, private: Path) -> None:
    by_length = run("compare", model, "--length", 300, "--length", "300,300", "--epsilon", 1)
    by_table = run("compare", model, "--table", private, *READING, "--epsilon", 1)
    for result in (by_length, by_table):
        assert result.exit_code == 0, result.output
        assert "EntryDP: records are correlated under theta[0]" in result.stdout
        for title in ("EntryDP", "GroupDP", "MQMApprox", "MQMExact"):
            assert title in result.stdout
        group = next(line for line in result.stdout.splitlines() if line.startswith("  GroupDP"))
        assert float(group.split()[1]) == pytest.approx(2 * 300 / 900, rel=1e-5)


@pytest.mark.parametrize(
    "query", ["histogram-counts", "count:active", "frequency:active", "sum:0,1", "mean:active=1,rest=0.5"]
)
@pytest.mark.parametrize("mechanism", ["group-dp", "mqm-exact", "mqm-approx"])
def test_every_query_and_mechanism(tmp_path: Path, private: Path, model: Path, query: str, mechanism: str) -> None:
    output = tmp_path / "release.json"
    arguments = ["--model", model, "--query", query, "--mechanism", mechanism, "--epsilon", 2, "--output", output]
    result = run("release", private, *READING, *arguments)
    assert result.exit_code == 0, result.output
    found = pf.Release.from_json(output)
    assert found.query.kind == query.partition(":")[0]
    assert found.mechanism.name == mechanism


def test_bins_travel_with_the_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("public", "private"):
        rows = "\n".join(str(v) for v in rng.integers(0, 700, 500))
        (tmp_path / f"{name}.csv").write_text(f"watts\n{rows}\n")
    path, output = tmp_path / "model.json", tmp_path / "release.json"
    assert (
        run("fit", tmp_path / "public.csv", "--state", "watts", "--bins", "0,200,...,600", "--output", path).exit_code
        == 0
    )
    release = ["release", tmp_path / "private.csv", "--state", "watts", "--model", path, "--epsilon", 1]
    assert run(*release, "--output", output).exit_code == 0
    assert pf.Release.from_json(output).query.labels == ["<200", "200-400", ">=400"]
    output.unlink()
    refused(*release, "--bins", "0,100,...,300", "--output", output, says=["bins"])
    assert not output.exists()


def test_the_assumption_of_independent_gaps_is_printed(tmp_path: Path, private: Path, model: Path) -> None:
    output = tmp_path / "release.json"
    arguments = ["--model", model, "--epsilon", 1, "--gaps", "independent", "--output", output]
    result = run("release", private, *READING, *arguments)
    assert "gaps='independent'" in result.stdout
    assert any("gaps='independent'" in text for text in pf.Release.from_json(output).assumptions)


BAD_OPTIONS = {
    "epsilon 0": (["--epsilon", "0"], ["epsilon is 0", "positive"]),
    "epsilon negative": (["--epsilon", "-1"], ["epsilon is -1"]),
    "epsilon nan": (["--epsilon", "nan"], ["epsilon is nan"]),
    "epsilon inf": (["--epsilon", "inf"], ["epsilon is inf"]),
    "unknown column": (["--state", "activty"], ["'activty' not found", "Did you mean 'activity'"]),
    "unknown query": (["--query", "median"], ["query 'median' is not understood"]),
    "unknown query state": (["--query", "count:walking"], ["'walking'", "active, rest"]),
    "count of all": (["--query", "count:active,rest"], ["public number of records"]),
    "absent model": (["--model", "absent.json"], ["cannot read absent.json"]),
    "absent output folder": (["--output", "absent/release.json"], ["cannot write", "there is no folder absent"]),
    "picture kind": (["--plot", "release.xyz"], [".png"]),
    "picture folder": (["--plot", "absent/release.png"], ["there is no folder absent"]),
    "filter on the state": (["--where", "activity == 'rest'"], ["activity"]),
    "bad filter": (["--where", "awake +"], ["awake +"]),
    "bad gap": (["--max-gap", "soon"], ["soon"]),
    "entry-dp on correlated records": (["--mechanism", "entry-dp"], ["EntryDP does not apply", "correlated"]),
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


HEAD = "id,minute,activity\n"
BAD_TABLES = {
    "empty": ("", []),
    "header only": (HEAD, []),
    "unsorted": (HEAD + "A,2024-05-01 08:02,rest\nA,2024-05-01 08:01,rest\n", ["A", "sort"]),
    "duplicate": (HEAD + "A,2024-05-01 08:01,rest\nA,2024-05-01 08:01,rest\n", ["A", "duplicate"]),
    "unparsable": (HEAD + "A,2024-05-01 08:01,rest\nA,yesterday,rest\n", ["yesterday"]),
    "one row each": (HEAD + "A,2024-05-01 08:01,rest\nB,2024-05-01 08:01,rest\n", ["one record"]),
    "unknown state": (HEAD + "A,2024-05-01 08:01,rest\nA,2024-05-01 08:02,asleep\n", ["asleep", "active"]),
    "all missing": (HEAD + "A,2024-05-01 08:01,\nA,2024-05-01 08:02,\n", []),
}


@pytest.mark.parametrize("case", BAD_TABLES, ids=str)
def test_bad_tables_are_one_line_and_nothing_is_written(tmp_path: Path, model: Path, case: str) -> None:
    content, says = BAD_TABLES[case]
    table, output = tmp_path / "bad.csv", tmp_path / "release.json"
    table.write_text(content)
    refused("release", table, *READING, "--model", model, "--epsilon", 1, "--output", output, says=says)
    assert not output.exists()


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
    "truncated": (model_record([[0.9, 0.1], [0.4, 0.6]])[:60], ["damaged or cut short"]),
    "another version": (model_record([[0.9, 0.1], [0.4, 0.6]], version=7), ["version 7"]),
    "not stochastic": (model_record([[0.9, 0.2], [0.4, 0.6]]), ["transition_matrix[0] sums to 1.1", "transpose"]),
    "negative": (model_record([[1.1, -0.1], [0.4, 0.6]]), ["transition_matrix[0][1] is -0.1"]),
    "NaN": (model_record([[float("nan"), 0.1], [0.4, 0.6]]), ["it is not JSON"]),
    "reducible": (model_record([[1, 0], [0, 1]]), ["reducible", "rest", "active"]),
    "transient": (model_record([[0.5, 0.5], [0, 1]]), ["never returns to state {rest}"]),
    "no secret": (model_record([[1, 0], [0, 1]], [1, 0]), ["no secret to protect"]),
}


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
    refused(*fit, says=["no transition out of state 'c'", "smoothing"])
    assert not output.exists()
    assert run(*fit, "--smoothing", 1).exit_code == 0
    refused(*fit, "--smoothing", "-1", says=["smoothing is -1"])
    table.write_text("state\na\nb\nc\nc\n")
    refused(*fit, says=["never returns to state", "smoothing"])


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_spent(
    tmp_path: Path, private: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[object] = []
    module = sys.modules["pufferfish.release"]  # the attribute of that name is the function
    monkeypatch.setattr(module, "discrete_laplace_noise", lambda *a, **k: drawn.append(a))
    release = ["release", private, *READING, "--model", model, "--epsilon", 1]
    refused(*release, "--output", tmp_path, says=["it is a folder"])
    refused(*release, "--output", tmp_path / "r.json", "--plot", tmp_path / "r.json", says=[".png"])
    refused(*release, "--output", tmp_path / "r.png", "--plot", tmp_path / "r.png", says=["same file"])
    assert drawn == []


@pytest.mark.parametrize("name", sorted(every_command()))
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "Example:" in result.stdout
    assert f"pufferfish {name}" in result.stdout
    for parameter in every_command()[name].params:
        if isinstance(parameter, click.Option) and parameter.name != "help":
            assert parameter.help, f"{name} --{parameter.name} has no help"


@pytest.mark.program
def test_the_installed_program_runs_without_the_plot_extra(tmp_path: Path, private: Path, model: Path) -> None:
    """matplotlib is an extra: everything but --plot works without it, and --plot says what to install."""
    blocked = tmp_path / "blocked" / "matplotlib"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ImportError('not installed')\n")
    environment = os.environ | {"PYTHONPATH": str(blocked.parent)}
    output = tmp_path / "release.json"
    command = [sys.executable, "-m", "pufferfish", "release", str(private), *READING, "--model", str(model)]
    command += ["--mechanism", "group-dp", "--epsilon", "1", "--output", str(output)]
    plotted = subprocess.run(
        [*command, "--plot", str(tmp_path / "r.png")], env=environment, capture_output=True, text=True
    )
    assert plotted.returncode == 2
    assert plotted.stderr.strip() == "error: plots need matplotlib: pip install 'pufferfish-privacy[plot]'"
    assert not output.exists()
    assert subprocess.run(command, env=environment, capture_output=True).returncode == 0


def test_no_output_may_replace_what_is_read(tmp_path: Path, private: Path, public: Path, model: Path) -> None:
    release = ["release", private, *READING, "--model", model, "--epsilon", 1]
    before = {path: path.read_bytes() for path in (private, public, model)}
    refused(*release, "--output", private, says=["is the file to be read"])
    refused(*release, "--output", model, says=["is the file to be read"])
    refused(*release, "--output", tmp_path / "r.json", "--plot", model, says=["is the file to be read"])
    refused("fit", public, *READING, "--output", public, says=["is the file to be read"])
    link = tmp_path / "link.json"
    link.symlink_to(private)
    refused(*release, "--output", link, says=["is the file to be read"])
    assert {path: path.read_bytes() for path in before} == before


def test_the_record_of_an_earlier_release_is_kept(tmp_path: Path, private: Path, model: Path) -> None:
    output = tmp_path / "release.json"
    release = ["release", private, *READING, "--model", model, "--epsilon", 1, "--output", output]
    assert run(*release).exit_code == 0
    first = output.read_bytes()
    refused(*release, says=["exists", "--overwrite"])
    assert output.read_bytes() == first
    assert run(*release, "--overwrite").exit_code == 0
    assert output.read_bytes() != first


def test_devices_and_standard_output_are_no_files(private: Path, model: Path) -> None:
    release = ["release", private, *READING, "--model", model, "--epsilon", 1, "--overwrite"]
    refused(*release, "--output", "/dev/null", says=["device"])
    refused(*release, "--output", "-", says=["standard output"])
    refused(*release, "--output", "a" * 300 + ".json", says=["name too long"])
    assert Path("/dev/null").is_char_device()


def test_a_table_with_another_step_than_the_models_is_refused(tmp_path: Path, private: Path, model: Path) -> None:
    assert json.loads(model.read_text())["step"] == "1min"
    lines = private.read_text().splitlines()
    slow = tmp_path / "slow.csv"
    slow.write_text("\n".join([lines[0], *lines[1::5]]) + "\n")
    output = tmp_path / "release.json"
    release = ["release", slow, *READING, "--model", model, "--epsilon", 1, "--output", output]
    refused(*release, says=["transitions take 1min", "5min apart"])
    assert not output.exists()
    assert run(*release, "--step", "60s").exit_code == 0  # the user's word, in other words


def test_a_table_of_which_nobody_says_the_step_is_refused_where_the_model_has_one(
    tmp_path: Path, private: Path, model: Path
) -> None:
    output = tmp_path / "release.json"
    release = ["release", private, "--model", model, "--epsilon", 1, "--output", output, "--overwrite"]
    reading = ["--state", "activity", "--subject", "id"]
    unknown = ["transitions take 1min", "nothing says how far apart", "give --time, or give --step 1min"]
    refused(*release, *reading, says=unknown)
    refused("compare", model, "--epsilon", 1, "--table", private, *reading, says=unknown)
    budget = ["--budget", 1, "--table", private]
    refused("ledger", "create", tmp_path / "book.json", "--model", model, *budget, *reading, says=unknown)
    assert not output.exists()
    assert not (tmp_path / "book.json").exists()
    for told in (["--time", "minute"], ["--step", "60s"], [*READING[4:], "--gaps", "independent"]):
        assert run(*release, *reading, *told).exit_code == 0, told
    lines = private.read_text().splitlines()
    private.write_text("\n".join([lines[0], *lines[1::5]]) + "\n")
    for told in (["--time", "minute"], [*READING[4:], "--gaps", "independent"]):
        refused(*release, *reading, *told, says=["transitions take 1min", "5min apart", "give --step 1min"])
        assert run(*release, *reading, *told, "--step", "1min").exit_code == 0, told


def test_a_model_without_a_step_is_told_where_the_table_has_times(tmp_path: Path, private: Path, model: Path) -> None:
    """One line on standard error, before anything is spent; and the record keeps it."""
    record = json.loads(model.read_text())
    del record["step"]
    silent, output = tmp_path / "silent.json", tmp_path / "release.json"
    silent.write_text(json.dumps(record))
    told = "warning: The model does not say how long a step takes, so nobody checked that one step of it takes 1min"
    release = ["release", private, "--model", silent, "--epsilon", 1, "--output", output, "--overwrite"]
    book = ["--model", silent, "--budget", 1, "--table", private]
    for command in (
        [*release, *READING],
        ["compare", silent, "--epsilon", 1, "--table", private, *READING],
        ["ledger", "create", tmp_path / "book.json", *book, *READING],
    ):
        result = run(*command)
        assert result.exit_code == 0, result.output
        assert [told in line for line in result.stderr.splitlines() if line.startswith("warning: The model")] == [True]
    assert [w for w in json.loads(output.read_text())["warnings"] if w.startswith("The model does not say")]
    for fine in ([*READING, "--step", "1min"], ["--state", "activity", "--subject", "id"]):
        result = run(*release, *fine)
        assert result.exit_code == 0, result.output
        assert "how long a step takes" not in result.stderr
        assert not [w for w in json.loads(output.read_text())["warnings"] if "how long a step takes" in w]


def test_a_model_fitted_to_independent_stretches_remembers_its_step(tmp_path: Path, public: Path) -> None:
    output = tmp_path / "m.json"
    assert run("fit", public, *READING, "--gaps", "independent", "--output", output).exit_code == 0
    assert json.loads(output.read_text())["step"] == "1min"


def test_a_subject_column_that_makes_many_short_chains_is_told(tmp_path: Path, private: Path, model: Path) -> None:
    """One line on standard error, before anything is spent; and once, though the record keeps it too."""
    output = tmp_path / "release.json"
    wrong = ["--state", "activity", "--subject", "minute", "--step", "1min"]
    told = "warning: The table has 300 subjects (column 'minute'), half of them with at most 3 records"
    release = ["release", private, "--model", model, "--epsilon", 1, "--output", output]
    for command in (
        [*release, *wrong],
        ["compare", model, "--epsilon", 1, "--table", private, *wrong],
        ["fit", private, *wrong, "--smoothing", 1, "--output", tmp_path / "m.json"],
        ["ledger", "create", tmp_path / "book.json", "--model", model, "--budget", 1, "--table", private, *wrong],
    ):
        result = run(*command)
        assert result.exit_code == 0, result.output
        lines = [line for line in result.stderr.splitlines() if line.startswith("warning: The table has")]
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith(told)
    assert any(told.removeprefix("warning: ") in text for text in pf.Release.from_json(output).warnings)
    quiet = run(*release, "--overwrite", *READING)
    assert "warning" not in quiet.stderr


def test_a_fitted_model_reads_cells_that_are_numbers_and_words(tmp_path: Path) -> None:
    """Numbers with a missing value and a word among them, as spreadsheets write them."""
    table, model, output = tmp_path / "t.csv", tmp_path / "m.json", tmp_path / "r.json"
    table.write_text("state\n" + "1.0\n2.0\nunknown\n1\n007\n" * 20)
    fit = ["fit", table, "--state", "state", "--smoothing", 1, "--output", model]
    assert run(*fit).exit_code == 0
    release = ["release", table, "--state", "state", "--model", model, "--epsilon", 1, "--output", output]
    assert run(*release).exit_code == 0
    assert pf.Release.from_json(output).query.labels == ["007", "1", "2", "unknown"]


def test_fit_names_transitions_that_it_takes_as_impossible(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("state\na\nb\nc\na\na\n")
    fit = ["fit", table, "--state", "state", "--overwrite", "--output", tmp_path / "m.json"]
    assert "5 of 9 transitions were never seen" in run(*fit).stdout
    assert "never seen" not in run(*fit, "--smoothing", 1).stdout


def test_fit_that_fails_writes_nothing(tmp_path: Path) -> None:
    table, output = tmp_path / "t.csv", tmp_path / "m.json"
    table.write_text("state\na\nb\nc\nc\n")
    refused("fit", table, "--state", "state", "--smoothing", "1e-300", "--output", output, says=["below 1e-270"])
    assert not output.exists()


def test_states_with_commas_and_strange_characters(tmp_path: Path) -> None:
    table, path, output = tmp_path / "t.csv", tmp_path / "m.json", tmp_path / "r.json"
    names = ['"a,b"', "[bold]x", "\x1b[31mred", "$x^2$", "東京", "long" * 40]
    rng = np.random.default_rng(0)
    table.write_text("state\n" + "\n".join(names[i] for i in rng.integers(0, 6, 400)) + "\n")
    assert run("fit", table, "--state", "state", "--output", path).exit_code == 0
    release = ["release", table, "--state", "state", "--model", path, "--epsilon", 1, "--overwrite"]
    shown = run(*release, "--output", output, "--plot", tmp_path / "r.png")
    assert shown.exit_code == 0, shown.output
    assert "\x1b[31m" not in shown.output
    for name in ("a,b", "[bold]x", r"\x1b[31mred", "$x^2$", "long" * 40):
        assert name in shown.stdout
    assert run(*release, "--output", output, "--query", 'count:"a,b",[bold]x').exit_code == 0
    assert pf.Release.from_json(output).query.labels == ["a,b+[bold]x"]
    refused(*release, "--output", output, "--query", "mean:x=0,x=1", says=["two values"])


def test_a_promise_that_says_nothing_is_called_so(tmp_path: Path, private: Path, model: Path) -> None:
    release = ["release", private, *READING, "--model", model, "--overwrite", "--output", tmp_path / "r.json"]
    assert "next to nothing" in run(*release, "--epsilon", 1e6).stderr
    found = pf.Release.from_json(tmp_path / "r.json")
    assert "next to nothing" in found.warnings[0]
    assert "e^1e+06 times" in found.promise
    assert "next to nothing" not in run(*release, "--epsilon", 1).stderr


def test_numbers_are_never_cut(tmp_path: Path, private: Path, model: Path) -> None:
    compare = ["compare", str(model), "--length", "300", "--epsilon", "1"]
    narrow = CliRunner(env={"COLUMNS": "30"}).invoke(main, compare)
    wide = CliRunner(env={"COLUMNS": "300"}).invoke(main, compare)
    for result in (narrow, wide):
        assert "…" not in result.stdout
    without_seconds = [[line.split()[:-1] for line in r.stdout.splitlines() if "DP  " in line] for r in (narrow, wide)]
    assert without_seconds[0] == without_seconds[1] != []


def test_a_comparison_shows_what_applies_first_and_fits_the_terminal(model: Path) -> None:
    found = pf.compare(pf.read_model(model).theta, pf.Histogram(), 1.0, length=300)
    scales = [row.scale for row in found if row.reason is None]
    assert scales == sorted(scales)
    assert [row.reason is None for row in found] == [True] * len(scales) + [False] * (len(found) - len(scales))
    assert [row.title for row in found if row.recommended] == ["LeakagePropagation"]
    by_title = {row.title: row for row in found}
    for columns in (80, 120):
        result = CliRunner(env={"COLUMNS": str(columns)}).invoke(
            main, ["compare", str(model), "--length", "300", "--epsilon", "1"]
        )
        lines = result.stdout.splitlines()
        assert max(map(len, lines)) <= columns
        table = [line for line in lines if line[2:].split(" ")[0] in by_title]
        assert [line[2:].split()[0] for line in table] == [row.title for row in found if row.reason is None]
        marked = [line for line in table if line.startswith("* ")]
        assert len(marked) == 1
        assert marked[0].split()[1] == "LeakagePropagation"
        for line in table:
            row = by_title[line[2:].split()[0]]
            numbers = line[2:].split()
            assert float(numbers[1]) == pytest.approx(row.scale, rel=1e-5)
            assert float(numbers[2]) == pytest.approx(row.accuracy, rel=1e-2)
        assert "(share of records)" in " ".join(result.stdout.split())
        rest = lines[lines.index("does not apply:") :]
        assert [line[2:].split(":")[0] for line in rest if line[:2] == "  " and line[2] != " "] == [
            row.title for row in found if row.reason is not None
        ]


def test_python_prints_the_same_comparison(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    result = run("compare", model, "--length", 300, "--epsilon", 1, "--query", "count:active")
    printed = str(pf.compare(pf.read_model(model).theta, pf.Count("active"), 1.0, length=300))

    def plain(text: str) -> list[str]:
        return [re.sub(r"\d+\.\d\d\b(?=  for|  rec|$)", "", line) for line in text.strip().splitlines()]  # no seconds

    assert plain(result.stdout) == plain(printed)
    assert "(records)" in printed


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


def test_compare_says_how_near_the_least_possible_each_mechanism_is(model: Path) -> None:
    result = run("compare", model, "--length", 300, "--epsilon", 1)
    assert result.exit_code == 0, result.output
    assert "/ least" in result.stdout
    lines = [line[2:].split() for line in result.stdout.splitlines() if line[2:5] in ("Gro", "MQM", "Lea")]
    rows = {line[0]: line for line in lines}
    assert float(rows["LeakagePropagation"][3]) < 1.05 < float(rows["MQMExact"][3]) < float(rows["GroupDP"][3])
    assert "below which no Laplace noise gives this guarantee" in " ".join(result.stdout.split())


def test_compare_draws_the_noise(tmp_path: Path, model: Path) -> None:
    picture = tmp_path / "noise.svg"
    result = run("compare", model, "--length", 300, "--epsilon", 1, "--plot", picture)
    assert result.exit_code == 0, result.output
    drawn = picture.read_text()
    assert "<svg" in drawn
    assert len(drawn) > 10_000
    bad = run("compare", model, "--length", 300, "--epsilon", 1, "--plot", tmp_path / "noise.doc")
    assert (bad.exit_code, bad.stderr.count("\n")) == (2, 1)
    assert "expected a name that ends in" in bad.stderr


def test_options_before_a_command_are_refused_in_one_line() -> None:
    result = CliRunner().invoke(main, ["--versionn"])
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert line.startswith("error: No such option '--versionn'. Did you mean '--version'?; see ")


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
        ("", "--query is empty"),
        (" ", "--query is empty"),
        ("histogram:", "takes nothing"),
        ("count:rest,", "empty part"),
        ("count:,rest", "empty part"),
        ("frequency:rest,,active", "empty part"),
        ("count:rest,rest", "'rest' twice"),
        ("frequency:rest,rest", "'rest' twice"),
        ("sum:1,0,", "empty part"),
        ("histogram-counts:", "takes nothing"),
        ("count:", "names no state"),
        ("count: ", "names no state"),
    ],
)
def test_odd_parts_of_a_query_are_refused(model: Path, query: str, says: str) -> None:
    refused("compare", model, "--length", 5, "--epsilon", 1, "--query", query, says=[says])


@pytest.mark.program
@pytest.mark.skipif(sys.platform == "win32", reason="streams closed by a shell of Unix")
def test_a_closed_standard_output_is_no_traceback(tmp_path: Path, private: Path, model: Path) -> None:
    """As a closed pipe: what was made is written, and exit code 1 says that nobody could read what was printed."""
    output = tmp_path / "release.json"
    command = [sys.executable, "-m", "pufferfish", "release", str(private), *READING, "--model", str(model)]
    command += ["--mechanism", "group-dp", "--epsilon", "1", "--output", str(output)]
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True)
    assert (closed.returncode, closed.stderr) == (1, "")
    assert pf.Release.from_json(output).epsilon == 1
    both = ["sh", "-c", '"$@" --overwrite >&- 2>&-', "sh", *command]
    assert subprocess.run(both, capture_output=True).returncode == 1


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
    assert run("fit", public, *READING, "--smoothing", "1e15", "--output", tmp_path / "new.json").exit_code == 0


def test_the_best_noise_and_quantiles(tmp_path: Path) -> None:
    """Bins of a number: quantiles with their intervals, by noise of the best shape, in a release and a comparison."""
    rng, level, lines = np.random.default_rng(3), 100.0, ["t,watts"]
    for t in range(1500):
        level = float(np.clip(level + rng.normal(0, 60), 0, 399))
        lines.append(f"{t},{level:.1f}")
    (tmp_path / "public.csv").write_text("\n".join(lines[:1] + lines[1:1000]) + "\n")
    table = tmp_path / "private.csv"
    table.write_text("\n".join(lines[:1] + lines[600:]) + "\n")
    reading = ["--state", "watts", "--bins", "0,100,...,400"]
    model, output = tmp_path / "model.json", tmp_path / "release.json"
    assert run("fit", tmp_path / "public.csv", *reading, "--smoothing", 0.01, "--output", model).exit_code == 0
    asked = ["--model", model, "--epsilon", 1, "--query", "quantiles:.25,.5", "--noise", "best"]
    result = run("release", table, *reading, *asked, "--output", output, "--plot", tmp_path / "release.png")
    assert result.exit_code == 0, result.output
    found = pf.Release.from_json(output)
    assert found.noise.measurements is not None
    assert found.quantiles is not None
    assert [quantile.share for quantile in found.quantiles] == [0.25, 0.5]
    for words in ("quantile 0.25: ", "quantile 0.5: ", "counts, from which all 3 values follow"):
        assert words in result.stdout
    compared = run("compare", model, "--length", 900, "--epsilon", 1, "--query", "cdf-counts", "--noise", "best")
    assert compared.exit_code == 0, compared.output
    assert "LeakagePropagation, best" in compared.stdout
    assert "L1 error" in compared.stdout
    refused("compare", model, "--length", 9, "--epsilon", 1, "--query", "quantiles", says=["names no quantile"])
    refused("compare", model, "--length", 9, "--epsilon", 1, "--query", "quantiles:1.5", says=["1.5"])
    refused("compare", model, "--length", 9, "--epsilon", 1, "--query", "cdf:1", says=["takes nothing after it"])
    law = ["--mechanism", "wasserstein", "--model", model, "--epsilon", 1, "--query", "histogram", "--noise", "best"]
    refused("release", table, *reading, *law, "--output", tmp_path / "no.json", says=["one query with one scale"])
