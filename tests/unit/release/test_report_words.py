"""What an office says of a page: its title and labels, its words in another language; and what it leaves out."""

import dataclasses
import json
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import polars as pl
import pytest

import commands
import pufferfish as pf
import release_cases
from pufferfish._base.progress import TookTooLong
from pufferfish.errors import ParameterError
from pufferfish.release.show import page as show_page
from pufferfish.release.show.page import Cover, Source, report_page, sentences_of
from pufferfish.release.show.values import Look, values_part
from pufferfish.release.show.words import WORDS, Words, read_words, words_file


def made(values: list[float] | None = None) -> pf.Release:
    data = release_cases._series(["no", "yes"])
    noise = pf.GroupDP(release_cases.TWO, data.length).calibrate(pf.Histogram(relative=False), 1.0)
    found = pf.release(data, pf.Histogram(relative=False), noise)
    return found if values is None else msgspec.structs.replace(found, values=values, noisy_values=values)


def test_every_word_is_used_and_every_use_has_its_words() -> None:
    code = "".join(path.read_text() for path in Path(pf.release.__code__.co_filename).parent.glob("show/*.py"))
    by_name = {"lang", "office", "period", "contact", "hour", "weekday", "date", "month"}  # of options and groupings
    used = set(re.findall(r"""say\(\s*["'](\w+)["']""", code)) | set(re.findall(r"""WORDS\["(\w+)"\]""", code))
    chosen = {word for pair in re.findall(r"""say\(\s*"(\w+)" if .*? else "(\w+)\"""", code) for word in pair}
    assert used | chosen | by_name == set(WORDS), (used | chosen) ^ set(WORDS)


def test_a_page_in_another_language(tmp_path: Path) -> None:
    """The table that a command writes, each word of it turned around; the sentences of the record beside theirs."""
    found = made()
    found.to_json(tmp_path / "r.json")
    done = commands.run("words", tmp_path / "r.json", "--output", tmp_path / "words.toml")
    assert done.exit_code == 0, done.output
    table = tomllib.loads((tmp_path / "words.toml").read_text())
    assert table.pop("sentences") == {text: text for text in sentences_of([found])}
    assert table == dict(WORDS)

    def turned(text: str) -> str:
        return "".join(part if part.startswith("{") else part[::-1] for part in re.split(r"(\{\w+\})", text)[::-1])

    words = {key: "xx" if key == "lang" else turned(text) for key, text in WORDS.items()}
    lines = [f"{key} = {json.dumps(text)}" for key, text in words.items()]
    lines += ["[sentences]", *(f"{json.dumps(text)} = {json.dumps(text[::-1])}" for text in sentences_of([found]))]
    (tmp_path / "turned.toml").write_text("\n".join(lines))
    out = tmp_path / "r.html"
    done = commands.run("report", tmp_path / "r.json", "--words", tmp_path / "turned.toml", "--output", out)
    assert done.exit_code == 0, done.output
    page = out.read_text()
    assert page.startswith('<!doctype html>\n<html lang="xx">')
    assert f"<h2>{turned(WORDS['hidden'])}</h2>" in page
    assert found.hides[::-1] in page
    shown = re.sub(r"<(script|style|details|pre)\b.*?</\1>", "", page.split("<body", 1)[1], flags=re.DOTALL)
    for text in (*WORDS.values(), *sentences_of([found])):
        plain = max(re.split(r"\{\w+\}", text), key=len)
        assert len(plain) < 12 or plain not in shown, plain
    again = commands.run(
        "report", tmp_path / "r.json", "--words", tmp_path / "turned.toml", "--overwrite", "--output", out
    )
    assert again.exit_code == 0, "a report in any language is known again"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('budgt = "x"', r"a page has no words 'budgt'\. Did you mean 'budget'\?"),
        ('hides_more = "at {epsilon.__class__}"', r"hides_more is .* and its words in braces are \{epsilon\}"),
        ('hides_more = "at {epsilon!r:>9}"', "hides_more is"),
        ('hides_more = "at {"', "hides_more is"),
        ('title = "{}"', "its words in braces are none; write {{ for a brace"),
        ('lang = "\\"><script>"', "expected a language such as de"),
        ("title = 3", "expected words in quotes"),
        ("sentences = 3", r"a table \[sentences\]"),
        ("title", "is no TOML"),
    ],
)
def test_a_translation_that_does_not_fit_is_refused(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "w.toml").write_text(content)
    with pytest.raises(ParameterError, match=says):
        read_words(tmp_path / "w.toml")


