"""``pufferfish release --each-subject``: a table of values, and what is refused."""

import importlib
import shutil
from pathlib import Path

import pytest

import pufferfish as pf
from commands import READING, refused, run, write_table
from pufferfish.errors import RecordError

EACH = importlib.import_module("pufferfish.release.store")


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, model, book = write_table(tmp_path / "t.csv", seed=1), tmp_path / "m.json", tmp_path / "b.json"
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    pf.write_model(pf.Model(theta=pf.ChainClass((chain,), origin="stated"), step="1min"), model)
    assert run("ledger", "create", book, "--model", model, "--budget", 1, "--table", table, *READING).exit_code == 0
    each = ["release", table, *READING, "--model", model, "--each-subject"]
    output = tmp_path / "v.parquet"
    with monkeypatch.context() as patched:
        patched.setattr(EACH, "table_of", lambda *_: (_ for _ in ()).throw(RecordError("the disk is full")))
        stopped = run(*each, "--epsilon", 0.5, "--output", output, "--ledger", book)
    assert stopped.exit_code == 1
    assert "error: the disk is full; " in stopped.stderr
    assert "run the same command again" in stopped.stderr
    done = run(*each, "--epsilon", 0.5, "--output", output, "--ledger", book)
    assert done.exit_code == 0, done.output
    assert "histogram for each of 3 subjects (2 values each)" in done.stdout
    assert "ledger: number 1, spent 0.5 of 1 in all" in done.stdout
    found = pf.EachRelease.from_json(tmp_path / "v.json")
    error = found.read_table(output)["error_95"][0]
    assert f"each value with 95% probability: ± {error:.3g} for 120 records (" in done.stdout
    frame = found.read_table(output)
    weak = int((frame["value"].abs() <= frame["error_95"]).sum())
    assert (f"○ {weak} of 6 values: no larger than their own error" in done.stdout) == (weak > 0)
    assert ("no larger than their own error" in done.stdout) == (weak > 0)
    wild = run(*each, "--epsilon", 0.05, "--output", tmp_path / "wild.csv", "--accept", "noise")
    assert "a release with --valid has the nearest possible values (no privacy cost)" in wild.stdout, wild.output
    valid = run(*each, "--epsilon", 0.05, "--output", tmp_path / "valid.csv", "--accept", "noise", "--valid")
    assert "with --valid" not in valid.stdout, valid.output
    for stem in ("wild", "valid"):
        for ending in ("csv", "json"):
            (tmp_path / f"{stem}.{ending}").unlink()
    uneven = [*each, "--epsilon", 0.5, "--where", "id != 'S0' or awake", "--output", tmp_path / "u.csv"]
    shares = run(*uneven)
    errors = pf.EachRelease.from_json(tmp_path / "u.json").accuracy_95.each
    told = f"each value with 95% probability: from ± {errors / 120:.3g} for 120 records to ± {errors / 80:.3g} for 80"
    assert told in shares.stdout
    counts = run(*uneven, "--query", "count:active", "--overwrite")
    errors = pf.EachRelease.from_json(tmp_path / "u.json").accuracy_95.each
    assert f"with 95% probability each value is within {errors:.6g}\n" in counts.stdout
    assert ["stays spent" in result.stdout for result in (shares, counts)] == [False, True]
    assert found.read_table(output)["subject"].to_list() == ["S0", "S0", "S1", "S1", "S2", "S2"]
    refused(*each, "--epsilon", 0.5, "--output", output, says=["v.json exists: it is the record"])
    refused(*each, "--epsilon", 9, "--output", tmp_path / "w.csv", "--ledger", book, says=["would raise what is spent"])
    refused(*each, "--epsilon", 1, "--output", tmp_path / "w.txt", says=[".parquet or .csv"])
    refused(*each, "--epsilon", 1, "--output", table, says=["t.csv"])
    up_to = run(*each, "--up-to", 1, "--output", tmp_path / "w.csv", "--ledger", book, "--dry-run")
    assert "spent 1 of 1" in up_to.stdout.replace("1 of 1 spent", "spent 1 of 1"), up_to.output
    refused(*each, "--epsilon", 1, "--output", tmp_path / "w.csv", "--plot", tmp_path / "p.png", says=["--plot"])
    near = tmp_path / "near"
    near.mkdir()
    as_near = run(*each, "--accuracy", 0.5, "--output", near / "v.csv")
    assert as_near.exit_code == 0, as_near.output
    errors = pf.EachRelease.from_json(near / "v.json").read_table(near / "v.csv")["error_95"]
    assert 0.45 < errors.max() <= 0.5
    shutil.rmtree(near)
    fitted = tmp_path / "f.json"
    assert run("fit", table, *READING, "--output", fitted).exit_code == 0
    itself = [*["release", table, *READING, "--model", fitted, "--each-subject"], "--epsilon", 1, "--output"]
    refused(*itself, tmp_path / "x.csv", says=["the model was fitted to this very table"])
    told = run(*itself, tmp_path / "x.csv", "--accept", "public")
    assert told.exit_code == 0, told.output
    assert told.stderr.count("The model was fitted to this very table") == 1
    for name in ("f.json", "u.csv", "u.json", "x.csv", "x.json"):
        (tmp_path / name).unlink()
    only = run(*each[:-1], "--epsilon", 0.5, "--where", "id == 'S1'", "--output", tmp_path / "r.json", "--ledger", book)
    assert only.exit_code == 2  # twice the loss for S1
    assert "from 0.5 to 1.0" in only.stderr
    only = run(*each[:-1], "--up-to", 0.9, "--where", "id != 'S1'", "--output", tmp_path / "r.json", "--ledger", book)
    assert only.exit_code == 0, only.output
    again = run(*each[:-1], "--up-to", 0.9, "--where", "id == 'S1'", "--output", tmp_path / "s.json", "--ledger", book)
    assert again.exit_code == 0, again.output
    scales = [pf.Release.from_json(tmp_path / name).epsilon for name in ("r.json", "s.json")]
    assert scales[0] == pytest.approx(scales[1], rel=1e-3)
    assert ", 2 of 3 chains " in run("ledger", "show", book).stdout
    for name in ("r.json", "s.json"):
        (tmp_path / name).unlink()
    alone = [table, "--state", "activity", "--model", model, "--each-subject", "--epsilon", 1]
    refused("release", *alone, "--output", tmp_path / "w.csv", says=["needs --subject"])
    left = {file.name for file in tmp_path.iterdir() if file.suffix != ".lock"}  # locks stay
    assert left == {"t.csv", "m.json", "b.json", "v.parquet", "v.json"}
