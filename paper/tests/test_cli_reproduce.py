"""``python -m paper reproduce``: what it writes, and one clear line for every bad input."""

import csv
import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from click.testing import Result

import commands
from paper import reproduce
from paper.__main__ import main as paper
from paper.experiments import EXPERIMENTS, Experiment
from paper.experiments.drawing import new_figure
from paper.experiments.experiment import FITTED, Part
from paper.experiments.table import Table

REPOSITORY = Path(__file__).parents[2]
HOUSEHOLD = REPOSITORY / "examples" / "data" / "household_power_2009.csv.gz"
BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}


def run(*arguments: object) -> Result:
    return commands.run("reproduce", *arguments, program=paper)


def refused(*arguments: object, says: Sequence[str]) -> None:
    """Refused in one line, and nothing is printed."""
    commands.refused("reproduce", *arguments, says=says, program=paper)


def activity(path: Path) -> Path:
    """Write two groups, three participants, three states, and gaps of half an hour; not all rows count."""
    rng = np.random.default_rng(4)
    lines = ["subject,group,day,minute,state,awake"]
    for subject, group in (("a", "young"), ("b", "old"), ("c", "old")):
        state, minute = 0, 0
        for i in range(120):
            state = state if rng.random() < 0.6 else int(rng.integers(3))
            minute += 31 if i in (40, 90) else 1
            lines.append(f"{subject},{group},3,{minute},{['sit', 'stand', 'walk'][state]},{i < 110}")
    path.write_text("\n".join(lines) + "\n")
    return path


