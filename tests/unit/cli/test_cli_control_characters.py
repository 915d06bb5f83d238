"""A name from a table cannot write to a terminal: wherever names are shown, control characters are spelled out."""

import warnings
from pathlib import Path

import polars as pl
import pytest

import pufferfish as pf
from commands import run

ESC, BEL, CSI = "\x1b[31m", "\x07", "\x9b"
STATES = (f"r{ESC}est", f"wa{BEL}lk", f"ru{CSI}n")
READING = ["--state", "s", "--subject", "who", "--time", "t", "--max-gap", 1]


def prints(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, times in (("survey", 7), ("private", 5)):
        rows = [
            (f"an{ESC}{i}", t, STATES[(t * times + i * t // 3) % 3], f"g{ESC}{i}") for i in range(2) for t in range(90)
        ]
        pl.DataFrame(rows, schema=["who", "t", "s", f"gr{BEL}"], orient="row").write_parquet(f"{name}.parquet")
    assert run("fit", "survey.parquet", *READING, "--smoothing", 1, "--output", "m.json").exit_code == 0
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_what_commands_print_and_write() -> None:
    model = ["--model", "m.json", "--accept", "model"]  # states that follow a pattern are no Markov chain's
    release = ["release", "private.parquet", *READING, *model, "--epsilon", 2, "--output"]
    ledger = [*model, "--budget", 9, "--table", "private.parquet"]
    commands = [
        ["fit", "survey.parquet", *READING, "--each-subject", "--output", "each.json"],
        ["show", "each.json"],
        ["check", "m.json", "survey.parquet", *READING, "--details"],
        ["compare", "m.json", "--length", 20, "--epsilon", 1, "--query", f"count:{STATES[0]}", "--report", "c.html"],
        ["ledger", "create", "l.json", *ledger, *READING],
        [*release, "r.json", "--ledger", "l.json", "--by", f"gr{BEL}"],
        [*release, "v.csv", "--each-subject"],
        ["ledger", "show", "l.json"],
        ["show", "r.json"],
        ["verify", "r.json", "--ledger", "l.json"],
        ["report", "r.json", "--output", "r.html", "--brief"],
        [*release, "x.json", "--query", f"count:{ESC}"],
        ["fit", f"no{ESC}.parquet", "--state", f"no{BEL}", "--output", "x.json"],
    ]
    for command in commands:
        done = run(*command)
        assert done.exit_code == (2 if "x.json" in command else 0), done.output
        assert prints(done.output), command
    for page in ("c.html", "r.html"):
        assert not set(Path(page).read_text()) & {"\x1b", BEL, CSI}


@pytest.mark.usefixtures("folder")
def test_what_objects_show() -> None:
    model, reading = pf.read_model("m.json"), {"subject": "who", "time": "t", "max_gap": 1}
    data = pf.read_sequences("private.parquet", "s", by=f"gr{BEL}", **reading)  # pyrefly: ignore[bad-argument-type]
    table = pf.CPT([f"n{ESC}", "y"], [[0.5, 0.5], [0.5, 0.5]], parents=[f"b{ESC}"])
    network = pf.BayesianNetwork({f"b{ESC}": pf.CPT(["n", "y"], [0.5, 0.5]), f"a{BEL}": table})
    noise = pf.GroupDP(model, data.length).calibrate(pf.Count(STATES[0]), 2.0)
    things = [data, data.groups, model, model.theta, model.theta.members[0], network, table, noise, pf.Count(STATES[0])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.ReleaseWarning)
        released = pf.release(data, pf.Count(STATES[0]), noise)
    for thing in [*things, released, released.verify(), pf.compare(model, pf.Count(STATES[0]), 1.0, length=20)]:
        assert prints(str(thing)), type(thing)
        assert prints(repr(thing)), type(thing)
        if hasattr(thing, "_repr_html_"):
            assert prints(thing._repr_html_()), type(thing)
