"""Classes that can be defended: what is kept of people of known habits, how many that covers, the command line."""

import math
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish._base.progress import listening
from pufferfish.cli.fit import defended_lines
from pufferfish.errors import ParameterError
from pufferfish.fit.left_out import LeftOut, _sum_of
from pufferfish.fit.members import Members, noise_of

STEPS = 2_400


def series(matrix: np.ndarray, steps: int, rng: np.random.Generator) -> list[str]:
    """Two states, as a chain gives them."""
    at, states = 0, []
    for draw in rng.random(steps):
        states.append("ab"[at])
        at = at if draw < matrix[at, at] else 1 - at
    return states


def table(stays: list[float], seed: int, steps: int = STEPS) -> pl.DataFrame:
    """One series for each person, who keeps a state with this probability."""
    rng = np.random.default_rng(seed)
    return pl.concat(
        pl.DataFrame({"who": f"p{i:02d}", "t": np.arange(steps), "s": series(np.full((2, 2), keep), steps, rng)})
        for i, keep in enumerate(stays)
    )


def read(frame: pl.DataFrame) -> pf.Sequences:
    return pf.read_sequences(frame, "s", subject="who", time="t", max_gap=1, step=1, daily=True)


@cache
def people() -> pf.Sequences:
    """Eleven people: ten who are much alike, and one who stays three times as long."""
    return read(table([*np.linspace(0.78, 0.82, 10).tolist(), 0.93], seed=1))


@cache
def defended() -> pf.DefendedFit:
    return pf.fit_defend(people())


def test_everybody_is_in_and_the_slowest_decides() -> None:
    fit = defended()
    kinds = {kind.kind: kind for kind in fit.kinds}
    assert kinds["pooled"].members == 1
    assert kinds["own"].members == 11
    assert kinds["own"].kept
    assert kinds["own"].decided_by == "p10"
    assert not kinds["hour"].kept
    assert "without hours of the day" in str(kinds["hour"].reason)
    assert fit.decided_by == "own chain of p10"
    chain = pf.MarkovChain(np.full((2, 2), 0.07) + np.eye(2) * 0.86)
    needs = pf.LeakagePropagation(chain, 10**6).calibrate(pf.Histogram(relative=False), 1.0).noise_multiplier
    assert fit.noise_multiplier == pytest.approx(needs, rel=0.2)
    assert fit.between is not None
    assert fit.between[0] < fit.noise_multiplier * 1.05
    assert fit.between[1] > fit.noise_multiplier * 0.95
    assert fit.noise_multiplier == max(map(noise_of, fit.theta.members))
    assert len(fit.theta.names) == len(fit.theta.members)


def test_own_chains_and_stays_are_those_of_each_subject() -> None:
    frame = table([0.8, 0.85, 0.9], seed=7)
    members, sequences = Members(read(frame), kinds=2), read(frame)
    each = pf.fit_each_subject(frame, "s", subject="who", time="t", max_gap=1, step=1).theta.chains
    for law, chain in zip(members.of("own", members.people), each, strict=True):
        np.testing.assert_array_equal(law.model.transition_matrix, chain.transition_matrix)
    for law, chain in zip(
        members.of("own stays", members.people), pf.fit_stays_of_each(sequences, kinds=2), strict=True
    ):
        np.testing.assert_array_equal(law.model.kernel, chain.kernel)
    (pooled,), (stays,) = members.of("pooled", []), members.of("stays", [])
    np.testing.assert_array_equal(pooled.model.transition_matrix, pf.fit_chain(sequences).transition_matrix)
    np.testing.assert_array_equal(stays.model.kernel, pf.fit_stays(sequences, kinds=2).kernel)


def test_the_sentence_of_coverage_says_its_conditions() -> None:
    coverage = defended().coverage
    assert coverage.people == 11
    lost = 0.02 if coverage.of_stays else 0.0
    assert coverage.share == pytest.approx(11 / 12 - lost)
    assert coverage.sure == pytest.approx(0.05 ** (1 / 11) - lost)
    assert coverage.next_leakage is not None
    assert coverage.next_leakage > 1.5  # who stays three times as long is not covered by noise for the others
    sentence = coverage.sentence
    for words in ("like the 11 surveyed", "drawn alike", "95% confidence", "does not know whose habits hold is not"):
        assert words in sentence
    assert sentence.removesuffix(".") in defended().theta.origin


@pytest.mark.slow
def test_states_that_many_never_left_cost_cover_and_the_sentence_says_so() -> None:
    """With few visits of a state nobody knows how slow somebody is there (docs/results.md: strength 6, N = 10)."""
    frame = table([0.8] * 12, seed=9)
    rare = pl.DataFrame({"who": "p00", "t": range(STEPS, STEPS + 60), "s": list("ccab" * 15)})

    def coverage(people: int) -> pf.Coverage:
        """So many of twelve people are never seen in state c."""
        seen = [rare.with_columns(who=pl.lit(f"p{i:02d}")) for i in range(people, 12)]
        return pf.fit_defend(read(pl.concat([frame, *seen], how="vertical_relaxed"))).coverage

    few, many = coverage(3), coverage(4)
    assert (few.unseen, few.lost, few.share) == (3, 0.0, pytest.approx(12 / 13))
    assert (many.unseen, many.lost, many.share) == (4, 0.02, pytest.approx(12 / 13 - 0.02))
    assert "less the .02 that states cost that 4 of them never left" in many.sentence


