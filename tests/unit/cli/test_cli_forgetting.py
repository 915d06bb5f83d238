"""The command line for forgetting classes: estimated, stated, compared, released, kept in a ledger."""

import json
from pathlib import Path

import pytest

import pufferfish as pf
from commands import READING, refused, run, write_table


@pytest.fixture
def public(tmp_path: Path) -> Path:
    return write_table(tmp_path / "public.csv", seed=1, minutes=900)


def test_from_public_data_to_a_release_and_its_ledger(tmp_path: Path, public: Path) -> None:
    model, private = tmp_path / "forgetting.json", write_table(tmp_path / "private.csv", seed=2)
    result = run("fit", public, *READING, "--forgets", "8min", "--forgets", 3, "--output", model)
    assert result.exit_code == 0, result.output
    assert "after 8 steps of 1min habits overlap by" in result.stdout
    assert "that of 'S" in result.stdout
    assert "Treat this file as public" in result.stdout
    found = pf.read_model(model)
    assert isinstance(found.theta, pf.ForgettingClass)
    assert found.theta.steps == (3, 8)
    assert found.step == "1min"
    assert found.theta.origin.startswith("fitted to public data on 20")
    compared = run("compare", model, "--table", private, *READING, "--epsilon", 1)
    assert compared.exit_code == 0, compared.output
    assert "needs transition probabilities" in " ".join(compared.stdout.split())
    output, book = tmp_path / "r.json", tmp_path / "book.json"
    made = run("ledger", "create", book, "--model", model, "--budget", 2, "--table", private, *READING)
    assert made.exit_code == 0, made.output
    release = ["release", private, "--model", model, *READING, "--epsilon", 1, "--output", output, "--ledger", book]
    done = run(*release)
    assert done.exit_code == 0, done.output
    record = pf.Release.from_json(output)
    assert isinstance(record.mechanism.witness, pf.ForgettingWitness)
    text = json.loads(output.read_text())
    text["mechanism"]["witness"]["past"] *= 5
    output.write_text(json.dumps(text))
    assert run("verify", output).exit_code == 1


def test_stated_without_data(tmp_path: Path) -> None:
    model = tmp_path / "stated.json"
    stated = ["--overlap", 0.43, "--states", "sit,stand,walk", "--output", model]
    result = run("fit", "--forgets", "8min", "--step", "1min", *stated)
    assert result.exit_code == 0, result.output
    assert "Treat this file as public" not in result.stdout
    assert pf.read_model(model).theta == pf.ForgettingClass(8, 0.43, ["sit", "stand", "walk"])
    assert pf.read_model(model).step == "1min"
    compared = run("compare", model, "--length", 10_000, "--query", "histogram-counts", "--epsilon", 1)
    assert "LeakagePropagation" in compared.stdout
    assert (
        run("fit", "--forgets", 8, "--overlap", 0.5, "--bins", "0,1,2", "--output", tmp_path / "b.json").exit_code == 0
    )


def test_refusals_name_the_remedy(tmp_path: Path, public: Path) -> None:
    out = ["--output", tmp_path / "m.json"]
    states = ["--states", "a,b"]
    refused("fit", "--forgets", 8, "--overlap", 0.4, *out, says=["--states"])
    refused("fit", "--forgets", 8, *out, says=["give the TABLE", "--overlap"])
    refused("fit", "--overlap", 0.4, *states, *out, says=["--forgets"])
    refused("fit", public, *READING, "--forgets", 8, "--overlap", 0.4, *out, says=["leave out one of them"])
    refused("fit", "--forgets", 8, "--forgets", 9, "--overlap", 0.4, *states, *out, says=["one for each"])
    refused("fit", "--forgets", 8, "--overlap", 0.4, "--smoothing", 3, *states, *out, says=["--smoothing"])
    refused("fit", "--forgets", "8min", "--overlap", 0.4, *states, *out, says=["the length of a step is unknown"])
    refused("fit", "--forgets", 8, "--overlap", 1.4, *states, *out, says=["1.4, expected a share"])
    refused("fit", public, *READING, "--forgets", 8, "--confidence", 0.9, *out, says=["--confidence"])
    refused("fit", public, "--forgets", 8, *out, says=["give --state"])
    refused("fit", public, *out, says=["give --state"])
    refused("fit", *out, says=["give the TABLE"])
    refused("fit", "none.csv", "--state", "s", "--confidence", 2, *out, says=["--confidence is 2.0, expected a probab"])
    assert not (tmp_path / "m.json").exists()


def test_states_come_from_a_file_too(tmp_path: Path, public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value without a comma is the name of a file: nobody lists one state."""
    monkeypatch.chdir(tmp_path)
    Path("zones.txt").write_bytes("\ufeffrest\r\nactive\r\nup, and about\n".encode())
    names = ("rest", "active", "up, and about")
    stated = ["fit", "--forgets", 8, "--overlap", 0.4, "--output", "stated.json"]
    table = ["fit", public, *READING, "--output", "m.json", "--overwrite"]
    assert run(*stated, "--states", "zones.txt").exit_code == 0
    assert pf.read_model("stated.json").theta.states == names
    for kind in (["--smoothing", 1], ["--each-subject", "--smoothing", 1], ["--confidence", 0.9]):
        fitted = run(*table, "--states", "zones.txt", *kind)
        assert fitted.exit_code == 0, fitted.output
        assert pf.read_model("m.json").theta.states == names
    Path("two.txt").write_text("rest\nactive\n\n \n")
    assert run(*table, "--states", "two.txt", "--forgets", 8).exit_code == 0
    assert pf.read_model("m.json").theta.states == names[:2]
    Path("gap.txt").write_text("rest\n\nactive\n")
    Path("latin.txt").write_bytes(b"rest\nspazi\xe8ren\n")
    refused(*table, "--states", "gap.txt", says=["line 2 of gap.txt is empty: --states expects a state in each line"])
    Path("twice.txt").write_text("rest\nactive\nrest\n")
    Path("blank.txt").write_text("\n\n")
    refused(*table, "--states", "twice.txt", says=["'twice.txt' names 'rest' twice: name it once"])
    refused(*table, "--states", "blank.txt", says=["blank.txt is empty: --states expects a state in each line"])
    refused(*table, "--states", "latin.txt", says=["latin.txt is not UTF-8 text"])
    refused(*table, "--states", "rest", says=["--states is 'rest', expected two or more states", "no such file"])
    refused(
        "fit", public, *READING, "--states", "zones.txt", "--output", "zones.txt", "--overwrite", says=["zones.txt"]
    )
    assert Path("zones.txt").exists()
