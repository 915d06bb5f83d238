"""Ledgers of tables that grow: what a file is read as, who pays for what, and what is refused."""

import datetime as dt
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish._core.numbers.laplace import laplace_sum
from pufferfish.data.sequences import Base
from pufferfish.errors import BudgetExceeded, DataError, ParameterError, RecordError, ReleaseRefused
from pufferfish.fit.model_file import write_model
from pufferfish.ledger._reads import Reads, common, joined, without
from pufferfish.ledger._series_charges import _Folded

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]], states=["a", "b"])
BEGIN = dt.date(2024, 1, 1)
READING = {"state": "state", "subject": "who", "time": "day", "max_gap": "1d", "step": "1d"}
QUERY = pf.Histogram()


def table(days: dict[Any, list[int]]) -> pl.DataFrame:
    rows = [(who, BEGIN + dt.timedelta(days=n), "ab"[n % 2]) for who, some in days.items() for n in some]
    return pl.DataFrame(rows, schema=["who", "day", "state"], orient="row")


BASE = pf.read_sequences(table({"x": [0, 1]}), **READING).base


def ledger(budget: float = 10.0, theta: Any = CHAIN, **more: Any) -> pf.Ledger:
    return pf.Ledger(pf.LeakagePropagation(theta, 2, **more), budget, base=BASE, grows=True)


def days_read(entry: Any, whose: int) -> list[list[int]]:
    """The days, from the first of all, that an entry read of a subject."""
    first = (BEGIN - dt.date(1970, 1, 1)).days
    for group in entry.reads:
        if whose in Reads.written([group], None, "it").groups[0][1]:
            return [[start - first, stop - first] for start, stop in group.steps]
    return []


# -- What is read ----------------------------------------------------------------------------------------------------


def test_rows_that_are_new_are_found_whatever_the_file(tmp_path: Path) -> None:
    book = ledger()
    for rows, new, before, late in (
        ({"x": [*range(7)], "y": [0, 1, 2, 4, 5, 6]}, 13, 0, 0),
        ({"x": [*range(7, 14)], "z": [*range(7, 14)]}, 14, 0, 0),  # new rows alone; y stops, z joins
        (
            {"x": [*range(14)], "y": [*range(7)], "z": [*range(5, 16)]},
            5,
            27,
            3,
        ),  # some of y, z late
        ({"y": [20, 21], "z": [30]}, 3, 0, 0),  # y is back
    ):
        data = book.read(table(rows), QUERY)
        assert (data.records, data.read_before, book.late_steps(data, QUERY)) == (new, before, late)
        book.spend(pf.LeakagePropagation(CHAIN, data.length).calibrate(QUERY, 0.5), data=data)
    last = book.entries[2]
    assert [days_read(last, whose) for whose in range(3)] == [[], [[3, 4]], [[5, 7], [14, 16]]]
    with pytest.raises(DataError, match=r"all 3 rows .* were already read by a release of the same query"):
        book.read(table({"y": [20, 21], "z": [30]}), QUERY)
    assert book.read(table({"y": [20, 21], "z": [30]}), QUERY, again=True).records == 3
    assert book.read(table({"y": [20, 21], "z": [30]}), pf.Count("a")).records == 3  # another question
    assert book.read(table({"y": [20, 21], "z": [30]}), QUERY, where="who == 'y'").records == 2  # other rows


@pytest.mark.parametrize("names", [("x", "y"), (7, 70), (7.5, 8.0), (True, False)])
def test_subjects_of_every_type_are_known_again(names: tuple[Any, Any], tmp_path: Path) -> None:
    book, (one, other) = ledger(), names
    data = book.read(table({one: [0, 1, 2], other: [0, 2]}), QUERY)
    book.spend(0.1, data=data)
    book.spend(pf.LeakagePropagation(CHAIN, data.length).calibrate(QUERY, 0.5), data=data)
    again = book.read(table({one: [0, 1, 2, 3], other: [0, 1, 2]}), QUERY)
    assert (again.records, again.read_before) == (2, 5)
    assert book._book.subjects is not None
    assert book._book.subjects.count == 2


