"""Verifying a release: what was promised holds again, and whatever is edited is found, or listed as uncheckable."""

import copy
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from test_release_fuzz import CHANGES, DATA, NEAR, RELEASES, changed, leaves, put

import pufferfish as pf
from commands import READING, refused, run, write_table
from ledgers import CHAIN, read
from pufferfish._base.reading import file_digest
from release_cases import NETWORK, releases

PROVED = {"record", "query", "noise", "proof", "witness", "lengths", "words"}


def of_findings(found: pf.Verification, holds: bool | None) -> set[str]:
    return {part.what for part in found.findings if part.holds is holds}


def test_every_kind_of_release_holds(slow: bool, tmp_path: Path) -> None:
    """Every mechanism, kind of model, query and reading: the proof is computed again from the file alone."""
    path, seen = tmp_path / "release.json", 0
    for case, release in releases(1 if slow else 29):
        release.to_json(path, overwrite=True)
        found = pf.verify(path)
        assert found.holds, f"{case}\n{found}"
        functions = release.query.kind == "function" or case == "own laws"
        assert functions or of_findings(found, True) >= PROVED, f"{case}\n{found}"
        assert of_findings(found, None) >= {"noise drawn", "origin", "Θ", "table"}
        assert len(str(found).splitlines()) < 30
        seen += 1
    assert seen > 10


def test_the_longest_of_many_chains_are_enough_for_the_proof() -> None:
    """A record says which chains can decide; all chains together are as many records again."""
    table = pl.DataFrame({"id": [i for i in range(300) for _ in range(1 + i % 50)]})
    table = table.with_columns(s=(pl.int_range(pl.len()) % 2).cast(pl.String).replace({"0": "rest", "1": "active"}))
    data = pf.read_sequences(table, "s", subject="id")
    noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(pf.Histogram(), 1.0)
    release = pf.release(data, pf.Histogram(), noise)
    assert release.calibration.lengths == [(50, 50, 1)]
    assert sum(chain.records for chain in release.calibration.chains()) == data.records
    assert release.verify(table=table).holds


EDITS: list[tuple[str, tuple[Any, ...], Callable[[Any], Any]]] = [
    ("leakage lowered", ("mechanism", "leakage"), lambda v: v * 0.9),
    ("ε raised", ("epsilon",), lambda v: v * 2),
    ("ε lowered", ("epsilon",), lambda v: v / 2),
    ("scale lowered", ("noise", "scale"), lambda v: v / 2),
    ("multiplier", ("noise", "noise_multiplier"), lambda v: v * 1.01),
    ("unit", ("noise", "unit"), lambda v: v * 2),
    ("exact scale", ("calibration", "unit_scale"), lambda v: v * 0.999),
    ("lipschitz", ("query", "lipschitz"), lambda v: v / 2),
    ("description", ("query", "description"), lambda v: v + " of all"),
    ("labels", ("query", "labels"), lambda v: v[::-1] if len(v) > 1 else [f"{v[0]}x"]),
    ("query", ("calibration", "query", "is"), lambda v: "Mean"),
    ("accuracy", ("accuracy_95", "each"), lambda v: v * 0.5),
    ("joint accuracy", ("accuracy_95", "joint"), lambda v: v * 0.9),
    ("value", ("values", 0), lambda v: v + 1),
    ("promise", ("promise",), lambda v: v.replace("any one record", "any record of Alice")),
    ("what is not promised", ("not_promised",), lambda v: v[1:]),
    ("assumption", ("assumptions", 0), lambda v: v.replace("The distribution", "Surely the distribution")),
    ("records", ("calibration", "records"), lambda v: v - 1),
    ("longest chain", ("mechanism", "longest_chain"), lambda v: v + 1),
    ("title", ("mechanism", "title"), lambda v: "GroupDP" if v != "GroupDP" else "MQMExact"),
    ("mechanism", ("mechanism", "name"), lambda v: "group-dp" if v != "group-dp" else "mqm-exact"),
    ("secrets", ("mechanism", "secrets"), lambda v: [["Alice", "Bob"]]),
    ("states", ("theta", "states"), lambda v: v[::-1]),
    ("witness", ("mechanism", "witness", "theta"), lambda v: v + 1),
    ("subjects", ("data", "subjects"), lambda v: v + 1),
    ("origin of Θ", ("theta", "origin"), lambda v: "a census"),
    ("no calibration", ("calibration",), lambda v: None),
    ("noisy value", ("noisy_values", 0), lambda v: v + 5),
    ("value and noisy value", (), lambda v: v | {"values": [8.0], "noisy_values": [8.0]}),
    ("time", ("created",), lambda v: "2020-01-01T00:00:00+00:00"),
    ("version of numpy", ("software", "numpy"), lambda v: "1.0"),
    ("file", ("data", "base", "source"), lambda v: "other.csv"),
]  # fmt: skip
"""What a dishonest owner, or an editor, may change by hand: one thing at a time."""


