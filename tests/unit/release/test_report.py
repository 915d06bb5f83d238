"""Reports: a page for every kind of release, made of its record alone; nothing in a record becomes markup."""

import dataclasses
import json
import re
import shlex
import time
from html import unescape
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest

import commands
import opendp_parts as dp
import pufferfish as pf
import release_cases
from pufferfish._base.progress import report_progress
from pufferfish._base.view import html_of, view_of
from pufferfish._base.words import WEAK, number
from pufferfish.compare.noise import promise_part
from pufferfish.compare.rows import points_around
from pufferfish.errors import NotApplicableError, ParameterError, PufferfishError, RecordError
from pufferfish.ledger import Ledger
from pufferfish.release.show import page as report_page
from pufferfish.release.show.values import Numbers, values_part

dp.enable_features("contrib", "honest-but-curious")

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "a'&<b>$x^2$\u202e"]
ALLOWED = {"script": 2, "style": 1}
"""Elements of the page's own that a name must not add to: its data and its script."""


class Page(HTMLParser):
    """The elements of a page, its text, and what it would load."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.seen: dict[str, int] = {}
        self.links: list[str] = []
        self.words: list[str] = []
        self.content = path.read_text()
        self.feed(self.content)
        self.text = " ".join(self.words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] = self.seen.get(tag, 0) + 1
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href"):
                self.links += [value or ""]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def checked(path: Path) -> Page:
    page = Page(path)
    assert page.seen["script"] == ALLOWED["script"]
    assert not set(page.seen) & {"img", "iframe", "object", "embed", "link", "base", "form", "i", "b", "u"}
    assert all(link.startswith(("#", "data:text/csv;charset=utf-8,")) for link in page.links), page.links
    assert "Content-Security-Policy" in page.content
    for words in ("the record ", "records alone", "SHA-256 of the record", "in the record.", "no record holds"):
        assert words not in page.text.replace("the record itself", ""), "a record is one of the data, not the file"
    assert "SHA-256" not in page.text or "SHA-256 of the release file" in page.text
    assert "<tr></tr>" not in page.content
    for part in ("What is hidden", ", whatever other records tell", "Not promised", "how to verify it"):
        assert part in page.text, part
    return page


def data_of(page: Page) -> list[dict[str, Any]]:
    return json.loads(re.search(r'id="data">(.*?)</script>', page.content, re.DOTALL)[1])  # type: ignore[index]


def simple(states: list[str] | None = None, **options: Any) -> tuple[Any, pf.MarkovChain]:
    names = states or release_cases.STATES
    return release_cases._series(names, **options), pf.MarkovChain(release_cases.P, states=names)


def test_every_kind_of_release_has_a_page(tmp_path: Path, slow: bool) -> None:
    path, kinds = tmp_path / "report.html", set()
    for name, make in islice(release_cases.cases(), 0, None, 1 if slow else 73):
        try:
            found = make()
        except (NotApplicableError, PufferfishError):
            continue
        found.report(path, brief=True)
        page = Page(path)
        assert all(printed in page.text for printed in (found.promise.split(",")[0], "how to verify it")), name
        assert f"<strong>{found.hides}</strong>, whatever other records tell" in page.content, name
        kinds |= {found.theta.kind, found.query.kind, found.mechanism.witness.kind}
    assert len(kinds) >= 12, kinds


def test_a_page_says_the_unit_that_its_noise_hides(tmp_path: Path) -> None:
    """It once said "any one record", and showed mechanisms that hide a record beside noise that hides an hour."""
    table, chain = simple()
    path = tmp_path / "report.html"
    bound = pf.LeakagePropagation(chain, table.length, protect=5)
    found = pf.release(table, pf.Histogram(), bound.calibrate(pf.Histogram(), 1.0))
    found.report(path)
    page = checked(path)
    text = " ".join(page.text.split())
    assert f"Hides {found.hides} , whatever other records tell, at ε = 1." in text
    assert "any stretch of 5 steps in a row" in found.hides
    assert "What this noise tells at most, unit by unit" in text
    pf.compare(chain, pf.Histogram(), 1.0, length=table.length, protect=5).report(tmp_path / "preview.html")
    assert "Unit of protection: any stretch of 5 steps in a row" in " ".join(
        Page(tmp_path / "preview.html").text.split()
    )


def test_models_and_laws_that_no_model_file_holds(tmp_path: Path) -> None:
    tensor = [[[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.2, 0.8]]]
    higher = pf.HigherOrderChain(tensor, states=["no", "yes"])
    clock = pf.PeriodicChain([[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]], states=["no", "yes"])
    flu = pf.Cliques([0.1, 0.15, 0.5, 0.15, 0.1], states=["no", "yes"])
    joint = pf.JointDistribution([["no", "no"], ["no", "yes"], ["yes", "yes"]], [0.4, 0.2, 0.4])
    laws = {"sick": {1: 0.25, 2: 0.75}, "healthy": {0: 0.5, 1: 0.5}}
    given = pf.GivenLaws(laws, records=2, states=["no", "yes"], query=pf.Count("yes"))
    shown = {
        higher: "after the last 2",
        clock: "Probability of staying in a state for one step",
        flu: "how many of its 4 people",
        joint: "Databases, the likeliest first",
        given: "a function of the user's",
    }
    for theta, words in shown.items():
        chains = theta in (higher, clock)
        n = 4 if chains or theta is flu else 2
        mechanism = pf.LeakagePropagation(theta, n) if chains else pf.Wasserstein(theta)
        noise = mechanism.calibrate(pf.Count("yes"), 1.0)
        pf.release(["no", "yes"] * (n // 2), pf.Count("yes"), noise).report(tmp_path / "r.html")
        page = Page(tmp_path / "r.html")
        assert words in page.text
        assert bool(data_of(page)) == (theta is not given)
        if chains:  # parts of the leakage have the numbers of their rows
            numbers = re.findall(r'<span style="width:[0-9.]+%">([0-9]?)</span>', page.content)
            assert numbers
            assert all(f"{number}. the " in page.text for number in numbers if number)


def slider_of(page: Page) -> dict[str, list[str]]:
    """Return what the slider shows of each release, from the least ε to the largest."""
    (about,) = data_of(page)
    titles = re.findall(r'<tr data-row="(\d+)"><th scope="row">([^<]*)<', page.content)
    return {"ε": about["places"], **{unescape(title): about["rows"][int(i)]["error"] for i, title in titles}}


def test_the_slider_shows_what_calibration_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    """Never less; also of groups, whose shares are divided by their records, and of the best shape."""
    if not slow:
        release_cases.end_searches_soon(monkeypatch)
    chain, data = release_cases.TWO, release_cases._series(["no", "yes"])
    grouped = pf.read_sequences(pl.DataFrame({"s": ["no", "yes"] * 9, "g": ["a", "b", "b"] * 6}), "s", by=["g"])
    cases: list[tuple[Any, Any, str]] = [
        (data, pf.Histogram(relative=False), "equal"),
        (data, pf.Histogram(relative=False), "best"),
        (grouped, pf.Histogram(), "equal"),
    ]
    for table, query, noise in cases:
        bound = pf.GroupDP(chain, table.length)
        calibration = bound.calibrate(query, 1.0, noise=noise)  # type: ignore[arg-type]
        assert (calibration.strategy is not None) == (noise == "best")
        found = pf.release(table, query, calibration)
        found.report(tmp_path / "r.html")
        shown = slider_of(checked(tmp_path / "r.html"))
        epsilons = [float(text.removeprefix("ε = ").replace(",", "")) for text in shown.pop("ε")]
        assert epsilons == pytest.approx(points_around(1.0)[::2], rel=1e-3)
        (texts,) = shown.values()
        factor, times = found.accuracy(0.05) / calibration.accuracy(0.05), 100 if query.relative else 1
        for epsilon, text in zip(epsilons, texts, strict=True):
            error = 0.0 if "exact" in text else float(text.strip("±% ").replace(",", "")) / times
            there = bound.calibrate_strategy(query, calibration.strategy, epsilon * 1.001).accuracy(0.05) * factor
            assert there * (1 - 1e-9) <= error <= there * 1.3 + 1, "rounded up, and a count to whole records"
        assert texts[10] == f"± {Numbers(found).error(found.accuracy(0.05))}"


def test_one_slider_is_about_all_releases(tmp_path: Path) -> None:
    """Of one ε, or of several: then it says by how much each is multiplied. Without it the page says why."""
    data, chain = release_cases._series(["no", "yes"]), release_cases.TWO
    bound = pf.GroupDP(chain, data.length)
    asked = [(pf.Histogram(), 1.0), (pf.Count("yes"), 1.0), (pf.Count("yes"), 0.5)]
    sources = [report_page.Source(pf.release(data, query, bound.calibrate(query, e))) for query, e in asked]
    for few, first in ((sources[:2], "ε = 0.1"), (sources, "every ε times 0.1")):
        (tmp_path / "r.html").write_bytes(report_page.report_page(few))
        page = checked(tmp_path / "r.html")
        shown = slider_of(page)
        assert shown["ε"][0] == first
        assert len(shown) == len(few) + 1
        assert page.content.count('type="range"') == 1
    (tmp_path / "r.html").write_bytes(report_page.report_page(sources, brief=True))
    assert 'type="range"' not in checked(tmp_path / "r.html").content


def test_what_takes_long_is_left_to_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says that no proof was computed; a record that contradicts itself is refused all the same."""
    monkeypatch.setattr(report_page, "_PATIENCE", 0.0)
    data, chain = simple()
    found = pf.release(data, pf.Histogram(), pf.GroupDP(chain, data.length).calibrate(pf.Histogram(), 1.0))
    source = report_page.Source(found)
    (tmp_path / "r.html").write_bytes(report_page.report_page([source]))
    text = checked(tmp_path / "r.html").text
    assert "the proof was not computed again, for it takes longer than a few seconds" in text
    assert "The slider was left out: it takes longer than a few seconds" in text
    (tmp_path / "r.html").write_bytes(report_page.report_page([source], verified=True))
    text = checked(tmp_path / "r.html").text
    assert "the proof was computed again, and held" in text
    assert "was left out" not in text
    wrong = msgspec.structs.replace(found, noise=msgspec.structs.replace(found.noise, scale=found.noise.scale / 2))
    with pytest.raises(RecordError, match="does not hold, and no report is made of it"):
        report_page.report_page([report_page.Source(wrong)])


