"""A ledger in its file, and in several hands."""

import copy
import json
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pufferfish as pf
from ledgers import CHAIN, COIN, COUNT, RELEASE, TENTHS, THETA1, in_file, ledger_of, put, read, spends_nothing
from pufferfish.errors import BudgetExceeded, PufferfishError, RecordError
from pufferfish.ledger import Ledger
from pufferfish.ledger.kept import book_of

# On disk


def test_a_reopened_ledger_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    theta = pf.ChainClass((CHAIN, THETA1), "survey")
    for i, bound in enumerate(
        (
            pf.LeakagePropagation(theta, [100, 50]),
            pf.MQMExact(theta, [100, 50], max_quilt_length=40),
            pf.MQMApprox(CHAIN, [100, 50]),
            pf.GroupDP(theta, [pf.ChainLength(100, 80), pf.ChainLength(50, 50)]),
            pf.ParticipantDP([100, 50], theta=theta),
        )
    ):
        path = tmp_path / f"{i}.json"
        ledger = Ledger(bound, 20.0, base=read([[60, 40], [25, 25]]).base)
        ledger.spend(0.01)
        ledger.save(path)
        ledger.spend(bound.calibrate(COUNT, 0.3))
        ledger.spend([[0, 1 / 3], [1e-9, 0]], window=(3, 40))
        other = Ledger.open(path)
        assert other.entries == ledger.entries
        assert (other.spent, other.budget, other.base) == (ledger.spent, ledger.budget, ledger.base)
        assert (other.bound.name, other.bound.settings) == (bound.name, bound.settings)
        assert (other.bound.length, other.bound.theta.origin) == (bound.length, bound.theta.origin)
        assert other.leakage_with(0.05) == pytest.approx(ledger.leakage_with(0.05), rel=1e-7)
        assert other.spend(0.05) == ledger.entries[-1]


def test_a_ledger_is_never_replaced_nor_copied(tmp_path: Path) -> None:
    ledger = in_file(tmp_path / "book.json")
    with pytest.raises(RecordError, match="never replaced"):
        ledger_of().save(tmp_path / "book.json")
    with pytest.raises(RecordError, match="twice"):
        ledger.save(tmp_path / "copy.json")
    assert not (tmp_path / "copy.json").exists()


def test_saving_into_no_folder_makes_none(tmp_path: Path) -> None:
    ledger = ledger_of()
    with pytest.raises(RecordError, match="folder"):
        ledger.save(tmp_path / "absent" / "book.json")
    assert list(tmp_path.iterdir()) == []
    ledger.save(tmp_path / "book.json")


def test_a_bound_that_cannot_be_made_again_is_not_saved(tmp_path: Path) -> None:
    """It would be reopened as the mechanism it inherits its name from, with other leakages."""

    class Stricter(pf.GroupDP):
        def _prove(self, losses: Any, enough: float | None = None) -> Any:
            total, witness = super()._prove(losses, enough)
            return 5 * total, witness

    with pytest.raises(PufferfishError):
        ledger_of(bound=Stricter).save(tmp_path / "book.json")
    assert not (tmp_path / "book.json").exists()


def test_two_objects_on_one_file_are_one_ledger(tmp_path: Path) -> None:
    first = in_file(tmp_path / "book.json", COIN, bound=pf.EntryDP)
    second = Ledger.open(tmp_path / "book.json")
    for i in range(5):
        assert first.spend(0.1).number == 2 * i + 1
        assert second.spend(0.1).number == 2 * i + 2
    assert first.spent == second.spent == 1.0
    spends_nothing(first, lambda: first.spend(0.1), BudgetExceeded)
    spends_nothing(second, lambda: second.spend(0.1), BudgetExceeded)