def test_one_series_needs_no_subject() -> None:
    reading = {name: value for name, value in READING.items() if name != "subject"}
    base = pf.read_sequences(table({"x": [0, 1]}), **reading).base
    book = pf.Ledger(pf.LeakagePropagation(CHAIN, 2), 10.0, base=base, grows=True)
    for first in (0, 7, 14):
        data = book.read(table({"x": [*range(first, first + 7)]}), QUERY)
        book.spend(pf.LeakagePropagation(CHAIN, data.length).calibrate(QUERY, 0.5), data=data)
    data = book.read(table({"x": [*range(25)]}), QUERY)
    assert (data.records, data.read_before) == (4, 21)
    with pytest.raises(ReleaseRefused, match="subject of the ledger's table is not given"):
        book.spend(0.1, data=pf.read_sequences(table({"x": [0, 1]}), **READING))


def test_data_that_nobody_read_with_the_ledger_are_charged_from_their_first_row_to_their_last() -> None:
    book = ledger()
    book.spend(0.1, data=pf.read_sequences(table({"x": [0, 1, 5]}), **READING))
    assert days_read(book.entries[0], 0) == [[0, 6]]
    book.spend(0.1, data=book.read(table({"x": [10, 11, 15]})))
    assert days_read(book.entries[1], 0) == [[10, 12], [15, 16]]


def test_files_of_a_ledger_are_opened_again_and_go_on(tmp_path: Path) -> None:
    book = ledger()
    book.plan([QUERY], up_to=1.0)
    book.save(tmp_path / "book.json")
    other = pf.Ledger.open(tmp_path / "book.json")
    for n, each in enumerate((book, other, book, pf.Ledger.open(tmp_path / "book.json"))):
        data = each.read(table({"x": [n], f"p{n}": [n, n + 1]}), QUERY)
        each.spend(each.as_planned(QUERY, data), data=data)
    assert book.spent == other.spent == pf.Ledger.open(tmp_path / "book.json").spent == pytest.approx(1.0, rel=1e-5)
    assert [entry.previous for entry in book.entries] == [entry.previous for entry in other.entries]
    assert len(book.entries) == 5
    words = repr(book)
    assert "hides any one record" in words
    assert [promise.unit for promise in book.promises()][-1] == "one record, without any model"
    assert not any("whole series" in promise.unit for promise in book.promises())  # it has no end


EDITS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("lacks the steps", lambda e: e["reads"][0].update(steps=[])),
    ("lacks the steps", lambda e: e["reads"][0].update(steps=[[3, 3]])),
    ("lacks the steps", lambda e: e["reads"][0].update(steps=[[5, 7], [2, 3]])),
    ("lacks the steps", lambda e: e["reads"][0].update(steps=[[5, 7], [7, 9]])),
    ("lacks the steps", lambda e: e["reads"][0].update(subjects="eJz7//8/AAX+Av8=")),
    ("lacks the steps", lambda e: e["reads"].append(e["reads"][0])),
    ("lacks the steps", lambda e: e["reads"].clear()),
    ("has windows", lambda e: e.update(windows=[[[0, 1]]])),
    ("are spent", lambda e: e["reads"][0].update(steps=[[0, 900]])),
)


@pytest.mark.parametrize(("why", "edit"), EDITS)
def test_an_edited_book_is_refused(why: str, edit: Callable[[Any], Any], tmp_path: Path) -> None:
    from ledgers import put

    book = ledger()
    book.save(tmp_path / "book.json")
    for loss in (0.1, 0.3):
        book.spend(loss, data=book.read(table({"x": [0, 1, 2], "y": [1]})))
    content = json.loads((tmp_path / "book.json").read_text())
    edit(content["entries"][1])
    put(tmp_path / "book.json", content)
    with pytest.raises(RecordError, match=why) as caught:
        pf.Ledger.open(tmp_path / "book.json")
    assert "\n" not in str(caught.value)


# -- What it costs ---------------------------------------------------------------------------------------------------


