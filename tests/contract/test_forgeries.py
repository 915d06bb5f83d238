"""Forged records: a fact is changed to a more favourable one, and the writer makes everything else agree with it.

A reader that compares fields sees nothing then: whether the facts go together, and whether the noise is enough for
them, is what ``verify`` asks, by the functions that ask it before a release is made.
"""

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Callable
from functools import reduce
from operator import getitem
from typing import Any

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

import pufferfish as pf
from pufferfish.mechanisms import ApproximateWasserstein
from pufferfish.queries.strategy import Strategy
from pufferfish.release.check import BROKEN
from pufferfish.release.derive import derived, promised, words_of_measurement
from pufferfish.release.facts import LedgerRecord, MeasurementRecord
from pufferfish.release.record import calibration_again, encoded, release_in
from pufferfish.theta.model_class import as_theta
from pufferfish.theta.record import ThetaRecord
from record_rules import contradictions
from release_cases import releases

STICKY = pf.MarkovChain([[0.99, 0.01], [0.01, 0.99]], states=["a", "b"])


def forged(record: Any, **facts: Any) -> Any:
    """Return a record with other facts, and with all that the writer makes of them; the forger proves what he can."""
    other = replace(record, **facts)
    calibration = calibration_again(other)
    other = derived(other, calibration)
    try:
        leakage, witness = calibration.bound.verify(calibration)
    except BROKEN:
        return other
    least = min(leakage, other.epsilon)
    proof = replace(other.mechanism, leakage=least, witness=witness or other.mechanism.witness)
    return replace(other, mechanism=proof, promises=promised(calibration, other.data))


def data_of(record: Any, **changes: Any) -> dict[str, Any]:
    return {"data": replace(record.data, **changes)}


def noise_of(record: Any, **changes: Any) -> dict[str, Any]:
    return {"calibration": replace(record.calibration, **changes)}


def longer(record: Any) -> dict[str, Any]:
    """Data of chains that are longer than any that the noise is for."""
    most = max(steps for steps, *_ in record.calibration.lengths or record.data.lengths)
    lengths = [(2 * most + steps, 2 * most + records, times) for steps, records, times in record.data.lengths]
    times = sum(times for *_, times in lengths)
    records = record.data.records + 2 * most * times
    longest = max(steps for steps, *_ in lengths)
    return data_of(record, lengths=lengths, records=records, longest_chain=longest, places=None)


