"""Entries form a chain of digests: what each is of, who can compute it, and what does not fit into it."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

import pufferfish as pf
from ledgers import CHAIN, COUNT, in_file, ledger_of, put
from pufferfish.errors import RecordError
from pufferfish.ledger import Ledger
from pufferfish.ledger.book import ModelOfBook
from pufferfish.theta.record import ThetaRecord


def by_hand(book: dict[str, Any], number: int) -> str:
    """Return the digest of an entry in a ledger's file, or of the file's beginning, from its text alone."""
    whole = book["entries"][number - 1] if number else book
    of_entry, of_book = (
        "nonce number previous created what epsilon distance scale step question release theta model spent",
        "nonce created budget mechanism",
    )
    names = of_entry if number else of_book
    text = json.dumps({name: whole[name] for name in names.split()})
    return hashlib.sha256(text.encode()).hexdigest()


def _people() -> tuple[Ledger, Callable[[str | None], pf.Sequences]]:
    table = pl.DataFrame({"id": ["ann"] * 60 + ["bob"] * 60, "s": ["rest", "active"] * 60})

    def read(where: str | None = None) -> pf.Sequences:
        return pf.read_sequences(table, "s", subject="id", where=where)

    data = read()
    return Ledger(pf.LeakagePropagation(CHAIN, data.length), 5.0, base=data), read


def _network() -> Ledger:
    net = pf.BayesianNetwork({"a": pf.CPT(["no", "yes"], [0.8, 0.2]), "b": pf.CPT(["no", "yes"], [0.5, 0.5])})
    ledger = Ledger(pf.GroupDP(net, length=40), 3.0)
    ledger.spend(ledger.bound.calibrate(pf.Marginals(), 1))
    ledger.spend({"b": 0.1})
    return ledger


def _chains() -> Ledger:
    ledger = ledger_of(budget=2)
    ledger.spend(0.1, note="Wörter: \x00 “…” \U0001f40d")
    ledger.spend(ledger.bound.calibrate(COUNT, epsilon=1), window=(3, 9))
    ledger.spend(ledger.bound.calibrate(pf.Transitions(), epsilon=0.1))
    return ledger


def _with_subjects() -> Ledger:
    ledger, read = _people()
    for where in ("id == 'ann'", "id == 'bob'", None):
        data = read(where)
        pf.release(data, COUNT, pf.LeakagePropagation(CHAIN, data.length).calibrate(COUNT, 0.5), ledger=ledger)
    return ledger


@pytest.mark.parametrize("make", [_chains, _network, _with_subjects])
def test_each_entry_holds_the_digest_of_the_one_before_it(tmp_path: Path, make: Callable[[], Ledger]) -> None:
    """The digest in memory is that of the file, and of the file as another program continues it."""
    ledger = make()
    ledger.save(tmp_path / "book.json")
    Ledger.open(tmp_path / "book.json").spend(0.01)
    book = json.loads((tmp_path / "book.json").read_bytes())
    assert [entry["previous"] for entry in book["entries"]] == [by_hand(book, n) for n in range(len(book["entries"]))]
    assert [entry.previous for entry in ledger.entries] == [entry["previous"] for entry in book["entries"]]
    assert len({entry["previous"] for entry in book["entries"]}) == len(book["entries"]) > 2


def test_what_a_ledger_says_about_subjects_is_not_digested() -> None:
    """All else of an entry is, whatever it is."""
    ledger = _with_subjects()
    book, before = ledger._book, ledger._book.last_digest()
    other: dict[str, Any] = {
        **{
            "number": 9,
            "nonce": "0" * 32,
            "previous": "0" * 64,
            "created": "2020-01-01T00:00:00+00:00",
            "what": "x",
            "epsilon": None,
        },
        **{"distance": [[0, 2], [2, 0]], "scale": "7", "windows": [[(0, 1)], None], "subjects": "x", "release": "1"},
        **{"reads": [], "question": "Count"},
        **{"theta": ThetaRecord.of(ledger.bound.theta), "model": ModelOfBook(step="1min")},
        **{"step": 4, "where": "id == 'cyd'", "spent": 0.25},
    }
    last = book.entries[-1]
    assert other.keys() == set(last.__struct_fields__)
    for name, value in other.items():
        assert getattr(last, name) != value
        changed = msgspec.structs.replace(last, **{name: value})
        again = msgspec.structs.replace(book, entries=[*book.entries[:-1], changed])
        assert (again.last_digest() == before) == (name in ("windows", "subjects", "where", "reads")), name
    begun = msgspec.structs.replace(book, entries=[])
    for name, value in {"nonce": "0" * 32, "created": other["created"], "budget": 9.0, "mechanism": "group-dp"}.items():
        assert msgspec.structs.replace(begun, **{name: value}).last_digest() != begun.last_digest(), name
    assert msgspec.structs.replace(begun, subjects=None, base=None).last_digest() == begun.last_digest()


def test_two_ledgers_that_say_the_same_have_other_digests() -> None:
    """Who does not have the ledger cannot test what stands in it."""
    one, other = ledger_of(), ledger_of()
    for ledger in (one, other):
        ledger.spend(0.1)
        ledger.spend(0.1)
    for mine, theirs in zip(one.entries, other.entries, strict=True):
        assert mine.previous != theirs.previous
        alike = {"nonce": "", "previous": "", "created": ""}
        assert msgspec.structs.replace(mine, **alike) == msgspec.structs.replace(theirs, **alike)


def test_copies_of_a_ledger_go_apart_with_their_next_entries(tmp_path: Path) -> None:
    """Also where both book the same release in the same second."""
    ledger = in_file(tmp_path / "book.json")
    ledger.spend(0.1)
    shutil.copy(tmp_path / "book.json", tmp_path / "copy.json")
    copy = Ledger.open(tmp_path / "copy.json")
    for _ in range(2):
        ledger.spend(0.02)
        copy.spend(0.02)
    (_, two, three), (_, two_of_copy, three_of_copy) = ledger.entries, copy.entries
    assert two.previous == two_of_copy.previous
    assert three.previous != three_of_copy.previous


def test_an_entry_that_does_not_follow_the_one_before_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path)
    for _ in range(3):
        ledger.spend(0.02)
    good = json.loads(path.read_bytes())
    edits: list[tuple[Callable[[Any], Any], str]] = [
        (lambda b: b["entries"][1].update(previous="0" * 64), "entry 2 does not follow entry 1"),
        (lambda b: b["entries"][0].update(previous=b["entries"][1]["previous"]), "entry 1 does not follow the ledger"),
        (lambda b: b["entries"][1].update(what="another"), "entry 3 does not follow entry 2"),
        (lambda b: b.update(nonce="ab" * 16), "entry 1 does not follow the ledger as it began"),
        (lambda b: b.update(nonce="ab"), "nonce"),
        (lambda b: b["entries"][2].update(nonce="AB" * 16), "nonce"),
        (lambda b: b["entries"][0].update(previous="none"), "entry 1 does not follow"),
    ]
    for edit, why in edits:
        book = json.loads(json.dumps(good))
        edit(book)
        put(path, book)
        with pytest.raises(RecordError, match=why) as caught:
            Ledger.open(path)
        assert "\n" not in str(caught.value)
    put(path, good)
    Ledger.open(path).spend(0.02)
    book = json.loads(path.read_bytes())
    book["entries"][-1]["previous"] = "0" * 64  # in a ledger that is open, and knows the first three
    put(path, book)
    with pytest.raises(RecordError, match="entry 4 does not follow entry 3"):
        _ = ledger.spent
    put(path, good | {"nonce": "ab" * 16, "entries": []})
    with pytest.raises(RecordError, match="replaced by another"):
        _ = ledger.spent


def test_a_note_that_no_file_can_hold_is_digested_in_memory() -> None:
    ledger = ledger_of()
    for _ in range(2):
        ledger.spend(0.1, note="\ud800")
    assert len({entry.previous for entry in ledger.entries}) == 2
