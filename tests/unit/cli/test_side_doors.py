"""The exact value is in nothing that a run leaves: files, messages, tracebacks, pickles, pictures, reprs."""

import importlib
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.release import draw as values
from pufferfish.release.noise import discrete_laplace_noise, noise_in_bulk

ACTIVE, RECORDS = 104_729, 209_471
"""How often one state stands in the table, and all of its records: numbers that nothing else is."""

READING = ["--state", "activity", "--subject", "id"]
CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])


def planted() -> pl.DataFrame:
    states = ["active"] * ACTIVE + ["rest"] * (RECORDS - ACTIVE)
    return pl.DataFrame({"id": ["a"] * (RECORDS - 100) + ["b"] * 100, "activity": states, "sex": "f"})


def traces() -> list[bytes]:
    """Return how the exact values look as text, in a file of numbers, and in a pickle."""
    rest = RECORDS - ACTIVE
    numbers = [ACTIVE, rest, rest - 100]  # of all, and of the first subject
    shares = [n / RECORDS for n in numbers[:2]] + [n / (RECORDS - 100) for n in (ACTIVE, rest - 100)]
    found = [text.encode() for n in numbers for text in (str(n), f"{n:,}")]
    found += [f"{share:.7f}".encode() for share in shares]
    found += [struct.pack(kind, n) for n in numbers for kind in ("<q", ">d", "<d")]
    return found + [b"J" + struct.pack("<i", n) for n in numbers]


def told(where: object, content: bytes) -> list[tuple[object, bytes]]:
    return [(where, trace) for trace in traces() if trace in content]


@pytest.mark.program
def test_nothing_that_commands_leave_or_print_has_the_exact_value(tmp_path: Path, slow: bool) -> None:
    """In Python's development mode, which says more; its checks of memory take six times as long: --slow."""
    home, temporary = tmp_path / "here", tmp_path / "tmp"
    home.mkdir()
    temporary.mkdir()
    planted().write_csv(tmp_path / "table.csv")
    assert told("control", (tmp_path / "table.csv").read_bytes()) == []
    assert len(told("control", f"{ACTIVE} of {RECORDS}, {RECORDS - ACTIVE:,}".encode())) == 2
    pf.write_model(pf.Model(theta=CHAIN), home / "model.json")
    table, common = (
        tmp_path / "table.csv",
        ["--model", "model.json", "--mechanism", "group-dp", "--epsilon", "0.001", "--accept", "noise"],
    )
    release = ["release", table, *READING, *common, "--ledger", "book.json"]
    commands: list[tuple[list[Any], int]] = [
        (["ledger", "create", "book.json", "--model", "model.json", "--budget", 1, "--table", table, *READING], 0),
        ([*release, "--query", "count:active", "--output", "r.json", "--csv", "r.csv", "--plot", "r.svg"], 0),
        ([*release, "--output", "v.json", "--plot", "v.pdf", "--valid"], 0),
        ([*release, "--output", "g.json", "--by", "sex", "--csv", "g.csv"], 0),
        ([*release, "--output", "e.csv", "--each-subject"], 0),
        ([*release, "--output", "t.json", "--query", "transitions"], 0),
        ([*release, "--output", "r.json"], 2),
        (["verify", "r.json", "--table", table, "--ledger", "book.json", "--model", "model.json"], 0),
        (["ledger", "show", "book.json"], 0),
        (["show", "r.json"], 0),
    ]
    code = (
        "import sys, json\nfrom pufferfish.cli import main\nfor given in json.loads(sys.argv[1]):\n"
        "  try: main.main(given[0])\n  except SystemExit as end: assert (end.code or 0) == given[1], given\n"
    )
    given = [[[str(a) for a in arguments], code_] for arguments, code_ in commands]
    own = {"TMPDIR": str(temporary), "PYTHONFAULTHANDLER": "1", "PYTHONPATH": str(Path(pf.__file__).parents[1])}
    own["PYTHONMALLOC"] = "debug" if slow else "pymalloc"
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-c", code, json.dumps(given)],
        cwd=home, env=os.environ | own, capture_output=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr.decode()[-2000:]
    assert {"r.json", "r.csv", "r.svg", "v.json", "v.pdf", "g.json", "e.csv", "e.json"} <= {
        p.name for p in home.iterdir()
    }
    found = told("standard output", run.stdout) + told("standard error", run.stderr)
    for path in [*home.rglob("*"), *temporary.rglob("*")]:
        if path.is_file():
            found += told(path.name, path.read_bytes())
    assert found == []


