"""The chart of the noise on a page: every line can be told from the others, and every name from its neighbours."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path

import commands
import pufferfish as pf
from pufferfish._base.words import at_most
from pufferfish.compare.noise import noise_chart


def drawn(errors: Mapping[str, Sequence[float]], own: str) -> str:
    epsilons = [float(e) for e in range(1, 10)]
    return noise_chart(list(errors), list(errors.values()), epsilons, 5.0, list(errors).index(own))[0]


def falling(from_: float, to: float) -> list[float]:
    return [from_ * (to / from_) ** (i / 8) for i in range(9)]


def names_of(page: str) -> list[str]:
    return re.findall(r'class="name[^"]*">([^<]*)<', page)


def test_names_of_lines_that_end_at_one_point_are_one_block() -> None:
    """Also where another line ends as high, but elsewhere; the page's own mechanism stands first in its block."""
    ended = [*falling(1000, 2)[:7], 0.0, 0.0]
    level = [*falling(5000, 2)[:7], ended[6], ended[6]]
    page = drawn({"B": ended, "Elsewhere": level, "Own": ended, "A": falling(9e4, 9e3), "C": ended}, "Own")
    names = names_of(page)
    assert names.index("Own") + 1 == names.index("= B") == names.index("= C") - 1
    assert "Elsewhere" in names
    assert page.count('class="leader"') == 3 + 1, "a line to each block, and the bracket of the one of three"
    assert "A name with = before it" in page
    alone = drawn({"Own": falling(1000, 2), "A": falling(9e4, 9e3)}, "Own")
    assert sorted(names_of(alone)) == ["A", "Own"]
    assert "A name with = before it" not in alone


def test_lines_are_told_apart_without_colour() -> None:
    """Each has strokes of its own, in both charts and beside both its names; the page's own line alone is whole."""
    page = drawn({f"M{i}": falling(1000 + 900 * i, 2 + 3 * i) for i in range(9)}, "M4")
    dashes = re.findall(r'class="line of-[0-9]" stroke-dasharray="([^"]*)"', page)
    assert len(dashes) == 4 * 8
    assert len(set(dashes)) == 8
    assert page.count('class="line own"') == 4


def test_lines_have_their_names_in_a_list_for_narrow_screens() -> None:
    """The page's own mechanism first, the others from the top of the chart."""
    page = drawn({"Low": falling(1000, 2), "Own": falling(4000, 30), "High": falling(9e4, 9e3)}, "Own")
    listed = page[page.index('<ul class="lines') :]
    assert re.findall(r"<span>([^<]*)</span></li>", listed) == ["Own", "High", "Low"]


def test_a_preview_of_several_queries_prints_their_commands(tmp_path: Path) -> None:
    """One page: a slider for each query, the promise and Θ once, and the command that releases it at that place."""
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "a b"])
    pf.write_model(pf.Model(theta=chain), tmp_path / "m.json")
    out = tmp_path / "p.html"
    asked = ("compare", tmp_path / "m.json", "--length", "50", "--query", "histogram", "--query", "count:a b")
    done = commands.run(*asked, "--epsilon", "1", "--protect", "5", "--report", out)
    assert done.exit_code == 0, done.output
    page = out.read_text()
    assert page.count('type="range"') == 2
    assert page.count("What would be promised, and what not") == page.count("What an adversary may believe") == 1
    shown = re.findall(r'class="command"><code>([^<]*)</code>', page)
    given = [shlex.split(unescape(line)) for line in shown]
    model = str(tmp_path / "m.json")
    begins = ["pufferfish", "release", "TABLE", "--model", model, "--query"]
    ends = ["--protect", "5", "--epsilon", "1"]
    assert given == [[*begins, "histogram", *ends], [*begins, "count:a b", *ends]]
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    assert [about["id"] for about in data] == ["noise-0", "noise-1"]
    assert [about["commands"][40] for about in data] == [unescape(line) for line in shown]
    assert all(line.endswith(f" --epsilon {at_most(10 ** (i / 40 - 1))}") for i, line in enumerate(data[0]["commands"]))
    for more in ("--plot", "--draw"):
        commands.refused(*asked, "--epsilon", "1", more, tmp_path / "x.png", says=["one query"])
    one = commands.run(*asked[:-2], "--accuracy", "0.3", "--report", tmp_path / "one.html")
    assert one.exit_code == 0, one.output
    assert 'class="command"' in (tmp_path / "one.html").read_text()
