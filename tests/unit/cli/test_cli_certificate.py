"""``release --certificate``, ``certify``, ``checker`` and ``verify --certificate``."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

import pufferfish as pf
from pufferfish.cli import main
from pufferfish.fit.model_file import write_model
from pufferfish.release.checker import check as checker, check_more

READ = ["--state", "state", "--subject", "id", "--time", "t", "--max-gap", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(person, t, "walk" if t % 5 == person else "rest") for person in range(3) for t in range(100)]
    pl.DataFrame(rows, schema=["id", "t", "state"], orient="row").write_csv("t.csv")
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "walk"])
    write_model(pf.Model(theta=chain), "model.json")


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def release(*more: str) -> Result:
    return run("release", "t.csv", *READ, "--model", "model.json", "--query", "histogram", *more)


def test_a_release_with_its_proof() -> None:
    found = release("--epsilon", "1", "--output", "r.json", "--certificate", "proof.json")
    assert found.exit_code == 0, found.output
    assert "certificate: proved in whole numbers, with this very noise" in found.stdout
    assert "written: r.json, proof.json" in found.stdout
    assert run("checker", "check.py").exit_code == 0
    for name in ("check.py", "check_networks.py", "check_more.py"):
        assert Path(name).read_bytes() == Path(checker.__file__).with_name(name).read_bytes()
    checker.main("r.json", "proof.json", "model.json")
    told = run("verify", "r.json", "--certificate", "proof.json")
    assert (told.exit_code, "proved by certificate, in whole numbers" in told.stdout) == (0, True)
    assert run("certify", "r.json", "--output", "again.json").exit_code == 0
    checker.main("r.json", "again.json")


def test_a_total_of_releases() -> None:
    names = ["r.json", "other.json"]
    for name in names:
        assert release("--epsilon", "0.5", "--output", name).exit_code == 0
    found = run("certify", *names, "--output", "total.json")
    assert (found.exit_code, "together they cost at most ε = 1.0" in found.stdout) == (0, True), found.output
    check_more.main("total.json", *names, "model.json")
    assert run("certify", "r.json", "model.json", "--output", "no.json").exit_code == 2
    assert not Path("no.json").exists()


def test_no_bounds_near_the_noise_is_said() -> None:
    clock = pf.PeriodicChain([[[0.9, 0.1], [0.4, 0.6]], [[0.5, 0.5], [0.3, 0.7]]], states=["rest", "walk"])
    Path("model.json").unlink()
    write_model(pf.Model(theta=clock), "model.json")
    pl.DataFrame([("a", t, "walk") for t in range(2)], schema=["id", "t", "state"], orient="row").write_csv("t.csv")
    found = release("--epsilon", "1", "--output", "r.json", "--certificate", "proof.json", "--accept", "noise")
    assert found.exit_code == 0, found.output
    assert "no bounds were found near that, so this noise hides all records together" in " ".join(found.stdout.split())


def test_a_report_holds_the_release_and_its_proof() -> None:
    assert release("--epsilon", "1", "--output", "r.json", "--certificate", "proof.json").exit_code == 0
    report = ["report", "r.json", "--brief", "--output", "page.html", "--certificate"]
    assert run(*report, "proof.json").exit_code == 0
    page = Path("page.html").read_text()
    held = page.split('id="proof">')[1].split("</script>")[0]
    assert json.loads(held) == [Path(name).read_text() for name in ("r.json", "proof.json")]
    assert "The proof, checked by this page" in page
    Path("page.html").unlink()
    Path("other.json").write_text(Path("proof.json").read_text().replace("members", "others"))
    refused = run(*report, "other.json")
    assert (refused.exit_code, "does not hold" in refused.output) == (2, True), refused.output
    assert run(*report, "proof.json", "r.json").exit_code == 2
    assert not Path("page.html").exists()


def test_a_proof_of_something_else() -> None:
    assert release("--epsilon", "1", "--output", "r.json", "--certificate", "proof.json").exit_code == 0
    proof = json.loads(Path("proof.json").read_text())
    for members, says in ([], "other members"), ([None], "the losses of all"):
        Path("proof.json").write_text(json.dumps(proof | {"members": members}))
        told = run("verify", "r.json", "--certificate", "proof.json")
        assert (told.exit_code, says in " ".join(told.stdout.split())) == (1, True), told.stdout
    for content in ("", "{}", "[1", '{"format": "pufferfish-proof"}'):
        Path("proof.json").write_text(content)
        assert run("verify", "r.json", "--certificate", "proof.json").exit_code == 1


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--epsilon", "1", "--by", "id"], "leave out --by"),
        (["--accuracy", "0.1"], "needs --epsilon: give it in place of --accuracy"),
        (["--epsilon", "1", "--mechanism", "exact-laplace"], "no certificate"),
    ],
)
def test_what_is_refused(more: list[str], says: str) -> None:
    """In one line, with nothing drawn or written."""
    found = release(*more, "--output", "r.json", "--certificate", "proof.json")
    assert (found.exit_code, says in found.output) in ((2, True),), found.output
    assert not Path("r.json").exists()
    assert not Path("proof.json").exists()


def test_a_release_with_no_room_for_rounding_is_told_how_to_have_a_certificate() -> None:
    made = run("ledger", "create", "book.json", "--model", "model.json", "--budget", 1, "--table", "t.csv", *READ)
    assert made.exit_code == 0, made.output
    level = ("--up-to", "0.5", "--noise", "equal", "--ledger", "book.json")
    assert release(*level, "--output", "r.json").exit_code == 0
    found = run("certify", "r.json", "--output", "proof.json")
    assert found.exit_code == 2
    assert "in rounded numbers, more than the 0.4" in found.output
    assert "ask for the certificate when you release" in found.output


def test_a_checker_that_is_there_is_no_other_version() -> None:
    for _ in range(2):
        assert run("checker", "check.py").exit_code == 0
    with open("check_more.py", "a") as file:
        file.write("# mine\n")
    found = run("checker", "check.py")
    assert (found.exit_code, "give --overwrite" in found.output) == (2, True)
    assert run("checker", "check.py", "--overwrite").exit_code == 0
    assert not Path("check_more.py").read_text().endswith("mine\n")


def test_files_of_others_are_kept() -> None:
    Path("mine.py").write_text("mine = 1\n")
    assert run("checker", "mine.py").exit_code == 2
    assert Path("mine.py").read_text() == "mine = 1\n"
    assert release("--epsilon", "1", "--output", "r.json").exit_code == 0
    assert run("certify", "r.json", "--output", "r.json", "--overwrite").exit_code == 2
    assert run("certify", "model.json", "--output", "p.json").exit_code == 2
    assert not Path("p.json").exists()


def test_a_table_of_a_network(tmp_path: Path) -> None:
    """Release, certify and verify as for chains; a page does not check it, and says so."""
    smoke, cough = pf.CPT(["no", "yes"], [0.8, 0.2]), pf.CPT(["no", "yes"], [[0.9, 0.1], [0.6, 0.4]], ["smoke"])
    write_model(pf.Model(theta=pf.BayesianNetwork({"smoke": smoke, "cough": cough})), "network.json")
    pl.DataFrame({"smoke": ["no", "yes"] * 20, "cough": ["no", "no", "yes", "no"] * 10}).write_csv("rows.csv")
    asked = ["release", "rows.csv", "--model", "network.json", "--epsilon", "1"]
    found = run(*asked, "--output", "r.json", "--certificate", "proof.json", "--secrets", "smoke")
    assert found.exit_code == 0, found.output
    assert "certificate: proved in whole numbers" in found.stdout
    checker.main("r.json", "proof.json", "network.json")
    told = run("verify", "r.json", "--certificate", "proof.json")
    assert (told.exit_code, "proved by certificate, in whole numbers" in told.stdout) == (0, True), told.stdout
    assert run("certify", "r.json", "--output", "again.json").exit_code == 0
    assert run(*asked, "--output", "other.json", "--query", "marginal-counts", "--secrets", "smoke").exit_code == 0
    found = run("certify", "r.json", "other.json", "--output", "total.json")
    assert (found.exit_code, "together they cost at most ε = " in found.stdout) == (0, True), found.output
    check_more.main("total.json", "r.json", "other.json", "network.json")
    page = run("report", "r.json", "--brief", "--certificate", "proof.json", "--output", "page.html")
    assert (page.exit_code, "the checker in a page does not cover" in page.output) == (2, True), page.output
    assert not Path("page.html").exists()
