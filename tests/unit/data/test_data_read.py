"""What read_sequences makes of small tables, by hand."""

import gzip
import random
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise

import msgspec
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pufferfish import Model, fit_chain
from pufferfish.data import Base, Sequences, read_sequences
from pufferfish.data._chains import gap_steps
from pufferfish.errors import DataError, ParameterError
from pufferfish.theta.lengths import ChainLength


def minutes(times, states, **columns):
    return pl.DataFrame({"t": times, "x": states} | columns)


def shape(data):
    return data.counts.tolist(), data.transitions.tolist(), data.spans


# -- gaps, steps, missing ------------------------------------------------------------------------------------


def test_segments_of_a_subject_stay_one_chain():
    frame = minutes([0, 1, 2, 9, 10], list("aabba"))
    data = read_sequences(frame, "x", time="t", max_gap=1)
    assert data.length == (ChainLength(steps=11, records=5),)
    assert data.transitions.tolist() == [[1, 1], [1, 0]]  # the gap from b to b is no transition
    paper = read_sequences(frame, "x", time="t", max_gap=1, gaps="independent")
    assert paper.length == (ChainLength(3, 3), ChainLength(2, 2))
    assert paper.counts.tolist() == [[2, 1], [1, 1]]
    assert (paper.subjects, data.subjects) == (1, 1)


def test_a_gap_has_at_least_one_unobserved_record():
    frame = minutes([0, 10, 20, 31], list("aaaa"))
    assert read_sequences(frame, "x", time="t", max_gap=10).spans == (5,)
    assert read_sequences(frame, "x", time="t", max_gap=10, step=1).spans == (14,)


