"""``pufferfish release --by``: groups on the command line, and the table of a release."""

from pathlib import Path

import polars as pl

import pufferfish as pf
from commands import READING, refused, run, write_table


def test_groups_on_the_command_line(tmp_path: Path) -> None:
    table, model = write_table(tmp_path / "t.csv", seed=1), tmp_path / "m.json"
    female = pl.when(pl.col("id") == "S0").then(pl.lit("f")).otherwise(pl.lit("m"))
    pl.read_csv(table).with_columns(female.alias("sex")).write_csv(table)
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    pf.write_model(pf.Model(theta=pf.ChainClass((chain,), origin="stated"), step="1min"), model)
    command = ["release", table, *READING, "--model", model, "--epsilon", 1, "--output", tmp_path / "r.json"]
    paths = ["--csv", tmp_path / "r.csv", "--plot", tmp_path / "r.png"]
    done = run(*command, "--by", "hour,sex", *paths)
    assert done.exit_code == 0, done.output
    found = pf.Release.from_json(tmp_path / "r.json")
    assert pl.read_csv(tmp_path / "r.csv", infer_schema=False).shape == (len(found.values), 6)
    assert found.groups is not None
    assert found.groups.by == ["hour(minute)", "sex"]
    assert "hour(minute)  sex  histogram  records " in done.stdout
    assert f"ε = 1 for all {len(found.groups.cells)} groups together" in done.stdout
    assert "in which group (hour(minute), sex) each record is, and how many each has, is public" in done.stdout
    table_of = [line for line in done.stdout.splitlines() if line.startswith(("hour", "0 ", "8", "9"))]
    assert len(table_of) > 1
    assert run("show", tmp_path / "r.json").stdout.splitlines()[1 : len(table_of) + 1] == table_of
    scale = f"scale {found.noise.scale:.6g}"
    assert scale in done.stdout
    told = run("verify", tmp_path / "r.json").stdout
    assert f"{scale}, divided by the group's number of records, which the proof is about" in " ".join(told.split())
    shaped = run(*command, "--by", "sex", "--noise", "best", "--overwrite")
    assert shaped.exit_code == 0, shaped.output
    found = pf.Release.from_json(tmp_path / "r.json")
    assert found.noise.measurements is not None
    assert "on one count of each group, from which all 4 values follow" in " ".join(shaped.stdout.split())
    assert run("verify", tmp_path / "r.json", "--table", table).exit_code == 0
    many = run(*command, "--by", "minute", "--query", "count:active", "--accept", "noise", "--overwrite", *paths)
    assert many.exit_code == 0, many.output
    assert "more values: all are in the file of --csv" in many.stdout
    plain = run(*command, "--overwrite", "--where", "hour(minute) == 9", "--csv", tmp_path / "r.csv")
    assert plain.exit_code == 0, plain.output
    assert (tmp_path / "r.csv").read_text().startswith("output,value,error_95\n")
    (tmp_path / "own.csv").write_text("a,b\n1,2\n")
    each = "subject,records,output,value,error_95\n"
    (tmp_path / "each.csv").write_text(each)  # of a release for each subject: its values are nowhere else
    for name in ("own.csv", "each.csv"):
        refused(*command, "--overwrite", "--csv", tmp_path / name, says=[f"{name} exists and is no table of"])
    refused(*command, "--overwrite", "--csv", tmp_path / "r.txt", says=["ends in .csv"])
    refused(*command, "--overwrite", "--csv", table, says=["is the input file"])
    refused(*command, "--overwrite", "--by", "activity", says=["by names the state column"])
    refused(*command, "--overwrite", "--by", "hour,hour", says=["names 'hour(minute)' twice"])
    asked = [each for each in command if each not in ("--epsilon", 1)]
    found = run(*asked[:-1], tmp_path / "q.json", "--accuracy", 0.5, "--by", "sex")
    assert found.exit_code == 0, found.output
    worst = pf.Release.from_json(tmp_path / "q.json").groups
    assert worst is not None
    assert 0.45 < max(worst.error_95) <= 0.5
    fewest = worst.records[worst.error_95.index(max(worst.error_95))]
    assert fewest == min(worst.records)
    assert f"for the group of {fewest:,} records, and less for all others, needs ε = " in found.stdout
    csv = [*command[:-1], tmp_path / "v.csv", "--each-subject"]
    refused(*csv, "--by", "sex", says=["--by does not work with --each-subject"])
    refused(*csv, "--csv", tmp_path / "w.csv", says=["--csv is for one release"])
    assert (tmp_path / "each.csv").read_text() == each


