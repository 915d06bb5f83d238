"""Kinds of stay from public data: known mixtures are found again, little data, left-out days, the command line."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish.errors import ModelError, ParameterError
from pufferfish.fit.left_out import LeftOut

TRUTH = pf.StaysChain(
    [[0, 0.7, 0.3], [0.6, 0, 0.4], [0.5, 0.5, 0]],
    [[(0.7, 0.5), (0.3, 0.97)], [(0.6, 0.2), (0.4, 0.9)], [(1.0, 0.6)]],
    states=["rest", "sit", "walk"],
)


def sampled(chain: pf.StaysChain, steps: int, rng: np.random.Generator) -> list[str]:
    """A series of states, as the chain gives it."""
    edges = np.cumsum(chain.kernel, axis=1)
    at, states, draws = 0, [], rng.random(steps)
    for draw in draws:
        states.append(chain.states[int(chain.tuples[at, 0])])
        at = min(int(np.searchsorted(edges[at], draw)), len(edges) - 1)
    return states


def table(chains: list[pf.StaysChain], steps: int, seed: int, missing: float = 0.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    frames = [
        pl.DataFrame({"who": f"p{i:02d}", "t": np.arange(steps), "s": sampled(chain, steps, rng)}).filter(
            rng.random(steps) >= missing
        )
        for i, chain in enumerate(chains)
    ]
    return pl.concat(frames)


def read(frame: pl.DataFrame) -> pf.Sequences:
    return pf.read_sequences(frame, "s", subject="who", time="t", max_gap=1, step=1, daily=True)


def noise(chain: pf.StaysChain | pf.MarkovChain) -> float:
    return pf.LeakagePropagation(chain, 10**6).calibrate(pf.Histogram(relative=False), 1.0).noise_multiplier


@pytest.mark.parametrize("missing", [0.0, 0.02])
def test_a_known_mixture_is_found_again_also_where_gaps_cut_stays_off(missing: float) -> None:
    data = read(table([TRUTH] * 4, 20_000, seed=1, missing=missing))
    found = pf.fit_stays(data, kinds=2)
    assert np.allclose(found.exits, TRUTH.exits, atol=0.03)
    for x in (0, 1):
        for (share, keep), (share_, keep_) in zip(found.stays[x], TRUTH.stays[x], strict=True):
            assert share == pytest.approx(share_, abs=0.05)
            assert 1 / (1 - keep) == pytest.approx(1 / (1 - keep_), rel=0.15)
    assert noise(found) == pytest.approx(noise(TRUTH), rel=0.08)


def test_left_out_days_say_how_many_kinds_there_are() -> None:
    data = read(table([TRUTH] * 3, 20_000, seed=2))
    one, two, three = LeftOut(data).of_kinds
    assert one.nats == 0
    assert two.nats > 5 * two.error > 0
    assert three.nats < 3 * three.error
    plain = pf.StaysChain(TRUTH.exits, [[(1.0, 0.8)], [(1.0, 0.5)], [(1.0, 0.6)]], states=TRUTH.states)
    _, two, _ = LeftOut(read(table([plain] * 3, 20_000, seed=3))).of_kinds
    assert two.nats < 3 * two.error


def test_everybody_has_stays_of_their_own() -> None:
    slow = TRUTH.slower(3)
    data = read(table([TRUTH, TRUTH, slow, TRUTH], 20_000, seed=4))
    noises = [noise(chain) for chain in pf.fit_stays_of_each(data, kinds=2)]
    assert int(np.argmax(noises)) == 2
    assert noises[2] == pytest.approx(noise(slow), rel=0.25)
    # who has little data is given those of all
    few = pl.concat([table([TRUTH] * 3, 20_000, seed=5), pl.DataFrame({"who": "x", "t": [0, 1, 2], "s": ["rest"] * 3})])
    *_, last = pf.fit_stays_of_each(read(few), kinds=2)
    assert noise(last) == pytest.approx(noise(TRUTH), rel=0.3)


def test_kinds_without_an_end_are_none() -> None:
    states = ["a"] * 2 + ["b", "a"] * 30 + ["b"] * 3
    chain = pf.fit_stays(pf.read_sequences(pl.DataFrame({"s": states}), "s", daily=True), kinds=3)
    assert max(keep for kinds in chain.stays for _, keep in kinds) < 0.2
    never = pf.read_sequences(pl.DataFrame({"s": ["a", "a", "b", "b"]}), "s", daily=True)
    with pytest.raises(ModelError, match="no transition from state 'b' to another was observed; use smoothing"):
        pf.fit_stays(never, smoothing=0)
    assert pf.fit_stays(never).k == 2


def test_refusals() -> None:
    frame = pl.DataFrame({"s": ["a", "b"] * 30})
    data = pf.read_sequences(frame, "s", daily=True)
    with pytest.raises(ParameterError, match="read without daily"):
        pf.fit_stays(pf.read_sequences(frame, "s"))
    with pytest.raises(ParameterError, match="kinds is 4, expected a number"):
        pf.fit_stays(data, kinds=4)
    with pytest.raises(ModelError, match="there is one state"):
        pf.fit_stays(pf.read_sequences(pl.DataFrame({"s": ["a"] * 9}), "s", daily=True))


@pytest.mark.slow
def test_the_command_line_fits_and_releases(tmp_path: Path) -> None:
    survey, model, out = (str(tmp_path / name) for name in ("survey.csv", "model.json", "out.json"))
    table([TRUTH, TRUTH.slower(2)], 3_000, seed=6).write_csv(survey)
    reading = ["--state", "s", "--subject", "who", "--time", "t", "--max-gap", "1"]
    said = run("fit", survey, *reading, "--stays", "--output", model).stdout
    assert "several kinds of stay" in said
    assert "make left-out days" in said
    each = run("fit", survey, *reading, "--stays", "--kinds", "2", "--each-subject", "--output", model, "--overwrite")
    assert "2 chains of 3 states with several kinds of stay, one for each of 2 subjects" in each.stdout
    other = str(tmp_path / "other.csv")
    table([TRUTH], 3_000, seed=7).write_csv(other)
    run("release", other, "--model", model, *reading, "--query", "histogram", "--epsilon", "1", "--output", out)
    run("verify", out)
    assert "--kinds only works with --stays" in refused("fit", survey, *reading, "--kinds", "2", "--output", model)
    assert "leave out --clock" in refused("fit", survey, *reading, "--stays", "--clock", "hour", "--output", model)
