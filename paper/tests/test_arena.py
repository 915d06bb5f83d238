"""The arena: exact filters against all sequences, and a promise that is kept where it is made."""

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from paper.experiments import DataSets, Settings
from paper.experiments.arena import ARENA
from paper.experiments.arena_records import power_records
from paper.experiments.attacks import alone, learned, log_noise, of_record, of_stretch
from paper.experiments.datasets import ActivityTable, PowerTable
from paper.experiments.running import run
from pufferfish.errors import DataError

THREE = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
TWO = np.array([[0.9, 0.1], [0.4, 0.6]])


def weight(matrix: np.ndarray, path: tuple[int, ...]) -> float:
    return float(np.prod([matrix[a, b] for a, b in itertools.pairwise(path)]))


def test_the_law_of_a_record_between_unknown_ones_is_that_of_all_sequences() -> None:
    adds, around = np.eye(3, dtype=np.int64)[:, :-1], 2
    expected = np.zeros((3, 3, 3, 6, 6))
    for path in itertools.product(range(3), repeat=2 * around + 3):
        unknown = path[1:-1]
        expected[path[0], unknown[around], path[-1], unknown.count(0), unknown.count(1)] += weight(THREE, path)
    np.testing.assert_allclose(of_record(THREE, around, adds), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("counted", [0, 1])
def test_the_law_of_a_stretch_is_that_of_all_sequences(counted: int) -> None:
    expected = np.zeros((2, 2, 2, 6))
    for path in itertools.product(range(2), repeat=7):
        event = int(path[2:5].count(counted) >= 2)
        expected[path[0], event, path[-1], path[1:-1].count(counted)] += weight(TWO, path)
    np.testing.assert_allclose(of_stretch(TWO, 1, 3, counted, 2), expected, rtol=1e-12, atol=1e-15)


def test_who_knows_only_the_chain_has_the_law_of_all_sequences() -> None:
    first, length = np.array([0.8, 0.2]), 5
    up_to, after = alone(TWO, first, length, 1)
    for i in range(length):
        expected = np.zeros((2, length + 2))
        for path in itertools.product(range(2), repeat=length):
            expected[path[i], path.count(1)] += first[path[0]] * weight(TWO, path)
        found = [np.convolve(up_to[i, x, : i + 2], after[length - i - 1, x, : length - i]) for x in range(2)]
        np.testing.assert_allclose(found, expected[:, : length + 1], rtol=1e-12, atol=1e-15)


def test_what_is_learned_is_the_ratio_of_likelihoods() -> None:
    law = np.array([[0.1, 0.2, 0.0], [0.3, 0.0, 0.4], [0.0, 0.0, 0.0]])
    prior, told = learned(law, log_noise(np.array([2]), 1.5, (3,)))
    density = np.exp(-np.abs(2 - np.arange(3)) / 1.5)
    np.testing.assert_allclose(np.exp(prior), [0.3, 0.7, 0.0])
    np.testing.assert_allclose(np.exp(told[:2]), (law[:2] @ density) / [0.3, 0.7])
    assert np.isnan(told[2])


def test_the_last_count_is_what_the_others_leave() -> None:
    found = log_noise(np.array([1, 0, 5]), 2.0, (4, 4), unknown=3)
    for a, b in itertools.product(range(4), repeat=2):
        assert found[a, b] == pytest.approx(-(abs(1 - a) + abs(0 - b) + abs(5 - (3 - a - b))) / 2)


@pytest.fixture
def people(tmp_path: Path) -> ActivityTable:
    """Thirty people, a long day each, who stay where they are for long."""
    rng, rows = np.random.default_rng(5), list[pl.DataFrame]()
    for person in range(30):
        state = np.zeros(450, dtype=np.int64)
        for i in range(1, len(state)):
            state[i] = state[i - 1] if rng.random() < 0.97 else 1 - state[i - 1]
        minute = np.concatenate([np.arange(400), np.arange(1000, 1050)])  # a gap: fifty minutes make no run
        rows.append(pl.DataFrame({"subject": f"p{person:02}", "state": state, "minute": minute, "day": 1}))
    path = tmp_path / "people.csv"
    pl.concat(rows).write_csv(path)
    return ActivityTable("people", path)


@pytest.mark.slow
def test_only_independent_noise_breaks_its_promise(people: ActivityTable, tmp_path: Path) -> None:
    settings = Settings(seed=3, trials=60, data=DataSets(activity=(people,)))
    (part,) = ARENA.parts(settings)
    rows = part.work()
    minutes = [row for row in rows if row["knows"] == "the chain alone"]
    assert len(minutes) == 10
    for row in minutes:
        assert (row["most"] > row["promise"] * (1 + 1e-9)) == (row["mechanism"] == "independent noise"), row
    assert part.work() == rows
    # the attacker of the promise learns nearly all that the tight noise allows
    tight = [row for row in minutes if row["mechanism"] == "LeakagePropagation"]
    assert all(row["most"] > 0.7 for row in tight)
    found = run(ARENA, settings, tmp_path / "out", lambda *_: None)
    assert "all other noise in 0 of 8 cells" in found.about[2]


@pytest.mark.parametrize("timed", [False, True])
def test_power_is_cut_where_minutes_are_missing(tmp_path: Path, timed: bool) -> None:
    watts = pl.DataFrame({"watts": [100.0] * 500 + [2000.0] * 1200})
    if timed:
        later = pl.int_range(pl.len()) + pl.when(pl.int_range(pl.len()) >= 450).then(60).otherwise(0)
        start = pl.datetime(2020, 1, 1)
        watts = watts.with_columns(timestamp=(start + pl.duration(minutes=later)).dt.to_string("%Y-%m-%d %H:%M:%S"))
    path = tmp_path / "house.csv"
    watts.write_csv(path)
    found = power_records(PowerTable("house", path))
    assert [len(run) for run in found.runs] == ([450, 1250] if timed else [1440])
    assert (found.states, found.step, found.hour) == (2, 60, 60)
    assert found.runs[0][:450].tolist() == [0] * 450


def test_short_runs_are_no_arena(tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    pl.DataFrame({"subject": "a", "state": [0, 1] * 50, "day": 1, "minute": range(100)}).write_csv(path)
    settings = Settings(seed=3, trials=6, data=DataSets(activity=(ActivityTable("short", path),)))
    with pytest.raises(DataError, match="without a gap"):
        run(ARENA, settings, tmp_path / "out", lambda *_: None)
