"""The slider of a page: what is written of each of its places, and the script that shows it.

The script runs in Node, without a browser; skipped where there is none (``apt-get install nodejs``).
"""

import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
import pufferfish._draw
import release_cases
from pufferfish._base.words import number
from pufferfish.compare.comparison import Comparison
from pufferfish.compare.noise import at_places, epsilon_at
from pufferfish.compare.rows import points_around
from pufferfish.mechanisms.calibration import Calibration
from pufferfish.queries.strategy import Strategy

SCRIPT = Path(pufferfish._draw.__file__).with_name("page.js")
ALONE = """
const vm = require("node:vm"), read = require("node:fs").readFileSync;
const element = (known) => ({
  dataset: {}, set: {}, ...known,
  setAttribute(name, value) { this.set[name] = value; },
  addEventListener(_, then) { this.then = then; },
  querySelector: (name) => known[name],
});
const [about, place] = JSON.parse(read(0, "utf8"));
const input = element({value: "0"}), output = element({}), button = element({}), code = element({});
const cells = about.rows.map((row) => Object.fromEntries(Object.keys(row).map((name) => [`.${name}`, element({})])));
const rows = cells.map((known, i) => element({...known, dataset: {row: `${i}`}}));
const charts = (about.marks || []).map(() => element({".dot": element({}), ".here": element({})}));
const root = element({input, output, button, ".command code": code});
root.querySelectorAll = (name) => name === ".chart" ? charts : rows;
const parts = {data: {textContent: JSON.stringify([about])}, proof: null, [about.id]: root};
const document = {getElementById: (id) => parts[id], querySelectorAll: () => []};
const page = vm.createContext({document, addEventListener: () => {}, setTimeout: () => {}});
vm.runInContext(read(process.argv[1], "utf8"), page);
input.value = `${place}`;
input.then();
const texts = cells.map((row) => Object.fromEntries(Object.keys(row).map((name) => [name, row[name].textContent])));
const marks = charts.map((chart) => [chart[".here"].set.transform, chart[".dot"].set.cy, chart[".dot"].set.visibility]);
console.log(JSON.stringify([output.textContent, texts, code.textContent || null, marks, input.set["aria-valuetext"]]));
"""
"""A page with one slider, moved to a place: what its script wrote into the page."""


def shown_at(about: Any, place: int) -> Any:
    node = shutil.which("node")
    if node is None:
        pytest.skip("the script of pages is run in Node: apt-get install nodejs")
    command = [node, "-e", ALONE, str(SCRIPT)]
    asked = json.dumps([about, place])
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.program
def test_the_script_shows_what_was_written_of_each_place() -> None:
    """Of a page with charts and a command, and of one without; where there is no error there is no dot."""
    marks = [[[66.0, 14.0], [100.5, None]], [[58.0, 12.5], [70.0, None]]]
    rows = [{"scale": ["1", "≤ 2"], "error": ["3", "none known"]}, {"scale": ["5", "6"], "error": ["7", "8"]}]
    about = {
        "id": "n",
        "places": ["ε = 1: near", "ε = 2: far"],
        "rows": rows,
        "commands": ["a 1", "a 2"],
        "marks": marks,
    }
    for place in (0, 1):
        told, texts, command, moved, aloud = shown_at(about, place)
        assert told == aloud == about["places"][place]
        assert texts == [{f".{name}": written[place] for name, written in cells.items()} for cells in rows]
        assert command == about["commands"][place]
        at = [mark[place] for mark in marks]
        assert [mark[0] for mark in moved] == [f"translate({x:g})" for x, _ in at]
        assert [mark[2] for mark in moved] == ["hidden" if y is None else "visible" for _, y in at]
    assert [mark[1] for mark in shown_at(about, 0)[3]] == [14.0, 12.5]
    assert shown_at({"id": "n", "places": ["a", "b"], "rows": [{"error": ["± 1", "± 2"]}]}, 1)[:2] == [
        "b",
        [{".error": "± 2"}],
    ]


def slider(found: Comparison, path: Path) -> tuple[Calibration, Iterator[tuple[int, float, float, float]]]:
    """Return the noise that a preview is about, and of each place of its slider ε, the scale and the error."""
    contest: Any = found.contest
    made: Calibration = contest.calibration(found.recommended)
    named: Sequence[Any] = contest.curves(made)
    noise = next(
        curve for curve in named if (curve[0].mechanism, curve[0].noise) == (made.mechanism, found.recommended.noise)
    )
    found.report(path)
    about = json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1])[0]  # type: ignore[index]
    told = at_places(noise, len(about["places"]) - 1)
    written = about["rows"][named.index(noise)]
    assert written["scale"] == [f"{'' if proved else '≤ '}{number(scale or 0.0)}" for scale, _, proved in told]

    def places() -> Iterator[tuple[int, float, float, float]]:
        for place, (scale, error, _) in enumerate(told):
            assert scale is not None
            assert error is not None
            yield place, epsilon_at(points_around(made.epsilon), place), scale, error

    return made, places()


def test_between_computed_points_the_slider_never_flatters(tmp_path: Path, slow: bool) -> None:
    """At all its places, or every fifth: never below what a release would have."""
    chain, data = release_cases.TWO, release_cases._series(["no", "yes"])
    query = pf.Frequency("yes")
    bound = pf.LeakagePropagation(chain, data.length)
    found = pf.compare(chain, query, 1.0, length=data.length, mechanisms=["propagation"])
    for place, epsilon, scale, error in slider(found, tmp_path / "p.html")[1]:
        if place % 5 and not slow:
            continue
        there = bound.calibrate(query, epsilon)
        assert scale >= there.scale * (1 - 1e-9)
        assert error >= there.accuracy(0.05) * (1 - 1e-9)
        assert scale <= there.scale * (1.001 if place % 2 == 0 else 1.13)
        if place == 40:
            assert epsilon == 1.0
            assert error == pytest.approx(there.accuracy(0.05), rel=1e-12)


def test_errors_of_other_shapes_are_the_larger_of_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of several scales: never less than at the ε of a place."""
    release_cases.end_searches_soon(monkeypatch)
    data = release_cases._series(["no", "yes"])
    query, bound = pf.Histogram(relative=False), pf.GroupDP(release_cases.TWO, data.length)
    compared = pf.compare(release_cases.TWO, query, 1.0, data.length, noise="best", mechanisms=["group-dp"])
    made, told = slider(compared, tmp_path / "p.html")
    assert isinstance(made.strategy, Strategy)
    for _, epsilon, _, error in told:
        there = bound.calibrate_strategy(query, made.strategy, epsilon)
        assert math.isfinite(error)
        assert error >= there.accuracy(0.05) * (1 - 1e-9)
