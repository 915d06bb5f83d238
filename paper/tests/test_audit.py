"""The audit: promises hold, and what is broken on purpose is caught."""

from pathlib import Path

import numpy as np
import pytest

import pufferfish as pf
from commands import run
from paper.__main__ import main as paper
from paper.audit import audited, audited_shapes, controls_caught, databases_of, report, sampled_loss
from paper.audit.cases import MODELS, sampled_releases
from paper.experiments.sampling import stream

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


def test_promises_hold_and_true_losses_come_near_them() -> None:
    lines = list(audited((1.0,), ("two states, fast", "a network, one node and three children")))
    assert all(line.holds and line.loss > 0 for line in lines)
    best = {line.mechanism: line.loss for line in lines if line.exact and line.query == "count"}
    assert best["ExactLaplace"] == pytest.approx(1, rel=1e-6)
    assert {line.mechanism for line in lines} >= {"GroupDP", "GK16", "MQMExact", "MarkovQuilt", "LeakagePropagation"}


@pytest.mark.slow
def test_noise_of_other_shapes_keeps_its_promise_and_hardly_too_much_of_it() -> None:
    """Strategies, steps, groups, clocks, memory, classes, ledgers, measurements: true losses from the definition."""
    found = [line for line in audited_shapes((1.0,)) if line.mechanism == "LeakagePropagation"]
    assert all(line.holds for line in found)
    near = {line.query.split(",")[-1].strip(): line.loss for line in found if line.loss > 0.99}
    assert near.keys() >= {"best noise", "histogram-counts by group", "each record by randomised response", "count"}


def test_every_broken_mechanism_is_caught() -> None:
    caught = {name: (loss, how) for name, loss, how in controls_caught(stream(1, "controls"))}
    assert len(caught) == 14
    assert all(loss > 1.2 for loss, _ in caught.values()), caught
    assert caught["noise from a seed"][1] == "sampled"


@pytest.mark.slow
def test_sampling_catches_too_little_noise_and_passes_what_is_enough() -> None:
    """A bound for sampled outputs says less than the true loss, and more than is promised where noise is missing."""
    chain = pf.MarkovChain([[0.999, 0.001], [0.001, 0.999]])
    data, query, rng = databases_of(chain, 6), pf.Count(1), stream(2, "sampled")
    noise = pf.GroupDP(chain, 6).calibrate(query, 1.0)
    for scale, low, high in ((noise.unit_scale, 0.5, 1.0), (noise.unit_scale / 4, 2.0, 4.0)):
        stop = -np.expm1(-1 / scale)

        def noisy(row: list[int], stop: float = stop) -> float:
            return sum(row) + int(rng.geometric(stop) - rng.geometric(stop))

        assert low < sampled_loss(noisy, data, 0, (0, 1), rng, trials=4000) < high
    for _, epsilon, loss in sampled_releases(rng, trials=40):
        assert loss <= epsilon


def test_databases_of_a_network_are_its_rows() -> None:
    star = MODELS["a network, one node and three children"]
    data = databases_of(star)
    assert len(data.rows) == 16
    assert data.weights.sum() == pytest.approx(1)
    with pytest.raises(pf.ParameterError, match="may start anywhere"):
        databases_of(pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], "any"), 3)
    with pytest.raises(pf.ParameterError, match="give a shorter chain"):
        databases_of(pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 40)


def test_the_page_says_what_an_audit_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = PAGE.read_text()
    assert "broken**" not in text
    assert "not caught" not in text
    assert "14 of 14 mechanisms that are broken on purpose are caught" in text
    for words in ("best noise", "transitions", "by group", "a clock", "order two", "one ledger", "randomised response"):
        assert words in text
    few = list(audited((2.0,), ("independent records",)))
    monkeypatch.setattr("paper.audit.page.audited", lambda: few)
    monkeypatch.setattr("paper.audit.page.audited_shapes", list)
    monkeypatch.setattr("paper.audit.page.controls_caught", lambda rng: [("half the scale", 1.984, "exact")])
    monkeypatch.setattr("paper.audit.page.sampled_releases", lambda rng: [("GroupDP", 1.0, 0.5)])
    done = run("audit", "--output", tmp_path / "a.md", program=paper)
    assert done.exit_code == 0, done.output
    made = (tmp_path / "a.md").read_text()
    assert f"{len(few)} of {len(few)} promises hold, and 1 of 1 mechanisms" in made
    for page in (made, text):
        lines = page.partition("### ε = 2\n\n")[2].partition("\n\n")[0].splitlines()
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        for line in few:
            own = [row for row in rows if row[:2] == [line.model, str(line.records)]]
            (cells,) = (row for row in own if line.query in row[2].split("; "))
            assert cells[rows[0].index(line.mechanism)].removeprefix("≥ ") == f"{line.loss:.4f}"
    assert run("audit", "--output", tmp_path / "a.md", program=paper).exit_code == 0  # its own page is made again
    mine = tmp_path / "mine.md"
    mine.write_text("# Notes\n")
    refused = run("audit", "--output", mine, program=paper)
    assert refused.exit_code == 2
    assert "name another file" in refused.stderr
    assert mine.read_text() == "# Notes\n"
    monkeypatch.setattr("paper.audit.page.sampled_releases", lambda rng: [("GroupDP", 1.0, 1.5)])
    assert run("audit", program=paper).exit_code == 1
    assert not report().holds
