"""The command line on Bayesian networks: comparing, releasing tables of independent rows, pictures, and refusals."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import pufferfish as pf
from commands import Result, refused, run

BIF = """
network ward {{ }}
variable smoker {{ type discrete [ 2 ] {{ no, yes }}; }}
variable cough {{ type discrete [ 2 ] {{ no, yes }}; }}
variable fever {{ type discrete [ 3 ] {{ none, mild, high }}; }}
probability ( smoker ) {{ table 0.8, 0.2; }}
probability ( cough | smoker ) {{ (no) 0.9, 0.1; (yes) 0.6, 0.4; }}
probability ( fever | {parents} ) {{ {rows} }}
"""
TREE = BIF.format(parents="cough", rows="(no) 0.9, 0.08, 0.02; (yes) 0.6, 0.3, 0.1;")
DENSE = BIF.format(
    parents="cough, smoker",
    rows="(no, no) 0.9, 0.08, 0.02; (yes, no) 0.6, 0.3, 0.1; (no, yes) 0.8, 0.1, 0.1; (yes, yes) 0.5, 0.3, 0.2;",
)
TABLE = pl.DataFrame(
    {
        "smoker": ["no", "yes", "no", "no"],
        "cough": ["no", "yes", "yes", "no"],
        "fever": ["none", "high", "mild", "none"],
    }
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("tree.bif").write_text(TREE)
    Path("dense.bif").write_text(DENSE)
    TABLE.write_csv("ward.csv")
    pf.write_model(pf.Model(theta=pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])), "chain.json")
    return tmp_path


def released(*arguments: str) -> tuple[Result, pf.Release]:
    result = run("release", "ward.csv", *arguments, "--epsilon", "50", "--max-epsilon", "50", "--output", "r.json")
    assert result.exit_code == 0, result.output
    return result, pf.Release.from_json("r.json")


def test_marginals_of_all_columns_are_the_usual_release() -> None:
    result, release = released("--model", "tree.bif", "--valid")
    assert release.query.kind == "marginals"
    assert release.query.labels == [
        "smoker=no", "smoker=yes", "cough=no", "cough=yes", "fever=none", "fever=mild", "fever=high"
    ]  # fmt: skip
    assert sum(release.values[:2]) == sum(release.values[4:]) == pytest.approx(1)
    assert release.mechanism.name == "propagation"
    assert "one cell of one row" in release.promise
    assert result.output.count("assumed") == 1
    brief = "assumed (in full in r.json): Θ holds the law of the records (never checked against public data); rows are"
    assert brief in result.output
    assert "Rows are independent of each other under every θ" in " ".join(release.assumptions)
    assert (release.data.subjects, release.data.records) == (4, 12)


def test_propagation_is_the_default_for_every_network() -> None:
    _, release = released("--model", "dense.bif", "--query", "marginal-counts", "--columns", "cough,smoker")
    assert release.mechanism.name == "propagation"
    assert release.query.labels == ["smoker=no", "smoker=yes", "cough=no", "cough=yes"]
    assert release.data.rows is not None
    assert release.data.rows.columns == {"smoker": "smoker", "cough": "cough"}


def test_other_queries_are_about_the_columns_that_are_read() -> None:
    _, release = released("--model", "tree.bif", "--query", "count:yes", "--columns", "cough")
    assert release.query.description == "number of records in {yes}, of cough"
    result = run("release", "ward.csv", "--model", "tree.bif", "--query", "count:high", "--columns", "cough",
                 "--epsilon", "1", "--output", "other.json")  # fmt: skip
    assert result.exit_code == 2
    assert "'high'" in result.output
    assert not Path("other.json").exists()


def test_secrets_are_named_in_the_record_and_need_less_noise() -> None:
    _, every = released("--model", "dense.bif", "--query", "count:yes", "--columns", "smoker,cough",
                         "--mechanism", "group-dp")  # fmt: skip
    Path("r.json").unlink()
    _, one = released("--model", "dense.bif", "--query", "count:yes", "--columns", "smoker,cough",
                       "--secrets", "smoker")  # fmt: skip
    assert one.mechanism.secrets == [("record smoker is no", "record smoker is yes")]
    assert one.scale < every.scale


@pytest.mark.parametrize("model", ["dense.bif", "tree.bif"])
def test_an_answer_that_hardly_tells_of_what_is_secret_needs_no_noise(model: str) -> None:
    arguments = ["release", "ward.csv", "--model", model, "--query", "count:high", "--columns", "fever",
                 "--secrets", "smoker", "--output", "r.json"]  # fmt: skip
    result = run(*arguments, "--epsilon", "50", "--max-epsilon", "50")
    assert result.exit_code == 2
    assert "no noise is needed: the exact answer leaks at most" in result.output
    leaks = float(result.output.split("leaks at most ")[1].split()[0])
    assert 0 < leaks < 3
    again = run(*arguments, "--epsilon", str(leaks / 2))
    assert again.exit_code == 0, again.output


def test_missing_cells_are_refused_unless_told(folder: Path) -> None:
    TABLE.with_columns(cough=pl.Series(["no", None, "yes", "no"])).write_csv("ward.csv")
    result = run("release", "ward.csv", "--model", "tree.bif", "--epsilon", "1", "--output", "r.json")
    assert result.exit_code == 2
    assert "cough" in result.output
    assert not Path("r.json").exists()
    _, release = released("--model", "tree.bif", "--missing", "unobserved")
    assert release.data.records == 11


def test_compare_and_its_picture() -> None:
    result = run("compare", "dense.bif", "--epsilon", "1", "--query", "count:yes", "--columns", "cough,smoker",
                 "--secrets", "smoker", "--draw", "net.png")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert re.search(r"LeakagePropagation +\d", result.output)
    assert Path("net.png").read_bytes().startswith(b"\x89PNG")


def test_compare_takes_the_number_of_rows() -> None:
    one, many = (run("compare", "tree.bif", "--epsilon", "1", "--length", n).output for n in ("1", "1000"))
    scales = [
        float(next(line for line in text.splitlines() if line.startswith("  GroupDP")).split()[1])
        for text in (one, many)
    ]
    assert scales == [6.0, 0.006]
    table = run("compare", "tree.bif", "--epsilon", "1", "--table", "ward.csv", "--columns", "cough")
    assert table.exit_code == 0
    assert "cough" not in table.output.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["release", "ward.csv", "--model", "tree.bif", "--state", "cough"], "--state is for Markov chains"),
        (
            ["release", "ward.csv", "--model", "tree.bif", *"--state s --time t --query histogram".split()],
            "--state and --time are for Markov chains, but the model is a network, whose table has one row per subject",
        ),
        (["release", "ward.csv", "--model", "tree.bif", "--max-gap", "10min"], "--max-gap is for Markov chains"),
        (["release", "ward.csv", "--model", "tree.bif", "--gaps", "independent"], "--gaps is for Markov chains"),
        (["release", "ward.csv", "--model", "tree.bif", "--columns", "cuogh"], "Did you mean 'cough'?"),
        (["release", "ward.csv", "--model", "tree.bif", "--secrets", "age"], "there is no node 'age'"),
        (["release", "ward.csv", "--model", "tree.bif", "--secrets", "cough", "--mechanism", "group-dp"],
         "GroupDP always hides all records"),
        (["release", "ward.csv", "--model", "tree.bif", "--mechanism", "mqm-exact"], "it covers Markov chains"),
        (["release", "ward.csv", "--model", "chain.json", "--columns", "cough"], "consists of Markov chains"),
        (["release", "ward.csv", "--model", "chain.json"], "give --state: the column of states"),
        (["compare", "tree.bif", "--length", "10,20"], "give one --length for a network"),
        (["compare", "tree.bif", "--length", "0"], "expected the number of rows"),
        (["compare", "chain.json", "--length", "10", "--draw", "x.png"], "--draw is for networks"),
        (["compare", "tree.bif", "--draw", "x.txt"], "--draw is 'x.txt'"),
    ],
)  # fmt: skip
def test_refusals_are_one_line(arguments: list[str], words: str, folder: Path) -> None:
    before = sorted(folder.iterdir())
    output = ["--output", "r.json"] if arguments[0] == "release" else []
    result = run(*arguments, "--epsilon", "1", *output)
    assert result.exit_code == 2, result.output
    errors = [line for line in result.output.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert words in errors[0]
    assert sorted(folder.iterdir()) == before


def test_the_record_of_a_release_is_plain_json() -> None:
    released("--model", "tree.bif")
    record = json.loads(Path("r.json").read_text())
    assert record["data"]["base"] is None
    assert record["data"]["rows"]["missing"] == "refuse"
    assert record["theta"]["kind"] == "Bayesian networks"


def test_odd_parts_of_a_list_of_columns_are_refused() -> None:
    for option, mechanism in (("--columns", "propagation"), ("--secrets", "markov-quilt")):
        for names, says in (("cough,", "empty part"), ("", "empty part"), ("cough,cough", "'cough' twice")):
            result = run("release", "ward.csv", "--model", "tree.bif", "--epsilon", 1, "--mechanism", mechanism,
                         option, names, "--output", "new.json")  # fmt: skip
            assert result.exit_code == 2
            assert says in result.stderr
            assert not Path("new.json").exists()


def test_what_was_read_is_said_and_a_column_of_another_spelling_is_no_latent_node(folder: Path) -> None:
    given = ["--model", "tree.bif", "--epsilon", "50", "--max-epsilon", "50", "--output", "r.json", "--overwrite"]
    assert "read: 12 cells of 4 rows\n" in run("release", "ward.csv", *given).stdout
    TABLE.drop("smoker").write_csv("part.csv")
    told = run("release", "part.csv", *given).stdout
    assert "read: 8 cells of 4 rows; nodes without a column that was read: smoker\n" in told
    TABLE.rename({"smoker": "Smoker"}).write_csv("other.csv")
    refused("release", "other.csv", *given, says=["node 'smoker' has no column", "'Smoker'", "by columns"])
    assert run("release", "other.csv", *given, "--columns", "cough,fever").exit_code == 0
    refused("release", "ward.csv", *given, "--by", "hour", says=["name the column: hour(column)"])


def test_messages_about_columns_have_remedies_of_the_command_line() -> None:
    given = ["--model", "tree.bif", "--epsilon", 1, "--output", "r.json"]
    TABLE.rename({name: name.upper() for name in TABLE.columns}).write_csv("upper.csv")
    refused("release", "upper.csv", *given, says=["no column is a node of the network: rename columns, or in Python"])
    TABLE.with_columns(fever=pl.lit("")).write_csv("empty.csv")
    refused("release", "empty.csv", *given, "--missing", "unobserved", says=["leave the node out of --columns"])
