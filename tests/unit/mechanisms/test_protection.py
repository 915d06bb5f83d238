"""What is hidden, as a setting: steps, times, whole series, near values; and what a noise promises of each."""

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.errors import NotApplicableError, ParameterError
from pufferfish.mechanisms.protection import StretchProtection
from stretches import leakage_of_stretch

CHAIN = pf.MarkovChain([[0.97, 0.03], [0.06, 0.94]], states=["rest", "walk"])
MODEL = pf.Model(theta=CHAIN, step="1min")
BINS = ["<200", "200-400", "400-600", ">=600"]
POWER = pf.MarkovChain(0.7 * np.eye(4) + 0.075, states=BINS)
COUNT = pf.Count("walk")


def near(states: list[str], within: Any) -> list[list[int]]:
    mask = StretchProtection(1, within).near(states)
    assert mask is not None
    return mask.astype(int).tolist()


def test_noise_for_a_stretch_is_what_a_stretch_needs() -> None:
    """The least noise, for one of 60 steps, an hour, a timedelta: its leakage is ε, and that of a record less."""
    bound = pf.LeakagePropagation(MODEL, 1440)
    one = bound.calibrate(COUNT, 1.0)
    hour = bound.calibrate(COUNT, 1.0, protect=60)
    assert hour.scale > 3 * one.scale
    assert leakage_of_stretch(CHAIN, 1440, hour.record_loss, 60)[0] == pytest.approx(1, abs=1e-5)
    for protect in ("1h", "60min", "60", timedelta(hours=1)):
        assert bound.calibrate(COUNT, 1.0, protect=protect).scale == hour.scale
    assert bound.protecting("59min").protection == StretchProtection(59)
    assert bound.protecting("59.5min").protection == StretchProtection(60)  # part of a step is a step
    whole = bound.calibrate(COUNT, 1.0, protect="subject")
    assert whole.scale == pytest.approx(pf.GroupDP(CHAIN, 1440).calibrate(COUNT, 1.0).scale, rel=1e-5)
    assert hour.witness.kind == "stretch"
    assert hour.prove_leakage() <= 1


def test_what_is_protected_stays_in_settings_and_in_what_is_made_of_them() -> None:
    bound = pf.LeakagePropagation(POWER, [50, 20], protect=6, within=200)
    again = pf.LeakagePropagation(POWER, [50, 20], **bound.settings)
    assert again.protection == bound.protection == StretchProtection(6, 200.0)
    assert "protect=6, within=200.0" in repr(bound)
    for query in (pf.Histogram(), pf.Transitions(), pf.Sum([1, 3, 5, 7])):
        assert again.calibrate(query, 1.0).scale == bound.calibrate(query, 1.0).scale
    assert bound.protecting(None, None).protection is None
    hidden = pf.GroupDP(POWER, 50, protect=6)
    assert hidden.calibrate(pf.Histogram(), 1.0).scale == pf.GroupDP(POWER, 50).calibrate(pf.Histogram(), 1.0).scale


def test_what_hides_whole_series_says_so_whatever_stretch_was_asked_for() -> None:
    """Its ε is that of a series: of the stretch that was asked for its promises say less, and nothing says more."""
    for protect, within in ((6, None), (6, 200), ("subject", None)):
        noise = pf.GroupDP(POWER, 50).calibrate(pf.Histogram(), 1.0, protect=protect, within=within)
        assert noise.bound.protection == StretchProtection("subject")
        rows = {promise.unit: promise.epsilon for promise in noise.promises()}
        assert rows["the whole series of one subject"] == pytest.approx(noise.epsilon)
        assert rows["10 steps in a row"] < 0.5
    assert pf.GroupDP(POWER, 50, within=200).protection is None, "any two values of a record, near or not"
    rows = pf.compare(POWER, pf.Histogram(), 1.0, 50, within=200, mechanisms=["group-dp"])
    assert rows[0].lower_bound is None, "what hides any two values needs more than what hides near ones"