FORGERIES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "half the noise": lambda r: noise_of(r, unit_scale=r.calibration.unit_scale / 2),
    "half of epsilon": lambda r: {"epsilon": r.epsilon / 2},
    "longer chains": longer,
    "noise for shorter chains": lambda r: noise_of(r, lengths=[(1, 1, 1)], records=r.calibration.records, places=None),
    "noise for fewer records": lambda r: noise_of(r, records=max(1, r.calibration.records // 2)),
    "a row less": lambda r: data_of(r, subjects=r.data.rows and r.data.subjects - 1, chains=r.data.chains - 1),
    "a column less": lambda r: data_of(r, observed=dict(list(r.data.observed.items())[1:])),
    "a function of nobody": lambda r: noise_of(r, query=None),
    "settings of nobody": lambda r: noise_of(r, settings=None),
}


UNMADE = {"a function of nobody", "settings of nobody"}
"""What the writer would put right."""


def test_no_forgery_of_a_fact_holds(slow: bool) -> None:
    """Several hundred of them with --slow: every kind of release, every fact that a forger would change."""
    tried = refused = 0
    for case, release in releases(1 if slow else 57):
        for name, edit in FORGERIES.items():
            try:
                facts = edit(release)
            except BROKEN:  # it has no such fact
                continue
            try:
                other = replace(release, **facts) if name in UNMADE else forged(release, **facts)
            except BROKEN:  # the writer makes no such record; a forger who leaves it half done is refused
                other = replace(release, **facts)
            if other == release:
                continue
            tried += 1
            found = pf.verify(other)
            refused += not found.holds
            assert not (found.holds and found.proved), f"{case}, {name}: {found}"
    assert refused > 0.9 * tried > 10


TABLE = pl.DataFrame({"id": ["p"] * 100, "t": range(100), "s": ["a", "b"] * 50})


@pytest.mark.parametrize(
    "query",
    [
        pf.Count("b"),
        pf.Histogram(relative=False),
        pf.Sum([0, 1]),
        pf.Transitions(),
        pf.Switches(),
        pf.Bouts("b"),
    ],
    ids=repr,
)
def test_noise_for_fewer_records_than_were_read_is_noticed(query: Any) -> None:
    """Two records of a chain of 100 steps are far apart; a hundred of them tell much of each other."""
    data = pf.read_sequences(TABLE, "s", subject="id", time="t", max_gap=1)
    few = pf.ChainLength(100, 2)
    noise = pf.LeakagePropagation(STICKY, few).calibrate(query, 1.0)
    honest = pf.release(data, query, pf.LeakagePropagation(STICKY, data.length).calibrate(query, 1.0))
    assert honest.verify().proved
    stated = honest.calibration
    calibration = replace(stated, unit_scale=noise.unit_scale, lengths=[(100, 2, 1)], records=2)
    other = forged(honest, calibration=calibration)
    assert other.noise.scale < honest.noise.scale / 2
    found = pf.verify(other)
    assert not found.holds
    assert not found.proved


def test_what_release_refuses_verify_refuses() -> None:
    """Laws of whole rows with missing cells, a first law with a filter, a clock without times, other lengths."""
    holes = pl.DataFrame({"smoke": ["yes", None] * 20, "lung": ["yes", "no"] * 20})
    network = pf.BayesianNetwork(
        {"smoke": pf.CPT(["no", "yes"], [0.8, 0.2]), "lung": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.3, 0.7]], ["smoke"])}
    )
    rows = pf.read_rows(holes, network, missing="unobserved")
    whole = pf.read_rows(holes.fill_null("no"), network)
    query = pf.Marginals()
    honest = pf.release(whole, query, pf.Wasserstein(network, whole.length).calibrate(query, 5.0))
    observed = {str(node): number for node, number in rows.observed.items()}
    missing = replace(honest.data, observed=observed, records=sum(observed.values()), rows=rows.base)
    found = pf.verify(forged(honest, data=missing))
    assert "has missing cells" in str(found)
    assert not found.holds

    start = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [0.5, 0.5], states=["a", "b"])
    data = pf.read_sequences(TABLE, "s", subject="id", time="t", max_gap=1)
    honest = pf.release(data, pf.Histogram(), pf.MQMExact(start, data.length).calibrate(pf.Histogram(), 1.0))
    for change in ({"where": "t > 3"}, {"gaps": "independent"}, {"missing": "split"}):
        base = data.base.__class__(**{**{n: getattr(data.base, n) for n in data.base.__slots__}, **change})
        found = pf.verify(forged(honest, **data_of(honest, base=base)))
        assert "Θ gives the law of a chain's first record" in str(found)
        assert not found.holds


def test_keys_twice_unknown_and_missing_are_refused(tmp_path: Any) -> None:
    data = pf.read_sequences(TABLE, "s", subject="id", time="t", max_gap=1)
    release = pf.release(
        data, pf.Histogram(), pf.LeakagePropagation(STICKY, data.length).calibrate(pf.Histogram(), 1.0)
    )
    text, path = release.to_json(tmp_path / "r.json"), tmp_path / "r.json"
    for edited in (
        text.replace('"epsilon": 1.0,', '"epsilon": 9.0, "epsilon": 1.0,'),
        text.replace('"unit": ', '"unit": 3.0, "unit": ', 1),
        text.replace('"epsilon": 1.0,', ""),
        text.replace('"epsilon": 1.0,', '"epsilon": 1.0, "note": "",'),
        text.replace('"usual_step": "1"', '"usual_step": "1", "zone": null'),
    ):
        assert edited != text
        path.write_text(edited)
        with pytest.raises(pf.RecordError) as caught:
            pf.Release.from_json(path)
        assert "\n" not in str(caught.value)


def edited(release: Any, path: Any, **places: Any) -> Any:
    """Write a record with other values at some places, named with __ between keys."""
    record = json.loads(release.to_json())
    for place, value in places.items():
        *inside, last = place.split("__")
        reduce(getitem, inside, record)[last] = value
    path.write_text(json.dumps(record))
    return path


