"""Releases: what they hold, what they refuse, and that they read back."""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import pufferfish as pf
from pufferfish.data import Base
from pufferfish.errors import DataError, ParameterError, RecordError, ReleaseRefused
from pufferfish.release import project_to_simplex

Make = Callable[..., pf.Sequences]

QUERIES = [
    pf.Histogram(),
    pf.Histogram(relative=False),
    pf.Count("active"),
    pf.Frequency("active"),
    pf.Sum({"rest": 0, "active": 1.5}),
    pf.Mean([0, 1]),
]


def released(make: Make, chain: pf.MarkovChain, query: object = None, **options: object) -> pf.Release:
    data = make([[70, 30], [40, 10]])
    query = query or pf.Histogram()
    calibration = pf.MQMExact(chain, data.length).calibrate(query, 1.0)
    return pf.release(data, query, calibration, **options)


@pytest.mark.parametrize("largest", [1e19, 1e100])
def test_values_in_units_beyond_64_bits_are_released(
    sequences_of: Make, two_states: pf.MarkovChain, largest: float
) -> None:
    found = released(sequences_of, two_states, pf.Sum({"rest": 0, "active": largest}))
    assert found.noise.unit == largest
    assert found.noisy_values[0] / largest == pytest.approx(round(found.noisy_values[0] / largest))


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.kind)
def test_release_is_noisy_around_the_exact_value_on_its_grid(
    sequences_of: Make, two_states: pf.MarkovChain, query: object
) -> None:
    exact = {
        "histogram": [110 / 150, 40 / 150],
        "histogram-counts": [110, 40],
        "count": [40],
        "frequency": [40 / 150],
        "sum": [60],
        "mean": [40 / 150],
    }[query.kind]
    data = sequences_of([[70, 30], [40, 10]])
    calibration = pf.MQMExact(two_states, data.length).calibrate(query, 1.0)
    found = [pf.release(data, query, calibration) for _ in range(60)]
    errors = np.array([r.value - exact for r in found])
    steps = errors / found[0].noise.unit
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
    assert len(np.unique(errors)) > 5
    # The mean of 60 has a standard deviation of √2·b/√60 = 0.18 b, and nothing else is there to move it.
    assert np.all(np.abs(errors.mean(axis=0)) < 1.2 * found[0].scale)
    assert np.all(np.abs(errors).mean(axis=0) > 0.2 * found[0].scale)


def test_the_exact_value_is_nowhere_in_the_release(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    data = sequences_of([[123_457, 34_567]])
    query = pf.Histogram(relative=False)
    found = pf.release(data, query, pf.MQMExact(two_states, data.length).calibrate(query, 1e-4), postprocess="valid")

    numbers: list[float] = []

    def collect(value: object) -> None:
        if isinstance(value, dict):
            [collect(v) for v in value.values()]
        elif isinstance(value, list | tuple):
            [collect(v) for v in value]
        elif isinstance(value, int | float):
            numbers.append(float(value))

    collect(found.to_dict())
    assert len(numbers) > 20
    for secret in (123_457, 34_567, 123_457 / 158_024, 34_567 / 158_024):
        assert all(abs(secret - number) > 1e-9 for number in numbers), secret
    assert "123457" not in found.to_json()
    assert "123,457" not in repr(data) + repr(found)


def test_a_release_reads_back_as_it_was(sequences_of: Make, two_states: pf.MarkovChain, tmp_path: Path) -> None:
    for postprocess in (None, "valid"):
        found = released(sequences_of, two_states, postprocess=postprocess)
        path = tmp_path / f"{postprocess}.json"
        text = found.to_json(path)
        assert path.read_text() == text
        with pytest.raises(
            pf.errors.RecordError,
            match="name another file, or give overwrite=True to replace the file",
        ):
            released(sequences_of, two_states).to_json(path)
        assert path.read_text() == text
        assert found.to_json(path, overwrite=True) == text
        assert pf.Release.from_json(path) == found
        assert json.loads(text)["epsilon"] == 1.0
        assert found.to_dict()["mechanism"]["witness"]["node"] is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=99), "version 99"),
        (lambda d: d.update(format="something"), "not a pufferfish-release file"),
        (lambda d: d.pop("epsilon"), "not a valid pufferfish-release file"),
        (lambda d: d.update(epsilon="1"), "not a valid pufferfish-release file"),
        (lambda d: d.update(extra=1), "unknown field"),
        (lambda d: d["values"].pop(), "values is .* which follows"),
        (lambda d: d.update(epsilon=-1.0), "epsilon is positive"),
        (lambda d: d["noise"].update(scale=0.0), "noise.scale is .* which follows"),
        (lambda d: d["mechanism"].update(leakage=1.5), "leakage is at most epsilon"),
        (lambda d: d["theta"].update(chains=[]), "theta is empty"),
    ],
)
def test_a_changed_release_is_refused(
    sequences_of: Make, two_states: pf.MarkovChain, tmp_path: Path, change: Callable[[dict], object], message: str
) -> None:
    record = released(sequences_of, two_states).to_dict()
    change(record)
    path = tmp_path / "release.json"
    path.write_bytes(msgspec.json.encode(record))
    with pytest.raises(RecordError, match=message):
        pf.Release.from_json(path)


