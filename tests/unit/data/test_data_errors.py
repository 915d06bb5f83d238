"""One test per message a table can meet: one clear line, whatever the engine raised."""

import gzip
import random
import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pufferfish.data import read_sequences
from pufferfish.errors import DataError, ParameterError

TABLE = {
    "subject": ["a", "a", "a", "b", "b"],
    "timestamp": [1, 2, 3, 1, 2],
    "activity": ["rest", "walk", "walk", "rest", "rest"],
    "awake": [True, True, False, True, True],
}


def refused(source, *args, **options):
    """The one line of the error."""
    with pytest.raises((DataError, ParameterError)) as caught:
        read_sequences(source, *args, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    return type(caught.value), message


def change(**columns):
    return pl.DataFrame(TABLE | columns, strict=False)


# -- columns and options -------------------------------------------------------------------------------------


def test_unknown_column_suggests_the_nearest():
    frame = pl.DataFrame(TABLE).drop("awake")
    assert refused(frame, "activty") == (
        DataError,
        "column 'activty' not found. Did you mean 'activity'? Columns: subject, timestamp, activity.",
    )


@pytest.mark.parametrize("option", [{"subject": "subjct"}, {"time": "timestmp"}, {"where": "awke"}])
def test_every_unknown_column_is_named(option):
    (name,) = option.values()
    assert f"column '{name}' not found. Did you mean" in refused(pl.DataFrame(TABLE), "activity", **option)[1]


def test_long_lists_of_columns_are_cut():
    wide = pl.DataFrame({f"column{i}": [1] for i in range(30)})
    message = refused(wide, "zzz")[1]
    assert message.endswith("column19 and 10 more.")
    assert "Did you mean" not in message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_gap": 5}, "max_gap is 5 but there is no time: give time="),
        ({"step": "soon"}, "step is 'soon', expected a length of time"),
        ({"time": "timestamp", "max_gap": 5, "step": 6}, "expected step <= max_gap in the same unit"),
        ({"time": "timestamp", "max_gap": 5, "step": "1s"}, "expected step <= max_gap in the same unit"),
        ({"time": "timestamp", "max_gap": 0}, "max_gap is 0, expected more than 0"),
        ({"time": "timestamp", "max_gap": float("inf")}, "max_gap is inf, expected more than 0 and finite"),
        ({"time": "timestamp", "max_gap": float("nan")}, "max_gap is nan, expected more than 0 and finite"),
        ({"time": "timestamp", "max_gap": "10min"}, "max_gap is 10min, but column 'timestamp' holds numbers"),
        ({"missing": "drop"}, "missing is 'drop', expected one of 'unobserved', 'split', 'refuse'"),
        ({"gaps": "none"}, "gaps is 'none', expected one of 'unobserved', 'independent'"),
        ({"subject": 3}, "subject is 3, expected the name of a column"),
        ({"subject": "activity"}, "state and subject are the same column 'activity'"),
        ({"time": "activity"}, "state and time are the same column 'activity'"),
        ({"where": True}, "where is True, expected text"),
        ({"states": "rest"}, "states is 'rest', expected a list"),
        ({"states": []}, "states is empty"),
        ({"states": [1, "1"]}, "states[1] repeats the name '1'"),
        ({"bins": [0, 1, 2], "states": ["low", "high"]}, "states are low, high, but bins makes <1, >=1"),
    ],
)
def test_options_out_of_range(options, words):
    kind, message = refused(pl.DataFrame(TABLE), "activity", **options)
    assert kind is ParameterError
    assert words in message


def test_a_state_column_is_required():
    assert refused(pl.DataFrame(TABLE), None)[1] == "state is None, expected the name of a column"


def test_bare_number_for_timestamps():
    frame = change(timestamp=[datetime(2020, 1, day) for day in (1, 2, 3, 1, 2)])
    kind, message = refused(frame, "activity", subject="subject", time="timestamp", max_gap=600)
    assert kind is ParameterError
    assert message.startswith(
        "max_gap is 600 without a unit, but column 'timestamp' holds times: give one, such as '600s'"
    )
    message = refused(frame, "activity", subject="subject", time="timestamp", max_gap="1d", step=3)[1]
    assert "in the same unit" in message


def test_column_twice():
    frame = pd.DataFrame([[1, 2], [2, 3]], columns=["x", "x"])
    assert refused(frame, "x")[1] == "column 'x' occurs more than once: rename or drop the others"


