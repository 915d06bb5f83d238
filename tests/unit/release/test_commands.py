"""Commands that a record says: run again, they make a release of the same table, query, noise and promise."""

import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import commands
import pufferfish as pf
import release_cases

READING = ["--state", "my state", "--subject", "id", "--time", "t", "--max-gap", "1min"]
CASES: list[tuple[list[str], list[str]]] = [
    (READING, ["--query", "histogram", "--valid"]),
    (READING, ["--query", 'count:"walk, slowly",run', "--by", "hour,g"]),
    (READING, ["--query", "frequency:run", "--where", "g == 'a b'", "--protect", "5"]),
    ([*READING, "--missing", "split"], ["--query", "quantiles:.5", "--protect", "subject"]),
    (READING, ["--query", 'mean:run=2.5,"walk, slowly"=1,rest=0', "--within", "run:rest"]),
    (READING, ["--query", "transitions", "--mechanism", "group-dp"]),
    (READING, ["--query", "bouts:run"]),
    (READING, ["--query", "histogram", "--noise", "equal"]),
    (READING, ["--query", "quantiles:.25,.5", "--by", "g", "--noise", "equal"]),
    (READING, ["--query", "histogram-counts", "--noise", "best", "--mechanism", "group-dp"]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    states = ["run", "walk, slowly", "rest"]
    times = pl.datetime_range(pl.datetime(2026, 3, 2), pl.datetime(2026, 3, 2, 2), "1m", closed="left", eager=True)
    for seed, name in enumerate(("public.csv", "steps.csv")):
        drawn = np.random.default_rng(seed).integers(0, 3, 4 * len(times) // 3 + 1).repeat(3).tolist()
        rows = [
            {"id": f"p{who}", "t": str(t), "my state": states[drawn[who * len(times) + i]], "g": "a b" if who else "c"}
            for who in range(4)
            for i, t in enumerate(times)
        ]
        pl.DataFrame(rows).write_csv(folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert commands.run("fit", "public.csv", *READING, "--output", "model.json").exit_code == 0
    return folder


@pytest.mark.grid(keep=10)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_command_makes_the_release_again(folder: Path, monkeypatch: pytest.MonkeyPatch, case: int) -> None:
    monkeypatch.chdir(folder)
    reading, asked = CASES[case]
    first, second = f"r{case}.json", f"again{case}.json"
    given = [*reading, *asked, "--model", "model.json", "--epsilon", "0.7", "--accept", "noise"]
    done = commands.run("release", "steps.csv", *given, "--output", first)
    assert done.exit_code == 0, done.output
    record = pf.Release.from_json(first)
    fit, command = pf.commands_of(record, second)
    assert shlex.split(fit)[:3] == ["pufferfish", "fit", "public.csv"]
    done = commands.run(*shlex.split(command)[1:], "--accept", "noise")
    assert done.exit_code == 0, (command, done.output)
    again = pf.Release.from_json(second)
    of_noise = {"created", "values", "noisy_values", "quantiles"}
    for name in set(record.__struct_fields__) - of_noise:
        assert getattr(again, name) == getattr(record, name), (name, command)


def test_the_ledger_is_made_by_a_command_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    create = [
        "ledger",
        "create",
        "book.json",
        "--table",
        "steps.csv",
        *READING,
        "--model",
        "model.json",
        "--budget",
        "3",
    ]
    assert commands.run(*create, "--protect", "5min").exit_code == 0
    given = [*READING, "--model", "model.json", "--query", "histogram", "--epsilon", "1", "--accept", "noise"]
    done = commands.run("release", "steps.csv", *given, "--ledger", "book.json", "--output", "booked.json")
    assert done.exit_code == 0, done.output
    _, made, released = pf.commands_of(pf.Release.from_json("booked.json"), "booked2.json")
    Path("book.json").unlink()
    for command in (made, f"{released} --accept noise"):
        done = commands.run(*shlex.split(command)[1:])
        assert done.exit_code == 0, (command, done.output)
    first, second = (pf.Release.from_json(name) for name in ("booked.json", "booked2.json"))
    assert second.hides == first.hides
    assert second.ledger is not None
    assert first.ledger is not None
    assert second.ledger.budget == first.ledger.budget


def test_a_network_and_what_no_command_makes(tmp_path: Path) -> None:
    rows = pf.read_rows(release_cases.TABLE, release_cases.NETWORK)
    noise = pf.MarkovQuilt(release_cases.NETWORK, length=rows.length).calibrate(pf.Marginals(), 1.0)
    (command,) = pf.commands_of(pf.release(rows, pf.Marginals(), noise))
    assert "--query marginals" in command
    assert "--mechanism markov-quilt" in command
    data = release_cases._series(["no", "yes"])
    bound = pf.GroupDP(release_cases.TWO, data.length)
    window = pf.Window(pf.Count("yes"), 0, 4)
    part = pf.release(data, pf.Count("yes"), bound.calibrate(pf.Count("yes"), 1.0))
    assert (
        pf.commands_of(pf.release(["no", "yes"] * 3, window, pf.GroupDP(release_cases.TWO, 6).calibrate(window, 1.0)))
        == []
    )
    hand = pf.GroupDP(release_cases.TWO, 6).calibrate(pf.Count("yes"), 1.0)
    assert pf.commands_of(pf.release(["no", "yes"] * 3, pf.Count("yes"), hand)) == []
    (command,) = pf.commands_of(part, "a; rm -rf $(x).json")
    assert shlex.split(command)[-1] == "a; rm -rf $(x).json"
