"""Release and model files with one thing changed: whatever it is, one clear line; and what is true reads back."""

import copy
import itertools
import json
import math
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from ledgers import CHAIN, read
from pufferfish.errors import RecordError
from pufferfish.ledger import Ledger
from release_cases import end_searches_soon, releases

DATA = read([[70, 30], [40, 10]], steps=[120, 60], subject="id", time="minute", max_gap="10min", step="1min")
NETWORK = pf.BayesianNetwork(
    {"a": pf.CPT(["no", "yes"], [0.8, 0.2]), "b": pf.CPT(["no", "yes"], [[0.9, 0.1], [0.3, 0.7]], ["a"])}
)
ROWS = pf.read_rows(pl.DataFrame({"a": ["no", "yes"] * 20, "b": ["no", "no", "yes", "yes"] * 10}), NETWORK)


def of_chains(mechanism: Any, query: Any, theta: Any = CHAIN, **options: Any) -> pf.Release:
    return pf.release(DATA, query, mechanism(theta, DATA.length).calibrate(query, 1.0), **options)


def of_rows(query: Any, **options: Any) -> pf.Release:
    return pf.release(ROWS, query, pf.LeakagePropagation(NETWORK, ROWS.length).calibrate(query, 1.0), **options)


def in_a_ledger() -> pf.Release:
    ledger = Ledger(pf.LeakagePropagation(CHAIN, DATA.length), 2.0, base=DATA.base)
    return of_chains(pf.MQMExact, pf.Count("active"), ledger=ledger)


def of_cliques() -> pf.Release:
    flu = pf.Cliques([0.1, 0.15, 0.5, 0.15, 0.1], states=["healthy", "flu"])
    query = pf.Count("flu")
    return pf.release(["flu", "flu", "healthy", "flu"], query, pf.Wasserstein(flu).calibrate(query, 1.0))


def of_a_joint_law() -> pf.Release:
    joint = pf.JointDistribution([[0, 0], [1, 1], [1, 0]], [0.5, 0.3, 0.2])
    query = pf.Function(lambda row: sum(int(v) for v in row.values()), "total")
    return pf.release([1, 0], query, pf.ExactLaplace(joint).calibrate(query, 1.0))


def of_laws_of_a_user() -> pf.Release:
    laws = {"sick": {1: 0.25, 2: 0.75}, "healthy": {0: 0.5, 1: 0.5}}
    theta = pf.GivenLaws(laws, records=2, states=["healthy", "sick"], query=pf.Count("sick"))
    member = pf.Wasserstein(theta).calibrate(pf.Count("sick"), 1.0)
    return pf.release(["sick", "healthy"], pf.Count("sick"), member)


INTERVAL = pf.IntervalChain([[0.7, 0.1], [0.2, 0.5]], [[0.9, 0.3], [0.5, 0.8]], states=CHAIN.states)
BINARY = pf.BinaryChainInterval(0.4, 0.6, states=CHAIN.states)

THREE = pf.MarkovChain([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.02, 0.03, 0.95]], states=["low", "mid", "high"])


def of_the_best_noise(query: Any, **options: Any) -> pf.Release:
    table = pf.read_sequences(pl.DataFrame({"s": (["low"] * 8 + ["mid"] * 6 + ["high"] * 10) * 2}), "s")
    noise = pf.LeakagePropagation(THREE, table.length).calibrate(query, 1.0, noise="best")
    assert noise.strategy is not None
    return pf.release(table, query, noise, **options)


