"""A chain for every subject of a public table."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.errors import DataError, ModelError, ParameterError

STATES = "abc"


def people(lengths: list[int], seed: int = 0) -> pl.DataFrame:
    """A table with a subject of each length, whose states are drawn with a memory of their own."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, int, str]] = []
    for s, length in enumerate(lengths):
        state = 0
        for t in range(length):
            state = state if rng.random() < 0.2 + 0.2 * s else int(rng.integers(3))
            rows.append((f"s{s}", t, STATES[state]))
    return pl.DataFrame(rows, schema=["who", "t", "s"], orient="row")


def by_hand(table: pl.DataFrame, smoothing: float) -> dict[str, np.ndarray[Any, Any]]:
    """Every subject's matrix, by plain loops: docs/fitting.md, read once more."""
    counts: dict[str, np.ndarray[Any, Any]] = {}
    last: dict[str, str] = {}
    for who, _, s in table.iter_rows():
        mine = counts.setdefault(who, np.zeros((3, 3)))
        if who in last:
            mine[STATES.index(last[who]), STATES.index(s)] += 1
        last[who] = s
    laws: dict[str, np.ndarray[Any, Any]] = {}
    for who, mine in counts.items():
        others = sum(other for name, other in counts.items() if name != who)
        stay, moves = (np.trace(others) + 0.5) / (others.sum() + 1), others.sum() - np.trace(others)
        law = np.zeros((3, 3))
        for x in range(3):
            entered = [(others[:, y].sum() - others[y, y] + 1 / 3) / (moves + 1) for y in range(3)]
            for y in range(3):
                law[x, y] = stay if x == y else (1 - stay) * entered[y] / (1 - entered[x])
        pool = (others + smoothing * law) / (others.sum(axis=1, keepdims=True) + smoothing)
        laws[who] = (mine + smoothing * pool) / (mine.sum(axis=1, keepdims=True) + smoothing)
    return laws


def test_every_subject_has_the_chain_of_a_plain_loop_on_every_engine(tmp_path: Path, slow: bool) -> None:
    table = people([200, 30, 90])
    path = tmp_path / "t.csv"
    table.write_csv(path)
    connection = duckdb.connect()
    connection.register("frame", table.to_arrow())
    sources = [table, path, table.to_pandas(), connection.sql("select * from frame")]
    for i, smoothing in enumerate([0, 0.5, 1, 10]):
        want = by_hand(table, smoothing)
        for source in sources if slow or i == 3 else sources[i : i + 1]:
            found = pf.fit_each_subject(source, "s", subject="who", time="t", max_gap=1, smoothing=smoothing)
            assert found.theta.names == tuple(f"subject {who}" for who in want)
            for chain, matrix in zip(found.theta.chains, want.values(), strict=True):
                assert np.allclose(chain.transition_matrix, matrix, atol=1e-12)
    assert found.mostly_others == 1
    assert "every row completed by 10 of all others" in found.theta.origin


def test_equal_chains_are_kept_once_and_their_subjects_named() -> None:
    one = people([50])
    table = pl.concat([one.with_columns(pl.lit(f"p{i}").alias("who")) for i in range(5)])
    found = pf.fit_each_subject(table, "s", subject="who")
    assert found.theta.names == ("subjects p0, p1, p2 and 2 more",)
    assert "1 of them different" in found.theta.origin
    pooled = pf.fit_chain(pf.read_sequences(table, "s", subject="who"), smoothing=0)
    assert np.allclose(found.theta.chains[0].transition_matrix, pooled.transition_matrix, atol=1e-3)


def test_a_subject_without_transitions_has_the_chain_of_all() -> None:
    table = pl.concat([people([80, 60]), pl.DataFrame({"who": ["new"], "t": [0], "s": ["c"]}, schema_overrides={})])
    found = pf.fit_each_subject(table, "s", subject="who")
    assert found.theta.names[2] == "all together, for 1 subject without transitions"
    pooled = pf.fit_chain(pf.read_sequences(table, "s", subject="who"))
    assert np.allclose(found.theta.chains[2].transition_matrix, pooled.transition_matrix)


