"""Whether a model describes public data: numbers against plain loops, and verdicts on simulated data."""

import math
import re
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from pufferfish._base.words import at_most
from pufferfish.check.check import lasting, observed
from pufferfish.check.record import RicherModel
from pufferfish.check.shown import draw_check
from pufferfish.check.words import text_of, verdict_of
from pufferfish.errors import DataError, NotApplicableError, ParameterError
from pufferfish.fit.left_out import LeftOut
from pufferfish.fit.members import Members, largest_by_chance

START = datetime(2024, 3, 4)
READING: dict[str, Any] = {"subject": "who", "time": "at", "max_gap": "30min"}
CALM, BUSY = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[0.6, 0.4], [0.5, 0.5]])


def simulated(laws: Any, subjects: int, length: int, seed: int) -> pl.DataFrame:
    """A table with a record each half hour; ``laws(subject, hour)`` is the matrix of the step that begins then."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, datetime, str]] = []
    for s in range(subjects):
        state = 0
        for t in range(length):
            at = START + timedelta(minutes=30 * t)
            rows.append((f"s{s}", at, "ab"[state]))
            state = int(rng.random() < laws(s, at.hour)[state][1])
    return pl.DataFrame(rows, schema=["who", "at", "s"], orient="row")


def checked(table: Any, model: Any = None, **options: Any) -> pf.ModelCheck:
    chain = pf.fit_chain(pf.read_sequences(table, "s", **READING)) if model is None else model
    return pf.check_model(chain, table, "s", public=True, **(READING | options))


def test_a_class_is_scored_by_the_best_member_for_everybody() -> None:
    """Against plain loops over all transitions; order 2 is as good as the pooled chain where the past is not known."""
    table = simulated(lambda s, h: CALM if s else BUSY, subjects=3, length=300, seed=1)
    data = pf.read_sequences(table, "s", daily=True, clock="hour", **READING)
    left_out, rng = LeftOut(data), np.random.default_rng(0)
    hours = rng.dirichlet([3, 3], (24, 2))
    tensor = rng.dirichlet([3, 3], (2, 2))
    calm, busy = (pf.MarkovChain(matrix, states=["a", "b"]) for matrix in (CALM, BUSY))
    clock = pf.PeriodicChain(hours, clock="hour", step="30min", states=["a", "b"])
    longer = pf.HigherOrderChain(tensor, states=["a", "b"])
    pooled, _ = left_out.best_of([calm])

    def log_likelihood(who: str, law: Any) -> float:
        mine = table.filter(pl.col("who") == who).rows()
        seen = [(at.hour, "ab".index(x)) for _, at, x in mine]
        return sum(law(seen[t - 1] if t else None, seen[t], seen[t + 1][1]) for t in range(len(seen) - 1))

    laws = {
        "calm": lambda z, x, y: math.log(CALM[x[1], y]),
        "busy": lambda z, x, y: math.log(BUSY[x[1], y]),
        "clock": lambda z, x, y: math.log(hours[x[0], x[1], y]),
        "longer": lambda z, x, y: 0.0 if z is None else math.log(tensor[z[1], x[1], y] / CALM[x[1], y]),
    }
    each = {name: [log_likelihood(f"s{s}", law) for s in range(3)] for name, law in laws.items()}
    subject = left_out._subject
    for models, names in (([calm, busy], ["calm", "busy"]), ([clock], ["clock"])):
        gained, member = left_out.best_of(models)
        assert member.tolist() == [int(np.argmax([each[name][s] for name in names])) for s in range(3)]
        for s in range(3):
            best = max(each[name][s] for name in names)
            assert (gained - pooled)[subject == s].sum() == pytest.approx(best - each["calm"][s])
    with_past, _ = left_out.best_of([longer])
    assert data.daily is not None
    unknown = data.daily.steps.earlier < 0
    first = np.log(left_out._pooled[unknown] / CALM[0, data.daily.steps.state[unknown]])
    assert (with_past - pooled).sum() == pytest.approx(sum(each["longer"]) + first.sum())
    kinds = [[(0.7, 0.4), (0.3, 0.9)], [(1.0, 0.6)]]
    stays = pf.StaysChain([[0, 1], [1, 0]], kinds, states=["a", "b"])
    runs = data.daily.runs
    want = 0.0
    for state, lasted, begun, following, number_ in zip(
        runs.state, runs.lasted, runs.begun, runs.following, runs.number, strict=True
    ):
        for chain, sign in ((kinds, 1), ([[(1.0, CALM[x, x])] for x in (0, 1)], -1)):
            ends = [share * keep ** (lasted - 1) * (1 - keep if following >= 0 else 1) for share, keep in chain[state]]
            want += sign * number_ * math.log(sum(ends)) if begun else 0.0
    one_kind = pf.StaysChain([[0, 1], [1, 0]], [[(1.0, CALM[x, x])] for x in (0, 1)], states=["a", "b"])
    assert (left_out.best_of([stays])[0] - left_out.best_of([one_kind])[0]).sum() == pytest.approx(want)
    assert left_out.gain_over("own", pooled).nats == pytest.approx(
        left_out.gain("own", "pooled").nats - float(pooled.sum())
    )


def test_stays_count_those_that_were_cut_off() -> None:
    assert observed(np.array([0, 2, 1]), np.array([0])) == (pytest.approx(4 / 3), 2.0)
    # of 4 stays one ends after 1 record and one is cut off then; of the 2 left one ends after 3, one goes on
    mean, high = observed(np.array([0, 1, 0, 1]), np.array([0, 1, 0, 0, 1])) or (0, 0)
    assert mean == pytest.approx(1 + 3 / 4 + 3 / 4 + 3 / 8)
    assert math.isinf(high)
    assert observed(np.array([0]), np.array([0, 3])) is None
    for kinds in ([(1.0, 0.0)], [(1.0, 0.3)], [(1.0, 0.9)], [(0.8, 0.5), (0.2, 0.99)]):
        mean, high = lasting(kinds)
        law = [sum(share * (1 - keep) * keep**n for share, keep in kinds) for n in range(10_000)]
        assert mean == pytest.approx(sum((n + 1) * p for n, p in enumerate(law)))
        assert sum(law[: int(high)]) >= 0.95 - 1e-12
        assert sum(law[: int(high) - 1]) < 0.95
    assert lasting([(1.0, 1.0)]) == (math.inf, math.inf)


def days_of_people(laws: Any, seed: int, people: int = 6, days: int = 10, strength: float = 0.0) -> pl.DataFrame:
    """People with a record every half hour, each day by a matrix of its own where days differ."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, datetime, str]] = []
    for who in range(people):
        state = 0
        for day in range(days):
            matrix = np.array([rng.dirichlet(strength * row) if strength else row for row in laws(who)])
            for t in range(48):
                rows.append((f"s{who}", START + timedelta(days=day, minutes=30 * t), "ab"[state]))
                state = int(rng.random() < matrix[state][1])
    return pl.DataFrame(rows, schema=["who", "at", "s"], orient="row")