def test_a_column_twice_that_is_not_needed_is_left():
    twice = pa.Table.from_arrays([pa.array(each) for each in (["x", "y"], [1, 2], [3, 4])], names=["s", "z", "z"])
    assert read_sequences(twice, "s").records == 2
    assert refused(twice, "z")[1] == "column 'z' occurs more than once: rename or drop the others"


def test_types_that_no_state_or_time_has():
    wide = pa.array([Decimal(1), Decimal(2)], pa.decimal256(50, 0))
    says = "column 'x' holds decimal256(50, 0), expected text, numbers, true/false or times"
    assert refused(pa.table({"x": wide}), "x")[1] == says
    for values in ([b"a", b"b"], [["a"], ["b"]], [("a",), ("b",)]):
        message = refused(pd.DataFrame({"x": values}), "x")[1]
        assert message.startswith(f"column 'x' holds {type(values[0]).__name__}, expected text, numbers")


@pytest.mark.parametrize("first", [2**63, 2**62 - 1])
def test_whole_numbers_that_are_too_large_for_times(first):
    table = pl.DataFrame({"x": ["a", "b"], "t": pl.Series([first, first + 1], dtype=pl.UInt64)})
    message = refused(table, "x", time="t", max_gap=1)[1]
    assert message.startswith(f"column 't' holds {max(first, 2**62)} (row {1 if first == 2**63 else 2}")
    assert "count from a later start" in message


def test_column_twice_in_a_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,x\n1,2\n1,2\n")
    assert refused(path, "x")[1] == "column 'x' occurs more than once: rename or drop the others"


def test_reserved_names():
    assert "kept for internal use" in refused(pl.DataFrame({"__pf_row": [1, 2]}), "__pf_row")[1]


@pytest.mark.parametrize("thing", [[1, 2], {"activity": [1]}, 7, None, pl.Series([1])])
def test_not_a_table(thing):
    assert "expected a path or a table" in refused(thing, "activity")[1]


# -- files ---------------------------------------------------------------------------------------------------


def test_file_not_found(tmp_path):
    assert refused(tmp_path / "gone.csv", "x")[1].endswith("gone.csv not found")


def test_folder(tmp_path):
    assert "is a folder, expected a file" in refused(tmp_path, "x")[1]


def test_unknown_kind(tmp_path):
    (tmp_path / "table.xlsx").write_bytes(b"PK")
    assert refused(tmp_path / "table.xlsx", "x")[1].startswith("table.xlsx is not of a kind that can be read")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet"])
def test_empty_file(name, tmp_path):
    (tmp_path / name).write_bytes(b"")
    assert refused(tmp_path / name, "x")[1] == f"{name} is empty (0 bytes)"


def test_header_only(tmp_path):
    (tmp_path / "t.csv").write_text("subject,x\n")
    assert refused(tmp_path / "t.csv", "x")[1] == "t.csv has no rows"
    assert refused(tmp_path / "t.csv", "x", subject="subject")[1] == "t.csv has no rows"


