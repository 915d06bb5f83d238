"""Whole command lines: exit code 2 with one line and nothing written, or what was asked is done."""

import json
import os
import random
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from click.testing import CliRunner

from fuzz.mutation import of_text
from fuzz.target import Accepted, Target, scratch

__all__ = ["TARGET"]

_LEDGERED = ["--epsilon", "1", "--ledger", "book.json", "--accept", "noise"]
_READ = ["--state", "state", "--subject", "id", "--time", "t"]
_PAIRS = {
    "--state": ["state", "id", "n", "nowhere", ""],
    "--subject": ["id", "t", "state", "nowhere"],
    "--time": ["t", "n", "id"],
    "--max-gap": ["10min", "1s", "0", "-1h", "1e9h", "soon", "10"],
    "--step": ["1min", "0", "2 min", "x"],
    "--bins": ["0,5,10", "0,...,10", "5,0", "0,1,...,1000000000", "nan,1", ""],
    "--where": ["n > 3", "state == 'rest'", "n >", "not n"],
    "--missing": ["unobserved", "split", "refuse", "x"],
    "--gaps": ["unobserved", "independent", ""],
    "--by": ["n", "hour", "id", "hour,n", ","],
    "--model": ["model.json", "net.bif", "book.json", "table.csv", "absent", "/dev/zero", "."],
    "--query": [
        "histogram",
        "count:rest",
        "count:",
        "mean:0,1",
        "sum:rest=1,*=2",
        "transitions",
        "quantiles:.5",
        "cdf",
        "marginals",
        "x",
    ],
    "--epsilon": ["1", "0", "-1", "nan", "1e999", "1e-300", "1e18", "x", ""],
    "--accuracy": ["1", "0.01", "0", "1e-30", "1e30", "nan"],
    "--alpha": ["0.05", "0", "1", "2"],
    "--noise": ["equal", "best", "x"],
    "--accept": ["noise", "public", "x"],
    "--up-to": ["1", "9", "0", "1e9"],
    "--mechanism": [
        "propagation",
        "mqm-exact",
        "mqm-approx",
        "gk16",
        "entry-dp",
        "group-dp",
        "markov-quilt",
        "wasserstein",
        "exact-laplace",
        "x",
    ],
    "--secrets": ["rain", "wet,rain", "x", ""],
    "--columns": ["rain", "wet", "rain,rain", "x"],
    "--output": [
        "new.json",
        "release.json",
        "table.csv",
        "book.json",
        "values.csv",
        "absent/x.json",
        ".",
        "",
        "-",
        "/dev/null",
    ],
    "--csv": ["new.csv", "table.csv", "new.json"],
    "--ledger": ["book.json", "release.json", "absent.json"],
    "--length": ["5", "1,2,3", "0", "-1", "99999999999999999999", "1e3", "x", "1000"],
    "--budget": ["1", "0", "1e999", "x"],
    "--table": ["table.csv", "rows.csv", "absent", "."],
    "--confidence": ["0.95", "0", "1", "2", "1e-300"],
    "--smoothing": ["0", "1", "-1", "1e300"],
    "--values": ["table.csv", "absent.csv"],
    "--order": ["2", "0", "9", "x"],
    "--clock": ["hour", "weekday", "x"],
    "--forgets": ["2min", "0", "x"],
}
_FLAGS = [
    "--valid",
    "--overwrite",
    "--each-subject",
    "--help",
    "--version",
    "-h",
    "--",
    "-",
    "--x",
]
_FILES = ["table.csv", "rows.csv", "model.json", "net.bif", "book.json", "release.json", "absent.csv", ".", "/dev/zero"]
_COMMANDS = ["fit", "check", "compare", "release", "show", "verify", "ledger", "robustness", "create", "fits"]


@cache
def seeds() -> list[bytes]:
    lines = [
        ["fit", "table.csv", *_READ, "--output", "new.json"],
        ["fit", "table.csv", *_READ, "--confidence", "0.95", "--output", "new.json"],
        ["fit", "table.csv", *_READ, "--forgets", "2min", "--output", "new.json"],
        ["fit", "table.csv", *_READ, "--each-subject", "--output", "new.json"],
        ["check", "model.json", "table.csv", *_READ, "--accept", "public"],
        ["compare", "model.json", "--length", "20", "--query", "histogram", "--epsilon", "1"],
        ["compare", "net.bif", "--columns", "rain", "--query", "marginal-counts", "--epsilon", "1"],
        [
            "release",
            "table.csv",
            *_READ,
            "--model",
            "model.json",
            "--epsilon",
            "1",
            "--accept",
            "noise",
            "--output",
            "new.json",
        ],
        [
            "release",
            "table.csv",
            *_READ,
            "--model",
            "model.json",
            *_LEDGERED,
            "--output",
            "new.json",
        ],
        [
            "release",
            "table.csv",
            *_READ,
            "--model",
            "model.json",
            "--epsilon",
            "1",
            "--each-subject",
            "--accept",
            "noise",
            "--output",
            "values.csv",
        ],
        [
            "release",
            "table.csv",
            *_READ,
            "--by",
            "n",
            "--model",
            "model.json",
            "--accuracy",
            "9",
            "--accept",
            "noise",
            "--output",
            "new.json",
            "--csv",
            "new.csv",
        ],
        [
            "release",
            "rows.csv",
            "--model",
            "net.bif",
            "--columns",
            "rain,wet",
            "--epsilon",
            "1",
            "--valid",
            "--accept",
            "noise",
            "--output",
            "new.json",
        ],
        ["ledger", "create", "new.json", "--model", "model.json", "--budget", "2", "--table", "table.csv", *_READ],
        ["ledger", "show", "book.json"],
        ["robustness", "model.json", "model.json", "--length", "5", "--epsilon", "1"],
        ["show", "release.json"],
        ["verify", "release.json", "--model", "model.json"],
    ]
    return [json.dumps(line).encode() for line in lines]