@pytest.mark.slow
def test_people_who_are_alike_are_not_told_apart_though_their_days_differ(slow: bool) -> None:
    wrong, least = 0, 1.0
    for seed in range(40 if slow else 3):
        found = checked(days_of_people(lambda who: CALM, seed, strength=60.0))
        wrong += found.verdict.word == "do not go on"
        wrong += any(subject.differs for subject in found.subjects)
        least = min(least, max(each.leakage or 0.0 for each in found.richer if each.kind != "forgets"))
    assert wrong <= 1
    assert least > 1 / 1.01  # that some noise leaks more is a doubt, and no verdict


def test_data_of_one_chain_fit_it() -> None:
    found = checked(simulated(lambda s, h: CALM, subjects=4, length=700, seed=0))
    assert found.verdict.word == "go on"
    assert "left-out days are not clearly likelier under one chain of these data, everybody's own" in str(found.verdict)
    assert "are few" not in str(found.verdict)
    leaks = {each.kind: each.leakage for each in found.richer}
    assert leaks["pooled"] == pytest.approx(1.0, rel=1e-6)
    for stay in found.stays:
        assert stay.observed is not None
        assert stay.least is not None
        assert stay.observed[0] == pytest.approx(stay.least[0], rel=0.1)
    for overlap in found.overlaps[:4]:
        assert overlap.pooled == pytest.approx(overlap.model, abs=0.05)


