"""The site: every page has a place, every public name is in the reference, and the pages name what exists."""

import re
from pathlib import Path

import pytest

import pufferfish as pf

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
NAVIGATION = (REPOSITORY / "mkdocs.yml").read_text()


def test_every_page_has_a_place_in_the_navigation() -> None:
    pages = [*DOCS.glob("*.md"), *(DOCS / "proofs").glob("*.md")]
    for page in pages:
        assert f" {page.relative_to(DOCS).as_posix()}\n" in NAVIGATION, f"mkdocs.yml, nav, lacks {page.name}"


def test_nothing_is_fetched_from_elsewhere() -> None:
    assert "font: false" in NAVIGATION
    assert "http" not in re.sub(r"#.*", "", NAVIGATION)


def test_the_reference_has_every_public_name_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in ("mkdocs", "latex2mathml"):
        pytest.importorskip(tool, reason="the tools of the site are not installed (extra docs)")
    monkeypatch.syspath_prepend(str(REPOSITORY / "scripts"))
    import docs_hooks

    parts = docs_hooks.public_names()
    assert sorted(name for names in parts.values() for name in names) == sorted(set(pf.__all__) - {"errors"})
    for part in parts:
        assert f" reference/{part}.md\n" in NAVIGATION


def test_lists_are_read_alike_by_the_site_and_by_repository_browsers() -> None:
    """A list needs an empty line before it, and what belongs to an item is indented by four."""
    for page in [*DOCS.glob("*.md"), *(DOCS / "proofs").glob("*.md"), *REPOSITORY.glob("*.md")]:
        fenced, before = False, ""
        for number, line in enumerate(page.read_text().splitlines(), 1):
            where = f"{page.name}:{number}"
            if re.match(r" {1,3}(```|[-*] |\d+\. )", line) and not fenced:
                raise AssertionError(f"{where}: indent by four spaces in a list")
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced and re.match(r"([-*]|\d+\.) ", line):
                assert not before or re.match(r"[-*] |\d+\. |\s", before), f"{where}: a list needs an empty line before"
            before = line


@pytest.mark.parametrize("page", ["paper_map.md", "stable.md"])
def test_names_and_files_exist(page: str) -> None:
    text = (DOCS / page).read_text()
    classes = re.findall(r"`([A-Z]\w+|wasserstein_inf|robustness|read_\w+|fit_\w+)`", text)
    assert len(classes) > 20
    for name in classes:
        assert name in pf.__all__, f"{page} names {name}"
    for path in re.findall(r"`((?:\w+/)+\w+\.py)`", text):
        place = REPOSITORY if path.startswith(("tests/", "paper/")) else REPOSITORY / "src" / "pufferfish"
        assert (place / path).exists(), f"{page} names {path}"


def test_every_place_has_the_version_of_the_package() -> None:
    version = re.search(r'^version = "(.+)"$', (REPOSITORY / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert version is not None
    assert f"\nversion: {version[1]}\n" in (REPOSITORY / "CITATION.cff").read_text()
    assert f"\nVersion: {version[1]}\n" in (REPOSITORY / "r" / "DESCRIPTION").read_text()
    wheels = [
        re.findall(r"pufferfish_privacy-(.+?)-py3-none-any\.whl", (REPOSITORY / page).read_text())
        for page in ("README.md", "docs/r.md")
    ]
    assert all(wheels)
    assert {name for names in wheels for name in names} == {version[1]}
