"""What every trial starts from, the commands that write, and what must be true after each."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pufferfish as pf
from faults.processes import command, forked
from faults.rows import holds
from pufferfish.release.check import check_record
from pufferfish.release.record import release_in

__all__ = ["COMMANDS", "READING", "contents", "create", "look", "opened", "prepared", "release"]

READING = ["--state", "activity", "--subject", "id"]
BY_DAY = [*READING, "--time", "day", "--max-gap", "1d"]
PLAN = ["ledger", "plan", "grow.json", "--query", "count:active", "--up-to", "4"]
ROWS = "sqlite:///book.db"
WEEK = ["release", "days.csv", *BY_DAY, "--model", "m.json", "--query", "count:active", "--accept", "noise"]


def prepared(folder: Path) -> Path:
    """Make a table, a model, a ledger with an entry, and earlier files, in a folder."""
    folder.mkdir(parents=True)
    rows = [f"S{s},{['rest', 'active'][(m // 3 + s) % 2]}" for s in range(3) for m in range(40)]
    (folder / "table.csv").write_text("id,activity\n" + "\n".join(rows) + "\n")
    pf.write_model(
        pf.Model(theta=pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])), folder / "m.json"
    )
    days = [f"S{s},2024-01-{d + 1:02},{['rest', 'active'][(d // 3 + s) % 2]}" for s in range(3) for d in range(28)]
    (folder / "days.csv").write_text("id,day,activity\n" + "\n".join(days) + "\n")
    grows = ["ledger", "create", "grow.json", "--grows", "--model", "m.json", "--budget", "9", *BY_DAY]
    in_rows = create(ROWS, "50"), release("old-row.json", "--ledger", ROWS)
    for given in (create("book.json", "50"), release("old.json", "--ledger", "book.json"), grows, PLAN, *in_rows):
        code, said = forked(command(given), folder)
        holds(code == 0, said)
    return folder


def create(ledger: str, budget: str) -> list[str]:
    """Return the command line that makes a ledger."""
    made = ["ledger", "create", ledger, "--model", "m.json", "--budget", budget, "--table", "table.csv", *READING]
    return [*made, "--mechanism", "group-dp"]


def release(output: str, *more: str) -> list[str]:
    """Return the command line of a release."""
    given = [
        "--model",
        "m.json",
        "--mechanism",
        "group-dp",
        "--epsilon",
        "0.5",
        "--accept",
        "noise",
        "--output",
        output,
    ]
    return ["release", "table.csv", *READING, *given, *more]


COMMANDS = {
    "fit --output": ["fit", "table.csv", *READING, "--output", "new.json"],
    "fit --output --overwrite": ["fit", "table.csv", *READING, "--output", "m.json", "--overwrite"],
    "ledger create": create("new.json", "2"),
    "release --csv --plot": release("new.json", "--csv", "new.csv", "--plot", "new.svg"),
    "release --ledger": release("new.json", "--ledger", "book.json"),
    "ledger create sqlite:///": create("sqlite:///new.db", "2"),
    "release --ledger sqlite:///": release("new.json", "--ledger", ROWS),
    "release --ledger --overwrite": release("old.json", "--ledger", "book.json", "--overwrite"),
    "release --each-subject --ledger": release("each.csv", "--each-subject", "--ledger", "book.json"),
    "release --planned --ledger": [*WEEK, "--planned", "--ledger", "grow.json", "--output", "new.json"],
    "ledger plan": [*("count:rest" if part == "count:active" else part for part in PLAN[:-1]), "8"],
    "compare --plot": ["compare", "m.json", "--length", "40", "--epsilon", "1", "--plot", "new.svg"],
    "check --output": ["check", "m.json", "table.csv", *READING, "--accept", "public", "--output", "new.json"],
}
"""Every command that writes."""


def _release(path: Path) -> object:
    """Read a release of a query, wherever its values are; one for each subject may be unfinished."""
    record = release_in(path.read_bytes(), path.name)
    check_record(record)
    return record


SKIPPED = (".csv.pending", ".db", ".db-journal")
"""What is only read as a whole, or by its ledger."""

READERS: dict[str, Callable[[Path], object]] = {
    "pufferfish-model": pf.read_model,
    "pufferfish-ledger": pf.Ledger.open,
    "pufferfish-release": _release,
}


def opened(folder: Path, name: str) -> pf.Ledger:
    """Return a ledger of a folder, by its name or address there."""
    at = ROWS.partition("book")[0]
    return pf.Ledger.open(f"{at}{folder}/{name.removeprefix(at)}" if name.startswith(at) else folder / name)


def look(folder: Path, before: dict[str, bytes], spent: int) -> None:
    """Raise a Fault if a file is neither as before nor whole, or a release is not in the book."""
    books = [opened(folder, name) for name in ("book.json", "grow.json", ROWS)]
    for book in books:
        entries = book.entries
        holds(spent <= len(entries) <= spent + 1, f"{len(entries)} entries after {spent}")
        holds(all(one.spent <= two.spent for one, two in itertools.pairwise(entries)), "spent falls")
    known = {(entry.number, entry.previous) for book in books for entry in book.entries}
    for path in folder.iterdir():
        if path.suffix == ".lock" or path.name.startswith(".pufferfish-") or path.name.endswith(SKIPPED):
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
                holds((booked.entry, booked.previous) in known, f"{path.name} is released and not booked")
        if path.suffix == ".svg":
            holds(content.rstrip().endswith(b"</svg>"), f"{path.name} is cut")
        if path.suffix == ".csv":
            holds(content.endswith(b"\n") and len(content.splitlines()) in (3, 7), f"{path.name} is cut")


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}
