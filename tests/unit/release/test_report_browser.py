"""A report in a real browser: the slider moves, numbers follow, nothing is loaded, and a phone need not scroll aside.

Needs Chromium with its driver (``apt-get install chromium chromium-driver``) and selenium; skipped without them.
"""

import base64
import json
import re
from collections.abc import Generator
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import numpy as np
import polars as pl
import pytest

import browsers
import pufferfish as pf
import release_cases
from pufferfish._draw.page import page as page_of
from pufferfish.compare.comparison import report_together
from pufferfish.compare.noise import noise_part
from pufferfish.compare.rows import ComparisonRow, points_around
from pufferfish.ledger import Ledger
from pufferfish.release.show.page import Cover, Source, report_page
from pufferfish.release.show.values import Numbers

pytestmark = pytest.mark.program

LONG = "a state with a name that is as long as a line and has_no_place_to_break_it_" + "x" * 60


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Any]:
    yield from browsers.opened(tmp_path_factory)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    chain, data = release_cases.TWO, release_cases._series(["no", "yes"])
    bound = pf.LeakagePropagation(chain, data.length)
    query = pf.Histogram(relative=False)
    found = {name: folder / f"{name}.html" for name in ("report", "preview", "network", "names")}
    pf.release(data, query, bound.calibrate(query, 1.0), postprocess="valid").report(found["report"])
    pf.compare(chain, query, 1.0, length=data.length).report(found["preview"])
    rows = pf.read_rows(release_cases.TABLE, release_cases.NETWORK)
    noise = pf.MarkovQuilt(release_cases.NETWORK, length=rows.length).calibrate(pf.Marginals(), 1.0)
    pf.release(rows, pf.Marginals(), noise).report(found["network"], brief=True)
    states = ["<script>document.title='taken'</script>", LONG]
    named = pf.MarkovChain(release_cases.TWO.transition_matrix, states=states)
    table = pf.read_sequences(pl.DataFrame({"s": states * 12, "g": ["a", "b", "c"] * 8}), "s", by=["g"])
    steps = pf.GroupDP(named, table.length).calibrate(pf.Histogram(), 1.0)
    pf.release(table, pf.Histogram(), steps).report(found["names"], brief=True)
    found |= {name: folder / f"{name}.html" for name in ("wide", "unlike", "ledger", "steep")}
    many = [f"state {i}" for i in range(10)]
    wide = pf.read_sequences(pl.DataFrame({"s": many * 12, "g": [f"g{i}" for i in range(24)] * 5}), "s", by=["g"])
    alike = pf.MarkovChain([[0.1] * 10] * 10, states=many)
    noise = pf.GroupDP(alike, wide.length).calibrate(pf.Histogram(), 1.0)
    pf.release(wide, pf.Histogram(), noise).report(found["wide"], brief=True)
    half = pf.read_sequences(pl.DataFrame({"s": many * 2, "g": ["a"] * 8 + ["b"] * 12}), "s", by=["g"])
    noise = pf.GroupDP(alike, half.length).calibrate(pf.Histogram(), 1.0)
    pf.release(half, pf.Histogram(), noise).report(found["unlike"], brief=True)
    book = Ledger(bound, 9.0, base=data)
    pf.release(data, query, bound.calibrate(query, 1.0), ledger=book).report(found["ledger"], ledger=book)
    content, numbers = noise_part(*_steep(0.655456), "noise-0")
    found["steep"].write_bytes(page_of("report", "noise", content, [numbers]))
    return found


def _steep(epsilon: float) -> tuple[Any, ...]:
    """Return what a page shows of noise from a hundred-thousandth to millions."""
    errors = [round(10.0 ** (16 - 0.3 * i)) * 1e-9 for i in range(41)]
    alike: dict[str, Any] = {"mechanism": "a", "title": "A", "noise": "best"}
    curve = [
        ComparisonRow(**alike, epsilon=e, scale=error, accuracy=error)
        for e, error in zip(points_around(epsilon), errors, strict=True)
    ]
    row = ComparisonRow(**alike, scale=10e-9, accuracy=errors[20])
    shape = {"strategy": "some", "linear": SimpleNamespace(unit=Fraction(1, 10**9))}
    made = SimpleNamespace(mechanism="a", epsilon=epsilon, bound=SimpleNamespace(protection=None), **shape)
    return made, [row], [curve], "records"


