"""Ledgers whose Θ is changed: all releases so far, and those that follow, are charged as if it had always been so."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from ledgers import put
from network_ledgers import LINE
from pufferfish.errors import BudgetExceeded, ParameterError, RecordError
from pufferfish.fit.model_file import read_model, write_model
from pufferfish.ledger import Ledger
from pufferfish.theta.record import ThetaRecord

STATES = ["a", "b"]
LOOSE = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]], states=STATES)
STICKY = pf.MarkovChain([[0.97, 0.03], [0.05, 0.95]], states=STATES)
READING = {"state": "state", "subject": "who", "time": "day", "max_gap": "1d", "step": "1d"}
OTHER_LINE = pf.BayesianNetwork(
    {name: pf.CPT(cpt.states, 0.8 * np.array(cpt.table) + 0.1, cpt.parents) for name, cpt in LINE.cpts.items()}
)
NARROW = pf.IntervalChain([[0.8, 0.02], [0.02, 0.8]], [[0.98, 0.2], [0.2, 0.98]], states=STATES)


def table(days: dict[Any, list[int]]) -> pl.DataFrame:
    begin = dt.date(2024, 1, 1)
    rows = [(who, begin + dt.timedelta(days=n), STATES[n % 2]) for who, some in days.items() for n in some]
    return pl.DataFrame(rows, schema=["who", "day", "state"], orient="row")


PEOPLE = pf.read_sequences(table({"x": [*range(20)], "y": [*range(9)]}), **READING)


def class_of(ledger: Ledger) -> ThetaRecord:
    return ThetaRecord.of(ledger.bound.theta)


def chains(theta: Any) -> tuple[Ledger, list[Callable[[Ledger], object]]]:
    """A ledger under a class, and what is spent from it, one after the other; noise is the same under every class."""
    noise = pf.LeakagePropagation(LOOSE, PEOPLE.length).calibrate(pf.Histogram(), 0.3)
    steps = pf.LeakagePropagation(LOOSE, PEOPLE.length).calibrate(pf.Transitions(), 0.3)
    ledger = Ledger(pf.LeakagePropagation(theta, PEOPLE.length), 50.0, base=PEOPLE)
    return ledger, [
        lambda ledger: ledger.spend(noise, data=PEOPLE),
        lambda ledger: ledger.spend(0.2, window={"x": (3, 9)}),
        lambda ledger: ledger.spend(steps, data=PEOPLE),
        lambda ledger: ledger.spend(0.1),
    ]


def weeks(theta: Any) -> tuple[Ledger, list[Callable[[Ledger], object]]]:
    ledger = Ledger(pf.LeakagePropagation(theta, 2, protect=2), 50.0, base=PEOPLE.base, grows=True)

    def week(number: int, who: str) -> Callable[[Ledger], object]:
        days = [*range(7 * number, 7 * number + 7)]
        data = pf.read_sequences(table({name: days for name in who}), **READING, states=STATES)
        noise = pf.LeakagePropagation(LOOSE, data.length).calibrate(pf.Histogram(), 0.3)
        return lambda ledger: ledger.spend(noise, data=data)

    return ledger, [week(0, "xy"), week(1, "x"), week(1, "xz"), week(5, "z")]


def network(theta: Any) -> tuple[Ledger, list[Callable[[Ledger], object]]]:
    ledger = Ledger(pf.LeakagePropagation(theta, 30), 50.0)
    return ledger, [lambda ledger, node=node: ledger.spend({node: 0.2}) for node in ("a", "b", "c", "a")]


KINDS = {
    "chains": (chains, LOOSE, STICKY),
    "an interval": (chains, LOOSE, NARROW),
    "a list": (chains, STICKY, [LOOSE, STICKY]),
    "a table that grows": (weeks, LOOSE, STICKY),
    "a network": (network, LINE, OTHER_LINE),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("back", [False, True], ids=["", "and back"])
def test_what_is_spent_is_as_if_theta_had_always_been_so(tmp_path: Path, kind: str, after: int, back: bool) -> None:
    make, first, second = KINDS[kind]
    if back:
        first, second = second, first
    (changed, spends), (old, _), (new, _) = make(first), make(first), make(second)
    changed.save(tmp_path / "book.json")
    beside = Ledger.open(tmp_path / "book.json")
    for spend in spends[:after]:
        for ledger in (changed, old, new):
            spend(ledger)
    entry = changed.change(second)
    assert entry.spent == changed.spent == pytest.approx(max(old.spent, new.spent), rel=1e-9)
    assert class_of(changed) == class_of(new)
    for spend in spends[after:]:
        spend(changed if after else beside)  # a program that had the ledger open follows
        spend(new)
        assert changed.spent == pytest.approx(max(old.spent, new.spent), rel=1e-6)
    again = Ledger.open(tmp_path / "book.json")
    assert again.entries == changed.entries == beside.entries
    assert class_of(again) == class_of(beside) == class_of(new)
    assert ThetaRecord.of(again.bound_at(entry.number - 1).theta) == class_of(old)
    for kept, fresh in zip(again.promises(), new.promises(), strict=True):
        assert (kept.unit, kept.epsilon) == (fresh.unit, pytest.approx(fresh.epsilon)) or kept.epsilon == again.spent


def test_under_another_class_more_may_be_spent_than_the_budget_and_then_nothing_fits(tmp_path: Path) -> None:
    spends = chains(LOOSE)[1]
    small = Ledger(pf.LeakagePropagation(LOOSE, PEOPLE.length), 0.5, base=PEOPLE)
    spends[0](small)
    small.save(tmp_path / "book.json")
    assert small.change(STICKY, dry_run=True).spent > 0.5
    assert (len(small.entries), small.spent < 0.5) == (1, True)
    small.change(STICKY)
    again = Ledger.open(tmp_path / "book.json")
    assert again.spent > again.budget
    assert again.remaining == 0
    with pytest.raises(BudgetExceeded):
        again.spend(1e-4)
    with pytest.raises(BudgetExceeded):
        again.calibrate(pf.Histogram())
    again.change(LOOSE)
    assert again.spent > again.budget  # it never falls
    assert len(str(again).splitlines()) > 5


def test_only_a_class_of_the_same_states_takes_the_place(tmp_path: Path) -> None:
    ledger, spends = chains(LOOSE)
    spends[0](ledger)
    swapped = pf.MarkovChain(LOOSE.transition_matrix, states=["b", "a"])
    for other in (swapped, pf.Model(theta=LOOSE, step="1h")):
        with pytest.raises(ParameterError, match="the new Θ has other states"):
            ledger.change(other)
    with pytest.raises(ParameterError):
        ledger.change(LINE)
    assert len(ledger.entries) == 1


def test_an_entry_that_changes_theta_says_nothing_of_a_release(tmp_path: Path) -> None:
    ledger, _ = chains(LOOSE)
    ledger.save(tmp_path / "book.json")
    ledger.change(STICKY)
    book = json.loads((tmp_path / "book.json").read_bytes())
    for name, value in {"distance": [[0, 1], [1, 0]], "epsilon": 1.0, "question": "Histogram()", "where": "x"}.items():
        edited = json.loads(json.dumps(book))
        edited["entries"][0][name] = value
        put(tmp_path / "edited.json", edited)
        with pytest.raises(RecordError):
            Ledger.open(tmp_path / "edited.json")
    del book["entries"][0]["theta"]
    put(tmp_path / "edited.json", book)
    with pytest.raises(RecordError):
        Ledger.open(tmp_path / "edited.json")


def test_the_command_says_first_what_would_be_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table({"x": [*range(3000)], "y": [*range(1500)]}).write_csv("table.csv")
    for name, theta in (("loose", LOOSE), ("sticky", STICKY)):
        write_model(pf.Model(theta=theta), f"{name}.json")
    columns = ["--state", "state", "--subject", "who", "--time", "day", "--max-gap", "1d"]
    create = ["ledger", "create", "book.json", "--model", "loose.json", "--table", "table.csv", *columns]
    release = ["release", "table.csv", "--query", "histogram", *columns, "--ledger", "book.json", "--epsilon", "0.3"]
    change = ["ledger", "change", "book.json", "--model", "sticky.json"]
    for arguments in (
        [*create, "--budget", "9"],
        [*release, "--model", "loose.json", "--output", "first.json"],
        [*change, "--dry-run"],
        change,
        [*release, "--model", "sticky.json", "--output", "second.json"],
        ["verify", "first.json", "second.json", "--ledger", "book.json"],
        ["ledger", "show", "book.json"],
    ):
        done = run(*arguments)
        assert done.exit_code == 0, done.output
        if arguments[:2] == ["ledger", "change"]:
            assert "1 entry charged again: spent 0.3 before" in done.output
            assert ("a dry run" in done.output) == ("--dry-run" in arguments)
            alike = (
                "the origin reads alike, and it is another class: it differs in chains: transition probabilities by up"
            )
            assert f"new Θ: stated by the user ({alike} to 0.35)" in done.output
    models = ["--model", "sticky.json"]
    after = run("verify", "first.json", "--ledger", "book.json", *models)
    assert after.exit_code == 0, after.output
    assert "the model is that of entry 2, which changed Θ of the ledger after this release" in " ".join(
        after.output.split()
    )
    alone = run("verify", "first.json", *models)
    assert alone.exit_code != 0
    assert "if Θ was changed after this release (pufferfish ledger change), name the ledger too" in " ".join(
        alone.output.split()
    )
    assert run("verify", "first.json", "--ledger", "book.json", "--model", "loose.json").exit_code == 0
    write_model(pf.Model(theta=NARROW), "other.json")
    assert run("verify", "first.json", "--ledger", "book.json", "--model", "other.json").exit_code != 0
    assert run("verify", "second.json", "--ledger", "book.json", "--model", "loose.json").exit_code != 0  # it is before
    entries = Ledger.open("book.json").entries
    assert [entry.theta is None for entry in entries] == [True, False, True]
    assert entries[1].spent > entries[0].spent
    run("ledger", "create", "small.json", *create[3:], "--budget", "0.5")
    small = [*release[:-3], "small.json", "--epsilon", "0.3", "--model", "loose.json", "--output", "third.json"]
    assert run(*small).exit_code == 0
    done = run("ledger", "change", "small.json", "--model", "sticky.json")
    assert (done.exit_code, "give --accept budget" in done.stderr) == (2, True)
    assert len(Ledger.open("small.json").entries) == 1
    assert run("ledger", "change", "small.json", "--model", "sticky.json", "--accept", "budget").exit_code == 0
    assert Ledger.open("small.json").spent > 0.5
    assert ThetaRecord.of(read_model("sticky.json").theta) == class_of(Ledger.open("small.json"))
    refused("ledger", "change", "small.json", "--model", "none.json", says=["none.json"])
