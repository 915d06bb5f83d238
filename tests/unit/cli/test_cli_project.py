"""``pufferfish init`` and ``pufferfish.toml``: options that stand once for a folder."""

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

import pufferfish as pf
from commands import every_command, refused, run
from pufferfish.cli import main
from pufferfish.cli.options import CoverOptions
from pufferfish.cli.project import Project, load_project

READING = ["--state", "activity", "--subject", "id", "--time", "minute", "--max-gap", "1min"]
FULL = Project(
    Path.cwd(),
    {
        "model": "m.json",
        "ledger": "l.json",
        "budget": 1.0,
        "protect": "1h",
        "within": 2,
        "table": {
            "path": ["a.csv", "b.csv"],
            "state": "s",
            "columns": ["a", "b"],
            "subject": "i",
            "time": "t",
            "time_zone": "UTC",
            "ambiguous": "drop",
            "max_gap": "1min",
            "step": "1min",
            "bins": [0, 1.5, 3],
            "missing": "split",
            "gaps": "independent",
        },
    },
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert run("example").exit_code == 0
    done = run("init", "steps.csv", *READING, "--budget", 1)
    assert done.exit_code == 0, done.output
    assert "25,920 records of 6 subjects, most of them 1min after the one before" in done.output
    return tmp_path


def done(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_what_stands_above_reports_is_written_too(folder: Path) -> None:
    """Commented where nothing is given; what is given stands as it is, a path as seen from the file's folder."""
    text = Path("pufferfish.toml").read_text()
    assert '[report]\n# title = "Steps in May"\n# office = "Office of Statistics"\n' in text
    assert all(f"# {name} = " in text for name in (each.name for each in fields(CoverOptions)))
    uncommented = text.replace("# title", "title").replace("# note", "note").replace("# [labels]", "[labels]")
    Path("pufferfish.toml").write_text(uncommented.replace("# rest =", "rest ="))
    project = load_project(None)
    assert project is not None
    assert project.keys["report"] == {"title": "Steps in May", "note": "Approved on 3 June."}
    assert project.keys["labels"] == {"rest": "At rest"}
    (folder / "sub").mkdir()
    given = ["--office", 'A "B"', "--contact", "a@b.example", "--words", "w.toml", "--budget", 1]
    done("--project", "sub", "init", "steps.csv", *READING, *given)
    other = load_project("sub")
    assert other is not None
    assert other.keys["report"] == {"office": 'A "B"', "contact": "a@b.example", "words": "../w.toml"}


def test_a_value_of_another_kind_names_file_key_and_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text, says in {
        "model = 3": "model is a whole number, expected a text in quotes",
        'budget = "x"': "budget is a text in quotes, expected a number",
        "budget = -1": "budget is out of range, expected a number above 0",
        "within = [1]": "within is a list, expected a number or a text in quotes",
        "[table]\nstate = true": "state of [table] is true or false, expected a text in quotes",
        '[table]\nbins = [0, "a"]': "an entry of bins of [table] is a text in quotes, expected a number",
        "[report]\nperiod = 2026-05-01": "period of [report] is a date, expected a text in quotes",
        "[labels]\nrest = 1": "a value of [labels] is a whole number, expected a text in quotes",
        "labels = 3": "labels is a whole number, expected a table of keys",
        'ledger = ""': "ledger is empty, expected the name of a file: write one, or leave the line out",
        '[table]\npath = ["a.csv", ""]': "path is empty, expected the name of a file: write one, or leave the line out",
    }.items():
        Path("pufferfish.toml").write_text(text)
        assert refused("fit", "t.csv") == f"error: pufferfish.toml: {says}"


def test_a_folder_inside_of_a_project_is_told_where_its_file_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(folder / "a" / "b")
    file = os.path.join("..", "..")
    words = f"{file}/pufferfish.toml is read only in its own folder: run the command there, or give --project {file}"
    assert words in refused("release", "--query", "histogram", "--epsilon", 1)
    assert "is read only" not in refused("--project", file, "release", "--epsilon")
    assert "is read only" not in refused("release", "--nothing")
    monkeypatch.chdir(folder)
    assert "is read only" not in refused("report")


def test_commands_are_short_and_do_what_long_ones_do(folder: Path) -> None:
    assert done("fit", "survey-2019.csv").splitlines()[-2] == "written: model.json"
    long = [*READING, "--model", "model.json"]
    short = done("ledger", "create")
    assert (
        done("ledger", "create", "long.json", *long, "--table", "steps.csv", "--budget", 1).splitlines()[:3]
        == (short.splitlines()[:3])
    )
    assert "two releases of ε = 1 each, of histogram, cost 2.0" in short
    assert "no ledger" not in done("release", "--query", "histogram", "--epsilon", 0.4)
    done("release", "--query", "histogram", "--epsilon", 0.3)
    done("release", "--query", "count:active", "--up-to", 0.9)
    found = [pf.Release.from_json(name) for name in ("histogram.json", "histogram-2.json", "count-active.json")]
    assert [release.ledger.entry for release in found if release.ledger] == [1, 2, 3]
    assert [entry.number for entry in pf.Ledger.open("book.json").entries] == [1, 2, 3]
    assert (
        found[0].data.base
        == pf.read_sequences(
            "steps.csv", "activity", subject="id", time="minute", max_gap="1min", states=["active", "rest"]
        ).base
    )
    assert "histogram" in done("ledger", "show")
    assert "LeakagePropagation" in done("compare", "--epsilon", 1, "--mechanisms", "propagation")
    assert "LeakagePropagation" in done("compare", "--epsilon", 1, "--length", 500, "--mechanisms", "propagation")
    done("report", "histogram.json", "--output", "r.html")


def test_without_a_ledger_the_first_line_says_so(folder: Path) -> None:
    done("fit", "survey-2019.csv")
    done("ledger", "create")
    first = done("release", "--query", "histogram", "--epsilon", 0.4, "--no-ledger").splitlines()[0]
    assert first == "hides any one record (the state of one subject at one time), at ε = 0.4; no ledger counts it"
    assert not pf.Ledger.open("book.json").entries
    said = refused("release", "--query", "histogram", "--epsilon", 0.4, "--no-ledger", "--ledger", "book.json")
    assert "--ledger and --no-ledger are both given" in said


def test_options_come_first_and_paths_are_those_of_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done("fit", "survey-2019.csv")
    done("ledger", "create")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    refused("release", "--query", "histogram", "--epsilon", 0.1)
    done("--project", "..", "release", "--query", "histogram", "--epsilon", 0.1)
    monkeypatch.setenv("PUFFERFISH_PROJECT", str(folder / "pufferfish.toml"))
    done("release", "--query", "histogram", "--epsilon", 0.1, "--output", "here.json")
    assert sorted(os.listdir(folder)) == sorted(
        "book.json book.json.lock elsewhere histogram.json model.json pufferfish.toml steps.csv survey-2019.csv".split()
    )
    assert os.listdir(folder / "elsewhere") == ["here.json"]
    assert len(pf.Ledger.open(folder / "book.json").entries) == 2
    done("release", "--where", "id == 'p1'", "--max-gap", "90s", "--epsilon", 0.1, "--no-ledger", "--dry-run")


@pytest.mark.parametrize("protect", ["5", "1h"])
def test_what_is_hidden_is_said_once(folder: Path, protect: str) -> None:
    text = (folder / "pufferfish.toml").read_text()
    kept = protect if protect.isdigit() else json.dumps(protect)
    (folder / "pufferfish.toml").write_text(f"protect = {kept}\n" + text)
    done("fit", "survey-2019.csv")
    done("ledger", "create")
    query = ["release", "--query", "histogram", "--accept", "noise"]
    charged = done(*query, "--up-to", 0.5).splitlines()[0]
    alone = done(*query, "--epsilon", 0.5, "--no-ledger").splitlines()[0]
    steps = "5 steps" if protect == "5" else "60 steps"
    assert steps in charged
    assert steps in alone


WRONG = {
    "a key": ("modle = 'x'\n", "there is no key 'modle'. Did you mean 'model'?"),
    "a key of two words": ("[table]\nmax_gup = 'x'\n", "Keys: state, columns, subject, time, time_zone,"),
    "a key of the table": ("[table]\nstat = 'x'\n", "there is no key 'stat'. Did you mean 'state'?"),
    "a type": ("budget = 'much'\n", "budget is a text in quotes, expected a number"),
    "a number": ("budget = -1\n", "budget is out of range, expected a number above 0"),
    "no TOML": ("budget =\n", "is no TOML"),
    "no text": (b"\xff\xfe", "is no TOML"),
}


@pytest.mark.parametrize(("content", "says"), WRONG.values(), ids=WRONG)
def test_a_file_that_is_none_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: Any, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pufferfish.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    line = refused("ledger", "show", "x.json")
    assert says.replace("`", "'") in line.replace("`", "'")
    assert "pufferfish.toml" in line
    refused("--project", "none", "ledger", "show", says=["none"])


def test_init_refuses_what_it_cannot_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("example")
    refused(
        "init",
        "steps.csv",
        "--budget",
        1,
        says=["give --state as an option: this is not a terminal where questions can be asked"],
    )
    refused("init", "steps.csv", "--state", "activity", says=["give --budget"])
    refused("init", "steps.csv", "--state", "activty", "--budget", 1, says=["Did you mean 'activity'?"])
    refused("init", "none.csv", "--state", "activity", "--budget", 1, says=["none.csv"])
    refused("init", "steps.csv", "--state", "activity", "--budget", -1)
    refused("init", "steps.csv", *READING, "--budget", 1, "--protect", "foo", says=["--protect is 'foo', expected a"])
    refused("init", "steps.csv", *READING, "--budget", 1, "--where", "sex == 'f'", says=["No such option '--where'"])
    longer = [*READING[:-1], "2min"]
    refused("init", "steps.csv", *longer, "--budget", 1, says=["records are 1min apart: give --max-gap 1min"])
    assert not Path("pufferfish.toml").exists()
    done("init", "steps.csv", "--state", "activity", "--budget", 1)
    before = Path("pufferfish.toml").read_bytes()
    refused("init", "steps.csv", "--state", "activity", "--budget", 2, says=["give --overwrite"])
    assert Path("pufferfish.toml").read_bytes() == before
    done("init", "steps.csv", "--state", "activity", "--budget", 2, "--overwrite")
    assert "budget = 2" in Path("pufferfish.toml").read_text()


def test_init_says_nothing_of_rows_where_it_is_asked_to(tmp_path: Path) -> None:
    Path(tmp_path / "t.csv").write_text("id,minute,activity\nann,2024-01-01 00:00,rest\nann,not-a-time,rest\n")
    init = ["--project", tmp_path, "init", tmp_path / "t.csv", *READING, "--budget", 1]
    assert "not-a-time" in refused(*init)
    assert "not-a-time" not in refused("--quiet-errors", *init)
    assert os.listdir(tmp_path) == ["t.csv"]
    Path(tmp_path / "t.csv").write_text("id,minute,activity\nann,2024-01-01 00:00,rest\nann,2024-01-01 00:01,rest\n")
    done(*init)
    assert 'path = "t.csv"' in (tmp_path / "pufferfish.toml").read_text()


def test_released_tables_are_checked_though_the_project_says_how_tables_are_read(folder: Path) -> None:
    done("fit", "survey-2019.csv")
    done("release", "--query", "histogram", "--epsilon", 1, "--no-ledger")
    done("check", "model.json", "--released", "histogram.json")
    refused("check", "model.json", "--released", "histogram.json", "--state", "x", says=["--state is for tables"])


def test_every_default_is_of_an_option_that_there_is() -> None:
    """A key that no command knows would be passed over in silence."""
    taken = set[str]()
    commands = every_command()
    for name, values in FULL.defaults().items():
        command = commands[name]
        group = command.commands if isinstance(command, click.Group) else None
        for each, of in [(command, values)] if group is None else [(group[n], v) for n, v in values.items()]:
            taken |= {param.name for param in each.params if param.name in of}
    written = {name for values in FULL.defaults().values() for name in values if name not in ("create", "show")}
    assert taken >= written - {"plan", "change"}


def test_public_parts_look_at_no_state(folder: Path) -> None:
    assert pf.columns("steps.csv") == ["id", "sex", "minute", "activity"]
    text = Path("steps.csv").read_text().replace("rest", "?").replace("active", "")
    Path("unreadable.csv").write_text(text)
    reading = {"subject": "id", "time": "minute", "max_gap": "1min"}
    public = pf.read_lengths("unreadable.csv", **reading)
    known = pf.read_sequences("steps.csv", "activity", **reading)
    assert public.length == known.length
    assert (public.names, public.usual_step) == (known.names, known.usual_step)
    assert pf.read_lengths("unreadable.csv").length == (pf.ChainLength(25_920, 25_920),)


def test_the_program_without_a_project_is_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "Missing option '--model'" in run("release", "x.csv", "--epsilon", 1, program=main).output