def test_a_plan_covers_each_row_once_and_nothing_beyond_its_noise() -> None:
    book = ledger()
    (plan,) = book.plan([pf.Count("a")], up_to=1.0)
    spent = book.spent
    data = book.read(table({"x": [0, 1], "y": [0]}))
    noise = book.as_planned(pf.Count("a"), data)
    assert noise.unit_scale == plan.unit_scale
    book.spend(noise, data=data)
    assert book.spent == spent
    book.spend(noise, data=data, note="the same rows again")
    assert book.spent > spent * 1.1
    sharper, spent = pf.LeakagePropagation(CHAIN, data.length).calibrate(pf.Count("a"), 3.0), book.spent
    far = book.read(table({"z": [1000]}))
    book.spend(sharper, data=far)
    assert book.spent > spent


def test_another_question_takes_no_place_in_a_plan() -> None:
    totals = []
    for order in (("other", "planned"), ("planned", "other")):
        book = ledger()
        book.plan([pf.Count("a")], up_to=1.0)
        data = book.read(table({"x": [0, 1]}))
        other = pf.LeakagePropagation(CHAIN, data.length).calibrate(pf.Count("b"), 0.01)
        for which in order:
            book.spend(other if which == "other" else book.as_planned(pf.Count("a"), data), data=data)
        totals.append(book.spent)
    assert totals[0] == pytest.approx(totals[1], rel=1e-9)
    assert 1.0 < totals[0] < 1.05


def test_plans_of_several_queries_share_the_budget_alike() -> None:
    book = ledger(1.0)
    plans = book.plan([QUERY, pf.Transitions()], dry_run=True)
    assert book.entries == ()
    assert [plan.unit_scale for plan in book.plan([QUERY, pf.Transitions()])] == [plan.unit_scale for plan in plans]
    alone = [
        pf.LeakagePropagation(CHAIN, 2**40).calibrate(query, 1.0).unit_scale for query in (QUERY, pf.Transitions())
    ]
    shares = [plan.unit_scale / one for plan, one in zip(plans, alone, strict=True)]
    assert shares[0] == pytest.approx(shares[1], rel=1e-3)
    assert book.spent == pytest.approx(1.0, rel=1e-5)
    week = book.read(table({"x": [*range(7)]}), pf.Transitions())
    for query in (pf.Transitions(), QUERY):
        book.spend(book.as_planned(query, week), data=week)
    assert book.spent == pytest.approx(1.0, rel=1e-5)
    with pytest.raises(BudgetExceeded):
        book.plan([pf.Count("a")])
    with pytest.raises(ParameterError, match=r"Histogram.* is already planned as entry 1, and a plan cannot change"):
        book.plan([pf.Switches(), QUERY])


def test_a_budget_about_days_is_one_about_days() -> None:
    book = ledger(1.0, protect=3)
    (plan,) = book.plan([pf.Count("a")])
    assert plan.unit_scale > ledger(1.0).plan([pf.Count("a")])[0].unit_scale * 1.3
    data = book.read(table({"x": [0, 1, 2]}))
    assert book.as_planned(pf.Count("a"), data).bound.protection is not None
    assert "any stretch of 3 steps" in book.hides


def test_releases_are_recorded_and_verified(tmp_path: Path) -> None:
    book = ledger(2.0)
    book.plan([QUERY], up_to=1.0)
    book.save(tmp_path / "book.json")
    days = {f"p{who}": [*range(7)] for who in range(60)}
    table(days).write_csv(tmp_path / "week.csv")
    data = book.read(tmp_path / "week.csv", QUERY)
    release = pf.release(data, QUERY, book.as_planned(QUERY, data), ledger=book)
    release.to_json(tmp_path / "release.json")
    found = pf.verify(tmp_path / "release.json", ledger=tmp_path / "book.json", table=tmp_path / "week.csv")
    assert found.holds
    assert "ledger" not in [part.what for part in found.unchecked]