_words = of_text([word for words in _PAIRS.values() for word in words])


def mutate(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    try:
        line = [str(word) for word in json.loads(data)]
    except (ValueError, TypeError):
        line = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        at, way = rng.randrange(len(line) + 1), rng.randrange(8)
        if way <= 2:
            name = rng.choice([*_PAIRS])
            if name in line and rng.random() < 0.8:
                line[line.index(name) + 1 : line.index(name) + 2] = [rng.choice(_PAIRS[name])]
            else:
                line[at:at] = [name, rng.choice(_PAIRS[name])]
        elif way == 3:
            line[at:at] = [rng.choice([*_FLAGS, *_FILES, *_COMMANDS])]
        elif way == 4:
            del line[at : at + rng.choice([1, 2])]
        elif way == 5:
            name = rng.choice([w for w in line if w in _PAIRS] or ["--epsilon"])
            if name in line:
                line[line.index(name) + 1 : line.index(name) + 2] = [rng.choice(rng.choice([*_PAIRS.values()]))]
        elif way == 6 and at < len(line):
            line[at] = _words(line[at].encode(), rng, ()).decode("utf-8", "replace")
        elif others:
            line = line[:at] + [str(word) for word in json.loads(rng.choice(others))][at:]
    return json.dumps(line).encode()


@cache
def _files() -> dict[str, bytes]:
    """Return the files that commands find, made by commands."""
    from pufferfish.cli import main

    rows, others = (
        [
            f"S{s},2024-05-01 {8 + t // 60:02d}:{t % 60:02d}:00,{['rest', 'active'][(t // stay + s) % 2]},{t % 7}"
            for s in range(2)
            for t in range(30)
        ]
        for stay in (3, 4)
    )
    os.chdir(_empty())
    Path("table.csv").write_text("id,t,state,n\n" + "\n".join(rows) + "\n")
    Path("survey.csv").write_text("id,t,state,n\n" + "\n".join(others) + "\n")
    Path("rows.csv").write_text("rain,wet\n" + "yes,yes\nno,no\nno,yes\n" * 10)
    Path("net.bif").write_text(
        "network n { }\nvariable rain { type discrete [ 2 ] { yes, no }; }\n"
        "variable wet { type discrete [ 2 ] { yes, no }; }\n"
        "probability ( rain ) { table 0.2, 0.8; }\nprobability ( wet | rain ) { (yes) 0.9, 0.1; (no) 0.3, 0.7; }\n"
    )
    read = ["--model", "model.json", *_READ]
    for line in (
        ["fit", "survey.csv", *_READ, "--output", "model.json"],
        ["ledger", "create", "book.json", "--budget", "9", "--table", "table.csv", *read],
        [
            "release",
            "table.csv",
            *read,
            *_LEDGERED,
            "--output",
            "release.json",
        ],
    ):
        found = CliRunner().invoke(main, line)
        assert found.exit_code == 0, found.output
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.suffix != ".lock"}


def _empty() -> Path:
    folder = scratch() / "commands"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def one_input(data: bytes) -> None:
    from pufferfish.cli import main

    try:
        line = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(line, list) or not all(isinstance(word, str) for word in line) or not _harmless(line):
        return
    files, here = _files(), Path.cwd()
    folder = _empty()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    os.chdir(folder)
    try:
        result = CliRunner().invoke(main, line)
        now = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.suffix != ".lock"}
    finally:
        os.chdir(here)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code not in (0, 1, 2, 3):
        raise Accepted(f"exit code: {result.exit_code}")
    if "Traceback" in result.output:
        raise Accepted(f"traceback: {result.output[:300]!r}")
    if result.exit_code == 2 and not result.stdout.startswith("Usage") and not result.stderr.startswith("Usage"):
        lines = [said for said in result.stderr.strip().splitlines() if not said.startswith("warning: ")]
        if len(lines) != 1 or not lines[0].startswith("error: ") or len(lines[0]) > 1200:
            raise Accepted(f"message: not one line: {result.stderr[:500]!r}")
    if result.exit_code == 2 and now != files:
        changed = sorted(name for name in {*now, *files} if now.get(name) != files.get(name))
        raise Accepted(f"written: {changed} by a command that failed: {result.stderr[:300]!r}")
    kept = ("table.csv", "rows.csv", "net.bif")
    if any(now.get(name) != files[name] for name in kept):
        raise Accepted("replaced: a file of the user")


def _harmless(line: Sequence[str]) -> bool:
    """Whether a line reads and writes in its own folder only."""
    known = {"/dev/zero", "/dev/null", "absent/x.json"}
    outside = any(("/" in word or ".." in word.replace("...", "")) and word not in known for word in line)
    return not (outside or any(word.startswith("--spark") for word in line))


TARGET = Target("commands", seeds, one_input, mutate)