@pytest.mark.slow
def test_what_leaks_more_but_predicts_no_better_is_a_doubt() -> None:
    table = simulated(lambda s, h: CALM, subjects=6, length=300, seed=4)
    found = checked(table)
    own = next(each for each in found.richer if each.kind == "own")
    assert found.verdict.word == "go on"
    doubts = [reason for reason in found.verdict.reasons if reason.startswith("a doubt: ")]
    (doubt,) = (reason for reason in doubts if "own chain of s" in reason)
    assert f"would leak up to {at_most(own.leakage or 0.0, 3)} to whoever knows the own chain of s" in doubt
    assert f"({own.nats:,.0f} nats, standard error {own.error:,.0f})" in doubt
    counts = Members(pf.read_sequences(table, "s", daily=True, **READING)).transitions
    chance = largest_by_chance(counts)[-1]
    assert own.by_chance == chance > (found.noise_multiplier or 0.0)
    assert f"own chains would by chance need up to {chance:.3g} at ε = 1" in doubt
    assert f"(multiplier {own.noise_multiplier:.3g} instead of {found.noise_multiplier:.3g})" in doubt
    assert str(found) == str(checked(table))  # chance is drawn alike
    leaking = [each for each in found.richer if (each.leakage or 0.0) > 1.005 and each.kind != "forgets"]
    (remedy,) = found.verdict.remedies
    assert remedy.noise_multiplier == max(each.noise_multiplier or 0.0 for each in leaking)
    assert "if an adversary may know more:\n  pufferfish fit TABLE --state s --subject who" in str(found.verdict)
    assert any(reason.startswith("a cautious estimate: the noise leaks up to") for reason in found.verdict.reasons)
    safe = checked(table, pf.MarkovChain([[0.99, 0.01], [0.01, 0.99]], states=["a", "b"]))
    assert all(each.leakage is None or each.leakage < 1 for each in safe.richer)
    assert safe.verdict.word == "go on"
    assert not safe.verdict.remedies
    assert "doubt" not in str(safe.verdict)
    assert "Go on." in (title := draw_check(found).get_suptitle())
    assert "…" not in title


def richer(kind: str, leakage: float | None, needs: float | None, nats: float = -1.0, **more: Any) -> RicherModel:
    return RicherModel(kind=kind, leakage=leakage, noise_multiplier=needs, nats=nats, error=3.0, **more)


def judged(models: list[RicherModel], people: int = 40, noise: float | None = 5.0, **differs: float) -> pf.Verdict:
    """The verdict on people of 60 transitions each, some of whom differ, with what the noise leaks for them."""
    subjects = [
        pf.SubjectCheck(
            subject=f"R{i}",
            transitions=60,
            nats=30.0 - i,
            error=2.0,
            differs=f"R{i}" in differs,
            leakage=differs.get(f"R{i}", 0.9),
        )
        for i in range(people)
    ]
    return verdict_of(models, subjects, epsilon=1.0, noise=noise)