def test_one_record_changes_its_own_subject_only_where_nothing_is_added() -> None:
    table = people([90, 70])
    other = table.with_columns(
        pl.when((pl.col("who") == "s1") & (pl.col("t") == 33)).then(pl.lit("a")).otherwise("s").alias("s")
    )
    first, second = (pf.fit_each_subject(t, "s", subject="who", smoothing=0).theta for t in (table, other))
    assert np.array_equal(first.chains[0].transition_matrix, second.chains[0].transition_matrix)


def test_the_worst_member_decides_and_compare_names_it() -> None:
    theta = pf.fit_each_subject(people([300, 300, 300]), "s", subject="who").theta
    each = [pf.LeakagePropagation(chain, 100).calibrate(pf.Histogram(), 1.0).scale for chain in theta.chains]
    rows = pf.compare(theta, pf.Histogram(), 1.0, 100)
    best = next(row for row in rows if row.recommended)
    assert best.scale == pytest.approx(max(each), rel=1e-6)
    assert best.decided_by == f"theta[{np.argmax(each)}] (subject s{np.argmax(each)})"
    assert f"{best.decided_by} decides the noise of LeakagePropagation" in str(rows)
    alone = pf.compare(theta.chains[0], pf.Histogram(), 1.0, 100)
    assert "decides" not in str(alone)
    unnamed = pf.compare(list(theta.chains), pf.Histogram(), 1.0, 100)
    assert next(row for row in unnamed if row.recommended).decided_by == f"theta[{np.argmax(each)}]"


def test_names_survive_files_and_copies(tmp_path: Path) -> None:
    theta = pf.fit_each_subject(people([60, 60]), "s", subject="who").theta
    path = tmp_path / "m.json"
    pf.write_model(pf.Model(theta=theta), path)
    again = pf.read_model(path).theta
    assert isinstance(again, pf.ChainClass)
    assert (again.names, again.origin) == (theta.names, theta.origin)
    for a, b in zip(again.chains, theta.chains, strict=True):
        assert np.array_equal(a.transition_matrix, b.transition_matrix)
    broken = path.read_text().replace('"subject s0",', "")
    path.write_text(broken)
    with pytest.raises(pf.RecordError, match="names has 1 entries and members 2"):
        pf.read_model(path)
    with pytest.raises(ModelError, match=r"names\[1\] is 5"):
        pf.ChainClass(theta.chains, names=("a", 5))  # type: ignore[arg-type]


def test_what_cannot_be_fitted_is_refused_in_one_line() -> None:
    table = people([60, 60])
    with pytest.raises(ParameterError, match="subject is missing"):
        pf.fit_each_subject(table, "s")
    with pytest.raises(ParameterError, match="smoothing is -1"):
        pf.fit_each_subject(table, "s", subject="who", smoothing=-1)
    only = table.filter((pl.col("who") == "s0") | (pl.col("s") != "c"))
    with pytest.raises(ModelError, match=r"out of state 'c' of subject 's1' was observed.*use smoothing"):
        pf.fit_each_subject(only, "s", subject="who", smoothing=0)
    unseen = pf.fit_each_subject(table, "s", subject="who", states=["a", "b", "c", "d"])
    assert all(np.all(chain.transition_matrix > 0) for chain in unseen.theta.chains)
    with pytest.raises(DataError, match="exactly one record"):
        pf.fit_each_subject(table.filter(pl.col("t") == 0), "s", subject="who")


def test_a_table_of_one_state_needs_the_names_of_the_others() -> None:
    frame = pl.DataFrame({"s": ["x"] * 9})
    with pytest.raises(pf.ModelError, match="one state, so there is nothing to hide: name all states"):
        pf.fit_chain(pf.read_sequences(frame, "s"))
    named = pf.fit_chain(pf.read_sequences(frame, "s", states=["x", "y"]))
    assert named.transition_matrix[0] == pytest.approx([(8 + 8.5 / 9) / 9, 0.5 / 9 / 9])