def test_a_link_is_the_same_ledger(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path, link = tmp_path / "folder" / "book.json", tmp_path / "link.json"
    first = in_file(path, COIN, bound=pf.EntryDP)
    link.symlink_to(path)
    second = Ledger.open(link)
    second.spend(0.6)
    assert link.is_symlink()
    spends_nothing(first, lambda: first.spend(0.6), BudgetExceeded)


def test_a_second_hard_name_does_not_spend_the_budget_twice(tmp_path: Path) -> None:
    """Replacing the file parts the two names: each would go on as a ledger of its own."""
    first = in_file(tmp_path / "book.json", COIN, bound=pf.EntryDP)
    os.link(tmp_path / "book.json", tmp_path / "hard.json")
    spent = 0
    for spend in (first.spend, lambda loss: Ledger.open(tmp_path / "hard.json").spend(loss)):
        try:
            spend(0.6)
            spent += 1
        except PufferfishError:
            pass
    assert spent <= 1


def test_the_second_name_of_a_program_that_was_killed_is_no_obstacle(tmp_path: Path) -> None:
    """It was killed when it had given the new ledger its name, and not yet taken away the hidden one."""
    in_file(tmp_path / "book.json")
    hidden = tmp_path / f".pufferfish-{'0' * 32}.tmp"
    hidden.hardlink_to(tmp_path / "book.json")
    assert Ledger.open(tmp_path / "book.json").spent == 0
    assert not hidden.exists()


def test_a_ledger_stays_in_its_file_when_the_folder_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "a")
    first = in_file(Path("book.json"), COIN, bound=pf.EntryDP)
    monkeypatch.chdir(tmp_path / "b")
    first.spend(0.6)
    assert Ledger.open(tmp_path / "a" / "book.json").spent == TENTHS[5]
    second = in_file(Path("book.json"), COIN, bound=pf.EntryDP)
    first.spend(0.1)
    assert second.spent == 0.0


def test_a_ledger_whose_file_lost_entries_is_refused_while_it_is_open(tmp_path: Path) -> None:
    """A backup restored under a running program; one that is opened later cannot know."""
    path = tmp_path / "book.json"
    ledger = in_file(path)
    ledger.spend(0.01)
    backup = path.read_bytes()
    ledger.spend(0.01)
    path.write_bytes(backup)
    with pytest.raises(RecordError, match="changed by hand or replaced"):
        ledger.spend(0.01)
    with pytest.raises(RecordError, match="changed by hand or replaced"):
        _ = ledger.spent
    assert path.read_bytes() == backup


def test_another_base_put_into_an_open_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path, base=read([[60, 40]]).base)
    ledger_file = json.loads(path.read_text())
    ledger_file["base"]["source"] = "other.csv"
    put(path, ledger_file)
    with pytest.raises(RecordError, match="changed by hand or replaced"):
        ledger.spend(0.01)