def test_threads_that_ask_at_once_are_told_of_their_own_charges(monkeypatch: pytest.MonkeyPatch) -> None:
    """One asks while another one is between what was charged and what that is beyond the plan."""
    book = ledger(1e6)
    one, other = book.read(table({"x": [*range(7)]})), book.read(table({"x": [*range(100)]}))
    alone, others = book.leakage_with(0.3, data=one), list[threading.Thread]()
    fold = _Folded.to

    def slow(self: _Folded, charges: Any) -> _Folded:
        found = fold(self, charges)
        if not others:
            others.append(threading.Thread(target=book.leakage_with, args=(5.0,), kwargs={"data": other}))
            others[0].start()
            others[0].join(0.3)
        return found

    monkeypatch.setattr(_Folded, "to", slow)
    assert book.leakage_with(0.3, data=one) == alone
    others[0].join()


# -- What is refused -------------------------------------------------------------------------------------------------


def test_what_no_series_has_is_refused() -> None:
    given = pf.MarkovChain(CHAIN.transition_matrix, [1, 0], states=["a", "b"])
    with pytest.raises(ReleaseRefused, match=r'"stationary" or "any"'):
        ledger(theta=given)
    with pytest.raises(ReleaseRefused, match="needs LeakagePropagation"):
        pf.Ledger(pf.GroupDP(CHAIN, 2), 1.0, base=BASE, grows=True)
    net = pf.BayesianNetwork({"a": pf.CPT(["no", "yes"], [0.8, 0.2])})
    with pytest.raises(ReleaseRefused, match="needs LeakagePropagation on Markov chains"):
        pf.Ledger(pf.LeakagePropagation(net, length=40), 1.0, grows=True)
    never = pf.MarkovChain([[0, 1], [1, 0]], "any", states=["a", "b"])
    with pytest.raises(ReleaseRefused, match="no noise keeps an endless series"):
        ledger(theta=never).plan([QUERY])
    with pytest.raises(ReleaseRefused, match="no end"):
        ledger(protect="subject")
    with pytest.raises(ParameterError, match="give time and max_gap"):
        pf.Ledger(pf.LeakagePropagation(CHAIN, 2), 1.0, base=Base(source="t", state="s"), grows=True)
    with pytest.raises(ParameterError, match="grows"):
        pf.Ledger(pf.LeakagePropagation(CHAIN, 2), 1.0, base=BASE, grows="yes")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="grows=True"):
        pf.Ledger(pf.LeakagePropagation(CHAIN, 2), 1.0, base=BASE).plan([QUERY])
    with pytest.raises(ParameterError, match="does not know yet how its table is read: give state="):
        pf.Ledger(pf.LeakagePropagation(CHAIN, 2), 1.0, grows=True).read(pl.DataFrame({"s": ["a"]}), QUERY)


