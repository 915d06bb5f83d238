"""The command line that holds a model against public data."""

import json
import random
import shlex
from pathlib import Path

import pytest

import pufferfish as pf
from commands import READING, in_two, refused, run, write_table


def test_a_model_is_checked_on_the_table_it_was_fitted_to(tmp_path: Path) -> None:
    public, other = write_table(tmp_path / "a.csv", seed=1), write_table(tmp_path / "b.csv", seed=2)
    model, output, plot = (tmp_path / name for name in ("m.json", "c.json", "c.png"))
    assert run("fit", public, *READING, "--output", model).exit_code == 0
    result = run("check", model, public, *READING, "--output", output, "--plot", plot)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("In doubt.\n  - 357 transitions are few: use more public data\n")
    assert "the model was fitted to these people: this check proves nothing about others" in result.stdout
    (command,) = [line for line in result.stdout.splitlines() if line.startswith(f"  pufferfish fit {public} --state ")]
    words = shlex.split(command)[1:]
    words[words.index("--output") + 1] = str(tmp_path / "next.json")
    assert run(*words).exit_code == 0  # as it can be copied
    assert "proves nothing about others" not in run("check", model, other, *READING, "--accept", "public").stdout
    assert "--details prints more" in result.stdout
    assert "overlap of the laws" not in result.stdout
    detailed = run("check", model, public, *READING, "--details").stdout
    assert "--details prints more" not in detailed
    assert "overlap of the laws" in detailed
    assert f"written: {output}" in result.stdout
    assert json.loads(output.read_text())["format"] == "pufferfish-check"
    assert plot.read_bytes().startswith(b"\x89PNG")
    refused("check", model, public, *READING, "--output", output, says=["--overwrite"])
    refused("check", model, other, *READING, says=["was not fitted to", "give --accept public"])
    told = run("check", model, other, *READING, "--accept", "public", "--epsilon", 0.5)
    assert told.exit_code == 0, told.output
    assert "for this model, ε = 0.5 (multiplier" in told.stdout


@pytest.mark.slow
def test_a_model_of_two_files_is_checked_on_both(tmp_path: Path) -> None:
    first, second = in_two(write_table(tmp_path / "a.csv", seed=1))
    model = tmp_path / "m.json"
    assert run("fit", first, second, *READING, "--output", model).exit_code == 0
    result = run("check", model, first, second, *READING, "--output", tmp_path / "c.json")
    assert result.exit_code == 0, result.output
    assert f"\n  pufferfish fit {first} {second} --state " in result.stdout  # as it can be copied
    assert f"kept in {model}: " in result.stdout
    refused("check", model, first, *READING, says=["was not fitted to", "give --accept public"])
    says = [f"--output {second} is the input file"]
    refused("check", model, first, second, *READING, "--output", second, "--overwrite", says=says)
    asked = ["--model", model, "--budget", 1, "--table", first, "--table", second, "--accept", "public"]
    assert run("ledger", "create", tmp_path / "book.json", *asked, *READING).exit_code == 0
    for tables in ([first, second], [second]):  # each of them is protected
        told = run("check", model, *tables, *READING, "--accept", "public").stdout
        assert "the verdict is not kept: book.json protects a table of this name" in told


def test_reasons_name_options_of_the_command_line(tmp_path: Path) -> None:
    public, model = write_table(tmp_path / "a.csv", seed=1), tmp_path / "m.json"
    assert run("fit", public, *READING[:-2], "--output", model).exit_code == 0
    result = run("check", model, public, *READING[:-1], "5min")
    reason = next(line for line in result.stdout.splitlines() if "a matrix for each hour: not computed" in line)
    assert "not asked: hours of the day: " in result.stdout
    assert "give --max-gap 1min" in reason
    assert "max_gap" not in result.stdout
    advised = next(line for line in result.stdout.splitlines() if "  pufferfish fit " in line)
    assert "--max-gap 1min" in advised  # fit refuses 5min


