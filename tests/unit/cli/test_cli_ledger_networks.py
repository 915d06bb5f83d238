"""Ledgers of networks on the command line: the usual way, and one clear line for every bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_cli_ledger import contents, refused

import pufferfish as pf
from commands import READING, run, write_table
from network_ledgers import COLLIDER, LINE
from pufferfish._base.words import at_most
from pufferfish.data import RowsBase
from pufferfish.ledger import Ledger

HAND = ["--model", "line.json", "--budget", 2, "--table", "rows.csv"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of 60 rows, models of it with and without a collider, and a book."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    lines = ["id,a,b,c,old"]
    for row in range(60):
        states = [["no", "yes"][int(v)] for v in rng.random(3) < 0.3]
        lines.append(",".join([f"S{row}", *states, str(row < 20)]))
    Path("rows.csv").write_text("\n".join(lines) + "\n")
    pf.write_model(pf.Model(theta=pf.ModelClass((LINE,), "a survey")), "line.json")
    pf.write_model(pf.Model(theta=pf.ModelClass((COLLIDER,), "another survey")), "collider.json")
    result = run("ledger", "create", "book.json", *HAND, "--subject", "id")
    assert result.exit_code == 0, result.output
    assert "ledger for 60 rows with 3 nodes each, budget 2" in result.stdout
    return tmp_path


BASE = ["release", "rows.csv", "--subject", "id", "--model", "line.json", "--ledger", "book.json"]


def test_the_usual_way(folder: Path) -> None:
    assert "spent 0 of 2 by LeakagePropagation, remaining 2" in run("ledger", "show", "book.json").stdout
    result = run(*BASE, "--epsilon", 0.4, "--output", "first.json")
    assert result.exit_code == 0, result.output
    assert "ledger: number 1, spent 0.4 of 2 in all" in result.stdout
    result = run(*BASE, "--query", "count:yes", "--columns", "a,c", "--up-to", 0.9, "--output", "second.json")
    assert result.exit_code == 0, result.output
    releases = [pf.Release.from_json(name) for name in ("first.json", "second.json")]
    ledger = Ledger.open("book.json")
    assert ledger.base == RowsBase(source="rows.csv", columns={"a": "a", "b": "b", "c": "c"}, subject="id")
    assert [r.ledger.spent for r in releases] == [e.spent for e in ledger.entries]
    assert [r.epsilon for r in releases] == [e.epsilon for e in ledger.entries]
    assert [sorted(e.distance) for e in ledger.entries] == [["a", "b", "c"], ["a", "c"]]
    assert 0.99 * 0.9 <= ledger.spent <= 0.9
    shown = run("ledger", "show", "book.json")
    for words in (
        "marginals",
        "count",
        "table rows.csv, columns a, b, c; Θ: a survey",
        f"spent {at_most(ledger.spent)} of",
    ):
        assert words in shown.stdout


def test_a_part_by_a_filter_is_charged_to_the_whole() -> None:
    result = run(*BASE, "--where", "old", "--up-to", 0.8, "--output", "release.json")
    assert result.exit_code == 0, result.output
    assert pf.Release.from_json("release.json").data.chains == 20
    assert 0.792 <= Ledger.open("book.json").spent <= 0.8


def test_too_much_is_refused_and_nothing_is_spent(folder: Path) -> None:
    refused(folder, *BASE, "--epsilon", 2.5, "--output", "release.json", says=["above the budget of 2", "--up-to"])
    refused(folder, *BASE, "--up-to", 2.5, "--output", "release.json", says=["above the budget of 2"])
    assert Ledger.open("book.json").entries == ()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--model", "collider.json", "--epsilon", 0.1], ["'no'"]),  # its node c has other states
        (["--epsilon", 0.1, "--missing", "unobserved"], ["missing of the ledger's table is 'refuse'"]),
        (["--epsilon", 0.1, "--where", "a == 'yes'"], ["node column 'a'"]),
        (["--epsilon", 0.1, "--state", "a"], ["--state is for Markov chains"]),
        (["--up-to", 0.5, "--secrets", "a"], ["leave out --secrets, or give --epsilon"]),
        (["--epsilon", 0.1, "--mechanism", "exact-laplace"], ["ExactLaplace"]),
    ],
    ids=lambda v: str(v)[:40],
)
def test_bad_releases_spend_nothing(folder: Path, options: list[object], says: list[str]) -> None:
    refused(folder, *BASE, "--output", "release.json", *options, says=says)
    assert Ledger.open("book.json").entries == ()


def test_the_ledger_of_a_part_of_the_columns_knows_no_others(folder: Path) -> None:
    assert run("ledger", "create", "small.json", *HAND, "--columns", "a,b").exit_code == 0
    release = [
        "release",
        "rows.csv",
        "--model",
        "line.json",
        "--ledger",
        "small.json",
        "--epsilon",
        0.1,
        "--accept",
        "noise",
    ]
    refused(folder, *release, "--output", "release.json", says=["node 'c' from column 'c'", "does not know a column"])
    result = run(*release, "--columns", "b", "--output", "release.json")
    assert result.exit_code == 0, result.output
    assert Ledger.open("small.json").entries[0].distance == {"b": [[0, 2], [2, 0]]}


def test_propagation_keeps_every_network_and_secrets_are_the_ledgers(folder: Path) -> None:
    lines = (folder / "rows.csv").read_text().splitlines()
    (folder / "rows.csv").write_text("\n".join([lines[0].replace("c,old", "d,old"), *lines[1:]]) + "\n")
    create = ["ledger", "create", "other.json", "--model", "collider.json", "--budget", 1, "--table", "rows.csv"]
    assert run(*create, "--secrets", "a").exit_code == 0
    ledger = Ledger.open("other.json")
    assert ledger.bound.name == "propagation"
    assert [str(secret) for secret in ledger.bound.secrets[0]] == ["record a is no", "record a is yes"]
    base = ["release", "rows.csv", "--model", "collider.json", "--ledger", "other.json"]
    result = run(*base, "--query", "marginal-counts", "--up-to", 0.5, "--output", "release.json")
    assert result.exit_code == 0, result.output
    spent = Ledger.open("other.json").spent
    assert 0.495 <= spent <= 0.5
    # this release's own promise holds for every cell; the ledger protects a alone, of which b says nothing
    result = run(*base, "--columns", "b", "--epsilon", 0.3, "--output", "all.json")
    assert result.exit_code == 0, result.output
    assert pf.Release.from_json("all.json").mechanism.secrets is None
    assert run("ledger", "show", "other.json").stdout.count("marginal") == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--mechanism", "mqm-exact"], ["MQMExact does not apply"]),
        (["--model", "collider.json", "--mechanism", "mqm-exact"], ["MQMExact does not apply"]),
        (["--columns", "a,z"], ["'z'"]),
        (["--secrets", "z"], ["'z'"]),
        (["--mechanism", "group-dp", "--secrets", "a"], ["--secrets is for markov-quilt and propagation"]),
        (["--state", "a"], ["--state is for Markov chains"]),
        (["--budget", 0], ["budget is 0"]),
    ],
    ids=lambda v: str(v)[:40],
)
def test_bad_ledgers_are_not_made(folder: Path, options: list[object], says: list[str]) -> None:
    before = contents(folder)
    columns = ["--columns", "a,b"] if "collider.json" in options else []
    refused(folder, "ledger", "create", "new.json", *HAND, *columns, *options, says=says)
    assert contents(folder) == before


def test_books_of_chains_and_of_networks_are_not_taken_for_each_other(folder: Path) -> None:
    record = {
        "format": "pufferfish-model",
        "version": 1,
        "origin": "a survey",
        "states": ["active", "rest"],
        "chains": [{"transition_matrix": [[0.9, 0.1], [0.2, 0.8]], "initial_distribution": "stationary"}],
    }
    Path("chain.json").write_text(json.dumps(record))
    table = write_table(Path("table.csv"), 2)
    create = ["ledger", "create", "chains.json", "--model", "chain.json", "--budget", 1, "--table", table, *READING]
    assert run(*create).exit_code == 0
    chains = ["release", table, *READING, "--model", "chain.json", "--ledger", "book.json", "--output", "r.json"]
    rows = ["release", "rows.csv", "--model", "line.json", "--ledger", "chains.json", "--output", "r.json"]
    for cost in (["--epsilon", 0.1], ["--up-to", 0.5]):
        refused(folder, *chains, *cost, says=["Bayesian networks"])
        refused(folder, *rows, *cost, says=["Markov chains"])
