"""Whether a model describes public data: every number against a plain loop, and verdicts on simulated data."""

import itertools
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
from pufferfish._base.words import at_most, number
from pufferfish.check.check import geometric, observed
from pufferfish.check.record import RicherModel, SubjectCheck
from pufferfish.check.shown import draw_check
from pufferfish.check.words import text_of, verdict_of
from pufferfish.errors import DataError, NotApplicableError, ParameterError

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


def left_out(table: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Log-likelihoods of every subject, each transition predicted by recounting all others."""
    steps: list[tuple[str, int, str | None, str, str]] = []
    for who in table["who"].unique().sort():
        mine = table.filter(pl.col("who") == who).rows()
        for t, ((_, at, x), (_, _, y)) in enumerate(itertools.pairwise(mine)):
            steps.append((who, at.hour, mine[t - 1][2] if t else None, x, y))
    found: dict[str, dict[str, float]] = {}
    for i, (who, hour, z, x, y) in enumerate(steps):
        others = steps[:i] + steps[i + 1 :]

        def share(rows: list[Any], like: float, w: float, x: str = x, y: str = y) -> float:
            rows = [row for row in rows if row[3] == x]
            return (sum(row[4] == y for row in rows) + w * like) / (len(rows) + w)

        pooled = share(others, 0.5, 1.0)
        else_ = share([row for row in others if row[0] != who], 0.5, 1.0)
        logs = {
            "pooled": pooled,
            "own": share([row for row in others if row[0] == who], else_, 10.0),
            "order2": pooled if z is None else share([row for row in others if row[2] == z], pooled, 10.0),
            "hour": share([row for row in others if row[1] == hour], pooled, 10.0),
        }
        mine = found.setdefault(who, Counter())
        for kind, p in logs.items():
            mine[kind] += math.log(p)
    return found


def test_likelihoods_are_those_of_a_plain_loop() -> None:
    table = simulated(lambda s, h: CALM if (s + h) % 2 else BUSY, subjects=3, length=70, seed=1)
    members = [pf.MarkovChain(CALM, states=["a", "b"]), pf.MarkovChain(BUSY, states=["a", "b"])]
    found, want = checked(table, members), left_out(table)
    assert [subject.subject for subject in found.subjects] == list(want)
    for subject in found.subjects:
        assert subject.transitions == 69
        for kind, value in want[subject.subject].items():
            assert getattr(subject, kind) * 69 == pytest.approx(value, abs=1e-9)
        states = table.filter(pl.col("who") == subject.subject)["s"]
        each = [
            sum(math.log(m.transition_matrix["ab".index(x), "ab".index(y)]) for x, y in itertools.pairwise(states))
            for m in members
        ]
        assert subject.model * 69 == pytest.approx(max(each), abs=1e-9)
        assert subject.member == np.argmax(each)
    whole = {kind: sum(each[kind] for each in want.values()) for kind in ("pooled", "own", "order2", "hour")}
    model = sum(69 * subject.model for subject in found.subjects)
    assert found.gains["hour"] == pytest.approx(whole["hour"] - whole["pooled"])
    assert found.gains["order2"] == pytest.approx(whole["order2"] - whole["pooled"])
    assert found.gains["pooled"] == pytest.approx(whole["pooled"] - model)
    assert found.gains["own"] == pytest.approx(whole["own"] - max(whole["pooled"], model))


def test_stays_count_those_that_were_cut_off() -> None:
    assert observed(np.array([0, 2, 1]), np.array([0])) == (pytest.approx(4 / 3), 2.0)
    # of 4 stays one ends after 1 record and one is cut off then; of the 2 left one ends after 3, one goes on
    mean, high = observed(np.array([0, 1, 0, 1]), np.array([0, 1, 0, 0, 1])) or (0, 0)
    assert mean == pytest.approx(1 + 3 / 4 + 3 / 4 + 3 / 8)
    assert math.isinf(high)
    assert observed(np.array([0]), np.array([0, 3])) is None
    for stay in (0.0, 0.3, 0.9, 0.999):
        mean, high = geometric(stay)
        law = [(1 - stay) * stay**n for n in range(100_000)]
        assert mean == pytest.approx(sum((n + 1) * p for n, p in enumerate(law)))
        assert sum(law[: int(high)]) >= 0.95 - 1e-12
        assert sum(law[: int(high) - 1]) < 0.95
    assert geometric(1.0) == (math.inf, math.inf)


def test_data_of_one_chain_fit_it(slow: bool) -> None:
    for seed in range(3 if slow else 1):
        table = simulated(lambda s, h: CALM, subjects=4, length=1500 if slow else 700, seed=seed)
        found = checked(table)
        assert found.verdict.startswith("Go on with this model"), found.verdict
        assert "do not clearly predict these data better" in found.verdict
        assert "tell little" not in found.verdict
        leaks = {each.kind: each.leakage for each in found.richer}
        assert leaks["pooled"] == pytest.approx(1.0, rel=1e-6)
        for stay in found.stays:
            assert stay.observed is not None
            assert stay.observed[0] == pytest.approx(stay.least[0], rel=0.1)
        for overlap in found.overlaps[:4]:
            assert overlap.pooled == pytest.approx(overlap.model, abs=0.05)


def test_what_leaks_more_but_predicts_no_better_is_a_doubt() -> None:
    table = simulated(lambda s, h: CALM, subjects=6, length=300, seed=4)
    found = checked(table)
    leaks = {each.kind: each.leakage or 0.0 for each in found.richer}
    most = max(leaks.values())
    assert most > 1.1
    assert most == leaks["forgets"]
    assert found.verdict.startswith(
        "Go on with this model, unless somebody knows more than it says. What decides: each subject's own chain, "
    )
    doubt = re.search(r"The doubt: its noise would leak (.*), where 1 is promised\.", found.verdict)
    assert doubt is not None
    assert f"up to {at_most(leaks['own'], 3)} to somebody who knows the habits of subject" in doubt[1]
    assert "how soon" not in doubt[1]  # of a model that assumes less, these data say nothing against this one
    cautious = f"would leak up to {at_most(most, 3)} under a Θ that assumes nothing but how soon the least forgetful"
    assert f"A cautious look: its noise {cautious}" in found.verdict
    told = [each for each in found.richer if each.kind != "forgets" and at_most(each.leakage or 0.0, 3) in doubt[1]]
    needs = max(each.noise_multiplier or 0.0 for each in told)
    assert found.noise_multiplier is not None
    times = number(needs / found.noise_multiplier, 2)
    assert f"(noise about {times} times as large, multiplier {needs:.3g} instead of" in found.verdict
    safe = checked(table, pf.MarkovChain([[0.99, 0.01], [0.01, 0.99]], states=["a", "b"]))
    assert all(each.leakage is None or each.leakage < 1 for each in safe.richer)
    assert safe.verdict.startswith("Go on with this model. ")
    assert "doubt" not in safe.verdict
    assert "Next" not in safe.verdict
    assert "The doubt: its noise would leak" in (title := draw_check(found).get_suptitle())
    assert "…" not in title


def richer(kind: str, leakage: float, needs: float, who: str | None = None) -> RicherModel:
    return RicherModel(kind=kind, leakage=leakage, noise_multiplier=needs, decided_by=who)


def some_subject(name: str, own: float) -> SubjectCheck:
    """A subject with 60 transitions."""
    return SubjectCheck(subject=name, transitions=60, model=-0.8, member=0, pooled=-0.8, order2=-0.8, own=own)


def test_a_doubt_says_on_how_little_it_rests() -> None:
    gains = {"pooled": -1.0, "own": -300.0, "order2": -2.0}
    models = [richer("pooled", 1.0, 5.0), richer("own", 1.78, 8.0, "subject R7"), richer("order2", 1.2, 6.0)]
    many = [some_subject(f"R{i}", -0.9) for i in range(40)]
    many[7] = some_subject("R7", -0.75)
    said = verdict_of(gains, models, 1.0, many, 5.0)
    assert said.startswith("Go on with this model, unless somebody knows more than it says. ")
    assert "up to 1.78 to somebody who knows the habits of subject R7 and up to 1.2 to somebody who knows" in said
    assert (
        "subject R7 has 60 transitions, which its own chain predicts better by 3.0 only (above 10 nats would be clear)"
        in said
    )
    assert said.endswith(
        "fit --each-subject (noise about 1.6 times as large, multiplier 8 instead of 5); so much noise covers the "
        "others that are named, too."
    )
    many[7] = some_subject("R7", -0.81)
    assert "which its own chain predicts no better" in verdict_of(gains, models, 1.0, many, 5.0)


def test_what_is_not_computed_is_no_reason_to_go_on() -> None:
    models = [RicherModel(kind="pooled", reason="x"), RicherModel(kind="own", reason="x"), richer("forgets", 0.9, 4.0)]
    said = verdict_of({"pooled": -1.0, "own": -9.0}, models, 1.0, [some_subject("R7", -0.9)] * 40, 5.0)
    assert said.startswith("It is in doubt whether to go on with this model.")
    assert "leaks to somebody who knows more is not computed" in said


def test_one_subject_that_clearly_differs_is_not_outvoted() -> None:
    gains = {"pooled": -1.0, "own": -300.0, "order2": -2.0}
    many = [some_subject(f"R{i}", -0.9) for i in range(40)]
    many[7] = some_subject("R7", -0.6)  # 12 nats
    said = verdict_of(gains, [richer("own", 1.78, 8.0, "subject R7")], 1.0, many, 5.0)
    assert said.startswith("Do not go on with this model. What decides: habits of subject R7 differ from those of the ")
    assert "Next: fit --each-subject (noise about 1.6 times as large" in said
    covered = verdict_of(gains, [richer("own", 0.9, 4.0, "subject R7")], 1.0, many, 5.0)
    assert covered.startswith("Go on with this model. What decides: habits of subject R7 differ")
    for i in range(20, 28):
        many[i] = some_subject(f"R{i}", -0.55)
    said = verdict_of(gains, [richer("own", 1.78, 8.0, "subject R7")], 1.0, many, 5.0)
    assert "habits of subject R20, subject R21, subject R22 and 6 more differ" in said


def test_the_next_step_is_the_one_whose_noise_covers_all() -> None:
    gains = {"pooled": -1.0, "own": 50.0, "hour": 30.0, "order2": 20.0}
    models = [richer("own", 2.0, 12.0, "subject R7"), richer("hour", 1.5, 8.0), richer("order2", 0.9, 5.0)]
    said = verdict_of(gains, models, 1.0, [some_subject("R7", -0.9)] * 40, 5.0)
    assert said.endswith(
        "Next: fit --each-subject (noise about 2.4 times as large, multiplier 12 instead of 5); so much noise covers "
        "the others that are named, too; and check again."
    )
    models[1] = RicherModel(kind="hour", leakage=1.5)
    said = verdict_of(gains, models, 1.0, [some_subject("R7", -0.9)] * 40, 5.0)
    assert "instead of 5) or fit --clock hour." in said


@pytest.mark.parametrize(
    ("gains", "models"),
    [
        ({"pooled": math.nan}, [richer("pooled", 1.2, 6.0)]),
        ({"pooled": -1.0, "hour": 40.0}, [RicherModel(kind="hour", reason="why not")]),
        ({"pooled": -1.0}, [RicherModel(kind="own", reason="why not")]),
        ({"pooled": 20.0}, [richer("pooled", math.inf, math.inf)]),
        ({"pooled": 20.0}, [richer("pooled", math.nan, 3.0)]),
    ],
)
def test_what_is_not_known_is_no_yes(gains: dict[str, float], models: list[RicherModel]) -> None:
    said = verdict_of(gains, models, 1.0, [some_subject("R", -0.9)] * 40, 5.0)
    assert said.startswith(("Do not go on", "It is in doubt")), said


def test_details_are_told_where_they_matter() -> None:
    by_hour = checked(simulated(lambda s, h: CALM if h < 12 else BUSY, subjects=3, length=700, seed=5))
    same = checked(simulated(lambda s, h: CALM, subjects=3, length=700, seed=0))
    by_subject = checked(simulated(lambda s, h: BUSY if s else CALM, subjects=3, length=400, seed=6))
    hours, subjects, overlaps = (
        "share of each state by the hour",
        "log-likelihood per transition",
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
    assert ["to somebody who knows", "leakage", "multiplier it needs", "decided by"] in cells
    assert ["steps", "all data", "model", "least forgetful subject", "who"] in cells
    assert ["model", "compared with", "gain", "better?"] in cells
    listed = [line.split()[0] for line in lines if line.startswith("  s") and line.split()[1] == "99"]
    assert listed == [f"s{i}" for i in range(11)]


def test_hours_and_subjects_are_told_apart_and_their_leakage_is_computed() -> None:
    by_hour = simulated(lambda s, h: CALM if h < 12 else BUSY, subjects=3, length=1500, seed=5)
    found = checked(by_hour)
    assert "depend on the hour" in found.verdict
    assert "fit --clock hour" in found.verdict
    assert "between subjects" not in found.verdict
    assert "check again" not in found.verdict  # a model with a clock cannot be checked
    data = pf.read_sequences(by_hour, "s", clock="hour", **READING)
    noise = pf.LeakagePropagation(pf.fit_chain(data), data.length).calibrate(pf.Histogram(), 1.0)
    hourly = pf.LeakagePropagation(pf.fit_periodic(data), data.length)
    leaks = {each.kind: each for each in found.richer}
    assert noise.noise_multiplier is not None
    assert leaks["hour"].leakage == pytest.approx(hourly.leakage(1 / noise.noise_multiplier))
    assert leaks["hour"].noise_multiplier == pytest.approx(hourly.calibrate(pf.Histogram(), 1.0).noise_multiplier)
    assert (
        f"would leak up to {at_most(leaks['hour'].leakage or 0.0, 3)} to somebody who knows the hours" in found.verdict
    )

    by_subject = simulated(lambda s, h: BUSY if s else CALM, subjects=3, length=500, seed=6)
    found = checked(by_subject, epsilon=0.5)
    assert found.verdict.startswith("Do not go on with this model. What decides: habits differ between subjects")
    assert "the habits of subject s0" in found.verdict
    assert "fit --each-subject" in found.verdict
    assert found.verdict.endswith("; and check again.")
    each = pf.fit_each_subject(by_subject, "s", **READING).theta
    again = checked(by_subject, each)
    assert "differ between subjects" not in again.verdict
    assert again.gains["own"] < 0


def test_longer_memory_and_another_model_are_told() -> None:
    rng = np.random.default_rng(3)
    states = [0, 1]
    for _ in range(1500):
        states.append(int(rng.random() < (0.9 if states[-1] != states[-2] else 0.4)))
    table = pl.DataFrame({"s": ["ab"[x] for x in states]})
    found = pf.check_model(pf.MarkovChain(CALM, states=["a", "b"]), table, "s", public=True)
    assert "another chain fits these data better" in found.verdict.lower()
    assert "depends on more than the present one" in found.verdict
    assert "to somebody who knows the last two states" in found.verdict
    order2 = next(each for each in found.richer if each.kind == "order2")
    data = pf.read_sequences(table, "s", order=2)
    assert data.histories is not None
    counts = data.histories + 10 * pf.fit_chain(data).transition_matrix
    chain = pf.HigherOrderChain(counts / counts.sum(axis=2, keepdims=True), states=data.states)
    noise = pf.LeakagePropagation(pf.MarkovChain(CALM, states=["a", "b"]), data.length).calibrate(pf.Histogram(), 1.0)
    assert noise.noise_multiplier is not None
    longer = pf.LeakagePropagation(chain, data.length)
    assert order2.leakage == pytest.approx(longer.leakage(1 / noise.noise_multiplier), rel=1e-3)
    assert order2.noise_multiplier == pytest.approx(longer.calibrate(pf.Histogram(), 1.0).noise_multiplier, rel=1e-3)
    assert found.occupancy is None
    assert "time is missing" in (next(each for each in found.richer if each.kind == "hour").reason or "")
    never = pf.MarkovChain([[0.5, 0.5], [1.0, 0.0]], states=["a", "b"])
    impossible = pf.check_model(never, table, "s", public=True)
    assert impossible.subjects[0].model == -math.inf
    assert "+∞: this model takes some of these transitions as impossible" in str(impossible)


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
        for name in ("subjects", "richer", "stays", "overlaps"):
            assert in_short(getattr(found, name)) == in_short(getattr(want, name)), name


def test_days_have_no_hours() -> None:
    """Where records are days apart the hour tells nothing: the check says so, and offers no smoothing against it."""
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 4, 1), "1d", eager=True)
    table = pl.DataFrame({"day": days, "state": (["r", "r", "w"] * len(days))[: len(days)]})
    reading: dict[str, Any] = {"time": "day", "max_gap": "1d"}
    chain = pf.fit_chain(pf.read_sequences(table, "state", **reading), smoothing=1)
    found = pf.check_model(chain, table, "state", public=True, **reading)
    assert found.occupancy is None
    assert "hour" not in found.gains
    assert "by the hour" not in str(found)
    (hour,) = (each for each in found.richer if each.kind == "hour")
    assert hour.reason is not None
    assert hour.reason.startswith("records are 1d apart, always at the same hour")
    with pytest.raises(pf.ModelError, match=r"is no whole number of such steps: use a step that divides it[^;]*$"):
        pf.fit_periodic(pf.read_sequences(table, "state", clock="hour", **reading))


def test_prints_draws_and_writes(tmp_path: Path) -> None:
    table = simulated(lambda s, h: CALM if s else BUSY, subjects=15, length=120, seed=9)
    found = checked(table)
    text = str(found)
    assert "of the 12 subjects whose own chain beats the model most" in text
    assert "and 3 subjects whose own chain beats the model by less, or does not" in text
    assert " ".join(text.partition("\n\n")[0].splitlines()) == found.verdict
    path = tmp_path / "c.json"
    found.to_json(path)
    said = msgspec.json.decode(path.read_bytes())
    assert said["verdict"] == found.verdict
    assert len(said["subjects"]) == 15
    with pytest.raises(pf.RecordError):
        found.to_json(path)
    figure = draw_check(found)
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
    assert (
        "It is in doubt whether to go on with this model: 79 transitions tell little."
        in pf.check_model(
            pf.MarkovChain(np.full((2, 2), 0.5), states=["a", "b"]),
            same.sample(fraction=1, shuffle=True, seed=4),
            "s",
            public=True,
        ).verdict
    )
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
    with pytest.raises(NotApplicableError, match="Markov processes that forget, and a check covers Markov chains"):
        pf.check_model(pf.ForgettingClass(8, 0.4, ["a", "b"]), table, "s", public=True, **READING)
    with pytest.raises(DataError):
        pf.check_model(pf.MarkovChain(CALM), table, "s", public=True, **READING)
    with pytest.raises(DataError, match="column 'x' not found"):
        pf.check_model(chain, table, "x", public=True, **READING)