def test_steps_of_a_gap_round_up():
    for gap in range(1, 60):
        for step in range(1, 20):
            assert gap_steps(gap, step) == max(2, -(-gap // step))
    assert gap_steps(0.75, 0.1) == 8
    assert gap_steps(0.5, 0.1) == 5  # exactly the binary numbers given: 0.1 is a little above a tenth


def test_the_usual_step_is_the_most_frequent_and_the_shortest_of_ties():
    frame = minutes([0, 2, 4, 5, 6, 16], list("aaaaaa"))
    assert read_sequences(frame, "x", time="t", max_gap=3).base.step == "1"
    frame = minutes([0, 2, 4, 6, 7, 17], list("aaaaaa"))
    data = read_sequences(frame, "x", time="t", max_gap=3)
    assert (data.base.step, data.spans) == ("2", (5 + 5,))


def test_a_missing_state_takes_a_step_and_is_not_observed():
    frame = minutes([0, 1, 2, 3, 4], ["a", None, "a", "b", None])
    data = read_sequences(frame, "x", time="t", max_gap=1)
    assert shape(data) == ([[2, 1]], [[0, 1], [0, 0]], (5,))  # missing records at the end are steps
    split = read_sequences(frame, "x", time="t", max_gap=1, missing="split")
    assert shape(split) == ([[2, 1]], [[0, 1], [0, 0]], (4,))
    own = read_sequences(frame, "x", time="t", max_gap=1, missing="split", gaps="independent")
    assert shape(own) == ([[1, 0], [1, 1]], [[0, 1], [0, 0]], (1, 2))


def test_a_split_is_a_gap_however_long_max_gap_is():
    frame = minutes([0, 1, 2, 3], ["a", None, "a", "b"])
    data = read_sequences(frame, "x", time="t", max_gap=100, missing="split", gaps="independent")
    assert data.lengths == (1, 2)


def test_by_position_a_hole_is_a_gap():
    frame = minutes([0, 1, 2, 3], list("abab"), keep=[True, False, True, True])
    by_position = read_sequences(frame, "x", where="keep")
    assert shape(by_position) == ([[2, 1]], [[0, 1], [0, 0]], (4,))
    by_time = read_sequences(frame, "x", time="t", max_gap=2, where="keep")
    assert shape(by_time) == ([[2, 1]], [[1, 1], [0, 0]], (3,))  # filter first: 0 and 2 are adjacent
    assert read_sequences(frame, "x", time="t", where="keep").spans == by_position.spans


def test_positions_are_counted_within_a_subject():
    frame = minutes([0] * 6, list("aabbab"), who=[1, 2, 1, 2, 1, 2], keep=[True, True, True, False, True, True])
    data = read_sequences(frame, "x", subject="who", where="keep")
    assert shape(data) == ([[2, 1], [1, 1]], [[0, 1], [1, 0]], (3, 3))


def test_chains_without_a_record_are_dropped():
    frame = minutes([0] * 5, ["a", None, None, "b", "a"], who=["u", "v", "v", "u", "u"])
    data = read_sequences(frame, "x", subject="who")
    assert (data.lengths, data.subjects) == ((3,), 1)


def test_chains_are_in_the_order_of_labels_as_text():
    frame = minutes([0] * 6, list("aabbbb"), who=[10, 10, 9, 9, 9, 9])
    assert read_sequences(frame, "x", subject="who").lengths == (2, 4)
    text = frame.with_columns(pl.col("who").cast(pl.String))
    assert read_sequences(text, "x", subject="who").lengths == (2, 4)


# -- times ---------------------------------------------------------------------------------------------------

CLOCK = datetime(1999, 12, 31, 23, 58)

HOUR = 60
"""So many minutes longer may a chain with a gap be, where times have no zone: clocks may have been set back in it."""


@pytest.mark.parametrize(
    "pattern",
    ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S,%fZ", "%Y-%m-%dT%H:%M:%SZ",
     "%Y-%m-%dT%H:%M:%S+02:00", "%Y-%m-%d %H:%M:%S -0530", "%Y-%m-%d %H:%M:%S.%f000"],
)  # fmt: skip
def test_iso_text(pattern, tmp_path):
    times = [CLOCK + timedelta(minutes=m) for m in (0, 1, 2, 9, 10)]
    frame = minutes([time.strftime(pattern) for time in times], list("aabba"))
    steps = 11 if pattern.endswith(("Z", "00", "30")) and "f0" not in pattern else 11 + HOUR
    for table in (frame, frame.to_pandas()):
        data = read_sequences(table, "x", time="t", max_gap="1min")
        assert (data.spans, data.base.step) == ((steps,), "1min")
    frame.write_csv(tmp_path / "t.csv")
    assert read_sequences(tmp_path / "t.csv", "x", time="t", max_gap="1min").spans == (steps,)


def test_text_becomes_the_instants_that_python_finds():
    rng = random.Random(4)
    instants = sorted(rng.randrange(-62_135_596_800, 253_402_300_799) for _ in range(400))
    texts = [str(datetime(1970, 1, 1) + timedelta(seconds=second)) for second in instants]
    smallest = min(b - a for a, b in pairwise(instants))
    frame = minutes(texts, ["a", "b"] * 200)
    with pytest.raises(DataError, match="within max_gap"):
        read_sequences(frame, "x", time="t", max_gap=timedelta(seconds=smallest - 1))
    data = read_sequences(frame, "x", time="t", max_gap=timedelta(seconds=smallest), step=timedelta(seconds=smallest))
    steps = [max(2, -(-(b - a) // smallest)) for a, b in pairwise(instants)]
    linked = sum(b - a <= smallest for a, b in pairwise(instants))
    assert smallest > 3600, "clocks may be set forward between two rows that are linked, and back in every gap"
    assert data.spans == (1 + sum(steps) + sum(n - 1 for n in steps) - 2 * linked,)


def test_offsets_are_taken_off():
    texts = ["2021-10-31T02:30:00+02:00", "2021-10-31T02:00:00+01:00", "2021-10-31T02:30+01:00"]  # summer time ends
    assert read_sequences(minutes(texts, list("aab")), "x", time="t", max_gap="30min").spans == (3,)


def test_fractions_of_a_second():
    texts = ["2020-01-01 00:00:00", "2020-01-01 00:00:00.5", "2020-01-01 00:00:00.750", "2020-01-01 00:00:01.000001"]
    data = read_sequences(minutes(texts, list("aaab")), "x", time="t", max_gap="250ms", gaps="independent")
    assert data.lengths == (1, 2, 1)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kathmandu"])
def test_units_and_zones_of_timestamps(unit, zone):
    times = [CLOCK + timedelta(minutes=m) for m in (0, 1, 2, 9, 10)]
    column = pl.Series(times).cast(pl.Datetime(unit)).dt.replace_time_zone(zone)
    frame = minutes(column, list("aabba"))
    for table in (frame, frame.to_pandas(), frame.to_arrow()):
        assert read_sequences(table, "x", time="t", max_gap=timedelta(minutes=1)).spans == (11 if zone else 11 + HOUR,)
    late = frame.with_columns(pl.col("t").shift(-1).fill_null(pl.col("t")))
    with pytest.raises(DataError, match=r"repeats 2000-01-01 00:08:00\+00:00" if zone == "UTC" else "repeats"):
        read_sequences(late, "x", time="t")


@pytest.mark.parametrize(
    "zone",
    ["America/New_York", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "Etc/GMT+5", "+05:30",
     timezone(timedelta(hours=1), "A B")],
)  # fmt: skip
def test_every_name_of_a_time_zone(zone):
    utc = pd.Series(pd.date_range("2021-10-31 00:00", periods=4, freq="30min", tz="UTC"))
    held = pd.DataFrame({"t": utc.dt.tz_convert(zone), "x": list("abba")})
    tables = [held, held.astype({"t": "category"}), held.astype(object), held.assign(t=held.t.dt.as_unit("s"))]
    if isinstance(zone, str):
        arrow = pa.table({"t": pa.array(list(utc), pa.timestamp("us", tz=zone)), "x": list("abba")})
        tables += [arrow, arrow.to_pandas(types_mapper=pd.ArrowDtype)]
    for table in tables:
        data = read_sequences(table, "x", time="t", max_gap="30min", where="t >= '2021-10-31T00:30Z'")
        assert (data.lengths, data.spans, data.base.step) == ((3,), (3,), "30min")


def test_offsets_of_python_times_may_change():
    """Summer time ends, told by offsets: two clocks in one column of objects."""
    summer, winter = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))
    times = [datetime(2021, 10, 31, 2, 30, tzinfo=summer), datetime(2021, 10, 31, 2, 0, tzinfo=winter)]
    held = pd.DataFrame({"t": pd.Series(times, dtype=object), "x": list("ab")})
    assert read_sequences(held, "x", time="t", max_gap="30min").spans == (2,)
    held = pd.DataFrame({"t": pd.Series([times[0], datetime(2021, 10, 31, 3)], dtype=object), "x": list("ab")})
    with pytest.raises(DataError, match="times with a zone and times without one"):
        read_sequences(held, "x", time="t")


def test_python_times_in_pandas():
    times = [date(2020, 2, 28), date(2020, 2, 29), date(2020, 3, 1), date(2020, 3, 5)]
    held = pd.DataFrame({"t": times, "x": list("abab")})
    assert read_sequences(held, "x", time="t", max_gap="1d").spans == (7,)
    stamps = [datetime(2020, 2, day, tzinfo=UTC) for day in (1, 2, 3, 9)]
    held = pd.DataFrame({"t": pd.Series(stamps, dtype=object), "x": list("abab")})
    assert read_sequences(held, "x", time="t", max_gap="1d").spans == (9,)


def test_dates_and_fractions_of_numbers():
    dates = [date(2020, 2, 28), date(2020, 2, 29), date(2020, 3, 2)]
    assert read_sequences(minutes(dates, list("aba")), "x", time="t", max_gap="1d").spans == (4,)
    assert read_sequences(minutes([0.0, 0.5, 1.0, 3.25], list("abab")), "x", time="t", max_gap=0.5).spans == (8,)
    texts = ["0", "0.5", "1e0", "3.25"]
    assert read_sequences(minutes(texts, list("abab")), "x", time="t", max_gap="0.5").spans == (8,)
    numbers = pl.Series([0, 1, 2, 200], dtype=pl.UInt8)
    assert read_sequences(minutes(numbers, list("abab")), "x", time="t", max_gap=1).spans == (201,)
    nanoseconds = [1_700_000_000_000_000_000 + i for i in (0, 1, 2, 5)]
    frame = minutes(nanoseconds, list("abab"))
    for table in (frame, frame.to_pandas()):
        assert read_sequences(table, "x", time="t", max_gap=1).spans == (6,)


def test_states_and_subjects_that_are_large_numbers():
    names = [1_700_000_000_000_000_000 + i for i in (0, 1, 0, 1)]
    frame = pl.DataFrame({"x": names, "who": [names[0], names[0], names[1], names[1]]})
    for table in (frame, frame.to_pandas()):
        data = read_sequences(table, "x", subject="who")
        assert data.states == tuple(map(str, names[:2]))
        assert shape(data) == ([[1, 1], [1, 1]], [[0, 2], [0, 0]], (2, 2))
        assert read_sequences(table, "x").transitions.tolist() == [[0, 2], [1, 0]]


# -- states --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "states"),
    [
        (pl.Series([10, 2, 10], dtype=pl.Int8), ("2", "10")),
        (pl.Series([10.0, 2.0, 10.0]), ("2", "10")),
        (pl.Series([Decimal(10), Decimal(2), Decimal(10)]), ("2", "10")),
        (pl.Series([0.5, -2.0, 0.5]), ("-2", "0.5")),
        (pl.Series([True, False, True]), ("false", "true")),
        (pl.Series(["10", "2", "10"]), ("2", "10")),
        (pl.Series(["walk", "run", "walk"]), ("run", "walk")),
        (pl.Series(["walk", "run", "walk"], dtype=pl.Enum(["walk", "run", "sit"])), ("run", "walk")),
    ],
)
def test_names_of_states(column, states, tmp_path):
    frame = pl.DataFrame({"x": column})
    assert read_sequences(frame, "x").states == states
    assert read_sequences(frame.to_pandas(), "x").states == states
    frame.write_csv(tmp_path / "t.csv")
    data = read_sequences(tmp_path / "t.csv", "x")
    assert data.states == states
    assert sorted(data.counts[0].tolist()) == [1, 2]


def test_pandas_floats_after_a_missing_value(tmp_path):
    held = pd.DataFrame({"x": [1, 2, None, 1]})
    held.to_csv(tmp_path / "t.csv", index=False)
    for table in (held, held.astype(object), held.astype("Int64"), tmp_path / "t.csv"):
        data = read_sequences(table, "x", states=[1, 2, 3])
        assert (data.states, data.counts.tolist(), data.spans) == (("1", "2", "3"), [[2, 1, 0]], (4,))
    mixed = pd.DataFrame({"x": [1, "walk", None, 1.0]})
    assert read_sequences(mixed, "x").states == ("1", "walk")


def test_csv_states_that_only_look_like_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("x\n01\n1\n01\n")
    assert read_sequences(tmp_path / "t.csv", "x").states == ("01", "1")
    (tmp_path / "t.csv").write_text("x\n1.0\n2.0\n1.0\n")
    assert read_sequences(tmp_path / "t.csv", "x").states == ("1", "2")
    assert read_sequences(tmp_path / "t.csv", "x", states=["1.0", "2.0"]).states == ("1.0", "2.0")
    (tmp_path / "t.csv").write_text("x\nTrue\nFalse\nTrue\n")
    assert read_sequences(tmp_path / "t.csv", "x", states=[True, False]).counts.tolist() == [[2, 1]]


def test_text_of_a_typed_table_is_left_as_it_is():
    frame = pl.DataFrame({"x": ["1.0", "2.0", "1.0"], "y": ["True", "False", "True"]})
    for table in (frame, frame.to_pandas()):
        assert read_sequences(table, "x").states == ("1.0", "2.0")
        assert read_sequences(table, "y").states == ("False", "True")


def test_a_word_in_row_5000_of_a_csv(tmp_path):
    (tmp_path / "t.csv").write_text("x,n\n" + "1,1\n2,2\n" * 2500 + "walking,2.5\n")
    data = read_sequences(tmp_path / "t.csv", "x", where="n < 3")
    assert (data.states, data.counts.tolist()) == (("1", "2", "walking"), [[2500, 2500, 1]])
    with pytest.raises(DataError, match=r"column 'x' holds 'walking' \(row 5001 below the header\), expected a number"):
        read_sequences(tmp_path / "t.csv", "x", bins="0,2,4")
    assert read_sequences(tmp_path / "t.csv", "n", bins="0,2,4").counts.tolist() == [[2500, 2501]]


def test_empty_fields_and_blank_lines_of_a_csv(tmp_path):
    (tmp_path / "t.csv").write_text('who,x\n1,a\n\n1,""\n1,\n1,a\n\n')
    data = read_sequences(tmp_path / "t.csv", "x", subject="who")
    assert (data.records, data.spans) == (2, (4,))


def test_lines_that_are_blank_are_no_records_however_they_are_written(tmp_path):
    blank = {
        "t.csv": ["who,x,y\n1,a,\n\n1,b,7\n", "who,x,y\r\n1,a,\r\n\r\n1,b,7\r\n", "who,x,y\n1,a,\n,,\n1,b,7"],
        "t.tsv": ["who\tx\ty\n1\ta\t\n\t\t\n1\tb\t7\n", "who\tx\ty\n\n1\ta\t\n1\tb\t7\n"],
    }
    for name, texts in blank.items():
        for text in texts:
            (tmp_path / name).write_bytes(text.encode())
            (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
            for path in (tmp_path / name, tmp_path / f"{name}.gz"):
                data = read_sequences(path, "x", subject="who")
                assert (data.records, data.spans) == (2, (2,)), (path, text)
    (tmp_path / "t.csv").write_text("x,y\n\na,1\n\n\na,2\n\nb,3\n\n")  # nor are they steps without a record
    data = read_sequences(tmp_path / "t.csv", "x")
    assert (data.records, data.spans, data.transitions.tolist()) == (3, (3,), [[1, 1], [0, 0]])
    (tmp_path / "t.csv").write_text('who,x\n1,a\n"",""\n1,b\n')  # quoted cells are cells
    with pytest.raises(DataError, match="column 'who' has no subject in 1 row"):
        read_sequences(tmp_path / "t.csv", "x", subject="who")


def test_states_of_the_model_in_its_order():
    data = read_sequences(pl.DataFrame({"x": [1, 2, 1]}), "x", states=(3, 2.0, "1"))
    assert (data.states, data.counts.tolist()) == (("3", "2", "1"), [[0, 1, 2]])
    assert data.transitions.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_bins_are_states_visited_or_not():
    data = read_sequences(pl.DataFrame({"w": [-5.0, 0.0, 199.9, 200.0, 1e4, 1e5]}), "w", bins="0,200,...,10200")
    assert len(data.states) == 51
    assert data.counts[0, [0, 1, 50]].tolist() == [3, 1, 2]
    assert data.counts.sum() == 6
    assert data.base.bins is not None
    assert len(data.base.bins) == 52
    assert read_sequences(pl.DataFrame({"w": ["1", " 2.5 ", "nan", "-inf"]}), "w", bins="0,2,4").counts.tolist() == [
        [2, 1]
    ]


# -- sources -------------------------------------------------------------------------------------------------


def test_narwhals_frames_and_hidden_columns(tmp_path):
    frame = pl.DataFrame({"x": list("aab"), "__pf_row": [1, 1, 1], "junk": [None] * 3})
    for table in (nw.from_native(frame), nw.from_native(frame.lazy()), frame.to_pandas(), frame.to_arrow()):
        assert read_sequences(table, "x").counts.tolist() == [[2, 1]]


def test_names_of_sources_hold_no_folder(tmp_path):
    frame = pl.DataFrame({"x": list("aab")})
    frame.write_parquet(tmp_path / "day[1]*.parquet")
    names = [
        read_sequences(table, "x").base.source for table in (tmp_path / "day[1]*.parquet", frame, frame.to_pandas())
    ]
    assert names == ["day[1]*.parquet", "polars frame", "pandas frame"]
    assert read_sequences(frame.to_arrow(), "x").base.source == "Arrow table"


def test_the_table_is_left_as_it_was():
    held = pd.DataFrame({"x": ["a", "b", "a"], "n": [1, 2, 3]}, index=[3, 3, 3]).astype({"x": "category"})
    before = held.copy(deep=True)
    read_sequences(held, "x", time="n", where="n > 0")
    pd.testing.assert_frame_equal(held, before)


# -- what comes out ------------------------------------------------------------------------------------------


def test_arrays_are_read_only_copies():
    given = np.array([[2, 1]])
    data = Sequences(
        states=("a", "b"),
        counts=given,
        transitions=np.array([[1, 1], [0, 0]]),
        length=(ChainLength(3, 3),),
        subjects=1,
        base=Base(source="t.csv", state="x"),
    )
    given[0, 0] = 9
    assert data.counts.tolist() == [[2, 1]]
    assert data.counts.dtype == data.transitions.dtype == np.int64
    for array in (data.counts, data.transitions):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"counts": [[2, 1, 0]]}, "counts has shape"),
        ({"transitions": [[1]]}, "transitions has shape"),
        ({"counts": [[4, -1]]}, "negative"),
        ({"states": ("a", "a")}, "repeats a name"),
        ({"length": (ChainLength(4, 4),)}, "not the row sum"),
    ],
)
def test_sequences_are_checked(change, words):
    good = {
        "states": ("a", "b"),
        "counts": [[2, 1]],
        "transitions": [[1, 1], [0, 0]],
        "length": (ChainLength(3, 3),),
        "subjects": 1,
        "base": Base(source="t.csv", state="x"),
    }
    Sequences(**good)
    with pytest.raises(ParameterError, match=words):
        Sequences(**(good | change))


