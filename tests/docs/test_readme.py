"""What README and docs say can be done can be done."""

import re
import shlex
from pathlib import Path

import click
import numpy as np
import pytest

import pufferfish as pf
import release_cases
from commands import every_command, run
from pufferfish.cli import main

REPOSITORY = Path(__file__).parent.parent.parent
DOCS = REPOSITORY / "docs"
HOW_TO = [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]
PAGES = [*HOW_TO, *sorted((DOCS / "proofs").glob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def anchors(page: Path) -> set[str]:
    """Return what a link can point at: headings as GitHub names them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def blocks_of(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def blocks(language: str) -> list[tuple[str, str]]:
    return [(f"{name_of(page)}-{i}", text) for page in PAGES for i, text in enumerate(blocks_of(page, language))]


def test_the_wheel_is_tried_with_blocks_that_the_readme_has() -> None:
    script = (REPOSITORY / "scripts" / "smoke.sh").read_text()
    wanted = re.findall(r'^first_block (\w+) "([^"]+)" >', script, flags=re.MULTILINE)
    assert len(wanted) == 2
    for language, words in wanted:
        assert any(words in block for block in blocks_of(REPOSITORY / "README.md", language)), (language, words)


LONG = {"guarantee.md", "networks.md", "intervals.md"}
"""They compare mechanisms over a day, among them the slowest."""
ON_SPARK = {"spark.md"}
"""Takes the session that runs."""
SLOW = (pytest.mark.slow,)
FOLLOWED = {"project.md": (), "tutorial.md": (), "patients.md": SLOW, "composing.md": SLOW, "power_meter.md": SLOW}
"""Pages whose commands and Python are run one after the other, as a reader does."""
ELSEWHERE = {"bulletin.md", "pipeline.md"}
"""They are followed in other tests."""
WITH_PYTHON = [
    pytest.param(
        page,
        marks=[pytest.mark.slow] * (page.name in LONG)
        + [pytest.mark.spark, pytest.mark.program] * (page.name in ON_SPARK),
        id=name_of(page),
    )
    for page in PAGES
    if "```python\n" in page.read_text() and page.name not in {*FOLLOWED, *ELSEWHERE}
]


@pytest.mark.grid(keep=len(WITH_PYTHON))
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_of_every_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, slow: bool
) -> None:
    """Each page by itself, as a reader starts who opens only this one."""
    if not slow:
        release_cases.end_searches_soon(monkeypatch)
    if page.name in ON_SPARK:
        request.getfixturevalue("spark")
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
        assert (tmp_path / "in-python.json").exists()
        assert (tmp_path / "in-python.png").exists()


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks) for name, marks in FOLLOWED.items()])
def test_a_page_can_be_followed_from_beginning_to_end(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    namespace: dict[str, object] = {}
    for language, text in re.findall(r"```(python|sh)\n(.*?)```", (DOCS / name).read_text(), flags=re.DOTALL):
        if language == "python":
            exec(compile(text, name, "exec"), namespace)
            continue
        for line in text.replace("\\\n", " ").splitlines():
            program, *arguments = shlex.split(line, comments=True)
            result = run(*arguments)
            assert (program, result.exit_code) == ("pufferfish", 0), (line, result.output)
    assert name == "project.md" or pf.Release.from_json("release.json").epsilon == 1.0


def command_lines() -> list[tuple[str, str]]:
    texts = [(name, text) for name, text in blocks("sh")]
    for name, command in [("main", main), *every_command().items()]:
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
    command, arguments = every_command()[words[1]], words[2:]
    if isinstance(command, click.Group):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    context = click.Context(command, info_name=words[1])
    if name.startswith(
        ("docs/project.md", "docs/office.md", "docs/pipeline.md", "init")
    ):  # in a folder that says the rest
        context.default_map = {
            "tables": ["x.csv"],
            "model": "m.json",
            "ledger": "l.json",
            "output": "m.json",
            "budget": 1,
        }
    command.parse_args(context, arguments)


def test_make_targets_named_in_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", (REPOSITORY / "README.md").read_text(), flags=re.MULTILINE))
    assert {"demo", "test"} <= named <= targets


@pytest.mark.grid(keep=len(PAGES))
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if not target.startswith("http"):
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), f"{name_of(page)} links to {target}"
            assert not anchor or anchor in anchors(there), f"{name_of(page)} links to {target}"


def test_the_files_that_the_architecture_names_exist() -> None:
    """But for those that somebody who adds something writes."""
    package = REPOSITORY / "src" / "pufferfish"
    named = set(re.findall(r"`([\w/]+/|[\w/]+/\w+\.py)`", (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")))
    assert len(named) > 30
    missing = {name for name in named if not any((folder / name).exists() for folder in (REPOSITORY, package))}
    assert missing == {"cli/my_command.py", "mechanisms/my_bound.py", "one_query/", "show/", "theta/my_class.py"}


def test_docstrings_name_pages_and_sections_that_exist() -> None:
    found = 0
    for path in sorted((REPOSITORY / "src").rglob("*.py")):
        for page, heading in re.findall(r"\b(docs/[\w/]+\.md)(?:, \"([^\"]+)\")?", path.read_text()):
            found += 1
            assert (REPOSITORY / page).exists(), f"{path.name} names {page}"
            lines = (REPOSITORY / page).read_text().splitlines()
            assert not heading or any(re.fullmatch(rf"#+ {re.escape(heading)}", x) for x in lines), (path.name, heading)
    assert found > 10


def test_docstrings_are_whole() -> None:
    """What is said of a parameter begins as a sentence does, and no example stands twice."""
    described = 0
    for path in sorted((REPOSITORY / "src" / "pufferfish").rglob("*.py")):
        text = path.read_text()
        for first in re.findall(r"^ *[a-z][\w, ]* : [^\n]+\n +([^\n]+)", text, flags=re.MULTILINE):
            described += 1
            assert re.match(r"[A-Z0-9`:(*\"{]|k distinct", first), f"{path.name}: {first}"
        assert not re.search(r"^( *>>> [^\n]+\n[^\n]+\n)\1", text, flags=re.MULTILINE), path.name
    assert described > 50


def test_what_is_public_of_every_mechanism_is_described() -> None:
    kept = {name for name in vars(pf.LeakagePropagation(pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), 9)) if name[0] != "_"}
    described = (pf.LeakagePropagation.__mro__[2].__doc__ or "").partition("Attributes")[2]
    assert kept == {"theta", "model", "length", "rows", "secrets", "protection"}
    assert all(re.search(rf"\b{name}\b", described) for name in (*kept, "delta"))


def test_proofs_are_on_pages_of_their_own() -> None:
    for page in HOW_TO:
        assert not re.search(r"∎|\*Proof", page.read_text()), f"{name_of(page)} has a proof; it belongs to docs/proofs"
    index = (DOCS / "proofs" / "README.md").read_text()
    for page in (DOCS / "proofs").glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index, f"docs/proofs/README.md lacks {page.name}"


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    lines = (REPOSITORY / ".ci" / "run").read_text().splitlines()
    assert "make test || tests=$?" in lines
    assert lines[-1] == "exit $((tests ? tests : styles))"


def test_every_public_name_is_on_the_python_page() -> None:
    text = (REPOSITORY / "docs" / "python.md").read_text()
    for name in pf.__all__:
        assert re.search(rf"\b{name}\b", text), name
