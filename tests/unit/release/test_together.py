"""Several releases together: two that follow one entry of a ledger are named, and nothing else is."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from test_release_fuzz import of_a_joint_law

import pufferfish as pf
from commands import refused, run
from ledgers import CHAIN, COUNT
from pufferfish.errors import ParameterError, RecordError

TABLE = pl.DataFrame({"id": ["ann"] * 60 + ["bob"] * 60, "s": ["rest", "active", "rest"] * 40})
DATA = pf.read_sequences(TABLE, "s", subject="id")
BOUND = pf.LeakagePropagation(CHAIN, DATA.length)
NOISE = BOUND.calibrate(COUNT, 0.3)
FORK = "follow the same entry of a ledger, and only one can: an old copy of the ledger was put back"


def charged(book: Path, *names: str) -> None:
    """Release under each name, charged to the ledger in a file."""
    for name in names:
        said = [f"Release {name}."]  # two that draw the same noise in one second stay two
        found = pf.release(DATA, COUNT, NOISE, warnings=said, ledger=pf.Ledger.open(book))
        found.to_json(book.parent / f"{name}.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Releases a, b and c of a ledger; then that which was before b is put back, and d and e follow."""
    book = tmp_path / "book.json"
    pf.Ledger(BOUND, 5.0, base=DATA).save(book)
    shutil.copy(book, tmp_path / "empty.json")
    charged(book, "a")
    shutil.copy(book, tmp_path / "old.json")
    charged(book, "b", "c")
    shutil.copy(book, tmp_path / "first.json")
    shutil.copy(tmp_path / "old.json", book)
    charged(book, "d", "e")
    return tmp_path


def together(folder: Path, names: str) -> pf.Finding:
    return pf.verify_together([folder / f"{name}.json" for name in names])


def test_two_releases_after_one_entry_are_named(folder: Path) -> None:
    """Each of them holds by itself, also with the ledger that it was charged to."""
    for name, book in (("b", "first"), ("c", "first"), ("d", "book"), ("e", "book"), ("a", "book"), ("a", "first")):
        assert pf.verify(folder / f"{name}.json", ledger=folder / f"{book}.json").holds
    for names in ("abc", "ade", "ab", "ae", "cd", "ce"):
        assert together(folder, names).holds, names
    for names in ("bd", "abcde", "adb"):
        found = together(folder, names)
        first, last = sorted("bd", key=names.index)
        assert found.holds is False
        named = f"{folder / first}.json (entry 2) and {folder / last}.json (entry 2) {FORK}"
        assert found.says.startswith(named)
        assert found.says.endswith("what is spent does not count both")
        assert "\n" not in found.says


def test_the_first_entries_of_copies_and_of_two_ledgers(folder: Path) -> None:
    """A copy of an empty ledger is a copy; another ledger of the same table is none."""
    charged(folder / "empty.json", "f")
    assert "(entry 1) and" in together(folder, "af").says
    pf.Ledger(BOUND, 5.0, base=DATA).save(folder / "other.json")
    charged(folder / "other.json", "g")
    assert together(folder, "ag").holds
    one, other = (pf.Release.from_json(folder / f"{name}.json").ledger for name in "ag")
    assert one is not None
    assert other is not None
    assert msgspec.structs.replace(one, previous="") == msgspec.structs.replace(other, previous="")


def test_three_releases_and_two_forks_are_one_line(folder: Path) -> None:
    charged(folder / "old.json", "f")
    charged(folder / "empty.json", "g")
    says = together(folder, "gabcdef").says
    assert says.count(FORK) == 2
    assert f"{folder / 'b'}.json (entry 2), {folder / 'd'}.json (entry 2) and {folder / 'f'}.json (entry 2)" in says
    assert says.endswith("does not count all of them")
    assert "\n" not in says


def test_one_release_under_two_names_is_one(folder: Path) -> None:
    """Also as an object beside its file, and as a file that another program wrote."""
    shutil.copy(folder / "b.json", folder / "h.json")
    (folder / "i.json").write_text(json.dumps(json.loads((folder / "b.json").read_text())))
    assert together(folder, "abhi").holds
    release = pf.Release.from_json(folder / "b.json")
    assert pf.verify_together([release, folder / "b.json", folder / "a.json"]).holds
    assert pf.verify_together([release, folder / "h.json"]).holds is None
    says = pf.verify_together([folder / "d.json", release]).says
    assert says.startswith(f"{folder / 'd'}.json (entry 2) and release 2 (entry 2) follow")


def test_a_record_that_copies_the_place_of_another_is_named(folder: Path) -> None:
    """It names the entry after its own too: that it says another number does not hide it."""
    record = json.loads((folder / "b.json").read_text())
    uncharged = pf.release(DATA, COUNT, NOISE).to_dict()
    for place in (record["ledger"], record["ledger"] | {"entry": 3}):
        (folder / "k.json").write_text(json.dumps(uncharged | {"ledger": place}))
        says = together(folder, "abk").says
        assert f"{folder / 'k'}.json (entry {place['entry']}) follow the same entry" in says
        assert "or one record copies the place of another" in says