RELEASES: dict[str, Callable[[], pf.Release]] = {
    "histogram, made valid": lambda: of_chains(pf.LeakagePropagation, pf.Histogram(), postprocess="valid"),
    "count, made valid, in a ledger": in_a_ledger,
    "mean, clipped": lambda: of_chains(pf.MQMApprox, pf.Mean([0, 1.5]), postprocess="valid"),
    "marginals, made valid": lambda: of_rows(pf.Marginals(), postprocess="valid"),
    "marginal of a network": lambda: of_rows(pf.Marginals(["b"], relative=False)),
    "interval": lambda: of_chains(pf.MQMExact, pf.Count("active"), INTERVAL),
    "binary interval": lambda: of_chains(pf.MQMExact, pf.Count("active"), BINARY),
    "group privacy": lambda: of_chains(pf.GroupDP, pf.Histogram(relative=False)),
    "cliques": of_cliques,
    "joint law": of_a_joint_law,
    "laws of a user": of_laws_of_a_user,
    "best noise": lambda: of_the_best_noise(pf.Histogram(), postprocess="valid"),
    "quantiles": lambda: of_the_best_noise(pf.Quantiles([0.1, 0.5]), postprocess="valid"),
    "very much noise": lambda: pf.release(
        DATA, pf.Histogram(), pf.GroupDP(CHAIN, DATA.length).calibrate(pf.Histogram(), 1e-5), postprocess="valid"
    ),
}


@cache
def released(case: str) -> pf.Release:
    return RELEASES[case]()