def test_one_subject_that_clearly_differs_is_not_outvoted() -> None:
    models = [richer("own", 1.78, 8.0, decided_by="own chain of R9")]
    assert judged(models).word == "go on"
    said = judged(models, R7=1.5)
    assert said.word == "do not go on"
    assert said.reasons[0].startswith("habits of R7 (23 nats, standard error 2) differ from those of the others")
    assert said.reasons[0].endswith("would leak up to 1.5 to whoever knows the habits of R7")
    assert said.remedies[0].command == "pufferfish fit TABLE --each-subject --output own.json"
    assert said.remedies[0].noise_multiplier == 8.0
    covered = judged(models, R7=0.8)
    assert covered.word == "go on"
    many = judged(models, **{f"R{i}": 1.2 for i in range(9)})
    assert "R0 (30 nats, standard error 2), R1 (29 nats, standard error 2)" in many.reasons[0]
    assert "and 6 more differ" in many.reasons[0]


def test_what_makes_days_likeliest_is_fitted_first_and_what_covers_all_is_named() -> None:
    models = [richer("own", 2.0, 7.0, 50.0), richer("hour", 1.5, 12.0, 30.0), richer("order2", 0.9, 5.0, 20.0)]
    said = judged(models)
    assert said.word == "do not go on"
    assert [remedy.kind for remedy in said.remedies] == ["own", "hour"]
    assert "the noise covers that: it leaks up to 0.9" in said.reasons[2]
    unlikely = judged([richer("pooled", 1.0, 5.0), richer("stays", 1.8, 9.0, -40.0)])
    assert not any("doubt" in reason for reason in unlikely.reasons)  # days are clearly less likely under it


@pytest.mark.parametrize(
    "models",
    [
        [richer("pooled", math.nan, 6.0, 20.0)],
        [richer("pooled", 1.0, 5.0), RicherModel(kind="hour", nats=40.0, error=3.0, reason="why not")],
        [RicherModel(kind="own", reason="why not"), richer("forgets", 0.9, 4.0)],
        [richer("pooled", math.inf, math.inf, 20.0)],
        [richer("pooled", 1.3, 6.0, math.inf)],
    ],
)
def test_what_is_not_known_is_no_yes(models: list[RicherModel]) -> None:
    assert judged(models).word != "go on"
    assert judged([richer("pooled", 1.0, 5.0)]).word == "go on"
    assert judged([richer("pooled", None, None)], noise=None).word == "in doubt"
    assert judged([RicherModel(kind="pooled", leakage=1.0, nats=0.0, error=math.inf)]).word == "in doubt"
    assert judged([richer("pooled", 1.0, 5.0)], people=5).word == "in doubt"


def test_an_estimate_counts_against_a_continuum_only_if_its_days_drawn_again_do() -> None:
    for least, word in ((4.0, "go on"), (6.0, "do not go on")):
        said = judged([RicherModel(kind="pooled", leakage=1.3, noise_multiplier=7.0, least=least)])
        assert said.word == word
    assert "resampled days say that a multiplier of 4 may be enough" in str(
        judged([RicherModel(kind="pooled", leakage=1.3, noise_multiplier=7.0, least=4.0)])
    )


@pytest.mark.slow
def test_details_are_told_where_they_matter() -> None:
    by_hour = checked(simulated(lambda s, h: CALM if h < 12 else BUSY, subjects=3, length=700, seed=5))
    same = checked(simulated(lambda s, h: CALM, subjects=3, length=700, seed=0))
    by_subject = checked(simulated(lambda s, h: BUSY if s else CALM, subjects=3, length=400, seed=6))
    hours, subjects, overlaps = (
        "share of each state by the hour",
        "left-out days of each subject",
        "overlap of the laws",
    )
    for found, short in ((by_hour, {hours}), (same, set[str]()), (by_subject, {subjects})):
        assert all(part in str(found) for part in (hours, subjects, overlaps))
        told = text_of(found, details=False)
        assert {part for part in (hours, subjects, overlaps) if part in told} == short


