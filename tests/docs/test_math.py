"""Formulas of docs/: all are shown, and a faulty one stops the build of the site, which names its page."""

import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import browsers

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
GOOD = r"""# A page

The record loss $d(x,x')$ costs 5 \$; `$HOME` and `$x$` are code, and $\max_{x \ne x'} \log |u(x)| \le \tfrac12$ is not.

$$
\begin{aligned} F_T &= 0 \\ F_i &= \Phi_P(d_{i+1} + F_{i+1}) \end{aligned}
$$

```sh
echo $HOME $$
```
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Any]:
    yield from browsers.opened(tmp_path_factory)


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("latex2mathml", reason="the tools of the site are not installed (extra docs)")
    pytest.importorskip("mkdocs", reason="the tools of the site are not installed (extra docs)")
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


def shown(text: str) -> str:
    import docs_math
    import markdown

    return markdown.markdown(text, extensions=["tables", "pymdownx.superfences", docs_math.MathExtension()])


def build(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Build a site of one page with the repository's hooks for formulas."""
    (folder / "docs" / "deep").mkdir(parents=True)
    (folder / "docs" / "index.md").write_text("# Start\n")
    (folder / "docs" / "deep" / "page.md").write_text(text)
    (folder / "hooks.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'scripts')!r})\nfrom docs_hooks import on_config, on_post_page\n"
    )
    (folder / "mkdocs.yml").write_text(
        "site_name: a site\nstrict: true\nplugins: []\nhooks: [hooks.py]\n"
        "theme: {name: material, font: false}\nmarkdown_extensions: [pymdownx.superfences]\n"
    )
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_formulas_are_mathml_in_the_site_and_code_stays(tmp_path: Path) -> None:
    found = build(tmp_path, GOOD)
    assert found.returncode == 0, found.stderr
    page = (tmp_path / "site" / "deep" / "page" / "index.html").read_text()
    assert page.count('display="block"') == 1
    assert "<code>$HOME</code> and <code>$x$</code>" in page
    assert "costs 5 $;" in page
    assert "<munder>" not in page  # below the name in displayed formulas alone
    assert re.search(r"<math[^>]*><mrow><mi>d</mi><mo[^>]*>\(</mo><mi>x</mi><mo>,</mo><msup><mi>x</mi><mi>′</mi>", page)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (r"It is $\foo{x}$.", r"\foo is unknown in the formula \foo{x}"),
        (r"It is $\frac{1}{2$.", r"braces are not balanced in the formula \frac{1}{2"),
        (r"It is $a}{b$.", "braces are not balanced in the formula a}{b"),
        (r"It is $\{x\}$.", r"\{ is no word (as \lbrace is)"),
        (r"It is $a_b_c$.", "DoubleSubscriptsError in the formula a_b_c"),
        ("It costs $5 a day.", r"a $ opens no formula that ends on its line (a dollar is \$): $5 a day."),
        ("It is $x +\ny$ long.", r"a $ opens no formula that ends on its line (a dollar is \$): $x +"),
        ("$$\nx^2\n", "$$ stands on lines of its own, with empty lines around the two: $$"),
        ("$$ x^2 $$\n", "$$ stands on lines of its own, with empty lines around the two: $$ x^2 $$"),
        ("$$\n\\oops\n$$\n", r"\oops is unknown in the formula \oops"),
        ('<div title="x">$x^2$</div>', "shows a formula as it was typed: $x^2$"),
    ],
)
def test_a_faulty_formula_stops_the_build_and_is_named(tmp_path: Path, fault: str, said: str) -> None:
    found = build(tmp_path, f"# A page\n\n{fault}\n")
    assert found.returncode != 0
    assert "deep/page.md" in found.stderr
    assert said in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_formula_of_the_pages_is_shown(page: Path) -> None:
    import docs_hooks

    text = shown(page.read_text())
    assert not docs_hooks.RAW_FORMULA.search(docs_hooks.CODE.sub("", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_formulas_stand_where_repository_browsers_see_them(page: Path) -> None:
    """A space or a bracket before it, and a space or punctuation after it, but no star of emphasis."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for display in re.findall(r"^\$\$\n(.*?)\n\$\$$", text, flags=re.DOTALL | re.MULTILINE):
        assert not re.search(r"^\s*[-+=>#*]", display, flags=re.MULTILINE), display  # it would be a list, or a heading
    text = re.sub(r"^\$\$\n.*?\n\$\$$", "", text, flags=re.DOTALL | re.MULTILINE)
    for before, formula, after in re.findall(r"(^|.)\$([^$\n]+)\$(.|$)", text, flags=re.MULTILINE):
        assert not before or before in " ([|", f"{before}${formula}$"
        assert not after or after in " .,;:)]|'", f"${formula}${after}"


def test_a_long_formula_breaks_after_its_relations() -> None:
    assert shown("$a + b + c + d = e + f + g$").count("<math") == 2
    assert shown("$f(a = b, c = d, e = f)$").count("<math") == 1


@pytest.mark.program
@pytest.mark.slow
def test_on_a_phone_only_displayed_formulas_scroll(browser: Any, tmp_path: Path) -> None:
    """Formulas in a line break, or fit; one that is displayed scrolls inside of its own box."""
    style = (ROOT / "docs" / "stylesheets" / "extra.css").read_text()
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    )
    scrolling = 0
    for page in (ROOT / "docs" / "proofs").glob("*.md"):
        text = f'<meta name="viewport" content="width=device-width"><style>{style} table {{display: block}}'
        text += f'</style><div class="md-typeset" style="margin: 16px; font-size: 16px">{shown(page.read_text())}</div>'
        (tmp_path / "page.html").write_text(text)
        browser.get((tmp_path / "page.html").as_uri())
        assert browser.execute_script("return document.querySelectorAll('math').length") or page.stem == "certificate"
        wide = "return [...document.querySelectorAll('p .formula-part, li .formula-part')]"
        wide += ".filter(x => x.getBoundingClientRect().right > 390).map(x => x.textContent)"
        assert browser.execute_script(wide) == [], page.name
        boxes = "return [...document.querySelectorAll('.formula')].filter(x => x.scrollWidth > x.clientWidth).length"
        scrolling += browser.execute_script(boxes)
    assert scrolling > 10
