"""A model knows the table that it was fitted to again: a copy in another order, a part of it; and no other table."""

import random
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import READING, refused, run, write_table
from pufferfish.data import _count
from pufferfish.data.fingerprint import fingerprint_of, same_table
from pufferfish.errors import ParameterError, ReleaseRefused

ASKED = {"state": "s", "subject": "who", "time": "t", "max_gap": 1}
NETWORK = pf.BayesianNetwork({"a": pf.CPT(["n", "y"], [0.5, 0.5]), "b": pf.CPT(["n", "y"], [0.5, 0.5])})


def table(seed: int, subjects: int = 6, length: int = 400, stay: float = 0.85, rare: float = 0.3) -> pl.DataFrame:
    """Return chains of two states, of subjects 0, 1, … at minutes 0, 1, …: only states differ from seed to seed."""
    rng = np.random.default_rng(seed)
    rows = []
    for who in range(subjects):
        state = 0
        for t in range(length):
            if rng.random() > stay:
                state = int(rng.random() < rare)
            rows.append((who, t, "ab"[state]))
    return pl.DataFrame(rows, schema=["who", "t", "s"], orient="row")


def fingerprint(source: object, **reading: object) -> str:
    known = pf.read_sequences(source, **{**ASKED, **reading}).fingerprint
    assert known is not None
    return known


WHOLE = table(1)
PARTS = {
    "columns in another order": WHOLE.select("s", "t", "who"),
    "rows sorted by time": WHOLE.sort("t", "who"),
    "the first rows": WHOLE.head(1000),
    "the last rows": WHOLE.tail(700),
    "hours in the midst": WHOLE.filter(pl.col("t").is_between(130, 290)),
    "one subject": WHOLE.filter(pl.col("who") == 4),
    "more people": pl.concat([WHOLE, table(2).with_columns(pl.col("who") + 10)]),
    "a later day too": pl.concat([WHOLE, table(3).with_columns(pl.col("t") + 1440)]).sort("who", "t"),
    "times as floats": WHOLE.with_columns(pl.col("t").cast(pl.Float64)),
    "people with other names": WHOLE.with_columns(who="person " + pl.col("who").cast(pl.String)),
    "times a day later": WHOLE.with_columns(pl.col("t") + 1440),
    "a few states corrected": WHOLE.with_columns(
        s=pl.when(pl.int_range(pl.len()) % 100 == 0).then(pl.lit("a")).otherwise("s")
    ),
}


@pytest.mark.parametrize("kind", PARTS)
def test_a_copy_or_a_part_of_the_fitted_table_is_refused(kind: str) -> None:
    data = pf.read_sequences(WHOLE, **ASKED)
    model = pf.Model.fitted(pf.fit_chain(data), data)
    part = pf.read_sequences(PARTS[kind], **ASKED)
    noise = pf.GroupDP(model, part.length).calibrate(pf.Count("b"), 2.5)
    with pytest.raises(ReleaseRefused, match="fitted to this very table, or one is a part of the other"):
        pf.release(part, pf.Count("b"), noise)
    assert same_table(part.fingerprint or "", data.fingerprint or "")


def test_a_series_by_itself_is_known_whoever_it_is_of() -> None:
    alone = WHOLE.filter(pl.col("who") == 2)
    assert same_table(fingerprint(WHOLE), fingerprint(alone.drop("who"), subject=None))
    without_times = fingerprint(WHOLE, time=None, max_gap=None)
    assert same_table(without_times, fingerprint(WHOLE.filter(pl.col("t") < 90), time=None, max_gap=None))
    assert same_table(without_times, fingerprint(alone.drop("t"), time=None, max_gap=None))


def test_a_file_with_its_columns_swapped_is_refused_on_the_command_line(tmp_path: Path) -> None:
    survey = write_table(tmp_path / "survey.csv", 1, subjects=6)
    assert run("fit", survey, *READING, "--output", tmp_path / "m.json").exit_code == 0
    frame = pl.read_csv(survey)
    for name, copy in {"swapped": frame.select(sorted(frame.columns)), "half": frame.head(400)}.items():
        copy.write_csv(tmp_path / f"{name}.csv")
        copy.write_parquet(tmp_path / f"{name}.parquet")
        for kind in ("csv", "parquet"):
            asked = ["release", tmp_path / f"{name}.{kind}", *READING, "--model", tmp_path / "m.json", "--epsilon", 2.5]
            refused(
                *asked, "--output", tmp_path / "r.json", says=["the model was fitted to this very table, or one is"]
            )
    other = ["release", write_table(tmp_path / "other.csv", 2, subjects=6), *READING, "--model", tmp_path / "m.json"]
    assert run(*other, "--epsilon", 2.5, "--output", tmp_path / "r.json").exit_code == 0
    # exact numbers are told of the very table alone
    refused("check", tmp_path / "m.json", tmp_path / "half.csv", *READING, says=["was not fitted to", "as it is read"])
    assert run("check", tmp_path / "m.json", tmp_path / "swapped.csv", *READING).exit_code == 0