def test_columns_have_headings_and_subjects_are_in_natural_order() -> None:
    laws = {s: BUSY if s % 2 else CALM for s in range(11)}
    lines = str(checked(simulated(lambda s, h: laws[s], subjects=11, length=100, seed=2))).splitlines()
    cells = [re.split(" {2,}", line.strip()) for line in lines]
    assert ["to whoever knows", "leakage", "multiplier it needs", "likelier by"] in [row[:4] for row in cells]
    assert ["steps", "all data", "model", "least forgetful subject", "who"] in cells
    listed = [line.split()[0] for line in lines if line.startswith("  s") and line.split()[1] == "99"]
    assert listed == [f"s{i}" for i in range(11)]


@pytest.mark.slow
def test_hours_are_found_and_then_known() -> None:
    by_hour = simulated(lambda s, h: CALM if h < 12 else BUSY, subjects=3, length=1500, seed=5)
    found = checked(by_hour)
    assert found.verdict.word == "do not go on"
    assert found.verdict.reasons[0].startswith("habits depend on the hour (")
    assert "to whoever knows a matrix for each hour" in found.verdict.reasons[0]
    assert found.verdict.remedies[0].kind == "hour"
    assert "between subjects" not in str(found.verdict)
    hour = next(each for each in found.richer if each.kind == "hour")
    data = pf.read_sequences(by_hour, "s", clock="hour", daily=True, **READING)
    noise = pf.LeakagePropagation(pf.fit_chain(data), data.length).calibrate(pf.Histogram(), 1.0)
    weight = LeftOut(data).weights["hour"]
    hourly = pf.LeakagePropagation(pf.fit_periodic(data, smoothing=weight), data.length)
    assert noise.noise_multiplier is not None
    assert hour.leakage == pytest.approx(hourly.leakage(1 / noise.noise_multiplier), rel=1e-3)
    assert hour.noise_multiplier == pytest.approx(hourly.calibrate(pf.Histogram(), 1.0).noise_multiplier, rel=1e-3)
    again = checked(by_hour, pf.fit_periodic(data))
    assert again.verdict.word == "go on"
    assert not any(each.demanded for each in again.richer)
    weekday = [pf.read_sequences(by_hour, "s", clock="weekday", **READING)]
    days = checked(by_hour, pf.fit_periodic(weekday[0]))
    assert "the table was read with the clock of Θ, weekday" in " ".join(days.not_asked)


@pytest.mark.slow
def test_people_are_found_and_then_known() -> None:
    by_subject = simulated(lambda s, h: BUSY if s else CALM, subjects=3, length=500, seed=6)
    found = checked(by_subject, epsilon=0.5)
    assert found.verdict.word == "do not go on"
    assert found.verdict.reasons[0].startswith("habits differ between subjects (")
    assert "the noise for ε = 0.5 would leak" in found.verdict.reasons[0]
    assert "the own chain of s0" in found.verdict.reasons[0]
    assert found.verdict.remedies[0].command.endswith(" --each-subject --output own.json")
    assert found.subjects[0].differs
    again = checked(by_subject, pf.fit_each_subject(by_subject, "s", **READING).theta)
    assert again.verdict.word == "go on"
    assert [subject.member for subject in again.subjects] == [0, 1, 2]
    one = days_of_people(lambda who: np.array([[0.99, 0.01], [0.05, 0.95]]) if who == 9 else CALM, seed=2, people=10)
    unlike = checked(one)
    own = next(each for each in unlike.richer if each.kind == "own")
    assert not own.demanded  # of ten people one alone decides the sum, and its standard error
    assert unlike.verdict.word == "do not go on"
    assert [subject.subject for subject in unlike.subjects if subject.differs] == ["s9"]


