"""With ``--quiet-errors`` no refusal says anything of the rows: what is printed is the same whatever stands in them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import pufferfish as pf
from commands import READING, every_command, run
from pufferfish.cli import main

PLANTS = [("zebrastate", "Quagga", "1987-03-05 04:", 3), ("oxstate", "Vaquita", "1969-11-23 21:", 8)]
"""What two owners have in their rows: a state, a subject, the hour of the times, and how often."""

NETWORK = pf.BayesianNetwork(
    {"smoker": pf.CPT(["no", "yes"], [0.8, 0.2]), "cough": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.4, 0.6]], ["smoker"])}
)


def lines(state: str, subject: str, hour: str, often: int) -> Iterator[tuple[str, str]]:
    """Yield tables of chains in which something is wrong, by name: all of it said by values of rows."""
    head = "id,minute,activity,weight\n"
    good = "".join(f"{subject},{hour}{m:02d},{'rest' if m % 3 else 'active'},{m}\n" for m in range(often + 3))
    last = often + 3
    yield "unknown state", head + good + f"{subject},{hour}{last},{state},1\n"
    yield "unsorted", head + good + f"{subject},{hour}00,rest,1\n"
    yield "duplicate", head + good + f"{subject},{hour}{last - 1:02d},rest,1\n"
    yield "no time", head + good + f"{subject},{state},rest,1\n"
    yield "offsets mixed", head + good + f"{subject},{hour}{last}+02:00,rest,1\n"
    yield "too many cells", head + good + f"{subject},{hour}{last},rest,1,{state},{state}\n"
    yield "stray quote", head + good + f'{subject},{hour}{last},re"{state},1\n'
    yield "no header", good
    yield "one record each", head + "".join(f"{subject}{i},{hour}{i:02d},rest,1\n" for i in range(often))
    yield "all missing", head + "".join(f"{subject},{hour}{i:02d},,1\n" for i in range(often))
    yield "another step", head + "".join(f"{subject},{hour}{often * i:02d},rest,1\n" for i in range(6))


def commands(folder: Path) -> Iterator[tuple[str, list[object]]]:
    """Yield every command that reads a table of chains, by what it is to read."""
    table, model = folder / "t.csv", folder / "model.json"
    yield "fit", ["fit", table, *READING, "--states", "rest,active", "--output", folder / "new.json"]
    yield "check", ["check", model, table, *READING, "--accept", "public"]
    yield "compare", ["compare", model, "--table", table, *READING, "--epsilon", 1]
    release = ["release", table, *READING, "--model", model, "--epsilon", 1]
    yield "release", [*release, "--output", folder / "r.json"]
    yield "release", [*release, "--output", folder / "each.csv", "--each-subject"]
    yield "release", [*release, "--output", folder / "r.json", "--missing", "refuse"]
    yield "release", [*release, "--output", folder / "r.json", "--by", "weight"]
    yield "release", [*release, "--output", folder / "r.json", "--where", "weight == 'no'"]
    yield "ledger", ["ledger", "create", folder / "b.json", "--model", model, "--budget", 2, "--table", table, *READING]
    yield "verify", ["verify", folder / "old.json", "--table", table]


def quiet(*arguments: object) -> Result:
    return run("--quiet-errors", *arguments)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    pf.write_model(pf.Model(theta=chain, step="1min"), tmp_path / "model.json")
    good = tmp_path / "good.csv"
    rows = [f"A,2024-05-01 08:{m:02d},{'rest' if m % 3 else 'active'},{m}" for m in range(60)]
    good.write_text("id,minute,activity,weight\n" + "\n".join(rows) + "\n")
    made = ["--model", tmp_path / "model.json", "--epsilon", 1, "--output", tmp_path / "old.json"]
    assert run("release", good, *READING, *made).exit_code == 0
    return tmp_path


def test_what_is_said_of_a_bad_table_is_the_same_whatever_stands_in_it(folder: Path, slow: bool) -> None:
    before = {p.name for p in folder.iterdir()} | {"t.csv"}
    refused, loud, names = 0, set[str](), set[str]()
    for place, ((fault, content), (_, other)) in enumerate(zip(lines(*PLANTS[0]), lines(*PLANTS[1]), strict=True)):
        for nth, (command, arguments) in enumerate(commands(folder)):
            names.add(command)
            if not slow and (place + nth) % 5 and fault != "unknown state":
                continue
            (folder / "t.csv").write_text(content)
            found = quiet(*arguments)
            if found.exit_code == 0:  # this command takes such a table
                for path in folder.iterdir():
                    if path.name not in before:
                        path.unlink()
                continue
            usual = run(*arguments)
            (folder / "t.csv").write_text(other)
            again = quiet(*arguments)
            assert isinstance(found.exception, SystemExit), (fault, command, found.exception)
            assert found.exit_code == usual.exit_code, (fault, command)
            assert (found.exit_code, found.output) == (again.exit_code, again.output), (fault, command)
            for value in PLANTS[0][:3]:
                assert value not in found.output, (fault, command, found.output)
                if value in usual.output:
                    loud.add(fault)
            if found.exit_code == 2:
                refused += 1
                assert found.stderr.startswith("error: ")
                assert "hidden by --quiet-errors" in found.stderr
                assert found.stderr.count("\n") == 1
    assert {p.name for p in folder.iterdir()} - {"each.json.pending.lock", "b.json.lock"} == before
    assert loud >= {"unknown state", "unsorted", "duplicate", "no time", "no header"}  # else nothing was tested
    assert refused > 20
    reading = {n for n, c in every_command().items() if {"table", "tables"} & {p.name for p in params(c)}}
    # notebook names a table, and does not read it; init reads times alone, in test_cli_project
    assert names == reading - {"notebook", "init"}  # a new command that reads tables is to be tried here too


def params(command: click.Command) -> list[click.Parameter]:
    inner = list(command.commands.values()) if isinstance(command, click.Group) else []
    return [*command.params, *(p for c in inner for p in c.params)]


def test_rows_of_networks_and_refusals_of_release_are_quiet_too(folder: Path) -> None:
    pf.write_model(pf.Model(theta=pf.ModelClass((NETWORK,))), folder / "net.json")
    book = folder / "book.json"
    rest = ["--model", folder / "model.json", "--budget", 1, "--table", folder / "good.csv"]
    assert run("ledger", "create", book, *rest, *READING).exit_code == 0
    both: list[list[tuple[int, str]]] = []
    for state, subject, hour, often in PLANTS:
        table = folder / "rows.csv"
        cells = {
            "unknown": f"smoker,cough,who\nno,{state},{subject}\n" + f"no,yes,{subject}{{}}\n" * often,
            "twice": "smoker,cough,who\n" + f"no,yes,{subject}\n" * often,
            "missing": "smoker,cough,who\n" + "".join(f"no,{'yes' if i else ''},{subject}{i}\n" for i in range(often)),
            "none": "smoker,cough,who\n" + "".join(f"no,,{subject}{i}\n" for i in range(often)),
        }
        here: list[tuple[int, str]] = []
        for content in cells.values():
            table.write_text(content)
            made = ["--model", folder / "net.json", "--epsilon", 1, "--output", folder / "r.json"]
            found = quiet("release", table, "--subject", "who", *made)
            here.append((found.exit_code, found.output))
        # somebody whom the ledger's base does not have, and a longer table than its base
        rows = "".join(f"{subject},{hour}{m:02d},{'rest' if m % 3 else 'active'},1\n" for m in range(often + 40))
        (folder / "good.csv").write_text("id,minute,activity,weight\n" + rows)
        made = ["--model", folder / "model.json", "--ledger", book, "--output", folder / "r.json"]
        found = quiet("release", folder / "good.csv", *READING, *made, "--epsilon", 0.5)
        here.append((found.exit_code, found.output))
        both.append(here)
    assert both[0] == both[1]
    assert {code for code, _ in both[0]} == {2}
    assert len({text for _, text in both[0]}) >= 2  # which kind of thing failed is said


def test_what_depends_on_no_row_is_said(folder: Path) -> None:
    made = ["--model", folder / "model.json", "--epsilon", 1, "--output", folder / "r.json"]
    assert "absent.csv not found" in quiet("release", folder / "absent.csv", *READING, *made).stderr
    assert "epsilon is 0" in quiet("release", folder / "good.csv", *READING, *made, "--epsilon", 0).stderr
    assert "Did you mean" in quiet("relase").stderr
    book = folder / "book.json"
    rest = ["--model", folder / "model.json", "--budget", 0.1, "--table", folder / "good.csv"]
    assert quiet("ledger", "create", book, *rest, *READING).exit_code == 0
    refused = quiet("release", folder / "good.csv", *READING, *made, "--ledger", book)
    assert "above the budget of 0.1" in refused.stderr
    late = run("release", folder / "good.csv", *READING, *made, "--quiet-errors")
    assert "give --quiet-errors before the command" in late.stderr
    result = CliRunner().invoke(main, ["fit", str(folder / "t.csv")], env={"PUFFERFISH_QUIET_ERRORS": "1"})
    assert result.exit_code == 2
    assert quiet("release", folder / "good.csv", *READING, *made).exit_code == 0


def test_warnings_and_what_nobody_expected(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"Quagga{s},1987-03-05 04:0{m},rest\n" for s in range(20) for m in range(2))
    (folder / "t.csv").write_text("id,minute,activity\n" + rows)
    made = ["--model", folder / "model.json", "--epsilon", 1, "--output", folder / "r.json"]
    usual = run("release", folder / "t.csv", *READING, *made)
    assert "20 subjects" in usual.stderr
    found = quiet("release", folder / "t.csv", *READING, *made, "--overwrite")
    assert found.exit_code == 0
    assert found.stderr.startswith("warning: there is one about the table")
    assert found.stderr.count("\n") == 1

    def broken(*_: Any, **__: Any) -> None:
        print("zebrastate", file=sys.stderr)
        raise ZeroDivisionError("zebrastate")

    monkeypatch.setattr("pufferfish.cli._tables.read_sequences", broken)
    found = quiet("release", folder / "t.csv", *READING, *made, "--overwrite")
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr.startswith("error: the program failed; ")
    assert "zebrastate" not in found.stderr


@pytest.mark.program
def test_libraries_below_cannot_write_either(folder: Path) -> None:
    """What Rust, Java or C write is not seen by Python: the system's own standard error is shut."""
    code = (
        "import os, sys, warnings, pufferfish.cli._tables as tables\n"
        "def broken(*_, **__):\n"
        "    os.write(2, b'zebrastate'); os.system('echo zebrastate >&2'); warnings.warn('zebrastate')\n"
        "    raise KeyError('zebrastate')\n"
        "tables.read_sequences = broken\n"
        "from pufferfish.cli import main\nmain()\n"
    )
    made = ["--model", folder / "model.json", "--epsilon", "1", "--output", folder / "r.json"]
    command = [sys.executable, "-X", "faulthandler", "-c", code, "release", folder / "good.csv", *READING, *made]
    for given, seen in ({}, True), ({"PUFFERFISH_QUIET_ERRORS": "1"}, False):
        found = subprocess.run(command, capture_output=True, text=True, env=os.environ | given)
        assert ("zebrastate" in found.stderr) == seen
        assert found.returncode == 1
        assert found.stdout == ""
    assert found.stderr.startswith("error: the program failed; ")