def test_fewer_than_two_in_a_ledger_are_not_compared(folder: Path) -> None:
    pf.release(DATA, COUNT, NOISE).to_json(folder / "k.json")
    pf.release(DATA, COUNT, NOISE).to_json(folder / "l.json")
    for names in ("", "a", "kl", "akl"):
        found = together(folder, names)
        assert found.holds is None
        assert "nothing to compare" in found.says


def test_all_kinds_of_releases_have_their_place(folder: Path) -> None:
    book = pf.Ledger.open(folder / "first.json")
    each = pf.release_each(DATA, COUNT, NOISE, folder / "v.csv", ledger=book)
    assert each.ledger is not None
    assert each.ledger.previous == book.entries[-1].previous
    assert pf.verify(folder / "v.json", ledger=book).holds
    charged(folder / "first.json", "w")
    assert together(folder, "abcvw").holds
    (folder / "x.json").write_text(
        json.dumps(json.loads((folder / "v.json").read_text()) | {"created": "2020-01-01T00:00:00+00:00"})
    )
    assert together(folder, "vx").holds is False


def test_what_is_no_release_is_refused(folder: Path) -> None:
    with pytest.raises(RecordError, match="this is a pufferfish-ledger file"):
        pf.verify_together([folder / "a.json", folder / "book.json"])
    for given in ("a.json", None, [3], [folder / "a.json", None]):
        with pytest.raises(ParameterError, match="releases"):
            pf.verify_together(given)  # type: ignore[arg-type]


def test_the_entry_before_is_compared_with_the_ledger(folder: Path) -> None:
    """A record of another history does not hold, although all else of its entry is in this one."""
    record: dict[str, Any] = json.loads((folder / "c.json").read_text())
    for ledger, holds in (("first", True), ("book", False)):
        found = pf.verify(folder / "c.json", ledger=folder / f"{ledger}.json")
        assert found.holds == holds
    record["ledger"]["previous"] = record["ledger"]["previous"][::-1]
    (folder / "c.json").write_text(json.dumps(record))
    (wrong,) = pf.verify(folder / "c.json", ledger=folder / "first.json").wrong
    assert wrong.what == "ledger"
    assert "entry 3 of the ledger says another entry, or another beginning, before it; no entry of" in wrong.says
    (listed,) = [part for part in pf.verify(folder / "c.json").unchecked if part.what == "ledger"]
    assert "ledger" in listed.fields


def test_on_the_command_line(folder: Path) -> None:
    """Each release is verified in turn, then all together; the worst exit code counts."""
    paths = {name: folder / f"{name}.json" for name in ("a", "b", "c", "d", "first", "book")}
    done = run("verify", paths["a"], paths["b"], "--ledger", paths["first"])
    assert done.exit_code == 0, done.output
    assert [line for line in done.stdout.splitlines() if line.endswith(".json:")] == [f"{paths[n]}:" for n in "ab"]
    assert done.stdout.count("all that could be checked holds, the proof included") == 2
    last = done.stdout.splitlines()[-1]
    assert last == "all together: holds: no two of these 2 releases follow the same entry of a ledger"
    done = run("verify", paths["b"], paths["a"], paths["d"])
    assert done.exit_code == 1
    last = done.stdout.splitlines()[-1]
    assert last.startswith(f"all together: DOES NOT HOLD: {paths['b']} (entry 2) and {paths['d']} (entry 2) {FORK}")
    assert run("verify", paths["a"], paths["c"], "--ledger", paths["book"]).exit_code == 1
    of_a_joint_law().to_json(folder / "own.json")
    for others, code in (((), 3), ((paths["a"],), 3), ((paths["b"], paths["d"]), 1)):
        assert run("verify", folder / "own.json", *others).exit_code == code
    done = run("verify", paths["a"], folder / "none.json")
    assert (done.exit_code, done.stdout) == (2, "")  # all are read before the first is verified
    refused("verify", paths["a"], paths["book"], says=["not a pufferfish-release file"])
    refused("verify", paths["a"], paths["b"], "--values", paths["c"], says=["--values is the table of one release"])


def test_a_page_is_refused_where_releases_have_no_common_history(folder: Path) -> None:
    """In the words of verify, with a ledger at hand and without one."""
    a, b, c, d, page = (folder / name for name in ("a.json", "b.json", "c.json", "d.json", "page.html"))
    for ledger in ((), ("--ledger", folder / "book.json")):
        line = refused("report", a, b, d, *ledger, "--output", page)
        assert pf.verify_together([a, b, d]).says in line
    refused("report", a, a, "--output", page, says=["is the same release as", ": name each once"])
    refused("report", a, c, "--ledger", folder / "book.json", "--output", page, says=["c.json", "does not hold"])
    assert not page.exists()
    done = run("report", a, b, "--ledger", folder / "first.json", "--brief", "--output", page)
    assert done.exit_code == 0, done.output