@pytest.mark.parametrize("n", [2**33, 2**59])
def test_a_record_of_any_size_is_refused_at_once(n: int, tmp_path: Any) -> None:
    """What a file says there are so many of is never made one by one."""
    query, few = pf.Window(pf.Count("b"), 3, 9), pf.LeakagePropagation(STICKY, 20)
    window = pf.release(["a", "b"] * 10, query, few.calibrate(query, 1.0))
    one, many = [[n, n, 1]], [[1, 1, n]]
    longer = {"calibration__lengths": one, "calibration__records": n, "data__lengths": one, "data__records": n}
    longer |= {"data__longest_chain": n, "mechanism__longest_chain": n}
    table = pf.read_sequences(pl.DataFrame({"s": ["a", "b"] * 10}), "s")
    law = pf.release(table, pf.Count("b"), pf.Wasserstein(STICKY, table.length).calibrate(pf.Count("b"), 9.0))
    short = {
        "data__lengths": many,
        "data__records": n,
        "data__chains": n,
        "data__subjects": n,
        "data__longest_chain": 1,
    }
    laws = pf.GivenLaws({"a": {0: 1}, "b": {1: 0.5, 2: 0.5}}, records=2, states=["a", "b"], query=pf.Count("b"))
    own = pf.release(["a", "b"], pf.Count("b"), pf.Wasserstein(laws).calibrate(pf.Count("b"), 1.0))
    asked = {"is": "Window", "query": {"is": "Count", "states": ["b"]}, "start": 0, "stop": 1}
    for release, places in (
        (window, longer),
        (law, short),
        (own, {"calibration__query": asked, "calibration__records": n}),
    ):
        path = edited(release, tmp_path / "r.json", **places)
        with pytest.raises(pf.RecordError, match=r"that are possible here|has other chains"):
            pf.Release.from_json(path)
        assert not pf.verify(path).holds


@pytest.mark.parametrize("field", ["noise", "query", "promise", "not_promised", "assumptions", "accuracy_95", "values"])
def test_the_independent_reader_sees_what_a_broken_writer_makes(field: str) -> None:
    """A control: rules that find nothing wrong with anything would find nothing in the releases of tests either."""
    data = pf.read_sequences(TABLE, "s", subject="id", time="t", max_gap=1)
    noise = pf.LeakagePropagation(STICKY, data.length).calibrate(pf.Histogram(), 1.0)
    release = pf.release(data, pf.Histogram(), noise)
    assert list(contradictions(release)) == []
    other = pf.release(data, pf.Count("b"), pf.LeakagePropagation(STICKY, data.length).calibrate(pf.Count("b"), 3.0))
    stated = getattr(other, field) if getattr(other, field) != getattr(release, field) else ["Nothing."]
    assert list(contradictions(replace(release, **{field: stated}))) != []


def test_sharpness_that_leaves_64_bits_proves_nothing() -> None:
    """Two complementary counts of sharpness 2^63 - 1: their losses wrapped around to -2, and both were exact."""
    states = list("abcde")
    counted = [["a", "b"], ["c", "d", "e"], ["a"], ["b", "c"], ["c", "d"]]
    chain, query = pf.MarkovChain(np.full((5, 5), 0.1) + 0.5 * np.eye(5), states=states), pf.Histogram(relative=False)
    honest = pf.release(states * 4, query, pf.LeakagePropagation(chain, 20).calibrate(query, 1.0))
    for sharp, sound in ((1, True), (2**63 - 1, False)):
        measured = [MeasurementRecord(s, 1.0, each) for s, each in zip(counted, [sharp, sharp, 3, 3, 3], strict=True)]
        stated = replace(honest.calibration, unit_scale=200.0)
        other = replace(honest, noise=replace(honest.noise, measurements=measured), calibration=stated)
        found = pf.verify(forged(other) if sound else other)
        assert (found.holds and found.proved) == sound
        assert sound or "a whole number from 1 to 1,000,000" in str(found)


