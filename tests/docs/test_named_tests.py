"""Pages that say which test holds a claim name tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["SECURITY.md", "docs/threat_model.md", "docs/faults.md", "docs/known_limits.md"]


@pytest.mark.parametrize("page", PAGES)
def test_every_test_and_file_that_a_page_names_is_there(page: str) -> None:
    text = (ROOT / page).read_text()
    for path, _, name in re.findall(r"(?<!\w)((?:paper/)?tests/[\w/]+(?:\.py)?)(::(\w+))?", text):
        found = ROOT / path
        assert found.exists(), f"{page} names {path}"
        assert not name or f"def {name}(" in found.read_text(), f"{page} names {path}::{name}"
    for path in re.findall(
        r"`((?:_\w+|theta|queries|mechanisms|data|fit|compare|robustness|check|ledger|release|cli)/[\w/]*(?:\.py)?)`",
        text,
    ):
        assert (ROOT / "src/pufferfish" / path).exists(), f"{page} names {path}"


def test_each_attempt_of_an_adversary_has_its_test() -> None:
    page = (ROOT / "docs/threat_model.md").read_text()
    for heading in ("## What is public", "## What an adversary could try"):
        rows = [line for line in page.partition(heading)[2].partition("\n## ")[0].splitlines() if line.startswith("| ")]
        assert len(rows) > 4
        for row in rows[1:]:
            assert "tests/" in row, row