def test_a_file_that_goes_away_is_an_error_and_not_a_new_budget(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path)
    ledger.spend(0.01)
    path.unlink()
    with pytest.raises(RecordError, match="cannot read"):
        ledger.spend(0.01)
    assert not path.exists()


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "negative distance": lambda b: b["entries"][-1].update(distance=[[0, -1], [-1, 0]]),
    "no distance": lambda b: b["entries"][-1].update(distance=[]),
    "distance of another shape": lambda b: b["entries"][-1].update(distance=[[0, 1]]),
    "distance not whole": lambda b: b["entries"][-1].update(distance=[[0, 0.5], [0.5, 0]]),
    "distance not free of itself": lambda b: b["entries"][-1].update(distance=[[5, 1], [1, 5]]),
    "distance beyond floats": lambda b: b["entries"][-1].update(distance=[[0, 10**400], [1, 0]]),
    "scale 0": lambda b: b["entries"][-1].update(scale="0"),
    "scale 1/0": lambda b: b["entries"][-1].update(scale="1/0"),
    "scale nan": lambda b: b["entries"][-1].update(scale="nan"),
    "scale inf": lambda b: b["entries"][-1].update(scale="inf"),
    "scale negative": lambda b: b["entries"][-1].update(scale="-3"),
    "scale empty": lambda b: b["entries"][-1].update(scale=""),
    "scale of many digits": lambda b: b["entries"][-1].update(scale="1" + "0" * 5000),
    "scale a number": lambda b: b["entries"][-1].update(scale=3.0),
    "scale too small": lambda b: b["entries"][-1].update(scale="1/1" + "0" * 400),
    "scale huge": lambda b: b["entries"][-1].update(scale="1" + "0" * 300),
    "window out of range": lambda b: b["entries"][-1].update(windows=[[[0, 101]]]),
    "window before the start": lambda b: b["entries"][-1].update(windows=[[[-5, 50]]]),
    "window cut short": lambda b: b["entries"][-1].update(windows=[[[0, 2]]]),
    "windows that touch": lambda b: b["entries"][-1].update(windows=[[[0, 20], [20, 50]]]),
    "windows out of order": lambda b: b["entries"][-1].update(windows=[[[30, 50], [0, 20]]]),
    "windows of no steps": lambda b: b["entries"][-1].update(windows=[[]]),
    "ends of too many chains": lambda b: b.update(grid={"step": 60, "ends": [[0, 60], [0, 60]]}),
    "steps of no time": lambda b: b.update(grid={"step": 0, "ends": [[0, 0]]}),
    "window of nothing": lambda b: b["entries"][-1].update(windows=[None]),
    "too many windows": lambda b: b["entries"][-1].update(windows=[[[0, 5]], [[5, 9]]]),
    "spent negative": lambda b: b["entries"][-1].update(spent=-1.0),
    "spent lowered in the last entry": lambda b: b["entries"][-1].update(spent=0.0),
    "spent lowered in the first entry": lambda b: b["entries"][0].update(spent=0.0),
    "spent above the budget": lambda b: b["entries"][-1].update(spent=99.0),
    "first entry removed": lambda b: b["entries"].pop(0),
    "numbers repeated": lambda b: b["entries"][-1].update(number=1),
    "numbers skipped": lambda b: b["entries"][-1].update(number=9),
    "entries turned": lambda b: b["entries"].reverse(),
    "more spent than the budget": lambda b: b.update(budget=0.01),
    "budget 0": lambda b: b.update(budget=0.0),
    "budget negative": lambda b: b.update(budget=-1.0),
    "budget text": lambda b: b.update(budget="1"),
    "no such mechanism": lambda b: b.update(mechanism="magic"),
    "mechanism that does not apply": lambda b: b.update(mechanism="entry-dp"),
    "strange settings": lambda b: b.update(settings={"a": 1}),
    "length 0": lambda b: b.update(length=[[0, 0]]),
    "no length": lambda b: b.update(length=[]),
    "no theta": lambda b: b["theta"].update(chains=[]),
    "no transition matrix": lambda b: b["theta"]["chains"][0].update(transition_matrix=[[0.9, 0.9], [0.4, 0.6]]),
    "other theta": lambda b: b["theta"]["chains"][0].update(transition_matrix=[[0.5, 0.5], [0.5, 0.5]]),
    "unknown field": lambda b: b.update(extra=1),
    "lost field": lambda b: b.pop("budget"),
    "other version": lambda b: b.update(version=99),
    "other format": lambda b: b.update(format="pufferfish-release"),
}


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_a_file_edited_by_hand_is_refused_when_it_is_opened(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path)
    ledger.spend(0.02)
    ledger.spend(0.03, window=(0, 50))
    ledger_file = json.loads(path.read_text())
    EDITS[edit](ledger_file)
    put(path, ledger_file)
    with pytest.raises(RecordError) as caught:
        Ledger.open(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", ["0", "1/0", "nan", "", "1/1" + "0" * 400], ids=lambda s: s[:5])
def test_an_entry_edited_into_an_open_ledger_is_one_clear_error(tmp_path: Path, scale: str) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path)
    other = Ledger.open(path)
    other.spend(0.02)
    ledger_file = json.loads(path.read_text())
    ledger_file["entries"][-1]["scale"] = scale
    put(path, ledger_file)
    for act in (lambda: ledger.spent, lambda: ledger.spend(0.01)):
        with pytest.raises(PufferfishError):
            act()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "book.json"
    path.write_bytes(content)
    with pytest.raises(RecordError):
        Ledger.open(path)
    for name in ("absent.json", "."):
        with pytest.raises(RecordError, match="cannot read"):
            Ledger.open(tmp_path / name)


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "^C"])
def test_a_write_that_fails_spends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    path, data = tmp_path / "book.json", read([[60, 40]])
    ledger = in_file(path, base=data.base)
    before = path.read_bytes()
    drawn: list[int] = []
    monkeypatch.setattr(RELEASE, "discrete_laplace_noise", lambda *_, **__: lambda: drawn.append(1) or [1])

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises((RecordError, KeyboardInterrupt)):
            pf.release(data, COUNT, ledger.bound.calibrate(COUNT, 0.3), ledger=ledger)
    assert path.read_bytes() == before
    assert drawn == []
    assert {p.name for p in tmp_path.iterdir()} <= {"book.json", "book.json.lock"}
    assert ledger.spend(0.01).number == 1


