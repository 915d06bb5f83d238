"""Bits of files that flip."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from faults.processes import command, forked
from faults.rows import DRAW, Row, holds
from faults.trials import COMMANDS, prepared
from pufferfish.errors import PufferfishError

__all__ = ["flips"]


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
        counts, broken = Counter[str](), 0
        for line in said.splitlines():
            counts[line.partition("|")[0]] += 1
            if line.startswith("WRONG"):
                broken += 1
                print(f"{name}: {line}", flush=True)
        told = "; ".join(f"{what}: {n}" for what, n in counts.most_common())
        yield Row(f"a bit of {FILES[name]}", len(flipped), told, broken)


FILES = {
    "book.json": "a ledger",
    "old.json": "a release's record",
    "each.json": "the record of a release for each subject",
    "each.csv": "its table of values",
    "m.json": "a model",
}

TEXTS = {"created", "warnings", "assumptions", "not_promised", "promise", "software", "origin", "fitted_on"}
TEXTS |= {"theta.origin", "ledger.theta_origin", "data.base.source", "subjects.release", "subjects.table.name"}
"""Fields in which another text changes nothing that is promised: notes, names of files, and when."""


def _flip(name: str, content: bytes, flipped: list[tuple[int, int]]) -> None:
    path = Path(name)
    for at, bit in flipped:
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        try:
            found = _opened(name)
        except PufferfishError as error:
            one = str(error).isprintable()
            print("refused" if one else f"WRONG, several lines|{error!r}")
            continue
        where = list(_different(json.loads(content), json.loads(path.read_bytes())))
        if not where:
            print("same record to six digits")
        elif all(any(field == text or field.startswith(f"{text}.") for text in TEXTS) for field in where):
            print("another note, file name or date, same promise")
        elif name == "m.json" and where == ["states"] and _strange(found):
            print("another state, the table is refused")
        elif name != "m.json" and not _verified(name):
            print("found by `verify`")
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
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for part, changed in zip(one, other, strict=True):
            yield from _different(part, changed, path)
    elif one != other and not (isinstance(one, float) and one == pytest.approx(other, rel=1e-6, abs=0)):
        yield path