def is_listed(found: pf.Verification, place: tuple[Any, ...]) -> bool:
    """Whether what cannot be checked names a field, what it is in, or what is in it."""
    own = ".".join(map(str, place)) + "."
    names = [f"{field}." for part in found.unchecked for field in part.fields]
    return any(own.startswith(name) or name.startswith(own) for name in names)


OF_ALL_KINDS = (pf.GroupDP, pf.LeakagePropagation, pf.MQMExact, pf.MQMApprox, pf.GK16, pf.Wasserstein, pf.ExactLaplace)


@pytest.mark.parametrize("mechanism", OF_ALL_KINDS)
def test_a_release_edited_by_hand(mechanism: Any, tmp_path: Path) -> None:
    """Each of some thirty edits is found, or said to be one that nobody can check from the record."""
    weak = pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]], states=CHAIN.states)
    path, query = tmp_path / "release.json", pf.Count("active")
    data = read([[7, 3], [4, 1]])
    release = pf.release(data, query, mechanism(weak, data.length).calibrate(query, 1.0))
    record, listed = json.loads(release.to_json(path)), []
    assert pf.verify(path).holds
    for name, place, edit in EDITS:
        whole = {"all": copy.deepcopy(record)}
        inside: Any = whole
        for key in ("all", *place)[:-1]:
            inside = inside[key]
        last = ("all", *place)[-1]
        inside[last] = edit(inside[last])
        path.write_text(json.dumps(whole["all"]))
        try:
            found = pf.verify(path)
        except pf.RecordError:
            continue
        if found.holds:
            assert is_listed(found, place or ("noisy_values",)), f"{name}\n{found}"
            listed.append(name)
    # the noise may be enough for fewer records too, and under the class with its states renamed
    assert set(listed) - {"records", "states"} == {"value and noisy value", "time", "version of numpy", "file"}


def of_every_kind(folder: Path) -> Iterator[tuple[str, Path]]:
    """Releases that are more than one number with one scale."""
    weak = pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]], states=CHAIN.states)
    table = pl.DataFrame({"id": ["a"] * 9 + ["b"] * 6, "s": ["rest", "active", "active"] * 5, "sex": "f"})
    data = pf.read_sequences(table, "s", subject="id")
    bound, grouped = pf.LeakagePropagation(weak, data.length), pf.read_sequences(table, "s", subject="id", by=["sex"])
    asked: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "histogram": (data, pf.Histogram(), {}),
        "transitions": (data, pf.Transitions(), {}),
        "groups": (grouped, pf.Histogram(), {}),
        "best noise": (data, pf.Histogram(), {"noise": "best"}),
    }
    for name, (source, query, options) in asked.items():
        path = folder / f"{name}.json"
        pf.release(source, query, bound.calibrate(query, 1.0, **options)).to_json(path)
        yield name, path
    pf.release_each(data, pf.Histogram(), bound.calibrate(pf.Histogram(), 1.0), folder / "each.csv")
    yield "each subject", folder / "each.json"


