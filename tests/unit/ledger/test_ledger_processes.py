"""A ledger in several programs at once, and in programs that are killed: no release without an entry in the book."""

import json
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._core.numbers.rounding import float_up
from pufferfish.data import Base
from pufferfish.errors import BudgetExceeded
from pufferfish.ledger import Ledger

pytestmark = [pytest.mark.program, pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")]

COIN = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["rest", "active"])
COUNT = pf.Count("active")

PREPARE = """
import importlib, os, signal, sys
from pathlib import Path
import numpy as np
import pufferfish as pf
from pufferfish.data import Base
from pufferfish.errors import BudgetExceeded
from pufferfish.ledger import Ledger

folder = Path(sys.argv[1])
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
"""

RELEASE = """
data = pf.Sequences(
    states=("rest", "active"), counts=np.array([[60, 40]]), transitions=np.zeros((2, 2), dtype=np.int64),
    length=(pf.ChainLength(100, 100),), subjects=1, base=Base(source="table.csv", state="activity"),
)
ledger = Ledger.open(folder / "book.json")
query = pf.Count("active")
calibration = ledger.bound.calibrate(query, 0.4)
found = pf.release(data, query, calibration, ledger=ledger)
found.to_json(folder / "release.json")
"""

HALF_A_FILE = """
def half(handle, content):
    os.write(handle, content[: len(content) // 2])
    os.fsync(handle)
    die()
importlib.import_module("pufferfish._base.writing").os = type("os", (), {**vars(os), "write": half})
"""

KILLED = {
    "before the book is written": "importlib.import_module('pufferfish.ledger.kept').BookFile.write = die",
    "in the middle of the new file": HALF_A_FILE,
    "before the new file is on the disk": "os.fsync = die",
    "before the new file takes the name": "os.replace = die",
}
KILLED_LATER = {
    "when the name is taken": "importlib.import_module('pufferfish._base.writing')._flush_folder = die",
    "before noise is drawn": (
        "importlib.import_module('pufferfish.release.draw').discrete_laplace_noise = lambda *_, **__: die"
    ),
    "before the release is written": "pf.Release.to_json = die",
}


def start(folder: Path, code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PREPARE + code, str(folder), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], code: int) -> str:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == code, errors
    return output


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    path = tmp_path / "book.json"
    base = Base(source="table.csv", state="activity")
    ledger = Ledger(pf.EntryDP(COIN, 100), 1.0, base=base)
    ledger.save(path)
    ledger.spend(0.1)
    return path


@pytest.mark.grid(keep=2)
@pytest.mark.parametrize("moment", KILLED, ids=str)
def test_killed_before_the_book_is_changed(ledger_file: Path, moment: str) -> None:
    opened, before = Ledger.open(ledger_file), ledger_file.read_bytes()
    ended(start(ledger_file.parent, KILLED[moment] + "\n" + RELEASE), -signal.SIGKILL)
    assert ledger_file.read_bytes() == before
    assert not (ledger_file.parent / "release.json").exists()
    assert opened.spent == Ledger.open(ledger_file).spent == 0.1
    for ledger in (opened, Ledger.open(ledger_file)):
        ledger.spend(0.1)  # the lock of the dead program is no obstacle
    assert [entry.number for entry in opened.entries] == [1, 2, 3]


@pytest.mark.grid(keep=2)
@pytest.mark.parametrize("moment", KILLED_LATER, ids=str)
def test_killed_after_the_book_is_changed(ledger_file: Path, moment: str) -> None:
    opened = Ledger.open(ledger_file)
    ended(start(ledger_file.parent, KILLED_LATER[moment] + "\n" + RELEASE), -signal.SIGKILL)
    assert not (ledger_file.parent / "release.json").exists()
    entries = Ledger.open(ledger_file).entries
    assert [entry.epsilon for entry in entries] == [None, 0.4]
    assert opened.spent == pytest.approx(0.5, abs=1e-12)
    assert opened.spend(0.5).number == 3


def test_a_program_that_lives_releases_what_is_in_the_book(ledger_file: Path) -> None:
    ended(start(ledger_file.parent, RELEASE), 0)
    found = pf.Release.from_json(ledger_file.parent / "release.json")
    assert (found.ledger.entry, found.ledger.spent) == (2, Ledger.open(ledger_file).spent)


