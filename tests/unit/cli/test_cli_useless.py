"""What nobody would ask for is refused before anything is spent: an ε beyond all use, noise that hides everything."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import pufferfish as pf
from cli_folder import READING
from commands import refused, run

RELEASE = ["release", "table.csv", *READING, "--model", "model.json"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"p{i},{state}" for i in range(4) for state in ["rest", "rest", "active"] * 20]
    Path("table.csv").write_text("id,activity\n" + "\n".join(rows) + "\n")
    chain = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["active", "rest"])
    pf.write_model(pf.Model(theta=chain), "model.json")
    create = ["--model", "model.json", "--table", "table.csv", *READING, "--subject", "id", "--budget", 9]
    assert run("ledger", "create", "book.json", *create).exit_code == 0
    return tmp_path


@pytest.mark.parametrize("ledger", [(), ("--ledger", "book.json")])
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("--output", "r.json"), "values that 240 records can have"),
        (("--by", "id", "--output", "r.json"), "values that each of the groups can have"),
        (("--each-subject", "--output", "r.csv"), "values that each of 4 subjects can have"),
    ],
)
def test_noise_that_hides_all_is_refused_unless_insisted_on(asked: tuple[str, ...], says: str, ledger: tuple[str, ...]):
    command = [*RELEASE, "--subject", "id", "--epsilon", 1e-3, *ledger, *asked]
    for dry in ((), ("--dry-run",)):
        refused(*command, *dry, says=[says, "Nothing is spent", "give --accept noise"])
    assert pf.Ledger.open("book.json").entries == ()
    assert not list(Path().glob("r.*"))
    done = run(*command, "--accept", "noise")
    assert done.exit_code == 0, done.output
    assert "The noise hides nearly all" in done.stderr
    assert len(pf.Ledger.open("book.json").entries) == bool(ledger)


def test_the_remedy_under_a_ledger_is_to_spend_more_of_it() -> None:
    command = [*RELEASE, "--subject", "id", "--ledger", "book.json", "--output", "r.json"]
    refused(*command, "--up-to", 1e-3, says=["values that 240 records can have", "or give a larger --up-to; if"])
    refused(*command, "--epsilon", 1e-3, says=["or give a larger ε; if"])


def test_noise_that_hides_some_groups_is_only_warned_of() -> None:
    rows = ["p0,rest"] * 2 + [f"p1,{state}" for state in ["rest", "active"] * 200]
    Path("table.csv").write_text("id,activity\n" + "\n".join(rows) + "\n")
    done = run(*RELEASE, "--subject", "id", "--by", "id", "--epsilon", 1, "--output", "r.json")
    assert done.exit_code == 0, done.output
    assert "1 of 2 groups" in done.stderr


def test_a_large_epsilon_has_to_be_allowed() -> None:
    command = [*RELEASE, "--subject", "id", "--output", "r.json"]
    for dry in ((), ("--dry-run",)):
        says = ["--epsilon means ε = 10.5", "above the limit of 10", "a factor of more than 1,000", "--max-epsilon 11"]
        refused(*command, "--epsilon", 10.5, *dry, says=says)
    refused(*command, "--epsilon", 3, "--max-epsilon", 2, says=["above the limit of 2"])
    refused(*command, "--epsilon", 1000, says=["a factor of more than 1,000"])
    refused(*command, "--up-to", 3, "--ledger", "book.json", "--max-epsilon", 2, says=["leave out one of them"])
    assert not Path("r.json").exists()
    assert run(*command, "--epsilon", 10.5, "--max-epsilon", 11).exit_code == 0


def test_a_release_without_a_ledger_says_that_others_add_up() -> None:
    command = [*RELEASE, "--subject", "id", "--epsilon", 1]
    for more in (("--output", "r.json"), ("--each-subject", "--output", "each.csv"), ("--dry-run",)):
        done = run(*command, *more)
        assert "no ledger: Other releases of the same records add up with this one" in done.stdout, more
    shown = run("show", "r.json").stdout
    assert shown.count("no ledger: Other releases") == 1
    assert shown.count("Other releases") == 1  # not again among what is not promised
    booked = run(*command, "--ledger", "book.json", "--output", "booked.json")
    assert "no ledger" not in booked.stdout


def test_what_is_asked_wrongly_is_said_before_that_the_output_exists() -> None:
    Path("r.json").write_text(json.dumps({"format": "something"}))
    command = [*RELEASE, "--subject", "id", "--epsilon", 1, "--output", "r.json"]
    refused(*command, "--query", "histgram", says=["histgram"])
    refused(*command, "--query", "histogram", says=["r.json exists"])


def test_a_ledger_takes_the_same_states_in_another_order() -> None:
    chain = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["rest", "active"])
    pf.write_model(pf.Model(theta=chain), "turned.json")
    command = ["release", "table.csv", *READING, "--subject", "id", "--epsilon", 1, "--ledger", "book.json"]
    query = ["--query", "count:active"]
    for i, model in enumerate(("model.json", "turned.json")):
        done = run(*command, "--model", model, *query, "--output", f"r{i}.json")
        assert done.exit_code == 0, done.output
    first, second = pf.Ledger.open("book.json").entries
    assert first.distance == second.distance


def test_values_that_cannot_be_are_explained_where_they_are_printed() -> None:
    """At ε = 0.04 a share of 240 records is often off by more than 0.3: one of many is below 0 or above 1."""
    command = [*RELEASE, "--subject", "id", "--epsilon", 0.04, "--noise", "equal", "--overwrite", "--output", "r.json"]
    seen = set()
    for _ in range(40):
        done = run(*command)
        assert done.exit_code == 0, done.output
        values = pf.Release.from_json("r.json").values
        told = "a release with --valid has the nearest possible values" in done.stdout
        assert told == (min(values) < 0 or max(values) > 1)
        seen.add(told)
        if seen == {True, False}:
            break
    assert True in seen
    assert "--valid releases" not in run(*command, "--valid").stdout
    assert "--valid" not in run(*command, "--query", "mean:rest=-1,active=0").stdout


@pytest.mark.parametrize("level", ["--epsilon", "--up-to"])
def test_a_release_for_each_subject_that_was_begun_is_finished(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [*RELEASE, "--subject", "id", level, 1e-3, "--ledger", "book.json", "--each-subject"]
    command += ["--output", "r.csv"]

    module = sys.modules["pufferfish.release.store"]
    write_whole = module.write_whole

    def stop(path: Path, *content: object, **options: object) -> None:
        if ".csv" in path.name:  # what was booked and drawn is about to be kept
            raise KeyboardInterrupt
        write_whole(path, *content, **options)

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_whole", stop)
        stopped = run(*command, "--accept", "noise")
    assert stopped.exit_code == 1, stopped.output
    assert len(pf.Ledger.open("book.json").entries) == 1
    assert Path("r.json.pending").exists()
    dry = run(*command, "--dry-run")
    assert dry.exit_code == 0, dry.output
    done = run(*command)
    assert done.exit_code == 0, done.output
    assert len(pf.Ledger.open("book.json").entries) == 1


def test_up_to_with_another_model_than_the_ledgers_is_refused() -> None:
    """The noise would be for the ledger's, and quantiles those of the ledger's order of states."""
    matrix = np.array([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]])
    for name, states in (("alphabet.json", ["high", "low", "mid"]), ("order.json", ["low", "mid", "high"])):
        pf.write_model(pf.Model(theta=pf.MarkovChain(matrix, states=states)), name)
    Path("levels.csv").write_text("activity\n" + "low\n" * 600 + "mid\n" * 480 + "high\n" * 400)
    create = ["ledger", "create", "levels.json", "--table", "levels.csv", *READING, "--budget", 8]
    assert run(*create, "--model", "alphabet.json").exit_code == 0
    command = ["release", "levels.csv", *READING, "--model", "order.json", "--ledger", "levels.json"]
    says = ["--up-to uses the ledger's Θ", "order.json holds another one", "give --epsilon"]
    refused(*command, "--query", "quantiles:0.5", "--up-to", 2, "--output", "q.json", says=says)
    done = run(*command, "--query", "quantiles:0.5", "--epsilon", 3, "--output", "q.json")
    assert "quantile 0.5: mid" in done.stdout, done.output
    assert run(*command, "--model", "alphabet.json", "--up-to", 6, "--output", "h.json").exit_code == 0


def test_errors_of_shares_have_digits_whatever_was_drawn() -> None:
    Path("table.csv").write_text("id,activity\n" + "".join(f"p{i},rest\n" * 120 for i in range(2)))
    command = [*RELEASE, "--subject", "id", "--by", "id", "--valid", "--epsilon", 2]
    command += ["--overwrite", "--output", "g.json"]
    seen = set()
    for _ in range(12):
        done = run(*command)
        assert done.exit_code == 0, done.output
        found = pf.Release.from_json("g.json")
        seen.add(all(value == int(value) for value in found.values))
        row = next(line.split() for line in done.stdout.splitlines() if line.startswith("p0"))
        assert float(row[-1]) == pytest.approx(found.accuracies(0.05)[0][0], rel=0.01)
    assert True in seen


def test_the_table_of_a_network_that_was_fitted_to_it_is_refused() -> None:
    network = pf.BayesianNetwork({"a": pf.CPT(["n", "y"], [0.5, 0.5])})
    Path("rows.csv").write_text("a\n" + "n\ny\ny\n" * 100)
    known = pf.read_rows("rows.csv", network).fingerprint
    pf.write_model(pf.Model(theta=network, fitted_on=known), "net.json")
    command = ["release", "rows.csv", "--model", "net.json", "--query", "marginal-counts", "--epsilon", 2]
    refused(*command, "--output", "n.json", says=["fitted to this very table", "give --accept public"])
    insisted = run(*command, "--output", "n.json", "--accept", "public")
    assert insisted.exit_code == 0, insisted.output
    assert "fitted to this very table" in insisted.stderr


def test_a_comparison_says_what_a_release_would_refuse() -> None:
    """Before any table is there, by a length alone, and in the preview."""
    given = ["--table", "table.csv", *READING, "--subject", "id"]
    for more in (["--length", 5], given):
        done = run("compare", "model.json", *more, "--epsilon", 1e-3, "--report", "preview.html")
        assert done.exit_code == 0, done.output
        hides = "warning: The noise hides nearly all: the error of ±"
        assert done.stderr.startswith(hides), more
        assert "The noise hides nearly all: the error of ±" in Path("preview.html").read_text()
    quiet = run("compare", "model.json", "--length", 5000, "--epsilon", 1, "--report", "preview.html")
    assert "hides" not in quiet.stderr + Path("preview.html").read_text()
