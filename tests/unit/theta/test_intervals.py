"""Intervals from data, in files, on the command line, in releases and ledgers."""

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import optimize, special, stats

import pufferfish as pf
from commands import refused, run
from paper.audit.laws import some_laws
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, RecordError
from pufferfish.fit.chain import proportion_bounds

THETA = pf.IntervalChain([[0.85, 0.05], [0.3, 0.5]], [[0.95, 0.15], [0.5, 0.7]], states=["rest", "active"], origin="x")
TWO = pf.BinaryChainInterval(0.3, 0.7, initial_distribution="stationary", states=("rest", "active"), origin="y")
READING = ["--state", "state", "--subject", "id", "--time", "minute", "--max-gap", "1"]


def walk(rng: np.random.Generator, p: np.ndarray, length: int) -> list[int]:
    states, ahead = [int(rng.integers(len(p)))], p.cumsum(axis=1)
    for u in rng.random(length - 1):
        states.append(min(int(np.searchsorted(ahead[states[-1]], u)), len(p) - 1))
    return states


def sequences_of(states: list[int], k: int) -> pf.Sequences:
    frame = pl.DataFrame({"state": [str(x) for x in states]})
    return pf.read_sequences(frame, state="state", states=[str(x) for x in range(k)])


# bounds from data


@pytest.mark.parametrize(("s", "n"), [(0, 1), (0, 50), (1, 2), (7, 7), (30, 100), (3, 100000), (10**7, 3 * 10**7)])
@pytest.mark.parametrize("miss", [0.05, 1e-4])
def test_bounds_on_a_proportion_are_the_ends_of_the_set(s: int, n: int, miss: float) -> None:
    def excess(p: float) -> float:
        """Logarithm of the martingale, over 1/miss, by scipy."""
        return float(
            special.betaln(s + 0.5, n - s + 0.5)
            - math.log(math.pi)
            - special.xlogy(s, p)
            - special.xlog1py(n - s, -p)
            + math.log(miss)
        )

    low, high = proportion_bounds(s, n, miss)
    assert low <= s / n <= high
    for end, inside in ((low, s / n), (high, s / n)):
        if end in (0.0, 1.0):
            assert s in (0, n)
            continue
        exact = optimize.brentq(
            excess,
            end * (1 - 1e-3) if end < inside else inside,
            inside if end < inside else min(1 - 1e-12, end * (1 + 1e-3)),
            xtol=1e-15,
            rtol=1e-12,
        )
        assert abs(end - exact) <= 1e-7 * exact
        assert excess(end) >= -1e-9  # rounded outwards


def test_bounds_on_a_proportion_hold_whenever_one_stops() -> None:
    rng, miss, runs, steps, p = np.random.default_rng(5), 0.2, 400, 150, 0.3
    ours = cache(lambda s, n: proportion_bounds(s, n, miss))
    left_out, fixed = 0, 0
    for _ in range(runs):
        successes = np.cumsum(rng.random(steps) < p)
        pairs = [(int(s), n) for n, s in enumerate(successes, start=1)]
        left_out += any(not ours(*pair)[0] <= p <= ours(*pair)[1] for pair in pairs)
        n = np.arange(1, steps + 1)
        low = np.where(successes > 0, stats.beta.ppf(miss / 2, successes, n - successes + 1), 0)
        high = np.where(successes < n, stats.beta.ppf(1 - miss / 2, successes + 1, n - successes), 1)
        fixed += bool(np.any((p < low) | (p > high)))
    assert left_out <= miss * runs
    assert fixed > miss * runs  # the control: Clopper and Pearson's do not hold at a random number


