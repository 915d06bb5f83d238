"""The words of a page: one for every part of time that records can be grouped by."""

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

import pufferfish as pf
from pufferfish.data.groupings import PARTS

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["<70", ">=70"])


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_time_has_a_word_on_the_page(part: str, tmp_path: Path) -> None:
    times = [datetime(2026, 3, 1) + timedelta(hours=i) for i in range(1500)]
    table = pl.DataFrame({"t": times, "x": [50.0, 90.0] * 750})
    data = pf.read_sequences(table, "x", time="t", max_gap="1h", by=[f"{part}(t)"], bins=[0, 70, 200])
    model = pf.Model(theta=CHAIN, bins=[0, 70, 200], step="1h")
    query = pf.query("mean", model)
    found = pf.release(data, query, pf.LeakagePropagation(model, data.length).calibrate(query, 5.0))
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Bins count at their middle, so a value can be off by 65 beside the noise" in page
    assert "values below 0 count as 0, and those of 200 or more as 200" in page


def test_shares_whose_error_is_all_there_is_are_weak() -> None:
    noise = pf.GroupDP(CHAIN, 4).calibrate(pf.Histogram(), 0.5)
    found = pf.release(["<70", ">=70"] * 2, pf.Histogram(), noise)
    assert found.accuracy_95.each > 1
    assert str(found).count("○") >= 2
