"""Pages that begin with ``pufferfish example`` can be followed from beginning to end, with the wheel alone."""

import re
import shlex
import textwrap
from pathlib import Path

import pytest

import pufferfish as pf
from commands import run

REPOSITORY = Path(__file__).parent.parent.parent
BEGINS = "pufferfish example"
NOT_HERE = ("examples/data", "asia.bif", "make ", "timestamp", "completion")
"""Blocks about files of the repository, about the reader's own network, or for another shell."""
QUICK = {"many_subjects.md"}
FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", flags=re.DOTALL | re.MULTILINE)

PAGES = [
    pytest.param(page, marks=[pytest.mark.slow] * (page.name not in QUICK), id=page.name)
    for page in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md")))
    if re.search(rf"^ *{BEGINS}", page.read_text(), flags=re.MULTILINE)
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_with_the_example_can_be_followed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for _, language, block in FENCED.findall(page.read_text()):
        text = textwrap.dedent(block)
        if language == "python":
            exec(compile(text, page.name, "exec"), namespace)
            continue
        if language not in ("sh", "") or any(words in text for words in NOT_HERE):
            continue
        for line in re.sub(r"\\\n", " ", text).splitlines():
            program, *arguments = shlex.split(line, comments=True) or [""]
            if program == "pufferfish":
                result = run(*arguments)
                assert result.exit_code == 0, (line, result.output)
            elif language == "sh":
                assert not program, line
    assert list(tmp_path.glob("*-20*.csv"))


def test_pages_that_need_files_say_where_they_come_from() -> None:
    for page in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))):
        commands = " ".join(block for _, language, block in FENCED.findall(page.read_text()) if language == "sh")
        if re.search(r"\bsteps\.csv|\b(survey|meter)-20\d\d\.csv", commands):
            assert BEGINS in commands or "example" in page.read_text(), page.name


def test_margins_of_error_in_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A histogram of the example at ε = 1: what is hidden decides the error."""
    monkeypatch.chdir(tmp_path)
    reading = {"state": "activity", "subject": "id", "time": "minute", "max_gap": "1min"}
    run("example")
    survey, steps = (pf.read_sequences(name, **reading) for name in ("survey-2019.csv", "steps.csv"))
    bound = pf.LeakagePropagation(pf.Model.fitted(pf.fit_chain(survey), survey), steps.length)
    rows = re.findall(r"\| (?:one|any|all)[^|]+\|([^|]*)\| ([\d.]+) \|", (REPOSITORY / "README.md").read_text())
    assert len(rows) == 4
    for option, margin in rows:
        unit = option.strip().strip("`").removeprefix("--protect ") or None
        noise = bound.calibrate(pf.Histogram(), 1.0, noise="best", protect=unit)
        assert f"{noise.accuracy(0.05):.2g}" == f"{float(margin):.2g}", option
