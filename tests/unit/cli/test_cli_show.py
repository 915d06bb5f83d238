"""What ``pufferfish fit`` says of a model, and ``pufferfish show`` of a file of any kind."""

from pathlib import Path

import pytest

import pufferfish as pf
from commands import READING, refused, run, write_table
from release_cases import NETWORK

STATES = ["rest", "active"]
CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=STATES)


def table_in(output: str, caption: str) -> list[list[str]]:
    """Return the rows of a table of two states: its headings, and a row for each state."""
    lines = output.splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.startswith(caption))
    return [line.split() for line in lines[at + 1 : at + 4]]


def saved(theta: object, path: Path, **given: str) -> Path:
    pf.write_model(pf.Model(theta=theta, **given), path)
    return path


def test_fit_says_the_transitions_and_the_stays(tmp_path: Path) -> None:
    public, output = write_table(tmp_path / "public.csv", seed=1), tmp_path / "m.json"
    fitted = run("fit", public, *READING, "--output", output)
    assert fitted.exit_code == 0, fitted.output
    assert "eigengap" not in fitted.stdout
    (chain,) = pf.read_model(output).theta.chains
    heads, *rows = table_in(fitted.stdout, "Transition probabilities")
    assert heads == ["from", "\\", "to", "active", "rest"]
    for row, expected in zip(rows, chain.transition_matrix, strict=True):
        assert [float(cell) for cell in row[1:]] == pytest.approx(expected.tolist(), rel=1e-3)
    heads, *rows = table_in(fitted.stdout, "Mean stay in a state:")
    assert heads == ["state", "steps", "time"]
    for row, stay in zip(rows, chain.transition_matrix.diagonal(), strict=True):
        assert float(row[1]) == pytest.approx(1 / (1 - stay), rel=1e-3)
        assert float(row[2].removesuffix("min")) == pytest.approx(1 / (1 - stay), rel=1e-2)
    shown = run("show", output)
    assert shown.exit_code == 0, shown.output
    assert table_in(shown.stdout, "Mean stay") == [heads, *rows]
    assert f"eigengap of P P* {chain.eigengap:.3g}" in shown.stdout
    assert "for MQMApprox: " in shown.stdout


@pytest.mark.slow
def test_fit_of_other_models_says_what_is_in_them(tmp_path: Path) -> None:
    public = write_table(tmp_path / "public.csv", seed=1)
    of_each = "Mean stay in a state, from the least to the most of the class:"
    each_minute = [*READING[:-1], "1min"]
    for options, says in (
        ([*READING, "--confidence", 0.95], ["Bounds on the transition probabilities", of_each]),
        ([*READING, "--each-subject"], [of_each]),
        (
            [*each_minute, "--clock", "hour", "--smoothing", 10, "--accept", "smoothing"],
            ["state    least  at", "8:00 to 9:00"],
        ),
        ([*READING, "--order", 2], ["Probability of the next state (column) after the last 2"]),
    ):
        result = run("fit", public, *options, "--output", tmp_path / "m.json", "--overwrite")
        assert result.exit_code == 0, result.output
        for words in says:
            assert words in result.stdout
        assert run("show", tmp_path / "m.json").stdout.startswith("Model file: ")


def test_fit_warns_of_a_state_that_may_mean_missing(tmp_path: Path) -> None:
    public = tmp_path / "public.csv"
    public.write_text("state\n" + "rest\nwalk\nrest\nNA\nNA\nrest\nrest\n" * 9)
    fit = ["fit", public, "--state", "state", "--smoothing", 0, "--output", tmp_path / "m.json", "--overwrite"]
    assert "the state 'NA' looks like a word for a missing value" in run(*fit).stderr
    assert "looks like" not in run(*fit, "--states", "NA,rest,walk").stderr


def test_chains_of_many_states_are_not_printed(tmp_path: Path) -> None:
    public = tmp_path / "public.csv"
    public.write_text("state\n" + "\n".join(f"s{(i * i) % 41}" for i in range(900)) + "\n")
    result = run("fit", public, "--state", "state", "--accept", "smoothing", "--output", tmp_path / "m.json")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 5
    assert "more rows" in run("show", tmp_path / "m.json").stdout


def test_show_shows_models_of_every_kind(tmp_path: Path) -> None:
    interval = pf.IntervalChain([[0.5, 0.2], [0.2, 0.5]], [[0.8, 0.5], [0.5, 0.8]], states=STATES)
    thetas = {
        "for ever": pf.ChainClass((pf.MarkovChain([[1.0, 0.0], [0.4, 0.6]], "any", states=STATES),)),
        "several": pf.ChainClass((CHAIN, pf.MarkovChain([[0.8, 0.2], [0.4, 0.6]], states=STATES))),
        "bounds": interval,
        "binary": pf.BinaryChainInterval(0.3, 0.7, states=STATES),
        "clock": pf.ChainClass((pf.PeriodicChain([CHAIN.transition_matrix] * 2, states=STATES),)),
        "forgets": pf.ForgettingClass(steps=8, overlap=0.43, states=STATES),
        "network": pf.ModelClass((NETWORK,)),
    }
    shown = {name: run("show", saved(theta, tmp_path / f"{name}.json")) for name, theta in thetas.items()}
    for name, result in shown.items():
        assert (result.exit_code, result.stdout.startswith("Model file: ")) == (0, True), (name, result.output)
    assert table_in(shown["for ever"].stdout, "Mean stay")[1] == ["rest", "∞"]
    assert "some states cannot be reached" in shown["for ever"].stdout
    assert table_in(shown["several"].stdout, "Mean stay")[1:] == [["rest", "5", "to", "10"], ["active", "2.5"]]
    assert table_in(shown["bounds"].stdout, "Mean stay")[1] == ["rest", "2", "to", "5"]


def test_show_names_the_command_for_files_of_other_kinds(tmp_path: Path) -> None:
    table, model = write_table(tmp_path / "t.csv", seed=1), saved(CHAIN, tmp_path / "m.json", step="1min")
    book, check = tmp_path / "book.json", tmp_path / "check.json"
    made = run("ledger", "create", book, "--model", model, "--budget", 2, "--table", table, *READING)
    assert made.exit_code == 0, made.output
    refused("show", book, says=[f"is a ledger: use pufferfish ledger show {book}"])
    done = run("check", model, table, *READING, "--output", check, "--accept", "public")
    assert done.exit_code == 0, done.output
    refused("show", check, says=["run pufferfish check again"])
    refused("show", table, says=["looks like a table, expected a pufferfish-release file"])
    assert "Bayesian network" in run("show", asia(tmp_path)).stdout


def asia(folder: Path) -> Path:
    path = folder / "rain.bif"
    path.write_text(
        "network rain {}\nvariable rain { type discrete [ 2 ] { no, yes }; }\n"
        "probability ( rain ) { table 0.8, 0.2; }\n"
    )
    return path


def test_compare_says_what_was_read_of_a_table(tmp_path: Path) -> None:
    table, model = write_table(tmp_path / "t.csv", seed=1), saved(CHAIN, tmp_path / "m.json", step="1min")
    given = ["compare", model, "--epsilon", 1, "--mechanisms", "propagation"]
    assert "\nread: 360 records of 3 subjects\n" in run(*given, "--table", table, *READING).stdout
    assert "read: " not in run(*given, "--length", 100).stdout