def test_corrupt_parquet(tmp_path):
    pl.DataFrame(TABLE).write_parquet(tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[: len(whole) // 2])
    assert refused(tmp_path / "t.parquet", "activity")[1].startswith("t.parquet is incomplete: ")
    for content, says in ((b"subject,activity", "is not a Parquet file"), (whole[:-4] + b"PARE", "is an encrypted")):
        (tmp_path / "t.parquet").write_bytes(content)
        assert says in refused(tmp_path / "t.parquet", "activity")[1]
    for middle in (b"", b"\0" * 40, whole[4:-8] + b"\xff" * 4):
        (tmp_path / "t.parquet").write_bytes(b"PAR1" + middle + b"PAR1")
        assert refused(tmp_path / "t.parquet", "activity")[1].startswith("t.parquet cannot be read: ")


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv"])
def test_a_title_above_the_names_of_the_columns_is_told(tmp_path, ending):
    mark, path = "\t" if "tsv" in ending else ",", tmp_path / f"t{ending}"

    def write(*lines):
        content = "".join(f"{line}\n" for line in lines).replace(",", mark).encode()
        path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
        return path

    for title in ("My survey of 2024", "My survey of 2024,,", '"Survey, 2024",,'):
        message = refused(write(title, "", 'id,"activity",day', "a,rest,1"), "activity")[1]
        assert "Line 3 of the file has this name: delete the lines above it" in message
        assert "_duplicated_" not in message
    assert "Line " not in refused(write("id,x,y", "a,rest,1", "activity,rest,2"), "activity")[1]
    assert "Line " not in refused(write("My survey of 2024,,", "id,day", "a,1"), "activity")[1]
    twice = write("id,x,x", "a,rest,walk", "a,rest,walk")
    for name in ("x", "x_duplicated_0"):
        assert refused(twice, name)[1] == "column 'x' occurs more than once: rename or drop the others"
    for head in (",id,activity", "id,activity,"):  # a column without a name, as of a pandas index, makes no title
        assert "Line" not in refused(write(head, "0,p1,rest"), "rest")[1]


def test_dates_that_are_not_iso_are_told_how_to_write_them(tmp_path):
    for dates in (("27.03.2026", "28.03.2026"), ("03/27/2026", "03/28/2026 10:00"), ("2026/3/27", "2026/3/28")):
        lines = [f"a,{date},rest,{'fm'[i]}" for i, date in enumerate(dates)]
        (tmp_path / "t.csv").write_text("\n".join(["id,t,x,sex", *lines, ""]))
        message = refused(tmp_path / "t.csv", "x", time="t", max_gap="1d")[1]
        assert f"holds {dates[0]!r} (row 1 below the header), expected an ISO time such as" in message
        assert message.endswith("write dates as year-month-day")
        assert "write dates as year-month-day" in refused(tmp_path / "t.csv", "x", where="t >= '2026-01-01'")[1]
        assert read_sequences(tmp_path / "t.csv", "x", where=f"t in ['{dates[0]}', '{dates[1]}']").records == 2
    message = refused(tmp_path / "t.csv", "x", where="sex == f")[1]
    assert message == "where 'sex == f': there is no column 'f'; put text in quotes, such as group == 'f'."
    assert "there is no column 'ids'; " in (message := refused(tmp_path / "t.csv", "x", where="sex == ids")[1])
    assert message.endswith("Did you mean 'id'?")
    assert read_sequences(tmp_path / "t.csv", "x", where="sex != id").records == 2


def test_truncated_gzip(tmp_path):
    packed = gzip.compress(b"x\n" + b"".join(b"%d\n" % (i * 7919 % 100) for i in range(100_000)))
    (tmp_path / "t.csv.gz").write_bytes(packed[: len(packed) // 2])
    assert refused(tmp_path / "t.csv.gz", "x")[1].startswith("t.csv.gz cannot be read: ")


def test_bytes_that_are_not_text(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"x\n\xe9\n1\n")
    assert refused(tmp_path / "t.csv", "x")[1].startswith("t.csv cannot be read: ")


def test_rows_longer_than_the_header(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n1,2,3\n")
    assert refused(tmp_path / "t.csv", "x")[1].startswith("t.csv cannot be read: ")


@pytest.mark.parametrize(("mark", "number"), [(";", "2,5"), ("|", "2.5")])
def test_other_separator(tmp_path, mark, number):
    (tmp_path / "t.csv").write_text(f"x{mark}y\n1{mark}{number}\n")
    said = refused(tmp_path / "t.csv", "x")[1]
    assert f"seems to separate columns by {mark!r}" in said
    call = said[said.index("polars.read_csv") :].rstrip(".")
    made = {"polars": pl, "FILE": tmp_path / "t.csv", "NEW": tmp_path / "new.csv"}
    eval(call, made)  # the remedy is one
    assert (tmp_path / "new.csv").read_text() == "x,y\n1,2.5\n"


def test_tabs_go_into_a_file_that_says_so(tmp_path):
    (tmp_path / "t.csv").write_text("x\ty\na\t1\nb\t2\n")
    assert (
        "'\\t', expected ',' (.csv) or a tab (.tsv): name it so that it ends in .tsv"
        in refused(tmp_path / "t.csv", "x")[1]
    )
    (tmp_path / "t.csv").rename(tmp_path / "t.tsv")
    assert read_sequences(tmp_path / "t.tsv", "x").records == 2


def test_an_engine_that_fails_is_one_line():
    connection = duckdb.connect()
    relation = connection.sql("select t, cast('a' || t as int) as x from (values (1), (2)) v(t)")
    assert "cannot be read: " in refused(relation, "x", time="t")[1]


# -- rows ----------------------------------------------------------------------------------------------------


def test_empty_frame():
    assert refused(pl.DataFrame(TABLE).clear(), "activity")[1] == "polars frame has no rows"
    assert refused(pl.DataFrame(TABLE).clear(), "activity", subject="subject")[1] == "polars frame has no rows"


@pytest.mark.parametrize(
    "options", [{}, {"subject": "subject"}, {"subject": "subject", "time": "timestamp", "max_gap": 1}]
)
def test_nothing_left(options):
    message = refused(pl.DataFrame(TABLE), "activity", where="timestamp > 9", **options)[1]
    assert message == "no row of polars frame is left where timestamp > 9 (5 before)"


@pytest.mark.parametrize("subjects", [["a", "a", None, "b", "b"], [1.0, 1.0, float("nan"), 2.0, 2.0]])
def test_missing_subject(subjects):
    message = refused(change(subject=subjects), "activity", subject="subject")[1]
    assert message.startswith("column 'subject' has no subject in 1 row (first: row 3): every record needs")


def test_missing_time():
    message = refused(change(timestamp=[1, 2, 3, None, None]), "activity", subject="subject", time="timestamp")[1]
    assert message.startswith("column 'timestamp' has no time in 2 rows (first: row 4, subject 'b')")


def test_unsorted():
    message = refused(change(timestamp=[1, 9, 3, 2, 1]), "activity", subject="subject", time="timestamp")[1]
    assert message == (
        "column 'timestamp' is unsorted: 3 comes after 9 for subject 'a' (in 2 rows): times increase strictly within a "
        "subject; sort the table by subject and time"
    )


def test_clocks_that_were_set_back():
    times = ["2024-10-27T02:58", "2024-10-27T02:59", "2024-10-27T02:00", "2024-10-27T02:01", "2024-10-27T02:02"]
    message = refused(change(subject=["a"] * 5, timestamp=times), "activity", subject="subject", time="timestamp")[1]
    assert message.endswith("where clocks were set back, write times with their offset, such as 2024-10-27T02:00+01:00")


def test_duplicate():
    times = [datetime(2020, 1, 1, hour) for hour in (1, 2, 2, 1, 1)]
    message = refused(change(timestamp=times), "activity", subject="subject", time="timestamp")[1]
    assert message == (
        "column 'timestamp' repeats 2020-01-01 02:00:00 for subject 'a' (rows 2 and 3; duplicate times in 2 rows): "
        "times increase strictly within a subject; check that column 'subject' names the subject of each record, then "
        "drop or aggregate the duplicates; where clocks were set back, write times with their offset, such as "
        "2024-10-27T02:00+01:00"
    )


def test_a_table_that_is_there_twice_is_not_called_unsorted(tmp_path):
    """Each time stands twice, though not in rows that follow each other: which rows, and what to do."""
    rows = ["a,2024-05-01 08:01,rest", "a,2024-05-01 08:02,walk", "b,2024-05-01 08:01,rest"]
    (tmp_path / "t.csv").write_text("\n".join(["subject,timestamp,activity", *rows, *rows]) + "\n")
    message = refused(tmp_path / "t.csv", "activity", subject="subject", time="timestamp")[1]
    assert message == (
        "column 'timestamp' has 2024-05-01 08:01:00 twice for subject 'a' (rows 1 and 4 below the header): times "
        "increase strictly within a subject; check that column 'subject' names the subject of each record, then drop "
        "or aggregate the duplicates, and sort the table by subject and time; where clocks were set back, write times "
        "with their offset, such as 2024-10-27T02:00+01:00"
    )
    message = refused(tmp_path / "t.csv", "activity", time="timestamp")[1]
    assert "sort the table by time, or give subject=" in message  # no subject was named: these may be several
    assert "whose records" not in message


@pytest.mark.parametrize("times", [[1, 2, 3, 1, 2], [1, 2, 3, 3, 4]])
def test_subjects_that_were_not_named(times):
    assert "or give subject=" in refused(change(timestamp=times), "activity", time="timestamp")[1]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["2020-01-01", "2020-01-02", "noon", "2020-01-04", "soon"], "'noon' (row 3, subject 'a'), expected an ISO"),
        (["2020-02-28", "2020-02-29", "2021-02-29", "2020-01-01", "2020-01-02"], "holds '2021-02-29' (row 3"),
        (["2020-01-01 23:59", "2020-01-01 24:00", "2020-01-03", "2020-01-01", "2020-01-02"], "'2020-01-01 24:00'"),
        (["13/04/2020", "14/04/2020", "15/04/2020", "1/4/2020", "2/4/2020"], "holds '13/04/2020' (row 1"),
        (["1", "2", "three", "1", "2"], "holds 'three' (row 3, subject 'a'), expected a number like the other times"),
        (["1", "2", "inf", "1", "2"], "expected finite times"),
    ],
)  # fmt: skip
def test_unparsable_time(times, message):
    assert message in refused(change(timestamp=times), "activity", subject="subject", time="timestamp")[1]


def test_offsets_on_some_rows_only():
    times = ["2020-01-01 10:00", "2020-01-01 11:00Z", "2020-01-01 12:00", "2020-01-01 10:00", "2020-01-01 11:00"]
    message = refused(change(timestamp=times), "activity", subject="subject", time="timestamp")[1]
    assert "mixes times with and without a UTC offset, e.g. '2020-01-01 11:00Z' (row 2, subject 'a')" in message


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_infinite_time(value):
    frame = change(timestamp=[1.0, 2.0, value, 1.0, 2.0])
    assert "expected finite times" in refused(frame, "activity", subject="subject", time="timestamp")[1]


@pytest.mark.parametrize(
    ("role", "column", "words"),
    [
        ("time", [True] * 5, "time column 'x' holds Boolean, expected times"),
        ("time", [timedelta(1)] * 5, "time column 'x' holds Duration"),
        ("subject", [[1]] * 5, "subject column 'x' holds List"),
        ("state", [date(2020, 1, 1)] * 5, "state column 'x' holds Date, expected text, numbers or true/false"),
        ("state", [[1]] * 5, "state column 'x' holds List"),
    ],
)
def test_columns_of_the_wrong_type(role, column, words):
    options = {"state": "activity"} | {role: "x"}
    assert words in refused(change(x=column), **options)[1]


# -- states --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [[True, False, True, True, True], [date(2020, 1, 1)] * 5])
def test_only_numbers_have_bins(column):
    assert "expected numbers for bins" in refused(change(activity=column), "activity", bins="0,1,2")[1]


@pytest.mark.parametrize("where", [None, "timestamp > 0"])
def test_text_that_is_no_number_has_no_bin(where):
    frame = change(activity=["1", "2", "1,5", "x", "3"])
    message = refused(frame, "activity", subject="subject", bins="0,1,2", where=where)[1]
    assert message.startswith("column 'activity' holds '1,5' (row 3, subject 'a'), expected a number to be binned")
    data = read_sequences(frame, "activity", subject="subject", bins="0,1,2", where="timestamp < 3 and subject == 'a'")
    assert data.counts.tolist() == [[0, 2]]


def test_states_that_the_model_lacks():
    message = refused(pl.DataFrame(TABLE), "activity", subject="subject", states=["walk", "run"])[1]
    assert message == (
        "column 'activity' holds states that the model lacks: 'rest' (3 rows). The model's states: walk, run"
    )


def test_only_the_commonest_strangers_are_listed():
    frame = pl.DataFrame({"x": [i for i in range(12) for _ in range(i + 1)]})
    message = refused(frame, "x", states=range(1))[1]
    assert "'11' (12 rows), '10' (11 rows)" in message
    assert "'4' (5 rows) and 3 more." in message


def test_refused_missing_states():
    frame = change(activity=["rest", None, "rest", None, None])
    message = refused(frame, "activity", subject="subject", missing="refuse")[1]
    assert message.startswith("column 'activity' has no state in 3 rows (e.g. subject 'a': 1): missing='refuse'")
    assert "has no state in 3 rows: missing" in refused(frame, "activity", missing="refuse")[1]


@pytest.mark.parametrize("missing", ["unobserved", "split"])
def test_no_observed_state(missing):
    frame = change(activity=[None] * 5)
    for options, n in (({}, 5), ({"where": "awake"}, 4), ({"where": "awake", "time": "timestamp", "max_gap": 1}, 4)):
        message = refused(frame, "activity", subject="subject", missing=missing, **options)[1]
        assert message == f"column 'activity' has no observed state: all {n} rows are missing"


def test_one_row_chains():
    frame = change(subject=list("abcde"))
    message = refused(frame, "activity", subject="subject")[1]
    assert message.startswith("every chain has exactly one record (5 in all), so no records can depend on each other")
    assert "check the subject column 'subject'" in message
    message = refused(frame, "activity", subject="subject", time="timestamp", max_gap=1, gaps="independent")[1]
    assert message.endswith("'subject' and max_gap (1)")
    assert "exactly one record (1 in all)" in refused(frame.head(1), "activity")[1]


def test_numbers_without_bins():
    frame = pl.DataFrame({"x": [i / 7 for i in range(3000)]})
    assert "has 3,000 different values, expected at most 2000 states: give bins=" in refused(frame, "x")[1]


def test_a_step_that_cannot_be_known():
    frame = pl.DataFrame({"t": [0, 10, 20], "x": ["a", "b", "a"]})
    message = refused(frame, "x", time="t", max_gap=1)[1]
    assert message.startswith("no two records are within max_gap (1) of each other")
    assert read_sequences(frame, "x", time="t", max_gap=1, step=1).spans == (21,)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_text_that_is_not_utf_8_or_has_lines_of_old_macs(tmp_path, ending):
    text = "subject,activity\n" + "a,rest\nb,walk\n" * 20
    path = tmp_path / f"day{ending}"

    def write(content):
        path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)

    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        write(text.encode(encoding))
        message = refused(path, "activity", subject="subject")[1]
        assert message == f"{path.name} is no UTF-8 text (it looks like UTF-16): save it as CSV in UTF-8"
    write(text.replace("\n", "\r").encode())
    message = refused(path, "activity", subject="subject")[1]
    assert message == (f"the lines of {path.name} end in CR alone, as on old Macs: save it with line ends LF or CRLF")
    for fine in (text.encode("utf-8-sig"), text.replace("\n", "\r\n").encode(), text.encode()):
        write(fine)
        assert read_sequences(path, "activity", subject="subject").records == 40


@pytest.mark.parametrize("seed", range(4))
def test_bytes_that_are_no_text_are_not_taken_for_another_code(tmp_path, seed):
    noise = random.Random(seed).randbytes(3000)
    for content in (noise, b"\xff\xfe" + noise, b"PAR1" + noise):
        (tmp_path / "t.csv").write_bytes(content)
        message = refused(tmp_path / "t.csv", "activity")[1]
        assert message.startswith("t.csv holds no text: it is damaged, or of another kind than its name says; export")
    (tmp_path / "t.csv").write_bytes(b"sub\0ject,activity\na,rest\n")
    assert "line 1 of the file has the byte 0x00" in refused(tmp_path / "t.csv", "activity")[1]


@pytest.mark.parametrize("where", ["end", "middle"])
def test_a_damaged_parquet_file_is_called_damaged(tmp_path, where):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"activity": ["rest", "walk"] * 5000}).write_parquet(path, compression="gzip")
    content = bytearray(path.read_bytes())
    at = len(content) - 150 if where == "end" else 60
    content[at : at + 30] = bytes(255 - byte for byte in content[at : at + 30])
    path.write_bytes(content)
    message = refused(path, "activity")[1]
    assert message.startswith("t.parquet cannot be read: the file is damaged (")
    assert message.endswith("): copy or write it again")


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv"])
def test_a_line_with_too_many_cells_is_named(tmp_path, ending):
    mark = "\t" if "tsv" in ending else ","
    rows = ["subject,activity", *["a,rest", "b,walk"] * 20]
    rows[7] = 'a,"re\nst"'  # one record, two lines
    rows[30] += ",and"
    content = "\n".join(rows).replace(",", mark).encode()
    path = tmp_path / f"day{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    message = refused(path, "activity", subject="subject")[1]
    assert "line 32 of the file has more cells than the first line has columns" in message


