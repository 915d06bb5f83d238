"""What a page's script computes: errors from scales of noise, and never less than is true between two computed ε.

Runs the script in Node, without a browser; skipped where there is none (``apt-get install nodejs``).
"""

import json
import math
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferfish as pf
import pufferfish._draw
import release_cases
from pufferfish._core.numbers import laplace
from pufferfish.queries.strategy import Strategy

pytestmark = pytest.mark.program

SCRIPT = Path(pufferfish._draw.__file__).with_name("page.js")
ALONE = """
const vm = require("node:vm"), read = require("node:fs").readFileSync;
const nothing = {getElementById: () => ({textContent: "[]"}), querySelectorAll: () => []};
const given = vm.createContext({document: nothing, addEventListener: () => {}, setTimeout: () => {}});
vm.runInContext(read(process.argv[1], "utf8"), given);
given.asked = JSON.parse(read(0, "utf8"));
console.log(JSON.stringify(vm.runInContext(process.argv[2], given)));
"""
"""A page without any releases, so that the script has functions and does nothing."""


def run(expression: str, asked: Any) -> Any:
    node = shutil.which("node")
    if node is None:
        pytest.skip("the script of pages is run in Node: apt-get install nodejs")
    command = [node, "-e", ALONE, str(SCRIPT), expression]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def slider(path: Path, places: Sequence[int]) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return what a page's script reads, and at places of its slider ε, the scale and the error of its own noise."""
    (about,) = json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1])  # type: ignore[index]
    told = "asked.places.map(p => [epsilonAt(asked.about, p), ...noiseAt(asked.curve, p, asked.about.alpha)])"
    found = run(told, {"about": about, "curve": about["curves"][about["own"]], "places": list(places)})
    return about, [[epsilon, scale * about["unit"], units * about["unit"]] for epsilon, scale, units, _ in found]


def test_errors_are_those_of_the_library_and_never_less() -> None:
    """At scales of all sizes, and next to those at which the error goes up by one."""
    rng = np.random.default_rng(3)
    scales = [float(b) for b in 10 ** rng.uniform(-3, 12, 4000)]
    for t in [*range(12), *(int(n) for n in 10 ** rng.uniform(1, 8, 60))]:
        step = laplace.widest(t, 0.05)
        scales += [step, step * (1 - 1e-11), step * (1 + 1e-11), step * (1 + 1e-9)]
    shown = run("asked.map(b => accuracy(b, 0.05))", scales)
    true = [laplace.accuracy(b, 0.05) for b in scales]
    more = [js - py for js, py in zip(shown, true, strict=True)]
    assert min(more) == 0
    assert sum(extra > 0 for extra in more) <= 60, "one unit more right before a step, and nowhere else"
    assert max(extra / py for extra, py in zip(more, true, strict=True) if py) < 0.6


def test_between_computed_points_the_slider_never_flatters(tmp_path: Path, slow: bool) -> None:
    """At all its places, or every fifth: never below what a release would have."""
    step = 1 if slow else 5
    chain, data = release_cases.TWO, release_cases._series(["no", "yes"])
    query = pf.Frequency("yes")
    bound = pf.LeakagePropagation(chain, data.length)
    pf.compare(chain, query, 1.0, length=data.length, mechanisms=["propagation"]).report(tmp_path / "p.html")
    about, told = slider(tmp_path / "p.html", range(0, 81, step))
    assert len(about["curves"][about["own"]]["scale"]) == 41
    for place, (epsilon, scale, error) in zip(range(0, 81, step), told, strict=True):
        there = bound.calibrate(query, epsilon)
        assert scale >= there.scale * (1 - 1e-9)
        assert error >= there.accuracy(0.05) * (1 - 1e-9)
        assert scale <= there.scale * (1.001 if place % 2 == 0 else 1.13)
    middle = told[40 // step]
    assert middle[0] == 1.0
    assert middle[2] == pytest.approx(bound.calibrate(query, 1.0).accuracy(0.05), rel=1e-12)


def test_errors_of_other_shapes_are_the_larger_of_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of several scales: its errors are computed when the page is written."""
    release_cases.end_searches_soon(monkeypatch)
    data = release_cases._series(["no", "yes"])
    query, bound = pf.Histogram(relative=False), pf.GroupDP(release_cases.TWO, data.length)
    compared = pf.compare(release_cases.TWO, query, 1.0, data.length, noise="best", mechanisms=["group-dp"])
    assert compared.contest is not None
    made = compared.contest.calibration(next(row for row in compared if row.recommended))
    assert isinstance(made.strategy, Strategy)
    compared.report(tmp_path / "p.html")
    about, told = slider(tmp_path / "p.html", range(81))
    assert "error" in about["curves"][about["own"]]
    for epsilon, _, error in told:
        there = bound.calibrate_strategy(query, made.strategy, epsilon)
        assert error >= there.accuracy(0.05) * (1 - 1e-9)
    assert all(math.isfinite(error) for _, _, error in told)