def test_four_programs_at_once_spend_one_budget(tmp_path: Path, slow: bool) -> None:
    path, count = tmp_path / "book.json", 4 if slow else 2
    Ledger(pf.EntryDP(COIN, 100), 1.0).save(path)
    code = """
import time
ledger = Ledger.open(folder / "book.json")
(folder / f"ready{sys.argv[2]}").touch()
while not (folder / "go").exists():
    time.sleep(0.001)
for i in range(6):
    try:
        entry = ledger.spend(0.1, note=f"{sys.argv[2]}/{i}")
        print(entry.number, entry.what, entry.spent)
    except BudgetExceeded:
        print("refused")
"""
    programs = [start(tmp_path, code, i) for i in range(count)]
    while any(not (tmp_path / f"ready{i}").exists() for i in range(count)):
        assert all(program.poll() is None for program in programs)
        time.sleep(0.01)
    (tmp_path / "go").touch()
    lines = [line for program in programs for line in ended(program, 0).splitlines()]
    done = [line.split() for line in lines if line != "refused"]
    ledger = Ledger.open(path)
    assert len(lines) == 6 * count
    assert sorted((str(e.number), e.what, str(e.spent)) for e in ledger.entries) == sorted(map(tuple, done))
    assert [entry.number for entry in ledger.entries] == list(range(1, 11))
    assert [entry.spent for entry in ledger.entries] == [float_up(Fraction(i, 10)) for i in range(1, 11)]
    assert len({entry.what for entry in ledger.entries}) == 10


def test_a_ledger_opened_before_sees_what_others_spent(ledger_file: Path) -> None:
    stale = Ledger.open(ledger_file)
    assert stale.spent == 0.1
    ended(start(ledger_file.parent, "Ledger.open(folder / 'book.json').spend(0.8)"), 0)
    with pytest.raises(BudgetExceeded, match=r"from 0\.9 to"):
        stale.spend(0.2)
    assert stale.spent == 0.9
    assert len(stale.entries) == 2
    assert stale.spend(0.05).number == 3


def test_a_program_that_never_looked_again_cannot_overspend(ledger_file: Path) -> None:
    stale = Ledger.open(ledger_file)
    ended(start(ledger_file.parent, "Ledger.open(folder / 'book.json').spend(0.8)"), 0)
    calibration = stale.bound.calibrate(COUNT, 0.4)
    data = pf.Sequences(
        states=("rest", "active"),
        counts=np.array([[60, 40]]),
        transitions=np.zeros((2, 2), dtype=np.int64),
        length=(pf.ChainLength(100, 100),),
        subjects=1,
        base=Base(source="table.csv", state="activity"),
    )
    with pytest.raises(BudgetExceeded):
        pf.release(data, COUNT, calibration, ledger=stale)
    assert len(Ledger.open(ledger_file).entries) == 2


@pytest.mark.slow
def test_two_commands_that_fit_only_once(tmp_path: Path) -> None:
    table, model, ledger_file = (tmp_path / name for name in ("table.csv", "model.json", "book.json"))
    rng = np.random.default_rng(1)
    table.write_text("activity\n" + "\n".join(["rest", "active"][int(v)] for v in rng.integers(0, 2, 200)) + "\n")
    record: dict[str, Any] = {
        "format": "pufferfish-model",
        "version": 1,
        "origin": "by hand",
        "states": ["rest", "active"],
        "chains": [{"transition_matrix": [[0.9, 0.1], [0.4, 0.6]], "initial_distribution": "stationary"}],
    }
    model.write_text(json.dumps(record))

    def command(*arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "pufferfish", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    reading = ["--state", "activity", "--model", model]
    ended(command("ledger", "create", ledger_file, "--budget", 1, "--table", table, *reading), 0)
    outputs = [tmp_path / f"release{i}.json" for i in range(2)]
    programs = [
        command("release", table, *reading, "--ledger", ledger_file, "--epsilon", 0.7, "--output", output)
        for output in outputs
    ]
    errors = [program.communicate(timeout=120)[1] for program in programs]
    codes = [program.returncode for program in programs]
    assert sorted(codes) == [0, 2], errors
    for code, output, error in zip(codes, outputs, errors, strict=True):
        assert output.exists() == (code == 0)
        if code == 2:
            assert error.startswith("error: this release would raise")
            assert error.count("\n") == 1
    (entry,) = Ledger.open(ledger_file).entries
    assert pf.Release.from_json(outputs[codes.index(0)]).ledger.spent == entry.spent
