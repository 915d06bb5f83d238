"""Quantiles of numbers in bins: values with intervals that hold, and a refusal where they would say nothing."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import run

EDGES = [40, 54, 70, 90, 110, 125, 140, 160, 180, 250, 400]
SHARES = (0.1, 0.5, 0.9)


def series(people: int, records: int, seed: int) -> pl.DataFrame:
    """Return values like those of glucose sensors: each person's own level, slow returns to it, meals."""
    rng = np.random.default_rng(seed)
    level = rng.normal(120, 15, people)
    values, noise = np.empty((records, people)), rng.normal(0, 14, (records, people))
    now = level
    for t in range(records):
        now = level + 0.93 * (now - level) + noise[t] + 18 * (t % 96 in (30, 50, 76))
        values[t] = np.clip(now, 30, 450)
    names = np.tile([f"p{i}" for i in range(people)], records)
    return pl.DataFrame({"who": names, "time": np.repeat(np.arange(records), people), "glucose": values.ravel()})


READING = {"subject": "who", "time": "time", "max_gap": 1, "bins": EDGES}


@pytest.fixture(scope="module")
def theta() -> pf.MarkovChain:
    return pf.fit_chain(pf.read_sequences(series(10, 400, 1), "glucose", **READING))


@pytest.mark.slow
def test_intervals_hold_the_exact_quantile_and_the_mean_is_as_near_as_stated(theta: pf.MarkovChain, slow: bool) -> None:
    """Bins and clamping included: the exact numbers are those of the values themselves, clamped to the edges."""
    table = series(5, 200, 2)
    data = pf.read_sequences(table, "glucose", **READING)
    bound = pf.LeakagePropagation(theta, length=data.length)
    exact = np.clip(table["glucose"].to_numpy(), EDGES[0], EDGES[-1])
    at = [float(np.quantile(exact, share, method="inverted_cdf")) for share in SHARES]
    noise = bound.calibrate(pf.Quantiles(SHARES), 4.0, noise="best")
    values = pf.query("mean", pf.Model(theta=theta, bins=EDGES))
    of_mean = bound.calibrate(values, 4.0)
    within, near, runs = 0, 0, 2000 if slow else 40
    for _ in range(runs):
        found = pf.release(data, pf.Quantiles(SHARES), noise).quantiles
        within += all(q.between[0] <= x <= q.between[1] for q, x in zip(found, at, strict=True))
        assert all(q.between[0] <= q.value <= q.between[1] for q in found)
        mean = pf.release(data, values, of_mean)
        near += abs(float(mean.value[0]) - exact.mean()) <= mean.accuracy_95.each + 75  # half of the widest bin
    assert within >= (0.94 if slow else 0.8) * runs
    assert near >= (0.94 if slow else 0.8) * runs


def test_a_value_is_where_the_share_is_reached(theta: pf.MarkovChain, tmp_path: Path) -> None:
    """With so little noise that none is drawn the value is that of straight lines between the edges."""
    data = pf.read_sequences(series(5, 200, 2), "glucose", **READING)
    exact = pf.release(data, pf.Quantiles(SHARES), pf.GroupDP(theta, data.length).calibrate(pf.Quantiles(SHARES), 1e9))
    cumulated = np.array([0.0, *exact.noisy_values, 1.0])
    for found in exact.quantiles or ():
        assert found.value == pytest.approx(np.interp(found.share, cumulated, EDGES))
        low, high = found.between or (0, 0)
        assert low <= (found.value or 0) <= high
        assert {low, high} <= set(EDGES)
    frame = exact.to_frame()
    assert frame.columns == ["quantile", "value", "low_95", "high_95"]
    assert frame["value"].to_list() == [found.value for found in exact.quantiles or ()]
    assert f"quantile 0.5: {frame['value'][1]:.4g} (95%: " in str(exact)
    exact.to_json(tmp_path / "release.json")
    assert pf.Release.from_json(tmp_path / "release.json").quantiles == exact.quantiles


def test_quantiles_that_would_say_nothing_are_refused(tmp_path: Path, theta: pf.MarkovChain) -> None:
    pf.write_model(pf.Model(theta=theta, bins=EDGES), tmp_path / "model.json")
    series(5, 200, 2).write_csv(tmp_path / "table.csv")
    asked = ["--state", "glucose", "--subject", "who", "--time", "time", "--max-gap", 1]
    asked += ["--model", tmp_path / "model.json", "--query", "quantiles:.1,.9", "--output", tmp_path / "release.json"]
    release = ["release", tmp_path / "table.csv", *asked]
    refused = run(*release, "--epsilon", 1.5)
    assert refused.exit_code == 2
    last = refused.stderr.splitlines()[-1]
    assert last.startswith("error: with 10 bins the interval of a quantile would span ")
    assert "Nothing is spent: take about" in last
    assert not (tmp_path / "release.json").exists()
    assert run(*release, "--epsilon", 1.5, "--accept", "noise").exit_code == 0
    assert run(*release, "--epsilon", 8, "--overwrite").exit_code == 0
