"""Libraries that tests compare with, and that a machine may lack."""

from typing import Any

import pytest


def pyagrum_or_skip() -> Any:
    """Return pyAgrum, or skip; it needs a system library that a bare Debian machine lacks."""
    reason = "pyAgrum cannot be loaded: pip install pyagrum (and on Debian apt-get install libgomp1)"
    return pytest.importorskip("pyagrum", reason=reason, exc_type=ImportError)
