"""Row filters: the language, three-valued logic, and every refusal."""

import itertools
from datetime import date, datetime

import duckdb
import pandas as pd
import polars as pl
import pytest

from pufferfish.data import read_sequences
from pufferfish.data.source import open_source
from pufferfish.data.where import parse_where
from pufferfish.errors import DataError

ROWS = {
    "n": [1, 2, 3, None, -4, 5],
    "m": [1, 1, None, 2, -4, 9],
    "f": [0.5, float("nan"), 2.0, None, -1.0, 5.0],
    "s": ["a", "b", None, "a b", "b", "z"],
    "day no": ["a", "x", "c", "a b", None, "y"],
    "b": [True, False, None, True, False, True],
    "when": [datetime(2020, 1, 1, 10), datetime(2020, 1, 2), None, *[datetime(2020, 1, day) for day in (3, 4, 5)]],
    "d": [date(2020, 1, 1), date(2020, 1, 2), None, date(2020, 1, 3), date(2020, 1, 4), date(2020, 1, 5)],
    "state": ["x", "y", "x", "y", "x", "y"],
}
COLUMNS = {
    name: [value for i, value in enumerate(values) for _ in range(2 ** (i + 1))] for name, values in ROWS.items()
}
COLUMNS["row"] = list(range(126))
KEPT = {
    "n == 2": {1},
    "n != 2": {0, 2, 4, 5},
    "not n == 2": {0, 2, 4, 5},
    "n > 1 and f > 1": {2, 5},
    "n > 1 or f > 0": {0, 1, 2, 5},
    "not (n > 1 and f > 1)": {0, 4},
    "not (n > 1 or b)": {4},
    "0 < n <= 3": {0, 1, 2},
    "3 >= n": {0, 1, 2, 4},
    "2 == n": {1},
    "f != 2": {0, 4, 5},
    "n == -4": {4},
    "-n > 3": {4},
    "+n == 5": {5},
    "n == m": {0, 4},
    "m <= n": {0, 1, 4},
    "n < 2.5": {0, 1, 4},
    "n in [1, 2.0, 7]": {0, 1},
    "n not in (1, 2)": {2, 4, 5},
    "n in {1, none}": {0, 3},
    "n not in [1, none]": {1, 2, 4, 5},
    "n in []": set(),
    "n < 99999999999999999999": {0, 1, 2, 4, 5},
    "s == 'a'": {0},
    's in ["a", "b"]': {0, 1, 4},
    "s > 'a'": {1, 3, 4, 5},
    "s == none": {2},
    "s != None": {0, 1, 3, 4, 5},
    "s is none": {2},
    "s is not null": {0, 1, 3, 4, 5},
    "f == none": {1, 3},
    'col("day no") == s': {0, 3},
    'col("n") == 1': {0},
    "b": {0, 3, 5},
    "not b": {1, 4},
    "b == false": {1, 4},
    "b != True": {1, 4},
    "b == none": {2},
    'when >= "2020-01-03"': {3, 4, 5},
    'when == "2020-01-01T10:00"': {0},
    '"2020-01-01 12:00:00.5" < when': {1, 3, 4, 5},
    'when in ["2020-01-02", "2020-01-04"]': {1, 4},
    'd < "2020-01-03"': {0, 1},
    "when == d": {1, 3, 4, 5},
    "b and n > 0 and not s == 'z'": {0},
    "n" + " >= m >= n" * 100: {0, 4},  # the most that is taken: engines took minutes for one in another
    " or ".join(["n == m"] * 100): {0, 4},
    "not " * 46 + "b": {0, 3, 5},
    "n in [" + "1," * 900 + "2]": {0, 1},
}


def polars_table(folder):
    return pl.DataFrame(COLUMNS, schema_overrides={"n": pl.Int8, "m": pl.Int16, "f": pl.Float32})


def pandas_table(folder):
    return pd.DataFrame(COLUMNS)


def nullable_table(folder):
    return pd.DataFrame(COLUMNS).convert_dtypes()


def duckdb_table(folder):
    connection = duckdb.connect()
    connection.register("held", polars_table(folder).to_arrow())
    return connection.sql("select * from held")


def csv_table(folder):
    polars_table(folder).write_csv(folder / "t.csv")
    return folder / "t.csv"


TABLES = [polars_table, pandas_table, nullable_table, duckdb_table, csv_table]
"""With polars every filter is tried, with each of the others one filter of eight."""


@pytest.mark.grid(keep=5)
@pytest.mark.parametrize("table", TABLES)
def test_which_rows_are_kept(table, tmp_path, slow):
    held, first = table(tmp_path), TABLES.index(table)
    for where, expected in list(KEPT.items())[slice(None) if slow or not first else slice(2 * first - 2, None, 8)]:
        copies = sum(2 ** (i + 1) for i in expected)  # row i is there 2^(i+1) times, so their number names the rows
        if expected:
            assert read_sequences(held, "state", time="row", where=where).records == copies, where
        else:
            with pytest.raises(DataError, match="no row of"):
                read_sequences(held, "state", time="row", where=where)


