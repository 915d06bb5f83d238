"""A public table, a private one, and a model fitted to the first."""

from pathlib import Path

import pytest

from commands import READING, run, write_table


@pytest.fixture
def public(tmp_path: Path) -> Path:
    return write_table(tmp_path / "public.csv", 1)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    return write_table(tmp_path / "private.csv", 2)


@pytest.fixture
def model(tmp_path: Path, public: Path) -> Path:
    path = tmp_path / "model.json"
    result = run("fit", public, *READING, "--output", path)
    assert result.exit_code == 0, result.output
    return path
