"""Disks that are full, or that cannot be written."""

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from faults.processes import command, forked
from faults.rows import Fault, Row, holds, wrong
from faults.trials import COMMANDS, contents, look, prepared

__all__ = ["disks"]

_ENDS = {0: "done", 1: "written in part, says so", 2: "refused, nothing spent"}
"""What exit codes say."""


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
    names = list(COMMANDS)
    for size in ("64k", "400k"):
        with disk(place / f"disk{size}", size) as small:
            if small is None:
                yield Row(f"a full disk of {size}", 0, "skipped: mounting is not allowed here")
                continue
            ends, broken, trials = Counter[str](), 0, 0
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
                        ends[_ENDS[code]] += 1
                    except Fault as fault:
                        broken += wrong(f"{name} on {size} with {room} kB left: {fault}")
                    for path in small.iterdir():
                        path.unlink()
            told = ", ".join(f"{end}: {n}" for end, n in sorted(ends.items()))
            yield Row(f"a disk of {size} with less and less room", trials, told, broken)
    with disk(place / "fixed", "4m") as small:
        if small is None:
            yield Row("a read-only disk", 0, "skipped: mounting is not allowed here")
            return
        shutil.copytree(good, small, dirs_exist_ok=True)
        before, broken = contents(small), 0
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        for name in names:
            code, said = forked(command(COMMANDS[name]), small)
            try:
                holds(code == 2 and ("Read-only" in said or "write-protected" in said), f"{code}: {said}")
                _one_line(said)
                holds(contents(small) == before, "something changed")
            except Fault as fault:
                broken += wrong(f"{name} on a read-only disk: {fault}")
        yield Row("a read-only disk", len(names), "refused, nothing changed", broken)


def _fill(filler: Any, small: Path, room: int) -> None:
    """Fill a disk but for so many kB."""
    status = os.statvfs(small)
    filler.write(bytes(max(0, status.f_bavail * status.f_frsize - room * 1024)))


def _check_disk(small: Path, before: dict[str, bytes], code: int, said: str) -> None:
    (small / "filler").unlink()
    end, told = forked(lambda: look(small, before, 1), small)
    holds(end == 0, told.strip().rpartition("\n")[2])
    holds(not list(small.glob(".pufferfish*")), "a hidden file stays")
    booked = len(json.loads((small / "book.json").read_bytes())["entries"])
    if code == 2:
        _one_line(said)
        holds(booked == 1, "refused, and spent")
        holds(_files(small) == {n: c for n, c in before.items() if not n.endswith(".lock")}, "refused, and written")
    else:
        errors = [line for line in said.splitlines() if not line.startswith("warning: ")]  # warnings come before
        holds(code == 0 or (code == 1 and errors[0].startswith("error: ")), f"{code}: {said}")


def _one_line(said: str) -> None:
    """What is printed ends in one line of error; compare and check print what they found before they write."""
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    holds(len(errors) == 1 and said.endswith(f"{errors[0]}\n"), said)


def _files(folder: Path) -> dict[str, bytes]:
    """Return what is in a folder but locks, which stay, and an empty file of SQLite, which is a ledger to be made."""
    there = contents(folder).items()
    return {name: content for name, content in there if not name.endswith(".lock") and (content or name != "new.db")}
