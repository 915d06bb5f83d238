"""Releases of transitions and of changes of state, and what follows from them."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import pufferfish as pf
from pufferfish.release.steps import nearest_balanced

STATES = ["rest", "walk", "run"]
P = np.array([[0.95, 0.04, 0.01], [0.1, 0.85, 0.05], [0.02, 0.08, 0.9]])
CHAIN = pf.MarkovChain(P, states=STATES)


def series(length: int, seed: int = 0) -> list[str]:
    rng, found = np.random.default_rng(seed), [0]
    for _ in range(length - 1):
        found.append(int(rng.choice(3, p=P[found[-1]])))
    return [STATES[x] for x in found]


def counted(states: list[str]) -> np.ndarray[Any, Any]:
    table = np.zeros((3, 3))
    for a, b in pairwise(states):
        table[STATES.index(a), STATES.index(b)] += 1
    return table


def released(data: pf.Sequences, query: Any, epsilon: float = 1.0, **options: Any) -> pf.Release:
    bound = pf.LeakagePropagation(CHAIN, length=data.length)
    return pf.release(data, query, bound.calibrate(query, epsilon), **options)


ONE = series(20_001)
DATA = pf.read_sequences(pl.DataFrame({"state": ONE}), "state")


@pytest.mark.parametrize("relative", [False, True])
def test_a_release_is_the_counts_with_noise_and_is_read_again(tmp_path: Path, relative: bool) -> None:
    """At a very large ε, where noise is 0; labels, order of states and units are the model's."""
    one = ONE[:151]
    data, unit = pf.read_sequences(pl.DataFrame({"state": one}), "state"), 1 / len(one) if relative else 1.0
    for query, exact in (
        (pf.Transitions(relative), counted(one).ravel()),
        (pf.Switches(relative), [sum(a != b for a, b in pairwise(one))]),
        *([] if relative else [(pf.Bouts(STATES[1:]), [sum(a == STATES[0] != b for a, b in pairwise(one))])]),
    ):
        for postprocess in (None, "valid"):
            found = released(data, query, 5000.0, postprocess=postprocess)
            assert np.allclose(found.value, np.array(exact) * unit)
            assert found.data.steps == 150
            assert list(found.query.labels) == list(query.bind(STATES, 1).labels)
            found.to_json(tmp_path / "release.json", overwrite=True)
            assert pf.Release.from_json(tmp_path / "release.json") == found
    listed = pf.LeakagePropagation(CHAIN, length=len(one)).calibrate(pf.Transitions(), 5000.0)
    assert pf.release(one, pf.Transitions(), listed).value.tolist() == counted(one).ravel().tolist()


def test_no_step_leads_across_a_gap_or_from_one_subject_to_the_next() -> None:
    table = pl.DataFrame(
        {
            "who": ["x"] * 5 + ["y"] * 2 + ["z"],
            "t": [0, 1, 2, 9, 10, 0, 1, 5],
            "state": ["rest", "walk", None, "run", "run", "rest", "rest", "walk"],
        }
    )
    data = pf.read_sequences(table, "state", subject="who", time="t", max_gap="1")
    found = released(data, pf.Transitions(), 5000.0)
    expected = counted(["rest", "walk"]) + counted(["run", "run"]) + counted(["rest", "rest"])
    assert found.value.reshape(3, 3).tolist() == expected.tolist()
    assert found.data.steps == 3


def test_what_was_changed_in_a_record_is_noticed(tmp_path: Path) -> None:
    record = json.loads(released(DATA, pf.Transitions(), postprocess="valid").to_json())
    counts = json.loads(released(DATA, pf.Histogram(), postprocess="valid").to_json())
    path = tmp_path / "release.json"

    def change(of: dict[str, Any], *place: Any, to: Any) -> str:
        changed = json.loads(json.dumps(of))
        part = changed
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = to
        return json.dumps(changed)

    for text in (
        change(record, "data", "steps", to=20_001),
        change(record, "data", "steps", to=None),
        change(record, "data", "steps", to=19_999),  # the total it was projected to
        change(counts, "data", "steps", to=20_000),
        change(record, "query", "labels", 1, to="rest → run"),
        change(record, "query", "kind", to="switches"),
        change(record, "query", "kind", to="weighted transitions"),
        change(record, "query", "lipschitz", to=2.0),
    ):
        path.write_text(text)
        with pytest.raises(pf.RecordError):
            pf.Release.from_json(path)


def test_the_nearest_balanced_table() -> None:
    """Its total, its balance, no negative count; and nearest, by what tells a minimum of a convex function."""
    rng = np.random.default_rng(0)
    for k in (1, 2, 3, 7, 20):
        for spread in (0.5, 20.0, 3000.0):
            counts, total = rng.normal(30, spread, (k, k)), float(30 * k * k)
            found = nearest_balanced(counts, total)
            assert found.min() >= 0
            assert found.sum() == pytest.approx(total)
            assert np.allclose(found.sum(axis=0), found.sum(axis=1), atol=1e-6 * total)
            for _ in range(20):  # no other such table is in the half-space that would make it nearer
                other = rng.random((k, k)) * (rng.random((k, k)) < 0.5) + 1e-3
                other = other + other.T
                other *= total / other.sum()
                assert np.sum((counts - found) * (other - found)) <= 1e-5 * total * max(spread, 1.0) * k