def household(path: Path) -> Path:
    """Write every twentieth minute of the real household, in five bins: a chain that forgets fast is done fast."""
    with gzip.open(HOUSEHOLD, "rt") as file:
        rows = list(csv.DictReader(file))[::20]
    path.write_text("\n".join(["watts", *(str(min(int(row["watts"]) // 3, 900)) for row in rows)]) + "\n")
    return path


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tables")
    return {"activity": activity(folder / "people.csv"), "electricity": household(folder / "house.csv")}


ERRORS = ["expected_l1_error", "mean_l1_error", "standard_error", "valid_mean_l1_error", "valid_standard_error"]
COLUMNS = {
    "table-activity": [
        *("data", "participants", "records", "longest_chain", "gaps", "task", "mechanism"),
        *("scale", "leaks_with_unobserved_gaps", *ERRORS, "model", "reason"),
    ],
    "figure-activity": [
        *("data", "state", "exact_share", "mechanism", "scale"),
        *("released_least", "released_mean", "released_most", "model"),
    ],
    "table-power": [
        *("data", "records", "bins", "epsilon", "mechanism", "scale", "noise_multiplier"),
        *(*ERRORS, "expected_at_paper_size", "model", "reason"),
    ],
    "table-composition": [
        *("data", "noise", "scale_of_each", "ledger", "releases", "leak_by_ledger", "k_epsilon"),
        *("scale_within_epsilon", "scale_at_epsilon_over_k", "model"),
    ],
    "other-bounds": [
        *("data", "records", "states", "mechanism", "epsilon", "record_epsilon", "model", "reason"),
    ],
    "arena": [
        *("data", "task", "mechanism", "scale", "promise", "median", "ninety", "most"),
        *("right_before", "right_after", "tries", "knows", "model"),
    ],
}
CASES = [(n, k) for n in COLUMNS for k in ("activity", "electricity") if k in BY_NAME[n].uses]
CASES.remove(("arena", "activity"))  # these people have no days without gaps


@pytest.fixture(scope="module")
def outputs(
    tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], tuple[Path, Result]]:
    """Every experiment that reads data, run once on each kind of data it reads, when it is first looked at."""

    class Outputs(dict[tuple[str, str], tuple[Path, Result]]):
        def __missing__(self, case: tuple[str, str]) -> tuple[Path, Result]:
            (name, kind), folder = case, tmp_path_factory.mktemp(case[0])
            self[case] = folder, run(name, "--data", tables[kind], "--trials", 6, "--output", folder)
            return self[case]

    return Outputs()


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    CASES,
)
def test_what_is_written(outputs: dict[tuple[str, str], tuple[Path, Result]], name: str, kind: str) -> None:
    folder, result = outputs[name, kind]
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.csv", f"{name}.md", f"{name}.png"]
    rows = rows_of(folder, name)
    assert set(rows[0]) == set(COLUMNS[name])
    page = (folder / f"{name}.md").read_text()
    assert "a comparison, not a guarantee" in FITTED
    for text in ((folder / f"{name}.csv").read_text(), page, result.stdout):
        assert FITTED in text
    for row in rows:
        fitted = row["data"] not in ("running example", "two states") and not row.get("reason")
        assert not fitted or row["model"] == FITTED
    assert page.startswith(f"# {BY_NAME[name].title}\n")
    assert f"]({name}.png)" in page
    assert BY_NAME[name].title in result.stdout
    assert f"written: {folder / f'{name}.csv'}, " in result.stdout
    picture = matplotlib.image.imread(folder / f"{name}.png")
    assert min(picture.shape[:2]) > 300
    assert len(np.unique(picture.reshape(-1, picture.shape[2]), axis=0)) > 20


@pytest.mark.slow
def test_groups_of_the_activity_table(outputs: dict[tuple[str, str], tuple[Path, Result]]) -> None:
    rows = rows_of(outputs["table-activity", "activity"][0], "table-activity")
    sizes = {(row["data"], row["gaps"], row["participants"], row["records"], row["longest_chain"]) for row in rows}
    assert sizes == {
        ("people.csv, old", "independent", "2", "220", "50"),
        ("people.csv, old", "unobserved", "2", "220", "110"),
        ("people.csv, young", "independent", "1", "110", "50"),
        ("people.csv, young", "unobserved", "1", "110", "110"),
    }
    found = {(row["data"], row["gaps"], row["task"], row["mechanism"]): row for row in rows}
    assert len(found) == len(rows) == 2 * 2 * 2 * 6
    group = found["people.csv, old", "unobserved", "aggregate", "group-dp"]
    assert float(group["scale"]) == pytest.approx(2 * 110 / 220)
    propagation = found["people.csv, old", "independent", "aggregate", "propagation"]
    assert float(propagation["leaks_with_unobserved_gaps"]) >= 1
    reason = found["people.csv, old", "independent", "individual", "participant-dp"]["reason"]
    assert "nothing of their own" in reason


def monte_carlo(rows: list[dict[str, str]]) -> list[str]:
    drawn = ("mean_l1_error", "valid_mean_l1_error", "released_mean")
    return [row[name] for row in rows for name in drawn if row.get(name)]


def exact(rows: list[dict[str, str]]) -> list[list[str]]:
    known = ("data", "mechanism", "scale", "expected_l1_error", "exact_share", "reason")
    return [[row.get(name, "") for name in known] for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("table-activity", "activity", marks=pytest.mark.slow),
        pytest.param("figure-activity", "activity", marks=pytest.mark.slow),
        ("table-power", "electricity"),
    ],
)
def test_a_seed_decides_what_is_drawn_and_nothing_else(
    outputs: dict[tuple[str, str], tuple[Path, Result]], tables: dict[str, Path], tmp_path: Path, name: str, kind: str
) -> None:
    folder, _ = outputs[name, kind]
    arguments = [name, "--data", tables[kind], "--trials", 6]
    assert run(*arguments, "--seed", 2017, "--output", tmp_path / "same").exit_code == 0
    assert run(*arguments, "--seed", 1, "--output", tmp_path / "other").exit_code == 0
    for suffix in (".csv", ".md", ".png"):
        content = (folder / (name + suffix)).read_bytes()
        assert (tmp_path / "same" / (name + suffix)).read_bytes() == content
        drawn = suffix != ".png" or name == "figure-activity"  # the pictures of tables are of expected errors
        assert ((tmp_path / "other" / (name + suffix)).read_bytes() != content) == drawn
    first, other = rows_of(folder, name), rows_of(tmp_path / "other", name)
    assert exact(first) == exact(other)
    pairs = list(zip(monte_carlo(first), monte_carlo(other), strict=True))
    assert len(pairs) > 20
    assert sum(a == b for a, b in pairs) < len(pairs) / 10


def test_list() -> None:
    result = run("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(BY_NAME)
    for experiment, line in zip(EXPERIMENTS, lines[1:], strict=True):
        assert experiment.title in line
        assert experiment.source in line
        assert not experiment.needs or f"{' or '.join(experiment.needs)} data" in line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--trials", 0], ["--trials is 0", "2 to 1,000,000"]),
        (["--trials", 1], ["--trials is 1"]),
        (["--trials", -3], ["--trials is -3"]),
        (["--trials", 1_000_001], ["--trials is 1000001"]),
        (["--seed", -1], ["--seed is -1", "at least 0"]),
    ],
)
@pytest.mark.parametrize("name", ["all", "table-composition", "table-activity"])
def test_numbers_out_of_range_are_refused(tmp_path: Path, name: str, arguments: list[object], says: list[str]) -> None:
    refused(name, *arguments, "--output", tmp_path / "out", says=says)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments", [["table-nine"], [], ["table-power", "--trials", "many"], ["table-power", "--seed", "1.5"]]
)
def test_what_click_refuses(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", [e.name for e in EXPERIMENTS if e.needs])
def test_an_experiment_without_its_data_is_refused(tmp_path: Path, tables: dict[str, Path], name: str) -> None:
    needs = BY_NAME[name].needs
    kind, output = " or ".join(needs), tmp_path / "out"
    refused(
        name,
        "--output",
        output,
        says=[name, f"needs {kind} data", "give --data", "(documentation: "],
    )
    for other in (table for kind_of, table in tables.items() if kind_of not in needs):
        refused(name, "--data", other, "--output", output, says=[name, f"needs {kind} data", str(other)])
    assert not output.exists()


def test_bad_data_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 and no more")
    text = tmp_path / "table.txt"
    text.write_text("subject\n")
    plain = tmp_path / "plain.csv"
    plain.write_text("subject,minute\na,1\n")
    for path, words in (
        (tmp_path / "none.csv", "no folder or file"),
        (tmp_path / "empty", "none of the data sets"),
        (damaged, "cannot be read"),
        (text, "no table"),
        (plain, "no column 'state'"),
    ):
        for name in ("table-activity", "all"):
            refused(name, "--data", path, "--output", tmp_path / "out", says=[path.name, words])
    assert not (tmp_path / "out").exists()


def test_bad_output_is_refused(tmp_path: Path, tables: dict[str, Path]) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    taken = tmp_path / "taken"
    (taken / "table-activity.md").mkdir(parents=True)
    for folder, words in ((file, "cannot write"), (file / "below", "cannot write"), (taken, "table-activity.md")):
        refused("table-activity", "--data", tables["activity"], "--output", folder, says=[words])
    assert file.read_text() == "mine"


def cheap(experiment: Experiment) -> Experiment:
    """Return the experiment with next to nothing to do: one row, and an empty picture."""
    return replace(
        experiment,
        uses=(),
        parts=lambda settings: [Part("all", lambda: [{"data": "none", "value": 1}])],
        about=lambda rows, settings: [],
        tables=lambda rows, settings: [Table("Nothing", ("data", "value"), (("none", "1"),))],
        figure=lambda rows, settings: new_figure(1, 1),
    )


def test_all_without_data_runs_what_needs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "EXPERIMENTS", tuple(cheap(e) for e in EXPERIMENTS))
    result = run("all", "--output", tmp_path)
    assert result.exit_code == 0, result.output
    ran = [e.name for e in EXPERIMENTS if not e.needs]
    assert ran == ["figure-synthetic", "table-runtime", "table-composition", "other-bounds", "table-coverage"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        n + s for n in ran for s in (".csv", ".md", ".png")
    )
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("left out, for want of data: ")
    for experiment in EXPERIMENTS:
        assert (experiment.name in lines[0]) == bool(experiment.needs)
        assert (experiment.title in result.stdout) == (not experiment.needs)


def test_all_says_which_files_a_folder_lacks(
    tmp_path: Path, tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduce, "EXPERIMENTS", tuple(cheap(e) for e in EXPERIMENTS if e.needs))
    name = "electricity_uci_2y_2006-12-17_1051200min.csv.gz"
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / name).write_bytes(gzip.compress(tables["electricity"].read_bytes()))
    result = run("all", "--data", folder, "--output", tmp_path / "out")
    assert result.exit_code == 0, result.output
    missing, left_out = result.stderr.splitlines()
    assert name not in missing
    assert "activity_fitbit_minute.parquet" in missing
    assert "table-activity" in left_out
    assert "table-power" not in left_out


def test_an_interruption_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "run", interrupted)
    result = run("table-composition", "--output", tmp_path)
    assert result.exit_code == 1
    assert "the same command goes on from there" in result.stderr
    assert list(tmp_path.iterdir()) == []  # nothing was done, so nothing is kept
