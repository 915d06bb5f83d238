"""The script that measures how far ε, a table and Θ walk through the package runs, and sees all three arrive."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "routes.py"


@pytest.mark.slow
def test_the_routes_of_three_things_are_measured():
    made = subprocess.run([sys.executable, str(SCRIPT), "--list"], capture_output=True, text=True, check=True)
    rows = re.findall(r"^\| (ε|one CSV|Θ).* \| (\d+) \| (\d+) \| (\d+) \|$", made.stdout, re.MULTILINE)
    assert [name for name, *_ in rows] == ["ε", "one CSV", "Θ"]
    for _, *numbers in rows:
        files, moves, returns = map(int, numbers)
        assert 1 < files <= moves == files + returns  # every file is entered once, and all other moves are returns
    for room in ("release/release.py", "data/_chains.py", "_core/propagation/chain.py"):
        assert room in made.stdout
