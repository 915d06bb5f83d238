"""The command line: the main job, and what its output says."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import pufferfish as pf
from commands import READING, every_command, refused, run, write_table
from pufferfish.cli import main


def test_the_main_job(tmp_path: Path, private: Path, model: Path) -> None:
    output, plot = tmp_path / "release.json", tmp_path / "release.png"
    result = run(
        "release", private, *READING, "--model", model, "--epsilon", 1, "--valid", "--output", output, "--plot", plot
    )
    assert result.exit_code == 0, result.output
    found = pf.Release.from_json(output)
    assert found.query.labels == ["active", "rest"]
    assert found.data.records == 360
    assert found.data.subjects == 3
    assert found.mechanism.name == "propagation"
    assert found.warnings == []
    assert "public.csv" in found.theta.origin
    assert plot.stat().st_size > 1000
    for words in ("active", "95% probability", found.promise, "written:"):
        assert words in result.stdout


@pytest.mark.slow
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
    monkeypatch.setattr("pufferfish.cli.compare.draw_noise", lambda found, *_: drawn.append(found))
    monkeypatch.setattr("pufferfish.cli.compare.save_figure", lambda *_: None)
    assert run("compare", model, "--length", 20, "--accuracy", 0.6, "--plot", tmp_path / "n.png").exit_code == 0
    places = [[row.epsilon for row in curve] for curve in drawn[0]]
    assert len(places) > 3
    assert all(each == places[0] and len(each) == 7 for each in places), "every mechanism at the ε where it is drawn"
    sure = run("release", private, *READING, *given, "--alpha", 0.01, "--output", tmp_path / "sure.json")
    assert sure.exit_code == 0
    assert pf.Release.from_json(tmp_path / "sure.json").epsilon > found.epsilon
    once = ["--output", tmp_path / "other.json"]
    both = "--epsilon and --accuracy are given: give one of --epsilon"
    refused("release", private, *READING, *given, "--epsilon", 1, *once, says=[both])
    refused("release", private, *READING, "--model", model, *once, says=["give one of --epsilon and --accuracy"])
    refused("release", private, *READING, "--model", model, "--epsilon", 1, "--alpha", 0.1, *once, says=["--alpha"])
    refused("release", private, *READING, *given[:-1], 0, *once, says=["accuracy is 0"])
    refused("compare", model, "--length", 10, says=["give --epsilon, or --accuracy"])
    refused("compare", model, "--length", 10, "--epsilon", 1, "--alpha", 0.1, says=["--alpha"])
    much = ["release", private, *READING, "--model", model, *once, "--accuracy", 1e-4, "--noise", "equal"]
    refused(*much, says=["means ε = ", "above the limit of 10", "--max-epsilon"])
    refused(*much, "--max-epsilon", 11, says=["above the limit of 11"])
    refused(*much, "--max-epsilon", 0, says=["epsilon is 0"])
    assert not (tmp_path / "other.json").exists()
    meant = run(*much, "--max-epsilon", 1e4)
    assert meant.exit_code == 0, meant.output
    assert "The noise is exactly 0 with probability" in meant.stderr


def test_what_must_be_known_first_is_said_before_noise_is_drawn(
    tmp_path: Path, private: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warnings, and the ε that an accuracy takes: the program is killed when it begins to draw, and has said them."""

    @contextmanager
    def killed(_: str) -> Generator[None]:
        raise SystemExit(9)
        yield

    monkeypatch.setattr("pufferfish.cli.release.until_done", killed)
    fitted, output = tmp_path / "fitted.json", tmp_path / "r.json"
    assert run("fit", private, *READING, "--output", fitted).exit_code == 0
    asked = ["release", private, *READING, "--model", fitted, "--accuracy", 0.15]
    refused(*asked, "--output", output, says=["the model was fitted to this very table", "give --accept public"])
    refused(*asked, "--dry-run", says=["the model was fitted to this very table"])
    early = run(*asked, "--output", output, "--accept", "public")
    assert early.exit_code == 9, early.output
    assert not output.exists()
    assert "The model was fitted to this very table" in early.stderr
    assert "error of at most 0.15 with 95% probability needs ε = " in early.stdout
    without = [*["release", private, "--state", "activity", "--subject", "id", "--time", "minute"], "--model", fitted]
    without += ["--accept", "public"]
    loose = ["the table is read without --max-gap", "Give --max-gap 1min; if the times are wrong", "without --time"]
    for stated in ((), ("--step", "1min")):
        refused(*without, *stated, "--epsilon", 5, "--output", output, says=loose)
    assert not output.exists()


