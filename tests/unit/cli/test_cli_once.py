"""``release --once``: the least noise for one query alone, where what composes needs many times as much."""

import json
from pathlib import Path

import numpy as np
import pytest

import pufferfish as pf
from commands import refused, run

COMMAND = ["release", "shifts.csv", "--state", "shift", "--model", "shifts.json", "--query", "count:night"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with shifts that mostly alternate, and their model."""
    monkeypatch.chdir(tmp_path)
    chain = pf.MarkovChain([[0.1, 0.9], [0.8, 0.2]], states=["day", "night"])
    pf.write_model(pf.Model(theta=chain), "shifts.json")
    Path("shifts.csv").write_text("shift\n" + "day\nnight\n" * 9 + "night\nday\n")
    return tmp_path


def test_it_takes_the_least_noise_and_says_what_that_excludes() -> None:
    for asked in (("--epsilon", 1), ("--epsilon", 1, "--once")):
        done = run(*COMMAND, *asked, "--output", "r.json", "--overwrite")
        assert done.exit_code == 0, done.output
    found = pf.Release.from_json("r.json")
    assert found.mechanism.name == "exact-laplace"
    assert found.noise.scale == pytest.approx(0.61, abs=1e-3)
    assert (
        "once: ExactLaplace has the least noise for this query alone: no ledger can count this release" in done.output
    )
    assert found.verify().holds
    by_default = run(*COMMAND, "--epsilon", 1, "--output", "c.json")
    assert by_default.exit_code == 0
    composes = json.loads(Path("c.json").read_text())
    assert composes["mechanism"]["name"] == "propagation"
    assert composes["noise"]["scale"] == pytest.approx(5.41, abs=0.01)


def test_an_accuracy_takes_the_least_epsilon() -> None:
    epsilons = []
    for more in ((), ("--once",)):
        done = run(*COMMAND, "--accuracy", 3, *more, "--dry-run")
        assert done.exit_code == 0, done.output
        epsilons.append(float(done.output.split("needs ε = ")[1].split()[0]))
    assert epsilons[1] < epsilons[0] / 3
    chain = pf.MarkovChain([[0.1, 0.9], [0.8, 0.2]], states=["day", "night"])
    least = pf.compare(chain, pf.Count("night"), accuracy=3, length=20).least
    assert least is not None
    assert epsilons[1] == pytest.approx(least.epsilon, rel=1e-3)


def test_where_what_composes_needs_as_little_a_ledger_could_count_it() -> None:
    pf.write_model(
        pf.Model(theta=pf.MarkovChain(np.array([[0.9, 0.1], [0.4, 0.6]]), states=["day", "night"])), "s.json"
    )
    done = run(*COMMAND[:5], "s.json", *COMMAND[6:], "--epsilon", 1, "--once", "--dry-run")
    assert done.exit_code == 0, done.output
    assert "once: LeakagePropagation has the least noise for this query alone, and a ledger can count it" in done.output


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (
            ("--mechanism", "propagation"),
            "--once chooses the mechanism with the least noise, but --mechanism names one",
        ),
        (("--ledger", "book.json"), "--once does not work with --ledger"),
        (("--by", "shift"), "--once does not work with --by"),
        (("--each-subject",), "--once does not work with --each-subject"),
    ],
)
def test_it_does_not_go_with_what_must_add_up(asked: tuple[str, ...], says: str) -> None:
    refused(*COMMAND, "--epsilon", 1, "--once", *asked, "--output", "r.json", says=[says])
    assert not Path("r.json").exists()
