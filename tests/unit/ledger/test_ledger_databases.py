"""Ledgers in SQL databases: the same books as in files, rows that nobody changes, and programs that are killed."""

import datetime as dt
import hashlib
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from databases import lacking, postgresql
from network_ledgers import LINE
from pufferfish.errors import BudgetExceeded, ParameterError, RecordError
from pufferfish.fit.model_file import write_model
from pufferfish.ledger.book import Entry
from pufferfish.ledger.kept import BookDatabase, shown_address

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["a", "b"])
COIN = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["a", "b"])
BEGIN = dt.date(2024, 1, 1)
READING = {"state": "state", "subject": "who", "time": "day", "max_gap": "1d", "step": "1d"}
KINDS = ["sqlite", "postgresql"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    if reason := lacking():
        pytest.skip(reason)
    with postgresql() as address:
        yield address


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'book.db'}"
    return f"{request.getfixturevalue('server')}#{tmp_path.name}"


def rows(address: str, statement: str) -> list[tuple[Any, ...]]:
    """Return what the database itself answers its administrator; nothing where a statement returns no rows."""
    place = address.removeprefix("sqlite:///").partition("#")[0]
    if address.startswith("sqlite"):
        connection = sqlite3.connect(place, isolation_level=None)
    else:
        connection = pytest.importorskip("psycopg").connect(place, autocommit=True)
    with closing(connection):
        done = connection.execute(statement)
        return [] if done.description is None else done.fetchall()


def name_in(address: str) -> str:
    return address.partition("#")[2] or "ledger"


def table(days: dict[Any, list[int]]) -> pl.DataFrame:
    rows = [(who, BEGIN + dt.timedelta(days=n), "ab"[n % 2]) for who, some in days.items() for n in some]
    return pl.DataFrame(rows, schema=["who", "day", "state"], orient="row")


def said(entry: Entry) -> tuple[Any, ...]:
    """All of an entry but what is drawn at random, and when it was made."""
    return tuple(
        getattr(entry, name) for name in entry.__struct_fields__ if name not in ("nonce", "previous", "created")
    )


def chain_ledger(where: str | Path) -> pf.Ledger:
    ledger = pf.Ledger(pf.LeakagePropagation(CHAIN, [100, 50]), 5.0)
    ledger.spend(0.01)
    ledger.save(where)
    ledger.spend(ledger.bound.calibrate(pf.Histogram(), 0.5), note="in µg/m³")
    ledger.spend(0.02, window=[(3, 9), (20, 40)])
    return ledger


def subjects_ledger(where: str | Path) -> pf.Ledger:
    data = pf.read_sequences(table({"x": [*range(20)], "y": [*range(9)]}), **READING)
    ledger = pf.Ledger(pf.LeakagePropagation(CHAIN, data.length), 5.0)
    ledger.save(where)
    ledger.spend(ledger.bound.calibrate(pf.Histogram(), 0.5), data=data)  # settles who is in the table
    ledger.spend(0.02, window={"x": (3, 9)})
    return ledger


def network_ledger(where: str | Path) -> pf.Ledger:
    ledger = pf.Ledger(pf.LeakagePropagation(LINE, 30), 5.0)
    ledger.save(where)
    ledger.spend({next(iter(LINE.nodes)): 0.1})
    return ledger


def growing_ledger(where: str | Path) -> pf.Ledger:
    first = pf.read_sequences(table({"x": [0, 1]}), **READING)
    ledger = pf.Ledger(pf.LeakagePropagation(CHAIN, 2), 5.0, base=first.base, grows=True)
    ledger.save(where)
    ledger.plan([pf.Histogram(), pf.Transitions()], up_to=2.0)
    for week, who in enumerate(["x", "xy", "yz"]):
        data = ledger.read(table({name: [*range(7 * week, 7 * week + 7)] for name in who}), pf.Histogram())
        ledger.spend(ledger.as_planned(pf.Histogram(), data), data=data)
    return ledger