def test_times_of_which_nobody_knows_whether_some_are_missing_are_told(tmp_path: Path, private: Path) -> None:
    times = ["--state", "activity", "--subject", "id", "--time", "minute"]
    fitted = run("fit", private, *times, "--smoothing", 1, "--output", tmp_path / "loose.json")
    assert "The table is read without --max-gap" in fitted.stderr
    assert "read without" not in run("fit", private, *READING, "--output", tmp_path / "m.json").stderr
    other = write_table(tmp_path / "other.csv", 7)
    release = ["release", other, *times, "--model", tmp_path / "loose.json", "--epsilon", 5]
    told = run(*release, "--step", "1min", "--output", tmp_path / "r.json")
    assert told.exit_code == 0, told.output
    assert "If records are missing, more leaks" in told.stderr
    assert any("If records are missing" in text for text in pf.Release.from_json(tmp_path / "r.json").warnings)


def test_fit_says_that_the_model_is_public(tmp_path: Path, public: Path) -> None:
    result = run("fit", public, *READING, "--output", tmp_path / "m.json")
    assert "public" in result.stdout
    record = json.loads((tmp_path / "m.json").read_text())
    assert record["origin"].startswith("fitted to public data on 20")
    sequences = pf.read_sequences(public, "activity", subject="id", time="minute", max_gap="1min")
    expected = pf.fit_chain(sequences).transition_matrix
    np.testing.assert_allclose(record["chains"][0]["transition_matrix"], expected)


def test_releasing_the_table_the_model_was_fitted_to_is_called_no_guarantee(
    tmp_path: Path, public: Path, model: Path
) -> None:
    output = tmp_path / "release.json"
    release = ["release", public, *READING, "--model", model, "--epsilon", 1, "--output", output]
    refused(*release, says=["no privacy guarantee"])
    assert not output.exists()
    result = run(*release, "--accept", "public")
    assert result.exit_code == 0
    assert "without a guarantee" in result.stderr
    assert "without a guarantee" in pf.Release.from_json(output).warnings[0]


def test_compare_asks_only_the_mechanisms_that_are_named(model: Path) -> None:
    compare = ("compare", model, "--length", 40, "--epsilon", 1, "--mechanisms")
    found = run(*compare, "mqm-exact, propagation")
    assert found.exit_code == 0, found.output
    assert "* LeakagePropagation" in found.stdout
    assert "MQMExact" in found.stdout
    assert not any(other in found.stdout for other in ("ExactLaplace", "Wasserstein", "EntryDP", "does not apply"))
    refused(*compare, "propagaton", says=["no mechanism 'propagaton'. Did you mean 'propagation'?", "wasserstein"])
    refused(*compare, "gk16,gk16", says=["names 'gk16' twice"])
    refused(*compare, "gk16,", says=["empty part"])


def test_noise_has_the_best_shape_by_default_where_one_is_searched(tmp_path: Path, private: Path, model: Path) -> None:
    def released(query: str, *more: object) -> pf.Release:
        output = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        asked = ["--model", model, "--query", query, "--epsilon", 2, *more, "--output", output]
        assert run("release", private, *READING, *asked).exit_code == 0
        return pf.Release.from_json(output)

    best, equal = released("histogram"), released("histogram", "--noise", "equal")
    assert best.strategy is not None
    assert equal.strategy is None
    assert best.accuracy_95.each < equal.accuracy_95.each
    for query, more in (("transitions", ()), ("count:active", ()), ("histogram", ("--once",))):
        assert released(query, *more).strategy is None
    compared = run("compare", model, "--table", private, *READING, "--epsilon", 2).stdout
    line = next(line for line in compared.splitlines() if line.startswith("* "))
    assert line.startswith("* LeakagePropagation, best")
    assert f"{best.scale:.6g}" in line