def test_records_that_are_not_a_step_of_the_model_apart_are_refused(tmp_path: Path) -> None:
    public, model = write_table(tmp_path / "a.csv", seed=1), tmp_path / "m.json"
    assert run("fit", public, *READING, "--output", model).exit_code == 0
    lines = public.read_text().splitlines()
    (slow := tmp_path / "slow.csv").write_text("\n".join([lines[0], *lines[1::5]]) + "\n")
    for table, longest, why in (
        (slow, "5min", "records are 5min apart"),
        (public, "2min", "records up to 2min apart would count as one step"),
    ):
        reading = {"state": "activity", "subject": "id", "time": "minute", "max_gap": longest, "public": True}
        with pytest.raises(pf.DataError, match=why):
            pf.check_model(pf.read_model(model), table, **reading)
        refused("check", model, table, *READING[:-1], longest, says=[why])


@pytest.mark.slow
def test_what_fit_makes_is_checked(tmp_path: Path) -> None:
    public, model = write_table(tmp_path / "a.csv", seed=1), tmp_path / "m.json"
    for options in (["--forgets", 8], ["--confidence", 0.9], ["--order", 2], ["--stays"], ["--defend"]):
        assert run("fit", public, *READING, *options, "--output", model, "--overwrite").exit_code == 0
        result = run("check", model, public, *READING)
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith(("In doubt.\n", "Go on.\n"))


@pytest.mark.slow
def test_the_verdict_is_kept_in_the_model_and_told_by_releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    public, private = (write_table(Path(name), seed=seed) for name, seed in (("a.csv", 1), ("private.csv", 2)))
    release = ["release", private, *READING, "--model", "m.json", "--epsilon", 5, "--output", "r.json", "--overwrite"]
    assert run("fit", public, *READING, "--output", "m.json").exit_code == 0
    told = run(*release).stdout
    assert "assumed (in full in r.json): Θ holds the law of the records (never checked against public data); " in told
    Path("r.json").unlink()
    checked = run("check", "m.json", public, *READING).stdout
    today = pf.read_model("m.json").checked.date
    words = f"checked on {today} against the table that it was fitted to: in doubt"
    assert checked.endswith(f"kept in m.json: {words}\n")
    assert words in run(*release).stdout
    for command in (["show", "r.json"], ["verify", "r.json", "--model", "m.json"]):
        done = run(*command)
        assert done.exit_code == 0, done.output
    assert f"Θ was {words}." in run("show", "r.json").stdout
    assert run("report", "r.json", "--output", "r.html").exit_code == 0
    assert f"Θ was {words}." in Path("r.html").read_text()
    # r.json is about private.csv: a verdict would tell of its rows, and none is written
    before = Path("m.json").read_bytes()
    mistaken = run("check", "m.json", private, *READING, "--accept", "public")
    assert "the verdict is not kept: r.json protects a table of this name" in mistaken.stdout
    assert Path("m.json").read_bytes() == before
    # a copy under another name is known by what it holds
    Path("copy.csv").write_bytes(Path("private.csv").read_bytes())
    assert run("check", "m.json", "copy.csv", *READING, "--accept", "public").exit_code == 0
    again = "Check it again against the public table, which replaces this verdict"
    refused(*release, says=["the model was checked against this very table, or one is a part of the other", again])
    refused(
        *("ledger", "create", "book.json", "--model", "m.json", "--budget", 9, "--table", private, *READING),
        says=["the model was checked against this very table"],
    )
    assert run("check", "m.json", public, *READING).exit_code == 0
    assert run(*release).exit_code == 0


