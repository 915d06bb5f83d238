"""Measurements of OpenDP on correlated records: their true loss by enumeration, the ledger, and what is refused."""

import itertools
import json
import math
import warnings

import numpy as np
import pytest

import opendp_parts as dp
import pufferfish as pf
from enumeration import exact_stationary
from pufferfish.errors import BudgetExceeded, ParameterError, RecordError, ReleaseRefused
from pufferfish.release.record import any_release_in
from pufferfish.theta.record import Checking

dp.enable_features("contrib", "honest-but-curious")
STATES = ["rest", "walk"]
T = 5


def chain(p, q):
    return pf.MarkovChain([[1 - p, p], [q, 1 - q]], states=STATES)


def law_of_mode(records, loss):
    """The exponential mechanism on the most frequent state: not a count with noise."""
    scores = np.array([records.count(state) for state in STATES]) * loss / 2
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def mode(size, loss, metric=None):
    def pick(records):
        return str(np.random.default_rng().choice(STATES, p=law_of_mode(records, loss)))

    return dp.m.make_user_measurement(
        dp.vector_domain(dp.atom_domain(T=str), size=size),
        metric or dp.change_one_distance(),
        dp.max_divergence(),
        pick,
        lambda d: d * loss,
    )


def true_loss(model, loss):
    """The largest log ratio of output probabilities given two values of a record, over all databases."""
    p = np.array(model.transition_matrix)
    start = [float(v) for v in exact_stationary(p)]
    joint, outputs = [], []
    for database in itertools.product(range(2), repeat=T):
        steps = itertools.pairwise(database)
        joint.append(start[database[0]] * math.prod(p[a, b] for a, b in steps))
        outputs.append(law_of_mode([STATES[x] for x in database], loss))
    databases, joint, outputs = (
        np.array(list(itertools.product(range(2), repeat=T))),
        np.array(joint),
        np.array(outputs),
    )
    worst = 0.0
    for i in range(T):
        given = [
            joint[databases[:, i] == x] @ outputs[databases[:, i] == x] / joint[databases[:, i] == x].sum()
            for x in (0, 1)
        ]
        worst = max(worst, float(np.abs(np.log(given[0] / given[1])).max()))
    return worst


def test_the_true_loss_is_never_above_epsilon_and_above_what_plain_privacy_says():
    exceeded = 0
    for p, q, epsilon in itertools.product((0.05, 0.2, 0.5, 0.9), (0.1, 0.4), (0.3, 2.0)):
        model = chain(p, q)
        bound = pf.LeakagePropagation(model, length=T)
        loss = bound.record_epsilon(epsilon)
        records = ["rest", "walk", "walk", "rest", "rest"]
        found = pf.release_measurement(records, mode(T, loss), bound, epsilon)
        assert found.value in STATES
        assert found.record_loss == loss
        true = true_loss(model, loss)
        assert true <= found.leakage <= epsilon
        exceeded += true > loss * 1.05
        if p + q != 1:  # a little more loss than is allowed
            with pytest.raises(ReleaseRefused, match=r"above .*: build it for a loss of at most"):
                pf.release_measurement(records, mode(T, loss * 1.01), bound, epsilon)
    assert exceeded >= 5


def test_a_record_replaced_is_two_steps_of_the_symmetric_distance():
    model = chain(0.2, 0.3)
    bound = pf.LeakagePropagation(model, length=T)
    loss = bound.record_epsilon(1.0)
    for metric, times in ((dp.symmetric_distance(), 2), (dp.insert_delete_distance(), 2), (dp.hamming_distance(), 1)):
        found = pf.release_measurement(["rest"] * T, mode(T, loss / 2, metric), bound, 1.0)
        assert found.record_loss == times * (loss / 2)