MADE = {
    "chain": chain_ledger,
    "subjects": subjects_ledger,
    "network": network_ledger,
    "growing": growing_ledger,
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_database_holds_the_book_of_a_file(
    tmp_path: Path, address: str, made: Callable[[str | Path], pf.Ledger]
) -> None:
    in_file, in_rows = made(tmp_path / "book.json"), made(address)
    again = pf.Ledger.open(address)
    assert [said(entry) for entry in in_file.entries] == [said(entry) for entry in again.entries]
    assert in_rows.entries == again.entries
    assert again._book == in_rows._book
    assert again._book.last_digest() == in_rows._book.last_digest()
    there, here = pf.Ledger.open(tmp_path / "book.json")._book.subjects, again._book.subjects
    assert (there is None) == (here is None)
    assert there is None or here is None or there.count == here.count
    numbers = rows(address, "SELECT ledger, number FROM pufferfish_ledger ORDER BY number")
    assert [row[1] for row in numbers if row[0] == name_in(address)] == [*range(len(again.entries) + 1)]


def test_a_row_holds_only_who_is_new(address: str) -> None:
    growing_ledger(address)
    statement = f"SELECT content FROM pufferfish_ledger WHERE ledger = '{name_in(address)}' ORDER BY number"
    digests = [len(row[0].partition('"digests":"')[2].partition('"')[0]) for row in rows(address, statement)]
    assert digests == [0, 0, 0, 24, 24, 24]  # 16 bytes in base 64: x, then y, then z


def test_two_objects_are_one_ledger(address: str) -> None:
    one = chain_ledger(address)
    two = pf.Ledger.open(address)
    one.spend(0.05)
    assert two.spent == one.spent
    assert two.spend(0.05).number == one.entries[-1].number == 5
    with pytest.raises(BudgetExceeded):
        two.spend(5.0)
    assert len(one.entries) == 5


def test_a_ledger_is_never_replaced_and_many_are_in_one_database(address: str) -> None:
    chain_ledger(address)
    fresh = pf.Ledger(pf.LeakagePropagation(CHAIN, 10), 1.0)
    with pytest.raises(RecordError, match=r"a ledger is never replaced; name another, as in .*#second"):
        fresh.save(address)
    fresh.save(f"{address.partition('#')[0]}#{name_in(address)}-2")
    fresh.spend(0.1)
    assert (len(fresh.entries), len(pf.Ledger.open(address).entries)) == (1, 3)
    with pytest.raises(RecordError, match=f"there is no ledger 'nobody' in .*: there are .*'{name_in(address)}'"):
        pf.Ledger.open(f"{address.partition('#')[0]}#nobody")
    with pytest.raises(RecordError, match="this ledger is kept in"):
        fresh.save(f"{address.partition('#')[0]}#third")


TAMPERED = {
    "a content": "UPDATE pufferfish_ledger SET content = replace(content, 'e', 'f') WHERE {} AND number = 2",
    "the budget": "UPDATE pufferfish_ledger SET content = replace(content, '5.0', '9.0') WHERE {} AND number = 0",
    "a digest": "UPDATE pufferfish_ledger SET digest = 'x' WHERE {} AND number = 1",
    "a row in the middle": "DELETE FROM pufferfish_ledger WHERE {} AND number = 2",
    "the first row": "DELETE FROM pufferfish_ledger WHERE {} AND number = 0",
    "all rows of another": "UPDATE pufferfish_ledger SET number = number + 1 WHERE {} AND number = 3",
}


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED)
def test_rows_that_were_changed_are_refused(address: str, statement: str) -> None:
    chain_ledger(address)
    rows(address, statement.format(f"ledger = '{name_in(address)}'"))
    with pytest.raises(RecordError, match=r"damaged: row \d: |there is no ledger"):
        pf.Ledger.open(address)


def test_the_digest_of_a_row_is_of_itself_and_the_row_before_it(address: str) -> None:
    chain_ledger(address)
    before = ""
    found = rows(
        address, f"SELECT digest, content FROM pufferfish_ledger WHERE ledger = '{name_in(address)}' ORDER BY number"
    )
    assert len(found) > 2
    for digest, content in found:
        assert digest == hashlib.sha256(f"{before}\n{content}".encode()).hexdigest()
        before = digest