def test_a_failure_after_the_book_is_in_place_is_spent_and_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, data = tmp_path / "book.json", read([[60, 40]])
    ledger = in_file(path, base=data.base)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pufferfish._base.writing._flush_folder", fail)
        with pytest.raises(KeyboardInterrupt):
            pf.release(data, COUNT, ledger.bound.calibrate(COUNT, 0.3), ledger=ledger)
    assert len(ledger.entries) == 1
    assert ledger.spend(0.01).number == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_or_folder_spends_nothing(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path)
    for target, mode in ((path, 0o400), (tmp_path, 0o500)):
        old = target.stat().st_mode
        target.chmod(mode)
        try:
            spends_nothing(ledger, lambda: ledger.spend(0.01), RecordError)
        finally:
            target.chmod(old)


# Several hands


def spend_in_threads(ledgers: list[Ledger], each: int) -> int:
    done: list[int] = []
    start = threading.Barrier(len(ledgers))

    def go(ledger: Ledger) -> None:
        start.wait()
        for _ in range(each):
            try:
                done.append(ledger.spend(0.1).number)
            except BudgetExceeded:
                pass

    threads = [threading.Thread(target=go, args=(ledger,)) for ledger in ledgers]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert sorted(done) == list(range(1, len(done) + 1))
    return len(done)


def test_threads_on_one_ledger_in_memory_spend_one_budget() -> None:
    for _ in range(10):
        ledger = ledger_of(COIN, bound=pf.EntryDP)
        assert spend_in_threads([ledger] * 8, 3) == len(ledger.entries) == 10
        assert [entry.spent for entry in ledger.entries] == TENTHS


def test_threads_on_one_file_spend_one_budget(tmp_path: Path) -> None:
    ledger = in_file(tmp_path / "book.json", COIN, bound=pf.EntryDP)
    others = [Ledger.open(tmp_path / "book.json") for _ in range(3)]
    assert spend_in_threads([ledger, ledger, *others], 3) == len(ledger.entries) == 10
    assert [entry.spent for entry in ledger.entries] == TENTHS