def test_near_states_are_those_that_have_near_values() -> None:
    """Bins reach from edge to edge: 199 and 201 are 2 apart, though the middles of their bins are 200 apart."""
    assert near(BINS, 2.0) == near(BINS, 200.0)
    assert near(BINS, 200.0) == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert near(BINS, 200.5) == [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]]
    assert near(["0", "2", "5"], 2.0) == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert near(["5", "0", "2"], 2.0) == [[1, 0, 0], [0, 1, 1], [0, 1, 1]]  # in whichever order
    assert near(["a", "b", "c"], (("a", "c"),)) == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    values = np.array([100.0, 199, 201, 399, 401, 700])
    bins = np.digitize(values, [200, 400, 600])
    for within in (2.0, 150.0, 200.0, 300.0):
        mask = np.array(near(BINS, within), dtype=bool)
        apart = np.abs(values[:, None] - values[None, :]) <= within
        assert mask[bins[:, None], bins[None, :]][apart].all()


@pytest.mark.parametrize(
    ("theta", "protect", "within", "says"),
    [
        (CHAIN, "1h", None, "the length of a step is unknown"),
        (CHAIN, 0, None, "expected a number of steps"),
        (CHAIN, 1.5, None, "expected a number of steps"),
        (CHAIN, "person", None, "protect"),
        (CHAIN, True, None, "expected a number of steps"),
        (CHAIN, None, 100, "neither numbers nor bins"),
        (CHAIN, None, [("rest", "run")], "expected pairs"),
        (CHAIN, None, [("rest", "rest")], "expected pairs"),
        (CHAIN, None, [], "expected pairs"),
        (POWER, None, 0, "positive number"),
        (POWER, None, float("nan"), "positive number"),
        (MODEL, 10**30, None, "expected a number of steps"),
    ],
)
def test_what_is_no_protection_is_refused(theta: Any, protect: Any, within: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says) as caught:
        pf.LeakagePropagation(theta, 100, protect=protect, within=within)
    assert "\n" not in str(caught.value)


def test_mechanisms_of_one_record_say_so() -> None:
    for mechanism in (pf.MQMExact, pf.MQMApprox, pf.GK16, pf.EntryDP, pf.Wasserstein, pf.ExactLaplace):
        try:
            made = mechanism(CHAIN, 20)
        except NotApplicableError:
            continue
        with pytest.raises(NotApplicableError, match="not for several together: use LeakagePropagation"):
            made.calibrate(COUNT, 1.0, protect=5)
        with pytest.raises(NotApplicableError, match="not for near values only: use LeakagePropagation"):
            made.calibrate(COUNT, 1.0, within=[("rest", "walk")])
    with pytest.raises(NotApplicableError, match="already hides a whole participant"):
        pf.ParticipantDP(20, theta=CHAIN).calibrate(COUNT, 1.0, protect=5)


def test_a_noise_promises_of_every_unit_what_it_tells_of_it() -> None:
    noise = pf.LeakagePropagation(MODEL, 2000).calibrate(COUNT, 1.0)
    rows = {promise.steps: promise for promise in noise.promises()}
    assert [promise.unit for promise in noise.promises()] == [
        "one record",
        "5min (5 steps in a row)",
        "1h (60 steps in a row)",
        "1d: any one day of one subject (1,440 steps in a row)",
        "the whole series of one subject",
        "one record, without any model",
    ]
    for steps in (5, 60, 1440):
        assert rows[steps].epsilon == leakage_of_stretch(CHAIN, 2000, noise.record_loss, steps)[0]
    assert rows[1].epsilon == pytest.approx(1, abs=1e-5)
    assert rows[2000].epsilon == pytest.approx(2000 * noise.record_loss.max())
    assert noise.promises()[-1].epsilon == pytest.approx(noise.record_loss.max(), rel=1e-9)
    epsilons = [promise.epsilon for promise in noise.promises()[:-1]]
    assert epsilons == sorted(epsilons)
    bins = pf.LeakagePropagation(POWER, 300).calibrate(pf.Histogram(), 1.0)
    first, second, *_ = bins.promises()
    assert first.unit == "one record, among values at most 200 apart"
    assert second.epsilon == pytest.approx(1, abs=1e-5)
    assert first.epsilon < 1
    hour = pf.LeakagePropagation(MODEL, 2000).calibrate(COUNT, 1.0, protect="3h")
    (row,) = (promise for promise in hour.promises() if promise.steps == 180)
    assert row.unit == "3h (180 steps in a row)"
    assert row.epsilon == pytest.approx(1, abs=1e-5)
    steps = pf.LeakagePropagation(CHAIN, 2000).calibrate(pf.Transitions(), 1.0).promises()
    assert [promise.unit for promise in steps][1:4] == [
        "10 steps in a row",
        "100 steps in a row",
        "1,000 steps in a row",
    ]