def test_a_fitted_interval_holds_the_matrix_as_often_as_it_says(slow: bool) -> None:
    p, rng, runs = (
        np.array([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.0, 0.5, 0.5]]),
        np.random.default_rng(7),
        200 if slow else 60,
    )
    held = narrow = 0
    for _ in range(runs):
        theta = pf.fit_interval(sequences_of(walk(rng, p, 400), 3), confidence=0.8)
        middle, half = (theta.lower + theta.upper) / 2, (theta.upper - theta.lower) / 2
        held += bool(np.all((theta.lower <= p) & (p <= theta.upper)))
        narrow += bool(np.all(np.abs(p - middle) <= 0.4 * half + 1e-12))
    assert held >= 0.8 * runs
    assert narrow < 0.8 * runs  # the control


def test_fitted_intervals_of_two_states_share_two_bounds() -> None:
    data = sequences_of(walk(np.random.default_rng(1), np.array([[0.9, 0.1], [0.2, 0.8]]), 3000), 2)
    theta = pf.fit_interval(data, confidence=0.95)
    for x in (0, 1):
        low, high = proportion_bounds(int(data.transitions[x, 0]), int(data.transitions[x].sum()), 0.025)
        assert theta.lower[x, 0] == pytest.approx(low, rel=1e-12)
        assert theta.upper[x, 0] == pytest.approx(high, rel=1e-12)
        assert theta.upper[x, 1] == pytest.approx(1 - low, rel=1e-12)
    assert "95% confidence, from 2,999 transitions" in theta.origin
    assert "public" in theta.origin
    wider = pf.fit_interval(data, confidence=0.999)
    assert np.all(wider.lower <= theta.lower)
    assert np.all(wider.upper >= theta.upper)


def test_a_state_never_left_has_no_bounds_and_gaps_are_no_transitions() -> None:
    frame = pl.DataFrame({"state": list("abab"), "minute": [0, 1, 5, 6]})
    data = pf.read_sequences(frame, state="state", time="minute", max_gap=1, states=["a", "b", "c"])
    assert int(data.transitions.sum()) == 2
    theta = pf.fit_interval(data)
    assert np.array_equal(theta.lower[1:], np.zeros((2, 3)))
    assert np.array_equal(theta.upper[1:], np.ones((2, 3)))
    lonely = replace(data, transitions=np.zeros((3, 3), dtype=np.int64))
    with pytest.raises(ModelError, match="no transition to count"):
        pf.fit_interval(lonely)
    for confidence in (0, 1, -1, math.nan, True):
        with pytest.raises(ParameterError, match="confidence is"):
            pf.fit_interval(data, confidence=confidence)


# mechanisms


def test_mechanisms_that_need_more_say_what() -> None:
    for refuses in (pf.MQMApprox, pf.EntryDP):
        with pytest.raises(NotApplicableError, match="the matrix may change at every step"):
            refuses(THETA, 10)
    coin = pf.IntervalChain([[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]])
    for bound in (pf.MQMExact, pf.LeakagePropagation):
        assert bound(coin, 100).leakage(0.5) == 0.5
    with pytest.raises(NotApplicableError, match="a list of MarkovChain"):
        pf.robustness(THETA, THETA, 10)
    rows = {row.mechanism: row for row in pf.compare(THETA, pf.Histogram(), 1.0, length=500)}
    assert rows["propagation"].scale < rows["mqm-exact"].scale < rows["group-dp"].scale
    assert rows["propagation"].lower_bound <= rows["propagation"].scale
    assert rows["propagation"].over_lower_bound < 2
    assert "one transition matrix" in rows["wasserstein"].reason


def test_some_members_are_members() -> None:
    for theta in (THETA, pf.IntervalChain(np.zeros((3, 3)), np.ones((3, 3)))):
        for chain in theta.some_members:
            assert np.all(theta.lower - 1e-12 <= chain.transition_matrix)
            assert np.all(chain.transition_matrix <= theta.upper + 1e-12)
        for _, steps in some_laws(theta, 4):
            for matrix in steps:
                assert np.all((theta.lower - 1e-12 <= matrix) & (matrix <= theta.upper + 1e-12))
                assert matrix.sum(axis=1) == pytest.approx(1, abs=1e-15)
    assert THETA.some_members[1].transition_matrix == pytest.approx(np.array([[0.95, 0.05], [0.3, 0.7]]))