def test_three_values():
    """Kleene's tables, from every pair of true, false and missing."""
    pairs = [
        pair for i, pair in enumerate(itertools.product([True, False, None], repeat=2)) for _ in range(2 ** (i + 1))
    ]
    frame = pl.DataFrame({"p": [p for p, _ in pairs], "q": [q for _, q in pairs], "x": ["s"] * len(pairs)})
    for table in (frame, frame.to_pandas(), frame.to_pandas().astype(object)):
        for where, keep in {
            "p and q": {0},
            "p or q": {0, 1, 2, 3, 6},
            "not (p and q)": {1, 3, 4, 5, 7},
            "not (p or q)": {4},
            "p == q": {0, 4},
            "p != q": {1, 3},
        }.items():
            assert read_sequences(table, "x", where=where).records == sum(2 ** (i + 1) for i in keep)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("n = 2", "compare with ==, not ="),
        ("n > 2 AND n < 5", "write and, or, not, in with small letters"),
        ("n >= 2020-01-01", "write a time in quotes"),
        ("n >= (2", "was never closed"),
        ("n ==", "is not an expression"),
        ("n" + " < m < n" * 101, "has 202 comparisons, with the and and or between them, expected at most 200"),
        (" or ".join(["n == 1"] * 101), "has 201 comparisons, with the and and or between them"),
        (" or ".join(["b"] * 202), "has 201 comparisons"),
        ("n > " + "-" * 1500 + "1", "is nested more than 50 deep: make a column that marks the rows"),
        ("-" * 1500 + "n > 1", "is nested more than 50 deep"),
        ("not " * 400 + "b", "is nested more than 50 deep"),
        ("(b or " * 60 + "b" + ")" * 60, "is nested more than 50 deep"),
        ("n in " + "[" * 80 + "]" * 80, "is nested more than 50 deep"),
        ("hour(" * 80 + "n" + ")" * 80 + " > 1", "is nested more than 50 deep"),
        ("n" + ".a" * 500, "is nested more than 50 deep"),
        ("n > " + "9" * 1900, "a whole number of more than 308 digits"),
        ("n in [" + "1, " * 900 + "]", "has 2,707 characters, expected at most 2,000"),
        ("(" * 500 + "n" + ")" * 500, "is not an expression"),
        ("state == 'x'", "refers to the state column 'state': a filter is public"),
        ('n > 1 and col("state") == "x"', "refers to the state column"),
        ("n + 1 > 2", "'n + 1' is not understood"),
        ("n > abs(m)", "'abs(m)' is not understood"),
        ("n.real > 1", "'n.real' is not understood"),
        ("n[0] > 1", "'n[0]' is not understood"),
        ("__import__('os').system('true')", "is not understood"),
        ("(lambda: n)()", "is not understood"),
        ("[n for n in m]", "is not understood"),
        ("n if b else m", "is not understood"),
        ("n == 1j", "'1j' is not understood"),
        ("s == b'a'", "is not understood"),
        ("col(n) > 1", "is not understood"),
        ("col('n', 'm') > 1", "is not understood"),
        ("n in [m]", "'m' is not a value; put text in quotes"),
        ("n & m", "is not understood"),
        ("1 == 1", "names no column"),
        ("true", "names no column"),
        ("n == 1 and 1 == 1", "both constants"),
        ("n", "column 'n' holds numbers, so it is not a condition; compare it, e.g. n == …"),
        ("-n", "'-n' is not a condition"),
        ("n and b", "column 'n' holds numbers, so it is not a condition"),
        ("n == 1 and 2", "'2' is not a condition"),
        ("n == 'a'", "column 'n' holds numbers, which cannot be compared with 'a'"),
        ("n == true", "column 'n' holds numbers, which cannot be compared with true"),
        ("s > 1", "column 's' holds text, which cannot be compared with 1"),
        ("s in ['a', 1]", "column 's' holds text, which cannot be compared with 1"),
        ("s == n", "column 's' holds text and column 'n' holds numbers"),
        ("b == 1", "column 'b' holds true or false, which cannot be compared with 1"),
        ("b < true", "column 'b' holds true or false, which has no order"),
        ("-s == 1", "'-s' cannot be compared"),
        ("n < none", "none has no order"),
        ("n is 1", "'is' compares with none only"),
        ("1 in n", "in needs a column on the left and a list"),
        ("n in m", "in needs a column on the left and a list"),
        ("s in (f, 'm')", "'f' is not a value; put text in quotes, such as group == 'f'"),
        ("when > 'noon'", "'noon' is not an ISO time"),
        ("when > 3", "column 'when' holds times, which cannot be compared with 3"),
        ("when > '2020-01-01T00:00Z'", "has no time zone: leave out the offset"),
        ("span == 1", "column 'span' holds neither numbers, text"),
        ("(n == 1) == b", "cannot be compared"),
    ],
)
def test_refusals(where, words):
    frame = pl.DataFrame(COLUMNS).with_columns(pl.lit(3).cast(pl.Duration).alias("span"))
    with pytest.raises(DataError) as caught:
        read_sequences(frame, "state", where=where)
    message = str(caught.value)
    assert words in message
    assert message.startswith((f"where {where!r}"[:90], "where has "))  # long ones are cut, or not said
    assert "\n" not in message


