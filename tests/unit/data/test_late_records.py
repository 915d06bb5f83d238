"""Records that come a little later than ``max_gap``: how many they are, and which limit would keep them."""

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import pufferfish as pf
from pufferfish.data import _count
from pufferfish.errors import ParameterError

START = dt.datetime(2024, 5, 1)


def table(seconds: Callable[[int], float], records: int = 400) -> pl.DataFrame:
    """Records of which each comes so many seconds after the one before."""
    times = [START]
    for i in range(records - 1):
        times.append(times[-1] + dt.timedelta(seconds=seconds(i)))
    return pl.DataFrame({"t": times, "state": [str(i % 3) for i in range(records)]})


def read(frame: Any, **how: Any) -> pf.Sequences:
    return pf.read_sequences(frame, "state", time="t", **{"max_gap": "5min", **how})


@pytest.mark.parametrize("how", [{}, {"gaps": "independent"}, {"step": "5min"}, {"missing": "split"}], ids=str)
@pytest.mark.parametrize("batch", [250_000, 57])
def test_late_records_are_counted_on_every_engine(
    how: dict[str, Any], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_count, "BATCH", batch)
    frame = table(lambda i: 306 if i % 2 else 300)
    for source in (frame, frame.to_pandas()):
        data = read(source, **how)
        assert data.late == (199, "5min6s")
        assert data.shortest_step == "5min"
        (warning,) = (text for text in data.warnings if "slightly longer" in text)
        assert "199 gaps between records are only slightly longer than max_gap (5min)" in warning
        assert "give max_gap='5min6s'" in warning
    assert read(frame, max_gap=data.late[1], **how).transitions.sum() == 399


def test_the_limit_is_as_round_as_it_was_and_keeps_all() -> None:
    frame = table(lambda i: 300 + (3.000_5 if i % 3 == 0 else 0))
    data = read(frame)
    assert data.late == (133, "5min4s")
    assert read(frame, max_gap="5min4s").warnings == ()
    numbers = frame.with_columns(pl.col("t").dt.epoch("ms"))
    assert read(numbers, max_gap=300_000).late == (133, "303001")


def test_no_limit_of_two_steps_is_advised() -> None:
    frame = table(lambda i: 601 if i % 3 == 0 else 300)
    assert read(frame, max_gap="9min").late is None  # a model would refuse it
    assert read(table(lambda i: 599 if i % 3 == 0 else 300), max_gap="9min").late == (133, "9min59s")


def test_records_that_are_missing_or_few_are_not_late() -> None:
    assert read(table(lambda i: 600 if i % 3 else 300), max_gap="9min", step="5min").late is None  # one is missing
    assert read(table(lambda i: 380 if i % 3 else 300)).late is None  # more than a quarter
    assert read(table(lambda i: 306 if i % 50 == 0 else 300)).late is None  # eight of them
    assert read(table(lambda i: 306 if i % 120 == 0 else 300, 2_000)).late is None  # less than one in a hundred
    assert pf.read_sequences(table(lambda i: 306 if i % 2 else 300), "state", time="t").late is None


def test_what_is_no_number_of_gaps_is_refused() -> None:
    data = read(table(lambda i: 306 if i % 2 else 300))
    for wrong in (5, (1,), (1.5, "5min"), (3, "soon")):
        with pytest.raises(ParameterError, match="late is no number of gaps"):
            replace(data, late=wrong)
    with pytest.raises(ParameterError, match="clock_changes is 'perhaps'"):
        replace(data, clock_changes="perhaps")  # type: ignore[arg-type]


@pytest.mark.parametrize("batch", [250_000, 57])
def test_the_shortest_step_is_of_rows_that_are_linked(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_count, "BATCH", batch)
    frame = table(lambda i: 295.5 if i == 390 else 306 if i % 2 else 300)
    for source in (frame, frame.to_pandas()):
        assert read(source).shortest_step == "4min55s500ms"
        assert pf.read_sequences(source, "state", time="t").shortest_step == "4min55s500ms"
        assert read(source.head(1 + 390)).shortest_step == "5min"
        assert pf.read_sequences(source, "state").shortest_step is None
    numbers = frame.with_columns(t=pl.Series([i + (i > 7) / 4 for i in range(400)]))
    assert read(numbers, max_gap=1.1).shortest_step == "1"  # what is further apart is not linked