def test_no_column_is_read_as_two_things() -> None:
    """Subjects, times, filters and groups are public: none is the state, or a node, not one that the table lacks."""
    data = pf.read_sequences(TABLE, "s", subject="id", time="t", max_gap=1)
    own = {name: getattr(data.base, name) for name in data.base.__slots__}
    for change in ({"subject": "s"}, {"time": "s"}, {"state": "id"}, {"time": "id"}, {"step": "5"}):
        with pytest.raises(pf.ParameterError):
            data.base.__class__(**{**own, **change})
    network = pf.BayesianNetwork(
        {"smoke": pf.CPT(["no", "yes"], [0.8, 0.2]), "lung": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.3, 0.7]], ["smoke"])}
    )
    rows = pf.read_rows(pl.DataFrame({"smoke": ["yes", "no"] * 20}), network)
    query = pf.Marginals(["smoke"])
    honest = pf.release(rows, query, pf.LeakagePropagation(network, rows.length).calibrate(query, 1.0))
    own = {name: getattr(rows.base, name) for name in rows.base.__slots__}
    for change in ({"columns": {"smoke": "x", "lung": "x"}}, {"subject": "smoke"}, {"where": "smoke == 'no'"}):
        with pytest.raises(pf.PufferfishError):
            rows.base.__class__(**{**own, **change})
    for change in ({"subject": "lung"}, {"where": "lung == 'no'"}):
        base = rows.base.__class__(**{**own, **change})
        found = pf.verify(forged(honest, **data_of(honest, rows=base)))
        assert "lung" in str(found)
        assert not found.holds


def test_a_place_in_a_ledger_is_of_a_table_and_adds_up() -> None:
    booked, row = LedgerRecord(1, "0" * 64, 1.0, 3.0, "propagation", "stated"), ["a", "b"] * 10
    table = pf.read_sequences(pl.DataFrame({"s": row}), "s")
    for data, mechanism, sound in (
        (table, pf.LeakagePropagation, True),
        (row, pf.LeakagePropagation, False),
        (table, pf.Wasserstein, False),
    ):
        honest = pf.release(data, pf.Count("b"), mechanism(STICKY, 20).calibrate(pf.Count("b"), 1.0))
        assert pf.verify(forged(honest, ledger=booked)).holds == sound


def test_a_proof_without_a_secret_is_none() -> None:
    """Where each record can have one value only nothing leaks, and no release is made."""
    start, sure = pf.MarkovChain([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5]), pf.MarkovChain(np.eye(2), [1.0, 0.0])
    for mechanism in (pf.LeakagePropagation, pf.MQMExact, pf.Wasserstein, pf.ExactLaplace):
        honest = pf.release([0, 1] * 10, pf.Count(1), mechanism(start, 20).calibrate(pf.Count(1), 1.0))
        found = pf.verify(forged(honest, theta=ThetaRecord.of(as_theta(sure))))
        assert "finds nothing to hide" in str(found)
        assert not found.proved


def test_a_small_file_takes_no_large_memory_and_no_traceback(tmp_path: Any) -> None:
    forgets, query = pf.ForgettingClass([3, 9], [0.3, 0.8], ["a", "b"]), pf.Count("b")
    honest = pf.release(["a", "b"] * 10, query, pf.LeakagePropagation(forgets, 20).calibrate(query, 1.0))
    names = ["a", "b", *(f"s{i}" for i in range(20_000))]
    nested: Any = {"is": "Count", "states": ["b"]}
    for _ in range(430):
        nested = {"is": "Window", "query": nested, "start": 0, "stop": 1}
    for place, value in (("theta__states", names), ("calibration__query", nested)):
        path = edited(honest, tmp_path / "r.json", **{place: value})
        with pytest.raises(pf.RecordError, match=r"at most 2,000|recursion"):
            pf.Release.from_json(path)