# files


@pytest.mark.parametrize("theta", [THETA, TWO], ids=["interval", "binary"])
def test_model_files_hold_intervals(tmp_path: Path, theta: Any) -> None:
    path = tmp_path / "model.json"
    pf.write_model(pf.Model(theta=theta, bins=None, step="1min"), path)
    model = pf.read_model(path)
    assert model.theta == theta
    assert (model.theta.origin, model.step) == (theta.origin, "1min")
    again = tmp_path / "again.json"
    pf.write_model(model, again)
    assert again.read_bytes() == path.read_bytes()


def test_what_is_read_again_is_the_same_class(tmp_path: Path) -> None:
    for seed in range(50):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(7), size=7)
        width = rng.choice([0.0, 1e-16, 1e-3])
        theta = pf.IntervalChain(np.maximum(p - width, 0), np.minimum(p + width, 1))
        assert pf.IntervalChain(theta.lower, theta.upper) == theta


@pytest.mark.parametrize("theta", [THETA, TWO], ids=["interval", "binary"])
def test_bounds_in_files_are_checked(tmp_path: Path, theta: Any) -> None:
    path = tmp_path / "model.json"
    pf.write_model(pf.Model(theta=theta), path)
    good = json.loads(path.read_text())

    def spoilt(says: str, **changes: Any) -> None:
        path.write_text(json.dumps(good | changes))
        with pytest.raises(RecordError, match=says):
            pf.read_model(path)

    member = good["members"][0]
    spoilt("one member", members=[])
    spoilt("one member", members=[member, member])
    spoilt("one member", chains=[{"transition_matrix": [[1.0]], "initial_distribution": "any"}])
    spoilt("unknown field", members=[member | {"more": 1}])
    spoilt("states", states=["a"])
    if theta is THETA:
        spoilt("missing required field", members=[{"lower": member["lower"]}])
        spoilt("cross", members=[{"lower": member["upper"], "upper": member["lower"]}])
        spoilt("Expected", members=[{"lower": 1, "upper": member["lower"]}])
    else:
        spoilt("expected 1e-09 ≤ low", members=[member | {"low": 0.9}])
        spoilt("Invalid enum", members=[member | {"initial_distribution": "other"}])


# the command line, releases and ledgers


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return _table(tmp_path / "private.csv", 3)


@pytest.fixture
def public(tmp_path: Path) -> Path:
    return _table(tmp_path / "public.csv", 4)


def _table(path: Path, seed: int) -> Path:
    states = walk(np.random.default_rng(seed), np.array([[0.8, 0.2], [0.3, 0.7]]), 900)
    lines = [f"S{n // 300},{n % 300},{['rest', 'active'][state]}" for n, state in enumerate(states)]
    path.write_text("\n".join(["id,minute,state", *lines]) + "\n")
    return path


