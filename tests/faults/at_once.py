"""Many command lines that spend one budget at the same moment."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pufferfish as pf
from databases import lacking, postgresql
from faults.processes import command, ended, forked, started
from faults.rows import Fault, Row, holds, wrong
from faults.trials import create, prepared, release
from pufferfish.cli import main

__all__ = ["at_once"]


def at_once(place: Path, quick: bool) -> Iterator[Row]:
    """Many command lines spend one budget at the same moment, in a file and in databases."""
    good = prepared(place / "good")
    yield _spending("a ledger in a file", good, lambda folder: str(folder / "tight.json"), quick)
    yield _spending("in SQLite", good, lambda folder: f"sqlite:///{folder}/tight.db", quick)
    if lacking() is None:
        with postgresql() as address:
            yield _spending("in PostgreSQL", good, lambda folder: f"{address}#{folder.name}", quick)


def _spending(kept: str, good: Path, ledger_in: Callable[[Path], str], quick: bool) -> Row:
    programs, rounds = (4, 1) if quick else (8, 8)
    broken, done, refused = 0, 0, 0
    for number in range(rounds):
        folder = good.parent / f"round{number}"
        shutil.copytree(good, folder)
        ledger = ledger_in(folder)
        code, said = forked(command(create(ledger, "1.7")), folder)
        holds(code == 0, said)

        def spend(i: int, folder: Path = folder, ledger: str = ledger) -> None:
            while not (folder / "go").exists():
                time.sleep(0.001)
            main.main(release(f"r{i}.json", "--ledger", ledger))

        children = [started(lambda i=i: spend(i), folder, folder / f"said{i}.txt") for i in range(programs)]
        (folder / "go").touch()
        codes = [ended(child) for child in children]
        book = pf.Ledger.open(ledger)
        released = [pf.Release.from_json(path) for path in folder.glob("r*.json")]
        try:
            holds(set(codes) <= {0, 2}, f"exit codes {codes}")
            holds(len(book.entries) == codes.count(0) == len(released) == 3, f"{len(book.entries)} of {codes}")
            holds(sorted(r.ledger.entry for r in released if r.ledger) == [1, 2, 3], "entries")
            holds(book.spent <= 1.7 and abs(book.spent - 1.5) < 1e-9, f"spent {book.spent}")
        except Fault as fault:
            broken += wrong(f"at once, {kept}: {fault}")
        done, refused = done + codes.count(0), refused + codes.count(2)
        shutil.rmtree(folder)
    what = f"{programs} command lines at once, {rounds} times: {kept}"
    found = f"{done} released (3 each time), {refused} refused"
    return Row(what, programs * rounds, found, broken)
