"""Data sets of the experiments: what is read of them, by hand, and one clear line for what cannot be."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from paper.experiments import Settings, find_data
from paper.experiments.activity import READINGS
from paper.experiments.datasets import ActivityTable, DataSets, Gaps, one_by_one, visited
from paper.experiments.table_activity import TABLE_ACTIVITY
from paper.experiments.table_composition import TABLE_COMPOSITION
from paper.experiments.table_power import TABLE_POWER
from pufferfish.errors import DataError, PufferfishError

MINUTES = {"a": [0, 1, 2, 12, 13, 24], "b": [0, 10, 20], "c": [5, 6]}
STATES = {"a": "xxyyxz", "b": "xyx", "c": "yy"}
GROUPS = {"a": "old", "b": "young", "c": "old"}
"""Eleven minutes are a gap, ten are none: a has one (13 to 24), where a step is most often one minute."""


def rows(*drop: str, day: int = 0) -> pl.DataFrame:
    """Return the records of three participants as a table with every column that means something."""
    lines = [
        (s, STATES[s][i], GROUPS[s], day + t // 1440, t % 1440, f"2000-01-01 00:{t:02d}:00")
        for s in MINUTES
        for i, t in enumerate(MINUTES[s])
    ]
    return pl.DataFrame(lines, ["subject", "state", "group", "day", "minute", "timestamp"], orient="row").drop(drop)


def written(path: Path, table: pl.DataFrame) -> Path:
    if path.suffix == ".parquet":
        table.write_parquet(path)
    else:
        content = table.write_csv().encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def read(sets: DataSets, gaps: Gaps) -> dict[str, pf.Sequences]:
    return {name: reader(gaps) for name, reader in sets.readers()}


def steps(data: pf.Sequences) -> list[tuple[int, int]]:
    return [(length.steps, length.records) for length in data.length]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("times", [("timestamp",), ("day", "minute")], ids=len)
def test_activity_by_hand(tmp_path: Path, suffix: str, times: tuple[str, ...]) -> None:
    dropped = {"timestamp", "day", "minute"} - set(times)
    sets = find_data(written(tmp_path / f"own{suffix}", rows(*dropped)))
    assert (len(sets.activity), sets.electricity, sets.missing) == (1, (), ())
    together, apart = read(sets, "unobserved"), read(sets, "independent")
    assert list(together) == list(apart) == [f"own{suffix}, old", f"own{suffix}, young"]
    old, young = together.values()
    assert (old.states, young.states) == (("x", "y", "z"), ("x", "y"))
    assert (old.counts.tolist(), young.counts.tolist()) == ([[3, 2, 1], [0, 2, 0]], [[2, 1]])
    assert old.transitions.tolist() == [[1, 1, 0], [1, 2, 0], [0, 0, 0]]
    assert young.transitions.tolist() == [[0, 1], [1, 0]]
    # from 13 to 24: eleven steps of a minute; the ten from 2 to 12 are one step, for they are no gap
    hour = 60 * ("timestamp" in times)  # these times have no zone: clocks may have been set back in the gap
    assert (steps(old), steps(young)) == ([(5 + 11 + hour, 6), (2, 2)], [(3, 3)])
    assert steps(apart[f"own{suffix}, old"]) == [(5, 5), (1, 1), (2, 2)]
    assert apart[f"own{suffix}, old"].counts.tolist() == [[3, 2, 0], [0, 0, 1], [0, 2, 0]]
    assert {data.base.source for data in (old, young)} == {f"own{suffix}"}


def test_a_table_without_groups_is_one() -> None:
    found = ActivityTable("t", Path("t.csv")).groups_of(rows("group"))
    assert [(group.title, group.rows) for group in found] == [("all", None)]


@pytest.mark.parametrize("filters", [("awake",), ("worn",), ("wear",), ("awake", "worn", "wear")], ids="-".join)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_filters_leave_rows_out(tmp_path: Path, filters: tuple[str, ...], suffix: str) -> None:
    last = pl.col("minute") == 24
    columns = [pl.when(last).then(i > 0).otherwise(True).alias(name) for i, name in enumerate(filters)]
    path = written(tmp_path / f"own{suffix}", rows("group", "timestamp").with_columns(columns))
    data = read(find_data(path), "unobserved")[f"own{suffix}"]
    assert data.states == ("x", "y")  # the only z is out
    assert steps(data) == [(5, 5), (3, 3), (2, 2)]
    assert data.base.where == " and ".join(filters)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_power_by_hand(tmp_path: Path, suffix: str) -> None:
    table = pl.DataFrame({"watts": [10, 450, 199, 99_000, 450, 450]})
    sets = find_data(written(tmp_path / f"house{suffix}", table))
    assert (sets.activity, [t.title for t in sets.electricity]) == ((), [f"house{suffix}"])
    for gaps in READINGS:
        data = read(sets, gaps)[f"house{suffix}"]
        assert data.states == ("<200", "400-600", ">=10000")
        assert data.counts.tolist() == [[2, 3, 1]]
        assert data.transitions.tolist() == [[0, 1, 1], [1, 1, 0], [0, 1, 0]]
        assert steps(data) == [(6, 6)]


def test_power_with_times_has_gaps(tmp_path: Path) -> None:
    times = [f"2020-01-01 00:{t:02d}" for t in (0, 1, 2, 12, 23, 24)]
    table = pl.DataFrame({"watts": [10, 450, 199, 99_000, 450, 450], "timestamp": times})
    sets = find_data(written(tmp_path / "house.csv", table))
    assert steps(read(sets, "unobserved")["house.csv"]) == [(3 + 11 + 2 + 60, 6)]  # clocks may have been set back
    assert steps(read(sets, "independent")["house.csv"]) == [(4, 4), (2, 2)]


def random_table(seed: int, subjects: int = 7) -> pl.DataFrame:
    """Return participants with gaps, some states missing, one state that one of them only has."""
    rng = np.random.default_rng(seed)
    frames: list[pl.DataFrame] = []
    for s in range(subjects):
        n = int(rng.integers(2, 40))
        minutes = np.cumsum(rng.choice([1, 1, 1, 1, 10, 11, 500], n))
        states = rng.choice([*"xyz", None] if s else [*"xyw"], n).tolist()
        states[:2] = ["x", "y"]
        minutes[1] = minutes[0] + 1
        frames.append(pl.DataFrame({"subject": f"S{s}", "day": 0, "minute": np.sort(minutes), "state": states}))
    order = pl.int_range(pl.len()).shuffle(seed=seed)  # participants interleaved, each in order of time
    return pl.concat(frames).with_columns(order.alias("o")).unique(["subject", "minute"]).sort("minute", "o").drop("o")


@pytest.mark.parametrize("gaps", READINGS)
@pytest.mark.parametrize("seed", range(5))
def test_one_by_one_is_reading_each_participant_alone(tmp_path: Path, seed: int, gaps: Gaps) -> None:
    table = random_table(seed)
    sets = find_data(written(tmp_path / "own.parquet", table))
    together, data = read(sets, "unobserved")["own.parquet"], read(sets, gaps)["own.parquet"]
    found = list(one_by_one(together, data))
    names = sorted(table["subject"].unique())
    assert len(found) == len(names) == together.subjects == 7
    time = (pl.datetime(2000, 1, 1, time_zone="UTC") + pl.duration(minutes="minute")).alias("time")
    for name, own in zip(names, found, strict=True):
        alone = pf.read_sequences(
            table.filter(pl.col("subject") == name).with_columns(time),
            "state",
            time="time",
            max_gap="10min",
            step="1min" if gaps == "unobserved" else None,
            gaps=gaps,
            states=data.states,
        )
        assert own.counts.tolist() == alone.counts.tolist()
        assert own.length == alone.length
        assert own.subjects == 1
    assert gaps == "unobserved" or len(data.length) > 7  # there were gaps


def test_visited_leaves_out_states_that_do_not_occur() -> None:
    table = pl.DataFrame({"s": list("ccacac")})
    data = pf.read_sequences(table, "s", states=list("abcd"))
    found = visited(data)
    assert (found.states, found.counts.tolist()) == (("a", "c"), [[2, 4]])
    assert found.transitions.tolist() == [[0, 2], [2, 1]]
    assert found.length == data.length
    assert visited(found).states == found.states


NHANES = {"w70": ("F", 65, 20.0), "w55": ("F", 64, 25.0), "thin": ("F", 64, 24.9), "man": ("M", 80, 30.0)}
FITBIT = {"a": "active(>=10000)", "s": "somewhat_active(7500-9999)", "l": "low(<7500)"}


def numbered(subjects: list[str]) -> pl.DataFrame:
    lines = [(s, t // 60, t % 60, (t + i) % 3, True) for i, s in enumerate(subjects) for t in range(50 + i)]
    return pl.DataFrame(lines, ["subject", "day", "minute", "state", "wear"], orient="row")


def known_folder(folder: Path) -> Path:
    about = pl.DataFrame([(s, *v) for s, v in NHANES.items()], ["subject", "sex", "age", "bmi"], orient="row")
    nhanes = numbered(list(NHANES)).join(about, on="subject", maintain_order="left")
    written(folder / "activity_nhanes50_minute.parquet", nhanes)
    fitbit = numbered(list(FITBIT)).with_columns(pl.col("subject").replace_strict(FITBIT).alias("group"))
    written(folder / "activity_fitbit_minute.parquet", fitbit)
    power = pl.DataFrame({"watts": [5, 500, 5, 5, 900]})
    written(folder / "electricity_uci_2y_2006-12-17_1051200min.csv.gz", power)
    return folder


def test_a_folder_of_known_files(tmp_path: Path) -> None:
    sets = find_data(known_folder(tmp_path))
    assert sets.missing == ("activity_activpal_12s.parquet", "electricity_ampds2_sample_9days.csv.gz")
    found = read(sets, "unobserved")
    assert {name: data.records for name, data in found.items()} == {
        "Fitbit, active": 50,
        "Fitbit, somewhat active": 51,
        "Fitbit, low activity": 52,
        "NHANES, women 65+": 50,
        "NHANES, women 50-64, BMI 25+": 51,
        "NHANES, men 50+": 53,
        "UCI, 2 years": 5,
    }
    assert set(found["Fitbit, active"].states) == {"sedentary", "light", "fairly active"}
    assert set(found["NHANES, men 50+"].states) == {"sedentary", "light", "moderate"}
    totals = found["NHANES, women 65+"].counts.sum(axis=0)
    assert dict(zip(found["NHANES, women 65+"].states, totals.tolist(), strict=True)) == {
        "sedentary": 17,
        "light": 17,
        "moderate": 16,
    }
    assert sets.of(("electricity",)) == list(sets.electricity)
    assert find_data(None) == DataSets()


def test_a_fingerprint_is_of_the_contents_of_files_of_its_kinds(tmp_path: Path) -> None:
    known_folder(tmp_path)
    first = [find_data(tmp_path).fingerprint(kinds) for kinds in (("activity",), ("electricity",))]
    written(tmp_path / "electricity_uci_2y_2006-12-17_1051200min.csv.gz", pl.DataFrame({"watts": [5, 500]}))
    second = [find_data(tmp_path).fingerprint(kinds) for kinds in (("activity",), ("electricity",))]
    assert first[0] == second[0]
    assert first[1] != second[1]


def one_line(error: PufferfishError, *words: str) -> None:
    assert "\n" not in str(error)
    assert str(error).isprintable()
    for word in words:
        assert word in str(error)


def but(**columns: Any) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda table: table.with_columns(
        **{k: v if isinstance(v, pl.Expr) else pl.lit(v) for k, v in columns.items()}
    )


def lacks(*names: str) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda table: table.drop(names)


FIRST = pl.int_range(pl.len()) == 0
BAD_TABLES: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "no subject": (lacks("subject"), "no column 'subject'"),
    "no state": (lacks("state"), "no column 'state'"),
    "no time": (lacks("timestamp", "minute"), "no column 'timestamp'"),
    "no rows": (lambda table: table.head(0), "no rows"),
    "no rows, one group": (lambda table: table.head(0).drop("group"), "no rows"),
    "none awake": (but(awake=False), "no row"),
    "awake is text": (but(awake="yes"), "expected true or false"),
    "null subjects": (but(subject=pl.when(~FIRST).then("subject")), "no subject in 1 row"),
    "null groups": (but(group=pl.when(~FIRST).then("group")), "no group in 1 of 11 rows"),
    "no groups at all": (but(group=pl.lit(None, pl.String)), "no group in 11 of 11 rows"),
    "no states at all": (but(state=pl.lit(None, pl.String)), "no observed state"),
    "null minutes": (but(minute=pl.when(~FIRST).then("minute")), "no time in 1 row"),
    "days are text": (but(day="Monday"), "'day'"),
    "minutes are text": (but(minute="noon"), "'minute'"),
    "times are text": (lambda table: table.drop("day").with_columns(timestamp=pl.lit("noon")), "'noon'"),
    "a time twice": (lambda table: pl.concat([table.head(1), table]), "times increase strictly"),
    "a record each": (lambda table: table.unique("subject", maintain_order=True), "exactly one record"),
    "watts are text": (lambda table: table.select(watts=pl.lit("high")), "'high'"),
    "no watts at all": (lambda table: table.select(watts=pl.lit(None, pl.Int64)), "no observed state"),
}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("case", list(BAD_TABLES))
def test_a_bad_table_is_refused_in_one_line(tmp_path: Path, case: str, suffix: str) -> None:
    change, words = BAD_TABLES[case]
    path = written(tmp_path / f"own{suffix}", change(rows()))
    with pytest.raises(DataError) as error:
        read(find_data(path), "unobserved")
    one_line(error.value, words)


def test_groups_that_are_lists_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        find_data(written(tmp_path / "own.parquet", rows().with_columns(group=pl.concat_list("group"))))
    one_line(error.value, "own.parquet cannot be read")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (but(state=pl.col("state") + 4), ["holds 4", "0, 1, 2, 3"]),
        (but(state=pl.lit("walk")), ["'walk'", "0, 1, 2, 3"]),
        (lacks("age"), ["no column 'age'"]),
        (lacks("sex"), ["no column 'sex'"]),
        (but(age="old"), ["expected a number"]),
        (but(age=70), ["NHANES, women 50-64, BMI 25+", "no rows"]),
    ],
)
def test_a_bad_known_table_is_refused_in_one_line(
    tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame], words: list[str]
) -> None:
    path = known_folder(tmp_path) / "activity_nhanes50_minute.parquet"
    written(path, change(pl.read_parquet(path)))
    with pytest.raises(DataError) as error:
        read(find_data(tmp_path), "independent")
    one_line(error.value, *words)


FULL = gzip.compress(b"subject,state,timestamp\n" + b"a,x,2020-01-01 00:00\n" * 20_000)
BAD_FILES = {
    "cut.csv.gz": FULL[: len(FULL) // 2],
    "junk.csv.gz": b"\x1f\x8b\x08junk",
    "no.csv.gz": b"subject,state\na,b\n" * 3,
    "junk.parquet": b"PAR1junkjunkjunkPAR1",
    "short.parquet": b"PAR1",
    "empty.parquet": b"",
    "empty.csv": b"",
    "bytes.csv": bytes(range(256)) * 9,
    "latin.csv": "subject,state,timestamp\né,x,2020-01-01\n".encode("latin1"),
    "ragged.csv": b"subject,state\na,b\na,b,c,d\n",
    "table.xlsx": b"PK",
    "table": b"subject,state\n",
}


@pytest.mark.parametrize("name", list(BAD_FILES))
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(BAD_FILES[name])
    with pytest.raises(DataError) as error:
        find_data(tmp_path / name)
    one_line(error.value, name)


def test_a_parquet_file_damaged_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    good = written(tmp_path / "good.parquet", rows()).read_bytes()
    refused = 0
    for start in range(0, len(good), max(1, len(good) // 60)):
        (tmp_path / "bad.parquet").write_bytes(good[:start] + b"\xff" * 40 + good[start + 40 :])
        try:
            read(find_data(tmp_path / "bad.parquet"), "unobserved")
        except PufferfishError as error:
            one_line(error)
            refused += 1
    assert refused > 10


@pytest.mark.parametrize(
    ("path", "words"), [("none.csv", "no folder or file"), ("empty", "none of"), ("x" * 5000, "x")]
)
def test_a_path_that_is_none_is_refused_in_one_line(tmp_path: Path, path: str, words: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError) as error:
        find_data(tmp_path / path)
    one_line(error.value, words)


def test_a_participant_with_one_record_takes_part(tmp_path: Path) -> None:
    table = random_table(1).drop_nulls()
    table = pl.concat([table, table.head(1).with_columns(subject=pl.lit("T"))])
    sets = find_data(written(tmp_path / "own.csv", table))
    assert [own.records for own in one_by_one(*[read(sets, "unobserved")["own.csv"]] * 2)][-1] == 1
    work = TABLE_ACTIVITY.parts(Settings(1, 2, sets))[0].work()
    individual = {r["mechanism"]: r for r in work if (r["task"], r["gaps"]) == ("individual", "unobserved")}
    assert individual["mqm-exact"]["scale"] is not None


def test_a_reducible_chain_is_no_traceback(tmp_path: Path) -> None:
    """Every experiment goes without it, and says why."""
    table = pl.DataFrame({"subject": "a", "day": 0, "minute": range(8), "state": list("xxxxyyyy")})
    sets = find_data(written(tmp_path / "own.csv", table))
    for row in TABLE_ACTIVITY.parts(Settings(1, 2, sets))[0].work():
        assert "reducible" in str(row["reason"])
        assert "expected_l1_error" not in row
    house = find_data(written(tmp_path / "house.csv", pl.DataFrame({"watts": [5, 5, 5, 500, 500]})))
    for experiment, data in ((TABLE_POWER, house), (TABLE_COMPOSITION, house), (TABLE_COMPOSITION, sets)):
        settings = Settings(1, 2, data)
        rows = [row for part in experiment.parts(settings)[-3:] for row in part.work()]
        assert all("reducible" in str(row["reason"]) for row in rows)
        assert not any("scale" in row or "leak_by_ledger" in row for row in rows)


def test_a_subject_in_two_groups_is_refused(tmp_path: Path) -> None:
    table = rows().with_columns(group=pl.Series(["old" if i % 2 else "young" for i in range(len(rows()))]))
    with pytest.raises(DataError) as error:
        find_data(written(tmp_path / "own.csv", table))
    one_line(error.value, "several groups")


def test_dates_and_names_of_a_csv_are_taken_as_they_stand(tmp_path: Path) -> None:
    """Nobody knows which day 01/02/2020 is, and participant 01 is not participant 1."""
    lines = ["subject,timestamp,state", *(f"{s},01/02/2020 00:0{m},{m % 2}" for s in ("1", "01") for m in range(5))]
    path = tmp_path / "own.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(DataError) as error:
        read(find_data(path), "unobserved")
    one_line(error.value, "timestamp")
    path.write_text("\n".join(lines).replace("01/02/2020", "2020-01-02"))
    data = read(find_data(path), "unobserved")["own.csv"]
    assert (data.subjects, data.records) == (2, 10)
