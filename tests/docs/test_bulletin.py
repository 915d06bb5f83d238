"""The guide to weekly releases runs as it is written, and what is spent is what it says."""

import json
import re
import shlex
import textwrap
from pathlib import Path

import pytest

import pufferfish as pf
from commands import run

PAGE = Path(__file__).parent.parent.parent / "docs" / "bulletin.md"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def test_the_bulletin_of_a_year(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    printed = ""
    for language, block in BLOCK.findall(PAGE.read_text()):
        if language == "python":
            exec(compile(textwrap.dedent(block), PAGE.name, "exec"), namespace)
            continue
        for line in re.sub(r"\\\n", " ", block).splitlines():
            result = run(*shlex.split(line)[1:])
            assert result.exit_code == 0, (line, result.output)
            printed += result.output
    assert "late rows, before those that were read last: 1," in printed
    assert "the releases fit Θ: none of 18 numbers is beyond what Θ allows" in printed
    book = json.loads(Path("book.json").read_text())
    spent = [entry["spent"] for entry in book["entries"]]
    assert spent[0] == pytest.approx(0.9, rel=1e-5)
    assert spent[:5] == [spent[0]] * 5  # the plan, and four weeks
    assert 0.9 < spent[5] <= 0.98
    assert spent[6] == spent[5]
    assert pf.Ledger.open("book.json").spent == spent[-1]
    assert pf.Release.from_json("week5.json").data.records == 801 * 7 + 1
