"""Tables of databases, named by an address, are read as the same rows in a file are."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from databases import lacking, postgresql

ROWS = pl.DataFrame(
    {
        "who": [f"p{i % 3}" for i in range(600)],
        "at": [datetime(2026, 3, 1) + timedelta(minutes=i // 3 + 10 * (i > 300)) for i in range(600)],
        "state": [("rest", "walk", "run")[(i * i // 7) % 3] for i in range(600)],
        "sex": ["f" if i % 3 else "m" for i in range(600)],
    }
).sample(fraction=1, shuffle=True, seed=4)
READING: dict[str, Any] = {"subject": "who", "time": "at", "max_gap": "1min", "by": ["hour(at)", "sex"]}
EXPECTED = pf.read_sequences(ROWS.sort("at", "who"), "state", **READING)


def in_sqlite(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "clinic.db")) as held:
        held.execute('CREATE TABLE "the steps" (who TEXT, at TEXT, state TEXT, sex TEXT)')
        rows = [(who, str(at), *more) for who, at, *more in ROWS.iter_rows()]
        held.executemany('INSERT INTO "the steps" VALUES (?, ?, ?, ?)', rows)
        held.execute('CREATE VIEW walks AS SELECT * FROM "the steps"')
        held.commit()
    return f"sqlite:///{folder / 'clinic.db'}?table=the+steps"


def in_duckdb(folder: Path) -> str:
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect(str(folder / "clinic.duckdb"))) as held:
        held.register("rows", ROWS.to_arrow())
        held.execute("CREATE TABLE steps AS SELECT * FROM rows")
    return f"duckdb:///{folder / 'clinic.duckdb'}?table=main.steps"


@pytest.fixture
def server() -> Iterator[str]:
    if lacking() is not None:
        pytest.skip(str(lacking()))
    with postgresql() as address:
        import psycopg

        with psycopg.connect(address) as held, held.cursor() as cursor:
            cursor.execute("CREATE TABLE steps (who text, at timestamp, state text, sex text)")
            cursor.executemany("INSERT INTO steps VALUES (%s, %s, %s, %s)", list(ROWS.iter_rows()))
        yield f"{address}&table=public.steps"


def same(address: str) -> None:
    found = pf.read_sequences(address, "state", **READING)
    assert found.length == EXPECTED.length
    assert [row.tolist() for row in found.counts] == [row.tolist() for row in EXPECTED.counts]
    assert found.groups is not None
    assert EXPECTED.groups is not None
    assert found.groups.cells == EXPECTED.groups.cells
    assert found.groups.counts["state"].tolist() == EXPECTED.groups.counts["state"].tolist()
    assert found.fingerprint == EXPECTED.fingerprint
    assert pf.columns(address) == ROWS.columns


@pytest.mark.parametrize("make", [in_sqlite, in_duckdb])
def test_a_table_in_a_file_of_a_database(make: Callable[[Path], str], tmp_path: Path) -> None:
    same(make(tmp_path))


def test_a_table_of_postgresql(server: str, tmp_path: Path) -> None:
    same(server)
    found = pf.read_sequences(server.replace("office@", "office:secret@"), "state", **READING)
    assert found.base.source == "table public.steps of postgres"
    with pytest.raises(pf.DataError, match="column 'nothing'"):
        pf.read_sequences(server, "nothing")


def test_how_a_value_is_read_depends_on_no_other_value(tmp_path: Path) -> None:
    """SQLite gives each value a type of its own: one of another type makes nobody else's another state."""
    counts = []
    for last in (1, 2.5, "x"):
        with closing(sqlite3.connect(tmp_path / f"{last}.db")) as held:
            held.execute("CREATE TABLE steps (at, state)")
            held.executemany("INSERT INTO steps VALUES (?, ?)", [(i, i % 2) for i in range(20)] + [(20, last)])
            held.commit()
        found = pf.read_sequences(f"sqlite:///{tmp_path / f'{last}.db'}?table=steps", "state", time="at", max_gap=1)
        counts.append(dict(zip(found.states, found.counts[0].tolist(), strict=True)))
    assert counts == [{"0": 10, "1": 11}, {"0": 10, "1": 10, "2.5": 1}, {"0": 10, "1": 10, "x": 1}]


def test_commands_read_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_sqlite(tmp_path)
    monkeypatch.chdir(tmp_path)
    address, reading = "sqlite:///clinic.db?table=walks", ["--state", "state", "--subject", "who", "--time", "at"]
    reading += ["--max-gap", "1min"]
    assert run("fit", address, *reading, "--output", "model.json").exit_code == 0
    assert "table walks of clinic.db" in pf.read_model("model.json").theta.origin
    asked = ["--model", "model.json", "--epsilon", 1, "--accept", "public", "--output", "release.json"]
    done = run("release", address, *reading, *asked)
    assert done.exit_code == 0, done.output
    assert run("verify", "release.json", "--table", address).exit_code == 0
    made = run("init", address, *reading, "--model", "model.json", "--budget", 2)
    assert made.exit_code == 0, made.output
    assert 'path = "sqlite:///clinic.db?table=walks"' in Path("pufferfish.toml").read_text()
    assert run("ledger", "create", "--accept", "public").exit_code == 0
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    below = run("--project", "..", "release", "--epsilon", 0.5, "--accept", "public", "--accept", "noise")
    assert below.exit_code == 0, below.output


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("sqlite:///clinic.db", "names no table"),
        ("sqlite://host/clinic.db?table=walks", "names no file"),
        ("sqlite:///none.db?table=walks", "there is no such file"),
        ("sqlite:///clinic.db?table=nothing", "table nothing of clinic.db cannot be read: no such table"),
        ("mysql://host/clinic?table=walks", "only local files are read"),
    ],
)
def test_what_is_no_table_is_one_line(address: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_sqlite(tmp_path)
    monkeypatch.chdir(tmp_path)
    refused("fit", address, "--state", "state", "--output", "model.json", says=[says])