def test_compare_shows_every_mechanism_and_why_one_does_not_apply(model: Path, private: Path) -> None:
    by_length = run("compare", model, "--length", 300, "--length", "300, 300", "--epsilon", 1)
    by_table = run("compare", model, "--table", private, *READING, "--epsilon", 1)
    for result in (by_length, by_table):
        assert result.exit_code == 0, result.output
        assert "EntryDP: records are correlated under theta[0]" in result.stdout
        for title in ("EntryDP", "GroupDP", "MQMApprox", "MQMExact"):
            assert title in result.stdout
        group = next(line for line in result.stdout.splitlines() if line.startswith("  GroupDP  "))
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


@pytest.mark.parametrize("name", sorted(every_command()))
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert "Example:" in result.stdout
    assert f"pufferfish {name}" in result.stdout
    for parameter in every_command()[name].params:
        if isinstance(parameter, click.Option) and parameter.name != "help":
            assert parameter.help, f"{name} --{parameter.name} has no help"


@pytest.mark.slow
@pytest.mark.program
def test_the_installed_program_runs_without_the_plot_extra(tmp_path: Path, private: Path, model: Path) -> None:
    """matplotlib is an extra: everything but --plot works without it, and --plot says what to install."""
    blocked = tmp_path / "blocked" / "matplotlib"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ImportError('not installed')\n")
    environment = os.environ | {"PYTHONPATH": str(blocked.parent)}
    output = tmp_path / "release.json"
    command = [sys.executable, "-m", "pufferfish", "release", str(private), *READING, "--model", str(model)]
    command += ["--mechanism", "group-dp", "--epsilon", "1", "--accept", "noise", "--output", str(output)]
    plotted = subprocess.run(
        [*command, "--plot", str(tmp_path / "r.png")], env=environment, capture_output=True, text=True
    )
    assert plotted.returncode == 2
    assert plotted.stderr.strip() == "error: plots need matplotlib: pip install 'pufferfish-privacy[plot]'"
    assert not output.exists()
    assert subprocess.run(command, env=environment, capture_output=True).returncode == 0


def test_a_table_with_another_step_than_the_models_is_refused(tmp_path: Path, private: Path, model: Path) -> None:
    assert json.loads(model.read_text())["step"] == "1min"
    lines = private.read_text().splitlines()
    slow = tmp_path / "slow.csv"
    slow.write_text("\n".join([lines[0], *lines[1::5]]) + "\n")
    output = tmp_path / "release.json"
    release = ["release", slow, "--model", model, "--epsilon", 1, "--output", output]
    longer = [*READING[:-1], "5min"]
    refused(*release, *longer, says=["step of the model takes 1min", "5min apart"])
    stated = ["--step", "60s"]  # the user's word, in other words
    too_far = (
        "--max-gap is 5min and a step of the model takes 1min, so records up to 5min apart would count as one step"
    )
    refused(*release, *longer, *stated, says=[too_far, "give --max-gap 1min"])
    refused("fit", slow, *longer, *stated, "--output", output, says=["--max-gap is 5min and a step takes 1min"])
    assert not output.exists()
    assert run(*release, "--state", "activity", "--subject", "id", *stated).exit_code == 0


