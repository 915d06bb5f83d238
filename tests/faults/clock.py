"""A clock that is set back."""

import datetime
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pufferfish as pf
from faults.processes import forked
from faults.rows import DRAW, Row, holds, wrong
from faults.trials import prepared, release
from pufferfish._base import durations
from pufferfish.cli import main

__all__ = ["clock"]


def clock(place: Path, quick: bool) -> Iterator[Row]:
    """Every look at the clock may be earlier than the one before, by up to ten years."""
    folder, releases = prepared(place / "good"), 3 if quick else 25

    def run() -> None:
        class Clock(datetime.datetime):
            @classmethod
            def now(cls, tz: Any = None) -> Any:
                return datetime.datetime.now(tz) - datetime.timedelta(seconds=DRAW.uniform(0, 3e8))

        durations.datetime = Clock
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
    broken = wrong(f"clock: {said[-500:]}") if code else 0
    found = "all released, booked in order and verified"
    yield Row("releases by a clock that jumps back and forth by years", releases, found, broken)