def test_what_follows_costs_nothing_and_agrees() -> None:
    found = released(DATA, pf.Transitions(), 20.0)
    exact = counted(ONE)
    shares, chain, lasting = found.histogram(), found.chain(), found.dwell_times()
    assert list(shares) == list(lasting) == STATES == list(chain.states)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert np.allclose(list(shares.values()), exact.sum(axis=0) / exact.sum(), atol=0.03)
    assert np.allclose(list(shares.values()), chain.stationary_distribution, atol=1e-3)
    assert np.allclose(chain.transition_matrix, P, atol=0.05)
    assert chain.transition_matrix.min() > 0
    for x, state in enumerate(STATES):
        assert lasting[state] == pytest.approx(1 / (1 - chain.transition_matrix[x, x]))
    assert found.switches() == pytest.approx(exact.sum() - np.trace(exact), abs=50 * found.scale)
    assert released(DATA, pf.Switches()).switches() == pytest.approx(exact.sum() - np.trace(exact), abs=700)
    assert found.histogram() == shares  # nothing is drawn anew
    # from noise that leaves hardly anything, what follows is possible all the same
    poor = released(DATA, pf.Transitions(relative=True), 0.001)
    assert 0 <= poor.switches() <= 20_000
    assert min(poor.histogram().values()) >= 0
    assert poor.chain().is_irreducible


def test_synthetic_series_have_the_released_frequencies() -> None:
    """Within the accuracy that the release states, and what a series of that length varies by itself."""
    found, length = released(DATA, pf.Transitions()), 200_000
    drawn = found.synthetic(length, seed=1)
    frequencies = counted(drawn) / (length - 1)
    said = found.accuracy(1e-6, joint=True) / 20_000
    assert np.max(np.abs(frequencies - counted(ONE) / 20_000)) <= said + 0.01
    assert drawn == found.synthetic(length, seed=1) != found.synthetic(length, seed=2)
    several = found.synthetic(5, 3)
    assert [len(each) for each in several] == [5, 5, 5]
    assert found.synthetic(1, 1) in [[[state]] for state in STATES]
    assert found.synthetic(50) != found.synthetic(50)  # no seed, no repetition: 2^-50 and less
    for wrong in ({"length": 0}, {"length": 2.5}, {"length": 5, "series": 0}, {"length": 5, "seed": -1}):
        with pytest.raises(pf.ParameterError, match="expected a whole number"):
            found.synthetic(**wrong)  # type: ignore[arg-type]
    with pytest.raises(pf.ParameterError, match="ask for fewer"):
        found.synthetic(10**9)


def test_what_does_not_follow_is_refused() -> None:
    other = released(DATA, pf.Histogram())
    for follow in (other.histogram, other.chain, other.dwell_times, other.switches, lambda: other.synthetic(5)):
        with pytest.raises(pf.QueryError, match="follows from a release of transitions"):
            follow()
    table = pl.DataFrame({"t": [0, 5], "state": ["rest", "walk"]})
    apart = pf.read_sequences(table, "state", time="t", max_gap="1", step="1")
    with pytest.raises(pf.QueryError, match="no two records that follow each other"):
        released(apart, pf.Transitions()).chain()


@pytest.mark.slow
def test_the_noise_has_the_law_that_is_said() -> None:
    """χ² of the noise of all outputs of many releases against its law, and a control that must fail."""
    short = pf.read_sequences(pl.DataFrame({"state": ONE[:300]}), "state")
    calibration = pf.LeakagePropagation(CHAIN, length=short.length).calibrate(pf.Transitions(), 8.0)
    exact = counted(ONE[:300]).ravel()
    draws = [pf.release(short, pf.Transitions(), calibration).value - exact for _ in range(150)]
    noise, scale = np.concatenate(draws).astype(int), calibration.unit_scale

    def p_value(scale: float) -> float:
        p, reach = np.exp(-1 / scale), int(3 * scale)  # at least 20 draws are expected on each side beyond
        inside = np.array([(1 - p) / (1 + p) * p ** abs(z) for z in range(-reach, reach + 1)])
        tail = p ** (reach + 1) / (1 + p)
        expected = np.concatenate([[tail], inside, [tail]]) * noise.size
        observed = np.bincount(np.clip(noise, -reach - 1, reach + 1) + reach + 1, minlength=expected.size)
        return float(stats.chisquare(observed, expected).pvalue)

    assert p_value(scale) > 1e-6
    assert p_value(scale / 2) < 1e-6


def test_a_picture_of_transitions(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for query in (pf.Transitions(), pf.Transitions(relative=True), pf.Switches()):
        released(DATA, query).plot(tmp_path / f"{query.kind}.svg")
    text = (tmp_path / "transitions.svg").read_text()
    assert "20,000 steps" in text


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 20.0])
def test_the_colours_of_transitions_are_named_on_a_scale_that_is_named(epsilon: float) -> None:
    pytest.importorskip("matplotlib")
    for query in (pf.Transitions(), pf.Transitions(relative=True)):
        figure = released(DATA, query, epsilon).plot()
        figure.canvas.draw()
        bar = figure.axes[1]
        assert bar.get_ylabel().endswith("(log scale)")
        low, high = bar.get_ylim()
        ticks = zip(bar.get_yticks(), bar.get_yticklabels(), strict=True)
        assert sum(low <= at <= high and bool(label.get_text()) for at, label in ticks) >= 3
