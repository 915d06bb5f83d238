"""Classes of mixed kinds: what they are, how they are shown and kept, and that they go wherever other classes go."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

import pufferfish as pf
from pufferfish._base.view import text_of
from pufferfish.cli import main
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, RecordError, ReleaseRefused
from pufferfish.theta.chain_class import MIXED
from pufferfish.theta.model_class import as_theta
from pufferfish.theta.record import ThetaRecord

STATES = ["rest", "walk"]
CALM = [[0.9, 0.1], [0.2, 0.8]]
POOLED = pf.MarkovChain(CALM, states=STATES)
CLOCK = pf.PeriodicChain([CALM] * 7 + [[[0.7, 0.3], [0.3, 0.7]]] * 17, clock="hour", step="1h", states=STATES)
SECOND = pf.HigherOrderChain([[[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.2, 0.8]]], states=STATES)
FORGETS = pf.ForgettingClass(8, 0.3, STATES, origin="a sleep study")
BETWEEN = pf.IntervalChain([[0.8, 0.05], [0.1, 0.7]], [[0.95, 0.2], [0.3, 0.9]], states=STATES, origin="a survey")
NAMES = ("pooled", "by the hour", "order two", "forgets", "between")
ALL = pf.ChainClass((POOLED, CLOCK, SECOND, FORGETS, BETWEEN), names=NAMES)
HOURS = [datetime(2024, 1, 1) + timedelta(hours=i) for i in range(24 * 5)]
TABLE = pl.DataFrame({"id": ["a"] * 120 + ["b"] * 120, "t": HOURS * 2, "s": [STATES[i % 5 // 3] for i in range(240)]})
READING: dict[str, Any] = {"subject": "id", "time": "t", "max_gap": "1h", "states": STATES}


def test_a_list_may_have_members_of_any_kinds() -> None:
    assert (ALL.kind, ALL.step, ALL.k, ALL.chains) == (MIXED, "1h", 2, ())
    assert len(ALL.kinds) == len(ALL.members)
    assert ALL.origin == "a sleep study; a survey"
    assert [(first, type(part).__name__) for first, part in ALL.parts][-2:] == [
        (3, "ForgettingClass"),
        (4, "IntervalChain"),
    ]
    two = as_theta([POOLED, POOLED, CLOCK, POOLED])
    assert [(first, len(part.members), part.kind) for first, part in two.parts] == [
        (0, 2, "Markov chains"),
        (2, 1, "periodic Markov chains"),
        (3, 1, "Markov chains"),
    ]
    assert as_theta([BETWEEN]) is BETWEEN
    assert as_theta([BETWEEN, BETWEEN]).kind == MIXED
    alone = as_theta([POOLED, POOLED])
    assert alone.parts == ((0, alone),)


def test_classes_in_a_list_give_their_members_names_and_origins() -> None:
    named = pf.ChainClass((POOLED, SECOND), "fitted in 2019", names=("one", "other"))
    joined = as_theta([named, BETWEEN])
    assert joined.members == (POOLED, SECOND, BETWEEN)
    assert (joined.names, joined.origin) == ((), "fitted in 2019; a survey")
    assert as_theta([named, named]).names == ("one", "other") * 2


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        ([POOLED, pf.MarkovChain(CALM)], r"theta\[1\] has states 0, 1 and theta\[0\] has rest, walk"),
        ([POOLED, pf.Model(theta=SECOND)], r"theta\[1\] is Model: give its Θ, model\.theta"),
        (
            [POOLED, pf.Cliques([0.5, 0.5])],
            r"theta\[1\] is Cliques, expected a MarkovChain, or another model of chains",
        ),
        ([POOLED, 3], r"theta\[1\] is int, expected a MarkovChain"),
        ([], "theta is empty: give at least one chain"),
        ([POOLED, pf.MQMApprox(length=5, pi_min=0.2, eigengap=0.5).theta], r"theta\[1\] stands for a set of chains"),
    ],
)
def test_what_is_no_list_of_chains_is_refused(theta: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        as_theta(theta)


def test_a_class_by_itself_is_passed_alone() -> None:
    with pytest.raises(ModelError, match=r"theta\[0\] is IntervalChain, a class by itself: pass it alone"):
        pf.ChainClass((BETWEEN,))
    with pytest.raises(ModelError, match=r"theta\[0\] is ChainClass, expected .* take its members, as theta\.members"):
        pf.ChainClass((ALL,))  # type: ignore[arg-type]


def test_the_noise_is_that_of_the_worst_member_which_the_witness_names() -> None:
    query = pf.Histogram()
    alone = [pf.LeakagePropagation(member, 1000).calibrate(query, 1.0) for member in ALL.members]
    # from DESIGN, and each computed alone before there were classes of mixed kinds
    assert [round(500 * noise.scale, 3) for noise in alone] == [5.913, 4.784, 6.980, 62.871, 12.912]
    together = pf.LeakagePropagation(ALL, 1000).calibrate(query, 1.0)
    assert together.scale == pytest.approx(alone[3].scale, rel=1e-9)
    assert (together.witness.theta, together.witness.kind) == (3, "forgetting")
    assert together.lower_bound == pytest.approx(alone[3].lower_bound, rel=1e-6)
    three = pf.LeakagePropagation([POOLED, CLOCK, SECOND], 1000)
    assert three.calibrate(query, 1.0).witness.theta == 2
    assert three.calibrate(query, 1.0, protect=5).scale == pytest.approx(
        max(pf.LeakagePropagation(m, 1000).calibrate(query, 1.0, protect=5).scale for m in ALL.members[:3]), rel=1e-5
    )


def test_a_part_that_is_not_covered_is_named() -> None:
    for theta, message in (
        ([POOLED, POOLED, CLOCK], r"of theta\[2\], taken alone: it covers Markov chains with one transition matrix"),
        ([pf.MarkovChain([[0.3, 0.7]] * 2, states=STATES), SECOND], r"of theta\[1\], taken alone"),
    ):
        with pytest.raises(NotApplicableError, match=message):
            pf.MQMExact(theta, 10)
    even = pf.IntervalChain([[0.3, 0.7]] * 2, [[0.3, 0.7]] * 2, states=STATES)
    for make in (pf.EntryDP, pf.GK16):
        with pytest.raises(NotApplicableError, match=r"of theta\[0\], taken alone: it needs one transition matrix"):
            make([even, POOLED], 10)
    with pytest.raises(NotApplicableError, match="Θ is a class of mixed chains"):
        pf.Wasserstein([POOLED, BETWEEN], 10)
    assert pf.MQMExact([POOLED, BETWEEN], 50).calibrate(pf.Count("walk"), 1.0).witness.theta == 1


def test_records_of_a_class_are_read_strictly() -> None:
    record = ThetaRecord.of(ALL)
    assert (record.of_chains, record.kind, record.kind_of(3)) == (True, MIXED, FORGETS.kind)
    again = record.any_theta()
    assert ThetaRecord.of(again) == record  # type: ignore[arg-type]

    def spoilt(message: str, **changed: Any) -> None:
        plain = json.loads(json.dumps([dict(member) for member in record.members]))
        for place, value in changed.items():
            plain[int(place[1:])] = plain[int(place[1:])] | value
        made = ThetaRecord(record.origin, list(record.states), [], MIXED, plain, list(record.names))
        with pytest.raises(ModelError, match=message):
            made.any_theta()

    spoilt(r"theta\[0\]: classes such as IntervalChain need an origin", _0={"origin": "elsewhere"})
    spoilt(r"theta\[4\]: classes such as IntervalChain need an origin", _4={"origin": None})
    spoilt(r"theta\[1\]: 'joint distributions' is not a kind of chains", _1={"kind": "joint distributions"})
    spoilt(r"theta\[2\]: .*`kernel`|theta\[2\]: .*unknown field", _2={"model": {"kernel": [[1.0]]}})
    spoilt(r"theta\[0\]: .*unknown field", _0={"more": 1})
    one_kind = [dict(record.members[0])] * 2
    with pytest.raises(ModelError, match="said to be a class of mixed chains, and its members are Markov chains"):
        ThetaRecord("here", STATES, [], MIXED, one_kind).any_theta()
    with pytest.raises(ModelError, match="described by its members, not by chains"):
        ThetaRecord("here", STATES, [], MIXED, []).any_theta()


def test_a_forged_witness_is_refused(tmp_path: Path) -> None:
    data = pf.read_sequences(TABLE, "s", **READING)
    released = pf.release(
        data, pf.Count("walk"), pf.LeakagePropagation(ALL, data.length).calibrate(pf.Count("walk"), 1)
    )
    released.to_json(tmp_path / "r.json")
    plain = json.loads((tmp_path / "r.json").read_text())
    assert plain["mechanism"]["witness"]["kind"] == "forgetting"
    for theta, message in (
        (5, "a member of theta"),
        (-1, "a member of theta"),
        (4, "a kind that its class of chains has"),
    ):
        plain["mechanism"]["witness"]["theta"] = theta
        (tmp_path / "forged.json").write_text(json.dumps(plain))
        with pytest.raises(RecordError, match=f"the witness is (of )?{message}"):
            pf.Release.from_json(tmp_path / "forged.json")


@pytest.mark.slow
def test_it_goes_through_files_releases_ledgers_and_pages(tmp_path: Path) -> None:
    def run(*arguments: Any, code: int = 0) -> str:
        ended = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert ended.exit_code == code, ended.output
        return ended.output

    model, table, book, record = (tmp_path / name for name in ("m.json", "t.csv", "l.json", "r.json"))
    TABLE.write_csv(table)
    pf.write_model(pf.Model(theta=ALL), model)
    assert pf.read_model(model).step == "1h"
    read = ["--state", "s", "--subject", "id", "--time", "t", "--max-gap", "1h"]
    assert "by the hour" in run("show", model)
    compared = run("compare", model, "--query", "histogram", "--epsilon", 1, "--length", 100)
    assert "theta[3] (forgets) decides the noise" in compared
    run("ledger", "create", book, "--model", model, "--table", table, "--budget", 5, *read)
    asked = [
        "--model",
        model,
        "--query",
        "histogram",
        "--epsilon",
        1,
        "--ledger",
        book,
        "--output",
        record,
        "--accept",
        "noise",
        *read,
    ]
    out = run("release", table, *asked)
    assert "1d: any one day of one subject (24 steps in a row)" in out
    assert "holds          proof" in run("verify", record, "--model", model, "--ledger", book)
    run("report", record, "--output", tmp_path / "r.html", "--brief")
    assert "Member 3 (forgets) of 5, which decides the noise" in (tmp_path / "r.html").read_text()
    told = json.loads(record.read_text())
    assert "or a Markov process on 2 states" in told["assumptions"][0]
    assert "forget more slowly" in told["not_promised"][0]
    assert "that their confidence leaves" in told["not_promised"][0]
    checked = run("check", model, table, *read, "--accept", "public")
    assert checked.startswith(("Go on.", "In doubt.", "Do not go on."))
    assert "not asked: Markov processes that forget in Θ say no likelihoods" in checked
    assert "lists of Markov chains only" in run("robustness", model, model, "--length", 10, code=2)
    mixed, belief = pf.read_model(model), tmp_path / "belief.json"
    number, chain = next((i, m) for i, m in enumerate(mixed.theta.members) if isinstance(m, pf.MarkovChain))
    pf.write_model(pf.Model(theta=chain, step=mixed.step, bins=mixed.bins), belief)
    assert f"closest member of Θ: number {number} " in run("robustness", model, belief, "--length", 10)
    assert pf.robustness(mixed.theta, chain, length=10) == 0


def test_a_clock_among_the_members_is_asked_for_in_the_table_and_of_the_ledger() -> None:
    untimed = pf.read_sequences(
        TABLE.with_columns(pl.Series("t", [*range(120)] * 2)), "s", **(READING | {"max_gap": 1})
    )
    for theta, ledger in (([POOLED, CLOCK], None), (POOLED, [SECOND, CLOCK])):
        noise = pf.LeakagePropagation(theta, untimed.length).calibrate(pf.Count("walk"), 1.0)
        kept = None if ledger is None else pf.Ledger(pf.LeakagePropagation(ledger, untimed.length), 5.0, base=untimed)
        with pytest.raises(ReleaseRefused, match="Θ follows a clock"):
            pf.release(untimed, pf.Count("walk"), noise, ledger=kept)


def test_models_are_joined_with_what_they_know_of_tables() -> None:
    hours = pf.read_sequences(TABLE, "s", **READING)
    part = pf.read_sequences(TABLE.filter(pl.col("id") == "a"), "s", **READING)
    fitted, other = pf.Model.fitted(pf.fit_chain(part), part), pf.Model(theta=CLOCK)
    joined = pf.Model.joined([fitted, other, pf.Model(theta=FORGETS, step="60min")])
    assert (joined.step, joined.fitted_on, len(joined.theta.members)) == (fitted.step, part.fingerprint, 3)
    assert joined.theta.origin == f"{fitted.theta.origin}; a sleep study"
    both = pf.Model.joined([pf.Model(theta=SECOND, fitted_on="0" * 64 + ":"), joined])
    noise = pf.LeakagePropagation(both, hours.length).calibrate(pf.Count("walk"), 1.0)
    with pytest.raises(ReleaseRefused, match="fitted to"):
        pf.release(hours, pf.Count("walk"), noise)
    for models, message in (
        ([fitted, pf.Model(theta=POOLED, step="1min")], r"step is '1min' in models\[1\] and '1h' in models\[0\]"),
        ([fitted, POOLED], r"models\[1\] is .*, expected a Model"),
        (fitted, "models is .*, expected a list of Model"),
    ):
        with pytest.raises(ParameterError, match=message):
            pf.Model.joined(models)  # type: ignore[arg-type]


def test_it_is_shown_and_drawn() -> None:
    text = text_of(ALL._view())
    assert "Class of 5 mixed chains" in text
    assert "theta[3]: Least overlap" in text
    assert repr(ALL) == "ChainClass(<5 mixed chains of 2 states>, origin='a sleep study; a survey')"
    pytest.importorskip("matplotlib")
    figure = pf.draw_model(ALL)
    assert "1 more kinds in a row are not drawn" in figure.get_suptitle()