def look(browser: Any, page: Path, width: int, scheme: str = "light") -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(page.as_uri())
    browser.execute_async_script(f"const done = arguments[0]; {FRAMES}")


FRAMES = "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));"
"""When sizes were observed and scrolling was told: both wait for a frame, which takes its time on a busy machine."""


def numbers_of(browser: Any) -> dict[str, tuple[float, float]]:
    rows = browser.execute_script(
        "return [...document.querySelectorAll('tr[data-row]')].map(row => [row.dataset.row,"
        " row.querySelector('.scale').textContent, row.querySelector('.error').textContent])"
    )
    return {place: tuple(float(text.removeprefix("≤ ").replace(",", "")) for text in texts) for place, *texts in rows}  # type: ignore[misc]


def test_the_slider_follows_what_was_computed(browser: Any, pages: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    data = release_cases._series(["no", "yes"])
    bound, query = pf.LeakagePropagation(release_cases.TWO, data.length), pf.Histogram(relative=False)
    look(browser, pages["preview"], 1000)
    own = re.search(r'<tr class="own" data-row="(\d+)"', pages["preview"].read_text())[1]  # type: ignore[index]
    before = numbers_of(browser)
    assert before[own][0] == pytest.approx(bound.calibrate(query, 1.0).scale, rel=1e-3)
    slider = browser.find_element(By.CSS_SELECTOR, "input[type=range]")
    output = browser.find_element(By.TAG_NAME, "output")
    assert output.text.startswith("ε = 1: each value is within ")
    browser.execute_script("arguments[0].focus()", slider)
    for keys, place in ((Keys.ARROW_LEFT * 5, 35), (Keys.ARROW_RIGHT * 25, 60), (Keys.HOME, 0), (Keys.END, 80)):
        slider.send_keys(keys)
        there = bound.calibrate(query, 10 ** ((place - 40) / 40))
        found = numbers_of(browser)[own]
        more = 1.002 if place % 2 == 0 else 1.13  # between two computed ε
        assert there.scale * 0.999 <= found[0] <= there.scale * more
        assert there.accuracy(0.05) <= found[1] <= there.accuracy(0.05) * more + 1
        exact = there.accuracy(0.05) == 0
        assert ("published exactly" in output.text) == exact
        assert ("within" in output.text) == (not exact)
        assert slider.get_attribute("aria-valuetext") == output.text
    assert exact, "at the end of the slider hardly any noise is left"
    assert numbers_of(browser) != before
    browser.find_element(By.CSS_SELECTOR, ".slider button").send_keys(Keys.ENTER)
    assert numbers_of(browser) == before


def test_the_command_of_a_preview_follows_its_slider(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    compared = pf.compare(release_cases.TWO, pf.Count("yes"), 300.0, length=50, mechanisms=["propagation"])
    report_together([compared], tmp_path / "p.html", commands=["pufferfish release TABLE --epsilon"])
    look(browser, tmp_path / "p.html", 1000)
    shown = "return document.querySelector('.command').textContent"
    assert browser.execute_script(shown) == "pufferfish release TABLE --epsilon 300"
    browser.find_element("css selector", "input[type=range]").send_keys(Keys.END)
    assert browser.execute_script(shown) == "pufferfish release TABLE --epsilon 3000"


def test_an_error_is_written_alike_in_all_places(browser: Any, tmp_path: Path) -> None:
    """In the table of values, and beside the slider, before and after the script."""
    data = release_cases._series(["no", "yes"])
    grouped = pf.read_sequences(pl.DataFrame({"s": ["no", "yes"] * 9, "g": ["a", "b", "b"] * 6}), "s", by=["g"])
    bound = pf.LeakagePropagation(release_cases.TWO, data.length)
    by = pf.LeakagePropagation(release_cases.TWO, grouped.length)
    for table, query, mechanism in (
        (data, pf.Histogram(), bound),
        (["no", "yes", "no"] * 37, pf.Frequency("yes"), pf.LeakagePropagation(release_cases.TWO, 111)),
        (data, pf.Count("yes"), bound),
        (grouped, pf.Count("yes"), by),
        (grouped, pf.Frequency("yes"), by),
    ):
        found = pf.release(table, query, mechanism.calibrate(query, 0.7))
        found.report(tmp_path / "r.html")
        error = Numbers(found).error(found.accuracy(0.05))
        before = (tmp_path / "r.html").read_text()
        assert f" ± {error}" in before
        assert f'class="n error">± {error}</td>' in before
        look(browser, tmp_path / "r.html", 1000)
        assert browser.find_element("tag name", "output").text == "ε = 0.7"
        assert browser.find_element("css selector", "#noise .error").text == f"± {error}"
    assert browser.get_log("browser") == []


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[pf.Release], Path]:
    """Return four releases of one table, and their page."""
    folder = tmp_path_factory.mktemp("four")
    states, days = ["rest", "walk", "run"], 7
    times = pl.datetime_range(datetime(2026, 3, 2), datetime(2026, 3, 2 + days), "1h", closed="left", eager=True)
    rows = [{"t": t, "id": who, "s": states[(t.hour // 5 + who) % 3]} for who in range(40) for t in times]
    chain = pf.MarkovChain([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.2, 0.4, 0.4]], states=states)
    asked: list[tuple[Any, Any]] = [
        (pf.Histogram(), None),
        (pf.Histogram(), ["hour"]),
        (pf.Frequency("run"), ["date"]),
        (pf.Frequency("rest"), ["hour", "weekday"]),
    ]
    found = []
    for query, by in asked:
        data = pf.read_sequences(pl.DataFrame(rows), "s", subject="id", time="t", max_gap="1h", by=by)
        found.append(pf.release(data, query, pf.LeakagePropagation(chain, data.length).calibrate(query, 1.0)))
    sources = [Source(release, Path(f"r{i}.json")) for i, release in enumerate(found)]
    cover = Cover(title="Steps in March", office="An office", labels={"run": "Running", "walk": "<i>Walking</i>"})
    (folder / "four.html").write_bytes(report_page(sources, cover=cover))
    return found, folder / "four.html"


def test_four_releases_fit_on_a_page_and_on_a_phone(browser: Any, four: tuple[list[pf.Release], Path]) -> None:
    """First what is hidden and the answers, then once for all what is promised; nothing is cut off."""
    _, page = four
    heads = "return [...document.querySelectorAll('h2')].map(h => h.firstChild.textContent.trim())"
    shown = "return [...document.querySelectorAll('.bands')].map(e => e.checkVisibility()).filter(Boolean)"
    texts = (
        "return [...document.querySelectorAll('.bands text')].filter(e => e.checkVisibility())"
        ".map(t => [t.getBoundingClientRect().left, t.getBoundingClientRect().right,"
        " parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getScreenCTM().a])"
    )
    for width in (1280, 390):
        look(browser, page, width)
        high, wide = browser.execute_script(
            "const e = document.documentElement; return [e.scrollHeight, e.scrollWidth]"
        )
        assert wide <= width
        assert width == 390 or high < 4000, high
        assert len(browser.execute_script(shown)) == 4, "a chart for each output of the hours, and one for the days"
        for left, right, size in browser.execute_script(texts):
            assert 0 <= left < right <= width
            assert size >= 9, (width, size)
        titles = browser.execute_script(heads)
        assert titles[0] == "What is hidden"
        assert titles[1:5] == [
            "1. Histogram, ε = 1",
            "2. Histogram · hour of the day, ε = 1",
            "3. Frequency · date, ε = 1",
            "4. Frequency · hour of the day, weekday, ε = 1",
        ]
        assert len(titles) == 10
    assert browser.title == "Steps in March"
    assert "Running" in browser.find_element("tag name", "main").text
    assert browser.get_log("browser") == []


def test_values_of_the_page_its_tables_for_programs_and_the_records_agree(
    browser: Any, four: tuple[list[pf.Release], Path]
) -> None:
    releases, page = four
    look(browser, page, 1280)
    links = browser.execute_script(
        "return [...document.querySelectorAll('article')].map(a => { const l = a.querySelector('a[download]');"
        " return [l.download, l.href]; })"
    )
    for i, (release, (name, href)) in enumerate(zip(releases, links, strict=True)):
        assert name == f"r{i}.csv"
        table = pl.read_csv(unquote(href.split(",", 1)[1]).encode())
        assert table["value"].to_list() == release.values
        assert table["error_95"].to_list() == release.accuracies(0.05).ravel().tolist()
        write = Numbers(release)
        article = browser.find_element("id", f"release-{i + 1}")
        cells = browser.execute_script(
            "return [...arguments[0].querySelectorAll('td')].map(c => c.childNodes.length ? c.textContent : '')",
            article,
        )
        shown = [text.replace("○", "").replace("no larger than its error", "").strip() for text in cells]
        errors = release.accuracies(0.05).ravel().tolist()
        both = {write.both(v, e) for v, e in zip(release.values, errors, strict=True)}
        alone = {write.value(v, e) for v, e in zip(release.values, errors, strict=True)}
        assert {text for text in shown if text} == (alone if i == 3 else both)
        marked = sum("○" in text for text in cells)
        assert marked == int((np.abs(release.value) <= release.accuracies(0.05)).sum())


def test_a_long_table_is_searched(browser: Any, four: tuple[list[pf.Release], Path]) -> None:
    _, page = four
    look(browser, page, 1280)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    search = next(box for box in browser.find_elements("css selector", ".search input") if box.is_displayed())
    rows = (
        "return [...arguments[0].closest('details').querySelectorAll('tbody tr')].filter(r => r.checkVisibility())"
        ".length"
    )
    assert browser.execute_script(rows, search) == 72
    search.send_keys("running")
    assert browser.execute_script(rows, search) == 24
    assert browser.get_log("browser") == []


def test_the_page_is_printed_in_order_with_what_is_folded(browser: Any, four: tuple[list[pf.Release], Path]) -> None:
    _, page = four
    look(browser, page, 1280)
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF")
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script("return document.querySelectorAll('details:not([open])').length") == 0


def test_pages_fit_load_nothing_and_run_nothing_else(browser: Any, pages: dict[str, Path], slow: bool) -> None:
    from selenium.webdriver.common.by import By

    for name, page in pages.items():
        if name in ("wide", "unlike", "ledger", "steep"):  # for what is looked at below
            continue
        for width, scheme in ((360, "light"), (360, "dark"), (1000, "light"))[:: 1 if slow else 2]:
            browser.get_log("performance")
            look(browser, page, width, scheme)
            assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), (name, width)
            assert "taken" not in browser.title
            names = browser.execute_script(
                "return [...document.querySelectorAll('.chart .name, .lines span')].filter(e => e.checkVisibility())"
                ".map(e => e.getBoundingClientRect()).map(r => [r.top, r.bottom, innerWidth - r.right])"
            )
            assert (len(names) > 3) == (name == "preview"), (name, len(names))
            for (_, above, _), (below, *_) in pairwise(sorted(names)):
                assert above <= below + 1, (name, width, "names of lines lie on each other")
            assert all(room >= 0 for *_, room in names), (name, width, "a name is cut")
            asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
            asked = [a["params"]["request"]["url"] for a in asked if a["method"] == "Network.requestWillBeSent"]
            assert asked == [page.as_uri()], asked
            assert browser.get_log("browser") == [], name
            for element in browser.find_elements(By.CSS_SELECTOR, "[role=img], input, [role=region]"):
                assert element.accessible_name or not element.is_displayed(), element.get_attribute("outerHTML")[:200]
    for name in ("wide", "ledger", "steep"):
        look(browser, pages[name], 390)
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), name
        assert browser.get_log("browser") == [], name
    ink, paper = (
        browser.execute_script(f"return getComputedStyle(document.body).{v}") for v in ("color", "background")
    )
    look(browser, pages["report"], 1000, "dark")
    assert browser.execute_script("return getComputedStyle(document.body).color") != ink
    assert browser.execute_script("return getComputedStyle(document.body).background") != paper


def test_the_chart_is_read_whole_on_a_phone_too(browser: Any, pages: dict[str, Path]) -> None:
    chart = "const chart = [...document.querySelectorAll('.chart')].find(e => e.checkVisibility());"
    for width in (360, 390, 1280):
        look(browser, pages["steep"], width)
        left, labels = browser.execute_script(
            f"{chart} const end = chart.getBoundingClientRect().left;"
            "const scale = chart.getScreenCTM().a;"
            "return [end, [...chart.querySelectorAll('text')].map(t => [t.textContent,"
            " t.getBoundingClientRect().left, parseFloat(getComputedStyle(t).fontSize) * scale])]"
        )
        room = f"{chart} return chart.getBoundingClientRect().width / document.querySelector('.noise').clientWidth"
        assert 0.98 < browser.execute_script(room) < 1.02, "the chart takes the width that the table has"
        assert len({text for text, *_ in labels}) == len(labels) > 5
        assert "10⁵" in {text for text, *_ in labels}
        assert all(at >= left for _, at, _ in labels), (width, "a label is cut")
        assert all(size >= 10.5 for *_, size in labels), (width, "labels are too small")
        a, b = browser.execute_script(
            "return [...document.querySelectorAll('.ends span')].map(e => e.getBoundingClientRect())"
        )
        assert b["top"] >= a["bottom"] or b["left"] - a["right"] >= 16, "the labels of the slider touch"


def test_the_lines_of_the_chart_have_names_and_follow_the_slider_on_a_phone(
    browser: Any, pages: dict[str, Path]
) -> None:
    """Nothing of the chart needs scrolling: neither its last ε nor which line is which."""
    from selenium.webdriver.common.keys import Keys

    marks = (
        "return [...document.querySelectorAll('.chart .here')]"
        ".map(e => [e.checkVisibility(), e.getAttribute('transform')])"
    )
    for width, named in ((390, "below the chart"), (700, "below the chart"), (1280, "where their lines end")):
        look(browser, pages["preview"], width)
        curves = browser.execute_script("return data[0].rows.length")
        shown = browser.execute_script(
            "return [...document.querySelectorAll('.chart .name, .lines span')].filter(e => e.checkVisibility())"
            ".map(e => e.getBoundingClientRect().right)"
        )
        assert len(shown) == curves > 3
        assert max(shown) <= width
        last = browser.execute_script(
            "return [...document.querySelectorAll('.chart text')].filter(e => e.checkVisibility()"
            " && e.textContent === 'ε = 10').map(e => e.getBoundingClientRect().right)"
        )
        assert len(last) == 1
        assert last[0] <= width
        assert named in browser.find_element("css selector", "#noise-0 figcaption").text
        before = browser.execute_script(marks)
        browser.find_element("css selector", "input[type=range]").send_keys(Keys.END)
        after = browser.execute_script(marks)
        assert sorted(visible for visible, _ in after) == [False, True]
        assert all(old != new for (_, old), (_, new) in zip(before, after, strict=True))


def test_what_is_wider_than_the_page_says_so(browser: Any, pages: dict[str, Path]) -> None:
    state = (
        "const box = [...document.querySelectorAll('.scroll')].find(b => b.querySelector(arguments[0]));"
        "const hint = box.previousElementSibling;"
        "return [box.scrollWidth - box.clientWidth > 1, box.classList.contains('more'), hint.checkVisibility(),"
        " hint.innerText]"
    )
    scroll = (
        "const box = [...document.querySelectorAll('.scroll')].find(b => b.querySelector('.heat'));"
        f"box.scrollLeft = 9999; const done = arguments[0]; {FRAMES}"
    )
    look(browser, pages["wide"], 390)
    assert browser.execute_script(state, ".heat") == [True, True, True, "scroll → for all of it"]
    heads = browser.execute_script("return [...document.querySelectorAll('.heat thead th')].map(h => h.textContent)")
    assert heads[:2] == ["g", "state 0"], "what is the same in all rows takes no room beside the values"
    assert "; 5 records in each group; each ± " in browser.find_element("css selector", ".caption").text
    look(browser, pages["unlike"], 390)
    heads = browser.execute_script("return [...document.querySelectorAll('.heat thead th')].map(h => h.textContent)")
    assert heads[:3] == ["g", "records", "± 95%"], "what values are read with is seen before scrolling"
    assert browser.execute_script("return document.querySelector('.heat td').textContent") == "8"
    look(browser, pages["wide"], 390)
    browser.execute_async_script(scroll)
    assert browser.execute_script(state, ".heat")[:3] == [True, False, True], "at its end it does not fade"
    assert browser.execute_script("return document.querySelector('.heat tbody th').getBoundingClientRect().left") >= 0
    look(browser, pages["steep"], 1280)
    assert browser.execute_script(state, ".noise")[:3] == [False, False, False]
    look(browser, pages["ledger"], 390)
    no, what = browser.execute_script(
        "return [...document.querySelectorAll('.ledger tbody > tr > *')].map(e => e.getBoundingClientRect().width)"
    )[:2]
    assert 0 < no < 50 < 140 < what, "its number takes little of the room, its words most"
    look(browser, pages["network"], 390)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script(state, ".paper")[:3] == [False, False, False], "three nodes fit"
    words = browser.execute_script("return [...document.querySelectorAll('.paper text')].map(t => t.textContent)")
    caption = browser.find_element("css selector", "figure:has(.paper) figcaption").text
    assert "Arrows go from parents" in caption
    assert "decides the noise" in caption or "quilt" in caption.lower(), caption
    assert not any(text and text in caption for text in words if len(text) > 20)
