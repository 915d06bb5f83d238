"""Ledgers of networks in their files: what comes back, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from ledgers import CHAIN, in_file as chain_in_file, put, spends_nothing
from network_ledgers import APART, COLLIDER, LINE, STEP, YES_NO, in_file, ledger_of, quilts, rows_of
from pufferfish.errors import BudgetExceeded, RecordError
from pufferfish.ledger import Ledger

COUNT = pf.Count("yes")
THETA = pf.ModelClass(
    (LINE, pf.BayesianNetwork(dict(LINE.cpts) | {"c": pf.CPT(YES_NO, [[0.7, 0.3], [1 / 3, 2 / 3]], ["b"])})), "survey"
)


@pytest.mark.parametrize(
    "bound",
    [
        pf.LeakagePropagation(THETA, 50),
        pf.LeakagePropagation(THETA, 50, secrets=["c"]),
        pf.GroupDP(THETA, 50),
        quilts(COLLIDER, 50, max_quilts=7),
        quilts(
            LINE,
            50,
            quilts={"b": [["a", "c"], ["a"]]},
            secrets=["a", (pf.RecordIs("b", "no"), pf.RecordIs("b", "yes"))],
        ),
    ],
    ids=["propagation", "propagation, secrets", "group-dp", "quilts, no forest", "quilts, settings"],
)
def test_a_reopened_ledger_is_the_same(tmp_path: Path, bound: Any) -> None:
    path, data = tmp_path / "book.json", rows_of(bound.networks[0])
    ledger = Ledger(bound, 20.0, base=data.base)
    ledger.spend(0.01)
    ledger.save(path)
    ledger.spend(bound.calibrate(COUNT, 0.3), data=data)
    ledger.spend({"b": [[0, 1 / 3], [1e-9, 0]], "a": 0.2})
    other = Ledger.open(path)
    assert other.entries == ledger.entries
    assert (other.spent, other.budget, other.base) == (ledger.spent, ledger.budget, ledger.base)
    assert (other.bound.name, other.bound.settings, other.bound.rows) == (bound.name, bound.settings, 50)
    assert (other.bound.secrets, other.bound.theta.origin) == (bound.secrets, bound.theta.origin)
    assert [network.nodes for network in other.bound.networks] == [network.nodes for network in bound.networks]
    assert other.leakage_with(0.05) == pytest.approx(ledger.leakage_with(0.05), rel=1e-9)
    assert other.spend(0.05) == ledger.entries[-1]
    query = pf.Subset(COUNT, [v for v in data.nodes if data.states[v] == ("no", "yes")])
    pf.release(data, query, other.calibrate(query, up_to=10.0), ledger=other)
    assert ledger.spent == pytest.approx(10.0, rel=1e-4)


def test_two_objects_on_one_file_are_one_ledger(tmp_path: Path) -> None:
    first = in_file(tmp_path / "book.json", APART)
    second = Ledger.open(tmp_path / "book.json")
    for i in range(5):
        assert first.spend(0.1).number == 2 * i + 1
        assert second.spend(0.1).number == 2 * i + 2
    assert first.spent == second.spent == 1.0
    for ledger in (first, second):
        spends_nothing(ledger, lambda b=ledger: b.spend(0.1), BudgetExceeded)


def test_nodes_that_are_not_named_by_text_are_not_saved(tmp_path: Path) -> None:
    numbered = pf.BayesianNetwork({0: pf.CPT(YES_NO, [0.8, 0.2]), "1": pf.CPT(YES_NO, STEP, [0])})
    for bound in (pf.LeakagePropagation, quilts):
        ledger = ledger_of(numbered, bound=bound)
        ledger.spend(0.1)
        with pytest.raises(RecordError, match=r"node 0 is int, .* make the network with '0'"):
            ledger.save(tmp_path / "book.json")
        assert list(tmp_path.iterdir()) == []
        assert ledger.spend(0.1).number == 2


def last(ledger_file: dict[str, Any]) -> dict[str, Any]:
    return ledger_file["entries"][-1]


EDITS: dict[str, Callable[[dict[str, Any]], object]] = {
    "distance of an unknown node": lambda b: last(b)["distance"].update(z=[[0, 1], [1, 0]]),
    "distances of a chain": lambda b: last(b).update(distance=[[0, 1], [1, 0]]),
    "no distances": lambda b: last(b).update(distance={}),
    "distance lost": lambda b: last(b)["distance"].pop("b"),
    "distance negative": lambda b: last(b)["distance"].update(a=[[0, -1], [1, 0]]),
    "distance of another shape": lambda b: last(b)["distance"].update(a=[[0, 1]]),
    "distance of nothing": lambda b: last(b)["distance"].update(a=[[0, 0], [0, 0]]),
    "distance to itself": lambda b: last(b)["distance"].update(a=[[1, 1], [1, 0]]),
    "distance not whole": lambda b: last(b)["distance"].update(a=[[0, 0.5], [0.5, 0]]),
    "distances of two nodes turned": lambda b: last(b).update(
        distance={"a": last(b)["distance"]["b"], "b": last(b)["distance"]["a"]}
    ),
    "windows": lambda b: last(b).update(windows=[[0, 2]]),
    "scale 0": lambda b: last(b).update(scale="0"),
    "scale 1/0": lambda b: last(b).update(scale="1/0"),
    "spent lowered in the last entry": lambda b: last(b).update(spent=0.0),
    "spent lowered in the first entry": lambda b: b["entries"][0].update(spent=0.0),
    "spent negative": lambda b: last(b).update(spent=-1.0),
    "first entry removed": lambda b: b["entries"].pop(0),
    "rows 0": lambda b: b.update(rows=0),
    "rows not whole": lambda b: b.update(rows=1.5),
    "no rows": lambda b: b.update(rows=None),
    "lengths too": lambda b: b.update(length=[[3, 3]]),
    "base of chains": lambda b: b.update(base={"source": "rows.csv", "state": "a"}),
    "base of other nodes": lambda b: b["rows_base"]["columns"].update(z="z"),
    "one column for two nodes": lambda b: b["rows_base"]["columns"].update(b="a"),
    "other theta": lambda b: b["theta"]["members"][0]["nodes"]["b"].update(table=[[0.5, 0.5], [0.5, 0.5]]),
    "no theta": lambda b: b["theta"].update(members=[]),
    "table of no law": lambda b: b["theta"]["members"][0]["nodes"]["a"].update(table=[0.5, 0.6]),
    "other secrets": lambda b: b.update(settings={"secrets": [["c", ["no"], ["yes"]]]}),
    "mechanism of chains": lambda b: b.update(mechanism="mqm-exact"),
    "other mechanism": lambda b: b.update(mechanism="group-dp", settings={}),
    "unknown field": lambda b: b.update(extra=1),
}


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_a_file_edited_by_hand_is_refused(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "book.json"
    ledger = in_file(path, base=rows_of().base)
    ledger.spend({"b": 0.02})
    ledger.spend({"a": 0.04, "b": 0.3})
    opened = Ledger.open(path)
    ledger_file = json.loads(path.read_text())
    EDITS[edit](ledger_file)
    put(path, ledger_file)
    for act in (lambda: Ledger.open(path), lambda: opened.spend(0.01), lambda: opened.spent):
        with pytest.raises(RecordError) as caught:
            act()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("other", [in_file, chain_in_file], ids=["networks", "chains"])
def test_a_book_of_the_other_kind_is_no_entry(tmp_path: Path, other: Any) -> None:
    """The entries of one kind put into the book of the other."""
    mine = chain_in_file if other is in_file else in_file
    for make, name in ((mine, "mine.json"), (other, "other.json")):
        make(tmp_path / name).spend(0.02)
    ledger_file = json.loads((tmp_path / "mine.json").read_text())
    ledger_file["entries"] = json.loads((tmp_path / "other.json").read_text())["entries"]
    put(tmp_path / "mine.json", ledger_file)
    with pytest.raises(RecordError, match="entry 1 is none of"):
        Ledger.open(tmp_path / "mine.json")


def test_a_chain_book_with_rows_is_refused(tmp_path: Path) -> None:
    chain_in_file(tmp_path / "book.json", CHAIN)
    ledger_file = json.loads((tmp_path / "book.json").read_text())
    for more in ({"rows": 100}, {"rows": 100, "length": []}, {"rows_base": {"source": "r.csv", "columns": {}}}):
        put(tmp_path / "book.json", ledger_file | more)
        with pytest.raises(RecordError, match="valid"):
            Ledger.open(tmp_path / "book.json")
