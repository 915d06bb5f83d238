"""The overlap of chains and of public data."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.data.public_counts import read_pairs_apart
from pufferfish.errors import ModelError, NotApplicableError, ParameterError

P = [[0.9, 0.1], [0.3, 0.7]]


def table(stays: list[float], length: int, seed: int = 0) -> pl.DataFrame:
    """Two states with equal odds, a subject for every probability to keep the state."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, int, str]] = []
    for s, stay in enumerate(stays):
        state = 0
        for t in range(length):
            state = state if rng.random() < stay else int(rng.integers(2))
            rows.append((f"s{s}", t, "ab"[state]))
    return pl.DataFrame(rows, schema=["who", "t", "s"], orient="row")


def test_overlap_of_a_chain_is_that_of_its_powers_both_ways() -> None:
    chain = pf.MarkovChain(P)
    assert pf.overlap(chain, [1, 4]) == pytest.approx((1 - 0.6, 1 - 0.6**4), abs=1e-12)
    assert pf.overlap([chain, pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]])], 1) == pytest.approx(0.4, abs=1e-12)
    cycle = pf.MarkovChain([[0.5, 0.4, 0.1], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    ahead = np.linalg.matrix_power(cycle.transition_matrix, 2)
    back = (cycle.stationary_distribution[:, None] * ahead / cycle.stationary_distribution).T
    least = min(np.minimum(m[i], m[j]).sum() for m in (ahead, back) for i in range(3) for j in range(i))
    assert pf.overlap(cycle, 2) == pytest.approx(least, abs=1e-12)
    assert pf.overlap(cycle, 2) <= least
    with pytest.raises(NotApplicableError, match="stationary law"):
        pf.overlap(pf.MarkovChain(P, "any"), 1)
    with pytest.raises(ParameterError, match="steps is 0"):
        pf.overlap(chain, 0)


def test_the_least_forgetful_subject_decides() -> None:
    found = pf.fit_forgetting(table([0.5, 0.95, 0.7], 20_000), "s", [4, 12], subject="who")
    assert found.theta.states == ("a", "b")
    for estimate, n in zip(found.estimates, (4, 12), strict=True):
        assert estimate.steps == n
        assert estimate.subject == "s1"
        assert estimate.overlap == pytest.approx(1 - 0.95**n, abs=0.03)
        assert estimate.pooled > estimate.overlap
        assert estimate.pairs == 3 * (20_000 - n)
    assert found.theta.pairs == tuple((e.steps, e.overlap) for e in found.estimates)
    assert "of subject 's1'" in found.theta.origin


def test_short_subjects_are_smoothed_towards_all() -> None:
    rows = pl.concat([table([0.7, 0.7], 5000), table([0.7], 14, seed=3).with_columns(pl.lit("new").alias("who"))])
    apart = {added: pf.fit_forgetting(rows, "s", 2, subject="who", smoothing=added) for added in (1e-9, 10, 1e6)}
    least = [found.estimates[0].overlap for found in apart.values()]
    assert least[0] < least[1] < least[2]
    assert apart[1e-9].estimates[0].subject == "new"
    assert least[2] == pytest.approx(apart[1e6].estimates[0].pooled, abs=1e-4)


def test_only_pairs_without_a_gap_between_them_count() -> None:
    rows = pl.DataFrame({"t": [0, 1, 2, 3, 10, 11, 12, 13], "s": list("abbaabba"), "k": [True] * 7 + [False]})

    def counted(source: pl.DataFrame, **reading: Any) -> list[list[int]]:
        _, (pairs,) = read_pairs_apart(source, "s", [2], **reading)
        return pairs.counts.sum(axis=0).tolist()

    assert counted(rows, time="t", max_gap=1) == [[0, 2], [2, 0]]
    assert counted(rows) == [[0, 3], [3, 0]]
    assert counted(rows, where="k") == [[0, 3], [2, 0]]
    assert counted(rows.with_columns(pl.col("t") // 10), subject="t") == [[0, 2], [2, 0]]
    holes = rows.with_columns(pl.when(pl.col("t") == 2).then(None).otherwise(pl.col("s")).alias("s"))
    assert counted(holes, time="t", max_gap=1) == [[0, 1], [2, 0]]
    assert counted(holes, time="t", max_gap=1, missing="split") == [[0, 1], [1, 0]]


def test_every_engine_and_reading_counts_the_same(tmp_path: Path) -> None:
    rows = table([0.6, 0.8], 300)
    path = tmp_path / "t.csv"
    rows.write_csv(path)
    want = pf.fit_forgetting(rows, "s", 3, subject="who", time="t").theta.overlap
    for source in (path, rows.to_pandas(), rows.sample(fraction=1, shuffle=True, seed=1).sort("t")):
        assert pf.fit_forgetting(source, "s", 3, subject="who", time="t").theta.overlap == want
    watts = rows.with_columns(pl.when(pl.col("s") == "a").then(5).otherwise(15).alias("w"))
    binned = pf.fit_forgetting(watts, "w", 3, subject="who", time="t", bins="0,10,20")
    assert binned.theta.overlap == want
    assert binned.theta.states == ("<10", ">=10")


def test_a_time_is_so_many_steps_rounded_up() -> None:
    rows = table([0.6], 300).with_columns((pl.datetime(2024, 1, 1) + pl.duration(minutes="t")).alias("at"))
    for forgets, steps in (("8min", 8), ("450s", 8), (8, 8), ("8", 8)):
        assert pf.fit_forgetting(rows, "s", forgets, time="at").theta.steps == (steps,)
    with pytest.raises(ParameterError, match="the length of a step is unknown"):
        pf.fit_forgetting(rows, "s", "8min")
    with pytest.raises(ParameterError, match=r"forgets is 2\.5"):
        pf.fit_forgetting(rows, "s", 2.5)


def test_what_cannot_be_estimated_is_refused_in_one_line() -> None:
    rows = table([0.6], 50)
    with pytest.raises(ModelError, match="no two observed records are 99 steps apart"):
        pf.fit_forgetting(rows, "s", 99)
    with pytest.raises(ModelError, match="state 'c' has no record 2 steps"):
        pf.fit_forgetting(rows, "s", 2, states=["a", "b", "c"])
    with pytest.raises(ModelError, match="do not overlap at all"):
        pf.fit_forgetting(pl.DataFrame({"s": list("ab" * 40)}), "s", 2)
    with pytest.raises(ParameterError, match=r"smoothing is -1, expected a number from 0 to .*, such as 10"):
        pf.fit_forgetting(rows, "s", 2, smoothing=-1)
