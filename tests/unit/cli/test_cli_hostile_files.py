"""Hostile files in the place of every file that any command reads: one line, exit code 2, little time and memory.

Nesting and lines without end, packed zeros, numbers of a million digits, noise, devices, pipes, folders.
"""

import gzip
import itertools
import os
import sys
from pathlib import Path

import pytest

import pufferfish as pf
from commands import refused, run

READ = ["--state", "state"]
FORMATS = ["model", "release", "ledger", "each-subject", "measurement"]
MEMORY = 2**30
"""Bytes; the largest of these files, unpacked, is larger than what a command may need."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("state\n" + "rest\nrest\nactive\n" * 20)
    pf.write_model(pf.Model(theta=pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["active", "rest"])), "model.json")
    create = ["--model", "model.json", "--table", "table.csv", *READ, "--mechanism", "group-dp", "--budget", 9]
    assert run("ledger", "create", "book.json", *create).exit_code == 0
    made = [
        "--model",
        "model.json",
        "--mechanism",
        "group-dp",
        "--epsilon",
        1,
        "--accept",
        "noise",
        "--output",
        "release.json",
    ]
    assert run("release", "table.csv", *READ, *made).exit_code == 0
    return tmp_path


def places() -> dict[str, tuple[str, list[str]]]:
    """Return for each file that a command reads what kind it is of, and the command; FILE stands for it."""
    spend = ["--epsilon", "1", "--mechanism", "group-dp", "--output", "new.json"]
    create = ["ledger", "create", "new.json", "--budget", "1"]
    return {
        "fit": ("table", ["fit", "FILE", *READ, "--output", "new.json"]),
        "check, model": ("record", ["check", "FILE", "table.csv", *READ, "--accept", "public"]),
        "check, table": ("table", ["check", "model.json", "FILE", *READ, "--accept", "public"]),
        "compare": ("record", ["compare", "FILE", "--length", "5", "--epsilon", "1"]),
        "compare, table": ("table", ["compare", "model.json", "--table", "FILE", *READ, "--epsilon", "1"]),
        "release": ("table", ["release", "FILE", *READ, "--model", "model.json", *spend]),
        "release, model": ("record", ["release", "table.csv", *READ, "--model", "FILE", *spend]),
        "release, ledger": (
            "record",
            ["release", "table.csv", *READ, "--model", "model.json", *spend, "--ledger", "FILE"],
        ),
        "ledger create, model": ("record", [*create, "--model", "FILE", "--table", "table.csv", *READ]),
        "ledger create, table": ("table", [*create, "--model", "model.json", "--table", "FILE", *READ]),
        "ledger show": ("record", ["ledger", "show", "FILE"]),
        "robustness, model": ("record", ["robustness", "FILE", "model.json", "--length", "5"]),
        "robustness, belief": ("record", ["robustness", "model.json", "FILE", "--length", "5"]),
        "show": ("record", ["show", "FILE"]),
        "verify": ("record", ["verify", "FILE"]),
        "verify, model": ("record", ["verify", "release.json", "--model", "FILE"]),
        "verify, ledger": ("record", ["verify", "release.json", "--ledger", "FILE"]),
        "verify, table": ("table", ["verify", "release.json", "--table", "FILE"]),
    }


def hostile(kind: str) -> list[str]:
    """Make hostile files, and return their names."""
    found = [".", "/dev/zero", "/dev/random"]
    packed = gzip.compress(bytes(2**26))
    if kind == "table":
        contents = {
            "long.csv": b"state\nrest\n" + b"x" * (2 * 10**6),
            "head.csv": b"x" * (2 * 10**6) + b"\nrest\n",
            "quote.csv": b'state\n"' + b"rest\n" * 10**5,
            "line.csv.gz": gzip.compress(b"state\nrest\n" + b"x" * (2 * 10**6)),
            "zeros.csv.gz": packed,
            "rows.csv.gz": gzip.compress(b"state\nrest\n") + packed,
            "zeros.csv": bytes(10**6),
            "noise.csv": os.urandom(10**5),
            "noise.parquet": os.urandom(10**5),
            "zeros.parquet": b"PAR1" + bytes(10**5) + b"PAR1",
            "wide.csv": b",".join(b"c%d" % i for i in range(50_000)) + b"\n",
        }
        special = ["pipe.csv", "pipe.parquet"]
    else:
        heads = {
            name: b'{"format": "pufferfish-%s", "version": %d, "theta": ' % (name.encode(), v)
            for name in FORMATS
            for v in [2 if name == "ledger" else 1]
        }
        contents = {
            "nested.json": b"[" * 10**6,
            "closed.json": b"[" * 10**5 + b"]" * 10**5,
            **{f"deep-{name}.json": head + b"[" * 10**5 for name, head in heads.items()},
            **{f"objects-{name}.json": head + b'{"a":' * 10**4 for name, head in heads.items()},
            **{f"long-{name}.json": head + b'"' + b"x" * 10**7 + b'"}' for name, head in heads.items()},
            **{f"digits-{name}.json": head + b"9" * 10**6 + b"}" for name, head in heads.items()},
            "zeros.json": bytes(10**6),
            "noise.json": os.urandom(10**5),
            "packed.json": packed,
            "zeros.bif.gz": gzip.compress(bytes(2**22)),
            "long.bif": b"network x { property " + b"a" * 10**6,
            "comment.bif": b"/*" * 10**6,
            "braces.bif": b"network x " + b"{" * 10**6,
        }
        special = ["pipe.json", "pipe.bif"]
    for name, content in contents.items():
        Path(name).write_bytes(content)
    for name in special:
        if hasattr(os, "mkfifo") and not Path(name).exists():
            os.mkfifo(name)
            found.append(name)
    links = {"table": "zero.csv", "record": "zero.json"}
    if not os.path.lexists(links[kind]):
        Path(links[kind]).symlink_to("/dev/zero")
    Path(f"folder-{links[kind]}").mkdir(exist_ok=True)
    return [*found, *contents, links[kind], f"folder-{links[kind]}"]


@pytest.mark.skipif(sys.platform == "win32", reason="devices and limits of Unix")
def test_hostile_files_are_one_line_in_every_place(folder: Path, slow: bool) -> None:
    """With --slow every file in every place, else in turn a quarter of them."""
    import resource

    files = {kind: hostile(kind) for kind in ("table", "record")}
    kept = {
        path: path.read_bytes()
        for path in folder.iterdir()
        if path.is_file() and path.suffix in (".csv", ".json") and not path.is_symlink()
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    every = 1 if slow else 4
    turn = itertools.cycle(range(every))
    for kind, command in places().values():
        for name in files[kind][next(turn) :: every]:
            line = refused(*(name if word == "FILE" else word for word in command))
            assert len(line) < 1100, line
            assert not Path("new.json").exists(), command
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MEMORY
    assert all(path.read_bytes() == content for path, content in kept.items())
    assert pf.Ledger.open("book.json").entries == ()


def test_a_line_that_does_not_end_is_refused_before_it_is_read(folder: Path) -> None:
    """However it is packed; a line of just as many bytes as may be is read."""
    most, line = 10**6, b"state\nrest\n" + b"x" * 10**6 + b"\nactive\n"
    for name, content in {"t.csv": line, "t.csv.gz": gzip.compress(line), "t.tsv": line}.items():
        Path(name).write_bytes(content)
        assert pf.read_sequences(name, "state").records == 3
    for rest in (b"\nrest\n", b""):
        line = b"state\nrest\n" + b"x" * (most + 1) + rest
        for name, content in {"t.csv": line, "t.csv.gz": gzip.compress(line), "t.tsv": line}.items():
            Path(name).write_bytes(content)
            with pytest.raises(
                pf.DataError, match=r"a line of t\..* has more than 1,000,000 bytes \(it begins at byte 11"
            ):
                pf.read_sequences(name, "state")