def test_one_promise_is_one_row() -> None:
    """What was asked for stands once, also where it is the nearest values that a row is of anyway."""
    bound = pf.LeakagePropagation(POWER, 300)
    units = [
        [row.unit for row in bound.calibrate(pf.Histogram(), 1.0, **hidden).promises() if row.near]
        for hidden in ({"within": 200}, {"within": 400}, {"within": 200, "protect": 5})
    ]
    near = "one record, among values at most 200 apart"
    row = "5 steps in a row of one subject, among values at most 200 apart"
    assert units == [[near], [near, "one record, among values at most 400 apart"], [near, row]]


def test_promises_of_tables_without_order() -> None:
    network = pf.BayesianNetwork(
        {"a": pf.CPT(["no", "yes"], [0.8, 0.2]), "b": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.2, 0.8]], ["a"])}
    )
    noise = pf.LeakagePropagation(network, length=100).calibrate(pf.Marginals(), 1.0)
    cell, row, alone = noise.promises()
    assert (cell.unit, row.unit, alone.unit) == (
        "one cell of a row",
        "a whole row",
        "one cell of a row, without any model",
    )
    assert row.epsilon == pytest.approx(sum(loss.max() for loss in noise.node_loss.values()))
    joint = pf.JointDistribution([[0, 0], [1, 1], [0, 1]], [0.4, 0.4, 0.2])
    most = pf.Function(lambda record: max(int(value) for value in record.values()), "most")
    assert [p.unit for p in pf.Wasserstein(joint).calibrate(most, 1.0).promises()] == ["one record"]


def test_a_release_for_an_hour_is_verified_again(tmp_path: Any) -> None:
    table = pl.DataFrame({"s": ["rest", "walk"] * 400})
    data = pf.read_sequences(table, "s", step="1min")
    noise = pf.LeakagePropagation(MODEL, data.length).calibrate(pf.Histogram(), 1.0, protect="1h")
    release = pf.release(data, pf.Histogram(), noise)
    release.to_json(tmp_path / "r.json")
    assert pf.verify(tmp_path / "r.json").proved
    less = (tmp_path / "r.json").read_text().replace('"protect": 60', '"protect": 6000')
    (tmp_path / "r.json").write_text(less)
    assert not pf.verify(tmp_path / "r.json").holds


def test_near_means_the_decimals_that_are_written() -> None:
    """0.3 as a double is below three tenths, and 399.9999999 is not 400."""
    assert near(["0", "0.3", "0.6"], 0.3) == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    chain = pf.MarkovChain(0.7 * np.eye(3) + 0.1, states=["0", "0.3", "0.5"])
    first = pf.LeakagePropagation(chain, 20).calibrate(pf.Histogram(), 1.0).promises()[0]
    assert first.unit == "one record, among values at most 0.3 apart"
    ask = pf.LeakagePropagation(chain, 20, within=0.3)
    assert first.epsilon == pytest.approx(ask.leakage(pf.LeakagePropagation(chain, 20).record_epsilon(1.0)), rel=0.2)
    assert "at most 399.9999999 apart" in StretchProtection(1, 399.9999999).in_words()
    assert "at most 399.9999999 apart" in StretchProtection(1, 399.9999999).condition()


def test_a_proof_of_named_secrets_is_none_of_every_record() -> None:
    """One pair of states of one record needs noise 1; any record would need 1.84."""
    chain = pf.MarkovChain([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]], states=["a", "b", "c"])
    pair = (pf.RecordIs(2, "a"), pf.RecordIs(2, "b"))
    noise = pf.Wasserstein(chain, 5, secrets=[pair]).calibrate(pf.Count("c"), 1.0)
    (one,) = (row for row in noise.promises() if row.unit == "one record")
    assert one.epsilon >= pf.LeakagePropagation(chain, 5).leakage(1 / noise.scale) > 1.8
    unsure = pf.ApproximateWasserstein(pf.MarkovChain([[0.9, 0.1], [0.1, 0.9]]), 8, delta=0.3)
    noise = unsure.calibrate(pf.Count("1"), 1.0)
    (one,) = (row for row in noise.promises() if row.unit == "one record")
    assert one.epsilon >= pf.LeakagePropagation(noise.theta, 8).leakage(1 / noise.scale) * (1 - 1e-9) > 1


