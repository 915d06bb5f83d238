"""``pufferfish release --dry-run``: says what the same command would do, and does none of it."""

import json
import re
import sys
from pathlib import Path

import pytest

import pufferfish as pf
from commands import READING, refused, run, write_table
from pufferfish._base.words import at_most

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_table(tmp_path / "t.csv", seed=1)
    pf.write_model(pf.Model(theta=pf.ChainClass((CHAIN,), origin="stated"), step="1min"), tmp_path / "m.json")
    of = ["--model", tmp_path / "m.json", "--table", tmp_path / "t.csv", *READING]
    told = run("ledger", "create", tmp_path / "l.json", *of, "--time-zone", "UTC", "--budget", 2)
    assert told.exit_code == 0, told.output
    return tmp_path


def command(folder: Path, *more: object) -> list[object]:
    return ["release", folder / "t.csv", *READING, "--time-zone", "UTC", "--model", folder / "m.json", *more]


def held(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def lines(text: str, *starts: str) -> list[str]:
    text = re.sub(r"assumed \(in full in .*?\):", "assumed:", text)
    found = [line for line in text.splitlines() if line.startswith(starts)]
    assert found
    return found


NOISE = ("LeakagePropagation", "post-processed:", "read:", "Whatever", "warning:", "asked:", "states in", "assumed")


@pytest.mark.parametrize(
    "asked",
    [
        ("--epsilon", 1),
        ("--epsilon", 1, "--noise", "best", "--query", "cdf"),
        ("--epsilon", 0.5, "--query", "quantiles:.3", "--valid"),
        ("--accuracy", 80, "--query", "transitions"),
        ("--epsilon", 1, "--by", "id", "--query", "count:active"),
        ("--epsilon", 1e-3, "--by", "hour", "--accept", "noise"),  # hides nearly all
        ("--epsilon", 1, "--mechanism", "mqm-approx"),
    ],
)
@pytest.mark.parametrize("with_ledger", [False, True])
def test_says_what_a_release_would_say_but_for_values(folder: Path, asked: tuple[object, ...], with_ledger: bool):
    ledger = ["--ledger", folder / "l.json"] if with_ledger else []
    asked = ("--output", folder / "r.json", "--csv", folder / "r.csv", *ledger, *asked)
    before = held(folder)
    dry = run(*command(folder, *asked, "--dry-run"))
    assert dry.exit_code == 0, dry.output
    assert held(folder) == before
    assert "nothing was drawn, spent or written" in dry.stdout
    assert "written:" not in dry.stdout
    real = run(*command(folder, *asked))
    assert real.exit_code == 0, real.output
    start = NOISE if "mqm-approx" not in asked else ("MQMApprox", *NOISE)
    assert lines(dry.stdout, *start) == lines(real.stdout, *start)
    assert dry.stderr == real.stderr
    found = pf.Release.from_json(folder / "r.json")
    if with_ledger:
        assert found.ledger is not None
        spent = f"{at_most(found.ledger.spent)} of 2"
        assert lines(dry.stdout, "ledger:") == [f"ledger: it would be number 1, {spent} spent in all"]
        assert lines(real.stdout, "ledger:")[0].endswith(f"spent {spent} in all")


def test_what_is_left_of_a_ledger(folder: Path) -> None:
    asked = ("--ledger", folder / "l.json", "--output", folder / "r.json")
    first = run(*command(folder, "--epsilon", 1.5, *asked))
    assert first.exit_code == 0, first.output
    before = held(folder)
    asked = ("--ledger", folder / "l.json", "--output", folder / "s.json")
    too_much = [refused(*command(folder, "--epsilon", 1, *asked, *more)) for more in ([], ["--dry-run"])]
    assert too_much[0] == too_much[1]
    assert "above the budget of 2" in too_much[1]
    assert held(folder) == before
    dry = run(*command(folder, "--up-to", 2, *asked, "--dry-run"))
    assert "it would be number 2, " in dry.stdout
    assert held(folder) == before
    refused(*command(folder, "--epsilon", 1, "--output", folder / "r.json", "--dry-run"), says=["--overwrite"])
    over = command(
        folder, "--epsilon", 0.1, *asked[:2], "--output", folder / "r.json", "--overwrite", "--where", "awake"
    )
    dry = run(*over, "--dry-run")
    assert "it would replace the earlier release there, whose privacy budget stays spent" in dry.stdout
    assert held(folder) == before
    (line,), (said,) = (lines(text, "ledger:") for text in (dry.stdout, run(*over).stdout))
    assert (
        line.removeprefix("ledger: it would be number 2, charged on where awake, 240 of 360 steps, ").split()[0] in said
    )
    assert "number 2, charged on where awake, 240 of 360 steps, " in said


@pytest.mark.parametrize("more", [(), ("--by", "id"), ("--each-subject",), ("--query", "transitions")])
def test_no_noise_is_drawn(folder: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]) -> None:
    """Noise is made ready, as its sizes may be refused; that it is drawn would be seen here."""

    def ready(*_: object, **__: object) -> object:
        def draw() -> list[int]:
            raise AssertionError("noise is drawn")

        return draw

    monkeypatch.setattr(sys.modules["pufferfish.release.draw"], "discrete_laplace_noise", ready)
    monkeypatch.setattr(sys.modules["pufferfish.release.draw"], "noise_in_bulk", ready)
    asked = command(
        folder, "--epsilon", 1, "--output", folder / ("v.csv" if "--each-subject" in more else "v.json"), *more
    )
    assert isinstance(run(*asked).exception, AssertionError)
    (folder / "v.json.pending").unlink(missing_ok=True)
    dry = run(*asked, "--dry-run")
    assert dry.exit_code == 0, dry.output