def drawn(case: str, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the record of a release of a kind whose noise happened to be so that it fits."""
    return next(record for _ in range(1000) if fits(record := json.loads(RELEASES[case]().to_json())))


def leaves(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from leaves(value, (*path, key))


def changed(record: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> str:
    again = copy.deepcopy(record)
    inside = again
    for key in path[:-1]:
        inside = inside[key]
    change(inside, path[-1])
    return json.dumps(again)


def put(value: Any) -> Callable[[Any, Any], None]:
    return lambda inside, key: inside.__setitem__(key, value)


def by(factor: float) -> Callable[[Any, Any], None]:
    return lambda inside, key: inside.__setitem__(key, inside[key] * factor)


CHANGES: dict[str, Callable[[Any, Any], None]] = {
    "null": put(None), "true": put(True), "text": put("1"), "list": put([]), "dict": put({}), "negative": put(-1.5),
    "NaN": put(math.nan), "infinite": put(math.inf), "huge": put(1e300), "tiny": put(1e-320),
    "missing": lambda inside, key: inside.pop(key),
}  # fmt: skip
"""Other things in a field's place."""


def to(make: Callable[[Any], Any], *kinds: type) -> Callable[[Any, Any], None]:
    def change(inside: Any, key: Any) -> None:
        if type(inside[key]) in kinds:
            inside[key] = make(inside[key])

    return change


NEAR: dict[str, Callable[[Any, Any], None]] = {
    "one more": to(lambda v: v + 1, int, float), "double": to(lambda v: v * 2, int, float),
    "more": to(lambda v: v * 1.001, float), "less": to(lambda v: v * 0.999, float), "zero": to(lambda v: v * 0, int),
    "other": to(lambda v: v + "x", str), "shorter": to(lambda v: v[:-1], str, list),
    "twice": to(lambda v: v + v, list), "reversed": to(lambda v: v[::-1], list),
}  # fmt: skip
"""What is there, a little changed: nothing about it is wrong by itself."""

ANY = frozenset(CHANGES | NEAR)
LAW = {"tiny", "text", "missing", "more", "less", "double", "reversed", "twice", "other", "shorter"}

FREE: dict[str, Collection[str]] = {
    # what nobody can see from the record: when, by whom and from which file it was made, and what it warned of
    "warnings": ANY, "warnings.*": ANY, "created": ANY, "software": ANY, "software.*": ANY,
    "data.base.source": ANY, "data.base.state": ANY, "data.base.time": ANY, "data.rows.source": ANY,
    "data.rows.columns.*": ANY, "ledger.theta_origin": ANY, "ledger.previous": {"reversed"},
    "ledger.budget": {"one more", "double", "more", "less", "huge"}, "ledger.grows": {"true"},
    # another law is another model, and the proof is asked about it: pf.verify
    "theta.chains": LAW, "theta.chains.*": LAW, "theta.members": LAW, "theta.members.*": LAW,
    # the proof itself: which record decides, and what leaks at most, is computed again by pf.verify
    "mechanism.witness": ANY, "mechanism.leakage": {"less", "tiny", "zero"}, "calibration.settings": ANY,
    "promises.*.epsilon": ANY,
    # noise of another scale, or for other chains, is other noise, of which all else says what it is
    "calibration.records": {"one more", "double"}, "calibration.lengths.*": {"one more"},
    "noise.measurements": {"reversed"}, "data.records": {"one more"},
    "theta.states": {"reversed"},
    "theta.states.*": {"text", "other", "shorter"},
    # nothing was changed by it
    "postprocessing": {"null"},
    # possible values may be the nearest to other noisy ones too
    "noisy_values": {"reversed"}, "noisy_values.*": {"one more", "double", "more", "less", "negative", "tiny"},
    # of a function neither the labels nor the words are known
    "query.kind": ANY, "query.labels.*": {"text", "other", "shorter"}, "query.description": ANY,
}  # fmt: skip
"""What does not follow from anything else: these changes make another release that could be true."""

ONLY: dict[str, Callable[[pf.Release], bool]] = {
    "theta.states.*": lambda found: found.theta.kind == pf.GivenLaws.kind,
    "query.kind": lambda found: found.query.kind == "function",
    "query.labels.*": lambda found: found.query.kind == "function",
    "query.description": lambda found: found.query.kind == "function",
    "noisy_values": lambda found: found.postprocessing is not None,
    "noisy_values.*": lambda found: found.postprocessing is not None,
}
"""Where some of them are free."""


def is_free(place: tuple[Any, ...], name: str, found: pf.Release) -> bool:
    """Whether a change is one of those that make another release; those inside a law are listed at its top."""
    names = ["*" if isinstance(key, int) else key for key in place]
    whole = names[0] in ("theta", "calibration") or names[:2] == ["mechanism", "witness"]
    for length in range(len(names), 0 if whole else len(names) - 1, -1):
        for last in (names[length - 1], "*"):
            pattern = ".".join([*names[: length - 1], last])
            if pattern in FREE and ONLY.get(pattern, lambda _: True)(found):
                return name in FREE[pattern]
    return False


def reads(path: Path, reader: Callable[[Path], Any]) -> bool:
    """Whether a file is read, or is refused by anything but one clear line."""
    try:
        reader(path)
    except RecordError as error:
        return "\n" in str(error) or str(path) not in str(error)
    return True


def test_releases_of_every_kind_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    if not slow:
        end_searches_soon(monkeypatch)
    for case in RELEASES:
        found = released(case)
        found.to_json(tmp_path / "release.json", overwrite=True)
        assert pf.Release.from_json(tmp_path / "release.json") == found, case


@pytest.mark.slow
def test_every_release_that_is_written_is_read(tmp_path: Path) -> None:
    """Every mechanism, kind of model, query and reading, with and without post-processing."""
    path = tmp_path / "release.json"
    seen = 0
    for case, found in releases():
        found.to_json(path, overwrite=True)
        assert pf.Release.from_json(path) == found, case
        seen += 1
    assert seen > 80


@pytest.mark.parametrize("case", sorted({*RELEASES} - {"very much noise", "marginal of a network", "best noise"}))
def test_a_release_with_one_thing_changed(case: str, slow: bool, tmp_path: Path) -> None:
    path = tmp_path / "release.json"
    found = released(case)
    text = found.to_json(path)
    assert pf.Release.from_json(path) == found
    record = json.loads(text)
    path.write_text(json.dumps(record | {"extra": 1}))
    assert not reads(path, pf.Release.from_json)
    taken: list[Any] = []
    every = list((CHANGES | NEAR).items())
    ways = itertools.cycle([every] if slow else [every[i::10] for i in range(10)])
    for place in leaves(record):
        for name, change in next(ways):
            path.write_text(changed(record, place, change))
            same = json.loads(path.read_text()) == record
            if not same and reads(path, pf.Release.from_json) and not is_free(place, name, found):
                taken.append((place, name))
    assert not taken


def test_numbers_that_follow_from_others_are_computed_again(tmp_path: Path) -> None:
    """The changes that the audit made, and their like: each says what does not agree."""
    path = tmp_path / "release.json"
    record = drawn("histogram, made valid", lambda found: found["values"] != found["noisy_values"])
    counted = json.loads(released("marginals, made valid").to_json())
    booked = drawn("count, made valid, in a ledger", lambda found: found["noisy_values"][0] > 0)
    shifted = [v + 0.01 for v in record["values"]]
    cases: list[tuple[Any, tuple[Any, ...], Callable[[Any, Any], None], str]] = [
        (record, ("values",), put(shifted), r"values\[0\] is .* follows"),
        (record, ("noisy_values", 0), put(0.123456), "follows|whole numbers of units"),
        (record, ("postprocessing",), put(None), r"values\[0\] is .* follows"),
        (record, ("postprocessing", "totals", 0), by(2), r"totals\[0\] is 1.0"),
        (record, ("postprocessing", "totals", 0), put(-1.0), r"totals\[0\] is 1.0"),
        (record, ("postprocessing", "outputs", 0), put([0, 0]), r"outputs\[0\]\[1\] is 1"),
        (record, ("postprocessing", "outputs", 0), put([0, 7]), r"outputs\[0\]\[1\] is 1"),
        (booked, ("noisy_values", 0), by(0.5), "."),
        (record, ("noise", "scale"), put(1e22), "noise.scale is .* follows"),
        (record, ("noise", "unit"), put(1e-320), "noise.unit is .* follows"),
        (record, ("noise", "scale"), by(2), "noise.scale is .* follows"),
        (record, ("noise", "law"), put("uniform"), "valid"),
        (record, ("query", "lipschitz"), by(0.3), "."),
        (record, ("accuracy_95", "each"), by(0.5), "accuracy_95"),
        (record, ("accuracy_95", "alpha"), put(0.5), "accuracy_95"),
        (record, ("epsilon",), put(5.0), r"promise is .* e\^5"),
        (record, ("mechanism", "leakage"), put(-1.0), "leakage"),
        (record, ("mechanism", "name"), put("magic"), "mechanism"),
        (record, ("mechanism", "witness", "kind"), put("quilt"), "."),
        (record, ("mechanism", "witness", "kind"), put("magic"), "."),
        (record, ("mechanism", "witness", "theta"), put(3), "member of theta"),
        (record, ("theta", "chains", 0, "transition_matrix"), put([[0.9, 0.2], [0.4, 0.6]]), "sums to 1.1"),
        (record, ("theta", "chains", 0, "transition_matrix"), put([[1.0]]), "."),
        (record, ("theta", "kind"), put("magic"), "sequences are of chains"),
        (record, ("data", "records"), put(-5), "records"),
        (record, ("data", "subjects"), put(-5), "subjects"),
        (record, ("data", "base", "missing"), put("no"), "missing"),
        (record, ("data", "base", "step"), put("soon"), "length of time"),
        (record, ("data", "base"), lambda inside, key: inside[key].pop("gaps"), "lacks the field 'gaps'"),
        (record, ("data", "base"), lambda inside, key: inside[key].update(gapz=None), "unknown field 'gapz'"),
        (record, ("data", "base", "where"), put("activity == 'rest'"), "refers to the state column 'activity'"),
        (record, ("data", "base", "where"), put("a" + "<b<a" * 300), "has 600 comparisons"),
        (record, ("data", "base", "where"), put("a > " + "-" * 1500 + "1"), "nested more than 50 deep"),
        (counted, ("data", "rows", "where"), put("c > 1 or a == 'no'"), "refers to the node column 'a'"),
        (record, ("data", "base", "by"), put(["activity"]), "by names the state column 'activity'"),
        (record, ("data", "base", "by"), put(["hour(hour(t))"]), "expected a column"),
        (counted, ("data", "rows", "by"), put(["month(a)"]), "by names the node column 'a'"),
        (counted, ("data", "observed", "a"), put(-1), "a column has"),
        (counted, ("data", "observed", "a"), put(41), "a column has"),
        (booked, ("ledger", "spent"), put(3.0), "in the budget"),
        (booked, ("ledger", "entry"), put(0), "at least 1"),
        (booked, ("created",), put("yesterday"), "time"),
        (booked, ("created",), put("2026-01-31T12:00:00+00:00\0"), "time"),
        (record, ("query", "kind"), put("magic"), "query.kind is .histogram."),
        (record, ("query", "kind"), put("histogram-counts"), "query.kind is .histogram."),
        (record, ("query", "labels"), put(["here", "there"]), "labels"),
        (record, ("theta", "states"), put(["here", "there"]), "labels|states"),
        (booked, ("query", "labels"), put(["elsewhere"]), "labels"),
        (record, ("query", "divided_by"), by(2), "query.divided_by is 150"),
        (record, ("data", "records"), put(50), "as many records as is said"),
        (record, ("data", "longest_chain"), put(10**6), "longest chain is named"),
        (record, ("mechanism", "witness", "length"), put(10**6), "longest_chain"),
        (record, ("mechanism", "witness", "node"), put(10**6), "node"),
        (record, ("mechanism", "witness", "node"), put(-1), "node"),
        (record, ("mechanism", "witness", "node"), put("a"), "node"),
        (counted, ("mechanism", "witness", "node"), put(0), "node"),
        (counted, ("data", "longest_chain"), put(3), "longest|nodes"),
        (booked, ("ledger", "entry"), put(7), r"not_promised\[3\] is .* \(it is number 7\)"),
    ]
    for given, place, change, message in cases:
        path.write_text(changed(given, place, change))
        with pytest.raises(RecordError, match=message) as caught:
            pf.Release.from_json(path)
        assert "\n" not in str(caught.value)


def test_a_table_shorter_than_the_noise_is_for_keeps_its_own_total() -> None:
    query = pf.Histogram(relative=False)
    noise = pf.MQMExact(CHAIN, [300, 300]).calibrate(query, 1.0)
    found = pf.release(DATA, query, noise, postprocess="valid")
    assert sum(found.values) == pytest.approx(DATA.records)


def test_a_witness_names_the_nodes_of_a_network_and_laws_that_are_laws() -> None:
    query = pf.Marginals()
    assert pf.Wasserstein(NETWORK, ROWS.length).calibrate(query, 1.0).witness.node in NETWORK.nodes
    binary = pf.BinaryChainInterval(0.45, 0.55, states=CHAIN.states)
    start = pf.MQMApprox(binary, 50).calibrate(pf.Histogram(), 1.0).witness.nearest.initial_distribution
    assert start == "any"
    inside = pf.Wasserstein(CHAIN, 12).calibrate(pf.Window(pf.Count("active"), 3, 9), 1.0).witness
    assert inside.length == 12
    assert inside.node in range(3, 9)


def test_laws_of_other_models_are_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "release.json"
    for case, place, value in (
        ("cliques", ("theta", "members", 0, "laws", 0, 0), "9/10"),
        ("cliques", ("theta", "members", 0, "laws", 0, 0), "-1/10"),
        ("cliques", ("theta", "members", 0, "laws", 0, 0), "1/0"),
        ("joint law", ("theta", "members", 0, "probabilities", 0), "1e999999999"),
        ("joint law", ("theta", "members", 0, "rows", 0), ["0"]),
        ("laws of a user", ("theta", "members", 0, "laws"), "others"),
    ):
        path.write_text(changed(json.loads(released(case).to_json()), place, put(value)))
        assert not reads(path, pf.Release.from_json), (case, value)


def test_a_model_with_one_thing_changed(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    binned = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [0.5, 0.5], states=["<200", ">=200"])
    for model in (
        pf.Model(theta=binned, bins=(0.0, 200.0, 400.0), step="1min", fitted_on="ab" * 32 + ":"),
        pf.Model(theta=NETWORK),
        pf.Model(theta=INTERVAL, step="1h"),
        pf.Model(theta=BINARY),
    ):
        path.unlink(missing_ok=True)
        pf.write_model(model, path)
        record = json.loads(path.read_text())
        path.write_text(json.dumps(record | {"extra": 1}))
        assert not reads(path, pf.read_model)
        for place in leaves(record):
            for name, change in CHANGES.items():
                path.write_text(changed(record, place, change))
                took = reads(path, pf.read_model)
                same = json.loads(path.read_text()) == record
                other = "origin" in place or place[0] in (
                    "bins",
                    "step",
                    "fitted_on",
                    "checked",
                    "kind",
                    "chains",
                    "members",
                    "names",
                    "states",
                )
                assert not took or same or other, (place, name)


def test_how_a_model_reads_tables_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    binned = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["<200", ">=200"])
    pf.write_model(pf.Model(theta=binned, bins=(0.0, 200.0, 400.0), step="1min", fitted_on="ab" * 32 + ":"), path)
    record = json.loads(path.read_text())
    for change, message in (
        ({"bins": [0, 400, 200]}, "expected above the edge before it"),
        ({"bins": [200, 200, 200]}, "expected above the edge before it"),
        ({"bins": [0, 300, 400]}, "bins make the states <300, >=300, and those of theta are <200, >=200"),
        ({"bins": [0, 400]}, "expected at least 3"),
        ({"bins": []}, "expected at least 3"),
        ({"step": "soon"}, "step is 'soon', expected a length of time"),
        ({"step": "-1min"}, "step is"),
        ({"step": "0"}, "expected more than 0"),
        ({"step": "nan"}, "expected more than 0"),
        ({"step": ""}, "step is ''"),
        ({"fitted_on": "yesterday"}, "expected the fingerprint of a table"),
    ):
        path.write_text(json.dumps(record | change))
        with pytest.raises(RecordError, match=message) as caught:
            pf.read_model(path)
        assert "\n" not in str(caught.value)