def test_no_object_that_is_published_has_the_exact_value(tmp_path: Path) -> None:
    data = pf.read_sequences(planted(), "activity", subject="id")
    bound = pf.GroupDP(CHAIN, data.length)
    ledger = pf.Ledger(bound, 1.0, base=data)
    ledger.save(tmp_path / "book.json")
    noise = bound.calibrate(pf.Histogram(relative=False), 0.001)
    found = pf.release(data, pf.Histogram(relative=False), noise, ledger=ledger)
    each = pf.release_each(data, pf.Histogram(relative=False), noise, tmp_path / "e.parquet")
    groups = pf.read_sequences(planted(), "activity", subject="id", by=["sex"])
    grouped = pf.release(groups, pf.Histogram(relative=False), noise)
    left: list[tuple[object, bytes]] = []
    for thing in (found, each, grouped, noise, ledger, bound, pf.verify(found)):
        shown = f"{thing!r}{thing}".encode()
        left += told(type(thing), shown)
        left += told(type(thing), pickle.dumps(thing))
    left += told("table of values", (tmp_path / "e.parquet").read_bytes())
    left += told("reprs of what is private", f"{data!r}{data}{groups!r}{groups.groups!r}".encode())
    assert left == []
    exact = values.exact_value(data, noise.linear, noise.theta)
    assert told("control", repr(exact).encode())


def failing(*_: Any, **__: Any) -> Any:
    def draw() -> Any:
        raise OSError("no more random numbers")

    return draw


def test_tracebacks_with_variables_have_no_exact_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pytest --showlocals and error trackers print them, whatever breaks off while exact values are about."""
    drawing = importlib.import_module("pufferfish.release.draw")
    query = pf.Histogram(relative=False)
    data = pf.read_sequences(planted(), "activity", subject="id")
    groups = pf.read_sequences(planted(), "activity", subject="id", by=["sex"])
    noise = pf.GroupDP(CHAIN, data.length).calibrate(query, 0.001)
    real = discrete_laplace_noise

    def refusing(exact: Any, *_: Any, **__: Any) -> Any:
        return real(exact, -1.0, lipschitz=1)

    def broken(exact: Any, *_: Any, **__: Any) -> Any:
        def draw() -> Any:
            raise OSError(f"no more random numbers for {len(exact)} values")

        return draw

    for made in (refusing, broken):
        monkeypatch.setattr(drawing, "discrete_laplace_noise", made)
        monkeypatch.setattr(drawing, "noise_in_bulk", made)
        for work in (
            lambda: pf.release(data, query, noise),
            lambda: pf.release(groups, query, noise),
            lambda: pf.release_each(data, query, noise, tmp_path / "e.csv"),
        ):
            try:
                work()
            except Exception as error:
                shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
            else:
                pytest.fail("it did not break off")
            assert "pufferfish/release" in shown
            assert told(made.__name__, shown.encode()) == [], shown[-3000:]
        for path in tmp_path.glob("*.pending"):
            path.unlink()


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_no_two_processes_draw_the_same_noise() -> None:
    """A generator that fork copies would give parent and children one noise: their difference tells exact values."""
    exact = [0] * 50
    one, bulk = (
        discrete_laplace_noise(exact, 1e9, lipschitz=1),
        noise_in_bulk(np.zeros(6_000, np.int64), 1e9, lipschitz=1),
    )
    drawn = [one(), bulk()[:50].tolist()]  # whatever state there is, is there before the fork
    for _ in range(3):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.write(write, pickle.dumps([one(), bulk()[:50].tolist()]))
            os._exit(0)
        os.close(write)
        with open(read, "rb") as pipe:
            drawn += pickle.loads(pipe.read())
        os.waitpid(child, 0)
        drawn += [one(), bulk()[:50].tolist()]
    code = "from pufferfish.release.noise import *; print(discrete_laplace_noise([0] * 50, 1e9, lipschitz=1)())"
    for _ in range(2):
        drawn.append(eval(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout))
    assert len({value for values in drawn for value in values}) > 0.999 * 50 * len(drawn)
    assert len(drawn) == 16
    whole = bulk()
    assert len(np.unique(whole)) > 0.999 * whole.size  # nor do two threads of one draw


@pytest.mark.program
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_that_draw_live_on_and_a_child_has_its_own() -> None:
    """A thread that ended while its process forked left a lock of OpenSSL shut: the child waited for noise for ever."""

    def sampler() -> set[int | None]:
        bulk()
        return {thread.native_id for thread in threading.enumerate() if thread.name.startswith("pufferfish-noise")}

    bulk = noise_in_bulk(np.zeros(15_000, np.int64), 1.0, lipschitz=1)
    before = sampler()
    assert before
    assert sampler() >= before  # none of them ended
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, pickle.dumps(sampler()))
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        own = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    assert own
    assert not own & before
