"""A release before it is made: the same promise and errors, and nothing drawn or spent."""

import sys

import msgspec
import pytest

import pufferfish as pf

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
DATA = {"who": ["a"] * 40 + ["b"] * 40, "s": ["rest", "walk", "walk", "rest"] * 20}


def test_a_plan_says_what_the_release_then_says(monkeypatch: pytest.MonkeyPatch) -> None:
    pl = pytest.importorskip("polars")
    data = pf.read_sequences(pl.DataFrame(DATA), "s", subject="who")
    bound = pf.LeakagePropagation(CHAIN, length=data.length)
    noise = bound.calibrate(pf.Histogram(), 0.5)
    ledger = pf.Ledger(bound, 2.0, base=data)
    with monkeypatch.context() as nothing_is_drawn:
        cells = sys.modules["pufferfish.release.draw"].Cells
        nothing_is_drawn.setattr(cells, "sampler", lambda *_: lambda: pytest.fail("noise is drawn"))
        planned = pf.plan(data, pf.Histogram(), noise, ledger=ledger)
    assert ledger.spent == 0
    assert not ledger.entries
    made = pf.release(data, pf.Histogram(), noise, ledger=ledger)
    for name in planned.__struct_fields__:
        assert getattr(planned, name) == getattr(made, name), name
    told = msgspec.json.decode(planned.to_json())
    assert told.keys() == set(planned.__struct_fields__)
    assert not {"values", "noisy_values"} & told.keys()
    assert "spent in all after it: 0.5 of 2" in str(planned)


def test_a_plan_refuses_what_a_release_refuses() -> None:
    noise = pf.LeakagePropagation(CHAIN, length=4).calibrate(pf.Histogram(), 0.5)
    states = ["rest", "walk", "walk", "rest"]
    with pytest.raises(pf.ReleaseRefused, match="not for Count"):
        pf.plan(states, pf.Count("rest"), noise)
    with pytest.raises(pf.DataError, match="5 records"):
        pf.plan([*states, "rest"], pf.Histogram(), noise)
    with pytest.raises(pf.ParameterError, match="calibrate the noise first"):
        pf.plan(states, pf.Histogram())