def test_a_proof_without_end_is_ended_and_the_page_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where work reports how far it is; then nothing else that takes long is begun."""
    begun: list[int] = []

    def endless(*_: Any, **__: Any) -> Any:
        begun.append(1)
        while True:
            report_progress("propagating leakage", 0.5)

    monkeypatch.setattr(report_page, "_PATIENCE", 0.1)
    monkeypatch.setattr(report_page, "verify", endless)
    data, chain = simple()
    noise = pf.GroupDP(chain, data.length).calibrate(pf.Histogram(), 1.0)
    sources = [report_page.Source(pf.release(data, pf.Histogram(), noise)) for _ in range(4)]
    start = time.process_time()
    (tmp_path / "r.html").write_bytes(report_page.report_page(sources))
    assert time.process_time() - start < 4
    assert len(begun) == 1
    assert "the proof was not computed again" in checked(tmp_path / "r.html").text


def test_names_never_become_markup(tmp_path: Path) -> None:
    data, chain = simple(HOSTILE)
    noise = pf.GroupDP(chain, data.length).calibrate(pf.Transitions(), 1.0)
    found = pf.release(data, pf.Transitions(), noise, warnings=["<b>careful</b>"])
    found.to_json(tmp_path / "<i>r $(x).json")
    net = pf.BayesianNetwork(
        {
            "<i>a</i>": pf.CPT(["<u>no</u>", "yes"], [0.8, 0.2]),
            "]]>--><script>": pf.CPT(["yes", "no"], [[0.2, 0.8], [0.6, 0.4]], ["<i>a</i>"]),
        }
    )
    rows = pf.read_rows(pl.DataFrame({"<i>a</i>": ["<u>no</u>", "yes"] * 9, "]]>--><script>": ["no", "yes"] * 9}), net)
    quilt = pf.MarkovQuilt(net, length=rows.length).calibrate(pf.Marginals(), 1.0)
    pf.release(rows, pf.Marginals(), quilt).to_json(tmp_path / "net.json")
    out = tmp_path / "r.html"
    done = commands.run("report", tmp_path / "<i>r $(x).json", tmp_path / "net.json", "--output", out, "--brief")
    assert done.exit_code == 0, done.output
    page = checked(out)
    for name in (*HOSTILE[:2], "<b>careful</b>", "<i>a</i>", "]]>--><script>", "'<i>r $(x).json'"):
        assert name in page.text, name
    assert "\\u202e" in page.text  # text that would turn the line around is spelled out
    for name in ("<i>r $(x).json", "net.json"):
        assert f"Release file:  {name}" in page.text, "each section names its file"
    assert page.text.count("What was found when this page was made") == 1


def test_each_subject_and_measurements(tmp_path: Path) -> None:
    data, chain = release_cases._series(["no", "yes"]), release_cases.TWO
    noise = pf.GroupDP(chain, data.length).calibrate(pf.Histogram(), 1.0)
    each = pf.release_each(data, pf.Histogram(), noise, tmp_path / "v.csv")
    each.report(tmp_path / "each.html", values=tmp_path / "v.csv")
    page = checked(tmp_path / "each.html")
    assert "quantiles over the subjects" in page.text
    n = round(data.records / data.subjects)
    error = Numbers(each).error(each.accuracy_95.each / n)
    assert [texts[10] for name, texts in slider_of(page).items() if name != "ε"] == [f"± {error} ({n} records)"]
    (tmp_path / "v.csv").write_text("other")
    with pytest.raises(RecordError, match="digest"):
        each.report(tmp_path / "each.html", values=tmp_path / "v.csv")

    bound = pf.GroupDP(chain, 6)
    mode = dp.m.make_user_measurement(
        dp.vector_domain(dp.atom_domain(T=str), size=6),
        dp.change_one_distance(),
        dp.max_divergence(),
        lambda _: "<b>no</b>",
        lambda d: d * bound.record_epsilon(1.0),
    )
    found = pf.release_measurement(["no", "yes"] * 3, mode, bound, 1.0, note="the <i>mode</i>")
    found.report(tmp_path / "m.html")
    assert "<b>no</b>" in checked(tmp_path / "m.html").text

    own, other = Ledger(bound, 3.0), Ledger(bound, 3.0)
    booked = pf.release_measurement(["no", "yes"] * 3, mode, bound, 1.0, ledger=own)
    assert booked.created >= own.entries[0].created
    other.spend(0.01, note="another release")
    booked.report(tmp_path / "b.html", ledger=own)
    with pytest.raises(RecordError, match=r"this release does not hold: .* of the ledger is another"):
        booked.report(tmp_path / "c.html", ledger=other)
    assert not (tmp_path / "c.html").exists()
    abroad = msgspec.structs.replace(booked, created="2026-11-22T23:30:00+09:00")
    path = tmp_path / "a$(id)'b.json"
    abroad.to_json(path)
    assert commands.run("report", path, "--output", tmp_path / "d.html").exit_code == 0
    page = Page(tmp_path / "d.html")
    assert "2026-11-22 14:30:00 UTC" in page.text
    assert shlex.split(next(word for word in page.words if word.startswith("python -c")))[2].endswith(".verify()")


def test_groups_of_many_outputs_keep_their_numbers(tmp_path: Path) -> None:
    states = [f"s{i:02d}" for i in range(12)]
    frame = pl.DataFrame({"state": states * 20, "ward": ["x"] * 100 + ["y"] * 140})
    data = pf.read_sequences(frame, "state", by="ward")
    chain = pf.MarkovChain([[1 / 12] * 12] * 12, states=states)
    found = pf.release(data, pf.Histogram(), pf.EntryDP(chain, data.length).calibrate(pf.Histogram(), 1.0))
    found.report(tmp_path / "r.html", brief=True)
    page = checked(tmp_path / "r.html")
    assert "The values as a table" in page.text
    for state in states:
        assert state in page.text


@pytest.mark.parametrize("groups", [12, 70])
def test_values_of_groups_that_noise_may_have_made_are_marked_and_counted(groups: int) -> None:
    """By a sign and in words, not by colour alone; errors are shaded like no data, also in the fold of many groups."""
    frame = pl.DataFrame({"s": ["no"] * 9 * groups + ["yes"] * groups, "g": [f"g{i:02}" for i in range(groups)] * 10})
    data = pf.read_sequences(frame, "s", by=["g"])
    noise = pf.LeakagePropagation(release_cases.TWO, data.length).calibrate(pf.Histogram(), 8.0)
    found = pf.release(data, pf.Histogram(), noise)
    values = [[0.01, 0.99] for _ in range(groups)]
    values[0] = [-0.05, 1.4]
    flat = [x for row in values for x in row]
    errors = found.accuracies(0.05)
    weak = int((abs(np.array(values)) <= errors).sum())
    assert errors.max() < 1
    assert groups <= weak < 2 * groups
    shown = values_part(msgspec.structs.replace(found, values=flat, noisy_values=flat))
    assert shown.count("no larger than its error</span>") == shown.count(WEAK) - 1 == weak
    assert f" {weak} of {2 * groups} values are no larger than their own error" in shown
    assert shown.index("no larger than their own error") < shown.index("<table")
    if groups == 12:
        assert shown.count('<td class="weak">') == weak
        assert 'class="plain"' not in shown, "the caption has the records and the error of all groups"
        assert shown.count("--h:") == 2 * groups - weak
    certain = np.abs(errors).max() * np.array([[2.0, 3.0]] * groups)
    shown = values_part(msgspec.structs.replace(found, values=certain.ravel().tolist()))
    assert WEAK not in shown


def test_values_below_their_own_error_are_marked_and_counted_everywhere() -> None:
    """Plain releases as releases by groups, for people who read text or a page; each has a sign."""
    data, chain = simple()
    noise = pf.LeakagePropagation(chain, data.length).calibrate(pf.Histogram(), 1.0)
    found = pf.release(data, pf.Histogram(), noise)
    k, error = len(found.values), found.accuracy(0.05)
    told = "○ {} of {} values: no larger than their own error, so noise alone may have made them"
    on_page = "</strong> {} of {} values are no larger than their own error: noise alone may have made them."
    for weak in range(k + 1):
        values = [-error] * weak + [error * 1.1] * (k - weak)
        made = msgspec.structs.replace(found, values=values)
        for shown, line in ((str(made), told), (values_part(made), on_page)):
            assert (line.format(weak, k) in shown) == (weak > 0)
            assert shown.count("○") == weak + (weak > 0)
        assert html_of(view_of(made)).count("○") == weak
    one = pf.Count(chain.states[0])
    counted = pf.release(data, one, pf.LeakagePropagation(chain, data.length).calibrate(one, 1.0))
    for value, weak in ((0.0, True), (1e6, False)):
        made = msgspec.structs.replace(counted, values=[value])
        assert ("the value is no larger than its own error, so noise alone may have made it" in str(made)) == weak
        assert ("The value is no larger than its own error" in values_part(made)) == weak


def test_steps_that_noise_may_have_made_are_marked() -> None:
    data, chain = simple()
    noise = pf.GroupDP(chain, data.length).calibrate(pf.Transitions(), 1.0)
    found = pf.release(data, pf.Transitions(), noise)
    k = len(release_cases.STATES)
    error = found.accuracy(0.05)
    values = [error + 1.0] * (k * k - 1) + [1.0]
    shown = values_part(msgspec.structs.replace(found, values=values))
    assert shown.count('<td class="weak">') == 1
    assert f" 1 of {k * k} values are no larger than their own error" in shown


@pytest.mark.parametrize("alike", [True, False])
def test_a_narrow_screen_shows_the_numbers_of_groups_first(tmp_path: Path, alike: bool) -> None:
    """What is the same in all groups is said once, in the caption; what is not stands beside the values."""
    states, size = release_cases.STATES, 6 * len(release_cases.STATES)
    chain = pf.MarkovChain(release_cases.P, states=states)
    frame = pl.DataFrame({"s": states * 12, "g": ["a", "b"] * size if alike else ["a"] * 3 + ["b"] * (2 * size - 3)})
    data = pf.read_sequences(frame, "s", by=["g"])
    for query in (pf.Count(states[0]), pf.Frequency(states[0]), pf.Histogram()):
        one = not isinstance(query, pf.Histogram)
        found = pf.release(data, query, pf.GroupDP(chain, data.length).calibrate(query, 1.0))
        found.report(tmp_path / "r.html", brief=True)
        page = checked(tmp_path / "r.html")
        (tmp_path / "r.html").unlink()
        after = page.content.split('class="caption"', 1)[1]
        caption = unescape(after.split("</p>")[0])
        heads = re.findall(r"<th scope=\"col\"[^>]*>(?:<span[^>]*>)?([^<]*)<", after)
        expected = ["g", *([] if alike else ["records"]), *(["value"] if one else [] if alike else ["± 95%"])]
        assert heads[: len(expected)] == expected
        assert (f"{size} records in each group" in caption) == alike
        error = Numbers(found).error(found.accuracy())
        assert one or (f"each ± {error} with 95% probability" in caption) == alike
        assert not one or f"({states[0]})" in caption


def test_refusals_leave_every_file(tmp_path: Path) -> None:
    data, chain = simple()
    bound = pf.GroupDP(chain, data.length)
    noise = bound.calibrate(pf.Histogram(), 1.0)
    ledger = Ledger(bound, 2.0, base=data)
    ledger.save(tmp_path / "book.json")
    found = pf.release(data, pf.Histogram(), noise, ledger=ledger)
    found.to_json(tmp_path / "r.json")
    pf.release(data, pf.Histogram(), noise).to_json(tmp_path / "alone.json")
    wrong = msgspec.structs.replace(found, noise=msgspec.structs.replace(found.noise, scale=found.noise.scale / 2))
    (tmp_path / "wrong.json").write_bytes(msgspec.json.encode(wrong))
    (tmp_path / "mine.html").write_text("<!doctype html>\n<html>mine</html>")
    out = tmp_path / "out.html"
    done = commands.run("report", tmp_path / "r.json", "--ledger", tmp_path / "book.json", "--brief", "--output", out)
    assert done.exit_code == 0, done.output
    assert "on this page" in checked(out).text
    assert "Remaining" in Page(out).text
    text = checked(out).text
    assert text.index("Together with the releases before it") < text.index("Not promised"), "it is promised"
    assert "\npromised: Together with the releases before it" in commands.run("show", tmp_path / "r.json").stdout
    book = ("--ledger", tmp_path / "book.json")
    mixed = commands.run(
        "report", tmp_path / "alone.json", tmp_path / "r.json", *book, "--brief", "--overwrite", "--output", out
    )
    apart = "not in the ledger: what is spent does not include it"
    assert f"alone.json is {apart}" in mixed.stdout
    assert apart not in done.stdout
    told = checked(out).text
    for place in (1, 2):
        assert f"{place}. Histogram, ε = 1" in told, "two releases of one query are told apart"
    assert told.count(apart) == 2, "in the section of the release, and in that of the ledger"
    assert told.index(apart) < told.index("The budget") < told.rindex(apart)
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for arguments, words in (
        (["r.json", "--output", "mine.html"], "is no report of releases"),
        (["r.json", "--output", "mine.html", "--overwrite"], "is no report of releases"),
        (["r.json", "--output", "out.html"], "--overwrite"),
        (["r.json", "--output", "r.json"], "is the input file"),
        (["wrong.json", "--output", "new.html"], "does not hold"),
        (["book.json", "--output", "new.html"], "is not a pufferfish-release file"),
        (["alone.json", "--ledger", "book.json", "--output", "new.html"], "names an entry"),
        (["r.json", "r.json", "--output", "new.html"], "is the same release as"),
        (["alone.json", "alone.json", "--output", "new.html"], "is the same release as"),
    ):
        given = [tmp_path / part if part.endswith((".json", ".html")) else part for part in arguments]
        commands.refused("report", *given, says=[words])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept
    base = dataclasses.replace(found.data.base, source="july.csv")
    july_data = dataclasses.replace(data, base=base)
    july = pf.release(july_data, pf.Histogram(), noise, ledger=Ledger(bound, 2.0, base=july_data))
    july.to_json(tmp_path / "july.json")
    pair = tmp_path / "r.json", tmp_path / "july.json"
    two = commands.run("report", *pair, "--brief", "--output", tmp_path / "two.html")
    assert two.exit_code == 0, "two tables may each have a ledger, whose first entries are alike"
    again = commands.run("report", tmp_path / "alone.json", "--brief", "--output", out, "--overwrite")
    assert again.exit_code == 0, again.output
    assert "on this page" not in checked(out).text
    with pytest.raises(RecordError, match="does not hold"):
        wrong.report(tmp_path / "new.html")


def test_the_command_to_verify_is_one_that_every_reader_can_run(tmp_path: Path) -> None:
    """Who keeps the ledger is told of it apart, and no ledger is named that was not given."""
    data, chain = simple()
    bound = pf.GroupDP(chain, data.length)
    ledger = Ledger(bound, 2.0, base=data)
    kept = tmp_path / "my books"
    kept.mkdir()
    ledger.save(kept / "bb 1.json")
    found = pf.release(data, pf.Histogram(), bound.calibrate(pf.Histogram(), 1.0), ledger=ledger)
    found.to_json(tmp_path / "r.json")
    out, hint = tmp_path / "r.html", "Only who keeps the ledger (the owner)"

    def commands_of() -> list[list[str]]:
        return [shlex.split(word) for word in Page(out).words if word.startswith("pufferfish verify")]

    given = ("report", tmp_path / "r.json", "--brief", "--overwrite", "--output", out)
    assert commands.run(*given, "--ledger", kept / "bb 1.json").exit_code == 0
    reader, owner = ["pufferfish", "verify", "r.json"], ["--ledger", "bb 1.json"]
    assert commands_of() == [reader, reader + owner]
    assert hint in Page(out).text
    assert commands.run("verify", tmp_path / "r.json").exit_code == 0, "the reader has no ledger"
    found.report(out, ledger=ledger, brief=True)
    assert commands_of() == [["pufferfish", "verify", "release.json"], ["pufferfish", "verify", "release.json", *owner]]
    assert commands.run(*given).exit_code == 0
    assert commands_of() == [reader, [*reader, "--ledger", "LEDGER.json"]]
    assert f"{hint} has its file, LEDGER.json," in Page(out).text
    alone = pf.release(data, pf.Histogram(), bound.calibrate(pf.Histogram(), 1.0))
    alone.report(out, brief=True)
    assert hint not in Page(out).text
    assert commands_of() == [["pufferfish", "verify", "release.json"]]


def test_the_promise_stands_once_and_its_exact_sentence_is_folded(tmp_path: Path) -> None:
    data, chain = simple()
    found = pf.release(data, pf.Histogram(), pf.GroupDP(chain, data.length).calibrate(pf.Histogram(), 1.0))
    found.report(tmp_path / "r.html", brief=True)
    before, folded = checked(tmp_path / "r.html").content.split("<summary>The exact sentence of the promise</summary>")
    assert "changes the odds between two values of one record" in before
    assert "times as likely" not in before
    assert folded.index("times as likely") < folded.index("</details>")


def test_named_secrets_and_delta_stand_open() -> None:
    """Few words do not say what pairs or a δ mean: a fold may not hold what is needed to understand them."""
    pairs = [("sick", "well"), ("tall", "small")]
    about: Any = {"hides": "which of two secrets holds", "protection": None}
    shown = promise_part(1.0, "the exact sentence", ["not this"], ["this"], secrets=pairs, **about)
    assert "The pairs of secrets: (sick) or (well); (tall) or (small)." in shown
    assert "<details>" in shown
    shown = promise_part(1.0, "the exact sentence", ["not this"], ["this"], secrets=pairs, delta=1e-6, **about)
    assert "the exact sentence" in shown
    assert "<details>" not in shown
    shown = promise_part(0.2, "exact", [], [], secrets=None, **about)
    assert "with ε = 0.2 a factor of 1.23" in shown, "e^0.2 is 1.2214: rounded up"
    many = [(f"a{i}", f"b{i}") for i in range(99)]
    assert "(a19) or (b19); …" in promise_part(1.0, "exact", [], [], secrets=many, **about)


def test_a_page_is_about_the_unit_that_its_release_hides(tmp_path: Path) -> None:
    """What is hidden, and what the odds are of, in a page of one release and of several."""
    data, chain = simple()
    bound, query = pf.LeakagePropagation(chain, data.length), pf.Histogram(relative=False)
    pages = {}
    for hidden in ({"protect": 6}, {"within": [release_cases.STATES[:2]]}, {}):
        found = pf.release(data, query, bound.calibrate(query, 1.0, **hidden))
        found.report(tmp_path / "r.html")
        page = pages["".join(hidden)] = checked(tmp_path / "r.html")
        assert f"Hides <strong>{found.hides}</strong>, whatever" in page.content
        assert data_of(page)[0]["rows"]
        assert "<svg" in page.content.partition("What this noise tells at most, unit by unit")[2].partition("<h3")[0]
    stretch, near, one = pages["protect"], pages["within"], pages[""]
    assert "the odds between two courses of one such stretch" in stretch.text
    assert "two values of one record" not in stretch.text
    assert "the odds between two near values of one record" in near.text
    assert "of 1 steps in a row" not in near.text
    assert "the odds between two values of one record" in one.text


def test_errors_of_subjects_are_told_in_shares(tmp_path: Path) -> None:
    """Nobody has to divide: the command line says the same."""
    chain = release_cases.TWO
    frame = pl.DataFrame({"s": ["no", "yes"] * 20, "id": ["a"] * 30 + ["b"] * 10})
    data = pf.read_sequences(frame, "s", subject="id")
    noise = pf.GroupDP(chain, data.length).calibrate(pf.Histogram(), 1.0)
    each = pf.release_each(data, pf.Histogram(), noise, tmp_path / "v.csv")
    error = each.accuracy_95.each
    each.report(tmp_path / "e.html", values=tmp_path / "v.csv", brief=True)
    ends = f"from ± {number(error / 30, 3)} for 30 records to ± {number(error / 10, 3)} for 10 records of a subject"
    assert ends in checked(tmp_path / "e.html").text
    each.report(tmp_path / "e.html", brief=True)
    text = checked(tmp_path / "e.html").text
    assert f"within {number(error / 20, 3)} of the exact one with 95% probability for a subject with 20 records" in text
    counts = pf.release_each(
        data,
        pf.Histogram(relative=False),
        pf.GroupDP(chain, data.length).calibrate(pf.Histogram(relative=False), 1.0),
        tmp_path / "c.csv",
    )
    counts.report(tmp_path / "c.html", values=tmp_path / "c.csv", brief=True)
    assert (
        f"Each value is within {number(counts.accuracy_95.each)} of the exact one" in checked(tmp_path / "c.html").text
    )


def test_a_preview_says_what_of_a_table_was_used_and_what_is_assumed(tmp_path: Path) -> None:
    """A release lists the same assumptions."""
    pl.DataFrame({"s": ["no", "yes"] * 20, "id": ["a"] * 30 + ["b"] * 10, "t": range(40)}).write_csv(tmp_path / "t.csv")
    pf.write_model(pf.Model(theta=release_cases.TWO), tmp_path / "m.json")
    read, out = ("--state", "s", "--subject", "id", "--time", "t", "--max-gap", "2"), tmp_path / "p.html"
    asked = ("compare", tmp_path / "m.json", "--epsilon", "1", "--mechanisms", "group-dp", "--report", out)
    done = commands.run(*asked, "--table", tmp_path / "t.csv", *read)
    assert done.exit_code == 0, done.output
    text = Page(out).text
    assert "of the data only the numbers of records, and where gaps are, were used" in text
    assert "no data were read" not in text
    given = (
        "--model",
        tmp_path / "m.json",
        "--epsilon",
        "1",
        "--mechanism",
        "group-dp",
        "--accept",
        "noise",
        "--output",
        tmp_path / "r.json",
    )
    done = commands.run("release", tmp_path / "t.csv", *read, *given)
    assert done.exit_code == 0, done.output
    released = pf.Release.from_json(tmp_path / "r.json").assumptions
    assert len(released) > 4
    assert all(sentence in text for sentence in released)
    assert commands.run(*asked, "--length", "30,10").exit_code == 0
    text = Page(out).text
    assert "no data were read for this page" in text
    assert "Different chains are independent of each other." in text
    data = pf.read_sequences(tmp_path / "t.csv", "s", subject="id")
    compared = pf.compare(release_cases.TWO, pf.Histogram(), 1.0, length=data.length, mechanisms=["group-dp"])
    compared.report(out, assumptions=data.assumptions)
    assert all(sentence in Page(out).text for sentence in data.assumptions)
    with pytest.raises(ParameterError, match=r"assumptions is .* expected sentences, such as data\.assumptions"):
        compared.report(out, assumptions="one sentence")
    rows = pf.read_rows(release_cases.TABLE, release_cases.NETWORK)
    compared = pf.compare(release_cases.NETWORK, pf.Marginals(), 1.0, length=rows.length, mechanisms=["group-dp"])
    compared.report(out, assumptions=rows.assumptions)
    assert "of the data only the number of rows was used" in Page(out).text
    compared.report(out)
    assert "Rows are independent of each other under every θ" in Page(out).text


def test_a_preview_reads_no_data(tmp_path: Path) -> None:
    chain = release_cases.TWO
    compared = pf.compare(chain, pf.Histogram(), 0.5, length=8)
    compared.report(tmp_path / "p.html")
    page = Page(tmp_path / "p.html")
    assert "no data were read" in page.text
    assert "What would be promised" in page.text
    assert "Share of the 8 records" in page.text
    assert "The noise is for a table of 8 records." in page.text
    (about,) = data_of(page)
    row = next(row for row in compared if row.recommended)
    own = int(re.search(r'<tr class="own" data-row="(\d+)"', (tmp_path / "p.html").read_text())[1])  # type: ignore[index]
    assert about["rows"][own]["scale"][40] == number(row.scale)
    by_accuracy = pf.compare(chain, pf.Count("yes"), accuracy=3.0, length=8)
    by_accuracy.report(tmp_path / "p.html")
    best = next(row for row in by_accuracy if row.recommended)
    assert f"ε = {best.epsilon:g}" in Page(tmp_path / "p.html").text
    with pytest.raises(ParameterError, match="made by hand"):
        type(compared)((), "none", "records").report(tmp_path / "p.html")
    found = pf.release(["no"] * 4, pf.Count("yes"), pf.GroupDP(chain, 4).calibrate(pf.Count("yes"), 1.0))
    with pytest.raises(RecordError, match="is no report"):
        found.report(tmp_path / "p.html", brief=True)


def test_numbers_are_short() -> None:
    assert [number(x) for x in (1234567.0, 0.5, -12.3456, float("inf"))] == ["1,235,000", "0.5", "-12.35", "∞"]