def heavy_stays(seed: int) -> pl.DataFrame:
    """Four people whose stays are short or long."""
    rng, rows = np.random.default_rng(seed), list[tuple[str, datetime, str]]()
    for who in range(4):
        states: list[int] = []
        while len(states) < 480:
            keep = 0.98 if rng.random() < 0.15 else 0.6
            states += [1 - states[-1] if states else 0] * int(rng.geometric(1 - keep))
        rows += [(f"s{who}", START + timedelta(minutes=30 * t), "ab"[x]) for t, x in enumerate(states[:480])]
    return pl.DataFrame(rows, schema=["who", "at", "s"], orient="row")


@pytest.mark.slow
def test_stays_are_found_and_classes_of_every_kind_are_checked(slow: bool) -> None:
    table = heavy_stays(seed=3)
    data = pf.read_sequences(table, "s", daily=True, **READING)
    chain, stays = pf.fit_chain(data), pf.fit_stays(data)
    found = checked(table)
    assert found.verdict.word == "do not go on"
    assert found.verdict.remedies[0].kind == "stays"
    again = checked(table, stays)
    assert again.verdict.word == "go on"
    assert again.stays[0].most == pytest.approx(lasting(stays.stays[0]))
    wide, narrow = pf.ForgettingClass(8, 0.1, ["a", "b"]), pf.ForgettingClass(4, 0.95, ["a", "b"])
    for theta, word in (
        ([chain, stays, wide], "go on"),
        (narrow, "do not go on"),
        (wide, "go on"),
        ([chain, stays], "go on"),
        ([chain, narrow], "do not go on"),
        (pf.IntervalChain([[0.5, 0.01], [0.01, 0.5]], [[0.99, 0.5], [0.5, 0.99]], states=["a", "b"]), "go on"),
        (pf.BinaryChainInterval(0.4, 0.5, states=("a", "b")), "do not go on"),
    )[: 7 if slow else 2]:
        check = checked(table, theta)
        assert check.verdict.word == word, theta
        silent = not isinstance(theta, list) or any(isinstance(member, pf.ForgettingClass) for member in theta)
        assert any("say no likelihoods" in line for line in check.not_asked) == silent
    held = checked(table, pf.Model.fitted(stays, data))
    assert "the model was fitted to these people: this check proves nothing about others" in str(held)


@pytest.mark.slow
def test_the_noise_covers_so_many_people_and_the_sentence_says_it() -> None:
    laws = {who: CALM if who else np.array([[0.97, 0.03], [0.1, 0.9]]) for who in range(9)}
    table = days_of_people(laws.__getitem__, seed=1, people=9, days=43)
    found = checked(table)
    within = sum((subject.leakage or 9.0) <= 1.005 for subject in found.subjects)
    assert 0 < within < 9
    assert found.coverage.startswith("Of people like the 9 surveyed, drawn alike and with as much data, at least ")
    assert f"at least {10 * within}% on average have habits" in found.coverage

    assert found.verdict.word == "do not go on"  # where that is not the last word
    assert found.coverage not in found.verdict.reasons
    wide = checked(table, pf.MarkovChain([[0.99, 0.01], [0.01, 0.99]], states=["a", "b"]))
    assert "at least 90% on average have habits" in wide.verdict.reasons[-1]


def test_what_estimated_stays_cost_is_taken_off_what_the_verdict_says() -> None:
    table = days_of_people(lambda who: CALM, seed=1, people=9, days=43)
    stays = pf.fit_stays(pf.read_sequences(table, "s", daily=True, **READING), kinds=2)
    wide = pf.MarkovChain([[0.99, 0.01], [0.01, 0.99]], states=["a", "b"])
    found = checked(table, pf.ChainClass((stays, stays, wide)))
    assert "at least 88% on average (90% less the .02 that estimated stays cost) have habits" in found.coverage