def test_quantiles_are_named(folder: Path) -> None:
    dry = run(
        *command(folder, "--epsilon", 1, "--query", "quantiles:.3,.5", "--output", folder / "r.json", "--dry-run")
    )
    assert "from these values: the quantiles 0.3, 0.5, each with the states between which it is (95%)" in dry.stdout


def test_needs_no_place_for_the_release(folder: Path) -> None:
    before = held(folder)
    asked = ("--epsilon", 1, "--ledger", folder / "l.json")
    without = run(*command(folder, *asked, "--dry-run"))
    assert without.exit_code == 0
    assert without.stdout == run(*command(folder, *asked, "--dry-run", "--output", folder / "r.json")).stdout
    for more in ([], ["--each-subject", "--dry-run"]):
        refused(*command(folder, *asked, *more), says=["Missing option '--output'"])
    assert held(folder) == before


def test_says_how_many_steps_are_not_seen(folder: Path) -> None:
    lines = (folder / "t.csv").read_text().splitlines()
    lines[3] = lines[3].replace("rest", "").replace("active", "")
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    told = run(*command(folder, "--epsilon", 1, "--dry-run"))
    assert ", and 1 step without a record between them (gaps, missing states)\n" in told.stdout


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_value_for_each_subject(folder: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool) -> None:
    asked = ("--ledger", folder / "l.json", "--output", folder / "v.csv", "--each-subject", "--epsilon", 1)
    if interrupted:

        def fail(*_: object, **__: object) -> object:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(sys.modules["pufferfish.release.store"], "table_of", fail)
            stopped = run(*command(folder, *asked))
        assert stopped.exit_code == 1
        assert stopped.stderr.splitlines()[-1].startswith("error: interrupted; ")
        assert (folder / "v.json.pending").exists()
        shown = run("show", folder / "v.json.pending")
        assert shown.exit_code == 2
        assert "belongs to an interrupted release; do not publish it" in shown.stderr
        other = run("--quiet-errors", *command(folder, *(0.5 if word == 1 else word for word in asked)))
        assert other.stderr.splitlines()[-1].startswith("error: another release was interrupted here: run its command")
        with monkeypatch.context() as patch:
            patch.setattr("pufferfish.cli.release.prepare_each", fail)
            assert "holds what an earlier run began" in run(*command(folder, *asked, "--dry-run")).stderr
    before = held(folder)
    dry = run(*command(folder, *asked, "--dry-run"))
    assert dry.exit_code == 0, dry.output
    assert held(folder) == before
    real = run(*command(folder, *asked))
    assert real.exit_code == 0, real.output
    start = ("histogram for each", "LeakagePropagation", "read:", "Whatever", "each value with 95% probability: ± ")
    assert sorted(lines(dry.stdout, *start)) == sorted(lines(real.stdout, *start))
    spent = pf.EachRelease.from_json(folder / "v.json").ledger
    assert spent is not None
    assert f"number {spent.entry}, {at_most(spent.spent)} of 2 spent in all" in dry.stdout
    assert len(pf.Ledger.open(folder / "l.json").entries) == 1


def test_rows_of_a_network(folder: Path) -> None:
    rain = pf.CPT(["dry", "wet"], [0.8, 0.2])
    grass = pf.CPT(["no", "yes"], [[0.9, 0.1], [0.2, 0.8]], parents=["rain"])
    theta = pf.BayesianNetwork({"rain": rain, "grass": grass})
    pf.write_model(pf.Model(theta=pf.ModelClass((theta,), "stated")), folder / "n.json")
    (folder / "days.csv").write_text("rain,grass\n" + "dry,no\nwet,yes\nwet,no\n" * 30)
    asked = ["release", folder / "days.csv", "--model", folder / "n.json", "--query", "joint:rain,grass"]
    asked += ["--epsilon", 1, "--output", folder / "r.json"]
    before = held(folder)
    dry = run(*asked, "--dry-run")
    assert dry.exit_code == 0, dry.output
    assert held(folder) == before
    assert lines(dry.stdout, *NOISE) == lines(run(*asked).stdout, *NOISE)


def test_one_query_mechanisms_are_refused_before_anything_is_calibrated(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pf.ExactLaplace, "calibrate", None)
    asked = ("--epsilon", 1, "--mechanism", "exact-laplace", "--output", folder / "v.csv")
    for option, more in (("--by", ["--by", "id"]), ("--each-subject", ["--each-subject"])):
        refused(*command(folder, *asked, *more), says=[f"exact-laplace does not work with {option}: ", "propagation"])


def test_json_holds_what_the_record_will_say_and_nothing_else_is_on_standard_output(folder: Path) -> None:
    asked = command(folder, "--epsilon", 1, "--ledger", folder / "l.json")
    dry = run(*asked, "--dry-run", "--json")
    assert dry.exit_code == 0, dry.output
    told = json.loads(dry.stdout)
    assert run(*asked, "--output", folder / "made.json").exit_code == 0
    record = json.loads((folder / "made.json").read_text())
    assert told == {name: record[name] for name in told}
    assert {"epsilon", "hides", "accuracy_95", "ledger", "warnings"} <= set(told)
    assert not {"values", "noisy_values", "quantiles", "postprocessing", "counted"} & set(told)
    refused(*asked, "--json", "--output", folder / "r.json", says=["--json only works with --dry-run"])