def test_releases_of_every_kind_edited_by_hand(tmp_path: Path) -> None:
    """The same edits, where the record has such a field; none passes without a word."""
    tried: Counter[str] = Counter()
    for kind, path in of_every_kind(tmp_path):
        assert pf.verify(path).holds, kind
        record = json.loads(path.read_text())
        for name, place, edit in EDITS:
            edited: Any = copy.deepcopy(record)
            inside = edited
            try:
                for key in place[:-1]:
                    inside = inside[key]
                inside[place[-1]] = edit(inside[place[-1]])
            except (KeyError, IndexError, TypeError):
                continue  # records of this kind have no such field
            if edited == record:
                continue
            tried[kind] += 1
            path.write_text(json.dumps(edited))
            try:
                found = pf.verify(path)
            except pf.RecordError:
                continue
            if found.holds and name not in ("records", "states"):  # as above
                assert is_listed(found, place), f"{kind}: {name}\n{found}"
    assert len(tried) == 5
    assert min(tried.values()) >= 20, tried


def of_newer_kinds(folder: Path) -> Iterator[tuple[str, Path]]:
    """Hours as groups, one release for each subject, several columns together, and steps by the laws of their count."""
    weak = pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]], states=CHAIN.states)
    times = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=20 * i) for i in range(36)]
    table = pl.DataFrame({"t": times, "s": ["rest", "active", "active"] * 12})
    hours, whole = (pf.read_sequences(table, "s", time="t", by=by) for by in (["hour(t)"], None))
    each = pf.read_sequences(table.with_columns(id=pl.Series(["a", "b", "b"] * 12)), "s", subject="id")
    people = pl.DataFrame({"a": ["no", "yes"] * 20, "b": ["no", "no", "yes", "yes"] * 10, "c": ["low", "mid"] * 20})
    joint, rows = pf.Joint(["a", "b"]), pf.read_rows(people, NETWORK, joint=["a", "b"])
    asked: dict[str, tuple[Any, Any, pf.Calibration]] = {
        "hours": (hours, pf.Histogram(), pf.LeakagePropagation(weak, hours.length).calibrate(pf.Histogram(), 1.0)),
        "joint": (rows, joint, pf.MarkovQuilt(NETWORK, length=rows.length).calibrate(joint, 1.0)),
        "switches": (whole, pf.Switches(), pf.ExactLaplace(weak, whole.length).calibrate(pf.Switches(), 1.0)),
    }
    for name, (source, query, noise) in asked.items():
        pf.release(source, query, noise).to_json(folder / f"{name}.json")
        yield name, folder / f"{name}.json"
    noise = pf.LeakagePropagation(weak, each.length).calibrate(pf.Count("active"), 1.0)
    pf.release_each(each, pf.Count("active"), noise, folder / "each.csv", postprocess="valid")
    yield "each subject", folder / "each.json"


@pytest.mark.slow
def test_newer_kinds_edited_in_every_field(slow: bool, tmp_path: Path) -> None:
    """One small edit of each field in turn, or of some sixty: each is found, or listed as one nobody can check."""
    near = list(NEAR.values())
    for kind, path in of_newer_kinds(tmp_path):
        assert pf.verify(path).holds, kind
        record, missed = json.loads(path.read_text()), []
        places = list(leaves(record))
        ways = [(place, near[(i + j) % len(near)]) for j in range(len(near)) for i, place in enumerate(places)]
        some = ways if slow else ways[:: max(1, len(ways) // 120)]  # of which most are no change
        tried = [(place, edited) for place, way in some if json.loads(edited := changed(record, place, way)) != record]
        assert len(tried) >= 20, kind
        for place, edited in tried:
            path.write_text(edited)
            try:
                found = pf.verify(path)
            except pf.RecordError:
                continue
            if found.holds and not is_listed(found, place):
                missed.append((place, edited))
        assert not missed, (kind, [place for place, _ in missed])


def test_a_leakage_lowered_everywhere_is_found(tmp_path: Path) -> None:
    """Half the noise, said consistently in every field that a reader of the record looks at: only a proof sees it."""
    path = tmp_path / "release.json"
    for mechanism in (pf.GroupDP, pf.GK16, pf.MQMApprox):
        weak = pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]], states=CHAIN.states)
        noise = mechanism(weak, DATA.length).calibrate(pf.Count("active"), 2.0)
        record = json.loads(pf.release(DATA, pf.Count("active"), noise).to_json())
        record["epsilon"] = 1.0
        record["mechanism"]["leakage"] /= 2
        record["promise"] = record["promise"].replace("e^2 ≈ 7.389", "e^1 ≈ 2.718")
        if "influence" in record["mechanism"]["witness"]:
            record["mechanism"]["witness"]["influence"] = 0.0
            record["mechanism"]["witness"]["nearby"] = 10**6 if mechanism is pf.MQMApprox else 70
        path.write_text(json.dumps(record))
        found = pf.verify(path)
        assert "proof" in of_findings(found, False), f"{mechanism.__name__}\n{found}"


