"""Many command lines that spend one budget at the same moment."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pufferfish as pf
from faults.processes import command, ended, forked, started
from faults.rows import Fault, Row, holds, wrong
from faults.trials import create, prepared, release
from pufferfish.cli import main

__all__ = ["at_once"]


def at_once(place: Path, quick: bool) -> Iterator[Row]:
    """Many command lines spend one budget at the same moment."""
    programs, rounds = (4, 1) if quick else (8, 8)
    good, broken, done, refused = prepared(place / "good"), 0, 0, 0
    for number in range(rounds):
        folder = place / f"round{number}"
        shutil.copytree(good, folder)
        holds(forked(command(create("tight.json", "1.7")), folder)[0] == 0, "no ledger")

        def spend(i: int, folder: Path = folder) -> None:
            while not (folder / "go").exists():
                time.sleep(0.001)
            main.main(release(f"r{i}.json", "--ledger", "tight.json"))

        children = [started(lambda i=i: spend(i), folder, folder / f"said{i}.txt") for i in range(programs)]
        (folder / "go").touch()
        codes = [ended(child) for child in children]
        book = pf.Ledger.open(folder / "tight.json")
        released = [pf.Release.from_json(path) for path in folder.glob("r*.json")]
        try:
            holds(set(codes) <= {0, 2}, f"exit codes {codes}")
            holds(len(book.entries) == codes.count(0) == len(released) == 3, f"{len(book.entries)} of {codes}")
            holds(sorted(r.ledger.entry for r in released if r.ledger) == [1, 2, 3], "entries")
            holds(book.spent <= 1.7 and abs(book.spent - 1.5) < 1e-9, f"spent {book.spent}")
        except Fault as fault:
            broken += wrong(f"at once: {fault}")
        done, refused = done + codes.count(0), refused + codes.count(2)
        shutil.rmtree(folder)
    what = f"{programs} command lines at once, each 0.5 of a budget of 1.7, {rounds} times"
    yield Row(
        what, programs * rounds, f"{done} released and booked (3 each time), {refused} refused, none lost", broken
    )
