"""Files of version 0.1 are read by every later 0.x: shown, verified, certified, and spent from, by today's code.

The files in ``tests/made_by_0_1`` were written by version 0.1.0 and are never made anew. Where one of these tests
fails, the program has to change, and not the files.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import polars as pl
import pytest

import pufferfish as pf
from commands import refused, run
from pufferfish.check.network import NetworkCheck
from pufferfish.check.record import CheckFields

HERE = Path(__file__).parent.parent / "made_by_0_1"
CERTIFICATE = HERE.parent.parent / "certificate"
READING = {"subject": "who", "time": "t", "max_gap": "1h", "time_zone": "UTC"}
RELEASES = sorted(
    [path for path in (HERE / "releases").glob("*.json") if path.stem not in ("measurement", "each-subject")]
    + [path for path in (HERE / "proofs").glob("*.json") if not path.stem.endswith("-proof")]
    + [*(HERE / "ledgers").glob("*-release-*.json")]
)
MODELS = sorted((HERE / "models").glob("*.json"))
PROOFS = sorted(path for path in (HERE / "proofs").glob("*-proof.json") if path.stem != "together-proof")
FORMATS = {"release": 4, "model": 1, "ledger": 6, "proof": 1, "check": 2, "measurement": 1}
"""The formats of version 0.1, and the version of each."""


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_no_file_was_changed_and_every_kind_is_there() -> None:
    digests = json.loads((HERE / "digests.json").read_text())
    files = [path for folder in HERE.iterdir() if folder.name != "__pycache__" for path in folder.glob("*")]
    assert {
        path.relative_to(HERE).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    } == digests
    assert sum(path.stat().st_size for path in files) < 400_000
    heads = [json.loads(path.read_text()) for path in files if path.suffix == ".json"]
    assert {(head["format"], head["version"]) for head in heads} == {
        (f"pufferfish-{kind}", version) for kind, version in FORMATS.items()
    }
    page = (HERE.parent.parent / "docs" / "stable.md").read_text()
    assert all(re.search(f'"pufferfish-{kind}", "version": {version}`', page) for kind, version in FORMATS.items())
    releases = [head for head in heads if head["format"] == "pufferfish-release"]
    assert {head["mechanism"]["name"] for head in releases} == {
        "approximate-wasserstein", "entry-dp", "exact-laplace", "gk16", "group-dp", "markov-quilt", "mqm-approx",
        "mqm-exact", "propagation", "wasserstein",
    }  # fmt: skip
    assert len({head["theta"]["kind"] for head in releases}) == 11
    assert len({head["query"]["kind"] for head in releases}) == 12


@pytest.mark.grid(keep=24)
@pytest.mark.parametrize("path", RELEASES, ids=name_of)
def test_a_release_is_read_shown_and_verified(path: Path, tmp_path: Path) -> None:
    record = json.loads(path.read_text())
    release = pf.Release.from_json(path)
    assert (release.software["pufferfish-privacy"], release.noisy_values) == ("0.1.0", record["noisy_values"])
    assert release.to_frame().height > 0
    shown = run("show", path)
    assert shown.exit_code == 0, shown.output
    assert release.promise in shown.output
    found = release.verify()
    assert found.holds, found.wrong
    assert found.proved
    record["noise"]["scale"] *= 0.9
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(record))
    assert not pf.verify(changed).holds


def test_values_of_each_subject() -> None:
    record, table = HERE / "releases" / "each-subject.json", HERE / "releases" / "each-subject.csv"
    release = pf.EachRelease.from_json(record)
    assert release.read_table(table)["subject"].to_list() == ["s0", "s1", "s2"]
    assert run("show", record).exit_code == 0
    assert pf.verify(record, values=table).holds


def test_a_measurement() -> None:
    found = pf.MeasurementRelease.from_json(HERE / "releases" / "measurement.json")  # which proves it again
    assert found.leakage <= found.epsilon == 1
    assert run("show", HERE / "releases" / "measurement.json").exit_code == 0


@pytest.mark.grid(keep=len(MODELS))
@pytest.mark.parametrize("path", MODELS, ids=name_of)
def test_a_model_is_read_shown_and_used(path: Path) -> None:
    model = pf.read_model(path)
    assert run("show", path).exit_code == 0
    query = pf.Marginals() if model.theta.networks else pf.Histogram()
    noise = pf.GroupDP(model, 10).calibrate(query, 1.0)
    assert noise.scale > 0
    release = HERE / "releases" / f"theta-{path.stem}.json"
    if release.exists():
        assert pf.verify(release, model=path).holds


def test_a_fitted_model_says_what_it_was_fitted_to() -> None:
    fitted = pf.read_model(HERE / "models" / "fitted.json")
    assert fitted.fitted_on is not None
    assert fitted.step == "1h"


def test_numbers_of_checks_keep_their_names() -> None:
    chain = msgspec.json.decode((HERE / "checks" / "chain.json").read_bytes(), type=CheckFields)
    network = msgspec.json.decode((HERE / "checks" / "network.json").read_bytes(), type=NetworkCheck)
    assert chain.verdict.reasons
    assert network.verdict.reasons


@pytest.mark.parametrize("kind", ["file", "database"])
def test_a_ledger_of_one_table_is_verified_and_spent_from(kind: str, tmp_path: Path) -> None:
    name, book = ("chain.json", tmp_path / "chain.json") if kind == "file" else ("chain.db", tmp_path / "chain.db")
    shutil.copy(HERE / "ledgers" / name, book)
    where = book if kind == "file" else f"sqlite:///{book}"
    ledger = pf.Ledger.open(where)
    assert [entry.number for entry in ledger.entries] == [1, 2]
    assert run("ledger", "show", where).exit_code == 0
    made = "chain" if kind == "file" else "database"
    for number in (1, 2):
        assert pf.verify(HERE / "ledgers" / f"{made}-release-{number}.json", ledger=where).holds
    other = HERE / "ledgers" / f"{'database' if kind == 'file' else 'chain'}-release-1.json"
    assert not pf.verify(other, ledger=where).holds
    table = pl.read_csv(HERE / "ledgers" / "growing-2.csv", try_parse_dates=True)  # its ledger is of a frame
    data = pf.read_sequences(table, "state", **READING)
    spent = ledger.spent
    calibration = ledger.calibrate(pf.Histogram(), up_to=spent + 0.5, data=data)
    release = pf.release(data, pf.Histogram(), calibration, ledger=ledger)
    assert release.verify(ledger=where).holds
    again = pf.Ledger.open(where)
    assert len(again.entries) == 3
    assert spent + 0.4 < again.spent <= spent + 0.5
    with pytest.raises(pf.BudgetExceeded):
        pf.release(data, pf.Histogram(), ledger.bound.calibrate(pf.Histogram(), 3.0), ledger=again)


def test_a_ledger_of_rows_is_verified_and_spent_from(tmp_path: Path) -> None:
    book = tmp_path / "network.json"
    shutil.copy(HERE / "ledgers" / "network.json", book)
    ledger = pf.Ledger.open(book)
    assert pf.verify(HERE / "ledgers" / "network-release-1.json", ledger=book).holds
    ledger.spend(ledger.bound.calibrate(pf.Marginals(), 0.5))
    assert len(pf.Ledger.open(book).entries) == 2
    with pytest.raises(pf.BudgetExceeded):
        ledger.spend(ledger.bound.calibrate(pf.Marginals(), 2.0))


def test_a_ledger_of_a_table_that_grows_goes_on(tmp_path: Path) -> None:
    book = tmp_path / "growing.json"
    shutil.copy(HERE / "ledgers" / "growing.json", book)
    ledger = pf.Ledger.open(book)
    assert pf.verify(HERE / "ledgers" / "growing-release-1.json", ledger=book).holds
    data = ledger.read(HERE / "ledgers" / "growing-2.csv", pf.Histogram())
    assert (data.records, data.read_before) == (54, 42)
    release = pf.release(data, pf.Histogram(), ledger.as_planned(pf.Histogram(), data), ledger=ledger)
    assert release.verify(ledger=book).holds
    with pytest.raises(pf.DataError, match="already read by a release"):
        pf.Ledger.open(book).read(HERE / "ledgers" / "growing-2.csv", pf.Histogram())


def checked(*paths: Path) -> tuple[int, str]:
    """What the checker says that shares no code with the program."""
    command = [sys.executable, str(CERTIFICATE / "check_more.py"), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.program
@pytest.mark.grid(keep=len(PROOFS))
@pytest.mark.parametrize("path", PROOFS, ids=name_of)
def test_a_proof_holds_and_can_be_made_again(path: Path) -> None:
    release = path.with_name(path.name.replace("-proof", ""))
    assert pf.verify(release, certificate=path).holds
    code, printed = checked(release, path)
    assert code == 0, printed
    assert pf.certify(pf.Release.from_json(release)).price <= 1
    other = next(each for each in PROOFS if each.stem == ("any-proof" if path.stem != "any-proof" else "clock-proof"))
    assert checked(release, other)[0] == 1


@pytest.mark.program
def test_a_proof_of_releases_together() -> None:
    folder = HERE / "proofs"
    code, printed = checked(folder / "chain.json", folder / "transitions.json", folder / "together-proof.json")
    assert code == 0, printed
    assert checked(folder / "chain.json", folder / "together-proof.json")[0] == 1


@pytest.mark.parametrize(
    ("kind", "name", "command"),
    [
        ("release", "releases/count.json", ["show"]),
        ("release", "releases/count.json", ["verify"]),
        ("measurement", "releases/measurement.json", ["show"]),
        ("model", "models/chain.json", ["show"]),
        ("ledger", "ledgers/chain.json", ["ledger", "show"]),
    ],
)
def test_a_version_that_is_not_known_is_refused_in_one_line(
    kind: str, name: str, command: list[str], tmp_path: Path
) -> None:
    record = json.loads((HERE / name).read_text())
    for version in (record["version"] + 1, "1", None, True):
        later = tmp_path / "later.json"
        later.write_text(json.dumps(record | {"version": version}))
        line = refused(*command, later, says=[f"of pufferfish-{kind}", f"this program reads version {FORMATS[kind]}"])
        assert f"is version {version!r}" in line
