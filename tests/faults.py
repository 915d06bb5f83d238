"""Faults made on purpose: killed programs, full disks, engines that break off, clocks set back, flipped bits.

Run it by ``make faults``, which writes ``docs/faults.md``, or for a part by ``python tests/faults.py disks clock``.
Every trial runs in a process of its own, most of them a whole command, and after each it is looked at that

- nothing was released that is not in the ledger's book, and what is spent never falls;
- each file is absent, as it was before, or whole; no hidden file stays once another command ran;
- the same command works again, or says in one line what to do.

A trial that breaks one of these is printed, and the program ends with exit code 1. The usual tests try some of the same
faults (they are named in the table); this is for those who change how files are written.
"""

import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.figure  # noqa: F401 - what commands load is loaded once, before they are started by fork
import opendp.measurements  # noqa: F401
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.cli import _COMMANDS, main  # pyright: ignore[reportPrivateUsage]
from pufferfish.errors import PufferfishError

PAGE = Path(__file__).parent.parent / "docs" / "faults.md"
READING = ["--state", "activity", "--subject", "id"]
DRAW = random.Random(2026)
"""Which moments and bits are tried: no randomness of any release."""

CALLS = (
    "open",
    "write",
    "fsync",
    "replace",
    "rename",
    "link",
    "unlink",
    "ftruncate",
    "posix_fallocate",
    "chmod",
    "close",
)
"""What a program asks of the system when it writes; it is killed before each of these, and in the middle of a write."""


class Row(NamedTuple):
    """What was tried, how often, and what came out."""

    what: str
    trials: int
    found: str
    wrong: int = 0


class Fault(Exception):
    """A promise that does not hold."""


def holds(true: object, what: str) -> None:
    if not true:
        raise Fault(what)


# -- processes ------------------------------------------------------------------------------------------------


def forked(work: Callable[[], object], folder: Path, *, kill_after: float | None = None) -> tuple[int, str]:
    """Do something in a process of its own; return how it ended (below 0: by a signal) and what it printed."""
    said = folder.parent / f"said-{os.getpid()}"
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 70
        try:
            handle = os.open(said, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
            os.chdir(folder)
            work()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)  # it may have ended: then it is waited for below
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status), said.read_text(errors="replace")


def command(arguments: list[str]) -> Callable[[], object]:
    return lambda: main.main(arguments)


def dying(work: Callable[[], object], moment: int, counted: Path | None = None) -> Callable[[], object]:
    """Return work that is killed before its so-many-th call of the system; without a moment the calls are counted."""

    def watched() -> None:
        calls = 0

        def watch(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*given: Any, **more: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == moment:
                    if name == "write" and len(given[1]) > 1:
                        real(given[0], bytes(given[1])[: len(given[1]) // 2])
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*given, **more)

            return call

        for name in CALLS:
            setattr(os, name, watch(name, getattr(os, name)))
        try:
            work()
        finally:
            if counted is not None:
                counted.write_text(str(calls))

    return watched


# -- what every trial starts from, and what must be true after it ---------------------------------------------


def prepared(folder: Path) -> Path:
    """Make a table, a model, a ledger with an entry, and earlier files, in a folder."""
    folder.mkdir(parents=True)
    rows = [f"S{s},{['rest', 'active'][(m // 3 + s) % 2]}" for s in range(3) for m in range(40)]
    (folder / "table.csv").write_text("id,activity\n" + "\n".join(rows) + "\n")
    pf.write_model(
        pf.Model(theta=pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])), folder / "m.json"
    )
    made = ["ledger", "create", "book.json", "--model", "m.json", "--budget", "50", "--table", "table.csv", *READING]
    for given in ([*made, "--mechanism", "group-dp"], release("old.json", "--ledger", "book.json")):
        code, said = forked(command(given), folder)
        holds(code == 0, said)
    return folder


def release(output: str, *more: str) -> list[str]:
    given = ["--model", "m.json", "--mechanism", "group-dp", "--epsilon", "0.5", "--output", output]
    return ["release", "table.csv", *READING, *given, *more]


