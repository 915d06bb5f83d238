"""Every command that writes, killed before each of its calls of the system, and at random times."""

import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from faults.processes import command, dying, forked
from faults.rows import DRAW, Fault, Row, holds, wrong
from faults.trials import COMMANDS, READING, contents, look, opened, prepared

__all__ = ["killed"]

RANDOM = 4
"""Times at which each command is killed besides, wherever it is then."""


def killed(place: Path, quick: bool) -> Iterator[Row]:
    """Kill every command before each call of the system by which it writes, and at random times."""
    good = prepared(place / "good")
    before = contents(good)
    for name, arguments in COMMANDS.items():
        count = place / "count"
        for _ in range(2):  # the first time may also write what is kept for later programs, such as machine code
            start = time.monotonic()
            shutil.copytree(good, place / "dry")
            code, said = forked(dying(command(arguments), -1, count), place / "dry")
            seconds = time.monotonic() - start
            holds(code == 0, f"{name}: {said}")
            shutil.rmtree(place / "dry")
        calls = range(1, int(count.read_text()) + 1)
        trials: list[int | float] = [*(DRAW.sample(calls, min(3, len(calls))) if quick else calls)]
        trials += [DRAW.uniform(0, seconds) for _ in range(1 if quick else RANDOM)]
        ends, broken = Counter[str](), 0
        for trial in trials:
            folder = place / "trial"
            shutil.copytree(good, folder)
            try:
                ends[_killed(folder, arguments, trial, before)] += 1
            except Fault as fault:
                broken += wrong(f"{name}, killed at {trial}: {fault}")
            shutil.rmtree(folder)
        told = ", ".join(f"{end} {n}" for end, n in sorted(ends.items()))
        what = f"`{name}`, killed before each of its {len(calls)} calls"
        yield Row(what, len(trials), told, broken)


def _killed(folder: Path, arguments: list[str], trial: float, before: dict[str, bytes]) -> str:
    if isinstance(trial, int):
        end, said = forked(dying(command(arguments), trial), folder)
        holds(end == -signal.SIGKILL, f"ended with {end}: {said}")
    else:
        end, said = forked(command(arguments), folder, kill_after=trial)
    code, told = forked(lambda: look(folder, before, 1), folder)
    holds(code == 0, told.strip().rpartition("\n")[2])
    shown = "discrete Laplace noise" in said and "--ledger" in arguments
    code, said = forked(command(arguments), folder)
    if code:  # it was refused, and writes nothing: the next command that writes sweeps
        forked(command(["fit", "table.csv", *READING, "--output", "next.json"]), folder)
    book = arguments[arguments.index("--ledger") + 1] if "--ledger" in arguments else "book.json"
    booked = len(opened(folder, book).entries)
    if shown:
        holds(booked >= 2, "values were shown and not booked")
    if "--each-subject" in arguments:
        holds(booked == 2, f"one release for each subject has {booked - 1} entries")
    holds(not list(folder.glob(".pufferfish*")), "a hidden file stays")
    holds(not list(folder.glob("*.pending")), "a pending file stays")
    if code == 0:
        return "works again:"
    holds(code == 2 and said.startswith("error: ") and said.count("\n") == 1, said)
    finished = ("exists", "is never replaced", "is already planned", "are spent", "were already read")
    holds(any(words in said for words in finished), said)
    return "had finished:"
