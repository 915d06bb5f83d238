"""Refusals are accepted one by one: no word accepts two of them, and no word accepts what it does not name."""

from pathlib import Path

import pytest

import pufferfish as pf
from commands import READING, every_command, refused, run, write_table

HIDDEN, FITTED = "the result would tell nothing", "the model was fitted to this very table"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("survey.csv"), 1)
    write_table(Path("private.csv"), 2)
    assert run("fit", "survey.csv", *READING, "--output", "model.json").exit_code == 0


def release(table: str, epsilon: float, *words: str) -> list[object]:
    given = [option for word in words for option in ("--accept", word)]
    asked = ["--mechanism", "group-dp", "--epsilon", epsilon, "--output", "release.json", "--overwrite"]
    return ["release", table, *READING, "--model", "model.json", *asked, *given]


def test_a_word_accepts_its_own_refusal_and_no_other() -> None:
    refused(*release("survey.csv", 1e-3), says=[FITTED, "give --accept public"])
    refused(*release("survey.csv", 1e-3, "noise"), says=[FITTED, "give --accept public"])
    refused(*release("survey.csv", 1e-3, "public"), says=[HIDDEN, "give --accept noise"])
    refused(*release("private.csv", 1e-3, "public"), says=[HIDDEN])
    refused(*release("survey.csv", 5, "noise"), says=[FITTED])
    assert not Path("release.json").exists()
    done = run(*release("survey.csv", 1e-3, "noise", "public"))
    assert done.exit_code == 0, done.output
    assert any("fitted to this very table" in text for text in pf.Release.from_json("release.json").warnings)


def test_words_do_not_accept_what_has_another_remedy() -> None:
    refused(*release("private.csv", 11, "noise", "public"), says=["above the limit of 10", "--max-epsilon 11"])
    assert run(*release("private.csv", 5)).exit_code == 0
    again = release("private.csv", 5, "noise", "public")
    again.remove("--overwrite")
    refused(*again, says=["release.json exists"])


def test_a_word_that_is_not_needed_is_harmless() -> None:
    done = run(*release("private.csv", 5, "noise", "public", "noise"))
    assert done.exit_code == 0, done.output
    create = ["ledger", "create", "book.json", "--model", "model.json", "--budget", 1, "--table", "private.csv"]
    assert run(*create, *READING, "--accept", "public").exit_code == 0
    assert run("check", "model.json", "survey.csv", *READING, "--accept", "public").exit_code == 0


@pytest.mark.parametrize("word", ["all", "noise,public", "", "Noise"])
def test_an_unknown_word_is_refused(word: str) -> None:
    refused(*release("private.csv", 5, word), says=["'--accept'", "is not one of 'noise', 'model', 'public'"])
    assert not Path("release.json").exists()


def test_each_command_knows_the_words_of_its_own_refusals() -> None:
    refused("check", "model.json", "survey.csv", *READING, "--accept", "noise", says=["'noise' is not", "'public'"])
    create = ["ledger", "create", "book.json", "--model", "model.json", "--budget", 1, "--table", "private.csv"]
    refused(*create, *READING, "--accept", "noise", says=["'noise' is not", "'public'"])
    fit = ["fit", "survey.csv", *READING, "--output", "other.json"]
    refused(*fit, "--accept", "public", says=["'public' is not", "'smoothing'"])
    others = set(every_command()) - {"release", "check", "ledger", "fit"}
    for name in others:
        assert not any("--accept" in parameter.opts for parameter in every_command()[name].params), name


@pytest.mark.parametrize("option", ["--anyway", "--i-know-this-is-public"])
def test_the_options_of_before_are_gone(option: str) -> None:
    refused(*release("private.csv", 5), option, says=["No such option", option])