@pytest.mark.parametrize(("stay", "rare"), [(0.0, 0.5), (0.9, 0.5), (0.5, 0.03), (0.98, 0.3), (0.9, 0.01)])
def test_other_tables_of_the_same_names_and_minutes_are_no_copies(stay: float, rare: float, slow: bool) -> None:
    known = [fingerprint(table(seed, 3, 500, stay, rare)) for seed in range(12 if slow else 5)]
    assert len(set(known)) == len(known)
    assert not any(same_table(one, other) for i, one in enumerate(known) for other in known[:i])


@pytest.mark.parametrize("subjects", [1, 5, 300])
def test_every_engine_and_every_batch_gives_the_same(
    subjects: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    frame = table(5, subjects, (40 if slow else 20) if subjects > 100 else 4000 if slow else 2000)
    expected = fingerprint(frame)
    shuffled = frame.sample(fraction=1, shuffle=True, seed=3).sort("t")
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    sources = [shuffled, frame.to_pandas(), frame.to_arrow(), tmp_path / "t.csv", tmp_path / "t.parquet"]
    sources.append(frame.to_pandas(use_pyarrow_extension_array=True))
    assert [fingerprint(source) for source in sources] == [expected] * 6
    relation = duckdb.from_arrow(shuffled.to_arrow())
    assert fingerprint(relation) == expected
    typed = shuffled.with_columns(
        who=pl.col("who").cast(pl.String).cast(pl.Categorical), s=pl.col("s").cast(pl.Categorical)
    )
    assert fingerprint(typed) == expected
    monkeypatch.setattr(_count, "BATCH", 900)
    assert [fingerprint(source) for source in (frame, shuffled, typed)] == [expected] * 3
    dates = shuffled.with_columns(t=pl.datetime(2024, 1, 1) + pl.duration(minutes="t"))
    minute = {"max_gap": "1min"}
    assert fingerprint(dates, **minute) == fingerprint(dates.to_pandas(), **minute)
    assert len(expected) < 60_000


def test_a_jittering_clock_changes_nothing_of_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual step of a part is not that of the whole, and that of the first batch not that of all."""
    rng = random.Random(1)
    moments = [60_000 * i + rng.randrange(300) for i in range(3000)]
    states = table(7, 1, 3000)["s"]
    frame = pl.DataFrame({"who": "x", "t": moments, "s": states})
    reading = {"max_gap": 70_000}
    whole = fingerprint(frame, **reading)
    assert same_table(whole, fingerprint(frame.tail(1200), **reading))
    monkeypatch.setattr(_count, "BATCH", 200)
    assert fingerprint(frame, **reading) == whole


def test_records_that_are_far_apart_are_known_too() -> None:
    """Each is a block of its own, and too many are not kept."""
    rng = random.Random(2)
    moments, t = [], 0
    for _ in range(30_000):
        t += rng.choice([1, 1000, 2000, 3000])
        moments.append(t)
    frame = pl.DataFrame({"who": "x", "t": moments, "s": table(8, 1, 30_000, stay=0.5)["s"]})
    whole = fingerprint(frame)
    assert len(whole) < 60_000
    assert whole == fingerprint(frame.to_pandas())


def test_a_table_of_rows_is_known_by_each_column() -> None:
    rng = np.random.default_rng(4)
    frame = pl.DataFrame({name: rng.choice(["n", "y"], 300) for name in "ba"})
    data = pf.read_rows(frame, NETWORK)
    model = pf.Model(theta=NETWORK, fitted_on=data.fingerprint)
    for copy in (frame.select("a", "b").sort("a"), frame.to_pandas(), frame.select("b")):
        rows = pf.read_rows(copy, NETWORK)
        query = pf.Marginals(["b"])
        with pytest.raises(ReleaseRefused, match="fitted to this very table"):
            pf.release(rows, query, pf.GroupDP(model, rows.length).calibrate(query, 2.5))
    other = pf.read_rows(frame.with_columns(b=pl.lit("n")).select("b"), NETWORK)
    assert pf.release(other, query, pf.GroupDP(model, other.length).calibrate(query, 2.5)).epsilon == 2.5


def test_what_is_no_fingerprint_is_refused() -> None:
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    for bad in ("ab" * 32, "yesterday", "ab" * 32 + ":x", "ab" * 32 + ":AAAA", "rows:AAAA", b"rows:", 7):
        with pytest.raises(ParameterError, match=r"fitted_on is .*expected the fingerprint of a table"):
            pf.Model(theta=chain, fitted_on=bad)  # pyrefly: ignore[bad-argument-type]
    assert pf.Model(theta=chain, fitted_on=fingerprint_of("", 0, {})).fitted_on