def test_time_zones_are_compared_as_instants():
    frame = pl.DataFrame({"t": ROWS["when"][:2] * 2, "x": ["a"] * 4}).with_columns(
        pl.col("t").dt.replace_time_zone("America/New_York")
    )
    data = read_sequences(frame, "x", where='t <= "2020-01-01T16:00+01:00"')  # 10:00 in New York
    assert data.records == 2
    with pytest.raises(DataError, match="has a time zone: give the time an offset"):
        read_sequences(frame, "x", where='t <= "2020-01-01 16:00"')
    with pytest.raises(DataError, match="only one of 't' and 'u' has a time zone"):
        read_sequences(frame.with_columns(u=pl.lit(datetime(2020, 1, 1))), "x", where="t == u")


def test_csv_columns_are_what_all_their_values_are(tmp_path):
    path = tmp_path / "t.csv"
    lines = ["a,1,True,,2020-01-01T00:00Z"] * 300 + ["b,unknown,False,,2020-01-02T00:00Z"] * 2
    path.write_text("\n".join(["x,late,flag,none,zone", *lines]))
    assert read_sequences(path, "x", where="flag").records == 300
    assert read_sequences(path, "x", where="late != '1'").records == 2
    assert read_sequences(path, "x", where="col('none') == none and zone > '2020-01-01T12:00Z'").records == 2
    with pytest.raises(DataError, match="column 'late' holds text, which cannot be compared with 1"):
        read_sequences(path, "x", where="late == 1")
    for never in ("none == 1", "none", "not none", "none in [1]", "none not in [1]", "none != late"):
        with pytest.raises(DataError, match="no row of"):
            read_sequences(path, "x", where=f"{never.replace('none', col('none'))}")


def test_times_of_which_some_have_an_offset_are_text(tmp_path):
    (tmp_path / "t.csv").write_text("x,t\na,2020-01-01T10:00\nb,2020-01-01T10:00Z\na,2020-01-01T10:00\n")
    assert read_sequences(tmp_path / "t.csv", "x", where="t == '2020-01-01T10:00'").records == 2


@pytest.mark.parametrize(
    ("cells", "one", "many"),
    [
        (["2003-05-12 08:00", "2003-05-13"], "t >= '2003-05-13'", "'2003-05-01' <= t < '2003-06-01' or t == none"),
        (["2003-05-12T08:00Z", "2003-05-13T08:00+01:00"], "t > '2003-05-13T00:00Z'", "not t in ['2003-05-12T08:00Z']"),
        (["1", "2.5"], "t >= 2", "1 <= t < 7 or not t != 3 or t in [1, 2, 3]"),
    ],
)
def test_text_is_parsed_once_per_column(cells, one, many, tmp_path):
    """The plan of the engine parses a column as often for a filter that names it often as for one that does once."""
    (tmp_path / "t.csv").write_text("\n".join(["t,x", *(f"{cell},a" for cell in cells * 3)]) + "\n")
    plans = []
    for text in (one, many):
        frame, columns = open_source(tmp_path / "t.csv", ["t", "x"]).filter_columns(["t"])
        plan = frame.filter(parse_where(text, ["x"], "state column").keep(columns)).to_native().explain(optimized=False)
        plans.append([plan.count(part) for part in ("str.slice", "str.contains", "str.replace", "strict_cast")])
        assert read_sequences(tmp_path / "t.csv", "x", where=text).records > 0
    assert plans[0] == plans[1]
    assert sum(plans[0]) < 50


def test_times_without_a_date_in_them_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("t,x\n  ,a\n2020-01-01,b\n2020-01-02,a\n")
    frame = pl.DataFrame({"t": ["", "2020-01-01", "2020-01-02"], "x": list("aba")})
    for table in (frame, frame.to_pandas(), tmp_path / "t.csv"):
        with pytest.raises(DataError, match=r"column 't' has no time in 1 row \(first: row 1( below the header)?\)"):
            read_sequences(table, "x", time="t")
    kept = read_sequences(tmp_path / "t.csv", "x", where="t >= '2020-01-01'")
    assert kept.records == 2
    assert read_sequences(tmp_path / "t.csv", "x", time="t", max_gap="1d", where="t != none").records == 2


def col(name):
    return f'col("{name}")'


def test_columns_in_order_of_use():
    assert parse_where("b and a > 1 and b == false and not (2 < c)", ["x"], "state column").columns == ("b", "a", "c")