def test_data_that_no_time_places_are_refused() -> None:
    book = ledger()
    data = book.read(table({"x": [0, 1]}))
    book.spend(0.1, data=data)
    with pytest.raises(ParameterError, match="give data"):
        book.spend(0.1)
    with pytest.raises(ParameterError, match="window"):
        book.spend(0.1, data=data, window=(0, 1))
    given = pf.MarkovChain(CHAIN.transition_matrix, [1, 0], states=["a", "b"])
    noise = pf.LeakagePropagation(given, data.length).calibrate(QUERY, 1.0)
    with pytest.raises(ReleaseRefused, match="first record has a given law"):
        book.spend(noise, data=data)
    noon = table({"x": [0, 1]}).with_columns(pl.col("day").cast(pl.Datetime) + pl.duration(hours=12))
    with pytest.raises(ReleaseRefused, match="not whole steps"):
        book.spend(0.1, data=book.read(noon))
    hours = [dt.datetime(2024, 1, 1, n) for n in range(3)]
    local = pl.DataFrame({"who": ["x"] * 3, "day": hours, "state": ["a"] * 3})
    hourly = pf.Ledger(pf.LeakagePropagation(CHAIN, 2), 1.0, grows=True)
    reading = {**READING, "max_gap": "1h", "step": "1h", "states": ["a", "b"]}
    with pytest.raises(ReleaseRefused, match="give time_zone"):
        hourly.spend(0.1, data=pf.read_sequences(local, **reading))
    hourly.spend(0.1, data=pf.read_sequences(local, **reading, time_zone="UTC"))
    with pytest.raises(ReleaseRefused, match="max_gap of the ledger's table is '1d'"):
        book.spend(0.1, data=pf.read_sequences(table({"x": [0, 2, 4]}), **{**READING, "max_gap": "2d", "step": "2d"}))
    late = pl.DataFrame({"who": ["x"] * 3, "day": [0, 60, 122], "state": ["a"] * 3})
    minutes = pf.Ledger(pf.LeakagePropagation(CHAIN, 2), 1.0, grows=True)
    with pytest.raises(ReleaseRefused, match="round them to steps"):
        minutes.spend(0.1, data=pf.read_sequences(late, **{**READING, "max_gap": 65, "step": 60}, states=["a", "b"]))
    with pytest.raises(ParameterError, match=r"no noise is planned for count: make a plan \(pufferfish ledger plan\)"):
        book.as_planned(pf.Count("a"), data)


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pf.write_model(pf.Model(theta=CHAIN, step="1d"), "m.json")
    read = ("--state", "state", "--subject", "who", "--time", "day", "--max-gap", "1d")
    refused("ledger", "create", "b.json", "--model", "m.json", "--budget", 1, *read, says=["--table", "--grows"])
    create = ("ledger", "create", "b.json", "--model", "m.json", "--budget", 1, "--grows", *read[:-1])
    refused(*create, "2d", says=["--max-gap is 2d and a step of the model takes 1d"])
    refused(*create, "2d", "--step", "2d", says=["a step of the model takes 1d, but the table's records are 2d apart"])
    assert not Path("b.json").exists()
    assert run(*create, "24h").exit_code == 0  # as the table's 1d
    plan = ("ledger", "plan", "b.json", "--query", "histogram")
    refused(*plan, "--also", "count:a", "--every", "1w", says=["--every", "2 queries"])
    refused(*plan, "--up-to", 2, says=["above the budget"])
    assert "nothing was reserved" in run(*plan, "--every", "1w", "--dry-run").stdout
    assert "reserved in b.json: 1 of 1" in run(*plan, "--every", "1w").stdout
    table({f"p{who}": [*range(7)] for who in range(90)}).write_csv("w.csv")
    release = ("release", "w.csv", *read, "--model", "m.json", "--query", "histogram")
    refused(*release, "--planned", "--output", "r.json", says=["--planned needs --ledger"])
    refused(*release, "--again", "--epsilon", 1, "--output", "r.json", says=["--again", "grows"])
    refused(*release, "--planned", "--epsilon", 1, "--ledger", "b.json", "--output", "r.json", says=["give one of"])
    assert run(*release, "--planned", "--ledger", "b.json", "--output", "r.json").exit_code == 0
    says = ["were already read", "--again"]
    refused(*release, "--planned", "--ledger", "b.json", "--output", "s.json", says=says)
    refused(*release, "--planned", "--again", "--ledger", "b.json", "--output", "s.json", says=["above the budget"])
    table({"p0": [*range(9)]}).write_csv("w.csv")
    assert (
        "7 rows were read by an earlier"
        in run(*release, "--planned", "--ledger", "b.json", "--accept", "noise", "--output", "t.json").stdout
    )
    shown = run("ledger", "show", "b.json").stdout
    assert "histogram, every 1w" in shown
    assert "630 steps of 90 subjects" in shown
    assert not Path("s.json").exists()


# -- Steps -----------------------------------------------------------------------------------------------------------


def test_steps_are_joined_shared_and_taken_away_as_sets_are() -> None:
    rng = np.random.default_rng(2)

    def runs(steps: set[int]) -> Any:
        return joined(*(((n, n + 1),) for n in steps))

    for _ in range(300):
        one, other = (set(rng.integers(0, 14, size=rng.integers(0, 9)).tolist()) for _ in range(2))
        assert joined(runs(one), runs(other)) == runs(one | other)
        assert common(runs(one), runs(other)) == runs(one & other)
        assert without(runs(one), runs(other)) == runs(one - other)


