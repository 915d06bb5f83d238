"""A public table, a private one, and a model fitted to the first; a folder with files of every kind."""

import shutil
from pathlib import Path

import pytest

import cli_folder
import release_cases
from commands import READING, run, write_table


@pytest.fixture(autouse=True)
def _short_search(monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    """What the best shape of noise is, is not tested here."""
    if not slow:
        release_cases.end_searches_soon(monkeypatch)


@pytest.fixture
def public(tmp_path: Path) -> Path:
    return write_table(tmp_path / "public.csv", 1)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    return write_table(tmp_path / "private.csv", 2)


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The model as it is written: fitted once for all tests."""
    folder = tmp_path_factory.mktemp("fitted")
    path = folder / "model.json"
    result = run("fit", write_table(folder / "public.csv", 1), *READING, "--output", path)
    assert result.exit_code == 0, result.output
    return path.read_bytes()


@pytest.fixture
def model(tmp_path: Path, public: Path, fitted: bytes) -> Path:
    path = tmp_path / "model.json"
    path.write_bytes(fitted)
    return path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a model, a ledger and a release with its picture: made once, and copied for each test."""
    path = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(path)
        cli_folder.make()
    return path


@pytest.fixture
def folder(tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """These files, in the folder that the commands run in."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path