COMMANDS = {
    "fit --output": ["fit", "table.csv", *READING, "--output", "new.json"],
    "fit --output --overwrite": ["fit", "table.csv", *READING, "--output", "m.json", "--overwrite"],
    "ledger create": [
        "ledger",
        "create",
        "new.json",
        "--model",
        "m.json",
        "--budget",
        "2",
        "--table",
        "table.csv",
        *READING,
    ],
    "release --csv --plot": release("new.json", "--csv", "new.csv", "--plot", "new.svg"),
    "release --ledger": release("new.json", "--ledger", "book.json"),
    "release --ledger --overwrite": release("old.json", "--ledger", "book.json", "--overwrite"),
    "release --each-subject --ledger": release("each.csv", "--each-subject", "--ledger", "book.json"),
    "compare --plot": ["compare", "m.json", "--length", "40", "--epsilon", "1", "--plot", "new.svg"],
    "check --output": ["check", "m.json", "table.csv", *READING, "--i-know-this-is-public", "--output", "new.json"],
    "audit --output": ["audit", "--output", "new.md"],
}
"""Every command that writes."""

READERS: dict[str, Callable[[Path], object]] = {
    "pufferfish-model": pf.read_model,
    "pufferfish-ledger": pf.Ledger.open,
    "pufferfish-release": pf.Release.from_json,
    "pufferfish-each-subject-release": pf.EachRelease.from_json,
}


def look(folder: Path, before: dict[str, bytes], spent: int) -> None:
    """Raise a Fault if a file is neither as before nor whole, or a release is not in the book."""
    book = pf.Ledger.open(folder / "book.json")
    holds(spent <= len(book.entries) <= spent + 1, f"{len(book.entries)} entries after {spent}")
    holds(all(one.spent <= two.spent for one, two in zip(book.entries, book.entries[1:], strict=False)), "spent falls")
    for path in folder.iterdir():
        if path.suffix == ".lock" or path.name.startswith(".pufferfish-") or path.name.endswith(".csv.pending"):
            continue
        content = path.read_bytes()
        if content == before.get(path.name):
            continue
        holds(content, f"{path.name} is empty")
        if path.suffix in (".json", ".pending"):
            kind = json.loads(content)["format"]
            found: Any = READERS[kind](path) if kind in READERS else None
            booked = getattr(found, "ledger", None)
            if booked is not None and path.suffix == ".json":
                holds(booked.entry <= len(book.entries), f"{path.name} is released and not booked")
        if path.suffix == ".svg":
            holds(content.rstrip().endswith(b"</svg>"), f"{path.name} is cut")
        if path.suffix == ".csv":
            holds(content.endswith(b"\n") and len(content.splitlines()) in (3, 7), f"{path.name} is cut")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- (a) killed at any moment ---------------------------------------------------------------------------------


def killed(place: Path, quick: bool) -> Iterator[Row]:
    """Kill every command before each call of the system by which it writes, and at random times."""
    import pufferfish.cli.audit as audit

    class Page:
        """What an audit found; it takes a minute, and says the same each time."""

        holds = True

        def __str__(self) -> str:
            return PAGE.with_name("audit.md").read_text()

    audit.report = Page  # pyright: ignore
    good = prepared(place / "good")
    before = contents(good)
    for name, arguments in COMMANDS.items():
        count, start = place / "count", time.monotonic()
        shutil.copytree(good, place / "dry")
        code, said = forked(dying(command(arguments), -1, count), place / "dry")
        seconds = time.monotonic() - start
        holds(code == 0, f"{name}: {said}")
        shutil.rmtree(place / "dry")
        calls = range(1, int(count.read_text()) + 1)
        trials: list[int | float] = [*(DRAW.sample(calls, min(3, len(calls))) if quick else calls)]
        trials += [DRAW.uniform(0, seconds) for _ in range(1 if quick else 3)]
        ends, wrong = Counter[str](), 0
        for trial in trials:
            folder = place / "trial"
            shutil.copytree(good, folder)
            try:
                ends[_killed(folder, arguments, trial, before)] += 1
            except Fault as fault:
                wrong += 1
                print(f"WRONG: {name}, killed at {trial}: {fault}", flush=True)
            shutil.rmtree(folder)
        told = ", ".join(f"{end} {n}" for end, n in sorted(ends.items()))
        yield Row(
            f"`{name}` killed before each of its {len(calls)} calls, and at random times", len(trials), told, wrong
        )