def test_more_cover_needs_longer_stays_and_says_what_that_rests_on() -> None:
    fit, more = defended(), pf.fit_defend(people(), cover=0.99)
    assert more.coverage.share == 0.99
    assert more.coverage.sure is None
    assert more.coverage.tail is not None
    assert more.coverage.slower == pytest.approx((0.01 * 12) ** (-1 / more.coverage.tail))
    assert "thin out like a power" in more.coverage.sentence
    assert len(more.theta.members) == 2 * len(fit.theta.members)
    assert more.noise_multiplier == pytest.approx(more.coverage.slower * fit.noise_multiplier, rel=0.05)
    needs = dict(zip(more.theta.names, map(noise_of, more.theta.members), strict=True))
    assert more.decided_by == max(needs, key=lambda name: needs[name])
    assert more.noise_multiplier == max(needs.values())
    slower = pf.fit_defend(people(), slower=1.3)
    assert slower.noise_multiplier == pytest.approx(1.3 * fit.noise_multiplier, rel=0.04)
    assert "stays 1.3 times as long" in slower.theta.origin


def test_the_slowest_are_left_out_where_that_is_asked_for() -> None:
    fit = pf.fit_defend(people(), cover=0.8, drop_slowest=True)  # (1 − .8) · 12 = 2.4: one person
    assert fit.coverage.left_out == ("p10",)
    assert "left out: p10" in fit.theta.origin
    assert fit.noise_multiplier < 0.7 * defended().noise_multiplier
    assert fit.coverage.share == pytest.approx(10 / 12 - (0.02 if fit.coverage.of_stays else 0))


@pytest.mark.slow
def test_many_people_of_a_release_and_too_few_surveyed() -> None:
    many = pf.fit_defend(people(), people=22).coverage
    assert many.share == pytest.approx(11 / 33)
    assert "22 people" in many.sentence
    two = pf.fit_defend(read(table([0.8, 0.9], seed=2)))
    assert two.coverage.share is None
    assert "Of 2 people no share of others can be defended" in two.coverage.sentence
    assert two.decided_by == "own chain of p01"
    frame = table([0.8], seed=3).drop("who")
    one = pf.fit_defend(pf.read_sequences(frame, "s", time="t", max_gap=1, step=1, daily=True))
    assert one.coverage.people <= 1
    assert "Of one series no share" in one.coverage.sentence
    assert [kind.kind for kind in one.kinds if kind.kept] == ["pooled"]
    short = pl.concat([table([0.8, 0.85], seed=4), pl.DataFrame({"who": "x", "t": [0, 1, 2], "s": ["a", "a", "b"]})])
    assert pf.fit_defend(read(short)).coverage.people == 2  # who has three records is nobody's measure


def test_hours_memory_and_stays_are_found_where_they_are_and_not_where_they_are_not() -> None:
    false = 0
    for seed in range(6):
        left_out = LeftOut(read(table([0.8] * 4, seed=10 + seed)))
        false += sum(left_out.gain(kind, "pooled").demanded for kind in ("order2", "stays", "own"))
    assert false == 0
    rng = np.random.default_rng(0)
    nights = ["a" if hour < 8 or rng.random() < 0.5 else "b" for _ in range(120) for hour in range(24)]
    times = pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 4, 29, 23), "1h", eager=True)
    frame = pl.DataFrame({"t": times, "s": nights})
    data = pf.read_sequences(frame, "s", time="t", max_gap="1h", daily=True, clock="hour")
    assert LeftOut(data).gain("hour", "pooled").demanded
    assert "hour" in [kind.kind for kind in pf.fit_defend(data).kinds if kind.kept]