def test_a_table_of_which_nobody_says_the_step_is_refused_where_the_model_has_one(
    tmp_path: Path, private: Path, model: Path
) -> None:
    output = tmp_path / "release.json"
    release = ["release", private, "--model", model, "--epsilon", 1, "--output", output, "--overwrite"]
    reading = ["--state", "activity", "--subject", "id"]
    unknown = [
        "step of the model takes 1min",
        "the time between the table's records is unknown",
        "give --time, or give --step 1min",
    ]
    refused(*release, *reading, says=unknown)
    refused("compare", model, "--epsilon", 1, "--table", private, *reading, says=unknown)
    budget = ["--budget", 1, "--table", private]
    refused("ledger", "create", tmp_path / "book.json", "--model", model, *budget, *reading, says=unknown)
    assert not output.exists()
    assert not (tmp_path / "book.json").exists()
    for told in (["--step", "60s"], [*READING[4:], "--gaps", "independent"]):
        assert run(*release, *reading, *told).exit_code == 0, told
    lines = private.read_text().splitlines()
    private.write_text("\n".join([lines[0], *lines[1::5]]) + "\n")
    for told in ([*READING[4:-1], "5min"], [*READING[4:-1], "5min", "--gaps", "independent"]):
        stated = "if the times are wrong, give --step 1min without --time and --max-gap"
        refused(*release, *reading, *told, says=["step of the model takes 1min", "5min apart", stated])
    assert run(*release, *reading, "--step", "1min").exit_code == 0


def test_a_model_without_a_step_is_told_where_the_table_has_times(tmp_path: Path, private: Path, model: Path) -> None:
    """One line on standard error, before anything is spent; and the record keeps it."""
    record = json.loads(model.read_text())
    del record["step"]
    silent, output = tmp_path / "silent.json", tmp_path / "release.json"
    silent.write_text(json.dumps(record))
    told = "warning: The model does not say how long a step takes, so it was not checked that a step takes 1min"
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
        assert "or made in Python by Model.fitted(theta, data) or Model(" in result.stderr
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
    told = "warning: The table has 120 subjects (column 'minute'), half of them with at most 3 records"
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


def test_what_is_replaced_is_spent_nevertheless(tmp_path: Path, private: Path, model: Path) -> None:
    """Two releases of the same records are out, though one file is there; a picture is none."""
    output, picture = tmp_path / "release.json", tmp_path / "release.svg"
    release = ["release", private, *READING, "--model", model, "--epsilon", 1, "--overwrite", "--output", output]
    told = "the old file was replaced, but its privacy budget stays spent"
    assert told not in run(*release, "--plot", picture).stdout
    assert told in run(*release, "--plot", picture).stdout
    output.unlink()
    assert told not in run(*release, "--plot", picture).stdout


def test_a_file_of_another_kind_is_said_to_be_what_it_is(tmp_path: Path, private: Path, model: Path) -> None:
    output = tmp_path / "release.json"
    release = ["release", private, *READING, "--epsilon", 1, "--output", output]
    assert run(*release, "--model", model).exit_code == 0
    says = ["release.json is not a pufferfish-model file: this is a pufferfish-release file"]
    refused("compare", output, "--epsilon", 1, "--length", 10, says=says)
    refused("verify", model, says=["model.json is not a pufferfish-release file: this is a pufferfish-model file"])
    output.write_text('{"format": "pufferfish-<script>"}')
    refused("show", output, says=['expected "format": "pufferfish-release" at its top'])


def test_a_fitted_model_reads_cells_that_are_numbers_and_words(tmp_path: Path) -> None:
    """Numbers with a missing value and a word among them, as spreadsheets write them."""
    table, model, output = tmp_path / "t.csv", tmp_path / "m.json", tmp_path / "r.json"
    table.write_text("state\n" + "1.0\n2.0\nunknown\n1\n007\n" * 20)
    fit = ["fit", table, "--state", "state", "--accept", "smoothing", "--output", model]
    assert run(*fit).exit_code == 0
    release = ["release", table, "--state", "state", "--model", model, "--epsilon", 1, "--output", output]
    assert run(*release, "--accept", "public").exit_code == 0
    assert pf.Release.from_json(output).query.labels == ["007", "1", "2", "unknown"]