def test_csv_that_is_no_csv_in_utf8_names_the_line_and_the_remedy(tmp_path):
    """In one line of our own words; the engine's advice is for those who call it."""
    latin = (
        "is no UTF-8 text (it has the byte 0xe9; the file may be in Latin-1 or Windows-1252): save it as CSV in UTF-8"
    )
    quote = "has a stray quote: a cell that begins with a quote ends at the next one"
    cases = [
        (b"x,y\nr\xe9st,1\n", f"2 of the file {latin}, such as by: iconv -f WINDOWS-1252 -t UTF-8 t.csv > t-utf8.csv"),
        (b"x,\xe9\nrest,1\n", f"line 1 of the file {latin}"),
        (b"x,y\n" + b"rest,1\n" * 30_000 + b"\xe9,1\n", f"line 30,002 of the file {latin}"),
        (b'x,y\nrest,1\n"active"x,2\n', f"line 3 of the file {quote}"),
        (b'x,y\nrest,1\n"a\nb",2\n"active,2\nrest,1\n', "the quote of a cell in line 5 of the file is not closed"),
        (b'x,y\rrest,"a\nb"\ractive,2\r', "end in CR alone, as on old Macs: save it with line ends LF or CRLF"),
    ]
    for content, expected in cases:
        path = tmp_path / "t.csv"
        path.write_bytes(content)
        kind, message = refused(path, "x")
        assert kind is DataError
        assert expected in message, message
        assert len(message) < 250
        assert "\n" not in message
    path.write_bytes(b'"x\ry",y\r\nrest,"a\rb"\r\nrest,c\r\n')  # quoted, which is allowed
    assert read_sequences(path, state="y").records == 2


