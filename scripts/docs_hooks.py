"""For the site: pages that are made of the repository's own files, and a page of reference for each part of the API.

The README is the site's first page. Links in these files are those of a repository browser; here they are turned into
links between pages of the site.
"""

import ast
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "examples/data/README.md": "household.md",
}
"""Files outside docs/ and the pages that they become."""

PARTS = {
    "theta": "Models",
    "fit": "Fitting and checking models",
    "queries": "Queries",
    "mechanisms": "Mechanisms and calibrations",
    "data": "Tables",
    "release": "Releases and ledgers",
    "witness": "Witnesses",
    "robustness": "Distances",
    "errors": "Errors",
}
"""Parts of the reference, in the order of the navigation, and their titles."""
BELONGS = {
    "calibration": "mechanisms",
    "comparison": "mechanisms",
    "report": "mechanisms",
    "check": "fit",
    "fit_forgetting": "fit",
    "fit_subjects": "fit",
    "model_file": "fit",
    "ledger": "release",
    "core": "robustness",
    "wasserstein_inf": "robustness",
}
"""Modules of the package that share a part with another one."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in PAGES.items():
        text = (ROOT / source).read_text()
        files.append(File.generated(config, page, content=re.sub(r"\]\(([^)#:]+)(#[^)]*)?\)", _link, text)))
    for part, names in public_names().items():
        lines = [f"# {PARTS[part]}", *(f"::: pufferfish.{name}" for name in names)]
        files.append(File.generated(config, f"reference/{part}.md", content="\n\n".join(lines)))
    return files


def _link(found: re.Match[str]) -> str:
    """Return a link of a file at the root of the repository as one of the site."""
    target = PAGES.get(found[1]) or found[1].removeprefix("docs/")
    return f"]({target}{found[2] or ''})"


def public_names() -> dict[str, list[str]]:
    """Return every public name, by part: read from the imports of the package, which is not imported itself."""
    tree = ast.parse((ROOT / "src/pufferfish/__init__.py").read_text())
    imports = [line for line in tree.body if isinstance(line, ast.ImportFrom) and line.module]
    origin = {name.name: str(line.module) for line in imports for name in line.names}
    public = next(line.value for line in tree.body if isinstance(line, ast.Assign) and _assigns_all(line))
    found: dict[str, list[str]] = {part: [] for part in PARTS}
    for name in ast.literal_eval(public):
        if origin[name] != "pufferfish":  # the module of errors, whose classes have a part of their own
            module = origin[name].split(".")[1]
            found[BELONGS.get(module, module)].append(name)
    return found


def _assigns_all(line: ast.Assign) -> bool:
    return isinstance(line.targets[0], ast.Name) and line.targets[0].id == "__all__"
