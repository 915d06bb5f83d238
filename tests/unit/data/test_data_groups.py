"""Public groups of records: how they are named, parts of local time, and what is refused."""

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pufferfish as pf
from pufferfish.data import Base, _cells, groupings
from pufferfish.data.groupings import parse_by
from pufferfish.data.groups import Groups
from pufferfish.errors import DataError, ParameterError

PARTS = {
    "hour": lambda t: str(t.hour),
    "weekday": lambda t: str(t.weekday()),
    "date": lambda t: str(t.date()),
    "week": lambda t: str(t.date() - timedelta(days=t.weekday())),
    "month": lambda t: str(t.month),
}


def counted(table, by, **options):
    groups = pf.read_sequences(table, "s", time="t", by=by, **options).groups
    return {cell[0]: n for cell, n in zip(groups.cells, groups.records, strict=True)}


def expected(times, part):
    labels = [PARTS[part](t) for t in times]
    return {label: labels.count(label) for label in set(labels)}


def test_parts_of_time_are_those_of_pythons_calendar():
    """Every day of leap years and others, centuries among them, and the hours around midnight before 1970."""
    days = [datetime(year, 1, 1, 23) + timedelta(days=i) for year in (1900, 1968, 1999, 2000, 2100) for i in range(366)]
    hours = [datetime(1969, 12, 31, 20) + timedelta(minutes=10 * i) for i in range(50)]
    for times in (sorted(set(days)), hours):
        frame = pl.DataFrame({"t": times, "s": ["a", "b"] * (len(times) // 2) + ["a"] * (len(times) % 2)})
        text = frame.with_columns(pl.col("t").dt.strftime("%Y-%m-%dT%H:%M"))
        for table in (frame, text):
            for part in PARTS:
                assert counted(table, f"{part}(t)") == expected(times, part), part


def test_local_clocks_count_by_zone_and_by_what_text_says(tmp_path, slow):
    utc = [datetime(2021, 10, 30, 12, tzinfo=UTC) + timedelta(minutes=30 * i) for i in range(96)]  # the end of summer
    berlin = [t.astimezone(ZoneInfo("Europe/Berlin")) for t in utc]
    frame = pl.DataFrame({"t": utc, "s": ["a", "b"] * 48})
    zoned = frame.with_columns(pl.col("t").dt.convert_time_zone("Europe/Berlin"))
    text = frame.with_columns(pl.Series("t", [t.isoformat() for t in berlin]))
    text.write_csv(tmp_path / "t.csv")
    pandas = pd.DataFrame({"t": pd.to_datetime(utc, utc=True).tz_convert("Europe/Berlin"), "s": ["a", "b"] * 48})
    for i, table in enumerate((zoned, text, tmp_path / "t.csv", pandas)):
        for part in PARTS if slow else [list(PARTS)[i], "hour"]:
            assert counted(table, [part]) == expected(berlin, part)
        early = counted(table, "date", where="hour(t) < 3 and not date(t) == '2021-10-30'")
        assert early == {"2021-10-31": 8, "2021-11-01": 6}  # two o'clock came twice
    assert counted(frame, "hour") == expected(utc, "hour")


def test_how_groups_are_named():
    def texts(by, time="t"):
        return [(g.text, g.column, g.part) for g in parse_by(by, time=time, private=["s"], called="state column")]

    assert texts(None) == []
    assert texts("sex") == [("sex", "sex", None)]
    assert texts(["hour", " month( when )"]) == [("hour(t)", "t", "hour"), ("month(when)", "when", "month")]
    assert texts(['date(col("my time"))', "home town"])[0] == ("date(my time)", "my time", "date")
    assert texts(['col("hour")', "weekday"], time=None) == [
        ('col("hour")', "hour", None),
        ('col("weekday")', "weekday", None),
    ]
    assert texts("col('year(t)')") == [('col("year(t)")', "year(t)", None)]
    shown = {
        'weekday(col("Zeit (lokal)"))': ('weekday(col("Zeit (lokal)"))', "Zeit (lokal)", "weekday"),
        "hour(col('T \"x\" '))": ("hour(col('T \"x\" '))", 'T "x" ', "hour"),
        "col(' sex')": ('col(" sex")', " sex", None),
        "hour(Zeit (lokal) 2)": ("hour(Zeit (lokal) 2)", "Zeit (lokal) 2", "hour"),
        "month(date)": ("month(date)", "date", "month"),
    }
    for given, label in shown.items():
        assert texts(given) == texts(label[0]) == [label]  # what is shown may be given
    meant = {
        "hour(Zeit (lokal))": """if 'Zeit (lokal)' is the name of a column, write hour(col("Zeit (lokal)"))""",
        "year(t)": """if 'year(t)' is the name of a column, write col("year(t)")""",
        "date(col(my time))": """if 'my time' is the name of a column, write date(col("my time"))""",
        "hour()": 'a column of any other name is col("name")',
    }
    for given, remedy in meant.items():
        with pytest.raises(ParameterError, match=rf"^by has .*expected a column, or hour.*; {re.escape(remedy)}$"):
            texts(given)
    for wrong in (
        [],
        "",
        ["a", " "],
        3,
        {"a"},
        ["a"] * 9,
        "year(t)",
        "hour()",
        ["a", "a"],
        ["hour", "hour(t)"],
        "value",
    ):
        with pytest.raises(ParameterError, match=r"^by "):
            texts(wrong)
    for private in ("s", "hour(s)", ["sex", 'col("s")'], "date(col('s'))"):
        with pytest.raises(DataError, match=r"^by names the state column 's': groups are public"):
            texts(private)


def test_messages_write_columns_as_they_are_to_be_given():
    odd, t = "Zeit (lokal)", [datetime(2021, 1, 1) + timedelta(days=i) for i in range(4)]
    frame = pl.DataFrame({odd: t, "s": list("aabb")})
    data = pf.read_sequences(frame, "s", time=odd, by="weekday")
    assert data.groups.by == data.base.by == ('weekday(col("Zeit (lokal)"))',)
    again = pf.read_sequences(frame, "s", by=data.groups.by)
    assert again.groups.cells == data.groups.cells
    asked = {
        'col("Zeit (lokal)")': (pl.Datetime, "such as date(col("),
        'hour(col("Zeit (lokal)"))': (pl.Date, "so hour(col("),
        'month(col("Zeit (lokal)"))': (pl.Int64, "and hour(col("),
    }
    for by, (kind, said) in asked.items():
        with pytest.raises(DataError, match=re.escape(f'{said}"Zeit (lokal)"))')):
            pf.read_sequences(frame.with_columns(pl.col(odd).cast(kind)), "s", by=by)


def test_cells_are_in_the_order_of_numbers_or_of_text_and_every_record_is_in_one():
    frame = pl.DataFrame(
        {
            "s": list("abba") * 3,
            "age": [7, 10, 9, 7] * 3,
            "code": ["x10", "x9", "x10", "b"] * 3,
            "w": [0.5, 1, 2, 1] * 3,
        }
    )
    data = pf.read_sequences(frame, "s", by=["age", "code", "w"])
    assert data.groups.cells == (("7", "b", "1"), ("7", "x10", "0.5"), ("9", "x10", "2"), ("10", "x9", "1"))
    assert data.groups.counts["s"].tolist() == [[3, 0], [3, 0], [0, 3], [0, 3]]
    assert data.base.by == ("age", "code", "w")
    assert any("grouped by age, code, w" in sentence and "is public" in sentence for sentence in data.assumptions)
    plain = pf.read_sequences(frame, "s")
    assert (plain.length, plain.counts.tolist(), plain.groups) == (data.length, data.counts.tolist(), None)
    missing = frame.with_columns(pl.when(pl.int_range(12) % 4 == 1).then(None).otherwise(pl.col("s")).alias("s"))
    assert pf.read_sequences(missing, "s", by="age").groups.cells == (("7",), ("9",))  # 10 has no observed record
    gaps = frame.with_columns(pl.when(pl.int_range(12) == 5).then(None).otherwise(pl.col("code")).alias("code"))
    with pytest.raises(
        DataError, match=r"'code' has no value in 1 row \(first: row 6\), but every record needs a group: .*!= none"
    ):
        pf.read_sequences(gaps, "s", by="code")
    assert pf.read_sequences(gaps, "s", by="code", where="code != none").records == 11


def test_what_is_no_group_is_refused(monkeypatch):
    t = [datetime(2021, 1, 1) + timedelta(hours=i) for i in range(6)]
    frame = pl.DataFrame({"t": t, "n": range(6), "s": list("aabbab"), "word": list("uvwxyz")})
    with pytest.raises(DataError, match=r"column 't' holds Datetime.*group by a part of them, such as date\(t\)"):
        pf.read_sequences(frame, "s", by=["t"])
    for by in ("hour(n)", "month(word)"):
        with pytest.raises(DataError, match="need times, such as 2016-04-13"):
            pf.read_sequences(frame, "s", by=by)
    with pytest.raises(DataError, match=r"hour\(n\).* need times"):
        pf.read_sequences(frame, "s", where="hour(n) == 8")
    with pytest.raises(DataError, match=r"refers to the state column 's'"):
        pf.read_sequences(frame, "s", where="hour(s) == 8")
    for wrong in ("hour(t, n) == 8", "hour() == 8", "year(t) == 2021", "hour(8) == 8"):
        with pytest.raises(DataError, match="is not understood"):
            pf.read_sequences(frame, "s", where=wrong)
    never = {
        "hour(t) == 25": "0 to 23, and never 25",
        "24 != hour(t)": "never 24",
        "month(t) in [1, 0]": "1 to 12, and never 0",
    }
    for wrong, why in {**never, "weekday(t) in [6, 7]": "0 (Monday) to 6, and never 7"}.items():
        with pytest.raises(DataError, match=re.escape(f"{why}")):
            pf.read_sequences(frame, "s", where=wrong)
    for wrong in ("hour(t) == '8'", "date(t) == 8", "hour(t)", "date(t) == 'May'"):
        with pytest.raises(DataError, match=r"\(t\)"):
            pf.read_sequences(frame, "s", where=wrong)
    for module, name, value in ((_cells, "MAX_CELLS", 3), (_cells, "MAX_PAIRS", 5)):
        with monkeypatch.context() as patched:
            patched.setattr(_cells, "MAX_CELLS", 3)
            patched.setattr(module, name, value)
            for table in (frame, frame.to_pandas()):
                with pytest.raises(DataError, match=r"makes more than .* groups"):
                    pf.read_sequences(table, "s", by="word")
    network = pf.BayesianNetwork({"s": pf.CPT(["a", "b"], [0.5, 0.5]), "word": pf.CPT(["u"], [1.0])})
    for by in ("word", "hour(s)"):  # a node that is not read is private too
        with pytest.raises(
            DataError,
            match=r"by names the node column .* those of another node: --query joint:NODE,NODE \(pf.Joint in Python\)$",
        ):
            pf.read_rows(frame, network, columns=["s"], by=by)
    with pytest.raises(ParameterError, match="different groupings"):
        pf.Sequences(
            states=("a", "b"), counts=[[2, 1]], transitions=[[1, 1], [0, 0]], length=(pf.ChainLength(3, 3),),
            subjects=1, base=Base(source="x", state="s", by=("sex",)),
        )  # fmt: skip
    for counts in ([[2, 1]], [[2, 1], [0, -1]], [[9, 1], [0, 0]]):
        with pytest.raises(ParameterError, match="counts"):
            Groups(by=("a",), cells=(("x",), ("y",)), records=(3, 1), counts={"s": np.array(counts)})
    assert groupings.TAKEN == ("output", "records", "value", "noisy_value", "error_95")


def of_pandas_dates(days, name, values):
    """Frames of pandas whose column holds Python's dates, as objects and as categories."""
    plain = pd.DataFrame({"d": pd.Series(days, dtype=object), name: values})
    return plain, plain.assign(d=plain["d"].astype("category"))


def test_python_dates_beside_times_have_an_hour():
    """A timestamp is a date to Python, too: only a column of nothing else is one of dates."""
    for times in ([date(2021, 1, 1), datetime(2021, 1, 1, 13), None], [datetime(2021, 1, 1, 13), date(2021, 1, 2)]):
        frame = pd.DataFrame({"d": pd.Series(times, dtype=object), "s": list("aba")[: len(times)]})
        assert pf.read_sequences(frame, "s", where="hour(d) in [0, 13]").records == 2
        assert pf.read_sequences(frame, "s", by="hour(d)", where="d != none").groups.cells == (("0",), ("13",))


def test_dates_have_no_hour(tmp_path):
    days = [date(2021, 1, 1) + timedelta(days=i) for i in range(6)]
    frame = pl.DataFrame({"d": days, "s": list("aabbab")})
    frame.write_csv(tmp_path / "d.csv")
    for table in (
        frame,
        frame.to_arrow(),
        tmp_path / "d.csv",
        frame.select(pl.all().cast(pl.String)),
        *of_pandas_dates(days, "s", list("aabbab")),
    ):
        for asked in ({"by": "hour(d)"}, {"where": "hour(d) == 0"}, {"where": "weekday(d) < 9 or not hour(d) > 7"}):
            with pytest.raises(DataError, match=r"'d' holds dates without a time of day, so hour\(d\) would be 0"):
                pf.read_sequences(table, "s", **asked)
        assert len(pf.read_sequences(table, "s", by="weekday(d)").groups.cells) == 6
        assert pf.read_sequences(table, "s", where="month(d) == 1 and date(d) > '2021-01-02'").records == 4
    network = pf.BayesianNetwork({"s": pf.CPT(["a", "b"], [0.5, 0.5])})
    for table in (frame, *of_pandas_dates(days, "s", list("aabbab"))):
        for asked in ({"by": "hour(d)"}, {"where": "hour(d) == 8"}):
            with pytest.raises(DataError, match="use its date, week, weekday or month, or the hour of another column"):
                pf.read_rows(table, network, **asked)
    missing = pd.DataFrame({"d": pd.Series([None, *days], dtype=object), "s": list("baabbab")})
    with pytest.raises(DataError, match="dates without a time of day"):
        pf.read_sequences(missing, "s", by="hour(d)", where="d != none")
    mixed = pl.DataFrame({"d": ["2021-01-01", "2021-01-01 13:00", "2021-01-02"], "s": list("aab")})
    assert pf.read_sequences(mixed, "s", by="hour(d)").groups.cells == (("0",), ("13",))


def test_times_that_are_all_at_midnight_are_warned_of():
    days = [datetime(2021, 1, 1) + timedelta(days=i) for i in range(6)]
    frame = pl.DataFrame({"d": days, "s": list("aabbab")})
    (told,) = pf.read_sequences(frame, "s", by=["weekday(d)", "hour(d)"]).warnings
    assert told.startswith("All records are in the group 0 of hour(d): ")
    later = frame.with_columns(d=pl.col("d") + pl.duration(hours=13))
    for table, by in ((later, "hour(d)"), (frame, "month(d)"), (frame, None)):
        assert pf.read_sequences(table, "s", by=by).warnings == ()