def test_an_old_copy_that_was_put_back_is_noticed_while_a_program_has_the_ledger(address: str) -> None:
    ledger = chain_ledger(address)
    ledger.spend(0.01)
    rows(address, f"DELETE FROM pufferfish_ledger WHERE ledger = '{name_in(address)}' AND number > 2")
    with pytest.raises(RecordError, match="changed by hand or replaced by another"):
        ledger.spend(0.01)


@pytest.mark.parametrize("isolation", ["serializable", r"repeatable\ read"])
def test_threads_spend_one_budget(address: str, isolation: str) -> None:
    if address.startswith("postgresql"):  # as a server may be set
        setting = quote(f"-c default_transaction_isolation={isolation}")
        address = address.replace("#", f"&options={setting}#")
    pf.Ledger(pf.EntryDP(COIN, 100), 1.0).save(address)
    booked: list[int] = []

    def go() -> None:
        ledger = pf.Ledger.open(address)
        for _ in range(5):
            try:
                booked.append(ledger.spend(0.1).number)
            except BudgetExceeded:
                return

    threads = [threading.Thread(target=go) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(booked) == [*range(1, 11)]


PROGRAM = """
import os, signal, sys
import pufferfish as pf
from pufferfish.errors import BudgetExceeded
from pufferfish.ledger.kept import BookDatabase
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
do = BookDatabase._do
def dies_after_a_row(self, connection, statement, *values):
    done = do(self, connection, statement, *values)
    if statement.startswith("INSERT"):
        die()
    return done
ledger = pf.Ledger.open(sys.argv[1])
"""


def program(address: str, code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + code, address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.program
@pytest.mark.parametrize(
    ("moment", "booked"),
    [("BookDatabase.write = die", 1), ("BookDatabase._do = dies_after_a_row", 1), ("ledger._charging.check = die", 1)],
)
def test_a_killed_program_spends_all_or_nothing_and_keeps_nobody_out(address: str, moment: str, booked: int) -> None:
    opened = pf.Ledger(pf.EntryDP(COIN, 100), 1.0)
    opened.save(address)
    opened.spend(0.1)
    killed = program(address, f"{moment}\nledger.spend(0.1, begin=None if 'check' not in {moment!r} else die)")
    assert killed.wait(timeout=120) == -signal.SIGKILL, killed.communicate()
    killed.communicate()
    assert len(pf.Ledger.open(address).entries) == booked
    assert opened.spend(0.1).number == booked + 1


@pytest.mark.slow
@pytest.mark.program
def test_programs_at_once_spend_one_budget(address: str) -> None:
    pf.Ledger(pf.EntryDP(COIN, 100), 1.0).save(address)
    spend = "try:\n    while True: print(ledger.spend(0.1).number)\nexcept BudgetExceeded: pass"
    programs = [program(address, spend) for _ in range(2)]
    printed = [run.communicate(timeout=120) for run in programs]
    assert all(run.returncode == 0 for run in programs), printed
    assert sorted(int(line) for output, _ in printed for line in output.split()) == [*range(1, 11)]


def test_a_role_that_may_only_add_rows_is_enough(server: str) -> None:
    address = f"{server}#roles"
    chain_ledger(address)
    rows(address, "CREATE ROLE publisher LOGIN")
    rows(address, "GRANT SELECT, INSERT ON pufferfish_ledger TO publisher")
    theirs = address.replace("office@", "publisher@")
    assert pf.Ledger.open(theirs).spend(0.01).number == 4
    with pytest.raises(pytest.importorskip("psycopg").Error, match="permission denied"):
        rows(theirs, "DELETE FROM pufferfish_ledger")
    pf.Ledger(pf.EntryDP(COIN, 100), 1.0).save(f"{theirs}-2")  # a new one needs no right to make tables
    rows(address, "DROP OWNED BY publisher")
    rows(address, "DROP ROLE publisher")


def test_no_password_is_shown() -> None:
    for address in (
        "postgresql://bob:se:cret@h:1/x#y",
        "postgresql://bob:se@cret@h/x",
        "postgresql://h/x?password=secret",
    ):
        assert "secret" not in shown_address(address)
        assert "cret" not in shown_address(address)
    pytest.importorskip("psycopg")
    with pytest.raises(RecordError, match="postgresql://bob@localhost:1/x cannot be used"):
        pf.Ledger.open("postgresql://bob:secret@localhost:1/x")


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("mysql://h/x", "an address of 'mysql', but a ledger is kept in a file, in sqlite:///FILE"),
        ("sqlite://book.db", "names no file: write sqlite:///book.db"),
        ("sqlite:///", "names no file"),
        ("sqlite:///nowhere.db", "there is no such file"),
    ],
)
def test_addresses_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, says: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecordError, match=says):
        pf.Ledger.open(address)
    assert not [*tmp_path.iterdir()]