def _killed(folder: Path, arguments: list[str], trial: float, before: dict[str, bytes]) -> str:
    if isinstance(trial, int):
        ended, said = forked(dying(command(arguments), trial), folder)
        holds(ended == -signal.SIGKILL, f"ended with {ended}: {said}")
    else:
        ended, said = forked(command(arguments), folder, kill_after=trial)
    code, wrong = forked(lambda: look(folder, before, 1), folder)
    holds(code == 0, wrong.strip().rpartition("\n")[2])
    shown = "discrete Laplace noise" in said and "--ledger" in arguments
    code, said = forked(command(arguments), folder)
    if code:  # it was refused, and writes nothing: the next command that writes sweeps
        forked(command(["fit", "table.csv", *READING, "--output", "next.json"]), folder)
    booked = len(json.loads((folder / "book.json").read_bytes())["entries"])
    if shown:
        holds(booked >= 2, "values were shown and not booked")
    if "--each-subject" in arguments:
        holds(booked == 2, f"one release for each subject has {booked - 1} entries")
    holds(not list(folder.glob(".pufferfish*")), "a hidden file stays")
    holds(not list(folder.glob("*.pending")), "a pending file stays")
    if code == 0:
        return "the same command works:"
    holds(code == 2 and said.startswith("error: ") and said.count("\n") == 1, said)
    holds("exists" in said, said)
    return "it had finished, and says so:"


# -- (b) at once ----------------------------------------------------------------------------------------------


def at_once(place: Path, quick: bool) -> Iterator[Row]:
    """Many command lines spend one budget at the same moment."""
    programs, rounds = (4, 1) if quick else (8, 8)
    good, wrong, done, refused = prepared(place / "good"), 0, 0, 0
    for number in range(rounds):
        folder = place / f"round{number}"
        shutil.copytree(good, folder)
        made = [
            "ledger",
            "create",
            "tight.json",
            "--model",
            "m.json",
            "--budget",
            "1.7",
            "--table",
            "table.csv",
            *READING,
        ]
        holds(forked(command([*made, "--mechanism", "group-dp"]), folder)[0] == 0, "no ledger")

        def spend(i: int, folder: Path = folder) -> None:
            while not (folder / "go").exists():
                time.sleep(0.001)
            main.main(release(f"r{i}.json", "--ledger", "tight.json"))

        children = [_started(lambda i=i: spend(i), folder, i) for i in range(programs)]
        (folder / "go").touch()
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        book = pf.Ledger.open(folder / "tight.json")
        released = [pf.Release.from_json(path) for path in folder.glob("r*.json")]
        try:
            holds(set(codes) <= {0, 2}, f"exit codes {codes}")
            holds(len(book.entries) == codes.count(0) == len(released) == 3, f"{len(book.entries)} of {codes}")
            holds(sorted(r.ledger.entry for r in released if r.ledger) == [1, 2, 3], "entries")
            holds(book.spent <= 1.7 and abs(book.spent - 1.5) < 1e-9, f"spent {book.spent}")
        except Fault as fault:
            wrong += 1
            print(f"WRONG: at once: {fault}", flush=True)
        done, refused = done + codes.count(0), refused + codes.count(2)
        shutil.rmtree(folder)
    what = f"{programs} command lines at once, each 0.5 of a budget of 1.7, {rounds} times"
    yield Row(what, programs * rounds, f"{done} released and booked (3 each time), {refused} refused, none lost", wrong)