def test_a_cut_short_release_is_refused(sequences_of: Make, two_states: pf.MarkovChain, tmp_path: Path) -> None:
    path = tmp_path / "release.json"
    text = released(sequences_of, two_states).to_json()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(RecordError, match="damaged or incomplete"):
        pf.Release.from_json(path)
    with pytest.raises(RecordError, match="cannot read"):
        pf.Release.from_json(tmp_path / "absent.json")


def test_noise_for_another_query_is_refused(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    data = sequences_of([[7, 3]])
    calibration = pf.GroupDP(two_states, data.length).calibrate(pf.Count("active"), 1.0)
    with pytest.raises(ReleaseRefused, match="calibrated for"):
        pf.release(data, pf.Histogram(relative=False), calibration)


def test_noise_for_another_number_of_records_is_refused(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    calibration = pf.GroupDP(two_states, 1000).calibrate(pf.Frequency("active"), 1.0)
    with pytest.raises(ReleaseRefused, match=r"share of the 1,000 records .* for 10 records"):
        pf.release(sequences_of([[7, 3]]), pf.Frequency("active"), calibration)


def test_noise_for_shorter_chains_is_refused(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    calibration = pf.GroupDP(two_states, [6, 6]).calibrate(pf.Count("active"), 1.0)
    with pytest.raises(ReleaseRefused, match="chain of 10 steps"):
        pf.release(sequences_of([[7, 3]]), pf.Count("active"), calibration)
    # Shorter chains than calibrated for are covered.
    assert pf.release(sequences_of([[3, 1]]), pf.Count("active"), calibration).epsilon == 1.0


def test_states_the_model_lacks_are_refused_with_counts(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    data = sequences_of([[7, 3, 2]], states=("rest", "active", "sleep"))
    calibration = pf.GroupDP(two_states, data.length).calibrate(pf.Histogram(relative=False), 1.0)
    with pytest.raises(DataError, match=r"'sleep' \(2 rows\).*rest, active"):
        pf.release(data, pf.Histogram(relative=False), calibration)


def test_states_are_matched_by_name_not_by_place(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    data = sequences_of([[1000, 0]], states=("active", "rest"))
    query = pf.Count("active")
    calibration = pf.EntryDP(pf.MarkovChain([[0.5, 0.5]] * 2, states=["rest", "active"]), data.length).calibrate(
        query, 5.0
    )
    assert abs(pf.release(data, query, calibration).value[0] - 1000) < 100


def test_post_processing_makes_a_valid_histogram_and_says_so(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    for _ in range(6):
        found = released(sequences_of, two_states, postprocess="valid")
        assert found.value.min() >= 0
        assert math.isclose(found.value.sum(), 1, abs_tol=1e-12)
        assert "non-negative" in str(found.postprocessing)
        np.testing.assert_allclose(found.value, project_to_simplex(np.array(found.noisy_values)), atol=1e-12)
        count = released(sequences_of, two_states, pf.Count("active"), postprocess="valid")
        assert 0 <= count.value[0] <= 150
    assert released(sequences_of, two_states).postprocessing is None
    with pytest.raises(ParameterError, match="postprocess"):
        released(sequences_of, two_states, postprocess="magic")


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.floats(0.1, 10))
def test_projection_is_the_nearest_point_of_the_simplex(values: list[float], total: float) -> None:
    given_ = np.array(values)
    found = project_to_simplex(given_, total)
    assert found.min() >= 0
    assert math.isclose(found.sum(), total, rel_tol=1e-9)
    # Optimality: moving mass from any positive coordinate to any other does not come nearer.
    pull = given_ - found
    assert all(pull[i] >= pull.max() - 1e-9 for i in np.flatnonzero(found > 1e-12))


def test_accuracy_is_that_of_the_discrete_noise(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    found = released(sequences_of, two_states, pf.Histogram(relative=False))
    p = math.exp(-1 / found.scale)

    def tail(t: float) -> float:
        return 2 * p ** (round(t) + 1) / (1 + p)

    for alpha in (0.5, 0.05, 1e-6):
        each, joint = found.accuracy(alpha), found.accuracy(alpha, joint=True)
        assert tail(each) <= alpha < tail(each - 1)
        assert 1 - (1 - tail(joint)) ** 2 <= alpha * (1 + 1e-9) < 1 - (1 - tail(joint - 1)) ** 2
    assert found.accuracy_95.each == found.accuracy(0.05)
    with pytest.raises(ParameterError, match="alpha"):
        found.accuracy(0.0)


def test_the_record_says_what_is_promised(sequences_of: Make) -> None:
    theta = pf.ChainClass((pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"]),), "survey of 2019")
    data = sequences_of([[70, 30]])
    calibration = pf.MQMExact(theta, data.length).calibrate(pf.Histogram(), 1.0)
    found = pf.release(data, pf.Histogram(), calibration, warnings=("read me",))
    assert "e^1 ≈ 2.718" in found.promise
    assert any("survey of 2019" in text for text in found.assumptions)
    assert found.warnings[0] == "read me"
    assert all(text.startswith("The noise hides nearly all") for text in found.warnings[1:])
    assert found.theta.chains[0].transition_matrix == [[0.9, 0.1], [0.4, 0.6]]
    assert set(found.software) == {"pufferfish-privacy", "opendp", "narwhals", "numpy", "python"}


@pytest.mark.parametrize("kind", [".png", ".svg", ".pdf"])
def test_plot_is_written(sequences_of: Make, two_states: pf.MarkovChain, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"picture{kind}"
    figure = released(sequences_of, two_states, postprocess="valid").plot(path)
    assert path.stat().st_size > 1000
    axes = figure.axes[0]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["rest", "active"]
    assert len(axes.patches) == 2


def test_labels_of_thousands_of_letters_are_cut(tmp_path: Path) -> None:
    """Wide letters too, which left no room for the bars; warnings are errors here."""
    for letter in ("x", "語", "\n"):
        states, nodes = ([letter * 3000 + end for end in "12"] for _ in range(2))
        first, second = (
            pf.CPT(states, table, above) for table, above in (([0.5, 0.5], []), ([[0.5, 0.5]] * 2, nodes[:1]))
        )
        network = pf.BayesianNetwork({nodes[0]: first, nodes[1]: second})
        rows = pf.read_rows(pl.DataFrame({node: states * 10 for node in nodes}), network)
        noise = pf.LeakagePropagation(network, rows.length).calibrate(pf.Marginals(), 1.0)
        figure = pf.release(rows, pf.Marginals(), noise).plot(tmp_path / "picture.png")
        shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        assert len(shown) == 4
        assert all(len(label) <= 48 and label[-1] in "12" for label in shown)
        wide, high = figure.get_size_inches()  # a line more where the noise made a value weak
        assert wide == 7.2
        assert 3.6 < high < 3.9


def test_plot_refuses_a_name_it_cannot_draw(sequences_of: Make, two_states: pf.MarkovChain, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"\.png"):
        released(sequences_of, two_states).plot(tmp_path / "picture.xyz")
    assert not list(tmp_path.iterdir())


def test_a_changed_calibration_is_proved_again(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    data, query = sequences_of([[70, 30]]), pf.Count("active")
    calibration = pf.MQMExact(two_states, data.length).calibrate(query, 1.0)
    assert pf.release(data, query, calibration).mechanism.leakage <= 1.0
    for change in ({"unit_scale": 1e-3}, {"unit_scale": 0.99 * calibration.unit_scale}, {"epsilon": 0.001}):
        with pytest.raises(ReleaseRefused, match="proves a leakage"):
            pf.release(data, query, replace(calibration, **change))


def test_numbers_that_stand_for_a_class_are_not_released_under(sequences_of: Make) -> None:
    data, query = sequences_of([[70, 30]], states=("0", "1")), pf.Count("1")
    numbers_only = pf.MQMApprox(pi_min=0.2, eigengap=0.5, length=100).calibrate(query, 1.0)
    with pytest.raises(ReleaseRefused, match="pi_min and eigengap alone"):
        pf.release(data, query, numbers_only)


def test_mixing_numbers_that_theta_does_not_have_are_refused() -> None:
    sticky = pf.MarkovChain([[0.99, 0.01], [0.01, 0.99]])
    for numbers in ({"pi_min": 0.6}, {"eigengap": 2.0}, {"pi_min": 0.5, "eigengap": 1.5}):
        with pytest.raises(ParameterError, match="at most"):
            pf.MQMApprox(sticky, 1000, **numbers)
    looser = pf.MQMApprox(sticky, 1000, eigengap=0.01).calibrate(pf.Count(1), 1.0)
    assert looser.scale > pf.MQMApprox(sticky, 1000).calibrate(pf.Count(1), 1.0).scale


def sequences_read(**base: object) -> pf.Sequences:
    return pf.Sequences(
        states=("rest", "active"),
        counts=np.array([[7, 3]]),
        transitions=np.zeros((2, 2), dtype=np.int64),
        length=(pf.ChainLength(20, 10),),
        subjects=1,
        base=Base(source="by hand", state="state", **base),
    )


def test_participants_are_not_protected_by_their_segments() -> None:
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    query = pf.Count("active")
    for gaps, allowed in (("unobserved", True), ("independent", False)):
        data = sequences_read(gaps=gaps)
        calibration = pf.ParticipantDP(data.length, theta=chain).calibrate(query, 1.0)
        if allowed:
            assert pf.release(data, query, calibration).mechanism.name == "participant-dp"
        else:
            with pytest.raises(ReleaseRefused, match="each participant"):
                pf.release(data, query, calibration)


@pytest.mark.parametrize("reading", [{"where": "awake"}, {"missing": "split"}, {"gaps": "independent"}], ids=str)
def test_a_given_first_law_needs_the_first_record(reading: dict[str, str]) -> None:
    """MATH: with a point-mass start and the first rows left out, the clock of the chain would start too late."""
    query = pf.Count("active")
    for start, allowed in (([1.0, 0.0], False), ("any", True), ("stationary", True)):
        chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], start, states=["rest", "active"])
        plain, data = sequences_read(), sequences_read(**reading)
        calibration = pf.MQMExact(chain, data.length).calibrate(query, 1.0)
        assert pf.release(plain, query, calibration).epsilon == 1.0
        if allowed:
            assert pf.release(data, query, calibration).epsilon == 1.0
        else:
            with pytest.raises(ReleaseRefused, match="may not be the first of the chain"):
                pf.release(data, query, calibration)


def test_many_short_chains_stand_in_the_record(two_states: pf.MarkovChain, sequences_of: Make) -> None:
    data = sequences_of([[1, 1]] * 30)
    calibration = pf.MQMExact(two_states, data.length).calibrate(pf.Count("active"), 1.0)
    assert pf.release(data, pf.Count("active"), calibration).warnings == list(data.warnings)
    assert "30 subjects (column 'subject'), half of them with at most 2 records" in data.warnings[0]
    groups = pf.ExactLaplace(pf.Cliques([[0.4, 0.2, 0.4]] * 30, states=["rest", "active"]))
    assert pf.release(data, pf.Count("active"), groups.calibrate(pf.Count("active"), 1.0)).warnings == []


def test_no_chain_may_mix_the_steps_of_one_calibrated_chain_with_the_records_of_another() -> None:
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    query, data = pf.Count("active"), sequences_read()  # 20 steps, 10 records
    mixed = [pf.ChainLength(steps=40, records=1), pf.ChainLength(steps=10, records=10)]
    with pytest.raises(ReleaseRefused, match="not calibrated for a chain of this length"):
        pf.release(data, query, pf.MQMExact(chain, mixed).calibrate(query, 1.0))
    covered = [*mixed, pf.ChainLength(steps=21, records=10)]
    assert pf.release(data, query, pf.MQMExact(chain, covered).calibrate(query, 1.0)).epsilon == 1.0


def test_what_a_changed_calibration_says_of_itself_is_not_written(
    sequences_of: Make, two_states: pf.MarkovChain
) -> None:
    data, query = sequences_of([[70, 30]]), pf.Histogram()
    true = pf.MQMExact(two_states, data.length).calibrate(query, 1.0)
    linear = replace(true.linear, labels=("active", "rest"), description="a lie")
    found = pf.release(
        data, query, replace(true, linear=linear, witness=msgspec.structs.replace(true.witness, node=999))
    )
    assert found.query.labels == ["rest", "active"]
    assert found.query.description == true.linear.description
    assert found.mechanism.witness.node != 999

    class Nothing:
        name, title, composes, theta, length = "mqm-exact", "MQMExact", True, true.theta, true.length

        def prove(self, record_loss: object) -> tuple[float, object]:
            return 0.0, true.witness

    with pytest.raises(ReleaseRefused, match="not a mechanism"):
        pf.release(data, query, replace(true, bound=Nothing(), unit_scale=1e-3))


def test_a_picture_that_fails_leaves_the_old_one(
    sequences_of: Make, two_states: pf.MarkovChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.png"
    found = released(sequences_of, two_states)
    found.plot(path)
    old = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(RecordError, match="No space left"):
        found.plot(path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["old.png"]


def test_a_path_is_no_ledger(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    data = sequences_of([[2, 2]])
    calibration = pf.GroupDP(two_states, length=data.length).calibrate(pf.Histogram(), 1.0)
    with pytest.raises(pf.ParameterError, match=r"ledger is 'book.json', expected a Ledger"):
        pf.release(data, pf.Histogram(), calibration, ledger="book.json")  # type: ignore[arg-type]


def test_what_is_no_path_is_refused(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    """A number would be taken for a file that is open."""
    found = released(sequences_of, two_states)
    model = pf.Model(theta=two_states)
    for path in (5, True, 1.5, object(), pf.Model, [], {}):
        for call in (
            pf.read_model,
            lambda path: pf.write_model(model, path),
            found.to_json,
            found.plot,
            pf.Release.from_json,
            pf.Ledger.open,
            pf.BayesianNetwork.from_bif,
        ):
            with pytest.raises(pf.PufferfishError, match="the path of a file is") as error:
                call(path)
            assert "\n" not in str(error.value)


def test_a_record_that_no_reader_would_take_costs_nothing(
    sequences_of: Make, two_states: pf.MarkovChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = sequences_of([[7, 3]])
    bound = pf.LeakagePropagation(two_states, length=data.length)
    ledger, calibration = pf.Ledger(bound, budget=2.0), bound.calibrate(pf.Histogram(), 1.0)
    monkeypatch.setattr(sys.modules["pufferfish.release.check"], "differences", lambda _: iter([("", "two is two")]))
    with pytest.raises(pf.ReleaseRefused, match=r"expected that two is two.*please report this"):
        pf.release(data, pf.Histogram(), calibration, ledger=ledger)
    assert ledger.spent == 0
    monkeypatch.undo()
    with pytest.raises(pf.ReleaseRefused, match="no text that UTF-8 can write"):
        pf.release(data, pf.Histogram(), calibration, ledger=ledger, warnings=("\ud800",))
    assert ledger.spent == 0


class OwnBound(pf.LeakagePropagation):
    """A bound that no file can name."""

    name = "own"


def test_what_would_not_be_read_again_is_refused_before_it_is_spent(
    sequences_of: Make, two_states: pf.MarkovChain
) -> None:
    data = sequences_of([[700, 300]])
    bound = pf.LeakagePropagation(two_states, length=data.length)
    ledger, calibration = pf.Ledger(bound, budget=2.0), bound.calibrate(pf.Histogram(), 1.0)
    given: list[Any] = ["one sentence", (1,), 5, None, [b"bytes"], [("a",)], {"a": 1}]
    for warnings in given:
        with pytest.raises(pf.ParameterError, match=r"^warnings .*expected sentences"):
            pf.release(data, pf.Histogram(), calibration, ledger=ledger, warnings=warnings)
    odd: Any = replace(data, base=replace(data.base, source=5))
    with pytest.raises(pf.ReleaseRefused, match=r"Expected `str`, got `int` - at `\$.data.base.source`"):
        pf.release(odd, pf.Histogram(), calibration, ledger=ledger)
    own = pf.Ledger(OwnBound(two_states, length=data.length), budget=2.0)
    with pytest.raises(pf.ReleaseRefused, match="the ledger's mechanism is one of this program's"):
        pf.release(data, pf.Histogram(), calibration, ledger=own)
    assert ledger.spent == own.spent == 0
    kept = pf.release(data, pf.Histogram(), calibration, ledger=ledger, warnings=["a", "b"])
    assert kept.warnings == ["a", "b"]


def test_the_content_of_a_file_is_no_path(sequences_of: Make, two_states: pf.MarkovChain) -> None:
    with pytest.raises(pf.RecordError, match=r"is what such a file holds, expected the file's name"):
        pf.Release.from_json(released(sequences_of, two_states).to_json())