def test_any_one_field_changed_is_found_or_listed(slow: bool, tmp_path: Path) -> None:
    """The changes of the fuzz of reading, which takes some of them: verifying tells those too."""
    path, missed = tmp_path / "release.json", []
    every = list((CHANGES | NEAR).items())
    for case in sorted(RELEASES) if slow else ("count, made valid, in a ledger", "joint law", "marginals, made valid"):
        record = json.loads(RELEASES[case]().to_json())
        ways = itertools.cycle([every] if slow else [every[i::20] for i in range(20)])
        for place in leaves(record):
            for name, change in next(ways):
                path.write_text(changed(record, place, change))
                if json.loads(path.read_text()) == record:
                    continue
                try:
                    found = pf.verify(path)
                except pf.RecordError:
                    continue
                if found.holds and not is_listed(found, place) and not says_the_same(record, path, place, name):
                    missed.append((case, place, name))
    assert not missed, "\n".join(map(str, missed))


def says_the_same(record: dict[str, Any], path: Path, place: tuple[Any, ...], name: str) -> bool:
    """Whether an edit left what is said: numbers beyond doubles' reach, an order that means nothing, or less said."""
    try:
        old, new = (reduce(getitem, place, held) for held in (record, json.loads(path.read_text())))
    except (KeyError, IndexError):
        old = new = None  # an interval, or a field, was left out
    if isinstance(old, float) and isinstance(new, int | float):
        size = max(map(abs, record["noisy_values"])) if place[0] == "values" else abs(old)  # as they are compared
        return abs(old - new) <= max(1e-9 * size, 1e-12)
    if place[:2] == ("noise", "measurements"):
        return name == "reversed"
    if place[0] == "postprocessing":
        return name in ("null", "tiny")
    return place[0] == "quantiles" and name in ("list", "shorter", "missing")  # the intervals that are left hold


def test_no_part_of_a_record_switches_another_off(tmp_path: Path) -> None:
    """Neither another version of the program, nor what makes the proof impossible."""
    path = tmp_path / "release.json"
    record = json.loads(RELEASES["group privacy"]().to_json())

    def wrong(edit: Callable[[Any], object]) -> set[str]:
        other = copy.deepcopy(record)
        other["software"]["pufferfish-privacy"] = "0.0.1"
        edit(other)
        path.write_text(json.dumps(other))
        return of_findings(pf.verify(path), False)

    assert wrong(lambda other: None) == set()
    assert wrong(lambda other: other.update(promise="Nobody learns anything.")) == {"words"}
    assert wrong(lambda other: other["mechanism"].update(leakage=0.1)) == {"proof"}
    assert "record" in wrong(lambda other: other["calibration"].update(query=None))
    assert "record" in wrong(lambda other: other["calibration"].update(settings=None))
    with pytest.raises(pf.RecordError, match="calibration"):
        wrong(lambda other: other.pop("calibration"))


def test_what_cannot_be_proved_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    path, page = tmp_path / "release.json", tmp_path / "page.html"
    RELEASES["laws of a user"]().to_json(path)
    found = pf.verify(path)
    assert (found.holds, found.proved) == (True, False)
    assert str(found).endswith("the proof could not be checked")
    assert run("verify", path).exit_code == 3
    assert run("report", path, "--output", page, "--brief").exit_code == 0
    head = page.read_text().partition("What was released</h")[0]
    assert "The proof of this release could not be checked" in head