def test_files_that_other_programs_wrote_are_told_what_to_mend(tmp_path):
    latin, closed = b"c\tx\nr\xe9st\t1\n", "line 2 of the file is not closed: write another one where the cell ends"
    cases = [
        ("t.tsv", latin, "iconv -f WINDOWS-1252 -t UTF-8 t.tsv > t-utf8.tsv"),
        ("t.tsv.gz", gzip.compress(latin), "gzip -dc t.tsv.gz | iconv -f WINDOWS-1252 -t UTF-8 > t-utf8.tsv"),
        ("t.csv.gz", gzip.compress(b"c,x\na,1\n") + bytes(64), "is incomplete or damaged: copy or compress it again"),
        ("t.csv", b'c,x\n"a,1\nb,2\n', f"the quote of a cell in {closed}"),
        ("t.csv", b"c,x\r\r\na,1\r\r\n", "end in CR CR LF: save it with line ends LF or CRLF"),
        ("t.csv", b"sep=,\nc,x\na,1\n", "does not name the columns: delete it"),
        ("t.csv", b"# from the ward\nc,x\n", "does not name the columns: delete it"),
        ("t.csv", b'"c,x"\n"a,1"\n', "seems to be one quoted cell: save it as CSV again"),
    ]
    for name, content, expected in cases:
        (tmp_path / name).write_bytes(content)
        kind, message = refused(tmp_path / name, "c")
        assert kind is DataError
        assert expected in message, message