def test_a_condemned_model_is_not_released_under(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reading = [*READING[:-1], "1min"]

    def written(name: str, states: list[str]) -> str:
        rows = [f"p,2020-01-{1 + t // 1440:02}T{t // 60 % 24:02}:{t % 60:02},{s}" for t, s in enumerate(states)]
        Path(name).write_text("\n".join(["id,minute,activity", *rows]) + "\n")
        return name

    public = written("sticky.csv", (["rest"] * 300 + ["active"] * 300) * 20)
    coins = (random.Random(seed).choices(["rest", "active"], k=9000) for seed in (1, 2))
    private, other = (written(name, states) for name, states in zip(("p.csv", "o.csv"), coins, strict=True))
    coin = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]], states=["active", "rest"])
    pf.write_model(pf.Model(theta=coin, step="1min"), "m.json")
    assert run("check", "m.json", public, *reading, "--accept", "public").stdout.startswith("Do not go on.")
    release = ["release", private, *reading, "--model", "m.json", "--epsilon", 5, "--output", "r.json"]
    refused(*release, says=["the model was checked on", "sticky.csv: do not go on", "give --accept model"])
    refused(*release, says=["Run pufferfish check with this model and sticky.csv again: below 'next:' it prints"])
    assert not Path("r.json").exists()
    # another table that finds nothing does not mend it
    assert run("check", "m.json", other, *reading, "--accept", "public").stdout.startswith("Go on.")
    refused(*release, says=["sticky.csv: do not go on"])
    done = run(*release, "--accept", "model")
    assert done.exit_code == 0, done.output
    warning = f"The model was {pf.read_model('m.json').checked.in_words()} but is used anyway: to somebody who "
    (line,) = [line for line in done.stderr.splitlines() if "is used anyway" in line]
    assert line.startswith(f"warning: {warning}")
    assert [text for text in pf.Release.from_json("r.json").warnings if text.startswith(warning)] == [line[9:]]
    book = ["ledger", "create", "b.json", "--model", "m.json", "--budget", 9, "--table", private, *reading]
    assert warning in run(*book, "--accept", "model").stderr
    charged = [*release[: -len(["--epsilon", 5, "--output", "r.json"])], "--ledger", "b.json", "--up-to", 1]
    refused(*charged, "--output", "u.json", says=["give --accept model"])
    assert run(*charged, "--output", "u.json", "--accept", "model").stderr.count(warning) == 1
    assert "against sticky.csv: do not go on" in done.stdout
    data = pf.read_sequences(private, "activity", subject="id", time="minute", max_gap="1min")
    pf.Ledger(pf.LeakagePropagation(pf.read_model("m.json"), data.length), 9, base=data).save("b2.json")
    charged[charged.index("b.json")] = "b2.json"  # which holds the verdict too
    assert run(*charged, "--output", "u2.json", "--accept", "model").stderr.count(warning) == 1
    noise = pf.LeakagePropagation(pf.read_model("m.json"), data.length).calibrate(pf.Histogram(), 5.0)
    with pytest.raises(pf.errors.ReleaseRefused, match="accept='model'"):
        pf.release(data, pf.Histogram(), noise)
    kept = pf.release(data, pf.Histogram(), noise, accept="model").checked
    assert kept is not None
    assert (kept.word, kept.fingerprint) == ("do not go on", None)


NETWORK = (
    "network n {\n}\nvariable a {\n  type discrete [ 2 ] { x, y };\n}\nprobability ( a ) {\n  table 0.5, 0.5;\n}\n"
)


def test_refusals_name_the_remedy(tmp_path: Path) -> None:
    public, model = write_table(tmp_path / "a.csv", seed=1), tmp_path / "m.json"
    (tmp_path / "net.bif").write_text(NETWORK)
    refused("check", tmp_path / "net.bif", public, *READING, says=["--state", "the model is a network"])
    assert run("fit", public, *READING, "--output", model).exit_code == 0
    refused("check", model, public, says=["--state"])
    refused("check", model, public, *READING, "--epsilon", 0, says=["epsilon"])
    refused("check", model, public, *READING, "--plot", tmp_path / "c.txt", says=[".png"])
