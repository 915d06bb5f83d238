"""What objects show: one HTML writer that escapes all names, short texts, and tables of any library."""

import re
from html import unescape
from html.parser import HTMLParser

import polars as pl
import pytest
from msgspec.structs import replace

import pufferfish as pf
from pufferfish._base.view import Shown
from pufferfish.release.prepare import FITTED_HERE
from pufferfish.release.show.text import noise_line, postprocessing_lines, promise_line, without_ledger
from release_cases import CHAINS, LOOP, NETWORK, TABLE

BAD = "<script>alert(1)</script>"
STATES = ["rest", BAD, 'a"&b']
CHAIN = pf.MarkovChain([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.2, 0.4, 0.4]], states=STATES)
ROWS = pl.DataFrame({"id": ["a", "b"] * 40, "t": [t for t in range(40) for _ in "ab"], "x": (STATES * 27)[:80]})
READING = {"subject": "id", "time": "t", "states": STATES}


class Tables(HTMLParser):
    """Tags in order, each closed in its place, with their attributes."""

    def __init__(self, html):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def kinds_of(kind):
    for each in kind.__subclasses__():
        if each.__module__.startswith("pufferfish"):
            yield each.__name__
        yield from kinds_of(each)


def objects():
    data = pf.read_sequences(ROWS, "x", by=None, **READING)
    bound = pf.LeakagePropagation(CHAIN, length=data.length)
    yield data
    yield from (CHAIN, bound.theta, pf.Model(theta=[CHAIN, CHAIN]))
    yield pf.PeriodicChain([CHAIN.transition_matrix] * 2, states=STATES)
    yield pf.ChainClass((pf.PeriodicChain([CHAIN.transition_matrix] * 2, states=STATES),))
    yield pf.HigherOrderChain([CHAIN.transition_matrix] * 3, states=STATES)
    yield pf.StaysChain(
        [[0, 0.5, 0.5], [0.5, 0, 0.5], [1, 0, 0]], [[(0.5, 0.5), (0.5, 0.95)], [(1, 0.8)], [(1, 0)]], states=STATES
    )
    yield pf.IntervalChain(CHAIN.transition_matrix * 0.9, CHAIN.transition_matrix * 0.9 + 0.1, states=STATES)
    yield pf.ForgettingClass([3, 9], [0.3, 0.8], STATES, origin=BAD)
    yield pf.ChainClass((CHAIN, pf.ForgettingClass(3, 0.3, STATES, origin=BAD)), names=("one", BAD))
    yield from (CHAINS["binary interval"], NETWORK, LOOP, NETWORK.cpts["b"], pf.ModelClass((NETWORK,)))
    yield from (pf.Cliques([0.5, 0.5]), pf.JointDistribution([["n", "y"]], [1.0]))
    yield pf.GivenLaws({"a": {0: 1}, "b": {1: 1}}, records=2, states=["n", "y"], query=pf.Count("y"))
    yield pf.compare(CHAIN, pf.Count(BAD), 1.0, length=80)
    ledger = pf.Ledger(bound, 5.0, base=data)
    for query in (pf.Histogram(), pf.Quantiles([0.5]), pf.Transitions()):
        calibration = bound.calibrate(query, 0.3)
        yield calibration
        yield pf.plan(data, query, calibration, ledger=ledger)
        found = pf.release(data, query, calibration, ledger=ledger)
        yield from (found, found.verify())
    grouped = pf.read_sequences(ROWS, "x", by=["id"], **READING)
    yield (by_group := pf.release(grouped, pf.Histogram(), bound.calibrate(pf.Histogram(), 0.3)))
    yield pf.check_released(CHAIN, [by_group, found])
    another = pf.release(grouped, pf.Histogram(), bound.calibrate(pf.Histogram(), 0.4))
    yield pf.series([by_group, another], labels=[BAD, "2"])
    rows = pf.read_rows(TABLE, NETWORK)
    yield rows
    query = pf.Marginals()
    yield pf.release(rows, query, pf.LeakagePropagation(NETWORK, length=rows.length).calibrate(query, 1.0))
    yield ledger
    yield pf.check_model(CHAIN, ROWS, "x", public=True, subject="id", time="t")
    yield pf.check_model(NETWORK, TABLE, public=True)


WITHOUT_TABLE = {"BinaryChainInterval", "GivenLaws", "Sequences", "Rows"}
"""Objects with few numbers, or with numbers that are private."""


def test_every_object_shows_itself_safely_and_in_few_words():
    kinds = set()
    for thing in objects():
        kinds.add(type(thing).__name__)
        assert isinstance(thing, Shown)
        html = thing._repr_html_()
        assert "<script" not in html
        assert "None" not in re.sub(r"<[^>]*>", "", html), html
        tags = Tables(html).seen
        for i, (tag, attributes) in enumerate(tags):
            if tag == "table":
                assert tags[i + 1][0] == "caption"
            if tag == "th":
                assert attributes["scope"] in ("col", "row")
        assert sum(tag == "table" for tag, _ in tags) or type(thing).__name__ in WITHOUT_TABLE
        assert len(repr(thing)) < 400
    elsewhere = {"EachRelease", "MeasurementRelease"}  # they need files, or another library
    bases = {"Checked", "ClassOfModels", "Continuum", "FiniteClass", "Printed", "Recorded"}
    assert kinds == set(kinds_of(Shown)) - bases - elsewhere


def test_long_tables_say_how_much_is_not_shown():
    names = [f"s{i}" for i in range(40)]
    chain = pf.MarkovChain([[1 / 40] * 40] * 40, states=names)
    html = chain._repr_html_()
    assert "28 more rows and 28 more columns not shown" in html
    assert html.count("<tr>") == 13 + 31, "a row of heads and 12 of the matrix, and one of heads and 30 stays"