def test_more_stray_quotes_and_files_without_a_header_are_said_in_own_words(tmp_path):
    quote = "has a stray quote inside a cell: put such a cell in quotes"
    path = tmp_path / "t.csv"
    rows = b"A,1,rest,30,x\n" * 100
    for wrong in (b'A,5,rest,30,5" pipe\n', b'A,5,re"st,30,5\n'):
        path.write_bytes(b"a,b,c,d,e\n" + b'"q,""\n",2,rest,30,x\n' + wrong + rows)
        assert f"line 4 of the file {quote}" in refused(path, "c")[1]
    for content in (b"\n\n\n", b"\r\n"):
        path.write_bytes(content)
        assert "t.csv has no header line" in refused(path, "c")[1]
    for wrong in (
        b'c,d"1\n"x,y",1\nactive,2\n"a",3\n',
        b'c,d\nrest,1\n","a"\nrest, "q"\nrest,"\n"",2\n',
        b'c\nrest\n"active\n',
    ):
        path.write_bytes(wrong)  # from which the engine would make fewer rows, without an error
        assert re.search("stray quote|not closed", refused(path, "c")[1])
    path.write_bytes(b'\xef\xbb\xbf"c","d ""1"""\r\n"re\n""st""",""\r\n"""",2')
    assert read_sequences(path, "c").states == ('"', 're\n"st"')
    path.write_bytes(b"c\nrest\nactive\n")
    assert "ends in /, as only the name of a folder does" in refused(f"{path}/", "c")[1]
    for address in ("http://example.org/t.csv", "s3://bucket/t.parquet", Path("https://example.org/t.csv")):
        assert "only local files are read: download it first" in refused(address, "c")[1]
    for name, opened in (("long.csv", open), ("long.csv.gz", gzip.open)):
        with opened(tmp_path / name, "wb") as file:
            file.write(b"0" * 3_000_000)
        assert "has more than 1,000,000 characters: is it a CSV file?" in refused(tmp_path / name, "c")[1]