def test_what_is_shown_is_public():
    data = read_sequences(pl.DataFrame({"x": ["rest"] * 17 + ["walk"] * 23}), "x")
    assert repr(data) == "Sequences(2 states, 1 chain, 1 subject, 40 records)"
    said = str(data)
    assert said.splitlines()[:4] == ["polars frame, column x", "states: 2", "records: 40", "chains: 1"]
    assert "17" not in said + data._repr_html_()  # how many are of which state is private
    gappy = read_sequences(minutes([0, 1, 5], ["a", None, "b"]), "x", time="t", max_gap=1)
    assert "\nsteps without a record between them (gaps, missing states): 4\na step: 1\n" in str(gappy)


def test_base_goes_through_json():
    frame = minutes([0, 1, 2], [1.0, 2.0, 3.0], awake=[True] * 3)
    data = read_sequences(frame, "x", time="t", max_gap=1, bins=[0, 2, 4], where="awake", missing="split")
    read_as = {"time": "t", "max_gap": "1", "step": "1", "bins": (0.0, 2.0, 4.0), "where": "awake", "missing": "split"}
    assert data.base == Base(source="polars frame", state="x", **read_as)
    assert msgspec.json.decode(msgspec.json.encode(data.base), type=Base) == data.base


def test_many_short_chains_are_told():
    """By lengths alone: which states there are changes nothing."""
    frame = minutes(list(range(1296)), ["a", "b"] * 648, who=[i // 3 for i in range(1296)], day=[0] * 1296)
    for table in (frame, frame.with_columns(x=pl.lit("b"))):
        (warning,) = read_sequences(table, "x", subject="who").warnings
        assert "432 subjects (column 'who'), half of them with at most 3 records" in warning
        assert read_sequences(table, "x", subject="day").warnings == ()
        assert read_sequences(table, "x").warnings == ()
    for subjects, records, told in ((19, 2, False), (20, 2, True), (20, 5, True), (200, 6, False)):
        n = subjects * records
        frame = minutes(list(range(n)), ["a"] * n, who=[i // records for i in range(n)])
        assert bool(read_sequences(frame, "x", subject="who").warnings) is told, (subjects, records)


def test_many_stretches_between_gaps_are_told():
    frame = minutes([i + i // 2 * 10 for i in range(80)], ["a", "b"] * 40)
    (warning,) = read_sequences(frame, "x", time="t", max_gap=1, gaps="independent").warnings
    assert "cut at gaps into 40 chains, half of them with at most 2 records" in warning
    assert "Check max_gap" in warning
    assert read_sequences(frame, "x", time="t", max_gap=1).warnings == ()


def test_the_usual_step_is_known_from_times_alone():
    frame = minutes([0, 5, 10, 60, 65], list("aabba"), keep=[True, True, False, True, True])
    for options, step, usual in (
        ({}, None, None),
        ({"time": "t"}, None, "5"),
        ({"time": "t", "where": "keep"}, None, "5"),
        ({"time": "t", "max_gap": 5}, "5", "5"),
        ({"time": "t", "max_gap": 5, "gaps": "independent"}, None, "5"),
        ({"time": "t", "max_gap": 5, "gaps": "independent", "step": 2}, "2", None),
        ({"step": "1min"}, "1min", None),
        ({"time": "t", "step": "1min"}, "1min", None),
    ):
        for table in (frame, frame.to_pandas()):
            data = read_sequences(table, "x", **options)
            assert (data.base.step, data.usual_step) == (step, usual), options
    stated = read_sequences(frame, "x", step="1min")
    assert stated.spans == (5,)
    assert "follow each other in one step of 1min, however far apart in time." in " ".join(stated.assumptions)
    stamps = frame.with_columns(t=pl.from_epoch(pl.col("t") * 60))
    assert read_sequences(stamps, "x", time="t").usual_step == "5min"


def test_a_step_that_most_records_are_nearer_than_is_refused():
    near = [*range(0, 30), *range(30, 90, 3)]  # 30 records a minute apart, and 20 every third one
    for gaps in ("unobserved", "independent"):
        options = {"time": "t", "max_gap": 3, "gaps": gaps}
        for times, x in ((near, "ab" * 25), (near[:49], "ab" * 24 + "a")):
            stamps = minutes(times, list(x)).with_columns(t=pl.from_epoch(pl.col("t") * 60))
            for table, more, apart in (
                (minutes(times, list(x)), {"step": 3}, "step is 3, but most records are 1 after"),
                (stamps, {"step": "3min", "max_gap": "3min"}, "step is 3min, but most records are 1min after"),
            ):
                with pytest.raises(DataError, match=apart):
                    read_sequences(table, "x", **options | more)
        few = minutes([*range(0, 10), *range(10, 90, 3)], ["a", "b"] * 18 + ["a"])
        assert read_sequences(few, "x", **options, step=3).base.step == "3"
        assert read_sequences(minutes(near, ["a", "b"] * 25), "x", **options, step=1.9).base.step == "1.9"


def test_assumptions_say_what_was_chosen():
    frame = minutes([0, 1, 2, 0, 1], [1.0, 2.0, 3.0, 1.0, 1.0], who=[1, 1, 1, 2, 2], awake=[True] * 5)
    default = " ".join(read_sequences(frame, "x", subject="who", time="t", max_gap=1).assumptions)
    assert "Different subjects (column 'who') are independent" in default
    assert (
        "A gap (records more than 1 apart in column 't') is made of unobserved records of the same chain; "
        "one step is 1 in column 't'."
    ) in default
    assert "independent of the states" in default
    assert "A missing state is an unobserved record." in default
    for word in ("under-protects", "Only rows", "bin"):
        assert word not in default
    chosen = {"gaps": "independent", "missing": "split", "where": "awake", "bins": "1,2,3"}
    other = " ".join(read_sequences(frame, "x", subject="who", time="t", max_gap=1, **chosen).assumptions)
    for words in (
        "This under-protects where",
        "Only rows where awake are used",
        "below 1 count in the first bin",
        "public",
    ):
        assert words in other
    assert "unobserved" not in other
    single = read_sequences(frame, "x").assumptions
    assert single[0] == "The table is one chain: any record may depend on any other."


def test_values_outside_of_the_edges_are_in_the_first_and_the_last_bin():
    frame = pl.DataFrame({"watts": [-7, -5, 0, 1, 2, 1000, 5000]})
    assert read_sequences(frame, "watts", bins="0,2,1000").counts.tolist() == [[4, 3]]


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        ("Aktivität ", "column 'Aktivität ', 4 records"),
        ("a, b", "column 'a, b', 4 records"),
        ("my s", "column my s, 4"),
    ],
)
def test_a_model_says_which_column_it_was_fitted_to(column, shown):
    """A name with a blank at its end, or a comma, is in quotes: it could not be told from the words around it."""
    data = read_sequences(pl.DataFrame({column: list("abba")}), column)
    assert f"polars frame, {shown}" in Model.fitted(fit_chain(data), data).theta.origin
