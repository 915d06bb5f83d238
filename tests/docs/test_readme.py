"""What README and docs say can be done can be done."""

import re
import shlex
from pathlib import Path

import click
import numpy as np
import pytest

import pufferfish as pf
from pufferfish.cli import main

REPOSITORY = Path(__file__).parent.parent.parent
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def blocks_of(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def blocks(language: str) -> list[tuple[str, str]]:
    return [(f"{page.name}-{i}", text) for page in PAGES for i, text in enumerate(blocks_of(page, language))]


LONG = {"guarantee.md"}
"""Compares mechanisms over a day, among them the slowest."""
WITH_PYTHON = [
    pytest.param(page, marks=[pytest.mark.slow] * (page.name in LONG), id=page.name)
    for page in PAGES
    if "```python\n" in page.read_text()
]


@pytest.mark.grid(keep=len(WITH_PYTHON))
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_of_every_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page by itself, as a reader starts who opens only this one."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    rows = [f"S{s},2024-05-01 08:{m:02d},{rng.choice(['rest', 'active'])}" for s in range(3) for m in range(60)]
    (tmp_path / "steps.csv").write_text("id,minute,activity\n" + "\n".join(rows) + "\n")
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], states=["rest", "active"])
    pf.write_model(pf.Model(theta=pf.ChainClass((chain,))), "model.json")
    namespace: dict[str, object] = {}
    for i, text in enumerate(blocks_of(page, "python")):
        exec(compile(text, f"{page.name}-{i}", "exec"), namespace)
    if page.name == "README.md":
        assert (tmp_path / "release.json").exists()
        assert (tmp_path / "release.png").exists()


def command_lines() -> list[tuple[str, str]]:
    texts = [(name, text) for name, text in blocks("sh")]
    for name, command in [("main", main), *main.commands.items()]:
        texts.append((name, command.help or ""))
        if isinstance(command, click.Group):
            texts += [(f"{name} {inner}", nested.help or "") for inner, nested in command.commands.items()]
    found: list[tuple[str, str]] = []
    for name, text in texts:
        joined = re.sub(r"\\?\n\s*(--|\\)", r" \1", text)
        found += [(name, line.strip()) for line in joined.splitlines() if line.strip().startswith("pufferfish ")]
    return found


@pytest.mark.grid(keep=500)
@pytest.mark.parametrize(("name", "line"), command_lines())
def test_every_command_line_shown_is_accepted(name: str, line: str) -> None:
    words = [w for w in shlex.split(line, comments=True) if w != "\\"]
    command, arguments = main.commands[words[1]], words[2:]
    if isinstance(command, click.Group):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    command.parse_args(click.Context(command, info_name=words[1]), arguments)


def test_make_targets_named_in_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", (REPOSITORY / "README.md").read_text(), flags=re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


@pytest.mark.grid(keep=len(PAGES))
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    assert "make test" in (REPOSITORY / ".ci" / "run").read_text().splitlines()


def test_every_public_name_is_on_the_python_page() -> None:
    text = (REPOSITORY / "docs" / "python.md").read_text()
    for name in pf.__all__:
        assert re.search(rf"\b{name}\b", text), name