def test_times_that_are_numbers_of_any_kind_are_left_out_once_read() -> None:
    reading = {"state": "state", "subject": "who", "time": "day", "max_gap": 1, "step": 1}
    for kind in (pl.Float64, pl.Int32):
        rows = pl.DataFrame({"who": ["x"] * 4, "day": [0, 1, 2, 3], "state": list("abab")}).cast({"day": kind})
        book = pf.Ledger(
            pf.LeakagePropagation(CHAIN, 2), 10.0, base=pf.read_sequences(rows[:3], **reading).base, grows=True
        )
        for n in (3, 4):
            data = book.read(rows[:n], QUERY)
            book.spend(pf.LeakagePropagation(CHAIN, data.length).calibrate(QUERY, 0.5), data=data)
        assert (data.records, data.read_before) == (1, 3)


def test_levels_read_every_row_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(pf.Model(theta=CHAIN, step="1d"), "m.json")
    columns = ["--state", "state", "--subject", "who", "--time", "day", "--max-gap", "1d"]
    people = [f"p{n}" for n in range(200)]
    for week in range(3):
        table({who: [*range(7 * week, 7 * week + 7)] for who in people}).write_csv(f"week{week}.csv")
    table({who: [*range(21)] for who in people}).write_csv("all.csv")
    assert run("ledger", "create", "b.json", "--grows", "--model", "m.json", "--budget", "1", *columns).exit_code == 0
    plan = ["ledger", "plan", "b.json", "--query", "histogram", "--levels", "2"]
    refused(*plan, says=["--levels 2 needs --every for each level"])
    refused(*plan, "--every", "1w", says=["--every is given 1 times for 2 queries"])
    refused(*plan, "--every", "1w", "--every", "10d", says=["--every 10d is not a whole number of 1w"])
    assert not pf.Ledger.open("b.json").entries
    said = run(*plan, "--every", "1w", "--every", "3w").output
    week, quarter = pf.Ledger.open("b.json").planned
    (alone,) = ledger(1.0).plan([QUERY], dry_run=True)
    sums = [laplace_sum((scale,) * 3).accuracy(0.05) for scale in (week.unit_scale, alone.unit_scale)]
    assert f"a total of 3w: ± {quarter.error_95} by its own release, ± {sums[0]} as the sum of 3 releases" in said
    assert f"without levels ± {sums[1]}, and ± {alone.error_95} of one release" in said
    assert week.unit_scale == quarter.unit_scale == pytest.approx(2 * alone.unit_scale, rel=0.1)
    release = ["--query", "histogram", "--model", "m.json", *columns, "--ledger", "b.json", "--planned"]
    for number in range(3):
        assert run("release", f"week{number}.csv", *release, "--output", f"{number}.json").exit_code == 0
    assert run("release", "all.csv", *release, "--again", "--output", "quarter.json").exit_code == 0
    assert pf.Ledger.open("b.json").spent == quarter.spent  # each row was read twice
    done = run("release", "all.csv", *release, "--again", "--output", "more.json")
    assert (done.exit_code, "above the budget of 1" in done.stderr) == (2, True)


def test_two_programs_that_begin_at_once_do_not_pay_twice(tmp_path: Path) -> None:
    """Both read the week before one of them spends: the second learns that its rows were read meanwhile."""
    book = ledger()
    book.save(tmp_path / "book.json")
    book.plan([QUERY], up_to=2.0)
    week = table({"x": [*range(7)], "y": [*range(3)]})
    both = [pf.Ledger.open(tmp_path / "book.json") for _ in range(2)]
    read = [each.read(week, QUERY) for each in both]
    noise = [each.as_planned(QUERY, data) for each, data in zip(both, read, strict=True)]
    both[0].spend(noise[0], data=read[0])
    spent = both[0].spent
    with pytest.raises(ReleaseRefused, match="entry 2, written after this table was read"):
        both[1].spend(noise[1], data=read[1])
    assert both[1].spent == spent
    again = both[1].read(week, QUERY, again=True)  # who means it pays
    both[1].spend(both[1].as_planned(QUERY, again), data=again)
    assert both[1].spent > spent
    other = both[1].read(week, pf.Count("a"))  # another question
    both[0].spend(
        both[0].bound.of(CHAIN, other.length).calibrate(QUERY, 0.1), data=both[0].read(table({"z": [1]}), QUERY)
    )
    both[1].spend(both[1].bound.of(CHAIN, other.length).calibrate(pf.Count("a"), 0.1), data=other)


