"""ε against the length of a stretch: which points there are, what stands out, and that no label hides another."""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
from pufferfish._draw.chart import Lines
from pufferfish._draw.lines import lines_figure
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.mechanisms.promises import promise_chart

MODEL = pf.Model(theta=pf.MarkovChain([[0.97, 0.03], [0.06, 0.94]], states=["rest", "walk"]), step="1min")
BINS = pf.MarkovChain(0.7 * np.eye(4) + 0.075, states=["<200", "200-400", "400-600", ">=600"])


def chart_of(noise: Calibration, step: str | None = None) -> Lines:
    chart = promise_chart(noise.promises(), step, noise.bound.protection)
    assert chart is not None
    return chart


def texts(html: str) -> Iterator[tuple[float, float, float, str]]:
    """Yield the ends of every text, its height, and what it says."""
    for x, y, anchor, text in re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)"[^>]*>([^<]*)<', html):
        wide = 7.2 * len(text)
        left = float(x) - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        yield left, left + wide, float(y), text


def test_the_chart_has_what_people_know_and_what_was_asked_for() -> None:
    bound = pf.LeakagePropagation(MODEL, 20_000)
    for protect, steps in ((None, 1), ("1h", 60), ("3h", 180), ("subject", 20_000)):
        noise = bound.calibrate(pf.Histogram(), 1.0, protect=protect)
        chart = chart_of(noise, "1min")
        assert chart.ticks is not None
        names = dict(zip(*chart.ticks, strict=True))
        marks = {1: "1 record", 5: "5min", 60: "1h", 1440: "1d", 10_080: "7d", 20_000: "whole series"}
        assert names == marks | ({180: "3h"} if steps == 180 else {})
        (asked,) = (line for line in chart.lines if line.wide)
        assert asked.x.tolist() == [steps]
        assert asked.high[0] == pytest.approx(1, abs=1e-5)
        told = {row.steps: row.epsilon for row in noise.promises() if row.steps is not None}
        line = next(line for line in chart.lines if line.look == "line")
        assert dict(zip(line.x.tolist(), line.high.tolist(), strict=True)) == told
    near = chart_of(pf.LeakagePropagation(BINS, 400).calibrate(pf.Histogram(), 1.0, protect=20, within=200))
    looks = [(line.look, line.wide, line.x.tolist()) for line in near.lines[1:]]
    assert ("points", False, [1.0]) in looks
    assert ("points", True, [20.0]) in looks


def test_nothing_is_drawn_where_there_are_no_two_lengths() -> None:
    row = pf.LeakagePropagation(MODEL, 1).calibrate(pf.Count("walk"), 1.0).promises()[:1]
    assert promise_chart(row) is None
    assert promise_chart([]) is None


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("hidden", [{}, {"protect": "1h"}, {"protect": "subject"}], ids=str)
def test_no_label_hides_another_or_leaves_the_picture(epsilon: float, hidden: dict[str, Any]) -> None:
    for length in (2, 61, 1441, 10_081, 300_000):
        noise = pf.LeakagePropagation(MODEL, length).calibrate(pf.Histogram(), epsilon, **hidden)
        html = lines_figure(chart_of(noise, "1min"))
        found = list(texts(html))
        assert {"1 record", "whole series"} & {text for *_, text in found}
        for left, right, _, text in found:
            assert left >= -1e-6, text
            assert right <= 364 + 1e-6, text
        for one, other in combinations(found, 2):
            apart = one[0] >= other[1] or other[0] >= one[1] or abs(one[2] - other[2]) >= 11
            assert apart, (one, other)


def test_notebooks_name_the_unit_first_and_draw_every_other() -> None:
    noise = pf.LeakagePropagation(MODEL, 3000).calibrate(pf.Histogram(), 1.0, protect="1h")
    html = noise._repr_html_()
    first = html.partition("</p>")[0]
    assert "hides any stretch of 60 steps in a row of one subject (1h, where no step takes less than 1min)" in first
    assert html.count("<svg") == 1
    assert "var(--accent, #0072b2)" in html
    assert "more than 1,000 times" in html
