"""Long work says how far it is: by lines where there is no terminal, by a bar with its share where there is one."""

import io
import re
import time
from typing import Any

import pytest
from rich.console import Console

from pufferfish._base.progress import report_progress
from pufferfish.cli import print as printing


def waited(shown: Any, pattern: str) -> str:
    """Wait until standard error shows something, at most for some seconds."""
    text = ""
    for _ in range(500):
        text += shown()
        if re.search(pattern, text):
            break
        time.sleep(0.02)
    return text


def test_short_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with printing.progress("checking"):
        report_progress("a part", 0.5)
    assert capsys.readouterr() == ("", "")


def test_long_work_writes_plain_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich take every file for a terminal
    monkeypatch.setattr(printing, "_FIRST", 0.01)
    monkeypatch.setattr(printing, "_THEN", 0.02)

    def err() -> str:
        found = capsys.readouterr()
        assert not found.out
        return found.err

    with printing.progress("checking"):
        silent = waited(err, r"\n")
        report_progress("a part", 0.4)
        told = waited(err, "40%")
    assert silent.splitlines()[0] == "checking: at work, 0 s so far"
    assert "checking: a part: 40% of this step, 0 s so far\n" in told
    assert "\x1b" not in silent + told
    err()
    time.sleep(0.1)
    assert err() == ""  # once it is over nothing more is said


def test_bars_show_their_share(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=120)
    with printing._bar("checking", console) as listen:
        listen("checking", 0.0)
        listen("[a] part", 0.4)
        text = waited(shown.getvalue, "40%")
    assert "checking: [a] part" in text
    assert "40%" in text
