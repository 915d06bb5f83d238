"""Each subject pays for what was released about it: who is known by digests, and doubt counts for everybody."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from ledgers import CHAIN, COUNT, put, spends_nothing
from pufferfish.errors import BudgetExceeded, ParameterError, RecordError, ReleaseRefused
from pufferfish.ledger import Ledger

PEOPLE = ["ann", "bob", "cyd", "dee"]


def table(length: int = 60, people: list[str] = PEOPLE) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "id": np.repeat(people, length),
            "sex": np.repeat(["f", "m"] * len(people), length)[: length * len(people)],
            "activity": rng.choice(["rest", "active"], length * len(people)),
        }
    )


def read(where: str | None = None, rows: pl.DataFrame | None = None, **more: str) -> pf.Sequences:
    return pf.read_sequences(
        table() if rows is None else rows, "activity", **({"subject": "id"} | more), where=where, states=CHAIN.states
    )


def release(ledger: Ledger, where: str | None = None, epsilon: float = 0.5) -> float:
    data = read(where)
    noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(COUNT, epsilon)
    return pf.release(data, COUNT, noise, ledger=ledger).ledger.spent


def ledger_of(base: pf.Sequences | None = None, budget: float = 4.0) -> Ledger:
    base = read() if base is None else base
    return Ledger(pf.LeakagePropagation(CHAIN, base.length), budget, base=base)


def test_different_people_cost_the_largest_and_the_same_ones_the_sum(tmp_path: Path) -> None:
    ledger = ledger_of()
    ledger.save(tmp_path / "book.json")
    for who in PEOPLE:
        assert release(ledger, f"id == '{who}'") == pytest.approx(0.5, abs=1e-5)
    ledger = ledger_of()
    ledger.save(tmp_path / "second.json")
    assert release(ledger) == pytest.approx(0.5, abs=1e-5)
    women = release(ledger, "sex == 'f'")
    both = CHAIN, read().length
    noise = pf.LeakagePropagation(*both).calibrate(COUNT, 0.5)
    assert women == pytest.approx(pf.LeakagePropagation(*both).leakage(2 * noise.record_loss), rel=1e-4)
    assert release(ledger, "sex == 'm'") == pytest.approx(women, rel=1e-6)
    again = Ledger.open(tmp_path / "second.json")
    assert (again.spent, [entry.subjects is None for entry in again.entries]) == (ledger.spent, [True, False, False])
    text = (tmp_path / "second.json").read_text()
    # by itself: three letters happen to stand in a random digest, too
    assert not any(re.search(rf"(?<![A-Za-z0-9+/]){name}(?![A-Za-z0-9+/=])", text) for name in PEOPLE)
    assert json.loads(text)["subjects"]["salt"] != json.loads((tmp_path / "book.json").read_text())["subjects"]["salt"]


def test_noise_up_to_a_level_counts_what_these_people_spent() -> None:
    ledger = ledger_of()
    release(ledger, "sex == 'f'", 0.8)
    women, men = read("sex == 'f'"), read("sex == 'm'")
    spends_nothing(ledger, lambda: ledger.calibrate(COUNT, up_to=0.7, data=women), BudgetExceeded, "spent already")
    noise = ledger.calibrate(COUNT, up_to=0.8, data=men)
    assert noise.epsilon == pytest.approx(0.8, abs=1e-4)
    assert ledger.leakage_with(noise, data=men) == pytest.approx(0.8, abs=1e-4)
    assert ledger.leakage_with(noise, data=women) > 1.5
    assert ledger.leakage_with(noise) > 1.5  # of whom is not said: of everybody
    pf.release(men, COUNT, noise, ledger=ledger)
    assert ledger.spent == pytest.approx(0.8, abs=1e-4)


def test_who_is_not_known_is_everybody() -> None:
    ledger = ledger_of()
    release(ledger, "id == 'ann'")
    ledger.spend(0.2)
    noise = pf.LeakagePropagation(CHAIN, 60).calibrate(COUNT, 0.5)
    both = pf.LeakagePropagation(CHAIN, 60).leakage(noise.record_loss + 0.2 * (1 - np.eye(2)))
    assert ledger.spent == pytest.approx(both, rel=1e-4)
    how_only = Ledger(pf.LeakagePropagation(CHAIN, read().length), 4.0, base=read().base)  # not who
    assert release(how_only, "id == 'ann'") == pytest.approx(0.5, abs=1e-5)
    assert release(how_only, "id == 'bob'") > 0.9
    settled = Ledger(pf.LeakagePropagation(CHAIN, read().length), 4.0)  # by its first release
    assert release(settled) < 0.51
    assert release(settled, "id == 'ann'") == pytest.approx(release(settled, "id == 'bob'"), rel=1e-6)


def test_windows_of_different_people_do_not_add() -> None:
    ledger, noise = ledger_of(), pf.LeakagePropagation(CHAIN, [20]).calibrate(COUNT, 0.5)
    rows = table()
    for who in ("ann", "bob"):
        part = read(rows=rows.filter(pl.col("id") == who).head(20))
        ledger.spend(noise, data=part, window=(0, 20))
    once = ledger.spent
    assert once == pytest.approx(0.5, abs=1e-3)
    ledger.spend(noise, data=part, window={"bob": (0, 20), "dee": (0, 60)})  # who is not in the data pays nothing
    assert ledger.spent > 1.6 * once


def test_people_are_those_of_the_base() -> None:
    ledger, rows = ledger_of(), table()
    noise = pf.LeakagePropagation(CHAIN, [60]).calibrate(COUNT, 0.5)
    renamed = rows.with_columns(pl.col("id").str.replace("ann", "Ann"))
    spends_nothing(
        ledger,
        lambda: ledger.spend(noise, data=read(rows=renamed)),
        ReleaseRefused,
        "subject 'Ann', who is not in the ledger's base",
    )
    spends_nothing(
        ledger,
        lambda: ledger.spend(noise, data=read(subject="sex")),
        ReleaseRefused,
        "subject of the ledger",
    )
    longer = pl.concat([rows.filter(pl.col("id") == "ann"), table(30, ["ann"]).select(rows.columns)])
    base = read(rows=pl.concat([rows.filter(pl.col("id") != "bob"), table(100, ["bob"])]))
    long_base = ledger_of(base)
    noise = pf.LeakagePropagation(CHAIN, [90]).calibrate(COUNT, 0.5)
    spends_nothing(
        long_base, lambda: long_base.spend(noise, data=read(rows=longer)), ReleaseRefused, "'ann' has a chain of 90"
    )
    with pytest.raises(ParameterError, match=r"base has 4 chains"):
        Ledger(pf.LeakagePropagation(CHAIN, [60, 60]), 1.0, base=read())


def test_edited_subjects_and_old_books_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    ledger = ledger_of()
    ledger.save(path)
    release(ledger, "sex == 'f'")
    good = json.loads(path.read_bytes())
    Ledger.open(path)
    for wrong, why in (
        (lambda b: b["entries"][0].update(subjects="AAAA"), "lacks the list of"),
        (lambda b: b["entries"][0].update(subjects="eJxjYGAAAAADAAE="), "lacks the list of"),
        (lambda b: b["entries"][0].update(subjects=7), "subjects"),
        (lambda b: b.update(subjects=None), "the book has none"),
        (lambda b: b["subjects"].update(digests=b["subjects"]["digests"][:-24]), "digests"),
        (lambda b: b["subjects"].update(salt="ab"), "digests"),
        (lambda b: b.update(version=2), "is version 2 of pufferfish-ledger, this program reads version 6"),
        (lambda b: b.update(version=3), "charge all releases of the old one to it .* or use the program that"),
    ):
        ledger_file = json.loads(json.dumps(good))
        wrong(ledger_file)
        put(path, ledger_file)
        with pytest.raises(RecordError, match=why) as caught:
            Ledger.open(path)
        assert "\n" not in str(caught.value)
    put(path, good | {"subjects": good["subjects"] | {"salt": "00" * 32}})
    with pytest.raises(RecordError, match="changed by hand or replaced"):
        _ = ledger.spent


def test_a_ledger_of_many_people_stays_small_and_asks_once_for_each_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tuple(f"person {i}" for i in range(5_000))
    counts = np.full((len(names), 2), 50)
    base = pf.Sequences(
        states=CHAIN.states,
        counts=counts,
        transitions=np.zeros((2, 2), dtype=np.int64),
        length=tuple(pf.ChainLength(100 + i % 7, 100) for i in range(len(names))),
        subjects=len(names),
        names=names,
        base=read().base,
    )
    ledger = ledger_of(base, 50.0)
    path = tmp_path / "book.json"
    ledger.save(path)
    sizes = []
    asked = pf.LeakagePropagation.leakage
    monkeypatch.setattr(
        pf.LeakagePropagation,
        "leakage",
        lambda self, loss, **more: (sizes.append(len(self.length)), asked(self, loss, **more))[1],
    )
    for step in (2, 3, 5):
        part = [i for i in range(len(names)) if i % step == 0]
        some = pf.Sequences(
            states=CHAIN.states,
            counts=counts[part],
            transitions=base.transitions,
            length=tuple(base.length[i] for i in part),
            subjects=len(part),
            names=tuple(names[i] for i in part),
            base=base.base,
        )
        ledger.spend(0.1, data=some)
    assert sizes == [1, 3, 7]  # histories, but the empty one
    assert ledger.spent == pytest.approx(pf.LeakagePropagation(CHAIN, 106).leakage(0.3), rel=1e-6)
    assert path.stat().st_size < 750_000
    assert Ledger.open(path).spent == ledger.spent


HOURS = pf.PeriodicChain([CHAIN.transition_matrix] * 2, states=CHAIN.states)
BOUNDS = [
    (pf.EntryDP, pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=CHAIN.states)),
    (pf.GroupDP, CHAIN),
    (pf.GK16, pf.MarkovChain([[0.55, 0.45], [0.45, 0.55]], states=CHAIN.states)),
    (pf.MQMApprox, CHAIN),
    (pf.MQMExact, CHAIN),
    (pf.LeakagePropagation, CHAIN),
    (pf.LeakagePropagation, HOURS),
    (pf.LeakagePropagation, pf.HigherOrderChain(np.full((2, 2, 2), 0.5), states=CHAIN.states)),
    (pf.LeakagePropagation, pf.ForgettingClass(steps=2, overlap=0.5, states=CHAIN.states)),
    (pf.LeakagePropagation, pf.IntervalChain([[0.8, 0.1], [0.3, 0.5]], [[0.9, 0.2], [0.5, 0.7]], states=CHAIN.states)),
    (pf.GroupDP, HOURS),
]


def test_every_bound_knows_subjects() -> None:
    """Of lengths 40, 9 and 25: what is spent is the most that one of them leaks by itself."""
    lengths = {"ann": 40, "bob": 9, "cyd": 25}
    rows = pl.concat([table(n, [name]).head(n) for name, n in lengths.items()])
    data = {None: read(rows=rows)} | {name: read(f"id == '{name}'", rows=rows) for name in lengths}
    for bound, theta in BOUNDS:
        ledger = Ledger(bound(theta, data[None].length), 1e6, base=data[None])
        losses = dict.fromkeys(lengths, 0.0)
        for who, loss in (("bob", 0.3), (None, 0.05), ("cyd", 0.1), ("bob", 0.2), ("ann", 0.02)):
            ledger.spend(loss, data=data[who])
            for name in lengths:
                losses[name] += loss * (who in (None, name))
            alone = [bound(theta, lengths[name]).leakage(total) for name, total in losses.items() if total]
            assert ledger.spent == pytest.approx(max(alone), rel=2e-3), (bound, theta)
            assert ledger.spent > max(alone) * (1 - 1e-3)


def test_nobody_pays_by_the_window_of_another():
    days = pl.DataFrame({"who": ["a"] * 10 + ["b"] * 10, "s": list("rrwwrrwwrr") + list("wrrrwwrrrw")})
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["r", "w"])
    data = pf.read_sequences(days, "s", subject="who")
    of_b = pf.read_sequences(days.filter(pl.col("who") == "b"), "s", subject="who")
    ledger = pf.Ledger(pf.LeakagePropagation(chain, data.length), 1.0, base=data)
    noise = pf.LeakagePropagation(chain, of_b.length).calibrate(pf.Count("w"), epsilon=0.9)
    for window in ({"a": (0, 10)}, {"a": (0, 10), "b": (0, 1)}, {"b": (0, 1)}, (0, 1), {"c": (0, 10), "b": (0, 10)}):
        with pytest.raises(pf.ReleaseRefused):
            pf.release(of_b, pf.Count("w"), noise, ledger=ledger, window=window)
        with pytest.raises(pf.ReleaseRefused):
            ledger.leakage_with(noise, data=of_b, window=window)
    assert not ledger.entries
    pf.release(of_b, pf.Count("w"), noise, ledger=ledger, window={"b": (0, 10)})
    assert ledger.spent == pytest.approx(0.9, rel=1e-4)
    with pytest.raises(pf.BudgetExceeded):
        pf.release(of_b, pf.Count("w"), noise, ledger=ledger, window={"b": (0, 10)})


# Planned ledgers

WEEK = 7
YEAR = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["r", "w"])


def days_of(*names: str, week: int = 0) -> pf.Sequences:
    days = pl.DataFrame(
        {"who": np.repeat(names, WEEK), "day": list(range(WEEK * week, WEEK * week + WEEK)) * len(names)}
    ).with_columns(s=pl.Series(list("rrwwrrw") * len(names)))
    return pf.read_sequences(days, "s", subject="who", time="day", max_gap=1, states=["r", "w"])


def test_the_same_week_of_one_person_is_charged_each_time() -> None:
    """No order of chains can be given, by which five releases about one person would be about five people."""
    bo, base = days_of("bo"), days_of("al", "bo", "cy", "di", "ed")
    noise = pf.LeakagePropagation(YEAR, WEEK).calibrate(pf.Count("w"), 0.5)
    bound = pf.LeakagePropagation(YEAR, [52 * WEEK] * 5)
    for told, window in ((base, (0, WEEK)), (base, {"bo": (0, WEEK)}), (base.base, (0, WEEK))):
        ledger = Ledger(bound, 50.0, base=told)
        places = [[(0, WEEK) if i == j else None for i in range(5)] for j in range(5)]
        for by_place in places:
            with pytest.raises(ParameterError, match="window has"):
                ledger.spend(noise, data=bo, window=by_place)
        spent = [ledger.spend(noise, data=bo, window=window).spent for _ in range(5)]
        assert spent[0] == pytest.approx(0.5, rel=0.02)
        assert spent[4] > 1.5


@pytest.mark.parametrize(
    ("length", "base", "says"),
    [
        ([28, 14], days_of("al", "bo"), "with grows=True"),
        ([28, 28, 28], days_of("al", "bo"), "base has 2 chains, but the mechanism was made for 3"),
        ([5, 5], days_of("al", "bo"), "length=data.length of the whole table"),
    ],
    ids=str,
)
def test_plans_that_do_not_say_whose_they_are(length: object, base: object, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Ledger(pf.LeakagePropagation(YEAR, length), 1.0, base=base)