def cut_table() -> pl.DataFrame:
    minutes = [minute for minute in range(300) if minute % 10 != 9]
    return pl.DataFrame({"id": ["a"] * 270, "t": minutes, "s": (["rest", "walk"] * 135)})


def test_what_gaps_cut_is_promised_nothing_of_stretches() -> None:
    """A stretch of 60 steps would be in seven chains of 9; one of these says nothing of it."""
    read: Any = {"subject": "id", "time": "t", "max_gap": 1, "gaps": "independent"}
    data = pf.read_sequences(cut_table(), "s", **read)
    noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(pf.Histogram(), 1.0)
    release = pf.release(data, pf.Histogram(), noise)
    assert [row.unit for row in release.promises] == ["one record", "one record, without any model"]
    assert pf.verify(release).proved
    stretches = pf.LeakagePropagation(CHAIN, data.length, protect=60)
    for base in (data, data.base):
        with pytest.raises(pf.ReleaseRefused, match="a stretch across a cut"):
            pf.Ledger(stretches, 2.0, base=base)
    with pytest.raises(pf.ReleaseRefused, match="a stretch across a cut"):
        pf.Ledger(stretches, 2.0).spend(noise, data=data)


def test_a_record_says_what_its_ledger_adds_up() -> None:
    """A ledger of records and a release of an hour, and the other way round: what is spent is not about both."""
    data = pf.read_sequences(pl.DataFrame({"s": ["rest", "walk"] * 400}), "s", step="1min")
    plain = pf.LeakagePropagation(MODEL, data.length)
    hour = plain.protecting("1h")
    release = pf.release(
        data, pf.Histogram(), plain.calibrate(pf.Histogram(), 1.0, protect="1h"), ledger=pf.Ledger(plain, 2)
    )
    assert release.ledger is not None
    assert release.ledger.spent < 0.9
    assert (
        "this one leaks, of any one record (the state of one subject at one time), at most" in release.not_promised[-1]
    )
    other = pf.release(data, pf.Histogram(), plain.calibrate(pf.Histogram(), 0.1), ledger=pf.Ledger(hour, 2))
    assert other.ledger is not None
    assert other.ledger.protect == 60
    assert "this one leaks, of any stretch of 60 steps in a row of one subject, at most" in other.not_promised[-1]
    for made in (release, other):
        assert pf.verify(made).proved


def test_a_length_of_time_is_said_of_steps_that_take_as_long() -> None:
    """Four records of ten come a second after the last: an hour holds 100 steps, and the promise is about 60."""
    took = np.cumsum([60 if i % 10 < 6 else 1 for i in range(400)])
    times = [datetime(2020, 1, 1) + timedelta(seconds=int(second)) for second in took]
    data = pf.read_sequences(pl.DataFrame({"t": times, "s": ["rest", "walk"] * 200}), "s", time="t", max_gap="1min")
    assert max(int(np.sum((took >= a) & (took < a + 3600))) for a in took) == 100
    noise = pf.LeakagePropagation(MODEL, data.length).calibrate(pf.Histogram(), 1.0, protect="1h")
    release = pf.release(data, pf.Histogram(), noise)
    assert release.hides == "any stretch of 60 steps in a row of one subject (1h, where no step takes less than 1min)"
    (row,) = (promise for promise in release.promises if promise.steps == 60)
    assert row.holds.endswith("where no step takes less than 1min.")


def test_a_record_says_of_which_secrets_its_ledger_adds_up() -> None:
    """A ledger about column a alone spends .71 on what leaks 1 of b and of c."""
    tables = {"a": pf.CPT(["no", "yes"], [0.8, 0.2]), "b": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.2, 0.8]], ["a"])}
    network = pf.BayesianNetwork(tables | {"c": pf.CPT(["no", "yes"], [0.5, 0.5])})
    rows = pf.read_rows(pl.DataFrame({"a": ["no", "yes"], "b": ["yes", "no"], "c": ["no", "no"]}), network)
    query, everything = pf.Marginals(["b", "c"]), pf.LeakagePropagation(network, 2)
    book = pf.Ledger(pf.LeakagePropagation(network, 2, secrets=["a"]), 2.0, base=rows)
    release = pf.release(rows, query, everything.calibrate(query, 1.0), ledger=book)
    assert release.ledger is not None
    assert release.ledger.spent < 0.71
    assert "of the ledger's own secrets alone ((record a is no) or (record a is yes))," in release.not_promised[-1]
    assert pf.verify(release, ledger=book).holds