def test_how_often_records_follow_each_other_is_compared_with_the_table(tmp_path: Path) -> None:
    table = pl.DataFrame({"t": [*range(12), *range(20, 38)], "s": ["rest", "active", None, "active", "rest"] * 6})
    data = pf.read_sequences(table, "s", time="t", max_gap=1)
    release = pf.release(data, pf.Switches(), pf.LeakagePropagation(CHAIN, data.length).calibrate(pf.Switches(), 1.0))
    record = json.loads(release.to_json(tmp_path / "r.json"))
    assert record["data"]["steps"] == int(data.transitions.sum()) < data.records - 1
    assert release.verify(table=table).holds
    record["data"]["steps"] -= 1
    (tmp_path / "r.json").write_text(json.dumps(record))
    (wrong,) = pf.verify(tmp_path / "r.json", table=table).wrong
    assert wrong.what == "table"
    assert is_listed(pf.verify(tmp_path / "r.json"), ("data", "steps"))


def test_releases_for_each_subject(tmp_path: Path) -> None:
    table = pl.DataFrame({"id": ["a"] * 40 + ["b"] * 25, "s": ["rest", "active", "active", "rest", "rest"] * 13})
    data = pf.read_sequences(table, "s", subject="id")
    for query, valid, name in (
        (pf.Histogram(), "valid", "v.csv"),
        (pf.Count("active"), None, "w.parquet"),
        (pf.Mean([0, 2.5]), "valid", "m.csv"),
    ):
        output = tmp_path / name
        noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(query, 1.0)
        release = pf.release_each(data, query, noise, output, postprocess=valid)
        path = output.with_suffix(".json")
        found = pf.verify(path, table=table)
        assert found.holds, found
        assert of_findings(found, True) >= {*PROVED, "values", "table"}
        assert "values" in of_findings(release.verify(), None)
        path.write_text(path.read_text().replace('"epsilon": 1.0', '"epsilon": 0.5'))
        assert not pf.verify(path).holds
    frame = (tmp_path / "v.csv").read_text()
    record = json.loads((tmp_path / "v.json").read_text().replace('"epsilon": 0.5', '"epsilon": 1.0'))
    (tmp_path / "v.csv").write_text(frame.replace("rest,", "rest,1", 1))
    (tmp_path / "v.json").write_text(json.dumps(record))
    assert "values" in of_findings(pf.verify(tmp_path / "v.json"), False)
    record["subjects"]["table"]["sha256"] = file_digest(tmp_path / "v.csv")
    (tmp_path / "v.json").write_text(json.dumps(record))
    (wrong,) = pf.verify(tmp_path / "v.json").wrong  # the digest was made to fit: the numbers still do not
    assert wrong.what == "values"