def test_it_is_booked_written_and_read(tmp_path):
    model = chain(0.2, 0.3)
    bound = pf.LeakagePropagation(model, length=40)
    ledger = pf.Ledger(bound, budget=1.0)
    loss = bound.record_epsilon(0.6)
    numbers = {"rest": 0, "walk": 1}
    space = dp.vector_domain(dp.atom_domain(bounds=(0, 1)), size=40), dp.symmetric_distance()
    noisy = dp.t.make_sum(*space) >> dp.m.then_laplace(scale=1.0001 / loss)
    found = pf.release_measurement(
        ["rest", "walk"] * 20, noisy, bound, 0.6, values=numbers, ledger=ledger, note="how often somebody walked"
    )
    assert isinstance(found.value, int)
    assert ledger.spent == pytest.approx(0.6, rel=1e-3)
    assert ledger.entries[0].what == "how often somebody walked"
    with pytest.raises(BudgetExceeded):
        pf.release_measurement(["rest"] * 40, noisy, bound, 0.6, values=numbers, ledger=ledger)
    assert len(ledger.entries) == 1
    path = tmp_path / "count.json"
    found.to_json(path)
    assert pf.MeasurementRelease.from_json(path) == found
    assert found.ledger is not None
    assert found.ledger.previous == ledger.entries[0].previous
    (tmp_path / "other.json").write_text(json.dumps(json.loads(path.read_text()) | {"value": -1}))
    assert pf.verify_together([path, found]).holds is None
    assert (
        f"other.json (entry 1) and {path} (entry 1) follow" in pf.verify_together([tmp_path / "other.json", path]).says
    )
    other = pf.Ledger(bound, budget=1.0)
    other.spend(loss, note=ledger.entries[0].what)
    with pytest.raises(RecordError, match="does not hold: entry 1 of the ledger is another"):
        found.report(tmp_path / "page.html", ledger=other)
    with pytest.raises(RecordError, match="name another file"):
        found.to_json(path)
    edits = {
        "record_loss": found.record_loss * 1.5,
        "epsilon": 0.5,
        "leakage": 0.3,
        "promise": found.promise.replace("0.6", "0.1"),
        "created": "yesterday",
        "length": [[39, 40]],
        "mechanism": "wasserstein",
        "version": 7,
    }
    for name, value in edits.items():
        (tmp_path / "edited.json").write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
        with pytest.raises(RecordError):
            pf.MeasurementRelease.from_json(tmp_path / "edited.json")
    strongly = json.loads(path.read_text())
    strongly["theta"]["chains"][0]["transition_matrix"] = [[0.99, 0.01], [0.01, 0.99]]
    (tmp_path / "edited.json").write_text(json.dumps(strongly))
    with pytest.raises(RecordError, match="leaks"):
        pf.MeasurementRelease.from_json(tmp_path / "edited.json")


def test_what_a_file_cannot_hold_is_said(tmp_path):
    bound = pf.LeakagePropagation(chain(0.2, 0.3), length=T)
    space = dp.vector_domain(dp.atom_domain(T=str), size=T), dp.change_one_distance(), dp.max_divergence()
    for value, kept in (
        (np.float64(0.5), 0.5),
        (np.array([1, 2]), [1, 2]),
        (math.nan, None),
        ([1.0, {"of": (math.inf,)}], None),
    ):
        constant = dp.m.make_user_measurement(*space, lambda records, v=value: v, lambda d: 0.0)
        found = pf.release_measurement(["rest"] * T, constant, bound, 1.0)
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
        if kept is None:
            with pytest.raises(RecordError, match="NaN or an infinite number"):
                found.to_json(path)
            assert not path.exists()
        else:
            assert found.value == kept
            found.to_json(path)
            assert pf.MeasurementRelease.from_json(path) == found