@pytest.mark.slow
def test_what_chance_alone_gives_is_less_than_people_who_differ_and_as_much_as_people_who_do_not() -> None:
    differ, alike = defended(), pf.fit_defend(read(table([0.8] * 10, seed=8)))
    needs = [{kind.kind: kind.noise_multiplier or 0.0 for kind in fit.kinds} for fit in (differ, alike)]
    assert len(differ.by_chance) == 20
    assert max(differ.by_chance) < 0.6 * needs[0]["own"]
    assert alike.by_chance[0] * 0.95 < needs[1]["own"] < alike.by_chance[-1] * 1.05
    assert alike.by_chance[0] > needs[1]["pooled"]
    lines = "\n".join(defended_lines(differ))
    assert f"the largest own chain would need {np.median(differ.by_chance):.4g} (in 20 simulations" in lines
    assert pf.fit_defend(people()).by_chance == differ.by_chance  # seeded


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cover": 1.0}, "cover is 1.0, expected a share of people"),
        ({"cover": "all"}, "cover is 'all'"),
        ({"slower": 0.5}, "slower is 0.5, expected a factor from 1"),
        ({"people": 0}, "people is 0"),
        ({"drop_slowest": True}, "drop_slowest leaves out as many people as cover allows"),
    ],
)
def test_refusals(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        pf.fit_defend(people(), **arguments)  # type: ignore[arg-type]


def test_from_a_table_to_a_release_on_the_command_line(tmp_path: Path) -> None:
    survey, model, private, out = (str(tmp_path / name) for name in ("s.csv", "m.json", "p.csv", "r.json"))
    table([0.8, 0.85, 0.9], seed=5).write_csv(survey)
    reading = ["--state", "s", "--subject", "who", "--time", "t", "--max-gap", "1"]
    said = run("fit", survey, *reading, "--defend", "--slower", "1.2", "--output", model)
    assert said.exit_code == 0, said.output
    for words in ("in: one chain of all", "in: everybody's own chain: noise", "decides: own chain of p02, stays 1.2"):
        assert words in said.stdout
    assert "no share of others can be defended" in said.stdout
    assert "hours of the day were not tried" in said.stdout
    table([0.85], seed=6, steps=300).write_csv(private)
    done = run(
        "release", private, *reading, "--model", model, "--query", "histogram", "--epsilon", "1", "--output", out
    )
    assert done.exit_code == 0, done.output
    assert run("verify", out).exit_code == 0
    assert "no share of others can be defended" in run("show", out).stdout
    assert "--cover belongs to --defend" in refused("fit", survey, *reading, "--cover", "0.9", "--output", model)
    few = refused("fit", survey, *reading, "--defend", "--cover", "0.9", "--output", str(tmp_path / "few.json"))
    assert "own chains of 3 people say nothing of others: leave out --cover" in few
    assert "leave out --stays" in refused("fit", survey, *reading, "--defend", "--stays", "--output", model)


def test_one_day_cannot_be_asked_and_a_state_that_never_was_is_named(tmp_path: Path) -> None:
    survey, model = str(tmp_path / "s.csv"), str(tmp_path / "m.json")
    lines = [f"2024-05-01 {m // 60:02}:{m % 60:02},{'ab'[m // 7 % 2]}" for m in range(1440)]
    Path(survey).write_text("\n".join(["t,s", *lines]))
    fit = ["fit", survey, "--state", "s", "--time", "t", "--max-gap", "1min", "--output", model, "--overwrite"]
    said = run(*fit, "--defend")
    assert said.exit_code == 0, said.output
    for kind in ("hours of the day", "a longer memory (order 2)", "several kinds of stay"):
        assert f"cannot be tried: {kind}: there is only one day, so no day can be left out" in said.stdout
    assert "cannot be tried: everybody's own chain: fewer than two subjects have 2,000 transitions" in said.stdout
    assert "not demanded" not in said.stdout
    assert said.stderr == ""
    for how in (["--defend"], []):
        assert run(*fit, *how, "--states", "a,b,c").stderr.startswith(
            "warning: States that never occur in the table: 'c'. Their rows are invented from other rows, and "
            "they need noise too: for a histogram at ε = 1 one chain of all needs a noise multiplier of "
        )


def test_noise_to_compare_is_what_a_calibration_finds() -> None:
    stays = pf.StaysChain([[0, 1], [1, 0]], [[(0.8, 0.5), (0.2, 0.98)], [(1.0, 0.7)]])
    for model in (pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), stays):
        bound = pf.LeakagePropagation(model, 10**6)
        found = bound.noise_to_compare(pf.Histogram(), 1.0)
        assert found == pytest.approx(bound.calibrate(pf.Histogram(), 1.0).noise_multiplier, rel=1e-9)
        assert bound.leakage(1 / found) <= 1 + 1e-6


@pytest.mark.slow
def test_progress_names_the_member_and_moves() -> None:
    seen: list[tuple[str, float]] = []
    rows = {"who": ["a", "b"], "s": [list("rrrrw" * 500), list("rrwwr" * 500)]}
    table = pl.DataFrame(rows).explode("s").with_row_index("t")
    data = pf.read_sequences(table, "s", subject="who", time="t", max_gap=1, daily=True)
    with listening(lambda task, share: seen.append((task, share))):
        pf.fit_defend(data)
    own = [share for task, share in seen if task.startswith("everybody's own chain, b (2 of 2): ")]
    assert own
    assert min(own) >= 0.5


@pytest.mark.parametrize("day", [math.nan, math.inf, -math.inf])
def test_what_cannot_be_compared_is_demanded(day: float) -> None:
    """A day that is impossible under both of two laws says nothing against the larger class."""
    assert _sum_of(np.array([0.5, day, -1.0])).demanded