def test_on_the_command_line(tmp_path: Path) -> None:
    table, model, book = write_table(tmp_path / "t.csv", seed=1), tmp_path / "m.json", tmp_path / "b.json"
    output, other = tmp_path / "r.json", tmp_path / "o.json"
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    pf.write_model(pf.Model(theta=chain, step="1min"), model)
    pf.write_model(pf.Model(theta=pf.MarkovChain([[0.8, 0.2], [0.4, 0.6]], states=["rest", "active"])), other)
    assert run("ledger", "create", book, "--model", model, "--budget", 2, "--table", table, *READING).exit_code == 0
    for epsilon in (0.5, 0.7):
        done = run("release", table, *READING, "--model", model, "--query", "histogram", "--epsilon", epsilon,
                   "--output", output, "--ledger", book, "--overwrite")  # fmt: skip
        assert done.exit_code == 0, done.output
    done = run("verify", output, "--model", model, "--ledger", book, "--table", table)
    assert done.exit_code == 0, done.output
    assert "not checked" in done.stdout
    for what in ("proof", "Θ", "ledger", "table"):
        assert any(line.split()[:2] == ["holds", what] for line in done.stdout.splitlines()), done.stdout
    assert done.stdout.endswith("all that could be checked holds, the proof included\n")
    shown = run("show", output)
    assert shown.exit_code == 0, shown.output
    release = pf.Release.from_json(output)
    assert str(release) in shown.stdout
    for words in ("histogram", "± 95%", "ε = 0.7", "ledger: number 2", release.promise, "needs most", "assumed: "):
        assert words in shown.stdout
    assert len(str(release)) < 1000
    assert run("verify", output, "--model", other).exit_code == 1
    copy = write_table(tmp_path / "copy.csv", seed=1)
    done = run("verify", output, "--table", copy)
    assert done.exit_code == 0, done.output
    named = "has the record's 360 records and lengths; it is 'copy.csv', and the record names 't.csv' "
    assert named in " ".join(done.stdout.split())
    shorter = write_table(tmp_path / "s.csv", seed=1, minutes=200)
    done = run("verify", output, "--table", shorter)
    assert done.exit_code == 1
    assert "DOES NOT HOLD  table" in done.stdout
    record = json.loads(output.read_text())
    for place, value in (
        (("ledger", "entry"), 1), (("ledger", "spent"), record["ledger"]["spent"] / 2), (("ledger", "budget"), 20.0)
    ):  # fmt: skip
        output.write_text(changed(record, place, put(value)))
        done = run("verify", output, "--ledger", book)
        assert done.exit_code == 1
        here = "it is entry 2 of this ledger" if place == ("ledger", "entry") else "no entry of this ledger is of this"
        assert here in " ".join(done.stdout.split())
    output.write_text(changed(record, ("epsilon",), put(5.0)))
    refused("show", output, says=["contradicts itself", "pufferfish verify says"])
    refused("verify", tmp_path / "none.json", says=["none.json"])
    refused("verify", table, says=["t.csv"])
    refused("verify", model, says=["not a pufferfish-release file"])
    output.write_text(json.dumps(record))
    refused("verify", output, "--ledger", model, says=["m.json"])
    done = run("verify", output, "--ledger", book)  # it cannot know of a second record with this entry, and says so
    assert done.exit_code == 0
    assert "a second record that names this entry would be told the same" in " ".join(done.stdout.split())
    unbooked = tmp_path / "u.json"
    assert run("release", table, *READING, "--model", model, "--output", unbooked, "--epsilon", 1).exit_code == 0
    assert run("verify", unbooked).exit_code == 0
    done = run("verify", unbooked, "--ledger", book)  # it hides nothing, and still this ledger does not vouch for it
    assert done.exit_code == 1
    assert re.search("^NOT IN IT +ledger +the release was made without a ledger, and says so", done.stdout, re.M)
    assert "DOES NOT HOLD" not in done.stdout
    assert done.stdout.endswith("the proof included; the release is not in this ledger\n")
    assert "not in it" in pf.verify(unbooked, ledger=book)._repr_html_()
    refused("report", unbooked, "--ledger", book, "--output", tmp_path / "r.html", says=["leave the ledger out"])
    hidden = json.loads(unbooked.read_text()) | {"ledger": record["ledger"]}
    unbooked.write_text(json.dumps(hidden))
    assert "DOES NOT HOLD" in run("verify", unbooked, "--ledger", book).stdout
    refused("verify", output, "--values", table, says=["for each subject"])


def test_a_clock_that_is_set_back_spoils_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release is not older than its entry, and entries are in the order of their numbers."""
    times = iter(range(1, 1000))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(2026, 1, 1, tzinfo=UTC) - timedelta(days=next(times))

    monkeypatch.setattr("pufferfish._base.durations.datetime", Clock)
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    data = pf.read_sequences(pl.DataFrame({"s": ["rest", "rest", "active"] * 20}), "s")
    ledger = pf.Ledger(pf.GroupDP(chain, data.length), 3.0, base=data)
    ledger.save(tmp_path / "book.json")
    for number in range(1, 4):
        found = pf.release(data, pf.Histogram(), ledger.bound.calibrate(pf.Histogram(), 0.5), ledger=ledger)
        assert found.created >= ledger.entries[-1].created
        assert pf.verify(found, ledger=tmp_path / "book.json").holds
        assert [entry.number for entry in pf.Ledger.open(tmp_path / "book.json").entries] == list(range(1, number + 1))


def test_a_witness_of_the_same_record_says_the_same(tmp_path: Path) -> None:
    """A tie is of another record; what the file says of this one, how many records count in full too, is compared."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    noise = pf.GroupDP(chain, 40).calibrate(pf.Count("active"), 1.0)
    path = tmp_path / "r.json"
    text = pf.release(["rest"] * 40, pf.Count("active"), noise).to_json(path)
    assert pf.verify(path).holds
    path.write_text(text.replace('"nearby": 40', '"nearby": 44'))
    assert [part.what for part in pf.verify(path).wrong] == ["witness"]