def _started(work: Callable[[], object], folder: Path, number: int) -> int:
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        handle = os.open(folder / f"said{number}.txt", os.O_CREAT | os.O_WRONLY)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os.chdir(folder)
        work()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        os._exit(code)


# -- (c) disks ------------------------------------------------------------------------------------------------


@contextmanager
def disk(place: Path, size: str) -> Iterator[Path | None]:
    """Mount a small disk; None where that is not allowed."""
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place], capture_output=True).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def disks(place: Path, quick: bool) -> Iterator[Row]:
    """Disks with room for less and less, and such that cannot be written."""
    good = prepared(place / "good")
    names = [name for name in COMMANDS if name != "audit --output"]
    for size in ("64k", "400k"):
        with disk(place / f"disk{size}", size) as small:
            if small is None:
                yield Row(f"a full disk of {size}", 0, "skipped: mounting is not allowed here")
                continue
            ends, wrong, trials = Counter[str](), 0, 0
            for name in names[:2] if quick else names:
                for room in (0, 4, 12, 40) if size == "64k" else (0, 60, 280, 320):
                    trials += 1
                    shutil.copytree(good, small, dirs_exist_ok=True)
                    before = contents(small)
                    with suppress(OSError), (small / "filler").open("wb") as filler:
                        _fill(filler, small, room)
                    code, said = forked(command(COMMANDS[name]), small)
                    try:
                        _check_disk(small, before, code, said)
                        ends[
                            "done"
                            if code == 0
                            else "refused, nothing spent"
                            if code == 2
                            else "written in part, says so"
                        ] += 1
                    except Fault as fault:
                        wrong += 1
                        print(f"WRONG: {name} on {size} with {room} kB left: {fault}", flush=True)
                    for path in small.iterdir():
                        path.unlink()
            told = ", ".join(f"{end}: {n}" for end, n in sorted(ends.items()))
            yield Row(f"a disk of {size} with less and less room, every command", trials, told, wrong)
    with disk(place / "fixed", "4m") as small:
        if small is None:
            yield Row("a read-only disk", 0, "skipped: mounting is not allowed here")
            return
        shutil.copytree(good, small, dirs_exist_ok=True)
        before, wrong = contents(small), 0
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        for name in names:
            code, said = forked(command(COMMANDS[name]), small)
            try:
                holds(code == 2 and ("Read-only" in said or "write-protected" in said), f"{code}: {said}")
                _one_line(said)
                holds(contents(small) == before, "something changed")
            except Fault as fault:
                wrong += 1
                print(f"WRONG: {name} on a read-only disk: {fault}", flush=True)
        yield Row("a read-only disk, every command", len(names), "refused in one line, nothing changed", wrong)


def _fill(filler: Any, small: Path, room: int) -> None:
    """Fill a disk but for so many kB."""
    status = os.statvfs(small)
    filler.write(bytes(max(0, status.f_bavail * status.f_frsize - room * 1024)))


def _check_disk(small: Path, before: dict[str, bytes], code: int, said: str) -> None:
    (small / "filler").unlink()
    ended, wrong = forked(lambda: look(small, before, 1), small)
    holds(ended == 0, wrong.strip().rpartition("\n")[2])
    holds(not list(small.glob(".pufferfish*")), "a hidden file stays")
    booked = len(json.loads((small / "book.json").read_bytes())["entries"])
    if code == 2:
        _one_line(said)
        holds(booked == 1, "refused, and spent")
        holds(_files(small) == {n: c for n, c in before.items() if not n.endswith(".lock")}, "refused, and written")
    else:
        holds(code == 0 or (code == 1 and said.startswith("error: ")), f"{code}: {said}")


def _one_line(said: str) -> None:
    """What is printed ends in one line of error; compare and check print what they found before they write."""
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    holds(len(errors) == 1 and said.endswith(f"{errors[0]}\n"), said)


def _files(folder: Path) -> dict[str, bytes]:
    """Return what is in a folder but locks, which stay."""
    return {name: content for name, content in contents(folder).items() if not name.endswith(".lock")}