def test_several_chains_have_a_column_of_subjects_and_chains_without_gaps_have_as_many_steps() -> None:
    """What is assumed says "The table is one chain" where no column names subjects: then it is no longer than it is."""
    table = pl.DataFrame({"id": ["p"] * 60 + ["q"] * 40, "s": ["a", "b"] * 50})
    data = pf.read_sequences(table, "s", subject="id", missing="refuse")
    honest = pf.release(data, pf.Count("b"), pf.LeakagePropagation(STICKY, data.length).calibrate(pf.Count("b"), 1.0))
    own = {name: getattr(data.base, name) for name in data.base.__slots__}
    found = pf.verify(forged(honest, **data_of(honest, base=data.base.__class__(**{**own, "subject": None}))))
    assert "without a subject column" in " ".join(str(found).split())
    assert not found.holds
    timed = pf.read_sequences(TABLE, "s", subject="id", time="t", max_gap=1)
    usual = pf.release(timed, pf.Count("b"), pf.LeakagePropagation(STICKY, 100).calibrate(pf.Count("b"), 1.0))
    found = pf.verify(forged(usual, **data_of(usual, usual_step="7")))
    assert "the step is the usual one" in " ".join(str(found).split())
    assert not found.holds
    apart = {"lengths": [(1000, 60, 1)], "longest_chain": 1000}
    stated = replace(honest.calibration, lengths=[(1000, 60, 1)], records=60)
    found = pf.verify(forged(honest, calibration=stated, **data_of(honest, **apart)))
    assert "nothing makes a gap" in str(found)
    assert not found.holds


def test_what_a_release_for_each_subject_says_stands_in_its_table(tmp_path: Any) -> None:
    """One subject twice, rows of others, and what is no table: the digest is of whatever the forger wrote."""
    days = pl.DataFrame({"who": ["a"] * 40 + ["b"] * 20, "s": ["a", "b"] * 30})
    data, query, path = pf.read_sequences(days, "s", subject="who"), pf.Histogram(relative=False), tmp_path / "v.csv"
    noise = pf.LeakagePropagation(STICKY, data.length).calibrate(query, 1.0)
    honest = pf.release_each(data, query, noise, path)
    assert honest.table is not None
    text, record = path.read_text(), path.with_suffix(".json")
    for old, new, says in (
        ("b,20,a", "b,20,a", None),
        ("b,20", "a,20", "a subject twice"),
        ("b,20,b", "c,20,b", "rows of other subjects"),
        ("b,20,b", "b,20,a", "other outputs"),
        ("b,20,b", "b,99,b", "without a number of records"),
        ("records", "number", "other columns"),
        (text, "", "not such a table"),
        (text, text.replace("a,40", "a,50").replace("b,20", "b,10"), "other records than any chain"),
        (text, text.replace("a,40", "a,39.5").replace("b,20", "b,20.5"), "column records"),
    ):
        content = text.replace(old, new).encode()
        path.write_bytes(content)
        table = replace(honest.table, sha256=hashlib.sha256(content).hexdigest())
        record.write_bytes(encoded(replace(honest, subjects=replace(honest.subjects, table=table))))
        found = pf.verify(record)
        assert found.holds == (says is None), says
        assert says is None or says in str(found)


def test_a_table_for_spreadsheets_verifies(tmp_path: Any) -> None:
    days, chain = pl.DataFrame({"who": ["=a"] * 40, "s": ["=r", "w"] * 20}), [[0.9, 0.1], [0.4, 0.6]]
    data, query = pf.read_sequences(days, "s", subject="who"), pf.Histogram(relative=False)
    noise = pf.LeakagePropagation(pf.MarkovChain(chain, states=["=r", "w"]), data.length).calibrate(query, 1.0)
    pf.release_each(data, query, noise, tmp_path / "v.csv", for_spreadsheets=True)
    assert pf.verify(tmp_path / "v.json").holds


def test_a_ledger_of_a_measurement_is_one() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    counted = space >> dp.t.then_count() >> dp.m.then_laplace(scale=200.0)
    bound = pf.LeakagePropagation(STICKY, 20)
    honest = pf.release_measurement(["a", "b"] * 10, counted, bound, 1.0, values={"a": 0, "b": 1})
    booked = LedgerRecord(-5, "0" * 64, -3.0, -9.0, "nobody", "x")
    other = replace(honest, ledger=booked, **words_of_measurement(bound, 1.0, booked, honest.checked))
    with pytest.raises(pf.RecordError, match="the place in the ledger is at least 1"):
        other.verify()


