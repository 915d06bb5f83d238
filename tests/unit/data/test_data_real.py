"""Real tables, where they are at hand: known numbers of records, subjects and bins."""

from pathlib import Path

import pytest

from pufferfish.data import read_sequences

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def real(name):
    if not (DATA / name).exists():
        pytest.skip(f"real data absent: {name} is not in ../shared/data")
    return DATA / name


def test_fitbit_minutes():
    path = real("activity_fitbit_minute.parquet")
    options = {"subject": "subject", "time": "timestamp", "max_gap": "10min", "where": "awake"}
    data = read_sequences(path, "state", **options)
    assert (data.records, data.subjects, len(data.length), data.states) == (624_734, 33, 33, ("0", "1", "2", "3"))
    assert data.base.step == "1min"
    assert all(span >= records for span, records in zip(data.spans, data.lengths, strict=True))
    paper = read_sequences(path, "state", gaps="independent", **options)
    assert (paper.records, paper.subjects, max(paper.lengths)) == (624_734, 33, 3_605)
    assert (paper.counts.sum(axis=0) == data.counts.sum(axis=0)).all()
    assert (paper.transitions == data.transitions).all()
    assert paper.transitions.sum() == paper.records - len(paper.length)


def test_activpal_windows():
    path = real("activity_activpal_12s.parquet")
    options = {"subject": "subject", "time": "timestamp", "max_gap": "600s", "gaps": "independent"}
    data = read_sequences(path, "state", where="awake and worn", **options)
    assert (data.records, max(data.lengths)) == (136_050, 5_550)


def test_household_electricity():
    data = read_sequences(real("electricity_uci_2y_2006-12-17_1051200min.csv.gz"), "watts", bins="0,200,...,10200")
    assert (data.records, data.spans, data.counts.shape) == (1_051_200, (1_051_200,), (1, 51))
    assert data.counts.min() > 0
    assert data.transitions.sum() == 1_051_199


def test_nine_days_in_three_chains():
    path = real("electricity_ampds2_sample_9days.csv.gz")
    data = read_sequences(path, "watts", time="timestamp", max_gap="600s", bins="0,200,...,10200", gaps="independent")
    assert (data.records, len(data.length)) == (12_960, 3)
