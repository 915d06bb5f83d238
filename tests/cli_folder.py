"""A folder with a table, a model, a ledger and a release, made by commands; its fixtures are those of ``cli``."""

from pathlib import Path

import commands
import pufferfish as pf
from commands import run

__all__ = ["READING", "contents", "make", "refused", "release", "spent"]

READING = ["--state", "activity"]


def refused(*arguments: object, code: int = 2) -> str:
    line = commands.refused(*arguments, code=code)
    assert len(line) < 1000
    assert "cannot write cannot" not in line
    return line


def release(output: object, *options: object) -> list[object]:
    given = [
        "--model",
        "model.json",
        "--mechanism",
        "group-dp",
        "--epsilon",
        1,
        "--accept",
        "noise",
        "--output",
        output,
    ]
    return ["release", "table.csv", *READING, *given, *options]


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and p.suffix != ".lock"}


def spent(folder: Path) -> int:
    return len(pf.Ledger.open(folder / "book.json").entries)


def make() -> None:
    """Make the files in the folder that the commands run in."""
    Path("table.csv").write_text("activity\n" + "rest\nrest\nactive\n" * 20)
    chain = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["active", "rest"])
    pf.write_model(pf.Model(theta=chain), "model.json")
    create = ["--model", "model.json", "--table", "table.csv", *READING, "--mechanism", "group-dp", "--budget", 9]
    assert run("ledger", "create", "book.json", *create).exit_code == 0
    assert run(*release("release.json"), "--plot", "release.png").exit_code == 0