def test_fit_names_transitions_that_it_takes_as_impossible(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("state\na\nb\nc\na\na\n")
    fit = ["fit", table, "--state", "state", "--overwrite", "--output", tmp_path / "m.json"]
    assert "5 of 9 transitions never occur" in run(*fit, "--smoothing", 0).stdout
    assert "never seen" not in run(*fit, "--accept", "smoothing").stdout


def test_states_with_commas_and_strange_characters(tmp_path: Path) -> None:
    table, path, output = tmp_path / "t.csv", tmp_path / "m.json", tmp_path / "r.json"
    names = ['"a,b"', "[bold]x", "\x1b[31mred", "$x^2$", "東京", "long" * 40]
    rng = np.random.default_rng(0)
    table.write_text("state\n" + "\n".join(names[i] for i in rng.integers(0, 6, 400)) + "\n")
    assert run("fit", table, "--state", "state", "--output", path).exit_code == 0
    release = ["release", table, "--state", "state", "--model", path, "--epsilon", 1, "--overwrite"]
    release += ["--accept", "public"]
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
    assert "hardly by noise" in run(*release, "--epsilon", 1e6, "--max-epsilon", 1e6).stderr
    found = pf.Release.from_json(tmp_path / "r.json")
    assert found.warnings[0].startswith("Epsilon is 1,000,000: the odds of two values")
    assert "hardly by noise" in found.warnings[1]
    assert "e^1,000,000 times" in found.promise
    assert "hardly by noise" not in run(*release, "--epsilon", 1).stderr


def test_numbers_are_never_cut(tmp_path: Path, private: Path, model: Path) -> None:
    compare = ["compare", str(model), "--length", "40", "--epsilon", "1"]
    narrow = CliRunner(env={"COLUMNS": "30"}).invoke(main, compare)
    wide = CliRunner(env={"COLUMNS": "300"}).invoke(main, compare)
    for result in (narrow, wide):
        assert "…" not in result.stdout
    without_seconds = [[line.split()[:-1] for line in r.stdout.splitlines() if "DP  " in line] for r in (narrow, wide)]
    assert without_seconds[0] == without_seconds[1] != []


def test_a_comparison_shows_what_applies_first_and_fits_the_terminal(model: Path) -> None:
    found = pf.compare(pf.read_model(model).theta, pf.Histogram(), 1.0, length=40)
    scales = [row.scale for row in found if row.reason is None]
    assert scales == sorted(scales)
    assert [row.reason is None for row in found] == [True] * len(scales) + [False] * (len(found) - len(scales))
    assert [row.title for row in found if row.recommended] == ["LeakagePropagation"]
    by_title = {row.title: row for row in found}
    for columns in (80, 120):
        result = CliRunner(env={"COLUMNS": str(columns)}).invoke(
            main, ["compare", str(model), "--length", "40", "--epsilon", "1", "--noise", "equal"]
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
    result = run("compare", model, "--length", 40, "--epsilon", 1, "--query", "count:active")
    printed = str(pf.compare(pf.read_model(model).theta, pf.Count("active"), 1.0, length=40))

    def plain(text: str) -> list[str]:
        return [re.sub(r"\d+\.\d\d\b(?=  for|  rec|$)", "", line) for line in text.strip().splitlines()]  # no seconds

    assert plain(result.stdout) == plain(printed)
    assert "(records)" in printed


def test_compare_says_how_near_the_least_possible_each_mechanism_is(model: Path) -> None:
    result = run("compare", model, "--length", 40, "--epsilon", 1)
    assert result.exit_code == 0, result.output
    assert "/ least" in result.stdout
    lines = [line[2:].split() for line in result.stdout.splitlines() if line[2:5] in ("Gro", "MQM", "Lea")]
    rows = {line[0]: line for line in lines}
    assert float(rows["LeakagePropagation"][3]) < 1.05 < float(rows["MQMExact"][3]) < float(rows["GroupDP"][3])
    assert "below which no Laplace noise gives this guarantee" in " ".join(result.stdout.split())


def test_compare_draws_the_noise(tmp_path: Path, model: Path) -> None:
    picture = tmp_path / "noise.svg"
    result = run("compare", model, "--length", 20, "--epsilon", 1, "--plot", picture)
    assert result.exit_code == 0, result.output
    drawn = picture.read_text()
    assert "<svg" in drawn
    assert len(drawn) > 10_000
    bad = run("compare", model, "--length", 40, "--epsilon", 1, "--plot", tmp_path / "noise.doc")
    assert (bad.exit_code, bad.stderr.count("\n")) == (2, 1)
    assert "expected a name that ends in" in bad.stderr


def test_the_order_of_states_that_are_no_bins_is_said(tmp_path: Path, private: Path, model: Path) -> None:
    told = "states in the order of the model, lowest first: active, rest\n"
    output = tmp_path / "r.json"
    cheap = ["--mechanism", "group-dp", "--accept", "noise"]
    for query, says in (("cdf", True), ("quantiles:.5", True), ("histogram", False)):
        asked = ["--epsilon", 1, "--query", query]
        done = run("release", private, *READING, "--model", model, *asked, *cheap, "--output", output, "--overwrite")
        assert done.exit_code == 0, done.output
        assert (told in done.stdout) == says
        assert (told in run("compare", model, "--length", 20, *asked).stdout) == says


def test_the_best_noise_and_quantiles(tmp_path: Path) -> None:
    """Bins of a number: quantiles with their intervals, by noise of the best shape, in a release and a comparison."""
    rng, level, lines = np.random.default_rng(3), 100.0, ["t,watts"]
    for t in range(450):
        level = float(np.clip(level + rng.normal(0, 60), 0, 399))
        lines.append(f"{t},{level:.1f}")
    (tmp_path / "public.csv").write_text("\n".join(lines[:1] + lines[1:300]) + "\n")
    table = tmp_path / "private.csv"
    table.write_text("\n".join(lines[:1] + lines[200:]) + "\n")
    reading = ["--state", "watts", "--bins", "0,100,...,400"]
    model, output = tmp_path / "model.json", tmp_path / "release.json"
    assert run("fit", tmp_path / "public.csv", *reading, "--smoothing", 0.01, "--output", model).exit_code == 0
    asked = ["--model", model, "--epsilon", 1, "--query", "quantiles:.25,.5", "--noise", "best", "--accept", "noise"]
    result = run("release", table, *reading, *asked, "--output", output, "--plot", tmp_path / "release.png")
    assert result.exit_code == 0, result.output
    found = pf.Release.from_json(output)
    assert found.noise.measurements is not None
    assert found.quantiles is not None
    assert [quantile.share for quantile in found.quantiles] == [0.25, 0.5]
    for words in ("quantile 0.25: ", "quantile 0.5: ", "counts, from which all 3 values follow"):
        assert words in result.stdout
    compared = run("compare", model, "--length", 100, "--epsilon", 1, "--query", "cdf-counts", "--noise", "best")
    assert compared.exit_code == 0, compared.output
    assert "LeakagePropagation, best" in compared.stdout
    assert "L1 error" in compared.stdout
    assert not any("states in the order" in text for text in (result.stdout, compared.stdout))  # of bins
    refused("compare", model, "--length", 9, "--epsilon", 1, "--query", "quantiles", says=["names no quantile"])
    refused("compare", model, "--length", 9, "--epsilon", 1, "--query", "quantiles:1.5", says=["1.5"])
    refused("compare", model, "--length", 9, "--epsilon", 1, "--query", "cdf:1", says=["nothing may follow it"])
    law = ["--mechanism", "wasserstein", "--model", model, "--epsilon", 1, "--query", "histogram", "--noise", "best"]
    refused("release", table, *reading, *law, "--output", tmp_path / "no.json", says=["one query with one scale"])