def test_bytes_that_would_be_names_of_states_are_refused(tmp_path):
    for end, byte in ((b"\x1a", "0x1a, by which old programs end a file"), (b"\0\0", "0x00, as have files")):
        for before in (b"", b"rest\n" * 300_000):  # the second is read in parts
            (tmp_path / "t.csv").write_bytes(b"c\nrest\nactive\n" + before + end)
            line = f"line {before.count(b'rest') + 4:,} of the file has the byte {byte}"
            assert line in refused(tmp_path / "t.csv", "c")[1]


def test_a_table_that_is_not_there_may_be_another_one(tmp_path):
    (tmp_path / "survey.csv").write_text("x\na\n")
    assert refused(tmp_path / "servey.csv", "x")[1].endswith("servey.csv not found. Did you mean 'survey.csv'?")


def test_files_that_are_packed_otherwise_than_their_names_say(tmp_path):
    (tmp_path / "t.csv").write_bytes(gzip.compress(b"x\na\n"))
    (tmp_path / "u.csv.gz").write_bytes(b"x\na\n")
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress(b"x\na\n" * 100)[:20])
    says = {
        "t.csv": "t.csv is compressed by gzip: rename it to t.csv.gz, or unpack it",
        "u.csv.gz": "u.csv.gz is not compressed by gzip, as its name says: rename it to u.csv",
        "v.csv.gz": "v.csv.gz cannot be read: the compressed file is incomplete or damaged: copy or compress it again",
    }
    for name, message in says.items():
        assert refused(tmp_path / name, "x")[1] == message


