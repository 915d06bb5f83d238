"""Releases against a model: right classes are not called wrong, wrong ones are found, and what cannot be compared."""

import json
import math
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish.errors import ParameterError
from pufferfish.release.against import Part, allowed, allowed_after, chain_sums, network_sums, step_bounds
from pufferfish.release.facts import DataRecord
from release_cases import releases

STATES = ["home", "ward", "icu"]
HABITS = np.array([[0.9, 0.09, 0.01], [0.25, 0.65, 0.1], [0.05, 0.45, 0.5]])
OTHERS = np.array([[0.8, 0.19, 0.01], [0.25, 0.65, 0.1], [0.05, 0.45, 0.5]])
CHAIN = pf.MarkovChain(HABITS, states=STATES)
NIGHT = np.array([[0.99, 0.01, 0.0], [0.6, 0.4, 0.0], [0.05, 0.45, 0.5]])
PEOPLE, STEPS, SCALE = 150, 12, 9.0

Kernel = tuple[list[np.ndarray], np.ndarray]


def walks(kernels: list[np.ndarray], seen: np.ndarray, start: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return what is seen of people who go by these matrices in turn; shape (people, steps)."""
    at = np.array([rng.choice(len(law), p=law) for law in start])
    columns = [at]
    for t in range(STEPS - 1):
        sums = np.cumsum(kernels[t % len(kernels)], axis=1)
        at = np.minimum((rng.random(len(at))[:, None] > sums[at]).sum(axis=1), len(sums) - 1)
        columns.append(at)
    return seen[np.array(columns).T]


def of_chain(chain: Any, rng: np.random.Generator) -> np.ndarray:
    if isinstance(chain, pf.PeriodicChain):
        return walks(list(chain.cycle), np.arange(3), np.tile(chain.periodic_distribution[0], (PEOPLE, 1)), rng)
    if isinstance(chain, pf.MarkovChain):
        law = chain.stationary_distribution
        law = (
            np.eye(3)[0] if isinstance(chain.initial_distribution, str) and chain.initial_distribution == "any" else law
        )
        return walks([chain.transition_matrix], np.arange(3), np.tile(law, (PEOPLE, 1)), rng)
    seen = chain.tuples[:, -1 if isinstance(chain, pf.HigherOrderChain) else 0]
    return walks([chain.kernel], seen, np.tile(chain.stationary_distribution.ravel(), (PEOPLE, 1)), rng)


TENSOR = np.stack([0.7 * HABITS + 0.3 * np.eye(3)[0], HABITS, 0.8 * HABITS + 0.2 * np.eye(3)[2]])
SWAP = [[0, 0.9, 0.1], [0.8, 0, 0.2], [0.2, 0.8, 0]]
RIGHT = {
    "one chain": (CHAIN, CHAIN),
    "any start": (pf.MarkovChain(HABITS, "any", states=STATES),) * 2,
    "a clock": (pf.PeriodicChain([HABITS, HABITS, NIGHT], states=STATES),) * 2,
    "order two": (pf.HigherOrderChain(TENSOR, states=STATES),) * 2,
    "stays": (pf.StaysChain(SWAP, [[(0.7, 0.5), (0.3, 0.95)], [(1.0, 0.6)], [(1.0, 0.5)]], states=STATES),) * 2,
    "half by either": (
        pf.ChainClass((CHAIN, pf.MarkovChain(OTHERS, states=STATES))),
        (CHAIN, pf.MarkovChain(OTHERS, states=STATES)),
    ),
    "between bounds": (pf.IntervalChain(HABITS * 0.8, np.minimum(HABITS * 1.25, 1), states=STATES), CHAIN),
}


def laplace(rng: np.random.Generator, size: Any) -> np.ndarray:
    p = 1 - np.exp(-1 / SCALE)
    return rng.geometric(p, size) - rng.geometric(p, size)


def called_wrong(theta: Any, gaps: bool, rng: np.random.Generator, people: Any, times: int) -> list[bool]:
    """Return whether anything of simulated releases, of counts of states and of steps, is called wrong."""
    theta = theta if isinstance(theta, pf.ChainClass | pf.IntervalChain) else pf.ChainClass((theta,))
    there = np.ones((PEOPLE, STEPS), dtype=bool)
    if gaps:
        there = rng.random((PEOPLE, STEPS)) < 0.8
        there[:, [0, -1]] = True
    joined = there[:, 1:] & there[:, :-1]
    data = DataRecord(None, PEOPLE, PEOPLE, int(there.sum()), STEPS, steps=int(joined.sum()))
    of = None if isinstance(theta, pf.IntervalChain) else chain_sums(theta)
    nats = math.log(2 * (21 if of else 9) / 0.01)
    limits: list[Any] = []
    for query, outputs in ((pf.Histogram(), 3), (pf.Transitions(), 9)):
        bound = query.bind(STATES, data.records)
        limits += [allowed([Part(1.0, *of(bound, o, data), (SCALE,))], nats) for o in range(outputs)] if of else []
    low, high = step_bounds(theta)
    wrong: list[bool] = []
    for _ in range(times):
        seen = people(rng)
        counts = np.array([(seen == x)[there].sum() for x in range(3)]) + laplace(rng, 3)
        pairs = (3 * seen[:, :-1] + seen[:, 1:])[joined]
        steps = np.bincount(pairs, minlength=9) + laplace(rng, 9)
        numbers = [*counts, *steps] if of else []
        found = [not limit.least <= value <= limit.most for limit, value in zip(limits, numbers, strict=True)]
        for x in range(3):
            row = steps[3 * x : 3 * x + 3].astype(float)
            for y in range(3):
                if row.sum() > 0:
                    limit = allowed_after(low[x, y], high[x, y], [(row, [(SCALE,)] * 3)], y, nats)
                    found.append(not limit.least <= row[y] / row.sum() <= limit.most)
        wrong.append(any(found))
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_hardly_ever_called_wrong(name: str, gaps: bool) -> None:
    theta, who = RIGHT[name]
    if name == "half by either":

        def people(rng: np.random.Generator) -> np.ndarray:
            one, other = (of_chain(chain, rng) for chain in who)
            return np.concatenate([one[: PEOPLE // 2], other[PEOPLE // 2 :]])
    else:

        def people(rng: np.random.Generator) -> np.ndarray:
            return of_chain(who, rng)

    wrong = called_wrong(theta, gaps, np.random.default_rng(3), people, 60)
    assert sum(wrong) <= 2  # at most 1%: of 60 more than 2 come in one case of 40


def test_every_piece_that_is_read_as_a_chain_may_begin_with_any_law() -> None:
    days = [(who, date(2024, 1, 1 + 3 * piece + n), "ab"[n]) for who in range(90) for piece in range(9) for n in (0, 1)]
    table = pl.DataFrame(days, schema=["who", "day", "state"], orient="row")
    chain = pf.MarkovChain([[0.1, 0.9], [0.1, 0.9]], "any", states=["a", "b"])
    reading: Any = {"state": "state", "subject": "who", "time": "day", "max_gap": "1d"}
    said = {}
    for gaps in ("independent", "unobserved"):
        data = pf.read_sequences(table, **reading, gaps=gaps)
        noise = pf.LeakagePropagation(chain, data.length).calibrate(pf.Count("a"), epsilon=5)
        (number,) = pf.check_released(chain, pf.release(data, pf.Count("a"), noise)).numbers
        said[gaps] = number.contradicts
    assert said == {"independent": False, "unobserved": True}  # half of the records, and a tenth of all later ones


@pytest.mark.parametrize("name", [name for name in RIGHT if name not in ("any start", "half by either")])
def test_what_is_wrong_is_found(name: str) -> None:
    far = pf.MarkovChain([[0.5, 0.4, 0.1], [0.1, 0.5, 0.4], [0.3, 0.3, 0.4]], states=STATES)
    wrong = called_wrong(RIGHT[name][0], False, np.random.default_rng(4), lambda rng: of_chain(far, rng), 10)
    assert all(wrong)


# -- Whole releases --------------------------------------------------------------------------------------------------


def table(habits: np.ndarray, seed: int, people: int = 500) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    law = pf.MarkovChain(habits).stationary_distribution
    at = rng.choice(3, people, p=law)
    rows = []
    for day in range(7):
        rows += [(f"p{i}", 7 * seed + day, STATES[x], "fm"[i % 2]) for i, x in enumerate(at)]
        at = (rng.random(people)[:, None] > np.cumsum(habits, axis=1)[at]).sum(axis=1)
    return pl.DataFrame(rows, ["who", "day", "place", "sex"], orient="row")


@cache
def week(habits: str, seed: int, query: Any, by: str | None = None, model: Any = CHAIN, **more: str) -> pf.Release:
    data = pf.read_sequences(
        table({"these": HABITS, "others": OTHERS}[habits], seed), "place", subject="who", states=STATES, by=by
    )
    return pf.release(data, query, pf.LeakagePropagation(model, data.length).calibrate(query, 1.0, **more))  # type: ignore[arg-type]


def four_weeks(habits: str, query: Any) -> list[pf.Release]:
    """Return releases that differ: of a single number two can be equal by chance, and are then taken for one."""
    found = dict[tuple[float, ...], pf.Release]()
    for seed in range(6):
        release = week(habits, seed, query)
        found.setdefault(tuple(release.noisy_values), release)
    return list(found.values())[:4]


@pytest.mark.parametrize("query", [pf.Histogram(), pf.Histogram(relative=True), pf.Transitions(), pf.Switches()])
def test_releases_fit_the_chain_they_are_of_and_no_other(query: Any) -> None:
    right = pf.check_released(CHAIN, four_weeks("these", query))
    assert right.verdict.word == "go on"
    assert "the releases fit Θ" in right.verdict.reasons[0]
    assert "departures are not seen that are smaller than" in right.verdict.reasons[1]
    assert {"all 4", "second half less first"} <= {n.release for n in right.numbers}
    wrong = pf.check_released(CHAIN, four_weeks("others", query))
    assert wrong.verdict.word in ("do not go on", "in doubt")
    assert "the releases do not fit Θ" in str(wrong)
    assert any(n.contradicts and n.release == "all 4" for n in wrong.numbers)


def test_numbers_are_those_of_the_record_and_of_the_model() -> None:
    release = week("these", 1, pf.Histogram(relative=True))
    numbers = pf.check_released(CHAIN, release).numbers
    assert [n.released for n in numbers] == pytest.approx(release.noisy_values)
    assert [n.low for n in numbers] == pytest.approx(CHAIN.stationary_distribution, rel=1e-4)
    b = release.noise.one_scale
    assert numbers[0].noise == pytest.approx(math.sqrt(1 / (2 * math.sinh(1 / (2 * b)) ** 2)) / 3500)
    shares = [np.mean(table(HABITS, seed)["place"].to_numpy() == "home") for seed in range(100, 180)]
    assert numbers[0].sampling == pytest.approx(np.std(shares), rel=0.3)  # 80 tables know it to 8%


def test_a_change_of_habits_is_found_where_the_class_has_both() -> None:
    both = pf.ChainClass((CHAIN, pf.MarkovChain(OTHERS, states=STATES)))
    releases = [week("these", 1, pf.Histogram()), week("these", 2, pf.Histogram())]
    releases += [week("others", 3, pf.Histogram()), week("others", 4, pf.Histogram())]
    check = pf.check_released(both, releases)
    assert check.verdict.word == "go on"  # people may change from one to the other
    assert any(
        n.release == "second half less first" for n in pf.check_released(CHAIN, releases).numbers if n.contradicts
    )


def test_noise_that_leaks_more_under_the_chain_transitions_point_to() -> None:
    sticky = np.array([[0.999, 0.001, 0.0], [0.001, 0.998, 0.001], [0.0, 0.001, 0.999]])
    rows = [(f"p{i}", STATES[i % 3]) for i in range(300) for _ in range(40)]
    data = pf.read_sequences(pl.DataFrame(rows, ["who", "place"], orient="row"), "place", subject="who", states=STATES)
    query = pf.Transitions()
    check = pf.check_released(
        CHAIN, pf.release(data, query, pf.LeakagePropagation(CHAIN, data.length).calibrate(query, 1.0))
    )
    assert check.verdict.word == "do not go on"
    (leak,) = check.leaks
    assert leak.leakage is not None
    assert leak.leakage > 1.5
    assert np.allclose(check.points_to, sticky, atol=0.03)
    assert f"noise sold as ε = 1 leaks {leak.leakage:.3g}"[:28] in str(check)


def test_groups_are_compared_together() -> None:
    check = pf.check_released(CHAIN, week("these", 2, pf.Histogram(), "sex"))
    alone = pf.check_released(CHAIN, week("these", 2, pf.Histogram()))
    assert check.verdict.word == "go on"
    assert check.numbers[0].noise == pytest.approx(alone.numbers[0].noise * math.sqrt(2))
    best = week("these", 2, pf.CDF(), None, CHAIN, noise="best")
    assert pf.check_released(CHAIN, best).verdict.word == "go on"


def test_what_cannot_be_compared_is_said_in_a_line() -> None:
    forgets = pf.ForgettingClass(3, 0.3, STATES)
    check = pf.check_released(forgets, [week("these", 1, pf.Transitions())])
    assert check.verdict.word == "in doubt"
    assert "the releases tell nothing of Θ" in check.verdict.reasons[0]
    assert len(check.not_compared) == 2
    between = RIGHT["between bounds"][0]
    check = pf.check_released(between, [week("these", 1, pf.Transitions()), week("these", 1, pf.Histogram())])
    assert check.verdict.word == "go on"
    assert "say no law of the states" in str(check)
    mixed = pf.ChainClass((CHAIN, forgets))
    assert pf.check_released(mixed, week("others", 1, pf.Histogram())).verdict.word == "in doubt"
    first = pf.Window(pf.Histogram(), 0, 3)
    chain = pf.read_sequences(pl.DataFrame({"s": ["home", "ward", "icu"]}), "s", states=STATES)
    part = pf.release(chain, first, pf.LeakagePropagation(CHAIN, 3).calibrate(first, 1.0))
    assert "is not compared" in str(pf.check_released(CHAIN, part))


@pytest.mark.parametrize(
    ("reading", "apart"),
    [
        ({}, "nobody knows how far apart its records are"),
        ({"time": "day"}, "nobody knows how far apart its records are"),
        ({"time": "day", "max_gap": "1d"}, "its records are 1d apart"),
        ({"time": "day", "max_gap": "2d", "step": "1h"}, "records up to 2d apart count as one step of 1h"),
    ],
)
def test_records_of_another_step_than_the_models_are_not_compared(reading: Any, apart: str) -> None:
    days = [(who, date(2024, 1, 1 + n), "ab"[n % 2]) for who in range(50) for n in range(30)]
    data = pf.read_sequences(
        pl.DataFrame(days, schema=["who", "day", "state"], orient="row"), "state", subject="who", **reading
    )
    by_the_hour = np.array([[0.99, 0.01], [0.01, 0.99]])
    chain = pf.MarkovChain(by_the_hour, states=["a", "b"])
    release = pf.release(data, pf.Switches(), pf.GroupDP(chain, data.length).calibrate(pf.Switches(), 5.0))
    for model in (
        pf.Model(theta=chain, step="1h"),
        pf.PeriodicChain([by_the_hour] * 24, clock="hour", step="1h", states=["a", "b"]),
    ):
        check = pf.check_released(model, release)
        assert (check.verdict.word, check.numbers) == ("in doubt", ())
        assert apart in str(check)


def test_networks_are_held_against_their_marginals() -> None:
    def network(wet: float) -> pf.BayesianNetwork:
        rain = pf.CPT(["no", "yes"], [0.8, 0.2])
        return pf.BayesianNetwork(
            {"rain": rain, "wet": pf.CPT(["no", "yes"], [[1 - wet, wet], [0.05, 0.95]], ["rain"])}
        )

    rng = np.random.default_rng(5)
    rain = rng.random(4000) < 0.2
    wet = np.where(rain, rng.random(4000) < 0.95, rng.random(4000) < 0.1)
    words = np.array(["no", "yes"])
    table, bound = pl.DataFrame({"rain": words[rain.astype(int)], "wet": words[wet.astype(int)]}), network(0.1)
    for query, joint in ((pf.Marginals(), None), (pf.Joint(["rain", "wet"]), ["rain", "wet"])):
        rows = pf.read_rows(table, bound, joint=joint)
        release = pf.release(rows, query, pf.LeakagePropagation(bound, length=rows.length).calibrate(query, 1.0))
        assert pf.check_released(network(0.1), release).verdict.word == "go on"
        assert pf.check_released(network(0.3), release).verdict.word == "do not go on"
    others = pf.BayesianNetwork({"sun": pf.CPT(["no", "yes"], [0.8, 0.2]), "wet": pf.CPT(["no", "yes"], [0.7, 0.3])})
    for query, says in ((pf.Marginals(), "its numbers have other names"), (pf.Joint(["rain", "wet"]), "'rain'")):
        rows = pf.read_rows(table, bound, joint=["rain", "wet"])
        noise = pf.LeakagePropagation(bound, length=rows.length).calibrate(query, 1.0)
        check = pf.check_released(others, pf.release(rows, query, noise))
        assert not check.numbers
        assert says in str(check)
    of_chain = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["no", "yes"])
    assert "it is of a class of" in str(pf.check_released(of_chain, release))
    query = pf.LeakagePropagation(bound, length=4000).calibrate(pf.Marginals(), 1.0).linear
    sums, *_ = network_sums(pf.ModelClass((bound,)))(query, 1, release.data)  # type: ignore[arg-type]
    assert float(sums(np.array([0.5]))[0]) == pytest.approx(4000 * math.log(0.8 + 0.2 * math.exp(0.5)))


def test_every_kind_of_release_is_compared_or_named(slow: bool) -> None:
    for name, release in releases(1 if slow else 17):
        theta = release.theta.any_theta()
        if theta is None or not (theta.of_chains or theta.networks):
            continue
        check = pf.check_released(theta, release)
        assert check.numbers or check.not_compared, name
        assert check.verdict.reasons
        for n in check.numbers:
            assert n.least <= n.low <= n.high <= n.most, (name, n)
            assert math.isfinite(n.noise), (name, n)


def test_what_is_no_release_of_these_states_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="there is no release"):
        pf.check_released(CHAIN, [])
    with pytest.raises(ParameterError, match="expected a release or its file"):
        pf.check_released(CHAIN, [3])
    with pytest.raises(ParameterError, match="name the model of these records"):
        pf.check_released(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), week("these", 1, pf.Histogram()))


def test_the_command_reads_releases_alone_and_keeps_nothing(tmp_path: Path) -> None:
    model, output = tmp_path / "model.json", tmp_path / "check.json"
    pf.write_model(pf.Model(theta=CHAIN), model)
    before = model.read_bytes()
    files = []
    for seed in range(2):
        files.append(tmp_path / f"week{seed}.json")
        week("others", seed, pf.Histogram()).to_json(files[-1])
    result = run("check", model, "--released", *files, "--output", output)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Do not go on.\n  - the releases do not fit Θ: ")
    assert "is not kept in the model" in result.stdout
    assert model.read_bytes() == before
    assert json.loads(output.read_text())["kind"] == "releases"
    refused("check", model, "--released", *files, "--output", output, says=["--overwrite"])
    refused("check", model, "--released", *files, "--state", "s", "--accept", "public", says=["--state, --accept"])
    refused("check", model, "--released", model, says=["model.json"])