def test_the_error_of_each_group_is_known_before_anything_is_spent(tmp_path: Path) -> None:
    table, model = write_table(tmp_path / "t.csv", seed=1), tmp_path / "m.json"
    pl.read_csv(table).with_columns((pl.col("minute") < "2024-05-01 08:02").alias("early")).write_csv(table)
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    pf.write_model(pf.Model(theta=pf.ChainClass((chain,), origin="stated"), step="1min"), model)
    reading = [*READING, "--epsilon", 1, "--by", "early"]
    for query in ("histogram", "count:active"):
        told = run("compare", model, "--table", table, *reading, "--query", query)
        assert told.exit_code == 0, told.output
        assert "each value of each of 2 groups, by LeakagePropagation at ε = 1:" in told.stdout
        assert "Wasserstein, ExactLaplace: it calibrates noise for one query of all records" in " ".join(
            told.stdout.split()
        )
        output = tmp_path / f"{query[:4]}.json"
        done = run("release", table, *reading, "--model", model, "--query", query, "--output", output)
        assert done.exit_code == 0, done.output
        hides = "warning: The noise hides nearly all that 1 of 2 groups would say (true)"
        assert hides in told.stderr
        assert hides in done.stderr
        found = pf.Release.from_json(output).groups
        assert found is not None
        lines = told.stdout.splitlines()
        at = lines.index(next(line for line in lines if line.split() == ["early", "records", "±", "95%"]))
        shown = [line.split() for line in lines[at + 1 : at + 3]]
        assert [row[:2] for row in shown] == [["false", "354"], ["true", "6"]]
        assert [row[2] for row in shown] == [f"{error:.4g}" for error in found.error_95]
    many = run("compare", model, "--table", table, *reading[:-1], "minute", "--query", "count:active")
    assert "… and 72 more groups; the largest error is" in many.stdout
    refused("compare", model, "--length", 9, "--by", "id", "--epsilon", 1, says=["--by is for reading a table"])
    refused("compare", model, "--table", table, *reading, "--query", "bouts:active", says=["Ask for transitions"])
    steps = run("compare", model, "--table", table, *reading, "--query", "transitions")
    assert steps.exit_code == 0, steps.output
    assert "each value of each of 2 groups" in steps.stdout
    named = ["--mechanisms", "propagation,wasserstein"]
    refused("compare", model, "--table", table, *reading, *named, says=["wasserstein does not work with --by"])
    worst = run("compare", model, "--table", table, *READING, "--by", "early", "--accuracy", 0.5)
    assert worst.exit_code == 0, worst.output
    *_, last = [line.split() for line in worst.stdout.splitlines() if line.startswith(("true", "false"))]
    assert last[:2] == ["true", "6"]
    assert 0.4 < float(last[2]) <= 0.5


def test_transitions_by_group_on_the_command_line(tmp_path: Path) -> None:
    table, model, output = write_table(tmp_path / "t.csv", seed=1), tmp_path / "m.json", tmp_path / "r.json"
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    pf.write_model(pf.Model(theta=pf.ChainClass((chain,), origin="stated"), step="1min"), model)
    command = ["release", table, *READING, "--model", model, "--query", "transitions", "--by", "id", "--epsilon", 2]
    planned = run(*command, "--dry-run")
    assert planned.exit_code == 0, planned.output
    files = ["--output", output, "--csv", tmp_path / "r.csv", "--plot", tmp_path / "r.png"]
    done = run(*command, "--valid", *files)
    assert done.exit_code == 0, done.output
    found = pf.Release.from_json(output)
    assert found.groups is not None
    assert found.groups.steps is not None
    assert sum(found.groups.steps) == found.data.steps
    assert f"scale {found.scale:.6g}" in planned.stdout
    assert f"ε = 2 for all {len(found.groups.cells)} groups together" in done.stdout
    assert "rest → active" in run("show", output).stdout
    assert pl.read_csv(tmp_path / "r.csv").height == 4 * len(found.groups.cells)
    assert run("verify", output, "--table", table).exit_code == 0
    page = tmp_path / "r.html"
    assert run("report", output, "--output", page).exit_code == 0
    assert all(f": {cell[0]}" in page.read_text() for cell in found.groups.cells)
    bouts = ["bouts:active" if part == "transitions" else part for part in command]
    refused(*bouts, "--output", tmp_path / "b.json", says=["Ask for transitions"])


def test_weekdays_say_which_is_0(tmp_path: Path) -> None:
    table, model = write_table(tmp_path / "t.csv", seed=1), tmp_path / "m.json"
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    pf.write_model(pf.Model(theta=pf.ChainClass((chain,), origin="stated"), step="1min"), model)
    asked = ["--model", model, "--epsilon", 1, "--output", tmp_path / "r.json"]
    word = "weekdays: 0 is Monday, 6 is Sunday\n"
    for by, told in (("weekday", True), ("hour", False)):
        for command in (
            ["release", table, *READING, *asked, "--overwrite", "--by", by],
            ["compare", model, "--table", table, *READING, "--epsilon", 1, "--by", by],
        ):
            done = run(*command)
            assert done.exit_code == 0, done.output
            assert (word in done.stdout) == told, command