def test_a_quote_that_is_not_closed_in_the_header(tmp_path):
    (tmp_path / "t.csv").write_text('"x,y\na,b\nc,d\n')
    assert refused(tmp_path / "t.csv", "y")[1].endswith(
        "the quote of a cell in line 1 of the file is not closed: write another one where the cell ends"
    )


def test_workbooks_that_are_called_csv_are_told(tmp_path):
    for begins in (b"PK\x03\x04", b"\xd0\xcf\x11\xe0"):
        (tmp_path / "t.csv").write_bytes(begins + bytes(50))
        assert refused(tmp_path / "t.csv", "x")[1].startswith("t.csv is no CSV file but a workbook of Excel")


def test_words_for_missing_states_are_told_how_to_be_left_out():
    for word in ("NA", "n/a", "?", "."):
        message = refused(change(activity=["rest", word, "walk", "rest", "walk"]), "activity", states=["rest", "walk"])[
            1
        ]
        assert f"lacks: {word!r} (1 row). If {word!r} means a missing state, leave the cell empty. The model" in message
    two = refused(change(activity=["rest", "-", "null", "run", "rest"]), "activity", states=["rest"])[1]
    assert "If '-' and 'null' stand for missing states, leave the cells empty." in two
    known = read_sequences(change(activity=["rest", "NA", "rest", "NA", "rest"]), "activity", states=["rest", "NA"])
    assert known.counts.sum(axis=0).tolist() == [3, 2]


def test_parts_of_time_are_for_groups_and_filters():
    frame = pl.DataFrame(TABLE)
    plain = "column 'date' not found. Columns: subject, timestamp, activity, awake."
    assert refused(frame, "activity", time="date")[1] == plain
    assert refused(frame, "activity", time="date", by="date")[1] == plain
    part = "For a part of a time, name the column: date(column)."
    assert part in refused(frame, "activity", by="date")[1]
    assert part in refused(frame, "activity", where="date > 3")[1]


def test_an_index_of_pandas_is_no_column():
    frame = pd.DataFrame(TABLE).rename(columns={"timestamp": "date"})
    for indexed in (frame.set_index("date"), frame.set_index(["subject", "date"])):
        message = refused(indexed, "activity", time="date")[1]
        assert message == (
            "column 'date' not found: 'date' is the index of the frame, not a column; give frame.reset_index()"
        )
        assert read_sequences(indexed.reset_index(), "activity", subject="subject", time="date").records == 5