def test_a_table_so_far_is_verified_as_the_ledger_knows_it(tmp_path: Path) -> None:
    book = ledger(20.0)
    book.save(tmp_path / "book.json")
    first, so_far = table({"x": [*range(70)]}), table({"x": [*range(140)], "y": [*range(90)]})
    for number, (rows, again) in enumerate([(first, False), (so_far, False), (so_far, True)]):
        data = book.read(rows, QUERY, again=again)
        noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(QUERY, 1.0)
        pf.release(data, QUERY, noise, ledger=book).to_json(tmp_path / f"{number}.json")
    for number, rows in enumerate([first, so_far, so_far]):
        found = pf.verify(tmp_path / f"{number}.json", ledger=tmp_path / "book.json", table=rows)
        assert found.holds, str(found)
        assert next(finding for finding in found.findings if finding.what == "table").holds
    alone = pf.verify(tmp_path / "1.json", table=so_far)
    (table_finding,) = [finding for finding in alone.findings if finding.what == "table"]
    assert (alone.holds, table_finding.holds) == (True, None)
    assert "the ledger knows which rows" in table_finding.says
    other = pf.verify(tmp_path / "1.json", ledger=tmp_path / "book.json", table=table({"x": [*range(150)]}))
    assert not other.holds


def test_how_a_file_is_read_is_looked_at_before_its_times() -> None:
    book = ledger()
    for option, why in (
        ({"gaps": "independent"}, "leave out gaps='independent'"),
        ({"max_gap": "2d"}, "max_gap of the ledger's table is '1d', and for these data '2d'"),
    ):
        data = pf.read_sequences(table({"x": [0, 1, 3]}), **{**READING, **option}, states=["a", "b"])
        with pytest.raises((ParameterError, ReleaseRefused), match=why):
            book.late_steps(data, QUERY)


def test_what_cannot_work_is_refused_before_there_is_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(pf.Model(theta=CHAIN, step="1h"), "m.json")
    create = [
        "ledger",
        "create",
        "b.json",
        "--grows",
        "--model",
        "m.json",
        "--budget",
        "1",
        "--state",
        "s",
        "--time",
        "t",
    ]
    refused(*create, "--max-gap", "1min", says=["step"])
    refused(*create, "--max-gap", "1h", "--time-zone", "Mars/Base", says=["Mars/Base"])
    refused(*create, "--max-gap", "1h", "--where", "x == 1", says=["--where is for single releases of a growing table"])
    assert not Path("b.json").exists()
    with pytest.raises(ReleaseRefused, match="plan the sum, and divide each release by its number of records"):
        ledger().plan([pf.Mean([0, 1])])
    with pytest.raises(ParameterError, match="expected a query such as Histogram"):
        ledger().read(table({"x": [1]}), "histogram")  # type: ignore[arg-type]


def test_times_that_come_twice_can_be_left_out_by_a_release() -> None:
    reading = {"state": "state", "subject": "who", "time": "at", "max_gap": "1h", "step": "1h"}
    night = [dt.datetime(2024, 10, 27, hour) for hour in (0, 1, 2, 2, 3, 4)]
    rows = pl.DataFrame([("x", at, "ab"[at.hour % 2]) for at in night], schema=["who", "at", "state"], orient="row")
    base = pf.read_sequences(rows[:2], **reading, time_zone="Europe/Berlin").base
    book = pf.Ledger(pf.LeakagePropagation(CHAIN, 2), 10.0, base=base, grows=True)
    with pytest.raises(DataError, match="twice"):
        book.read(rows, QUERY)
    data = book.read(rows, QUERY, ambiguous="drop")
    assert data.records == 4
    book.spend(0.1, data=data)
    with pytest.raises(ReleaseRefused, match="ambiguous"):
        book.spend(0.1, data=book.read(rows.unique(maintain_order=True), QUERY, ambiguous="earlier"))
