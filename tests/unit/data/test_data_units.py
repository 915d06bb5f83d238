"""Bins and lengths of time, as they are written."""

from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from pufferfish import MarkovChain, Model, read_sequences
from pufferfish._base.durations import Duration, format_micros, parse_duration
from pufferfish.data.bins import bin_labels, parse_bins
from pufferfish.errors import DataError, ParameterError

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("given", "micros", "text"),
    [
        ("10min", 600 * SECOND, "10min"),
        ("600s", 600 * SECOND, "10min"),
        ("1h", 3600 * SECOND, "1h"),
        ("2d", 172_800 * SECOND, "2d"),
        ("1h30min", 5400 * SECOND, "1h30min"),
        (" 1 hour 30 minutes ", 5400 * SECOND, "1h30min"),
        ("1.5h", 5400 * SECOND, "1h30min"),
        ("90 sec", 90 * SECOND, "1min30s"),
        ("250ms", 250_000, "250ms"),
        ("7us", 7, "7us"),
        ("1D", 86_400 * SECOND, "1d"),
        (timedelta(minutes=10), 600 * SECOND, "10min"),
    ],
)
def test_lengths_with_a_unit(given, micros, text):
    duration = parse_duration(given, "max_gap")
    assert duration == Duration(micros, has_unit=True)
    assert str(duration) == text
    assert parse_duration(text, "max_gap") == duration


@pytest.mark.parametrize(
    ("given", "value"), [(5, 5), (0.5, 0.5), ("5", 5), ("0.5", 0.5), (np.int8(5), 5), (np.float64(2), 2)]
)
def test_lengths_without_a_unit(given, value):
    assert parse_duration(given, "step") == Duration(value, has_unit=False)


@pytest.mark.parametrize(
    "given", ["", "ten", "10m", "10 months", "min", "10min!", "1h,30min", "-5s", True, None, [1], b"1s"]
)
def test_unreadable_lengths(given):
    with pytest.raises(ParameterError, match=r"^max_gap is .*, expected a length of time such as '10min'"):
        parse_duration(given, "max_gap")


@pytest.mark.parametrize(
    "given", [0, -1, 0.0, float("nan"), float("inf"), "0min", "inf", "-5", timedelta(0), timedelta(-1), "9999999999d"]
)
def test_lengths_out_of_range(given):
    with pytest.raises(ParameterError, match=r"^step is .*, expected more than 0"):
        parse_duration(given, "step")


def test_parts_of_a_microsecond():
    with pytest.raises(ParameterError, match="whole microseconds"):
        parse_duration("0.5us", "step")


def test_text_is_read_back():
    for micros in (1, 999, 1_000, 61 * SECOND, 86_399 * SECOND + 1, 10**15 + 7):
        assert parse_duration(format_micros(micros), "step").value == micros


@pytest.mark.parametrize(
    ("given", "edges"),
    [
        ("0,200,400", (0, 200, 400)),
        ([0, 200, 400], (0, 200, 400)),
        (np.array([0.5, 1.5, 2.5]), (0.5, 1.5, 2.5)),
        ("0, 200, ..., 1000", (0, 200, 400, 600, 800, 1000)),
        ("0,200,…,1000", (0, 200, 400, 600, 800, 1000)),
        ("-1,0,10,...,30", (-1, 0, 10, 20, 30)),
        ("0,1,...,2", (0, 1, 2)),
        ("1e3,2e3,3e3", (1000, 2000, 3000)),
    ],
)
def test_edges(given, edges):
    assert parse_bins(given) == edges
    assert all(type(edge) is float for edge in parse_bins(given))


def test_continued_edges_end_exactly():
    edges = parse_bins("0,0.1,...,1")
    assert len(edges) == 11
    assert edges[-1] == 1.0
    assert len(parse_bins("0,200,...,10200")) == 52


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("0,200,...,1100", "steps of 200 from 200 do not end at 1100"),
        ("0,0.1,...,1.00000001", "do not end"),
        ("0,...,10", "stands between two or more edges and the last one"),
        ("0,1,...", "stands between"),
        ("0,1,...,5,...,9", "stands between"),
        ("0,1,...,5,6", "stands between"),
        ("1,0,...,5", "not increasing"),
        ("0,5,...,5", "not increasing"),
        ("0,1,...,inf", "not increasing"),
        ("0,1e-6,...,1", "more than 2000 states"),
        ("0,1", "2 edges, expected at least 3"),
        ([], "0 edges"),
        ("0,1,1", r"bins\[2\] is 1, expected above the edge before it \(1\)"),
        ([0, 2, 1], "expected above"),
        ([0, 1, float("nan")], "expected a finite number"),
        ([0, 1, float("inf")], "expected a finite number"),
        ("0,a,2", r"bins\[1\] is 'a'"),
        ("0,,2", r"bins\[1\] is ''"),
        ([0, True, 2], "expected a number"),
        ([0, None, 2], "expected a number"),
        (5, "bins is 5"),
        (np.array(5), r"bins is array\(5\)"),
        ({0: 1, 1: 2, 2: 3}, "bins is {0: 1"),
        (range(3000), "makes 2999 states, expected at most 2000"),
    ],
)
def test_wrong_edges(given, words):
    with pytest.raises(ParameterError, match=words):
        parse_bins(given)


def test_labels():
    assert bin_labels((0.0, 200.0, 400.0)) == ("<200", ">=200")
    assert bin_labels((-2.0, -1.0, 0.25, 3.0)) == ("<-1", "-1-0.25", ">=0.25")
    labels = bin_labels(parse_bins("0,200,...,10200"))
    assert (len(labels), labels[0], labels[1], labels[-1]) == (51, "<200", "200-400", ">=10000")
    assert len(set(labels)) == 51


def test_numbers_of_very_many_digits_are_one_clear_error():
    many = "1" * 5000
    for given in (many, many + "min", "0." + many + "s", 10**5000):
        with pytest.raises(ParameterError, match=r"max_gap (has 5,|has more than 17 digits)"):
            parse_duration(given, "max_gap")
    with pytest.raises(ParameterError, match="step has 5,000 characters"):
        Model(theta=MarkovChain([[0.9, 0.1], [0.4, 0.6]]), step=many)
    with pytest.raises(ParameterError, match=r"bins\[2\] is too large for a floating-point number"):
        parse_bins([0, 1, 10**5000])
    for where in (f"x < {10**400}", f"-{10**400} < x", f"x in [0x{'f' * 1900}]"):
        with pytest.raises(DataError, match="where has a whole number of more than 308 digits"):
            read_sequences(pl.DataFrame({"x": [1, 2], "s": ["a", "b"]}), "s", where=where)