@pytest.mark.parametrize("mechanism", [pf.Wasserstein, ApproximateWasserstein])
def test_noise_of_several_scales_is_proved_by_who_knows_them(mechanism: Any) -> None:
    """What proves the law of one query with one scale would take a millionth of its noise for the whole of it."""
    query, settings = pf.Histogram(relative=False), {"delta": 1e-3} if mechanism is ApproximateWasserstein else {}
    noise = mechanism.of(STICKY, 12, **settings).calibrate(query, 5.0)
    honest = pf.release(["a", "b"] * 6, query, noise)
    for sharp in (1, 10**6):
        measured = [MeasurementRecord([state], 1.0, sharp) for state in ("a", "b")]
        other = forged(honest, noise=replace(honest.noise, measurements=measured))
        assert other.noise.scale == pytest.approx(honest.noise.scale / sharp)
        found = pf.verify(other)
        assert "this mechanism covers one query" in " ".join(str(found).split())
        assert not found.proved
        shape = Strategy(np.eye(2, dtype=np.int64), np.eye(2, dtype=np.int64), [sharp, sharp])
        with pytest.raises(pf.PufferfishError, match="one scale"):
            pf.release(["a", "b"] * 6, query, dataclasses.replace(noise, strategy=shape))


THREE = pf.MarkovChain([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], states=["a", "b", "c"])
STRETCHES = {
    "an hour": (STICKY, {"protect": 10}),
    "near values, two courses of which are told apart as well": (
        THREE,
        {"protect": 5, "within": [("a", "b"), ("b", "c")]},
    ),
    "one near value": (THREE, {"within": [("a", "b")]}),
    "a series": (STICKY, {"protect": "subject"}),
    "a clock": (
        pf.PeriodicChain([[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.3, 0.7]]], states=["a", "b"]),
        {"protect": 10},
    ),
    "a forgetting class": (pf.ForgettingClass(steps=2, overlap=0.4, states=["a", "b"]), {"protect": 10}),
    "two records of memory": (
        pf.HigherOrderChain([[[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.2, 0.8]]], states=["a", "b"]),
        {"protect": 5},
    ),
}


def others_of(value: Any) -> list[Any]:
    """Return what a forger writes in place of a value."""
    if isinstance(value, int | float):
        return [value + 1, value - 1, value * 2, value / 2, 0, None]
    if isinstance(value, str):
        return ["series", "forgetting", "propagation", 5, None]
    if isinstance(value, list):
        return [value[::-1], [value[0], value[0]], value[:1], None]
    return [0, "subject", ["a", "b"]]


@pytest.mark.parametrize("case", STRETCHES)
def test_every_word_about_a_stretch_is_the_one_that_follows(case: str, slow: bool) -> None:
    """What decides, what was asked for and what is hidden, one or two of them changed: only a tie elsewhere is left."""
    theta, asked = STRETCHES[case]
    noise = pf.LeakagePropagation(theta, 40).calibrate(pf.Histogram(), 1.0, **asked)
    text = pf.release(["a"] * 40, pf.Histogram(), noise).to_json()
    found, promises = pf.verify(release_in(text.encode(), "it")), json.loads(text)["promises"]
    assert (found.holds, "witness" in {part.what for part in found.unchecked}) == (True, False)
    edits: list[tuple[tuple[str, ...], Any]] = [(("hides",), "any one record"), (("promises",), promises[1:])]
    edits += [(("promises",), [*promises[:-1], promises[-1] | {"epsilon": promises[-1]["epsilon"] / 2}])]
    for part in (("mechanism", "witness"), ("calibration", "settings")):
        for field, value in reduce(getitem, part, json.loads(text)).items():
            edits += [((*part, field), other) for other in others_of(value) if other != value]
    both = [[edit] for edit in edits] + [[*two] for two in itertools.combinations(edits, 2)]
    for changes in [*both[: len(edits)], *both[len(edits) :: 7 if slow else 97]]:
        record = json.loads(text)
        for (*inside, last), other in changes:
            reduce(getitem, inside, record)[last] = other
        try:
            found = pf.verify(release_in(json.dumps(record).encode(), "it"))
        except pf.RecordError:
            continue
        elsewhere = any(place[-1] == "node" for place, _ in changes)
        tie = elsewhere and "witness" in {part.what for part in found.unchecked}
        assert tie or not found.holds, f"{changes}: {found}"
