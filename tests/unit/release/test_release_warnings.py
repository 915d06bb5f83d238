"""What a release warns of is told to Python's ``warnings`` before anything is spent, and can be made a refusal."""

import warnings
from pathlib import Path

import polars as pl
import pytest

import pufferfish as pf

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
DAYS = pl.DataFrame({"who": ["a"] * 60 + ["b"] * 60, "state": ["rest", "rest", "active"] * 40})


@pytest.fixture
def data() -> pf.Sequences:
    return pf.read_sequences(DAYS, "state", subject="who")


def test_a_release_warns_where_it_was_called(data: pf.Sequences) -> None:
    loud = pf.LeakagePropagation(CHAIN, data.length).calibrate(pf.Histogram(), 50.0)
    with pytest.warns(pf.ReleaseWarning) as told:
        found = pf.release(data, pf.Histogram(), loud, warnings=["One sensor was changed in May."])
    assert found.warnings[0] == "One sensor was changed in May."  # known to whoever said it
    assert [str(each.message) for each in told] == found.warnings[1:]
    assert found.warnings[1].startswith(
        "Epsilon is 50: the odds of two values of a record can change by a factor of more than 1,000"
    )
    assert {each.filename for each in told} == {__file__}
    assert pf.verify(found).holds


@pytest.mark.parametrize(
    ("epsilon", "says"), [(1e-3, "The noise hides nearly all"), (10.01, "Epsilon is 10.01: the odds")]
)
def test_made_an_error_nothing_is_spent(data: pf.Sequences, epsilon: float, says: str, tmp_path: Path) -> None:
    bound = pf.LeakagePropagation(CHAIN, data.length)
    ledger, noise = pf.Ledger(bound, 60.0, base=data), bound.calibrate(pf.Histogram(), epsilon)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pf.ReleaseWarning)
        with pytest.raises(pf.ReleaseWarning, match=says):
            pf.release(data, pf.Histogram(), noise, ledger=ledger)
        with pytest.raises(pf.ReleaseWarning, match=says):
            pf.release_each(data, pf.Histogram(), noise, tmp_path / "each.csv", ledger=ledger)
    assert ledger.entries == ()
    assert not list(tmp_path.iterdir())
    with pytest.warns(pf.ReleaseWarning, match=says):
        pf.release(data, pf.Histogram(), noise, ledger=ledger)
    assert len(ledger.entries) == 1


def test_a_release_of_which_nothing_is_to_be_said_is_silent(data: pf.Sequences) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        noise = pf.LeakagePropagation(CHAIN, data.length).calibrate(pf.Count("active"), 1.0)
        assert pf.release(data, pf.Count("active"), noise).warnings == []