def test_reading_while_another_thread_spends_is_no_error(tmp_path: Path) -> None:
    ledger, wrong, stop = in_file(tmp_path / "book.json", COIN, bound=pf.EntryDP), [], threading.Event()

    def look() -> None:
        while not stop.is_set():
            try:
                assert ledger.spent <= 1.0
            except Exception as error:
                wrong.append(error)

    readers = [threading.Thread(target=look) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        assert spend_in_threads([ledger] * 3, 4) == 10
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert wrong == []


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_ledger_in_memory_is_no_second_budget(copied: Callable[[Ledger], Ledger]) -> None:
    ledger = ledger_of(COIN, bound=pf.EntryDP)
    try:
        other = copied(ledger)
    except (PufferfishError, TypeError):
        return  # refused: that is a clear answer too
    other.spend(0.6)
    with pytest.raises(BudgetExceeded):
        ledger.spend(0.6)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_ledger_in_a_file_is_the_same_ledger(tmp_path: Path, copied: Callable[[Ledger], Ledger]) -> None:
    ledger = in_file(tmp_path / "book.json", COIN, bound=pf.EntryDP)
    copied(ledger).spend(0.6)
    spends_nothing(ledger, lambda: ledger.spend(0.6), BudgetExceeded)


def test_a_book_with_windows_of_a_long_chain_opens_again(tmp_path: Path) -> None:
    p = [[0.6672901884383884, 0.33270981156161167], [0.36544564481383596, 0.6345543551861641]]
    ledger = in_file(tmp_path / "book.json", pf.MarkovChain(p), 5000, 2.0)
    ledger.leakage_with(0.01)
    ledger.spend(0.012833780745375624, window=(0, 4447))
    ledger.spend([[0, 0.0078784], [0.0515997, 0]], window=(4447, 5000))
    assert Ledger.open(tmp_path / "book.json").spent == ledger.spent


# Damage


def test_every_bit_counts(tmp_path: Path) -> None:
    """A ledger whose file differs in one bit is refused; so is one that was only written in another way."""
    rows = pf.read_rows(
        pl.DataFrame({"a": ["no", "yes"] * 5}), pf.BayesianNetwork({"a": pf.CPT(["no", "yes"], [0.8, 0.2])})
    )
    network = Ledger(pf.GroupDP(pf.BayesianNetwork({"a": pf.CPT(["no", "yes"], [0.8, 0.2])}), 10), 2.0, base=rows.base)
    chains = ledger_of(COIN, bound=pf.EntryDP, budget=2.0, base=read([[60, 40]]).base)
    for name, ledger in (("chains.json", chains), ("rows.json", network)):
        path = tmp_path / name
        ledger.spend(0.5)
        ledger.save(path)
        content = path.read_bytes()
        assert book_of(content, "book").budget == 2.0
        for at in range(len(content)):
            for bit in range(8):
                flipped = content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
                with pytest.raises(RecordError) as caught:
                    book_of(flipped, "book")
                assert "\n" not in str(caught.value)
        for other in (
            b" " + content,
            content + b"\n",
            b"\xef\xbb\xbf" + content,
            content[:-1],
            content.replace(b" ", b""),
        ):
            path.write_bytes(other)
            with pytest.raises(RecordError, match=r"changed after it was written.* treat the whole budget as spent"):
                Ledger.open(path)


def test_a_ledger_without_a_digest_is_refused(tmp_path: Path) -> None:
    in_file(tmp_path / "book.json")
    ledger_file = json.loads((tmp_path / "book.json").read_text())
    del ledger_file["digest"]
    (tmp_path / "book.json").write_text(json.dumps(ledger_file))
    with pytest.raises(RecordError, match="it has no digest"):
        Ledger.open(tmp_path / "book.json")


def test_keys_of_a_ledger_are_strict_however_deep(tmp_path: Path) -> None:
    """Whoever writes a digest that fits still cannot lose how the table was read by a misspelt key."""
    path = tmp_path / "book.json"
    in_file(path, base=read([[60, 40]], where="awake").base).spend(0.1)
    ledger_file = json.loads(path.read_text())

    def inside(record: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        for key, value in record.items() if isinstance(record, dict) else enumerate(record):
            if isinstance(record, dict):
                yield (*where, key)
            if isinstance(value, dict | list):
                yield from inside(value, (*where, key))

    for *where, last in inside(ledger_file):
        for name in (None, f"{last}z"):
            again = copy.deepcopy(ledger_file)
            place = again
            for key in where:
                place = place[key]
            value = place.pop(last)
            if name is not None:
                place[name] = value
            if last == "digest":
                continue
            put(path, again)
            with pytest.raises(RecordError):
                Ledger.open(path)


def test_the_lock_is_no_file_of_somebody_else(tmp_path: Path) -> None:
    ledger = in_file(tmp_path / "book.json")
    lock = tmp_path / "book.json.lock"
    lock.write_text("my data\n" * 100)
    spends_nothing(ledger, lambda: ledger.spend(0.01), RecordError, match="is no lock, but another file")
    lock.unlink()
    os.mkfifo(lock)
    spends_nothing(ledger, lambda: ledger.spend(0.01), RecordError, match="is no lock, but another file")


MORE_EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "up to it leak": lambda b: b["entries"][1].update(spent=b["entries"][0]["spent"]),
    "never falls": lambda b: b["entries"][1].update(spent=b["entries"][2]["spent"] * 1.1),
    "has epsilon": lambda b: b["entries"][0].update(epsilon=-0.1),
    "another distance": lambda b: b["entries"][0].update(distance=[[0, 1], [2, 0]]),
    "entry 2 was created": lambda b: b["entries"][1].update(created="yesterday"),
    "created is": lambda b: b.update(created="2026-01-01T00:00:00"),
    "there is no time": lambda b: b.update(base={**b["base"], "max_gap": "1min"}),
    "where '' is not an expression": lambda b: b.update(base={**b["base"], "where": ""}),
    "length": lambda b: b.update(length=[[2**63, 2**63]]),
    "digits|range|length": lambda b: b.update(length=[[10**400, 10**400]]),
    "rows": lambda b: b.update(length=[], rows=10**400),
}


def test_entries_in_the_middle_and_what_no_ledger_writes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path, base=read([[50, 50]]).base)
    ledger.spend(pf.LeakagePropagation(CHAIN, 100).calibrate(COUNT, 0.1))
    for _ in range(2):
        ledger.spend([[0, 0.01], [0.02, 0]])  # a loss of the user's own may differ by direction
    content = path.read_bytes()
    for words, edit in MORE_EDITS.items():
        ledger_file = json.loads(content)
        edit(ledger_file)
        put(path, ledger_file)
        with pytest.raises(RecordError, match=words) as caught:
            Ledger.open(path)
        assert "\n" not in str(caught.value)
    path.write_bytes(content)
    assert Ledger.open(path).spent == ledger.spent


def test_a_long_book_is_checked_at_some_entries_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path, COIN, bound=pf.EntryDP)
    for _ in range(40):
        ledger.spend(0.01)
    asked: list[int] = []
    leakage = Ledger._leakage

    def counted(self: Ledger, book: Any, entries: Any, *more: Any) -> float:
        asked.append(len(entries))
        return leakage(self, book, entries, *more)

    monkeypatch.setattr(Ledger, "_leakage", counted)
    other = Ledger.open(path)
    assert len(asked) == 16
    assert (asked[0], asked[-1]) == (1, 40)
    ledger.spend(0.01)
    asked.clear()
    assert other.spent == ledger.spent
    assert asked == [41]  # what was known is not checked again


def test_a_new_ledger_is_for_its_owner_alone_and_an_old_one_keeps_its_mode(tmp_path):
    """It holds the key of the digests of subjects."""
    path = tmp_path / "ledger.json"
    ledger = in_file(path, budget=5.0)
    assert path.stat().st_mode & 0o777 == 0o600
    ledger.spend(ledger.bound.calibrate(COUNT, 1.0))
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    again = Ledger.open(path)
    again.spend(again.bound.calibrate(COUNT, 1.0))
    assert path.stat().st_mode & 0o777 == 0o640