THREE = pf.MarkovChain([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], states=["0", "1", "2"])
OF_CHAINS: list[dict[str, Any]] = [
    {"protect": 3},
    {"protect": "subject"},
    {"within": 1},
    {"within": [("1", "2")]},
    {"protect": 2, "within": [("0", "1"), ("1", "2")]},
]
OF_ROWS: list[dict[str, Any]] = [{"protect": "a+b"}, {"protect": "row"}, {"secrets": ["a"]}]


@pytest.mark.grid(keep=9)
@pytest.mark.parametrize("unit", [{}, *OF_CHAINS, *OF_ROWS], ids=str)
def test_a_release_in_a_ledger_about_any_unit_is_read_again(unit: dict[str, Any], tmp_path: Path) -> None:
    data: Any
    if unit in OF_ROWS:
        rows = {"a": ["no", "yes"] * 200, "b": ["no", "no", "yes", "yes"] * 100, "c": ["low", "mid"] * 200}
        data, theta, query = pf.read_rows(pl.DataFrame(rows), NETWORK), NETWORK, pf.Marginals()
    else:
        frame = pl.DataFrame({"id": ["p"] * 800 + ["q"] * 400, "t": [*range(800), *range(400)], "s": [*"0122"] * 300})
        data, theta, query = pf.read_sequences(frame, "s", subject="id", time="t", max_gap=1), THREE, pf.Histogram()
    bound = pf.LeakagePropagation(theta, data.length, **unit)
    ledger = pf.Ledger(bound, 20.0, base=data)
    release = pf.release(data, query, bound.calibrate(query, 5.0), ledger=ledger)
    release.to_json(tmp_path / "r.json")
    assert pf.Release.from_json(tmp_path / "r.json") == release
    assert pf.verify(tmp_path / "r.json", ledger=ledger).proved


@pytest.mark.filterwarnings("ignore:The noise hides")
def test_a_release_that_tells_nothing_of_what_a_ledger_hides_is_written() -> None:
    """Whole series in which 0 and 1 are confused: how many records are one of both says nothing."""
    data, query = pf.read_sequences(pl.DataFrame({"s": [*"0120"] * 4}), "s"), pf.Count(["0", "1"])
    ledger = pf.Ledger(
        pf.LeakagePropagation(THREE, data.length, protect="subject", within=[("0", "1")]), 3.0, base=data
    )
    release = pf.release(data, query, ledger.calibrate(query, up_to=1.0), ledger=ledger)
    assert 0 < release.epsilon < 1e-4
    assert ledger.spent == 0
    assert pf.verify(release, ledger=ledger).holds


@pytest.mark.filterwarnings("ignore:The noise hides")
def test_a_fact_as_secret_leaves_records_their_names() -> None:
    law = pf.JointDistribution([["a", "a"], ["b", "a"], ["b", "b"]], [0.4, 0.3, 0.3], variables=["x", "w"])
    secrets = [(pf.Fact("x is b", lambda row: row["x"] == "b"), pf.Fact("x is a", lambda row: row["x"] == "a"))]
    query = pf.Subset(pf.Count("b"), ["x", "w"])
    noise = pf.Wasserstein(law, secrets=secrets).calibrate(query, 1.0)
    assert pf.verify(pf.release({"x": "a", "w": "a"}, query, noise)).holds


def test_noise_for_a_network_without_a_ledgers_columns_is_refused_in_its_words() -> None:
    cpts = NETWORK.cpts
    smaller = pf.BayesianNetwork({name: cpts[name] for name in ("a", "b")})
    rows = {"a": ["no", "yes"] * 20, "b": ["no", "no", "yes", "yes"] * 10, "c": ["low", "mid"] * 20}
    table = pf.read_rows(pl.DataFrame(rows), NETWORK)
    ledger = pf.Ledger(pf.LeakagePropagation(NETWORK, table.length, protect=["a", "b", "c"]), 9.0, base=table)
    part = pf.read_rows(pl.DataFrame(rows).select("a", "b"), smaller)
    noise = pf.LeakagePropagation(smaller, part.length).calibrate(pf.Marginals(), 1.0)
    with pytest.raises(pf.ReleaseRefused, match="calibrated for another network"):
        pf.release(part, pf.Marginals(), noise, ledger=ledger)