# -- (d) engines that break off -------------------------------------------------------------------------------


class Broken(Exception):
    """What an engine raises in the middle."""


def engines(place: Path, quick: bool) -> Iterator[Row]:
    """Tables that break off while they are read, under a ledger: an error in one line, and nothing is spent."""
    folder = prepared(place / "good")
    before = contents(folder)
    for name in ("polars", "DuckDB", "CSV that is cut off", "noise"):
        trials, wrong = 0, 0
        for after in (0, 30, 119):
            trials += 1
            code, said = forked(lambda name=name, after=after: _broken(name, after), folder)
            left = {n: c for n, c in contents(folder).items() if not n.endswith((".lock", ".gz"))}
            try:
                holds(code == 0, said)
                if name == "noise":  # drawn after it is booked: spent, and not released
                    entries = json.loads(left.pop("book.json"))["entries"]
                    holds(len(entries) == 1 + trials, "not booked")
                    holds(
                        left == {n: c for n, c in before.items() if n not in ("book.json", "book.json.lock")}, "changed"
                    )
                else:
                    holds(left == {n: c for n, c in before.items() if not n.endswith(".lock")}, "something changed")
            except Fault as fault:
                wrong += 1
                print(f"WRONG: {name} after {after}: {fault}", flush=True)
        found = "spent, not released" if name == "noise" else "refused in one line, nothing spent"
        yield Row(f"{name}: fails after 0, 30 and 119 of 120 rows", trials, found, wrong)