def test_what_is_refused_spends_nothing():
    model = chain(0.2, 0.3)
    bound = pf.LeakagePropagation(model, length=T)
    ledger = pf.Ledger(bound, budget=1.0)
    records = ["rest"] * T
    good = mode(T, bound.record_epsilon(1.0))
    approximate = dp.m.make_user_measurement(
        dp.vector_domain(dp.atom_domain(T=str), size=T),
        dp.change_one_distance(),
        dp.zero_concentrated_divergence(),
        lambda records: "rest",
        lambda d: 0.1 * d,
    )
    on_numbers = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int), size=T), dp.l1_distance(T=int), scale=9.0)
    other = pf.LeakagePropagation(chain(0.2, 0.4), length=T)
    cases = [
        (records, approximate, bound, {}, ReleaseRefused, "expected MaxDivergence"),
        (records, on_numbers, bound, {}, ReleaseRefused, "expected one between datasets"),
        (records[1:], good, bound, {}, ReleaseRefused, "there are 4 records"),
        (["run"] * T, good, bound, {}, ReleaseRefused, "5 of the 5 records are not states"),
        (records, good, bound, {"values": {"rest": "rest"}}, ParameterError, "has no value for the state 'walk'"),
        (records, good, bound, {"values": {"rest": 1, "walk": 2}}, ReleaseRefused, "does not take the 5 records"),
        (records, len, bound, {}, ParameterError, "expected an OpenDP measurement"),
        (records, good, other, {"ledger": ledger}, ReleaseRefused, "another Θ"),
        (records, good, pf.Wasserstein(model, T), {}, ParameterError, "expected a mechanism that composes"),
        (records, good, bound, {"note": 3}, ParameterError, "expected text"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning of OpenDP would quote the records
        for given, measurement, by, more, error, words in cases:
            with pytest.raises(error, match=words):
                pf.release_measurement(given, measurement, by, 1.0, **({"ledger": ledger} | more))
    assert ledger.entries == ()


EDITS = {
    "loss lowered": ("record_loss", lambda v: v / 2),
    "loss raised": ("record_loss", lambda v: v * 2),
    "leakage lowered": ("leakage", lambda v: v * 0.9),
    "leakage raised": ("leakage", lambda v: min(1.0, v * 1.2)),
    "leakage that is no number": ("leakage", lambda v: None),
    "ε lowered": ("epsilon", lambda v: v / 2),
    "ε raised": ("epsilon", lambda v: v * 2),
    "promise": ("promise", lambda v: v.replace("any one record", "any record of Alice")),
    "what is not promised": ("not_promised", lambda v: v[1:]),
    "assumption": ("assumptions", lambda v: [v[0].replace("The distribution", "Surely the distribution"), v[1]]),
    "an assumption fewer": ("assumptions", lambda v: v[:1]),
    "mechanism": ("mechanism", lambda v: "group-dp"),
    "no mechanism": ("mechanism", lambda v: "magic"),
    "settings": ("settings", lambda v: v | {"max_quilt_length": 3}),
    "length": ("length", lambda v: [[2 * n, 2 * m] for n, m in v]),
    "origin of Θ": ("theta", lambda v: v | {"origin": "a census"}),
    "states of Θ": ("theta", lambda v: v | {"states": v["states"][:1]}),
    "time": ("created", lambda v: "yesterday"),
    "time and a NUL": ("created", lambda v: v + "\0"),
    "version": ("version", lambda v: v + 1),
    "format": ("format", lambda v: "pufferfish-release"),
    "a field more": ("checked", lambda v: True),
    "value": ("value", lambda v: "nowhere"),
    "what was measured": ("measurement", lambda v: "another"),
    "version of numpy": ("software", lambda v: v | {"numpy": "1.0"}),
}
"""One thing at a time that may be changed by hand."""

NO_PROOF = {"value", "what was measured", "version of numpy"}
"""What nobody can check from the record: what came out, of what, and with which programs."""


def test_a_record_edited_by_hand_is_refused(tmp_path):
    bound, path = pf.LeakagePropagation(chain(0.2, 0.3), T), tmp_path / "m.json"
    release = pf.release_measurement(["rest"] * T, mode(T, bound.record_epsilon(0.9)), bound, 1.0)
    record, taken = json.loads(release.to_json()), set()
    for name, (field, edit) in EDITS.items():
        path.write_text(json.dumps(record | {field: edit(record.get(field))}))
        try:
            pf.MeasurementRelease.from_json(path)
        except RecordError:
            continue
        taken.add(name)
    assert taken == NO_PROOF


def test_a_measurement_is_known_in_whichever_order_its_fields_stand(tmp_path):
    """``show`` and ``report`` would else take one file for two things."""
    bound, path = pf.LeakagePropagation(chain(0.2, 0.3), T), tmp_path / "m.json"
    release = pf.release_measurement(["rest"] * T, mode(T, bound.record_epsilon(0.9)), bound, 1.0)
    path.write_text(json.dumps(dict(reversed(json.loads(release.to_json()).items()))))
    assert any_release_in(path.read_bytes(), "m.json").measurement == release.measurement


def test_a_check_by_releases_names_a_measurement_that_it_cannot_compare():
    theta = pf.MarkovChain(0.7 * np.eye(3) + 0.1, states=["0", "1", "2"])
    bound, loss = pf.LeakagePropagation(theta, T), 0.2
    released = pf.release_measurement([str(t % 3) for t in range(T)], mode(T, loss), bound, bound.leakage(loss) + 1e-9)
    told = str(pf.check_released(theta, [released]))
    assert f"not compared: {released.measurement}: it is of a measurement" in told
    assert "MeasurementRelease(" not in told


def test_a_measurement_says_what_its_bound_hides():
    """A bound on near values, or on stretches, proves that alone; and a ledger of records says so."""
    states = ["0", "1", "2"]
    theta = pf.MarkovChain(0.7 * np.eye(3) + 0.1, states=states)
    records = [states[t % 3] for t in range(T)]
    near = pf.LeakagePropagation(theta, T, within=[("0", "1")])
    loss = 0.2
    released = pf.release_measurement(records, mode(T, loss), near, near.leakage(loss) + 1e-9)
    assert "pairs that are named (0 or 1)" in released.promise
    assert any("near values" in sentence for sentence in released.not_promised)
    hour = pf.LeakagePropagation(theta, T, protect=3)
    book = pf.Ledger(pf.LeakagePropagation(theta, T), 3.0)
    released = pf.release_measurement(records, mode(T, loss), hour, 2.0, ledger=book)
    assert "any stretch of 3 steps in a row" in released.promise
    assert "this one leaks, of any one record" in released.not_promised[-1]
    forged = json.loads(released.to_json())
    forged["settings"]["protect"] = 5
    assert not any_verifies(forged)


def any_verifies(record):
    try:
        return pf.verify(any_release_in(json.dumps(record).encode(), "r.json")).holds
    except RecordError:
        return False


def test_a_condemned_model_is_refused_here_too():
    checked = Checking(word="do not go on", date="2026-11-27", source="other.csv")
    bound = pf.LeakagePropagation(pf.Model(theta=chain(0.1, 0.2), checked=checked), T)
    measurement = mode(T, bound.record_epsilon(1.0))
    with pytest.raises(ReleaseRefused, match="do not go on"):
        pf.release_measurement(["rest"] * T, measurement, bound, 1.0)
    assert pf.release_measurement(["rest"] * T, measurement, bound, 1.0, accept="model").checked == checked