def test_a_database_of_several_names_is_refused(tmp_path: Path) -> None:
    ledger = chain_ledger(f"sqlite:///{tmp_path}/book.db")
    (tmp_path / "other.db").hardlink_to(tmp_path / "book.db")
    for act in (lambda: ledger.spend(0.1), lambda: pf.Ledger.open(f"sqlite:///{tmp_path}/other.db")):
        with pytest.raises(RecordError, match="has several names"):
            act()


def test_a_file_that_is_no_database_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    chain_ledger(path)
    before = path.read_bytes()
    for act in (pf.Ledger.open, pf.Ledger(pf.EntryDP(COIN, 9), 1.0).save):
        with pytest.raises(RecordError, match="file is not a database"):
            act(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_new_database_is_for_its_owner_alone_and_takes_a_ledger_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no room")

    with monkeypatch.context() as failing:
        failing.setattr(BookDatabase, "write", fail)
        with pytest.raises(OSError, match="no room"):
            pf.Ledger(pf.EntryDP(COIN, 9), 1.0).save(f"sqlite:///{tmp_path}/book.db")
    chain_ledger(f"sqlite:///{tmp_path}/book.db")
    assert (tmp_path / "book.db").stat().st_mode & 0o777 == 0o600


def test_who_comes_second_does_not_delete_the_ledger_of_who_came_first(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, first = BookDatabase.alone, pf.Ledger(pf.EntryDP(COIN, 9), 1.0)

    def when_another_was_sooner(self: BookDatabase) -> Any:
        monkeypatch.setattr(BookDatabase, "alone", alone)
        first.save(address)
        return alone(self)

    monkeypatch.setattr(BookDatabase, "alone", when_another_was_sooner)
    with pytest.raises(RecordError, match="a ledger is never replaced"):
        pf.Ledger(pf.EntryDP(COIN, 9), 1.0).save(address)
    assert first.spend(0.1).spent == pf.Ledger.open(address).spent == pytest.approx(0.1)


def test_postgresql_without_its_module_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ParameterError, match=r"needs psycopg: pip install 'pufferfish-privacy\[postgresql\]'"):
        pf.Ledger.open("postgresql://h/x")


def test_every_command_takes_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.chdir(tmp_path)
    table({"x": [*range(200)], "y": [*range(150)]}).write_csv("table.csv")
    write_model(pf.Model(theta=CHAIN), "m.json")
    columns = ["--state", "state", "--subject", "who", "--time", "day", "--max-gap", "1d"]
    done = run("ledger", "create", address, "--model", "m.json", "--budget", "2", "--table", "table.csv", *columns)
    assert done.exit_code == 0
    assert ".lock" not in done.output
    release = ["release", "table.csv", "--model", "m.json", "--query", "histogram", *columns, "--ledger", address]
    for arguments in (
        [*release, "--epsilon", "0.5", "--output", "r.json"],
        ["ledger", "show", address],
        ["verify", "r.json", "--ledger", address],
        ["report", "r.json", "--ledger", address, "--output", "r.html"],
        ["notebook", "r.json", "--ledger", address, "--table", "table.csv", "--output", "r.ipynb"],
    ):
        done = run(*arguments)
        assert done.exit_code == 0, done.output
    assert address.partition("?")[0] in Path("r.ipynb").read_text()
    assert len(pf.Ledger.open(address).entries) == 1
    done = run(*release, "--epsilon", "3", "--output", "s.json")
    assert (done.exit_code, "above the budget of 2" in done.stderr) == (2, True)
    if address.startswith("sqlite"):
        file = address.removeprefix("sqlite:///")
        refused(*release, "--epsilon", "0.1", "--output", file, says=["is the input file"])
