"""The program of ``make faults`` can be run: its shortest parts are."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent / "faults" / "run.py"


@pytest.mark.program
def test_no_promise_is_broken_by_engines_clocks_and_flipped_bits(slow: bool) -> None:
    parts = ["engines", "clock", "flips"] if slow else ["clock"]
    found = subprocess.run([sys.executable, PROGRAM, *parts, "--quick"], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count("; broken: 0\n") == len(found.stdout.splitlines()) == (10 if slow else 1)
