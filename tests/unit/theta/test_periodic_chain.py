"""Chains with a clock: what is refused, what they say of themselves, and what every mechanism makes of them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish._core.phi import certificate, phi
from pufferfish._core.propagation.chain import ChainPropagation
from pufferfish._core.propagation.sweep import Run
from pufferfish.errors import ModelError, NotApplicableError, ParameterError, PufferfishError, ReleaseRefused

NIGHT, DAY = [[0.9, 0.1], [0.4, 0.6]], [[0.6, 0.4], [0.3, 0.7]]
HOURS = [NIGHT] * 8 + [DAY] * 16
CHAIN = pf.PeriodicChain(HOURS, clock="hour", step="10min", states=["a", "b"])
PHASES = pf.PeriodicChain([NIGHT, DAY], states=["a", "b"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([NIGHT, [[0.5, 0.4], [0.5, 0.5]]],), r"matrices\[1\]\[0\] sums to 0.9"),
        ((NIGHT,), r"matrices has shape \(2, 2\), expected \(phases, k, k\)"),
        ((HOURS[:5], "stationary", "hour", "1min"), "there are 5 matrices, expected 24"),
        ((HOURS, "stationary", "hour"), 'step is missing: with clock="hour"'),
        ((HOURS, "stationary", "hour", "7min"), "step is 7min, and one hour of the clock .* is not a whole number"),
        ((HOURS, "stationary", "hour", "2h"), "step is 2h, and one hour of the clock"),
        ((HOURS, "stationary", "hour", 60), "step is 60 without a unit"),
        ((HOURS, "stationary", "hours", "1min"), "clock is 'hours', expected one of 'hour', 'weekday'.*None"),
        (([NIGHT], "stationary", None, "1min"), "step is '1min', and plain phases are one step each"),
        (([NIGHT], "sometimes"), "initial_distribution"),
        (([[[1, 0], [0, 1]], [[1, 0], [0, 1]]],), "the matrices have several periodic laws"),
        (([[[1, 0], [1, 0]], [[1, 0], [0, 1]]],), "state '1' has probability 0 at every phase"),
    ],
)
def test_refusals_say_what_and_why(arguments: tuple[Any, ...], message: str) -> None:
    matrices, start, clock, step = (*arguments, *(["stationary", None, None][len(arguments) - 1 :]))
    with pytest.raises(ModelError, match=message) as refusal:
        pf.PeriodicChain(matrices, start, clock=clock, step=step)
    assert "\n" not in str(refusal.value)


def test_it_knows_its_periodic_law() -> None:
    law = CHAIN.periodic_distribution
    assert law.shape == (24 * 6, 2)
    assert np.allclose(law[1:], np.einsum("nx,nxy->ny", law[:-1], CHAIN.cycle[:-1]), rtol=1e-12)
    assert np.allclose(law[0], law[-1] @ CHAIN.cycle[-1], rtol=1e-12)


def test_equal_matrices_are_one_chain_and_need_its_noise(slow: bool) -> None:
    for start in ("stationary", "any", [0.3, 0.7]):
        plain, clock = pf.MarkovChain(NIGHT, start), pf.PeriodicChain([NIGHT] * 7, start, clock="weekday", step="1h")  # type: ignore[arg-type]
        assert len(clock.cycle) == 1
        for length in (3, 40) if slow else (12,):
            noises = [pf.LeakagePropagation(c, length).calibrate(pf.Histogram(), 1.0).scale for c in (plain, clock)]
            assert noises[0] == noises[1]


def test_the_worst_member_of_a_list_decides() -> None:
    worse = pf.PeriodicChain([[[0.99, 0.01], [0.01, 0.99]], DAY], states=["a", "b"])
    alone = [pf.LeakagePropagation(c, 200).calibrate(pf.Count("b"), 1.0) for c in (PHASES, worse)]
    both = pf.LeakagePropagation([PHASES, worse], 200).calibrate(pf.Count("b"), 1.0)
    assert both.scale == pytest.approx(max(found.scale for found in alone), rel=1e-9)
    assert both.witness.theta == 1
    other = pf.PeriodicChain([NIGHT] * 7, clock="weekday", step="1h", states=["a", "b"])
    with pytest.raises(ModelError, match=r"theta\[2\] has a step of 1h and theta\[1\] of 10min"):
        pf.LeakagePropagation([PHASES, CHAIN, other], 5)


def test_the_witness_names_the_phase() -> None:
    seen = pf.LeakagePropagation(CHAIN, 10**6).calibrate(pf.Count("b"), 1.0).witness
    assert isinstance(seen, pf.PhaseWitness)
    assert 0 <= seen.phase < 24
    assert seen.own + seen.past + seen.future == pytest.approx(1, abs=1e-5)


def test_what_does_not_cover_it_says_what_does() -> None:
    rows = {row.mechanism: row for row in pf.compare(PHASES, pf.Histogram(), 1.0, length=30)}
    for name, row in rows.items():
        if name in ("propagation", "group-dp"):
            assert row.reason is None
            assert row.noise_multiplier is not None
            assert row.noise_multiplier <= 30 * (1 + 1e-9)
        else:
            assert row.reason is not None
            assert "LeakagePropagation and GroupDP" in row.reason
    with pytest.raises(
        NotApplicableError, match="theta is a class of periodic Markov chains, but distances are computed only between"
    ):
        pf.robustness(PHASES, PHASES, 3)
    states = 50
    with pytest.raises(NotApplicableError, match="a period of 144 steps with 50 states is too large"):
        pf.LeakagePropagation(
            pf.PeriodicChain([np.full((states, states), 1 / states), *[np.eye(states)[::-1]] * 23], clock="hour",
                             step="10min"), 5
        )  # fmt: skip


def test_losses_of_every_shape_and_unobserved_records() -> None:
    bound = pf.LeakagePropagation(PHASES, 12)
    whole = bound.leakage(0.2)
    assert bound.leakage([0.2] * 12) == pytest.approx(whole, rel=1e-9)
    assert bound.leakage(pf.Profile([(5, 0.2), (7, 0.2)])) == pytest.approx(whole, rel=1e-9)
    assert bound.leakage(0.2 * (1 - np.eye(2))) == pytest.approx(whole, rel=1e-9)
    assert bound.leakage([0.2] * 4 + [0.0] * 8) < whole
    fewer = pf.LeakagePropagation(PHASES, pf.ChainLength(steps=12, records=6)).leakage(0.2)
    assert fewer <= whole


def test_a_model_file_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for start in ("stationary", "any", [0.25, 0.75]):
        for chain in (
            pf.PeriodicChain([NIGHT, DAY, NIGHT], start, states=["a", "b"]),  # type: ignore[arg-type]
            pf.PeriodicChain(HOURS, start, clock="hour", step="10min", states=["a", "b"]),  # type: ignore[arg-type]
        ):
            pf.write_model(pf.Model(theta=chain), path)
            again = pf.read_model(path)
            (member,) = again.theta.members
            assert isinstance(member, pf.PeriodicChain)
            assert np.array_equal(member.matrices, chain.matrices)
            assert (member.clock, member.step, member.states) == (chain.clock, chain.step, chain.states)
            assert np.array_equal(member.initial_distribution, chain.initial_distribution)  # type: ignore[arg-type]
            assert again.step == chain.step
    with pytest.raises(ParameterError, match="step is '1min', and the clock of theta has a step of 10min"):
        pf.Model(theta=CHAIN, step="1min")


def timed(minutes: list[int]) -> pl.DataFrame:
    start = pl.datetime(2016, 4, 13, 22, 0)
    table = pl.DataFrame({"minute": minutes, "s": ["a", "b"] * (len(minutes) // 2)})
    return table.with_columns((start + pl.duration(minutes="minute")).alias("t"))


def test_a_release_and_its_ledger(tmp_path: Path) -> None:
    table = timed([10 * i for i in range(30)] + [900 + 10 * i for i in range(30)])
    data = pf.read_sequences(table, "s", time="t", max_gap="10min", time_zone="UTC")
    assert data.length == (pf.ChainLength(steps=120, records=60),)
    bound = pf.LeakagePropagation(CHAIN, length=data.length)
    noise, ledger = bound.calibrate(pf.Histogram(), 0.5), pf.Ledger(bound, budget=1.1)
    path = tmp_path / "release.json"
    for _ in range(2):
        found = pf.release(data, pf.Histogram(), noise, ledger=ledger)
        found.to_json(path, overwrite=True)
        assert pf.Release.from_json(path) == found
    assert 1.0 <= ledger.spent <= 1.1
    assert "a transition matrix for each hour of the day, one record every 10min" in found.assumptions[0]


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({}, "the table was read without times"),
        ({"time": "t"}, "the table was read without max_gap"),
        ({"time": "minute", "max_gap": 10}, "column 'minute' holds numbers"),
        ({"time": "t", "max_gap": "20min"}, "records up to 20min apart were read as one step"),
        ({"time": "t", "max_gap": "10min", "step": "5min"}, "one step of Θ takes 10min, and one of the table 5min"),
        ({"time": "t", "max_gap": "10min", "step": "10min"}, "the time between its records was not checked"),
    ],
)
def test_a_table_that_cannot_follow_the_clock_is_refused(reading: dict[str, Any], message: str) -> None:
    data = pf.read_sequences(timed([10 * i for i in range(40)]), "s", **reading)
    noise = pf.LeakagePropagation(CHAIN, length=data.length).calibrate(pf.Histogram(), 1.0)
    with pytest.raises(ReleaseRefused, match=message):
        pf.release(data, pf.Histogram(), noise)


def test_a_given_start_needs_the_first_record(tmp_path: Path) -> None:
    theta = pf.PeriodicChain([NIGHT, DAY], [1, 0], states=["a", "b"])
    table = pl.DataFrame({"s": ["a", "b"] * 10, "keep": [True] * 20})
    data = pf.read_sequences(table, "s", where="keep")
    noise = pf.LeakagePropagation(theta, length=data.length).calibrate(pf.Histogram(), 1.0)
    with pytest.raises(PufferfishError, match="law of a chain's first record"):
        pf.release(data, pf.Histogram(), noise)


def test_states_that_are_impossible_at_some_phases() -> None:
    """A shop that is closed every other step: its state is no secret then."""
    shut, opens = [[1, 0, 0], [1, 0, 0], [1, 0, 0]], [[0, 0.5, 0.5], [0.2, 0.4, 0.4], [0.2, 0.4, 0.4]]
    chain = pf.PeriodicChain([shut, opens])
    found = pf.LeakagePropagation(chain, 1000).leakage(0.5)
    assert found == pytest.approx(0.5, abs=1e-9)  # every other record is certain, and cuts the chain


def test_a_long_clock_settles() -> None:
    """A week of minutes is one cycle of 10,080 phases, each with its own kernel back in time."""
    rng = np.random.default_rng(2)
    week = pf.PeriodicChain(rng.dirichlet([5, 1], size=(168, 2)), clock="weekday-hour", step="1min")
    assert len(week.cycle) == 10080
    found = ChainPropagation(week.cycle, "stationary").leakage([Run(10**7, 0.1 * (1 - np.eye(2)))])
    assert 0.1 < found.total < 1
    assert found.phase is not None


def test_a_state_that_is_entered_in_one_hour_only_is_followed_around_the_clock() -> None:
    """Far more steps than Python nests calls."""
    hours = [NIGHT] + [[[1.0, 0.0], [0.01, 0.99]]] * 23
    chain = pf.PeriodicChain(hours, [1.0, 0.0], clock="hour", step="1min")
    found = ChainPropagation(chain.cycle, np.array([1.0, 0.0]))
    assert found.leakage([Run(3, 0.1 * (1 - np.eye(2)))]).total > 0.1


def test_a_cycle_that_never_forgets_is_not_followed_for_ever(monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    """Changes are passed along it a few times; then its one linear system is solved."""
    rounds: list[int] = []

    def counted(*given: object) -> bool:
        rounds.append(int(given[5]))  # type: ignore[call-overload]
        return certificate.pass_on(*given)

    monkeypatch.setattr(
        phi.StackedRatios, "_loops", lambda *_: SimpleNamespace(search_each=phi.search_each, pass_on=counted)
    )
    turns, stays = [[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
    chain = pf.PeriodicChain([turns, stays], [0.3, 0.7])
    length = 200 if slow else 130
    assert pf.LeakagePropagation(chain, length).leakage(0.01) == pytest.approx(0.01 * length, rel=1e-9)
    assert rounds
    assert max(rounds) < 10_000