def test_records_print_in_few_words_whatever_they_hold():
    names = [f"s{i}" for i in range(60)]
    chain = pf.MarkovChain([[1 / 60] * 60] * 60, states=names)
    data = pf.read_sequences(pl.DataFrame({"x": names * 3}), "x", states=names)
    found = pf.release(data, pf.Histogram(), pf.GroupDP(chain, length=data.length).calibrate(pf.Histogram(), 1.0))
    assert repr(found).startswith("Release(histogram, 60 values, GroupDP, ε = 1, noise scale ")
    assert len(repr(found.theta)) < 1500  # it holds 3,600 probabilities
    assert str(found).count("\n") < 30


def words_of(thing):
    return unescape(re.sub(r"(<[^>]*>)+", "|", thing._repr_html_()))


@pytest.mark.parametrize("by", [None, ["id"]])
def test_a_release_says_in_notebooks_what_its_text_says(by):
    """Which values the errors are of, by what the noise is divided, and that no ledger knows of it."""
    data = pf.read_sequences(ROWS, "x", by=by, **READING)
    bound = pf.LeakagePropagation(CHAIN, length=data.length)
    for query in (pf.Histogram(), pf.Frequency("rest")):
        calibration = bound.calibrate(query, 0.3)
        plain = words_of(pf.release(data, query, calibration))
        assert "± 95%: each is within this of the exact one with 95% probability" in plain
        assert "post-process" not in plain
        found = pf.release(data, query, calibration, postprocess="valid")
        words = words_of(found)
        assert "± 95%: each noisy value, before the post-processing, is within this of the exact one" in words
        assert "each is within" not in words
        for line in (*postprocessing_lines(found), noise_line(found), *without_ledger(found)):
            assert line.partition(": ")[2] in words
        assert "|No ledger: Other releases of the same records" in words
        if by:
            assert ", divided by the group's number of records" in words
            assert "|records|" in words
            assert words.count("|40|") == len(found.values)
            assert f"within {found.writer()(found.accuracy(joint=True), 40)} of the exact ones" in words
    booked = pf.release(data, query, calibration, ledger=pf.Ledger(bound, 2.0, base=data))
    assert "o ledger:" not in words_of(booked)


def test_a_model_of_the_table_itself_promises_nothing_in_notebooks_either():
    data = data_of_all()
    noise = pf.LeakagePropagation(CHAIN, length=data.length).calibrate(pf.Histogram(), 1.0)
    found = replace(pf.release(data, pf.Histogram(), noise), warnings=[FITTED_HERE])
    assert promise_line(found).startswith("nothing is promised")
    assert "|Nothing is promised: the model was fitted to this very table" in words_of(found)


def test_frames_are_those_of_the_library_asked_for():
    data = pf.read_sequences(ROWS, "x", by=["t"], **READING)
    bound = pf.LeakagePropagation(CHAIN, length=data.length)
    calibration = bound.calibrate(pf.Histogram(), 1.0)
    ledger = pf.Ledger(bound, 2.0, base=data)
    found = pf.release(data, pf.Histogram(), calibration, ledger=ledger)
    quantiles = pf.release(data_of_all(), pf.Quantiles([0.25, 0.5]), bound.calibrate(pf.Quantiles([0.25, 0.5]), 1.0))
    compared = pf.compare(CHAIN, pf.Histogram(), 1.0, length=80)
    for thing, rows, first in (
        (found, 120, "t"),
        (quantiles, 2, "quantile"),
        (calibration, 3, "output"),
        (compared, len(compared), "mechanism"),
        (ledger, 1, "number"),
        (pf.Ledger(bound, 2.0), 0, "number"),
    ):
        frame = thing.to_frame()
        assert (frame.height, frame.columns[0]) == (rows, first)
        for library in ("pandas", "pyarrow"):
            pytest.importorskip(library)
            other = thing.to_frame(into=library)
            assert type(other).__module__.split(".")[0] == library
            same = pl.DataFrame(other.to_dict("list") if library == "pandas" else other.to_pydict(), strict=False)
            assert (same.columns, same.height) == (frame.columns, rows)
    assert found.to_frame().schema["t"] == pl.Int64  # as a CSV file of it is read
    assert pl.read_csv(found.to_frame().write_csv().encode()).schema["t"] == pl.Int64
    assert quantiles.to_frame()["quantile"].to_list() == [0.25, 0.5]
    assert quantiles.to_frame("values").columns == ["output", "value", "error_95"]
    for wrong in ({"into": "excel"}, {"of": "quantiles"}):
        with pytest.raises(pf.ParameterError, match=r"expected one of|no quantiles"):
            found.to_frame(**wrong)


def data_of_all():
    return pf.read_sequences(ROWS, "x", **READING)


def test_notebooks_show_objects_and_pictures_without_a_magic_command():
    pytest.importorskip("matplotlib")
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")
    shown = formatters.DisplayFormatter()
    data = data_of_all()
    bound = pf.LeakagePropagation(CHAIN, length=data.length)
    ledger = pf.Ledger(bound, 2.0)
    found = pf.release(data, pf.Quantiles([0.5]), bound.calibrate(pf.Quantiles([0.5]), 1.0))
    pictures = [found.plot(), pf.draw_model(CHAIN), ledger.plot(), pf.draw_network(NETWORK)]
    for picture in pictures:
        made, known = shown.format(picture)
        assert made["image/png"].startswith(b"\x89PNG")
        assert known["image/png"]["alt"].startswith("Picture")
    for thing in (found, CHAIN, ledger, bound.calibrate(pf.Histogram(), 1.0)):
        made, _ = shown.format(thing)
        assert made["text/html"].startswith("<div")
        assert len(made["text/plain"]) < 400
