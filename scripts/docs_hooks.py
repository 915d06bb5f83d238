"""For the site: pages that are made of the repository's own files, and a page of reference for each part of the API.

Links in these files are those of a repository browser; here they are turned into links between pages of the site.
"""

import ast
import re
from pathlib import Path

import docs_math
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "pufferfish"
PAGES = {
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
BELONGS = {"_base": "release", "compare": "mechanisms", "check": "fit", "ledger": "release", "_core": "robustness"}
"""Modules of the package that share a part with another one."""


FETCHED = re.compile(
    r'<(?:script|img|iframe|source|video)\b[^>]*\bsrc="(?:https?:)?//[^"]*"|<link\b[^>]*href="(?:https?:)?//[^"]*"'
)
CODE = re.compile(r"<(code|pre|script|style)\b.*?</\1>", flags=re.DOTALL)
RAW_FORMULA = re.compile(r"\$[^$<>\n]+\$|\\[A-Za-z]+")
"""A formula that readers would see as it was typed."""

LINK = re.compile(r"\[([^\[\]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have formulas read."""
    config.markdown_extensions.append(docs_math.MathExtension())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=LINK.sub(_link, (ROOT / source).read_text())))
    for part, names in public_names().items():
        lines = [f"# {PARTS[part]}", *(f"::: {_reference(name)}" for name in names)]
        files.append(File.generated(config, f"reference/{part}.md", content="\n\n".join(lines)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Turn links of docs/ to files above it into links to the pages that these became."""
    return re.sub(
        r"\]\(\.\./([^)#]+)", lambda found: f"]({PAGES[found[1]]}" if found[1] in PAGES else found[0], markdown
    )


def on_post_build(config: MkDocsConfig) -> None:
    """Put the checker into the page that checks proofs, which is then one file."""
    page, tag = Path(config.site_dir) / "check.html", '<script src="../certificate/check.js">'
    script = (ROOT / "certificate" / "check.js").read_text()
    before, after = page.read_text().split(tag)
    page.write_text(f"{before}<script>\n{script}{after}")


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Refuse a page that would load something from elsewhere when it is read, or has a formula left as it was typed."""
    if found := FETCHED.search(output):
        raise PluginError(f"{page.file.src_uri} loads something from elsewhere: {found[0]}")
    if found := RAW_FORMULA.search(CODE.sub("", output)):
        raise PluginError(f"{page.file.src_uri} shows a formula as it was typed: {found[0]}")
    return output


def _link(found: re.Match[str]) -> str:
    """Return a link of a file at the root of the repository as one of the site; what is no page of it, as text.

    A link whose text is the name of the file gets the page's title.
    """
    text, target, anchor = found[1], found[2], found[3] or ""
    if text == target and target.endswith(".md"):
        text = (ROOT / target).read_text().partition("\n")[0].removeprefix("# ")
    if target.startswith("docs/"):
        return f"[{text}]({target.removeprefix('docs/')}{anchor})"
    return f"[{text}]({PAGES[target]}{anchor})" if target in PAGES else text


def _reference(name: str) -> str:
    """Return where the reference finds a public name: a function is named by its file where a module has its name."""
    modules = {
        path: [*path.relative_to(SOURCE.parent).parent.parts, *([] if path.stem == "__init__" else [path.stem])]
        for path in SOURCE.rglob("*.py")
    }
    if not any(name in parts for parts in modules.values()):
        return f"pufferfish.{name}"
    defined = re.compile(rf"^def {name}\b", re.MULTILINE)
    return ".".join([*next(parts for path, parts in modules.items() if defined.search(path.read_text())), name])


def public_names() -> dict[str, list[str]]:
    """Return every public name, by part: read from the package's list of them, which is not imported itself."""
    tree = ast.parse((SOURCE / "__init__.pyi").read_text())
    imports = [line for line in tree.body if isinstance(line, ast.ImportFrom) and line.module]  # not the errors' module
    origin = {name.name: str(line.module).split(".")[0] for line in imports for name in line.names}
    found: dict[str, list[str]] = {part: [] for part in PARTS}
    for name in sorted(origin):
        found[BELONGS.get(origin[name], origin[name])].append(name)
    return found
