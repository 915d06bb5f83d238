"""Files that the commands read and write: nothing of the user's is lost, nothing hangs, no traceback."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pufferfish as pf
from cli_folder import READING, contents, refused, release
from commands import run
from pufferfish._base.writing import LARGEST

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, devices and links of Unix")


# What may be replaced


def outputs() -> Iterator[tuple[str, Callable[[str], list[object]]]]:
    """Every option that names an output, as a command for a path; with all leave to overwrite there is."""
    compare = ["compare", "model.json", "--length", 60, "--epsilon", 1]
    yield "release", lambda p: release(p, "--overwrite")
    yield "release", lambda p: release(p, "--overwrite", "--ledger", "book.json")
    yield "picture", lambda p: release("new.json", "--overwrite", "--plot", p)
    yield "model", lambda p: ["fit", "table.csv", *READING, "--overwrite", "--output", p]
    yield "picture", lambda p: [*compare, "--plot", p]
    create = ["--model", "model.json", "--table", "table.csv", *READING, "--budget", 1]
    yield "ledger", lambda p: ["ledger", "create", p, *create]


def test_a_command_replaces_only_what_it_would_have_written(folder: Path) -> None:
    """Every output of every command over every kind of file, by its name, a link, and a second name."""
    Path("other.csv").write_text("a,b\n1,2\n")
    Path("photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    Path("drawing.svg").write_text("<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>")
    Path("empty.json").touch()
    Path("cut.json").write_bytes(Path("release.json").read_bytes()[:100])
    kinds = {"release.json": "release", "model.json": "model", "release.png": "picture"}
    for name in [*kinds, "book.json", "table.csv", "other.csv", "photo.png", "drawing.svg", "empty.json", "cut.json"]:
        for kind, command in outputs():
            if kinds.get(name) == kind:
                continue
            for make in (None, os.symlink, os.link):
                path = Path(name)
                if make is not None:
                    path = Path(f"link{path.suffix}")
                    make(name, path)
                before = contents(folder)
                line = refused(*command(path.name))
                assert contents(folder) == before, (name, kind, line)
                if make is not None:
                    path.unlink()
    assert pf.Ledger.open("book.json").entries == ()


def test_what_a_command_wrote_it_may_replace(folder: Path) -> None:
    for name in ("release.json", "model.json"):
        command = release(name) if name == "release.json" else ["fit", "table.csv", *READING, "--output", name]
        assert "give --overwrite" in refused(*command)
        if name == "release.json":
            assert run(*command, "--overwrite").exit_code == 0
    shutil.copy("model.json", "copy.json")
    assert run("fit", "table.csv", *READING, "--output", "copy.json", "--overwrite").exit_code == 0
    for kind in (".png", ".svg", ".pdf"):
        for _ in range(2):  # a picture may be drawn again
            assert run(*release("release.json", "--overwrite", "--plot", f"drawn{kind}")).exit_code == 0


def test_that_a_release_is_there_is_said_after_what_is_wrong_otherwise(folder: Path) -> None:
    line = refused(*release("release.json"))
    assert "name another file, or give --overwrite to replace the file (its privacy budget stays spent)" in line
    for options, says in (
        (["--protect", "tuesday"], "--protect is 'tuesday'"),
        (["--protect", "1h", "--mechanism", "mqm-exact"], "--protect and --within are for"),
        (["--within", "far"], "within"),
        (["--max-gap", "soon"], "--max-gap is 'soon'"),
        (["--where", "awake and"], "awake and"),
        (["--bins", "2,1"], "bins"),
        (["--missing", "split", "--time-zone", "Mars"], "Mars"),
    ):
        assert says in refused(*release("release.json", *options)), options
    assert "--state" in refused(
        "release", "table.csv", "--model", "model.json", *"--epsilon 1 --output release.json".split()
    )


def test_functions_of_python_keep_the_same_rule(folder: Path) -> None:
    found, model = pf.Release.from_json("release.json"), pf.read_model("model.json")
    before = contents(folder)
    for name in ("book.json", "table.csv", "model.json"):
        with pytest.raises(pf.PufferfishError, match="only an earlier release"):
            found.to_json(name)
    for name in ("book.json", "table.csv", "release.json"):
        with pytest.raises(pf.PufferfishError, match="only an earlier model"):
            pf.write_model(model, name)
    Path("book.png").write_bytes(before["book.json"])
    with pytest.raises(pf.PufferfishError, match="only an earlier picture"):
        found.plot("book.png")
    with pytest.raises(pf.PufferfishError, match="this name says BIF"):
        pf.write_model(model, "net.bif")
    assert contents(folder) == before | {"book.png": before["book.json"]}
    found.to_json("release.json", overwrite=True)
    pf.write_model(model, "model.json")
    found.plot("release.png")


def test_two_options_that_name_one_file(folder: Path) -> None:
    Path("inside").mkdir()
    Path("away").symlink_to("inside")
    Path("later.png").symlink_to("inside/r.png")
    before = contents(folder)
    for output, plot in (
        ("r.png", "r.png"),
        ("r.png", "./r.png"),
        ("r.png", "R.PNG"),
        ("Straße.png", "STRASSE.png"),
        ("inside/r.png", "away/r.png"),
        ("inside/r.png", "later.png"),
        ("inside/r.png", folder / "inside" / "r.png"),
    ):
        both = ["--plot", output, "--draw", plot]
        assert "name the same file" in refused("compare", "model.json", "--length", 5, "--epsilon", 1, *both)
    assert "name the same file" in refused(
        "compare", "model.json", "--length", 60, "--epsilon", 1, "--plot", "c.png", "--draw", "C.png"
    )
    for output in ("table.csv", "model.json", "book.json", "book.json.lock", "BOOK.json.LOCK"):
        if Path(output).exists() or output.startswith("BOOK"):
            line = refused(*release(output, "--overwrite", "--ledger", "book.json"))
            assert "is the input file" in line or "exists" in line
            Path("book.json.lock").unlink(missing_ok=True)
    create = ["--model", "model.json", "--table", "table.csv", *READING, "--budget", 1]
    shutil.copy("model.json", "new.lock")
    line = refused("ledger", "create", "new", *create, "--model", "new.lock")
    assert "would become the ledger" in line
    assert contents(folder) == before


# What is no file to read or write


def strange(folder: Path) -> list[str]:
    """Paths that are none of a regular file."""
    os.mkfifo("pipe")
    for one, other in (("a", "b"), ("b", "a")):
        Path(f"loop{one}").symlink_to(f"loop{other}")
    Path("folder").mkdir()
    Path("to-zero").symlink_to("/dev/zero")
    Path("nowhere").symlink_to("absent")
    return [
        "pipe", "loopa", "folder", "/dev/zero", "/dev/full", "/dev/null", "to-zero", "nowhere", "a" * 3000, "x/" * 1500,
        "with\0NUL", "new\nline", "\udcff", "-", "", ".", "/", "table.csv/x", "absent/x",
    ]  # fmt: skip


def test_strange_files_are_one_line(folder: Path) -> None:
    """As every file that a command reads and as every file that it writes; nothing hangs, and nothing is written."""
    given = ["--model", "model.json", "--epsilon", 1]
    paths = strange(folder)
    before = contents(folder)
    for path in paths:
        for name in (path, f"{path}.bif" if path != "-" else path):  # -.bif is an option
            refused("compare", name, "--length", 60, "--epsilon", 1)
        refused("robustness", "model.json", path, "--length", 60)
        refused("ledger", "show", path)
        refused(*release("new.json", "--ledger", path))
        for table in (path, f"{path}.csv" if path != "-" else path):
            refused("release", table, *READING, *given, "--output", "new.json")
            refused("fit", table, *READING, "--output", "new.json")
        assert contents(folder) == before, path
    for path in paths:
        if path in ("nowhere", "new\nline", "\udcff"):  # names of files that can be made
            continue
        for kind, command in outputs():
            refused(*command(f"{path}.png" if kind == "picture" and path[0:1] in "aw" else path))
    assert contents(folder) == before
    assert pf.Ledger.open("book.json").entries == ()


def test_a_pipe_in_place_of_a_table_is_refused(folder: Path) -> None:
    os.mkfifo("pipe.csv")
    assert "regular file" in refused("release", "pipe.csv", *READING, *release("new.json")[4:])
    os.mkfifo("pipe.bif")
    assert "regular file" in refused("compare", "pipe.bif", "--epsilon", 1)


def test_large_files_are_refused_unread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("large.json").open("wb") as file:
        file.truncate(LARGEST + 1)  # a hole: takes no room
    for command in (["compare", "large.json", "--length", 60, "--epsilon", 1], ["ledger", "show", "large.json"]):
        assert "has more than 256 MiB" in refused(*command)
    with pytest.raises(pf.PufferfishError, match="more than 256 MiB"):
        pf.Release.from_json("large.json")
    import gzip

    monkeypatch.setattr("pufferfish.theta._imports.LARGEST", 2**20)
    Path("bomb.bif.gz").write_bytes(gzip.compress(bytes(2**21)))
    assert "the most for a network" in refused("compare", "bomb.bif.gz", "--epsilon", 1)


def test_every_number_for_epsilon_ends_well(folder: Path) -> None:
    for epsilon in ("1e-100", "1e-200", "1e-300", "1e-320", "1e-18", "1e308", "nan", "inf", "-inf", "-1", "0", "-0.0"):
        for mechanism in ("propagation", "mqm-exact", "group-dp"):
            result = run(*release("new.json", "--mechanism", mechanism, "--epsilon", epsilon, "--overwrite"))
            assert result.exit_code in (0, 2), (epsilon, mechanism, result.exception)
            if result.exit_code == 2:
                assert result.stderr.startswith("error: ")
                assert result.stderr.count("\n") == 1
            else:
                assert pf.Release.from_json("new.json").epsilon == float(epsilon)
        compared = run("compare", "model.json", "--length", 60, "--epsilon", epsilon)
        assert compared.exit_code in (0, 2), (epsilon, compared.exception)
        assert isinstance(compared.exception, SystemExit | None)


def test_names_of_outputs_that_no_file_should_have(folder: Path) -> None:
    before = contents(folder)
    for name, message in (("", "is empty"), (" ", "is empty"), ("new.json/", "folder"), ("book.json.lock", "lock")):
        for command in (release(name), ("fit", "table.csv", *READING, "--output", name)):
            assert message in refused(*command), (name, command)
    assert contents(folder) == before
    Path("rows.csv").write_text("id,activity\n1,rest\n2,rest,more\n")
    ragged = refused("fit", "rows.csv", "--state", "activity", "--output", "other.json")
    assert "more cells" in ragged
    assert "truncate" not in ragged
    assert " fit --help" in refused("fit", "table.csv", "--output")
    assert "looks like a table" in refused("compare", "rows.csv", "--length", 5, "--epsilon", 1)


def test_a_name_that_promises_another_kind_of_file_is_refused(folder: Path) -> None:
    before = contents(folder)
    fit = ["fit", "table.csv", *READING, "--output"]
    create = ["--model", "model.json", "--table", "table.csv", *READING, "--mechanism", "group-dp", "--budget", 9]
    for command, kind in (
        ([*fit, "new.txt"], "model"),
        ([*fit, "new.BIF"], "model"),
        (release("new.csv"), "release"),
        (release("new.json", "--csv", "values.txt"), "table of the values of a release"),
        (["ledger", "create", "new.html", *create], "ledger"),
        (["check", "model.json", "table.csv", *READING, "--output", "new.png"], "check"),
        (["compare", "model.json", "--length", 5, "--epsilon", 1, "--report", "new.pdf"], "preview of a release"),
        (["report", "release.json", "--output", "new"], "report of releases"),
        (["notebook", "release.json", "--output", "new.json"], "notebook of a release"),
    ):
        line = refused(*command)
        assert "expected a name that ends in ." in line
        assert line.rstrip().endswith(f": a {kind} is written there")
    assert contents(folder) == before
    for name in ("new", "new.v1.2", "new.JSON"):  # a record is known by its content
        assert run(*fit, name).exit_code == 0


def test_paths_that_end_in_a_slash_or_lead_nowhere(folder: Path) -> None:
    before = contents(folder)
    for command in (("ledger", "show", "book.json/"), ("compare", "model.json/", "--length", 5, "--epsilon", 1)):
        assert "ends in /, as only the name of a folder does: name a file" in refused(*command)
    Path("link.json").symlink_to("absent/new.json")
    Path("link.csv").symlink_to("absent.csv")
    for command in (
        release("link.json"),
        ["compare", "link.json", "--length", 5, "--epsilon", 1],
        ["ledger", "show", "link.json"],
        ["fit", "link.csv", *READING, "--output", "new.json"],
    ):
        assert "which does not exist; remove the link, or name another file" in refused(*command)
    for name in ("link.json", "link.csv"):
        Path(name).unlink()
    assert contents(folder) == before


def test_what_is_very_long_is_cut_and_what_has_lines_is_one(folder: Path) -> None:
    long = "x" * 10_000
    for query in (long, f"count:{long}", f"sum:{long}=1,rest=0", f"sum:{long}", f"histogram:{long}"):
        assert len(refused("compare", "model.json", "--length", 5, "--epsilon", 1, "--query", query)) < 600
    for command in (release("new.json", "--mechanism", long), release("new.json", "--max-gap", long), [long]):
        assert len(refused(*command)) < 500
    text = Path("model.json").read_text()
    kind = "Markov chains"
    assert kind in text
    Path("lines.json").write_text(text.replace(kind, f"Markov\\nchains\\r{long}"))
    assert len(refused("compare", "lines.json", "--length", 5, "--epsilon", 1)) < 600
    text = Path("release.json").read_text().replace(f'"kind":"{kind}"', '"kind":"Markov\\nchains"')
    Path("lines.json").write_text(text.replace('"kind": "Markov chains"', '"kind": "Markov\\nchains"'))
    with pytest.raises(pf.PufferfishError) as caught:
        pf.Release.from_json("lines.json")
    assert "\n" not in str(caught.value)


def test_a_name_that_says_nothing_of_its_kind(folder: Path) -> None:
    """A file's name does not count: a release may be called model.json, and is known for what it is."""
    shutil.copy("release.json", "model2.json")
    shutil.copy("book.json", "release2.json")
    before: Any = contents(folder)
    assert "holds a pufferfish-release" in refused(
        "fit", "table.csv", *READING, "--output", "model2.json", "--overwrite"
    )
    assert "holds a pufferfish-ledger" in refused(*release("release2.json", "--overwrite"))
    assert contents(folder) == before


def test_a_table_whose_path_ends_in_a_slash_is_refused(folder: Path) -> None:
    (folder / "steps.csv").write_text("activity\nrest\nactive\nrest\n")
    output = folder / "fitted.json"
    for table, words in (
        (f"{folder / 'steps.csv'}/", "as only the name of a folder does"),
        ("https://example.org/steps.csv", "only local files are read: download it first"),
    ):
        result = run("fit", table, "--state", "activity", "--output", output)
        assert result.exit_code == 2
        assert words in result.stderr
        assert not output.exists()