def test_words_never_become_markup(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    (tmp_path / "w.toml").write_text(f'hidden = "{hostile}"\nscroll = "{hostile}"\n')
    cover = Cover(
        title=hostile, office=hostile, note=hostile, labels={"no": hostile}, words=read_words(tmp_path / "w.toml")
    )
    page = report_page([Source(made())], cover=cover).decode()
    assert hostile not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 6
    assert words_file(['a "b" \x7f']).decode().endswith('"a \\"b\\" \\u007f" = "a \\"b\\" \\u007f"\n')


def test_the_project_says_what_stands_above_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made().to_json(tmp_path / "r.json")
    (tmp_path / "de.toml").write_text('lang = "de"\nhidden = "Was verborgen bleibt"\n')
    (tmp_path / "pufferfish.toml").write_text(
        '[report]\ntitle = "Steps"\noffice = "An office"\nperiod = "May"\ncontact = "a@b.example"\nnote = "A note."\n'
        'words = "de.toml"\n[labels]\nyes = "Ja, gewiss"\n'
    )
    monkeypatch.chdir(tmp_path)
    done = commands.run("report", "r.json", "--office", "Another office", "--output", "r.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "r.html").read_text()
    for text in (
        "<h1>Steps</h1>",
        "May",
        "a@b.example",
        "A note.",
        "Was verborgen bleibt",
        "Ja, gewiss",
        "Another office",
    ):
        assert text in page, text
    assert "An office" not in page, "options of the command line come first"
    (tmp_path / "pufferfish.toml").write_text('[report]\ntitel = "Steps"\n')
    commands.refused("report", "r.json", "--output", "s.html", says=["'titel'. Did you mean 'title'?"])


def test_values_below_their_error_are_left_out_where_asked(tmp_path: Path) -> None:
    """Of the page, its pictures and its table for programs: neither the value nor what noise left of it."""
    error = made().accuracy(0.05)
    found = made([error - 1.0, error + 1234.0])
    weak, strong = (f"{value:,.0f} ± " for value in found.values)
    assert weak in values_part(found)
    shown = values_part(found, Look(suppress=True))
    assert weak not in shown
    assert strong in shown
    assert "They are left out here." in shown
    assert shown.count("<rect") == 1
    page = report_page([Source(found)], brief=True, suppress=True).decode()
    content = unquote(re.search(r'href="data:text/csv;charset=utf-8,([^"]*)"', page)[1])  # type: ignore[index]
    table = pl.read_csv(content.encode())
    assert table["value"].to_list() == [None, found.values[1]]
    assert weak not in page
    assert weak in report_page([Source(found)], brief=True).decode()


@pytest.mark.parametrize("groups", [3, 8])
def test_hours_of_groups_are_lines_or_a_heat_table(groups: int) -> None:
    rows: dict[str, list[Any]] = {"s": [], "g": [], "t": []}
    for hour in range(24):
        for g in range(groups):
            rows["s"] += ["no", "yes"]
            rows["g"] += [f"<g{g}>"] * 2
            rows["t"] += [f"2026-03-02T{hour:02}:00:00"] * 2
    frame = pl.DataFrame(rows).with_columns(pl.col("t").str.to_datetime())
    data = pf.read_sequences(frame, "s", by=["hour(t)", "g"])
    noise = pf.GroupDP(release_cases.TWO, data.length).calibrate(pf.Count("yes"), 5.0)
    shown = values_part(pf.release(data, pf.Count("yes"), noise))
    assert shown.count('class="bands on-wide"') == (groups == 3)
    assert shown.count('class="bands on-narrow"') == (3 if groups == 3 else 0)
    assert ('class="heat"' in shown) == (groups == 8)
    assert "<g1>" not in shown
    assert "&lt;g1&gt;" in shown
    assert "hour of the day" in shown


def test_weekdays_stand_in_the_order_of_the_week() -> None:
    days = [f"2026-03-{2 + i:02}" for i in range(7)]  # from a Monday
    frame = pl.DataFrame({"s": ["no", "yes"] * 7, "t": sorted(days * 2), "g": ["b", "a"] * 7})
    frame = frame.with_columns(pl.col("t").str.to_date()).filter((pl.col("g") == "b") | (pl.col("t").dt.weekday() == 1))
    data = pf.read_sequences(frame, "s", by=["g", "weekday(t)"])
    noise = pf.GroupDP(release_cases.TWO, data.length).calibrate(pf.Count("yes"), 5.0)
    shown = values_part(pf.release(data, pf.Count("yes"), noise))
    assert re.findall(r">(Mon|Tue|Wed|Thu|Fri|Sat|Sun)</text>", shown.split('class="bands on-narrow"')[0]) == [
        "Mon",
        "Tue",
        "Wed",
        "Thu",
        "Fri",
        "Sat",
        "Sun",
    ]


def test_each_subject_stands_in_a_table_that_is_searched(tmp_path: Path) -> None:
    data = release_cases._series(["no", "yes"])
    noise = pf.GroupDP(release_cases.TWO, data.length).calibrate(pf.Histogram(), 1.0)
    each = pf.release_each(data, pf.Histogram(), noise, tmp_path / "v.csv")
    page = report_page([Source(each, values=tmp_path / "v.csv")], brief=True).decode()
    frame = pl.read_csv(tmp_path / "v.csv")
    for subject in frame["subject"].unique():
        assert f'<th scope="row">{subject}</th>' in page
    content = unquote(re.search(r'href="data:text/csv;charset=utf-8,([^"]*)"', page)[1])  # type: ignore[index]
    assert pl.read_csv(content.encode()).equals(frame)
    weak = int((frame["value"].abs() <= frame["error_95"]).sum())
    assert page.count(WORDS["weak_sign"]) == weak


def test_words_keep_their_braces() -> None:
    assert Words()("hides_more", epsilon="{x}") == "whatever other records tell, at ε = {x}"


def test_labels_give_each_state_a_name_of_its_own() -> None:
    look = Look(labels={"no": "yes"})
    with pytest.raises(ParameterError, match=r"\[labels\] give 'yes' to two states or groups"):
        values_part(made(), look)


def test_each_release_stands_in_the_budget_also_of_other_ledgers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ledgers may each have a first entry; and what was proved is said of each release."""
    data = release_cases._series(["no", "yes"])
    bound = pf.GroupDP(release_cases.TWO, data.length)
    noise = bound.calibrate(pf.Count("yes"), 1.0)
    found = []
    for source, budget in (("may.csv", 2.0), ("june.csv", 3.0)):
        month = dataclasses.replace(data, base=dataclasses.replace(data.base, source=source))
        found.append(pf.release(month, pf.Count("yes"), noise, ledger=pf.Ledger(bound, budget, base=month)))
    page = report_page([Source(release, Path(f"{i}.json")) for i, release in enumerate(found)]).decode()
    spent = re.findall(r'<td class="n">([^<]* / [^<]*)</td>', page)
    assert spent == ["1 / 2", "1 / 3"]
    seen: list[int] = []
    verify = show_page.verify

    def once(*given: Any, **more: Any) -> Any:
        seen.append(1)
        if len(seen) > 1:
            raise TookTooLong
        return verify(*given, **more)

    monkeypatch.setattr(show_page, "verify", once)
    page = report_page([Source(release) for release in found], brief=True).decode()
    assert "<strong>release 1:</strong> When this page was made the proof was computed again, and held." in page
    assert "<strong>release 2:</strong> When this page was made the proof was not computed again" in page