def _broken(name: str, after: int) -> None:
    """Release with a table, or noise, that fails after so many rows; end with 0 where it fails as it should."""
    ledger = pf.Ledger.open("book.json")
    rows = pl.read_csv("table.csv")
    table: Any = rows
    order = {"time": "row"} if name == "DuckDB" else {}
    if name == "noise":
        table = "table.csv"

        def fails(exact: Any, *_: Any, **__: Any) -> Callable[[], list[int]]:
            return lambda: (_ for _ in ()).throw(Broken("no more random numbers"))

        importlib.import_module("pufferfish.release").discrete_laplace_noise = fails
    elif name == "polars":
        from polars.io.plugins import register_io_source

        def batches(*_: Any) -> Iterator[pl.DataFrame]:
            yield rows[:after]
            raise Broken("the disk is gone")

        table = register_io_source(batches, schema=rows.schema)
    elif name == "DuckDB":
        import duckdb

        kept = duckdb.connect()

        def count(row: int) -> int:
            if row >= after:
                raise Broken("the disk is gone")
            return row

        kept.create_function("count_row", count, ["BIGINT"], "BIGINT")  # pyright: ignore
        kept.register("rows", rows.with_row_index("row"))
        table = kept.sql("select id, activity, row from rows where count_row(row) >= 0")
    else:
        import gzip

        content = gzip.compress(Path("table.csv").read_bytes())
        Path("cut.csv.gz").write_bytes(content[: len(content) * (after + 30) // 160])
        table = "cut.csv.gz"
    query = pf.Histogram()
    try:
        data = pf.read_sequences(table, "activity", subject="id", **order)
        noise = ledger.bound.calibrate(query, 0.5)
        pf.release(data, query, noise, ledger=ledger)
    except (PufferfishError, Broken) as error:
        why = {"noise": "no more random numbers", "CSV that is cut off": "cut off"}.get(name, "the disk is gone")
        holds(len(str(error).splitlines()) == 1 and why in str(error), str(error))
        return
    holds(False, "it did not fail")


# -- (e) a clock that is set back -----------------------------------------------------------------------------


def clock(place: Path, quick: bool) -> Iterator[Row]:
    """Every look at the clock may be earlier than the one before, by up to ten years."""
    folder, releases = prepared(place / "good"), 3 if quick else 25

    def run() -> None:
        import datetime

        import pufferfish.moments as moments

        class Clock(datetime.datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return datetime.datetime.now(tz) - datetime.timedelta(seconds=DRAW.uniform(0, 3e8))

        moments.datetime = Clock  # pyright: ignore
        real = time.time
        time.time = lambda: real() - DRAW.uniform(0, 3e8)
        for i in range(releases):
            with suppress(SystemExit):
                main.main(release(f"c{i}.json", "--ledger", "book.json"))
            code = 0
            try:
                main.main(
                    ["verify", f"c{i}.json", "--ledger", "book.json", "--model", "m.json", "--table", "table.csv"]
                )
            except SystemExit as ended:
                code = int(ended.code or 0)
            holds(code == 0, f"release {i} does not hold")
        book = pf.Ledger.open("book.json")
        holds([entry.number for entry in book.entries] == list(range(1, releases + 2)), "order")
        holds([e.created for e in book.entries] != sorted(e.created for e in book.entries), "the clock was right")

    code, said = forked(run, folder)
    if code:
        print(f"WRONG: clock: {said[-500:]}", flush=True)
    found = "all released, booked in order, and verified with ledger, model and table"
    yield Row("releases by a clock that jumps back and forth by years", releases, found, int(code != 0))


# -- (f) flipped bits -----------------------------------------------------------------------------------------


def flips(place: Path, quick: bool) -> Iterator[Row]:
    """One bit of a file is another: refused in one line, or the same promise."""
    folder = prepared(place / "good")
    code, said = forked(command(COMMANDS["release --each-subject --ledger"]), folder)
    holds(code == 0, said)
    for name in ("book.json", "old.json", "each.json", "each.csv", "m.json"):
        path = folder / name
        content = path.read_bytes()
        chosen = DRAW.sample(range(len(content)), min(30 if quick else 800, len(content)))
        flipped = [(at, DRAW.randrange(8)) for at in chosen]
        code, said = forked(lambda name=name, content=content, flipped=flipped: _flip(name, content, flipped), folder)
        path.write_bytes(content)
        holds(code == 0, said)
        counts, wrong = Counter[str](), 0
        for line in said.splitlines():
            counts[line.partition("|")[0]] += 1
            if line.startswith("WRONG"):
                wrong += 1
                print(f"{name}: {line}", flush=True)
        told = ", ".join(f"{what}: {n}" for what, n in counts.most_common())
        yield Row(f"a bit of {FILES[name]}", len(flipped), told, wrong)


FILES = {
    "book.json": "a ledger",
    "old.json": "a release's record",
    "each.json": "the record of a release for each subject",
    "each.csv": "its table of values",
    "m.json": "a model",
}

TEXTS = {"created", "warnings", "assumptions", "not_promised", "promise", "software", "release", "origin", "fitted_on"}
TEXTS |= {"theta.origin", "ledger.theta_origin", "data.base.source"}
"""Fields in which another text changes nothing that is promised: notes, names of files, and when."""


def _flip(name: str, content: bytes, flipped: list[tuple[int, int]]) -> None:
    path = Path(name)
    for at, bit in flipped:
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        try:
            found = _opened(name)
        except PufferfishError as error:
            one = str(error).isprintable()
            print("refused in one line" if one else f"WRONG, several lines|{error!r}")
            continue
        where = list(_different(json.loads(content), json.loads(path.read_bytes())))
        if not where:
            print("the same record to six digits")
        elif all(any(field == text or field.startswith(f"{text}.") for text in TEXTS) for field in where):
            print("a note, a name of a file or the date differs, the promise is the same")
        elif name == "m.json" and where == ["states"] and _strange(found):
            print("another name of a state, under which the table is refused")
        elif name != "m.json" and not _verified(name):
            print("`pufferfish verify` finds it")
        else:
            print(f"WRONG: read|{', '.join(where)}: {content[at - 30 : at + 10]!r} bit {bit}")


def _verified(name: str) -> bool:
    try:
        return pf.verify(name, ledger="book.json", model="m.json", table="table.csv").holds
    except PufferfishError:
        return False


def _strange(model: pf.Model) -> bool:
    """Whether the table has states that a model lacks."""
    try:
        pf.read_sequences("table.csv", "activity", subject="id", states=model.theta.states)
    except PufferfishError:
        return True
    return False


def _opened(name: str) -> Any:
    if name == "book.json":
        return pf.Ledger.open(name)
    if name == "m.json":
        return pf.read_model(name)
    if name == "old.json":
        return pf.Release.from_json(name)
    return pf.EachRelease.from_json("each.json").read_table("each.csv")


def _different(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield the fields in which two records differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from _different(one.get(key), other.get(key), f"{path}.{key}" if path else key)
    elif one != other and not (isinstance(one, float) and one == pytest.approx(other, rel=1e-6, abs=0)):
        yield path


# -- the table ------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[Path, bool], Iterator[Row]]] = {
    "killed": killed,
    "at-once": at_once,
    "disks": disks,
    "engines": engines,
    "clock": clock,
    "flips": flips,
}

ELSEWHERE = """
## In the usual tests

| fault | test |
|---|---|
| a Spark worker that is killed while a table is read | `tests/contract/test_spark.py::test_a_worker_that_is_killed_changes_nothing` |
| a program killed at each step of a release with a ledger | `tests/unit/ledger/test_ledger_processes.py` |
| a release for each subject killed at each step | `tests/unit/release/test_release_each.py::test_a_killed_release_is_booked_once_and_drawn_once` |
| a program killed that makes one release after another | `tests/unit/cli/test_cli_files.py::test_programs_killed_at_any_moment` |
| killed between the steps in which a file takes its name | `tests/unit/files/test_files.py::test_a_killed_program_leaves_no_empty_file` |
| Ctrl-C at any moment | `tests/unit/cli/test_cli_files.py::test_ctrl_c_at_any_moment_loses_nothing_that_is_spent` |
| four programs on one ledger | `tests/unit/ledger/test_ledger_processes.py::test_four_programs_at_once_spend_one_budget` |
| a disk that is full | `tests/unit/cli/test_cli_files.py::test_on_a_disk_that_is_full` |
| a clock that is set back | `tests/unit/release/test_verify.py::test_a_clock_that_is_set_back_spoils_no_release` |
| every bit of a ledger | `tests/unit/ledger/test_ledger_files.py::test_every_bit_counts` |
| an experiment that is killed goes on | `tests/unit/experiments/test_running.py` |
"""  # noqa: E501


def page(rows: list[Row]) -> str:
    """Return the page of what was tried."""
    lines = [
        "# Faults",
        "",
        "What happens when a program is killed, a disk is full, an engine breaks off, the clock is set back or a bit",
        "flips. Every trial runs in a process of its own, most of them a whole command; `make faults` runs them and",
        "writes this page. After each trial it is looked at that nothing was released unbooked, what is spent never",
        "falls, each file is absent, as before, or whole, no hidden file stays, and the same command works again or",
        "says in one line what to do.",
        "",
        "| fault | trials | what came out | promises broken |",
        "|---|---|---|---|",
        *(f"| {row.what} | {row.trials} | {row.found} | {row.wrong} |" for row in rows),
        f"| together | {sum(row.trials for row in rows):,} | | {sum(row.wrong for row in rows)} |",
    ]
    return "\n".join(lines) + "\n" + ELSEWHERE


def run(*words: str) -> int:
    """Try all faults, or some parts; return how many promises are broken. Only all of them write the page."""
    for name in _COMMANDS:
        __import__(f"pufferfish.cli.{name}")
    quick, parts = "--quick" in words, [name for name in PARTS if name in words] or list(PARTS)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in parts:
            for row in PARTS[name](Path(folder) / name, quick):
                rows.append(row)
                print(f"{row.trials:>5} {row.what}: {row.found}; broken: {row.wrong}", flush=True)
    if not quick and len(parts) == len(PARTS):
        PAGE.write_text(page(rows))
    return sum(row.wrong for row in rows)


if __name__ == "__main__":
    sys.exit(min(run(*sys.argv[1:]), 1))
