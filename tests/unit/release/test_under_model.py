"""From Python, too, a model knows the step of its tables and what it was fitted to: as on the command line."""

import json
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pufferfish as pf
from commands import READING, refused, run, write_table
from pufferfish.errors import DataError, ModelError, ParameterError, ReleaseRefused
from pufferfish.mechanisms import MECHANISMS
from pufferfish.release.prepare import FITTED_HERE
from pufferfish.theta.record import Checking

ASKED = {"state": "activity", "subject": "id", "time": "minute", "max_gap": "1min"}
SLOW = {**ASKED, "max_gap": "5min"}
QUERY = pf.Count("active")


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    return write_table(tmp_path / "survey.csv", 1)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A record every five minutes."""
    header, *rows = write_table(tmp_path / "slow.csv", 2).read_text().splitlines()
    (tmp_path / "slow.csv").write_text("\n".join([header, *rows[::5]]) + "\n")
    return tmp_path / "slow.csv"


def fitted(path: Path) -> pf.Model:
    data = pf.read_sequences(path, **ASKED)
    return pf.Model.fitted(pf.fit_chain(data), data)


def test_a_fitted_model_is_that_of_the_command_line(tmp_path: Path, survey: Path) -> None:
    assert run("fit", survey, *READING, "--output", tmp_path / "m.json").exit_code == 0
    theirs, ours = pf.read_model(tmp_path / "m.json"), fitted(survey)
    assert (ours.step, ours.fitted_on, ours.bins) == (theirs.step, theirs.fitted_on, theirs.bins)
    assert ours.step == "1min"
    assert ours.theta.origin == theirs.theta.origin
    pf.write_model(ours, tmp_path / "ours.json")
    assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "m.json").read_bytes()


def test_data_of_another_step_are_refused_in_the_words_of_the_command_line(
    tmp_path: Path, survey: Path, slow: Path
) -> None:
    model, data = fitted(survey), pf.read_sequences(slow, **SLOW)
    noise = pf.GroupDP(model, data.length).calibrate(QUERY, 1.0)
    with pytest.raises(
        DataError, match=r"step of the model takes 1min, but the table's records are 5min apart"
    ) as found:
        pf.release(data, QUERY, noise)
    assert "give step='1min' without time= and max_gap=" in str(found.value)
    pf.write_model(model, tmp_path / "m.json")
    release = ["release", slow, *READING[:-1], "5min", "--model", tmp_path / "m.json", "--epsilon", 1]
    refused(
        *release,
        "--output",
        tmp_path / "r.json",
        says=["records are 5min apart", "give --step 1min without --time and --max-gap"],
    )
    with pytest.raises(DataError, match="5min apart"):
        pf.release_each(data, QUERY, noise, tmp_path / "each.csv")
    assert not (tmp_path / "each.csv").exists()
    book = pf.Ledger(pf.GroupDP(model, data.length), 1.0, base=data)
    with pytest.raises(DataError, match="5min apart"):
        pf.release(data, QUERY, noise, ledger=book)
    assert book.spent == 0
    stated = pf.read_sequences(slow, "activity", subject="id", step="1min")
    assert pf.release(stated, QUERY, pf.GroupDP(model, stated.length).calibrate(QUERY, 1.0)).epsilon == 1


def test_the_table_that_a_model_was_fitted_to_is_refused_unless_it_is_public(tmp_path: Path, survey: Path) -> None:
    model, data = fitted(survey), pf.read_sequences(survey, **ASKED)
    noise = pf.GroupDP(model, data.length).calibrate(QUERY, 1.0)
    book, each = pf.Ledger(pf.GroupDP(model, data.length), 1.0, base=data), tmp_path / "each.csv"
    with pytest.raises(ReleaseRefused, match=r"fitted to this very table.*give accept='public'"):
        pf.release(data, QUERY, noise, ledger=book)
    with pytest.raises(ReleaseRefused, match=r"fitted to this very table"):
        pf.release_each(data, QUERY, noise, each, ledger=book)
    assert book.spent == 0
    assert not each.exists()
    assert FITTED_HERE in pf.release(data, QUERY, noise, accept="public").warnings
    assert FITTED_HERE in pf.release_each(data, QUERY, noise, each, accept="public").warnings
    other = pf.read_sequences(write_table(tmp_path / "other.csv", 2), **ASKED)
    assert not pf.release(other, QUERY, pf.GroupDP(model, other.length).calibrate(QUERY, 2.5)).warnings
    memory = pf.read_sequences(pl.read_csv(survey, try_parse_dates=True), **ASKED)
    held = pf.GroupDP(pf.Model.fitted(pf.fit_chain(memory), memory), memory.length).calibrate(QUERY, 2.5)
    with pytest.raises(ReleaseRefused, match=r"fitted to this very table"):  # a frame is known by what is in it
        pf.release(memory, QUERY, held)
    turned = pf.read_sequences(pl.read_csv(survey, try_parse_dates=True), states=memory.states[::-1], **ASKED)
    assert turned.states != memory.states
    assert turned.fingerprint == memory.fingerprint
    elsewhere = pf.read_sequences(pl.read_csv(tmp_path / "other.csv", try_parse_dates=True), **ASKED)
    assert not pf.release(elsewhere, QUERY, held).warnings


@pytest.mark.parametrize("given", ["everything", ["public", "anything"], True, None, "", {"public": True}])
def test_what_is_accepted_is_named_by_known_words(tmp_path: Path, survey: Path, given: Any) -> None:
    data = pf.read_sequences(survey, **ASKED)
    noise = pf.GroupDP(pf.fit_chain(data), data.length).calibrate(QUERY, 2.5)
    for release in (
        partial(pf.release, data, QUERY, noise),
        partial(pf.release_each, data, QUERY, noise, tmp_path / "e.csv"),
    ):
        with pytest.raises(ParameterError, match=r"^accept is .*, or a list of them: 'public', 'model'$"):
            release(accept=given)
    assert not (tmp_path / "e.csv").exists()
    with pytest.raises(ParameterError, match=r"release has no option 'public'.*accept"):
        pf.release(data, QUERY, noise, public=True)  # pyrefly: ignore[bad-argument-type]


@pytest.mark.parametrize("given", ["public", ["public", "public"], {"public"}, ()])
def test_a_word_for_a_refusal_that_does_not_come_up_changes_nothing(survey: Path, given: Any) -> None:
    data = pf.read_sequences(survey, **ASKED)
    noise = pf.GroupDP(pf.fit_chain(data), data.length).calibrate(QUERY, 2.5)
    assert pf.release(data, QUERY, noise, accept=given).warnings == pf.release(data, QUERY, noise).warnings


def test_what_is_not_known_of_a_model_is_told(survey: Path) -> None:
    data = pf.read_sequences(survey, **ASKED)
    silent = pf.Model(theta=pf.fit_chain(data))
    found = pf.release(data, QUERY, pf.GroupDP(silent, data.length).calibrate(QUERY, 2.5))
    (told,) = found.warnings
    assert told.startswith("The model does not say how long a step takes")
    assert 'Model(theta=…, step="1min")' in told
    assert found.verify().holds


def test_whatever_is_made_from_a_model_keeps_it(survey: Path, slow: Path) -> None:
    model, data = fitted(survey), pf.read_sequences(slow, **SLOW)
    for kind in MECHANISMS:
        if kind not in (pf.MarkovQuilt, pf.EntryDP, pf.GK16):  # they are for other models
            bound = kind.of(model, data.length)
            assert bound.model is model
            assert bound.theta is model.theta
            assert pickle.loads(pickle.dumps(bound)).model.step == "1min"
    assert pf.ParticipantDP(data.length, theta=model).model is model
    assert pf.GroupDP(model.theta, data.length).model is None
    ledger = pf.Ledger(pf.GroupDP(model, data.length), 1.0, base=data)
    noise = ledger.calibrate(QUERY, up_to=0.5, data=data)
    with pytest.raises(DataError, match="5min apart"):
        pf.release(data, QUERY, noise, ledger=ledger)
    compared = pf.compare(model, QUERY, 1.0, length=data.length, mechanisms=["group-dp"])
    assert compared[0].scale is not None


def test_models_of_other_kinds_are_fitted_too(survey: Path) -> None:
    data = pf.read_sequences(survey, **ASKED)
    bounds = pf.Model.fitted(pf.fit_interval(data), data)
    assert "; bounds that hold all transition probabilities with 95% confidence" in bounds.theta.origin
    forgets = pf.fit_forgetting(survey, forgets=["8min"], **ASKED)
    assert pf.Model.fitted(forgets.theta, forgets.sequences).step == "1min"
    each = pf.fit_each_subject(survey, **ASKED)
    assert pf.Model.fitted(each.theta, each.sequences).theta.origin.count("survey.csv") == 1


def test_a_model_is_made_of_a_class_and_its_own_data(survey: Path) -> None:
    data = pf.read_sequences(survey, **ASKED)
    with pytest.raises(ModelError, match="theta is a Model already"):
        pf.Model(theta=fitted(survey))
    with pytest.raises(ParameterError, match="give the data that theta was fitted to"):
        pf.Model.fitted(pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), data)
    with pytest.raises(ParameterError, match="data is"):
        pf.Model.fitted(pf.fit_chain(data), survey)


def test_a_step_in_another_unit_is_another_one(survey: Path) -> None:
    """60000000 in a column of numbers is no minute: nothing says that it counts microseconds."""
    model, table = fitted(survey), pl.read_csv(survey).with_row_index("at")
    table = table.with_columns(pl.col("at").cast(pl.Int64) * 60_000_000)
    for longest in (60_000_000, 180_000_000):
        data = pf.read_sequences(table, "activity", subject="id", time="at", max_gap=longest)
        with pytest.raises(DataError, match="records are 60000000 apart"):
            pf.release(data, QUERY, pf.GroupDP(model, data.length).calibrate(QUERY, 1.0))


def test_a_ledger_asks_the_step_of_its_model_for_noise_of_theta_alone(survey: Path) -> None:
    model, data = fitted(survey), pf.read_sequences(write_table(survey, 2), **{**ASKED, "max_gap": "2min"})
    book = pf.Ledger(pf.GroupDP(model, data.length), 1.0)
    with pytest.raises(DataError, match="max_gap is 2min and a step of the model takes 1min"):
        pf.release(data, QUERY, pf.GroupDP(model.theta, data.length).calibrate(QUERY, 1.0), ledger=book)
    assert book.spent == 0


def test_a_ledger_of_another_class_is_told(tmp_path: Path) -> None:
    """Wherever a release is made, and for each subject too; the same class by another name is no other."""
    table = pl.DataFrame({"who": ["a"] * 40 + ["b"] * 40, "t": [*range(40)] * 2, "s": list("rrrw" * 20)})
    data = pf.read_sequences(table, "s", subject="who", time="t", max_gap=1)
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["r", "w"])
    named = pf.ChainClass((chain,), origin="elsewhere", names=["x"])
    other = pf.MarkovChain([[0.8, 0.2], [0.4, 0.6]], states=["r", "w"])
    for theta, told in ((chain, False), (named, False), (other, True)):
        ledger = pf.Ledger(pf.LeakagePropagation(chain, data.length), budget=9, base=data)
        noise = pf.LeakagePropagation(theta, data.length).calibrate(pf.Histogram(), 1.0)
        one = pf.release(data, pf.Histogram(), noise, ledger=ledger)
        each = pf.release_each(data, pf.Histogram(), noise, tmp_path / f"{told}.csv", ledger=ledger, overwrite=True)
        for found in (one, each):
            assert any("another Θ than this release" in text for text in found.warnings) == told
            assert found.verify(ledger=ledger).holds
        assert [entry.what.endswith(" (ε under another Θ)") for entry in ledger.entries] == [told, told]


# -- The verdict that a model keeps ----------------------------------------------------------------------------------

CONDEMNED = Checking(word="do not go on", date="2026-11-27", source="other.csv")


def condemned(path: Path) -> pf.Model:
    return replace(fitted(path), checked=CONDEMNED)


def test_a_condemned_model_is_refused_by_every_door(tmp_path: Path, survey: Path) -> None:
    model = condemned(write_table(tmp_path / "public.csv", 2))
    data, states = pf.read_sequences(survey, **ASKED), list(model.theta.states)
    ledger = pf.Ledger(pf.LeakagePropagation(model, data.length), 9.0, base=data)
    ledger.save(tmp_path / "book.json")
    again = pf.Ledger.open(tmp_path / "book.json")
    joined = pf.Model.joined([fitted(tmp_path / "public.csv"), model])

    def release(data: Any, bound: Any, **more: Any) -> pf.Release:
        return pf.release(data, QUERY, bound.calibrate(QUERY, 1.0), **more)

    doors = (
        lambda **accept: release(data, pf.LeakagePropagation(model, data.length), **accept),
        lambda **accept: release(states * 5, pf.LeakagePropagation(model, 10), **accept),
        lambda **accept: release(data, pf.LeakagePropagation(joined, data.length), **accept),
        lambda **accept: pf.release(data, QUERY, ledger.calibrate(QUERY, up_to=0.5), ledger=ledger, **accept),
        lambda **accept: pf.release(data, QUERY, again.calibrate(QUERY, up_to=0.7), ledger=again, **accept),
    )
    for door in doors:
        with pytest.raises(ReleaseRefused, match=r"checked on 2026-11-27 against other.csv: do not go on"):
            door()
        assert door(accept="model").checked == CONDEMNED


def test_a_ledger_that_is_opened_again_knows_what_its_model_was_fitted_to(tmp_path: Path, survey: Path) -> None:
    data = pf.read_sequences(survey, **ASKED)
    pf.Ledger(pf.LeakagePropagation(fitted(survey), data.length), 9.0, base=data).save(tmp_path / "book.json")
    again = pf.Ledger.open(tmp_path / "book.json")
    with pytest.raises(ReleaseRefused, match="fitted to this very table"):
        pf.release(data, QUERY, again.calibrate(QUERY, up_to=0.5), ledger=again)
    known, made = again.bound.model, fitted(survey)
    assert isinstance(known, pf.Model)
    assert (known.step, known.bins, known.fitted_on, known.checked) == (made.step, made.bins, made.fitted_on, None)


def test_a_joined_model_knows_the_tables_that_its_parts_were_checked_against(tmp_path: Path, survey: Path) -> None:
    data, model = pf.read_sequences(survey, **ASKED), fitted(write_table(tmp_path / "public.csv", 2))
    good = Checking(word="go on", date="2026-11-27", source="survey.csv", fingerprint=data.fingerprint)
    joined = pf.Model.joined([replace(model, checked=good)])
    assert joined.checked is None  # a verdict is about the class that was checked
    with pytest.raises(ReleaseRefused, match="this very table"):
        pf.release(data, QUERY, pf.LeakagePropagation(joined, data.length).calibrate(QUERY, 1.0))


def test_verify_names_a_verdict_that_is_not_the_models(tmp_path: Path, survey: Path) -> None:
    model, data = condemned(write_table(tmp_path / "public.csv", 2)), pf.read_sequences(survey, **ASKED)
    noise = pf.LeakagePropagation(model, data.length).calibrate(QUERY, 1.0)
    record = pf.release(data, QUERY, noise, accept="model").to_dict()
    assert "check" not in [part.what for part in verified(tmp_path, record, model).unchecked]
    told = "Θ was checked on 2026-11-27 against other.csv: do not go on"
    place = next(i for i, sentence in enumerate(record["assumptions"]) if told in sentence)
    record["assumptions"][place] = record["assumptions"][place].replace("do not go on", "go on")
    record["checked"]["word"] = "go on"
    found = verified(tmp_path, record, model)
    (part,) = [part for part in found.unchecked if "checked" in part.fields]
    assert "the release says checked on 2026-11-27 against other.csv: go on, and the model's file now" in part.says


def verified(folder: Path, record: dict[str, Any], model: pf.Model) -> pf.Verification:
    path = folder / "release.json"
    path.write_text(json.dumps(record))
    return pf.verify(path, model=model)