def test_projection_onto_a_total_that_large_values_would_swallow() -> None:
    from pufferfish.release import project_to_simplex

    assert project_to_simplex(np.array([1e18, -1e18, 3.0]), 1.0).tolist() == [1.0, 0.0, 0.0]
    assert project_to_simplex(np.array([3.0, 5.0]), 0.0).tolist() == [0.0, 0.0]
    assert project_to_simplex(np.array([-1e308, 1e308, -1e308, 1e308]), 1.0).tolist() == [0.0, 0.5, 0.0, 0.5]


@pytest.mark.parametrize("epsilon", [1e308, 1.7976931348623157e308])
def test_an_epsilon_near_the_largest_number_ends_without_warnings(epsilon: float) -> None:
    """Warnings are errors in tests; an answer proves its leakage, and what has none is one clear line."""
    for theta in (CHAIN, pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], "any"), NETWORK):
        for mechanism in (pf.LeakagePropagation, pf.MQMExact, pf.GroupDP):
            try:
                bound = mechanism(theta, None if theta is NETWORK else 40)
                found = bound.calibrate(pf.Histogram(), epsilon)
            except (pf.NotApplicableError, pf.ParameterError):
                continue
            assert found.scale > 0
            assert 0 <= found.prove_leakage() <= epsilon


def test_what_no_release_can_say_is_refused(tmp_path: Path) -> None:
    record, path = json.loads(released("histogram, made valid").to_json()), tmp_path / "release.json"
    rewritten = ["Nothing is left out.", *record["not_promised"][1:]]
    for place, value in (
        (("mechanism", "longest_chain"), 10**30), (("mechanism", "longest_chain"), 2**60),
        (("data", "base", "where"), ""), (("data", "base", "where"), " "), (("data", "base", "max_gap"), ""),
        (("assumptions",), [*record["assumptions"], "Nobody can be found out."]),
        (("assumptions",), [*record["assumptions"], record["assumptions"][-1]]),
        (("not_promised",), rewritten), (("not_promised",), record["not_promised"][:-1]),
    ):  # fmt: skip
        path.write_text(changed(record, place, put(value)))
        with pytest.raises(RecordError):
            pf.Release.from_json(path)
    path.write_text(json.dumps(record))
    pf.Release.from_json(path)
