"""What the best shape of noise is, is not tested here: the search ends soon but for ``--slow``."""

import pytest

import release_cases


@pytest.fixture(autouse=True)
def _short_search(monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    if not slow:
        release_cases.end_searches_soon(monkeypatch)