@pytest.mark.slow
def test_fit_compare_release_and_ledger(tmp_path: Path, public: Path, table: Path) -> None:
    model, output, ledger = tmp_path / "model.json", tmp_path / "release.json", tmp_path / "ledger.json"
    fitted = run("fit", public, *READING, "--confidence", 0.95, "--output", model)
    assert fitted.exit_code == 0, fitted.output
    assert "bounds on the transitions between 2 states from 897 transitions" in fitted.stdout
    assert "half widths from 0.0" in fitted.stdout
    origin = json.loads(model.read_text())["origin"]
    for words in ("public data", "public.csv", "95% confidence", "897 transitions"):
        assert words in origin
    compared = run("compare", model, "--length", 300, "--query", "histogram", "--epsilon", 1)
    assert compared.exit_code == 0, compared.output
    assert "EntryDP, GK16, MQMApprox, Wasserstein, ExactLaplace: it needs one" in compared.stdout
    for mechanism in ("propagation", "mqm-exact", "group-dp"):
        result = run(
            "release", table, *READING, "--model", model, "--mechanism", mechanism, "--query", "count:active",
            "--epsilon", 2, "--output", output, "--overwrite",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        release = pf.Release.from_json(output)
        assert release.theta.theta() == pf.read_model(model).theta
        assert "the state of one subject at one time" in release.promise
        assert release.theta.kind == "Markov chains in intervals"
    made = run("ledger", "create", ledger, "--table", table, *READING, "--model", model, "--budget", 3)
    assert made.exit_code == 0, made.output
    charged = ["--ledger", ledger, "--output", tmp_path / "charged.json"]
    spent = run("release", table, *READING, "--model", model, "--query", "count:active", "--epsilon", 1, *charged)
    assert spent.exit_code == 0, spent.output
    assert pf.Ledger.open(ledger).spent <= 1


def test_fit_refuses_what_bounds_do_not_need(tmp_path: Path, public: Path) -> None:
    fit = ["fit", public, *READING, "--output", tmp_path / "m.json", "--confidence"]
    refused(*fit, 0.95, "--initial", "stationary", says=["--confidence", "--initial stationary"])
    refused(*fit, 0.95, "--smoothing", 1, says=["--confidence", "--smoothing"])
    refused(*fit, 1, says=["--confidence is 1"])
    assert not (tmp_path / "m.json").exists()
    assert run(*fit, 0.95, "--initial", "any").exit_code == 0


def test_robustness_refuses_intervals_on_the_command_line(tmp_path: Path) -> None:
    pf.write_model(pf.Model(theta=THETA), tmp_path / "m.json")
    path = tmp_path / "m.json"
    refused(
        "robustness", path, path, "--length", 10, says=["Markov chains in intervals", "lists of Markov chains only"]
    )


def test_a_ledger_of_intervals_is_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    ledger = pf.Ledger(pf.LeakagePropagation(THETA, 200), 2.0)
    ledger.save(path)
    ledger.spend(pf.LeakagePropagation(THETA, 200).calibrate(pf.Count("active"), 0.5))
    again = pf.Ledger.open(path)
    assert again.bound.theta == THETA
    assert again.spent == ledger.spent == pytest.approx(0.5, rel=1e-3)
    binary = pf.Ledger(pf.GroupDP(TWO, 20), 2.0)
    binary.save(tmp_path / "binary.json")
    assert pf.Ledger.open(tmp_path / "binary.json").bound.theta == TWO
    quilts = pf.Ledger(pf.MQMExact(THETA, 200), 2.0)
    quilts.spend(quilts.calibrate(pf.Count("active"), up_to=1.0))
    assert quilts.spent <= 1.0
    window = quilts.calibrate(pf.Count("active"), up_to=1.5, length=50, window=(100, 150))
    quilts.spend(window, window=(100, 150))
    assert quilts.spent <= 1.5


def test_bounds_that_are_tight_stay_what_they_are() -> None:
    """So that a class which is written and read again is the same, to the last digit."""
    rng = np.random.default_rng(5)
    made = 0
    for _ in range(400):
        k = int(rng.integers(2, 6))
        inside = np.round(rng.dirichlet(np.ones(k), k), 2)
        lower = np.clip(np.round(inside - rng.choice([0, 0.1, 0.5], (k, k)), 2), 0, 1)
        upper = np.clip(np.round(inside + rng.choice([0, 0.1, 0.5], (k, k)), 2), 0, 1)
        try:
            theta = pf.IntervalChain(lower, upper)
        except ModelError:  # rounding left a row no law
            continue
        again = pf.IntervalChain(theta.lower, theta.upper)
        assert np.array_equal(again.lower, theta.lower)
        assert np.array_equal(again.upper, theta.upper)
        made += 1
    assert made > 100