@pytest.mark.slow
def test_longer_memory_and_another_model_are_told() -> None:
    rng = np.random.default_rng(3)
    states = [0, 1]
    for _ in range(1500):
        states.append(int(rng.random() < (0.9 if states[-1] != states[-2] else 0.4)))
    table = pl.DataFrame({"s": ["ab"[x] for x in states]})
    found = pf.check_model(pf.MarkovChain(CALM, states=["a", "b"]), table, "s", public=True)
    assert "these days are likelier under another chain" in str(found.verdict)
    assert "depends on more than the present one" in str(found.verdict)
    assert "to whoever knows the last two states" in str(found)
    data = pf.read_sequences(table, "s", order=2)
    longer = pf.check_model(pf.fit_order(data), table, "s", public=True)
    assert longer.verdict.word == "go on"
    assert not any(each.demanded for each in longer.richer)
    assert found.occupancy is None
    assert "time is missing" in (next(each for each in found.richer if each.kind == "hour").reason or "")
    never = pf.MarkovChain([[0.5, 0.5], [1.0, 0.0]], states=["a", "b"])
    impossible = pf.check_model(never, table, "s", public=True)
    assert impossible.verdict.word == "do not go on"
    assert "some of these days are impossible under this model" in str(impossible.verdict)


def in_short(value: Any) -> Any:
    """The same without the last digits of numbers: how sums of doubles are rounded depends on where they lie."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: in_short(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [in_short(part) for part in value]
    return value if value is None or isinstance(value, int | str) else in_short(msgspec.to_builtins(value))


def test_hours_of_the_table_are_counted_on_every_engine(tmp_path: Path, slow: bool) -> None:
    table = simulated(lambda s, h: CALM if h < 12 else BUSY, subjects=2, length=100, seed=8)
    path = tmp_path / "t.csv"
    table.write_csv(path)
    want = checked(table, pf.MarkovChain(CALM, states=["a", "b"]))
    assert want.occupancy is not None
    hours = Counter((at.hour, s) for _, at, s in table.iter_rows())
    assert {(h, "ab"[x]): n for (h, x), n in np.ndenumerate(np.array(want.occupancy)) if n} == dict(hours)
    for source in (path, table.to_pandas()) if slow else (table.to_pandas(),):
        found = checked(source, pf.MarkovChain(CALM, states=["a", "b"]))
        for name in ("verdict", "subjects", "richer", "stays", "overlaps"):
            assert in_short(getattr(found, name)) == in_short(getattr(want, name)), name


def test_days_have_no_hours() -> None:
    """Where records are days apart the hour tells nothing: the check says so, and offers no smoothing against it."""
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 4, 1), "1d", eager=True)
    table = pl.DataFrame({"day": days, "state": (["r", "r", "w"] * len(days))[: len(days)]})
    reading: dict[str, Any] = {"time": "day", "max_gap": "1d"}
    chain = pf.fit_chain(pf.read_sequences(table, "state", **reading), smoothing=1)
    found = pf.check_model(chain, table, "state", public=True, **reading)
    assert found.occupancy is None
    assert "by the hour" not in str(found)
    (hour,) = (each for each in found.richer if each.kind == "hour")
    assert hour.reason is not None
    assert hour.reason.startswith("records are 1d apart, always at the same hour")
    with pytest.raises(pf.ModelError, match=r"is not a whole number of such steps: use a step that divides it[^;]*$"):
        pf.fit_periodic(pf.read_sequences(table, "state", clock="hour", **reading))


def test_prints_draws_and_writes(tmp_path: Path) -> None:
    table = simulated(lambda s, h: CALM if s else BUSY, subjects=15, length=120, seed=9)
    found = checked(table)
    text = str(found)
    assert "under Θ, of the 12 subjects where it is most" in text
    assert "and 3 subjects where it is less" in text
    assert text.partition("\n\n")[0] == str(found.verdict)
    path = tmp_path / "c.json"
    found.to_json(path)
    said = msgspec.json.decode(path.read_bytes())
    assert msgspec.convert(said["verdict"], pf.Verdict) == found.verdict
    assert len(said["subjects"]) == 15
    with pytest.raises(pf.RecordError):
        found.to_json(path)
    figure = found.plot(tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(pf.RecordError):
        found.plot(tmp_path / "no folder" / "c.png")
    assert len(figure.axes) == 3
    figure.canvas.draw()
    lasts = figure.axes[0].yaxis
    assert 2 <= len(lasts.get_majorticklabels()) <= 7
    assert not any(label.get_text() for label in lasts.get_minorticklabels())
    open_ = msgspec.structs.replace(found.stays[0], observed=(3.5, math.inf))
    stuck = msgspec.structs.replace(found.stays[1], observed=None, most=(math.inf, math.inf))
    told = msgspec.structs.replace(found, stays=(open_, stuck))
    legend = draw_check(told).axes[0].get_legend()
    assert legend is not None
    assert "95%: not reached (above)" in [each.get_text() for each in legend.get_texts()]
    rows = [re.split(" {2,}", line.strip()) for line in str(told).splitlines()]
    assert ["a", "3.5", "not reached"] in [[row[i] for i in (0, 1, 3)] for row in rows if len(row) == 5]
    assert ["b", "no end seen", "no end seen"] in [[row[i] for i in (0, 1, 3)] for row in rows if len(row) == 5]
    assert "never ends" in str(told)
    assert "∞" not in str(told)
    assert "  not reached: too many of the longest stays are cut off" in str(told)
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert not any("not reached" in each.get_text() for each in legend.get_texts())
    assert len(draw_check(msgspec.structs.replace(found, occupancy=None, stationary=())).axes) == 2
    figure.canvas.draw()


def test_a_state_that_nobody_was_in_is_told() -> None:
    table = pl.DataFrame({"s": list("aabbbaabab" * 30)})
    chain = pf.MarkovChain([[0.5, 0.4, 0.1], [0.3, 0.5, 0.2], [0.3, 0.3, 0.4]], "any", states=["a", "b", "c"])
    found = pf.check_model(chain, table, "s", public=True)
    same = pl.DataFrame({"s": list("abba" * 20)})
    fair = pf.MarkovChain(np.full((2, 2), 0.5), states=["a", "b"])
    few = pf.check_model(fair, same.sample(fraction=1, shuffle=True, seed=4), "s", public=True).verdict
    assert few.word == "in doubt"
    assert "79 transitions are few: use more public data" in few.reasons
    reasons = {each.kind: each.reason or "" for each in found.richer}
    assert reasons["pooled"] == ""
    assert "state 'c' has no record 1 steps" in reasons["forgets"]
    assert (found.overlaps, found.stationary, found.stays[2].observed) == ((), (), None)
    assert "not known for these data" in str(found)
    assert "forget" in str(found)
    draw_check(found).canvas.draw()


def test_refusals_name_the_remedy() -> None:
    table = simulated(lambda s, h: CALM, subjects=2, length=60, seed=2)
    chain = pf.MarkovChain(CALM, states=["a", "b"])
    with pytest.raises(ParameterError, match="public=True"):
        pf.check_model(chain, table, "s", **READING)
    with pytest.raises(NotApplicableError, match="a check covers only chains and networks"):
        pf.check_model(pf.Cliques([[0.5, 0.5]]), table, "s", public=True, **READING)
    clock = pf.PeriodicChain([CALM] * 24, clock="hour", step="1min", states=["a", "b"])
    with pytest.raises(DataError, match="step of the model takes 1min, but the table's records are 30min apart"):
        checked(table, clock)
    slow = pf.PeriodicChain([CALM] * 24, clock="hour", step="30min", states=["a", "b"])
    with pytest.raises(DataError, match="max_gap is 1h and a step of the model takes 30min"):
        pf.check_model(slow, table, "s", public=True, **{**READING, "max_gap": "1h"})
    with pytest.raises(DataError):
        pf.check_model(pf.MarkovChain(CALM), table, "s", public=True, **READING)
    with pytest.raises(DataError, match="column 'x' not found"):
        pf.check_model(chain, table, "x", public=True, **READING)
