"""The words of a page: one for every part of time that records can be grouped by."""

import json
import re
import tomllib
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pufferfish as pf
from commands import run
from pufferfish.data.groupings import PARTS
from pufferfish.release.show.words import WORDS, Words

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["<70", ">=70"])


@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_time_has_a_word_on_the_page(part: str, tmp_path: Path) -> None:
    times = [datetime(2026, 3, 1) + timedelta(hours=i) for i in range(1500)]
    table = pl.DataFrame({"t": times, "x": [50.0, 90.0] * 750})
    data = pf.read_sequences(table, "x", time="t", max_gap="1h", by=[f"{part}(t)"], bins=[0, 70, 200])
    model = pf.Model(theta=CHAIN, bins=[0, 70, 200], step="1h")
    query = pf.query("mean", model)
    found = pf.release(data, query, pf.LeakagePropagation(model, data.length).calibrate(query, 5.0))
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Bins count at their middle, so a value can be off by 65 beside the noise" in page
    assert "values below 0 count as 0, and those of 200 or more as 200" in page


def test_shares_whose_error_is_all_there_is_are_weak() -> None:
    noise = pf.GroupDP(CHAIN, 4).calibrate(pf.Histogram(), 0.5)
    found = pf.release(["<70", ">=70"] * 2, pf.Histogram(), noise)
    assert found.accuracy_95.each > 1
    assert str(found).count("○") >= 2


STATES = ["q0", "q1"]
TWO = pf.MarkovChain([[0.6, 0.4], [0.3, 0.7]], states=STATES)
ROWS = pl.DataFrame(
    {
        "id": np.repeat(["p1", "p2", "p3"], 200),
        "t": np.tile(np.arange(200), 3),
        "s": np.random.default_rng(3).choice(STATES, 600),
        "g": np.repeat(["g1", "g2", "g1"], 200),
    }
)
NETWORK = pf.BayesianNetwork({"a": pf.CPT(STATES, [0.8, 0.2]), "b": pf.CPT(STATES, [[0.9, 0.1], [0.3, 0.7]], ["a"])})


def of_chains(query: Any, by: Any = None, noise: Any = "equal", **options: Any) -> Callable[[Path], Any]:
    def make(_: Path) -> Any:
        data = pf.read_sequences(ROWS, "s", subject="id", time="t", max_gap=1, by=by, where="t < 150")
        bound = pf.LeakagePropagation(TWO, data.length)
        return pf.release(
            data, query, bound.calibrate(query, 1.0, noise=noise), ledger=pf.Ledger(bound, 3.0), **options
        )

    return make


def of_each(path: Path) -> Any:
    data = pf.read_sequences(ROWS, "s", subject="id", time="t", max_gap=1)
    noise = pf.LeakagePropagation(TWO, data.length).calibrate(pf.Frequency("q0"), 1.0)
    return pf.release_each(data, pf.Frequency("q0"), noise, path / "r0.csv")


def of_network(_: Path) -> Any:
    rows = pf.read_rows(pl.DataFrame({"a": STATES * 20, "b": ["q0", "q0", "q1", "q1"] * 10}), NETWORK)
    return pf.release(rows, pf.Marginals(), pf.LeakagePropagation(NETWORK, rows.length).calibrate(pf.Marginals(), 2.0))


KINDS: dict[str, Callable[[Path], Any]] = {
    "possible values": of_chains(pf.Histogram(), postprocess="valid"),
    "transitions by group": of_chains(pf.Transitions(), "g"),
    "quantiles": of_chains(pf.Quantiles([0.5])),
    "totals, best noise": of_chains(pf.CDF(relative=False), "id<g", "best"),
    "each": of_each,
    "network": of_network,
}


def translated(text: str) -> str:
    """Put a letter that no English word has for every letter outside of braces."""
    parts = re.split(r"(\{\w+\})", text)
    return "".join(part if i % 2 else re.sub(r"[^\W\d_]", "ж", part) for i, part in enumerate(parts))


def texts_with_words(page: str, release: Any) -> list[str]:
    """Return the texts of a page in which a word is English, which names of the user's and of mechanisms are not."""
    page = re.sub(r"<(script|style|code|pre)\b.*?</\1>", "", page, flags=re.DOTALL)
    found = re.findall(r">([^<]+)<", page) + re.findall(r'aria-label="([^"]*)"', page)
    names = {"id", "UTC", "LEDGER.json", release.mechanism.title, *release.query.labels}
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    texts = [re.sub(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", "", unescape(text)) for text in found]
    return [text for text in texts if re.search(r"[A-Za-z]{2,}", text)]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_translation_leaves_no_english_word_on_the_page(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    release = KINDS[kind](tmp_path)
    if kind != "each":  # which is in its folder already
        release.to_json("r0.json")
    assert run("words", "r0.json", "--output", "w.toml").exit_code == 0
    table = tomllib.loads(Path("w.toml").read_text())
    sentences = table.pop("sentences")
    assert table == WORDS
    lines = [f"{key} = {json.dumps(translated(text))}" for key, text in table.items() if key != "lang"]
    lines += ["[sentences]", *(f"{json.dumps(text)} = {json.dumps(translated(text))}" for text in sentences)]
    Path("w.toml").write_text("\n".join(['lang = "ru"', *lines]))
    done = run("report", "r0.json", "--words", "w.toml", "--output", "r.html")
    assert done.exit_code == 0, done.output
    assert texts_with_words(Path("r.html").read_text(), release) == []
    assert run("report", "r0.json", "--output", "plain.html").exit_code == 0
    assert len(texts_with_words(Path("plain.html").read_text(), release)) > 60  # control: they are seen


def test_what_is_translated_is_text_and_never_markup() -> None:
    words = Words(sentences={"a < b": "<b>x</b>", "state": "Zustand"})
    markup: Any = '<p>a &lt; b</p><code>state</code> <td aria-label="state"> state </td><td>state b</td>'
    expected = '<p>&lt;b&gt;x&lt;/b&gt;</p><code>state</code> <td aria-label="Zustand"> Zustand </td><td>state b</td>'
    assert words.in_markup(markup) == expected
